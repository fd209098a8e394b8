/* SPDX-License-Identifier: Apache-2.0
 *
 * An environment on trial, outside of any run: created, asked for its spec, and played under random legal actions in
 * guarded buffers, twice. For `dtrain check` and `dtrain show`. Its host serves features and random numbers, and counts
 * its memory. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_TRIAL_PROBE_ENV_H
#define DTRAIN_CORE_PLUGIN_TRIAL_PROBE_ENV_H

#include "plugin/trial/probe.h"
#include "plugin/service/stage.h"
#include "rl/env/layout.h"

#include <stdatomic.h>

/* Calls of one trial, steps and resets together, and the arrays of a call: the observations, then size, alive, reward,
 * cost, terminated, truncated, metric, mask, and both kinds of actions. */
enum { DT_PROBE_ENV_S = 10 }; /* playing ends after this time, with at least a reset and a step */
enum { DT_PROBE_ENV_CALLS = 320, DT_PROBE_ENV_ARRAYS = DT_ENV_MAX_OBS + 10 };

typedef struct dt_probe_trace {             /* what a trial did and saw */
    uint32_t n_episodes, n_steps, n_ended;  /* n_ended: episodes that came to their end */
    bool is_cut;                            /* by time, before all calls were made */
    uint32_t first[DT_PROBE_ENV_CALLS + 1]; /* call of each episode's reset; after the last: all calls */
    uint64_t hash[DT_PROBE_ENV_CALLS][DT_PROBE_ENV_ARRAYS];
} dt_probe_trace;

typedef struct dt_probe_env {
    const dt_loaded *env;
    const dt_env_ops *ops; /* env's, or those of an instance in a worker process */
    dt_probe_host host;
    dt_stage stage;       /* serves through it; nothing else of it is in use */
    void *self;           /* owned */
    dt_str request;       /* of a worker */
    atomic_uint n_unused; /* losses of the worker: there is no restart */
    bool is_created, has_layout;
    dt_trial *trial; /* notified of calls; NULL */
    dt_layout layout;
} dt_probe_env;

/* config: filled by the component's option table; it must outlive the trial. No trial yet. */
dt_status dt_probe_env_create(dt_probe_env *p, const dt_loaded *env, const void *config) DT_NODISCARD;
/* The same in a worker process, which has other addresses, with the options in tree; afterwards its spec is known, and
 * it is ready for replay. Errors: those of creating it there; DT_EUNSUPPORTED (no process could be started). */
dt_status dt_probe_env_create_in_worker(dt_probe_env *p, const dt_loaded *env, const dt_config *tree, double timeout_s)
    DT_NODISCARD;
dt_status dt_probe_env_spec(dt_probe_env *p) DT_NODISCARD; /* legal; fills layout */
/* Episodes of seeds 1, 2, ... under random legal actions. After every call: nothing outside the buffers is written,
 * nor a buffer of the call before, numbers are finite, sizes, indices and ends obey the contract, and no episode is
 * longer than the spec allows. */
dt_status dt_probe_env_play(dt_probe_env *p, dt_probe_trace *out) DT_NODISCARD;
/* The same episodes in an instance with another past, the last one first: the same bits. other: an instance that plays
 * other episodes in between, or NULL. */
dt_status dt_probe_env_replay(dt_probe_env *p, dt_probe_env *other, const dt_probe_trace *trace) DT_NODISCARD;
/* The same episodes by step_many, in n instances at the same time: the same bits, and nothing outside the arrays. */
dt_status dt_probe_env_play_many(dt_probe_env *const *p, uint32_t n, const dt_probe_trace *trace) DT_NODISCARD;
void dt_probe_env_destroy(dt_probe_env *p); /* calls the component's destroy; then host.n_live counts leaks */

#endif
