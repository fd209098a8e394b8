/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM over a sequence: one launch a time step, in which the product with the state before and the cell are one kernel;
 * backward the product with the gates' gradients of the step after and the cell's derivative, and at the end one
 * product over all steps for dwh. See recurrent.h and cuda.h; backend/ref/lstm.c has the plain loops and the formulas.
 */
#include "backend/cuda/lstm.h"
#include "backend/cuda/recurrent.h"

namespace
{

enum { GATES = DT_CUDA_LSTM_GATES, ROWS = DT_CUDA_STEP_ROWS, COLUMNS = DT_CUDA_STEP_COLUMNS, CELL_THREADS = 256 };

using target = dt_cuda_ptr<float>;
using forward = dt_cuda_lstm_forward;
using backward = dt_cuda_lstm_backward;

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* sequence s, unit j, with the four products z; where nobody is, the state is held, beyond the live size it is zero */
__device__ void cell(const forward &f, int leaf, int t, int s, int j, bool is_live, const float z[GATES])
{
    const int64_t H = f.H, row = (int64_t)t * f.S + s, at = row * H + j, before = at - f.S * H;
    const float *present = f.present.at(leaf), *x = f.xw.at(leaf) + row * GATES * H + j;
    float *h = f.h.at(leaf), *gates = f.gates.at(leaf), *c = f.c.at(leaf);
    float *held = c != nullptr ? nullptr : f.state.at(leaf) + s * H + j;
    const float c_before = t == 0 ? 0.0f : c != nullptr ? c[before] : *held;
    float gate[GATES] = {}, c_now = c_before, h_now = t == 0 ? 0.0f : h[before];
    if (is_live && (present == nullptr || present[row] != 0)) {
        for (int q = 0; q < GATES; q++) {
            gate[q] = x[q * H] + z[q];
        }
        dt_cuda_lstm_cell(gate, c_before, &c_now, &h_now);
    }
    if (gates != nullptr) {
        for (int q = 0; q < GATES; q++) {
            gates[(row * GATES + q) * H + j] = gate[q];
        }
    }
    *(c != nullptr ? c + at : held) = c_now;
    h[at] = h_now;
}

template <int V> __global__ void __launch_bounds__(DT_CUDA_STEP_THREADS) step(forward f, int t)
{
    const int leaf = (int)blockIdx.z, extent = f.rows.extent(leaf);
    const int first = (int)blockIdx.y * DT_CUDA_STEP_TILE, unit = (int)blockIdx.x * DT_CUDA_STEP_TILE;
    float z[GATES][ROWS][COLUMNS] = {};
    if (t > 0 && first < extent) { /* the same for the whole block */
        const float *h_before = f.h.at(leaf) + ((int64_t)(t - 1) * f.S + first) * f.H;
        dt_cuda_gate_products<GATES, V>(h_before, extent - first, f.wh.at(leaf), unit, f.H, z);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int s = first + dt_cuda_step_row(i), j = unit + dt_cuda_step_lane() + 16 * k;
            if (s < f.S && j < f.H) {
                const float products[GATES] = {z[0][i][k], z[1][i][k], z[2][i][k], z[3][i][k]};
                cell(f, leaf, t, s, j, s < extent, products);
            }
        }
    }
}

/* The cells of step t alone, after the product z [S,4H]. */
__global__ void cells(forward f, target z, int t)
{
    const int at = (int)(blockIdx.x * CELL_THREADS + threadIdx.x), s = at / f.H, j = at % f.H, leaf = (int)blockIdx.y;
    if (s < f.S) {
        const float *from = z.at(leaf) + (int64_t)s * GATES * f.H + j;
        float products[GATES] = {};
        for (int q = 0; q < GATES && t > 0; q++) {
            products[q] = from[q * f.H];
        }
        cell(f, leaf, t, s, j, s < f.rows.extent(leaf), products);
    }
}

/* Does each step want a product of its own? */
bool by_product(const dt_device_args *a, int64_t H)
{
    return dt_cuda_steps_by_product(a) && !dt_cuda_lstm_fits_cluster(a, (int)H);
}

/* In scratch: room of the product and z [S,4H], where steps go by product; then c [S,H], where it is not kept. */
size_t room_before_c(const dt_device_args *a)
{
    const int64_t S = a->in[0].dim[1], H = a->in[1].dim[1];
    return by_product(a, H) ? dt_cuda_product_scratch(a) + dt_cuda_room(a->leaves * S * GATES * H) : 0;
}

size_t lstm_scratch(const dt_device_args *a)
{
    const int64_t S = a->in[0].dim[1], H = a->in[1].dim[1];
    return room_before_c(a) + (dt_cuda_out(a, 2)->data != nullptr ? 0 : dt_cuda_room(a->leaves * S * H));
}

target products_of(const dt_device_args *a)
{
    return {(float *)((char *)a->scratch + dt_cuda_product_scratch(a)), a->in[0].dim[1] * GATES * a->in[1].dim[1]};
}

