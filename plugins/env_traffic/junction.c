/* SPDX-License-Identifier: Apache-2.0
 *
 * See junction.h. Gap acceptance over conflict areas follows the usual model of unsignalised junctions (HCM 2010, ch.
 * 19; Treiber & Kesting 2013, ch. 14.5), with the gap derived from the two vehicles' own travel times.
 */
#include "junction.h"

#define GAP_S        1.5 /* s, between leaving an area and the arrival of who goes first */
#define CLEAR_S      0.5 /* s, between who leaves an area and the arrival of the next one */
#define YELLOW_BRAKE 3.5 /* m/s^2, who would have to brake harder than this and b passes at yellow (ITE: 3.05) */
#define COMMITTED    5.0 /* m/s^2, who would have to brake harder does not stop any more */
#define MOVING_MPS   3.0 /* a queue behind the junction that moves at least so makes room */
#define CRAWL_MPS    2.0 /* who is slower in an area may have to wait there */

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
    double rest, v, want, length; /* of the vehicle that asks */
} crossing;

static double arrival_s(const sim *s, const crossing *c, double at)
{
    return travel_s(c->rest + at, c->v, s->driver.a, c->want);
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
            room -= s->lane[other->via].n * (c->length + s->driver.s0);
        }
    }
    return room >= c->length + s->driver.s0;
}

/* Does somebody with the right of way on link f come before c is through? The first that goes that way counts, also
 * behind others that turn off, but not where it cannot go on. */
static int must_yield(const sim *s, const crossing *c, int32_t f)
{
    const net_link *other = &s->net.link[c->j->link + f];
    const lane_state *from = &s->lane[other->from];
    const double end = s->net.lane[other->from].length, area = net_area_of(c->j, f, c->link->bit)->in;
    for (int32_t p = slot_front(from); p <= slot_back(from) && end - s->x[p] < SIGHT_M; p++) {
        if (s->vehicle[s->who[p]].next != other->via) {
            if (s->v[p] < HALTING_MPS) {
                break; /* nobody passes who stands, and who starts behind it will see c */
            }
            continue;
        }
        const crossing its = {.j = c->j, .link = other, .length = s->length[p]};
        const double comes = travel_s(end - s->x[p] + area, s->v[p], s->driver.a, s->want[p]);
        return arrival_s(s, c, net_area_of(c->j, c->link->bit, f)->out + c->length) + GAP_S > comes &&
               is_clear_behind(s, &its);
    }
    return 0;
}

int junction_may_pass(const sim *s, int32_t lane, int32_t p)
{
    const int32_t next = s->vehicle[s->who[p]].next;
    if (next < 0 || s->net.lane[next].via_of == NET_NONE) {
        return 1;
    }
    const net_link *link = &s->net.link[s->net.lane[next].via_of];
    const net_junction *j = &s->net.junction[link->junction];
    const crossing c = {.j = j,
                        .link = link,
                        .rest = s->net.lane[lane].length - s->x[p],
                        .v = s->v[p],
                        .want = s->want[p],
                        .length = s->length[p]};
    const double need = c.v * c.v / (2 * most(c.rest, GAP_LEAST));
    net_links open = ~(net_links)0; /* links that others may use */
    if (j->n_phases > 0) {
        const signal_state *g = &s->signal[link->junction];
        const net_links bit = net_bit(link->bit);
        open = g->green | g->yellow;
        if ((g->yellow & bit) != 0 && need < most(YELLOW_BRAKE, s->driver.b)) {
            return 0;
        }
        if ((open & bit) == 0) {
            return need > BRAKE_MAX;
        }
    }
    if (need > COMMITTED) {
        return 1;
    }
    const net_links crosses = j->crosses[link->bit], yields = j->yields[link->bit] & open;
    for (int32_t f = 0; f < j->n_links; f++) {
        const net_links bit = net_bit(f);
        if (((crosses & bit) != 0 && is_occupied(s, &c, f)) || ((yields & bit) != 0 && must_yield(s, &c, f))) {
            return 0;
        }
    }
    return is_clear_behind(s, &c);
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
    for (int32_t f = 0; f < j->n_links; f++) {
        const double gap = start + net_area_of(j, link->bit, f)->in;
        if ((j->crosses[link->bit] >> f & 1) != 0 && gap >= 0 && gap < nearest && gap < SIGHT_M &&
            is_inside(s, j, f, link->bit)) {
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
                *met = 0;
                continue;
            }
            net_links now = 0;
            for (int32_t b = a + 1; b < j->n_links; b++) {
                if ((j->crosses[a] >> b & 1) != 0 && s->lane[s->net.link[j->link + b].via].n > 0 &&
                    is_inside(s, j, a, b) && is_inside(s, j, b, a)) {
                    now |= net_bit(b);
                }
            }
            const int fresh = __builtin_popcountll(now & ~*met);
            s->sum.collisions += fresh;
            s->lane[via].n_collisions += fresh;
            *met = now;
        }
    }
}
