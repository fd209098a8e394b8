/* SPDX-License-Identifier: Apache-2.0
 *
 * Instances in worker processes. To the host each is an environment like any other (dt_process_ops), and one that is
 * stepped together with others (dt_process_async); what it calls happens in a worker, this program started again with
 * the verb "env-worker", over memory that both share. A worker has one or several instances of the same configuration.
 *
 * A worker that dies or does not answer in time is replaced; an instance that returns invalid data, DT_EBROKEN or
 * DT_EIO is created again, in its worker. Where the environment is declared deterministic lost episodes are
 * repeated from their seed and actions, up to the step under way: the results are the same. Otherwise, and where that
 * fails, they count as truncated: the step is reported as the episode's last, its agents truncated with their
 * observations of the step before. What the worker wrote to its standard output and error is part of the warning.
 *
 * A worker leads a process group of its own: a thread of it ends it, and all that it started and left in that group, as
 * soon as the host is gone, however that came about and whatever the environment does at that time; the host ends the
 * whole group, too. process.c: workers; process_call.c: calls; process_instance.c: instances.
 * Threads: all instances of a worker by one thread at a time.
 */
#ifndef DTRAIN_CORE_RL_ENV_PROCESS_H
#define DTRAIN_CORE_RL_ENV_PROCESS_H

#include "base/str.h"
#include "rl/env/layout.h"
#include "rl/env/vector.h"

#include <stdatomic.h>
#include <stdbool.h>

#define DT_PROCESS_VERB "env-worker"

typedef struct dt_process_desc {
    const char *id;      /* of the environment, for messages */
    const char *request; /* what the worker needs to know to make an instance, handed to it as it is */
    size_t request_bytes;
    uint32_t places;         /* instances at most; at least 1 */
    double timeout_s;        /* of a reset or step, and of anything else that is not the creation of an instance */
    double startup_s;        /* of the creation of an instance */
    uint64_t ring_bytes;     /* shared memory at most */
    uint32_t restarts;       /* of an instance, before the run stops */
    bool is_deterministic;   /* lost episodes are repeated from their actions */
    atomic_uint *n_restarts; /* of all instances: added to */
    atomic_uint *n_lost;     /* the same, where the results are not those of a run without the loss */
    bool (*stops)(
        void *user); /* NULL: never. Asked a few times a second by the thread that waits for a worker [any]: true gives
                                * it up, with DT_EINTERRUPTED */
    void *stops_user;
} dt_process_desc;

typedef struct dt_process dt_process;                   /* a worker */
typedef struct dt_process_instance dt_process_instance; /* self of dt_process_ops */

/* Starts a worker with its first instance; several make their environments side by side. request outlives the process.
 * The worker ends with its last instance. Errors: DT_EUNSUPPORTED (no process could be started), DT_EIO (it died at
 * once), DT_ENOMEM. */
dt_status dt_process_start(const dt_process_desc *d, dt_process_instance **first_p) DT_NODISCARD;
/* Waits for its environment's spec; startup_s counts from here. Errors: those of creating the environment there,
 * DT_EIO (the worker died, or said nothing in time). */
dt_status dt_process_receive_spec(dt_process_instance *first) DT_NODISCARD;
/* The layout made from its spec; before the first reset and further instances. Errors: DT_ECONFIG (more memory than
 * ring_bytes), DT_ENOMEM, DT_EIO. */
dt_status dt_process_attach(dt_process_instance *first, const dt_layout *l) DT_NODISCARD;
bool dt_process_is_attached(const dt_process_instance *x);
/* Begins to create another instance in the worker of this one; NULL: it has no place left. finish waits for it. Errors:
 * as of receive_spec. */
dt_process_instance *dt_process_begin_instance(dt_process_instance *other);
dt_status dt_process_finish_instance(dt_process_instance *x) DT_NODISCARD;
/* Queries what neither reset nor step report; answer_p: bytes of the caller's, to dt_free. Errors: DT_EIO (the worker
 * is lost: the next step or reset begins another), DT_ENOMEM. */
dt_status dt_process_query(dt_process_instance *x, uint32_t what, char **answer_p, uint64_t *bytes_p) DT_NODISCARD;
/* Resident memory of an instance's worker alone, and what it shares with other processes: program, libraries, files. 0
 * when unknown. */
uint64_t dt_process_bytes(const dt_process_instance *x, uint64_t *shared_p);
/* Of all workers of this process together, what they share counted once; n_p: how many. Any thread; allocates nothing.
 */
uint64_t dt_process_all_bytes(uint32_t *n_p);
/* Begins to end an instance. Of several, all are notified before the first is destroyed: workers end in parallel. */
void dt_process_begin_shutdown(dt_process_instance *x);
extern const dt_env_ops dt_process_ops; /* no create. Gives up with DT_EIO */
extern const dt_env_async dt_process_async;

/* The worker's side: what main does with the verb. prepare reads a request; create makes one of the instances that it
 * describes, or one again, in zeroed state; query, which may be NULL, answers what is asked for. */
typedef struct dt_process_worker {
    void *user;
    dt_status (*prepare)(void *user, const char *request, size_t bytes, const dt_env_ops **ops_p,
                         size_t *state_bytes_p);
    dt_status (*create)(void *user, void *self);
    void (*query)(void *user, void *self, uint32_t what, dt_str *out);
} dt_process_worker;
int dt_process_run_worker(
    const dt_process_worker *w); /* comes back where the host has to be informed that something is wrong */

#endif
