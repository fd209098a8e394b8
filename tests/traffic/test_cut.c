/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/store/cut.c, regions.c and store_cut.c: every row is core once, what is kept of it is what
 * it was, bit for bit, and halos are complete. What windows show of them: tests/plugins/test_data_regions.c.
 */
#include "town.h"

#include "traffic/export/export_table.h"
#include "traffic/export/export_hdf5.h"
#include "traffic/import/import.h"
#include "traffic/inspect/inspect.h"
#include "traffic/store/merge_split.h"
#include "traffic/store/regions.h"

static dt_str notes;

static int finish(void **state)
{
    dt_str_fini(&notes);
    return end(state);
}

static void assert_same_row(const dt_store *whole, int64_t a, const dt_store *cut, int64_t b)
{
    const dt_store_view *v = dt_store_view_of(whole), *c = dt_store_view_of(cut);
    float node[2][DT_NODE_FEATURES];
    assert_ok(dt_store_read(whole, DT_STORE_NODE, a, 1, node[0]));
    assert_ok(dt_store_read(cut, DT_STORE_NODE, b, 1, node[1]));
    assert_memory_equal(node[0], node[1], sizeof(node[0]));
    assert_memory_equal(v->pose + 3 * a, c->pose + 3 * b, 3 * sizeof(double));
    assert_memory_equal(v->motion + 4 * a, c->motion + 4 * b, 4 * sizeof(float));
    assert_int_equal(v->risk[a], c->risk[b]);
    assert_int_equal(v->accel_centred == NULL, c->accel_centred == NULL);
    if (v->accel_centred != NULL) {
        assert_memory_equal(v->accel_centred + a, c->accel_centred + b, sizeof(float));
    }
}

/* Of one frame: row a there, row b here. Neighbours are the same vehicles in the same order, with the same features. */
static void assert_same_edges(const dt_store *whole, int64_t first_a, int64_t a, const dt_store *cut, int64_t first_b,
                              int64_t b)
{
    const dt_store_view *v = dt_store_view_of(whole), *c = dt_store_view_of(cut);
    const int64_t n = v->edge_ptr[a + 1] - v->edge_ptr[a];
    assert_int_equal(n, c->edge_ptr[b + 1] - c->edge_ptr[b]);
    for (int64_t k = 0; k < n; k++) {
        int32_t source[2];
        float edge[2][DT_EDGE_FEATURES];
        assert_ok(dt_store_read(whole, DT_STORE_EDGE_SRC, v->edge_ptr[a] + k, 1, &source[0]));
        assert_ok(dt_store_read(cut, DT_STORE_EDGE_SRC, c->edge_ptr[b] + k, 1, &source[1]));
        assert_ok(dt_store_read(whole, DT_STORE_EDGE, v->edge_ptr[a] + k, 1, edge[0]));
        assert_ok(dt_store_read(cut, DT_STORE_EDGE, c->edge_ptr[b] + k, 1, edge[1]));
        assert_memory_equal(edge[0], edge[1], sizeof(edge[0]));
        assert_int_equal(dt_store_track_ids(whole)[v->row_track[first_a + source[0]]],
                         dt_store_track_ids(cut)[c->row_track[first_b + source[1]]]);
    }
}

/* Row r of the town, in this frame of this scene, and its track's rows of halo_s before are in the region. */
static void assert_past(const dt_store *whole, int64_t t, int64_t frame, int64_t r, const dt_store *cut, int64_t scene)
{
    const dt_store_view *v = dt_store_view_of(whole);
    const int64_t id = dt_store_track_ids(whole)[v->row_track[r]];
    const int64_t span = (int64_t)(dt_store_view_of(cut)->halo_s * v->frame_rate_hz);
    for (int64_t f = frame; f >= 0 && f >= frame - span; f--) {
        const int64_t there = town_row(whole, t, f, id);
        if (there >= 0 && v->row_track[there] == v->row_track[r]) {
            assert_true(town_row(cut, scene, f, id) >= 0);
        }
    }
}

