/* SPDX-License-Identifier: Apache-2.0
 *
 * GRU over a sequence, built like lstm.cu. See recurrent.h and cuda.h; backend/ref/gru.c has the plain loops and the
 * formulas.
 */
#include "backend/cuda/columns.h"
#include "backend/cuda/recurrent.h"

namespace
{

enum { GATES = 3, KEPT = 4, ROWS = DT_CUDA_STEP_ROWS, COLUMNS = DT_CUDA_STEP_COLUMNS, CELL_THREADS = 256 };

using source = dt_cuda_ptr<const float>;
using target = dt_cuda_ptr<float>;

/* ---- forward ----------------------------------------------------------------------------------------------------- */

struct forward {
    source xw, wh, bh, present;
    target h, gates;
    dt_cuda_span rows;
    int S, H;
};

/* sequence s, unit j, with the three products u; where nobody is, the state is held, beyond the live size it is zero */
__device__ void cell(const forward &f, int leaf, int t, int s, int j, bool is_live, const float u[GATES])
{
    const int64_t H = f.H, row = (int64_t)t * f.S + s, at = row * H + j;
    const float *present = f.present.at(leaf), *x = f.xw.at(leaf) + row * GATES * H + j, *b = f.bh.at(leaf) + j;
    float *h = f.h.at(leaf), *gates = f.gates.at(leaf);
    float gate[KEPT] = {}, h_now = t == 0 ? 0.0f : h[at - f.S * H];
    if (is_live && (present == nullptr || present[row] != 0)) {
        gate[3] = u[2] + b[2 * H];
        gate[0] = dt_cuda_sigmoid(x[0] + (u[0] + b[0]));
        gate[1] = dt_cuda_sigmoid(x[H] + (u[1] + b[H]));
        gate[2] = tanhf(x[2 * H] + gate[0] * gate[3]);
        h_now = (1 - gate[1]) * gate[2] + gate[1] * h_now;
    }
    if (gates != nullptr) {
        for (int q = 0; q < KEPT; q++) {
            gates[(row * KEPT + q) * H + j] = gate[q];
        }
    }
    h[at] = h_now;
}

template <int V> __global__ void __launch_bounds__(DT_CUDA_STEP_THREADS) step(forward f, int t)
{
    const int leaf = (int)blockIdx.z, extent = f.rows.extent(leaf);
    const int first = (int)blockIdx.y * DT_CUDA_STEP_TILE, unit = (int)blockIdx.x * DT_CUDA_STEP_TILE;
    float u[GATES][ROWS][COLUMNS] = {};
    if (t > 0 && first < extent) { /* the same for the whole block */
        const float *h_before = f.h.at(leaf) + ((int64_t)(t - 1) * f.S + first) * f.H;
        dt_cuda_gate_products<GATES, V>(h_before, extent - first, f.wh.at(leaf), unit, f.H, u);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) {
            const int s = first + dt_cuda_step_row(i), j = unit + dt_cuda_step_lane() + 16 * k;
            if (s < f.S && j < f.H) {
                const float products[GATES] = {u[0][i][k], u[1][i][k], u[2][i][k]};
                cell(f, leaf, t, s, j, s < extent, products);
            }
        }
    }
}

/* The cells of step t alone, after the product z [S,3H]. */
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
    (void)H;
    return dt_cuda_steps_by_product(a);
}

/* Where steps go by product: its room, then u [S,3H]. */
size_t gru_scratch(const dt_device_args *a)
{
    const int64_t S = a->in[0].dim[1], H = a->in[1].dim[1];
    return by_product(a, H) ? dt_cuda_product_scratch(a) + dt_cuda_room(a->leaves * S * GATES * H) : 0;
}

target products_of(const dt_device_args *a)
{
    return {(float *)((char *)a->scratch + dt_cuda_product_scratch(a)), a->in[0].dim[1] * GATES * a->in[1].dim[1]};
}

dt_status gru_prepare(const dt_device_args *a, void **state_p)
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
        const target u = products_of(a);
        if (t > 0) {
            DT_CUDA_TRY(dt_cuda_recurrent_step(a, f.h.data + (int64_t)(t - 1) * f.S * f.H, &a->in[1], u.data));
        }
        const dim3 flat(dt_cuda_blocks((int64_t)f.S * f.H, CELL_THREADS), a->leaves);
        cells<<<flat, CELL_THREADS, 0, dt_cuda_stream(a)>>>(f, u, t);
    } else if (f.H % 4 == 0 && dt_cuda_is_wide(&a->in[1]) && dt_cuda_is_wide(&a->out[0])) {
        step<4><<<grid, DT_CUDA_STEP_THREADS, 0, dt_cuda_stream(a)>>>(f, t);
    } else {
        step<1><<<grid, DT_CUDA_STEP_THREADS, 0, dt_cuda_stream(a)>>>(f, t);
    }
    return DT_CUDA_LAUNCHED();
}

