/* SPDX-License-Identifier: Apache-2.0
 *
 * See junction.h. Gap acceptance over conflict areas follows the usual model of unsignalised junctions (HCM 2010, ch.
 * 19; Treiber & Kesting 2013, ch. 14.5), with the gap derived from the two vehicles' own travel times. Drivers accept
 * shorter gaps the longer they have waited (Mahmassani & Sheffi 1981, "Using gap sequences to estimate gap acceptance
 * functions"). GAP_S, MERGE_BRAKE, GAP_LEAST_S and IMPATIENT_S are fitted to waiting times measured in SUMO 1.15
 * (tests/env_traffic/test_yield.c).
 */
#include "junction.h"

#define GAP_S       2.0 /* s, between leaving an area and the arrival of who goes first, without a light */
#define GAP_LEAST_S 0.7 /* the same of a driver that is impatient */
#define GAP_LIGHT_S 1.5 /* the same where a light permits to go */
#define MERGE_BRAKE                                                                                                    \
    0.8 /* m/s^2, a merging vehicle makes those that go first brake no harder than this, without a light */
#define IMPATIENT_S                                                                                                    \
    12.0 /* a driver that has stood first for so long accepts the least gap; before that, one in between */
#define CLEAR_S      0.5   /* s, between who leaves an area and the arrival of the next one */
#define YELLOW_BRAKE 3.5   /* m/s^2, who would have to brake harder than this and b passes at yellow (ITE: 3.05) */
#define COMMITTED    5.0   /* m/s^2, who would have to brake harder does not stop any more */
#define MOVING_MPS   3.0   /* a queue behind the junction that moves at least so makes room */
#define CRAWL_MPS    2.0   /* who is slower in an area may have to wait there; and has stopped, where one must */
#define SHORT_M      100.0 /* a lane from whose start somebody may be at its line too soon */
#define AT_LINE_M    3.0   /* who stands no further from a line is the next to pass it */
#define VISIBLE_M    4.5   /* without a light, who must yield sees the others from here on before its line */
#define SURE_SHARE   0.8   /* of COMMITTED: who brakes less than this can still be asked to yield */

/* Time for d metres from speed v, accelerating by a up to want. */
static double travel_s(double d, double v, double a, double want)
{
    if (d <= 0) {
        return 0;
    }
    const double top = most(v, want), ramp = (top * top - v * v) / (2 * a);
    if (d <= ramp) {
        return (sqrt(v * v + 2 * a * d) - v) / a;
    }
    return (top - v) / a + (d - ramp) / top;
}

typedef struct crossing {
    const net_junction *j;
    const net_link *link;
    comer by; /* the vehicle that asks */
} crossing;

static double arrival_s(const sim *s, const crossing *c, double at)
{
    const double a =
        s->driver.model == MODEL_KRAUSS ? s->driver.a * (1 - 0.5 * s->sigma) : s->driver.a; /* on average */
    return travel_s(c->by.rest + at, c->by.v, a, c->by.want);
}

/* Will a vehicle with this much of its way out of an area left be gone when c is there? */
static int clears(const sim *s, const crossing *c, double left, double v, double mine)
{
    return left <= 0 || (v > CRAWL_MPS && left / v + CLEAR_S <= arrival_s(s, c, mine));
}

/* Is somebody on the path of link f where it meets c's, and still when c gets there? */
static int is_occupied(const sim *s, const crossing *c, int32_t f)
{
    const net_link *other = &s->net.link[c->j->link + f];
    const lane_state *via = &s->lane[other->via], *after = &s->lane[other->to];
    const double out = net_area_of(c->j, f, c->link->bit)->out, mine = net_area_of(c->j, c->link->bit, f)->in;
    for (int32_t p = slot_front(via); p <= slot_back(via); p++) {
        if (!clears(s, c, out - (s->x[p] - s->length[p]), s->v[p], mine)) {
            return 1;
        }
    }
    if (after->n > 0) { /* one that has left the path, but for its rear */
        const int32_t p = slot_back(after);
        const double rear = s->net.lane[other->via].length + s->x[p] - s->length[p];
        return !clears(s, c, out - rear, s->v[p], mine);
    }
    return 0;
}

