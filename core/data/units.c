/* SPDX-License-Identifier: Apache-2.0
 *
 * See units.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/units.h"

#include <math.h>

#define FT     0.3048
#define KMH    (1 / 3.6)
#define MPH    0.44704
#define DEGREE (M_PI / 180)

#define MOVES_MPS       1.0  /* below, positions are mostly noise */
#define ENOUGH_S        5.0  /* of vehicles that move: below, nothing is told from them */
#define NEAR            0.07 /* of a ratio that a unit explains; km/h and ft/s are 9 % apart */
#define FAR             1.5  /* a ratio that needs a reason */
#define LONG_M          9.0  /* mean length: cars are 4.5 m, which is 15 ft */
#define FAST_MPS        50.0 /* mean speed of what moves: 180 km/h */
#define A_TURN_AT_LEAST 6.4  /* rad: a little more than a turn, which some count to */

void dt_units_add(dt_units *u, const dt_table_row *row, double before_s, double x, double y)
{
    const double speed = fabs(row->speed);
    if (!isnan(row->length)) {
        u->length += row->length;
        u->n_lengths++;
    }
    if (!isnan(row->heading)) {
        u->heading_most = fmax(u->heading_most, fabs(row->heading));
    }
    const double dx = row->x - x, dy = row->y - y, distance = sqrt(dx * dx + dy * dy); /* no ends of the range here */
    if (before_s > 0 && speed > MOVES_MPS && distance > MOVES_MPS * before_s) {
        u->by_position += distance;
        u->by_speed += speed * before_s;
        u->moving_s += before_s;
    }
}

typedef struct doubts { /* what would convert each role; 0: nothing is in doubt */
    double factor[DT_N_ROLES];
} doubts;

/* A line, whatever names of files and columns hold. */
static void add_line(dt_str *out, const char *fmt, ...) DT_PRINTF(2, 3);
static void add_line(dt_str *out, const char *fmt, ...)
{
    const size_t begin = out->bytes;
    va_list ap;
    va_start(ap, fmt);
    dt_str_addv(out, fmt, ap);
    va_end(ap);
    for (size_t i = begin; i < out->bytes; i++) {
        out->text[i] = out->text[i] == '\n' ? '?' : out->text[i];
    }
    dt_str_add(out, "\n");
}

/* Speeds against positions. */
static bool doubt_speeds(const dt_units *u, const dt_columns *c, doubts *d, dt_str *out)
{
    static const struct {
        const char *speeds, *positions; /* NULL: SI */
        double speed, position;         /* what converts them */
    } known[] = {{"km/h", NULL, KMH, 1},
                 {"mph", NULL, MPH, 1},
                 {"ft/s", NULL, FT, 1},
                 {NULL, "feet", 1, FT},
                 {"mph", "feet", MPH, FT}};
    const double ratio = u->moving_s >= ENOUGH_S ? u->by_speed / u->by_position : 1;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (fabs(ratio * known[i].speed / known[i].position - 1) < NEAR) {
            add_line(out, "%s: speeds are %.2f times what positions say, as if %s%s%s%s%s", c->path, ratio,
                     known[i].speeds != NULL ? "speeds were in " : "", known[i].speeds != NULL ? known[i].speeds : "",
                     known[i].speeds != NULL && known[i].positions != NULL ? " and " : "",
                     known[i].positions != NULL ? "positions were in " : "",
                     known[i].positions != NULL ? known[i].positions : "");
            d->factor[DT_ROLE_SPEED] = known[i].speed;
            d->factor[DT_ROLE_X] = d->factor[DT_ROLE_Y] = known[i].position;
            return true;
        }
    }
    if (ratio > FAR || ratio < 1 / FAR) {
        add_line(
            out,
            "%s: speeds are %.3g times what positions say at %g Hz: is import.frame_rate_hz right, are they m/s and "
            "m (import.columns)?",
            c->path, ratio, c->rate_hz);
    }
    return false;
}

/* Positions and speeds that agree may still both be in feet. */
static void doubt_sizes(const dt_units *u, const dt_columns *c, doubts *d, dt_str *out)
{
    const double length = u->n_lengths > 0 ? u->length / (double)u->n_lengths : 0;
    const double speed = u->moving_s >= ENOUGH_S ? u->by_speed / u->moving_s : 0;
    if (length > LONG_M) {
        add_line(out, "%s: vehicles are %.1f m long on average, as if they were in feet", c->path, length);
    } else if (speed > FAST_MPS) {
        add_line(out, "%s: what moves has %.1f m/s on average, as if speeds and positions were in feet", c->path,
                 speed);
    } else {
        return;
    }
    static const int role[] = {DT_ROLE_X, DT_ROLE_Y, DT_ROLE_SPEED, DT_ROLE_ACCEL, DT_ROLE_LENGTH, DT_ROLE_WIDTH};
    for (size_t i = 0; i < sizeof(role) / sizeof(role[0]); i++) {
        d->factor[role[i]] = c->factor[role[i]] == 1 ? FT : 1; /* what is converted already is in no doubt */
    }
}

/* The whole map, so that it can be used as it stands. */
static void tell_map(const dt_columns *c, const doubts *d, dt_str *out)
{
    dt_str map = {0};
    for (int r = 0; r < DT_N_ROLES; r++) {
        const double factor = c->factor[r] * (d->factor[r] != 0 ? d->factor[r] : 1);
        if (c->at[r] >= 0) {
            dt_str_addf(&map, "%s%s=%s", map.bytes > 0 ? "," : "", dt_columns_role(r), c->header[c->at[r]]);
        }
        if (c->at[r] >= 0 && factor != 1) {
            dt_str_addf(&map, "*%.6g", factor);
        }
    }
    add_line(out, "if so, import it anew with --set 'import.columns=%s'", dt_str_text(&map));
    dt_str_fini(&map);
}

void dt_units_doubt(const dt_units *u, const dt_columns *c, dt_str *out)
{
    doubts d = {{0}};
    bool is_doubtful = doubt_speeds(u, c, &d, out);
    if (!is_doubtful) {
        doubt_sizes(u, c, &d, out);
        is_doubtful = d.factor[DT_ROLE_X] != 0;
    }
    if (u->heading_most > A_TURN_AT_LEAST) {
        add_line(out, "%s: headings reach %.4g, and a turn is 6.283 rad: as if they were in degrees", c->path,
                 u->heading_most);
        d.factor[DT_ROLE_HEADING] = DEGREE;
        is_doubtful = true;
    }
    if (is_doubtful) {
        tell_map(c, &d, out);
    }
}
