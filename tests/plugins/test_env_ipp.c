/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/env_ipp: ports, masks, collisions, messages, rewards by hand, and the two rules against figures
 * measured elsewhere, by another implementation of the same rules.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugins/env_ipp/env_ipp.h"

enum { MAX_D = 7 * 121 + 6, MAX_STATE = 3 * 121 + 3 * IPP_UAVS + 1 };
enum { ENTROPY, F1 = 3, LOW = 6, COLLISIONS = 9 }; /* metrics */

typedef struct rig {
    mock_host host;
    const dt_component *component;
    const dt_env_ops *ops;
    void *config;
    ipp *self;
    dt_env_spec spec;
    dt_env_io io;
    uint32_t A;
    int64_t D;
    float obs[IPP_UAVS * MAX_D], moves[IPP_UAVS][IPP_MOVES][IPP_COLUMNS], state[MAX_STATE];
    int32_t agent_state[IPP_UAVS], act[IPP_UAVS];
    void *list[4];
    int64_t size[1];
    uint8_t alive[IPP_UAVS], mask[IPP_UAVS][IPP_MOVES], terminated[IPP_UAVS], truncated[IPP_UAVS];
    float reward[IPP_UAVS], cost[IPP_UAVS];
    double metric[16];
} rig;

static rig r;

static void open_env(const char *const *set)
{
    memset(&r, 0, sizeof(r));
    mock_host_init(&r.host);
    r.component = mock_load("plugins", "env_ipp", "env_ipp");
    assert_non_null(r.component);
    r.ops = r.component->ops;
    r.config = mock_config(r.component, set);
    r.self = calloc(1, r.component->state_size);
    assert_int_equal(r.component->check(&r.host.host, r.config), DT_OK);
    assert_int_equal(r.ops->create(r.self, &r.host.host, r.config), DT_OK);
    r.spec.struct_size = sizeof(r.spec);
    assert_int_equal(r.ops->spec(r.self, &r.spec), DT_OK);
    r.A = r.spec.n_agents;
    assert_int_equal(sscanf(r.spec.obs[0].dims, "A %ld", &r.D), 1);
    assert_true(r.D <= MAX_D);
    r.list[0] = r.obs;
    r.list[1] = r.moves;
    r.list[2] = r.state;
    r.list[3] = r.agent_state;
    r.io = (dt_env_io){.struct_size = sizeof(r.io),
                       .n_obs = r.spec.n_obs,
                       .obs = r.list,
                       .size = r.size,
                       .alive = r.alive,
                       .mask = &r.mask[0][0],
                       .reward = r.reward,
                       .cost = r.cost,
                       .terminated = r.terminated,
                       .truncated = r.truncated,
                       .metric = r.metric};
}

static void close_env(void)
{
    r.ops->destroy(r.self);
    free(r.self);
    free(r.config);
    assert_int_equal(r.host.n_live, 0);
}

static void clear(void)
{
    memset(r.obs, 0, sizeof(r.obs));
    memset(r.moves, 0, sizeof(r.moves));
    memset(r.state, 0, sizeof(r.state));
    memset(r.mask, 1, sizeof(r.mask));
    memset(r.alive, 0, sizeof(r.alive));
    memset(r.terminated, 0, sizeof(r.terminated));
    memset(r.truncated, 0, sizeof(r.truncated));
    memset(r.reward, 0, sizeof(r.reward));
    memset(r.cost, 0, sizeof(r.cost));
    memset(r.metric, 0, sizeof(r.metric));
}

static void reset(uint64_t seed)
{
    clear();
    r.io.act_i = NULL;
    assert_int_equal(r.ops->reset(r.self, &r.io, seed), DT_OK);
    for (uint32_t i = 0; i < r.A; i++) {
        assert_int_equal(r.alive[i], 1);
    }
}

