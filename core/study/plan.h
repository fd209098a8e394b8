/* SPDX-License-Identifier: Apache-2.0
 *
 * How many trainings fit this machine simultaneously: by the plan of one of them (`--dry-run`), which also rejects what
 * a training would reject, before any begins. Threads: [main].
 */
#ifndef DTRAIN_CORE_STUDY_PLAN_H
#define DTRAIN_CORE_STUDY_PLAN_H

#include "study/words.h"

typedef struct dt_study_plan {
    uint64_t memory, device; /* bytes at most, of the phase that needs most; device 0: the CPU computes */
} dt_study_plan;

/* command: of `dtrain run`; "--dry-run" and "--json" are added. code_p: its exit code; other than 0: it printed
 * why, and * nothing is planned. Errors: DT_EIO, DT_EDATA, DT_ENOMEM. */
dt_status dt_study_plan_read(dt_words *command, dt_study_plan *out, int *code_p) DT_NODISCARD;
/* Of n trainings, on so many cores with so much free memory (bytes, 0: unknown): one on a GPU, as many as there are
 * cores and as fit in nine tenths of the memory on the CPU; at least 1. */
uint32_t dt_study_count_parallel(const dt_study_plan *p, uint32_t n, uint32_t cores, uint64_t memory);

#endif
