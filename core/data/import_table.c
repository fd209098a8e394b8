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
#include "data/lane_markings.h"
#include "data/recording_meta.h"
#include "data/rows.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SCENE_BYTES = 400, TELL_LINES = 1 << 12 };
#define TELLING_MPS 0.5 /* slower, the direction of a velocity is mostly noise */

typedef struct table {
    dt_csv *csv;
    const dt_import_options *opt;
    dt_str *notes;
    dt_rows *rows;
    dt_columns columns;
    dt_str stem; /* the scene of a table that names none */
    dt_str site; /* of a table without a column for it */
    int64_t n_persons;
    dt_recording_meta meta; /* zeroed: there is none */
    double x[2];            /* where vehicles were, the least and the greatest */
    int32_t scene;          /* of the last row; -1: none yet */
    double time0;           /* of the first row */
    bool has_time0;
} table;

/* Where a table comes from that has no column for it. */
static dt_status find_site(table *t, const dt_recording_meta *meta)
{
    const dt_table_layout *l = &t->columns.layout;
    const char *site = t->opt->site != NULL && t->opt->site[0] != '\0' ? t->opt->site : NULL;
    const char *path = dt_csv_path(t->csv), *slash = strrchr(path, '/');
    if (meta != NULL) {
        dt_str_addf(&t->site, "%s-%" PRId64, site != NULL ? site : "location", meta->location);
    } else if (site != NULL) {
        dt_str_add(&t->site, site);
    } else if (l->is_by_folder && slash != NULL && slash > path) {
        const char *from = memrchr(path, '/', (size_t)(slash - path));
        from = from == NULL ? path : from + 1;
        dt_str_add_n(&t->site, from, (size_t)(slash - from));
    } else {
        dt_str_add(&t->site, l->site != NULL ? l->site : "unknown");
    }
    return dt_str_status(&t->site);
}

/* What the scene of a table is called that names none: its file; of recordings whose files have the same names at every
 * site "site/file". */
static dt_status find_stem(table *t)
{
    const dt_table_layout *l = &t->columns.layout;
    if (l->is_levelx || l->is_by_folder) {
        for (const char *p = dt_str_text(&t->site); *p != '\0'; p++) {
            dt_str_add_n(&t->stem, *p == '#' ? "_" : p, 1);
        }
        dt_str_add(&t->stem, "/");
    }
    return dt_rows_stem(dt_csv_path(t->csv), &t->stem);
}

static dt_status scene_of(table *t, char *const *cell, int32_t *number_p)
{
    const dt_columns *c = &t->columns;
    const char *name = c->at[DT_ROLE_SCENE] < 0 ? dt_str_text(&t->stem) : cell[c->at[DT_ROLE_SCENE]];
    char of_case[SCENE_BYTES];
    if (c->layout.is_by_folder && c->at[DT_ROLE_SCENE] >= 0) { /* cases are numbered anew in every file */
        const int bytes = snprintf(of_case, sizeof(of_case), "%s/%s", dt_str_text(&t->stem), name);
        if (bytes >= (int)sizeof(of_case)) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s \"%.60s\" makes a name of a scene of more than %d bytes",
                           dt_csv_path(t->csv), dt_csv_line(t->csv), c->header[c->at[DT_ROLE_SCENE]], name,
                           SCENE_BYTES);
        }
        name = of_case;
    }
    const char *site = c->at[DT_ROLE_SITE] < 0 ? "" : cell[c->at[DT_ROLE_SITE]];
    char benchmark[128];
    if (c->at[DT_ROLE_SITE] < 0 && c->layout.is_benchmark) {
        dt_rows_site_of_benchmark(name, benchmark, sizeof(benchmark));
        site = benchmark;
    }
    if (site[0] == '\0') {
        site = dt_str_text(&t->site);
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

/* The speed and acceleration along the vehicle, of those along x and y; and its heading where no column says it. */
static dt_status project(const table *t, char *const *cell, dt_table_row *row)
{
    const dt_columns *c = &t->columns;
    double vx, vy, ax, ay;
    if (c->at[DT_ROLE_VX] < 0 || c->at[DT_ROLE_VY] < 0) {
        return DT_OK;
    }
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_VX, &vx));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_VY, &vy));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_AX, &ax));
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_AY, &ay));
    const double v = hypot(vx, vy);
    const bool is_told = !isnan(row->heading);
    if (!is_told && v >= TELLING_MPS) {
        row->heading = atan2(vy + 0.0, vx); /* of -0, y turned round, it would be -pi */
    }
    const double along_x = isnan(row->heading) ? 1 : cos(row->heading),
                 along_y = isnan(row->heading) ? 0 : sin(row->heading);
    if (c->at[DT_ROLE_SPEED] < 0) {
        row->speed = is_told ? vx * along_x + vy * along_y : v;
    }
    if (c->at[DT_ROLE_ACCEL] < 0 && !isnan(row->heading)) {
        row->accel = ax * along_x + ay * along_y;
    }
    return DT_OK;
}

