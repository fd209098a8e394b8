/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/signals/formula.c: values, rows of several items, and what is rejected, where and with which advice.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "../../plugins/signals/formula.h"

static const float table[2][N_SIGNAL_COLUMNS] = {{[SIGNAL_COLUMN_NEAR] = 3, [SIGNAL_COLUMN_RED] = 20},
                                                 {[SIGNAL_COLUMN_NEAR] = 5, [SIGNAL_COLUMN_RED] = 8}};

static formula_values values(void)
{
    formula_values v = {.phases = table[0], .n_phases = 2};
    v.signal[SIGNAL_QUEUE] = 7;
    v.signal[SIGNAL_PRESSURE] = -4;
    v.signal[SIGNAL_WAITING] = 600;
    v.signal[SIGNAL_DIFF_WAITING] = 10;
    return v;
}

static void test_values(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"diff_waiting_s - 0.1*queue + 0.25*pressure", 10 - 0.1 * 7 + 0.25 * -4},
                 {" 1 + 2 * 3 - 8 / 4 / 2 ", 6},
                 {"(1+2)*3", 9},
                 {"--2 - -1", 3},
                 {"-queue*2", -14},
                 {"1e-1 + .5 + 2.", 2.6},
                 {"min(queue, 3, 5) + max(queue, 9)", 12},
                 {"abs(pressure)", 4},
                 {"clip(waiting_s, 0, 500)/500", 1},
                 {"clip(pressure, -1, 1)", -1},
                 {"queue / max(vehicles, 1)", 7},
                 {"queue / (1 + abs(pressure))", 1.4},
                 {"queue / (vehicles + 1)", 7},
                 {"-phase_max(phase.red_s)", -20},
                 {"phase_sum(phase.near)", 8},
                 {"phase_mean(2*phase.near - 1)", 7},
                 {"phase_min(phase.near * phase.red_s)", 40}};
    const formula_values v = values();
    mock_host h;
    mock_host_init(&h);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        formulas f;
        if (formulas_init(&f, &h.host, "reward", cases[i].text, false) != DT_OK) {
            fail_msg("%s: %s", cases[i].text, h.message);
        }
        assert_int_equal(f.n, 1);
        if (!(fabs(formula_value(&f, 0, &v, 0) - cases[i].value) < 1e-12)) {
            fail_msg("%s is %.17g, not %.17g", cases[i].text, formula_value(&f, 0, &v, 0), cases[i].value);
        }
        formulas_fini(&f);
    }
    assert_int_equal(h.n_live, 0);
}

static void test_rows(void **state)
{
    enum { P = 3 };
    const formula_values v = values();
    float row[2 * P + 2] = {0};
    static const float wanted[] = {7, 3, 5, 0, 1}; /* a third phase is not there */
    uint32_t bad = 99;
    mock_host h;
    formulas f;
    mock_host_init(&h);
    assert_int_equal(formulas_init(&f, &h.host, "obs",
                                   "queue, phase.near ,min(waiting_s,500)/500, phase.near*3/ "
                                   "(1 + 0.25*phase.red_s)",
                                   true),
                     DT_OK);
    assert_int_equal(f.n, 4);
    assert_int_equal(formulas_width(&f, P), 2 * P + 2);
    assert_true(formulas_row(&f, &v, P, row, &bad));
    for (int i = 0; i < 5; i++) {
        assert_true(row[i] == wanted[i]);
    }
    assert_true(row[5] == 1.5F && row[6] == 5 && row[7] == 0);
    assert_string_equal(f.item[1].text, "phase.near");
    assert_int_equal(f.item[1].quantity, SIGNAL_COLUMN_NEAR);
    assert_true(f.item[1].is_by_phase && !f.item[2].is_by_phase && f.item[2].quantity == -1);
    formulas_fini(&f);
    assert_int_equal(formulas_init(&f, &h.host, "obs", " \t ", true), DT_OK);
    assert_int_equal(f.n, 0);
    formulas_fini(&f);
    assert_int_equal(formulas_init(&f, &h.host, "obs", "1e9*waiting_s*1e9*waiting_s*1e9*1e9", true), DT_OK);
    assert_false(formulas_row(&f, &v, P, row, &bad));
    assert_int_equal(bad, 0);
    formulas_fini(&f);
    assert_int_equal(h.n_live, 0);
}

