/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of world.c and links.c: the clock agrees with the formulas, each mishap ends as it should, and
 * the same seed does the same again. Many seeds are faults.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "calls.h"
#include "world.h"

enum { MOST = 64, FAILED = -1000 /* the first to see it, or one that the first notified */ };

static dt_world_end end[1024];

static dt_world_report run(dt_world_desc *d, dt_world_body *body, void *user)
{
    dt_world_report out = {.end = end};
    for (uint32_t i = 0; i < d->n_fates; i++) {
        d->fate[i].is_struck = false;
    }
    assert_int_equal(dt_world_run(d, body, user, &out), DT_OK);
    return out;
}

static void expect(uint32_t rank, int st, const char *text)
{
    const dt_status got = end[rank].error.status;
    const bool is_one = st == FAILED && (got == DT_ECOMM || got == DT_EPEER);
    if ((got != st && !is_one) || strstr(end[rank].error.text, text) == NULL) {
        fail_msg("rank %u: %s \"%s\", want %s \"%s\"", rank, dt_status_name(end[rank].error.status),
                 end[rank].error.text, dt_status_name((dt_status)st), text);
    }
}

/* ---- the clock ---- */

typedef struct timed {
    dt_comm_op op;
    size_t bytes;
} timed;

static dt_status call_once(dt_comm *c, void *user)
{
    static char from[MOST][4096], to[MOST][MOST * 4096];
    const timed *t = user;
    const uint32_t me = dt_comm_rank(c), size = dt_comm_size(c);
    dt_comm_out out[MOST];
    dt_comm_in in[MOST];
    uint32_t n[MOST];
    dt_comm_request request;
    for (uint32_t r = 0; r < size; r++) {
        out[r] = (dt_comm_out){from[me], t->bytes};
        in[r] = (dt_comm_in){to[me] + r * t->bytes, t->bytes};
        n[r] = (uint32_t)(t->bytes / sizeof(float));
    }
    switch (t->op) {
    case DT_COMM_ALL_GATHER:
        return dt_comm_all_gather(c, from[me], t->bytes, to[me]);
    case DT_COMM_ALL_TO_ALL:
        return dt_comm_all_to_all(c, out, in);
    case DT_COMM_BROADCAST:
        return dt_comm_broadcast(c, 0, from[me], t->bytes);
    case DT_COMM_REDUCE_SCATTER:
        DT_TRY(dt_comm_start_reduce_scatter(c, (const float *)(const void *)to[me], n, (float *)(void *)from[me],
                                            &request));
        return dt_comm_wait(c, &request);
    default:
        return dt_comm_barrier(c);
    }
}

static void test_the_clock_agrees_with_the_formulas(void **state)
{
    const double alpha = 1e-5, per_s = 1e9;
    static const uint32_t sizes[] = {1, 2, 3, 8, 64};
    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t R = sizes[i];
        dt_world_desc d = {.ranks = R, .timeout_s = 10, .links = {.latency_s = alpha, .bytes_per_s = per_s}};
        const double one = alpha + 4096 / per_s, rounds = ceil(log2(R));
        const double want[] = {(R - 1) * one, (R - 1) * one, rounds * one, rounds * alpha, (R - 1) * one};
        for (uint32_t op = 0; op < 5; op++) {
            timed t = {(dt_comm_op)op, 4096};
            const double got = run(&d, call_once, &t).seconds;
            if (fabs(got - want[op]) > 1e-9) {
                fail_msg("%s of %u ranks takes %g s instead of %g", dt_comm_op_name(t.op), R, got, want[op]);
            }
        }
    }
}

static dt_status work_in_turns(dt_comm *c, void *user)
{
    for (int i = 0; i < 5; i++) {
        DT_TRY(dt_world_work(c, dt_comm_rank(c) == 2 ? 0.3 : 0.1));
        DT_TRY(dt_comm_barrier(c));
    }
    return dt_world_now(c) > 1.499 ? DT_OK : DT_FAIL(DT_EDATA, "it is only %g s", dt_world_now(c));
}

static void test_the_slowest_sets_the_pace(void **state)
{
    dt_world_desc d = {.ranks = 4, .timeout_s = 10};
    assert_true(fabs(run(&d, work_in_turns, NULL).seconds - 1.5) < 1e-9);
    for (uint32_t r = 0; r < 4; r++) {
        expect(r, DT_OK, "");
    }
}

/* ---- the bodies of all communicators ---- */

static void test_every_call_as_on_every_communicator(void **state)
{
    for (uint32_t ranks = 1; ranks <= DT_CALLS_MAX_RANKS; ranks += 3) {
        dt_world_desc d = {
            .seed = ranks,
            .ranks = ranks,
            .timeout_s = 30,
            .links = {.latency_s = 1e-5, .bytes_per_s = 1e8, .jitter = 5, .loss = 0.1, .resend_s = 1e-3}};
        run(&d, dt_calls_in_flight, NULL);
        for (uint32_t r = 0; r < ranks; r++) {
            expect(r, DT_OK, "");
        }
    }
    for (int kind = 0; kind < DT_CALLS_MISMATCHES; kind++) {
        dt_world_desc d = {.ranks = 3, .timeout_s = 30};
        int m = kind;
        run(&d, dt_calls_mismatch, &m);
        for (uint32_t r = 0; r < 3; r++) {
            expect(r, DT_ECOMM, "collective 2 does not match");
        }
    }
}

