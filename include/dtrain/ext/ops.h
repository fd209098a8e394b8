/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.ops/1" of a plugin or a component: operations of its own, const dt_user_op *const *, NULL at the
 * end. Models and phases of every loaded plugin record them by name (svc/graph.h user_op). The host infers shapes,
 * differentiates, plans memory and runs them like its own ops; `dtrain check` compares each derivative with central
 * differences.
 *
 * They run on the CPU: a graph with one is rejected on a GPU, and neither format of `dtrain export` holds it. Names are
 * [a-z][a-z0-9_]*, shorter than 32 characters; two ops of one name, or the name of an op of dtrain/ops.def, are an
 * error when a trainer is created and in `dtrain check`.
 *
 * The functions get everything from their argument: no allocation, no locks, no state of their own, the same bits for
 * the same call on every thread. Threads: [worker], several at once.
 */
#ifndef DTRAIN_EXT_OPS_H
#define DTRAIN_EXT_OPS_H

#include "dtrain/plugin.h"
#include "dtrain/svc/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXT_OPS "dtrain.ops/1"

enum { DT_USER_OP_MAX_IN = 4, DT_USER_OP_MAX_OUT = 3 };

/* A tensor, packed in C order. Empty ones have a dimension of 0. */
typedef struct dt_op_tensor {
    void *data;               /* float or int32_t; NULL: an absent optional input, or a gradient that is 0 everywhere */
    int64_t dim[DT_MAX_DIMS]; /* live sizes */
    uint32_t rank, dtype;     /* DT_F32 or DT_I32 */
} dt_op_tensor;

typedef struct dt_op_call {
    uint32_t struct_size, n_in, n_out, reserved;
    const dt_op_tensor *in;
    const dt_op_tensor *out; /* every element of data must be written; it does not overlap an input */
    const dt_attr *attr;
    void *scratch; /* 64-byte aligned, as many bytes as scratch_bytes returned; its content is undefined */
} dt_op_call;

/* Members that are 0 or NULL are absent. */
typedef struct dt_user_op {
    uint32_t struct_size;
    uint32_t results; /* outputs that a graph may use, from the first; the others are kept for backward alone. 0: one */
    const char *name, *summary;
    /* Inputs, "->", outputs; each is name[dims], a question mark after the name where it is optional, :i32 after the
     * dims where it is not f32: "x[...,D] scale[D] idx?[...]:i32 -> y[...,D]". Dims, separated by commas:
     *   K      a capital letter stands for one size: bound where it is first met, equal where it is met again
     *   4K K+1 a multiple, one more
     *   12     a number
     *   ...    any number of sizes, the same everywhere
     *   i1     attr->i[1], at least 1
     * 1 to DT_USER_OP_MAX_IN inputs, the first not optional, 1 to DT_USER_OP_MAX_OUT outputs. Letters of outputs are
     * bound by inputs that are not optional. Results are f32. */
    const char *shape;
    /* Operations of a forward call, for reports; NULL: one for each element of the first output. */
    double (*flops)(const dt_op_call *c);
    /* Scratch of a forward or backward call with sizes up to these (data is NULL); NULL: none. */
    uint64_t (*scratch_bytes)(const dt_op_call *c);
    void (*forward)(const dt_op_call *c);
    /* in: the gradient of each result (data NULL: it is 0), then the inputs, then all outputs of forward. out: the
     * gradient of each f32 input, in their order, also of absent ones (rank 0, not to be written). NULL: an op without
     * derivative; recording a loss whose gradient would have to pass it is an error. */
    void (*backward)(const dt_op_call *c);
    /* For `dtrain check`: attributes, and the range of its random f32 inputs; 0 and 0: -1 to 1. Letters of shape get
     * small sizes; i32 inputs are 0. */
    dt_attr check_attr;
    double check_low, check_high;
} dt_user_op;

#ifdef __cplusplus
}
#endif
#endif
