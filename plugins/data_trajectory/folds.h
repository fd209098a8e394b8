/* SPDX-License-Identifier: Apache-2.0
 *
 * Which scenes of a store are held out for evaluation. Scenes that show the same traffic stay on one side:
 *  - scenes whose names agree before '#' are parts of one recording;
 *  - scenes of one site that share stretches of recorded motion overlap in time, whatever they are called; motion that
 *    two vehicles of one scene share, or that is none, proves nothing.
 * Such groups are dealt to the folds site by site, the largest first, each to the fold with the fewest rows of that
 * site so far (Graham 1969), so that folds are balanced by site and by size. Threads: any, no state.
 */
#ifndef DTRAIN_DATA_TRAJECTORY_FOLDS_H
#define DTRAIN_DATA_TRAJECTORY_FOLDS_H

#include "dtrain/traffic/store.h"

/* is_held [n_scenes]: 1 where the scene belongs to the given fold of n_folds. Errors: DT_ENOMEM. */
dt_status folds_deal(const dt_host *h, const dt_store_view *v, int64_t n_folds, int64_t fold, uint8_t *is_held);
/* first: the first two scenes that are one recording by the motion of their vehicles alone, not by name; -1: there are
 * none. Errors: DT_ENOMEM. */
dt_status folds_find_shared(const dt_host *h, const dt_store_view *v, int64_t first[2]);
/* is_held [n_scenes]: 1 where the scene is of that site. Errors: DT_ECONFIG lists the sites there are. */
dt_status folds_of_site(const dt_host *h, const dt_store_view *v, const char *site, uint8_t *is_held);

#endif
