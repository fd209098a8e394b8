/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/tree.c and tree_sum.c: for every number of leaves and ranks, and every order in which leaves
 * finish, the sum has the bits of the plain recursive one. Who holds which leaves is in test_tree_shape.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/tree_sum.h"

enum { MAX_RANKS = 8, MAX_LEAVES = 64, COUNT = 501, N_SCALARS = 3 };

static const uint32_t leaf_counts[] = {1, 2, 4, 8, 16, 64};

/* Values whose sum depends on the order: magnitudes from 1e-6 to 1e6, both signs. */
static float leaf_value(uint32_t leaf, uint64_t i)
{
    const dt_rng_key key = {.seed = 3, .sample = leaf};
    double size = pow(10, 12 * dt_rng_uniform(&key, 2 * i) - 6);
    return (float)(dt_rng_uniform(&key, 2 * i + 1) < 0.5 ? -size : size);
}

static float leaf_table[MAX_LEAVES][COUNT];
static double leaf_scalars[MAX_LEAVES][N_SCALARS];

/* The definition: a leaf is itself, an inner node its left half plus its right half. */
static float plain_sum(uint32_t begin, uint32_t end, size_t i)
{
    if (end - begin == 1) {
        return leaf_table[begin][i];
    }
    uint32_t middle = begin + (end - begin) / 2;
    return plain_sum(begin, middle, i) + plain_sum(middle, end, i);
}

static double plain_sum_f64(uint32_t begin, uint32_t end, size_t i)
{
    if (end - begin == 1) {
        return leaf_scalars[begin][i];
    }
    uint32_t middle = begin + (end - begin) / 2;
    return plain_sum_f64(begin, middle, i) + plain_sum_f64(middle, end, i);
}

static int fill(void **state)
{
    for (uint32_t s = 0; s < MAX_LEAVES; s++) {
        for (size_t i = 0; i < COUNT; i++) {
            leaf_table[s][i] = leaf_value(s, i);
        }
        for (size_t i = 0; i < N_SCALARS; i++) {
            leaf_scalars[s][i] = (double)leaf_table[s][i] * 1.000000001;
        }
    }
    return 0;
}

static dt_tree_shape shape_of(uint32_t leaves, uint32_t ranks, uint32_t rank)
{
    return (dt_tree_shape){.leaves = leaves, .ranks = ranks, .rank = rank};
}

static dt_status create(uint32_t leaves, uint32_t ranks, uint32_t rank, uint32_t parts, dt_tree **out_p)
{
    const dt_tree_shape shape = shape_of(leaves, ranks, rank);
    return dt_tree_create(&shape, parts, out_p);
}

static dt_status create_sum(uint32_t leaves, uint32_t ranks, uint32_t rank, int64_t most, dt_tree_sum **out_p)
{
    const dt_tree_sum_desc d = {.shape = shape_of(leaves, ranks, rank), .most = most};
    return dt_tree_sum_create(&d, out_p);
}

/* What a worker does with a finished leaf. */
static void offer_leaf(dt_tree *t, const dt_tree_shape *s, uint32_t half, uint32_t leaf, float *buffer, size_t count)
{
    const dt_range at = {.begin = 0, .end = (int64_t)count};
    dt_tree_node node = {.height = 0, .index = leaf, .value = buffer};
    dt_tree_merge merge;
    dt_tree_round_leaf(s, half, buffer, at);
    while (dt_tree_insert(t, 0, &node, &merge)) {
        dt_tree_add_siblings(s, half, merge.parent.height, merge.left, merge.right, at);
        node = merge.parent;
    }
}

/* ---- ranks ---- */

/* The sum over all ranks on all of them, which is left in the first of this rank's nodes. */
static dt_status sum_of_all(dt_tree_sum *s, dt_tree *t, dt_comm *c, size_t count, float **out_p)
{
    dt_tree_node node[DT_TREE_MAX_NODES];
    const dt_range range = {.begin = 0, .end = (int64_t)count};
    const uint32_t n = dt_tree_list_nodes(t, 0, node);
    DT_TRY(dt_tree_sum_start(s, c, node, n, range));
    DT_TRY(dt_tree_sum_finish(s));
    *out_p = node[0].value;
    DT_TRY(dt_tree_sum_all_gather(s, c, *out_p, range));
    return dt_tree_sum_discard(s);
}

