/* SPDX-License-Identifier: Apache-2.0
 *
 * Are the numbers of a table in SI units? What they say of each other tells much of it: how fast vehicles are, by their
 * speeds and by their positions; how long they are; whether headings stay within a turn. A doubt is a warning with the
 * column map that would convert, never an error: there are long vehicles. Threads: one object, one thread.
 */
#ifndef DTRAIN_CORE_DATA_UNITS_H
#define DTRAIN_CORE_DATA_UNITS_H

#include "data/columns.h"
#include "data/sort.h"

typedef struct dt_units {         /* sums over rows, as the column map converts them; zeroed at first */
    double by_position, by_speed; /* distance, of vehicles that move by both */
    double moving_s, length, heading_most;
    int64_t n_lengths;
} dt_units;

/* A row, and where the same vehicle was `before_s` s ago; before_s 0: it was not in sight. */
void dt_units_add(dt_units *u, const dt_table_row *row, double before_s, double x, double y);
/* What is in doubt, a line each: for a warning. */
void dt_units_doubt(const dt_units *u, const dt_columns *c, dt_str *out);

#endif
