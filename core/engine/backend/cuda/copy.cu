/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that move rows and columns without arithmetic, and what flows back through them. See cuda.h;
 * engine/backend/ref/copy.c has the plain loops.
 */
#include "engine/backend/cuda/stored.h"
#include "engine/backend/cuda/referrer.h"

namespace
{

enum { THREADS = 256, MAX_PARTS = 8, AT_ONCE = 4 };

using source = dt_cuda_floats;

/* ---- where an output comes from ---------------------------------------------------------------------------------- */

/* Each op here is a function of leaf, row and column of its output: V neighbours from there on. */

struct concat_of {
    source x[MAX_PARTS];
    int width[MAX_PARTS]; /* 0 past the last */
    template <int V> __device__ dt_cuda_pack<V> at(int leaf, int r, int d) const
    {
        [[maybe_unused]] source from = {}; /* nvcc 11.8 does not see its use below */
        int64_t i = 0;
#pragma unroll
        for (int k = 0; k < MAX_PARTS; k++) {
            if (d >= 0 && d < width[k]) {
                from = x[k];
                i = (int64_t)r * width[k] + d;
            }
            d -= width[k];
        }
        return from.load<V>(leaf, i);
    }
};

struct slice_of {
    source x;
    int D, first;
    template <int V> __device__ dt_cuda_pack<V> at(int leaf, int r, int d) const
    {
        return x.load<V>(leaf, (int64_t)r * D + first + d);
    }
};

struct slice_bwd_of {
    source dy;
    int n, first;
    template <int V> __device__ dt_cuda_pack<V> at(int leaf, int r, int d) const
    {
        return d >= first && d < first + n ? dy.load<V>(leaf, (int64_t)r * n + d - first) : dt_cuda_pack<V>{};
    }
};

struct step_of {
    source x;
    int64_t first; /* element of the step */
    int D;
    template <int V> __device__ dt_cuda_pack<V> at(int leaf, int r, int d) const
    {
        return x.load<V>(leaf, first + (int64_t)r * D + d);
    }
};

struct step_bwd_of {
    source dy;
    int64_t first, n; /* elements before and in the step */
    int D;
    template <int V> __device__ dt_cuda_pack<V> at(int leaf, int r, int d) const
    {
        const int64_t i = (int64_t)r * D + d - first;
        return i >= 0 && i < n ? dy.load<V>(leaf, i) : dt_cuda_pack<V>{};
    }
};

struct gather_of {
    source x;
    dt_cuda_ptr<const int32_t> idx;
    int D;
    template <int V> __device__ dt_cuda_pack<V> at(int leaf, int r, int d) const
    {
        const int row = idx.at(leaf)[r];
        return row >= 0 ? x.load<V>(leaf, (int64_t)row * D + d) : dt_cuda_pack<V>{};
    }
};

template <int V, typename F> __global__ void move(dt_cuda_floats y, dt_cuda_span rows, F source_of)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    const int r = i / (rows.D / V), d = i % (rows.D / V) * V;
    if (r < rows.R) {
        const bool is_live = rows.has(r, rows.extent(leaf));
        y.store<V>(leaf, (int64_t)r * rows.D + d, is_live ? source_of.template at<V>(leaf, r, d) : dt_cuda_pack<V>{});
    }
}

/* The output as rows; a ragged last dimension is made of rows of one. */
dt_cuda_span rows_of_output(const dt_device_args *a)
{
    const dt_device_view *y = &a->out[0];
    return dt_cuda_rows(a, y, y->rank > 0 && y->ragged != y->rank - 1 ? 1 : 0);
}

bool is_index(const dt_device_view *v)
{
    return v->dtype == DT_I32 || v->dtype == DT_I64;
}

