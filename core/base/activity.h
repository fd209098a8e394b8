/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run is doing inside an iteration, for the progress line: collecting a round of an environment can take
 * minutes. One thread reports, that of rank 0 that runs the phase; calls from all other threads (virtual ranks,
 * collection in parallel with learning) do nothing. Threads: any may read.
 */
#ifndef DTRAIN_CORE_BASE_ACTIVITY_H
#define DTRAIN_CORE_BASE_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dt_activity_kind {
    DT_ACTIVITY_NONE = 0,
    DT_ACTIVITY_COLLECT,  /* steps of every instance in this round */
    DT_ACTIVITY_LEARN,    /* passes over the round */
    DT_ACTIVITY_EVALUATE, /* episodes; total 0: data, without a count */
    DT_ACTIVITY_SAVE      /* a checkpoint */
} dt_activity_kind;

typedef struct dt_activity {
    dt_activity_kind kind;
    uint32_t done, total; /* total 0: unknown */
} dt_activity;

void dt_activity_set_reporter(bool is_here); /* of the calling thread */
/* done and total are capped at 2^28 - 1. */
void dt_activity_set(dt_activity_kind kind, uint64_t done, uint64_t total);
dt_activity dt_activity_get(void);

#endif
