/* SPDX-License-Identifier: Apache-2.0
 *
 * What data_trajectory says of its features: it is what its samples show, each frame once, nothing of other splits, the
 * same bits of a packed store, and of a store that was cut by place what the whole one says.
 */
#include "trajectory_bench.h"
#include "trajectory_recording.h"

#include "../traffic/town.h"

#define ONE_FRAME "cache_mb=1", "history_s=0.2", "horizon_s=1", "rate_hz=5", "stride_s=0.3", "folds=3"

typedef struct said {
    dt_field_stat node[DT_NODE_FEATURES], edge[DT_EDGE_FEATURES];
} said;

static said statistics_of(const char *store, const char *const *set)
{
    bench b;
    said s;
    assert_int_equal(bench_open(&b, store, set), DT_OK);
    assert_int_equal(b.ops->statistics(b.self, "nodes", s.node, DT_NODE_FEATURES), DT_OK);
    assert_int_equal(b.ops->statistics(b.self, "edges", s.edge, DT_EDGE_FEATURES), DT_OK);
    bench_close(&b);
    return s;
}

/* ---- held against what is read ----------------------------------------------------------------------------------- */

typedef struct values {
    double *x; /* [n, width] */
    size_t n, width;
} values;

static void keep(values *v, const float *row)
{
    v->x = realloc(v->x, (v->n + 1) * v->width * sizeof(*v->x));
    for (size_t d = 0; d < v->width; d++) {
        v->x[v->n * v->width + d] = (double)row[d];
    }
    v->n++;
}

/* In two passes. */
static void assert_says(const dt_field_stat *s, const values *v)
{
    for (size_t d = 0; d < v->width; d++) {
        double least = INFINITY, most = -INFINITY, mean = 0, square = 0;
        for (size_t i = 0; i < v->n; i++) {
            const double x = v->x[i * v->width + d];
            least = fmin(least, x);
            most = fmax(most, x);
            mean += x / (double)v->n;
        }
        for (size_t i = 0; i < v->n; i++) {
            square += pow(v->x[i * v->width + d] - mean, 2) / (double)v->n;
        }
        assert_true(s[d].n == (double)v->n);
        assert_true(s[d].min == least && s[d].max == most);
        assert_float_equal(s[d].mean, mean, 1e-9);
        assert_float_equal(s[d].std, sqrt(square), 1e-9);
    }
}

/* All samples of windows of one frame, but edges of vehicles to themselves. */
static void read_all(const char *const *set, values *node, values *edge)
{
    bench b;
    *node = (values){.width = DT_NODE_FEATURES};
    *edge = (values){.width = DT_EDGE_FEATURES};
    assert_int_equal(bench_open(&b, "s", set), DT_OK);
    for (uint64_t i = 0; i < bench_count(&b); i++) {
        bench_read(&b, &i, NULL, 1);
        const float *nodes = field_of(&b, "nodes"), *edges = field_of(&b, "edges");
        const int32_t *rowptr = field_of(&b, "rowptr"), *col = field_of(&b, "col");
        for (int64_t r = 0; r < b.size[0]; r++) {
            keep(node, nodes + r * DT_NODE_FEATURES);
            for (int32_t e = rowptr[r]; e < rowptr[r + 1]; e++) {
                if (col[e] != r) {
                    keep(edge, edges + (int64_t)e * DT_EDGE_FEATURES);
                }
            }
        }
    }
    bench_close(&b);
}

static void test_it_is_what_samples_show(void **state)
{
    static const char *const splits[] = {"split=all", "split=train", "split=eval"};
    double n[3];
    write_store("s", 10);
    for (int i = 0; i < 3; i++) {
        /* augmentation is asked for, and plays no part */
        const char *const set[] = {ONE_FRAME,           splits[i],        "min_history_s=0",
                                   "speed_noise_mps=3", "hide_nodes=0.5", NULL};
        const said s = statistics_of("s", set);
        values node, edge;
        read_all(set, &node, &edge);
        assert_true(node.n > 40 && edge.n > 40);
        assert_says(s.node, &node);
        assert_says(s.edge, &edge);
        n[i] = s.node[0].n;
        free(node.x);
        free(edge.x);
    }
    assert_true(n[1] < n[0] && n[2] < n[0]);
}

