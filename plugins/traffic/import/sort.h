/* SPDX-License-Identifier: Apache-2.0
 *
 * External merge sort of table rows by (scene, frame, vehicle, line) in bounded memory: a buffer is filled, sorted and
 * spilled as a run into one nameless temporary file; at the end the runs are merged. Few rows never touch the disk.
 * Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_SORT_H
#define DTRAIN_PLUGINS_TRAFFIC_SORT_H

#include "dtrain/status.h"

/* One vehicle in one frame, as a table gives it, in SI units. Missing: NAN. */
typedef struct dt_table_row {
    int32_t scene, controlled;
    int64_t frame, id, line;
    double x, y, heading, speed, accel, length, width, stop_distance;
} dt_table_row;

typedef struct dt_sort dt_sort;

/* near_path: the temporary file is next to it. memory_bytes: of the buffer, at least one row is held. With jobs > 1 a
 * second thread sorts half of it; the order is the same. */
dt_status dt_sort_create(const char *near_path, size_t memory_bytes, uint32_t jobs, dt_sort **out_p) DT_NODISCARD;
dt_status dt_sort_add(dt_sort *s, const dt_table_row *row) DT_NODISCARD;     /* DT_EIO, DT_ENOMEM */
dt_status dt_sort_next(dt_sort *s, const dt_table_row **out_p) DT_NODISCARD; /* DT_DONE after the last; no add after */
int64_t dt_sort_runs(const dt_sort *s);                                      /* spilled */
void dt_sort_destroy(dt_sort *s);

#endif
