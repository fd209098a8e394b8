/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/import/units.h"

#include <inttypes.h>
#include <math.h>

#define FT     0.3048
#define KMH    (1 / 3.6)
#define MPH    0.44704
#define KNOT   (1852.0 / 3600)
#define G      9.80665
#define DEGREE (M_PI / 180)

#define WINDOW_S        1.0
#define MOVES_MPS       1.0  /* below, positions are mostly noise */
#define SPEED_SHARE     0.05 /* by so much of its distance a window may be off, and by so much more: */
#define SPEED_M         0.2
#define TURNS_MPS       2.0
#define TURN            (30 * DEGREE)
#define CHANGE_SHARE    0.1
#define CHANGE_MPS      0.5
#define ENOUGH          5    /* windows: below, nothing is concluded */
#define NEAR            0.03 /* of a ratio that a unit explains; km/h and ft/s are 9 % apart */
#define EXACT           0.01 /* of a ratio: a unit that is off by more explains it worse than an even frame rate */
#define EVEN            5e-3 /* of a frame rate: so close to a whole number */
#define CLEAR           0.9  /* share of windows that a conversion must explain */
#define DOUBTFUL        0.05 /* share of inconsistent rows that is worth a warning */
#define LONG_M          9.0  /* mean length: cars are 4.5 m, which is 15 ft */
#define WIDE_M          4.0  /* mean width: cars are 1.8 m, which is 6 ft */
#define FAST_MPS        50.0 /* mean speed of what moves: 180 km/h */
#define FAST_SHARE      0.1  /* or of the time in which so fast */
#define STEEP_MPS2      5.0  /* no car gets faster than that for a second */
#define STEEP_SHARE     0.02
#define STRAIGHT        (5 * DEGREE) /* what a heading may turn in a window whose direction counts */
#define ROTATED         5.0          /* degrees: a median that is worth a warning */
#define GATHERED        0.6          /* share of windows that are so near to the median: */
#define NEAR_DEGREES    5
#define PAIR_M          25.0 /* along the way: lanes of farther ones may bend */
#define PAIR_TURN       (10 * DEGREE)
#define PAIRS_ENOUGH    50
#define A_TURN_AT_LEAST 6.4 /* rad: a little more than a turn, which some count to */
#define JUMP_M          100.0
#define JUMP_TIMES      20.0 /* according to speeds */
#define BINS_FROM       1e-4 /* ratios */
#define BINS_TO         1e4

const char *const dt_units_quantity[DT_UNITS_N] = {"speed", "heading", "acceleration"};
const char *const dt_units_limit[DT_UNITS_N] = {"5 % and 0.2 m of the distance of a second",
                                                "30 degrees from the direction of travel",
                                                "10 % and 0.5 m/s of the change of speed of a second"};

/* ---- windows ----------------------------------------------------------------------------------------------------- */

static void widen_range(double range[2], double v)
{
    range[0] = fmin(range[0], v);
    range[1] = fmax(range[1], v);
}

static void open_window(dt_units_window *w, const dt_table_row *row)
{
    const double magnitude = fabs(row->speed);
    *w = (dt_units_window){.is_open = true,
                           .has_heading = !isnan(row->heading),
                           .has_accel = !isnan(row->accel),
                           .x = row->x,
                           .y = row->y,
                           .heading = row->heading,
                           .speed = row->speed,
                           .last_speed = row->speed,
                           .last_accel = row->accel,
                           .speed_range = {row->speed, row->speed},
                           .magnitude_range = {magnitude, magnitude},
                           .accel_range = {row->accel, row->accel}};
}

/* turn = 8 for degrees, 4 mirrored, 0..3 quarters: the direction that a heading would be. */
static void direction_of_heading(double heading, int turn, double out[2])
{
    const double angle = (turn & 8 ? heading * DEGREE : heading) * (turn & 4 ? -1 : 1);
    const double c = cos(angle), s = sin(angle);
    static const double rotation[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}}; /* cos and sin of quarters */
    const double *r = rotation[turn & 3];
    out[0] += c * r[0] - s * r[1];
    out[1] += s * r[0] + c * r[1];
}

