/* SPDX-License-Identifier: Apache-2.0 */
#include "observe.h"
#include "change.h"
#include "junction.h"
#include "signal.h"

#define FAR_M     200.0  /* clamp of distances */
#define NOTHING_M 1000.0 /* gap where nothing is */
#define TIME_TOL  1e-9   /* of a whole number of actions */

/* ---- vehicles ---------------------------------------------------------------------------------------------------- */

/* To the line or the end of the lane; NAN where the lane simply continues. */
static double way_to_line(const sim *s, int32_t lane, double x)
{
    const net_lane *l = &s->net.lane[lane];
    const int has_line = l->edge != NET_NONE && s->net.edge[l->edge].junction != NET_NONE;
    const int ends = l->edge != NET_NONE && s->net.edge[l->edge].n_out > 0 && l->n_links == 0;
    return has_line || ends ? most(0, l->length - x) : NAN;
}

static uint32_t list_lane(const sim *s, int32_t lane, dt_vehicle *frame, uint32_t n, const graph_view *out)
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
            out->agent_node[w->place] = (int32_t)n;
        }
        if (out->node_of != NULL) {
            out->node_of[s->who[p]] = (int32_t)n;
        }
    }
    return n;
}

static void write_centre(const dt_vehicle *frame, uint32_t n, float *centre)
{
    double x = 0, y = 0;
    for (uint32_t k = 0; k < n; k++) {
        x += frame[k].x / n;
        y += frame[k].y / n;
    }
    for (uint32_t k = 0; k < n; k++) {
        centre[2 * (size_t)k] = (float)x;
        centre[2 * (size_t)k + 1] = (float)y;
    }
}

dt_status observe_graph(const sim *s, const dt_features_api *f, dt_vehicle *frame, const graph_view *out)
{
    uint32_t n = 0;
    for (int32_t k = 0; k < s->n_places; k++) {
        out->agent_node[k] = NET_NONE;
    }
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        n = list_lane(s, lane, frame, n, out);
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
    write_centre(frame, n, out->centre);
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
        const double gap = sim_gap_ahead(s, lane, p, &ahead), back = sim_gap_behind(s, lane, p, &behind);
        const double way = way_to_line(s, lane, s->x[p]);
        const double seen[EGO_FEATURES] = {s->v[p],
                                           least(gap, FAR_M),
                                           gap < FREE_GAP ? ahead : s->v[p],
                                           least(back, FAR_M),
                                           back < FREE_GAP ? behind : s->v[p],
                                           s->want[p],
                                           isnan(way) ? FAR_M : least(way, FAR_M),
                                           s->a[p],
                                           move_model_acceleration(s, lane, p)};
        for (int d = 0; d < EGO_FEATURES; d++) {
            e[d] = (float)seen[d];
        }
    }
}

typedef struct pair { /* a follower and what it must not run into */
    double gap, speed, brake, follower, follower_brake;
} pair;

static void write_pair(const sim *s, const pair *x, float *out)
{
    const double euler = s->driver.model == MODEL_KRAUSS ? s->c->dt_s : 0;
    const double seen[PAIR_FEATURES] = {least(x->gap, NOTHING_M), x->speed,       x->brake, x->follower,
                                        x->follower_brake,        s->c->action_s, euler};
    for (int d = 0; d < PAIR_FEATURES; d++) {
        out[d] = (float)seen[d];
    }
}

/* To the line or the end of the lane, where the vehicle must stop; FREE_GAP where it need not. */
static double distance_to_stop(const sim *s, int32_t lane, int32_t p)
{
    const double rest = s->net.lane[lane].length - s->x[p];
    const int must = s->vehicle[s->who[p]].next == NET_NONE || !junction_lets_pass(s, lane, p);
    return must && rest < SIGHT_M ? rest : FREE_GAP;
}

void observe_ahead(const sim *s, float *ahead)
{
    const double own = -s->c->low_mps2;
    for (int32_t k = 0; k < s->n_places; k++) {
        const place *w = &s->place[k];
        if (w->state == PLACE_FREE) {
            continue;
        }
        pair row[AHEAD_ROWS];
        for (int i = 0; i < AHEAD_ROWS; i++) {
            row[i] = (pair){NOTHING_M, 0, BRAKE_MAX, w->speed, own};
        }
        if (w->vehicle != NET_NONE) {
            const int32_t lane = s->vehicle[w->vehicle].lane, p = sim_slot_of(s, w->vehicle);
            row[0].gap = sim_gap_ahead(s, lane, p, &row[0].speed);
            row[1].gap = distance_to_stop(s, lane, p);
            row[2].gap = p == slot_front(&s->lane[lane]) ? junction_stop_distance(s, lane, p) : NOTHING_M;
            row[0].follower = row[1].follower = row[2].follower = s->v[p];
        }
        for (int i = 0; i < AHEAD_ROWS; i++) {
            write_pair(s, &row[i], ahead + ((size_t)k * AHEAD_ROWS + (size_t)i) * PAIR_FEATURES);
        }
    }
}