/* ---- mishaps ---- */

static dt_status ten_barriers(dt_comm *c, void *user)
{
    for (int i = 0; i < 10; i++) {
        DT_TRY(dt_world_work(c, 0.01));
        DT_TRY(dt_comm_barrier(c));
    }
    return DT_OK;
}

static void test_each_mishap_ends_as_it_should(void **state)
{
    dt_fate f = {.kind = DT_FATE_DIES, .rank = 1, .visit = 9, .where = DT_WORLD_POINTS};
    dt_world_desc d = {
        .seed = 3, .ranks = 4, .timeout_s = 2, .detect_s = 0.5, .links = {.latency_s = 1e-4}, .fate = &f, .n_fates = 1};
    double took = run(&d, ten_barriers, NULL).seconds;
    expect(0, DT_EPEER, "rank 1 died");
    expect(1, DT_EPEER, "rank 1 died in this world at barrier.");
    assert_true(f.is_struck && took > 0.5 && took < 1);
    d.detect_s = INFINITY;
    f.where = DT_COMM_BARRIER * DT_WORLD_PHASES; /* before it begins */
    took = run(&d, ten_barriers, NULL).seconds;
    expect(0, FAILED, "and timed out after 2 s waiting for rank 1");
    assert_true(took > 2 && took < 2.5);
    f.kind = DT_FATE_FAILS;
    run(&d, ten_barriers, NULL);
    expect(1, DT_EDATA, "rank 1 fails in this world at barrier.before_start");
    expect(3, DT_EPEER, "rank 1 left: rank 1 fails in this world");
    f.kind = DT_FATE_STOPS;
    f.seconds = 1;
    took = run(&d, ten_barriers, NULL).seconds;
    expect(0, DT_OK, "");
    assert_true(took > 1.1 && took < 1.2);
    f.seconds = INFINITY;
    took = run(&d, ten_barriers, NULL).seconds;
    expect(1, DT_EPEER, "waiting for rank 1"); /* it goes on when all are gone */
    expect(2, FAILED, "waiting for rank 1");
    assert_true(took < 2.5);
    f.kind = DT_FATE_CUT;
    run(&d, ten_barriers, NULL);
    expect(1, DT_ECOMM, "timed out");
    expect(2, FAILED, "timed out");
    f.kind = DT_FATE_SLOW;
    f.seconds = 0.1;
    assert_true(run(&d, ten_barriers, NULL).seconds > 2);
    expect(2, DT_OK, "");
}

static void test_a_seed_does_the_same_again(void **state)
{
    dt_world_desc d = {.ranks = 7, .timeout_s = 9, .links = {.latency_s = 1e-5, .jitter = 1}};
    uint64_t last = 0;
    for (d.seed = 1; d.seed < 6; d.seed++) {
        const dt_world_report a = run(&d, ten_barriers, NULL), b = run(&d, ten_barriers, NULL);
        assert_true(a.trace == b.trace && a.seconds == b.seconds && a.events == b.events && a.events > 100);
        assert_true(a.trace != last);
        last = a.trace;
    }
}

static void test_refusals(void **state)
{
    dt_world_report out = {.end = end};
    dt_fate f = {.rank = 9};
    const dt_world_desc bad[] = {
        {.ranks = 0, .timeout_s = 1},
        {.ranks = 1025, .timeout_s = 1},
        {.ranks = 2},
        {.ranks = 2, .timeout_s = INFINITY},
        {.ranks = 2, .timeout_s = 1, .detect_s = NAN},
        {.ranks = 2, .timeout_s = 1, .links = {.latency_s = -1}},
        {.ranks = 2, .timeout_s = 1, .links = {.loss = 1.5, .resend_s = 1}},
        {.ranks = 2, .timeout_s = 1, .links = {.loss = 0.5}},
        {.ranks = 2, .timeout_s = 1, .fate = &f, .n_fates = 1},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(dt_world_run(&bad[i], ten_barriers, NULL, &out), DT_EINVAL);
    }
    const uint64_t live = dt_alloc_live_bytes();
    const dt_world_desc good = {.ranks = 3, .timeout_s = 1};
    uint64_t fired = 1;
    for (int n = 1; fired != 0; n++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "alloc:%d", n);
        dt_fault_reset(spec);
        const dt_status st = dt_world_run(&good, ten_barriers, NULL, &out);
        fired = dt_fault_count();
        assert_int_equal(st, fired != 0 ? DT_ENOMEM : DT_OK);
        assert_int_equal(dt_alloc_live_bytes(), live);
    }
    dt_fault_reset(NULL);
}

static void test_hundreds_of_ranks(void **state)
{
    dt_world_desc d = {.ranks = 400, .timeout_s = 9, .links = {.latency_s = 1e-5}};
    run(&d, ten_barriers, NULL);
    for (uint32_t r = 0; r < 400; r++) {
        expect(r, DT_OK, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_clock_agrees_with_the_formulas),
        cmocka_unit_test(test_the_slowest_sets_the_pace),
        cmocka_unit_test(test_every_call_as_on_every_communicator),
        cmocka_unit_test(test_each_mishap_ends_as_it_should),
        cmocka_unit_test(test_a_seed_does_the_same_again),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_hundreds_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
