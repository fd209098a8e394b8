/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/export/export_hdf5.c and plugins/traffic/hdf5/module.c: a store goes out and comes in
 * as it was, however it is kept and packed, and damaged files are refused or are sound. Skipped where the module was
 * not built.
 */
#include "fixture.h"

#include "traffic/hdf5/hdf5_file.h"
#include "traffic/export/export_hdf5.h"
#include "traffic/import/import_hdf5.h"
#include "traffic/store/merge_split.h"
#include "base/module.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static dt_str notes;

static int finish(void **state)
{
    dt_str_fini(&notes);
    return end(state);
}

static double speed_written = 6.25; /* of vehicles that drive 6.25 m/s */

static void make(const char *name, const dt_packing *packing)
{
    dt_store_writer *w = NULL;
    const dt_store_meta meta = {.frame_rate_hz = 5, .source = "t", .packing = *packing};
    assert_ok(dt_store_create(at(name), &meta, &w));
    for (int s = 0; s < 3; s++) {
        char scene[16];
        assert_ok(dt_store_scene_begin(w));
        for (int f = 0; f < 30; f++) {
            dt_vehicle v[4];
            for (int i = 0; i < 4; i++) { /* numbers that floats keep whole */
                v[i] = (dt_vehicle){.id = 5 - i,
                                    .x = 100 * s + 8.5 * i + 1.25 * f,
                                    .y = 0.5 * i,
                                    .heading = 0.125,
                                    .speed = speed_written,
                                    .accel = i == 2 ? 0.5 : NAN,
                                    .length = 4.5,
                                    .width = 1.75,
                                    .stop_distance = i == 0 ? 90.0 - f : NAN,
                                    .controlled = i == 3};
            }
            assert_ok(dt_store_frame(w, f, 7 + 0.2 * f, v, f % 7 == 3 ? 0 : 4));
        }
        snprintf(scene, sizeof(scene), "north, %d", s);
        assert_ok(dt_store_scene_end(w, scene, s == 1 ? "x" : "y"));
    }
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

/* false, and the test is skipped, where there is no module. */
static bool export(const char *store, const char *file, int gzip, int64_t chunk_rows)
{
    const dt_hdf5_options opt = {.gzip = gzip, .chunk_rows = chunk_rows};
    const dt_status st = dt_hdf5_export(at(store), at(file), &opt, &notes);
    if (st == DT_EUNSUPPORTED) {
        print_message("no module for HDF5 here: %s\n", dt_error_text());
        return false;
    }
    assert_ok(st);
    return true;
}

static const dt_hdf5_ops *module(void)
{
    static const dt_hdf5_host host = {.struct_size = sizeof(host), .fail = dt_fail};
    const dt_module_desc d = {.file = "data_hdf5.so",
                              .build = "plugins/traffic/hdf5",
                              .entry = DT_HDF5_ENTRY,
                              .what = "HDF5",
                              .if_none = "",
                              .if_wrong = ""};
    dt_hdf5_module_fn *entry = NULL;
    assert_ok(dt_module_open(&d, (void **)(void *)&entry));
    const dt_hdf5_ops *ops = entry(&host);
    assert_non_null(ops);
    return ops;
}

static void assert_same(const dt_store *a, const dt_store *b)
{
    const dt_store_view *v = dt_store_view_of(a), *w = dt_store_view_of(b);
    assert_int_equal(dt_store_digest(a), dt_store_digest(b));
    assert_int_equal(v->n_edges, w->n_edges);
    assert_memory_equal(v->node, w->node, (size_t)v->n_rows * 9 * sizeof(float));
    assert_memory_equal(v->edge, w->edge, (size_t)v->n_edges * 4 * sizeof(float));
    assert_memory_equal(v->motion, w->motion, (size_t)v->n_rows * 4 * sizeof(float));
    assert_memory_equal(v->frame_time, w->frame_time, (size_t)v->n_frames * sizeof(double));
    assert_memory_equal(v->risk, w->risk, (size_t)v->n_rows);
    for (int64_t i = 0; i < v->n_scenes; i++) {
        assert_string_equal(v->scene[i], w->scene[i]);
        assert_string_equal(v->site[v->scene_site[i]], w->site[w->scene_site[i]]);
    }
}

static void test_there_and_back(void **state)
{
    static const struct {
        int gzip;
        int64_t chunk_rows;
        dt_packing packing;
    } way[] = {{1, 0, {0}}, {9, 100, {0}}, {0, 7, {.features = DT_KEPT_I8}}};
    dt_store *plain = NULL, *again = NULL;
    const dt_import_options opt = {0};
    make("plain", &(dt_packing){0});
    assert_ok(dt_store_open(at("plain"), &plain));
    for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
        make("s", &way[i].packing);
        if (!export("s", "s.h5", way[i].gzip, way[i].chunk_rows)) {
            dt_store_close(plain);
            skip();
        }
        assert_true(dt_hdf5_is_file(at("s.h5")));
        assert_false(dt_fs_is_file(at("s.h5.partial")));
        assert_non_null(strstr(dt_str_text(&notes), "MB, written in"));
        const char *file = at("s.h5");
        assert_ok(dt_data_import(&file, 1, at("t"), &opt, &notes));
        assert_ok(dt_store_open(at("t"), &again));
        assert_same(plain, again);
        dt_store_close(again);
        assert_ok(dt_fs_remove_tree(at("s")));
        assert_ok(dt_fs_remove_tree(at("t")));
        assert_ok(dt_fs_remove_tree(at("s.h5")));
    }
    dt_store_close(plain);
}