/* Every vehicle within halo_m of core row a, with its past. */
static void assert_halo(const dt_store *whole, int64_t t, int64_t frame, int64_t a, const dt_store *cut, int64_t scene)
{
    const dt_store_view *v = dt_store_view_of(whole);
    const int64_t f = v->scene_frame[t] + frame;
    for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++) {
        const double *p = v->pose + 3 * a, *q = v->pose + 3 * r;
        if (hypot(p[0] - q[0], p[1] - q[1]) < dt_store_view_of(cut)->halo_m) {
            assert_past(whole, t, frame, r, cut, scene);
        }
    }
}

/* of [rows of whole]: how often each is core. Returns the rows of halos. */
static int64_t compare(const dt_store *whole, const dt_store *cut, int *of)
{
    const dt_store_view *v = dt_store_view_of(whole), *c = dt_store_view_of(cut);
    int64_t halo = 0;
    for (int64_t scene = 0; scene < c->n_scenes; scene++) {
        const int64_t t = town_of(cut, scene);
        assert_int_equal(c->scene_frame[scene + 1] - c->scene_frame[scene], TOWN_FRAMES);
        assert_int_equal(c->scene_map[scene], v->scene_map[t]);
        assert_string_equal(c->site[c->scene_site[scene]], v->site[v->scene_site[t]]);
        for (int64_t f = 0; f < TOWN_FRAMES; f++) {
            const int64_t here = c->scene_frame[scene] + f, there = v->scene_frame[t] + f;
            assert_true(c->frame_time[here] == v->frame_time[there]);
            for (int64_t b = c->frame_row[here]; b < c->frame_row[here + 1]; b++) {
                const int64_t a = town_row(whole, t, f, dt_store_track_ids(cut)[c->row_track[b]]);
                assert_true(a >= 0);
                assert_same_row(whole, a, cut, b);
                of[a] += c->core[b];
                halo += !c->core[b];
                if (c->core[b]) {
                    assert_same_edges(whole, v->frame_row[there], a, cut, c->frame_row[here], b);
                    assert_halo(whole, t, f, a, cut, scene);
                }
            }
        }
    }
    return halo;
}

static void test_cut(void **state)
{
    static const dt_cut_options ways[] = {{.tile_m = 200, .halo_m = 130, .halo_s = 1},
                                          {.tile_m = 5000, .halo_m = 130, .halo_s = 1},
                                          {.regions = 3, .halo_m = 60, .halo_s = 0},
                                          {.regions = 8, .halo_m = 90, .halo_s = 2}};
    for (int smoothed = 0; smoothed < 2; smoothed++) {
        dt_store *whole = NULL;
        write_town("town", 0.5 * smoothed, &(dt_packing){0});
        assert_ok(dt_store_open(at("town"), &whole));
        const int64_t rows = dt_store_view_of(whole)->n_rows;
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            dt_store *cut = NULL;
            int *of = calloc((size_t)rows, sizeof(*of));
            assert_ok(dt_data_cut(at("town"), at("cut"), &ways[i], &notes));
            assert_ok(dt_store_open(at("cut"), &cut));
            const dt_store_view *c = dt_store_view_of(cut);
            assert_int_equal(dt_store_version(cut), DT_STORE_VERSION);
            assert_true(c->halo_m == ways[i].halo_m && c->halo_s == ways[i].halo_s);
            assert_true(ways[i].regions == 0 || c->n_scenes == ways[i].regions * TOWN_SCENES);
            const int64_t halo = compare(whole, cut, of);
            assert_int_equal(halo + rows, c->n_rows);
            assert_true(i == 1 ? halo == 0 && c->n_scenes == 2 : halo > rows / 100);
            for (int64_t r = 0; r < rows; r++) {
                assert_int_equal(of[r], 1);
            }
            free(of);
            dt_store_close(cut);
            assert_ok(dt_fs_remove_tree(at("cut")));
        }
        dt_store_close(whole);
        assert_ok(dt_fs_remove_tree(at("town")));
    }
}

/* ---- which rows a region has, by hand ---------------------------------------------------------------------------- */

enum { HAND_FRAMES = 8 };

typedef struct hand_car {
    int64_t id;
    double x[HAND_FRAMES], y; /* x < 0: not in this frame */
    const char *row[2];       /* by frame, in the region of the tile from 0 m and of the one from 100 m:
                               * C core, h halo, . not there */
} hand_car;

