/* SPDX-License-Identifier: Apache-2.0
 *
 * The communicator over a transport; see processes.h.
 */
#include <config.h>

#include "comm/comm_impl.h"
#include "comm/peers.h"
#include "comm/suspension.h"
#include "comm/processes.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/mem.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct flight {            /* a request under way, by slot */
    dt_transport_request *message; /* [cap] */
    uint32_t n, cap;
    dt_transport_request compared;
    uint64_t word, words[2]; /* what this rank calls; what the comparison makes of all ranks' */
} flight;

/* What a rank sends to the others where calls do not match. */
typedef struct announced_call {
    dt_status status; /* of dt_comm_call */
    char text[DT_COMM_CALL_BYTES], why[512];
} announced_call;

typedef struct process_comm {
    dt_comm common;
    const dt_transport_ops *t;
    dt_transport_info info;
    flight flight[DT_COMM_IN_FLIGHT];
    uint64_t started, verified;         /* collectives that began; that all ranks are known to have called alike */
    uint8_t slot_of[DT_COMM_IN_FLIGHT]; /* by sequence: of one that began and is not verified */
    double polled_s, looked;            /* when lost ranks were last looked for */
    dt_suspension stood;                /* since the last collective that ended well */
    double watched_since, watched_lost; /* a wait by another library; seconds of it in which this rank itself stood */
    dt_peers *peers;
    bool is_pending;  /* it was given up: the library may still write into buffers */
    dt_status failed; /* DT_OK while all is well */
    char why[512];
    announced_call *calls; /* [size + 1] where calls do not match; the last is that of this rank */
    pthread_t owner;
    pthread_mutex_t aborting; /* abort may come from any thread; the owner's sees to it */
    atomic_bool is_aborted;
    char abort_why[256];
} process_comm;

enum { TAGS = 32768 };

static process_comm *as_process(dt_comm *c)
{
    return (process_comm *)(void *)c;
}

/* ---- failure ----------------------------------------------------------------------------------------------------- */

static bool has_in_flight(const process_comm *p)
{
    for (uint32_t k = 0; k < DT_COMM_IN_FLIGHT; k++) {
        if (p->common.slot[k].sequence != 0) {
            return true;
        }
    }
    return false;
}

/* The first reason stays, and is sent to all ranks. */
static dt_status fail_all(process_comm *p, dt_status st, bool announces)
{
    if (p->failed == DT_OK) {
        const double now = dt_clock_s();
        char stood[DT_SUSPENSION_TEXT_BYTES];
        (void)dt_suspension_check(&p->stood, now);
        dt_suspension_text(&p->stood, now, stood);
        p->failed = st;
        snprintf(p->why, sizeof(p->why), "%.*s%s", (int)(sizeof(p->why) - sizeof(stood)), dt_error_text(), stood);
        st = stood[0] != '\0' ? DT_FAIL(st, "%s", p->why) : st;
        if (announces) {
            dt_peers_announce_exit(p->peers, p->why);
        }
    }
    p->is_pending = p->is_pending || has_in_flight(p);
    return st;
}

static dt_status fail_aborted(process_comm *p)
{
    pthread_mutex_lock(&p->aborting);
    const dt_status st = DT_FAIL(DT_EPEER, "aborted: %s", p->abort_why);
    pthread_mutex_unlock(&p->aborting);
    (void)fail_all(p, st, true);
    snprintf(p->why, sizeof(p->why), "rank %u left: aborted: %s", p->common.rank, p->abort_why);
    return DT_FAIL(st, "%s", p->why);
}

