/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials as parallel coordinates (Inselberg 1985): an axis for each parameter in the scale it was drawn from, for the
 * steps where they differ, and for the metric; a line for each trial, coloured by its rank. A trial without a value
 * ends at a place of its own below the metric's axis. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_STUDY_SWEEP_COORDINATES_H
#define DTRAIN_CORE_STUDY_SWEEP_COORDINATES_H

#include "study/sweep_results.h"

enum { DT_COORDINATES_COLORS = 5 };

/* Colour of a trial, 0: the best fifth of those with a value. */
uint32_t dt_coordinates_color(const dt_sweep_results *r, uint32_t row);
dt_status dt_coordinates_write(const dt_sweep_results *r, dt_str *out) DT_NODISCARD;

#endif