dt_status lstm_prepare(const dt_device_args *a, void **state_p)
{
    const dt_device_view *h = &a->out[0];
    return !by_product(a, a->in[1].dim[1])
               ? DT_OK
               : dt_cuda_recurrent_forward(a, {(const float *)h->data, h->leaf_stride}, &a->in[1], h->dim[1],
                                           products_of(a).data, state_p);
}

dt_status launch_step(const dt_device_args *a, const forward &f, int t)
{
    const dim3 grid = dt_cuda_step_grid(f.S, f.H, a->leaves);
    if (by_product(a, f.H)) {
        const target z = products_of(a);
        if (t > 0) {
            DT_CUDA_TRY(dt_cuda_recurrent_step(a, f.h.data + (int64_t)(t - 1) * f.S * f.H, &a->in[1], z.data));
        }
        const dim3 flat(dt_cuda_blocks((int64_t)f.S * f.H, CELL_THREADS), a->leaves);
        cells<<<flat, CELL_THREADS, 0, dt_cuda_stream(a)>>>(f, z, t);
    } else if (f.H % 4 == 0 && dt_cuda_is_wide(&a->in[1]) && dt_cuda_is_wide(&a->out[0])) {
        step<4><<<grid, DT_CUDA_STEP_THREADS, 0, dt_cuda_stream(a)>>>(f, t);
    } else {
        step<1><<<grid, DT_CUDA_STEP_THREADS, 0, dt_cuda_stream(a)>>>(f, t);
    }
    return DT_CUDA_LAUNCHED();
}

dt_status lstm(const dt_device_args *a)
{
    const int T = (int)a->in[0].dim[0], S = (int)a->in[0].dim[1], H = (int)a->in[1].dim[1];
    const forward f = {dt_cuda_src<float>(a, 0),
                       dt_cuda_src<float>(a, 1),
                       dt_cuda_src<float>(a, 2),
                       dt_cuda_dst<float>(a, 0),
                       dt_cuda_dst<float>(a, 1),
                       dt_cuda_dst<float>(a, 2),
                       {(float *)((char *)a->scratch + room_before_c(a)), (int64_t)S * H},
                       dt_cuda_rows(a, &a->in[0], 1),
                       T,
                       S,
                       H};
    if (dt_cuda_lstm_fits_cluster(a, H)) {
        return dt_cuda_lstm_cluster(a, &f);
    }
    for (int t = 0; t < T && S > 0; t++) {
        DT_CUDA_TRY(launch_step(a, f, t));
    }
    return DT_OK;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* sequence s, unit j; dh_after: what comes through W_h from the step after */
__device__ void cell_gradient(const backward &b, int leaf, int t, int s, int j, bool is_live, float dh_after)
{
    const int64_t H = b.H, row = (int64_t)t * b.S + s, at = row * H + j, gate = row * GATES * H + j;
    const float *present = b.present.at(leaf), *gates = b.gates.at(leaf);
    float *dz = b.dz.at(leaf) + gate, *held = b.held.at(leaf) + s * H + j, *dc = b.dc.at(leaf) + s * H + j;
    const bool is_last = t == b.T - 1;
    const float dh = is_live ? b.dy.at(leaf)[at] + dh_after + (is_last ? 0.0f : *held) : 0.0f;
    const float dc_after = is_last ? 0.0f : *dc;
    float d[GATES] = {}, dh_held = dh, dc_now = dc_after;
    if (is_live && (present == nullptr || present[row] != 0)) {
        const float *c = b.c.at(leaf) + at;
        for (int q = 0; q < GATES; q++) {
            d[q] = gates[gate + q * H];
        }
        dc_now = dt_cuda_lstm_gradient(d, *c, t > 0 ? c[-b.S * H] : 0.0f, dh, dc_after);
        dh_held = 0;
    }
    for (int q = 0; q < GATES; q++) {
        dz[q * H] = d[q];
    }
    *dc = dc_now;
    *held = dh_held;
}

template <int V> __global__ void __launch_bounds__(DT_CUDA_STEP_THREADS) step_back(backward b, int t)
{
    const int leaf = (int)blockIdx.z, extent = b.rows.extent(leaf);
    const int first = (int)blockIdx.y * DT_CUDA_STEP_TILE, unit = (int)blockIdx.x * DT_CUDA_STEP_TILE;
    float dh[ROWS][COLUMNS] = {};
    if (t < b.T - 1 && first < extent) {
        const float *dz = b.dz.at(leaf) + ((int64_t)(t + 1) * b.S + first) * GATES * b.H;
        dt_cuda_state_product<V>(dz, extent - first, b.wh.at(leaf), unit, GATES * b.H, b.H, dh);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int s = first + dt_cuda_step_row(i), j = unit + 2 * dt_cuda_step_lane() + k;
            if (s < b.S && j < b.H) {
                cell_gradient(b, leaf, t, s, j, s < extent, dh[i][k]);
            }
        }
    }
}

