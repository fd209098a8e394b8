/* SPDX-License-Identifier: Apache-2.0
 *
 * Transitions of a rollout (svc/rollout.h, transitions = 2): every field against worlds whose every number is known,
 * where agents come and go, are terminated and truncated, and where the round ends before the episode does.
 */
#include <config.h>

#include "worlds.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 3, M = 6, STEPS = 20 };

static void begin(world *w, const char *env)
{
    char id[64];
    snprintf(id, sizeof(id), "env.id=%s", env);
    const char *const settings[] = {id, "tiny.steps=20", "tiny.transitions=2", NULL};
    world_open(w, settings, NULL);
    world_start(w);
}

/* Each sample of each round, one at a time; after: the same instance's next sample, empty behind the last one. */
typedef void look(const world *w, const sample *s, const sample *after, bool is_last, uint64_t *n);

static void each(const char *env, look *look_at, uint64_t *n)
{
    world w;
    begin(&w, env);
    for (int round = 0; round < ROUNDS; round++) {
        assert_done(world_iterate(&w));
        for (uint64_t index = 0; index < (uint64_t)M * STEPS; index++) {
            const bool is_last = index >= (STEPS - 1) * M;
            const uint64_t next = is_last ? index : index + M;
            sample s, after;
            read_samples(&w, &index, 1, &s);
            read_samples(&w, &next, 1, &after);
            look_at(&w, &s, &after, is_last, n);
            drop_sample(&w, &s);
            drop_sample(&w, &after);
        }
    }
    world_close(&w);
}

static void assert_is(const world *w, const sample *s, const char *field, int64_t i, double want)
{
    const double got = (double)f32(w, s, field, i);
    if (got != want) {
        print_error("%s, item %lld: %g, and it should be %g\n", field, (long long)i, got, want);
    }
    assert_true(got == want);
}

/* ---- one agent --------------------------------------------------------------------------------------------------- */

enum { N_NEXT, N_TERMINATED, N_TRUNCATED, N_OPEN, N_FORBIDDEN, N_COUNTS };

static void look_at_counter(const world *w, const sample *s, const sample *after, bool is_last, uint64_t *n)
{
    (void)after;
    if (s->size[0] == 0) {
        return;
    }
    const double step = (double)f32(w, s, "state", 0), seed = (double)f32(w, s, "state", 1);
    const int32_t action = i32(w, s, "action_i", 0);
    const bool is_over = step + 1 == 3 + fmod(seed, 5);
    const bool is_terminated = is_over && fmod(seed, 2) == 0, is_open = is_last && !is_over;
    const double follows[] = {step + 1, seed, action};
    assert_is(w, s, "reward", 0, 1 + action);
    assert_is(w, s, "cost", 0, action);
    assert_is(w, s, "terminated", 0, is_terminated);
    assert_is(w, s, "truncated", 0, (is_over && !is_terminated) || is_open);
    assert_is(w, s, "next_present", 0, !is_over);
    for (int d = 0; d < 3; d++) {
        assert_is(w, s, "next_state", d, is_terminated ? 0 : follows[d]);
        assert_is(w, s, "next_mask", d, is_terminated || d != 1 || step + 1 != 1);
        assert_is(w, s, "others", d, 0); /* there is nobody else */
    }
    assert_is(w, s, "discount", 0, is_terminated ? 0 : (double)0.9f);
    assert_is(w, s, "weight", 0, 1);
    assert_int_equal(i32(w, s, "place", 0), 0);
    n[N_NEXT] += !is_over;
    n[N_TERMINATED] += is_terminated;
    n[N_TRUNCATED] += is_over && !is_terminated;
    n[N_OPEN] += is_open;
    n[N_FORBIDDEN] += !is_terminated && step + 1 == 1;
}

