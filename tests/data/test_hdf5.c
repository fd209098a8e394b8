/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/data/hdf5_store.c and core/data/hdf5/module.c: a store goes out and comes in as it was, however it is
 * kept and packed, and damaged files are refused or are sound. Skipped where the module was not built.
 */
#include "fixture.h"

#include "data/hdf5_store.h"
#include "data/parts.h"

static dt_str notes;

static int finish(void **state)
{
    dt_str_fini(&notes);
    return end(state);
}

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
                                    .speed = 6.25,
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
    (void)state;
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
        assert_true(dt_hdf5_is(at("s.h5")));
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

static void test_refusals(void **state)
{
    (void)state;
    const dt_import_options opt = {0};
    const dt_hdf5_options wrong = {.gzip = 10};
    make("s", &(dt_packing){0});
    assert_fails(dt_hdf5_export(at("s"), at("s.h5"), &wrong, &notes), DT_EINVAL, "gzip 10 is outside [0, 9]");
    put("s.csv", "id,x\n");
    assert_false(dt_hdf5_is(at("s.csv")));
    assert_false(dt_hdf5_is(at("none")));
    if (!export("s", "s.h5", 1, 0)) {
        skip();
    }
    const char *const both[] = {at("s.h5"), at("s.csv")};
    assert_fails(dt_data_import(both, 2, at("t"), &opt, &notes), DT_EINVAL, "is HDF5, which is imported alone");
    assert_fails(dt_hdf5_export(at("none"), at("x.h5"), &(dt_hdf5_options){0}, &notes), DT_ENOTFOUND, "no store");
    assert_fails(dt_hdf5_export(at("s"), at("no/x.h5"), &(dt_hdf5_options){0}, &notes), DT_EIO, "cannot write");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_there_and_back, begin, finish),
        cmocka_unit_test_setup_teardown(test_refusals, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
