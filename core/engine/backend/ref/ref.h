/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference kernels: every op as plain loops that can be read next to its contract (dtrain/ops.def,
 * engine/backend/ops.def). The other kernel sets are tested against it; it is not meant for training. Each file is
 * compiled twice, with DT_REF 64 (f32 tensors hold doubles) and 32; arithmetic is in double in both, so ref32 only
 * rounds what it stores. It shares no arithmetic with the kernels that it tests: where a kernel of backend/cuda looks
 * like a function here (binary.c and binary.cu, the functions of one element), that is on purpose. One piece of code
 * for both would hide its own mistake.
 * Threads: [worker].
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_REF_REF_H
#define DTRAIN_CORE_ENGINE_BACKEND_REF_REF_H

#include "engine/backend/kernel.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#ifndef DT_REF
#    define DT_REF 64
#endif
#if DT_REF == 64
typedef double real; /* storage of DT_F32 */
#    define REF(name) dt_ref64_##name
#else
typedef float real;
#    define REF(name) dt_ref32_##name
#endif

#define DT_OP(ID, number, name) dt_kernel REF(name);
#include "engine/backend/ops.def"

static inline const dt_view *view_in(const dt_kernel_args *a, uint32_t i)
{
    static const dt_view absent = {.data = NULL};
    return i < a->n_in ? &a->in[i] : &absent;
}

static inline const real *real_in(const dt_kernel_args *a, uint32_t i)
{
    return (const real *)view_in(a, i)->data;
}

static inline const int32_t *i32_in(const dt_kernel_args *a, uint32_t i)
{
    return (const int32_t *)view_in(a, i)->data;
}

static inline real *real_out(const dt_kernel_args *a, uint32_t i)
{
    return i < a->n_out ? (real *)a->out[i].data : NULL;
}

static inline int64_t last_dim(const dt_view *v)
{
    return v->dim[v->rank - 1];
}

/* Zeros a gradient that is summed into, unless it adds to what is there. */
static inline void start_sum(const dt_kernel_args *a, uint32_t i)
{
    if (i < a->n_out && a->out[i].data != NULL && !a->out[i].accum) {
        memset(a->out[i].data, 0, (size_t)dt_view_count(&a->out[i]) * sizeof(real));
    }
}

static inline double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* NaN when either is (engine/backend/kernel.h), unlike fmax and fmin */
static inline double greatest(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static inline double least(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}

/* y = fn(x); f0 is the slope of leaky or the alpha of elu. */
static inline double unary_value(int64_t fn, double f0, double x)
{
    switch (fn) {
    case DT_FN_RELU:
        return x <= 0 ? 0 : x;
    case DT_FN_LEAKY:
        return x > 0 ? x : f0 * x;
    case DT_FN_ELU:
        return x > 0 ? x : f0 * expm1(x);
    case DT_FN_GELU: /* x Phi(x) */
        return 0.5 * x * (1.0 + erf(x * M_SQRT1_2));
    case DT_FN_TANH:
        return tanh(x);
    case DT_FN_SIGMOID:
        return sigmoid(x);
    case DT_FN_SOFTPLUS: /* log(1 + e^x) without overflow */
        return greatest(x, 0) + log1p(exp(-fabs(x)));
    case DT_FN_EXP:
        return exp(x);
    case DT_FN_LOG:
        return log(x);
    case DT_FN_SQRT:
        return sqrt(x);
    case DT_FN_ABS:
        return fabs(x);
    case DT_FN_SIN:
        return sin(x);
    case DT_FN_COS:
        return cos(x);
    default:
        return x;
    }
}

#endif
