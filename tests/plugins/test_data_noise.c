/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/data_trajectory/augment.c and weights.c: noise has the moments it is asked for and follows from key and row
 * alone; samples are drawn by site, scene and danger in equal shares.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include "../../plugins/data_trajectory/augment.h"
#include "../../plugins/data_trajectory/weights.h"
#include "../../plugins/data_trajectory/windows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ROWS = 40000 };

/* Mean, deviation, extremes and shares over many rows, each within five standard errors. */
static void test_moments(void **state)
{
    const augment a = {.speed_mps = 0.5, .position_m = 3, .edges = 0.1, .nodes = 0.05};
    double sum = 0, squares = 0, x = 0, most = 0, both = 0;
    int hidden = 0, dropped = 0;
    for (int64_t r = 0; r < ROWS; r++) {
        const augment_row n = augment_of_row(&a, 77, r);
        sum += n.speed;
        squares += n.speed * n.speed;
        x += n.x;
        both += n.x * n.y;
        most = fmax(most, fmax(fabs(n.x), fabs(n.y)));
        hidden += n.is_hidden;
        dropped += augment_drops(&a, 77, r);
    }
    const double error = 1 / sqrt(ROWS);
    assert_true(fabs(sum / ROWS) < 5 * 0.5 * error);
    assert_true(fabs(sqrt(squares / ROWS) - 0.5) < 5 * 0.5 * error);
    assert_true(fabs(x / ROWS) < 5 * sqrt(3) * error);
    assert_true(fabs(both / ROWS) < 5 * 3 * error); /* x and y are drawn apart */
    assert_true(most <= 3 && most > 2.99);
    assert_true(fabs(hidden / (double)ROWS - 0.05) < 5 * sqrt(0.05 * 0.95) * error);
    assert_true(fabs(dropped / (double)ROWS - 0.1) < 5 * sqrt(0.1 * 0.9) * error);
}

static void test_keys(void **state)
{
    const augment a = {.speed_mps = 1, .position_m = 1, .edges = 1, .nodes = 1}, off = {0};
    const augment_row one = augment_of_row(&a, 5, 9), again = augment_of_row(&a, 5, 9);
    assert_true(one.speed == again.speed && one.x == again.x && one.y == again.y && one.is_hidden);
    assert_true(one.speed != augment_of_row(&a, 6, 9).speed && one.speed != augment_of_row(&a, 5, 10).speed);
    assert_true(augment_drops(&a, 5, 1));
    const augment_row none[] = {augment_of_row(&a, 0, 9), augment_of_row(&off, 5, 9)};
    for (int k = 0; k < 2; k++) { /* without a key, and where nothing is asked for */
        assert_true(none[k].speed == 0 && none[k].x == 0 && none[k].y == 0 && !none[k].is_hidden);
    }
    assert_false(augment_drops(&a, 0, 1));
    assert_false(augment_drops(&off, 5, 1));
}

/* Three scenes of two sites, a frame each and two vehicles a frame; in the last one a vehicle is in danger. */
static const int64_t frame_row[] = {0, 2, 4, 6};
static const uint8_t risk[] = {0, 0, 3, 0, 0, 1};
static const int32_t scene_site[] = {0, 0, 1};
static const dt_store_view view = {
    .n_sites = 2, .n_scenes = 3, .n_frames = 3, .frame_row = frame_row, .risk = risk, .scene_site = scene_site};
static const weights_sample samples[] = {{0, 0}, {0, 0}, {1, 1}, {2, 2}};

static void weighs(uint32_t by, double a, double b, double c, double d)
{
    const double want[] = {a, b, c, d};
    double got[4];
    mock_host m;
    mock_host_init(&m);
    assert_int_equal(weights_of(&m.host, &view, by, samples, 4, got), DT_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(got[i] / got[0] == want[i] / want[0]);
    }
    assert_int_equal(m.n_live, 0);
    m.fail_alloc = 1;
    assert_int_equal(weights_of(&m.host, &view, by, samples, 4, got), DT_ENOMEM);
}

static void test_weights(void **state)
{
    weighs(WEIGHTS_NONE, 1, 1, 1, 1);
    weighs(WEIGHTS_SITE, 1, 1, 1, 3);
    weighs(WEIGHTS_SCENE, 1, 1, 2, 2);
    weighs(WEIGHTS_RISK, 1, 1, 1, 3);
}

/* Noise makes nobody drive backwards who was not recorded so. */
static void test_speed(void **state)
{
    assert_true(windows_speed(5, &(augment_row){.speed = 2}) == 7);
    assert_true(windows_speed(5, &(augment_row){.speed = -2}) == 3);
    assert_true(windows_speed(5, &(augment_row){.speed = -7}) == 0);
    assert_true(windows_speed(-3, &(augment_row){.speed = 0}) == -3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
