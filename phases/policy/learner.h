/* SPDX-License-Identifier: Apache-2.0
 *
 * What phases that improve a policy by the clipped objective share: their options, and rounds of collecting experience
 * and learning from it. A phase's configuration and state begin with ppo_config and ppo_learner. Threads: [main].
 */
#ifndef DTRAIN_PHASES_POLICY_LEARNER_H
#define DTRAIN_PHASES_POLICY_LEARNER_H

#include "loss.h"
#include "wiring.h"

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/train.h"
#include <stdbool.h>

typedef struct ppo_config {
    int64_t iterations, train_batch, fragment, sgd_epochs, window;
    double gamma, lambda, cost_gamma, cost_lambda;
    double clip, value_clip, value_coef, cost_value_coef;
    double entropy_coef, entropy_coef_end;
    double kl_target, kl_coef, target_kl;
    double clip_obs, clip_reward;
    uint32_t value_clip_mode;
    uint8_t normalise_advantage, normalise_obs, normalise_reward, centre, foresight, keep_foresight;
    double history_s, horizon_s, rate_hz;
    double imagine_weight;
    int64_t imagine_steps;
    int64_t overlap; /* 0 where a phase has no such option */
} ppo_config;

typedef struct ppo_learner {
    const dt_host *h;
    const char *phase; /* its id, for messages */
    const dt_train_api *train;
    const dt_bind_api *bind;
    const dt_metrics_api *metrics;
    const dt_rollout_api *rollout;
    ppo_config config;
    bool has_mix; /* learns from advantages of reward and costs together (loss.h): set before start */
    dt_status (*before_pass)(struct ppo_learner *l, uint64_t pass); /* over a round's samples; NULL: nothing to do */
    bool is_apart;      /* the phase moves the policy itself, values alone are learnt here: the same */
    bool wants_barrier; /* to learn the shield's, where there is one: set before create */
    bool has_barrier;   /* then the experience has transitions (svc/rollout.h) */
    /* a loss of the phase, NULL: none; set before start */
    dt_status (*record_more)(const void *learner, dt_graph *g, const ppo_policy *p);
    /* stored data mixed into a round (svc/train.h), NULL: none, and what is recorded of it; set before start */
    dt_data *stored;
    uint64_t n_stored;
    dt_status (*record_stored)(const void *learner, dt_graph *g);
    dt_env *env;
    ppo_wiring wiring;
    dt_rollout *experience;
    dt_train *trainer;
    double kl_coef;
} ppo_learner;

/* Errors: DT_ECONFIG. */
dt_status ppo_check(const dt_host *h, const char *phase, const ppo_config *c);
/* Binds environment and models. normalise: DT_NORMALISE_*, where advantages are to be normalised.
 * Errors: those of bind and rollout; DT_EUNSUPPORTED where the host lacks a service. */
dt_status ppo_create(ppo_learner *l, const dt_host *h, const char *phase, const ppo_config *c, uint8_t normalise);

/* Operations as dt_phase_ops has them; self is a ppo_learner. A phase whose state is one names them as they are. */
dt_status ppo_start(void *self);
dt_status ppo_evaluate(void *self, dt_progress *out);
void ppo_destroy(void *self);
/* The learner's part of a phase's state: 8 bytes. */
dt_status ppo_save(void *self, dt_writer *w);
dt_status ppo_load(void *self, dt_reader *r, uint32_t version);

/* The next round's experience; iteration_p: which round. DT_DONE: there is none left. */
dt_status ppo_collect(ppo_learner *l, uint64_t *iteration_p, dt_rollout_report *out);
/* Where the configuration wants it and one more round follows: collects it beside what comes next. */
dt_status ppo_ahead(ppo_learner *l, uint64_t iteration);
/* Learns from it and reports both. DT_DONE after the last round. */
dt_status ppo_learn(ppo_learner *l, uint64_t iteration, const dt_rollout_report *collected, dt_progress *out);

extern const char *const ppo_clip_modes[]; /* DT_VALUE_* */

/* Rows of a phase's option table, for a configuration that begins with ppo_config. */
/* clang-format off */
#define PPO_OPTION(member, type, dfl, unit, min, max, help)                                                            \
    DT_OPTION(ppo_config, member, type, dfl, unit, min, max, NULL, help)
