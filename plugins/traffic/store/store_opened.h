/* SPDX-License-Identifier: Apache-2.0
 *
 * An open store, for the files that open and read one: store_open.c maps its arrays, by what store_json_read.c read of
 * them, store_check.c and store_ranges.c check every value, store_read.c hands out what is in it. All others see
 * store.h.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_STORE_OPENED_H
#define DTRAIN_PLUGINS_TRAFFIC_STORE_OPENED_H

#include "traffic/store/npy.h"
#include "traffic/store/store.h"
#include "traffic/store/store_arrays.h"

enum { DT_STORE_SOURCE_BYTES = 4096 };

struct dt_store {
    dt_store_view view;
    dt_npy array[N_ARRAYS];
    dt_packed packed;
    char *path;
    dt_store_counts count;
    char **site, **scene, **map;
    int64_t n_sites, n_scenes, n_maps, sites_cap, scenes_cap, maps_cap;
    dt_feature_stat node_stat[DT_NODE_FEATURES], edge_stat[DT_EDGE_FEATURES];
    double node_mean[DT_NODE_FEATURES], node_std[DT_NODE_FEATURES];
    double edge_mean[DT_EDGE_FEATURES], edge_std[DT_EDGE_FEATURES];
    char source[DT_STORE_SOURCE_BYTES];
    int64_t version;
    char format[64];
    double smooth_s, radius_m;
    int64_t neighbours;
    uint32_t seen;
};

/* store.json: version, counts, names, statistics, and how arrays are kept, all of which fit each other. DT_ENOTFOUND,
 * DT_EDATA, DT_EIO, DT_ENOMEM. */
dt_status dt_store_json_read(dt_store *s) DT_NODISCARD;
/* Every value of the arrays, which are mapped and in the view: readers trust an index from here on. jobs: threads, the
 * caller's among them; the first error is reported, whatever their number. DT_EDATA with file and what, DT_ENOMEM.
 * Cost: one pass. */
dt_status dt_store_check(dt_store *s, uint32_t jobs) DT_NODISCARD;

/* One of the checks, by one thread. */
typedef struct dt_store_look {
    const dt_store *s;
    size_t touched; /* bytes of the arrays read since they were forgotten */
} dt_store_look;

/* So many bytes of the arrays were read; resident memory stays small all the same. */
void dt_store_count_read_bytes(dt_store_look *l, size_t bytes);
/* Of what is about ranges a part of DT_STORE_RANGES, about as large as another: times that rise, and what was recorded,
 * features and statistics within the limits of an import. DT_EDATA with array, row and value. Cost: one pass over these
 * arrays. */
enum { DT_STORE_RANGES = 4 };
dt_status dt_store_check_ranges(dt_store_look *l, int part) DT_NODISCARD;

#endif
