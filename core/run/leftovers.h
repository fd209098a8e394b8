/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process that was killed had begun to write into its run: files aside, NAME.tmp.PID, that were never renamed.
 * Those of checkpoints go when these are pruned (checkpoint.h). Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_LEFTOVERS_H
#define DTRAIN_CORE_RUN_LEFTOVERS_H

#include "dtrain/status.h"

/* For whoever has the folder to itself. Other files stay, and one that cannot be removed. Errors: DT_EIO, DT_ENOMEM: a
 * folder cannot be listed. */
dt_status dt_leftovers_drop(const char *run_dir) DT_NODISCARD;

#endif
