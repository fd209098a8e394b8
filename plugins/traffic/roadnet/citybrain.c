/* SPDX-License-Identifier: Apache-2.0
 *
 * Road networks and flows of the City Brain Challenge (KDD Cup 2021), numbers in lines:
 *
 *   N, then N intersections: latitude longitude id has-signal
 *   M, then M streets of three lines: node node length limit lanes lanes id id (there and back; the lanes of the first
 *     id lead from the first node to the second), and for the lanes of each direction left, straight, right (0 or 1)
 *   S, then S signals: node and the roads that leave it to the north, east, south and west, -1 where there is none
 *
 *   F, then F flows of three lines: begin end interval; number of roads; roads
 *
 * Signals have the eight phases of the challenge: left turns of two opposite arms, straight ahead from them, the same
 * of the other two, and both movements of one arm; right turns are always green. The texts have no program: the fixed
 * one written here serves the first four for PROTECTED_S, and those of one arm for ONE_ARM_S.
 */
#include <config.h>

#include "traffic/roadnet/roadnet.h"

#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARMS = 4,
    TURNS = 3,
    LANES_MOST = 16,
    ROADS_MOST = 64,
    PHASES = 8,
    MOVEMENTS = 16,
    ITEMS_MOST = 1 << 24,
    NAME_BYTES = 32
};
#define LANE_M         3.2
#define LENGTH_MOST    1e6
#define SPEED_LEAST    0.1
#define SPEED_MOST     200
#define TIME_MOST      1e9
#define RADIUS_M       12     /* of a junction; roads keep a share of their length */
#define EARTH_M        111320 /* of a degree of a great circle */
#define PROTECTED_S    25
#define ONE_ARM_S      10
#define YELLOW_S       3
#define RED_S          2
#define INTERVAL_LEAST 1e-3
#define PI             3.14159265358979323846

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const char *path, *at, *end;
    int64_t line;
} reader;

static dt_status fail_at(const reader *t, const char *what, const char *problem)
{
    return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s %s", t->path, t->line, what, problem);
}

/* The next number of the text, wherever its lines break. */
static dt_status next_number(reader *t, const char *what, double low, double high, double *out_p)
{
    while (t->at < t->end && strchr(" \t\r\n", *t->at) != NULL) {
        t->line += *t->at++ == '\n';
    }
    char word[64];
    size_t n = 0;
    while (t->at < t->end && strchr(" \t\r\n", *t->at) == NULL && n + 1 < sizeof(word)) {
        word[n++] = *t->at++;
    }
    word[n] = '\0';
    if (n == 0) {
        return fail_at(t, what, "is missing: the file ends");
    }
    if (!dt_parse_f64(word, out_p)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is \"%s\", which is not a number", t->path, t->line, what, word);
    }
    if (!(*out_p >= low && *out_p <= high)) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %s is %s, outside %g ... %g", t->path, t->line, what, word, low,
                       high);
    }
    return DT_OK;
}

static dt_status next_count(reader *t, const char *what, int64_t low, int64_t high, int64_t *out_p)
{
    double v;
    DT_TRY(next_number(t, what, (double)low, (double)high, &v));
    if (v != floor(v)) {
        return fail_at(t, what, "is not a whole number");
    }
    *out_p = (int64_t)v;
    return DT_OK;
}

#define ID_MOST (INT64_C(1) << 53) /* whole numbers that a double has */

