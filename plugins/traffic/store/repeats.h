/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenes that are the same recording twice, whatever they are called: positions, how turned and how fast, in which
 * frame, by a hash of 64 bits. Numbers of vehicles, names and times of day may differ. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_REPEATS_H
#define DTRAIN_PLUGINS_TRAFFIC_REPEATS_H

#include "traffic/text/names.h"

#include <stdint.h>

typedef enum dt_repeats_policy { DT_REPEATS_KEEP, DT_REPEATS_SKIP, DT_REPEATS_REFUSE } dt_repeats_policy;

extern const char *const dt_repeats_policies[]; /* "keep", "skip", "refuse", NULL */

typedef struct dt_repeats { /* zeroed is empty */
    dt_names hashes;
    char **scene; /* [cap] names, of hashes.n */
    int32_t cap;
} dt_repeats;

/* One vehicle in one frame of a scene, in the order in which they are kept; hash: of those before, 0 at first. */
uint64_t dt_repeats_hash(uint64_t hash, int64_t frame, const double pose[3], float speed);
/* The same of a row of a region, which may hold the rows of the adjacent one: whose core they are distinguishes them.
 * */
uint64_t dt_repeats_hash_core(uint64_t hash, uint8_t is_core);
/* A scene with this hash. *same_p: the first one that has it, lives as long as r; NULL: this is it. DT_ENOMEM. */
dt_status dt_repeats_add(dt_repeats *r, uint64_t hash, const char *scene, const char **same_p) DT_NODISCARD;
void dt_repeats_fini(dt_repeats *r);

#endif
