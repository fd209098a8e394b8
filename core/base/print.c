/* SPDX-License-Identifier: Apache-2.0
 *
 * See print.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "base/print.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* C1 controls; the marks of Unicode's bidirectional algorithm (UAX 9); line and paragraph separators; the byte order
 * mark. */
static bool is_foreign(uint32_t c)
{
    return (c >= 0x80 && c < 0xA0) || c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

size_t dt_print_safe(const char *text, size_t *skip_p)
{
    const uint8_t *p = (const uint8_t *)text;
    const size_t n = dt_utf8_bytes(text);
    *skip_p = n > 0 ? n : 1;
    if (n <= 1) {
        return n == 1 && ((p[0] >= 0x20 && p[0] != 0x7F) || p[0] == '\n' || p[0] == '\t') ? 1 : 0;
    }
    uint32_t c = p[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        c = c << 6 | (p[i] & 0x3Fu);
    }
    return is_foreign(c) ? 0 : n;
}

void dt_mask(char *text, bool is_line)
{
    char *to = text;
    for (const char *p = text; *p != '\0';) {
        size_t skip = 0;
        const size_t n = dt_print_safe(p, &skip);
        if (n == 0 || (is_line && (*p == '\n' || *p == '\t'))) {
            *to++ = '?';
        } else {
            memmove(to, p, n);
            to += n;
        }
        p += skip;
    }
    *to = '\0';
}

void dt_mask_message(char *text)
{
    dt_mask(text, false);
    for (char *p = strchr(text, '\n'); p != NULL; p = strchr(p, '\n')) {
        *p = '?';
    }
}

void dt_print_text(const char *text)
{
    while (*text != '\0') {
        size_t plain = 0, skip = 0, n = 0;
        while (text[plain] != '\0' && (n = dt_print_safe(text + plain, &skip)) > 0) {
            plain += n;
        }
        fwrite(text, 1, plain, stdout);
        text += plain;
        if (*text != '\0') {
            putchar('?');
            text += skip;
        }
    }
}

void dt_print_line(const char *text)
{
    dt_print_text(text);
    putchar('\n');
}

void dt_print(const char *fmt, ...)
{
    dt_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    dt_str_addv(&text, fmt, ap);
    va_end(ap);
    if (dt_str_status(&text) == DT_OK) {
        dt_print_text(dt_str_text(&text));
    }
    dt_str_fini(&text);
}
