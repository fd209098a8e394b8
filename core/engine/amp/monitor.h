/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches mixed precision: over windows of DT_AMP_WINDOW steps it compares the loss scale, the share of skipped steps
 * and the gradient norm with what is normal, and warns once when one of them leaves its range (again after it has
 * been back). It changes nothing. Threads: one owner.
 *
 *   loss scale     1024 .. 16777216, with dynamic scaling
 *   overflow rate  below 1 %, with scaling
 *   gradient norm  0.1 .. 10, mean over the window's steps that were not skipped, before clipping
 */
#ifndef DTRAIN_CORE_ENGINE_AMP_MONITOR_H
#define DTRAIN_CORE_ENGINE_AMP_MONITOR_H

#include "engine/amp/scaler.h"

#include <stddef.h>

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