/* An id of a node or road as its name. */
static dt_status next_name(reader *t, const char *what, char name[NAME_BYTES])
{
    int64_t id = -1;
    DT_TRY(next_count(t, what, -1, ID_MOST, &id));
    snprintf(name, NAME_BYTES, "%" PRId64, id);
    return DT_OK;
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

typedef struct turns {
    uint8_t may[LANES_MOST][TURNS];
} turns;

typedef struct town {
    roadnet *r;
    reader t;
    rn_list permissions; /* turns of each road */
    rn_list arms;        /* int32_t[ARMS] of each node, roads that leave it; -1 */
    rn_list signals;     /* int32_t, nodes */
    rn_list out;         /* int32_t, roads by the node where they begin */
    rn_list out_of;      /* int32_t [nodes + 1], ranges of out */
    const rn_demand *d;
    uint64_t *pairs; /* [n_pairs] sorted: from << 32 | to, of roads that routes have one after the other */
    size_t n_pairs;
} town;

typedef struct node_arms {
    int32_t road[ARMS];
} node_arms;

static dt_status read_nodes(town *w)
{
    int64_t n;
    reader *t = &w->t;
    DT_TRY(next_count(t, "the number of intersections", 1, ITEMS_MOST, &n));
    double sum_lat = 0, sum_lon = 0;
    for (int64_t k = 0; k < n; k++) {
        double lat, lon, has_signal;
        char name[NAME_BYTES];
        int32_t number;
        DT_TRY(next_number(t, "a latitude", -90, 90, &lat));
        DT_TRY(next_number(t, "a longitude", -180, 180, &lon));
        DT_TRY(next_name(t, "an intersection", name));
        DT_TRY(next_number(t, "the flag of a signal", 0, 1, &has_signal));
        DT_TRY(rn_node_number(w->r, name, &number));
        if (RN_NODE(w->r, number)->is_there) {
            return fail_at(t, name, "is defined twice");
        }
        *RN_NODE(w->r, number) = (rn_node){.x = lon, .y = lat, .line = t->line, .is_there = 1, .radius = RADIUS_M};
        node_arms *arms;
        DT_TRY(rn_add(&w->arms, sizeof(*arms), &arms));
        *arms = (node_arms){{-1, -1, -1, -1}};
        sum_lat += lat;
        sum_lon += lon;
    }
    const double lat0 = sum_lat / (double)n, lon0 = sum_lon / (double)n;
    for (int32_t k = 0; k < w->r->nodes.n; k++) {
        rn_node *node = RN_NODE(w->r, k);
        node->x = (node->x - lon0) * EARTH_M * cos(lat0 * PI / 180);
        node->y = (node->y - lat0) * EARTH_M;
    }
    return DT_OK;
}

static dt_status find_node(const town *w, const char *name, int32_t *number_p)
{
    *number_p = dt_names_find(&w->r->node_names, name);
    return *number_p >= 0 ? DT_OK
                          : DT_FAIL(DT_EDATA, "%s:%" PRId64 ": intersection %s is not among those above", w->t.path,
                                    w->t.line, name);
}

static dt_status add_road(town *w, const char *name, rn_road road, int64_t n_lanes, double limit)
{
    roadnet *r = w->r;
    int32_t number;
    road.lane = r->lanes.n;
    road.n_lanes = (int32_t)n_lanes;
    road.point = r->points.n;
    road.n_points = 2;
    DT_TRY(rn_road_number(r, name, &number));
    if (RN_ROAD(r, number)->is_there) {
        return fail_at(&w->t, name, "is a road twice");
    }
    for (int end = 0; end < 2; end++) {
        rn_point *p;
        const rn_node *node = RN_NODE(r, end ? road.to : road.from);
        DT_TRY(rn_add(&r->points, sizeof(*p), &p));
        *p = (rn_point){node->x, node->y};
    }
    for (int64_t k = 0; k < n_lanes; k++) {
        rn_lane *lane;
        DT_TRY(rn_add(&r->lanes, sizeof(*lane), &lane));
        *lane = (rn_lane){.width = LANE_M, .limit = limit};
    }
    *RN_ROAD(r, number) = road;
    while (w->permissions.n <= number) {
        turns *p;
        DT_TRY(rn_add(&w->permissions, sizeof(*p), &p));
    }
    return DT_OK;
}

static dt_status read_street(town *w)
{
    reader *t = &w->t;
    char name[4][NAME_BYTES];
    double length, limit;
    int64_t lanes[2];
    int32_t node[2];
    for (int k = 0; k < 2; k++) {
        DT_TRY(next_name(t, "an end of a street", name[k]));
        DT_TRY(find_node(w, name[k], &node[k]));
    }
    DT_TRY(next_number(t, "the length of a street", 0.1, LENGTH_MOST, &length));
    DT_TRY(next_number(t, "the limit of a street", SPEED_LEAST, SPEED_MOST, &limit));
    for (int k = 0; k < 2; k++) {
        DT_TRY(next_count(t, "the lanes of a road", 0, LANES_MOST, &lanes[k]));
    }
    for (int k = 0; k < 2; k++) {
        DT_TRY(next_name(t, "a road", name[2 + k]));
    }
    for (int k = 0; k < 2; k++) {
        if (lanes[k] == 0) { /* a one-way street */
            continue;
        }
        const rn_road road = {.line = t->line, .is_there = 1, .from = node[k], .to = node[1 - k], .length = length};
        DT_TRY(add_road(w, name[2 + k], road, lanes[k], limit));
        turns *p = RN_AT(w->permissions, turns, dt_names_find(&w->r->road_names, name[2 + k]));
        for (int64_t i = 0; i < lanes[k]; i++) {
            for (int turn = 0; turn < TURNS; turn++) {
                int64_t may;
                DT_TRY(next_count(t, "a permission of a lane (left, straight, right)", 0, 1, &may));
                p->may[i][turn] = (uint8_t)may;
            }
        }
    }
    return DT_OK;
}

static dt_status read_arms(town *w)
{
    reader *t = &w->t;
    char name[NAME_BYTES];
    int32_t node;
    DT_TRY(next_name(t, "the intersection of a signal", name));
    DT_TRY(find_node(w, name, &node));
    node_arms *arms = RN_AT(w->arms, node_arms, node);
    int n = 0;
    for (int a = 0; a < ARMS; a++) {
        char road[NAME_BYTES];
        DT_TRY(next_name(t, "an arm of a signal", road));
        if (strcmp(road, "-1") == 0) {
            continue;
        }
        const int32_t number = dt_names_find(&w->r->road_names, road);
        if (number < 0 || RN_ROAD(w->r, number)->from != node) {
            return DT_FAIL(DT_EDATA,
                           "%s:%" PRId64 ": the signal of intersection %s has the arm %s, but no such road "
                           "leaves it",
                           t->path, t->line, name, road);
        }
        arms->road[a] = number;
        n++;
    }
    if (n == 0) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": the signal of intersection %s has no arm", t->path, t->line, name);
    }
    int32_t *signal;
    DT_TRY(rn_add(&w->signals, sizeof(*signal), &signal));
    *signal = node;
    return DT_OK;
}

