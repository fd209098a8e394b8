/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings. See str.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "base/str.h"
#include "base/err.h"
#include "base/mem.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORD = 64 };

void dt_str_fini(dt_str *s)
{
    dt_free(s->text);
    *s = (dt_str){0};
}

void dt_str_cut(dt_str *s, size_t bytes)
{
    if (bytes < s->bytes) {
        s->text[bytes] = '\0';
        s->bytes = bytes;
    }
}

void dt_str_clear(dt_str *s)
{
    s->bytes = 0;
    if (s->text != NULL) {
        s->text[0] = '\0';
    }
}

/* Room for n more bytes and the NUL. */
static bool reserve(dt_str *s, size_t n)
{
    if (s->failed || n > SIZE_MAX / 4 - s->bytes) {
        s->failed = true;
        return false;
    }
    size_t need = s->bytes + n + 1;
    if (need <= s->cap) {
        return true;
    }
    size_t cap = s->cap < 64 ? 64 : s->cap * 2;
    cap = cap < need ? need : cap;
    char *text = dt_realloc(s->text, cap);
    if (text == NULL) {
        s->failed = true;
        return false;
    }
    s->text = text;
    s->cap = cap;
    return true;
}

void dt_str_add_n(dt_str *s, const char *bytes, size_t n)
{
    if (!reserve(s, n)) {
        return;
    }
    if (n > 0) { /* nothing may be nowhere */
        memcpy(s->text + s->bytes, bytes, n);
    }
    s->bytes += n;
    s->text[s->bytes] = '\0';
}

void dt_str_add(dt_str *s, const char *text)
{
    dt_str_add_n(s, text, strlen(text));
}

void dt_str_addf(dt_str *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    dt_str_addv(s, fmt, ap);
    va_end(ap);
}

void dt_str_addv(dt_str *s, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0) {
        s->failed = true;
    } else if (reserve(s, (size_t)n)) {
        vsnprintf(s->text + s->bytes, (size_t)n + 1, fmt, again);
        s->bytes += (size_t)n;
    }
    va_end(again);
}

const char *dt_str_text(const dt_str *s)
{
    return s->text != NULL ? s->text : "";
}

dt_status dt_str_status(const dt_str *s)
{
    if (s->failed) {
        return DT_FAIL(DT_ENOMEM, "out of memory while building a string of more than %zu bytes", s->bytes);
    }
    return DT_OK;
}

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

int dt_edit_distance(const char *a, const char *b)
{
    /* Damerau 1964 with adjacent swaps, three rows of the table: d(i,j) from rows i-1 and i-2 */
    size_t n = strlen(a), m = strlen(b);
    if (n > MAX_WORD || m > MAX_WORD) {
        return MAX_WORD;
    }
    int rows[3][MAX_WORD + 1];
    int *before = rows[0], *prev = rows[1], *cur = rows[2];
    for (size_t j = 0; j <= m; j++) {
        prev[j] = (int)j;
        before[j] = 0;
    }
    for (size_t i = 1; i <= n; i++) {
        cur[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int cost = a[i - 1] != b[j - 1];
            cur[j] = min3(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < cur[j]) {
                cur[j] = before[j - 2] + 1;
            }
        }
        int *oldest = before;
        before = prev;
        prev = cur;
        cur = oldest;
    }
    return prev[m];
}

/* The first candidate that ends with "_word": phase2_ppo for "ppo". */
static const char *ends_with(const char *word, const char *const *candidates)
{
    const size_t n = strlen(word);
    for (; n >= 2 && *candidates != NULL; candidates++) {
        const size_t bytes = strlen(*candidates);
        if (bytes > n && (*candidates)[bytes - n - 1] == '_' && strcmp(*candidates + bytes - n, word) == 0) {
            return *candidates;
        }
    }
    return NULL;
}

