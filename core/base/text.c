/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/text.h"

#include <stdint.h>
#include <string.h>

size_t dt_utf8_bytes(const char *text)
{
    const uint8_t *p = (const uint8_t *)text;
    uint8_t low = 0x80, high = 0xBF;
    size_t n = 0;
    if (p[0] < 0x80) {
        return 1;
    } else if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        n = 2;
    } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        n = 3;
        low = p[0] == 0xE0 ? 0xA0 : low;   /* shortest form only */
        high = p[0] == 0xED ? 0x9F : high; /* no surrogates */
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        n = 4;
        low = p[0] == 0xF0 ? 0x90 : low;
        high = p[0] == 0xF4 ? 0x8F : high; /* up to U+10FFFF */
    } else {
        return 0;
    }
    if (p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if (p[i] < 0x80 || p[i] > 0xBF) {
            return 0;
        }
    }
    return n;
}

size_t dt_utf8_mark(const void *text, size_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t n = sizeof(mark) - 1;
    return bytes >= n && memcmp(text, mark, n) == 0 ? n : 0;
}

bool dt_glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL; /* last '*', and where its tail was tried last */
    while (*text != '\0') {
        if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

/* C1 controls; the marks of Unicode's bidirectional algorithm (UAX 9); line and paragraph separators; the byte order
 * mark. */
static bool is_unsafe_character(uint32_t c)
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
    return is_unsafe_character(c) ? 0 : n;
}

void dt_mask_text(char *text, bool is_line)
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
    dt_mask_text(text, false);
    for (char *p = strchr(text, '\n'); p != NULL; p = strchr(p, '\n')) {
        *p = '?';
    }
}
