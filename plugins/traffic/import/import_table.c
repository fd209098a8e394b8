/* SPDX-License-Identifier: Apache-2.0
 *
 * Trajectory tables: columns and cells (columns.h) become rows (rows.h). See import.h for the layouts that are
 * recognised.
 */
#include <config.h>

#include "traffic/import/columns.h"
#include "traffic/text/csv.h"
#include "traffic/import/import.h"
#include "traffic/import/lane_markings.h"
#include "traffic/import/recording_meta.h"
#include "traffic/import/rows.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SCENE_BYTES = 400, PROGRESS_LINES = 1 << 12, PEEK_ROWS = 1 << 14 };
#define DAY_S             86400.0
#define ROUNDING_S        1e-5 /* times that are nearer are one */
#define MIN_DIRECTION_MPS 0.5  /* slower, the direction of a velocity is mostly noise */

typedef struct clock {        /* zeroed: no row yet */
    double last_s, midnights; /* of the row before; days after the first */
    bool has_last;
} clock;

typedef struct table {
    dt_csv *csv;
    const dt_import_options *opt;
    dt_str *notes;
    dt_rows *rows;
    dt_columns columns;
    dt_str stem; /* the scene of a table that names none */
    dt_str site; /* of a table without a column for it */
    dt_users users;
    int64_t n_sizeless, n_comments;
    char kind[64]; /* of the row before, and its road user */
    bool has_kind;
    dt_road_user user;
    dt_ids ids;
    const void *bytes; /* NULL: the file of that name */
    size_t n_bytes;
    dt_recording_meta meta;     /* zeroed: there is none */
    dt_recording_users classes; /* of NN_tracksMeta.csv */
    double x[2];                /* where vehicles were, the least and the greatest */
    int32_t scene;              /* of the last row; -1: none yet */
    double time0;               /* of the first row */
    clock clock;                /* where times are of a day */
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

/* Recordings of NGSIM whose roads are all along y; of the others streets cross. */
static bool is_freeway(const char *location)
{
    return strcasecmp(location, "us-101") == 0 || strcasecmp(location, "i-80") == 0;
}

static dt_status parse_scene(table *t, char *const *cell, int32_t *number_p)
{
    const dt_columns *c = &t->columns;
    const char *name = c->at[DT_ROLE_SCENE] < 0 ? dt_str_text(&t->stem) : cell[c->at[DT_ROLE_SCENE]];
    char of_case[SCENE_BYTES];
    if (c->layout.is_by_folder && c->at[DT_ROLE_SCENE] >= 0) { /* cases are numbered again in every file */
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
    DT_TRY(dt_rows_scene(t->rows, dt_csv_line(t->csv), name, site, c->layout.has_parts, number_p));
    if (c->layout.is_portal && c->at[DT_ROLE_SCENE] >= 0 && !is_freeway(name)) {
        dt_rows_scene_without_axis(t->rows, *number_p);
    }
    return DT_OK;
}

/* hours:minutes:seconds of a day. */
static bool is_clock(const char *text)
{
    const size_t hours = strspn(text, "0123456789"),
                 minutes = strspn(text + hours + (text[hours] == ':'), "0123456789");
    return hours >= 1 && hours <= 2 && text[hours] == ':' && minutes == 2 && text[hours + 3] == ':' &&
           strchr(text + hours + 4, ':') == NULL && atoi(text) < 24;
}

/* Past midnight a clock restarts at 0; with the next vehicle it may go back. */
static double past_midnight(clock *k, const char *text, double time_s)
{
    if (!is_clock(text)) {
        return time_s;
    }
    const double since = time_s + k->midnights * DAY_S - k->last_s;
    if (k->has_last && fabs(since) > DAY_S / 2) {
        k->midnights += since < 0 ? 1 : -1;
    }
    *k = (clock){.last_s = time_s + k->midnights * DAY_S, .midnights = k->midnights, .has_last = true};
    return k->last_s;
}

/* Frame number at the table's rate; a time must lie on the grid that the first row begins. */
static dt_status parse_frame(table *t, char *const *cell, int64_t *out_p)
{
    dt_columns *c = &t->columns;
    if (c->at[DT_ROLE_TIME] < 0) {
        return dt_columns_read_integer(c, cell, DT_ROLE_FRAME, out_p);
    }
    double time = 0;
    DT_TRY(dt_columns_read_time(c, cell, &time));
    time = past_midnight(&t->clock, cell[c->at[DT_ROLE_TIME]], time);
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

/* The speed and acceleration along the vehicle, of those along x and y; and its heading where no column has it. */
static dt_status project_on_heading(table *t, char *const *cell, dt_table_row *row)
{
    dt_columns *c = &t->columns;
    double vx, vy, ax, ay;
    if (c->at[DT_ROLE_VX] < 0 || c->at[DT_ROLE_VY] < 0) {
        return DT_OK;
    }
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_VX, &vx));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_VY, &vy));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_AX, &ax));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_AY, &ay));
    const double v = hypot(vx, vy);
    const bool has_heading = !isnan(row->heading);
    if (!has_heading && v >= MIN_DIRECTION_MPS) {
        row->heading = atan2(vy + 0.0, vx); /* of -0, y turned round, it would be -pi */
    }
    const double along_x = isnan(row->heading) ? 1 : cos(row->heading),
                 along_y = isnan(row->heading) ? 0 : sin(row->heading);
    if (c->at[DT_ROLE_SPEED] < 0) {
        row->speed = has_heading ? vx * along_x + vy * along_y : v;
    }
    if (c->at[DT_ROLE_ACCEL] < 0 && !isnan(row->heading)) {
        row->accel = ax * along_x + ay * along_y;
    }
    return DT_OK;
}

