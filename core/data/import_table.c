/* SPDX-License-Identifier: Apache-2.0
 *
 * Trajectory tables into a store: find the columns, check and convert every cell, sort, feed frame by frame.
 * See import.h for the layouts that are recognised.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/csv.h"
#include "data/import.h"
#include "data/live.h"
#include "data/sort.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum role { SCENE, SITE, FRAME, TIME, ID, X, Y, HEADING, SPEED, ACCEL, LENGTH, WIDTH, STOP, CONTROLLED, N_ROLES };

/* What a role's cells may be, after conversion. Texts have no range. */
static const struct role_spec {
    const char *name;
    double lo, hi;
    bool is_optional; /* an empty cell means missing */
} roles[N_ROLES] = {
    [SCENE] = {"scene", 0, 0, false},
    [SITE] = {"site", 0, 0, false},
    [FRAME] = {"frame", -9e15, 9e15, false},
    [TIME] = {"time", -1e13, 1e13, false},
    [ID] = {"id", -9e15, 9e15, false},
    [X] = {"x", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [Y] = {"y", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [HEADING] = {"heading", -1e3, 1e3, true},
    [SPEED] = {"speed", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [ACCEL] = {"accel", -1e3, 1e3, true},
    [LENGTH] = {"length", 0, DT_SIZE_MAX_M, true},
    [WIDTH] = {"width", 0, DT_SIZE_MAX_M, true},
    [STOP] = {"stop_distance", 0, 1e6, true},
    [CONTROLLED] = {"controlled", 0, 1, true},
};

static const char *const role_names[] = {[SCENE] = "scene",
                                         [SITE] = "site",
                                         [FRAME] = "frame",
                                         [TIME] = "time",
                                         [ID] = "id",
                                         [X] = "x",
                                         [Y] = "y",
                                         [HEADING] = "heading",
                                         [SPEED] = "speed",
                                         [ACCEL] = "accel",
                                         [LENGTH] = "length",
                                         [WIDTH] = "width",
                                         [STOP] = "stop_distance",
                                         [CONTROLLED] = "controlled",
                                         [N_ROLES] = NULL};

typedef struct column {
    const char *name; /* NULL: not there */
    double factor;
} column;

#define FT 0.3048
typedef struct preset {
    const char *name;
    double rate_hz;      /* 0: the options must say it */
    double axis_heading; /* rad, until a vehicle has moved a metre */
    bool is_front;       /* position is the front centre */
    bool is_heading_fixed;
    bool has_parts; /* a scene's name may say "scene#part": parts are never split between folds */
    bool is_portal; /* as data portals export: "1,118,846,980,200" is a number, and rows may come twice */
    const char *site;
    const char *needs[6]; /* the header has all of these, whatever their case; ends with NULL */
    column column[N_ROLES];
} preset;

static const preset presets[] = {
    {.name = "commonroad",
     .rate_hz = 10,
     .needs = {"scenario", "frame", "vehicle_id", "x_m", "heading_rad"},
     .column = {[SCENE] = {"scenario", 1},
                [FRAME] = {"frame", 1},
                [ID] = {"vehicle_id", 1},
                [X] = {"x_m", 1},
                [Y] = {"y_m", 1},
                [HEADING] = {"heading_rad", 1},
                [SPEED] = {"speed_mps", 1},
                [ACCEL] = {"accel_mps2", 1},
                [LENGTH] = {"length_m", 1},
                [WIDTH] = {"width_m", 1}}},
    {.name = "us101_single",
     .rate_hz = 10,
     .axis_heading = M_PI_2,
     .is_heading_fixed = true,
     .site = "US101",
     .needs = {"vehicle_id", "frame", "epoch_ms", "local_x_m", "local_y_m"},
     .column = {[SCENE] = {"vehicle_id", 1},
                [FRAME] = {"frame", 1},
                [ID] = {"vehicle_id", 1},
                [X] = {"local_x_m", 1},
                [Y] = {"local_y_m", 1},
                [SPEED] = {"speed_mps", 1},
                [ACCEL] = {"accel_mps2", 1}}},
    {.name = "ngsim",
     .rate_hz = 10,
     .axis_heading = M_PI_2,
     .is_front = true,
     .is_portal = true,
     .needs = {"Vehicle_ID", "Frame_ID", "Local_X", "Local_Y", "v_Vel"},
     .column = {[SITE] = {"Location", 1},
                [SCENE] = {"Location", 1},
                [FRAME] = {"Frame_ID", 1},
                [TIME] = {"Global_Time", 1e-3},
                [ID] = {"Vehicle_ID", 1},
                [X] = {"Local_X", FT},
                [Y] = {"Local_Y", FT},
                [SPEED] = {"v_Vel", FT},
                [ACCEL] = {"v_Acc", FT},
                [LENGTH] = {"v_Length", FT},
                [WIDTH] = {"v_Width", FT}}},
    {.name = "dtrain",
     .has_parts = true,
     .needs = {"id", "x", "y", "speed"},
     .column = {[SCENE] = {"scene", 1},
                [SITE] = {"site", 1},
                [FRAME] = {"frame", 1},
                [TIME] = {"time", 1},
                [ID] = {"id", 1},
                [X] = {"x", 1},
                [Y] = {"y", 1},
                [HEADING] = {"heading", 1},
                [SPEED] = {"speed", 1},
                [ACCEL] = {"accel", 1},
                [LENGTH] = {"length", 1},
                [WIDTH] = {"width", 1},
                [STOP] = {"stop_distance", 1},
                [CONTROLLED] = {"controlled", 1}}},
};
enum { VEHICLES_MAX = 1 << 20, SCENES_MAX = 1 << 28 }; /* of a frame, of a table: powers of two */
enum { N_PRESETS = sizeof(presets) / sizeof(presets[0]) };

typedef struct scene {
    char *name, *site;
} scene;

typedef struct table {
    dt_csv *csv;
    const dt_import_options *opt;
    dt_str *report;
    const preset *preset; /* NULL: the user's own map */
    double rate_hz, axis_heading;
    bool is_front, is_heading_fixed;
    char *map_text; /* copy of the user's map, cut into names */
    column column[N_ROLES];
    int at[N_ROLES]; /* cell of the role, -1 when the table lacks it */
    int n_columns;
    char **header; /* [n_columns] */
    double time0;  /* of the first row */
    bool has_time0;
    scene *scene;
    int32_t n_scenes, scenes_cap;
    int32_t *bucket; /* hash of scene names */
    size_t n_buckets;
    dt_sort *sort;
    dt_store_writer *writer;
    int64_t n_rows, n_no_length, n_no_heading, n_repeats;
} table;

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static int find_column(const table *t, const char *name)
{
    for (int i = 0; i < t->n_columns; i++) {
        if (strcasecmp(t->header[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static dt_status read_header(table *t)
{
    char *const *cell = NULL;
    dt_status st = dt_csv_next(t->csv, &cell, &t->n_columns);
    if (st == DT_DONE) {
        return DT_FAIL(DT_EDATA, "%s holds no data: not even a header line", dt_csv_path(t->csv));
    }
    DT_TRY(st);
    t->header = dt_alloc_n((size_t)t->n_columns + 1, sizeof(*t->header));
    if (t->header != NULL) {
        for (int i = 0; i < t->n_columns; i++) {
            t->header[i] = dt_strdup(cell[i]);
            if (t->header[i] == NULL) {
                return DT_FAIL(DT_ENOMEM, "no memory for the header of %s", dt_csv_path(t->csv));
            }
        }
    }
    return t->header == NULL ? DT_FAIL(DT_ENOMEM, "no memory for the header of %s", dt_csv_path(t->csv)) : DT_OK;
}

/* "role=column[*factor],..." into t->column; the names point into t->map_text. */
static dt_status parse_map(table *t)
{
    t->map_text = dt_strdup(t->opt->columns);
    if (t->map_text == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the column map");
    }
    char *rest = t->map_text, *item;
    while ((item = strsep(&rest, ",")) != NULL) {
        item += strspn(item, " ");
        char *name = strchr(item, '='), *factor = name == NULL ? NULL : strchr(name, '*');
        if (name == NULL || name[1] == '\0') {
            return DT_FAIL(DT_EINVAL, "column map: \"%s\" is not role=column or role=column*factor", item);
        }
        *name++ = '\0';
        double f = 1;
        if (factor != NULL) {
            *factor++ = '\0';
            if (!dt_parse_f64(factor, &f) || f == 0) {
                return DT_FAIL(DT_EINVAL, "column map: the factor \"%s\" of %s is not a number other than 0", factor,
                               item);
            }
        }
        int r = 0;
        while (r < N_ROLES && strcmp(item, roles[r].name) != 0) {
            r++;
        }
        if (r == N_ROLES) {
            const char *near = dt_did_you_mean(item, role_names);
            return DT_FAIL(DT_EINVAL, "column map: there is no role \"%s\"%s%s%s", item,
                           near == NULL ? "" : ", did you mean \"", near == NULL ? "" : near,
                           near == NULL ? "" : "\"?");
        }
        t->column[r] = (column){name, f};
    }
    return DT_OK;
}

static dt_status recognise(table *t)
{
    for (int p = 0; p < N_PRESETS; p++) {
        int i = 0;
        while (i < 6 && presets[p].needs[i] != NULL && find_column(t, presets[p].needs[i]) >= 0) {
            i++;
        }
        if (i == 6 || presets[p].needs[i] == NULL) {
            t->preset = &presets[p];
            memcpy(t->column, presets[p].column, sizeof(t->column));
            t->axis_heading = presets[p].axis_heading;
            t->is_front = presets[p].is_front;
            t->is_heading_fixed = presets[p].is_heading_fixed;
            return DT_OK;
        }
    }
    if (find_column(t, "id") >= 0 && find_column(t, "x") >= 0 && find_column(t, "y") >= 0) {
        return DT_FAIL(DT_EDATA, "%s:1: no column for speed: with id, x, y and frame or time it is needed",
                       dt_csv_path(t->csv));
    }
    dt_str names = {0};
    for (int i = 0; i < t->n_columns; i++) {
        dt_str_addf(&names, "%s%s", i == 0 ? "" : ",", t->header[i]);
    }
    dt_status st = DT_FAIL(DT_EDATA,
                           "%s:1: unknown columns \"%.400s\": say which is which with a column map, e.g. "
                           "id=car,frame=f,x=X*0.3048,y=Y*0.3048,speed=V",
                           dt_csv_path(t->csv), dt_str_text(&names));
    dt_str_fini(&names);
    return st;
}

static dt_status place_columns(table *t)
{
    for (int r = 0; r < N_ROLES; r++) {
        t->at[r] = t->column[r].name == NULL ? -1 : find_column(t, t->column[r].name);
        if (t->at[r] < 0 && t->column[r].name != NULL && t->preset == NULL) {
            const char *near = dt_did_you_mean(t->column[r].name, (const char *const *)t->header);
            return DT_FAIL(DT_EDATA, "%s:1: there is no column \"%s\" for %s%s%s%s", dt_csv_path(t->csv),
                           t->column[r].name, roles[r].name, near == NULL ? "" : ", did you mean \"",
                           near == NULL ? "" : near, near == NULL ? "" : "\"?");
        }
    }
    static const int needed[] = {ID, X, Y, SPEED};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (t->at[needed[i]] < 0) {
            const char *name = t->column[needed[i]].name;
            return DT_FAIL(DT_EDATA, "%s:1: no column for %s%s%s%s", dt_csv_path(t->csv), roles[needed[i]].name,
                           name == NULL ? "" : " (\"", name == NULL ? "" : name, name == NULL ? "" : "\")");
        }
    }
    if (t->at[FRAME] < 0 && t->at[TIME] < 0) {
        return DT_FAIL(DT_EDATA, "%s:1: no column for frame or time", dt_csv_path(t->csv));
    }
    t->rate_hz = t->opt->frame_rate_hz > 0 ? t->opt->frame_rate_hz : t->preset == NULL ? 0 : t->preset->rate_hz;
    if (!(t->rate_hz >= 0.1 && t->rate_hz <= 1000)) {
        return DT_FAIL(DT_EINVAL,
                       "%s: the frame rate is %g Hz, say it with import.frame_rate_hz, a value in [0.1, 1000]",
                       dt_csv_path(t->csv), t->rate_hz);
    }
    return DT_OK;
}

static dt_status find_columns(table *t)
{
    DT_TRY(read_header(t));
    bool has_map = t->opt->columns != NULL && t->opt->columns[0] != '\0';
    DT_TRY(has_map ? parse_map(t) : recognise(t));
    DT_TRY(place_columns(t));
    dt_str_addf(t->report, "columns: %s, %g Hz\n", t->preset == NULL ? "as mapped" : t->preset->name, t->rate_hz);
    for (int i = 0, n = 0; i < t->n_columns; i++) {
        int r = 0;
        while (r < N_ROLES && t->at[r] != i) {
            r++;
        }
        if (r == N_ROLES) {
            dt_str_addf(t->report, "%s%s", n++ == 0 ? "columns not used: " : ", ", t->header[i]);
        }
        if (i + 1 == t->n_columns && n > 0) {
            dt_str_add(t->report, "\n");
        }
    }
    return DT_OK;
}

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
        if (site == NULL && t->preset == &presets[0]) {
            site_of_benchmark(name, benchmark, sizeof(benchmark));
            site = benchmark;
        }
        const char *fallback = t->opt->site != NULL && t->opt->site[0] != '\0' ? t->opt->site
                               : t->preset != NULL && t->preset->site != NULL  ? t->preset->site
                                                                               : "unknown";
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

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Commas out of "-1,118,846.25": one to three digits, then groups of three. Other commas stay and are refused. */
static void drop_thousands(char *text)
{
    const char *first = text + (*text == '-' || *text == '+');
    size_t group = strspn(first, "0123456789");
    if (group < 1 || group > 3 || first[group] != ',') {
        return;
    }
    const char *p = first + group;
    while (*p == ',' && strspn(p + 1, "0123456789") == 3) {
        p += 4;
    }
    if (*p != '\0' && *p != '.') {
        return;
    }
    char *to = text;
    for (p = text; *p != '\0'; p++) {
        *to = *p;
        to += *p != ',';
    }
    *to = '\0';
}

/* A number of a role in SI units; NAN for an empty cell where that is allowed or a column that is not there. */
static dt_status number_of(const table *t, char *const *cell, int role, double *out_p)
{
    if (t->at[role] < 0) {
        *out_p = NAN;
        return DT_OK;
    }
    char *text = cell[t->at[role]];
    const char *name = t->header[t->at[role]];
    double v = 0;
    if (t->preset != NULL && t->preset->is_portal) {
        drop_thousands(text);
    }
    if (text[0] == '\0') {
        if (!roles[role].is_optional) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is empty, but %s is needed", dt_csv_path(t->csv),
                           dt_csv_line(t->csv), name, roles[role].name);
        }
        *out_p = NAN;
        return DT_OK;
    }
    if (!dt_parse_f64(text, &v)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%.60s\", not a finite number", dt_csv_path(t->csv),
                       dt_csv_line(t->csv), name, text);
    }
    v *= t->column[role].factor;
    if (!(v >= roles[role].lo && v <= roles[role].hi)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s = %s is %g, outside [%g, %g] of %s", dt_csv_path(t->csv),
                       dt_csv_line(t->csv), name, text, v, roles[role].lo, roles[role].hi, roles[role].name);
    }
    *out_p = v;
    return DT_OK;
}

static dt_status integer_of(const table *t, char *const *cell, int role, int64_t *out_p)
{
    double v = 0;
    DT_TRY(number_of(t, cell, role, &v));
    if (v != floor(v)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%.60s\", not an integer", dt_csv_path(t->csv),
                       dt_csv_line(t->csv), t->header[t->at[role]], cell[t->at[role]]);
    }
    *out_p = (int64_t)v;
    return DT_OK;
}

/* Frame number at the table's rate; a time must lie on the grid that the first row begins. */
static dt_status frame_of(table *t, char *const *cell, int64_t *out_p)
{
    if (t->at[TIME] < 0) {
        return integer_of(t, cell, FRAME, out_p);
    }
    double time = 0;
    DT_TRY(number_of(t, cell, TIME, &time));
    if (!t->has_time0) {
        t->time0 = time;
        t->has_time0 = true;
    }
    double frame = (time - t->time0) * t->rate_hz;
    if (fabs(frame - rint(frame)) > 0.1 || fabs(frame) > 9e15) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64 ": %s = %s is %.3f frames of %g Hz after the first row, not a whole "
                       "number: is the frame rate right?",
                       dt_csv_path(t->csv), dt_csv_line(t->csv), t->header[t->at[TIME]], cell[t->at[TIME]], frame,
                       t->rate_hz);
    }
    *out_p = (int64_t)rint(frame);
    return DT_OK;
}

