/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored data in addition to a round's experience: recorded scenes (data.store) in its minibatches, which train models
 * without a policy gradient.
 *
 *   world model   losses and metrics of phase 1 (phases/scenes) with the whole horizon; their weight is small, as the
 *                 barrier's is, so that gradient_clip sees the policy. Without foresight it requires perception
 *   barrier       if the shield observes vehicles ahead and in adjacent lanes, and recordings have one of the unsafe
 *   costs:
 *                 barrier.h
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_PHASE3_STORED_H
#define DTRAIN_PHASES_PHASE3_STORED_H

#include "scenes/evaluation.h"
#include "barrier.h"
#include "ppo/ppo.h"

typedef struct stored_config {
    int64_t samples; /* of a round; 0: none */
    double coef;
    double ttc_s, hard_mps2; /* hazards of recorded vehicles */
    uint8_t barrier;         /* train it, too */
} stored_config;

typedef struct stored {
    bool is_on;
    prediction prediction; /* world NULL: none to train */
    evaluation evaluation;
    dt_data *mixed; /* what is mixed into a round; NULL: nothing */
    dt_data *held;  /* the split for evaluation; NULL: nothing to evaluate */
    uint64_t n;     /* samples of a round */
} stored;

/* Errors: DT_ECONFIG. wiring: whose windows foresight has. */
dt_status stored_check(const dt_host *h, const char *phase, const stored_config *c, const dt_wiring_config *wiring);
/* After the wiring and before the rounds: binds data and world model, and sets b->has_stored. Errors: those of bind;
 * DT_ECONFIG: no model can be trained on the data. */
dt_status stored_create(stored *s, const stored_config *c, const dt_wiring_config *wiring, const ppo *l, barrier *b);
/* The world model's losses. */
dt_status stored_record(const stored *s, dt_graph *g);
dt_status stored_start(stored *s, const ppo *l);
/* Reports what phase 1 reports. */
dt_status stored_evaluate(stored *s, const ppo *l);
void stored_fini(stored *s);

#endif
