/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.train/1": one optimizer step over one global batch, and inference over a data set.
 *
 * A phase may have several trainers (DT_TRAIN_MAX_TRAINERS), each with its own graph, data, groups, schedule and
 * number of steps: a model of the environment that learns from real transitions, and a policy that learns from what
 * the model imagines. A model is in one of them; what another one needs of it is computed by evaluate. Checkpoints have
 * all of them.
 *
 * The host owns the batch: it samples (keyed permutation), cuts the batch into leaves and slices, prefetches, runs the
 * recorded graph forward and backward on every worker, sums leaves in the fixed tree, agrees across ranks, clips and
 * updates. The result depends on seed, data and configuration alone, not on threads or ranks. Options come from the
 * sections training, data and engine of the configuration. Threads: [main][collective].
 */
#ifndef DTRAIN_SVC_TRAIN_H
#define DTRAIN_SVC_TRAIN_H

#include "dtrain/plugin.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/graph.h"
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_TRAIN "dtrain.train/1"

typedef struct dt_train dt_train;
typedef struct dt_rows dt_rows; /* fields and outputs of one slice, passed by evaluate */

enum { DT_TRAIN_MAX_GROUPS = 8, DT_TRAIN_MAX_TARGETS = 8, DT_TRAIN_MAX_TRAINERS = 4 };
/* Parameter group: its losses update the parameters of its roles only, while gradients flow through other models: a
 * deterministic policy gradient flows through the critic without updating it. If there are groups, every recorded loss
 * is in one, and roles in no group are frozen. */
typedef struct dt_train_group {
    uint32_t struct_size, n_roles, n_losses, reserved;
    const char *name;        /* [a-z][a-z0-9_]*; in records: grad_norm/<name>, learning_rate/<name> */
    const char *const *role; /* [n_roles] of models in desc.models; a role is in one group at most */
    const char *const *loss; /* [n_losses] names of recorded losses */
    double learning_rate;    /* 0: training.learning_rate; the schedule multiplies either */
    double gradient_clip;    /* of the group's own norm; 0: training.gradient_clip, negative: none */
} dt_train_group;

/* Target network: a copy of a model's parameters that no step trains, also used for earlier policies as opponents.
 * model_as (svc/graph.h) records it, in losses and for acting. It starts with the model's initial weights, including
 * those loaded from a checkpoint, and is saved in checkpoints as <role>@<name>.<parameter>. */
typedef struct dt_train_target {
    uint32_t struct_size, reserved;
    const char *name; /* [a-z][a-z0-9_]*; unique per model */
    dt_model *model;  /* one of desc.models */
    /* target += tau (model - target), tau in (0, 1], after every `every`-th step that updated the model's group; tau 1:
     * a copy. Steps skipped because of a gradient that was not finite and vector_set do not count. every 0: only
     * target_copy updates it. */
    double tau;
    uint64_t every;
} dt_train_target;

/* In place of training.scheduler, with the other numbers of section training; 0: as configured. */
enum {
    DT_TRAIN_SCHEDULE_CONFIGURED = 0,
    DT_TRAIN_SCHEDULE_CONSTANT,
    DT_TRAIN_SCHEDULE_COSINE,
    DT_TRAIN_SCHEDULE_LINEAR,
    DT_TRAIN_SCHEDULE_STEP
};

