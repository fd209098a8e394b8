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
    const char *const carried = strcmp(env, "relay") == 0 ? "tiny.carried=true" : NULL;
    const char *const settings[] = {id, "tiny.steps=20", "tiny.transitions=2", carried, NULL};
    world_begin(w, settings);
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

/* What acting left for the step after, of agents that were there. */
static void look_at_carried(const world *w, const sample *s, const sample *after)
{
    for (int64_t r = 0; r < after->size[0]; r++) {
        const int64_t before = row_of(w, s, i32(w, after, "place", r));
        assert_is(w, after, "memory", r, before < 0 ? 0 : (double)f32(w, s, "memory", before) + 1);
        for (int d = 0; d < 3; d++) {
            assert_is(w, after, "last_action", 3 * r + d, before >= 0 && i32(w, s, "action_i", before) == d);
        }
    }
}

enum { N_ROWS, N_BOTH, N_WENT_ON, N_LEFT, N_DIED, N_CUT, N_RELAY };

static void look_at_relay(const world *w, const sample *s, const sample *after, bool is_last, uint64_t *n)
{
    if (!is_last) {
        look_at_carried(w, s, after);
    }
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
        for (int32_t other = 0; other < 3; other++) {
            assert_int_equal(i32(w, s, "team_rows", 3 * r + other), row_of(w, s, other));
        }
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
    uint64_t n[N_CROWD] = {0};
    each("crowd", look_at_crowd, n);
    assert_true(n[N_CLAMPED] > 3 && n[N_GONE] > 3);
}

/* ---- graphs of two steps ----------------------------------------------------------------------------------------- */

typedef struct steps { /* a sample, the one after it, and, of the same run with transitions = 3, both in one */
    const world *w, *joined;
    sample s, after, both;
} steps;

static void open_steps(steps *x, uint64_t index)
{
    const uint64_t next = index + M;
    read_samples(x->w, &index, 1, &x->s);
    read_samples(x->w, &next, 1, &x->after);
    read_samples(x->joined, &index, 1, &x->both);
}

static void close_steps(steps *x)
{
    drop_sample(x->w, &x->s);
    drop_sample(x->w, &x->after);
    drop_sample(x->joined, &x->both);
}

/* Who drives a node of the step after, among the sample's agents: of those that the step ended the sample after has no
 * row, and this one has. */
static void look_at_driver(const steps *x, int64_t node, int64_t row)
{
    const int32_t after = i32(x->w, &x->after, "driver", row), got = i32(x->joined, &x->both, "driver", node);
    if (after >= 0) {
        assert_int_equal(got, row_of(x->w, &x->s, i32(x->w, &x->after, "place", after)));
    } else if (got >= 0) {
        assert_is(x->w, &x->s, "next_present", got, 0);
        assert_int_equal(row_of(x->w, &x->after, i32(x->w, &x->s, "place", got)), -1);
    }
}

static void look_at_nodes(const steps *x)
{
    const int64_t own = x->s.size[1], N = x->after.size[1], all = x->both.size[1];
    for (int64_t k = 0; k < own + N; k++) {
        const sample *from = k < own ? &x->s : &x->after;
        const int64_t row = k < own ? k : k - own;
        for (int d = 0; d < 2; d++) {
            assert_is(x->joined, &x->both, "nodes", 2 * k + d, (double)f32(x->w, from, "nodes", 2 * row + d));
            assert_is(x->joined, &x->both, "node_steps", d * all + k,
                      (double)f32(x->w, from, "node_steps", d * from->size[1] + row));
        }
        assert_int_equal(i32(x->joined, &x->both, "rowptr", k),
                         i32(x->w, from, "rowptr", row) + (k < own ? 0 : x->s.size[2]));
        if (k < own) {
            assert_int_equal(i32(x->joined, &x->both, "driver", k), i32(x->w, from, "driver", row));
        } else {
            look_at_driver(x, k, row);
        }
    }
    assert_int_equal(i32(x->joined, &x->both, "rowptr", own + N), x->both.size[2]);
}

static void look_at_edges(const steps *x)
{
    for (int64_t k = 0; k < x->both.size[2]; k++) {
        const bool is_own = k < x->s.size[2];
        const int32_t col = is_own ? i32(x->w, &x->s, "col", k) : i32(x->w, &x->after, "col", k - x->s.size[2]);
        assert_int_equal(i32(x->joined, &x->both, "col", k), col + (is_own ? 0 : x->s.size[1]));
    }
}