/* Room behind the junction, less what those on the way there will take. */
static int is_clear_behind(const sim *s, const crossing *c)
{
    const lane_state *to = &s->lane[c->link->to];
    if (to->n == 0) {
        return 1;
    }
    const int32_t q = slot_back(to);
    if (s->v[q] > MOVING_MPS) {
        return 1;
    }
    double room = s->x[q] - s->length[q];
    for (int32_t k = 0; k < c->j->n_links; k++) {
        const net_link *other = &s->net.link[c->j->link + k];
        if (other->to == c->link->to) {
            room -= s->lane[other->via].n * (c->by.length + s->driver.s0);
        }
    }
    return room >= c->by.length + s->driver.s0;
}

/* Does the vehicle in slot p, rest m before the line of link f, come before c is through? Not where it is held up. */
static int comes_first(const sim *s, const crossing *c, int32_t f, int32_t p, double rest)
{
    const net_link *other = &s->net.link[c->j->link + f];
    const double v = s->v[p], own = net_area_of(c->j, c->link->bit, f)->out + c->by.length;
    const crossing its = {.j = c->j, .link = other, .by = {.rest = rest, .v = v, .length = s->length[p]}};
    const double comes = travel_s(rest + net_area_of(c->j, f, c->link->bit)->in, v, s->driver.a, s->want[p]);
    const int has_light = c->j->n_phases > 0;
    double bold = has_light ? GAP_LIGHT_S : GAP_LEAST_S, calm = GAP_S;
    if (other->to == c->link->to) { /* one behind the other after that: it has to become as slow as c is */
        const double then = least(c->by.want, sqrt(c->by.v * c->by.v + 2 * s->driver.a * (c->by.rest + own)));
        bold += most(0, v - then) / (2 * s->driver.b);
        calm += most(0, v - then) / (2 * least(MERGE_BRAKE, s->driver.b));
    }
    const double stood_s = c->by.is_first ? s->lane[c->link->from].stood_s : 0;
    const double gap = has_light ? bold : calm + least(1, stood_s / IMPATIENT_S) * (bold - calm);
    return arrival_s(s, c, own) + gap > comes && (v > MOVING_MPS || is_clear_behind(s, &its));
}

/* Is a link closed by its light? */
static int is_closed(const sim *s, const net_link *l)
{
    if (l->junction == NET_NONE || l->junction >= s->net.n_signals) {
        return 0;
    }
    const net_show *g = &s->signal[l->junction].show;
    return !net_has(&g->green, l->bit) && !net_has(&g->yellow, l->bit) && !net_has(&g->stop, l->bit);
}

/* The same as must_yield for those who are still before the lane from which link f begins, where that is short. */
static int must_yield_further(const sim *s, const crossing *c, int32_t f)
{
    const net_link *other = &s->net.link[c->j->link + f];
    const int32_t edge = s->net.lane[other->from].edge;
    for (int32_t i = s->search.first[edge]; i < s->search.first[edge + 1]; i++) {
        const net_link *l = &s->net.link[s->search.into[i]];
        if (l->to != other->from) {
            continue;
        }
        const int32_t way[2] = {l->via, l->from};
        double rest = s->net.lane[other->from].length;
        for (int k = 0; k < 2 && (k == 0 || !is_closed(s, l)); k++) {
            const lane_state *a = &s->lane[way[k]];
            const double end = rest + s->net.lane[way[k]].length;
            for (int32_t p = slot_front(a); p <= slot_back(a) && end - s->x[p] < SIGHT_M; p++) {
                const vehicle *w = &s->vehicle[s->who[p]];
                if (s->v[p] < MOVING_MPS) {
                    break; /* who starts there will see c */
                }
                if ((k == 0 || w->next == l->via) && place_way(s, w, other->from, 1) == other->via) {
                    if (comes_first(s, c, f, p, end - s->x[p])) {
                        return 1;
                    }
                    break; /* who is behind it comes later */
                }
            }
            rest = end;
        }
    }
    return 0;
}

