/* SPDX-License-Identifier: Apache-2.0
 *
 * Log-probability and entropy of drawn actions, the clipped surrogate, the loss of a value: a thread for each row,
 * because choices and dimensions of an action are few. See cuda.h; engine/backend/ref/policy.c has the plain loops and
 * the formulas.
 */
#include "engine/backend/cuda/cuda.h"

namespace
{

enum { THREADS = 128 };

using source = dt_cuda_ptr<const float>;
using target = dt_cuda_ptr<float>;

/* x limited to +-20; NaN stays */
__device__ inline float clamp_exponent(float x)
{
    return x > DT_KERNEL_EXPONENT ? DT_KERNEL_EXPONENT : x < -DT_KERNEL_EXPONENT ? -DT_KERNEL_EXPONENT : x;
}

__device__ inline bool exceeds_exponent(float x)
{
    return fabsf(x) > DT_KERNEL_EXPONENT;
}

/* dy of row r, 0 where that result has no gradient */
__device__ inline float read_grad(source dy, int leaf, int r)
{
    return dy.data != nullptr ? dy.at(leaf)[r] : 0.0f;
}

__device__ inline void store_optional(target y, int leaf, int64_t i, float x)
{
    if (y.data != nullptr) {
        y.at(leaf)[i] = x;
    }
}

/* row(leaf, r, is_live) for every row */
template <typename F> __global__ void each_row(F row, dt_cuda_span rows)
{
    const int r = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (r < rows.R) {
        row(leaf, r, rows.has(r, rows.extent(leaf)));
    }
}

/* rows: all dims of v but the last k */
template <typename F> dt_status run_rows(const dt_device_args *a, const dt_device_view *v, int32_t k, F row)
{
    const dt_cuda_span rows = dt_cuda_rows(a, v, k);
    if (rows.R == 0) {
        return DT_OK;
    }
    each_row<<<dim3(dt_cuda_blocks(rows.R, THREADS), a->leaves), THREADS, 0, dt_cuda_stream(a)>>>(row, rows);
    return DT_CUDA_LAUNCHED();
}

/* ---- categorical ------------------------------------------------------------------------------------------------- */

/* Softmax over the allowed choices of one row: log p_j = z_j - top - log_sum. */
struct softmax {
    const float *z, *mask;
    int M, action; /* action -1: none of the allowed */
    float top, log_sum, entropy;

    __device__ bool allows(int j) const
    {
        return mask == nullptr || mask[j] > 0;
    }
    __device__ float log_p(int j) const
    {
        return z[j] - top - log_sum;
    }
};

struct choices {
    source logits, mask;
    dt_cuda_ptr<const int32_t> action;
    int M, K, column;

