/* SPDX-License-Identifier: Apache-2.0
 *
 * What reinforcement learning needs of each row: log-probability and entropy of a drawn action, the clipped surrogate,
 * the loss of a value. Contracts: dtrain/ops.def. See ref.h.
 */
#include "engine/backend/ref/ref.h"

/* dy of row r, 0 where that result has no gradient */
static double grad_of_row(const real *dy, int64_t r)
{
    return dy != NULL ? (double)dy[r] : 0;
}

/* ---- categorical ------------------------------------------------------------------------------------------------- */

/* Softmax over the allowed choices of one row: log p_j = z_j - top - log(sum). */
typedef struct softmax {
    const real *z, *mask;
    int64_t M;
    int32_t action; /* -1: none of the allowed */
    double top, log_sum, entropy;
    bool has_choice;
} softmax;

static bool is_allowed(const softmax *s, int64_t j)
{
    return s->mask == NULL || s->mask[j] > 0;
}

static double log_probability(const softmax *s, int64_t j)
{
    return s->z[j] - s->top - s->log_sum;
}

static softmax categorical_args(const dt_kernel_args *a, uint32_t first, int64_t r)
{
    const int64_t M = last_dim(&a->in[first]), K = last_dim(&a->in[first + 1]);
    const real *mask = real_in(a, first + 2);
    softmax s = {.z = real_in(a, first) + r * M, .mask = mask != NULL ? mask + r * M : NULL, .M = M, .top = -INFINITY};
    s.action = i32_in(a, first + 1)[r * K + a->attr->i[0]];
    if (s.action < 0 || s.action >= M || !is_allowed(&s, s.action)) {
        s.action = -1;
    }
    double sum = 0;
    for (int64_t j = 0; j < M; j++) {
        if (is_allowed(&s, j)) {
            s.top = greatest(s.top, s.z[j]);
            s.has_choice = true;
        }
    }
    for (int64_t j = 0; j < M; j++) {
        if (is_allowed(&s, j)) {
            sum += exp(s.z[j] - s.top);
        }
    }
    s.log_sum = s.has_choice ? log(sum) : 0;
    for (int64_t j = 0; j < M; j++) {
        if (is_allowed(&s, j)) {
            s.entropy -= exp(log_probability(&s, j)) * log_probability(&s, j);
        }
    }
    return s;
}

void REF(categorical)(const dt_kernel_args *a)
{
    real *log_prob = real_out(a, 0), *entropy = real_out(a, 1);
    for (int64_t r = 0; r < dt_view_count(&a->out[0]); r++) {
        const softmax s = categorical_args(a, 0, r);
        log_prob[r] = (real)(s.action >= 0 ? log_probability(&s, s.action) : DT_KERNEL_FORBIDDEN);
        if (entropy != NULL) {
            entropy[r] = (real)s.entropy;
        }
    }
}

/* d log p_a / dz_j = [j = a] - p_j     dH / dz_j = -p_j (log p_j + H) */
void REF(categorical_bwd)(const dt_kernel_args *a)
{
    enum { DLOG_PROB, DENTROPY, LOGITS };
    real *dlogits = real_out(a, 0);
    for (int64_t r = 0; r < dt_view_rows(&a->in[LOGITS], 1); r++) {
        const softmax s = categorical_args(a, LOGITS, r);
        const double g = s.action >= 0 ? grad_of_row(real_in(a, DLOG_PROB), r) : 0,
                     h = grad_of_row(real_in(a, DENTROPY), r);
        for (int64_t j = 0; j < s.M; j++) {
            double dz = 0;
            if (is_allowed(&s, j)) {
                const double p = exp(log_probability(&s, j));
                dz = g * ((j == s.action ? 1 : 0) - p) - h * p * (log_probability(&s, j) + s.entropy);
            }
            dlogits[r * s.M + j] = (real)dz;
        }
    }
}

/* ---- gaussian ---------------------------------------------------------------------------------------------------- */

typedef struct normal {
    const real *mean, *log_std, *action;
    int64_t R, P, stride; /* stride: of log_std, 0 when all rows share one */
} normal;

static normal gaussian_args(const dt_kernel_args *a, uint32_t first)
{
    normal n = {.mean = real_in(a, first), .log_std = real_in(a, first + 1), .action = real_in(a, first + 2)};
    n.R = dt_view_rows(&a->in[first], 1);
    n.P = last_dim(&a->in[first]);
    n.stride = a->in[first + 1].rank < a->in[first].rank ? 0 : n.P;
    return n;
}

/* x limited to +-20; NaN stays */
static double clamp_to_limit(double x)
{
    return x > DT_KERNEL_EXPONENT ? DT_KERNEL_EXPONENT : x < -DT_KERNEL_EXPONENT ? -DT_KERNEL_EXPONENT : x;
}

static bool is_beyond_limit(double x)
{
    return fabs(x) > DT_KERNEL_EXPONENT;
}

