/* SPDX-License-Identifier: Apache-2.0
 *
 * A small JSON file as a list of its values, each under the path to it: "host/name", "argv/0", "data.batch/origin". For
 * the files of a run directory that a report shows. Threads: any (no shared state).
 */
#ifndef DTRAIN_CORE_TELEMETRY_REPORT_FLAT_H
#define DTRAIN_CORE_TELEMETRY_REPORT_FLAT_H

#include "base/json.h"

typedef struct dt_flat_item {
    char *path, *text; /* text: of a string its content, of the rest as in the file; "null" */
    dt_json_kind kind;
    double number; /* NAN where it is none */
} dt_flat_item;

typedef struct dt_flat {
    dt_flat_item *item; /* in the order of the file */
    uint32_t n, cap;
} dt_flat;

/* Errors: DT_ENOTFOUND, DT_EDATA with file, line and column, DT_EIO, DT_ENOMEM; out is empty then. */
dt_status dt_flat_read(const char *path, dt_flat *out) DT_NODISCARD;
void dt_flat_fini(dt_flat *f);
const dt_flat_item *dt_flat_find(const dt_flat *f, const char *path); /* NULL when it is not there */
const char *dt_flat_text(const dt_flat *f, const char *path);         /* "" when it is not there */
double dt_flat_number(const dt_flat *f, const char *path, double other);

#endif
