/* SPDX-License-Identifier: Apache-2.0
 *
 * See product.h. cuBLASLt counts in columns: what is here c [n,m] in C order is its matrix of m rows and n
 * columns, so it is asked for c^T = b^T a^T.
 */
#include "engine/backend/cuda/product.h"
#include "engine/backend/cuda/table.h"

#include <stdlib.h>
#include <string.h>

struct dt_cuda_product {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t left, right, result; /* b, a and c of the desc */
    dt_cuda_product_desc desc;
    cublasLtMatmulAlgo_t algo;
    float beta;
    bool is_own;     /* by the kernel of this file: cuBLASLt has none for this product */
    bool is_at_once; /* all leaves in one call; otherwise one after the other */
    bool rectifies;  /* relu in a pass of its own: the epilogue turns NaN into 0 */
};

/* All that decides how a product is made. */
struct question {
    int64_t n, m, k, stride[3];
    int32_t dtype[3];
    uint32_t alignment[3], leaves, math;
    uint32_t is_transposed[2], adds, has_bias, has_relu;
};

/* What was decided for it, once for a device. */
struct dt_cuda_algorithm {
    dt_cuda_algorithm *next;
    question of;
    cublasLtMatmulAlgo_t algo;
    bool is_own, is_at_once, rectifies;
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
uint32_t factor_alignment(const dt_cuda_factor *f)
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

dt_status set_epilogue(cublasLtMatmulDesc_t op, bool has_bias, bool has_relu)
{
    const uint32_t epilogue = has_bias && has_relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                              : has_bias           ? CUBLASLT_EPILOGUE_BIAS
                              : has_relu           ? CUBLASLT_EPILOGUE_RELU
                                                   : CUBLASLT_EPILOGUE_DEFAULT;
    DT_CUBLAS(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
    return DT_OK;
}

dt_status create_op(const dt_device_args *a, const dt_cuda_product_desc *d, cublasLtMatmulDesc_t *out_p)
{
    const int32_t left = d->b.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t right = d->a.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    DT_CUBLAS(cublasLtMatmulDescCreate(out_p, compute_type(a->math, d->a.dtype), CUDA_R_32F));
    DT_CUBLAS(cublasLtMatmulDescSetAttribute(*out_p, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left)));
    DT_CUBLAS(cublasLtMatmulDescSetAttribute(*out_p, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof(right)));
    DT_CUDA_TRY(set_epilogue(*out_p, d->bias != NULL, d->has_relu));
    if (d->bias != NULL) {
        DT_CUBLAS(cublasLtMatmulDescSetAttribute(*out_p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &d->bias, sizeof(d->bias)));
    }
    return DT_OK;
}

dt_status set_preference(cublasLtMatmulPreference_t p, const dt_device_args *a, const dt_cuda_product_desc *d)
{
    const uint64_t bytes = dt_cuda_product_scratch(a);
    const uint32_t in_one_piece = CUBLASLT_REDUCTION_SCHEME_NONE;
    const uint32_t left = factor_alignment(&d->b), right = factor_alignment(&d->a), result = factor_alignment(&d->c);
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
dt_status check_algorithm(const dt_device_args *a, const dt_cuda_product *p, const cublasLtMatmulAlgo_t *algo,
                          uint32_t leaves, bool *fits_p)
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

/* Those for DT_CUDA_USUAL_LEAVES, the fastest first; none where cuBLASLt has nothing for the types, sizes or addresses.
 * `e` has the reason. */
dt_status list_candidates(const dt_device_args *a, const dt_cuda_product_desc *d, const dt_cuda_product *p,
                          cublasLtMatmulHeuristicResult_t found[CANDIDATES], int *n_p, cublasStatus_t *e_p)
{
    cublasLtMatmulPreference_t preference = NULL;
    DT_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    const dt_status st = set_preference(preference, a, d);
    *e_p = CUBLAS_STATUS_SUCCESS;
    *n_p = 0;
    if (st == DT_OK) {
        *e_p = cublasLtMatmulAlgoGetHeuristic(dt_cuda_blas(a->device), p->op, p->left, p->right, p->result, p->result,
                                              preference, CANDIDATES, found, n_p);
    }
    (void)cublasLtMatmulPreferenceDestroy(preference);
    DT_CUDA_TRY(st);
    if (*e_p == CUBLAS_STATUS_NOT_SUPPORTED || *e_p == CUBLAS_STATUS_INVALID_VALUE) {
        *n_p = 0;
        return DT_OK;
    }
    return dt_cublas_check(*e_p, "cublasLtMatmulAlgoGetHeuristic(", __FILE__, __LINE__);
}

/* Does it add along k in pieces? The preference rules that out; its own report is checked all the same. */
bool splits_k(const cublasLtMatmulAlgo_t *algo)
{
    int32_t pieces = 1;
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    size_t bytes = 0;
    const cublasStatus_t n =
        cublasLtMatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &pieces, sizeof(pieces), &bytes);
    const cublasStatus_t how = cublasLtMatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                                                                    &scheme, sizeof(scheme), &bytes);
    return (n == CUBLAS_STATUS_SUCCESS && pieces > 1) ||
           (how == CUBLAS_STATUS_SUCCESS && scheme != CUBLASLT_REDUCTION_SCHEME_NONE);
}

