/* SPDX-License-Identifier: Apache-2.0
 *
 * The roads of a store: what store_write.c does with maps, and what store_check.c checks. See store.h. Threads: as the
 * store.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_STORE_ROADS_H
#define DTRAIN_PLUGINS_TRAFFIC_STORE_ROADS_H

#include "traffic/map/bounds.h"
#include "traffic/text/names.h"
#include "traffic/store/npy.h"
#include "traffic/store/store.h"
#include "base/json.h"

enum { /* the arrays, in the order of arrays.def */
       DT_ROADS_SCENE_MAP,
       DT_ROADS_MAP_LANE,
       DT_ROADS_LANE_POINT,
       DT_ROADS_LANE_XY,
       DT_ROADS_LANE_WIDTH,
       DT_ROADS_LANE_KIND,
       DT_ROADS_LANE_LIMIT,
       DT_ROADS_LANE_ID,
       DT_ROADS_LANE_NEXT_PTR,
       DT_ROADS_LANE_NEXT,
       DT_ROADS_LANE_LEFT,
       DT_ROADS_LANE_RIGHT,
       DT_ROADS_ARRAYS
};

typedef struct dt_roads_writer { /* zeroed is without a map */
    dt_npy_writer **array;       /* [DT_ROADS_ARRAYS] of the store's writer; open from the first map on */
    dt_names known;              /* digests and names of the maps, numbered as they are */
    dt_bounds *extent;           /* [extents_cap], known.n of them: where their lanes lie */
    int32_t extents_cap;
    dt_str names; /* JSON text of the list */
    dt_json_out names_out;
    int64_t lanes, points, links;
} dt_roads_writer;

/* The arrays are open. DT_EDATA (more than can be numbered), DT_EIO, DT_ENOMEM. */
dt_status dt_roads_write(dt_roads_writer *w, const char *name, const dt_roads *roads, int32_t *number_p) DT_NODISCARD;
/* The positions of a scene reach as near to the lanes of its map as near_m. DT_EDATA with both boxes and what to do. */
dt_status dt_roads_check_near(const dt_roads_writer *w, const char *scene, int32_t map, const dt_bounds *positions,
                              double near_m) DT_NODISCARD;
dt_status dt_roads_write_end(dt_roads_writer *w) DT_NODISCARD; /* of a store that has maps: the last pointers */
void dt_roads_writer_fini(dt_roads_writer *w);                 /* the arrays stay the store's */

/* Everything that lets readers trust the roads of a view. path: of the store, for messages; forget(store) is called now
 * and then, for pages read so far. Both NULL: the view is in memory, and path is an HDF5 file. DT_EDATA with
 * file and what. Cost: one pass. */
dt_status dt_roads_check(const dt_store_view *v, const char *path, void (*forget)(const dt_store *store),
                         const dt_store *store) DT_NODISCARD;
/* The digest, and the roads of a view after it; without roads the digest itself. */
uint64_t dt_roads_digest(const dt_store_view *v, uint64_t digest);

#endif
