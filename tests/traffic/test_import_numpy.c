/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/import/import_numpy.c: arrays become the recording that they are of, and what does not fit
 * is refused with array, row and value.
 */
#include "documented.h"
#include "import_rig.h"

#include "traffic/store/npy.h"

enum { ROWS = 5 };

/* Vehicle 7 in frames 0, 1 and 2 of scene 3, vehicle 9 in frame 1; vehicle 7 of scene 4. */
static const double sound[ROWS][9] = {{0, 1, 10, 0.5, 0, 1, 4.5, 200, 0},
                                      {1, 1, 10.5, 0.5, 0, 1, 4.5, 90, 1},
                                      {20, 1, 5, 0, 1, 0, 12, 200, 0},
                                      {2, 1, 11, -1, 0, 1, 4.5, 89, 0},
                                      {0, 0, 1, 0, -0.6, 0.8, 4, 200, 0}};
static const int64_t frame[ROWS] = {0, 1, 1, 2, 0}, vehicle[ROWS] = {7, 7, 9, 7, 7}, scene[ROWS] = {3, 3, 3, 3, 4};

static void put_array(const char *name, uint32_t dtype, int64_t width, const void *data, int64_t rows)
{
    char path[64];
    dt_npy_writer *w = NULL;
    snprintf(path, sizeof(path), "arrays/%s.npy", name);
    assert_ok(dt_fs_mkdirs(at("arrays")));
    assert_ok(dt_fs_remove_tree(at(path)));
    assert_ok(dt_npy_create(at(path), dtype, width, &w));
    assert_ok(dt_npy_append(w, data, rows));
    assert_ok(dt_npy_close(w));
}

static void put_sound(void)
{
    put_array("node_features", DT_F64, 9, sound, ROWS);
    put_array("frame_ids", DT_I64, 0, frame, ROWS);
    put_array("vehicle_ids", DT_I64, 0, vehicle, ROWS);
    put_array("scene_ids", DT_I64, 0, scene, ROWS);
}

/* As a transposed array is saved. */
static void mark_fortran(void)
{
    char head[129] = "";
    FILE *f = fopen(at("arrays/node_features.npy"), "r+b");
    assert_non_null(f);
    assert_int_equal(fread(head, 1, 128, f), 128);
    const char *order = memmem(head, 128, "False,", 6);
    assert_non_null(order);
    assert_int_equal(fseek(f, order - head, SEEK_SET), 0);
    assert_int_equal(fwrite("True, ", 1, 6, f), 6);
    assert_int_equal(fclose(f), 0);
}

static const dt_import_options at_10_hz = {.frame_rate_hz = 10, .site = "north"};

static void test_rows(void **state)
{
    put_sound();
    const dt_store_view *v = import("arrays", &at_10_hz);
    assert_int_equal(v->n_rows, ROWS);
    assert_int_equal(v->n_scenes, 2);
    assert_string_equal(v->scene[0], "arrays/3");
    assert_string_equal(v->scene[1], "arrays/4");
    assert_string_equal(v->site[0], "north");
    assert_int_equal(v->n_tracks, 3);
    assert_int_equal(v->n_frames, 4);
    for (int r = 0; r < ROWS; r++) {
        for (int d = 0; d < 9; d++) {
            assert_true(fabs((double)v->node[9 * r + d] - sound[r][d]) < 1e-6);
        }
    }
    assert_non_null(strstr(dt_str_text(&report), "5 rows at 10 Hz"));
    /* the same in floats and in shorter numbers, and without scenes */
    float node[4][9];
    int32_t frames[4], vehicles[4];
    for (int r = 0; r < 4; r++) {
        frames[r] = (int32_t)frame[r];
        vehicles[r] = (int32_t)vehicle[r];
        for (int d = 0; d < 9; d++) {
            node[r][d] = (float)sound[r][d];
        }
    }
    put_array("node_features", DT_F32, 9, node, 4);
    put_array("frame_ids", DT_I32, 0, frames, 4);
    put_array("vehicle_ids", DT_I32, 0, vehicles, 4);
    assert_ok(dt_fs_remove_tree(at("arrays/scene_ids.npy")));
    v = import("arrays", &at_10_hz);
    assert_int_equal(v->n_rows, 4);
    assert_string_equal(v->scene[0], "arrays");
    assert_true(v->pose[3 * 2] == 20 && fabs(v->pose[3 * 2 + 2] - M_PI / 2) < 1e-12);
}

static void refuse(const dt_import_options *opt, dt_status st, const char *words)
{
    close_all();
    const uint64_t live = dt_alloc_live_bytes();
    assert_fails(import_with("arrays", opt), st, words);
    close_all();
    assert_int_equal(dt_alloc_live_bytes(), live);
    assert_false(dt_fs_is_dir(at("s")));
    assert_false(dt_fs_is_dir(at("s.partial")));
    put_sound();
}

static void refuse_feature(int row, int column, double value, const char *words)
{
    double changed[ROWS][9];
    memcpy(changed, sound, sizeof(changed));
    changed[row][column] = value;
    put_array("node_features", DT_F64, 9, changed, ROWS);
    refuse(&at_10_hz, DT_EDATA, words);
}

