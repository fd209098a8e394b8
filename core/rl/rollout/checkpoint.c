/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1", what a checkpoint keeps. Environments save nothing: an episode that is being played is
 * its seed and the actions so far, and playing them again gives the same bits. Two blobs:
 *
 *   rollout     collects, per place the running discounted return, per instance its episode and the actions in it;
 *               where a round is ahead of what was learnt: by which parameters it is acted (train/policy.h: save)
 *   normaliser  statistics of observations and returns; taken over with weights alone, too
 */
#include <config.h>

#include "rl/rollout/rollout.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- keeping actions --------------------------------------------------------------------------------------------- */

static dt_status grow(dt_episode_log *l, size_t action_bytes, uint64_t steps)
{
    if (steps <= l->cap) {
        return DT_OK;
    }
    const uint64_t cap = steps > 2 * l->cap ? steps : 2 * l->cap;
    size_t bytes = 0;
    char *grown = dt_mul_size(cap, action_bytes, &bytes) ? dt_realloc(l->action, bytes) : NULL;
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the actions of an episode of %llu steps",
                       (unsigned long long)steps);
    }
    l->action = grown;
    l->cap = cap;
    return DT_OK;
}

/* Actions as the environment got them; places where nobody acted got zeros. */
static void keep_actions(const dt_rollout *r, size_t slot, char *out)
{
    const dt_buffer *b = r->all;
    const dt_env_spec *s = &b->l->spec;
    const size_t H = s->n_heads * sizeof(int32_t), C = s->n_continuous * sizeof(float);
    char *const f = out + s->n_agents * H;
    memset(out, 0, r->action_bytes);
    for (size_t a = 0; a < s->n_agents; a++) {
        const size_t at = slot * s->n_agents + a;
        if ((b->row[at] & (DT_ROW_ACTS | DT_ROW_OPPONENT)) != 0) {
            memcpy(out + a * H, b->act_i + at * s->n_heads, H);
            memcpy(f + a * C, b->executed_f + at * s->n_continuous, C);
        }
    }
}

dt_status dt_rollout_log(dt_rollout *r)
{
    const dt_buffer *b = r->all;
    for (uint32_t i = 0; i < r->instances; i++) {
        dt_episode_log *l = &r->log[i];
        DT_TRY(grow(l, r->action_bytes, l->steps + b->d.steps));
        for (uint32_t t = 0; t < b->d.steps; t++) {
            const size_t slot = dt_buffer_slot(b, t, i);
            if (l->is_over) { /* this step was a reset */
                l->episode++;
                l->steps = 0;
                l->is_over = false;
                continue;
            }
            keep_actions(r, slot, l->action + l->steps * r->action_bytes);
            l->steps++;
            l->is_over = b->done[slot] != 0;
        }
    }
    return DT_OK;
}

/* ---- playing them again ------------------------------------------------------------------------------------------ */

/* The history of one of this rank's instances moves back by a step, and what it sees now becomes the last. */
static void remember(dt_rollout *r, uint32_t i, const char *record)
{
    dt_buffer *b = &r->buffer;
    const size_t A = b->l->spec.n_agents, M = b->d.instances;
    const size_t last = dt_buffer_slot(b, b->d.steps, i);
    for (size_t slot = last - (b->d.window - 1) * M; slot < last; slot += M) {
        memcpy(b->row + slot * A, b->row + (slot + M) * A, A);
        memcpy(b->flag + slot * A, b->flag + (slot + M) * A, A);
        memcpy(b->age + slot * A, b->age + (slot + M) * A, A * sizeof(*b->age));
        for (uint32_t k = 0; k < b->l->spec.n_obs; k++) {
            const dt_obs_port *o = &b->l->obs[k];
            const size_t bytes = A * o->row_bytes;
            if (o->symbol == 0 && !dt_obs_is_lists(o)) {
                memcpy(b->obs[k] + slot * bytes, b->obs[k] + (slot + M) * bytes, bytes);
            }
        }
    }
    memset(b->used, 0, sizeof(b->used)); /* what is ragged has no history */
    dt_buffer_put(b, b->d.steps, i, record);
}

