/* SPDX-License-Identifier: Apache-2.0
 *
 * A network and its demand from files of SUMO. Kept: edges and lanes for cars with their lengths, limits and shapes;
 * connections with the lanes that run over junctions; which paths meet and which yield (<request>), letters of signals
 * and the steps of their programs. Where two paths meet is found from their shapes. Signals that SUMO steers together
 * are one junction here. A junction without a light on which no paths meet is none: traffic just continues.
 */
#include "netfile.h"
#include "sim.h"
#include "dtrain/checked.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH_LEAST 0.1  /* m, of a lane */
#define DRAWN_LEAST  1e-6 /* m, of its shape; shorter ones are a point */

#define COMPARED_MOST 20000000000LL /* points of paths at junctions: half a minute */

enum {
    CHAIN_MOST = 16,       /* lanes that a path over a junction consists of; SUMO makes 1 to 3 */
    PIECES_MOST = 1 << 24, /* of all lanes: 800 MB of them */
    ROOM_MOST = 1 << 28,   /* lanes, links */
    AREAS_MOST = 1 << 25   /* pairs of links of all junctions: 512 MB */
};

typedef struct builder {
    sim *s;
    net *n;
    netfile *f;
    file_connection **order; /* [connections] by junction, lane and link */
} builder;

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

/* The lane of the file is added to the end of a lane of the network. */
static void add_pieces(net *n, net_lane *l, const netfile *f, const file_lane *from)
{
    const double *p = (const double *)f->points.items + 2 * (size_t)from->point;
    double drawn = 0;
    for (int32_t k = 0; k + 1 < from->n_points; k++) {
        drawn += hypot(p[2 * k + 2] - p[2 * k], p[2 * k + 3] - p[2 * k + 1]);
    }
    const double length = most(from->length, LENGTH_LEAST), scale = drawn > DRAWN_LEAST ? drawn / length : 0;
    if (l->n_pieces == 0) {
        l->piece = n->piece + n->n_pieces;
    }
    double s = l->length;
    for (int32_t k = 0; k + 1 < from->n_points && scale > 0; k++) {
        const double dx = p[2 * k + 2] - p[2 * k], dy = p[2 * k + 3] - p[2 * k + 1], d = hypot(dx, dy);
        if (d > 0) {
            n->piece[n->n_pieces++] =
                (net_piece){s, p[2 * k], p[2 * k + 1], dx / d * scale, dy / d * scale, atan2(dy, dx)};
            l->n_pieces++;
            s += d / scale;
        }
    }
    if (l->n_pieces == 0) { /* a point */
        n->piece[n->n_pieces++] = (net_piece){0, p[0], p[1], 0, 0, 0};
        l->n_pieces++;
    }
    l->length += length;
    l->x0 = l->piece[0].x;
    l->y0 = l->piece[0].y;
    l->heading = l->piece[0].heading;
}

static net_lane *new_lane(net *n, double limit)
{
    net_lane *l = &n->lane[n->n_lanes++];
    *l = (net_lane){
        .limit = limit, .edge = NET_NONE, .left = NET_NONE, .right = NET_NONE, .via_of = NET_NONE, .before = NET_NONE};
    return l;
}

static void add_edges(const builder *b)
{
    net *n = b->n;
    for (int32_t k = 0; k < b->f->edges.n; k++) {
        file_edge *e = FILE_ITEM(b->f, edge, k);
        const int32_t first = n->n_lanes;
        if (!e->is_inside) {
            for (int32_t i = e->lane; i < e->lane + e->n_lanes; i++) {
                file_lane *l = FILE_ITEM(b->f, lane, i);
                if (l->is_open) {
                    l->lane = n->n_lanes;
                    add_pieces(n, new_lane(n, l->speed), b->f, l);
                }
            }
        }
        const int32_t n_lanes = n->n_lanes - first;
        if (n_lanes == 0) {
            continue;
        }
        e->edge = n->n_edges++;
        n->edge[e->edge] = (net_edge){.lane = first, .n_lanes = n_lanes, .junction = NET_NONE};
        for (int32_t i = 0; i < n_lanes; i++) {
            net_lane *l = &n->lane[first + i];
            l->edge = e->edge;
            l->right = i > 0 ? first + i - 1 : NET_NONE;
            l->left = i + 1 < n_lanes ? first + i + 1 : NET_NONE;
        }
    }
}

