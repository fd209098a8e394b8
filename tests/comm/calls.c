/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"

/* Rank a sends rank b a piece of (a + 2 b + round) % 5 words, each of which says its ranks and round. */
static dt_status swap_pieces(dt_comm *c, uint32_t round)
{
    enum { MOST = 4 };
    const uint32_t me = dt_comm_rank(c), size = dt_comm_size(c);
    uint32_t sent[DT_CALLS_MAX_RANKS][MOST], got[DT_CALLS_MAX_RANKS][MOST];
    dt_comm_out out[DT_CALLS_MAX_RANKS];
    dt_comm_in in[DT_CALLS_MAX_RANKS];
    uint64_t bytes = dt_comm_sent_bytes(c);
    memset(got, 0xff, sizeof(got));
    for (uint32_t r = 0; r < size; r++) {
        out[r] = (dt_comm_out){sent[r], (me + 2 * r + round) % (MOST + 1) * sizeof(uint32_t)};
        in[r] = (dt_comm_in){got[r], (r + 2 * me + round) % (MOST + 1) * sizeof(uint32_t)};
        bytes += r != me ? out[r].bytes : 0;
        for (uint32_t k = 0; k < MOST; k++) {
            sent[r][k] = (me * 100 + r) * 1000 + round;
        }
    }
    DT_TRY(dt_comm_all_to_all(c, out, in));
    for (uint32_t r = 0; r < size; r++) {
        for (uint32_t k = 0; k < MOST; k++) {
            const uint32_t want = k * sizeof(uint32_t) < in[r].bytes ? (r * 100 + me) * 1000 + round : UINT32_MAX;
            if (got[r][k] != want) {
                return DT_FAIL(DT_EDATA, "all_to_all gave %u from rank %u instead of %u", got[r][k], r, want);
            }
        }
    }
    return dt_comm_sent_bytes(c) == bytes ? DT_OK : DT_FAIL(DT_EDATA, "bytes sent are not counted");
}

dt_status dt_calls_all(dt_comm *c, void *user)
{
    const uint32_t rank = dt_comm_rank(c), size = dt_comm_size(c);
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t mine[3] = {rank, round, rank * round}, all[3 * DT_CALLS_MAX_RANKS] = {0};
        DT_TRY(dt_comm_all_gather(c, mine, sizeof(mine), all));
        for (uint32_t r = 0; r < size; r++) {
            if (all[3 * r] != r || all[3 * r + 1] != round || all[3 * r + 2] != r * round) {
                return DT_FAIL(DT_EDATA, "all_gather mixed up rank %u", r);
            }
        }
        DT_TRY(swap_pieces(c, round));
        uint32_t root = round % size, word = rank == root ? 1000 + round : 0;
        DT_TRY(dt_comm_broadcast(c, root, &word, sizeof(word)));
        if (word != 1000 + round) {
            return DT_FAIL(DT_EDATA, "broadcast gave %u", word);
        }
        DT_TRY(dt_comm_barrier(c));
        DT_TRY(dt_comm_all_gather(c, NULL, 0, NULL));
        if (dt_comm_agree(c, DT_OK) != DT_OK) {
            return DT_FAIL(DT_EDATA, "agreement on nothing");
        }
    }
    return DT_OK;
}

/* ---- begun and ended apart ---- */

enum { WORDS = 37, KINDS = 5 };

typedef struct one_call { /* with buffers of its own, since others are under way */
    dt_comm_request request;
    uint32_t mine[WORDS], all[WORDS * DT_CALLS_MAX_RANKS], cut[DT_CALLS_MAX_RANKS];
    float x[WORDS * DT_CALLS_MAX_RANKS], sum[WORDS * DT_CALLS_MAX_RANKS];
    dt_comm_out out[DT_CALLS_MAX_RANKS];
    dt_comm_in in[DT_CALLS_MAX_RANKS];
} one_call;

/* Whole numbers, whose sum has no order. */
static float term(uint32_t rank, uint32_t n, uint32_t i)
{
    return (float)((rank + 1) * 100 + n % 50 + i);
}

static dt_status start_one(dt_comm *c, one_call *o, uint32_t n)
{
    const uint32_t me = dt_comm_rank(c), size = dt_comm_size(c);
    memset(o->all, 0xff, sizeof(o->all));
    for (uint32_t i = 0; i < WORDS * size; i++) {
        o->x[i] = term(me, n, i);
        o->sum[i] = -1;
        o->mine[i % WORDS] = me * 10000 + n * 100 + i % WORDS;
    }
    for (uint32_t r = 0; r < size; r++) {
        o->out[r] = (dt_comm_out){o->mine, (n + me + r) % WORDS * 4};
        o->in[r] = (dt_comm_in){o->all + (size_t)WORDS * r, (n + me + r) % WORDS * 4};
        o->cut[r] = (n + r) % WORDS;
    }
    switch (n % KINDS) {
    case 0:
        return dt_comm_start_all_gather(c, o->mine, sizeof(o->mine), o->all, &o->request);
    case 1:
        return dt_comm_start_all_to_all(c, o->out, o->in, &o->request);
    case 2:
        return dt_comm_start_broadcast(c, n % size, o->mine, sizeof(o->mine), &o->request);
    case 3:
        return dt_comm_start_reduce_scatter(c, o->x, o->cut, o->sum, &o->request);
    default:
        return dt_comm_start_barrier(c, &o->request);
    }
}

