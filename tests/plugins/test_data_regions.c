/* SPDX-License-Identifier: Apache-2.0
 *
 * data_trajectory over a town that was cut by place: of every window that the whole town shows, each vehicle is learnt
 * in one region alone, and all that is reported of it, of what it sees and of what those see is the same, bit for bit.
 * So the losses of all regions sum up to those of the town.
 */
#include "trajectory_bench.h"

#include "../traffic/town.h"
#include "base/hash.h"

enum { T = 5, F = 6, STRIDE = 2, RECORDS_MAX = 100000, HOPS = 2 };
#define WINDOW "cache_mb=1", "history_s=1", "horizon_s=1.2", "rate_hz=5", "stride_s=0.2"

/* A vehicle at an anchor, or a row of a window's history; of town and regions the same name. */
typedef struct record {
    int64_t scene, anchor, frame, id; /* frame: of the row; -1: the vehicle */
    uint64_t hash;                    /* of everything reported */
} record;

typedef struct records {
    record *list;
    size_t n;
    double target_weight, risk_weight, n_complete, n_hazards;
} records;

static uint64_t mix(uint64_t hash, const void *p, size_t bytes)
{
    return dt_hash64(p, bytes, hash);
}

/* Features of slice row r, its edges, and of what it sees, so many hops far. */
static uint64_t mix_row(const bench *b, int64_t r, int hops, uint64_t hash)
{
    const int32_t *rowptr = field_of(b, "rowptr"), *col = field_of(b, "col");
    const float *nodes = field_of(b, "nodes"), *edges = field_of(b, "edges");
    hash = mix(hash, nodes + 9 * r, 9 * sizeof(*nodes));
    if (hops == 0) {
        return hash;
    }
    hash = mix(hash, edges + 4 * rowptr[r], (size_t)(rowptr[r + 1] - rowptr[r]) * 4 * sizeof(*edges));
    for (int32_t e = rowptr[r]; e < rowptr[r + 1]; e++) {
        hash = mix_row(b, col[e], hops - 1, hash);
    }
    return hash;
}

static uint64_t mix_vehicle(const bench *b, int64_t i)
{
    static const struct {
        const char *name;
        size_t bytes;
    } flat[] = {{"complete", 1},      {"site", 4},           {"target", F * 8},         {"target_weight", F * 4},
                {"ahead", 3 * 7 * 4}, {"beside", 4 * 7 * 4}, {"next_ahead", 3 * 7 * 4}, {"next_beside", 4 * 7 * 4},
                {"next_present", 4},  {"hazard_in", 4}};
    const int64_t S = b->size[2];
    const int32_t *seq_row = field_of(b, "seq_row");
    uint64_t hash = 0;
    for (size_t k = 0; k < sizeof(flat) / sizeof(flat[0]); k++) {
        hash = mix(hash, (const char *)field_of(b, flat[k].name) + (size_t)i * flat[k].bytes, flat[k].bytes);
    }
    const size_t lane = values_of(b, b->field[25].dims) / (size_t)S * sizeof(float);
    const size_t path = values_of(b, b->field[26].dims) / (size_t)S * sizeof(float);
    hash = mix(hash, (const char *)field_of(b, "lane") + (size_t)i * lane, lane);
    hash = mix(hash, (const char *)field_of(b, "path") + (size_t)i * path, path);
    for (int64_t k = 0; k < T; k++) {
        const int64_t at = k * S + i;
        hash = mix(hash, (const float *)field_of(b, "present") + at, sizeof(float));
        hash = mix(hash, (const float *)field_of(b, "motion") + 6 * at, 6 * sizeof(float));
        hash = seq_row[at] >= 0 ? mix_row(b, seq_row[at], HOPS, hash) : mix(hash, &k, sizeof(k));
    }
    return hash;
}

static bool is_core(const dt_store_view *v, int64_t r)
{
    return v->core == NULL || v->core[r] == 1;
}

