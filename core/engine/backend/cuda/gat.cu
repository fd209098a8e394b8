/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph attention with edge features. See attention.h; engine/backend/ref/gat.c has the plain loops and the formulas.
 *
 * Backward in three launches: by targets (dz of every edge, what edge features and their weights get), by sources (dh,
 * and what the two vectors get), and the sum of what each block gave to the parameters.
 */
#include "engine/backend/cuda/attention.h"
#include "engine/backend/cuda/columns.h"

namespace
{

enum { MAX_THREADS = 32 * DT_CUDA_MAX_WARPS };

template <typename T> using ptr = dt_cuda_ptr<T>;

template <typename T> struct gat {
    using element = T;
    ptr<const T> h;
    ptr<const float> a_dst, a_src, e, w_e;
    ptr<const int32_t> rowptr, col;
    dt_cuda_span nodes, edges;
    dt_cuda_heads s;
    int K; /* edge features */
    float slope;
};

/* first is the number of inputs before h */
template <typename T> dt_status gat_of(const dt_device_args *a, uint32_t first, gat<T> *out_p)
{
    const dt_device_view *in = a->in + first;
    gat<T> g = {};
    g.h = dt_cuda_src<T>(a, first);
    g.a_dst = dt_cuda_src<float>(a, first + 1);
    g.a_src = dt_cuda_src<float>(a, first + 2);
    g.e = dt_cuda_src<float>(a, first + 3);
    g.w_e = dt_cuda_src<float>(a, first + 4);
    g.rowptr = dt_cuda_src<int32_t>(a, first + 5);
    g.col = dt_cuda_src<int32_t>(a, first + 6);
    g.nodes = dt_cuda_rows(a, &in[0], 1);
    g.edges = dt_cuda_rows(a, &in[6], 0);
    g.K = in[3].data != nullptr ? (int)dt_cuda_last_dim(&in[3]) : 0;
    g.slope = (float)a->attr->f[0];
    DT_CUDA_TRY(dt_cuda_heads_args(a, &in[0], &in[6], &g.s));
    *out_p = g;
    return DT_OK;
}

/* z_ij before the slope: a_dst.h_i (the same for all edges of a target) + a_src.h_j + w_e.e_ij */
template <typename W> struct logit {
    const dt_cuda_team<W> &t;
    dt_cuda_share<W> a_src;
    const float *e, *w_e; /* w_e of this head */
    int K;
    float at_target, slope;

    template <typename T> __device__ logit(const gat<T> &g, const dt_cuda_team<W> &team, int leaf, int row) : t(team)
    {
        a_src = t.get(g.a_src.at(leaf), 0);
        e = g.e.at(leaf);
        w_e = g.K > 0 && t.is_on ? g.w_e.at(leaf) + t.head * g.K : nullptr;
        K = g.K;
        slope = g.slope;
        at_target = t.sum(t.get(g.a_dst.at(leaf), 0).dot(t.get(g.h.at(leaf), row)));
    }
    __device__ float part(int x, int, const dt_cuda_share<W> &h_j) const
    {
        float z = a_src.dot(h_j);
        for (int k = t.lane; k < K; k += t.G) {
            z += w_e[k] * e[(int64_t)x * K + k];
        }
        return z;
    }
    __device__ float value(int, float sum) const
    {
        const float z = at_target + sum;
        return z > 0 ? z : slope * z;
    }
};

/* ---- forward ----------------------------------------------------------------------------------------------------- */

template <typename W, typename T>
__device__ logit<W> logit_of(const gat<T> &g, const dt_cuda_team<W> &t, int leaf, int row)
{
    return logit<W>(g, t, leaf, row);
}

template <typename T> __device__ ptr<const T> values_of(const gat<T> &g)
{
    return g.h;
}

bool is_vectorisable(const dt_device_args *a, uint32_t h, uint32_t first, uint32_t last)
{
    bool wide = dt_cuda_is_vectorisable(&a->out[0]);
    for (uint32_t i = first; i <= last; i++) {
        wide = wide && dt_cuda_is_vectorisable(&a->in[i]);
    }
    return wide && dt_cuda_last_dim(&a->in[h]) % 4 == 0;
}

dt_status run_forward(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) -> dt_status {
        gat<typename decltype(type)::T> g;
        DT_CUDA_TRY(gat_of(a, 0, &g));
        return dt_cuda_attend_run(a, g, is_vectorisable(a, 0, 0, 2));
    });
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* What the launches hand on, per leaf. A block's row of `part` holds da_dst and da_src [H*C] and dw_e [H*K]. */
struct between {
    dt_cuda_reverse reverse;
    float *dz, *slope; /* [E,H] */
    float *d_dst;      /* [N,H]: dz summed over the edges into a node */
    float *part;       /* [blocks,columns] */
    int blocks, columns;
    size_t bytes;
};