static dt_status row_of(table *t, char *const *cell, int n, dt_table_row *row)
{
    if (n != t->n_columns) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %d cells, the header has %d", dt_csv_path(t->csv),
                       dt_csv_line(t->csv), n, t->n_columns);
    }
    *row = (dt_table_row){.line = dt_csv_line(t->csv)};
    double controlled = 0;
    const char *name = t->at[SCENE] < 0 ? "scene" : cell[t->at[SCENE]];
    const bool has_parts = t->preset != NULL && t->preset->has_parts;
    if (name[0] == '\0' || name[0] == '#' || (!has_parts && strchr(name, '#') != NULL) || strlen(name) > 400) {
        return DT_FAIL(DT_EDATA,
                       "%s:%" PRId64 ": the scene's name \"%.60s\" is empty, has a '#' or more than 400 bytes",
                       dt_csv_path(t->csv), dt_csv_line(t->csv), name);
    }
    DT_TRY(scene_number(t, name, t->at[SITE] < 0 ? NULL : cell[t->at[SITE]], &row->scene));
    DT_TRY(frame_of(t, cell, &row->frame));
    DT_TRY(integer_of(t, cell, ID, &row->id));
    DT_TRY(number_of(t, cell, X, &row->x));
    DT_TRY(number_of(t, cell, Y, &row->y));
    DT_TRY(number_of(t, cell, HEADING, &row->heading));
    DT_TRY(number_of(t, cell, SPEED, &row->speed));
    DT_TRY(number_of(t, cell, ACCEL, &row->accel));
    DT_TRY(number_of(t, cell, LENGTH, &row->length));
    DT_TRY(number_of(t, cell, WIDTH, &row->width));
    DT_TRY(number_of(t, cell, STOP, &row->stop_distance));
    DT_TRY(number_of(t, cell, CONTROLLED, &controlled));
    row->controlled = controlled > 0;
    t->n_no_length += isnan(row->length);
    t->n_no_heading += isnan(row->heading);
    return DT_OK;
}

