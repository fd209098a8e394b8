/* SPDX-License-Identifier: Apache-2.0
 *
 * See loops.h.
 */
#include "optim/loops.h"

#include <math.h>

#ifndef DT_ISA
#    define DT_ISA base
#endif
#define PASTE(a, b)   a##b
#define LOOPS_OF(isa) PASTE(dt_optim_loops_, isa)

/* Moments of units that learn nothing shrink until they are subnormal, where arithmetic is a hundred times slower: in
 * an update such numbers are 0. */
static unsigned flush_begin(void)
{
#if defined(__SSE2__)
    enum { SUBNORMAL_INPUTS_ARE_ZERO = 1 << 6, SUBNORMAL_RESULTS_ARE_ZERO = 1 << 15 }; /* bits of MXCSR */
    const unsigned mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode | SUBNORMAL_INPUTS_ARE_ZERO | SUBNORMAL_RESULTS_ARE_ZERO);
    return mode;
#else
    return 0;
#endif
}

static void flush_end(unsigned mode)
{
#if defined(__SSE2__)
    __builtin_ia32_ldmxcsr(mode);
#else
    (void)mode;
#endif
}

/* g <- scale g + l2 p     m = b1 m + (1 - b1) g     v = b2 v + (1 - b2) g^2
 * p = keep p - rate m / (sqrt(v) inv_root + eps)   with rate = lr / (1 - b1^t), inv_root = 1 / sqrt(1 - b2^t) */
static void adam(const dt_optim_consts *consts, float *restrict p, const float *restrict g, float *restrict m,
                 float *restrict v, int64_t n)
{
    const dt_optim_consts k = *consts;
    const unsigned mode = flush_begin();
    for (int64_t i = 0; i < n; i++) {
        const float grad = g[i] * k.grad_scale + k.l2 * p[i];
        m[i] = k.beta1 * m[i] + k.one_minus_beta1 * grad;
        v[i] = k.beta2 * v[i] + k.one_minus_beta2 * (grad * grad);
        p[i] = k.keep * p[i] - k.rate * m[i] / (sqrtf(v[i]) * k.inv_root + k.eps);
    }
    flush_end(mode);
}

/* g <- scale g + l2 p     m = mu m + g     p = p - lr m   (mu is beta1) */
static void sgd(const dt_optim_consts *consts, float *restrict p, const float *restrict g, float *restrict m, int64_t n)
{
    const dt_optim_consts k = *consts;
    const unsigned mode = flush_begin();
    for (int64_t i = 0; i < n; i++) {
        m[i] = k.beta1 * m[i] + (g[i] * k.grad_scale + k.l2 * p[i]);
        p[i] = p[i] - k.rate * m[i];
    }
    flush_end(mode);
}

enum { LANES = 32 };

/* LANES partial sums, lane i % LANES, then halved together: an order that no vector width changes */
static double sum_squares(const float *g, int64_t n)
{
    double sum[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            sum[k] += (double)g[i + k] * g[i + k];
        }
    }
    for (int k = 0; i + k < n; k++) {
        sum[k] += (double)g[i + k] * g[i + k];
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; k++) {
            sum[k] += sum[k + half];
        }
    }
    return sum[0];
}

static void add(float *restrict dst, const float *restrict src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dst[i] += src[i];
    }
}

const dt_optim_loops LOOPS_OF(DT_ISA) = {adam, sgd, sum_squares, add};
