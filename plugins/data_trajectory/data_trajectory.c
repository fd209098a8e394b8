/* SPDX-License-Identifier: Apache-2.0
 *
 * data_trajectory: windows over a trajectory store for phase 1. A sample is a scene at an anchor frame: the graphs of
 * the T frames of history up to and including the anchor, and F steps of future for every vehicle seen at the anchor.
 * Fields, shapes and order: traffic/ports.h. The store keeps the recording's rate; windows take every m-th frame.
 *
 * Nothing is invented: a vehicle absent at a step has seq_row -1, present 0 or target_weight 0. Inputs come from the
 * anchor and before alone; targets and risk labels are the only things that look ahead.
 *
 * Splits: "eval" is one fold of the scenes (or a whole site, eval_site) and "train" the others; folds.h documents how
 * they are dealt. Where calibration_folds are dealt besides, "calibration" is the last of them that has windows which
 * are not held out, and train goes without its scenes; with calibration_folds 1 it has those of train. Training anchors
 * may have a short past or future (min_history_s, min_future_s), those of the other splits have both whole. Where a
 * checkpoint is evaluated and nothing is trained, train and calibration are the whole store, and eval may be.
 *
 * Of a store of regions the vehicles of a halo are shown, and excluded from training and evaluation: their
 * target_weight, risk_weight and complete are 0, their risk_state is 3 and their hazard_in -1.
 *
 * Node features are scaled by fixed constants and not by the statistics of a store, so that a model means the same on
 * every store. Augmentation (key not 0): the scene turns as a whole about its anchor's centre by an angle drawn from
 * the key, is mirrored in half of the cases, and its centre is moved. So a net learns traffic and not the one road it
 * was recorded on. On NGSIM, error at 5 s over constant velocity's: where evaluation is on the same roads 0.72 with all
 * three and 0.67 without, on a site not seen in training 0.86 and 0.99 with, 0.90 and 1.70 without. So all are on.
 */
#include "dtrain/ext/dataset.h"
#include "windows.h"
#include "region.h"

#include <stdlib.h>

static const char *const splits[] = {"all", "train", "eval", "calibration", NULL};
static const char *const purposes[] = {"training", "held", "all", NULL};
static const char *const balances[] = {"none", "site", "scene", "risk", NULL};

