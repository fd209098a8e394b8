/* SPDX-License-Identifier: Apache-2.0
 *
 * Which build of the CPU kernels this process runs: the best the processor has, lowered by DTRAIN_CPU_ISA.
 * Decided once, at the first question. Threads: any.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CPU_ISA_H
#define DTRAIN_CORE_ENGINE_BACKEND_CPU_ISA_H

#include "engine/backend/kernel.h"

/* The last two are the avx512 build with matrix products in bf16 in addition. */
typedef enum dt_cpu_isa_id {
    DT_CPU_ISA_BASE,
    DT_CPU_ISA_AVX2,
    DT_CPU_ISA_AVX512,
    DT_CPU_ISA_AVX512_BF16,
    DT_CPU_ISA_AMX_BF16,
    DT_CPU_ISA_END
} dt_cpu_isa_id;

dt_cpu_isa_id dt_cpu_isa_index(void); /* in use */
dt_cpu_isa_id dt_cpu_isa_best(void);  /* what processor, system and build can do */
/* The kernel of one build, whatever is in use: tests and benches compare builds. NULL when it is not linked in. */
dt_kernel *dt_kernel_find_cpu(uint32_t op, dt_cpu_isa_id isa);
/* Index of a name; DT_ECONFIG when it is unknown, DT_EUNSUPPORTED when the processor or the build lacks it. */
dt_status dt_cpu_isa_parse(const char *name, dt_cpu_isa_id *isa_p) DT_NODISCARD;

#endif
