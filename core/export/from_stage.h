/* SPDX-License-Identifier: Apache-2.0
 *
 * From a stage with trained weights to what `dtrain export` writes: a bundle (export/bundle.h) and what else is to be
 * known of it, as pairs of key and text. Threads: [main].
 */
#ifndef DTRAIN_CORE_EXPORT_FROM_STAGE_H
#define DTRAIN_CORE_EXPORT_FROM_STAGE_H

#include "state/checkpoint/checkpoint.h"
#include "export/bundle.h"
#include "plugin/service/stage.h"

enum { DT_STAGE_EXPORT_PAIRS = 12 };

typedef struct dt_stage_export { /* points into the stage, which outlives it */
    dt_bundle bundle;
    dt_bundle_field *how;
    const char *pair[DT_STAGE_EXPORT_PAIRS][2];
    uint32_t n_pairs;
    char step[24];
    dt_str models, settings;
    dt_str interface; /* JSON: what goes in and comes out, in words; metadata "interface" */
} dt_stage_export;

/* s: started, with its weights. info: of the checkpoint they are from, NULL where that is a lone file. Errors:
 * DT_EINVAL (the phase records nothing that can be taken out), DT_ENOMEM. */
dt_status dt_export_from_stage(dt_stage *s, const dt_ckpt_info *info, dt_stage_export *out_p) DT_NODISCARD;
void dt_stage_export_fini(dt_stage_export *t);

#endif
