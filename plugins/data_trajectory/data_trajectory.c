/* SPDX-License-Identifier: Apache-2.0
 *
 * data_trajectory: windows over a trajectory store for phase 1. A sample is a scene at an anchor frame: the graphs of
 * the T frames of history up to and including the anchor, and F steps of future for every vehicle seen at the anchor.
 * Fields, shapes and order: dtrain/shapes.h. The store keeps the recording's rate; windows take every m-th frame.
 *
 * Nothing is invented: a vehicle absent at a step has seq_row -1, present 0 or target_weight 0. Inputs come from the
 * anchor and before alone; targets and risk labels are the only things that look ahead.
 *
 * Splits: "eval" is one fold of the scenes (or a whole site, eval_site) and "train" the others; folds.h says how they
 * are dealt. Where calibration_folds are dealt besides, "calibration" is the last of them that has windows which are
 * not held out, and train goes without its scenes. Training anchors may have a short past or future (min_history_s,
 * min_future_s), those of the other splits have both whole. Where a checkpoint is judged and nothing is trained, train
 * and calibration are the whole store, and eval may be.
 *
 * Node features are scaled by fixed constants and not by the statistics of a store, so that a model means the same on
 * every store. Augmentation (key not 0): the scene turns as a whole about its anchor's centre by an angle drawn from
 * the key, is mirrored in half of the cases, and its centre is moved. So a net learns traffic and not the one road it
 * was recorded on. On NGSIM, error at 5 s over constant velocity's: where evaluation is on the same roads 0.72 with all
 * three and 0.67 without, on a site not seen in training 0.86 and 0.99 with, 0.90 and 1.70 without. So all are on.
 */
#include "dtrain/helpers.h"
#include "dtrain/svc/features.h"
#include "dtrain/svc/store.h"
#include "augment.h"
#include "danger.h"
#include "folds.h"
#include "lanes.h"
#include "slices.h"
#include "tracks.h"
#include "weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T_MAX = 512, N_SYMBOLS = 3, MOTION = 6, DIMS_BYTES = 32 };

enum { SPLIT_ALL, SPLIT_TRAIN, SPLIT_EVAL, SPLIT_CALIBRATION };
static const char *const splits[] = {"all", "train", "eval", "calibration", NULL};
enum { FOR_TRAINING, FOR_HELD, FOR_ALL };
static const char *const purposes[] = {"training", "held", "all", NULL};

static const char *const balances[] = {"none", "site", "scene", "risk", NULL};

typedef struct config {
    const char *store;
    uint32_t split, judged;
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
} config;

