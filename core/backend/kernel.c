/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of kernels: one row per op of backend/ops.def, one column per lane; and what each needs as scratch.
 */
#include <config.h>

#include "backend/kernel.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/scratch.h"

#include <string.h>

#define DT_OP(ID, number, name) dt_kernel dt_ref64_##name, dt_ref32_##name, dt_cpu_base_##name;
#include "backend/ops.def"
#undef DT_OP
#ifdef DT_HAVE_CPU_AVX2
#    define DT_OP(ID, number, name) dt_kernel dt_cpu_avx2_##name;
#    include "backend/ops.def"
#    undef DT_OP
#    define AVX2_KERNEL(name) dt_cpu_avx2_##name
#else
#    define AVX2_KERNEL(name) NULL
#endif
#ifdef DT_HAVE_CPU_AVX512
#    define DT_OP(ID, number, name) dt_kernel dt_cpu_avx512_##name;
#    include "backend/ops.def"
#    undef DT_OP
#    define AVX512_KERNEL(name) dt_cpu_avx512_##name
#else
#    define AVX512_KERNEL(name) NULL
#endif

/* pure views have no kernel in any lane */
#define dt_ref64_split      NULL
#define dt_ref32_split      NULL
#define dt_cpu_base_split   NULL
#define dt_cpu_avx2_split   NULL
#define dt_cpu_avx512_split NULL
#define dt_ref64_merge      NULL
#define dt_ref32_merge      NULL
#define dt_cpu_base_merge   NULL
#define dt_cpu_avx2_merge   NULL
#define dt_cpu_avx512_merge NULL

typedef struct row {
    uint32_t op;
    dt_kernel *ref64, *ref32;
    dt_kernel *cpu[DT_CPU_ISA_END];
} row;

static const row rows[] = {
#define DT_OP(ID, number, name)                                                                                        \
    {number, dt_ref64_##name, dt_ref32_##name, {dt_cpu_base_##name, AVX2_KERNEL(name), AVX512_KERNEL(name)}},
#include "backend/ops.def"
#undef DT_OP
};

dt_kernel *dt_kernel_find(uint32_t op, dt_lane lane)
{
    for (size_t i = 0; lane != DT_LANE_DEVICE && i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op) {
            return lane == DT_LANE_REF64   ? rows[i].ref64
                   : lane == DT_LANE_REF32 ? rows[i].ref32
                                           : rows[i].cpu[dt_cpu_isa_index()];
        }
    }
    return NULL;
}

dt_kernel *dt_kernel_find_cpu(uint32_t op, dt_cpu_isa_id isa)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op) {
            return rows[i].cpu[isa];
        }
    }
    return NULL;
}

size_t dt_kernel_scratch(uint32_t op, dt_lane lane, const dt_attr *attr, const dt_view *in, uint32_t n_in,
                         const dt_view *out, uint32_t n_out)
{
    const size_t word = lane == DT_LANE_CPU ? sizeof(float) : sizeof(double); /* the reference carries sums in double */
    switch (op) {
    case DT_OPX_LINEAR: /* what a product packs of w^T, w, x */
        return lane == DT_LANE_CPU ? dt_gemm_floats(in[1].dim[0], in[1].dim[1]) * word : 0;
    case DT_OPX_LINEAR_DX:
        return lane == DT_LANE_CPU ? dt_gemm_floats(in[1].dim[1], in[1].dim[0]) * word : 0;
    case DT_OPX_LINEAR_DW:
        return lane == DT_LANE_CPU ? dt_gemm_floats(in[0].dim[in[0].rank - 1], dt_view_rows(&in[0], 1)) * word : 0;
    case DT_OPX_GAT:
    case DT_OPX_GAT_BWD: {
        const dt_view *h = op == DT_OPX_GAT ? in : in + 1;
        const int64_t K = h[3].rank > 0 ? h[3].dim[h[3].rank - 1] : 0;
        return lane != DT_LANE_CPU ? 0
               : op == DT_OPX_GAT  ? dt_scratch_gat(h[0].dim[0], h[6].dim[0], attr->i[0], K) * word
                                   : dt_scratch_gat_bwd(h[0].dim[0], h[6].dim[0], attr->i[0], K) * word;
    }
    case DT_OPX_GRAPH_QK:
        return lane == DT_LANE_CPU ? dt_scratch_graph_qk(in[5].dim[0], attr->i[0]) * word : 0;
    case DT_OPX_GRAPH_QK_BWD:
        return lane == DT_LANE_CPU ? dt_scratch_graph_qk(in[6].dim[0], attr->i[0]) * word : 0;
    case DT_OPX_LSTM: /* reference: cell state [S,H] */
        return lane == DT_LANE_CPU ? dt_scratch_lstm(in[0].dim[1], in[1].dim[1]) * word
                                   : (size_t)(in[0].dim[1] * in[1].dim[1]) * word;
    case DT_OPX_LSTM_BWD: /* reference: dh, dc [S,H], one row of gates [4H] */
        return lane == DT_LANE_CPU ? dt_scratch_lstm_bwd(in[0].dim[0], in[0].dim[1], in[0].dim[2]) * word
                                   : (size_t)(2 * in[0].dim[1] * in[0].dim[2] + 4 * in[0].dim[2]) * word;
    case DT_OPX_GRU:
        return lane == DT_LANE_CPU ? dt_scratch_gru(in[0].dim[1], in[1].dim[1]) * word : 0;
    case DT_OPX_GRU_BWD: /* reference: dh [S,H], one row [3H] */
        return lane == DT_LANE_CPU ? dt_scratch_gru_bwd(in[0].dim[0], in[0].dim[1], in[0].dim[2]) * word
                                   : (size_t)(in[0].dim[1] * in[0].dim[2] + 3 * in[0].dim[2]) * word;
    default:
        return 0;
    }
}
