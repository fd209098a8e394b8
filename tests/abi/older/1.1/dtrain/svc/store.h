/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.store/1": read-only view of a trajectory store made by `dtrain data import` (memory-mapped .npy
 * arrays, checked when opened). Pointers live until close. Threads: open and close [main], reading [any].
 */
#ifndef DTRAIN_SVC_STORE_H
#define DTRAIN_SVC_STORE_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_STORE "dtrain.store/1"

typedef struct dt_store_view {
    uint32_t struct_size, n_sites;
    double frame_rate_hz;
    int64_t n_scenes, n_frames, n_rows, n_tracks, n_edges;
    const int64_t *scene_frame; /* [n_scenes+1] frames of scene s */
    const int64_t *frame_row;   /* [n_frames+1] rows of frame f */
    const double *frame_time;   /* [n_frames] s */
    const float *node;          /* [n_rows,9] features as in INTERFACES, unnormalised */
    const double *pose;         /* [n_rows,3] x y heading, m and rad */
    const float *motion;        /* [n_rows,4] speed, acceleration, length, width */
    const int32_t *row_track;   /* [n_rows] store-wide track number */
    const int64_t *track_ptr;   /* [n_tracks+1] into track_row */
    const int64_t *track_row;   /* [n_rows] rows of a track in time order */
    const int64_t *edge_ptr;    /* [n_rows+1] edges of target row */
    const int32_t *edge_src;    /* [n_edges] source, index within the frame */
    const float *edge;          /* [n_edges,4] */
    const uint8_t *risk;        /* [n_rows] 0 negative 1 positive 2 positive already now 3 unknown */
    const int32_t *scene_site;  /* [n_scenes] */
    const char *const *site;    /* [n_sites] names */
    const char *const *scene;   /* [n_scenes] names */
    const double *node_mean;    /* [9] over the whole store */
    const double *node_std;     /* [9] */
    const double *edge_mean;    /* [4] */
    const double *edge_std;     /* [4] */
} dt_store_view;

typedef struct dt_store_api {
    uint32_t struct_size, reserved;
    dt_status (*open)(const dt_host *h, const char *path, const dt_store_view **out); /* DT_ENOTFOUND, DT_EDATA */
    void (*close)(const dt_host *h, const dt_store_view *v);
} dt_store_api;

#ifdef __cplusplus
}
#endif
#endif
