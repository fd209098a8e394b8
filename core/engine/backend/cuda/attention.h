/* SPDX-License-Identifier: Apache-2.0
 *
 * What the attention kernels share. Warps work on one row (a target, or in the second pass backward a source) and some
 * of its heads; a team of lanes has a head: of each 4 G channels lane k of G has 4k .. 4k+3. Everything an edge needs
 * stays in registers: logits, softmax and weighted sum are one walk over the edges of a target (the sum is rescaled
 * when a larger logit comes, Milakov and Gimelshein 2018), and teams meet only in shuffles. Graphs are small and their
 * rows lie together, so what neighbours share is found in the first-level cache.
 *   u, v [N,H*C]   rowptr [N+1]   col [E]   prob, dz [E,H]     edge x goes from col[x]
 * T is how rows are stored; prob and dz are f32.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_ATTENTION_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_ATTENTION_H

#include "engine/backend/cuda/stored.h"
#include "engine/backend/cuda/referrer.h"

struct dt_cuda_heads {
    int32_t N, E, H, C; /* rows and edges at capacity, heads, channels of a head */
    int32_t G;          /* lanes of a team, a power of two */
    int32_t warps;      /* of a row */
    int32_t rows;       /* of a block */
};

enum { DT_CUDA_MAX_CHANNELS = 1024, DT_CUDA_MAX_WARPS = 16 };
/* bound of the kernels below, so that they get the registers they need */
enum { DT_CUDA_HEADS_THREADS = 32 * DT_CUDA_MAX_WARPS };

/* DT_EUNSUPPORTED: more heads and channels than one block can take. */
static inline dt_status dt_cuda_heads_args(const dt_device_args *a, const dt_device_view *h, const dt_device_view *col,
                                           dt_cuda_heads *out_p)
{
    dt_cuda_heads s = {(int32_t)h->dim[0], (int32_t)col->dim[0], (int32_t)a->attr->i[0], 0, 1, 0, 0};
    s.C = (int32_t)(h->dim[1] / s.H);
    while (s.G < 32 && 4 * s.G < s.C) {
        s.G *= 2;
    }
    s.warps = (int32_t)dt_cuda_blocks(s.H, 32 / s.G);
    if (s.C > DT_CUDA_MAX_CHANNELS || s.warps > DT_CUDA_MAX_WARPS) {
        return DT_CUDA_FAIL(
            DT_EUNSUPPORTED,
            "attention with %d heads of %d channels: on a GPU at most %d channels of a head and %d heads "
            "of this width are possible; use fewer, or use --device cpu",
            s.H, s.C, DT_CUDA_MAX_CHANNELS, DT_CUDA_MAX_WARPS * 32 / s.G);
    }
    s.rows = s.warps < 8 ? 8 / s.warps : 1;
    *out_p = s;
    return DT_OK;
}

static inline dim3 dt_cuda_heads_grid(const dt_device_args *a, const dt_cuda_heads &s)
{
    return dim3(dt_cuda_blocks(s.N, s.rows), a->leaves);
}

static inline unsigned dt_cuda_heads_threads(const dt_cuda_heads &s)
{
    return (unsigned)(32 * s.warps * s.rows);
}

/* ---- a team ------------------------------------------------------------------------------------------------------ */

/* M: pieces of 4 channels that a lane has. WIDE: each is one load. U: edges in flight. */
template <int M_, bool WIDE_> struct dt_cuda_width {
    enum { M = M_, WIDE = WIDE_, U = M_ == 1 ? 4 : M_ == 2 ? 2 : 1 };
};

/* run(width) for the width of these heads */
template <typename F> static inline dt_status dt_cuda_by_width(const dt_cuda_heads &s, bool is_wide, F run)
{
    if (is_wide && s.C % 4 == 0) {
        return s.C <= 128   ? run(dt_cuda_width<1, true>{})
               : s.C <= 256 ? run(dt_cuda_width<2, true>{})
                            : run(dt_cuda_width<8, true>{});
    }
    return s.C <= 128   ? run(dt_cuda_width<1, false>{})
           : s.C <= 256 ? run(dt_cuda_width<2, false>{})
                        : run(dt_cuda_width<8, false>{});
}

