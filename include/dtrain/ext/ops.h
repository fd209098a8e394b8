/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.ops/1" of a plugin or a component: operations of its own, const dt_user_op *const *, NULL at the
 * end. Models and phases of every loaded plugin record them by name (svc/graph.h user_op). The host infers shapes,
 * differentiates, plans memory and runs them like its own ops; `dtrain check` compares each derivative with central
 * differences.
 *
 * They run on the CPU, and on a CUDA GPU where they have launch functions: a graph with one that lacks what it needs
 * there is rejected. Neither format of `dtrain export` holds them. Names are [a-z][a-z0-9_]*, shorter than 32
 * characters; two ops of one name, or the name of an op of dtrain/ops.def, are an error when a trainer is created and
 * in `dtrain check`.
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

/* A tensor on a GPU. A launch computes several shards of the batch, each a tensor of its own at capacity, packed in C
 * order; shard s begins s * shard_stride elements after shard 0. Of a ragged dimension the first
 * live[s * n_symbols + symbol] + plus are live. Beyond them inputs are finite, and outputs must be written as zeros. */
typedef struct dt_op_device_tensor {
    void *data; /* device address, of shard 0; NULL as in dt_op_tensor */
    int64_t dim[DT_MAX_DIMS];
    int64_t shard_stride; /* elements; 0: all shards share it, as parameters */
    uint32_t rank, dtype; /* DT_F32 or DT_I32 */
    int32_t ragged;       /* at most one dimension is; -1: none, then symbol and plus mean nothing */
    int32_t symbol, plus;
    uint32_t reserved;
} dt_op_device_tensor;

typedef struct dt_op_launch {
    uint32_t struct_size, n_in, n_out, shards;
    const dt_op_device_tensor *in;
    const dt_op_device_tensor *out; /* every element of every shard must be written */
    const dt_attr *attr;
    const int32_t *live; /* device address, [shards, n_symbols] */
    void *scratch;       /* device address, 256-byte aligned, as many bytes as launch_scratch returned */
    void *stream;        /* a cudaStream_t, or CUstream, of the current device and context */
    uint32_t n_symbols, reserved;
} dt_op_launch;

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
    /* On a GPU: in, out and attr are those of forward and backward. They add kernels to the stream and return; what
     * they add may be captured once and replayed, so they neither allocate nor wait, and read nothing of the host
     * later. The bits of a shard must not depend on how many shards there are: no atomics on floats, sums in one order.
     * They return DT_OK, or what is reported as the error of the step. Threads: [main]. */
    dt_status (*launch_forward)(const dt_op_launch *c);
    dt_status (*launch_backward)(const dt_op_launch *c);
    /* Device memory of a forward or backward launch with these sizes and shards (data is NULL, live and stream too);
     * NULL: none. */
    uint64_t (*launch_scratch)(const dt_op_launch *c);
} dt_user_op;

#ifdef __cplusplus
}
#endif
#endif