/* ---- junctions --------------------------------------------------------------------------------------------------- */

static file_junction *end_junction(const netfile *f, const file_connection *c)
{
    return FILE_ITEM(f, junction, FILE_ITEM(f, edge, FILE_ITEM(f, lane, c->from)->edge)->to);
}

/* The link of the file's junction: the place of one of the connection's lanes inside. */
static dt_status find_request(const builder *b, file_connection *c)
{
    const netfile *f = b->f;
    const file_junction *j = end_junction(f, c);
    for (int32_t via = c->via; via != NET_NONE;) { /* it ends: make_room has followed it */
        const file_lane *l = FILE_ITEM(f, lane, via);
        if (l->inside_of != NET_NONE && FILE_ITEM(f, junction, l->inside_of) == j) {
            c->request = l->inside_at;
            return c->request < j->n_requests || j->is_unregulated
                       ? DT_OK
                       : DT_FAIL_H(f->h, DT_EDATA, "%s:%d: <junction> has no <request> of index %d", f->path,
                                   (int)j->line, (int)c->request);
        }
        via = l->after;
    }
    return DT_FAIL_H(f->h, DT_EDATA, "%s:%d: <connection> its via is in no intLanes of its junction", f->path,
                     (int)c->line);
}

static const file_request *connection_request(const netfile *f, const file_connection *c)
{
    static const file_request none = {0}; /* without right of way: no two of its links meet */
    const file_junction *j = end_junction(f, c);
    if (j->is_unregulated && c->request >= j->n_requests) {
        return &none;
    }
    return FILE_ITEM(f, request, j->request + c->request);
}

/* Signals come first, in the order of the file; then junctions where paths meet. */
static dt_status number_junctions(const builder *b)
{
    const netfile *f = b->f;
    net *n = b->n;
    file_connection *all = f->connections.items;
    for (int32_t k = 0; k < f->connections.n; k++) {
        file_junction *j = end_junction(f, &all[k]);
        DT_TRY_H(find_request(b, &all[k]));
        if (all[k].signal == NET_NONE) {
            continue;
        }
        if (j->signal != NET_NONE && j->signal != all[k].signal) {
            return DT_FAIL_H(f->h, DT_EDATA, "%s:%d: <connection> two signals control its junction, \"%s\" and \"%s\"",
                             f->path, (int)all[k].line, names_get(&f->signal_names, j->signal),
                             names_get(&f->signal_names, all[k].signal));
        }
        j->signal = all[k].signal;
        FILE_ITEM(f, signal, j->signal)->is_used = 1;
    }
    for (int32_t g = 0; g < f->signals.n; g++) {
        file_signal *signal = FILE_ITEM(f, signal, g);
        signal->junction = signal->is_used ? net_add_junction(n) : NET_NONE;
    }
    n->n_signals = n->n_junctions;
    for (int32_t k = 0; k < f->connections.n; k++) {
        file_junction *j = end_junction(f, &all[k]);
        if (j->signal != NET_NONE) {
            j->group = FILE_ITEM(f, signal, j->signal)->junction;
        } else if (j->group == NET_NONE && !j->is_unregulated && net_any(connection_request(f, &all[k])->meets)) {
            j->group = net_add_junction(n);
        }
    }
    for (int32_t k = 0; k < f->connections.n; k++) {
        all[k].group = end_junction(f, &all[k])->group;
    }
    return DT_OK;
}

static int compare_junctions(const void *x, const void *y)
{
    const file_connection *a = *(file_connection *const *)x, *b = *(file_connection *const *)y;
    const int64_t ka[3] = {a->group, a->from, a->request}, kb[3] = {b->group, b->from, b->request};
    for (int k = 0; k < 3; k++) {
        if (ka[k] != kb[k]) {
            return ka[k] < kb[k] ? -1 : 1;
        }
    }
    return a->line < b->line ? -1 : a->line > b->line;
}

