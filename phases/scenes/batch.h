/* SPDX-License-Identifier: Apache-2.0
 *
 * A micro-batch of an evaluation: fields of the data and outputs of prediction_record, by name. Threads: [main].
 */
#ifndef DTRAIN_PHASES_SCENES_SLICE_H
#define DTRAIN_PHASES_SCENES_SLICE_H

#include "metrics.h"
#include "prediction.h"

typedef struct scene_batch {
    const float *motion, *target, *future, *spread, *risk; /* [T,S,6] [S,F,2] [S,F,2] [S,F,2] [N] */
    const float *futures, *spreads, *probability;          /* [S,K,F,2] [S,K,F,2] [S,K], or NULL */
    const int32_t *seq_row, *sample_of_seq;                /* [T,S] [S]; the second may be NULL */
    const int32_t *site;                                   /* [S], or NULL */
    const uint8_t *complete, *risk_state;                  /* [S] [N] */
    int64_t S, K;
} scene_batch;

/* Errors: DT_EPLUGIN names what is missing. */
dt_status batch_open(const prediction *p, const dt_train_api *train, const dt_rows *r, scene_batch *z);
/* Vehicle v. */
void batch_window(const prediction *p, const scene_batch *z, int64_t v, metrics_window *w);

#endif
