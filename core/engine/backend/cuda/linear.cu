/* SPDX-License-Identifier: Apache-2.0
 *
 * LINEAR and its two products backward, by cuBLASLt: bias and relu in its epilogue, other functions in a pass of their
 * own. Products run at capacity: what is beyond the live rows is finite forward and zero backward. See cuda.h;
 * engine/backend/ref/linear.c has the plain loops.
 */
#include "engine/backend/cuda/product.h"

namespace
{

enum { THREADS = 256 };

bool fits_epilogue(int64_t fn)
{
    return fn == 0 || fn == DT_FN_RELU;
}

/* The two factors of a product have one type: where one is stored in half, the other, if it is f32, is rounded into
 * scratch first, after the space of the product (features of the data, gradients of a loss). */
struct rounding {
    int32_t dtype; /* of the factors */
    bool is_done[2];
    size_t at[2], bytes; /* in scratch */
};

uint32_t count_copies(const dt_device_args *a, const dt_device_view *v)
{
    return v->leaf_stride != 0 ? a->leaves : 1;
}

/* of inputs 0 and 1 */
rounding plan_rounding(const dt_device_args *a)
{
    rounding r = {a->in[0].dtype != DT_F32 ? a->in[0].dtype : a->in[1].dtype, {}, {}, dt_cuda_product_scratch(a)};
    for (int i = 0; i < 2; i++) {
        r.is_done[i] = a->in[i].dtype != r.dtype;
        r.at[i] = r.bytes;
        r.bytes +=
            r.is_done[i] ? dt_cuda_aligned_bytes_of(dt_cuda_count(&a->in[i]) * count_copies(a, &a->in[i]), r.dtype) : 0;
    }
    return r;
}

size_t linear_scratch(const dt_device_args *a)
{
    return plan_rounding(a).bytes;
}

/* input i as the product reads it */
dt_cuda_factor make_factor(const dt_device_args *a, const rounding &r, int i, bool is_transposed)
{
    const dt_device_view *v = &a->in[i];
    if (!r.is_done[i]) {
        return {v->data, v->leaf_stride, is_transposed, v->dtype};
    }
    return {(char *)a->scratch + r.at[i], v->leaf_stride != 0 ? dt_cuda_count(v) : 0, is_transposed, r.dtype};
}

dt_cuda_factor make_result(const dt_device_args *a)
{
    return {a->out[0].data, a->out[0].leaf_stride, false, a->out[0].dtype};
}

/* out = left right, inputs of these numbers */
dt_status run_product(const dt_device_args *a, int left, int right, const void *bias)
{
    const rounding r = plan_rounding(a);
    for (int i = 0; i < 2; i++) {
        const dt_device_view *v = &a->in[i];
        if (r.is_done[i]) {
            DT_CUDA_TRY(dt_cuda_narrow((char *)a->scratch + r.at[i], dt_cuda_count(v), (const float *)v->data,
                                       v->leaf_stride, dt_cuda_count(v), count_copies(a, v), r.dtype,
                                       dt_cuda_stream(a)));
        }
    }
    return dt_cuda_product_run(a, (const dt_cuda_product *)a->state, make_factor(a, r, left, false).data,
                               make_factor(a, r, right, false).data, a->out[0].data, bias, a->scratch);
}

/* out [R,m] = in [R,k] w, or w^T; w is input 1 */
dt_cuda_product_desc describe_product(const dt_device_args *a, bool is_transposed)
{
    const dt_device_view *in = &a->in[0], *w = &a->in[1];
    const rounding r = plan_rounding(a);
    dt_cuda_product_desc d = {};
    d.k = w->dim[is_transposed ? 1 : 0];
    d.m = w->dim[is_transposed ? 0 : 1];
    d.n = dt_cuda_rows(a, in, 1).R;
    d.a = make_factor(a, r, 0, false);
    d.b = make_factor(a, r, 1, is_transposed);
    d.c = make_result(a);
    return d;
}

/* ---- y = fn(x w^T + b)   x [R,K]  w [M,K]  b [M] or absent  y [R,M] ---------------------------------------------- */

dt_status linear_prepare(const dt_device_args *a, void **state_p)
{
    dt_cuda_product_desc d = describe_product(a, true);
    d.bias = dt_cuda_in(a, 2)->data;
    d.has_relu = a->attr->i[0] == DT_FN_RELU;
    return d.n == 0 ? DT_OK : dt_cuda_product_create(a, &d, (dt_cuda_product **)state_p);
}

/* y = fn(y); zero where not live, since not every function of any finite value is finite */
__global__ void apply_activation(dt_cuda_floats y, dt_cuda_span rows, int n, int M, int fn, float f0)
{
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x), leaf = (int)blockIdx.y;
    if (i < n) {
        y.put(leaf, i, rows.has(i / M, rows.extent(leaf)) ? dt_cuda_unary(fn, f0, y.get(leaf, i)) : 0.0f);
    }
}

