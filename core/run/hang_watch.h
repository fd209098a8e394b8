/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that notices callbacks of plugins that never return, on any rank of this process. It reports the rank and
 * the callback after half of comm.timeout_s without any progress in the process, and then ends the process where a
 * signal or --max-time asks it to stop. Where another rank has ended by a failure, as one that timed out, it ends the
 * process after 10 s. A thread cannot be ended from outside, so the process ends without cleaning up; what was saved
 * remains.
 * Threads: [main] begins and ends it.
 */
#ifndef DTRAIN_CORE_RUN_HANG_WATCH_H
#define DTRAIN_CORE_RUN_HANG_WATCH_H

#include "base/call_watch.h"
#include "dtrain/status.h"

#include <stdint.h>

typedef struct dt_hang_rank {
    dt_call_slot calls;
    atomic_int failed; /* exit code of the failure that it has ended by; 0: it has not */
    uint32_t number;
} dt_hang_rank;

typedef struct dt_hang_watch dt_hang_watch;

typedef struct dt_hang_desc {
    dt_hang_rank *rank; /* [n], of this process */
    uint32_t n;
    bool is_one_of_many;             /* the messages name ranks */
    double timeout_s;                /* comm.timeout_s */
    bool (*is_stopping)(void *user); /* a signal came, or time is over */
    /* Records how the run ends, by a failure with this code or because it is stopping (0). Returns the exit code of the
     * process. */
    int (*end)(void *user, int failed);
    void *user;
} dt_hang_desc;

/* *out_p NULL: no thread could be started, and nothing is watched. Errors: DT_ENOMEM. */
dt_status dt_hang_watch_begin(const dt_hang_desc *d, dt_hang_watch **out_p) DT_NODISCARD;
void dt_hang_watch_end(dt_hang_watch *w); /* NULL is fine */

#endif
