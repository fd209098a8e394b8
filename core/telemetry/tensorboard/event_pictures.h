/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of event files, as small PNGs: a matrix of parameters, scenes of predictions, frames of an episode.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_TELEMETRY_TENSORBOARD_EVENT_PICTURES_H
#define DTRAIN_CORE_TELEMETRY_TENSORBOARD_EVENT_PICTURES_H

#include "plugin/service/stage.h"
#include "telemetry/metrics/events.h"

/* weights/<name>: blue below zero, red above, white at it, as strong as the greatest; at most 256 pixels on a side,
 * each the mean of what it represents. */
dt_status dt_event_write_matrix(dt_events *e, uint64_t step, const dt_param *p, const float *value) DT_NODISCARD;
/* trajectories/<i> of svc/metrics.h, seen from above: grey the recorded past, green the recorded future, blue the
 * prediction, dotted constant velocity. */
dt_status dt_event_write_trajectories(dt_events *e, uint64_t step, const dt_result *picture, uint32_t n) DT_NODISCARD;
/* traffic/<i> of the same: frames of an episode, bodies from blue to red by their risk, marks by their state. */
dt_status dt_event_write_film(dt_events *e, uint64_t step, const dt_result *picture, uint32_t n) DT_NODISCARD;

#endif
