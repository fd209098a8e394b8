/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/name.h"

#include "base/err.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

enum { WHAT_BYTES = 256, SHOWN = 60 };

static const struct name_rule {
    const char *first, *rest, *text;
} rules[] = {
    [DT_NAME_WORD] = {LOWER, LOWER DIGIT "_", "[a-z][a-z0-9_]*"},
    [DT_NAME_PARAM] = {LOWER DIGIT "_", LOWER DIGIT "_.", "[a-z0-9_][a-z0-9_.]*"},
    [DT_NAME_KEY] = {LOWER UPPER, LOWER UPPER DIGIT "_.-+/@:", "a letter, then letters, digits and _ . - + / @ :"},
    [DT_NAME_SYMBOL] = {UPPER, LOWER UPPER DIGIT "_.-/:@'", "a capital letter, then letters, digits and _ . - / : @ '"},
};

bool dt_name_is(dt_name_kind kind, const char *name)
{
    return name != NULL && *name != '\0' && strchr(rules[kind].first, *name) != NULL &&
           name[strspn(name, rules[kind].rest)] == '\0';
}

static const char *format_what(char out[WHAT_BYTES], const char *what, va_list ap)
{
    vsnprintf(out, WHAT_BYTES, what, ap);
    return out;
}

dt_status dt_name_check(dt_status code, dt_name_kind kind, uint32_t most, const char *name, const char *what, ...)
{
    if (dt_name_is(kind, name) && strlen(name) <= most) {
        return DT_OK;
    }
    char whose[WHAT_BYTES];
    va_list ap;
    va_start(ap, what);
    (void)format_what(whose, what, ap);
    va_end(ap);
    const char *rule = rules[kind].text;
    if (name == NULL || *name == '\0') {
        return DT_FAIL(code, "%s: its name is %s; expected %s, 1 to %u characters", whose,
                       name == NULL ? "NULL" : "empty", rule, most);
    }
    const size_t n = strnlen(name, (size_t)most + 1);
    if (n > most) {
        return DT_FAIL(code, "%s: its name \"%.*s...\" is longer than %u characters; shorten it", whose, SHOWN, name,
                       most);
    }
    const size_t good = strchr(rules[kind].first, *name) != NULL ? strspn(name, rules[kind].rest) : 0;
    return DT_FAIL(code, "%s: its name \"%.*s\" cannot have the character '%c' at place %zu; expected %s", whose, SHOWN,
                   name, name[good], good + 1, rule);
}

dt_status dt_text_check(dt_status code, uint32_t most, const char *text, const char *what, ...)
{
    size_t at = 0, skip = 0;
    while (text != NULL && at <= most && text[at] != '\0') {
        const size_t n = dt_print_safe(text + at, &skip);
        if (n == 0) {
            break;
        }
        at += n;
    }
    if (text != NULL && at <= most && text[at] == '\0') {
        return DT_OK;
    }
    char whose[WHAT_BYTES];
    va_list ap;
    va_start(ap, what);
    (void)format_what(whose, what, ap);
    va_end(ap);
    if (text == NULL) {
        return DT_FAIL(code, "%s is NULL; expected a text of at most %u bytes", whose, most);
    }
    return at > most ? DT_FAIL(code, "%s is longer than %u bytes: \"%.*s...\"; shorten it", whose, most, SHOWN, text)
                     : DT_FAIL(code, "%s has a byte at place %zu that is not printable UTF-8: \"%.*s\"; remove it",
                               whose, at + 1, (int)(at < SHOWN ? at : SHOWN), text);
}

dt_status dt_name_given(const char *name, const char *call)
{
    return name != NULL ? DT_OK : DT_FAIL(DT_EINVAL, "%s is called with the name NULL; pass the name of one", call);
}
