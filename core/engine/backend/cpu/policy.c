/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-probability and entropy of drawn actions, the clipped surrogate, the loss of a value: VL rows at a time, a row
 * for each lane, because choices and dimensions of an action are few. A row's bits depend on nothing but the row.
 * Reference: engine/backend/ref/policy.c, with the formulas.
 */
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/vmath.h"

/* one number of k rows that lie `stride` apart; 0 past them */
static ALWAYS_INLINE vf gather_column(const float *x, int64_t stride, int64_t k)
{
    float part[VL] = {0};
    for (int64_t i = 0; i < k; i++) {
        part[i] = x[i * stride];
    }
    return vf_load(part);
}

static ALWAYS_INLINE void scatter_column(float *x, int64_t stride, vf v, int64_t k)
{
    float part[VL];
    vf_store(part, v);
    for (int64_t i = 0; i < k; i++) {
        x[i * stride] = part[i];
    }
}

/* dy of k rows from r on, 0 where that result has no gradient */
static ALWAYS_INLINE vf grad_of_rows(const float *dy, int64_t r, int64_t k)
{
    return dy != NULL ? vf_get(dy + r, k) : vf_set(0);
}

static ALWAYS_INLINE vf negate(vf x)
{
    return vf_set(0) - x;
}

/* ---- categorical ------------------------------------------------------------------------------------------------- */

typedef struct choices {
    const float *z, *mask; /* of the first of the k rows; mask NULL: all are allowed */
    int64_t M, k;
    vf top, log_sum, entropy, has_choice;
    vf picked, is_valid; /* logit of the action; 1 where it is one of the allowed */
    int32_t action[VL];
} choices;

/* 1 where choice j is allowed */
static ALWAYS_INLINE vf allowed_mask(const choices *c, int64_t j)
{
    if (c->mask == NULL) {
        return vf_set(1);
    }
    return vf_if_gt(gather_column(c->mask + j, c->M, c->k), vf_set(0), vf_set(1), vf_set(0));
}

/* Logit j; where it is forbidden the highest one, so that its value is not used. */
static ALWAYS_INLINE vf masked_logit(const choices *c, int64_t j, vf is_allowed)
{
    return vf_if_gt(is_allowed, vf_set(0), gather_column(c->z + j, c->M, c->k), c->top);
}

static ALWAYS_INLINE void pick_choice(const dt_kernel_args *a, uint32_t first, int64_t r, choices *c)
{
    const int64_t K = last_dim(&a->in[first + 1]);
    const int32_t *action = i32_in(a, first + 1) + r * K + a->attr->i[0];
    float picked[VL] = {0}, is_valid[VL] = {0};
    for (int64_t i = 0; i < c->k; i++) {
        const int64_t j = action[i * K];
        c->action[i] = (int32_t)j;
        if (j >= 0 && j < c->M && (c->mask == NULL || c->mask[i * c->M + j] > 0)) {
            picked[i] = c->z[i * c->M + j];
            is_valid[i] = 1;
        }
    }
    c->picked = vf_load(picked);
    c->is_valid = vf_load(is_valid);
}

/* log p_j = z_j - top - log_sum; with d_j = z_j - top: H = log_sum - sum_j e^d_j d_j / sum_j e^d_j */
static ALWAYS_INLINE choices categorical_args(const dt_kernel_args *a, uint32_t first, int64_t r, int64_t k)
{
    const int64_t M = last_dim(&a->in[first]);
    const float *mask = f32_in(a, first + 2);
    choices c = {.z = f32_in(a, first) + r * M, .mask = mask != NULL ? mask + r * M : NULL, .M = M, .k = k};
    const vf zero = vf_set(0), one = vf_set(1);
    vf sum = zero, product = zero;
    c.top = vf_set(-__builtin_inff());
    c.has_choice = zero;
    for (int64_t j = 0; j < M; j++) {
        const vf is_allowed = allowed_mask(&c, j);
        c.top = vf_max(c.top, masked_logit(&c, j, is_allowed));
        c.has_choice = vf_max(c.has_choice, is_allowed);
    }
    c.top = vf_if_gt(c.has_choice, zero, c.top, zero);
    for (int64_t j = 0; j < M; j++) {
        const vf is_allowed = allowed_mask(&c, j), d = masked_logit(&c, j, is_allowed) - c.top;
        const vf e = vf_if_gt(is_allowed, zero, vf_exp(d), zero);
        sum = sum + e;
        product = product + e * d;
    }
    sum = vf_if_gt(c.has_choice, zero, sum, one);
    c.log_sum = vf_log(sum);
    c.entropy = c.log_sum - product / sum;
    pick_choice(a, first, r, &c);
    return c;
}

void CPU(categorical)(const dt_kernel_args *a)
{
    float *log_prob = f32_out(a, 0), *entropy = f32_out(a, 1);
    const int64_t R = dt_view_rows(&a->in[0], 1);
    VF_FOR (r, k, R) {
        const choices c = categorical_args(a, 0, r, k);
        const vf log_p = c.picked - c.top - c.log_sum;
        vf_put(log_prob + r, vf_if_gt(c.is_valid, vf_set(0), log_p, vf_set(DT_KERNEL_FORBIDDEN)), k);
        if (entropy != NULL) {
            vf_put(entropy + r, c.entropy, k);
        }
    }
}

