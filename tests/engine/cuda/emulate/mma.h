/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of 16 x 16 tiles by a warp, on a CPU: lane 0 has the whole of a fragment, the others only come along.
 * Addresses and pitches that a GPU refuses end the program. See cuda_runtime.h.
 */
#ifndef DTRAIN_TESTS_CUDA_EMULATE_MMA_H
#define DTRAIN_TESTS_CUDA_EMULATE_MMA_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

#include <cstdlib>

namespace nvcuda
{
namespace wmma
{

struct matrix_a {
};
struct matrix_b {
};
struct accumulator {
};
struct row_major {
};
struct col_major {
};
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int M, int N, int K, typename T, typename Layout = void> struct fragment {
    float at[16][16];
};

static inline float widen(float x)
{
    return x;
}

static inline float widen(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

static inline float widen(__half x)
{
    return __half2float(x);
}

template <typename T> static inline void check(const T *p, unsigned pitch)
{
    if ((uintptr_t)p % 32 != 0 || pitch * sizeof(T) % 16 != 0) {
        abort();
    }
    __syncwarp();
}

template <typename Use, typename T, typename Layout>
static inline void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout> &f, const T *p, unsigned pitch)
{
    check(p, pitch);
    for (unsigned i = 0; i < 256 && dt_emulate_lane() == 0; i++) {
        const unsigned r = i / 16, c = i % 16;
        f.at[r][c] = widen(std::is_same<Layout, row_major>::value ? p[r * pitch + c] : p[c * pitch + r]);
    }
}

template <typename F> static inline void fill_fragment(F &f, float x)
{
    for (int i = 0; i < 256; i++) {
        f.at[i / 16][i % 16] = x;
    }
}

template <typename C, typename A, typename B> static inline void mma_sync(C &d, const A &a, const B &b, const C &c)
{
    __syncwarp();
    for (int i = 0; i < 256 && dt_emulate_lane() == 0; i++) {
        float sum = c.at[i / 16][i % 16];
        for (int k = 0; k < 16; k++) {
            sum += a.at[i / 16][k] * b.at[k][i % 16];
        }
        d.at[i / 16][i % 16] = sum;
    }
}

template <typename F> static inline void store_matrix_sync(float *p, const F &f, unsigned pitch, layout_t)
{
    check(p, pitch);
    for (unsigned i = 0; i < 256 && dt_emulate_lane() == 0; i++) {
        p[i / 16 * pitch + i % 16] = f.at[i / 16][i % 16];
    }
    __syncwarp();
}

} // namespace wmma
} // namespace nvcuda

#endif
