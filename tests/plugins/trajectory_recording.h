/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording that is a table in memory, and stores of it: what tests of data_trajectory hold its windows against.
 */
#ifndef DTRAIN_TESTS_PLUGINS_TRAJECTORY_RECORDING_H
#define DTRAIN_TESTS_PLUGINS_TRAJECTORY_RECORDING_H

#include "../traffic/fixture.h"

#include "base/rng.h"
#include "traffic/store/store.h"

enum { SCENES = 7, FRAMES = 60, CARS = 9, T = 4, F = 5, STRIDE = 2 }; /* 10 Hz recorded, windows at 5 Hz */
static const char *const scene_name[SCENES] = {"a#1", "a#2", "b", "c", "d#9", "e", "f"};
static const char *const site_name[SCENES] = {"north", "north", "north", "south", "south", "south", "north"};

typedef struct seen {
    bool is_there;
    double x, y, heading, speed, accel;
} seen;
static seen recorded[SCENES][FRAMES][CARS];

static double draw(int scene, int frame, int car, uint32_t op)
{
    dt_rng_key key = {.seed = 77, .op = op, .step = (uint64_t)(scene * FRAMES + frame)};
    return dt_rng_uniform(&key, (uint64_t)car);
}

/* Cars of a scene come and go, now and then one is missing for a frame; frames 20 of each scene are empty. */
static void record(void)
{
    memset(recorded, 0, sizeof(recorded));
    for (int s = 0; s < SCENES; s++) {
        for (int f = 0; f < FRAMES; f++) {
            for (int c = 0; c < CARS; c++) {
                bool is_in = f >= (int)(30 * draw(s, 0, c, 1)) - 10 && f < 30 + (int)(60 * draw(s, 0, c, 2));
                bool is_hidden = draw(s, f, c, 3) < 0.05 || f == 20;
                recorded[s][f][c] = (seen){.is_there = is_in && !is_hidden,
                                           .x = 5000 + 6.0 * f / 10 * c + 40 * draw(s, 0, c, 4),
                                           .y = -300 + 20 * draw(s, 0, c, 5) + 0.1 * f,
                                           .heading = 6 * draw(s, 0, c, 6) - 3 + 0.01 * f,
                                           .speed = 15 * draw(s, f, c, 7),
                                           .accel = 8 * draw(s, f, c, 8) - 5};
            }
        }
    }
}

/* Lanes side by side under the cars, each with one that goes on. */
static int32_t add_map(dt_store_writer *w)
{
    dt_roads roads = {0};
    int32_t number[2] = {-1, -1}, map = -1;
    for (int i = 0; i < 6; i++) {
        const double y = -300 + 4 * i, xy[] = {4990, y, 5050, y + 5}, on[] = {5050, y + 5, 5100, y + 50};
        const dt_road_lane lane[2] = {{.id = i, .kind = DT_LANE_ROAD, .limit = 14, .xy = xy, .n = 2},
                                      {.id = 10 + i, .kind = DT_LANE_RAMP, .xy = on, .n = 2}};
        assert_ok(dt_roads_lane(&roads, "a lane", &lane[0], &number[0]));
        assert_ok(dt_roads_lane(&roads, "a lane", &lane[1], &number[1]));
        assert_ok(dt_roads_link(&roads, number[0], number[1]));
    }
    assert_ok(dt_roads_seal(&roads));
    assert_ok(dt_store_map(w, "town", &roads, &map));
    dt_roads_fini(&roads);
    return map;
}

/* What is recorded, with roads: in the first scene. */
static void write_recorded(const char *name, double rate_hz, bool has_roads, const dt_packing *packing)
{
    dt_store_meta meta = {.frame_rate_hz = rate_hz, .source = "test", .packing = *packing};
    dt_store_writer *w = NULL;
    assert_ok(dt_store_create(at(name), &meta, &w));
    const int32_t map = has_roads ? add_map(w) : -1;
    for (int s = 0; s < SCENES; s++) {
        assert_ok(dt_store_scene_begin(w));
        if (has_roads && s == 0) {
            assert_ok(dt_store_scene_map(w, map));
        }
        for (int f = 0; f < FRAMES; f++) {
            dt_vehicle v[CARS];
            uint32_t n = 0;
            for (int c = 0; c < CARS; c++) {
                const seen *r = &recorded[s][f][c];
                if (r->is_there) {
                    v[n++] = (dt_vehicle){.id = 100 + c,
                                          .x = r->x,
                                          .y = r->y,
                                          .heading = r->heading,
                                          .speed = r->speed,
                                          .accel = r->accel,
                                          .length = 4 + c,
                                          .width = 2,
                                          .stop_distance = 10 * c};
                }
            }
            assert_ok(dt_store_frame(w, f, 0.1 * f, v, n));
        }
        assert_ok(dt_store_scene_end(w, scene_name[s], site_name[s]));
    }
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

static void write_store_of(const char *name, double rate_hz, bool has_roads, const dt_packing *packing)
{
    record();
    write_recorded(name, rate_hz, has_roads, packing);
}

__attribute__((unused)) static void write_store(const char *name, double rate_hz)
{
    write_store_of(name, rate_hz, false, &(dt_packing){0});
}

#define WINDOW "cache_mb=1", "history_s=0.8", "horizon_s=1", "rate_hz=5", "stride_s=0.2", "folds=3"

#endif
