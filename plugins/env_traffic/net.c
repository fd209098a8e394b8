/* SPDX-License-Identifier: Apache-2.0
 *
 * See net.h. Conflict areas are found from the geometry, by walking both paths: nothing has to be written down by hand
 * and a new shape of junction needs no new rules.
 */
#include "net.h"
#include "dtrain/checked.h"

#include <math.h>
#include <string.h>

#define CLEARANCE_M  2.2  /* between two centre lines that do not meet: a vehicle's width and a margin */
#define WALK_M       0.25 /* step along a path when areas are sought */
#define LATERAL_MPS2 5.5  /* the limit that SUMO's networks are built with */
#define STRAIGHT_RAD 1e-3
#define POINTS_MAX   512
#define WALKS_MAX    2048 /* the same of the path that is walked: longer ones in longer steps */

int net_size_bytes(const net_size *size, size_t *bytes_p)
{
    *bytes_p = 0;
    return dt_grow_size(bytes_p, (size_t)size->lanes, sizeof(net_lane)) &&
           dt_grow_size(bytes_p, (size_t)size->edges, sizeof(net_edge)) &&
           dt_grow_size(bytes_p, (size_t)size->links,
                        sizeof(net_link) + 4 * sizeof(net_links) + sizeof(uint8_t) + sizeof(uint16_t)) &&
           dt_grow_size(bytes_p, (size_t)size->junctions, sizeof(net_junction)) &&
           dt_grow_size(bytes_p, (size_t)size->pieces, sizeof(net_piece)) &&
           dt_grow_size(bytes_p, (size_t)size->steps, sizeof(net_step)) && *bytes_p <= NET_BYTES_MOST;
}

