/* SPDX-License-Identifier: Apache-2.0
 *
 * What the simulation, which knows its lanes, shows a shield of vehicles ahead and beside, against what geometry alone
 * makes of the same scene (plugins/traffic/features/pairs.h), which is how recordings are read: on straight roads the
 * same.
 */
#include "rig.h"
#include "../../plugins/env_traffic/observe.h"

#include "traffic/features/pairs.h"

enum { MOST = 512, PLACES = 64 };

static dt_vehicle frame[MOST];
static float node[MOST][DT_NODE_FEATURES], edge[MOST * DT_NEIGHBOURS][DT_EDGE_FEATURES], centre[MOST][2];
static int32_t rowptr[MOST + 1], col[MOST * DT_NEIGHBOURS], agent_node[PLACES];
static float ahead[PLACES][AHEAD_ROWS][PAIR_FEATURES], beside[PLACES][BESIDE_ROWS][PAIR_FEATURES];

static dt_status no_features(const dt_host *h, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                             float *nodes, int32_t *ptr, int32_t *from, float *edges)
{
    (void)h, (void)v, (void)n, (void)radius_m, (void)k_max, (void)nodes, (void)ptr, (void)from, (void)edges;
    return DT_OK;
}

/* The first row of ahead, and beside; farther than geometry looks both are far. */
static void assert_same(const float *lanes, const float *plain)
{
    for (int d = 0; d < PAIR_FEATURES; d++) {
        if (lanes[0] > 80 && plain[0] > 80 && (d < 2 || d == 3)) { /* nor whose speed that is */
            continue;
        }
        rig_near((double)lanes[d], (double)plain[d], 2e-3);
    }
}

typedef struct counts {
    int seen, near, sides;
} counts;

static void compare(const sim *s, counts *c)
{
    const dt_features_api f = {.struct_size = sizeof(f), .frame = no_features};
    int64_t size[2];
    const graph_view view = {&node[0][0], &edge[0][0], &centre[0][0], rowptr, col, agent_node, size, NULL};
    const dt_pair_desc how = {.action_s = s->c->action_s, .brake = -s->c->low_mps2, .other_brake = BRAKE_MAX};
    assert_int_equal(observe_graph(s, &f, frame, &view), DT_OK);
    observe_ahead(s, &ahead[0][0][0]);
    observe_neighbours(s, &beside[0][0][0]);
    for (int32_t k = 0; k < s->n_places; k++) {
        float plain[DT_AHEAD_PAIRS][PAIR_FEATURES], side[DT_BESIDE_PAIRS][PAIR_FEATURES];
        const place *w = &s->place[k];
        const double x = w->vehicle != NET_NONE ? s->x[sim_slot_of(s, w->vehicle)] : 0;
        const double length = w->vehicle != NET_NONE ? s->net.lane[s->vehicle[w->vehicle].lane].length : 0;
        if (w->vehicle == NET_NONE || x < 120 || x > length - 120) {
            continue; /* ends of roads are seen by their lanes alone */
        }
        dt_pairs_write(frame, (uint32_t)size[0], (uint32_t)agent_node[k], &how, &plain[0][0], &side[0][0]);
        assert_same(ahead[k][0], plain[0]);
        c->seen++;
        c->near += ahead[k][0][0] < 80;
        for (int i = 0; i < BESIDE_ROWS; i += 2) { /* where nobody is in sight geometry knows of no lane */
            const bool is_seen = side[i][0] > 0 && (side[i][0] < 80 || side[i + 1][0] < 80);
            if (is_seen && beside[k][i][0] > 0) {
                assert_same(beside[k][i], side[i]);
                assert_same(beside[k][i + 1], side[i + 1]);
                c->sides++;
            }
            assert_false(is_seen &&
                         beside[k][i][0] <= 0); /* it sees no lane that is not there, no room where none is */
        }
    }
}

static void test_on_straight_roads(void **state)
{
    static const char *const set[] = {"scenario=merge", "length_m=1000",     "lanes=2",
                                      "flow_vph=3000",  "penetration=0.5",   "agents=64",
                                      "episode_s=600",  "lane_actions=true", NULL};
    sim_rig r;
    counts c = {0};
    rig_open(&r, set);
    rig_run(&r, 60);
    for (int i = 0; i < 40; i++) {
        rig_run(&r, 5);
        compare(&r.sim, &c);
    }
    assert_true(c.seen > 300 && c.near > 100 && c.sides > 100);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_straight_roads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
