/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/cost.c: the formulas, by hand; and compared with a simulated world with the same links, where
 * steps are really taken: what is measured there agrees with what is predicted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "comm/cost.h"
#include "comm/tree_sum.h"
#include "world.h"

static dt_world_end end[512];

static void test_the_formulas(void **state)
{
    const dt_cost_links l = {.latency_s = 1e-5, .bytes_per_s = 1e9};
    const dt_cost_model m = {.parameters = 1e6, .step_s = 0.08, .bucket_bytes = 1e6, .leaves = 8};
    dt_cost_step p;
    dt_cost_predict(&l, &m, 1, &p);
    assert_true(p.step_s == 0.08 && p.overlapped_s == 0.08 && p.exchange_s == 0 && p.sent_bytes == 0);
    assert_true(p.memory_bytes == 4e6 * 5 + 8e6); /* weights, a sum of each of four heights, moments */
    dt_cost_predict(&l, &m, 4, &p);
    assert_true(fabs(p.compute_s - 0.02) < 1e-12);
    assert_true(fabs(p.exchange_s - (2 * 4 * 3 * 1e-5 + 8e6 * 3 / 4 / 1e9)) < 1e-12);
    assert_true(fabs(p.hidden_s - p.exchange_s / 2) < 1e-12); /* all of the first half: the pass takes 6.7 ms */
    assert_true(fabs(p.step_s - p.overlapped_s - p.hidden_s) < 1e-12);
    assert_true(p.sent_bytes == 6e6 && p.memory_bytes == 4e6 * 3 + 2e6);
    dt_cost_model half = m;
    half.half = DT_HALF_BF16;
    dt_cost_predict(&l, &half, 4, &p);
    assert_true(p.sent_bytes == 4.5e6); /* 2 bytes of a gradient, 4 of a parameter */
    assert_true(fabs(p.exchange_s - (2 * 4 * 3 * 1e-5 + 6e6 * 3 / 4 / 1e9)) < 1e-12);
    assert_true(fabs(p.hidden_s - (4 * 3 * 1e-5 + 2e6 * 3 / 4 / 1e9)) < 1e-12);
    const dt_cost_model quick = {.parameters = 1e6, .step_s = 0.0012, .bucket_bytes = 1e6, .leaves = 8};
    dt_cost_predict(&l, &quick, 4, &p);
    assert_true(fabs(p.hidden_s - 1e-4) < 1e-12);
    assert_int_equal(dt_cost_find_useful_ranks(&l, &quick), 1);
    /* two ranks: 0.5 of the step and 4 ms of exchange, which is 0.45 of it: 0.95, not worth a second one */
    const dt_cost_links wide = {.latency_s = 0, .bytes_per_s = 1e9};
    const dt_cost_model barely = {.parameters = 1e6, .step_s = 0.004 / 0.45, .bucket_bytes = 1e6, .leaves = 8};
    dt_cost_predict(&wide, &barely, 2, &p);
    assert_true(fabs(p.step_s - 0.95 * barely.step_s) < 1e-9);
    assert_int_equal(dt_cost_find_useful_ranks(&wide, &barely), 1);
    const dt_cost_model slow = {.parameters = 1e4, .step_s = 100, .bucket_bytes = 1e6, .leaves = 8};
    assert_in_range(dt_cost_find_useful_ranks(&l, &slow), 256, 4096);
}

/* ---- a world with the same links ---- */

/* Many ranks: pieces as a sum of slices has them, from and into one place, since only their sizes matter here. */
static dt_status exchange_pieces(dt_comm *c, const dt_cost_model *m)
{
    static char from[1 << 16], to[1 << 16];
    static dt_comm_out out[512];
    static dt_comm_in in[512];
    const double buckets = ceil(4 * m->parameters / m->bucket_bytes);
    const size_t piece = (size_t)(4 * m->parameters / buckets / dt_comm_size(c));
    for (uint32_t r = 0; r < dt_comm_size(c); r++) {
        out[r] = (dt_comm_out){from, piece};
        in[r] = (dt_comm_in){to, piece};
    }
    for (uint32_t k = 0; k < 2 * (uint32_t)buckets; k++) {
        DT_TRY(dt_comm_all_to_all(c, out, in));
    }
    return DT_OK;
}

static dt_status sum_and_share(dt_comm *c, const dt_cost_model *m, dt_tree_sum *sum, const dt_tree_node *node,
                               uint32_t n_nodes)
{
    const int64_t n = (int64_t)m->parameters, bucket = (int64_t)(m->bucket_bytes / sizeof(float));
    for (int64_t at = 0; at < n; at += bucket) {
        const dt_range range = {at, at + bucket < n ? at + bucket : n};
        DT_TRY(dt_tree_sum_start(sum, c, node, n_nodes, range));
        DT_TRY(dt_tree_sum_finish(sum));
    }
    for (int64_t at = 0; at < n; at += bucket) {
        const dt_range range = {at, at + bucket < n ? at + bucket : n};
        DT_TRY(dt_tree_sum_all_gather(sum, c, node[0].value, range));
        DT_TRY(dt_tree_sum_discard(sum));
    }
    return DT_OK;
}

