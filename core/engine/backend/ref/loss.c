/* SPDX-License-Identifier: Apache-2.0
 *
 * Weighted sums of losses over rows, and their gradients. Rows of weight 0 are not read; their gradient is 0.
 * pred, target [R,P]  weight [R]  ->  [1] f64. See ref.h.
 */
#include "engine/backend/ref/ref.h"

/* What the losses over a prediction and a target share; their inputs start at `first`. */
typedef struct loss {
    const real *pred, *target, *weight;
    int64_t R, P;
    double ds;
} loss;

static loss loss_args(const dt_kernel_args *a, uint32_t first, uint32_t target)
{
    loss l = {real_in(a, first), real_in(a, target), real_in(a, target + 1), 0, 0, 0};
    l.R = dt_view_count(&a->in[target + 1]);
    l.P = l.R > 0 ? dt_view_count(&a->in[first]) / l.R : 0;
    l.ds = first > 0 ? *(const double *)a->in[0].data : 0;
    return l;
}

/* sum of w (log_sigma + (t - m)^2 / (2 sigma^2) + log(2 pi)/2) */
void REF(gaussian_nll)(const dt_kernel_args *a)
{
    const loss l = loss_args(a, 0, 2);
    const real *log_sigma = real_in(a, 1);
    const double half_log_2pi = 0.91893853320467274178;
    double sum = 0;
    for (int64_t i = 0; i < l.R * l.P; i++) {
        if (l.weight[i / l.P] != 0) {
            const double n = ((double)l.target[i] - l.pred[i]) * exp(-(double)log_sigma[i]);
            sum += l.weight[i / l.P] * (log_sigma[i] + 0.5 * n * n + half_log_2pi);
        }
    }
    *(double *)a->out[0].data = sum;
}

/* with n = (t - m) / sigma:   dmean = -w n / sigma   dlog_sigma = w (1 - n^2) */
void REF(gaussian_nll_bwd)(const dt_kernel_args *a)
{
    const loss l = loss_args(a, 1, 3);
    const real *log_sigma = real_in(a, 2);
    real *dmean = real_out(a, 0), *dlog_sigma = real_out(a, 1);
    for (int64_t i = 0; i < l.R * l.P; i++) {
        double dm = 0, dl = 0;
        if (l.weight[i / l.P] != 0) {
            const double w = l.ds * l.weight[i / l.P], inv = exp(-(double)log_sigma[i]);
            const double n = ((double)l.target[i] - l.pred[i]) * inv;
            dm = -w * n * inv;
            dl = w * (1 - n * n);
        }
        if (dmean != NULL) {
            dmean[i] = (real)dm;
        }
        if (dlog_sigma != NULL) {
            dlog_sigma[i] = (real)dl;
        }
    }
}

/* sum of w (max(z,0) - z t + log(1 + e^-|z|)) */
void REF(bce_logits)(const dt_kernel_args *a)
{
    const loss l = loss_args(a, 0, 1);
    double sum = 0;
    for (int64_t i = 0; i < l.R * l.P; i++) {
        if (l.weight[i / l.P] != 0) {
            const double z = l.pred[i];
            sum += l.weight[i / l.P] * (greatest(z, 0) - z * l.target[i] + log1p(exp(-fabs(z))));
        }
    }
    *(double *)a->out[0].data = sum;
}

/* dz = w (sigmoid(z) - t) */
void REF(bce_logits_bwd)(const dt_kernel_args *a)
{
    const loss l = loss_args(a, 1, 2);
    real *dlogit = real_out(a, 0);
    for (int64_t i = 0; i < l.R * l.P; i++) {
        const double w = l.weight[i / l.P];
        dlogit[i] = (real)(w != 0 ? l.ds * w * (sigmoid(l.pred[i]) - l.target[i]) : 0);
    }
}

/* sum of w (p - t)^2 */
void REF(mse)(const dt_kernel_args *a)
{
    const loss l = loss_args(a, 0, 1);
    double sum = 0;
    for (int64_t i = 0; i < l.R * l.P; i++) {
        if (l.weight[i / l.P] != 0) {
            const double d = (double)l.pred[i] - l.target[i];
            sum += l.weight[i / l.P] * d * d;
        }
    }
    *(double *)a->out[0].data = sum;
}

/* dp = 2 w (p - t) */
void REF(mse_bwd)(const dt_kernel_args *a)
{
    const loss l = loss_args(a, 1, 2);
    real *dpred = real_out(a, 0);
    for (int64_t i = 0; i < l.R * l.P; i++) {
        const double w = l.weight[i / l.P];
        dpred[i] = (real)(w != 0 ? 2 * l.ds * w * ((double)l.pred[i] - l.target[i]) : 0);
    }
}

/* with d = p - t: sum of w d^2/2 for |d| <= delta, else w delta (|d| - delta/2)   (Huber 1964) */
void REF(huber)(const dt_kernel_args *a)
{
    const loss l = loss_args(a, 0, 1);
    const double delta = a->attr->f[0];
    double sum = 0;
    for (int64_t i = 0; i < l.R * l.P; i++) {
        if (l.weight[i / l.P] != 0) {
            const double d = fabs((double)l.pred[i] - l.target[i]);
            sum += l.weight[i / l.P] * (d <= delta ? 0.5 * d * d : delta * (d - 0.5 * delta));
        }
    }
    *(double *)a->out[0].data = sum;
}

/* dp = w d inside, w delta sign(d) outside */
void REF(huber_bwd)(const dt_kernel_args *a)
{
    const loss l = loss_args(a, 1, 2);
    const double delta = a->attr->f[0];
    real *dpred = real_out(a, 0);
    for (int64_t i = 0; i < l.R * l.P; i++) {
        const double w = l.weight[i / l.P];
        dpred[i] = (real)(w != 0 ? l.ds * w * least(greatest((double)l.pred[i] - l.target[i], -delta), delta) : 0);
    }
}
