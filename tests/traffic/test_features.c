/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/features/features.c: cases by hand, and every number against a plain double loop over all
 * pairs.
 */
#include "fixture.h"

#include "base/mem.h"
#include "base/rng.h"
#include "traffic/features/features.h"
#include "traffic/features/features_graph.h"

#include <unistd.h>

enum { N_MAX = 300, K_MAX = 24 };

typedef struct result {
    float node[N_MAX * DT_NODE_FEATURES], edge[N_MAX * K_MAX * DT_EDGE_FEATURES], ittc[N_MAX];
    int32_t rowptr[N_MAX + 1], col[N_MAX * K_MAX];
} result;
static result got, again;

static dt_vehicle car(int64_t id, double x, double y, double heading, double speed)
{
    return (dt_vehicle){.id = id,
                        .x = x,
                        .y = y,
                        .heading = heading,
                        .speed = speed,
                        .accel = NAN,
                        .length = 4,
                        .width = 2,
                        .stop_distance = NAN};
}

static dt_status run(const dt_vehicle *v, uint32_t n, double radius, uint32_t k, result *r)
{
    return dt_features_frame(NULL, v, n, radius, k, r->node, r->rowptr, r->col, r->edge, r->ittc);
}

/* The edge of target i whose source is j, NULL when there is none. */
static const float *edge_of(const result *r, int32_t i, int32_t j)
{
    for (int32_t e = r->rowptr[i]; e < r->rowptr[i + 1]; e++) {
        if (r->col[e] == j) {
            return r->edge + e * DT_EDGE_FEATURES;
        }
    }
    return NULL;
}

static void assert_edge(const float *e, double gap, double lateral, double closing, double ittc)
{
    assert_non_null(e);
    assert_true(fabs(e[0] - gap) < 1e-5 && fabs(e[1] - lateral) < 1e-5);
    assert_true(fabs(e[2] - closing) < 1e-5 && fabs(e[3] - ittc) < 1e-5);
}

static void test_nodes(void **state)
{
    dt_vehicle v[2] = {car(1, 3, -4, M_PI / 6, 7), car(2, 1000, 0, 0, 0)};
    v[0].accel = -1.5;
    v[0].stop_distance = 12;
    v[0].controlled = 1;
    v[1].stop_distance = 900;
    assert_ok(run(v, 2, 50, 16, &got));
    const double want[2][9] = {{3, -4, 7, -1.5, 0.5, sqrt(3) / 2, 4, 12, 1}, {1000, 0, 0, 0, 0, 1, 4, 200, 0}};
    for (int i = 0; i < 18; i++) {
        assert_true(fabs(got.node[i] - want[i / 9][i % 9]) < 1e-6);
    }
    v[1].stop_distance = NAN;
    assert_ok(run(v, 2, 50, 16, &got));
    assert_true(got.node[9 + 7] == 200);
    v[1].stop_distance = -3;
    assert_ok(run(v, 2, 50, 16, &got));
    assert_true(got.node[9 + 7] == 0);
}

/* Without a heading a vehicle has no direction, but the speed that is known of it, as the others of its frame. */
static void test_unknown_headings(void **state)
{
    const dt_vehicle v[] = {car(1, 0, 0, NAN, 12), car(2, 20, 0, 0, 7), car(3, 40, 0, NAN, 0.01)};
    assert_ok(run(v, 3, 50, 16, &got));
    for (int i = 0; i < 3; i++) {
        const float *node = got.node + (ptrdiff_t)i * DT_NODE_FEATURES;
        assert_true(node[2] == (float)v[i].speed);
        assert_true(node[4] == 0 && node[5] == (i == 1 ? 1 : 0));
    }
}

/* Two cars in one lane: 20 m between the centres, 16 m between the bumpers, closing at 8 m/s: collision in 2 s. */
static void test_following(void **state)
{
    dt_vehicle v[2] = {car(1, 0, 0, 0, 10), car(2, 20, 0, 0, 2)};
    assert_ok(run(v, 2, 50, 16, &got));
    assert_int_equal(got.rowptr[2], 4);
    assert_int_equal(got.col[0], 0);
    assert_int_equal(got.col[2], 1);
    assert_edge(got.edge, 0, 0, 0, 0);
    assert_edge(edge_of(&got, 0, 1), 16, 0, 8, 0.5);
    assert_edge(edge_of(&got, 1, 0), -16, 0, 8, 0.5); /* from the leader: behind, closing alike */
    assert_true(fabs(got.ittc[0] - 0.5) < 1e-6);
    assert_true(got.ittc[1] == 0); /* what comes from behind is not on the path */
    v[1].speed = 12;               /* opening */
    assert_ok(run(v, 2, 50, 16, &got));
    assert_edge(edge_of(&got, 0, 1), 16, 0, -2, 0);
    assert_true(got.ittc[0] == 0);
}

