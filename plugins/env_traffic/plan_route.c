/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes of a demand, and ways that are looked for; see plan_file.h.
 */
#include "plan_file.h"

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

static int leads_to(const net *n, int32_t from, int32_t to)
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
        if (*n_p > 0 && !leads_to(r->n, PLAN_EDGE(r->p, r->p->edges.n - 1), edge)) {
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

/* Goes on from the last edge of a way to this one. */
static dt_status go_to(planfile *r, const xml *x, int32_t *n_p, const char *name, size_t n)
{
    int32_t to, at = PLAN_EDGE(r->p, r->p->edges.n - 1);
    TRY_DRIVE(find_edge(r, x, name, n, &to));
    route_find(r->search, r->n, to);
    if (r->search->n_steps > PLAN_SEEK_MOST) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         XML_AT "more than %lld edges and links are looked at to find the ways of trips up to this "
                                "one: give them routes (duarouter)",
                         XML_HERE(x), PLAN_SEEK_MOST);
    }
    while (at != to) {
        at = r->search->after[at];
        if (at == NET_NONE) {
            return NO_WAY(r, XML_AT "there is no way for cars from \"%s\" to \"%.*s\"", XML_HERE(x), xml_get(x, "from"),
                          (int)n, name);
        }
        DT_TRY_H(add_edge(r, at));
        ++*n_p;
    }
    return DT_OK;
}

static dt_status look_for_way(planfile *r, const xml *x, option *out)
{
    const char *from = xml_get(x, "from"), *to = xml_get(x, "to"), *via = xml_get(x, "via");
    int32_t first;
    TRY_DRIVE(find_edge(r, x, from, strlen(from), &first));
    *out = (option){.at = r->p->edges.n, .n_edges = 1, .weight = 1};
    DT_TRY_H(add_edge(r, first));
    const char *at = via != NULL ? via : "", *word;
    for (size_t n; (n = xml_word(&at, &word)) > 0;) {
        TRY_DRIVE(go_to(r, x, &out->n_edges, word, n));
    }
    return go_to(r, x, &out->n_edges, to, strlen(to));
}

dt_status plan_find_way(planfile *r, const xml *x)
{
    const char *from = xml_get(x, "from"), *to = xml_get(x, "to"), *via = xml_get(x, "via");
    if (from == NULL || to == NULL) {
        return DT_FAIL_H(r->h, DT_EDATA,
                         XML_AT "has neither a route nor edges to drive from and to (zones and junctions are not "
                                "looked up: duarouter makes routes of them)",
                         XML_HERE(x));
    }
    char key[2048];
    const int n = snprintf(key, sizeof(key), "%s\n%s\n%s", from, via != NULL ? via : "", to);
    option way, *kept;
    const int32_t known = n < (int)sizeof(key) ? names_find(&r->way_names, key) : -1;
    if (known >= 0) {
        way = ((const option *)r->ways.items)[known];
        return plan_add_option(r, x, &r->routes, way.at, way.n_edges, 1);
    }
    const int32_t before = r->p->edges.n;
    const dt_status st = look_for_way(r, x, &way);
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
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "\"%s\" is there twice", XML_HERE(x), id);
    }
    named k = {.is_there = 1, .found = NET_NONE, .is_car = 1, .is_plain = 1};
    DT_TRY_H(plan_keep(r, x, &k));
    *NAMED(r, NAMES_ROUTES, number) = k;
    return in_distribution ? plan_add_choice(r, number, -1) : DT_OK;
}
