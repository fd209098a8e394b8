/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the report on predictions of vehicles (dtrain/ext/panels.h), from results and pictures that evaluations of
 * world models record. Threads: [main].
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_PANELS_PANELS_H
#define DTRAIN_PLUGINS_TRAFFIC_PANELS_PANELS_H

#include "base/str.h"
#include "dtrain/ext/panels.h"

extern const dt_panels_api dt_traffic_panels;

/* Each appends to out, or flushes it where the host draws. */
typedef dt_status dt_traffic_panel(const dt_panel_view *p, dt_str *out);
dt_traffic_panel dt_panel_horizon;      /* error of predictions by horizon, compared with constant velocity */
dt_traffic_panel dt_panel_futures;      /* calibration of their uncertainty, and the best of several */
dt_traffic_panel dt_panel_trajectories; /* predicted and recorded trajectories, from above */
dt_traffic_panel dt_panel_horizon_sentence;
/* What may mislead in the curve of the loss; out is empty where nothing does. */
void dt_panel_horizon_note(const dt_panel_view *p, char *out, size_t bytes);

/* Element i of the list `result` of the last evaluation, from 1; 0: it is no list. NAN: not evaluated. */
double dt_panel_list_value(const dt_panel_view *p, uint32_t run, const char *result, uint32_t i);
void dt_panel_flush(const dt_panel_view *p, dt_str *out);

#endif