/* The edge that leads into a junction becomes one of its arms. */
static dt_status add_arm(const builder *b, net_junction *j, const file_connection *c)
{
    net *n = b->n;
    const int32_t edge = n->lane[FILE_ITEM(b->f, lane, c->from)->lane].edge;
    for (int32_t a = 0; a < j->n_arms; a++) {
        if (j->arm[a] == edge) {
            return DT_OK;
        }
    }
    if (j->n_arms == NET_MAX_ARMS) {
        return DT_FAIL_H(b->f->h, DT_EDATA, "%s:%d: <connection> its junction has more than %d roads that lead in",
                         b->f->path, (int)c->line, NET_MAX_ARMS);
    }
    j->slot[j->n_arms] = j->n_arms == 0 ? 0 : j->slot[j->n_arms - 1] + n->edge[j->arm[j->n_arms - 1]].n_lanes;
    j->neighbour[j->n_arms] = NET_NONE;
    j->arm[j->n_arms++] = edge;
    return DT_OK;
}

static dt_status add_link(const builder *b, file_connection *c)
{
    net *n = b->n;
    const netfile *f = b->f;
    const int32_t from = FILE_ITEM(f, lane, c->from)->lane, to = FILE_ITEM(f, lane, c->to)->lane, number = n->n_links++;
    if (n->lane[from].n_links == NET_MAX_LINKS) {
        return DT_FAIL_H(f->h, DT_EDATA, "%s:%d: <connection> more than %d of them begin on its lane", f->path,
                         (int)c->line, NET_MAX_LINKS);
    }
    if (n->lane[from].n_links++ == 0) {
        n->lane[from].link = number;
    }
    n->link[number] = (net_link){
        .from = from, .via = n->n_lanes, .to = to, .edge = n->lane[to].edge, .junction = c->group, .bit = NET_NONE};
    net_edge *e = &n->edge[n->lane[from].edge];
    if (e->n_out < NET_MAX_OUT) {
        net_add_way(n, n->lane[from].edge, n->lane[to].edge, 0);
    }
    const file_lane *inside = FILE_ITEM(f, lane, c->via);
    net_lane *via = new_lane(n, inside->speed > 0 ? inside->speed : n->lane[to].limit);
    via->via_of = number;
    for (int32_t k = c->via; k != NET_NONE; k = FILE_ITEM(f, lane, k)->after) {
        n->link[number].hold = via->length; /* where the last lane begins */
        add_pieces(n, via, f, FILE_ITEM(f, lane, k));
    }
    n->link[number].visible = c->visible;
    if (c->group == NET_NONE) {
        return DT_OK;
    }
    net_junction *j = &n->junction[c->group];
    if (j->n_links == NET_MAX_LINKS) {
        return DT_FAIL_H(f->h, DT_EDATA, "%s:%d: <connection> its junction has more than %d links", f->path,
                         (int)c->line, NET_MAX_LINKS);
    }
    if (j->n_links == 0) {
        net_begin_links(n, c->group, number);
    }
    n->link[number].bit = c->bit = j->n_links++;
    j->is_equal |= end_junction(f, c)->is_equal;
    if (c->is_stop && c->signal == NET_NONE && n->link[number].hold <= 0) {
        net_include(&j->stops, c->bit);
    }
    j->number[c->bit] = (uint16_t)(c->signal != NET_NONE && c->index < NET_MAX_LINKS ? c->index : NET_NO_NUMBER);
    e->junction = c->group;
    return add_arm(b, j, c);
}

