/* SPDX-License-Identifier: Apache-2.0
 *
 * Each op of core/engine/backend/ops.def has one dt_op_info, in op_<family>.c: its shape rule, derivative, cost and
 * storage. Kernels are in core/engine/backend. Threads: any (constant).
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_OP_H
#define DTRAIN_CORE_ENGINE_GRAPH_OP_H

#include "engine/graph/derive.h"
#include "engine/graph/infer.h"
#include "engine/graph/ir.h"

/* How a device in mixed precision stores inputs and outputs of an op (storage.h). Bit k: input or output k. */
typedef struct dt_op_storage {
    enum {
        DT_STORAGE_MISSING,
        DT_STORAGE_F32,
        DT_STORAGE_HALF
    } kind;                       /* F32: all in f32; HALF: as the other fields specify */
    uint32_t full_in, full_out;   /* f32 */
    uint32_t alike_in, alike_out; /* all in half or none of them */
    uint32_t weight_in;           /* where a parameter is read from its copy in half; of one among alike: with them */
    bool is_moving;               /* only moves or combines elements: results are no more precise than its inputs */
} dt_op_storage;

typedef struct dt_op_info {
    /* Inputs and outputs in the language of infer.h: "x[...,K] w[M,K] b?[M] -> y[...,M]". */
    const char *shape;
    dt_status (*check)(dt_infer *q); /* what the pattern cannot express; NULL when it is complete */
    /* Records the derivative; NULL: there is none. dy: gradient of output 0, -1 when only other results have one. */
    void (*vjp)(dt_derive *d, const dt_node *n, int32_t dy);
    double (*flops)(const dt_view *in, const dt_view *out, const dt_attr *attr); /* live sizes; NULL: one per element */
    dt_op_storage storage;
    uint32_t grad_in;    /* bit k: a gradient can flow to input k */
    uint32_t inplace;    /* bit k: output 0 may overwrite input k (same shape, its last use) */
    uint32_t accum;      /* bit k: output k can be added to what is there */
    uint32_t shape_only; /* bit k: of input k only the shape counts */
    uint32_t results;    /* outputs that a graph may use, the others are private; 0: one */
} dt_op_info;

const dt_op_info *dt_op_find(uint32_t op); /* NULL when unknown */
const char *dt_op_name(uint32_t op);       /* "linear"; "?" when unknown */
uint32_t dt_op_results(uint32_t op);       /* outputs that a graph may use, of a known op */
bool dt_op_is_view(uint32_t op);           /* output 0 is input 0 under another shape: no kernel, no storage */
bool dt_op_is_product(uint32_t op);        /* of matrices; of LSTM and GRU the products alone */
dt_op_storage dt_op_storage_of(uint32_t op);

#define DT_OP(ID, number, name) extern const dt_op_info dt_op_##name;
#include "engine/backend/ops.def"

#define DT_BIT(k) (1u << (k))

/* For definitions of ops: multiply-adds count two. */
double dt_flops_zero(const dt_view *in, const dt_view *out, const dt_attr *attr);     /* moves data only */
double dt_flops_elements(const dt_view *in, const dt_view *out, const dt_attr *attr); /* one per element of input 0 */
double dt_flops_ten(const dt_view *in, const dt_view *out, const dt_attr *attr);      /* ten: exp, tanh, erf and such */

/* Does the derivative of DT_FN_* need the input of the function, because it is not known from the result? */
bool dt_unary_needs_input(int64_t fn);

#endif