static const dt_option options[] = {
    DT_OPTION(config, store, DT_OPT_PATH, "", "", 0, 0, NULL, "store made by dtrain data import; set by data.store"),
    DT_OPTION(config, split, DT_OPT_ENUM, "all", "", 0, 0, splits, "which scenes; the phase sets it"),
    DT_OPTION(config, judged, DT_OPT_ENUM, "training", "", 0, 0, purposes,
              "what eval is: training: what train holds out; held, all: the same or the whole store, and nothing is "
              "trained; dtrain eval sets it by evaluation.folds"),
    DT_OPTION(config, history_s, DT_OPT_F64, "3", "s", 0, 60, NULL, "past that a window shows, the anchor included"),
    DT_OPTION(config, horizon_s, DT_OPT_F64, "5", "s", 0, 60, NULL, "future that a window asks for"),
    DT_OPTION(config, rate_hz, DT_OPT_F64, "5", "1/s", 0.1, 100, NULL,
              "steps per second of a window; the store's rate is a multiple of it"),
    DT_OPTION(config, stride_s, DT_OPT_F64, "0.2", "s", 0, 3600, NULL,
              "time between anchors of a scene in eval and all"),
    DT_OPTION(config, train_stride_s, DT_OPT_F64, "1", "s", 0, 3600, NULL, "time between anchors of a scene in train"),
    DT_OPTION(config, min_history_s, DT_OPT_F64, "1", "s", 0, 60, NULL, "least past of a training anchor in its scene"),
    DT_OPTION(config, min_future_s, DT_OPT_F64, "1", "s", 0, 60, NULL,
              "least future of a training anchor in its scene"),
    DT_OPTION(config, folds, DT_OPT_I64, "5", "1", 2, 1000, NULL, "number of folds that the recordings are dealt to"),
    DT_OPTION(config, fold, DT_OPT_I64, "0", "1", 0, 999, NULL, "fold that is held out for evaluation"),
    DT_OPTION(config, calibration_folds, DT_OPT_I64, "0", "1", 0, 1000, NULL,
              "folds that are dealt to calibrate, of which train leaves one out besides; 0: none. The phase sets it"),
    DT_OPTION(config, eval_site, DT_OPT_STR, "", "", 0, 0, NULL, "hold out this site whole instead of a fold"),
    DT_OPTION(config, rotate, DT_OPT_BOOL, "true", "", 0, 0, NULL, "turn training scenes by random angles"),
    DT_OPTION(config, mirror, DT_OPT_BOOL, "true", "", 0, 0, NULL, "mirror half of the training scenes"),
    DT_OPTION(config, shift_m, DT_OPT_F64, "50", "m", 0, 1000, NULL,
              "move the centre of training scenes by up to this much along x and y"),
    DT_OPTION(config, speed_noise_mps, DT_OPT_F64, "0", "m/s", 0, 10, NULL,
              "training: standard deviation of an error of the speeds that models see"),
    DT_OPTION(config, position_noise_m, DT_OPT_F64, "0", "m", 0, 100, NULL,
              "training: positions that models see are off by up to this much along x and y"),
    DT_OPTION(config, drop_edges, DT_OPT_F64, "0", "1", 0, 1, NULL,
              "training: share of edges between vehicles that models do not see"),
    DT_OPTION(config, hide_nodes, DT_OPT_F64, "0", "1", 0, 1, NULL,
              "training: share of vehicles whose features perception does not see in a frame"),
    DT_OPTION(
        config, balance, DT_OPT_ENUM, "none", "", 0, 0, balances,
        "with data.sampling = weighted: what is drawn as often as the others: each site, each scene, or samples in "
        "which a vehicle is in danger; none: all samples alike"),
    DT_OPTION(config, cache_mb, DT_OPT_I64, "64", "MiB", 1, 1048576, NULL,
              "unpacked pieces of a packed store that are held at most"),
    DT_OPTION(config, lanes, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "tell where vehicles are on the store's roads, where these lead, and who drives ahead; without roads "
              "nothing is told"),
    DT_OPTION(config, pairs, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "tell what shields read of each vehicle and when danger comes; a phase that learns a barrier sets it"),
    DT_OPTION(config, action_s, DT_OPT_F64, "1", "s", 0.01, 60, NULL, "pairs: time between two actions of an agent"),
    DT_OPTION(config, brake_mps2, DT_OPT_F64, "3", "m/s^2", 0.1, 20, NULL, "pairs: hardest braking of an agent"),
    DT_OPTION(config, hazard_ttc_s, DT_OPT_F64, "1.5", "s", 0, 60, NULL,
              "pairs: a time to collision below this is danger; 0: none is"),
    DT_OPTION(config, hazard_mps2, DT_OPT_F64, "3", "m/s^2", 0, 20, NULL,
              "pairs: harder braking is danger; 0: none is"),
    DT_OPTION(config, hazard_collisions, DT_OPT_BOOL, "true", "", 0, 0, NULL,
              "pairs: overlapping another vehicle is danger"),
    DT_OPTION(config, hazard_steps, DT_OPT_I64, "11", "actions", 1, 1e4, NULL,
              "pairs: actions ahead within which danger is looked for"),
    DT_OPTION_END};

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

typedef weights_sample sample;

typedef struct state {
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
    sample *sample; /* [n] */
    uint64_t n;
    danger danger;
    lanes lanes;
    bool has_pairs, has_lanes;
    dt_port field[N_FIELDS_OF_ALL]; /* [n_fields] of them */
    uint32_t n_fields;
    char dims[6][DIMS_BYTES];
} state;

static const char *const symbols[N_SYMBOLS] = {"N", "E", "S"};

/* lateral offset in lane widths, so that a small net can tell lanes apart: an eighth off the error at 5 s */
static const float node_scale[DT_NODE_FEATURES] = DT_NODE_SCALE, node_shift[DT_NODE_FEATURES] = DT_NODE_SHIFT;
static const float edge_scale[DT_EDGE_FEATURES] = DT_EDGE_SCALE;

/* ---- which scenes ------------------------------------------------------------------------------------------------ */

/* Anchors of one scene; count alone where out is NULL. Strided from the first possible one. */
static uint64_t list_anchors(const state *s, const config *c, int is_train, int64_t scene, sample *out)
{
    const dt_store_view *v = s->v;
    int64_t begin = v->scene_frame[scene], end = v->scene_frame[scene + 1];
    double fps = v->frame_rate_hz;
    int64_t past = (s->T - 1) * s->stride, future = s->F * s->stride;
    if (is_train) {
        past = (int64_t)fmin((double)past, ceil(c->min_history_s * fps - 1e-6));
        future = (int64_t)fmin((double)future, ceil(c->min_future_s * fps - 1e-6));
    }
    int64_t every = llround((is_train ? c->train_stride_s : c->stride_s) * fps);
    every = every < 1 ? 1 : every;
    uint64_t n = 0;
    for (int64_t f = begin + past; f + future < end; f += every) {
        if (v->frame_row[f + 1] > v->frame_row[f]) { /* somebody is there */
            if (out != NULL) {
                out[n] = (sample){scene, f};
            }
            n++;
        }
    }
    return n;
}

