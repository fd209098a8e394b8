/* SPDX-License-Identifier: Apache-2.0
 *
 * Scratch of the CPU kernels in floats: upper bounds for every build and every smaller live size.
 */
#ifndef DTRAIN_CORE_BACKEND_CPU_SCRATCH_H
#define DTRAIN_CORE_BACKEND_CPU_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

enum { DT_SCRATCH_PAD = 16 }; /* room to read and write whole vectors behind an array */

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

/* zeros [H], the state [S,H], products [S,4H] */
static inline size_t dt_scratch_lstm(int64_t S, int64_t H)
{
    return (size_t)(H + 5 * S * H);
}

/* zeros [H], dh and dc [S,H], dz of a step [S,4H] */
static inline size_t dt_scratch_lstm_bwd(int64_t S, int64_t H)
{
    return (size_t)(H + 6 * S * H);
}

static inline size_t dt_scratch_gru(int64_t S, int64_t H)
{
    return (size_t)(H + 3 * S * H);
}

static inline size_t dt_scratch_gru_bwd(int64_t T, int64_t S, int64_t H)
{
    return (size_t)(H + 4 * S * H + T * S * H);
}

#endif