static void test_refusals(void **state)
{
    static const int64_t twice[ROWS] = {0, 1, 2, 1, 0}, far[ROWS] = {0, 1, 1, INT64_MAX, 0};
    put_sound();
    refuse(NULL, DT_ECONFIG, "which have no frame rate: set import.frame_rate_hz");
    refuse(&(dt_import_options){.frame_rate_hz = 10, .columns = "id=a"}, DT_ECONFIG, "import.columns is id=a");
    refuse_feature(1, 2, 200, "node_features.npy:1: speed is 200, outside [-150, 150]: are features normalised");
    refuse_feature(4, 0, NAN, "node_features.npy:4: x is nan, outside [-1e+07, 1e+07]");
    refuse_feature(0, 4, 0.5, "node_features.npy:0: sin_heading 0.5 and cos_heading 1 are not of an angle");
    refuse_feature(2, 8, 0.5, "node_features.npy:2: controlled is 0.5, and it is 0 or 1");
    put_array("node_features", DT_F64, 4, sound, ROWS);
    refuse(&at_10_hz, DT_EDATA, "node_features.npy: rows of 4 values, expected 9");
    put_array("node_features", DT_I64, 9, sound, ROWS);
    refuse(&at_10_hz, DT_EDATA, "node_features.npy: values are '<i8', expected '<f4'");
    put_array("node_features", DT_F64, 9, sound, 0);
    refuse(&at_10_hz, DT_EDATA, "contains no data: it has no rows");
    put("arrays/node_features.npy", "");
    refuse(&at_10_hz, DT_EDATA, "node_features.npy");
    put_array("vehicle_ids", DT_I64, 0, vehicle, 4);
    refuse(&at_10_hz, DT_EDATA, "vehicle_ids.npy has 4 rows, and node_features.npy has 5");
    assert_ok(dt_fs_remove_tree(at("arrays/frame_ids.npy")));
    refuse(&at_10_hz, DT_EDATA, "has node_features.npy and no frame_ids.npy, the frame of each row");
    put_array("frame_ids", DT_I64, 0, far, ROWS);
    refuse(&at_10_hz, DT_EDATA, "frame_ids.npy:3: 9223372036854775807 is outside [-9e+15, 9e+15]");
    static const int64_t large[ROWS] = {INT64_MIN, 1, INT64_MAX, 1500000000000000001, 1500000000000000002};
    put_array("vehicle_ids", DT_I64, 0, large, ROWS); /* every integer is an id */
    assert_int_equal(import("arrays", &at_10_hz)->n_tracks, ROWS);
    put_sound();
    mark_fortran();
    refuse(&at_10_hz, DT_EDATA, "node_features.npy: the array is in Fortran order, expected C order (numpy.");
    put_array("frame_ids", DT_I64, 0, twice, ROWS);
    refuse(&at_10_hz, DT_EDATA, "node_features.npy:3: vehicle 7 is in frame 1 of scene arrays/3 twice");
}

static uint64_t stored(void)
{
    import("arrays", &at_10_hz);
    return documented_print(store);
}

/* The rows of docs/reference/recording-files.md. */
static void test_documented(void **state)
{
    static const char title[] = "numpy arrays";
    documented *page = documented_read();
    put_sound();
    const uint64_t plain = stored();
    double changed[ROWS][9];
    static const int64_t other[3][ROWS] = {{0, 1, 1, 3, 0}, {8, 8, 9, 8, 8}, {3, 3, 3, 3, 5}};
    static const char *const ids[] = {"frame_ids", "vehicle_ids", "scene_ids"}, *const skipped[] = {"edge_features.npy",
                                                                                                    "edge_indices.npy",
                                                                                                    "other files"};
    memcpy(changed, sound, sizeof(changed));
    changed[0][0] = 0.5;
    put_array("node_features", DT_F64, 9, changed, ROWS);
    assert_true(stored() != plain);
    documented_mark(page, title, "node_features.npy", "read");
    for (int i = 0; i < 3; i++) {
        char element[32];
        put_sound();
        put_array(ids[i], DT_I64, 0, other[i], ROWS);
        assert_true(stored() != plain);
        snprintf(element, sizeof(element), "%s.npy", ids[i]);
        documented_mark(page, title, element, "read");
    }
    put_sound();
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof(name), "arrays/%s", i < 2 ? skipped[i] : "notes.txt");
        put(name, "no array");
        assert_true(stored() == plain);
        documented_mark(page, title, skipped[i], "skipped");
    }
    refuse_feature(1, 2, 200, "outside [-150, 150]");
    documented_mark(page, title, "a feature out of range", "rejected");
    mark_fortran();
    refuse(&at_10_hz, DT_EDATA, "Fortran order");
    documented_mark(page, title, "Fortran order", "rejected");
    put_array("vehicle_ids", DT_I64, 0, vehicle, 4);
    refuse(&at_10_hz, DT_EDATA, "has 4 rows");
    documented_mark(page, title, "an array of other rows", "rejected");
    documented_finish(page, title);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows, begin, finish),
        cmocka_unit_test_setup_teardown(test_refusals, begin, finish),
        cmocka_unit_test_setup_teardown(test_documented, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
