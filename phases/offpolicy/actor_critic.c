/* SPDX-License-Identifier: Apache-2.0 */
#include "actor_critic.h"

#include "dtrain/svc/graph.h"

#include <math.h>
#include <string.h>

enum { MAX_CONCAT = 8 };
#define MASKED_LOGIT 1e9 /* subtracted from logits of masked choices: probability 0 */

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static dt_status check_choices(actor_critic *r)
{
    r->n_choices = r->wiring->n_choices;
    for (uint32_t i = 0; i < r->spec->n_heads; i++) {
        r->widest = r->spec->choices[i] > r->widest ? r->spec->choices[i] : r->widest;
    }
    r->n_actions = r->n_choices + r->spec->n_continuous;
    if (r->widest > ACTOR_CRITIC_MAX_CHOICES || r->n_actions > ACTOR_CRITIC_MAX_COLUMNS) {
        return DT_FAIL_H(r->h, DT_ESHAPE,
                         "environment %s has %lld choices in one action and %lld columns of actions; %s takes at most "
                         "%d and %d",
                         r->wiring->env_id, (long long)r->widest, (long long)r->n_actions, r->phase,
                         ACTOR_CRITIC_MAX_CHOICES, ACTOR_CRITIC_MAX_COLUMNS);
    }
    return DT_OK;
}

static dt_status check_bounds(actor_critic *r)
{
    const uint32_t n = r->spec->n_continuous;
    uint32_t n_bounded = 0, n_open = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_bounded += isfinite(r->spec->low[i]) && isfinite(r->spec->high[i]);
        n_open += !isfinite(r->spec->low[i]) && !isfinite(r->spec->high[i]);
    }
    r->is_bounded = n_bounded == n;
    if (n > ACTOR_CRITIC_MAX_ACTIONS || (n_bounded != n && n_open != n)) {
        return DT_FAIL_H(r->h, DT_ESHAPE,
                         "environment %s has %u continuous actions, %u with both bounds and %u with none; %s takes at "
                         "most %d, either all with bounds or all without",
                         r->wiring->env_id, n, n_bounded, n_open, r->phase, ACTOR_CRITIC_MAX_ACTIONS);
    }
    return DT_OK;
}

