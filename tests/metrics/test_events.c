/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of what core/metrics/{events,png}.c count and draw; tests/peers has TensorBoard read the files themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <zlib.h>

#include "base/err.h"
#include "metrics/events.h"
#include "metrics/png.h"

static void test_histogram(void **state)
{
    (void)state;
    static const float x[] = {-1, 1, NAN, 0.5f, INFINITY}, y[] = {63};
    dt_histogram h;
    dt_histogram_begin(&h);
    dt_histogram_range(&h, x, 5);
    dt_histogram_range(&h, y, 1);
    dt_histogram_count(&h, x, 5);
    dt_histogram_count(&h, y, 1);
    assert_true(h.low == -1 && h.high == 63 && h.n == 4);
    assert_true(h.sum == 63.5 && h.squares == 1 + 1 + 0.25 + 63 * 63);
    assert_true(h.count[0] == 1); /* [-1, 0) */
    assert_true(h.count[1] == 1); /* 0.5 */
    assert_true(h.count[2] == 1); /* 1 begins the third part */
    assert_true(h.count[DT_HISTOGRAM_PARTS - 1] == 1);
    dt_histogram_begin(&h); /* all alike */
    dt_histogram_range(&h, y, 1);
    dt_histogram_count(&h, y, 1);
    assert_true(h.low == 63 && h.high == 63 && h.count[0] == 1 && h.n == 1);
}

static uint32_t number_at(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void test_png(void **state)
{
    (void)state;
    dt_canvas c;
    dt_str png = {0};
    assert_int_equal(dt_canvas_init(&c, 0, 4), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "0 by 4"));
    assert_int_equal(dt_canvas_init(&c, 5, 4097), DT_EINVAL);
    assert_int_equal(dt_canvas_init(&c, 5, 3), DT_OK);
    dt_canvas_line(&c, 0.5, 1.5, 3.5, 1.5, 0.4, 7);
    dt_canvas_disc(&c, 4.5, 2.5, 0.6, 9);
    dt_canvas_line(&c, -50, -50, -20, -9, 3, 1); /* outside: nothing */
    dt_canvas_line(&c, NAN, 0, 3, 3, 1, 1);
    static const uint8_t want[] = {0, 0, 0, 0, 0, 7, 7, 7, 7, 0, 0, 0, 0, 0, 9};
    assert_memory_equal(c.pixel, want, sizeof(want));
    assert_int_equal(dt_canvas_png(&c, &png), DT_OK);
    assert_memory_equal(png.text, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\5\0\0\0\3\x8\x3\0\0\0", 29);
    size_t at = 8;
    for (int chunk = 0; chunk < 4; chunk++) {
        const uint32_t bytes = number_at(png.text + at);
        assert_int_equal(number_at(png.text + at + 8 + bytes), crc32(0, (const Bytef *)png.text + at + 4, bytes + 4));
        if (memcmp(png.text + at + 4, "IDAT", 4) == 0) {
            uint8_t rows[18];
            uLongf n = sizeof(rows);
            assert_int_equal(uncompress(rows, &n, (const Bytef *)png.text + at + 8, bytes), Z_OK);
            assert_int_equal(n, sizeof(rows));
            for (int j = 0; j < 3; j++) {
                assert_int_equal(rows[6 * j], 0);
                assert_memory_equal(rows + 6 * j + 1, want + 5 * j, 5);
            }
        }
        at += 12 + bytes;
    }
    assert_int_equal(at, png.bytes);
    dt_str_fini(&png);
    dt_canvas_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_png),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
