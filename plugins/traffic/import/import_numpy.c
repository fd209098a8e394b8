/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder of arrays of numpy: node_features.npy, and next to it the positions over time. See import.h.
 */
#include <config.h>

#include "traffic/import/import.h"
#include "traffic/store/npy.h"
#include "traffic/import/rows.h"
#include "base/err.h"
#include "base/fs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { X, Y, SPEED, ACCEL, SIN, COS, LENGTH, STOP, CONTROLLED }; /* node features */
enum { PROGRESS_ROWS = 1 << 14, VEHICLE_IDS = 1, IDS_MOST = 3 };
#define ID_MOST      9e15
#define UNIT_OFF     0.01 /* of sin^2 + cos^2 from 1: rounding of half floats, and more */
#define ACCEL_MOST   1e3
#define STOP_MOST_M  1e6
#define FEATURES_NPY "node_features.npy"

static const struct {
    double least, most;
} limits[DT_NODE_FEATURES] = {[X] = {-DT_POSITION_MAX_M, DT_POSITION_MAX_M},
                              [Y] = {-DT_POSITION_MAX_M, DT_POSITION_MAX_M},
                              [SPEED] = {-DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS},
                              [ACCEL] = {-ACCEL_MOST, ACCEL_MOST},
                              [SIN] = {-1, 1},
                              [COS] = {-1, 1},
                              [LENGTH] = {0, DT_SIZE_MAX_M},
                              [STOP] = {0, STOP_MOST_M},
                              [CONTROLLED] = {0, 1}};

static const struct {
    const char *file, *what;
    bool may_lack;
} ids[IDS_MOST] = {{"frame_ids.npy", "the frame of each row", false},
                   {"vehicle_ids.npy", "whose row it is", false},
                   {"scene_ids.npy", "the recording of each row", true}};

typedef struct numpy {
    const char *folder;
    const dt_import_options *opt;
    dt_str path; /* of node_features.npy */
    dt_npy node, id[IDS_MOST];
    dt_rows *rows;
    dt_str stem;   /* what scenes are called */
    int64_t last;  /* scene_ids of the row before */
    int32_t scene; /* its number, -1 before the first row */
} numpy;

dt_status dt_numpy_is_folder(const char *folder, bool *is_p)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/" FEATURES_NPY, folder);
    const dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        *is_p = dt_fs_is_file(dt_str_text(&path));
    }
    dt_str_fini(&path);
    return st;
}

static dt_status map_ids(numpy *p, int k)
{
    static const uint32_t dtypes[2] = {DT_I64, DT_I32};
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", p->folder, ids[k].file);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_npy_map_either(dt_str_text(&path), dtypes, 0, &p->id[k]);
    }
    if (st == DT_ENOTFOUND && ids[k].may_lack) {
        dt_error_clear();
        st = DT_OK;
    } else if (st == DT_ENOTFOUND) {
        st = DT_FAIL(DT_EDATA, "%s has " FEATURES_NPY " and no %s, %s: whole numbers, as many as it has rows",
                     p->folder, ids[k].file, ids[k].what);
    } else if (st == DT_OK && p->id[k].rows != p->node.rows) {
        st = DT_FAIL(DT_EDATA, "%s has %" PRId64 " rows, and " FEATURES_NPY " has %" PRId64, dt_str_text(&path),
                     p->id[k].rows, p->node.rows);
    }
    dt_str_fini(&path);
    return st;
}

static dt_status map_all(numpy *p)
{
    static const uint32_t dtypes[2] = {DT_F32, DT_F64};
    dt_str_addf(&p->path, "%s/" FEATURES_NPY, p->folder);
    DT_TRY(dt_str_status(&p->path));
    DT_TRY(dt_npy_map_either(dt_str_text(&p->path), dtypes, DT_NODE_FEATURES, &p->node));
    if (p->node.rows == 0) {
        return DT_FAIL(DT_EDATA, "%s contains no data: it has no rows", dt_str_text(&p->path));
    }
    for (int k = 0; k < IDS_MOST; k++) {
        DT_TRY(map_ids(p, k));
    }
    return DT_OK;
}

static int64_t integer_at(const dt_npy *a, int64_t row)
{
    return a->dtype == DT_I64 ? ((const int64_t *)a->data)[row] : ((const int32_t *)a->data)[row];
}

static dt_status id_at(const numpy *p, int k, int64_t row, int64_t *out_p)
{
    const int64_t x = integer_at(&p->id[k], row);
    if (k != VEHICLE_IDS && !((double)x >= -ID_MOST && (double)x <= ID_MOST)) {
        return DT_FAIL(DT_EDATA, "%s/%s:%" PRId64 ": %" PRId64 " is outside [%g, %g]", p->folder, ids[k].file, row, x,
                       -ID_MOST, ID_MOST);
    }
    *out_p = x;
    return DT_OK;
}

/* Scenes are called like the folder, and where they are numbered FOLDER/NUMBER. */
static dt_status scene_at(numpy *p, int64_t row, int32_t *number_p)
{
    int64_t id = 0;
    dt_str name = {0};
    const bool is_numbered = p->id[2].data != NULL;
    if (is_numbered) {
        DT_TRY(id_at(p, 2, row, &id));
    }
    if (p->scene >= 0 && id == p->last) {
        *number_p = p->scene;
        return DT_OK;
    }
    const char *site = p->opt->site != NULL && p->opt->site[0] != '\0' ? p->opt->site : "unknown";
    dt_str_add(&name, dt_str_text(&p->stem));
    if (is_numbered) {
        dt_str_addf(&name, "/%" PRId64, id);
    }
    dt_status st = dt_str_status(&name);
    if (st == DT_OK) {
        st = dt_rows_scene(p->rows, row, dt_str_text(&name), site, false, &p->scene);
    }
    dt_str_fini(&name);
    p->last = id;
    *number_p = p->scene;
    return st;
}

