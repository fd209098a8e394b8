/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step of a phase takes on a GPU at least, by calculation: a roofline (Williams, Waterman & Patterson 2009).
 * Each call of the plan takes as long as its arithmetic at the GPU's peak, its bytes at the bandwidth of its memory, or
 * a launch, whichever is longest. The GPU need not be there. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLAN_ROOFLINE_H
#define DTRAIN_CORE_PLAN_ROOFLINE_H

#include "base/json.h"
#include "plugin/service/stage.h"

typedef struct dt_gpu_peak { /* as its maker states them, dense */
    const char *name;        /* on the command line */
    const char *model;
    double fp32, tf32, half; /* FLOP/s; half: products in bf16 or fp16, summed in fp32 */
    double bandwidth;        /* bytes/s of its memory */
    double memory;           /* bytes */
} dt_gpu_peak;

const dt_gpu_peak *dt_gpu_peak_find(const char *name); /* NULL when unknown */
const char *dt_gpu_peak_list_names(void);              /* "H100, H200, ..." */

/* Of a started stage with a trainer, for people and for scripts. Errors: DT_ECONFIG, DT_ENOMEM. */
dt_status dt_roofline_text(const dt_stage *s, const dt_gpu_peak *g, dt_str *out) DT_NODISCARD;
dt_status dt_roofline_json(const dt_stage *s, const dt_gpu_peak *g, dt_json_out *out) DT_NODISCARD;

#endif