static void test_one_agent(void **state)
{
    (void)state;
    uint64_t n[N_COUNTS] = {0};
    each("counter", look_at_counter, n);
    for (int i = 0; i < N_COUNTS; i++) {
        assert_true(n[i] > 3);
    }
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

static int64_t row_of(const world *w, const sample *s, int32_t place)
{
    for (int64_t r = 0; r < s->size[0]; r++) {
        if (i32(w, s, "place", r) == place) {
            return r;
        }
    }
    return -1;
}

/* What others do is what their own rows say. */
static void look_at_others(const world *w, const sample *s, const char *field, int64_t r, int64_t places, int64_t n)
{
    for (int64_t place = 0; place < places; place++) {
        const int64_t other = row_of(w, s, (int32_t)place);
        for (int64_t i = 0; i < n; i++) {
            const bool is_there = other >= 0 && other != r;
            const double did = !is_there          ? 0
                               : field[6] == '\0' ? i32(w, s, "action_i", other) == i
                                                  : (double)f32(w, s, "executed", other * n + i);
            assert_is(w, s, field, (r * places + place) * n + i, did);
        }
    }
}

enum { N_ROWS, N_BOTH, N_WENT_ON, N_LEFT, N_DIED, N_CUT, N_RELAY };

static void look_at_relay(const world *w, const sample *s, const sample *after, bool is_last, uint64_t *n)
{
    for (int64_t r = 0; r < s->size[0]; r++) {
        const int32_t place = i32(w, s, "place", r), action = i32(w, s, "action_i", r);
        const bool is_terminated = f32(w, s, "terminated", r) != 0, goes_on = f32(w, s, "next_present", r) != 0;
        const double follows[] = {place, (double)f32(w, s, "state", 3 * r + 1) + 1,
                                  (double)f32(w, s, "state", 3 * r + 2)};
        assert_is(w, s, "state", 3 * r, place);
        assert_is(w, s, "reward", r, 10 * place + action);
        assert_is(w, s, "truncated", r, !is_terminated && (!goes_on || is_last));
        assert_true(!(is_terminated && goes_on));
        for (int d = 0; d < 3; d++) {
            assert_is(w, s, "next_state", 3 * r + d, is_terminated ? 0 : follows[d]);
        }
        const int64_t next = is_last ? -1 : row_of(w, after, place);
        if (!is_last && goes_on) {
            assert_true(next >= 0);
        }
        for (int c = 0; c < 3; c++) {
            assert_true(f32(w, s, "next_mask", 3 * r + c) == 1 || !is_terminated);
            if (next >= 0 && goes_on) {
                assert_is(w, s, "next_mask", 3 * r + c, (double)f32(w, after, "mask", 3 * next + c));
            }
        }
        look_at_others(w, s, "others", r, 3, 3);
        n[N_ROWS]++;
        n[N_BOTH] += s->size[0] > 1;
        n[N_WENT_ON] += goes_on;
        n[N_LEFT] += !goes_on && !is_terminated;
        n[N_DIED] += is_terminated;
        n[N_CUT] += is_last && goes_on;
    }
}

static void test_relay(void **state)
{
    (void)state;
    uint64_t n[N_RELAY] = {0};
    each("relay", look_at_relay, n);
    for (int i = 0; i < N_RELAY; i++) {
        assert_true(n[i] > 3);
    }
    assert_true(n[N_ROWS] == n[N_WENT_ON] + n[N_LEFT] + n[N_DIED]);
}

enum { N_CLAMPED, N_GONE, N_CROWD };

static void look_at_crowd(const world *w, const sample *s, const sample *after, bool is_last, uint64_t *n)
{
    (void)after, (void)is_last;
    for (int64_t r = 0; r < s->size[0]; r++) {
        const float drawn = f32(w, s, "action_f", r), executed = f32(w, s, "executed", r);
        const bool is_terminated = f32(w, s, "terminated", r) != 0;
        assert_true(executed == fmaxf(-2, fminf(0.5f, drawn)));
        assert_is(w, s, "reward", r, (double)(executed + (float)i32(w, s, "action_i", 2 * r)));
        assert_is(w, s, "cost", 2 * r, i32(w, s, "action_i", 2 * r + 1));
        assert_is(w, s, "cost", 2 * r + 1, 0.5);
        assert_is(w, s, "next_own", 2 * r, is_terminated ? 0 : (double)f32(w, s, "own", 2 * r) + 1);
        assert_is(w, s, "next_own", 2 * r + 1, is_terminated ? 0 : (double)f32(w, s, "own", 2 * r + 1));
        assert_is(w, s, "own", 2 * r + 1, 0.25 * i32(w, s, "place", r));
        look_at_others(w, s, "others_f", r, 4, 1);
        n[N_CLAMPED] += executed != drawn;
        n[N_GONE] += f32(w, s, "truncated", r) != 0 && f32(w, s, "next_present", r) == 0;
    }
}

static void test_crowd(void **state)
{
    (void)state;
    uint64_t n[N_CROWD] = {0};
    each("crowd", look_at_crowd, n);
    assert_true(n[N_CLAMPED] > 3 && n[N_GONE] > 3);
}

/* ---- what is learnt from ----------------------------------------------------------------------------------------- */

/* Rewards as learning sees them: divided by a running deviation. */
static void test_normalised(void **state)
{
    (void)state;
    const char *const settings[] = {"env.id=counter", "tiny.steps=20", "tiny.transitions=2",
                                    "tiny.normalise_reward=true", NULL};
    world w;
    double unit = 0;
    uint64_t rows = 0;
    world_open(&w, settings, NULL);
    world_start(&w);
    assert_done(world_iterate(&w));
    for (uint64_t index = 0; index < (uint64_t)M * STEPS; index++) {
        sample s;
        read_samples(&w, &index, 1, &s);
        if (s.size[0] > 0) {
            const double raw = 1 + i32(&w, &s, "action_i", 0), seen = (double)f32(&w, &s, "reward", 0);
            unit = unit > 0 ? unit : seen / raw;
            assert_true(unit > 0 && fabs(seen - unit * raw) < 1e-6 && unit != 1);
            rows++;
        }
        drop_sample(&w, &s);
    }
    assert_true(rows > 60);
    world_close(&w);
}

/* What is squashed is executed between the bounds, here -1 and 1, and kept as it was drawn; the most likely action is
 * that of the mean. */
static void test_squash(void **state)
{
    (void)state;
    const char *const settings[] = {"env.id=torque", "tiny.steps=20", "tiny.transitions=2", "tiny.squash=true", NULL};
    const uint64_t seed[] = {3};
    world w;
    uint64_t rows = 0, beyond = 0;
    world_open(&w, settings, NULL);
    world_start(&w);
    for (int round = 0; round < ROUNDS; round++) {
        assert_done(world_iterate(&w));
        for (uint64_t index = 0; index < (uint64_t)M * STEPS; index++) {
            sample s;
            read_samples(&w, &index, 1, &s);
            if (s.size[0] > 0) {
                const double u = (double)f32(&w, &s, "action_f", 0), executed = (double)f32(&w, &s, "executed", 0);
                assert_true(fabs(executed - tanh(u)) < 1e-7 && fabs(executed) <= 1);
                assert_is(&w, &s, "reward", 0, (double)(50 * f32(&w, &s, "executed", 0)));
                beyond += fabs(u) > 1;
                rows++;
            }
            drop_sample(&w, &s);
        }
    }
    assert_true(rows > 200 && beyond > 10);
    assert_true(w.phase->report.interventions == 0);
    dt_rollout_report r = {.struct_size = sizeof(r)};
    assert_done(w.phase->rollout->evaluate(w.phase->r, w.phase->t, seed, 1, 1, 1, &r));
    assert_true(fabs(r.episode_return) < 6 * 50);
    world_close(&w);
}

static void refused(const char *more, const char *again, dt_status code, const char *text)
{
    const char *const settings[] = {"env.id=counter", "tiny.transitions=2", more, again, NULL}; /* or another one */
    world w;
    world_open(&w, settings, NULL);
    dt_status st = world_create(&w);
    if (st == DT_OK) {
        st = world_iterate(&w);
    }
    assert_int_equal(st, code);
    if (strstr(dt_error_text(), text) == NULL) {
        print_error("%s\n", dt_error_text());
    }
    assert_non_null(strstr(dt_error_text(), text));
    world_close(&w);
}

static void test_refused(void **state)
{
    (void)state;
    refused("tiny.transitions=3", NULL, DT_ECONFIG, "a rollout's transitions is 3; expected 0, 1 or 2");
    refused(
        "env.id=torque_open", "tiny.squash=true", DT_ECONFIG,
        "actions are squashed into the bounds of the environment, and action 0 has -1 to inf; it needs finite ones");
    refused("tiny.leak=reward", NULL, DT_EPLUGIN, "computed from the field reward, which is not known yet");
    refused("tiny.leak=truncated", NULL, DT_EPLUGIN, "computed from the field truncated, which is not known yet");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_agent),  cmocka_unit_test(test_relay),  cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_normalised), cmocka_unit_test(test_squash), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