static dt_status read_rows(table *t)
{
    char *const *cell = NULL;
    int n = 0;
    dt_status st;
    while ((st = dt_csv_next(t->csv, &cell, &n)) == DT_OK) {
        dt_table_row row;
        DT_TRY(row_of(t, cell, n, &row));
        DT_TRY(t->sort != NULL ? dt_sort_add(t->sort, &row) : DT_OK); /* NULL: it is only looked at */
        t->n_rows++;
    }
    if (st == DT_DONE && t->n_rows == 0) {
        return DT_FAIL(DT_EDATA, "%s holds no data: a header and no row", dt_csv_path(t->csv));
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
    DT_TRY(dt_store_frame(t->writer, f->frame - f->begin, (double)f->frame / t->rate_hz, f->vehicle, f->n));
    f->last_frame = f->frame;
    f->n = 0;
    return DT_OK;
}

static dt_status begin_frame(table *t, feed *f, const dt_table_row *row)
{
    bool is_new_scene = row->scene != f->scene;
    DT_TRY(end_frame(t, f));
    if (is_new_scene || (double)(row->frame - f->last_frame) > DT_SCENE_GAP_S * t->rate_hz) {
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
        l->heading = t->axis_heading;
        l->x = row->x;
        l->y = row->y;
    }
    if (!t->is_heading_fixed && hypot(row->x - l->x, row->y - l->y) >= 1.0) {
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
    l->line = row->line;
    l->frame = row->frame;
    double length = isnan(row->length) ? DT_LENGTH_DEFAULT_M : row->length;
    double back = t->is_front ? 0.5 * length : 0.0;
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
    dt_live_init(&f.live, t->rate_hz);
    dt_status st;
    while ((st = dt_sort_next(t->sort, &row)) == DT_OK) {
        if (t->preset != NULL && t->preset->is_portal && is_repeat(row, &last)) {
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
    if (t->header != NULL) {
        for (int i = 0; i < t->n_columns; i++) {
            dt_free(t->header[i]);
        }
    }
    for (int32_t i = 0; i < t->n_scenes; i++) {
        dt_free(t->scene[i].name);
        dt_free(t->scene[i].site);
    }
    dt_free(t->header);
    dt_free(t->scene);
    dt_free(t->bucket);
    dt_free(t->map_text);
}

static dt_status import_rows(table *t, const char *src, const char *out)
{
    DT_TRY(dt_csv_open(src, &t->csv));
    DT_TRY(find_columns(t));
    char options[256];
    snprintf(options, sizeof(options), "%.200s", t->preset == NULL ? t->opt->columns : t->preset->name);
    const char *slash = strrchr(src, '/');
    dt_store_meta meta = {.frame_rate_hz = t->rate_hz,
                          .radius_m = t->opt->radius_m,
                          .smooth_s = t->opt->smooth_s,
                          .k_max = t->opt->k_max,
                          .source = slash == NULL ? src : slash + 1,
                          .options = options};
    DT_TRY(dt_store_create(out, &meta, &t->writer));
    DT_TRY(dt_sort_create(out, t->opt->memory_bytes > 0 ? t->opt->memory_bytes : (size_t)64 << 20, &t->sort));
    DT_TRY(read_rows(t));
    DT_TRY(feed_store(t));
    DT_TRY(dt_store_commit(t->writer));
    dt_store_counts c;
    dt_store_writer_counts(t->writer, &c);
    if (dt_sort_runs(t->sort) > 0) {
        dt_str_addf(t->report, "sorted on disk in %" PRId64 " runs\n", dt_sort_runs(t->sort));
    }
    if (t->n_repeats > 0) {
        dt_str_addf(t->report, "%" PRId64 " rows that repeat another: left out\n", t->n_repeats);
    }
    if (t->n_no_length > 0) {
        dt_str_addf(t->report, "%" PRId64 " rows without a length: %g m assumed\n", t->n_no_length,
                    DT_LENGTH_DEFAULT_M);
    }
    if (t->n_no_heading > 0) {
        dt_str_addf(t->report, "%" PRId64 " rows without a heading: %s\n", t->n_no_heading,
                    t->is_heading_fixed ? "along the road" : "direction of travel over the last metre");
    }
    return DT_OK;
}

dt_status dt_table_check(const void *bytes, size_t n_bytes, const char *name, const dt_import_options *opt)
{
    dt_str report = {0};
    table t = {.opt = opt, .report = &report};
    dt_status st = dt_csv_open_mem(bytes, n_bytes, name, &t.csv);
    if (st == DT_OK) {
        st = find_columns(&t);
    }
    if (st == DT_OK) {
        st = read_rows(&t);
    }
    table_fini(&t);
    dt_str_fini(&report);
    return st;
}

dt_status dt_import_table(const char *src, const char *out, const dt_import_options *opt, dt_str *report)
{
    table t = {.opt = opt, .report = report};
    dt_status st = import_rows(&t, src, out);
    table_fini(&t);
    return st;
}
