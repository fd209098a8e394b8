/* SPDX-License-Identifier: Apache-2.0
 *
 * How scenes are dealt to folds: nobody on both sides who was recorded twice, every scene in one fold, sites balanced.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../plugins/data_trajectory/folds.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SCENES = 10, FRAMES = 80, CARS = 3, ROWS = SCENES * FRAMES * CARS, LATER = 30, FOLDS = 3 };

/* Scenes 1 and 4 are one recording LATER frames apart under two names, as are 7 and 8 by their names; 9 copies scene 1
 * too, but on another site. The last scene of each site is half as long. */
static int64_t scene_frame[SCENES + 1], frame_row[SCENES * FRAMES + 1], track_ptr[SCENES * CARS + 1], track_row[ROWS];
static int32_t row_track[ROWS], scene_site[SCENES] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
static float motion[4 * ROWS];
static const char *const scene[SCENES] = {"a", "b", "c", "d", "e", "a", "b", "c#1", "c#2", "d"};
static const char *const site[] = {"north", "south"};
static dt_store_view view = {.struct_size = sizeof(dt_store_view),
                             .n_sites = 2,
                             .frame_rate_hz = 10,
                             .n_scenes = SCENES,
                             .scene_frame = scene_frame,
                             .frame_row = frame_row,
                             .motion = motion,
                             .row_track = row_track,
                             .track_ptr = track_ptr,
                             .track_row = track_row,
                             .scene_site = scene_site,
                             .site = site,
                             .scene = scene};

static double speed(int s, int frame, int car, double least)
{
    const int from = s == 4 || s == 9 ? 1 : s, at = s == 4 ? frame + LATER : frame;
    return least + fabs(5 * sin(0.7331 * (from * CARS + car) + 0.05 * at));
}

static void record(double least)
{
    int64_t row = 0;
    for (int s = 0; s < SCENES; s++) {
        for (int f = 0; f < FRAMES; f++) {
            frame_row[s * FRAMES + f] = row;
            for (int c = 0; c < CARS; c++, row++) {
                const int64_t track = s * CARS + c;
                row_track[row] = (int32_t)track;
                track_row[track * FRAMES + f] = row;
                motion[4 * row] = (float)speed(s, f, c, least);
                motion[4 * row + 1] = (float)(speed(s, f + 1, c, least) - speed(s, f, c, least));
                motion[4 * row + 2] = 4.5f;
            }
        }
        scene_frame[s + 1] = (s + 1) * FRAMES;
    }
    frame_row[SCENES * FRAMES] = row;
    for (int t = 0; t <= SCENES * CARS; t++) {
        track_ptr[t] = t * FRAMES;
    }
    view.n_frames = SCENES * FRAMES;
    view.n_rows = row;
    view.n_tracks = SCENES * CARS;
}

/* fold_of [SCENES]; every scene is held by exactly one fold. */
static void deal_all(mock_host *h, int fold_of[SCENES])
{
    memset(fold_of, -1, SCENES * sizeof(*fold_of));
    for (int k = 0; k < FOLDS; k++) {
        uint8_t held[SCENES];
        assert_int_equal(folds_deal(&h->host, &view, FOLDS, k, held), DT_OK);
        for (int s = 0; s < SCENES; s++) {
            if (held[s]) {
                assert_int_equal(fold_of[s], -1);
                fold_of[s] = k;
            }
        }
    }
    for (int s = 0; s < SCENES; s++) {
        assert_true(fold_of[s] >= 0);
    }
    assert_int_equal(h->n_live, 0);
}

static void test_scenes_that_overlap_stay_together(void **test)
{
    mock_host h;
    mock_host_init(&h);
    int fold_of[SCENES];
    record(2);
    deal_all(&h, fold_of);
    assert_int_equal(fold_of[1], fold_of[4]); /* by what was recorded */
    assert_int_equal(fold_of[7], fold_of[8]); /* by name */
    /* largest first, to the emptiest: the pair alone, the others in turn over the two folds that are left */
    static const int expected[SCENES] = {1, 0, 2, 1, 0, 1, 2, 0, 0, 1};
    assert_memory_equal(fold_of, expected, sizeof(expected));
}

static void test_who_is_one_by_motion(void **test)
{
    mock_host h;
    mock_host_init(&h);
    int64_t first[2] = {7, 7};
    record(2);
    assert_int_equal(folds_find_shared(&h.host, &view, first), DT_OK);
    assert_true(first[0] == 1 && first[1] == 4);
    memset(motion, 0, sizeof(motion)); /* 7 and 8 are one by name, which is known */
    assert_int_equal(folds_find_shared(&h.host, &view, first), DT_OK);
    assert_true(first[0] == -1 && first[1] == -1);
    h.fail_alloc = 1;
    assert_int_equal(folds_find_shared(&h.host, &view, first), DT_ENOMEM);
    assert_int_equal(h.n_live, 0);
}

/* Nothing is known to be shared: the five scenes of the first site are spread evenly. */
static void assert_spread(void)
{
    mock_host h;
    mock_host_init(&h);
    int fold_of[SCENES], n[FOLDS] = {0};
    deal_all(&h, fold_of);
    for (int s = 0; s < 5; s++) {
        n[fold_of[s]]++;
    }
    assert_true(n[0] == 2 && n[1] == 2 && n[2] == 1);
}

/* Who stands still or keeps the limit looks like all that do, and in a simulation many start alike. */
static void test_vehicles_that_move_alike_prove_nothing(void **test)
{
    record(2);
    memset(motion, 0, sizeof(motion));
    assert_spread();
    for (int64_t r = 0; r < ROWS; r++) {
        motion[4 * r] = 13.89f;
        motion[4 * r + 2] = 5;
    }
    assert_spread();
    for (int64_t r = 0; r < ROWS; r++) { /* all accelerate at once */
        motion[4 * r] = 2 + 0.26f * (float)(r / CARS % FRAMES);
        motion[4 * r + 1] = 2.6f;
    }
    assert_spread();
}

static void test_a_site_is_held_out_whole(void **test)
{
    mock_host h;
    mock_host_init(&h);
    uint8_t held[SCENES];
    record(2);
    assert_int_equal(folds_of_site(&h.host, &view, "south", held), DT_OK);
    for (int s = 0; s < SCENES; s++) {
        assert_int_equal(held[s], s >= 5);
    }
    assert_int_equal(folds_of_site(&h.host, &view, "east", held), DT_ECONFIG);
    assert_non_null(strstr(h.message, "\"east\" is not among the store's sites: north, south"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scenes_that_overlap_stay_together),
        cmocka_unit_test(test_who_is_one_by_motion),
        cmocka_unit_test(test_vehicles_that_move_alike_prove_nothing),
        cmocka_unit_test(test_a_site_is_held_out_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
