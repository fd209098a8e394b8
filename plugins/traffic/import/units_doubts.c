/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in doubt of a recording's units, and the column map that would make it consistent. See units.h.
 */
#include <config.h>

#include "traffic/import/units.h"

#include <inttypes.h>
#include <math.h>

#define FT              0.3048
#define KMH             (1 / 3.6)
#define MPH             0.44704
#define KNOT            (1852.0 / 3600)
#define G               9.80665
#define DEGREE          (M_PI / 180)
#define ENOUGH          5    /* windows: below, nothing is concluded */
#define NEAR            0.03 /* of a ratio that a unit explains; km/h and ft/s are 9 % apart */
#define UNCLEAR         0.12 /* feet and km/h are 10 % apart, as wrong speeds may be */
#define EXACT           0.01 /* of a ratio: a unit that is off by more explains it worse than an even frame rate */
#define EVEN            5e-3 /* of a frame rate: so close to a whole number */
#define CLEAR           0.9  /* share of windows that a conversion must explain */
#define DOUBTFUL        0.05 /* share of inconsistent rows that is worth a warning */
#define SHORT_M         1.5  /* mean length: */
#define LONG_M          9.0  /* cars are 4.5 m, which is 15 ft */
#define LONGEST_M       30.0 /* where widths are known and those of vehicles */
#define NARROW_M        0.5  /* mean width: */
#define WIDE_M          4.0  /* cars are 1.8 m, which is 6 ft */
#define WIDER           1.2  /* than long, on average */
#define FAST_SHARE      0.1  /* or of the time in which so fast */
#define STEEP_SHARE     0.02
#define ROTATED         5.0 /* degrees: a median that is worth a warning */
#define GATHERED        0.6 /* share of windows that are so near to the median: */
#define NEAR_DEGREES    5
#define PAIRS_ENOUGH    50
#define N_COMMON        5   /* units of positions that are tried with those of speeds */
#define A_TURN_AT_LEAST 6.4 /* rad: a little more than a turn, which some count to */

const char *const dt_units_quantity[DT_UNITS_N] = {"speed", "heading", "acceleration"};
const char *const dt_units_limit[DT_UNITS_N] = {"5 % and 0.2 m of the distance of a second",
                                                "30 degrees from the direction of travel",
                                                "10 % and 0.5 m/s of the change of speed of a second"};