static dt_status want_word(uint32_t n, const char *what, uint32_t got, uint32_t want)
{
    return got == want ? DT_OK : DT_FAIL(DT_EDATA, "call %u: %s gave %u instead of %u", n, what, got, want);
}

static dt_status want_sum(dt_comm *c, uint32_t n, uint32_t at, float got)
{
    float want = 0;
    for (uint32_t r = 0; r < dt_comm_size(c); r++) {
        want += term(r, n, at);
    }
    return want_word(n, "a sum", (uint32_t)got, (uint32_t)want);
}

static dt_status check_words(dt_comm *c, const one_call *o, uint32_t n, uint32_t i)
{
    const uint32_t me = dt_comm_rank(c);
    if (n % KINDS == 2) {
        return want_word(n, "broadcast", o->mine[i], n % dt_comm_size(c) * 10000 + n * 100 + i);
    }
    for (uint32_t r = 0; r < dt_comm_size(c); r++) {
        const bool is_there = n % KINDS == 0 || i < (n + me + r) % WORDS;
        DT_TRY(want_word(n, "a piece", o->all[WORDS * r + i], is_there ? r * 10000 + n * 100 + i : UINT32_MAX));
    }
    return DT_OK;
}

static dt_status check_one(dt_comm *c, const one_call *o, uint32_t n)
{
    const uint32_t kind = n % KINDS, me = dt_comm_rank(c);
    uint32_t at = 0;
    for (uint32_t r = 0; r < me; r++) {
        at += o->cut[r];
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        if (kind < 3) {
            DT_TRY(check_words(c, o, n, i));
        } else if (kind == 3 && i < o->cut[me]) {
            DT_TRY(want_sum(c, n, at + i, o->sum[i]));
        }
    }
    return DT_OK;
}

/* By waiting, or by looking until it is there. */
static dt_status end_one(dt_comm *c, dt_comm_request *r, bool waits)
{
    const dt_comm_request was = *r;
    bool is_done = false;
    if (waits) {
        DT_TRY(dt_comm_wait(c, r));
    }
    while (!waits && !is_done) {
        DT_TRY(dt_comm_test(c, r, &is_done));
        sched_yield();
    }
    DT_TRY(dt_comm_wait(c, r)); /* it is nothing now */
    dt_comm_request gone = was;
    return dt_comm_wait(c, &gone) == DT_EINVAL ? DT_OK : DT_FAIL(DT_EDATA, "a request ended twice");
}

static dt_status fly(dt_comm *c, one_call *o, uint32_t round)
{
    static const uint32_t strides[] = {1, 3, 5, 7, 9, 11, 13, 63};
    const uint32_t n = round < 4 ? DT_COMM_IN_FLIGHT : 1 + round * 5, base = round * DT_COMM_IN_FLIGHT;
    const uint32_t stride = strides[(dt_comm_rank(c) + round) % 8];
    dt_comm_request none;
    for (uint32_t k = 0; k < n; k++) {
        DT_TRY(start_one(c, &o[k], base + k));
    }
    if (n == DT_COMM_IN_FLIGHT && dt_comm_start_barrier(c, &none) != DT_EINVAL) {
        return DT_FAIL(DT_EDATA, "too many are under way and nobody minds");
    }
    for (uint32_t k = 0; k < DT_COMM_IN_FLIGHT; k++) {
        const uint32_t which = k * stride % DT_COMM_IN_FLIGHT;
        if (which < n) {
            DT_TRY(end_one(c, &o[which].request, (k + round) % 3 > 0));
            DT_TRY(check_one(c, &o[which], base + which));
        }
    }
    return DT_OK;
}

dt_status dt_calls_in_flight(dt_comm *c, void *user)
{
    one_call *o = dt_alloc_n(DT_COMM_IN_FLIGHT, sizeof(*o));
    dt_status st = o != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
    for (uint32_t round = 0; round < 12 && st == DT_OK; round++) {
        st = fly(c, o, round);
    }
    dt_free(o);
    return st;
}

static void *abort_soon(void *user)
{
    const struct timespec moment = {.tv_nsec = 50000000};
    nanosleep(&moment, NULL);
    dt_comm_abort(user, "enough");
    return NULL;
}

/* What rank 1 does about the calls that the others have begun; it has begun two of them. */
static dt_status break_up(dt_comm *c, int kind, dt_comm_request *of)
{
    const struct timespec while_others_wait = {.tv_sec = 1};
    uint32_t words[DT_CALLS_MAX_RANKS];
    pthread_t other;
    dt_status st = DT_OK;
    switch (kind) {
    case 0:
        return DT_FAIL(DT_EDIVERGED, "the loss is not finite");
    case 1:
        dt_comm_abort(c, "enough");
        st = dt_comm_wait(c, of); /* it may have been done before */
        return st < 0 ? st : dt_comm_barrier(c);
    case 2:
        if (pthread_create(&other, NULL, abort_soon, c) != 0) {
            return DT_FAIL(DT_EIO, "no thread");
        }
        st = dt_comm_all_gather(c, words, 4, words); /* rank 2 is late */
        pthread_join(other, NULL);
        return st;
    default:
        nanosleep(&while_others_wait, NULL);
        return dt_comm_barrier(c);
    }
}