/* Frames that many windows share count once. */
static void test_shared_frames_count_once(void **state)
{
    enum { PAST = (T - 1) * STRIDE, FUTURE = F * STRIDE };
    double n = 0;
    write_store("s", 10);
    for (int s = 0; s < SCENES; s++) {
        bool is_seen[FRAMES] = {false};
        for (int f = PAST; f + FUTURE < FRAMES; f++) {
            bool is_empty = true;
            for (int c = 0; c < CARS; c++) {
                is_empty = is_empty && !recorded[s][f][c].is_there;
            }
            for (int k = 0; k < T && !is_empty; k++) {
                is_seen[f - k * STRIDE] = true;
            }
        }
        for (int f = 0; f < FRAMES; f++) {
            for (int c = 0; c < CARS; c++) {
                n += is_seen[f] && recorded[s][f][c].is_there;
            }
        }
    }
    const said s = statistics_of("s", (const char *const[]){"history_s=0.8", "horizon_s=1", "stride_s=0.1", NULL});
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        assert_true(s.node[d].n == n);
    }
    /* features of nobody differ here: of lengths 4 .. 12 m as 1 / 4 of what exceeds 5 m */
    assert_true(s.node[6].min >= -0.25 && s.node[6].max <= 1.75);
    assert_true(s.node[8].std == 0 && s.node[8].mean == 0); /* nobody is controlled: exactly */
}

static void test_packed_stores_say_the_same(void **state)
{
    static const char *const set[] = {WINDOW, "split=train", NULL};
    if (!dt_blocks_has_zstd()) {
        skip();
    }
    write_store("s", 10);
    write_store_of("p", 10, false, &(dt_packing){.features = DT_KEPT_F32, .codec = DT_CODEC_ZSTD, .level = 3});
    const said plain = statistics_of("s", set), packed = statistics_of("p", set);
    assert_memory_equal(&plain, &packed, sizeof(plain));
}

static void assert_alike(const dt_field_stat *whole, const dt_field_stat *cut, int n)
{
    for (int d = 0; d < n; d++) {
        assert_true(whole[d].n > 500);
        assert_true(cut[d].n == whole[d].n);
        assert_true(cut[d].min == whole[d].min && cut[d].max == whole[d].max);
        assert_float_equal(cut[d].mean, whole[d].mean, 1e-9);
        assert_float_equal(cut[d].std, whole[d].std, 1e-9);
    }
}

/* Who is in the halo of a region counts where it is at home, as do the edges that lead to it. */
static void test_halos_do_not_count(void **state)
{
    static const char *const set[] = {"cache_mb=1",   "history_s=1",     "horizon_s=1.2", "rate_hz=5",
                                      "stride_s=0.2", "eval_scenes=all", "split=train",   NULL};
    static const dt_cut_options way = {.regions = 5, .halo_m = 180, .halo_s = 2};
    dt_str notes = {0};
    write_town("town", 0.5, &(dt_packing){0});
    assert_ok(dt_data_cut(at("town"), at("cut"), &way, &notes));
    dt_str_fini(&notes);
    const said whole = statistics_of("town", set), cut = statistics_of("cut", set);
    assert_alike(whole.node, cut.node, DT_NODE_FEATURES);
    assert_alike(whole.edge, cut.edge, DT_EDGE_FEATURES);
}

static void test_refusals(void **state)
{
    bench b;
    dt_field_stat out[DT_NODE_FEATURES];
    write_store("s", 10);
    assert_int_equal(bench_open(&b, "s", (const char *const[]){WINDOW, NULL}), DT_OK);
    assert_int_equal(b.ops->statistics(b.self, "motion", out, 6), DT_EUNSUPPORTED);
    assert_non_null(strstr(b.host.message, "statistics of nodes and edges, not of motion"));
    assert_int_equal(b.ops->statistics(b.self, "edges", out, 9), DT_EINVAL);
    assert_non_null(strstr(b.host.message, "edges has 4 columns, not 9"));
    for (int64_t n = 1; n <= 3; n++) {
        b.host.fail_alloc = n;
        assert_int_equal(b.ops->statistics(b.self, "nodes", out, DT_NODE_FEATURES), DT_ENOMEM);
        assert_non_null(strstr(b.host.message, "420 frames"));
    }
    assert_int_equal(b.ops->statistics(b.self, "nodes", out, DT_NODE_FEATURES), DT_OK);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_is_what_samples_show, begin, end),
        cmocka_unit_test_setup_teardown(test_shared_frames_count_once, begin, end),
        cmocka_unit_test_setup_teardown(test_packed_stores_say_the_same, begin, end),
        cmocka_unit_test_setup_teardown(test_halos_do_not_count, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
