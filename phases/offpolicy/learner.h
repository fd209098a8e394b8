/* SPDX-License-Identifier: Apache-2.0
 *
 * Off-policy learning from a replay buffer (svc/replay.h), as in DDPG, TD3 and SAC: options, rounds, and the loss of
 * the critics. A round, which is an iteration:
 *
 *   collects      collect_steps steps of every instance; the first round until the buffer has learning_starts samples
 *   samples       `intensity` times as many transitions as the round collected, from the whole buffer
 *   updates       in batches of data.batch: the critics for each, the other models for every policy_delay-th
 *
 * With a prioritised buffer each batch is sampled alone, and its TD errors become priorities before the next one
 * (Schaul et al. 2016, algorithm 1).
 *
 * A phase's configuration and state begin with offpolicy_config and offpolicy_learner; the phase records the other
 * losses. A round depends on parameters, seed, buffer and configuration alone. Threads: [main].
 */
#ifndef DTRAIN_PHASES_OFFPOLICY_LEARNER_H
#define DTRAIN_PHASES_OFFPOLICY_LEARNER_H

#include "actor_critic.h"

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/replay.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/train.h"

typedef struct offpolicy_config {
    int64_t iterations, collect_steps, intensity, buffer_size, learning_starts, n_step;
    double gamma, tau, reward_scale, priority, priority_correction;
    double actor_learning_rate, critic_learning_rate, actor_clip, critic_clip;
    int64_t critics, policy_delay;
} offpolicy_config;

typedef struct offpolicy_learner {
    const dt_host *h;
    const char *phase; /* its id, for messages */
    const dt_train_api *train;
    const dt_bind_api *bind;
    const dt_metrics_api *metrics;
    const dt_rollout_api *rollout;
    const dt_replay_api *replay;
    offpolicy_config config;
    actor_critic models;
    dt_rollout *experience;
    dt_replay *memory;
    dt_train *trainer;
    uint32_t groups; /* bits of all parameter groups */
    uint32_t critic; /* bit of the critic's group, which every update trains */
    /* Sets the exploration noise of a round, counted from 0; NULL: none. Set before start. */
    dt_status (*explore)(struct offpolicy_learner *l, uint64_t round);
    uint64_t updates; /* of a round, with priorities; else 0 */
    float *error;     /* [draw * places], where priorities count */
    uint64_t n_errors, most_errors;
    uint64_t n_empty; /* rounds of this process in which no agent acted */
} offpolicy_learner;

/* Errors: DT_ECONFIG. */
dt_status offpolicy_check(const dt_host *h, const char *phase, const offpolicy_config *c);
/* Binds environment and models, and creates rollout and buffer. squash: continuous actions come from a squashed
 * Gaussian whose deviation is an output of the actor. Errors: those of bind, rollout and replay; DT_EUNSUPPORTED: the
 * host lacks a service. */
dt_status offpolicy_create(offpolicy_learner *l, const dt_host *h, const char *phase, const offpolicy_config *c,
                           bool squash);
/* Creates the trainer with the phase's parameter groups and target networks. Errors: those of train. */
dt_status offpolicy_start(offpolicy_learner *l, dt_status (*record)(void *learner, dt_graph *g),
                          const dt_train_group *group, uint32_t n_groups, const dt_train_target *target,
                          uint32_t n_targets);
/* The loss of the critics, "critic_loss", sum over critics of (Q(s, a) - y)^2 for executed actions a, and "q", their
 * mean estimate, of weight 0. p: outputs of the policy for s; y [A,1]: the TD target, without gradient. */
dt_status offpolicy_record_critic_loss(const offpolicy_learner *l, dt_graph *g, const dt_policy_tensors *p,
                                       dt_tensor *y);
/* TD target reward_scale r + discount next, [A,1], without gradient; next [A,1]: the value of the next state. */
dt_tensor *offpolicy_td_target(const offpolicy_learner *l, dt_graph *g, dt_tensor *next);

