/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of multipliers on a problem whose answer is known: reward p and cost p for p in [0,1], cost at most 0.3, so
 * that the multiplier of the solution is 1. The policy is one sigmoid that climbs p - lambda p; next to it numbers by
 * hand.
 */
#include "../../phases/constraints/multiplier.h"

#include "unit.h"

static const double limit = 0.3;

typedef struct result {
    double p, multiplier; /* means of the last tenth */
} result;

/* scale: what the same cost is counted in. */
static result solve(const multiplier_rule *r, double rate, int rounds, double scale)
{
    multiplier m;
    result out = {0, 0};
    double x = 0;
    multiplier_init(&m);
    for (int i = 0; i < rounds; i++) {
        const double p = 1 / (1 + exp(-x));
        multiplier_update(&m, r, scale * p, scale * limit, 1 / scale, 1);
        const double lambda = scale * m.value;
        x += rate * p * (1 - p) * (1 - lambda) / (1 + lambda);
        if (i >= rounds - rounds / 10) {
            out.p += p / (rounds / 10);
            out.multiplier += lambda / (rounds / 10);
        }
    }
    return out;
}

static void test_pid_settles(void **unused)
{
    const multiplier_rule r = {
        .algorithm = MULTIPLIER_PID, .start = 0.1, .max = 100, .kp = 1, .ki = 0.05, .kd = 0, .delay = 1};
    const result got = solve(&r, 0.1, 20000, 1), pence = solve(&r, 0.1, 20000, 100);
    assert_true(fabs(got.p - 0.3) < 1e-3);
    assert_true(fabs(got.multiplier - 1) < 1e-3);
    assert_true(fabs(pence.p - got.p) < 1e-9 && fabs(pence.multiplier - got.multiplier) < 1e-9);
}

static void test_mean_of_plain_ascent(void **unused)
{
    const multiplier_rule r = {.algorithm = MULTIPLIER_LAGRANGIAN, .start = 0.1, .max = 100, .rate = 0.01};
    assert_true(fabs(solve(&r, 0.1, 20000, 1).multiplier - 1) < 0.05);
}

static void test_penalty_is_exact_when_large_enough(void **unused)
{
    const multiplier_rule enough = {.algorithm = MULTIPLIER_PENALTY, .max = 100, .penalty = 2};
    const multiplier_rule little = {.algorithm = MULTIPLIER_PENALTY, .max = 100, .penalty = 0.5};
    assert_true(fabs(solve(&enough, 0.01, 20000, 1).p - 0.3) < 3e-3);
    assert_true(fabs(solve(&enough, 0.01, 20000, 100).p - 0.3) < 3e-3);
    assert_true(solve(&little, 0.1, 20000, 1).p > 0.9);
}

static void test_log_barrier_stays_inside(void **unused)
{
    for (double t = 10; t <= 400; t *= 2) { /* 1 = d / (t (d - p)) */
        const multiplier_rule r = {.algorithm = MULTIPLIER_LOG_BARRIER, .max = 100, .sharpness = t};
        assert_true(fabs(solve(&r, 0.01, 40000, 1).p - 0.3 * (1 - 1 / t)) < 3e-3);
    }
}

