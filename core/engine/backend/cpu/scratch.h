/* SPDX-License-Identifier: Apache-2.0
 *
 * Scratch of the CPU kernels in floats: upper bounds for every build and every smaller live size.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CPU_SCRATCH_H
#define DTRAIN_CORE_ENGINE_BACKEND_CPU_SCRATCH_H

#include "engine/backend/cpu/gemm.h"

enum { DT_SCRATCH_PAD = 16 }; /* room to read and write whole vectors past an array */

/* LINEAR_DX: the rows of dy that are not 0, where they are wide, and all of dy is small. Of more rows than fit they are
 * not looked for. */
enum { DT_SCRATCH_LIVE = 1 << 16, DT_SCRATCH_LIVE_WIDTH = 32 };
static inline size_t dt_scratch_live(int64_t R, int64_t M)
{
    const int64_t n = (R * M + DT_SCRATCH_PAD - 1) / DT_SCRATCH_PAD * DT_SCRATCH_PAD;
    return (size_t)(M < DT_SCRATCH_LIVE_WIDTH ? 0 : n < DT_SCRATCH_LIVE ? n : DT_SCRATCH_LIVE);
}

/* node terms [N,H] x 2, w_e [K,H], logits [degree,H]; backward the same again, and [H] */
static inline size_t dt_scratch_gat(int64_t N, int64_t E, int64_t H, int64_t K)
{
    return (size_t)(2 * N * H + K * H + E * H + DT_SCRATCH_PAD);
}

static inline size_t dt_scratch_gat_bwd(int64_t N, int64_t E, int64_t H, int64_t K)
{
    return 2 * dt_scratch_gat(N, E, H, K) + (size_t)H;
}

/* [H], logits [degree,H] */
static inline size_t dt_scratch_graph_qk(int64_t E, int64_t H)
{
    return (size_t)(H + E * H + DT_SCRATCH_PAD);
}

/* the packed W_h with a tile, or what dwh needs at the end */
static inline size_t dt_scratch_recurrent_product(int64_t T, int64_t S, int64_t H, int64_t n_gates)
{
    const size_t packed = dt_gemm_packed_floats(H, n_gates * H) + dt_gemm_tile_floats(n_gates * H);
    const size_t last = dt_gemm_floats(H, T * S);
    return packed > last ? packed : last;
}

static inline size_t dt_scratch_lstm(int64_t S, int64_t H)
{
    return dt_gemm_packed_floats(4 * H, H) + dt_gemm_tile_floats(H) + (size_t)(H + 5 * S * H);
}

static inline size_t dt_scratch_lstm_bwd(int64_t T, int64_t S, int64_t H)
{
    return dt_scratch_recurrent_product(T, S, H, 4) + (size_t)(H + 6 * S * H) + dt_gemm_floats(H, S);
}

static inline size_t dt_scratch_gru(int64_t S, int64_t H)
{
    return dt_gemm_packed_floats(3 * H, H) + dt_gemm_tile_floats(H) + (size_t)(H + 3 * S * H);
}

static inline size_t dt_scratch_gru_bwd(int64_t T, int64_t S, int64_t H)
{
    return dt_scratch_recurrent_product(T, S, H, 3) + (size_t)(H + 4 * S * H + T * S * H) + dt_gemm_floats(H, S);
}

/* CONV2D: positions whose patches of K are copied at a time: a quarter of 2 MB of them, in whole tiles. */
static inline int64_t dt_scratch_conv_positions(int64_t K)
{
    enum { FLOATS = 1 << 16, LEAST = 32, MOST = DT_GEMM_BLOCK };
    const int64_t n = FLOATS / K / LEAST * LEAST;
    return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

static inline size_t dt_scratch_conv_patches(int64_t K)
{
    return (size_t)(dt_scratch_conv_positions(K) * K + DT_SCRATCH_PAD);
}

/* patches, w of all groups packed for products of N columns by sums of K, and what a product takes itself */
static inline size_t dt_scratch_conv(int64_t patch, int64_t groups, int64_t N, int64_t K)
{
    return dt_scratch_conv_patches(patch) + (size_t)groups * dt_gemm_packed_floats(N, K) + dt_gemm_tile_floats(K);
}

static inline size_t dt_scratch_conv_dw(int64_t patch)
{
    return dt_scratch_conv_patches(patch) + dt_gemm_floats(patch, dt_scratch_conv_positions(patch));
}

#endif
