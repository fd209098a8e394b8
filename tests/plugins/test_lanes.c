/* SPDX-License-Identifier: Apache-2.0
 *
 * What vehicles see of roads: which lane they are on, where it leads, who drives ahead (roads: lanes_town.h). All of it
 * is the same however the whole lies, and mirrored where it is mirrored.
 */
#include "lanes_town.h"
#include "../../plugins/data_trajectory/following.h"

static float lane[CARS * LANES_COLUMNS], path[CARS * LANES_PATH * LANES_PATH_COLUMNS];

static void read_all(const lanes *l, int64_t scene, int64_t frame, double flip, float *to_lane, float *to_path)
{
    assert_int_equal(lanes_read(l, scene, frame, node, flip, to_lane, to_path), DT_OK);
}

/* Point of the path of car i after s m, aside m next to it, as a model puts it together. */
static void point_of(int i, double s, double aside, double *x, double *y)
{
    const float *p = path + i * LANES_PATH * LANES_PATH_COLUMNS;
    double sum[LANES_PATH_COLUMNS] = {0};
    for (int k = 0; k < LANES_PATH; k++) {
        double r = k == 0 ? 1 : s / LANES_STEP_M - (k - 1);
        r = k > 1 ? fmax(r, 0) : r;
        r = k < LANES_PATH - 1 ? fmin(r, 1) : r;
        for (int d = 0; d < LANES_PATH_COLUMNS; d++) {
            sum[d] += r * (double)p[k * LANES_PATH_COLUMNS + d];
        }
    }
    *x = sum[0] + aside * sum[2];
    *y = sum[1] + aside * sum[3];
}

static void test_a_vehicle_is_on_the_lane_that_it_follows(void **state)
{
    lay(1, 0, 0, 0);
    start();
    const lane_place on = lanes_find(&roads, 0, pose);
    assert_int_equal(on.lane, RIGHT);
    assert_true(fabs(on.s - 60) < 1e-9 && fabs(on.side - 0.5) < 1e-9 && fabs(on.heading) < 1e-9);
    assert_int_equal(lanes_find(&roads, 0, pose + 9).lane, LEFT);
    assert_int_equal(lanes_find(&roads, 0, pose + 15).lane, -1); /* it comes towards us */
    assert_int_equal(lanes_find(&roads, 0, pose + 18).lane, TURN);
    assert_int_equal(lanes_find(&roads, -1, pose).lane, -1);
    const double far_off[3] = {60, -4.5, 0}, afoot[3] = {60, -2, 0};
    const double before[3] = {-1.5, 0, 0}, beyond[3] = {151.5, 0, 0};
    assert_int_equal(lanes_find(&roads, 0, far_off).lane, -1);
    assert_int_equal(lanes_find(&roads, 0, afoot).lane, RIGHT); /* nobody drives where people walk */
    /* next to the branch by 0.3 m and the straight lane by 0.6: the heading decides */
    const double straight_on[3] = {115.9, 0.6, 0}, turning[3] = {115.9, 0.6, 0.3};
    assert_int_equal(lanes_find(&roads, 0, straight_on).lane, ON);
    assert_int_equal(lanes_find(&roads, 0, turning).lane, TURN);
    assert_false(lanes_is_driven(DT_LANE_FOOT) || lanes_is_driven(DT_LANE_BICYCLE));
    assert_true(lanes_is_driven(DT_LANE_HIGHWAY) && lanes_is_driven(DT_LANE_JUNCTION));
    assert_int_equal(lanes_find(&roads, 0, before).lane, -1);
    assert_int_equal(lanes_find(&roads, 0, beyond).lane, -1);
    stop();
}

