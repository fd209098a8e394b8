/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker pool: n threads (the caller is worker 0) that run one function each and meet again; two or three of these
 * meetings make a whole training step, so nothing finer is needed. Workers wait on a condition variable after a short
 * spin: a busy neighbour on the machine costs its share, never a barrier's time.
 * Threads: run is called by the owner only; job runs on every worker.
 */
#ifndef DTRAIN_CORE_TRAIN_POOL_H
#define DTRAIN_CORE_TRAIN_POOL_H

#include "dtrain/status.h"

typedef struct dt_pool dt_pool;
typedef dt_status dt_pool_job(void *user, uint32_t worker);

/* n >= 1 workers, one of them the calling thread. Errors: DT_ENOMEM, DT_EUNSUPPORTED (no thread could be started). */
dt_status dt_pool_start(uint32_t n, dt_pool **out_p) DT_NODISCARD;
void dt_pool_stop(dt_pool *p);
/* job(user, worker) once on every worker; returns when all are back. The first failure in worker order is returned,
 * with its reason recorded on this thread. */
dt_status dt_pool_run(dt_pool *p, dt_pool_job *job, void *user);

#endif
