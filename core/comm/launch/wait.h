/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits between attempts, in seconds: 1, doubled up to 60, and from 1 on again once a checkpoint was saved.
 * Threads: any.
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_WAIT_H
#define DTRAIN_CORE_COMM_LAUNCH_WAIT_H

#include <stdint.h>

typedef struct dt_launch_wait {
    double wait_s; /* the last one; 0: none */
    int64_t saved; /* the newest checkpoint's step then, -1: none */
} dt_launch_wait;

static inline double dt_launch_wait_next(dt_launch_wait *w, int64_t saved)
{
    const double first_s = 1, most_s = 60, twice = 2 * w->wait_s < most_s ? 2 * w->wait_s : most_s;
    w->wait_s = w->wait_s > 0 && saved <= w->saved ? twice : first_s;
    w->saved = saved;
    return w->wait_s;
}

#endif
