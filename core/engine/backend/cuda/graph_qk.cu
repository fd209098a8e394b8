/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaled dot-product attention over edges. See attention.h; engine/backend/ref/graph_qk.c has the plain loops and
 * formulas.
 *
 * Backward in two launches: by targets (dz of every edge, dq) and by sources (dk, dv).
 */
#include "engine/backend/cuda/attention.h"

namespace
{

template <typename T> using ptr = dt_cuda_ptr<T>;

template <typename T> struct graph_qk {
    using element = T;
    ptr<const T> q, k, v;
    dt_cuda_floats bias;
    ptr<const int32_t> rowptr, col;
    dt_cuda_span edges;
    dt_cuda_heads s, from; /* by targets [N], by sources [M] */
    float scale;           /* 1/sqrt(C) */
};

/* first is the number of inputs before q */
template <typename T> dt_status graph_qk_of(const dt_device_args *a, uint32_t first, graph_qk<T> *out_p)
{
    const dt_device_view *in = a->in + first;
    graph_qk<T> g = {};
    g.q = dt_cuda_src<T>(a, first);
    g.k = dt_cuda_src<T>(a, first + 1);
    g.v = dt_cuda_src<T>(a, first + 2);
    g.bias = dt_cuda_in_floats(a, first + 3);
    g.rowptr = dt_cuda_src<int32_t>(a, first + 4);
    g.col = dt_cuda_src<int32_t>(a, first + 5);
    g.edges = dt_cuda_rows(a, &in[5], 0);
    g.scale = 1.0f;
    DT_CUDA_TRY(dt_cuda_heads_args(a, &in[0], &in[5], &g.s));
    DT_CUDA_TRY(dt_cuda_heads_args(a, &in[1], &in[5], &g.from));
    g.scale = (float)(1.0 / sqrt((double)g.s.C));
    *out_p = g;
    return DT_OK;
}

bool is_vectorisable(const dt_device_args *a, uint32_t n_in)
{
    bool wide = true;
    for (uint32_t i = 0; i < n_in; i++) {
        wide = wide && dt_cuda_is_vectorisable(&a->in[i]);
    }
    for (uint32_t i = 0; i < 3 && i < a->n_out; i++) {
        wide = wide && dt_cuda_is_vectorisable(&a->out[i]);
    }
    return wide;
}

/* z_ij = q_i.k_j / sqrt(C) + bias_ij */
template <typename W, typename T> struct logit {
    const dt_cuda_team<W> &t;
    dt_cuda_share<W> q;
    const T *k;
    dt_cuda_floats bias;
    int leaf;
    float scale;
    __device__ float part(int, int j, const dt_cuda_share<W> &) const
    {
        return q.dot(t.get(k, j));
    }
    __device__ float value(int x, float sum) const
    {
        return sum * scale + (bias.data != nullptr ? bias.get(leaf, t.at(x)) : 0.0f);
    }
};

template <typename W, typename T>
__device__ logit<W, T> logit_of(const graph_qk<T> &g, const dt_cuda_team<W> &t, int leaf, int row)
{
    return {t, t.get(g.q.at(leaf), row), g.k.at(leaf), g.bias, leaf, g.scale};
}

template <typename T> __device__ ptr<const T> values_of(const graph_qk<T> &g)
{
    return g.v;
}

dt_status run_forward(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) -> dt_status {
        graph_qk<typename decltype(type)::T> g;
        DT_CUDA_TRY(graph_qk_of(a, 0, &g));
        return dt_cuda_attend_run(a, g, is_vectorisable(a, 3));
    });
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

template <typename W> struct no_slope {
    enum { IS_ONE = 1 };
    __device__ float part(int, int, const dt_cuda_share<W> &) const
    {
        return 0;
    }
    __device__ float of(float) const
    {
        return 1;
    }
    __device__ void keep(int, float) const {}
    __device__ float get(int) const
    {
        return 1;
    }
};

