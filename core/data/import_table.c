/* SPDX-License-Identifier: Apache-2.0
 *
 * Trajectory tables into a store: columns and cells (columns.h), scenes, sort, feed frame by frame.
 * See import.h for the layouts that are recognised.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/columns.h"
#include "data/csv.h"
#include "data/import.h"
#include "data/live.h"
#include "data/sort.h"
#include "data/units.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { VEHICLES_MAX = 1 << 20, SCENES_MAX = 1 << 28 }; /* of a frame, of a table: powers of two */
typedef struct scene {
    char *name, *site;
} scene;

typedef struct table {
    dt_csv *csv;
    const dt_import_options *opt;
    dt_str *notes;
    dt_columns columns;
    double time0; /* of the first row */
    bool has_time0;
    scene *scene;
    int32_t n_scenes, scenes_cap;
    int32_t *bucket; /* hash of scene names */
    size_t n_buckets;
    dt_sort *sort;
    dt_store_writer *writer;
    dt_units units;
    int64_t n_no_length, n_no_heading, n_repeats;
} table;

/* ---- scenes ------------------------------------------------------------------------------------------------------ */

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

static dt_status grow_scenes(table *t)
{
    if (t->scenes_cap == SCENES_MAX) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": more than %d scenes", dt_csv_path(t->csv), dt_csv_line(t->csv),
                       SCENES_MAX);
    }
    int32_t cap = t->scenes_cap == 0 ? 64 : 2 * t->scenes_cap;
    scene *grown = dt_realloc(t->scene, (size_t)cap * sizeof(*grown));
    if (grown != NULL) {
        t->scene = grown;
    }
    int32_t *bucket = dt_alloc_n(2 * (size_t)cap, sizeof(*bucket));
    if (grown == NULL || bucket == NULL) {
        dt_free(bucket);
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId32 " scenes", cap);
    }
    dt_free(t->bucket);
    t->bucket = bucket;
    t->n_buckets = 2 * (size_t)cap;
    t->scenes_cap = cap;
    return DT_OK;
}

static size_t bucket_of(const table *t, const char *name)
{
    uint64_t h = UINT64_C(1469598103934665603); /* FNV-1a, 64 bits */
    for (const char *p = name; *p != '\0'; p++) {
        h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
    }
    size_t b = (size_t)h & (t->n_buckets - 1);
    while (t->bucket[b] != 0 && strcmp(t->scene[t->bucket[b] - 1].name, name) != 0) {
        b = (b + 1) & (t->n_buckets - 1);
    }
    return b;
}

static dt_status scene_number(table *t, const char *name, const char *site, int32_t *out_p)
{
    if (t->n_scenes > 0 && strcmp(t->scene[t->n_scenes - 1].name, name) == 0) {
        *out_p = t->n_scenes - 1; /* as nearly always */
        return DT_OK;
    }
    if (t->n_scenes == t->scenes_cap) {
        DT_TRY(grow_scenes(t));
        for (int32_t i = 0; i < t->n_scenes; i++) {
            t->bucket[bucket_of(t, t->scene[i].name)] = i + 1;
        }
    }
    size_t b = bucket_of(t, name);
    if (t->bucket[b] == 0) {
        char benchmark[128];
        if (site == NULL && t->columns.layout.is_benchmark) {
            site_of_benchmark(name, benchmark, sizeof(benchmark));
            site = benchmark;
        }
        const char *fallback = t->columns.layout.site != NULL ? t->columns.layout.site : "unknown";
        fallback = t->opt->site != NULL && t->opt->site[0] != '\0' ? t->opt->site : fallback;
        scene *s = &t->scene[t->n_scenes];
        s->name = dt_strdup(name);
        s->site = dt_strdup(site == NULL || site[0] == '\0' ? fallback : site);
        if (s->name == NULL || s->site == NULL) {
            dt_free(s->name);
            dt_free(s->site);
            return DT_FAIL(DT_ENOMEM, "no memory for scene %s", name);
        }
        t->bucket[b] = ++t->n_scenes;
    }
    *out_p = t->bucket[b] - 1;
    return DT_OK;
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

static dt_status row_of(table *t, char *const *cell, int n, dt_table_row *row)
{
    const dt_columns *c = &t->columns;
    if (n != c->n) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %d cells, the header has %d", dt_csv_path(t->csv),
                       dt_csv_line(t->csv), n, c->n);
    }
    DT_TRY(dt_columns_rate(&t->columns, cell));
    *row = (dt_table_row){.line = dt_csv_line(t->csv)};
    double controlled = 0;
    const char *name = c->at[DT_ROLE_SCENE] < 0 ? "scene" : cell[c->at[DT_ROLE_SCENE]];
    const bool has_parts = c->layout.has_parts;
    if (name[0] == '\0' || name[0] == '#' || (!has_parts && strchr(name, '#') != NULL) || strlen(name) > 400) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64 ": the scene's name \"%.60s\" is empty, has a '#' or more than 400 bytes",
                       dt_csv_path(t->csv), dt_csv_line(t->csv), name);
    }
    DT_TRY(scene_number(t, name, c->at[DT_ROLE_SITE] < 0 ? NULL : cell[c->at[DT_ROLE_SITE]], &row->scene));
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
    t->n_no_length += isnan(row->length);
    t->n_no_heading += isnan(row->heading);
    return DT_OK;
}

