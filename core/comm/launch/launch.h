/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain --nproc N`: starts mpirun with the words that a run of N processes needs, forwards signals, and starts the
 * run again from its last checkpoint when a process was lost. What the processes do is theirs: the launcher knows their
 * exit codes, and what mpirun reports about them. With `--nproc MIN:MAX` or `--nnodes MIN:MAX` it continues
 * without what was lost, and stops the processes at a checkpoint when others can join. Threads: [main].
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_LAUNCH_H
#define DTRAIN_CORE_COMM_LAUNCH_LAUNCH_H

#include "comm/launch/hosts.h"
#include "dtrain/status.h"
#include <stdbool.h>
#include <stdint.h>

enum { DT_LAUNCH_MAX_RESTARTS = 3, DT_LAUNCH_MOST_RESTARTS = 1000000, DT_LAUNCH_MAX_PROCESSES = 4096 };

typedef struct dt_launch_desc {
    dt_launch_range processes; /* min = max: that many */
    dt_launch_range machines;  /* of the hostfile; 0, 0: as many as the processes need */
    uint64_t max_restarts;     /* after lost processes */
    const char *hostfile;      /* of mpirun; NULL: all here */
    const char *program;       /* this one */
    const char *const *arg;    /* [n_arg] of each process, without those of the launcher and without --resume */
    uint32_t n_arg;
    const char *run_dir;                     /* what --run-dir said; NULL */
    const char *resume;                      /* what --resume said; NULL: the run begins; "": the newest */
    const char *stands;                      /* the run that continues, where it has a checkpoint; NULL: none */
    int64_t (*newest_step)(const char *run); /* of its checkpoints; -1: it has none. NULL: nothing is saved */
} dt_launch_desc;

/* Until the run is over; code_p: what its processes ended with. left_p: the run that was asked to stop between two of
 * its attempts, and has recorded how the first one ended; else NULL; freed with dt_free. Errors: DT_EUNSUPPORTED (no
 * mpirun), DT_ECONFIG (a hostfile that cannot be read or names no host), DT_EIO, DT_ENOMEM. */
dt_status dt_launch_run(const dt_launch_desc *d, int *code_p, char **left_p) DT_NODISCARD;

/* In a process that was started by it: the options that continue with the same number, " --nproc 4". */
#define DT_LAUNCH_WORDS "DTRAIN_LAUNCH_WORDS"

#endif
