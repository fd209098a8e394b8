/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/comm/comm.c and sim.c: data arrives, and nobody waits for ever, whatever the others do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "calls.h"

enum { MAX_RANKS = DT_CALLS_MAX_RANKS };

/* One virtual rank: runs body, whose result and error record stay here (cmocka's asserts belong to the main thread). */
typedef struct rank_job {
    dt_comm *comm;
    dt_status (*body)(dt_comm *c, void *user);
    void *user;
    dt_error end;
} rank_job;

static void *run_rank(void *arg)
{
    rank_job *job = arg;
    dt_error_clear();
    dt_status st = job->body(job->comm, job->user);
    dt_error_save(&job->end, st);
    if (st < 0) {
        dt_comm_abandon(job->comm, dt_error_text());
    }
    return NULL;
}

static rank_job jobs[MAX_RANKS];

static void run_ranks(uint32_t ranks, double timeout_s, dt_status (*body)(dt_comm *c, void *user), void *user)
{
    dt_comm *comms[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    assert_int_equal(dt_comm_create_simulated(ranks, timeout_s, comms), DT_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        jobs[r] = (rank_job){.comm = comms[r], .body = body, .user = user};
        assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &jobs[r]), 0);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        pthread_join(threads[r], NULL);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        dt_comm_destroy(comms[r]);
    }
}

static void expect_end(uint32_t rank, dt_status st, const char *text)
{
    if (jobs[rank].end.status != st || strstr(jobs[rank].end.text, text) == NULL) {
        fail_msg("rank %u: %s \"%s\", want %s \"%s\"", rank, dt_status_name(jobs[rank].end.status), jobs[rank].end.text,
                 dt_status_name(st), text);
    }
}

/* ---- all is well ---- */

static void test_every_call_on_every_size(void **state)
{
    for (uint32_t ranks = 1; ranks <= MAX_RANKS; ranks++) {
        run_ranks(ranks, 30, dt_calls_all, NULL);
        for (uint32_t r = 0; r < ranks; r++) {
            expect_end(r, DT_OK, "");
        }
    }
}

static void test_many_are_under_way_and_end_in_any_order(void **state)
{
    const uint64_t live = dt_alloc_live_bytes();
    for (uint32_t ranks = 1; ranks <= MAX_RANKS; ranks++) {
        run_ranks(ranks, 30, dt_calls_in_flight, NULL);
        for (uint32_t r = 0; r < ranks; r++) {
            expect_end(r, DT_OK, "");
        }
    }
    assert_int_equal(dt_alloc_live_bytes(), live);
}

static void test_imagined_ranks_meet_no_rank(void **state)
{
    dt_comm *c = NULL;
    assert_int_equal(dt_comm_create_planned(1, 1, 1, &c), DT_OK);
    assert_true(dt_comm_size(c) == 1 && dt_comm_barrier(c) == DT_OK);
    dt_comm_destroy(c);
    assert_int_equal(dt_comm_create_planned(6, 1, 3, &c), DT_OK);
    assert_true(dt_comm_size(c) == 6 && dt_comm_rank(c) == 0);
    assert_true(dt_comm_process_size(c) == 1 && dt_comm_local_size(c) == 3);
    assert_int_equal(dt_comm_barrier(c), DT_ECOMM);
    assert_non_null(strstr(dt_error_text(), "barrier of 6 ranks on a communicator that only plans"));
    dt_comm_abort(c, NULL);
    dt_comm_destroy(c);
}

static void test_null_is_a_single_rank(void **state)
{
    dt_comm *c = NULL;
    assert_int_equal(dt_comm_create_null(&c), DT_OK);
    assert_int_equal(dt_calls_all(c, NULL), DT_OK);
    assert_int_equal(dt_calls_in_flight(c, NULL), DT_OK);
    (void)DT_FAIL(DT_EDIVERGED, "loss is not finite");
    assert_int_equal(dt_comm_agree(c, DT_EDIVERGED), DT_EDIVERGED);
    assert_string_equal(dt_error_text(), "loss is not finite");
    dt_comm_request r;
    uint32_t x = 0;
    assert_int_equal(dt_comm_all_to_all(c, &(dt_comm_out){&x, 4}, &(dt_comm_in){&x, 3}), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "sends itself 4 bytes and expects 3"));
    assert_int_equal(dt_comm_broadcast(c, 7, &x, 4), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "rank 7, there are ranks 0 to 0"));
    assert_true(dt_comm_sent_bytes(c) == 0);
    assert_int_equal(dt_comm_start_reduce_scatter(c, NULL, &(uint32_t){(uint32_t)DT_COMM_MOST_SUMMED + 1}, NULL, &r),
                     DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "2147483648"));
    dt_comm_abort(c, NULL);
    dt_comm_abandon(c, "over");
    dt_comm_destroy(c);
    dt_comm_destroy(NULL);
}

