/* SPDX-License-Identifier: Apache-2.0 */
#include "danger.h"
#include "region.h"
#include "tracks.h"

#include <math.h>
#include <string.h>

enum { FEW = 256 };     /* vehicles of a frame: more of them need memory */
enum { PIECE = 64 };    /* edges at a time, of a packed store */
#define LANE_M      3.5 /* as of traffic/features.h, pairs */
#define WIDTH_M     1.8 /* where it was not recorded */
#define ALONG       0.5 /* the same: cosine between headings */
#define OTHER_BRAKE 9.0 /* m/s^2, what tyres on dry asphalt give */

dt_status danger_init(danger *d, const slices *s, const danger_config *c)
{
    const dt_host *h = s->h;
    const dt_store_view *v = s->v;
    const double every = c->action_s * v->frame_rate_hz;
    *d = (danger){.h = h, .v = v, .slices = *s, .config = *c, .every = llround(every)};
    if (d->every < 1 || fabs(every - (double)d->every) > 1e-6) {
        return DT_FAIL_H(
            h, DT_ECONFIG,
            "an action of %g s is %g frames of a recording of %g Hz; it must be a whole number of them for "
            "a barrier to learn from it",
            c->action_s, every, v->frame_rate_hz);
    }
    d->features = h->service(h, DT_SVC_FEATURES);
    if (!DT_HAS(d->features, pairs)) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "this host's service %s lacks pairs, which train a barrier",
                         DT_SVC_FEATURES);
    }
    return DT_OK;
}

/* ---- hazards ----------------------------------------------------------------------------------------------------- */

static double width_of_vehicle(const dt_store_view *v, int64_t r)
{
    const double w = (double)v->motion[4 * r + 3];
    return isnan(w) ? WIDTH_M : w;
}

/* By one edge, as it is kept: r sees other. */
static bool is_hazard_of(const danger *d, const float *edge, int64_t r, int64_t other)
{
    const dt_store_view *v = d->v;
    const danger_config *c = &d->config;
    const double gap = (double)edge[0], aside = fabs((double)edge[1]), closing = (double)edge[2];
    if (other == r) {
        return false;
    }
    const double turned = v->pose[3 * other + 2] - v->pose[3 * r + 2]; /* NAN: other is stopped, see features */
    if (gap > 0 && aside < 0.5 * LANE_M && gap < c->hazard_ttc_s * closing && (isnan(turned) || cos(turned) >= ALONG)) {
        return true;
    }
    return c->hazard_collisions && !(fabs(gap) > 0) &&
           aside < 0.5 * (width_of_vehicle(v, r) + width_of_vehicle(v, other));
}

/* Is this vehicle in danger in this very frame, whose first row is first? */
static dt_status is_hazard(const danger *d, int64_t first, int64_t r, bool *is_p)
{
    const dt_store_view *v = d->v;
    const danger_config *c = &d->config;
    const float accel = v->accel_centred != NULL ? v->accel_centred[r] : v->motion[4 * r + 1];
    if (c->hazard_mps2 > 0 && (double)accel < -c->hazard_mps2) {
        *is_p = true;
        return DT_OK;
    }
    *is_p = false;
    for (int64_t e = v->edge_ptr[r]; e < v->edge_ptr[r + 1] && !*is_p; e += PIECE) {
        const int64_t left = v->edge_ptr[r + 1] - e, n = left < PIECE ? left : PIECE;
        float room[4 * PIECE];
        int32_t source_room[PIECE];
        const float *edge = NULL;
        const int32_t *source = NULL;
        DT_TRY_H(slices_edge(&d->slices, e, n, room, &edge));
        DT_TRY_H(slices_source(&d->slices, e, n, source_room, &source));
        for (int64_t k = 0; k < n && !*is_p; k++) {
            *is_p = is_hazard_of(d, edge + 4 * k, r, first + source[k]);
        }
    }
    return DT_OK;
}

