/* SPDX-License-Identifier: Apache-2.0
 *
 * The op of bars.c on a CUDA GPU: one thread per element, and zeros beyond what is live of a shard.
 *   nvcc -O2 -c -Xcompiler -fPIC $(pkg-config --cflags dtrain) bars.cu -o bars_cuda.o
 *   cc -O2 -shared -fPIC -DDT_PLUGIN_NAME=bars -DBARS_CUDA $(pkg-config --cflags dtrain) bars.c bars_cuda.o -o bars.so \
 *      -lcudart -lm
 */
#include <cuda_runtime.h>
#include <dtrain/ext/ops.h>

namespace
{

enum { THREADS = 256 };

/* Element i of shard s is live where its index in the ragged dimension is below the live size. */
struct extent {
    const int32_t *live; /* of shard 0; NULL: all of it is live */
    int32_t n_symbols, plus;
    int64_t count, cap, inner;
};

extent extent_of(const dt_op_launch *c, const dt_op_device_tensor *t)
{
    extent e = {nullptr, (int32_t)c->n_symbols, t->plus, 1, 1, 1};
    for (uint32_t k = 0; k < t->rank; k++) {
        e.count *= t->dim[k];
        e.inner *= t->ragged >= 0 && k > (uint32_t)t->ragged ? t->dim[k] : 1;
    }
    if (t->ragged >= 0) {
        e.live = c->live + t->symbol;
        e.cap = t->dim[t->ragged];
    }
    return e;
}

__device__ bool is_live(const extent &e, int shard, int64_t i)
{
    return e.live == nullptr || i / e.inner % e.cap < e.live[shard * e.n_symbols] + e.plus;
}

/* dy NULL: y = x / (1 + exp(-x)); else dx = dy dy/dx */
__global__ void swish(const float *dy, const float *x, float *out, int64_t dy_stride, int64_t x_stride,
                      int64_t out_stride, extent e)
{
    const int shard = (int)blockIdx.y;
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= e.count) {
        return;
    }
    float y = 0;
    if (is_live(e, shard, i)) {
        const float v = x[shard * x_stride + i], s = 1 / (1 + expf(-v));
        y = dy == nullptr ? v * s : dy[shard * dy_stride + i] * (s + v * s * (1 - s));
    }
    out[shard * out_stride + i] = y;
}

dt_status launch(const dt_op_launch *c, const dt_op_device_tensor *dy, const dt_op_device_tensor *x)
{
    const extent e = extent_of(c, x);
    const dim3 grid((unsigned)((e.count + THREADS - 1) / THREADS), c->shards);
    if (e.count == 0) {
        return DT_OK;
    }
    swish<<<grid, THREADS, 0, (cudaStream_t)c->stream>>>(
        dy != nullptr ? (const float *)dy->data : nullptr, (const float *)x->data, (float *)c->out[0].data,
        dy != nullptr ? dy->shard_stride : 0, x->shard_stride, c->out[0].shard_stride, e);
    return cudaGetLastError() == cudaSuccess ? DT_OK : DT_ECUDA;
}

} // namespace

extern "C" dt_status bars_swish_launch(const dt_op_launch *c)
{
    return launch(c, nullptr, &c->in[0]);
}

extern "C" dt_status bars_swish_launch_backward(const dt_op_launch *c)
{
    return launch(c, &c->in[0], &c->in[1]);
}
