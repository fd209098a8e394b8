/* SPDX-License-Identifier: Apache-2.0
 *
 * The time steps of LSTM and GRU, whose files have the cells. The product inside a step is made for a tile of 32
 * sequences by 32 units, and the kernel of the step continues with it in registers, so that neither the products nor
 * the state pass through memory between product and cell.
 * Blocks of DT_CUDA_STEP_THREADS, grid (units / 32, sequences / 32, leaves) rounded up.
 *
 * Along k, strips of 16 are fetched into registers while the strip before is multiplied out of shared memory (two
 * buffers, one barrier a strip). A thread has 4 sequences and 2 units; in a warp 16 threads lie along the units. Rows
 * of shared memory are padded so that pieces of four floats meet no bank twice. Sums run over k in order. See cuda.h.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_RECURRENT_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_RECURRENT_H

#include "engine/backend/cuda/stored.h"
#include "engine/backend/cuda/product.h"

#include <type_traits>
#include <utility>

/* v [T,S,D] as rows, with the extent counted in sequences, also where S is not ragged. */
static inline dt_cuda_span dt_cuda_sequences(const dt_device_args *a, const dt_device_view *v)
{
    dt_cuda_span s = dt_cuda_rows(a, v, 1);
    s.cap = (int32_t)v->dim[1];
    return s;
}

/* ---- products by cuBLASLt (recurrent.cu) ------------------------------------------------------------------------- */

/* What a prepared call keeps: the product of one time step, where that is not part of the step's own kernel, and the
 * one for dwh over all steps. NULL: not needed. */
struct dt_cuda_recurrent {
    dt_cuda_product *step, *sum;
};

struct dt_cuda_sequence { /* [T,S,columns], leaf after leaf */
    const void *data;
    int64_t leaf_stride;
    int32_t dtype; /* that of h and wh */
};

/* Element i of the array at p. */
static inline const void *dt_cuda_element(const void *p, int64_t i, int32_t dtype)
{
    return (const char *)p + i * (int64_t)dt_cuda_element_bytes(dtype);
}

/* Tensor cores multiply faster than the kernel of a step, which is for f32 alone. */
static inline bool dt_cuda_steps_by_product(const dt_device_args *a)
{
    return a->math != DT_DEVICE_MATH_F32;
}

void dt_cuda_recurrent_destroy(void *state);
/* z = h_t wh^T   wh [M,H], input 1   h [T,S,H], output 0   z: dt_cuda_step_products */
dt_status dt_cuda_recurrent_forward(const dt_device_args *a, void **state_p);
/* dh [S,H] = dz_t wh, where dh is given; dwh [M,H] = sum over t > 0 of dz_t^T h_{t-1}, where dwh is wanted */
dt_status dt_cuda_recurrent_backward(const dt_device_args *a, dt_cuda_sequence dz, const dt_device_view *h,
                                     const dt_device_view *wh, const dt_device_view *dwh, float *dh, void **state_p);
/* The step's product as it was prepared: x is h_t or dz_t, out z or dh. */
dt_status dt_cuda_recurrent_step(const dt_device_args *a, const void *x, const dt_device_view *wh, float *out);
/* dwh, output 1; zero where there is nothing to sum. */
dt_status dt_cuda_recurrent_weight_gradient(const dt_device_args *a, dt_cuda_sequence dz, const dt_device_view *h);

/* ---- products inside the kernel of a step ------------------------------------------------------------------------ */

enum {
    DT_CUDA_STEP_TILE = 32,
    DT_CUDA_STEP_THREADS = 128,
    DT_CUDA_CELL_THREADS = 256, /* of a block that has cells alone */
    DT_CUDA_STEP_ROWS = 4,      /* of a thread */
    DT_CUDA_STEP_COLUMNS = 2,
    DT_CUDA_STRIP = 16,
    DT_CUDA_STRIP_PITCH = DT_CUDA_STRIP + 4
};

static inline dim3 dt_cuda_step_grid(int64_t S, int64_t H, uint32_t leaves)
{
    return dim3(dt_cuda_blocks(H, DT_CUDA_STEP_TILE), dt_cuda_blocks(S, DT_CUDA_STEP_TILE), leaves);
}

/* Sequence i of this thread in its tile, and where this thread is along the units. */
__device__ static inline int dt_cuda_step_row(int i)
{
    return (int)threadIdx.x / 16 * DT_CUDA_STEP_ROWS + i;
}

__device__ static inline int dt_cuda_step_lane(void)
{
    return (int)threadIdx.x % 16;
}

