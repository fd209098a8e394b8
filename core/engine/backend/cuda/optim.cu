/* SPDX-License-Identifier: Apache-2.0
 *
 * The begin and the end of a step: seeds; then squares, decision (norm, finite? clip? loss scale), update, each a
 * single pass over the flat arenas, or over slices of them. Compiled without contraction, so that an update has the
 * bits of engine/optim/loops.c.
 */
#include "engine/backend/cuda/table.h"

namespace
{
enum { THREADS = 256, PER_THREAD = DT_DEVICE_BLOCK / THREADS, MAX_HEIGHT = 32 };

/* ---- begin ------------------------------------------------------------------------------------------------------- */

__global__ void write_seeds(const dt_device_control *control, const dt_device_state *state, double *seed, int n)
{
    const int i = (int)threadIdx.x;
    if (i < n) {
        seed[i] = control->loss_seed[i] * state->loss_scale;
    }
}

/* ---- squares ---------------------------------------------------------------------------------------------------- */

/* One block of threads per DT_DEVICE_BLOCK elements of a slice, which begins in block `first`. Of a statistic only what
 * is not finite counts: then its 0 is NaN. */
__global__ void sum_block_squares(const float *grad, const uint8_t *trained, dt_device_slice s, int64_t first,
                                  double *block_sum)
{
    __shared__ double shared[32];
    const int64_t block = first + blockIdx.x;
    double sum = 0;
    for (int k = 0; k < PER_THREAD; k++) {
        const int64_t i = block * DT_DEVICE_BLOCK + k * THREADS + threadIdx.x;
        if (i >= s.begin && i < s.end) {
            const float g = grad[i];
            sum += (trained[i / DT_DEVICE_GRANULE] & DT_DEVICE_STATISTIC) != 0 ? (double)(g - g) : (double)g * g;
        }
    }
    sum = dt_cuda_block_sum(sum, shared);
    if (threadIdx.x == 0) {
        block_sum[block] = sum;
    }
}

/* ---- decision ---------------------------------------------------------------------------------------------------- */

/* core/engine/amp/scaler.h: an overflow uses up one of `hysteresis` chances and then lowers the scale; `interval` good
 * steps in a row raise it. */
__device__ void update_scale(const dt_device_scaler *k, dt_device_state *s, bool is_finite)
{
    if (!k->enabled || !k->dynamic) {
        return;
    }
    if (!is_finite) {
        s->good_steps = 0;
        s->tolerance--;
        if (s->tolerance <= 0) {
            s->loss_scale = fmax(s->loss_scale * k->backoff, k->min);
            s->tolerance = 0;
        }
        return;
    }
    s->good_steps++;
    if (k->refill != 0) {
        s->tolerance = k->hysteresis;
    }
    if (s->good_steps >= k->interval) {
        s->loss_scale = fmin(s->loss_scale * k->growth, k->max);
        s->good_steps = 0;
        s->tolerance = k->hysteresis;
    }
}

struct losses {
    const double *leaf[DT_DEVICE_MAX_LOSSES];
};

/* Sums of squares of all blocks, or of a group's, in one order. All threads; the first one has it. */
__device__ double sum_blocks(const dt_device_finish &f, int n_blocks, int group, double *shared)
{
    double sum = 0;
    for (int i = (int)threadIdx.x; i < n_blocks; i += THREADS) {
        if (group < 0 || f.block_group[i] == group) {
            sum += f.block_sum[i];
        }
    }
    return dt_cuda_block_sum(sum, shared);
}

/* One update more of each group that is moved. */
__device__ void count_updates(const dt_device_finish &f)
{
    f.state->updates++;
    for (uint32_t g = 0; g < f.n_groups; g++) {
        f.state->group_updates[g] += f.groups >> g & 1;
    }
}
/* The first element of the sum that is not finite, in one of the blocks whose sum is not; -1: none. All threads. */
__device__ int64_t find_non_finite(const dt_device_finish &f, int n_blocks)
{
    __shared__ int block;
    __shared__ unsigned long long first;
    if (threadIdx.x == 0) {
        block = 0;
        while (block < n_blocks && isfinite(f.block_sum[block])) {
            block++;
        }
        first = ~0ull;
    }
    __syncthreads();
    for (int k = 0; block < n_blocks && k < PER_THREAD; k++) {
        const int64_t i = (int64_t)block * DT_DEVICE_BLOCK + k * THREADS + threadIdx.x;
        if (i < f.total && !isfinite(f.grad[i])) {
            atomicMin(&first, (unsigned long long)i); /* of integers: the order does not matter */
        }
    }
    __syncthreads();
    return first == ~0ull ? -1 : (int64_t)first;
}

/* n: a power of two. Nodes wait for their siblings on a stack: two of a height never lie there. */
__device__ double sum_leaf_tree(const double *from, uint32_t n)
{
    double waiting[MAX_HEIGHT];
    int top = 0;
    for (uint32_t k = 0; k < n; k++) {
        double sum = from[k];
        for (uint32_t i = k; i % 2 == 1; i /= 2) {
            sum = waiting[--top] + sum;
        }
        waiting[top++] = sum;
    }
    return waiting[0];
}

__global__ void decide_update(dt_device_finish f, losses l, int n_blocks)
{
    __shared__ double shared[32];
    __shared__ double of_group[DT_DEVICE_MAX_GROUPS];
    __shared__ bool is_sum_finite;
    const double sum = sum_blocks(f, n_blocks, -1, shared);
    if (threadIdx.x == 0) {
        is_sum_finite = isfinite(sum);
        of_group[0] = sum;
    }
    __syncthreads();
    for (uint32_t g = 0; g < f.n_groups && f.block_group != NULL; g++) {
        const double own = sum_blocks(f, n_blocks, (int)g, shared);
        if (threadIdx.x == 0) {
            of_group[g] = own;
        }
        __syncthreads();
    }
    const int64_t bad = is_sum_finite || f.is_part ? -1 : find_non_finite(f, n_blocks);
    if (threadIdx.x != 0) {
        return;
    }
    dt_device_result r = {};
    bool is_finite = is_sum_finite;
    for (uint32_t i = 0; i < f.n_losses; i++) {
        if (l.leaf[i] != NULL) {
            r.loss[i] = sum_leaf_tree(l.leaf[i], f.loss_leaves);
            is_finite = is_finite && isfinite(r.loss[i]);
        }
    }
    r.loss_scale = f.state->loss_scale;
    r.norm = sqrt(sum) / r.loss_scale;
    for (uint32_t g = 0; g < f.n_groups; g++) {
        r.group_norm[g] = sqrt(of_group[g]) / r.loss_scale;
    }
    r.bad = bad;
    r.is_finite = is_finite;
    r.applied = is_finite;
    if (is_finite) {
        count_updates(f);
        f.state->skipped = 0;
    } else {
        f.state->skipped++;
    }
    update_scale(&f.scaler, f.state, is_finite);
    r.updates = f.state->updates;
    for (uint32_t g = 0; g < f.n_groups; g++) {
        r.group_updates[g] = f.state->group_updates[g];
    }
    r.skipped = f.state->skipped;
    *f.result = r;
}

/* ---- update ------------------------------------------------------------------------------------------------------ */

/* The numbers of a group's update, and the factor of the gradient: unscale and clip (PyTorch's clip_grad_norm_) in
 * one. */
__device__ dt_device_consts update_consts(const dt_device_finish &f, const dt_device_result &r, int group,
                                          float *factor)
{
    const double clip = f.control->gradient_clip[group], norm = r.group_norm[group];
    double scale = 1.0 / r.loss_scale;
    if (clip > 0 && norm > clip) {
        scale *= clip / (norm + 1e-6);
    }
    *factor = (float)scale;
    return f.control->consts[group][r.group_updates[group] == f.control->first[group] ? 0 : 1];
}

struct adam {
    __device__ static void update(const dt_device_finish &f, const dt_device_consts &k, int64_t i, int64_t at,
                                  float grad)
    {
        const float m = k.beta1 * f.moment[0][at] + k.one_minus_beta1 * grad;
        const float v = k.beta2 * f.moment[1][at] + k.one_minus_beta2 * (grad * grad);
        f.moment[0][at] = m;
        f.moment[1][at] = v;
        f.param[i] = k.keep * f.param[i] - k.rate * m / (sqrtf(v) * k.inv_root + k.eps);
    }
};

struct sgd {
    __device__ static void update(const dt_device_finish &f, const dt_device_consts &k, int64_t i, int64_t at,
                                  float grad)
    {
        const float m = k.beta1 * f.moment[0][at] + grad;
        f.moment[0][at] = m;
        f.param[i] = f.param[i] - k.rate * m;
    }
};

/* An element of a slice a thread; grad is unscaled, clipped, and has its part of l2. */
template <typename RULE> __global__ void update(dt_device_finish f, dt_device_slice s)
{
    const dt_device_result &r = *f.result;
    const int64_t n = (int64_t)blockIdx.x * THREADS + threadIdx.x, i = s.begin + n;
    if (!r.applied || i >= s.end || f.trained[i / DT_DEVICE_GRANULE] == 0) {
        return;
    }
    const int mark = f.trained[i / DT_DEVICE_GRANULE], group = (mark & ~DT_DEVICE_STATISTIC) - 1;
    if ((f.groups >> group & 1) == 0) {
        return;
    }
    if ((mark & DT_DEVICE_STATISTIC) != 0) {
        f.param[i] -= f.grad[i];
        return;
    }
    float factor;
    const dt_device_consts k = update_consts(f, r, group, &factor);
    RULE::update(f, k, i, s.moment + n, f.grad[i] * factor + k.l2 * f.param[i]);
}

/* As dt_optim_blend. */
__global__ void blend_target(dt_device_blend b)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= b.n || !b.result->applied || b.result->group_updates[b.group] % b.every != 0) {
        return;
    }
    b.to[i] = b.tau == 1 ? b.from[i] : b.to[i] + b.tau * (b.from[i] - b.to[i]);
}

