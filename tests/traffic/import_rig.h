/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of imports share: one import at a time, its report and its store. Before a test ends: finish.
 */
#ifndef DTRAIN_TESTS_DATA_IMPORT_RIG_H
#define DTRAIN_TESTS_DATA_IMPORT_RIG_H

#include "fixture.h"

#include "traffic/import/import.h"
#include "traffic/inspect/inspect.h"

#define COMMONROAD "scenario,frame,vehicle_id,type,length_m,width_m,x_m,y_m,heading_rad,speed_mps,accel_mps2\n"

static dt_str report;
static dt_store *store;

static void close_all(void)
{
    dt_store_close(store);
    store = NULL;
    dt_str_fini(&report);
}

static dt_status import_with(const char *name, const dt_import_options *opt)
{
    close_all();
    assert_ok(dt_fs_remove_tree(at("s")));
    return dt_data_import(&(const char *){at(name)}, 1, at("s"), opt, &report);
}

static const dt_store_view *import(const char *name, const dt_import_options *opt)
{
    assert_ok(import_with(name, opt));
    assert_ok(dt_store_open(at("s"), &store));
    return dt_store_view_of(store);
}

__attribute__((unused)) static const dt_store_view *import_text(const char *text, const dt_import_options *opt)
{
    put("t.csv", text);
    return import("t.csv", opt);
}

__attribute__((unused)) static void refuse_text(const char *text, const dt_import_options *opt, dt_status code,
                                                const char *words)
{
    uint64_t live = 0;
    close_all();
    live = dt_alloc_live_bytes();
    put("t.csv", text);
    assert_fails(import_with("t.csv", opt), code, words);
    close_all();
    assert_int_equal(dt_alloc_live_bytes(), live);
    assert_false(dt_fs_is_dir(at("s")));
    assert_false(dt_fs_is_dir(at("s.partial")));
}

/* Two stores of the same files, byte for byte. */
__attribute__((unused)) static void assert_same(const char *a, const char *b)
{
    char **names[2] = {NULL}, path[1100];
    size_t n[2] = {0};
    assert_ok(dt_fs_list(at(a), &names[0], &n[0]));
    assert_ok(dt_fs_list(at(b), &names[1], &n[1]));
    assert_int_equal(n[0], n[1]);
    assert_true(n[0] > 12);
    for (size_t i = 0; i < n[0]; i++) {
        char *text[2] = {NULL};
        size_t bytes[2] = {0};
        assert_string_equal(names[0][i], names[1][i]);
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof(path), "%s/%s", at(k == 0 ? a : b), names[k][i]);
            assert_ok(dt_fs_read_all(path, SIZE_MAX / 2, &text[k], &bytes[k]));
        }
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(text[0], text[1], bytes[0]);
        dt_free(text[0]);
        dt_free(text[1]);
    }
    dt_fs_list_free(names[0], n[0]);
    dt_fs_list_free(names[1], n[1]);
}

static int finish(void **state)
{
    close_all();
    return end(state);
}

#endif
