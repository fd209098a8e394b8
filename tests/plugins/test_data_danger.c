/* SPDX-License-Identifier: Apache-2.0
 *
 * What a barrier learns of a store through data_trajectory (danger.c): pairs now and an action later, mirrored ones,
 * and the steps until a hazard, of a chase that is computed by hand.
 */
#include "trajectory_bench.h"

enum {
    LEADER,
    CHASER,
    BRAKER,
    DRIVERS,
    SHOTS = 61,
    GONE = 30,
    BRAKES = 12,
    CLOSE = 27,
    HIT = 57,
    AHEAD = 21,
    BESIDE = 28
};

/* At 10 Hz on a straight road: one at 20 m/s, 56.5 m behind one at 10 m/s; on the lane to its left one that brakes in
 * frames 12 to 15 and is not seen from frame 30 on. */
static void write_chase(const char *name)
{
    dt_store_meta meta = {.frame_rate_hz = 10, .source = "test"};
    dt_store_writer *w = NULL;
    assert_ok(dt_store_create(at(name), &meta, &w));
    assert_ok(dt_store_scene_begin(w));
    for (int f = 0; f < SHOTS; f++) {
        const double t = 0.1 * f;
        const dt_vehicle v[DRIVERS] = {
            {.id = 1, .x = 60.5 + 10 * t, .speed = 10, .length = 4, .width = 2, .stop_distance = NAN},
            {.id = 2, .x = 20 * t, .speed = 20, .length = 4, .width = 2, .stop_distance = NAN},
            {.id = 3,
             .x = 15 * t - 30,
             .y = 3.5,
             .speed = 15,
             .accel = f >= BRAKES && f < BRAKES + 4 ? -4 : 0,
             .length = 4,
             .width = 2,
             .stop_distance = NAN}};
        assert_ok(dt_store_frame(w, f, t, v, f < GONE ? DRIVERS : BRAKER));
    }
    assert_ok(dt_store_scene_end(w, "chase", "road"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

#define CHASE                                                                                                          \
    "history_s=0.2", "horizon_s=0.2", "rate_hz=5", "stride_s=0.1", "pairs=true", "action_s=0.5", "brake_mps2=6",       \
        "hazard_steps=4"

static float hazard_of(bench *b, uint64_t frame, int driver)
{
    const uint64_t key = 0;
    bench_read(b, &frame, &key, 1);
    return ((const float *)field_of(b, "hazard_in"))[driver];
}

static void assert_row(const float *got, double gap, double speed, double brake, double follower, double own)
{
    const double want[7] = {gap, speed, brake, follower, own, 0.5, 0};
    for (int d = 0; d < 7; d++) {
        assert_true(is_near(got[d], want[d]));
    }
}

static void test_pairs(void **state)
{
    bench b;
    write_chase("chase");
    assert_int_equal(bench_open(&b, "chase", (const char *const[]){CHASE, NULL}), DT_OK);
    const uint64_t frame[] = {0, 26}, key[] = {0, 0};
    bench_read(&b, frame, key, 2);
    assert_int_equal(b.n_fields, 25);
    const float *ahead = field_of(&b, "ahead"), *beside = field_of(&b, "beside"), *next = field_of(&b, "next_ahead");
    const float *next_beside = field_of(&b, "next_beside"), *there = field_of(&b, "next_present");
    assert_row(ahead + CHASER * AHEAD, 56.5, 10, 9, 20, 6);
    assert_row(ahead + LEADER * AHEAD, 1000, 0, 9, 10, 6);
    assert_row(beside + CHASER * BESIDE, 1000, 0, 9, 20, 6);
    assert_row(beside + CHASER * BESIDE + 7, 26, 20, 6, 15, 9);
    assert_row(beside + CHASER * BESIDE + 14, 0, 0, 9, 20, 6);
    assert_row(next + CHASER * AHEAD, 51.5, 10, 9, 20, 6); /* half a second later */
    assert_row(next_beside + CHASER * BESIDE + 7, 28.5, 20, 6, 15, 9);
    assert_row(ahead + (DRIVERS + CHASER) * AHEAD, 30.5, 10, 9, 20, 6); /* of the second sample */
    assert_true(there[BRAKER] == 1 && there[DRIVERS + CHASER] == 1 && there[DRIVERS + BRAKER] == 0);
    for (int d = 0; d < AHEAD; d++) {
        assert_true(next[(DRIVERS + BRAKER) * AHEAD + d] == 0);
    }
    bench_close(&b);
}

static void test_pairs_of_a_mirrored_scene(void **state)
{
    bench b;
    int flipped = 0;
    write_chase("chase");
    assert_int_equal(bench_open(&b, "chase", (const char *const[]){CHASE, "rotate=false", "shift_m=0", NULL}), DT_OK);
    for (uint64_t key = 1; key <= 16; key++) {
        const uint64_t frame = 0;
        bench_read(&b, &frame, &key, 1);
        const float *beside = (const float *)field_of(&b, "beside") + CHASER * BESIDE;
        const float *edges = field_of(&b, "edges");
        const int32_t *rowptr = field_of(&b, "rowptr"), *col = field_of(&b, "col");
        bool is_flipped = false; /* the braker then is to the right */
        for (int32_t e = rowptr[CHASER]; e < rowptr[CHASER + 1]; e++) {
            is_flipped = is_flipped || (col[e] == BRAKER && edges[4 * e + 1] < 0);
        }
        assert_row(beside + (is_flipped ? 21 : 7), 26, 20, 6, 15, 9);
        assert_row(beside + (is_flipped ? 7 : 21), 0, 20, 6, 0, 9);
        flipped += is_flipped;
    }
    assert_in_range(flipped, 1, 15);
    bench_close(&b);
}

static void test_hazards(void **state)
{
    bench b;
    write_chase("chase");
    assert_int_equal(
        bench_open(&b, "chase",
                   (const char *const[]){CHASE, "hazard_ttc_s=3", "hazard_mps2=3", "hazard_collisions=false", NULL}),
        DT_OK);
    assert_true(hazard_of(&b, 0, CHASER) == -4);         /* no farther is looked */
    assert_true(hazard_of(&b, CLOSE - 17, CHASER) == 3); /* 5 frames are an action */
    assert_true(hazard_of(&b, CLOSE - 5, CHASER) == 1 && hazard_of(&b, CLOSE - 4, CHASER) == 0);
    assert_true(hazard_of(&b, CLOSE, CHASER) == 0);
    assert_true(hazard_of(&b, 0, LEADER) == -4 && hazard_of(&b, SHOTS - 11, LEADER) == -2);
    assert_true(hazard_of(&b, SHOTS - 3, LEADER) == -1); /* not one whole action is known */
    assert_true(hazard_of(&b, 0, BRAKER) == 2 && hazard_of(&b, BRAKES + 3, BRAKER) == 0);
    assert_true(hazard_of(&b, GONE - 14, BRAKER) == -2); /* not seen any more */
    bench_close(&b);
    assert_int_equal(bench_open(&b, "chase", (const char *const[]){CHASE, "hazard_ttc_s=0", "hazard_mps2=0", NULL}),
                     DT_OK);
    assert_true(hazard_of(&b, HIT - 7, CHASER) == 1 && hazard_of(&b, HIT - 7, LEADER) == 1);
    assert_true(hazard_of(&b, HIT - 30, CHASER) == -4 && hazard_of(&b, 0, BRAKER) == -4);
    bench_close(&b);
}

/* One vehicle at (0, 1000 k) and another one, of which its danger depends; alike in all frames but for their way. */
typedef struct meeting {
    double x, y, heading, speed, other_speed; /* of the other one; speed: of the first */
    double width;                             /* of both */
    bool is_close, is_collision;              /* by time to collision; by touching */
} meeting;

static const meeting meetings[] = {
    {.x = 25, .speed = 20, .other_speed = 10, .width = 2, .is_close = true},           /* 21 m, 2.1 s */
    {.x = 25, .y = 1.7, .speed = 20, .other_speed = 10, .width = 2, .is_close = true}, /* half a lane is 1.75 m */
    {.x = 25, .y = -1.7, .speed = 20, .other_speed = 10, .width = 2, .is_close = true},
    {.x = 25, .y = 1.8, .speed = 20, .other_speed = 10, .width = 2},
    {.x = 25, .y = -1.8, .speed = 20, .other_speed = 10, .width = 2},
    {.x = 25, .heading = 3.14159265, .speed = 10, .other_speed = 10, .width = 2},           /* oncoming */
    {.x = 25, .heading = 1.2, .speed = 20, .other_speed = 0, .width = 2},                   /* crossing: cosine 0.36 */
    {.x = 25, .heading = 0.9, .speed = 20, .other_speed = 0, .width = 2, .is_close = true}, /* cosine 0.62 */
    {.x = 25, .speed = 10, .other_speed = 10, .width = 2},                                  /* no nearer */
    {.x = 45, .speed = 20, .other_speed = 19, .width = 2},                                  /* 41 s */
    {.x = -25, .speed = 10, .other_speed = 20, .width = 2}, /* the follower, which is its danger */
    {.y = 1.9, .width = 2, .is_collision = true},
    {.y = 2.1, .width = 2},
    {.y = 1.7, .width = NAN, .is_collision = true}, /* 1.8 m wide where it is not known */
    {.y = 1.9, .width = NAN},
    {.y = -0.9, .width = 1, .is_collision = true},
    {.y = -1.1, .width = 1},
};
enum { MEETINGS = sizeof(meetings) / sizeof(meetings[0]), MEETING_FRAMES = 4 };

static void write_meetings(const char *name)
{
    dt_store_meta meta = {.frame_rate_hz = 10, .source = "test"};
    dt_store_writer *w = NULL;
    assert_ok(dt_store_create(at(name), &meta, &w));
    assert_ok(dt_store_scene_begin(w));
    for (int f = 0; f < MEETING_FRAMES; f++) {
        dt_vehicle v[2 * MEETINGS];
        const double t = 0.1 * f;
        for (int k = 0; k < MEETINGS; k++) {
            const meeting *m = &meetings[k];
            v[2 * k] = (dt_vehicle){.id = 2 * k + 1,
                                    .x = m->speed * t,
                                    .y = 1000.0 * k,
                                    .speed = m->speed,
                                    .length = 4,
                                    .width = m->width,
                                    .stop_distance = NAN};
            v[2 * k + 1] = (dt_vehicle){.id = 2 * k + 2,
                                        .x = m->x + cos(m->heading) * m->other_speed * t,
                                        .y = 1000.0 * k + m->y + sin(m->heading) * m->other_speed * t,
                                        .heading = m->heading,
                                        .speed = m->other_speed,
                                        .length = 4,
                                        .width = m->width,
                                        .stop_distance = NAN};
        }
        assert_ok(dt_store_frame(w, f, t, v, 2 * MEETINGS));
    }
    assert_ok(dt_store_scene_end(w, "meetings", "road"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

static void test_hazards_by_geometry(void **state)
{
    static const char *const collisions[] = {"hazard_collisions=false", "hazard_collisions=true"};
    bench b;
    write_meetings("meetings");
    for (int with = 0; with < 2; with++) {
        assert_int_equal(
            bench_open(&b, "meetings",
                       (const char *const[]){"history_s=0.1", "horizon_s=0.1", "rate_hz=10", "stride_s=0.1",
                                             "pairs=true", "action_s=0.1", "hazard_steps=1", "hazard_ttc_s=3",
                                             "hazard_mps2=3", collisions[with], NULL}),
            DT_OK);
        for (int k = 0; k < MEETINGS; k++) {
            const bool is_hazard = meetings[k].is_close || (with == 1 && meetings[k].is_collision);
            const float got = hazard_of(&b, 0, 2 * k);
            if ((got >= 0) != is_hazard) {
                fail_msg("meeting %d, %s: a hazard in %g", k, collisions[with], (double)got);
            }
        }
        bench_close(&b);
    }
}

/* In a crowd the only danger may be by any edge, and vehicles of a frame by any number. The first vehicle drives at
 * 20 m/s; OTHERS - 1 others are next to it, three lanes away or more, at its speed, and one is 25 m ahead of it at
 * 10 m/s: number `ahead` among the others. */
enum { OTHERS = 70 };

static void write_crowd(const char *name, int ahead)
{
    dt_store_meta meta = {.frame_rate_hz = 10, .radius_m = 60, .k_max = OTHERS + 1, .source = "test"};
    dt_store_writer *w = NULL;
    assert_ok(dt_store_create(at(name), &meta, &w));
    assert_ok(dt_store_scene_begin(w));
    for (int f = 0; f < MEETING_FRAMES; f++) {
        dt_vehicle v[1 + OTHERS];
        const double t = 0.1 * f;
        v[0] = (dt_vehicle){.id = 1, .x = 20 * t, .speed = 20, .length = 4, .width = 2, .stop_distance = NAN};
        for (int k = 0; k < OTHERS; k++) { /* the k-th nearest: edges are in the order of distances */
            v[1 + k] = (dt_vehicle){.id = 2 + k, .speed = 20, .length = 4, .width = 2, .stop_distance = NAN};
            const double away = k < ahead ? 11 + 0.1 * k : 40 + 0.1 * k;
            v[1 + k].x = 20 * t;
            v[1 + k].y = k % 2 == 0 ? away : -away;
            if (k == ahead) {
                v[1 + k].x = 25 + 10 * t;
                v[1 + k].y = 0;
                v[1 + k].speed = 10;
            }
        }
        assert_ok(dt_store_frame(w, f, t, v, 1 + OTHERS));
    }
    assert_ok(dt_store_scene_end(w, name, "road"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

static void test_any_edge_is_seen(void **state)
{
    static const int place[] = {0, 1, 62, 63, 64, 65, OTHERS - 1};
    for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++) {
        bench b;
        char name[16];
        snprintf(name, sizeof(name), "crowd%d", place[i]);
        write_crowd(name, place[i]);
        assert_int_equal(bench_open(&b, name,
                                    (const char *const[]){"history_s=0.1", "horizon_s=0.1", "rate_hz=10",
                                                          "stride_s=0.1", "pairs=true", "action_s=0.1",
                                                          "hazard_steps=1", "hazard_ttc_s=3", "hazard_mps2=0", NULL}),
                         DT_OK);
        if (hazard_of(&b, 0, 0) != 0) {
            fail_msg("nothing is seen by edge %d", place[i]);
        }
        assert_true(hazard_of(&b, 0, 1 + place[i]) < 0); /* who is ahead is in no danger */
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pairs, begin, end),
        cmocka_unit_test_setup_teardown(test_pairs_of_a_mirrored_scene, begin, end),
        cmocka_unit_test_setup_teardown(test_hazards, begin, end),
        cmocka_unit_test_setup_teardown(test_hazards_by_geometry, begin, end),
        cmocka_unit_test_setup_teardown(test_any_edge_is_seen, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