/* The first row, before there is a store: it may say the frame rate. */
static dt_status read_first(table *t, dt_table_row *row)
{
    char *const *cell = NULL;
    int n = 0;
    DT_TRY(dt_columns_find(&t->columns, t->csv, t->opt->columns, t->opt->frame_rate_hz));
    const dt_status st = dt_csv_next(t->csv, &cell, &n);
    if (st == DT_DONE) {
        return DT_FAIL(DT_EDATA, "%s holds no data: a header and no row", dt_csv_path(t->csv));
    }
    return st == DT_OK ? row_of(t, cell, n, row) : st;
}

static dt_status read_others(table *t)
{
    char *const *cell = NULL;
    int n = 0;
    dt_status st;
    while ((st = dt_csv_next(t->csv, &cell, &n)) == DT_OK) {
        dt_table_row row;
        DT_TRY(row_of(t, cell, n, &row));
        DT_TRY(t->sort != NULL ? dt_sort_add(t->sort, &row) : DT_OK); /* NULL: it is only looked at */
    }
    return st == DT_DONE ? DT_OK : st;
}

/* ---- sorted rows into frames ------------------------------------------------------------------------------------- */

typedef struct feed {
    dt_live live;
    dt_vehicle *vehicle;
    uint32_t n, cap;
    int32_t scene;      /* of the open frame, -1 before the first */
    int64_t frame;      /* of the table */
    int64_t begin;      /* frame of the table that is the store scene's frame 0 */
    int64_t last_frame; /* fed to this scene */
    int64_t part;       /* 1, 2, ... of the table's scene */
    bool is_open;
} feed;

static dt_status end_scene(table *t, feed *f)
{
    if (!f->is_open) {
        return DT_OK;
    }
    dt_str name = {0};
    dt_str_add(&name, t->scene[f->scene].name);
    if (f->part > 1) {
        dt_str_addf(&name, "#%" PRId64, f->part);
    }
    dt_status st = dt_str_status(&name);
    if (st == DT_OK) {
        st = dt_store_scene_end(t->writer, dt_str_text(&name), t->scene[f->scene].site);
    }
    dt_str_fini(&name);
    f->is_open = false;
    return st;
}

/* The vehicles gathered so far are a whole frame. */
static dt_status end_frame(table *t, feed *f)
{
    if (f->n == 0) {
        return DT_OK;
    }
    DT_TRY(dt_store_frame(t->writer, f->frame - f->begin, (double)f->frame / t->columns.rate_hz, f->vehicle, f->n));
    f->last_frame = f->frame;
    f->n = 0;
    return DT_OK;
}

