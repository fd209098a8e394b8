/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists that each agent has of its own ("A+1", plugin.h: DT_PORT_INDEX): every row of every slice belongs to the agent
 * whose pointers have it, in data of rounds and of a replay, of one step and of two; what is learnt through them; what
 * is refused. That threads, ranks, processes, devices and resumed runs give the same bits is seen where that of other
 * worlds is: test_workers, test_asked, test_rollout, test_replay.
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

enum { A, K, N }; /* sizes of a slice */
enum { PLACE, SINCE, STEP, LENGTH, SEED, OWN };
enum { SAMPLES = 48, ROUNDS = 3 };

static void open_with(world *w, const char *const *settings)
{
    world_open(w, settings, NULL);
    assert_done(dt_config_set(w->config, "env.id=herd"));
    assert_done(dt_config_set(w->config, "models.controller=herd_net"));
    world_start(w);
}

/* ---- what is in a slice ------------------------------------------------------------------------------------------ */

typedef struct counts { /* of what was looked at */
    uint64_t rows, empty, no_sender, senders, none;
} counts;

static float own_of(const world *w, const sample *s, const char *prefix, int64_t row, int column)
{
    char name[16];
    snprintf(name, sizeof(name), "%sown", prefix);
    return f32(w, s, name, OWN * row + column);
}

/* Which agent row k of the slice names: the agent of the same instance and step, where it has a row. */
static void look_at_who(const world *w, const sample *s, int64_t row, int64_t k, int32_t place, counts *n)
{
    const int32_t who = i32(w, s, "near_who", k);
    if (who >= 0) {
        assert_in_range(who, 0, s->size[A] - 1);
        assert_true(own_of(w, s, "", who, PLACE) == (float)place);
        assert_true(own_of(w, s, "", who, SEED) == own_of(w, s, "", row, SEED));
        assert_true(own_of(w, s, "", who, STEP) == own_of(w, s, "", row, STEP));
        n->senders++;
        return;
    }
    for (int64_t r = row - 3; r <= row + 3; r++) { /* places of an instance lie side by side */
        if (r >= 0 && r < s->size[A] && own_of(w, s, "", r, SEED) == own_of(w, s, "", row, SEED) &&
            own_of(w, s, "", r, STEP) == own_of(w, s, "", row, STEP)) {
            assert_true(own_of(w, s, "", r, PLACE) != (float)place);
        }
    }
    n->no_sender++;
}

/* How many nodes the instance of this one has; they are numbered. */
static int32_t nodes_about(const world *w, const sample *s, int64_t node)
{
    int64_t next = node + 1;
    while (next < s->size[N] && f32(w, s, "nodes", 2 * next) > 0) {
        next++;
    }
    return (int32_t)(f32(w, s, "nodes", 2 * (next - 1)) + 1);
}

/* Row k of the slice is row i of the list that this agent has at this step. */
static void look_at_row(const world *w, const sample *s, int64_t row, int32_t i, int64_t k, float step, counts *n)
{
    const int32_t place = (int32_t)own_of(w, s, "", row, PLACE), where = i32(w, s, "near_node", k);
    assert_true(f32(w, s, "near", 2 * k) == (float)(place + 10 * i));
    assert_true(f32(w, s, "near", 2 * k + 1) == step);
    for (int64_t t = 0; t < 2; t++) { /* steps come first */
        for (int64_t d = 0; d < 2; d++) {
            assert_true(f32(w, s, "near_steps", 2 * (t * s->size[K] + k) + d) ==
                        f32(w, s, "near", 2 * k + d) + (float)(100 * (1 + t)));
        }
    }
    assert_in_range(where, 0, s->size[N] - 1);
    assert_true(f32(w, s, "nodes", 2 * (int64_t)where + 1) == step);
    assert_int_equal((place + i) % nodes_about(w, s, where), (int32_t)f32(w, s, "nodes", 2 * (int64_t)where));
    if (step == own_of(w, s, "", row, STEP)) {
        look_at_who(w, s, row, k, (place + 1 + i) % 4, n);
    }
    n->rows++;
}

/* The lists of one step, from row `from` of the slice on; returns where they end. */
static int32_t look_at_lists(const world *w, const sample *s, const char *prefix, int32_t from, counts *n)
{
    char name[24];
    snprintf(name, sizeof(name), "%snear_ptr", prefix);
    const bool is_next = prefix[0] != '\0';
    assert_int_equal(i32(w, s, name, 0), from);
    for (int64_t r = 0; r < s->size[A]; r++) {
        const int32_t begin = i32(w, s, name, r), end = i32(w, s, name, r + 1);
        assert_int_equal(end - begin, (int32_t)own_of(w, s, prefix, r, LENGTH));
        for (int32_t k = begin; k < end; k++) {
            look_at_row(w, s, r, k - begin, k, own_of(w, s, "", r, STEP) + (float)is_next, n);
        }
        n->empty += end == begin;
    }
    n->none += s->size[A] > 0 && s->size[K] == 0;
    return i32(w, s, name, s->size[A]);
}

static void look_at(const world *w, const sample *s, bool is_joined, counts *n)
{
    int32_t end = look_at_lists(w, s, "", 0, n);
    if (is_joined) {
        end = look_at_lists(w, s, "next_", end, n);
    }
    assert_int_equal(end, s->size[K]);
}

/* All samples one by one, and in slices of several, backwards. */
static void look_at_all(const world *w, bool is_joined, counts *n)
{
    const uint64_t count = world_source(w)->count;
    static const uint32_t sizes[] = {1, 7, SAMPLES / 2};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint64_t first = 0; first + sizes[i] <= count; first += sizes[i]) {
            uint64_t index[SAMPLES];
            sample s;
            for (uint32_t j = 0; j < sizes[i]; j++) {
                index[j] = count - 1 - first - j;
            }
            read_samples(w, index, sizes[i], &s);
            look_at(w, &s, is_joined, n);
            drop_sample(w, &s);
        }
    }
}

