/* SPDX-License-Identifier: Apache-2.0
 *
 * See demand.h.
 */
#include "demand.h"

#define SPREAD      8.0 /* deviations of a Poisson number that there is room for: more comes once in 1e15 episodes */
#define ROOM_LEAST  16
#define SAFE_BRAKE  1.5 /* m/s^2, what who enters may have to brake at once; comfortable for every driver */
#define STREAM_BITS 40  /* arrivals of a source have this many bits of random number to themselves */

dt_status demand_create(sim *s)
{
    for (int32_t k = 0; k < s->n_sources; k++) {
        source *q = &s->source[k];
        const double n = q->rate * s->c->episode_s;
        q->cap = (int32_t)ceil(n + SPREAD * sqrt(n)) + ROOM_LEAST;
        q->due = s->h->alloc(s->h, (uint64_t)q->cap * sizeof(*q->due));
        if (q->due == NULL) {
            return DT_FAIL_H(s->h, DT_ENOMEM, "no memory for a demand of %d vehicles", (int)q->cap);
        }
    }
    return DT_OK;
}

void demand_destroy(sim *s)
{
    for (int32_t k = 0; s->source != NULL && k < s->n_sources; k++) {
        s->h->release(s->h, s->source[k].due);
        s->source[k].due = NULL;
    }
}

void demand_reset(sim *s)
{
    for (int32_t k = 0; k < s->n_sources; k++) {
        source *q = &s->source[k];
        double t = 0;
        q->n = q->arrived = q->taken = 0;
        for (uint64_t i = 0; q->rate > 0 && q->n < q->cap; i++) {
            const double u = draw(s, DRAW_DEMAND, (uint64_t)k << STREAM_BITS | i);
            if (s->c->arrivals == ARRIVALS_POISSON) {
                t += -log(1 - u) / q->rate;
            } else {
                t += (i == 0 ? u : 1) / q->rate;
            }
            if (t >= s->c->episode_s) {
                break;
            }
            q->due[q->n++] = t;
        }
    }
}

/* The speed at which a vehicle may enter behind the last one of a lane, negative when it may not. */
static double speed_of_entry(const sim *s, int32_t lane, double *gap_p)
{
    const lane_state *l = &s->lane[lane];
    const double limit = s->net.lane[lane].limit;
    *gap_p = FREE_GAP;
    if (l->n == 0) {
        return limit;
    }
    const int32_t p = slot_back(l);
    const double gap = *gap_p = s->x[p] - s->length[p] - s->c->vehicle_m;
    if (gap < s->driver.s0) {
        return -1;
    }
    const double slow = least(limit, s->v[p]);
    if (follow(&s->driver, limit, limit, gap, s->v[p]) >= -SAFE_BRAKE) {
        return limit;
    }
    return follow(&s->driver, slow, limit, gap, s->v[p]) >= -SAFE_BRAKE ? slow : -1;
}

void demand_step(sim *s)
{
    for (int32_t k = 0; k < s->n_sources; k++) {
        source *q = &s->source[k];
        const net_edge *e = &s->net.edge[q->edge];
        while (q->arrived < q->n && q->due[q->arrived] <= s->time) {
            q->arrived++;
        }
        while (q->taken < q->arrived) {
            int32_t best = NET_NONE;
            double widest = -1, speed = 0;
            for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
                double gap;
                const double v = speed_of_entry(s, lane, &gap);
                if (v >= 0 && gap > widest) {
                    widest = gap;
                    best = lane;
                    speed = v;
                }
            }
            if (best == NET_NONE || place_insert(s, best, s->c->vehicle_m, speed, q->due[q->taken]) == NET_NONE) {
                break;
            }
            q->taken++;
        }
    }
}
