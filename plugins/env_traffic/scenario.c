/* SPDX-License-Identifier: Apache-2.0
 *
 * The scenarios: networks as data, built by code, and the vehicles on the road at the start.
 *
 *   ring          one closed lane of `length_m` with `vehicles` (Sugiyama et al. 2008: 22 on 230 m)
 *   merge         a road of `lanes`, an on-ramp of one lane, a stretch of ramp_m where they run side by side, and on;
 *                 every road is `length_m` long. Demand flow_vph and ramp_vph
 *   bottleneck    a road of `lanes` that continues with one lane less: the leftmost ends
 *   intersection  one junction of scenario_grid.c
 *   grid          rows by cols of them
 *   net           from SUMO's files: scenario_net.c
 */
#include "sim.h"

#define TURN_FULL       6.283185307179586
#define ACCEL_ROADS     1.0  /* m/s^2 */
#define ACCEL_JUNCTIONS 2.6  /* SUMO's passenger car */
#define SIGNAL_ACTION_S 10.0 /* between two choices of a phase */
#define RAMP_RAD        0.15 /* between the on-ramp and the road */

traffic_config scenario_resolve(const traffic_config *given)
{
    static const struct {
        double length_m, flow_vph;
        int64_t lanes;
    } own[] = {[SCENARIO_RING] = {230, 0, 1},          [SCENARIO_MERGE] = {400, 2400, 2},
               [SCENARIO_BOTTLENECK] = {400, 3600, 3}, [SCENARIO_INTERSECTION] = {200, 400, 2},
               [SCENARIO_GRID] = {200, 300, 2},        [SCENARIO_NET] = {200, 0, 0}};
    traffic_config c = *given;
    c.begin_s = c.scenario == SCENARIO_NET ? c.begin_s : 0; /* others have no clock but that of the episode */
    c.length_m = c.length_m > 0 ? c.length_m : own[c.scenario].length_m;
    c.flow_vph = c.flow_vph > 0 ? c.flow_vph : own[c.scenario].flow_vph;
    c.accel_mps2 = c.accel_mps2 > 0 ? c.accel_mps2 : c.scenario < SCENARIO_INTERSECTION ? ACCEL_ROADS : ACCEL_JUNCTIONS;
    c.lanes = c.lanes > 0 ? c.lanes : own[c.scenario].lanes;
    c.action_s = c.action_s > 0 ? c.action_s : c.control == CONTROL_SIGNALS ? SIGNAL_ACTION_S : c.dt_s;
    return c;
}

static dt_status build_ring(sim *s)
{
    const traffic_config *c = s->c;
    if (c->lanes != 1) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "env_traffic: a ring has 1 lane, not %lld", (long long)c->lanes);
    }
    if ((double)c->vehicles * (c->vehicle_m + GAP_LEAST) + 2 * c->jitter_m > c->length_m) {
        return DT_FAIL_H(
            s->h, DT_ECONFIG,
            "env_traffic: %lld vehicles of %g m do not fit on a ring of %g m: use fewer vehicles or a larger length_m",
            (long long)c->vehicles, c->vehicle_m, c->length_m);
    }
    DT_TRY_H(net_init(&s->net, s->h, (net_size){.lanes = 1, .edges = 1, .links = 1}));
    const int32_t e =
        net_add_edge(&s->net, 1, c->length_m, c->limit_mps, 0, -c->length_m / TURN_FULL, 0, TURN_FULL / c->length_m);
    net_add_way(&s->net, e, e, 1);
    net_join_lanes(&s->net, 0, 0);
    return DT_OK;
}

static void add_source(sim *s, int32_t edge, double flow_vph)
{
    s->source[s->n_sources++] = (source){.edge = edge, .rate = flow_vph / 3600};
}

static dt_status make_sources(sim *s, int32_t n)
{
    s->source = s->h->alloc(s->h, (uint64_t)n * sizeof(*s->source));
    return s->source != NULL ? DT_OK : DT_FAIL_H(s->h, DT_ENOMEM, "no memory for %d sources", (int)n);
}

