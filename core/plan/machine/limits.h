/* SPDX-License-Identifier: Apache-2.0
 *
 * What the system lets this process have: memory, address space, open files, processes, cores; each by the least of the
 * machine, the control groups it is in (both kinds) and the limits of the shell that started it (ulimit). Allocates
 * nothing. Threads: any.
 */
#ifndef DTRAIN_CORE_PLAN_MACHINE_LIMITS_H
#define DTRAIN_CORE_PLAN_MACHINE_LIMITS_H

#include "dtrain/status.h"
#include <stdbool.h>

typedef struct dt_limits {
    uint64_t memory; /* bytes that may still become resident */
    uint64_t total;  /* of so many, by the same limit */
    uint64_t swap;   /* free, where the machine itself is what leaves least memory: it works, slowly */
    const char *by;  /* "the machine", "the control group" */
    /* Bytes that may still be mapped, touched or not; UINT64_MAX: as many as one likes */
    uint64_t address;
    const char *address_by;    /* "ulimit -v", "ulimit -d", "vm.overcommit_memory = 2" */
    uint64_t files, processes; /* that may still be opened and started; UINT64_MAX: no limit is known */
    uint32_t cores;            /* what the affinity and the control group's time allow, at least 1 */
} dt_limits;

/* root: "", or for tests the folder of proc and sys. False where the system does not report what memory there
 * is; the rest is filled then too. */
bool dt_limits_read(const char *root, dt_limits *out);
uint32_t dt_limits_count_cores(const char *root);
/* Time of so many cores is what the control group allows; INFINITY: no limit is known. */
double dt_limits_group_cores(const char *root);
/* Memory that is in use and cannot be reclaimed, of how much. False where the system does not say. */
bool dt_limits_memory_use(const char *root, uint64_t *used_p, uint64_t *limit_p);

#endif