static dt_status parse_id(table *t, char *const *cell, int64_t *out_p)
{
    const dt_columns *c = &t->columns;
    const char *text = cell[c->at[DT_ROLE_ID]];
    if (text[0] == '\0') {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is empty, but id is needed", dt_csv_path(t->csv),
                       dt_csv_line(t->csv), c->header[c->at[DT_ROLE_ID]]);
    }
    return dt_ids_get(&t->ids, text, out_p);
}

/* Separators at the end of a row make empty cells, which are none. */
static dt_status check_cells(const table *t, char *const *cell, int n)
{
    while (n > t->columns.n && cell[n - 1][0] == '\0') {
        n--;
    }
    return n == t->columns.n ? DT_OK
                             : DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %d cells, the header has %d", dt_csv_path(t->csv),
                                       dt_csv_line(t->csv), n, t->columns.n);
}

/* The road user of a row, by its class, or by that of its vehicle in the accompanying table. */
static dt_road_user find_road_user(table *t, char *const *cell)
{
    const dt_columns *c = &t->columns;
    if (t->classes.ids.n > 0) {
        return dt_recording_user(&t->classes, cell[c->at[DT_ROLE_ID]]);
    }
    const char *kind = c->at[DT_ROLE_KIND] < 0 ? "" : cell[c->at[DT_ROLE_KIND]];
    if (!t->has_kind || strcmp(t->kind, kind) != 0) { /* rows of one class follow each other */
        t->user = dt_columns_read_user(c, cell);
        t->has_kind = strlen(kind) < sizeof(t->kind);
        snprintf(t->kind, sizeof(t->kind), "%s", kind);
    }
    return t->user;
}

/* *is_read_p: the row is of a vehicle. Nothing else of another row is looked at. */
static dt_status parse_row(table *t, char *const *cell, int n, dt_table_row *row, bool *is_read_p)
{
    dt_columns *c = &t->columns;
    *is_read_p = cell[0][0] != '#' || n == c->n;
    t->n_comments += !*is_read_p;
    if (!*is_read_p) {
        return DT_OK;
    }
    DT_TRY(check_cells(t, cell, n));
    *is_read_p = !(c->layout.may_lack_vehicle && cell[c->at[DT_ROLE_ID]][0] == '\0');
    if (!*is_read_p) {
        return DT_OK;
    }
    const dt_road_user user = find_road_user(t, cell);
    dt_users_add(&t->users, user, c->at[DT_ROLE_KIND] >= 0 ? cell[c->at[DT_ROLE_KIND]] : "");
    *is_read_p = dt_road_user_is_vehicle(user);
    if (!*is_read_p) {
        return DT_OK;
    }
    DT_TRY(dt_columns_read_rate(&t->columns, cell));
    *row = (dt_table_row){.line = dt_csv_line(t->csv)};
    bool is_controlled = false;
    DT_TRY(parse_scene(t, cell, &row->scene));
    DT_TRY(parse_frame(t, cell, &row->frame));
    DT_TRY(parse_id(t, cell, &row->id));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_X, &row->x));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_Y, &row->y));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_HEADING, &row->heading));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_SPEED, &row->speed));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_ACCEL, &row->accel));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_LENGTH, &row->length));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_WIDTH, &row->width));
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_STOP, &row->stop_distance));
    DT_TRY(dt_columns_read_bool(c, cell, DT_ROLE_CONTROLLED, &is_controlled));
    row->controlled = is_controlled;
    *is_read_p = !(c->layout.is_levelx && row->length == 0 && row->width == 0);
    t->n_sizeless += !*is_read_p;
    row->length = row->length > 0 ? row->length : NAN; /* no vehicle has none: it is not known */
    row->width = row->width > 0 ? row->width : NAN;
    DT_TRY(project_on_heading(t, cell, row));
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
        return DT_CONTEXT(DT_EDATA,
                          "%s: its frame rate is unknown; put the table next to it, or set import.frame_rate_hz",
                          dt_csv_path(t->csv));
    }
    DT_TRY(st);
    if (wanted > 0 && wanted != meta->frame_rate_hz) {
        return DT_FAIL(DT_EINVAL, "%s was recorded at %g Hz, import.frame_rate_hz is %g: nothing is resampled",
                       dt_csv_path(t->csv), meta->frame_rate_hz, wanted);
    }
    c->rate_hz = meta->frame_rate_hz;
    *has_p = true;
    return dt_recording_users_read(dt_csv_path(t->csv), &t->classes);
}