template <typename F> dt_status launch(const dt_device_args *a, dt_cuda_span rows, bool is_wide, F source_of)
{
    const int64_t n = (int64_t)rows.R * rows.D;
    if (n == 0) {
        return DT_OK;
    }
    for (uint32_t i = 0; i < a->n_in; i++) {
        is_wide = is_wide && (is_index(&a->in[i]) || dt_cuda_is_vectorisable(&a->in[i]));
    }
    const dt_cuda_floats y = dt_cuda_out_floats(a, 0);
    if (is_wide && rows.D % 4 == 0 && dt_cuda_is_vectorisable(&a->out[0])) {
        const dim3 grid(dt_cuda_blocks(n / 4, THREADS), a->leaves);
        move<4><<<grid, THREADS, 0, dt_cuda_stream(a)>>>(y, rows, source_of);
    } else {
        const dim3 grid(dt_cuda_blocks(n, THREADS), a->leaves);
        move<1><<<grid, THREADS, 0, dt_cuda_stream(a)>>>(y, rows, source_of);
    }
    return DT_CUDA_LAUNCHED();
}

dt_status concat(const dt_device_args *a)
{
    concat_of f = {};
    bool is_wide = true;
    for (uint32_t i = 0; i < a->n_in; i++) {
        f.x[i] = dt_cuda_in_floats(a, i);
        f.width[i] = (int)dt_cuda_last_dim(&a->in[i]);
        is_wide = is_wide && f.width[i] % 4 == 0;
    }
    return launch(a, dt_cuda_rows(a, &a->out[0], 1), is_wide, f);
}

dt_status slice(const dt_device_args *a)
{
    const slice_of f = {dt_cuda_in_floats(a, 0), (int)dt_cuda_last_dim(&a->in[0]), (int)a->attr->i[0]};
    return launch(a, dt_cuda_rows(a, &a->out[0], 1), f.first % 4 == 0 && f.D % 4 == 0, f);
}

dt_status slice_bwd(const dt_device_args *a)
{
    const slice_bwd_of f = {dt_cuda_in_floats(a, 0), (int)a->attr->i[1], (int)a->attr->i[0]};
    return launch(a, dt_cuda_rows(a, &a->out[0], 1), f.first % 4 == 0 && f.n % 4 == 0, f);
}

dt_status step(const dt_device_args *a)
{
    const int64_t T = a->in[0].dim[0], t = a->attr->i[0] + (a->attr->i[0] < 0 ? T : 0);
    const dt_cuda_span rows = rows_of_output(a);
    const step_of f = {dt_cuda_in_floats(a, 0), t * dt_cuda_count(&a->out[0]), rows.D};
    return launch(a, rows, f.first % 4 == 0, f);
}

dt_status step_bwd(const dt_device_args *a)
{
    const int64_t T = a->attr->i[1], t = a->attr->i[0] + (a->attr->i[0] < 0 ? T : 0);
    const int64_t n = dt_cuda_count(&a->in[0]);
    const dt_cuda_span rows = rows_of_output(a);
    const step_bwd_of f = {dt_cuda_in_floats(a, 0), t * n, n, rows.D};
    return launch(a, rows, n % 4 == 0, f);
}

dt_status gather(const dt_device_args *a)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->out[0], 1);
    return launch(a, rows, true, gather_of{dt_cuda_in_floats(a, 0), dt_cuda_src<int32_t>(a, 1), rows.D});
}

/* ---- gather backward --------------------------------------------------------------------------------------------- */

/* range [R] per leaf: where idx names each row */
__global__ void find_references(dt_cuda_ptr<const int32_t> idx, dt_cuda_span at, dt_cuda_range *range, int R)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i < at.R && at.has(i, at.extent(leaf))) {
        const int row = idx.at(leaf)[i];
        if (row >= 0) {
            dt_cuda_range_add(&range[(int64_t)leaf * R + row], i, at.R);
        }
    }
}

/* dx_r = sum of dy_i over the i with idx_i = r, in their order; one warp per row and 32 V columns of it. Positions that
 * are not live may name a row as well: dy is zero there, or asks_live leaves them out. */
