/* SPDX-License-Identifier: Apache-2.0
 *
 * What an import reports about its rows. See rows.h.
 */
#include <config.h>

#include "traffic/features/features.h"
#include "traffic/import/rows.h"
#include "base/log.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { BEGIN_BYTES = 4096 };

void dt_rows_report_add(dt_rows_report *to, const dt_rows_report *from)
{
    to->runs += from->runs;
    to->repeats += from->repeats;
    to->no_length += from->no_length;
    to->no_width += from->no_width;
    to->no_heading += from->no_heading;
    to->no_accel += from->no_accel;
    to->unknown_heading += from->unknown_heading;
    to->axis_heading += from->axis_heading;
    to->fronts += from->fronts;
    to->is_heading_fixed |= from->is_heading_fixed;
    for (int q = 0; q < DT_UNITS_N; q++) {
        to->checked[q] += from->checked[q];
        to->off[q] += from->off[q];
    }
    to->has_heading_off |= from->has_heading_off;
    to->heading_off = fabs(from->heading_off) > fabs(to->heading_off) ? from->heading_off : to->heading_off;
    dt_str_add(&to->warnings, dt_str_text(&from->warnings));
}

void dt_rows_report_units(dt_rows_report *to, const dt_units *u, const char *path, const dt_columns *c)
{
    char begin[BEGIN_BYTES];
    snprintf(begin, sizeof(begin), "%s: ", path);
    dt_units_report(u, begin, c, &to->warnings);
    for (int q = 0; q < DT_UNITS_N; q++) {
        to->checked[q] += u->checked[q];
        to->off[q] += u->off[q];
    }
    const double off = dt_units_heading_offset(u);
    if (!isnan(off)) {
        dt_rows_report_add(to, &(dt_rows_report){.has_heading_off = true, .heading_off = off});
    }
}

void dt_rows_report_print(const dt_rows_report *t, dt_str *notes)
{
    dt_log_lines(DT_LOG_WARN, dt_str_text(&t->warnings));
    if (t->runs > 0) {
        dt_str_addf(notes, "sorted on disk in %" PRId64 " runs\n", t->runs);
    }
    if (t->repeats > 0) {
        dt_str_addf(notes, "%" PRId64 " rows that repeat another: left out\n", t->repeats);
    }
    if (t->no_length > 0) {
        dt_str_addf(notes, "%" PRId64 " rows without a length: stored as unknown, features take %g m\n", t->no_length,
                    DT_LENGTH_DEFAULT_M);
    }
    if (t->no_width > 0) {
        dt_str_addf(notes, "%" PRId64 " rows without a width: stored as unknown, features take %g m\n", t->no_width,
                    DT_WIDTH_DEFAULT_M);
    }
    if (t->no_accel > 0) {
        dt_str_addf(notes,
                    "%" PRId64
                    " rows without an acceleration: made from speeds, unknown in the first frame of a vehicle\n",
                    t->no_accel);
    }
    dt_units_append_shares(t->checked, t->off, t->has_heading_off ? t->heading_off : NAN, notes);
    if (t->unknown_heading > 0) {
        dt_str_addf(notes,
                    "%" PRId64
                    " rows of vehicles whose heading is unknown, since they have not moved a metre: stored as "
                    "unknown, and without edges and risk\n",
                    t->unknown_heading);
    }
    if (t->fronts > 0) {
        dt_str_addf(notes, "%" PRId64 " of them are places of fronts, kept in place of the unknown centres\n",
                    t->fronts);
    }
    if (t->axis_heading > 0) {
        dt_str_addf(notes,
                    "%" PRId64
                    " rows of vehicles that have not moved a metre: headed along the road, which is the axis of "
                    "the recording\n",
                    t->axis_heading);
    }
    if (t->no_heading > 0) {
        dt_str_addf(notes, "%" PRId64 " rows without a heading: %s\n", t->no_heading,
                    t->is_heading_fixed ? "along the road" : "direction of travel over the last metre");
    }
}
