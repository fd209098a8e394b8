/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions of vectors, a few units in the last place; NaN goes through, limits are exact.
 * Polynomials are Chebyshev fits (near-minimax) made for these intervals. Errors: tests/engine/ops/test_vmath.c.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CPU_VMATH_H
#define DTRAIN_CORE_ENGINE_BACKEND_CPU_VMATH_H

#include "engine/backend/cpu/simd.h"
#include "engine/backend/cpu/turn.h"

#include <math.h>

#define VF_LOG2E    1.44269504089f
#define VF_LN2_HIGH 0.693359375f /* 9 bits: n * VF_LN2_HIGH is exact */
#define VF_LN2_LOW  (-2.12194440e-4f)

/* x = n ln 2 + r with |r| <= ln 2 / 2; returns e^r - 1 = r + r^2 q(r), which keeps its digits near 0 */
static ALWAYS_INLINE vf vf_reduced_expm1(vf x, vf *n_p)
{
    const vf n = vf_round(x * vf_set(VF_LOG2E));
    const vf r = vf_fma(n, vf_set(-VF_LN2_LOW), vf_fma(n, vf_set(-VF_LN2_HIGH), x));
    vf q = vf_set(0.000199004415f);
    q = vf_fma(q, r, vf_set(0.00139421598f));
    q = vf_fma(q, r, vf_set(0.00833329707f));
    q = vf_fma(q, r, vf_set(0.0416663401f));
    q = vf_fma(q, r, vf_set(0.166666667f));
    q = vf_fma(q, r, vf_set(0.5f));
    *n_p = n;
    return vf_fma(r * r, q, r);
}

/* the constant comes first: max and min hand NaN in their second argument on */
static ALWAYS_INLINE vf vf_clamp(vf x, float lo, float hi)
{
    return vf_min(vf_set(hi), vf_max(vf_set(lo), x));
}

static ALWAYS_INLINE vf vf_exp(vf x)
{
    vf n;
    const vf p = vf_reduced_expm1(vf_clamp(x, -104.0f, 89.0f), &n);
    return vf_scale(vf_set(1) + p, n);
}

/* e^x - 1 = 2^n p + (2^n - 1) */
static ALWAYS_INLINE vf vf_expm1(vf x)
{
    vf n;
    const vf p = vf_reduced_expm1(vf_clamp(x, -20.0f, 88.0f), &n), scale = vf_scale(vf_set(1), n);
    return vf_fma(scale, p, scale - vf_set(1));
}

/* tanh x = t / (t + 2), t = e^2x - 1 */
static ALWAYS_INLINE vf vf_tanh(vf x)
{
    const vf t = vf_expm1(vf_clamp(x + x, -20.0f, 20.0f));
    return t / (t + vf_set(2));
}

static ALWAYS_INLINE vf vf_sigmoid(vf x)
{
    return vf_set(1) / (vf_set(1) + vf_exp(vf_set(0) - x));
}

/* log x, x > 0: x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = f - f^2/2 + f^3 q(f) */
static ALWAYS_INLINE vf vf_log(vf x)
{
    const vf smallest = vf_set(1.17549435e-38f), one = vf_set(1);
    const vf big = vf_if_gt(smallest, x, x * vf_set(0x1p24f), x); /* out of the subnormal range */
    const vi bits = (vi)big - (vi)vf_set(0.70710678f);
    const vf n = vf_of(bits >> 23) - vf_if_gt(smallest, x, vf_set(24), vf_set(0));
    const vf f = (vf)((bits & (vi)vf_set(1.17549421e-38f)) + (vi)vf_set(0.70710678f)) - one;
    vf q = vf_set(0.0698070196f);
    q = vf_fma(q, f, vf_set(-0.114945466f));
    q = vf_fma(q, f, vf_set(0.116890711f));
    q = vf_fma(q, f, vf_set(-0.124240377f));
    q = vf_fma(q, f, vf_set(0.142485513f));
    q = vf_fma(q, f, vf_set(-0.16667851f));
    q = vf_fma(q, f, vf_set(0.200007305f));
    q = vf_fma(q, f, vf_set(-0.249999966f));
    q = vf_fma(q, f, vf_set(0.333333311f));
    const vf square = f * f;
    vf y = vf_fma(n, vf_set(VF_LN2_LOW), square * f * q);
    y = f + vf_fma(vf_set(-0.5f), square, y);
    y = vf_fma(n, vf_set(VF_LN2_HIGH), y);
    y = vf_if_gt(x, vf_set(3.40282347e38f), x, y); /* inf, NaN stays y */
    y = vf_if_gt(x, vf_set(0), y, vf_if_gt(vf_set(0), x, vf_set(__builtin_nanf("")), x + vf_set(-__builtin_inff())));
    return y;
}