void CPU(categorical_bwd)(const dt_kernel_args *a)
{
    enum { DLOG_PROB, DENTROPY, LOGITS };
    const int64_t R = dt_view_rows(&a->in[LOGITS], 1);
    VF_FOR (r, k, R) {
        const choices c = categorical_args(a, LOGITS, r, k);
        const vf h = grad_of_rows(f32_in(a, DENTROPY), r, k);
        const vf g = vf_if_gt(c.is_valid, vf_set(0), grad_of_rows(f32_in(a, DLOG_PROB), r, k), vf_set(0));
        float *dz = f32_out(a, 0) + r * c.M, part[VL];
        for (int64_t j = 0; j < c.M; j++) {
            const vf is_allowed = allowed_mask(&c, j), log_p = masked_logit(&c, j, is_allowed) - c.top - c.log_sum;
            const vf slope = negate(vf_exp(log_p) * vf_fma(h, log_p + c.entropy, g));
            scatter_column(dz + j, c.M, vf_if_gt(is_allowed, vf_set(0), slope, vf_set(0)), k);
        }
        vf_store(part, g);
        for (int64_t i = 0; i < k; i++) {
            if (part[i] != 0) {
                dz[i * c.M + c.action[i]] += part[i];
            }
        }
    }
}

/* ---- gaussian ---------------------------------------------------------------------------------------------------- */

typedef struct normal {
    const float *mean, *log_std, *action;
    int64_t R, P;
    bool is_shared; /* log_std is one row for all */
} normal;

static ALWAYS_INLINE normal gaussian_args(const dt_kernel_args *a, uint32_t first)
{
    normal n = {.mean = f32_in(a, first), .log_std = f32_in(a, first + 1), .action = f32_in(a, first + 2)};
    n.R = dt_view_rows(&a->in[first], 1);
    n.P = last_dim(&a->in[first]);
    n.is_shared = a->in[first + 1].rank < a->in[first].rank;
    return n;
}

/* log_std of dimension p in k rows from r on, as it is */
static ALWAYS_INLINE vf log_std_of(const normal *n, int64_t r, int64_t p, int64_t k)
{
    return n->is_shared ? vf_set(n->log_std[p]) : gather_column(n->log_std + r * n->P + p, n->P, k);
}

/* x limited to +-20 */
static ALWAYS_INLINE vf clamp_to_limit(vf x)
{
    return vf_clamp(x, -DT_KERNEL_EXPONENT, DT_KERNEL_EXPONENT);
}

/* y, but 0 where x is beyond +-20 */
static ALWAYS_INLINE vf zero_beyond_limit(vf x, vf y)
{
    return vf_if_gt(vf_abs(x), vf_set(DT_KERNEL_EXPONENT), vf_set(0), y);
}

void CPU(gaussian)(const dt_kernel_args *a)
{
    const normal n = gaussian_args(a, 0);
    const vf log_2pi_2 = vf_set((float)DT_KERNEL_LOG_2PI_2), half = vf_set(0.5f);
    float *log_prob = f32_out(a, 0), *entropy = f32_out(a, 1);
    VF_FOR (r, k, n.R) {
        vf squares = vf_set(0), width = vf_set(0); /* sum of z^2, of s + log(2 pi) / 2 */
        for (int64_t p = 0; p < n.P; p++) {
            const int64_t at = r * n.P + p;
            const vf s = clamp_to_limit(log_std_of(&n, r, p, k));
            const vf z =
                (gather_column(n.action + at, n.P, k) - gather_column(n.mean + at, n.P, k)) * vf_exp(negate(s));
            squares = vf_fma(z, z, squares);
            width = width + (s + log_2pi_2);
        }
        vf_put(log_prob + r, negate(vf_fma(half, squares, width)), k);
        if (entropy != NULL) {
            vf_put(entropy + r, width + vf_set(0.5f * (float)n.P), k);
        }
    }
}

void CPU(gaussian_bwd)(const dt_kernel_args *a)
{
    enum { DLOG_PROB, DENTROPY, MEAN };
    const normal n = gaussian_args(a, MEAN);
    float *dmean = f32_out(a, 0), *dlog_std = f32_out(a, 1);
    VF_FOR (r, k, n.R) {
        const vf g = grad_of_rows(f32_in(a, DLOG_PROB), r, k), h = grad_of_rows(f32_in(a, DENTROPY), r, k);
        for (int64_t p = 0; p < n.P; p++) {
            const int64_t at = r * n.P + p;
            const vf log_std = log_std_of(&n, r, p, k), inverse = vf_exp(negate(clamp_to_limit(log_std)));
            const vf z = (gather_column(n.action + at, n.P, k) - gather_column(n.mean + at, n.P, k)) * inverse;
            if (dmean != NULL) {
                scatter_column(dmean + at, n.P, g * z * inverse, k);
            }
            if (dlog_std != NULL) {
                scatter_column(dlog_std + at, n.P, zero_beyond_limit(log_std, vf_fma(g, z * z - vf_set(1), h)), k);
            }
        }
    }
}

