/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1" (dtrain/svc/rollout.h) as stages and runs use it: what a session hands to its stages, what
 * it takes, and what a checkpoint keeps of it. Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_RL_EXPERIENCE_SERVICE_H
#define DTRAIN_CORE_RL_EXPERIENCE_SERVICE_H

#include "plugin/service/stage.h"

extern const dt_stage_rollouts dt_experience;

/* need.c: what it takes besides the trainer, bytes of this rank; resident: what is likely to be touched. Makes
 * the policy, and tries an instance of an environment that runs in threads, to see how much it holds and shows; one in
 * a process, which takes seconds, where tries_processes is set: else it shows as much as it can at most. */
typedef struct dt_rollout_need {
    uint64_t policy, policy_resident; /* acting: its plans and inputs */
    uint64_t buffer, buffer_resident; /* what a round keeps, and the records of the instances */
    uint64_t evaluation, evaluation_resident;
    uint64_t instance;                        /* of one environment, in this process or in its own; 0: unknown */
    uint64_t shared;                          /* by all processes of environments: program, libraries, recordings */
    uint32_t instances, evaluated, processes; /* those that collect, those that evaluate beside them */
    uint32_t threads;                         /* that step environments and do nothing else */
    double mean[1 + DT_ENV_MAX_SYMBOLS];      /* live size of a sample: agents that act, then ragged symbols */
} dt_rollout_need;
dt_status dt_rollout_need_get(struct dt_rollout *r, dt_trainer *t, dt_rollout_need *out) DT_NODISCARD;
/* Seconds that a step of one instance takes, made for it and played with drawn actions: the mean of *n_p steps, for at
 * most so long. NAN: it fails, which says nothing here. */
double dt_rollout_try_speed(struct dt_rollout *r, double most_s, uint32_t *n_p);
/* After that: one of the policy's calls on n instances of this mean; false: there are no more. */
bool dt_rollout_call(const struct dt_rollout *r, const double *mean, double n, uint32_t call, dt_call_cost *out_p);
/* Environment steps that the phase has learnt from, of all instances; resumed from a checkpoint that does not say how
 * many came before, DT_ENV_STEPS_UNKNOWN. */
#define DT_ENV_STEPS_UNKNOWN UINT64_MAX
uint64_t dt_rollout_env_steps(const struct dt_rollout *r);
void dt_rollout_env_steps_set(struct dt_rollout *r, uint64_t steps);
/* state.c: what a checkpoint keeps of it, as bytes appended to out; loaded before the first collect. */
dt_status dt_rollout_save(const struct dt_rollout *r, dt_str *out) DT_NODISCARD;
dt_status dt_rollout_save_normaliser(const struct dt_rollout *r, dt_str *out) DT_NODISCARD;
dt_status dt_rollout_load(struct dt_rollout *r, const void *data, size_t size) DT_NODISCARD;
bool dt_rollout_is_normalised(const struct dt_rollout *r); /* observations, any of them */
dt_status dt_rollout_load_normaliser(struct dt_rollout *r, const void *data, size_t size) DT_NODISCARD;
/* Its pool of opponents, where it has one; loaded behind the rollout. */
bool dt_rollout_has_pool(const struct dt_rollout *r);
dt_status dt_rollout_save_pool(const struct dt_rollout *r, dt_str *out) DT_NODISCARD;
dt_status dt_rollout_load_pool(struct dt_rollout *r, const void *data, size_t size) DT_NODISCARD;

/* Of its replay, where it has one. open: [collective] before rank 0 saves; of one rank save needs it, too. What this
 * rank has of the records is written piece by piece; to load, the records of all parts are given, of any number of
 * ranks. */
enum { DT_ROLLOUT_REPLAY_VERSION = 2 };
typedef struct dt_rollout_bytes {
    const void *data;
    size_t bytes;
} dt_rollout_bytes;
typedef struct dt_replay_need { /* of all ranks together; zeros: there is none */
    uint64_t samples, bytes;    /* that it has room for */
    uint64_t each;              /* bytes of a sample, at most */
    uint64_t saved;             /* of a checkpoint once it is full, with samples of this mean */
    bool is_in_file;            /* of the run directory: a file of each rank */
} dt_replay_need;
void dt_rollout_replay_plan(const struct dt_rollout *r, const double *mean, dt_replay_need *out);
/* A run that is about to begin: is there room for what lies in files; taken once all ranks have found so. r may be
 * NULL. Errors: DT_ECONFIG; DT_EIO. */
dt_status dt_rollout_check_room(const struct dt_rollout *r) DT_NODISCARD;
dt_status dt_rollout_take_room(struct dt_rollout *r) DT_NODISCARD;
bool dt_rollout_has_replay(const struct dt_rollout *r);
bool dt_rollout_has_room(const struct dt_rollout *r); /* for its records: it has taken it, or needs none */
dt_status dt_rollout_open_replay(struct dt_rollout *r) DT_NODISCARD;
dt_status dt_rollout_save_replay(const struct dt_rollout *r, dt_str *state) DT_NODISCARD;
uint64_t dt_rollout_replay_bytes(const struct dt_rollout *r);
dt_status dt_rollout_write_replay(const struct dt_rollout *r, dt_status (*put)(void *to, const void *p, size_t bytes),
                                  void *to) DT_NODISCARD;
dt_status dt_rollout_load_replay(struct dt_rollout *r, uint32_t version, const dt_rollout_bytes *state,
                                 const dt_rollout_bytes *records, uint32_t n_records) DT_NODISCARD;

#endif
