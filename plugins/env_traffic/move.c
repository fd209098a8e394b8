/* SPDX-License-Identifier: Apache-2.0
 *
 * Car following and motion. The loops over a lane have no branches and no calls, so that compilers vectorise them; the
 * first vehicle of a lane looks over the end of it by scalar code.
 *
 * Motion is ballistic for the IDM (Treiber & Kanagaraj 2015, "Comparing numerical integration schemes for
 * time-continuous car-following models": x += (v + v') dt / 2, exact for constant acceleration) and by Euler's rule for
 * Krauss (x += v' dt), whose safe speed is derived for it.
 */
#include "change.h"
#include "junction.h"
#include "sim.h"

#define HEED_M     100.0 /* before a junction followers, too, see whether they must yield */
#define PATIENCE_S 15.0  /* at the end of a lane, for one that should have changed before it */
#define PARTING_M  1.0   /* past the start of its path over a junction a rear no longer stands in the way */

/* ---- looking ahead ----------------------------------------------------------------------------------------------- */

int32_t move_find_vehicle_ahead(const sim *s, const vehicle *w, int32_t next, double *rest_p)
{
    int32_t edges = 0;
    for (int32_t lane = next; lane >= 0 && *rest_p < SIGHT_M;) {
        const lane_state *l = &s->lane[lane];
        if (l->n > 0) {
            return slot_back(l);
        }
        *rest_p += s->net.lane[lane].length;
        const net_lane *n = &s->net.lane[lane];
        if (w->trip != NET_NONE) {
            edges += n->via_of == NET_NONE;
            lane = place_next_lane(s, w, lane, edges);
        } else {
            lane = n->via_of != NET_NONE ? s->net.link[n->via_of].to
                   : n->n_links == 1     ? s->net.link[n->link].via == NET_NONE ? s->net.link[n->link].to : NET_NONE
                                         : NET_NONE;
        }
    }
    return NET_NONE;
}

double move_find_leader(const sim *s, const vehicle *w, int32_t from, int32_t next, double rest, double *speed_p)
{
    double gap = FREE_GAP, way = rest;
    const int32_t first = move_find_vehicle_ahead(s, w, next, &way);
    *speed_p = 0;
    if (first != NET_NONE) {
        gap = way + s->x[first] - s->length[first];
        *speed_p = s->v[first];
    }
    if (next == NET_EXIT) {
        return gap;
    }
    /* a vehicle that turns off elsewhere, whose rear is still on this lane */
    const net_lane *n = &s->net.lane[from];
    for (int32_t k = n->link; k < n->link + n->n_links; k++) {
        const int32_t via = s->net.link[k].via;
        if (via == NET_NONE || via == next || s->lane[via].n == 0) {
            continue;
        }
        const int32_t p = slot_back(&s->lane[via]);
        const double rear = s->x[p] - s->length[p];
        if (rear < PARTING_M && rest + rear < gap) {
            gap = rest + rear;
            *speed_p = s->v[p];
        }
    }
    return gap;
}

/* On its way over a junction a vehicle follows those on other paths into the same lane that are nearer to it. */
static double leader_at_merge(const sim *s, int32_t lane, double rest, double gap, double *speed_p)
{
    const net_link *own = &s->net.link[s->net.lane[lane].via_of];
    if (own->junction == NET_NONE) {
        return gap;
    }
    const net_junction *j = &s->net.junction[own->junction];
    const net_links *crosses = &j->crosses[own->bit];
    for (int32_t k = net_next(crosses, 0); k != NET_NONE; k = net_next(crosses, k + 1)) {
        const net_link *other = &s->net.link[j->link + k];
        if (other->to != own->to) {
            continue;
        }
        const lane_state *l = &s->lane[other->via];
        const double end = s->net.lane[other->via].length;
        for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
            const double its = end - s->x[p], room = rest - its - s->length[p];
            if ((its < rest || (its == rest && other->bit < own->bit)) && room < gap &&
                (other->hold <= 0 || s->x[p] > other->hold)) {
                gap = room;
                *speed_p = s->v[p];
            }
        }
    }
    return gap;
}

