/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of two elements and a choice between them; b may be a row vector, one value per row or one number. See
 * cuda.h; engine/backend/ref/binary.c has the plain loops.
 */
#include "engine/backend/cuda/stored.h"

namespace
{

enum { THREADS = 256 };
enum spread { SAME, ROW, COLUMN, NUMBER };

spread broadcast_kind(const dt_device_view *a, const dt_device_view *b)
{
    const bool is_row = b->rank < a->rank, is_one = dt_cuda_last_dim(b) != dt_cuda_last_dim(a);
    return is_row ? (is_one ? NUMBER : ROW) : is_one ? COLUMN : SAME;
}

/* element of b next to element i of a [R,D] */
__device__ int place_of_b(spread s, int i, int D)
{
    return s == SAME ? i : s == ROW ? i % D : s == COLUMN ? i / D : 0;
}

__device__ float binary_value(int fn, float a, float b)
{
    switch (fn) {
    case DT_BIN_ADD:
        return a + b;
    case DT_BIN_SUB:
        return a - b;
    case DT_BIN_MUL:
        return a * b;
    case DT_BIN_DIV:
        return a / b;
    case DT_BIN_MIN:
        return dt_cuda_least(a, b);
    case DT_BIN_MAX:
        return dt_cuda_greatest(a, b);
    default:
        break;
    }
    if (isnan(a) || isnan(b)) {
        return isnan(a) ? a : b;
    }
    const bool is_true = fn == DT_BIN_LESS            ? a < b
                         : fn == DT_BIN_LESS_EQUAL    ? a <= b
                         : fn == DT_BIN_GREATER       ? a > b
                         : fn == DT_BIN_GREATER_EQUAL ? a >= b
                                                      : a == b;
    return is_true ? 1.0f : 0.0f;
}

/* a [R,D], b [R,D] or [D] or [R,1] or [1] -> y [R,D]; y may be a or b. V elements a thread, all of one row. */
template <int V>
__global__ void apply_binary(dt_cuda_floats a, dt_cuda_floats b, dt_cuda_floats y, dt_cuda_span rows, int n, int D,
                             int fn, spread s)
{
    const int i = V * (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i >= n) {
        return;
    }
    dt_cuda_pack<V> p = {};
    if (rows.has(i, rows.extent(leaf))) {
        const int at = place_of_b(s, i, D);
        dt_cuda_pack<V> right;
        if (s == SAME || s == ROW) {
            right = b.load<V>(leaf, at);
        } else {
            for (int v = 0; v < V; v++) {
                right.x[v] = b.get(leaf, at);
            }
        }
        p = a.load<V>(leaf, i);
        for (int v = 0; v < V; v++) {
            p.x[v] = binary_value(fn, p.x[v], right.x[v]);
        }
    }
    y.store<V>(leaf, i, p);
}

dt_status binary(const dt_device_args *a)
{
    const dt_device_view *va = &a->in[0], *vb = &a->in[1];
    const dt_cuda_span rows = dt_cuda_rows(a, va, 0);
    const int D = (int)dt_cuda_last_dim(va);
    const spread s = broadcast_kind(va, vb);
    if (rows.R == 0) {
        return DT_OK;
    }
    const bool is_wide = dt_cuda_is_in_fours(rows) && D % 4 == 0 && dt_cuda_is_vectorisable(va) &&
                         (s == COLUMN || s == NUMBER || dt_cuda_is_vectorisable(vb)) &&
                         dt_cuda_is_vectorisable(&a->out[0]);
    const dim3 grid(dt_cuda_blocks(rows.R, THREADS * (is_wide ? 4 : 1)), a->leaves);
    const auto kernel = is_wide ? apply_binary<4> : apply_binary<1>;
    kernel<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_in_floats(a, 0), dt_cuda_in_floats(a, 1),
                                                    dt_cuda_out_floats(a, 0), rows, rows.R, D, (int)a->attr->i[0], s);
    return DT_CUDA_LAUNCHED();
}

/* dy to the one of a and b that was taken, half each where both are equal; da, db [R,D] or NULL */
__global__ void route_gradient(dt_cuda_ptr<const float> dy, dt_cuda_ptr<const float> a, dt_cuda_ptr<const float> b,
                               dt_cuda_ptr<float> da, dt_cuda_ptr<float> db, dt_cuda_span rows, int n, int D,
                               bool is_min, spread s)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i >= n) {
        return;
    }
    float left = 0, right = 0;
    if (rows.has(i, rows.extent(leaf))) {
        const float u = a.at(leaf)[i], v = b.at(leaf)[place_of_b(s, i, D)];
        const float part = u < v ? (is_min ? 1.0f : 0.0f) : v < u ? (is_min ? 0.0f : 1.0f) : 0.5f;
        left = part * dy.at(leaf)[i];
        right = (1 - part) * dy.at(leaf)[i];
    }
    if (da.data != nullptr) {
        da.at(leaf)[i] = left;
    }
    if (db.data != nullptr) {
        db.at(leaf)[i] = right;
    }
}

dt_status extreme_bwd(const dt_device_args *a)
{
    const dt_device_view *va = &a->in[1], *vb = &a->in[2];
    const dt_cuda_span rows = dt_cuda_rows(a, va, 0);
    const int D = (int)dt_cuda_last_dim(va);
    const spread s = broadcast_kind(va, vb);
    if (rows.R == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks(rows.R, THREADS), a->leaves);
    route_gradient<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(
        dt_cuda_src<float>(a, 0), dt_cuda_src<float>(a, 1), dt_cuda_src<float>(a, 2), dt_cuda_dst<float>(a, 0),
        dt_cuda_dst<float>(a, 1), rows, rows.R, D, a->attr->i[0] == DT_BIN_MIN, s);
    return DT_CUDA_LAUNCHED();
}

/* a where c is not 0, else b, 0 for NULL, NaN where c is; y [R,D] */
__global__ void select_elements(dt_cuda_ptr<const float> c, dt_cuda_ptr<const float> a, dt_cuda_ptr<const float> b,
                                dt_cuda_ptr<float> y, dt_cuda_span rows, int n, int D, spread s)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i >= n) {
        return;
    }
    float chosen = 0;
    if (rows.has(i, rows.extent(leaf))) {
        const float when = c.at(leaf)[place_of_b(s, i, D)];
        const dt_cuda_ptr<const float> from = when != 0 ? a : b;
        chosen = isnan(when) ? when : from.data != nullptr ? from.at(leaf)[i] : 0.0f;
    }
    y.at(leaf)[i] = chosen;
}

dt_status select_either(const dt_device_args *a)
{
    const dt_device_view *vy = &a->out[0];
    const dt_cuda_span rows = dt_cuda_rows(a, vy, 0);
    if (rows.R == 0) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks(rows.R, THREADS), a->leaves);
    select_elements<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(
        dt_cuda_src<float>(a, 0), dt_cuda_src<float>(a, 1), dt_cuda_src<float>(a, 2), dt_cuda_dst<float>(a, 0), rows,
        rows.R, (int)dt_cuda_last_dim(vy), broadcast_kind(vy, &a->in[0]));
    return DT_CUDA_LAUNCHED();
}

} // namespace

DT_CUDA_KERNEL(SELECT, select, select_either);
DT_CUDA_KERNEL(BINARY, binary, binary);
DT_CUDA_KERNEL(EXTREME_BWD, extreme_bwd, extreme_bwd);