/* Does somebody with the right of way on link f come before c is through? The first that goes that way counts, also
 * behind others that turn off. */
static int must_yield(const sim *s, const crossing *c, int32_t f)
{
    const net_link *other = &s->net.link[c->j->link + f];
    const lane_state *from = &s->lane[other->from];
    const double end = s->net.lane[other->from].length;
    const int32_t k = c->link->junction;
    if (c->j->n_phases == 0 && net_has(&s->waits[k], f) && !net_has(&s->starts[k], f)) {
        return 0; /* it stands and does not start in this step, so nothing passes it */
    }
    for (int32_t p = slot_front(from); p <= slot_back(from) && end - s->x[p] < SIGHT_M; p++) {
        if (s->vehicle[s->who[p]].next == other->via) {
            return comes_first(s, c, f, p, end - s->x[p]);
        }
        if (s->v[p] < HALTING_MPS) {
            return 0; /* nobody passes who stands, and who starts behind it will see c */
        }
    }
    return end < SHORT_M && s->search.first != NULL && must_yield_further(s, c, f);
}

static int has_stopped(const crossing *c)
{
    return c->by.rest <= AT_LINE_M && c->by.v <= CRAWL_MPS;
}

/* What a light says to link c: 1 go on and look, 0 stop, -1 pass. first_p: links that go first, because the light says
 * so. */
static int obey(const sim *s, const crossing *c, double need, net_links *first_p)
{
    const net_show *g = &s->signal[c->link->junction].show;
    const int32_t bit = c->link->bit;
    const net_links yields = c->j->yields[bit], crosses = c->j->crosses[bit];
    if (net_has(&g->yellow, bit) && need < most(YELLOW_BRAKE, s->driver.b)) {
        return 0;
    }
    if (is_closed(s, c->link)) {
        return need > BRAKE_MAX ? -1 : 0;
    }
    if (net_has(&g->stop, bit) && !has_stopped(c)) {
        return need > BRAKE_MAX ? -1 : 0;
    }
    const net_links others = net_union(net_union(g->green, g->yellow), g->stop);
    const net_links later = net_union(g->minor, g->stop); /* who yields, too */
    if (net_has(&later, bit)) {
        *first_p = net_common(net_union(yields, net_without(crosses, later)), others);
    } else { /* letters of a file say all: G and O yield to none */
        *first_p = c->j->n_steps > 0 ? (net_links){0} : net_without(net_common(yields, others), later);
    }
    return 1;
}

int junction_is_unseen(const sim *s, const net_link *link, const comer *by)
{
    if (link->junction == NET_NONE || by->rest <= VISIBLE_M) {
        return 0;
    }
    const net_junction *j = &s->net.junction[link->junction];
    return j->n_phases == 0 && !j->is_equal && !net_has(&j->stops, link->bit) && net_any(j->yields[link->bit]) &&
           by->v * by->v / (2 * by->rest) <= COMMITTED;
}

int junction_may_pass(const sim *s, const net_link *link, const comer *by)
{
    if (link->junction == NET_NONE) {
        return 1;
    }
    const net_junction *j = &s->net.junction[link->junction];
    crossing c = {.j = j, .link = link, .by = *by};
    c.by.want = least(by->want, s->net.lane[link->via].limit);
    const double need = by->v * by->v / (2 * most(by->rest, GAP_LEAST));
    net_links first = j->yields[link->bit];
    if (j->n_phases == 0 && net_has(&j->stops, link->bit) && !has_stopped(&c)) {
        return need > BRAKE_MAX;
    }
    if (j->n_phases == 0 && by->is_first && has_stopped(&c)) {
        return net_has(&s->starts[link->junction], link->bit);
    }
    if (j->n_phases == 0 && net_any(first) && by->rest > VISIBLE_M) {
        return need > COMMITTED;
    }
    if (j->n_phases > 0) {
        const int go = obey(s, &c, need, &first);
        if (go <= 0) {
            return go != 0;
        }
    }
    if (need > COMMITTED) {
        return 1;
    }
    const net_links *crosses = &j->crosses[link->bit], both = net_union(*crosses, first);
    for (int32_t f = net_next(&both, 0); f != NET_NONE; f = net_next(&both, f + 1)) {
        if ((net_has(crosses, f) && is_occupied(s, &c, f)) || (net_has(&first, f) && must_yield(s, &c, f))) {
            return 0;
        }
    }
    return is_clear_behind(s, &c);
}