/* By how much features are off, the file says as the store does. */
static void test_errors_are_reported(void **state)
{
    static const uint32_t kept[] = {DT_KEPT_F32, DT_KEPT_F16, DT_KEPT_I8};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        double node[9], edge[4];
        dt_hdf5 *f = NULL;
        dt_store *s = NULL;
        make("s", &(dt_packing){.features = kept[i]});
        if (!export("s", "s.h5", 1, 0)) {
            skip();
        }
        assert_ok(module()->open(at("s.h5"), &f));
        assert_ok(module()->read(f, "node_error", DT_F64, 0, 0, 9, node));
        assert_ok(module()->read(f, "edge_error", DT_F64, 0, 0, 4, edge));
        assert_ok(module()->close(f));
        assert_ok(dt_store_open(at("s"), &s));
        assert_memory_equal(node, dt_store_packed(s)->errors.node, sizeof(node));
        assert_memory_equal(edge, dt_store_packed(s)->errors.edge, sizeof(edge));
        assert_true((node[0] > 0) == (kept[i] == DT_KEPT_I8));
        dt_store_close(s);
        assert_ok(dt_fs_remove_tree(at("s")));
        assert_ok(dt_fs_remove_tree(at("s.h5")));
    }
}

static void assert_refused(const char *file, const dt_import_options *opt, dt_status st, const char *text)
{
    assert_fails(dt_data_import(&file, 1, at("t"), opt, &notes), st, text);
    assert_false(dt_fs_is_dir(at("t")));
}

/* The array that lies in a plain file as these bytes, replaced. */
static void put_changed(const char *from, const char *to, const void *old, const void *now, size_t bytes)
{
    char *file = NULL;
    size_t n = 0;
    assert_ok(dt_fs_read_all(at(from), SIZE_MAX / 2, &file, &n));
    char *place = memmem(file, n, old, bytes);
    assert_non_null(place);
    memcpy(place, now, bytes);
    put_bytes(to, file, n);
    dt_free(file);
}

/* ---- roads ------------------------------------------------------------------------------------------------------- */

/* Two lanes, each leads to the other, from (x, 0). */
static void street(double x, bool is_linked, dt_roads *out)
{
    const double first[] = {x, 0, x + 50, 0}, second[] = {x + 50, 0, x + 80, 10, x + 90, 30}, width[] = {3, 3.5, 4};
    int32_t a = 0, b = 0;
    *out = (dt_roads){.n_lanes = 0};
    assert_ok(dt_roads_lane(out, "a", &(dt_road_lane){7, DT_LANE_ROAD, 13.5, first, width, 2}, &a));
    assert_ok(dt_roads_lane(out, "b", &(dt_road_lane){9, DT_LANE_RAMP, 0, second, NULL, 3}, &b));
    assert_ok(is_linked ? dt_roads_link(out, a, b) : DT_OK);
    assert_ok(is_linked ? dt_roads_link(out, b, a) : DT_OK);
    out->left[0] = is_linked ? -1 : 1;
    assert_ok(dt_roads_seal(out));
}