/* with r.act; true when the episode is over */
static bool step(void)
{
    clear();
    r.io.act_i = r.act;
    const dt_status st = r.ops->step(r.self, &r.io);
    assert_true(st == DT_OK || st == DT_DONE);
    for (uint32_t i = 0; i < r.A; i++) {
        assert_int_equal(r.terminated[i], st == DT_DONE);
        assert_int_equal(r.alive[i], st == DT_OK);
        assert_int_equal(r.truncated[i], 0);
        assert_true(r.reward[i] == r.reward[0] && isfinite(r.reward[i]));
        for (uint32_t j = 0; j < i; j++) { /* never two in one place */
            assert_int_not_equal(memcmp(&r.self->place[i], &r.self->place[j], sizeof(ipp_place)), 0);
        }
    }
    return st == DT_DONE;
}

/* the largest of a column of moves, of those that the mask leaves */
static void follow(int column)
{
    for (uint32_t i = 0; i < r.A; i++) {
        int32_t best = -1;
        for (int32_t m = 0; m < IPP_MOVES; m++) {
            if (r.mask[i][m] && (best < 0 || r.moves[i][m][column] > r.moves[i][best][column])) {
                best = m;
            }
        }
        assert_true(best >= 0);
        r.act[i] = best;
    }
}

static double play(uint64_t seed, int column)
{
    double sum = 0;
    bool is_over = false;
    for (reset(seed); !is_over;) {
        follow(column);
        is_over = step();
        sum += (double)r.reward[0];
    }
    return sum;
}

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        print_error("%.12g is %.3g from %.12g, more than %.3g\n", a, fabs(a - b), b, tolerance);
    }
    assert_true(fabs(a - b) <= tolerance);
}

static void test_spec(void **state)
{
    static const char *const more[] = {"uavs=6", "budget=5", "state=true", "lookahead=true", NULL};
    open_env(NULL);
    assert_int_equal(r.A, 4);
    assert_int_equal(r.spec.n_obs, 2);
    assert_string_equal(r.spec.obs[0].dims, "A 847");
    assert_string_equal(r.spec.obs[1].dims, "A 6 2");
    assert_int_equal(r.spec.choices[0], 6);
    assert_int_equal(r.spec.max_steps, 15);
    assert_string_equal(r.spec.costs[0], "collision");
    close_env();
    open_env(more);
    assert_int_equal(r.A, 6);
    assert_int_equal(r.spec.n_obs, 4);
    assert_string_equal(r.spec.obs[0].dims, "A 853");
    assert_string_equal(r.spec.obs[2].dims, "G 382"); /* 3 121 + 3 6 + 1 */
    assert_int_equal(r.spec.obs[3].flags, DT_PORT_INDEX(1));
    assert_int_equal(r.spec.max_steps, 6);
    close_env();
}

