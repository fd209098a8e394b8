/* SPDX-License-Identifier: Apache-2.0
 *
 * What every file of the CPU kernels includes: names of this build, the kernels' prototypes, views as floats.
 * The reference of a kernel is the function of the same name in backend/ref. Threads: [worker].
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CPU_CPU_H
#define DTRAIN_CORE_ENGINE_BACKEND_CPU_CPU_H

#include "engine/backend/kernel.h"
#include "engine/backend/cpu/simd.h"

#include <stddef.h>
#include <string.h>

#ifndef DT_ISA
#    define DT_ISA base
#endif
#define CPU_PASTE(isa, name) dt_cpu_##isa##_##name
#define CPU_OF(isa, name)    CPU_PASTE(isa, name)
#define CPU(name)            CPU_OF(DT_ISA, name)

#define DT_OP(ID, number, name) dt_kernel CPU(name);
#include "engine/backend/ops.def"

static inline const dt_view *view_in(const dt_kernel_args *a, uint32_t i)
{
    static const dt_view absent = {.data = NULL};
    return i < a->n_in ? &a->in[i] : &absent;
}

static inline const float *f32_in(const dt_kernel_args *a, uint32_t i)
{
    return (const float *)view_in(a, i)->data;
}

static inline const int32_t *i32_in(const dt_kernel_args *a, uint32_t i)
{
    return (const int32_t *)view_in(a, i)->data;
}

static inline float *f32_out(const dt_kernel_args *a, uint32_t i)
{
    return i < a->n_out ? (float *)a->out[i].data : NULL;
}

static inline int64_t last_dim(const dt_view *v)
{
    return v->dim[v->rank - 1];
}

/* Zeros a gradient that is summed into, unless it adds to what is there. */
static inline void start_sum(const dt_kernel_args *a, uint32_t i)
{
    if (i < a->n_out && a->out[i].data != NULL && !a->out[i].accum) {
        memset(a->out[i].data, 0, (size_t)dt_view_count(&a->out[i]) * sizeof(float));
    }
}

/* y = fn(x) over n elements; y may be x. fn 0 is the identity. */
void CPU(apply)(int64_t fn, double f0, const float *x, float *y, int64_t n);

#endif
