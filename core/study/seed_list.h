/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of seeds as people write them: "1..10", "3", "1,2,5..7". Threads: any (no state).
 */
#ifndef DTRAIN_CORE_STUDY_SEED_LIST_H
#define DTRAIN_CORE_STUDY_SEED_LIST_H

#include "dtrain/status.h"

#include <stdint.h>

enum { DT_SEEDS_MAX = 1000 };

/* In the order of the text, into seed[DT_SEEDS_MAX]. Errors: DT_ECONFIG: no list, a range that falls, a seed twice,
 * more * than DT_SEEDS_MAX. */
dt_status dt_seed_list_parse(const char *text, uint64_t *seed, uint32_t *n_p) DT_NODISCARD;

#endif
