/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/train/sampler.c: every sample once an epoch, another order each epoch, no state but the position; draws
 * by weight in their shares, the same in any order of asking; what is left of an epoch; what weights may be.
 */
#include <config.h>

#include "train/sampler.h"

#include "engine/backend/cpu/isa.h"
#include "base/err.h"
#include "train/order.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint64_t at(const dt_sampler *s, uint64_t seed, uint32_t phase, uint64_t epoch, uint64_t position)
{
    dt_sampler_epoch e;
    dt_sampler_begin_epoch(&e, s, seed, phase, epoch);
    return dt_sampler_sample_at(&e, position);
}

static uint64_t key_at(uint64_t seed, uint32_t phase, uint64_t epoch, uint64_t position)
{
    const dt_sampler s = {.count = 1000, .batch = 1};
    dt_sampler_epoch e;
    dt_sampler_begin_epoch(&e, &s, seed, phase, epoch);
    return dt_sampler_key(&e, position);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static void test_each_once(void **state)
{
    static const uint64_t n[] = {1, 2, 7, 64, 101, 1000};
    for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
        const dt_sampler s = {.count = n[i], .batch = 1};
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            uint8_t seen[1000] = {0};
            for (uint64_t p = 0; p < n[i]; p++) {
                const uint64_t k = at(&s, 3, 0, epoch, p);
                assert_true(k < n[i]);
                assert_int_equal(seen[k]++, 0);
            }
        }
    }
}

static uint64_t differing(uint64_t seed, uint32_t phase, uint64_t epoch)
{
    const dt_sampler s = {.count = 500, .batch = 1};
    uint64_t n = 0;
    for (uint64_t p = 0; p < s.count; p++) {
        n += at(&s, 1, 0, 4, p) != at(&s, seed, phase, epoch, p);
    }
    return n;
}

static void test_orders_differ(void **state)
{
    assert_int_equal(differing(1, 0, 4), 0);
    assert_true(differing(1, 0, 5) > 400);
    assert_true(differing(2, 0, 4) > 400);
    assert_true(differing(1, 1, 4) > 400);
}

static void test_keys(void **state)
{
    enum { EPOCHS = 3, POSITIONS = 200 };
    uint64_t key[EPOCHS * POSITIONS];
    for (uint64_t i = 0; i < EPOCHS * POSITIONS; i++) {
        key[i] = key_at(1, 0, i / POSITIONS, i % POSITIONS);
        assert_true(key[i] != 0);
        for (uint64_t j = 0; j < i; j++) {
            assert_true(key[i] != key[j]);
        }
    }
    assert_true(key_at(2, 0, 0, 0) != key[0]);
    assert_true(key_at(1, 1, 0, 0) != key[0]);
    assert_true(key_at(1, 0, 0, 0) == key[0]);
}