/* One scene at 1 Hz, radius and halo 10 m; what halo_s = 1.5 keeps is two frames. */
static void assert_by_hand(const hand_car *car, int n_cars)
{
    const dt_store_meta meta = {.frame_rate_hz = 1, .radius_m = 10, .k_max = 4, .source = "hand"};
    const dt_cut_options how = {.tile_m = 100, .halo_m = 10, .halo_s = 1.5};
    dt_store_writer *w = NULL;
    dt_store *cut = NULL;
    assert_ok(dt_store_create(at("hand"), &meta, &w));
    assert_ok(dt_store_scene_begin(w));
    for (int f = 0; f < HAND_FRAMES; f++) {
        dt_vehicle v[8];
        uint32_t n = 0;
        for (int c = 0; c < n_cars; c++) {
            if (car[c].x[f] >= 0) {
                v[n++] = (dt_vehicle){.id = car[c].id,
                                      .x = car[c].x[f],
                                      .y = car[c].y,
                                      .length = 4,
                                      .width = 2,
                                      .accel = 0,
                                      .stop_distance = NAN};
            }
        }
        assert_ok(dt_store_frame(w, f, f, v, n));
    }
    assert_ok(dt_store_scene_end(w, "hand", "here"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    assert_ok(dt_data_cut(at("hand"), at("cut"), &how, &notes));
    assert_ok(dt_store_open(at("cut"), &cut));
    const dt_store_view *v = dt_store_view_of(cut);
    assert_int_equal(v->n_scenes, 2);
    for (int64_t k = 0; k < 2; k++) {
        for (int c = 0; c < n_cars; c++) {
            char row[HAND_FRAMES + 1] = {0};
            for (int f = 0; f < HAND_FRAMES; f++) {
                const int64_t r = town_row(cut, k, f, car[c].id);
                row[f] = r < 0 ? '.' : v->core[r] ? 'C' : 'h';
            }
            if (strcmp(row, car[c].row[k]) != 0) {
                fail_msg("vehicle %d in region %d: %s, expected %s", (int)car[c].id, (int)k, row, car[c].row[k]);
            }
        }
    }
    dt_store_close(cut);
    assert_ok(dt_fs_remove_tree(at("cut")));
    assert_ok(dt_fs_remove_tree(at("hand")));
}

static void test_rows_by_hand(void **state)
{
    /* 1 crosses the border after frame 2: its rows of two frames before and after are kept on each side. 2 and 3 stay
     * where they are, alone. 4 approaches the border, and in frame 6 is 10 m from 5, which stays on the other side:
     * each is seen there with its two frames before (the past of a vehicle near a core row), and none after it but
     * where it is near again. */
    static const hand_car crossing[] = {
        {1, {5, 35, 65, 105, 135, 165, 175, 185}, 0, {"CCChh...", ".hhCCCCC"}},
        {2, {50, 50, 50, 50, 50, 50, 50, 50}, 50, {"CCCCCCCC", "........"}},
        {3, {150, 150, 150, 150, 150, 150, 150, 150}, 50, {"........", "CCCCCCCC"}},
        {4, {190, 180, 170, 150, 130, 117, 105, 150}, 90, {"....hhh.", "CCCCCCCC"}},
        {5, {95, 95, 95, 95, 95, 95, 95, 95}, 90, {"CCCCCCCC", "....hhh."}},
        {6, {0, -1, -1, -1, -1, -1, -1, -1}, 99, {"C.......", "........"}}}; /* the tiles begin at its x */
    assert_by_hand(crossing, 6);
    /* 1 is seen until frame 1, and 2 only by the frames after it: two of them are kept for windows that end there, by
     * their first row. 3 is not their first. */
    static const hand_car empty[] = {{1, {0, 0, -1, -1, -1, -1, -1, -1}, 0, {"CC......", "........"}},
                                     {2, {150, 150, 150, 150, 150, 150, 150, 150}, 50, {"..hh....", "CCCCCCCC"}},
                                     {3, {180, 180, 180, 180, 180, 180, 180, 180}, 50, {"........", "CCCCCCCC"}}};
    assert_by_hand(empty, 3);
    /* As long after the last core row, not after a row of the halo. */
    static const hand_car passed[] = {{1, {0, 0, 120, 150, -1, -1, -1, -1}, 0, {"CChh....", "hhCC...."}},
                                      {2, {150, 150, 150, 150, 150, 150, 150, 150}, 50, {"........", "CCCCCCCC"}}};
    assert_by_hand(passed, 2);
    /* Seen, but by a row that is own and not core: its own past is not kept. In frame 3 vehicle 1 is core in the first
     * tile for the last time, in frame 5 it is 10 m from 2, in frame 6 it is not kept any more. */
    static const hand_car seen[] = {{1, {0, 30, 60, 90, 120, 150, 150, 150}, 0, {"CCCChh..", "..hhCCCC"}},
                                    {2, {160, 160, 160, 160, 160, 160, 160, 160}, 0, {".....h..", "CCCCCCCC"}},
                                    {3, {20, 20, 20, 20, 20, 20, 20, 20}, 50, {"CCCCCCCC", "........"}}};
    assert_by_hand(seen, 3);
}

/* Two regions with the same rows, each of which is core in one, are not the same scene again. */
static void test_same_rows(void **state)
{
    dt_cut_options all = {.tile_m = 60, .halo_m = 60, .halo_s = 1};
    const dt_store_meta meta = {.frame_rate_hz = 5, .radius_m = 60, .k_max = 4, .source = "two"};
    const dt_vehicle two[] = {{.x = 0, .length = 4, .width = 2, .accel = 0, .stop_distance = NAN, .id = 1},
                              {.x = 60, .length = 4, .width = 2, .accel = 0, .stop_distance = NAN, .id = 2}};
    dt_store_writer *w = NULL;
    dt_str text = {0};
    all.packing.repeats = DT_REPEATS_REFUSE;
    assert_ok(dt_store_create(at("two"), &meta, &w));
    assert_ok(dt_store_scene_begin(w));
    assert_ok(dt_store_frame(w, 0, 0, two, 2));
    assert_ok(dt_store_scene_end(w, "two", "here"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    assert_ok(dt_data_cut(at("two"), at("cut"), &all, &notes));
    assert_non_null(strstr(dt_str_text(&notes), "2 regions of 1 scenes, 2 frames, 2 rows of regions and 2 of halos"));
    assert_ok(dt_data_inspect(at("cut"), true, &text));
    assert_non_null(strstr(dt_str_text(&text), "\"repeats\":0"));
    dt_str_fini(&text);
}

/* A packed store is cut as it reads, and a store of regions may be packed. */
static void test_packed(void **state)
{
    const dt_cut_options plain = {.regions = 4, .halo_m = 90, .halo_s = 1};
    dt_cut_options small = plain;
    small.packing = (dt_packing){.features = DT_KEPT_F16};
    dt_store *whole = NULL, *cut = NULL;
    write_town("half", 0, &(dt_packing){.features = DT_KEPT_F16});
    assert_ok(dt_data_cut(at("half"), at("cut"), &plain, &notes));
    assert_ok(dt_store_open(at("half"), &whole));
    assert_ok(dt_store_open(at("cut"), &cut));
    int *of = calloc((size_t)dt_store_view_of(whole)->n_rows, sizeof(*of));
    assert_true(compare(whole, cut, of) > 0);
    free(of);
    dt_store_close(whole);
    dt_store_close(cut);
    assert_ok(dt_data_cut(at("half"), at("small"), &small, &notes));
    assert_ok(dt_store_open(at("small"), &cut));
    assert_null(dt_store_view_of(cut)->node);
    assert_non_null(dt_store_view_of(cut)->core);
    dt_store_close(cut);
}

/* Regions of equal numbers: of rows that lie evenly none has much more than its share. */
static void test_regions(void **state)
{
    enum { N = 20000, REGIONS = 7 };
    double *pose = calloc(3 * N, sizeof(*pose));
    dt_regions r;
    int64_t n[REGIONS] = {0};
    for (int i = 0; i < N; i++) {
        pose[3 * i] = 3000 * town_draw(0, i, 0, 20);
        pose[3 * i + 1] = 1000 * town_draw(0, i, 1, 21);
    }
    assert_ok(dt_regions_make_halves(pose, N, REGIONS, 100, &r));
    assert_int_equal(r.n, REGIONS);
    for (int i = 0; i < N; i++) {
        n[r.of[i]]++;
    }
    for (int k = 0; k < REGIONS; k++) {
        assert_true(n[k] > 0.98 * N / REGIONS && n[k] < 1.02 * N / REGIONS);
    }
    dt_regions_fini(&r);
    assert_fails(dt_regions_make_halves(pose, N, 400, 100, &r), DT_EINVAL, "ask for fewer regions");
    assert_fails(dt_regions_make_tiles(pose, N, 0.01, &r), DT_EINVAL, "at most 65536 can be");
    for (int i = 0; i < N; i++) { /* all in one place */
        pose[3 * i] = pose[3 * i + 1] = 5;
    }
    assert_fails(dt_regions_make_halves(pose, N, 2, 0, &r), DT_EINVAL, "a region of 0 m");
    assert_ok(dt_regions_make_tiles(pose, N, 1, &r));
    assert_int_equal(r.n, 1);
    dt_regions_fini(&r);
    free(pose);
}

static dt_status cut_by(dt_cut_options o)
{
    return dt_data_cut(at("town"), at("never"), &o, &notes);
}

static void test_refusals(void **state)
{
    write_town("town", 0, &(dt_packing){0});
    assert_fails(cut_by((dt_cut_options){.halo_m = 60}), DT_EINVAL, "one of them must be");
    assert_fails(cut_by((dt_cut_options){.halo_m = 60, .tile_m = 100, .regions = 2}), DT_EINVAL, "one of them");
    assert_fails(cut_by((dt_cut_options){.halo_m = 59, .tile_m = 100}), DT_EINVAL, "see as far as radius_m 60");
    assert_fails(cut_by((dt_cut_options){.halo_m = 120, .tile_m = 100}), DT_EINVAL, "smaller than the halo of 120 m");
    assert_fails(cut_by((dt_cut_options){.halo_m = 60, .tile_m = 100, .halo_s = 601}), DT_EINVAL, "a halo of 601 s");
    assert_fails(cut_by((dt_cut_options){.halo_m = 60, .regions = 40}), DT_EINVAL, "scene town");
    assert_false(dt_fs_is_dir(at("never")) || dt_fs_is_dir(at("never.partial")));
    assert_ok(dt_data_cut(at("town"), at("cut"), &(dt_cut_options){.regions = 2, .halo_m = 60, .halo_s = 1}, &notes));
    char path[256];
    snprintf(path, sizeof(path), "%s", at("cut"));
    const char *const cut[] = {path};
    const dt_split_options split = {.by = DT_SPLIT_TIME, .share = 0.5};
    const dt_hdf5_options hdf5 = {.gzip = 0};
    assert_fails(dt_data_merge(cut, 1, at("m"), NULL, &notes), DT_EDATA, "merge the store it was cut from");
    assert_fails(dt_data_split(cut[0], at("m"), &split, &notes), DT_EDATA, "split the store it was cut from");
    assert_fails(dt_data_sample(cut[0], at("m"), &(dt_sample_options){0}, &notes), DT_EDATA, "sample the store");
    assert_fails(dt_data_export(cut[0], at("m.csv"), &notes), DT_EDATA, "export the store");
    const dt_status st = dt_hdf5_export(cut[0], at("m.h5"), &hdf5, &notes);
    assert_true(st == DT_EDATA || st == DT_EUNSUPPORTED); /* HDF5 may not be built */
    assert_fails(dt_data_cut(cut[0], at("m"), &(dt_cut_options){.regions = 2, .halo_m = 60}, &notes), DT_EDATA,
                 "cut the store it was cut from");
}

/* One byte of an array behind its header of 128 bytes. */
static void damage(const char *array, long offset, unsigned char value)
{
    char path[64];
    snprintf(path, sizeof(path), "cut/%s.npy", array);
    FILE *f = fopen(at(path), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 128 + offset, SEEK_SET), 0);
    assert_int_equal(fwrite(&value, 1, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

static void test_hostile(void **state)
{
    static const struct {
        const char *from, *to, *words;
    } json[] = {{"\"regions\":{", "\"regions_\":{", "core.npy is there, and store.json names no regions"},
                {"\"halo_m\":60", "\"halo_m\":59", "regions.halo_m 59"},
                {"\"halo_m\":60", "\"halo_m\":1e9", "regions.halo_m 1e+09"},
                {"\"halo_s\":1", "\"halo_s\":-1", "regions.halo_s -1"},
                {"\"version\":2", "\"version\":3", "this program reads version 2: import it again"}};
    const dt_cut_options how = {.regions = 2, .halo_m = 60, .halo_s = 1};
    dt_store *s = NULL;
    write_town("town", 0, &(dt_packing){0});
    for (size_t i = 0; i < sizeof(json) / sizeof(json[0]); i++) {
        assert_ok(dt_data_cut(at("town"), at("cut"), &how, &notes));
        replace_in("cut/store.json", json[i].from, json[i].to);
        assert_fails(dt_store_open(at("cut"), &s), DT_EDATA, json[i].words);
        assert_ok(dt_fs_remove_tree(at("cut")));
    }
    assert_ok(dt_data_cut(at("town"), at("cut"), &how, &notes));
    damage("core", 5, 2);
    assert_fails(dt_store_open(at("cut"), &s), DT_EDATA, "core.npy: 2 at 5 is outside [0, 1]");
    damage("core", 5, 0);
    damage("frame_centre", 7, 0x7f); /* the exponent of the first x */
    assert_fails(dt_store_open(at("cut"), &s), DT_EDATA, "frame_centre.npy: x of row 0");
    assert_ok(dt_fs_remove_tree(at("cut/core.npy")));
    assert_fails(dt_store_open(at("cut"), &s), DT_EDATA, "core.npy is missing");
}

static void test_inspect(void **state)
{
    dt_str text = {0};
    write_town("town", 0, &(dt_packing){0});
    assert_ok(dt_data_cut(at("town"), at("cut"), &(dt_cut_options){.regions = 4, .halo_m = 90, .halo_s = 1}, &notes));
    assert_non_null(strstr(dt_str_text(&notes), "8 regions of 2 scenes"));
    assert_ok(dt_data_inspect(at("cut"), false, &text));
    assert_non_null(strstr(dt_str_text(&text), "90 m and 1 s"));
    dt_str_clear(&text);
    assert_ok(dt_data_inspect(at("cut"), true, &text));
    assert_non_null(strstr(dt_str_text(&text), "\"regions\":{\"halo_m\":90,\"halo_s\":1,\"rows\":"));
    dt_str_clear(&text);
    assert_ok(dt_data_inspect(at("town"), true, &text));
    assert_null(strstr(dt_str_text(&text), "\"regions\""));
    dt_str_fini(&text);
}

/* Whatever allocation fails, nothing is left and nothing leaks. */
static void test_no_memory(void **state)
{
    const dt_cut_options how = {.regions = 2, .halo_m = 60, .halo_s = 1};
    write_town("town", 0, &(dt_packing){0});
    dt_status st = DT_ENOMEM;
    int n = 1;
    for (; st == DT_ENOMEM && n < 5000; n += 1 + n / 20) {
        char text[32];
        snprintf(text, sizeof(text), "alloc:%d", n);
        dt_fault_reset(text);
        st = dt_data_cut(at("town"), at("cut"), &how, &notes);
        dt_fault_reset(NULL);
        assert_true(st == DT_OK || st == DT_ENOMEM);
        assert_true(st == DT_OK || !dt_fs_is_dir(at("cut.partial")));
    }
    assert_true(st == DT_OK && n > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cut, begin, finish),
        cmocka_unit_test_setup_teardown(test_rows_by_hand, begin, finish),
        cmocka_unit_test_setup_teardown(test_same_rows, begin, finish),
        cmocka_unit_test_setup_teardown(test_packed, begin, finish),
        cmocka_unit_test_setup_teardown(test_regions, begin, finish),
        cmocka_unit_test_setup_teardown(test_refusals, begin, finish),
        cmocka_unit_test_setup_teardown(test_hostile, begin, finish),
        cmocka_unit_test_setup_teardown(test_inspect, begin, finish),
        cmocka_unit_test_setup_teardown(test_no_memory, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
