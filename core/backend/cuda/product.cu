/* SPDX-License-Identifier: Apache-2.0
 *
 * See product.h. cuBLASLt counts in columns: what lies here as c [n,m] in C order is its matrix of m rows and n
 * columns, so it is asked for c^T = b^T a^T.
 */
#include "backend/cuda/product.h"
#include "backend/cuda/table.h"

#include <stdlib.h>

struct dt_cuda_product {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t left, right, result; /* b, a and c of the desc */
    int64_t stride[3];                          /* bytes from leaf to leaf, of the same */
    cublasLtMatmulAlgo_t algo;
    float beta;
    bool has_bias;
    bool is_at_once; /* all leaves in one call; otherwise one after the other */
};

namespace
{

enum { MIB = 1 << 20, FULL_ALIGNMENT = 256, CANDIDATES = 16 };

cudaDataType_t data_type(int32_t dtype)
{
    return dtype == DT_BF16 ? CUDA_R_16BF : dtype == DT_F16 ? CUDA_R_16F : CUDA_R_32F;
}

/* What is stored in half need not be rounded any more. */
cublasComputeType_t compute_type(uint32_t math, int32_t dtype)
{
    if (dtype != DT_F32) {
        return CUBLAS_COMPUTE_32F;
    }
    switch (math) {
    case DT_DEVICE_MATH_TF32:
        return CUBLAS_COMPUTE_32F_FAST_TF32;
    case DT_DEVICE_MATH_BF16:
        return CUBLAS_COMPUTE_32F_FAST_16BF;
    case DT_DEVICE_MATH_F16:
        return CUBLAS_COMPUTE_32F_FAST_16F;
    default:
        return CUBLAS_COMPUTE_32F;
    }
}

/* of every leaf's matrix, at most FULL_ALIGNMENT bytes */
uint32_t alignment(const dt_cuda_factor *f)
{
    const size_t size = dt_cuda_element_bytes(f->dtype);
    uint32_t bytes = FULL_ALIGNMENT;
    while (bytes > size && ((uintptr_t)f->data % bytes != 0 || (uint64_t)f->leaf_stride * size % bytes != 0)) {
        bytes /= 2;
    }
    return bytes;
}

/* A matrix of rows x columns in C order is one of `columns` rows to cuBLASLt. */
dt_status create_layout(const dt_cuda_factor *f, int64_t rows, int64_t columns, cublasLtMatrixLayout_t *out_p)
{
    const int64_t first = f->is_transposed ? rows : columns, second = f->is_transposed ? columns : rows;
    const int32_t leaves = DT_CUDA_USUAL_LEAVES;
    DT_CUBLAS(cublasLtMatrixLayoutCreate(out_p, data_type(f->dtype), (uint64_t)first, (uint64_t)second, first));
    DT_CUBLAS(cublasLtMatrixLayoutSetAttribute(*out_p, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &leaves, sizeof(leaves)));
    DT_CUBLAS(cublasLtMatrixLayoutSetAttribute(*out_p, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &f->leaf_stride,
                                               sizeof(f->leaf_stride)));
    return DT_OK;
}

dt_status create_op(const dt_device_args *a, const dt_cuda_product_desc *d, cublasLtMatmulDesc_t *out_p)
{
    const int32_t left = d->b.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t right = d->a.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = d->bias != NULL && d->has_relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                              : d->bias != NULL              ? CUBLASLT_EPILOGUE_BIAS
                              : d->has_relu                  ? CUBLASLT_EPILOGUE_RELU
                                                             : CUBLASLT_EPILOGUE_DEFAULT;
    DT_CUBLAS(cublasLtMatmulDescCreate(out_p, compute_type(a->math, d->a.dtype), CUDA_R_32F));
    DT_CUBLAS(cublasLtMatmulDescSetAttribute(*out_p, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left)));
    DT_CUBLAS(cublasLtMatmulDescSetAttribute(*out_p, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof(right)));
    DT_CUBLAS(cublasLtMatmulDescSetAttribute(*out_p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
    if (d->bias != NULL) {
        DT_CUBLAS(cublasLtMatmulDescSetAttribute(*out_p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &d->bias, sizeof(d->bias)));
    }
    return DT_OK;
}

dt_status set_preference(cublasLtMatmulPreference_t p, const dt_device_args *a, const dt_cuda_product_desc *d)
{
    const uint64_t bytes = dt_cuda_product_scratch(a);
    const uint32_t in_one_piece = CUBLASLT_REDUCTION_SCHEME_NONE;
    const uint32_t left = alignment(&d->b), right = alignment(&d->a), result = alignment(&d->c);
    DT_CUBLAS(cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)));
    DT_CUBLAS(cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &in_one_piece,
                                                   sizeof(in_one_piece)));
    DT_CUBLAS(cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &left, sizeof(left)));
    DT_CUBLAS(
        cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &right, sizeof(right)));
    DT_CUBLAS(
        cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &result, sizeof(result)));
    DT_CUBLAS(
        cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &result, sizeof(result)));
    return DT_OK;
}

