/* SPDX-License-Identifier: Apache-2.0
 *
 * A log file that does not grow for ever: once a line would take it beyond its size, FILE becomes FILE.1, FILE.1
 * becomes FILE.2 and so on, and the oldest beyond `keep` goes. Lines are never split; what a full disk refuses is
 * counted, and the count written once there is room. What is there is gone on with.
 * Never calls dt_log, which calls it. Threads: one at a time (the log's lock).
 */
#ifndef DTRAIN_CORE_BASE_LOGFILE_H
#define DTRAIN_CORE_BASE_LOGFILE_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_logfile dt_logfile;

typedef struct dt_logfile_opts {
    uint64_t max_bytes; /* 0: no limit */
    uint32_t keep;      /* older files beside the one that is written; 0: what is full begins anew */
} dt_logfile_opts;

/* Opens for appending; creates it. Errors: DT_EIO, DT_ENOMEM. */
dt_status dt_logfile_open(const char *path, const dt_logfile_opts *o, dt_logfile **out_p) DT_NODISCARD;
void dt_logfile_close(dt_logfile *f);
/* From now on this file, whichever it is after a turn, also hears of a crash (crash.h): one of the process. */
void dt_logfile_hears_crash(dt_logfile *f);
/* Did another program remove, replace or cut it? It was created again, and says so. */
bool dt_logfile_was_lost(const dt_logfile *f);
/* One line behind the time, at once on disk. A file that cannot be turned over is gone on with: a log never ends a
 * run. f may be NULL. */
void dt_logfile_line(dt_logfile *f, const char *line);

#endif