static dt_status build_merge(sim *s)
{
    const traffic_config *c = s->c;
    const int32_t n = (int32_t)c->lanes;
    if (n + 1 > SCENARIO_MAX_LANES) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "env_traffic: a merge has at most %d lanes before the ramp, not %d",
                         SCENARIO_MAX_LANES - 1, (int)n);
    }
    DT_TRY_H(net_init(&s->net, s->h, (net_size){.lanes = 3 * n + 2, .edges = 4, .links = 3 * n + 2}));
    net *w = &s->net;
    const double d = c->length_m, r = c->ramp_m, v = c->limit_mps;
    const int32_t before = net_add_edge(w, n, d, v, -d, 0, 0, 0);
    const int32_t ramp = net_add_edge(w, 1, d, v, -d * cos(RAMP_RAD), -NET_LANE_M - d * sin(RAMP_RAD), RAMP_RAD, 0);
    const int32_t both = net_add_edge(w, n + 1, r, v, 0, -NET_LANE_M, 0, 0);
    const int32_t after = net_add_edge(w, n, d, v, r, 0, 0, 0);
    net_add_way(w, before, both, 1);
    net_add_way(w, ramp, both, 1);
    net_add_way(w, both, after, 1);
    for (int32_t k = 0; k < n; k++) {
        net_join_lanes(w, w->edge[before].lane + k, w->edge[both].lane + k + 1);
        net_join_lanes(w, w->edge[both].lane + k + 1, w->edge[after].lane + k);
    }
    net_join_lanes(w, w->edge[ramp].lane, w->edge[both].lane);
    DT_TRY_H(make_sources(s, 2));
    add_source(s, before, c->flow_vph);
    add_source(s, ramp, c->ramp_vph);
    return DT_OK;
}

static dt_status build_bottleneck(sim *s)
{
    const traffic_config *c = s->c;
    const int32_t n = (int32_t)c->lanes;
    if (n < 2) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "env_traffic: a bottleneck has at least 2 lanes, not %d", (int)n);
    }
    DT_TRY_H(net_init(&s->net, s->h, (net_size){.lanes = 2 * n - 1, .edges = 2, .links = n - 1}));
    net *w = &s->net;
    const int32_t wide = net_add_edge(w, n, c->length_m, c->limit_mps, -c->length_m, 0, 0, 0);
    const int32_t narrow = net_add_edge(w, n - 1, c->length_m, c->limit_mps, 0, 0, 0, 0);
    net_add_way(w, wide, narrow, 1);
    for (int32_t k = 0; k + 1 < n; k++) {
        net_join_lanes(w, w->edge[wide].lane + k, w->edge[narrow].lane + k);
    }
    DT_TRY_H(make_sources(s, 1));
    add_source(s, wide, c->flow_vph);
    return DT_OK;
}

dt_status scenario_build(sim *s)
{
    switch (s->c->scenario) {
    case SCENARIO_RING:
        return build_ring(s);
    case SCENARIO_MERGE:
        return build_merge(s);
    case SCENARIO_BOTTLENECK:
        return build_bottleneck(s);
    case SCENARIO_INTERSECTION:
        return scenario_build_grid(s, 1, 1);
    case SCENARIO_NET:
        return scenario_build_net(s);
    default:
        return scenario_build_grid(s, (int32_t)s->c->rows, (int32_t)s->c->cols);
    }
}

void scenario_populate(sim *s)
{
    const traffic_config *c = s->c;
    if (c->scenario != SCENARIO_RING) {
        return;
    }
    const int32_t n = (int32_t)c->vehicles;
    const double apart = c->length_m / n;
    const double shift = least(c->jitter_m, 0.5 * (apart - c->vehicle_m));
    for (int32_t i = n - 1; i >= 0; i--) { /* evenly, and each moved a little */
        place_insert(s, 0, (i + 0.5) * apart + shift * (draw(s, DRAW_JITTER, (uint32_t)i) - 0.5), 0, 0, NET_NONE);
    }
}