static double ahead_of_first(const sim *s, int32_t lane, int32_t p, double *speed_p)
{
    const vehicle *w = &s->vehicle[s->who[p]];
    const double rest = s->net.lane[lane].length - s->x[p];
    return move_find_leader(s, w, lane, w->next, rest, speed_p);
}

double sim_gap_ahead(const sim *s, int32_t lane, int32_t p, double *speed_p)
{
    if (p > slot_front(&s->lane[lane])) {
        *speed_p = s->v[p - 1];
        return s->x[p - 1] - s->length[p - 1] - s->x[p];
    }
    return ahead_of_first(s, lane, p, speed_p);
}

double sim_gap_behind(const sim *s, int32_t lane, int32_t p, double *speed_p)
{
    const double rear = s->x[p] - s->length[p];
    if (p < slot_back(&s->lane[lane])) {
        *speed_p = s->v[p + 1];
        return rear - s->x[p + 1];
    }
    const int32_t before = s->net.lane[lane].before;
    *speed_p = 0;
    if (before == NET_NONE || s->lane[before].n == 0) {
        return FREE_GAP;
    }
    const int32_t q = slot_front(&s->lane[before]);
    *speed_p = s->v[q];
    return rear + s->net.lane[before].length - s->x[q];
}

/* ---- accelerations ----------------------------------------------------------------------------------------------- */

/* The largest speed of the next step from which a vehicle that brakes by b in all later steps stops within `room`: the
 * sum of an arithmetic series of n + 1 steps, with x += v dt. */
static double stop_speed(const driver *d, double room)
{
    const double less = d->b * d->dt, n = floor(0.5 * (sqrt(1 + 8 * room / (less * d->dt)) - 1));
    return room / (d->dt * (n + 1)) + 0.5 * less * n;
}

/* To stop within `room`. A place to stop does not come closer: no harder than stops in time, no harder than b while
 * that is enough. Drivers brake for a light or the end of a lane as for a standing vehicle, and roll up to where they
 * yield. */
static double limit_of_stop(const sim *s, double v, double want, double room, int is_yield)
{
    const driver *d = &s->driver;
    if (is_yield && d->model == MODEL_KRAUSS) {
        return most((stop_speed(d, most(0, room)) - v) / d->dt, -BRAKE_MAX);
    }
    const double need = v * v / (2 * most(room, GAP_LEAST));
    return most(follow(d, v, want, room + d->s0, 0), -most(need, d->b));
}

static int is_yield(const sim *s, const net_link *l)
{
    return l->hold > 0 || l->junction >= s->net.n_signals;
}

/* What the place inside the junction where its link holds it allows a vehicle on the path of that link. */
static double limit_at_stop_line(const sim *s, int32_t lane, int32_t p)
{
    const net_link *l = &s->net.link[s->net.lane[lane].via_of];
    if (l->hold <= s->x[p]) {
        return FREE_GAP;
    }
    const comer by = {.rest = -s->x[p],
                      .v = s->v[p],
                      .want = s->want[p],
                      .length = s->length[p],
                      .is_first = p == slot_front(&s->lane[lane])};
    const double room = junction_stop(s, l, &by);
    return room >= FREE_GAP ? FREE_GAP : limit_of_stop(s, by.v, by.want, room, 1);
}

