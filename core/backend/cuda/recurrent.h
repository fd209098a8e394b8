/* SPDX-License-Identifier: Apache-2.0
 *
 * The product inside one time step of LSTM and GRU, for a tile of 32 sequences by 32 units: the kernel of a step goes
 * on from it in registers, so that neither the products nor the state pass through memory between product and cell.
 * Blocks of DT_CUDA_STEP_THREADS, grid (units / 32, sequences / 32, leaves) rounded up.
 *
 * Along k, strips of 16 are fetched into registers while the strip before is multiplied out of shared memory (two
 * buffers, one barrier a strip). A thread has 4 sequences and 2 units; in a warp 16 threads lie along the units. Rows
 * of shared memory are padded so that pieces of four floats meet no bank twice. Sums run over k in order. See cuda.h.
 */
#ifndef DTRAIN_CORE_BACKEND_CUDA_RECURRENT_H
#define DTRAIN_CORE_BACKEND_CUDA_RECURRENT_H

#include "backend/cuda/pack.h"
#include "backend/cuda/product.h"

/* ---- products by cuBLASLt (recurrent.cu) ------------------------------------------------------------------------- */

/* What a prepared call keeps: the product of one time step, where that is not part of the step's own kernel, and the
 * one for dwh over all steps. NULL: not needed. */
struct dt_cuda_recurrent {
    dt_cuda_product *step, *sum;
};

struct dt_cuda_sequence { /* [T,S,columns], leaf after leaf */
    const float *data;
    int64_t leaf_stride;
};

/* Tensor cores multiply faster than the kernel of a step, which is for f32 alone. */
static inline bool dt_cuda_steps_by_product(const dt_device_args *a)
{
    return a->math != DT_DEVICE_MATH_F32;
}

void dt_cuda_recurrent_destroy(void *state);
/* z [S,M] = h_t wh^T   wh [M,H] */
dt_status dt_cuda_recurrent_forward(const dt_device_args *a, dt_cuda_sequence h, const dt_device_view *wh, int64_t S,
                                    float *z, void **state_p);
/* dh [S,H] = dz_t wh, where dh is given; dwh [M,H] = sum over t > 0 of dz_t^T h_{t-1}, where dwh is wanted */
dt_status dt_cuda_recurrent_backward(const dt_device_args *a, dt_cuda_sequence dz, const dt_device_view *h,
                                     const dt_device_view *wh, const dt_device_view *dwh, float *dh, void **state_p);
/* The step's product as it was prepared: x is h_t or dz_t, out z or dh. */
dt_status dt_cuda_recurrent_step(const dt_device_args *a, const float *x, const dt_device_view *wh, float *out);
/* dwh, output 1; zero where there is nothing to sum. */
dt_status dt_cuda_recurrent_sum(const dt_device_args *a, dt_cuda_sequence dz, const dt_device_view *h);

/* ---- products inside the kernel of a step ------------------------------------------------------------------------ */

