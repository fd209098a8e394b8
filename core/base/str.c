/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings. See str.h.
 */
#include <config.h>

#include "base/str.h"
#include "base/err.h"
#include "base/mem.h"

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
static bool reserve_bytes(dt_str *s, size_t n)
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
    if (!reserve_bytes(s, n)) {
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
    } else if (reserve_bytes(s, (size_t)n)) {
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
static const char *find_by_suffix(const char *word, const char *const *candidates)
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
static const char *find_by_prefix(const char *word, const char *const *candidates)
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

const char *dt_suggest_word(const char *word, const char *const *candidates)
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
    best = best != NULL ? best : find_by_suffix(word, all);
    return best != NULL ? best : find_by_prefix(word, all);
}