/* Is somebody on link f, which has to yield to c, too close and too fast to do so? */
static int is_committed(const sim *s, const crossing *c, int32_t f)
{
    const net_link *other = &s->net.link[c->j->link + f];
    const lane_state *from = &s->lane[other->from];
    if (from->n == 0) {
        return 0;
    }
    const int32_t p = slot_front(from);
    const double rest = s->net.lane[other->from].length - s->x[p], v = s->v[p];
    return s->vehicle[s->who[p]].next == other->via && v > CRAWL_MPS &&
           v * v / (2 * most(rest, GAP_LEAST)) > SURE_SHARE * COMMITTED && comes_first(s, c, f, p, rest);
}

/* May the vehicle that stands first at the line of a link start, as far as those go that do not stand at theirs? */
static int can_start(const sim *s, int32_t junction, int32_t bit)
{
    const net_junction *j = &s->net.junction[junction];
    const net_link *link = &s->net.link[j->link + bit];
    const int32_t p = slot_front(&s->lane[link->from]);
    const crossing c = {.j = j,
                        .link = link,
                        .by = {.rest = s->net.lane[link->from].length - s->x[p],
                               .v = s->v[p],
                               .want = least(s->want[p], s->net.lane[link->via].limit),
                               .length = s->length[p],
                               .is_first = 1}};
    const net_links both = net_union(j->crosses[bit], j->yields[bit]);
    for (int32_t f = net_next(&both, 0); f != NET_NONE; f = net_next(&both, f + 1)) {
        if ((net_has(&j->crosses[bit], f) && (is_occupied(s, &c, f) || is_committed(s, &c, f))) ||
            (net_has(&j->yields[bit], f) && !net_has(&s->waits[junction], f) && !net_has(&j->stops, f) &&
             must_yield(s, &c, f))) {
            return 0;
        }
    }
    return is_clear_behind(s, &c);
}

/* Links of a junction whose first vehicle stands at the line. */
static net_links find_waiting(const sim *s, const net_junction *j)
{
    net_links waits = {0};
    for (int32_t k = 0; k < j->n_links; k++) {
        const net_link *link = &s->net.link[j->link + k];
        const lane_state *l = &s->lane[link->from];
        if (l->n > 0 && s->v[slot_front(l)] <= CRAWL_MPS &&
            s->net.lane[link->from].length - s->x[slot_front(l)] <= AT_LINE_M &&
            s->vehicle[s->who[slot_front(l)]].next == link->via) {
            net_include(&waits, k);
        }
    }
    return waits;
}

/* Of these links the one whose first vehicle has been standing longest. */
static int32_t find_longest(const sim *s, const net_junction *j, net_links of)
{
    int32_t longest = NET_NONE;
    double most_s = -1;
    for (int32_t k = net_next(&of, 0); k != NET_NONE; k = net_next(&of, k + 1)) {
        const double stood_s = s->lane[s->net.link[j->link + k].from].stood_s;
        if (stood_s > most_s) {
            most_s = stood_s;
            longest = k;
        }
    }
    return longest;
}

/* Of links whose vehicles can start, those that do: no two of them cross. */
static net_links choose_starts(const sim *s, const net_junction *j, net_links can)
{
    net_links starts = {0};
    while (net_any(can)) {
        net_links chosen = {0};
        for (int32_t k = net_next(&can, 0); k != NET_NONE; k = net_next(&can, k + 1)) {
            if (!net_any(net_common(j->yields[k], can)) && !net_any(net_common(j->crosses[k], chosen))) {
                net_include(&chosen, k);
            }
        }
        chosen = net_any(chosen) ? chosen : net_bit(find_longest(s, j, can));
        starts = net_union(starts, chosen);
        can = net_without(can, chosen);
        for (int32_t k = net_next(&chosen, 0); k != NET_NONE; k = net_next(&chosen, k + 1)) {
            can = net_without(can, j->crosses[k]);
        }
    }
    return starts;
}