typedef struct dt_train_desc {
    uint32_t struct_size, n_models;
    void *user;
    /* [main] record forward and losses (at least one loss). Called for training and again for inference. */
    dt_status (*record)(void *user, dt_graph *g);
    dt_data *data;           /* what step reads */
    dt_model *const *models; /* whose parameters exist in this phase; frozen ones by configuration */
    uint64_t epochs;         /* passes over the data in this phase; 0: as configured */
    /* Name of a recorded loss, or NULL. The phase updates the parameters that this loss depends on (vector_set); step
     * treats them as frozen. */
    const char *manual_loss;
    /* Stored data in addition to the samples of a rollout (NULL: none). After every collect n_stored of its samples are
     * drawn, without replacement until all were drawn, and distributed evenly over the rollout's batches. record_stored
     * records what they train, in the same graph as record; in it input() and the symbols of loss() are those of the
     * stored data. Evaluation over data that no rollout fills records it alone, with its outputs. Errors of create:
     * DT_ECONFIG (all that it trains is frozen). */
    dt_data *stored;
    dt_status (*record_stored)(void *user, dt_graph *g);
    uint64_t n_stored;
    const dt_train_target *target; /* [n_targets], read by create. DT_EPLUGIN reports what is wrong with them */
    uint32_t n_targets;
    uint32_t n_groups; /* 0: all losses move all parameters */
    const dt_train_group
        *group; /* [n_groups], read by create, not together with manual_loss. Errors: DT_EPLUGIN reports what is wrong
                                  * with them, DT_ECONFIG (one of them moves nothing: all is frozen) */
    /* Of a further trainer, [a-z][a-z0-9_]*, unique in the phase; NULL: the first one, which acts, is exported and
     * counts the steps of the phase. Its metrics are losses/<name>_<loss>, and <name> in place of a group or before
     * it. */
    const char *name;
    uint64_t batch;    /* samples of its steps in place of data.batch; 0: as configured */
    uint32_t schedule; /* DT_TRAIN_SCHEDULE_*: of its learning rates, over its own epochs */
    uint32_t reserved;
} dt_train_desc;
/* The usual one: const dt_train_desc desc = DT_TRAIN_DESC(self, record, data, models, n_models); */
#define DT_TRAIN_DESC(USER, RECORD, DATA, MODELS, N_MODELS)                                                            \
    DT_DESC_(dt_train_desc, DT_OPS(DT_SET(n_models, N_MODELS), DT_SET(user, USER), DT_SET(record, RECORD),             \
                                   DT_SET(data, DATA), DT_SET(models, MODELS)))

enum { DT_STEP_MAX_LOSSES = 8 }; /* of a report: the first recorded ones; metrics have all */
typedef struct dt_step_report {
    uint32_t struct_size, n_losses;
    const char *loss_name[DT_STEP_MAX_LOSSES];
    double loss_value[DT_STEP_MAX_LOSSES]; /* mean over the global batch, unweighted */
    double loss;                           /* weighted total */
    double grad_norm, learning_rate;       /* norm before clipping */
    uint64_t step, steps, epoch, epochs;   /* after this step */
    uint64_t samples;
    uint8_t epoch_end, reserved[7];
} dt_step_report;

typedef struct dt_train_param {
    uint32_t struct_size, n_dims;
    const char *name; /* "<role>.<name>", of a target network "<role>@<target>.<name>"; lives as long as the trainer */
    int64_t dim[DT_MAX_DIMS];
    uint64_t count; /* number of elements */
    uint64_t at;    /* offset of its first element in the vector of vector_get, or DT_NOT_IN_VECTOR */
    uint8_t is_trained, is_target, is_constant, is_statistic, reserved[4]; /* a statistic is not trained */
} dt_train_param;
#define DT_NOT_IN_VECTOR UINT64_MAX