dt_status net_init(net *n, const dt_host *h, net_size size)
{
    n->lane = h->alloc(h, (uint64_t)size.lanes * sizeof(*n->lane));
    n->edge = h->alloc(h, (uint64_t)size.edges * sizeof(*n->edge));
    n->link = h->alloc(h, (uint64_t)(size.links + 1) * sizeof(*n->link));
    n->junction = h->alloc(h, (uint64_t)(size.junctions + 1) * sizeof(*n->junction));
    net_links **const sets[] = {&n->crosses, &n->yields, &n->foes, &n->responds};
    int has_sets = 1;
    for (size_t k = 0; k < sizeof(sets) / sizeof(sets[0]); k++) {
        *sets[k] = h->alloc(h, (uint64_t)(size.links + 1) * sizeof(**sets[k]));
        has_sets &= *sets[k] != NULL;
    }
    n->best = h->alloc(h, (uint64_t)(size.links + 1) * sizeof(*n->best));
    n->number = h->alloc(h, (uint64_t)(size.links + 1) * sizeof(*n->number));
    n->area = size.areas > 0 ? h->alloc(h, (uint64_t)size.areas * sizeof(*n->area)) : NULL;
    n->piece = h->alloc(h, (uint64_t)(size.pieces + 1) * sizeof(*n->piece));
    n->step = h->alloc(h, (uint64_t)(size.steps + 1) * sizeof(*n->step));
    if (n->lane == NULL || n->edge == NULL || n->link == NULL || n->junction == NULL || !has_sets || n->best == NULL ||
        n->number == NULL || (n->area == NULL && size.areas > 0) || n->piece == NULL || n->step == NULL) {
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
    h->release(h, n->crosses);
    h->release(h, n->yields);
    h->release(h, n->foes);
    h->release(h, n->responds);
    h->release(h, n->best);
    h->release(h, n->number);
    h->release(h, n->area);
    h->release(h, n->piece);
    h->release(h, n->step);
    memset(n, 0, sizeof(*n));
}

void net_point(const net_lane *l, double s, double *x_p, double *y_p, double *heading_p)
{
    if (l->n_pieces > 0) {
        const net_piece *p = l->piece;
        for (int32_t n = l->n_pieces; n > 1;) { /* the last of these n that begins at s or before, or the first */
            const int32_t half = n / 2;
            p = p[half].s <= s ? p + half : p; /* no branch: it cannot be guessed */
            n -= half;
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

void net_join_lanes(net *n, int32_t from, int32_t to)
{
    add_link(n, from, to);
    n->lane[to].before = from;
}

int32_t net_add_junction(net *n)
{
    net_junction *j = &n->junction[n->n_junctions];
    memset(j, 0, sizeof(*j));
    net_begin_links(n, n->n_junctions, n->n_links);
    return n->n_junctions++;
}

void net_begin_links(net *n, int32_t junction, int32_t link)
{
    net_junction *j = &n->junction[junction];
    j->link = link;
    j->crosses = n->crosses + link;
    j->yields = n->yields + link;
    j->foes = n->foes + link;
    j->responds = n->responds + link;
    j->best = n->best + link;
    j->number = n->number + link;
}

void net_add_turn(net *n, int32_t junction, int32_t from, int32_t to, double limit, int32_t rank)
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
    l->visible = NET_VISIBLE_M;
    l->via = n->n_lanes;
    net_lane *via = add_lane(n, length, limit, x, y, heading, bend);
    via->via_of = k;
    n->edge[n->lane[from].edge].junction = junction;
}

enum { PART = 16 }; /* points of a path that have a box of their own */

typedef struct path_box {
    double left, right, low, high;
} path_box;

typedef struct path {
    double x[POINTS_MAX], y[POINTS_MAX];
    path_box box[(POINTS_MAX + PART - 1) / PART];
    int n;
} path;

static void walk_lane_path(const net_lane *l, path *out)
{
    double turned;
    out->n = (int)fmin(ceil(l->length / WALK_M) + 1, POINTS_MAX);
    for (int i = 0; i < out->n; i++) {
        net_point(l, l->length * i / (out->n - 1), &out->x[i], &out->y[i], &turned);
        path_box *b = &out->box[i / PART];
        if (i % PART == 0) {
            *b = (path_box){out->x[i], out->x[i], out->y[i], out->y[i]};
        }
        b->left = fmin(b->left, out->x[i]);
        b->right = fmax(b->right, out->x[i]);
        b->low = fmin(b->low, out->y[i]);
        b->high = fmax(b->high, out->y[i]);
    }
}

/* Is a point of the path nearer than CLEARANCE_M? *n_p: how many pairs were compared, boxes too. */
static int is_near(const path *b, double x, double y, int64_t *n_p)
{
    for (int k = 0; k < b->n; k += PART) {
        const path_box *box = &b->box[k / PART];
        const int end = k + PART < b->n ? k + PART : b->n;
        ++*n_p;
        if (box->left - x >= CLEARANCE_M || x - box->right >= CLEARANCE_M || box->low - y >= CLEARANCE_M ||
            y - box->high >= CLEARANCE_M) {
            continue;
        }
        for (int i = k; i < end; i++, ++*n_p) {
            const double dx = x - b->x[i], dy = y - b->y[i];
            if (dx * dx + dy * dy < CLEARANCE_M * CLEARANCE_M) {
                return 1;
            }
        }
    }
    return 0;
}

/* The part of path a that is closer than CLEARANCE_M to path b; in > out where there is none. */
static net_area conflict_area(const net_lane *a, const net_lane *b, int64_t *n_p)
{
    path other;
    double turned;
    walk_lane_path(b, &other);
    net_area area = {a->length + 1, -1};
    const int n_a = (int)fmin(ceil(a->length / WALK_M) + 1, WALKS_MAX);
    for (int i = 0; i < n_a; i++) {
        const double s = a->length * i / (n_a - 1);
        double x, y;
        net_point(a, s, &x, &y, &turned);
        if (is_near(&other, x, y, n_p)) {
            area.in = fmin(area.in, s);
            area.out = fmax(area.out, s);
        }
    }
    *n_p += n_a + other.n;
    return area;
}

void net_make_areas(net *n, int32_t junction)
{
    net_junction *j = &n->junction[junction];
    j->area = n->area + n->n_areas;
    n->n_areas += j->n_links * j->n_links;
}

int net_find_conflict_area(net *n, int32_t junction, int32_t a, int32_t b)
{
    const net_junction *j = &n->junction[junction];
    const net_link *la = &n->link[j->link + a], *lb = &n->link[j->link + b];
    if (la->from == lb->from) {
        return 0; /* one behind the other until they part */
    }
    const net_area area = conflict_area(&n->lane[la->via], &n->lane[lb->via], &n->n_compared);
    const net_area other = conflict_area(&n->lane[lb->via], &n->lane[la->via], &n->n_compared);
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
            if (!net_find_conflict_area(n, junction, a, b)) {
                continue;
            }
            const net_link *la = &n->link[j->link + a], *lb = &n->link[j->link + b];
            net_include(&j->crosses[a], b);
            if (la->rank < lb->rank || (la->rank == lb->rank && a > b)) {
                net_include(&j->yields[a], b);
            }
        }
    }
}

/* ---- what signals show ------------------------------------------------------------------------------------------- */

int net_letter(const net *n, const net_junction *j, const net_show *show, int32_t bit)
{
    if (!net_has(&show->green, bit)) {
        return net_has(&show->stop, bit) ? NET_STOP : NET_RED;
    }
    const int32_t rank = n->link[j->link + bit].rank;
    int yields = net_has(&show->minor, bit);
    if (yields || j->n_steps > 0) { /* only links of scenarios built by code have ranks */
        return yields ? NET_YIELD : NET_GO;
    }
    const net_links others = net_common(show->green, j->crosses[bit]);
    for (int32_t k = net_next(&others, 0); k != NET_NONE && !yields; k = net_next(&others, k + 1)) {
        yields = n->link[j->link + k].rank > rank;
    }
    return yields ? NET_YIELD : NET_GO;
}

int net_merge(const net *n, const net_junction *j, int32_t a, int32_t b)
{
    return n->link[j->link + a].to == n->link[j->link + b].to;
}

/* Pairs of links from several lanes that a phase gives priority simultaneously though their ways cross; or though they
 * merge and the net does not determine which one of the two yields. */
static int32_t net_conflicts(const net *n, const net_junction *j, const net_show *show)
{
    int32_t count = 0;
    for (int32_t a = 0; a < j->n_links; a++) {
        for (int32_t b = a + 1; b < j->n_links && net_letter(n, j, show, a) == NET_GO; b++) {
            const int has_priority = net_has(&j->responds[a], b) != net_has(&j->responds[b], a);
            count += net_has(&j->foes[a], b) && net_letter(n, j, show, b) == NET_GO &&
                     n->link[j->link + a].from != n->link[j->link + b].from && !(has_priority && net_merge(n, j, a, b));
        }
    }
    return count;
}

/* What follows from the phases of a signal. */
static void finish_phases(const net *n, net_junction *j)
{
    net_links green = {0}, sound = {0};
    for (int32_t p = 0; p < j->n_phases; p++) {
        const net_show *show = &j->phase[p];
        j->conflicts[p] = net_conflicts(n, j, show);
        green = net_union(green, show->green);
        sound = j->conflicts[p] == 0 ? net_union(sound, show->green) : sound;
        for (int32_t bit = 0; bit < j->n_links; bit++) {
            const int letter = net_letter(n, j, show, bit);
            if (letter == NET_GO) {
                net_include(&j->goes[p], bit);
            }
            j->best[bit] = (uint8_t)(letter > j->best[bit] ? letter : j->best[bit]);
        }
    }
    j->lonely = net_without(green, sound);
}

void net_finish_signals(net *n)
{
    for (int32_t k = 0; k < n->n_signals; k++) {
        net_junction *j = &n->junction[k];
        if (j->n_numbers == 0) {
            for (int32_t bit = 0; bit < j->n_links; bit++) {
                j->foes[bit] = j->crosses[bit];
                j->responds[bit] = j->yields[bit];
                j->number[bit] = (uint16_t)bit;
            }
        }
        j->n_numbers = j->n_numbers == 0 ? j->n_links : j->n_numbers;
        n->most_numbers = n->most_numbers > j->n_numbers ? n->most_numbers : j->n_numbers;
        finish_phases(n, j);
    }
    for (int32_t k = n->n_signals; k < n->n_junctions; k++) {
        for (int32_t bit = 0; bit < n->junction[k].n_links; bit++) {
            net_links *responds = &n->junction[k].responds[bit];
            *responds = net_union(*responds, n->junction[k].yields[bit]);
        }
    }
}