void junction_arbitrate(sim *s)
{
    for (int32_t k = s->net.n_signals; k < s->net.n_junctions; k++) {
        const net_junction *j = &s->net.junction[k];
        net_links can = {0};
        s->waits[k] = find_waiting(s, j);
        s->starts[k] = can;
        for (int32_t bit = net_next(&s->waits[k], 0); bit != NET_NONE; bit = net_next(&s->waits[k], bit + 1)) {
            if (can_start(s, k, bit)) {
                net_include(&can, bit);
            }
        }
        s->starts[k] = choose_starts(s, j, can);
    }
}

int junction_lets_pass(const sim *s, int32_t lane, int32_t p)
{
    const int32_t next = s->vehicle[s->who[p]].next;
    if (next < 0 || s->net.lane[next].via_of == NET_NONE) {
        return 1;
    }
    const comer by = {.rest = s->net.lane[lane].length - s->x[p],
                      .v = s->v[p],
                      .want = s->want[p],
                      .length = s->length[p],
                      .is_first = p == slot_front(&s->lane[lane])};
    return junction_may_pass(s, &s->net.link[s->net.lane[next].via_of], &by);
}

/* Is a vehicle on the path of link a where it meets link b's? */
static int is_inside(const sim *s, const net_junction *j, int32_t a, int32_t b)
{
    const net_area *area = net_area_of(j, a, b);
    const lane_state *l = &s->lane[s->net.link[j->link + a].via];
    for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
        if (s->x[p] > area->in && s->x[p] - s->length[p] < area->out) {
            return 1;
        }
    }
    return 0;
}

double junction_held(const sim *s, int32_t lane, int32_t p)
{
    const net_lane *here = &s->net.lane[lane];
    const int32_t next = s->vehicle[s->who[p]].next;
    const int32_t via = here->via_of != NET_NONE ? lane : next;
    if (via < 0 || s->net.lane[via].via_of == NET_NONE || s->net.link[s->net.lane[via].via_of].junction == NET_NONE) {
        return FREE_GAP;
    }
    const net_link *link = &s->net.link[s->net.lane[via].via_of];
    const net_junction *j = &s->net.junction[link->junction];
    const double start = via == lane ? -s->x[p] : here->length - s->x[p];
    double nearest = FREE_GAP;
    const net_links *crosses = &j->crosses[link->bit];
    for (int32_t f = net_next(crosses, 0); f != NET_NONE; f = net_next(crosses, f + 1)) {
        const double gap = start + net_area_of(j, link->bit, f)->in;
        if (gap >= 0 && gap < nearest && gap < SIGHT_M && is_inside(s, j, f, link->bit)) {
            nearest = gap;
        }
    }
    return nearest;
}

void junction_check(sim *s)
{
    for (int32_t k = 0; k < s->net.n_junctions; k++) {
        const net_junction *j = &s->net.junction[k];
        for (int32_t a = 0; a < j->n_links; a++) {
            net_links *met = &s->meets[j->link + a];
            const int32_t via = s->net.link[j->link + a].via;
            if (s->lane[via].n == 0) {
                *met = (net_links){0};
                continue;
            }
            net_links now = {0};
            for (int32_t b = net_next(&j->crosses[a], a + 1); b != NET_NONE; b = net_next(&j->crosses[a], b + 1)) {
                if (s->lane[s->net.link[j->link + b].via].n > 0 && is_inside(s, j, a, b) && is_inside(s, j, b, a)) {
                    net_include(&now, b);
                }
            }
            const int fresh = net_count(net_without(now, *met));
            s->sum.collisions += fresh;
            s->lane[via].n_collisions += fresh;
            *met = now;
        }
    }
}