    __device__ softmax at(int leaf, int r) const
    {
        const float *all = mask.at(leaf);
        const int chosen = action.at(leaf)[(int64_t)r * K + column];
        softmax s = {logits.at(leaf) + (int64_t)r * M, all == nullptr ? nullptr : all + (int64_t)r * M, M, -1, 0, 0, 0};
        bool has_choice = false;
        for (int j = 0; j < M; j++) {
            if (s.allows(j)) {
                s.top = has_choice ? dt_cuda_greatest(s.top, s.z[j]) : s.z[j];
                has_choice = true;
            }
        }
        if (!has_choice) {
            return s;
        }
        s.action = chosen >= 0 && chosen < M && s.allows(chosen) ? chosen : -1;
        float sum = 0, product = 0;
        for (int j = 0; j < M; j++) {
            if (s.allows(j)) {
                const float d = s.z[j] - s.top, e = expf(d);
                sum += e;
                product += e * d;
            }
        }
        s.log_sum = logf(sum);
        s.entropy = s.log_sum - product / sum;
        return s;
    }
};

choices categorical_args(const dt_device_args *a, uint32_t first)
{
    return {dt_cuda_src<float>(a, first),
            dt_cuda_src<float>(a, first + 2),
            dt_cuda_src<int32_t>(a, first + 1),
            (int)dt_cuda_last_dim(&a->in[first]),
            (int)dt_cuda_last_dim(&a->in[first + 1]),
            (int)a->attr->i[0]};
}

struct categorical_row {
    choices from;
    target log_prob, entropy;
    __device__ void operator()(int leaf, int r, bool is_live) const
    {
        float first = 0, second = 0;
        if (is_live) {
            const softmax s = from.at(leaf, r);
            first = s.action >= 0 ? s.log_p(s.action) : DT_KERNEL_FORBIDDEN;
            second = s.entropy;
        }
        store_optional(log_prob, leaf, r, first);
        store_optional(entropy, leaf, r, second);
    }
};

struct categorical_bwd_row {
    choices from;
    source dlog_prob, dentropy;
    target dlogits;
    __device__ void operator()(int leaf, int r, bool is_live) const
    {
        float *to = dlogits.at(leaf) + (int64_t)r * from.M;
        if (!is_live) {
            for (int j = 0; j < from.M; j++) {
                to[j] = 0;
            }
            return;
        }
        const softmax s = from.at(leaf, r);
        const float g = s.action >= 0 ? read_grad(dlog_prob, leaf, r) : 0.0f, h = read_grad(dentropy, leaf, r);
        for (int j = 0; j < from.M; j++) {
            float dz = 0;
            if (s.allows(j)) {
                const float log_p = s.log_p(j), p = expf(log_p);
                dz = g * ((j == s.action ? 1.0f : 0.0f) - p) - h * p * (log_p + s.entropy);
            }
            to[j] = dz;
        }
    }
};

dt_status categorical(const dt_device_args *a)
{
    return run_rows(a, &a->in[0], 1,
                    categorical_row{categorical_args(a, 0), dt_cuda_dst<float>(a, 0), dt_cuda_dst<float>(a, 1)});
}

dt_status categorical_bwd(const dt_device_args *a)
{
    return run_rows(a, &a->in[2], 1,
                    categorical_bwd_row{categorical_args(a, 2), dt_cuda_src<float>(a, 0), dt_cuda_src<float>(a, 1),
                                        dt_cuda_dst<float>(a, 0)});
}

/* ---- gaussian ---------------------------------------------------------------------------------------------------- */

struct normal {
    source mean, log_std, action;
    int P, stride; /* stride: of log_std, 0 when all rows share one */

