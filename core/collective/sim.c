/* SPDX-License-Identifier: Apache-2.0
 *
 * The sim communicator: R virtual ranks, one thread each, that meet at a hub in this process. See comm.h.
 *
 * A collective is two meetings. At the first every rank lays down what it calls and where its bytes are; the last one
 * to come compares the calls. Then each rank copies what it needs out of the others' buffers, and at the second meeting
 * they wait until all have copied. Only the first meeting can fail: at the second all ranks are on their way.
 * A hub that failed stays failed, with one reason for everybody.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "collective/comm_impl.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef enum sim_op { SIM_ALL_GATHER, SIM_EXCHANGE, SIM_BROADCAST, SIM_BARRIER } sim_op;
static const char *const op_names[] = {[SIM_ALL_GATHER] = "all_gather",
                                       [SIM_EXCHANGE] = "exchange",
                                       [SIM_BROADCAST] = "broadcast",
                                       [SIM_BARRIER] = "barrier"};

/* What a rank brings to a meeting. */
typedef struct sim_call {
    sim_op op;
    uint32_t other; /* root of a broadcast, peer of an exchange */
    size_t bytes;
    const void *mine;
    bool is_here;
} sim_call;

typedef struct sim_hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t size, n_alive; /* communicators not yet destroyed */
    double timeout_s;
    uint32_t n_here;
    uint64_t meeting;  /* meetings that took place */
    uint64_t sequence; /* collectives that began, for messages */
    dt_status failed;  /* DT_OK while all is well */
    char why[512];
    sim_call call[]; /* [size] */
} sim_hub;

typedef struct sim_comm {
    dt_comm common;
    sim_hub *hub;
    bool has_left;
} sim_comm;

static sim_comm *sim_of(dt_comm *c)
{
    return (sim_comm *)(void *)c;
}

/* ---- under the lock ---- */

/* The first reason stays; everybody who waits gets it. */
static void hub_fail(sim_hub *h, dt_status st, const char *why)
{
    if (h->failed == DT_OK) {
        h->failed = st;
        snprintf(h->why, sizeof(h->why), "%s", why);
    }
    pthread_cond_broadcast(&h->changed);
}

static void describe(const sim_hub *h, uint32_t rank, char out[96])
{
    const sim_call *call = &h->call[rank];
    switch (call->op) {
    case SIM_BARRIER:
        snprintf(out, 96, "rank %u called barrier", rank);
        break;
    case SIM_ALL_GATHER:
        snprintf(out, 96, "rank %u called all_gather of %zu bytes", rank, call->bytes);
        break;
    default:
        snprintf(out, 96, "rank %u called %s of %zu bytes with rank %u", rank, op_names[call->op], call->bytes,
                 call->other);
        break;
    }
}

static bool calls_match(const sim_hub *h, uint32_t a, uint32_t b)
{
    const sim_call *x = &h->call[a], *y = &h->call[b];
    return x->op == y->op && x->bytes == y->bytes && (x->op != SIM_BROADCAST || x->other == y->other);
}

/* All ranks are here: the same call on each, and peers that name each other. */
static void compare_calls(sim_hub *h)
{
    for (uint32_t r = 0; r < h->size; r++) {
        uint32_t with = h->call[r].op == SIM_EXCHANGE ? h->call[r].other : 0;
        bool is_fine = calls_match(h, r, 0) && (h->call[r].op != SIM_EXCHANGE || h->call[with].other == r);
        if (!is_fine) {
            uint32_t blamed = calls_match(h, r, 0) ? with : 0;
            char a[96], b[96], why[256];
            describe(h, blamed, a);
            describe(h, r, b);
            snprintf(why, sizeof(why), "collective %llu does not match: %s, %s", (unsigned long long)h->sequence, a, b);
            hub_fail(h, DT_ECOMM, why);
            return;
        }
    }
}

static void time_out(sim_hub *h, uint32_t rank)
{
    char mine[96];
    describe(h, rank, mine);
    dt_str missing = {0};
    for (uint32_t r = 0; r < h->size; r++) {
        if (!h->call[r].is_here) {
            dt_str_addf(&missing, " %u", r);
        }
    }
    char why[400];
    snprintf(why, sizeof(why), "collective %llu: %s and waited %g s in vain for rank%s",
             (unsigned long long)h->sequence + 1, mine, h->timeout_s, dt_str_text(&missing));
    dt_str_fini(&missing);
    hub_fail(h, DT_ECOMM, why);
}

/* ---- meetings ---- */