/* Scenes 0 and 2 on a map, scene 1 on none; is_linked: of none of its lanes another follows where it is false. */
static void make_streets(const char *name, bool is_linked)
{
    dt_store_writer *w = NULL;
    dt_roads roads;
    int32_t map[2];
    assert_ok(dt_store_create(at(name), &(dt_store_meta){.frame_rate_hz = 5, .source = "t"}, &w));
    for (int i = 0; i < 2; i++) {
        street(1000 * i, is_linked, &roads);
        assert_ok(dt_store_map(w, i == 0 ? "town, north" : "town", &roads, &map[i]));
        dt_roads_fini(&roads);
    }
    for (int s = 0; s < 3; s++) {
        char scene[2] = {(char)('a' + s), '\0'};
        const dt_vehicle v = {.id = s, .x = s, .speed = 1, .length = 4, .width = NAN, .stop_distance = NAN};
        assert_ok(dt_store_scene_begin(w));
        assert_ok(s == 1 ? DT_OK : dt_store_scene_map(w, map[s / 2]));
        assert_ok(dt_store_frame(w, 0, 0, &v, 1));
        assert_ok(dt_store_scene_end(w, scene, "x"));
    }
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

static void test_roads(void **state)
{
    const dt_import_options opt = {0};
    for (int is_linked = 0; is_linked < 2; is_linked++) {
        dt_store *there = NULL, *back = NULL;
        make_streets("s", is_linked);
        if (!export("s", "s.h5", 1, 0)) {
            skip();
        }
        const char *file = at("s.h5");
        assert_ok(dt_data_import(&file, 1, at("t"), &opt, &notes));
        assert_ok(dt_store_open(at("s"), &there));
        assert_ok(dt_store_open(at("t"), &back));
        assert_same(there, back); /* the digest has every array of the roads, and their names */
        assert_int_equal(dt_store_view_of(back)->n_maps, 2);
        assert_string_equal(dt_store_view_of(back)->map[0], "town, north");
        assert_int_equal(dt_store_view_of(back)->n_lane_links, is_linked ? 4 : 0);
        dt_store_close(there);
        dt_store_close(back);
        assert_ok(dt_fs_remove_tree(at("t")));
        assert_ok(dt_fs_remove_tree(at("s")));
        assert_ok(is_linked ? DT_OK : dt_fs_remove_tree(at("s.h5")));
    }
}

/* Arrays of roads that do not fit each other. */
static void test_bad_roads(void **state)
{
    const dt_import_options opt = {0};
    make_streets("s", true);
    if (!export("s", "s.h5", 0, 0)) {
        skip();
    }
    const int32_t kinds[4] = {DT_LANE_ROAD, DT_LANE_RAMP, DT_LANE_ROAD, DT_LANE_RAMP}, odd[4] = {1, 99, 1, 3};
    const int64_t lanes[3] = {0, 2, 4}, none[3] = {0, 4, 4};
    const int64_t points[5] = {0, 2, 5, 7, 10}, beyond[5] = {0, 2, 1 << 30, 7, 10};
    const int32_t scenes[3] = {0, -1, 1}, third[3] = {0, -1, 2}, links[4] = {1, 0, 3, 2}, across[4] = {1, 0, 1, 2};
    put_changed("s.h5", "z.h5", kinds, odd, sizeof(kinds));
    assert_refused(at("z.h5"), &opt, DT_EDATA, "z.h5/lane_kind: 99 at 1 is outside [0, 8]");
    put_changed("s.h5", "z.h5", lanes, none, sizeof(lanes));
    assert_refused(at("z.h5"), &opt, DT_EDATA, "z.h5/map_lane goes from 4 to 4 at 1");
    put_changed("s.h5", "z.h5", points, beyond, sizeof(points));
    assert_refused(at("z.h5"), &opt, DT_EDATA, "z.h5/lane_point goes from 2 to 1073741824 at 1");
    put_changed("s.h5", "z.h5", scenes, third, sizeof(scenes));
    assert_refused(at("z.h5"), &opt, DT_EDATA, "z.h5/scene_map: 2 at 2 is outside [-1, 1]");
    put_changed("s.h5", "z.h5", links, across, sizeof(links));
    assert_refused(at("z.h5"), &opt, DT_EDATA, "z.h5/lane_next: 1 at 2 is not a lane of the same map");
    put_changed("s.h5", "z.h5", "lane_limit", "lane_limiu", 10);
    assert_refused(at("z.h5"), &opt, DT_EDATA, "has no array lane_limit");
}

static void test_refusals(void **state)
{
    const dt_import_options opt = {0};
    const dt_hdf5_options wrong = {.gzip = 10};
    make("s", &(dt_packing){0});
    assert_fails(dt_hdf5_export(at("s"), at("s.h5"), &wrong, &notes), DT_EINVAL, "gzip 10 is outside [0, 9]");
    put("s.csv", "id,x\n");
    assert_false(dt_hdf5_is_file(at("s.csv")));
    assert_false(dt_hdf5_is_file(at("none")));
    if (!export("s", "s.h5", 1, 0)) {
        skip();
    }
    assert_fails(dt_hdf5_export(at("s"), at("s.h5"), &(dt_hdf5_options){0}, &notes), DT_EINVAL,
                 "s.h5 exists already: remove it or choose another name");
    const char *const both[] = {at("s.h5"), at("s.csv")};
    assert_fails(dt_data_import(both, 2, at("t"), &opt, &notes), DT_EINVAL, "is HDF5, which is imported alone");
    assert_fails(dt_hdf5_export(at("none"), at("x.h5"), &(dt_hdf5_options){0}, &notes), DT_ENOTFOUND, "no store");
    assert_fails(dt_hdf5_export(at("s"), at("no/x.h5"), &(dt_hdf5_options){0}, &notes), DT_EIO, "no/x.h5.partial");
    char *bytes = NULL;
    size_t n = 0;
    dt_str_fini(&notes);
    const uint64_t live = dt_alloc_live_bytes();
    assert_ok(dt_fs_read_all(at("s.h5"), SIZE_MAX / 2, &bytes, &n));
    for (size_t size = 8; size < n; size += n / 9) { /* cut short */
        put_bytes("cut.h5", bytes, size);
        assert_int_equal(dt_hdf5_import(at("cut.h5"), at("t"), &opt, &notes), DT_EDATA);
        assert_false(dt_fs_is_dir(at("t")));
    }
    dt_free(bytes);
    dt_str_fini(&notes);
    assert_int_equal(dt_alloc_live_bytes(), live);
}

/* A program that may write files of so many bytes alone ends by itself: what the library does as it ends is part of it.
 * What it says: 1. */
static int export_limited(size_t bytes)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
        signal(SIGXFSZ, SIG_IGN);
        const dt_hdf5_options opt = {.gzip = 0};
        const dt_status st =
            setrlimit(RLIMIT_FSIZE, &limit) == 0 ? dt_hdf5_export(at("s"), at("x.h5"), &opt, &notes) : DT_OK;
        exit(st == DT_EIO ? 1 : 2);
    }
    int status = 0;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_full_disk(void **state)
{
    char *whole = NULL;
    size_t n = 0;
    make("s", &(dt_packing){0});
    if (!export("s", "s.h5", 0, 0)) {
        skip();
    }
    assert_ok(dt_fs_read_all(at("s.h5"), SIZE_MAX / 2, &whole, &n));
    dt_free(whole);
    for (int i = 1; i < 8; i++) {
        assert_int_equal(export_limited(n * (size_t)i / 8), 1);
        assert_false(dt_fs_is_file(at("x.h5.partial")));
        assert_false(dt_fs_is_file(at("x.h5")));
    }
}

