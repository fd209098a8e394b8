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
} dt_train_desc;

enum { DT_STEP_MAX_LOSSES = 8 };
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
} dt_train_api;

#ifdef __cplusplus
}
#endif
#endif
