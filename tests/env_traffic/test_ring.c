/* SPDX-License-Identifier: Apache-2.0
 *
 * Car following on a ring, against theory: the equilibrium of the IDM and with it the fundamental diagram (Treiber &
 * Kesting 2013, ch. 11), growth and decay of waves by linear stability of the same equations (Wilson & Ward 2011), and
 * the experiments with one controlled vehicle (Stern et al. 2018).
 */
#include "rig.h"

#include <complex.h>

/* ---- the formulas, written out from the papers ------------------------------------------------------------------- */

/* Drivers as test settings give them; s0 is the default of min_gap_m. */
typedef struct paper_driver {
    double T, a, b, s0, v0;
} paper_driver;

/* Treiber, Hennecke & Helbing 2000, eqs. 2 and 3, with the bounds that follow.h documents. */
static double paper_idm(const paper_driver *d, double v, double v0, double s, double leader)
{
    const double speed_ratio = d->s0 + fmax(0, v * d->T + v * (v - leader) / (2 * sqrt(d->a * d->b)));
    const double free_part = d->a * (1 - pow(v / v0, 4));
    return fmax(fmax(free_part, -d->b) - d->a * pow(speed_ratio / fmax(s, 0.01), 2), -9);
}

/* Krauss 1998, eqs. 3.1 to 3.4, with the reaction time T and the standing distance s0. */
static double way_of_braking(double v, double b, double dt)
{
    double way = 0;
    for (v -= b * dt; v > 0; v -= b * dt) {
        way += v * dt;
    }
    return way;
}

/* Step by step: v is kept for T, then braking stops within the gap and what the leader needs to stop. */
static double paper_krauss(const paper_driver *d, double v, double v0, double s, double leader, double dt)
{
    const double room = fmax(0, s - d->s0 + way_of_braking(leader, d->b, dt));
    double low = 0, high = room / d->T;
    for (int i = 0; i < 100; i++) {
        const double half = 0.5 * (low + high);
        if (half * d->T + way_of_braking(half, d->b, dt) <= room) {
            low = half;
        } else {
            high = half;
        }
    }
    const double next = fmax(0, fmin(fmin(fmax(v0, v - d->b * dt), v + d->a * dt), low));
    return fmax((next - v) / dt, -9);
}

static void test_formulas_are_those_of_the_papers(void **test)
{
    static const char *const model[] = {"model=idm", "model=krauss"};
    static const paper_driver d = {.T = 1.3, .a = 1.1, .b = 2.3, .s0 = 2};
    static const double speed[] = {0, 0.3, 5, 12, 19.9, 33}, want[] = {8.3, 20, 36};
    static const double gap[] = {-1, 0, 0.005, 0.5, 2, 3.7, 15, 80, 1e3}, leader[] = {0, 1, 11, 20, 40};
    for (int m = 0; m < 2; m++) {
        const char *set[] = {model[m], "headway_s=1.3", "accel_mps2=1.1", "decel_mps2=2.3", "dt_s=0.2", NULL};
        sim_rig r;
        rig_open(&r, set);
        int n_bound = 0, n_free = 0;
        for (int i = 0; i < 6 * 3 * 9 * 5; i++) {
            const double v = speed[i % 6], v0 = want[i / 6 % 3], s = gap[i / 18 % 9], l = leader[i / 162];
            const double paper = m == 0 ? paper_idm(&d, v, v0, s, l) : paper_krauss(&d, v, v0, s, l, 0.2);
            rig_near(follow(&r.sim.driver, v, v0, s, l), paper, 1e-9 * (1 + fabs(paper)));
            n_bound += paper == -9;
            n_free += paper > -9;
        }
        assert_true(n_bound > 50 && n_free > 300);
        rig_close(&r);
    }
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

static double speed_spread(const sim *s)
{
    const lane_state *l = &s->lane[0];
    double mean = 0, squares = 0;
    for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
        mean += s->v[p] / l->n;
    }
    for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
        squares += (s->v[p] - mean) * (s->v[p] - mean);
    }
    return sqrt(squares / l->n);
}

