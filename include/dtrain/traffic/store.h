/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "traffic.store/1" of the plugin traffic, which is part of dtrain: read-only view of a trajectory store made
 * by `dtrain data import` (memory-mapped .npy arrays, checked when opened). Pointers live until close. Threads: open
 * and close [main], reading [any].
 */
#ifndef DTRAIN_TRAFFIC_STORE_H
#define DTRAIN_TRAFFIC_STORE_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_STORE "traffic.store/1"

enum { DT_STORE_NODE = 0, DT_STORE_EDGE = 1, DT_STORE_EDGE_SRC = 2 }; /* arrays that may be packed */

typedef struct dt_store_view {
    uint32_t struct_size, n_sites;
    double frame_rate_hz;
    int64_t n_scenes, n_frames, n_rows, n_tracks, n_edges;
    const int64_t *scene_frame; /* [n_scenes+1] frames of scene s */
    const int64_t *frame_row;   /* [n_frames+1] rows of frame f */
    const double *frame_time;   /* [n_frames] s */
    const float *node;          /* [n_rows,9] features, unnormalised; of the past alone, as models may see them */
    const double *pose;         /* [n_rows,3] x y heading, m and rad; heading NAN: unknown; node has a sine and a cosine
                                 * of 0 then, and the vehicle no edge but the one to itself */
    const float *motion;       /* [n_rows,4] speed, acceleration as recorded, length, width; all but the speed NAN where
                                 * unknown */
    const int32_t *row_track;  /* [n_rows] store-wide track number */
    const int64_t *track_ptr;  /* [n_tracks+1] into track_row */
    const int64_t *track_row;  /* [n_rows] rows of a track in time order */
    const int64_t *edge_ptr;   /* [n_rows+1] edges of target row */
    const int32_t *edge_src;   /* [n_edges] source, index within the frame */
    const float *edge;         /* [n_edges,4] */
    const uint8_t *risk;       /* [n_rows] 0 negative 1 positive 2 positive already now 3 unknown */
    const int32_t *scene_site; /* [n_scenes] */
    const char *const *site;   /* [n_sites] names */
    const char *const *scene;  /* [n_scenes] names */
    const double *node_mean;   /* [9] over the whole store */
    const double *node_std;    /* [9] */
    const double *edge_mean;   /* [4] */
    const double *edge_std;    /* [4] */
    const float *accel_centred; /* [n_rows] m/s^2, averaged over what comes before and after: for labels, not for models
                                 * to see; NULL where accelerations are as they were recorded */
    /* roads; without any the counts are 0 and the pointers NULL */
    int64_t n_maps, n_lanes, n_lane_points, n_lane_links;
    const char *const *map;       /* [n_maps] names; two may have the same */
    const int32_t *scene_map;     /* [n_scenes] map of a scene, -1: none */
    const int64_t *map_lane;      /* [n_maps+1] lanes of a map; at least one each */
    const int64_t *lane_point;    /* [n_lanes+1] points of a lane; at least two each */
    const double *lane_xy;        /* [n_lane_points,2] centre line in driving direction, m, as pose; no point twice in a
                                   * row */
    const float *lane_width;      /* [n_lane_points] m, 0: unknown */
    const int32_t *lane_kind;     /* [n_lanes] DT_LANE_* */
    const float *lane_limit;      /* [n_lanes] speed limit, m/s, 0: unknown */
    const int64_t *lane_id;       /* [n_lanes] the source's number, 0 where it has none */
    const int64_t *lane_next_ptr; /* [n_lanes+1] into lane_next */
    const int32_t *lane_next;  /* [n_lane_links] successors, store-wide numbers of lanes of the same map, ascending */
    const int32_t *lane_left;  /* [n_lanes] neighbour of the same direction, -1: none */
    const int32_t *lane_right; /* [n_lanes] */
    /* a store of regions, scenes cut by place (dtrain data cut); of any other one NULL and 0 */
    const uint8_t *core;        /* [n_rows] 1: the vehicle is of the region; 0: of the halo around it, which others see,
                                 * and which is excluded from training and evaluation */
    const double *frame_centre; /* [n_frames,2] m, mean position of all vehicles of the frame before it was cut */
    double halo_m,
        halo_s; /* a core vehicle's past and future of so many seconds are there, whole, and each vehicle that was
                                 * within so many metres of it then, with as long a past */
} dt_store_view;

/* lane_kind */
enum {
    DT_LANE_UNKNOWN = 0,
    DT_LANE_ROAD = 1, /* urban or rural */
    DT_LANE_HIGHWAY = 2,
    DT_LANE_RAMP = 3, /* on and off */
    DT_LANE_JUNCTION = 4,
    DT_LANE_BICYCLE = 5,
    DT_LANE_FOOT = 6,
    DT_LANE_BUS = 7,
    DT_LANE_OTHER = 8,
    DT_N_LANE_KINDS = 9
};

typedef struct dt_store_api {
    uint32_t struct_size, reserved;
    /* Of packed stores the view's node, edge and edge_src may be NULL, each by itself, and are then read by slices; at
     * most cache_bytes of unpacked blocks are held, 0: the host's choice. Stores of regions have core. DT_ENOTFOUND,
     * DT_EDATA. */
    dt_status (*open)(const dt_host *h, const char *path, uint64_t cache_bytes, const dt_store_view **out);
    void (*close)(const dt_host *h, const dt_store_view *v);
    /* Rows [from, from + n) of an array, DT_STORE_*, as the view would show them; of packed features what they are kept
     * as, which differs from what was imported by no more than store.json states. [any thread] DT_EINVAL, DT_EDATA,
     * DT_ENOMEM. */
    dt_status (*read)(const dt_host *h, const dt_store_view *v, uint32_t array, int64_t from, int64_t n, void *out);
    /* Digest (svc/datasets.h) of the store at path, which is opened for this alone. DT_ENOTFOUND, DT_EDATA. */
    dt_status (*digest)(const dt_host *h, const char *path, uint64_t *digest_p);
} dt_store_api;

#ifdef __cplusplus
}
#endif
#endif
