/* SPDX-License-Identifier: Apache-2.0
 *
 * Single decisions at a junction, with vehicles placed by hand: who may pass, by travel times integrated in small steps
 * and thresholds computed here; what a driver follows across a junction; what signals show and allow; what is observed.
 */
#include "rig.h"
#include "../../plugins/env_traffic/junction.h"
#include "../../plugins/env_traffic/observe.h"
#include "../../plugins/env_traffic/signal.h"

enum { WEST = 0, SOUTH = 3, EAST = 6, NORTH = 9, STRAIGHT = 0, RIGHT = 1, LEFT = 2 }; /* links of one lane each */

/* 5 m long vehicles on one lane, 2 m apart, a = 1.5, b = 2 m/s^2, limit 13.89 m/s on all links. */
#define PLAIN                                                                                                          \
    "scenario=intersection", "lanes=1", "flow_vph=1", "speed_dev=0", "accel_mps2=1.5", "decel_mps2=2", "gap_m=2",      \
        "vehicle_m=5", "headway_s=1.5", "length_m=300"
#define A      1.5
#define B      2.0
#define S0     2.0
#define LENGTH 5.0
#define QUICK  12.0
#define MARGIN 0.03 /* s or m on either side of a threshold */

static const char *const lights[] = {PLAIN, NULL};
static const char *const no_lights[] = {PLAIN, "signals=false", NULL};

static void open_empty(sim_rig *r, const char *const *set)
{
    rig_open(r, set);
    for (int32_t k = 0; k < r->sim.n_sources; k++) {
        r->sim.source[k].n = 0;
    }
    for (int32_t k = 0; k < r->sim.net.n_lanes; k++) {
        r->sim.net.lane[k].limit = 13.89;
    }
}

static const net_link *link_of(const sim *s, int32_t bit)
{
    return &s->net.link[s->net.junction[0].link + bit];
}

static const net_area *area(const sim *s, int32_t of, int32_t with)
{
    return net_area_of(&s->net.junction[0], of, with);
}

/* A vehicle in a lane, which goes by link `bit`; its front x m from the lane's start. */
static int32_t put(sim *s, int32_t lane, int32_t bit, double x, double v)
{
    const net_link *l = link_of(s, bit);
    const int32_t w = place_insert(s, lane, x, v, 0, NET_NONE);
    assert_int_not_equal(w, NET_NONE);
    s->vehicle[w].target = l->edge;
    s->vehicle[w].next = lane == l->via ? l->to : l->via;
    s->v[sim_slot_of(s, w)] = v;
    s->want[sim_slot_of(s, w)] = QUICK;
    return w;
}

static int32_t put_before(sim *s, int32_t bit, double rest, double v)
{
    const int32_t lane = link_of(s, bit)->from;
    return put(s, lane, bit, s->net.lane[lane].length - rest, v);
}

static int32_t put_on(sim *s, int32_t bit, double x, double v)
{
    return put(s, link_of(s, bit)->via, bit, x, v);
}

static void empty(sim *s)
{
    for (int32_t k = 0; k < s->net.n_lanes; k++) {
        s->lane[k].n = 0;
    }
}

static int may_pass(const sim *s, int32_t bit, double rest, double v, double want)
{
    const comer c = {.rest = rest, .v = v, .want = want, .length = LENGTH, .is_first = 1};
    return junction_may_pass(s, link_of(s, bit), &c);
}

/* Everything is green, and yields as the net says. */
static void all_green(sim *s)
{
    s->signal[0].show = (net_show){0};
    for (int32_t k = 0; k < s->net.junction[0].n_links; k++) {
        net_include(&s->signal[0].show.green, k);
    }
}

/* Time for d metres from v on, accelerating by A up to want (never slower than v): in steps of 1e-5 s. */
static double travel(double d, double v, double want)
{
    const double dt = 1e-5;
    double x = 0, t = 0;
    for (; x < d; t += dt) {
        const double faster = v < want ? fmin(want, v + A * dt) : v;
        x += 0.5 * (v + faster) * dt;
        v = faster;
    }
    return t;
}

/* ---- who is on the way ------------------------------------------------------------------------------------------- */

/* One on a crossing path must have left the common area CLEAR_S = 0.5 s before; travel at constant speed, and with an
 * acceleration that ends before, or behind, where the paths meet. */
