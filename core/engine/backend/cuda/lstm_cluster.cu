/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM over a whole sequence in one launch, for GPUs with clusters of blocks (compute capability 9.0 and later) and
 * products in 16 bits. A cluster has 32 sequences, each of its blocks 32 of the units: its rows of W_h stay in shared
 * memory from the first step to the last, c and h in registers, and after every step each block writes its part of the
 * new state, 16 bits a value, into the shared memory of all blocks. Sums are carried in f32 (tensor cores), and so is
 * the state; what is stored is f32 or of the products' type. See lstm.h; engine/backend/ref/lstm.c has the formulas.
 */
#include "engine/backend/cuda/lstm.h"
#include "engine/backend/cuda/stored.h"

#include <cooperative_groups.h>
#include <mma.h>
#include <type_traits>

namespace
{

enum { GATES = DT_CUDA_LSTM_GATES, TILE = 32, THREADS = 256, MAX_H = 256, SKEW = 8, OUT_PITCH = TILE + 4 };
/* A thread has two neighbouring units of sequences i and i + 16 of the tile. */
enum { MINE = 2, HALF = TILE / 2 };

template <typename T> struct alignas(4) pair {
    T x, y;
};

template <typename T> __device__ pair<T> narrow_pair(float x, float y)
{
    pair<T> p;
    dt_cuda_put(&p.x, x);
    dt_cuda_put(&p.y, y);
    return p;
}

/* 16 x 16 tile: sum over k of a[.,k] b[k,.]; b as it is, or stored by columns */
template <typename T, typename B_LAYOUT>
__device__ void multiply_tile(const T *a, int a_pitch, const T *b, int b_pitch, int b_step, int K, float *out)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, T, row_major> left;
    fragment<matrix_b, 16, 16, 16, T, B_LAYOUT> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    for (int k = 0; k < K; k += 16) {
        load_matrix_sync(left, a + k, (unsigned)a_pitch);
        load_matrix_sync(right, b + (int64_t)k * b_step, (unsigned)b_pitch);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(out, sum, OUT_PITCH, mem_row_major);
#endif
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

template <typename T> struct forward_room { /* in shared memory, in this order */
    T *w;                                   /* [4 TILE, H + SKEW] rows of W_h of this block's units */
    T *h;                                   /* [2, TILE, H + SKEW] state before and after, of all units */
    float *out;                             /* [4, TILE, OUT_PITCH] products */
    __device__ forward_room(unsigned char *memory, int H)
    {
        w = reinterpret_cast<T *>(memory);
        h = w + GATES * TILE * (H + SKEW);
        out = reinterpret_cast<float *>(h + 2 * TILE * (H + SKEW));
    }
};

size_t forward_bytes(int H)
{
    return (size_t)(GATES + 2) * TILE * (size_t)(H + SKEW) * 2 + GATES * TILE * OUT_PITCH * sizeof(float);
}

/* T: of the products, E: of what is stored */
template <typename T, typename E> __global__ void __launch_bounds__(THREADS) whole_forward(dt_cuda_lstm_forward<E> f)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    DT_CUDA_SHARED(unsigned char, memory);
    const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const int H = f.H, pitch = H + SKEW, leaf = (int)blockIdx.z, extent = f.rows.extent(leaf);
    const int first = (int)blockIdx.y * TILE, unit = (int)cluster.block_rank() * TILE;
    const int n_blocks = (int)cluster.num_blocks(), warp = (int)threadIdx.x / 32;
    const int i = (int)threadIdx.x / HALF, j = 2 * ((int)threadIdx.x % HALF); /* in the tile */
    const forward_room<T> room(memory, H);
    const float *present = f.present.at(leaf);
    const E *wh = f.wh.at(leaf), *xw = f.xw.at(leaf);
    E *gates = f.gates.at(leaf), *h_out = f.h.at(leaf);
    float *c_out = f.c.at(leaf);
    for (int e = 2 * (int)threadIdx.x; e < GATES * TILE * H; e += 2 * THREADS) {
        const int r = e / H, k = e % H;
        const dt_cuda_pack<2> p = dt_cuda_load<2>(wh + ((int64_t)(r / TILE) * H + unit + r % TILE) * H + k);
        *reinterpret_cast<pair<T> *>(room.w + r * pitch + k) = narrow_pair<T>(p.x[0], p.x[1]);
    }
    float c[MINE][2] = {}, h[MINE][2] = {};
    cluster.sync(); /* all blocks are there before one writes to them */
    for (int t = 0; t < f.T; t++) {
        /* what the cells need from memory, on its way while the products are made */
        dt_cuda_pack<2> x[MINE][GATES];
        bool is_present[MINE];
#    pragma unroll
        for (int n = 0; n < MINE; n++) {
            const int s = first + i + HALF * n;
            const int64_t row = (int64_t)t * f.S + s;
            is_present[n] = s < extent && (present == nullptr || present[row] != 0);
#    pragma unroll
            for (int q = 0; q < GATES; q++) {
                x[n][q] = is_present[n] ? dt_cuda_load<2>(xw + (row * GATES + q) * H + unit + j) : dt_cuda_pack<2>{};
            }
        }
        if (t > 0) {
            /* eight warps: half of the sequences, half of the units, two gates each */
            const int r = 16 * (warp & 1), u = 16 * (warp >> 1 & 1);
            const T *state = room.h + ((t & 1) * TILE + r) * pitch;
            for (int q = 2 * (warp >> 2); q < 2 * (warp >> 2) + 2; q++) {
                multiply_tile<T, nvcuda::wmma::col_major>(state, pitch, room.w + (q * TILE + u) * pitch, pitch, 1, H,
                                                          room.out + (q * TILE + r) * OUT_PITCH + u);
            }
        }
        __syncthreads();
#    pragma unroll
        for (int n = 0; n < MINE; n++) {
            const int s = first + i + HALF * n;
            const int64_t row = (int64_t)t * f.S + s;
            float gate[2][GATES] = {};
#    pragma unroll
            for (int k = 0; k < 2; k++) {
                if (is_present[n]) {
#    pragma unroll
                    for (int q = 0; q < GATES; q++) {
                        const float product = t > 0 ? room.out[(q * TILE + i + HALF * n) * OUT_PITCH + j + k] : 0.0f;
                        gate[k][q] = x[n][q].x[k] + product;
                    }
                    dt_cuda_lstm_cell(gate[k], c[n][k], &c[n][k], &h[n][k]);
                }
            }
            if (s < f.S) {
                dt_cuda_store<2>(h_out + row * H + unit + j, {{h[n][0], h[n][1]}});
                if (gates != nullptr) {
                    for (int q = 0; q < GATES; q++) {
                        dt_cuda_store<2>(gates + (row * GATES + q) * H + unit + j, {{gate[0][q], gate[1][q]}});
                    }
                }
                if (c_out != nullptr) {
                    dt_cuda_store<2>(c_out + row * H + unit + j, {{c[n][0], c[n][1]}});
                }
            }
            T *next = room.h + (((t + 1) & 1) * TILE + i + HALF * n) * pitch + unit + j;
            for (int b = 0; b < n_blocks && t + 1 < f.T; b++) {
                *reinterpret_cast<pair<T> *>(cluster.map_shared_rank(next, b)) = narrow_pair<T>(h[n][0], h[n][1]);
            }
        }
        cluster.sync();
    }
#else
    __trap(); /* dt_cuda_lstm_fits_cluster checks what was compiled */
#endif
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

template <typename T> struct backward_room { /* in shared memory, in this order */
    T *w;                                    /* [4 H, TILE + SKEW] columns of W_h of this block's units */
    T *dz;      /* [2, TILE, 4 H + SKEW] gradients of the gates of all units, of this step and the one after */
    float *out; /* [2, TILE, OUT_PITCH] products, two halves of the sum */
    __device__ backward_room(unsigned char *memory, int H)
    {
        w = reinterpret_cast<T *>(memory);
        dz = w + GATES * H * (TILE + SKEW);
        out = reinterpret_cast<float *>(dz + 2 * TILE * (GATES * H + SKEW));
    }
};

size_t backward_bytes(int H)
{
    return ((size_t)GATES * H * (TILE + SKEW) + (size_t)2 * TILE * (GATES * H + SKEW)) * 2 +
           2 * TILE * OUT_PITCH * sizeof(float);
}

template <typename T, typename E> __global__ void __launch_bounds__(THREADS) whole_backward(dt_cuda_lstm_backward<E> b)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    DT_CUDA_SHARED(unsigned char, memory);
    const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    const int H = b.H, K = GATES * H, w_pitch = TILE + SKEW, pitch = K + SKEW;
    const int leaf = (int)blockIdx.z, extent = b.rows.extent(leaf);
    const int first = (int)blockIdx.y * TILE, unit = (int)cluster.block_rank() * TILE;
    const int n_blocks = (int)cluster.num_blocks(), warp = (int)threadIdx.x / 32;
    const int i = (int)threadIdx.x / HALF, j = 2 * ((int)threadIdx.x % HALF);
    const backward_room<T> room(memory, H);
    const E *wh = b.wh.at(leaf), *dy = b.dy.at(leaf), *gates = b.gates.at(leaf);
    const float *present = b.present.at(leaf), *c = b.c.at(leaf);
    E *dz = b.dz.at(leaf);
    for (int e = 2 * (int)threadIdx.x; e < K * TILE; e += 2 * THREADS) {
        const int k = e / TILE, u = e % TILE;
        const dt_cuda_pack<2> p = dt_cuda_load<2>(wh + (int64_t)k * H + unit + u);
        *reinterpret_cast<pair<T> *>(room.w + k * w_pitch + u) = narrow_pair<T>(p.x[0], p.x[1]);
    }
    float dc[MINE][2] = {}, held[MINE][2] = {};
    cluster.sync();
    for (int t = b.T - 1; t >= 0; t--) {
        dt_cuda_pack<2> gate[MINE][GATES], up[MINE], now[MINE], before[MINE];
        bool is_live[MINE], is_present[MINE];
#    pragma unroll
        for (int n = 0; n < MINE; n++) {
            const int s = first + i + HALF * n;
            const int64_t row = (int64_t)t * b.S + s, at = row * H + unit + j;
            is_live[n] = s < extent;
            is_present[n] = is_live[n] && (present == nullptr || present[row] != 0);
            up[n] = is_live[n] ? dt_cuda_load<2>(dy + at) : dt_cuda_pack<2>{};
            now[n] = is_present[n] ? dt_cuda_load<2>(c + at) : dt_cuda_pack<2>{};
            before[n] = is_present[n] && t > 0 ? dt_cuda_load<2>(c + at - (int64_t)b.S * H) : dt_cuda_pack<2>{};
#    pragma unroll
            for (int q = 0; q < GATES; q++) {
                gate[n][q] =
                    is_present[n] ? dt_cuda_load<2>(gates + (row * GATES + q) * H + unit + j) : dt_cuda_pack<2>{};
            }
        }
        if (t < b.T - 1) {
            /* eight warps: half of the sequences, half of the units, half of the sum each */
            const int r = 16 * (warp & 1), u = 16 * (warp >> 1 & 1), part = warp >> 2, k = part * (K / 2);
            const T *after = room.dz + (((t + 1) & 1) * TILE + r) * pitch + k;
            multiply_tile<T, nvcuda::wmma::row_major>(after, pitch, room.w + k * w_pitch + u, w_pitch, w_pitch, K / 2,
                                                      room.out + (part * TILE + r) * OUT_PITCH + u);
        }
        __syncthreads();
#    pragma unroll
        for (int n = 0; n < MINE; n++) {
            const int s = first + i + HALF * n;
            const int64_t row = (int64_t)t * b.S + s;
            float d[2][GATES] = {};
#    pragma unroll
            for (int k = 0; k < 2; k++) {
                const float *out = room.out + (i + HALF * n) * OUT_PITCH + j + k;
                const float through = t < b.T - 1 ? out[0] + out[TILE * OUT_PITCH] : 0.0f;
                const float dh = is_live[n] ? up[n].x[k] + through + held[n][k] : 0.0f;
                held[n][k] = is_present[n] ? 0.0f : dh;
                if (is_present[n]) {
#    pragma unroll
                    for (int q = 0; q < GATES; q++) {
                        d[k][q] = gate[n][q].x[k];
                    }
                    dc[n][k] = dt_cuda_lstm_gradient(d[k], now[n].x[k], before[n].x[k], dh, dc[n][k]);
                }
            }
            T *next = room.dz + ((t & 1) * TILE + i + HALF * n) * pitch + unit + j;
#    pragma unroll
            for (int q = 0; q < GATES; q++) {
                if (s < b.S) {
                    dt_cuda_store<2>(dz + (row * GATES + q) * H + unit + j, {{d[0][q], d[1][q]}});
                }
                for (int k = 0; k < n_blocks && t > 0; k++) {
                    *reinterpret_cast<pair<T> *>(cluster.map_shared_rank(next + q * H, k)) =
                        narrow_pair<T>(d[0][q], d[1][q]);
                }
            }
        }
        cluster.sync();
    }
#else
    __trap();
#endif
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* A block for each TILE of H units, all of them a cluster. */
cudaLaunchConfig_t cluster_config(int H, size_t bytes, cudaLaunchAttribute *cluster)
{
    const unsigned n_blocks = (unsigned)(H / TILE);
    cudaLaunchConfig_t config = {};
    cluster->id = cudaLaunchAttributeClusterDimension;
    cluster->val.clusterDim.x = n_blocks;
    cluster->val.clusterDim.y = 1;
    cluster->val.clusterDim.z = 1;
    config.gridDim = dim3(n_blocks);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = bytes;
    config.attrs = cluster;
    config.numAttrs = 1;
    return config;
}

/* Is there room for one cluster? That takes as many free multiprocessors in one group as it has blocks, of which a GPU
 * that is shared (MIG, MPS) may have none. */
template <typename ARGS> bool has_room(void (*kernel)(ARGS), int H, size_t bytes)
{
    cudaLaunchAttribute cluster = {};
    const cudaLaunchConfig_t config = cluster_config(H, bytes, &cluster);
    int n = 0;
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    e = e == cudaSuccess ? cudaOccupancyMaxActiveClusters(&n, kernel, &config) : e;
    (void)cudaGetLastError(); /* an error is an answer as well: no */
    return e == cudaSuccess && n > 0;
}

template <typename ARGS> dt_status launch(const dt_device_args *a, void (*kernel)(ARGS), const ARGS &args, size_t bytes)
{
    cudaLaunchAttribute cluster = {};
    cudaLaunchConfig_t config = cluster_config(args.H, bytes, &cluster);
    config.gridDim = dim3(config.gridDim.x, dt_cuda_blocks(args.S, TILE), a->leaves);
    config.stream = dt_cuda_stream(a);
    if (args.T == 0 || args.S == 0) {
        return DT_OK;
    }
    DT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    DT_CUDA(cudaLaunchKernelEx(&config, kernel, args));
    return DT_OK;
}

/* T: of the products, E: of what is stored */
template <typename T, typename E> bool have_room(int H)
{
    return has_room(whole_forward<T, E>, H, forward_bytes(H)) && has_room(whole_backward<T, E>, H, backward_bytes(H));
}

/* The device is asked once; scratch, prepare and run must agree. */
bool query_device(const dt_device_args *a, int H)
{
    const bool is_bf16 = a->math == DT_DEVICE_MATH_BF16, is_full = a->in[0].dtype == DT_F32;
    signed char *answer =
        &dt_cuda_clusters(a->device)[((is_bf16 ? 2 : 0) + (is_full ? 1 : 0)) * (MAX_H / TILE) + H / TILE - 1];
    static_assert(4 * (MAX_H / TILE) == DT_CUDA_CLUSTER_KINDS, "one answer for each size, product and storage");
    if (*answer == 0) {
        const bool has =
            is_bf16 ? (is_full ? have_room<__nv_bfloat16, float>(H) : have_room<__nv_bfloat16, __nv_bfloat16>(H))
                    : (is_full ? have_room<__half, float>(H) : have_room<__half, __half>(H));
        *answer = has ? 1 : -1;
        if (!has) {
            dt_cuda_host->log(DT_LOG_INFO,
                              "an LSTM of %d units runs step by step: this GPU has no room for a cluster of %d blocks "
                              "with %zu bytes of shared memory each",
                              H, H / TILE, backward_bytes(H));
        }
    }
    return *answer > 0;
}

} // namespace

bool dt_cuda_lstm_fits_cluster(const dt_device_args *a, int H)
{
    return (a->math == DT_DEVICE_MATH_BF16 || a->math == DT_DEVICE_MATH_F16) && dt_cuda_arch(a->device) >= 90 &&
           dt_cuda_code(a->device) >= 90 && H >= TILE && H <= MAX_H && H % TILE == 0 &&
           backward_bytes(H) <= (size_t)dt_cuda_shared_max(a->device) && query_device(a, H);
}

/* What is stored in half is so because products are. */
template <typename E> static bool is_bf16(const dt_device_args *a)
{
    return std::is_same<E, float>::value ? a->math == DT_DEVICE_MATH_BF16 : std::is_same<E, __nv_bfloat16>::value;
}

template <typename E> using bf16_or = std::conditional_t<std::is_same<E, float>::value, __nv_bfloat16, E>;
template <typename E> using half_or = std::conditional_t<std::is_same<E, float>::value, __half, E>;

template <typename E> dt_status dt_cuda_lstm_cluster(const dt_device_args *a, const dt_cuda_lstm_forward<E> *f)
{
    return launch(a, is_bf16<E>(a) ? whole_forward<bf16_or<E>, E> : whole_forward<half_or<E>, E>, *f,
                  forward_bytes(f->H));
}

template <typename E> dt_status dt_cuda_lstm_cluster_bwd(const dt_device_args *a, const dt_cuda_lstm_backward<E> *b)
{
    return launch(a, is_bf16<E>(a) ? whole_backward<bf16_or<E>, E> : whole_backward<half_or<E>, E>, *b,
                  backward_bytes(b->H));
}

#define FOR_ELEMENT(E)                                                                                                 \
    template dt_status dt_cuda_lstm_cluster<E>(const dt_device_args *, const dt_cuda_lstm_forward<E> *);               \
    template dt_status dt_cuda_lstm_cluster_bwd<E>(const dt_device_args *, const dt_cuda_lstm_backward<E> *);
FOR_ELEMENT(float)
FOR_ELEMENT(__nv_bfloat16)
FOR_ELEMENT(__half)
#undef FOR_ELEMENT
