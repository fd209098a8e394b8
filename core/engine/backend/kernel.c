/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of kernels: one row per op of engine/backend/ops.def, one column per kernel set; and what each needs as
 * scratch.
 */
#include <config.h>

#include "engine/backend/kernel.h"
#include "engine/backend/cpu/isa.h"
#include "engine/backend/cpu/scratch.h"
#include "engine/backend/user.h"

#include <string.h>

/* Builds that are not linked in are declared too, but not referred to. */
#define DT_OP(ID, number, name)                                                                                        \
    dt_kernel dt_ref64_##name, dt_ref32_##name, dt_cpu_base_##name, dt_cpu_avx2_##name, dt_cpu_avx512_##name;
#define DT_OP_VIEW(ID, number, name)
#define DT_OP_PRODUCT(ID, number, name)                                                                                \
    DT_OP(ID, number, name) dt_kernel dt_cpu_avx512_bf16_##name, dt_cpu_amx_bf16_##name;
#include "engine/backend/ops.def"

#ifdef DT_HAVE_CPU_AVX2
#    define AVX2(kernel) kernel
#else
#    define AVX2(kernel) NULL
#endif
#ifdef DT_HAVE_CPU_AVX512
#    define AVX512(kernel) kernel
#else
#    define AVX512(kernel) NULL
#endif
#ifdef DT_HAVE_CPU_BF16
#    define BF16(kernel) kernel
#else
#    define BF16(kernel) NULL
#endif
#ifdef DT_HAVE_CPU_AMX_BF16
#    define AMX(kernel) kernel
#else
#    define AMX(kernel) NULL
#endif

typedef struct row { /* views have none */
    uint32_t op;
    dt_kernel *ref64, *ref32;
    dt_kernel *cpu[DT_CPU_ISA_END];
    bool is_product;
} row;

static const row rows[] = {
#define ROW(number, name, bf16, amx, is_product)                                                                       \
    {number,                                                                                                           \
     dt_ref64_##name,                                                                                                  \
     dt_ref32_##name,                                                                                                  \
     {dt_cpu_base_##name, AVX2(dt_cpu_avx2_##name), AVX512(dt_cpu_avx512_##name), bf16, amx},                          \
     is_product},
#define DT_OP(ID, number, name) ROW(number, name, NULL, NULL, false)
#define DT_OP_VIEW(ID, number, name)
#define DT_OP_PRODUCT(ID, number, name)                                                                                \
    ROW(number, name, BF16(dt_cpu_avx512_bf16_##name), AMX(dt_cpu_amx_bf16_##name), true)
#include "engine/backend/ops.def"
};

static const row *find_row(uint32_t op)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op) {
            return &rows[i];
        }
    }
    return NULL;
}

dt_kernel *dt_kernel_find_cpu(uint32_t op, dt_cpu_isa_id isa)
{
    const row *r = find_row(op);
    if (r == NULL) {
        return NULL;
    }
    return r->cpu[isa < DT_CPU_ISA_AVX512 || r->is_product ? isa : DT_CPU_ISA_AVX512];
}

dt_kernel *dt_kernel_find(uint32_t op, dt_kernel_set set)
{
    const row *r = find_row(op);
    const dt_cpu_isa_id isa = dt_cpu_isa_index();
    if (op >= DT_USER_OP_FIRST) {
        return dt_user_kernel_find(op, set);
    }
    switch (set) {
    case DT_KERNELS_REF64:
        return r != NULL ? r->ref64 : NULL;
    case DT_KERNELS_REF32:
        return r != NULL ? r->ref32 : NULL;
    case DT_KERNELS_CPU:
        return dt_kernel_find_cpu(op, isa < DT_CPU_ISA_AVX512 ? isa : DT_CPU_ISA_AVX512);
    case DT_KERNELS_CPU_BF16:
        return isa > DT_CPU_ISA_AVX512 ? dt_kernel_find_cpu(op, isa) : NULL;
    default:
        return NULL;
    }
}

/* of CONV2D of x and w, or of its derivative by x */
static size_t scratch_of_conv(const dt_view *x, const dt_view *w, bool is_dx)
{
    const int64_t groups = x->dim[x->rank - 1] / w->dim[3], M = w->dim[0] / groups, K = dt_view_count(w) / w->dim[0];
    return is_dx ? dt_scratch_conv(K, groups, K, M) : dt_scratch_conv(K, groups, M, K);
}