/* ---- a product of our own ---------------------------------------------------------------------------------------- */

enum { TILE = 16, PASS_THREADS = 256 };

/* c = a b (+ c) (+ bias), sums in f32 in the order of k; a tile of c a block, an element a thread */
__global__ void __launch_bounds__(TILE *TILE)
    multiply_plainly(dt_cuda_floats a, dt_cuda_floats b, dt_cuda_floats c, dt_cuda_floats bias, int64_t n, int64_t m,
                     int64_t k, bool is_a_transposed, bool is_b_transposed, bool adds, bool has_relu)
{
    __shared__ float left[TILE][TILE + 1], right[TILE][TILE + 1];
    const int x = (int)threadIdx.x, y = (int)threadIdx.y, leaf = (int)blockIdx.z;
    const int64_t i = (int64_t)blockIdx.x * TILE + y, j = (int64_t)blockIdx.y * TILE + x;
    float sum = 0;
    for (int64_t first = 0; first < k; first += TILE) {
        const int64_t along_a = first + x, along_b = first + y;
        left[y][x] = i < n && along_a < k ? a.get(leaf, is_a_transposed ? along_a * n + i : i * k + along_a) : 0.0f;
        right[y][x] = j < m && along_b < k ? b.get(leaf, is_b_transposed ? j * k + along_b : along_b * m + j) : 0.0f;
        __syncthreads();
        for (int t = 0; t < TILE && first + t < k; t++) {
            sum = fmaf(left[y][t], right[t][x], sum);
        }
        __syncthreads();
    }
    if (i >= n || j >= m) {
        return;
    }
    sum += adds ? c.get(leaf, i * m + j) : 0.0f;
    sum += bias.data != nullptr ? bias.get(0, j) : 0.0f;
    c.put(leaf, i * m + j, has_relu ? dt_cuda_unary(DT_FN_RELU, 0, sum) : sum);
}

dt_cuda_floats factor_floats(const dt_cuda_factor &f, const void *data)
{
    return {const_cast<void *>(data), f.leaf_stride, f.dtype};
}

dt_status run_naive(const dt_device_args *args, const dt_cuda_product_desc &d, const void *a, const void *b, void *c,
                    const void *bias)
{
    const dim3 grid(dt_cuda_blocks(d.n, TILE), dt_cuda_blocks(d.m, TILE), args->leaves);
    const dt_cuda_floats by_column = {const_cast<void *>(bias), 0, d.c.dtype};
    multiply_plainly<<<grid, dim3(TILE, TILE), 0, dt_cuda_stream(args)>>>(
        factor_floats(d.a, a), factor_floats(d.b, b), factor_floats(d.c, c), by_column, d.n, d.m, d.k,
        d.a.is_transposed, d.b.is_transposed, d.adds, d.has_relu);
    return DT_CUDA_LAUNCHED();
}