static const dt_option options[] = {
    DT_OPTION_WITH(windows_config, store, DT_OPT_PATH, "", "", 0, 0, NULL,
                   "store made by dtrain data import; set by data.store", DT_OPT_STORE, NULL),
    DT_OPTION_WITH(windows_config, split, DT_OPT_ENUM, "all", "", 0, 0, splits, "split of scenes; the phase sets it",
                   DT_OPT_SPLIT, NULL),
    DT_OPTION_WITH(
        windows_config, eval_scenes, DT_OPT_ENUM, "training", "", 0, 0, purposes,
        "scenes of eval: training: those that train holds out; held, all: the same or the whole store, without "
        "training; dtrain eval sets it by evaluation.folds",
        DT_OPT_FOLDS, NULL),
    DT_OPTION(windows_config, history_s, DT_OPT_F64, "3", "s", 0, 60, NULL, "history in a window, the anchor included"),
    DT_OPTION(windows_config, horizon_s, DT_OPT_F64, "5", "s", 0, 60, NULL, "future in a window"),
    DT_OPTION(windows_config, rate_hz, DT_OPT_F64, "5", "1/s", 0.1, 100, NULL,
              "steps per second of a window; the store's rate is a multiple of it"),
    DT_OPTION(windows_config, stride_s, DT_OPT_F64, "0.2", "s", 0, 3600, NULL,
              "time between anchors of a scene in eval and all"),
    DT_OPTION(windows_config, train_stride_s, DT_OPT_F64, "1", "s", 0, 3600, NULL,
              "time between anchors of a scene in train"),
    DT_OPTION(windows_config, min_history_s, DT_OPT_F64, "1", "s", 0, 60, NULL,
              "minimum past of a training anchor in its scene"),
    DT_OPTION(windows_config, min_future_s, DT_OPT_F64, "1", "s", 0, 60, NULL,
              "minimum future of a training anchor in its scene"),
    DT_OPTION(windows_config, folds, DT_OPT_I64, "5", "1", 2, 1000, NULL,
              "number of folds that the recordings are distributed to"),
    DT_OPTION(windows_config, fold, DT_OPT_I64, "0", "1", 0, 999, NULL, "fold that is held out for evaluation"),
    DT_OPTION(windows_config, calibration_folds, DT_OPT_I64, "0", "1", 0, 1000, NULL,
              "folds for calibration, of which train also leaves one out; 1: calibrate on the scenes of train, 0: "
              "none. The phase sets it"),
    DT_OPTION(windows_config, eval_site, DT_OPT_STR, "", "", 0, 0, NULL, "hold out this whole site instead of a fold"),
    DT_OPTION(windows_config, rotate, DT_OPT_BOOL, "true", "", 0, 0, NULL, "turn training scenes by random angles"),
    DT_OPTION(windows_config, mirror, DT_OPT_BOOL, "true", "", 0, 0, NULL, "mirror half of the training scenes"),
    DT_OPTION(windows_config, shift_m, DT_OPT_F64, "50", "m", 0, 1000, NULL,
              "shift the centre of training scenes by up to this much along x and y"),
    DT_OPTION(windows_config, speed_noise_mps, DT_OPT_F64, "0", "m/s", 0, 10, NULL,
              "training: standard deviation of an error of the speeds that models see"),
    DT_OPTION(windows_config, position_noise_m, DT_OPT_F64, "0", "m", 0, 100, NULL,
              "training: positions that models see are off by up to this much along x and y"),
    DT_OPTION(windows_config, drop_edges, DT_OPT_F64, "0", "1", 0, 1, NULL,
              "training: share of edges between vehicles that models do not see"),
    DT_OPTION(windows_config, hide_nodes, DT_OPT_F64, "0", "1", 0, 1, NULL,
              "training: share of vehicles whose features perception does not see in a frame"),
    DT_OPTION_WITH(
        windows_config, balance, DT_OPT_ENUM, "none", "", 0, 0, balances,
        "with data.sampling = weighted: groups drawn with equal frequency: sites, scenes, or samples with and "
        "without a vehicle in danger; none: no weights",
        DT_OPT_WEIGHTS, NULL),
    DT_OPTION(windows_config, cache_mb, DT_OPT_I64, "64", "MiB", 1, 1048576, NULL,
              "cache of decompressed pieces of a compressed store, at most"),
    DT_OPTION(windows_config, lanes, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "provide positions of vehicles on the store's roads, where the roads lead, and the vehicles ahead; no "
              "effect without roads"),
    DT_OPTION(windows_config, pairs, DT_OPT_BOOL, "false", "", 0, 0, NULL,
              "provide the inputs of shields for each vehicle and the steps until danger; set by phases that train a "
              "barrier"),
    DT_OPTION_WITH(windows_config, action_s, DT_OPT_F64, "1", "s", 0.01, 60, NULL,
                   "pairs: time between two actions of an agent", 0, "pairs"),
    DT_OPTION_WITH(windows_config, brake_mps2, DT_OPT_F64, "3", "m/s^2", 0.1, 20, NULL,
                   "pairs: hardest braking of an agent", 0, "pairs"),
    DT_OPTION_WITH(windows_config, hazard_ttc_s, DT_OPT_F64, "1.5", "s", 0, 60, NULL,
                   "pairs: a time to collision below this is dangerous; 0: off", 0, "pairs"),
    DT_OPTION_WITH(windows_config, hazard_mps2, DT_OPT_F64, "3", "m/s^2", 0, 20, NULL,
                   "pairs: harder braking is dangerous; 0: off", 0, "pairs"),
    DT_OPTION_WITH(windows_config, hazard_collisions, DT_OPT_BOOL, "true", "", 0, 0, NULL,
                   "pairs: overlapping another vehicle is dangerous", 0, "pairs"),
    DT_OPTION_WITH(windows_config, hazard_steps, DT_OPT_I64, "11", "actions", 1, 1e4, NULL,
                   "pairs: number of future actions searched for danger", 0, "pairs"),
    DT_OPTION_END};

static const char *const symbols[N_SYMBOLS] = {"N", "E", "S"};

