/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores of regions, scenes cut by place: which vehicles are of a scene's region, and which of the halo around it.
 * Threads: [any].
 */
#ifndef DTRAIN_DATA_TRAJECTORY_REGION_H
#define DTRAIN_DATA_TRAJECTORY_REGION_H

#include "dtrain/helpers.h"
#include "dtrain/traffic/store.h"

#include <stddef.h>

static inline int region_is_known(const dt_store_view *v)
{
    return v->core != NULL;
}

/* Is this row used for training and evaluation? */
static inline int region_has(const dt_store_view *v, int64_t r)
{
    return !region_is_known(v) || v->core[r] != 0;
}

#endif
