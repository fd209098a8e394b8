/* SPDX-License-Identifier: Apache-2.0
 *
 * Does a phase record the same graph whenever it is asked? For `dtrain check`. Threads: [main].
 */
#ifndef DTRAIN_CORE_TRAIN_RECORD_AGAIN_H
#define DTRAIN_CORE_TRAIN_RECORD_AGAIN_H

#include "train/trainer.h"

/* Records a graph for training, and appends its fingerprint: the same each time. Errors: those of recording. */
dt_status dt_trainer_record_again(dt_trainer *t, dt_str *out) DT_NODISCARD;

#endif