typedef struct doubts { /* what would convert each role: multiplied by scale, plus offset */
    double scale[DT_N_ROLES], offset[DT_N_ROLES];
    int from[DT_N_ROLES]; /* the role whose column it would have; 0 (scene): its own */
    bool is_magnitude[DT_N_ROLES];
    bool is_any;
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

/* By this, in addition to what was found before. */
static void scale_role(doubts *d, int role, double by)
{
    d->scale[role] = (d->scale[role] != 0 ? d->scale[role] : 1) * by;
    d->is_any |= by != 1;
}

static void swap_roles(doubts *d, int a, int b)
{
    d->from[a] = b;
    d->from[b] = a;
    d->is_any = true;
}

/* How many times as far vehicles come by their speeds as by their positions: of the windows near the median, so that
 * jumps and vehicles that are stopped show nothing. 0: too few. */
static double median_speed_ratio(const dt_units *u)
{
    int64_t below = 0;
    int at = 0;
    double path = 0, distance = 0;
    if (u->n_windows < ENOUGH) {
        return 0;
    }
    while (2 * (below + u->bin[at]) < u->n_windows) {
        below += u->bin[at++];
    }
    for (int i = at - 8; i <= at + 8; i++) { /* a tenth to either side */
        if (i >= 0 && i < DT_UNITS_BINS) {
            path += u->bin_path[i];
            distance += u->bin_distance[i];
        }
    }
    return path / distance;
}

/* The frame rate at which speeds and positions agree; 0: the table's cannot be another one. */
static double rate_that_agrees(const dt_columns *c, double ratio)
{
    const bool is_free = c != NULL && c->at[DT_ROLE_TIME] < 0 && c->layout.rate_hz == 0 && !c->layout.is_levelx;
    const double rate = is_free ? c->rate_hz * ratio : 0;
    return rate >= DT_RATE_MIN_HZ && rate <= DT_RATE_MAX_HZ ? rate : 0;
}

static void warn_of_rate(const dt_units *u, const char *begin, const dt_columns *c, double ratio, dt_str *out)
{
    const double rate = rate_that_agrees(c, ratio);
    if (rate > 0) {
        add_line(
            out,
            "%sspeeds are %.3g times those of the positions at %g Hz: is import.frame_rate_hz right? They agree at "
            "import.frame_rate_hz=%.4g; no common unit explains it",
            begin, ratio, c->rate_hz, rate);
    } else {
        add_line(out,
                 "%sspeeds are %.3g times those of the positions, which no common unit explains (%" PRId64
                 " s of driving)",
                 begin, ratio, (int64_t)u->moving_s);
    }
}

/* Do changes of speed follow the accelerations, by whatever factor? how: of speeds as they are, or of magnitudes. */
static bool do_accels_fit(const dt_units *u, int how)
{
    return fabs(u->accel_product[how]) >= CLEAR * sqrt(u->accel_square * u->change_square[how]);
}

static double mean_length(const dt_units *u)
{
    return u->n_lengths > 0 ? u->length / (double)u->n_lengths : NAN;
}

static double mean_width(const dt_units *u)
{
    return u->n_widths > 0 ? u->width / (double)u->n_widths : NAN;
}

/* Are the sizes those of vehicles, by this factor? Without any they may be. */
static bool are_sizes_likely(const dt_units *u, double by)
{
    const double length = mean_length(u) * by, width = mean_width(u) * by;
    return !(length < SHORT_M) && !(length > (u->n_widths > 0 ? LONGEST_M : LONG_M)) && !(width < NARROW_M) &&
           !(width > WIDE_M);
}

/* Sizes have the unit of positions where that makes them those of vehicles. */
static void scale_sizes(const dt_units *u, double by, doubts *d)
{
    if (!are_sizes_likely(u, 1) && are_sizes_likely(u, by)) {
        scale_role(d, DT_ROLE_LENGTH, by);
        scale_role(d, DT_ROLE_WIDTH, by);
    }
}

typedef struct unit {
    const char *name; /* NULL: SI */
    double by;        /* what converts it */
} unit;

/* Speeds against positions: the units of both that explain their ratio. */
static void warn_of_speeds(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    static const unit speeds[] = {{NULL, 1},    {"km/h", KMH},   {"mph", MPH},
                                  {"ft/s", FT}, {"knots", KNOT}, {"cm/s", 1e-2}};
    static const unit positions[] = {{NULL, 1},   {"feet", FT},       {"cm", 1e-2},       {"mm", 1e-3},
                                     {"km", 1e3}, {"inches", 0.0254}, {"miles", 1609.344}};
    const double ratio = median_speed_ratio(u);
    const unit *speed = NULL, *position = NULL;
    double least = NEAR;
    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]) && ratio > 0; i++) {
        for (size_t k = 0; k < sizeof(positions) / sizeof(positions[0]); k++) {
            const double off = fabs(ratio * speeds[i].by / positions[k].by - 1);
            if (i > 0 && k >= N_COMMON) { /* too many: mph and miles are as km/h and km */
                continue;
            }
            if (off < least && fabs(speeds[i].by / positions[k].by - 1) > UNCLEAR) {
                least = off;
                speed = &speeds[i];
                position = &positions[k];
            }
        }
    }
    const double rate = rate_that_agrees(c, ratio);
    if (least > EXACT && rate > 0 && fabs(rate - round(rate)) < EVEN * rate) {
        speed = NULL; /* frames that are counted in twos are not knots */
    }
    if (speed != NULL) {
        add_line(out, "%sspeeds are %.*f times those of the positions, as if %s%s%s%s%s", begin, ratio < 0.1 ? 5 : 2,
                 ratio, speed->name != NULL ? "speeds were in " : "", speed->name != NULL ? speed->name : "",
                 speed->name != NULL && position->name != NULL ? " and " : "",
                 position->name != NULL ? "positions were in " : "", position->name != NULL ? position->name : "");
        scale_role(d, DT_ROLE_SPEED, speed->by);
        scale_role(d, DT_ROLE_VX, speed->by);
        scale_role(d, DT_ROLE_VY, speed->by);
        scale_role(d, DT_ROLE_X, position->by);
        scale_role(d, DT_ROLE_Y, position->by);
        scale_sizes(u, position->by, d);
    } else if (ratio > 0 && fabs(ratio - 1) > DT_UNITS_SPEED_SHARE) {
        warn_of_rate(u, begin, c, ratio, out);
    }
}