typedef struct world {
    uint32_t leaves, ranks;
    bool is_fast;
    uint32_t half;
    const uint32_t *begin; /* of each rank's leaves; NULL: evenly */
    const uint32_t *order; /* in which leaves finish */
    size_t count;          /* floats per leaf; beyond COUNT the table repeats */
} world;

typedef struct rank_job {
    const world *w;
    dt_comm *comm;
    float *result;
    uint64_t sent, announced; /* bytes of one reduction: counted, and as the sum says */
    double scalars[N_SCALARS];
    dt_error end;
} rank_job;

static dt_tree_shape shape_in(const world *w, uint32_t rank)
{
    return (dt_tree_shape){.leaves = w->leaves, .ranks = w->ranks, .rank = rank, .begin = w->begin};
}

static dt_status reduce_as_rank(rank_job *job)
{
    const world *w = job->w;
    const uint32_t rank = dt_comm_rank(job->comm);
    const dt_tree_shape shape = shape_in(w, rank);
    const uint32_t begin = dt_tree_leaf_begin(&shape, rank), end = dt_tree_leaf_begin(&shape, rank + 1);
    dt_tree *t = NULL;
    dt_tree_sum *sum = NULL;
    double room[(MAX_RANKS + 2) * MAX_LEAVES * N_SCALARS];
    assert_true(dt_tree_sum_f64_workspace(&shape, N_SCALARS) <= sizeof(room) / sizeof(*room));
    DT_TRY(dt_tree_create(&shape, 1, &t));
    const dt_tree_sum_desc d = {.shape = shape, .most = (int64_t)w->count, .is_fast = w->is_fast, .half = w->half};
    const dt_range range = {.begin = 0, .end = (int64_t)w->count};
    DT_TRY(dt_tree_sum_create(&d, &sum));
    float *buffers = dt_alloc_n((size_t)(end - begin) * w->count, sizeof(float)), *out = NULL;
    dt_status st = DT_OK;
    for (int round = 0; round < 2 && st == DT_OK; round++) { /* twice: reset must make the tree as new */
        dt_tree_reset(t);
        for (uint32_t k = 0; k < w->leaves; k++) {
            const uint32_t leaf = w->order[k];
            if (leaf < begin || leaf >= end) {
                continue;
            }
            float *b = buffers + (size_t)(leaf - begin) * w->count;
            for (size_t i = 0; i < w->count; i++) {
                b[i] = leaf_table[leaf][i % COUNT];
            }
            offer_leaf(t, &shape, w->half, leaf, b, w->count);
        }
        job->sent = dt_comm_sent_bytes(job->comm);
        st = sum_of_all(sum, t, job->comm, w->count, &out);
        job->sent = dt_comm_sent_bytes(job->comm) - job->sent;
    }
    job->announced = dt_tree_sum_sent_bytes(sum, range) + dt_tree_all_gather_sent_bytes(sum, range);
    if (st == DT_OK) {
        memcpy(job->result, out, w->count * sizeof(float));
        st = dt_tree_sum_f64(job->comm, &shape, &leaf_scalars[begin][0], N_SCALARS, room, job->scalars);
    }
    dt_free(buffers);
    dt_tree_sum_destroy(sum);
    dt_tree_destroy(t);
    return st;
}

static void *run_rank(void *arg)
{
    rank_job *job = arg;
    dt_status st = reduce_as_rank(job);
    dt_error_save(&job->end, st);
    if (st < 0) {
        dt_comm_abandon(job->comm, dt_error_text());
    }
    return NULL;
}

/* Nodes of rank r that cover its leaves, by the definition: the fewest aligned ranges of powers of two. */
static uint32_t nodes_of(const world *w, uint32_t r)
{
    const dt_tree_shape shape = shape_in(w, r);
    uint32_t n = 0, end = dt_tree_leaf_begin(&shape, r + 1);
    for (uint32_t at = dt_tree_leaf_begin(&shape, r); at < end; n++) {
        uint32_t width = w->leaves;
        while (at % width != 0 || at + width > end) {
            width /= 2;
        }
        at += width;
    }
    return n;
}

