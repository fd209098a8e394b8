/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON writer. See json.h.
 */
#include <config.h>

#include "base/json.h"

#include "base/print.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

static void write_escaped(dt_str *s, const char *text)
{
    dt_str_add_n(s, "\"", 1);
    const uint8_t *p = (const uint8_t *)text;
    while (*p != '\0') {
        const uint8_t *plain = p;
        while (*p >= 0x20 && *p < 0x7F && *p != '"' && *p != '\\') {
            p++;
        }
        dt_str_add_n(s, (const char *)plain, (size_t)(p - plain));
        if (*p == '\0') {
            break;
        }
        size_t n = dt_utf8_bytes((const char *)p);
        size_t skip = 0;
        if (n > 1 && n < 4 && dt_print_safe((const char *)p, &skip) == 0) { /* the same text, and none for a terminal */
            const unsigned c = n == 2 ? (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu)
                                      : (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
            dt_str_addf(s, "\\u%04x", c);
            p += n;
            continue;
        }
        if (n > 1) {
            dt_str_add_n(s, (const char *)p, n);
            p += n;
            continue;
        }
        if (n == 0) {
            dt_str_add(s, "\xEF\xBF\xBD");
        } else if (*p == '"' || *p == '\\') {
            dt_str_addf(s, "\\%c", *p);
        } else if (*p == '\n' || *p == '\t') {
            dt_str_add(s, *p == '\n' ? "\\n" : "\\t");
        } else {
            dt_str_addf(s, "\\u%04x", *p);
        }
        p++;
    }
    dt_str_add_n(s, "\"", 1);
}

static void begin_value(dt_json_out *o, const char *key)
{
    if (o->need_comma) {
        dt_str_add_n(o->s, ",", 1);
    }
    if (key != NULL) {
        write_escaped(o->s, key);
        dt_str_add_n(o->s, ":", 1);
    }
    o->need_comma = true;
}

void dt_json_obj(dt_json_out *o, const char *key)
{
    begin_value(o, key);
    dt_str_add_n(o->s, "{", 1);
    o->need_comma = false;
    o->depth++;
}

void dt_json_arr(dt_json_out *o, const char *key)
{
    begin_value(o, key);
    dt_str_add_n(o->s, "[", 1);
    o->need_comma = false;
    o->depth++;
}

void dt_json_end(dt_json_out *o, char bracket)
{
    dt_str_add_n(o->s, &bracket, 1);
    o->need_comma = true;
    o->depth--;
}

void dt_json_str(dt_json_out *o, const char *key, const char *text)
{
    begin_value(o, key);
    write_escaped(o->s, text);
}

void dt_json_i64(dt_json_out *o, const char *key, int64_t v)
{
    begin_value(o, key);
    dt_str_addf(o->s, "%lld", (long long)v);
}

void dt_json_f64(dt_json_out *o, const char *key, double v)
{
    if (!isfinite(v)) {
        dt_json_null(o, key);
        return;
    }
    begin_value(o, key);
    const locale_t c = dt_c_locale(), before = c != (locale_t)0 ? uselocale(c) : (locale_t)0;
    /* a normal double that has a text of 15 digits or fewer prints as it; subnormals have fewer digits to begin with */
    char text[40];
    double back = 0;
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (dt_parse_f64(text, &back) && back == v) {
            break;
        }
    }
    if (before != (locale_t)0) {
        uselocale(before);
    }
    dt_str_add(o->s, text);
}

void dt_json_bool(dt_json_out *o, const char *key, bool v)
{
    begin_value(o, key);
    dt_str_add(o->s, v ? "true" : "false");
}

void dt_json_null(dt_json_out *o, const char *key)
{
    begin_value(o, key);
    dt_str_add(o->s, "null");
}