/* A column of the table that the map does not convert, but for its sign. */
static bool is_as_written(const dt_columns *c, int role)
{
    return c->at[role] < 0 || fabs(c->by[role].factor) == 1;
}

/* Positions and speeds that agree may both be in feet, unless one is converted already or lanes are those of metres. */
static bool may_motion_be_feet(const dt_units *u, const dt_columns *c)
{
    static const int role[] = {DT_ROLE_X, DT_ROLE_Y, DT_ROLE_SPEED, DT_ROLE_VX, DT_ROLE_VY};
    bool may = u->n_beside < PAIRS_ENOUGH || 2 * u->n_lanes < u->n_beside;
    for (size_t i = 0; i < sizeof(role) / sizeof(role[0]) && c != NULL; i++) {
        may &= is_as_written(c, role[i]);
    }
    return may;
}

/* Accelerations too, unless they can be compared with the speeds: doubt_accels does. */
static void scale_motion(const dt_units *u, const dt_columns *c, double by, doubts *d)
{
    static const int role[] = {DT_ROLE_X,  DT_ROLE_Y,     DT_ROLE_SPEED, DT_ROLE_VX,
                               DT_ROLE_VY, DT_ROLE_ACCEL, DT_ROLE_AX,    DT_ROLE_AY};
    const size_t n = u->checked[DT_UNITS_ACCEL] > 0 && do_accels_fit(u, DT_UNITS_SIGNED) ? 5 : 8;
    for (size_t i = 0; i < n && c != NULL; i++) {
        scale_role(d, role[i], is_as_written(c, role[i]) ? by : 1); /* what is converted already is in no doubt */
    }
}

/* Sizes that are not those of vehicles, where positions and speeds agree. */
static void warn_of_sizes(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    static const unit units[] = {{"feet", FT}, {"cm", 1e-2}, {"km", 1e3}, {"inches", 0.0254}, {"mm", 1e-3}};
    const unit *best = NULL;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && best == NULL; i++) {
        best = are_sizes_likely(u, units[i].by) ? &units[i] : NULL;
    }
    const bool has_length = u->n_lengths > 0;
    add_line(out, "%svehicles are %.3g m %s on average%s%s", begin, has_length ? mean_length(u) : mean_width(u),
             has_length ? "long" : "wide", best != NULL ? ", as if they were in " : "", best != NULL ? best->name : "");
    if (best != NULL) {
        scale_sizes(u, best->by, d);
    }
    if (best == units && may_motion_be_feet(u, c)) {
        scale_motion(u, c, FT, d);
    }
}

