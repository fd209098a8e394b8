/* SPDX-License-Identifier: Apache-2.0
 *
 * See junction.h. Gap acceptance compares time windows: a vehicle that yields must have left the junction GAP_S before
 * one with priority enters it, both by their own travel times (HCM 2010, ch. 19; Treiber & Kesting 2013, ch. 14.5). The
 * longer a driver has stood, the more it relies on the others to brake (Mahmassani & Sheffi 1981, "Using gap sequences
 * to estimate gap acceptance functions"). The rules without a light are those that SUMO documents ("Intersections",
 * "Impatience", vType attribute jmTimegapMinor) with its default values, as observed in its --link-output; the result
 * is compared with SUMO 1.15 in tests/env_traffic/test_yield.c.
 */
#include "junction.h"

#define GAP_S 1.0 /* s, without a light: between two vehicles on the junction whose paths meet */
#define GAP_LIGHT_S                                                                                                    \
    1.5 /* s, between leaving an area and the arrival of a vehicle with priority, where a light allows it */
#define IMPATIENT_S 180.0 /* a driver that has stood first for so long relies on all others to brake */
#define STOPS_S     30.0  /* s, delay of the arrival of a vehicle that brakes and can stop */
#define CLEAR_S     0.5   /* s, between a vehicle leaving an area and the arrival of the next one */
#define YELLOW_BRAKE                                                                                                   \
    3.5 /* m/s^2, a vehicle that would have to brake harder than this and b passes at yellow (ITE: 3.05) */
#define COMMITTED  5.0 /* m/s^2, a vehicle that would have to brake harder does not stop any more */
#define MOVING_MPS 3.0 /* a queue behind the junction that moves at least so makes room */
#define CRAWL_MPS  2.0 /* a vehicle that is slower in an area may have to wait there; and has stopped, where one must */
#define SHORT_M    100.0 /* a lane from whose start a vehicle may be at its line too soon */
#define AT_LINE_M  3.0   /* a vehicle that stands no further from a line is the next to pass it */
#define SURE_SHARE 0.8   /* of COMMITTED: a vehicle that brakes less than this can still be asked to yield */

/* Time for d metres from speed v, accelerating by a up to want. */
static double travel_time_s(double d, double v, double a, double want)
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

/* Deceleration that stops a vehicle within `rest`. */
static double braking_deceleration(double v, double rest)
{
    return v * v / (2 * most(rest, GAP_LEAST));
}

/* The same under Euler's rule, where a vehicle moves at the speed that it has after the step. */
static double braking_in_steps(const driver *d, double v, double rest)
{
    return braking_deceleration(v, d->model == MODEL_KRAUSS ? rest + 0.5 * v * d->dt : rest);
}

/* Deceleration that stops a vehicle before its line at a light. */
static double braking_for_light(const driver *d, double v, double rest)
{
    return d->model == MODEL_KRAUSS ? braking_in_steps(d, v, rest - STOP_MARGIN_M) : braking_deceleration(v, rest);
}

/* When and how fast a vehicle enters and leaves a path. */
typedef struct passage {
    double enters_s, leaves_s, in_mps, out_mps;
} passage;

typedef struct crossing {
    const net_junction *j;
    const net_link *link;
    comer by;     /* the requesting vehicle */
    double rest;  /* m to the place where it yields */
    passage time; /* of the path after that place; set_passage */
} crossing;

/* Of a vehicle that is v fast, over `way` m of the link; it leaves no faster than `top`. */
static passage time_passage(const sim *s, const net_link *l, const comer *by, double rest, double way, double v,
                            double top)
{
    const double a = s->driver.a, want = most(by->want, v), limit = least(want, s->net.lane[l->via].limit);
    passage p = {.enters_s = travel_time_s(rest, v, a, want),
                 .in_mps = least(want, sqrt(v * v + 2 * a * most(0, rest)))};
    p.out_mps = least(least(limit, top), sqrt(p.in_mps * p.in_mps + 2 * a * way));
    p.leaves_s = p.enters_s + (way + by->length) / most(0.5 * (p.in_mps + p.out_mps), HALTING_MPS);
    return p;
}

