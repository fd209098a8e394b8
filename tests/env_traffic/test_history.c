/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/env_traffic/history.c: sequences against a second record of the same simulation, whatever its step is; who
 * was not there yet, which vehicle a sequence belongs to, and that nothing of an episode before shows.
 */
#include "rig.h"
#include "../../plugins/env_traffic/history.h"

enum { STEPS = 15, MANY = 64, KEPT = 4096 };

typedef struct shot { /* of the vehicle with a key */
    double time, x, y, heading, v, a;
    uint64_t key;
} shot;

typedef struct record {
    shot at[KEPT];
    int n;
} record;

static record seen;

static void shoot(const sim *s)
{
    for (int32_t lane = 0; lane < s->net.n_lanes; lane++) {
        for (int32_t p = slot_front(&s->lane[lane]); p <= slot_back(&s->lane[lane]); p++) {
            shot *q = &seen.at[seen.n++ % KEPT];
            *q = (shot){.time = s->elapsed_s, .v = s->v[p], .a = s->a[p], .key = s->vehicle[s->who[p]].key};
            net_point(&s->net.lane[lane], s->x[p] - 0.5 * s->length[p], &q->x, &q->y, &q->heading);
        }
    }
}

/* Newest one of the vehicle at or before a time, NULL. */
static const shot *find(uint64_t key, double time)
{
    for (int i = seen.n - 1; i >= 0 && i >= seen.n - KEPT; i--) {
        const shot *q = &seen.at[i % KEPT];
        if (q->key == key && q->time < time + 1e-6) {
            return q->time > time - 1e-6 ? q : NULL;
        }
    }
    return NULL;
}

typedef struct view {
    float row[MANY][STEPS][DT_MOTION_COLUMNS];
    int32_t node[MANY], who[MANY][PAST_WHO], node_of[1024];
    int64_t n;
} view;

static view now;

static void write_views(history *p, const sim *s)
{
    for (int32_t k = 0; k < s->max_vehicles; k++) {
        now.node_of[k] = 1000 + k;
    }
    const history_view out = {.row = &now.row[0][0][0], .node = now.node, .who = &now.who[0][0]};
    now.n = history_write(p, s, now.node_of, &out);
    assert_true(now.n <= PAST_WHO * s->n_places);
}

static void run(history *p, sim *s, double seconds)
{
    for (const double end = s->elapsed_s + seconds - 1e-9; s->elapsed_s < end;) {
        sim_step(s);
        history_record(p, s);
        shoot(s);
    }
}

static void begin(history *p, sim *s, uint64_t seed)
{
    seen.n = 0;
    sim_reset(s, seed);
    history_reset(p);
    history_record(p, s);
    shoot(s);
}

/* A sequence is what was recorded, turned into the frame of the last step. */
static int check_sequence(const sim *s, int32_t who, const float (*row)[DT_MOTION_COLUMNS])
{
    const uint64_t key = s->vehicle[who].key;
    const shot *last = find(key, s->elapsed_s);
    int n = 0;
    assert_non_null(last);
    for (int k = 0; k < STEPS; k++) {
        const double ago = 0.2 * (STEPS - 1 - k);
        const shot *q = find(key, s->elapsed_s - ago);
        assert_true(row[k][6] == (q != NULL ? 1.F : 0.F));
        if (q == NULL) {
            for (int d = 0; d < DT_MOTION_COLUMNS; d++) {
                assert_true(row[k][d] == 0);
            }
            continue;
        }
        const double dx = q->x - last->x, dy = q->y - last->y, turned = q->heading - last->heading;
        rig_near((double)row[k][0], dx * cos(last->heading) + dy * sin(last->heading) + last->v * ago, 1e-4);
        rig_near((double)row[k][1], dy * cos(last->heading) - dx * sin(last->heading), 1e-4);
        rig_near((double)row[k][2], cos(turned), 1e-6);
        rig_near((double)row[k][3], sin(turned), 1e-6);
        rig_near((double)row[k][4], q->v, 1e-5);
        rig_near((double)row[k][5], q->a, 1e-5);
        n++;
    }
    return n;
}

static const char *const merge[] = {"scenario=merge", "dt_s=0.1",         "agents=40", "penetration=0.5",
                                    "speed_dev=0.1",  "max_vehicles=500", NULL};

