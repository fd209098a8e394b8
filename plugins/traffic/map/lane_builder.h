/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes of a map file that name each other: what readers of maps pass their lanes to. Lanes come in any order, and what
 * a lane refers to may come after it; when all are there, names become numbers and the map is sealed. A line between
 * two bounds is made here too. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_LANE_BUILDER_H
#define DTRAIN_PLUGINS_TRAFFIC_LANE_BUILDER_H

#include "traffic/text/names.h"
#include "traffic/map/roads.h"
#include "base/str.h"

#include <stdint.h>

typedef struct dt_polyline { /* zeroed is empty */
    double *xy;              /* [n,2] m */
    int64_t n, cap;
} dt_polyline;

dt_status dt_polyline_add(dt_polyline *p, double x, double y) DT_NODISCARD; /* DT_ENOMEM */
void dt_polyline_reverse(dt_polyline *p);
void dt_polyline_clear(dt_polyline *p); /* keeps its room */
void dt_polyline_fini(dt_polyline *p);

/* The line midway between two bounds, and the distance between them at each of its points. Bounds with as many points
 * are paired point by point. Others are paired at the same share of their lengths, at every share at which either of
 * them has a point. line_p and width_p [2, as line] are cleared before. Errors: DT_ENOMEM. */
dt_status dt_polyline_between(const dt_polyline *left, const dt_polyline *right, dt_polyline *line_p, double **width_p)
    DT_NODISCARD;

typedef enum dt_lane_ref { DT_REF_NEXT, DT_REF_BEFORE, DT_REF_LEFT, DT_REF_RIGHT, DT_REF_OPPOSITE } dt_lane_ref;

typedef struct dt_lane_builder { /* zeroed but for path is empty */
    const char *path;            /* for messages */
    const char *word;            /* what a lane is called there, "lanelet" */
    bool may_lack;               /* the map is a piece of a larger one: what it refers to may not be there */
    int64_t n_lacking;           /* such references, when it is closed */
    int64_t n_odd_limits;        /* limits of speed that are none that is known */
    char odd_limit[64];          /* one of them */
    dt_roads roads;
    dt_names names;  /* of lanes, numbered as they are */
    dt_names wanted; /* names that lanes refer to */
    struct dt_lane_ref_entry *ref;
    int64_t n_refs, refs_cap;
} dt_lane_builder;

/* The lane of that name, at the end; line: of the file. Errors: DT_EDATA (a name twice, those of dt_roads_lane),
 * DT_ENOMEM. */
dt_status dt_lane_builder_add(dt_lane_builder *b, int64_t line, const char *name, const dt_road_lane *lane)
    DT_NODISCARD;
/* What lane number from refers to; the lane itself may come later. Errors: DT_EDATA, DT_ENOMEM. */
dt_status dt_lane_builder_refer(dt_lane_builder *b, int64_t line, int32_t from, dt_lane_ref role, const char *name)
    DT_NODISCARD;
/* A limit of speed that is not understood or outside (0, DT_LANE_LIMIT_MAX] stays unknown, is counted and reported. */
void dt_lane_builder_count_bad_limit(dt_lane_builder *b, const char *text);
void dt_lane_builder_report(const dt_lane_builder *b, dt_str *notes);
/* Everything is there: b->roads is sealed. Errors: DT_EDATA (a lane that is not there and must be, two neighbours on
 * one side, a lane next to itself), DT_ENOMEM. */
dt_status dt_lane_builder_close(dt_lane_builder *b) DT_NODISCARD;
void dt_lane_builder_fini(dt_lane_builder *b);

#endif