/* 4 count (R - 1) / R bytes for each node, half of them where they are halves, or for one vector; and once more for the
 * sum, to a unit a slice. */
static void check_bytes(const world *w, uint32_t r, uint64_t sent)
{
    const double R = w->ranks, each = w->half != DT_HALF_NONE ? 0.5 : 1;
    const double times = (w->is_fast ? 1 : each * nodes_of(w, r)) + 1;
    const double want = 4.0 * (double)w->count * (R - 1) / R * times;
    const double slack = 4.0 * DT_SLICE_UNIT * R * times;
    if (w->ranks == 1 ? sent != 0 : fabs((double)sent - want) > slack) {
        fail_msg("rank %u of %u sent %llu bytes, want %g within %g", r, w->ranks, (unsigned long long)sent, want,
                 slack);
    }
}

static void run_world(const world *w, rank_job *jobs)
{
    dt_comm *comms[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    assert_int_equal(dt_comm_create_simulated(w->ranks, 60, comms), DT_OK);
    for (uint32_t r = 0; r < w->ranks; r++) {
        jobs[r] = (rank_job){.w = w, .comm = comms[r], .result = dt_alloc_n(w->count, sizeof(float))};
        assert_non_null(jobs[r].result);
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &jobs[r]), 0);
    }
    for (uint32_t r = 0; r < w->ranks; r++) {
        pthread_join(threads[r], NULL);
    }
    for (uint32_t r = 0; r < w->ranks; r++) {
        assert_string_equal(jobs[r].end.status == DT_OK ? "" : jobs[r].end.text, "");
        check_bytes(w, r, jobs[r].sent);
        assert_int_equal(jobs[r].sent, jobs[r].announced);
        dt_comm_destroy(comms[r]);
    }
}

static void check_world(const world *w, const float *want, const double *want_f64)
{
    rank_job jobs[MAX_RANKS];
    run_world(w, jobs);
    for (uint32_t r = 0; r < w->ranks; r++) {
        for (size_t at = 0; at < w->count; at += COUNT) {
            size_t n = w->count - at < COUNT ? w->count - at : COUNT;
            assert_memory_equal(jobs[r].result + at, want, n * sizeof(float));
        }
        assert_memory_equal(jobs[r].scalars, want_f64, sizeof(jobs[r].scalars));
        dt_free(jobs[r].result);
    }
}

static void shuffle(uint32_t *order, uint32_t n, uint64_t seed)
{
    const dt_rng_key key = {.seed = seed};
    dt_permutation p;
    dt_permutation_init(&p, n, &key);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (uint32_t)dt_permutation_at(&p, i);
    }
}

static void test_any_number_of_ranks_gives_the_same_bits(void **state)
{
    for (size_t k = 0; k < sizeof(leaf_counts) / sizeof(leaf_counts[0]); k++) {
        const uint32_t S = leaf_counts[k];
        float want[COUNT];
        double want_f64[N_SCALARS];
        for (size_t i = 0; i < COUNT; i++) {
            want[i] = plain_sum(0, S, i);
        }
        for (size_t i = 0; i < N_SCALARS; i++) {
            want_f64[i] = plain_sum_f64(0, S, i);
        }
        for (uint32_t R = 1; R <= MAX_RANKS && R <= S; R++) {
            for (uint64_t round = 0; round < 4; round++) {
                uint32_t order[MAX_LEAVES];
                shuffle(order, S, 100 * R + round);
                const world w = {.leaves = S, .ranks = R, .order = order, .count = COUNT};
                check_world(&w, want, want_f64);
            }
        }
    }
}

static void test_the_order_of_summation_matters_here(void **state)
{
    /* the test above would prove nothing if a plain running sum had the same bits */
    int n_different = 0;
    for (size_t i = 0; i < COUNT; i++) {
        float running = 0;
        for (uint32_t s = 0; s < 64; s++) {
            running += leaf_table[s][i];
        }
        n_different += running != plain_sum(0, 64, i);
    }
    assert_true(n_different > COUNT / 4);
}

