/* SPDX-License-Identifier: Apache-2.0
 *
 * The op table: one row per op of core/engine/backend/ops.def with its shape rule, derivative, cost, precision class
 * and storage rules. Rows live in op_<family>.c; kernels live in core/engine/backend. Threads: any (constant).
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_OP_H
#define DTRAIN_CORE_ENGINE_GRAPH_OP_H

#include "engine/graph/derive.h"
#include "engine/graph/infer.h"
#include "engine/graph/ir.h"

/* What mixed precision may do with an op. What is stored in half on a device says store.h. On the CPU values are stored
 * in fp32: slices fit the cache, and half the bytes would buy little where every kernel but the products would have to
 * convert. */
typedef enum dt_precision {
    DT_PRECISION_FOLLOW, /* element-wise: computes in the type of its inputs */
    DT_PRECISION_ALLOW,  /* matrix products: operands rounded to half, fp32 sums; of LSTM and GRU the products alone */
    DT_PRECISION_FP32    /* softmax, normalisation, losses, sums, attention */
} dt_precision;

typedef struct dt_op_info {
    /* Inputs and outputs in the language of infer.h: "x[...,K] w[M,K] b?[M] -> y[...,M]". */
    const char *shape;
    dt_status (*check)(dt_infer *q); /* what the pattern cannot say; NULL when it says all */
    /* Records the derivative; NULL: there is none. dy: gradient of output 0, -1 when only other results have one. */
    void (*vjp)(dt_derive *d, const dt_node *n, int32_t dy);
    double (*flops)(const dt_view *in, const dt_view *out, const dt_attr *attr); /* live sizes; NULL: one per element */
    dt_precision precision;
    uint32_t grad_in;    /* bit k: a gradient can flow to input k */
    uint32_t inplace;    /* bit k: output 0 may overwrite input k (same shape, its last use) */
    uint32_t accum;      /* bit k: output k can be added to what is there */
    uint32_t shape_only; /* bit k: of input k only the shape counts */
    uint32_t results;    /* outputs that a graph may use, the others are private; 0: one */
    bool is_view;        /* output 0 is input 0 under another shape */
} dt_op_info;

const dt_op_info *dt_op_find(uint32_t op); /* NULL when unknown */
const char *dt_op_name(uint32_t op);       /* "linear"; "?" when unknown */
uint32_t dt_op_results(uint32_t op);       /* outputs that a graph may use, of a known op */

#define DT_OP(ID, number, name) extern const dt_op_info dt_op_##name;
#include "engine/backend/ops.def"
#undef DT_OP

#define DT_BIT(k) (1u << (k))

/* For rows: multiply-adds count two. */
double dt_flops_zero(const dt_view *in, const dt_view *out, const dt_attr *attr);     /* moves data only */
double dt_flops_elements(const dt_view *in, const dt_view *out, const dt_attr *attr); /* one per element of input 0 */
double dt_flops_ten(const dt_view *in, const dt_view *out, const dt_attr *attr);      /* ten: exp, tanh, erf and such */

#endif
