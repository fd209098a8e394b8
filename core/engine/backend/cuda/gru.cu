/* SPDX-License-Identifier: Apache-2.0
 *
 * GRU over a sequence, built like lstm.cu. See recurrent.h and cuda.h; engine/backend/ref/gru.c has the plain loops and
 * the formulas.
 */
#include "engine/backend/cuda/columns.h"
#include "engine/backend/cuda/recurrent.h"

namespace
{

enum { GATES = 3, KEPT = 4 };

using source = dt_cuda_ptr<const float>;
using target = dt_cuda_ptr<float>;

/* ---- forward ----------------------------------------------------------------------------------------------------- */

template <typename T> struct forward {
    using element = T;
    dt_cuda_ptr<const T> xw, wh;
    source bh, present;
    dt_cuda_ptr<T> h, gates;
    dt_cuda_span rows;
    int S, H;
};

/* sequence s, unit j, with the three products u; where no sequence is present, the state is held, beyond the live size
 * it is zero */
template <typename T>
__device__ void cell(const forward<T> &f, int leaf, int t, int s, int j, bool is_live, const float u[GATES])
{
    const int64_t H = f.H, row = (int64_t)t * f.S + s, at = row * H + j;
    const float *present = f.present.at(leaf), *b = f.bh.at(leaf) + j;
    const T *x = f.xw.at(leaf) + row * GATES * H + j;
    T *h = f.h.at(leaf), *gates = f.gates.at(leaf);
    float gate[KEPT] = {}, h_now = t == 0 ? 0.0f : dt_cuda_get(h + at - f.S * H);
    if (is_live && (present == nullptr || present[row] != 0)) {
        gate[3] = u[2] + b[2 * H];
        gate[0] = dt_cuda_sigmoid(dt_cuda_get(x) + (u[0] + b[0]));
        gate[1] = dt_cuda_sigmoid(dt_cuda_get(x + H) + (u[1] + b[H]));
        gate[2] = tanhf(dt_cuda_get(x + 2 * H) + gate[0] * gate[3]);
        h_now = (1 - gate[1]) * gate[2] + gate[1] * h_now;
    }
    if (gates != nullptr) {
        for (int q = 0; q < KEPT; q++) {
            dt_cuda_put(gates + (row * KEPT + q) * H + j, gate[q]);
        }
    }
    dt_cuda_put(h + at, h_now);
}

size_t gru_scratch(const dt_device_args *a)
{
    return dt_cuda_steps_by_product(a) ? dt_cuda_step_products_scratch(a) : 0;
}

dt_status gru_prepare(const dt_device_args *a, void **state_p)
{
    return dt_cuda_steps_by_product(a) ? dt_cuda_recurrent_forward(a, state_p) : DT_OK;
}

/* xw, wh, h and gates have one type */
template <typename T> dt_status gru_of(const dt_device_args *a)
{
    const int S = (int)a->in[0].dim[1], H = (int)a->in[1].dim[1];
    forward<T> f = {};
    f.xw = dt_cuda_src<T>(a, 0);
    f.wh = dt_cuda_src<T>(a, 1);
    f.bh = dt_cuda_src<float>(a, 2);
    f.present = dt_cuda_src<float>(a, 3);
    f.h = dt_cuda_dst<T>(a, 0);
    f.gates = dt_cuda_dst<T>(a, 1);
    f.rows = dt_cuda_sequences(a, &a->in[0]);
    f.S = S;
    f.H = H;
    return dt_cuda_steps_forward<GATES>(a, f, dt_cuda_steps_by_product(a));
}

dt_status gru(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return gru_of<typename decltype(type)::T>(a); });
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

template <typename E> struct backward {
    using element = E;
    dt_cuda_ptr<const E> dy, h, gates, wh;
    source present;
    dt_cuda_ptr<E> dxw; /* [T,S,3H] or absent */
    dt_cuda_ptr<E> dz;  /* [T,S,3H] in scratch: gradients of W h + b; those of n differ from dxw's */
    target dh;          /* [S,H] in scratch: carried from the step after, without what comes through W */
    dt_cuda_span rows;
    int T, S, H;
};

/* sequence s, unit j; dh_after: what comes through W from the step after */
template <typename E>
__device__ void cell(const backward<E> &b, int leaf, int t, int s, int j, bool is_live, float dh_after)
{
    const int64_t H = b.H, row = (int64_t)t * b.S + s, at = row * H + j, out = row * GATES * H + j;
    const float *present = b.present.at(leaf);
    const E *gate = b.gates.at(leaf) + row * KEPT * H + j, *h = b.h.at(leaf);
    float *carried = b.dh.at(leaf) + s * H + j;
    E *dxw = b.dxw.at(leaf), *to = b.dz.at(leaf) + out;
    float dh = is_live ? dt_cuda_get(b.dy.at(leaf) + at) + dh_after + (t == b.T - 1 ? 0.0f : *carried) : 0.0f;
    float dr = 0, dz = 0, dn = 0, du = 0;
    if (is_live && (present == nullptr || present[row] != 0)) {
        const float r = dt_cuda_get(gate), z = dt_cuda_get(gate + H);
        const float n = dt_cuda_get(gate + 2 * H), u = dt_cuda_get(gate + 3 * H);
        dn = dh * (1 - z) * (1 - n * n);
        dr = dn * u * (r * (1 - r));
        dz = dh * ((t > 0 ? dt_cuda_get(h + at - b.S * H) : 0.0f) - n) * (z * (1 - z));
        du = dn * r;
        dh *= z;
    }
    if (dxw != nullptr) {
        dt_cuda_put(dxw + out, dr);
        dt_cuda_put(dxw + out + H, dz);
        dt_cuda_put(dxw + out + 2 * H, dn);
    }
    dt_cuda_put(to, dr);
    dt_cuda_put(to + H, dz);
    dt_cuda_put(to + 2 * H, du);
    *carried = dh;
}

