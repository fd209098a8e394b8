/* SPDX-License-Identifier: Apache-2.0
 *
 * A run that has stopped, copied to continue in another folder. Threads: any.
 */
#ifndef DTRAIN_CORE_STUDY_COPY_RUN_H
#define DTRAIN_CORE_STUDY_COPY_RUN_H

#include "dtrain/status.h"

/* Atomic: `to` is there whole, or not at all; nothing is done where it is there already. Its parent folder exists.
 * Locks are left out. Errors: DT_ENOTFOUND, DT_EIO, DT_ENOMEM. */
dt_status dt_copy_run(const char *from, const char *to) DT_NODISCARD;

#endif
