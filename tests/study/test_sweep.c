/* SPDX-License-Identifier: Apache-2.0
 *
 * Sobol points against those of SciPy 1.x (qmc.Sobol, same direction numbers), values of parameters, the schedule of
 * successive halving in several orders of results, and files that are rejected.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "study/asha.h"
#include "study/pbt.h"
#include "study/sobol.h"
#include "study/sweep_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_sobol(void **state)
{
    static const uint32_t index[] = {1, 2, 3, 5, 17, 63};
    static const int points[][DT_SOBOL_DIMENSIONS] = {
        /* of 64 */
        {32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32},
        {48, 16, 16, 16, 48, 48, 16, 48, 48, 48, 48, 48, 16, 16, 48, 16, 48, 16, 48, 16, 16},
        {16, 48, 48, 48, 16, 16, 48, 16, 16, 16, 16, 16, 48, 48, 16, 48, 16, 48, 16, 48, 48},
        {56, 56, 8, 24, 56, 40, 56, 24, 24, 8, 24, 56, 56, 8, 56, 24, 56, 24, 24, 40, 40},
        {38, 62, 62, 10, 50, 30, 2, 22, 62, 42, 38, 58, 10, 10, 54, 34, 18, 6, 18, 34, 14},
        {1, 51, 23, 29, 55, 9, 37, 9, 53, 37, 27, 43, 35, 49, 21, 49, 5, 25, 61, 15, 15}};
    for (size_t i = 0; i < sizeof(index) / sizeof(index[0]); i++) {
        for (uint32_t k = 0; k < DT_SOBOL_DIMENSIONS; k++) {
            assert_int_equal((int)(dt_sobol_point(index[i], k, 0) * 64), points[i][k]);
        }
    }
    assert_true(dt_sobol_point(0, 3, 0) == 0 && dt_sobol_point(0, 3, UINT32_C(1) << 31) == 0.5);
}

static const char *value_at(const dt_parameter *p, double u)
{
    static char text[64];
    dt_str s = {0};
    dt_parameter_append_value(p, u, &s);
    snprintf(text, sizeof(text), "%s", dt_str_text(&s));
    dt_str_fini(&s);
    return text;
}

static void test_values(void **state)
{
    const dt_parameter linear = {.min = -1, .max = 1}, log = {.min = 1e-4, .max = 1, .is_log = true},
                       whole = {.min = 1, .max = 4, .is_integer = true},
                       words = {.value = {"a", "b", "c"}, .n_values = 3};
    assert_string_equal(value_at(&linear, 0.75), "0.5");
    assert_string_equal(value_at(&log, 0.5), "0.01");
    assert_string_equal(value_at(&log, 0), "0.0001");
    assert_string_equal(value_at(&whole, 0), "1");
    assert_string_equal(value_at(&whole, 0.26), "2"); /* each of four has a quarter */
    assert_string_equal(value_at(&whole, 0.9999), "4");
    assert_string_equal(value_at(&words, 0.34), "b");
    assert_string_equal(value_at(&words, 0.9999999999), "c");

    const dt_space grid = {.parameter = {words, {.min = 1, .max = 100, .is_log = true, .points = 3}}, .n = 2};
    static const char *const wanted[] = {"a 1", "a 10", "a 100", "b 1", "b 10", "b 100", "c 1", "c 10", "c 100"};
    assert_int_equal(dt_space_count_grid(&grid), 9);
    for (uint32_t t = 0; t < 9; t++) {
        dt_str s = {0};
        dt_space_append_value(&grid, DT_SEARCH_GRID, 1, t, 0, &s);
        dt_str_add(&s, " ");
        dt_space_append_value(&grid, DT_SEARCH_GRID, 1, t, 1, &s);
        assert_string_equal(dt_str_text(&s), wanted[t]);
        dt_str_fini(&s);
    }
}

/* ---- the schedule ------------------------------------------------------------------------------------------------ */

enum { TRIALS = 27, MOST = 128 };

static double result_of(uint32_t trial, uint32_t rung)
{
    return trial == 13 ? (double)NAN : (double)((trial * 7 + rung * 5) % TRIALS); /* one fails */
}

/* All decisions as "trial.rung " with at most `parallel` trainings, of which the `pick`-th of the running ones ends. */
static void run_schedule(uint32_t window, uint32_t parallel, uint32_t pick, dt_str *out)
{
    dt_asha s;
    uint32_t running[MOST], n = 0;
    assert_int_equal(dt_asha_init(&s, TRIALS, 3, 3, window), DT_OK);
    while (true) {
        dt_status st = DT_AGAIN;
        uint32_t job = 0;
        while (n < parallel && (st = dt_asha_next(&s, &job)) == DT_OK) {
            running[n++] = job;
            dt_str_addf(out, "%u.%u ", s.job[job].trial, s.job[job].rung);
        }
        if (n == 0) {
            assert_int_equal(st, DT_DONE);
            break;
        }
        const uint32_t k = pick % n, ended = running[k];
        running[k] = running[--n];
        dt_asha_set_result(&s, ended, result_of(s.job[ended].trial, s.job[ended].rung));
    }
    dt_asha_fini(&s);
}

