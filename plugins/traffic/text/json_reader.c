/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading JSON whose layout is known. See json_reader.h.
 */
#include <config.h>

#include "traffic/text/json_reader.h"
#include "base/err.h"

#include <string.h>

const char *dt_expect_kind(dt_json_kind kind)
{
    static const char *const name[] = {
        [DT_JSON_END] = "the end",     [DT_JSON_OBJECT] = "an object", [DT_JSON_OBJECT_END] = "'}'",
        [DT_JSON_ARRAY] = "an array",  [DT_JSON_ARRAY_END] = "']'",    [DT_JSON_KEY] = "a key",
        [DT_JSON_STRING] = "a string", [DT_JSON_NUMBER] = "a number",  [DT_JSON_TRUE] = "true",
        [DT_JSON_FALSE] = "false",     [DT_JSON_NULL] = "null",
    };
    return name[kind];
}

static dt_status fail_kind(dt_json *j, const char *what, const char *expected, dt_json_kind got)
{
    return dt_json_fail(j, "%s must be %s, but is %s", what, expected, dt_expect_kind(got));
}

static dt_status expect_token(dt_json *j, const char *what, dt_json_kind kind, dt_json_token *t)
{
    DT_TRY(dt_json_next(j, t));
    return t->kind == kind ? DT_OK : fail_kind(j, what, dt_expect_kind(kind), t->kind);
}

dt_status dt_expect_object(dt_json *j, const char *what)
{
    dt_json_token t;
    return expect_token(j, what, DT_JSON_OBJECT, &t);
}

dt_status dt_expect_array(dt_json *j, const char *what)
{
    dt_json_token t;
    return expect_token(j, what, DT_JSON_ARRAY, &t);
}

dt_status dt_expect_key(dt_json *j, char key[DT_IN_KEY_BYTES])
{
    for (;;) {
        dt_json_token t;
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_OBJECT_END) {
            return DT_DONE;
        }
        if (t.bytes < DT_IN_KEY_BYTES) {
            memcpy(key, t.text, t.bytes + 1);
            return DT_OK;
        }
        DT_TRY(dt_json_skip(j));
    }
}

dt_status dt_expect_known_key(dt_json *j, const char *const *names, uint32_t *seen, int *which_p)
{
    for (;;) {
        char key[DT_IN_KEY_BYTES];
        int i = 0;
        DT_TRY(dt_expect_key(j, key)); /* DT_DONE too */
        while (names[i] != NULL && strcmp(key, names[i]) != 0) {
            i++;
        }
        if (names[i] != NULL) {
            if ((*seen >> i & 1) != 0) {
                return dt_json_fail(j, "%s is given twice in one object", key);
            }
            *seen |= UINT32_C(1) << i;
            *which_p = i;
            return DT_OK;
        }
        DT_TRY(dt_json_skip(j));
    }
}

dt_status dt_expect_f64(dt_json *j, const char *what, double *out_p, bool *null_p)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (null_p != NULL) {
        *null_p = t.kind == DT_JSON_NULL;
        if (*null_p) {
            return DT_OK;
        }
    }
    if (t.kind != DT_JSON_NUMBER) {
        return fail_kind(j, what, "a number", t.kind);
    }
    *out_p = t.number;
    return DT_OK;
}

dt_status dt_expect_i64(dt_json *j, const char *what, int64_t *out_p)
{
    dt_json_token t;
    DT_TRY(expect_token(j, what, DT_JSON_NUMBER, &t));
    if (!t.is_integer) {
        return dt_json_fail(j, "%s must be an integer, but is %s", what, t.text);
    }
    *out_p = t.integer;
    return DT_OK;
}

dt_status dt_expect_id(dt_json *j, const char *what, dt_ids *ids, int64_t *out_p)
{
    dt_json_token t;
    int64_t integer = 0;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_STRING && t.kind != DT_JSON_NUMBER) {
        return fail_kind(j, what, "an integer or a string", t.kind);
    }
    if (t.kind == DT_JSON_NUMBER && !t.is_integer && !dt_value_parse_id(t.text, &integer) &&
        t.text[strspn(t.text, "-0123456789")] != '\0') {
        return dt_json_fail(j, "%s must be an integer or a string, but is %s", what, t.text);
    }
    if (t.bytes == 0 || strlen(t.text) != t.bytes) {
        return dt_json_fail(j, "%s is an empty string or has a NUL in it", what);
    }
    return dt_ids_get(ids, t.text, out_p);
}

dt_status dt_expect_bool(dt_json *j, const char *what, bool *out_p)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind != DT_JSON_TRUE && t.kind != DT_JSON_FALSE) {
        return fail_kind(j, what, "true or false", t.kind);
    }
    *out_p = t.kind == DT_JSON_TRUE;
    return DT_OK;
}

static dt_status copy_text(dt_json *j, const char *what, const dt_json_token *t, char *out, size_t bytes)
{
    if (t->bytes >= bytes || strlen(t->text) != t->bytes) {
        return dt_json_fail(j, "%s has %zu bytes or a NUL in it; the limit is %zu bytes", what, t->bytes, bytes - 1);
    }
    memcpy(out, t->text, t->bytes + 1);
    return DT_OK;
}

dt_status dt_expect_str(dt_json *j, const char *what, char *out, size_t bytes)
{
    dt_json_token t;
    DT_TRY(expect_token(j, what, DT_JSON_STRING, &t));
    return copy_text(j, what, &t, out, bytes);
}

dt_status dt_expect_next_object(dt_json *j, const char *what)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind == DT_JSON_ARRAY_END) {
        return DT_DONE;
    }
    return t.kind == DT_JSON_OBJECT ? DT_OK : fail_kind(j, what, "an object", t.kind);
}

dt_status dt_expect_next_str(dt_json *j, const char *what, char *out, size_t bytes)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind == DT_JSON_ARRAY_END) {
        return DT_DONE;
    }
    return t.kind == DT_JSON_STRING ? copy_text(j, what, &t, out, bytes) : fail_kind(j, what, "a string", t.kind);
}

dt_status dt_expect_next_f64(dt_json *j, const char *what, double *out_p)
{
    dt_json_token t;
    DT_TRY(dt_json_next(j, &t));
    if (t.kind == DT_JSON_ARRAY_END) {
        return DT_DONE;
    }
    if (t.kind != DT_JSON_NUMBER) {
        return fail_kind(j, what, "a number", t.kind);
    }
    *out_p = t.number;
    return DT_OK;
}

dt_status dt_expect_end(dt_json *j)
{
    dt_json_token t;
    return expect_token(j, "what follows", DT_JSON_END, &t);
}