/* The vehicles and rows of the window that ends with this frame of the store. */
static void add_window(const bench *b, const dt_store_view *v, int64_t scene, int64_t anchor, records *all)
{
    const int64_t *id = dt_store_track_ids(open_store), begin = v->scene_frame[scene];
    const int64_t town = v->core == NULL ? scene : town_of(open_store, scene);
    const float *risk_weight = field_of(b, "risk_weight"), *target_weight = field_of(b, "target_weight");
    const float *hazard_in = field_of(b, "hazard_in");
    const uint8_t *risk_state = field_of(b, "risk_state"), *complete = field_of(b, "complete");
    const float *label = field_of(b, "risk_label");
    int64_t i = 0;
    for (int64_t r = v->frame_row[anchor]; r < v->frame_row[anchor + 1]; r++, i++) {
        for (int k = 0; k < F; k++) {
            all->target_weight += (double)target_weight[i * F + k];
        }
        all->n_complete += complete[i];
        all->n_hazards += hazard_in[i] >= 0;
        if (is_core(v, r)) {
            assert_true(all->n < RECORDS_MAX);
            all->list[all->n++] = (record){town, anchor - begin, -1, id[v->row_track[r]], mix_vehicle(b, i)};
        }
    }
    assert_int_equal(i, b->size[2]);
    int64_t at = 0;
    for (int64_t k = T - 1; k >= 0; k--) {
        const int64_t f = anchor - k * STRIDE;
        for (int64_t r = f < begin ? 0 : v->frame_row[f]; f >= begin && r < v->frame_row[f + 1]; r++, at++) {
            all->risk_weight += (double)risk_weight[at];
            if (is_core(v, r)) {
                uint64_t hash = mix(mix_row(b, at, HOPS, 0), &label[at], sizeof(*label));
                hash = mix(mix(hash, &risk_state[at], 1), &risk_weight[at], sizeof(*risk_weight));
                assert_true(all->n < RECORDS_MAX);
                all->list[all->n++] = (record){town, anchor - begin, f - begin, id[v->row_track[r]], hash};
            } else {
                assert_true(risk_weight[at] == 0 && risk_state[at] == 3);
            }
        }
    }
    assert_int_equal(at, b->size[0]);
}

static int compare(const void *pa, const void *pb)
{
    const record *a = pa, *b = pb;
    const int64_t x[] = {a->scene, a->anchor, a->frame, a->id}, y[] = {b->scene, b->anchor, b->frame, b->id};
    for (int k = 0; k < 4; k++) {
        if (x[k] != y[k]) {
            return x[k] < y[k] ? -1 : 1;
        }
    }
    return 0;
}

/* Has one of the frames of this window a core row? */
static bool is_window(const dt_store_view *v, int64_t scene, int64_t anchor)
{
    bool has_core = false;
    for (int64_t k = 0; k < T; k++) {
        const int64_t f = anchor - k * STRIDE;
        for (int64_t r = f < v->scene_frame[scene] ? 0 : v->frame_row[f];
             f >= v->scene_frame[scene] && r < v->frame_row[f + 1]; r++) {
            has_core = has_core || is_core(v, r);
        }
    }
    return has_core && v->frame_row[anchor] < v->frame_row[anchor + 1];
}

static records read_all(const char *store, bool is_training)
{
    const char *const held[] = {WINDOW, "pairs=true", "action_s=0.2", "hazard_steps=8", "lanes=true", NULL};
    const char *const trained[] = {WINDOW,
                                   "pairs=true",
                                   "action_s=0.2",
                                   "hazard_steps=8",
                                   "lanes=true",
                                   "split=train",
                                   "eval_scenes=held", /* of training all scenes */
                                   "train_stride_s=0.3",
                                   "min_history_s=0",
                                   "min_future_s=0.2",
                                   NULL};
    bench b;
    records all = {.list = calloc(RECORDS_MAX, sizeof(record))};
    assert_int_equal(bench_open(&b, store, is_training ? trained : held), DT_OK);
    const dt_store_view *v = dt_store_view_of(open_store);
    const int64_t past = is_training ? 0 : (T - 1) * STRIDE, future = is_training ? 2 : F * STRIDE;
    uint64_t sample = 0;
    for (int64_t s = 0; s < v->n_scenes; s++) {
        for (int64_t f = v->scene_frame[s] + past; f + future < v->scene_frame[s + 1]; f += is_training ? 3 : 2) {
            if (is_window(v, s, f)) {
                bench_read(&b, &sample, NULL, 1);
                add_window(&b, v, s, f, &all);
                sample++;
            }
        }
    }
    assert_int_equal(sample, bench_count(&b));
    bench_close(&b);
    qsort(all.list, all.n, sizeof(*all.list), compare);
    return all;
}

