/* SPDX-License-Identifier: Apache-2.0
 *
 * May a run begin or continue in a folder? dt_rundir_open checks before it writes, and a plan (--dry-run) checks the
 * same. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_RUNDIR_CHECK_H
#define DTRAIN_CORE_RUN_RUNDIR_CHECK_H

#include "run/rundir.h"

typedef enum dt_folder_state {
    DT_FOLDER_FREE,  /* nothing of a run */
    DT_FOLDER_BEGUN, /* a run that ended before its first checkpoint */
    DT_FOLDER_TAKEN  /* a run, or foreign records */
} dt_folder_state;

/* Is the folder named by d->dir a folder or missing, free for a fresh run, and does no process train in it? Errors:
 * DT_ECONFIG. */
dt_status dt_rundir_check(const dt_rundir_desc *d) DT_NODISCARD;
/* The part about other runs alone. */
dt_status dt_rundir_check_mixing(const char *path, bool is_resumed, dt_folder_state *state_p) DT_NODISCARD;
/* st of the run's lock, with what to do where another process holds it. */
dt_status dt_rundir_lock_context(const char *path, dt_status st) DT_NODISCARD;

#endif
