/* SPDX-License-Identifier: Apache-2.0
 *
 * Junctions without lights: vehicles that yield wait about as long as in SUMO 1.15 (recorded with steps of 0.5 s, means
 * of ten seeds of an hour), there are no collisions, and no order of right of way ends in a deadlock. Vehicles that are
 * stuck are counted.
 */
#include "files.h"
#include "../../plugins/env_traffic/signal.h"

#define TREND 1.6 /* factor between two mean waiting times */
#define LOSS  0.2 /* share of SUMO's delay */

typedef struct junction_case {
    const char *net;
    const char *flows[4]; /* from, to, vehicles per hour */
    double wait_s, delay_s;
    int has_signs; /* the roads from south and north have stop signs instead of yielding */
} junction_case;

static void write_flows(const junction_case *c)
{
    static char text[FILE_MAX];
    size_t at = (size_t)snprintf(text, sizeof(text), "<routes>");
    for (int k = 0; k < 4 && c->flows[k] != NULL; k++) {
        char from, to;
        double per_hour;
        assert_int_equal(sscanf(c->flows[k], "%c %c %lf", &from, &to, &per_hour), 3);
        at += (size_t)snprintf(text + at, sizeof(text) - at,
                               "<flow id='f%d' from='%cj' to='j%c' begin='0' end='3600' period='exp(%.6f)' "
                               "departSpeed='max'/>",
                               k, from, to, per_hour / 3600);
    }
    snprintf(text + at, sizeof(text) - at, "</routes>");
    store("corner.rou.xml", text);
}

static void put_stop_signs(char *text)
{
    static const char from[] = "<connection from=\"", yields[] = "state=\"m\"";
    for (char *at = text; (at = strstr(at, from)) != NULL; at++) {
        const char road = at[sizeof(from) - 1];
        char *state = strstr(at, yields);
        if ((road == 's' || road == 'n') && state != NULL && state < strstr(at, "/>")) {
            state[strlen("state=\"")] = 's';
        }
    }
}

static void test_waiting(void **test)
{
    static const junction_case all[] = {
        {"tee.net.xml", {"w e 400", "e w 400", "s w 150"}, 2.79, 5.67, 0},              /* left into a main road */
        {"tee.net.xml", {"w e 600", "e w 600", "s e 150"}, 1.93, 4.95, 0},              /* right into it */
        {"tee.net.xml", {"w e 600", "e w 300", "e s 150"}, 0.90, 4.40, 0},              /* left out of it */
        {"cross.net.xml", {"w e 400", "e w 400", "s n 100", "n s 100"}, 1.16, 3.83, 0}, /* across it */
        {"tee.net.xml", {"w e 400", "e w 400", "s w 150"}, 15.22, 23.26, 1},
        {"tee.net.xml", {"w e 250", "e w 250", "s e 120"}, 2.91, 5.88, 1},
        {"cross.net.xml", {"w e 350", "e w 350", "s n 100", "n s 100"}, 1.81, 4.91, 1},
        {"ramp.net.xml", {"w e 500", "s e 150"}, 3.68, 8.35, 0},                        /* onto a road of 27.8 m/s */
        {"rbl.net.xml", {"w e 250", "e w 250", "s n 250", "n s 250"}, 3.75, 9.92, 0},   /* right before left */
        {"allway.net.xml", {"w e 200", "e w 200", "s n 200", "n s 200"}, 0.71, 8.10, 0} /* stop signs all around */
    };
    enum { SEEDS = 3 };
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        double wait = 0, delay = 0;
        load(all[k].net, net_text);
        if (all[k].has_signs) {
            put_stop_signs(net_text);
        }
        store("corner.net.xml", net_text);
        write_flows(&all[k]);
        sim_rig r;
        rig_open(&r, settings((const char *const[]){"begin_s=0", "episode_s=3600", NULL}));
        sim *s = &r.sim;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            sim_reset(s, seed);
            rig_run(&r, 3600);
            const double due = (double)(s->sum.inserted + sim_waiting(s));
            wait += s->sum.waiting_s / (double)s->sum.inserted / SEEDS;
            delay += sim_delay(s) / due / SEEDS;
            assert_int_equal(s->sum.collisions, 0);
            assert_int_equal(s->sum.stuck, 0);
            assert_true((double)s->sum.finished > 0.95 * due);
        }
        const int good = wait < TREND * all[k].wait_s && wait > all[k].wait_s / TREND &&
                         fabs(delay - all[k].delay_s) < LOSS * all[k].delay_s;
        if (!good) {
            print_error("%s %s: waiting %.2f s, SUMO %.2f s; delay %.2f s, SUMO %.2f s\n", all[k].net, all[k].flows[2],
                        wait, all[k].wait_s, delay, all[k].delay_s);
        }
        assert_true(good);
        rig_close(&r);
    }
}

