/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/map/roads.c and store_roads.c: maps built by hand, written, read, copied into other stores,
 * and every refusal of damaged ones.
 */
#include "damage.h"

#include "traffic/import/import.h"
#include "traffic/inspect/inspect.h"
#include "traffic/store/merge_split.h"

static int32_t lane(dt_roads *r, int64_t id, int32_t kind, double x, double y)
{
    const double xy[] = {x, y, x + 3, y + 4, x + 3, y + 4.0001, x + 6, y + 8}, width[] = {3, 3.5, 9, 4};
    int32_t number = -1;
    assert_ok(dt_roads_lane(
        r, "lane", &(dt_road_lane){.id = id, .kind = kind, .limit = 13.5, .xy = xy, .width = width, .n = 4}, &number));
    return number;
}

/* Two lanes next to each other, the left one goes on into a junction. shift: of all of it. */
static void crossing(dt_roads *r, double shift)
{
    *r = (dt_roads){.n_lanes = 0};
    const int32_t a = lane(r, 10, DT_LANE_ROAD, shift, 0), b = lane(r, 20, DT_LANE_BUS, shift, -3),
                  c = lane(r, 30, DT_LANE_JUNCTION, shift + 6, 8);
    r->left[b] = a;
    r->right[a] = b;
    assert_ok(dt_roads_link(r, c, a));
    assert_ok(dt_roads_link(r, a, c));
    assert_ok(dt_roads_link(r, a, b));
    assert_ok(dt_roads_link(r, a, c)); /* said from both sides */
    assert_ok(dt_roads_seal(r));
}

static void one_way(dt_roads *r)
{
    *r = (dt_roads){.n_lanes = 0};
    lane(r, 7, DT_LANE_HIGHWAY, 0, 0);
    assert_ok(dt_roads_seal(r));
}

static void scene(dt_store_writer *w, const char *name, const char *site, int32_t map)
{
    const dt_vehicle v = {.id = 1, .x = 2, .speed = 3, .accel = 0, .length = 4, .width = NAN, .stop_distance = NAN};
    assert_ok(dt_store_scene_begin(w));
    assert_ok(dt_store_scene_map(w, map));
    for (int64_t f = 0; f < 4; f++) {
        assert_ok(dt_store_frame(w, f, 0.2 * (double)f, &v, 1));
    }
    assert_ok(dt_store_scene_end(w, name, site));
}

static dt_store_writer *create(const char *name)
{
    dt_store_writer *w = NULL;
    assert_ok(dt_store_create(at(name), &(dt_store_meta){.frame_rate_hz = 5, .source = "t"}, &w));
    return w;
}

/* Scenes a without a map, b and d on the crossing, c on the one way road; the crossing came twice. */
static void make(const char *name, double shift)
{
    dt_store_writer *w = create(name);
    dt_roads r;
    int32_t cross = -1, again = -1, way = -1;
    scene(w, "a", "x", -1);
    crossing(&r, shift);
    assert_ok(dt_store_map(w, "town", &r, &cross));
    scene(w, "b", "x", cross);
    dt_roads_fini(&r);
    one_way(&r);
    assert_ok(dt_store_map(w, "town", &r, &way));
    scene(w, "c", "y", way);
    dt_roads_fini(&r);
    crossing(&r, shift);
    assert_ok(dt_store_map(w, "town", &r, &again));
    assert_int_equal(cross, 0);
    assert_int_equal(way, 1);
    assert_int_equal(again, 0);
    scene(w, "d", "y", again);
    dt_roads_fini(&r);
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

static void check_crossing(const dt_store_view *v, int64_t map, double shift)
{
    const int64_t first = v->map_lane[map];
    assert_int_equal(v->map_lane[map + 1] - first, 3);
    assert_string_equal(v->map[map], "town");
    const int64_t p = v->lane_point[first];
    assert_int_equal(v->lane_point[first + 1] - p, 3); /* the third lay on the second */
    assert_true(v->lane_xy[2 * p] == shift && v->lane_xy[2 * p + 2] == shift + 3 && v->lane_xy[2 * p + 5] == 8);
    assert_true(v->lane_width[p] == 3 && v->lane_width[p + 1] == 3.5f && v->lane_width[p + 2] == 4);
    assert_int_equal(v->lane_kind[first + 1], DT_LANE_BUS);
    assert_int_equal(v->lane_id[first + 2], 30);
    assert_true(v->lane_limit[first] == 13.5f);
    const int64_t k = v->lane_next_ptr[first];
    assert_int_equal(v->lane_next_ptr[first + 1] - k, 2);
    assert_int_equal(v->lane_next[k], first + 1);
    assert_int_equal(v->lane_next[k + 1], first + 2);
    assert_int_equal(v->lane_next_ptr[first + 2] - v->lane_next_ptr[first + 1], 0);
    assert_int_equal(v->lane_next[v->lane_next_ptr[first + 2]], first);
    assert_int_equal(v->lane_left[first + 1], first);
    assert_int_equal(v->lane_right[first], first + 1);
    assert_int_equal(v->lane_left[first], -1);
}

static void check_maps(const dt_store_view *v, const int32_t *scene_map, int64_t n)
{
    assert_int_equal(v->n_scenes, n);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(v->scene_map[i], scene_map[i]);
    }
}

