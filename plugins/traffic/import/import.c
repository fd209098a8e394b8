/* SPDX-License-Identifier: Apache-2.0
 *
 * Which importer reads which source. See import.h.
 */
#include <config.h>

#include "traffic/import/import.h"
#include "traffic/import/import_hdf5.h"
#include "traffic/import/import_jobs.h"
#include "traffic/import/rows.h"
#include "traffic/inspect/inspect.h"
#include "base/err.h"
#include "base/fs.h"

#include <string.h>
#include <unistd.h>

/* What is one part is no part: it goes straight into the store. */
static dt_status import_at_once(const char *const *src, uint32_t n_src, const char *out, const dt_import_options *opt,
                                uint64_t bytes, dt_str *notes)
{
    dt_rows *rows = NULL;
    dt_rows_report report = {0};
    dt_status st = dt_rows_create(out, opt, notes, &rows);
    if (st == DT_OK) {
        dt_rows_expect_bytes(rows, bytes);
        st = dt_import_read(src, n_src, opt, notes, rows);
    }
    if (st == DT_OK) {
        st = dt_rows_finish(rows, &report);
    }
    if (st == DT_OK) {
        dt_rows_report_print(&report, notes);
        st = dt_str_status(notes); /* before the store is there */
    }
    if (st == DT_OK) {
        st = dt_rows_commit(rows);
    }
    dt_str_fini(&report.warnings);
    dt_rows_destroy(rows);
    return st;
}

static dt_status import_files(const char *const *src, uint32_t n_src, const char *out, const dt_import_options *opt,
                              dt_str *notes)
{
    dt_import_plan plan;
    DT_TRY(dt_import_check(src, n_src, opt));
    DT_TRY(dt_import_plan_make(src, n_src, opt, &plan));
    const dt_status st = plan.n > 1 ? dt_import_jobs(&plan, src, out, opt, notes)
                                    : import_at_once(src, n_src, out, opt, plan.bytes, notes);
    dt_import_plan_fini(&plan);
    return st;
}

/* Where a map is counted from means nothing without one. */
static dt_status check_map_keys(const dt_import_options *opt)
{
    const struct {
        const char *key, *value;
    } of_map[] = {{"map_origin", opt->map_origin}, {"map_offset", opt->map_offset}};
    const bool has_map = opt->map != NULL && opt->map[0] != '\0';
    for (size_t i = 0; i < sizeof(of_map) / sizeof(of_map[0]) && !has_map; i++) {
        if (of_map[i].value != NULL && of_map[i].value[0] != '\0') {
            return DT_FAIL(DT_ECONFIG, "import.%s is %.60s, but import.map is not set", of_map[i].key, of_map[i].value);
        }
    }
    return DT_OK;
}

static dt_status import_any(const char *const *src, uint32_t n_src, const char *out, const dt_import_options *opt,
                            dt_str *notes)
{
    if (dt_fs_is_dir(src[0])) {
        DT_TRY(check_map_keys(opt));
        bool is_numpy = false;
        DT_TRY(dt_numpy_is_folder(src[0], &is_numpy));
        return is_numpy ? dt_import_numpy(src[0], out, opt, notes) : dt_import_chunks(src[0], out, opt, notes);
    }
    for (uint32_t i = 0; i < n_src; i++) {
        if (dt_hdf5_is_file(src[i])) {
            return n_src == 1
                       ? dt_hdf5_import(src[i], out, opt, notes)
                       : DT_FAIL(DT_EINVAL, "%s is HDF5, which is imported alone: make stores of each and merge them",
                                 src[i]);
        }
    }
    for (uint32_t i = 0; i < n_src; i++) { /* as a table it would be reported to have odd columns */
        const size_t n = strlen(src[i]);
        if (dt_fs_is_file(src[i]) &&
            ((n > 3 && strcmp(src[i] + n - 3, ".h5") == 0) || (n > 5 && strcmp(src[i] + n - 5, ".hdf5") == 0))) {
            return DT_FAIL(DT_EDATA, "%s is not HDF5, despite its name: it begins with other bytes; copy it again",
                           src[i]);
        }
    }
    DT_TRY(check_map_keys(opt));
    return import_files(src, n_src, out, opt, notes);
}

dt_status dt_data_import(const char *const *src, uint32_t n_src, const char *out, const dt_import_options *opt,
                         dt_str *notes)
{
    static const dt_import_options defaults = {0};
    opt = opt == NULL ? &defaults : opt;
    for (uint32_t i = 0; i < n_src; i++) {
        const bool is_folder = dt_fs_is_dir(src[i]);
        if (!is_folder && !dt_fs_is_file(src[i])) {
            DT_TRY(dt_fs_check_access(src[i]));
            if (access(src[i], F_OK) == 0) {
                return DT_FAIL(
                    DT_EDATA,
                    "%s is a pipe, a socket or a device, and recordings are read from files: write it to one first",
                    src[i]);
            }
            return DT_FAIL(DT_ENOTFOUND,
                           "there is no recording at %s: give a table, or a folder with metadata.json or "
                           "node_features.npy",
                           src[i]);
        }
        if (is_folder && n_src > 1) {
            return DT_FAIL(DT_EINVAL, "%s is a folder: a folder is imported alone, without others", src[i]);
        }
    }
    DT_TRY(dt_store_check_out(out));
    DT_TRY(import_any(src, n_src, out, opt, notes));
    dt_status st = dt_data_summarise(out, opt->jobs, notes); /* opens it, so what remains has passed every check */
    if (st != DT_OK) {
        dt_error e;
        dt_error_save(&e, st);
        (void)!dt_fs_remove_tree(out);
        return dt_error_restore(&e);
    }
    return DT_OK;
}
