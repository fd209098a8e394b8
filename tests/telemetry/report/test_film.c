/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/telemetry/report/film.c: what comes from a file may hold any number, and what is written holds finite
 * ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "telemetry/report/film.h"

static void put(dt_film *s, const char *key, const double *value, uint32_t n, uint32_t columns)
{
    assert_int_equal(dt_film_add(s, key, value, n, columns), DT_OK);
}

/* Every column in turn is a number beyond any road; of a road as well. */
static void test_finite(void **state)
{
    static const double wild[] = {1e308, -1e308, INFINITY, NAN, 3.3e38};
    for (size_t w = 0; w < sizeof(wild) / sizeof(wild[0]); w++) {
        dt_film s = {0};
        dt_str json = {0}, svg = {0};
        double road[3][DT_FILM_LINE] = {{0, 0, 0, 3}, {0, 100, 0, 3}, {0, 0, wild[w], 3}};
        double vehicle[1 + DT_FILM_BODY][DT_FILM_BODY];
        double mark[1 + DT_FILM_MARK][DT_FILM_MARK];
        for (int i = 0; i <= DT_FILM_BODY; i++) {
            const double plain[DT_FILM_BODY] = {7, 50, 0, 0, 5, 2, 10, 0.5, 2};
            memcpy(vehicle[i], plain, sizeof(plain));
            vehicle[i][i > 0 ? i - 1 : 0] = i > 0 ? wild[w] : 7;
        }
        for (int i = 0; i <= DT_FILM_MARK; i++) {
            const double plain[DT_FILM_MARK] = {90, 0, 0, 3, 1, 2, 0};
            memcpy(mark[i], plain, sizeof(plain));
            mark[i][i > 0 ? i - 1 : 0] = i > 0 ? wild[w] : 90;
        }
        const double time_s = wild[w];
        put(&s, "traffic/road", road[0], isfinite(wild[w]) && fabs(wild[w]) < 1e300 ? 8 : 12, DT_FILM_LINE);
        put(&s, "traffic/moment/0/time", &time_s, 1, 0);
        put(&s, "traffic/moment/0/vehicle", vehicle[0], sizeof(vehicle) / sizeof(double), DT_FILM_BODY);
        put(&s, "traffic/moment/0/signal", mark[0], sizeof(mark) / sizeof(double), DT_FILM_MARK);
        dt_film_remove_invalid(&s);
        assert_int_equal(s.line.n, 2);
        assert_true(s.frame[0].body.n >= 1 && s.frame[0].body.value[0] == 7.0); /* what is right stays */
        dt_film_write_json(&s, &json);
        dt_film_write_svg(&s, 0, 800, "", &svg);
        assert_null(strstr(dt_str_text(&json), "inf"));
        assert_null(strstr(dt_str_text(&json), "nan"));
        assert_null(strstr(dt_str_text(&svg), "inf"));
        assert_null(strstr(dt_str_text(&svg), "nan"));
        dt_str_fini(&json);
        dt_str_fini(&svg);
        dt_film_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