static void test_slices(void **state)
{
    static const char *const kinds[][5] = {{"tiny.transitions=0", NULL},
                                           {"tiny.transitions=2", "tiny.window=3", NULL},
                                           {"tiny.transitions=3", NULL},
                                           {"tiny.transitions=3", "herd.teams=two", "opponents.every=1", NULL},
                                           {"tiny.transitions=2", "tiny.replay=40", NULL},
                                           {"tiny.transitions=3", "tiny.replay=40", "tiny.window=2", NULL}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        counts n = {0};
        world w;
        open_with(&w, kinds[i]);
        for (int round = 0; round < ROUNDS; round++) {
            assert_done(world_iterate(&w));
            look_at_all(&w, strcmp(kinds[i][0], "tiny.transitions=3") == 0, &n);
        }
        assert_true(n.rows > 800 && n.empty > 200 && n.none > 5 && n.senders > 90 && n.no_sender > 300);
        world_close(&w);
    }
}

/* Without a row in any list all works, and what the lists say is nothing. */
static void test_no_rows(void **state)
{
    static const char *const settings[] = {"herd.lists=none", "tiny.transitions=3", NULL};
    counts n = {0};
    world w;
    open_with(&w, settings);
    for (int round = 0; round < ROUNDS; round++) {
        assert_done(world_iterate(&w));
        look_at_all(&w, true, &n);
    }
    assert_true(n.rows == 0 && n.none > 100 && w.phase->report.agent_steps > 30);
    world_close(&w);
}

/* ---- what is learnt through them --------------------------------------------------------------------------------- */

/* Gradients of a loss behind the attention over lists are differences of the loss, parameter by parameter. */
static void test_gradient(void **state)
{
    static const char *const settings[] = {"tiny.transitions=0", NULL};
    static float x[512], moved[512], gradient[512];
    const char *loss = "value";
    double value = 0;
    uint32_t n_felt = 0;
    world w;
    open_with(&w, settings);
    assert_done(world_iterate(&w));
    const tiny *p = w.phase;
    const uint64_t size = p->train->vector_size(p->t);
    const uint32_t lists = 6 * 2 + 6; /* near, score: of rows of lists alone */
    assert_in_range(size, lists, 512);
    assert_done(p->train->vector_get(p->t, x));
    assert_done(p->train->gradient(p->t, loss, gradient, &value));
    for (uint32_t i = 0; i < lists; i++) {
        const float e = 0.02F;
        double up = 0, down = 0;
        memcpy(moved, x, size * sizeof(*x));
        moved[i] = x[i] + e;
        assert_done(p->train->vector_set(p->t, moved));
        assert_done(p->train->losses(p->t, &loss, 1, &up));
        moved[i] = x[i] - e;
        assert_done(p->train->vector_set(p->t, moved));
        assert_done(p->train->losses(p->t, &loss, 1, &down));
        const double slope = (up - down) / (2 * (double)e), want = (double)gradient[i];
        if (fabs(slope - want) > 0.005 * fabs(want) + 2e-5) {
            fail_msg("parameter %u: the gradient is %g, differences of the loss say %g", i, want, slope);
        }
        n_felt += fabs(want) > 5e-3;
    }
    assert_true(n_felt == lists);
    world_close(&w);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void refused(const char *lie, dt_status code, const char *text)
{
    char setting[32];
    world w;
    snprintf(setting, sizeof(setting), "herd.lie=%s", lie);
    const char *const settings[] = {"env.id=herd", "models.controller=herd_net", setting, NULL};
    world_open(&w, settings, NULL);
    dt_status st = world_create(&w);
    for (int round = 0; round < ROUNDS && st >= 0; round++) {
        st = world_iterate(&w);
    }
    if (st != code || strstr(dt_error_text(), text) == NULL) {
        print_error("%s: %d, %s\n", lie, (int)st, dt_error_text());
    }
    assert_int_equal(st, code);
    assert_non_null(strstr(dt_error_text(), text));
    world_close(&w);
}

static void test_refused(void **state)
{
    static const struct {
        const char *lie, *text;
    } cases[] = {
        {"twice", "herd: ports near_ptr and spare both define the owners of rows of K; one of them is enough"},
        {"counted",
         "herd: port spare counts rows of K, of which each agent has its own (port near_ptr [A+1]); no other "
         "port may count them"},
        {"nested", "herd: port spare [K+1] holds lists of rows of K, of which each agent has its own (port near_ptr "
                   "[A+1]); lists of lists are not possible"},
        {"bare", "herd: port near_ptr [A+1] contains row pointers; declare with DT_PORT_INDEX which rows they count"},
        {"of_agents", "herd: port near_ptr [A+1] contains row pointers that count \"A\""},
        {"floats", "herd: port near_ptr counts rows of symbol 1; there are 3, and indices are i32"},
        {"wide", "herd: port near_ptr [A+1 2] contains row pointers; declare with DT_PORT_INDEX which rows they count"},
        {"first", "step 3: observation near_ptr [A+1] begins the list of agent 0 at row 1 of K; expected 0"},
        {"falls", "step 3: observation near_ptr [A+1] has the list of agent 1 from row "},
        {"beyond", "step 3: observation near_ptr [A+1] has the list of agent 2 from row "},
        {"negative", "step 3: observation near_ptr [A+1] has the list of agent 0 from row 0 to before row -1 of K; "
                     "expected 0 to "},
        {"short", "step 3: observation near_ptr [A+1] ends the list of the last agent, 3, before row "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        refused(cases[i].lie, DT_EPLUGIN, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
