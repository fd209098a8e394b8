/* SPDX-License-Identifier: Apache-2.0
 *
 * The writer of a store, for the files that make one: store_write.c takes frames and scenes as they come,
 * store_join.c scenes of parts, store_json_write.c describes what has become of them. All others see store.h.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_STORE_WRITER_H
#define DTRAIN_PLUGINS_TRAFFIC_STORE_WRITER_H

#include "traffic/store/batches.h"
#include "traffic/store/feature_stats.h"
#include "traffic/store/tracker.h"
#include "traffic/store/npy.h"
#include "traffic/store/store.h"
#include "traffic/store/store_arrays.h"
#include "traffic/store/store_roads.h"
#include "base/json.h"

enum { DT_STORE_SITES_MAX = 4096 };

/* What a scene adds to, as it was when the scene began. */
typedef struct dt_store_point {
    int64_t rows[N_ARRAYS]; /* of the arrays */
    dt_store_counts count;
} dt_store_point;

struct dt_store_writer {
    dt_staging *aside;
    dt_store_meta meta;
    dt_npy_writer *array[N_ARRAYS];
    dt_store_counts count;
    bool is_in_scene, is_committed;
    int64_t next_frame, scene_rows; /* in this scene, written */
    double scene_t0;                /* time of its frame 0 */
    int32_t scene_map;              /* -1: none */
    dt_bounds scene_extent;         /* of its positions */
    dt_roads_writer roads;
    dt_tracker live;                      /* the vehicles in sight */
    dt_feature_stats stat, scene_stat;    /* of the scenes before, of this one */
    dt_npy_writer *part_hash, *part_stat; /* of a part: scene_hash and scene_stat of each scene */
    dt_packed_errors errors;
    dt_repeats repeats;
    uint64_t scene_hash;
    dt_store_point begin; /* of the scene */
    int64_t n_repeats;
    dt_str scenes; /* JSON text of the list */
    dt_json_out scenes_out;
    char *site[DT_STORE_SITES_MAX];
    int32_t n_sites;
    dt_batches *ahead;   /* of frames that are given and not written yet; NULL: of a joined store */
    int64_t given_frame; /* in this scene: one more than the last that was given */
};

/* store.json into the folder that is written, once everything else is there. DT_EIO, DT_ENOMEM. */
dt_status dt_store_json_write(dt_store_writer *w) DT_NODISCARD;

/* Of a part, store_part.c: the arrays that a store has not. DT_EIO, DT_ENOMEM. */
dt_status dt_store_part_open(dt_store_writer *w) DT_NODISCARD;
dt_status dt_store_part_scene(dt_store_writer *w) DT_NODISCARD; /* the scene that ends */
dt_status dt_store_part_close(dt_store_writer *w) DT_NODISCARD;

#endif
