/* SPDX-License-Identifier: Apache-2.0
 *
 * See cublasLt.h.
 */
#include "cublasLt.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "machine.h"

#include <cstdlib>
#include <set>
#include <vector>

enum : size_t { SPOILED = 64 * 1024 }; /* bytes at each end of a workspace */

struct dt_emulated_blas {
    int unused;
};

struct dt_emulated_op {
    int32_t transpose_a, transpose_b;
    uint32_t compute, epilogue;
    const void *bias;
};

struct dt_emulated_layout {
    cudaDataType_t type;
    int64_t rows, columns, ld, stride;
    int32_t batch;
};

struct dt_emulated_preference {
    uint64_t workspace;
    uint32_t reduction, alignment[4];
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = new dt_emulated_blas{0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion()
{
    const char *version = getenv("DT_EMULATE_BLAS");
    return version != nullptr ? (size_t)atoi(version) : 130000;
}

const char *cublasLtGetStatusString(cublasStatus_t e)
{
    return e == CUBLAS_STATUS_SUCCESS         ? "success"
           : e == CUBLAS_STATUS_NOT_SUPPORTED ? "the functionality is not supported"
                                              : "an unsupported value";
}

/* ---- descriptions ------------------------------------------------------------------------------------------------ */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *op, cublasComputeType_t compute, cudaDataType_t)
{
    *op = new dt_emulated_op{CUBLAS_OP_N, CUBLAS_OP_N, (uint32_t)compute, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t op)
{
    delete op;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(void *field, size_t field_bytes, const void *value, size_t bytes)
{
    if (bytes != field_bytes) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t op, cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t bytes)
{
    switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&op->transpose_a, sizeof(op->transpose_a), value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&op->transpose_b, sizeof(op->transpose_b), value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&op->epilogue, sizeof(op->epilogue), value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&op->bias, sizeof(op->bias), value, bytes);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *m, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
    if (rows == 0 || columns == 0 || ld < (int64_t)rows) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *m = new dt_emulated_layout{type, (int64_t)rows, (int64_t)columns, ld, 0, 1};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t m)
{
    delete m;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t m, cublasLtMatrixLayoutAttribute_t which,
                                                const void *value, size_t bytes)
{
    return which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? set(&m->batch, sizeof(m->batch), value, bytes)
                                                       : set(&m->stride, sizeof(m->stride), value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    *p = new dt_emulated_preference{0, 7, {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void *value,
                                                    size_t bytes)
{
    if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
        return set(&p->workspace, sizeof(p->workspace), value, bytes);
    }
    if (which == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
        return set(&p->reduction, sizeof(p->reduction), value, bytes);
    }
    return set(&p->alignment[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], sizeof(uint32_t), value, bytes);
}

static bool fit(const dt_emulated_op *op, const dt_emulated_layout *a, const dt_emulated_layout *b,
                const dt_emulated_layout *d)
{
    const bool ta = op->transpose_a == CUBLAS_OP_T, tb = op->transpose_b == CUBLAS_OP_T;
    const int64_t m = ta ? a->columns : a->rows, k = ta ? a->rows : a->columns;
    const int64_t n = tb ? b->rows : b->columns, k_of_b = tb ? b->columns : b->rows;
    const bool is_known = a->type == b->type && (d->type == CUDA_R_32F || d->type == a->type) &&
                          (a->type == CUDA_R_32F || op->compute == CUBLAS_COMPUTE_32F);
    return is_known && m == d->rows && n == d->columns && k == k_of_b && a->batch == d->batch && b->batch == d->batch;
}

/* ---- algorithms -------------------------------------------------------------------------------------------------- */

/* Each adds along k in as many interleaved sums as its number says and one more, so that one cannot be mistaken for
 * another. Not every algorithm is possible for every number of matrices; DT_EMULATED_ALGO names the one that is found
 * first (0, which is possible for all). Only those of the first ALGORITHMS are found otherwise, not the bad ones:
 * SHIFTING sums the last of several matrices as none that is alone, SPLITTING says that it splits k, REFUSING is found
 * and checked, and then not run. */
enum { ALGORITHMS = 4, SHIFTING = 4, SPLITTING, REFUSING, ALL_ALGORITHMS };

static uint32_t first_algorithm()
{
    const char *first = getenv("DT_EMULATED_ALGO");
    return first != nullptr ? (uint32_t)atoi(first) % ALL_ALGORITHMS : 0;
}

/* Is anything found for such a product? */
static bool is_served(const dt_emulated_layout *a, const dt_emulated_layout *b, const dt_emulated_layout *d,
                      const dt_emulated_preference *p)
{
    static const char *const finds = getenv("DT_EMULATED_BLAS_FINDS");
    const bool is_all = finds != nullptr && strcmp(finds, "all") == 0;
    const bool is_none = finds != nullptr && strcmp(finds, "nothing") == 0;
    const bool is_thin = a->rows == 1 || a->columns == 1 || b->rows == 1 || b->columns == 1;
    bool is_odd = false;
    for (const uint32_t bytes : p->alignment) {
        is_odd = is_odd || bytes < 4;
    }
    return is_all || !(is_none || (a->type != CUDA_R_32F && (is_thin || is_odd)));
}

static bool is_possible(uint32_t number, int32_t batch)
{
    return number == 1 ? batch % 4 == 0 : number == 2 ? batch == 1 || batch >= 8 : true;
}

/* problems for which an algorithm was found or checked */
static std::set<std::vector<int64_t>> known;

static std::vector<int64_t> problem_of(const dt_emulated_op *op, const dt_emulated_layout *a,
                                       const dt_emulated_layout *b, const dt_emulated_layout *d,
                                       const cublasLtMatmulAlgo_t *algo)
{
    std::vector<int64_t> key = {algo->number, (int64_t)algo->workspace, op->transpose_a, op->transpose_b, op->compute,
                                op->epilogue};
    for (const dt_emulated_layout *m : {a, b, d}) {
        key.insert(key.end(), {m->type, m->rows, m->columns, m->ld, m->stride, m->batch});
    }
    return key;
}

/* Those that add up in pieces would be allowed unless they are ruled out, so this insists. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t p, int n_wanted,
                                              cublasLtMatmulHeuristicResult_t *found, int *n_found)
{
    const uint32_t first = first_algorithm();
    *n_found = 0;
    if (!fit(op, a, b, d) || p->reduction != CUBLASLT_REDUCTION_SCHEME_NONE) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!is_served(a, b, d, p)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    const uint32_t bad = first >= ALGORITHMS ? 1 : 0;
    for (uint32_t i = 0; i < ALGORITHMS + bad && *n_found < n_wanted; i++) {
        const uint32_t number = bad == 0 ? (i + first) % ALGORITHMS : i == 0 ? first : i - 1;
        if (is_possible(number, d->batch)) {
            cublasLtMatmulHeuristicResult_t *r = &found[(*n_found)++];
            *r = {};
            r->algo.number = number;
            r->algo.workspace = r->workspaceSize = p->workspace;
            memcpy(r->algo.alignment, p->alignment, sizeof(p->alignment));
            known.insert(problem_of(op, a, b, d, &r->algo));
        }
    }
    return *n_found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
    if (!fit(op, a, b, d)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!is_possible(algo->number, d->batch)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    *result = {};
    result->algo = *algo;
    result->workspaceSize = algo->workspace;
    known.insert(problem_of(op, a, b, d, algo));
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which, void *value,
                                                    size_t bytes, size_t *written)
{
    const bool splits = algo->number == SPLITTING;
    const int32_t pieces = splits ? 2 : 1;
    const uint32_t scheme = splits ? 1 : CUBLASLT_REDUCTION_SCHEME_NONE;
    *written = bytes;
    return which == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? set(value, bytes, &pieces, sizeof(pieces))
                                                    : set(value, bytes, &scheme, sizeof(scheme));
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static size_t size_of(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

static float get(cudaDataType_t type, const void *p, int64_t i)
{
    return type == CUDA_R_32F    ? ((const float *)p)[i]
           : type == CUDA_R_16BF ? __bfloat162float(((const __nv_bfloat16 *)p)[i])
                                 : __half2float(((const __half *)p)[i]);
}

static void put(cudaDataType_t type, void *p, int64_t i, float x)
{
    if (type == CUDA_R_32F) {
        ((float *)p)[i] = x;
    } else if (type == CUDA_R_16BF) {
        ((__nv_bfloat16 *)p)[i] = __float2bfloat16(x);
    } else {
        ((__half *)p)[i] = __float2half(x);
    }
}

/* Its n vectors of K that sums run over, one after the other, as fp32. */
static std::vector<float> vectors(const dt_emulated_layout &m, const void *p, bool is_contiguous, int64_t n, int64_t K)
{
    std::vector<float> out((size_t)(n * K));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < K; k++) {
            out[(size_t)(i * K + k)] = get(m.type, p, is_contiguous ? k + i * m.ld : i + k * m.ld);
        }
    }
    return out;
}

/* Algorithm number n sums in n + 1 parts. */
static float dot(const float *a, const float *b, int64_t K, uint32_t algorithm)
{
    float sum = 0;
    for (uint32_t i = 0; i <= algorithm; i++) {
        float part = 0;
        for (int64_t k = i; k < K; k += algorithm + 1) {
            part += a[k] * b[k];
        }
        sum = i == 0 ? part : sum + part;
    }
    return sum;
}

/* matrix number i */
static char *matrix(const dt_emulated_layout &m, const void *p, int64_t i)
{
    return (char *)(uintptr_t)p + i * m.stride * (int64_t)size_of(m.type);
}

/* the whole of one matrix, before it is touched */
static void touch(const dt_emulated_layout &m, const void *p, bool is_write)
{
    const size_t bytes = (size_t)((m.columns - 1) * m.ld + m.rows) * size_of(m.type);
    if (is_write) {
        dt_emulate_writes((void *)(uintptr_t)p, bytes, "cublasLtMatmul");
    } else {
        dt_emulate_reads(p, bytes, "cublasLtMatmul");
    }
}

static void multiply(const dt_emulated_op &op, uint32_t algorithm, float alpha, const void *a,
                     const dt_emulated_layout &at, const void *b, const dt_emulated_layout &bt, float beta,
                     const void *c, void *d, const dt_emulated_layout &dt)
{
    const bool ta = op.transpose_a == CUBLAS_OP_T, tb = op.transpose_b == CUBLAS_OP_T;
    const int64_t K = ta ? at.rows : at.columns;
    const char *relu = getenv("DT_EMULATED_RELU");
    const bool keeps_nan = relu != nullptr && strcmp(relu, "nan") == 0;
    const std::vector<float> rows = vectors(at, a, ta, dt.rows, K), columns = vectors(bt, b, !tb, dt.columns, K);
    for (int64_t column = 0; column < dt.columns; column++) {
        for (int64_t row = 0; row < dt.rows; row++) {
            float sum = alpha * dot(&rows[(size_t)(row * K)], &columns[(size_t)(column * K)], K, algorithm);
            sum = sum + (beta != 0 ? beta * get(dt.type, c, row + column * dt.ld) : 0);
            sum += (op.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 ? get(dt.type, op.bias, row) : 0;
            const bool has_relu = (op.epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
            put(dt.type, d, row + column * dt.ld, has_relu && (keeps_nan ? sum <= 0 : !(sum > 0)) ? 0 : sum);
        }
    }
}

static bool is_aligned(const void *p, const dt_emulated_layout *m, uint32_t bytes)
{
    return (uintptr_t)p % bytes == 0 && (uint64_t)m->stride * size_of(m->type) % bytes == 0;
}

/* A product leaves something behind at both ends of its workspace; nobody wrote what lies between. */
static void spoil(char *workspace, size_t bytes)
{
    const size_t first = bytes < SPOILED ? bytes : (size_t)SPOILED;
    const size_t last = bytes - first < SPOILED ? bytes - first : (size_t)SPOILED;
    dt_emulate_writes(workspace, first, "cublasLtMatmul");
    dt_emulate_writes(workspace + bytes - last, last, "cublasLtMatmul");
    memset(workspace, 0xff, first);
    memset(workspace + bytes - last, 0xff, last);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t op, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t at, const void *b, cublasLtMatrixLayout_t bt, const void *beta,
                              const void *c, cublasLtMatrixLayout_t ct, void *d, cublasLtMatrixLayout_t dt,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t s)
{
    if (!fit(op, at, bt, dt) || bytes < algo->workspace || (bytes > 0 && (uintptr_t)workspace % 256 != 0) ||
        !is_aligned(a, at, algo->alignment[0]) || !is_aligned(b, bt, algo->alignment[1]) ||
        !is_aligned(c, ct, algo->alignment[2]) || !is_aligned(d, dt, algo->alignment[3])) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if ((op->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 && (op->bias == nullptr || (uintptr_t)op->bias % 16 != 0)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (algo->number == SPLITTING) {
        dt_emulate_die("cublasLtMatmul: an algorithm that splits k, whose sums come in any order");
    }
    if (algo->number == REFUSING) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (known.count(problem_of(op, at, bt, dt, algo)) == 0) {
        dt_emulate_die("cublasLtMatmul: algorithm %u was neither found nor checked for %d matrices of %lld x %lld",
                       algo->number, dt->batch, (long long)dt->rows, (long long)dt->columns);
    }
    const uint32_t algorithm = algo->number;
    const dt_emulated_op o = *op; /* a graph keeps what the call said */
    const dt_emulated_layout la = *at, lb = *bt, ld = *dt;
    const float x = *(const float *)alpha, y = *(const float *)beta;
    dt_emulate_enqueue(s, {{}, [=] {
                               spoil((char *)workspace, bytes);
                               for (int64_t i = 0; i < ld.batch; i++) {
                                   touch(la, matrix(la, a, i), false);
                                   touch(lb, matrix(lb, b, i), false);
                                   if (y != 0) {
                                       touch(ld, matrix(ld, c, i), false);
                                   }
                                   touch(ld, matrix(ld, d, i), true);
                                   const bool is_last = ld.batch > 1 && i == ld.batch - 1;
                                   multiply(o,
                                            algorithm != SHIFTING ? algorithm
                                            : is_last             ? 1
                                                                  : 0,
                                            x, matrix(la, a, i), la, matrix(lb, b, i), lb, y, matrix(ld, c, i),
                                            matrix(ld, d, i), ld);
                               }
                           }});
    return CUBLAS_STATUS_SUCCESS;
}