/* Cosine of the angle between a direction and a way. */
static double cosine(const double way[2], const double d[2])
{
    const double size = hypot(way[0], way[1]) * hypot(d[0], d[1]);
    return size > 0 ? (way[0] * d[0] + way[1] * d[1]) / size : 0;
}

/* How far the heading is from the direction of travel, where the way is straight. */
static void add_deviation(dt_units *u, const double way[2], const double d[2], double sign)
{
    const double along = sign * (way[0] * d[0] + way[1] * d[1]), aside = sign * (way[0] * d[1] - way[1] * d[0]);
    if (hypot(way[0], way[1]) >= 2 * cos(STRAIGHT / 2)) {
        const double degrees = atan2(aside, along) / DEGREE;
        const int at = (int)floor(degrees + 180), bin = at < DT_UNITS_DEGREES ? at : DT_UNITS_DEGREES - 1;
        u->deviation[bin]++;
        u->deviation_sum[bin] += degrees;
    }
}

static void check_headings(dt_units *u, const dt_units_window *w, const dt_table_row *row, const double d[2])
{
    const double speed = w->speed + row->speed, sign = speed < 0 ? -1 : 1;
    if (!w->has_heading) {
        u->n_backwards += speed < 0;
        return;
    }
    for (int turn = 0; turn < DT_UNITS_TURNS; turn++) {
        double way[2] = {0, 0};
        direction_of_heading(w->heading, turn, way);
        direction_of_heading(row->heading, turn, way);
        const double along = cosine(way, d);
        const bool is_right = sign * along >= cos(TURN);
        u->turn[turn] += is_right;
        u->along[turn] += sign * along;
        if (turn == 0) {
            u->without_sign += along >= cos(TURN);
            add_deviation(u, way, d, sign);
            u->checked[DT_UNITS_HEADING] += w->rows;
            if (!is_right) {
                u->off[DT_UNITS_HEADING] += w->rows;
            }
        }
    }
    u->n_turns++;
}

double dt_units_heading_off(const dt_units *u)
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

/* Lanes are 2.2 to 6 m wide, which are 7 to 20 ft; the second lane of metres is as far as the first of wide feet. */
void dt_units_pair(dt_units *u, const double a[3], const double b[3])
{
    const double x = b[0] - a[0], y = b[1] - a[1], c = cos(a[2]), s = sin(a[2]);
    const double along = x * c + y * s, aside = fabs(y * c - x * s);
    if (fabs(along) <= PAIR_M && cos(b[2] - a[2]) >= cos(PAIR_TURN) && aside >= 2 && aside < 15) {
        u->n_beside++;
        u->n_lanes += aside < 6;
        u->n_feet += aside >= 9;
    }
}

void dt_units_frame(dt_units *u, double rate_hz, int64_t frame, const dt_vehicle *v, uint32_t n)
{
    const int64_t every = rate_hz < 1 ? 1 : llround(rate_hz);
    n = n < DT_UNITS_PAIRED ? n : DT_UNITS_PAIRED;
    for (uint32_t i = 0; i < n && frame % every == 0; i++) {
        for (uint32_t j = 0; j < i; j++) {
            dt_units_pair(u, (const double[3]){v[i].x, v[i].y, v[i].heading},
                          (const double[3]){v[j].x, v[j].y, v[j].heading});
        }
    }
}

static void check_accels(dt_units *u, const dt_units_window *w, const dt_table_row *row)
{
    const double change = row->speed - w->speed;
    const double most = fmax(fabs(w->accel_range[0]), fabs(w->accel_range[1])) * w->s;
    const double may = CHANGE_MPS * fmax(1, w->s) + CHANGE_SHARE * most;
    if (!w->has_accel || fmax(fabs(change), fabs(w->change)) < CHANGE_MPS) {
        return;
    }
    u->checked[DT_UNITS_ACCEL] += w->rows;
    if (change < w->accel_range[0] * w->s - may || change > w->accel_range[1] * w->s + may) {
        u->off[DT_UNITS_ACCEL] += w->rows;
    }
    u->accel_product += w->change * change;
    u->accel_square += w->change * w->change;
    u->change_square += change * change;
}

