/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that mpirun is: what it needs, its command line, and starting it. Its supervision is launch.c's.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_MPIRUN_H
#define DTRAIN_CORE_COMM_LAUNCH_MPIRUN_H

#include "dtrain/status.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct dt_mpirun_desc {
    uint32_t n;             /* processes */
    const char *hostfile;   /* NULL: all on this machine */
    bool fills_hosts;       /* ranks fill host after host, in the order of the file */
    const char *program;    /* of each process */
    const char *const *arg; /* [n_arg] of each process */
    uint32_t n_arg;
    const char *resume; /* appended as --resume; NULL: not, "": without a value */
} dt_mpirun_desc;

/* Is it installed, and can it keep its files? Errors: DT_EUNSUPPORTED. */
dt_status dt_mpirun_check(void) DT_NODISCARD;
/* It notices within seconds that a machine is gone, unless the user has set otherwise. DT_ENOMEM. */
dt_status dt_mpirun_watch_machines(void) DT_NODISCARD;
/* err_p: its standard error, to be read and closed. Errors: DT_EIO, DT_ENOMEM. */
dt_status dt_mpirun_start(const dt_mpirun_desc *d, pid_t *pid_p, int *err_p) DT_NODISCARD;
/* Starts a program that does nothing on the host of the hostfile. Ends with 0: it can be reached. DT_EIO. */
dt_status dt_mpirun_probe(const char *hostfile, pid_t *pid_p) DT_NODISCARD;

#endif