/* The cells of step t alone, after the product dh [S,H]. */
__global__ void cells_back(backward b, target dh, int t)
{
    const int at = (int)(blockIdx.x * CELL_THREADS + threadIdx.x), s = at / b.H, leaf = (int)blockIdx.y;
    if (s < b.S) {
        cell_gradient(b, leaf, t, s, at % b.H, s < b.rows.extent(leaf), t < b.T - 1 ? dh.at(leaf)[at] : 0.0f);
    }
}

/* Behind the room of the product: dc, held, dh of a product; dz where dxw is absent. */
size_t lstm_bwd_scratch(const dt_device_args *a)
{
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2], n = a->leaves * S * H;
    const size_t dz = dt_cuda_out(a, 0)->data != nullptr ? 0 : dt_cuda_room(T * n * GATES);
    return dt_cuda_product_scratch(a) + 3 * dt_cuda_room(n) + dz;
}

backward backward_of(const dt_device_args *a)
{
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2];
    char *room = (char *)a->scratch + dt_cuda_product_scratch(a);
    const size_t state_bytes = dt_cuda_room(a->leaves * S * H);
    backward b = {};
    b.dy = dt_cuda_src<float>(a, 0);
    b.gates = dt_cuda_src<float>(a, 2);
    b.c = dt_cuda_src<float>(a, 3);
    b.wh = dt_cuda_src<float>(a, 4);
    b.present = dt_cuda_src<float>(a, 5);
    b.dc = {(float *)room, S * H};
    b.held = {(float *)(room + state_bytes), S * H};
    b.dz = dt_cuda_dst<float>(a, 0);
    if (b.dz.data == nullptr) {
        b.dz = {(float *)(room + 3 * state_bytes), T * S * GATES * H};
    }
    b.rows = dt_cuda_rows(a, &a->in[0], 1);
    b.T = (int)T;
    b.S = (int)S;
    b.H = (int)H;
    return b;
}

/* dh [S,H], the product of a step */
target product_back_of(const dt_device_args *a, const backward &b)
{
    return {b.held.data + dt_cuda_room(a->leaves * b.held.stride) / sizeof(float), b.held.stride};
}

dt_status lstm_bwd_prepare(const dt_device_args *a, void **state_p)
{
    const backward b = backward_of(a);
    return dt_cuda_recurrent_backward(a, {b.dz.data, b.dz.stride}, &a->in[1], &a->in[4], dt_cuda_out(a, 1),
                                      by_product(a, b.H) ? product_back_of(a, b).data : nullptr, state_p);
}

dt_status launch_step_back(const dt_device_args *a, const backward &b, int t)
{
    const dim3 grid = dt_cuda_step_grid(b.S, b.H, a->leaves);
    if (by_product(a, b.H)) {
        const target dh = product_back_of(a, b);
        if (t < b.T - 1) {
            const float *after = b.dz.data + (int64_t)(t + 1) * b.S * GATES * b.H;
            DT_CUDA_TRY(dt_cuda_recurrent_step(a, after, &a->in[4], dh.data));
        }
        const dim3 flat(dt_cuda_blocks((int64_t)b.S * b.H, CELL_THREADS), a->leaves);
        cells_back<<<flat, CELL_THREADS, 0, dt_cuda_stream(a)>>>(b, dh, t);
    } else if (b.H % 4 == 0 && dt_cuda_is_wide(&a->in[4]) && (uintptr_t)b.dz.data % 16 == 0) {
        step_back<4><<<grid, DT_CUDA_STEP_THREADS, 0, dt_cuda_stream(a)>>>(b, t);
    } else {
        step_back<1><<<grid, DT_CUDA_STEP_THREADS, 0, dt_cuda_stream(a)>>>(b, t);
    }
    return DT_CUDA_LAUNCHED();
}

dt_status lstm_bwd(const dt_device_args *a)
{
    const backward b = backward_of(a);
    const bool in_cluster = dt_cuda_lstm_fits_cluster(a, b.H);
    if (in_cluster) {
        DT_CUDA_TRY(dt_cuda_lstm_cluster_bwd(a, &b));
    }
    for (int t = b.T - 1; t >= 0 && b.S > 0 && !in_cluster; t--) {
        DT_CUDA_TRY(launch_step_back(a, b, t));
    }
    return dt_cuda_recurrent_sum(a, {b.dz.data, b.dz.stride}, &a->in[1]);
}

} // namespace

extern "C" const dt_device_kernel dt_cuda_lstm_rows[] = {
    {DT_OPX_LSTM, 0, "lstm", lstm, lstm_scratch, lstm_prepare, dt_cuda_recurrent_destroy},
    {DT_OPX_LSTM_BWD, 0, "lstm_bwd", lstm_bwd, lstm_bwd_scratch, lstm_bwd_prepare, dt_cuda_recurrent_destroy},
    {},
};
