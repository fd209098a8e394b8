/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress of a run on standard error: on a terminal one live line, which a thread of its own redraws every second,
 * also while a round of environments is being collected; elsewhere plain log lines, every 5 s where iterations are
 * short and every 30 s within a long one. NO_COLOR turns colour off. Results never go through here.
 * Threads: [main] of rank 0.
 */
#ifndef DTRAIN_CORE_TELEMETRY_METRICS_PROGRESS_H
#define DTRAIN_CORE_TELEMETRY_METRICS_PROGRESS_H

#include "base/activity.h"
#include "dtrain/status.h"

#include <stdbool.h>
#include <stddef.h>

/* NAN: a number that is not known yet; it is left out. */
typedef struct dt_progress_view {
    const char *phase;
    const char *unit;          /* of what the phase counts: "round" or "epoch" */
    uint64_t at, of;           /* of these: the one being worked on, from 1; of 0: no limit is known */
    uint64_t step, steps;      /* optimizer steps; steps 0: no limit is known */
    double rate;               /* of the last iterations, rate_unit per second */
    const char *rate_unit;     /* "samples" or "env steps" */
    double env_steps;          /* of all environments so far */
    double episode_return;     /* mean over the episodes that ended in the last round */
    double return_change;      /* trend: mean of the last rounds minus that of as many before */
    const char *headline_name; /* the environment's first metric; NULL: it has none */
    double headline, headline_change;
    double left_s; /* until the phase ends */
    double loss, grad_norm, learning_rate;
    double data_wait; /* share of the step, 0..1; NAN: no step was made */
    uint64_t rss_bytes;
    double loss_scale; /* shown when it is not 1 */
} dt_progress_view;

typedef struct dt_screen dt_screen;

/* The line of at most columns characters: parts that do not fit are left out whole, the least important first. */
void dt_progress_text(const dt_progress_view *v, const dt_activity *a, int columns, char *out, size_t bytes);

dt_status dt_screen_open(bool quiet, dt_screen **out_p) DT_NODISCARD;
void dt_screen_close(dt_screen *s);
/* A phase begins: the line is there from now on; v as for dt_screen_show. */
void dt_screen_begin(dt_screen *s, const dt_progress_view *v);
/* headline_name is copied, the other texts of v are constants. force: even if one was shown just now. */
void dt_screen_show(dt_screen *s, const dt_progress_view *v, bool force);
/* Anything else that takes its time, in a line of its own; left_s < 0: unknown. */
void dt_screen_show_activity(dt_screen *s, const char *text, double left_s);
void dt_screen_end(dt_screen *s); /* leaves the live line for good */

#endif
