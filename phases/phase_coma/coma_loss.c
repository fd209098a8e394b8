/* SPDX-License-Identifier: Apache-2.0 */
#include "coma_loss.h"

#define MASKED_LOGIT    (-1e9) /* added to logits: e^ of it is 0 */
#define MIN_PROBABILITY 1e-30  /* before a logarithm */
#define NO_CLIP         0.5    /* the divergence that comes with clipping does not depend on it */

coma_policy coma_record_policy(dt_graph *g, dt_tensor *logits, int64_t n_choices)
{
    dt_tensor *mask = g->api->input(g, "mask"); /* 1 or 0 */
    dt_tensor *softmax = dt_softmax(g, dt_add(g, logits, dt_affine(g, mask, -MASKED_LOGIT, MASKED_LOGIT)));
    dt_tensor *count = dt_clamp(g, dt_reduce_columns(g, DT_REDUCE_SUM, mask), 1, (double)n_choices);
    dt_tensor *more = dt_sub(g, dt_div(g, mask, count), softmax);
    dt_tensor *p = dt_add(g, softmax, dt_mul(g, more, g->api->step_input(g, "epsilon", n_choices)));
    return (coma_policy){.p = p, .log_p = dt_unary(g, DT_FN_LOG, dt_affine(g, p, 1, MIN_PROBABILITY), 0)};
}

dt_tensor *coma_record_estimate(const coma_loss_config *c, dt_graph *g, dt_tensor *q)
{
    return c->baseline == COMA_VALUE ? dt_reduce_columns(g, DT_REDUCE_MEAN, q)
                                     : dt_pick(g, q, g->api->input(g, "action_i"), 0);
}

/* A [A, 1], without gradient. */
static dt_tensor *record_advantage(const coma_loss_config *c, dt_graph *g, dt_tensor *p, dt_tensor *q, dt_tensor *taken)
{
    if (c->baseline == COMA_VALUE) {
        return dt_stop(g, dt_sub(g, g->api->input(g, "td_target"), taken));
    }
    if (c->baseline == COMA_NO_BASELINE) {
        return dt_stop(g, taken);
    }
    return dt_stop(g, dt_sub(g, taken, dt_reduce_columns(g, DT_REDUCE_SUM, dt_mul(g, p, q))));
}

static dt_status record_policy_losses(const coma_loss_config *c, dt_graph *g, dt_tensor *log_p, dt_tensor *advantage)
{
    const dt_graph_api *api = g->api;
    dt_tensor *entropy = NULL, *kl = NULL;
    dt_tensor *drawn = dt_categorical(g, log_p, api->input(g, "action_i"), 0, api->input(g, "mask"), &entropy);
    const double clip = c->clip > 0 ? c->clip : NO_CLIP;
    dt_tensor *clipped =
        dt_ppo_clip(g, drawn, api->input(g, "log_prob"), dt_merge(g, advantage), clip, clip, &kl, NULL);
    dt_tensor *plain = dt_affine(g, dt_mul(g, dt_split(g, drawn, 0), advantage), -1, 0);
    DT_TRY_H(api->loss(g, "policy_loss", dt_sum(g, c->clip > 0 ? clipped : plain), 1, "A"));
    DT_TRY_H(api->loss(g, "approx_kl", dt_sum(g, kl), 0, "A"));
    return api->loss(g, "entropy", dt_sum(g, entropy), -c->entropy_coef, "A");
}

dt_status coma_record_losses(const coma_loss_config *c, dt_graph *g, const coma_policy *p, dt_tensor *q)
{
    const dt_graph_api *api = g->api;
    dt_tensor *taken = coma_record_estimate(c, g, q);
    DT_TRY_H(record_policy_losses(c, g, p->log_p, record_advantage(c, g, p->p, q, taken)));
    dt_tensor *ones = dt_fill(g, api->input(g, "log_prob"), 1);
    DT_TRY_H(api->loss(g, "critic_loss", dt_mse(g, taken, api->input(g, "td_target"), ones), 1, "A"));
    return api->status(g);
}