/* y = relu(y) of n elements a leaf */
template <int V> __global__ void __launch_bounds__(PASS_THREADS) rectify(dt_cuda_floats y, int64_t n)
{
    const int64_t i = V * ((int64_t)blockIdx.x * PASS_THREADS + threadIdx.x);
    const int leaf = (int)blockIdx.y;
    if (i < n) {
        dt_cuda_pack<V> p = y.load<V>(leaf, i);
        for (int v = 0; v < V; v++) {
            p.x[v] = dt_cuda_unary(DT_FN_RELU, 0, p.x[v]);
        }
        y.store<V>(leaf, i, p);
    }
}

dt_status apply_relu(const dt_device_args *args, const dt_cuda_product_desc &d, void *c)
{
    const int64_t n = d.n * d.m;
    const dt_cuda_floats y = factor_floats(d.c, c);
    const bool is_wide =
        n % 4 == 0 && d.c.leaf_stride % 4 == 0 && (uintptr_t)c % (4 * dt_cuda_element_bytes(d.c.dtype)) == 0;
    const dim3 grid(dt_cuda_blocks(n, PASS_THREADS * (is_wide ? 4 : 1)), args->leaves);
    if (is_wide) {
        rectify<4><<<grid, PASS_THREADS, 0, dt_cuda_stream(args)>>>(y, n);
    } else {
        rectify<1><<<grid, PASS_THREADS, 0, dt_cuda_stream(args)>>>(y, n);
    }
    return DT_CUDA_LAUNCHED();
}

/* ---- trial ------------------------------------------------------------------------------------------------------- */

/* An algorithm is tried on the product itself before it is used: nothing that cuBLASLt reports about one shows whether
 * its tiles are dealt out in ways that change with the number of matrices (persistent and stream-K kernels), or whether
 * its relu keeps NaN. All leaves get the same numbers, so all results must be those of one alone. */
struct trial {
    bool is_accepted; /* cuBLASLt ran it */
    bool is_same;     /* all leaves at once have the bits of one alone */
    bool keeps_nan;   /* relu of NaN is NaN */
};

enum answer { IS_OTHER = 1, IS_LOST = 2 };

__device__ uint32_t mix_bits(uint64_t i)
{
    i *= 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 32) * 0xd6e8feb86659fd93u;
    return (uint32_t)(i >> 32);
}

/* Factors whose products cancel in pairs that are far apart along k, 0 in the middle: what is left of a sum is its
 * rounding errors, so that even a 16-bit result shows another order. The same numbers every `stride` elements. */
__global__ void __launch_bounds__(PASS_THREADS) fill_factor(dt_cuda_floats to, int64_t n, int64_t stride,
                                                            int64_t columns, int64_t k, bool is_k_first, bool is_signed)
{
    const int64_t i = (int64_t)blockIdx.x * PASS_THREADS + threadIdx.x;
    if (i >= n) {
        return;
    }
    const int64_t e = stride > 0 ? i % stride : i, r = e / columns, c = e % columns;
    const int64_t at = is_k_first ? r : c, other = is_k_first ? c : r, near = at < k - 1 - at ? at : k - 1 - at;
    const uint32_t bits = mix_bits((uint64_t)(near * 2 + (is_signed ? 1 : 0)) << 32 ^ (uint64_t)other);
    const float size = (1.0f + (float)(bits & 0xffff) / 65536.0f) * (float)(1 << (bits >> 16 & 7));
    const bool is_middle = k > 1 && 2 * at + 1 == k, is_negative = is_signed && 2 * at + 1 > k;
    to.put(0, i, is_middle ? 0.0f : is_negative ? -size : size);
}

/* IS_OTHER: a leaf of `all` differs from `one`. IS_LOST: an element of the first row, of m, is not NaN. */
__global__ void __launch_bounds__(PASS_THREADS) compare(dt_cuda_floats all, dt_cuda_floats one, int64_t n, int *answer)
{
    const int64_t i = (int64_t)blockIdx.x * PASS_THREADS + threadIdx.x;
    if (i < n && __float_as_uint(all.get((int)blockIdx.y, i)) != __float_as_uint(one.get(0, i))) {
        atomicOr(answer, (int)IS_OTHER);
    }
}

__global__ void __launch_bounds__(PASS_THREADS) find_lost(dt_cuda_floats one, int64_t m, int *answer)
{
    const int64_t i = (int64_t)blockIdx.x * PASS_THREADS + threadIdx.x;
    if (i < m && !isnan(one.get(0, i))) {
        atomicOr(answer, (int)IS_LOST);
    }
}

