/* SPDX-License-Identifier: Apache-2.0
 *
 * How gradients of ranks become one, in each mode: which bits depend on what, and how many bytes are sent for it.
 */
#include <config.h>

#include "outcome.h"

#include "collective/tree_sum.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 8, CUT = 3, MOST = 8 };

/* Several buckets of several slices each. */
static void large(toy *t)
{
    t->hidden = 1200;
    t->config.bucket_bytes = (uint64_t)5 * DT_SLICE_UNIT * sizeof(float);
}

static void fast(toy *t)
{
    large(t);
    t->config.fast_sums = true;
}

static void drop_all(outcome *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        outcome_drop(&o[i]);
    }
}

/* ---- fast -------------------------------------------------------------------------------------------------------- */

static void test_fast_sums_of_one_rank_are_exact(void **state)
{
    (void)state;
    outcome exact, one;
    outcome_train(large, STEPS, &exact);
    outcome_train(fast, STEPS, &one);
    outcome_same(&exact, &one);
    outcome_drop(&exact);
    outcome_drop(&one);
}

/* A sum of 8 leaves in another order is off by at most 7 * 2^-24 of the leaves' magnitudes. An update of AdamW is at
 * most about the rate, 2e-2, and follows the gradient's relative error: where leaves cancel to a hundredth, that is
 * 100 * 7 * 2^-24 * 2e-2 = 8e-7 a step. */
static void check_near(const outcome *got, const outcome *want)
{
    const size_t n = want->bytes / sizeof(float);
    for (size_t i = 0; i < n; i++) {
        const double off = fabs((double)got->state[0][i] - (double)want->state[0][i]);
        if (!(off <= STEPS * 8e-7)) {
            fail_msg("parameter %zu is %.9g, and %.9g of exact sums", i, (double)got->state[0][i],
                     (double)want->state[0][i]);
        }
    }
}

static void test_fast_sums_are_near_and_repeat(void **state)
{
    (void)state;
    outcome exact, first[MOST], second[MOST], half[MOST], resumed[MOST];
    outcome_train(large, STEPS, &exact);
    for (uint32_t ranks = 2; ranks <= 3; ranks++) {
        outcome_of_ranks(fast, NULL, 0, STEPS, ranks, first);
        outcome_of_ranks(fast, NULL, 0, STEPS, ranks, second);
        outcome_of_ranks(fast, NULL, 0, CUT, ranks, half);
        outcome_of_ranks(fast, half, CUT, STEPS, ranks, resumed);
        for (uint32_t r = 0; r < ranks; r++) {
            check_near(&first[r], &exact);
            outcome_same(&first[0], &first[r]);
            outcome_same(&first[0], &second[r]);
            outcome_same(&first[0], &resumed[r]);
        }
        if (ranks == 3) { /* else fast would be exact, and this would prove nothing */
            assert_memory_not_equal(first[0].state[0], exact.state[0], exact.bytes);
        }
        drop_all(first, ranks);
        drop_all(second, ranks);
        drop_all(half, ranks);
        drop_all(resumed, ranks);
    }
    outcome_drop(&exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_sums_of_one_rank_are_exact),
        cmocka_unit_test(test_fast_sums_are_near_and_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
