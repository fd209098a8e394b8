/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/features/pairs.c, by hand: who is ahead and beside, on which side, where a lane is, what
 * does not count. tests/env_traffic/test_pairs.c holds it against a simulation that knows its lanes.
 */
#include "fixture.h"

#include "traffic/features/pairs.h"

enum { GAP, SPEED, BRAKE, FOLLOWER, FOLLOWER_BRAKE, ACTION, EULER, COLUMNS };
static const dt_pair_desc how = {.action_s = 0.5, .euler_s = 0.1, .brake = 4, .other_brake = 9};
static float ahead[3][COLUMNS], beside[4][COLUMNS];

static dt_vehicle car(double x, double y, double heading, double speed)
{
    return (dt_vehicle){.x = x, .y = y, .heading = heading, .speed = speed, .length = 4, .width = NAN};
}

static void assert_pair(const float *p, double gap, double speed, double brake, double follower, double follower_brake)
{
    assert_float_equal(p[GAP], gap, 1e-4);
    assert_float_equal(p[SPEED], speed, 1e-4);
    assert_float_equal(p[BRAKE], brake, 1e-6);
    assert_float_equal(p[FOLLOWER], follower, 1e-4);
    assert_float_equal(p[FOLLOWER_BRAKE], follower_brake, 1e-6);
    assert_float_equal(p[ACTION], 0.5, 1e-6);
    assert_float_equal(p[EULER], 0.1, 1e-6);
}

static void test_alone(void **state)
{
    const dt_vehicle v[] = {car(7, 8, 1, 11)};
    dt_pairs_write(v, 1, 0, &how, &ahead[0][0], &beside[0][0]);
    for (int k = 0; k < 3; k++) {
        assert_pair(ahead[k], 1000, 0, 9, 11, 4);
    }
    for (int k = 0; k < 4; k += 2) { /* no lane that a vehicle could see */
        assert_pair(beside[k], 0, 0, 9, 11, 4);
        assert_pair(beside[k + 1], 0, 11, 4, 0, 9);
    }
}

/* The same scene, whatever way it heads: one ahead, a farther one, one behind; both on the left; the right blocked. */
static void test_lanes(void **state)
{
    for (double heading = -3; heading < 3; heading += 0.7) {
        const double place[][3] = {{0, 0, 10},   {30, 0.4, 8},   {60, 0, 5},   {-20, 0, 9},
                                   {25, 3.5, 7}, {-40, 3.1, 12}, {4.5, -3, 6}, {50, 7.5, 1}};
        enum { N = sizeof(place) / sizeof(place[0]) };
        dt_vehicle v[N + 2];
        for (int i = 0; i < N; i++) {
            v[i] = car(100 + place[i][0] * cos(heading) - place[i][1] * sin(heading),
                       -50 + place[i][0] * sin(heading) + place[i][1] * cos(heading), heading, place[i][2]);
        }
        v[N] = car(100 + 10 * cos(heading), -50 + 10 * sin(heading), heading + 2, 9);   /* it crosses */
        v[N + 1] = car(100 + 101 * cos(heading), -50 + 101 * sin(heading), heading, 9); /* out of sight */
        dt_pairs_write(v, N + 2, 0, &how, &ahead[0][0], &beside[0][0]);
        assert_pair(ahead[0], 26, 8, 9, 10, 4);
        assert_pair(ahead[1], 1000, 0, 9, 10, 4);
        assert_pair(beside[0], 21, 7, 9, 10, 4);
        assert_pair(beside[1], 36, 10, 4, 12, 9);
        assert_pair(beside[2], 0, 0, 9, 10, 4); /* 0.5 m is no room */
        assert_pair(beside[3], 0, 10, 4, 0, 9);
        dt_pairs_write(v, N + 2, 2, &how, &ahead[0][0], &beside[0][0]);
        assert_pair(ahead[0], 37, 9, 9, 5, 4);
    }
}

/* A lane has room where both gaps, to the leader and to the follower, are at least 1 m. */
static void test_room(void **state)
{
    static const double gaps[] = {0.5, 0.99, 1.01, 2};
    for (int k = 0; k < 4; k++) {
        for (int side = 0; side < 2; side++) {
            const bool has_room = gaps[k] >= 1;
            const dt_vehicle v[] = {car(0, 0, 0, 10), car((side == 0 ? 1 : -1) * (4 + gaps[k]), 3.5, 0, 7)};
            dt_pairs_write(v, 2, 0, &how, &ahead[0][0], &beside[0][0]);
            const double in_front = side == 0 ? gaps[k] : 1000, after = side == 0 ? 1000 : gaps[k];
            assert_pair(beside[0], has_room ? in_front : 0, has_room && side == 0 ? 7 : 0, 9, 10, 4);
            assert_pair(beside[1], has_room ? after : 0, 10, 4, has_room && side == 1 ? 7 : 0, 9);
        }
    }
}

/* Lengths count by halves, and who is ahead is decided by fronts; those that overlap have a gap below 0. */
static void test_lengths(void **state)
{
    dt_vehicle v[] = {car(0, 0, 0, 10), car(1, 0, 0, 8), car(20, 3.5, 0, -1)};
    v[1].length = 12;
    dt_pairs_write(v, 3, 0, &how, &ahead[0][0], &beside[0][0]);
    assert_pair(ahead[0], 1 - 8, 8, 9, 10, 4);
    assert_pair(beside[0], 16, 0, 9, 10, 4); /* backing is standing */
    assert_pair(beside[1], 1000, 10, 4, 0, 9);
    dt_pairs_write(v, 3, 1, &how, &ahead[0][0], &beside[0][0]);
    assert_pair(ahead[0], 1000, 0, 9, 8, 4); /* its front is before the other's */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
