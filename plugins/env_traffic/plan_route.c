/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of a demand, and ways that are looked for; see plan_file.h.
 */
#include "plan_file.h"

#include <math.h>
#include <string.h>

static dt_status find_edge(planfile *r, const xml *x, const char *name, size_t n, int32_t *edge_p)
{
    char id[512];
    snprintf(id, sizeof(id), "%.*s", (int)n, name);
    const int32_t e = names_find(&r->f->edge_names, id);
    if (e < 0) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "edge \"%s\" is not in %s", XML_HERE(x), id, r->f->path);
    }
    *edge_p = FILE_ITEM(r->f, edge, e)->edge;
    return *edge_p != NET_NONE
               ? DT_OK
               : NO_WAY(r, XML_AT "edge \"%s\" of %s has no lane for cars", XML_HERE(x), id, r->f->path);
}

static int is_edge_connected(const net *n, int32_t from, int32_t to)
{
    const net_edge *e = &n->edge[from];
    for (int32_t lane = e->lane; lane < e->lane + e->n_lanes; lane++) {
        const net_lane *l = &n->lane[lane];
        for (int32_t k = l->link; k < l->link + l->n_links; k++) {
            if (n->link[k].edge == to) {
                return 1;
            }
        }
    }
    return 0;
}

static dt_status add_edge(planfile *r, int32_t edge)
{
    int32_t *kept;
    DT_TRY_H(list_add(r->h, &r->p->edges, sizeof(*kept), &kept));
    *kept = edge;
    return DT_OK;
}

dt_status plan_read_edges(planfile *r, const xml *x, int32_t *edge_p, int32_t *n_p)
{
    const char *text;
    DT_TRY_H(xml_need(x, "edges", &text));
    *edge_p = r->p->edges.n;
    *n_p = 0;
    const char *at = text, *word, *before = "";
    size_t n_before = 0;
    for (size_t n; (n = xml_word(&at, &word)) > 0; ++*n_p) {
        int32_t edge;
        TRY_DRIVE(find_edge(r, x, word, n, &edge));
        if (*n_p > 0 && !is_edge_connected(r->n, PLAN_EDGE(r->p, r->p->edges.n - 1), edge)) {
            return NO_WAY(r, XML_AT "edge \"%.*s\" does not lead to \"%.*s\"", XML_HERE(x), (int)n_before, before,
                          (int)n, word);
        }
        before = word;
        n_before = n;
        DT_TRY_H(add_edge(r, edge));
    }
    if (xml_get(x, "repeat") != NULL) {
        DT_TRY_H(file_leave_out(&r->notes, x, "has a repeat: it is driven once"));
    }
    return *n_p > 0 ? DT_OK : DT_FAIL_H(r->h, DT_EDATA, XML_AT "has no edges", XML_HERE(x));
}

dt_status plan_use_route(planfile *r, named *k)
{
    if (k->found != NET_NONE) {
        return DT_OK;
    }
    xml x;
    int32_t edge;
    DT_TRY_H(plan_reopen(r, k, "route", &x));
    const int32_t before = r->p->edges.n;
    const dt_status st = plan_read_edges(r, &x, &edge, &k->n_edges);
    r->p->edges.n = st == DT_OK ? r->p->edges.n : before;
    k->found = st == DT_OK ? edge : NET_NONE;
    return st;
}

/* ---- zones ------------------------------------------------------------------------------------------------------- */

static dt_status add_zone_edge(planfile *r, list *to, const char *name, size_t n)
{
    char id[512];
    int32_t number, *kept;
    snprintf(id, sizeof(id), "%.*s", (int)(n < sizeof(id) ? n : sizeof(id) - 1), name);
    DT_TRY_H(names_add(r->h, &r->edge_names, id, &number));
    DT_TRY_H(list_add(r->h, to, sizeof(*kept), &kept));
    *kept = number;
    return DT_OK;
}

dt_status plan_open_zone(planfile *r, const xml *x)
{
    const char *id, *at = xml_get(x, "edges"), *word;
    DT_TRY_H(xml_need(x, "id", &id));
    DT_TRY_H(names_add(r->h, &r->zone_names, id, &r->zone));
    if (r->zone == r->zones.n) {
        zone *new;
        DT_TRY_H(list_add(r->h, &r->zones, sizeof(*new), &new));
    }
    zone *z = (zone *)r->zones.items + r->zone;
    if (z->is_there) {
        DT_TRY_H(file_leave_out(&r->notes, x, "is defined twice: it has the edges of both"));
        r->search->target = NET_NONE; /* the nearest edge may be another one */
    }
    z->is_there = 1;
    for (size_t n; at != NULL && (n = xml_word(&at, &word)) > 0;) {
        DT_TRY_H(add_zone_edge(r, &z->sources, word, n));
        DT_TRY_H(add_zone_edge(r, &z->sinks, word, n));
    }
    return DT_OK;
}

dt_status plan_add_zone_edge(planfile *r, const xml *x)
{
    const int is_source = xml_is(x, "tazSource");
    const char *id;
    zone *z = (zone *)r->zones.items + r->zone;
    if (!is_source && !xml_is(x, "tazSink")) {
        return DT_OK;
    }
    DT_TRY_H(xml_need(x, "id", &id));
    return add_zone_edge(r, is_source ? &z->sources : &z->sinks, id, strlen(id));
}