/* The only candidate that begins with "word_": phase1_world_model for "phase1". */
static const char *begins_with(const char *word, const char *const *candidates)
{
    const size_t n = strlen(word);
    const char *only = NULL;
    for (; n >= 3 && *candidates != NULL; candidates++) {
        if (strncmp(*candidates, word, n) == 0 && (*candidates)[n] == '_') {
            if (only != NULL) {
                return NULL;
            }
            only = *candidates;
        }
    }
    return only;
}

const char *dt_did_you_mean(const char *word, const char *const *candidates)
{
    const char *const *all = candidates;
    int n = (int)strlen(word);
    int limit = n / 3 > 2 ? n / 3 : 2;
    if (limit >= n) {
        limit = n - 1; /* a word replaced letter by letter is no misspelling */
    }
    const char *best = NULL;
    for (; *candidates != NULL; candidates++) {
        const int longer = (int)strnlen(*candidates, MAX_WORD + 1) - n;
        if (longer > limit || -longer > limit) {
            continue; /* the distance is at least that of the lengths */
        }
        int d = dt_edit_distance(word, *candidates);
        if (d <= limit) {
            best = *candidates;
            limit = d - 1;
        }
    }
    best = best != NULL ? best : ends_with(word, all);
    return best != NULL ? best : begins_with(word, all);
}

bool dt_parse_i64(const char *text, int64_t *out_p)
{
    bool is_negative = *text == '-';
    text += *text == '-' || *text == '+';
    uint64_t base = 10;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
    }
    if (*text == '\0') {
        return false;
    }
    uint64_t limit = (uint64_t)INT64_MAX + is_negative, value = 0;
    for (; *text != '\0'; text++) {
        uint64_t digit = 16;
        if (*text >= '0' && *text <= '9') {
            digit = (uint64_t)(*text - '0');
        } else if (*text >= 'a' && *text <= 'f') {
            digit = (uint64_t)(*text - 'a') + 10;
        } else if (*text >= 'A' && *text <= 'F') {
            digit = (uint64_t)(*text - 'A') + 10;
        }
        if (digit >= base || value > (limit - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    *out_p = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* "-12.375" and the like: a whole number up to 2^53 over a power of ten up to 10^22, both exact, so that the quotient
 * is rounded once, as strtod rounds it (Clinger 1990). false: another form, or larger, which may be a number too. */
static bool parse_short(const char *text, double *out_p)
{
    static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *p = text + (*text == '-');
    uint64_t whole = 0;
    int n_digits = 0, n_behind = 0;
    for (; *p >= '0' && *p <= '9' && n_digits < 16; p++, n_digits++) {
        whole = 10 * whole + (uint64_t)(*p - '0');
    }
    if (*p == '.') {
        for (p++; *p >= '0' && *p <= '9' && n_digits < 16; p++, n_digits++, n_behind++) {
            whole = 10 * whole + (uint64_t)(*p - '0');
        }
    }
    if (*p != '\0' || n_digits == 0 || whole > UINT64_C(1) << 53 || FLT_EVAL_METHOD != 0) {
        return false;
    }
    const double v = (double)whole / ten[n_behind];
    *out_p = *text == '-' ? -v : v;
    return true;
}

bool dt_parse_f64(const char *text, double *out_p)
{
    if (parse_short(text, out_p)) {
        return true;
    }
    /* strtod would also take spaces, hexadecimal, infinities and not-a-numbers */
    if (*text == '\0' || strspn(text, "0123456789+-.eE") != strlen(text)) {
        return false;
    }
    pthread_once(&c_locale_once, make_c_locale);
    char *end = NULL;
    double v = c_locale != (locale_t)0 ? strtod_l(text, &end, c_locale) : strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(v)) {
        return false;
    }
    *out_p = v;
    return true;
}

bool dt_parse_whole(const char *text, int64_t *out_p)
{
    static const double exact = 0x1p53; /* above it a double is one of several integers */
    double v = 0;
    if (dt_parse_i64(text, out_p)) {
        return true;
    }
    if (!dt_parse_f64(text, &v) || v != floor(v) || fabs(v) >= exact) {
        return false;
    }
    *out_p = (int64_t)v;
    return true;
}
