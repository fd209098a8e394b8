/* SPDX-License-Identifier: Apache-2.0
 *
 * A report: one HTML file that needs nothing else, of one run or of several side by side. Complete without scripts; a
 * few lines of them show the values under the pointer. Threads: any (no state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_PAGE_H
#define DTRAIN_CORE_TELEMETRY_REPORT_PAGE_H

#include "base/str.h"

typedef struct dt_plugin_panels dt_plugin_panels; /* plugin_panels.h */

/* The page of the runs in these directories into a file: whole, or not at all; plugins draw parts of it, NULL: none.
 * Lines of metrics.jsonl that could not be read are logged as a warning. Errors: DT_ENOTFOUND (no such run), DT_EDATA
 * (a damaged file, or a run that made no step), DT_EINVAL (none, or more than DT_PAGE_MAX_RUNS), DT_EIO, DT_ENOMEM. */
dt_status dt_page_write(const char *const *dir, uint32_t n, const dt_plugin_panels *plugins, const char *path)
    DT_NODISCARD;

/* A page in the same style, of something else than runs: a header, which the caller continues and closes, with its kind
 * and name; then what the caller writes; then the end. */
void dt_page_begin(const char *kind, const char *name, dt_str *out);
void dt_page_end(dt_str *out);

/* palette.css, style.css, film.css, hover.js and film.js */
extern const char dt_page_palette[], dt_page_style[], dt_page_film_style[], dt_page_script[], dt_page_film_script[];

#endif
