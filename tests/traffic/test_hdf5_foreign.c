/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of HDF5 that another program wrote: arrays that are views of other files, lie in other files or have chunks
 * that take more memory than the file, which are refused before any of that is opened or unpacked. And what an import
 * needs of a file, by docs/reference/recording-files.md.
 */
#include "documented.h"

#include "traffic/export/export_hdf5.h"
#include "traffic/import/import_hdf5.h"

#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static dt_str notes;

static int finish(void **state)
{
    dt_str_fini(&notes);
    return end(state);
}

/* A store of one scene as a file; false: there is no module. */
static bool make(const char *file)
{
    dt_store_writer *w = NULL;
    const dt_store_meta meta = {.frame_rate_hz = 5, .source = "t"};
    const dt_hdf5_options opt = {.gzip = 1, .chunk_rows = 16};
    assert_ok(dt_store_create(at("made"), &meta, &w));
    static const double xy[] = {0, 0, 15, 0, 30, 0};
    const dt_road_lane lane = {.id = 1, .kind = DT_LANE_ROAD, .limit = 10, .xy = xy, .n = 2};
    const dt_road_lane next = {.id = 2, .kind = DT_LANE_ROAD, .limit = 10, .xy = xy + 2, .n = 2};
    dt_roads roads = {.n_lanes = 0};
    int32_t map = -1, number = 0;
    assert_ok(dt_roads_lane(&roads, "one", &lane, &number));
    assert_ok(dt_roads_lane(&roads, "two", &next, &number));
    assert_ok(dt_roads_link(&roads, 0, 1));
    assert_ok(dt_roads_seal(&roads));
    assert_ok(dt_store_map(w, "m", &roads, &map));
    dt_roads_fini(&roads);
    assert_ok(dt_store_scene_begin(w));
    assert_ok(dt_store_scene_map(w, map));
    for (int f = 0; f < 30; f++) {
        dt_vehicle v = {.id = 1, .x = f, .speed = 5, .accel = NAN, .length = 4, .width = 2, .stop_distance = NAN};
        assert_ok(dt_store_frame(w, f, 0.2 * f, &v, 1));
    }
    assert_ok(dt_store_scene_end(w, "s", "x"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    const dt_status st = dt_hdf5_export(at("made"), at(file), &opt, &notes);
    assert_true(st == DT_OK || st == DT_EUNSUPPORTED);
    return st == DT_OK;
}

/* The first array of the file that has rows of numbers is replaced by one of this kind. */
enum { VIEW, ELSEWHERE, LARGE_CHUNKS };
static void replace(const char *path, const char *name, int kind)
{
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), old = H5Dopen2(file, name, H5P_DEFAULT);
    const hid_t type = H5Dget_type(old), space = H5Dget_space(old), how = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t dims[2] = {0, 0}, most[2] = {H5S_UNLIMITED, 0};
    const int n = H5Sget_simple_extent_dims(space, dims, NULL);
    most[1] = dims[1];
    hid_t new_space = H5Screate_simple(n, dims, NULL);
    if (kind == VIEW) {
        assert_true(H5Pset_virtual(how, new_space, at("pipe"), name, space) >= 0);
    } else if (kind == ELSEWHERE) {
        assert_true(H5Pset_external(how, at("pipe"), 0, H5F_UNLIMITED) >= 0);
    } else {
        const hsize_t chunk[2] = {((hsize_t)128 << 20) / H5Tget_size(type), n > 1 ? dims[1] : 1};
        H5Sclose(new_space);
        new_space = H5Screate_simple(n, dims, most);
        assert_true(H5Pset_chunk(how, n, chunk) >= 0 && H5Pset_deflate(how, 1) >= 0);
    }
    H5Dclose(old);
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    const hid_t set = H5Dcreate2(file, name, type, new_space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set);
    H5Pclose(how);
    H5Sclose(space);
    H5Sclose(new_space);
    H5Tclose(type);
    assert_true(H5Fclose(file) >= 0);
}

static void test_other_files(void **state)
{
    static const char *const names[] = {"scene", "scene_frame", "scene_site"};
    static const struct {
        int kind;
        const char *words;
    } kinds[] = {{VIEW, "is stored in external files"},
                 {ELSEWHERE, "is stored in external files"},
                 {LARGE_CHUNKS, "has chunks of"}};
    if (!make("good.h5")) {
        skip();
    }
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    alarm(60); /* nothing writes to the pipe: opening it would block forever */
    const hid_t file = H5Fopen(at("good.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    int n_checked = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (H5Lexists(file, names[i], H5P_DEFAULT) <= 0) {
            continue;
        }
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            char line[4200];
            snprintf(line, sizeof(line), "cp '%s' ", at("good.h5"));
            snprintf(line + strlen(line), sizeof(line) - strlen(line), "'%s'", at("bad.h5"));
            assert_int_equal(system(line), 0);
            replace(at("bad.h5"), names[i], kinds[k].kind);
            dt_str_clear(&notes);
            assert_fails(dt_hdf5_import(at("bad.h5"), at("s"), &(dt_import_options){.jobs = 1}, &notes), DT_EDATA,
                         kinds[k].words);
            assert_false(dt_fs_is_dir(at("s")));
            n_checked++;
        }
    }
    H5Fclose(file);
    alarm(0);
    assert_true(n_checked >= 6);
}

static void copy_good(void)
{
    char *bytes = NULL;
    size_t n = 0;
    assert_ok(dt_fs_read_all(at("good.h5"), 1 << 26, &bytes, &n));
    put_bytes("bad.h5", bytes, n);
    dt_free(bytes);
}

/* The number of the store that an import makes; 0: it is refused. */
static uint64_t stored(void)
{
    dt_store *s = NULL;
    uint64_t print = 0;
    dt_str_clear(&notes);
    assert_ok(dt_fs_remove_tree(at("s")));
    const dt_status st = dt_hdf5_import(at("bad.h5"), at("s"), &(dt_import_options){.jobs = 1}, &notes);
    if (st == DT_OK) {
        assert_ok(dt_store_open(at("s"), &s));
        print = documented_print(s);
        dt_store_close(s);
    } else {
        assert_int_equal(st, DT_EDATA);
    }
    return print;
}

/* Without an array that is read the file is refused, or has no roads; without another one nothing is missed. */
static void test_documented(void **state)
{
    static const char title[] = "HDF5";
    documented *page = documented_read();
    if (!make("good.h5")) {
        dt_free(page);
        skip();
    }
    copy_good();
    const uint64_t plain = stored();
    assert_true(plain != 0);
    for (documented *d = page; d->title[0] != '\0'; d++) {
        if (strcmp(d->title, title) != 0) {
            continue;
        }
        copy_good();
        const hid_t file = H5Fopen(at("bad.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
        if (strcmp(d->element, "other arrays") == 0) {
            assert_true(H5Lcopy(file, "risk", file, "more", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        } else if (H5Lexists(file, d->element, H5P_DEFAULT) > 0) {
            assert_true(H5Ldelete(file, d->element, H5P_DEFAULT) >= 0);
        } else {
            assert_true(H5Adelete(file, d->element) >= 0);
        }
        assert_true(H5Fclose(file) >= 0);
        const bool is_missed = stored() != plain;
        if (is_missed != (strcmp(d->outcome, "read") == 0)) {
            fail_msg("%s is not %s: %s", d->element, d->outcome, dt_str_text(&notes));
        }
        d->is_tested = true;
    }
    documented_finish(page, title);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_other_files, begin, finish),
                                       cmocka_unit_test_setup_teardown(test_documented, begin, finish)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
