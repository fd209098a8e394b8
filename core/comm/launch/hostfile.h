/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of hosts that --hostfile names, read before mpirun reads it, which reports little about what it does not
 * understand. Threads: any.
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_HOSTFILE_H
#define DTRAIN_CORE_COMM_LAUNCH_HOSTFILE_H

#include "dtrain/status.h"

/* NULL is fine. Errors: DT_ECONFIG with the line (it cannot be read, names no host, holds what no line of it does). */
dt_status dt_hostfile_check(const char *path) DT_NODISCARD;

#endif