template <typename T> between between_of(const gat<T> &g, uint32_t leaves, char *scratch)
{
    between b = {};
    const size_t N = (size_t)g.s.N * leaves, E = (size_t)g.s.E * leaves, H = (size_t)g.s.H;
    b.blocks = (int)dt_cuda_blocks(g.s.N, g.s.rows);
    b.columns = 2 * g.s.H * g.s.C + g.s.H * g.K;
    size_t at = 0;
    const auto take = [&](size_t bytes) {
        char *p = scratch == nullptr ? nullptr : scratch + at;
        at += bytes;
        return p;
    };
    b.reverse.range = (dt_cuda_range *)take(N * sizeof(dt_cuda_range));
    b.reverse.target = (int32_t *)take(E * sizeof(int32_t));
    b.dz = (float *)take(E * H * sizeof(float));
    b.slope = (float *)take(E * H * sizeof(float));
    b.d_dst = (float *)take(N * H * sizeof(float));
    b.part = (float *)take((size_t)b.blocks * (size_t)b.columns * leaves * sizeof(float));
    b.bytes = at;
    return b;
}

template <typename W> struct logit_slope : logit<W> {
    enum { IS_ONE = 0 };
    float *kept;
    template <typename T>
    __device__ logit_slope(const gat<T> &g, const dt_cuda_team<W> &team, int leaf, int row, float *at)
        : logit<W>(g, team, leaf, row), kept(at)
    {
    }
    __device__ float of(float sum) const
    {
        return this->at_target + sum > 0 ? 1.0f : this->slope;
    }
    __device__ void keep(int x, float s) const
    {
        kept[this->t.at(x)] = s;
    }
    __device__ float get(int x) const
    {
        return kept[this->t.at(x)];
    }
};

template <typename W, typename T>
__global__ void __launch_bounds__(DT_CUDA_HEADS_THREADS)
    by_targets(gat<T> g, ptr<const T> dy, ptr<const float> prob, ptr<float> de, between b)
{
    const dt_cuda_team<W> t(g.s);
    const int leaf = (int)blockIdx.y, H = g.s.H, K = g.K;
    const int32_t *rowptr = g.rowptr.at(leaf), *col = g.col.at(leaf);
    float *dz = b.dz + (int64_t)leaf * g.s.E * H;
    dt_cuda_zero_dead_rows(de.at(leaf), g.edges.extent(leaf), g.s.E, K);
    if (t.row < g.s.N) {
        const int first = rowptr[t.row], last = rowptr[t.row + 1];
        const logit_slope<W> z(g, t, leaf, first < last ? t.row : -1, b.slope + (int64_t)leaf * g.s.E * H);
        const float sum = dt_cuda_attend_bwd(t, first, last, col, dy.at(leaf), g.h.at(leaf), prob.at(leaf), dz, z);
        if (t.is_on && t.lane == 0) {
            b.d_dst[(int64_t)leaf * g.s.N * H + t.at(t.row)] = sum;
        }
        dt_cuda_reverse_add(t, g.s, leaf, first, last, col, b.reverse);
    }
    if (K == 0) {
        return;
    }
    /* the edges of the block's targets, one after another */
    __syncthreads();
    const int row = (int)blockIdx.x * g.s.rows;
    const int first = rowptr[row], last = rowptr[min(row + g.s.rows, g.s.N)];
    const float *e = g.e.at(leaf), *w_e = g.w_e.at(leaf);
    if (de.data != nullptr) {
        for (int i = (int)threadIdx.x; i < (last - first) * K; i += (int)blockDim.x) {
            const int x = first + i / K, k = i % K;
            float sum = 0;
            for (int head = 0; head < H; head++) {
                sum += dz[(int64_t)x * H + head] * w_e[head * K + k];
            }
            de.at(leaf)[(int64_t)x * K + k] = sum;
        }
    }
    for (int i = (int)threadIdx.x; i < H * K; i += (int)blockDim.x) {
        const int head = i / K, k = i % K;
        float sum = 0;
#pragma unroll 4
        for (int x = first; x < last; x++) {
            sum += dz[(int64_t)x * H + head] * e[(int64_t)x * K + k];
        }
        b.part[((int64_t)leaf * b.blocks + blockIdx.x) * b.columns + 2 * H * g.s.C + i] = sum;
    }
}

