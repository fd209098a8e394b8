/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of worker processes, in parts; see process.h. Of what a worker wrote only a checked copy of the
 * host's own is ever used.
 */
#ifndef DTRAIN_CORE_RL_ENV_PROCESS_INNER_H
#define DTRAIN_CORE_RL_ENV_PROCESS_INNER_H

#include "rl/env/process.h"
#include "rl/env/process_log.h"
#include "rl/env/process_wire.h"

#include <sys/types.h>

enum { DT_PROCESS_TAIL_BYTES = 2048, DT_PROCESS_FLUSHES = 8 };

struct dt_process_instance {
    dt_process *p;
    uint32_t place;         /* in the worker */
    bool is_used;           /* created, or about to be */
    bool is_ending;         /* dt_process_begin_shutdown */
    uint32_t call;          /* the last one made: reset or step */
    uint32_t number;        /* of the call posted */
    uint64_t posted_in;     /* generation of the worker that it was posted to; 0: none is waited for */
    uint64_t playing_in;    /* generation of the worker that has its episode; 0: none */
    uint64_t seed, episode; /* of the last reset */
    char *kept;             /* the last record that was right */
    uint32_t restarts;
    uint32_t crashes; /* in the step under way */

    /* of an environment that is declared deterministic: the episode's actions so far */
    char *log;
    uint64_t n_logged, log_cap; /* steps */
    bool is_logged;             /* all of them */
    char *repeated;             /* a record, to compare with kept */
};

struct dt_process {
    dt_process_desc d;
    const dt_layout *l;
    struct dt_process *next; /* of all */
    pid_t pid;               /* 0: none. Leader of a group of its own: what it starts ends with it */
    atomic_int seen;         /* the same, for readers of other threads */
    int socket, memory, output;
    dt_wire_map m;
    char *map;
    char *spec; /* as the worker sent it */
    void *spec_memory;
    dt_env_spec env_spec;
    uint64_t generation; /* of workers, from 1 */

    /* calls made of this worker */
    uint32_t pushed, asked, answered, begun; /* numbers of the last ones; pushed: of those not yet visible to it */
    dt_wire_call *sent;                      /* [mask + 1] the host's own copy of the ring */
    uint32_t flush[DT_PROCESS_FLUSHES];      /* ends of the last batches */
    uint32_t n_flushes;
    dt_wire_spin spin;
    double timeout_s; /* of what is waited for */
    bool is_given_up; /* asked to stop while it was waited for */

    double left_s; /* when it was ordered to end, 0: it was not */
    uint32_t n_used;
    dt_process_instance *instance;    /* [d.places] */
    char tail[DT_PROCESS_TAIL_BYTES]; /* the last of what it wrote */
    size_t tail_bytes;
    dt_process_log log;
};

/* process.c: the life of a worker. */
dt_status dt_process_open(dt_process *p) DT_NODISCARD;      /* with its request */
dt_status dt_process_take_spec(dt_process *p) DT_NODISCARD; /* the answer to it */
dt_status dt_process_map(dt_process *p, const dt_layout *l) DT_NODISCARD;
bool dt_process_has_ended(const dt_process *p); /* by itself; it is left as it is */
int dt_process_kill(dt_process *p);             /* and all that it started and left in its group; as waitpid */
void dt_process_close(dt_process *p);
/* Why the worker is no more, with what it wrote last: DT_EIO. died: it does not answer any more, or has ended. */
dt_status dt_process_died(dt_process *p) DT_NODISCARD;
dt_status dt_process_overwritten(dt_process *p) DT_NODISCARD; /* it wrote what cannot be into the shared memory */
dt_status dt_process_interrupt(dt_process *p) DT_NODISCARD;
bool dt_process_goes_on(void *process); /* read its output; false: asked to stop */
dt_wire_patience dt_process_patience(dt_process *p, double timeout_s);
/* What it means that a message did not come, or go, whole: the worker is of no use any more. */
dt_status dt_process_missing_message(dt_process *p, dt_wire_result r, const char *what) DT_NODISCARD;
dt_status dt_process_check_status(int32_t status); /* of what a worker may say that it failed of */

void dt_process_destroy(void *instance);

/* push puts a call into the ring, flush makes all of them visible to the worker. */
uint32_t dt_process_push(dt_process *p, const dt_wire_call *call);
void dt_process_flush(dt_process *p);
static inline dt_wire_control *dt_process_control(const dt_process *p)
{
    return (dt_wire_control *)(void *)p->map;
}

/* process_call.c */
/* Until the worker has answered call number. Errors: DT_EIO (it is lost), DT_EINTERRUPTED. */
dt_status dt_process_wait(dt_process *p, uint32_t number) DT_NODISCARD;
/* The place whose call the worker was in when it was lost, or fallback. */
uint32_t dt_process_blamed(const dt_process *p, uint32_t fallback);

#endif
