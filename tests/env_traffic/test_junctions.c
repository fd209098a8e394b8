/* SPDX-License-Identifier: Apache-2.0
 *
 * Junctions: geometry and right of way, signals by construction, and delay at a fixed-time signal against Webster.
 */
#include "rig.h"
#include "../../plugins/env_traffic/signal.h"

static const char *const *const busy[] = {
    (const char *const[]){"scenario=intersection", "episode_s=3600", "speed_dev=0.1", NULL},
    (const char *const[]){"scenario=intersection", "episode_s=3600", "lanes=1", "flow_vph=350", "accel_mps2=2", NULL},
    (const char *const[]){"scenario=intersection", "episode_s=3600", "lanes=3", "flow_vph=900", NULL},
    (const char *const[]){"scenario=intersection", "episode_s=3600", "lanes=1", "signals=false", "flow_vph=250", NULL},
    (const char *const[]){"scenario=grid", "episode_s=3600", "rows=2", "cols=3", NULL},
    /* queues reach back into the junctions */
    (const char *const[]){"scenario=grid", "episode_s=3600", "lanes=3", "flow_vph=750", "speed_dev=0.1", NULL},
    (const char *const[]){"scenario=grid", "episode_s=3600", "lanes=1", "flow_vph=250", "dt_s=0.5", "model=krauss",
                          "accel_mps2=2.6", "decel_mps2=4.5", "gap_m=2.5", NULL},
    /* drivers who follow another one up to the line, closely, and then have to yield */
    (const char *const[]){"scenario=intersection", "episode_s=3600", "lanes=1", "dt_s=0.5", "model=krauss", "sigma=0",
                          "accel_mps2=2.6", "decel_mps2=4.5", "gap_m=2.5", NULL},
    (const char *const[]){"scenario=intersection", "episode_s=3600", "lanes=1", "signals=false", "flow_vph=250",
                          "model=krauss", "sigma=0", "accel_mps2=2.6", "decel_mps2=4.5", "gap_m=2.5", NULL},
    (const char *const[]){"scenario=grid", "episode_s=3600", "lanes=1", "flow_vph=250", "dt_s=0.25", "model=krauss",
                          "sigma=0", "accel_mps2=2.6", "decel_mps2=4.5", "gap_m=2.5", NULL},
};

static void test_no_vehicle_is_lost_or_hurt(void **test)
{
    for (size_t k = 0; k < sizeof(busy) / sizeof(busy[0]); k++) {
        sim_rig r;
        rig_open(&r, busy[k]);
        sim *s = &r.sim;
        for (int i = 0; i < 60; i++) {
            rig_run(&r, 60);
            assert_int_equal(s->sum.inserted, s->sum.finished + s->n_vehicles);
        }
        const tally *t = &s->sum;
        assert_int_equal(t->collisions, 0);
        assert_int_equal(t->conflicting, 0);
        assert_true(t->finished > 900); /* nothing is stuck */
        rig_close(&r);
    }
}

/* Webster 1958: d = c (1 - l)^2 / (2 (1 - l x)) + x^2 / (2 q (1 - x)) - 0.65 (c / q^2)^(1/3) x^(2 + 5 l) */
static double webster(double c, double l, double q, double x)
{
    return c * (1 - l) * (1 - l) / (2 * (1 - l * x)) + x * x / (2 * q * (1 - x)) -
           0.65 * cbrt(c / (q * q)) * pow(x, 2 + 5 * l);
}

/* One lane, straight on, Poisson arrivals: mean delay against Webster's formula for the capacity that is measured with
 * a standing queue, effective green taken as the green shown. Above it by at most 20 %: Webster's vehicles stand in the
 * line and not behind each other, and drive at the limit until they are there. */
static void test_delay_at_a_fixed_signal(void **test)
{
    static const char *const flow[] = {"flow_vph=3000", "flow_vph=250", "flow_vph=350", "flow_vph=450"};
    double capacity = 0; /* 1/s and approach */
    for (int k = 0; k < 4; k++) {
        const char *set[] = {
            "scenario=intersection", "lanes=1",      "left_share=0", "right_share=0", "green_s=26", flow[k],
            "episode_s=36000",       "length_m=300", "accel_mps2=2", "headway_s=1.2", "dt_s=0.25",  NULL};
        sim_rig r;
        rig_open(&r, set);
        const tally *t = &r.sim.sum;
        const double run = k == 0 ? 3600 : 36000;
        rig_run(&r, run);
        const double due = (double)t->inserted + (double)sim_waiting(&r.sim);
        if (k == 0) {
            capacity = (double)t->finished / 3600 / 4;
        } else {
            const double q = due / run / 4;
            const double theory = webster(60, 26. / 60, q, q / capacity);
            rig_near(sim_delay(&r.sim) / due, 1.1 * theory, 0.1 * theory);
        }
        assert_int_equal(t->collisions, 0);
        rig_close(&r);
    }
}

