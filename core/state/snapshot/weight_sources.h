/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the first weights of a phase come from: files in order of preference, each the checkpoint of a phase or a
 * .safetensors file. A role takes all its tensors from the first file that holds any of them, or none: nothing is ever
 * half-loaded, but for the head of the values of costs: where their number differs, acting does not need it, and it
 * begins at random (mismatch.h). Random numbers of a phase, its optimizer and its schedule start from scratch; what
 * observations are normalised by comes with the weights. Threads: [main] of each rank.
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_WEIGHT_SOURCES_H
#define DTRAIN_CORE_STATE_SNAPSHOT_WEIGHT_SOURCES_H

#include "state/checkpoint/checkpoint.h"
#include "plugin/service/stage.h"

typedef struct dt_weight_sources dt_weight_sources;

/* What the phases before `index` handed over in this run: of each its end, or its best checkpoint where its
 * checkpoint.hand_on selects it; the newest phase first. May be empty. Errors: DT_EDATA where one is damaged. */
dt_status dt_weight_sources_open_previous(const char *run_dir, dt_config *c, int64_t index, dt_weight_sources **out_p)
    DT_NODISCARD;
/* What the user named: a .safetensors file, a checkpoint, or a run. Of a run the newest checkpoint, or of phase `id`
 * the newest where that is not NULL and has one; damaged ones are passed over with a warning; then the ends of the
 * phases before it. Errors: DT_ENOTFOUND, DT_EDATA,
 * DT_EIO. */
dt_status dt_weight_sources_open(const char *path, const char *id, dt_weight_sources **out_p) DT_NODISCARD;
void dt_weight_sources_close(dt_weight_sources *h);

/* The checkpoint that its first weights come from; NULL: a lone file. Lives as long as h. */
const dt_ckpt_info *dt_weight_sources_checkpoint(const dt_weight_sources *h);
bool dt_weight_sources_is_empty(const dt_weight_sources *h);
bool dt_weight_sources_has_role(const dt_weight_sources *h, const char *role); /* h may be NULL */

/* Roles that the phase of its first file had from elsewhere when it began; none where that is a .safetensors file.
 * Errors: DT_EDATA. */
dt_status dt_weight_sources_loaded_roles(const dt_weight_sources *h, dt_roles *roles_p) DT_NODISCARD;

/* Digests of the stores that its checkpoints were trained with, a line each; known_p: false where one of them has
 * none. Errors: DT_EDATA. */
dt_status dt_weight_sources_list_stores(const dt_weight_sources *h, dt_str *out, bool *known_p) DT_NODISCARD;

enum {
    DT_WEIGHTS_OPTIONAL = 0, /* roles that no file holds begin at random */
    DT_WEIGHTS_SOME,         /* the same, but one at least has to be there */
    DT_WEIGHTS_ALL           /* all have to be there, but for a shield: it guards without training too */
};
/* Into a started stage, with a line of the log for each role; roles in `fresh` (ends with NULL, or NULL) begin at
 * random whatever is there. Tensors that the model does not have: mismatch.h. Errors: DT_ESHAPE naming tensors, both
 * shapes and both files, and options that differ; DT_ECONFIG. */
dt_status dt_weight_sources_load(const dt_weight_sources *h, dt_stage *s, const char *const *fresh, uint32_t want)
    DT_NODISCARD;

#endif