/* ---- frame rate -------------------------------------------------------------------------------------------------- */

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The rate that times make, sorted: that of the least step, as far as times are rounded. 0: there is no step. */
static double find_time_rate(double *time, int n)
{
    double least = INFINITY, span = 0;
    int steps = 0;
    qsort(time, (size_t)n, sizeof(*time), compare_values);
    for (int i = 1; i < n; i++) {
        const double step = time[i] - time[i - 1];
        least = step > ROUNDING_S && step < least ? step : least;
    }
    for (int i = 1; i < n; i++) {
        const double step = time[i] - time[i - 1];
        if (step > ROUNDING_S && step < 1.5 * least) {
            span += step;
            steps++;
        }
    }
    const double rate = steps > 0 ? steps / span : 0;
    return fabs(rate - rint(rate)) < 0.01 * rate && rate > 1 ? rint(rate) : rate;
}

/* Times that are too far apart are in a smaller unit; the corresponding map. */
static dt_status fail_rate(const table *t)
{
    static const double per_s[] = {1e3, 1e6, 1e9};
    const dt_columns *c = &t->columns;
    dt_str map = {0};
    size_t i = 0;
    while (i < 2 && c->rate_hz * per_s[i] < DT_RATE_MIN_HZ * (1 - 1e-9)) {
        i++;
    }
    dt_columns_write_map(c, DT_ROLE_TIME, 1 / per_s[i], &map);
    const bool is_small = c->rate_hz < DT_RATE_MIN_HZ;
    const dt_status st =
        DT_FAIL(DT_EINVAL, "%s: times are %g s apart, which is %g Hz, outside [%g, %g]: are they in seconds? %s%s%s",
                dt_csv_path(t->csv), 1 / c->rate_hz, c->rate_hz, DT_RATE_MIN_HZ, DT_RATE_MAX_HZ,
                is_small ? "If not, import with --set 'import.columns=" : "import.columns converts them",
                is_small ? dt_str_text(&map) : "", is_small ? "'" : "");
    dt_str_fini(&map);
    return st;
}

