/* SPDX-License-Identifier: Apache-2.0
 *
 * See world.h. The rank that runs holds the turn, and everything here belongs to it; it hands the turn on under the
 * lock and waits until it comes back.
 */
#include <config.h>

#include "world.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { NO_RANK = UINT32_MAX, STACK_BYTES = 1 << 20, TEXT_BYTES = DT_RENDEZVOUS_TEXT };
#define POLL_S 1e-6 /* what a look takes that finds nothing; twice as long each time, up to a thousand times */

typedef enum phase { BEFORE_START, STARTED, BEFORE_WAIT, WAITING, DONE } phase;
typedef enum rank_state { READY, BLOCKED, ENDED } rank_state;

typedef struct world world;

typedef struct world_rank {
    dt_comm common;
    world *w;
    pthread_t thread;
    pthread_cond_t turn;
    rank_state state;
    double wake;       /* BLOCKED: until then */
    uint32_t waits_on; /* a slot, or NOBODY */
    uint64_t started, visits;
    double begun_at[DT_COMM_IN_FLIGHT], done_at[DT_COMM_IN_FLIGHT]; /* by slot */
    uint8_t ahead[DT_COMM_IN_FLIGHT];                               /* by sequence: the slot */
    double slow_s, poll_s;
    double news_at; /* when it hears that all is over, and why */
    dt_status news;
    char why[TEXT_BYTES];
    bool is_gone;
} world_rank;

struct world {
    const dt_world_desc *d;
    dt_world_body *body;
    void *user;
    dt_world_report *out;
    pthread_mutex_t lock;
    pthread_cond_t is_over;
    uint32_t current; /* whose turn it is */
    bool is_broken;   /* nothing takes place any more */
    bool is_cancelled;
    double now;
    dt_links links;
    double *begin, *done; /* [ranks] of the collective that takes place */
    const dt_comm_call **calls;
    world_rank *rank; /* [ranks] */
};

static world_rank *rank_of(dt_comm *c)
{
    return (world_rank *)(void *)c;
}

const char *dt_world_point(uint32_t point)
{
    static const char *const names[] = {"before_start", "started", "before_wait", "waiting", "done"};
    static _Thread_local char text[40];
    snprintf(text, sizeof(text), "%s.%s", dt_comm_op_name((dt_comm_op)(point / DT_WORLD_PHASES)),
             names[point % DT_WORLD_PHASES]);
    return text;
}

/* ---- what happens ------------------------------------------------------------------------------------------------ */

