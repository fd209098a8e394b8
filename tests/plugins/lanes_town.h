/* SPDX-License-Identifier: Apache-2.0
 *
 * Roads and vehicles on them, a view of a store that a test lays as it likes: two lanes along x, of which the right one
 * goes on straight and branches off to the left round a quarter of a circle; a path for people on foot next to it.
 */
#ifndef DTRAIN_TESTS_PLUGINS_LANES_TOWN_H
#define DTRAIN_TESTS_PLUGINS_LANES_TOWN_H

#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../plugins/data_trajectory/lanes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { RIGHT, LEFT, ON, TURN, FOOT, LANES, ARC = 17, POINTS = 3 + 2 + 2 + ARC + 2, CARS = 7, PAST = 20 };
#define RADIUS 20.0

static double xy[2 * POINTS], pose[3 * CARS];
static float width[POINTS], motion[4 * CARS], node[DT_NODE_FEATURES * CARS];
static int64_t lane_point[LANES + 1] = {0, 3, 5, 7, 7 + ARC, POINTS};
static int64_t frame_row[2] = {0, CARS}, scene_frame[2] = {0, 1}, track_ptr[CARS + 1] = {0, 1, 2, 3, 4, 5, 6, 7};
static int64_t track_row[CARS] = {0, 1, 2, 3, 4, 5, 6};
static int32_t row_track[CARS] = {0, 1, 2, 3, 4, 5, 6};
static int64_t map_lane[3] = {0, LANES, LANES}, next_ptr[LANES + 1] = {0, 2, 2, 2, 2, 2};
static int32_t kind[LANES] = {DT_LANE_HIGHWAY, DT_LANE_HIGHWAY, DT_LANE_ROAD, DT_LANE_JUNCTION, DT_LANE_FOOT};
static float limit[LANES] = {30, 30, 20, 10, 0};
static int32_t next[2] = {ON, TURN}, left[LANES] = {LEFT, -1, -1, -1, -1}, right[LANES] = {-1, RIGHT, -1, -1, -1};
static int32_t scene_map[1] = {0};
static dt_store_view view = {.struct_size = sizeof(dt_store_view),
                             .n_scenes = 1,
                             .n_rows = CARS,
                             .frame_rate_hz = 10,
                             .scene_frame = scene_frame,
                             .frame_row = frame_row,
                             .row_track = row_track,
                             .track_ptr = track_ptr,
                             .track_row = track_row,
                             .pose = pose,
                             .motion = motion,
                             .n_maps = 1,
                             .n_lanes = LANES,
                             .n_lane_points = POINTS,
                             .n_lane_links = 2,
                             .scene_map = scene_map,
                             .map_lane = map_lane,
                             .lane_point = lane_point,
                             .lane_xy = xy,
                             .lane_width = width,
                             .lane_kind = kind,
                             .lane_limit = limit,
                             .lane_next_ptr = next_ptr,
                             .lane_next = next,
                             .lane_left = left,
                             .lane_right = right};

typedef struct car {
    double x, y, heading, speed;
} car;
/* 0 looks; 1 and 2 ahead on its lane, 3 on the lane to the left, 4 behind, 5 comes towards it, 6 on the branch */
static const car cars[CARS] = {{60, 0.5, 0.02, 10},
                               {80, 0.2, 0, 8},
                               {100, -0.3, 0, 6},
                               {75, 3.4, 0, 12},
                               {40, 0, 0, 11},
                               {90, 3.5, M_PI, 10},
                               {110 + RADIUS * 0.6, RADIUS * 0.2, 0.6, 5}};

/* All of it, mirrored about x first, then turned by a and moved. */
static void lay(double flip, double a, double x0, double y0)
{
    static const double line[][2] = {{0, 0},   {50, 0},  {110, 0}, {0, 3.5}, {110, 3.5},
                                     {110, 0}, {150, 0}, {0, -2},  {110, -2}};
    double plain[2 * POINTS];
    memcpy(plain, line, 7 * sizeof(line[0]));
    memcpy(plain + 2 * (7 + ARC), line + 7, 2 * sizeof(line[0]));
    for (int i = 0; i < ARC; i++) {
        const double t = i * M_PI_2 / (ARC - 1);
        plain[2 * (7 + i)] = 110 + RADIUS * sin(t);
        plain[2 * (7 + i) + 1] = RADIUS * (1 - cos(t));
    }
    for (int i = 0; i < POINTS; i++) {
        const double x = plain[2 * i], y = flip * plain[2 * i + 1];
        xy[2 * i] = x0 + x * cos(a) - y * sin(a);
        xy[2 * i + 1] = y0 + x * sin(a) + y * cos(a);
        width[i] = 3.5f;
    }
    for (int i = 0; i < CARS; i++) {
        const double x = cars[i].x, y = flip * cars[i].y;
        pose[3 * i] = x0 + x * cos(a) - y * sin(a);
        pose[3 * i + 1] = y0 + x * sin(a) + y * cos(a);
        pose[3 * i + 2] = a + flip * cars[i].heading;
        motion[4 * i] = (float)cars[i].speed;
        motion[4 * i + 2] = 4;
        node[DT_NODE_FEATURES * i + 3] = (float)i;
    }
    left[RIGHT] = flip > 0 ? LEFT : -1;
    right[RIGHT] = flip > 0 ? -1 : LEFT;
    left[LEFT] = flip > 0 ? -1 : RIGHT;
    right[LEFT] = flip > 0 ? RIGHT : -1;
}

static mock_host host;
static lanes roads;

static void start(void)
{
    mock_host_init(&host);
    assert_int_equal(lanes_init(&roads, &host.host, &view, PAST), DT_OK);
}

static void stop(void)
{
    lanes_fini(&roads);
    assert_int_equal(host.n_live, 0);
}

#endif
