/* SPDX-License-Identifier: Apache-2.0
 *
 * The learned barrier h of a shield, trained on the policy's own experience (Qin et al. 2021, arXiv 2101.05436; Dawson
 * et al. 2022, arXiv 2202.11762). A row is
 *
 *   unsafe    where one of the costs that mark occurs in this step or one of the next unsafe_steps
 *   safe      where none of them occurs in this step or one of the next safe_steps, as far as is known
 *   neither   else
 *
 * and the loss, each sum divided by the rows it is over, so that rare unsafe ones count,
 *
 *   sum over safe    relu(m - h)
 *   sum over unsafe  relu(m + h)
 *   sum over safe with a next row  relu((1 - alpha) h - h' + m / 10)
 *
 * the last being the discrete barrier condition h' >= (1 - alpha) h (Agrawal & Sreenath 2017) of h clamped to [-m, m]:
 * beyond its margin a barrier says no more, and need not rise with every free metre. Gradients run through h and h'.
 * Rows come from svc/rollout.h, transitions, and from recorded vehicles, where stored data tells pairs and hazards
 * (traffic/ports.h): the same loss of their own rows, added, where any of them is safe: what knows danger alone would
 * call everything dangerous. Each round is measured before it is learnt from.
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
    uint8_t marks[DT_ENV_MAX_COSTS]; /* 1: this cost */
    bool is_on;                      /* there is one, and it learns */
    bool has_stored;                 /* stored data teaches it, too */
    bool has_warned;                 /* that it does not, for want of safe rows */
} barrier;

/* Adds barrier_loss, with step input barrier_mix. */
dt_status barrier_record(const barrier *b, dt_wiring *w, dt_graph *g, const dt_policy_tensors *p);
/* Adds stored_barrier_loss, with step input stored_barrier_mix; inputs are those of stored data with pairs. */
dt_status barrier_record_stored(const barrier *b, const dt_wiring *w, dt_graph *g);
/* Before any round: nothing is learnt. */
dt_status barrier_start(const barrier *b, const ppo *l);
/* After a round was collected: reports barrier/... of it, and barrier/stored_..., and sets the weights that it is
 * learnt with. */
dt_status barrier_after_collect(barrier *b, const ppo *l);

#endif