static void test_occupied(void **state)
{
    static const struct {
        double rest, v, want;
    } c[] = {{20, 10, 10}, {20, 8, 12}, {5, 4, 12}, {40, 9, 6}};
    sim_rig r;
    open_empty(&r, lights);
    sim *s = &r.sim;
    all_green(s);
    const double in = area(s, WEST + STRAIGHT, SOUTH + STRAIGHT)->in;
    const double out = area(s, SOUTH + STRAIGHT, WEST + STRAIGHT)->out;
    assert_true(out > in && in > 0);
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        const double there_s = travel(c[i].rest + in, c[i].v, c[i].want);
        for (int late = 0; late < 2; late++) {
            const double left_s = there_s - 0.5 + (late ? MARGIN : -MARGIN), left = fmin(out, 5); /* m to go */
            empty(s);
            put_on(s, SOUTH + STRAIGHT, out - left + LENGTH, left / left_s);
            const bool crawls = left / left_s <= 2;
            assert_int_equal(may_pass(s, WEST + STRAIGHT, c[i].rest, c[i].v, c[i].want), !late && !crawls);
            empty(s);
            put_on(s, SOUTH + STRAIGHT, out + LENGTH + (late ? -MARGIN : MARGIN), 0); /* it stands, behind the area */
            assert_int_equal(may_pass(s, WEST + STRAIGHT, c[i].rest, c[i].v, c[i].want), !late);
            empty(s);
            put_on(s, EAST + STRAIGHT, out - left + LENGTH, 0.1); /* no path that crosses */
            assert_int_equal(may_pass(s, WEST + STRAIGHT, c[i].rest, c[i].v, c[i].want), 1);
        }
    }
    /* its rear, where its front has left the junction: one of 20 m, unless it came another way */
    const net_link *after = link_of(s, SOUTH + STRAIGHT);
    for (int is_in = 0; is_in < 2; is_in++) {
        for (int is_other = 0; is_other < 2; is_other++) {
            empty(s);
            const double front = out - s->net.lane[after->via].length + 20 + (is_in ? -MARGIN : MARGIN);
            assert_true(front > 0);
            const int32_t w = put(s, after->to, SOUTH + STRAIGHT, front, 0);
            s->length[sim_slot_of(s, w)] = 20;
            s->vehicle[w].came = is_other ? NET_NONE : after->via;
            assert_int_equal(may_pass(s, WEST + STRAIGHT, 20, 10, 10), !is_in || is_other);
        }
    }
    rig_close(&r);
}

/* Room behind the junction: for its length and the standstill gap, and the same for each on the way there. */
static void test_room_behind(void **state)
{
    sim_rig r;
    open_empty(&r, lights);
    sim *s = &r.sim;
    all_green(s);
    const int32_t to = link_of(s, WEST + STRAIGHT)->to;
    for (int n = 0; n < 2; n++) {
        for (int fits = 0; fits < 2; fits++) {
            const double need = (1 + n) * (LENGTH + S0) + (fits ? MARGIN : -MARGIN);
            empty(s);
            if (n > 0) {
                put_on(s, WEST + STRAIGHT, s->net.lane[link_of(s, WEST + STRAIGHT)->via].length - 0.1, 1);
            }
            const int32_t w = put(s, to, WEST + STRAIGHT, need + LENGTH, 1);
            assert_int_equal(may_pass(s, WEST + STRAIGHT, 20, 10, 10), fits);
            s->v[sim_slot_of(s, w)] = 3.1; /* a queue that moves */
            assert_int_equal(may_pass(s, WEST + STRAIGHT, 20, 10, 10), 1);
            s->v[sim_slot_of(s, w)] = 2.9;
            assert_int_equal(may_pass(s, WEST + STRAIGHT, 20, 10, 10), fits);
        }
    }
    rig_close(&r);
}

/* ---- who goes first ---------------------------------------------------------------------------------------------- */

/* c, which turns left, and one that comes towards it and goes straight on, with a light: a gap of 1.5 s between the
 * rear of c and it. */
