/* SPDX-License-Identifier: Apache-2.0
 *
 * Demand of SUMO: types, routes, trips, vehicles and flows on a network that stays the same. What was accepted leads
 * over edges that there are, at times that pass; and a vehicle drives.
 */
#include <config.h>

#include "fuzz/fuzz.h"
#include "fuzz/traffic.h"

#include "base/err.h"

#include <math.h>
#include <string.h>

enum { STEPS = 16 };

static sim kept;
static netfile kept_file;

/* The network, built once. */
static void prepare(void)
{
    if (kept.net.n_lanes == 0) {
        const xml_text roads = traffic_text("net.xml", traffic_net), routes = traffic_text("rou.xml", traffic_routes);
        traffic_keep_netfile(&kept_file);
        fuzz_hold(traffic_create(&kept, &roads, &routes) == DT_OK);
    }
}

static void check_plan(const trip_plan *p)
{
    fuzz_hold(p->flows.n > 0 && isfinite(p->n_steps) && p->n_steps <= PLAN_MOST);
    for (int32_t k = 0; k < p->flows.n; k++) {
        const plan_flow *f = PLAN_FLOW(p, k);
        fuzz_hold(f->trip >= 0 && f->n_trips > 0 && f->trip <= p->trips.n - f->n_trips && isfinite(f->begin_s) &&
                  isfinite(f->end_s));
        fuzz_hold(f->kind == PLAN_ONCE || f->kind == PLAN_AT_ONCE ||
                  (f->period_s >= PLAN_PERIOD_LEAST && f->period_s <= PLAN_PERIOD_MOST));
    }
    for (int32_t k = 0; k < p->trips.n; k++) {
        const plan_trip *t = PLAN_TRIP(p, k);
        fuzz_hold(t->type >= NET_NONE && t->type < p->types.n && t->n_edges > 0);
        for (int32_t i = 0; i < t->n_edges; i++) {
            fuzz_hold(PLAN_EDGE(p, t->edge + i) >= 0 && PLAN_EDGE(p, t->edge + i) < kept.net.n_edges);
        }
    }
    fuzz_touch(plan_common_type(p), sizeof(plan_type));
}

static void drive(const char *text)
{
    sim s = {0};
    const xml_text roads = traffic_text("net.xml", traffic_net), routes = traffic_text("input.rou.xml", text);
    fuzz_hold(traffic_create(&s, &roads, &routes) == DT_OK);
    sim_reset(&s, 1);
    for (int k = 0; k < STEPS; k++) {
        sim_step(&s);
    }
    sim_destroy(&s);
}

DT_FUZZ(routes)
{
    trip_plan p = {0};
    size_t at = 0;
    prepare();
    fuzz_begin();
    const char *text = fuzz_text(bytes, n, &at);
    const xml_text routes = traffic_text("input.rou.xml", text);
    if (plan_read(&p, &traffic_host, &routes, &kept_file, &kept.net, &kept.search, (file_time){0}, (file_time){600}) ==
        DT_OK) {
        check_plan(&p);
        if (fuzz_is_chosen(bytes, n)) {
            drive(text);
            fuzz_accepted();
        }
    } else {
        fuzz_hold(*dt_error_text() != '\0');
    }
    plan_fini(&p, &traffic_host);
    fuzz_end();
    return 0;
}