/* What a checkpoint says an agent did: nothing but what it could have done goes to the environment. Places where nobody
 * acted have zeros. */
static dt_status check_action(const dt_rollout *r, const dt_instance *x, const char *action, size_t a,
                              const char **why_p)
{
    const dt_layout *l = &r->env->layout;
    const dt_env_spec *s = &l->spec;
    const bool lives = x->record[l->alive + a] != 0;
    const uint8_t *mask = (const uint8_t *)x->record + l->mask + a * l->n_choices;
    for (uint32_t h = 0; h < s->n_heads; h++) {
        int32_t choice;
        memcpy(&choice, action + (a * s->n_heads + h) * sizeof(choice), sizeof(choice));
        if (choice < 0 || choice >= (lives ? s->choices[h] : 1)) {
            *why_p = lives ? "an invalid choice" : "an action of an agent that does not act";
            return DT_EDATA;
        }
        if (lives && mask[choice] == 0) {
            *why_p = "a choice that the mask forbids";
            return DT_EDATA;
        }
        mask += s->choices[h];
    }
    for (uint32_t c = 0; c < s->n_continuous; c++) {
        float v;
        memcpy(&v, action + s->n_agents * s->n_heads * sizeof(int32_t) + (a * s->n_continuous + c) * sizeof(v),
               sizeof(v));
        if (lives ? !(v >= s->low[c] && v <= s->high[c]) : v != 0) {
            *why_p =
                lives ? "an action beyond the bounds of the environment" : "an action of an agent that does not act";
            return DT_EDATA;
        }
    }
    return DT_OK;
}

static dt_status check_actions(const dt_rollout *r, const dt_instance *x, uint32_t i, uint64_t step, const char *action)
{
    const char *why = NULL;
    for (size_t a = 0; a < r->env->layout.spec.n_agents; a++) {
        if (check_action(r, x, action, a, &why) < 0) {
            return DT_FAIL(DT_EDATA,
                           "the checkpoint's state of the rollout, instance %u, step %llu, place %zu: it has %s; start "
                           "a new run with --init-from, which takes only the weights",
                           r->first + i, (unsigned long long)step, a, why);
        }
    }
    return DT_OK;
}

static dt_status replay(dt_rollout *r, uint32_t i)
{
    const dt_env_spec *s = &r->env->layout.spec;
    const dt_episode_log *l = &r->log[r->first + i];
    dt_instance *x = dt_vector_at(r->vector, i);
    const size_t H = s->n_agents * s->n_heads * sizeof(int32_t);
    x->episodes = l->episode + (l->is_over ? 1 : 0);
    if (l->is_over) {
        return DT_OK; /* the next step is a reset */
    }
    for (uint64_t t = 0; t <= l->steps; t++) {
        if (t > 0) {
            const char *action = l->action + (t - 1) * r->action_bytes;
            DT_TRY(check_actions(r, x, i, t, action));
            memcpy(x->record + r->env->layout.act_i, action, H);
            memcpy(x->record + r->env->layout.act_f, action + H, r->action_bytes - H);
        }
        DT_TRY(dt_vector_advance(r->vector, i));
        if (x->is_over) {
            return DT_FAIL(DT_EPLUGIN,
                           "environment %s, instance %u: episode %llu ended at step %llu when it was played again, and "
                           "had not before; the same seed and actions have to give the same episode",
                           r->env->comp->desc.id, r->first + i, (unsigned long long)l->episode, (unsigned long long)t);
        }
        if (r->buffer.d.window > 1) {
            remember(r, i, x->record);
        }
    }
    return DT_OK;
}

dt_status dt_rollout_replay(dt_rollout *r)
{
    for (uint32_t i = 0; i < r->last - r->first; i++) {
        const dt_status st = replay(r, i);
        if (st < 0) {
            return DT_CONTEXT(st, "continuing the episodes of the checkpoint");
        }
    }
    r->is_restored = false;
    return DT_OK;
}

/* ---- the blobs --------------------------------------------------------------------------------------------------- */

static void put_u64(dt_str *out, uint64_t v)
{
    dt_str_add_n(out, (const char *)&v, sizeof(v));
}