/* Zeros past the live edges of dbias. */
__device__ void zero_dead_edges(const dt_cuda_floats &dbias, int leaf, int live, const dt_cuda_heads &s)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x, end = (int64_t)s.E * s.H;
    for (int64_t i = (int64_t)live * s.H + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
         i < end && dbias.data != nullptr; i += step) {
        dbias.put(leaf, i, 0);
    }
}

/* dz [E,H] is dbias where that is wanted in f32; dbias: where it is stored in half, else NULL
 * dq_i = sum_j dz_ij k_j / sqrt(C), dq may be NULL */
template <typename W, typename T>
__global__ void __launch_bounds__(DT_CUDA_HEADS_THREADS)
    by_targets(graph_qk<T> g, ptr<const T> dy, ptr<const float> prob, ptr<float> dz, dt_cuda_floats dbias, ptr<T> dq,
               dt_cuda_reverse r)
{
    const dt_cuda_team<W> t(g.s);
    const int leaf = (int)blockIdx.y;
    const int32_t *rowptr = g.rowptr.at(leaf), *col = g.col.at(leaf);
    float *d = dz.at(leaf);
    dt_cuda_zero_dead_rows(d, g.edges.extent(leaf), g.s.E, g.s.H);
    zero_dead_edges(dbias, leaf, g.edges.extent(leaf), g.s);
    if (t.row >= g.s.N) {
        return;
    }
    const int first = rowptr[t.row], last = rowptr[t.row + 1];
    dt_cuda_attend_bwd(t, first, last, col, dy.at(leaf), g.v.at(leaf), prob.at(leaf), d, no_slope<W>{});
    dt_cuda_reverse_add(t, g.from, leaf, first, last, col, r);
    for (int x = first + t.lane; x < last && t.is_on && dbias.data != nullptr; x += t.G) { /* what this lane wrote */
        dbias.put(leaf, t.at(x), d[t.at(x)]);
    }
    if (dq.data == nullptr) {
        return;
    }
    __syncwarp(); /* other lanes wrote some of dz */
    dt_cuda_share<W> sum = {};
    for (int x = first; x < last; x += W::U) {
        dt_cuda_share<W> row[W::U];
        float weight[W::U];
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            row[u] = t.get(g.k.at(leaf), x + u < last ? col[x + u] : -1);
            weight[u] = t.is_on && x + u < last ? d[t.at(x + u)] : 0.0f;
        }
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            sum.add(weight[u], row[u]);
        }
    }
    sum.scale(g.scale);
    t.put(dq.at(leaf), t.row, sum);
}

/* dk_j = sum over edges into i of dz_ij q_i / sqrt(C)    dv_j = sum of p_ij dy_i    both may be NULL */
template <typename W, typename T>
__global__ void __launch_bounds__(DT_CUDA_HEADS_THREADS)
    by_sources(graph_qk<T> g, ptr<const T> dy, ptr<const float> prob, ptr<const float> dz, ptr<T> dk, ptr<T> dv,
               dt_cuda_reverse r)
{
    const dt_cuda_team<W> t(g.from);
    const int leaf = (int)blockIdx.y;
    const float *d = dz.at(leaf), *p = prob.at(leaf);
    const T *q = g.q.at(leaf), *up = dy.at(leaf);
    dt_cuda_share<W> sum_k = {}, sum_v = {};
    dt_cuda_each_edge_from(t, g.from, leaf, g.col.at(leaf), r, [&](const int(&x)[W::U], const int(&i)[W::U]) {
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            const bool is_edge = t.is_on && x[u] >= 0;
            sum_k.add(is_edge ? d[t.at(x[u])] : 0.0f, t.get(q, i[u]));
            sum_v.add(is_edge ? p[t.at(x[u])] : 0.0f, t.get(up, i[u]));
        }
    });
    sum_k.scale(g.scale);
    if (dk.data != nullptr) {
        t.put(dk.at(leaf), t.row, sum_k);
    }
    if (dv.data != nullptr) {
        t.put(dv.at(leaf), t.row, sum_v);
    }
}