static void test_rejected(void **state)
{
    static const struct {
        const char *text, *said;
        bool is_list;
    } cases[] = {
        {"diff_wait - 0.1*queue", "character 1: \"diff_wait\" is not a quantity; did you mean diff_waiting_s", false},
        {"queue + phase.nea", "character 9: \"phase.nea\" is not a quantity; did you mean phase.near", false},
        {"queue + foo", "character 9: \"foo\" is not a quantity. Quantities of a signal: delay_s [vehicle s]", false},
        {"sqrt(queue)", "character 1: \"sqrt\" is not a function", false},
        {"queue / vehicles", "character 7: the divisor may be 0 (its range is 0 to inf); write max(..., 1)", false},
        {"1/pressure", "character 2: the divisor may be 0", false},
        {"1/(queue - queue)", "the divisor may be 0", false},
        {"1/0", "the divisor may be 0", false},
        {"1/abs(pressure)", "the divisor may be 0", false},
        {"1/phase_sum(phase.near)", "the divisor may be 0", false},
        {"1/clip(queue, 0, 3)", "the divisor may be 0", false},
        {"2 queue", "character 3: expected an operator", false},
        {"queue,", "character 6: expected an operator", false},
        {"queue,", "character 7: the formula ends", true},
        {"queue,,queue", "character 7: expected a number", true},
        {"(queue", "character 1: this ( has no )", false},
        {"queue)", "character 6: expected an operator", false},
        {"queue +", "character 8: the formula ends", false},
        {"* queue", "character 1: expected a number", false},
        {"queue ^ 2", "character 7: expected an operator", false},
        {"1.2.3", "\"1.2.3\" is not a number", false},
        {"12abc", "\"12a\" is not a number", false},
        {"1e", "\"1e\" is not a number", false},
        {"2e9", "the number 2e+09 is above 1e+09", false},
        {"nan", "\"nan\" is not a quantity", false},
        {"min(queue)", "min takes 2 or more arguments, not 1", false},
        {"abs(queue, 1)", "abs takes 1 argument, not 2", false},
        {"clip(queue, 1)", "clip takes 3 arguments, not 2", false},
        {"clip(queue, 5, 1)", "the lower bound of clip, 5, is above the upper one, 1", false},
        {"min(queue 2)", "expected , or ) after an argument of min", false},
        {"phase.near", "character 1: the formula has a value per phase", false},
        {"phase_max(queue)", "phase_max expects a quantity of a phase", false},
        {"queue\x1b[31m", "character 6: expected an operator", false}};
    mock_host h;
    mock_host_init(&h);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        formulas f;
        assert_int_equal(formulas_init(&f, &h.host, "key", cases[i].text, cases[i].is_list), DT_ECONFIG);
        if (strstr(h.message, cases[i].said) == NULL) {
            fail_msg("%s: %s", cases[i].text, h.message);
        }
        assert_true(f.n == 0 && f.text == NULL);
        assert_int_equal(h.n_live, 0);
    }
}

/* Text of any length and depth is read to its end or rejected. */
static void test_sizes(void **state)
{
    char text[2 * FORMULA_MOST_BYTES];
    static const char *const unit[] = {"(", "-", "abs(", "1+", "queue*", "phase_sum(", "min(1,", "queue,"};
    mock_host h;
    formulas f;
    mock_host_init(&h);
    for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
        for (size_t n = 1; n * strlen(unit[i]) < sizeof(text) - 2; n = n * 2 + 1) {
            text[0] = '\0';
            for (size_t k = 0; k < n; k++) {
                strcpy(text + k * strlen(unit[i]), unit[i]);
            }
            strcat(text, "1");
            if (formulas_init(&f, &h.host, "key", text, true) == DT_OK) {
                const formula_values v = values();
                assert_false(isnan(formula_value(&f, 0, &v, 0)));
            }
            formulas_fini(&f);
        }
    }
    for (int64_t n = 1; n <= 2; n++) {
        h.fail_alloc = n;
        assert_int_equal(formulas_init(&f, &h.host, "key", "queue", true), DT_ENOMEM);
    }
    h.fail_alloc = 0;
    assert_int_equal(h.n_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_rejected), cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests_name("formula", tests, NULL, NULL);
}