/* takes [n_scenes]: those that calibration is left with, or training; held-out ones are of neither. */
static dt_status choose_calibration(const state *s, const config *c, uint8_t *takes)
{
    const int64_t n_scenes = s->v->n_scenes;
    uint8_t *is_dealt = s->h->alloc(s->h, (uint64_t)n_scenes);
    uint64_t n = 0;
    if (is_dealt == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %lld scenes", (long long)n_scenes);
    }
    dt_status st = DT_OK;
    for (int64_t fold = c->calibration_folds - 1; fold >= 0 && n == 0 && st == DT_OK; fold--) {
        st = folds_deal(s->h, s->v, c->calibration_folds, fold, is_dealt);
        for (int64_t i = 0; i < n_scenes && st == DT_OK; i++) {
            if (takes[i] && is_dealt[i]) {
                n += list_anchors(s, c, 0, i, NULL);
            }
        }
    }
    for (int64_t i = 0; i < n_scenes && st == DT_OK; i++) {
        takes[i] = takes[i] && is_dealt[i] == (c->split == SPLIT_CALIBRATION);
    }
    s->h->release(s->h, is_dealt);
    return st;
}

/* takes [n_scenes]: 1 where the split has the scene */
static dt_status choose_scenes(const state *s, const config *c, uint8_t *takes)
{
    const dt_store_view *v = s->v;
    const int is_judged = c->judged != FOR_TRAINING;
    if (c->split == SPLIT_ALL || (c->split != SPLIT_EVAL && is_judged) ||
        (c->split == SPLIT_EVAL && c->judged == FOR_ALL && c->eval_site[0] == '\0')) {
        memset(takes, 1, (size_t)v->n_scenes);
        return DT_OK;
    }
    DT_TRY_H(c->eval_site[0] != '\0' ? folds_of_site(s->h, v, c->eval_site, takes)
                                     : folds_deal(s->h, v, c->folds, c->fold, takes));
    for (int64_t i = 0; i < v->n_scenes; i++) {
        takes[i] = takes[i] == (c->split == SPLIT_EVAL);
    }
    return c->calibration_folds > 0 && c->split != SPLIT_EVAL ? choose_calibration(s, c, takes) : DT_OK;
}

static dt_status list_samples(state *s, const config *c)
{
    const dt_store_view *v = s->v;
    uint8_t *takes = s->h->alloc(s->h, (uint64_t)v->n_scenes);
    if (takes == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %lld scenes", (long long)v->n_scenes);
    }
    dt_status st = choose_scenes(s, c, takes);
    for (int pass = 0; pass < 2 && st == DT_OK; pass++) { /* count, then list */
        uint64_t n = 0;
        for (int64_t i = 0; i < v->n_scenes; i++) {
            if (takes[i]) {
                n += list_anchors(s, c, c->split == SPLIT_TRAIN, i, pass == 0 ? NULL : s->sample + n);
            }
        }
        if (pass == 0 && n > 0) {
            s->sample = s->h->alloc(s->h, n * sizeof(*s->sample));
            if (s->sample == NULL) {
                st = DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %llu samples", (unsigned long long)n);
            }
        }
        s->n = n;
        if (n == 0) {
            break;
        }
    }
    s->h->release(s->h, takes);
    return st;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    double T = c->history_s * c->rate_hz, F = c->horizon_s * c->rate_hz;
    if (fabs(T - rint(T)) > 1e-6 || fabs(F - rint(F)) > 1e-6 || T < 1 || F < 1 || T > T_MAX || F > T_MAX) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "data_trajectory: history_s %g and horizon_s %g at rate_hz %g give %g and %g "
                         "steps; both must be whole numbers in [1, %d]",
                         c->history_s, c->horizon_s, c->rate_hz, T, F, T_MAX);
    }
    if (c->calibration_folds == 1 || (c->split == SPLIT_CALIBRATION && c->calibration_folds == 0)) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "data_trajectory.calibration_folds %lld: 2 or more, so that one can be left out",
                         (long long)c->calibration_folds);
    }
    if (c->fold >= c->folds) {
        return DT_FAIL_H(h, DT_ECONFIG, "data_trajectory.fold %lld is not below folds = %lld", (long long)c->fold,
                         (long long)c->folds);
    }
    return DT_OK;
}