static double arrival_s(const sim *s, const crossing *c, double at)
{
    const double a =
        s->driver.model == MODEL_KRAUSS ? s->driver.a * (1 - 0.5 * s->sigma) : s->driver.a; /* on average */
    return travel_time_s(c->by.rest + at, c->by.v, a, c->by.want);
}

/* Will a vehicle with this much of its way out of an area left be gone when c is there? */
static int clears_in_time(const sim *s, const crossing *c, double left, double v, double mine)
{
    return left <= 0 || (v > CRAWL_MPS && left / v + CLEAR_S <= arrival_s(s, c, mine));
}

/* Is a link steered by a light, and red? */
static int is_red(const sim *s, const net_link *l)
{
    return l->junction < s->net.n_signals && !net_has(&s->signal[l->junction].show.green, l->bit) &&
           !net_has(&s->signal[l->junction].show.yellow, l->bit);
}

/* Does a vehicle on the path of `other`, with its front at x, wait there for c to pass? If both yield to each other
 * inside the junction, the vehicle whose light is red goes first, then the one on the link with the lower number. */
static int waits_for(const sim *s, const crossing *c, const net_link *other, double x)
{
    if (x > other->hold || !net_has(&c->j->yields[other->bit], c->link->bit)) {
        return 0;
    }
    if (!net_has(&c->j->yields[c->link->bit], other->bit)) {
        return 1;
    }
    const int mine = is_red(s, c->link), its = is_red(s, other);
    return c->by.rest < 0 && (mine != its ? mine : c->link->bit < other->bit);
}

/* Is a vehicle on a path into the same lane so near that c could not follow it? */
static int is_too_near(const sim *s, const crossing *c, const net_link *other)
{
    const lane_state *via = &s->lane[other->via];
    const double mine = c->by.rest + s->net.lane[c->link->via].length, end = s->net.lane[other->via].length;
    for (int32_t p = slot_front(via); p <= slot_back(via); p++) {
        if (!waits_for(s, c, other, s->x[p]) &&
            (s->x[p] <= other->hold || mine - (end - s->x[p]) - s->length[p] < s->driver.s0)) {
            return 1; /* a vehicle that still waits at its hold would wait for c in turn */
        }
    }
    return 0;
}

/* Did the last vehicle on the lane after a link come over that link? Only then its rear may be on the path. */
static int came_over(const sim *s, const net_link *l)
{
    const lane_state *after = &s->lane[l->to];
    return after->n > 0 && s->vehicle[s->who[slot_back(after)]].came == l->via;
}

/* Is a vehicle on a path that meets that of c, and not yet past the common area? */
static int has_conflict_ahead(const sim *s, const crossing *c)
{
    const net_links *crosses = &c->j->crosses[c->link->bit];
    for (int32_t f = net_next(crosses, 0); f != NET_NONE; f = net_next(crosses, f + 1)) {
        const net_link *other = &s->net.link[c->j->link + f];
        const lane_state *via = &s->lane[other->via], *after = &s->lane[other->to];
        const int is_merge = other->to == c->link->to;
        const double out = is_merge ? s->net.lane[other->via].length : net_area_of(c->j, f, c->link->bit)->out;
        for (int32_t p = slot_front(via); p <= slot_back(via); p++) {
            if (s->x[p] - s->length[p] < out && !waits_for(s, c, other, s->x[p])) {
                return 1;
            }
        }
        if (came_over(s, other) &&
            s->net.lane[other->via].length + s->x[slot_back(after)] - s->length[slot_back(after)] < out) {
            return 1;
        }
    }
    return 0;
}

/* Sets c->time. After another vehicle on the junction, c counts on no more than the speed of its next step: a driver
 * that has stood lets a whole platoon pass. */
static void set_passage(const sim *s, crossing *c)
{
    const driver *d = &s->driver;
    const double next = most(c->by.v, least(c->by.v + d->a * d->dt, c->by.want));
    c->time = time_passage(s, c->link, &c->by, c->rest, s->net.lane[c->link->via].length - c->link->hold, next,
                           has_conflict_ahead(s, c) ? next : FREE_GAP);
}

