/* SPDX-License-Identifier: Apache-2.0
 *
 * models/shield_barrier against brute force in double: the bounds it computes in closed form against the motion of two
 * vehicles followed step by step, random leaders and followers that use all it permits, lanes, signals, what it says
 * where nothing is safe, refusals.
 */
#include "models/bench.h"

#include "dtrain/random.h"
#include "rl/buffer/dist.h"

enum { AGENTS = 64, ROWS = 3, SIDES = 4, PAIR = 7, PHASES = 4, FACTS = 13 };
enum { GAP, LEADER, LEADER_BRAKE, FOLLOWER, FOLLOWER_BRAKE, ACTION_S, EULER_S };

#define COUNTED_ON 0.99 /* of its hardest braking the shield keeps the rest for rounding */

static const dt_dim vehicles[] = {{"continuous", 1}, {"ahead", PAIR}, {"ego", 9}};
static const dt_dim changers[] = {{"continuous", 1}, {"choices", 3}, {"ahead", PAIR}, {"beside", PAIR}};
static const dt_dim lights[] = {{"choices", PHASES}, {"phases", FACTS}};

typedef struct answers {
    float low[AGENTS], high[AGENTS], allow[AGENTS * PHASES], barrier[AGENTS];
} answers;

typedef struct shield {
    bench b;
    dt_plan *plan;
    dt_exec *exec;
} shield;

static void shield_open(shield *s, const char *const *set, const dt_dim *dims, uint32_t n)
{
    static const int64_t live[] = {1, AGENTS};
    const dt_plan_desc pd = {.kernels = DT_KERNELS_CPU, .reuse = true, .cap = live};
    bench_open(&s->b, "shield_barrier", set, dims, n);
    assert_int_equal(dt_plan_compile(s->b.g, &pd, &s->plan), DT_OK);
    assert_int_equal(dt_exec_create(s->plan, &s->exec), DT_OK);
}

static void shield_close(shield *s)
{
    dt_exec_destroy(s->exec);
    dt_plan_destroy(s->plan);
    bench_close(&s->b);
}

static void shield_ask(shield *s, const void *first, const void *second, answers *out)
{
    static const int64_t live[] = {1, AGENTS};
    const void *const field[] = {first, second};
    const dt_kernel_run kernel = {0};
    const dt_exec_feed feed = {
        .size = live, .field = (void *const *)(uintptr_t)field, .params = s->b.params, .run = &kernel};
    assert_int_equal(dt_exec_run(s->exec, &feed), DT_OK);
    for (uint32_t i = 0; i < s->b.n_out; i++) {
        const char *name = s->b.out[i].name;
        if (strcmp(name, "allow") == 0) {
            take(s->exec, name, out->allow, (size_t)AGENTS * (s->b.n_out == 4 ? 3 : PHASES)); /* lanes, or phases */
        } else {
            take(s->exec, name,
                 strcmp(name, "low") == 0    ? out->low
                 : strcmp(name, "high") == 0 ? out->high
                                             : out->barrier,
                 AGENTS);
        }
    }
}

static dt_random random_from(uint64_t seed)
{
    dt_random r;
    dt_random_init(&r, seed, 0);
    return r;
}

/* ---- the motion, step by step ------------------------------------------------------------------------------------ */

typedef struct car {
    double x, v; /* front */
} car;

/* One step of constant acceleration as simulations make it: exact, or by Euler's rule; nobody drives backwards. */
static void drive(car *c, double a, double dt, bool by_euler)
{
    const double v = fmax(0, c->v + a * dt);
    if (by_euler) {
        c->x += v * dt;
    } else {
        c->x += c->v + a * dt < 0 ? c->v * c->v / (-2 * a) : 0.5 * (c->v + v) * dt;
    }
    c->v = v;
}

/* The least gap ever when the one ahead brakes at B from now on, the other holds a for tau and brakes at b then. */
static double worst_gap(const float *p, double a)
{
    const bool by_euler = p[EULER_S] > 0;
    const long n = lround(ceil((double)p[ACTION_S] / (by_euler ? (double)p[EULER_S] : 0.002)));
    const double dt = (double)p[ACTION_S] / (double)n;
    car ego = {0, (double)p[FOLLOWER]}, lead = {(double)p[GAP], (double)p[LEADER]};
    double least = lead.x;
    for (long i = 0; i < n || ego.v > 0; i++) {
        drive(&ego, i < n ? a : -COUNTED_ON * (double)p[FOLLOWER_BRAKE], dt, by_euler);
        drive(&lead, -(double)p[LEADER_BRAKE], dt, by_euler);
        least = fmin(least, lead.x - ego.x);
    }
    return least;
}

/* By bisection the largest a that leaves gap_m. */
static double largest(const float *p, double gap_m)
{
    double low = -1000, high = 400;
    for (int i = 0; i < 50; i++) {
        const double a = 0.5 * (low + high);
        if (worst_gap(p, a) >= gap_m - 1e-3) {
            low = a;
        } else {
            high = a;
        }
    }
    return low;
}