/* What lines and slower lanes on its way allow a vehicle, as far as it needs to stop. */
static double limit_of_end(const sim *s, int32_t lane, int32_t p)
{
    const driver *d = &s->driver;
    const vehicle *w = &s->vehicle[s->who[p]];
    const double v = s->v[p], far = w->trip == NET_NONE ? 0 : v * v / (2 * d->b) + v * d->dt + d->s0;
    comer by = {.rest = s->net.lane[lane].length - s->x[p],
                .v = v,
                .want = s->want[p],
                .length = s->length[p],
                .is_first = p == slot_front(&s->lane[lane])};
    double limit = s->net.lane[lane].via_of != NET_NONE ? limit_at_stop_line(s, lane, p) : FREE_GAP;
    int32_t next = w->next;
    if (by.rest > SIGHT_M) {
        return FREE_GAP;
    }
    for (int32_t edges = 0; next != NET_EXIT; by.rest += s->net.lane[lane].length) {
        const int is_line = next != NET_NONE && s->net.lane[next].via_of != NET_NONE;
        const int must_change = edges == 0 && w->is_pressed && lane == w->lane && s->lane[lane].stood_s < PATIENCE_S;
        if (next == NET_NONE || must_change) {
            return least(limit, limit_of_stop(s, v, s->want[p], by.rest - STOP_MARGIN_M, 0));
        }
        if (is_line) {
            const net_link *l = &s->net.link[s->net.lane[next].via_of];
            const double room = junction_stop(s, l, &by);
            if (room < FREE_GAP) {
                return least(limit, limit_of_stop(s, v, s->want[p], room, is_yield(s, l)));
            }
        }
        const double slower = s->net.lane[next].limit;
        const double brake = v <= slower ? 0 : (v * v - slower * slower) / (2 * most(by.rest, v * d->dt));
        limit = brake > 0.5 * d->b ? least(limit, -brake) : limit;
        if (by.rest + s->net.lane[next].length > far) {
            break;
        }
        lane = next;
        by.is_first = 0;
        edges += s->net.lane[lane].via_of == NET_NONE;
        next = place_next_lane(s, w, lane, edges);
        next = next == NET_NONE ? NET_EXIT : next; /* where to change there is seen there */
    }
    return limit;
}

double move_entry_speed(const sim *s, const vehicle *w, const comer *by)
{
    const int32_t next = place_next_lane(s, w, w->lane, 0);
    const int is_line = next >= 0 && s->net.lane[next].via_of != NET_NONE;
    if (next == NET_EXIT || (next != NET_NONE && !is_line) || by->rest > SIGHT_M) {
        return by->v;
    }
    const double safe = sqrt(2 * s->driver.b * most(0, by->rest - STOP_MARGIN_M));
    comer slow = *by;
    slow.v = least(by->v, safe);
    return slow.v == by->v || (is_line && junction_may_pass(s, &s->net.link[s->net.lane[next].via_of], &slow)) ? by->v
                                                                                                               : slow.v;
}

/* As far as a vehicle needs to stop. */
static double far_enough(const driver *d, double v)
{
    return v * v / (2 * d->b) + v * (d->T + d->dt) + d->s0;
}

/* The first vehicle of a lane. */
static double accelerate_first(const sim *s, int32_t lane, int32_t p)
{
    double leader;
    double gap = ahead_of_first(s, lane, p, &leader);
    const double rest = s->net.lane[lane].length - s->x[p];
    const int32_t next = s->vehicle[s->who[p]].next;
    if (s->net.lane[lane].via_of != NET_NONE) {
        gap = leader_at_merge(s, lane, rest, gap, &leader);
    } else if (next >= 0 && rest < far_enough(&s->driver, s->v[p]) && s->net.lane[next].via_of != NET_NONE &&
               s->net.link[s->net.lane[next].via_of].junction >= s->net.n_signals) {
        gap = leader_at_merge(s, next, rest + s->net.lane[next].length, gap, &leader);
    }
    return least(follow(&s->driver, s->v[p], s->want[p], gap, leader), limit_of_end(s, lane, p));
}

static int is_near_junction(const sim *s, int32_t lane, int32_t p)
{
    const net_lane *l = &s->net.lane[lane];
    if (l->via_of != NET_NONE) {
        return s->x[p] < s->net.link[l->via_of].hold;
    }
    return l->edge != NET_NONE && s->net.edge[l->edge].junction != NET_NONE && l->length - s->x[p] < HEED_M;
}

/* Does a follower look at the junction, too? Behind one that continues it may have to yield itself, and as the first it
 * would find out too late. */
static int must_watch_junction(const sim *s, int32_t lane, int32_t p)
{
    return s->vehicle[s->who[p]].next >= 0 && is_near_junction(s, lane, p);
}

