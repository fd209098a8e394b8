/* SPDX-License-Identifier: Apache-2.0
 *
 * Loss scaling: one state machine for every device. The derivative starts from loss * scale, so that small gradients
 * stay above what half precision can hold; the gradient is divided by scale once, after the reduction, in front of
 * norm, clipping and update. A step whose gradient or loss is not finite is skipped: parameters, moments, the update
 * count and with it the schedule stay as they are.
 *
 *   overflow   good = 0; tolerance - 1; at 0 or below: scale = max(scale * backoff, min)
 *   good step  good + 1; at interval: scale = min(scale * growth, max), good = 0, tolerance = hysteresis
 *
 * What refills the tolerance besides growth is the reading of hysteresis:
 *   consecutive   any good step (NVIDIA Apex, update_scale_hysteresis)
 *   until_growth  nothing (Megatron-LM, DynamicGradScaler)
 * With hysteresis 1 both are PyTorch's GradScaler. Scale and factors are powers of two, so dividing by them loses no
 * bit outside the subnormal range, and a run with a scale it never had to lower ends in the same bits as one without.
 *
 * Whether a step overflowed is read from the sum over all leaves of all ranks, which the communicator gives to every
 * rank: what one leaf cannot hold, no rank sees as finite. So all decide alike without asking. Threads: one owner.
 */
#ifndef DTRAIN_CORE_ENGINE_AMP_SCALER_H
#define DTRAIN_CORE_ENGINE_AMP_SCALER_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

typedef enum dt_scaling { DT_SCALING_NONE, DT_SCALING_STATIC, DT_SCALING_DYNAMIC } dt_scaling;

typedef struct dt_scaler_config { /* checked by config/schema.h */
    dt_scaling kind;
    bool refill;                  /* hysteresis: consecutive */
    double initial, min, max;     /* powers of two; initial is the scale of DT_SCALING_STATIC */
    double growth, backoff;       /* powers of two, above and below 1 */
    int64_t interval, hysteresis; /* good steps in a row; overflows, from 1 */
    uint64_t max_skips;           /* skipped steps in a row that end the run */
} dt_scaler_config;

typedef struct dt_scaler { /* all of it goes into checkpoints */
    double scale;
    int64_t good, tolerance;
    uint64_t skips;     /* in a row */
    uint64_t overflows; /* since the phase began */
} dt_scaler;

void dt_scaler_init(dt_scaler *s, const dt_scaler_config *c);
/* After each step; without scaling the scale stays 1. */
void dt_scaler_update(dt_scaler *s, const dt_scaler_config *c, bool is_finite);
/* Is it time to give up? Without scaling the first step that is not finite ends the run. */
bool dt_scaler_has_failed(const dt_scaler *s, const dt_scaler_config *c);

/* Watches mixed precision: over windows of DT_AMP_WINDOW steps it compares the loss scale, the share of skipped steps
 * and the gradient norm with what is normal, and warns once when one of them leaves its range (again after it has
 * been back). It changes nothing. Threads: one owner.
 *
 *   loss scale     1024 .. 16777216, with dynamic scaling
 *   overflow rate  below 1 %, with scaling
 *   gradient norm  0.1 .. 10, mean over the window's steps that were not skipped, before clipping */
enum { DT_AMP_WINDOW = 200 };

typedef struct dt_amp_monitor {
    uint32_t steps, skipped; /* in this window */
    double norm_sum;
    double overflow_rate; /* of the last full window; of this one before there is one */
    uint32_t out;         /* bits: what was out of its range in the last full window */
    bool has_window;
} dt_amp_monitor;

/* One step. Writes a warning (one sentence for each thing that is new) and returns true, or returns false. */
bool dt_amp_monitor_step(dt_amp_monitor *m, const dt_scaler_config *c, double scale, bool is_finite, double norm,
                         char *text, size_t bytes);

#endif
