/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"
#include "plan_file.h"

#include <math.h>

static int is_vehicle(const xml *x)
{
    return xml_is(x, "vehicle") || xml_is(x, "trip") || xml_is(x, "flow");
}

/* It holds nothing that is read. */
static dt_status skip_element(planfile *r, const xml *x)
{
    r->skip_depth = x->depth;
    return xml_is(x, "param") ? DT_OK : file_leave_out(&r->notes, x, "is left out: not simulated");
}

static dt_status begin_root(const planfile *r, const xml *x)
{
    static const char *const others[] = {"net", "configuration", "sumoConfiguration", "fcd-export", "meandata"};
    for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
        if (xml_is(x, others[k])) {
            return DT_FAIL_H(r->h, DT_EDATA, XML_AT "is not the <routes> of SUMO", XML_HERE(x));
        }
    }
    return DT_OK;
}

/* Within a vehicle, or a distribution of one. */
static dt_status begin_inside(planfile *r, xml *x)
{
    if (r->is_skipped) {
        r->skip_depth = x->depth;
        return DT_OK;
    }
    if (xml_is(x, "route")) {
        return plan_open_own_route(r, x);
    }
    return xml_is(x, "routeDistribution") ? DT_OK : skip_element(r, x);
}

/* <interval begin end>: flows of it without times begin and end with it. */
static dt_status begin_interval(planfile *r, const xml *x)
{
    r->in_interval = 1;
    r->has_to = xml_get(x, "end") != NULL;
    DT_TRY_H(xml_time(x, "begin", r->begin.s, 0, XML_TIME_MOST, &r->from.s));
    return xml_time(x, "end", r->end.s, -XML_TIME_MOST, XML_TIME_MOST, &r->to.s);
}

static void end_interval(planfile *r)
{
    r->in_interval = r->has_to = 0;
    r->from = r->begin;
    r->to = r->end;
}

static dt_status begin_element(xml *x)
{
    planfile *r = x->user;
    if (x->depth == 0) {
        return begin_root(r, x);
    }
    if (r->skip_depth != NET_NONE) {
        return DT_OK;
    }
    if (r->is_open) {
        return begin_inside(r, x);
    }
    const int which = xml_is(x, "vType") || xml_is(x, "vTypeDistribution") ? NAMES_TYPES : NAMES_ROUTES;
    if (r->distribution != NET_NONE && (which != r->which_names || x->depth != 2)) {
        return skip_element(r, x);
    }
    if (xml_is(x, "include")) {
        return DT_FAIL_H(r->h, DT_EDATA, XML_AT "is read only below the root: move it there", XML_HERE(x));
    }
    if (r->zone != NET_NONE) {
        return plan_add_zone_edge(r, x);
    }
    if (x->depth == 1 && xml_is(x, "taz")) {
        return plan_open_zone(r, x);
    }
    if (xml_is(x, "vType")) {
        return plan_open_type(r, x);
    }
    if (xml_is(x, "route")) {
        return plan_open_route(r, x);
    }
    if (x->depth == 1 && (xml_is(x, "vTypeDistribution") || xml_is(x, "routeDistribution"))) {
        return plan_open_distribution(r, x, which);
    }
    if (x->depth == 1 + r->in_interval && is_vehicle(x)) {
        return plan_open_vehicle(r, x);
    }
    if (x->depth == 1 && xml_is(x, "interval")) {
        return begin_interval(r, x);
    }
    return skip_element(r, x);
}

static dt_status end_element(xml *x)
{
    planfile *r = x->user;
    if (r->skip_depth != NET_NONE) {
        r->skip_depth = r->skip_depth == x->depth ? NET_NONE : r->skip_depth;
        return DT_OK;
    }
    if (x->depth == 1 && (xml_is(x, "vTypeDistribution") || xml_is(x, "routeDistribution"))) {
        r->distribution = NET_NONE;
    }
    if (x->depth == 1 && xml_is(x, "interval")) {
        end_interval(r);
    }
    if (x->depth == 1 && xml_is(x, "taz")) {
        r->zone = NET_NONE;
    }
    return is_vehicle(x) && r->is_open ? plan_close_vehicle(r, x) : DT_OK;
}

static dt_status read_all(planfile *r, const xml_text *text)
{
    static const xml_calls calls = {.begin = begin_element, .end = end_element};
    r->file_edge = r->h->alloc(r->h, ((uint64_t)r->n->n_edges + 1) * sizeof(*r->file_edge));
    if (r->file_edge == NULL) {
        return DT_FAIL_H(r->h, DT_ENOMEM, "no memory for %d edges", (int)r->n->n_edges);
    }
    for (int32_t e = 0; e < r->f->edges.n; e++) {
        if (FILE_ITEM(r->f, edge, e)->edge != NET_NONE) {
            r->file_edge[FILE_ITEM(r->f, edge, e)->edge] = e;
        }
    }
    DT_TRY_H(plan_add_own_types(r));
    DT_TRY_H(xml_read(r->h, text, &calls, r));
    file_report_notes(r->h, &r->notes);
    if (r->p->flows.n == 0) {
        return DT_FAIL_H(r->h, DT_ECONFIG,
                         "%s: no vehicle is due from %g s (begin_s) to %g s (begin_s + episode_s): change begin_s or "
                         "episode_s, or the demand",
                         text->path, r->begin.s, r->end.s);
    }
    return DT_OK;
}

dt_status plan_read(trip_plan *p, const dt_host *h, const xml_text *text, const netfile *f, const net *n,
                    route_search *search, file_time begin, file_time end)
{
    planfile r = {.p = p,
                  .h = h,
                  .f = f,
                  .n = n,
                  .search = search,
                  .begin = begin,
                  .end = end,
                  .from = begin,
                  .to = end,
                  .last_s = -INFINITY,
                  .path = text->path,
                  .distribution = NET_NONE,
                  .zone = NET_NONE,
                  .skip_depth = NET_NONE};
    const dt_status st = read_all(&r, text);
    h->release(h, r.file_edge);
    plan_fini_zones(&r);
    names *const tables[] = {&r.way_names, &r.files, &r.zone_names, &r.edge_names};
    for (size_t k = 0; k < sizeof(tables) / sizeof(tables[0]); k++) {
        names_fini(h, tables[k]);
    }
    for (int k = 0; k < N_NAMES; k++) {
        names_fini(h, &r.names[k]);
        list_fini(h, &r.named[k]);
    }
    list *const lists[] = {&r.text,  &r.choices, &r.attributes, &r.ways,   &r.notes,
                           &r.types, &r.routes,  &r.zones,      &r.starts, &r.ends};
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        list_fini(h, lists[k]);
    }
    return st;
}

void plan_fini(trip_plan *p, const dt_host *h)
{
    list_fini(h, &p->types);
    list_fini(h, &p->trips);
    list_fini(h, &p->flows);
    list_fini(h, &p->edges);
}

const plan_type *plan_common_type(const trip_plan *p)
{
    const plan_type *common = PLAN_TYPE(p, 0);
    for (int32_t k = 1; k < p->types.n; k++) {
        common = PLAN_TYPE(p, k)->n_vehicles > common->n_vehicles ? PLAN_TYPE(p, k) : common;
    }
    return common;
}