static void brake_for_junction(sim *s, int32_t lane)
{
    for (int32_t p = slot_front(&s->lane[lane]) + 1; p <= slot_back(&s->lane[lane]) && is_near_junction(s, lane, p);
         p++) {
        s->a[p] = must_watch_junction(s, lane, p) ? least(s->a[p], limit_of_end(s, lane, p)) : s->a[p];
    }
}

double move_model_acceleration(const sim *s, int32_t lane, int32_t p)
{
    if (p == slot_front(&s->lane[lane])) {
        return accelerate_first(s, lane, p);
    }
    double leader;
    const double gap = sim_gap_ahead(s, lane, p, &leader), a = follow(&s->driver, s->v[p], s->want[p], gap, leader);
    return must_watch_junction(s, lane, p) ? least(a, limit_of_end(s, lane, p)) : a;
}

static void follow_lane(const driver *d, int32_t n, const double *restrict x, const double *restrict v,
                        const double *restrict length, const double *restrict want, double *restrict a)
{
    if (d->model == MODEL_IDM) {
        for (int32_t i = 1; i < n; i++) {
            a[i] = idm(d, v[i], want[i], x[i - 1] - length[i - 1] - x[i], v[i - 1]);
        }
    } else {
        for (int32_t i = 1; i < n; i++) {
            a[i] = krauss(d, v[i], want[i], x[i - 1] - length[i - 1] - x[i], v[i - 1]);
        }
    }
}

static void dawdle_at_random(sim *s, const lane_state *l)
{
    const double most_of_it = s->driver.a * s->sigma;
    for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
        const uint64_t i = s->vehicle[s->who[p]].key << 24 | (s->step & 0xffffff);
        s->a[p] = most(s->a[p] - most_of_it * draw(s, DRAW_DAWDLE, i), -BRAKE_MAX);
    }
}

/* Agents' actions instead of the model's; the ends of lanes hold for them too. */
static void apply_agent_actions(sim *s)
{
    for (int32_t k = 0; k < s->n_places; k++) {
        const place *w = &s->place[k];
        if (w->state != PLACE_ACTING || s->c->baseline) {
            continue;
        }
        const int32_t lane = s->vehicle[w->vehicle].lane, p = sim_slot_of(s, w->vehicle);
        double a = w->accel;
        if (p == slot_front(&s->lane[lane]) || must_watch_junction(s, lane, p)) {
            a = least(a, limit_of_end(s, lane, p));
        }
        s->a[p] = least(a, (s->want[p] - s->v[p]) / s->c->dt_s);
    }
}

void move_accelerate(sim *s)
{
    junction_arbitrate(s);
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        lane_state *l = &s->lane[lane];
        if (l->n == 0) {
            continue;
        }
        const int32_t p = slot_front(l);
        follow_lane(&s->driver, l->n, s->x + p, s->v + p, s->length + p, s->want + p, s->a + p);
        s->a[p] = accelerate_first(s, lane, p);
        brake_for_junction(s, lane);
    }
    change_cooperate(s);
    if (s->driver.model == MODEL_KRAUSS && s->sigma > 0) {
        for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
            dawdle_at_random(s, &s->lane[lane]);
        }
    }
    apply_agent_actions(s);
}

/* ---- motion ------------------------------------------------------------------------------------------------------ */

typedef struct lane_sums {
    double speed, speed_ratio, standing, hard, emergency, close;
} lane_sums;

/* Time to collision of those behind another one, before they move. */
static double count_close(int32_t n, double limit_s, const double *restrict x, const double *restrict v,
                          const double *restrict length)
{
    double close = 0;
    for (int32_t i = 1; i < n; i++) {
        const double gap = x[i - 1] - length[i - 1] - x[i], closing = v[i] - v[i - 1];
        if (gap < limit_s * closing) {
            close++;
        }
    }
    return close;
}