static dt_status begin_frame(table *t, feed *f, const dt_table_row *row)
{
    bool is_new_scene = row->scene != f->scene;
    DT_TRY(end_frame(t, f));
    if (is_new_scene || (double)(row->frame - f->last_frame) > DT_SCENE_GAP_S * t->columns.rate_hz) {
        DT_TRY(end_scene(t, f));
        f->part = is_new_scene ? 1 : f->part + 1;
        f->scene = row->scene;
        f->begin = row->frame;
        DT_TRY(dt_store_scene_begin(t->writer));
        f->is_open = true;
        dt_live_clear(&f->live);
    }
    f->frame = row->frame;
    return DT_OK;
}

/* Direction of travel over at least the last metre: causal, steady where a vehicle stands. */
static double heading_of(const table *t, dt_live_vehicle *l, const dt_table_row *row, bool is_new)
{
    if (is_new) {
        l->heading = t->columns.layout.axis_heading;
        l->x = row->x;
        l->y = row->y;
    }
    if (!t->columns.layout.is_heading_fixed && hypot(row->x - l->x, row->y - l->y) >= 1.0) {
        l->heading = atan2(row->y - l->y, row->x - l->x);
        l->x = row->x;
        l->y = row->y;
    }
    return isnan(row->heading) ? l->heading : row->heading;
}

static dt_status check_order(const table *t, const dt_live_vehicle *l, const dt_table_row *row, bool is_new)
{
    if (is_new) {
        return DT_OK;
    }
    if (l->frame == row->frame) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64 ": vehicle %" PRId64 " is in frame %" PRId64 " of scene %s twice (before "
                       "in line %" PRId64 ")",
                       dt_csv_path(t->csv), row->line, row->id, row->frame, t->scene[row->scene].name, l->line);
    }
    if (row->line < l->line && !t->opt->is_unordered) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64 ": time goes backwards: vehicle %" PRId64 " of scene %s is in frame %" PRId64
                       " here and in frame %" PRId64 " before (line %" PRId64 "); a table in no order at all needs "
                       "import.unordered",
                       dt_csv_path(t->csv), l->line, row->id, t->scene[row->scene].name, l->frame, row->frame,
                       row->line);
    }
    return DT_OK;
}

static dt_status add_vehicle(table *t, feed *f, const dt_table_row *row)
{
    if (f->n == f->cap) {
        uint32_t cap = f->cap == 0 ? 256 : 2 * f->cap;
        if (cap > VEHICLES_MAX) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": frame %" PRId64 " has more than %d vehicles", dt_csv_path(t->csv),
                           row->line, row->frame, VEHICLES_MAX);
        }
        dt_vehicle *grown = dt_realloc(f->vehicle, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for a frame of %" PRIu32 " vehicles", cap);
        }
        f->vehicle = grown;
        f->cap = cap;
    }
    dt_live_vehicle *l = NULL;
    bool is_new = false;
    DT_TRY(dt_live_get(&f->live, row->id, row->frame, &l, &is_new));
    DT_TRY(check_order(t, l, row, is_new));
    double heading = heading_of(t, l, row, is_new);
    const double before_s = is_new ? 0 : (double)(row->frame - l->frame) / t->columns.rate_hz;
    dt_units_add(&t->units, row, before_s, l->last_x, l->last_y);
    l->line = row->line;
    l->frame = row->frame;
    l->last_x = row->x;
    l->last_y = row->y;
    double length = isnan(row->length) ? DT_LENGTH_DEFAULT_M : row->length;
    double back = t->columns.layout.is_front ? 0.5 * length : 0.0;
    f->vehicle[f->n++] = (dt_vehicle){.x = row->x - back * cos(heading),
                                      .y = row->y - back * sin(heading),
                                      .heading = heading,
                                      .speed = row->speed,
                                      .accel = row->accel,
                                      .length = length,
                                      .width = row->width,
                                      .stop_distance = row->stop_distance,
                                      .id = row->id,
                                      .controlled = row->controlled != 0};
    return DT_OK;
}

static bool is_repeat(const dt_table_row *a, const dt_table_row *b)
{
    return a->scene == b->scene && a->frame == b->frame && a->id == b->id && a->x == b->x && a->y == b->y &&
           a->speed == b->speed;
}