static void test_lateral_and_overlap(void **state)
{
    /* heading +y: the other is ahead and 1.9 m to the right; half widths sum to 2 m, so it is on the path */
    dt_vehicle v[2] = {car(1, 0, 0, M_PI / 2, 10), car(2, 1.9, 10, M_PI / 2, 4)};
    assert_ok(run(v, 2, 50, 16, &got));
    assert_edge(edge_of(&got, 0, 1), 6, -1.9, 6, 1);
    assert_true(fabs(got.ittc[0] - 1) < 1e-6);
    v[1].x = 2.1;
    assert_ok(run(v, 2, 50, 16, &got));
    assert_true(got.ittc[0] == 0);
    v[1].width = NAN; /* 1.8 m counts: half widths 1.9 m */
    v[1].x = 1.95;
    assert_ok(run(v, 2, 50, 16, &got));
    assert_true(got.ittc[0] == 0);
    v[1].x = 1.85;
    assert_ok(run(v, 2, 50, 16, &got));
    assert_true(got.ittc[0] > 0);
    /* side by side: no gap, closing, so the clamp holds; abreast counts as ahead */
    v[0] = car(1, 0, 0, 0, 10);
    v[1] = car(2, 0, 3, 0, 4);
    assert_ok(run(v, 2, 50, 16, &got));
    assert_edge(edge_of(&got, 0, 1), 0, 3, 6, 10);
    assert_true(got.ittc[0] == 0);
    /* oncoming: speeds add up */
    v[1] = car(2, 24, 0, M_PI, 10);
    assert_ok(run(v, 2, 50, 16, &got));
    assert_edge(edge_of(&got, 0, 1), 20, 0, 20, 1);
}

static void test_neighbours(void **state)
{
    dt_vehicle v[5] = {car(1, 0, 0, 0, 1), car(2, 50, 0, 0, 1), car(3, 50.001, 0, 0, 1), car(4, 10, 0, 0, 1),
                       car(5, -10, 0, 0, 1)};
    assert_ok(run(v, 5, 50, 16, &got));
    assert_int_equal(got.rowptr[1], 4);    /* itself, two at 10 m, one at 50 m exactly */
    const int32_t order[4] = {0, 3, 4, 1}; /* equal distance: lower index first */
    assert_memory_equal(got.col, order, sizeof(order));
    assert_ok(run(v, 5, 50, 2, &got));
    assert_int_equal(got.rowptr[5], 10);
    assert_int_equal(got.col[0], 0);
    assert_int_equal(got.col[1], 3);
    assert_ok(run(v, 5, 50, 1, &got));
    assert_int_equal(got.rowptr[5], 5);
    assert_ok(run(v, 0, 50, 16, &got));
    assert_int_equal(got.rowptr[0], 0);
}

/* The danger ahead is seen even when nearer vehicles fill all edges. */
static void test_path_beyond_edges(void **state)
{
    dt_vehicle v[4] = {car(1, 0, 0, 0, 20), car(2, 0, 4, 0, 20), car(3, 0, -4, 0, 20), car(4, 24, 0, 0, 0)};
    assert_ok(run(v, 4, 50, 3, &got));
    assert_null(edge_of(&got, 0, 3));
    assert_true(fabs(got.ittc[0] - 1) < 1e-6);
}

typedef struct pair {
    double d2;
    int j;
} pair;

static int by_distance(const void *pa, const void *pb)
{
    const pair *a = pa, *b = pb;
    return a->d2 != b->d2 ? (a->d2 < b->d2 ? -1 : 1) : a->j - b->j;
}