static void put_bytes(dt_str *out, const void *p, size_t bytes)
{
    dt_str_add_n(out, p, bytes);
}

dt_status dt_rollout_save(const dt_rollout *r, dt_str *out)
{
    put_u64(out, r->collects);
    put_u64(out, r->instances);
    put_u64(out, r->env->layout.spec.n_agents);
    put_u64(out, r->action_bytes);
    put_bytes(out, r->ret, (size_t)r->instances * r->env->layout.spec.n_agents * sizeof(*r->ret));
    for (uint32_t i = 0; i < r->instances; i++) {
        const dt_episode_log *l = &r->log[i];
        put_u64(out, l->episode);
        put_u64(out, l->steps);
        put_u64(out, l->is_over);
        put_bytes(out, l->action, l->steps * r->action_bytes);
    }
    if (r->ahead.restored != NULL) {
        put_bytes(out, r->ahead.restored, r->ahead.restored_bytes);
    } else if (r->ahead.is_begun) {
        DT_TRY(dt_policy_save(r->policy, out));
    }
    return dt_str_status(out);
}

static void save_moments(const dt_moments *m, const char *name, dt_str *out)
{
    char text[48] = "";
    snprintf(text, sizeof(text), "%s", name);
    put_bytes(out, text, sizeof(text));
    put_u64(out, m->columns);
    put_bytes(out, &m->n, sizeof(m->n));
    put_bytes(out, m->mean, m->columns * sizeof(double));
    put_bytes(out, m->m2, m->columns * sizeof(double));
}

dt_status dt_rollout_save_normaliser(const dt_rollout *r, dt_str *out)
{
    for (uint32_t i = 0; i < DT_ENV_MAX_OBS; i++) {
        if (r->obs[i].columns > 0) {
            save_moments(&r->obs[i], r->env->layout.obs[i].port->name, out);
        }
    }
    save_moments(&r->returns, "", out); /* no port is called so */
    return dt_str_status(out);
}

typedef struct cursor {
    const char *at;
    size_t left;
} cursor;

static dt_status take(cursor *c, void *to, size_t bytes)
{
    if (bytes > c->left) {
        return DT_FAIL(DT_EDATA, "the checkpoint's state of the rollout ends %zu bytes early", bytes - c->left);
    }
    if (bytes > 0) { /* an episode without steps has no place for actions */
        memcpy(to, c->at, bytes);
        c->at += bytes;
        c->left -= bytes;
    }
    return DT_OK;
}

static dt_status check_finite(const double *x, uint64_t n, const char *what)
{
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return DT_FAIL(DT_EDATA, "the checkpoint's state of the rollout has %s that is %g", what, x[i]);
        }
    }
    return DT_OK;
}

static dt_status load_episode(dt_rollout *r, cursor *c, dt_episode_log *l)
{
    uint64_t v[3];
    size_t bytes = 0;
    DT_TRY(take(c, v, sizeof(v)));
    if (!dt_mul_size(v[1], r->action_bytes, &bytes) || bytes > c->left) {
        return DT_FAIL(DT_EDATA,
                       "the checkpoint's state of the rollout records an episode of %llu steps, which it lacks",
                       (unsigned long long)v[1]);
    }
    const uint64_t most = r->env->n_mix == 0 ? r->env->layout.spec.max_steps : 0; /* of a mix each has its own */
    if (v[2] > 1 || (most > 0 && v[1] > most)) {
        return DT_FAIL(
            DT_EDATA,
            "the checkpoint's state of the rollout records an episode of %llu steps, and those of %s have up to "
            "%llu",
            (unsigned long long)v[1], r->env->comp->desc.id, (unsigned long long)most);
    }
    DT_TRY(grow(l, r->action_bytes, v[1]));
    l->episode = v[0];
    l->steps = v[1];
    l->is_over = v[2] != 0;
    return take(c, l->action, bytes);
}

