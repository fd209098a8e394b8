/* SPDX-License-Identifier: Apache-2.0
 *
 * Trajectory tables: columns and cells (columns.h) become rows (rows.h). See import.h for the layouts that are
 * recognised.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/columns.h"
#include "data/csv.h"
#include "data/import.h"
#include "data/rows.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct table {
    dt_csv *csv;
    const dt_import_options *opt;
    dt_str *notes;
    dt_rows *rows;
    dt_columns columns;
    dt_str stem;  /* the scene of a table that names none */
    double time0; /* of the first row */
    bool has_time0;
} table;

/* CommonRoad benchmark ids: COUNTRY_MAP-1_2_T-3; the map names the site. */
static void site_of_benchmark(const char *id, char *out, size_t bytes)
{
    const char *from = strchr(id, '_');
    from = from == NULL ? id : from + 1;
    size_t n = strcspn(from, "-");
    n = n < bytes ? n : bytes - 1;
    memcpy(out, from, n);
    out[n] = '\0';
}

static dt_status scene_of(table *t, char *const *cell, int32_t *number_p)
{
    const dt_columns *c = &t->columns;
    const char *name = c->at[DT_ROLE_SCENE] < 0 ? dt_str_text(&t->stem) : cell[c->at[DT_ROLE_SCENE]];
    const char *site = c->at[DT_ROLE_SITE] < 0 ? "" : cell[c->at[DT_ROLE_SITE]];
    char benchmark[128];
    if (c->at[DT_ROLE_SITE] < 0 && c->layout.is_benchmark) {
        site_of_benchmark(name, benchmark, sizeof(benchmark));
        site = benchmark;
    }
    if (site[0] == '\0') {
        site = c->layout.site != NULL ? c->layout.site : "unknown";
        site = t->opt->site != NULL && t->opt->site[0] != '\0' ? t->opt->site : site;
    }
    return dt_rows_scene(t->rows, dt_csv_line(t->csv), name, site, c->layout.has_parts, number_p);
}

/* Frame number at the table's rate; a time must lie on the grid that the first row begins. */
static dt_status frame_of(table *t, char *const *cell, int64_t *out_p)
{
    const dt_columns *c = &t->columns;
    if (c->at[DT_ROLE_TIME] < 0) {
        return dt_columns_integer(c, cell, DT_ROLE_FRAME, out_p);
    }
    double time = 0;
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_TIME, &time));
    if (!t->has_time0) {
        t->time0 = time;
        t->has_time0 = true;
    }
    double frame = (time - t->time0) * c->rate_hz;
    if (fabs(frame - rint(frame)) > 0.1 || fabs(frame) > 9e15) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64 ": %s = %s is %.3f frames of %g Hz after the first row, not a whole "
                       "number: is the frame rate right?",
                       dt_csv_path(t->csv), dt_csv_line(t->csv), c->header[c->at[DT_ROLE_TIME]],
                       cell[c->at[DT_ROLE_TIME]], frame, c->rate_hz);
    }
    *out_p = (int64_t)rint(frame);
    return DT_OK;
}

static dt_status check_cells(const table *t, int n)
{
    return n == t->columns.n ? DT_OK
                             : DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %d cells, the header has %d", dt_csv_path(t->csv),
                                       dt_csv_line(t->csv), n, t->columns.n);
}

static dt_status row_of(table *t, char *const *cell, int n, dt_table_row *row)
{
    const dt_columns *c = &t->columns;
    DT_TRY(check_cells(t, n));
    DT_TRY(dt_columns_rate(&t->columns, cell));
    *row = (dt_table_row){.line = dt_csv_line(t->csv)};
    double controlled = 0;
    DT_TRY(scene_of(t, cell, &row->scene));
    DT_TRY(frame_of(t, cell, &row->frame));
    DT_TRY(dt_columns_integer(c, cell, DT_ROLE_ID, &row->id));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_X, &row->x));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_Y, &row->y));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_HEADING, &row->heading));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_SPEED, &row->speed));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_ACCEL, &row->accel));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_LENGTH, &row->length));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_WIDTH, &row->width));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_STOP, &row->stop_distance));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_CONTROLLED, &controlled));
    row->controlled = controlled > 0;
    return DT_OK;
}

/* The header and the first row's frame rate, before there are rows. */
static dt_status begin_file(table *t, char *const **cell_p, int *n_p)
{
    dt_columns *c = &t->columns;
    DT_TRY(dt_columns_find(c, t->csv, t->opt->columns, t->opt->frame_rate_hz));
    const dt_status st = dt_csv_next(t->csv, cell_p, n_p);
    if (st == DT_DONE) {
        return DT_FAIL(DT_EDATA, "%s holds no data: a header and no row", dt_csv_path(t->csv));
    }
    DT_TRY(st);
    DT_TRY(check_cells(t, *n_p));
    DT_TRY(dt_columns_rate(c, *cell_p));
    DT_TRY(dt_rows_stem(dt_csv_path(t->csv), &t->stem));
    dt_columns_tell(c, t->notes);
    char layout[256];
    snprintf(layout, sizeof(layout), "%.200s", c->is_mapped ? t->opt->columns : c->layout.name);
    return dt_rows_file_begin(t->rows, &(dt_rows_file){.path = dt_csv_path(t->csv),
                                                       .layout = layout,
                                                       .rate_hz = c->rate_hz,
                                                       .axis_heading = c->layout.axis_heading,
                                                       .is_heading_fixed = c->layout.is_heading_fixed,
                                                       .is_front = c->layout.is_front,
                                                       .may_repeat = c->layout.is_portal});
}

static dt_status read_rows(table *t)
{
    char *const *cell = NULL;
    int n = 0;
    dt_status st = begin_file(t, &cell, &n);
    while (st == DT_OK) {
        dt_table_row row;
        DT_TRY(row_of(t, cell, n, &row));
        DT_TRY(dt_rows_add(t->rows, &row));
        st = dt_csv_next(t->csv, &cell, &n);
    }
    return st == DT_DONE ? DT_OK : st;
}

static dt_status read_table(table *t, dt_status opened)
{
    const dt_status st = opened == DT_OK ? read_rows(t) : opened;
    if (st == DT_OK) {
        dt_rows_keep_columns(t->rows, &t->columns);
    }
    dt_csv_close(t->csv);
    dt_columns_fini(&t->columns);
    dt_str_fini(&t->stem);
    return st;
}

dt_status dt_table_read(const char *path, const dt_import_options *opt, dt_str *notes, dt_rows *rows)
{
    table t = {.opt = opt, .notes = notes, .rows = rows};
    return read_table(&t, dt_csv_open(path, &t.csv));
}

dt_status dt_table_check(const void *bytes, size_t n_bytes, const char *name, const dt_import_options *opt)
{
    dt_str notes = {0};
    table t = {.opt = opt, .notes = &notes};
    dt_status st = dt_rows_create(NULL, opt, &notes, &t.rows);
    if (st == DT_OK) {
        st = read_table(&t, dt_csv_open_mem(bytes, n_bytes, name, &t.csv));
    }
    dt_rows_destroy(t.rows);
    dt_str_fini(&notes);
    return st;
}