static dt_status check(const dt_host *h, const void *cfg)
{
    const windows_config *c = cfg;
    double T = c->history_s * c->rate_hz, F = c->horizon_s * c->rate_hz;
    if (fabs(T - rint(T)) > 1e-6 || fabs(F - rint(F)) > 1e-6 || T < 1 || F < 1 || T > T_MAX || F > T_MAX) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "data_trajectory: history_s %g and horizon_s %g at rate_hz %g give %g and %g "
                         "steps; both must be whole numbers in [1, %d]",
                         c->history_s, c->horizon_s, c->rate_hz, T, F, T_MAX);
    }
    if (c->split == SPLIT_CALIBRATION && c->calibration_folds == 0) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "data_trajectory.calibration_folds 0: split calibration is one of calibration_folds folds, "
                         "set 2 or more, or 1 for all scenes of split train");
    }
    if (c->fold >= c->folds) {
        return DT_FAIL_H(h, DT_ECONFIG, "data_trajectory.fold %lld is not below folds = %lld", (long long)c->fold,
                         (long long)c->folds);
    }
    return DT_OK;
}

/* Integers declare which rows they count. */
static void make_fields(windows *s)
{
    /* DT_PORT_INDEX: samples, then symbols */
    enum { OF_SAMPLES, OF_NODES, OF_EDGES };
    snprintf(s->dims[0], DIMS_BYTES, "%lld S", (long long)s->T);
    snprintf(s->dims[1], DIMS_BYTES, "%lld S %d", (long long)s->T, MOTION);
    snprintf(s->dims[2], DIMS_BYTES, "S %lld 2", (long long)s->F);
    snprintf(s->dims[3], DIMS_BYTES, "S %lld", (long long)s->F);
    snprintf(s->dims[4], DIMS_BYTES, "S %d", LANES_COLUMNS);
    snprintf(s->dims[5], DIMS_BYTES, "S %d %d", LANES_PATH, LANES_PATH_COLUMNS);
    const dt_port field[N_FIELDS_OF_ALL] = {[NODES] = {"nodes", "N 9", DT_F32, 0},
                                            [ROWPTR] = {"rowptr", "N+1", DT_I32, DT_PORT_INDEX(OF_EDGES)},
                                            [COL] = {"col", "E", DT_I32, DT_PORT_INDEX(OF_NODES)},
                                            [EDGES] = {"edges", "E 4", DT_F32, 0},
                                            [ROW_KEY] = {"row_key", "N", DT_I64, 0},
                                            [RISK_LABEL] = {"risk_label", "N", DT_F32, 0},
                                            [RISK_WEIGHT] = {"risk_weight", "N", DT_F32, 0},
                                            [RISK_STATE] = {"risk_state", "N", DT_U8, 0},
                                            [STEP_OF_ROW] = {"step_of_row", "N", DT_I32, DT_PORT_PLAIN},
                                            [SEQ_ROW] = {"seq_row", s->dims[0], DT_I32, DT_PORT_INDEX(OF_NODES)},
                                            [PRESENT] = {"present", s->dims[0], DT_F32, 0},
                                            [MOTION_FIELD] = {"motion", s->dims[1], DT_F32, 0},
                                            [TARGET] = {"target", s->dims[2], DT_F32, 0},
                                            [TARGET_WEIGHT] = {"target_weight", s->dims[3], DT_F32, 0},
                                            [COMPLETE] = {"complete", "S", DT_U8, 0},
                                            [SAMPLE_OF_SEQ] = {"sample_of_seq", "S", DT_I32, DT_PORT_INDEX(OF_SAMPLES)},
                                            [SEQ_KEY] = {"seq_key", "S", DT_I64, 0},
                                            [POSE] = {"pose", "S 4", DT_F32, 0},
                                            [SITE] = {"site", "S", DT_I32, DT_PORT_PLAIN},
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
        s->lane_field = i == LANE ? s->n_fields : s->lane_field;
        if (is_there) {
            s->field[s->n_fields++] = field[i];
        }
    }
}

/* How much room a frame of a packed store takes. */
static void measure_frames(windows *s)
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