dt_status linear(const dt_device_args *a)
{
    if (a->state == nullptr) {
        return DT_OK; /* no rows */
    }
    DT_CUDA_TRY(run_product(a, 0, 1, dt_cuda_in(a, 2)->data));
    if (fits_epilogue(a->attr->i[0])) {
        return DT_OK;
    }
    const dt_cuda_span rows = dt_cuda_rows(a, &a->out[0], 1);
    const int n = rows.R * rows.D;
    const dim3 grid(dt_cuda_blocks(n, THREADS), a->leaves);
    apply_activation<<<grid, THREADS, 0, dt_cuda_stream(a)>>>(dt_cuda_out_floats(a, 0), rows, n, rows.D,
                                                              (int)a->attr->i[0], (float)a->attr->f[0]);
    return DT_CUDA_LAUNCHED();
}

/* ---- dx = dy w   dy [R,M]  w [M,K]  dx [R,K] --------------------------------------------------------------------- */

dt_status linear_dx_prepare(const dt_device_args *a, void **state_p)
{
    const dt_cuda_product_desc d = describe_product(a, false);
    return d.n == 0 ? DT_OK : dt_cuda_product_create(a, &d, (dt_cuda_product **)state_p);
}

dt_status linear_dx(const dt_device_args *a)
{
    return a->state == nullptr ? DT_OK : run_product(a, 0, 1, nullptr);
}

/* ---- dw = dy^T x   x [R,K]  dy [R,M]  dw [M,K], one for each leaf ------------------------------------------------ */

dt_status linear_dw_prepare(const dt_device_args *a, void **state_p)
{
    const dt_device_view *dy = &a->in[1], *dw = &a->out[0];
    const rounding r = plan_rounding(a);
    dt_cuda_product_desc d = {};
    d.k = dt_cuda_rows(a, dy, 1).R;
    d.n = dw->dim[0];
    d.m = dw->dim[1];
    d.a = make_factor(a, r, 1, true);
    d.b = make_factor(a, r, 0, false);
    d.c = make_result(a);
    d.adds = dw->accum != 0;
    return d.k == 0 ? DT_OK : dt_cuda_product_create(a, &d, (dt_cuda_product **)state_p);
}

dt_status linear_dw(const dt_device_args *a)
{
    if (a->state != nullptr) {
        return run_product(a, 1, 0, nullptr);
    }
    return a->out[0].accum != 0 ? DT_OK : dt_cuda_zero(a, 0); /* a sum of no rows */
}

} // namespace

DT_CUDA_KERNEL_WITH(LINEAR, linear, linear, linear_scratch, linear_prepare, dt_cuda_product_destroy);
DT_CUDA_KERNEL_WITH(LINEAR_DX, linear_dx, linear_dx, linear_scratch, linear_dx_prepare, dt_cuda_product_destroy);
DT_CUDA_KERNEL_WITH(LINEAR_DW, linear_dw, linear_dw, linear_scratch, linear_dw_prepare, dt_cuda_product_destroy);
