/* SPDX-License-Identifier: Apache-2.0
 *
 * What an import says of its rows. See rows.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "data/features.h"
#include "data/rows.h"
#include "base/log.h"

#include <inttypes.h>

void dt_rows_tell(const dt_rows_told *t, dt_str *notes)
{
    dt_log_lines(DT_LOG_WARN, dt_str_text(&t->warnings));
    if (t->runs > 0) {
        dt_str_addf(notes, "sorted on disk in %" PRId64 " runs\n", t->runs);
    }
    if (t->repeats > 0) {
        dt_str_addf(notes, "%" PRId64 " rows that repeat another: left out\n", t->repeats);
    }
    if (t->no_length > 0) {
        dt_str_addf(notes, "%" PRId64 " rows without a length: %g m assumed\n", t->no_length, DT_LENGTH_DEFAULT_M);
    }
    if (t->no_width > 0) {
        dt_str_addf(notes, "%" PRId64 " rows without a width: %g m assumed\n", t->no_width, DT_WIDTH_DEFAULT_M);
    }
    if (t->no_accel > 0) {
        dt_str_addf(notes, "%" PRId64 " rows without an acceleration: made from speeds\n", t->no_accel);
    }
    dt_units_shares(t->checked, t->off, notes);
    if (t->unknown_heading > 0) {
        dt_str_addf(notes,
                    "%" PRId64
                    " rows of vehicles whose heading is not known, since they have not moved a metre: that of "
                    "the axis assumed\n",
                    t->unknown_heading);
    }
    if (t->no_heading > 0) {
        dt_str_addf(notes, "%" PRId64 " rows without a heading: %s\n", t->no_heading,
                    t->is_heading_fixed ? "along the road" : "direction of travel over the last metre");
    }
}