static void make_fields(state *s)
{
    snprintf(s->dims[0], DIMS_BYTES, "%lld S", (long long)s->T);
    snprintf(s->dims[1], DIMS_BYTES, "%lld S %d", (long long)s->T, MOTION);
    snprintf(s->dims[2], DIMS_BYTES, "S %lld 2", (long long)s->F);
    snprintf(s->dims[3], DIMS_BYTES, "S %lld", (long long)s->F);
    snprintf(s->dims[4], DIMS_BYTES, "S %d", LANES_COLUMNS);
    snprintf(s->dims[5], DIMS_BYTES, "S %d %d", LANES_PATH, LANES_PATH_COLUMNS);
    const dt_port field[N_FIELDS_OF_ALL] = {[NODES] = {"nodes", "N 9", DT_F32, 0},
                                            [ROWPTR] = {"rowptr", "N+1", DT_I32, 0},
                                            [COL] = {"col", "E", DT_I32, 0},
                                            [EDGES] = {"edges", "E 4", DT_F32, 0},
                                            [ROW_KEY] = {"row_key", "N", DT_I64, 0},
                                            [RISK_LABEL] = {"risk_label", "N", DT_F32, 0},
                                            [RISK_WEIGHT] = {"risk_weight", "N", DT_F32, 0},
                                            [RISK_STATE] = {"risk_state", "N", DT_U8, 0},
                                            [STEP_OF_ROW] = {"step_of_row", "N", DT_I32, 0},
                                            [SEQ_ROW] = {"seq_row", s->dims[0], DT_I32, 0},
                                            [PRESENT] = {"present", s->dims[0], DT_F32, 0},
                                            [MOTION_FIELD] = {"motion", s->dims[1], DT_F32, 0},
                                            [TARGET] = {"target", s->dims[2], DT_F32, 0},
                                            [TARGET_WEIGHT] = {"target_weight", s->dims[3], DT_F32, 0},
                                            [COMPLETE] = {"complete", "S", DT_U8, 0},
                                            [SAMPLE_OF_SEQ] = {"sample_of_seq", "S", DT_I32, 0},
                                            [SEQ_KEY] = {"seq_key", "S", DT_I64, 0},
                                            [POSE] = {"pose", "S 4", DT_F32, 0},
                                            [SITE] = {"site", "S", DT_I32, 0},
                                            [AHEAD] = {"ahead", "S 3 7", DT_F32, 0},
                                            [BESIDE] = {"beside", "S 4 7", DT_F32, 0},
                                            [NEXT_AHEAD] = {"next_ahead", "S 3 7", DT_F32, 0},
                                            [NEXT_BESIDE] = {"next_beside", "S 4 7", DT_F32, 0},
                                            [NEXT_PRESENT] = {"next_present", "S", DT_F32, 0},
                                            [HAZARD_IN] = {"hazard_in", "S", DT_F32, 0},
                                            [LANE] = {"lane", s->dims[4], DT_F32, 0},
                                            [PATH] = {"path", s->dims[5], DT_F32, 0}};
    for (uint32_t i = 0; i < N_FIELDS_OF_ALL; i++) {
        const bool is_there = i < N_FIELDS || (i < N_FIELDS_OF_PAIRS ? s->has_pairs : s->has_lanes);
        if (is_there) {
            s->field[s->n_fields++] = field[i];
        }
    }
}

/* How much room a frame of a packed store takes. */
static void measure_frames(state *s)
{
    const dt_store_view *v = s->v;
    if (v->node != NULL && v->edge != NULL && v->edge_src != NULL) {
        return;
    }
    for (int64_t f = 0; f < v->n_frames; f++) {
        const int64_t from = v->frame_row[f], to = v->frame_row[f + 1];
        const int64_t rows = to - from, edges = v->edge_ptr[to] - v->edge_ptr[from];
        s->most_rows = rows > s->most_rows ? rows : s->most_rows;
        s->most_edges = edges > s->most_edges ? edges : s->most_edges;
    }
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    const config *c = cfg;
    s->h = h;
    s->T = llround(c->history_s * c->rate_hz);
    s->F = llround(c->horizon_s * c->rate_hz);
    s->rotate = c->rotate;
    s->mirror = c->mirror;
    s->shift_m = c->shift_m;
    s->balance = c->balance;
    s->augment = (augment){.speed_mps = c->speed_noise_mps,
                           .position_m = c->position_noise_m,
                           .edges = c->drop_edges,
                           .nodes = c->hide_nodes};
    s->api = h->service(h, DT_SVC_STORE);
    if (!DT_HAS(s->api, open)) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "this host has no service %s, which data_trajectory needs", DT_SVC_STORE);
    }
    DT_TRY_H(DT_HAS(s->api, open_packed) ? s->api->open_packed(h, c->store, (uint64_t)c->cache_mb << 20, &s->v)
                                         : s->api->open(h, c->store, &s->v));
    s->slices = (slices){h, s->api, s->v};
    measure_frames(s);
    double stride = s->v->frame_rate_hz / c->rate_hz;
    s->stride = llround(stride);
    if (s->stride < 1 || fabs(stride - (double)s->stride) > 1e-6) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "rate_hz %g does not divide the %g Hz of %s: nothing is resampled, choose a rate "
                         "that does",
                         c->rate_hz, s->v->frame_rate_hz, c->store);
    }
    const danger_config how = {.action_s = c->action_s,
                               .brake_mps2 = c->brake_mps2,
                               .hazard_ttc_s = c->hazard_ttc_s,
                               .hazard_mps2 = c->hazard_mps2,
                               .hazard_collisions = c->hazard_collisions != 0,
                               .hazard_steps = c->hazard_steps};
    s->has_pairs = c->pairs != 0;
    if (s->has_pairs) {
        DT_TRY_H(danger_init(&s->danger, &s->slices, &how));
    }
    s->has_lanes = c->lanes && lanes_are_known(s->v);
    if (c->lanes && !s->has_lanes && c->split != SPLIT_EVAL) {
        dt_logf(h, 2, "%s has no roads: vehicles are told nothing of lanes", c->store);
    }
    if (s->has_lanes) {
        DT_TRY_H(lanes_init(&s->lanes, h, s->v, (s->T - 1) * s->stride));
    }
    if (c->eval_site[0] != '\0' && c->fold != 0 && c->split != SPLIT_EVAL) {
        dt_logf(h, 2, "eval_site \"%s\" is held out whole: fold %lld has no effect", c->eval_site, (long long)c->fold);
    }
    make_fields(s);
    return list_samples(s, c);
}

