/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes of the lanelets of a map. See lanelet2.h.
 *
 * A lanelet goes in the direction in which its left way is on its left: ways are turned round for it. One follows
 * another where it begins with the nodes that the other ends with, on both sides. It is next to one that shares a
 * border way in the same direction; of several such the first in the file is its neighbour. Nodes have x and y of their
 * own, as attributes or as tags local_x and local_y, or degrees: those become UTM, in the zone of the origin, less the
 * origin's place, as lanelet2's UtmProjector does; without an origin it is (0, 0), which the maps of INTERACTION count
 * from.
 */
#include <config.h>

#include "traffic/map/lanelet2.h"
#include "traffic/map/utm.h"
#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Bounds of lanelets are ways of two nodes at least, all of which are there. What no lanelet uses may lack anything, as
 * in a map that was cut out of a larger one. */
static dt_status find_bound(dt_lanelet2 *m, const dt_lanelet *l, int side)
{
    const char *where = side == DT_LEFT ? "left" : "right", *id = m->ways.name[l->way[side]];
    const dt_osm_way *way = &DT_OSM_AT(m->way, dt_osm_way, l->way[side]);
    if (!way->is_there || way->n < 2) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": lanelet %" PRId64 " has way %s on its %s, which %s", m->path, l->line,
                       l->id, id, where, way->is_there ? "does not have two nodes" : "does not exist");
    }
    for (int64_t i = 0; i < way->n; i++) {
        const int32_t number = DT_OSM_AT(m->way_node, int32_t, way->first + i);
        dt_osm_node *node = &DT_OSM_AT(m->node, dt_osm_node, number);
        if (!node->is_there) {
            return DT_FAIL(DT_EDATA,
                           "%s:%" PRId64 ": lanelet %" PRId64 " has way %s on its %s, whose node %s does not exist",
                           m->path, l->line, l->id, id, where, m->nodes.name[number]);
        }
        node->is_used = true;
    }
    return DT_OK;
}

static dt_status find_bounds(dt_lanelet2 *m)
{
    for (int64_t i = 0; i < m->lanelet.n; i++) {
        const dt_lanelet *l = &DT_OSM_AT(m->lanelet, dt_lanelet, i);
        DT_TRY(find_bound(m, l, DT_LEFT));
        DT_TRY(find_bound(m, l, DT_RIGHT));
    }
    return DT_OK;
}

/* Whether nodes have x and y of their own: all that are used, or none. With an origin all have latitude and longitude.
 */
static dt_status are_local(const dt_lanelet2 *m, bool *out_p)
{
    int64_t local = 0, used = 0;
    for (int64_t i = 0; i < m->node.n; i++) {
        if (!DT_OSM_AT(m->node, dt_osm_node, i).is_used) {
            continue;
        }
        const double *at = DT_OSM_AT(m->node, dt_osm_node, i).at;
        used++;
        const bool is_local = !isnan(at[DT_OSM_X]) && !isnan(at[DT_OSM_Y]);
        local += is_local;
        const bool is_global = !isnan(at[DT_OSM_LATITUDE]) && !isnan(at[DT_OSM_LONGITUDE]);
        if (!is_local && !is_global) {
            return DT_FAIL(DT_EDATA, "%s: node %s has neither x and y nor lat and lon", m->path, m->nodes.name[i]);
        }
        if (m->origin->is_given && !is_global) {
            return DT_FAIL(DT_EDATA, "%s: node %s has no lat and lon, which an origin needs", m->path,
                           m->nodes.name[i]);
        }
    }
    *out_p = local > 0 && !m->origin->is_given;
    return local == 0 || local == used || m->origin->is_given
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s: %" PRId64 " of %" PRId64 " nodes have x and y: all must, or none", m->path,
                         local, used);
}

/* x and y of every node. */
static dt_status place_nodes(dt_lanelet2 *m)
{
    bool is_local = false;
    DT_TRY(are_local(m, &is_local));
    if (is_local) {
        return DT_OK;
    }
    const dt_map_origin *o = m->origin;
    int64_t begin = 0; /* lanelets use some */
    while (!DT_OSM_AT(m->node, dt_osm_node, begin).is_used) {
        begin++;
    }
    const double *first = DT_OSM_AT(m->node, dt_osm_node, begin).at;
    const int zone = dt_utm_zone(o->is_utm ? first[DT_OSM_LONGITUDE] : o->at[1]);
    double origin[2] = {o->at[0], o->at[1]};
    if (!o->is_utm) {
        dt_utm_project(o->at[0], o->at[1], zone, origin);
    } else if (first[DT_OSM_LATITUDE] < 0) {
        origin[1] -= DT_UTM_SOUTH_M;
    }
    for (int64_t i = begin; i < m->node.n; i++) {
        double *at = DT_OSM_AT(m->node, dt_osm_node, i).at;
        if (!DT_OSM_AT(m->node, dt_osm_node, i).is_used) {
            continue;
        }
        if (!(fabs(at[DT_OSM_LONGITUDE] - (6 * zone - 183)) <= DT_UTM_FROM_ZONE_MAX)) {
            return DT_FAIL(DT_EDATA,
                           "%s: node %s is at longitude %g, too far from zone %d of the origin: import.map_origin sets "
                           "the origin of positions",
                           m->path, m->nodes.name[i], at[DT_OSM_LONGITUDE], zone);
        }
        dt_utm_project(at[DT_OSM_LATITUDE], at[DT_OSM_LONGITUDE], zone, &at[DT_OSM_X]);
        at[DT_OSM_X] -= origin[0];
        at[DT_OSM_Y] -= origin[1];
    }
    return DT_OK;
}

