/* SPDX-License-Identifier: Apache-2.0
 *
 * See observe.h.
 */
#include "observe.h"
#include "junction.h"

#define FAR_M 200.0 /* INTERFACES: clamp of distances */

/* ---- vehicles ---------------------------------------------------------------------------------------------------- */

/* To the line or the end of the lane; NAN where the lane simply goes on. */
static double way_to_line(const sim *s, int32_t lane, double x)
{
    const net_lane *l = &s->net.lane[lane];
    const int has_line = l->edge != NET_NONE && s->net.edge[l->edge].junction != NET_NONE;
    const int ends = l->edge != NET_NONE && s->net.edge[l->edge].n_out > 0 && l->n_links == 0;
    return has_line || ends ? most(0, l->length - x) : NAN;
}

static uint32_t list_lane(const sim *s, int32_t lane, dt_vehicle *frame, uint32_t n, int32_t *agent_node)
{
    const lane_state *l = &s->lane[lane];
    for (int32_t p = slot_front(l); p < slot_front(l) + l->n; p++, n++) {
        const vehicle *w = &s->vehicle[s->who[p]];
        const int is_agent = w->place != NET_NONE;
        frame[n] = (dt_vehicle){.speed = s->v[p],
                                .accel = s->a[p],
                                .length = s->length[p],
                                .width = NAN,
                                .stop_distance = way_to_line(s, lane, s->x[p]),
                                .id = (int64_t)w->key,
                                .controlled = (uint32_t)is_agent};
        net_point(&s->net.lane[lane], s->x[p] - 0.5 * s->length[p], &frame[n].x, &frame[n].y, &frame[n].heading);
        if (is_agent) {
            agent_node[w->place] = (int32_t)n;
        }
    }
    return n;
}

dt_status observe_graph(const sim *s, const dt_features_api *f, dt_vehicle *frame, const graph_view *out)
{
    uint32_t n = 0;
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        n = list_lane(s, lane, frame, n, out->agent_node);
    }
    for (int32_t k = 0; k < s->n_places; k++) { /* agents that left in this step are seen a last time */
        const place *w = &s->place[k];
        if (w->state == PLACE_ENDED && w->vehicle == NET_NONE) {
            frame[n] = (dt_vehicle){.x = w->x,
                                    .y = w->y,
                                    .heading = w->heading,
                                    .speed = w->speed,
                                    .accel = w->done_accel,
                                    .length = s->c->vehicle_m,
                                    .width = NAN,
                                    .stop_distance = NAN,
                                    .id = -1 - k,
                                    .controlled = 1};
            out->agent_node[k] = (int32_t)n++;
        }
    }
    DT_TRY_H(f->frame(s->h, frame, n, s->c->radius_m, DT_NEIGHBOURS, out->node, out->rowptr, out->col, out->edge));
    out->size[0] = n;
    out->size[1] = out->rowptr[n];
    return DT_OK;
}

void observe_ego(const sim *s, float *ego)
{
    for (int32_t k = 0; k < s->n_places; k++) {
        const place *w = &s->place[k];
        float *e = ego + (size_t)k * EGO_FEATURES;
        if (w->state == PLACE_FREE) {
            continue;
        }
        if (w->vehicle == NET_NONE) {
            const double seen[EGO_FEATURES] = {w->speed, FAR_M,    w->speed, FAR_M,
                                               w->speed, w->speed, FAR_M,    w->done_accel};
            for (int d = 0; d < EGO_FEATURES; d++) {
                e[d] = (float)seen[d];
            }
            continue;
        }
        const int32_t lane = s->vehicle[w->vehicle].lane, p = sim_slot_of(s, w->vehicle);
        double ahead, behind;
        const double gap = sim_ahead(s, lane, p, &ahead), back = sim_behind(s, lane, p, &behind);
        const double way = way_to_line(s, lane, s->x[p]);
        const double seen[EGO_FEATURES] = {s->v[p],
                                           least(gap, FAR_M),
                                           gap < FREE_GAP ? ahead : s->v[p],
                                           least(back, FAR_M),
                                           back < FREE_GAP ? behind : s->v[p],
                                           s->want[p],
                                           isnan(way) ? FAR_M : least(way, FAR_M),
                                           s->a[p],
                                           move_model(s, lane, p)};
        for (int d = 0; d < EGO_FEATURES; d++) {
            e[d] = (float)seen[d];
        }
    }
}
