/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of data_trajectory share: windows over a store, and the steps of their making. data_trajectory.c
 * begins and ends them, splits.c lists them, reading.c fills a slice, with graphs.c for the past that
 * perception sees and vehicles.c for the past and future of each vehicle; statistics.c computes what
 * features are like. Threads: once begun only read: [any].
 */
#ifndef DTRAIN_DATA_TRAJECTORY_WINDOWS_H
#define DTRAIN_DATA_TRAJECTORY_WINDOWS_H

#include "dtrain/helpers.h"
#include "dtrain/traffic/features.h"
#include "dtrain/traffic/store.h"
#include "augment.h"
#include "danger.h"
#include "lanes.h"
#include "slices.h"
#include "weights.h"

#include <math.h>
#include <stdbool.h>

enum {
    T_MAX = 512,
    N_SYMBOLS = 3, /* N E S */
    MOTION = 6,
    DIMS_BYTES = 32
};

enum { SPLIT_ALL, SPLIT_TRAIN, SPLIT_EVAL, SPLIT_CALIBRATION };
enum { FOR_TRAINING, FOR_HELD, FOR_ALL };

typedef struct windows_config {
    const char *store;
    uint32_t split, eval_scenes;
    double history_s, horizon_s, rate_hz;
    double stride_s, train_stride_s, min_history_s, min_future_s;
    int64_t folds, fold, cache_mb, calibration_folds;
    const char *eval_site;
    double shift_m, speed_noise_mps, position_noise_m, drop_edges, hide_nodes;
    uint8_t rotate, mirror;
    uint32_t balance;
    uint8_t pairs, hazard_collisions, lanes;
    double action_s, brake_mps2, hazard_ttc_s, hazard_mps2;
    int64_t hazard_steps;
} windows_config;

/* Fields of traffic/ports.h, in the order of a slice. */
enum {
    NODES,
    ROWPTR,
    COL,
    EDGES,
    ROW_KEY,
    RISK_LABEL,
    RISK_WEIGHT,
    RISK_STATE,
    STEP_OF_ROW,
    SEQ_ROW,
    PRESENT,
    MOTION_FIELD,
    TARGET,
    TARGET_WEIGHT,
    COMPLETE,
    SAMPLE_OF_SEQ,
    SEQ_KEY,
    POSE,
    SITE,
    N_FIELDS,
    AHEAD = N_FIELDS, /* with pairs, from here on */
    BESIDE,
    NEXT_AHEAD,
    NEXT_BESIDE,
    NEXT_PRESENT,
    HAZARD_IN,
    N_FIELDS_OF_PAIRS,
    LANE = N_FIELDS_OF_PAIRS, /* with lanes */
    PATH,
    N_FIELDS_OF_ALL
};

typedef weights_sample windows_sample;

typedef struct windows {
    const dt_host *h;
    const dt_store_api *api;
    const dt_store_view *v;
    slices slices;
    int64_t most_rows, most_edges; /* of a frame, in a packed store; 0: it is plain */
    int64_t T, F, stride;          /* steps, steps, frames of the store between two steps */
    double shift_m;
    augment augment;
    uint32_t balance;
    uint8_t rotate, mirror;
    uint8_t *has_core;      /* [n_frames] of a store of regions; NULL: it is none */
    windows_sample *sample; /* [n] */
    uint64_t n;
    danger danger;
    lanes lanes;
    bool has_pairs, has_lanes;
    dt_port field[N_FIELDS_OF_ALL]; /* [n_fields] of them */
    uint32_t n_fields, lane_field;  /* lane_field: index of the first field of lanes */
    char dims[6][DIMS_BYTES];
} windows;

/* ---- splits.c ---------------------------------------------------------------------------------------------------- */

/* has_core, and sample and n of the split. Errors: DT_ECONFIG, DT_EDATA (folds.h), DT_ENOMEM. */
dt_status windows_list(windows *s, const windows_config *c);

/* ---- reading.c --------------------------------------------------------------------------------------------------- */

/* As the contract's sizes and read of a data source. Errors: DT_EINVAL, DT_EDATA, DT_ENOMEM. */
dt_status windows_sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size);
dt_status windows_read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out);

/* ---- what readers share ------------------------------------------------------------------------------------------ */

/* Where the packed slice is. */
typedef struct windows_cursor {
    int64_t row, n_edges, seq; /* filled so far */
    int64_t S;                 /* sequences of the whole slice */
    int64_t base[T_MAX];       /* slice row of the first row of each history frame, -1 where there is no frame */
    /* of a packed store; NULL of a plain one */
    float *node, *edge; /* [most_rows,9], [most_edges,4] */
    int32_t *source;    /* [most_edges] */
    float *accel;       /* [rows of the slice] as models may see it */
} windows_cursor;

typedef struct windows_turn {
    double x, y, cos_a, sin_a; /* about (x, y), by a */
    double flip;               /* -1: mirrored first, left becomes right */
} windows_turn;

/* Frame of history step k, -1 before the scene begins. */
static inline int64_t windows_history_frame(const windows *s, const windows_sample *w, int64_t k)
{
    int64_t f = w->anchor - (s->T - 1 - k) * s->stride;
    return f < s->v->scene_frame[w->scene] ? -1 : f;
}

/* No vehicle is seen to drive backwards that was not recorded so. */
static inline float windows_speed(float speed, const augment_row *noise)
{
    return noise->speed == 0 ? speed : (float)fmax(0, speed + noise->speed);
}

/* ---- graphs.c ---------------------------------------------------------------------------------------------------- */

/* How a sample's scene is turned by the key of its use; 0: as it was recorded. */
windows_turn windows_turn_of(const windows *s, const windows_sample *w, uint64_t key);
/* The graphs of a sample's history. name: high bits of the row keys; use: 0 where nothing is augmented. Errors:
 * DT_EDATA, DT_ENOMEM. */
dt_status windows_read_graphs(const windows *s, const windows_sample *w, const windows_turn *t, uint64_t name,
                              uint64_t use, windows_cursor *c, void *const *out);

/* Row r, kept as node [9], as perception would see it in its own frame: x and y about the centre t of that frame,
 * scaled; nothing is augmented. */
void windows_node_of(const windows *s, int64_t r, const float *node, const windows_turn *t, float *out);

/* ---- statistics.c ------------------------------------------------------------------------------------------------ */

/* As the contract's statistics of a data source: of nodes and edges, over the frames that the samples' histories show,
 * each frame once, edges of vehicles to themselves left out. Errors: DT_EUNSUPPORTED, DT_EDATA, DT_ENOMEM. */
dt_status windows_statistics(void *self, const char *field, dt_field_stat *out, uint32_t n);

/* ---- vehicles.c -------------------------------------------------------------------------------------------------- */

/* Of every vehicle at the anchor, once its graphs are read. name: high bits of the keys, as above; i: the sample within
 * the slice. */
void windows_read_vehicles(const windows *s, const windows_sample *w, const windows_turn *t, uint64_t name,
                           uint64_t use, uint32_t i, windows_cursor *c, void *const *out);

#endif
