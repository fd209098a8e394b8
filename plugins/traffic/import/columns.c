/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/import/columns.h"
#include "traffic/features/features.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

typedef struct column {
    const char *name; /* NULL: not there */
    double factor, offset;
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
    {.layout = {.has_units = true, .name = "commonroad", .rate_hz = 10, .is_benchmark = true},
     .needs = {"scenario", "frame", "vehicle_id", "x_m", "heading_rad"},
     .column = {[DT_ROLE_SCENE] = {"scenario", 1, 0},
                [DT_ROLE_FRAME] = {"frame", 1, 0},
                [DT_ROLE_ID] = {"vehicle_id", 1, 0},
                [DT_ROLE_X] = {"x_m", 1, 0},
                [DT_ROLE_Y] = {"y_m", 1, 0},
                [DT_ROLE_HEADING] = {"heading_rad", 1, 0},
                [DT_ROLE_SPEED] = {"speed_mps", 1, 0},
                [DT_ROLE_ACCEL] = {"accel_mps2", 1, 0},
                [DT_ROLE_LENGTH] = {"length_m", 1, 0},
                [DT_ROLE_WIDTH] = {"width_m", 1, 0}}},
    {.layout = {.has_units = true,
                .name = "us101_single",
                .rate_hz = 10,
                .has_axis = true,
                .axis_heading = M_PI_2,
                .is_heading_fixed = true,
                .site = "US101"},
     .needs = {"vehicle_id", "frame", "epoch_ms", "local_x_m", "local_y_m"},
     .column = {[DT_ROLE_SCENE] = {"vehicle_id", 1, 0},
                [DT_ROLE_FRAME] = {"frame", 1, 0},
                [DT_ROLE_ID] = {"vehicle_id", 1, 0},
                [DT_ROLE_X] = {"local_x_m", 1, 0},
                [DT_ROLE_Y] = {"local_y_m", 1, 0},
                [DT_ROLE_SPEED] = {"speed_mps", 1, 0},
                [DT_ROLE_ACCEL] = {"accel_mps2", 1, 0}}},
    {.layout = {.has_units = true,
                .name = "ngsim",
                .rate_hz = 10,
                .has_axis = true,
                .axis_heading = M_PI_2,
                .is_front = true,
                .is_portal = true},
     .needs = {"Vehicle_ID", "Frame_ID", "Local_X", "Local_Y", "v_Vel"},
     .column = {[DT_ROLE_SITE] = {"Location", 1, 0},
                [DT_ROLE_SCENE] = {"Location", 1, 0},
                [DT_ROLE_FRAME] = {"Frame_ID", 1, 0},
                [DT_ROLE_TIME] = {"Global_Time", 1e-3, 0},
                [DT_ROLE_ID] = {"Vehicle_ID", 1, 0},
                [DT_ROLE_X] = {"Local_X", FT, 0},
                [DT_ROLE_Y] = {"Local_Y", FT, 0},
                [DT_ROLE_SPEED] = {"v_Vel", FT, 0},
                [DT_ROLE_ACCEL] = {"v_Acc", FT, 0},
                [DT_ROLE_LENGTH] = {"v_Length", FT, 0},
                [DT_ROLE_WIDTH] = {"v_Width", FT, 0}}},
    /* highD: width and height are those of the picture, so they are length and width of vehicles that drive along x */
    {.layout = {.has_units = true, .name = "highD", .is_corner = true, .is_levelx = true},
     .needs = {"frame", "id", "x", "y", "width", "height", "xVelocity", "yVelocity"},
     .column = {[DT_ROLE_FRAME] = {"frame", 1, 0},
                [DT_ROLE_ID] = {"id", 1, 0},
                [DT_ROLE_X] = {"x", 1, 0},
                [DT_ROLE_Y] = {"y", -1, 0},
                [DT_ROLE_LENGTH] = {"width", 1, 0},
                [DT_ROLE_WIDTH] = {"height", 1, 0},
                [DT_ROLE_VX] = {"xVelocity", 1, 0},
                [DT_ROLE_VY] = {"yVelocity", -1, 0},
                [DT_ROLE_AX] = {"xAcceleration", 1, 0},
                [DT_ROLE_AY] = {"yAcceleration", -1, 0}}},
    {.layout = {.has_units = true, .name = "inD", .is_levelx = true}, /* and rounD, whose columns are the same */
     .needs = {"trackId", "frame", "xCenter", "yCenter", "heading", "width", "length", "lonVelocity"},
     .column = {[DT_ROLE_FRAME] = {"frame", 1, 0},
                [DT_ROLE_ID] = {"trackId", 1, 0},
                [DT_ROLE_X] = {"xCenter", 1, 0},
                [DT_ROLE_Y] = {"yCenter", 1, 0},
                [DT_ROLE_HEADING] = {"heading", DEGREE, 0},
                [DT_ROLE_SPEED] = {"lonVelocity", 1, 0},
                [DT_ROLE_ACCEL] = {"lonAcceleration", 1, 0},
                [DT_ROLE_LENGTH] = {"length", 1, 0},
                [DT_ROLE_WIDTH] = {"width", 1, 0}}},
    {.layout = {.has_units = true, .name = "INTERACTION", .rate_hz = 10, .is_by_folder = true},
     .needs = {"track_id", "frame_id", "timestamp_ms", "agent_type", "x", "y", "vx", "vy"},
     .column = {[DT_ROLE_SCENE] = {"case_id", 1, 0},
                [DT_ROLE_FRAME] = {"frame_id", 1, 0},
                [DT_ROLE_TIME] = {"timestamp_ms", 1e-3, 0},
                [DT_ROLE_ID] = {"track_id", 1, 0},
                [DT_ROLE_KIND] = {"agent_type", 1, 0},
                [DT_ROLE_X] = {"x", 1, 0},
                [DT_ROLE_Y] = {"y", 1, 0},
                [DT_ROLE_HEADING] = {"psi_rad", 1, 0},
                [DT_ROLE_VX] = {"vx", 1, 0},
                [DT_ROLE_VY] = {"vy", 1, 0},
                [DT_ROLE_LENGTH] = {"length", 1, 0},
                [DT_ROLE_WIDTH] = {"width", 1, 0}}},
    /* floating cars of SUMO as a table: --fcd-output FILE.csv, and what its xml2csv.py makes of the XML */
    {.layout = {.has_units = true, .name = "SUMO table", .is_front = true, .may_lack_vehicle = true},
     .needs = {"timestep_time", "vehicle_id", "vehicle_x", "vehicle_y", "vehicle_speed"},
     .column = {[DT_ROLE_TIME] = {"timestep_time", 1, 0},
                [DT_ROLE_ID] = {"vehicle_id", 1, 0},
                [DT_ROLE_KIND] = {"vehicle_type", 1, 0},
                [DT_ROLE_X] = {"vehicle_x", 1, 0},
                [DT_ROLE_Y] = {"vehicle_y", 1, 0},
                [DT_ROLE_HEADING] = {"vehicle_angle", -DEGREE, M_PI_2},
                [DT_ROLE_SPEED] = {"vehicle_speed", 1, 0},
                [DT_ROLE_ACCEL] = {"vehicle_acceleration", 1, 0}}},
    {.layout = {.name = "dtrain", .has_parts = true},
     .needs = {"id", "x", "y"}, /* place_columns reports what else there must be */
     .column = {[DT_ROLE_SCENE] = {"scene", 1, 0},
                [DT_ROLE_SITE] = {"site", 1, 0},
                [DT_ROLE_FRAME] = {"frame", 1, 0},
                [DT_ROLE_TIME] = {"time", 1, 0},
                [DT_ROLE_ID] = {"id", 1, 0},
                [DT_ROLE_X] = {"x", 1, 0},
                [DT_ROLE_Y] = {"y", 1, 0},
                [DT_ROLE_HEADING] = {"heading", 1, 0},
                [DT_ROLE_SPEED] = {"speed", 1, 0},
                [DT_ROLE_ACCEL] = {"accel", 1, 0},
                [DT_ROLE_LENGTH] = {"length", 1, 0},
                [DT_ROLE_WIDTH] = {"width", 1, 0},
                [DT_ROLE_STOP] = {"stop_distance", 1, 0},
                [DT_ROLE_CONTROLLED] = {"controlled", 1, 0},
                [DT_ROLE_RATE] = {"frame_rate_hz", 1, 0},
                [DT_ROLE_VX] = {"vx", 1, 0},
                [DT_ROLE_VY] = {"vy", 1, 0},
                [DT_ROLE_AX] = {"ax", 1, 0},
                [DT_ROLE_AY] = {"ay", 1, 0},
                [DT_ROLE_KIND] = {"kind", 1, 0}}},
};
enum { N_PRESETS = sizeof(presets) / sizeof(presets[0]) };

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* The column of that name; else the one of that name in another case. -1: there is none. *is_one_p, unless NULL: no
 * other column could be meant. */
