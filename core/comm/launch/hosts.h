/* SPDX-License-Identifier: Apache-2.0
 *
 * How many processes a job of MIN:MAX processes or hosts has, and where: hosts of the hostfile, or this machine, with
 * their slots. A slot whose process was lost is left out until its time is over; a host that was lost is left out until
 * a process can be started on it again. Decides, starts nothing; times are dt_clock_s. Threads: [main].
 */
#ifndef DTRAIN_CORE_COMM_LAUNCH_HOSTS_H
#define DTRAIN_CORE_COMM_LAUNCH_HOSTS_H

#include "comm/launch/hostfile.h"
#include "comm/launch/wait.h"
#include <stdbool.h>

typedef struct dt_launch_range { /* of --nproc, --nnodes; 0, 0: not given */
    uint32_t min, max;
} dt_launch_range;

typedef struct dt_launch_host {
    dt_host_line line;
    uint32_t n_used; /* processes of this attempt */
    uint32_t n_lost; /* slots that are left out until return_s */
    double return_s; /* of a host that is away: when it is probed next */
    bool is_fresh;   /* slots were lost in this attempt: the next one does without them if it can */
    bool is_away;    /* no process can be started there */
    bool is_listed;  /* by the hostfile as it was read last */
    dt_launch_wait wait;
} dt_launch_host;

typedef struct dt_launch_hosts {
    dt_launch_range processes, machines;
    uint32_t most;        /* processes that have work, as far as it is known; 0: any number */
    const char *hostfile; /* NULL: this machine alone */
    uint32_t n;
    dt_launch_host *host; /* [n] */
} dt_launch_hosts;

/* machines {0, 0}: any number. Errors: DT_ECONFIG (fewer hosts or slots than the minimum; a hostfile that cannot be
 * read), DT_ENOMEM. */
dt_status dt_hosts_init(const char *hostfile, dt_launch_range processes, dt_launch_range machines, dt_launch_hosts *out)
    DT_NODISCARD;
void dt_hosts_fini(dt_launch_hosts *h);
/* Reads the hostfile again: hosts that it no longer names leave, new ones are probed before they join. Errors: those of
 * reading it; then all is as before. */
dt_status dt_hosts_read_again(dt_launch_hosts *h, double now) DT_NODISCARD;

/* The first hosts that are there, and their slots; n_used is set. Returns the processes; 0: fewer than allowed. */
uint32_t dt_hosts_choose(dt_launch_hosts *h, double now);
/* The processes that an attempt could have now, with a choice that differs from the current one; 0: the current choice
 * stays. */
uint32_t dt_hosts_find_change(const dt_launch_hosts *h, double now);

/* The rank of this attempt was lost, and its slot with it. saved: the newest checkpoint. Ranks fill host after host. */
void dt_hosts_lose_rank(dt_launch_hosts *h, uint32_t rank, double now, int64_t saved);
void dt_hosts_lose_host(dt_launch_hosts *h, const char *name, double now,
                        int64_t saved); /* unknown names are ignored */
/* Nothing could be started on some host of this attempt: each is probed before it is used again. */
void dt_hosts_suspect_all(dt_launch_hosts *h, double now);
/* A host that is away and whose time has come; UINT32_MAX: none. */
uint32_t dt_hosts_find_probe(const dt_launch_hosts *h, double now);
void dt_hosts_set_probed(dt_launch_hosts *h, uint32_t i, bool is_there, double now);

/* A hostfile of those that were chosen, or of host i alone with one slot. Errors: DT_EIO. */
dt_status dt_hosts_write(const dt_launch_hosts *h, int fd) DT_NODISCARD;
dt_status dt_hosts_write_one(const dt_launch_hosts *h, uint32_t i, int fd) DT_NODISCARD;

#endif