/* a becomes the acceleration that came true. */
static lane_sums advance_lane(int32_t n, double dt, double half, double hard_mps2, double emergency_mps2,
                              double *restrict x, double *restrict v, double *restrict a, const double *restrict want)
{
    lane_sums sum = {0};
    for (int32_t i = 0; i < n; i++) {
        const double v0 = v[i], to = v0 + a[i] * dt, v1 = most(to, 0);
        /* a vehicle that stops within the step stops where its brakes bring it, not where the step ends */
        const double brake = least(a[i], -GAP_LEAST);
        const double whole = (v1 + half * (v0 - v1)) * dt, stop = 2 * half * v0 * v0 / (-2 * brake);
        x[i] += to < 0 ? stop : whole;
        v[i] = v1;
        a[i] = (v1 - v0) / dt;
        sum.speed += v1;
        sum.speed_ratio += v1 / want[i];
        if (v1 < HALTING_MPS) {
            sum.standing++;
        }
        if (a[i] < -hard_mps2) {
            sum.hard++;
        }
        if (a[i] < -emergency_mps2) {
            sum.emergency++;
        }
    }
    return sum;
}

/* A bumper past a bumper: counted, and the follower is put where they touch. */
static void record_touch(sim *s, int32_t lane, int32_t p, double overlap, double leader, int32_t other)
{
    s->sum.collisions++;
    s->lane[lane].n_collisions++;
    const int32_t pair[2] = {s->who[p], other};
    for (int k = 0; k < 2; k++) {
        const int32_t at = pair[k] == NET_NONE ? NET_NONE : s->vehicle[pair[k]].place;
        if (at != NET_NONE) {
            s->place[at].collided++;
        }
    }
    s->x[p] = most(0, s->x[p] - overlap);
    s->v[p] = least(s->v[p], leader);
}

static void check_lane(sim *s, int32_t lane)
{
    const lane_state *l = &s->lane[lane];
    const int32_t front = slot_front(l);
    double leader;
    const double gap = ahead_of_first(s, lane, front, &leader);
    if (gap < 0 && s->v[front] > 0) {
        record_touch(s, lane, front, -gap, leader, NET_NONE);
    }
    double worst = 0;
    for (int32_t p = front + 1; p < front + l->n; p++) {
        worst = least(worst, s->x[p - 1] - s->length[p - 1] - s->x[p]);
    }
    for (int32_t p = front + 1; worst < 0 && p < front + l->n; p++) {
        const double apart = s->x[p - 1] - s->length[p - 1] - s->x[p];
        if (apart < 0 && s->v[p] > 0) {
            record_touch(s, lane, p, -apart, s->v[p - 1], s->who[p - 1]);
        }
    }
}

void move_advance(sim *s)
{
    const double dt = s->c->dt_s, half = s->driver.model == MODEL_IDM ? 0.5 : 0;
    const double emergency = most(EMERGENCY_MPS2, EMERGENCY_SHARE * s->driver.b);
    lane_sums all = {0};
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        lane_state *l = &s->lane[lane];
        l->n_hard = l->n_close = l->n_collisions = 0;
        l->lost = 0;
        if (l->n == 0) {
            continue;
        }
        const int32_t p = slot_front(l);
        l->n_close = (int32_t)count_close(l->n, s->c->ttc_s, s->x + p, s->v + p, s->length + p);
        const lane_sums sum =
            advance_lane(l->n, dt, half, s->c->hard_mps2, emergency, s->x + p, s->v + p, s->a + p, s->want + p);
        l->n_hard = (int32_t)sum.hard;
        l->lost = l->n - sum.speed_ratio;
        all.speed += sum.speed;
        all.speed_ratio += sum.speed_ratio;
        all.standing += sum.standing;
        all.emergency += sum.emergency;
    }
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        if (s->lane[lane].n > 0) {
            check_lane(s, lane);
        }
    }
    const int64_t waiting = sim_waiting(s);
    s->speed_ratio = all.speed_ratio;
    s->speed_ratio_n = s->n_vehicles + waiting;
    s->sum.updates += s->n_vehicles;
    s->sum.emergencies += (int64_t)all.emergency;
    s->sum.speed_s += all.speed * dt;
    s->sum.present_s += s->n_vehicles * dt;
    s->sum.waiting_s += all.standing * dt;
    s->sum.loss_s += (s->n_vehicles - all.speed_ratio) * dt;
}