/* ---- the clipped surrogate --------------------------------------------------------------------------------------- */

typedef struct bounds {
    vf low, high; /* of the ratio */
} bounds;

static ALWAYS_INLINE bounds clip_bounds(const dt_kernel_args *a)
{
    return (bounds){vf_set((float)(1 - a->attr->f[0])), vf_set((float)(1 + a->attr->f[1]))};
}

void CPU(ppo_clip)(const dt_kernel_args *a)
{
    const bounds b = clip_bounds(a);
    const vf zero = vf_set(0), one = vf_set(1);
    float *loss = f32_out(a, 0), *kl = f32_out(a, 1), *clipped = f32_out(a, 2);
    const int64_t R = dt_view_count(&a->in[0]);
    VF_FOR (r, k, R) {
        const vf d = clamp_to_limit(vf_get(f32_in(a, 0) + r, k) - vf_get(f32_in(a, 1) + r, k)), ratio = vf_exp(d);
        const vf A = vf_get(f32_in(a, 2) + r, k), bounded = vf_min(b.high, vf_max(b.low, ratio));
        vf_put(loss + r, negate(vf_min(ratio * A, bounded * A)), k);
        if (kl != NULL) {
            vf_put(kl + r, vf_expm1(d) - d, k);
        }
        if (clipped != NULL) {
            vf_put(clipped + r, vf_if_gt(ratio, b.high, one, vf_if_gt(b.low, ratio, one, zero)), k);
        }
    }
}

void CPU(ppo_clip_bwd)(const dt_kernel_args *a)
{
    enum { DLOSS, DKL, LOG_PROB, OLD, ADVANTAGE };
    const bounds b = clip_bounds(a);
    const vf zero = vf_set(0);
    float *dlog_prob = f32_out(a, 0);
    const int64_t R = dt_view_count(&a->in[LOG_PROB]);
    VF_FOR (r, k, R) {
        const vf difference = vf_get(f32_in(a, LOG_PROB) + r, k) - vf_get(f32_in(a, OLD) + r, k);
        const vf d = clamp_to_limit(difference), ratio = vf_exp(d), A = vf_get(f32_in(a, ADVANTAGE) + r, k);
        const vf whole = ratio * A; /* nothing above the upper bound where A > 0, below the lower one where A < 0 */
        const vf rising = vf_if_gt(A, zero, vf_if_gt(ratio, b.high, zero, whole), whole);
        const vf slope = vf_if_gt(zero, A, vf_if_gt(b.low, ratio, zero, whole), rising);
        const vf g = grad_of_rows(f32_in(a, DLOSS), r, k), h = grad_of_rows(f32_in(a, DKL), r, k);
        vf_put(dlog_prob + r, zero_beyond_limit(difference, h * vf_expm1(d) - g * slope), k);
    }
}

/* ---- the loss of a value ----------------------------------------------------------------------------------------- */

/* Loss of k rows from r on, and its derivative by the value. */
static ALWAYS_INLINE vf value_loss(const dt_kernel_args *a, uint32_t first, int64_t r, int64_t k, vf *slope_p)
{
    const vf value = vf_get(f32_in(a, first) + r, k), target = vf_get(f32_in(a, first + 1) + r, k);
    const vf clip = vf_set((float)a->attr->f[0]), zero = vf_set(0), d = value - target, e = d * d;
    if (a->attr->i[0] == DT_VALUE_CLIP_STEP) {
        const vf old = vf_get(f32_in(a, first + 2) + r, k);
        const vf near = vf_least(old + clip, vf_max(old - clip, value)) - target;
        *slope_p = vf_if_gt(near * near, e, zero, d + d);
        return vf_greatest(near * near, e);
    }
    if (a->attr->i[0] == DT_VALUE_CLIP_ERROR) {
        *slope_p = vf_if_gt(e, clip, zero, d + d);
        return vf_min(clip, e);
    }
    *slope_p = d + d;
    return e;
}

void CPU(value_loss)(const dt_kernel_args *a)
{
    float *y = f32_out(a, 0);
    const int64_t R = dt_view_count(&a->in[0]);
    VF_FOR (r, k, R) {
        vf slope;
        vf_put(y + r, value_loss(a, 0, r, k, &slope), k);
    }
}

void CPU(value_loss_bwd)(const dt_kernel_args *a)
{
    float *dvalue = f32_out(a, 0);
    const int64_t R = dt_view_count(&a->in[0]);
    VF_FOR (r, k, R) {
        vf slope;
        (void)value_loss(a, 1, r, k, &slope);
        vf_put(dvalue + r, vf_get(f32_in(a, 0) + r, k) * slope, k);
    }
}