static void destroy(void *self)
{
    state *s = self;
    if (s->h == NULL) {
        return;
    }
    s->h->release(s->h, s->sample);
    lanes_fini(&s->lanes);
    if (s->v != NULL) {
        s->api->close(s->h, s->v);
    }
}

static const dt_port *fields(const void *self, uint32_t *n_p)
{
    *n_p = ((const state *)self)->n_fields;
    return ((const state *)self)->field;
}

static const char *const *symbols_of(const void *self, uint32_t *n_p)
{
    (void)self;
    *n_p = N_SYMBOLS;
    return symbols;
}

static dt_status count(const void *self, uint64_t *n_p)
{
    *n_p = ((const state *)self)->n;
    return DT_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Frame of history step k, -1 before the scene begins. */
static int64_t history_frame(const state *s, const sample *w, int64_t k)
{
    int64_t f = w->anchor - (s->T - 1 - k) * s->stride;
    return f < s->v->scene_frame[w->scene] ? -1 : f;
}

static dt_status sizes(const void *self, const uint64_t *index, uint32_t n, int64_t *size)
{
    const state *s = self;
    const dt_store_view *v = s->v;
    memset(size, 0, N_SYMBOLS * sizeof(*size));
    for (uint32_t i = 0; i < n; i++) {
        if (index[i] >= s->n) {
            return DT_FAIL_H(s->h, DT_EINVAL, "sample %llu is not below %llu", (unsigned long long)index[i],
                             (unsigned long long)s->n);
        }
        const sample *w = &s->sample[index[i]];
        for (int64_t k = 0; k < s->T; k++) {
            int64_t f = history_frame(s, w, k);
            if (f >= 0) {
                int64_t from = v->frame_row[f], to = v->frame_row[f + 1];
                size[0] += to - from;
                size[1] += v->edge_ptr[to] - v->edge_ptr[from];
            }
        }
        size[2] += v->frame_row[w->anchor + 1] - v->frame_row[w->anchor];
    }
    return DT_OK;
}

/* Where the packed slice stands. */
typedef struct cursor {
    int64_t row, n_edges, seq; /* filled so far */
    int64_t S;                 /* sequences of the whole slice */
    int64_t base[T_MAX];       /* slice row of the first row of each history frame, -1 where there is no frame */
    /* of a packed store; NULL of a plain one */
    float *node, *edge; /* [most_rows,9], [most_edges,4] */
    int32_t *source;    /* [most_edges] */
    float *accel;       /* [rows of the slice] as models may see it */
} cursor;

typedef struct turn {
    double x, y, cos_a, sin_a; /* about (x, y), by a */
    double flip;               /* -1: mirrored first, left becomes right */
} turn;

static turn turn_of(const state *s, const sample *w, uint64_t key)
{
    const dt_store_view *v = s->v;
    int64_t from = v->frame_row[w->anchor], to = v->frame_row[w->anchor + 1];
    turn t = {.cos_a = 1, .flip = 1};
    for (int64_t r = from; r < to; r++) {
        t.x += v->pose[3 * r] / (double)(to - from);
        t.y += v->pose[3 * r + 1] / (double)(to - from);
    }
    if (s->rotate && key != 0) { /* four numbers of each key, none of which another key uses */
        double a = augment_unit(augment_mix(4 * key)) * 2 * M_PI;
        t.cos_a = cos(a);
        t.sin_a = sin(a);
    }
    if (s->mirror && key != 0) {
        t.flip = augment_unit(augment_mix(4 * key + 1)) < 0.5 ? -1 : 1;
    }
    if (s->shift_m > 0 && key != 0) {
        t.x += s->shift_m * (2 * augment_unit(augment_mix(4 * key + 2)) - 1);
        t.y += s->shift_m * (2 * augment_unit(augment_mix(4 * key + 3)) - 1);
    }
    return t;
}

/* No vehicle is seen to drive backwards that was not recorded so. */
static float noisy_speed(float speed, const augment_row *noise)
{
    return noise->speed == 0 ? speed : (float)fmax(0, speed + noise->speed);
}

/* node: of row r, as it is kept. */
static void read_node(const dt_store_view *v, int64_t r, const float *node, const turn *t, const augment_row *noise,
                      float *out)
{
    double x = v->pose[3 * r] + noise->x - t->x, y = t->flip * (v->pose[3 * r + 1] + noise->y - t->y);
    double sin_h = t->flip * sin(v->pose[3 * r + 2]), cos_h = cos(v->pose[3 * r + 2]);
    if (noise->is_hidden) {
        memset(out, 0, DT_NODE_FEATURES * sizeof(*out));
        return;
    }
    memcpy(out, node, DT_NODE_FEATURES * sizeof(*out));
    out[NODE_SPEED] = noisy_speed(out[NODE_SPEED], noise);
    out[0] = (float)(x * t->cos_a - y * t->sin_a);
    out[1] = (float)(x * t->sin_a + y * t->cos_a);
    out[4] = (float)(sin_h * t->cos_a + cos_h * t->sin_a);
    out[5] = (float)(cos_h * t->cos_a - sin_h * t->sin_a);
    for (int d = 0; d < DT_NODE_FEATURES; d++) {
        out[d] = (out[d] + node_shift[d]) * node_scale[d];
    }
}

/* The edges of row r, as they are kept. One that is dropped becomes an edge of the vehicle to itself, whose features
 * are zeros: the size of a sample depends on its index alone. */
static void read_edges(const state *s, int64_t r, const float *from, const int32_t *source, const turn *t, uint64_t use,
                       int64_t base, cursor *c, int32_t *col, float *edge)
{
    const int64_t first = s->v->edge_ptr[r], n = s->v->edge_ptr[r + 1] - first;
    for (int64_t e = 0; e < n; e++, c->n_edges++) {
        if (augment_drops(&s->augment, use, first + e)) {
            col[c->n_edges] = (int32_t)c->row;
            memset(edge + c->n_edges * DT_EDGE_FEATURES, 0, DT_EDGE_FEATURES * sizeof(*edge));
            continue;
        }
        col[c->n_edges] = (int32_t)(base + source[e]);
        for (int d = 0; d < DT_EDGE_FEATURES; d++) {
            edge[c->n_edges * DT_EDGE_FEATURES + d] = from[e * DT_EDGE_FEATURES + d] * edge_scale[d];
        }
        edge[c->n_edges * DT_EDGE_FEATURES + 1] *= (float)t->flip; /* lateral offset */
    }
}

/* A frame's rows and edges as they are kept. */
typedef struct frame_rows {
    const float *node, *edge;
    const int32_t *source;
} frame_rows;

static dt_status rows_of_frame(const state *s, int64_t f, cursor *c, frame_rows *out)
{
    const dt_store_view *v = s->v;
    const int64_t from = v->frame_row[f], n = v->frame_row[f + 1] - from;
    const int64_t first = v->edge_ptr[from], n_edges = v->edge_ptr[from + n] - first;
    DT_TRY_H(slices_node(&s->slices, from, n, c->node, &out->node));
    DT_TRY_H(slices_edge(&s->slices, first, n_edges, c->edge, &out->edge));
    return slices_source(&s->slices, first, n_edges, c->source, &out->source);
}

/* The graphs of a sample's history. name: high bits of the row keys; use: 0 where nothing is augmented. */
static dt_status read_frames(const state *s, const sample *w, const turn *t, uint64_t name, uint64_t use, cursor *c,
                             void *const *out)
{
    const dt_store_view *v = s->v;
    int64_t first = c->row;
    for (int64_t k = 0; k < s->T; k++) {
        int64_t f = history_frame(s, w, k);
        c->base[k] = f < 0 ? -1 : c->row;
        if (f >= 0) {
            frame_rows kept;
            DT_TRY_H(rows_of_frame(s, f, c, &kept));
            for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++, c->row++) {
                uint8_t risk = v->risk[r];
                const int64_t n_edges = v->edge_ptr[r + 1] - v->edge_ptr[r];
                const augment_row noise = augment_of_row(&s->augment, use, r);
                read_node(v, r, kept.node, t, &noise, (float *)out[NODES] + c->row * DT_NODE_FEATURES);
                read_edges(s, r, kept.edge, kept.source, t, use, c->base[k], c, out[COL], out[EDGES]);
                if (c->accel != NULL) {
                    c->accel[c->row] = kept.node[NODE_ACCELERATION];
                }
                kept.node += DT_NODE_FEATURES;
                kept.edge += n_edges * DT_EDGE_FEATURES;
                kept.source += n_edges;
                ((int32_t *)out[ROWPTR])[c->row + 1] = (int32_t)c->n_edges;
                ((int64_t *)out[ROW_KEY])[c->row] = (int64_t)(name << 20 | (uint64_t)(c->row - first));
                ((float *)out[RISK_LABEL])[c->row] = risk == 1 || risk == 2 ? 1.f : 0.f;
                ((float *)out[RISK_WEIGHT])[c->row] = risk == 3 ? 0.f : 1.f;
                ((uint8_t *)out[RISK_STATE])[c->row] = risk;
                ((int32_t *)out[STEP_OF_ROW])[c->row] = (int32_t)k;
            }
        }
    }
    return DT_OK;
}

