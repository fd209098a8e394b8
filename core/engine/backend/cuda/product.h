/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products of all leaves by cuBLASLt. The algorithm is chosen once, for the shape of one leaf among
 * DT_CUDA_USUAL_LEAVES of them whatever their number really is, among those that add along k in one piece and that one
 * leaf alone can have: so the bits of a leaf do not depend on how many leaves a launch holds.
 * A trial when a product is created detects algorithms whose results depend on the number of leaves; these multiply one
 * leaf after the other. Products for which cuBLASLt has no algorithm (16-bit factors with k or m of 1, addresses that
 * are multiples of 2 bytes only) use a kernel of product.cu. See cuda.h.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CUDA_PRODUCT_H
#define DTRAIN_CORE_ENGINE_BACKEND_CUDA_PRODUCT_H

#include "engine/backend/cuda/stored.h"

enum { DT_CUDA_USUAL_LEAVES = 8 };

struct
    dt_cuda_factor { /* one matrix in C order, rows packed; the same again leaf_stride elements further for each leaf */
    const void *data;
    int64_t leaf_stride;
    bool is_transposed;
    int32_t dtype;
};

/* c [n,m] = a [n,k] b [k,m], each factor as it is or stored transposed; then bias and relu, where wanted. a and b have
 * one type; sums are f32; c is f32 or has their type, and so has the bias that of c. */
struct dt_cuda_product_desc {
    int64_t n, m, k; /* none is 0 */
    dt_cuda_factor a, b, c;
    bool adds;        /* to what is in c */
    bool has_relu;    /* after the bias */
    const void *bias; /* [m], the same for all leaves; NULL: none */
};

struct dt_cuda_product;

/* Addresses in the desc only give the alignment. Waits for the device and, during the trial, allocates as much of
 * its memory as the tensors have. The result is cached per device for further products of the same kind. */
dt_status dt_cuda_product_create(const dt_device_args *a, const dt_cuda_product_desc *d, dt_cuda_product **out_p);
void dt_cuda_product_destroy(void *product);
/* Bytes that dt_cuda_product_run takes from args.scratch. */
size_t dt_cuda_product_scratch(const dt_device_args *a);
dt_status dt_cuda_product_run(const dt_device_args *args, const dt_cuda_product *p, const void *a, const void *b,
                              void *c, const void *bias, void *scratch);

/* to [leaves, n] = from [leaves, n] f32, rounded to dtype; strides in elements */
dt_status dt_cuda_narrow(void *to, int64_t to_stride, const float *from, int64_t from_stride, int64_t n,
                         uint32_t leaves, int32_t dtype, cudaStream_t s);

/* Zeros the leaves of output i; for sums of nothing. */
dt_status dt_cuda_zero(const dt_device_args *a, uint32_t i);

#endif
