/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses over rows and their gradients. Values are walked in pieces, rows of weight 0 give 0 whatever their values.
 * Terms are float, their sum is double. Reference: engine/backend/ref/loss.c, with the formulas.
 */
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/vmath.h"

enum { PIECE = 256 };

typedef struct loss {
    const float *pred, *log_sigma, *target, *weight; /* [R,P], log_sigma for the Gaussian alone; weight [R] */
    int64_t R, P, n;
    float ds;
    vf f0;
} loss;

static loss loss_args(const dt_kernel_args *a, bool is_backward, bool is_gaussian)
{
    const uint32_t first = is_backward ? 1 : 0, target = first + (is_gaussian ? 2 : 1);
    loss l = {.pred = f32_in(a, first), .target = f32_in(a, target), .weight = f32_in(a, target + 1)};
    l.log_sigma = is_gaussian ? f32_in(a, first + 1) : NULL;
    l.R = dt_view_count(&a->in[target + 1]);
    l.n = dt_view_count(&a->in[first]);
    l.P = l.R > 0 ? l.n / l.R : 1;
    l.ds = is_backward ? (float)*(const double *)a->in[0].data : 1;
    l.f0 = vf_set((float)a->attr->f[0]);
    return l;
}

/* the weight of each of n values from `at` on, times ds */
static void load_weights(const loss *l, int64_t at, int64_t n, float w[PIECE])
{
    int64_t r = at / l->P, p = at % l->P;
    for (int64_t i = 0; i < n; i++) {
        w[i] = l->weight[r] == 0 ? 0 : l->weight[r] * l->ds;
        if (++p == l->P) {
            p = 0;
            r++;
        }
    }
}

/* w x, but 0 where w is 0 */
static ALWAYS_INLINE vf multiply_by_weight(vf w, vf x)
{
    return vf_if_le(vf_abs(w), vf_set(0), vf_set(0), w * x);
}

/* one term: p prediction, s log sigma, t target */
static ALWAYS_INLINE vf loss_term(const uint32_t op, vf p, vf s, vf t, vf f0)
{
    const vf half = vf_set(0.5f), d = p - t;
    switch (op) {
    case DT_OPX_GAUSSIAN_NLL: {
        const vf n = d * vf_exp(vf_set(0) - s);
        return vf_fma(half * n, n, s + vf_set(0.918938533f));
    }
    case DT_OPX_BCE_LOGITS:
        return vf_softplus(p) - p * t; /* max(z,0) + log(1 + e^-|z|) - z t */
    case DT_OPX_MSE:
        return d * d;
    default: {
        const vf size = vf_abs(d);
        return vf_if_gt(size, f0, f0 * (size - half * f0), half * d * d);
    }
    }
}

static ALWAYS_INLINE void sum_loss(const dt_kernel_args *a, const uint32_t op)
{
    const loss l = loss_args(a, false, op == DT_OPX_GAUSSIAN_NLL);
    double part[LANES] = {0};
    for (int64_t at = 0; at < l.n; at += PIECE) {
        const int64_t n = l.n - at < PIECE ? l.n - at : PIECE;
        float w[PIECE], y[PIECE] = {0};
        load_weights(&l, at, n, w);
        VF_FOR (i, k, n) {
            const vf p = vf_get(l.pred + at + i, k), t = vf_get(l.target + at + i, k);
            const vf s = op == DT_OPX_GAUSSIAN_NLL ? vf_get(l.log_sigma + at + i, k) : p;
            vf_put(y + i, multiply_by_weight(vf_get(w + i, k), loss_term(op, p, s, t, l.f0)), k);
        }
        for (int64_t i = 0; i < PIECE; i += LANES) {
            for (int k = 0; k < LANES; k++) {
                part[k] += y[i + k];
            }
        }
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; k++) {
            part[k] += part[k + half];
        }
    }
    *(double *)a->out[0].data = part[0];
}

/* derivative of one term by the prediction; the Gaussian's by log sigma goes to *ds_p */
static ALWAYS_INLINE vf loss_slope(const uint32_t op, vf p, vf s, vf t, vf f0, vf *ds_p)
{
    const vf d = p - t;
    switch (op) {
    case DT_OPX_GAUSSIAN_NLL: {
        const vf inverse = vf_exp(vf_set(0) - s), n = d * inverse;
        *ds_p = vf_set(1) - n * n;
        return n * inverse;
    }
    case DT_OPX_BCE_LOGITS:
        return vf_sigmoid(p) - t;
    case DT_OPX_MSE:
        return d + d;
    default:
        return vf_min(f0, vf_max(vf_set(0) - f0, d));
    }
}

static ALWAYS_INLINE void write_loss_gradient(const dt_kernel_args *a, const uint32_t op)
{
    const loss l = loss_args(a, true, op == DT_OPX_GAUSSIAN_NLL);
    float *dp = f32_out(a, 0), *ds = f32_out(a, 1);
    for (int64_t at = 0; at < l.n; at += PIECE) {
        const int64_t n = l.n - at < PIECE ? l.n - at : PIECE;
        float w[PIECE];
        load_weights(&l, at, n, w);
        VF_FOR (i, k, n) {
            const vf weight = vf_get(w + i, k), p = vf_get(l.pred + at + i, k), t = vf_get(l.target + at + i, k);
            const vf s = op == DT_OPX_GAUSSIAN_NLL ? vf_get(l.log_sigma + at + i, k) : p;
            vf by_sigma = vf_set(0);
            const vf by_pred = loss_slope(op, p, s, t, l.f0, &by_sigma);
            if (dp != NULL) {
                vf_put(dp + at + i, multiply_by_weight(weight, by_pred), k);
            }
            if (ds != NULL) {
                vf_put(ds + at + i, multiply_by_weight(weight, by_sigma), k);
            }
        }
    }
}

#define LOSS(name, ID)                                                                                                 \
    void CPU(name)(const dt_kernel_args *a)                                                                            \
    {                                                                                                                  \
        sum_loss(a, DT_OPX_##ID);                                                                                      \
    }                                                                                                                  \
    void CPU(name##_bwd)(const dt_kernel_args *a)                                                                      \
    {                                                                                                                  \
        write_loss_gradient(a, DT_OPX_##ID);                                                                           \
    }
LOSS(gaussian_nll, GAUSSIAN_NLL)
LOSS(bce_logits, BCE_LOGITS)
LOSS(mse, MSE)
LOSS(huber, HUBER)
