/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a run, printed without training: --dry-run of `dtrain run`, and `dtrain bench gpu`. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_DRY_RUN_H
#define DTRAIN_CORE_RUN_DRY_RUN_H

#include "run/rundir.h"
#include "run/session.h"

typedef struct dt_dry_run {
    dt_session *session;
    const dt_args *args;
    const dt_rundir_desc *rundir; /* of the run; NULL: none is meant (bench) */
    const char *run_dir;          /* where the run would be, or below which folder */
    const char *resume;           /* run or checkpoint to continue; NULL */
    uint64_t max_steps;
} dt_dry_run;

/* Rejects what the run would reject, with the same status. Errors: those of dt_run_training and of opening its folder.
 * */
dt_status dt_dry_run_print(const dt_dry_run *d) DT_NODISCARD;

#endif
