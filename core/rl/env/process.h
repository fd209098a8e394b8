/* SPDX-License-Identifier: Apache-2.0
 *
 * An instance in a process of its own. To the host it is an environment like any other (dt_process_ops); what it calls
 * happens in a worker, this program started again with the verb "env-worker", over memory that both share. A worker
 * that dies, or does not answer in time, or answers nonsense, costs its episode: the step is reported as the episode's
 * last one, its agents truncated with what they saw before, and a new worker begins the next episode. What the worker
 * wrote to its standard output and error goes into the warning.
 *
 * Wake-ups are futexes on a control page after a short spin. A worker leads a process group of its own: a thread of it
 * ends it, and all that it started and left in that group, as soon as the host is gone, however that came about and
 * whatever the environment does at that time; the host ends the whole group, too.
 * Threads: one at a time.
 */
#ifndef DTRAIN_CORE_RL_ENV_PROCESS_H
#define DTRAIN_CORE_RL_ENV_PROCESS_H

#include "base/str.h"
#include "rl/env/layout.h"

#include <stdatomic.h>
#include <stdbool.h>

#define DT_PROCESS_VERB "env-worker"

typedef struct dt_process_desc {
    const char *id;      /* of the environment, for messages */
    const char *request; /* what the worker needs to know to make the environment, handed to it as it is */
    size_t request_bytes;
    double timeout_s;        /* for an answer */
    uint32_t restarts;       /* of this instance, before the run stops */
    atomic_uint *n_restarts; /* of all instances: added to */
    bool (*stops)(
        void *user); /* NULL: never. Asked a few times a second by the thread that waits for a worker [any]: true gives
                                * it up, with DT_EINTERRUPTED */
    void *stops_user;
} dt_process_desc;

typedef struct dt_process dt_process;

/* Starts a worker; several make their environments side by side. request outlives the process. Errors: DT_EUNSUPPORTED
 * (no process could be started), DT_EIO (it died at once), DT_ENOMEM. */
dt_status dt_process_start(const dt_process_desc *d, dt_process **out_p) DT_NODISCARD;
/* Waits for its environment's spec; timeout_s counts from here. Errors: those of creating the environment there,
 * DT_EIO (the worker died, or said nothing in time). */
dt_status dt_process_receive_spec(dt_process *p) DT_NODISCARD;
/* The layout made from its spec; before the first reset. */
dt_status dt_process_attach(dt_process *p, const dt_layout *l) DT_NODISCARD;
/* Queries what neither reset nor step report; answer_p: bytes of the caller's, to dt_free. Errors: DT_EIO (the worker
 * is lost: the next step or reset begins another), DT_ENOMEM. */
dt_status dt_process_query(dt_process *p, uint32_t what, char **answer_p, uint64_t *bytes_p) DT_NODISCARD;
/* Resident memory of the worker alone, and what it shares with other processes: program, libraries, files. 0 when
 * unknown. */
uint64_t dt_process_bytes(const dt_process *p, uint64_t *shared_p);
/* Of all workers of this process together, what they share counted once; n_p: how many. Any thread; allocates nothing.
 */
uint64_t dt_process_all_bytes(uint32_t *n_p);
/* Begins to end it. Of several, all are notified before the first is destroyed: then they end side by side. */
void dt_process_begin_end(dt_process *p);
extern const dt_env_ops dt_process_ops; /* self: a dt_process; no create. Gives up with DT_EIO */

/* The worker's side: what main does with the verb. make creates the environment that request describes; 
 * may be NULL, answers what is asked for. */
typedef struct dt_process_worker {
    void *user;
    dt_status (*make)(void *user, const char *request, size_t bytes, const dt_env_ops **ops_p, void **self_p);
    void (*tell)(void *user, void *self, uint32_t what, dt_str *out);
} dt_process_worker;
int dt_process_serve(
    const dt_process_worker *w); /* comes back where the host has to be informed that something is wrong */

#endif
