/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverted dropout with the bits of the host: a thread draws one block and spends it on four columns. Its derivative is
 * the same op. See cuda.h; engine/backend/ref/dropout.c has the plain loops.
 */
#include "engine/backend/cuda/philox.h"
#include "engine/backend/cuda/stored.h"

namespace
{

enum { THREADS = 256 };

struct chance {
    uint64_t least; /* bits below are dropped */
    float scale;    /* of what is kept */
    uint32_t op;
};

/* x [R,D]  key [R] i64 -> y [R,D]; y may be x. n: pieces of four columns in a leaf, per_row in a row */
__global__ void apply_dropout(dt_cuda_floats x, dt_cuda_ptr<const int64_t> key, dt_cuda_floats y, dt_cuda_span rows,
                              const dt_device_run *run, chance c, int n, int per_row)
{
    __shared__ dt_cuda_philox stream;
    if (threadIdx.x == 0) {
        stream = dt_cuda_stream_of(run, c.op);
    }
    __syncthreads();
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i >= n) {
        return;
    }
    const int r = i / per_row, piece = i % per_row;
    const bool is_live = rows.has(r, rows.extent(leaf)), drops = is_live && run->training != 0 && c.least > 0;
    dt_cuda_philox bits = {};
    if (drops) {
        bits = dt_cuda_stream_block(stream, (uint64_t)key.at(leaf)[r], (uint32_t)piece);
    }
    const int64_t first = (int64_t)r * rows.D;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int d = 4 * piece + k;
        if (d < rows.D) {
            const float value = is_live ? x.get(leaf, first + d) : 0.0f;
            y.put(leaf, first + d, !drops ? value : bits.x[k] >= c.least ? value * c.scale : 0.0f);
        }
    }
}

dt_status dropout(const dt_device_args *a)
{
    const dt_cuda_span rows = dt_cuda_rows(a, &a->in[0], 1);
    const int per_row = (rows.D + 3) / 4, n = rows.R * per_row;
    if (n == 0) {
        return DT_OK;
    }
    const double p = a->attr->f[0], threshold = p > 0 ? p * 0x1p32 : 0;
    chance c = {(uint64_t)threshold, (float)(1.0 / (1.0 - p)), (uint32_t)a->attr->i[0]};
    if ((double)c.least < threshold) {
        c.least++;
    }
    const dim3 grid(dt_cuda_blocks(n, THREADS), a->leaves);
    apply_dropout<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_in_floats(a, 0), dt_cuda_src<int64_t>(a, 1),
                                                           dt_cuda_out_floats(a, 0), rows, a->run, c, n, per_row);
    return DT_CUDA_LAUNCHED();
}

} // namespace

DT_CUDA_KERNEL(DROPOUT, dropout, dropout);