static void compare_with_pairs(const dt_vehicle *v, int n, double radius, int k, const result *r)
{
    for (int i = 0; i < n; i++) {
        pair p[N_MAX];
        int m = 0;
        double worst = 0;
        for (int j = 0; j < n; j++) {
            double ex = v[j].x - v[i].x, ey = v[j].y - v[i].y;
            if (j != i && ex * ex + ey * ey <= radius * radius) {
                p[m++] = (pair){ex * ex + ey * ey, j};
                double c = cos(v[i].heading), s = sin(v[i].heading), dx = ex * c + ey * s, dy = ey * c - ex * s;
                double gap = fmax(0, fabs(dx) - (v[i].length + v[j].length) / 2);
                double closing = (v[i].speed - v[j].speed * cos(v[j].heading - v[i].heading)) * (dx >= 0 ? 1 : -1);
                double ittc = closing <= 0 ? 0 : gap == 0 ? 10 : fmin(10, closing / gap);
                if (dx > 0 && fabs(dy) < (v[i].width + v[j].width) / 2 && ittc > worst) {
                    worst = ittc;
                }
            }
        }
        qsort(p, (size_t)m, sizeof(p[0]), by_distance);
        m = m < k - 1 ? m : k - 1;
        assert_int_equal(r->rowptr[i + 1] - r->rowptr[i], m + 1);
        assert_int_equal(r->col[r->rowptr[i]], i);
        for (int e = 0; e < m; e++) {
            int j = p[e].j, at_edge = r->rowptr[i] + 1 + e;
            assert_int_equal(r->col[at_edge], j);
            double c = cos(v[i].heading), s = sin(v[i].heading), ex = v[j].x - v[i].x, ey = v[j].y - v[i].y;
            double side = ex * c + ey * s >= 0 ? 1 : -1;
            double gap = fmax(0, fabs(ex * c + ey * s) - (v[i].length + v[j].length) / 2);
            double closing = side * (v[i].speed - v[j].speed * cos(v[j].heading - v[i].heading));
            double want[4] = {side * gap, ey * c - ex * s, closing,
                              closing <= 0 ? 0
                              : gap == 0   ? 10
                                           : fmin(10, closing / gap)};
            for (int d = 0; d < 4; d++) {
                assert_true(fabs(r->edge[at_edge * 4 + d] - want[d]) <= 1e-5 * fmax(1, fabs(want[d])));
            }
        }
        assert_true(fabs(r->ittc[i] - worst) < 1e-5);
    }
}

static void test_against_all_pairs(void **state)
{
    static dt_vehicle v[N_MAX], moved[N_MAX];
    dt_rng_key key = {.seed = 5};
    for (int round = 0; round < 8; round++) {
        int n = round == 0 ? 1 : 3 + (int)(dt_rng_uniform(&key, 100000 + (uint64_t)round) * (N_MAX - 3));
        double spread = round % 2 == 0 ? 120 : 600;
        for (int i = 0; i < n; i++) {
            double u[7];
            for (int d = 0; d < 7; d++) {
                u[d] = dt_rng_uniform(&key, (uint64_t)(round * 7000 + 7 * i + d));
            }
            v[i] = car(i, floor((u[0] - 0.5) * spread), floor((u[1] - 0.5) * spread), 6 * u[2] - 3, 30 * u[3]);
            v[i].length = 3 + 10 * u[4]; /* whole metres for the places: many equal distances */
            v[i].width = 1.5 + u[5];
        }
        double radius = round < 4 ? 50 : 17.5;
        int k = round % 3 == 0 ? K_MAX : 16;
        assert_ok(run(v, (uint32_t)n, radius, (uint32_t)k, &got));
        compare_with_pairs(v, n, radius, k, &got);
        /* what is seen does not depend on where the scene lies */
        for (int i = 0; i < n; i++) {
            moved[i] = v[i];
            moved[i].x += 4096;
            moved[i].y -= 8192;
        }
        assert_ok(run(moved, (uint32_t)n, radius, (uint32_t)k, &again));
        assert_memory_equal(got.rowptr, again.rowptr, (size_t)(n + 1) * sizeof(got.rowptr[0]));
        assert_memory_equal(got.col, again.col, (size_t)got.rowptr[n] * sizeof(got.col[0]));
    }
}

/* ---- sets of instructions ---------------------------------------------------------------------------------------- */

static uint64_t drawn;

static double draw(double lo, double hi)
{
    const dt_rng_key key = {.seed = 77};
    return lo + (hi - lo) * dt_rng_uniform(&key, drawn++);
}

