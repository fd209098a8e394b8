/* SPDX-License-Identifier: Apache-2.0
 *
 * Log file with rotation: before a line would exceed its size, FILE becomes FILE.1, FILE.1 becomes FILE.2 and so on,
 * and the oldest beyond `keep` is removed. Lines are never split; lines lost to a full disk are counted, and the count
 * is written once there is space. An existing file is continued.
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
    uint32_t keep;      /* older files; 0: a full file is truncated */
} dt_logfile_opts;

/* Opens for appending; creates it. Errors: DT_EIO, DT_ENOMEM. */
dt_status dt_logfile_open(const char *path, const dt_logfile_opts *o, dt_logfile **out_p) DT_NODISCARD;
void dt_logfile_close(dt_logfile *f);
/* From now on crash reports (crash.h) go to this file, also after a rotation: one file per process. */
void dt_logfile_log_crashes(dt_logfile *f);
/* Did another program remove, replace or truncate it, so that it was created again? */
bool dt_logfile_is_recreated(const dt_logfile *f);
/* One line after the time, written at once. If rotation fails, the file is continued: a log never ends a run. f may be
 * NULL. */
void dt_logfile_write_line(dt_logfile *f, const char *line);

#endif