static int find_named_column(const dt_columns *c, const char *name, bool *is_one_p)
{
    int found[2] = {-1, -1}, n[2] = {0, 0}; /* as it is written, and in any case */
    for (int i = 0; i < c->n; i++) {
        const bool is[2] = {strcmp(c->header[i], name) == 0, strcasecmp(c->header[i], name) == 0};
        for (int k = 0; k < 2; k++) {
            found[k] = is[k] && n[k] == 0 ? i : found[k];
            n[k] += is[k];
        }
    }
    const int k = n[0] > 0 ? 0 : 1;
    if (is_one_p != NULL) {
        *is_one_p = n[k] <= 1;
    }
    return found[k];
}

static int find_column(const dt_columns *c, const char *name)
{
    return find_named_column(c, name, NULL);
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
        return DT_FAIL(DT_EDATA, "%s contains no data: not even a header line", dt_csv_path(c->csv));
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

/* ---- maps -------------------------------------------------------------------------------------------------------- */

/* What a unit measures; a role takes its own, and speeds and accelerations a length per second. */
enum { OF_LENGTH = 1, OF_SPEED = 2, OF_ACCEL = 4, OF_TIME = 8, OF_ANGLE = 16 };
static const struct unit {
    const char *name;
    dt_conversion by;
    int of;
} units[] = {{"m/s", {1, 0, false}, OF_SPEED},
             {"km/h", {1 / 3.6, 0, false}, OF_SPEED | OF_ACCEL}, /* per second */
             {"kmh", {1 / 3.6, 0, false}, OF_SPEED | OF_ACCEL},
             {"kph", {1 / 3.6, 0, false}, OF_SPEED | OF_ACCEL},
             {"mph", {0.44704, 0, false}, OF_SPEED | OF_ACCEL},
             {"kn", {1852.0 / 3600, 0, false}, OF_SPEED},
             {"ft/s", {FT, 0, false}, OF_SPEED},
             {"cm/s", {1e-2, 0, false}, OF_SPEED},
             {"m/s^2", {1, 0, false}, OF_ACCEL},
             {"ft/s^2", {FT, 0, false}, OF_ACCEL},
             {"cm/s^2", {1e-2, 0, false}, OF_ACCEL},
             {"g", {9.80665, 0, false}, OF_ACCEL},
             {"m", {1, 0, false}, OF_LENGTH | OF_SPEED | OF_ACCEL},
             {"ft", {FT, 0, false}, OF_LENGTH | OF_SPEED | OF_ACCEL},
             {"in", {0.0254, 0, false}, OF_LENGTH},
             {"yd", {0.9144, 0, false}, OF_LENGTH},
             {"mi", {1609.344, 0, false}, OF_LENGTH},
             {"km", {1e3, 0, false}, OF_LENGTH},
             {"dm", {1e-1, 0, false}, OF_LENGTH},
             {"cm", {1e-2, 0, false}, OF_LENGTH | OF_SPEED | OF_ACCEL},
             {"mm", {1e-3, 0, false}, OF_LENGTH | OF_SPEED | OF_ACCEL},
             {"s", {1, 0, false}, OF_TIME},
             {"min", {60, 0, false}, OF_TIME},
             {"ms", {1e-3, 0, false}, OF_TIME},
             {"us", {1e-6, 0, false}, OF_TIME},
             {"ns", {1e-9, 0, false}, OF_TIME},
             {"rad", {1, 0, false}, OF_ANGLE},
             {"deg", {DEGREE, 0, false}, OF_ANGLE},
             {"compass", {-DEGREE, M_PI_2, false}, OF_ANGLE}, /* degrees clockwise from +y, north */
             {"compass_rad", {-1, M_PI_2, false}, OF_ANGLE}};
enum { N_UNITS = sizeof(units) / sizeof(units[0]), NUMBER_BYTES = 64 };

static bool parse_number(const char *text, size_t n, double *out_p)
{
    char copy[NUMBER_BYTES];
    if (n == 0 || n >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text, n);
    copy[n] = '\0';
    return dt_parse_f64(copy, out_p);
}

/* Which units a role takes. */
static int role_units(int role)
{
    switch (role) {
    case DT_ROLE_X:
    case DT_ROLE_Y:
    case DT_ROLE_LENGTH:
    case DT_ROLE_WIDTH:
    case DT_ROLE_STOP:
        return OF_LENGTH;
    case DT_ROLE_SPEED:
    case DT_ROLE_VX:
    case DT_ROLE_VY:
        return OF_SPEED;
    case DT_ROLE_ACCEL:
    case DT_ROLE_AX:
    case DT_ROLE_AY:
        return OF_ACCEL;
    case DT_ROLE_TIME:
        return OF_TIME;
    case DT_ROLE_HEADING:
        return OF_ANGLE;
    default:
        return 0;
    }
}

/* "", "*3.6", "/3.6", "*km/h", "-500000", "*0.3048+12.5" */
static bool parse_conversion(const char *text, int role, dt_conversion *by)
{
    const size_t n = strlen(text);
    size_t end = n;
    double number = 0;
    *by = (dt_conversion){.factor = 1};
    if (n == 0) {
        return true;
    }
    if (text[0] == '*' || text[0] == '/') {
        for (size_t i = 0; i < N_UNITS && text[0] == '*'; i++) {
            if (strcasecmp(text + 1, units[i].name) == 0 && (units[i].of & role_units(role)) != 0) {
                *by = units[i].by;
                return true;
            }
        }
        while (end > 1 && !parse_number(text + 1, end - 1, &number)) { /* the longest number */
            end--;
        }
        if (end <= 1 || number == 0) {
            return false;
        }
        by->factor = text[0] == '*' ? number : 1 / number;
    } else {
        end = 0;
    }
    return isfinite(by->factor) &&
           (end == n || ((text[end] == '+' || text[end] == '-') && parse_number(text + end, n - end, &by->offset)));
}

/* The units that a role takes are named. */
static dt_status fail_factor(int role, const char *factor)
{
    dt_str names = {0};
    for (size_t i = 0; i < N_UNITS; i++) {
        if ((units[i].of & role_units(role)) != 0) {
            dt_str_addf(&names, "%s%s", names.bytes > 0 ? ", " : "", units[i].name);
        }
    }
    const char *of = names.bytes > 0 ? ", nor a unit of it: " : ", and it has no unit";
    const dt_status st = DT_FAIL(DT_EINVAL, "column map: the factor \"%.60s\" of %s is not a number other than 0%s%s",
                                 factor, dt_role_specs[role].name, of, dt_str_text(&names));
    dt_str_fini(&names);
    return st;
}

/* The column that an item names, and what converts it: the whole item may be a name, or the longest begin of it that is
 * one, followed by a conversion. Else what is before the first '*'. */
static dt_status parse_item(const dt_columns *c, int role, char *item, const char **name_p, dt_conversion *by)
{
    *name_p = item;
    *by = (dt_conversion){.factor = 1};
    if (find_column(c, item) >= 0) {
        return DT_OK;
    }
    char *bar = item[0] == '|' ? strchr(item + 1, '|') : NULL;
    if (bar != NULL && bar > item + 1 && parse_conversion(bar + 1, role, by)) {
        *bar = '\0';
        by->is_magnitude = true;
        *name_p = item + 1;
        return DT_OK;
    }
    for (char *end = item + strlen(item); end > item; end--) {
        if (strchr("*/+-", *end) == NULL || !parse_conversion(end, role, by)) {
            continue;
        }
        const char kept = *end;
        *end = '\0';
        if (find_column(c, item) >= 0) {
            return DT_OK;
        }
        *end = kept;
    }
    *by = (dt_conversion){.factor = 1};
    char *factor = strchr(item, '*');
    if (factor != NULL && !parse_conversion(factor, role, by)) {
        return fail_factor(role, factor + 1);
    }
    if (factor != NULL) {
        *factor = '\0';
    }
    return DT_OK; /* place_columns reports that there is no such column */
}

/* "role=item,..." into c->name and c->by; the names point into c->map_text. */
static dt_status parse_map(dt_columns *c, const char *map)
{
    const char *names[DT_N_ROLES + 1] = {NULL};
    for (int r = 0; r < DT_N_ROLES; r++) {
        names[r] = dt_role_specs[r].name;
    }
    c->map_text = dt_strdup(map);
    if (c->map_text == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the column map");
    }
    char *rest = c->map_text, *item;
    while ((item = strsep(&rest, ",")) != NULL) {
        item += strspn(item, " ");
        char *name = strchr(item, '=');
        if (name == NULL || name[1] == '\0') {
            return DT_FAIL(DT_EINVAL,
                           "column map: \"%s\" is not role=column, role=column*factor or role=column/divisor", item);
        }
        *name++ = '\0';
        int r = 0;
        while (r < DT_N_ROLES && strcmp(item, dt_role_specs[r].name) != 0) {
            r++;
        }
        if (r == DT_N_ROLES) {
            const char *near = dt_suggest_word(item, names);
            return DT_FAIL(DT_EINVAL, "column map: there is no role \"%s\"%s%s%s", item,
                           near == NULL ? "" : ", did you mean \"", near == NULL ? "" : near,
                           near == NULL ? "" : "\"?");
        }
        DT_TRY(parse_item(c, r, name, &c->name[r], &c->by[r]));
    }
    return DT_OK;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

void dt_columns_write(int role, const char *header, const dt_conversion *by, dt_str *out)
{
    const char *bar = by->is_magnitude ? "|" : "";
    dt_str_addf(out, "%s=%s%s%s", dt_role_specs[role].name, bar, header, bar);
    for (size_t i = 0; i < N_UNITS; i++) {
        const dt_conversion *u = &units[i].by;
        if (u->offset != 0 && is_near(u->factor, by->factor) && is_near(u->offset, by->offset)) {
            dt_str_addf(out, "*%s", units[i].name);
            return;
        }
    }
    if (is_near(by->factor, 1 / 3.6)) {
        dt_str_add(out, "/3.6");
    } else if (by->factor != 1) {
        dt_str_addf(out, "*%.6g", by->factor);
    }
    if (by->offset != 0) {
        dt_str_addf(out, "%+.6g", by->offset);
    }
}

void dt_columns_write_map(const dt_columns *c, int role, double scale, dt_str *out)
{
    for (int r = 0; r < DT_N_ROLES; r++) {
        if (c->at[r] >= 0) {
            dt_conversion by = c->by[r];
            by.factor *= r == role ? scale : 1;
            dt_str_add(out, out->bytes > 0 ? "," : "");
            dt_columns_write(r, c->header[c->at[r]], &by, out);
        }
    }
}

/* ---- headers ----------------------------------------------------------------------------------------------------- */

/* A table without a header: its first line holds numbers. */
static bool is_all_numbers(const dt_columns *c)
{
    for (int i = 0; i < c->n; i++) {
        double number = 0;
        if (!dt_parse_f64(c->header[i], &number)) {
            return false;
        }
    }
    return true;
}

/* Names of a header between separators that are none, as "id frame x y": how many. */
static int count_words(const char *cell)
{
    int n = 0;
    for (cell += strspn(cell, " "); *cell != '\0'; cell += strspn(cell, " ")) {
        cell += strcspn(cell, " ");
        n++;
    }
    return n;
}

/* Why the header is none that is known, and what helps. */
static dt_status fail_unknown(const dt_columns *c)
{
    enum { LEAST = 4 }; /* names of a table */
    dt_str names = {0};
    for (int i = 0; i < c->n; i++) {
        dt_str_addf(&names, "%s%s", i == 0 ? "" : ",", c->header[i]);
    }
    const char *path = dt_csv_path(c->csv), *text = dt_str_text(&names);
    const int64_t line = dt_csv_line(c->csv);
    dt_status st;
    if (find_column(c, "traveled_d") >= 0 && find_column(c, "avg_speed") >= 0) {
        st = DT_FAIL(DT_EDATA,
                     "%s:%" PRId64
                     ": a row of pNEUMA is a whole track, in degrees and km/h: write a row per vehicle and "
                     "time, with id,time,x,y,speed in m and m/s, first",
                     path, line);
    } else if (c->n == 1 && count_words(c->header[0]) >= LEAST) {
        st = DT_FAIL(DT_EDATA,
                     "%s:%" PRId64 ": one column \"%.200s\": columns are separated by comma, semicolon, tab or '|', "
                     "and not by spaces: convert it, for example with sed 's/^ *//; s/ *$//; s/  */,/g'",
                     path, line, text);
    } else if (is_all_numbers(c)) {
        st = DT_FAIL(DT_EDATA,
                     "%s:%" PRId64 ": \"%.200s\" are numbers, but the first line must name the columns: add a header "
                     "line of %d names, for example with sed '1i id,frame,x,y,speed' does",
                     path, line, text, c->n);
    } else {
        st =
            DT_FAIL(DT_EDATA,
                    "%s:%" PRId64 ": unknown columns \"%.400s\"%s: map them with import.columns, e.g. "
                    "id=car,frame=f,x=X*0.3048,y=Y*0.3048,speed=V/3.6",
                    path, line, text, c->n == 1 ? " (one: columns are separated by comma, semicolon, tab or '|')" : "");
    }
    dt_str_fini(&names);
    return st;
}

static dt_status recognise_header(dt_columns *c)
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
                c->by[r] =
                    (dt_conversion){.factor = presets[p].column[r].factor, .offset = presets[p].column[r].offset};
            }
            return DT_OK;
        }
    }
    return fail_unknown(c);
}

