/* SPDX-License-Identifier: Apache-2.0
 *
 * A trainer of a phase from its description and the sections training, data and engine: parameters of its models,
 * groups, target networks, precision and memory. Threads: the rank's.
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_TRAIN_CREATE_H
#define DTRAIN_CORE_PLUGIN_SERVICE_TRAIN_CREATE_H

#include "plugin/service/stage.h"

/* desc: the first struct_size bytes are read. *out_p belongs to the stage. Errors: DT_EPLUGIN (the description),
 * DT_ECONFIG, DT_ENOMEM, and those of dt_trainer_create. */
dt_status dt_train_create(dt_stage *s, const dt_train_desc *desc, dt_train **out_p) DT_NODISCARD;

#endif
