/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/backend/cuda/recurrent.h"

#include <stdlib.h>

void dt_cuda_recurrent_destroy(void *state)
{
    dt_cuda_recurrent *r = (dt_cuda_recurrent *)state;
    if (r != NULL) {
        dt_cuda_product_destroy(r->step);
        dt_cuda_product_destroy(r->sum);
        free(r);
    }
}

namespace
{
dt_status create(dt_cuda_recurrent **out_p)
{
    *out_p = (dt_cuda_recurrent *)calloc(1, sizeof(**out_p));
    return *out_p != NULL ? DT_OK : DT_CUDA_FAIL(DT_ENOMEM, "out of memory for the description of two products");
}

/* Step 1 represents all: their addresses are multiples of its distance from step 0. */
dt_status create_step_product(const dt_device_args *a, const dt_cuda_product_desc *d, dt_cuda_recurrent *r)
{
    return d->n == 0 ? DT_OK : dt_cuda_product_create(a, d, &r->step);
}

dt_status create_weight_gradient(const dt_device_args *a, dt_cuda_sequence dz, const dt_device_view *h,
                                 const dt_device_view *dwh, dt_cuda_recurrent *r)
{
    const int64_t T = h->dim[0], S = h->dim[1];
    if (dwh->data == NULL || T < 2 || S == 0) {
        return DT_OK;
    }
    dt_cuda_product_desc d = {};
    d.k = (T - 1) * S;
    d.n = dwh->dim[0];
    d.m = dwh->dim[1];
    d.a = {dt_cuda_element(dz.data, S * d.n, dz.dtype), dz.leaf_stride, true, dz.dtype};
    d.b = {h->data, h->leaf_stride, false, h->dtype};
    d.c = {dwh->data, dwh->leaf_stride, false, dwh->dtype};
    d.adds = dwh->accum != 0;
    return dt_cuda_product_create(a, &d, &r->sum);
}

} // namespace

dt_status dt_cuda_recurrent_forward(const dt_device_args *a, void **state_p)
{
    const dt_device_view *wh = &a->in[1], *h = &a->out[0];
    const dt_cuda_ptr<float> z = dt_cuda_step_products(a);
    dt_cuda_recurrent *r;
    DT_CUDA_TRY(create(&r));
    dt_cuda_product_desc d = {};
    d.n = h->dim[1];
    d.m = wh->dim[0];
    d.k = wh->dim[1];
    d.a = {dt_cuda_element(h->data, d.n * d.k, h->dtype), h->leaf_stride, false, h->dtype};
    d.b = {wh->data, 0, true, wh->dtype};
    d.c = {z.data, z.stride, false, DT_F32};
    const dt_status st = create_step_product(a, &d, r);
    if (st < 0) {
        dt_cuda_recurrent_destroy(r);
        return st;
    }
    *state_p = r;
    return DT_OK;
}

dt_status dt_cuda_recurrent_backward(const dt_device_args *a, dt_cuda_sequence dz, const dt_device_view *h,
                                     const dt_device_view *wh, const dt_device_view *dwh, float *dh, void **state_p)
{
    dt_cuda_recurrent *r;
    DT_CUDA_TRY(create(&r));
    dt_cuda_product_desc d = {};
    d.n = h->dim[1];
    d.m = wh->dim[1];
    d.k = wh->dim[0];
    d.a = {dt_cuda_element(dz.data, d.n * d.k, dz.dtype), dz.leaf_stride, false, dz.dtype};
    d.b = {wh->data, 0, false, wh->dtype};
    d.c = {dh, d.n * d.m, false, DT_F32};
    dt_status st = dh != NULL ? create_step_product(a, &d, r) : DT_OK;
    if (st == DT_OK) {
        st = create_weight_gradient(a, dz, h, dwh, r);
    }
    if (st < 0) {
        dt_cuda_recurrent_destroy(r);
        return st;
    }
    *state_p = r;
    return DT_OK;
}

dt_status dt_cuda_recurrent_step(const dt_device_args *a, const void *x, const dt_device_view *wh, float *out)
{
    return dt_cuda_product_run(a, ((const dt_cuda_recurrent *)a->state)->step, x, wh->data, out, NULL, a->scratch);
}

dt_status dt_cuda_recurrent_weight_gradient(const dt_device_args *a, dt_cuda_sequence dz, const dt_device_view *h)
{
    const dt_device_view *dwh = dt_cuda_out(a, 1);
    const dt_cuda_product *sum = ((const dt_cuda_recurrent *)a->state)->sum;
    if (sum != NULL) {
        return dt_cuda_product_run(a, sum, dt_cuda_element(dz.data, h->dim[1] * dwh->dim[0], dz.dtype), h->data,
                                   dwh->data, NULL, a->scratch);
    }
    return dwh->data == NULL || dwh->accum != 0 ? DT_OK : dt_cuda_zero(a, 1);
}