static int32_t node_at(const dt_lanelet2 *m, int32_t number, int64_t i)
{
    return DT_OSM_AT(m->way_node, int32_t, DT_OSM_AT(m->way, dt_osm_way, number).first + i);
}

static dt_status read_way(const dt_lanelet2 *m, int32_t number, dt_polyline *out)
{
    dt_polyline_clear(out);
    for (int64_t i = 0; i < DT_OSM_AT(m->way, dt_osm_way, number).n; i++) {
        const double *at = DT_OSM_AT(m->node, dt_osm_node, node_at(m, number, i)).at;
        DT_TRY(dt_polyline_add(out, at[DT_OSM_X], at[DT_OSM_Y]));
    }
    return DT_OK;
}

/* The middle node, of two the place between them. */
static void middle_point(const dt_polyline *p, double xy[2])
{
    const double *a = p->n > 2 ? p->xy + 2 * (p->n / 2) : p->xy, *b = p->n > 2 ? a : p->xy + 2;
    xy[0] = 0.5 * (a[0] + b[0]);
    xy[1] = 0.5 * (a[1] + b[1]);
}

/* Which side of a line a point is on, by the piece of it that is nearest: above 0 is left. */
static double signed_side(const dt_polyline *p, const double xy[2])
{
    double nearest = INFINITY, side = 0;
    for (int64_t i = 0; i + 1 < p->n; i++) {
        const double *a = p->xy + 2 * i, dx = a[2] - a[0], dy = a[3] - a[1], px = xy[0] - a[0], py = xy[1] - a[1];
        const double square = dx * dx + dy * dy;
        const double t = square > 0 ? fmin(fmax((px * dx + py * dy) / square, 0), 1) : 0;
        const double distance = hypot(px - t * dx, py - t * dy);
        if (square > 0 && distance < nearest) {
            nearest = distance;
            side = dx * py - dy * px;
        }
    }
    return side;
}

/* Turns round the ways on whose wrong side the other one is, as lanelet2's geometry::align does. */
static void direct_bounds(const dt_lanelet2 *m, dt_lanelet *l, dt_polyline line[2])
{
    double middle[2][2];
    middle_point(&line[DT_LEFT], middle[DT_LEFT]);
    middle_point(&line[DT_RIGHT], middle[DT_RIGHT]);
    l->is_turned[DT_LEFT] = signed_side(&line[DT_LEFT], middle[DT_RIGHT]) > 0;
    l->is_turned[DT_RIGHT] = signed_side(&line[DT_RIGHT], middle[DT_LEFT]) < 0;
    for (int side = 0; side < 2; side++) {
        const int64_t last = DT_OSM_AT(m->way, dt_osm_way, l->way[side]).n - 1;
        const bool is_turned = l->is_turned[side];
        l->begin[side] = node_at(m, l->way[side], is_turned ? last : 0);
        l->end[side] = node_at(m, l->way[side], is_turned ? 0 : last);
        if (is_turned) {
            dt_polyline_reverse(&line[side]);
        }
    }
}

static dt_status apply_rules(const dt_lanelet2 *m, dt_lanelet *l)
{
    for (int64_t i = 0; i < l->n_rules; i++) {
        const char *id = m->wanted_rules.name[DT_OSM_AT(m->rule_ref, int32_t, l->rule + i)];
        const int32_t rule = dt_names_find(&m->rules, id);
        if (rule < 0) {
            return DT_FAIL(DT_EDATA,
                           "%s:%" PRId64 ": lanelet %" PRId64 " refers to regulatory element %s, which does not exist",
                           m->path, l->line, l->id, id);
        }
        const double limit = DT_OSM_AT(m->rule_limit, double, rule);
        l->limit = limit > 0 && (!(l->limit > 0) || limit < l->limit) ? limit : l->limit;
    }
    return DT_OK;
}

/* Room for the lines of a lanelet at a time. */
typedef struct lines {
    dt_polyline side[2], centre;
    double *width;
} lines;

