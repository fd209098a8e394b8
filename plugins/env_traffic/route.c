/* SPDX-License-Identifier: Apache-2.0
 *
 * See route.h. The search runs backwards from the last edge, so that one search serves all that go there.
 */
#include "route.h"

#include <math.h>
#include <string.h>

dt_status route_init(route_search *r, const net *n, const dt_host *h)
{
    const uint64_t edges = (uint64_t)n->n_edges + 1;
    r->cost = h->alloc(h, edges * sizeof(*r->cost));
    r->after = h->alloc(h, edges * sizeof(*r->after));
    r->heap = h->alloc(h, edges * sizeof(*r->heap));
    r->place = h->alloc(h, edges * sizeof(*r->place));
    r->first = h->alloc(h, edges * sizeof(*r->first));
    r->into = h->alloc(h, ((uint64_t)n->n_links + 1) * sizeof(*r->into));
    if (r->cost == NULL || r->after == NULL || r->heap == NULL || r->place == NULL || r->first == NULL ||
        r->into == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory to search routes over %d edges", (int)n->n_edges);
    }
    for (int32_t k = 0; k < n->n_links; k++) {
        r->first[n->link[k].edge + 1]++;
    }
    for (int32_t e = 0; e < n->n_edges; e++) {
        r->first[e + 1] += r->first[e];
        r->place[e] = r->first[e]; /* for a moment: where the next link goes */
    }
    for (int32_t k = 0; k < n->n_links; k++) {
        r->into[r->place[n->link[k].edge]++] = k;
    }
    r->target = NET_NONE;
    return DT_OK;
}

void route_fini(route_search *r, const dt_host *h)
{
    void *const owned[] = {r->cost, r->after, r->heap, r->place, r->into, r->first};
    for (size_t k = 0; k < sizeof(owned) / sizeof(owned[0]); k++) {
        h->release(h, owned[k]);
    }
    memset(r, 0, sizeof(*r));
}

static int is_before(const route_search *r, int32_t a, int32_t b)
{
    return r->cost[a] < r->cost[b] || (r->cost[a] == r->cost[b] && a < b);
}

static void put_in_heap(route_search *r, int32_t at, int32_t edge)
{
    r->heap[at] = edge;
    r->place[edge] = at;
}

static void rise_in_heap(route_search *r, int32_t at)
{
    const int32_t edge = r->heap[at];
    for (; at > 0 && is_before(r, edge, r->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        put_in_heap(r, at, r->heap[(at - 1) / 2]);
    }
    put_in_heap(r, at, edge);
}

static int32_t pop_nearest(route_search *r)
{
    const int32_t least = r->heap[0], last = r->heap[--r->n_heap];
    r->place[least] = NET_NONE;
    int32_t at = 0;
    for (int32_t child; (child = 2 * at + 1) < r->n_heap; at = child) {
        child += child + 1 < r->n_heap && is_before(r, r->heap[child + 1], r->heap[child]);
        if (!is_before(r, r->heap[child], last)) {
            break;
        }
        put_in_heap(r, at, r->heap[child]);
    }
    if (r->n_heap > 0) {
        put_in_heap(r, at, last);
    }
    return least;
}

double route_travel(const net_lane *l)
{
    return l->length / l->limit;
}

void route_find(route_search *r, const net *n, int32_t target)
{
    route_find_any(r, n, &target, 1, target);
}

void route_find_any(route_search *r, const net *n, const int32_t *targets, int32_t n_targets, int32_t key)
{
    if (r->target == key) {
        return;
    }
    for (int32_t e = 0; e < n->n_edges; e++) {
        r->cost[e] = INFINITY;
        r->after[e] = r->place[e] = NET_NONE;
    }
    r->target = key;
    r->n_steps += n->n_edges;
    r->n_heap = 0;
    for (int32_t k = 0; k < n_targets; k++) {
        if (r->place[targets[k]] == NET_NONE) {
            r->cost[targets[k]] = 0;
            put_in_heap(r, r->n_heap++, targets[k]);
            rise_in_heap(r, r->n_heap - 1);
        }
    }
    while (r->n_heap > 0) {
        const int32_t e = pop_nearest(r);
        r->n_steps += r->first[e + 1] - r->first[e];
        for (int32_t k = r->first[e]; k < r->first[e + 1]; k++) {
            const net_link *l = &n->link[r->into[k]];
            const int32_t from = n->lane[l->from].edge;
            const double way = l->via == NET_NONE ? 0 : route_travel(&n->lane[l->via]);
            const double cost = r->cost[e] + route_travel(&n->lane[n->edge[e].lane]) + way;
            if (!(cost < r->cost[from])) {
                continue;
            }
            r->cost[from] = cost;
            r->after[from] = e;
            if (r->place[from] == NET_NONE) {
                put_in_heap(r, r->n_heap++, from);
            }
            rise_in_heap(r, r->place[from]);
        }
    }
}