/* Positions and speeds that agree may still both be in feet. */
static void doubt_feet(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    const double speed = u->moving_s > 0 && u->n_windows >= ENOUGH ? u->by_speed / u->moving_s : 0;
    const bool is_wide = u->n_beside >= PAIRS_ENOUGH && 50 * u->n_lanes < u->n_beside && 2 * u->n_feet > u->n_beside;
    if (!may_motion_be_feet(u, c)) {
        return;
    }
    if (speed > DT_UNITS_FAST_MPS) {
        add_line(out, "%swhat moves has %.1f m/s on average, as if speeds and positions were in feet", begin, speed);
    } else if (u->fast_s > FAST_SHARE * u->moving_s && u->n_windows >= ENOUGH) {
        add_line(out,
                 "%swhat moves is faster than %g m/s in %.0f %% of the time, as if speeds and positions were in feet",
                 begin, DT_UNITS_FAST_MPS, 100 * u->fast_s / u->moving_s);
    } else if (u->n_steep >= ENOUGH && (double)u->n_steep > STEEP_SHARE * (double)u->n_gains) {
        add_line(
            out,
            "%svehicles that get faster gain more than %g m/s in a second in %.0f %% of the time, as if speeds and "
            "positions were in feet",
            begin, DT_UNITS_STEEP_MPS2, 100 * (double)u->n_steep / (double)u->n_gains);
    } else if (is_wide) {
        add_line(out,
                 "%svehicles side by side are 9 m apart and more (%" PRId64 " pairs), as if positions were in feet and "
                 "lanes 12 ft wide",
                 begin, u->n_beside);
    } else {
        return;
    }
    scale_motion(u, c, FT, d);
}

/* What is not seen by comparing the motion: all of it in feet, sizes in another unit, or length and width swapped. */
static void doubt_lengths(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    const double ratio = median_speed_ratio(u);
    if (c != NULL && c->layout.has_units) {
        return;
    }
    if (mean_width(u) > WIDER * mean_length(u)) {
        add_line(out, "%svehicles are %.3g m wide and %.3g m long on average, as if length and width were swapped",
                 begin, mean_width(u), mean_length(u));
        swap_roles(d, DT_ROLE_LENGTH, DT_ROLE_WIDTH);
        return;
    }
    if (d->is_any || !(ratio == 0 || fabs(ratio - 1) <= DT_UNITS_SPEED_SHARE)) {
        return;
    }
    if (!are_sizes_likely(u, 1)) {
        warn_of_sizes(u, begin, c, d, out);
    } else {
        doubt_feet(u, begin, c, d, out);
    }
}

/* Which turn of headings fits best; conventions first, those of the likelier unit before the others. sign: as they are,
 * or as if speeds were magnitudes. */
static int best_turn(const dt_units *u, int sign)
{
    /* compass is mirrored and a quarter on */
    static const int order[] = {8, 8 + 5, 5, 2, 1, 3, 4, 6, 7, 8 + 2, 8 + 1, 8 + 3, 8 + 4, 8 + 6, 8 + 7};
    static const int of_radians[] = {5, 2, 1, 3, 4, 6, 7, 8, 8 + 5, 8 + 2, 8 + 1, 8 + 3, 8 + 4, 8 + 6, 8 + 7};
    const int *turns = u->heading_most > A_TURN_AT_LEAST ? order : of_radians;
    int best = 0;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        best = u->along[sign][turns[i]] > u->along[sign][best] + 1e-3 * (double)u->n_turns ? turns[i] : best;
    }
    return best;
}

static const char *name_of_turn(int turn)
{
    static const char *const names[DT_UNITS_TURNS] = {
        "",
        "they were a quarter turn too small",
        "they pointed backwards",
        "they were a quarter turn too large",
        "they, or y, were counted the other way",
        "they were compass bearings in radians",
        "they, or x, were counted the other way",
        "they were counted clockwise from south",
        "they were in degrees",
        "they were in degrees and a quarter turn too small",
        "they were in degrees and pointed backwards",
        "they were in degrees and a quarter turn too large",
        "they were in degrees, counted the other way",
        "they were compass bearings in degrees",
        "they were in degrees, counted the other way from -x",
        "they were in degrees, counted clockwise from south",
    };
    return names[turn];
}

/* Where headings come from the velocity: what its two columns would have to be. Those of the acceleration have the same
 * axes where speeds change as they say, which are measured along that heading. */
