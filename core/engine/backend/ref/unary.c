/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of one element. See ref.h.
 */
#include "engine/backend/ref/ref.h"

void REF(unary)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    real *y = real_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    for (int64_t i = 0; i < n; i++) {
        y[i] = (real)unary_value(a->attr->i[0], a->attr->f[0], x[i]);
    }
}

/* dy/dx from s: the result y, but the argument x for GELU, LOG, ABS, SIN and COS */
static double unary_slope(int64_t fn, double f0, double s)
{
    switch (fn) {
    case DT_FN_RELU:
        return s <= 0 ? 0 : 1;
    case DT_FN_LEAKY: /* f0 >= 0, so y has the sign of x */
        return s > 0 ? 1 : f0;
    case DT_FN_ELU: /* alpha e^x = y + alpha */
        return s > 0 ? 1 : s + f0;
    case DT_FN_GELU: /* Phi(x) + x phi(x) */
        return 0.5 * (1.0 + erf(s * M_SQRT1_2)) + s * exp(-0.5 * s * s) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
    case DT_FN_TANH:
        return 1.0 - s * s;
    case DT_FN_SIGMOID:
        return s * (1.0 - s);
    case DT_FN_SOFTPLUS: /* sigmoid(x) = 1 - e^-y */
        return -expm1(-s);
    case DT_FN_EXP:
        return s;
    case DT_FN_LOG:
        return 1.0 / s;
    case DT_FN_SQRT:
        return 0.5 / s;
    case DT_FN_ABS: /* 0 at 0 */
        return s > 0 ? 1 : s < 0 ? -1 : s;
    case DT_FN_SIN:
        return cos(s);
    case DT_FN_COS:
        return -sin(s);
    default:
        return 1;
    }
}

void REF(unary_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0), *s = real_in(a, 1);
    real *dx = real_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    for (int64_t i = 0; i < n; i++) {
        dx[i] = (real)(dy[i] * unary_slope(a->attr->i[0], a->attr->f[0], s[i]));
    }
}

void REF(affine)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    real *y = real_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    for (int64_t i = 0; i < n; i++) {
        y[i] = (real)(a->attr->f[0] * x[i] + a->attr->f[1]);
    }
}

void REF(clamp)(const dt_kernel_args *a)
{
    const real *x = real_in(a, 0);
    real *y = real_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    for (int64_t i = 0; i < n; i++) {
        y[i] = (real)least(greatest(x[i], a->attr->f[0]), a->attr->f[1]);
    }
}

/* dx = dy inside [f0, f1], 0 outside */
void REF(clamp_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0), *x = real_in(a, 1);
    real *dx = real_out(a, 0);
    const int64_t n = dt_view_count(&a->in[0]);
    for (int64_t i = 0; i < n; i++) {
        dx[i] = x[i] < a->attr->f[0] || x[i] > a->attr->f[1] ? 0 : dy[i];
    }
}
