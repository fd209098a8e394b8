/* SPDX-License-Identifier: Apache-2.0
 *
 * Past and future of each vehicle at the anchor, in its own frame. See windows.h.
 */
#include "windows.h"
#include "region.h"
#include "tracks.h"

#include <string.h>

/* A vehicle's own frame at the anchor: origin its position, x axis its heading. Where that is unknown (NAN) the axes
 * are those of the recording, and its future has no weight: it is neither trained on nor evaluated. */
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

/* Past of the vehicle whose anchor row is at track_row[place]; returns how many steps it is there. */
static int64_t read_past(const windows *s, const windows_sample *w, const own *o, uint64_t use, int64_t track,
                         int64_t place, const windows_cursor *c, void *const *out)
{
    const dt_store_view *v = s->v;
    int64_t seen = 0;
    for (int64_t k = s->T - 1, p = place; k >= 0; k--) {
        int64_t f = windows_history_frame(s, w, k), at = k * c->S + c->seq;
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
        const double turned = v->pose[3 * r + 2] - o->heading; /* NAN: one of them is unknown */
        ((int32_t *)out[SEQ_ROW])[at] = (int32_t)(c->base[k] + (r - v->frame_row[f]));
        ((float *)out[PRESENT])[at] = 1.f;
        const augment_row noise = augment_of_row(&s->augment, use, r);
        const double where[2] = {v->pose[3 * r] + noise.x, v->pose[3 * r + 1] + noise.y};
        own_position(o, where, &m[0], &m[1]);
        m[0] += (float)(o->speed * (double)((s->T - 1 - k) * s->stride) / v->frame_rate_hz);
        m[2] = isnan(turned) ? 0.f : (float)cos(turned);
        m[3] = isnan(turned) ? 0.f : (float)(o->flip * sin(turned));
        m[4] = windows_speed(v->motion[4 * r], &noise);
        m[5] = c->accel != NULL ? c->accel[c->base[k] + (r - v->frame_row[f])]
                                : v->node[DT_NODE_FEATURES * r + NODE_ACCELERATION];
        seen++;
    }
    return seen;
}

/* place: past the last row of the track where its future is not to be known. */
static int64_t read_future(const windows *s, const windows_sample *w, const own *o, int64_t track, int64_t place,
                           const windows_cursor *c, void *const *out)
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

void windows_read_vehicles(const windows *s, const windows_sample *w, const windows_turn *t, uint64_t name,
                           uint64_t use, uint32_t i, windows_cursor *c, void *const *out)
{
    const dt_store_view *v = s->v;
    const int64_t first = c->seq;
    for (int64_t r = v->frame_row[w->anchor]; r < v->frame_row[w->anchor + 1]; r++, c->seq++) {
        const double *pose = v->pose + 3 * r;
        const bool has_heading = tracks_has_heading(v, r);
        own o = {pose[0], pose[1],         pose[2], has_heading ? cos(pose[2]) : 1, has_heading ? sin(pose[2]) : 0,
                 t->flip, v->motion[4 * r]};
        int64_t track = v->row_track[r], place = tracks_place(v, track, r);
        int64_t past = read_past(s, w, &o, use, track, place, c, out);
        const bool is_learnt = region_has(v, r) && has_heading;
        int64_t future = read_future(s, w, &o, track, is_learnt ? place : v->track_ptr[track + 1], c, out);
        ((uint8_t *)out[COMPLETE])[c->seq] = past == s->T && future == s->F;
        ((int32_t *)out[SAMPLE_OF_SEQ])[c->seq] = (int32_t)i;
        ((int64_t *)out[SEQ_KEY])[c->seq] = (int64_t)(name << 20 | (uint64_t)(c->seq - first));
        float *at = (float *)out[POSE] + 4 * c->seq;
        at[0] = (float)(pose[0] - v->pose[3 * v->frame_row[w->anchor]]);
        at[1] = (float)(pose[1] - v->pose[3 * v->frame_row[w->anchor] + 1]);
        at[2] = has_heading ? (float)pose[2] : 0.f;
        at[3] = tracks_length(v, r);
        ((int32_t *)out[SITE])[c->seq] = v->scene_site[w->scene];
    }
}
