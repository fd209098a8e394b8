/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels: the interface between the graph (ops, shapes, memory) and the kernel sets (computation).
 *
 * A kernel reads views and writes views: no allocation, no locks, no state other than dt_kernel_args.kept. It runs on
 * one thread; workers run whole plans in parallel. Live sizes come in the views and change from call to call.
 * Output 0 may lie on input 0 in UNARY, UNARY_BWD, AFFINE, CLAMP, CLAMP_BWD, DROPOUT, SOFTMAX, CUMSUM and BINARY (there
 * on input 1 as well when it has the same shape); nowhere else may an output overlap an input.
 * NaN propagates, as in PyTorch: an element of an output is NaN when one of those that it depends on is. A
 * comparison with NaN selects no constant: RELU, CLAMP, MIN, MAX, REDUCE and the clipped losses of NaN are NaN, and
 * their derivative there is that of the branch without a bound (half to each side of MIN and MAX; the first NaN of a
 * REDUCE of the greatest). Not read, so not NaN: rows of weight 0, choices that a mask forbids, sequences that are
 * absent, elements that are dropped or clipped away. Masks and the indicator of PPO_CLIP are no numbers.
 * tests/engine/ops/test_ops.c and tests/engine/cuda/test_kernels.c hold every op to this.
 * Kernel sets: ref64 and ref32 (one plain source, compiled twice; ref64 stores every f32 tensor as double), cpu (one of
 * base, avx2, avx512, chosen once per process), cpu_bf16 (the same, products in bf16), device (engine/device/device.h;
 * same names). Threads: [worker].
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_KERNEL_H
#define DTRAIN_CORE_ENGINE_BACKEND_KERNEL_H

#include "dtrain/plugin.h"
#include "dtrain/svc/graph.h"
#include <stdbool.h>

enum {
#define DT_OP(ID, number, name) DT_OPX_##ID = number, /* the public ids again, plus the host's own */
#include "engine/backend/ops.def"
};

enum { DT_KERNEL_MAX_IN = 10, DT_KERNEL_MAX_OUT = 5 };

typedef struct dt_view {
    void *data;               /* NULL: absent, not needed, or shape only (see ops.def) */
    int64_t dim[DT_MAX_DIMS]; /* live sizes, C order, packed */
    int32_t rank;
    int32_t dtype; /* DT_F32 means double in kernel set ref64 */
    int32_t accum; /* outputs: 1 = add to what is there */
    int32_t reserved;
} dt_view;

typedef struct dt_kernel_run { /* the same for a whole micro-batch */
    uint64_t seed, step;       /* keys of dropout */
    uint32_t phase;
    uint32_t training; /* 0: dropout is the identity */
    uint32_t is_kept;  /* 1: what kernels keep of parameters (dt_kernel_args.kept) is still valid */
    double share;      /* of the micro-batch in the step's update of statistics; all of a step make 1 */
} dt_kernel_run;

typedef struct dt_kernel_args {
    const dt_attr *attr;
    const dt_kernel_run *run;
    const dt_view *in;
    dt_view *out;
    uint32_t n_in, n_out;
    void *scratch; /* 64-byte aligned, as large as dt_kernel_scratch_bytes said for these capacities */
    void *
        kept; /* the same, as large as dt_kernel_kept_bytes said, and this call's alone: it stays from run to run, for a
                    * form of the parameters that is made once and used until they change. NULL: nothing is kept */
    const void *user; /* of ops of plugins: dt_user_kernel_data (user.h) */
} dt_kernel_args;

typedef void dt_kernel(const dt_kernel_args *a);

/* CPU_BF16 is CPU but for the matrix products, which round their operands to bf16 and add in fp32.
 * DEVICE: kernels of engine/device/device.h, which have their own interface; the functions below do not find them. */
typedef enum dt_kernel_set {
    DT_KERNELS_REF64,
    DT_KERNELS_REF32,
    DT_KERNELS_CPU,
    DT_KERNELS_CPU_BF16,
    DT_KERNELS_DEVICE
} dt_kernel_set;

/* Kernel of an op in a set; NULL when op is unknown or a pure view (SPLIT, MERGE, STOP). */
dt_kernel *dt_kernel_find(uint32_t op, dt_kernel_set set);
/* Scratch bytes for one call, an upper bound for every live size up to the dims given (same order as in args). */
size_t dt_kernel_scratch_bytes(uint32_t op, dt_kernel_set set, const dt_attr *attr, const dt_view *in,
                               const dt_view *out);
/* Bytes that a call may keep whose inputs marked in `params` (bit i: input i) are parameters; 0: it keeps nothing. */
size_t dt_kernel_kept_bytes(uint32_t op, dt_kernel_set set, const dt_view *in, uint32_t params);
/* Checks DTRAIN_CPU_ISA: DT_ECONFIG when it is unknown, DT_EUNSUPPORTED when the machine lacks it. Called once at the
 * start; kernels of the set CPU are those of the best set otherwise. [any] */
dt_status dt_cpu_isa_check(void) DT_NODISCARD;
/* "avx512", "avx2" or "base": what this process uses; DTRAIN_CPU_ISA lowers it. */
const char *dt_cpu_isa(void);
/* The arithmetic class of this process: the kernel set CPU, the optimizer and the C library's functions are
 * bit-identical within a class.
 *   fma            x86-64 with AVX2 and FMA, of any make, with or without AVX-512
 *   base           x86-64 without: nothing is fused
 *   base+libm_fma  x86-64 with, but DTRAIN_CPU_ISA=base: only the C library fuses
 *   arm64, other   the base kernels on other machines
 * Products in bf16 (kernel set CPU_BF16) have as many classes of their own as dt_cpu_bf16_isa has names. [any] */
const char *dt_cpu_arithmetic_class(void);
/* DT_EUNSUPPORTED where kernel set CPU_BF16 cannot run, with what is missing. [any] */
dt_status dt_cpu_bf16_check(void) DT_NODISCARD;
/* "amx_bf16", "avx512_bf16" or "none". */
const char *dt_cpu_bf16_isa(void);

/* Numbers of the contracts of CATEGORICAL, GAUSSIAN and PPO_CLIP (dtrain/ops.def), the same in every kernel set. */
#define DT_KERNEL_FORBIDDEN (-1e30f)
#define DT_KERNEL_EXPONENT  20.0f
#define DT_KERNEL_LOG_2PI_2 0.91893853320467274178 /* log(2 pi) / 2 */

static inline int64_t dt_view_count(const dt_view *v)
{
    int64_t n = 1;
    for (int32_t i = 0; i < v->rank; i++) {
        n *= v->dim[i];
    }
    return n;
}

/* rows = product of all dims but the last k */
static inline int64_t dt_view_rows(const dt_view *v, int32_t k)
{
    int64_t n = 1;
    for (int32_t i = 0; i < v->rank - k; i++) {
        n *= v->dim[i];
    }
    return n;
}

#endif