static dt_status exchange_sums(dt_comm *c, const dt_cost_model *m)
{
    const dt_tree_shape shape = {.leaves = dt_comm_size(c), .ranks = dt_comm_size(c), .rank = dt_comm_rank(c)};
    dt_tree_node node[DT_TREE_MAX_NODES];
    dt_tree_sum *sum = NULL;
    const uint32_t n_nodes = dt_tree_list_cover(&shape, shape.rank, node);
    const dt_tree_sum_desc d = {.shape = shape, .most = (int64_t)(m->bucket_bytes / sizeof(float)), .half = m->half};
    DT_TRY(dt_tree_sum_create(&d, &sum));
    node[0].value = dt_alloc_n((size_t)m->parameters, sizeof(float));
    const dt_status st = node[0].value != NULL ? sum_and_share(c, m, sum, node, n_nodes) : DT_ENOMEM;
    dt_tree_sum_destroy(sum);
    dt_free(node[0].value);
    return st;
}

static dt_status take_steps(dt_comm *c, void *user)
{
    const dt_cost_model *m = user;
    for (int step = 0; step < 3; step++) {
        DT_TRY(dt_world_work(c, m->step_s / dt_comm_size(c)));
        DT_TRY(dt_comm_size(c) <= 64 ? exchange_sums(c, m) : exchange_pieces(c, m));
    }
    return DT_OK;
}

static void test_a_world_with_these_links_agrees(void **state)
{
    static const struct {
        uint32_t ranks;
        double parameters, bucket, latency, per_s, step;
        uint32_t half;
    } cases[] = {
        {2, 300000, 262144, 1e-6, 2e9, 0.01, DT_HALF_NONE},    {8, 200000, 262144, 5e-6, 1e9, 0.01, DT_HALF_NONE},
        {8, 200000, 262144, 1e-4, 1e8, 1e-4, DT_HALF_NONE},    {8, 200000, 262144, 5e-6, 1e9, 0.01, DT_HALF_BF16},
        {64, 131072, 262144, 2e-6, 1e10, 0.001, DT_HALF_NONE}, {64, 131072, 262144, 2e-5, 1e9, 0.1, DT_HALF_NONE},
        {512, 524288, 1048576, 1e-6, 1e10, 0.1, DT_HALF_NONE}, {512, 524288, 1048576, 3e-5, 1.2e9, 2, DT_HALF_NONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_cost_model m = {.parameters = cases[i].parameters,
                           .step_s = cases[i].step,
                           .bucket_bytes = cases[i].bucket,
                           .leaves = 1,
                           .half = cases[i].half};
        const dt_cost_links l = {.latency_s = cases[i].latency, .bytes_per_s = cases[i].per_s};
        const dt_world_desc d = {.seed = i,
                                 .ranks = cases[i].ranks,
                                 .timeout_s = 1000,
                                 .links = {.latency_s = l.latency_s, .bytes_per_s = l.bytes_per_s, .jitter = 0.05}};
        dt_world_report out = {.end = end};
        dt_cost_step want;
        dt_cost_predict(&l, &m, d.ranks, &want);
        assert_int_equal(dt_world_run(&d, take_steps, &m, &out), DT_OK);
        for (uint32_t r = 0; r < d.ranks; r++) {
            assert_int_equal(end[r].error.status, DT_OK);
        }
        const double got = out.seconds / 3;
        if (fabs(got / want.step_s - 1) > 0.1) {
            fail_msg("%u ranks: a step takes %g s in the world and %g s by the formula", d.ranks, got, want.step_s);
        }
    }
}

static dt_status measure_body(dt_comm *c, void *user)
{
    dt_cost_measured m;
    double seconds = -1;
    const dt_cost_model model = {.parameters = 20000, .step_s = 1, .bucket_bytes = 16384, .leaves = 2};
    if (dt_comm_size(c) == 1) {
        return dt_cost_measure(c, &m) == DT_EINVAL && dt_cost_measure_exchange(c, &model, &seconds) == DT_EINVAL
                   ? DT_OK
                   : DT_FAIL(DT_EDATA, "one rank measures");
    }
    DT_TRY(dt_cost_measure_exchange(c, &model, &seconds));
    return seconds >= 0 ? DT_OK : DT_FAIL(DT_EDATA, "no time");
}

static void test_an_exchange_on_any_number_of_ranks(void **state)
{
    const uint64_t live = dt_alloc_live_bytes(), mapped = dt_arena_live_bytes();
    for (uint32_t ranks = 1; ranks <= 6; ranks++) {
        const dt_world_desc d = {.ranks = ranks, .timeout_s = 10};
        dt_world_report out = {.end = end};
        assert_int_equal(dt_world_run(&d, measure_body, NULL, &out), DT_OK);
        for (uint32_t r = 0; r < ranks; r++) {
            assert_int_equal(end[r].error.status, DT_OK);
        }
    }
    assert_true(dt_alloc_live_bytes() == live && dt_arena_live_bytes() == mapped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_formulas),
        cmocka_unit_test(test_a_world_with_these_links_agrees),
        cmocka_unit_test(test_an_exchange_on_any_number_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
