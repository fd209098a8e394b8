/* SPDX-License-Identifier: Apache-2.0
 *
 * State of the process that belongs to the program, and that a plugin must leave as it is: signal handlers, the working
 * folder, the locale, the floating-point environment, limits of resources, the environment variables, the file mode
 * mask, timers, and what is written to standard output. For `dtrain check`. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_TRIAL_PROCESS_STATE_H
#define DTRAIN_CORE_PLUGIN_TRIAL_PROCESS_STATE_H

#include "base/fp_mode.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

enum { DT_PROCESS_SIGNALS = 65, DT_PROCESS_LIMITS = 16 };

typedef struct dt_process_state {
    struct sigaction action[DT_PROCESS_SIGNALS];
    sigset_t blocked;
    struct rlimit limit[DT_PROCESS_LIMITS];
    struct itimerval timer;
    char locale[128];
    uint64_t folder[2], environment; /* device and inode; hash */
    mode_t mask;
    dt_fp_mode fp;
    uint64_t n_fp_changes; /* that the program set back after a call */
    int64_t written;       /* bytes in the file of dt_process_state_divert */
} dt_process_state;

/* Standard output of this process becomes an empty file in memory, so that what is written there can be seen. */
void dt_process_state_divert(void);
void dt_process_state_capture(dt_process_state *s);
/* The first thing that differs now, as a sentence with its remedy in out [bytes]; false, and out untouched, if nothing
 * does. */
bool dt_process_state_differs(const dt_process_state *before, char *out, size_t bytes);

#endif