static void close_window(dt_units *u, const dt_units_window *w, const dt_table_row *row)
{
    const double d[2] = {row->x - w->x, row->y - w->y}, distance = hypot(d[0], d[1]);
    const double least = w->magnitude_range[0] * w->s, most = w->magnitude_range[1] * w->s;
    const double may = SPEED_SHARE * distance + SPEED_M * fmax(1, w->s);
    if (fmax(distance, w->path) > MOVES_MPS * w->s) {
        const bool is_backwards = !w->has_heading && w->speed_range[1] < 0;
        u->checked[DT_UNITS_SPEED] += w->rows;
        if (distance < least - may || distance > most + may || is_backwards) {
            u->off[DT_UNITS_SPEED] += w->rows;
        }
    }
    if (w->path > MOVES_MPS * w->s && distance > 0) {
        const double at = log(w->path / distance / BINS_FROM) / log(BINS_TO / BINS_FROM) * DT_UNITS_BINS;
        const int bin = (int)fmin(fmax(at, 0), DT_UNITS_BINS - 1);
        u->bin[bin]++;
        u->bin_path[bin] += w->path;
        u->bin_distance[bin] += distance;
        u->n_windows++;
        u->moving_s += w->s;
        u->by_speed += w->path;
        if (w->path > FAST_MPS * w->s) {
            u->fast_s += w->s;
        }
        const double gain = fabs(row->speed) - fabs(w->speed);
        u->n_gains += gain > CHANGE_MPS * w->s;
        u->n_steep += gain > STEEP_MPS2 * w->s;
    }
    if (distance > 0 && fmax(distance, w->path) > TURNS_MPS * w->s) {
        check_headings(u, w, row, d);
    }
    check_accels(u, w, row);
}

void dt_units_add(dt_units *u, dt_units_window *w, const dt_table_row *row, double before_s, double x, double y)
{
    const double step = hypot(row->x - x, row->y - y), speed = fabs(row->speed);
    if (!isnan(row->length)) {
        u->length += row->length;
        u->n_lengths++;
    }
    if (!isnan(row->width)) {
        u->width += row->width;
        u->n_widths++;
    }
    if (!isnan(row->heading)) {
        u->heading_most = fmax(u->heading_most, fabs(row->heading));
    }
    if (!(before_s > 0) || !w->is_open) {
        open_window(w, row);
        return;
    }
    if (step > JUMP_M && step > JUMP_TIMES * (speed + MOVES_MPS) * before_s && u->n_jumps++ == 0) {
        u->jump_m = step;
        u->jump_s = before_s;
        u->jump_line = row->line;
        u->jump_id = row->id;
    }
    w->s += before_s;
    w->rows++;
    w->path += 0.5 * (fabs(w->last_speed) + speed) * before_s;
    w->change += 0.5 * (w->last_accel + row->accel) * before_s;
    w->has_heading &= !isnan(row->heading);
    w->has_accel &= !isnan(row->accel);
    widen_range(w->speed_range, row->speed);
    widen_range(w->magnitude_range, speed);
    widen_range(w->accel_range, row->accel);
    w->last_speed = row->speed;
    w->last_accel = row->accel;
    if (w->s >= WINDOW_S - 1e-9) {
        close_window(u, w, row);
        open_window(w, row);
    }
}

/* ---- doubts ------------------------------------------------------------------------------------------------------ */