static void test_any_size_travels_whole(void **state)
{
    float want[COUNT];
    double want_f64[N_SCALARS];
    for (size_t i = 0; i < COUNT; i++) {
        want[i] = plain_sum(0, 8, i);
    }
    for (size_t i = 0; i < N_SCALARS; i++) {
        want_f64[i] = plain_sum_f64(0, 8, i);
    }
    static const size_t counts[] = {1, 1023, 1024, 1025, 4095, 16385, 50000, 300001};
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        for (uint32_t R = 2; R <= 8; R++) {
            uint32_t order[8];
            shuffle(order, 8, k);
            const world w = {.leaves = 8, .ranks = R, .order = order, .count = counts[k]};
            check_world(&w, want, want_f64);
        }
    }
}

/* ---- fast ---- */

/* n numbers summed in any order are off by at most (n - 1) u / (1 - (n - 1) u) times the sum of their magnitudes, u
 * being 2^-24 (Higham 2002, section 4.2). */
static void check_near(float got, uint32_t leaves, size_t i)
{
    double sum = 0, size = 0;
    for (uint32_t s = 0; s < leaves; s++) {
        sum += (double)leaf_table[s][i];
        size += fabs((double)leaf_table[s][i]);
    }
    const double most = (leaves - 1) * 0x1p-24 / (1 - (leaves - 1) * 0x1p-24) * size;
    if (!(fabs((double)got - sum) <= most)) {
        fail_msg("element %zu of %u leaves: %.9g, want %.9g within %g", i, leaves, (double)got, sum, most);
    }
}

static void test_a_fast_sum_is_near_and_the_same_again(void **state)
{
    static const struct {
        uint32_t leaves, ranks;
        size_t count;
    } cases[] = {
        {8, 2, 2 * DT_SLICE_UNIT}, {8, 3, COUNT}, {64, 5, 5000}, {64, 7, 3 * DT_SLICE_UNIT + 1}, {8, 8, 20000}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        rank_job first[MAX_RANKS], second[MAX_RANKS];
        uint32_t order[MAX_LEAVES];
        shuffle(order, cases[k].leaves, k);
        const world w = {.leaves = cases[k].leaves,
                         .ranks = cases[k].ranks,
                         .is_fast = true,
                         .order = order,
                         .count = cases[k].count};
        run_world(&w, first);
        run_world(&w, second);
        for (size_t i = 0; i < w.count; i++) {
            check_near(first[0].result[i], w.leaves, i % COUNT);
        }
        for (uint32_t r = 0; r < w.ranks; r++) {
            assert_memory_equal(first[r].result, first[0].result, w.count * sizeof(float));
            assert_memory_equal(second[r].result, first[0].result, w.count * sizeof(float));
        }
        for (uint32_t r = 0; r < w.ranks; r++) {
            dt_free(first[r].result);
            dt_free(second[r].result);
        }
    }
}

static void test_a_fast_sum_of_one_rank_is_the_exact_one(void **state)
{
    float want[COUNT];
    double want_f64[N_SCALARS];
    uint32_t order[MAX_LEAVES];
    for (size_t i = 0; i < COUNT; i++) {
        want[i] = plain_sum(0, 64, i);
    }
    for (size_t i = 0; i < N_SCALARS; i++) {
        want_f64[i] = plain_sum_f64(0, 64, i);
    }
    shuffle(order, 64, 9);
    check_world(&(world){.leaves = 64, .ranks = 1, .is_fast = true, .order = order, .count = COUNT}, want, want_f64);
}

/* ---- halves ---- */

/* The definition: each value below the root is rounded. */
static float rounded_sum(uint32_t half, uint32_t begin, uint32_t end, bool is_root, size_t i)
{
    const uint32_t middle = begin + (end - begin) / 2;
    float x = end - begin == 1 ? leaf_table[begin][i]
                               : rounded_sum(half, begin, middle, false, i) + rounded_sum(half, middle, end, false, i);
    if (!is_root) {
        dt_optim_round(half, &x, 0, 1);
    }
    return x;
}