void plan_fini_zones(planfile *r)
{
    for (int32_t k = 0; k < r->zones.n; k++) {
        zone *z = (zone *)r->zones.items + k;
        list_fini(r->h, &z->sources);
        list_fini(r->h, &z->sinks);
    }
}

/* ---- ways -------------------------------------------------------------------------------------------------------- */

/* Where a way begins or ends, from attributes; of several the first one counts. */
enum { AT_EDGE, AT_JUNCTION, AT_ZONE, N_PLACES };
static const char *const place_names[2][N_PLACES] = {{"from", "fromJunction", "fromTaz"},
                                                     {"to", "toJunction", "toTaz"}};
typedef struct way_end {
    int kind, is_to; /* AT_* */
    const char *id;  /* NULL: the element does not have it */
} way_end;

static way_end end_of_way(const xml *x, int is_to)
{
    way_end e = {.is_to = is_to};
    for (; e.kind < N_PLACES && (e.id = xml_get(x, place_names[is_to][e.kind])) == NULL; e.kind++) {
    }
    return e;
}

int plan_has_way(const xml *x)
{
    return end_of_way(x, 0).id != NULL;
}

static dt_status add_place(planfile *r, list *out, int32_t edge)
{
    int32_t *kept;
    r->search->n_steps++;
    DT_TRY_H(list_add(r->h, out, sizeof(*kept), &kept));
    *kept = edge;
    return DT_OK;
}

/* The edges of a junction: those that lead away from it, or to it. */
static dt_status places_of_junction(planfile *r, const xml *x, const way_end *e, list *out)
{
    const int32_t j = names_find(&r->f->junction_names, e->id);
    if (j < 0) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "%s \"%s\" is not a junction of %s", XML_HERE(x),
                         place_names[e->is_to][e->kind], e->id, r->f->path);
    }
    r->search->n_steps += r->f->edges.n;
    for (int32_t k = 0; k < r->f->edges.n; k++) {
        const file_edge *edge = FILE_ITEM(r->f, edge, k);
        if (edge->edge != NET_NONE && (e->is_to ? edge->to : edge->from) == j) {
            DT_TRY_H(add_place(r, out, edge->edge));
        }
    }
    return DT_OK;
}

static dt_status places_of_zone(planfile *r, const xml *x, const way_end *e, list *out)
{
    const int32_t number = names_find(&r->zone_names, e->id);
    const zone *z = number < 0 ? NULL : (const zone *)r->zones.items + number;
    const list *edges = z == NULL ? NULL : e->is_to ? &z->sinks : &z->sources;
    if (z == NULL || !z->is_there) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "%s \"%s\" is not known: the <taz> comes before its trips", XML_HERE(x),
                         place_names[e->is_to][e->kind], e->id);
    }
    for (int32_t k = 0; k < edges->n; k++) {
        const char *name = names_get(&r->edge_names, ((const int32_t *)edges->items)[k]);
        const int32_t edge = names_find(&r->f->edge_names, name);
        if (edge < 0) {
            return DT_FAIL_H(r->h, DT_EDATA, XML_AT "%s \"%s\" has edge \"%s\", which is not in %s", XML_HERE(x),
                             place_names[e->is_to][e->kind], e->id, name, r->f->path);
        }
        if (FILE_ITEM(r->f, edge, edge)->edge != NET_NONE) {
            DT_TRY_H(add_place(r, out, FILE_ITEM(r->f, edge, edge)->edge));
        }
    }
    return DT_OK;
}

/* The edges on which a way may begin, or end; DT_DONE or an error where no car can. */
static dt_status list_way_ends(planfile *r, const xml *x, const way_end *e, list *out)
{
    int32_t edge;
    out->n = 0;
    if (e->kind == AT_EDGE) {
        TRY_DRIVE(find_edge(r, x, e->id, strlen(e->id), &edge));
        return add_place(r, out, edge);
    }
    DT_TRY_H(e->kind == AT_ZONE ? places_of_zone(r, x, e, out) : places_of_junction(r, x, e, out));
    return out->n > 0 ? DT_OK
                      : NO_WAY(r, XML_AT "%s \"%s\" has no edge with a lane for cars", XML_HERE(x),
                               place_names[e->is_to][e->kind], e->id);
}

/* A number of a place, for searches that end there; each kind of them has its own. */
static int32_t key_of_way_end(const planfile *r, const way_end *e)
{
    const names *all = e->kind == AT_ZONE ? &r->zone_names : &r->f->junction_names;
    return NET_NONE - 1 - (2 * names_find(all, e->id) + (e->kind == AT_ZONE)); /* lists count to LIST_MOST */
}

