/* SPDX-License-Identifier: Apache-2.0
 *
 * See pool.h. A generation counter starts a round; a countdown ends it.
 */
#include <config.h>

#include "train/pool.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"

#include <pthread.h>
#include <stdatomic.h>

/* Steps of small models are tens of microseconds, and so is the time between their rounds; to sleep and to be woken
 * takes as long again. No thread busy-waits longer than this: a busy neighbour on the machine needs the core. */
#define AWAKE_S 200e-6

static void pause_cpu(void)
{
#if defined(__SSE2__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Waits awake, for a while, until *value is `target`, or is not. */
static void spin_until(atomic_uint *value, unsigned target, bool is_equal)
{
    enum { LOOKS = 32 };
    const double begin = dt_clock_s();
    do {
        for (int i = 0; i < LOOKS; i++) {
            if ((atomic_load_explicit(value, memory_order_acquire) == target) == is_equal) {
                return;
            }
            pause_cpu();
        }
    } while (dt_clock_s() - begin < AWAKE_S);
}

typedef struct worker {
    dt_pool *pool;
    pthread_t thread;
    uint32_t id;
    dt_error error;
} worker;

struct dt_pool {
    worker *w;
    uint32_t n, n_started;
    pthread_mutex_t lock;
    pthread_cond_t go, done;
    atomic_uint round;
    atomic_uint running;
    atomic_bool quit;
    dt_pool_job *job;
    void *user;
};

static void run_job(worker *w)
{
    dt_error_clear();
    dt_error_save(&w->error, w->pool->job(w->pool->user, w->id));
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    dt_pool *p = w->pool;
    unsigned seen = 0;
    dt_trace_thread("worker", w->id);
    for (;;) {
        spin_until(&p->round, seen, false);
        if (atomic_load_explicit(&p->round, memory_order_acquire) == seen) {
            pthread_mutex_lock(&p->lock);
            while (atomic_load(&p->round) == seen) {
                pthread_cond_wait(&p->go, &p->lock);
            }
            pthread_mutex_unlock(&p->lock);
        }
        seen = atomic_load(&p->round);
        if (atomic_load(&p->quit)) {
            return NULL;
        }
        run_job(w);
        if (atomic_fetch_sub(&p->running, 1) == 1) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
    }
}

static void start_round(dt_pool *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->round, 1);
    pthread_cond_broadcast(&p->go);
    pthread_mutex_unlock(&p->lock);
}

dt_status dt_pool_start(uint32_t n, dt_pool **out_p)
{
    if (n < 1) {
        return DT_FAIL(DT_EINVAL, "a pool needs at least 1 worker, got %u", n);
    }
    dt_pool *p = dt_alloc(sizeof(*p));
    worker *w = dt_alloc_n(n, sizeof(*w));
    if (p == NULL || w == NULL) {
        dt_free(p);
        dt_free(w);
        return DT_FAIL(DT_ENOMEM, "out of memory for %u workers", n);
    }
    p->w = w;
    p->n = n;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->go, NULL);
    pthread_cond_init(&p->done, NULL);
    for (uint32_t i = 0; i < n; i++) {
        w[i].pool = p;
        w[i].id = i;
        if (i > 0 && pthread_create(&w[i].thread, NULL, worker_main, &w[i]) != 0) {
            dt_pool_stop(p);
            return DT_FAIL(DT_EUNSUPPORTED, "the system refused to start worker thread %u of %u", i, n);
        }
        p->n_started = i + 1;
    }
    *out_p = p;
    return DT_OK;
}

void dt_pool_stop(dt_pool *p)
{
    if (p == NULL) {
        return;
    }
    atomic_store(&p->quit, true);
    start_round(p);
    for (uint32_t i = 1; i < p->n_started; i++) {
        pthread_join(p->w[i].thread, NULL);
    }
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->go);
    pthread_cond_destroy(&p->done);
    dt_free(p->w);
    dt_free(p);
}

dt_status dt_pool_run(dt_pool *p, dt_pool_job *job, void *user)
{
    p->job = job;
    p->user = user;
    atomic_store(&p->running, p->n - 1);
    if (p->n > 1) {
        start_round(p);
    }
    run_job(&p->w[0]);
    spin_until(&p->running, 0, true);
    if (atomic_load(&p->running) > 0) {
        pthread_mutex_lock(&p->lock);
        while (atomic_load(&p->running) > 0) {
            pthread_cond_wait(&p->done, &p->lock);
        }
        pthread_mutex_unlock(&p->lock);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->w[i].error.status < 0) {
            return dt_error_restore(&p->w[i].error);
        }
    }
    return DT_OK;
}
