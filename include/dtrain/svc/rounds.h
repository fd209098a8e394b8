/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rounds/1": on-policy training in rounds. A round collects
 * train_batch samples with the policy as it is (svc/rollout.h) and makes sgd_epochs passes of minibatches (data.batch)
 * over them. The phase provides the losses and their schedule:
 *
 *   create    wiring->create(h, &wd, &s->w); rounds->create(h, &rd, &s->rounds);
 *   start     s->rounds->api->start(s->rounds);
 *   iterate   s->rounds->api->iterate(s->rounds, out);
 *   evaluate  s->rounds->api->evaluate(s->rounds, out);
 *
 * with rd.record for the losses and rd.begin for step inputs of a round; all other members of dt_rounds_desc are
 * optional. The host records metrics of every round (charts/episodic_return, costs/..., losses/explained_variance,
 * time/...). The position of training is the trainer's: a checkpoint between two rounds is complete.
 *
 * A round depends on parameters, seed and configuration only: results are bit-identical on any number of threads and
 * ranks and after a resume.
 * Threads: [main].
 */
#ifndef DTRAIN_SVC_ROUNDS_H
#define DTRAIN_SVC_ROUNDS_H

#include "dtrain/plugin.h"
#include "dtrain/svc/rollout.h"
#include "dtrain/svc/train.h"
#include "dtrain/svc/wiring.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_ROUNDS "dtrain.rounds/1"

typedef struct dt_rounds dt_rounds;

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Options in the section of the phase: a member of its configuration, and DT_ROUNDS_OPTIONS in its option table.
 * Extension "dtrain.defaults/1" may change a default: "my_phase.sgd_epochs=1". */
typedef struct dt_rounds_config {
    int64_t iterations, train_batch, fragment, sgd_epochs;
    int64_t overlap; /* 1: the next round is collected during training, by the policy of before it. 0 if the phase
                      * has no such option */
    double gamma, lambda, cost_gamma, cost_lambda;
    double clip_obs, clip_reward;
    uint8_t normalise_advantage, normalise_obs, normalise_reward, centre;
    uint8_t reserved[4];
} dt_rounds_config;

/* clang-format off */
#define DT_ROUNDS_OPTION_(T, PART, FIELD, type, dfl, unit, min, max, help)                                             \
    DT_OPTION_OF(T, PART, dt_rounds_config, FIELD, type, dfl, unit, min, max, NULL, help)
/* Rows for a configuration T with a member PART of type dt_rounds_config; ROUNDS: default of iterations, as text. */
#define DT_ROUNDS_OPTIONS(T, PART, ROUNDS)                                                                             \
    DT_ROUNDS_OPTION_(T, PART, iterations, DT_OPT_I64, ROUNDS, "1", 1, 1e9,                                            \
        "rounds of collecting samples and training"),                                                                  \
    DT_ROUNDS_OPTION_(T, PART, train_batch, DT_OPT_I64, "4000", "samples", 1, 1e9,                                     \
        "samples of a round, of all instances together; rounded up to whole fragments"),                               \
    DT_ROUNDS_OPTION_(T, PART, fragment, DT_OPT_I64, "200", "steps", 1, 1e6,                                           \
        "steps of an instance are a multiple of this"),                                                                \
    DT_ROUNDS_OPTION_(T, PART, sgd_epochs, DT_OPT_I64, "10", "1", 1, 1000,                                             \
        "passes over the samples of a round; minibatches are data.batch"),                                             \
    DT_ROUNDS_OPTION_(T, PART, gamma, DT_OPT_F64, "0.99", "1", 0, 1, "discount of the reward"),                        \
    DT_ROUNDS_OPTION_(T, PART, lambda, DT_OPT_F64, "0.95", "1", 0, 1,                                                  \
        "lambda of the generalised advantage estimate (Schulman et al. 2016)"),                                        \
    DT_ROUNDS_OPTION_(T, PART, cost_gamma, DT_OPT_F64, "0.99", "1", 0, 1, "discount of costs"),                        \
    DT_ROUNDS_OPTION_(T, PART, cost_lambda, DT_OPT_F64, "0.95", "1", 0, 1, "the same for costs"),                      \
    DT_ROUNDS_OPTION_(T, PART, normalise_advantage, DT_OPT_BOOL, "true", NULL, 0, 0,                                   \
        "normalise the advantages of a round to mean 0 and deviation 1"),                                              \
    DT_ROUNDS_OPTION_(T, PART, normalise_obs, DT_OPT_BOOL, "false", NULL, 0, 0,                                        \
        "normalise observations by their running mean and deviation"),                                                 \
    DT_ROUNDS_OPTION_(T, PART, normalise_reward, DT_OPT_BOOL, "false", NULL, 0, 0,                                     \
        "scale rewards by the running deviation of the discounted return"),                                            \
    DT_ROUNDS_OPTION_(T, PART, centre, DT_OPT_BOOL, "false", NULL, 0, 0,                                               \
        "subtract the mean per step from rewards and costs: for tasks that never end, with gamma up to 1"),            \
    DT_OPTION_OF_WITH(T, PART, dt_rounds_config, clip_obs, DT_OPT_F64, "10", "1", 0, 1e9, NULL,                        \
        "bound of normalised observations; 0: none", "normalise_obs"),                                                 \
    DT_OPTION_OF_WITH(T, PART, dt_rounds_config, clip_reward, DT_OPT_F64, "10", "1", 0, 1e9, NULL,                     \
        "bound of normalised rewards; 0: none", "normalise_reward")
/* One more row, for phases whose loss knows log_prob of the policy that acted, one update ago. */
#define DT_ROUNDS_OPTION_OVERLAP(T, PART)                                                                              \
    DT_ROUNDS_OPTION_(T, PART, overlap, DT_OPT_I64, "0", "rounds", 0, 1,                                               \
        "1: the next round is collected while learning from this one, by the previous policy; 0: after it")
