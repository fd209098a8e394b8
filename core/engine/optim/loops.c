/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/optim/loops.h"

#include <math.h>
#include <string.h>

#ifndef DT_ISA
#    define DT_ISA base
#endif
#define PASTE(a, b)   a##b
#define LOOPS_OF(isa) PASTE(dt_optim_loops_, isa)

/* Moments of units that learn nothing shrink until they are subnormal, where arithmetic is a hundred times slower: in
 * an update such numbers are 0. */
static unsigned begin_flush_to_zero(void)
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

static void end_flush_to_zero(unsigned mode)
{
#if defined(__SSE2__)
    __builtin_ia32_ldmxcsr(mode);
#else
#endif
}

/* g <- scale g + l2 p     m = b1 m + (1 - b1) g     v = b2 v + (1 - b2) g^2
 * p = keep p - rate m / (sqrt(v) inv_root + eps)   with rate = lr / (1 - b1^t), inv_root = 1 / sqrt(1 - b2^t) */
static void update_adam(const dt_optim_consts *consts, float *restrict p, const float *restrict g, float *restrict m,
                        float *restrict v, int64_t n)
{
    const dt_optim_consts k = *consts;
    const unsigned mode = begin_flush_to_zero();
    for (int64_t i = 0; i < n; i++) {
        const float grad = g[i] * k.grad_scale + k.l2 * p[i];
        m[i] = k.beta1 * m[i] + k.one_minus_beta1 * grad;
        v[i] = k.beta2 * v[i] + k.one_minus_beta2 * (grad * grad);
        p[i] = k.keep * p[i] - k.rate * m[i] / (sqrtf(v[i]) * k.inv_root + k.eps);
    }
    end_flush_to_zero(mode);
}

/* g <- scale g + l2 p     m = mu m + g     p = p - lr m   (mu is beta1) */
static void update_sgd(const dt_optim_consts *consts, float *restrict p, const float *restrict g, float *restrict m,
                       int64_t n)
{
    const dt_optim_consts k = *consts;
    const unsigned mode = begin_flush_to_zero();
    for (int64_t i = 0; i < n; i++) {
        m[i] = k.beta1 * m[i] + (g[i] * k.grad_scale + k.l2 * p[i]);
        p[i] = p[i] - k.rate * m[i];
    }
    end_flush_to_zero(mode);
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

static void add_floats(float *restrict dst, const float *restrict src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dst[i] += src[i];
    }
}

static void blend_floats(float *restrict to, const float *restrict from, float tau, int64_t n)
{
    const unsigned mode = begin_flush_to_zero();
    for (int64_t i = 0; i < n; i++) {
        to[i] += tau * (from[i] - to[i]);
    }
    end_flush_to_zero(mode);
}

/* ---- halves ------------------------------------------------------------------------------------------------------ */

static inline uint32_t float_to_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}

static inline float bits_to_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

enum { QUIET = 0x00400000, MAGNITUDE = 0x7fffffff, INFINITE = 0x7f800000 };

/* A float without its lower 16 bits: adding just less than half of what stays carries where it has to; where half of it
 * is lost exactly, the last bit that stays decides. */
static inline uint16_t to_bf16(float x)
{
    const uint32_t u = float_to_bits(x), rounded = u + 0x7fff + (u >> 16 & 1);
    return (uint16_t)(((u & MAGNITUDE) > INFINITE ? u | QUIET : rounded) >> 16);
}

static inline float from_bf16(uint16_t h)
{
    return bits_to_float((uint32_t)h << 16);
}

/* 5 bits of exponent, biased by 15, and 10 of the mantissa (IEEE 754 binary16). Below 2^-14 halves are multiples of
 * 2^-24, which is the last bit of 1/2: adding 1/2 rounds. */
enum { F16_BIAS = (127 - 15) << 23, F16_TOO_LARGE = (127 + 16) << 23, F16_SMALL = (127 - 14) << 23 };

static inline uint16_t to_fp16(float x)
{
    const uint32_t u = float_to_bits(x), size = u & MAGNITUDE, sign = u >> 16 & 0x8000;
    const uint32_t normal = (size - F16_BIAS + 0xfff + (size >> 13 & 1)) >> 13;
    const uint32_t small = float_to_bits(bits_to_float(size) + 0.5F) - float_to_bits(0.5F);
    const uint32_t large = size > INFINITE ? 0x7e00 : 0x7c00;
    return (uint16_t)(sign | (size >= F16_TOO_LARGE ? large : size < F16_SMALL ? small : normal));
}

static inline float from_fp16(uint16_t h)
{
    const uint32_t size = h & 0x7fff, sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t normal = (size << 13) + F16_BIAS, small = float_to_bits((float)(int32_t)size * 0x1p-24F);
    const uint32_t large = INFINITE | (size & 0x3ff) << 13;
    return bits_to_float(sign | (size >= 0x7c00 ? large : size < 0x400 ? small : normal));
}

#define HALF_LOOPS(half)                                                                                               \
    static void round_##half(float *x, int64_t n)                                                                      \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            x[i] = from_##half(to_##half(x[i]));                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void pack_##half(const float *restrict from, uint16_t *restrict to, int64_t n)                              \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            to[i] = to_##half(from[i]);                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void unpack_##half(const uint16_t *restrict from, float *restrict to, int64_t n)                            \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            to[i] = from_##half(from[i]);                                                                              \
        }                                                                                                              \
    }

HALF_LOOPS(bf16)
HALF_LOOPS(fp16)

const dt_optim_loops LOOPS_OF(DT_ISA) = {.adam = update_adam,
                                         .sgd = update_sgd,
                                         .sum_squares = sum_squares,
                                         .add = add_floats,
                                         .blend = blend_floats,
                                         .round = {round_bf16, round_fp16},
                                         .pack = {pack_bf16, pack_fp16},
                                         .unpack = {unpack_bf16, unpack_fp16}};