/* Addresses of a trial, each as badly aligned as the product was promised to be. */
struct bench {
    char *a, *b, *all, *one, *bias, *scratch;
    int *answer;
    size_t bytes;
};

size_t factor_bytes(const dt_cuda_factor &f, int64_t n, uint32_t leaves)
{
    return ((size_t)(leaves - 1) * (size_t)f.leaf_stride + (size_t)n) * dt_cuda_element_bytes(f.dtype);
}

bench lay_out_bench(const dt_device_args *a, const dt_cuda_product_desc &d, char *base)
{
    size_t at = 0;
    const auto take = [&](size_t bytes, uint32_t alignment) {
        char *p = base == nullptr ? nullptr : base + at + alignment % FULL_ALIGNMENT;
        at += (bytes + alignment + FULL_ALIGNMENT - 1) / FULL_ALIGNMENT * FULL_ALIGNMENT;
        return p;
    };
    bench t = {};
    t.scratch = take(dt_cuda_product_scratch(a), FULL_ALIGNMENT);
    t.a = take(factor_bytes(d.a, d.n * d.k, a->leaves), factor_alignment(&d.a));
    t.b = take(factor_bytes(d.b, d.k * d.m, a->leaves), factor_alignment(&d.b));
    t.all = take(factor_bytes(d.c, d.n * d.m, a->leaves), factor_alignment(&d.c));
    t.one = take(factor_bytes(d.c, d.n * d.m, 1), factor_alignment(&d.c));
    t.bias = take((size_t)d.m * dt_cuda_element_bytes(d.c.dtype), FULL_ALIGNMENT);
    t.answer = (int *)(void *)take(sizeof(int), FULL_ALIGNMENT);
    t.bytes = at;
    return t;
}

const void *leaf_matrix(const dt_cuda_factor &f, const void *data, uint32_t leaf)
{
    return (const char *)data + leaf * f.leaf_stride * (int64_t)dt_cuda_element_bytes(f.dtype);
}

cublasStatus_t call_cublas(const dt_device_args *args, const dt_cuda_product *p, const void *a, const void *b, void *c,
                           void *scratch)
{
    const float alpha = 1.0f;
    return cublasLtMatmul(dt_cuda_blas(args->device), p->op, &alpha, b, p->left, a, p->right, &p->beta, c, p->result, c,
                          p->result, &p->algo, scratch, dt_cuda_product_scratch(args), dt_cuda_stream(args));
}