dt_status gru(const dt_device_args *a)
{
    const int T = (int)a->in[0].dim[0], S = (int)a->in[0].dim[1], H = (int)a->in[1].dim[1];
    const forward f = {dt_cuda_src<float>(a, 0),
                       dt_cuda_src<float>(a, 1),
                       dt_cuda_src<float>(a, 2),
                       dt_cuda_src<float>(a, 3),
                       dt_cuda_dst<float>(a, 0),
                       dt_cuda_dst<float>(a, 1),
                       dt_cuda_rows(a, &a->in[0], 1),
                       S,
                       H};
    for (int t = 0; t < T && S > 0; t++) {
        DT_CUDA_TRY(launch_step(a, f, t));
    }
    return DT_OK;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

struct backward {
    source dy, h, gates, wh, present;
    target dxw; /* [T,S,3H] or absent */
    target dv;  /* [T,S,3H] in scratch: gradients of W h + b; those of n differ from dxw's */
    target dh;  /* [S,H] in scratch: carried from the step after, without what comes through W */
    dt_cuda_span rows;
    int T, S, H;
};

/* sequence s, unit j; dh_after: what comes through W from the step after */
__device__ void cell_gradient(const backward &b, int leaf, int t, int s, int j, bool is_live, float dh_after)
{
    const int64_t H = b.H, row = (int64_t)t * b.S + s, at = row * H + j, out = row * GATES * H + j;
    const float *present = b.present.at(leaf), *gate = b.gates.at(leaf) + row * KEPT * H + j, *h = b.h.at(leaf);
    float *carried = b.dh.at(leaf) + s * H + j, *dxw = b.dxw.at(leaf), *dv = b.dv.at(leaf) + out;
    float dh = is_live ? b.dy.at(leaf)[at] + dh_after + (t == b.T - 1 ? 0.0f : *carried) : 0.0f;
    float dr = 0, dz = 0, dn = 0, du = 0;
    if (is_live && (present == nullptr || present[row] != 0)) {
        const float r = gate[0], z = gate[H], n = gate[2 * H], u = gate[3 * H];
        dn = dh * (1 - z) * (1 - n * n);
        dr = dn * u * (r * (1 - r));
        dz = dh * ((t > 0 ? h[at - b.S * H] : 0.0f) - n) * (z * (1 - z));
        du = dn * r;
        dh *= z;
    }
    if (dxw != nullptr) {
        dxw[out] = dr;
        dxw[out + H] = dz;
        dxw[out + 2 * H] = dn;
    }
    dv[0] = dr;
    dv[H] = dz;
    dv[2 * H] = du;
    *carried = dh;
}

template <int V> __global__ void __launch_bounds__(DT_CUDA_STEP_THREADS) step_back(backward b, int t)
{
    const int leaf = (int)blockIdx.z, extent = b.rows.extent(leaf);
    const int first = (int)blockIdx.y * DT_CUDA_STEP_TILE, unit = (int)blockIdx.x * DT_CUDA_STEP_TILE;
    float dh[ROWS][COLUMNS] = {};
    if (t < b.T - 1 && first < extent) {
        const float *dv = b.dv.at(leaf) + ((int64_t)(t + 1) * b.S + first) * GATES * b.H;
        dt_cuda_state_product<V>(dv, extent - first, b.wh.at(leaf), unit, GATES * b.H, b.H, dh);
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

/* dbh = sum over all steps and sequences of dv   [rows,M] -> [M] */
__global__ void sum_bias(target dv, target dbh, int rows, int M, bool adds)
{
    const int leaf = (int)blockIdx.y, m = (int)(32 * blockIdx.x + threadIdx.x);
    const float *from = dv.at(leaf);
    const double sum = dt_cuda_column_sum(rows, [&](int r) { return m < M ? from[(int64_t)r * M + m] : 0.0f; });
    if (threadIdx.y == 0 && m < M) {
        float *to = dbh.at(leaf) + m;
        *to = (float)(adds ? *to + sum : sum);
    }
}

/* Behind the room of the product: dh carried, dh of a product, dv. */
size_t gru_bwd_scratch(const dt_device_args *a)
{
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2], n = a->leaves * S * H;
    return dt_cuda_product_scratch(a) + 2 * dt_cuda_room(n) + dt_cuda_room(T * n * GATES);
}

backward backward_of(const dt_device_args *a)
{
    const int64_t T = a->in[0].dim[0], S = a->in[0].dim[1], H = a->in[0].dim[2];
    char *room = (char *)a->scratch + dt_cuda_product_scratch(a);
    backward b = {};
    b.dy = dt_cuda_src<float>(a, 0);
    b.h = dt_cuda_src<float>(a, 1);
    b.gates = dt_cuda_src<float>(a, 2);
    b.wh = dt_cuda_src<float>(a, 3);
    b.present = dt_cuda_src<float>(a, 4);
    b.dxw = dt_cuda_dst<float>(a, 0);
    b.dh = {(float *)room, S * H};
    b.dv = {(float *)(room + 2 * dt_cuda_room(a->leaves * S * H)), T * S * GATES * H};
    b.rows = dt_cuda_rows(a, &a->in[0], 1);
    b.T = (int)T;
    b.S = (int)S;
    b.H = (int)H;
    return b;
}

/* dh [S,H], the product of a step */
target product_back_of(const dt_device_args *a, const backward &b)
{
    return {b.dh.data + dt_cuda_room(a->leaves * b.dh.stride) / sizeof(float), b.dh.stride};
}

dt_status gru_bwd_prepare(const dt_device_args *a, void **state_p)
{
    const backward b = backward_of(a);
    return dt_cuda_recurrent_backward(a, {b.dv.data, b.dv.stride}, &a->in[1], &a->in[3], dt_cuda_out(a, 1),
                                      by_product(a, b.H) ? product_back_of(a, b).data : nullptr, state_p);
}

dt_status launch_step_back(const dt_device_args *a, const backward &b, int t)
{
    const dim3 grid = dt_cuda_step_grid(b.S, b.H, a->leaves);
    if (by_product(a, b.H)) {
        const target dh = product_back_of(a, b);
        if (t < b.T - 1) {
            const float *after = b.dv.data + (int64_t)(t + 1) * b.S * GATES * b.H;
            DT_CUDA_TRY(dt_cuda_recurrent_step(a, after, &a->in[3], dh.data));
        }
        const dim3 flat(dt_cuda_blocks((int64_t)b.S * b.H, CELL_THREADS), a->leaves);
        cells_back<<<flat, CELL_THREADS, 0, dt_cuda_stream(a)>>>(b, dh, t);
    } else if (b.H % 4 == 0 && dt_cuda_is_wide(&a->in[3])) {
        step_back<4><<<grid, DT_CUDA_STEP_THREADS, 0, dt_cuda_stream(a)>>>(b, t);
    } else {
        step_back<1><<<grid, DT_CUDA_STEP_THREADS, 0, dt_cuda_stream(a)>>>(b, t);
    }
    return DT_CUDA_LAUNCHED();
}

dt_status gru_bwd(const dt_device_args *a)
{
    const backward b = backward_of(a);
    const dt_device_view *dbh = dt_cuda_out(a, 2);
    for (int t = b.T - 1; t >= 0 && b.S > 0; t--) {
        DT_CUDA_TRY(launch_step_back(a, b, t));
    }
    if (dbh->data != nullptr) {
        const int M = GATES * b.H;
        const dim3 columns(dt_cuda_blocks(M, 32), a->leaves), block(32, DT_CUDA_COLUMN_LANES);
        sum_bias<<<columns, block, 0, dt_cuda_stream(a)>>>(b.dv, dt_cuda_dst<float>(a, 2), b.T * b.S, M,
                                                           dbh->accum != 0);
        DT_CUDA_TRY(DT_CUDA_LAUNCHED());
    }
    return dt_cuda_recurrent_sum(a, {b.dv.data, b.dv.stride}, &a->in[1]);
}

} // namespace

extern "C" const dt_device_kernel dt_cuda_gru_rows[] = {
    {DT_OPX_GRU, 0, "gru", gru, gru_scratch, gru_prepare, dt_cuda_recurrent_destroy},
    {DT_OPX_GRU_BWD, 0, "gru_bwd", gru_bwd, gru_bwd_scratch, gru_bwd_prepare, dt_cuda_recurrent_destroy},
    {},
};
