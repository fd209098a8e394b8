/* SPDX-License-Identifier: Apache-2.0
 *
 * See net.h. Conflict areas are found from the geometry, by walking both paths: nothing has to be written down by hand
 * and a new shape of junction needs no new rules.
 */
#include "net.h"

#include <math.h>
#include <string.h>

#define CLEARANCE_M  2.2  /* between two centre lines that do not meet: a vehicle's width and a margin */
#define WALK_M       0.25 /* step along a path when areas are sought */
#define LATERAL_MPS2 5.5  /* the limit that SUMO's networks are built with */
#define STRAIGHT_RAD 1e-3
#define POINTS_MAX   512

dt_status net_init(net *n, const dt_host *h, net_size size)
{
    n->lane = h->alloc(h, (uint64_t)size.lanes * sizeof(*n->lane));
    n->edge = h->alloc(h, (uint64_t)size.edges * sizeof(*n->edge));
    n->link = h->alloc(h, (uint64_t)(size.links + 1) * sizeof(*n->link));
    n->junction = h->alloc(h, (uint64_t)(size.junctions + 1) * sizeof(*n->junction));
    n->area = size.areas > 0 ? h->alloc(h, (uint64_t)size.areas * sizeof(*n->area)) : NULL;
    n->piece = h->alloc(h, (uint64_t)(size.pieces + 1) * sizeof(*n->piece));
    n->step = h->alloc(h, (uint64_t)(size.steps + 1) * sizeof(*n->step));
    if (n->lane == NULL || n->edge == NULL || n->link == NULL || n->junction == NULL ||
        (n->area == NULL && size.areas > 0) || n->piece == NULL || n->step == NULL) {
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for a network of %d lanes", (int)size.lanes);
    }
    return DT_OK;
}

void net_fini(net *n, const dt_host *h)
{
    h->release(h, n->lane);
    h->release(h, n->edge);
    h->release(h, n->link);
    h->release(h, n->junction);
    h->release(h, n->area);
    h->release(h, n->piece);
    h->release(h, n->step);
    memset(n, 0, sizeof(*n));
}

void net_point(const net_lane *l, double s, double *x_p, double *y_p, double *heading_p)
{
    if (l->n_pieces > 0) {
        const net_piece *p = l->piece;
        while (p + 1 < l->piece + l->n_pieces && p[1].s <= s) {
            p++;
        }
        *x_p = p->x + (s - p->s) * p->dx;
        *y_p = p->y + (s - p->s) * p->dy;
        *heading_p = p->heading;
        return;
    }
    const double on = s < 0 ? 0 : s > l->length ? l->length : s, past = s - on;
    const double turned = l->heading + l->bend * on;
    double x = l->x0, y = l->y0;
    if (l->bend == 0) {
        x += on * cos(l->heading);
        y += on * sin(l->heading);
    } else {
        x += (sin(turned) - sin(l->heading)) / l->bend;
        y -= (cos(turned) - cos(l->heading)) / l->bend;
    }
    *x_p = x + past * cos(turned);
    *y_p = y + past * sin(turned);
    *heading_p = turned;
}

static net_lane *add_lane(net *n, double length, double limit, double x, double y, double heading, double bend)
{
    net_lane *l = &n->lane[n->n_lanes++];
    *l = (net_lane){.length = length,
                    .limit = limit,
                    .x0 = x,
                    .y0 = y,
                    .heading = heading,
                    .bend = bend,
                    .edge = NET_NONE,
                    .left = NET_NONE,
                    .right = NET_NONE,
                    .via_of = NET_NONE,
                    .before = NET_NONE};
    return l;
}

int32_t net_add_edge(net *n, int32_t n_lanes, double length, double limit, double x, double y, double heading,
                     double bend)
{
    const int32_t e = n->n_edges++, first = n->n_lanes;
    n->edge[e] = (net_edge){.lane = first, .n_lanes = n_lanes, .junction = NET_NONE};
    for (int32_t i = 0; i < n_lanes; i++) {
        const double aside = i * NET_LANE_M;
        net_lane *l = add_lane(n, length, limit, x - aside * sin(heading), y + aside * cos(heading), heading, bend);
        l->edge = e;
        l->right = i > 0 ? first + i - 1 : NET_NONE;
        l->left = i + 1 < n_lanes ? first + i + 1 : NET_NONE;
    }
    return e;
}

void net_add_way(net *n, int32_t from, int32_t to, double share)
{
    net_edge *e = &n->edge[from];
    e->out[e->n_out] = to;
    e->share[e->n_out++] = share;
}