/* ---- movements --------------------------------------------------------------------------------------------------- */

static double bearing(const roadnet *r, const rn_road *road)
{
    const rn_node *a = RN_NODE(r, road->from), *b = RN_NODE(r, road->to);
    return atan2(b->y - a->y, b->x - a->x);
}

static rn_turn turn_by_angle(const roadnet *r, const rn_road *from, const rn_road *to)
{
    const double d = remainder(bearing(r, to) - bearing(r, from), 2 * PI);
    if (from->from == to->to) {
        return RN_BACK;
    }
    return fabs(d) < PI / 4 ? RN_STRAIGHT : d > 0 ? RN_LEFT : RN_RIGHT;
}

/* The arm of a signal over which a road comes in: where the road back leaves; -1: none. */
static int arm_of(const town *w, const node_arms *arms, const rn_road *from)
{
    for (int a = 0; a < ARMS; a++) {
        if (arms->road[a] >= 0 && RN_ROAD(w->r, arms->road[a])->to == from->from) {
            return a;
        }
    }
    return -1;
}

static rn_turn turn_of(const town *w, const node_arms *arms, const rn_road *from, int32_t to)
{
    static const rn_turn by_arm[ARMS] = {RN_BACK, RN_LEFT, RN_STRAIGHT, RN_RIGHT}; /* arms clockwise */
    const int in = arm_of(w, arms, from);
    for (int a = 0; a < ARMS && in >= 0; a++) {
        if (arms->road[a] == to) {
            return by_arm[(a - in + ARMS) % ARMS];
        }
    }
    return turn_by_angle(w->r, from, RN_ROAD(w->r, to));
}