static void test_contents(void **state)
{
    dt_store *s = NULL;
    dt_str text = {0};
    make("s", 100);
    assert_ok(dt_store_open(at("s"), &s));
    const dt_store_view *v = dt_store_view_of(s);
    assert_int_equal(v->n_maps, 2);
    assert_int_equal(v->n_lanes, 4);
    assert_int_equal(v->n_lane_points, 12);
    assert_int_equal(v->n_lane_links, 3);
    check_maps(v, (const int32_t[]){-1, 0, 1, 0}, 4);
    check_crossing(v, 0, 100);
    assert_int_equal(v->lane_id[3], 7);
    dt_store_close(s);
    assert_ok(dt_data_inspect(at("s"), false, &text));
    assert_non_null(strstr(dt_str_text(&text), "roads: maps 2, lanes 4, 0.0 km, links 3, scenes with a map 3 of 4\n"
                                               "lanes road 1, highway 1, junction 1, bus 1\n"));
    dt_str_clear(&text);
    assert_ok(dt_data_inspect(at("s"), true, &text));
    assert_non_null(strstr(dt_str_text(&text), "\"roads\":{\"maps\":2,\"lanes\":4,\"points\":12,\"links\":3,"
                                               "\"length_m\":40,"));
    dt_str_fini(&text);
}

/* A map without a link has no array of links. */
static void test_without_links(void **state)
{
    dt_store *s = NULL;
    dt_roads r;
    int32_t way = -1;
    dt_store_writer *w = create("s");
    one_way(&r);
    assert_ok(dt_store_map(w, "way", &r, &way));
    scene(w, "a", "x", way);
    dt_roads_fini(&r);
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    assert_false(dt_fs_is_file(at("s/lane_next.npy")));
    assert_ok(dt_store_open(at("s"), &s));
    assert_null(dt_store_view_of(s)->lane_next);
    assert_int_equal(dt_store_view_of(s)->n_lane_links, 0);
    dt_store_close(s);
    w = create("t");
    scene(w, "a", "x", -1);
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    assert_false(dt_fs_is_file(at("t/scene_map.npy")));
    assert_ok(dt_store_open(at("t"), &s));
    assert_int_equal(dt_store_view_of(s)->n_maps, 0);
    assert_null(dt_store_view_of(s)->scene_map);
    dt_store_close(s);
}

static uint64_t digest(const char *name)
{
    dt_store *s = NULL;
    assert_ok(dt_store_open(at(name), &s));
    const uint64_t d = dt_store_digest(s);
    dt_store_close(s);
    return d;
}

static void test_parts(void **state)
{
    dt_store *s = NULL;
    dt_str notes = {0};
    make("s", 100);
    make("t", 101);
    assert_true(digest("s") != digest("t")); /* by roads alone */
    const dt_split_options by_site = {.by = DT_SPLIT_SITE, .share = 0.5};
    assert_ok(dt_data_split(at("s"), at("parts"), &by_site, &notes));
    assert_ok(dt_store_open(at("parts/y"), &s));
    check_maps(dt_store_view_of(s), (const int32_t[]){0, 1}, 2);
    check_crossing(dt_store_view_of(s), 1, 100); /* in the order in which scenes need them */
    dt_store_close(s);
    assert_ok(dt_data_merge((const char *const[]){at("parts/x"), at("parts/y")}, 2, at("m"), NULL, &notes));
    assert_int_equal(digest("m"), digest("s"));
    assert_ok(dt_data_sample(at("s"), at("a"), &(dt_sample_options){.seconds = 0.2, .seed = 3}, &notes));
    assert_ok(dt_store_open(at("a"), &s));
    check_maps(dt_store_view_of(s), (const int32_t[]){-1, 0, 1, 0}, 4);
    check_crossing(dt_store_view_of(s), 0, 100);
    dt_store_close(s);
    dt_str_fini(&notes);
}

