/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank of a job of processes: the sum of a vector over all ranks, by the fixed tree and by the library's own
 * MPI_Allreduce, in turns, in one run. "all_reduce [MILLIONS OF FLOATS [MiB OF A BUCKET [ROUNDS]]]": 18 million floats
 * are 72 MB. Both sums are compared: of two ranks they are equal to the bit, of more within 1e-3. Rank 0 prints "ratio
 * all_reduce VALUE target T", the library's time over the tree's, the median of all rounds.
 */
#include <mpi.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/mem.h"
#include "comm/processes.h"
#include "comm/tree_sum.h"

enum { IN_FLIGHT = 4, MOST_ROUNDS = 1000 };

typedef struct bench {
    dt_comm *c;
    uint32_t leaves;
    int64_t n, bucket;
    dt_tree_sum *sum[IN_FLIGHT];
    dt_range *range; /* [n_ranges] */
    uint32_t n_ranges;
    dt_tree_node node[DT_TREE_MAX_NODES]; /* of this rank; value: its vector */
    uint32_t n_nodes;
    float *mine, *theirs; /* [n] what the tree and what the library sums */
    double tree_s[MOST_ROUNDS], library_s[MOST_ROUNDS];
} bench;

static void fill(const bench *b, float *out)
{
    const uint32_t rank = dt_comm_rank(b->c);
    for (int64_t i = 0; i < b->n; i++) {
        out[i] = (float)((i * 104729 + rank * 7919) % 1000003) / 997.0f - 500.0f;
    }
}

/* As a step does: some buckets are under way at once; each rank finishes its slices; then all get all slices. */
static dt_status by_tree(bench *b)
{
    for (uint32_t k = 0; k < b->n_ranges + IN_FLIGHT; k++) {
        if (k >= IN_FLIGHT && k - IN_FLIGHT < b->n_ranges) {
            DT_TRY(dt_tree_sum_finish(b->sum[k % IN_FLIGHT]));
        }
        if (k < b->n_ranges) {
            DT_TRY(dt_tree_sum_start(b->sum[k % IN_FLIGHT], b->c, b->node, b->n_nodes, b->range[k]));
        }
    }
    for (uint32_t k = 0; k < b->n_ranges + IN_FLIGHT; k++) {
        if (k >= IN_FLIGHT && k - IN_FLIGHT < b->n_ranges) {
            DT_TRY(dt_tree_sum_discard(b->sum[k % IN_FLIGHT]));
        }
        if (k < b->n_ranges) {
            DT_TRY(dt_tree_sum_all_gather(b->sum[k % IN_FLIGHT], b->c, b->mine, b->range[k]));
        }
    }
    return DT_OK;
}

static dt_status by_library(bench *b)
{
    return MPI_Allreduce(MPI_IN_PLACE, b->theirs, (int)b->n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS
               ? DT_OK
               : DT_FAIL(DT_ECOMM, "MPI_Allreduce failed");
}

static dt_status compare(const bench *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        const float off = fabsf(b->mine[i] - b->theirs[i]);
        if (!(off <= (dt_comm_size(b->c) == 2 ? 0 : 1e-3f))) {
            return DT_FAIL(DT_EDATA, "element %lld: %.9g by the tree, %.9g by the library", (long long)i,
                           (double)b->mine[i], (double)b->theirs[i]);
        }
    }
    return DT_OK;
}