static void nothing_ahead(float row[ROWS][PAIR], const float *like)
{
    for (int i = 0; i < ROWS; i++) {
        memcpy(row[i], like, PAIR * sizeof(float));
        row[i][GAP] = 1000;
        row[i][LEADER] = 0;
    }
}

static void random_pair(dt_random *r, float *p, double euler_s)
{
    p[GAP] = (float)dt_random_between(r, 1, 60);
    p[LEADER] = (float)dt_random_between(r, 0, 20);
    p[LEADER_BRAKE] = (float)dt_random_between(r, 4, 9);
    p[FOLLOWER] = (float)dt_random_between(r, 0, 20);
    p[FOLLOWER_BRAKE] = (float)dt_random_between(r, 2, (double)p[LEADER_BRAKE]);
    p[ACTION_S] = euler_s > 0 ? (float)(2 * euler_s) : (float)dt_random_between(r, 0.1, 1.5);
    p[EULER_S] = (float)euler_s;
}

/* Exact motion: the bound is the largest. Euler's rule: no more than it, and by at most what its margin takes. */
static void check_closed_form(double euler_s, double slack)
{
    static float ahead[AGENTS][ROWS][PAIR];
    shield s;
    answers o;
    dt_random r = random_from(7);
    int n_tight = 0;
    shield_open(&s, (const char *const[]){"gap_m=0.5", NULL}, vehicles, 3);
    for (int a = 0; a < AGENTS; a++) {
        float p[PAIR];
        random_pair(&r, p, euler_s);
        nothing_ahead(ahead[a], p);
        memcpy(ahead[a][a % ROWS], p, sizeof(p)); /* in any of the rows */
    }
    shield_ask(&s, ahead, NULL, &o);
    for (int a = 0; a < AGENTS; a++) {
        const float *p = ahead[a][a % ROWS];
        const double want = largest(p, 0.5), is = (double)o.high[a];
        if (want < -(double)p[FOLLOWER_BRAKE]) {
            assert_true(is < -(double)p[FOLLOWER_BRAKE] + 0.01); /* nothing is safe, however little */
            continue;
        }
        n_tight += want < 5;
        const double tolerance = 0.01 + 0.002 * fabs(want) + 0.01 / (double)p[ACTION_S];
        if (!(is <= want + tolerance && is >= want - tolerance - slack / (double)p[ACTION_S])) {
            print_error("%d: %g is not %g\n", a, is, want);
            fail();
        }
    }
    assert_true(n_tight > 10);
    shield_close(&s);
}

static void test_closed_form(void **state)
{
    check_closed_form(0, 0);
    check_closed_form(0.5, 1.5);
}

/* ---- with all that is permitted ---------------------------------------------------------------------------------- */

typedef struct road {
    car ego[AGENTS], lead[AGENTS];
    double b[AGENTS], B[AGENTS], accel[AGENTS];
    double least;     /* gap ever */
    int n_collisions; /* pairs, each put apart again */
} road;

static void place(road *w, dt_random *r, int a)
{
    w->ego[a] = (car){0, dt_random_between(r, 0, 15)};
    w->lead[a] = (car){0, dt_random_between(r, 0, 15)};
    w->B[a] = 9;
    w->b[a] = dt_random_between(r, 3, 11); /* weaker and stronger brakes than the one ahead */
    const double e = w->ego[a].v, l = w->lead[a].v, weak = fmin(w->b[a], 9);
    w->lead[a].x = 1.5 + fmax(0, e * e / (2 * weak) - l * l / 18) + dt_random_between(r, 0, 10) + 0.3 * e;
}

/* Random leaders, who brake their hardest at times; followers do what is permitted, and `more` on top of it. */
static void play(road *w, double tau, int substeps, double euler_s, double more, const char *const *set, double gap_m)
{
    static float ahead[AGENTS][ROWS][PAIR];
    shield s;
    answers o;
    dt_random r = random_from(3);
    *w = (road){.least = 1000};
    shield_open(&s, set, vehicles, 3);
    for (int a = 0; a < AGENTS; a++) {
        place(w, &r, a);
    }
    for (int t = 0; t < 1000; t++) {
        for (int a = 0; a < AGENTS; a++) {
            const float p[PAIR] = {(float)(w->lead[a].x - w->ego[a].x),
                                   (float)w->lead[a].v,
                                   9,
                                   (float)w->ego[a].v,
                                   (float)w->b[a],
                                   (float)tau,
                                   (float)euler_s};
            nothing_ahead(ahead[a], p);
            memcpy(ahead[a][0], p, sizeof(p));
        }
        shield_ask(&s, ahead, NULL, &o);
        for (int a = 0; a < AGENTS; a++) {
            assert_true(o.low[a] <= o.high[a]);
            const double act = fmin(fmax((double)o.high[a] + more, -w->b[a]), 4);
            const double u = dt_random_uniform(&r);
            w->accel[a] = u < 0.1 ? -9 : u < 0.2 ? dt_random_between(&r, -9, 3) : u < 0.4 ? 2 : w->accel[a];
            for (int i = 0; i < substeps; i++) {
                drive(&w->ego[a], act, tau / substeps, euler_s > 0);
                drive(&w->lead[a], w->lead[a].v > 20 ? 0 : w->accel[a], tau / substeps, euler_s > 0);
                w->least = fmin(w->least, w->lead[a].x - w->ego[a].x);
            }
            if (w->lead[a].x < w->ego[a].x) {
                w->n_collisions++;
                place(w, &r, a);
            }
        }
    }
    shield_close(&s);
    if (more == 0 && w->least < gap_m - 1e-2) {
        print_error("a gap of %g\n", w->least);
    }
}

