/* SPDX-License-Identifier: Apache-2.0
 *
 * A phase on trial as `dtrain run` would have it: a short life, what it reports of progress, and its bits. Threads:
 * [main], of a process on trial (plugin/trial/trial.h).
 */
#ifndef DTRAIN_CORE_CLI_PHASE_TRIAL_H
#define DTRAIN_CORE_CLI_PHASE_TRIAL_H

#include "plugin/trial/trial.h"
#include "run/session.h"

/* Starts the phase of an open session, and tries:
 *
 *   two iterations, an evaluation, save and load of its own state, stop and destroy
 *   four iterations, which must advance the phase
 *   a checkpoint after two of them, loaded into another instance: two more must end in the weights of the four
 *   an evaluation of that checkpoint by itself, and an export: the step inputs of the evaluation in the run
 *   the same four iterations in another process, at other addresses and on two virtual ranks: the same weights
 *
 * a: how the session was opened. folder: for checkpoints, the caller's to remove. model: an id that one of its
 * models must have; NULL: any. note_p: what was done.
 * Errors: DT_EPLUGIN with the broken promise; those of the phase. */
dt_status dt_phase_trial(const dt_session *s, const dt_args *a, const char *folder, const char *model, dt_trial *t,
                         dt_str *note_p) DT_NODISCARD;

/* Rollouts in an environment for a phase that learns from stored ones (DT_OPT_ROLLOUTS): two rounds of phase2_ppo with
 * the configuration of a, in another process. search: its DTRAIN_PLUGIN_PATH; "": that of this one. out: where they
 * are, in folder. Errors: DT_EUNSUPPORTED (that run failed, or takes too long, which is no fault of the phase's). */
dt_status dt_phase_trial_collect(const dt_args *a, const char *env, const char *search, const char *folder, dt_trial *t,
                                 dt_str *out) DT_NODISCARD;

#endif