size_t dt_kernel_scratch_bytes(uint32_t op, dt_kernel_set set, const dt_attr *attr, const dt_view *in,
                               const dt_view *out)
{
    const bool is_cpu = set == DT_KERNELS_CPU || set == DT_KERNELS_CPU_BF16;
    const size_t word = is_cpu ? sizeof(float) : sizeof(double); /* the reference carries sums in double */
    switch (op) {
    case DT_OPX_LINEAR: /* what a product packs of w^T, w, x */
        return is_cpu ? dt_gemm_floats(in[1].dim[0], in[1].dim[1]) * word : 0;
    case DT_OPX_LINEAR_DX:
        return is_cpu ? (dt_gemm_floats(in[1].dim[1], in[1].dim[0]) +
                         dt_scratch_live(dt_view_rows(&in[0], 1), in[1].dim[0])) *
                            word
                      : 0;
    case DT_OPX_LINEAR_DW:
        return is_cpu ? dt_gemm_floats(in[0].dim[in[0].rank - 1], dt_view_rows(&in[0], 1)) * word : 0;
    case DT_OPX_MATMUL: {
        const dt_view *a = &in[0], *y = &out[0];
        return is_cpu ? dt_gemm_floats(y->dim[y->rank - 1], a->dim[a->rank - (attr->i[0] ? 2 : 1)]) * word : 0;
    }
    case DT_OPX_CONV2D:
        return is_cpu ? scratch_of_conv(&in[0], &in[1], false) * word : 0;
    case DT_OPX_CONV2D_DX: /* reference: the sums of dx */
        return (is_cpu ? scratch_of_conv(&out[0], &in[1], true) : (size_t)dt_view_count(&out[0])) * word;
    case DT_OPX_CONV2D_DW:
        return is_cpu ? dt_scratch_conv_dw(dt_view_count(&out[0]) / out[0].dim[0]) * word : 0;
    case DT_OPX_GAT:
    case DT_OPX_GAT_BWD: {
        const dt_view *h = op == DT_OPX_GAT ? in : in + 1;
        const int64_t K = h[3].rank > 0 ? h[3].dim[h[3].rank - 1] : 0;
        return !is_cpu            ? 0
               : op == DT_OPX_GAT ? dt_scratch_gat(h[0].dim[0], h[6].dim[0], attr->i[0], K) * word
                                  : dt_scratch_gat_bwd(h[0].dim[0], h[6].dim[0], attr->i[0], K) * word;
    }
    case DT_OPX_GRAPH_QK:
        return is_cpu ? dt_scratch_graph_qk(in[5].dim[0], attr->i[0]) * word : 0;
    case DT_OPX_GRAPH_QK_BWD:
        return is_cpu ? dt_scratch_graph_qk(in[6].dim[0], attr->i[0]) * word : 0;
    case DT_OPX_LSTM: /* reference: cell state [S,H] */
        return is_cpu ? dt_scratch_lstm(in[0].dim[1], in[1].dim[1]) * word
                      : (size_t)(in[0].dim[1] * in[1].dim[1]) * word;
    case DT_OPX_LSTM_BWD: /* reference: dh, dc [S,H], one row of gates [4H] */
        return is_cpu ? dt_scratch_lstm_bwd(in[0].dim[0], in[0].dim[1], in[0].dim[2]) * word
                      : (size_t)(2 * in[0].dim[1] * in[0].dim[2] + 4 * in[0].dim[2]) * word;
    case DT_OPX_GRU:
        return is_cpu ? dt_scratch_gru(in[0].dim[1], in[1].dim[1]) * word : 0;
    case DT_OPX_GRU_BWD: /* reference: dh [S,H], one row [3H] */
        return is_cpu ? dt_scratch_gru_bwd(in[0].dim[0], in[0].dim[1], in[0].dim[2]) * word
                      : (size_t)(in[0].dim[1] * in[0].dim[2] + 3 * in[0].dim[2]) * word;
    default:
        return 0;
    }
}

/* A packed weight pays for itself where it is small and rows are few; large ones would take memory in every worker. */
size_t dt_kernel_kept_bytes(uint32_t op, dt_kernel_set set, const dt_view *in, uint32_t params)
{
    enum { W = 1, LARGEST = 1 << 16 };
    const bool is_cpu = set == DT_KERNELS_CPU || set == DT_KERNELS_CPU_BF16;
    if (!is_cpu || (op != DT_OPX_LINEAR && op != DT_OPX_CONV2D) || (params >> W & 1) == 0 ||
        dt_view_count(&in[W]) > LARGEST) {
        return 0;
    }
    if (op == DT_OPX_CONV2D) {
        const int64_t groups = in[0].dim[in[0].rank - 1] / in[W].dim[3];
        return (size_t)groups * dt_gemm_packed_floats(in[W].dim[0] / groups, dt_view_count(&in[W]) / in[W].dim[0]) *
               sizeof(float);
    }
    return dt_gemm_packed_floats(in[W].dim[0], in[W].dim[1]) * sizeof(float);
}
