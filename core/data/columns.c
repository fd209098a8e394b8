/* SPDX-License-Identifier: Apache-2.0
 *
 * See columns.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/columns.h"
#include "data/features.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

/* What a role's cells may be, after conversion. Texts have no range. */
static const struct role_spec {
    const char *name;
    double lo, hi;
    bool is_optional; /* an empty cell means missing */
} roles[DT_N_ROLES] = {
    [DT_ROLE_SCENE] = {"scene", 0, 0, false},
    [DT_ROLE_SITE] = {"site", 0, 0, false},
    [DT_ROLE_FRAME] = {"frame", -9e15, 9e15, false},
    [DT_ROLE_TIME] = {"time", -1e13, 1e13, false},
    [DT_ROLE_ID] = {"id", -9e15, 9e15, false},
    [DT_ROLE_X] = {"x", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [DT_ROLE_Y] = {"y", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [DT_ROLE_HEADING] = {"heading", -1e3, 1e3, true},
    [DT_ROLE_SPEED] = {"speed", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [DT_ROLE_ACCEL] = {"accel", -1e3, 1e3, true},
    [DT_ROLE_LENGTH] = {"length", 0, DT_SIZE_MAX_M, true},
    [DT_ROLE_WIDTH] = {"width", 0, DT_SIZE_MAX_M, true},
    [DT_ROLE_STOP] = {"stop_distance", 0, 1e6, true},
    [DT_ROLE_CONTROLLED] = {"controlled", 0, 1, true},
    [DT_ROLE_RATE] = {"frame_rate_hz", DT_RATE_MIN_HZ, DT_RATE_MAX_HZ, false},
    [DT_ROLE_VX] = {"vx", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [DT_ROLE_VY] = {"vy", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [DT_ROLE_AX] = {"ax", -1e3, 1e3, true},
    [DT_ROLE_AY] = {"ay", -1e3, 1e3, true},
    [DT_ROLE_KIND] = {"kind", 0, 0, false},
};

static const char *const role_names[] = {[DT_ROLE_SCENE] = "scene",
                                         [DT_ROLE_SITE] = "site",
                                         [DT_ROLE_FRAME] = "frame",
                                         [DT_ROLE_TIME] = "time",
                                         [DT_ROLE_ID] = "id",
                                         [DT_ROLE_X] = "x",
                                         [DT_ROLE_Y] = "y",
                                         [DT_ROLE_HEADING] = "heading",
                                         [DT_ROLE_SPEED] = "speed",
                                         [DT_ROLE_ACCEL] = "accel",
                                         [DT_ROLE_LENGTH] = "length",
                                         [DT_ROLE_WIDTH] = "width",
                                         [DT_ROLE_STOP] = "stop_distance",
                                         [DT_ROLE_CONTROLLED] = "controlled",
                                         [DT_ROLE_RATE] = "frame_rate_hz",
                                         [DT_ROLE_VX] = "vx",
                                         [DT_ROLE_VY] = "vy",
                                         [DT_ROLE_AX] = "ax",
                                         [DT_ROLE_AY] = "ay",
                                         [DT_ROLE_KIND] = "kind",
                                         [DT_N_ROLES] = NULL};

typedef struct column {
    const char *name; /* NULL: not there */
    double factor;
} column;

#define FT     0.3048
#define DEGREE (M_PI / 180)
enum { NEEDS_MAX = 8 };
typedef struct preset {
    dt_table_layout layout;
    const char *needs[NEEDS_MAX]; /* the header has all of these, whatever their case; ends with NULL */
    column column[DT_N_ROLES];
} preset;

static const preset presets[] = {
    {.layout = {.name = "commonroad", .rate_hz = 10, .is_benchmark = true},
     .needs = {"scenario", "frame", "vehicle_id", "x_m", "heading_rad"},
     .column = {[DT_ROLE_SCENE] = {"scenario", 1},
                [DT_ROLE_FRAME] = {"frame", 1},
                [DT_ROLE_ID] = {"vehicle_id", 1},
                [DT_ROLE_X] = {"x_m", 1},
                [DT_ROLE_Y] = {"y_m", 1},
                [DT_ROLE_HEADING] = {"heading_rad", 1},
                [DT_ROLE_SPEED] = {"speed_mps", 1},
                [DT_ROLE_ACCEL] = {"accel_mps2", 1},
                [DT_ROLE_LENGTH] = {"length_m", 1},
                [DT_ROLE_WIDTH] = {"width_m", 1}}},
    {.layout =
         {.name = "us101_single", .rate_hz = 10, .axis_heading = M_PI_2, .is_heading_fixed = true, .site = "US101"},
     .needs = {"vehicle_id", "frame", "epoch_ms", "local_x_m", "local_y_m"},
     .column = {[DT_ROLE_SCENE] = {"vehicle_id", 1},
                [DT_ROLE_FRAME] = {"frame", 1},
                [DT_ROLE_ID] = {"vehicle_id", 1},
                [DT_ROLE_X] = {"local_x_m", 1},
                [DT_ROLE_Y] = {"local_y_m", 1},
                [DT_ROLE_SPEED] = {"speed_mps", 1},
                [DT_ROLE_ACCEL] = {"accel_mps2", 1}}},
    {.layout = {.name = "ngsim", .rate_hz = 10, .axis_heading = M_PI_2, .is_front = true, .is_portal = true},
     .needs = {"Vehicle_ID", "Frame_ID", "Local_X", "Local_Y", "v_Vel"},
     .column = {[DT_ROLE_SITE] = {"Location", 1},
                [DT_ROLE_SCENE] = {"Location", 1},
                [DT_ROLE_FRAME] = {"Frame_ID", 1},
                [DT_ROLE_TIME] = {"Global_Time", 1e-3},
                [DT_ROLE_ID] = {"Vehicle_ID", 1},
                [DT_ROLE_X] = {"Local_X", FT},
                [DT_ROLE_Y] = {"Local_Y", FT},
                [DT_ROLE_SPEED] = {"v_Vel", FT},
                [DT_ROLE_ACCEL] = {"v_Acc", FT},
                [DT_ROLE_LENGTH] = {"v_Length", FT},
                [DT_ROLE_WIDTH] = {"v_Width", FT}}},
    /* highD: width and height are those of the picture, so they are length and width of vehicles that drive along x */
    {.layout = {.name = "highD", .is_corner = true, .is_levelx = true},
     .needs = {"frame", "id", "x", "y", "width", "height", "xVelocity", "yVelocity"},
     .column = {[DT_ROLE_FRAME] = {"frame", 1},
                [DT_ROLE_ID] = {"id", 1},
                [DT_ROLE_X] = {"x", 1},
                [DT_ROLE_Y] = {"y", -1},
                [DT_ROLE_LENGTH] = {"width", 1},
                [DT_ROLE_WIDTH] = {"height", 1},
                [DT_ROLE_VX] = {"xVelocity", 1},
                [DT_ROLE_VY] = {"yVelocity", -1},
                [DT_ROLE_AX] = {"xAcceleration", 1},
                [DT_ROLE_AY] = {"yAcceleration", -1}}},
    {.layout = {.name = "inD", .is_levelx = true}, /* and rounD, whose columns are the same */
     .needs = {"trackId", "frame", "xCenter", "yCenter", "heading", "width", "length", "lonVelocity"},
     .column = {[DT_ROLE_FRAME] = {"frame", 1},
                [DT_ROLE_ID] = {"trackId", 1},
                [DT_ROLE_X] = {"xCenter", 1},
                [DT_ROLE_Y] = {"yCenter", 1},
                [DT_ROLE_HEADING] = {"heading", DEGREE},
                [DT_ROLE_SPEED] = {"lonVelocity", 1},
                [DT_ROLE_ACCEL] = {"lonAcceleration", 1},
                [DT_ROLE_LENGTH] = {"length", 1},
                [DT_ROLE_WIDTH] = {"width", 1}}},
    {.layout = {.name = "INTERACTION", .rate_hz = 10, .is_by_folder = true},
     .needs = {"track_id", "frame_id", "timestamp_ms", "agent_type", "x", "y", "vx", "vy"},
     .column = {[DT_ROLE_SCENE] = {"case_id", 1},
                [DT_ROLE_FRAME] = {"frame_id", 1},
                [DT_ROLE_TIME] = {"timestamp_ms", 1e-3},
                [DT_ROLE_ID] = {"track_id", 1},
                [DT_ROLE_KIND] = {"agent_type", 1},
                [DT_ROLE_X] = {"x", 1},
                [DT_ROLE_Y] = {"y", 1},
                [DT_ROLE_HEADING] = {"psi_rad", 1},
                [DT_ROLE_VX] = {"vx", 1},
                [DT_ROLE_VY] = {"vy", 1},
                [DT_ROLE_LENGTH] = {"length", 1},
                [DT_ROLE_WIDTH] = {"width", 1}}},
    {.layout = {.name = "dtrain", .has_parts = true},
     .needs = {"id", "x", "y", "speed"},
     .column = {[DT_ROLE_SCENE] = {"scene", 1},
                [DT_ROLE_SITE] = {"site", 1},
                [DT_ROLE_FRAME] = {"frame", 1},
                [DT_ROLE_TIME] = {"time", 1},
                [DT_ROLE_ID] = {"id", 1},
                [DT_ROLE_X] = {"x", 1},
                [DT_ROLE_Y] = {"y", 1},
                [DT_ROLE_HEADING] = {"heading", 1},
                [DT_ROLE_SPEED] = {"speed", 1},
                [DT_ROLE_ACCEL] = {"accel", 1},
                [DT_ROLE_LENGTH] = {"length", 1},
                [DT_ROLE_WIDTH] = {"width", 1},
                [DT_ROLE_STOP] = {"stop_distance", 1},
                [DT_ROLE_CONTROLLED] = {"controlled", 1},
                [DT_ROLE_RATE] = {"frame_rate_hz", 1}}},
};
enum { N_PRESETS = sizeof(presets) / sizeof(presets[0]) };

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static int find_column(const dt_columns *c, const char *name)
{
    for (int i = 0; i < c->n; i++) {
        if (strcasecmp(c->header[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static dt_status read_header(dt_columns *c, dt_csv *csv)
{
    c->csv = csv;
    c->path = dt_strdup(dt_csv_path(csv));
    if (c->path == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the header of %s", dt_csv_path(csv));
    }
    char *const *cell = NULL;
    dt_status st = dt_csv_next(csv, &cell, &c->n);
    if (st == DT_DONE) {
        return DT_FAIL(DT_EDATA, "%s holds no data: not even a header line", dt_csv_path(c->csv));
    }
    DT_TRY(st);
    c->header = dt_alloc_n((size_t)c->n + 1, sizeof(*c->header));
    if (c->header != NULL) {
        for (int i = 0; i < c->n; i++) {
            c->header[i] = dt_strdup(cell[i]);
            if (c->header[i] == NULL) {
                return DT_FAIL(DT_ENOMEM, "no memory for the header of %s", dt_csv_path(c->csv));
            }
        }
    }
    return c->header == NULL ? DT_FAIL(DT_ENOMEM, "no memory for the header of %s", dt_csv_path(c->csv)) : DT_OK;
}

/* "role=column[*factor],..." into c->column; the names point into c->map_text. */
static dt_status parse_map(dt_columns *c, const char *map)
{
    c->map_text = dt_strdup(map);
    if (c->map_text == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the column map");
    }
    char *rest = c->map_text, *item;
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
        while (r < DT_N_ROLES && strcmp(item, roles[r].name) != 0) {
            r++;
        }
        if (r == DT_N_ROLES) {
            const char *near = dt_did_you_mean(item, role_names);
            return DT_FAIL(DT_EINVAL, "column map: there is no role \"%s\"%s%s%s", item,
                           near == NULL ? "" : ", did you mean \"", near == NULL ? "" : near,
                           near == NULL ? "" : "\"?");
        }
        c->name[r] = name;
        c->factor[r] = f;
    }
    return DT_OK;
}

static dt_status recognise(dt_columns *c)
{
    for (int p = 0; p < N_PRESETS; p++) {
        int i = 0;
        while (i < NEEDS_MAX && presets[p].needs[i] != NULL && find_column(c, presets[p].needs[i]) >= 0) {
            i++;
        }
        if (i == NEEDS_MAX || presets[p].needs[i] == NULL) {
            c->layout = presets[p].layout;
            for (int r = 0; r < DT_N_ROLES; r++) {
                c->name[r] = presets[p].column[r].name;
                c->factor[r] = presets[p].column[r].factor;
            }
            return DT_OK;
        }
    }
    if (find_column(c, "id") >= 0 && find_column(c, "x") >= 0 && find_column(c, "y") >= 0) {
        return DT_FAIL(DT_EDATA, "%s:1: no column for speed: with id, x, y and frame or time it is needed",
                       dt_csv_path(c->csv));
    }
    dt_str names = {0};
    for (int i = 0; i < c->n; i++) {
        dt_str_addf(&names, "%s%s", i == 0 ? "" : ",", c->header[i]);
    }
    dt_status st = DT_FAIL(DT_EDATA,
                           "%s:1: unknown columns \"%.400s\": say which is which with a column map, e.g. "
                           "id=car,frame=f,x=X*0.3048,y=Y*0.3048,speed=V",
                           dt_csv_path(c->csv), dt_str_text(&names));
    dt_str_fini(&names);
    return st;
}

static dt_status place_columns(dt_columns *c, double rate_hz)
{
    for (int r = 0; r < DT_N_ROLES; r++) {
        c->at[r] = c->name[r] == NULL ? -1 : find_column(c, c->name[r]);
        if (c->at[r] < 0 && c->name[r] != NULL && c->is_mapped) {
            const char *near = dt_did_you_mean(c->name[r], (const char *const *)c->header);
            return DT_FAIL(DT_EDATA, "%s:1: there is no column \"%s\" for %s%s%s%s", dt_csv_path(c->csv), c->name[r],
                           roles[r].name, near == NULL ? "" : ", did you mean \"", near == NULL ? "" : near,
                           near == NULL ? "" : "\"?");
        }
    }
    static const int needed[] = {DT_ROLE_ID, DT_ROLE_X, DT_ROLE_Y, DT_ROLE_SPEED};
    const bool has_velocity = c->at[DT_ROLE_VX] >= 0 && c->at[DT_ROLE_VY] >= 0;
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (c->at[needed[i]] < 0 && !(needed[i] == DT_ROLE_SPEED && has_velocity)) {
            const char *name = c->name[needed[i]];
            return DT_FAIL(DT_EDATA, "%s:1: no column for %s%s%s%s", dt_csv_path(c->csv), roles[needed[i]].name,
                           name == NULL ? "" : " (\"", name == NULL ? "" : name, name == NULL ? "" : "\")");
        }
    }
    if (c->at[DT_ROLE_FRAME] < 0 && c->at[DT_ROLE_TIME] < 0) {
        return DT_FAIL(DT_EDATA, "%s:1: no column for frame or time", dt_csv_path(c->csv));
    }
    c->rate_hz = rate_hz > 0 ? rate_hz : c->layout.rate_hz;
    c->is_rate_in_rows = c->rate_hz == 0 && c->at[DT_ROLE_RATE] >= 0;
    if (!c->is_rate_in_rows && !c->layout.is_levelx &&
        !(c->rate_hz >= DT_RATE_MIN_HZ && c->rate_hz <= DT_RATE_MAX_HZ)) {
        return DT_FAIL(DT_EINVAL, "%s: the frame rate is %g Hz, say it with import.frame_rate_hz, a value in [%g, %g]",
                       dt_csv_path(c->csv), c->rate_hz, DT_RATE_MIN_HZ, DT_RATE_MAX_HZ);
    }
    return DT_OK;
}

const char *dt_columns_role(int role)
{
    return roles[role].name;
}

dt_status dt_columns_find(dt_columns *c, dt_csv *csv, const char *map, double rate_hz)
{
    c->is_mapped = map != NULL && map[0] != '\0';
    c->layout.name = "as mapped";
    DT_TRY(read_header(c, csv));
    DT_TRY(c->is_mapped ? parse_map(c, map) : recognise(c));
    return place_columns(c, rate_hz);
}

void dt_columns_fini(dt_columns *c)
{
    if (c->header != NULL) {
        for (int i = 0; i < c->n; i++) {
            dt_free(c->header[i]);
        }
    }
    dt_free(c->header);
    dt_free(c->path);
    dt_free(c->map_text);
    *c = (dt_columns){.n = 0};
}

static bool has_line(const dt_str *notes, const char *line, size_t bytes)
{
    for (const char *p = dt_str_text(notes); *p != '\0';) {
        const size_t n = strcspn(p, "\n");
        if (n == bytes && memcmp(p, line, bytes) == 0) {
            return true;
        }
        p += n + (p[n] == '\n');
    }
    return false;
}

void dt_columns_add_notes(dt_str *notes, const char *lines)
{
    static const char begin[] = "columns";
    while (*lines != '\0') {
        const size_t n = strcspn(lines, "\n"), bytes = n + (lines[n] == '\n');
        const bool is_ours = strncmp(lines, begin, sizeof(begin) - 1) == 0;
        if (!is_ours || !has_line(notes, lines, n)) {
            dt_str_add_n(notes, lines, bytes);
        }
        lines += bytes;
    }
}

dt_status dt_columns_tell(const dt_columns *c, dt_str *notes)
{
    dt_str lines = {0};
    dt_str_addf(&lines, "columns: %s, %g Hz\n", c->layout.name, c->rate_hz);
    for (int i = 0, n = 0; i < c->n; i++) {
        int r = 0;
        while (r < DT_N_ROLES && c->at[r] != i) {
            r++;
        }
        if (r == DT_N_ROLES) {
            dt_str_addf(&lines, "%s%s", n++ == 0 ? "columns not used: " : ", ", c->header[i]);
        }
        if (i + 1 == c->n && n > 0) {
            dt_str_add(&lines, "\n");
        }
    }
    dt_columns_add_notes(notes, dt_str_text(&lines));
    const dt_status st = dt_str_status(&lines);
    dt_str_fini(&lines);
    return st;
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Commas out of "-1,118,846.25": one to three digits, then groups of three. Other commas stay and are refused. */
static void drop_thousands(char *text)
{
    if (strchr(text, ',') == NULL) {
        return; /* as nearly always */
    }
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
dt_status dt_columns_number(const dt_columns *c, char *const *cell, int role, double *out_p)
{
    if (c->at[role] < 0) {
        *out_p = NAN;
        return DT_OK;
    }
    char *text = cell[c->at[role]];
    const char *name = c->header[c->at[role]];
    double v = 0;
    if (text[0] == '\0') {
        if (!roles[role].is_optional) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is empty, but %s is needed", dt_csv_path(c->csv),
                           dt_csv_line(c->csv), name, roles[role].name);
        }
        *out_p = NAN;
        return DT_OK;
    }
    bool is_number = dt_parse_f64(text, &v);
    if (!is_number && c->layout.is_portal) {
        drop_thousands(text);
        is_number = dt_parse_f64(text, &v);
    }
    if (!is_number) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%.60s\", not a finite number", dt_csv_path(c->csv),
                       dt_csv_line(c->csv), name, text);
    }
    v *= c->factor[role];
    if (!(v >= roles[role].lo && v <= roles[role].hi)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s = %s is %g, outside [%g, %g] of %s", dt_csv_path(c->csv),
                       dt_csv_line(c->csv), name, text, v, roles[role].lo, roles[role].hi, roles[role].name);
    }
    *out_p = v;
    return DT_OK;
}

bool dt_columns_is_person(const dt_columns *c, char *const *cell)
{
    static const char *const person[] = {"pedestrian/bicycle", "pedestrian", "bicycle", "cyclist"};
    for (size_t i = 0; i < sizeof(person) / sizeof(person[0]) && c->at[DT_ROLE_KIND] >= 0; i++) {
        if (strcasecmp(cell[c->at[DT_ROLE_KIND]], person[i]) == 0) {
            return true;
        }
    }
    return false;
}

dt_status dt_columns_integer(const dt_columns *c, char *const *cell, int role, int64_t *out_p)
{
    double v = 0;
    DT_TRY(dt_columns_number(c, cell, role, &v));
    if (v != floor(v)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%.60s\", not an integer", dt_csv_path(c->csv),
                       dt_csv_line(c->csv), c->header[c->at[role]], cell[c->at[role]]);
    }
    *out_p = (int64_t)v;
    return DT_OK;
}

dt_status dt_columns_rate(dt_columns *c, char *const *cell)
{
    double rate_hz = 0;
    if (!c->is_rate_in_rows) {
        return DT_OK;
    }
    DT_TRY(dt_columns_number(c, cell, DT_ROLE_RATE, &rate_hz));
    if (c->rate_hz != 0 && c->rate_hz != rate_hz) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s = %s, but rows before are of %g Hz: one table has one frame rate",
                       dt_csv_path(c->csv), dt_csv_line(c->csv), c->header[c->at[DT_ROLE_RATE]],
                       cell[c->at[DT_ROLE_RATE]], c->rate_hz);
    }
    c->rate_hz = rate_hz;
    return DT_OK;
}
