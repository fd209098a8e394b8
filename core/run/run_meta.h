/* SPDX-License-Identifier: Apache-2.0
 *
 * meta.json of a run: what it was started with, on which machine, and how it ended. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_RUN_META_H
#define DTRAIN_CORE_RUN_RUN_META_H

#include "run/session.h"

#define DT_RUN_META_MARK "not_reproducible_from_step"

typedef struct dt_run_meta {
    char start[32];
    int64_t mark; /* step from which on the run cannot be repeated, -1: all of it can */
    int argc;
    char *const *argv;
    const char *phase, *init_from; /* that it begins with; NULL */
} dt_run_meta;

/* exit_code: below 0 while the run has not ended. */
void dt_run_meta_text(const dt_run_meta *m, const dt_session *session, int exit_code, dt_str *out);
/* A number in the file of a run; missing: of a folder without one, or with one that is broken. */
int64_t dt_run_meta_number(const char *folder, const char *key, int64_t missing);
/* Takes how a run ended out of its meta.json: it was to continue after an error, and was asked to stop before it did,
 * so that it counts as interrupted. Errors: DT_EIO, DT_ENOMEM. */
dt_status dt_run_meta_clear_end(const char *path) DT_NODISCARD;
/* What --phase and --init-from were when the run began; NULL for each that was not given. Freed with dt_free. */
dt_status dt_run_meta_read_beginning(const char *path, char **phase_p, char **init_from_p) DT_NODISCARD;

#endif