typedef struct doubts { /* what would convert each role: multiplied by scale, plus offset */
    double scale[DT_N_ROLES], offset[DT_N_ROLES];
    bool is_magnitude[DT_N_ROLES];
    bool is_swapped; /* vx and vy */
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

static void scale_role(doubts *d, int role, double by)
{
    d->scale[role] = by;
    d->is_any |= by != 1;
}

/* How many times as far vehicles come by their speeds as by their positions: of the windows near the median, so that
 * jumps and vehicles that are stopped show nothing. 0: too few. */
static double ratio_of(const dt_units *u)
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

static void doubt_rate(const dt_units *u, const char *begin, const dt_columns *c, double ratio, dt_str *out)
{
    const double rate = rate_that_agrees(c, ratio);
    if (rate > 0) {
        add_line(
            out,
            "%sspeeds are %.3g times those of the positions at %g Hz: is import.frame_rate_hz right? They agree at "
            "import.frame_rate_hz=%.4g; no unit explains it",
            begin, ratio, c->rate_hz, rate);
    } else {
        add_line(out,
                 "%sspeeds are %.3g times those of the positions, which no unit explains (%" PRId64 " s of driving)",
                 begin, ratio, (int64_t)u->moving_s);
    }
}

/* Speeds against positions. */
static void doubt_speeds(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    static const struct {
        const char *speeds, *positions; /* NULL: SI */
        double speed, position;         /* what converts them */
    } known[] = {{"km/h", NULL, KMH, 1},   {"mph", NULL, MPH, 1},      {"ft/s", NULL, FT, 1},
                 {"knots", NULL, KNOT, 1}, {"cm/s", NULL, 1e-2, 1},    {NULL, "feet", 1, FT},
                 {NULL, "cm", 1, 1e-2},    {NULL, "mm", 1, 1e-3},      {NULL, "km", 1, 1e3},
                 {"mph", "feet", MPH, FT}, {"knots", "feet", KNOT, FT}};
    const double ratio = ratio_of(u);
    int best = -1;
    double least = NEAR;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && ratio > 0; i++) {
        const double off = fabs(ratio * known[i].speed / known[i].position - 1);
        best = off < least ? (int)i : best;
        least = fmin(least, off);
    }
    const double rate = rate_that_agrees(c, ratio);
    if (least > EXACT && rate > 0 && fabs(rate - round(rate)) < EVEN * rate) {
        best = -1; /* frames that are counted in twos are not knots */
    }
    if (best >= 0) {
        const char *speeds = known[best].speeds, *positions = known[best].positions;
        add_line(out, "%sspeeds are %.2f times those of the positions, as if %s%s%s%s%s", begin, ratio,
                 speeds != NULL ? "speeds were in " : "", speeds != NULL ? speeds : "",
                 speeds != NULL && positions != NULL ? " and " : "", positions != NULL ? "positions were in " : "",
                 positions != NULL ? positions : "");
        scale_role(d, DT_ROLE_SPEED, known[best].speed);
        scale_role(d, DT_ROLE_VX, known[best].speed);
        scale_role(d, DT_ROLE_VY, known[best].speed);
        scale_role(d, DT_ROLE_X, known[best].position);
        scale_role(d, DT_ROLE_Y, known[best].position);
    } else if (ratio > 0 && fabs(ratio - 1) > SPEED_SHARE) {
        doubt_rate(u, begin, c, ratio, out);
    }
}

/* Positions and speeds that agree may still both be in feet. */
static void doubt_sizes(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    const double length = u->n_lengths > 0 ? u->length / (double)u->n_lengths : 0;
    const double speed = u->moving_s > 0 && u->n_windows >= ENOUGH ? u->by_speed / u->moving_s : 0;
    const double ratio = ratio_of(u);
    const bool agree = ratio == 0 || fabs(ratio - 1) <= SPEED_SHARE;
    const bool is_narrow = u->n_widths > 0 && u->width < WIDE_M * (double)u->n_widths; /* long ones, not feet */
    const bool is_known = c != NULL && c->layout.has_units;
    if (d->is_any || !agree || is_known) {
        return;
    }
    const bool is_wide = u->n_beside >= PAIRS_ENOUGH && 50 * u->n_lanes < u->n_beside && 2 * u->n_feet > u->n_beside;
    if (length > LONG_M && !is_narrow) {
        add_line(out, "%svehicles are %.1f m long on average, as if they were in feet", begin, length);
    } else if (speed > FAST_MPS) {
        add_line(out, "%swhat moves has %.1f m/s on average, as if speeds and positions were in feet", begin, speed);
    } else if (u->fast_s > FAST_SHARE * u->moving_s && u->n_windows >= ENOUGH) {
        add_line(out,
                 "%swhat moves is faster than %g m/s in %.0f %% of the time, as if speeds and positions were in feet",
                 begin, FAST_MPS, 100 * u->fast_s / u->moving_s);
    } else if (u->n_steep >= ENOUGH && (double)u->n_steep > STEEP_SHARE * (double)u->n_gains) {
        add_line(
            out,
            "%svehicles that get faster gain more than %g m/s in a second in %.0f %% of the time, as if speeds and "
            "positions were in feet",
            begin, STEEP_MPS2, 100 * (double)u->n_steep / (double)u->n_gains);
    } else if (is_wide) {
        add_line(out,
                 "%svehicles side by side are 9 m apart and more (%" PRId64 " pairs), as if positions were in feet and "
                 "lanes 12 ft wide",
                 begin, u->n_beside);
    } else {
        return;
    }
    static const int role[] = {DT_ROLE_X,     DT_ROLE_Y,  DT_ROLE_SPEED, DT_ROLE_ACCEL, DT_ROLE_LENGTH,
                               DT_ROLE_WIDTH, DT_ROLE_VX, DT_ROLE_VY,    DT_ROLE_AX,    DT_ROLE_AY};
    for (size_t i = 0; i < sizeof(role) / sizeof(role[0]) && c != NULL; i++) {
        scale_role(d, role[i], c->by[role[i]].factor == 1 ? FT : 1); /* what is converted already is in no doubt */
    }
}

