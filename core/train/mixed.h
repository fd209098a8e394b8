/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored samples next to those of a source whose samples change: as a source, one sample of which is a live one with
 * the stored ones that fell to it. Of the live samples 0 .. count - 1, n stored ones fall to sample i as i n / count
 * reports, evenly; which ones they are is drawn again whenever the live ones changed, without replacement until all
 * were drawn.
 *
 * Fields and symbols of the stored data have DT_MIXED_PREFIX before their names, so that both may have an "N".
 * Stored fields are read all or none. Threads: create and draw [main], all else as dt_data_ops.
 */
#ifndef DTRAIN_CORE_TRAIN_MIXED_H
#define DTRAIN_CORE_TRAIN_MIXED_H

#include "train/samples.h"

#define DT_MIXED_PREFIX "stored."

typedef struct dt_mixed dt_mixed;

/* live and stored outlive it. Errors: DT_EPLUGIN (live samples do not change; too many fields or symbols), DT_EDATA
 * (nothing is stored), DT_ENOMEM. */
dt_status dt_mixed_create(const dt_samples *live, const dt_samples *stored, uint64_t n, dt_mixed **out_p) DT_NODISCARD;
void dt_mixed_destroy(dt_mixed *m);
const dt_samples *dt_mixed_samples(const dt_mixed *m);
const dt_samples *dt_mixed_live_samples(const dt_mixed *m);
/* epoch: of training, when the live samples changed. The same arguments draw the same samples. */
void dt_mixed_draw_stored(dt_mixed *m, uint64_t seed, uint32_t phase, uint64_t epoch);
/* Is it this mixture, or a copy of its face? NULL: no. */
bool dt_mixed_contains(const dt_mixed *m, const dt_samples *s);

#endif
