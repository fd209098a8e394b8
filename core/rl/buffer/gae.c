/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "rl/buffer/gae.h"

#include <math.h>
#include <string.h>

void dt_gae_estimate(const dt_gae *g, double *carry, float *advantage)
{
    memset(carry, 0, g->places * sizeof(*carry));
    for (size_t t = g->steps; t-- > 0;) {
        const float *r = g->reward + t * g->places;
        const float *v = g->value + t * g->places;
        const float *next = v + g->places;
        const uint8_t *flag = g->flag + t * g->places;
        float *out = advantage + t * g->places;
        for (size_t i = 0; i < g->places; i++) {
            const double acted = (flag[i] & DT_STEP_ACTED) != 0 ? 1 : 0;
            const double goes_on = (flag[i] & DT_STEP_TERMINATED) != 0 ? 0 : 1;
            const double same = (flag[i] & (DT_STEP_TERMINATED | DT_STEP_TRUNCATED)) != 0 ? 0 : 1;
            const double delta = r[i] + g->gamma * next[i] * goes_on - v[i];
            carry[i] = acted * (delta + g->gamma * g->lambda * same * carry[i]);
            out[i] = (float)carry[i];
        }
    }
}

double dt_gae_compute_deviation(const uint8_t *flag, size_t n, const float *advantage, double *mean_p)
{
    double rows = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double acted = flag[i] & DT_STEP_ACTED;
        rows += acted;
        sum += acted * advantage[i];
    }
    *mean_p = rows > 0 ? sum / rows : 0;
    for (size_t i = 0; i < n; i++) {
        const double d = advantage[i] - *mean_p;
        squares += (flag[i] & DT_STEP_ACTED) * d * d;
    }
    return rows > 1 ? sqrt(squares / (rows - 1)) : 0;
}

double dt_gae_normalise(const uint8_t *flag, size_t n, double given, float *advantage)
{
    static const double eps = 1e-8; /* as PPO's authors add to the deviation */
    double mean = 0;
    const double deviation = dt_gae_compute_deviation(flag, n, advantage, &mean);
    const double scale = given > 0 ? given : deviation > 0 ? 1 / (deviation + eps) : 0;
    for (size_t i = 0; i < n; i++) {
        advantage[i] = (float)((flag[i] & DT_STEP_ACTED) * scale * (advantage[i] - mean));
    }
    return scale;
}

void dt_gae_centre(const uint8_t *flag, size_t n, float *reward)
{
    double mean = 0;
    (void)dt_gae_compute_deviation(flag, n, reward, &mean);
    for (size_t i = 0; i < n; i++) {
        reward[i] = (flag[i] & DT_STEP_ACTED) != 0 ? (float)(reward[i] - mean) : 0;
    }
}

double dt_gae_explained_variance(const uint8_t *flag, size_t n, const float *target, const float *value)
{
    double rows = 0, sum = 0, left_sum = 0, squares = 0, left_squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double acted = flag[i] & DT_STEP_ACTED;
        rows += acted;
        sum += acted * target[i];
        left_sum += acted * ((double)target[i] - value[i]);
    }
    if (rows > 0) {
        for (size_t i = 0; i < n; i++) {
            const double acted = flag[i] & DT_STEP_ACTED;
            const double d = target[i] - sum / rows;
            const double left = ((double)target[i] - value[i]) - left_sum / rows;
            squares += acted * d * d;
            left_squares += acted * left * left;
        }
    }
    return squares > 0 ? 1 - left_squares / squares : NAN;
}
