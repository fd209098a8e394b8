/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a model has other tensors here than where its weights were trained: options of it and of its data, in addition to
 * those that the run of a checkpoint recorded. Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_MISMATCH_H
#define DTRAIN_CORE_STATE_SNAPSHOT_MISMATCH_H

#include "state/checkpoint/checkpoint.h"
#include "plugin/service/stage.h"

typedef struct dt_mismatch {
    dt_str model, data; /* "risk_gnn.layers is 2 here and was 3, ..."; "" where nothing differs or is known */
} dt_mismatch;

/* ckpt: NULL for a file of its own, of which nothing is known. Never fails: what cannot be read differs in nothing. */
void dt_mismatch_find(const dt_stage *s, const dt_model *m, const dt_ckpt *ckpt, dt_mismatch *out);
/* The same where the weights are of another phase of this configuration. */
void dt_mismatch_find_between_phases(const dt_stage *s, const dt_model *m, int64_t phase, dt_mismatch *out);
void dt_mismatch_fini(dt_mismatch *m);
void dt_mismatch_append(const dt_mismatch *m, dt_str *out); /* " (both lists)", or nothing */

/* st with what to do about it, where it reports that tensors are those of another model. */
dt_status dt_mismatch_context(dt_status st, const dt_stage *s, const dt_model *m, const dt_ckpt *ckpt);
/* The same of all models together: the first whose options differ. */
dt_status dt_mismatch_explain(dt_status st, const dt_stage *s, const dt_ckpt *ckpt);

/* Weights are only valid with the constants that they were trained with: are the same ones in
 * file and model? Shapes are compared elsewhere. otherwise: what else can be done, "" or ", or ...". DT_ESHAPE. */
dt_status dt_mismatch_check_constants(const dt_stage *s, const dt_model *m, const dt_safetensors *f, const char *path,
                                      const dt_ckpt *ckpt, const char *otherwise) DT_NODISCARD;

/* The head of the values of costs has a row for each cost of the environment. Where the weights are for another number
 * of costs, and it differs in nothing else, all of it keeps its initial values: param [s->params.n] marks the n
 * parameters, NULL where nothing acts. */
typedef struct dt_renewed {
    bool *param;
    uint32_t n;
    int64_t there, here; /* numbers of costs */
} dt_renewed;
/* Shape of the tensor that the weights have of a name; NULL: none. */
typedef const int64_t *dt_shape_find(const void *user, const char *name, uint32_t *n_dims_p);
/* role may be ROLE@TARGET. Errors: DT_ENOMEM, what recording reports. dt_mismatch_renewed_fini in any case. */
dt_status dt_mismatch_find_renewed(const dt_stage *s, const char *role, dt_shape_find *find, const void *user,
                                   dt_renewed *out) DT_NODISCARD;
bool dt_mismatch_is_renewed(const dt_stage *s, const dt_renewed *r, const char *name);
void dt_mismatch_renewed_fini(dt_renewed *r);

/* What the file has of a role beyond the tensors of the model: a warning, or where the phase is another one and no
 * option explains it, such as a model that reads fewer inputs there, text for the line about the role, appended to
 * note. Refused where nothing but an option of the model explains it. DT_ESHAPE. */
dt_status dt_mismatch_check_unused(const dt_stage *s, const dt_model *m, const dt_safetensors *f, const char *path,
                                   const dt_ckpt *ckpt, const char *otherwise, dt_str *note) DT_NODISCARD;

#endif
