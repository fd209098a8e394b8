/* SPDX-License-Identifier: Apache-2.0
 *
 * Which scenes and anchors a split has. See windows.h.
 */
#include "windows.h"
#include "folds.h"
#include "region.h"

#include <string.h>

/* Which frames of a store of regions have a vehicle outside the halo. */
static dt_status find_core(windows *s)
{
    const dt_store_view *v = s->v;
    if (!region_is_known(v)) {
        return DT_OK;
    }
    s->has_core = s->h->alloc(s->h, (uint64_t)v->n_frames);
    if (s->has_core == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %lld frames", (long long)v->n_frames);
    }
    for (int64_t f = 0; f < v->n_frames; f++) {
        s->has_core[f] = 0;
        for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++) {
            s->has_core[f] |= v->core[r];
        }
    }
    return DT_OK;
}

/* Is there something to train or evaluate on in the window that ends with frame f? */
static bool has_core(const windows *s, int64_t scene, int64_t f)
{
    for (int64_t k = 0; k < s->T && s->has_core != NULL; k++) {
        const int64_t at = f - k * s->stride;
        if (at >= s->v->scene_frame[scene] && s->has_core[at]) {
            return true;
        }
    }
    return s->has_core == NULL;
}

/* Anchors of one scene; count alone where out is NULL. Strided from the first possible one. */
static uint64_t list_anchors(const windows *s, const windows_config *c, int is_train, int64_t scene,
                             windows_sample *out)
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
        if (v->frame_row[f + 1] > v->frame_row[f] && has_core(s, scene, f)) { /* a vehicle is there */
            if (out != NULL) {
                out[n] = (windows_sample){scene, f};
            }
            n++;
        }
    }
    return n;
}

/* takes [n_scenes]: those that calibration is left with, or training; held-out ones are of neither. */
static dt_status choose_calibration(const windows *s, const windows_config *c, uint8_t *takes)
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
static dt_status choose_scenes(const windows *s, const windows_config *c, uint8_t *takes)
{
    const dt_store_view *v = s->v;
    const int is_for_eval = c->eval_scenes != FOR_TRAINING;
    if (c->split == SPLIT_ALL || (c->split != SPLIT_EVAL && is_for_eval) ||
        (c->split == SPLIT_EVAL && c->eval_scenes == FOR_ALL && c->eval_site[0] == '\0')) {
        memset(takes, 1, (size_t)v->n_scenes);
        return DT_OK;
    }
    DT_TRY_H(c->eval_site[0] != '\0' ? folds_of_site(s->h, v, c->eval_site, takes)
                                     : folds_deal(s->h, v, c->folds, c->fold, takes));
    for (int64_t i = 0; i < v->n_scenes; i++) {
        takes[i] = takes[i] == (c->split == SPLIT_EVAL);
    }
    return c->calibration_folds > 1 && c->split != SPLIT_EVAL ? choose_calibration(s, c, takes) : DT_OK;
}

/* Whatever is evaluated on, no scene has a whole window of history and horizon. */
static dt_status check_longest_scene(const windows *s, const windows_config *c)
{
    const dt_store_view *v = s->v;
    const double window_s = (double)((s->T - 1 + s->F) * s->stride) / v->frame_rate_hz;
    int64_t longest = 0;
    for (int64_t i = 0; i < v->n_scenes; i++) {
        const int64_t frames = v->scene_frame[i + 1] - v->scene_frame[i];
        longest = frames > longest ? frames : longest;
    }
    const double longest_s = longest > 0 ? (double)(longest - 1) / v->frame_rate_hz : 0;
    return longest == 0 || longest_s >= window_s - 1e-9
               ? DT_OK
               : DT_FAIL_H(s->h, DT_EDATA,
                           "split %s of the data has no samples: the longest scene of %s lasts %.4g s, and a window of "
                           "history_s = %g and horizon_s = %g lasts %.4g s; lower them in the phase, or import longer "
                           "scenes",
                           c->split == SPLIT_EVAL ? "eval" : "all", c->store, longest_s, c->history_s, c->horizon_s,
                           window_s);
}

/* A split got no sample. Where scenes that look like several recordings are one, that is why; else the phase reports
 * what is missing. */
static dt_status explain_empty_split(const windows *s, const windows_config *c)
{
    static const char *const name[] = {[SPLIT_TRAIN] = "train", [SPLIT_EVAL] = "eval"};
    const dt_store_view *v = s->v;
    int64_t first[2] = {-1, -1};
    int has_other = 0;
    DT_TRY_H(c->split == SPLIT_EVAL || c->split == SPLIT_ALL ? check_longest_scene(s, c) : DT_OK);
    if (c->eval_site[0] != '\0' || (c->split != SPLIT_TRAIN && c->split != SPLIT_EVAL)) {
        return DT_OK;
    }
    for (int64_t i = 0; i < v->n_scenes && !has_other; i++) { /* else all are too short */
        has_other = list_anchors(s, c, c->split == SPLIT_TRAIN, i, NULL) > 0;
    }
    if (has_other) {
        DT_TRY_H(folds_find_shared(s->h, v, first));
    }
    if (first[0] < 0) {
        return DT_OK;
    }
    return DT_FAIL_H(
        s->h, DT_EDATA,
        "split %s of the data has no samples: scenes that share their vehicles' motion count as one recording, which "
        "is trained or evaluated on as a whole, and so do %s and %s of %s; add other recordings (of a simulation: "
        "other seeds), hold out one of several sites by data_trajectory.eval_site, or set data_trajectory.eval_scenes "
        "= "
        "\"all\", which trains and evaluates on all of it",
        name[c->split], v->scene[first[0]], v->scene[first[1]], c->store);
}

dt_status windows_list(windows *s, const windows_config *c)
{
    const dt_store_view *v = s->v;
    DT_TRY_H(find_core(s));
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
    return st == DT_OK && s->n == 0 ? explain_empty_split(s, c) : st;
}