static uint32_t count_of(const char *text, const char *word)
{
    uint32_t n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++) {
        n++;
    }
    return n;
}

static void test_schedule(void **state)
{
    dt_str one = {0}, other = {0};
    run_schedule(4, 1, 0, &one);
    const char *text = dt_str_text(&one);
    assert_int_equal(count_of(text, ".0 "), TRIALS);
    assert_in_range(count_of(text, ".1 "), 9, 13); /* a third, and those that were the best of few */
    assert_in_range(count_of(text, ".2 "), 3, 6);
    assert_null(strstr(text, " 13.1"));
    for (uint32_t parallel = 1; parallel <= 8; parallel++) {
        for (uint32_t pick = 0; pick < 5; pick++) {
            dt_str_clear(&other);
            run_schedule(4, parallel, pick, &other);
            assert_string_equal(dt_str_text(&other), text);
        }
    }
    dt_str_clear(&other);
    run_schedule(64, 8, 3, &other); /* a window of more than all trials begins them all first */
    assert_int_equal(count_of(dt_str_text(&other), ".0 "), TRIALS);
    assert_true(strstr(dt_str_text(&other), ".1 ") > strstr(dt_str_text(&other), "26.0 "));
    dt_str_fini(&one);
    dt_str_fini(&other);
}

/* ---- populations ------------------------------------------------------------------------------------------------- */

/* Sources and values of all jobs, with results that come in another order. */
static void run_population(const dt_space *space, bool is_reverse, dt_str *out)
{
    enum { N = 8, GENERATIONS = 4 };
    const dt_pbt_desc d = {
        .space = space, .n = N, .n_generations = GENERATIONS, .seed = 5, .truncation = 0.25, .resample = 0.25};
    dt_pbt p;
    uint32_t job = 0;
    assert_int_equal(dt_pbt_init(&p, &d), DT_OK);
    for (uint32_t g = 0; g < GENERATIONS; g++) {
        for (uint32_t i = 0; i < N; i++) {
            assert_int_equal(dt_pbt_next(&p, &job), DT_OK);
            assert_int_equal(job, g * N + i);
            dt_str_addf(out, "%u:%s,%s ", p.member[job].from, dt_pbt_value(&p, job, 0), dt_pbt_value(&p, job, 1));
        }
        for (uint32_t i = 0; i < N; i++) {
            const uint32_t m = is_reverse ? N - 1 - i : i;
            assert_int_equal(dt_pbt_next(&p, &job), g + 1 < GENERATIONS ? DT_AGAIN : DT_DONE);
            dt_pbt_set_result(&p, g * N + m, m == 3 && g == 1 ? (double)NAN : (double)((m * 3 + g) % N));
        }
    }
    /* generation 1: of 0, 3, 6, 1, 4, 7, 2, 5 the worst two are members 0 and 3, the best two 5 and 2 */
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t from = p.member[N + i].from;
        assert_true(i == 0 || i == 3 ? from == 5 || from == 2 : from == i);
    }
    assert_true(p.member[2 * N + 3].from != 3); /* it failed */
    assert_int_equal(dt_pbt_next(&p, &job), DT_DONE);
    dt_pbt_fini(&p);
}