/* N rows of a strip, spread over the registers of the block in pieces of V along the row. */
template <int V, int N> struct dt_cuda_strip_rows {
    enum { EACH = N * DT_CUDA_STRIP / DT_CUDA_STEP_THREADS };
    float x[EACH];

    /* row(r): where row r begins, NULL for a row of zeros; columns from K on are zero. V divides K. */
    template <typename F> __device__ void fetch(int first, int K, F row)
    {
#pragma unroll
        for (int i = 0; i < EACH; i += V) {
            const int at = (i * DT_CUDA_STEP_THREADS + V * (int)threadIdx.x), k = first + at % DT_CUDA_STRIP;
            const float *from = row(at / DT_CUDA_STRIP);
            const dt_cuda_pack<V> p = from != nullptr && k < K ? dt_cuda_load<V>(from + k) : dt_cuda_pack<V>{};
#pragma unroll
            for (int v = 0; v < V; v++) {
                x[i + v] = p.x[v];
            }
        }
    }

    __device__ void keep(float (*tile)[DT_CUDA_STRIP_PITCH]) const
    {
#pragma unroll
        for (int i = 0; i < EACH; i += V) {
            const int at = (i * DT_CUDA_STEP_THREADS + V * (int)threadIdx.x);
            dt_cuda_pack<V> p;
#pragma unroll
            for (int v = 0; v < V; v++) {
                p.x[v] = x[i + v];
            }
            dt_cuda_store<V>(&tile[at / DT_CUDA_STRIP][at % DT_CUDA_STRIP], p);
        }
    }
};

/* Strips of x [rows,K] and of what it is multiplied with, along K. fetch(first) brings a strip of the latter into
 * registers, keep(buffer) puts it into shared memory, multiply(buffer, k, a) takes columns k to k + 3 of a strip, a[i]
 * those of x in row i of this thread. */
template <int V, typename FETCH, typename KEEP, typename MULTIPLY>
__device__ static inline void dt_cuda_each_strip(const float *x, int rows, int K, FETCH fetch, KEEP keep,
                                                 MULTIPLY multiply)
{
    __shared__ __align__(16) float x_tile[2][DT_CUDA_STEP_TILE][DT_CUDA_STRIP_PITCH];
    const auto x_row = [&](int r) { return r < rows ? x + (int64_t)r * K : nullptr; };
    dt_cuda_strip_rows<V, DT_CUDA_STEP_TILE> x_next;
    x_next.fetch(0, K, x_row);
    fetch(0);
    int buffer = 0;
    for (int first = 0; first < K; first += DT_CUDA_STRIP, buffer ^= 1) {
        x_next.keep(x_tile[buffer]);
        keep(buffer);
        __syncthreads();
        if (first + DT_CUDA_STRIP < K) {
            x_next.fetch(first + DT_CUDA_STRIP, K, x_row);
            fetch(first + DT_CUDA_STRIP);
        }
#pragma unroll
        for (int k = 0; k < DT_CUDA_STRIP; k += 4) {
            dt_cuda_pack<4> a[DT_CUDA_STEP_ROWS];
#pragma unroll
            for (int i = 0; i < DT_CUDA_STEP_ROWS; i++) {
                a[i] = dt_cuda_load<4>(&x_tile[buffer][dt_cuda_step_row(i)][k]);
            }
            multiply(buffer, k, a);
        }
    }
}

/* sum[q][i][c] += sum_k x[row i, k] w[q H + unit c, k]   for G gates
 * x [rows,H]: sequences of the tile, `rows` of them live   w [G H, H]   unit c: first_unit + lane + 16 c */
template <int G, int V>
__device__ static inline void dt_cuda_gate_products(const float *x, int rows, const float *w, int first_unit, int H,
                                                    float (*sum)[DT_CUDA_STEP_ROWS][DT_CUDA_STEP_COLUMNS])
{
    enum { TILE = DT_CUDA_STEP_TILE };
    __shared__ __align__(16) float w_tile[2][G * TILE][DT_CUDA_STRIP_PITCH];
    const auto w_row = [&](int r) {
        const int unit = first_unit + r % TILE;
        return unit < H ? w + ((int64_t)(r / TILE) * H + unit) * H : nullptr;
    };
    dt_cuda_strip_rows<V, G * TILE> w_next;
    const auto fetch = [&](int first) { w_next.fetch(first, H, w_row); };
    const auto keep = [&](int buffer) { w_next.keep(w_tile[buffer]); };
    dt_cuda_each_strip<V>(x, rows, H, fetch, keep, [&](int buffer, int k, const dt_cuda_pack<4> *a) {
#pragma unroll
        for (int q = 0; q < G; q++) {
#pragma unroll
            for (int c = 0; c < DT_CUDA_STEP_COLUMNS; c++) {
                const dt_cuda_pack<4> b = dt_cuda_load<4>(&w_tile[buffer][q * TILE + dt_cuda_step_lane() + 16 * c][k]);
#pragma unroll
                for (int n = 0; n < 4 * DT_CUDA_STEP_ROWS; n++) {
                    sum[q][n / 4][c] += a[n / 4].x[n % 4] * b.x[n % 4];
                }
            }
        }
    });
}