static dt_status timed(bench *b, dt_status (*what)(bench *b), double *out_p)
{
    DT_TRY(dt_comm_barrier(b->c));
    const double begin = dt_clock_s();
    DT_TRY(what(b));
    DT_TRY(dt_comm_barrier(b->c));
    *out_p = dt_clock_s() - begin;
    return DT_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static dt_status run_rounds(bench *b, int rounds)
{
    double unused = 0, ratio[MOST_ROUNDS];
    for (int r = -1; r < rounds; r++) { /* the first is not counted */
        fill(b, b->mine);
        fill(b, b->theirs);
        DT_TRY(timed(b, by_tree, r < 0 ? &unused : &b->tree_s[r]));
        DT_TRY(timed(b, by_library, r < 0 ? &unused : &b->library_s[r]));
        DT_TRY(compare(b));
    }
    for (int r = 0; r < rounds; r++) {
        ratio[r] = b->library_s[r] / b->tree_s[r];
    }
    qsort(ratio, (size_t)rounds, sizeof(ratio[0]), ascending);
    qsort(b->tree_s, (size_t)rounds, sizeof(b->tree_s[0]), ascending);
    qsort(b->library_s, (size_t)rounds, sizeof(b->library_s[0]), ascending);
    if (dt_comm_rank(b->c) == 0) {
        printf("%u ranks, %.0f MB, buckets of %.1f MiB, %s: tree %.1f ms (best %.1f), %s %.1f ms (best %.1f)\n",
               dt_comm_size(b->c), (double)b->n * sizeof(float) / 1e6, (double)b->bucket * sizeof(float) / 1048576,
               dt_comm_size(b->c) == 2 ? "equal to the bit" : "equal within 1e-3", b->tree_s[rounds / 2] * 1e3,
               b->tree_s[0] * 1e3, "MPI_Allreduce", b->library_s[rounds / 2] * 1e3, b->library_s[0] * 1e3);
        printf("ratio all_reduce %.3f target 0.833\n", ratio[rounds / 2]);
    }
    return DT_OK;
}

static dt_status prepare(bench *b)
{
    const uint32_t R = dt_comm_size(b->c), rank = dt_comm_rank(b->c);
    b->leaves = 1;
    while (b->leaves < R) {
        b->leaves *= 2;
    }
    const dt_tree_shape shape = {.leaves = b->leaves, .ranks = R, .rank = rank};
    b->n_ranges = (uint32_t)((b->n + b->bucket - 1) / b->bucket);
    b->range = dt_alloc_n(b->n_ranges, sizeof(*b->range));
    void *memory = NULL;
    if (b->range == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory");
    }
    DT_TRY(dt_arena_map((size_t)b->n * 2 * sizeof(float), &memory));
    b->mine = memory;
    b->theirs = b->mine + b->n;
    for (uint32_t k = 0; k < b->n_ranges; k++) {
        const int64_t end = (k + 1) * b->bucket;
        b->range[k] = (dt_range){.begin = k * b->bucket, .end = end < b->n ? end : b->n};
    }
    for (uint32_t k = 0; k < IN_FLIGHT; k++) {
        DT_TRY(dt_tree_sum_create(&(dt_tree_sum_desc){.shape = shape, .most = b->bucket}, &b->sum[k]));
    }
    b->n_nodes = dt_tree_list_cover(&shape, rank, b->node);
    b->node[0].value = b->mine;
    if (b->n_nodes > 1) {
        return DT_FAIL(DT_EINVAL, "%u ranks: want a power of two, where a rank has one vector", R);
    }
    return DT_OK;
}

int main(int argc, char **argv)
{
    static bench b;
    dt_launch launch;
    const int rounds = argc > 3 ? atoi(argv[3]) : 9;
    b.n = (int64_t)((argc > 1 ? atof(argv[1]) : 18) * 1e6);
    b.bucket = (int64_t)((argc > 2 ? atof(argv[2]) : 4) * 262144);
    if (b.n < 1 || b.n > INT32_MAX || b.bucket < DT_SLICE_UNIT || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: all_reduce [MILLIONS OF FLOATS [MiB OF A BUCKET [ROUNDS]]]\n");
        return 2;
    }
    if (!dt_launch_detect(&launch)) {
        fprintf(stderr, "start it with mpirun -n 2\n");
        return 2;
    }
    dt_status st = dt_processes_join(&launch, &b.c);
    if (st < 0) {
        fprintf(stderr, "%s\n", dt_error_text());
        return dt_exit_code(st);
    }
    st = prepare(&b);
    if (st == DT_OK) {
        st = run_rounds(&b, rounds);
    }
    if (st < 0) {
        fprintf(stderr, "rank %u: %s\n", dt_comm_rank(b.c), dt_error_text());
        dt_comm_abandon(b.c, dt_error_text());
    }
    dt_processes_finalize(b.c, dt_exit_code(st));
    return dt_exit_code(st);
}