static dt_status feed_store(table *t)
{
    feed f = {.scene = -1};
    dt_table_row last = {.scene = -1};
    const dt_table_row *row = NULL;
    dt_live_init(&f.live, t->columns.rate_hz);
    dt_status st;
    while ((st = dt_sort_next(t->sort, &row)) == DT_OK) {
        if (t->columns.layout.is_portal && is_repeat(row, &last)) {
            t->n_repeats++;
            continue;
        }
        last = *row;
        if (row->scene != f.scene || row->frame != f.frame) {
            st = begin_frame(t, &f, row);
        }
        if (st == DT_OK) {
            st = add_vehicle(t, &f, row);
        }
        if (st != DT_OK) {
            break;
        }
    }
    if (st == DT_DONE) {
        st = end_frame(t, &f);
    }
    if (st == DT_OK) {
        st = end_scene(t, &f);
    }
    dt_live_fini(&f.live);
    dt_free(f.vehicle);
    return st;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void table_fini(table *t)
{
    dt_csv_close(t->csv);
    dt_sort_destroy(t->sort);
    dt_store_destroy(t->writer);
    for (int32_t i = 0; i < t->n_scenes; i++) {
        dt_free(t->scene[i].name);
        dt_free(t->scene[i].site);
    }
    dt_columns_fini(&t->columns);
    dt_free(t->scene);
    dt_free(t->bucket);
}

static dt_status import_rows(table *t, const char *src, const char *out)
{
    DT_TRY(dt_csv_open(src, &t->csv));
    dt_table_row first;
    DT_TRY(read_first(t, &first));
    dt_columns_tell(&t->columns, t->notes);
    char options[256];
    snprintf(options, sizeof(options), "%.200s", t->columns.is_mapped ? t->opt->columns : t->columns.layout.name);
    const char *slash = strrchr(src, '/');
    dt_store_meta meta = {.frame_rate_hz = t->columns.rate_hz,
                          .radius_m = t->opt->radius_m,
                          .smooth_s = t->opt->smooth_s,
                          .k_max = t->opt->k_max,
                          .source = slash == NULL ? src : slash + 1,
                          .options = options};
    DT_TRY(dt_store_create(out, &meta, &t->writer));
    DT_TRY(dt_sort_create(out, t->opt->memory_bytes > 0 ? t->opt->memory_bytes : (size_t)64 << 20, &t->sort));
    DT_TRY(dt_sort_add(t->sort, &first));
    DT_TRY(read_others(t));
    DT_TRY(feed_store(t));
    DT_TRY(dt_store_commit(t->writer));
    dt_units_warn(&t->units, &t->columns);
    dt_store_counts c;
    dt_store_writer_counts(t->writer, &c);
    if (dt_sort_runs(t->sort) > 0) {
        dt_str_addf(t->notes, "sorted on disk in %" PRId64 " runs\n", dt_sort_runs(t->sort));
    }
    if (t->n_repeats > 0) {
        dt_str_addf(t->notes, "%" PRId64 " rows that repeat another: left out\n", t->n_repeats);
    }
    if (t->n_no_length > 0) {
        dt_str_addf(t->notes, "%" PRId64 " rows without a length: %g m assumed\n", t->n_no_length, DT_LENGTH_DEFAULT_M);
    }
    if (t->n_no_heading > 0) {
        dt_str_addf(t->notes, "%" PRId64 " rows without a heading: %s\n", t->n_no_heading,
                    t->columns.layout.is_heading_fixed ? "along the road" : "direction of travel over the last metre");
    }
    return DT_OK;
}

dt_status dt_table_check(const void *bytes, size_t n_bytes, const char *name, const dt_import_options *opt)
{
    dt_str notes = {0};
    table t = {.opt = opt, .notes = &notes};
    dt_status st = dt_csv_open_mem(bytes, n_bytes, name, &t.csv);
    dt_table_row first;
    if (st == DT_OK) {
        st = read_first(&t, &first);
    }
    if (st == DT_OK) {
        st = read_others(&t);
    }
    table_fini(&t);
    dt_str_fini(&notes);
    return st;
}

dt_status dt_import_table(const char *src, const char *out, const dt_import_options *opt, dt_str *notes)
{
    table t = {.opt = opt, .notes = notes};
    dt_status st = import_rows(&t, src, out);
    table_fini(&t);
    return st;
}