static void assert_same(const records *whole, const records *cut)
{
    assert_int_equal(whole->n, cut->n);
    for (size_t i = 0; i < whole->n; i++) {
        assert_int_equal(compare(&whole->list[i], &cut->list[i]), 0); /* each once */
        assert_true(i == 0 || compare(&whole->list[i - 1], &whole->list[i]) != 0);
        assert_true(whole->list[i].hash == cut->list[i].hash);
    }
    assert_true(whole->target_weight == cut->target_weight && whole->target_weight > 1000);
    assert_true(whole->risk_weight == cut->risk_weight && whole->risk_weight > 1000);
    assert_true(whole->n_complete == cut->n_complete && whole->n_complete > 100);
    assert_true(whole->n_hazards == cut->n_hazards && whole->n_hazards > 10);
}

static void test_windows(void **state)
{
    static const dt_cut_options ways[] = {{.tile_m = 250, .halo_m = 180, .halo_s = 1.6},
                                          {.regions = 5, .halo_m = 180, .halo_s = 2}};
    dt_str notes = {0};
    write_town("town", 0.5, &(dt_packing){0});
    for (int is_training = 0; is_training < 2; is_training++) {
        const records whole = read_all("town", is_training != 0);
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            assert_ok(dt_data_cut(at("town"), at("cut"), &ways[i], &notes));
            const records cut = read_all("cut", is_training != 0);
            assert_same(&whole, &cut);
            free(cut.list);
            assert_ok(dt_fs_remove_tree(at("cut")));
        }
        free(whole.list);
    }
    dt_str_fini(&notes);
}

static void expect_refusal(const char *const *set, const char *words)
{
    bench b;
    assert_int_equal(bench_open(&b, "cut", set), DT_ECONFIG);
    assert_non_null(strstr(b.host.message, words));
    bench_close(&b);
}

/* Windows that reach beyond the halo would see the cut. */
static void test_refusals(void **state)
{
    dt_str notes = {0};
    write_town("town", 0, &(dt_packing){0});
    assert_ok(dt_data_cut(at("town"), at("cut"), &(dt_cut_options){.regions = 3, .halo_m = 90, .halo_s = 1.2}, &notes));
    dt_str_fini(&notes);
    expect_refusal((const char *const[]){"history_s=1.6", "horizon_s=1", NULL}, "history_s reaches 1.4, beyond");
    expect_refusal((const char *const[]){"history_s=1", "horizon_s=1.4", NULL}, "horizon_s reaches 1.4");
    expect_refusal((const char *const[]){WINDOW, "pairs=true", "action_s=0.1", "hazard_steps=5", NULL}, "pairs (m)");
    expect_refusal((const char *const[]){WINDOW, "pairs=true", "action_s=0.5", NULL}, "hazard_steps reaches 5.5");
    expect_refusal((const char *const[]){WINDOW, "lanes=true", NULL}, "lanes (m) reaches 164, beyond the halo of 90");
}

/* Samples are weighed by the danger of those that are learnt. */
static void test_balance(void **state)
{
    dt_str notes = {0};
    bench b;
    double least = INFINITY, most = 0;
    write_town("town", 0, &(dt_packing){0});
    assert_ok(dt_data_cut(at("town"), at("cut"), &(dt_cut_options){.regions = 6, .halo_m = 100, .halo_s = 2}, &notes));
    dt_str_fini(&notes);
    assert_int_equal(bench_open(&b, "cut", (const char *const[]){WINDOW, "balance=risk", NULL}), DT_OK);
    const uint64_t n = bench_count(&b);
    double *weight = calloc(n, sizeof(*weight)), of[2] = {0};
    assert_int_equal(b.ops->weights(b.self, weight, n), DT_OK);
    for (uint64_t i = 0; i < n; i++) {
        least = fmin(least, weight[i]);
        most = fmax(most, weight[i]);
    }
    const dt_store_view *v = dt_store_view_of(open_store);
    uint64_t sample = 0;
    for (int64_t s = 0; s < v->n_scenes; s++) {
        for (int64_t f = v->scene_frame[s] + (T - 1) * STRIDE; f + F * STRIDE < v->scene_frame[s + 1]; f += 2) {
            bool is_risky = false;
            for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++) {
                is_risky = is_risky || (v->core[r] && (v->risk[r] == 1 || v->risk[r] == 2));
            }
            if (is_window(v, s, f)) {
                assert_true(of[is_risky] == 0 || of[is_risky] == weight[sample]);
                of[is_risky] = weight[sample++];
            }
        }
    }
    assert_true(sample == n && least < most && of[0] != of[1] && of[0] > 0 && of[1] > 0);
    free(weight);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_windows, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
        cmocka_unit_test_setup_teardown(test_balance, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