static void test_gap_with_a_light(void **state)
{
    sim_rig r;
    open_empty(&r, lights);
    sim *s = &r.sim;
    all_green(s);
    assert_true(net_has(&s->net.junction[0].yields[WEST + LEFT], EAST + STRAIGHT));
    const double out = area(s, WEST + LEFT, EAST + STRAIGHT)->out, in = area(s, EAST + STRAIGHT, WEST + LEFT)->in;
    const double gone = travel(15 + out + LENGTH, 8, QUICK) + 1.5;
    for (int comes = 0; comes < 2; comes++) {
        const double v = QUICK, rest = (gone + (comes ? -MARGIN : MARGIN)) * v - in;
        empty(s);
        put_before(s, EAST + STRAIGHT, rest, v);
        assert_int_equal(may_pass(s, WEST + LEFT, 15, 8, QUICK), !comes);
        assert_int_equal(may_pass(s, WEST + STRAIGHT, 15, 8, QUICK), 1); /* goes first itself */
        s->signal[0].show.green = net_without(s->signal[0].show.green, net_bit(EAST + STRAIGHT)); /* red: it stops */
        assert_int_equal(may_pass(s, WEST + LEFT, 15, 8, QUICK), 1);
        all_green(s);
        s->signal[0].show.minor = net_bit(EAST + STRAIGHT); /* nor who has to yield itself */
        assert_int_equal(may_pass(s, WEST + LEFT, 15, 8, QUICK), 1);
        net_include(&s->signal[0].show.minor, WEST + LEFT); /* as c does: then by the rules of the junction */
        assert_int_equal(may_pass(s, WEST + LEFT, 15, 8, QUICK), !comes);
        all_green(s);
    }
    rig_close(&r);
}

/* Where both come into the same lane, the follower has to become as slow as c is by then: (v - v_c) / (2 b) more. */
static void test_gap_of_a_merge(void **state)
{
    sim_rig r;
    open_empty(&r, lights);
    sim *s = &r.sim;
    all_green(s);
    assert_int_equal(link_of(s, WEST + LEFT)->to, link_of(s, EAST + RIGHT)->to);
    const double out = area(s, WEST + LEFT, EAST + RIGHT)->out, in = area(s, EAST + RIGHT, WEST + LEFT)->in;
    for (int k = 0; k < 2; k++) {
        const double want = k == 0 ? 6 : QUICK, v = 5; /* it gets there at want, or still accelerates */
        const double then = fmin(want, sqrt(v * v + 2 * A * (10 + out + LENGTH)));
        const double gone = travel(10 + out + LENGTH, v, want) + 1.5 + (QUICK - then) / (2 * B);
        for (int comes = 0; comes < 2; comes++) {
            empty(s);
            put_before(s, EAST + RIGHT, (gone + (comes ? -MARGIN : MARGIN)) * QUICK - in, QUICK);
            assert_int_equal(may_pass(s, WEST + LEFT, 10, v, want), !comes);
        }
    }
    rig_close(&r);
}

/* Time until a vehicle of LENGTH has left the path of a link: speed v after the next step, at the mean of the speeds at
 * both ends of the path. */
static double leaves_s(const sim *s, int32_t bit, double rest, double v)
{
    const double way = s->net.lane[link_of(s, bit)->via].length;
    const double in = fmin(QUICK, sqrt(v * v + 2 * A * rest)), out = fmin(QUICK, sqrt(in * in + 2 * A * way));
    return travel(rest, v, QUICK) + (way + LENGTH) / (0.5 * (in + out));
}

/* When one that drives at QUICK arrives from so far, as c expects it, which has stood for a share of 180 s and enters
 * after enters_s: from half a second before that on it brakes by the same share of B. In steps of 1e-4 s. */
static double comes_s(double rest, double enters_s, double share)
{
    const double calm = rest / QUICK, dt = 1e-4;
    double x = 0, t = 0, v = QUICK;
    for (; x < rest && v > 0; t += dt) {
        const double slower = t < enters_s - 0.5 ? v : fmax(0, v - share * B * dt);
        x += 0.5 * (v + slower) * dt;
        v = slower;
    }
    return calm + share * (v > 0 ? fmax(0, t - calm) : 30);
}

/* Without a light c must have left the junction a second before one that goes first arrives; c counts the more on it
 * that the other one brakes the longer it has stood. */
