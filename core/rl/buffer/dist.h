/* SPDX-License-Identifier: Apache-2.0
 *
 * Actions: drawing them from what a policy computed, with the probability of what was drawn, and what of it may be
 * executed. Discrete heads are independent softmaxes over their allowed choices (multi-discrete); continuous ones are
 * independent Gaussians, or squashed ones: u is drawn, the middle of the bounds + half their width * tanh(u) is
 * executed, and the probability is that of tanh(u) (Haarnoja et al. 2018, appendix C). Random numbers are named by step
 * and row, so that nothing depends on the drawing thread or the time. Threads: [any].
 */
#ifndef DTRAIN_CORE_RL_BUFFER_DIST_H
#define DTRAIN_CORE_RL_BUFFER_DIST_H

#include "base/rng.h"

#include <stdbool.h>

typedef struct dt_dist {     /* an action space */
    const int32_t *choices;  /* [n_heads] */
    const float *low, *high; /* [n_continuous] bounds of the environment */
    uint32_t n_heads, n_continuous;
    bool is_squashed; /* bounds are finite */
} dt_dist;

typedef struct dt_dist_row { /* one agent; NULL where there is none */
    const float *logits;     /* [sum of choices] */
    const float *allow;      /* [sum of choices] > 0: a shield permits */
    const float *mean, *log_std;
    const float *low, *high; /* [n_continuous] what a shield permits */
    uint8_t *mask;           /* [sum of choices] in: what the environment allows; out: what was drawn from */
    int32_t *drawn_i;        /* out [n_heads] */
    float *drawn_f;          /* out [n_continuous], before any bounds; u of squashed ones */
    float *executed_f;       /* out [n_continuous], within them */
} dt_dist_row;

typedef struct dt_dist_result {
    float log_prob;     /* of everything drawn; NAN when the policy's numbers are not finite */
    bool is_changed;    /* a shield cut the choices or moved the action */
    bool is_infeasible; /* it permitted nothing of something */
} dt_dist_result;

/* sample: number of the row within the stream's step. greedy: the most likely action instead. */
dt_dist_result dt_dist_draw_action(const dt_dist *d, const dt_rng_stream *stream, uint64_t sample, bool greedy,
                                   const dt_dist_row *row);

#endif
