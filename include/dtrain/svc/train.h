/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.train/1": one optimizer step over one global batch, and inference over a data set.
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
typedef struct dt_rows dt_rows; /* what evaluate hands out: one slice's fields and outputs */

enum { DT_TRAIN_MAX_GROUPS = 8, DT_TRAIN_MAX_SHADOWS = 8 };
/* losses that move parameters of their own. A loss moves the parameters of its group's roles alone, though
 * gradients flow through those of others: a deterministic policy gradient goes through the critic and leaves it as it
 * is. Where there are groups every recorded loss is in one, and a role that is in none is as if it were frozen. */
typedef struct dt_train_group {
    uint32_t struct_size, n_roles, n_losses, reserved;
    const char *name;        /* [a-z][a-z0-9_]*; in records: grad_norm/<name>, learning_rate/<name> */
    const char *const *role; /* [n_roles] of models in desc.models; a role is in one group at most */
    const char *const *loss; /* [n_losses] names of recorded losses */
    double learning_rate;    /* 0: training.learning_rate; the schedule multiplies either */
    double gradient_clip;    /* of the group's own norm; 0: training.gradient_clip, negative: none */
} dt_train_group;

/* a copy of a model's parameters that no step trains: a target network, an opponent of earlier days. It is
 * recorded by model_as (svc/graph.h), in losses and for acting. It begins as what the model begins as, first weights of
 * a checkpoint included; it is part of checkpoints, under <role>@<name>.<parameter>. */
typedef struct dt_train_shadow {
    uint32_t struct_size, reserved;
    const char *name; /* [a-z][a-z0-9_]*; a model has one of a name */
    dt_model *model;  /* one of desc.models */
    /* shadow += tau (model - shadow), tau in (0, 1], after every `every`-th step that moved the model's group; 1: a
     * copy. Steps that were skipped for a gradient that was not finite do not count, nor does vector_set. every 0: only
     * shadow_copy moves it */
    double tau;
    uint64_t every;
} dt_train_shadow;

typedef struct dt_train_desc {
    uint32_t struct_size, n_models;
    void *user;
    /* [main] record forward and losses (at least one loss). Called for training and once more for inference. */
    dt_status (*record)(void *user, dt_graph *g);
    dt_data *data;           /* what step reads */
    dt_model *const *models; /* whose parameters exist in this phase; frozen ones by configuration */
    uint64_t epochs;         /* passes over the data in this phase; 0: as configured */
    /* the name of a recorded loss, or NULL. What it depends on is the phase's to move: step leaves those
     * parameters alone, as if they were frozen. */
    const char *apart;
    /* stored data beside the samples of data, which a rollout fills then (NULL: none). n_stored of its
     * samples are drawn whenever the rollout has collected, without replacement until all were drawn, and spread evenly
     * over the rollout's: a batch has its share of them. record_stored records what they train, in the same graph as
     * record; in it input() and the symbols of loss() are those of the stored data. Evaluation over data that no
     * rollout fills records it alone, with its outputs. Errors of create: DT_ECONFIG (all that it trains is frozen). */
    dt_data *stored;
    dt_status (*record_stored)(void *user, dt_graph *g);
    uint64_t n_stored;
    const dt_train_shadow *shadow; /* [n_shadows], read by create. DT_EPLUGIN says what is wrong with them */
    uint32_t n_shadows;
    uint32_t n_groups;           /* 0: all losses move all parameters */
    const dt_train_group *group; /* [n_groups], read by create, not beside apart. Errors: DT_EPLUGIN says what is wrong
                                  * with them, DT_ECONFIG (one of them moves nothing: all is frozen) */
} dt_train_desc;
/* The usual one: const dt_train_desc desc = DT_TRAIN_DESC(self, record, data, models, n_models); */
#define DT_TRAIN_DESC(USER, RECORD, DATA, MODELS, N_MODELS)                                                            \
    DT_DESC_(dt_train_desc, DT_OPS(DT_SET(n_models, N_MODELS), DT_SET(user, USER), DT_SET(record, RECORD),             \
                                   DT_SET(data, DATA), DT_SET(models, MODELS)))