static void turn_velocity(const dt_units *u, doubts *d, int turn)
{
    static const struct {
        double x, y;
        bool is_swapped;
    } what[8] = {{1, 1, false},  {1, 1, false}, {-1, -1, false}, {1, 1, false},
                 {1, -1, false}, {1, 1, true},  {-1, 1, false},  {1, 1, false}};
    static const int pair[2][2] = {{DT_ROLE_VX, DT_ROLE_VY}, {DT_ROLE_AX, DT_ROLE_AY}};
    for (int i = 0; i < (do_accels_fit(u, DT_UNITS_SIGNED) ? 2 : 1); i++) {
        scale_role(d, pair[i][0], what[turn & 7].x);
        scale_role(d, pair[i][1], what[turn & 7].y);
        if (what[turn & 7].is_swapped) {
            swap_roles(d, pair[i][0], pair[i][1]);
        }
    }
}

static void turn_heading(doubts *d, int turn)
{
    const double offsets[4] = {0, M_PI_2, M_PI, -M_PI_2};
    d->scale[DT_ROLE_HEADING] = (turn & 8 ? DEGREE : 1) * (turn & 4 ? -1 : 1);
    d->offset[DT_ROLE_HEADING] = offsets[turn & 3];
    d->is_any = true;
}

/* Vehicles reverse now and then, not most of the time. */
static bool do_all_reverse(const dt_units *u)
{
    return 2 * u->n_reverse > u->n_turns;
}

/* The sign of speeds is that of an axis, or that of headings that point backwards. */
static void doubt_signs(const dt_units *u, const char *begin, const dt_columns *c, bool is_reverse, doubts *d,
                        dt_str *out)
{
    if (is_reverse) {
        add_line(out, "%sspeeds are negative in %.1f %% of the time, so that vehicles drive backwards", begin,
                 100 * (double)u->n_reverse / (double)u->n_turns);
    } else {
        add_line(out, "%sspeeds are negative although vehicles drive forwards: their sign is that of an axis", begin);
    }
    d->is_magnitude[DT_ROLE_SPEED] = d->is_any = true;
    if (c != NULL && c->at[DT_ROLE_SPEED] < 0 && c->at[DT_ROLE_VX] >= 0) {
        turn_velocity(u, d, 2);
    }
}

static void doubt_turn(const dt_units *u, const char *begin, const dt_columns *c, int turn, doubts *d, dt_str *out)
{
    const bool is_velocity = c != NULL && c->at[DT_ROLE_HEADING] < 0 && c->at[DT_ROLE_VX] >= 0;
    const int how = d->is_magnitude[DT_ROLE_SPEED] ? DT_UNITS_PLAIN : DT_UNITS_SIGNED;
    if (turn == 8) {
        add_line(out, "%sheadings reach %.4g, and a turn is 6.283 rad: as if they were in degrees", begin,
                 u->heading_most);
    } else {
        add_line(out, "%sheadings do not match the direction of travel in %.1f %% of the time, as if %s", begin,
                 100 * (1 - (double)u->turn[how][0] / (double)u->n_turns),
                 is_velocity ? "axes of the velocity were others" : name_of_turn(turn));
    }
    if (is_velocity) {
        turn_velocity(u, d, turn);
    } else {
        turn_heading(d, turn);
    }
}

