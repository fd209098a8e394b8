/* SPDX-License-Identifier: Apache-2.0
 *
 * A spec that a worker sent: whole it is what it was, cut off or damaged anywhere it is refused, or is at least one
 * that can be looked at from end to end.
 */
#include <config.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "rl/env/layout.h"
#include "rl/env/process_spec.h"
#include "plugin/service/stage.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const dt_port obs[] = {{"state", "A 3", DT_F32, 0}, {"nodes", "N 2", DT_F32, 0}};
static const dt_dim symbols[] = {{"N", 9}};
static const int32_t choices[] = {3, 2};
static const float low[] = {-1}, high[] = {1};
static const char *const costs[] = {"hits"}, *const metrics[] = {"score", "delay"};
static const dt_column columns[] = {
    {"state", "pace", "m/s", "how fast it is", 0, 30, 0, 1, 1, 0},
    {"state", "way", "m", "ways to both sides", -1, 1, 1, 2, 1, 0},
    {"nodes", "x", "m", "where", -9, 9, 0, 2, 1, 0},
};
static const char *const places[] = {"north", "", "south", "east"};
static const char *const shown[20] = {"GGr", "rrG", "", "low", "high", "GGr", "rrG", "", "low", "high",
                                      "GGr", "rrG", "", "low", "high", "GGr", "rrG", "", "low", "high"};
static const dt_env_spec given = {.struct_size = sizeof(given),
                                  .n_agents = 4,
                                  .obs = obs,
                                  .symbols = symbols,
                                  .choices = choices,
                                  .low = low,
                                  .high = high,
                                  .costs = costs,
                                  .metrics = metrics,
                                  .n_obs = 2,
                                  .n_symbols = 1,
                                  .n_heads = 2,
                                  .n_continuous = 1,
                                  .n_costs = 1,
                                  .n_metrics = 2,
                                  .max_steps = 77,
                                  .columns = columns,
                                  .n_columns = 3,
                                  .places = places,
                                  .choices_shown = shown};

/* The bytes end where their block ends, so that a reader that goes on is seen by sanitizers. */
static dt_status read_spec(const char *bytes, size_t n)
{
    char *own = malloc(n > 0 ? n : 1);
    dt_env_spec spec;
    dt_layout l;
    void *memory = NULL;
    memcpy(own, bytes, n);
    dt_status st = dt_spec_read(own, n, &spec, &memory);
    if (st == DT_OK) {
        st = dt_layout_init(&l, "it", &spec); /* reads all of it */
        dt_layout_fini(&l);
    }
    dt_free(memory);
    free(own);
    return st;
}

static void test_whole(void **state)
{
    dt_str out = {0};
    dt_layout l;
    dt_env_spec spec;
    void *memory = NULL;
    assert_int_equal(dt_spec_write(&given, &out), DT_OK);
    assert_int_equal(dt_spec_read(dt_str_text(&out), out.bytes, &spec, &memory), DT_OK);
    assert_int_equal(dt_layout_init(&l, "it", &given), DT_OK);
    assert_int_equal(dt_layout_compare(&l, &spec), DT_OK);
    assert_int_equal(spec.max_steps, 77);
    assert_string_equal(spec.metrics[1], "delay");
    assert_string_equal(spec.columns[1].name, "way");
    assert_string_equal(l.spec.columns[2].meaning, "where");
    assert_true(spec.columns[1].low == -1 && spec.columns[1].n == 2 && l.spec.columns[0].high == 30);
    assert_string_equal(spec.places[2], "south");
    assert_string_equal(l.spec.places[0], "north");
    assert_string_equal(spec.choices_shown[19], "high");
    assert_string_equal(l.spec.choices_shown[1], "rrG");
    dt_layout_fini(&l);
    dt_free(memory);
    dt_str_fini(&out);
}

static void test_cut_off(void **state)
{
    dt_str out = {0};
    assert_int_equal(dt_spec_write(&given, &out), DT_OK);
    for (size_t n = 0; n < out.bytes; n++) {
        assert_int_equal(read_spec(dt_str_text(&out), n), DT_EPLUGIN);
    }
    dt_str_fini(&out);
}

static void test_damaged(void **state)
{
    dt_str out = {0};
    assert_int_equal(dt_spec_write(&given, &out), DT_OK);
    char *bytes = malloc(out.bytes);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t w[4];
        const dt_rng_key one = {.seed = 5, .step = i};
        dt_philox(&one, 0, w);
        memcpy(bytes, dt_str_text(&out), out.bytes);
        bytes[w[0] % out.bytes] = (char)w[1];
        bytes[w[2] % out.bytes] = (char)(w[3] % 3 == 0 ? 0xff : w[3] >> 8);
        const dt_status st = read_spec(bytes, out.bytes);
        assert_true(st == DT_OK || st == DT_EPLUGIN || st == DT_ENOMEM);
    }
    free(bytes);
    dt_str_fini(&out);
}

/* 2^31 - 1 rows of 2^31 - 1 numbers of 8 bytes wrap: a record would be smaller than what is written into it. */
static void test_sizes_do_not_wrap(void **state)
{
    static const dt_dim many[] = {{"N", INT32_MAX}};
    static const dt_port wide[] = {{"nodes", "N 2147483647", DT_I64, 0}}, narrow[] = {{"nodes", "N 2", DT_I64, 0}};
    dt_env_spec s = given;
    dt_layout l;
    s.symbols = many;
    s.obs = wide;
    s.n_obs = 1;
    s.n_columns = 0;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "2147483647"));
    assert_non_null(strstr(dt_error_text(), "more than 1024 GB"));
    dt_layout_fini(&l);
    s.obs = narrow;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_OK);
    assert_true(l.record_bytes > (uint64_t)INT32_MAX * 16);
    dt_layout_fini(&l);
}