/* Ranges, targets, and dz where there is no dbias in f32; one after another. */
size_t range_bytes(const dt_device_args *a, const dt_cuda_heads &s)
{
    return a->leaves * (size_t)s.N * sizeof(dt_cuda_range);
}

size_t target_bytes(const dt_device_args *a, const dt_cuda_heads &s)
{
    return a->leaves * (size_t)s.E * sizeof(int32_t);
}

bool has_own_dz(const dt_device_args *a)
{
    const dt_device_view *dbias = dt_cuda_out(a, 3);
    return dbias->data == nullptr || dbias->dtype != DT_F32;
}

size_t scratch_bwd(const dt_device_args *a)
{
    graph_qk<float> g;
    if (graph_qk_of(a, 1, &g) != DT_OK) {
        return 0;
    }
    const size_t dz_bytes = a->leaves * (size_t)g.s.E * (size_t)g.s.H * sizeof(float);
    return range_bytes(a, g.from) + target_bytes(a, g.s) + (has_own_dz(a) ? dz_bytes : 0);
}

/* all but bias, dbias and prob have one type */
template <typename T> dt_status run_bwd_of(const dt_device_args *a)
{
    graph_qk<T> g;
    DT_CUDA_TRY(graph_qk_of(a, 1, &g));
    if (g.s.N == 0 && g.from.N == 0) {
        return DT_OK;
    }
    char *scratch = (char *)a->scratch;
    const dt_cuda_reverse r = {(dt_cuda_range *)scratch, (int32_t *)(scratch + range_bytes(a, g.from))};
    const ptr<const T> dy = dt_cuda_src<T>(a, 0);
    const ptr<const float> prob = dt_cuda_src<float>(a, 7);
    ptr<float> dz = dt_cuda_dst<float>(a, 3);
    dt_cuda_floats dbias = {};
    if (has_own_dz(a)) {
        dbias = dt_cuda_out_floats(a, 3);
        dz = {(float *)(scratch + range_bytes(a, g.from) + target_bytes(a, g.s)), (int64_t)g.s.E * g.s.H};
    }
    const dim3 targets = dt_cuda_heads_grid(a, g.s), sources = dt_cuda_heads_grid(a, g.from);
    const unsigned threads = dt_cuda_heads_threads(g.s);
    DT_CUDA(cudaMemsetAsync(r.range, 0, range_bytes(a, g.from), dt_cuda_stream(a)));
    return dt_cuda_by_width(g.s, is_vectorisable(a, 4), [&](auto width) -> dt_status {
        using W = decltype(width);
        if (g.s.N > 0) {
            const ptr<T> dq = dt_cuda_dst<T>(a, 0);
            by_targets<W, T><<<targets, threads, 0, dt_cuda_stream(a)>>>(g, dy, prob, dz, dbias, dq, r);
            DT_CUDA_TRY(DT_CUDA_LAUNCHED());
        }
        const ptr<T> dk = dt_cuda_dst<T>(a, 1), dv = dt_cuda_dst<T>(a, 2);
        if (g.from.N == 0 || (dk.data == nullptr && dv.data == nullptr)) {
            return DT_OK;
        }
        const ptr<const float> from = {dz.data, dz.stride};
        by_sources<W, T><<<sources, threads, 0, dt_cuda_stream(a)>>>(g, dy, prob, from, dk, dv, r);
        return DT_CUDA_LAUNCHED();
    });
}

dt_status run_backward(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return run_bwd_of<typename decltype(type)::T>(a); });
}

} // namespace

DT_CUDA_KERNEL(GRAPH_QK, graph_qk, run_forward);
DT_CUDA_KERNEL_WITH(GRAPH_QK_BWD, graph_qk_bwd, run_backward, scratch_bwd, nullptr, nullptr);
