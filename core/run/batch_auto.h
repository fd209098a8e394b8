/* SPDX-License-Identifier: Apache-2.0
 *
 * data.batch = "auto": the host takes a number for it before a run is recorded, and writes it down as the phase's own
 * value. From then on it is a number like any other: a run that continues has it from its configuration and never
 * chooses again, on whatever machine.
 *
 * Candidates are the powers of two from data.shards to data.batch_max. It is the largest one
 *   - whose plan (forecast.h) takes at most three quarters of memory.target_gb, of what is free on the machine for each
 *     process of the run there, of what may be mapped, and of what is free on the GPU: the least of all ranks;
 *   - of which a pass over the data, or a round, makes at least 8 steps, where there is enough for that;
 *   - that the phase itself accepts.
 * Nothing else is changed with it, and so no learning rate. Threads: [main].
 */
#ifndef DTRAIN_CORE_RUN_BATCH_AUTO_H
#define DTRAIN_CORE_RUN_BATCH_AUTO_H

#include "base/json.h"
#include "comm/comm.h"
#include "run/session.h"

/* The phase's own number from now on, above all others; by: as its origin. */
dt_status dt_batch_set(dt_session *s, int64_t phase, int64_t batch, const char *by) DT_NODISCARD;
/* What a session that was opened with the configuration of a run leaves to be chosen, that run may have chosen: its
 * number is taken. */
dt_status dt_batch_restore(dt_session *s, const char *recorded) DT_NODISCARD;
/* For each phase that will run and has no number yet. run_dir: where the run would be. Rank 0 plans with what the ranks
 * have, and all take what it took. c: NULL where this process is alone. [collective]
 * Errors: DT_ECONFIG (not even the smallest fits: how much, and into what), those of making the phase. */
dt_status dt_batch_choose_all(dt_session *s, dt_comm *c, const char *run_dir, uint64_t max_steps) DT_NODISCARD;

/* What was chosen for a phase and why, in a line; nothing where it was not. */
void dt_batch_append_choice(const dt_session *s, int64_t phase, dt_str *out);
void dt_batch_write_choice(const dt_session *s, int64_t phase, dt_json_out *o); /* the member "batch" */

#endif