static void note(world_rank *r, const char *what, uint64_t number)
{
    world *w = r->w;
    struct {
        double now;
        uint64_t number;
        char what[24];
        uint32_t rank, reserved;
    } e;
    memset(&e, 0, sizeof(e));
    e.now = w->now;
    e.number = number;
    e.rank = r->common.rank;
    snprintf(e.what, sizeof(e.what), "%s", what);
    w->out->trace = dt_hash64(&e, sizeof(e), w->out->trace);
    w->out->events++;
    if (w->d->notify != NULL) {
        char line[TEXT_BYTES];
        snprintf(line, sizeof(line), "%12.9f  rank %-4u %s %llu", w->now, r->common.rank, what,
                 (unsigned long long)number);
        w->d->notify(w->d->user, line);
    }
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

/* Those whose time has come; where no rank is ready, time goes on. A rank that waits for ever continues when all others
 * do. */
static uint32_t wake_some(world *w)
{
    double first = INFINITY;
    uint32_t n_ready = 0, n_left = 0;
    for (uint32_t r = 0; r < w->d->ranks; r++) {
        world_rank *k = &w->rank[r];
        if (k->state == BLOCKED && k->wake <= w->now) {
            k->state = READY;
        }
        n_ready += k->state == READY;
        n_left += k->state != ENDED;
        first = k->state == BLOCKED && k->wake < first ? k->wake : first;
    }
    if (n_ready > 0 || n_left == 0) {
        return n_ready;
    }
    for (uint32_t r = 0; r < w->d->ranks; r++) {
        world_rank *k = &w->rank[r];
        if (k->state == BLOCKED && (k->wake <= first || isinf(first))) {
            k->state = READY;
            n_ready++;
        }
    }
    w->now = isinf(first) ? w->now : first;
    return n_ready;
}

static uint32_t next_turn(world *w)
{
    const uint32_t n = wake_some(w);
    uint32_t k = n > 1 ? (uint32_t)(dt_links_draw(&w->links) * n) : 0;
    for (uint32_t r = 0; r < w->d->ranks && n > 0; r++) {
        if (w->rank[r].state == READY && k-- == 0) {
            return r;
        }
    }
    return NO_RANK;
}

static void hand_on(world_rank *r)
{
    world *w = r->w;
    const uint32_t me = r->common.rank, next = next_turn(w);
    if (next == me) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->current = next;
    pthread_cond_signal(next == NO_RANK ? &w->is_over : &w->rank[next].turn);
    while (r->state != ENDED && w->current != me) {
        pthread_cond_wait(&r->turn, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

static void block(world_rank *r, double until)
{
    r->state = BLOCKED;
    r->wake = until;
    hand_on(r);
    r->waits_on = NO_RANK;
}

/* ---- bad news ---------------------------------------------------------------------------------------------------- */

static void hear(world_rank *r, double at, dt_status st, const char *why)
{
    if (at >= r->news_at) {
        return;
    }
    r->news_at = at;
    r->news = st;
    snprintf(r->why, sizeof(r->why), "%s", why);
    if (r->state == BLOCKED && r->waits_on != NO_RANK && at < r->wake) {
        r->wake = at;
    }
}

static dt_status is_well(world_rank *r)
{
    return r->news_at > r->w->now ? DT_OK : DT_FAIL(r->news, "%s", r->why);
}

/* What it has begun and is not done with stays undone at all who are not done with it either. */
static void take_along(world_rank *r)
{
    world *w = r->w;
    for (uint32_t k = 0; k < DT_COMM_IN_FLIGHT; k++) {
        const uint64_t sequence = r->common.slot[k].sequence;
        for (uint32_t o = 0; o < w->d->ranks && sequence != 0 && r->done_at[k] > w->now; o++) {
            world_rank *other = &w->rank[o];
            for (uint32_t i = 0; i < DT_COMM_IN_FLIGHT; i++) {
                if (other->common.slot[i].sequence == sequence && other->done_at[i] > w->now) {
                    other->done_at[i] = INFINITY;
                }
            }
        }
    }
}

/* The rank is gone; others hear of it after so long, and not all at once. */
static void go(world_rank *r, dt_status own, const char *own_why, double others_s, const char *why)
{
    world *w = r->w;
    if (r->is_gone) {
        return;
    }
    r->is_gone = w->is_broken = true;
    take_along(r);
    for (uint32_t o = 0; o < w->d->ranks; o++) {
        if (o != r->common.rank && !isinf(others_s) && !w->links.is_cut[r->common.rank] && !w->links.is_cut[o]) {
            hear(&w->rank[o], w->now + others_s * (1 + dt_links_draw(&w->links) / 2), DT_EPEER, why);
        }
    }
    r->news_at = w->now;
    r->news = own;
    snprintf(r->why, sizeof(r->why), "%s", own_why);
}

static void world_leave(dt_comm *c, const char *why)
{
    char text[TEXT_BYTES];
    world_rank *r = rank_of(c);
    snprintf(text, sizeof(text), "rank %u left: %s", c->rank, why);
    note(r, "leaves", r->visits);
    go(r, DT_EPEER, text, r->w->d->links.latency_s, text);
}

static void world_abort(dt_comm *c, const char *why)
{
    char text[TEXT_BYTES];
    snprintf(text, sizeof(text), "aborted: %s", why);
    world_leave(c, text);
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

static dt_status strike(world_rank *r, dt_fate *f, uint32_t point)
{
    world *w = r->w;
    char text[TEXT_BYTES], own[TEXT_BYTES / 2];
    f->is_struck = true;
    f->point = point;
    f->at_s = w->now;
    note(r, "is struck", (uint64_t)f->kind);
    switch (f->kind) {
    case DT_FATE_SLOW:
        r->slow_s = f->seconds;
        return DT_OK;
    case DT_FATE_STOPS:
        block(r, w->now + f->seconds);
        return DT_OK;
    case DT_FATE_CUT:
        w->links.is_cut[r->common.rank] = true;
        return DT_OK;
    case DT_FATE_FAILS:
        snprintf(own, sizeof(own), "rank %u fails in this world at %s", r->common.rank, dt_world_point(point));
        snprintf(text, sizeof(text), "rank %u left: %s", r->common.rank, own);
        go(r, DT_EDATA, own, w->d->links.latency_s, text);
        return is_well(r);
    default:
        snprintf(text, sizeof(text), "rank %u died", r->common.rank);
        snprintf(own, sizeof(own), "rank %u died in this world at %s", r->common.rank, dt_world_point(point));
        go(r, DT_EPEER, own, w->d->detect_s, text);
        return is_well(r);
    }
}

static bool is_due(const world_rank *r, const dt_fate *f, uint64_t visit, uint32_t point)
{
    return !f->is_struck && f->rank == r->common.rank && visit >= f->visit &&
           (f->where == point || f->where >= DT_WORLD_POINTS);
}

static uint32_t point_of(const dt_comm_slot *s, phase at)
{
    return (uint32_t)s->call.op * DT_WORLD_PHASES + (uint32_t)at;
}

static dt_status visit(world_rank *r, uint32_t slot, phase at)
{
    static const char *const names[] = {"before start", "started", "before wait", "waiting", "done"};
    const dt_comm_slot *s = &r->common.slot[slot];
    r->visits++;
    note(r, names[at], s->sequence);
    for (uint32_t i = 0; i < r->w->d->n_fates && !r->is_gone; i++) {
        dt_fate *f = &r->w->d->fate[i];
        if (is_due(r, f, r->visits, point_of(s, at))) {
            DT_TRY(strike(r, f, point_of(s, at)));
        }
    }
    if (r->slow_s > 0) {
        block(r, r->w->now + r->slow_s);
    }
    return r->is_gone ? is_well(r) : DT_OK;
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static void take_place(world *w, uint64_t sequence)
{
    const uint32_t size = w->d->ranks;
    char why[DT_RENDEZVOUS_TEXT];
    for (uint32_t q = 0; q < size; q++) {
        const uint32_t k = w->rank[q].ahead[sequence % DT_COMM_IN_FLIGHT];
        w->calls[q] = &w->rank[q].common.slot[k].call;
        w->begin[q] = w->rank[q].begun_at[k];
    }
    const dt_rendezvous m = {.sequence = sequence, .size = size, .call = w->calls};
    const bool matches = dt_rendezvous_check(&m, why) == DT_OK;
    if (matches) {
        dt_rendezvous_execute(&m);
        dt_links_carry(&w->links, &m, w->begin, w->done);
    }
    w->is_broken = !matches;
    for (uint32_t q = 0; q < size; q++) {
        world_rank *r = &w->rank[q];
        const uint32_t k = r->ahead[sequence % DT_COMM_IN_FLIGHT];
        if (!matches) {
            hear(r, w->now + w->d->links.latency_s * (1 + dt_links_draw(&w->links)), DT_ECOMM, why);
            continue;
        }
        r->done_at[k] = w->done[q] > w->now ? w->done[q] : w->now;
        if (r->state == BLOCKED && r->waits_on == k && r->done_at[k] < r->wake) {
            r->wake = r->done_at[k];
        }
    }
}

static uint64_t fewest_started(const world *w)
{
    uint64_t fewest = UINT64_MAX;
    for (uint32_t q = 0; q < w->d->ranks; q++) {
        fewest = w->rank[q].started < fewest ? w->rank[q].started : fewest;
    }
    return fewest;
}

static dt_status world_start(dt_comm *c, uint32_t slot)
{
    world_rank *r = rank_of(c);
    const uint64_t sequence = c->slot[slot].sequence;
    r->done_at[slot] = INFINITY;
    DT_TRY(visit(r, slot, BEFORE_START));
    if (dt_links_draw(&r->w->links) < 0.25) { /* others may go first; often enough, and turns are dear */
        r->state = READY;
        hand_on(r);
        DT_TRY(is_well(r));
    }
    r->started = sequence;
    r->begun_at[slot] = r->w->now;
    r->ahead[sequence % DT_COMM_IN_FLIGHT] = (uint8_t)slot;
    if (!r->w->is_broken && fewest_started(r->w) == sequence) {
        take_place(r->w, sequence);
    }
    return visit(r, slot, STARTED);
}

static dt_status time_out(world_rank *r, const dt_comm_slot *s)
{
    const world *w = r->w;
    const uint64_t fewest = fewest_started(w);
    char mine[DT_COMM_CALL_BYTES];
    dt_str missing = {0};
    dt_comm_describe_call(r->common.rank, &s->call, mine);
    for (uint32_t q = 0; q < w->d->ranks && fewest < s->sequence; q++) {
        if (w->rank[q].started == fewest) {
            dt_str_addf(&missing, " %u", q);
        }
    }
    note(r, "timed out", s->sequence);
    r->news_at = w->now;
    r->news = DT_ECOMM;
    snprintf(r->why, sizeof(r->why), "collective %llu: %s and timed out after %g s waiting for %s%s",
             (unsigned long long)s->sequence, mine, s->timeout_s, fewest < s->sequence ? "rank" : "what others send",
             dt_str_text(&missing));
    dt_str_fini(&missing);
    return is_well(r);
}

static bool is_any_due(const world_rank *r, uint32_t slot)
{
    const uint32_t point = point_of(&r->common.slot[slot], WAITING);
    for (uint32_t i = 0; i < r->w->d->n_fates; i++) {
        if (is_due(r, &r->w->d->fate[i], r->visits + 1, point)) {
            return true;
        }
    }
    return false;
}

static void block_for(world_rank *r, uint32_t slot, double until)
{
    r->waits_on = slot;
    block(r, until);
}

/* It has to wait: what strikes it here does so at some moment before it would have gone on. */
static dt_status wait_once(world_rank *r, uint32_t slot, double end)
{
    double until = r->done_at[slot] < r->news_at ? r->done_at[slot] : r->news_at;
    until = until < end ? until : end;
    if (is_any_due(r, slot)) {
        block_for(r, slot, r->w->now + (until - r->w->now) * dt_links_draw(&r->w->links));
        return visit(r, slot, WAITING);
    }
    block_for(r, slot, until);
    return DT_OK;
}

static dt_status world_look(dt_comm *c, uint32_t slot, bool waits, bool *done_p)
{
    world_rank *r = rank_of(c);
    world *w = r->w;
    dt_comm_slot *s = &c->slot[slot];
    s->since = s->since < 0 ? w->now : s->since;
    if (waits) {
        DT_TRY(visit(r, slot, BEFORE_WAIT));
    }
    while (r->done_at[slot] > w->now) {
        DT_TRY(is_well(r));
        if (w->now >= s->since + s->timeout_s) {
            return time_out(r, s);
        }
        if (!waits) {
            block(r, w->now + r->poll_s);
            r->poll_s = r->poll_s < 1000 * POLL_S ? 2 * r->poll_s : r->poll_s;
            *done_p = false;
            return DT_OK;
        }
        DT_TRY(wait_once(r, slot, s->since + s->timeout_s));
    }
    r->poll_s = POLL_S;
    DT_TRY(visit(r, slot, DONE));
    *done_p = true;
    return DT_OK;
}

static void world_destroy(dt_comm *c)
{
    (void)c; /* the world's */
}

static const dt_comm_ops world_ops = {"world", world_start, world_look, world_abort, world_leave, NULL, world_destroy};

dt_status dt_world_work(dt_comm *c, double seconds)
{
    if (c->ops == &world_ops) {
        world_rank *r = rank_of(c);
        if (r->is_gone) {
            return is_well(r);
        }
        block(r, r->w->now + seconds + r->slow_s);
    }
    return DT_OK;
}

double dt_world_now(const dt_comm *c)
{
    return c->ops == &world_ops ? ((const world_rank *)(const void *)c)->w->now : 0;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void *run_rank(void *user)
{
    world_rank *r = user;
    world *w = r->w;
    pthread_mutex_lock(&w->lock);
    while (w->current != r->common.rank) {
        pthread_cond_wait(&r->turn, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    if (!w->is_cancelled) {
        dt_world_end *end = &w->out->end[r->common.rank];
        dt_error_clear();
        const dt_status st = w->body(&r->common, w->user);
        dt_error_save(&end->error, st);
        if (st < 0) {
            dt_comm_abandon(&r->common, dt_error_text());
        }
        note(r, dt_status_name(st), r->visits);
        end->at_s = w->now;
    }
    r->state = ENDED;
    hand_on(r);
    return NULL;
}

static dt_status check(const dt_world_desc *d)
{
    if (d->ranks == 0 || d->ranks > 1024) {
        return DT_FAIL(DT_EINVAL, "a world of %u ranks; must be 1 to 1024", d->ranks);
    }
    if (!(d->timeout_s > 0) || isinf(d->timeout_s) || !(d->detect_s >= 0)) {
        return DT_FAIL(DT_EINVAL,
                       "a world with a time limit of %g s (above 0) where a death is heard after %g s "
                       "(at least 0)",
                       d->timeout_s, d->detect_s);
    }
    for (uint32_t i = 0; i < d->n_fates; i++) {
        if (d->fate[i].rank >= d->ranks || d->fate[i].kind >= DT_FATE_KINDS || !(d->fate[i].seconds >= 0)) {
            return DT_FAIL(DT_EINVAL, "fate %u strikes rank %u, there are ranks 0 to %u; its time is %g s", i,
                           d->fate[i].rank, d->ranks - 1, d->fate[i].seconds);
        }
    }
    return DT_OK;
}

static dt_status build(world *w)
{
    const uint32_t n = w->d->ranks;
    DT_TRY(dt_links_init(&w->links, &w->d->links, n, w->d->seed));
    w->begin = dt_alloc_n((size_t)n * 2, sizeof(double));
    w->calls = dt_alloc_n(n, sizeof(w->calls[0]));
    w->rank = dt_alloc_n(n, sizeof(w->rank[0]));
    if (w->begin == NULL || w->calls == NULL || w->rank == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a world of %u ranks", n);
    }
    w->done = w->begin + n;
    for (uint32_t r = 0; r < n; r++) {
        world_rank *k = &w->rank[r];
        DT_TRY(dt_comm_init(&k->common, &world_ops, r, n));
        k->common.timeout_s = w->d->timeout_s;
        k->w = w;
        k->news_at = INFINITY;
        k->waits_on = NO_RANK;
        k->poll_s = POLL_S;
        w->out->end[r] = (dt_world_end){.at_s = 0};
    }
    return DT_OK;
}

static void unbuild(world *w)
{
    for (uint32_t r = 0; r < w->d->ranks && w->rank != NULL; r++) {
        dt_comm_fini(&w->rank[r].common);
    }
    dt_free(w->rank);
    dt_free(w->calls);
    dt_free(w->begin);
    dt_links_fini(&w->links);
}

static dt_status run_all(world *w)
{
    const uint32_t n = w->d->ranks;
    pthread_attr_t attr;
    uint32_t n_threads = 0;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->is_over, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    w->current = NO_RANK;
    for (uint32_t r = 0; r < n; r++) {
        pthread_cond_init(&w->rank[r].turn, NULL);
    }
    while (n_threads < n && pthread_create(&w->rank[n_threads].thread, &attr, run_rank, &w->rank[n_threads]) == 0) {
        n_threads++;
    }
    w->is_cancelled = n_threads < n;
    for (uint32_t r = n_threads; r < n; r++) {
        w->rank[r].state = ENDED;
    }
    pthread_mutex_lock(&w->lock);
    w->current = next_turn(w);
    if (w->current != NO_RANK) {
        pthread_cond_signal(&w->rank[w->current].turn);
    }
    while (w->current != NO_RANK) {
        pthread_cond_wait(&w->is_over, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    for (uint32_t r = 0; r < n_threads; r++) {
        pthread_join(w->rank[r].thread, NULL);
    }
    for (uint32_t r = 0; r < n; r++) {
        pthread_cond_destroy(&w->rank[r].turn);
    }
    pthread_attr_destroy(&attr);
    pthread_cond_destroy(&w->is_over);
    pthread_mutex_destroy(&w->lock);
    return w->is_cancelled ? DT_FAIL(DT_EIO, "no threads for %u virtual ranks, %u were given", n, n_threads) : DT_OK;
}

dt_status dt_world_run(const dt_world_desc *d, dt_world_body *body, void *user, dt_world_report *out)
{
    world w = {.d = d, .body = body, .user = user, .out = out};
    DT_TRY(check(d));
    out->seconds = 0;
    out->events = out->trace = 0;
    dt_status st = build(&w);
    if (st == DT_OK) {
        st = run_all(&w);
    }
    out->seconds = w.now;
    unbuild(&w);
    return st;
}
