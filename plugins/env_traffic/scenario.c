/* SPDX-License-Identifier: Apache-2.0
 *
 * The scenarios: networks as data, built by code, and who is on the road at the start.
 *
 *   ring          one closed lane of `length_m` with `vehicles` (Sugiyama et al. 2008: 22 on 230 m)
 */
#include "sim.h"

#define TURN_FULL 6.283185307179586

static dt_status build_ring(sim *s)
{
    const traffic_config *c = s->c;
    if (c->lanes != 1) {
        return DT_FAIL_H(s->h, DT_ECONFIG, "env_traffic: a ring has 1 lane, not %lld", (long long)c->lanes);
    }
    if ((double)c->vehicles * (c->vehicle_m + GAP_LEAST) + 2 * c->jitter_m > c->length_m) {
        return DT_FAIL_H(s->h, DT_ECONFIG,
                         "env_traffic: %lld vehicles of %g m do not fit on a ring of %g m: fewer vehicles or a larger "
                         "length_m",
                         (long long)c->vehicles, c->vehicle_m, c->length_m);
    }
    DT_TRY_H(net_init(&s->net, s->h, 1, 1, 1, 0));
    const int32_t e =
        net_add_edge(&s->net, 1, c->length_m, c->limit_mps, 0, -c->length_m / TURN_FULL, 0, TURN_FULL / c->length_m);
    net_add_way(&s->net, e, e, 1);
    net_join(&s->net, 0, 0);
    return DT_OK;
}

dt_status scenario_build(sim *s)
{
    return build_ring(s);
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
        place_insert(s, 0, (i + 0.5) * apart + shift * (draw(s, DRAW_JITTER, (uint32_t)i) - 0.5), 0, 0);
    }
}