/* Directions of travel against headings, or against the sign of speeds. */
static void warn_of_headings(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    const double windows = (double)u->n_windows, clear = CLEAR * (double)u->n_turns;
    if (u->n_turns == 0 && windows > 0 && (double)u->n_backwards > DOUBTFUL * windows) {
        add_line(out,
                 "%sspeeds are negative in %.1f %% of the time, and there is no heading: vehicles drive backwards, or "
                 "the sign is that of an axis",
                 begin, 100 * (double)u->n_backwards / windows);
        d->is_magnitude[DT_ROLE_SPEED] = d->is_any = true;
        return;
    }
    const int64_t *as_is = u->turn[DT_UNITS_SIGNED], *plain = u->turn[DT_UNITS_PLAIN];
    int turn = best_turn(u, DT_UNITS_SIGNED);
    const bool are_degrees = u->heading_most > A_TURN_AT_LEAST && (u->n_turns < ENOUGH || turn == 8);
    if (u->n_turns < ENOUGH || ((double)as_is[0] >= clear && !are_degrees && !do_all_reverse(u))) {
        if (are_degrees) {
            doubt_turn(u, begin, c, 8, d, out);
        }
        return;
    }
    const bool is_reverse = do_all_reverse(u);
    if (is_reverse || ((double)as_is[0] < clear && ((double)plain[0] >= clear || (double)as_is[turn] < clear))) {
        turn = (double)plain[0] >= clear ? 0 : best_turn(u, DT_UNITS_PLAIN);
        if ((double)plain[turn] < clear) {
            return;
        }
        doubt_signs(u, begin, c, is_reverse && (double)as_is[0] >= clear, d, out);
    }
    if (turn != 0) {
        doubt_turn(u, begin, c, turn, d, out);
    }
}

double dt_units_heading_offset(const dt_units *u)
{
    int64_t n = 0, below = 0;
    for (int i = 0; i < DT_UNITS_DEGREES; i++) {
        n += u->deviation[i];
    }
    for (int i = 0; i < DT_UNITS_DEGREES && n >= ENOUGH; i++) {
        if (2 * (below + u->deviation[i]) >= n) {
            return u->deviation_sum[i] / u->deviation[i];
        }
        below += u->deviation[i];
    }
    return NAN;
}

/* Headings that are all off by the same angle. */
static void warn_of_rotation(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    const double median = dt_units_heading_offset(u);
    int64_t n = 0, near = 0;
    for (int i = 0; i < DT_UNITS_DEGREES; i++) {
        n += u->deviation[i];
        if (fabs(i + 0.5 - 180 - median) <= NEAR_DEGREES) {
            near += u->deviation[i];
        }
    }
    if (!(fabs(median) >= ROTATED) || (double)near < GATHERED * (double)n ||
        (double)u->turn[DT_UNITS_SIGNED][0] < CLEAR * (double)u->n_turns || d->scale[DT_ROLE_HEADING] != 0) {
        return;
    }
    add_line(out,
             "%sheadings are off by %.1f degrees from the direction of travel (median; %.0f %% of the time within %d "
             "degrees of it)",
             begin, -median, 100 * (double)near / (double)n, NEAR_DEGREES);
    if (c != NULL && c->at[DT_ROLE_HEADING] >= 0) {
        d->offset[DT_ROLE_HEADING] = median * DEGREE;
        d->is_any = true;
    }
}

/* Changes of speed against accelerations. */
static void warn_of_accels(const dt_units *u, const char *begin, doubts *d, dt_str *out)
{
    static const unit known[] = {{NULL, 1},       {"g", G},         {"ft/s^2", FT},
                                 {"km/h/s", KMH}, {"cm/s^2", 1e-2}, {"mph/s", MPH}};
    const int how = d->is_magnitude[DT_ROLE_SPEED] ? DT_UNITS_PLAIN : DT_UNITS_SIGNED;
    const double speed = d->scale[DT_ROLE_SPEED] != 0 ? d->scale[DT_ROLE_SPEED] : 1;
    const double slope = u->accel_square > 0 ? u->accel_product[how] / u->accel_square * speed : 1;
    if (u->checked[DT_UNITS_ACCEL] == 0 || !do_accels_fit(u, how) || fabs(slope - 1) < DT_UNITS_CHANGE_SHARE) {
        return;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (fabs(fabs(slope) / known[i].by - 1) < 2 * NEAR) {
            const double factor = slope < 0 ? -known[i].by : known[i].by;
            add_line(out, "%schanges of speed are %.3g times the accelerations, as if they %s%s%s", begin, slope,
                     known[i].name != NULL ? "were in " : "had the other sign",
                     known[i].name != NULL ? known[i].name : "",
                     known[i].name != NULL && slope < 0 ? ", with the other sign" : "");
            scale_role(d, DT_ROLE_ACCEL, factor);
            scale_role(d, DT_ROLE_AX, factor);
            scale_role(d, DT_ROLE_AY, factor);
            return;
        }
    }
}