/* clang-format on */

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

typedef struct dt_pass_report { /* of one pass over a round's samples */
    uint32_t struct_size, n_losses;
    uint64_t pass, passes;        /* from 0; of a round, at most */
    uint64_t steps;               /* minibatches of it */
    const char *const *loss_name; /* [n_losses] the first recorded, at most DT_STEP_MAX_LOSSES */
    const double *loss_value;     /* [n_losses] means over its minibatches, unweighted */
} dt_pass_report;

/* What it points to is copied by create, except target and group, which live until start has returned. */
typedef struct dt_rounds_desc {
    uint32_t struct_size, config_size; /* sizeof(dt_rounds_desc), sizeof(dt_rounds_config) */
    const char *phase;                 /* its id, for messages */
    const dt_rounds_config *config;    /* copied */
    dt_wiring *wiring;
    void *user; /* of the functions below, which are [main] */
    /* Records the losses from the outputs of the models, which are recorded already. Called like dt_train_desc.record.
     * Fields: svc/rollout.h. */
    dt_status (*record)(void *user, dt_graph *g, const dt_policy_tensors *p);
    /* Optional [collective], before a round is collected, and by start with the first: sets step inputs. */
    dt_status (*begin)(void *user, uint64_t round);
    /* Optional [collective], after a round was collected and before training on it. */
    dt_status (*collected)(void *user, uint64_t round, const dt_rollout_report *r);
    /* Optional [collective], before a pass over its samples, from 0. */
    dt_status (*before_pass)(void *user, uint64_t pass);
    /* Optional [collective], after it; DT_DONE: it was the last one of this round. */
    dt_status (*after_pass)(void *user, const dt_pass_report *r);
    /* Optional members of dt_train_desc. */
    const char *manual_loss;
    dt_data *stored;
    dt_status (*record_stored)(void *user, dt_graph *g);
    uint64_t n_stored;
    const dt_train_target *target; /* [n_targets] of dt_train_desc; lives until start */
    const dt_train_group *group;   /* [n_groups] the same */
    uint32_t n_targets, n_groups;
    uint8_t normalise;   /* DT_NORMALISE_*: how, where the option normalise_advantage is set; 0: EACH */
    uint8_t transitions; /* of dt_rollout_desc: 1, 2: fields of what comes after a row */
    uint8_t reserved[6];
} dt_rounds_desc;
/* The usual one: dt_rounds_desc d = DT_ROUNDS_DESC("mine", &c->rounds, s->wiring, s, record); d.begin = begin; */
#define DT_ROUNDS_DESC(PHASE, CONFIG, WIRING, USER, RECORD)                                                            \
    DT_DESC_(dt_rounds_desc,                                                                                           \
             DT_OPS(DT_SET(config_size, (uint32_t)sizeof(dt_rounds_config)), DT_SET(phase, PHASE),                     \
                    DT_SET(config, CONFIG), DT_SET(wiring, WIRING), DT_SET(user, USER), DT_SET(record, RECORD)))

typedef struct dt_rounds_api {
    uint32_t struct_size, reserved;
    /* In create, after the wiring. The host frees it, and its trainer, with the phase; one per phase. Errors:
     * DT_ECONFIG (fragment above train_batch), DT_EINVAL (no config, wiring or record), those of rollout. */
    dt_status (*create)(const dt_host *h, const dt_rounds_desc *d, dt_rounds **out_p);
    /* [collective] In start: makes the trainer, of all models of the wiring, for iterations * sgd_epochs passes.
     * Errors: those of train. */
    dt_status (*start)(dt_rounds *r);
    /* [collective] One round. out: dt_phase_ops.iterate's. DT_DONE: it was the last, or there is none left. Errors:
     * those of rollout, of train, and what the functions of the phase return. */
    dt_status (*iterate)(dt_rounds *r, dt_progress *out);
    /* [collective] The policy on the seeds of section evaluation, reported. out: dt_phase_ops.evaluate's. */
    dt_status (*evaluate)(dt_rounds *r, dt_progress *out);
} dt_rounds_api;

struct dt_rounds { /* first member of the host's object; read-only */
    const dt_rounds_api *api;
    uint32_t struct_size, reserved;
    dt_wiring *wiring;
    const dt_train_api *train;
    dt_train *trainer; /* NULL before start */
    const dt_rollout_api *rollout;
    dt_rollout *experience;
    uint64_t n_rounds; /* in all */
};

/* start, iterate and evaluate of a phase that has nothing to add, as functions FN_start, FN_iterate and FN_evaluate: of
 * its state's member rounds. */
#define DT_ROUNDS_OPS_DEFINE(FN, STATE)                                                                                \
    static dt_status FN##_start(void *self)                                                                            \
    {                                                                                                                  \
        dt_rounds *r_ = ((STATE *)self)->rounds;                                                                       \
        return r_->api->start(r_);                                                                                     \
    }                                                                                                                  \
    static dt_status FN##_iterate(void *self, dt_progress *out)                                                        \
    {                                                                                                                  \
        dt_rounds *r_ = ((STATE *)self)->rounds;                                                                       \
        return r_->api->iterate(r_, out);                                                                              \
    }                                                                                                                  \
    static dt_status FN##_evaluate(void *self, dt_progress *out)                                                       \
    {                                                                                                                  \
        dt_rounds *r_ = ((STATE *)self)->rounds;                                                                       \
        return r_->api->evaluate(r_, out);                                                                             \
    }                                                                                                                  \
    struct dt_define_needs_a_semicolon

#ifdef __cplusplus
}
#endif
#endif