static dt_status check_cells(const table *t, int n)
{
    return n == t->columns.n ? DT_OK
                             : DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %d cells, the header has %d", dt_csv_path(t->csv),
                                       dt_csv_line(t->csv), n, t->columns.n);
}

/* *is_person_p: the row is of nobody who drives, and is not read. */
static dt_status row_of(table *t, char *const *cell, int n, dt_table_row *row, bool *is_person_p)
{
    const dt_columns *c = &t->columns;
    DT_TRY(check_cells(t, n));
    *is_person_p = dt_columns_is_person(c, cell);
    if (*is_person_p) {
        return DT_OK;
    }
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
    *is_person_p = c->layout.is_levelx && row->length == 0 && row->width == 0;
    DT_TRY(project(t, cell, row));
    if (c->layout.is_corner && !isnan(row->length) && !isnan(row->width)) {
        row->x += 0.5 * row->length;
        row->y -= 0.5 * row->width;
    }
    return DT_OK;
}

static dt_status read_meta(table *t, dt_recording_meta *meta, bool *has_p)
{
    dt_columns *c = &t->columns;
    const double wanted = t->opt->frame_rate_hz;
    if (!c->layout.is_levelx) {
        return DT_OK;
    }
    const dt_status st = dt_recording_meta_read(dt_csv_path(t->csv), meta);
    if (st == DT_ENOTFOUND && wanted > 0) {
        dt_error_clear();
        return DT_OK;
    }
    if (st == DT_ENOTFOUND) {
        return DT_CONTEXT(DT_EDATA, "%s: who says its frame rate? Put the table beside it, or say import.frame_rate_hz",
                          dt_csv_path(t->csv));
    }
    DT_TRY(st);
    if (wanted > 0 && wanted != meta->frame_rate_hz) {
        return DT_FAIL(DT_EINVAL, "%s was recorded at %g Hz, import.frame_rate_hz is %g: nothing is resampled",
                       dt_csv_path(t->csv), meta->frame_rate_hz, wanted);
    }
    c->rate_hz = meta->frame_rate_hz;
    *has_p = true;
    return DT_OK;
}

/* The header and the first row's frame rate, before there are rows. */
static dt_status begin_file(table *t, char *const **cell_p, int *n_p)
{
    dt_columns *c = &t->columns;
    const dt_recording_meta *meta = &t->meta;
    bool has_meta = false;
    DT_TRY(dt_columns_find(c, t->csv, t->opt->columns, t->opt->frame_rate_hz));
    DT_TRY(read_meta(t, &t->meta, &has_meta));
    const dt_status st = dt_csv_next(t->csv, cell_p, n_p);
    if (st == DT_DONE) {
        return DT_FAIL(DT_EDATA, "%s holds no data: a header and no row", dt_csv_path(t->csv));
    }
    DT_TRY(st);
    DT_TRY(check_cells(t, *n_p));
    DT_TRY(dt_columns_rate(c, *cell_p));
    DT_TRY(find_site(t, has_meta ? meta : NULL));
    DT_TRY(find_stem(t));
    DT_TRY(dt_columns_tell(c, t->notes));
    char layout[256];
    snprintf(layout, sizeof(layout), "%.200s", c->is_mapped ? t->opt->columns : c->layout.name);
    return dt_rows_file_begin(t->rows, &(dt_rows_file){.path = dt_csv_path(t->csv),
                                                       .layout = layout,
                                                       .rate_hz = c->rate_hz,
                                                       .axis_heading = c->layout.axis_heading,
                                                       .is_heading_fixed = c->layout.is_heading_fixed,
                                                       .is_front = c->layout.is_front,
                                                       .may_repeat = c->layout.is_portal,
                                                       .has_utm = meta->has_utm,
                                                       .utm = {meta->utm[0], meta->utm[1]}});
}