static void run_set(dt_graph_set set, const dt_vehicle *v, uint32_t n, double radius, uint32_t k, result *r)
{
    static unsigned char room[DT_NEARBY_BYTES(N_MAX)] __attribute__((aligned(16)));
    dt_nearby g;
    memset(r, 0, sizeof(*r));
    dt_nearby_init(&g, N_MAX, room);
    for (uint32_t i = 0; i < n; i++) {
        g.sin_h[i] = sin(v[i].heading);
        g.cos_h[i] = cos(v[i].heading);
    }
    dt_nearby_build(&g, v, n, radius, DT_WIDTH_DEFAULT_M);
    dt_features_graph_of(set, &g, v, n, radius, k, r->rowptr, r->col, r->edge, r->ittc);
}

/* Places where the search takes each of its ways: on a lattice, where distances are equal and some are 0; close by,
 * where more are near than are ranked; along a line, and far apart. */
static dt_vehicle place(int kind, int i)
{
    static const double spread[] = {600, 90, 40, 900, 20000};
    double x = draw(-0.5, 0.5) * spread[kind], y = draw(-0.5, 0.5) * spread[kind];
    x = kind == 1 ? 10 * floor(x / 10) : x;
    y = kind == 1 ? 10 * floor(y / 10) : kind == 3 ? 0.01 * y : y;
    dt_vehicle v = car(i, x, y, i % 7 == 0 ? draw(-1e6, 1e6) : draw(-4, 4), draw(-5, 40));
    v.length = draw(2, 20);
    v.width = i % 5 == 0 ? NAN : draw(1, 3);
    return v;
}

static void test_sets_agree(void **state)
{
    static const uint32_t neighbours[] = {1, 2, 5, 16, K_MAX};
    static dt_vehicle v[N_MAX];
    for (int round = 0; round < 200; round++) {
        const uint32_t n = 1 + (uint32_t)draw(0, N_MAX - 1), k = neighbours[round / 5 % 5];
        const double radius = round % 3 == 0 ? 17.5 : 50;
        for (uint32_t i = 0; i < n; i++) {
            v[i] = place(round % 5, (int)i);
        }
        run_set(DT_GRAPH_PLAIN, v, n, radius, k, &got);
        for (int set = DT_GRAPH_PLAIN; set <= (int)dt_graph_best(); set++) {
            run_set((dt_graph_set)set, v, n, radius, k, &again);
            assert_memory_equal(&got, &again, sizeof(got));
        }
        for (uint32_t i = 0; i < n; i++) {
            v[i].width = isnan(v[i].width) ? DT_WIDTH_DEFAULT_M : v[i].width;
        }
        compare_with_pairs(v, (int)n, radius, (int)k, &got);
    }
}

static void assert_cosines(dt_graph_set set, double most)
{
    enum { MANY = 1001 };
    static double x[MANY], y[MANY];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < MANY; i++) {
            x[i] = draw(-most, most);
        }
        x[0] = 0;
        x[1] = most;
        x[2] = M_PI_2 * floor(most / M_PI_2); /* next to a zero or a turning point */
        dt_features_cosines_of(set, x, MANY, y);
        for (int i = 0; i < MANY; i++) {
            const long double want = cosl((long double)x[i]);
            const double unit = nextafter(fabs((double)want), 2) - fabs((double)want);
            assert_true(fabsl(want - (long double)y[i]) <= 0.75L * (long double)unit);
        }
    }
}

static void test_cosines(void **state)
{
    for (int set = DT_GRAPH_PLAIN; set <= (int)dt_graph_best(); set++) {
        assert_cosines((dt_graph_set)set, 0.7);
        assert_cosines((dt_graph_set)set, 7);
        assert_cosines((dt_graph_set)set, 2 * DT_HEADING_MAX);
    }
}

static void test_workspace(void **state)
{
    dt_features_work w = {0};
    dt_vehicle v[3] = {car(1, 0, 0, 0, 1), car(2, 5, 0, 0, 1), car(3, 9, 0, 0, 1)};
    assert_ok(dt_features_frame(&w, v, 3, 50, 16, got.node, got.rowptr, got.col, got.edge, NULL));
    uint64_t before = dt_alloc_calls();
    for (int i = 0; i < 5; i++) {
        assert_ok(dt_features_frame(&w, v, 3, 50, 16, got.node, got.rowptr, got.col, got.edge, NULL));
    }
    assert_int_equal(dt_alloc_calls(), before);
    dt_features_work_fini(&w);
    assert_ok(dt_features_frame(NULL, v, 3, 50, 16, got.node, got.rowptr, got.col, got.edge, NULL));
    assert_int_equal(dt_alloc_calls(), before);
    dt_fault_reset("alloc:1");
    assert_fails(dt_features_frame(&w, v, 3, 50, 16, got.node, got.rowptr, got.col, got.edge, NULL), DT_ENOMEM,
                 "no memory for a frame of 3");
    dt_fault_reset(NULL);
    dt_features_work_fini(&w);
}

