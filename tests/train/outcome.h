/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run of the toy leaves behind, kept so that another run can be held against it bit by bit.
 */
#ifndef DTRAIN_TESTS_TRAIN_OUTCOME_H
#define DTRAIN_TESTS_TRAIN_OUTCOME_H

#include "toy.h"

enum { OUTCOME_STEPS = 12 }; /* at most */

typedef struct outcome {
    float *state[3]; /* parameters, moments (zeros where the optimizer has none) */
    size_t bytes;
    double loss[OUTCOME_STEPS], norm[OUTCOME_STEPS], rate[OUTCOME_STEPS], scale[OUTCOME_STEPS]; /* of each step */
    uint64_t updates, of_group[DT_TRAIN_MAX_GROUPS];
    uint32_t early; /* buckets that ranks began to sum while leaves ran, in the last step */
    dt_scaler scaler;
    uint64_t sent, announced; /* of ranks: bytes a step that the last one sent, and what its trainer says it does */
} outcome;

typedef void toy_change(toy *t);

/* Steps from (0: the first ones, what was there is forgotten) up to but without `to`; each must succeed. */
void outcome_run(toy *t, outcome *o, int from, int to);
void outcome_keep(toy *t, outcome *o);
void outcome_drop(outcome *o);
/* Puts a started toy where the one stood that half was kept from. */
void outcome_restore(toy *t, const outcome *half, int step);

void outcome_same_state(const outcome *a, const outcome *b);
void outcome_same_reports(const outcome *a, const outcome *b);
void outcome_same(const outcome *a, const outcome *b); /* both, and the loss scaler */

/* `steps` steps of a toy changed so; change may be NULL. */
void outcome_train(toy_change *change, int steps, outcome *o);
/* The same on n virtual ranks (at most 8), each with another number of threads, must come out as one did. */
void outcome_on_ranks(toy_change *change, int steps, uint32_t n, const outcome *one);
/* Steps of n virtual ranks from half, which was kept after `from` of them, NULL: the first ones; each rank has another
 * number of threads. out [n]. */
void outcome_of_ranks(toy_change *change, const outcome *half, int from, int to, uint32_t n, outcome *out);
/* The same stopped after cut steps and resumed by another number of threads. */
void outcome_resumed(toy_change *change, int steps, int cut, const outcome *whole);

#endif