#define PPO_OPTIONS(rounds)                                                                                            \
    PPO_OPTION(iterations, DT_OPT_I64, rounds, "1", 1, 1e9, "rounds of collecting and learning"),                      \
    PPO_OPTION(train_batch, DT_OPT_I64, "4000", "samples", 1, 1e9,                                                     \
        "samples of a round, of all instances together; rounded up to whole fragments"),                               \
    PPO_OPTION(fragment, DT_OPT_I64, "200", "steps", 1, 1e6, "steps of an instance are a multiple of this"),           \
    PPO_OPTION(sgd_epochs, DT_OPT_I64, "10", "1", 1, 1000,                                                             \
        "passes over the samples of a round; minibatches are data.batch"),                                             \
    PPO_OPTION(window, DT_OPT_I64, "1", "steps", 1, 1024,                                                              \
        "observations a controller with memory sees, this one included"),                                              \
    PPO_OPTION(gamma, DT_OPT_F64, "0.99", "1", 0, 1, "discount of the reward"),                                        \
    PPO_OPTION(lambda, DT_OPT_F64, "0.95", "1", 0, 1, "of the generalised advantage (Schulman et al. 2016)"),          \
    PPO_OPTION(cost_gamma, DT_OPT_F64, "0.99", "1", 0, 1, "discount of costs"),                                        \
    PPO_OPTION(cost_lambda, DT_OPT_F64, "0.95", "1", 0, 1, "the same for costs"),                                      \
    PPO_OPTION(clip, DT_OPT_F64, "0.2", "1", 0, 1, "clipping of the probability ratio"),                               \
    DT_OPTION(ppo_config, value_clip_mode, DT_OPT_ENUM, "none", NULL, 0, 0, ppo_clip_modes,                            \
        "none; step: the larger of the errors of the value and of the old one moved by at most the clip (PPO2); "      \
        "error: the squared error itself, at most the clip (RLlib; errors above it teach nothing)"),                   \
    PPO_OPTION(value_clip, DT_OPT_F64, "10.0", "1", 0, 1e9, "bound of value_clip_mode"),                               \
    PPO_OPTION(value_coef, DT_OPT_F64, "0.5", "1", 0, 1e6, "weight of the value loss"),                                \
    PPO_OPTION(cost_value_coef, DT_OPT_F64, "0.5", "1", 0, 1e6, "weight of the loss of the values of costs"),          \
    PPO_OPTION(entropy_coef, DT_OPT_F64, "0.01", "1", 0, 1e6, "weight of the entropy in the first round"),             \
    PPO_OPTION(entropy_coef_end, DT_OPT_F64, "0.01", "1", 0, 1e6, "weight of the entropy in the last round"),          \
    PPO_OPTION(kl_target, DT_OPT_F64, "0", "nats", 0, 1e6, "aim of the adaptive KL penalty; 0: no penalty"),           \
    PPO_OPTION(kl_coef, DT_OPT_F64, "0.2", "1", 1e-6, 1e6, "first weight of the KL penalty"),                          \
    PPO_OPTION(target_kl, DT_OPT_F64, "0", "nats", 0, 1e6,                                                             \
        "a pass whose mean KL is above 1.5 times of it is the last; 0: none"),                                         \
    PPO_OPTION(normalise_advantage, DT_OPT_BOOL, "true", NULL, 0, 0,                                                   \
        "advantages of a round to mean 0 and deviation 1"),                                                            \
    PPO_OPTION(normalise_obs, DT_OPT_BOOL, "false", NULL, 0, 0, "observations by their running mean and deviation"),   \
    PPO_OPTION(normalise_reward, DT_OPT_BOOL, "false", NULL, 0, 0,                                                     \
        "rewards by the running deviation of the discounted return"),                                                  \
    PPO_OPTION(centre, DT_OPT_BOOL, "false", NULL, 0, 0,                                                               \
        "rewards and costs less their mean per step: for tasks that never end, with gamma up to 1"),                   \
    PPO_OPTION(clip_obs, DT_OPT_F64, "10", "1", 0, 1e9, "bound of normalised observations; 0: none"),                  \
    PPO_OPTION(clip_reward, DT_OPT_F64, "10", "1", 0, 1e9, "bound of normalised rewards; 0: none"),                    \
    PPO_OPTION(foresight, DT_OPT_BOOL, "false", NULL, 0, 0,                                                            \
        "what models.world predicts of vehicles is shown to controller and shield"),                                   \
    PPO_OPTION(keep_foresight, DT_OPT_BOOL, "true", NULL, 0, 0,                                                        \
        "predictions of frozen models are kept with the samples; false: computed again in every pass, the same bits"), \
    PPO_OPTION(history_s, DT_OPT_F64, "3", "s", 0, 60, "foresight: past that the world model sees, as in phase 1"),    \
    PPO_OPTION(horizon_s, DT_OPT_F64, "5", "s", 0, 60, "foresight: how far it looks, as in phase 1"),                  \
    PPO_OPTION(rate_hz, DT_OPT_F64, "5", "1/s", 0.1, 100, "foresight: steps of both, as in phase 1"),          \
    PPO_OPTION(imagine_weight, DT_OPT_F64, "0", "1", 0, 1,                                                             \
        "share of imagined branches in the advantage that the policy follows, which then reads obs alone; 0: none"),   \
    PPO_OPTION(imagine_steps, DT_OPT_I64, "1", "steps", 1, 64, "actions of an imagined branch")
/* clang-format on */

#endif
