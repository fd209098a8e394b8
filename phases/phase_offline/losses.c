/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses of phase_offline; see offline.h.
 */
#include "offline.h"

#include <math.h>

#define LOG_STD_MIN (-5.0) /* recorded actions at a bound would make it diverge */
#define LOG_STD_MAX 2.0
#define MIN_LOG     (-60.0)

static dt_tensor *add_optional(dt_graph *g, dt_tensor *sum, dt_tensor *x)
{
    return sum == NULL ? x : dt_add(g, sum, x);
}

/* log pi(a|s) [A] of drawn choices and of the continuous actions in the given field. */
static dt_tensor *record_log_prob(const offline_state *s, dt_graph *g, dt_policy_tensors *p, const char *continuous)
{
    const dt_graph_api *api = g->api;
    const dt_env_spec *e = s->models.spec;
    dt_tensor *sum = NULL, *unused = NULL;
    int64_t at = 0;
    for (uint32_t i = 0; i < e->n_heads; i++) {
        const int64_t n = e->choices[i];
        dt_tensor *logits = e->n_heads == 1 ? p->logits : dt_slice(g, p->logits, at, n);
        dt_tensor *mask = api->input(g, "mask");
        mask = e->n_heads == 1 ? mask : dt_slice(g, mask, at, n);
        sum = add_optional(g, sum, dt_categorical(g, logits, api->input(g, "action_i"), i, mask, &unused));
        at += n;
    }
    if (e->n_continuous > 0) {
        dt_tensor *log_std = dt_clamp(g, p->log_std, LOG_STD_MIN, LOG_STD_MAX);
        sum = add_optional(g, sum, dt_gaussian(g, p->mean, log_std, api->input(g, continuous), &unused));
    }
    return sum;
}

static dt_tensor *concat_columns(dt_graph *g, dt_tensor *const *column, uint32_t n)
{
    return n == 1 ? column[0] : dt_concat(g, column, n);
}

/* V of every head, [A,heads]. */
static dt_tensor *record_values(const offline_state *s, dt_graph *g, const dt_policy_tensors *p)
{
    dt_tensor *column[OFFLINE_MAX_HEADS] = {dt_split(g, p->value, 0)};
    for (uint32_t i = 1; i < s->n_heads; i++) {
        column[i] = dt_slice(g, p->cost_value, s->cost_of[i], 1);
    }
    return concat_columns(g, column, s->n_heads);
}

/* Q of every head, [A,heads]: the minimum over critics for the reward. */
static dt_tensor *record_critic_heads(const offline_state *s, dt_graph *g, dt_tensor *q)
{
    const int64_t C = s->config.critics;
    dt_tensor *column[OFFLINE_MAX_HEADS] = {s->models.n_critics == 1 ? q : dt_slice(g, q, 0, 1)};
    for (int64_t i = 1; i < C; i++) {
        column[0] = dt_min(g, column[0], dt_slice(g, q, i, 1));
    }
    for (uint32_t i = 1; i < s->n_heads; i++) {
        column[i] = dt_slice(g, q, C + i - 1, 1);
    }
    return concat_columns(g, column, s->n_heads);
}

/* r_h + gamma V_h(s') of every estimate, [A,estimates], less the step input "offset". */
static dt_tensor *record_td_targets(const offline_state *s, dt_graph *g, dt_tensor *next)
{
    const dt_graph_api *api = g->api;
    dt_tensor *offset = dt_add(g, dt_fill(g, next, 0), api->step_input(g, "offset", s->n_heads));
    dt_tensor *column[ACTOR_CRITIC_MAX_CRITICS + DT_ENV_MAX_COSTS];
    dt_tensor *discount = dt_split(g, api->input(g, "discount"), 0);
    const uint32_t C = (uint32_t)s->config.critics;
    for (uint32_t i = 0; i < s->n_heads; i++) {
        dt_tensor *earned =
            i == 0 ? dt_split(g, api->input(g, "reward"), 0) : dt_slice(g, api->input(g, "cost"), s->cost_of[i], 1);
        dt_tensor *later = s->n_heads == 1 ? next : dt_slice(g, next, i, 1);
        dt_tensor *above = s->n_heads == 1 ? offset : dt_slice(g, offset, i, 1);
        dt_tensor *y = dt_sub(g, dt_affine(g, earned, s->scale[i], 0), above);
        y = dt_add(g, y, dt_mul(g, dt_add(g, later, above), discount));
        column[i == 0 ? 0 : C + i - 1] = y;
        for (uint32_t k = 1; k < C && i == 0; k++) {
            column[k] = y;
        }
    }
    return dt_stop(g, concat_columns(g, column, C + s->n_heads - 1));
}

