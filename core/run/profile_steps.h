/* SPDX-License-Identifier: Apache-2.0
 *
 * --profile-steps A:B: spans of all threads (base/trace.h) while a run makes steps A to B of a phase, in trace.json of
 * the run directory. Whole iterations are recorded, from the first that reaches A to the one that makes B; where an
 * iteration makes many steps, at least one. The first phase of this process that comes to A counts. Threads: [main] of
 * rank 0.
 */
#ifndef DTRAIN_CORE_RUN_PROFILE_STEPS_H
#define DTRAIN_CORE_RUN_PROFILE_STEPS_H

#include "comm/comm.h"

#include <stdbool.h>

typedef struct dt_profile_steps {
    uint64_t first, last; /* of the phase, counted from 1; 0: nothing is recorded */
    const char *run_dir;
    dt_comm *ranks; /* of several processes, each of which calls all of this; NULL: this one is alone */
    uint64_t made;  /* steps of the iteration before */
    bool is_on, is_over;
} dt_profile_steps;

/* "3:5", or "3" for one step; NULL: nothing is recorded. Errors: DT_ECONFIG. */
dt_status dt_profile_steps_parse(const char *text, dt_profile_steps *out) DT_NODISCARD;
/* Around an iteration; step: of the phase, made so far. A file that cannot be written is a warning. */
void dt_profile_steps_before(dt_profile_steps *p, uint64_t step);
void dt_profile_steps_after(dt_profile_steps *p, uint64_t step, uint64_t made);
/* When the run ends, however: what was recorded by then is written. is_agreed: all ranks end alike, and rank 0 has what
 * all of them recorded; else what it recorded itself. */
void dt_profile_steps_end(dt_profile_steps *p, bool is_agreed);

#endif
