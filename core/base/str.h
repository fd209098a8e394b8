/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable string, and the few string helpers every room needs. Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_BASE_STR_H
#define DTRAIN_CORE_BASE_STR_H

#include "base/number.h" /* brings: dt_parse_* */
#include "base/text.h"   /* brings: characters and patterns */
#include "dtrain/status.h"
#include <stdarg.h>
#include <stdbool.h>

typedef struct dt_str {
    char *text; /* always NUL-terminated once anything was added; NULL before; use dt_str_text */
    size_t bytes, cap;
    bool failed; /* an append ran out of memory: sticky, checked once at the end with dt_str_status */
} dt_str;

void dt_str_fini(dt_str *s);
void dt_str_clear(dt_str *s);
void dt_str_cut(dt_str *s, size_t bytes); /* to its first bytes, of which there are at least as many */
void dt_str_add(dt_str *s, const char *text);
void dt_str_add_n(dt_str *s, const char *bytes, size_t n);
void dt_str_addf(dt_str *s, const char *fmt, ...) DT_PRINTF(2, 3);
void dt_str_addv(dt_str *s, const char *fmt, va_list ap);
const char *dt_str_text(const dt_str *s); /* "" when empty */
dt_status dt_str_status(const dt_str *s); /* DT_OK or DT_ENOMEM (recorded) */

int dt_edit_distance(const char *a, const char *b); /* Damerau-Levenshtein, for did-you-mean; capped at 64 */
/* The candidate nearest to word (distance at most max(2, strlen/3), and under strlen), or NULL. NULL ends the list. */
const char *dt_suggest_word(const char *word, const char *const *candidates);

#endif
