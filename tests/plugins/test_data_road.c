/* SPDX-License-Identifier: Apache-2.0
 *
 * What data_trajectory shows perception of roads (option lane_nodes): the pieces of lanes, and of each vehicle of each
 * frame the nearest ones, against the roads as they were written and a walk over all of them; packing, turning,
 * mirroring, noise, stores and scenes without roads.
 */
#include "trajectory_bench.h"
#include "trajectory_recording.h"

enum { LANES = 12, OF_LANE = 4, PIECES = LANES * OF_LANE, NODE = 14, EDGE = 10, NEAR = 8, MOST = 6 };
enum { ON = 6, TOLD = 7 }; /* columns of NEAR */

typedef struct piece {
    double x, y, heading, length;
} piece;
static piece road[PIECES];

/* Lane 2 i is the i-th of add_map, 60.2 m, and 2 i + 1 goes on from it, 67.3 m: four pieces each. */
static void cut_roads(void)
{
    for (int i = 0; i < PIECES; i++) {
        const double y = -300 + 4 * (i / (2 * OF_LANE)), t = (i % OF_LANE + 0.5) / OF_LANE;
        const bool is_on = i / OF_LANE % 2 == 1;
        const double from[2] = {is_on ? 5050 : 4990, is_on ? y + 5 : y};
        const double by[2] = {is_on ? 50 : 60, is_on ? 45 : 5};
        road[i] = (piece){from[0] + t * by[0], from[1] + t * by[1], atan2(by[1], by[0]), hypot(by[0], by[1]) / OF_LANE};
    }
}