static void test_bad_lanes(void **state)
{
    dt_roads r = {.n_lanes = 0};
    int32_t n = -1;
    const double point[] = {1, 2, 1, 2.0005, 1, 2}, far[] = {0, 0, 2e7, 0}, good[] = {0, 0, 1, 0}, wide[] = {1, -1};
    const double none[] = {0, 0, NAN, 0};
#define LANE(...) dt_roads_lane(&r, "m:3: lane 5", &(dt_road_lane){__VA_ARGS__}, &n)
    assert_fails(LANE(.xy = point, .n = 3), DT_EDATA, "m:3: lane 5 is not a line: of its 3 points, 1 are apart");
    assert_fails(LANE(.xy = point, .n = 0), DT_EDATA, "of its 0 points");
    assert_fails(LANE(.xy = far, .n = 2), DT_EDATA, "the point (2e+07, 0) is more than 1e+07 m away");
    assert_fails(LANE(.xy = none, .n = 2), DT_EDATA, "m:3: lane 5: the point (nan, 0)");
    assert_fails(LANE(.xy = good, .width = wide, .n = 2), DT_EDATA, "a width of -1 m is outside [0, 1000]");
    assert_fails(LANE(.xy = good, .n = 2, .limit = 151), DT_EDATA, "a speed limit of 151 m/s is outside [0, 150]");
    assert_int_equal(r.n_lanes, 0);
    assert_ok(LANE(.xy = good, .n = 2));
    dt_store_writer *w = create("s");
    assert_fails(dt_store_map(w, "m", &r, &n), DT_EINVAL, "map m is not sealed");
    assert_fails(dt_store_scene_map(w, -1), DT_EINVAL, "no scene is open");
    assert_ok(dt_store_scene_begin(w));
    assert_fails(dt_store_scene_map(w, 0), DT_EINVAL, "map 0 of 0");
    dt_store_destroy(w);
    dt_roads_fini(&r);
    assert_string_equal(dt_lane_kind_name(DT_LANE_FOOT), "foot");
    assert_string_equal(dt_lane_kind_name(99), "unknown");
}

/* Whatever call fails, nothing is left, and nothing leaks. */
static dt_status write_roads(dt_store_writer **w_p)
{
    const dt_vehicle v = {.id = 1, .length = 4, .width = NAN, .stop_distance = NAN};
    const double xy[] = {0, 0, 9, 0};
    int32_t number = 0, map = 0;
    dt_roads r = {.n_lanes = 0};
    dt_status st = dt_roads_lane(&r, "a lane", &(dt_road_lane){.xy = xy, .n = 2}, &number);
    if (st == DT_OK) {
        st = dt_roads_link(&r, 0, 0);
    }
    if (st == DT_OK) {
        st = dt_roads_seal(&r);
    }
    if (st == DT_OK) {
        st = dt_store_create(at("s"), &(dt_store_meta){.frame_rate_hz = 5, .source = "t"}, w_p);
    }
    if (st == DT_OK) {
        st = dt_store_map(*w_p, "town", &r, &map);
    }
    dt_roads_fini(&r);
    DT_TRY(st);
    DT_TRY(dt_store_scene_begin(*w_p));
    DT_TRY(dt_store_scene_map(*w_p, map));
    DT_TRY(dt_store_frame(*w_p, 0, 0, &v, 1));
    DT_TRY(dt_store_scene_end(*w_p, "a", "x"));
    return dt_store_commit(*w_p);
}

static void test_interruptions(void **state)
{
    static const char *const point[] = {"alloc", "fs.open", "fs.write"};
    const uint64_t live = dt_alloc_live_bytes();
    for (size_t p = 0; p < sizeof(point) / sizeof(point[0]); p++) {
        for (int n = 1;; n += p == 0 ? 1 : 5) {
            char spec[64];
            dt_store_writer *w = NULL;
            snprintf(spec, sizeof(spec), "%s:%d", point[p], n);
            dt_fault_reset(spec);
            const dt_status st = write_roads(&w);
            dt_fault_reset(NULL);
            dt_store_destroy(w);
            assert_int_equal(dt_alloc_live_bytes(), live);
            if (st == DT_OK) {
                assert_true(n > 1);
                assert_ok(dt_fs_remove_tree(at("s")));
                break;
            }
            assert_false(dt_fs_is_dir(at("s")));
            assert_false(dt_fs_is_dir(at("s.partial")));
        }
    }
}

/* ---- damaged stores ---------------------------------------------------------------------------------------------- */

static void make_sound(const char *name)
{
    make(name, 0);
}

