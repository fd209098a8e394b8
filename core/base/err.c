/* SPDX-License-Identifier: Apache-2.0
 *
 * Error record of the thread. See err.h.
 */
#include <config.h>

#include "base/err.h"

#include "base/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local dt_error record;
static _Thread_local uint64_t n_records;

/* One row per code of status.h, in its order. */
/* clang-format off */
static const struct status_row {
    dt_status code;
    const char *name, *text;
} status_rows[] = {
#define ROW(code, text) {code, #code, text},
    ROW(DT_OK, "done")
    ROW(DT_DONE, "done, nothing left to do")
    ROW(DT_AGAIN, "not yet, call again")
    ROW(DT_EINVAL, "argument outside its range")
    ROW(DT_ECONFIG, "configuration or command line")
    ROW(DT_ESHAPE, "shapes, types or ports do not match")
    ROW(DT_ENOTFOUND, "no such file, name, plugin or service")
    ROW(DT_EABI, "plugin built for another contract")
    ROW(DT_EDATA, "data, store or checkpoint is damaged")
    ROW(DT_ENOMEM, "out of memory")
    ROW(DT_EIO, "the operating system refused a read or write")
    ROW(DT_ECUDA, "a CUDA call failed")
    ROW(DT_EUNSUPPORTED, "this build or machine cannot do it")
    ROW(DT_EPLUGIN, "a plugin broke its contract")
    ROW(DT_EINTERRUPTED, "stopped on request, state saved")
    ROW(DT_EBROKEN, "an instance of an environment is broken")
    ROW(DT_ECOMM, "a collective failed or timed out")
    ROW(DT_EPEER, "another rank died or reported an error")
    ROW(DT_EDIVERGED, "loss or gradients are not finite")
#undef ROW
};
/* clang-format on */

/* "room/file.c" of a path: the folder that a compiler prefixed does not help a reader. */
static const char *path_below_room(const char *file)
{
    const char *last = NULL, *before = NULL;
    for (const char *p = file; *p != '\0'; p++) {
        if (*p == '/') {
            before = last;
            last = p;
        }
    }
    return before != NULL ? before + 1 : file;
}

/* text is not in the record itself. */
static dt_status write_record(dt_status st, const char *file, int line, const char *text)
{
    n_records++;
    record.status = st;
    record.is_breach = false;
    memcpy(record.text, text, strlen(text) + 1);
    snprintf(record.where, sizeof(record.where), "%s:%d", path_below_room(file), line);
    return st;
}

dt_status dt_fail(dt_status st, const char *file, int line, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT_BYTES]; /* copied first, because an argument may be the record itself */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    dt_mask_message(text);
    return write_record(st, file, line, text);
}

dt_status dt_fail_lines(dt_status st, const char *file, int line, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    dt_mask_text(text, false);
    return write_record(st, file, line, text);
}

dt_status dt_error_add_context(dt_status st, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    dt_mask_message(text);
    size_t used = strlen(text);
    if (record.text[0] != '\0' && used + 2 < sizeof(text)) {
        size_t room = sizeof(text) - used - 3, kept = strlen(record.text);
        kept = kept < room ? kept : room;
        memcpy(text + used, ": ", 2);
        memcpy(text + used + 2, record.text, kept);
        text[used + 2 + kept] = '\0';
    }
    record.status = st;
    memcpy(record.text, text, strlen(text) + 1);
    return st;
}

dt_status dt_error_mark_breach(dt_status st)
{
    record.is_breach = st < 0;
    return st;
}

dt_status dt_error_blame_plugin(dt_status st)
{
    const bool is_recorded = record.is_breach && record.status == st;
    if (st != DT_EINVAL && (st >= 0 || !is_recorded)) {
        return st;
    }
    record.status = DT_EPLUGIN;
    return DT_EPLUGIN;
}

const char *dt_error_text(void)
{
    return record.text;
}

dt_status dt_error_status(void)
{
    return record.status;
}

const char *dt_error_where(void)
{
    return record.where;
}

void dt_error_clear(void)
{
    record.status = DT_OK;
    record.is_breach = false;
    record.text[0] = '\0';
    record.where[0] = '\0';
}

void dt_error_save(dt_error *out_p, dt_status st)
{
    *out_p = record;
    out_p->status = st;
}

dt_status dt_error_restore(const dt_error *e)
{
    n_records++;
    record = *e;
    return e->status;
}

uint64_t dt_error_count(void)
{
    return n_records;
}

static const struct status_row *find_status_row(dt_status st)
{
    for (size_t i = 0; i < sizeof(status_rows) / sizeof(status_rows[0]); i++) {
        if (status_rows[i].code == st) {
            return &status_rows[i];
        }
    }
    return NULL;
}

const char *dt_status_name(dt_status st)
{
    const struct status_row *row = find_status_row(st);
    return row != NULL ? row->name : "DT_?";
}

const char *dt_status_text(dt_status st)
{
    const struct status_row *row = find_status_row(st);
    return row != NULL ? row->text : "unknown status";
}

dt_status dt_error_require_reason(dt_status st, uint64_t before, const char *culprit, const char *call)
{
    static const char how[] =
        "record a reason with DT_FAIL_H(host, code, \"...\") of dtrain/helpers.h before returning";
    if (st >= 0) {
        return st;
    }
    if (find_status_row(st) == NULL) {
        return DT_FAIL(DT_EPLUGIN,
                       "%s: %s returned %d, which is not a code of dtrain/status.h; return one of those, and %s",
                       culprit, call, (int)st, how);
    }
    if (n_records != before && record.text[0] != '\0') {
        return st;
    }
    return DT_FAIL(st, "%s: %s returned %s (%s) without a reason; %s", culprit, call, dt_status_name(st),
                   dt_status_text(st), how);
}
