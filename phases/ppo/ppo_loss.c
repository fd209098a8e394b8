/* SPDX-License-Identifier: Apache-2.0
 *
 * See ppo_loss.h. Losses of weight 0 are reported and not trained on.
 */
#include "ppo_loss.h"

#include "dtrain/svc/graph.h"

enum { TEXT = 64 };

/* Bounds that never clip: in a mean of f32 a ratio below 1e-6 is 0. */
#define NO_CLIP_LOW  0.999999
#define NO_CLIP_HIGH 1e30

static void add_optional(dt_graph *g, dt_tensor **sum, dt_tensor *x)
{
    *sum = *sum == NULL ? x : dt_add(g, *sum, x);
}

/* A of the policy loss, [A]: the advantage of the reward, or a weighted sum of it and those of the costs. */
static dt_status record_advantage(dt_wiring *w, const ppo_loss_config *c, dt_graph *g, const dt_policy_tensors *p,
                                  dt_tensor **out_p)
{
    const dt_graph_api *api = g->api;
    dt_tensor *reward = api->input(g, "advantage");
    if (c->imagine.weight > 0) {
        DT_TRY_H(imagine_record(&c->imagine, w, g, p, reward, &reward));
    }
    *out_p = reward;
    if (!c->has_mix) {
        return DT_OK;
    }
    dt_tensor *both[] = {dt_split(g, reward, 0), api->input(g, "cost_advantage")};
    const int64_t n = 1 + (int64_t)w->spec->n_costs;
    dt_tensor *weighted = dt_mul(g, dt_concat(g, both, 2), api->step_input(g, "advantage_mix", n));
    dt_tensor *sum = NULL;
    for (int64_t i = 0; i < n; i++) {
        add_optional(g, &sum, dt_slice(g, weighted, i, 1));
    }
    *out_p = dt_merge(g, sum);
    return DT_OK;
}

static dt_status record_value_loss(const ppo_loss_config *c, dt_graph *g, const char *name, const char *field,
                                   dt_tensor *value, double weight)
{
    const dt_graph_api *api = g->api;
    char target[TEXT], before[TEXT];
    snprintf(target, TEXT, "%starget", field);
    snprintf(before, TEXT, "%svalue", field);
    dt_tensor *old = c->value_clip_mode == DT_VALUE_CLIP_STEP ? api->input(g, before) : NULL;
    dt_tensor *row = dt_value_loss(g, value, api->input(g, target), old, c->value_clip_mode, c->value_clip);
    return api->loss(g, name, dt_sum(g, row), weight, "A");
}

dt_status ppo_record_losses(dt_wiring *w, const ppo_loss_config *c, dt_graph *g, const dt_policy_tensors *p)
{
    const dt_graph_api *api = g->api;
    dt_tensor *log_prob = NULL, *entropy = NULL, *kl = NULL, *clipped = NULL;
    DT_TRY_H(w->api->action_log_prob(w, g, p, &log_prob, &entropy));
    const double low = c->is_apart ? NO_CLIP_LOW : c->clip, high = c->is_apart ? NO_CLIP_HIGH : c->clip;
    dt_tensor *advantage = NULL;
    DT_TRY_H(record_advantage(w, c, g, p, &advantage));
    dt_tensor *surrogate = dt_ppo_clip(g, log_prob, api->input(g, "log_prob"), advantage, low, high, &kl, &clipped);
    DT_TRY_H(api->loss(g, "policy_loss", dt_sum(g, surrogate), c->is_apart ? 0.0 : 1.0, "A"));
    DT_TRY_H(record_value_loss(c, g, "value_loss", "", p->value, c->value_coef));
    if (p->cost_value != NULL) {
        DT_TRY_H(record_value_loss(c, g, "cost_value_loss", "cost_", p->cost_value, c->cost_value_coef));
    }
    DT_TRY_H(api->loss(g, "entropy", dt_sum(g, entropy), 0.0, "A"));
    DT_TRY_H(api->loss(g, "approx_kl", dt_sum(g, kl), 0.0, "A"));
    if (!c->has_entropy || !c->has_kl || !c->has_more) {
        DT_TRY_H(api->loss(g, "clipfrac", dt_sum(g, clipped), 0.0, "A"));
    }
    if (c->has_entropy) {
        dt_tensor *bonus = dt_mul(g, dt_split(g, entropy, 0), api->step_input(g, "entropy_coef", 1));
        DT_TRY_H(api->loss(g, "entropy_bonus", dt_sum(g, bonus), -1.0, "A"));
    }
    if (c->has_kl) {
        dt_tensor *penalty = dt_mul(g, dt_split(g, kl, 0), api->step_input(g, "kl_coef", 1));
        DT_TRY_H(api->loss(g, "kl_penalty", dt_sum(g, penalty), 1.0, "A"));
    }
    return api->status(g);
}