/* what x of every row of the block sums to, into `to` [H*C] */
template <typename W>
__device__ void sum_rows(const dt_cuda_team<W> &t, const dt_cuda_heads &s, const dt_cuda_share<W> &x,
                         dt_cuda_pack<4> *shared, float *to)
{
#pragma unroll
    for (int m = 0; m < W::M; m++) {
        shared[threadIdx.x] = {{x.x[m][0], x.x[m][1], x.x[m][2], x.x[m][3]}};
        __syncthreads();
        for (int k = 0; k < 4 && t.slot == 0 && t.head < t.H; k++) {
            float sum = 0;
            for (int i = 0; i < s.rows; i++) {
                sum += shared[threadIdx.x + i * 32 * s.warps].x[k];
            }
            if (t.channel(m) + k < t.C) {
                to[t.head * t.C + t.channel(m) + k] = sum;
            }
        }
        __syncthreads();
    }
}

/* dh_j = sum over edges into i of p_ij dy_i + d_src_j a_src, + d_dst_j a_dst; d_src is dz summed over the edges out */
template <typename W, typename T>
__global__ void __launch_bounds__(DT_CUDA_HEADS_THREADS)
    by_sources(gat<T> g, ptr<const T> dy, ptr<const float> prob, ptr<T> dh, between b)
{
    __shared__ dt_cuda_pack<4> shared[MAX_THREADS];
    const dt_cuda_team<W> t(g.s);
    const int leaf = (int)blockIdx.y, H = g.s.H;
    const float *dz = b.dz + (int64_t)leaf * g.s.E * H, *p = prob.at(leaf);
    const T *up = dy.at(leaf);
    dt_cuda_share<W> sum = {};
    float d_src = 0;
    dt_cuda_each_edge_from(t, g.s, leaf, g.col.at(leaf), b.reverse, [&](const int(&x)[W::U], const int(&i)[W::U]) {
        dt_cuda_share<W> row[W::U];
        float weight[W::U];
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            row[u] = t.get(up, i[u]);
            weight[u] = t.is_on && x[u] >= 0 ? p[t.at(x[u])] : 0.0f;
            d_src += t.is_on && x[u] >= 0 ? dz[t.at(x[u])] : 0.0f;
        }
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            sum.add(weight[u], row[u]);
        }
    });
    const float d_dst = t.is_on ? b.d_dst[(int64_t)leaf * g.s.N * H + t.at(t.row)] : 0.0f;
    if (dh.data != nullptr) {
        sum.add(d_src, t.get(g.a_src.at(leaf), 0));
        sum.add(d_dst, t.get(g.a_dst.at(leaf), 0));
        t.put(dh.at(leaf), t.row, sum);
    }
    float *part = b.part + ((int64_t)leaf * b.blocks + blockIdx.x) * b.columns;
    const dt_cuda_share<W> h = t.get(g.h.at(leaf), t.row);
    dt_cuda_share<W> dst = h, src = h;
    dst.scale(d_dst);
    src.scale(d_src);
    sum_rows(t, g.s, dst, shared, part);
    sum_rows(t, g.s, src, shared, part + H * g.s.C);
}

struct parameter {
    ptr<float> grad;
    int n, accum;
};

