/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/json_write.c: escapes, commas, and numbers that the reader gives back bit for bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"

static void test_writer(void **state)
{
    dt_str s = {0};
    dt_json_out o = {.s = &s};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "na\"me", "a\\b\n\t\x01\xC3\xA9\xFFz");
    dt_json_arr(&o, "list");
    dt_json_i64(&o, NULL, INT64_MIN);
    dt_json_f64(&o, NULL, 0.1);
    dt_json_f64(&o, NULL, -5);
    dt_json_f64(&o, NULL, NAN);
    dt_json_f64(&o, NULL, INFINITY);
    dt_json_bool(&o, NULL, true);
    dt_json_null(&o, NULL);
    dt_json_obj(&o, NULL);
    dt_json_end(&o, '}');
    dt_json_end(&o, ']');
    dt_json_bool(&o, "last", false);
    dt_json_end(&o, '}');
    assert_int_equal(dt_str_status(&s), DT_OK);
    assert_string_equal(
        s.text, "{\"na\\\"me\":\"a\\\\b\\n\\t\\u0001\xC3\xA9\xEF\xBF\xBDz\",\"list\":[-9223372036854775808,0.1,-5,"
                "null,null,true,null,{}],\"last\":false}");
    dt_str_fini(&s);
}

static void test_written_doubles_read_back(void **state)
{
    (void)setlocale(LC_ALL, "de_DE.UTF-8"); /* where installed: a comma must not appear */
    static const double special[] = {0.0, -0.0,    1e308,         5e-324, 2.2250738585072014e-308,
                                     0.3, 1.0 / 3, 123456789.125, 1e21};
    const dt_rng_key key = {.seed = 8};
    for (uint64_t i = 0; i < 5000; i++) {
        uint32_t r[4];
        dt_philox(&key, i, r);
        uint64_t bits = (uint64_t)r[0] << 32 | r[1];
        double v = 0;
        memcpy(&v, &bits, sizeof(v));
        v = i < sizeof(special) / sizeof(special[0]) ? special[i] : v;
        if (!isfinite(v)) {
            continue;
        }
        dt_str s = {0};
        dt_json_out o = {.s = &s};
        dt_json_f64(&o, NULL, v);
        dt_json *j = NULL;
        dt_json_token t;
        assert_int_equal(dt_json_open_mem(s.text, s.bytes, "in", &j), DT_OK);
        assert_int_equal(dt_json_next(j, &t), DT_OK);
        assert_memory_equal(&t.number, &v, sizeof(v));
        assert_true(s.bytes <= 24);
        dt_json_close(j);
        dt_str_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_written_doubles_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
