/* SPDX-License-Identifier: Apache-2.0
 *
 * Are the numbers of a recording consistent, and in SI units? Position, speed, heading and acceleration of a vehicle
 * depend on each other. They are compared over windows of a second: the distance with the speeds, the direction of
 * travel with the headings, the change of speed with the accelerations. The share of inconsistent rows is reported for
 * each quantity, and where one conversion makes them consistent, the column map that applies it. A doubt is a warning,
 * never an error. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_UNITS_H
#define DTRAIN_PLUGINS_TRAFFIC_UNITS_H

#include "traffic/import/columns.h"
#include "traffic/import/sort.h"
#include "traffic/store/store.h"
#include "traffic/store/tracker.h"

enum { DT_UNITS_SPEED, DT_UNITS_HEADING, DT_UNITS_ACCEL, DT_UNITS_N };
enum { DT_UNITS_SIGNED, DT_UNITS_PLAIN }; /* speeds as they are; their magnitudes */
enum { DT_UNITS_TURNS = 16, DT_UNITS_BINS = 1600, DT_UNITS_DEGREES = 360, DT_UNITS_PAIRED = 64 };

#define DT_UNITS_SPEED_SHARE  0.05 /* by so much of its distance a window may be off, besides 0.2 m a second */
#define DT_UNITS_CHANGE_SHARE 0.1  /* of a change of speed */
#define DT_UNITS_FAST_MPS     50.0 /* mean speed of what moves: 180 km/h */
#define DT_UNITS_STEEP_MPS2   5.0  /* no car gets faster than that for a second */

typedef struct dt_units {                         /* of one file, or of a store; zeroed at first */
    int64_t checked[DT_UNITS_N], off[DT_UNITS_N]; /* rows: compared, and inconsistent */
    int64_t n_windows, n_turns;                   /* with a distance, with headings */
    uint32_t bin[DT_UNITS_BINS];                  /* windows by the logarithm of path over distance */
    double bin_path[DT_UNITS_BINS], bin_distance[DT_UNITS_BINS];
    int64_t turn[2][DT_UNITS_TURNS]; /* windows whose headings would be right if they were turned so; [1]: and if */
    double along[2][DT_UNITS_TURNS]; /* speeds were magnitudes; sums of cosines to the direction of travel */
    int64_t n_backwards, n_reverse;  /* windows of negative speeds without a heading, and with one */
    double accel_product[2], accel_square, change_square[2]; /* [1]: if speeds were magnitudes */
    int64_t n_jumps, jump_line, jump_id; /* the line of the table, negative: there is none; the vehicle */
    double jump_m, jump_s;
    double moving_s, by_speed, fast_s, length, width, heading_most;
    int64_t n_lengths, n_widths;
    uint32_t deviation[DT_UNITS_DEGREES]; /* straight windows by the angle from heading to travel, from -180 */
    double deviation_sum[DT_UNITS_DEGREES];
    int64_t n_gains, n_steep;          /* windows in which vehicles get faster, and too much so */
    int64_t n_beside, n_lanes, n_feet; /* pairs side by side; a lane of metres apart; of feet */
} dt_units;

/* A row of a vehicle, as the column map converts it, and the seconds since the row before of the same vehicle; 0: it
 * was not in sight. x, y: where it was then. */
void dt_units_add_row(dt_units *u, dt_units_window *w, const dt_table_row *row, double before_s, double x, double y);
/* Two vehicles of a frame, poses x, y, heading; of the first DT_UNITS_PAIRED of a frame each second. */
void dt_units_add_pair(dt_units *u, const double a[3], const double b[3]);
/* The vehicles of a frame: once a second, how far they are from each other. */
void dt_units_add_frame(dt_units *u, double rate_hz, int64_t frame, const dt_vehicle *v, uint32_t n);
/* The median angle from headings to directions of travel, degrees; NAN: too few. */
double dt_units_heading_offset(const dt_units *u);
/* What is in doubt, a line each, each begun by `begin`. c NULL: there is no table whose columns could be converted. */
void dt_units_report(const dt_units *u, const char *begin, const dt_columns *c, dt_str *out);

extern const char *const dt_units_quantity[DT_UNITS_N]; /* "speed", "heading", "acceleration" */
extern const char *const dt_units_limit[DT_UNITS_N];    /* what a row may be off by, for people */
/* A line, "inconsistent with the motion: speed 0 % of 5000 rows (...), heading ...": none where nothing was
 * compared. heading_off: as of dt_units_heading_offset. */
void dt_units_append_shares(const int64_t checked[DT_UNITS_N], const int64_t off[DT_UNITS_N], double heading_off,
                            dt_str *out);

#endif