/* dbh = sum over all steps and sequences of dz   [rows,M] -> [M] */
template <typename T>
__global__ void __launch_bounds__(DT_CUDA_COLUMN_THREADS)
    sum_bias(dt_cuda_ptr<const T> dz, target dbh, int rows, int M, bool adds)
{
    const int leaf = (int)blockIdx.y, m = (int)(32 * blockIdx.x + threadIdx.x);
    const T *from = dz.at(leaf);
    const double sum =
        dt_cuda_column_sum(rows, [&](int r) { return m < M ? dt_cuda_get(from + (int64_t)r * M + m) : 0.0f; });
    if (threadIdx.y == 0 && m < M) {
        float *to = dbh.at(leaf) + m;
        *to = (float)(adds ? *to + sum : sum);
    }
}

/* After the space of the product: dh carried, dh of a product, dz. */
size_t gru_bwd_scratch(const dt_device_args *a)
{
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2], n = a->leaves * S * H;
    return dt_cuda_product_scratch(a) + 2 * dt_cuda_aligned_bytes(n) +
           dt_cuda_aligned_bytes_of(T * n * GATES, a->in[0].dtype);
}

template <typename E> backward<E> backward_of(const dt_device_args *a)
{
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2];
    char *room = (char *)a->scratch + dt_cuda_product_scratch(a);
    backward<E> b = {};
    b.dy = dt_cuda_src<E>(a, 0);
    b.h = dt_cuda_src<E>(a, 1);
    b.gates = dt_cuda_src<E>(a, 2);
    b.wh = dt_cuda_src<E>(a, 3);
    b.present = dt_cuda_src<float>(a, 4);
    b.dxw = dt_cuda_dst<E>(a, 0);
    b.dh = {(float *)room, S * H};
    b.dz = {(E *)(room + 2 * dt_cuda_aligned_bytes(a->leaves * S * H)), T * S * GATES * H};
    b.rows = dt_cuda_sequences(a, &a->in[0]);
    b.T = (int)T;
    b.S = (int)S;
    b.H = (int)H;
    return b;
}

/* dh [S,H], the product of a step */
template <typename E> target product_back_of(const dt_device_args *a, const backward<E> &b)
{
    return {b.dh.data + dt_cuda_aligned_bytes(a->leaves * b.dh.stride) / sizeof(float), b.dh.stride};
}

/* gradients as the products read them */
template <typename E> dt_cuda_sequence dz_of(const dt_device_args *a, const backward<E> &b)
{
    return {b.dz.data, b.dz.stride, a->in[0].dtype};
}

dt_status gru_bwd_prepare(const dt_device_args *a, void **state_p)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) {
        const auto b = backward_of<typename decltype(type)::T>(a);
        return dt_cuda_recurrent_backward(a, dz_of(a, b), &a->in[1], &a->in[3], dt_cuda_out(a, 1),
                                          dt_cuda_steps_by_product(a) ? product_back_of(a, b).data : nullptr, state_p);
    });
}

/* dy, h, gates, wh and dxw have one type */
template <typename E> dt_status gru_bwd_of(const dt_device_args *a)
{
    const backward<E> b = backward_of<E>(a);
    const dt_device_view *dbh = dt_cuda_out(a, 2);
    DT_CUDA_TRY(dt_cuda_steps_backward<GATES>(a, b, &a->in[3], product_back_of(a, b), dt_cuda_steps_by_product(a)));
    if (dbh->data != nullptr) {
        const int M = GATES * b.H;
        const dim3 columns(dt_cuda_blocks(M, 32), a->leaves), block(32, DT_CUDA_COLUMN_LANES);
        const dt_cuda_ptr<const E> dz = {b.dz.data, b.dz.stride};
        sum_bias<<<columns, block, 0, dt_cuda_stream(a)>>>(dz, dt_cuda_dst<float>(a, 2), b.T * b.S, M, dbh->accum != 0);
        DT_CUDA_TRY(DT_CUDA_LAUNCHED());
    }
    return dt_cuda_recurrent_weight_gradient(a, dz_of(a, b), &a->in[1]);
}

dt_status gru_bwd(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return gru_bwd_of<typename decltype(type)::T>(a); });
}

} // namespace

DT_CUDA_KERNEL_WITH(GRU, gru, gru, gru_scratch, gru_prepare, dt_cuda_recurrent_destroy);
DT_CUDA_KERNEL_WITH(GRU_BWD, gru_bwd, gru_bwd, gru_bwd_scratch, gru_bwd_prepare, dt_cuda_recurrent_destroy);