static void open_and_read(bench *b, const char *store, const char *const *set, const uint64_t *index,
                          const uint64_t *key, uint32_t n)
{
    assert_int_equal(bench_open(b, store, set), DT_OK);
    bench_read(b, index, key, n);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* Pieces [base, base + PIECES): itself, the next one, the one before, four ahead. */
static void check_pieces(const bench *b, int64_t base, int64_t *edge_p)
{
    const float *node = (const float *)field_of(b, "lane_nodes") + base * NODE, *edge = field_of(b, "lane_edges");
    const int32_t *rowptr = (const int32_t *)field_of(b, "lane_rowptr") + base, *col = field_of(b, "lane_col");
    int64_t e = *edge_p;
    for (int i = 0; i < PIECES; i++, node += NODE) {
        const bool is_on = i / OF_LANE % 2 == 1;
        const int at = i % (2 * OF_LANE); /* of the way along both lanes */
        const int source[4] = {i, at < 7 ? i + 1 : -1, at > 0 ? i - 1 : -1, at < 4 ? i + 4 : -1};
        static const int relation[4] = {0, 1, 2, 5};
        assert_true(is_near(node[0] * 20, road[i].length) && node[1] == 0 && is_near(node[2], 2 * (3.5 / 3.5 - 1)));
        for (int d = 3; d < NODE; d++) { /* a road, then a ramp */
            assert_true(node[d] == (d == 7 ? at == 7 : d == 8 ? !is_on : d == 10 ? is_on : 0));
        }
        assert_int_equal(rowptr[i], e);
        for (int k = 0; k < 4; k++) {
            if (source[k] < 0) {
                continue;
            }
            const float *told = edge + e * EDGE;
            const piece *p = &road[i], *q = &road[source[k]];
            const double dx = q->x - p->x, dy = q->y - p->y;
            assert_int_equal(col[e++], base + source[k]);
            for (int d = 0; d < 6; d++) {
                assert_true(told[d] == (d == relation[k]));
            }
            assert_true(is_near(told[6] * 20, dx * cos(p->heading) + dy * sin(p->heading)));
            assert_true(fabs((double)told[7] * 8 - (dy * cos(p->heading) - dx * sin(p->heading))) < 1e-4);
            assert_true(fabs((double)told[8] - sin(q->heading - p->heading)) < 1e-6);
            assert_true(is_near(told[9], cos(q->heading - p->heading)));
        }
        assert_int_equal(rowptr[i + 1], e);
    }
    *edge_p = e;
}

/* ---- vehicles on them -------------------------------------------------------------------------------------------- */

typedef struct place {
    double along, side, turned, gap, cost;
} place;

static place place_of(const piece *p, const seen *v)
{
    const double dx = v->x - p->x, dy = v->y - p->y;
    place a = {.along = dx * cos(p->heading) + dy * sin(p->heading),
               .side = dy * cos(p->heading) - dx * sin(p->heading)};
    const double t = fmax(-p->length / 2, fmin(a.along, p->length / 2));
    a.gap = hypot(v->x - p->x - t * cos(p->heading), v->y - p->y - t * sin(p->heading));
    a.turned = remainder(v->heading - p->heading, 2 * M_PI);
    a.cost = a.gap + 3 * fabs(a.turned);
    return a;
}

static double bounded(double x, double most)
{
    return fmax(-most, fmin(x, most));
}

static void check_told(const float *told, const piece *p, const seen *v)
{
    const place a = place_of(p, v);
    const double dx = p->x - v->x, dy = p->y - v->y;
    const bool is_on = fabs(a.along) < p->length / 2 + 1 && fabs(a.side) <= 1.75 && fabs(a.turned) < M_PI / 3;
    const double want[NEAR] = {bounded(a.along / p->length, 2),
                               bounded(a.side / 4, 3),
                               sin(a.turned),
                               cos(a.turned),
                               bounded((dx * cos(v->heading) + dy * sin(v->heading)) / 20, 3),
                               bounded((dy * cos(v->heading) - dx * sin(v->heading)) / 8, 3),
                               is_on,
                               1};
    for (int d = 0; d < NEAR; d++) {
        assert_true(fabs((double)told[d] - want[d]) < 1e-5);
    }
}

/* Edges of one row: the nearest of what is within 12 m are there, and no others, cheapest first; how many told are on
 * their lane. */
static int check_vehicle(const bench *b, int64_t row, int64_t base, const seen *v)
{
    const int32_t *rowptr = field_of(b, "near_rowptr"), *col = field_of(b, "near_col");
    const float *told = field_of(b, "near_edges");
    const int32_t first = rowptr[row], n = rowptr[row + 1] - first;
    bool is_taken[PIECES] = {false};
    double last = 0;
    int n_within = 0, n_on = 0;
    assert_in_range(n, 0, MOST);
    for (int32_t e = first; e < first + n; e++) {
        const int64_t i = col[e] - base;
        assert_in_range(i, 0, PIECES - 1);
        assert_false(is_taken[i]);
        is_taken[i] = true;
        const place a = place_of(&road[i], v);
        assert_true(a.cost >= last - 1e-9 && a.gap <= 12 + 1e-9); /* none of further away, wherever cells begin */
        last = a.cost;
        check_told(told + e * NEAR, &road[i], v);
        n_on += told[e * NEAR + ON] == 1;
    }
    for (int i = 0; i < PIECES; i++) {
        const place a = place_of(&road[i], v);
        n_within += a.gap <= 12;
        assert_true(is_taken[i] || a.gap > 12 || (n == MOST && a.cost >= last - 1e-9));
    }
    assert_int_equal(n, n_within < MOST ? n_within : MOST);
    return n_on;
}

/* Number of the window with this anchor in scene 0: 6, 8, ... without the empty frame. */
static const uint64_t sample_of_roads = 2, sample_without = 70;
enum { ANCHOR = 10 };

static int check_vehicles(const bench *b, int64_t base)
{
    int64_t row = 0;
    int n_on = 0;
    for (int k = 0; k < T; k++) {
        for (int c = 0; c < CARS; c++) {
            const seen *v = &recorded[0][ANCHOR - (T - 1 - k) * STRIDE][c];
            if (v->is_there) {
                n_on += check_vehicle(b, row++, base, v);
            }
        }
    }
    return n_on;
}

static void test_fields(void **state)
{
    (void)state;
    bench b;
    int64_t e = 0;
    cut_roads();
    write_store_of("r", 10, true, &(dt_packing){0});
    open_and_read(&b, "r", (const char *const[]){WINDOW, "lane_nodes=true", NULL}, &sample_of_roads, NULL, 1);
    assert_int_equal(b.size[3], PIECES);
    check_pieces(&b, 0, &e);
    assert_int_equal(b.size[4], e);
    assert_true(check_vehicles(&b, 0) > 3);
    assert_int_equal(((const int32_t *)field_of(&b, "near_rowptr"))[b.size[0]], b.size[5]);
    assert_true(b.size[5] > 20);
    bench_close(&b);
}

/* Two scenes, of which the second has no map, and the first one again. */
static void test_packing(void **state)
{
    (void)state;
    const uint64_t index[3] = {sample_of_roads, sample_without, sample_of_roads};
    bench b;
    int64_t e = 0;
    cut_roads();
    write_store_of("r", 10, true, &(dt_packing){0});
    open_and_read(&b, "r", (const char *const[]){WINDOW, "lane_nodes=true", "lanes=true", "pairs=true", NULL}, index,
                  NULL, 3);
    int64_t each[6], all[6];
    memcpy(all, b.size, sizeof(all));
    assert_int_equal(b.ops->sizes(b.self, &sample_of_roads, 1, each), DT_OK);
    assert_int_equal(all[3], 2 * PIECES);
    assert_int_equal(all[4], 2 * each[4]);
    assert_int_equal(all[5], 2 * each[5]);
    check_pieces(&b, 0, &e);
    assert_int_equal(e, each[4]);
    check_pieces(&b, PIECES, &e);
    assert_int_equal(e, all[4]);
    check_vehicles(&b, 0);
    const int32_t *rowptr = field_of(&b, "near_rowptr"), *col = field_of(&b, "near_col");
    for (int64_t r = each[0]; r <= all[0] - each[0]; r++) { /* where no roads are, nothing is near */
        assert_int_equal(rowptr[r], each[5]);
    }
    for (int64_t k = 0; k < each[5]; k++) {
        assert_int_equal(col[each[5] + k], col[k] + PIECES);
    }
    assert_memory_equal((const float *)field_of(&b, "near_edges"),
                        (const float *)field_of(&b, "near_edges") + each[5] * NEAR, (size_t)each[5] * NEAR * 4);
    bench_close(&b);
}

/* ---- what training does ------------------------------------------------------------------------------------------ */

enum { N_ROAD = 7 };
static const char *const names[N_ROAD] = {"lane_nodes",  "lane_rowptr", "lane_col",  "lane_edges",
                                          "near_rowptr", "near_col",    "near_edges"};

/* Is field i the same in both, but for what left and right turn round to? */
static bool is_same(const bench *a, const bench *b, int i, bool is_mirrored)
{
    static const int turned[N_ROAD][5] = {{1, -1, -1, -1, -1}, {-1}, {-1}, {7, 8, -1, -1, -1}, {-1}, {-1},
                                          {1, 2, 5, -1, -1}};
    static const int width[N_ROAD] = {NODE, 1, 1, EDGE, 1, 1, NEAR};
    const char *dims[N_ROAD] = {"L 14", "L+1", "J", "J 10", "N+1", "V", "V 8"};
    const size_t n = values_of(a, dims[i]);
    bool same = memcmp(a->size, b->size, sizeof(a->size)) == 0;
    if (width[i] == 1) {
        return same && memcmp(field_of(a, names[i]), field_of(b, names[i]), n * 4) == 0;
    }
    const float *x = field_of(a, names[i]), *y = field_of(b, names[i]);
    for (size_t k = 0; k < n && same; k++) {
        float sign = 1;
        for (int d = 0; turned[i][d] >= 0 && is_mirrored; d++) {
            sign = (int)k % width[i] == turned[i][d] ? -1 : sign;
        }
        same = x[k] == sign * y[k];
    }
    return same;
}

static void test_turning_and_mirroring(void **state)
{
    (void)state;
    bench plain, other;
    int n_mirrored = 0, n_plain = 0;
    write_store_of("r", 10, true, &(dt_packing){0});
    open_and_read(&plain, "r", (const char *const[]){WINDOW, "lane_nodes=true", NULL}, &sample_of_roads, NULL, 1);
    dt_store *kept = open_store;
    for (uint64_t key = 1; key < 12; key++) {
        open_and_read(&other, "r", (const char *const[]){WINDOW, "lane_nodes=true", NULL}, &sample_of_roads, &key, 1);
        bool as_it_was = true, mirrored = true;
        for (int i = 0; i < N_ROAD; i++) {
            as_it_was = as_it_was && is_same(&plain, &other, i, false);
            mirrored = mirrored && is_same(&plain, &other, i, true);
        }
        assert_true(as_it_was != mirrored);
        n_plain += as_it_was;
        n_mirrored += mirrored;
        bench_close(&other);
    }
    assert_true(n_plain > 0 && n_mirrored > 0);
    open_store = kept;
    bench_close(&plain);
}

static void test_noise(void **state)
{
    (void)state;
    bench plain, other;
    const uint64_t key = 5;
    write_store_of("r", 10, true, &(dt_packing){0});
    open_and_read(&plain, "r", (const char *const[]){WINDOW, "lane_nodes=true", NULL}, &sample_of_roads, NULL, 1);
    dt_store *kept = open_store;
    open_and_read(&other, "r", (const char *const[]){WINDOW, "lane_nodes=true", "mirror=false", "hide_nodes=1", NULL},
                  &sample_of_roads, &key, 1);
    for (int i = 0; i < N_ROAD - 1; i++) {
        assert_true(is_same(&plain, &other, i, false));
    }
    const float *told = field_of(&other, "near_edges");
    for (int64_t k = 0; k < other.size[5] * NEAR; k++) { /* not even that something is told */
        assert_true(told[k] == 0);
    }
    bench_close(&other);
    open_and_read(&other, "r",
                  (const char *const[]){WINDOW, "lane_nodes=true", "mirror=false", "position_noise_m=2", NULL},
                  &sample_of_roads, &key, 1);
    for (int i = 0; i < 5; i++) {
        assert_true(is_same(&plain, &other, i, false));
    }
    told = field_of(&other, "near_edges");
    const float *was = field_of(&plain, "near_edges");
    const int32_t *col = field_of(&other, "near_col"), *before = field_of(&plain, "near_col");
    int n_moved = 0;
    for (int64_t k = 0; k < other.size[5]; k++) { /* by 2 m along x and y at most, beside the same piece */
        assert_true(told[k * NEAR + TOLD] == 1);
        if (col[k] == before[k] && fabsf(was[k * NEAR + 1]) < 2) {
            assert_true(fabsf(told[k * NEAR + 1] - was[k * NEAR + 1]) < 2 * 1.42f / 4);
            n_moved += told[k * NEAR + 1] != was[k * NEAR + 1];
        }
    }
    assert_true(n_moved > 10);
    bench_close(&other);
    open_store = kept;
    bench_close(&plain);
}

static void test_without_roads(void **state)
{
    (void)state;
    static const char *const sets[2][8] = {{WINDOW, "lane_nodes=true", NULL}, {WINDOW, NULL}};
    write_store("s", 10);
    write_store_of("r", 10, true, &(dt_packing){0});
    for (int i = 0; i < 2; i++) {
        bench b;
        uint32_t n = 0;
        assert_int_equal(bench_open(&b, i == 0 ? "s" : "r", sets[i]), DT_OK);
        (void)b.ops->symbols(b.self, &n);
        assert_int_equal(n, 3);
        (void)b.ops->fields(b.self, &n);
        assert_int_equal(n, 19);
        assert_true(i == 1 || strstr(b.host.log, "has no roads: vehicles are told nothing of lanes") != NULL);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fields, begin, end),
        cmocka_unit_test_setup_teardown(test_packing, begin, end),
        cmocka_unit_test_setup_teardown(test_turning_and_mirroring, begin, end),
        cmocka_unit_test_setup_teardown(test_noise, begin, end),
        cmocka_unit_test_setup_teardown(test_without_roads, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