static void test_what_a_vehicle_sees(void **state)
{
    lay(1, 0, 0, 0);
    start();
    read_all(&roads, 0, 0, 1, lane, path);
    const float *own = lane, *slot = lane + LANES_OWN;
    assert_true(own[0] == 1 && fabsf(own[1] - 0.25f) < 1e-6f && fabsf(own[2] - 5 * sinf(0.02f)) < 1e-6f);
    assert_true(own[3] == 0 && fabsf(own[4] - 0.2f) < 1e-6f); /* 50 m of it, 40 m straight on */
    assert_true(own[5] == 1 && own[6] == 0 && own[7] == 1 && own[8] == 0 && own[9] == 0);
    for (int i = 10; i < 15; i++) {
        assert_true(fabsf(own[i] + 0.02f) < 1e-6f);
    }
    assert_true(fabsf(own[15] - 1) < 1e-6f); /* in 50 m it parts */
    const float want[LANES_COLUMNS - LANES_OWN] = {2 - 16 / 50.f,
                                                   -2 / 5.f,
                                                   1,
                                                   0.5f,
                                                   2 - 36 / 50.f,
                                                   -4 / 5.f,
                                                   1,
                                                   1,
                                                   0,
                                                   0,
                                                   0,
                                                   0,
                                                   0,
                                                   0,
                                                   0,
                                                   0, /* on its lane */
                                                   2 - 11 / 50.f,
                                                   2 / 5.f,
                                                   1,
                                                   1.5f,
                                                   2 - 58 / 50.f,
                                                   -1,
                                                   1,
                                                   3, /* left */
                                                   0,
                                                   0,
                                                   0,
                                                   0,
                                                   0,
                                                   0,
                                                   0,
                                                   0, /* right */
                                                   -0.2f,
                                                   -0.4625f,
                                                   -0.8625f,
                                                   -1.2625f,
                                                   -1.6625f}; /* following */
    for (int i = 0; i < LANES_COLUMNS - LANES_OWN; i++) {
        assert_true(fabsf(slot[i] - want[i]) < 2e-3f);
    }
    /* on the branch, 20 m after which the road ends: it turns left, and goes straight on then */
    own = lane + 6 * LANES_COLUMNS;
    const double t = atan2(0.6, 0.8); /* of the circle behind it */
    assert_true(own[9] == 1);
    assert_true(fabs((double)own[4] - (2 - RADIUS * (M_PI_2 - t) / 50)) < 4e-3);
    assert_true(own[10] > 0 && own[11] > own[10] && fabs((double)own[14] - (M_PI_2 - 0.6)) < 0.06); /* chords */
    stop();
}

static void test_paths_follow_the_road(void **state)
{
    double x = 0, y = 0;
    lay(1, 0, 0, 0);
    start();
    read_all(&roads, 0, 0, 1, lane, path);
    for (int s = -10; s < 300; s += 7) { /* of car 0: parallel to the lane, which it leaves by 0.02 rad */
        point_of(0, s, 1.5, &x, &y);
        assert_true(fabs(x - (s * cos(0.02) + 1.5 * sin(0.02))) < 1e-3);
        assert_true(fabs(y - (1.5 * cos(0.02) - s * sin(0.02))) < 1e-3);
    }
    const double t = atan2(0.6, 0.8), cos_h = cos(0.6), sin_h = sin(0.6);
    for (double s = 0; s < 16; s += 1) { /* of the car on the branch: round the circle, 1 m inside it */
        const double px = 110 + (RADIUS - 1) * sin(t + s / RADIUS), py = RADIUS - (RADIUS - 1) * cos(t + s / RADIUS);
        const double dx = px - cars[6].x, dy = py - cars[6].y;
        const double side = RADIUS - hypot(cars[6].x - 110, cars[6].y - RADIUS); /* that it is inside by now */
        point_of(6, s, 1 - side, &x, &y);
        assert_true(hypot(x - (dx * cos_h + dy * sin_h), y - (dy * cos_h - dx * sin_h)) < 0.25);
    }
    point_of(5, 30, 2, &x, &y); /* on no lane: straight on */
    assert_true(fabs(x - 30) < 1e-4 && fabs(y - 2) < 1e-4);
    assert_true(lane[5 * LANES_COLUMNS] == 0 && lane[5 * LANES_COLUMNS + 4] == 0);
    stop();
}

