/* SPDX-License-Identifier: Apache-2.0
 *
 * A command as a list of words that grows. Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_STUDY_WORDS_H
#define DTRAIN_CORE_STUDY_WORDS_H

#include "dtrain/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_words {
    char **word; /* ends with NULL once a word was added */
    uint32_t n, cap;
    bool failed; /* out of memory, sticky: dt_words_status */
} dt_words;

void dt_words_add(dt_words *w, const char *word);
void dt_words_addf(dt_words *w, const char *fmt, ...) DT_PRINTF(2, 3);
dt_status dt_words_status(const dt_words *w) DT_NODISCARD; /* DT_OK or DT_ENOMEM (recorded) */
void dt_words_fini(dt_words *w);

#endif