/* Of a table whose rows have times, and whose rate is not given: its first rows are read again. */
static dt_status find_rate(table *t)
{
    dt_columns peek = {.n = 0};
    clock k = {.has_last = false};
    dt_csv *csv = NULL;
    char *const *cell = NULL;
    int n = 0, n_times = 0;
    dt_columns *c = &t->columns;
    if (c->at[DT_ROLE_TIME] < 0) {
        return DT_FAIL(DT_EINVAL,
                       "%s has frame numbers and no times, so its frame rate is unknown: set import.frame_rate_hz",
                       dt_csv_path(t->csv));
    }
    double *time = dt_alloc_n(PEEK_ROWS, sizeof(*time));
    dt_status st = time == NULL       ? DT_FAIL(DT_ENOMEM, "no memory to read %s", dt_csv_path(t->csv))
                   : t->bytes != NULL ? dt_csv_open_mem(t->bytes, t->n_bytes, dt_csv_path(t->csv), &csv)
                                      : dt_csv_open(dt_csv_path(t->csv), &csv);
    if (st == DT_OK) {
        st = dt_columns_find(&peek, csv, t->opt->columns, 0);
    }
    while (st == DT_OK && n_times < PEEK_ROWS && (st = dt_csv_next(csv, &cell, &n)) == DT_OK) {
        if (n == peek.n) { /* rows that are wrong are named when they are read */
            st = dt_columns_read_time(&peek, cell, &time[n_times]);
            time[n_times] = past_midnight(&k, cell[peek.at[DT_ROLE_TIME]], time[n_times]);
            n_times++;
        }
    }
    st = st == DT_DONE ? DT_OK : st;
    if (st == DT_OK) {
        c->rate_hz = find_time_rate(time, n_times);
    }
    if (st == DT_OK && !(c->rate_hz >= DT_RATE_MIN_HZ && c->rate_hz <= DT_RATE_MAX_HZ)) {
        st = c->rate_hz == 0
                 ? DT_FAIL(DT_EINVAL,
                           "%s: all times are the same, so its frame rate is unknown: set import.frame_rate_hz",
                           dt_csv_path(t->csv))
                 : fail_rate(t);
    }
    dt_csv_close(csv);
    dt_columns_fini(&peek);
    dt_free(time);
    return st;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

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
        return DT_FAIL(DT_EDATA, "%s contains no data: a header and no row", dt_csv_path(t->csv));
    }
    DT_TRY(st);
    DT_TRY(check_cells(t, *cell_p, *n_p));
    DT_TRY(dt_columns_read_rate(c, *cell_p));
    DT_TRY(c->rate_hz == 0 ? find_rate(t) : DT_OK);
    DT_TRY(find_site(t, has_meta ? meta : NULL));
    DT_TRY(find_stem(t));
    DT_TRY(dt_columns_report(c, t->notes));
    char layout[256];
    snprintf(layout, sizeof(layout), "%.200s", c->is_mapped ? t->opt->columns : c->layout.name);
    return dt_rows_file_begin(t->rows, &(dt_rows_file){.path = dt_csv_path(t->csv),
                                                       .layout = layout,
                                                       .rate_hz = c->rate_hz,
                                                       .has_axis = c->layout.has_axis,
                                                       .axis_heading = c->layout.axis_heading,
                                                       .is_heading_fixed = c->layout.is_heading_fixed,
                                                       .is_front = c->layout.is_front,
                                                       .may_repeat = c->layout.is_portal,
                                                       .has_utm = meta->has_utm,
                                                       .utm = {meta->utm[0], meta->utm[1]}});
}

static void extend_bounds(table *t, const dt_table_row *row)
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
    DT_TRY(dt_roads_from_markings(&t->meta, t->x, dt_csv_path(t->csv), &roads));
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

static void report_users(const table *t)
{
    dt_users_report(&t->users, "rows of ", t->notes);
    if (t->n_comments > 0) {
        dt_str_addf(t->notes, "%" PRId64 " lines that begin with '#': left out\n", t->n_comments);
    }
    if (t->n_sizeless > 0) {
        dt_str_addf(t->notes, "%" PRId64 " rows without a size, as people on foot have in inD and rounD: left out\n",
                    t->n_sizeless);
    }
    if (t->columns.layout.is_levelx && !t->columns.layout.is_corner && t->classes.ids.n == 0) {
        dt_str_addf(t->notes,
                    "%s: there is no NN_tracksMeta.csv in its folder, which has the class of each track: all that has "
                    "a size is read as "
                    "a vehicle\n",
                    dt_csv_path(t->csv));
    }
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
        bool is_read = false;
        DT_TRY(parse_row(t, cell, n, &row, &is_read));
        if (is_read) {
            extend_bounds(t, &row);
            DT_TRY(dt_rows_add(t->rows, &row));
        }
        st = dt_csv_next(t->csv, &cell, &n);
        if (dt_csv_line(t->csv) % PROGRESS_LINES == 0) {
            dt_rows_report_progress(t->rows, dt_csv_bytes_read(t->csv));
        }
    }
    if (st == DT_DONE) {
        report_users(t);
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
    dt_ids_fini(&t->ids);
    dt_recording_users_fini(&t->classes);
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
    table t = {.opt = opt, .notes = &notes, .scene = -1, .bytes = bytes, .n_bytes = n_bytes};
    dt_status st = dt_rows_create(NULL, opt, &notes, &t.rows);
    if (st == DT_OK) {
        st = read_table(&t, dt_csv_open_mem(bytes, n_bytes, name, &t.csv));
    }
    dt_rows_destroy(t.rows);
    dt_str_fini(&notes);
    return st;
}
