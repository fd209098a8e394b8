/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/traffic/export/export_table.c: a store as a table, and that table as a store again.
 */
#include "fixture.h"

#include "traffic/export/export_table.h"
#include "traffic/import/import.h"
#include "traffic/store/store.h"

/* Two scenes with names that need care, a vehicle that is gone for two frames, missing widths, numbers with many
 * digits. */
static const char recording[] =
    "scene,site,frame,time,id,x,y,heading,speed,accel,length,width,stop_distance,controlled\n"
    "\"a,b#2\",north,0,0,7,0.1,-3,0.3333333333333333,8.25,0.5,4.5,1.9,37.5,1\n"
    "\"a,b#2\",north,0,0,8,20.123456789012345,3,0.1,7,,4.5,,,0\n"
    "\"a,b#2\",north,1,0.1,7,0.925,-3,0.33,8.3,,4.5,1.9,36.6,1\n"
    "\"a,b#2\",north,1,0.1,8,20.8,3,0.1,7.1,,4.5,,,0\n"
    "\"a,b#2\",north,4,0.4,7,3.4,-3,0.33,8.4,,4.5,1.9,34.1,1\n"
    "\"say \"\"c\"\"\",south,0,5,1,1e-3,2,3.1,0.1,-1,12,2.5,200,0\n"
    "\"say \"\"c\"\"\",south,0,5,2,30,2,,0,,,,,0\n"
    "\"say \"\"c\"\"\",south,1,5.1,1,0.011,2,3.1,0,-1,12,2.5,200,0\n";

static const dt_import_options at_10_hz = {.frame_rate_hz = 10};

static dt_store *import(const char *table, const char *store, const dt_import_options *opt)
{
    dt_str report = {0};
    dt_store *s = NULL;
    const dt_status st = dt_data_import(&(const char *){at(table)}, 1, at(store), opt, &report);
    dt_str_fini(&report);
    if (st != DT_OK || dt_store_open(at(store), &s) != DT_OK) {
        fail_msg("%s: %s", table, dt_error_text());
    }
    return s;
}

static void same(const void *a, const void *b, int64_t n, size_t bytes)
{
    assert_memory_equal(a, b, (size_t)n * bytes);
}

static void test_round_trip(void **state)
{
    dt_str report = {0};
    put_bytes("first.csv", recording, sizeof(recording) - 1);
    dt_store *one = import("first.csv", "first", &at_10_hz);
    assert_int_equal(dt_data_export(at("first"), at("second.csv"), &report), DT_OK);
    assert_non_null(strstr(dt_str_text(&report), "8 rows"));
    dt_str_fini(&report);
    assert_false(dt_fs_is_file(at("second.csv.partial")));
    dt_store *two = import("second.csv", "second", NULL); /* the table says its frame rate */
    const dt_store_view *a = dt_store_view_of(one), *b = dt_store_view_of(two);
    assert_true(b->frame_rate_hz == 10);
    assert_int_equal(a->n_rows, b->n_rows);
    assert_int_equal(a->n_frames, b->n_frames);
    assert_int_equal(a->n_scenes, b->n_scenes);
    assert_int_equal(a->n_tracks, b->n_tracks);
    assert_int_equal(a->n_edges, b->n_edges);
    for (int64_t s = 0; s < a->n_scenes; s++) {
        assert_string_equal(a->scene[s], b->scene[s]);
        assert_string_equal(a->site[a->scene_site[s]], b->site[b->scene_site[s]]);
    }
    same(a->node, b->node, a->n_rows * DT_NODE_FEATURES, sizeof(float));
    same(a->pose, b->pose, a->n_rows * 3, sizeof(double));
    same(a->edge, b->edge, a->n_edges * DT_EDGE_FEATURES, sizeof(float));
    same(a->edge_src, b->edge_src, a->n_edges, sizeof(int32_t));
    same(a->row_track, b->row_track, a->n_rows, sizeof(int32_t));
    same(a->frame_row, b->frame_row, a->n_frames + 1, sizeof(int64_t));
    same(a->frame_time, b->frame_time, a->n_frames, sizeof(double));
    same(a->risk, b->risk, a->n_rows, 1);
    same(dt_store_track_ids(one), dt_store_track_ids(two), a->n_tracks, sizeof(int64_t));
    assert_int_equal(dt_store_version(two), DT_STORE_VERSION);
    for (int k = 0; k < DT_N_UNKNOWN; k++) {
        assert_int_equal(dt_store_unknown(one, k), dt_store_unknown(two, k));
        assert_true(dt_store_unknown(one, k) > 0);
    }
    for (int64_t i = 0; i < a->n_rows * 4; i++) {
        assert_true(a->motion[i] == b->motion[i] || (isnan(a->motion[i]) && isnan(b->motion[i])));
    }
    dt_store_close(one);
    dt_store_close(two);
}

static void test_refused(void **state)
{
    dt_str report = {0};
    assert_int_equal(dt_data_export(at("nothing"), at("x.csv"), &report), DT_ENOTFOUND);
    put_bytes("first.csv", recording, sizeof(recording) - 1);
    dt_store_close(import("first.csv", "first", &at_10_hz));
    assert_fails(dt_data_export(at("first"), at("first.csv"), &report), DT_EINVAL, "first.csv exists already");
    assert_fails(dt_data_export(at("first"), at("first"), &report), DT_EINVAL, "first exists already");
    assert_true(dt_data_export(at("first"), at("no/folder/x.csv"), &report) < 0);
    assert_non_null(strstr(dt_error_text(), "x.csv.partial"));
    static const char *const point[] = {"fs.write:1", "fs.fsync:1", "fs.rename:1"};
    for (size_t i = 0; i < sizeof(point) / sizeof(point[0]); i++) { /* a full disk leaves nothing */
        dt_fault_reset(point[i]);
        assert_int_equal(dt_data_export(at("first"), at("x.csv"), &report), DT_EIO);
        dt_fault_reset(NULL);
        assert_false(dt_fs_is_file(at("x.csv")));
        assert_false(dt_fs_is_file(at("x.csv.partial")));
    }
    assert_string_equal(dt_str_text(&report), "");
    dt_str_fini(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, begin, end),
        cmocka_unit_test_setup_teardown(test_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