static void look_at_agents(const steps *x, uint64_t *ended)
{
    for (int64_t r = 0; r < x->s.size[0]; r++) {
        const int64_t next = row_of(x->w, &x->after, i32(x->w, &x->s, "place", r));
        const bool is_ended = f32(x->w, &x->s, "terminated", r) != 0;
        assert_int_equal(i32(x->joined, &x->both, "node", r), i32(x->w, &x->s, "node", r));
        if (is_ended) {
            assert_int_equal(i32(x->joined, &x->both, "next_node", r), -1);
        } else if (next >= 0) {
            assert_int_equal(i32(x->joined, &x->both, "next_node", r),
                             i32(x->w, &x->after, "node", next) + x->s.size[1]);
        }
        *ended += is_ended;
    }
}

static void test_graphs(void **state)
{
    const char *const one[] = {"env.id=crowd", "tiny.steps=20", "tiny.transitions=2", NULL};
    const char *const two[] = {"env.id=crowd", "tiny.steps=20", "tiny.transitions=3", NULL};
    uint64_t looked = 0, ended = 0;
    world w, joined;
    world_begin(&w, one);
    world_begin(&joined, two);
    for (int round = 0; round < ROUNDS; round++) {
        assert_done(world_iterate(&w));
        assert_done(world_iterate(&joined));
        for (uint64_t index = 0; index < (uint64_t)M * (STEPS - 1); index++) {
            steps x = {.w = &w, .joined = &joined};
            open_steps(&x, index);
            assert_int_equal(x.both.size[0], x.s.size[0]);
            if (x.s.size[0] > 0 && x.after.size[0] > 0) { /* the last step of all may still be seen */
                assert_int_equal(x.both.size[1], x.s.size[1] + x.after.size[1]);
                assert_int_equal(x.both.size[2], x.s.size[2] + x.after.size[2]);
                look_at_nodes(&x);
                look_at_edges(&x);
                look_at_agents(&x, &ended);
                looked++;
            } else if (x.s.size[0] == 0) {
                assert_int_equal(x.both.size[1] + x.both.size[2], 0);
            }
            close_steps(&x);
        }
    }
    assert_true(looked > 100 && ended > 3);
    world_close(&joined);
    world_close(&w);
}

/* ---- what is learnt from ----------------------------------------------------------------------------------------- */

/* Rewards as learning sees them: divided by a running deviation. */
static void test_normalised(void **state)
{
    const char *const settings[] = {"env.id=counter", "tiny.steps=20", "tiny.transitions=2",
                                    "tiny.normalise_reward=true", NULL};
    world w;
    double unit = 0;
    uint64_t rows = 0;
    world_begin(&w, settings);
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
    const char *const settings[] = {"env.id=torque", "tiny.steps=20", "tiny.transitions=2", "tiny.squash=true", NULL};
    const uint64_t seed[] = {3};
    world w;
    uint64_t rows = 0, beyond = 0;
    world_begin(&w, settings);
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

/* ---- what the phase makes of it ---------------------------------------------------------------------------------- */

enum { PLACES = 3, MOST = M * STEPS * PLACES };

typedef struct place_values { /* of each place at each step of each instance, what the fields say */
    int64_t row;              /* -1: no agent acts */
    double reward, value;
    bool is_terminated, is_truncated;
} place_values;

static void look_up(const world *w, place_values *all, uint64_t *rows_p)
{
    for (uint64_t index = 0; index < (uint64_t)M * STEPS; index++) {
        sample s;
        read_samples(w, &index, 1, &s);
        for (int p = 0; p < PLACES; p++) {
            const int64_t r = row_of(w, &s, p);
            place_values *x = &all[index * PLACES + (uint64_t)p];
            *x = (place_values){.row = -1};
            if (r >= 0) {
                const uint64_t row = *rows_p + (uint64_t)r;
                *x = (place_values){.row = (int64_t)row, .reward = (double)f32(w, &s, "reward", r)};
                x->value = (double)note_of_row(row);
                x->is_terminated = f32(w, &s, "terminated", r) != 0;
                x->is_truncated = f32(w, &s, "truncated", r) != 0;
            }
        }
        *rows_p += (uint64_t)s.size[0];
        drop_sample(w, &s);
    }
}

/* As the definition says, forwards; the values behind a row that goes nowhere are its own. */
static double return_of(const place_values *all, uint64_t at, double gamma, double lambda)
{
    const place_values *x = &all[at], *next = x + M * PLACES;
    if (x->is_terminated) {
        return x->reward;
    }
    if (x->is_truncated) {
        return x->reward + gamma * x->value;
    }
    return x->reward + gamma * ((1 - lambda) * next->value + lambda * return_of(all, at + M * PLACES, gamma, lambda));
}

static void check_returns(const world *w, const place_values *all, uint64_t rows, double gamma, double lambda)
{
    static float value[MOST], y[MOST];
    for (uint64_t i = 0; i < rows; i++) {
        value[i] = note_of_row(i);
    }
    assert_done(w->phase->rollout->returns(w->phase->r, value, value, gamma, lambda, y, rows));
    for (uint64_t at = 0; at < MOST; at++) {
        if (all[at].row >= 0) {
            const double want = return_of(all, at, gamma, lambda);
            assert_true(fabs((double)y[all[at].row] - want) <= 1e-6 * (1 + fabs(want)));
        }
    }
}

static void test_returns(void **state)
{
    static place_values all[MOST];
    uint64_t rows = 0;
    world w;
    begin(&w, "relay");
    assert_done(world_iterate(&w));
    look_up(&w, all, &rows);
    assert_int_equal(rows, w.phase->report.agent_steps);
    check_returns(&w, all, rows, 0.5, 0.75);
    check_returns(&w, all, rows, 0.99, 0);
    check_returns(&w, all, rows, 1, 1);
    check_returns(&w, all, rows, 0, 0.5);
    float none = 0;
    const dt_rollout_api *api = w.phase->rollout;
    assert_int_equal(api->returns(w.phase->r, &none, NULL, 0.5, 0.5, &none, rows + 1), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "rows are given, and the round has"));
    assert_int_equal(api->returns(w.phase->r, &none, NULL, 1.5, 0.5, &none, rows), DT_EINVAL);
    assert_int_equal(api->returns(w.phase->r, &none, NULL, 0.5, NAN, &none, rows), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "lambda = nan; expected 0 to 1"));
    world_close(&w);
}