/* Is a vehicle on the path of link f where it meets c's, and still when c gets there? */
static int is_occupied(const sim *s, const crossing *c, int32_t f)
{
    const net_link *other = &s->net.link[c->j->link + f];
    const lane_state *via = &s->lane[other->via], *after = &s->lane[other->to];
    if (c->j->n_phases == 0 && other->to == c->link->to) {
        return is_too_near(s, c, other);
    }
    const double out = net_area_of(c->j, f, c->link->bit)->out, mine = net_area_of(c->j, c->link->bit, f)->in;
    for (int32_t p = slot_front(via); p <= slot_back(via); p++) {
        if (!waits_for(s, c, other, s->x[p]) && !clears_in_time(s, c, out - (s->x[p] - s->length[p]), s->v[p], mine)) {
            return 1;
        }
    }
    if (came_over(s, other)) { /* one that has left the path, but for its rear */
        const int32_t p = slot_back(after);
        const double rear = s->net.lane[other->via].length + s->x[p] - s->length[p];
        return !clears_in_time(s, c, out - rear, s->v[p], mine);
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

/* Does a vehicle on link f stop at yellow, or let c clear the junction after its green? */
static int stops_for_light(const sim *s, const crossing *c, int32_t f, double v, double rest)
{
    const net_show *g = &s->signal[c->link->junction].show;
    const int is_late = c->by.rest < 0 && is_red(s, c->link);
    return (is_late || net_has(&g->yellow, f)) &&
           braking_for_light(&s->driver, v, rest) < most(YELLOW_BRAKE, s->driver.b);
}

/* The same where a light permits to go. */
static int comes_first_at_light(const sim *s, const crossing *c, int32_t f, int32_t p, double rest)
{
    const net_link *other = &s->net.link[c->j->link + f];
    const double v = s->v[p], own = net_area_of(c->j, c->link->bit, f)->out + c->by.length;
    if (stops_for_light(s, c, f, v, rest)) {
        return 0;
    }
    const double comes = travel_time_s(rest + net_area_of(c->j, f, c->link->bit)->in, v, s->driver.a, s->want[p]);
    double gap = GAP_LIGHT_S;
    if (other->to == c->link->to) { /* one behind the other after that: it has to become as slow as c is */
        const double then = least(c->by.want, sqrt(c->by.v * c->by.v + 2 * s->driver.a * (c->by.rest + own)));
        gap += most(0, v - then) / (2 * s->driver.b);
    }
    return arrival_s(s, c, own) + gap > comes;
}

/* Distance within which a driver stops, reaction time included. */
static double stopping_distance_m(const driver *d, double v)
{
    return v * d->T + v * v / (2 * d->b) - (d->model == MODEL_KRAUSS ? 0.5 * v * d->dt : 0);
}

/* Speed of the next step of the vehicle in slot p, rest m before its line, as vehicles ahead limit it; 0 after a
 * vehicle that stands before the line. */
static double next_speed(const sim *s, int32_t p, double rest)
{
    const int32_t lane = s->vehicle[s->who[p]].lane;
    const double v = s->v[p];
    double leader;
    if (v > MOVING_MPS) {
        return p == slot_front(&s->lane[lane]) ? most(v, least(v + s->driver.a * s->driver.dt, s->want[p])) : v;
    }
    const double gap = sim_gap_ahead(s, lane, p, &leader);
    if (leader < HALTING_MPS && gap - s->driver.s0 < rest) {
        return 0;
    }
    return most(0, v + s->driver.dt * follow(&s->driver, v, s->want[p], gap, leader));
}

/* Does the vehicle in slot p, rest m before the line of link f, come before c is through? Not where it is held up. */
static int arrives_first(const sim *s, const crossing *c, int32_t f, int32_t p, double rest)
{
    const driver *d = &s->driver;
    const net_link *other = &s->net.link[c->j->link + f];
    const double v = s->v[p];
    const crossing its = {
        .j = c->j, .link = other, .by = {.rest = rest, .v = v, .length = s->length[p], .want = s->want[p]}};
    if (v <= MOVING_MPS && !is_clear_behind(s, &its)) {
        return 0;
    }
    const double next = next_speed(s, p, rest);
    if (next < HALTING_MPS) {
        return 0; /* it stands behind another vehicle */
    }
    if (c->j->n_phases > 0 && (c->j->n_steps == 0 || c->link->hold <= 0 || stops_for_light(s, c, f, v, rest))) {
        return comes_first_at_light(s, c, f, p, rest);
    }
    const int is_merge = other->to == c->link->to;
    const double way = other->hold > 0 ? other->hold : s->net.lane[other->via].length;
    const passage it = time_passage(s, other, &its.by, rest, way, next, FREE_GAP);
    if (it.leaves_s < c->time.enters_s) { /* c enters after it */
        return is_merge && (c->time.enters_s - it.leaves_s < GAP_S || it.out_mps < c->time.in_mps);
    }
    double enters_s = it.enters_s, in_mps = 0;
    if (rest < stopping_distance_m(d, next)) {
        in_mps = sqrt(most(0, next * next - 2 * d->b * (rest - next * d->T)));
    }
    const int32_t lane = c->by.rest < 0 ? c->link->via : c->link->from;
    const double share = c->by.is_first ? least(1, s->lane[lane].stood_s / IMPATIENT_S) : 0;
    if (share > 0 && c->time.enters_s + d->dt < it.enters_s) {
        const double mean = rest / it.enters_s, brake = share * d->b, start_s = most(0, c->time.enters_s - d->dt);
        const double left = rest - mean * start_s;
        in_mps = sqrt(most(0, mean * mean - 2 * brake * left));
        const double later = in_mps <= 0 ? STOPS_S : start_s + (mean - in_mps) / brake - it.enters_s;
        enters_s += share * most(0, later);
    }
    return enters_s <= c->time.leaves_s + GAP_S || (is_merge && in_mps > c->time.out_mps);
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

/* Is a link closed by its light, or does it yield? */
static int is_minor(const sim *s, const net_link *l)
{
    return l->junction != NET_NONE && (is_closed(s, l) || net_any(s->net.junction[l->junction].responds[l->bit]));
}

/* The same as must_yield for vehicles that are still before the lane from which link f begins, where that is short. */
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
        const int has_light = c->j->n_phases > 0;
        for (int k = 0; k < 2 && (k == 0 || (has_light ? !is_closed(s, l) : !is_minor(s, l))); k++) {
            const lane_state *a = &s->lane[way[k]];
            const double end = rest + s->net.lane[way[k]].length;
            for (int32_t p = slot_front(a); p <= slot_back(a) && end - s->x[p] < SIGHT_M; p++) {
                const vehicle *w = &s->vehicle[s->who[p]];
                if (!has_light && k == 1 &&
                    end - s->x[p] > s->v[p] * s->driver.dt + stopping_distance_m(&s->driver, s->v[p])) {
                    break;
                }
                if (s->v[p] < MOVING_MPS) {
                    break; /* a vehicle that starts there will see c */
                }
                if ((k == 0 || w->next == l->via) && place_next_lane(s, w, other->from, 1) == other->via) {
                    if (arrives_first(s, c, f, p, end - s->x[p])) {
                        return 1;
                    }
                    break; /* its followers come later */
                }
            }
            rest = end;
        }
    }
    return 0;
}

/* Does a vehicle with the right of way on link f come before c is through? The first that goes that way counts, also
 * behind others that turn off. */
static int must_yield(const sim *s, const crossing *c, int32_t f)
{
    const net_link *other = &s->net.link[c->j->link + f];
    const lane_state *from = &s->lane[other->from];
    const double end = s->net.lane[other->from].length;
    const int32_t k = c->link->junction;
    if (net_has(&c->j->stops, f) && c->j->is_equal && net_has(&s->waits[k], f) && !net_has(&s->starts[k], f)) {
        return 0; /* it stands and does not start in this step, so nothing passes it */
    }
    const double sight = c->j->n_phases > 0 ? SIGHT_M : FREE_GAP;
    for (int32_t p = slot_front(from); p <= slot_back(from) && end - s->x[p] < sight; p++) {
        if (s->vehicle[s->who[p]].next == other->via) {
            if (arrives_first(s, c, f, p, end - s->x[p])) {
                return 1;
            }
            if (c->j->n_phases > 0) {
                return 0;
            }
        }
        if (s->v[p] < HALTING_MPS) {
            return 0; /* no vehicle passes a standing one, and one that starts behind it will see c */
        }
    }
    return end < SHORT_M && s->search.first != NULL && must_yield_further(s, c, f);
}

/* Has the first vehicle of the lane stopped at the line, as a stop sign requires? */
static int has_halted(const sim *s, const crossing *c)
{
    const lane_state *from = &s->lane[c->link->from];
    return c->by.is_first && from->halted == s->who[slot_front(from)];
}

static int is_at_line(const crossing *c)
{
    return c->by.rest <= AT_LINE_M && c->by.v <= CRAWL_MPS;
}

/* What a light shows link c: 1 continue and check, 0 stop, -1 pass. first_p: links that go first, because the light
 * shows so. */
static int obey_light(const sim *s, const crossing *c, double need, net_links *first_p)
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
    if (net_has(&g->stop, bit) && !is_at_line(c)) {
        return need > BRAKE_MAX ? -1 : 0;
    }
    const net_links others = net_union(net_union(g->green, g->yellow), g->stop);
    const net_links later = net_union(g->minor, g->stop); /* yielding ones, too */
    if (net_has(&later, bit)) {
        *first_p = net_common(net_union(yields, net_without(crosses, later)), others);
    } else { /* letters of a file are complete: G and O yield to none */
        *first_p = c->j->n_steps > 0 ? (net_links){0} : net_without(net_common(yields, others), later);
    }
    return 1;
}

