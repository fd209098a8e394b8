/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of units.h for readers that hand whole frames to a store (JSON chunks, HDF5): positions, speeds, headings
 * and accelerations against each other, and what is unknown; reported as of tables (rows.h). Threads: one object, one
 * thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_MOTION_CHECK_H
#define DTRAIN_PLUGINS_TRAFFIC_MOTION_CHECK_H

#include "traffic/import/rows.h"
#include "traffic/store/tracker.h"

typedef struct dt_motion_check {
    dt_tracker live;
    dt_units units;
    double rate_hz;
    dt_rows_report report;
} dt_motion_check;

void dt_motion_check_init(dt_motion_check *m, double rate_hz);
void dt_motion_check_scene(dt_motion_check *m); /* another scene begins */
/* The vehicles of a frame, whose number rises within a scene. Errors: DT_ENOMEM. */
dt_status dt_motion_check_frame(dt_motion_check *m, int64_t frame, const dt_vehicle *v, uint32_t n) DT_NODISCARD;
/* After all frames: doubts as warnings that begin with the path, the rest to notes. Errors: DT_ENOMEM. */
dt_status dt_motion_check_report(dt_motion_check *m, const char *path, dt_str *notes) DT_NODISCARD;
void dt_motion_check_fini(dt_motion_check *m);

#endif