dt_status dt_calls_broken(dt_comm *c, void *user)
{
    enum { N = 20, PART = 2 };
    static uint32_t mine[DT_CALLS_MAX_RANKS], all[DT_CALLS_MAX_RANKS][N][DT_CALLS_MAX_RANKS]; /* they outlast it */
    const uint32_t me = dt_comm_rank(c), n = me == 1 ? PART : N;
    dt_comm_request r[N] = {{0}};
    const bool is_late = *(int *)user == 2;
    dt_status worst = DT_OK;
    DT_TRY(dt_comm_barrier(c));
    if (*(int *)user == 3) {
        dt_comm_timeout_set(c, 0.3);
    }
    for (uint32_t k = 0; k < n; k++) {
        if (k == PART && me == 2 && is_late) {
            const struct timespec while_others_wait = {.tv_nsec = 200000000};
            nanosleep(&while_others_wait, NULL);
        }
        const dt_status st = dt_comm_start_all_gather(c, &mine[me], 4, all[me][k], &r[k]);
        worst = st < worst ? st : worst; /* it may be over already */
    }
    if (me == 1) {
        return break_up(c, *(int *)user, &r[0]);
    }
    for (uint32_t k = n; k-- > 0;) {
        const bool has_begun = r[k].id != 0;
        const dt_status st = dt_comm_wait(c, &r[k]);
        if (st == DT_OK && has_begun && k >= PART && !is_late) {
            return DT_FAIL(DT_EDATA, "call %u is done though rank 1 never came", k);
        }
        worst = st < worst ? st : worst;
        if (r[k].id != 0) {
            return DT_FAIL(DT_EDATA, "call %u goes on", k);
        }
    }
    const dt_status st = dt_comm_barrier(c);
    return st == DT_OK ? DT_FAIL(DT_EDATA, "it goes on as if nothing had been") : st < worst ? st : worst;
}

/* ---- calls that do not match ---- */

/* Every rank sends every other one 8 bytes; rank 2 waits for more. */
static dt_status swap_wrongly(dt_comm *c, char *mine, char *all)
{
    dt_comm_out out[3];
    dt_comm_in in[3];
    for (uint32_t r = 0; r < 3; r++) {
        const bool is_wrong = dt_comm_rank(c) == 2 && r == 1;
        out[r] = (dt_comm_out){mine, 8};
        in[r] = (dt_comm_in){all + (size_t)64 * r, is_wrong ? 12 : 8};
    }
    return dt_comm_all_to_all(c, out, in);
}

/* Rank 2 cuts a sum elsewhere (5), sums more (6), or swaps the order of two that are under way (7). */
static dt_status sum_wrongly(dt_comm *c, int kind)
{
    static const uint32_t cut[3][3] = {{4, 4, 4}, {4, 5, 3}, {4, 4, 5}};
    static float x[3][16], y[3][16]; /* they outlast it */
    const uint32_t me = dt_comm_rank(c), is_odd = me == 2;
    dt_comm_request a, b;
    if (kind < 7) {
        DT_TRY(dt_comm_start_reduce_scatter(c, x[me], cut[is_odd ? kind - 4 : 0], y[me], &a));
        return dt_comm_wait(c, &a);
    }
    DT_TRY(is_odd ? dt_comm_start_barrier(c, &a) : dt_comm_start_reduce_scatter(c, x[me], cut[0], y[me], &a));
    const dt_status st =
        is_odd ? dt_comm_start_reduce_scatter(c, x[me], cut[0], y[me], &b) : dt_comm_start_barrier(c, &b);
    return st < 0 ? st : dt_comm_wait(c, &b);
}

dt_status dt_calls_mismatch(dt_comm *c, void *user)
{
    const int kind = *(int *)user;
    const uint32_t rank = dt_comm_rank(c);
    char mine[64] = {0}, all[64 * DT_CALLS_MAX_RANKS];
    DT_TRY(dt_comm_barrier(c));
    if (kind > 4) {
        return sum_wrongly(c, kind);
    }
    if (rank != 2) {
        return kind == 3   ? dt_comm_broadcast(c, 0, mine, 8)
               : kind == 4 ? swap_wrongly(c, mine, all)
                           : dt_comm_all_gather(c, mine, 8, all);
    }
    switch (kind) {
    case 0:
        return dt_comm_all_gather(c, mine, 16, all);
    case 1:
        return dt_comm_barrier(c);
    case 2:
        return dt_comm_broadcast(c, 0, mine, 8);
    case 3:
        return dt_comm_broadcast(c, 1, mine, 8);
    default:
        return swap_wrongly(c, mine, all);
    }
}