static void test_no_collisions(void **state)
{
    static const char *const thin[] = {"gap_m=0.3", NULL}, *const soft[] = {"gap_m=0.3", "alpha=0.3", NULL};
    static road w;
    play(&w, 0.5, 1, 0, 0, thin, 0.3);
    assert_true(w.n_collisions == 0 && w.least > 0.3 - 1e-2 && w.least < 0.5); /* and not by keeping away */
    play(&w, 1, 10, 0, 0, soft, 0.3);
    assert_true(w.n_collisions == 0 && w.least > 0.3 - 1e-2);
    play(&w, 1, 2, 0.5, 0, thin, 0.3);
    assert_true(w.n_collisions == 0 && w.least > 0.3 - 1e-2);
    play(&w, 1, 1, 1, 0, thin, 0.3); /* SUMO's default: one step, Euler's rule */
    assert_true(w.n_collisions == 0 && w.least > 0.3 - 1e-2);
    play(&w, 0.5, 1, 0, 1, thin, 0.3); /* 1 m/s^2 more than is permitted */
    assert_true(w.n_collisions > 20);
}

/* h(x') >= (1 - alpha) h(x) against the hardest braking ahead, and no stricter than that */
static void test_discrete_barrier(void **state)
{
    static float ahead[AGENTS][ROWS][PAIR];
    const double alpha = 0.25, gap_m = 1, tau = 0.5;
    shield s;
    answers o;
    dt_random r = random_from(5);
    int n_tight = 0;
    shield_open(&s, (const char *const[]){"alpha=0.25", NULL}, vehicles, 3);
    for (int a = 0; a < AGENTS; a++) {
        float p[PAIR];
        random_pair(&r, p, 0);
        p[ACTION_S] = (float)tau;
        p[GAP] += 30;
        nothing_ahead(ahead[a], p);
        memcpy(ahead[a][0], p, sizeof(p));
    }
    shield_ask(&s, ahead, NULL, &o);
    for (int a = 0; a < AGENTS; a++) {
        const float *p = ahead[a][0];
        const double b = COUNTED_ON * (double)p[FOLLOWER_BRAKE], B = (double)p[LEADER_BRAKE];
        car ego = {0, (double)p[FOLLOWER]}, lead = {(double)p[GAP], (double)p[LEADER]};
        const double h = lead.x - gap_m + lead.v * lead.v / (2 * B) - ego.v * ego.v / (2 * b);
        drive(&ego, (double)o.high[a], tau, false);
        drive(&lead, -B, tau, false);
        const double next = lead.x - ego.x - gap_m + lead.v * lead.v / (2 * B) - ego.v * ego.v / (2 * b);
        if (h > 0) {
            n_tight++;
            assert_true(fabs(next - (1 - alpha) * h) < 1e-3 * (1 + h));
        }
    }
    assert_true(n_tight > 20);
    shield_close(&s);
}