static dt_status load_ahead(dt_rollout *r, cursor *c)
{
    if (c->left == 0) {
        return DT_OK;
    }
    if (!r->d.has_ahead) {
        dt_log(DT_LOG_WARN, "the checkpoint was saved while a round was collected ahead, which this run does not do: "
                            "the next round uses the current parameters");
        return DT_OK;
    }
    r->ahead.restored_bytes = c->left;
    r->ahead.restored = dt_alloc(c->left);
    if (r->ahead.restored == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the parameters of the round under way");
    }
    return take(c, r->ahead.restored, c->left);
}

dt_status dt_rollout_load(dt_rollout *r, const void *data, size_t size)
{
    cursor c = {.at = data, .left = size};
    uint64_t v[4];
    const uint64_t A = r->env->layout.spec.n_agents;
    DT_TRY(take(&c, v, sizeof(v)));
    r->collects = v[0];
    r->buffer.key_base = r->collects * r->d.steps * r->instances;
    if (v[1] != r->instances || v[2] != A || v[3] != r->action_bytes) {
        dt_log(DT_LOG_WARN,
               "the checkpoint has %llu instances of %llu places, this run %u of %llu: its episodes start again",
               (unsigned long long)v[1], (unsigned long long)v[2], r->instances, (unsigned long long)A);
        return DT_OK;
    }
    DT_TRY(take(&c, r->ret, r->instances * A * sizeof(*r->ret)));
    DT_TRY(check_finite(r->ret, r->instances * A, "a running return"));
    for (uint32_t i = 0; i < r->instances; i++) {
        DT_TRY(load_episode(r, &c, &r->log[i]));
    }
    r->is_restored = r->collects > 0;
    return load_ahead(r, &c);
}

bool dt_rollout_is_normalised(const dt_rollout *r)
{
    for (uint32_t i = 0; i < r->env->layout.spec.n_obs; i++) {
        if (r->obs[i].columns > 0) {
            return true;
        }
    }
    return false;
}

static dt_moments *find_moments(dt_rollout *r, const char *name)
{
    for (uint32_t i = 0; i < r->env->layout.spec.n_obs; i++) {
        if (r->obs[i].columns > 0 && strcmp(r->env->layout.obs[i].port->name, name) == 0) {
            return &r->obs[i];
        }
    }
    return name[0] == '\0' ? &r->returns : NULL;
}

static dt_status check_moments(const dt_moments *m, const char *name)
{
    bool is_right = isfinite(m->n) && m->n >= 0;
    for (size_t d = 0; d < m->columns; d++) {
        is_right = is_right && isfinite(m->mean[d]) && isfinite(m->m2[d]) && m->m2[d] >= 0;
    }
    return is_right ? DT_OK
                    : DT_FAIL(DT_EDATA, "the checkpoint's statistics of %s are not counts, means and sums of squares",
                              name[0] != '\0' ? name : "returns");
}

dt_status dt_rollout_load_normaliser(dt_rollout *r, const void *data, size_t size)
{
    cursor c = {.at = data, .left = size};
    while (c.left > 0) {
        char name[48];
        uint64_t columns = 0;
        double n = 0;
        DT_TRY(take(&c, name, sizeof(name)));
        name[sizeof(name) - 1] = '\0';
        DT_TRY(take(&c, &columns, sizeof(columns)));
        DT_TRY(take(&c, &n, sizeof(n)));
        size_t bytes = 0;
        if (!dt_mul_size(columns, sizeof(double), &bytes) || bytes > c.left / 2) {
            return DT_FAIL(DT_EDATA, "the checkpoint's statistics of %s are truncated", name);
        }
        dt_moments *m = find_moments(r, name);
        if (m == NULL || m->columns != columns) {
            dt_log(DT_LOG_WARN, "the checkpoint's statistics of observation %s %s and are left out", name,
                   dt_rollout_is_normalised(r) ? "do not fit this environment"
                                               : "are of normalised ones, which this phase does not see,");
            c.at += 2 * bytes;
            c.left -= 2 * bytes;
            continue;
        }
        m->n = n;
        DT_TRY(take(&c, m->mean, bytes));
        DT_TRY(take(&c, m->m2, bytes));
        DT_TRY(check_moments(m, name));
    }
    return DT_OK;
}