static void test_by_hand(void **unused)
{
    multiplier m;
    const multiplier_rule plain = {.algorithm = MULTIPLIER_LAGRANGIAN, .start = 0.1, .max = 1, .rate = 0.5};
    multiplier_init(&m);
    assert_true(m.value == 0);
    multiplier_update(&m, &plain, 0.6, 0.3, 2, 1); /* 2 (0.1 + 0.5 * 0.3 / 0.6) */
    assert_true(fabs(m.value - 0.7) < 1e-12);
    for (int i = 0; i < 10; i++) {
        multiplier_update(&m, &plain, 9, 0.3, 2, 1);
    }
    assert_true(fabs(m.value - 2) < 1e-12);      /* max in units */
    multiplier_update(&m, &plain, 9, 0.3, 0, 1); /* a round that reports no unit */
    assert_true(fabs(m.unit - 2) < 1e-12);
    for (int i = 0; i < 10; i++) {
        multiplier_update(&m, &plain, 0, 30, 2, 1);
    }
    assert_true(m.value == 0);

    multiplier_update(&m, &plain, 60, 30, 2, 0.5); /* half of the rate: 2 * 0.5 * 0.5 */
    assert_true(fabs(m.value - 0.5) < 1e-12);

    const multiplier_rule pid = {.algorithm = MULTIPLIER_PID,
                                 .start = 0.1,
                                 .max = 10,
                                 .kp = 0.5,
                                 .ki = 0.2,
                                 .kd = 2,
                                 .error_ema = 0.5,
                                 .cost_ema = 0,
                                 .delay = 2};
    multiplier_init(&m);
    multiplier_update(&m, &pid, 1, 0.5, 1, 1); /* e 0.5: 0.5 * 0.5 + (0.1 + 0.2 * 0.5) */
    assert_true(fabs(m.value - 0.45) < 1e-12);
    multiplier_update(&m, &pid, 1, 0.5, 1, 1); /* nothing rose two rounds ago: there was no such round */
    assert_true(fabs(m.value - 0.55) < 1e-12);
    multiplier_update(&m, &pid, 1.5, 0.5, 1, 1); /* size 1.05: e 0.95238, smoothed 0.72619, rise 0.45238 */
    assert_true(fabs(m.value - (0.3 + (0.5 * 0.726190476 + 0.2 * 0.952380952 + 2 * 0.452380952))) < 1e-8);

    const multiplier_rule penalty = {.algorithm = MULTIPLIER_PENALTY, .max = 20, .penalty = 5};
    multiplier_init(&m);
    multiplier_update(&m, &penalty, 1, 0, 3, 1); /* a limit of 0: any cost is above it */
    assert_true(m.value == 15);
    multiplier_update(&m, &penalty, 0, 0, 3, 1);
    assert_true(m.value == 0);
    multiplier_update_in_round(&m, &penalty, 0.1, 0); /* the policy has moved within the round */
    assert_true(m.value == 15);

    const multiplier_rule barrier = {.algorithm = MULTIPLIER_LOG_BARRIER, .max = 20, .sharpness = 10};
    multiplier_init(&m);
    multiplier_update(&m, &barrier, 0.75, 1, 2, 1); /* 2 / (10 * 0.25) */
    assert_true(fabs(m.value - 0.8) < 1e-12);
    multiplier_update_in_round(&m, &barrier, 0.5, 1);
    assert_true(fabs(m.value - 0.4) < 1e-12);
    multiplier_update_in_round(&m, &barrier, 1, 1);
    assert_true(m.value == 40);
}

/* ---- the rules over many rounds ---------------------------------------------------------------------------------- */

enum { ROUNDS = 120 };

/* Costs that stay above their limit, far below it, and jump. */
static double cost_of(int round)
{
    return round < 30 ? 3 : round < 60 ? 0.01 * (round % 7) : 0.5 + 0.45 * sin(round * round);
}

/* Values of the rules in closed sums over the whole history, without state. */
typedef struct history {
    double cost[ROUNDS], unit[ROUNDS], limit;
} history;

/* the exponential average of x[0 .. n] that keeps `keep` and starts at x[0] */
static double average(double keep, const double *x, int n)
{
    double sum = pow(keep, n) * x[0];
    for (int i = 1; i <= n; i++) {
        sum += (1 - keep) * pow(keep, n - i) * x[i];
    }
    return sum;
}

static void errors_of(const history *h, int n, double *error, double *unit)
{
    for (int i = 0; i <= n; i++) {
        unit[i] = average(0.9, h->unit, i);
        error[i] = (h->cost[i] - h->limit) / fmax(h->limit, average(0.9, h->cost, i));
    }
}

static double pid_reference(const multiplier_rule *r, const history *h, int n, double share)
{
    double error[ROUNDS], unit[ROUNDS];
    errors_of(h, n, error, unit);
    double integral = fmin(r->start, r->max) * unit[0];
    for (int i = 0; i <= n; i++) {
        integral += share * r->ki * error[i] * unit[i];
        integral = integral < 0 ? 0 : integral > r->max * unit[i] ? r->max * unit[i] : integral;
    }
    const int64_t past = n - r->delay;
    const double rise = past < 0 ? 0 : average(r->cost_ema, error, n) - average(r->cost_ema, error, (int)past);
    const double value = integral + unit[n] * (r->kp * average(r->error_ema, error, n) + r->kd * (rise > 0 ? rise : 0));
    return value < 0 ? 0 : value > r->max * unit[n] ? r->max * unit[n] : value;
}

static void fill(history *h, double at)
{
    h->limit = at;
    for (int i = 0; i < ROUNDS; i++) {
        h->cost[i] = cost_of(i);
        h->unit[i] = 1 + 0.5 * cos(i);
    }
}

