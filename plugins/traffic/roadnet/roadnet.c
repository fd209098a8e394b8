/* SPDX-License-Identifier: Apache-2.0
 *
 * What is the same for both formats: tables, shapes, and the conversion as a whole. See roadnet.h.
 */
#include <config.h>

#include "traffic/roadnet/roadnet.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "traffic/text/source.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIST_MOST = 1 << 26,
    CURVE_POINTS = 9,
    FILE_MOST = 1 << 30, /* bytes of an unpacked file: a city of 3,000 roads has 2 MB */
    READ_BYTES = 1 << 16
};
#define KEPT_SHARE 0.2 /* of a road, at least, between its junctions */
#define LANE_LEAST 0.1 /* m */

/* ---- tables ------------------------------------------------------------------------------------------------------ */

dt_status rn_add(rn_list *l, size_t bytes, void *item_p)
{
    if (l->n == l->cap) {
        if (l->n >= LIST_MOST) {
            return DT_FAIL(DT_EDATA, "more than %d points, lanes, links or roads of routes", LIST_MOST);
        }
        const int32_t cap = l->cap == 0 ? 64 : 2 * l->cap;
        void *grown = dt_realloc(l->items, (size_t)cap * bytes);
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "no memory for %d items of a road network", (int)cap);
        }
        l->items = grown;
        l->cap = cap;
    }
    void *item = (char *)l->items + (size_t)l->n++ * bytes;
    memset(item, 0, bytes);
    memcpy(item_p, &item, sizeof(item));
    return DT_OK;
}

dt_status rn_node_number(roadnet *r, const char *name, int32_t *number_p)
{
    bool is_new;
    DT_TRY(dt_names_add(&r->node_names, name, number_p, &is_new));
    rn_node *node;
    return is_new ? rn_add(&r->nodes, sizeof(*node), &node) : DT_OK;
}

dt_status rn_road_number(roadnet *r, const char *name, int32_t *number_p)
{
    bool is_new;
    DT_TRY(dt_names_add(&r->road_names, name, number_p, &is_new));
    rn_road *road;
    return is_new ? rn_add(&r->roads, sizeof(*road), &road) : DT_OK;
}

void roadnet_fini(roadnet *r)
{
    rn_list *const all[] = {&r->nodes, &r->roads, &r->lanes, &r->points, &r->links, &r->phases, &r->movements};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        dt_free(all[k]->items);
    }
    dt_names_fini(&r->node_names);
    dt_names_fini(&r->road_names);
}

