/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores out of stores: several into one, one into parts, a sample of one. What was recorded (names, times, places,
 * speeds, accelerations, sizes) is copied bit for bit; what is made of it (features, averages, risk) is computed again
 * by the options of the stores it comes from. Scenes that share the part of their name before '#' are of one recording
 * and stay together. Stores may be kept in fewer bits or packed: what comes out is written with packing, NULL: plainly,
 * and owes nothing to how its sources were. Memory: one frame. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_MERGE_SPLIT_H
#define DTRAIN_PLUGINS_TRAFFIC_MERGE_SPLIT_H

#include "base/str.h"
#include "traffic/store/store.h"

/* store [n]: in this order. They have the same frame rate, radius, neighbours and smoothing, and no scene in common.
 * out must not exist; nothing is left there when it fails. Errors: DT_EINVAL (out), DT_EDATA, DT_ENOTFOUND, DT_EIO,
 * DT_ENOMEM. */
dt_status dt_data_merge(const char *const *store, uint32_t n, const char *out, const dt_packing *packing, dt_str *notes)
    DT_NODISCARD;

enum { DT_SPLIT_SCENE, DT_SPLIT_SITE, DT_SPLIT_TIME };

typedef struct dt_split_options {
    int by;        /* DT_SPLIT_* */
    double share;  /* of the rows that go to the first part (scene: nearly), of each scene's time; in (0, 1) */
    double gap_s;  /* of each scene, left out between its two parts (time) */
    uint64_t seed; /* which scenes (scene) */
    dt_packing packing;
} dt_split_options;

/* A folder with two stores, "first" and "second" (scene, time), or one for each site, named like it (site). Errors: as
 * of dt_data_merge; DT_EDATA also where a part would have no row. */
dt_status dt_data_split(const char *store, const char *out, const dt_split_options *opt, dt_str *notes) DT_NODISCARD;

typedef struct dt_sample_options {
    int64_t scenes; /* at most so many of them; 0: all */
    double seconds; /* at most so long a piece of each; 0: the whole */
    uint64_t seed;  /* which scenes, and where a piece begins */
    dt_packing packing;
} dt_sample_options;

/* A random part of a store, in the order of the store. Errors: as of dt_data_merge. */
dt_status dt_data_sample(const char *store, const char *out, const dt_sample_options *opt, dt_str *notes) DT_NODISCARD;

#endif
