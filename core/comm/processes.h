/* SPDX-License-Identifier: Apache-2.0
 *
 * The communicator of several processes, over a transport (transport.h): their launcher, joining and leaving them.
 * Every collective is begun, looked at until it is done, and given up at the communicator's time limit; next to it runs
 * a comparison of what the ranks called, so that calls that do not match are named instead of waited for; and a rank
 * that leaves notifies the others. Threads: the one that joined.
 */
#ifndef DTRAIN_CORE_COMM_PROCESSES_H
#define DTRAIN_CORE_COMM_PROCESSES_H

#include "comm/board.h"
#include "comm/comm.h"
#include "comm/transport.h"

typedef struct dt_launch { /* what the environment variables specify about how this process was started */
    uint32_t size;         /* processes of the job; 1: alone */
    uint32_t rank;         /* of this one; 0 where it is not said */
    uint32_t n_local;      /* of this machine; 0 where it is not said */
    uint32_t local_rank;   /* among those */
    const char *by;        /* "mpirun", "srun" */
    bool is_supervised;    /* by dtrain's own launcher: a job of one process is a job, too */
} dt_launch;

/* Open MPI's and MPICH's mpirun, PMIx and Slurm; a job of one process is none. False: started alone. */
bool dt_launch_detect(dt_launch *out);

/* Joins the processes that were started with this one: opens the module for MPI. Errors: DT_EUNSUPPORTED (no module, or
 * its library is not here), it knows of another number of
 * processes than the launcher: it reports what to do), DT_ECOMM (it fails). */
dt_status dt_processes_join(const dt_launch *l, dt_comm **out_p) DT_NODISCARD;
/* The same over any transport; tests bring their own. */
dt_status dt_processes_create(const dt_transport_ops *t, const dt_launch *l, dt_comm **out_p) DT_NODISCARD;
/* "Open MPI v4.1.4" */
const char *dt_processes_library(const dt_comm *c);
uint32_t dt_processes_n_hosts(const dt_comm *c); /* machines that they run on */
/* Rank 0 sends the launcher the run's path, for when it has to be started again. */
void dt_processes_run_dir_set(const dt_comm *c, const char *run_dir);
/* What the launcher on this machine reports, of --nproc MIN:MAX (board.h); NULL: there is none. */
dt_board *dt_processes_board(const dt_comm *c);
/* The process is about to end with this code: ends the library. Where the communicator failed that may never return, so
 * the process ends here instead, after half a second on rank 0 and a second on others. Frees c. */
void dt_processes_finalize(dt_comm *c, int code);

#endif