/* A side street whose main road is empty: drivers slow down until they see that, and a queue of them moves on. */
static void test_no_opposing_traffic(void **test)
{
    static const junction_case all[] = {{"cross.net.xml", {"s n 900"}, 0, 5.20, 0}, /* of SUMO, as above */
                                        {"cross.net.xml", {"s n 1200"}, 0, 7.03, 0},
                                        {"tee.net.xml", {"s w 1000"}, 0, 6.12, 0},
                                        {"tee.net.xml", {"s e 1000"}, 0, 6.98, 0},
                                        {"tee.net.xml", {"e s 1000"}, 0, 5.90, 0}};
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        load(all[k].net, net_text);
        store("corner.net.xml", net_text);
        write_flows(&all[k]);
        sim_rig r;
        rig_open(&r, settings((const char *const[]){"begin_s=0", "episode_s=3600", NULL}));
        rig_run(&r, 3600);
        const double delay = sim_delay(&r.sim) / (double)(r.sim.sum.inserted + sim_waiting(&r.sim));
        if (!(delay > all[k].delay_s / 2 && delay < 2 * all[k].delay_s)) {
            fail_msg("%s %s: delay %.2f s, SUMO %.2f s", all[k].net, all[k].flows[0], delay, all[k].delay_s);
        }
        rig_close(&r);
    }
}

/* Standing first for 300 s is counted once; not at a light that stays red. */
static void test_stuck(void **test)
{
    load("corner.net.xml", net_text);
    store("corner.net.xml", net_text);
    store("corner.rou.xml", "<routes><vehicle id='v' depart='650'><route edges='south_c c_north'/></vehicle></routes>");
    for (int is_red = 0; is_red < 2; is_red++) {
        sim_rig r;
        rig_open(&r, settings((const char *const[]){is_red ? "control=signals" : "control=vehicles", "dt_s=1", NULL}));
        sim *s = &r.sim;
        const int32_t lane = s->net.edge[s->source[0].edge].lane;
        if (is_red) { /* no other phase is requested: the one shown stays */
            const int32_t bit = s->net.link[s->net.lane[lane].link].bit;
            for (int32_t p = 0; p < s->net.junction[0].n_phases; p++) {
                s->signal[0].phase = s->signal[0].next =
                    !net_has(&s->net.junction[0].phase[p].green, bit) ? p : s->signal[0].phase;
            }
        }
        assert_int_not_equal(place_insert(s, lane, s->net.lane[lane].length - 1, 0, 0, 0), NET_NONE);
        for (int t = 0; t < 700; t++) {
            assert_true(t > 300 || s->sum.stuck == 0);
            s->v[slot_front(&s->lane[lane])] = 0;
            s->elapsed_s = t;
            signal_step(s);
        }
        assert_int_equal(s->sum.stuck, !is_red);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_waiting), cmocka_unit_test(test_no_opposing_traffic),
                                       cmocka_unit_test(test_stuck)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
