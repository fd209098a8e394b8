/* SPDX-License-Identifier: Apache-2.0
 *
 * Running moments: those of all rows at once, however they came; far from zero, too.
 */
#include <config.h>

#include "rl/buffer/normaliser.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 300, D = 3 };

static void fill(float *x, unsigned char *flag)
{
    for (int i = 0; i < N; i++) {
        flag[i] = (unsigned char)(i % 7 != 3 ? 3 : 2);
        x[i * D] = 1e4f + (float)(i % 13);
        x[i * D + 1] = flag[i] == 3 ? (float)(i * i % 101) * 0.01f : NAN; /* left out */
        x[i * D + 2] = 5;
    }
}

static void test_joined_is_whole(void **state)
{
    float x[N * D];
    unsigned char flag[N];
    fill(x, flag);
    double rows = 0, mean = 0, m2 = 0;
    for (int i = 0; i < N; i++) {
        rows += flag[i] == 3;
        mean += flag[i] == 3 ? (double)x[i * D] : 0;
    }
    mean /= rows;
    for (int i = 0; i < N; i++) {
        m2 += flag[i] == 3 ? ((double)x[i * D] - mean) * ((double)x[i * D] - mean) : 0;
    }
    static const size_t cut[][4] = {{0, N, N, N}, {0, 1, 2, N}, {0, 100, 103, N}, {0, 0, 299, N}};
    for (int c = 0; c < 4; c++) {
        dt_moments m;
        assert_int_equal(dt_moments_init(&m, D), DT_OK);
        assert_true(m.shift[0] == 0 && m.scale[0] == 1);
        for (int k = 0; k < 3; k++) {
            dt_moments_add(&m, x + cut[c][k] * D, flag + cut[c][k], cut[c][k + 1] - cut[c][k]);
        }
        dt_moments_apply(&m);
        assert_true(m.n == rows);
        assert_true(fabs((double)m.shift[0] - mean) < 1e-6 * mean && m.shift[2] == 5);
        assert_true(fabs(m.mean[0] - mean) < 1e-9 * mean);
        assert_true(fabs(m.m2[0] - m2) < 1e-9 * m2);
        assert_true(fabs((double)m.scale[0] * sqrt(m2 / rows) - 1) < 1e-6);
        assert_true(isfinite(m.mean[1]) && isfinite(m.m2[1]));
        assert_true(m.mean[2] == 5 && m.m2[2] == 0 && isfinite(m.scale[2])); /* a constant goes to 0 */
        dt_moments_fini(&m);
    }
}

/* The variance is that of the rows themselves: divided by n, and of one row by 1e-8. */
static void test_scale_of_few(void **state)
{
    const float x[] = {1, 3};
    const unsigned char flag[] = {1, 1};
    dt_moments m;
    assert_int_equal(dt_moments_init(&m, 1), DT_OK);
    dt_moments_apply(&m);
    assert_true(m.shift[0] == 0 && m.scale[0] == 1); /* of no row */
    dt_moments_add(&m, x, flag, 1);
    dt_moments_apply(&m);
    assert_true(m.shift[0] == 1 && m.scale[0] == (float)(1 / sqrt(1e-8)));
    dt_moments_add(&m, x + 1, flag, 1);
    dt_moments_apply(&m);
    assert_true(m.shift[0] == 2 && m.scale[0] == (float)(1 / sqrt(1 + 1e-8)));
    dt_moments_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_joined_is_whole), cmocka_unit_test(test_scale_of_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