/* log(1 + u), 0 <= u <= 1: the rounding of 1 + u is put back */
static ALWAYS_INLINE vf vf_log1p_unit(vf u)
{
    const vf w = vf_set(1) + u;
    return vf_log(w) + (u - (w - vf_set(1))) / w;
}

/* log(1 + e^x) */
static ALWAYS_INLINE vf vf_softplus(vf x)
{
    return vf_max(vf_set(0), x) + vf_log1p_unit(vf_exp(vf_set(0) - vf_abs(x)));
}

/* Phi(x), the normal distribution; *density_p gets e^(-x^2/2).
 * erfc(z) = e^(-z^2) t q(t), t = 1 / (1 + z/2), z = |x| / sqrt 2: full digits in the left tail */
static ALWAYS_INLINE vf vf_normal_cdf(vf x, vf *density_p)
{
    const vf z = vf_clamp(vf_abs(x), 0.0f, 15.0f) * vf_set(0.707106781f);
    const vf density = vf_exp(vf_set(0) - z * z), t = vf_set(1) / vf_fma(z, vf_set(0.5f), vf_set(1));
    vf q = vf_set(0.0162295385f);
    q = vf_fma(q, t, vf_set(-0.142972335f));
    q = vf_fma(q, t, vf_set(0.470992984f));
    q = vf_fma(q, t, vf_set(-0.720036672f));
    q = vf_fma(q, t, vf_set(0.45756913f));
    q = vf_fma(q, t, vf_set(-0.114863879f));
    q = vf_fma(q, t, vf_set(0.230237699f));
    q = vf_fma(q, t, vf_set(0.237853759f));
    q = vf_fma(q, t, vf_set(0.282927772f));
    q = vf_fma(q, t, vf_set(0.282061996f));
    const vf half = vf_set(0.5f) * density * t * q; /* Phi(-|x|) */
    *density_p = density;
    return vf_if_gt(x, vf_set(0), vf_set(1) - half, half);
}

static ALWAYS_INLINE vf vf_gelu(vf x)
{
    vf density;
    return x * vf_normal_cdf(x, &density);
}

/* The library's functions reduce what is too far from 0, and make NaN of what is not finite. */
static ALWAYS_INLINE vf vf_sin_or_cos(vf x, const uint64_t ahead)
{
    float angle[VL], y[VL];
    int is_far = 0;
    vf_store(angle, x);
    for (int i = 0; i < VL; i++) {
        y[i] = (float)sin_or_cos(angle[i], ahead);
        is_far |= __builtin_fabsf(angle[i]) > (float)TURN_MOST;
    }
    for (int i = 0; i < VL && is_far; i++) {
        if (__builtin_fabsf(angle[i]) > (float)TURN_MOST) {
            y[i] = (float)(ahead == 0 ? cos(angle[i]) : sin(angle[i]));
        }
    }
    return vf_load(y);
}

static ALWAYS_INLINE vf vf_sin(vf x)
{
    return vf_sin_or_cos(x, 3);
}

static ALWAYS_INLINE vf vf_cos(vf x)
{
    return vf_sin_or_cos(x, 0);
}

#endif