static int compare_u64(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static int is_driven(const town *w, int32_t from, int32_t to)
{
    const uint64_t key = (uint64_t)from << 32 | (uint32_t)to;
    return w->n_pairs > 0 && bsearch(&key, w->pairs, w->n_pairs, sizeof(key), compare_u64) != NULL;
}

static dt_status list_pairs(town *w)
{
    const rn_demand *d = w->d;
    size_t n = 0;
    w->pairs = dt_alloc_n((size_t)d->roads.n + 1, sizeof(*w->pairs));
    if (w->pairs == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %d roads of routes", (int)d->roads.n);
    }
    for (int32_t f = 0; f < d->flows.n; f++) {
        const rn_flow *flow = RN_AT(d->flows, rn_flow, f);
        for (int32_t k = flow->road; k + 1 < flow->road + flow->n_roads; k++) {
            w->pairs[n++] = (uint64_t)*RN_AT(d->roads, int32_t, k) << 32 | (uint32_t)*RN_AT(d->roads, int32_t, k + 1);
        }
    }
    qsort(w->pairs, n, sizeof(*w->pairs), compare_u64);
    w->n_pairs = n;
    return DT_OK;
}

/* Where a road begins and ends, by node. */
static dt_status list_roads(town *w)
{
    const roadnet *r = w->r;
    int32_t *item;
    for (int32_t k = 0; k <= r->nodes.n; k++) {
        DT_TRY(rn_add(&w->out_of, sizeof(*item), &item));
    }
    for (int32_t k = 0; k < r->roads.n; k++) {
        DT_TRY(rn_add(&w->out, sizeof(*item), &item));
    }
    int32_t *first = w->out_of.items, *out = w->out.items;
    for (int32_t k = 0; k < r->roads.n; k++) {
        first[RN_ROAD(r, k)->from + 1]++;
    }
    for (int32_t k = 0; k < r->nodes.n; k++) {
        first[k + 1] += first[k];
    }
    for (int32_t k = r->roads.n - 1; k >= 0; k--) { /* first[node + 1] moves down to the begin of the next range */
        out[--first[RN_ROAD(r, k)->from + 1]] = k;
    }
    for (int32_t k = 0; k < r->nodes.n; k++) {
        first[k] = first[k + 1];
    }
    first[r->nodes.n] = r->roads.n;
    for (int32_t k = 0; k < r->nodes.n; k++) {
        if (first[k + 1] - first[k] > ROADS_MOST) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": %d roads leave intersection %s, at most %d can", w->t.path,
                           RN_NODE(r, k)->line, (int)(first[k + 1] - first[k]), r->node_names.name[k], ROADS_MOST);
        }
    }
    return DT_OK;
}

static dt_status add_link(town *w, int32_t from, int32_t to, int32_t lane, rn_turn turn)
{
    const rn_road *a = RN_ROAD(w->r, from), *b = RN_ROAD(w->r, to);
    const int32_t from_right = a->n_lanes - 1 - lane;
    const int32_t to_right = from_right < b->n_lanes ? from_right : b->n_lanes - 1;
    rn_link *l;
    DT_TRY(rn_add(&w->r->links, sizeof(*l), &l));
    *l = (rn_link){.node = a->to,
                   .movement = (int32_t)turn * ARMS,
                   .from = from,
                   .to = to,
                   .from_lane = lane,
                   .to_lane = b->n_lanes - 1 - to_right,
                   .turn = turn};
    return DT_OK;
}