enum {
    DT_CUDA_STEP_TILE = 32,
    DT_CUDA_STEP_THREADS = 128,
    DT_CUDA_STEP_ROWS = 4, /* of a thread */
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

/* sum[q][i][c] += sum_k x[row i, k] w[q H + unit c, k]   for G gates
 * x [rows,H]: sequences of the tile, `rows` of them live   w [G H, H]   unit c: first_unit + lane + 16 c */
template <int G, int V>
__device__ static inline void dt_cuda_gate_products(const float *x, int rows, const float *w, int first_unit, int H,
                                                    float (*sum)[DT_CUDA_STEP_ROWS][DT_CUDA_STEP_COLUMNS])
{
    enum { TILE = DT_CUDA_STEP_TILE };
    __shared__ __align__(16) float x_tile[2][TILE][DT_CUDA_STRIP_PITCH];
    __shared__ __align__(16) float w_tile[2][G * TILE][DT_CUDA_STRIP_PITCH];
    const auto x_row = [&](int r) { return r < rows ? x + (int64_t)r * H : nullptr; };
    const auto w_row = [&](int r) {
        const int unit = first_unit + r % TILE;
        return unit < H ? w + ((int64_t)(r / TILE) * H + unit) * H : nullptr;
    };
    dt_cuda_strip_rows<V, TILE> x_next;
    dt_cuda_strip_rows<V, G * TILE> w_next;
    x_next.fetch(0, H, x_row);
    w_next.fetch(0, H, w_row);
    int buffer = 0;
    for (int first = 0; first < H; first += DT_CUDA_STRIP, buffer ^= 1) {
        x_next.keep(x_tile[buffer]);
        w_next.keep(w_tile[buffer]);
        __syncthreads();
        if (first + DT_CUDA_STRIP < H) {
            x_next.fetch(first + DT_CUDA_STRIP, H, x_row);
            w_next.fetch(first + DT_CUDA_STRIP, H, w_row);
        }
#pragma unroll
        for (int k = 0; k < DT_CUDA_STRIP; k += 4) {
            dt_cuda_pack<4> a[DT_CUDA_STEP_ROWS];
#pragma unroll
            for (int i = 0; i < DT_CUDA_STEP_ROWS; i++) {
                a[i] = dt_cuda_load<4>(&x_tile[buffer][dt_cuda_step_row(i)][k]);
            }
#pragma unroll
            for (int q = 0; q < G; q++) {
#pragma unroll
                for (int c = 0; c < DT_CUDA_STEP_COLUMNS; c++) {
                    const dt_cuda_pack<4> b =
                        dt_cuda_load<4>(&w_tile[buffer][q * TILE + dt_cuda_step_lane() + 16 * c][k]);
#pragma unroll
                    for (int n = 0; n < 4 * DT_CUDA_STEP_ROWS; n++) {
                        sum[q][n / 4][c] += a[n / 4].x[n % 4] * b.x[n % 4];
                    }
                }
            }
        }
    }
}

/* sum[i][c] += sum_k x[row i, k] w[k, unit c]   x [rows,K]   w [K,H]   unit c: first_unit + 2 lane + c */
template <int V>
__device__ static inline void dt_cuda_state_product(const float *x, int rows, const float *w, int first_unit, int K,
                                                    int H, float (*sum)[DT_CUDA_STEP_COLUMNS])
{
    enum { TILE = DT_CUDA_STEP_TILE, EACH = TILE * DT_CUDA_STRIP / DT_CUDA_STEP_THREADS };
    __shared__ __align__(16) float x_tile[2][TILE][DT_CUDA_STRIP_PITCH];
    __shared__ __align__(16) float w_tile[2][DT_CUDA_STRIP][TILE];
    const auto x_row = [&](int r) { return r < rows ? x + (int64_t)r * K : nullptr; };
    dt_cuda_strip_rows<V, TILE> x_next;
    dt_cuda_pack<V> w_next[EACH / V];
    const auto fetch = [&](int first) {
        x_next.fetch(first, K, x_row);
#pragma unroll
        for (int i = 0; i < EACH / V; i++) {
            const int at = (i * DT_CUDA_STEP_THREADS + (int)threadIdx.x) * V;
            const int k = first + at / TILE, unit = first_unit + at % TILE;
            w_next[i] = k < K && unit < H ? dt_cuda_load<V>(w + (int64_t)k * H + unit) : dt_cuda_pack<V>{};
        }
    };
    fetch(0);
    int buffer = 0;
    for (int first = 0; first < K; first += DT_CUDA_STRIP, buffer ^= 1) {
        x_next.keep(x_tile[buffer]);
#pragma unroll
        for (int i = 0; i < EACH / V; i++) {
            const int at = (i * DT_CUDA_STEP_THREADS + (int)threadIdx.x) * V;
            dt_cuda_store<V>(&w_tile[buffer][at / TILE][at % TILE], w_next[i]);
        }
        __syncthreads();
        if (first + DT_CUDA_STRIP < K) {
            fetch(first + DT_CUDA_STRIP);
        }
#pragma unroll
        for (int k = 0; k < DT_CUDA_STRIP; k += 4) {
            dt_cuda_pack<4> a[DT_CUDA_STEP_ROWS];
#pragma unroll
            for (int i = 0; i < DT_CUDA_STEP_ROWS; i++) {
                a[i] = dt_cuda_load<4>(&x_tile[buffer][dt_cuda_step_row(i)][k]);
            }
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const dt_cuda_pack<2> b = dt_cuda_load<2>(&w_tile[buffer][k + n][2 * dt_cuda_step_lane()]);
#pragma unroll
                for (int i = 0; i < DT_CUDA_STEP_ROWS; i++) {
                    sum[i][0] += a[i].x[n] * b.x[0];
                    sum[i][1] += a[i].x[n] * b.x[1];
                }
            }
        }
    }
}

#endif
