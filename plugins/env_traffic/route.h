/* SPDX-License-Identifier: Apache-2.0
 *
 * The quickest way through a network at its speed limits, from edge to edge (Dijkstra 1959). Threads: one at a time.
 */
#ifndef DTRAIN_ENV_TRAFFIC_ROUTE_H
#define DTRAIN_ENV_TRAFFIC_ROUTE_H

#include "net.h"

typedef struct route_search {
    double *cost;           /* [n_edges] s from the end of an edge to the end of the last one, INFINITY: no way */
    int32_t *after;         /* [n_edges] the next one on the way */
    int32_t *heap, *place;  /* [n_edges] edges by cost; where an edge is in it, NET_NONE */
    int32_t *into, *first;  /* links that lead into an edge: into[first[e] .. first[e + 1]) */
    int32_t n_heap, target; /* whose costs these are, or NET_NONE */
    int64_t n_steps;        /* edges and links that all searches looked at */
} route_search;

/* Room for searches in a network that is complete. Errors: DT_ENOMEM. */
dt_status route_init(route_search *r, const net *n, const dt_host *h);
void route_fini(route_search *r, const dt_host *h);
/* The same for ways that end on the nearest of several edges. key: of them, below NET_NONE, another one for others. */
void route_find_any(route_search *r, const net *n, const int32_t *targets, int32_t n_targets, int32_t key);
double route_travel(const net_lane *l); /* s, at its limit */
/* cost and after of all edges for ways that end on `target`. Costs nothing while the target stays the same. */
void route_find(route_search *r, const net *n, int32_t target);

#endif
