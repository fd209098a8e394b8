/* SPDX-License-Identifier: Apache-2.0
 *
 * A roadnet as a network file of SUMO, a demand as a route file (SUMO's manual, "SUMO Road Networks" and "Definition of
 * Vehicles, Vehicle Types, and Routes"). Right of way: straight on before right turns before left turns; of equals,
 * the vehicle from the right.
 */
#include <config.h>

#include "traffic/roadnet/roadnet.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINKS_MOST = 256 }; /* of a junction of SUMO */
#define TURN_MPS      8.33 /* most in a turn, as CityFlow's vehicles */
#define TIME_TOL      1e-6
#define COMPARED_MOST 2e10 /* half a minute */
#define VEHICLES_MOST 1e9  /* of a flow: SUMO counts them in 32 bits */
#define ENDLESS_S     2e9

/* Names as ids of SUMO, which are words: other bytes become %XX, so that different names stay different. */
static void add_id(dt_str *out, const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        if (strchr(" \t\r\n|\\'\";,<>&%", *c) != NULL || (unsigned char)*c < 0x20 || *c == 0x7f ||
            ((*c == ':' || *c == '!' || *c == '-') && c == name)) {
            dt_str_addf(out, "%%%02X", (unsigned)(unsigned char)*c);
        } else {
            dt_str_add_n(out, c, 1);
        }
    }
}

static void add_attribute(dt_str *out, const char *key, const char *name)
{
    dt_str_addf(out, " %s=\"", key);
    add_id(out, name);
    dt_str_add(out, "\"");
}