/* A vehicle's own frame at the anchor: origin its position, x axis its heading. */
typedef struct own {
    double x, y, heading, cos_h, sin_h;
    double flip;  /* of the sample: y axis to the left, or mirrored */
    double speed; /* at the anchor */
} own;

static void own_position(const own *o, const double *pose, float *x, float *y)
{
    double dx = pose[0] - o->x, dy = pose[1] - o->y;
    *x = (float)(dx * o->cos_h + dy * o->sin_h);
    *y = (float)(o->flip * (dy * o->cos_h - dx * o->sin_h));
}

/* Past of the vehicle whose anchor row stands at track_row[place]; returns how many steps it is there. */
static int64_t read_past(const state *s, const sample *w, const own *o, uint64_t use, int64_t track, int64_t place,
                         const cursor *c, void *const *out)
{
    const dt_store_view *v = s->v;
    int64_t seen = 0;
    for (int64_t k = s->T - 1, p = place; k >= 0; k--) {
        int64_t f = history_frame(s, w, k), at = k * c->S + c->seq;
        float *m = (float *)out[MOTION_FIELD] + at * MOTION;
        while (f >= 0 && p >= v->track_ptr[track] && v->track_row[p] >= v->frame_row[f + 1]) {
            p--;
        }
        if (f < 0 || p < v->track_ptr[track] || v->track_row[p] < v->frame_row[f]) {
            ((int32_t *)out[SEQ_ROW])[at] = -1;
            ((float *)out[PRESENT])[at] = 0.f;
            memset(m, 0, MOTION * sizeof(*m));
            continue;
        }
        int64_t r = v->track_row[p];
        double turned = v->pose[3 * r + 2] - o->heading;
        ((int32_t *)out[SEQ_ROW])[at] = (int32_t)(c->base[k] + (r - v->frame_row[f]));
        ((float *)out[PRESENT])[at] = 1.f;
        const augment_row noise = augment_of_row(&s->augment, use, r);
        const double where[2] = {v->pose[3 * r] + noise.x, v->pose[3 * r + 1] + noise.y};
        own_position(o, where, &m[0], &m[1]);
        m[0] += (float)(o->speed * (double)((s->T - 1 - k) * s->stride) / v->frame_rate_hz);
        m[2] = (float)cos(turned);
        m[3] = (float)(o->flip * sin(turned));
        m[4] = noisy_speed(v->motion[4 * r], &noise);
        m[5] = c->accel != NULL ? c->accel[c->base[k] + (r - v->frame_row[f])]
                                : v->node[DT_NODE_FEATURES * r + NODE_ACCELERATION];
        seen++;
    }
    return seen;
}