static void test_gap_without_a_light(void **state)
{
    static const double stood[] = {0, 30, 90, 400};
    sim_rig r;
    open_empty(&r, no_lights);
    sim *s = &r.sim;
    assert_int_equal(s->net.junction[0].n_phases, 0);
    for (int i = 0; i < 4; i++) {
        const double next = 3 + 0.5 * A, share = fmin(1, stood[i] / 180);
        const double gone = leaves_s(s, WEST + LEFT, 4, next) + 1, enters = travel(4, next, QUICK);
        double near = 1, far = 200; /* m: comes too soon, late enough */
        while (far - near > 1e-3) {
            const double half = 0.5 * (near + far);
            const int late = comes_s(half, enters, share) > gone;
            far = late ? half : far;
            near = late ? near : half;
        }
        for (int comes = 0; comes < 2; comes++) {
            empty(s);
            put_before(s, EAST + STRAIGHT, far + (comes ? -0.2 : 0.2), QUICK);
            s->lane[link_of(s, WEST + LEFT)->from].stood_s = stood[i];
            assert_int_equal(may_pass(s, WEST + LEFT, 4, 3, QUICK), !comes);
        }
    }
    s->lane[link_of(s, WEST + LEFT)->from].stood_s = 0;
    /* into the same lane: one that is far off is no reason to wait, until c stands and it would have to brake hard */
    empty(s);
    put_before(s, EAST + RIGHT, 120, QUICK);
    assert_int_equal(may_pass(s, WEST + LEFT, 4, 0.1, QUICK), 1);
    s->lane[link_of(s, WEST + LEFT)->from].stood_s = 2;
    assert_int_equal(may_pass(s, WEST + LEFT, 4, 0.1, QUICK), 0);
    s->lane[link_of(s, WEST + LEFT)->from].stood_s = 170;
    assert_int_equal(may_pass(s, WEST + LEFT, 4, 0.1, QUICK), 1);
    s->lane[link_of(s, WEST + LEFT)->from].stood_s = 0;
    /* behind one that is still on the junction c would leave it later */
    put_on(s, NORTH + STRAIGHT, s->net.lane[link_of(s, NORTH + STRAIGHT)->via].length - 0.1, QUICK);
    assert_int_equal(may_pass(s, WEST + LEFT, 4, 3, QUICK), 1);
    put_on(s, EAST + RIGHT, s->net.lane[link_of(s, EAST + RIGHT)->via].length - 0.1, QUICK);
    assert_int_equal(may_pass(s, WEST + LEFT, 4, 3, QUICK), 1);
    /* one that crawls and whose own way is blocked does not come */
    empty(s);
    put_before(s, EAST + STRAIGHT, 5, 2.9);
    assert_int_equal(may_pass(s, WEST + LEFT, 4, 3, QUICK), 0);
    put(s, link_of(s, EAST + STRAIGHT)->to, EAST + STRAIGHT, LENGTH + 1, 0);
    assert_int_equal(may_pass(s, WEST + LEFT, 4, 3, QUICK), 1);
    /* further than 4.5 m from its line it does not see them yet: it stops, unless that takes more than 5 m/s^2 */
    empty(s);
    assert_int_equal(may_pass(s, WEST + LEFT, 4.6, 3, QUICK), 0);
    assert_int_equal(may_pass(s, WEST + LEFT, 4.4, 3, QUICK), 1);
    assert_int_equal(may_pass(s, WEST + LEFT, 10.1, 10, QUICK), 0); /* 4.95 m/s^2 */
    assert_int_equal(may_pass(s, WEST + LEFT, 9.9, 10, QUICK), 1);  /* 5.05 m/s^2 */
    rig_close(&r);
}

/* A left turn that waits inside the junction, with the program of a file: a second between the moment when it has left
 * and the arrival of one that comes towards it, as without a light. */
static void test_gap_inside_with_a_light(void **state)
{
    sim_rig r;
    open_empty(&r, lights);
    sim *s = &r.sim;
    all_green(s);
    net_include(&s->signal[0].show.minor, WEST + LEFT);
    net_junction *j = &s->net.junction[0];
    net_link *turn = &s->net.link[j->link + WEST + LEFT];
    const double hold = turn->hold > 0 ? turn->hold : 3, way = s->net.lane[turn->via].length - hold;
    turn->hold = hold;
    j->n_steps = 2;
    const double v = 0.5 * A, in = sqrt(v * v + 2 * A * 1), out = sqrt(in * in + 2 * A * way); /* 1 m before it */
    const double gone = travel(1, v, QUICK) + (way + LENGTH) / (0.5 * (in + out)) + 1;
    for (int comes = 0; comes < 2; comes++) {
        empty(s);
        put_before(s, EAST + STRAIGHT, (gone + (comes ? -MARGIN : MARGIN)) * QUICK, QUICK);
        assert_int_equal(may_pass(s, WEST + LEFT, 1 - hold, 0, QUICK), !comes);
    }
    rig_close(&r);
}

