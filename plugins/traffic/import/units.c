/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/import/units.h"

#include <math.h>

#define DEGREE     (M_PI / 180)
#define WINDOW_S   1.0
#define MOVES_MPS  1.0 /* below, positions are mostly noise */
#define SPEED_M    0.2
#define TURNS_MPS  2.0
#define TURN       (30 * DEGREE)
#define CHANGE_MPS 0.5
#define STRAIGHT   (5 * DEGREE) /* what a heading may turn in a window whose direction counts */
#define PAIR_M     25.0         /* along the way: lanes of farther ones may bend */
#define PAIR_TURN  (10 * DEGREE)
#define JUMP_M     100.0
#define JUMP_TIMES 20.0 /* according to speeds */
#define BINS_FROM  1e-4 /* ratios */
#define BINS_TO    1e4

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
    u->n_reverse += speed < 0;
    for (int turn = 0; turn < DT_UNITS_TURNS; turn++) {
        double way[2] = {0, 0};
        direction_of_heading(w->heading, turn, way);
        direction_of_heading(row->heading, turn, way);
        const double along = cosine(way, d);
        const bool is_right = sign * along >= cos(TURN);
        u->turn[DT_UNITS_SIGNED][turn] += is_right;
        u->along[DT_UNITS_SIGNED][turn] += sign * along;
        u->turn[DT_UNITS_PLAIN][turn] += along >= cos(TURN);
        u->along[DT_UNITS_PLAIN][turn] += along;
        if (turn == 0) {
            add_deviation(u, way, d, sign);
            u->checked[DT_UNITS_HEADING] += w->rows;
            if (!is_right) {
                u->off[DT_UNITS_HEADING] += w->rows;
            }
        }
    }
    u->n_turns++;
}

/* Lanes are 2.2 to 6 m wide, which are 7 to 20 ft; the second lane of metres is as far as the first of wide feet. */
void dt_units_add_pair(dt_units *u, const double a[3], const double b[3])
{
    const double x = b[0] - a[0], y = b[1] - a[1], c = cos(a[2]), s = sin(a[2]);
    const double along = x * c + y * s, aside = fabs(y * c - x * s);
    if (fabs(along) <= PAIR_M && cos(b[2] - a[2]) >= cos(PAIR_TURN) && aside >= 2 && aside < 15) {
        u->n_beside++;
        u->n_lanes += aside < 6;
        u->n_feet += aside >= 9;
    }
}

void dt_units_add_frame(dt_units *u, double rate_hz, int64_t frame, const dt_vehicle *v, uint32_t n)
{
    const int64_t every = rate_hz < 1 ? 1 : llround(rate_hz);
    n = n < DT_UNITS_PAIRED ? n : DT_UNITS_PAIRED;
    for (uint32_t i = 0; i < n && frame % every == 0; i++) {
        for (uint32_t j = 0; j < i; j++) {
            dt_units_add_pair(u, (const double[3]){v[i].x, v[i].y, v[i].heading},
                              (const double[3]){v[j].x, v[j].y, v[j].heading});
        }
    }
}

static void check_accels(dt_units *u, const dt_units_window *w, const dt_table_row *row)
{
    const double change = row->speed - w->speed;
    const double most = fmax(fabs(w->accel_range[0]), fabs(w->accel_range[1])) * w->s;
    const double may = CHANGE_MPS * fmax(1, w->s) + DT_UNITS_CHANGE_SHARE * most;
    if (!w->has_accel || fmax(fabs(change), fabs(w->change)) < CHANGE_MPS) {
        return;
    }
    u->checked[DT_UNITS_ACCEL] += w->rows;
    if (change < w->accel_range[0] * w->s - may || change > w->accel_range[1] * w->s + may) {
        u->off[DT_UNITS_ACCEL] += w->rows;
    }
    const double plain = fabs(row->speed) - fabs(w->speed);
    u->accel_product[DT_UNITS_SIGNED] += w->change * change;
    u->accel_product[DT_UNITS_PLAIN] += w->change * plain;
    u->accel_square += w->change * w->change;
    u->change_square[DT_UNITS_SIGNED] += change * change;
    u->change_square[DT_UNITS_PLAIN] += plain * plain;
}

static void close_window(dt_units *u, const dt_units_window *w, const dt_table_row *row)
{
    const double d[2] = {row->x - w->x, row->y - w->y}, distance = hypot(d[0], d[1]);
    const double least = w->magnitude_range[0] * w->s, most = w->magnitude_range[1] * w->s;
    const double may = DT_UNITS_SPEED_SHARE * distance + SPEED_M * fmax(1, w->s);
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
        if (w->path > DT_UNITS_FAST_MPS * w->s) {
            u->fast_s += w->s;
        }
        const double gain = fabs(row->speed) - fabs(w->speed);
        u->n_gains += gain > CHANGE_MPS * w->s;
        u->n_steep += gain > DT_UNITS_STEEP_MPS2 * w->s;
    }
    if (distance > 0 && fmax(distance, w->path) > TURNS_MPS * w->s) {
        check_headings(u, w, row, d);
    }
    check_accels(u, w, row);
}

void dt_units_add_row(dt_units *u, dt_units_window *w, const dt_table_row *row, double before_s, double x, double y)
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