static void note_place(table *t, const dt_table_row *row)
{
    const double reach = isnan(row->length) ? 0 : 0.5 * row->length;
    t->x[0] = t->scene < 0 ? row->x - reach : fmin(t->x[0], row->x - reach);
    t->x[1] = t->scene < 0 ? row->x + reach : fmax(t->x[1], row->x + reach);
    t->scene = row->scene;
}

/* The lanes between the lines that highD names become the scene's map, unless the options name one. */
static dt_status keep_markings(table *t)
{
    const bool has_map = t->opt->map != NULL && t->opt->map[0] != '\0';
    dt_roads roads = {.n_lanes = 0};
    int32_t number = -1;
    if (t->scene < 0 || has_map || !t->columns.layout.is_corner) {
        return DT_OK;
    }
    DT_TRY(dt_roads_of_markings(&t->meta, t->x, dt_csv_path(t->csv), &roads));
    if (roads.n_lanes == 0) {
        return DT_OK;
    }
    dt_str name = {0};
    dt_status st = dt_rows_stem(dt_csv_path(t->csv), &name);
    if (st == DT_OK) {
        st = dt_rows_map(t->rows, dt_str_text(&name), &roads, &number);
    }
    if (st == DT_OK) {
        dt_rows_scene_map(t->rows, t->scene, number);
        dt_str_addf(t->notes, "%" PRId64 " lanes between lane markings: map %s\n", roads.n_lanes, dt_str_text(&name));
    }
    dt_roads_fini(&roads);
    dt_str_fini(&name);
    return st;
}

static dt_status read_rows(table *t)
{
    char *const *cell = NULL;
    int n = 0;
    dt_status st = begin_file(t, &cell, &n);
    if (st == DT_OK && t->opt->jobs > 1) {
        dt_csv_read_ahead(t->csv);
    }
    while (st == DT_OK) {
        dt_table_row row;
        bool is_person = false;
        DT_TRY(row_of(t, cell, n, &row, &is_person));
        if (is_person) {
            t->n_persons++;
        } else {
            note_place(t, &row);
            DT_TRY(dt_rows_add(t->rows, &row));
        }
        st = dt_csv_next(t->csv, &cell, &n);
        if (dt_csv_line(t->csv) % TELL_LINES == 0) {
            dt_rows_progress(t->rows, dt_csv_taken(t->csv));
        }
    }
    if (st == DT_DONE && t->n_persons > 0) {
        dt_str_addf(t->notes, "%" PRId64 " rows of people on foot and on bicycles: left out\n", t->n_persons);
    }
    return st == DT_DONE ? keep_markings(t) : st;
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
    dt_str_fini(&t->site);
    return st;
}

dt_status dt_table_read(const char *path, const dt_import_options *opt, dt_str *notes, dt_rows *rows)
{
    table t = {.opt = opt, .notes = notes, .rows = rows, .scene = -1};
    return read_table(&t, dt_csv_open(path, &t.csv));
}

dt_status dt_table_check(const void *bytes, size_t n_bytes, const char *name, const dt_import_options *opt)
{
    dt_str notes = {0};
    table t = {.opt = opt, .notes = &notes, .scene = -1};
    dt_status st = dt_rows_create(NULL, opt, &notes, &t.rows);
    if (st == DT_OK) {
        st = read_table(&t, dt_csv_open_mem(bytes, n_bytes, name, &t.csv));
    }
    dt_rows_destroy(t.rows);
    dt_str_fini(&notes);
    return st;
}