void dt_units_append_shares(const int64_t checked[DT_UNITS_N], const int64_t off[DT_UNITS_N], double heading_off,
                            dt_str *out)
{
    bool is_first = true;
    for (int q = 0; q < DT_UNITS_N; q++) {
        if (checked[q] > 0) {
            dt_str_addf(out, "%s%s %.3g %% of %" PRId64 " rows (limit: %s)",
                        is_first ? "inconsistent with the motion: " : ", ", dt_units_quantity[q],
                        100.0 * (double)off[q] / (double)checked[q], checked[q], dt_units_limit[q]);
            if (q == DT_UNITS_HEADING && !isnan(heading_off)) {
                dt_str_addf(out, "; median %.1f degrees", fabs(heading_off) < 0.05 ? 0 : -heading_off);
            }
            is_first = false;
        }
    }
    dt_str_add(out, is_first ? "" : "\n");
}

static void report_shares(const dt_units *u, const char *begin, dt_str *out)
{
    for (int q = 0; q < DT_UNITS_N; q++) {
        const double share = u->checked[q] > 0 ? (double)u->off[q] / (double)u->checked[q] : 0;
        if (share > DOUBTFUL) {
            add_line(out, "%s%s is inconsistent with the motion in %.1f %% of %" PRId64 " rows: by more than %s", begin,
                     dt_units_quantity[q], 100 * share, u->checked[q], dt_units_limit[q]);
        }
    }
}

static void warn_of_jumps(const dt_units *u, const char *begin, dt_str *out)
{
    if (u->n_jumps > 0 && 10 * u->n_jumps < u->n_windows + 10) {
        const bool has_line = u->jump_line >= 0;
        add_line(out, "%spositions jump %" PRId64 " times: %s %" PRId64 " by %.4g m in %.3g s, which no speed explains",
                 begin, u->n_jumps, has_line ? "in line" : "vehicle", has_line ? u->jump_line : u->jump_id, u->jump_m,
                 u->jump_s);
    }
}

/* The whole map, so that it can be used as is. */
static void suggest_columns(const dt_columns *c, const doubts *d, dt_str *out)
{
    dt_str map = {0};
    for (int r = 0; r < DT_N_ROLES; r++) {
        const double by = d->scale[r] != 0 ? d->scale[r] : 1;
        const int from = d->from[r] != 0 ? d->from[r] : r;
        const dt_conversion how = {.factor = c->by[from].factor * by,
                                   .offset = c->by[from].offset * by + d->offset[r],
                                   .is_magnitude = c->by[from].is_magnitude || d->is_magnitude[r]};
        if (c->at[r] < 0) {
            continue;
        }
        dt_str_add(&map, map.bytes > 0 ? "," : "");
        dt_columns_write(r, c->header[c->at[from]], &how, &map);
    }
    add_line(out, "if so, import it again with --set 'import.columns=%s'", dt_str_text(&map));
    out->failed |= map.failed;
    dt_str_fini(&map);
}

void dt_units_report(const dt_units *u, const char *begin, const dt_columns *c, dt_str *out)
{
    doubts d = {.is_any = false};
    warn_of_speeds(u, begin, c, &d, out);
    doubt_lengths(u, begin, c, &d, out);
    warn_of_headings(u, begin, c, &d, out);
    warn_of_rotation(u, begin, c, &d, out);
    warn_of_accels(u, begin, &d, out);
    warn_of_jumps(u, begin, out);
    report_shares(u, begin, out);
    if (d.is_any && c != NULL) {
        suggest_columns(c, &d, out);
    }
}