static dt_status features_at(const numpy *p, int64_t row, double out[DT_NODE_FEATURES])
{
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        const int64_t at = row * DT_NODE_FEATURES + d;
        out[d] =
            p->node.dtype == DT_F32 ? (double)((const float *)p->node.data)[at] : ((const double *)p->node.data)[at];
        if (!(out[d] >= limits[d].least && out[d] <= limits[d].most)) {
            return DT_FAIL(DT_EDATA,
                           "%s:%" PRId64 ": %s is %g, outside [%g, %g]: are features normalised, or in "
                           "another order? Rows are %s",
                           dt_str_text(&p->path), row, dt_node_feature_name[d], out[d], limits[d].least, limits[d].most,
                           DT_NUMPY_COLUMNS);
        }
    }
    if (out[CONTROLLED] != 0 && out[CONTROLLED] != 1) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is %g, and it is 0 or 1: are features normalised? Rows are %s",
                       dt_str_text(&p->path), row, dt_node_feature_name[CONTROLLED], out[CONTROLLED], DT_NUMPY_COLUMNS);
    }
    const double unit = out[SIN] * out[SIN] + out[COS] * out[COS];
    if (!(fabs(unit - 1) <= UNIT_OFF) && unit != 0) { /* 0: features of an unknown heading */
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64
                       ": sin_heading %g and cos_heading %g are not of an angle: their squares add up to %g. Rows "
                       "are %s",
                       dt_str_text(&p->path), row, out[SIN], out[COS], unit, DT_NUMPY_COLUMNS);
    }
    return DT_OK;
}

static dt_status add_row(numpy *p, int64_t row)
{
    double f[DT_NODE_FEATURES];
    dt_table_row r = {.line = row};
    DT_TRY(features_at(p, row, f));
    DT_TRY(id_at(p, 0, row, &r.frame));
    DT_TRY(id_at(p, 1, row, &r.id));
    DT_TRY(scene_at(p, row, &r.scene));
    r.x = f[X];
    r.y = f[Y];
    r.heading = f[SIN] == 0 && f[COS] == 0 ? NAN : atan2(f[SIN], f[COS]);
    r.speed = f[SPEED];
    r.accel = f[ACCEL];
    r.length = f[LENGTH];
    r.width = NAN;
    r.stop_distance = f[STOP] < DT_STOP_DISTANCE_MAX_M ? f[STOP] : NAN;
    r.controlled = f[CONTROLLED] == 1;
    return dt_rows_add(p->rows, &r);
}

static dt_status read_rows(numpy *p, dt_str *notes)
{
    const char *slash = strrchr(p->folder, '/');
    dt_str_add(&p->stem, slash == NULL || slash[1] == '\0' ? p->folder : slash + 1);
    DT_TRY(dt_str_status(&p->stem));
    DT_TRY(dt_rows_file_begin(
        p->rows, &(dt_rows_file){.path = dt_str_text(&p->path), .layout = "numpy", .rate_hz = p->opt->frame_rate_hz}));
    const size_t row_bytes = p->node.dtype == DT_F32 ? 4 * DT_NODE_FEATURES : 8 * DT_NODE_FEATURES;
    dt_rows_expect_bytes(p->rows, (uint64_t)p->node.rows * row_bytes);
    for (int64_t row = 0; row < p->node.rows; row++) {
        DT_TRY(add_row(p, row));
        if (row % PROGRESS_ROWS == 0) {
            dt_rows_report_progress(p->rows, (uint64_t)row * row_bytes);
        }
    }
    dt_str_addf(notes, "arrays of numpy: %" PRId64 " rows at %g Hz; edges are recomputed\n", p->node.rows,
                p->opt->frame_rate_hz);
    dt_rows_report report = {0};
    dt_status st = dt_rows_finish(p->rows, &report);
    if (st == DT_OK) {
        dt_rows_report_print(&report, notes);
        st = dt_str_status(notes); /* before the store is there */
    }
    dt_str_fini(&report.warnings);
    return st == DT_OK ? dt_rows_commit(p->rows) : st;
}

/* Keys that ask for what arrays do not have. */
static dt_status check_options(const char *folder, const dt_import_options *opt)
{
    const struct {
        const char *key, *value;
    } foreign[] = {{"columns", opt->columns}, {"types", opt->types}};
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        if (foreign[i].value != NULL && foreign[i].value[0] != '\0') {
            return DT_FAIL(DT_ECONFIG, "%s is a folder of arrays, and import.%s is %.200s: leave it out", folder,
                           foreign[i].key, foreign[i].value);
        }
    }
    return opt->frame_rate_hz > 0
               ? DT_OK
               : DT_FAIL(DT_ECONFIG, "%s is a folder of arrays, which have no frame rate: set import.frame_rate_hz",
                         folder);
}

dt_status dt_import_numpy(const char *src, const char *out, const dt_import_options *opt, dt_str *notes)
{
    numpy p = {.folder = src, .opt = opt, .scene = -1};
    DT_TRY(check_options(src, opt));
    dt_status st = map_all(&p);
    if (st == DT_OK) {
        st = dt_rows_create(out, opt, notes, &p.rows);
    }
    if (st == DT_OK) {
        st = read_rows(&p, notes);
    }
    dt_error kept;
    dt_error_save(&kept, st);
    dt_rows_destroy(p.rows);
    dt_npy_unmap(&p.node);
    for (int k = 0; k < IDS_MOST; k++) {
        dt_npy_unmap(&p.id[k]);
    }
    dt_str_fini(&p.path);
    dt_str_fini(&p.stem);
    return st == DT_OK ? DT_OK : dt_error_restore(&kept);
}