/* Which turn of headings fits best; conventions first, those of the likelier unit before the others. */
static int best_turn(const dt_units *u)
{
    /* compass is mirrored and a quarter on */
    static const int order[] = {8, 8 + 5, 5, 2, 1, 3, 4, 6, 7, 8 + 2, 8 + 1, 8 + 3, 8 + 4, 8 + 6, 8 + 7};
    static const int of_radians[] = {5, 2, 1, 3, 4, 6, 7, 8, 8 + 5, 8 + 2, 8 + 1, 8 + 3, 8 + 4, 8 + 6, 8 + 7};
    const int *turns = u->heading_most > A_TURN_AT_LEAST ? order : of_radians;
    int best = 0;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        best = u->along[turns[i]] > u->along[best] + 1e-3 * (double)u->n_turns ? turns[i] : best;
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

/* Where headings come from the velocity: what its two columns would have to be. */
static void turn_velocity(doubts *d, int turn)
{
    static const struct {
        double vx, vy;
        bool is_swapped;
    } what[8] = {{1, 1, false},  {1, 1, false}, {-1, -1, false}, {1, 1, false},
                 {1, -1, false}, {1, 1, true},  {-1, 1, false},  {1, 1, false}};
    scale_role(d, DT_ROLE_VX, what[turn & 7].vx * (d->scale[DT_ROLE_VX] != 0 ? d->scale[DT_ROLE_VX] : 1));
    scale_role(d, DT_ROLE_VY, what[turn & 7].vy * (d->scale[DT_ROLE_VY] != 0 ? d->scale[DT_ROLE_VY] : 1));
    d->is_swapped = what[turn & 7].is_swapped;
    d->is_any |= d->is_swapped;
}

static void turn_heading(doubts *d, int turn)
{
    const double offsets[4] = {0, M_PI_2, M_PI, -M_PI_2};
    d->scale[DT_ROLE_HEADING] = (turn & 8 ? DEGREE : 1) * (turn & 4 ? -1 : 1);
    d->offset[DT_ROLE_HEADING] = offsets[turn & 3];
    d->is_any = true;
}

/* Directions of travel against headings, or against the sign of speeds. */
static void doubt_headings(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    const double n = (double)u->n_turns, windows = (double)u->n_windows;
    const bool is_velocity = c != NULL && c->at[DT_ROLE_HEADING] < 0 && c->at[DT_ROLE_VX] >= 0;
    if (u->n_turns == 0 && windows > 0 && (double)u->n_backwards > DOUBTFUL * windows) {
        add_line(out,
                 "%sspeeds are negative in %.1f %% of the time, and there is no heading: vehicles drive backwards, or "
                 "the sign is that of an axis",
                 begin, 100 * (double)u->n_backwards / windows);
        d->is_magnitude[DT_ROLE_SPEED] = d->is_any = true;
        return;
    }
    const int turn = best_turn(u);
    const bool are_degrees = u->heading_most > A_TURN_AT_LEAST && (u->n_turns < ENOUGH || turn == 8);
    if (u->n_turns < ENOUGH || ((double)u->turn[0] >= CLEAR * n && !are_degrees)) {
        if (are_degrees) {
            add_line(out, "%sheadings reach %.4g, and a turn is 6.283 rad: as if they were in degrees", begin,
                     u->heading_most);
            turn_heading(d, 8);
        }
        return;
    }
    if ((double)u->without_sign >= CLEAR * n && (double)u->turn[0] < CLEAR * n) {
        add_line(out,
                 "%sspeeds are negative although vehicles drive along their headings: their sign is that of an axis",
                 begin);
        d->is_magnitude[DT_ROLE_SPEED] = d->is_any = true;
        if (c != NULL && c->at[DT_ROLE_SPEED] < 0 && c->at[DT_ROLE_VX] >= 0) {
            turn_velocity(d, 2);
        }
    } else if ((double)u->turn[turn] >= CLEAR * n) {
        if (turn == 8) {
            add_line(out, "%sheadings reach %.4g, and a turn is 6.283 rad: as if they were in degrees", begin,
                     u->heading_most);
        } else {
            add_line(out, "%sheadings do not match the direction of travel in %.1f %% of the time, as if %s", begin,
                     100 * (1 - (double)u->turn[0] / n),
                     is_velocity ? "axes of the velocity were others" : name_of_turn(turn));
        }
        if (is_velocity) {
            turn_velocity(d, turn);
        } else {
            turn_heading(d, turn);
        }
    }
}

/* Headings that are all off by the same angle. */
static void doubt_rotation(const dt_units *u, const char *begin, const dt_columns *c, doubts *d, dt_str *out)
{
    const double median = dt_units_heading_off(u);
    int64_t n = 0, near = 0;
    for (int i = 0; i < DT_UNITS_DEGREES; i++) {
        n += u->deviation[i];
        if (fabs(i + 0.5 - 180 - median) <= NEAR_DEGREES) {
            near += u->deviation[i];
        }
    }
    if (!(fabs(median) >= ROTATED) || (double)near < GATHERED * (double)n ||
        (double)u->turn[0] < CLEAR * (double)u->n_turns || d->scale[DT_ROLE_HEADING] != 0) {
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
static void doubt_accels(const dt_units *u, const char *begin, doubts *d, dt_str *out)
{
    static const struct {
        const char *what;
        double factor;
    } known[] = {{"they had the other sign", -1},
                 {"they were in g", G},
                 {"they were in ft/s^2", FT},
                 {"they were in km/h/s", KMH},
                 {"they were in cm/s^2", 1e-2},
                 {"they were in mph/s", MPH},
                 {"they were in g, with the other sign", -G}};
    const double speed = d->scale[DT_ROLE_SPEED] != 0 ? d->scale[DT_ROLE_SPEED] : 1;
    const double slope = u->accel_square > 0 ? u->accel_product / u->accel_square * speed : 1;
    const double fit = sqrt(u->accel_square * u->change_square);
    if (u->checked[DT_UNITS_ACCEL] == 0 || fabs(u->accel_product) < CLEAR * fit || fabs(slope - 1) < CHANGE_SHARE) {
        return;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (fabs(slope / known[i].factor - 1) < 2 * NEAR) {
            add_line(out, "%schanges of speed are %.3g times the accelerations, as if %s", begin, slope, known[i].what);
            scale_role(d, DT_ROLE_ACCEL, known[i].factor);
            scale_role(d, DT_ROLE_AX, known[i].factor);
            scale_role(d, DT_ROLE_AY, known[i].factor);
            return;
        }
    }
}

void dt_units_shares(const int64_t checked[DT_UNITS_N], const int64_t off[DT_UNITS_N], double heading_off, dt_str *out)
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

static void doubt_jumps(const dt_units *u, const char *begin, dt_str *out)
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
        const int from = !d->is_swapped ? r : r == DT_ROLE_VX ? DT_ROLE_VY : r == DT_ROLE_VY ? DT_ROLE_VX : r;
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
    doubt_speeds(u, begin, c, &d, out);
    doubt_sizes(u, begin, c, &d, out);
    doubt_headings(u, begin, c, &d, out);
    doubt_rotation(u, begin, c, &d, out);
    doubt_accels(u, begin, &d, out);
    doubt_jumps(u, begin, out);
    report_shares(u, begin, out);
    if (d.is_any && c != NULL) {
        suggest_columns(c, &d, out);
    }
}