static void test_damage(void **state)
{
    restore();
    SPOIL("scene_map", int32_t, DT_I32, 0, 2, 2, "scene_map.npy: 2 at 2 is outside [-1, 1]");
    SPOIL("scene_map", int32_t, DT_I32, 0, 0, -2, "scene_map.npy: -2 at 0");
    SPOIL("map_lane", int64_t, DT_I64, 0, 1, 4, "map_lane.npy goes from 4 to 4 at 1, at least 1 more");
    SPOIL("map_lane", int64_t, DT_I64, 0, 0, 1, "map_lane.npy runs from 1 to 4, expected 0 to 4");
    SPOIL("map_lane", int64_t, DT_I64, 0, 1, 9, "map_lane.npy goes from 0 to 9");
    SPOIL("lane_point", int64_t, DT_I64, 0, 1, 1, "lane_point.npy goes from 0 to 1 at 0, at least 2 more");
    SPOIL("lane_point", int64_t, DT_I64, 0, 1, -5, "lane_point.npy goes from 0 to -5");
    SPOIL("lane_xy", double, DT_F64, 2, 5, NAN, "lane_xy.npy: nan at 2 is outside [-1e+07, 1e+07]");
    SPOIL("lane_xy", double, DT_F64, 2, 4, -INFINITY, "lane_xy.npy: -inf at 2");
    {
        dt_npy a;
        assert_ok(dt_npy_map_rw(at("s/lane_xy.npy"), DT_F64, 2, &a));
        memcpy((double *)(uintptr_t)a.data + 2, a.data, 2 * sizeof(double));
        dt_npy_unmap(&a);
        expect_refused("lane_xy.npy: point 1 of lane 0 coincides with the one before it, they must be 0.001 m apart");
    }
    SPOIL("lane_width", float, DT_F32, 0, 3, -0.5f, "lane_width.npy: -0.5 at 3 is outside [0, 1000]");
    SPOIL("lane_width", float, DT_F32, 0, 3, NAN, "lane_width.npy: nan at 3");
    SPOIL("lane_kind", int32_t, DT_I32, 0, 1, 9, "lane_kind.npy: 9 at 1 is outside [0, 8]");
    SPOIL("lane_limit", float, DT_F32, 0, 1, INFINITY, "lane_limit.npy: inf at 1 is outside [0, 150]");
    SPOIL("lane_next_ptr", int64_t, DT_I64, 0, 1, 4, "lane_next_ptr.npy goes from 0 to 4");
    SPOIL("lane_next", int32_t, DT_I32, 0, 1, 3, "lane_next.npy: 3 at 1 is not a lane of the same map, [0, 3) are");
    SPOIL("lane_next", int32_t, DT_I32, 0, 1, -1, "lane_next.npy: -1 at 1");
    SPOIL("lane_next", int32_t, DT_I32, 0, 1, 1, "successors of lane 0 do not ascend at 1");
    SPOIL("lane_left", int32_t, DT_I32, 0, 1, 3, "lane_left.npy: 3 at 1 is not a lane of the same map");
    SPOIL("lane_right", int32_t, DT_I32, 0, 0, -2, "lane_right.npy: -2 at 0 is not a lane");
    SPOIL("lane_right", int32_t, DT_I32, 0, 1, 1, "lane_right.npy: lane 1 is its own neighbour");
    assert_int_equal(unlink(at("s/lane_left.npy")), 0);
    expect_refused("lane_left.npy is missing from the store");
    spoil_description("\"town\"", "\"to\\nwn\"", "the name of map 0, \"to?wn\", has control characters");
    spoil_description("\"maps\":2", "\"maps\":1", "counts of roads contradict each other (1 maps, 2 named");
    spoil_description("\"maps\":2", "\"maps\":0", "counts of roads contradict each other");
    spoil_description("\"maps\":2", "\"maps\":-2", "counts of roads contradict each other");
    spoil_description("\"lanes\":4", "\"lanes\":9", "counts of roads contradict each other");
    spoil_description("\"lanes\":4", "\"lanes\":5", "lane_point.npy has 5 rows, store.json announces 6");
    spoil_description("\"lane_points\":12", "\"lane_points\":13", "announces 13");
    spoil_description("\"maps\":[", "\"lost\":[", "counts of roads contradict each other (2 maps, 0 named");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_contents, begin, end),
        cmocka_unit_test_setup_teardown(test_without_links, begin, end),
        cmocka_unit_test_setup_teardown(test_parts, begin, end),
        cmocka_unit_test_setup_teardown(test_bad_lanes, begin, end),
        cmocka_unit_test_setup_teardown(test_interruptions, begin, end),
        cmocka_unit_test_setup_teardown(test_damage, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
