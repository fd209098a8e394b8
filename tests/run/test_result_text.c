/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/run/result_text.c: the JSON object and the table that an evaluation ends with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "run/run.h"
#include "plugin/service/stage.h"

static void expect(const dt_result *r, uint32_t n, const char *json)
{
    static dt_stage stage;
    dt_str out = {0};
    for (uint32_t i = 0; i < n; i++) {
        stage.results.at[i] = r[i];
    }
    stage.results.n = n;
    dt_result_json(&stage, &out);
    assert_int_equal(dt_str_status(&out), DT_OK);
    dt_str flat = {0};
    for (const char *c = dt_str_text(&out); *c != '\0'; c++) {
        if (*c != ' ' && *c != '\n') {
            dt_str_addf(&flat, "%c", *c);
        }
    }
    assert_string_equal(dt_str_text(&flat), json);
    dt_str_fini(&flat);
    dt_str_fini(&out);
}

static void test_flat(void **state)
{
    double list[] = {1.5, 2}, one = 3, not = NAN;
    const dt_result r[] = {{.key = "rmse", .value = list, .n = 2, .is_list = true},
                           {.key = "samples", .value = &one, .n = 1},
                           {.key = "auroc", .value = &not, .n = 1}};
    expect(r, 3, "{\"rmse\":[1.5,2],\"samples\":3,\"auroc\":null}");
    expect(NULL, 0, "{}");
}

static void test_table(void **state)
{
    static dt_stage stage;
    double a = 194.25, b = 3.5, not = NAN, many = 123456, list[] = {7, 123456};
    const dt_result r[] = {{.key = "seeds", .value = list, .n = 2, .is_list = true},
                           {.key = "return/mean", .value = &a, .n = 1},
                           {.key = "return/std", .value = &b, .n = 1},
                           {.key = "return/values", .value = list, .n = 2, .is_list = true},
                           {.key = "rows", .value = &many, .n = 1},
                           {.key = "trip/mean", .value = &not, .n = 1},
                           {.key = "trip/std", .value = &not, .n = 1},
                           {.key = "odd/mean", .value = &a, .n = 1},
                           {.key = "oddity/std", .value = &b, .n = 1},
                           {.key = "one/mean", .value = &a, .n = 1},
                           {.key = "one/std", .value = &not, .n = 1}};
    dt_str out = {0};
    memcpy(stage.results.at, r, sizeof(r));
    stage.results.n = sizeof(r) / sizeof(r[0]);
    dt_result_text(&stage, &out);
    assert_string_equal(dt_str_text(&out), "  mean +- deviation over seeds 7, 123456\n"
                                           "  return                         194.2 +- 3.5\n"
                                           "  rows                          123456\n"
                                           "  odd/mean                       194.2\n"
                                           "  oddity/std                       3.5\n"
                                           "  one                            194.2\n");
    dt_str_fini(&out);
}

static const void *described(const char *id)
{
    static const char *const rows[] = {"trip|times|s|lower|of a vehicle", "sites/*/trip||s|lower|",
                                       "wide|times|||columns", "odd|||lower|", NULL};
    return strcmp(id, DT_EXT_RESULTS) == 0 ? rows : NULL;
}

static void test_explained(void **state)
{
    static dt_stage stage;
    static dt_loaded phase;
    double a = 194.25, b = 3.5, list[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const dt_result r[] = {{.key = "trip", .value = &a, .n = 1},
                           {.key = "return/mean", .value = &a, .n = 1},
                           {.key = "return/std", .value = &b, .n = 1},
                           {.key = "sites/0/trip", .value = &b, .n = 1},
                           {.key = "wide", .value = list, .n = 8, .is_list = true},
                           {.key = "odd", .value = &b, .n = 1}};
    dt_str out = {0};
    phase.desc.extension = described;
    stage.d.phase = &phase;
    memcpy(stage.results.at, r, sizeof(r));
    stage.results.n = sizeof(r) / sizeof(r[0]);
    dt_result_text_grouped(&stage, &out);
    assert_string_equal(
        dt_str_text(&out),
        "  return                     194.2 +- 3.5       higher is better: sum of rewards of an episode\n"
        "  odd                          3.5              lower is better\n"
        "\n  times\n"
        "    trip                       194.2            s, lower is better: of a vehicle\n"
        "    wide                           1         2         3         4         5         6         "
        "7         8\n"
        "        columns\n"
        "\n  sites/0\n"
        "    trip                         3.5            s, lower is better\n");
    dt_str_fini(&out);
}

static void test_words_of_a_key_nest(void **state)
{
    double a = 1, b = 0.5, list[] = {7};
    const dt_result r[] = {{.key = "return/mean", .value = &a, .n = 1},
                           {.key = "return/std", .value = &b, .n = 1},
                           {.key = "costs/crash/mean", .value = &a, .n = 1},
                           {.key = "costs/crash/std", .value = &b, .n = 1},
                           {.key = "costs/crashes/mean", .value = &a, .n = 1},
                           {.key = "cost", .value = &a, .n = 1},
                           {.key = "shield/seeds", .value = list, .n = 1, .is_list = true}};
    expect(
        r, 7,
        "{\"return\":{\"mean\":1,\"std\":0.5},\"costs\":{\"crash\":{\"mean\":1,\"std\":0.5},\"crashes\":{\"mean\":1}},"
        "\"cost\":1,\"shield\":{\"seeds\":[7]}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flat),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_explained),
        cmocka_unit_test(test_words_of_a_key_nest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