static dt_status make_lane(dt_lanelet2 *m, dt_lanelet *l, lines *r)
{
    char id[DT_OSM_ID_BYTES];
    snprintf(id, sizeof(id), "%" PRId64, l->id);
    DT_TRY(read_way(m, l->way[DT_LEFT], &r->side[DT_LEFT]));
    DT_TRY(read_way(m, l->way[DT_RIGHT], &r->side[DT_RIGHT]));
    direct_bounds(m, l, r->side);
    DT_TRY(dt_polyline_between(&r->side[DT_LEFT], &r->side[DT_RIGHT], &r->centre, &r->width));
    DT_TRY(apply_rules(m, l));
    const dt_road_lane lane = {
        .id = l->id, .kind = l->kind, .limit = l->limit, .xy = r->centre.xy, .width = r->width, .n = r->centre.n};
    return dt_lane_builder_add(&m->book, l->line, id, &lane);
}

static dt_status make_lanes(dt_lanelet2 *m)
{
    lines r = {.width = NULL};
    dt_status st = DT_OK;
    for (int64_t i = 0; i < m->lanelet.n && st == DT_OK; i++) {
        st = make_lane(m, &DT_OSM_AT(m->lanelet, dt_lanelet, i), &r);
    }
    dt_polyline_fini(&r.side[DT_LEFT]);
    dt_polyline_fini(&r.side[DT_RIGHT]);
    dt_polyline_fini(&r.centre);
    dt_free(r.width);
    return st;
}

/* ---- neighbours and successors ---------------------------------------------------------------------------------- */

/* Lanelets by two keys, ascending, those of equal keys in the order of the file. */
typedef struct entry {
    int32_t key[2], lane;
} entry;

static int compare_keys(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    for (int i = 0; i < 2; i++) {
        if (x->key[i] != y->key[i]) {
            return x->key[i] < y->key[i] ? -1 : 1;
        }
    }
    return (x->lane > y->lane) - (x->lane < y->lane);
}

/* The first entry of these keys, n: there is none. */
static int64_t find_entry(const entry *list, int64_t n, int32_t first, int32_t second)
{
    const entry wanted = {.key = {first, second}, .lane = -1};
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (compare_keys(&list[mid], &wanted) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < n && list[lo].key[0] == first && list[lo].key[1] == second ? lo : n;
}

static dt_status link_lanes(dt_lanelet2 *m, entry *list)
{
    const int64_t n = m->lanelet.n;
    for (int64_t i = 0; i < n; i++) {
        const dt_lanelet *l = &DT_OSM_AT(m->lanelet, dt_lanelet, i);
        list[i] = (entry){.key = {l->begin[DT_LEFT], l->begin[DT_RIGHT]}, .lane = (int32_t)i};
    }
    qsort(list, (size_t)n, sizeof(*list), compare_keys);
    for (int64_t i = 0; i < n; i++) {
        const int32_t *to = DT_OSM_AT(m->lanelet, dt_lanelet, i).end;
        for (int64_t k = find_entry(list, n, to[DT_LEFT], to[DT_RIGHT]);
             k < n && list[k].key[0] == to[DT_LEFT] && list[k].key[1] == to[DT_RIGHT]; k++) {
            DT_TRY(dt_roads_link(&m->book.roads, (int32_t)i, list[k].lane));
        }
    }
    return DT_OK;
}

/* side of a lane: the lanes that have the same way on its other side, in the same direction. */
static void find_neighbours(dt_lanelet2 *m, entry *list, int side, int32_t *out)
{
    const int64_t n = m->lanelet.n;
    for (int64_t i = 0; i < n; i++) {
        const dt_lanelet *l = &DT_OSM_AT(m->lanelet, dt_lanelet, i);
        list[i] = (entry){.key = {l->way[1 - side], l->is_turned[1 - side]}, .lane = (int32_t)i};
    }
    qsort(list, (size_t)n, sizeof(*list), compare_keys);
    for (int64_t i = 0; i < n; i++) {
        const dt_lanelet *l = &DT_OSM_AT(m->lanelet, dt_lanelet, i);
        const int64_t k = find_entry(list, n, l->way[side], l->is_turned[side]);
        out[i] = k < n && list[k].lane != (int32_t)i ? list[k].lane : -1;
    }
}

static dt_status connect_lanes(dt_lanelet2 *m)
{
    entry *list = dt_alloc_n((size_t)m->lanelet.n, sizeof(*list));
    if (list == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %" PRId64 " lanelets", m->lanelet.n);
    }
    const dt_status st = link_lanes(m, list);
    find_neighbours(m, list, DT_LEFT, m->book.roads.left);
    find_neighbours(m, list, DT_RIGHT, m->book.roads.right);
    dt_free(list);
    return st;
}

dt_status dt_lanelet2_build_lanes(dt_lanelet2 *m)
{
    DT_TRY(find_bounds(m));
    DT_TRY(place_nodes(m));
    DT_TRY(make_lanes(m));
    return connect_lanes(m);
}
