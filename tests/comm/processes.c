/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank of a job of processes, started by mpi.sh: "processes WHAT [KIND]" prints one line and ends with the exit
 * code that a run would have.
 *   all         every call, with checked results
 *   flight      every call, many under way at once
 *   broken K    several are under way when rank 1 leaves, aborts, or sleeps
 *   reduce      the sums of a tree, compared with those of one rank
 *   mismatch K  calls that do not match
 *   abandon     rank 1 fails by itself and says so
 *   late        rank 1 comes after the others' time limit
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/exit.h"
#include "base/mem.h"
#include "calls.h"
#include "comm/processes.h"
#include "comm/tree_sum.h"

enum { LEAVES = 16, COUNT = 100003 };

static float value_of(uint32_t leaf, size_t i)
{
    return (float)((double)((leaf * 7919u + (uint32_t)i * 104729u) % 1000003u) / 997.0 - 500.0) *
           (i % 3 == 0 ? 1e-5f : 1);
}

/* The definition: left half plus right half. */
static float plain_sum(uint32_t begin, uint32_t end, size_t i)
{
    const uint32_t middle = begin + (end - begin) / 2;
    return end - begin == 1 ? value_of(begin, i) : plain_sum(begin, middle, i) + plain_sum(middle, end, i);
}

static dt_tree_shape shape_of(const dt_comm *c)
{
    return (dt_tree_shape){.leaves = LEAVES, .ranks = dt_comm_size(c), .rank = dt_comm_rank(c)};
}

static dt_status sum_leaves(dt_comm *c, dt_tree *t, dt_tree_sum *sum, float *buffer)
{
    const dt_tree_shape s = shape_of(c);
    const uint32_t begin = dt_tree_leaf_begin(&s, s.rank), end = dt_tree_leaf_begin(&s, s.rank + 1);
    for (uint32_t leaf = begin; leaf < end; leaf++) {
        float *mine = buffer + (size_t)(leaf - begin) * COUNT;
        for (size_t i = 0; i < COUNT; i++) {
            mine[i] = value_of(leaf, i);
        }
        dt_tree_node node = {.index = leaf, .value = mine};
        dt_tree_merge m;
        while (dt_tree_insert(t, 0, &node, &m)) {
            float *left = m.left;
            const float *right = m.right;
            for (size_t i = 0; i < COUNT; i++) {
                left[i] += right[i];
            }
            node = m.parent;
        }
    }
    dt_tree_node mine[DT_TREE_MAX_NODES];
    const dt_range range = {.begin = 0, .end = COUNT};
    const uint32_t n = dt_tree_list_nodes(t, 0, mine);
    DT_TRY(dt_tree_sum_start(sum, c, mine, n, range));
    DT_TRY(dt_tree_sum_finish(sum));
    DT_TRY(dt_tree_sum_all_gather(sum, c, mine[0].value, range));
    DT_TRY(dt_tree_sum_discard(sum));
    const float *out = mine[0].value;
    for (size_t i = 0; i < COUNT; i++) {
        const float want = plain_sum(0, LEAVES, i);
        if (memcmp(&out[i], &want, sizeof(want)) != 0) {
            return DT_FAIL(DT_EDATA, "element %zu is %.9g instead of %.9g", i, (double)out[i], (double)want);
        }
    }
    return DT_OK;
}

static dt_status reduce(dt_comm *c)
{
    dt_tree *t = NULL;
    dt_tree_sum *sum = NULL;
    const dt_tree_shape shape = shape_of(c);
    DT_TRY(dt_tree_create(&shape, 1, &t));
    DT_TRY(dt_tree_sum_create(&(dt_tree_sum_desc){.shape = shape, .most = COUNT}, &sum));
    float *buffer = dt_alloc_n((size_t)LEAVES * COUNT, sizeof(float));
    const dt_status st = buffer != NULL ? sum_leaves(c, t, sum, buffer) : DT_FAIL(DT_ENOMEM, "out of memory");
    dt_free(buffer);
    dt_tree_sum_destroy(sum);
    dt_tree_destroy(t);
    return st;
}

static dt_status abandon(dt_comm *c)
{
    return dt_comm_rank(c) == 1 ? DT_FAIL(DT_EDIVERGED, "the loss is not finite") : dt_comm_barrier(c);
}

static dt_status late(dt_comm *c)
{
    dt_comm_timeout_set(c, 0.5);
    if (dt_comm_rank(c) == 1) {
        const struct timespec while_others_wait = {.tv_sec = 2};
        nanosleep(&while_others_wait, NULL);
    }
    return dt_comm_barrier(c);
}

static dt_status run(dt_comm *c, const char *what, int kind)
{
    return strcmp(what, "all") == 0        ? dt_calls_all(c, NULL)
           : strcmp(what, "flight") == 0   ? dt_calls_in_flight(c, NULL)
           : strcmp(what, "broken") == 0   ? dt_calls_broken(c, &kind)
           : strcmp(what, "reduce") == 0   ? reduce(c)
           : strcmp(what, "mismatch") == 0 ? dt_calls_mismatch(c, &kind)
           : strcmp(what, "abandon") == 0  ? abandon(c)
           : strcmp(what, "late") == 0     ? late(c)
                                           : DT_FAIL(DT_EINVAL, "no such thing: %s", what);
}

int main(int argc, char **argv)
{
    dt_launch launch;
    dt_comm *c = NULL;
    if (!dt_launch_detect(&launch)) {
        printf("not launched\n");
        return 2;
    }
    dt_status st = dt_processes_join(&launch, &c);
    if (st < 0) {
        printf("cannot join: %s\n", dt_error_text());
        return dt_exit_code(st);
    }
    st = run(c, argc > 1 ? argv[1] : "", argc > 2 ? atoi(argv[2]) : 0);
    printf("rank %u of %u (%u here): %s %s\n", dt_comm_rank(c), dt_comm_size(c), dt_comm_local_size(c),
           dt_status_name(st), st < 0 ? dt_error_text() : "");
    fflush(stdout);
    if (st < 0) {
        dt_comm_abandon(c, dt_error_text());
    }
    dt_processes_finalize(c, dt_exit_code(st));
    return dt_exit_code(st);
}