/* A lane's share of one head of one row. */
template <typename W> struct dt_cuda_share {
    float x[W::M][4];

    __device__ void add(float scale, const dt_cuda_share &b)
    {
#pragma unroll
        for (int m = 0; m < W::M; m++) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                x[m][k] += scale * b.x[m][k];
            }
        }
    }
    __device__ void scale(float f)
    {
#pragma unroll
        for (int m = 0; m < W::M; m++) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                x[m][k] *= f;
            }
        }
    }
    __device__ float dot(const dt_cuda_share &b) const
    {
        float sum = 0;
#pragma unroll
        for (int m = 0; m < W::M; m++) {
#pragma unroll
            for (int k = 0; k < 4; k++) {
                sum += x[m][k] * b.x[m][k];
            }
        }
        return sum;
    }
};

template <typename W> struct dt_cuda_team {
    int slot, row; /* row of the block, of the tensor */
    int head, lane;
    int H, C, G;
    bool is_on; /* there is such a head of such a row; all lanes of the warp take part in shuffles all the same */

    __device__ explicit dt_cuda_team(const dt_cuda_heads &s)
    {
        const int warp = (int)threadIdx.x / 32, in_warp = (int)threadIdx.x % 32;
        slot = warp / s.warps;
        row = (int)blockIdx.x * s.rows + slot;
        head = warp % s.warps * (32 / s.G) + in_warp / s.G;
        lane = in_warp % s.G;
        H = s.H;
        C = s.C;
        G = s.G;
        is_on = row < s.N && head < H;
    }
    /* first of the four channels of piece m */
    __device__ int channel(int m) const
    {
        return (m * G + lane) * 4;
    }
    /* row r of a [rows,H*C], zeros for r < 0 */
    template <typename T> __device__ dt_cuda_share<W> get(const T *a, int r) const
    {
        dt_cuda_share<W> s = {};
        if (!is_on || r < 0) {
            return s;
        }
        const T *from = a + ((int64_t)r * H + head) * C;
#pragma unroll
        for (int m = 0; m < W::M; m++) {
            const int c = channel(m);
            if (W::WIDE && c < C) {
                const dt_cuda_pack<4> p = dt_cuda_load<4>(from + c);
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    s.x[m][k] = p.x[k];
                }
            }
#pragma unroll
            for (int k = 0; k < 4 && !W::WIDE; k++) {
                s.x[m][k] = c + k < C ? dt_cuda_get(from + c + k) : 0.0f;
            }
        }
        return s;
    }
    template <typename T> __device__ void put(T *a, int r, const dt_cuda_share<W> &s) const
    {
        if (!is_on) {
            return;
        }
        T *to = a + ((int64_t)r * H + head) * C;
#pragma unroll
        for (int m = 0; m < W::M; m++) {
            const int c = channel(m);
            if (W::WIDE && c < C) {
                dt_cuda_store(to + c, dt_cuda_pack<4>{{s.x[m][0], s.x[m][1], s.x[m][2], s.x[m][3]}});
            }
#pragma unroll
            for (int k = 0; k < 4 && !W::WIDE; k++) {
                if (c + k < C) {
                    dt_cuda_put(to + c + k, s.x[m][k]);
                }
            }
        }
    }
    /* each of n values summed over the team; every lane gets the sums */
    template <int n> __device__ void sum(float (&x)[n]) const
    {
        for (int half = G / 2; half > 0; half /= 2) {
#pragma unroll
            for (int i = 0; i < n; i++) {
                x[i] += __shfl_xor_sync(0xffffffffu, x[i], half);
            }
        }
    }
    __device__ float sum(float x) const
    {
        float one[1] = {x};
        sum(one);
        return one[0];
    }
    /* values of edge number i of a target are written, and read again, by one lane of the team */
    __device__ bool writes(int i) const
    {
        return is_on && i % G == lane;
    }
    /* of a [E,H] */
    __device__ int64_t at(int x) const
    {
        return (int64_t)x * H + head;
    }
};