dt_status update_slice(const dt_device_finish *f, dt_device_slice slice, cudaStream_t s)
{
    const unsigned grid = dt_cuda_blocks(slice.end - slice.begin, THREADS);
    if (grid == 0) {
        return DT_OK;
    }
    if (f->moment[1] != NULL) {
        update<adam><<<grid, THREADS, 0, s>>>(*f, slice);
    } else {
        update<sgd><<<grid, THREADS, 0, s>>>(*f, slice);
    }
    return DT_CUDA_LAUNCHED();
}

} // namespace

dt_status dt_cuda_begin(dt_device *d, const dt_device_finish *f, dt_device_stream *s)
{
    write_seeds<<<1, 32, 0, (cudaStream_t)(void *)s>>>(f->control, f->state, f->seed, (int)f->n_losses);
    return DT_CUDA_LAUNCHED();
}

dt_status dt_cuda_measure(dt_device *d, const dt_device_finish *f, dt_device_stream *s)
{
    for (uint32_t k = 0; k < f->n_slices; k++) {
        const dt_device_slice at = f->slice[k];
        const int64_t first = at.begin / DT_DEVICE_BLOCK, end = (at.end + DT_DEVICE_BLOCK - 1) / DT_DEVICE_BLOCK;
        if (at.end > at.begin) {
            sum_block_squares<<<(unsigned)(end - first), THREADS, 0, (cudaStream_t)(void *)s>>>(f->grad, f->trained, at,
                                                                                                first, f->block_sum);
            DT_CUDA_TRY(DT_CUDA_LAUNCHED());
        }
    }
    return DT_OK;
}

dt_status dt_cuda_apply(dt_device *d, const dt_device_finish *f, dt_device_stream *s)
{
    const cudaStream_t stream = (cudaStream_t)(void *)s;
    losses l = {};
    for (uint32_t i = 0; i < f->n_losses; i++) {
        l.leaf[i] = f->loss[i];
    }
    decide_update<<<1, THREADS, 0, stream>>>(*f, l, (int)dt_cuda_blocks(f->total, DT_DEVICE_BLOCK));
    DT_CUDA_TRY(DT_CUDA_LAUNCHED());
    for (uint32_t k = 0; k < f->n_slices; k++) {
        DT_CUDA_TRY(update_slice(f, f->slice[k], stream));
    }
    return DT_OK;
}

dt_status dt_cuda_blend(dt_device *d, const dt_device_blend *b, dt_device_stream *s)
{
    if (b->n > 0) {
        blend_target<<<dt_cuda_blocks(b->n, THREADS), THREADS, 0, (cudaStream_t)(void *)s>>>(*b);
    }
    return DT_CUDA_LAUNCHED();
}

cudaError_t dt_cuda_probe(cudaFuncAttributes *f)
{
    return cudaFuncGetAttributes(f, (const void *)write_seeds);
}
