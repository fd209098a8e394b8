/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_sumo/signal.c and measure.c, which need no SUMO: phases of a program, yellow, conflicts, the
 * program's clock, and both delays of a result written by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../../plugins/env_sumo/measure.h"
#include "../../plugins/env_sumo/signal.h"

static const char *const program[] = {"GGrr", "yyrr", "rrrr", "rrGg", "rryy", "GGrr", "ysrr"};
static const double durations[] = {10, 3, 1, 20, 3, 5, 3};
static const uint32_t from[] = {0, 1, 2, 2};
/* links 0 and 2 meet, 1 and 3 meet, 2 and 3 part from one lane */
static const uint8_t foe[] = {0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0};
static const uint32_t to[] = {0, 1, 2, 3};
/* the same ways, but those of 0 and 2 end in one lane */
static const uint32_t ends[] = {0, 1, 0, 3};
static const uint8_t both[16] = {0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0}, third[16] = {[8] = 1};
static const sumo_signal cross = {.id = "cross",
                                  .n_links = 4,
                                  .n_states = 7,
                                  .state = program,
                                  .duration_s = durations,
                                  .first_state = 3,
                                  .first_s = 8,
                                  .from = from,
                                  .to = to,
                                  .foe = foe,
                                  .responds = third};

static void test_phases(void **state)
{
    uint32_t state_of_phase[7], phase_of_state[7];
    static const uint32_t leads_to[7] = {0, 1, 1, 1, 0, 0, 0};
    assert_int_equal(signal_phases(&cross, state_of_phase, phase_of_state), 2);
    assert_int_equal(state_of_phase[0], 0);
    assert_int_equal(state_of_phase[1], 3);
    assert_memory_equal(phase_of_state, leads_to, sizeof(leads_to));
    assert_true(signal_is_phase("Grs"));
    assert_false(signal_is_phase("rrs"));  /* no green */
    assert_false(signal_is_phase("GGy"));  /* yellow */
    assert_false(signal_is_phase("GGu"));  /* red and yellow */
    assert_false(signal_is_phase("oooo")); /* off */
}

/* What is read by link has a letter for each. */
static void test_wrong_letters(void **state)
{
    static const char *const shorter[] = {"GGrr", "yyr", "rrGg"}, *const longer[] = {"GGrr", "rrGgr", "rrGg"};
    sumo_signal s = cross;
    assert_null(signal_find_wrong_state(&s));
    s.n_states = 3;
    s.state = shorter;
    assert_string_equal(signal_find_wrong_state(&s), "yyr");
    s.state = longer;
    assert_string_equal(signal_find_wrong_state(&s), "rrGgr");
    s.n_states = 0;
    assert_null(signal_find_wrong_state(&s));
}

static void test_yellow(void **state)
{
    char out[8];
    assert_true(signal_yellow("GgGrsg", "Grgrrs", out));
    assert_string_equal(out, "GyGrsy"); /* what goes on stays as it was, what begins waits */
    assert_false(signal_yellow("rGs", "GGr", out));
    assert_string_equal(out, "rGs");
}

static void test_conflicts(void **state)
{
    assert_int_equal(signal_conflicts(&cross, "GGrr"), 0);
    assert_int_equal(signal_conflicts(&cross, "GrGr"), 1);
    assert_int_equal(signal_conflicts(&cross, "rGrG"), 1);
    assert_int_equal(signal_conflicts(&cross, "GrgG"), 0); /* g yields */
    assert_int_equal(signal_conflicts(&cross, "yrGr"), 0);
    assert_int_equal(signal_conflicts(&cross, "rrGG"), 0); /* from one lane */
}

/* Two greens that end in one lane conflict only where the net does not say which one yields. */
static void test_merges(void **state)
{
    sumo_signal merge = cross;
    merge.to = ends;
    assert_int_equal(signal_conflicts(&merge, "GrGr"), 0);
    assert_int_equal(signal_conflicts(&merge, "GGGG"), 1); /* 1 and 3 still cross */
    merge.responds = (const uint8_t[16]){0};               /* nobody yields */
    assert_int_equal(signal_conflicts(&merge, "GrGr"), 1);
    merge.responds = both; /* each to the other */
    assert_int_equal(signal_conflicts(&merge, "GrGr"), 1);
    assert_int_equal(signal_conflicts(&merge, "Grgr"), 0);
}

static void test_clock(void **state)
{
    uint32_t state_of_phase[7], phase_of_state[7];
    (void)signal_phases(&cross, state_of_phase, phase_of_state);
    static const struct {
        double at_s;
        uint32_t phase;
    } want[] = {{0, 1},  {7.9, 1}, {8, 0},  {11, 0}, {15.9, 0}, {18.9, 0}, {19, 0},     {28.9, 0},
                {29, 1}, {33, 1},  {52, 1}, {53, 0}, {98, 0},   {99, 0},   {8 + 45, 0}, {45e6 + 32, 1}};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        assert_int_equal(signal_program_phase(&cross, phase_of_state, want[i].at_s), want[i].phase);
    }
}

static void test_delays(void **state)
{
    static const char tripinfo[] =
        "<tripinfos>\n"
        "<tripinfo id=\"a\" depart=\"10.00\" departDelay=\"2.00\" arrival=\"50.00\" duration=\"40.00\" "
        "waitingTime=\"5.00\" waitingCount=\"1\" timeLoss=\"12.00\" vType=\"x\"/>\n"
        "<tripinfo id=\"b\" depart=\"60.00\" departDelay=\"8.00\" arrival=\"-1.00\" duration=\"40.00\" "
        "waitingTime=\"15.00\" waitingCount=\"1\" timeLoss=\"20.00\"/>\n"
        "</tripinfos>\n";
    /* the last that entered was due at 52: RESCO's rule sees neither the vehicle due at 40 nor the trip due at 70 */
    static const sumo_late late[] = {{40, 1, 0}, {55, 1, 0}, {70, 0, 0}, {90, 1, 0}};
    const sumo_result r = {.tripinfo = tripinfo, .late = late, .n_late = 4};
    measures m;
    measure(&r, 100, &m);
    assert_true(fabs(m.strict_delay_s - (12 + 2 + 20 + 8 + 60 + 45 + 30 + 10) / 6.0) < 1e-12);
    assert_true(fabs(m.resco_delay_s - (12 + 2 + 20 + 8 + 45 + 10) / 4.0) < 1e-12);
    assert_true(fabs(m.trip_time_s - 40) < 1e-12);
    assert_true(fabs(m.waiting_s - 10) < 1e-12);
    assert_true(fabs(m.time_loss_s - 16) < 1e-12);
    assert_true(fabs(m.depart_delay_s - 5) < 1e-12);
    assert_true(m.demand == 6 && m.finished == 1 && m.never_inserted == 4);
    const sumo_result none = {.tripinfo = "<tripinfos></tripinfos>"};
    measure(&none, 100, &m);
    assert_true(m.demand == 0 && isnan(m.strict_delay_s) && isnan(m.trip_time_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases),    cmocka_unit_test(test_wrong_letters), cmocka_unit_test(test_yellow),
        cmocka_unit_test(test_conflicts), cmocka_unit_test(test_merges),        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_delays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