static void test_sequences_are_what_was(void **test)
{
    sim_rig r;
    history p;
    int n_whole = 0, n_part = 0, n_ahead = 0;
    rig_open(&r, merge);
    assert_int_equal(history_init(&p, &r.sim, STEPS, 0.2), DT_OK);
    begin(&p, &r.sim, 3);
    for (int i = 0; i < 60; i++) {
        run(&p, &r.sim, 0.7);
        write_views(&p, &r.sim);
        for (int32_t k = 0; k < r.sim.n_places; k++) {
            const place *w = &r.sim.place[k];
            if (w->state == PLACE_FREE || w->vehicle == NET_NONE) {
                assert_int_equal(now.who[k][PAST_OWN], -1);
                assert_int_equal(now.who[k][PAST_AHEAD], -1);
                continue;
            }
            const int32_t own = now.who[k][PAST_OWN], ahead = now.who[k][PAST_AHEAD];
            assert_in_range(own, 0, now.n - 1);
            assert_int_equal(now.node[own], 1000 + w->vehicle);
            const int n = check_sequence(&r.sim, w->vehicle, (const float(*)[DT_MOTION_COLUMNS])now.row[own]);
            n_whole += n == STEPS;
            n_part += n < STEPS;
            double speed;
            const int32_t lane = r.sim.vehicle[w->vehicle].lane, slot = sim_slot_of(&r.sim, w->vehicle);
            const double gap = sim_gap_ahead(&r.sim, lane, slot, &speed);
            if (ahead >= 0) { /* the vehicle that sim_gap_ahead speaks of */
                const int32_t q = now.node[ahead] - 1000;
                check_sequence(&r.sim, q, (const float(*)[DT_MOTION_COLUMNS])now.row[ahead]);
                assert_true((double)now.row[ahead][STEPS - 1][4] == (double)(float)speed);
                n_ahead++;
            }
            assert_true(ahead >= 0 || gap == FREE_GAP);
        }
    }
    assert_true(n_whole > 100 && n_part > 20 && n_ahead > 100);
    history_fini(&p);
    rig_close(&r);
}

/* In turns the direction of a vehicle's centre is not that of its front. */
static void test_turns(void **test)
{
    static const char *const grid[] = {"scenario=grid", "control=vehicles", "dt_s=0.1", "agents=40",
                                       "penetration=1", "max_vehicles=500", NULL};
    sim_rig r;
    history p;
    int n_turned = 0;
    rig_open(&r, grid);
    assert_int_equal(history_init(&p, &r.sim, STEPS, 0.2), DT_OK);
    begin(&p, &r.sim, 3);
    for (int i = 0; i < 80; i++) {
        run(&p, &r.sim, 1);
        write_views(&p, &r.sim);
        for (int64_t k = 0; k < now.n; k++) {
            check_sequence(&r.sim, now.node[k] - 1000, (const float(*)[DT_MOTION_COLUMNS])now.row[k]);
            n_turned += now.row[k][0][6] == 1 && fabs((double)now.row[k][0][3]) > 0.3;
        }
    }
    assert_true(n_turned > 10);
    history_fini(&p);
    rig_close(&r);
}

/* Between steps motion is straight: on a straight road at constant acceleration a, dt of 0.5 s errs by a dt^2 / 8. */
static void test_between_steps(void **test)
{
    static const char *const set[] = {"scenario=merge", "dt_s=0.5",         "agents=8",
                                      "penetration=1",  "max_vehicles=500", NULL};
    sim_rig r;
    history p;
    rig_open(&r, set);
    assert_int_equal(history_init(&p, &r.sim, STEPS, 0.2), DT_OK);
    begin(&p, &r.sim, 5);
    run(&p, &r.sim, 20);
    write_views(&p, &r.sim);
    int n = 0;
    for (int64_t i = 0; i < now.n; i++) {
        const uint64_t key = r.sim.vehicle[now.node[i] - 1000].key;
        const int k = STEPS - 1 - 4; /* 0.8 s ago: 2/5 of the way from 0.5 s to 1 s */
        const shot *a = find(key, r.sim.elapsed_s - 0.5), *b = find(key, r.sim.elapsed_s - 1.0);
        assert_true((now.row[i][k][6] == 1) == (a != NULL && b != NULL));
        if (a != NULL && b != NULL) {
            rig_near((double)now.row[i][k][4], 0.4 * a->v + 0.6 * b->v, 1e-5);
            n++;
        }
    }
    assert_true(n > 4);
    history_fini(&p);
    rig_close(&r);
}

static void test_episodes_are_apart(void **test)
{
    sim_rig r;
    history p;
    static const char *const ring[] = {"dt_s=0.1", "agents=8", "penetration=0.5", NULL};
    rig_open(&r, ring);
    assert_int_equal(history_init(&p, &r.sim, STEPS, 0.2), DT_OK);
    begin(&p, &r.sim, 3);
    run(&p, &r.sim, 30);
    begin(&p, &r.sim, 3); /* the same vehicles, the same keys */
    run(&p, &r.sim, 0.6);
    write_views(&p, &r.sim);
    assert_true(now.n > 0);
    for (int64_t i = 0; i < now.n; i++) {
        check_sequence(&r.sim, now.node[i] - 1000, (const float(*)[DT_MOTION_COLUMNS])now.row[i]);
        assert_true(now.row[i][STEPS - 5][6] == 0 && now.row[i][STEPS - 1][6] == 1);
    }
    history_fini(&p);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sequences_are_what_was), cmocka_unit_test(test_turns),
                                       cmocka_unit_test(test_between_steps), cmocka_unit_test(test_episodes_are_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