static dt_status record_critic_loss(const offline_state *s, dt_graph *g, const dt_policy_tensors *now, dt_tensor *done)
{
    dt_policy_tensors next;
    dt_tensor *q = NULL;
    DT_TRY_H(actor_critic_record_next_policy(&s->models, g, now, NULL, &next));
    DT_TRY_H(actor_critic_record_q(&s->models, g, "", NULL, now, done, &q));
    dt_tensor *target = record_td_targets(s, g, record_values(s, g, &next));
    DT_TRY_H(g->api->output(g, "targets", target));
    dt_tensor *off = dt_sub(g, q, target);
    dt_tensor *loss = dt_mse(g, off, dt_fill(g, off, 0), g->api->input(g, "weight"));
    return g->api->loss(g, "critic_loss", loss, 1.0, "A");
}

/* w [A,1]; step input "mix": the factor of each A_h in the exponent. */
static dt_tensor *record_advantage_weight(const offline_state *s, dt_graph *g, dt_tensor *advantage)
{
    dt_tensor *mix = g->api->step_input(g, "mix", s->n_heads);
    dt_tensor *each = dt_mul(g, advantage, dt_add(g, dt_fill(g, advantage, 0), mix));
    dt_tensor *sum = s->n_heads == 1 ? each : dt_reduce_columns(g, DT_REDUCE_SUM, each);
    const double most = log(s->config.weight_max);
    return dt_stop(g, dt_unary(g, DT_FN_EXP, dt_clamp(g, sum, MIN_LOG, most), 0));
}

/* rho [A], at most ratio_max; 1 where step input "follows" is 0. */
static dt_tensor *record_importance_ratio(const offline_state *s, dt_graph *g, dt_policy_tensors *p)
{
    dt_tensor *drawn = record_log_prob(s, g, p, "action_f");
    dt_tensor *more = dt_split(g, dt_stop(g, dt_sub(g, drawn, g->api->input(g, "log_prob"))), 0);
    dt_tensor *follows = dt_add(g, dt_fill(g, more, 0), g->api->step_input(g, "follows", 1));
    dt_tensor *x = dt_clamp(g, dt_mul(g, more, follows), MIN_LOG, log(s->config.ratio_max));
    return dt_merge(g, dt_unary(g, DT_FN_EXP, x, 0));
}

static dt_status record_advantage_losses(const offline_state *s, dt_graph *g, dt_policy_tensors *p, dt_tensor *log_prob)
{
    const dt_graph_api *api = g->api;
    dt_tensor *q = NULL, *done = actor_critic_executed_action(&s->models, g);
    DT_TRY_H(actor_critic_record_q(&s->models, g, "", "target", p, done, &q));
    dt_tensor *critic_values = dt_stop(g, record_critic_heads(s, g, q)), *value = record_values(s, g, p);
    dt_tensor *advantage = dt_stop(g, dt_sub(g, critic_values, value));
    dt_tensor *weight = record_advantage_weight(s, g, advantage), *flat = dt_merge(g, weight);
    DT_TRY_H(api->output(g, "advantages", advantage));
    DT_TRY_H(api->output(g, "values", value));
    DT_TRY_H(api->output(g, "weights", flat));
    DT_TRY_H(api->loss(g, "actor_loss", dt_sum(g, dt_mul(g, log_prob, flat)), -1.0, "A"));
    dt_tensor *ratio = record_importance_ratio(s, g, p);
    DT_TRY_H(api->output(g, "ratios", ratio));
    DT_TRY_H(api->loss(g, "value_loss", dt_mse(g, value, critic_values, ratio), s->config.value_coef, "A"));
    return record_critic_loss(s, g, p, done);
}

dt_status offline_record(void *self, dt_graph *g)
{
    const offline_state *s = self;
    const dt_wiring *w = s->models.wiring;
    dt_policy_tensors p = {.struct_size = sizeof(p)};
    DT_TRY_H(w->api->record(s->models.wiring, g, NULL, &p));
    dt_tensor *log_prob = record_log_prob(s, g, &p, "executed");
    if (!offline_is_clone(s)) {
        return record_advantage_losses(s, g, &p, log_prob);
    }
    return g->api->loss(g, "actor_loss", dt_sum(g, log_prob), -1.0, "A");
}