static void test_keys(void **state)
{
    make("s", &(dt_packing){0});
    put("s.csv", "id,frame,x,y,heading,speed,length\n1,0,0,0,0,1,4\n1,1,1,0,0,1,4\n");
    assert_refused(at("s.csv"), &(dt_import_options){.types = "types.xml"}, DT_ECONFIG, "import.types is types.xml");
    if (!export("s", "s.h5", 0, 0)) {
        skip();
    }
    assert_refused(at("s.h5"), &(dt_import_options){.map = "m.osm"}, DT_ECONFIG, "import.map is m.osm");
    assert_refused(at("s.h5"), &(dt_import_options){.map_origin = "1,2"}, DT_ECONFIG, "import.map_origin is 1,2");
    assert_refused(at("s.h5"), &(dt_import_options){.columns = "id=x"}, DT_ECONFIG, "import.columns is id=x");
    assert_refused(at("s.h5"), &(dt_import_options){.types = "a.xml"}, DT_ECONFIG, "import.types is a.xml");
}

/* Speeds are compared with positions as in tables. */
static void test_motion(void **state)
{
    const dt_import_options opt = {0};
    for (int k = 1; k <= 2; k++) {
        speed_written = 6.25 * k;
        assert_ok(dt_fs_remove_tree(at("s")));
        assert_ok(dt_fs_remove_tree(at("t")));
        assert_ok(dt_fs_remove_tree(at("s.h5")));
        make("s", &(dt_packing){0});
        if (!export("s", "s.h5", 0, 0)) {
            speed_written = 6.25;
            skip();
        }
        dt_str_fini(&notes);
        const char *file = at("s.h5");
        assert_ok(dt_data_import(&file, 1, at("t"), &opt, &notes));
        assert_true(share_off(&notes, "speed") == (k == 1 ? 0 : 100));
        assert_true(share_off(&notes, "heading") == 0);
    }
    speed_written = 6.25;
}