static net_link *add_link(net *n, int32_t from, int32_t to)
{
    net_lane *l = &n->lane[from];
    if (l->n_links == 0) {
        l->link = n->n_links;
    }
    l->n_links++;
    net_link *k = &n->link[n->n_links++];
    *k = (net_link){
        .from = from, .via = NET_NONE, .to = to, .edge = n->lane[to].edge, .junction = NET_NONE, .bit = NET_NONE};
    return k;
}

void net_join(net *n, int32_t from, int32_t to)
{
    add_link(n, from, to);
    n->lane[to].before = from;
}

int32_t net_add_junction(net *n)
{
    net_junction *j = &n->junction[n->n_junctions];
    memset(j, 0, sizeof(*j));
    j->link = n->n_links;
    return n->n_junctions++;
}

void net_cross(net *n, int32_t junction, int32_t from, int32_t to, double limit, int32_t rank)
{
    net_junction *j = &n->junction[junction];
    double x, y, heading;
    net_point(&n->lane[from], n->lane[from].length, &x, &y, &heading);
    const net_lane *target = &n->lane[to];
    const double dx = target->x0 - x, dy = target->y0 - y, chord = hypot(dx, dy);
    const double turn = remainder(target->heading - heading, 2 * 3.14159265358979323846);
    double length = chord, bend = 0;
    if (fabs(turn) > STRAIGHT_RAD) { /* chord = 2 sin(turn / 2) / bend, length = turn / bend */
        bend = 2 * sin(0.5 * turn) / chord;
        length = turn / bend;
    } else {
        heading = atan2(dy, dx);
    }
    if (bend != 0) { /* turning no faster than is comfortable */
        limit = fmin(limit, sqrt(LATERAL_MPS2 / fabs(bend)));
    }
    const int32_t k = n->n_links;
    net_link *l = add_link(n, from, to);
    l->junction = junction;
    l->bit = j->n_links++;
    l->rank = rank;
    l->via = n->n_lanes;
    net_lane *via = add_lane(n, length, limit, x, y, heading, bend);
    via->via_of = k;
    n->edge[n->lane[from].edge].junction = junction;
}

/* The part of path a that is closer than CLEARANCE_M to path b; in > out where there is none. */
static net_area area_of(const net_lane *a, const net_lane *b)
{
    double bx[POINTS_MAX], by[POINTS_MAX], turned;
    const int n_b = (int)fmin(ceil(b->length / WALK_M) + 1, POINTS_MAX);
    for (int i = 0; i < n_b; i++) {
        net_point(b, b->length * i / (n_b - 1), &bx[i], &by[i], &turned);
    }
    net_area area = {a->length + 1, -1};
    const int n_a = (int)ceil(a->length / WALK_M) + 1;
    for (int i = 0; i < n_a; i++) {
        const double s = a->length * i / (n_a - 1);
        double x, y;
        net_point(a, s, &x, &y, &turned);
        for (int k = 0; k < n_b; k++) {
            const double dx = x - bx[k], dy = y - by[k];
            if (dx * dx + dy * dy < CLEARANCE_M * CLEARANCE_M) {
                area.in = fmin(area.in, s);
                area.out = fmax(area.out, s);
                break;
            }
        }
    }
    return area;
}

void net_make_areas(net *n, int32_t junction)
{
    net_junction *j = &n->junction[junction];
    j->area = n->area + n->n_areas;
    n->n_areas += j->n_links * j->n_links;
}

int net_meets(net *n, int32_t junction, int32_t a, int32_t b)
{
    const net_junction *j = &n->junction[junction];
    const net_link *la = &n->link[j->link + a], *lb = &n->link[j->link + b];
    if (la->from == lb->from) {
        return 0; /* one behind the other until they part */
    }
    const net_area area = area_of(&n->lane[la->via], &n->lane[lb->via]);
    const net_area other = area_of(&n->lane[lb->via], &n->lane[la->via]);
    if (area.in > area.out || other.in > other.out) {
        return 0;
    }
    j->area[a * j->n_links + b] = area;
    return 1;
}

void net_find_conflicts(net *n, int32_t junction)
{
    net_junction *j = &n->junction[junction];
    net_make_areas(n, junction);
    for (int32_t a = 0; a < j->n_links; a++) {
        for (int32_t b = 0; b < j->n_links; b++) {
            if (!net_meets(n, junction, a, b)) {
                continue;
            }
            const net_link *la = &n->link[j->link + a], *lb = &n->link[j->link + b];
            j->crosses[a] |= net_bit(b);
            if (la->rank < lb->rank || (la->rank == lb->rank && a > b)) {
                j->yields[a] |= net_bit(b);
            }
        }
    }
}