/* The map so far, and where the missing column goes. */
static dt_status fail_missing(const dt_columns *c, int role)
{
    dt_str map = {0}, names = {0};
    dt_columns_write_map(c, -1, 1, &map);
    for (int i = 0; i < c->n; i++) {
        dt_str_addf(&names, "%s%s", i == 0 ? "" : ",", c->header[i]);
    }
    const char * or = role == DT_ROLE_SPEED   ? ", and none for vx and vy, which may replace it"
                      : role == DT_ROLE_FRAME ? " or time"
                                              : "";
    const char *example = role == DT_ROLE_SPEED   ? "speed=COLUMN or vx=COLUMN,vy=COLUMN"
                          : role == DT_ROLE_FRAME ? "frame=COLUMN or time=COLUMN"
                                                  : "=COLUMN";
    const dt_status st =
        DT_FAIL(DT_EDATA,
                "%s:%" PRId64 ": no column for %s%s, among \"%.300s\": name it, as --set 'import.columns=%.400s%s%s%s'",
                dt_csv_path(c->csv), dt_csv_line(c->csv), dt_role_specs[role].name, or, dt_str_text(&names),
                dt_str_text(&map), map.bytes > 0 ? "," : "", *example == '=' ? dt_role_specs[role].name : "", example);
    dt_str_fini(&map);
    dt_str_fini(&names);
    return st;
}