/* Whatever is asked for, in any order: no conflicting greens, no skipped yellow or all-red, no short green. */
static void test_signals_by_construction(void **test)
{
    static const char *const lanes[] = {"lanes=1", "lanes=2", "lanes=3"};
    for (int n = 0; n < 3; n++) {
        const char *set[] = {"scenario=intersection", "control=signals", lanes[n], "max_green_s=40", NULL};
        sim_rig r;
        rig_open(&r, set);
        sim *s = &r.sim;
        const net_junction *j = &s->net.junction[0];
        const signal_state *g = &s->signal[0];
        double green_since[NET_MAX_LINKS] = {0}, yellow_since[NET_MAX_LINKS] = {0}, closed_since = 0;
        net_links green = g->show.green, yellow = {0};
        uint64_t x = 88172645463325252;
        for (int i = 0; i < 40000; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            const int32_t p = (int32_t)(x >> 40) % (j->n_phases + 1) - (i % 7 == 0);
            const int legal = signal_is_legal(s, 0, p);
            assert_int_equal(signal_request(s, 0, p), legal);
            assert_true(p >= 0 && p < j->n_phases ? 1 : !legal);
            sim_step(s);
            assert_int_equal(g->n_conflicts, 0);
            assert_false(net_any(net_common(g->show.green, g->show.yellow)));
            for (int32_t b = 0; b < j->n_links; b++) {
                const int was = net_has(&green, b), is = net_has(&g->show.green, b);
                const int was_yellow = net_has(&yellow, b), is_yellow = net_has(&g->show.yellow, b);
                assert_int_equal(was && !is, !was_yellow && is_yellow); /* green goes to yellow, nothing else does */
                if (was && !is) {
                    const double asked = s->elapsed_s - 0.5; /* before this step */
                    assert_true(asked - green_since[b] >= 5 - 1e-9);
                    yellow_since[b] = asked;
                }
                if (was_yellow && !is_yellow) {
                    rig_near(s->elapsed_s - yellow_since[b], 3, 1e-9);
                    closed_since = s->elapsed_s;
                }
                if (!was && is) {
                    rig_near(s->elapsed_s - closed_since, 1, 1e-9);
                    green_since[b] = s->elapsed_s;
                }
            }
            green = g->show.green;
            yellow = g->show.yellow;
        }
        assert_int_equal(s->sum.conflicting, 0);
        rig_close(&r);
    }
}

/* The counter itself sees what must not be. */
static void test_conflicting_greens_are_seen(void **test)
{
    const char *set[] = {"scenario=intersection", "control=signals", NULL};
    sim_rig r;
    rig_open(&r, set);
    net_junction *j = &r.sim.net.junction[0];
    r.sim.signal[0].show.green = net_union(j->phase[0].green, j->phase[2].green);
    r.sim.signal[0].stage = STAGE_GREEN;
    signal_step(&r.sim);
    assert_true(r.sim.sum.conflicting >= 4);
    rig_close(&r);
}

static void test_paths_cross_where_they_should(void **test)
{
    const char *set[] = {"scenario=intersection", "lanes=1", NULL};
    sim_rig r;
    rig_open(&r, set);
    const net *n = &r.sim.net;
    const net_junction *j = &n->junction[0];
    assert_int_equal(j->n_links, 12); /* of each arm: straight, right, left */
    enum { WEST = 0, SOUTH = 3, EAST = 6, STRAIGHT = 0, RIGHT = 1, LEFT = 2 };
    assert_true(net_has(&j->crosses[WEST + STRAIGHT], SOUTH + STRAIGHT));
    assert_false(net_has(&j->crosses[WEST + STRAIGHT], EAST + STRAIGHT));
    assert_true(net_has(&j->crosses[WEST + LEFT], EAST + STRAIGHT));
    assert_false(net_has(&j->crosses[WEST + LEFT], EAST + LEFT)); /* they pass in front of each other */
    assert_true(net_has(&j->yields[WEST + LEFT], EAST + STRAIGHT));
    assert_false(net_has(&j->yields[EAST + STRAIGHT], WEST + LEFT));
    assert_true(net_has(&j->yields[WEST + LEFT], EAST + RIGHT)); /* into the same road */
    for (int32_t a = 0; a < j->n_links; a++) {
        const net_lane *via = &n->lane[n->link[j->link + a].via], *to = &n->lane[n->link[j->link + a].to];
        double x, y, heading; /* every path ends where its lane begins, in the same direction */
        net_point(via, via->length, &x, &y, &heading);
        rig_near(hypot(x - to->x0, y - to->y0), 0, 1e-9);
        rig_near(cos(heading - to->heading), 1, 1e-9);
        for (int32_t b = 0; b < j->n_links; b++) {
            assert_int_equal(net_has(&j->crosses[a], b), net_has(&j->crosses[b], a));
            assert_int_equal(net_has(&j->yields[a], b) + net_has(&j->yields[b], a), net_has(&j->crosses[a], b));
        }
    }
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_vehicle_is_lost_or_hurt),    cmocka_unit_test(test_delay_at_a_fixed_signal),
        cmocka_unit_test(test_signals_by_construction),       cmocka_unit_test(test_conflicting_greens_are_seen),
        cmocka_unit_test(test_paths_cross_where_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