/* Columns of the phase's own are there to learn from, those of this round alone. */
static void test_annotations(void **state)
{
    const char *const settings[] = {"env.id=relay", "tiny.steps=20", "tiny.transitions=2", "tiny.annotation=A 2", NULL};
    static place_values all[MOST];
    static float bad[2 * MOST];
    dt_rollout_report report = {.struct_size = sizeof(report)};
    world w;
    world_begin(&w, settings);
    const dt_rollout_api *api = w.phase->rollout;
    assert_int_equal(api->annotate(w.phase->r, "note", bad, 1), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "before the first collect"));
    for (int round = 0; round < 2; round++) {
        uint64_t rows = 0;
        assert_done(world_iterate(&w));
        look_up(&w, all, &rows);
        for (uint64_t index = 0; index < (uint64_t)M * STEPS; index++) {
            sample s;
            read_samples(&w, &index, 1, &s);
            for (int64_t r = 0; r < s.size[0]; r++) {
                const uint64_t at = index * PLACES + (uint64_t)i32(&w, &s, "place", r);
                const double want = return_of(all, at, 0.5, 0.75);
                assert_true(fabs((double)f32(&w, &s, "note", 2 * r) - want) <= 1e-6 * (1 + fabs(want)));
                assert_is(&w, &s, "note", 2 * r + 1, all[at].value);
            }
            drop_sample(&w, &s);
        }
        assert_int_equal(api->annotate(w.phase->r, "nose", bad, rows), DT_ENOTFOUND);
        assert_non_null(strstr(dt_error_text(), "created without an annotation nose"));
        assert_int_equal(api->annotate(w.phase->r, "note", bad, rows - 1), DT_EINVAL);
        bad[7] = NAN;
        assert_int_equal(api->annotate(w.phase->r, "note", bad, rows), DT_EDIVERGED);
        assert_non_null(strstr(dt_error_text(), "annotation note, row 3, column 1 is nan"));
    }
    assert_done(api->collect(w.phase->r, w.phase->t, &report));
    for (uint64_t index = 0; index < (uint64_t)M * STEPS; index++) {
        sample s;
        read_samples(&w, &index, 1, &s);
        for (int64_t r = 0; r < 2 * s.size[0]; r++) {
            assert_is(&w, &s, "note", r, 0);
        }
        drop_sample(&w, &s);
    }
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
    refused("tiny.transitions=4", NULL, DT_ECONFIG, "a rollout's transitions is 4; expected 0 to 3");
    refused(
        "env.id=torque_open", "tiny.squash=true", DT_ECONFIG,
        "actions are squashed into the bounds of the environment, and action 0 has -1 to inf; it needs finite ones");
    refused("tiny.annotation=A", NULL, DT_EPLUGIN, "annotates at most 8 values of rows, [A D] f32; note [A] is not");
    refused("tiny.leak=reward", NULL, DT_EPLUGIN, "computed from the field reward, which is not known yet");
    refused("tiny.leak=truncated", NULL, DT_EPLUGIN, "computed from the field truncated, which is not known yet");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_agent), cmocka_unit_test(test_relay),       cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_returns),   cmocka_unit_test(test_annotations), cmocka_unit_test(test_normalised),
        cmocka_unit_test(test_squash),    cmocka_unit_test(test_graphs),      cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