/* Members of dt_phase_ops; self is an offpolicy_learner. */
dt_status offpolicy_iterate(void *self, dt_progress *out);
dt_status offpolicy_evaluate(void *self, dt_progress *out);
void offpolicy_destroy(void *self);

/* Rows of a phase's option table, for a configuration that begins with offpolicy_config. */
/* clang-format off */
#define OFFPOLICY_OPTION(member, type, dfl, unit, min, max, help)                                                      \
    DT_OPTION(offpolicy_config, member, type, dfl, unit, min, max, NULL, help)
#define OFFPOLICY_OPTIONS(INTENSITY, TAU, RATE, CRITICS, DELAY)                                                        \
    OFFPOLICY_OPTION(iterations, DT_OPT_I64, "1000", "1", 1, 1e9, "rounds of acting and training"),                    \
    OFFPOLICY_OPTION(collect_steps, DT_OPT_I64, "8", "env steps", 1, 1e6, "steps of every instance in a round"),       \
    OFFPOLICY_OPTION(intensity, DT_OPT_I64, INTENSITY, "1", 1, 1e6,                                                    \
        "training samples per collected sample; if equal to data.batch: one update per collected sample"),             \
    OFFPOLICY_OPTION(buffer_size, DT_OPT_I64, "100000", "samples", 1, 1e12,                                            \
        "capacity of the replay buffer, all ranks together"),                                                          \
    OFFPOLICY_OPTION(learning_starts, DT_OPT_I64, "1000", "samples", 1, 1e12, "samples collected before training "     \
    "starts"),                                                                                                         \
    OFFPOLICY_OPTION(n_step, DT_OPT_I64, "1", "env steps", 1, 1024, "rewards in a target before the critic's "         \
    "estimate (n-step)"),                                                                                              \
    OFFPOLICY_OPTION(gamma, DT_OPT_F64, "0.99", "1", 0, 1, "discount of the reward"),                                  \
    OFFPOLICY_OPTION(tau, DT_OPT_F64, TAU, "1", 1e-9, 1, "soft-update rate of the target networks"),                   \
    OFFPOLICY_OPTION(reward_scale, DT_OPT_F64, "1", "1", 1e-9, 1e9, "factor of rewards"),                              \
    OFFPOLICY_OPTION(priority, DT_OPT_F64, "0", "1", 0, 1,                                                             \
        "exponent of priorities: samples with larger TD errors are drawn more often (Schaul et al. 2016); 0: "         \
        "uniform"),                                                                                                    \
    OFFPOLICY_OPTION(priority_correction, DT_OPT_F64, "0.4", "1", 0, 1,                                                \
        "exponent of the importance weights that correct for priorities; 1: fully"),                                   \
    OFFPOLICY_OPTION(actor_learning_rate, DT_OPT_F64, RATE, "1", 0, 10, "0: training.learning_rate"),                  \
    OFFPOLICY_OPTION(critic_learning_rate, DT_OPT_F64, RATE, "1", 0, 10, "0: training.learning_rate"),                 \
    OFFPOLICY_OPTION(actor_clip, DT_OPT_F64, "0", "1", -1, 1e9,                                                        \
        "maximum norm of the actor's gradient; 0: training.gradient_clip, below 0: none"),                             \
    OFFPOLICY_OPTION(critic_clip, DT_OPT_F64, "0", "1", -1, 1e9, "the same for the critic"),                           \
    OFFPOLICY_OPTION(critics, DT_OPT_I64, CRITICS, "1", 1, ACTOR_CRITIC_MAX_CRITICS,                                   \
        "number of critics; the minimum of their estimates is used (Fujimoto et al. 2018)"),                           \
    OFFPOLICY_OPTION(policy_delay, DT_OPT_I64, DELAY, "1", 1, 1e6,                                                     \
        "critic updates per actor update")
/* clang-format on */

#endif
