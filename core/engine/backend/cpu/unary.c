/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of one element, over vectors; also the epilogue of products. Reference: engine/backend/ref/unary.c.
 */
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/vmath.h"

#define EACH(expr)                                                                                                     \
    VF_FOR (i, k, n) {                                                                                                 \
        const vf v = vf_get(x + i, k);                                                                                 \
        vf_put(y + i, (expr), k);                                                                                      \
    }                                                                                                                  \
    break

void CPU(apply)(int64_t fn, double f0, const float *x, float *y, int64_t n)
{
    const vf zero = vf_set(0), a = vf_set((float)f0);
    switch (fn) {
    case DT_FN_RELU:
        EACH(vf_if_gt(zero, v, zero, v)); /* NaN is not below 0 and stays */
    case DT_FN_LEAKY:
        EACH(vf_if_gt(zero, v, a * v, v));
    case DT_FN_ELU:
        EACH(vf_if_gt(v, zero, v, a * vf_expm1(vf_min(zero, v))));
    case DT_FN_GELU:
        EACH(vf_gelu(v));
    case DT_FN_TANH:
        EACH(vf_tanh(v));
    case DT_FN_SIGMOID:
        EACH(vf_sigmoid(v));
    case DT_FN_SOFTPLUS:
        EACH(vf_softplus(v));
    case DT_FN_EXP:
        EACH(vf_exp(v));
    case DT_FN_LOG:
        EACH(vf_log(v));
    case DT_FN_SQRT:
        EACH(vf_sqrt(v));
    case DT_FN_ABS:
        EACH(vf_abs(v));
    case DT_FN_SIN:
        EACH(vf_sin(v));
    case DT_FN_COS:
        EACH(vf_cos(v));
    default:
        if (x != y) {
            memmove(y, x, (size_t)n * sizeof(*x));
        }
        break;
    }
}

void CPU(unary)(const dt_kernel_args *a)
{
    CPU(apply)(a->attr->i[0], a->attr->f[0], f32_in(a, 0), f32_out(a, 0), dt_view_count(&a->in[0]));
}

#undef EACH
#define EACH(expr)                                                                                                     \
    VF_FOR (i, k, n) {                                                                                                 \
        const vf g = vf_get(dy + i, k), v = vf_get(s + i, k);                                                          \
        vf_put(dx + i, (expr), k);                                                                                     \
    }                                                                                                                  \
    break

/* Phi(x) + x phi(x) */
static ALWAYS_INLINE vf gelu_slope(vf x)
{
    vf density;
    const vf phi = vf_normal_cdf(x, &density);
    return vf_fma(x * density, vf_set(0.398942280f), phi);
}

void CPU(unary_bwd)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0), *s = f32_in(a, 1);
    float *dx = f32_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    const vf zero = vf_set(0), one = vf_set(1), f0 = vf_set((float)a->attr->f[0]);
    switch (a->attr->i[0]) {
    case DT_FN_RELU:
        EACH(vf_if_le(v, zero, zero, g));
    case DT_FN_LEAKY:
        EACH(vf_if_gt(v, zero, g, f0 * g));
    case DT_FN_ELU:
        EACH(vf_if_gt(v, zero, g, g * (v + f0)));
    case DT_FN_GELU:
        EACH(g * gelu_slope(v));
    case DT_FN_TANH:
        EACH(g * (one - v * v));
    case DT_FN_SIGMOID:
        EACH(g * (v * (one - v)));
    case DT_FN_SOFTPLUS:
        EACH((zero - g) * vf_expm1(zero - v));
    case DT_FN_EXP:
        EACH(g * v);
    case DT_FN_LOG:
        EACH(g / v);
    case DT_FN_SQRT:
        EACH(g * vf_set(0.5f) / v);
    case DT_FN_ABS:
        EACH(vf_if_gt(v, zero, g, vf_if_gt(zero, v, zero - g, g * v)));
    case DT_FN_SIN:
        EACH(g * vf_cos(v));
    case DT_FN_COS:
        EACH((zero - g) * vf_sin(v));
    default:
        memmove(dx, dy, (size_t)n * sizeof(*dx));
        break;
    }
}

void CPU(affine)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0);
    float *y = f32_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    const vf scale = vf_set((float)a->attr->f[0]), shift = vf_set((float)a->attr->f[1]);
    VF_FOR (i, k, n) {
        vf_put(y + i, vf_fma(scale, vf_get(x + i, k), shift), k);
    }
}

void CPU(clamp)(const dt_kernel_args *a)
{
    const float *x = f32_in(a, 0);
    float *y = f32_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    VF_FOR (i, k, n) {
        vf_put(y + i, vf_clamp(vf_get(x + i, k), (float)a->attr->f[0], (float)a->attr->f[1]), k);
    }
}

void CPU(clamp_bwd)(const dt_kernel_args *a)
{
    const float *dy = f32_in(a, 0), *x = f32_in(a, 1);
    float *dx = f32_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    const vf lo = vf_set((float)a->attr->f[0]), hi = vf_set((float)a->attr->f[1]), zero = vf_set(0);
    VF_FOR (i, k, n) {
        const vf v = vf_get(x + i, k);
        vf_put(dx + i, vf_if_gt(lo, v, zero, vf_if_gt(v, hi, zero, vf_get(dy + i, k))), k);
    }
}