    /* log_std of element p of row r as it is; z = (action - mean) / e^s, 1 / e^s */
    __device__ float at(int leaf, int r, int p, float *z_p, float *inverse_p) const
    {
        const int64_t i = (int64_t)r * P + p;
        const float spread = log_std.at(leaf)[(int64_t)r * stride + p];
        *inverse_p = expf(-clamp_exponent(spread));
        *z_p = (action.at(leaf)[i] - mean.at(leaf)[i]) * *inverse_p;
        return spread;
    }
};

normal gaussian_args(const dt_device_args *a, uint32_t first)
{
    const int P = (int)dt_cuda_last_dim(&a->in[first]);
    return {dt_cuda_src<float>(a, first), dt_cuda_src<float>(a, first + 1), dt_cuda_src<float>(a, first + 2), P,
            a->in[first + 1].rank < a->in[first].rank ? 0 : P};
}

struct gaussian_row {
    normal from;
    target log_prob, entropy;
    __device__ void operator()(int leaf, int r, bool is_live) const
    {
        float squares = 0, width = 0, z, inverse; /* sum of z^2, of s + log(2 pi) / 2 */
        for (int p = 0; is_live && p < from.P; p++) {
            width += clamp_exponent(from.at(leaf, r, p, &z, &inverse)) + (float)DT_KERNEL_LOG_2PI_2;
            squares += z * z;
        }
        store_optional(log_prob, leaf, r, -(0.5f * squares + width));
        store_optional(entropy, leaf, r, is_live ? width + 0.5f * (float)from.P : 0.0f);
    }
};

struct gaussian_bwd_row {
    normal from;
    source dlog_prob, dentropy;
    target dmean, dlog_std;
    __device__ void operator()(int leaf, int r, bool is_live) const
    {
        for (int p = 0; p < from.P; p++) {
            float by_mean = 0, by_spread = 0;
            if (is_live) {
                const float g = read_grad(dlog_prob, leaf, r), h = read_grad(dentropy, leaf, r);
                float z, inverse;
                const float spread = from.at(leaf, r, p, &z, &inverse);
                by_mean = g * z * inverse;
                by_spread = exceeds_exponent(spread) ? 0.0f : g * (z * z - 1.0f) + h;
            }
            store_optional(dmean, leaf, (int64_t)r * from.P + p, by_mean);
            store_optional(dlog_std, leaf, (int64_t)r * from.P + p, by_spread);
        }
    }
};

dt_status gaussian(const dt_device_args *a)
{
    return run_rows(a, &a->in[0], 1,
                    gaussian_row{gaussian_args(a, 0), dt_cuda_dst<float>(a, 0), dt_cuda_dst<float>(a, 1)});
}

dt_status gaussian_bwd(const dt_device_args *a)
{
    return run_rows(a, &a->in[2], 1,
                    gaussian_bwd_row{gaussian_args(a, 2), dt_cuda_src<float>(a, 0), dt_cuda_src<float>(a, 1),
                                     dt_cuda_dst<float>(a, 0), dt_cuda_dst<float>(a, 1)});
}

/* ---- the clipped surrogate --------------------------------------------------------------------------------------- */

struct surrogate {
    source log_prob, old, advantage;
    float low, high; /* bounds of the ratio */
};

surrogate ppo_clip_args(const dt_device_args *a, uint32_t first)
{
    return {dt_cuda_src<float>(a, first), dt_cuda_src<float>(a, first + 1), dt_cuda_src<float>(a, first + 2),
            (float)(1 - a->attr->f[0]), (float)(1 + a->attr->f[1])};
}

struct ppo_clip_row {
    surrogate from;
    target loss, kl, clipped;
    __device__ void operator()(int leaf, int r, bool is_live) const
    {
        float first = 0, second = 0, third = 0;
        if (is_live) {
            const float d = clamp_exponent(from.log_prob.at(leaf)[r] - from.old.at(leaf)[r]), ratio = expf(d);
            const float A = from.advantage.at(leaf)[r];
            const float bounded = ratio > from.high ? from.high : ratio < from.low ? from.low : ratio;
            first = ratio * A < bounded * A ? -ratio * A : -bounded * A;
            second = expm1f(d) - d;
            third = ratio > from.high || ratio < from.low ? 1.0f : 0.0f;
        }
        store_optional(loss, leaf, r, first);
        store_optional(kl, leaf, r, second);
        store_optional(clipped, leaf, r, third);
    }
};

struct ppo_clip_bwd_row {
    surrogate from;
    source dloss, dkl;
    target dlog_prob;
    __device__ void operator()(int leaf, int r, bool is_live) const
    {
        float slope = 0;
        if (is_live) {
            const float difference = from.log_prob.at(leaf)[r] - from.old.at(leaf)[r], d = clamp_exponent(difference);
            const float ratio = expf(d), A = from.advantage.at(leaf)[r];
            const bool is_bounded = (A > 0 && ratio > from.high) || (A < 0 && ratio < from.low);
            slope = read_grad(dkl, leaf, r) * expm1f(d) - (is_bounded ? 0.0f : read_grad(dloss, leaf, r) * ratio * A);
            slope = exceeds_exponent(difference) ? 0.0f : slope;
        }
        store_optional(dlog_prob, leaf, r, slope);
    }
};

dt_status ppo_clip(const dt_device_args *a)
{
    return run_rows(a, &a->in[0], 0,
                    ppo_clip_row{ppo_clip_args(a, 0), dt_cuda_dst<float>(a, 0), dt_cuda_dst<float>(a, 1),
                                 dt_cuda_dst<float>(a, 2)});
}

dt_status ppo_clip_bwd(const dt_device_args *a)
{
    return run_rows(a, &a->in[2], 0,
                    ppo_clip_bwd_row{ppo_clip_args(a, 2), dt_cuda_src<float>(a, 0), dt_cuda_src<float>(a, 1),
                                     dt_cuda_dst<float>(a, 0)});
}

/* ---- the loss of a value ----------------------------------------------------------------------------------------- */

struct distance {
    source value, goal, old;
    int how; /* DT_VALUE_* */
    float clip;