/* All ways out of a road: at signals the lanes that may; elsewhere, all. */
static dt_status add_links(town *w, int32_t from)
{
    static const int column[] = {[RN_STRAIGHT] = 1, [RN_RIGHT] = 2, [RN_LEFT] = 0, [RN_BACK] = 0};
    const rn_road *road = RN_ROAD(w->r, from);
    const int32_t *first = w->out_of.items, *out = w->out.items;
    const node_arms *arms = RN_AT(w->arms, node_arms, road->to);
    const int in = arm_of(w, arms, road);
    const turns *p = RN_AT(w->permissions, turns, from);
    for (int32_t k = first[road->to]; k < first[road->to + 1]; k++) {
        const rn_turn turn = turn_of(w, arms, road, out[k]);
        if (turn == RN_BACK && !is_driven(w, from, out[k])) {
            continue;
        }
        const int32_t before = w->r->links.n;
        for (int32_t lane = 0; lane < road->n_lanes; lane++) {
            if (in < 0 || (turn == RN_BACK ? lane == 0 : p->may[lane][column[turn]] != 0)) {
                DT_TRY(add_link(w, from, out[k], lane, turn));
            }
        }
        if (w->r->links.n == before && is_driven(w, from, out[k])) { /* no lane may, but routes go there */
            DT_TRY(add_link(w, from, out[k], turn == RN_LEFT ? 0 : road->n_lanes - 1, turn));
        }
        for (int32_t l = before; l < w->r->links.n && in >= 0; l++) {
            RN_LINK(w->r, l)->movement += in;
        }
    }
    return DT_OK;
}

/* A phase of these movements (bits). */
static dt_status add_phase(roadnet *r, uint32_t green, double duration_s)
{
    const int32_t first = r->movements.n;
    for (int32_t m = 0; m < MOVEMENTS; m++) {
        int32_t *kept;
        if ((green >> m & 1) != 0) {
            DT_TRY(rn_add(&r->movements, sizeof(*kept), &kept));
            *kept = m;
        }
    }
    rn_phase *phase;
    DT_TRY(rn_add(&r->phases, sizeof(*phase), &phase));
    *phase = (rn_phase){.duration_s = duration_s,
                        .yellow_s = YELLOW_S,
                        .red_s = RED_S,
                        .movement = first,
                        .n_movements = r->movements.n - first};
    return DT_OK;
}

static uint32_t bit_of(rn_turn turn, int arm)
{
    return UINT32_C(1) << ((uint32_t)turn * ARMS + (uint32_t)arm);
}

/* there: a bit for each movement of the node. */
static dt_status add_phases(town *w, int32_t node, uint32_t there)
{
    static const struct {
        rn_turn turn[2];
        int arm[2];
    } phases[PHASES] = {{{RN_LEFT, RN_LEFT}, {0, 2}},     {{RN_STRAIGHT, RN_STRAIGHT}, {0, 2}},
                        {{RN_LEFT, RN_LEFT}, {1, 3}},     {{RN_STRAIGHT, RN_STRAIGHT}, {1, 3}},
                        {{RN_LEFT, RN_STRAIGHT}, {0, 0}}, {{RN_LEFT, RN_STRAIGHT}, {1, 1}},
                        {{RN_LEFT, RN_STRAIGHT}, {2, 2}}, {{RN_LEFT, RN_STRAIGHT}, {3, 3}}};
    roadnet *r = w->r;
    rn_node *n = RN_NODE(r, node);
    uint32_t right = 0, served = 0;
    for (int arm = 0; arm < ARMS; arm++) {
        right |= there & bit_of(RN_RIGHT, arm);
    }
    n->phase = r->phases.n;
    for (int p = 0; p < PHASES; p++) {
        const uint32_t a = there & bit_of(phases[p].turn[0], phases[p].arm[0]);
        const uint32_t b = there & bit_of(phases[p].turn[1], phases[p].arm[1]);
        uint32_t green = a | b;
        if (green == 0 || (p >= PHASES / 2 && (a == 0 || b == 0))) { /* nothing, or what another phase is already */
            continue;
        }
        for (int k = 0; k < 2 && phases[p].turn[0] == RN_LEFT; k++) { /* turning back goes with left turns */
            green |= there & bit_of(RN_BACK, phases[p].arm[k]);
        }
        served |= green;
        DT_TRY(add_phase(r, green | right, p < PHASES / 2 ? PROTECTED_S : ONE_ARM_S));
    }
    for (int arm = 0; arm < ARMS; arm++) { /* turning back from where nothing turns left */
        if ((there & bit_of(RN_BACK, arm) & ~served) != 0) {
            DT_TRY(add_phase(r, bit_of(RN_BACK, arm) | right, ONE_ARM_S));
        }
    }
    n->n_phases = r->phases.n - n->phase; /* none: right turns alone need no signal */
    return DT_OK;
}

