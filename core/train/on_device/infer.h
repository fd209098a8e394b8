/* SPDX-License-Identifier: Apache-2.0
 *
 * Inference on a device: a few slices of a data set per launch, each a leaf, at the capacity of a slice; outputs come
 * back packed at their live sizes, as the CPU would have left them. Threads: [main].
 */
#ifndef DTRAIN_CORE_TRAIN_ON_DEVICE_INFER_H
#define DTRAIN_CORE_TRAIN_ON_DEVICE_INFER_H

#include "train/on_device/internal.h"

enum { DT_DEVICE_INFER_SLICES = 8 };

typedef struct dt_device_infer dt_device_infer;

/* graph: recorded for source; both outlive it. slices: of one launch. outputs_only, pictures: see plan.h. */
dt_status dt_device_infer_create(dt_trainer *t, const dt_samples *source, const dt_graph *graph, uint32_t slices,
                                 bool outputs_only, bool pictures, dt_device_infer **out_p) DT_NODISCARD;
void dt_device_infer_destroy(dt_device_infer *x);
const dt_plan *dt_device_infer_plan(const dt_device_infer *x);
/* Slices that one run takes. */
uint32_t dt_device_infer_slices(const dt_device_infer *x);
/* Runs n slices; step_input as the plan wants them. */
dt_status dt_device_infer_run(dt_device_infer *x, const dt_feed_slice *slice, uint32_t n,
                              const float *const *step_input) DT_NODISCARD;
/* A named output of slice i of the last run, NULL when there is none. */
const dt_view *dt_device_infer_output(const dt_device_infer *x, uint32_t i, const char *name);
/* Its output number k, NULL when there are fewer. */
const dt_view *dt_device_infer_output_at(const dt_device_infer *x, uint32_t i, uint32_t k, const char **name_p);

#endif