static struct timespec deadline_in(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double whole = seconds < 1e9 ? seconds : 1e9;
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)((whole - (double)(time_t)whole) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* First meeting: lay down the call and wait until all did. Copying may begin when it returns DT_OK. */
static dt_status meet(dt_comm *c, sim_call call)
{
    sim_hub *h = sim_of(c)->hub;
    const struct timespec deadline = deadline_in(h->timeout_s);
    pthread_mutex_lock(&h->lock);
    call.is_here = true;
    h->call[c->rank] = call;
    const uint64_t meeting = h->meeting;
    if (h->failed == DT_OK && ++h->n_here == h->size) {
        h->sequence++;
        compare_calls(h);
        if (h->failed == DT_OK) {
            h->n_here = 0;
            h->meeting++;
            pthread_cond_broadcast(&h->changed);
        }
    }
    while (h->meeting == meeting && h->failed == DT_OK) {
        int reason = pthread_cond_timedwait(&h->changed, &h->lock, &deadline);
        if (reason == ETIMEDOUT && h->meeting == meeting && h->failed == DT_OK) {
            time_out(h, c->rank);
        }
    }
    dt_status st = DT_OK;
    if (h->meeting == meeting) { /* it did not take place */
        st = DT_FAIL(h->failed, "%s", h->why);
    }
    pthread_mutex_unlock(&h->lock);
    return st;
}

/* Second meeting: my buffers may be used again when it returns. */
static void part(dt_comm *c)
{
    sim_hub *h = sim_of(c)->hub;
    pthread_mutex_lock(&h->lock);
    h->call[c->rank].is_here = false;
    const uint64_t meeting = h->meeting;
    if (++h->n_here == h->size) {
        h->n_here = 0;
        h->meeting++;
        pthread_cond_broadcast(&h->changed);
    }
    while (h->meeting == meeting) {
        pthread_cond_wait(&h->changed, &h->lock);
    }
    pthread_mutex_unlock(&h->lock);
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && to != from) {
        memcpy(to, from, bytes);
    }
}

static dt_status sim_all_gather(dt_comm *c, const void *mine, size_t bytes, void *all)
{
    DT_TRY(meet(c, (sim_call){.op = SIM_ALL_GATHER, .bytes = bytes, .mine = mine}));
    for (uint32_t r = 0; r < c->size; r++) {
        copy((char *)all + r * bytes, sim_of(c)->hub->call[r].mine, bytes);
    }
    part(c);
    return DT_OK;
}

static dt_status sim_exchange(dt_comm *c, uint32_t peer, const void *mine, void *theirs, size_t bytes)
{
    DT_TRY(meet(c, (sim_call){.op = SIM_EXCHANGE, .other = peer, .bytes = bytes, .mine = mine}));
    copy(theirs, sim_of(c)->hub->call[peer].mine, bytes);
    part(c);
    return DT_OK;
}

static dt_status sim_broadcast(dt_comm *c, uint32_t root, void *data, size_t bytes)
{
    DT_TRY(meet(c, (sim_call){.op = SIM_BROADCAST, .other = root, .bytes = bytes, .mine = data}));
    copy(data, sim_of(c)->hub->call[root].mine, bytes);
    part(c);
    return DT_OK;
}

static dt_status sim_barrier(dt_comm *c)
{
    DT_TRY(meet(c, (sim_call){.op = SIM_BARRIER}));
    part(c);
    return DT_OK;
}

static void sim_abandon(dt_comm *c, const char *why)
{
    sim_hub *h = sim_of(c)->hub;
    char text[400];
    snprintf(text, sizeof(text), "rank %u left: %s", c->rank,
             why != NULL && why[0] != '\0' ? why : "it gave no reason");
    pthread_mutex_lock(&h->lock);
    sim_of(c)->has_left = true;
    hub_fail(h, DT_EPEER, text);
    pthread_mutex_unlock(&h->lock);
}

/* ---- life ---- */

static void hub_destroy(sim_hub *h)
{
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    dt_free(h);
}

static void sim_destroy(dt_comm *c)
{
    sim_hub *h = sim_of(c)->hub;
    if (!sim_of(c)->has_left) {
        sim_abandon(c, "its communicator was destroyed");
    }
    pthread_mutex_lock(&h->lock);
    bool is_last = --h->n_alive == 0;
    pthread_mutex_unlock(&h->lock);
    if (is_last) {
        hub_destroy(h);
    }
    dt_comm_fini(c);
    dt_free(c);
}

static dt_status hub_create(uint32_t ranks, double timeout_s, sim_hub **out_p)
{
    size_t bytes = 0;
    sim_hub *h = NULL;
    if (dt_mul_size(ranks, sizeof(h->call[0]), &bytes)) {
        h = dt_alloc(sizeof(*h) + bytes);
    }
    if (h == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u virtual ranks", ranks);
    }
    h->size = ranks;
    h->timeout_s = timeout_s;
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &attr);
    pthread_condattr_destroy(&attr);
    *out_p = h;
    return DT_OK;
}

dt_status dt_comm_sim(uint32_t ranks, double timeout_s, dt_comm **out)
{
    static const dt_comm_ops ops = {"sim",       sim_all_gather, sim_exchange, sim_broadcast,
                                    sim_barrier, sim_abandon,    sim_destroy};
    if (ranks == 0 || ranks > 1024 || !(timeout_s > 0)) {
        return DT_FAIL(DT_EINVAL, "sim communicator with %u ranks (1 to 1024) and a time limit of %g s (above 0)",
                       ranks, timeout_s);
    }
    sim_hub *h = NULL;
    DT_TRY(hub_create(ranks, timeout_s, &h));
    dt_status st = DT_OK;
    for (uint32_t r = 0; r < ranks && st == DT_OK; r++) {
        sim_comm *s = dt_alloc(sizeof(*s));
        st = s == NULL ? DT_FAIL(DT_ENOMEM, "out of memory for virtual rank %u", r)
                       : dt_comm_init(&s->common, &ops, r, ranks);
        if (st != DT_OK) {
            dt_free(s);
            break;
        }
        s->hub = h;
        out[r] = &s->common;
        h->n_alive++;
    }
    if (st != DT_OK) {
        bool is_empty = h->n_alive == 0;
        for (uint32_t r = h->n_alive; r-- > 0;) { /* the last one takes the hub along */
            sim_destroy(out[r]);
            out[r] = NULL;
        }
        if (is_empty) {
            hub_destroy(h);
        }
    }
    return st;
}