/* masks are right wherever 8 UAVs come to be; starts are at the top, apart; shares of altitudes add up */
static void test_masks(void **state)
{
    static const char *const crowd[] = {"uavs=8", "step_m=25", "budget=40", "cells=64", "stride=2", NULL};
    static const int32_t by[6][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    int n_free = 0, n_shut = 0;
    double charged = 0, counted = 0;
    open_env(crowd);
    for (uint64_t seed = 0; seed < 40; seed++) {
        bool is_over = false;
        for (reset(seed); !is_over;) {
            for (uint32_t i = 0; i < r.A; i++) {
                const ipp_place *p = r.self->place;
                bool in[6], taken[6], any = false;
                for (int m = 0; m < 6; m++) {
                    const int32_t to[3] = {p[i].x + by[m][0], p[i].y + by[m][1], p[i].level + by[m][2]};
                    in[m] = to[0] >= 0 && to[0] < 3 && to[1] >= 0 && to[1] < 3 && to[2] >= 0 && to[2] < 3;
                    taken[m] = false;
                    for (uint32_t j = 0; j < r.A; j++) {
                        taken[m] = taken[m] || (p[j].x == to[0] && p[j].y == to[1] && p[j].level == to[2]);
                    }
                    any = any || (in[m] && !taken[m]);
                }
                assert_true(r.self->step > 0 || p[i].level == 2);
                for (int m = 0; m < 6; m++) { /* with others all around, it may try */
                    assert_int_equal(r.mask[i][m], in[m] && (!taken[m] || !any));
                }
                n_free += any;
                n_shut += !any;
            }
            follow(IPP_CHANCE);
            is_over = step();
            for (uint32_t i = 0; i < r.A; i++) {
                charged += (double)r.cost[i];
            }
        }
        counted += r.metric[COLLISIONS];
        near(r.metric[LOW] + r.metric[LOW + 1] + r.metric[LOW + 2], 1, 1e-12);
    }
    assert_true(n_free > 10000 && n_shut > 0);
    assert_true(counted > 100);
    near(charged, 2 * counted, 0); /* both are charged */
    close_env();
}

static void put(uint32_t i, int32_t x, int32_t y, int32_t level)
{
    r.self->place[i] = (ipp_place){x, y, level};
}

static void is_at(uint32_t i, int32_t x, int32_t y, int32_t level)
{
    assert_true(r.self->place[i].x == x && r.self->place[i].y == y && r.self->place[i].level == level);
}

/* two want one free place; one wants a place that is being left, which no mask allows; a chain; far ones are well */
static void test_collisions(void **state)
{
    open_env(NULL);
    reset(1);
    put(0, 2, 2, 0);
    put(1, 4, 2, 0);
    put(2, 9, 9, 2);
    put(3, 0, 0, 1);
    memcpy(r.act, (int32_t[]){IPP_EAST, IPP_WEST, IPP_SOUTH, IPP_UP}, 4 * sizeof(int32_t));
    assert_false(step());
    is_at(0, 3, 2, 0);
    is_at(1, 4, 2, 0); /* stays */
    is_at(2, 9, 8, 2);
    is_at(3, 0, 0, 2);
    assert_true(r.cost[0] == 1 && r.cost[1] == 1 && r.cost[2] == 0 && r.cost[3] == 0);
    /* 0 follows 1, which moves later: it is there still; 2 and 3 the other way round: 2 has gone */
    put(2, 7, 7, 1);
    put(3, 7, 6, 1);
    memcpy(r.act, (int32_t[]){IPP_EAST, IPP_EAST, IPP_NORTH, IPP_NORTH}, 4 * sizeof(int32_t));
    assert_false(step());
    is_at(0, 3, 2, 0);
    is_at(1, 5, 2, 0);
    is_at(2, 7, 8, 1);
    is_at(3, 7, 7, 1);
    assert_true(r.cost[0] == 1 && r.cost[1] == 1 && r.cost[2] == 0 && r.cost[3] == 0);
    close_env();
    /* who has others all around may try */
    static const char *const close_by[] = {"step_m=25", "cells=64", "stride=2", NULL};
    open_env(close_by);
    reset(1);
    put(0, 0, 0, 1);
    put(1, 2, 0, 0);
    put(2, 0, 2, 0);
    put(3, 1, 0, 1);
    memcpy(r.act, (int32_t[]){IPP_DOWN, IPP_WEST, IPP_SOUTH, IPP_WEST}, 4 * sizeof(int32_t));
    assert_false(step());
    is_at(1, 1, 0, 0);
    is_at(3, 0, 0, 1);
    assert_memory_equal(r.mask[0], ((uint8_t[]){1, 0, 1, 0, 1, 0}), 6);
    assert_memory_equal(r.mask[1], ((uint8_t[]){1, 0, 1, 0, 1, 0}), 6);
    memcpy(r.act, (int32_t[]){IPP_UP, IPP_EAST, IPP_EAST, IPP_EAST}, 4 * sizeof(int32_t));
    assert_false(step());
    is_at(0, 0, 0, 0); /* 3 was there still */
    is_at(3, 1, 0, 1);
    assert_true(r.cost[0] == 1 && r.cost[3] == 1);
    close_env();
}

/* The reward from the map itself, counted again by its formula, for both kinds; and that "before" is "after", a step
 * late. */
static double formula(const int16_t *H, const int16_t *odds_after, const int16_t *H_after, int64_t n)
{
    double gained = 0, before = 0;
    for (int64_t i = 0; i < n; i++) {
        const double p = 1 / (1 + exp(-odds_after[i] / 1024.0)), w = p > 0.501 ? 1 : p < 0.499 ? 0 : 0.5;
        gained += w * (H[i] - H_after[i]);
        before += w * H[i];
    }
    return 22 * gained / before - 0.5;
}

static void test_rewards(void **state)
{
    static const char *const late[] = {"rewarded=before", NULL};
    double reward[2][15];
    for (int is_late = 0; is_late < 2; is_late++) {
        open_env(is_late ? late : NULL);
        const int64_t n = 493 * 493;
        int16_t *H = malloc((size_t)n * sizeof(*H));
        assert_non_null(H);
        reset(11);
        for (int t = 0; t < 15; t++) {
            memcpy(H, r.self->field.H, (size_t)n * sizeof(*H));
            follow(IPP_GAIN);
            assert_int_equal(step(), t == 14);
            reward[is_late][t] = (double)r.reward[0];
            if (!is_late) {
                near(reward[0][t], formula(H, r.self->field.odds, r.self->field.H, n), 1e-5);
            }
        }
        free(H);
        close_env();
    }
    for (int t = 0; t < 14; t++) {
        assert_true(reward[1][t + 1] == reward[0][t]);
    }
    assert_true(reward[1][0] > -0.5 && reward[1][0] < 0); /* four from 15 m: at most 22 * 0.0456 - 0.5 */
}

/* With all in range all know the same, with none in range each what it saw; 25 m is between; the planes show who is. */
static void test_messages(void **state)
{
    static const char *const set[3][3] = {
        {"communication_m=0", "state=true", NULL},
        {"communication_m=25", "state=true", NULL},
        {"communication_m=72", NULL},
    };
    double known[3] = {0};
    for (int k = 0; k < 3; k++) {
        open_env(set[k]);
        assert_int_equal(r.self->n_beliefs, k == 2 ? 1 : 5);
        for (uint64_t seed = 0; seed < 10; seed++) {
            (void)play(seed, IPP_CHANCE);
            for (uint32_t i = 0; i < r.A; i++) {
                const float *obs = r.obs + i * r.D;
                int n_others = 0;
                for (int c = 0; c < 121; c++) {
                    known[k] += 1 - (double)obs[5 * 121 + c];
                    n_others += obs[121 + c] > 0;
                    assert_true(obs[c] == (c == r.self->place[i].y * 11 + r.self->place[i].x));
                }
                assert_true(k != 0 || n_others == 0);
                assert_true(k != 2 || n_others >= 1);
            }
        }
        close_env();
    }
    assert_true(known[0] < 0.7 * known[1] && known[1] < 0.97 * known[2]);
    /* 25 m in space: 3, 4 and 0 steps are 25 m, with one more above more */
    open_env(NULL);
    reset(1);
    put(0, 1, 1, 0);
    put(1, 4, 5, 0);
    put(2, 4, 5, 1);
    assert_true(ipp_receives(r.self, 0, 1) && ipp_receives(r.self, 1, 0) && !ipp_receives(r.self, 0, 2));
    close_env();
}

/* "own" shows the planes of "field", moved so that the UAV is in the middle; the state is what it says */
static void test_views(void **state)
{
    static const char *const field_view_of[] = {"state=true", "lookahead=true", NULL};
    static const char *const own[] = {"view=own", NULL};
    static float seen[4 * MAX_D];
    open_env(field_view_of);
    (void)play(3, IPP_GAIN);
    const int64_t D = r.D;
    memcpy(seen, r.obs, sizeof(seen));
    for (uint32_t i = 0; i < r.A; i++) {
        for (int m = 0; m < IPP_MOVES; m++) {
            assert_true(r.obs[i * D + 847 + m] == r.moves[i][m][IPP_GAIN]);
        }
    }
    double truth = 0, H = 0;
    for (int c = 0; c < 121; c++) {
        truth += (double)(r.state[c] * (float)r.self->tables.count[c]);
        H += (double)(r.state[242 + c] * (float)r.self->tables.count[c]);
    }
    const double n = (double)r.self->tables.n * r.self->tables.n;
    near(truth / n, (double)r.self->field.n_target / (493.0 * 493), 0.01);
    assert_true(H / n > 0.1 && H / n < 0.8);
    assert_true(r.size[0] == 1 && r.agent_state[3] == 0);
    assert_true(r.state[363] == (float)r.self->place[0].x / 10 && r.state[375] == 0); /* no moves left */
    close_env();
    open_env(own);
    (void)play(3, IPP_GAIN);
    for (uint32_t i = 0; i < r.A; i++) {
        for (int plane = 0; plane < 7; plane++) {
            for (int v = 0; v < 11; v++) {
                for (int u = 0; u < 11; u++) {
                    const int x = u - 5 + r.self->place[i].x, y = v - 5 + r.self->place[i].y;
                    const bool in = x >= 0 && x < 11 && y >= 0 && y < 11;
                    const float was = in ? seen[i * D + plane * 121 + y * 11 + x] : 0;
                    const float is = r.obs[i * r.D + plane * 121 + v * 11 + u];
                    assert_true(plane == 0 ? is == (float)in : plane == 2 || plane == 3 || is == was);
                }
            }
        }
    }
    close_env();
}

static void test_same_bits(void **state)
{
    static float obs[4 * MAX_D];
    open_env(NULL);
    const double first = play(5, IPP_CHANCE), other = play(6, IPP_GAIN);
    memcpy(obs, r.obs, sizeof(obs));
    reset(9);
    assert_true(play(5, IPP_CHANCE) == first && play(6, IPP_GAIN) == other);
    assert_memory_equal(obs, r.obs, sizeof(obs));
    assert_true(first != other);
    close_env();
}

typedef struct measured { /* elsewhere: 50 episodes, return with its deviation, shares and entropies */
    double mean, deviation, entropy[3], f1[3], low;
} measured;

/* Our means within 4 standard errors of both; entropies and F1, of which no deviation is known, within 0.06, shares
 * within 0.03. */
static void check_rule(int column, const measured *m)
{
    enum { N = 200 };
    static const char *const published[] = {"rewarded=before", NULL};
    double sum = 0, square = 0, metric[10] = {0};
    open_env(published);
    for (uint64_t seed = 0; seed < N; seed++) {
        const double got = play(seed, column);
        sum += got;
        square += got * got;
        for (int k = 0; k < 10; k++) {
            metric[k] += r.metric[k] / N;
        }
    }
    const double mean = sum / N, variance = square / N - mean * mean;
    near(mean, m->mean, 4 * sqrt(variance / N + m->deviation * m->deviation / 50));
    near(sqrt(variance), m->deviation, 4 * m->deviation * sqrt(0.5 / N + 0.5 / 50));
    for (int k = 0; k < 3; k++) {
        near(metric[ENTROPY + k], m->entropy[k], 0.06);
        near(metric[F1 + k], m->f1[k], 0.06);
    }
    near(metric[LOW], m->low, 0.03);
    close_env();
}

static void test_rules(void **state)
{
    static const measured random = {-2.50, 2.10, {0.908, 0.827, 0.763}, {0.375, 0.470, 0.540}, 0.20};
    static const measured greedy = {8.84, 3.54, {0.791, 0.534, 0.359}, {0.425, 0.658, 0.791}, 0.82};
    check_rule(IPP_CHANCE, &random);
    check_rule(IPP_GAIN, &greedy);
}

static void refused(const char *const *set, const char *why)
{
    void *config = mock_config(r.component, set);
    assert_int_equal(r.component->check(&r.host.host, config), DT_ECONFIG);
    if (strstr(r.host.message, why) == NULL) {
        print_error("%s\n", r.host.message);
    }
    assert_non_null(strstr(r.host.message, why));
    free(config);
}

static void test_refusals(void **state)
{
    open_env(NULL);
    refused((const char *const[]){"step_m=30", NULL}, "a lattice of 2 points in a row, expected 3 to 33");
    refused((const char *const[]){"step_m=1", NULL}, "a lattice of 51 points");
    refused((const char *const[]){"stride=25", NULL}, "stride 25 leaves points of the lattice without a cell");
    refused((const char *const[]){"cells=1024", "step_m=25", "stride=1", NULL}, "finer than 256 samples: raise stride");
    refused((const char *const[]){"fov_deg=1", NULL}, "fov_deg 1 sees less than two cells");
    refused((const char *const[]){"truth=patches", "patch_m=51", NULL}, "patch_m 51 is more than the field");
    refused((const char *const[]){"covered_min=0.7", NULL}, "covered_min 0.7 is above covered_max 0.6");
    reset(1);
    r.io.act_i = r.act;
    put(1, 10, 3, 1);
    memcpy(r.act, (int32_t[]){IPP_DOWN, IPP_EAST, IPP_DOWN, IPP_DOWN}, 4 * sizeof(int32_t));
    assert_int_equal(r.ops->step(r.self, &r.io), DT_EINVAL);
    assert_non_null(strstr(r.host.message, "action 0 of UAV 1 leads out of the field"));
    r.act[1] = 6;
    assert_int_equal(r.ops->step(r.self, &r.io), DT_EINVAL);
    assert_non_null(strstr(r.host.message, "action 6 of UAV 1, expected 0 to 5"));
    r.act[1] = -1;
    assert_int_equal(r.ops->step(r.self, &r.io), DT_EINVAL);
    close_env();
}

/* whichever allocation fails, create says so and destroy leaves nothing behind */
static void test_memory(void **state)
{
    static const char *const set[] = {"state=true", NULL};
    dt_status st = DT_ENOMEM;
    int64_t n = 0;
    open_env(set);
    while (st != DT_OK) {
        mock_host h;
        ipp *self = calloc(1, r.component->state_size);
        mock_host_init(&h);
        h.fail_alloc = ++n;
        st = r.ops->create(self, &h.host, r.config);
        assert_true(st == DT_OK || (st == DT_ENOMEM && strstr(h.message, "out of memory") != NULL));
        r.ops->destroy(self);
        free(self);
        assert_int_equal(h.n_live, 0);
    }
    assert_int_equal(n, 4 + 7 + 2 * 5 + 4 + 1);
    close_env();
}

static void test_scene(void **state)
{
    static dt_scene_vehicle vehicle[8];
    static dt_scene_signal signal[200];
    open_env(NULL);
    const dt_scene_api *api = r.component->extension(DT_EXT_SCENE);
    dt_scene s = {.struct_size = sizeof(s)};
    dt_scene_roads roads = {.struct_size = sizeof(roads)};
    (void)play(2, IPP_GAIN);
    api->roads(r.self, &roads);
    assert_int_equal(roads.n, 5);
    api->capture(r.self, &s); /* no room yet */
    assert_true(s.n_vehicles == 4 && s.n_signals == 121 && s.time_s == 15);
    s.cap_vehicles = 8;
    s.cap_signals = 200;
    s.vehicle = vehicle;
    s.signal = signal;
    api->capture(r.self, &s);
    int n_red = 0, n_green = 0;
    for (uint32_t i = 0; i < s.n_signals; i++) {
        n_red += signal[i].state == DT_SCENE_RED;
        n_green += signal[i].state == DT_SCENE_GREEN;
    }
    for (int i = 0; i < 4; i++) { /* the middle of its front is half of its length ahead */
        const dt_scene_vehicle *v = &vehicle[i];
        near((double)(v->x - 0.5F * v->length * cosf(v->heading)), 5.0 * r.self->place[i].x, 1e-4);
        near((double)(v->y - 0.5F * v->length * sinf(v->heading)), 5.0 * r.self->place[i].y, 1e-4);
        near((double)v->length, 1.0 + r.self->place[i].level, 1e-5);
        assert_true(v->agent == i && v->id == i);
    }
    assert_true(n_red > 10 && n_green > 10 && n_red + n_green < 121);
    close_env();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),      cmocka_unit_test(test_masks),    cmocka_unit_test(test_collisions),
        cmocka_unit_test(test_rewards),   cmocka_unit_test(test_messages), cmocka_unit_test(test_views),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_rules),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory),    cmocka_unit_test(test_scene),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