static int64_t read_future(const state *s, const sample *w, const own *o, int64_t track, int64_t place, const cursor *c,
                           void *const *out)
{
    const dt_store_view *v = s->v;
    int64_t end = v->track_ptr[track + 1], seen = 0;
    for (int64_t k = 0, p = place; k < s->F; k++) {
        int64_t f = w->anchor + (k + 1) * s->stride, at = c->seq * s->F + k;
        int is_inside = f < v->scene_frame[w->scene + 1];
        float *xy = (float *)out[TARGET] + 2 * at;
        while (is_inside && p < end && v->track_row[p] < v->frame_row[f]) {
            p++;
        }
        int is_seen = is_inside && p < end && v->track_row[p] < v->frame_row[f + 1];
        xy[0] = xy[1] = 0.f;
        if (is_seen) {
            own_position(o, v->pose + 3 * v->track_row[p], &xy[0], &xy[1]);
        }
        ((float *)out[TARGET_WEIGHT])[at] = is_seen ? 1.f : 0.f;
        seen += is_seen;
    }
    return seen;
}

/* name: high bits of the keys, as in read_frames; i: the sample within the slice. */
static void read_vehicles(const state *s, const sample *w, const turn *t, uint64_t name, uint64_t use, uint32_t i,
                          cursor *c, void *const *out)
{
    const dt_store_view *v = s->v;
    const int64_t first = c->seq;
    for (int64_t r = v->frame_row[w->anchor]; r < v->frame_row[w->anchor + 1]; r++, c->seq++) {
        const double *pose = v->pose + 3 * r;
        own o = {pose[0], pose[1], pose[2], cos(pose[2]), sin(pose[2]), t->flip, v->motion[4 * r]};
        int64_t track = v->row_track[r], place = tracks_place(v, track, r);
        int64_t past = read_past(s, w, &o, use, track, place, c, out);
        int64_t future = read_future(s, w, &o, track, place, c, out);
        ((uint8_t *)out[COMPLETE])[c->seq] = past == s->T && future == s->F;
        ((int32_t *)out[SAMPLE_OF_SEQ])[c->seq] = (int32_t)i;
        ((int64_t *)out[SEQ_KEY])[c->seq] = (int64_t)(name << 20 | (uint64_t)(c->seq - first));
        float *at = (float *)out[POSE] + 4 * c->seq;
        at[0] = (float)(pose[0] - v->pose[3 * v->frame_row[w->anchor]]);
        at[1] = (float)(pose[1] - v->pose[3 * v->frame_row[w->anchor] + 1]);
        at[2] = (float)pose[2];
        at[3] = v->motion[4 * r + 2];
        ((int32_t *)out[SITE])[c->seq] = v->scene_site[w->scene];
    }
}

