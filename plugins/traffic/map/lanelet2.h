/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two files of lanelet2 share: a map as map_lanelet2.c reads it from OSM XML, of which lanelet2_lanes.c makes
 * lanes. Threads: any; a map belongs to one.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_LANELET2_H
#define DTRAIN_PLUGINS_TRAFFIC_LANELET2_H

#include "traffic/map/lane_builder.h"
#include "traffic/map/map_reader.h"
#include "traffic/text/names.h"

enum { DT_OSM_ID_BYTES = 32, DT_LEFT = 0, DT_RIGHT = 1 };
enum { DT_OSM_LATITUDE, DT_OSM_LONGITUDE, DT_OSM_X, DT_OSM_Y, DT_OSM_N_COORDINATES };

/* Parts of a map may come in any order: a reference makes an entry, which the part that it names fills. */
typedef struct dt_osm_node {
    bool is_there;
    bool is_used;                    /* by a bound of a lanelet: others are not checked */
    double at[DT_OSM_N_COORDINATES]; /* NAN: not there */
} dt_osm_node;

typedef struct dt_osm_way {
    bool is_there;
    int64_t first, n; /* into the pool of nodes of ways */
} dt_osm_way;

typedef struct dt_lanelet {
    int64_t line, id;
    int32_t way[2]; /* -1: none yet */
    bool is_turned[2];
    int32_t kind;
    double limit;             /* m/s, 0: unknown */
    int64_t rule, n_rules;    /* into the references to rules */
    int32_t begin[2], end[2]; /* nodes, when it is directed */
} dt_lanelet;

typedef struct dt_osm_pool { /* of int32, or of what is stored next to names */
    void *data;
    int64_t n, cap;
} dt_osm_pool;

typedef enum dt_osm_part { DT_OSM_OUTSIDE, DT_OSM_NODE, DT_OSM_WAY, DT_OSM_RELATION } dt_osm_part;

typedef struct dt_lanelet2 {
    const char *path;
    const dt_map_origin *origin;
    dt_osm_part part;
    int64_t line; /* of the part that is open */
    char id[DT_OSM_ID_BYTES];
    dt_names nodes, ways, rules, wanted_rules;
    dt_osm_pool node, way;  /* [nodes.n], [ways.n] */
    dt_osm_pool lanelet;    /* as they came */
    dt_osm_pool way_node;   /* int32 numbers of nodes */
    dt_osm_pool rule_limit; /* double [rules.n] m/s, 0: none */
    dt_osm_pool rule_ref;   /* int32 numbers of required rules */
    int32_t number;         /* of the node or way that is open */
    dt_lanelet new_lanelet;
    char type[32], subtype[32];
    char sign[64]; /* of a rule */
    bool has_turn;
    dt_lane_builder book;
} dt_lanelet2;

#define DT_OSM_AT(p, T, i) (((T *)(p).data)[i])

/* Lanes of all lanelets of m, which has one at least, their successors and neighbours, in m->book, which is not closed.
 * Errors: DT_EDATA (places too far from the origin, nodes of several kinds, rules that are not there), DT_ENOMEM. */
dt_status dt_lanelet2_build_lanes(dt_lanelet2 *m) DT_NODISCARD;

#endif
