/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <math.h>
#include <string.h>

dt_status history_init(history *p, const sim *s, int64_t T, double every_s)
{
    *p = (history){.h = s->h, .T = T, .n = s->max_vehicles, .every_s = every_s, .dt_s = s->c->dt_s};
    p->frames = dt_motion_frames(T, every_s, p->dt_s);
    p->state = s->h->alloc(s->h, (uint64_t)(p->frames * p->n) * sizeof(*p->state));
    p->sequence = s->h->alloc(s->h, (uint64_t)p->n * sizeof(*p->sequence));
    if (p->state == NULL || p->sequence == NULL) {
        return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %lld steps of %lld vehicles", (long long)p->frames,
                         (long long)p->n);
    }
    return DT_OK;
}

void history_fini(history *p)
{
    if (p->h != NULL) {
        p->h->release(p->h, p->state);
        p->h->release(p->h, p->sequence);
    }
}

void history_reset(history *p)
{
    p->first = p->now + 1; /* steps are numbered on over all episodes, so that nothing old is taken for new */
}

void history_record(history *p, const sim *s)
{
    p->now++;
    history_state *frame = p->state + (int64_t)(p->now % (uint64_t)p->frames) * p->n;
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        const lane_state *l = &s->lane[lane];
        for (int32_t q = slot_front(l); q <= slot_back(l); q++) {
            const int32_t w = s->who[q];
            frame[w] = (history_state){.step = p->now,
                                       .key = s->vehicle[w].key,
                                       .x = s->x[q] - 0.5 * s->length[q],
                                       .v = s->v[q],
                                       .a = s->a[q],
                                       .lane = lane};
        }
    }
}

/* ---- sequences --------------------------------------------------------------------------------------------------- */

/* Of vehicle w `back` steps of the simulation ago; 0: it was not there. */
static int find_pose(const history *p, const sim *s, int32_t w, uint64_t back, dt_motion_pose *out)
{
    if (back >= (uint64_t)p->frames || p->now < p->first + back) {
        return 0;
    }
    const history_state *q = p->state + (int64_t)((p->now - back) % (uint64_t)p->frames) * p->n + w;
    if (q->step != p->now - back || q->key != s->vehicle[w].key) {
        return 0;
    }
    net_point(&s->net.lane[q->lane], q->x, &out->x, &out->y, &out->heading);
    out->v = q->v;
    out->a = q->a;
    return 1;
}

/* The same at any time. */
static int pose_at(const history *p, const sim *s, int32_t w, double ago_s, dt_motion_pose *out)
{
    const double steps = ago_s / p->dt_s, whole = floor(steps + DT_MOTION_STEP_TOL), share = most(0, steps - whole);
    dt_motion_pose older;
    if (!find_pose(p, s, w, (uint64_t)whole, out)) {
        return 0;
    }
    if (share <= DT_MOTION_STEP_TOL) {
        return 1;
    }
    if (!find_pose(p, s, w, (uint64_t)whole + 1, &older)) {
        return 0;
    }
    dt_motion_interpolate(out, &older, share);
    return 1;
}

/* row [T, DT_MOTION_COLUMNS], zeros where it was absent */
static void write_sequence(const history *p, const sim *s, int32_t w, float *row)
{
    dt_motion_pose now, then;
    memset(row, 0, (size_t)p->T * DT_MOTION_COLUMNS * sizeof(*row));
    if (!pose_at(p, s, w, 0, &now)) {
        return;
    }
    for (int64_t k = 0; k < p->T; k++, row += DT_MOTION_COLUMNS) {
        const double ago_s = (double)(p->T - 1 - k) * p->every_s;
        if (pose_at(p, s, w, ago_s, &then)) {
            dt_motion_row(&now, &then, ago_s, row);
        }
    }
}

static int32_t vehicle_ahead(const sim *s, int32_t w)
{
    const int32_t lane = s->vehicle[w].lane, p = sim_slot_of(s, w);
    if (p > slot_front(&s->lane[lane])) {
        return s->who[p - 1];
    }
    double rest = s->net.lane[lane].length - s->x[p];
    const int32_t q = move_find_vehicle_ahead(s, &s->vehicle[w], s->vehicle[w].next, &rest);
    return q == NET_NONE || s->who[q] == w ? NET_NONE : s->who[q];
}

int64_t history_write(history *p, const sim *s, const int32_t *node_of, const history_view *out)
{
    int64_t n = 0;
    for (int64_t w = 0; w < p->n; w++) {
        p->sequence[w] = NET_NONE;
    }
    for (int32_t k = 0; k < s->n_places; k++) {
        const int32_t own = s->place[k].state == PLACE_FREE ? NET_NONE : s->place[k].vehicle;
        const int32_t who[PAST_WHO] = {own, own == NET_NONE ? NET_NONE : vehicle_ahead(s, own)};
        for (int i = 0; i < PAST_WHO; i++) {
            const int32_t w = who[i];
            out->who[k * PAST_WHO + i] = NET_NONE;
            if (w == NET_NONE) {
                continue;
            }
            if (p->sequence[w] == NET_NONE) {
                p->sequence[w] = (int32_t)n;
                out->node[n] = node_of[w];
                write_sequence(p, s, w, out->row + n * p->T * DT_MOTION_COLUMNS);
                n++;
            }
            out->who[k * PAST_WHO + i] = p->sequence[w];
        }
    }
    return n;
}