static dt_status add_signals(town *w)
{
    const roadnet *r = w->r;
    uint32_t *there = dt_alloc_n((size_t)r->nodes.n + 1, sizeof(*there));
    if (there == NULL) {
        return DT_FAIL(DT_ENOMEM, "no memory for %d intersections", (int)r->nodes.n);
    }
    for (int32_t k = 0; k < r->links.n; k++) {
        there[RN_LINK(r, k)->node] |= UINT32_C(1) << RN_LINK(r, k)->movement;
    }
    dt_status st = DT_OK;
    for (int32_t k = 0; k < w->signals.n && st == DT_OK; k++) {
        const int32_t node = *RN_AT(w->signals, int32_t, k);
        st = RN_NODE(r, node)->n_phases == 0
                 ? add_phases(w, node, there[node])
                 : DT_FAIL(DT_EDATA, "%s: intersection %s has two signals", w->t.path, r->node_names.name[node]);
    }
    dt_free(there);
    return st;
}

/* Roads that come into a signal, but over none of its arms. */
static dt_status check_arms(const town *w)
{
    for (int32_t s = 0; s < w->signals.n; s++) {
        RN_NODE(w->r, *RN_AT(w->signals, int32_t, s))->n_links = 1; /* a mark, until links are counted */
    }
    dt_status st = DT_OK;
    for (int32_t k = 0; k < w->r->roads.n && st == DT_OK; k++) {
        const rn_road *road = RN_ROAD(w->r, k);
        if (road->is_there && RN_NODE(w->r, road->to)->n_links != 0 &&
            arm_of(w, RN_AT(w->arms, node_arms, road->to), road) < 0) {
            st = DT_FAIL(DT_EDATA,
                         "%s:%" PRId64 ": road %s comes into the signal of intersection %s, none of whose arms "
                         "leads back to where it begins",
                         w->t.path, road->line, w->r->road_names.name[k], w->r->node_names.name[road->to]);
        }
    }
    for (int32_t k = 0; k < w->r->nodes.n; k++) {
        RN_NODE(w->r, k)->n_links = 0;
    }
    return st;
}

/* Roads that only routes name. */
static dt_status check_routes(const town *w)
{
    for (int32_t k = 0; k < w->r->roads.n; k++) {
        const rn_road *road = RN_ROAD(w->r, k);
        if (!road->is_there) {
            return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": a route names road %s, which is not in %s", w->d->path,
                           road->line, w->r->road_names.name[k], w->t.path);
        }
    }
    return DT_OK;
}

