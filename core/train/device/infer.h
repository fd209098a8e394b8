/* SPDX-License-Identifier: Apache-2.0
 *
 * Inference on a device: a few micro-batches of a data set per run, each a shard, at the capacity of a micro-batch;
 * outputs come back packed at their live sizes, as the CPU would have left them.
 *
 * A run has a place: page-locked inputs and outputs of its own. It is put there micro-batch by micro-batch, begun, and
 * ended; runs of other places may be under way in between. Inputs are copied on the copy stream while what was begun
 * before is computed; from then on a run is one launch of a graph, of which there is one per place and shape class: how
 * many micro-batches there is room for, a power of two. What a micro-batch comes out as does not depend on its class,
 * on its place, or on the micro-batches next to it. The host waits in end alone, for that place alone.
 * Threads: [main]; put [any], for a micro-batch each.
 */
#ifndef DTRAIN_CORE_TRAIN_DEVICE_INFER_H
#define DTRAIN_CORE_TRAIN_DEVICE_INFER_H

#include "train/device/internal.h"

enum { DT_DEVICE_INFER_MICRO_BATCHES = 8, DT_DEVICE_INFER_PLACES = 8 };

typedef struct dt_device_infer dt_device_infer;

typedef struct dt_device_infer_desc {
    const dt_samples *source;
    const dt_graph *graph;       /* recorded for source; both outlive it */
    uint32_t micro_batches;      /* of one run, at most */
    uint32_t places;             /* at most DT_DEVICE_INFER_PLACES */
    bool outputs_only, pictures; /* see plan.h */
    const char *const *outputs;  /* the same; read by create alone */
    bool is_joined;              /* an output of a run is one of all its micro-batches, row after row */
} dt_device_infer_desc;

dt_status dt_device_infer_create(dt_trainer *t, const dt_device_infer_desc *d, dt_device_infer **out_p) DT_NODISCARD;
void dt_device_infer_destroy(dt_device_infer *x);
const dt_plan *dt_device_infer_plan(const dt_device_infer *x);
/* Micro-batches that one run takes, and runs that may be under way. */
uint32_t dt_device_infer_max_micro_batches(const dt_device_infer *x);
uint32_t dt_device_infer_n_places(const dt_device_infer *x);

/* Where the fields of micro-batch i of n may be written, so that put copies nothing; field[n_fields], NULL where it
 * must. */
void dt_device_infer_input_buffers(dt_device_infer *x, uint32_t place, uint32_t i, uint32_t n, void **field);
/* Micro-batch i of n, for the run that is begun next; the place has none under way. */
dt_status dt_device_infer_write_input(dt_device_infer *x, uint32_t place, uint32_t i, uint32_t n,
                                      const dt_micro_batch *micro_batch) DT_NODISCARD;
/* Runs the n micro-batches that were put; step: of the trainer; step_input as the plan needs them. Returns while the
 * device is at it. */
dt_status dt_device_infer_start(dt_device_infer *x, uint32_t place, uint32_t n, uint64_t step,
                                const float *const *step_input) DT_NODISCARD;
/* Waits for the place's run; nothing when there is none. Its outputs stay until the next begin there. */
dt_status dt_device_infer_wait(dt_device_infer *x, uint32_t place) DT_NODISCARD;
/* Runs read the trainer's parameters; after hold, until let_go, the values that these have now, or that are set.
 * make_room before, once; get, set: between the host and what is held, waiting. */
dt_status dt_device_infer_allocate_frozen(dt_device_infer *x) DT_NODISCARD;
dt_status dt_device_infer_freeze_params(dt_device_infer *x) DT_NODISCARD;
void dt_device_infer_unfreeze_params(dt_device_infer *x);
dt_status dt_device_infer_frozen_get(const dt_device_infer *x, float *to) DT_NODISCARD;
dt_status dt_device_infer_frozen_set(dt_device_infer *x, const float *from) DT_NODISCARD;
/* A named output of micro-batch i (joined: 0) of the place's last run, NULL when there is none. */
const dt_view *dt_device_infer_output(const dt_device_infer *x, uint32_t place, uint32_t i, const char *name);
/* Its output number k, NULL when there are fewer. */
const dt_view *dt_device_infer_output_at(const dt_device_infer *x, uint32_t place, uint32_t i, uint32_t k,
                                         const char **name_p);

#endif