/* sum[i][c] += sum_k x[row i, k] w[k, unit c]   x [rows,K]   w [K,H]   unit c: first_unit + 2 lane + c */
template <int V>
__device__ static inline void dt_cuda_state_product(const float *x, int rows, const float *w, int first_unit, int K,
                                                    int H, float (*sum)[DT_CUDA_STEP_COLUMNS])
{
    enum { TILE = DT_CUDA_STEP_TILE, EACH = TILE * DT_CUDA_STRIP / DT_CUDA_STEP_THREADS };
    __shared__ __align__(16) float w_tile[2][DT_CUDA_STRIP][TILE];
    dt_cuda_pack<V> w_next[EACH / V];
    const auto fetch = [&](int first) {
#pragma unroll
        for (int i = 0; i < EACH / V; i++) {
            const int at = (i * DT_CUDA_STEP_THREADS + (int)threadIdx.x) * V;
            const int k = first + at / TILE, unit = first_unit + at % TILE;
            w_next[i] = k < K && unit < H ? dt_cuda_load<V>(w + (int64_t)k * H + unit) : dt_cuda_pack<V>{};
        }
    };
    const auto keep = [&](int buffer) {
#pragma unroll
        for (int i = 0; i < EACH / V; i++) {
            const int at = (i * DT_CUDA_STEP_THREADS + (int)threadIdx.x) * V;
            dt_cuda_store<V>(&w_tile[buffer][at / TILE][at % TILE], w_next[i]);
        }
    };
    dt_cuda_each_strip<V>(x, rows, K, fetch, keep, [&](int buffer, int k, const dt_cuda_pack<4> *a) {
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const dt_cuda_pack<2> b = dt_cuda_load<2>(&w_tile[buffer][k + n][2 * dt_cuda_step_lane()]);
#pragma unroll
            for (int i = 0; i < DT_CUDA_STEP_ROWS; i++) {
                sum[i][0] += a[i].x[n] * b.x[0];
                sum[i][1] += a[i].x[n] * b.x[1];
            }
        }
    });
}

/* ---- steps of any cell ------------------------------------------------------------------------------------------- */

/* LSTM and GRU differ in their cells. F and B are what the kernels of a step take by value, forward and backward; G is
 * the number of gates. element: how h, the gates, dz and wh are stored; f32 where products are inside the kernel.
 * Next to the type, in its namespace:
 *   F: wh [G H, H], h [T,S,H], rows, S, H    cell(f, leaf, t, s, j, is_live, u) of sequence s, unit j; u[G]: products
 *      of the state before
 *   B: wh, dz [T,S,G H] (what goes through wh), rows, T, S, H    cell(b, leaf, t, s, j, is_live, dh_after) with what
 *      comes through wh from the step after */

/* cell(), given what gate_products summed for row i, column c of this thread. A pack and not a loop: nvcc then makes
 * code of its own for the first step, which has no products. */
template <typename F, int G, int... Q>
__device__ static inline void dt_cuda_cell_of(const F &f, int leaf, int t, int s, int j, bool is_live,
                                              const float (&sum)[G][DT_CUDA_STEP_ROWS][DT_CUDA_STEP_COLUMNS], int i,
                                              int c, std::integer_sequence<int, Q...>)
{
    const float u[G] = {sum[Q][i][c]...};
    cell(f, leaf, t, s, j, is_live, u);
}

