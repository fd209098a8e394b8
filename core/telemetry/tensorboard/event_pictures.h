/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of event files, as small PNGs: a matrix of parameters, scenes of predicted traffic, moments of an episode.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_TELEMETRY_TENSORBOARD_EVENT_PICTURES_H
#define DTRAIN_CORE_TELEMETRY_TENSORBOARD_EVENT_PICTURES_H

#include "plugin/service/stage.h"
#include "telemetry/metrics/events.h"

/* weights/<name>: blue below zero, red above, white at it, as strong as the greatest; at most 256 pixels on a side,
 * each the mean of what it stands for. */
dt_status dt_event_matrix(dt_events *e, uint64_t step, const dt_param *p, const float *value) DT_NODISCARD;
/* trajectories/<i> of svc/metrics.h, seen from above: grey where vehicles came from, green where they went, blue where
 * they were predicted to go, dotted at constant velocity. */
dt_status dt_event_trajectories(dt_events *e, uint64_t step, const dt_result *picture, uint32_t n) DT_NODISCARD;
/* traffic/<i> of the same: moments of an episode, vehicles from blue to red by their risk, signals as they are. */
dt_status dt_event_traffic(dt_events *e, uint64_t step, const dt_result *picture, uint32_t n) DT_NODISCARD;

#endif