template <int V, typename T, bool asks_live>
__global__ void sum_references(dt_cuda_ptr<const T> dy, dt_cuda_ptr<const int32_t> idx, const dt_cuda_range *range,
                               dt_cuda_span span, dt_cuda_floats dx, int R, int D)
{
    const int i = (int)(blockIdx.x * (THREADS / 32) + threadIdx.x / 32), leaf = (int)blockIdx.y;
    const int pieces = (D + 32 * V - 1) / (32 * V);
    const int r = i / pieces, d = (i % pieces * 32 + (int)(threadIdx.x % 32)) * V;
    if (r >= R) {
        return;
    }
    const T *from = dy.at(leaf) + d;
    const bool is_mine = d < D;
    const int extent = asks_live ? span.extent(leaf) : 0;
    dt_cuda_pack<V> sum = {};
    dt_cuda_each_referrer<AT_ONCE>(idx.at(leaf), range[(int64_t)leaf * R + r], span.R, r, [&](const int(&at)[AT_ONCE]) {
        dt_cuda_pack<V> x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const bool counts = is_mine && at[u] >= 0 && (!asks_live || span.has(at[u], extent));
            x[u] = counts ? dt_cuda_load<V>(from + (int64_t)at[u] * D) : dt_cuda_pack<V>{};
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            for (int k = 0; k < V; k++) {
                sum.x[k] += x[u].x[k];
            }
        }
    });
    if (is_mine) {
        dx.store<V>(leaf, (int64_t)r * D + d, sum);
    }
}

size_t gather_bwd_scratch(const dt_device_args *a)
{
    return a->leaves * (size_t)a->out[0].dim[0] * sizeof(dt_cuda_range);
}

template <bool asks_live> dt_status add_rows(const dt_device_args *a)
{
    const int R = (int)a->out[0].dim[0], D = (int)dt_cuda_last_dim(&a->out[0]);
    const dt_cuda_ptr<const int32_t> idx = dt_cuda_src<int32_t>(a, 1);
    const dt_cuda_floats dx = dt_cuda_out_floats(a, 0);
    const dt_cuda_span at = dt_cuda_rows(a, &a->in[1], 0);
    dt_cuda_range *range = (dt_cuda_range *)a->scratch;
    if ((int64_t)R * D == 0) {
        return DT_OK;
    }
    DT_CUDA(cudaMemsetAsync(range, 0, gather_bwd_scratch(a), dt_cuda_stream(a)));
    if (at.R > 0) {
        const dim3 grid(dt_cuda_blocks(at.R, THREADS), a->leaves);
        find_references<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(idx, at, range, R);
        DT_CUDA_TRY(DT_CUDA_LAUNCHED());
    }
    const bool is_wide = D % 4 == 0 && dt_cuda_is_vectorisable(&a->in[0]) && dt_cuda_is_vectorisable(&a->out[0]);
    const dim3 grid(dt_cuda_blocks((int64_t)R * dt_cuda_blocks(D, is_wide ? 128 : 32), THREADS / 32), a->leaves);
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) -> dt_status {
        using T = typename decltype(type)::T;
        const dt_cuda_ptr<const T> dy = dt_cuda_src<T>(a, 0);
        if (is_wide) {
            sum_references<4, T, asks_live><<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dy, idx, range, at, dx, R, D);
        } else {
            sum_references<1, T, asks_live><<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dy, idx, range, at, dx, R, D);
        }
        return DT_CUDA_LAUNCHED();
    });
}

} // namespace

DT_CUDA_KERNEL(CONCAT, concat, concat);
DT_CUDA_KERNEL(SLICE, slice, slice);
DT_CUDA_KERNEL(SLICE_BWD, slice_bwd, slice_bwd);
DT_CUDA_KERNEL(STEP, step, step);
DT_CUDA_KERNEL(STEP_BWD, step_bwd, step_bwd);
DT_CUDA_KERNEL(GATHER, gather, gather);
DT_CUDA_KERNEL_WITH(GATHER_BWD, gather_bwd, add_rows<false>, gather_bwd_scratch, nullptr, nullptr);
DT_CUDA_KERNEL_WITH(SCATTER_ADD, scatter_add, add_rows<true>, gather_bwd_scratch, nullptr, nullptr);