/* Is an algorithm possible for this number of leaves, with the scratch there is? The layouts keep the number. */
dt_status fits(const dt_device_args *a, const dt_cuda_product *p, const cublasLtMatmulAlgo_t *algo, uint32_t leaves,
               bool *fits_p)
{
    const int32_t n = (int32_t)leaves;
    for (cublasLtMatrixLayout_t layout : {p->left, p->right, p->result}) {
        DT_CUBLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof(n)));
    }
    cublasLtMatmulHeuristicResult_t r = {};
    const cublasStatus_t e =
        cublasLtMatmulAlgoCheck(dt_cuda_blas(a->device), p->op, p->left, p->right, p->result, p->result, algo, &r);
    *fits_p =
        e == CUBLAS_STATUS_SUCCESS && r.state == CUBLAS_STATUS_SUCCESS && r.workspaceSize <= dt_cuda_product_scratch(a);
    return DT_OK;
}

/* Those for DT_CUDA_USUAL_LEAVES, the fastest first. */
dt_status candidates(const dt_device_args *a, const dt_cuda_product_desc *d, const dt_cuda_product *p,
                     cublasLtMatmulHeuristicResult_t found[CANDIDATES], int *n_p)
{
    cublasLtMatmulPreference_t preference = NULL;
    DT_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    const dt_status st = set_preference(preference, a, d);
    cublasStatus_t e = CUBLAS_STATUS_SUCCESS;
    *n_p = 0;
    if (st == DT_OK) {
        e = cublasLtMatmulAlgoGetHeuristic(dt_cuda_blas(a->device), p->op, p->left, p->right, p->result, p->result,
                                           preference, CANDIDATES, found, n_p);
    }
    (void)cublasLtMatmulPreferenceDestroy(preference);
    DT_CUDA_TRY(st);
    if (e != CUBLAS_STATUS_SUCCESS || *n_p == 0) {
        return DT_CUDA_FAIL(DT_ECUDA, "cuBLASLt has no algorithm for a product of %lld x %lld x %lld: %s",
                            (long long)d->n, (long long)d->k, (long long)d->m, cublasLtGetStatusString(e));
    }
    return DT_OK;
}

/* The first that one leaf alone can have as well. Where it is not possible for all leaves of this call together, they
 * go one after the other: the number of leaves must not choose the algorithm. */
dt_status choose(const dt_device_args *a, const dt_cuda_product_desc *d, dt_cuda_product *p)
{
    cublasLtMatmulHeuristicResult_t found[CANDIDATES] = {};
    int n = 0;
    bool is_found = false;
    DT_CUDA_TRY(candidates(a, d, p, found, &n));
    for (int i = 0; i < n && !is_found; i++) {
        p->algo = found[i].algo;
        is_found = found[i].state == CUBLAS_STATUS_SUCCESS;
        if (is_found) {
            DT_CUDA_TRY(fits(a, p, &p->algo, 1, &is_found));
        }
    }
    if (!is_found) {
        return DT_CUDA_FAIL(DT_ECUDA,
                            "cuBLASLt has %d algorithms for %d products of %lld x %lld x %lld at once, none of them "
                            "possible for one alone",
                            n, (int)DT_CUDA_USUAL_LEAVES, (long long)d->n, (long long)d->k, (long long)d->m);
    }
    DT_CUDA_TRY(fits(a, p, &p->algo, a->leaves, &p->is_at_once));
    return p->is_at_once ? DT_OK : fits(a, p, &p->algo, 1, &is_found);
}

int64_t stride_bytes(const dt_cuda_factor *f)
{
    return f->leaf_stride * (int64_t)dt_cuda_element_bytes(f->dtype);
}

dt_status create(const dt_device_args *a, const dt_cuda_product_desc *d, dt_cuda_product *p)
{
    p->beta = d->adds ? 1.0f : 0.0f;
    p->has_bias = d->bias != NULL;
    p->stride[0] = stride_bytes(&d->b);
    p->stride[1] = stride_bytes(&d->a);
    p->stride[2] = stride_bytes(&d->c);
    DT_CUDA_TRY(create_op(a, d, &p->op));
    DT_CUDA_TRY(create_layout(&d->b, d->k, d->m, &p->left));
    DT_CUDA_TRY(create_layout(&d->a, d->n, d->k, &p->right));
    DT_CUDA_TRY(create_layout(&d->c, d->n, d->m, &p->result));
    return choose(a, d, p);
}

} // namespace