static dt_status read_danger(const state *s, const sample *w, const turn *t, int64_t seq, void *const *out)
{
    const danger_rows rows = {.ahead = (float *)out[AHEAD] + seq * DANGER_AHEAD,
                              .beside = (float *)out[BESIDE] + seq * DANGER_BESIDE,
                              .next_ahead = (float *)out[NEXT_AHEAD] + seq * DANGER_AHEAD,
                              .next_beside = (float *)out[NEXT_BESIDE] + seq * DANGER_BESIDE,
                              .next_present = (float *)out[NEXT_PRESENT] + seq,
                              .hazard_in = (float *)out[HAZARD_IN] + seq};
    return danger_read(&s->danger, w->scene, w->anchor, t->flip < 0, &rows);
}

/* out: lane, path */
static dt_status read_lanes(const state *s, const sample *w, const turn *t, const cursor *c, void *const *out)
{
    const int64_t first = s->v->frame_row[w->anchor], n = s->v->frame_row[w->anchor + 1] - first;
    const float *node = NULL;
    DT_TRY_H(slices_node(&s->slices, first, n, c->node, &node));
    return lanes_read(&s->lanes, w->scene, w->anchor, node, t->flip, (float *)out[0] + c->seq * LANES_COLUMNS,
                      (float *)out[1] + c->seq * LANES_PATH * LANES_PATH_COLUMNS);
}

static dt_status read_samples(const state *s, const uint64_t *index, const uint64_t *key, uint32_t n, cursor *c,
                              void *const *out)
{
    ((int32_t *)out[ROWPTR])[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const sample *w = &s->sample[index[i]];
        uint64_t use = key == NULL ? 0 : key[i];
        turn t = turn_of(s, w, use);
        const uint64_t name = use == 0 ? index[i] : use;
        if (s->has_pairs) {
            DT_TRY_H(read_danger(s, w, &t, c->seq, out));
        }
        if (s->has_lanes) {
            DT_TRY_H(read_lanes(s, w, &t, c, out + (s->has_pairs ? N_FIELDS_OF_PAIRS : N_FIELDS)));
        }
        DT_TRY_H(read_frames(s, w, &t, name, use, c, out));
        read_vehicles(s, w, &t, name, use, i, c, out);
    }
    return DT_OK;
}

/* Room for what a packed store unpacks. */
static dt_status reserve(const state *s, int64_t rows, cursor *c)
{
    if (s->most_rows == 0) {
        return DT_OK;
    }
    c->node = s->h->alloc(s->h, (uint64_t)s->most_rows * DT_NODE_FEATURES * sizeof(*c->node));
    c->edge = s->h->alloc(s->h, (uint64_t)s->most_edges * DT_EDGE_FEATURES * sizeof(*c->edge));
    c->source = s->h->alloc(s->h, (uint64_t)s->most_edges * sizeof(*c->source));
    c->accel = s->h->alloc(s->h, (uint64_t)(rows + 1) * sizeof(*c->accel));
    return c->node != NULL && c->edge != NULL && c->source != NULL && c->accel != NULL
               ? DT_OK
               : DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %lld rows of a packed store", (long long)rows);
}

static dt_status read(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const state *s = self;
    int64_t size[N_SYMBOLS];
    DT_TRY_H(sizes(self, index, n, size));
    if (size[0] > INT32_MAX || size[1] > INT32_MAX) {
        return DT_FAIL_H(s->h, DT_EINVAL,
                         "%u samples have %lld rows and %lld edges, more than 32 bits count: make the "
                         "batch or the slice smaller",
                         n, (long long)size[0], (long long)size[1]);
    }
    cursor c = {.S = size[2]};
    dt_status st = reserve(s, size[0], &c);
    if (st == DT_OK) {
        st = read_samples(s, index, key, n, &c, out);
    }
    s->h->release(s->h, c.node);
    s->h->release(s->h, c.edge);
    s->h->release(s->h, c.source);
    s->h->release(s->h, c.accel);
    return st;
}

static dt_status weights(void *self, double *out, uint64_t n)
{
    const state *s = self;
    return weights_of(s->h, s->v, s->balance, s->sample, n, out);
}

DT_DATA_DEFINE(component, "data_trajectory", "windows of history and future over a trajectory store",
               "Deo & Trivedi 2018 (protocol: 3 s history, 5 s future, 5 Hz)", config, state, options,
               DT_OPS(.create = create, .fields = fields, .symbols = symbols_of, .count = count, .sizes = sizes,
                      .read = read, .destroy = destroy, .weights = weights),
               .flags = DT_COMP_DETERMINISTIC, .state_version = 1, .check = check);

DT_PLUGIN_DEFINE_ONE(component, "data_trajectory", "1.0", "dtrain", "Apache-2.0");