static void test_steady_calls_allocate_nothing(void **state)
{
    dt_comm *c = NULL;
    assert_int_equal(dt_comm_create_simulated(1, 10, &c), DT_OK);
    uint64_t before = dt_alloc_calls();
    assert_int_equal(dt_calls_all(c, NULL), DT_OK);
    assert_int_equal(dt_alloc_calls(), before);
    dt_comm_destroy(c);
}

/* ---- agreement ---- */

static dt_status disagree(dt_comm *c, void *user)
{
    const dt_status *mine = user;
    dt_status st = mine[dt_comm_rank(c)];
    if (st < 0) {
        (void)DT_FAIL(st, "trouble of rank %u", dt_comm_rank(c));
    }
    return dt_comm_agree(c, st);
}

static void test_agreement_takes_the_worst_and_names_it(void **state)
{
    dt_status mine[3] = {DT_OK, DT_EDATA, DT_EIO};
    run_ranks(3, 10, disagree, mine);
    expect_end(0, DT_EIO, "rank 2: trouble of rank 2");
    expect_end(1, DT_EIO, "rank 2: trouble of rank 2");
    expect_end(2, DT_EIO, "trouble of rank 2");
    dt_status both[2] = {DT_EDIVERGED, DT_EDIVERGED};
    run_ranks(2, 10, disagree, both);
    expect_end(0, DT_EDIVERGED, "trouble of rank 0");
    expect_end(1, DT_EDIVERGED, "trouble of rank 1");
    dt_status done[2] = {DT_DONE, DT_DONE};
    run_ranks(2, 10, disagree, done);
    expect_end(0, DT_DONE, "");
    dt_status part_done[2] = {DT_DONE, DT_OK};
    run_ranks(2, 10, disagree, part_done);
    expect_end(0, DT_OK, "");
    expect_end(1, DT_OK, "");
}

/* A part of a run: two agreements within it, one around them, and the join at its end. */
typedef struct part {
    dt_status before[4], within[4]; /* of each rank, before the first agreement and between them */
    bool is_skipped_by_last;        /* the last rank calls none of them */
    dt_status then[4];              /* out: what the communicator does afterwards */
} part;

static dt_status fail_as(dt_comm *c, const dt_status *st)
{
    const uint32_t r = dt_comm_rank(c);
    return st[r] < 0 ? DT_FAIL(st[r], "trouble of rank %u", r) : DT_OK;
}

static dt_status go_through_part(dt_comm *c, const part *p)
{
    DT_TRY(fail_as(c, p->before));
    DT_TRY(dt_comm_agree(c, DT_OK));
    return dt_comm_agree(c, fail_as(c, p->within));
}

static dt_status end_part(dt_comm *c, void *user)
{
    part *p = user;
    const bool skips = p->is_skipped_by_last && dt_comm_rank(c) + 1 == dt_comm_size(c);
    const dt_status within = skips ? DT_OK : go_through_part(c, p);
    const dt_status around = within < 0 ? dt_comm_agree(c, within) : within; /* as a service around another does */
    const dt_status st = dt_comm_join(c, around);
    dt_error why;
    dt_error_save(&why, st);
    p->then[dt_comm_rank(c)] = dt_comm_barrier(c);
    return dt_error_restore(&why);
}

static void expect_part(part p, dt_status st, const char *text)
{
    run_ranks(3, 10, end_part, &p);
    for (uint32_t r = 0; r < 3; r++) {
        expect_end(r, st, text);
        assert_int_equal(p.then[r], DT_OK);
    }
}