typedef struct dt_train_api {
    uint32_t struct_size, reserved;
    /* [collective] in start; the first one before further ones. Errors: DT_EPLUGIN (a name that is taken, too many, a
     * model of another trainer). */
    dt_status (*create)(const dt_host *h, const dt_train_desc *desc, dt_train **out);
    void (*destroy)(dt_train *t);
    /* Values of a step_input for training and collecting, until set again; for acting, too, if set_acting has none.
     * start sets every step_input that record uses, as the host computes with them before the first iteration. They
     * are part of checkpoints: a resumed run, an evaluation and an export have those of the checkpoint where start sets
     * the same as in the run. */
    dt_status (*set)(dt_train *t, const char *name, const float *value, uint32_t n);
    /* One optimizer step; DT_DONE when training.epochs are over. A batch without a row that a loss counts is passed
     * over as by seek: samples is 0, n_losses 0, the other numbers NAN. Errors: DT_EDIVERGED names the first bad
     * parameter. */
    dt_status (*step)(dt_train *t, dt_step_report *out);
    /* Run the graph over all samples of d in order, without gradients; each is called once per slice, in order. */
    dt_status (*evaluate)(dt_train *t, dt_data *d, void *user, dt_status (*each)(void *user, const dt_rows *r));
    /* In each: a field of the data or a named output; live dims, C order. NULL when unknown. */
    const void *(*rows)(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank);
    /* In each: which samples the slice holds. */
    const uint64_t *(*samples)(const dt_rows *r, uint32_t *n);
    /* The next step, the planned steps, and the steps per epoch. */
    dt_status (*position)(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *steps_per_epoch);
    /* Skips to a later step as if the steps between had been made: epochs, learning rate and position advance, their
     * samples are not drawn, parameters are unchanged. Checkpoints store the step. Seeking to `steps` leaves no step.
     * Errors: DT_EINVAL (an earlier step). */
    dt_status (*seek)(dt_train *t, uint64_t step);
    /* Parameters as one vector, for phases that update them: those that desc.manual_loss depends on, or all trained
     * ones if it is NULL, in registration order, each in C order. An iteration that sets the vector without a step
     * counts as a step. */
    uint64_t (*vector_size)(const dt_train *t);
    dt_status (*vector_get)(dt_train *t, float *out);
    dt_status (*vector_set)(dt_train *t, const float *in);
    /* Losses as functions of the parameters: unweighted means over all samples of the data, in f32 on the CPU, without
     * augmentation or dropout; no step is made. Sums are in the fixed order of step: bit-identical on any number of
     * threads and ranks. gradient: of one loss by the vector, [vector_size]. A Hessian times v, where the gradient is
     * 0 as that of a KL divergence from here, is (g(x + e v) - g(x - e v)) / 2e to about 3 digits, if e v changes log
     * probabilities by 0.01 to 0.1. Errors: DT_EINVAL (no such loss). */
    dt_status (*gradient)(dt_train *t, const char *loss, float *out, double *value);
    dt_status (*losses)(dt_train *t, const char *const *loss, uint32_t n, double *out);
    /* In start: plans memory for calls of losses with these names, or of gradient if has_gradient is set (n = 1), so
     * that the forecast of memory includes it. Errors: as gradient. */
    dt_status (*plan_losses)(dt_train *t, const char *const *loss, uint32_t n, uint8_t has_gradient);
    /* Copies the current parameters to every target network of this name. Errors: DT_EINVAL (no such one). */
    dt_status (*target_copy)(dt_train *t, const char *name);
    /* step for the groups whose bit is set (bit i: group i): computations that only other groups' losses need are
     * omitted, and other groups are unchanged, including moments and weight decay. A group counts its own updates for
     * bias correction and schedule. The report covers these groups; learning_rate is that of the first. Errors:
     * DT_EINVAL (no such group). */
    dt_status (*step_groups)(dt_train *t, uint32_t groups, dt_step_report *out);
    /* Parameter i in registration order, target networks included; the caller sets out->struct_size. DT_ENOTFOUND after
     * the last. */
    dt_status (*parameter)(const dt_train *t, uint64_t i, dt_train_param *out);
    /* Between two steps, for own_data (svc/bind.h): waits for readers, calls change (NULL: nothing to change), and
     * discards prefetched samples, so that the next step reads the new content. Returns the status of change. */
    dt_status (*refill)(dt_train *t, dt_status (*change)(void *user), void *user);
    /* The n elements of a constant (DT_INIT_CONSTANT) by its name "<role>.constant.<name>". Set it between two steps,
     * with equal values on every rank; steps, evaluations and checkpoints use it from then on. Target networks follow
     * as for other parameters. Errors: DT_ENOTFOUND (no such constant), DT_ESHAPE (not n elements), DT_EINVAL (not
     * finite). */
    dt_status (*constant_get)(dt_train *t, const char *name, float *out, uint64_t n);
    dt_status (*constant_set)(dt_train *t, const char *name, const float *value, uint64_t n);
    /* Values of a step_input for acting: evaluations and exported policies have them in place of those of set, such as
     * no exploration. In start or later, until set again. */
    dt_status (*set_acting)(dt_train *t, const char *name, const float *value, uint32_t n);
} dt_train_api;

/* One optimizer step and its dt_progress, for phases whose iteration is one step. */
static inline dt_status dt_train_iterate(const dt_train_api *api, dt_train *t, dt_progress *out)
{
    dt_step_report r;
    memset(&r, 0, sizeof(r));
    r.struct_size = (uint32_t)sizeof(r);
    const dt_status st = api->step(t, &r);
    if (st < 0) {
        return st;
    }
    out->step = r.step;
    out->steps = r.steps;
    out->epoch = r.epoch;
    out->epochs = r.epochs;
    out->samples = r.samples;
    out->loss = r.loss;
    out->grad_norm = r.grad_norm;
    out->learning_rate = r.learning_rate;
    out->epoch_end = r.epoch_end;
    return st;
}

/* stop of a phase, as function FN: of its state's members train, the service, and trainer, NULL before start. */
#define DT_STOP_DEFINE(FN, STATE)                                                                                      \
    static void FN(void *self)                                                                                         \
    {                                                                                                                  \
        STATE *s_ = (STATE *)self;                                                                                     \
        if (s_->trainer != NULL) {                                                                                     \
            s_->train->destroy(s_->trainer);                                                                           \
            s_->trainer = NULL;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    struct dt_define_needs_a_semicolon

#ifdef __cplusplus
}
#endif
#endif