/* s_e(v) = (s0 + v T) / sqrt(1 - (v / v0)^4) = gap, solved for v */
static double equilibrium(const paper_driver *d, double gap)
{
    double low = 0, high = d->v0;
    for (int i = 0; i < 200; i++) {
        const double v = 0.5 * (low + high), r = v / d->v0;
        if ((d->s0 + v * d->T) / sqrt(1 - r * r * r * r) < gap) {
            low = v;
        } else {
            high = v;
        }
    }
    return low;
}

static void test_equilibrium_and_fundamental_diagram(void **test)
{
    static const char *const counts[] = {"vehicles=4", "vehicles=10", "vehicles=20", "vehicles=40", "vehicles=60"};
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        const char *set[] = {counts[k],        "length_m=500",   "limit_mps=15", "jitter_m=0",    "headway_s=1.6",
                             "accel_mps2=1.5", "decel_mps2=1.5", "dt_s=0.25",    "action_s=0.25", NULL};
        sim_rig r;
        rig_open(&r, set);
        rig_run(&r, 2000);
        const sim *s = &r.sim;
        const lane_state *l = &s->lane[0];
        static const paper_driver d = {.T = 1.6, .a = 1.5, .b = 1.5, .s0 = 2, .v0 = 15};
        const double apart = 500.0 / l->n, v = equilibrium(&d, apart - 5);
        const int64_t before = s->sum.updates;
        const double speed_s = s->sum.speed_s;
        for (int32_t p = slot_front(l) + 1; p <= slot_back(l); p++) {
            rig_near(s->x[p - 1] - s->x[p], apart, 1e-6);
            rig_near(s->v[p], v, 1e-6);
        }
        rig_run(&r, 100); /* flow = density * speed */
        const double flow = (s->sum.speed_s - speed_s) / 100 / 500;
        rig_near(flow, v / apart, 1e-6);
        assert_int_equal(s->sum.updates - before, 400 * (int64_t)l->n);
        rig_close(&r);
    }
}

/* A step of the IDM moves by the mean of both speeds, one of Krauss by the new one; who is close before it, by time to
 * collision, and who brakes hard in it, is counted. */
static void test_steps_and_counts(void **test)
{
    static const char *const model[] = {"model=idm", "model=krauss"};
    for (int m = 0; m < 2; m++) {
        const char *set[] = {model[m],       "vehicles=22",   "length_m=230", "limit_mps=30", "dt_s=0.5",
                             "action_s=0.5", "headway_s=0.8", "hard_mps2=1",  "ttc_s=6",      NULL};
        sim_rig r;
        rig_open(&r, set);
        sim *s = &r.sim;
        const double dt = 0.5, ring_m = s->net.lane[0].length;
        int n_moved = 0, n_close = 0, n_hard = 0;
        for (int i = 0; i < 2000; i++) {
            double x[64], v[64];
            lane_state *l = &s->lane[0];
            int close = 0, hard = 0;
            for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
                x[s->who[p]] = s->x[p];
                v[s->who[p]] = s->v[p];
                if (p > slot_front(l)) {
                    const double gap = s->x[p - 1] - s->length[p - 1] - s->x[p];
                    close += gap < 6 * (s->v[p] - s->v[p - 1]);
                }
            }
            sim_step(s);
            l = &s->lane[0];
            for (int32_t p = slot_front(l); p <= slot_back(l); p++) {
                const int32_t w = s->who[p];
                const double way = fmod(s->x[p] - x[w] + ring_m, ring_m), now = s->v[p];
                hard += (now - v[w]) / dt < -1;
                if (now > 0) {
                    rig_near(way, (m == 0 ? 0.5 * (v[w] + now) : now) * dt, 1e-9);
                    n_moved++;
                }
            }
            assert_int_equal(l->n_close, close);
            assert_int_equal(l->n_hard, hard);
            n_close += close;
            n_hard += hard;
        }
        assert_true(n_moved > 20000 && n_close > (m == 0 ? 10 : 2) && n_hard > 10); /* Krauss keeps its distance */
        rig_close(&r);
    }
}

/* Largest real part of l in l^2 = f_s (e - 1) + l (f_v + f_l e), e = exp(-2 pi i n / N), over the waves n that fit;
 * f_s, f_v and f_l are the derivatives of the paper's formula at equal speeds, where s* = s0 + v T (Treiber & Kesting
 * 2013, ch. 15). */