static void test_population(void **state)
{
    static const dt_space space = {
        .parameter = {{.min = 1e-4, .max = 1, .is_log = true}, {.value = {"a", "b", "c"}, .n_values = 3}}, .n = 2};
    dt_str one = {0}, other = {0};
    run_population(&space, false, &one);
    run_population(&space, true, &other);
    assert_string_equal(dt_str_text(&one), dt_str_text(&other));
    dt_str_fini(&one);
    dt_str_fini(&other);
    static const dt_parameter whole = {.min = 1, .max = 4, .is_integer = true}, wide = {.min = -1, .max = 1},
                              words = {.value = {"a", "b"}, .n_values = 2}, range = {.min = 1, .max = 10};
    static const struct {
        const dt_parameter *of;
        const char *text;
        bool is_less;
        const char *wanted;
    } cases[] = {{&whole, "2", false, "3"}, {&whole, "1", true, "1"}, {&wide, "0", true, "-0.4"},
                 {&words, "a", false, "b"}, {&words, "a", true, "a"}, {&range, "5", true, "4"},
                 {&range, "9", false, "10"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dt_str s = {0};
        dt_parameter_append_perturbed(cases[i].of, cases[i].text, cases[i].is_less, &s);
        assert_string_equal(dt_str_text(&s), cases[i].wanted);
        dt_str_fini(&s);
    }
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static dt_status read_text(const char *text, dt_sweep *out)
{
    char path[] = "/tmp/dtrain-sweep-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    const dt_status st = dt_sweep_read(path, out);
    unlink(path);
    return st;
}

#define HEAD "arguments = [ \"--plugin\", \"x\" ];\nmetric = \"m\"; goal = \"min\";\n"
#define ONE  "parameters = ( { key = \"a.b\"; min = 1; max = 2; } );\n"

static void test_file(void **state)
{
    static dt_sweep s;
    assert_int_equal(
        read_text(HEAD ONE "search = \"asha\"; trials = 5; seeds = \"1..3\"; min_steps = 10; steps = 100;", &s), DT_OK);
    assert_true(s.is_min && s.trials == 5 && s.n_seeds == 3 && s.search == DT_SEARCH_ASHA && s.eta == 3);
    assert_int_equal(s.n_rungs, 4);
    assert_true(s.rung_steps[0] == 10 && s.rung_steps[1] == 30 && s.rung_steps[2] == 90 && s.rung_steps[3] == 100);
    assert_string_equal(s.space.parameter[0].key, "a.b");
    dt_sweep_fini(&s);
    static const char *const bad[][2] = {
        {HEAD ONE, "trials"},
        {HEAD ONE "trials = 0;", ":4:"},
        {HEAD ONE "trials = 10001;", "10000"},
        {HEAD ONE "trails = 5;", "\"trials\""},
        {HEAD "trials = 5;", "parameters"},
        {ONE "trials = 5; metric = \"m\"; goal = \"min\";", "arguments"},
        {"arguments = [ \"x\" ]; trials = 5;" ONE, "metric"},
        {HEAD ONE "trials = 5; search = \"bayes\";", "sobol"},
        {HEAD ONE "trials = 5; seeds = \"2..1\";", "2..1"},
        {HEAD ONE "trials = 5; eta = 3;", "asha"},
        {HEAD ONE "trials = 5; search = \"asha\"; steps = 5; min_steps = 6;", "min_steps"},
        {HEAD ONE "trials = 5; interval = 3;", "pbt"},
        {HEAD ONE "trials = 5; search = \"pbt\"; steps = 5;", "interval"},
        {HEAD ONE "trials = 1; search = \"pbt\"; steps = 5; interval = 5;", "at least 2"},
        {HEAD ONE "trials = 5; search = \"pbt\"; steps = 500; interval = 1;", "interval = 1"},
        {HEAD ONE "trials = 5; search = \"pbt\"; steps = 5; interval = 5; truncation = 0.6;", "truncation"},
        {HEAD ONE "trials = 5; search = \"pbt\"; steps = 5; interval = 5; resample = -1;", "resample"},
        {HEAD ONE "trials = 5; search = \"pbt\"; steps = 5; interval = 5; eta = 3;", "asha"},
        {HEAD ONE "search = \"grid\";", "points"},
        {HEAD "trials = 5; parameters = ( { key = \"a\"; min = 2; max = 2; } );", "empty"},
        {HEAD "trials = 5; parameters = ( { key = \"a\"; min = 0; max = 2; log = true; } );", "above 0"},
        {HEAD "trials = 5; parameters = ( { key = \"a\"; min = 0.5; max = 2; integer = true; } );", "integer"},
        {HEAD "trials = 5; parameters = ( { key = \"a\"; min = 1; } );", "min and max"},
        {HEAD "trials = 5; parameters = ( { key = \"a\"; mix = 1; } );", "\"min\""},
        {HEAD "trials = 5; parameters = ( { key = \"a\"; values = [ ]; } );", "empty"},
        {HEAD "trials = 5; parameters = ( { key = \"a\"; values = [ 1 ]; }, { key = \"a\"; values = [ 1 ]; } );",
         "already"},
        {HEAD "trials = 3; search = \"grid\"; parameters = ( { key = \"a\"; values = [ 1, 2, 3, 4 ]; } );",
         "more than"},
        {HEAD "trials = 5; parameters = ( { key = \"a\"; min = 1; max = 2; log = 1; } );", "true or false"},
        {HEAD "trials = 5; parameters = ( { key = \"a\"; values = [ 8, 4, 8 ]; } );", "twice"},
        {HEAD "trials = 3; search = ;", ":3:"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_text(bad[i][0], &s), DT_ECONFIG);
        if (strstr(dt_error_text(), bad[i][1]) == NULL) {
            fail_msg("no %s in: %s", bad[i][1], dt_error_text());
        }
        dt_error_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sobol),      cmocka_unit_test(test_values), cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_population), cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
