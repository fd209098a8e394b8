/* SPDX-License-Identifier: Apache-2.0
 *
 * The learned barrier h of a shield, trained on the policy's own experience (Qin et al. 2021, arXiv 2101.05436; Dawson
 * et al. 2022, arXiv 2202.11762). A row is
 *
 *   unsafe      one of the unsafe costs occurs in this step or one of the next unsafe_steps
 *   safe        none of them occurs in this step or one of the next safe_steps, and these are known
 *   unlabelled  otherwise
 *
 * and the loss, each sum divided by its number of rows, so that rare unsafe rows count,
 *
 *   sum over safe    relu(m - h)
 *   sum over unsafe  relu(m + h)
 *   sum over safe with a next row  relu((1 - alpha) h - h' + m / 10)
 *
 * the last being the discrete barrier condition h' >= (1 - alpha) h (Agrawal & Sreenath 2017) of h clamped to [-m, m]:
 * a barrier need not grow beyond its margin. Gradients flow through h and h'. Rows are transitions of the rollout
 * (svc/rollout.h); rows of recorded vehicles with pairs and hazards (traffic/ports.h) add the same loss if any of them
 * is safe, as a barrier trained on unsafe rows alone would reject everything. Each round is evaluated before it is
 * trained on.
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_PHASE3_BARRIER_H
#define DTRAIN_PHASES_PHASE3_BARRIER_H

#include "ppo/ppo.h"

typedef struct barrier_config {
    double alpha, margin, coef;
    int64_t unsafe_steps, safe_steps;
} barrier_config;

typedef struct barrier {
    barrier_config config;
    uint8_t marks[DT_ENV_MAX_COSTS]; /* 1: unsafe cost */
    bool is_on;                      /* the shield has a barrier, and it is trained */
    bool has_stored;                 /* trained on stored data, too */
    bool has_warned;                 /* that stored data has no safe rows */
} barrier;

/* Adds barrier_loss, with step input barrier_mix. */
dt_status barrier_record(const barrier *b, dt_wiring *w, dt_graph *g, const dt_policy_tensors *p);
/* Adds stored_barrier_loss, with step input stored_barrier_mix; inputs are those of stored data with pairs. */
dt_status barrier_record_stored(const barrier *b, const dt_wiring *w, dt_graph *g);
/* Before any round: weights of 0. */
dt_status barrier_start(const barrier *b, const ppo *l);
/* After a round was collected: reports its barrier/... and barrier/stored_..., and sets the weights of its losses. */
dt_status barrier_after_collect(barrier *b, const ppo *l);

#endif