static void add_shape(dt_str *out, const roadnet *r, int32_t point, int32_t n)
{
    dt_str_add(out, " shape=\"");
    for (int32_t k = point; k < point + n; k++) {
        dt_str_addf(out, "%s%.2f,%.2f", k > point ? " " : "", RN_POINT(r, k)->x, RN_POINT(r, k)->y);
    }
    dt_str_add(out, "\"");
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static double link_limit(const roadnet *r, const rn_link *l)
{
    const rn_road *from = RN_ROAD(r, l->from), *to = RN_ROAD(r, l->to);
    const double limit = fmin(RN_LANE(r, from->lane + l->from_lane)->limit, RN_LANE(r, to->lane + l->to_lane)->limit);
    return l->turn == RN_STRAIGHT ? limit : fmin(limit, TURN_MPS);
}

static void write_inside(const roadnet *r, const char *node, const rn_node *n, dt_str *out)
{
    for (int32_t k = 0; k < n->n_links; k++) {
        const rn_link *l = RN_LINK(r, n->link + k);
        for (int is_lane = 0; is_lane < 2; is_lane++) {
            dt_str_add(out, is_lane ? "<lane id=\":" : "  <edge id=\":");
            add_id(out, node);
            dt_str_addf(out, is_lane ? "_%d_0\"" : "_%d\" function=\"internal\">", (int)k);
        }
        dt_str_addf(out, " index=\"0\" speed=\"%.2f\" length=\"%.2f\"", link_limit(r, l), l->length);
        add_shape(out, r, l->point, l->n_points);
        dt_str_add(out, "/></edge>\n");
    }
}

static void write_road(const roadnet *r, const char *name, const rn_road *road, dt_str *out)
{
    dt_str_add(out, "  <edge");
    add_attribute(out, "id", name);
    add_attribute(out, "from", r->node_names.name[road->from]);
    add_attribute(out, "to", r->node_names.name[road->to]);
    dt_str_add(out, " priority=\"1\">\n");
    for (int32_t k = 0; k < road->n_lanes; k++) {
        const rn_lane *lane = RN_LANE(r, road->lane + road->n_lanes - 1 - k);
        dt_str_add(out, "    <lane id=\"");
        add_id(out, name);
        dt_str_addf(out, "_%d\" index=\"%d\" speed=\"%.2f\" length=\"%.2f\" width=\"%.2f\"", (int)k, (int)k,
                    lane->limit, road->length, lane->width);
        add_shape(out, r, lane->point, lane->n_points);
        dt_str_add(out, "/>\n");
    }
    dt_str_add(out, "  </edge>\n");
}

/* ---- right of way ------------------------------------------------------------------------------------------------ */

static double side_of(rn_point a, rn_point b, rn_point p)
{
    return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}

static int pieces_cross(rn_point a, rn_point b, rn_point c, rn_point d)
{
    return (side_of(a, b, c) >= 0) != (side_of(a, b, d) >= 0) && (side_of(c, d, a) >= 0) != (side_of(c, d, b) >= 0);
}

/* Do two links cross, or lead into one lane? Those from one lane follow each other. */
static int links_meet(const roadnet *r, const rn_link *a, const rn_link *b)
{
    if (a->from == b->from && a->from_lane == b->from_lane) {
        return 0;
    }
    if (a->to == b->to && a->to_lane == b->to_lane) {
        return 1;
    }
    for (int32_t i = a->point; i + 1 < a->point + a->n_points; i++) {
        for (int32_t k = b->point; k + 1 < b->point + b->n_points; k++) {
            if (pieces_cross(*RN_POINT(r, i), *RN_POINT(r, i + 1), *RN_POINT(r, k), *RN_POINT(r, k + 1))) {
                return 1;
            }
        }
    }
    return 0;
}

static rn_point last_direction(const roadnet *r, const rn_link *l)
{
    const rn_lane *lane = RN_LANE(r, RN_ROAD(r, l->from)->lane + l->from_lane);
    const rn_point a = *RN_POINT(r, lane->point + lane->n_points - 2),
                   b = *RN_POINT(r, lane->point + lane->n_points - 1);
    return (rn_point){b.x - a.x, b.y - a.y};
}

/* Of two links that meet: does a let b go first? Exactly one of both does. */
static int yields_to(const roadnet *r, const rn_link *a, const rn_link *b)
{
    if (a->turn != b->turn) {
        return a->turn > b->turn;
    }
    const rn_point x = last_direction(r, a), y = last_direction(r, b);
    const double cross = x.x * y.y - x.y * y.x, scale = hypot(x.x, x.y) * hypot(y.x, y.y);
    if (fabs(cross) > 0.1 * scale) { /* otherwise they come from one side, or from opposite ones */
        return cross > 0;            /* b comes from the right of a */
    }
    return a > b;
}

/* meets, yields: [n_links * n_links] of a node. */
static void find_conflicts(const roadnet *r, const rn_node *n, uint8_t *meets, uint8_t *yields)
{
    for (int32_t i = 0; i < n->n_links; i++) {
        for (int32_t k = 0; k < i; k++) {
            const rn_link *a = RN_LINK(r, n->link + i), *b = RN_LINK(r, n->link + k);
            const int meet = links_meet(r, a, b), first = meet && yields_to(r, a, b);
            meets[i * n->n_links + k] = meets[k * n->n_links + i] = (uint8_t)meet;
            yields[i * n->n_links + k] = (uint8_t)first;
            yields[k * n->n_links + i] = (uint8_t)(meet && !first);
        }
    }
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

typedef struct greens { /* of the links of a node, in a phase and in the next one */
    uint8_t now[LINKS_MOST], next[LINKS_MOST];
} greens;

static void find_green(const roadnet *r, const rn_node *n, const rn_phase *p, uint8_t *green)
{
    for (int32_t k = 0; k < n->n_links; k++) {
        green[k] = 0;
        for (int32_t m = p->movement; m < p->movement + p->n_movements && !green[k]; m++) {
            green[k] = *RN_AT(r->movements, int32_t, m) == RN_LINK(r, n->link + k)->movement;
        }
    }
}

/* A green that yields to another one of the phase is "g". last: the letter of what the next phase ends; 0: none. */
static void write_step(int32_t n, const uint8_t *yields, const greens *g, double duration_s, char last, dt_str *out)
{
    if (duration_s < TIME_TOL) {
        return;
    }
    dt_str_addf(out, "    <phase duration=\"%g\" state=\"", duration_s);
    for (int32_t i = 0; i < n; i++) {
        char letter = g->now[i] ? 'G' : 'r';
        for (int32_t k = 0; k < n && letter == 'G'; k++) {
            letter = yields[i * n + k] && g->now[k] ? 'g' : 'G';
        }
        letter = last != 0 && g->now[i] && !g->next[i] ? last : letter;
        dt_str_add_n(out, &letter, 1);
    }
    dt_str_add(out, "\"/>\n");
}

static void write_signal(const roadnet *r, const char *node, const rn_node *n, const uint8_t *yields, dt_str *out)
{
    greens g;
    dt_str_add(out, "  <tlLogic");
    add_attribute(out, "id", node);
    dt_str_add(out, " type=\"static\" programID=\"0\" offset=\"0\">\n");
    for (int32_t k = 0; k < n->n_phases; k++) {
        const rn_phase *p = RN_AT(r->phases, rn_phase, n->phase + k);
        find_green(r, n, p, g.now);
        find_green(r, n, RN_AT(r->phases, rn_phase, n->phase + (k + 1) % n->n_phases), g.next);
        write_step(n->n_links, yields, &g, p->duration_s, 0, out);
        write_step(n->n_links, yields, &g, p->yellow_s, 'y', out);
        write_step(n->n_links, yields, &g, p->red_s, 'r', out);
    }
    dt_str_add(out, "  </tlLogic>\n");
}

/* ---- junctions --------------------------------------------------------------------------------------------------- */

static void write_inc_lanes(const roadnet *r, const rn_node *n, dt_str *out)
{
    const char *space = "";
    for (int32_t k = n->link; k < n->link + n->n_links; k++) {
        const int32_t from = RN_LINK(r, k)->from;
        if (k > n->link && RN_LINK(r, k - 1)->from == from) {
            continue;
        }
        for (int32_t i = 0; i < RN_ROAD(r, from)->n_lanes; i++) {
            dt_str_add(out, space);
            add_id(out, r->road_names.name[from]);
            dt_str_addf(out, "_%d", (int)i);
            space = " ";
        }
    }
}

static void write_junction(const roadnet *r, const char *node, const rn_node *n, const uint8_t *meets,
                           const uint8_t *yields, dt_str *out)
{
    const double d = fmax(n->radius, 1);
    dt_str_add(out, "  <junction");
    add_attribute(out, "id", node);
    dt_str_addf(out, " type=\"%s\" x=\"%.2f\" y=\"%.2f\" incLanes=\"",
                n->n_phases > 0  ? "traffic_light"
                : n->n_links > 0 ? "priority"
                                 : "dead_end",
                n->x, n->y);
    write_inc_lanes(r, n, out);
    dt_str_add(out, "\" intLanes=\"");
    for (int32_t k = 0; k < n->n_links; k++) {
        dt_str_add(out, k > 0 ? " :" : ":");
        add_id(out, node);
        dt_str_addf(out, "_%d_0", (int)k);
    }
    dt_str_addf(out, "\" shape=\"%.2f,%.2f %.2f,%.2f %.2f,%.2f %.2f,%.2f\">\n", n->x - d, n->y - d, n->x - d, n->y + d,
                n->x + d, n->y + d, n->x + d, n->y - d);
    for (int32_t i = 0; i < n->n_links; i++) {
        dt_str_addf(out, "    <request index=\"%d\"", (int)i);
        for (int is_foe = 0; is_foe < 2; is_foe++) {
            dt_str_add(out, is_foe ? " foes=\"" : " response=\"");
            for (int32_t k = n->n_links - 1; k >= 0; k--) {
                dt_str_add(out, (is_foe ? meets : yields)[i * n->n_links + k] ? "1" : "0");
            }
            dt_str_add(out, "\"");
        }
        dt_str_add(out, " cont=\"0\"/>\n");
    }
    dt_str_add(out, "  </junction>\n");
}

static void write_connections(const roadnet *r, const char *node, const rn_node *n, const uint8_t *yields, dt_str *out)
{
    static const char direction[] = {[RN_STRAIGHT] = 's', [RN_RIGHT] = 'r', [RN_LEFT] = 'l', [RN_BACK] = 't'};
    for (int inside = 0; inside < 2; inside++) {
        for (int32_t k = 0; k < n->n_links; k++) {
            const rn_link *l = RN_LINK(r, n->link + k);
            const int32_t to = RN_ROAD(r, l->to)->n_lanes - 1 - l->to_lane;
            dt_str_add(out, "  <connection");
            if (inside) {
                dt_str_add(out, " from=\":");
                add_id(out, node);
                dt_str_addf(out, "_%d\"", (int)k);
            } else {
                add_attribute(out, "from", r->road_names.name[l->from]);
            }
            add_attribute(out, "to", r->road_names.name[l->to]);
            dt_str_addf(out, " fromLane=\"%d\" toLane=\"%d\"",
                        inside ? 0 : (int)(RN_ROAD(r, l->from)->n_lanes - 1 - l->from_lane), (int)to);
            if (!inside) {
                dt_str_add(out, " via=\":");
                add_id(out, node);
                dt_str_addf(out, "_%d_0\"", (int)k);
                if (n->n_phases > 0) {
                    add_attribute(out, "tl", node);
                    dt_str_addf(out, " linkIndex=\"%d\"", (int)k);
                }
            }
            const int is_minor = memchr(yields + (size_t)k * (size_t)n->n_links, 1, (size_t)n->n_links) != NULL;
            dt_str_addf(out, " dir=\"%c\" state=\"%c\"/>\n", direction[l->turn],
                        inside            ? 'M'
                        : n->n_phases > 0 ? 'O'
                        : is_minor        ? 'm'
                                          : 'M');
        }
    }
}

/* The parts of a network that depend on right of way, of one node. */
/* How many pairs of points find_conflicts compares at most. */
static double count_compared(const roadnet *r, const rn_node *n)
{
    double points = 0;
    for (int32_t k = n->link; k < n->link + n->n_links; k++) {
        points += RN_LINK(r, k)->n_points;
    }
    return points * points / 2;
}

static dt_status write_node(const roadnet *r, int32_t k, double *compared_p, dt_str *signals, dt_str *junctions,
                            dt_str *connections)
{
    const rn_node *n = RN_NODE(r, k);
    const char *name = r->node_names.name[k];
    const size_t pairs = (size_t)n->n_links * (size_t)n->n_links;
    if (n->n_links > LINKS_MOST) {
        return DT_FAIL(DT_EDATA, "%s:%lld: intersection \"%s\" has %d ways from lane to lane; SUMO takes at most %d",
                       r->path, (long long)n->line, name, (int)n->n_links, LINKS_MOST);
    }
    *compared_p += count_compared(r, n);
    if (*compared_p > COMPARED_MOST) {
        return DT_FAIL(DT_EDATA,
                       "%s:%lld: up to intersection \"%s\", finding conflicts compares more than %g pairs of points of "
                       "laneLinks: leave some of their points out",
                       r->path, (long long)n->line, name, COMPARED_MOST);
    }
    uint8_t *meets = dt_alloc(2 * pairs + 1);
    if (meets == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for the ways of intersection \"%s\"", name);
    }
    find_conflicts(r, n, meets, meets + pairs);
    if (n->n_phases > 0) {
        write_signal(r, name, n, meets + pairs, signals);
    }
    write_junction(r, name, n, meets, meets + pairs, junctions);
    write_connections(r, name, n, meets + pairs, connections);
    dt_free(meets);
    return DT_OK;
}

static void write_bounds(const roadnet *r, dt_str *out)
{
    double low_x = INFINITY, low_y = INFINITY, high_x = -INFINITY, high_y = -INFINITY;
    for (int32_t k = 0; k < r->points.n; k++) {
        low_x = fmin(low_x, RN_POINT(r, k)->x);
        low_y = fmin(low_y, RN_POINT(r, k)->y);
        high_x = fmax(high_x, RN_POINT(r, k)->x);
        high_y = fmax(high_y, RN_POINT(r, k)->y);
    }
    for (int k = 0; k < 2; k++) {
        dt_str_addf(out, "%s=\"%.2f,%.2f,%.2f,%.2f\" ", k == 0 ? "convBoundary" : "origBoundary", low_x, low_y, high_x,
                    high_y);
    }
}

dt_status roadnet_write_net(const roadnet *r, dt_str *out)
{
    dt_str signals = {0}, junctions = {0}, connections = {0};
    dt_str_add(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<net version=\"1.16\">\n  <location netOffset=\"0.00,0.00\" ");
    write_bounds(r, out);
    dt_str_add(out, "projParameter=\"!\"/>\n");
    for (int32_t k = 0; k < r->nodes.n; k++) {
        write_inside(r, r->node_names.name[k], RN_NODE(r, k), out);
    }
    for (int32_t k = 0; k < r->roads.n; k++) {
        write_road(r, r->road_names.name[k], RN_ROAD(r, k), out);
    }
    dt_status st = DT_OK;
    double compared = 0;
    for (int32_t k = 0; k < r->nodes.n && st == DT_OK; k++) {
        st = write_node(r, k, &compared, &signals, &junctions, &connections);
    }
    dt_str *const parts[] = {&signals, &junctions, &connections};
    for (int k = 0; k < 3; k++) {
        dt_str_add(out, dt_str_text(parts[k]));
        out->failed = out->failed || parts[k]->failed;
        dt_str_fini(parts[k]);
    }
    dt_str_add(out, "</net>\n");
    DT_TRY(st);
    return dt_str_status(out);
}

/* ---- demand ------------------------------------------------------------------------------------------------------ */

static int compare_begins(const void *x, const void *y)
{
    const rn_flow *a = *(const rn_flow *const *)x, *b = *(const rn_flow *const *)y;
    if (a->begin_s != b->begin_s) {
        return a->begin_s < b->begin_s ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static int compare_pairs(const void *x, const void *y)
{
    return memcmp(x, y, 2 * sizeof(int32_t));
}

/* All pairs of roads that a link leads over. */
static int32_t *list_ways(const roadnet *r, size_t *n_p)
{
    int32_t *pair = dt_alloc_n((size_t)r->links.n + 1, 2 * sizeof(*pair));
    for (int32_t k = 0; k < r->links.n && pair != NULL; k++) {
        pair[2 * k] = RN_LINK(r, k)->from;
        pair[2 * k + 1] = RN_LINK(r, k)->to;
    }
    *n_p = (size_t)r->links.n;
    if (pair != NULL) {
        qsort(pair, *n_p, 2 * sizeof(*pair), compare_pairs);
    }
    return pair;
}

static int is_way(const int32_t *pairs, size_t n, const int32_t *two)
{
    return n > 0 && bsearch(two, pairs, n, 2 * sizeof(*pairs), compare_pairs) != NULL;
}

static void write_roads(const roadnet *r, const int32_t *road, int32_t n, dt_str *out)
{
    for (int32_t k = 0; k < n; k++) {
        dt_str_add(out, k > 0 ? " " : "");
        add_id(out, r->road_names.name[road[k]]);
    }
    dt_str_add(out, "\"");
}

/* CityFlow lets a route name roads that do not follow each other: vehicles take the quickest way between them. */
static void write_flow(const roadnet *r, const rn_demand *d, int32_t number, const rn_flow *f, const int32_t *ways,
                       size_t n_ways, dt_str *out)
{
    const int32_t *road = RN_AT(d->roads, int32_t, f->road);
    int is_whole = 1;
    for (int32_t k = 0; k + 1 < f->n_roads; k++) {
        is_whole = is_whole && is_way(ways, n_ways, &road[k]);
    }
    const int is_one = f->end_s == f->begin_s || (f->end_s >= 0 && f->end_s - f->begin_s < f->period_s);
    const char *element = !is_one ? "flow" : is_whole ? "vehicle" : "trip";
    dt_str_addf(out, "  <%s id=\"%d\" type=\"t%d\" departLane=\"best\" departSpeed=\"max\"", element, (int)number,
                (int)f->type);
    if (is_one) {
        dt_str_addf(out, " depart=\"%.2f\"", f->begin_s);
    } else {
        const double n = floor((f->end_s - f->begin_s) / f->period_s + TIME_TOL) + 1;
        const double end = f->end_s >= 0 ? f->begin_s + (n - 0.5) * f->period_s
                                         : f->begin_s + fmin(ENDLESS_S, f->period_s * VEHICLES_MOST);
        dt_str_addf(out, " begin=\"%.2f\" end=\"%.3f\" period=\"%g\"", f->begin_s, end, f->period_s);
    }
    if (is_whole) {
        dt_str_add(out, "><route edges=\"");
        write_roads(r, road, f->n_roads, out);
        dt_str_addf(out, "/></%s>\n", element);
        return;
    }
    dt_str_add(out, " from=\"");
    write_roads(r, road, 1, out);
    dt_str_add(out, " to=\"");
    write_roads(r, road + f->n_roads - 1, 1, out);
    if (f->n_roads > 2) {
        dt_str_add(out, " via=\"");
        write_roads(r, road + 1, f->n_roads - 2, out);
    }
    dt_str_add(out, "/>\n");
}

dt_status roadnet_write_routes(const roadnet *r, const rn_demand *d, dt_str *out)
{
    size_t n_ways;
    int32_t *ways = list_ways(r, &n_ways);
    const rn_flow **order = dt_alloc_n((size_t)d->flows.n + 1, sizeof(*order));
    if (ways == NULL || order == NULL) {
        dt_free(ways);
        dt_free(order);
        return DT_FAIL(DT_ENOMEM, "no memory for %d flows", (int)d->flows.n);
    }
    dt_str_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<routes>\n");
    for (int32_t k = 0; k < d->types.n; k++) {
        const rn_type *t = RN_AT(d->types, rn_type, k);
        dt_str_addf(out,
                    "  <vType id=\"t%d\" length=\"%g\" width=\"%g\" minGap=\"%g\" accel=\"%g\" decel=\"%g\" "
                    "emergencyDecel=\"%g\" tau=\"%g\" maxSpeed=\"%g\" sigma=\"%g\" speedDev=\"0\"/>\n",
                    (int)k, t->length, t->width, t->gap, t->accel, t->decel, fmax(t->decel, t->emergency_decel), t->tau,
                    t->speed, t->sigma);
    }
    for (int32_t k = 0; k < d->flows.n; k++) {
        order[k] = RN_AT(d->flows, rn_flow, k);
    }
    qsort(order, (size_t)d->flows.n, sizeof(*order), compare_begins);
    for (int32_t k = 0; k < d->flows.n; k++) {
        write_flow(r, d, k, order[k], ways, n_ways, out);
    }
    dt_str_add(out, "</routes>\n");
    dt_free(ways);
    dt_free(order);
    return dt_str_status(out);
}
