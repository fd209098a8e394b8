/* SPDX-License-Identifier: Apache-2.0
 *
 * Demand, lane changes, merge and bottleneck: nobody is lost, nobody collides, who is slow is overtaken, and a lane
 * carries what theory says.
 */
#include "rig.h"

static int64_t on_road(const sim *s)
{
    int64_t n = 0;
    for (int32_t k = 0; k < s->net.n_lanes; k++) {
        n += s->lane[k].n;
    }
    return n;
}

/* Every vehicle is in one slot, in order, without overlap, and its entry says so. */
static void assert_consistent(const sim *s)
{
    for (int32_t k = 0; k < s->net.n_lanes; k++) {
        const lane_state *l = &s->lane[k];
        for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
            assert_int_equal(s->vehicle[s->who[p]].lane, k);
            assert_true(s->x[p] >= 0 && s->x[p] < s->net.lane[k].length + 1e-9);
            assert_true(p == slot_front(l) || s->x[p - 1] - s->length[p - 1] - s->x[p] > -1e-9);
            rig_near(s->want[p], s->net.lane[k].limit * s->vehicle[s->who[p]].factor, 1e-9);
        }
    }
    assert_int_equal(on_road(s), s->n_vehicles);
    assert_int_equal(s->sum.inserted, s->sum.finished + s->n_vehicles);
    assert_int_equal(s->n_spare + s->n_vehicles, s->max_vehicles);
    int64_t taken = 0;
    for (int32_t k = 0; k < s->n_sources; k++) {
        taken += s->source[k].taken;
        assert_true(s->source[k].taken <= s->source[k].arrived);
    }
    assert_int_equal(taken, s->sum.inserted);
}

static const char *const *const busy[] = {
    (const char *const[]){"scenario=merge", "episode_s=3600", "speed_dev=0.1", "limit_mps=25", NULL},
    (const char *const[]){"scenario=merge", "episode_s=3600", "flow_vph=4000", "ramp_vph=1200", NULL},
    (const char *const[]){"scenario=bottleneck", "episode_s=3600", "speed_dev=0.1", "flow_vph=6000", NULL},
    (const char *const[]){"scenario=bottleneck", "episode_s=3600", "lanes=2", "arrivals=uniform", NULL},
    (const char *const[]){"scenario=merge", "episode_s=3600", "model=krauss", "dt_s=1", "accel_mps2=2.6",
                          "decel_mps2=4.5", "gap_m=2.5", NULL},
};

static void test_no_vehicle_is_lost_or_hurt(void **test)
{
    for (size_t k = 0; k < sizeof(busy) / sizeof(busy[0]); k++) {
        sim_rig r;
        rig_open(&r, busy[k]);
        for (int i = 0; i < 60; i++) {
            rig_run(&r, 60);
            assert_consistent(&r.sim);
        }
        const tally *t = &r.sim.sum;
        assert_int_equal(t->collisions, 0);
        assert_true(t->finished > 1000);
        rig_close(&r);
    }
}

/* Poisson and uniform arrivals have the rate that was asked for, and a free road lets all of them in. */
static void test_demand_has_its_rate(void **test)
{
    static const char *const kinds[] = {"arrivals=poisson", "arrivals=uniform"};
    for (int k = 0; k < 2; k++) {
        const char *set[] = {"scenario=bottleneck", kinds[k], "flow_vph=900", "episode_s=36000", NULL};
        sim_rig r;
        rig_open(&r, set);
        const source *q = &r.sim.source[0];
        rig_near(q->n, 9000, k == 0 ? 4 * sqrt(9000) : 1);
        double squares = 0;
        for (int32_t i = 1; i < q->n; i++) {
            squares += pow(q->due[i].due - q->due[i - 1].due - 4, 2) / q->n;
        }
        rig_near(sqrt(squares), k == 0 ? 4 : 0, k == 0 ? 0.2 : 1e-9); /* an exponential's deviation is its mean */
        rig_run(&r, 3600);
        assert_true(sim_waiting(&r.sim) <= 2);
        rig_close(&r);
    }
}

/* What flows out of a jam before a bottleneck is less than the most that the IDM carries in equilibrium (capacity
 * drop), and not much less. */
static void test_capacity_of_a_lane(void **test)
{
    static const char *const set[] = {
        "scenario=bottleneck", "lanes=2", "flow_vph=4000", "episode_s=7200", "headway_s=1.5", "accel_mps2=1.5", NULL};
    sim_rig r;
    rig_open(&r, set);
    double most_flow = 0;
    for (double v = 1; v < 13.89; v += 0.01) {
        const double ratio = v / 13.89, gap = (2 + v * 1.5) / sqrt(1 - pow(ratio, 4));
        most_flow = fmax(most_flow, 3600 * v / (gap + 5));
    }
    rig_run(&r, 1800);
    const int64_t before = r.sim.sum.finished;
    rig_run(&r, 5400);
    const double flow = (double)(r.sim.sum.finished - before) / 1.5;
    assert_true(flow > 0.75 * most_flow && flow < most_flow);
    rig_close(&r);
}

static void test_who_is_slow_is_overtaken(void **test)
{
    static const char *const set[] = {"scenario=merge", "lanes=2", "length_m=2000", "ramp_vph=0", NULL};
    sim_rig r;
    rig_open(&r, set);
    sim *s = &r.sim;
    for (int32_t k = 0; k < s->n_sources; k++) {
        s->source[k].n = 0;
    }
    const int32_t slow = place_insert(s, 0, 100, 5, 0, NET_NONE), quick = place_insert(s, 0, 20, 13, 0, NET_NONE);
    s->vehicle[slow].factor = 0.4;
    s->want[sim_slot_of(s, slow)] *= 0.4;
    rig_run(&r, 60);
    assert_true(s->x[sim_slot_of(s, quick)] > s->x[sim_slot_of(s, slow)] + 50);
    assert_int_equal(on_road(s), 2);
    rig_close(&r);
    /* but not where the follower on the other lane would have to brake too hard */
    rig_open(&r, set);
    for (int32_t k = 0; k < s->n_sources; k++) {
        s->source[k].n = 0;
    }
    place_insert(s, 1, 60, 13.89, 0, NET_NONE);
    place_insert(s, 0, 80, 3, 0, NET_NONE);
    const int32_t stuck = place_insert(s, 0, 70, 3, 0, NET_NONE);
    s->vehicle[stuck].last = -10;
    rig_run(&r, 1);
    assert_int_equal(s->vehicle[stuck].lane, 0);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_vehicle_is_lost_or_hurt),
        cmocka_unit_test(test_demand_has_its_rate),
        cmocka_unit_test(test_capacity_of_a_lane),
        cmocka_unit_test(test_who_is_slow_is_overtaken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