static double growth_rate(const paper_driver *d, double s, double v, int n)
{
    const double speed_ratio = d->s0 + v * d->T, root_ab = sqrt(d->a * d->b), v0_4 = d->v0 * d->v0 * d->v0 * d->v0;
    const double f_s = 2 * d->a * speed_ratio * speed_ratio / (s * s * s);
    const double f_l = d->a * v * speed_ratio / (root_ab * s * s);
    const double f_v = -4 * d->a * v * v * v / v0_4 - 2 * d->a * speed_ratio * d->T / (s * s) - f_l;
    double worst = -INFINITY;
    for (int k = 1; k <= n / 2; k++) {
        const double complex e = cexp(-2 * I * 3.14159265358979323846 * k / n);
        const double complex b = f_v + f_l * e, root = csqrt(b * b + 4 * f_s * (e - 1));
        worst = fmax(worst, fmax(creal(0.5 * (b + root)), creal(0.5 * (b - root))));
    }
    return worst;
}

/* Growth of a small disturbance of the equilibrium, measured from `after` seconds on over 100 s. */
static double measured_rate(sim_rig *r, double v, double after)
{
    sim *s = &r->sim;
    for (int32_t p = slot_front(&s->lane[0]); p <= slot_back(&s->lane[0]); p++) {
        s->v[p] = v;
    }
    s->x[slot_front(&s->lane[0]) + 3] += 1e-4;
    rig_run(r, after);
    const double first = speed_spread(s);
    rig_run(r, 100);
    return log(speed_spread(s) / first) / 100;
}

static void test_waves_grow_where_theory_says_so(void **test)
{
    /* the same traffic with sluggish and with quick drivers */
    static const char *const accel[] = {"accel_mps2=0.6", "accel_mps2=2.5"};
    for (int k = 0; k < 2; k++) {
        const char *set[] = {accel[k],      "vehicles=40",    "length_m=600", "limit_mps=20",  "jitter_m=0",
                             "headway_s=1", "decel_mps2=1.5", "dt_s=0.05",    "action_s=0.05", NULL};
        sim_rig r;
        rig_open(&r, set);
        const paper_driver d = {.T = 1, .a = k == 0 ? 0.6 : 2.5, .b = 1.5, .s0 = 2, .v0 = 20};
        const double v = equilibrium(&d, 10);
        const double theory = growth_rate(&d, 10, v, 40);
        assert_true(k == 0 ? theory > 0.01 : theory < -0.005);
        const double measured = measured_rate(&r, v, 150);
        rig_near(measured, theory, 0.1 * fabs(theory));
        rig_close(&r);
    }
}

/* The agent holds speed v where its gap allows it. */
static void drive_steadily(sim_rig *r, double seconds, double v)
{
    sim *s = &r->sim;
    for (const double end = s->elapsed_s + seconds; s->elapsed_s < end;) {
        const int32_t p = sim_slot_of(s, s->place[0].vehicle);
        s->place[0].accel = fmin(0.5 * (v - s->v[p]), move_model_acceleration(s, 0, p));
        sim_step(s);
    }
}

static double mean_speed(const tally *from, const tally *to)
{
    return (to->speed_s - from->speed_s) / (to->present_s - from->present_s);
}

static void test_one_vehicle_damps_waves(void **test)
{
    const char *set[] = {"vehicles=22",  "length_m=260", "limit_mps=30",   "penetration=0.0455", "dt_s=0.1",
                         "action_s=0.1", "accel_mps2=1", "decel_mps2=1.5", "headway_s=1",        NULL};
    sim_rig r;
    rig_open(&r, set);
    sim *s = &r.sim;
    rig_run(&r, 600);
    const tally start = s->sum;
    rig_run(&r, 600);
    const tally waves = s->sum;
    const double speed = mean_speed(&start, &waves), spread = speed_spread(s);
    assert_true(spread > 1); /* stop and go */
    assert_int_equal(s->place[0].state, PLACE_NEW);
    s->place[0].state = PLACE_ACTING;
    drive_steadily(&r, 600, 0.9 * speed); /* lets the waves run into its gap */
    static const paper_driver d = {.T = 1, .a = 1, .b = 1.5, .s0 = 2, .v0 = 30};
    const double best = equilibrium(&d, 260.0 / 22 - 5);
    for (double v = 0.9 * speed; v < 0.97 * best; v += 0.05) {
        drive_steadily(&r, 100, v);
    }
    const tally calm = s->sum;
    drive_steadily(&r, 600, 0.97 * best);
    assert_true(speed_spread(s) < 0.1 * spread);
    assert_true(mean_speed(&calm, &s->sum) > 1.05 * speed); /* and all are faster */
    assert_int_equal(s->sum.collisions, 0);
    rig_close(&r);
}