template <int G, int V, typename F>
static __global__ void __launch_bounds__(DT_CUDA_STEP_THREADS) dt_cuda_step_forward(F f, int t)
{
    const int leaf = (int)blockIdx.z, extent = f.rows.extent(leaf);
    const int first = (int)blockIdx.y * DT_CUDA_STEP_TILE, unit = (int)blockIdx.x * DT_CUDA_STEP_TILE;
    float sum[G][DT_CUDA_STEP_ROWS][DT_CUDA_STEP_COLUMNS] = {};
    if (t > 0 && first < extent) { /* the same for the whole block */
        const float *h_before = f.h.at(leaf) + ((int64_t)(t - 1) * f.S + first) * f.H;
        dt_cuda_gate_products<G, V>(h_before, extent - first, f.wh.at(leaf), unit, f.H, sum);
    }
#pragma unroll
    for (int i = 0; i < DT_CUDA_STEP_ROWS; i++) {
#pragma unroll
        for (int c = 0; c < DT_CUDA_STEP_COLUMNS; c++) {
            const int s = first + dt_cuda_step_row(i), j = unit + dt_cuda_step_lane() + 16 * c;
            if (s < f.S && j < f.H) {
                dt_cuda_cell_of(f, leaf, t, s, j, s < extent, sum, i, c, std::make_integer_sequence<int, G>());
            }
        }
    }
}

/* The cells of step t alone, after the product z [S,G H]. */
template <int G, typename F> static __global__ void dt_cuda_cells_forward(F f, dt_cuda_ptr<float> z, int t)
{
    const int at = (int)(blockIdx.x * DT_CUDA_CELL_THREADS + threadIdx.x), s = at / f.H, j = at % f.H;
    const int leaf = (int)blockIdx.y;
    if (s < f.S) {
        const float *from = z.at(leaf) + (int64_t)s * G * f.H + j;
        float u[G] = {};
        for (int q = 0; q < G && t > 0; q++) {
            u[q] = from[q * f.H];
        }
        cell(f, leaf, t, s, j, s < f.rows.extent(leaf), u);
    }
}

template <int G, int V, typename B>
static __global__ void __launch_bounds__(DT_CUDA_STEP_THREADS) dt_cuda_step_backward(B b, int t)
{
    const int leaf = (int)blockIdx.z, extent = b.rows.extent(leaf);
    const int first = (int)blockIdx.y * DT_CUDA_STEP_TILE, unit = (int)blockIdx.x * DT_CUDA_STEP_TILE;
    float dh[DT_CUDA_STEP_ROWS][DT_CUDA_STEP_COLUMNS] = {};
    if (t < b.T - 1 && first < extent) {
        const float *dz = b.dz.at(leaf) + ((int64_t)(t + 1) * b.S + first) * G * b.H;
        dt_cuda_state_product<V>(dz, extent - first, b.wh.at(leaf), unit, G * b.H, b.H, dh);
    }
#pragma unroll
    for (int i = 0; i < DT_CUDA_STEP_ROWS; i++) {
#pragma unroll
        for (int c = 0; c < DT_CUDA_STEP_COLUMNS; c++) {
            const int s = first + dt_cuda_step_row(i), j = unit + 2 * dt_cuda_step_lane() + c;
            if (s < b.S && j < b.H) {
                cell(b, leaf, t, s, j, s < extent, dh[i][c]);
            }
        }
    }
}

/* The cells of step t alone, after the product dh [S,H]. */
template <typename B> static __global__ void dt_cuda_cells_backward(B b, dt_cuda_ptr<float> dh, int t)
{
    const int at = (int)(blockIdx.x * DT_CUDA_CELL_THREADS + threadIdx.x), s = at / b.H, leaf = (int)blockIdx.y;
    if (s < b.S) {
        cell(b, leaf, t, s, at % b.H, s < b.rows.extent(leaf), t < b.T - 1 ? dh.at(leaf)[at] : 0.0f);
    }
}

template <typename... P, typename... A>
static inline dt_status dt_cuda_step_launch(const dt_device_args *a, void (*kernel)(P...), dim3 grid, int threads,
                                            const A &...args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)threads);
    config.stream = dt_cuda_stream(a);
    DT_CUDA(cudaLaunchKernelEx(&config, kernel, args...));
    return DT_OK;
}

static inline dim3 dt_cuda_cell_grid(int64_t S, int64_t H, uint32_t leaves)
{
    return dim3(dt_cuda_blocks(S * H, DT_CUDA_CELL_THREADS), leaves);
}

/* In scratch, where steps go by product: the room of the product, then z [S,M], M the rows of wh, input 1. */
static inline dt_cuda_ptr<float> dt_cuda_step_products(const dt_device_args *a)
{
    return {(float *)((char *)a->scratch + dt_cuda_product_scratch(a)), a->in[0].dim[1] * a->in[1].dim[0]};
}

