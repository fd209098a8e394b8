/* SPDX-License-Identifier: Apache-2.0
 *
 * Trainings as child processes, so many simultaneously. What comes next, and what an end means, the caller determines;
 * the pool starts, waits, and passes a request to stop on to all of them. Threads: [main].
 */
#ifndef DTRAIN_CORE_STUDY_TRAININGS_H
#define DTRAIN_CORE_STUDY_TRAININGS_H

#include "study/words.h"

#include "base/str.h"

enum { DT_TRAININGS_MAX = 256 };

typedef struct dt_trainings_desc {
    uint32_t parallel; /* at most so many simultaneously, 1 to DT_TRAININGS_MAX */
    /* The next training: its command, the file for what it prints, and a number of the caller. DT_DONE: none, until
     * another one ends; DT_AGAIN: the same, but other processes may make one: it is called again. */
    dt_status (*next)(void *user, dt_words *command, dt_str *output, uint32_t *id_p);
    /* It ended with this exit code (128 + n after signal n). stops: because it was requested. */
    dt_status (*ended)(void *user, uint32_t id, int code, bool stops);
    void *user;
} dt_trainings_desc;

/* Until nothing is next and none runs. Errors: DT_EINTERRUPTED: a signal requested to stop, and all have stopped; those
 * of the calls above, after all others were stopped; DT_EIO. */
dt_status dt_trainings_run(const dt_trainings_desc *d) DT_NODISCARD;

#endif