/* Which paths meet and which yield, from the requests of the file. from, to: connections of one junction. */
static void add_conflicts(const builder *b, int32_t group, file_connection *const *from, file_connection *const *to)
{
    net *n = b->n;
    net_junction *j = &n->junction[group];
    net_make_areas(n, group);
    for (file_connection *const *x = from; x < to; x++) {
        const file_request *mine = connection_request(b->f, *x);
        for (file_connection *const *y = from; y < to; y++) {
            const file_request *other = connection_request(b->f, *y);
            if (end_junction(b->f, *x) != end_junction(b->f, *y)) {
                continue;
            }
            const int meets = net_has(&mine->meets, (*y)->request) || net_has(&other->meets, (*x)->request);
            const int yields = net_has(&mine->yields, (*y)->request) && !(*x)->is_first;
            if (meets) {
                net_include(&j->foes[(*x)->bit], (*y)->bit);
            }
            if (yields) {
                net_include(&j->responds[(*x)->bit], (*y)->bit);
            }
            if (!meets || !net_find_conflict_area(n, group, (*x)->bit, (*y)->bit)) {
                continue;
            }
            net_include(&j->crosses[(*x)->bit], (*y)->bit);
            if (yields) {
                net_link *l = &n->link[j->link + (*x)->bit];
                net_include(&j->yields[(*x)->bit], (*y)->bit);
                l->hold = least(l->hold, most(0, net_area_of(j, (*x)->bit, (*y)->bit)->in));
            }
        }
    }
}