dt_status actor_critic_bind(actor_critic *r, const dt_wiring_api *wiring, uint32_t flags)
{
    dt_wiring_desc d = DT_WIRING_DESC(r->phase, NULL);
    d.flags = flags;
    DT_TRY_H(wiring->create(r->h, &d, &r->wiring));
    r->spec = r->wiring->spec;
    DT_TRY_H(check_choices(r));
    DT_TRY_H(check_bounds(r));
    return r->n_critics > 0 ? dt_wiring_bind_critic(r->wiring, r->n_critics, &r->critic) : DT_OK;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static dt_wiring_view make_view(const actor_critic *r, const char *prefix, const char *target)
{
    const dt_wiring *w = r->wiring;
    return (dt_wiring_view){
        .struct_size = sizeof(dt_wiring_view), .has_all = w->has_graph, .prefix = prefix, .target = target};
}

dt_status actor_critic_record_policy(const actor_critic *r, dt_graph *g, dt_policy_tensors *out)
{
    const dt_wiring_view view = make_view(r, "", NULL);
    *out = (dt_policy_tensors){.struct_size = sizeof(*out)};
    return r->wiring->api->record(r->wiring, g, &view, out);
}

dt_status actor_critic_record_next_policy(const actor_critic *r, dt_graph *g, const dt_policy_tensors *now,
                                          const char *target, dt_policy_tensors *out)
{
    const dt_wiring_view view = make_view(r, "next_", target);
    *out = (dt_policy_tensors){.struct_size = sizeof(*out), .embedding = now->embedding, .risk = now->risk};
    return r->wiring->api->record(r->wiring, g, &view, out);
}

dt_status actor_critic_record_q(const actor_critic *r, dt_graph *g, const char *prefix, const char *target,
                                const dt_policy_tensors *p, dt_tensor *action, dt_tensor **q_p)
{
    const dt_wiring_view view = make_view(r, prefix, target);
    const dt_named more[] = {{"action", action}, {"embedding", p->embedding}, {"risk", p->risk}};
    dt_named q = {"q", NULL};
    DT_TRY_H(r->wiring->api->record_model(r->wiring, g, &view, r->critic, more, 3, &q, 1));
    *q_p = q.tensor;
    return DT_OK;
}

/* Concatenates any number of columns. */
static dt_tensor *concat_columns(dt_graph *g, dt_tensor **column, uint32_t n)
{
    dt_tensor *all = column[0];
    for (uint32_t k = 1; k < n;) {
        dt_tensor *part[MAX_CONCAT] = {all};
        uint32_t m = 1;
        while (m < MAX_CONCAT && k < n) {
            part[m++] = column[k++];
        }
        all = dt_concat(g, part, m);
    }
    return all;
}

/* scale[i] x + shift[i] for each column i. */
static dt_tensor *scale_columns(dt_graph *g, dt_tensor *x, uint32_t n, const double *scale, const double *shift)
{
    dt_tensor *column[ACTOR_CRITIC_MAX_ACTIONS];
    bool is_alike = true;
    for (uint32_t i = 1; i < n; i++) {
        is_alike = is_alike && scale[i] == scale[0] && shift[i] == shift[0];
    }
    if (is_alike) {
        return dt_affine(g, x, scale[0], shift[0]);
    }
    for (uint32_t i = 0; i < n; i++) {
        column[i] = dt_affine(g, dt_slice(g, x, i, 1), scale[i], shift[i]);
    }
    return concat_columns(g, column, n);
}

static double action_centre(const actor_critic *r, uint32_t i)
{
    return 0.5 * ((double)r->spec->low[i] + (double)r->spec->high[i]);
}

double actor_critic_action_scale(const actor_critic *r, uint32_t i)
{
    return r->is_bounded ? 0.5 * ((double)r->spec->high[i] - (double)r->spec->low[i]) : 1;
}

dt_tensor *actor_critic_denormalise_action(const actor_critic *r, dt_graph *g, dt_tensor *action)
{
    double scale[ACTOR_CRITIC_MAX_ACTIONS], shift[ACTOR_CRITIC_MAX_ACTIONS];
    for (uint32_t i = 0; i < r->spec->n_continuous; i++) {
        scale[i] = actor_critic_action_scale(r, i);
        shift[i] = r->is_bounded ? action_centre(r, i) : 0;
    }
    return r->is_bounded ? scale_columns(g, action, r->spec->n_continuous, scale, shift) : action;
}

/* Actions in the environment's units, normalised. */
static dt_tensor *normalise_action(const actor_critic *r, dt_graph *g, dt_tensor *x)
{
    double scale[ACTOR_CRITIC_MAX_ACTIONS], shift[ACTOR_CRITIC_MAX_ACTIONS];
    for (uint32_t i = 0; i < r->spec->n_continuous; i++) {
        scale[i] = 1 / actor_critic_action_scale(r, i);
        shift[i] = r->is_bounded ? -action_centre(r, i) / actor_critic_action_scale(r, i) : 0;
    }
    return r->is_bounded ? scale_columns(g, x, r->spec->n_continuous, scale, shift) : x;
}

static dt_tensor *normalised_executed(const actor_critic *r, dt_graph *g)
{
    return normalise_action(r, g, g->api->input(g, "executed"));
}

/* The bounds of a shield, NULL without. */
static dt_status record_shield_bounds(const actor_critic *r, dt_graph *g, const char *prefix,
                                      const dt_policy_tensors *p, dt_tensor **low_p, dt_tensor **high_p)
{
    dt_model *shield = r->wiring->shield;
    const dt_wiring_view view = make_view(r, prefix, NULL);
    const dt_named more[] = {{"embedding", p->embedding}, {"risk", p->risk}};
    dt_named out[2];
    uint32_t n = 0;
    *low_p = *high_p = NULL;
    const bool has_low = shield != NULL && r->bind->model_output(shield, "low") != NULL;
    const bool has_high = shield != NULL && r->bind->model_output(shield, "high") != NULL;
    if (r->spec->n_continuous == 0 || (!has_low && !has_high)) {
        return DT_OK;
    }
    if (has_low) {
        out[n++] = (dt_named){"low", NULL};
    }
    if (has_high) {
        out[n++] = (dt_named){"high", NULL};
    }
    DT_TRY_H(r->wiring->api->record_model(r->wiring, g, &view, shield, more, 2, out, n));
    *low_p = has_low ? out[0].tensor : NULL;
    *high_p = has_high ? out[n - 1].tensor : NULL;
    return DT_OK;
}

/* The shield's bounds, then the environment's, as the host executes actions. */
dt_status actor_critic_apply_shield(const actor_critic *r, dt_graph *g, const char *prefix, const dt_policy_tensors *p,
                                    dt_tensor **move_p)
{
    dt_tensor *low = NULL, *high = NULL, *move = *move_p;
    DT_TRY_H(record_shield_bounds(r, g, prefix, p, &low, &high));
    if (low == NULL && high == NULL) {
        return DT_OK;
    }
    dt_tensor *x = actor_critic_denormalise_action(r, g, move);
    x = high != NULL ? dt_min(g, x, high) : x;
    x = low != NULL ? dt_max(g, x, low) : x;
    x = normalise_action(r, g, x);
    x = r->is_bounded ? dt_clamp(g, x, -1, 1) : x;
    *move_p = dt_add(g, move, dt_stop(g, dt_sub(g, x, move)));
    return g->api->status(g);
}

/* Rows of an identity matrix: there is no operation for one-hot columns. */
static dt_tensor *one_hot_actions(const actor_critic *r, dt_graph *g)
{
    dt_tensor *head[DT_ENV_MAX_HEADS];
    dt_tensor *eye = dt_split(g, g->api->step_input(g, "eye", r->widest * r->widest), r->widest);
    dt_tensor *all = dt_merge(g, dt_gather(g, eye, g->api->input(g, "action_i"))); /* [A, heads * widest] */
    if (r->n_choices == r->widest * r->spec->n_heads) {
        return all;
    }
    for (uint32_t i = 0; i < r->spec->n_heads; i++) {
        head[i] = dt_slice(g, all, r->widest * i, r->spec->choices[i]);
    }
    return concat_columns(g, head, r->spec->n_heads);
}

dt_status actor_critic_set_identity(const actor_critic *r, const dt_train_api *train, dt_train *trainer)
{
    float eye[ACTOR_CRITIC_MAX_CHOICES * ACTOR_CRITIC_MAX_CHOICES];
    const int64_t n = r->widest * r->widest;
    for (int64_t i = 0; i < n; i++) {
        eye[i] = i % (r->widest + 1) == 0 ? 1 : 0;
    }
    return r->n_choices > 0 ? train->set(trainer, "eye", eye, (uint32_t)n) : DT_OK;
}

dt_tensor *actor_critic_executed_action(const actor_critic *r, dt_graph *g)
{
    if (r->n_choices == 0) {
        return normalised_executed(r, g);
    }
    if (r->spec->n_continuous == 0) {
        return one_hot_actions(r, g);
    }
    dt_tensor *both[2] = {one_hot_actions(r, g), normalised_executed(r, g)};
    return dt_concat(g, both, 2);
}

dt_tensor *actor_critic_masked_softmax(const actor_critic *r, dt_graph *g, dt_tensor *logits, dt_tensor *mask)
{
    dt_tensor *head[DT_ENV_MAX_HEADS];
    int64_t at = 0;
    dt_tensor *allowed = dt_add(g, logits, dt_affine(g, mask, MASKED_LOGIT, -MASKED_LOGIT));
    for (uint32_t i = 0; i < r->spec->n_heads; i++) {
        const int64_t n = r->spec->choices[i];
        head[i] = dt_softmax(g, r->spec->n_heads == 1 ? allowed : dt_slice(g, allowed, at, n));
        at += n;
    }
    return concat_columns(g, head, r->spec->n_heads);
}

dt_tensor *actor_critic_min_q(const actor_critic *r, dt_graph *g, dt_tensor *q)
{
    dt_tensor *least = r->n_critics == 1 ? q : dt_slice(g, q, 0, 1);
    for (int64_t i = 1; i < r->n_critics; i++) {
        least = dt_min(g, least, dt_slice(g, q, i, 1));
    }
    return least;
}