void REF(gaussian)(const dt_kernel_args *a)
{
    const normal n = gaussian_args(a, 0);
    real *log_prob = real_out(a, 0), *entropy = real_out(a, 1);
    for (int64_t r = 0; r < n.R; r++) {
        double sum = 0, width = 0;
        for (int64_t p = 0; p < n.P; p++) {
            const double s = clamp_to_limit(n.log_std[r * n.stride + p]);
            const double z = ((double)n.action[r * n.P + p] - n.mean[r * n.P + p]) * exp(-s);
            sum -= 0.5 * z * z + s + DT_KERNEL_LOG_2PI_2;
            width += s + 0.5 + DT_KERNEL_LOG_2PI_2;
        }
        log_prob[r] = (real)sum;
        if (entropy != NULL) {
            entropy[r] = (real)width;
        }
    }
}

/* with z = (action - mean) / e^s:   dmean = g z / e^s   ds = g (z^2 - 1) + h */
void REF(gaussian_bwd)(const dt_kernel_args *a)
{
    enum { DLOG_PROB, DENTROPY, MEAN };
    const normal n = gaussian_args(a, MEAN);
    real *dmean = real_out(a, 0), *dlog_std = real_out(a, 1);
    for (int64_t i = 0; i < n.R * n.P; i++) {
        const int64_t r = i / n.P, p = i % n.P;
        const double g = grad_of_row(real_in(a, DLOG_PROB), r), h = grad_of_row(real_in(a, DENTROPY), r);
        const double log_std = n.log_std[r * n.stride + p], inv = exp(-clamp_to_limit(log_std));
        const double z = ((double)n.action[i] - n.mean[i]) * inv;
        if (dmean != NULL) {
            dmean[i] = (real)(g * z * inv);
        }
        if (dlog_std != NULL) {
            dlog_std[i] = (real)(is_beyond_limit(log_std) ? 0 : g * (z * z - 1) + h);
        }
    }
}

/* ---- the clipped surrogate --------------------------------------------------------------------------------------- */

void REF(ppo_clip)(const dt_kernel_args *a)
{
    const real *log_prob = real_in(a, 0), *old = real_in(a, 1), *advantage = real_in(a, 2);
    real *loss = real_out(a, 0), *kl = real_out(a, 1), *clipped = real_out(a, 2);
    const double low = 1 - a->attr->f[0], high = 1 + a->attr->f[1];
    for (int64_t r = 0; r < dt_view_count(&a->out[0]); r++) {
        const double d = clamp_to_limit((double)log_prob[r] - old[r]), ratio = exp(d), A = advantage[r];
        const double bounded = ratio > high ? high : ratio < low ? low : ratio;
        loss[r] = (real)(ratio * A < bounded * A ? -ratio * A : -bounded * A);
        if (kl != NULL) {
            kl[r] = (real)(expm1(d) - d);
        }
        if (clipped != NULL) {
            clipped[r] = ratio < low || ratio > high;
        }
    }
}

/* dr/dlog_prob = r:   dloss = -r A unless the bound counts   dkl = r - 1 */
void REF(ppo_clip_bwd)(const dt_kernel_args *a)
{
    enum { DLOSS, DKL, LOG_PROB, OLD, ADVANTAGE };
    const real *log_prob = real_in(a, LOG_PROB), *old = real_in(a, OLD), *advantage = real_in(a, ADVANTAGE);
    real *dlog_prob = real_out(a, 0);
    const double low = 1 - a->attr->f[0], high = 1 + a->attr->f[1];
    for (int64_t r = 0; r < dt_view_count(&a->out[0]); r++) {
        const double difference = (double)log_prob[r] - old[r], d = clamp_to_limit(difference), ratio = exp(d);
        const double A = advantage[r], g = grad_of_row(real_in(a, DLOSS), r), h = grad_of_row(real_in(a, DKL), r);
        const bool is_bounded = (A > 0 && ratio > high) || (A < 0 && ratio < low);
        const double slope = (is_bounded ? 0 : -g * ratio * A) + h * expm1(d);
        dlog_prob[r] = (real)(is_beyond_limit(difference) ? 0 : slope);
    }
}

/* ---- the loss of a value ----------------------------------------------------------------------------------------- */

/* Loss of one row and its derivative by the value. */
static double value_loss(const dt_kernel_args *a, uint32_t first, int64_t r, double *slope_p)
{
    const double value = real_in(a, first)[r], target = real_in(a, first + 1)[r], clip = a->attr->f[0];
    const double e = (value - target) * (value - target);
    double kept = e;
    if (a->attr->i[0] == DT_VALUE_CLIP_STEP) { /* the greater one is the clipped only where the clip bites */
        const double old = real_in(a, first + 2)[r], near = least(greatest(value, old - clip), old + clip) - target;
        kept = greatest(near * near, e);
    } else if (a->attr->i[0] == DT_VALUE_CLIP_ERROR && e > clip) {
        kept = clip;
    }
    *slope_p = kept < e || kept > e ? 0 : 2 * (value - target);
    return kept;
}

void REF(value_loss)(const dt_kernel_args *a)
{
    real *y = real_out(a, 0);
    double slope;
    for (int64_t r = 0; r < dt_view_count(&a->out[0]); r++) {
        y[r] = (real)value_loss(a, 0, r, &slope);
    }
}

void REF(value_loss_bwd)(const dt_kernel_args *a)
{
    const real *dy = real_in(a, 0);
    real *dvalue = real_out(a, 0);
    double slope;
    for (int64_t r = 0; r < dt_view_count(&a->out[0]); r++) {
        (void)value_loss(a, 1, r, &slope);
        dvalue[r] = (real)(dy[r] * slope);
    }
}
