/* SPDX-License-Identifier: Apache-2.0
 *
 * A road network of SUMO: read, built, and driven on for a while. The input is the network, then routes for it where a
 * line "----" follows. Every number that leads somewhere leads inside its array.
 */
#include <config.h>

#include "fuzz/fuzz.h"
#include "fuzz/traffic.h"

#include "base/err.h"

#include <string.h>

enum { STEPS = 24 };

#define IN(k, n) ((k) >= 0 && (k) < (n))

static void check_net(const net *n)
{
    for (int32_t k = 0; k < n->n_lanes; k++) {
        const net_lane *l = &n->lane[k];
        fuzz_hold(l->length > 0 && l->limit > 0);
        fuzz_hold(l->n_links == 0 || (IN(l->link, n->n_links) && l->n_links <= n->n_links - l->link));
        fuzz_hold(l->edge == NET_NONE || IN(l->edge, n->n_edges));
        fuzz_hold(l->n_pieces >= 0 && (l->n_pieces == 0 || (l->piece >= n->piece && l->n_pieces <= n->n_pieces)));
    }
    for (int32_t k = 0; k < n->n_links; k++) {
        const net_link *l = &n->link[k];
        fuzz_hold(IN(l->from, n->n_lanes) && IN(l->to, n->n_lanes) && IN(l->edge, n->n_edges));
        fuzz_hold(l->via == NET_NONE || IN(l->via, n->n_lanes));
        fuzz_hold(l->junction == NET_NONE || (IN(l->junction, n->n_junctions) && IN(l->bit, NET_MAX_LINKS)));
    }
    for (int32_t k = 0; k < n->n_junctions; k++) {
        const net_junction *j = &n->junction[k];
        fuzz_hold(j->n_links >= 0 && j->n_links <= NET_MAX_LINKS && j->n_phases <= NET_MAX_PHASES);
        fuzz_hold(j->n_links == 0 || (IN(j->link, n->n_links) && j->n_links <= n->n_links - j->link));
        for (int32_t i = 0; i < j->n_steps; i++) {
            fuzz_hold(j->step[i].duration_s >= 0 && j->step[i].phase < NET_MAX_PHASES);
        }
    }
}

DT_FUZZ(net)
{
    sim s = {0};
    size_t at = 0;
    fuzz_begin();
    const char *net_text = fuzz_text(bytes, n, &at), *routes_text = fuzz_text(bytes, n, &at);
    const xml_text roads = traffic_text("input.net.xml", net_text),
                   routes = traffic_text("input.rou.xml", routes_text != NULL ? routes_text : traffic_routes);
    if (traffic_create(&s, &roads, &routes) == DT_OK) {
        check_net(&s.net);
        sim_reset(&s, 1);
        for (int k = 0; k < STEPS; k++) {
            sim_step(&s);
        }
        fuzz_accepted();
    } else {
        fuzz_hold(*dt_error_text() != '\0');
    }
    sim_destroy(&s);
    fuzz_end();
    return 0;
}
