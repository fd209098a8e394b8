/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape rules as text. A rule lists inputs, "->", outputs; each is name[tokens], ? after the name when optional,
 * :dtype when it is not f32, :dtype|dtype for either. Tokens:
 *   K, HC    a letter denotes one extent: bound where it is first met, equal wherever it is met again
 *   4H, N+1  a multiple (numbers only), and one more (CSR row pointers)
 *   12       a number
 *   ...  *   any number of extents; ... is the same everywhere, so is *
 *   i1       attr->i[1]
 * "x[...,K] w[M,K] b?[M] -> y[...,M]". A check hook runs between inputs and outputs for what text cannot express.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_INFER_H
#define DTRAIN_CORE_ENGINE_GRAPH_INFER_H

#include "engine/backend/kernel.h"
#include "engine/tensor/shape.h"

enum { DT_INFER_MAX_VARS = 12, DT_INFER_NAME = 16 };

typedef struct dt_infer {
    const char *name;                     /* of the op, for messages */
    const char *const *symbol;            /* of the graph */
    dt_attr attr;                         /* hooks may bring it into normal form */
    const dt_shape *in[DT_KERNEL_MAX_IN]; /* NULL = absent */
    char in_name[DT_KERNEL_MAX_IN][DT_INFER_NAME];
    uint32_t n_in;
    dt_shape out[DT_KERNEL_MAX_OUT];
    uint32_t n_out;
    struct {
        char name[4];
        dt_extent extent;
    } var[DT_INFER_MAX_VARS];
    uint32_t n_vars;
    dt_shape lead[2]; /* what ... and * denote; rank and dims only */
    bool has_lead[2];
} dt_infer;

typedef struct dt_op_info dt_op_info;

/* Fill q->out. The caller sets name, symbol, attr, in, n_in. Errors: DT_ESHAPE, DT_EINVAL, with the op's name. */
dt_status dt_infer_run(dt_infer *q, const dt_op_info *info) DT_NODISCARD;

/* For hooks. */
dt_extent dt_infer_get(const dt_infer *q, const char *var);
void dt_infer_set(dt_infer *q, const char *var, dt_extent e);
bool dt_infer_number(const dt_infer *q, const char *var, int64_t *out_p); /* false when ragged */
/* Record an error that begins with the op's name. */
dt_status dt_infer_fail(const dt_infer *q, dt_status st, const char *fmt, ...) DT_PRINTF(3, 4);
/* "h is N 256 f32" of input k, appended to out. */
void dt_infer_input_text(const dt_infer *q, uint32_t k, dt_str *out);

#endif
