/* SPDX-License-Identifier: Apache-2.0
 *
 * See product.h. cuBLASLt counts in columns: what lies here as c [n,m] in C order is its matrix of m rows and n
 * columns, so it is asked for c^T = b^T a^T.
 */
#include "backend/cuda/product.h"

#include <stdlib.h>

struct dt_cuda_product {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t left, right, result; /* b, a and c of the desc */
    cublasLtMatmulAlgo_t algo;
    float beta;
    bool has_bias;
};

namespace
{

enum { MIB = 1 << 20, FULL_ALIGNMENT = 256 };

cublasComputeType_t compute_type(uint32_t math)
{
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
    uint32_t bytes = FULL_ALIGNMENT;
    while (bytes > sizeof(float) &&
           ((uintptr_t)f->data % bytes != 0 || (uint64_t)f->leaf_stride * sizeof(float) % bytes != 0)) {
        bytes /= 2;
    }
    return bytes;
}

/* A matrix of rows x columns in C order is one of `columns` rows to cuBLASLt. */
dt_status create_layout(const dt_cuda_factor *f, int64_t rows, int64_t columns, cublasLtMatrixLayout_t *out_p)
{
    const int64_t first = f->is_transposed ? rows : columns, second = f->is_transposed ? columns : rows;
    const int32_t leaves = DT_CUDA_USUAL_LEAVES;
    DT_CUBLAS(cublasLtMatrixLayoutCreate(out_p, CUDA_R_32F, (uint64_t)first, (uint64_t)second, first));
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
    DT_CUBLAS(cublasLtMatmulDescCreate(out_p, compute_type(a->math), CUDA_R_32F));
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

dt_status choose(const dt_device_args *a, const dt_cuda_product_desc *d, dt_cuda_product *p)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found = {};
    int n_found = 0;
    DT_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    dt_status st = set_preference(preference, a, d);
    cublasStatus_t e = CUBLAS_STATUS_SUCCESS;
    if (st == DT_OK) {
        e = cublasLtMatmulAlgoGetHeuristic(dt_cuda_blas(a->device), p->op, p->left, p->right, p->result, p->result,
                                           preference, 1, &found, &n_found);
    }
    (void)cublasLtMatmulPreferenceDestroy(preference);
    DT_CUDA_TRY(st);
    if (e != CUBLAS_STATUS_SUCCESS || n_found == 0) {
        return DT_CUDA_FAIL(DT_ECUDA, "cuBLASLt has no algorithm for a product of %lld x %lld x %lld: %s",
                            (long long)d->n, (long long)d->k, (long long)d->m, cublasLtGetStatusString(e));
    }
    p->algo = found.algo;
    return DT_OK;
}

dt_status create(const dt_device_args *a, const dt_cuda_product_desc *d, dt_cuda_product *p)
{
    const int32_t leaves = (int32_t)a->leaves;
    p->beta = d->adds ? 1.0f : 0.0f;
    p->has_bias = d->bias != NULL;
    DT_CUDA_TRY(create_op(a, d, &p->op));
    DT_CUDA_TRY(create_layout(&d->b, d->k, d->m, &p->left));
    DT_CUDA_TRY(create_layout(&d->a, d->n, d->k, &p->right));
    DT_CUDA_TRY(create_layout(&d->c, d->n, d->m, &p->result));
    DT_CUDA_TRY(choose(a, d, p));
    for (cublasLtMatrixLayout_t layout : {p->left, p->right, p->result}) {
        DT_CUBLAS(
            cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &leaves, sizeof(leaves)));
    }
    return DT_OK;
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
    DT_CUBLAS(cublasLtMatmul(dt_cuda_blas(args->device), p->op, &alpha, b, p->left, a, p->right, &p->beta, c, p->result,
                             c, p->result, &p->algo, scratch, dt_cuda_product_scratch(args), dt_cuda_stream(args)));
    return DT_OK;
}

dt_status dt_cuda_zero(const dt_device_args *a, uint32_t i)
{
    const dt_device_view *v = dt_cuda_out(a, i);
    const size_t bytes = (size_t)dt_cuda_count(v) * sizeof(float);
    if (bytes > 0) {
        const size_t pitch = a->leaves > 1 ? (size_t)v->leaf_stride * sizeof(float) : bytes;
        DT_CUDA(cudaMemset2DAsync(v->data, pitch, 0, bytes, a->leaves, dt_cuda_stream(a)));
    }
    return DT_OK;
}