/* What is described is there. */
static void test_columns_that_are_not_there(void **state)
{
    static const char *const none[20] = {NULL};
    static const struct {
        dt_column column;
        const char *said;
    } cases[] = {
        {{"speed", "x", "", "", 0, 1, 0, 1, 1, 0}, "it describes columns of port speed, which it does not have"},
        {{"state", "x", "", "", 0, 1, 1, 3, 1, 0}, "it: port state [A 3] has no column 3, which is described"},
        {{"state", "x", "", "", 0, 1, 0, 2, 3, 0}, "has no column 3"},
        {{"state", "x", "", "", 0, 1, 0, UINT32_MAX, UINT32_MAX, 0}, "has no column"},
        {{"state", "x", "", "", 0, 1, 0, 0, 1, 0}, "it: 0 columns x of port state"},
        {{"state", "x", "", "", 2, 1, 0, 1, 1, 0}, "have the range 2 to 1"},
        {{"state", "x", "", "", 0, 1, 0, 1, 0, 0}, "it: 1 columns x of port state, 0 apart"},
        {{"state", "x", "", "", NAN, 1, 0, 1, 1, 0}, "have the range nan to 1"},
        {{NULL, "x", "", "", 0, 1, 0, 1, 1, 0}, "described column 0 lacks its port, name, unit or meaning"},
        {{"state", NULL, "", "", 0, 1, 0, 1, 1, 0}, "lacks its port, name, unit or meaning"},
        {{"state", "x", NULL, "", 0, 1, 0, 1, 1, 0}, "lacks its port, name, unit or meaning"},
        {{"state", "x", "", NULL, 0, 1, 0, 1, 1, 0}, "lacks its port, name, unit or meaning"}};
    static const dt_column right[] = {{"state", "x", "", "", 1, 1, 0, 3, 1, 0},
                                      {"state", "x", "", "", 0, INFINITY, 0, 2, 2, 0},
                                      {"state", "x", "", "", 0, 1, 2, 1, 9, 0}};
    dt_layout l;
    dt_env_spec s = given;
    s.n_columns = 1;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        s.columns = &cases[i].column;
        assert_int_equal(dt_layout_init(&l, "it", &s), DT_EPLUGIN);
        assert_non_null(strstr(dt_error_text(), cases[i].said));
        dt_layout_fini(&l);
    }
    s.columns = right;
    s.n_columns = 3;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_OK);
    dt_layout_fini(&l);
    static dt_column most[DT_ENV_MAX_COLUMNS + 1];
    for (int i = 0; i <= DT_ENV_MAX_COLUMNS; i++) {
        most[i] = right[0];
    }
    s.columns = most;
    s.n_columns = DT_ENV_MAX_COLUMNS;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_OK);
    dt_layout_fini(&l);
    s.n_columns++;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "describes 1025 columns"));
    s.columns = NULL;
    s.n_columns = 1;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "describes 1 columns"));
    s = given;
    s.n_columns = DT_ENV_MAX_COLUMNS + 1;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_EPLUGIN);
    s = given;
    s.places = none;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "it: place 0 has no text"));
    s = given;
    s.choices_shown = none;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_EPLUGIN);
    s = given;
    s.n_agents = DT_ENV_MAX_CHOICES_SHOWN / 5 + 1;
    s.places = NULL;
    assert_int_equal(dt_layout_init(&l, "it", &s), DT_EPLUGIN);
    assert_non_null(strstr(dt_error_text(), "at most 16384"));
}

static void expect_broken(dt_status st)
{
    assert_int_equal(st, DT_EPLUGIN);
    assert_true(dt_error_text()[0] != '\0');
    assert_null(strstr(dt_error_text(), "(null)"));
}

/* A spec whose texts or lists are NULL, when it is read first and when it is compared with what it was. */
static void test_texts_that_are_missing(void **state)
{
    static const char *const no_name[] = {NULL, NULL};
    dt_layout l, other;
    dt_port port[DT_ENV_MAX_OBS];
    dt_dim symbol[DT_ENV_MAX_SYMBOLS];
    assert_int_equal(dt_layout_init(&l, "it", &given), DT_OK);
    for (int k = 0; k < 8; k++) {
        dt_env_spec s = given;
        memcpy(port, given.obs, given.n_obs * sizeof(*port));
        memcpy(symbol, given.symbols, given.n_symbols * sizeof(*symbol));
        s.obs = port;
        s.symbols = symbol;
        port[0].name = k == 0 ? NULL : port[0].name;
        port[0].dims = k == 1 ? NULL : port[0].dims;
        symbol[0].name = k == 2 ? NULL : symbol[0].name;
        s.costs = k == 3 ? no_name : k == 4 ? NULL : s.costs;
        s.metrics = k == 5 ? no_name : k == 6 ? NULL : s.metrics;
        s.choices = k == 7 ? NULL : s.choices;
        expect_broken(dt_layout_init(&other, "it", &s));
        dt_layout_fini(&other);
        expect_broken(dt_layout_compare(&l, &s));
    }
    dt_layout_fini(&l);
}

/* A plugin that fails without a message: the code remains, and nothing is made up. */
static void test_message_that_is_missing(void **state)
{
    dt_host h;
    dt_host_init(&h);
    assert_int_equal((h.fail)(&h, DT_ENOTFOUND, NULL, NULL), DT_ENOTFOUND);
    assert_string_equal(dt_error_text(), "");
    h.log(&h, 2, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_sizes_do_not_wrap),
        cmocka_unit_test(test_columns_that_are_not_there),
        cmocka_unit_test(test_texts_that_are_missing),
        cmocka_unit_test(test_message_that_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