static dt_status check_health(process_comm *p)
{
    if (p->failed != DT_OK) {
        return DT_FAIL(p->failed, "%s", p->why);
    }
    return atomic_load(&p->is_aborted) ? fail_aborted(p) : DT_OK;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Busy at first, since most waits are short; then others may use the core; then it sleeps between two looks. */
static void sleep_briefly(uint64_t look, double waited_s)
{
    if (waited_s > 2e-3) {
        const struct timespec nap = {.tv_nsec = 50000};
        nanosleep(&nap, NULL);
    } else if (look % 16 == 0) {
        sched_yield();
    }
}

static const double LISTEN_S = 1e-3, LOOK_S = 0.05;

/* Has a rank left or died, or has the time limit passed? what: this rank's name for it, NULL: as it was called. */
static dt_status has_timed_out(process_comm *p, const dt_comm_slot *s, const char *what, double now)
{
    char mine[DT_COMM_CALL_BYTES];
    dt_status st = DT_OK;
    if (now - p->polled_s > LISTEN_S) {
        p->polled_s = now;
        st = dt_peers_poll(p->peers);
    }
    if (st < 0) {
        return fail_all(p, st, false);
    }
    if (now - s->since > LOOK_S && now - p->looked > LOOK_S) {
        p->looked = now;
        st = dt_peers_check_local(p->peers);
    }
    if (st < 0) {
        return fail_all(p, st, true);
    }
    if (now - s->since > s->timeout_s) {
        if (what != NULL) {
            snprintf(mine, sizeof(mine), "rank %u %s", p->common.rank, what);
        } else {
            dt_comm_describe_call(p->common.rank, &s->call, mine);
        }
        return fail_all(p, dt_peers_diagnose_timeout(p->peers, s->sequence, mine, s->timeout_s), true);
    }
    return DT_OK;
}

/* Calls step until it reports that something is done. */
typedef dt_status step_fn(process_comm *p, void *user, bool *done_p);

static dt_status wait_until(process_comm *p, dt_comm_slot *s, step_fn *step, void *user)
{
    const double start_call = dt_clock_s();
    double now = start_call;
    s->since = s->since < 0 ? start_call : s->since;
    for (uint64_t look = 0;; look++) {
        bool is_done = false;
        DT_TRY(step(p, user, &is_done));
        if (is_done) {
            dt_suspension_reset(&p->stood);
            return DT_OK;
        }
        if (look % 16 == 15 || now - start_call > 2e-3) {
            now = dt_clock_s();
            s->since += dt_suspension_check(&p->stood, now); /* meanwhile it was not waiting */
        }
        DT_TRY(check_health(p));
        DT_TRY(has_timed_out(p, s, NULL, now));
        sleep_briefly(look, now - start_call);
    }
}

static dt_status test_messages(process_comm *p, dt_transport_request *request, uint32_t n, bool *done_p)
{
    const dt_status st = p->t->test(request, n, done_p);
    return st < 0 ? fail_all(p, st, true) : DT_OK;
}

/* ---- the same call everywhere ------------------------------------------------------------------------------------ */

static uint64_t call_signature(const process_comm *p, const dt_comm_slot *s)
{
    struct {
        uint64_t sequence, bytes, cut;
        uint32_t op, root;
    } all;
    memset(&all, 0, sizeof(all));
    all.sequence = s->sequence;
    all.bytes = s->call.bytes;
    all.cut = s->call.n != NULL ? dt_hash64(s->call.n, p->common.size * sizeof(*s->call.n), 0) : 0;
    all.op = s->call.op;
    all.root = s->call.root;
    return dt_hash64(&all, sizeof(all), 0);
}

static dt_status advance_piece(process_comm *p, void *user, bool *done_p)
{
    return test_messages(p, user, 1, done_p);
}

/* Under way is what was called and may never end: this goes by messages, which have a communicator of their own. */
static dt_status exchange_calls(process_comm *p, dt_comm_slot *s)
{
    const dt_comm *c = &p->common;
    announced_call *mine = &p->calls[c->size];
    for (uint32_t k = 0; k < 2 * c->size; k++) {
        const uint32_t other = k % c->size;
        dt_transport_request r = {0};
        if (other == c->rank) {
            continue;
        }
        const dt_status st = k < c->size ? p->t->send(other, mine, sizeof(*mine), TAGS, &r)
                                         : p->t->receive(other, &p->calls[other], sizeof(*mine), TAGS, &r);
        if (st < 0) {
            return fail_all(p, st, true);
        }
        DT_TRY(wait_until(p, s, advance_piece, &r));
    }
    p->calls[c->rank] = *mine;
    for (uint32_t r = 0; r < c->size; r++) {
        p->calls[r].text[sizeof(mine->text) - 1] = p->calls[r].why[sizeof(mine->why) - 1] = '\0';
    }
    return DT_OK;
}

/* All ranks know that calls differ; so all send theirs, and report the same text: the failure that one brings to an
 * agreement in place of the call of the others, or two calls that differ. */
static dt_status name_mismatch(process_comm *p, dt_comm_slot *s)
{
    const dt_comm *c = &p->common;
    uint32_t other = 0;
    p->calls = p->calls != NULL ? p->calls : dt_alloc_n(c->size + (size_t)1, sizeof(*p->calls));
    if (p->calls == NULL) {
        return fail_all(p, DT_FAIL(DT_ENOMEM, "out of memory for a communicator of %u ranks", c->size), true);
    }
    announced_call *mine = &p->calls[c->size];
    memset(mine, 0, sizeof(*mine));
    mine->status = s->call.status;
    dt_comm_describe_call(c->rank, &s->call, mine->text);
    snprintf(mine->why, sizeof(mine->why), "%s", s->call.status < 0 ? s->call.why : "");
    DT_TRY(exchange_calls(p, s));
    for (uint32_t from = 0; from < c->size; from++) {
        const announced_call *theirs = &p->calls[from];
        if (theirs->status < 0) {
            return fail_all(p, DT_FAIL(theirs->status, "rank %u: %s", from, theirs->why), false);
        }
        const char *what = strchr(theirs->text, 'c'), *first = strchr(p->calls[0].text, 'c'); /* after the rank */
        other = other == 0 && what != NULL && first != NULL && strcmp(what, first) != 0 ? from : other;
    }
    const dt_status st =
        DT_FAIL(DT_ECOMM, "collective %llu does not match: %s, %s%s", (unsigned long long)s->sequence, p->calls[0].text,
                p->calls[other != 0 ? other : c->size - 1].text, other != 0 ? "" : ", cut differently");
    return fail_all(p, st, false);
}

static dt_status compare_signatures(process_comm *p, uint32_t slot)
{
    const dt_comm_slot *s = &p->common.slot[slot];
    flight *f = &p->flight[slot];
    f->word = call_signature(p, s);
    f->words[0] = f->word;
    f->words[1] = ~f->word;
    p->slot_of[s->sequence % DT_COMM_IN_FLIGHT] = (uint8_t)slot;
    p->started = s->sequence;
    return p->t->largest(f->words, &f->compared);
}

/* Comparisons are looked at in the order of the calls, so that every rank finds the same one first that differs. */
static dt_status verify_calls(process_comm *p, uint64_t sequence)
{
    while (p->verified < sequence && p->verified < p->started) {
        const uint32_t slot = p->slot_of[(p->verified + 1) % DT_COMM_IN_FLIGHT];
        flight *f = &p->flight[slot];
        bool is_done = false;
        DT_TRY(test_messages(p, &f->compared, 1, &is_done));
        if (!is_done) {
            break;
        }
        if (f->words[0] != f->word || f->words[1] != ~f->word) {
            return name_mismatch(p, &p->common.slot[slot]);
        }
        p->verified++;
    }
    return DT_OK;
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static dt_status reserve_messages(flight *f, uint64_t n)
{
    if (n <= f->cap) {
        return DT_OK;
    }
    dt_transport_request *grown = n <= UINT32_MAX / 2 ? dt_realloc(f->message, n * sizeof(*grown)) : NULL;
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %llu messages in flight", (unsigned long long)n);
    }
    f->message = grown;
    f->cap = (uint32_t)n;
    return DT_OK;
}

/* A piece, in messages. */
static dt_status start_piece(process_comm *p, uint32_t slot, uint32_t rank, const void *out, void *in, size_t bytes)
{
    const uint32_t tag = (uint32_t)(p->common.slot[slot].sequence % TAGS);
    flight *f = &p->flight[slot];
    for (size_t at = 0; at < bytes; at += DT_TRANSPORT_PIECE) {
        const size_t n = bytes - at < DT_TRANSPORT_PIECE ? bytes - at : DT_TRANSPORT_PIECE;
        dt_transport_request *r = &f->message[f->n];
        *r = (dt_transport_request){0};
        DT_TRY(in != NULL ? p->t->receive(rank, (char *)in + at, n, tag, r)
                          : p->t->send(rank, (const char *)out + at, n, tag, r));
        f->n++;
    }
    return DT_OK;
}

static uint64_t count_messages(size_t bytes)
{
    return ((uint64_t)bytes + DT_TRANSPORT_PIECE - 1) / DT_TRANSPORT_PIECE;
}

/* Receives are begun before sends, and each rank begins with the one after it, so that no rank serves all at once. */
static dt_status start_all_to_all(process_comm *p, uint32_t slot)
{
    const dt_comm *c = &p->common;
    const dt_comm_out *out = c->slot[slot].call.out;
    const dt_comm_in *in = c->slot[slot].call.in;
    uint64_t n = 0;
    for (uint32_t r = 0; r < c->size; r++) {
        if (r != c->rank) {
            n += count_messages(out[r].bytes) + count_messages(in[r].bytes);
        }
    }
    DT_TRY(reserve_messages(&p->flight[slot], n));
    for (uint32_t k = 1; k < c->size; k++) {
        const uint32_t r = (c->rank + k) % c->size;
        DT_TRY(start_piece(p, slot, r, NULL, in[r].data, in[r].bytes));
    }
    for (uint32_t k = 1; k < c->size; k++) {
        const uint32_t r = (c->rank + c->size - k) % c->size;
        DT_TRY(start_piece(p, slot, r, out[r].data, NULL, out[r].bytes));
    }
    if (in[c->rank].bytes > 0 && in[c->rank].data != out[c->rank].data) {
        memcpy(in[c->rank].data, out[c->rank].data, in[c->rank].bytes);
    }
    return DT_OK;
}

/* More than a message holds: messages, which are cut. */
static dt_status start_large_gather(process_comm *p, uint32_t slot)
{
    const dt_comm *c = &p->common;
    const dt_comm_call *k = &c->slot[slot].call;
    DT_TRY(reserve_messages(&p->flight[slot], 2 * count_messages(k->bytes) * (c->size - 1)));
    for (uint32_t r = 0; r < c->size; r++) {
        if (r != c->rank) {
            DT_TRY(start_piece(p, slot, r, NULL, (char *)k->to + (size_t)r * k->bytes, k->bytes));
            DT_TRY(start_piece(p, slot, r, k->from, NULL, k->bytes));
        }
    }
    memmove((char *)k->to + (size_t)c->rank * k->bytes, k->from, k->bytes);
    return DT_OK;
}

static dt_status start_broadcast(process_comm *p, uint32_t slot)
{
    const dt_comm_call *k = &p->common.slot[slot].call;
    flight *f = &p->flight[slot];
    DT_TRY(reserve_messages(f, count_messages(k->bytes)));
    for (size_t at = 0; at < k->bytes; at += DT_TRANSPORT_PIECE) {
        const size_t n = k->bytes - at < DT_TRANSPORT_PIECE ? k->bytes - at : DT_TRANSPORT_PIECE;
        f->message[f->n] = (dt_transport_request){0};
        DT_TRY(p->t->broadcast(k->root, (char *)k->to + at, n, &f->message[f->n]));
        f->n++;
    }
    return DT_OK;
}

/* What the library does in one call. Where there is nothing to move, the comparison ends when all have come. */
static dt_status start_operation(process_comm *p, uint32_t slot)
{
    const dt_comm_call *k = &p->common.slot[slot].call;
    flight *f = &p->flight[slot];
    if (k->bytes == 0) {
        return DT_OK;
    }
    DT_TRY(reserve_messages(f, 1));
    f->message[0] = (dt_transport_request){0};
    DT_TRY(k->op == DT_COMM_ALL_GATHER ? p->t->all_gather(k->from, k->bytes, k->to, f->message)
                                       : p->t->reduce_scatter(k->from, k->n, k->to, f->message));
    f->n = 1;
    return DT_OK;
}

static dt_status start_call(process_comm *p, uint32_t slot)
{
    const dt_comm_call *k = &p->common.slot[slot].call;
    p->flight[slot].n = 0;
    if (k->op == DT_COMM_ALL_TO_ALL) {
        return start_all_to_all(p, slot);
    }
    if (k->op == DT_COMM_BROADCAST) {
        return start_broadcast(p, slot);
    }
    return k->op == DT_COMM_ALL_GATHER && k->bytes > DT_TRANSPORT_PIECE ? start_large_gather(p, slot)
                                                                        : start_operation(p, slot);
}

static void record_started(const process_comm *p, const dt_comm_slot *s)
{
    dt_board_call seen = {.number = s->sequence, .bytes = s->call.bytes, .root = UINT32_MAX};
    snprintf(seen.op, sizeof(seen.op), "%s", dt_comm_op_name(s->call.op));
    seen.root = s->call.op == DT_COMM_BROADCAST ? s->call.root : seen.root;
    dt_board_call_begin(dt_peers_board(p->peers), p->common.rank, &seen);
}

static dt_status process_start(dt_comm *c, uint32_t slot)
{
    process_comm *p = as_process(c);
    DT_TRY(check_health(p));
    if (dt_fault("comm.begin")) { /* tests end a process here */
        _exit(9);
    }
    (void)dt_suspension_check(&p->stood, dt_clock_s());
    record_started(p, &c->slot[slot]);
    const dt_status begun = start_call(p, slot), compared = begun < 0 ? begun : compare_signatures(p, slot);
    return compared < 0 ? fail_all(p, compared, true) : DT_OK;
}

static dt_status step_request(process_comm *p, void *user, bool *done_p)
{
    const dt_comm_slot *s = user;
    flight *f = &p->flight[s - p->common.slot];
    DT_TRY(verify_calls(p, s->sequence));
    DT_TRY(p->verified >= s->sequence ? test_messages(p, f->message, f->n, done_p) : DT_OK);
    if (*done_p) {
        dt_board_call_end(dt_peers_board(p->peers), p->common.rank, s->sequence);
    }
    return DT_OK;
}

static dt_status process_poll(dt_comm *c, uint32_t slot, bool waits, bool *done_p)
{
    process_comm *p = as_process(c);
    dt_comm_slot *s = &c->slot[slot];
    DT_TRY(check_health(p));
    if (waits) {
        DT_TRY(wait_until(p, s, step_request, s));
        *done_p = true;
        return DT_OK;
    }
    DT_TRY(step_request(p, s, done_p));
    if (!*done_p) {
        const double now = dt_clock_s();
        s->since = s->since < 0 ? now : s->since;
        return has_timed_out(p, s, NULL, now);
    }
    return DT_OK;
}

/* What it waits for is no collective of ours: the last one that began is used for it. */
static dt_status process_watch(dt_comm *c, const char *what, double since_s)
{
    process_comm *p = as_process(c);
    const double now = dt_clock_s();
    p->watched_lost = p->watched_since == since_s ? p->watched_lost : 0;
    p->watched_since = since_s;
    p->watched_lost += dt_suspension_check(&p->stood, now);
    const dt_comm_slot s = {.sequence = c->sequence, .timeout_s = c->timeout_s, .since = since_s + p->watched_lost};
    DT_TRY(check_health(p));
    return has_timed_out(p, &s, what, now);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void process_abandon(dt_comm *c, const char *why)
{
    process_comm *p = as_process(c);
    dt_peers_announce_exit(p->peers, why);
    if (p->failed == DT_OK) {
        p->failed = DT_EPEER;
        snprintf(p->why, sizeof(p->why), "rank %u left: %s", c->rank, why);
    }
}

static void process_abort(dt_comm *c, const char *why)
{
    process_comm *p = as_process(c);
    pthread_mutex_lock(&p->aborting);
    if (!atomic_load(&p->is_aborted)) {
        snprintf(p->abort_why, sizeof(p->abort_why), "%s", why);
    }
    atomic_store(&p->is_aborted, true);
    pthread_mutex_unlock(&p->aborting);
    if (pthread_equal(pthread_self(), p->owner)) {
        (void)check_health(p);
    }
}

/* What the library may still write into stays: the process is about to end. */
static void process_destroy(dt_comm *c)
{
    process_comm *p = as_process(c);
    dt_free(p->calls);
    dt_peers_destroy(p->peers);
    dt_comm_fini(c);
    if (!p->is_pending && !has_in_flight(p)) {
        for (uint32_t k = 0; k < DT_COMM_IN_FLIGHT; k++) {
            dt_free(p->flight[k].message);
        }
        pthread_mutex_destroy(&p->aborting);
        dt_free(p);
    }
}

const char *dt_processes_library(const dt_comm *c)
{
    return ((const process_comm *)(const void *)c)->info.library;
}

static const dt_comm_ops process_ops = {"mpi",           process_start, process_poll,   process_abort,
                                        process_abandon, process_watch, process_destroy};

static const char *suggest_remedy(const dt_launch *l)
{
    return strcmp(l->by, "srun") == 0
               ? "this Slurm and the MPI are incompatible; use srun --mpi=pmix, or mpirun inside sbatch"
               : "this is the mpirun of another MPI; use the one that belongs to this library";
}

/* The library would end the process itself, with words of its own. */
static dt_status check_manager(const dt_launch *l)
{
    if (strcmp(l->by, "srun") != 0 || getenv("PMIX_NAMESPACE") != NULL || getenv("PMI_RANK") != NULL) {
        return DT_OK;
    }
    return DT_FAIL(DT_EUNSUPPORTED, "srun started %u processes, but they do not see each other: %s", l->size,
                   suggest_remedy(l));
}

/* Started by something that the library does not understand, every process is alone with itself. */
static dt_status check_size(const dt_transport_info *info, const dt_launch *l)
{
    if (info->size == l->size) {
        return DT_OK;
    }
    return DT_FAIL(DT_EUNSUPPORTED, "%s started %u processes, but %s sees %u: %s", l->by, l->size, info->library,
                   info->size, suggest_remedy(l));
}

/* The launcher's, where it runs on this machine. */
static dt_board *open_launcher_board(const dt_launch *l)
{
    const char *path = getenv(DT_BOARD_ENV);
    dt_board *b = NULL;
    if (path == NULL || dt_board_open(path, &b) < 0) {
        dt_error_clear();
        return NULL;
    }
    dt_board_mark_joined(b, l->rank);
    return b;
}

static dt_status open_library(process_comm *p, const dt_launch *l)
{
    DT_TRY(check_manager(l));
    dt_board *b = open_launcher_board(l);
    dt_status st = p->t->open(&p->info);
    if (st == DT_OK) {
        st = check_size(&p->info, l);
    }
    if (st < 0) {
        dt_board_close(b);
        return st;
    }
    DT_TRY(dt_peers_create(p->t, &p->info, b, &p->peers));
    return dt_comm_init(&p->common, &process_ops, p->info.rank, p->info.size);
}

static dt_status connect_processes(process_comm *p, const dt_launch *l)
{
    DT_TRY(open_library(p, l));
    p->common.n_local = p->info.local_size;
    p->common.n_inside = 1;
    DT_TRY(dt_peers_exchange_hosts(p->peers, &p->common));
    p->common.sequence = p->started = p->verified = 0; /* what comes from here on is counted */
    return DT_OK;
}

dt_status dt_processes_create(const dt_transport_ops *t, const dt_launch *l, dt_comm **out_p)
{
    process_comm *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a communicator");
    }
    p->t = t;
    p->owner = pthread_self();
    pthread_mutex_init(&p->aborting, NULL);
    const dt_status st = connect_processes(p, l);
    if (st < 0) {
        process_destroy(&p->common);
        return st;
    }
    *out_p = &p->common;
    return DT_OK;
}

uint32_t dt_processes_n_hosts(const dt_comm *c)
{
    return dt_peers_n_hosts(((const process_comm *)(const void *)c)->peers);
}

dt_board *dt_processes_board(const dt_comm *c)
{
    return dt_peers_board(((const process_comm *)(const void *)c)->peers);
}

void dt_processes_run_dir_set(const dt_comm *c, const char *run_dir)
{
    dt_board_run_dir_set(dt_peers_board(((const process_comm *)(const void *)c)->peers), run_dir);
}

void dt_processes_finalize(dt_comm *c, int code)
{
    process_comm *p = as_process(c);
    const dt_transport_ops *t = p->t;
    dt_board_mark_left(dt_peers_board(p->peers), c->rank, code);
    if (p->failed == DT_OK && !has_in_flight(p)) {
        dt_comm_destroy(c);
        t->close();
        return;
    }
    /* The library's own end waits for all ranks and all that is under way, and may never return. The program that
     * started the processes ends those that stay once one is gone: so each leaves the others a moment to report what
     * they know, and rank 0, which writes what is known of the run's end, is not cut short by others. */
    const struct timespec moment = {.tv_sec = c->rank != 0, .tv_nsec = c->rank != 0 ? 0 : 500000000};
    nanosleep(&moment, NULL);
    fflush(NULL);
    _exit(code);
}