void observe_neighbours(const sim *s, float *beside)
{
    const double own = -s->c->low_mps2;
    for (int32_t k = 0; k < s->n_places; k++) {
        const place *w = &s->place[k];
        if (w->state == PLACE_FREE) {
            continue;
        }
        const double v = w->vehicle == NET_NONE ? w->speed : s->v[sim_slot_of(s, w->vehicle)];
        for (int side = 0; side < 2; side++) {
            change_view c = {0}; /* where it cannot be done there is no gap */
            const int is_possible = w->vehicle != NET_NONE && change_evaluate(s, w->vehicle, side == 0 ? 1 : -1, &c);
            const pair before = {c.ahead, c.ahead_v, BRAKE_MAX, v, own};
            const pair after = {c.behind, v, own, is_possible ? c.behind_v : 0, BRAKE_MAX};
            float *out = beside + ((size_t)k * BESIDE_ROWS + (size_t)(2 * side)) * PAIR_FEATURES;
            write_pair(s, &before, out);
            write_pair(s, &after, out + PAIR_FEATURES);
        }
    }
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* What is detected on a lane that leads to a signal; one without a link has vehicles that change lanes, of which none
 * counts. */
static signal_lane detected(const detectors *d, int32_t lane)
{
    return d->entry[lane] != NET_NONE ? d->lane[d->entry[lane]] : (signal_lane){0};
}

enum { LIGHT_PHASES = 4 };
enum { LANE_VEHICLES, LANE_STANDING, LANE_FIRST, LANE_STOOD, LANE_FEATURES };

/* Q of observe.h */
static int32_t light_phases(const net *n)
{
    return n->most_phases < LIGHT_PHASES ? LIGHT_PHASES : n->most_phases;
}

static int32_t light_width(const net *n)
{
    return 2 * light_phases(n) + 3;
}

int32_t observe_signal_width(const net *n)
{
    return light_width(n) + LANE_FEATURES * n->most_slots;
}

/* Where a light is, into out [light_width]. */
static void observe_light(const sim *s, int32_t junction, float *out)
{
    const int32_t Q = light_phases(&s->net);
    const signal_state *g = &s->signal[junction];
    out[g->phase] = 1;
    out[Q] = g->stage != STAGE_GREEN;
    out[Q + 1] = (float)g->stage_s;
    for (int32_t p = 0; p < s->net.junction[junction].n_phases; p++) {
        out[Q + 2 + p] = (float)g->served_s[p];
    }
    out[2 * Q + 2] = (float)(s->c->yellow_s + s->c->all_red_s);
}

void observe_service(const sim *s, float *service)
{
    const traffic_config *c = s->c;
    const double change_s = c->yellow_s + c->all_red_s;
    const double least_s = c->action_s * ceil((change_s + c->min_green_s) / c->action_s - TIME_TOL);
    for (int32_t k = 0; k < s->net.n_signals; k++) {
        const net_junction *j = &s->net.junction[k];
        float *row = service + (size_t)k * (size_t)s->net.most_phases * SERVICE_FEATURES;
        for (int32_t p = 0; p < s->net.most_phases; p++, row += SERVICE_FEATURES) {
            row[2] = (float)change_s;
            row[3] = (float)least_s;
            for (int32_t bit = 0; bit < j->n_links && p < j->n_phases; bit++) {
                const double red_s = net_serves(j, p, bit) ? s->red_s[j->link + bit] : 0;
                row[4] = (float)most((double)row[4], red_s);
                if (net_has(&j->lonely, bit) && net_serves(j, p, bit)) {
                    row[0] = 1;
                    row[1] = (float)most((double)row[1], red_s);
                }
            }
        }
    }
}

void observe_right_of_way(const sim *s, float *greens, float *foes)
{
    static const float shown[] = {[NET_RED] = 0, [NET_STOP] = 0.25F, [NET_YIELD] = 0.5F, [NET_GO] = 1};
    const size_t L = (size_t)s->net.most_numbers, P = (size_t)s->net.most_phases;
    for (int32_t k = 0; k < s->net.n_signals; k++, greens += P * L, foes += L * L) {
        const net_junction *j = &s->net.junction[k];
        for (int32_t a = 0; a < j->n_links; a++) {
            if (j->number[a] == NET_NO_NUMBER) {
                continue;
            }
            for (int32_t p = 0; p < j->n_phases; p++) {
                greens[(size_t)p * L + j->number[a]] = shown[net_letter_of(j, p, a)];
            }
            for (int32_t b = 0; b < j->n_links; b++) {
                if (net_has(&j->foes[a], b) && j->number[b] != NET_NO_NUMBER) {
                    const float meet = net_merge(&s->net, j, a, b) ? FOE_MERGES : FOE_CROSSES;
                    foes[j->number[a] * L + j->number[b]] = net_has(&j->responds[a], b) ? -meet : meet;
                }
            }
        }
    }
}

static uint32_t describe_row(const net *n, dt_column *out)
{
    static const formula_name light[] = {
        {"phase", "0 or 1", "the phase shown, or shown before the transition now, one-hot", 0, 1},
        {"in_transition", "0 or 1", "1 during yellow and all red", 0, 1},
        {"stage_s", "s", "time since this green, yellow or all red began", 0, INFINITY},
        {"since_green_s", "s", "time since each phase was green", 0, INFINITY},
        {"change_s", "s", "yellow and all red together", 0, INFINITY}};
    static const formula_name lane[LANE_FEATURES] = {
        [LANE_VEHICLES] = {"lane.vehicles", "count", "vehicles within detector_m of the stop line", 0, INFINITY},
        [LANE_STANDING] = {"lane.standing", "count", "standing vehicles among these", 0, INFINITY},
        [LANE_FIRST] = {"lane.first_m", "m", "distance of the first to the line; detector_m without vehicles", 0,
                        INFINITY},
        [LANE_STOOD] = {"lane.stood_s", "s", "time that the first vehicle has been standing", 0, INFINITY}};
    const uint32_t Q = (uint32_t)light_phases(n), first[] = {0, Q, Q + 1, Q + 2, 2 * Q + 2}, width[] = {Q, 1, 1, Q, 1};
    uint32_t k = 0;
    for (; k < sizeof(light) / sizeof(light[0]); k++) {
        out[k] = signal_column("signal", &light[k], first[k], width[k], 1);
    }
    for (uint32_t i = 0; i < LANE_FEATURES && n->most_slots > 0; i++) {
        out[k++] =
            signal_column("signal", &lane[i], (uint32_t)light_width(n) + i, (uint32_t)n->most_slots, LANE_FEATURES);
    }
    return k;
}

uint32_t observe_describe_signals(const net *n, const formulas *row, dt_column *out)
{
    const uint32_t k =
        row->n > 0 ? formulas_describe(row, "signal", (uint32_t)n->most_phases, out) : describe_row(n, out);
    return k + signal_describe_phases(out + k);
}

static void observe_row(const sim *s, const detectors *d, int32_t junction, float *out)
{
    const net_junction *j = &s->net.junction[junction];
    observe_light(s, junction, out);
    for (int a = 0; a < j->n_arms; a++) {
        const net_edge *e = &s->net.edge[j->arm[a]];
        for (int32_t i = 0; i < e->n_lanes; i++) {
            const signal_lane l = detected(d, e->lane + i);
            float *row = out + light_width(&s->net) + LANE_FEATURES * (j->slot[a] + i);
            row[LANE_VEHICLES] = (float)l.n;
            row[LANE_STANDING] = (float)l.standing;
            row[LANE_FIRST] = (float)(l.n > 0 ? l.first_m : s->c->detector_m);
            row[LANE_STOOD] = (float)l.stood_s;
        }
    }
}

/* The signals at the other ends of the arms of signal k, by arm; of more than N_NEIGHBOURS arms, those with one. */
static void observe_adjacent(const net_junction *j, int32_t k, int32_t *out)
{
    const bool are_many = j->n_arms > N_NEIGHBOURS;
    int32_t n = 0;
    for (int32_t a = 0; a < j->n_arms && n < N_NEIGHBOURS; a++) {
        if (j->neighbour[a] != NET_NONE || !are_many) {
            out[n++] = j->neighbour[a] != NET_NONE ? j->neighbour[a] : k;
        }
    }
    for (; n < N_NEIGHBOURS; n++) {
        out[n] = k;
    }
}

void observe_signals(const sim *s, const detectors *d, float *signal, float *phases, int32_t *neighbour)
{
    const net *n = &s->net;
    for (int32_t k = 0; k < n->n_signals; k++) {
        const net_junction *j = &n->junction[k];
        observe_adjacent(j, k, neighbour + (ptrdiff_t)k * N_NEIGHBOURS);
        if (signal != NULL) {
            observe_row(s, d, k, signal + (size_t)k * (size_t)observe_signal_width(n));
        }
        detect_write_phases(d, s, k, phases + (size_t)k * (size_t)n->most_phases * N_SIGNAL_COLUMNS);
    }
}