/* Do the vehicles on the links `first` come late enough, and is the way of c free, also after the junction? */
static int is_free(const sim *s, crossing *c, net_links first)
{
    const net_links crosses = c->j->crosses[c->link->bit];
    if (net_any(first) && (c->j->n_phases == 0 || c->link->hold > 0)) {
        set_passage(s, c);
    }
    const net_links both = net_union(crosses, first);
    for (int32_t f = net_next(&both, 0); f != NET_NONE; f = net_next(&both, f + 1)) {
        if ((net_has(&crosses, f) && is_occupied(s, c, f)) || (net_has(&first, f) && must_yield(s, c, f))) {
            return 0;
        }
    }
    return is_clear_behind(s, c);
}

/* Is a vehicle on a path that meets the way of c before the place where it yields? */
static int must_stop_before(const sim *s, const crossing *c)
{
    const net_links *crosses = &c->j->crosses[c->link->bit];
    for (int32_t f = net_next(crosses, 0); f != NET_NONE; f = net_next(crosses, f + 1)) {
        if (net_area_of(c->j, c->link->bit, f)->in < c->link->hold && is_occupied(s, c, f)) {
            return 1;
        }
    }
    return 0;
}

/* May c pass the place inside the junction where it yields? */
static int may_continue(const sim *s, crossing *c)
{
    const double need = braking_in_steps(&s->driver, c->by.v, c->rest);
    if (c->rest > c->link->visible) {
        return need > COMMITTED;
    }
    net_links first = c->j->yields[c->link->bit];
    if (c->j->n_phases > 0) {
        const net_show *g = &s->signal[c->link->junction].show;
        const int32_t bit = c->link->bit;
        const int is_first = net_has(&g->green, bit) && !net_has(&g->minor, bit) && c->j->n_steps > 0;
        const net_links open = net_union(net_union(g->green, g->yellow), g->stop);
        first = is_first ? (net_links){0} : net_common(first, open);
    }
    return need > COMMITTED || is_free(s, c, first);
}

