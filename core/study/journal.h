/* SPDX-License-Identifier: Apache-2.0
 *
 * What a folder of trainings was begun with: study.json, written atomically, so that the same command continues it and
 * another one is rejected. One process works in a folder at a time, and below it no link is followed. Threads: [main].
 */
#ifndef DTRAIN_CORE_STUDY_JOURNAL_H
#define DTRAIN_CORE_STUDY_JOURNAL_H

#include "study/words.h"

typedef struct dt_journal {
    const char *kind;         /* "seeds" or "sweep" */
    const dt_words *identity; /* what must not change: words in their order, or "KEY = VALUE" in any */
    bool is_keyed;
    const char *growing; /* the key whose number may grow; NULL: none */
    bool is_shared;      /* with other processes that share it: nothing grows while there are some */
} dt_journal;

/* Takes the folder, which is created where it is missing: lock_p, to be released with dt_lock_release. Errors:
 * DT_ECONFIG: the folder is of another command (the first difference is named), or holds something else; DT_EIO:
 * another process works in it, or it cannot be written; DT_EDATA: study.json is damaged; DT_ENOMEM. */
dt_status dt_journal_claim(const char *folder, const dt_journal *j, int *lock_p) DT_NODISCARD;
/* Is it the folder of such a study, "seeds" or "sweep"? No error where it is none. */
bool dt_journal_is_of(const char *folder, const char *kind);
/* May a training be started there? Not through a link, which leads out of the folder. DT_EDATA. */
dt_status dt_journal_check_run(const char *run) DT_NODISCARD;

#endif
