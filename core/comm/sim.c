/* SPDX-License-Identifier: Apache-2.0
 *
 * The sim communicator: R virtual ranks, one thread each, that meet at a hub in this process. See comm.h.
 *
 * Every rank lays down what it calls and where its bytes are; the last one to come compares the calls and moves the
 * bytes of all, whose buffers are the hub's until then. Ranks begin collectives in the same order, so these take place
 * in that order, and a rank that is ahead waits with at most DT_COMM_IN_FLIGHT of them.
 * A hub that failed stays failed, with one reason for all ranks. What took place before is done all the same.
 */
#include <config.h>

#include "comm/comm_impl.h"
#include "comm/rendezvous.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct sim_comm sim_comm;

typedef struct sim_hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t size, n_alive; /* communicators not yet destroyed */
    uint32_t n_moving;      /* threads that move bytes outside the lock */
    uint64_t taken;         /* collectives that took place */
    dt_status failed;       /* DT_OK while all is well */
    char why[DT_RENDEZVOUS_TEXT];
    const dt_comm_call **calls; /* [size] of the one that takes place */
    sim_comm *rank[];           /* [size] */
} sim_hub;

struct sim_comm {
    dt_comm common;
    sim_hub *hub;
    uint64_t started; /* under the hub's lock: collectives that this rank began */
    bool has_left;
    bool is_done[DT_COMM_IN_FLIGHT];  /* by slot */
    uint8_t ahead[DT_COMM_IN_FLIGHT]; /* by sequence: the slot of one that has not taken place */
};

static sim_comm *as_sim(dt_comm *c)
{
    return (sim_comm *)(void *)c;
}

/* ---- under the lock ---- */

/* The first reason stays; every rank that waits gets it. */
static void fail_hub(sim_hub *h, dt_status st, const char *why)
{
    if (h->failed == DT_OK) {
        h->failed = st;
        snprintf(h->why, sizeof(h->why), "%s", why);
    }
    pthread_cond_broadcast(&h->changed);
}

/* This rank's error record; its buffers are not read any more. */
static dt_status report_failure(sim_hub *h)
{
    while (h->n_moving > 0) {
        pthread_cond_wait(&h->changed, &h->lock);
    }
    return DT_FAIL(h->failed, "%s", h->why);
}

static void fail_timed_out(sim_hub *h, dt_comm *c, const dt_comm_slot *s)
{
    char mine[DT_COMM_CALL_BYTES], why[400];
    dt_str missing = {0};
    uint64_t fewest = UINT64_MAX;
    dt_comm_describe_call(c->rank, &s->call, mine);
    for (uint32_t r = 0; r < h->size; r++) {
        fewest = h->rank[r]->started < fewest ? h->rank[r]->started : fewest;
    }
    for (uint32_t r = 0; r < h->size; r++) { /* a rank that is ahead of others waits for them, as this rank does */
        if (h->rank[r]->started == fewest) {
            dt_str_addf(&missing, " %u", r);
        }
    }
    snprintf(why, sizeof(why), "collective %llu: %s and timed out after %g s waiting for rank%s",
             (unsigned long long)s->sequence, mine, s->timeout_s, dt_str_text(&missing));
    dt_str_fini(&missing);
    fail_hub(h, DT_ECOMM, why);
}

/* ---- meetings ---- */

static bool have_all_arrived(const sim_hub *h, uint64_t sequence)
{
    for (uint32_t r = 0; r < h->size; r++) {
        if (h->rank[r]->started < sequence) {
            return false;
        }
    }
    return true;
}

/* The last one is here. Collectives take place in turn: another thread may still be at one before this. */
static void enter_rendezvous(sim_hub *h, uint64_t sequence)
{
    while (h->failed == DT_OK && h->taken + 1 < sequence) {
        pthread_cond_wait(&h->changed, &h->lock);
    }
    if (h->failed != DT_OK) {
        return;
    }
    for (uint32_t r = 0; r < h->size; r++) {
        const sim_comm *s = h->rank[r];
        h->calls[r] = &s->common.slot[s->ahead[sequence % DT_COMM_IN_FLIGHT]].call;
    }
    const dt_rendezvous m = {.sequence = sequence, .size = h->size, .call = h->calls};
    char why[DT_RENDEZVOUS_TEXT];
    const dt_status st = dt_rendezvous_check(&m, why);
    if (st < 0) {
        fail_hub(h, st, why);
        return;
    }
    h->n_moving++; /* all have come, and none may reuse its buffers: the bytes move without the lock */
    pthread_mutex_unlock(&h->lock);
    dt_rendezvous_execute(&m);
    pthread_mutex_lock(&h->lock);
    h->n_moving--;
    h->taken = sequence;
    for (uint32_t r = 0; r < h->size; r++) {
        sim_comm *s = h->rank[r];
        s->is_done[s->ahead[sequence % DT_COMM_IN_FLIGHT]] = true;
    }
    pthread_cond_broadcast(&h->changed);
}

static dt_status sim_start(dt_comm *c, uint32_t slot)
{
    sim_comm *s = as_sim(c);
    sim_hub *h = s->hub;
    const uint64_t sequence = c->slot[slot].sequence;
    dt_status st = DT_OK;
    pthread_mutex_lock(&h->lock);
    if (h->failed != DT_OK) {
        st = report_failure(h);
    } else {
        s->started = sequence;
        s->is_done[slot] = false;
        s->ahead[sequence % DT_COMM_IN_FLIGHT] = (uint8_t)slot;
        if (have_all_arrived(h, sequence)) {
            enter_rendezvous(h, sequence);
        }
    }
    pthread_mutex_unlock(&h->lock);
    return st;
}

