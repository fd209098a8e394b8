/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of dtrain/random.h; the rounds themselves meet their known answers in test_rng.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "dtrain/random.h"

/* words are those of the blocks, in order */
static void test_words(void **state)
{
    static const uint32_t key[2] = {0x55667788, 0x11223344};
    dt_random r;
    memset(&r, 0xff, sizeof(r));
    dt_random_init(&r, UINT64_C(0x1122334455667788), UINT64_C(0x900000007));
    for (uint32_t block = 0; block < 3; block++) {
        uint32_t want[4];
        dt_random_philox(key, (const uint32_t[4]){block, 0, 7, 9}, want);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(dt_random_word(&r), want[i]);
        }
    }
    /* the counter of blocks carries into its upper half */
    r.next = UINT64_C(0x500000002);
    uint32_t want[4];
    dt_random_philox(key, (const uint32_t[4]){2, 5, 7, 9}, want);
    assert_int_equal(dt_random_word(&r), want[0]);
}

static void test_streams_differ(void **state)
{
    static const struct {
        uint64_t seed, stream;
    } name[] = {{1, 0}, {2, 0}, {1, 1}, {1, UINT64_C(1) << 32}, {UINT64_C(1) << 32, 0}};
    enum { N = sizeof(name) / sizeof(name[0]) };
    uint32_t first[N];
    for (int i = 0; i < N; i++) {
        dt_random r;
        dt_random_init(&r, name[i].seed, name[i].stream);
        first[i] = dt_random_word(&r);
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(first[i], first[j]);
        }
    }
}

static void test_moments(void **state)
{
    enum { N = 100000 };
    dt_random r;
    dt_random_init(&r, 42, 0);
    double u_sum = 0, u_square = 0, g_sum = 0, g_square = 0, g_fourth = 0;
    for (int i = 0; i < N; i++) {
        const double u = dt_random_uniform(&r), g = dt_random_normal(&r), b = dt_random_between(&r, -3, 5);
        assert_true(u >= 0 && u < 1);
        assert_true(b >= -3 && b < 5);
        assert_true(isfinite(g));
        u_sum += u;
        u_square += u * u;
        g_sum += g;
        g_square += g * g;
        g_fourth += g * g * g * g;
    }
    /* five standard errors */
    assert_true(fabs(u_sum / N - 0.5) < 5 * 0.2887 / sqrt(N));
    assert_true(fabs(u_square / N - 1.0 / 3) < 5 * 0.2981 / sqrt(N));
    assert_true(fabs(g_sum / N) < 5 / sqrt(N));
    assert_true(fabs(g_square / N - 1) < 5 * sqrt(2.0) / sqrt(N));
    assert_true(fabs(g_fourth / N - 3) < 5 * sqrt(96.0) / sqrt(N));
}

static void test_below(void **state)
{
    dt_random r;
    dt_random_init(&r, 3, 0);
    int count[7] = {0};
    for (int i = 0; i < 70000; i++) {
        const uint32_t k = dt_random_below(&r, 7);
        assert_in_range(k, 0, 6);
        count[k]++;
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(count[i], 10000 - 465, 10000 + 465); /* 5 deviations of 92.6 */
    }
    assert_int_equal(dt_random_below(&r, 1), 0);
    /* of 3 2^30 numbers the words would give one third twice as often as the others; here each third has its share */
    const uint32_t n = UINT32_C(3) << 30;
    int third[3] = {0};
    for (int i = 0; i < 30000; i++) {
        third[dt_random_below(&r, n) >> 30]++;
    }
    for (int i = 0; i < 3; i++) {
        assert_in_range(third[i], 10000 - 410, 10000 + 410); /* 5 deviations of 81.6 */
    }
    /* and within 2^31 + 1 almost half of all words are drawn again */
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        sum += dt_random_below(&r, (UINT32_C(1) << 31) + 1) / 2147483649.0;
    }
    assert_true(fabs(sum / 10000 - 0.5) < 5 * 0.2887 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_streams_differ),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