static void test_halves_give_the_same_bits_on_any_number_of_ranks(void **state)
{
    double want_f64[N_SCALARS];
    for (uint32_t half = DT_HALF_BF16; half <= DT_HALF_FP16; half++) {
        for (size_t k = 0; k < sizeof(leaf_counts) / sizeof(leaf_counts[0]); k++) {
            const uint32_t S = leaf_counts[k];
            float want[COUNT];
            int n_rounded = 0;
            for (size_t i = 0; i < COUNT; i++) {
                want[i] = rounded_sum(half, 0, S, true, i);
                n_rounded += want[i] != plain_sum(0, S, i);
            }
            for (size_t i = 0; i < N_SCALARS; i++) {
                want_f64[i] = plain_sum_f64(0, S, i);
            }
            assert_true(S == 1 ? n_rounded == 0 : n_rounded > COUNT * 9 / 10);
            for (uint32_t R = 1; R <= MAX_RANKS && R <= S; R++) {
                uint32_t order[MAX_LEAVES];
                shuffle(order, S, R);
                const world w = {.leaves = S, .ranks = R, .half = half, .order = order, .count = 11 * COUNT};
                check_world(&w, want, want_f64);
            }
        }
    }
}

static dt_status sum_twice(rank_job *job, dt_tree_sum *sum, float *mine)
{
    const dt_range range = {.begin = 0, .end = 2 * DT_SLICE_UNIT};
    for (int round = 0; round < 2; round++) {
        const uint64_t before = dt_comm_sent_bytes(job->comm);
        const dt_tree_node node = {.height = 1, .index = dt_comm_rank(job->comm), .value = mine};
        mine[0] = mine[DT_SLICE_UNIT] = 1.5F + (float)dt_comm_rank(job->comm) / 1024; /* bf16 has no 1025/1024 */
        dt_tree_sum_half_set(sum, round == 0 ? DT_HALF_BF16 : DT_HALF_NONE);
        DT_TRY(dt_tree_sum_start(sum, job->comm, &node, 1, range));
        DT_TRY(dt_tree_sum_finish(sum));
        job->result[round] = mine[dt_comm_rank(job->comm) * DT_SLICE_UNIT];
        job->scalars[round] = (double)(dt_comm_sent_bytes(job->comm) - before);
    }
    return DT_OK;
}

static void *switch_as_rank(void *arg)
{
    rank_job *job = arg;
    dt_tree_sum *sum = NULL;
    float *mine = dt_alloc_n((size_t)2 * DT_SLICE_UNIT, sizeof(float));
    const dt_tree_sum_desc d = {
        .shape = shape_of(4, 2, dt_comm_rank(job->comm)), .most = 2 * DT_SLICE_UNIT, .half = DT_HALF_BF16};
    dt_status st = mine != NULL ? dt_tree_sum_create(&d, &sum) : DT_ENOMEM;
    if (st == DT_OK) {
        st = sum_twice(job, sum, mine);
    }
    dt_error_save(&job->end, st);
    dt_tree_sum_destroy(sum);
    dt_free(mine);
    return NULL;
}

/* What is sent as halves may be sent whole for a while: losses' differences want it. */
static void test_halves_may_be_left_for_a_while(void **state)
{
    dt_comm *comms[2];
    pthread_t threads[2];
    rank_job jobs[2];
    float result[2][2];
    assert_int_equal(dt_comm_create_simulated(2, 60, comms), DT_OK);
    for (uint32_t r = 0; r < 2; r++) {
        jobs[r] = (rank_job){.comm = comms[r], .result = result[r]};
        assert_int_equal(pthread_create(&threads[r], NULL, switch_as_rank, &jobs[r]), 0);
    }
    for (uint32_t r = 0; r < 2; r++) {
        pthread_join(threads[r], NULL);
        assert_int_equal(jobs[r].end.status, DT_OK);
        assert_true(jobs[r].scalars[0] == 2 * DT_SLICE_UNIT && jobs[r].scalars[1] == 4 * DT_SLICE_UNIT);
        assert_true(result[r][1] == 3 + 1.0F / 1024);
        dt_comm_destroy(comms[r]);
    }
    assert_true(result[0][0] == 3); /* what rank 1 has was rounded on its way, as it was not before */
}