struct parameters {
    parameter of[3]; /* da_dst, da_src, dw_e: the columns of part in this order */
};

/* Over the blocks that have live rows. */
__global__ void __launch_bounds__(DT_CUDA_COLUMN_THREADS)
    sum_blocks(dt_cuda_span nodes, int rows_of_block, between b, parameters p)
{
    const int leaf = (int)blockIdx.y, column = (int)(blockIdx.x * 32 + threadIdx.x);
    const int n = min(b.blocks, (nodes.extent(leaf) + rows_of_block - 1) / rows_of_block);
    const float *part = b.part + (int64_t)leaf * b.blocks * b.columns + column;
    const bool is_there = column < b.columns;
    const double sum = dt_cuda_column_sum(n, [&](int i) { return is_there ? part[(int64_t)i * b.columns] : 0.0f; });
    int i = column;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        if (threadIdx.y == 0 && i >= 0 && i < p.of[k].n && p.of[k].grad.data != nullptr) {
            float *to = p.of[k].grad.at(leaf) + i;
            *to = (float)(sum + (p.of[k].accum ? *to : 0.0f));
        }
        i -= p.of[k].n;
    }
}

size_t scratch_bwd(const dt_device_args *a)
{
    gat<float> g;
    return gat_of(a, 1, &g) == DT_OK ? between_of(g, a->leaves, nullptr).bytes : 0;
}

template <typename T> dt_status sum_parameters(const dt_device_args *a, const gat<T> &g, const between &b)
{
    parameters p = {};
    bool is_wanted = false;
    const uint32_t out[3] = {1, 2, 4};
    const int n[3] = {g.s.H * g.s.C, g.s.H * g.s.C, g.s.H * g.K};
    for (int k = 0; k < 3; k++) {
        p.of[k] = {dt_cuda_dst<float>(a, out[k]), n[k], dt_cuda_out(a, out[k])->accum};
        is_wanted = is_wanted || (p.of[k].grad.data != nullptr && n[k] > 0);
    }
    if (!is_wanted) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks(b.columns, 32), a->leaves), block(32, DT_CUDA_COLUMN_LANES);
    sum_blocks<<<grid, block, 0, dt_cuda_stream(a)>>>(g.nodes, g.s.rows, b, p);
    return DT_CUDA_LAUNCHED();
}

/* dy, h and dh have one type */
template <typename T> dt_status run_bwd_of(const dt_device_args *a)
{
    gat<T> g;
    DT_CUDA_TRY(gat_of(a, 1, &g));
    const between b = between_of(g, a->leaves, (char *)a->scratch);
    const ptr<const T> dy = dt_cuda_src<T>(a, 0);
    const ptr<const float> prob = dt_cuda_src<float>(a, 8);
    if (g.s.N > 0) {
        const dim3 grid = dt_cuda_heads_grid(a, g.s);
        const unsigned threads = dt_cuda_heads_threads(g.s);
        DT_CUDA(
            cudaMemsetAsync(b.reverse.range, 0, a->leaves * (size_t)g.s.N * sizeof(dt_cuda_range), dt_cuda_stream(a)));
        DT_CUDA_TRY(dt_cuda_by_width(g.s, is_vectorisable(a, 1, 0, 3), [&](auto width) -> dt_status {
            using W = decltype(width);
            by_targets<W, T><<<grid, threads, 0, dt_cuda_stream(a)>>>(g, dy, prob, dt_cuda_dst<float>(a, 3), b);
            DT_CUDA_TRY(DT_CUDA_LAUNCHED());
            by_sources<W, T><<<grid, threads, 0, dt_cuda_stream(a)>>>(g, dy, prob, dt_cuda_dst<T>(a, 0), b);
            return DT_CUDA_LAUNCHED();
        }));
    }
    return sum_parameters(a, g, b);
}

dt_status run_backward(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return run_bwd_of<typename decltype(type)::T>(a); });
}

} // namespace

DT_CUDA_KERNEL(GAT, gat, run_forward);
DT_CUDA_KERNEL_WITH(GAT_BWD, gat_bwd, run_backward, scratch_bwd, nullptr, nullptr);
