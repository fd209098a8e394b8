/* SPDX-License-Identifier: Apache-2.0
 *
 * A file in libconfig's language that is no configuration of a training, as a list of its values: each under the
 * path to it ("parameters/0/min"), with its line. The same reader, with the same checks (config.h). Threads: an
 * object belongs to one thread.
 */
#ifndef DTRAIN_CORE_CONFIG_DOCUMENT_H
#define DTRAIN_CORE_CONFIG_DOCUMENT_H

#include "base/str.h"

typedef enum dt_document_kind {
    DT_DOCUMENT_GROUP, /* of settings, or a list: its values follow */
    DT_DOCUMENT_LIST,
    DT_DOCUMENT_BOOL, /* "true" "false" */
    DT_DOCUMENT_INT,
    DT_DOCUMENT_FLOAT,
    DT_DOCUMENT_TEXT
} dt_document_kind;

typedef struct dt_document_item {
    char *path, *text, *file; /* text: of a value, "" of others */
    dt_document_kind kind;
    int line;
} dt_document_item;

typedef struct dt_document {
    dt_document_item *item; /* in the order of the file */
    uint32_t n, cap;
} dt_document;

/* Errors: DT_ECONFIG with file and line, DT_ENOTFOUND, DT_EIO, DT_ENOMEM; out is empty then. */
dt_status dt_document_read(const char *path, dt_document *out) DT_NODISCARD;
void dt_document_fini(dt_document *d);
const dt_document_item *dt_document_find(const dt_document *d, const char *path); /* NULL: not there */

#endif
