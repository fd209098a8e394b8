/* SPDX-License-Identifier: Apache-2.0
 *
 * What the phase is made of, and the graph that it records: losses, and what is told of rows, as phase_offline.c says
 * them. Step inputs: mix [heads], what each advantage counts in the exponent of a weight; offset [heads], what a value
 * is above what networks say. Outputs with algorithm = "advantage": advantages, values [A, heads], weights [A].
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_OFFLINE_H
#define DTRAIN_PHASES_OFFLINE_H

#include "limits.h"
#include "multiplier.h"
#include "roles.h"

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/replay.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/train.h"

enum { OFFLINE_ADVANTAGE, OFFLINE_CLONE };
enum { OFFLINE_MAX_HEADS = 1 + DT_ENV_MAX_COSTS };

typedef struct offline_config {
    const char *rollouts, *limits;
    int64_t iterations, updates, critics, clone_rounds, pid_delay;
    double gamma, tau, beta, weight_max, value_coef;
    double actor_learning_rate, critic_learning_rate, actor_clip, critic_clip;
    double margin, start, multiplier_max, kp, ki, kd, error_ema, cost_ema, clip_obs;
    uint32_t algorithm;
    uint8_t normalise_obs;
} offline_config;

typedef struct offline_state {
    const dt_host *h;
    const dt_train_api *train;
    const dt_bind_api *bind;
    const dt_metrics_api *metrics;
    const dt_rollout_api *rollout;
    const dt_replay_api *replay;
    offline_config config;
    offpolicy_roles roles;
    dt_rollout *experience;
    dt_replay *memory;
    dt_train *trainer;
    dt_replay_told told;
    limits limits;
    multiplier_rule rule;
    uint32_t n_heads;                    /* the reward, then every cost with a limit */
    uint32_t cost_of[OFFLINE_MAX_HEADS]; /* of the environment's */
    double scale[OFFLINE_MAX_HEADS];     /* that they are learnt with */
    double known[OFFLINE_MAX_HEADS]; /* mean value of the behaviour, by what it earned and cost, as they are learnt */
    struct kept {                    /* by a checkpoint */
        multiplier multiplier[OFFLINE_MAX_HEADS];
        double value[OFFLINE_MAX_HEADS],
            deviation[OFFLINE_MAX_HEADS]; /* mean of V, deviation of A, as they are learnt */
        double offset[OFFLINE_MAX_HEADS]; /* of V: what networks say is as much less */
        uint64_t estimates;               /* rounds that they are of */
    } kept;
    double sum[OFFLINE_MAX_HEADS], of_value[OFFLINE_MAX_HEADS],
        squares[OFFLINE_MAX_HEADS]; /* of a minibatch: of A, of V, of A's squares */
    double weight;
    uint64_t rows;
} offline_state;

static inline bool offline_is_clone(const offline_state *s)
{
    return s->config.algorithm == OFFLINE_CLONE;
}

/* self: offline_state, with roles, n_heads and what follows it set. Errors: those of the graph. */
dt_status offline_record(void *self, dt_graph *g);

#endif