static void test_pid_follows_its_definition(void **unused)
{
    static const multiplier_rule rules[] = {
        {.start = 0.1, .max = 4, .kp = 0.3, .ki = 0.4, .kd = 2, .error_ema = 0.6, .cost_ema = 0.3, .delay = 1},
        {.start = 0.1, .max = 1e6, .kp = 0.3, .ki = 0.2, .kd = 1, .error_ema = 0.2, .cost_ema = 0.7, .delay = 5},
        {.start = 9, .max = 5, .kp = 0, .ki = 0.05, .kd = 0, .error_ema = 0, .cost_ema = 0, .delay = 3},
        {.start = 2, .max = 50, .kp = 0, .ki = 0, .kd = 4, .error_ema = 0.5, .cost_ema = 0.9, .delay = 64},
    };
    for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++) {
        const double share = k % 2 == 0 ? 1 : 0.25;
        multiplier_rule r = rules[k];
        multiplier m;
        history h;
        r.algorithm = MULTIPLIER_PID;
        fill(&h, 0.5);
        h.cost[0] = k == 2 ? 0 : h.cost[0]; /* a start above max counts as max, though the first round lowers it */
        multiplier_init(&m);
        for (int n = 0; n < ROUNDS; n++) {
            multiplier_update(&m, &r, h.cost[n], h.limit, h.unit[n], share);
            const double want = pid_reference(&r, &h, n, share);
            if (!(fabs(m.value - want) <= 1e-9 * (1 + want))) {
                fail_msg("rule %zu, round %d: %.12g is not %.12g", k, n, m.value, want);
            }
        }
    }
}

/* The integral part stops at max: after any number of rounds above the limit one round below it lowers the value. */
static void test_integral_does_not_wind_up(void **unused)
{
    const multiplier_rule r = {.algorithm = MULTIPLIER_PID, .start = 0, .max = 1, .ki = 0.5, .delay = 1};
    multiplier m;
    multiplier_init(&m);
    for (int i = 0; i < 1000; i++) {
        multiplier_update(&m, &r, 2, 1, 1, 1);
    }
    assert_true(m.value == 1);
    multiplier_update(&m, &r, 0, 1, 1, 1); /* e = -1 / max(1, 0.9 * 2) */
    assert_true(fabs(m.value - (1 - 0.5 / 1.8)) < 1e-9);
    for (int i = 0; i < 1000; i++) {
        multiplier_update(&m, &r, 0, 1, 1, 1);
    }
    assert_true(m.value == 0);
    const double size = m.size;
    multiplier_update(&m, &r, 2, 1, 1, 1);
    assert_true(size < 1e-3 && fabs(m.value - 0.5) < 1e-3); /* and neither does it below 0 */
}

static void test_ascent_follows_its_definition(void **unused)
{
    const multiplier_rule r = {.algorithm = MULTIPLIER_LAGRANGIAN, .start = 0.5, .max = 3, .rate = 0.2};
    double error[ROUNDS], unit[ROUNDS], want = 0;
    multiplier m;
    history h;
    fill(&h, 0.5);
    errors_of(&h, ROUNDS - 1, error, unit);
    multiplier_init(&m);
    for (int n = 0; n < ROUNDS; n++) {
        multiplier_update(&m, &r, h.cost[n], h.limit, h.unit[n], 0.5);
        want = (n == 0 ? 0.5 * unit[0] : want) + 0.5 * 0.2 * error[n] * unit[n];
        want = want < 0 ? 0 : want > 3 * unit[n] ? 3 * unit[n] : want;
        assert_true(fabs(m.value - want) <= 1e-9 * (1 + want));
    }
}

/* Whatever the policy does within a round, a multiplier stays at or below max. */
static void test_following_is_bounded(void **unused)
{
    const multiplier_rule penalty = {.algorithm = MULTIPLIER_PENALTY, .max = 3, .penalty = 5};
    const multiplier_rule barrier = {.algorithm = MULTIPLIER_LOG_BARRIER, .max = 3, .sharpness = 10};
    multiplier m;
    multiplier_init(&m);
    multiplier_update(&m, &penalty, 2, 1, 2, 1);
    assert_true(m.value == 6);
    multiplier_update_in_round(&m, &penalty, 2, 1);
    assert_true(m.value == 6);
    multiplier_update_in_round(&m, &penalty, 0.5, 1);
    assert_true(m.value == 0);
    multiplier_init(&m);
    multiplier_update(&m, &barrier, 0.999, 1, 2, 1);
    assert_true(m.value == 6);
    multiplier_update_in_round(&m, &barrier, 0.999, 1);
    assert_true(m.value == 6);
    multiplier_update_in_round(&m, &barrier, 0.2, 1);
    assert_true(fabs(m.value - 2 / (10 * 0.8)) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_pid_follows_its_definition),
        cmocka_unit_test(test_integral_does_not_wind_up),
        cmocka_unit_test(test_ascent_follows_its_definition),
        cmocka_unit_test(test_following_is_bounded),
        cmocka_unit_test(test_pid_settles),
        cmocka_unit_test(test_mean_of_plain_ascent),
        cmocka_unit_test(test_penalty_is_exact_when_large_enough),
        cmocka_unit_test(test_log_barrier_stays_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