/* Two cars 20 m apart; the one ahead went at 10 m/s and stopped at once a second ago. */
static void test_following_repeats_what_the_one_ahead_did(void **state)
{
    enum { F = 31, N = 2 * F };
    static int64_t rows[F + 1], frames[2] = {0, F}, ptr[3] = {0, F, N}, of[N];
    static int32_t tracks[N];
    static float speeds[4 * N];
    dt_store_view v = {.struct_size = sizeof(v),
                       .frame_rate_hz = 10,
                       .scene_frame = frames,
                       .frame_row = rows,
                       .motion = speeds,
                       .row_track = tracks,
                       .track_ptr = ptr,
                       .track_row = of};
    for (int f = 0; f < F; f++) {
        rows[f + 1] = 2 * (f + 1);
        for (int c = 0; c < 2; c++) {
            tracks[2 * f + c] = c;
            of[c * F + f] = 2 * f + c;
            speeds[4 * (2 * f + c)] = c == 1 && f >= 20 ? 0 : 10;
        }
    }
    following f;
    mock_host_init(&host);
    assert_int_equal(following_init(&f, &host.host, &v, 0, F - 1, 20), DT_OK);
    const follower chain[2] = {{0, 12.5, 10}, {1, 0, 0}};
    /* it was 10 m ahead 2 s ago, but for the half frame in which it stopped: so that is how long it takes */
    assert_true(fabs(following_distance(&f, chain, 2, 0.5) - 5) < 1e-9);
    assert_true(fabs(following_distance(&f, chain, 2, 1) - 9.5) < 0.51);
    assert_true(fabs(following_distance(&f, chain, 2, 3) - 10) < 1e-9);
    const follower alone[1] = {{0, INFINITY, 10}}, near[2] = {{0, 1, 10}, {1, 0, 0}};
    const follower away[2] = {{0, 90, 10}, {1, 0, 0}};
    assert_true(fabs(following_distance(&f, alone, 1, 3) - 30) < 1e-9);
    assert_true(fabs(following_distance(&f, near, 2, 3)) < 1e-9);      /* it stands as the other one does */
    assert_true(fabs(following_distance(&f, away, 2, 3) - 30) < 1e-9); /* too far to follow */
    following_fini(&f);
    for (int n = 1; n <= 2; n++) {
        host.fail_alloc = n;
        assert_int_equal(following_init(&f, &host.host, &v, 0, F - 1, 20), DT_ENOMEM);
    }
    assert_int_equal(host.n_live, 0);
}

static void test_it_means_the_same_wherever_it_lies(void **state)
{
    static float lane_0[CARS * LANES_COLUMNS], path_0[CARS * LANES_PATH * LANES_PATH_COLUMNS];
    lay(1, 0, 0, 0);
    start();
    read_all(&roads, 0, 0, 1, lane_0, path_0);
    for (int i = 0; i < 4; i++) { /* turned, then mirrored and read with left for right */
        const double flip = i < 2 ? 1 : -1;
        lanes_fini(&roads);
        lay(flip, 0.7 * i - 1, 300 * i, -40);
        assert_int_equal(lanes_init(&roads, &host.host, &view, PAST), DT_OK);
        read_all(&roads, 0, 0, flip, lane, path);
        for (int k = 0; k < CARS * LANES_COLUMNS; k++) {
            assert_true(fabsf(lane[k] - lane_0[k]) < 1e-4f);
        }
        for (int k = 0; k < CARS * LANES_PATH * LANES_PATH_COLUMNS; k++) {
            assert_true(fabsf(path[k] - path_0[k]) < 1e-4f);
        }
    }
    stop();
}

static void test_roads_that_are_not_known(void **state)
{
    dt_store_view without = view;
    without.n_lanes = 0;
    assert_false(lanes_available(&without));
    assert_true(lanes_available(&view));
    lay(1, 0, 0, 0);
    scene_map[0] = -1;
    start();
    read_all(&roads, 0, 0, 1, lane, path);
    for (int i = 0; i < CARS; i++) {
        for (int k = 0; k < LANES_OWN; k++) {
            assert_true(lane[i * LANES_COLUMNS + k] == 0);
        }
    }
    assert_true(fabsf(lane[LANES_OWN] - (2 - 16 / 50.f)) <
                1e-2f); /* a vehicle that drives straight ahead is reported all the same */
    stop();
    scene_map[0] = 0;
}

static void test_no_memory(void **state)
{
    for (int n = 0; n < 3; n++) {
        mock_host_init(&host);
        host.fail_alloc = n + 1;
        assert_int_equal(lanes_init(&roads, &host.host, &view, PAST), DT_ENOMEM);
        lanes_fini(&roads);
        assert_int_equal(host.n_live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_vehicle_is_on_the_lane_that_it_follows),
        cmocka_unit_test(test_what_a_vehicle_sees),
        cmocka_unit_test(test_paths_follow_the_road),
        cmocka_unit_test(test_following_repeats_what_the_one_ahead_did),
        cmocka_unit_test(test_it_means_the_same_wherever_it_lies),
        cmocka_unit_test(test_roads_that_are_not_known),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
