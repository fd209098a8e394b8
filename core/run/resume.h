/* SPDX-License-Identifier: Apache-2.0
 *
 * What --resume names: a run that continues, one that begins again because it ended before its first checkpoint, or,
 * for `--resume auto`, one that begins. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_RESUME_H
#define DTRAIN_CORE_RUN_RESUME_H

#include "dtrain/status.h"
#include "run/args.h"

typedef struct dt_resume {
    char *run;               /* its folder; NULL: there is none, a run begins */
    char *from;              /* run or checkpoint to continue from; NULL: the run begins, in its folder if any */
    char *phase, *init_from; /* --phase and --init-from that it began with, where it begins again; NULL: none */
} dt_resume;

/* Everything NULL without --resume. Errors: DT_ECONFIG where no run is, DT_EDATA where all its checkpoints are damaged
 * and moved away. */
dt_status dt_resume_read(const dt_args *a, dt_resume *out) DT_NODISCARD;
/* Of a run, its checkpoints folder or one checkpoint; free with dt_free. DT_ECONFIG: there is none. */
dt_status dt_resume_find_run(const char *resume, char **out) DT_NODISCARD;
void dt_resume_fini(dt_resume *r);

#endif