/* ---- walks over the edges of a target ---------------------------------------------------------------------------- */

/* out_i = sum_j softmax_j(z_ij) v_j. z.part(x, j, v_j) is a lane's part of a product, z.value(x, sum) the logit. prob
 * may be NULL; it holds the logits until their sum is known. */
template <typename W, typename T, typename Z>
__device__ static inline void dt_cuda_attend(const dt_cuda_team<W> &t, int first, int last, const int32_t *col,
                                             const T *v, T *out, float *prob, const Z &z)
{
    float top = -INFINITY, total = 0;
    dt_cuda_share<W> sum = {};
    for (int x = first; x < last; x += W::U) {
        dt_cuda_share<W> row[W::U];
        float logit[W::U], higher = top;
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            const int j = x + u < last ? col[x + u] : -1;
            row[u] = t.get(v, j);
            logit[u] = t.is_on && j >= 0 ? z.part(x + u, j, row[u]) : 0.0f;
        }
        t.sum(logit);
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            logit[u] = x + u < last && t.is_on ? z.value(x + u, logit[u]) : -INFINITY;
            higher = fmaxf(higher, logit[u]);
            if (prob != nullptr && x + u < last && t.writes(x + u - first)) {
                prob[t.at(x + u)] = logit[u];
            }
        }
        const float keep = expf(top - higher);
        total *= keep;
        sum.scale(keep);
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            const float p = expf(logit[u] - higher);
            total += p;
            sum.add(p, row[u]);
        }
        top = higher;
    }
    const float inverse = last > first ? 1.0f / total : 0.0f; /* no neighbours: zeros */
    sum.scale(inverse);
    t.put(out, t.row, sum);
    if (prob != nullptr && t.is_on) {
        for (int x = first + t.lane; x < last; x += t.G) {
            prob[t.at(x)] = expf(prob[t.at(x)] - top) * inverse;
        }
    }
}

/* dz_ij = p_ij (dp_ij - sum_j p_ij dp_ij) slope_ij with dp_ij = dy_i.v_j; returns its sum over the edges of the target.
 * slope.part(x, j, v_j) is a lane's part of the logit, slope.of(sum) the slope, slope.keep(x, slope) and slope.get(x)
 * store and load it (by the same lane); IS_ONE: there is none. Without slopes the sum would be 0, so it is taken of
 * what they differ by from the first edge's: little is left of it, and it would drown in rounding. */
template <typename W, typename T, typename S>
__device__ static inline float dt_cuda_attend_bwd(const dt_cuda_team<W> &t, int first, int last, const int32_t *col,
                                                  const T *dy, const T *v, const float *prob, float *dz, const S &slope)
{
    const dt_cuda_share<W> up = t.get(dy, first < last ? t.row : -1);
    double mean = 0;
    float total = 0, usual = 0;
    for (int x = first; x < last; x += W::U) {
        float dp[W::U], z[W::U];
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            const int j = x + u < last ? col[x + u] : -1;
            const dt_cuda_share<W> row = t.get(v, j);
            dp[u] = up.dot(row);
            z[u] = !S::IS_ONE && t.is_on && j >= 0 ? slope.part(x + u, j, row) : 0.0f;
        }
        t.sum(dp);
        if (!S::IS_ONE) {
            t.sum(z);
        }
        usual = x == first ? slope.of(z[0]) : usual;
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            mean += x + u < last && t.is_on ? (double)prob[t.at(x + u)] * dp[u] : 0.0;
            if (x + u < last && t.writes(x + u - first)) {
                dz[t.at(x + u)] = dp[u];
                slope.keep(x + u, slope.of(z[u]));
            }
        }
    }
    for (int x = first + t.lane; x < last && t.is_on; x += t.G) {
        const float d = prob[t.at(x)] * (float)(dz[t.at(x)] - mean), s = slope.get(x);
        dz[t.at(x)] = d * s;
        total += d * (s - usual);
    }
    return t.sum(total);
}

