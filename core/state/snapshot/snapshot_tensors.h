/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of a stage as a checkpoint names them: parameters, and the optimizer's moments of them ("m.", "v.").
 * Their values stay where the trainer has them. Threads: [main].
 */
#ifndef DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_TENSORS_H
#define DTRAIN_CORE_STATE_SNAPSHOT_SNAPSHOT_TENSORS_H

#include "state/checkpoint/checkpoint.h"
#include "plugin/service/stage.h"

typedef struct dt_tensor_list { /* dt_tensor_list_fini, whatever became of it */
    dt_ckpt_tensor *t;
    dt_str *name; /* [cap] owns the names with a prefix */
    uint32_t n, cap;
} dt_tensor_list;

void dt_tensor_list_fini(dt_tensor_list *l);
/* Errors: DT_ENOMEM, those of the device that has them. */
dt_status dt_tensors_list_model(dt_stage *s, dt_tensor_list *l) DT_NODISCARD;
dt_status dt_tensors_list_optim(dt_stage *s, dt_tensor_list *l) DT_NODISCARD;
/* DT_EDIVERGED: a value is not finite. */
dt_status dt_tensors_check_finite(const dt_tensor_list *l) DT_NODISCARD;

#endif
