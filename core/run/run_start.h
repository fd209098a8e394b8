/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a run begins or continues: with the initial weights of a phase, or inside one from a checkpoint. Resuming and
 * continuing after a failure are the same thing: everything a run needs is in its newest checkpoint. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_RUN_START_H
#define DTRAIN_CORE_RUN_RUN_START_H

#include "state/checkpoint/checkpoint.h"
#include "comm/comm.h"
#include "run/session.h"
#include "state/snapshot/snapshot.h"

typedef struct dt_run_start {
    dt_ckpt *resume;               /* inside the first phase; NULL: it begins with its first weights */
    int64_t begin;                 /* the first phase to be entered; at or past session.last: nothing is left to do */
    uint64_t base_step;            /* steps of the phases before it */
    uint64_t spent_ms;             /* on the first phase already */
    bool is_other_cpu;             /* the checkpoint was computed in another arithmetic class than this process's */
    bool is_other_sum;             /* gradients were summed in another order: engine.reduction = fast on other ranks */
    uint32_t pending;              /* DT_PENDING_* of the first phase, before it continues */
    dt_snapshot_patience patience; /* of the first phase; of rank 0 */
} dt_run_start;

/* From a checkpoint or a run's newest one, within the phases that were asked for (--phase). A phase that is over, by a
 * checkpoint of its end, is not entered again unless its configuration changed, or its baselines were not finished.
 * Errors: DT_ENOTFOUND (no checkpoint), DT_EDATA (none that is valid), DT_ECONFIG (of other phases than those asked
 * for, or than the configuration has). is_plan: damaged checkpoints stay where they are. */
dt_status dt_run_start_resume(const dt_session *s, const char *path, bool is_plan, dt_run_start *out) DT_NODISCARD;
/* As the command line requests: fresh where resume is NULL, else as above. Errors: no checkpoint is DT_ECONFIG. */
dt_status dt_run_start_find(const dt_session *s, const char *resume, bool is_plan, dt_run_start *out) DT_NODISCARD;
/* Rank 0 has looked for it; the others of several processes go where it goes. [collective] Errors: those of opening the
 * checkpoint, and of the communicator. */
dt_status dt_run_start_share(dt_comm *c, dt_run_start *s) DT_NODISCARD;
void dt_run_start_fini(dt_run_start *c);

/* May what failed with this go well when it is tried again? Lost workers and peers, memory, files, plugins, and
 * training that diverged; not what configuration, data and device lack, nor an interruption. */
bool dt_status_is_retryable(dt_status st);

#endif