static dt_status resolve_columns(dt_columns *c, double rate_hz)
{
    for (int r = 0; r < DT_N_ROLES; r++) {
        bool is_one = true;
        c->at[r] = c->name[r] == NULL ? -1 : find_named_column(c, c->name[r], &is_one);
        if (!is_one) {
            return DT_FAIL(DT_EDATA,
                           "%s:%" PRId64 ": several columns are called \"%s\", which is %s: rename all but one",
                           dt_csv_path(c->csv), dt_csv_line(c->csv), c->name[r], dt_role_specs[r].name);
        }
        if (c->at[r] < 0 && c->name[r] != NULL && c->is_mapped) {
            const char *near = dt_suggest_word(c->name[r], (const char *const *)c->header);
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": there is no column \"%s\" for %s%s%s%s", dt_csv_path(c->csv),
                           dt_csv_line(c->csv), c->name[r], dt_role_specs[r].name,
                           near == NULL ? "" : ", did you mean \"", near == NULL ? "" : near,
                           near == NULL ? "" : "\"?");
        }
    }
    static const int needed[] = {DT_ROLE_ID, DT_ROLE_X, DT_ROLE_Y, DT_ROLE_SPEED};
    const bool has_velocity = c->at[DT_ROLE_VX] >= 0 && c->at[DT_ROLE_VY] >= 0;
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (c->at[needed[i]] < 0 && !(needed[i] == DT_ROLE_SPEED && has_velocity)) {
            return fail_missing(c, needed[i]);
        }
    }
    if (c->at[DT_ROLE_FRAME] < 0 && c->at[DT_ROLE_TIME] < 0) {
        return fail_missing(c, DT_ROLE_FRAME);
    }
    c->rate_hz = rate_hz > 0 ? rate_hz : c->layout.rate_hz;
    c->is_rate_in_rows = c->rate_hz == 0 && c->at[DT_ROLE_RATE] >= 0;
    if (c->rate_hz != 0 && !(c->rate_hz >= DT_RATE_MIN_HZ && c->rate_hz <= DT_RATE_MAX_HZ)) {
        return DT_FAIL(DT_EINVAL, "%s: the frame rate is %g Hz, outside [%g, %g]: set import.frame_rate_hz",
                       dt_csv_path(c->csv), c->rate_hz, DT_RATE_MIN_HZ, DT_RATE_MAX_HZ);
    }
    return DT_OK;
}

dt_status dt_columns_find(dt_columns *c, dt_csv *csv, const char *map, double rate_hz)
{
    c->is_mapped = map != NULL && map[0] != '\0';
    c->layout.name = "as mapped";
    DT_TRY(read_header(c, csv));
    DT_TRY(c->is_mapped ? parse_map(c, map) : recognise_header(c));
    return resolve_columns(c, rate_hz);
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

dt_status dt_columns_report(const dt_columns *c, dt_str *notes)
{
    const char separator = dt_csv_separator(c->csv);
    dt_str lines = {0};
    dt_str_addf(&lines, "columns: %s, %g Hz%s%s\n", c->layout.name, c->rate_hz,
                separator == ',' ? "" : ", separated by ",
                separator == ','    ? ""
                : separator == '\t' ? "tabs"
                : separator == ';'  ? "semicolons"
                                    : "'|'");
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
