/* SPDX-License-Identifier: Apache-2.0
 *
 * Generalised advantage estimation (Schulman et al. 2016, eq. 16) over the rows of a rollout.
 *
 * The "next step" convention: row t + 1 of a place whose agent was ended by step t holds that agent's true last
 * observation, and value[t + 1] is the value of it; no agent acts there. A truncated agent bootstraps from that value,
 * a terminated one from 0; neither lets the sum run on into the agent that takes the place later.
 * Threads: [any].
 */
#ifndef DTRAIN_CORE_RL_BUFFER_GAE_H
#define DTRAIN_CORE_RL_BUFFER_GAE_H

#include <stddef.h>
#include <stdint.h>

/* What happened to a place in one step. */
enum { DT_STEP_ACTED = 1u, DT_STEP_TERMINATED = 2u, DT_STEP_TRUNCATED = 4u };

typedef struct dt_gae {
    const float *reward; /* [steps, places] */
    const float *value;  /* [steps + 1, places] */
    const uint8_t *flag; /* [steps, places] DT_STEP_* */
    double gamma, lambda;
    size_t steps, places;
} dt_gae;

/* advantage: [steps, places], written whole, 0 where no agent acted; carry: [places] of scratch.
 *   delta_t = r_t + gamma V_{t+1} (not terminated) - V_t,   A_t = delta_t + gamma lambda A_{t+1} (not ended) */
void dt_gae_estimate(const dt_gae *g, double *carry, float *advantage);

/* Mean and deviation over the rows where an agent acted; one row: deviation 0. */
double dt_gae_compute_deviation(const uint8_t *flag, size_t n, const float *advantage, double *mean_p);

/* To mean 0 and deviation 1 over the rows where an agent acted; one row or equal rows: to 0. given > 0: the factor
 * instead of 1 / deviation. Hands back the factor. */
double dt_gae_normalise(const uint8_t *flag, size_t n, double given, float *advantage);

/* Less their mean over the rows where an agent acted. */
void dt_gae_centre(const uint8_t *flag, size_t n, float *reward);

/* 1 - var(target - value) / var(target) over the rows where an agent acted; NAN when targets do not vary. */
double dt_gae_explained_variance(const uint8_t *flag, size_t n, const float *target, const float *value);

#endif
