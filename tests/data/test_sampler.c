/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/data/sampler.c: every sample once an epoch, another order each epoch, no state but the position.
 */
#include "fixture.h"

#include "data/sampler.h"

static void test_each_once(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 7, 64, 101, 1000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        dt_sampler s = {.n = sizes[i], .batch = 1, .seed = 3};
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            uint8_t seen[1000] = {0};
            for (uint64_t p = 0; p < s.n; p++) {
                uint64_t k = dt_sampler_index(&s, epoch, p);
                assert_true(k < s.n);
                assert_int_equal(seen[k]++, 0);
            }
        }
    }
}

static uint64_t differing(const dt_sampler *a, uint64_t ea, const dt_sampler *b, uint64_t eb)
{
    uint64_t n = 0;
    for (uint64_t p = 0; p < a->n; p++) {
        n += dt_sampler_index(a, ea, p) != dt_sampler_index(b, eb, p);
    }
    return n;
}

static void test_orders_differ(void **state)
{
    (void)state;
    dt_sampler a = {.n = 500, .batch = 8, .seed = 1}, other_seed = a, other_phase = a, ordered = a;
    other_seed.seed = 2;
    other_phase.phase = 1;
    ordered.is_ordered = true;
    assert_int_equal(differing(&a, 4, &a, 4), 0);
    assert_true(differing(&a, 4, &a, 5) > 400);
    assert_true(differing(&a, 4, &other_seed, 4) > 400);
    assert_true(differing(&a, 4, &other_phase, 4) > 400);
    assert_true(differing(&a, 4, &ordered, 4) > 400);
    assert_int_equal(dt_sampler_index(&ordered, 9, 17), 17);
    a.batch = 64; /* the batch cuts the order, it does not change it */
    ordered = a;
    ordered.batch = 8;
    assert_int_equal(differing(&a, 4, &ordered, 4), 0);
}

static void test_tails(void **state)
{
    (void)state;
    dt_sampler s = {.n = 10, .batch = 4, .seed = 1, .tail = DT_TAIL_DROP};
    assert_int_equal(dt_sampler_batches(&s), 2);
    assert_int_equal(dt_sampler_positions(&s), 8);
    s.tail = DT_TAIL_SHORT;
    assert_int_equal(dt_sampler_batches(&s), 3);
    assert_int_equal(dt_sampler_positions(&s), 10);
    s.tail = DT_TAIL_PAD;
    assert_int_equal(dt_sampler_batches(&s), 3);
    assert_int_equal(dt_sampler_positions(&s), 12);
    assert_int_equal(dt_sampler_index(&s, 3, 11), dt_sampler_index(&s, 3, 1));
    s.n = 8;
    assert_int_equal(dt_sampler_positions(&s), 8);
}

static void test_keys(void **state)
{
    (void)state;
    dt_sampler s = {.n = 10, .batch = 4, .tail = DT_TAIL_PAD};
    uint64_t before = 0;
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint64_t p = 0; p < 12; p++) {
            uint64_t key = dt_sampler_key(&s, epoch, p);
            assert_true(key > before); /* all different, none 0 */
            before = key;
        }
    }
}

static void test_refusals(void **state)
{
    (void)state;
    dt_sampler s = {.n = 0, .batch = 4};
    assert_fails(dt_sampler_check(&s), DT_EINVAL, "0 samples");
    s = (dt_sampler){.n = 3, .batch = 4};
    assert_fails(dt_sampler_check(&s), DT_EINVAL, "3 samples are less than one batch of 4");
    s.tail = DT_TAIL_PAD;
    assert_ok(dt_sampler_check(&s));
    s.batch = 0;
    assert_fails(dt_sampler_check(&s), DT_EINVAL, "batches of 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_once), cmocka_unit_test(test_orders_differ), cmocka_unit_test(test_tails),
        cmocka_unit_test(test_keys),      cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