static void test_join_waits_for_ranks_that_agree_within(void **state)
{
    const double begin = dt_clock_s();
    expect_part((part){.before = {0}}, DT_OK, "");
    for (uint32_t r = 0; r < 3; r++) {
        char text[64];
        part p = {.before = {0}};
        snprintf(text, sizeof(text), "trouble of rank %u", r);
        p.before[r] = DT_EDATA;
        expect_part(p, DT_EDATA, text);
        p = (part){.within = {0}};
        p.within[r] = DT_EIO;
        expect_part(p, DT_EIO, text);
        p.before[(r + 1) % 3] = DT_EDIVERGED;
        snprintf(text, sizeof(text), "trouble of rank %u", (r + 1) % 3);
        expect_part(p, DT_EDIVERGED, text);
    }
    expect_part((part){.is_skipped_by_last = true}, DT_ECOMM, "that rank 2 has ended");
    assert_true(dt_clock_s() - begin < 8); /* nothing waited for the time limit */
}

/* A rank that fails joins while the others are in a call that is no agreement: its reason ends all of them. */
static dt_status join_during_gather(dt_comm *c, void *user)
{
    const uint32_t failing = *(uint32_t *)user;
    uint64_t all[MAX_RANKS], mine = 1;
    const dt_status st = dt_comm_rank(c) == failing ? DT_FAIL(DT_EDATA, "shard 7 is damaged")
                                                    : dt_comm_all_gather(c, &mine, sizeof(mine), all);
    return dt_comm_join(c, st);
}

static void test_the_reason_of_a_join_reaches_other_calls(void **state)
{
    for (uint32_t failing = 0; failing < 3; failing++) {
        char text[64];
        snprintf(text, sizeof(text), "rank %u: shard 7 is damaged", failing);
        run_ranks(3, 10, join_during_gather, &failing);
        for (uint32_t r = 0; r < 3; r++) {
            expect_end(r, DT_EDATA, r == failing ? "shard 7 is damaged" : text);
        }
    }
}

/* ---- trouble ---- */

static dt_status leave_early(dt_comm *c, void *user)
{
    const uint32_t quitter = *(uint32_t *)user;
    DT_TRY(dt_comm_barrier(c));
    if (dt_comm_rank(c) == quitter) {
        return DT_FAIL(DT_EDATA, "shard 7 is damaged");
    }
    uint64_t all[MAX_RANKS], mine = 1;
    DT_TRY(dt_comm_all_gather(c, &mine, sizeof(mine), all));
    return DT_OK;
}

static void test_a_rank_that_leaves_wakes_the_others(void **state)
{
    for (uint32_t round = 0; round < 100; round++) {
        uint32_t quitter = round % 4;
        double t0 = dt_clock_s();
        run_ranks(4, 30, leave_early, &quitter);
        assert_true(dt_clock_s() - t0 < 10);
        for (uint32_t r = 0; r < 4; r++) {
            char text[64];
            snprintf(text, sizeof(text), "rank %u left: shard 7 is damaged", quitter);
            expect_end(r, r == quitter ? DT_EDATA : DT_EPEER, r == quitter ? "shard 7 is damaged" : text);
        }
    }
}

static void test_all_that_is_under_way_ends_when_a_rank_does(void **state)
{
    static const char *const want[] = {"rank 1 left: the loss is not finite", "rank 1 left: aborted: enough",
                                       "rank 1 left: aborted: enough", "waiting for rank 1"};
    for (int kind = 0; kind < 4; kind++) {
        int k = kind;
        run_ranks(3, 10, dt_calls_broken, &k);
        for (uint32_t r = 0; r < 3; r++) {
            const bool is_own = r == 1 && kind == 0;
            expect_end(r,
                       is_own      ? DT_EDIVERGED
                       : kind == 3 ? DT_ECOMM
                                   : DT_EPEER,
                       is_own ? "the loss is not finite" : want[kind]);
        }
    }
}

static dt_status finish_without_a_word(dt_comm *c, void *user)
{
    return dt_comm_rank(c) == 1 ? DT_OK : dt_comm_barrier(c);
}

