/* SPDX-License-Identifier: Apache-2.0
 *
 * What computes the steps of a trainer: the CPU (cpu.c) or a device (device/). Everything that does not depend on it is
 * done once for both: batches, the order of shards, groups, sums over ranks, schedules and reports (step.c, reduce.c,
 * groups.c, update.c). Threads: [main].
 */
#ifndef DTRAIN_CORE_TRAIN_BACKEND_H
#define DTRAIN_CORE_TRAIN_BACKEND_H

#include "train/trainer.h"

typedef struct dt_train_backend {
    bool is_fed_ahead; /* of steps: each rank reads whichever samples of a live source come */
    bool can_shrink;   /* gives memory back by computing fewer shards at a time */

    /* Does it support the trainer's configuration and samples? Errors: DT_EUNSUPPORTED with a remedy. */
    dt_status (*check)(const dt_trainer *t);
    /* Memory, the graph of steps and its plan. */
    dt_status (*create)(dt_trainer *t);
    void (*destroy)(dt_trainer *t); /* after a create that failed, too */

    /* A step, in this order. t->scratch has the batch, t->state.step counts the steps before.
     * begin: [collective] what has to be there before shards run; fails on all ranks or on none. */
    dt_status (*begin)(dt_trainer *t);
    /* Forward and backward of this rank's shards, summed over them. May return before they are done. */
    dt_status (*run_shards)(dt_trainer *t);
    /* [collective] The sum over ranks. mine: how run_shards went; the worst of all ranks comes back on all of them. */
    dt_status (*reduce)(dt_trainer *t, dt_status mine);
    /* [collective] Norm, decision, optimizer, parameters of all ranks, target networks. */
    dt_status (*update)(dt_trainer *t, dt_step_report *out);
    /* Losses, norms and rates of the last step whose result is there. t->state.step counts this step, too. */
    dt_status (*read_result)(dt_trainer *t, dt_step_report *out);

    /* The host's arenas get the state; invalidate: they were changed, and the next step reads them. */
    dt_status (*synchronize)(dt_trainer *t);
    void (*invalidate)(dt_trainer *t);

    const dt_samples *(*feed_source)(const dt_trainer *t); /* what shards are read from, with its capacities */
    uint32_t (*feed_slots)(const dt_trainer *t);           /* shards of input in memory at a time */
    uint32_t (*concurrent_shards)(const dt_trainer *t);    /* computed at a time */
    void (*memory_get)(const dt_trainer *t, dt_trainer_memory *out);
    uint64_t (*reduction_bytes)(const dt_trainer *t); /* moved by sums of gradients of a step; 0: not known */
} dt_train_backend;

extern const dt_train_backend dt_cpu_backend, dt_device_backend;

#endif