double junction_stop(const sim *s, const net_link *link, const comer *by)
{
    if (link->junction == NET_NONE || by->rest + link->hold < 0) {
        return FREE_GAP;
    }
    const net_junction *j = &s->net.junction[link->junction];
    crossing c = {.j = j, .link = link, .by = *by, .rest = by->rest + link->hold};
    c.by.want = least(by->want, s->net.lane[link->via].limit);
    const double need = j->n_phases > 0 ? braking_for_light(&s->driver, by->v, by->rest)
                                        : braking_in_steps(&s->driver, by->v, by->rest);
    const double line = by->rest - (j->n_phases > 0 ? STOP_MARGIN_M : YIELD_MARGIN_M);
    net_links first = j->n_phases > 0 ? j->yields[link->bit] : j->responds[link->bit];
    if (by->rest >= 0 && j->n_phases > 0) {
        const int go = obey_light(s, &c, need, &first);
        if (go <= 0) {
            return go != 0 ? FREE_GAP : line;
        }
    }
    if (link->hold > 0) {
        if (by->rest >= 0 && need <= COMMITTED && must_stop_before(s, &c)) {
            return line;
        }
        return may_continue(s, &c) ? FREE_GAP : c.rest - YIELD_MARGIN_M;
    }
    if (j->n_phases == 0 && net_has(&j->stops, link->bit) && !has_halted(s, &c)) {
        return need > BRAKE_MAX ? FREE_GAP : line;
    }
    if (j->n_phases == 0 && by->is_first && is_at_line(&c)) {
        return net_has(&s->starts[link->junction], link->bit) ? FREE_GAP : line;
    }
    if (j->n_phases == 0 && net_any(first) && by->rest > link->visible) {
        return need > COMMITTED ? FREE_GAP : line;
    }
    return need > COMMITTED || is_free(s, &c, first) ? FREE_GAP : line;
}

