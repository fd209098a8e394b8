/* SPDX-License-Identifier: Apache-2.0
 *
 * What a person sees while training: one live line on a terminal, redrawn at most ten times a second; plain lines every
 * few seconds otherwise. NO_COLOR turns colour off. Goes to standard error, results never do. Threads: [main] of rank
 * 0.
 */
#ifndef DTRAIN_CORE_METRICS_PROGRESS_H
#define DTRAIN_CORE_METRICS_PROGRESS_H

#include "dtrain/status.h"
#include <stdbool.h>

typedef struct dt_progress_view {
    const char *phase;
    uint64_t step, steps, epoch, epochs;
    double samples_per_s, left_s; /* left_s < 0: unknown */
    double loss, grad_norm, learning_rate;
    double data_wait; /* share of the step, 0..1 */
    uint64_t rss_bytes;
    double loss_scale; /* told when it is not 1 */
} dt_progress_view;

typedef struct dt_screen dt_screen;

dt_status dt_screen_open(bool quiet, dt_screen **out_p) DT_NODISCARD;
void dt_screen_close(dt_screen *s);
void dt_screen_show(dt_screen *s, const dt_progress_view *v, bool force); /* force: even if one was shown just now */
/* Anything else that takes its time, in a line of its own; left_s < 0: unknown. */
void dt_screen_say(dt_screen *s, const char *text, double left_s);
void dt_screen_end(dt_screen *s); /* leaves the live line for good */
bool dt_screen_is_live(const dt_screen *s);

#endif
