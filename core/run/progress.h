/* SPDX-License-Identifier: Apache-2.0
 *
 * Does a phase advance? What has to move sooner or later: its step, epoch or iterations, its trainer, or the steps of
 * its environments. Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_RUN_PROGRESS_H
#define DTRAIN_CORE_RUN_PROGRESS_H

#include "plugin/service/stage.h"

/* Calls of iterate in a row without progress that a run accepts (plugin.h reports it). */
enum { DT_PROGRESS_MOST_IDLE = 1000 };

typedef struct dt_progress_mark {
    uint64_t step, epoch, iterations, trained, moved, env_steps;
} dt_progress_mark;

void dt_progress_mark_capture(dt_progress_mark *m, const dt_stage *s, const dt_progress *p);
bool dt_progress_mark_differs(const dt_progress_mark *m, const dt_stage *s, const dt_progress *p);
/* After a call of iterate: *idle_p counts calls in a row that left *m as it was. Errors: DT_EPLUGIN after the last that
 * is accepted. */
dt_status dt_progress_check(dt_progress_mark *m, uint32_t *idle_p, const dt_stage *s, const dt_progress *p)
    DT_NODISCARD;

#endif