static void test_refusals(void **state)
{
    dt_vehicle v = car(42, 0, 0, 0, 1);
    assert_fails(run(&v, 1, 0, 16, &got), DT_EINVAL, "radius 0");
    assert_fails(run(&v, 1, 50, 0, &got), DT_EINVAL, "0 neighbours");
    v.x = NAN;
    assert_fails(run(&v, 1, 50, 16, &got), DT_EINVAL, "vehicle 42: x nan is outside");
    v = car(42, 0, INFINITY, 0, 1);
    assert_fails(run(&v, 1, 50, 16, &got), DT_EINVAL, "y inf");
    v = car(42, 0, 0, NAN, 1);
    assert_fails(dt_features_service.frame(NULL, &v, 1, 50, 16, got.node, got.rowptr, got.col, got.edge), DT_EINVAL,
                 "heading nan");
    v = car(42, 0, 0, INFINITY, 1);
    assert_fails(run(&v, 1, 50, 16, &got), DT_EINVAL, "heading inf");
    v = car(42, 0, 0, 0, 151);
    assert_fails(run(&v, 1, 50, 16, &got), DT_EINVAL, "speed 151 is outside [-150, 150]");
    v = car(42, 0, 0, 0, 1);
    v.length = -4;
    assert_fails(run(&v, 1, 50, 16, &got), DT_EINVAL, "length -4");
    v.length = 4;
    v.width = -1;
    assert_fails(run(&v, 1, 50, 16, &got), DT_EINVAL, "width -1");
    v.width = 2;
    v.accel = INFINITY;
    assert_fails(run(&v, 1, 50, 16, &got), DT_EINVAL, "acceleration or stop distance is infinite");
}

/* More vehicles than could stand there are rejected immediately; as many elsewhere are not. */
static void test_crowds(void **state)
{
    enum { N = 100000 };
    dt_vehicle *v = dt_alloc_n(N, sizeof(*v));
    assert_non_null(v);
    for (int i = 0; i < N; i++) {
        v[i] = (dt_vehicle){.id = i, .x = 1000, .y = -1000, .length = 4, .width = 2};
    }
    alarm(60);
    assert_int_equal(dt_features_check(v, N, 50, 16), DT_EINVAL);
    assert_int_equal(dt_features_check(v, DT_CROWD_MOST, 50, 16), DT_OK);
    assert_int_equal(dt_features_check(v, DT_CROWD_MOST + 1, 50, 16), DT_EINVAL);
    assert_int_equal(dt_features_check(v, N, 1e7, 16), DT_EINVAL); /* at one point: the radius makes no room there */
    assert_int_equal(dt_features_check(v, N, 1000, 16), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "square of 64 m at (960, -1024)"));
    for (int i = 0; i < N; i++) {
        v[i].x = 5.0 * (i % 1000);
        v[i].y = 4.0 * (i / 1000); /* a full car park: N cars on 5 m x 4 m each */
    }
    assert_int_equal(dt_features_check(v, N, 50, 16), DT_OK);
    assert_int_equal(dt_features_check(v, N, 1000, 16), DT_OK);
    alarm(0);
    dt_free(v);
}

static void test_risk_now(void **state)
{
    assert_false(dt_risk_is_now(-3.0, 0)); /* harder than 3, not 3 */
    assert_true(dt_risk_is_now(-3.01, 0));
    assert_false(dt_risk_is_now(0, 1 / 1.5));
    assert_true(dt_risk_is_now(0, 0.67));
    assert_true(fabs(dt_accel_from_speed(10, 9, 0.2) + 5) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_unknown_headings),
        cmocka_unit_test(test_following),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_lateral_and_overlap),
        cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_path_beyond_edges),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_against_all_pairs),
        cmocka_unit_test(test_risk_now),
        cmocka_unit_test(test_sets_agree),
        cmocka_unit_test(test_cosines),
        cmocka_unit_test(test_crowds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
