/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings and remarks that an environment logs in its own process, in the log of the host. Instances log the same
 * things: a line that a worker has logged is passed over afterwards, of all workers. A worker logs 64 lines at most.
 * Called by process.c. Threads: [any], one per dt_process_log.
 */
#ifndef DTRAIN_CORE_RL_ENV_PROCESS_LOG_H
#define DTRAIN_CORE_RL_ENV_PROCESS_LOG_H

#include <stddef.h>
#include <stdint.h>

enum { DT_PROCESS_LINE = 1024 };

typedef struct dt_process_log { /* zeros to begin with */
    char line[DT_PROCESS_LINE]; /* the one that has no end yet */
    size_t bytes;
    uint32_t n_logged; /* lines */
} dt_process_log;

/* n letters of what the worker wrote to its standard output and error. Other lines are passed over. */
void dt_process_log_add(dt_process_log *p, const char *text, size_t n);

#endif
