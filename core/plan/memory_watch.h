/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of the host's memory is in use, looked at now and then between iterations: above one level a warning, above
 * a second one memory is released, a piece at every look: what the C library keeps of freed blocks, batches read
 * ahead, then half of the shards computed at once, and again. No result changes. Allocates nothing.
 *
 * Of what: memory.target_gb, and then what this process and its processes of environments hold; else the machine or its
 * control group, whichever has less, and then what is in use there and cannot be reclaimed. Threads: [main], one watch
 * per rank.
 */
#ifndef DTRAIN_CORE_PLAN_MEMORY_WATCH_H
#define DTRAIN_CORE_PLAN_MEMORY_WATCH_H

#include "config/schema.h"
#include "train/trainer.h"

typedef struct dt_memory_watch {
    dt_memory_opts o;
    const char *root; /* "" or where proc and sys are, for tests */
    bool may_log;     /* one rank of all */
    double next_s;
    uint64_t used, limit;  /* at the last look, bytes; 0: unknown */
    uint64_t own, workers; /* of this process, and of processes of environments */
    uint32_t n_workers;
    bool has_warned, is_trimmed, is_exhausted;
} dt_memory_watch;

void dt_memory_watch_init(dt_memory_watch *w, const dt_memory_opts *o, bool may_log);
/* Looks, at most every o.watch_s, and releases what is due. trainer: of a phase between two of its iterations. */
void dt_memory_watch_update(dt_memory_watch *w, double now_s, dt_trainer *trainer);

#endif
