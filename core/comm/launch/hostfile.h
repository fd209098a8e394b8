/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of hosts that --hostfile names, read before mpirun reads it, which reports little about what it does not
 * understand. Threads: any.
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_HOSTFILE_H
#define DTRAIN_CORE_COMM_LAUNCH_HOSTFILE_H

#include "dtrain/status.h"
#include <stdint.h>

/* NULL is fine. Errors: DT_ECONFIG with the line (it cannot be read, names no host, holds what no line of it does). */
dt_status dt_hostfile_check(const char *path) DT_NODISCARD;

enum { DT_HOST_NAME_BYTES = 256, DT_HOST_WORDS_BYTES = 256, DT_HOSTS_MOST = 4096 };

typedef struct dt_host_line {
    char name[DT_HOST_NAME_BYTES];
    char words[DT_HOST_WORDS_BYTES]; /* other keys of its line: " username=train" */
    uint32_t slots;                  /* 1 where the line gives none; lines of the same name are added up */
} dt_host_line;

/* The hosts in order, at most DT_HOSTS_MOST. out_p: [n_p], freed with dt_free. Errors: as dt_hostfile_check;
 * DT_ENOMEM. */
dt_status dt_hostfile_read(const char *path, dt_host_line **out_p, uint32_t *n_p) DT_NODISCARD;

#endif
