/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM over a sequence: one launch a time step, in which the product with the state before and the cell are one kernel;
 * backward the product with the gates' gradients of the step after and the cell's derivative, and at the end one
 * product over all steps for dwh. See recurrent.h and cuda.h; engine/backend/ref/lstm.c has the plain loops and the
 * formulas.
 */
#include "engine/backend/cuda/lstm.h"
#include "engine/backend/cuda/recurrent.h"

namespace
{

enum { GATES = DT_CUDA_LSTM_GATES };

using target = dt_cuda_ptr<float>;
/* types of this namespace, where recurrent.h looks for cell() */
template <typename E> struct forward : dt_cuda_lstm_forward<E> {
};
template <typename E> struct backward : dt_cuda_lstm_backward<E> {
};

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* sequence s, unit j, with the four products z; where no sequence is present, the state is held, beyond the live size
 * it is zero */
template <typename E>
__device__ void cell(const forward<E> &f, int leaf, int t, int s, int j, bool is_live, const float z[GATES])
{
    const int64_t H = f.H, row = (int64_t)t * f.S + s, at = row * H + j, before = at - f.S * H;
    const float *present = f.present.at(leaf);
    const E *x = f.xw.at(leaf) + row * GATES * H + j;
    E *h = f.h.at(leaf), *gates = f.gates.at(leaf);
    float *c = f.c.at(leaf);
    float *held = c != nullptr ? nullptr : f.state.at(leaf) + s * H + j;
    const float c_before = t == 0 ? 0.0f : c != nullptr ? c[before] : *held;
    float gate[GATES] = {}, c_now = c_before, h_now = t == 0 ? 0.0f : dt_cuda_get(h + before);
    if (is_live && (present == nullptr || present[row] != 0)) {
        for (int q = 0; q < GATES; q++) {
            gate[q] = dt_cuda_get(x + q * H) + z[q];
        }
        dt_cuda_lstm_cell(gate, c_before, &c_now, &h_now);
    }
    if (gates != nullptr) {
        for (int q = 0; q < GATES; q++) {
            dt_cuda_put(gates + (row * GATES + q) * H + j, gate[q]);
        }
    }
    if (c != nullptr) {
        c[at] = c_now;
    } else {
        *held = c_now;
    }
    dt_cuda_put(h + at, h_now);
}

/* Does each step need a product of its own? */
bool needs_step_products(const dt_device_args *a, int64_t H)
{
    return dt_cuda_steps_by_product(a) && !dt_cuda_lstm_fits_cluster(a, (int)H);
}

/* In scratch: what the products of steps take, where there are any; then c [S,H], where it is not kept. */
size_t scratch_before_c(const dt_device_args *a)
{
    return needs_step_products(a, a->in[1].dim[1]) ? dt_cuda_step_products_scratch(a) : 0;
}

size_t lstm_scratch(const dt_device_args *a)
{
    const int64_t S = a->in[0].dim[1], H = a->in[1].dim[1];
    return scratch_before_c(a) + (dt_cuda_out(a, 2)->data != nullptr ? 0 : dt_cuda_aligned_bytes(a->leaves * S * H));
}

dt_status lstm_prepare(const dt_device_args *a, void **state_p)
{
    return needs_step_products(a, a->in[1].dim[1]) ? dt_cuda_recurrent_forward(a, state_p) : DT_OK;
}

/* xw, wh, h and gates have one type */
template <typename E> dt_status lstm_of(const dt_device_args *a)
{
    const int T = (int)a->in[0].dim[0], S = (int)a->in[0].dim[1], H = (int)a->in[1].dim[1];
    forward<E> f = {};
    f.xw = dt_cuda_src<E>(a, 0);
    f.wh = dt_cuda_src<E>(a, 1);
    f.present = dt_cuda_src<float>(a, 2);
    f.h = dt_cuda_dst<E>(a, 0);
    f.gates = dt_cuda_dst<E>(a, 1);
    f.c = dt_cuda_dst<float>(a, 2);
    f.state = {(float *)((char *)a->scratch + scratch_before_c(a)), (int64_t)S * H};
    f.rows = dt_cuda_sequences(a, &a->in[0]);
    f.T = T;
    f.S = S;
    f.H = H;
    return dt_cuda_lstm_fits_cluster(a, H) ? dt_cuda_lstm_cluster<E>(a, &f)
                                           : dt_cuda_steps_forward<GATES>(a, f, needs_step_products(a, H));
}

dt_status lstm(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return lstm_of<typename decltype(type)::T>(a); });
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* sequence s, unit j; dh_after: what comes through W_h from the step after */
template <typename E>
__device__ void cell(const backward<E> &b, int leaf, int t, int s, int j, bool is_live, float dh_after)
{
    const int64_t H = b.H, row = (int64_t)t * b.S + s, at = row * H + j, gate = row * GATES * H + j;
    const float *present = b.present.at(leaf);
    const E *gates = b.gates.at(leaf);
    E *dz = b.dz.at(leaf) + gate;
    float *held = b.held.at(leaf) + s * H + j, *dc = b.dc.at(leaf) + s * H + j;
    const bool is_last = t == b.T - 1;
    const float dh = is_live ? dt_cuda_get(b.dy.at(leaf) + at) + dh_after + (is_last ? 0.0f : *held) : 0.0f;
    const float dc_after = is_last ? 0.0f : *dc;
    float d[GATES] = {}, dh_held = dh, dc_now = dc_after;
    if (is_live && (present == nullptr || present[row] != 0)) {
        const float *c = b.c.at(leaf) + at;
        for (int q = 0; q < GATES; q++) {
            d[q] = dt_cuda_get(gates + gate + q * H);
        }
        dc_now = dt_cuda_lstm_gradient(d, *c, t > 0 ? c[-b.S * H] : 0.0f, dh, dc_after);
        dh_held = 0;
    }
    for (int q = 0; q < GATES; q++) {
        dt_cuda_put(dz + q * H, d[q]);
    }
    *dc = dc_now;
    *held = dh_held;
}