/* ---- lights ------------------------------------------------------------------------------------------------------ */

static void test_yellow_and_red(void **state)
{
    sim_rig r;
    open_empty(&r, lights);
    sim *s = &r.sim;
    s->signal[0].show = (net_show){.yellow = net_bit(WEST + STRAIGHT)};
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 14.4, 10, 10), 0); /* 3.47 m/s^2: it stops */
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 14.1, 10, 10), 1); /* 3.55 */
    s->signal[0].show = (net_show){0};
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 14.1, 10, 10), 0);
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 5.6, 10, 10), 0); /* 8.9 */
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 5.5, 10, 10), 1); /* 9.1: it cannot stop any more */
    s->signal[0].show = (net_show){.stop = net_bit(WEST + STRAIGHT)};
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 3.1, 1, 10), 0); /* red to pass after a stop: 3 m before the line, */
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 2.9, 2.1, 10), 0); /* at 2 m/s */
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 2.9, 1.9, 10), 1);
    put_before(s, SOUTH + STRAIGHT, 20, 10); /* and then all that cross go first, as far as they may */
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 2.9, 1.9, 10), 1);
    s->signal[0].show.green = net_bit(SOUTH + STRAIGHT);
    assert_int_equal(may_pass(s, WEST + STRAIGHT, 2.9, 1.9, 10), 0);
    rig_close(&r);
}

/* A phase is shown from min_green_s on and until max_green_s; what two phases share stays green between them. */
static void test_stages(void **state)
{
    static const char *const set[] = {PLAIN,        "control=signals", "min_green_s=5", "max_green_s=40",
                                      "yellow_s=3", "all_red_s=1",     "dt_s=0.5",      NULL};
    sim_rig r;
    open_empty(&r, set);
    sim *s = &r.sim;
    net_junction *j = &s->net.junction[0];
    signal_state *g = &s->signal[0];
    assert_true(j->n_phases > 1);
    const int32_t p = g->phase, q = (p + 1) % j->n_phases;
    net_include(&j->phase[q].green, net_next(&j->phase[p].green, 0)); /* one of p's */
    const net_links first = net_bit(0), both = net_union(first, net_bit(1));
    j->phase[p].stop = both; /* p lets both pass after a stop, q the first */
    j->phase[q].stop = first;
    j->phase[q].green = net_without(j->phase[q].green, both);
    for (int i = 0; i < 100; i++) { /* half seconds that it has been green */
        assert_int_equal(signal_is_legal(s, 0, p), i < 80);
        assert_int_equal(signal_is_legal(s, 0, q), i >= 10);
        assert_int_equal(signal_is_legal(s, 0, -1), 0);
        assert_int_equal(signal_is_legal(s, 0, j->n_phases), 0);
        signal_step(s);
    }
    rig_near(g->stage_s, 50, 1e-9);
    const net_links before = j->phase[p].green, after = j->phase[q].green;
    assert_int_equal(signal_request(s, 0, q), 1);
    for (int i = 0; i < 8; i++) { /* 3 s yellow, 1 s red */
        assert_true(net_equal(g->show.green, net_common(before, after)));
        assert_true(net_equal(g->show.stop, first)); /* goes on; the second has to stop for good */
        assert_true(net_equal(g->show.yellow, i < 6 ? net_without(before, after) : (net_links){0}));
        assert_int_equal(signal_is_legal(s, 0, p), 0);
        assert_int_equal(signal_is_legal(s, 0, q), 1);
        signal_step(s);
    }
    assert_int_equal(g->phase, q);
    assert_true(net_equal(g->show.green, after) && !net_any(g->show.yellow));
    assert_true(g->served_s[q] == 0 && g->served_s[p] > 3.5);
    rig_close(&r);
}

/* ---- what is followed -------------------------------------------------------------------------------------------- */