/* ---- a rank that failed ---- */

/* A rank that failed takes part, and what it lends is not written to. */
static void *join_as_rank(void *arg)
{
    rank_job *job = arg;
    const world *w = job->w;
    const dt_tree_sum_desc d = {.shape = shape_of(w->leaves, w->ranks, dt_comm_rank(job->comm)),
                                .most = (int64_t)w->count,
                                .is_fast = w->is_fast,
                                .half = w->half};
    dt_tree_sum *sum = NULL;
    dt_status st = dt_tree_sum_create(&d, &sum);
    if (st == DT_OK) {
        st = dt_tree_sum_participate(sum, job->comm, job->result, (dt_range){.begin = 0, .end = (int64_t)w->count});
    }
    if (st == DT_OK) {
        st = dt_tree_sum_discard(sum);
    }
    dt_error_save(&job->end, st);
    dt_tree_sum_destroy(sum);
    return NULL;
}

static void test_a_rank_without_nodes_takes_part(void **state)
{
    enum { RANKS = 3, N = 5000 };
    static float lent[N];
    for (int mode = 0; mode < 3; mode++) {
        const world w = {.leaves = 8, .ranks = RANKS, .is_fast = mode == 1, .half = mode == 2, .count = N};
        dt_comm *comms[RANKS];
        pthread_t threads[RANKS];
        rank_job jobs[RANKS];
        assert_int_equal(dt_comm_create_simulated(RANKS, 60, comms), DT_OK);
        for (int i = 0; i < N; i++) {
            lent[i] = (float)i;
        }
        for (uint32_t r = 0; r < RANKS; r++) {
            jobs[r] = (rank_job){.w = &w, .comm = comms[r], .result = lent};
            assert_int_equal(pthread_create(&threads[r], NULL, join_as_rank, &jobs[r]), 0);
        }
        for (uint32_t r = 0; r < RANKS; r++) {
            pthread_join(threads[r], NULL);
        }
        for (uint32_t r = 0; r < RANKS; r++) {
            assert_int_equal(jobs[r].end.status, DT_OK);
            dt_comm_destroy(comms[r]);
        }
        for (int i = 0; i < N; i++) {
            assert_true(lent[i] == (float)i);
        }
    }
}

/* ---- workers of one rank ---- */

typedef struct pool {
    dt_tree *tree;
    float (*buffers)[COUNT];
    uint32_t leaves;
    const uint32_t *order;
    _Atomic uint32_t next;
} pool;

static void *run_worker(void *arg)
{
    pool *p = arg;
    const dt_tree_shape shape = shape_of(p->leaves, 1, 0);
    for (;;) {
        uint32_t k = atomic_fetch_add(&p->next, 1);
        if (k >= p->leaves) {
            return NULL;
        }
        uint32_t leaf = p->order[k];
        memcpy(p->buffers[leaf], leaf_table[leaf], sizeof(leaf_table[leaf]));
        offer_leaf(p->tree, &shape, DT_HALF_NONE, leaf, p->buffers[leaf], COUNT);
    }
}

static void test_workers_in_any_order_give_the_same_bits(void **state)
{
    static float buffers[MAX_LEAVES][COUNT];
    dt_comm *c = NULL;
    assert_int_equal(dt_comm_create_null(&c), DT_OK);
    for (uint64_t round = 0; round < 60; round++) {
        const uint32_t S = round % 2 == 0 ? 64 : 8;
        uint32_t order[MAX_LEAVES];
        shuffle(order, S, round);
        dt_tree *t = NULL;
        assert_int_equal(create(S, 1, 0, 1, &t), DT_OK);
        pool p = {.tree = t, .buffers = buffers, .leaves = S, .order = order};
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &p), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
        dt_tree_node nodes[DT_TREE_MAX_NODES];
        assert_int_equal(dt_tree_list_nodes(t, 0, nodes), 1);
        float *out = NULL;
        dt_tree_sum *sum = NULL;
        assert_int_equal(create_sum(S, 1, 0, COUNT, &sum), DT_OK);
        assert_int_equal(sum_of_all(sum, t, c, COUNT, &out), DT_OK);
        dt_tree_sum_destroy(sum);
        assert_ptr_equal(out, nodes[0].value);
        for (size_t i = 0; i < COUNT; i++) {
            float want = plain_sum(0, S, i);
            assert_memory_equal(&out[i], &want, sizeof(want));
        }
        dt_tree_destroy(t);
    }
    dt_comm_destroy(c);
}