static inline size_t dt_cuda_step_products_scratch(const dt_device_args *a)
{
    return dt_cuda_product_scratch(a) + dt_cuda_aligned_bytes(a->leaves * a->in[0].dim[1] * a->in[1].dim[0]);
}

/* Steps 0 to T - 1 with their products inside. */
template <int G, typename F> static inline dt_status dt_cuda_steps_inside(const dt_device_args *a, const F &f)
{
    if constexpr (std::is_same<typename F::element, float>::value) {
        const bool is_wide = f.H % 4 == 0 && dt_cuda_is_vectorisable(&a->in[1]) && dt_cuda_is_vectorisable(&a->out[0]);
        const auto step = is_wide ? dt_cuda_step_forward<G, 4, F> : dt_cuda_step_forward<G, 1, F>;
        const dim3 grid = dt_cuda_step_grid(f.S, f.H, a->leaves);
        for (int t = 0; t < (int)a->in[0].dim[0] && f.S > 0; t++) {
            DT_CUDA_TRY(dt_cuda_step_launch(a, step, grid, DT_CUDA_STEP_THREADS, f, t));
        }
        return DT_OK;
    } else {
        return DT_CUDA_FAIL(DT_EINVAL, "a sequence stored in half, but products in f32");
    }
}

/* Steps 0 to T - 1; by_product: dt_cuda_recurrent_forward was prepared. */
template <int G, typename F>
static inline dt_status dt_cuda_steps_forward(const dt_device_args *a, const F &f, bool by_product)
{
    const int T = f.S > 0 ? (int)a->in[0].dim[0] : 0;
    if (!by_product) {
        return dt_cuda_steps_inside<G>(a, f);
    }
    const dim3 cells = dt_cuda_cell_grid(f.S, f.H, a->leaves);
    const dt_cuda_ptr<float> z = dt_cuda_step_products(a);
    for (int t = 0; t < T; t++) {
        if (t > 0) {
            DT_CUDA_TRY(dt_cuda_recurrent_step(a, f.h.data + (int64_t)(t - 1) * f.S * f.H, &a->in[1], z.data));
        }
        DT_CUDA_TRY(dt_cuda_step_launch(a, dt_cuda_cells_forward<G, F>, cells, DT_CUDA_CELL_THREADS, f, z, t));
    }
    return DT_OK;
}

/* Steps T - 1 to 0 with their products inside. */
template <int G, typename B>
static inline dt_status dt_cuda_steps_back_inside(const dt_device_args *a, const B &b, const dt_device_view *wh)
{
    if constexpr (std::is_same<typename B::element, float>::value) {
        const bool is_wide = b.H % 4 == 0 && dt_cuda_is_vectorisable(wh) && (uintptr_t)b.dz.data % 16 == 0;
        const auto step = is_wide ? dt_cuda_step_backward<G, 4, B> : dt_cuda_step_backward<G, 1, B>;
        const dim3 grid = dt_cuda_step_grid(b.S, b.H, a->leaves);
        for (int t = b.T - 1; t >= 0 && b.S > 0; t--) {
            DT_CUDA_TRY(dt_cuda_step_launch(a, step, grid, DT_CUDA_STEP_THREADS, b, t));
        }
        return DT_OK;
    } else {
        return DT_CUDA_FAIL(DT_EINVAL, "a sequence stored in half, but products in f32");
    }
}

/* Steps T - 1 to 0; by_product: dt_cuda_recurrent_backward was prepared with this dh [S,H]. */
template <int G, typename B>
static inline dt_status dt_cuda_steps_backward(const dt_device_args *a, const B &b, const dt_device_view *wh,
                                               dt_cuda_ptr<float> dh, bool by_product)
{
    if (!by_product) {
        return dt_cuda_steps_back_inside<G>(a, b, wh);
    }
    const dim3 cells = dt_cuda_cell_grid(b.S, b.H, a->leaves);
    for (int t = b.T - 1; t >= 0 && b.S > 0; t--) {
        if (t < b.T - 1) {
            const void *after = b.dz.data + (int64_t)(t + 1) * b.S * G * b.H;
            DT_CUDA_TRY(dt_cuda_recurrent_step(a, after, wh, dh.data));
        }
        DT_CUDA_TRY(dt_cuda_step_launch(a, dt_cuda_cells_backward<B>, cells, DT_CUDA_CELL_THREADS, b, dh, t));
    }
    return DT_OK;
}

#endif
