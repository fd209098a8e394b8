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

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_TRAIN "dtrain.train/1"

typedef struct dt_train dt_train;
typedef struct dt_rows dt_rows; /* what evaluate hands out: one slice's fields and outputs */

typedef struct dt_train_desc {
    uint32_t struct_size, n_models;
    void *user;
    /* [main] record forward and losses (at least one loss). Called for training and once more for inference. */
    dt_status (*record)(void *user, dt_graph *g);
    dt_data *data;           /* what step reads */
    dt_model *const *models; /* whose parameters exist in this phase; frozen ones by configuration */
    uint64_t epochs;         /* since 1.1: passes over the data in this phase; 0: as configured */
    /* since 1.1: the name of a recorded loss, or NULL. What it depends on is the phase's to move: step leaves those
     * parameters alone, as if they were frozen. */
    const char *apart;
    /* since 1.1: stored data beside the samples of data, which a rollout fills then (NULL: none). n_stored of its
     * samples are drawn whenever the rollout has collected, without replacement until all were drawn, and spread evenly
     * over the rollout's: a batch has its share of them. record_stored records what they train, in the same graph as
     * record; in it input() and the symbols of loss() are those of the stored data. Evaluation over data that no
     * rollout fills records it alone, with its outputs. Errors of create: DT_ECONFIG (all that it trains is frozen). */
    dt_data *stored;
    dt_status (*record_stored)(void *user, dt_graph *g);
    uint64_t n_stored;
} dt_train_desc;

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

typedef struct dt_train_api {
    uint32_t struct_size, reserved;
    dt_status (*create)(const dt_host *h, const dt_train_desc *desc, dt_train **out); /* [collective] in start */
    void (*destroy)(dt_train *t);
    /* Values of a step_input for the next step and for evaluation, until set again. */
    dt_status (*set)(dt_train *t, const char *name, const float *value, uint32_t n);
    /* One optimizer step; DT_DONE when training.epochs are over. Errors: DT_EDIVERGED names the first bad parameter. */
    dt_status (*step)(dt_train *t, dt_step_report *out);
    /* Run the graph over all samples of d in order, without gradients; each is called once per slice, in order. */
    dt_status (*evaluate)(dt_train *t, dt_data *d, void *user, dt_status (*each)(void *user, const dt_rows *r));
    /* In each: a field of the data or a named output; live dims, C order. NULL when unknown. */
    const void *(*rows)(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank);
    /* In each: which samples the slice holds. */
    const uint64_t *(*samples)(const dt_rows *r, uint32_t *n);
    /* Where training stands before the next step: samples per epoch, steps per epoch, steps planned, step. */
    dt_status (*position)(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *steps_per_epoch);
    /* since 1.1: go on at a later step, as if those between had been done; DT_EINVAL for an earlier one. */
    dt_status (*seek)(dt_train *t, uint64_t step);
    /* since 1.1: parameters as one vector, for phases that move them themselves: those that desc.apart depends on, all
     * trained ones where it is NULL, in the order of their registration, each in C order. */
    uint64_t (*vector_size)(const dt_train *t);
    dt_status (*vector_get)(dt_train *t, float *out);
    dt_status (*vector_set)(dt_train *t, const float *in);
    /* since 1.1: losses as functions of the parameters: means over all samples of the data, unweighted, in f32 on the
     * CPU, nothing augmented or dropped out; no step is made. Sums are those of step's leaves and tree: threads and
     * ranks change no bit. gradient: of one loss by the vector, [vector_size]. A Hessian times v, where the gradient is
     * 0 as that of a KL divergence from here, is (g(x + e v) - g(x - e v)) / 2e to about 3 digits, if e v changes log
     * probabilities by 0.01 to 0.1. Errors: DT_EINVAL (no such loss). */
    dt_status (*gradient)(dt_train *t, const char *loss, float *out, double *value);
    dt_status (*losses)(dt_train *t, const char *const *loss, uint32_t n, double *out);
    /* since 1.1: these will be asked for together, by gradient where has_gradient is set (n = 1): what that takes is
     * made now, and is part of the memory that is told before the run. In start. Errors: as gradient. */
    dt_status (*expect)(dt_train *t, const char *const *loss, uint32_t n, uint8_t has_gradient);
} dt_train_api;

#ifdef __cplusplus
}
#endif
#endif