static void test_leaves_in_order_keep_few_buffers(void **state)
{
    /* one worker, leaves 0, 1, 2...: at most log2(S) + 1 buffers are ever held (binary counter) */
    dt_tree *t = NULL;
    float value[MAX_LEAVES];
    assert_int_equal(create(64, 1, 0, 1, &t), DT_OK);
    int held = 0, most = 0;
    for (uint32_t leaf = 0; leaf < 64; leaf++) {
        dt_tree_node node = {.index = leaf, .value = &value[leaf]};
        dt_tree_merge merge;
        most = ++held > most ? held : most;
        while (dt_tree_insert(t, 0, &node, &merge)) {
            held--;
            node = merge.parent;
        }
    }
    assert_int_equal(held, 1);
    assert_int_equal(most, 7);
    dt_tree_destroy(t);
}

/* ---- parts ---- */

static void test_parts_are_sums_of_their_own(void **state)
{
    dt_tree *t = NULL;
    float value[4];
    dt_tree_merge m;
    dt_tree_node node[DT_TREE_MAX_NODES];
    assert_int_equal(create(4, 1, 0, 2, &t), DT_OK);
    assert_false(dt_tree_insert(t, 0, &(dt_tree_node){.index = 0, .value = &value[0]}, &m));
    assert_false(
        dt_tree_insert(t, 1, &(dt_tree_node){.index = 1, .value = &value[1]}, &m)); /* its sibling is part 0's */
    assert_true(dt_tree_insert(t, 0, &(dt_tree_node){.index = 1, .value = &value[1]}, &m));
    assert_ptr_equal(m.left, &value[0]);
    assert_ptr_equal(m.right, &value[1]);
    assert_false(dt_tree_insert(t, 0, &m.parent, &m));
    assert_false(dt_tree_is_complete(t, 0));
    assert_false(dt_tree_insert(t, 0, &(dt_tree_node){.index = 2, .value = &value[2]}, &m));
    assert_true(dt_tree_insert(t, 0, &(dt_tree_node){.index = 3, .value = &value[3]}, &m));
    assert_true(dt_tree_insert(t, 0, &m.parent, &m));
    assert_false(dt_tree_insert(t, 0, &m.parent, &m));
    assert_true(dt_tree_is_complete(t, 0));
    assert_false(dt_tree_is_complete(t, 1));
    assert_int_equal(dt_tree_list_nodes(t, 0, node), 1);
    assert_ptr_equal(node[0].value, &value[0]);
    dt_tree_destroy(t);
}

/* ---- weights ---- */

/* Each way that small weights can be, on fp32 and on halves. */
static void test_weights_change_no_bit(void **state)
{
    enum { S = 16 };
    for (uint32_t half = DT_HALF_NONE; half <= DT_HALF_BF16; half++) {
        float want[COUNT];
        double want_f64[N_SCALARS];
        for (size_t i = 0; i < COUNT; i++) {
            want[i] = rounded_sum(half, 0, S, true, i);
        }
        for (size_t i = 0; i < N_SCALARS; i++) {
            want_f64[i] = plain_sum_f64(0, S, i);
        }
        for (uint32_t k = 0; k < 40; k++) {
            const dt_rng_key key = {.seed = 8, .sample = k};
            const uint32_t R = 2 + k % 5;
            uint32_t order[MAX_LEAVES], weight[MAX_RANKS], begin[MAX_RANKS + 1];
            for (uint32_t r = 0; r < R; r++) {
                weight[r] = 2 + (uint32_t)(5 * dt_rng_uniform(&key, r));
            }
            assert_int_equal(dt_tree_partition(S, R, weight, begin), DT_OK);
            shuffle(order, S, k);
            check_world(
                &(world){.leaves = S, .ranks = R, .begin = begin, .half = half, .order = order, .count = 4 * COUNT},
                want, want_f64);
        }
    }
}