static void test_leader_across(void **state)
{
    sim_rig r;
    open_empty(&r, no_lights);
    sim *s = &r.sim;
    double speed = 0;
    const int32_t own = put_before(s, WEST + STRAIGHT, 30, 10), lane = link_of(s, WEST + STRAIGHT)->from;
    const int32_t p = sim_slot_of(s, own);
    assert_true(sim_gap_ahead(s, lane, p, &speed) >= FREE_GAP);
    /* one that turns off stands in the way until its rear is 1 m past the line */
    const int32_t other = put_on(s, WEST + RIGHT, LENGTH + 0.9, 3);
    rig_near(sim_gap_ahead(s, lane, p, &speed), 30.9, 1e-9);
    rig_near(speed, 3, 0);
    s->x[sim_slot_of(s, other)] = LENGTH + 1.1;
    assert_true(sim_gap_ahead(s, lane, p, &speed) >= FREE_GAP);
    s->x[sim_slot_of(s, other)] = LENGTH - 2; /* its rear is 2 m before the line */
    rig_near(sim_gap_ahead(s, lane, p, &speed), 28, 1e-9);
    /* the nearer of two: on its own path */
    put_on(s, WEST + STRAIGHT, LENGTH - 4, 2);
    rig_near(sim_gap_ahead(s, lane, p, &speed), 26, 1e-9);
    rig_near(speed, 2, 0);
    /* over the whole junction: rest + via + x - length */
    empty(s);
    put(s, link_of(s, WEST + STRAIGHT)->to, WEST + STRAIGHT, 40, 7);
    s->lane[lane].n = 1;
    const double via = s->net.lane[link_of(s, WEST + STRAIGHT)->via].length;
    rig_near(sim_gap_ahead(s, lane, p, &speed), 30 + via + 40 - LENGTH, 1e-9);
    rig_near(speed, 7, 0);
    rig_close(&r);
}

/* Of two that merge at the same distance one follows the other, and not both each other. */
static void test_tie_of_a_merge(void **state)
{
    sim_rig r;
    double free[2], tied[2];
    open_empty(&r, no_lights);
    sim *s = &r.sim;
    const int32_t bit[2] = {WEST + LEFT, EAST + RIGHT};
    for (int both = 0; both < 2; both++) {
        for (int k = 0; k < 2; k++) {
            if (!both || k == 0) {
                empty(s);
            }
            int32_t w[2] = {0, 0};
            for (int i = both ? 0 : k; i < (both ? 2 : k + 1); i++) {
                w[i] = put_on(s, bit[i], s->net.lane[link_of(s, bit[i])->via].length - 4, 5);
            }
            move_accelerate(s);
            for (int i = both ? 0 : k; i < (both ? 2 : k + 1); i++) {
                (both ? tied : free)[i] = s->a[sim_slot_of(s, w[i])];
            }
            if (both) {
                break;
            }
        }
    }
    rig_near(tied[0], free[0], 1e-12); /* the first link goes on as if it were alone */
    assert_true(tied[1] < free[1] - 1);
    /* one that is far from the end follows one that is 2 m from it, as if it were on its own path; both at 5 m/s */
    empty(s);
    const double via[2] = {s->net.lane[link_of(s, bit[0])->via].length, s->net.lane[link_of(s, bit[1])->via].length};
    const double far = fmin(via[0], 18);
    const int32_t w = put_on(s, bit[0], via[0] - far, 5);
    put_on(s, bit[1], via[1] - 2, 5);
    move_accelerate(s);
    const double gap = far - 2 - LENGTH, speed_ratio = S0 + 5 * 1.5;
    rig_near(s->a[sim_slot_of(s, w)], A * (1 - pow(5 / QUICK, 4) - pow(speed_ratio / gap, 2)), 1e-9);
    rig_close(&r);
}

/* At red a driver stops 1 m before the line; on its way it brakes as for a standing vehicle s0 + 1 m before it. */
static void test_stop_at_the_line(void **state)
{
    sim_rig r;
    open_empty(&r, lights);
    sim *s = &r.sim;
    s->signal[0].show = (net_show){0};
    const double v = 10, rest = 60, T = 1.5;
    const int32_t p = sim_slot_of(s, put_before(s, WEST + STRAIGHT, rest, v));
    move_accelerate(s);
    const double speed_ratio = S0 + v * T + v * v / (2 * sqrt(A * B)), gap = rest - 1 + S0; /* Treiber's IDM */
    rig_near(s->a[p], A * (1 - pow(v / QUICK, 4) - pow(speed_ratio / gap, 2)), 1e-9);
    empty(s);
    const int32_t near = sim_slot_of(s, put_before(s, WEST + STRAIGHT, 31, v)); /* v^2 / (2 30) = 1.67: b at most */
    move_accelerate(s);
    rig_near(s->a[near], -B, 1e-9);
    empty(s);
    const int32_t late = sim_slot_of(s, put_before(s, WEST + STRAIGHT, 13.5, v)); /* v^2 / (2 12.5): 4, and no more */
    move_accelerate(s);
    rig_near(s->a[late], -4, 1e-9);
    empty(s);
    const int32_t w = put_before(s, WEST + STRAIGHT, 60, v);
    for (int i = 0; i < 400; i++) {
        move_accelerate(s);
        move_advance(s);
    }
    rig_near(s->net.lane[link_of(s, WEST + STRAIGHT)->from].length - s->x[sim_slot_of(s, w)], 1, 0.15);
    rig_close(&r);
}