dt_status dt_cuda_product_create(const dt_device_args *a, const dt_cuda_product_desc *d, dt_cuda_product **out_p)
{
    dt_cuda_product *p = (dt_cuda_product *)calloc(1, sizeof(*p));
    if (p == NULL) {
        return DT_CUDA_FAIL(DT_ENOMEM, "out of memory for the description of a product");
    }
    const dt_status st = create(a, d, p);
    if (st < 0) {
        dt_cuda_product_destroy(p);
        return st;
    }
    *out_p = p;
    return DT_OK;
}

void dt_cuda_product_destroy(void *product)
{
    dt_cuda_product *p = (dt_cuda_product *)product;
    if (p != NULL) {
        for (cublasLtMatrixLayout_t layout : {p->left, p->right, p->result}) {
            if (layout != NULL) {
                (void)cublasLtMatrixLayoutDestroy(layout);
            }
        }
        if (p->op != NULL) {
            (void)cublasLtMatmulDescDestroy(p->op);
        }
        free(p);
    }
}

/* What NVIDIA recommends: 32 MiB from Hopper on, 4 MiB before. */
size_t dt_cuda_product_scratch(const dt_device_args *a)
{
    return (size_t)(dt_cuda_arch(a->device) >= 90 ? 32 : 4) * MIB;
}

dt_status dt_cuda_product_run(const dt_device_args *args, const dt_cuda_product *p, const void *a, const void *b,
                              void *c, const void *bias, void *scratch)
{
    const float alpha = 1.0f;
    if (p->has_bias) {
        DT_CUBLAS(cublasLtMatmulDescSetAttribute(p->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
    }
    const char *left = (const char *)b, *right = (const char *)a;
    char *result = (char *)c;
    for (uint32_t leaf = 0; leaf < (p->is_at_once ? 1 : args->leaves); leaf++) {
        DT_CUBLAS(cublasLtMatmul(dt_cuda_blas(args->device), p->op, &alpha, left, p->left, right, p->right, &p->beta,
                                 result, p->result, result, p->result, &p->algo, scratch, dt_cuda_product_scratch(args),
                                 dt_cuda_stream(args)));
        left += p->stride[0];
        right += p->stride[1];
        result += p->stride[2];
    }
    return DT_OK;
}

namespace
{

enum { NARROW_THREADS = 256 };

template <typename T> __global__ void narrow(dt_cuda_ptr<T> to, dt_cuda_ptr<const float> from, int64_t n)
{
    const int64_t i = 4 * ((int64_t)blockIdx.x * NARROW_THREADS + threadIdx.x);
    const int leaf = (int)blockIdx.y;
    for (int64_t k = i; k < n && k < i + 4; k++) {
        dt_cuda_put(to.at(leaf) + k, from.at(leaf)[k]);
    }
}

} // namespace

dt_status dt_cuda_narrow(void *to, int64_t to_stride, const float *from, int64_t from_stride, int64_t n,
                         uint32_t leaves, int32_t dtype, cudaStream_t s)
{
    const dim3 grid(dt_cuda_blocks(n, 4 * NARROW_THREADS), leaves);
    if (n == 0) {
        return DT_OK;
    }
    return dt_cuda_by_type(dtype, [&](auto type) -> dt_status {
        using T = typename decltype(type)::T;
        const dt_cuda_ptr<T> out = {(T *)to, to_stride};
        const dt_cuda_ptr<const float> in = {from, from_stride};
        narrow<T><<<grid, NARROW_THREADS, 0, s>>>(out, in, n);
        return DT_CUDA_LAUNCHED();
    });
}

dt_status dt_cuda_narrow_all(dt_device *d, void *to, const float *from, int64_t n, uint32_t dtype, dt_device_stream *s)
{
    (void)d;
    return dt_cuda_narrow(to, 0, from, 0, n, 1, (int32_t)dtype, (cudaStream_t)(void *)s);
}

dt_status dt_cuda_zero(const dt_device_args *a, uint32_t i)
{
    const dt_device_view *v = dt_cuda_out(a, i);
    const size_t size = dt_cuda_element_bytes(v->dtype), bytes = (size_t)dt_cuda_count(v) * size;
    if (bytes > 0) {
        const size_t pitch = a->leaves > 1 ? (size_t)v->leaf_stride * size : bytes;
        DT_CUDA(cudaMemset2DAsync(v->data, pitch, 0, bytes, a->leaves, dt_cuda_stream(a)));
    }
    return DT_OK;
}