    /* loss of a row and its derivative by the value */
    __device__ float at(int leaf, int r, float *slope_p) const
    {
        const float v = value.at(leaf)[r], t = goal.at(leaf)[r], e = (v - t) * (v - t);
        float kept = e;
        if (how == DT_VALUE_CLIP_STEP) { /* the greater one is the clipped only where the clip bites */
            const float was = old.at(leaf)[r], near = dt_cuda_least(dt_cuda_greatest(v, was - clip), was + clip) - t;
            kept = dt_cuda_greatest(near * near, e);
        } else if (how == DT_VALUE_CLIP_ERROR && e > clip) {
            kept = clip;
        }
        *slope_p = kept < e || kept > e ? 0.0f : 2.0f * (v - t);
        return kept;
    }
};

distance value_loss_args(const dt_device_args *a, uint32_t first)
{
    return {dt_cuda_src<float>(a, first), dt_cuda_src<float>(a, first + 1), dt_cuda_src<float>(a, first + 2),
            (int)a->attr->i[0], (float)a->attr->f[0]};
}

struct value_loss_row {
    distance from;
    target y;
    __device__ void operator()(int leaf, int r, bool is_live) const
    {
        float slope;
        store_optional(y, leaf, r, is_live ? from.at(leaf, r, &slope) : 0.0f);
    }
};

struct value_loss_bwd_row {
    distance from;
    source dy;
    target dvalue;
    __device__ void operator()(int leaf, int r, bool is_live) const
    {
        float slope = 0;
        if (is_live) {
            (void)from.at(leaf, r, &slope);
            slope *= dy.at(leaf)[r];
        }
        store_optional(dvalue, leaf, r, slope);
    }
};

dt_status value_loss(const dt_device_args *a)
{
    return run_rows(a, &a->in[0], 0, value_loss_row{value_loss_args(a, 0), dt_cuda_dst<float>(a, 0)});
}

dt_status value_loss_bwd(const dt_device_args *a)
{
    return run_rows(a, &a->in[1], 0,
                    value_loss_bwd_row{value_loss_args(a, 1), dt_cuda_src<float>(a, 0), dt_cuda_dst<float>(a, 0)});
}

} // namespace

DT_CUDA_KERNEL(CATEGORICAL, categorical, categorical);
DT_CUDA_KERNEL(CATEGORICAL_BWD, categorical_bwd, categorical_bwd);
DT_CUDA_KERNEL(GAUSSIAN, gaussian, gaussian);
DT_CUDA_KERNEL(GAUSSIAN_BWD, gaussian_bwd, gaussian_bwd);
DT_CUDA_KERNEL(PPO_CLIP, ppo_clip, ppo_clip);
DT_CUDA_KERNEL(PPO_CLIP_BWD, ppo_clip_bwd, ppo_clip_bwd);
DT_CUDA_KERNEL(VALUE_LOSS, value_loss, value_loss);
DT_CUDA_KERNEL(VALUE_LOSS_BWD, value_loss_bwd, value_loss_bwd);