/* ---- what is observed -------------------------------------------------------------------------------------------- */

static void test_observed(void **state)
{
    static const char *const set[] = {PLAIN, "penetration=1", "agents=8", "control=vehicles", NULL};
    static float ego[8][EGO_FEATURES], ahead[8][AHEAD_ROWS][PAIR_FEATURES];
    sim_rig r;
    open_empty(&r, set);
    sim *s = &r.sim;
    all_green(s);
    const int32_t w = put_before(s, WEST + STRAIGHT, 60, 9);
    const int32_t k = s->vehicle[w].place;
    assert_true(k != NET_NONE && s->place[k].state != PLACE_FREE);
    observe_ego(s, &ego[0][0]);
    const float alone[6] = {9, 200, 9, 200, 9, QUICK}; /* the speed of nobody is its own */
    for (int d = 0; d < 6; d++) {
        rig_near((double)ego[k][d], (double)alone[d], 1e-5);
    }
    rig_near((double)ego[k][6], 60, 1e-4);
    empty(s);
    const int32_t front = put_before(s, WEST + STRAIGHT, 40, 4), mid = put_before(s, WEST + STRAIGHT, 60, 9);
    put_before(s, WEST + STRAIGHT, 90, 11);
    observe_ego(s, &ego[0][0]);
    observe_ahead(s, &ahead[0][0][0]);
    const int32_t m = s->vehicle[mid].place;
    const float seen[6] = {9, 15, 4, 25, 11, QUICK};
    for (int d = 0; d < 6; d++) {
        rig_near((double)ego[m][d], (double)seen[d], 1e-5);
    }
    rig_near((double)ahead[m][0][0], 15, 1e-5);
    rig_near((double)ahead[m][0][1], 4, 1e-5);
    rig_near((double)ahead[m][0][3], 9, 1e-5);
    rig_near((double)ahead[m][0][5], s->c->action_s, 1e-6);
    rig_near((double)ahead[m][0][6], 0, 0); /* ballistic */
    s->driver.model = MODEL_KRAUSS;
    observe_ahead(s, &ahead[0][0][0]);
    rig_near((double)ahead[m][0][6], s->c->dt_s, 1e-6);
    s->signal[0].show = (net_show){0};
    observe_ahead(s, &ahead[0][0][0]);
    rig_near((double)ahead[s->vehicle[front].place][1][0], 40, 1e-4); /* red: to the line */
    rig_close(&r);
}