enum { DT_STEP_MAX_LOSSES = 8 }; /* what a report tells: the first recorded; the host's records have all */
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
    const char *name; /* "<role>.<name>", of a shadow "<role>@<shadow>.<name>"; lives as long as the trainer */
    int64_t dim[DT_MAX_DIMS];
    uint64_t count; /* numbers in it */
    uint64_t at;    /* place of its first number in the vector of vector_get; DT_NOT_IN_VECTOR: it is not there */
    uint8_t is_trained, is_shadow, is_constant, reserved[5];
} dt_train_param;
#define DT_NOT_IN_VECTOR UINT64_MAX

typedef struct dt_train_api {
    uint32_t struct_size, reserved;
    dt_status (*create)(const dt_host *h, const dt_train_desc *desc, dt_train **out); /* [collective] in start */
    void (*destroy)(dt_train *t);
    /* Values of a step_input for the next step and for evaluation, until set again. */
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
    /* Where training stands before the next step: samples per epoch, steps per epoch, steps planned, step. */
    dt_status (*position)(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *steps_per_epoch);
    /* go on at a later step, as if those between had been done: epochs, the learning rate and position move
     * on, samples between are not drawn, parameters stay. A checkpoint has the step. The last one may be sought, and
     * then there is none left. DT_EINVAL for an earlier one. */
    dt_status (*seek)(dt_train *t, uint64_t step);
    /* parameters as one vector, for phases that move them themselves: those that desc.apart depends on, all
     * trained ones where it is NULL, in the order of their registration, each in C order. An iteration that sets it and
     * makes no step counts as one. */
    uint64_t (*vector_size)(const dt_train *t);
    dt_status (*vector_get)(dt_train *t, float *out);
    dt_status (*vector_set)(dt_train *t, const float *in);
    /* losses as functions of the parameters: means over all samples of the data, unweighted, in f32 on the
     * CPU, nothing augmented or dropped out; no step is made. Sums are those of step's leaves and tree: threads and
     * ranks change no bit. gradient: of one loss by the vector, [vector_size]. A Hessian times v, where the gradient is
     * 0 as that of a KL divergence from here, is (g(x + e v) - g(x - e v)) / 2e to about 3 digits, if e v changes log
     * probabilities by 0.01 to 0.1. Errors: DT_EINVAL (no such loss). */
    dt_status (*gradient)(dt_train *t, const char *loss, float *out, double *value);
    dt_status (*losses)(dt_train *t, const char *const *loss, uint32_t n, double *out);
    /* these will be asked for together, by gradient where has_gradient is set (n = 1): what that takes is
     * made now, and is part of the memory that is told before the run. In start. Errors: as gradient. */
    dt_status (*expect)(dt_train *t, const char *const *loss, uint32_t n, uint8_t has_gradient);
    /* every shadow of this name becomes its model as it is now, exactly. Errors: DT_EINVAL (no such one). */
    dt_status (*shadow_copy)(dt_train *t, const char *name);
    /* as step, of the groups whose bit is set (bit i: group i; step: all): neither forward nor backward of
     * what only other groups' losses need is computed, and nothing of theirs moves, moments and decay included. A group
     * counts its own updates: bias correction and schedule go by these. Of the report, loss, losses and grad_norm are
     * of these groups, learning_rate is the first one's. Errors: DT_EINVAL (no such group). */
    dt_status (*step_groups)(dt_train *t, uint32_t groups, dt_step_report *out);
    /* parameter i of all, shadows included, in the order of their registration; out->struct_size is set.
     * DT_ENOTFOUND behind the last. */
    dt_status (*parameter)(const dt_train *t, uint64_t i, dt_train_param *out);
    /* between two steps, of own_data (svc/bind.h): nothing is read from here on until change is done, and
     * what was read ahead is forgotten; the next step reads what samples hold then. change: called at once, NULL: they
     * have not changed, read them again all the same. Its status is passed on. */
    dt_status (*refill)(dt_train *t, dt_status (*change)(void *user), void *user);
    /* a constant (DT_INIT_CONSTANT) by its name, "<role>.constant.<name>", its n numbers. Set alike on
     * every rank, between two steps: the next step, evaluation and checkpoint have it. A shadow follows as it follows
     * the rest of its model. Errors: DT_ENOTFOUND (no constant is called so), DT_ESHAPE (it has not n numbers),
     * DT_EINVAL (a number is not finite). */
    dt_status (*constant_get)(dt_train *t, const char *name, float *out, uint64_t n);
    dt_status (*constant_set)(dt_train *t, const char *name, const float *value, uint64_t n);
} dt_train_api;

/* One optimizer step, and what a phase tells whose iteration is one. */
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
