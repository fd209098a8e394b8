/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a sample is drawn, so that what is rare is learned from as often as what is not. Threads: any, no state.
 */
#ifndef DTRAIN_DATA_TRAJECTORY_WEIGHTS_H
#define DTRAIN_DATA_TRAJECTORY_WEIGHTS_H

#include "dtrain/traffic/store.h"

enum { WEIGHTS_NONE, WEIGHTS_SITE, WEIGHTS_SCENE, WEIGHTS_RISK };

typedef struct weights_sample {
    int64_t scene, anchor; /* frame of the store */
} weights_sample;

/* out [n]: all sites as often as each other, or all scenes, or those in whose anchor some vehicle is in danger as often
 * as the others; samples of one kind are drawn equally often. Errors: DT_ENOMEM. */
dt_status weights_of(const dt_host *h, const dt_store_view *v, uint32_t by, const weights_sample *s, uint64_t n,
                     double *out);

#endif
