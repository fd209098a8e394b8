/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells of a table as values in SI units. See columns.h.
 */
#include <config.h>

#include "traffic/import/columns.h"

#include "base/err.h"
#include "traffic/features/features.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_BYTES = 64 };

const dt_role_spec dt_role_specs[DT_N_ROLES] = {
    [DT_ROLE_SCENE] = {"scene", 0, 0, false},
    [DT_ROLE_SITE] = {"site", 0, 0, false},
    [DT_ROLE_FRAME] = {"frame", -9e15, 9e15, false},
    [DT_ROLE_TIME] = {"time", -1e13, 1e13, false},
    [DT_ROLE_ID] = {"id", 0, 0, false},
    [DT_ROLE_X] = {"x", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [DT_ROLE_Y] = {"y", -DT_POSITION_MAX_M, DT_POSITION_MAX_M, false},
    [DT_ROLE_HEADING] = {"heading", -1e3, 1e3, true},
    [DT_ROLE_SPEED] = {"speed", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [DT_ROLE_ACCEL] = {"accel", -1e3, 1e3, true},
    [DT_ROLE_LENGTH] = {"length", 0, DT_SIZE_MAX_M, true},
    [DT_ROLE_WIDTH] = {"width", 0, DT_SIZE_MAX_M, true},
    [DT_ROLE_STOP] = {"stop_distance", 0, 1e6, true},
    [DT_ROLE_CONTROLLED] = {"controlled", 0, 0, true},
    [DT_ROLE_RATE] = {"frame_rate_hz", DT_RATE_MIN_HZ, DT_RATE_MAX_HZ, false},
    [DT_ROLE_VX] = {"vx", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [DT_ROLE_VY] = {"vy", -DT_SPEED_MAX_MPS, DT_SPEED_MAX_MPS, false},
    [DT_ROLE_AX] = {"ax", -1e3, 1e3, true},
    [DT_ROLE_AY] = {"ay", -1e3, 1e3, true},
    [DT_ROLE_KIND] = {"kind", 0, 0, false},
};

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

/* "12,5" of a table whose cells are not separated by commas. A table has decimal commas or decimal points. */
static bool parse_decimal_comma(dt_columns *c, const char *text, double *out_p)
{
    char copy[NUMBER_BYTES];
    const size_t n = strlen(text);
    const char *comma = strchr(text, ',');
    if (dt_csv_separator(c->csv) == ',' || comma == NULL || strchr(comma + 1, ',') != NULL ||
        strchr(text, '.') != NULL || n >= sizeof(copy) || c->has_decimal_point) {
        return false;
    }
    memcpy(copy, text, n + 1);
    copy[comma - text] = '.';
    if (!dt_parse_f64(copy, out_p)) {
        return false;
    }
    c->has_decimal_comma = true;
    return true;
}

/* The one place where a cell becomes a number. */
static dt_status parse_cell(dt_columns *c, char *text, const char *name, double *out_p)
{
    bool is_number = dt_parse_f64(text, out_p), is_mixed = false;
    if (!is_number && c->layout.is_portal) {
        drop_thousands(text);
        is_number = dt_parse_f64(text, out_p);
    } else if (!is_number) {
        is_number = parse_decimal_comma(c, text, out_p);
        is_mixed = !is_number && c->has_decimal_point && strchr(text, ',') != NULL && dt_csv_separator(c->csv) != ',';
    } else if (strchr(text, '.') != NULL) {
        c->has_decimal_point = true;
        is_mixed = c->has_decimal_comma;
    }
    if (is_number && !is_mixed) {
        return DT_OK;
    }
    return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%.60s\", not a finite number%s", dt_csv_path(c->csv),
                   dt_csv_line(c->csv), name, text,
                   is_mixed ? ": cells before have the other decimal separator, and a table has commas or points" : "");
}

static dt_status convert_number(const dt_columns *c, int role, const char *text, double v, double *out_p)
{
    const dt_conversion *by = &c->by[role];
    v = (by->is_magnitude ? fabs(v) : v) * by->factor + by->offset;
    if (!(v >= dt_role_specs[role].lo && v <= dt_role_specs[role].hi)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s = %s is %g, outside [%g, %g] of %s", dt_csv_path(c->csv),
                       dt_csv_line(c->csv), c->header[c->at[role]], text, v, dt_role_specs[role].lo,
                       dt_role_specs[role].hi, dt_role_specs[role].name);
    }
    *out_p = v;
    return DT_OK;
}

/* Words that stand for a missing value where one may be missing, as programs write them. */
static bool is_missing(const char *text)
{
    static const char *const words[] = {"",     "nan", "na", "n/a", "#n/a", "<na>", "null",
                                        "none", "nil", "-",  "--",  "?",    "\\N"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

dt_status dt_columns_read_number(dt_columns *c, char *const *cell, int role, double *out_p)
{
    *out_p = NAN;
    if (c->at[role] < 0) {
        return DT_OK;
    }
    char *text = cell[c->at[role]];
    const char *name = c->header[c->at[role]];
    double v = 0;
    if (dt_role_specs[role].is_optional && is_missing(text)) {
        return DT_OK;
    }
    if (text[0] == '\0') {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is empty, but %s is needed", dt_csv_path(c->csv),
                       dt_csv_line(c->csv), name, dt_role_specs[role].name);
    }
    DT_TRY(parse_cell(c, text, name, &v));
    return convert_number(c, role, text, v, out_p);
}

dt_status dt_columns_read_time(dt_columns *c, char *const *cell, double *out_p)
{
    char *text = cell[c->at[DT_ROLE_TIME]];
    double v = 0;
    bool has_zone = false;
    if (strchr(text, ':') != NULL && dt_value_parse_date(text, &v, &has_zone)) {
        if (has_zone ? c->has_local_time : c->has_zone) {
            return DT_FAIL(DT_EDATA,
                           "%s:%" PRId64
                           ": %s is \"%.60s\", and times before %s a time zone: give all of them one, or none",
                           dt_csv_path(c->csv), dt_csv_line(c->csv), c->header[c->at[DT_ROLE_TIME]], text,
                           has_zone ? "lack" : "have");
        }
        c->has_zone |= has_zone;
        c->has_local_time |= !has_zone;
        return convert_number(c, DT_ROLE_TIME, text, v, out_p);
    }
    return strchr(text, ':') != NULL && dt_value_parse_time(text, &v)
               ? convert_number(c, DT_ROLE_TIME, text, v, out_p)
               : dt_columns_read_number(c, cell, DT_ROLE_TIME, out_p);
}

dt_status dt_columns_read_bool(const dt_columns *c, char *const *cell, int role, bool *out_p)
{
    *out_p = false;
    if (c->at[role] < 0 || is_missing(cell[c->at[role]]) || dt_value_parse_bool(cell[c->at[role]], out_p)) {
        return DT_OK;
    }
    return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%.60s\", neither 0 or 1 nor true or false", dt_csv_path(c->csv),
                   dt_csv_line(c->csv), c->header[c->at[role]], cell[c->at[role]]);
}

dt_road_user dt_columns_read_user(const dt_columns *c, char *const *cell)
{
    return c->at[DT_ROLE_KIND] < 0 ? DT_USER_VEHICLE : dt_road_user_of(cell[c->at[DT_ROLE_KIND]]);
}

dt_status dt_columns_read_integer(dt_columns *c, char *const *cell, int role, int64_t *out_p)
{
    double v = 0;
    DT_TRY(dt_columns_read_number(c, cell, role, &v));
    if (v != floor(v)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%.60s\", not an integer", dt_csv_path(c->csv),
                       dt_csv_line(c->csv), c->header[c->at[role]], cell[c->at[role]]);
    }
    *out_p = (int64_t)v;
    return DT_OK;
}

dt_status dt_columns_read_rate(dt_columns *c, char *const *cell)
{
    double rate_hz = 0;
    if (!c->is_rate_in_rows) {
        return DT_OK;
    }
    DT_TRY(dt_columns_read_number(c, cell, DT_ROLE_RATE, &rate_hz));
    if (c->rate_hz != 0 && c->rate_hz != rate_hz) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s = %s, but rows before are of %g Hz: one table has one frame rate",
                       dt_csv_path(c->csv), dt_csv_line(c->csv), c->header[c->at[DT_ROLE_RATE]],
                       cell[c->at[DT_ROLE_RATE]], c->rate_hz);
    }
    c->rate_hz = rate_hz;
    return DT_OK;
}
