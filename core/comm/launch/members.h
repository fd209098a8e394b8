/* SPDX-License-Identifier: Apache-2.0
 *
 * The hosts of a job of MIN:MAX processes over time: reads the hostfile again, probes hosts that are away
 * by starting a program on them, one at a time, and writes the hostfile of each attempt. What is chosen is hosts.h's.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_MEMBERS_H
#define DTRAIN_CORE_COMM_LAUNCH_MEMBERS_H

#include "comm/launch/hosts.h"
#include <sys/types.h>

typedef struct dt_members {
    dt_launch_hosts hosts;
    int file, probe_file; /* without names, for mpirun; -1: there is no hostfile */
    pid_t probe;          /* a mpirun that is under way, 0: none */
    uint32_t probed;      /* of its host */
    double probe_s;       /* when it began */
    double read_s;        /* when the hostfile was read */
    bool is_unreadable;   /* the last time */
    char path[64];        /* of file, for processes of this machine; "": no hostfile */
} dt_members;

/* Errors: those of dt_hosts_init; DT_EIO. */
dt_status dt_members_init(const char *hostfile, dt_launch_range processes, dt_launch_range machines, dt_members *out)
    DT_NODISCARD;
void dt_members_fini(dt_members *m);
/* Hostfile and probes, as often as one likes; returns at once. */
void dt_members_update(dt_members *m);
/* Is a host probed, or about to be? */
bool dt_members_are_probed(const dt_members *m);
/* For the next attempt: path then is its hostfile. n_p: processes, 0: fewer than allowed. Errors: DT_EIO. */
dt_status dt_members_choose(dt_members *m, uint32_t *n_p) DT_NODISCARD;

#endif