/* Is a vehicle on link f, which has to yield to c, too close and too fast to do so? */
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
           braking_in_steps(&s->driver, v, rest) > SURE_SHARE * COMMITTED && arrives_first(s, c, f, p, rest);
}

/* May the vehicle that stands first at the line of a link start? If roads take turns, choose_starts compares it with
 * the vehicles that stand at their lines. */
static int can_start(const sim *s, int32_t junction, int32_t bit)
{
    const net_junction *j = &s->net.junction[junction];
    const net_link *link = &s->net.link[j->link + bit];
    const int32_t p = slot_front(&s->lane[link->from]);
    crossing c = {.j = j,
                  .link = link,
                  .by = {.rest = s->net.lane[link->from].length - s->x[p],
                         .v = s->v[p],
                         .want = least(s->want[p], s->net.lane[link->via].limit),
                         .length = s->length[p],
                         .is_first = 1}};
    c.rest = c.by.rest;
    set_passage(s, &c);
    net_links first = j->responds[bit];
    if (j->is_equal) {
        first = net_without(net_without(first, s->waits[junction]), j->stops);
    }
    const net_links both = net_union(j->crosses[bit], first);
    for (int32_t f = net_next(&both, 0); f != NET_NONE; f = net_next(&both, f + 1)) {
        if ((net_has(&j->crosses[bit], f) && (is_occupied(s, &c, f) || is_committed(s, &c, f))) ||
            (net_has(&first, f) && must_yield(s, &c, f))) {
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
        if (l->n > 0 && link->hold <= 0 && s->v[slot_front(l)] <= CRAWL_MPS &&
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
            if (!net_any(net_common(j->responds[k], can)) && !net_any(net_common(j->crosses[k], chosen))) {
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
        if (j->is_equal && !net_any(j->stops)) {
            const net_links blocked = net_without(s->waits[k], can), free = can;
            for (int32_t bit = net_next(&free, 0); bit != NET_NONE; bit = net_next(&free, bit + 1)) {
                can = net_any(net_common(j->responds[bit], blocked)) ? net_without(can, net_bit(bit)) : can;
            }
        }
        s->starts[k] = choose_starts(s, j, can);
    }
}

int junction_may_pass(const sim *s, const net_link *link, const comer *by)
{
    return junction_stop(s, link, by) >= FREE_GAP;
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

double junction_stop_distance(const sim *s, int32_t lane, int32_t p)
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