static struct timespec timespec_at_second(double t)
{
    const double whole = t < 1e15 ? t : 1e15;
    struct timespec out = {.tv_sec = (time_t)whole};
    out.tv_nsec = (long)((whole - (double)out.tv_sec) * 1e9);
    return out;
}

static dt_status sim_poll(dt_comm *c, uint32_t slot, bool waits, bool *done_p)
{
    sim_comm *s = as_sim(c);
    sim_hub *h = s->hub;
    dt_comm_slot *asked = &c->slot[slot];
    const double now = dt_clock_s();
    asked->since = asked->since < 0 ? now : asked->since;
    const double end = asked->since + asked->timeout_s;
    const struct timespec deadline = timespec_at_second(end);
    dt_status st = DT_OK;
    pthread_mutex_lock(&h->lock);
    bool is_late = now > end;
    while (waits && !is_late && !s->is_done[slot] && h->failed == DT_OK) {
        is_late = pthread_cond_timedwait(&h->changed, &h->lock, &deadline) == ETIMEDOUT;
    }
    /* that all have reached is only being served */
    while (is_late && !s->is_done[slot] && h->failed == DT_OK && have_all_arrived(h, asked->sequence)) {
        pthread_cond_wait(&h->changed, &h->lock);
    }
    if (!s->is_done[slot] && is_late && h->failed == DT_OK) {
        fail_timed_out(h, c, asked);
    }
    *done_p = s->is_done[slot];
    if (!*done_p && h->failed != DT_OK) {
        st = report_failure(h);
    }
    pthread_mutex_unlock(&h->lock);
    return st;
}

static void fail_rank(dt_comm *c, const char *what, const char *why)
{
    sim_hub *h = as_sim(c)->hub;
    char text[400];
    snprintf(text, sizeof(text), "rank %u left: %s%s", c->rank, what, why);
    pthread_mutex_lock(&h->lock);
    as_sim(c)->has_left = true;
    fail_hub(h, DT_EPEER, text);
    while (h->n_moving > 0) {
        pthread_cond_wait(&h->changed, &h->lock);
    }
    pthread_mutex_unlock(&h->lock);
}

static void sim_abandon(dt_comm *c, const char *why)
{
    fail_rank(c, "", why);
}

static void sim_abort(dt_comm *c, const char *why)
{
    fail_rank(c, "aborted: ", why);
}

/* ---- life ---- */

static void destroy_hub(sim_hub *h)
{
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    for (uint32_t r = 0; r < h->size; r++) {
        if (h->rank[r] != NULL) {
            dt_comm_fini(&h->rank[r]->common);
            dt_free(h->rank[r]);
        }
    }
    dt_free(h->calls);
    dt_free(h);
}

/* The last one takes all along: what a rank laid down may be looked at until then. */
static void sim_destroy(dt_comm *c)
{
    sim_hub *h = as_sim(c)->hub;
    if (!as_sim(c)->has_left) {
        sim_abandon(c, "its communicator was destroyed");
    }
    pthread_mutex_lock(&h->lock);
    const bool is_last = --h->n_alive == 0;
    pthread_mutex_unlock(&h->lock);
    if (is_last) {
        destroy_hub(h);
    }
}

static dt_status create_hub(uint32_t ranks, sim_hub **out_p)
{
    size_t bytes = 0;
    sim_hub *h = NULL;
    if (dt_mul_size(ranks, sizeof(h->rank[0]), &bytes)) {
        h = dt_alloc(sizeof(*h) + bytes);
    }
    if (h == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u virtual ranks", ranks);
    }
    h->calls = dt_alloc_n(ranks, sizeof(h->calls[0]));
    if (h->calls == NULL) {
        dt_free(h);
        return DT_FAIL(DT_ENOMEM, "out of memory for %u virtual ranks", ranks);
    }
    h->size = ranks;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &attr);
    pthread_condattr_destroy(&attr);
    *out_p = h;
    return DT_OK;
}

static dt_status add_rank(sim_hub *h, uint32_t r, double timeout_s)
{
    static const dt_comm_ops ops = {"sim", sim_start, sim_poll, sim_abort, sim_abandon, NULL, sim_destroy};
    sim_comm *s = dt_alloc(sizeof(*s));
    const dt_status st = s == NULL ? DT_FAIL(DT_ENOMEM, "out of memory for virtual rank %u", r)
                                   : dt_comm_init(&s->common, &ops, r, h->size);
    if (st < 0) {
        dt_free(s);
        return st;
    }
    s->hub = h;
    s->common.timeout_s = timeout_s;
    h->rank[r] = s;
    h->n_alive++;
    return DT_OK;
}

dt_status dt_comm_create_simulated(uint32_t ranks, double timeout_s, dt_comm **out)
{
    if (ranks == 0 || ranks > 1024 || !(timeout_s > 0)) {
        return DT_FAIL(DT_EINVAL, "sim communicator with %u ranks (1 to 1024) and a time limit of %g s (above 0)",
                       ranks, timeout_s);
    }
    sim_hub *h = NULL;
    DT_TRY(create_hub(ranks, &h));
    for (uint32_t r = 0; r < ranks; r++) {
        const dt_status st = add_rank(h, r, timeout_s);
        if (st < 0) {
            destroy_hub(h);
            return st;
        }
    }
    for (uint32_t r = 0; r < ranks; r++) {
        out[r] = &h->rank[r]->common;
    }
    return DT_OK;
}
