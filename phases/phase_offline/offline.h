/* SPDX-License-Identifier: Apache-2.0
 *
 * State, checks, losses and cost estimates of phase_offline; definitions are in phase_offline.c. A head is the reward
 * or a cost with a limit. Step inputs: mix [heads], the factor of each advantage in the exponent of a weight; offset
 * [heads], added to outputs of networks; follows [1], 1: values of the policy, 0: of the behaviour. Outputs with
 * algorithm = "advantage": advantages, values [A, heads], targets [A, estimates], weights, ratios [A]. Threads: [main].
 */
#ifndef DTRAIN_PHASES_OFFLINE_H
#define DTRAIN_PHASES_OFFLINE_H

#include "constraints/limits.h"
#include "constraints/multiplier.h"
#include "offpolicy/actor_critic.h"

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/replay.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/train.h"

enum { OFFLINE_ADVANTAGE, OFFLINE_CLONE };
enum { OFFLINE_MAX_HEADS = 1 + DT_ENV_MAX_COSTS };

typedef struct offline_config {
    const char *rollouts, *limits;
    int64_t iterations, updates, critics, clone_rounds;
    double gamma, tau, beta, weight_max, ratio_max, value_coef;
    double actor_learning_rate, critic_learning_rate, actor_clip, critic_clip;
    multiplier_config multiplier;
    double margin, clip_obs;
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
    actor_critic models;
    dt_rollout *experience;
    dt_replay *memory;
    dt_train *trainer;
    dt_replay_stats stats;
    limits limits;
    multiplier_rule rule;
    uint32_t n_heads;                    /* the reward, then every cost with a limit */
    uint32_t cost_of[OFFLINE_MAX_HEADS]; /* of the environment's */
    double scale[OFFLINE_MAX_HEADS];     /* of rewards and costs in training */
    double known[OFFLINE_MAX_HEADS];     /* mean value of the behaviour, scaled */
    struct kept {                        /* in checkpoints */
        multiplier multiplier[OFFLINE_MAX_HEADS];
        double deviation[OFFLINE_MAX_HEADS]; /* of A, scaled */
        double offset[OFFLINE_MAX_HEADS];    /* of V above the output of the network */
        uint64_t estimates;                  /* rounds of these estimates */
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

/* 1 - gamma (1 - p), p: the share of terminal steps. */
static inline double offline_rate(const offline_state *s)
{
    return 1 - s->config.gamma * (1 - (double)s->stats.terminated / (double)s->stats.rows);
}

/* check.c: Errors: DT_ECONFIG: limits without effect. */
dt_status offline_check(const dt_host *h, const offline_config *c);
/* table: the phase's options with their defaults. Errors: DT_ECONFIG names an option that is not at its default
 * although the other options leave it without effect. */
dt_status offline_check_idle(const dt_host *h, const dt_option *table, const offline_config *c);

/* costs.c: of an episode of the policy, in the environment's units, by head. */
typedef struct offline_costs {
    double mean[OFFLINE_MAX_HEADS], off[OFFLINE_MAX_HEADS]; /* half of the 95 % interval */
    double share;                                           /* effective sample size per row, 0 to 1 */
} offline_costs;
/* [collective] Draws. */
dt_status offline_estimate_costs(offline_state *s, offline_costs *out);
/* Logs on one rank, at the end, which limits the estimates support. */
void offline_log_limits(const offline_state *s, const offline_costs *c);

/* losses.c: self: offline_state, with models, n_heads and the following members set. Errors: those of the graph. */
dt_status offline_record(void *self, dt_graph *g);

#endif