/* Where braking is not enough: both bounds below what the agent can do, so that the host brakes its hardest. */
static void test_infeasible_is_hardest_braking(void **state)
{
    static float ahead[AGENTS][ROWS][PAIR];
    static const float pairs[4][PAIR] = {{2, 0, 9, 12, 3, 0.5F, 0},   /* far too fast */
                                         {-1, 5, 9, 5, 3, 0.5F, 0},   /* touching */
                                         {0.5F, 0, 9, 0, 3, 0.5F, 0}, /* standing too close: may go on standing */
                                         {50, 10, 9, 10, 3, 0.5F, 0}};
    shield s;
    answers o;
    shield_open(&s, NULL, vehicles, 3);
    for (int a = 0; a < AGENTS; a++) {
        nothing_ahead(ahead[a], pairs[a % 4]);
        memcpy(ahead[a][1], pairs[a % 4], sizeof(pairs[0]));
    }
    shield_ask(&s, ahead, NULL, &o);
    for (int a = 0; a < 4; a++) {
        const float bound[] = {-3, 1.5F};
        const dt_dist d = {.low = &bound[0], .high = &bound[1], .n_continuous = 1};
        float mean = 1, log_std = -3, drawn, executed;
        const dt_dist_row row = {.mean = &mean,
                                 .log_std = &log_std,
                                 .low = &o.low[a],
                                 .high = &o.high[a],
                                 .drawn_f = &drawn,
                                 .executed_f = &executed};
        const dt_dist_result result = dt_dist_draw_action(&d, &(dt_rng_stream){0}, 0, true, &row);
        assert_true(o.low[a] <= o.high[a]);
        assert_int_equal(result.is_infeasible, a < 2);
        assert_int_equal(result.is_changed, a < 3);
        assert_true(drawn == 1 && executed == (a < 2 ? -3 : a == 2 ? o.high[a] : 1.0F));
    }
    assert_true(o.high[0] < -3 && o.high[1] < -3 && o.high[2] >= 0 && o.high[2] < 1e-3F && o.high[3] > 1.5F);
    shield_close(&s);
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static void test_lanes(void **state)
{
    static float ahead[AGENTS][ROWS][PAIR], beside[AGENTS][SIDES][PAIR];
    static const double gap_m = 1, change = 0.2, rear = -1;
    shield s;
    answers o;
    dt_random r = random_from(11);
    int n_allowed = 0, n_forbidden = 0, n_bound = 0;
    shield_open(&s, (const char *const[]){"change_mps2=0.2", "rear_mps2=-1", NULL}, changers, 4);
    assert_int_equal(s.b.n_out, 4);
    assert_port(&s.b.out[2], "allow", "A 3");
    for (int a = 0; a < AGENTS; a++) {
        float p[PAIR];
        random_pair(&r, p, 0);
        nothing_ahead(ahead[a], p);
        ahead[a][0][GAP] = (float)dt_random_between(&r, 40, 80);
        for (int side = 0; side < 2; side++) {
            float *own = beside[a][2 * side], *other = beside[a][2 * side + 1];
            memcpy(own, p, sizeof(p));
            own[GAP] = (float)dt_random_between(&r, 5, 60);
            own[LEADER] = (float)dt_random_between(&r, 5, 20);
            memcpy(other, p, sizeof(p));
            other[GAP] = (float)dt_random_between(&r, 2, 40);
            other[LEADER] = p[FOLLOWER];
            other[LEADER_BRAKE] = 9;
            other[FOLLOWER] = (float)dt_random_between(&r, 0, 20);
            other[FOLLOWER_BRAKE] = 8;
        }
    }
    shield_ask(&s, ahead, beside, &o);
    for (int a = 0; a < AGENTS; a++) {
        double bound = largest(ahead[a][0], gap_m);
        const float *allow = &o.allow[a * 3];
        assert_true(allow[0] > 0);
        for (int side = 0; side < 2; side++) {
            const float *own = beside[a][2 * side], *other = beside[a][2 * side + 1];
            const double mine = largest(own, gap_m), its = largest(other, gap_m);
            const double spare = fmin(mine - change, its - rear);
            if (fabs(spare) > 0.05) {
                assert_int_equal(allow[1 + side] > 0, spare > 0);
            }
            n_allowed += allow[1 + side] > 0;
            n_forbidden += allow[1 + side] <= 0;
            n_bound += allow[1 + side] > 0 && mine < bound;
            bound = allow[1 + side] > 0 ? fmin(bound, mine) : bound;
        }
        assert_true(fabs((double)o.high[a] - fmax(bound, -1000)) < 0.1 + 0.01 * fabs(bound));
    }
    assert_true(n_allowed > 10 && n_forbidden > 10 && n_bound > 5);
    shield_close(&s);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

typedef struct light {
    float askable, waited, conflicts, green;
} light;

static void write_lights(float phases[PHASES][FACTS], const light *l)
{
    memset(phases, 0, sizeof(float) * PHASES * FACTS);
    for (int p = 0; p < PHASES; p++) {
        phases[p][4] = l[p].askable;
        phases[p][10] = l[p].waited;
        phases[p][11] = l[p].conflicts;
        phases[p][12] = l[p].green;
    }
}

static void test_signals(void **state)
{
    static const struct {
        light light[PHASES];
        uint8_t allow[PHASES];
    } rows[] = {
        {{{1, 0, 0, 20}, {1, 10, 0, -1}, {1, 20, 0, -1}, {1, 0, 0, -1}}, {1, 1, 1, 1}},
        {{{1, 0, 0, 20}, {1, 10, 1, -1}, {1, 20, 0, -1}, {1, 0, 3, -1}}, {1, 0, 1, 0}}, /* conflicts */
        {{{1, 0, 0, 4}, {0, 70, 0, -1}, {0, 20, 0, -1}, {0, 0, 0, -1}}, {1, 0, 0, 0}},  /* young, whatever waits */
        {{{1, 0, 0, 0}, {1, 10, 0, -1}, {1, 20, 0, -1}, {1, 0, 0, -1}}, {1, 0, 0, 0}},  /* green this moment */
        {{{1, 0, 0, 20}, {1, 61, 0, -1}, {1, 20, 0, -1}, {1, 75, 0, -1}},
         {0, 0, 0, 1}}, /* two starve: the longest wait ends first */
        {{{1, 0, 0, 20}, {0, 61, 0, -1}, {1, 20, 0, -1}, {1, 0, 0, -1}}, {1, 1, 1, 1}},  /* cannot be helped now */
        {{{1, 0, 0, 20}, {1, 61, 2, -1}, {1, 20, 0, -1}, {1, 0, 0, -1}}, {1, 0, 1, 1}},  /* not by a conflict */
        {{{1, 99, 0, 20}, {1, 10, 0, -1}, {1, 20, 0, -1}, {1, 0, 0, -1}}, {1, 1, 1, 1}}, /* green already */
        {{{1, 0, 0, 40}, {1, 10, 0, -1}, {1, 20, 0, -1}, {1, 0, 0, -1}}, {0, 1, 1, 1}},  /* old */
        {{{1, 0, 0, 39.5F}, {1, 10, 0, -1}, {1, 20, 0, -1}, {1, 0, 0, -1}}, {1, 1, 1, 1}},
        {{{0, 0, 0, -1}, {1, 10, 0, -1}, {0, 80, 0, -1}, {0, 0, 0, -1}}, {1, 1, 1, 1}}, /* a transition */
    };
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    static float phases[AGENTS][PHASES][FACTS];
    shield s;
    answers o;
    shield_open(&s, (const char *const[]){"starvation_s=60", "max_green_s=40", NULL}, lights, 2);
    assert_int_equal(s.b.n_in, 1);
    assert_port(&s.b.in[0], "phases", "A 4 13");
    assert_int_equal(s.b.n_out, 2);
    assert_port(&s.b.out[0], "allow", "A 4");
    for (int a = 0; a < AGENTS; a++) {
        write_lights(phases[a], rows[a % N].light);
    }
    shield_ask(&s, phases, NULL, &o);
    for (int a = 0; a < AGENTS; a++) {
        for (int p = 0; p < PHASES; p++) {
            if ((o.allow[a * PHASES + p] > 0) != rows[a % N].allow[p]) {
                print_error("row %d, phase %d: %g\n", a % N, p, (double)o.allow[a * PHASES + p]);
                fail();
            }
        }
    }
    shield_close(&s);
}

typedef struct service {
    float lonely, lonely_s;
} service;

enum { CHANGE = 4, LEAST = 10, SERVICE = 5 };

static void write_service(float out[PHASES][SERVICE], const service *x, const light *l)
{
    for (int p = 0; p < PHASES; p++) {
        const float row[SERVICE] = {x[p].lonely, x[p].lonely_s, CHANGE, LEAST, l[p].waited};
        memcpy(out[p], row, sizeof(row));
    }
}

/* What is left of the choices 1 to 4 of a row: 1 permitted, 0 not, and whether all is said to be infeasible. */
static void check_rows(const float *allow, const float want[PHASES], bool infeasible, int row)
{
    float most = -INFINITY;
    for (int p = 0; p < PHASES; p++) {
        most = fmaxf(most, allow[p]);
    }
    for (int p = 0; p < PHASES; p++) {
        const bool is_left = most > 0 ? allow[p] > 0 : allow[p] >= most;
        if ((most > 0) == infeasible || is_left != (want[p] > 0)) {
            print_error("row %d: %g %g %g %g\n", row, (double)allow[0], (double)allow[1], (double)allow[2],
                        (double)allow[3]);
            fail();
        }
    }
}

/* With "service": a green is 4 s from its choice, the next choice 10 s; the bound is 60 s. One green more before it is
 * in time up to 46 s for the longest wait, up to 36 s for the one after that, and so on. */
static void test_signals_in_time(void **state)
{
    static const dt_dim dims[] = {{"choices", PHASES}, {"phases", FACTS}, {"service", SERVICE}};
    static const struct {
        light light[PHASES];
        service second; /* of phase 1 */
        float allow[PHASES];
        bool infeasible;
    } rows[] = {
        {{{1, 0, 0, 20}, {1, 45, 0, -1}, {1, 0, 0, -1}, {1, 0, 0, -1}}, {0, 0}, {1, 1, 1, 1}, false},
        {{{1, 0, 0, 20}, {1, 47, 0, -1}, {1, 0, 0, -1}, {1, 0, 0, -1}}, {0, 0}, {0, 1, 0, 0}, false},
        {{{1, 0, 0, 20}, {1, 40, 0, -1}, {1, 35, 0, -1}, {1, 0, 0, -1}}, {0, 0}, {1, 1, 1, 1}, false},
        {{{1, 0, 0, 20}, {1, 40, 0, -1}, {1, 37, 0, -1}, {1, 0, 0, -1}}, {0, 0}, {0, 1, 0, 0}, false},
        {{{1, 0, 0, 20}, {1, 40, 0, -1}, {1, 35, 0, -1}, {1, 27, 0, -1}}, {0, 0}, {0, 1, 0, 0}, false},
        /* two phases that would end one wait are one green before the third; either will do */
        {{{1, 0, 0, 20}, {1, 40, 0, -1}, {1, 40, 0, -1}, {1, 35, 0, -1}}, {0, 0}, {1, 1, 1, 1}, false},
        {{{1, 0, 0, 20}, {1, 40, 0, -1}, {1, 40, 0, -1}, {1, 37, 0, -1}}, {0, 0}, {0, 1, 1, 0}, false},
        /* too late, whatever is done: the longest wait ends, and it is said */
        {{{1, 0, 0, 20}, {1, 57, 0, -1}, {1, 50, 0, -1}, {1, 0, 0, -1}}, {0, 0}, {0, 1, 0, 0}, true},
        {{{1, 0, 0, 20}, {1, 70, 0, -1}, {1, 61, 0, -1}, {1, 0, 0, -1}}, {0, 0}, {0, 1, 0, 0}, true},
        {{{1, 0, 0, 4}, {0, 70, 0, -1}, {0, 0, 0, -1}, {0, 0, 0, -1}}, {0, 0}, {1, 0, 0, 0}, true}, /* held, and late */
        {{{1, 0, 0, 4}, {0, 50, 0, -1}, {0, 0, 0, -1}, {0, 0, 0, -1}}, {0, 0}, {1, 0, 0, 0}, false},
        /* a phase with conflicts is barred, but where it is all that a link has, and a vehicle waits or goes there */
        {{{1, 0, 0, 20}, {1, 9, 1, -1}, {1, 0, 0, -1}, {1, 0, 0, -1}}, {0, 0}, {1, 0, 1, 1}, false},
        {{{1, 0, 0, 20}, {1, 9, 1, -1}, {1, 0, 0, -1}, {1, 0, 0, -1}}, {1, 0}, {1, 0, 1, 1}, false},
        {{{1, 0, 0, 20}, {1, 9, 1, -1}, {1, 0, 0, -1}, {1, 0, 0, -1}}, {1, 9}, {1, 1, 1, 1}, true},
        {{{1, 0, 0, 20}, {1, 50, 1, -1}, {1, 0, 0, -1}, {1, 0, 0, -1}}, {1, 50}, {0, 1, 0, 0}, true},
        {{{1, 0, 0, -1}, {1, 0, 1, 3}, {1, 0, 0, -1}, {1, 0, 0, -1}}, {1, 0}, {0, 1, 0, 0}, true},
        {{{1, 0, 0, -1}, {1, 0, 1, 20}, {1, 0, 0, -1}, {1, 0, 0, -1}}, {1, 0}, {1, 1, 1, 1}, true},
        /* shown by another vehicle, and no link needs it: left at once */
        {{{1, 0, 0, -1}, {1, 0, 1, 3}, {1, 0, 0, -1}, {1, 0, 0, -1}}, {0, 0}, {1, 0, 1, 1}, false},
    };
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    static float phases[AGENTS][PHASES][FACTS], port[AGENTS][PHASES][SERVICE];
    shield s;
    answers o;
    shield_open(&s, (const char *const[]){"starvation_s=60", NULL}, dims, 3);
    assert_int_equal(s.b.n_in, 2);
    assert_port(&s.b.in[1], "service", "A 4 5");
    for (int a = 0; a < AGENTS; a++) {
        write_lights(phases[a], rows[a % N].light);
        write_service(port[a], (service[PHASES]){[1] = rows[a % N].second}, rows[a % N].light);
    }
    shield_ask(&s, phases, port, &o);
    for (int a = 0; a < AGENTS; a++) {
        check_rows(o.allow + (size_t)a * PHASES, rows[a % N].allow, rows[a % N].infeasible, a % N);
    }
    shield_close(&s);
}

/* Policies that ask for whatever is permitted, at random or with favourites: nobody waits for ever. */
static void test_no_agent_starves(void **state)
{
    enum { ACTION = 10, STARVATION = 60 };
    static float phases[AGENTS][PHASES][FACTS];
    shield s;
    answers o;
    dt_random r = random_from(13);
    float waited[AGENTS][PHASES] = {{0}}, green[AGENTS] = {0}, longest = 0;
    int now[AGENTS] = {0};
    shield_open(&s, (const char *const[]){"starvation_s=60", NULL}, lights, 2);
    for (int t = 0; t < 500; t++) {
        for (int a = 0; a < AGENTS; a++) {
            light l[PHASES];
            for (int p = 0; p < PHASES; p++) {
                l[p] = (light){1, waited[a][p], 0, p == now[a] ? green[a] : -1};
            }
            write_lights(phases[a], l);
        }
        shield_ask(&s, phases, NULL, &o);
        for (int a = 0; a < AGENTS; a++) {
            int p = a % 2 == 0 ? 0 : (int)dt_random_below(&r, PHASES); /* some only ever want the first */
            while (!(o.allow[a * PHASES + p] > 0)) {
                p = (p + 1) % PHASES;
            }
            green[a] = p == now[a] ? green[a] + ACTION : ACTION - 3;
            now[a] = p;
            for (int q = 0; q < PHASES; q++) {
                waited[a][q] = q == p ? 0 : waited[a][q] + ACTION;
                longest = waited[a][q] > longest ? waited[a][q] : longest;
            }
        }
    }
    assert_true(longest > STARVATION && longest <= STARVATION + PHASES * ACTION);
    shield_close(&s);
}

/* ---- the learned part, refusals ---------------------------------------------------------------------------------- */

static void test_learned_barrier_tightens(void **state)
{
    static const char *const on[] = {"learned=true", NULL}, *const off[] = {"hidden=8", NULL};
    static float near[AGENTS][ROWS][PAIR], far[AGENTS][ROWS][PAIR];
    shield s;
    answers plain, closer, learned;
    dt_random r = random_from(17);
    for (int a = 0; a < AGENTS; a++) {
        float p[PAIR];
        random_pair(&r, p, 0);
        nothing_ahead(far[a], p);
        memcpy(far[a][0], p, sizeof(p));
        memcpy(near[a], far[a], sizeof(far[a]));
        for (int i = 0; i < ROWS; i++) {
            near[a][i][GAP] -= 2;
        }
    }
    shield_open(&s, off, vehicles, 3);
    const int64_t features = ROWS * PAIR;
    assert_int_equal(s.b.r.table.trained_count, 8 * features + 8 + 8 + 1);
    shield_ask(&s, far, NULL, &plain);
    shield_ask(&s, near, NULL, &closer);
    shield_close(&s);
    shield_open(&s, on, vehicles, 3);
    assert_int_equal(s.b.r.table.trained_count, 128 * features + 128 + 128 + 1);
    memset((float *)(uintptr_t)param(&s.b, "barrier.out.w"), 0, 128 * sizeof(float));
    float *bias = (float *)(uintptr_t)param(&s.b, "barrier.out.b");
    *bias = 3; /* safe: the analytic bounds as they are */
    shield_ask(&s, far, NULL, &learned);
    assert_memory_equal(learned.high, plain.high, sizeof(plain.high));
    *bias = -2; /* not: 2 m more */
    shield_ask(&s, far, NULL, &learned);
    for (int a = 0; a < AGENTS; a++) {
        assert_true(learned.barrier[a] == -2);
        assert_true(fabsf(learned.high[a] - closer.high[a]) < 1e-3F * (1 + fabsf(closer.high[a])));
    }
    shield_close(&s);
}

/* ---- look-ahead -------------------------------------------------------------------------------------------------- */

enum { F = 10 };
static const dt_dim seers[] = {{"continuous", 1}, {"ahead", PAIR}, {"foreseen", 2 * F}, {"F", F}, {"dt_ms", 400}};

/* Does the follower that holds a for its action and brakes at c then keep gap_m to where the other is foreseen? */
static bool keeps_away(const float *p, const float *foreseen, double a, double c, double gap_m, double z)
{
    car ego = {0, (double)p[FOLLOWER]};
    const int n = 400; /* steps of 1 ms between two times */
    for (int i = 0; i < F * n; i++) {
        drive(&ego, i < lround((double)p[ACTION_S] * 1000) ? a : -c, 0.001, false);
        if ((i + 1) % n == 0) {
            const int f = i / n;
            const double way = (double)p[GAP] - gap_m + (double)foreseen[f] - z * exp((double)foreseen[F + f]);
            if (ego.x > way) {
                return false;
            }
        }
    }
    return true;
}

/* The bound is the largest such a, but at least -c. */
static void test_look_ahead(void **state)
{
    static float ahead[AGENTS][ROWS][PAIR], foreseen[AGENTS][2 * F];
    static const char *const on[] = {"look_ahead_mps2=0.5", "look_ahead_z=0.5", NULL};
    shield s;
    answers plain, seen;
    dt_random r = random_from(23);
    int n_same = 0, n_least = 0, n_between = 0;
    for (int a = 0; a < AGENTS; a++) {
        float p[PAIR];
        random_pair(&r, p, 0);
        p[FOLLOWER_BRAKE] = 9;
        p[LEADER_BRAKE] = 9; /* the other may brake as hard as we can, and will not */
        p[ACTION_S] = 0.001F * (float)lround((double)p[ACTION_S] * 1000);
        nothing_ahead(ahead[a], p);
        memcpy(ahead[a][0], p, sizeof(p));
        double x = 0, v = (double)p[LEADER];
        const double slows = dt_random_between(&r, -2, 1);
        for (int f = 0; f < F; f++) {
            v = fmax(0, v + slows * 0.4);
            x += v * 0.4;
            foreseen[a][f] = (float)x;
            foreseen[a][F + f] = (float)log(0.1 + 0.2 * f);
        }
    }
    shield_open(&s, NULL, vehicles, 3);
    shield_ask(&s, ahead, NULL, &plain);
    shield_close(&s);
    shield_open(&s, on, seers, 5);
    assert_int_equal(s.b.r.table.trained_count, 128 * ROWS * PAIR + 128 + 128 + 1); /* the barrier reads what it did */
    shield_ask(&s, ahead, foreseen, &seen);
    for (int a = 0; a < AGENTS; a++) {
        double low = -0.5, high = 400;
        for (int i = 0; i < 50; i++) {
            const double m = 0.5 * (low + high);
            if (keeps_away(ahead[a][0], foreseen[a], m, 0.5, 1, 0.5)) {
                low = m;
            } else {
                high = m;
            }
        }
        const double want = fmin((double)plain.high[a], low), is = (double)seen.high[a];
        assert_true(seen.high[a] <= plain.high[a] && seen.low[a] <= plain.low[a]); /* never looser */
        if (!(fabs(is - want) < 0.02 + 0.005 * fabs(want))) {
            print_error("%d: %g is not %g\n", a, is, want);
            fail();
        }
        n_same += seen.high[a] == plain.high[a];
        n_least += is == -0.5;
        n_between += is > -0.5 && is < (double)plain.high[a];
    }
    assert_true(n_same > 5 && n_least > 3 && n_between > 10);
    shield_close(&s);
}

static void test_ports_and_refusals(void **state)
{
    static const dt_dim cartpole[] = {{"D", 4}, {"choices", 2}};
    static const dt_dim narrow[] = {{"choices", 4}, {"phases", 8}};
    static const dt_dim two[] = {{"continuous", 2}, {"ahead", PAIR}};
    static const dt_dim other_lanes[] = {{"continuous", 1}, {"choices", 2}, {"ahead", PAIR}, {"beside", PAIR}};
    bench b;
    bench_open(&b, "shield_barrier", NULL, vehicles, 3);
    assert_int_equal(b.n_in, 1);
    assert_port(&b.in[0], "ahead", "A 3 7");
    assert_int_equal(b.n_out, 3);
    assert_port(&b.out[0], "low", "A 1");
    assert_port(&b.out[1], "high", "A 1");
    assert_port(&b.out[2], "barrier", "A");
    bench_close(&b);
    bench_open(&b, "shield_barrier", NULL, other_lanes, 4); /* choices that are no lanes are left alone */
    assert_int_equal(b.n_out, 3);
    bench_close(&b);
    const struct {
        const dt_dim *dims;
        uint32_t n;
        const char *words;
    } bad[] = {{cartpole, 2, "this one has continuous 0 and 0 columns of ahead, choices 2 and 0 columns of phases"},
               {narrow, 2, "or of signals, choices and \"phases\" [A choices 13]"},
               {two, 2, "needs an environment of vehicles, 1 continuous action and \"ahead\" [A 3 7]"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(bench_create(&b, "shield_barrier", NULL, bad[i].dims, bad[i].n), DT_ESHAPE);
        assert_non_null(strstr(b.host.message, bad[i].words));
        bench_close(&b);
    }
    static const dt_dim odd[] = {{"continuous", 1}, {"ahead", PAIR}, {"foreseen", 7}, {"F", 4}, {"dt_ms", 200}};
    assert_int_equal(bench_create(&b, "shield_barrier", NULL, odd, 5), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "gives \"foreseen\" 7 columns, F 4, dt_ms 200"));
    bench_close(&b);
    bench_open(&b, "shield_barrier", (const char *const[]){"look_ahead_mps2=0", NULL}, seers, 5);
    assert_int_equal(b.n_in, 1);
    bench_close(&b);
    assert_int_equal(bench_create(&b, "shield_barrier", NULL, vehicles, 3), DT_OK);
    void *wrong = mock_config(b.c, (const char *const[]){"min_green_s=30", "max_green_s=20", NULL});
    assert_int_equal(b.c->check(&b.host.host, wrong), DT_ECONFIG);
    assert_non_null(strstr(b.host.message, "shield_barrier.max_green_s = 20 s is below min_green_s = 30 s"));
    free(wrong);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_form),
        cmocka_unit_test(test_no_collisions),
        cmocka_unit_test(test_discrete_barrier),
        cmocka_unit_test(test_infeasible_is_hardest_braking),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_signals_in_time),
        cmocka_unit_test(test_no_agent_starves),
        cmocka_unit_test(test_learned_barrier_tightens),
        cmocka_unit_test(test_look_ahead),
        cmocka_unit_test(test_ports_and_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