static void test_no_collisions_of_pure_idm(void **test)
{
    /* waves all along, coarse steps, two seeds; 10 h of traffic */
    const char *set[] = {"vehicles=22", "length_m=200", "limit_mps=30", "accel_mps2=0.7", "dt_s=0.5", NULL};
    sim_rig r;
    rig_open(&r, set);
    for (uint64_t seed = 0; seed < 2; seed++) {
        sim_reset(&r.sim, seed);
        rig_run(&r, 18000);
        assert_int_equal(r.sim.sum.collisions, 0);
        assert_int_equal(r.sim.lane[0].n, 22);
        assert_true(speed_spread(&r.sim) > 0.3);
    }
    rig_close(&r);
}

static void test_a_collision_is_counted(void **test)
{
    const char *set[] = {"vehicles=5", "length_m=200", "penetration=0.2", NULL};
    sim_rig r;
    rig_open(&r, set);
    sim *s = &r.sim;
    s->place[0].state = PLACE_ACTING;
    s->place[0].accel = 5;
    while (s->sum.collisions == 0 && s->elapsed_s < 60) {
        sim_step(s);
    }
    assert_int_equal(s->sum.collisions, 1);
    assert_int_equal(s->place[0].collided, 1);
    const int32_t p = sim_slot_of(s, s->place[0].vehicle);
    double ahead;
    assert_true(sim_gap_ahead(s, 0, p, &ahead) >= -1e-9); /* they touch, no more */
    assert_true(s->v[p] <= ahead);
    rig_close(&r);
}

static void test_krauss_keeps_its_distance(void **test)
{
    const char *set[] = {"model=krauss", "vehicles=20", "length_m=400", "sigma=0", "jitter_m=0", "dt_s=0.5", NULL};
    sim_rig r;
    rig_open(&r, set);
    rig_run(&r, 1000);
    /* equal speeds v: v_safe = v where gap - s0 = v T */
    const double gap = 400.0 / 20 - 5, v = fmin(13.89, (gap - 2) / 1);
    for (int32_t p = slot_front(&r.sim.lane[0]); p <= slot_back(&r.sim.lane[0]); p++) {
        rig_near(r.sim.v[p], v, 1e-6);
    }
    rig_close(&r);
    const char *dawdling[] = {"model=krauss", "vehicles=22", "length_m=230", "sigma=0.5", "dt_s=1", "action_s=1", NULL};
    rig_open(&r, dawdling);
    rig_run(&r, 10000);
    assert_int_equal(r.sim.sum.collisions, 0);
    assert_true(speed_spread(&r.sim) > 0.3); /* jams out of nothing */
    rig_close(&r);
    const char *at_once[] = {"model=krauss", "vehicles=22", "length_m=160", "sigma=0.5",
                             "dt_s=1",       "action_s=1",  "headway_s=0",  NULL};
    rig_open(&r, at_once); /* no reaction time: still no vehicle drives into a stopped one */
    rig_run(&r, 2000);
    assert_int_equal(r.sim.sum.collisions, 0);
    rig_close(&r);
}

static void test_steps_allocate_nothing(void **test)
{
    sim_rig r;
    rig_open(&r, NULL);
    r.host.fail_alloc = 1; /* would be NULL, and used */
    rig_run(&r, 100);
    sim_reset(&r.sim, 2);
    rig_run(&r, 100);
    assert_int_equal(r.host.fail_alloc, 1);
    r.host.fail_alloc = 0;
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas_are_those_of_the_papers),
        cmocka_unit_test(test_steps_and_counts),
        cmocka_unit_test(test_equilibrium_and_fundamental_diagram),
        cmocka_unit_test(test_waves_grow_where_theory_says_so),
        cmocka_unit_test(test_one_vehicle_damps_waves),
        cmocka_unit_test(test_no_collisions_of_pure_idm),
        cmocka_unit_test(test_a_collision_is_counted),
        cmocka_unit_test(test_krauss_keeps_its_distance),
        cmocka_unit_test(test_steps_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