/* Continues from the last edge of a way, or begins it at one of r->starts, to where the search ends. */
static dt_status search_way_to(planfile *r, const xml *x, option *way, const char *name, size_t n)
{
    const route_search *s = r->search;
    int32_t at = NET_NONE;
    if (s->n_steps > PLAN_SEEK_MOST) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         XML_AT "more than %lld edges and links were searched for the routes of trips up to this one: "
                                "give them routes (duarouter)",
                         XML_HERE(x), PLAN_SEEK_MOST);
    }
    if (way->n_edges > 0) {
        at = PLAN_EDGE(r->p, r->p->edges.n - 1);
    }
    double best = INFINITY;
    for (int32_t k = 0; k < r->starts.n && way->n_edges == 0; k++) {
        const int32_t start = ((const int32_t *)r->starts.items)[k];
        const double cost = s->cost[start] + route_travel(&r->n->lane[r->n->edge[start].lane]);
        if (cost < best) {
            best = cost;
            at = start;
        }
    }
    if (at == NET_NONE || !(s->cost[at] < INFINITY)) {
        const way_end from = end_of_way(x, 0);
        return NO_WAY(r, XML_AT "there is no route for cars from \"%s\" to \"%.*s\"", XML_HERE(x), from.id, (int)n,
                      name);
    }
    if (way->n_edges == 0) {
        DT_TRY_H(add_edge(r, at));
        way->n_edges++;
    }
    for (; s->after[at] != NET_NONE; way->n_edges++) {
        at = s->after[at];
        DT_TRY_H(add_edge(r, at));
    }
    return DT_OK;
}

static dt_status search_route(planfile *r, const xml *x, option *out)
{
    const way_end from = end_of_way(x, 0), to = end_of_way(x, 1);
    const char *via = xml_get(x, "via"), *at = via != NULL ? via : "", *word;
    *out = (option){.at = r->p->edges.n, .weight = 1};
    TRY_DRIVE(list_way_ends(r, x, &from, &r->starts));
    for (size_t n; (n = xml_word(&at, &word)) > 0;) {
        int32_t edge;
        TRY_DRIVE(find_edge(r, x, word, n, &edge));
        route_find(r->search, r->n, edge);
        TRY_DRIVE(search_way_to(r, x, out, word, n));
    }
    TRY_DRIVE(list_way_ends(r, x, &to, &r->ends));
    if (to.kind == AT_EDGE) {
        route_find(r->search, r->n, ((const int32_t *)r->ends.items)[0]);
    } else {
        route_find_any(r->search, r->n, r->ends.items, r->ends.n, key_of_way_end(r, &to));
    }
    return search_way_to(r, x, out, to.id, strlen(to.id));
}

dt_status plan_find_way(planfile *r, const xml *x)
{
    const way_end from = end_of_way(x, 0), to = end_of_way(x, 1);
    const char *via = xml_get(x, "via");
    if (from.id == NULL || to.id == NULL) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         XML_AT "has neither a route nor edges, zones or junctions to drive from and to", XML_HERE(x));
    }
    char key[2048];
    const int n =
        snprintf(key, sizeof(key), "%d%s\n%s\n%d%s", from.kind, from.id, via != NULL ? via : "", to.kind, to.id);
    option way, *kept;
    const int32_t known = n < (int)sizeof(key) ? names_find(&r->way_names, key) : -1;
    if (known >= 0) {
        way = ((const option *)r->ways.items)[known];
        return plan_add_option(r, x, &r->routes, way.at, way.n_edges, 1);
    }
    const int32_t before = r->p->edges.n;
    const dt_status st = search_route(r, x, &way);
    if (st != DT_OK) {
        r->p->edges.n = before;
        return st;
    }
    if (n < (int)sizeof(key)) {
        int32_t number;
        DT_TRY_H(names_add(r->h, &r->way_names, key, &number));
        DT_TRY_H(list_add(r->h, &r->ways, sizeof(*kept), &kept));
        *kept = way;
    }
    return plan_add_option(r, x, &r->routes, way.at, way.n_edges, 1);
}

dt_status plan_open_route(planfile *r, xml *x)
{
    const char *id = xml_get(x, "id"), *other = xml_get(x, "refId"), *p = xml_get(x, "probability");
    const int in_distribution = r->distribution != NET_NONE;
    int32_t number;
    if (in_distribution && other != NULL) {
        DT_TRY_H(plan_number_of(r, NAMES_ROUTES, other, &number));
        return plan_add_choice(r, number, p != NULL ? plan_weight_of(p) : -1);
    }
    char own[64]; /* a route of a distribution needs no id */
    if (in_distribution && id == NULL) {
        snprintf(own, sizeof(own), "%d\n%d", (int)r->distribution, (int)r->choices.n);
        id = own;
    }
    if (id == NULL) {
        DT_TRY_H(xml_need(x, "id", &id));
    }
    DT_TRY_H(plan_number_of(r, NAMES_ROUTES, id, &number));
    if (NAMED(r, NAMES_ROUTES, number)->is_there) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "\"%s\" is defined twice", XML_HERE(x), id);
    }
    named k = {.is_there = 1, .found = NET_NONE, .is_car = 1, .is_plain = 1};
    DT_TRY_H(plan_keep(r, x, &k));
    *NAMED(r, NAMES_ROUTES, number) = k;
    return in_distribution ? plan_add_choice(r, number, -1) : DT_OK;
}
