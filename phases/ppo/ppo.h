/* SPDX-License-Identifier: Apache-2.0
 *
 * Proximal policy optimisation (Schulman et al. 2017), as phase2_ppo and phase3_constrained use it: options, and the
 * coefficients of the loss (ppo_loss.h) from round to round. The host runs the rounds (svc/rounds.h). A phase's state
 * contains a zeroed ppo, its configuration a wiring, rounds and a ppo_config. Threads: [main].
 */
#ifndef DTRAIN_PHASES_PPO_PPO_H
#define DTRAIN_PHASES_PPO_PPO_H

#include "ppo_loss.h"

#include "dtrain/svc/metrics.h"
#include "dtrain/svc/rounds.h"

typedef struct ppo_config {
    double clip, value_clip, value_coef, cost_value_coef;
    double entropy_coef, entropy_coef_end;
    double kl_target, kl_coef, target_kl;
    double imagine_weight;
    int64_t imagine_steps;
    uint32_t value_clip_mode;
    uint32_t reserved;
} ppo_config;

typedef struct ppo {
    const dt_host *h;
    const char *phase; /* its id, for messages */
    const dt_metrics_api *metrics;
    ppo_config config;
    ppo_loss_config loss;
    bool is_normalised; /* advantages are normalised */
    dt_wiring *wiring;
    dt_rounds *rounds; /* set by the phase */
    double kl_coef;
    double advantage_std;    /* of this round */
    uint64_t round, n_still; /* n_still: rounds in a row in which the policy hardly changed */
} ppo;

/* Binds models and environment, and sets k->loss from the options; the phase may change it until start. Errors: those
 * of wiring; DT_ECONFIG, DT_ESHAPE (imagine.h). */
dt_status ppo_create(ppo *k, const dt_host *h, const char *phase, const ppo_config *c, const dt_wiring_config *wiring,
                     const dt_rounds_config *rounds);

/* Members of dt_rounds_desc; self is a ppo. */
dt_status ppo_record(void *self, dt_graph *g, const dt_policy_tensors *p);
dt_status ppo_begin_round(void *self, uint64_t round);
dt_status ppo_after_collect(void *self, uint64_t round, const dt_rollout_report *r);
dt_status ppo_after_pass(void *self, const dt_pass_report *r);

/* Its part of a phase's state, 8 bytes; self is a ppo. */
dt_status ppo_save(void *self, dt_writer *w);
dt_status ppo_load(void *self, dt_reader *r, uint32_t version);

extern const char *const ppo_value_clip_modes[]; /* DT_VALUE_* */

/* Rows of an option table for a configuration T with a member PART of type ppo_config. */
/* clang-format off */
#define PPO_OPTION(T, PART, FIELD, type, dfl, unit, min, max, help)                                                \
    DT_OPTION_OF(T, PART, ppo_config, FIELD, type, dfl, unit, min, max, NULL, help)
#define PPO_OPTIONS(T, PART)                                                                                       \
    PPO_OPTION(T, PART, clip, DT_OPT_F64, "0.2", "1", 0, 1, "clipping of the probability ratio"),                  \
    DT_OPTION_OF(T, PART, ppo_config, value_clip_mode, DT_OPT_ENUM, "none", NULL, 0, 0, ppo_value_clip_modes,          \
        "none; step: the larger of the errors of the value and of the old one moved by at most the clip (PPO2); "      \
        "error: the squared error itself, at most the clip (RLlib; errors above it have no gradient)"),                \
    PPO_OPTION(T, PART, value_clip, DT_OPT_F64, "10.0", "1", 0, 1e9, "bound of value_clip_mode"),                  \
    PPO_OPTION(T, PART, value_coef, DT_OPT_F64, "0.5", "1", 0, 1e6, "weight of the value loss"),                   \
    PPO_OPTION(T, PART, cost_value_coef, DT_OPT_F64, "0.5", "1", 0, 1e6,                                           \
        "weight of the loss of the values of costs"),                                                                  \
    PPO_OPTION(T, PART, entropy_coef, DT_OPT_F64, "0.01", "1", 0, 1e6,                                             \
        "weight of the entropy in the first round"),                                                                   \
    PPO_OPTION(T, PART, entropy_coef_end, DT_OPT_F64, "0.01", "1", 0, 1e6,                                         \
        "weight of the entropy in the last round"),                                                                    \
    PPO_OPTION(T, PART, kl_target, DT_OPT_F64, "0", "nats", 0, 1e6,                                                \
        "target of the adaptive KL penalty; 0: no penalty"),                                                           \
    PPO_OPTION(T, PART, kl_coef, DT_OPT_F64, "0.2", "1", 1e-6, 1e6, "initial weight of the KL penalty"),           \
    PPO_OPTION(T, PART, target_kl, DT_OPT_F64, "0", "nats", 0, 1e6,                                                \
        "early stopping: a pass whose mean KL is above 1.5 times this is the last; 0: off"),                           \
    PPO_OPTION(T, PART, imagine_weight, DT_OPT_F64, "0", "1", 0, 1,                                                \
        "share of imagined branches in the policy's advantage; the policy then reads only obs; 0: none"),              \
    PPO_OPTION(T, PART, imagine_steps, DT_OPT_I64, "1", "steps", 1, 64, "actions of an imagined branch")
/* clang-format on */

#endif
