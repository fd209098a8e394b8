/* SPDX-License-Identifier: Apache-2.0
 *
 * What buffer.c, which fills a buffer, and buffer_read.c, which reads samples out of it, share. Threads: any.
 */
#ifndef DTRAIN_CORE_ROLLOUT_BUFFER_INTERNAL_H
#define DTRAIN_CORE_ROLLOUT_BUFFER_INTERNAL_H

#include "rollout/buffer.h"

/* Of a field of the data, dt_buffer_field.kind. */
enum {
    FIELD_OBS,
    FIELD_STEPS,
    FIELD_HISTORY,
    FIELD_PRESENT,
    FIELD_ACTION_I,
    FIELD_ACTION_F,
    FIELD_MASK,
    FIELD_LOG_PROB,
    FIELD_VALUE,
    FIELD_ADVANTAGE,
    FIELD_TARGET,
    FIELD_COST_VALUE,
    FIELD_COST_ADVANTAGE,
    FIELD_COST_TARGET,
    FIELD_ROW_KEY,
    FIELD_NEXT,
    FIELD_NEXT_INDEX,
    FIELD_NEXT_PRESENT,
    FIELD_COST_IN,
    FIELD_REWARD,
    FIELD_COST,
    FIELD_TERMINATED,
    FIELD_TRUNCATED,
    FIELD_EXECUTED,
    FIELD_PLACE,
    FIELD_NEXT_MASK,
    FIELD_OTHERS,
    FIELD_OTHERS_F,
    FIELD_DISCOUNT,
    FIELD_WEIGHT,
    FIELD_ANNOTATION,
    FIELD_KEPT
};

#endif
