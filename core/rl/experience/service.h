/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1" (dtrain/svc/rollout.h) as stages and runs use it: what a session hands to its stages, what
 * it takes. Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_RL_EXPERIENCE_SERVICE_H
#define DTRAIN_CORE_RL_EXPERIENCE_SERVICE_H

#include "rl/replay/checkpoint.h"
#include "rl/rollout/checkpoint.h"

extern const dt_stage_rollouts dt_experience;

/* memory_need.c: what it takes besides the trainer, bytes of this rank; resident: what is likely to be touched. Makes
 * the policy, and tries an instance of an environment that runs in threads, to see how much it holds and shows; one in
 * a process, which takes seconds, where tries_processes is set: else it shows as much as it can at most. */
typedef struct dt_rollout_need {
    uint64_t policy, policy_resident; /* acting: its plans and inputs */
    uint64_t buffer, buffer_resident; /* what a round keeps, and the records of the instances */
    uint64_t evaluation, evaluation_resident;
    uint64_t instance;              /* of one environment, in this process or in its own; 0: unknown */
    uint64_t shared;                /* by all processes of environments: program, libraries, recordings */
    uint32_t instances, evaluated;  /* those that collect, those that evaluate next to them */
    uint32_t processes, evaluating; /* of environments: of those that collect, of those that evaluate; 0: threads */
    uint32_t threads;               /* that step environments and do nothing else */
    double mean[1 + DT_ENV_MAX_SYMBOLS]; /* live size of a sample: agents that act, then ragged symbols */
} dt_rollout_need;
dt_status dt_rollout_measure_need(struct dt_rollout *r, dt_trainer *t, dt_rollout_need *out) DT_NODISCARD;
/* Seconds that a step of one instance takes, made for it and played with drawn actions: the mean of *n_p steps, for at
 * most so long. NAN: it fails, which is not reported here. */
double dt_rollout_measure_speed(struct dt_rollout *r, double most_s, uint32_t *n_p);
/* After that: one of the policy's calls on n instances of this mean; false: there are no more. */
bool dt_rollout_call_cost(const struct dt_rollout *r, const double *mean, double n, uint32_t call, dt_call_cost *out_p);
#endif
