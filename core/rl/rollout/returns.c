/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/rollout/returns.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"
#include "rl/buffer/gae.h"
#include "rl/buffer/time_to_cost.h"

#include <math.h>

dt_status dt_returns_init(dt_returns *x, size_t places)
{
    x->scratch = dt_alloc_n(places, 2 * sizeof(*x->scratch));
    x->running = dt_alloc_n(places, sizeof(*x->running));
    if (x->scratch == NULL || x->running == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the returns of %zu agents", places);
    }
    return dt_moments_init(&x->moments, 1);
}

void dt_returns_fini(dt_returns *x)
{
    dt_moments_fini(&x->moments);
    dt_free(x->scratch);
    dt_free(x->running);
}

void dt_returns_normalise_rewards(dt_returns *x, const dt_rollout_desc *d, dt_buffer *b)
{
    const size_t places = (size_t)b->d.instances * b->l->spec.n_agents, n = places * b->d.steps;
    const size_t first = dt_buffer_slot(b, 0, 0) * b->l->spec.n_agents;
    float *reward = b->reward + first, *sum = b->advantage + first; /* not needed yet */
    const uint8_t *flag = b->flag + first;
    for (size_t i = 0; i < n; i++) {
        double *running = &x->running[i % places];
        *running = (flag[i] & DT_STEP_ACTED) != 0 ? *running * d->gamma + (double)reward[i] : 0;
        sum[i] = (float)*running;
        *running = (flag[i] & (DT_STEP_TERMINATED | DT_STEP_TRUNCATED)) != 0 ? 0 : *running;
    }
    dt_moments_add(&x->moments, sum, flag, n);
    dt_moments_apply(&x->moments);
    const float clip = d->clip_reward > 0 ? (float)d->clip_reward : INFINITY;
    for (size_t i = 0; i < n; i++) {
        const float scaled = reward[i] * x->moments.scale[0];
        reward[i] = scaled < -clip ? -clip : scaled > clip ? clip : scaled;
    }
}

void dt_returns_estimate(dt_returns *x, const dt_rollout_desc *d, dt_buffer *b)
{
    DT_TRACE("rollout", "advantages");
    const size_t first = dt_buffer_slot(b, 0, 0) * b->l->spec.n_agents;
    const size_t places = (size_t)b->d.instances * b->l->spec.n_agents, n = places * b->d.steps;
    double reward_scale = 0;
    if (b->cost_in != NULL) {
        for (uint32_t k = 0; k < b->l->spec.n_costs; k++) { /* before costs are centred */
            const size_t plane = k * b->n_places + first;
            dt_compute_steps_to_cost(b->cost + plane, b->flag + first, b->d.steps, places, b->cost_in + plane);
        }
    }
    for (uint32_t k = 0; k <= b->l->spec.n_costs; k++) { /* the reward, then the costs */
        const size_t plane = k > 0 ? (k - 1) * b->n_places + first : first;
        const dt_gae g = {.reward = (k > 0 ? b->cost : b->reward) + plane,
                          .value = (k > 0 ? b->cost_value : b->value) + plane,
                          .flag = b->flag + first,
                          .gamma = k > 0 ? d->cost_gamma : d->gamma,
                          .lambda = k > 0 ? d->cost_lambda : d->lambda,
                          .steps = b->d.steps,
                          .places = places};
        float *advantage = (k > 0 ? b->cost_advantage : b->advantage) + plane;
        float *target = (k > 0 ? b->cost_target : b->target) + plane;
        if (d->centre) {
            dt_gae_centre(g.flag, n, (k > 0 ? b->cost : b->reward) + plane);
        }
        dt_gae_estimate(&g, x->scratch, advantage);
        for (size_t i = 0; i < n; i++) {
            target[i] = advantage[i] + g.value[i];
        }
        double mean = 0;
        x->deviation[k] = dt_gae_compute_deviation(g.flag, n, advantage, &mean);
        if (d->normalise_advantage != DT_NORMALISE_NONE) {
            const bool is_alike = k > 0 && d->normalise_advantage == DT_NORMALISE_BY_REWARD;
            const double given = d->normalise_advantage == DT_NORMALISE_MEAN ? 1 : is_alike ? reward_scale : 0;
            const double used = dt_gae_normalise(g.flag, n, given, advantage);
            reward_scale = k > 0 ? reward_scale : used;
        }
    }
}

typedef struct following { /* of the agent at a place, in the step after: its return, its value */
    double y, value;
} following;

/* y_t = r_t + gamma ((1 - lambda) V_{t+1} + lambda y_{t+1})   (Sutton and Barto 2018, eq. 12.20) */
void dt_returns_estimate_from_values(dt_returns *x, const dt_buffer *b, const float *value, const float *next_value,
                                     double gamma, double lambda, float *out, uint64_t n_rows)
{
    DT_TRACE("rollout", "returns");
    const size_t A = b->l->spec.n_agents, places = (size_t)b->d.instances * A;
    const size_t first = dt_buffer_slot(b, 0, 0) * A, last = first + b->d.steps * places;
    following *const of = (void *)x->scratch; /* [places], two numbers each */
    uint64_t row = n_rows;
    for (size_t at = last; at-- > first;) {
        if ((b->row[at] & DT_ROW_ACTS) == 0) {
            continue;
        }
        row--;
        following *next = &of[(at - first) % places];
        const bool is_open = b->flag[at] == DT_STEP_ACTED && at + places < last;
        const double after = is_open ? (1 - lambda) * next->value + lambda * next->y
                             : (b->flag[at] & DT_STEP_TERMINATED) != 0 || next_value == NULL ? 0
                                                                                             : (double)next_value[row];
        *next = (following){.y = (double)b->reward[at] + gamma * after, .value = (double)value[row]};
        out[row] = (float)next->y;
    }
}