/* ---- refusals ---- */

static void test_refusals(void **state)
{
    dt_tree *t = NULL;
    assert_int_equal(create(6, 1, 0, 1, &t), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "1 to 4096"));
    assert_int_equal(create(0, 1, 0, 1, &t), DT_EINVAL);
    assert_int_equal(create(8192, 1, 0, 1, &t), DT_EINVAL);
    assert_int_equal(create(4, 5, 0, 1, &t), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "at most one rank per shard is possible"));
    assert_int_equal(create(4, 2, 2, 1, &t), DT_EINVAL);
    assert_int_equal(create(4, 0, 0, 1, &t), DT_EINVAL);
    for (int k = 1; k <= 2; k++) {
        dt_fault_reset(k == 1 ? "alloc:1" : "alloc:2");
        assert_int_equal(create(4, 1, 0, 1, &t), DT_ENOMEM);
        dt_fault_reset(NULL);
    }

    dt_comm *c = NULL, *pair[2];
    dt_tree_sum *sum = NULL;
    float value = 1, *out = NULL;
    assert_int_equal(dt_comm_create_null(&c), DT_OK);
    assert_int_equal(dt_comm_create_simulated(2, 5, pair), DT_OK);
    assert_int_equal(create(2, 1, 0, 1, &t), DT_OK);
    assert_int_equal(create_sum(2, 1, 0, 1, &sum), DT_OK);
    assert_false(dt_tree_insert(t, 0, &(dt_tree_node){.index = 1, .value = &value}, NULL));
    assert_false(dt_tree_is_complete(t, 0));
    assert_int_equal(sum_of_all(sum, t, c, 1, &out), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "before all shards have arrived"));
    assert_int_equal(sum_of_all(sum, t, c, 2, &out), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "at most 1 are possible"));
    assert_int_equal(sum_of_all(sum, t, pair[0], 1, &out), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "met a communicator of rank 0 of 2"));
    dt_tree_sum_destroy(sum);
    dt_tree_sum_destroy(NULL);
    assert_int_equal(create_sum(2, 4, 0, 1, &sum), DT_EINVAL);
    assert_int_equal(create_sum(2, 2, 0, -1, &sum), DT_EINVAL);
    const dt_tree_sum_desc both = {.shape = shape_of(2, 2, 0), .is_fast = true, .half = DT_HALF_BF16};
    assert_int_equal(dt_tree_sum_create(&both, &sum), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "the library does not sum half precision"));
    for (uint64_t k = 1; k <= 7; k++) {
        char fault[32];
        snprintf(fault, sizeof(fault), "alloc:%llu", (unsigned long long)k);
        dt_fault_reset(fault);
        assert_int_equal(create_sum(2, 2, 0, 1, &sum), DT_ENOMEM);
        dt_fault_reset(NULL);
    }
    dt_tree_destroy(t);
    dt_tree_destroy(NULL);
    dt_comm_destroy(c);
    dt_comm_destroy(pair[0]);
    dt_comm_destroy(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_ranks_gives_the_same_bits),
        cmocka_unit_test(test_the_order_of_summation_matters_here),
        cmocka_unit_test(test_any_size_travels_whole),
        cmocka_unit_test(test_a_fast_sum_is_near_and_the_same_again),
        cmocka_unit_test(test_a_fast_sum_of_one_rank_is_the_exact_one),
        cmocka_unit_test(test_halves_give_the_same_bits_on_any_number_of_ranks),
        cmocka_unit_test(test_halves_may_be_left_for_a_while),
        cmocka_unit_test(test_a_rank_without_nodes_takes_part),
        cmocka_unit_test(test_workers_in_any_order_give_the_same_bits),
        cmocka_unit_test(test_leaves_in_order_keep_few_buffers),
        cmocka_unit_test(test_parts_are_sums_of_their_own),
        cmocka_unit_test(test_weights_change_no_bit),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