/* Windows of a store of regions reach no further than its halo does. */
static dt_status check_region(const windows *s, const windows_config *c)
{
    const dt_store_view *v = s->v;
    if (!region_is_known(v)) {
        return DT_OK;
    }
    const double frame_s = 1 / v->frame_rate_hz;
    const struct {
        const char *what;
        double reach, halo;
    } need[] = {
        {"history_s", (double)((s->T - 1) * s->stride) * frame_s, v->halo_s},
        {"horizon_s", (double)(s->F * s->stride) * frame_s, v->halo_s},
        {"pairs.action_s and hazard_steps", s->has_pairs ? (double)c->hazard_steps * c->action_s : 0, v->halo_s},
        {"pairs (m)", s->has_pairs ? DANGER_REACH_M : 0, v->halo_m},
        {"lanes (m)", s->has_lanes ? LANES_REACH_M : 0, v->halo_m}};
    for (size_t i = 0; i < sizeof(need) / sizeof(need[0]); i++) {
        if (need[i].reach > need[i].halo + 1e-9) {
            return DT_FAIL_H(
                s->h, DT_ECONFIG,
                "data_trajectory: %s reaches %g, beyond the halo of %g of the regions in %s: cut the store "
                "again with a larger one (cut.halo_m, cut.halo_s)",
                need[i].what, need[i].reach, need[i].halo, c->store);
        }
    }
    return DT_OK;
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    windows *s = self;
    const windows_config *c = cfg;
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
    if (s->api == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "this host has no service %s, which data_trajectory needs", DT_SVC_STORE);
    }
    DT_TRY_H(s->api->open(h, c->store, (uint64_t)c->cache_mb << 20, &s->v));
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
    s->has_lanes = c->lanes && lanes_available(s->v);
    if (c->lanes && !s->has_lanes && c->split != SPLIT_EVAL) {
        dt_logf(h, 2, "%s has no roads: no lanes are provided", c->store);
    }
    if (s->has_lanes) {
        DT_TRY_H(lanes_init(&s->lanes, h, s->v, (s->T - 1) * s->stride));
    }
    if (c->eval_site[0] != '\0' && c->fold != 0 && c->split != SPLIT_EVAL) {
        dt_logf(h, 2, "eval_site \"%s\" is held out completely: fold %lld has no effect", c->eval_site,
                (long long)c->fold);
    }
    DT_TRY_H(check_region(s, c));
    make_fields(s);
    return windows_list(s, c);
}

static void destroy(void *self)
{
    windows *s = self;
    if (s->h == NULL) {
        return;
    }
    s->h->release(s->h, s->sample);
    s->h->release(s->h, s->has_core);
    lanes_fini(&s->lanes);
    if (s->v != NULL) {
        s->api->close(s->h, s->v);
    }
}

static const dt_port *list_fields(const void *self, uint32_t *n_p)
{
    *n_p = ((const windows *)self)->n_fields;
    return ((const windows *)self)->field;
}

static const char *const *list_symbols(const void *self, uint32_t *n_p)
{
    *n_p = N_SYMBOLS;
    return symbols;
}

static dt_status count_samples(const void *self, uint64_t *n_p)
{
    *n_p = ((const windows *)self)->n;
    return DT_OK;
}

static dt_status compute_weights(void *self, double *out, uint64_t n)
{
    const windows *s = self;
    return weights_of(s->h, s->v, s->balance, s->sample, n, out);
}

static dt_status digest_of_store(const dt_host *h, const char *path, uint64_t *digest_p)
{
    const dt_store_api *api = h->service(h, DT_SVC_STORE);
    return DT_HAS(api, digest) ? api->digest(h, path, digest_p)
                               : DT_FAIL_H(h, DT_EUNSUPPORTED, "this host has no service %s", DT_SVC_STORE);
}

static const void *extension(const char *id)
{
    static const dt_dataset_ext dataset = {.struct_size = sizeof(dt_dataset_ext), .digest = digest_of_store};
    return strcmp(id, DT_EXT_DATASET) == 0 ? &dataset : NULL;
}

DT_DATA_DEFINE(component, "data_trajectory", "windows of history and future over a trajectory store",
               "Deo & Trivedi 2018 (protocol: 3 s history, 5 s future, 5 Hz)", windows_config, windows, options,
               DT_OPS(.create = create, .fields = list_fields, .symbols = list_symbols, .count = count_samples,
                      .sizes = windows_sizes, .read = windows_read, .destroy = destroy, .weights = compute_weights,
                      .statistics = windows_statistics),
               .flags = DT_COMP_DETERMINISTIC, .state_version = 1, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "data_trajectory", "1.0", "dtrain", "Apache-2.0");
