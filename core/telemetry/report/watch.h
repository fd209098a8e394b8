/* SPDX-License-Identifier: Apache-2.0
 *
 * A run on a terminal: its state, how far it is, and the numbers of its last phase with a curve of a few
 * blocks. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_WATCH_H
#define DTRAIN_CORE_TELEMETRY_REPORT_WATCH_H

#include "telemetry/report/logbook.h"

typedef struct dt_watch_opts {
    uint32_t columns, rows; /* of the terminal; rows 0: as many as there are numbers */
    bool color;
} dt_watch_opts;

/* The whole view, every line with its end, none wider than the terminal and no more of them than rows. What a run calls
 * its numbers is shown without control characters. */
void dt_watch_append_view(const dt_logbook *l, const dt_watch_opts *o, dt_str *out);
/* Seconds to the end of the phase by the pace of the last records, whatever ends it; NAN: not known. */
double dt_watch_left_s(const dt_logbook *l);

#endif
