/* SPDX-License-Identifier: Apache-2.0
 *
 * The closed-form step: a problem whose solution is known to many digits, every case of it, and, over random problems
 * in three dimensions, that no point of the feasible set is better.
 */
#include "../../phases/phase3_constrained/trust_region.h"

#include "unit.h"

/* maximise x1 + x2/2 where 0.6 x1 + x2 <= 0.05, x'Hx/2 <= 0.02 */
static const double H[2][2] = {{2, 0.3}, {0.3, 1}}, g[2] = {1, 0.5}, b[2] = {0.6, 1};

static void solve2(const double *right, double *x)
{
    const double det = H[0][0] * H[1][1] - H[0][1] * H[1][0];
    x[0] = (H[1][1] * right[0] - H[0][1] * right[1]) / det;
    x[1] = (H[0][0] * right[1] - H[1][0] * right[0]) / det;
}

static double dot2(const double *a, const double *c)
{
    return a[0] * c[0] + a[1] * c[1];
}

static trust_region_numbers numbers2(double c, double delta, double *u, double *w)
{
    solve2(g, u);
    solve2(b, w);
    return (trust_region_numbers){.q = dot2(g, u), .r = dot2(g, w), .s = dot2(b, w), .c = c, .delta = delta};
}

static void point2(const trust_region_solution *s, const double *u, const double *w, double *x, double *kl)
{
    for (int i = 0; i < 2; i++) {
        x[i] = s->along_g * u[i] + s->along_b * w[i];
    }
    const double Hx[2] = {dot2(H[0], x), dot2(H[1], x)};
    *kl = dot2(x, Hx) / 2;
}

static void near_(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) {
        fail_msg("%.12g, expected %.12g", got, want);
    }
}

static void test_bound(void **unused)
{
    double u[2], w[2], x[2], kl;
    const trust_region_numbers n = numbers2(-0.05, 0.02, u, w);
    near_(n.q, 0.62827225, 5e-9);
    near_(n.r, 0.63350785, 5e-9);
    near_(n.s, 1.04712042, 5e-9);
    const trust_region_solution s = trust_region_solve_dual(&n);
    assert_int_equal(s.kind, TRUST_REGION_BOUND);
    near_(s.lambda, 2.55221315, 5e-9);
    near_(s.nu, 0.48313182, 5e-9);
    near_(s.gain, 0.12624512, 5e-9);
    point2(&s, u, w, x, &kl);
    near_(x[0], 0.14463588, 5e-9);
    near_(x[1], -0.03678153, 5e-9);
    near_(kl, 0.02, 1e-15);
    near_(-0.05 + dot2(b, x), 0, 1e-15);
    near_(dot2(g, x), s.gain, 1e-15);
}

static void test_unbound(void **unused)
{
    double u[2], w[2], x[2], kl;
    for (int far = 0; far < 3; far++) { /* the plane cuts the ball behind the optimum; not at all; there is none */
        const double c[] = {-0.17, -1, -INFINITY};
        const trust_region_numbers n = numbers2(c[far], 0.02, u, w);
        const trust_region_solution s = trust_region_solve_dual(&n);
        assert_int_equal(s.kind, TRUST_REGION_FREE);
        assert_true(s.nu == 0);
        near_(s.lambda, sqrt(n.q / 0.04), 1e-12);
        point2(&s, u, w, x, &kl);
        near_(kl, 0.02, 1e-15);
        near_(dot2(g, x), sqrt(0.04 * n.q), 1e-15);
        assert_true(c[far] + dot2(b, x) <= 0);
    }
}

static void test_recover(void **unused)
{
    double u[2], w[2], x[2], kl;
    const trust_region_numbers n = numbers2(0.3, 0.02, u, w); /* the ball reaches down by sqrt(2 delta s) = 0.2046 */
    const trust_region_solution s = trust_region_solve_dual(&n);
    assert_int_equal(s.kind, TRUST_REGION_RECOVER);
    assert_true(s.along_g == 0 && isinf(s.nu));
    point2(&s, u, w, x, &kl);
    near_(kl, 0.02, 1e-15);
    near_(dot2(b, x), -sqrt(0.04 * n.s), 1e-15);

    const trust_region_numbers back = numbers2(0.2, 0.02, u, w); /* above the limit, but within reach */
    const trust_region_solution r = trust_region_solve_dual(&back);
    assert_int_equal(r.kind, TRUST_REGION_BOUND);
    point2(&r, u, w, x, &kl);
    near_(kl, 0.02, 1e-15);
    near_(0.2 + dot2(b, x), 0, 1e-14);
}