/* Vehicles within detector_m and near_m of the line, standing ones, and where the first is. */
static void test_detected(void **state)
{
    static const char *const set[] = {PLAIN, "control=signals", "detector_m=60", "near_m=20", NULL};
    sim_rig r;
    open_empty(&r, set);
    sim *s = &r.sim;
    const net_junction *j = &s->net.junction[0];
    const int32_t D = observe_signal_width(&s->net), P = s->net.most_phases;
    float *signal = calloc((size_t)D, sizeof(*signal)), *phases = calloc((size_t)P * N_SIGNAL_COLUMNS, sizeof(*phases));
    int32_t neighbour[NET_MAX_ARMS];
    put_before(s, WEST + STRAIGHT, 3, 0);
    put_before(s, WEST + STRAIGHT, 19.9, 0.05);
    put_before(s, WEST + STRAIGHT, 40, 5);
    put_before(s, WEST + STRAIGHT, 60.1, 0);
    s->lane[link_of(s, WEST + STRAIGHT)->from].stood_s = 17;
    detectors d;
    assert_int_equal(detect_init(&d, s), DT_OK);
    detect_read(&d, s);
    observe_signals(s, &d, signal, phases, neighbour);
    const float *lane = NULL; /* the one with vehicles, behind 2 Q + 3 columns */
    const int32_t Q = P < 4 ? 4 : P;
    for (int32_t at = 2 * Q + 3; at + 4 <= D; at += 4) {
        if (signal[at] > 0) {
            assert_null(lane);
            lane = signal + at;
        }
    }
    assert_non_null(lane);
    rig_near((double)lane[0], 3, 0);
    rig_near((double)lane[1], 2, 0);
    rig_near((double)lane[2], 3, 1e-5);
    rig_near((double)lane[3], 17, 1e-5);
    for (int32_t p = 0; p < j->n_phases; p++) {
        const float *f = phases + p * N_SIGNAL_COLUMNS;
        const bool serves = net_has(&j->phase[p].green, WEST + STRAIGHT);
        const bool any = (j->phase[p].green.word[0] >> WEST & 7) != 0; /* their lane gets green for some way */
        rig_near((double)f[0], any ? 3 : 0, 0);
        rig_near((double)f[1], any ? 2 : 0, 0);
        rig_near((double)f[5], any ? 2 : 0, 0);
        rig_near((double)f[6], any ? 17 : 0, 1e-5);
        rig_near((double)f[8], serves ? 3 : 0, 0);
        rig_near((double)f[9], serves ? 2 : 0, 0);
        rig_near((double)f[13], any ? 2 : 0, 0);                     /* on the one lane */
        rig_near((double)f[14], any && 40 <= 5 * s->c->action_s, 0); /* the one that moves */
        rig_near((double)f[15], any ? (0.05 + 5) / 3 : 0, 1e-6);
        rig_near((double)f[16], any ? 3 : 60, 1e-5);
    }
    detect_fini(&d);
    free(signal);
    free(phases);
    rig_close(&r);
}

/* A vehicle on its way over one junction is detected at the next one already, as far as the range reaches. */
static void test_detected_before_the_lane(void **state)
{
    static const char *const set[] = {PLAIN,         "scenario=grid", "rows=1", "cols=2", "control=signals",
                                      "length_m=60", "detector_m=80", NULL};
    sim_rig r;
    open_empty(&r, set);
    sim *s = &r.sim;
    const net_junction *j = &s->net.junction[0];
    int32_t k = j->link;
    while (s->net.edge[s->net.link[k].edge].junction != 1) {
        k++;
    }
    const net_link *l = &s->net.link[k];
    const double lane_m = s->net.lane[l->to].length, via_m = s->net.lane[l->via].length;
    detectors d;
    assert_int_equal(detect_init(&d, s), DT_OK);
    assert_true(lane_m < 80 && d.entry[l->to] != NET_NONE && d.reach_m[l->via] == lane_m);
    assert_true(place_insert(s, l->via, 1, 0.05, 0, NET_NONE) != NET_NONE);
    s->lane[l->via].stood_s = 9;
    detect_read(&d, s);
    const signal_lane *seen = &d.lane[d.entry[l->to]];
    const bool is_within = via_m - 1 + lane_m <= 80;
    assert_int_equal(seen->n, is_within);
    assert_int_equal(seen->standing, is_within);
    assert_true(is_within);
    rig_near(seen->first_m, via_m - 1 + lane_m, 1e-9);
    rig_near(seen->stood_s, 9, 0);
    assert_int_equal(d.lane[d.entry[l->from]].n, 0); /* it has passed that line */
    s->v[slot_front(&s->lane[l->via])] = 80 / s->c->action_s;
    detect_read(&d, s);
    assert_true(seen->due == 1 && seen->standing == 0 && seen->stood_s == 0);
    detect_fini(&d);
    r.config->detector_m = lane_m; /* the lane alone */
    assert_int_equal(detect_init(&d, s), DT_OK);
    detect_read(&d, s);
    assert_int_equal(d.lane[d.entry[l->to]].n, 0);
    detect_fini(&d);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_occupied),
        cmocka_unit_test(test_room_behind),
        cmocka_unit_test(test_gap_with_a_light),
        cmocka_unit_test(test_gap_of_a_merge),
        cmocka_unit_test(test_gap_inside_with_a_light),
        cmocka_unit_test(test_gap_without_a_light),
        cmocka_unit_test(test_yellow_and_red),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_leader_across),
        cmocka_unit_test(test_tie_of_a_merge),
        cmocka_unit_test(test_stop_at_the_line),
        cmocka_unit_test(test_observed),
        cmocka_unit_test(test_detected),
        cmocka_unit_test(test_detected_before_the_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
