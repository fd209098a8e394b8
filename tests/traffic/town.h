/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording of a town, wide enough to be cut by place: cars that come, drive along streets, hide for a while and go.
 */
#ifndef DTRAIN_TESTS_DATA_TOWN_H
#define DTRAIN_TESTS_DATA_TOWN_H

#include "fixture.h"

#include "base/rng.h"
#include "traffic/store/cut.h"
#include "traffic/store/store.h"

enum { TOWN_SCENES = 2, TOWN_FRAMES = 60, TOWN_CARS = 50 }; /* at 10 Hz */
#define TOWN_WIDE_M   1600.0
#define TOWN_HIGH_M   500.0
#define TOWN_RADIUS_M 60.0

static double town_draw(int scene, int frame, int car, uint32_t op)
{
    dt_rng_key key = {.seed = 41, .op = op, .step = (uint64_t)(scene * TOWN_FRAMES + frame)};
    return dt_rng_uniform(&key, (uint64_t)car);
}

static bool town_has(int s, int f, int c)
{
    const int from = (int)(30 * town_draw(s, 0, c, 1)) - 10, to = 30 + (int)(60 * town_draw(s, 0, c, 2));
    const bool is_away = c % 7 == 3 && f >= 25 && f < 40; /* longer than a second: another track */
    return f >= from && f < to && f != 20 && !is_away && town_draw(s, f, c, 3) > 0.03;
}

/* Out of sight for more than a second before, or never seen: its acceleration cannot be made from speeds. */
static bool town_is_new(int s, int f, int c)
{
    for (int before = f - 1; before >= 0 && before >= f - 10; before--) {
        if (town_has(s, before, c)) {
            return false;
        }
    }
    return true;
}

static int32_t town_map(dt_store_writer *w)
{
    dt_roads roads = {0};
    int32_t number[2] = {-1, -1}, map = -1;
    for (int i = 0; i < 5; i++) {
        const double y = 100 * i, xy[] = {-100, y, 700, y}, on[] = {700, y, TOWN_WIDE_M + 100, y + 40};
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

static void write_town(const char *name, double smooth_s, const dt_packing *packing)
{
    const dt_store_meta meta = {.frame_rate_hz = 10,
                                .radius_m = TOWN_RADIUS_M,
                                .k_max = 6,
                                .smooth_s = smooth_s,
                                .source = "town",
                                .packing = *packing};
    dt_store_writer *w = NULL;
    assert_ok(dt_store_create(at(name), &meta, &w));
    const int32_t map = town_map(w);
    for (int s = 0; s < TOWN_SCENES; s++) {
        assert_ok(dt_store_scene_begin(w));
        assert_ok(dt_store_scene_map(w, s == 0 ? map : -1));
        for (int f = 0; f < TOWN_FRAMES; f++) {
            dt_vehicle v[TOWN_CARS];
            uint32_t n = 0;
            for (int c = 0; c < TOWN_CARS; c++) {
                const double dir = c % 2 == 0 ? 1 : -1, shake = c % 10 == 0 && f > 15 ? 1 : 0.2; /* some brake hard */
                const double speed = 30 * town_draw(s, 0, c, 7) + shake * town_draw(s, f, c, 8);
                if (town_has(s, f, c)) {
                    v[n++] = (dt_vehicle){.id = 100 + c,
                                          .x = TOWN_WIDE_M * town_draw(s, 0, c, 4) + dir * speed * 0.1 * f,
                                          .y = 100 * (c % 5) + 3 * town_draw(s, f, c, 5),
                                          .heading = dir > 0 ? 0.1 : 3.1,
                                          .speed = speed,
                                          .accel = town_is_new(s, f, c) ? 0 : NAN,
                                          .length = 4 + 0.01 * c,
                                          .width = 2,
                                          .stop_distance = c % 3 == 0 ? 3.0 * c : NAN,
                                          .controlled = c % 4 == 0};
                }
            }
            assert_ok(dt_store_frame(w, f, 7 + 0.1 * f, v, n));
        }
        assert_ok(dt_store_scene_end(w, s == 0 ? "town" : "town2#1", s == 0 ? "north" : "south"));
    }
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

/* The row of the same vehicle in the same frame of another store, whose scene this is; -1: it is not there. */
__attribute__((unused)) static int64_t town_row(const dt_store *s, int64_t scene, int64_t frame, int64_t id)
{
    const dt_store_view *v = dt_store_view_of(s);
    const int64_t f = v->scene_frame[scene] + frame;
    for (int64_t r = v->frame_row[f]; r < v->frame_row[f + 1]; r++) {
        if (dt_store_track_ids(s)[v->row_track[r]] == id) {
            return r;
        }
    }
    return -1;
}

/* Scene of the town that a region is of. */
__attribute__((unused)) static int64_t town_of(const dt_store *regions, int64_t scene)
{
    return strncmp(dt_store_view_of(regions)->scene[scene], "town2", 5) == 0;
}

#endif
