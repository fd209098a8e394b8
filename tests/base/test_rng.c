/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/rng.c. Known answers: Random123, tests/kat_vectors, philox4x32 with 10 rounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "dtrain/random.h"

static void test_known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t out[4];
        dt_random_philox(rows[i].key, rows[i].counter, out);
        assert_memory_equal(out, rows[i].want, sizeof(out));
    }
}

static void test_block_is_what_the_header_says(void **state)
{
    const dt_rng_key key = {
        .seed = 0x1122334455667788, .phase = 3, .op = 9, .step = 0x500000006, .sample = 0x700000008};
    uint32_t k[4], want[4], got[4];
    dt_random_philox((const uint32_t[2]){0x55667788, 0x11223344}, (const uint32_t[4]){3, 9, 6, 5}, k);
    dt_random_philox(k, (const uint32_t[4]){2, 1, k[2] ^ 8, k[3] ^ 7}, want);
    dt_philox(&key, 0x100000002, got);
    assert_memory_equal(got, want, sizeof(got));
    dt_rng_stream s;
    dt_rng_stream_init(&s, &key);
    dt_rng_stream_block(&s, key.sample, 0x100000002, got);
    assert_memory_equal(got, want, sizeof(got));
}

static void test_every_part_of_the_key_matters(void **state)
{
    const dt_rng_key base = {.seed = 1, .phase = 1, .op = 1, .step = 1, .sample = 1};
    dt_rng_key keys[6] = {base, base, base, base, base, base};
    keys[1].seed = 2;
    keys[2].phase = 2;
    keys[3].op = 2;
    keys[4].step = 2;
    keys[5].sample = 2;
    uint32_t out[6][4];
    for (int i = 0; i < 6; i++) {
        dt_philox(&keys[i], 0, out[i]);
        for (int j = 0; j < i; j++) {
            assert_memory_not_equal(out[i], out[j], sizeof(out[i]));
        }
    }
}

static void test_uniform_and_normal_moments(void **state)
{
    const dt_rng_key key = {.seed = 42};
    enum { N = 100000 };
    double u_sum = 0, u_square = 0, g_sum = 0, g_square = 0;
    for (uint64_t i = 0; i < N; i++) {
        double u = dt_rng_uniform(&key, i), g = dt_rng_normal(&key, i);
        assert_true(u >= 0 && u < 1);
        assert_true(isfinite(g));
        u_sum += u;
        u_square += u * u;
        g_sum += g;
        g_square += g * g;
    }
    /* five standard errors */
    assert_true(fabs(u_sum / N - 0.5) < 5 * 0.2887 / sqrt(N));
    assert_true(fabs(u_square / N - 1.0 / 3) < 5 * 0.2981 / sqrt(N));
    assert_true(fabs(g_sum / N) < 5 / sqrt(N));
    assert_true(fabs(g_square / N - 1) < 5 * sqrt(2.0) / sqrt(N));
}

static void test_permutation_is_one_to_one(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 16, 17, 100, 1000, 4096, 5000};
    uint8_t hit[5000];
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const uint64_t n = sizes[k];
        const dt_rng_key key = {.seed = 7, .step = k};
        dt_permutation p;
        dt_permutation_init(&p, n, &key);
        memset(hit, 0, sizeof(hit));
        for (uint64_t i = 0; i < n; i++) {
            uint64_t j = dt_permutation_at(&p, i);
            assert_true(j < n);
            assert_int_equal(hit[j], 0);
            hit[j] = 1;
        }
    }
}

static void test_permutations_differ_and_mix(void **state)
{
    /* over many keys every position of 0..6 meets every index about equally often */
    enum { N = 7, KEYS = 7000 };
    int count[N][N] = {{0}};
    for (uint64_t e = 0; e < KEYS; e++) {
        const dt_rng_key key = {.seed = 11, .step = e};
        dt_permutation p;
        dt_permutation_init(&p, N, &key);
        for (uint64_t i = 0; i < N; i++) {
            count[i][dt_permutation_at(&p, i)]++;
        }
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            assert_in_range(count[i][j], KEYS / N - 150, KEYS / N + 150); /* 5 deviations of 29.3 */
        }
    }
    /* a large permutation leaves few points in place */
    const dt_rng_key key = {.seed = 12};
    dt_permutation p;
    dt_permutation_init(&p, 10000, &key);
    int n_fixed = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        n_fixed += dt_permutation_at(&p, i) == i;
    }
    assert_true(n_fixed < 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_block_is_what_the_header_says),
        cmocka_unit_test(test_every_part_of_the_key_matters),
        cmocka_unit_test(test_uniform_and_normal_moments),
        cmocka_unit_test(test_permutation_is_one_to_one),
        cmocka_unit_test(test_permutations_differ_and_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
