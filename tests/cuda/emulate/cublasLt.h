/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt on a CPU: as much of it as core/backend/cuda uses. See cuda_runtime.h beside this.
 */
#ifndef DTRAIN_TESTS_CUDA_EMULATE_CUBLASLT_H
#define DTRAIN_TESTS_CUDA_EMULATE_CUBLASLT_H

#include "cuda_runtime.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7 };

typedef struct dt_emulated_blas *cublasLtHandle_t;

static inline cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

static inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

static inline size_t cublasLtGetVersion()
{
    return 130000;
}

static inline const char *cublasLtGetStatusString(cublasStatus_t e)
{
    return e == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value" : "success";
}

#endif