void rn_demand_fini(rn_demand *d)
{
    dt_names_fini(&d->type_names);
    dt_free(d->flows.items);
    dt_free(d->types.items);
    dt_free(d->roads.items);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static double shape_length(const roadnet *r, int32_t point, int32_t n)
{
    double sum = 0;
    for (int32_t k = point; k + 1 < point + n; k++) {
        sum += hypot(RN_POINT(r, k + 1)->x - RN_POINT(r, k)->x, RN_POINT(r, k + 1)->y - RN_POINT(r, k)->y);
    }
    return sum;
}

/* The point at s along a shape, and the direction there. */
static rn_point point_at(const roadnet *r, int32_t point, int32_t n, double s, rn_point *direction_p)
{
    rn_point direction = {1, 0}, at = *RN_POINT(r, point);
    for (int32_t k = point; k + 1 < point + n; k++) {
        const rn_point a = *RN_POINT(r, k), b = *RN_POINT(r, k + 1);
        const double d = hypot(b.x - a.x, b.y - a.y);
        if (d > 0) {
            direction = (rn_point){(b.x - a.x) / d, (b.y - a.y) / d};
            at = (rn_point){a.x + s * direction.x, a.y + s * direction.y};
            if (s <= d) {
                break;
            }
            s -= d;
        }
    }
    *direction_p = direction;
    return at;
}

static dt_status add_shifted(roadnet *r, rn_point at, rn_point direction, double right, rn_lane *lane)
{
    rn_point *p;
    DT_TRY(rn_add(&r->points, sizeof(*p), &p));
    *p = (rn_point){at.x + right * direction.y, at.y - right * direction.x};
    lane->n_points++;
    return DT_OK;
}

/* Lanes lie to the right of the centre line and end where the junctions begin. */
static dt_status shape_lanes(roadnet *r, const rn_road *road)
{
    const double whole = shape_length(r, road->point, road->n_points);
    double first = RN_NODE(r, road->from)->radius, last = RN_NODE(r, road->to)->radius;
    const double most = (1 - KEPT_SHARE) * whole;
    if (first + last > most) {
        const double shrink = most / (first + last);
        first *= shrink;
        last *= shrink;
    }
    double right = 0;
    for (int32_t k = road->lane; k < road->lane + road->n_lanes; k++) {
        rn_lane *lane = RN_LANE(r, k);
        lane->point = r->points.n;
        rn_point direction, at = point_at(r, road->point, road->n_points, first, &direction);
        right += lane->width / 2;
        DT_TRY(add_shifted(r, at, direction, right, lane));
        double s = 0;
        for (int32_t i = road->point; i + 2 < road->point + road->n_points; i++) {
            const rn_point a = *RN_POINT(r, i), b = *RN_POINT(r, i + 1);
            const double d = hypot(b.x - a.x, b.y - a.y);
            s += d;
            if (d > 0 && s > first && s < whole - last) {
                DT_TRY(add_shifted(r, b, (rn_point){(b.x - a.x) / d, (b.y - a.y) / d}, right, lane));
            }
        }
        at = point_at(r, road->point, road->n_points, whole - last, &direction);
        DT_TRY(add_shifted(r, at, direction, right, lane));
        right += lane->width / 2;
    }
    return DT_OK;
}

static rn_point lane_end(const roadnet *r, const rn_lane *lane, int is_last, rn_point *direction_p)
{
    const int32_t at = is_last ? lane->point + lane->n_points - 1 : lane->point;
    point_at(r, lane->point, lane->n_points, is_last ? INFINITY : 0, direction_p);
    return *RN_POINT(r, at);
}

/* A cubic curve from the end of one lane to the begin of the other. */
static dt_status shape_link(roadnet *r, rn_link *l)
{
    rn_point da, db;
    const rn_point a = lane_end(r, RN_LANE(r, RN_ROAD(r, l->from)->lane + l->from_lane), 1, &da);
    const rn_point b = lane_end(r, RN_LANE(r, RN_ROAD(r, l->to)->lane + l->to_lane), 0, &db);
    const double reach = 0.4 * hypot(b.x - a.x, b.y - a.y);
    const rn_point c = {a.x + reach * da.x, a.y + reach * da.y}, d = {b.x - reach * db.x, b.y - reach * db.y};
    l->point = r->points.n;
    for (int k = 0; k < CURVE_POINTS; k++) {
        const double t = (double)k / (CURVE_POINTS - 1), u = 1 - t;
        rn_point *p;
        DT_TRY(rn_add(&r->points, sizeof(*p), &p));
        *p = (rn_point){u * u * u * a.x + 3 * u * u * t * c.x + 3 * u * t * t * d.x + t * t * t * b.x,
                        u * u * u * a.y + 3 * u * u * t * c.y + 3 * u * t * t * d.y + t * t * t * b.y};
    }
    l->n_points = CURVE_POINTS;
    return DT_OK;
}

/* ---- the whole network ------------------------------------------------------------------------------------------- */

static dt_status check_defined(const roadnet *r)
{
    for (int32_t k = 0; k < r->roads.n; k++) {
        const rn_road *road = RN_ROAD(r, k);
        const char *name = r->road_names.name[k];
        if (!road->is_there) {
            return DT_FAIL(DT_EDATA, "%s:%lld: road \"%s\" is named here and defined nowhere", r->path,
                           (long long)road->line, name);
        }
        for (int end = 0; end < 2; end++) {
            const int32_t node = end ? road->to : road->from;
            if (!RN_NODE(r, node)->is_there) {
                return DT_FAIL(DT_EDATA, "%s:%lld: road \"%s\" %s at intersection \"%s\", which is defined nowhere",
                               r->path, (long long)road->line, name, end ? "ends" : "begins", r->node_names.name[node]);
            }
        }
    }
    return DT_OK;
}

static dt_status check_link(const roadnet *r, const rn_link *l)
{
    const rn_road *from = RN_ROAD(r, l->from), *to = RN_ROAD(r, l->to);
    const char *node = r->node_names.name[l->node];
    const int64_t line = RN_NODE(r, l->node)->line;
    if (from->to != l->node || to->from != l->node) {
        return DT_FAIL(
            DT_EDATA, "%s:%lld: intersection \"%s\" leads from road \"%s\" to \"%s\", but \"%s\" does not %s it",
            r->path, (long long)line, node, r->road_names.name[l->from], r->road_names.name[l->to],
            r->road_names.name[from->to != l->node ? l->from : l->to], from->to != l->node ? "end at" : "begin at");
    }
    if (l->from_lane >= from->n_lanes || l->to_lane >= to->n_lanes) {
        const int is_from = l->from_lane >= from->n_lanes;
        return DT_FAIL(DT_EDATA, "%s:%lld: intersection \"%s\" names lane %d of road \"%s\", which has %d, from 0 on",
                       r->path, (long long)line, node, (int)(is_from ? l->from_lane : l->to_lane),
                       r->road_names.name[is_from ? l->from : l->to], (int)(is_from ? from->n_lanes : to->n_lanes));
    }
    return DT_OK;
}

/* By node, road and lane from the right: the order in which SUMO counts the links of a junction. */
static int compare_links(const void *x, const void *y)
{
    const rn_link *a = x, *b = y;
    const int64_t ka[6] = {a->node, a->from, -(int64_t)a->from_lane, a->to, -(int64_t)a->to_lane, a->movement};
    const int64_t kb[6] = {b->node, b->from, -(int64_t)b->from_lane, b->to, -(int64_t)b->to_lane, b->movement};
    for (int k = 0; k < 6; k++) {
        if (ka[k] != kb[k]) {
            return ka[k] < kb[k] ? -1 : 1;
        }
    }
    return 0;
}

dt_status roadnet_finish(roadnet *r)
{
    DT_TRY(check_defined(r));
    if (r->roads.n == 0) {
        return DT_FAIL(DT_EDATA, "%s: no road is in it", r->path);
    }
    for (int32_t k = 0; k < r->links.n; k++) {
        DT_TRY(check_link(r, RN_LINK(r, k)));
    }
    if (r->links.n > 0) {
        qsort(r->links.items, (size_t)r->links.n, sizeof(rn_link), compare_links);
    }
    for (int32_t k = 0; k < r->links.n; k++) {
        const rn_link *l = RN_LINK(r, k);
        rn_node *node = RN_NODE(r, l->node);
        node->link = node->n_links == 0 ? k : node->link;
        node->n_links++;
        const rn_link *before = k > 0 ? RN_LINK(r, k - 1) : NULL;
        if (before != NULL && before->node == l->node && before->from == l->from && before->from_lane == l->from_lane &&
            before->to == l->to && before->to_lane == l->to_lane) {
            return DT_FAIL(DT_EDATA,
                           "%s:%lld: intersection \"%s\" has two ways from lane %d of road \"%s\" to lane %d of \"%s\"",
                           r->path, (long long)node->line, r->node_names.name[l->node], (int)l->from_lane,
                           r->road_names.name[l->from], (int)l->to_lane, r->road_names.name[l->to]);
        }
    }
    for (int32_t k = 0; k < r->roads.n; k++) {
        rn_road *road = RN_ROAD(r, k);
        DT_TRY(shape_lanes(r, road));
        const rn_lane *lane = RN_LANE(r, road->lane);
        road->length = fmax(road->length > 0 ? road->length : shape_length(r, lane->point, lane->n_points), LANE_LEAST);
    }
    for (int32_t k = 0; k < r->links.n; k++) {
        rn_link *l = RN_LINK(r, k);
        if (l->n_points < 2) {
            DT_TRY(shape_link(r, l));
        }
        l->length = fmax(shape_length(r, l->point, l->n_points), LANE_LEAST);
    }
    return DT_OK;
}

/* ---- the conversion ---------------------------------------------------------------------------------------------- */

static dt_status read_whole(const char *path, dt_str *out)
{
    dt_source *s;
    DT_TRY(dt_source_open(path, &s));
    dt_status st = DT_OK;
    char *buf = dt_alloc(READ_BYTES);
    for (int64_t n = 1; st == DT_OK && n > 0;) {
        n = buf == NULL ? 0 : dt_source_read(s, buf, READ_BYTES);
        st = n < 0 ? dt_error_status() : DT_OK;
        if (n > 0) {
            dt_str_add_n(out, buf, (size_t)n);
        }
        if (out->bytes > FILE_MOST) {
            st = DT_FAIL(DT_EDATA, "%s: more than %d MiB of text", path, FILE_MOST >> 20);
        }
    }
    if (buf == NULL) {
        st = DT_FAIL(DT_ENOMEM, "no memory to read %s", path);
    }
    dt_free(buf);
    dt_source_close(s);
    DT_TRY(st);
    return dt_str_status(out);
}

/* The first character after blanks. */
static char first_letter(rn_text t)
{
    return t.text[strspn(t.text, " \t\r\n")];
}

static rn_text skip_mark(rn_text t)
{
    const size_t n = t.text != NULL && strncmp(t.text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    return (rn_text){t.text + n, t.bytes - n};
}

dt_status roadnet_read(roadnet *r, rn_demand *d, rn_text roads, rn_text flows)
{
    roads = skip_mark(roads);
    flows = d->path != NULL ? skip_mark(flows) : flows;
    const int is_json = first_letter(roads) == '{';
    if (!is_json && !isdigit((unsigned char)first_letter(roads))) {
        return DT_FAIL(DT_EDATA,
                       "%s: neither a roadnet of CityFlow (JSON, it begins with '{') nor of the City Brain Challenge "
                       "(text, it begins with a number)",
                       r->path);
    }
    if (d->path != NULL && (is_json ? first_letter(flows) != '[' : !isdigit((unsigned char)first_letter(flows)))) {
        return DT_FAIL(DT_EDATA, "%s: not a flow file of %s", d->path,
                       is_json ? "CityFlow, which begins with '['"
                               : "the City Brain Challenge, which begins with a number");
    }
    if (is_json) {
        DT_TRY(cityflow_read_roads(r, roads));
        return d->path == NULL ? DT_OK : cityflow_read_flows(d, r, flows);
    }
    if (d->path != NULL) {
        DT_TRY(citybrain_read_flows(d, r, flows));
    }
    return citybrain_read_roads(r, d, roads);
}

static void describe(const roadnet *r, const rn_demand *d, dt_str *notes)
{
    int32_t signals = 0;
    for (int32_t k = 0; k < r->nodes.n; k++) {
        signals += RN_NODE(r, k)->n_phases > 0;
    }
    dt_str_addf(notes, "%d roads, %d intersections, %d of them with signals\n", (int)r->roads.n, (int)r->nodes.n,
                (int)signals);
    if (r->carved_s > 0) {
        dt_str_addf(
            notes,
            "the last %g s of phases of %g s or more are yellow for what loses green: the format has no yellow\n",
            r->carved_s, 2 * r->carved_s);
    }
    if (d->path != NULL) {
        dt_str_addf(notes, "%d flows of %d types of vehicles\n", (int)d->flows.n, (int)d->types.n);
    }
}

static dt_status write_both(const roadnet *r, const rn_demand *d, const char *prefix)
{
    dt_str net = {0}, routes = {0}, path = {0};
    dt_status st = roadnet_write_net(r, &net);
    if (st == DT_OK && d->path != NULL) {
        st = roadnet_write_routes(r, d, &routes);
    }
    if (st == DT_OK) {
        dt_str_addf(&path, "%s.net.xml", prefix);
        st = dt_fs_write_text(&path, &net);
    }
    if (st == DT_OK && d->path != NULL) {
        dt_str_clear(&path);
        dt_str_addf(&path, "%s.rou.xml", prefix);
        st = dt_fs_write_text(&path, &routes);
    }
    dt_str_fini(&net);
    dt_str_fini(&routes);
    dt_str_fini(&path);
    return st;
}

dt_status roadnet_convert(const char *roads, const char *flows, const char *prefix, dt_str *notes)
{
    roadnet r = {.path = roads};
    rn_demand d = {.path = flows};
    dt_str road_text = {0}, flow_text = {0};
    dt_status st = read_whole(roads, &road_text);
    if (st == DT_OK && flows != NULL) {
        st = read_whole(flows, &flow_text);
    }
    if (st == DT_OK) {
        st = roadnet_read(&r, &d, (rn_text){dt_str_text(&road_text), road_text.bytes},
                          (rn_text){dt_str_text(&flow_text), flow_text.bytes});
    }
    if (st == DT_OK) {
        st = roadnet_finish(&r);
    }
    if (st == DT_OK) {
        st = write_both(&r, &d, prefix);
    }
    if (st == DT_OK) {
        describe(&r, &d, notes);
        st = dt_str_status(notes);
    }
    dt_str_fini(&road_text);
    dt_str_fini(&flow_text);
    roadnet_fini(&r);
    rn_demand_fini(&d);
    return st;
}