static dt_status add_links(const builder *b)
{
    const int32_t n = b->f->connections.n;
    for (int32_t k = 0; k < n; k++) {
        DT_TRY_H(add_link(b, b->order[k]));
    }
    int64_t areas = 0;
    for (int32_t k = 0; k < b->n->n_junctions; k++) {
        areas += (int64_t)b->n->junction[k].n_links * b->n->junction[k].n_links;
    }
    if (areas >= AREAS_MOST) {
        return DT_FAIL_H(b->f->h, DT_EDATA, "%s: its junctions have %lld pairs of links, at most %d are simulated",
                         b->f->path, (long long)areas, AREAS_MOST);
    }
    b->n->area = b->f->h->alloc(b->f->h, (uint64_t)(areas + 1) * sizeof(*b->n->area));
    if (b->n->area == NULL) {
        return DT_FAIL_H(b->f->h, DT_ENOMEM, "no memory for the conflicts at %d junctions", (int)b->n->n_junctions);
    }
    for (int32_t k = 0, last; k < n; k = last) {
        for (last = k + 1; last < n && b->order[last]->group == b->order[k]->group; last++) {
        }
        if (b->order[k]->group != NET_NONE) {
            add_conflicts(b, b->order[k]->group, b->order + k, b->order + last);
        }
        if (b->n->n_compared > COMPARED_MOST) {
            return DT_FAIL_H(b->f->h, DT_EDATA,
                             "%s:%d: <connection> up to its junction, finding conflicts compares more than %lld points "
                             "of paths: they are too many, too long and too close",
                             b->f->path, (int)b->order[k]->line, COMPARED_MOST);
        }
    }
    return DT_OK;
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* The letters of a state, for the links of a signal's junction. */
static dt_status read_state(const builder *b, int32_t signal, const char *state, net_show *out)
{
    const netfile *f = b->f;
    const net_junction *j = &b->n->junction[FILE_ITEM(f, signal, signal)->junction];
    const int32_t n = (int32_t)strlen(state);
    *out = (net_show){0};
    for (int32_t k = j->link; k < j->link + j->n_links; k++) {
        const file_connection *c = b->order[k];
        if (c->signal != NET_NONE && c->index >= n) {
            return DT_FAIL_H(f->h, DT_EDATA, "%s:%d: <connection> linkIndex %d is outside state \"%s\" of \"%s\"",
                             f->path, (int)c->line, (int)c->index, state, names_get(&f->signal_names, signal));
        }
        const char letter = c->signal == NET_NONE ? 'o' : state[c->index]; /* without a light it yields */
        if (strchr("GgOo", letter) != NULL) {
            net_include(&out->green, c->bit);
        }
        if (strchr("go", letter) != NULL) {
            net_include(&out->minor, c->bit);
        }
        if (letter == 's') {
            net_include(&out->stop, c->bit);
        }
        if (strchr("yY", letter) != NULL) {
            net_include(&out->yellow, c->bit);
        }
    }
    return DT_OK;
}

/* Links that have no light of their own are no reason to call a state a phase. */
static net_links links_without_light(const builder *b, int32_t signal)
{
    const net_junction *j = &b->n->junction[FILE_ITEM(b->f, signal, signal)->junction];
    net_links links = {0};
    for (int32_t k = j->link; k < j->link + j->n_links; k++) {
        if (b->order[k]->signal == NET_NONE) {
            net_include(&links, b->order[k]->bit);
        }
    }
    return links;
}

static dt_status find_phase(const builder *b, int32_t signal, const net_show *show, int32_t *phase_p)
{
    const file_signal *g = FILE_ITEM(b->f, signal, signal);
    net_junction *j = &b->n->junction[g->junction];
    for (int32_t p = 0; p < j->n_phases; p++) {
        if (net_equal(j->phase[p].green, show->green) && net_equal(j->phase[p].minor, show->minor) &&
            net_equal(j->phase[p].stop, show->stop)) {
            *phase_p = p;
            return DT_OK;
        }
    }
    if (j->n_phases == NET_MAX_PHASES) {
        return DT_FAIL_H(b->f->h, DT_EDATA, "%s:%d: <tlLogic> \"%s\" has more than %d green phases", b->f->path,
                         (int)g->line, names_get(&b->f->signal_names, signal), NET_MAX_PHASES);
    }
    *phase_p = j->n_phases;
    j->phase[j->n_phases++] = *show;
    return DT_OK;
}

/* A program without green, of a road that is closed: of its steps the one that lets most pass is its only phase. */
static dt_status add_closed_phase(const builder *b, int32_t signal, net_step *step)
{
    const netfile *f = b->f;
    const file_signal *g = FILE_ITEM(f, signal, signal);
    net_show best = {.green = step[0].show.green, .minor = step[0].show.minor, .stop = step[0].show.stop};
    for (int32_t k = 1; k < g->n_steps; k++) {
        if (net_count(step[k].show.stop) > net_count(best.stop)) {
            best.stop = step[k].show.stop;
        }
    }
    dt_logf(f->h, 1, "%s:%d: <tlLogic> \"%s\" never shows green: it has one phase, at which %s", f->path, (int)g->line,
            names_get(&f->signal_names, signal),
            net_any(best.stop) ? "cars turn at red after a stop (state s)" : "no car passes but at yellow");
    return find_phase(b, signal, &best, &step[0].phase);
}

/* A state with green and without yellow is a phase; others lead to the next one. */
static dt_status add_program(const builder *b, int32_t signal)
{
    const netfile *f = b->f;
    net *n = b->n;
    const file_signal *g = FILE_ITEM(f, signal, signal);
    net_junction *j = &n->junction[g->junction];
    net_step *step = n->step + n->n_steps;
    const net_links free = links_without_light(b, signal);
    double cycle = 0;
    for (int32_t k = 0; k < g->n_steps; k++, n->n_steps++) {
        const file_step *from = FILE_ITEM(f, step, g->step + k);
        const size_t n_letters = strlen((const char *)f->text.items + from->state);
        j->n_numbers = (int32_t)(n_letters < NET_MAX_LINKS ? n_letters : NET_MAX_LINKS);
        step[k] = (net_step){.duration_s = from->duration_s, .phase = NET_NONE};
        DT_TRY_H(read_state(b, signal, (const char *)f->text.items + from->state, &step[k].show));
        cycle += from->duration_s;
        if (net_any(net_without(step[k].show.green, free)) && !net_any(step[k].show.yellow)) {
            DT_TRY_H(find_phase(b, signal, &step[k].show, &step[k].phase));
        }
    }
    if (!(cycle > 0)) {
        return DT_FAIL_H(f->h, DT_EDATA, "%s:%d: <tlLogic> \"%s\" has no phase that lasts", f->path, (int)g->line,
                         names_get(&f->signal_names, signal));
    }
    if (j->n_phases == 0) {
        DT_TRY_H(add_closed_phase(b, signal, step));
    }
    for (int32_t k = 2 * g->n_steps - 2; k >= 0; k--) {
        net_step *x = &step[k % g->n_steps];
        x->phase = x->phase != NET_NONE ? x->phase : step[(k + 1) % g->n_steps].phase;
    }
    j->step = step;
    j->n_steps = g->n_steps;
    net_links yields = {0};
    for (int32_t k = 0; k < g->n_steps; k++) {
        yields = net_union(yields, net_common(step[k].show.green, step[k].show.minor));
    }
    for (int32_t k = 0; k < j->n_links; k++) { /* a link that never has to yield has no place for it */
        net_link *l = &n->link[j->link + k];
        l->hold = net_has(&yields, k) ? l->hold : 0;
    }
    j->start = g->start;
    j->starts_with_episode = g->starts_with_episode;
    return DT_OK;
}

/* What is up the road from where an edge begins: a signal; or else the edge that has the most lanes. */
typedef struct upstream {
    int32_t signal, edge;
} upstream;

/* Of all edges; the caller frees it. */
static upstream *list_upstream(const net *n, const dt_host *h)
{
    upstream *of = h->alloc(h, (uint64_t)n->n_edges * sizeof(*of));
    if (of != NULL) {
        for (int32_t e = 0; e < n->n_edges; e++) {
            of[e] = (upstream){NET_NONE, NET_NONE};
        }
    }
    if (of != NULL) {
        for (int32_t k = 0; k < n->n_links; k++) {
            const net_link *l = &n->link[k];
            const int32_t from = n->lane[l->from].edge;
            upstream *u = &of[l->edge];
            if (u->signal == NET_NONE && l->junction != NET_NONE && l->junction < n->n_signals) {
                u->signal = l->junction;
            }
            u->edge = u->edge == NET_NONE || n->edge[from].n_lanes > n->edge[u->edge].n_lanes ? from : u->edge;
        }
    }
    return of;
}

/* The nearest signal up the road that leads in: over junctions without lights, the way that has the most lanes. */
static int32_t signal_before(const upstream *of, int32_t edge)
{
    enum { HOPS = 8 };
    for (int i = 0; i < HOPS && edge != NET_NONE; i++) {
        if (of[edge].signal != NET_NONE) {
            return of[edge].signal;
        }
        edge = of[edge].edge;
    }
    return NET_NONE;
}

static dt_status add_signals(const builder *b)
{
    net *n = b->n;
    for (int32_t g = 0; g < b->f->signals.n; g++) {
        if (FILE_ITEM(b->f, signal, g)->junction != NET_NONE) {
            DT_TRY_H(add_program(b, g));
        }
    }
    upstream *of = list_upstream(n, b->f->h);
    if (of == NULL) {
        return DT_FAIL_H(b->f->h, DT_ENOMEM, "no memory for the edges that lead to %d edges", (int)n->n_edges);
    }
    for (int32_t k = 0; k < n->n_signals; k++) {
        net_junction *j = &n->junction[k];
        const int32_t last = j->n_arms - 1, slots = j->slot[last] + n->edge[j->arm[last]].n_lanes;
        n->most_phases = n->most_phases > j->n_phases ? n->most_phases : j->n_phases;
        n->most_slots = n->most_slots > slots ? n->most_slots : slots;
        for (int32_t a = 0; a < j->n_arms; a++) {
            j->neighbour[a] = signal_before(of, j->arm[a]);
        }
    }
    b->f->h->release(b->f->h, of);
    return DT_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static dt_status make_room(const builder *b)
{
    const netfile *f = b->f;
    int64_t lanes = f->connections.n, pieces = (int64_t)f->points.n / 2 + f->lanes.n; /* lists: none above LIST_MOST */
    for (int32_t k = 0; k < f->lanes.n; k++) {
        lanes += FILE_ITEM(f, lane, k)->is_open;
    }
    for (int32_t k = 0; k < f->connections.n && pieces <= PIECES_MOST; k++) { /* several may run over one lane */
        const file_connection *c = FILE_ITEM(f, connection, k);
        int32_t n = 0;
        for (int32_t via = c->via; via != NET_NONE; via = FILE_ITEM(f, lane, via)->after) {
            pieces += FILE_ITEM(f, lane, via)->n_points;
            if (++n > CHAIN_MOST) {
                return DT_FAIL_H(f->h, DT_EDATA,
                                 "%s:%d: <connection> runs over more than %d lanes inside its junction, or in a circle",
                                 f->path, (int)c->line, CHAIN_MOST);
            }
        }
    }
    if (pieces > PIECES_MOST || lanes > ROOM_MOST) {
        return DT_FAIL_H(f->h, DT_EDATA,
                         "%s: its %lld lanes have %lld points or more; at most %d lanes and %d points fit", f->path,
                         (long long)lanes, (long long)pieces, ROOM_MOST, PIECES_MOST);
    }
    const int32_t junctions = f->junctions.n + f->signals.n; /* each of them that counts has a connection */
    const net_size size = {.lanes = (int32_t)lanes,
                           .edges = f->edges.n,
                           .links = f->connections.n,
                           .junctions = junctions < f->connections.n ? junctions : f->connections.n,
                           .pieces = (int32_t)pieces,
                           .steps = f->steps.n};
    size_t bytes;
    if (!net_size_bytes(&size, &bytes)) {
        return DT_FAIL_H(f->h, DT_EDATA,
                         "%s: %d lanes, %d connections, %d junctions and %d steps of signals need %zu MB, at most %zu "
                         "are given: cut the network to the part in use",
                         f->path, (int)size.lanes, (int)size.links, (int)size.junctions, (int)size.steps, bytes >> 20,
                         NET_BYTES_MOST >> 20);
    }
    return net_init(b->n, f->h, size);
}

static dt_status build_network(builder *b)
{
    netfile *f = b->f;
    DT_TRY_H(make_room(b));
    add_edges(b);
    if (b->n->n_edges == 0) {
        return DT_FAIL_H(f->h, DT_EDATA, "%s: the net has no lane for cars", f->path);
    }
    DT_TRY_H(number_junctions(b));
    b->order = f->h->alloc(f->h, ((uint64_t)f->connections.n + 1) * sizeof(*b->order));
    if (b->order == NULL) {
        return DT_FAIL_H(f->h, DT_ENOMEM, "no memory for %d connections", (int)f->connections.n);
    }
    for (int32_t k = 0; k < f->connections.n; k++) {
        b->order[k] = FILE_ITEM(f, connection, k);
    }
    qsort(b->order, (size_t)f->connections.n, sizeof(*b->order), compare_junctions);
    DT_TRY_H(add_links(b));
    return add_signals(b);
}

/* Edges after the k-th one of a trip that it gets to from a lane of that without a change of lanes, up to `deep`. */
static int32_t count_reachable_edges(const sim *s, const plan_trip *t, int32_t lane, int32_t k, int32_t deep)
{
    int32_t best = 0;
    if (k + 1 >= t->n_edges) {
        return deep; /* it leaves there: no lane is better */
    }
    const net_lane *l = &s->net.lane[lane];
    for (int32_t i = l->link; i < l->link + l->n_links && deep > 0; i++) {
        if (s->net.link[i].edge == PLAN_EDGE(&s->plan, t->edge + k + 1)) {
            const int32_t reach = 1 + count_reachable_edges(s, t, s->net.link[i].to, k + 1, deep - 1);
            best = best > reach ? best : reach;
        }
    }
    return best;
}

/* Lanes of its first edge on which a trip may begin. */
static uint64_t entry_lanes(const sim *s, const plan_trip *t)
{
    enum { DEEP = 6 };
    const net_edge *e = &s->net.edge[PLAN_EDGE(&s->plan, t->edge)];
    if (t->lane >= 0) {
        return (uint64_t)1 << t->lane;
    }
    uint64_t lanes = 0;
    int32_t best = -1;
    for (int32_t k = 0; k < e->n_lanes; k++) {
        const int32_t reach = t->lane == PLAN_LANE_BEST ? count_reachable_edges(s, t, e->lane + k, 0, DEEP) : 0;
        lanes = reach > best ? 0 : lanes;
        best = reach > best ? reach : best;
        lanes |= reach == best ? (uint64_t)1 << k : 0;
    }
    return lanes;
}

/* The queue of a trip: of all that wait for the same lanes of one edge. of_edge: the first source of an edge, + 1. */
static dt_status find_source(sim *s, list *sources, int32_t *of_edge, plan_trip *t)
{
    const int32_t e = PLAN_EDGE(&s->plan, t->edge);
    source *all = sources->items, *q;
    t->lanes = entry_lanes(s, t);
    int32_t last = NET_NONE;
    for (int32_t k = of_edge[e] - 1; k != NET_NONE; k = all[k].sibling - 1) {
        if (all[k].lanes == t->lanes) {
            t->source = k;
            return DT_OK;
        }
        last = k;
    }
    t->source = sources->n;
    DT_TRY_H(list_add(s->h, sources, sizeof(*q), &q));
    *q = (source){.edge = e, .is_sibling = last != NET_NONE, .lanes = t->lanes};
    if (last != NET_NONE) {
        ((source *)sources->items)[last].sibling = t->source + 1;
    } else {
        of_edge[e] = t->source + 1;
    }
    return DT_OK;
}

/* Sources for every edge on which a vehicle begins. */
static dt_status add_sources(sim *s)
{
    plan_trip *trip = s->plan.trips.items;
    list sources = {0};
    int32_t *of_edge = s->h->alloc(s->h, ((uint64_t)s->net.n_edges + 1) * sizeof(*of_edge));
    dt_status st =
        of_edge != NULL ? DT_OK : DT_FAIL_H(s->h, DT_ENOMEM, "no memory for sources on %d edges", (int)s->net.n_edges);
    for (int32_t k = 0; k < s->plan.trips.n && st == DT_OK; k++) {
        trip[k].source = NET_NONE;
        st = trip[k].type != NET_NONE ? find_source(s, &sources, of_edge, &trip[k]) : DT_OK;
    }
    s->h->release(s->h, of_edge);
    s->source = sources.items;
    s->n_sources = sources.n;
    return st;
}

/* All drive as the most common type does. */
static void set_drivers(sim *s)
{
    const trip_plan *p = &s->plan;
    const plan_type *t = plan_common_type(p);
    int64_t others = 0;
    s->least_m = t->length;
    for (int32_t k = 0; k < p->types.n; k++) {
        const plan_type *x = PLAN_TYPE(p, k);
        const int same = x->accel == t->accel && x->decel == t->decel && x->gap == t->gap && x->tau == t->tau &&
                         x->sigma == t->sigma && x->model == t->model;
        if (!same) {
            others += x->n_vehicles;
        }
        s->least_m = x->n_vehicles > 0 ? least(s->least_m, x->length) : s->least_m;
    }
    if (others > 0) {
        dt_logf(
            s->h, 1,
            "%s: %lld vehicles have another accel, decel, minGap, tau, sigma or carFollowModel than the most common "
            "vType: they drive as it does",
            s->c->routes_file, (long long)others);
    }
    if (t->tau < s->c->dt_s && t->model == MODEL_KRAUSS) {
        dt_logf(s->h, 1, "%s: tau %g s is less than a step: drivers react after dt_s = %g s", s->c->routes_file, t->tau,
                s->c->dt_s);
    }
    s->driver = (driver){.T = t->tau,
                         .a = t->accel,
                         .b = t->decel,
                         .s0 = t->gap,
                         .over_2_ab = 0.5 / sqrt(t->accel * t->decel),
                         .dt = s->c->dt_s,
                         .model = t->model};
    s->sigma = t->sigma;
}

dt_status scenario_build_from(sim *s, const xml_text *roads, const xml_text *routes)
{
    const traffic_config *c = s->c;
    netfile f = {0};
    builder b = {.s = s, .n = &s->net, .f = &f};
    dt_status st = netfile_read(&f, s->h, roads);
    if (st == DT_OK) {
        st = build_network(&b);
    }
    if (st == DT_OK) {
        st = route_init(&s->search, &s->net, s->h);
    }
    if (st == DT_OK) {
        st = plan_read(&s->plan, s->h, routes, &f, &s->net, &s->search, (file_time){c->begin_s},
                       (file_time){c->begin_s + c->episode_s});
    }
    s->h->release(s->h, b.order);
    netfile_fini(&f);
    DT_TRY_H(st);
    set_drivers(s);
    return add_sources(s);
}

dt_status scenario_build_net(sim *s)
{
    return scenario_build_from(s, &(xml_text){.path = s->c->net_file}, &(xml_text){.path = s->c->routes_file});
}