static void test_degenerate(void **unused)
{
    const trust_region_numbers still = {.q = 0, .r = 0, .s = 1, .c = -1, .delta = 0.02};
    trust_region_solution s = trust_region_solve_dual(&still);
    assert_true(s.kind == TRUST_REGION_FREE && s.along_g == 0 && s.along_b == 0);

    const trust_region_numbers down = {
        .q = 0, .r = 0, .s = 1, .c = 0.1, .delta = 0.02}; /* nothing to gain but the limit */
    s = trust_region_solve_dual(&down);
    assert_true(s.kind == TRUST_REGION_BOUND && s.along_g == 0 && fabs(s.along_b + 0.1) < 1e-15);

    const trust_region_numbers same = {.q = 4, .r = 2, .s = 1, .c = -0.1, .delta = 0.02}; /* g = 2 b */
    s = trust_region_solve_dual(&same);
    assert_int_equal(s.kind, TRUST_REGION_BOUND);
    near_(s.along_g, 0, 0);
    near_(s.along_b, 0.1, 1e-15);
    near_(s.nu, 2, 1e-15);
    near_(s.gain, 0.2, 1e-15);

    const trust_region_numbers helpless = {
        .q = 1, .r = 0, .s = 0, .c = 1, .delta = 0.02}; /* no step changes the cost */
    s = trust_region_solve_dual(&helpless);
    assert_true(s.kind == TRUST_REGION_FREE && fabs(s.along_g - 0.2) < 1e-15);

    const trust_region_numbers noise = {.q = 1, .r = 1.001, .s = 1, .c = -0.1, .delta = 0.02}; /* not quite possible */
    s = trust_region_solve_dual(&noise);
    assert_true(isfinite(s.along_g) && isfinite(s.along_b));
}

static double uniform(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return (double)(*x >> 11) * 0x1p-53 * 2 - 1;
}

/* H = I: any other problem is this one after a change of coordinates. */
static void test_nothing_feasible_is_better(void **unused)
{
    uint64_t x = 7;
    int seen[3] = {0};
    for (int trial = 0; trial < 300; trial++) {
        double G[3], B[3], at[3], q = 0, r = 0, s = 0, cost = 0, kl = 0;
        for (int i = 0; i < 3; i++) {
            G[i] = uniform(&x);
            B[i] = uniform(&x);
            q += G[i] * G[i];
            r += G[i] * B[i];
            s += B[i] * B[i];
        }
        const trust_region_numbers n = {.q = q, .r = r, .s = s, .c = 0.4 * uniform(&x), .delta = 0.02};
        const trust_region_solution best = trust_region_solve_dual(&n);
        seen[best.kind]++;
        for (int i = 0; i < 3; i++) {
            at[i] = best.along_g * G[i] + best.along_b * B[i];
            cost += B[i] * at[i];
            kl += at[i] * at[i] / 2;
        }
        assert_true(kl <= 0.02 + 1e-12);
        assert_true(best.kind == TRUST_REGION_RECOVER || n.c + cost <= 1e-12);
        for (int k = 0; k < 500; k++) {
            double other = 0, gain = 0, radius = 0, y[3];
            for (int i = 0; i < 3; i++) {
                y[i] = uniform(&x);
                radius += y[i] * y[i];
            }
            for (int i = 0; i < 3; i++) {
                y[i] *= 0.2 / sqrt(radius);
                gain += G[i] * y[i];
                other += B[i] * y[i];
            }
            if (best.kind == TRUST_REGION_RECOVER) {
                assert_true(other >= cost - 1e-12);
            } else {
                assert_true(n.c + other > 0 || gain <= best.gain + 1e-12);
            }
        }
    }
    assert_true(seen[TRUST_REGION_FREE] > 20 && seen[TRUST_REGION_BOUND] > 20 && seen[TRUST_REGION_RECOVER] > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_unbound),
        cmocka_unit_test(test_recover),
        cmocka_unit_test(test_degenerate),
        cmocka_unit_test(test_nothing_feasible_is_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
