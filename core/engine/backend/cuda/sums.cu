/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of leaves into sums, in the fixed tree (comm/tree.h), while backward continues: each element is read
 * once from each leaf, and written once. One launch for many tensors: most of them are small.
 */
#include "engine/backend/cuda/stored.h"
#include "engine/backend/cuda/table.h"

namespace
{
enum { THREADS = 256, WIDTH = 4, PER_BLOCK = THREADS * WIDTH };

struct pieces {
    dt_device_piece at[DT_DEVICE_PIECES];
    unsigned first[DT_DEVICE_PIECES + 1]; /* block of threads of each; after the last one: how many there are */
    int n;
};

template <int V> __device__ dt_cuda_pack<V> plus(dt_cuda_pack<V> a, const dt_cuda_pack<V> &b)
{
#pragma unroll
    for (int i = 0; i < V; i++) {
        a.x[i] += b.x[i];
    }
    return a;
}

/* The tree over L leaves: the sum of its left half plus that of its right one. */
template <int L, int V> struct tree {
    __device__ static dt_cuda_pack<V> sum(const float *leaf, int64_t stride)
    {
        return plus(tree<L / 2, V>::sum(leaf, stride), tree<L / 2, V>::sum(leaf + L / 2 * stride, stride));
    }
};

template <int V> struct tree<1, V> {
    __device__ static dt_cuda_pack<V> sum(const float *leaf, int64_t)
    {
        return plus(dt_cuda_pack<V>{}, dt_cuda_load<V>(leaf)); /* 0 + x */
    }
};

/* V elements from i on, and the sums that waited for them. */
template <int L, int V>
__device__ void sum_elements(const dt_device_piece &p, const dt_device_node &node, float *slot, int64_t total,
                             int64_t i)
{
    dt_cuda_pack<V> sum = tree<L, V>::sum(p.from + node.first * p.leaf_stride + i, p.leaf_stride);
    float *const to = slot + node.slot * total + p.to + i;
    for (uint32_t k = node.n_before; k > 0; k--) {
        sum = plus(dt_cuda_load<V>(to + (k - 1) * total), sum);
    }
    dt_cuda_store<V>(to, sum);
}

template <int L> __global__ void sum_leaves(pieces list, dt_device_node node, float *slot, int64_t total)
{
    int k = 0;
    while (list.first[k + 1] <= blockIdx.x) {
        k++;
    }
    const dt_device_piece &p = list.at[k];
    const int64_t begin = (int64_t)(blockIdx.x - list.first[k]) * PER_BLOCK + WIDTH * threadIdx.x;
    if (begin + WIDTH <= p.n) {
        sum_elements<L, WIDTH>(p, node, slot, total, begin);
        return;
    }
    for (int64_t i = begin; i < p.n; i++) {
        sum_elements<L, 1>(p, node, slot, total, i);
    }
}

__global__ void add_floats(float *to, const float *from, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n) {
        to[i] += from[i];
    }
}

dt_status list_pieces(const dt_device_sums *f, pieces *list)
{
    if (f->n_pieces > DT_DEVICE_PIECES) {
        return DT_CUDA_FAIL(DT_EINVAL, "%u gradients in one sum; at most %d are possible", f->n_pieces,
                            (int)DT_DEVICE_PIECES);
    }
    for (uint32_t k = 0; k < f->n_pieces; k++) {
        const dt_device_piece *p = &f->piece[k];
        if ((uintptr_t)p->from % 16 != 0 || p->leaf_stride % WIDTH != 0 || p->to % WIDTH != 0 ||
            f->total % WIDTH != 0) {
            return DT_CUDA_FAIL(DT_EINVAL, "gradients of a sum begin at multiples of %d elements", (int)WIDTH);
        }
        list->at[k] = *p;
        list->first[k + 1] = list->first[k] + dt_cuda_blocks(p->n, PER_BLOCK);
    }
    list->n = (int)f->n_pieces;
    return DT_OK;
}

} // namespace

dt_status dt_cuda_sum(dt_device *d, const dt_device_sums *f, dt_device_stream *s)
{
    pieces list = {};
    DT_CUDA_TRY(list_pieces(f, &list));
    const unsigned grid = list.first[list.n];
    if (grid == 0) {
        return DT_OK;
    }
    switch (f->node.n) {
#define LEAVES(n)                                                                                                      \
    case n:                                                                                                            \
        sum_leaves<n><<<grid, THREADS, 0, (cudaStream_t)(void *)s>>>(list, f->node, f->slot, f->total);                \
        return DT_CUDA_LAUNCHED();
        LEAVES(1)
        LEAVES(2)
        LEAVES(4)
        LEAVES(8)
        LEAVES(16)
        LEAVES(32)
        LEAVES(64)
#undef LEAVES
    default:
        return DT_CUDA_FAIL(DT_EINVAL, "%u shards in a node on one device; must be a power of two, at most %d",
                            f->node.n, (int)DT_DEVICE_NODE_LEAVES);
    }
}

dt_status dt_cuda_add(dt_device *d, float *to, const float *from, int64_t n, dt_device_stream *s)
{
    if (n > 0) {
        add_floats<<<dt_cuda_blocks(n, THREADS), THREADS, 0, (cudaStream_t)(void *)s>>>(to, from, n);
    }
    return DT_CUDA_LAUNCHED();
}
