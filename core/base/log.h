/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines: level, rank and phase prefix, to standard error and, once a run directory exists, to train.log
 * (warnings and errors also to error.log). Results never come through here. Threads: any (one lock).
 */
#ifndef DTRAIN_CORE_BASE_LOG_H
#define DTRAIN_CORE_BASE_LOG_H

#include "dtrain/status.h"
#include <stdbool.h>

enum { DT_LOG_ERROR = 0, DT_LOG_WARN = 1, DT_LOG_INFO = 2, DT_LOG_DEBUG = 3 };

void dt_log(int level, const char *fmt, ...) DT_PRINTF(2, 3);
/* Text of several lines, each a line of the log: one error after the other, what was skipped. */
void dt_log_lines(int level, const char *text);
void dt_log_level_set(int level);                   /* what reaches standard error; files always get INFO and below */
int dt_log_level_parse(const char *name);           /* "error" "warn" "info" "debug"; -1 when unknown */
void dt_log_mute(bool is_mute);                     /* per thread: trials log nothing */
void dt_log_prefix_set(const char *rank_and_phase); /* per thread; "" clears; copied */

/* Where lines go besides standard error. Called under the lock; NULL stops it. */
typedef void dt_log_sink(void *user, int level, const char *line);
void dt_log_sink_set(dt_log_sink *sink, void *user);

/* The live progress line must be wiped before a log line and redrawn after it; both NULL when there is none. */
void dt_log_screen_set(void (*wipe)(void *user), void (*redraw)(void *user), void *user);
void dt_log_screen_redraw(void); /* now, and not in the middle of a log line */

#endif