/* What the second pass backward needs to go from a source to its edges: the target of each edge, and where to look. */
struct dt_cuda_reverse {
    dt_cuda_range *range; /* [N] per leaf, zeroed */
    int32_t *target;      /* [E] per leaf */
};

template <typename W>
__device__ static inline void dt_cuda_reverse_add(const dt_cuda_team<W> &t, const dt_cuda_heads &s, int leaf, int first,
                                                  int last, const int32_t *col, dt_cuda_reverse r)
{
    if (threadIdx.x / 32 % s.warps != 0) {
        return; /* one warp of the row */
    }
    for (int x = first + (int)threadIdx.x % 32; x < last; x += 32) {
        r.target[(int64_t)leaf * s.E + x] = t.row;
        dt_cuda_range_add(&r.range[(int64_t)leaf * s.N + col[x]], x, s.E);
    }
}

/* f(edge, target) for W::U edges that leave the row, -1 where there are no more */
template <typename W, typename F>
__device__ static inline void dt_cuda_each_edge_from(const dt_cuda_team<W> &t, const dt_cuda_heads &s, int leaf,
                                                     const int32_t *col, dt_cuda_reverse r, F f)
{
    if (t.row >= s.N) {
        return; /* the whole warp */
    }
    const int32_t *target_of = r.target + (int64_t)leaf * s.E;
    dt_cuda_each_referrer<W::U>(col, r.range[(int64_t)leaf * s.N + t.row], s.E, t.row, [&](const int(&x)[W::U]) {
        int target[W::U];
#pragma unroll
        for (int u = 0; u < W::U; u++) {
            target[u] = x[u] >= 0 ? target_of[x[u]] : -1;
        }
        f(x, target);
    });
}

/* Zeros past the live rows of a [rows,width]; all threads of the leaf's blocks take part. a may be NULL. */
__device__ static inline void dt_cuda_zero_dead_rows(float *a, int live, int rows, int width)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x, end = (int64_t)rows * width;
    for (int64_t i = (int64_t)live * width + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < end && a != nullptr;
         i += step) {
        a[i] = 0;
    }
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* GRAPH is what a kernel takes by value: rowptr, col, s, and edges, their span. Its type `element` is how rows are
 * stored. Next to it, in its namespace: values_of(g) [N,H*C], what is summed, and logit_of(g, team, leaf, row), the z
 * of dt_cuda_attend. */
template <typename W, typename GRAPH>
static __global__ void __launch_bounds__(DT_CUDA_HEADS_THREADS)
    dt_cuda_attend_rows(GRAPH g, dt_cuda_ptr<typename GRAPH::element> out, dt_cuda_ptr<float> prob)
{
    const dt_cuda_team<W> t(g.s);
    const int leaf = (int)blockIdx.y;
    const int32_t *rowptr = g.rowptr.at(leaf);
    dt_cuda_zero_dead_rows(prob.at(leaf), g.edges.extent(leaf), g.s.E, g.s.H);
    if (t.row < g.s.N) {
        const int first = rowptr[t.row], last = rowptr[t.row + 1];
        const auto z = logit_of(g, t, leaf, first < last ? t.row : -1);
        dt_cuda_attend(t, first, last, g.col.at(leaf), values_of(g).at(leaf), out.at(leaf), prob.at(leaf), z);
    }
}

template <typename GRAPH>
static inline dt_status dt_cuda_attend_run(const dt_device_args *a, const GRAPH &g, bool is_wide)
{
    if (g.s.N == 0) {
        return DT_OK;
    }
    return dt_cuda_by_width(g.s, is_wide, [&](auto width) -> dt_status {
        cudaLaunchConfig_t config = {};
        config.gridDim = dt_cuda_heads_grid(a, g.s);
        config.blockDim = dim3(dt_cuda_heads_threads(g.s));
        config.stream = dt_cuda_stream(a);
        DT_CUDA(cudaLaunchKernelEx(&config, dt_cuda_attend_rows<decltype(width), GRAPH>, g,
                                   dt_cuda_dst<typename GRAPH::element>(a, 0), dt_cuda_dst<float>(a, 1)));
        return DT_OK;
    });
}

#endif