static void test_a_missing_rank_is_named_at_the_time_limit(void **state)
{
    double t0 = dt_clock_s();
    run_ranks(3, 0.15, finish_without_a_word, NULL);
    double waited = dt_clock_s() - t0;
    assert_true(waited > 0.1 && waited < 10);
    expect_end(1, DT_OK, "");
    bool named = strstr(jobs[0].end.text, "waiting for rank 1") != NULL ||
                 strstr(jobs[0].end.text, "waiting for rank 1 2") != NULL;
    assert_true(named);
    assert_int_equal(jobs[0].end.status, DT_ECOMM);
    assert_int_equal(jobs[2].end.status, DT_ECOMM);
    assert_string_equal(jobs[0].end.text, jobs[2].end.text);
}

static void test_calls_that_do_not_match_are_named_on_every_rank(void **state)
{
    static const char *const want[][2] = {
        {"rank 0 called all_gather of 8 bytes", "rank 2 called all_gather of 16 bytes"},
        {"rank 0 called all_gather of 8 bytes", "rank 2 called barrier"},
        {"rank 0 called all_gather", "rank 2 called broadcast of 8 bytes from rank 0"},
        {"broadcast of 8 bytes from rank 0", "rank 2 called broadcast of 8 bytes from rank 1"},
        {"rank 1 sends rank 2 8 bytes", "which expects 12"},
        {"rank 0 called reduce_scatter of 48 bytes, rank 2 called reduce_scatter of 48 bytes", "cut differently"},
        {"rank 0 called reduce_scatter of 48 bytes", "rank 2 called reduce_scatter of 52 bytes"},
        {"rank 0 called reduce_scatter of 48 bytes", "rank 2 called barrier"},
    };
    for (int kind = 0; kind < DT_CALLS_MISMATCHES; kind++) {
        int m = kind;
        run_ranks(3, 30, dt_calls_mismatch, &m);
        for (uint32_t r = 0; r < 3; r++) {
            expect_end(r, DT_ECOMM, "collective 2 does not match");
            expect_end(r, DT_ECOMM, want[kind][0]);
            expect_end(r, DT_ECOMM, want[kind][1]);
        }
    }
}

static void test_creation(void **state)
{
    dt_comm *c[3];
    assert_int_equal(dt_comm_create_simulated(0, 1, c), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "0 ranks"));
    assert_int_equal(dt_comm_create_simulated(2, 0, c), DT_EINVAL);
    uint64_t live = dt_alloc_live_bytes(), fired = 1;
    for (int n = 1; fired != 0; n++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "alloc:%d", n);
        dt_fault_reset(spec);
        dt_status st = dt_comm_create_simulated(3, 1, c);
        fired = dt_fault_count();
        assert_int_equal(st, fired != 0 ? DT_ENOMEM : DT_OK);
        for (int r = 0; st == DT_OK && r < 3; r++) {
            dt_comm_destroy(c[r]);
        }
        assert_int_equal(dt_alloc_live_bytes(), live);
    }
    dt_fault_reset("alloc:1");
    assert_int_equal(dt_comm_create_null(&c[0]), DT_ENOMEM);
    dt_fault_reset("alloc:2");
    assert_int_equal(dt_comm_create_null(&c[0]), DT_ENOMEM);
    dt_fault_reset(NULL);
    assert_int_equal(dt_alloc_live_bytes(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call_on_every_size),
        cmocka_unit_test(test_many_are_under_way_and_end_in_any_order),
        cmocka_unit_test(test_imagined_ranks_meet_no_rank),
        cmocka_unit_test(test_null_is_a_single_rank),
        cmocka_unit_test(test_steady_calls_allocate_nothing),
        cmocka_unit_test(test_agreement_takes_the_worst_and_names_it),
        cmocka_unit_test(test_join_waits_for_ranks_that_agree_within),
        cmocka_unit_test(test_the_reason_of_a_join_reaches_other_calls),
        cmocka_unit_test(test_a_rank_that_leaves_wakes_the_others),
        cmocka_unit_test(test_all_that_is_under_way_ends_when_a_rank_does),
        cmocka_unit_test(test_a_missing_rank_is_named_at_the_time_limit),
        cmocka_unit_test(test_calls_that_do_not_match_are_named_on_every_rank),
        cmocka_unit_test(test_creation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
