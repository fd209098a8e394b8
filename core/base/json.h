/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON (RFC 8259): a streaming pull reader over memory or a stream, and a writer into a dt_str.
 *
 * The reader (json_read.c) checks everything: UTF-8, escapes, depth (64), number syntax, trailing junk, and reports the
 * line and column (in bytes) of every token. It holds one window of the input, never the whole document, so memory is
 * bounded: a key, string or number longer than 1 MiB is refused. Stricter than the RFC in two points, because texts
 * become C strings: \u0000 and escapes that name half of a surrogate pair are refused. A byte order mark is skipped.
 * Numbers are rounded exactly, whatever the locale; one beyond the range of double is refused. Duplicate keys are the
 * caller's business (it sees the keys in order). The writer (json_write.c) places commas by itself; bytes that are no
 * UTF-8 become U+FFFD; errors stick in the dt_str. Threads: one object, one thread.
 */
#ifndef DTRAIN_CORE_BASE_JSON_H
#define DTRAIN_CORE_BASE_JSON_H

#include "base/str.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef enum dt_json_kind {
    DT_JSON_END, /* the document is complete */
    DT_JSON_OBJECT,
    DT_JSON_OBJECT_END,
    DT_JSON_ARRAY,
    DT_JSON_ARRAY_END,
    DT_JSON_KEY,
    DT_JSON_STRING,
    DT_JSON_NUMBER,
    DT_JSON_TRUE,
    DT_JSON_FALSE,
    DT_JSON_NULL
} dt_json_kind;

typedef struct dt_json_token {
    dt_json_kind kind;
    const char *text; /* key or string: unescaped UTF-8, NUL-terminated; number: its text; valid until the next call */
    size_t bytes;
    double number;   /* for DT_JSON_NUMBER */
    int64_t integer; /* for DT_JSON_NUMBER, when is_integer */
    bool is_integer; /* no fraction, no exponent, fits int64 */
    int64_t line, column;
} dt_json_token;

typedef struct dt_json dt_json;

/* read returns bytes placed in buf, 0 at the end, -1 after recording an error with DT_FAIL. */
typedef int64_t dt_json_read(void *user, char *buf, size_t bytes);

dt_status dt_json_open(dt_json_read *read, void *user, const char *name, dt_json **out_p) DT_NODISCARD;
dt_status dt_json_open_mem(const char *text, size_t bytes, const char *name, dt_json **out_p) DT_NODISCARD;
void dt_json_close(dt_json *j);
/* Next token. Errors: DT_EDATA with "name:line:column: what", DT_EIO. */
dt_status dt_json_next(dt_json *j, dt_json_token *out_p) DT_NODISCARD;
dt_status dt_json_skip(dt_json *j) DT_NODISCARD; /* skip the value that starts next, whole (after a key: its value) */
int dt_json_depth(const dt_json *j);             /* objects and arrays open after the last token */
/* Record DT_EDATA with this reader's name, line and column in front. */
dt_status dt_json_fail(dt_json *j, const char *fmt, ...) DT_PRINTF(2, 3);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

typedef struct dt_json_out {
    dt_str *s;
    int depth;
    bool need_comma;
} dt_json_out;
void dt_json_obj(dt_json_out *o, const char *key); /* key NULL inside arrays and at the top */
void dt_json_arr(dt_json_out *o, const char *key);
void dt_json_end(dt_json_out *o, char bracket); /* '}' or ']' */
void dt_json_str(dt_json_out *o, const char *key, const char *text);
void dt_json_i64(dt_json_out *o, const char *key, int64_t v);
/* Shortest text that reads back equal; what is not finite becomes null. */
void dt_json_f64(dt_json_out *o, const char *key, double v);
void dt_json_bool(dt_json_out *o, const char *key, bool v);
void dt_json_null(dt_json_out *o, const char *key);

#endif
