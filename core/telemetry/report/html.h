/* SPDX-License-Identifier: Apache-2.0
 *
 * Text and numbers into a page that is HTML and well-formed XML at once. Whatever comes from a run (names, paths,
 * values) goes through here: nothing in it can become markup. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_HTML_H
#define DTRAIN_CORE_TELEMETRY_REPORT_HTML_H

#include "base/str.h"

enum { DT_NUMBER_BYTES = 40 };

/* Escaped, for elements and for quoted attributes; control characters and bytes that are no UTF-8 become U+FFFD. */
void dt_html_escape(dt_str *out, const char *text);
/* For people: four significant digits, a true minus, e-notation only where it is shorter; an en dash for NaN. */
const char *dt_number_text(double v, char out[DT_NUMBER_BYTES]);
void dt_html_append_number(dt_str *out, double v);
/* Three digits and a unit of thousands: "1.37M", "0.0123"; where room is short. */
const char *dt_short_text(double v, char out[DT_NUMBER_BYTES]);
/* Decimals that numbers in one row share, so that they are aligned: four digits for the largest of them. -1: as each
 * needs, because they are very small or very large. */
int dt_decimals_for(const double *value, uint32_t n);
const char *dt_aligned_text(double v, int decimals, char out[DT_NUMBER_BYTES]);
/* "2026-11-21 08:05" of "2026-11-21T08:05:02Z" */
const char *dt_time_text(const char *utc, char out[DT_NUMBER_BYTES]);
/* "1 h 02 min", "3 min 20 s", "12.4 s" */
const char *dt_duration_text(double seconds, char out[DT_NUMBER_BYTES]);
/* "117 MB" */
const char *dt_bytes_text(double bytes, char out[DT_NUMBER_BYTES]);

#endif
