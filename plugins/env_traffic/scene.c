/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <stddef.h>

static const double BEND_RAD = 0.12, VEHICLE_WIDTH_M = 1.9;

static void add_point(const net_lane *l, int32_t lane, double at, dt_scene_roads *out)
{
    double x, y, heading;
    if (out->n < out->cap) {
        net_point(l, at, &x, &y, &heading);
        out->point[out->n] =
            (dt_scene_point){.x = (float)x, .y = (float)y, .width = (float)NET_LANE_M, .lane = (uint32_t)lane};
    }
    out->n++;
}

void scene_roads(const sim *s, dt_scene_roads *out)
{
    out->n = 0;
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        const net_lane *l = &s->net.lane[lane];
        const int n = (int)ceil(fabs(l->bend) * l->length / BEND_RAD);
        for (int32_t k = 0; k < l->n_pieces; k++) {
            add_point(l, lane, l->piece[k].s, out);
        }
        for (int k = 0; l->n_pieces == 0 && k < (n > 1 ? n : 1); k++) {
            add_point(l, lane, l->length * k / (n > 1 ? n : 1), out);
        }
        add_point(l, lane, l->length, out);
    }
}

static float collision_risk(const sim *s, int32_t lane, int32_t p)
{
    double ahead = 0;
    const double gap = sim_gap_ahead(s, lane, p, &ahead);
    return gap >= FREE_GAP ? 0 : dt_scene_risk(gap, s->v[p] - ahead);
}

typedef struct seen { /* by agents, last */
    const dt_vehicle *frame;
    uint32_t n;
} seen;

static uint32_t find_node(const seen *g, int64_t id)
{
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->frame[i].id == id) {
            return i + 1;
        }
    }
    return 0;
}

static void draw_lane(const sim *s, int32_t lane, int32_t first_place, const seen *g, dt_scene *out)
{
    const lane_state *l = &s->lane[lane];
    for (int32_t p = slot_front(l); p < slot_front(l) + l->n; p++, out->n_vehicles++) {
        const vehicle *w = &s->vehicle[s->who[p]];
        double x, y, heading;
        if (out->n_vehicles >= out->cap_vehicles) {
            continue;
        }
        net_point(&s->net.lane[lane], s->x[p], &x, &y, &heading);
        out->vehicle[out->n_vehicles] = (dt_scene_vehicle){.x = (float)x,
                                                           .y = (float)y,
                                                           .heading = (float)heading,
                                                           .length = (float)s->length[p],
                                                           .width = (float)VEHICLE_WIDTH_M,
                                                           .speed = (float)s->v[p],
                                                           .risk = collision_risk(s, lane, p),
                                                           .id = (int32_t)w->key,
                                                           .agent = w->place == NET_NONE ? -1 : first_place + w->place,
                                                           .node = find_node(g, (int64_t)w->key)};
    }
}

/* What a lane that leads into a junction with lights is shown: the best of what its links are. */
static uint32_t lane_signal_state(const net *n, const signal_state *k, const net_lane *l)
{
    uint32_t state = DT_SCENE_RED;
    for (int32_t i = l->link; i < l->link + l->n_links; i++) {
        const int32_t bit = n->link[i].bit; /* or NET_NONE */
        const int is_green = net_has(&k->show.green, bit);
        if (is_green && !net_has(&k->show.minor, bit)) {
            return DT_SCENE_GREEN;
        }
        if (is_green) {
            state = DT_SCENE_YIELD;
        } else if (net_has(&k->show.yellow, bit) && state == DT_SCENE_RED) {
            state = DT_SCENE_YELLOW;
        }
    }
    return state;
}

static void draw_signal(const sim *s, int32_t k, int is_agent, dt_scene *out)
{
    const net_junction *j = &s->net.junction[k];
    for (int32_t a = 0; a < j->n_arms; a++) {
        const net_edge *e = &s->net.edge[j->arm[a]];
        for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++, out->n_signals++) {
            const net_lane *l = &s->net.lane[lane];
            double x, y, heading;
            if (out->n_signals >= out->cap_signals) {
                continue;
            }
            net_point(l, l->length, &x, &y, &heading);
            out->signal[out->n_signals] = (dt_scene_signal){.x = (float)x,
                                                            .y = (float)y,
                                                            .heading = (float)heading,
                                                            .width = (float)NET_LANE_M,
                                                            .state = lane_signal_state(&s->net, &s->signal[k], l),
                                                            .agent = is_agent ? k : -1};
        }
    }
}

void scene_now(const sim *s, int32_t first_place, const dt_vehicle *frame, uint32_t n, dt_scene *out)
{
    const seen g = {frame, n};
    const double due = (double)s->sum.inserted + (double)sim_waiting(s);
    out->time_s = s->elapsed_s;
    if (due > 0) {
        out->delay_s = sim_delay(s) / due;
    }
    out->n_vehicles = out->n_signals = 0;
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        draw_lane(s, lane, first_place, &g, out);
    }
    for (int32_t k = 0; k < s->net.n_signals; k++) {
        draw_signal(s, k, first_place > 0, out);
    }
}