static dt_status read_town(town *w)
{
    int64_t n;
    DT_TRY(read_nodes(w));
    DT_TRY(next_count(&w->t, "the number of streets", 1, ITEMS_MOST, &n));
    for (int64_t k = 0; k < n; k++) {
        DT_TRY(read_street(w));
    }
    DT_TRY(next_count(&w->t, "the number of signals", 0, ITEMS_MOST, &n));
    for (int64_t k = 0; k < n; k++) {
        DT_TRY(read_arms(w));
    }
    DT_TRY(check_routes(w));
    DT_TRY(check_arms(w));
    DT_TRY(list_roads(w));
    DT_TRY(list_pairs(w));
    for (int32_t k = 0; k < w->r->roads.n; k++) {
        if (RN_ROAD(w->r, k)->is_there) {
            DT_TRY(add_links(w, k));
        }
    }
    return add_signals(w);
}

dt_status citybrain_read_roads(roadnet *r, const rn_demand *d, rn_text text)
{
    town w = {.r = r, .d = d, .t = {.path = r->path, .at = text.text, .end = text.text + text.bytes, .line = 1}};
    const dt_status st = read_town(&w);
    rn_list *const all[] = {&w.permissions, &w.arms, &w.signals, &w.out, &w.out_of};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        dt_free(all[k]->items);
    }
    dt_free(w.pairs);
    return st;
}

/* ---- demand ------------------------------------------------------------------------------------------------------ */

static dt_status read_flow(rn_demand *d, roadnet *r, reader *t)
{
    rn_flow *kept, flow = {.road = d->roads.n};
    int64_t n;
    DT_TRY(next_number(t, "the begin of a flow", 0, TIME_MOST, &flow.begin_s));
    flow.line = t->line;
    DT_TRY(next_number(t, "the end of a flow", 0, TIME_MOST, &flow.end_s));
    DT_TRY(next_number(t, "the interval of a flow", 0, TIME_MOST, &flow.period_s));
    DT_TRY(next_count(t, "the number of roads of a flow", 1, ITEMS_MOST, &n));
    if (flow.end_s < flow.begin_s) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": a flow ends at %g s before it begins at %g s", t->path, flow.line,
                       flow.end_s, flow.begin_s);
    }
    if (flow.period_s < INTERVAL_LEAST && flow.end_s != flow.begin_s) {
        return DT_FAIL(DT_EDATA, "%s:%" PRId64 ": interval %g s of a flow is below %g s", t->path, flow.line,
                       flow.period_s, INTERVAL_LEAST);
    }
    for (int64_t k = 0; k < n; k++) {
        char name[NAME_BYTES];
        int32_t number, *road;
        DT_TRY(next_name(t, "a road of a flow", name));
        DT_TRY(rn_road_number(r, name, &number));
        if (RN_ROAD(r, number)->line == 0) {
            RN_ROAD(r, number)->line = t->line; /* for the message, should the network not have it */
        }
        DT_TRY(rn_add(&d->roads, sizeof(*road), &road));
        *road = number;
    }
    flow.n_roads = (int32_t)n;
    DT_TRY(rn_add(&d->flows, sizeof(*kept), &kept));
    *kept = flow;
    return DT_OK;
}

dt_status citybrain_read_flows(rn_demand *d, roadnet *r, rn_text text)
{
    reader t = {.path = d->path, .at = text.text, .end = text.text + text.bytes, .line = 1};
    int64_t n;
    rn_type *type;
    DT_TRY(rn_add(&d->types, sizeof(*type), &type));
    /* the challenge states none of these; those of CityFlow's examples, and drivers that differ */
    *type = (rn_type){.length = 5,
                      .width = 2,
                      .accel = 2,
                      .decel = 4.5,
                      .emergency_decel = 4.5,
                      .gap = 2.5,
                      .tau = 1,
                      .speed = SPEED_MOST,
                      .sigma = 0.5};
    DT_TRY(next_count(&t, "the number of flows", 0, ITEMS_MOST, &n));
    for (int64_t k = 0; k < n; k++) {
        DT_TRY(read_flow(d, r, &t));
    }
    return DT_OK;
}