/* From frame on, and the row of the vehicle an action later, -1: it is not there any more. */
static dt_status find_hazard_until(const danger *d, int64_t scene, int64_t frame, int64_t r, int64_t *next_p,
                                   float *in_p)
{
    const dt_store_view *v = d->v;
    const int64_t track = v->row_track[r], from = tracks_place(v, track, r), last = v->track_ptr[track + 1];
    const int64_t end = v->scene_frame[scene + 1];
    float found = NAN;
    int64_t k = 0;
    *next_p = -1;
    for (; k <= d->config.hazard_steps * d->every && frame + k < end && from + k < last; k++) {
        const int64_t row = v->track_row[from + k], first = v->frame_row[frame + k];
        if (row < first || row >= v->frame_row[frame + k + 1]) {
            break; /* it was out of sight */
        }
        *next_p = k == d->every ? row : *next_p;
        bool is_now = false;
        if (isnan(found)) {
            DT_TRY_H(is_hazard(d, first, row, &is_now));
        }
        if (is_now) {
            found = (float)(k / d->every);
        }
        if (!isnan(found) && k >= d->every) {
            break;
        }
    }
    const float known = (float)(k / d->every);
    *in_p = !isnan(found) ? found : known > 1 ? -known : -1.f; /* not a whole one is no more than nothing known */
    return DT_OK;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static dt_status list_frame(const danger *d, int64_t frame, dt_vehicle *out)
{
    const dt_store_view *v = d->v;
    for (int64_t r = v->frame_row[frame]; r < v->frame_row[frame + 1]; r++, out++) {
        float room[DT_NODE_FEATURES];
        const float *node = NULL;
        DT_TRY_H(slices_node(&d->slices, r, 1, room, &node));
        *out = (dt_vehicle){.x = v->pose[3 * r],
                            .y = v->pose[3 * r + 1],
                            .heading = v->pose[3 * r + 2],
                            .speed = (double)v->motion[4 * r],
                            .accel = (double)node[NODE_ACCELERATION],
                            .length = (double)tracks_length(v, r),
                            .width = (double)v->motion[4 * r + 3],
                            .stop_distance = NAN};
    }
    return DT_OK;
}

static void write_pairs(const danger *d, const dt_vehicle *frame, uint32_t n, uint32_t i, bool is_flipped, float *ahead,
                        float *beside)
{
    enum { SIDE = 2 * DT_PAIR_COLUMNS };
    const dt_pair_desc how = {
        .action_s = d->config.action_s, .brake = d->config.brake_mps2, .other_brake = OTHER_BRAKE};
    d->features->pairs(frame, n, i, &how, ahead, beside);
    if (is_flipped) {
        for (int k = 0; k < SIDE; k++) {
            const float left = beside[k];
            beside[k] = beside[SIDE + k];
            beside[SIDE + k] = left;
        }
    }
}

static dt_status read_frame_pairs(const danger *d, int64_t scene, int64_t frame, bool is_flipped, dt_vehicle *now,
                                  dt_vehicle *next, const danger_rows *out)
{
    const dt_store_view *v = d->v;
    const int64_t first = v->frame_row[frame], later = frame + d->every;
    const uint32_t n = (uint32_t)(v->frame_row[frame + 1] - first);
    const bool has_later = later < v->scene_frame[scene + 1];
    const int64_t first_later = has_later ? v->frame_row[later] : 0;
    const uint32_t n_later = has_later ? (uint32_t)(v->frame_row[later + 1] - first_later) : 0;
    DT_TRY_H(list_frame(d, frame, now));
    if (has_later) {
        DT_TRY_H(list_frame(d, later, next));
    }
    for (uint32_t i = 0; i < n; i++) {
        float *ahead = out->next_ahead + (size_t)i * DANGER_AHEAD,
              *beside = out->next_beside + (size_t)i * DANGER_BESIDE;
        int64_t row = -1;
        out->hazard_in[i] = -1.f;
        if (region_has(v, first + i) && tracks_has_heading(v, first + i)) {
            DT_TRY_H(find_hazard_until(d, scene, frame, first + i, &row, &out->hazard_in[i]));
        }
        out->next_present[i] = row >= 0 ? 1.f : 0.f;
        write_pairs(d, now, n, i, is_flipped, out->ahead + (size_t)i * DANGER_AHEAD,
                    out->beside + (size_t)i * DANGER_BESIDE);
        if (row >= 0) {
            write_pairs(d, next, n_later, (uint32_t)(row - first_later), is_flipped, ahead, beside);
        } else {
            memset(ahead, 0, DANGER_AHEAD * sizeof(*ahead));
            memset(beside, 0, DANGER_BESIDE * sizeof(*beside));
        }
    }
    return DT_OK;
}

dt_status danger_read(const danger *d, int64_t scene, int64_t frame, bool is_flipped, const danger_rows *out)
{
    const dt_store_view *v = d->v;
    const int64_t later = frame + d->every;
    const int64_t n = v->frame_row[frame + 1] - v->frame_row[frame];
    const int64_t n_later = later < v->scene_frame[scene + 1] ? v->frame_row[later + 1] - v->frame_row[later] : 0;
    dt_vehicle few[FEW];
    dt_vehicle *all = n + n_later <= FEW ? few : d->h->alloc(d->h, (uint64_t)(n + n_later) * sizeof(*all));
    if (all == NULL) {
        return DT_FAIL_H(d->h, DT_ENOMEM, "no memory for two frames of %lld vehicles", (long long)(n + n_later));
    }
    const dt_status st = read_frame_pairs(d, scene, frame, is_flipped, all, all + n, out);
    if (all != few) {
        d->h->release(d->h, all);
    }
    return st;
}
