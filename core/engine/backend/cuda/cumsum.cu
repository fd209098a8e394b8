/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sum over the last dim but one, a thread for each sum; they are short. See cuda.h; engine/backend/ref/axis.c
 * has the plain loops.
 */
#include "engine/backend/cuda/stored.h"

namespace
{

enum { THREADS = 128 };

/* y[f] = x[0] + .. + x[f] for step 1; from the last one down for step -1   x, y [R,F,P]; y may be x */
__global__ void running_sums(dt_cuda_floats x, dt_cuda_floats y, dt_cuda_span rows, int F, int P, int step)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i >= rows.R * P) {
        return;
    }
    const int r = i / P;
    const bool is_live = rows.has(r, rows.extent(leaf));
    int64_t at = (int64_t)r * F * P + i % P + (step < 0 ? (int64_t)(F - 1) * P : 0);
    double sum = 0;
    for (int f = 0; f < F; f++) {
        sum += is_live ? x.get(leaf, at) : 0.0f;
        y.put(leaf, at, (float)sum);
        at += (int64_t)step * P;
    }
}

dt_status run_cumsum(const dt_device_args *a, int step)
{
    const dt_device_view *x = &a->in[0];
    const dt_cuda_span rows = dt_cuda_rows(a, x, 2);
    const int P = (int)dt_cuda_last_dim(x), F = (int)x->dim[x->rank - 2];
    if (dt_cuda_count(x) == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks((int64_t)rows.R * P, THREADS), a->leaves);
    running_sums<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_in_floats(a, 0), dt_cuda_out_floats(a, 0), rows, F, P,
                                                          step);
    return DT_CUDA_LAUNCHED();
}

dt_status cumsum(const dt_device_args *a)
{
    return run_cumsum(a, 1);
}

dt_status cumsum_bwd(const dt_device_args *a)
{
    return run_cumsum(a, -1);
}

} // namespace

DT_CUDA_KERNEL(CUMSUM, cumsum, cumsum);
DT_CUDA_KERNEL(CUMSUM_BWD, cumsum_bwd, cumsum_bwd);
