/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/words.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdarg.h>

void dt_words_add(dt_words *w, const char *word)
{
    if (!w->failed && w->n + 1 >= w->cap) {
        const uint32_t cap = w->cap == 0 ? 32 : 2 * w->cap;
        char **grown = dt_realloc(w->word, cap * sizeof(*grown));
        w->failed = grown == NULL;
        w->word = grown != NULL ? grown : w->word;
        w->cap = grown != NULL ? cap : w->cap;
    }
    char *copy = w->failed ? NULL : dt_strdup(word);
    w->failed = copy == NULL;
    if (copy != NULL) {
        w->word[w->n++] = copy;
        w->word[w->n] = NULL;
    }
}

void dt_words_addf(dt_words *w, const char *fmt, ...)
{
    dt_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    dt_str_addv(&text, fmt, ap);
    va_end(ap);
    w->failed = w->failed || text.failed;
    dt_words_add(w, dt_str_text(&text));
    dt_str_fini(&text);
}

dt_status dt_words_status(const dt_words *w)
{
    return w->failed ? DT_FAIL(DT_ENOMEM, "out of memory for a command of %u words", w->n) : DT_OK;
}

void dt_words_fini(dt_words *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        dt_free(w->word[i]);
    }
    dt_free(w->word);
    *w = (dt_words){0};
}