static void test_sequential(void **state)
{
    const dt_sampler s = {.count = 37, .batch = 5, .kind = DT_SAMPLING_SEQUENTIAL};
    for (uint64_t p = 0; p < s.count; p++) {
        assert_int_equal(at(&s, 5, 1, p, p), p);
    }
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static void test_batches(void **state)
{
    const dt_sampler whole = {.count = 23, .batch = 5, .drop_last = true}, all = {.count = 23, .batch = 5};
    const dt_sampler even = {.count = 20, .batch = 5};
    assert_int_equal(dt_sampler_steps(&whole), 4);
    assert_int_equal(dt_sampler_steps(&all), 5);
    assert_int_equal(dt_sampler_steps(&even), 4);
    for (uint64_t step = 0; step < 20; step++) {
        assert_int_equal(dt_sampler_batch(&whole, step), 5);
        assert_int_equal(dt_sampler_batch(&even, step), 5);
        assert_int_equal(dt_sampler_batch(&all, step), step % 5 == 4 ? 3 : 5);
    }
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static dt_status give(void *self, double *out, uint64_t n)
{
    memcpy(out, self, n * sizeof(*out));
    return DT_OK;
}

static const dt_data_ops with_weights = {.struct_size = sizeof(dt_data_ops), .weights = give}, without;

static dt_status init(dt_sampler *s, double *weight, uint64_t n)
{
    const dt_samples source = {.ops = &with_weights, .self = weight, .count = n};
    return dt_sampler_init(s, &source, 2, DT_SAMPLING_WEIGHTED, true);
}

/* Shares of many draws are those of the weights within four standard errors; what has weight 0 never comes. */
static void test_weighted(void **state)
{
    enum { N = 6, DRAWS = 60000 };
    double weight[N] = {0, 1, 0, 4, 5, 0};
    uint32_t seen[N] = {0};
    dt_sampler s;
    assert_int_equal(init(&s, weight, N), DT_OK);
    for (uint64_t k = 0; k < DRAWS; k++) {
        seen[at(&s, 1, 0, k / N, k % N)]++;
    }
    for (uint32_t i = 0; i < N; i++) {
        const double p = weight[i] / 10, error = sqrt(p * (1 - p) * DRAWS);
        assert_true(fabs(seen[i] - p * DRAWS) <= 4 * error);
    }
    assert_int_equal(at(&s, 1, 0, 7, 3), at(&s, 1, 0, 7, 3));
    dt_sampler_fini(&s);
}

/* A draw is the first sample whose running sum is above u of the whole, u of 53 bits: at its very place. */
static void test_place_of_a_draw(void **state)
{
    double weight[2] = {0.5, 0.5};
    dt_sampler s;
    dt_sampler_epoch e;
    assert_int_equal(init(&s, weight, 2), DT_OK);
    for (uint64_t position = 0; position < 16; position++) {
        uint32_t r[4];
        dt_sampler_begin_epoch(&e, &s, 9, 2, 5);
        dt_rng_stream_block(&e.draw, position, 0, r);
        const double u = ldexp((double)r[0], -32) + ldexp((double)(r[1] >> 11), -53);
        for (int i = -1; i <= 1; i++) { /* sums of multiples of 2^-53 up to 1 are exact */
            s.sum[0] = u + i * 0x1p-53;
            s.sum[1] = 1;
            assert_int_equal(dt_sampler_sample_at(&e, position), i > 0 ? 0 : 1);
            s.sum[0] *= 8;
            s.sum[1] *= 8;
            assert_int_equal(dt_sampler_sample_at(&e, position), i > 0 ? 0 : 1);
        }
    }
    dt_sampler_fini(&s);
    double many[11], sum = 0;
    for (int i = 0; i < 11; i++) {
        many[i] = i % 3 == 0 ? 0 : i;
    }
    assert_int_equal(init(&s, many, 11), DT_OK);
    dt_sampler_begin_epoch(&e, &s, 9, 2, 5);
    for (uint64_t position = 0; position < 200; position++) {
        uint32_t r[4];
        uint64_t k = 0;
        dt_rng_stream_block(&e.draw, position, 0, r);
        const double u = (ldexp((double)r[0], -32) + ldexp((double)(r[1] >> 11), -53)) * (1 + 2 + 4 + 5 + 7 + 8 + 10);
        for (sum = many[0]; sum <= u; sum += many[k]) {
            k++;
        }
        assert_int_equal(dt_sampler_sample_at(&e, position), k);
    }
    dt_sampler_fini(&s);
}

static void refuses(const dt_data_ops *ops, double first, double second, dt_status st, const char *text)
{
    double weight[2] = {first, second};
    const dt_samples source = {.ops = ops, .self = weight, .count = 2};
    dt_sampler s;
    assert_int_equal(dt_sampler_init(&s, &source, 1, DT_SAMPLING_WEIGHTED, true), st);
    if (strstr(dt_error_text(), text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, dt_error_text());
    }
    dt_sampler_fini(&s);
}

static void test_refusals(void **state)
{
    refuses(&without, 1, 1, DT_ECONFIG, "has no weights");
    refuses(&with_weights, 1, -1, DT_EPLUGIN, "sample 1 the weight -1");
    refuses(&with_weights, NAN, 1, DT_EPLUGIN, "sample 0 the weight");
    refuses(&with_weights, 0, 0, DT_EPLUGIN, "add up to 0");
    refuses(&with_weights, 1e308, 1e308, DT_EPLUGIN, "add up to inf");
}

/* several at a time as one by one, from any position on, of any length, in every build */
static void test_many_at_once(void **state)
{
    static const uint64_t sizes[] = {1, 2, 5, 16, 17, 63, 1600, 4097, (UINT64_C(1) << 62) - 3};
    dt_order_run *const run[] = {
        dt_order_run_base,
#ifdef DT_HAVE_CPU_AVX2
        dt_order_run_avx2,
#endif
#ifdef DT_HAVE_CPU_AVX512
        dt_order_run_avx512,
#endif
    };
    uint64_t index[200];
    for (size_t isa = 0; isa < sizeof(run) / sizeof(run[0]) && isa <= dt_cpu_isa_best(); isa++) {
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            const dt_rng_key key = {.seed = 7, .step = k};
            dt_permutation p;
            dt_permutation_init(&p, sizes[k], &key);
            for (uint64_t n = 0; n <= 200 && n <= sizes[k]; n += n < 70 ? 1 : 13) {
                const uint64_t first = (sizes[k] - n) / 3;
                run[isa](&p, first, n, index);
                for (uint64_t i = 0; i < n; i++) {
                    assert_int_equal(index[i], dt_permutation_at(&p, first + i));
                }
            }
        }
    }
}

/* ---- a stream ---------------------------------------------------------------------------------------------------- */

static dt_status no_turn(void *self, uint64_t window)
{
    return DT_OK;
}

static void test_windows(void **state)
{
    enum { WINDOW = 60 };
    const dt_data_ops none = {.struct_size = sizeof(none)};
    const dt_samples source = {.ops = &none, .count = WINDOW, .turn = no_turn};
    const dt_sampling kinds[] = {DT_SAMPLING_SHUFFLED, DT_SAMPLING_SEQUENTIAL};
    dt_sampler s;
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(dt_sampler_init(&s, &source, 20, kinds[k], true), DT_OK);
        assert_int_equal(dt_sampler_steps(&s), 3);
        for (uint64_t window = 0; window < 4; window++) {
            uint64_t many[WINDOW], is_moved = 0;
            uint8_t seen[WINDOW] = {0};
            dt_sampler_epoch e;
            dt_sampler_begin_epoch(&e, &s, 5, 0, window);
            dt_sampler_list_samples(&e, 0, WINDOW, many);
            for (uint64_t p = 0; p < WINDOW; p++) {
                assert_int_equal(many[p], dt_sampler_sample_at(&e, p));
                assert_in_range(many[p], window * WINDOW, window * WINDOW + WINDOW - 1);
                assert_int_equal(seen[many[p] % WINDOW]++, 0);
                is_moved += many[p] != window * WINDOW + p;
            }
            assert_int_equal(is_moved > 0, kinds[k] == DT_SAMPLING_SHUFFLED);
        }
        dt_sampler_fini(&s);
    }
    assert_int_equal(dt_sampler_init(&s, &source, 20, DT_SAMPLING_WEIGHTED, true), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "data.stream"));
    dt_sampler_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_once),
        cmocka_unit_test(test_orders_differ),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_sequential),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_weighted),
        cmocka_unit_test(test_place_of_a_draw),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