dt_status set_bias(const dt_cuda_product *p, const void *bias)
{
    if (p->desc.bias != NULL) {
        DT_CUBLAS(cublasLtMatmulDescSetAttribute(p->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
    }
    return DT_OK;
}

dt_status fill(const dt_device_args *a, const dt_cuda_factor &f, char *to, int64_t rows, int64_t columns, int64_t k,
               bool is_k_first, bool is_signed)
{
    const int64_t n = (int64_t)(factor_bytes(f, rows * columns, a->leaves) / dt_cuda_element_bytes(f.dtype));
    fill_factor<<<dt_cuda_blocks(n, PASS_THREADS), PASS_THREADS, 0, dt_cuda_stream(a)>>>(
        factor_floats(f, to), n, a->leaves > 1 ? f.leaf_stride : 0, f.is_transposed ? rows : columns, k,
        is_k_first != f.is_transposed, is_signed);
    return DT_CUDA_LAUNCHED();
}

dt_status read_comparison(const dt_device_args *a, const bench &t, int *answer_p)
{
    DT_CUDA(cudaMemcpyAsync(answer_p, t.answer, sizeof(*answer_p), cudaMemcpyDeviceToHost, dt_cuda_stream(a)));
    DT_CUDA(cudaStreamSynchronize(dt_cuda_stream(a)));
    return DT_OK;
}

/* one alone, then all of them */
dt_status compare_leaf_counts(const dt_device_args *a, const dt_cuda_product *p, const bench &t, bool is_possible,
                              trial *out)
{
    const dt_cuda_product_desc &d = p->desc;
    bool fits_one = false, fits_all = false;
    DT_CUDA_TRY(fill(a, d.a, t.a, d.n, d.k, d.k, false, true));
    DT_CUDA_TRY(fill(a, d.b, t.b, d.k, d.m, d.k, true, false));
    DT_CUDA(cudaMemsetAsync(t.bias, 0, (size_t)d.m * dt_cuda_element_bytes(d.c.dtype), dt_cuda_stream(a)));
    DT_CUDA(cudaMemsetAsync(t.all, 0, factor_bytes(d.c, d.n * d.m, a->leaves), dt_cuda_stream(a)));
    DT_CUDA(cudaMemsetAsync(t.one, 0, factor_bytes(d.c, d.n * d.m, 1), dt_cuda_stream(a)));
    DT_CUDA(cudaMemsetAsync(t.answer, 0, sizeof(int), dt_cuda_stream(a)));
    DT_CUDA_TRY(set_bias(p, t.bias));
    DT_CUDA_TRY(check_algorithm(a, p, &p->algo, 1, &fits_one));
    const cublasStatus_t one = call_cublas(a, p, t.a, t.b, t.one, t.scratch);
    out->is_accepted = one == CUBLAS_STATUS_SUCCESS;
    if (one == CUBLAS_STATUS_NOT_SUPPORTED || one == CUBLAS_STATUS_INVALID_VALUE || !is_possible) {
        return DT_OK;
    }
    DT_CUDA_TRY(dt_cublas_check(one, "cublasLtMatmul(", __FILE__, __LINE__));
    DT_CUDA_TRY(check_algorithm(a, p, &p->algo, a->leaves, &fits_all));
    if (!fits_all || call_cublas(a, p, t.a, t.b, t.all, t.scratch) != CUBLAS_STATUS_SUCCESS) {
        return DT_OK;
    }
    const dim3 grid(dt_cuda_blocks(d.n * d.m, PASS_THREADS), a->leaves);
    compare<<<grid, PASS_THREADS, 0, dt_cuda_stream(a)>>>(factor_floats(d.c, t.all), factor_floats(d.c, t.one),
                                                          d.n * d.m, t.answer);
    DT_CUDA_TRY(DT_CUDA_LAUNCHED());
    int answer = 0;
    DT_CUDA_TRY(read_comparison(a, t, &answer));
    out->is_same = (answer & IS_OTHER) == 0;
    return DT_OK;
}

/* NaN in the first row of a, one leaf */
dt_status check_nan_propagation(const dt_device_args *a, const dt_cuda_product *p, const bench &t, trial *out)
{
    const dt_cuda_product_desc &d = p->desc;
    bool is_possible = false;
    int answer = 0;
    DT_CUDA(cudaMemsetAsync(t.a, 0xff, dt_cuda_element_bytes(d.a.dtype), dt_cuda_stream(a)));
    DT_CUDA(cudaMemsetAsync(t.answer, 0, sizeof(int), dt_cuda_stream(a)));
    DT_CUDA_TRY(check_algorithm(a, p, &p->algo, 1, &is_possible));
    DT_CUBLAS(call_cublas(a, p, t.a, t.b, t.one, t.scratch));
    find_lost<<<dt_cuda_blocks(d.m, PASS_THREADS), PASS_THREADS, 0, dt_cuda_stream(a)>>>(factor_floats(d.c, t.one), d.m,
                                                                                         t.answer);
    DT_CUDA_TRY(DT_CUDA_LAUNCHED());
    DT_CUDA_TRY(read_comparison(a, t, &answer));
    out->keeps_nan = (answer & IS_LOST) == 0;
    return DT_OK;
}

/* Where there is no memory for a trial, the product is made as if it had failed: one leaf after the other. */
dt_status run_trial(const dt_device_args *args, const dt_cuda_product *p, trial *out)
{
    dt_device_args a = *args;
    void *memory = NULL;
    a.stream = NULL; /* a call that is prepared has none yet */
    *out = {true, false, false};
    const cudaError_t e = cudaMalloc(&memory, lay_out_bench(&a, p->desc, nullptr).bytes);
    if (e == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        dt_cuda_host->log(DT_LOG_WARN,
                          "too little GPU memory to try a product of %lld x %lld x %lld: its shards are multiplied one "
                          "at a time, which is slower; results are unchanged",
                          (long long)p->desc.n, (long long)p->desc.k, (long long)p->desc.m);
        return DT_OK;
    }
    DT_CUDA_TRY(dt_cuda_check(e, "cudaMalloc(", __FILE__, __LINE__));
    const bench t = lay_out_bench(&a, p->desc, (char *)memory);
    dt_status st = compare_leaf_counts(&a, p, t, a.leaves > 1, out);
    if (st == DT_OK && out->is_accepted && p->desc.has_relu && !p->rectifies) {
        st = check_nan_propagation(&a, p, t, out);
    }
    const dt_status end = dt_cuda_check(cudaStreamSynchronize(NULL), "cudaStreamSynchronize(", __FILE__, __LINE__);
    (void)cudaFree(memory);
    return st < 0 ? st : end;
}

/* ---- choice ------------------------------------------------------------------------------------------------------ */

question make_question(const dt_device_args *a, const dt_cuda_product_desc &d)
{
    question q;
    memset(&q, 0, sizeof(q)); /* compared as bytes */
    q.n = d.n;
    q.m = d.m;
    q.k = d.k;
    const dt_cuda_factor *factor[] = {&d.a, &d.b, &d.c};
    for (int i = 0; i < 3; i++) {
        q.stride[i] = factor[i]->leaf_stride;
        q.dtype[i] = factor[i]->dtype;
        q.alignment[i] = factor_alignment(factor[i]);
    }
    q.leaves = a->leaves;
    q.math = a->math;
    q.is_transposed[0] = d.a.is_transposed;
    q.is_transposed[1] = d.b.is_transposed;
    q.adds = d.adds;
    q.has_bias = d.bias != NULL;
    q.has_relu = d.has_relu;
    return q;
}

/* Once for each shape. */
void log_algorithm(const dt_cuda_algorithm *first, const dt_cuda_algorithm *v, const char *why)
{
    const question &q = v->of;
    const char *type = q.dtype[0] == DT_BF16 ? "bf16" : q.dtype[0] == DT_F16 ? "fp16" : "fp32";
    for (const dt_cuda_algorithm *o = first; o != NULL; o = o->next) {
        if (o->of.n == q.n && o->of.m == q.m && o->of.k == q.k && o->of.dtype[0] == q.dtype[0] &&
            o->is_own == v->is_own && (v->is_own || o->is_at_once == v->is_at_once)) {
            return;
        }
    }
    if (v->is_own) {
        dt_cuda_host->log(DT_LOG_INFO,
                          "products of %lld x %lld x %lld in %s use dtrain's own kernel: cuBLASLt has no algorithm for "
                          "them (%s)",
                          (long long)q.n, (long long)q.k, (long long)q.m, type, why);
    } else if (!v->is_at_once && q.leaves > 1) {
        dt_cuda_host->log(DT_LOG_INFO,
                          "products of %lld x %lld x %lld in %s are computed one shard at a time: cuBLASLt's algorithm "
                          "gives different results, or does not run, for %u shards together",
                          (long long)q.n, (long long)q.k, (long long)q.m, type, q.leaves);
    }
}

/* The first that one leaf alone can have as well: the number of leaves must not choose the algorithm. Where it is not
 * possible for all leaves of this call together, or has other bits for them, they go one after the other. */
dt_status find_algorithm(const dt_device_args *a, dt_cuda_product *p, trial *t, const char **why_p)
{
    const int32_t usual = DT_CUDA_USUAL_LEAVES;
    for (cublasLtMatrixLayout_t layout : {p->left, p->right, p->result}) {
        DT_CUBLAS(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &usual, sizeof(usual)));
    }
    cublasLtMatmulHeuristicResult_t found[CANDIDATES] = {};
    cublasStatus_t e = CUBLAS_STATUS_SUCCESS;
    int n = 0;
    DT_CUDA_TRY(list_candidates(a, &p->desc, p, found, &n, &e));
    *why_p = n == 0 && e != CUBLAS_STATUS_SUCCESS ? cublasLtGetStatusString(e) : "none that runs for one shard alone";
    for (int i = 0; i < n; i++) {
        bool is_possible = found[i].state == CUBLAS_STATUS_SUCCESS && !splits_k(&found[i].algo);
        if (is_possible) {
            DT_CUDA_TRY(check_algorithm(a, p, &found[i].algo, 1, &is_possible));
        }
        if (is_possible) {
            p->algo = found[i].algo;
            DT_CUDA_TRY(run_trial(a, p, t));
        }
        if (t->is_accepted) {
            return DT_OK;
        }
    }
    return DT_OK;
}

/* With relu in the epilogue where that keeps NaN, else without. */
dt_status decide_algorithm(const dt_device_args *a, dt_cuda_product *p, dt_cuda_algorithm *v, const char **why_p)
{
    trial t = {};
    DT_CUDA_TRY(find_algorithm(a, p, &t, why_p));
    if (p->desc.has_relu && !(t.is_accepted && t.keeps_nan)) {
        p->rectifies = true;
        t = {};
        DT_CUDA_TRY(set_epilogue(p->op, p->desc.bias != NULL, false));
        DT_CUDA_TRY(find_algorithm(a, p, &t, why_p));
    }
    v->algo = p->algo;
    v->is_own = !t.is_accepted;
    v->is_at_once = a->leaves == 1 || t.is_same;
    v->rectifies = p->rectifies;
    return DT_OK;
}

dt_status choose_algorithm(const dt_device_args *a, dt_cuda_product *p)
{
    dt_cuda_algorithm **first = dt_cuda_algorithms(a->device), *v = *first;
    const question q = make_question(a, p->desc);
    while (v != NULL && memcmp(&v->of, &q, sizeof(q)) != 0) {
        v = v->next;
    }
    if (v == NULL) {
        v = (dt_cuda_algorithm *)calloc(1, sizeof(*v));
        if (v == NULL) {
            return DT_CUDA_FAIL(DT_ENOMEM, "out of memory for the description of a product");
        }
        const char *why = "";
        const dt_status st = decide_algorithm(a, p, v, &why);
        if (st < 0) {
            free(v);
            return st;
        }
        v->of = q;
        log_algorithm(*first, v, why);
        v->next = *first;
        *first = v;
    }
    p->algo = v->algo;
    p->is_own = v->is_own;
    p->is_at_once = v->is_at_once;
    p->rectifies = v->rectifies;
    if (p->rectifies) {
        DT_CUDA_TRY(set_epilogue(p->op, p->desc.bias != NULL, false));
    }
    bool is_possible = false; /* known by now; the layouts keep the number */
    return p->is_own ? DT_OK : check_algorithm(a, p, &p->algo, p->is_at_once ? a->leaves : 1, &is_possible);
}

dt_status create(const dt_device_args *a, const dt_cuda_product_desc *d, dt_cuda_product *p)
{
    p->desc = *d;
    p->beta = d->adds ? 1.0f : 0.0f;
    DT_CUDA_TRY(create_op(a, d, &p->op));
    DT_CUDA_TRY(create_layout(&d->b, d->k, d->m, &p->left));
    DT_CUDA_TRY(create_layout(&d->a, d->n, d->k, &p->right));
    DT_CUDA_TRY(create_layout(&d->c, d->n, d->m, &p->result));
    return choose_algorithm(a, p);
}

} // namespace

void dt_cuda_algorithms_free(dt_cuda_algorithm *first)
{
    while (first != NULL) {
        dt_cuda_algorithm *next = first->next;
        free(first);
        first = next;
    }
}

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
    if (p->is_own) {
        return run_naive(args, p->desc, a, b, c, bias);
    }
    DT_CUDA_TRY(set_bias(p, bias));
    for (uint32_t leaf = 0; leaf < (p->is_at_once ? 1 : args->leaves); leaf++) {
        DT_CUBLAS(call_cublas(args, p, leaf_matrix(p->desc.a, a, leaf), leaf_matrix(p->desc.b, b, leaf),
                              const_cast<void *>(leaf_matrix(p->desc.c, c, leaf)), scratch));
    }
    return p->rectifies ? apply_relu(args, p->desc, c) : DT_OK;
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
