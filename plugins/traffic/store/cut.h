/* SPDX-License-Identifier: Apache-2.0
 *
 * Large scenes cut by place: a store of regions, in which every region of a scene is a scene, of all its frames, with a
 * halo of vehicles around it. A row is core in one region, where it is in its frame, and halo in others. So that what
 * a core vehicle is, sees and does in a window does not reveal that the scene was cut:
 *   own:   of every vehicle the rows within halo_s before and after one of its core rows;
 *   seen:  all within halo_m of one of these in its frame;
 *   past:  of those that are within halo_m of a core row the rows of halo_s before;
 *   other: where none of these is in a frame that is not empty, and a core row at most halo_s before, its first row, so
 *          that a window may end there.
 * What is recorded and what was derived is copied bit for bit (store_cut.c). Roads stay whole: the scene of a region
 * refers to the map of its scene, which is there once. Memory: 9 bytes a row of the largest scene. Cost: a pass over a
 * scene for each of its regions. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_CUT_H
#define DTRAIN_PLUGINS_TRAFFIC_CUT_H

#include "base/str.h"
#include "traffic/store/store.h"

typedef struct dt_cut_options {
    double tile_m;   /* side of square regions; 0: so many of about as many rows each */
    int64_t regions; /* of every scene; 0: tiles */
    double halo_m;   /* [radius_m of the store, DT_CUT_HALO_MOST_M], at most tile_m */
    double halo_s;   /* [0, DT_CUT_HALO_MOST_S] */
    dt_packing packing;
} dt_cut_options;

/* Region k of scene A is called A#rK, of A#2 A#2.rK: they stay of one recording. out must not exist; nothing is left
 * there when it fails. DT_EINVAL (out, options), DT_EDATA, DT_ENOTFOUND, DT_EIO, DT_ENOMEM. */
dt_status dt_data_cut(const char *store, const char *out, const dt_cut_options *opt, dt_str *notes) DT_NODISCARD;

/* What makes a store out of this one derives again what depends on vehicles that are not there any more: DT_EDATA where
 * it is one of regions. */
dt_status dt_cut_check_whole(const dt_store *s, const char *what) DT_NODISCARD;

#endif
