/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits as text, the cost that is the furthest above its limit and by how much per row, and rounds in a row above a
 * limit: numbers by hand.
 */
#include "mock/mock.h"
#include "../../phases/constraints/limits.h"

#include "unit.h"

enum { N = 4 };

static void near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-12);
}

/* Limits 10, 2, 1 and one that is not set; half of each is the aim. */
static const limits three = {.has = {1, 1, 1, 0}, .at = {10, 2, 1, 0}};

static void test_text(void **state)
{
    static const char *const costs[] = {"a", "ab", "b"};
    static const dt_env_spec spec = {.n_costs = 3, .costs = costs};
    static const dt_wiring w = {.spec = &spec, .env_id = "e"};
    static const struct {
        const char *text;
        const char *named; /* by the message; NULL: accepted */
        uint8_t has[3];
        double at[3];
    } row[] = {{"ab:0.5", NULL, {0, 1, 0}, {0, 0.5, 0}},
               {" b:0,a:1e3 ", NULL, {1, 0, 1}, {1000, 0, 0}},
               {"a:-1", "a:-1", {0}, {0}},
               {"a:nan", "a:nan", {0}, {0}},
               {"a:inf", "a:inf", {0}, {0}},
               {"a:1x", "a:1x", {0}, {0}},
               {"a:", "a:", {0}, {0}},
               {"a", "a", {0}, {0}},
               {"b:1,c:2", "c:2", {0}, {0}},
               {"a:1,ab:2,a:3", "a:3", {0}, {0}},
               {" , ", " , ", {0}, {0}},
               {"a:00000000000000000000000000000000000000000000000000000000000000001", "a:000", {0}, {0}}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        mock_host h;
        limits l = {.has = {0}};
        mock_host_init(&h);
        assert_int_equal(limits_parse(&l, &h.host, "p", &w, row[i].text), row[i].named == NULL ? DT_OK : DT_ECONFIG);
        if (row[i].named != NULL) {
            assert_non_null(strstr(h.message, "p.limits"));
            assert_non_null(strstr(h.message, row[i].named));
            continue;
        }
        assert_memory_equal(l.has, row[i].has, sizeof(row[i].has));
        assert_memory_equal(l.at, row[i].at, sizeof(row[i].at));
    }
}

static void test_excess(void **state)
{
    double excess[N];
    /* above by 3 of 8, by 3 of 4, by 0.5 of 1: the second is the worst share, though the first is as far above */
    assert_int_equal(limits_worst_excess(&three, N, 0.5, (const double[]){8, 4, 1, 1e9}, 20, excess), 1);
    near(excess[0], 3.0 / 20);
    near(excess[1], 3.0 / 20);
    near(excess[2], 0.5 / 20);
    assert_true(isnan(excess[3])); /* without a limit it is none, however large */
    /* below all limits: the share is of the limit then; by 4 of 5, by 0.1 of 1, by 0.4 of 0.5 */
    assert_int_equal(limits_worst_excess(&three, N, 0.5, (const double[]){1, 0.9, 0.1, 0}, 4, excess), 1);
    near(excess[0], -1);
    near(excess[1], -0.025);
    near(excess[2], -0.1);
    /* equal shares: the first; all of the limit is the aim */
    assert_int_equal(limits_worst_excess(&three, N, 1, (const double[]){20, 4, 2, 0}, 1, excess), 0);
    near(excess[0], 10);
    /* the last one may be the worst */
    assert_int_equal(limits_worst_excess(&three, N, 1, (const double[]){20, 4, 30, 0}, 1, excess), 2);
}

static void test_without_episodes(void **state)
{
    double excess[N];
    const limits none = {.has = {0}};
    assert_int_equal(limits_worst_excess(&three, N, 1, (const double[]){20, 4, 2, 0}, 0, excess), -1);
    for (int k = 0; k < N; k++) {
        assert_true(isnan(excess[k]));
    }
    assert_int_equal(limits_worst_excess(&none, N, 1, (const double[]){20, 4, 2, 0}, 1, excess), -1);
    /* a limit of 0 that is kept */
    const limits zero = {.has = {1}, .at = {0}};
    assert_int_equal(limits_worst_excess(&zero, 1, 1, (const double[]){0}, 1, excess), 0);
    near(excess[0], 0);
    /* one of 0 that is not kept is all above: 1, and not the third of the other */
    const limits first_zero = {.has = {1, 1}, .at = {0, 2}};
    assert_int_equal(limits_worst_excess(&first_zero, 2, 1, (const double[]){0.5, 3}, 1, excess), 0);
}

static void test_rounds(void **state)
{
    uint64_t rounds = 0;
    const double cost[] = {2, 1, 1.5, 3, 4, 1};
    const uint64_t expected[] = {1, 0, 1, 2, 3, 0}; /* at the limit is not above it */
    for (int i = 0; i < 6; i++) {
        rounds = limits_count_rounds(rounds, cost[i], 1);
        assert_int_equal(rounds, expected[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_excess),
                                       cmocka_unit_test(test_without_episodes), cmocka_unit_test(test_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