/* After the space of the product: dc, held, dh of a product; dz where dxw is absent. */
size_t lstm_bwd_scratch(const dt_device_args *a)
{
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2], n = a->leaves * S * H;
    const size_t dz = dt_cuda_out(a, 0)->data != nullptr ? 0 : dt_cuda_aligned_bytes_of(T * n * GATES, a->in[0].dtype);
    return dt_cuda_product_scratch(a) + 3 * dt_cuda_aligned_bytes(n) + dz;
}

template <typename E> backward<E> backward_of(const dt_device_args *a)
{
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2];
    char *room = (char *)a->scratch + dt_cuda_product_scratch(a);
    const size_t state_bytes = dt_cuda_aligned_bytes(a->leaves * S * H);
    backward<E> b = {};
    b.dy = dt_cuda_src<E>(a, 0);
    b.gates = dt_cuda_src<E>(a, 2);
    b.c = dt_cuda_src<float>(a, 3);
    b.wh = dt_cuda_src<E>(a, 4);
    b.present = dt_cuda_src<float>(a, 5);
    b.dc = {(float *)room, S * H};
    b.held = {(float *)(room + state_bytes), S * H};
    b.dz = dt_cuda_dst<E>(a, 0);
    if (b.dz.data == nullptr) {
        b.dz = {(E *)(room + 3 * state_bytes), T * S * GATES * H};
    }
    b.rows = dt_cuda_sequences(a, &a->in[0]);
    b.T = (int)T;
    b.S = (int)S;
    b.H = (int)H;
    return b;
}

/* dh [S,H], the product of a step */
template <typename E> target product_back_of(const dt_device_args *a, const backward<E> &b)
{
    return {b.held.data + dt_cuda_aligned_bytes(a->leaves * b.held.stride) / sizeof(float), b.held.stride};
}

/* gradients as the products read them */
template <typename E> dt_cuda_sequence dz_of(const dt_device_args *a, const backward<E> &b)
{
    return {b.dz.data, b.dz.stride, a->in[0].dtype};
}

dt_status lstm_bwd_prepare(const dt_device_args *a, void **state_p)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) {
        const auto b = backward_of<typename decltype(type)::T>(a);
        return dt_cuda_recurrent_backward(a, dz_of(a, b), &a->in[1], &a->in[4], dt_cuda_out(a, 1),
                                          needs_step_products(a, b.H) ? product_back_of(a, b).data : nullptr, state_p);
    });
}

/* dy, h, gates, wh and dxw have one type */
template <typename E> dt_status lstm_bwd_of(const dt_device_args *a)
{
    const backward<E> b = backward_of<E>(a);
    DT_CUDA_TRY(
        dt_cuda_lstm_fits_cluster(a, b.H)
            ? dt_cuda_lstm_cluster_bwd<E>(a, &b)
            : dt_cuda_steps_backward<GATES>(a, b, &a->in[4], product_back_of(a, b), needs_step_products(a, b.H)));
    return dt_cuda_recurrent_weight_gradient(a, dz_of(a, b), &a->in[1]);
}

dt_status lstm_bwd(const dt_device_args *a)
{
    return dt_cuda_by_type(a->in[0].dtype, [&](auto type) { return lstm_bwd_of<typename decltype(type)::T>(a); });
}

} // namespace

DT_CUDA_KERNEL_WITH(LSTM, lstm, lstm, lstm_scratch, lstm_prepare, dt_cuda_recurrent_destroy);
DT_CUDA_KERNEL_WITH(LSTM_BWD, lstm_bwd, lstm_bwd, lstm_bwd_scratch, lstm_bwd_prepare, dt_cuda_recurrent_destroy);