/* Two scenes of one vehicle at one moment. */
static void write_names(const char *name, const char *const scene[2], const char *const site[2])
{
    static const int64_t begins[3] = {0, 1, 2}, id[2] = {4, 5};
    static const int32_t numbers[2] = {0, 1};
    static const double times[2] = {0}, pose[6] = {1, 2, 0, 3, 4, 0};
    static const float motion[8] = {1, 0, 4, 2, 1, 0, 4, 2}, stop[2] = {9, 9};
    static const unsigned char none[2] = {0};
    const struct {
        const char *name;
        uint32_t dtype;
        int64_t width, rows;
        const void *data;
    } a[] = {{"scene_frame", DT_I64, 0, 3, begins}, {"scene_site", DT_I32, 0, 2, numbers},
             {"frame_row", DT_I64, 0, 3, begins},   {"frame_time", DT_F64, 0, 2, times},
             {"pose", DT_F64, 3, 2, pose},          {"motion", DT_F32, 4, 2, motion},
             {"row_track", DT_I32, 0, 2, numbers},  {"track_id", DT_I64, 0, 2, id},
             {"stop_distance", DT_F32, 0, 2, stop}, {"controlled", DT_U8, 0, 2, none}};
    const dt_hdf5_ops *ops = module();
    dt_hdf5 *f = NULL;
    assert_ok(dt_fs_remove_tree(at(name)));
    assert_ok(ops->create(at(name), &f));
    for (size_t i = 0; i < sizeof(a) / sizeof(a[0]); i++) {
        assert_ok(ops->make(f, a[i].name, a[i].dtype, a[i].width, a[i].rows, 8, 0));
        assert_ok(ops->write(f, a[i].name, a[i].dtype, a[i].width, 0, a[i].rows, a[i].data));
    }
    assert_ok(ops->put_texts(f, "scene", scene, 2));
    assert_ok(ops->put_texts(f, "site", site, 2));
    assert_ok(ops->put_number(f, "format", DT_HDF5_VERSION));
    assert_ok(ops->put_number(f, "frame_rate_hz", 5));
    assert_ok(ops->close(f));
}

static void test_names_and_times(void **state)
{
    const dt_import_options opt = {0};
    make("s", &(dt_packing){0});
    if (!export("s", "s.h5", 0, 0)) {
        skip();
    }
    double times[6], zero[6] = {0};
    for (int f = 0; f < 6; f++) {
        times[f] = 7 + 0.2 * f;
    }
    put_changed("s.h5", "z.h5", times, zero, sizeof(times));
    assert_refused(at("z.h5"), &opt, DT_EDATA, "frame_time of scene 0, frame 1, is 0 s after 0 s");
    for (int f = 0; f < 6; f++) {
        zero[f] = 7 + 0.3 * f;
    }
    put_changed("s.h5", "z.h5", times, zero, sizeof(times));
    assert_refused(at("z.h5"), &opt, DT_EDATA, "frame_time of scene 0, frame 1, is 0.3 s after its first");
    const char *const twice[2] = {"a", "a"}, *const control[2] = {"a", "b\nc"}, *const differ[2] = {"a", "b/c"};
    write_names("z.h5", twice, differ);
    assert_refused(at("z.h5"), &opt, DT_EDATA, "scene 1 is called \"a\", as scene 0 is");
    write_names("z.h5", control, differ);
    assert_refused(at("z.h5"), &opt, DT_EDATA, "\"b?c\" or of its site \"b/c\" has control characters");
    write_names("z.h5", differ, twice); /* one site, named by two numbers */
    const char *file = at("z.h5");
    assert_ok(dt_data_import(&file, 1, at("t"), &opt, &notes));
    assert_ok(dt_fs_remove_tree(at("t")));
    write_names("z.h5", differ, control);
    assert_refused(at("z.h5"), &opt, DT_EDATA, "of its site \"b?c\" has control characters");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_there_and_back, begin, finish),
        cmocka_unit_test_setup_teardown(test_errors_are_reported, begin, finish),
        cmocka_unit_test_setup_teardown(test_roads, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_roads, begin, finish),
        cmocka_unit_test_setup_teardown(test_refusals, begin, finish),
        cmocka_unit_test_setup_teardown(test_full_disk, begin, finish),
        cmocka_unit_test_setup_teardown(test_keys, begin, finish),
        cmocka_unit_test_setup_teardown(test_motion, begin, finish),
        cmocka_unit_test_setup_teardown(test_names_and_times, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
