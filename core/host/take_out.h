/* SPDX-License-Identifier: Apache-2.0
 *
 * From a stage with trained weights to what `dtrain export` writes: a bundle (export/bundle.h) and what else is to be
 * known of it, as pairs of key and text. Threads: [main].
 */
#ifndef DTRAIN_CORE_HOST_TAKE_OUT_H
#define DTRAIN_CORE_HOST_TAKE_OUT_H

#include "checkpoint/checkpoint.h"
#include "export/bundle.h"
#include "host/stage.h"

enum { DT_TAKE_OUT_PAIRS = 10 };

typedef struct dt_take_out { /* points into the stage, which outlives it */
    dt_bundle bundle;
    dt_bundle_field *how;
    const char *pair[DT_TAKE_OUT_PAIRS][2];
    uint32_t n_pairs;
    char step[24];
    dt_str models, settings;
} dt_take_out;

/* s: started, with its weights. info: of the checkpoint they are from, NULL where that is a lone file. Errors:
 * DT_EINVAL (the phase records nothing that can be taken out), DT_ENOMEM. */
dt_status dt_take_out_make(dt_stage *s, const dt_ckpt_info *info, dt_take_out *out_p) DT_NODISCARD;
void dt_take_out_fini(dt_take_out *t);

#endif
