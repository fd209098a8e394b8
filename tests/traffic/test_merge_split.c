/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/store/merge_split.c: what stores out of stores hold, and that a store cut into parts and put
 * together again is the same bytes.
 */
#include "fixture.h"

#include "traffic/import/import.h"
#include "traffic/inspect/inspect.h"
#include "traffic/store/merge_split.h"
#include "traffic/inspect/survey.h"

static dt_str notes;

static int finish(void **state)
{
    dt_str_fini(&notes);
    return end(state);
}

/* Scenes of so many frames each (5 Hz), two cars in all but the second frame, which is empty. Numbers are such that
 * floats keep them whole. */
static void make(const char *name, int n_scenes, const char *prefix, double smooth_s, double radius_m)
{
    dt_store_writer *w = NULL;
    const dt_store_meta meta = {
        .frame_rate_hz = 5, .smooth_s = smooth_s, .radius_m = radius_m, .k_max = 4, .source = name};
    assert_ok(dt_store_create(at(name), &meta, &w));
    for (int k = 0; k < n_scenes; k++) {
        char scene[64], site[16];
        assert_ok(dt_store_scene_begin(w));
        for (int f = 0; f < 10; f++) {
            dt_vehicle v[2];
            for (int i = 0; i < 2; i++) {
                v[i] = (dt_vehicle){.id = 100 * i + k,
                                    .x = 64 * k + 12.125 * i + f * (4 - 3 * i),
                                    .y = 0.25 * i,
                                    .heading = 0.5,
                                    .speed = 20 - 15 * i - (f > 4 ? 2 * (f - 4) : 0),
                                    .accel = NAN,
                                    .length = 4.5,
                                    .width = i == 0 ? 2 : NAN,
                                    .stop_distance = i == 0 ? 50 - f : NAN,
                                    .controlled = i == 1};
            }
            assert_ok(dt_store_frame(w, f, 100 + 0.2 * f, v, f == 1 ? 0 : 2));
        }
        snprintf(scene, sizeof(scene), "%s%d#%d", prefix, k / 2, k % 2 + 1);
        snprintf(site, sizeof(site), "%s/%d", prefix, k % 3);
        assert_ok(dt_store_scene_end(w, scene, site));
    }
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

static void assert_same_arrays(const char *a, const char *b)
{
    char **names = NULL, path[1024];
    size_t n = 0;
    int n_arrays = 0;
    assert_ok(dt_fs_list(at(a), &names, &n));
    for (size_t i = 0; i < n; i++) {
        if (strstr(names[i], ".npy") != NULL) {
            char *one = NULL, *two = NULL;
            size_t n_one = 0, n_two = 0;
            snprintf(path, sizeof(path), "%s/%s", at(a), names[i]);
            assert_ok(dt_fs_read_all(path, SIZE_MAX / 2, &one, &n_one));
            snprintf(path, sizeof(path), "%s/%s", at(b), names[i]);
            assert_ok(dt_fs_read_all(path, SIZE_MAX / 2, &two, &n_two));
            assert_int_equal(n_one, n_two);
            assert_memory_equal(one, two, n_one);
            dt_free(one);
            dt_free(two);
            n_arrays++;
        }
    }
    assert_true(n_arrays >= 15);
    dt_fs_list_free(names, n);
}

typedef struct found {
    int64_t scenes, frames, rows;
    char first[64];
} found;

static found look(const char *name)
{
    dt_store *s = NULL;
    assert_ok(dt_store_open(at(name), &s));
    const dt_store_view *v = dt_store_view_of(s);
    found f = {.scenes = v->n_scenes, .frames = v->n_frames, .rows = v->n_rows};
    snprintf(f.first, sizeof(f.first), "%s", v->scene[0]);
    assert_true(dt_store_radius_m(s) == 30 && dt_store_neighbours(s) == 4);
    dt_store_close(s);
    return f;
}

static void test_merge(void **state)
{
    for (int smoothed = 0; smoothed < 2; smoothed++) {
        const double smooth_s = smoothed ? 0.5 : 0;
        make("a", 4, "a", smooth_s, 30);
        make("b", 2, "b", smooth_s, 30);
        const char *alone[] = {at("a")};
        assert_ok(dt_data_merge(alone, 1, at("same"), NULL, &notes));
        assert_same_arrays("a", "same");
        const char *both[] = {at("a"), at("b")};
        assert_ok(dt_data_merge(both, 2, at("both"), NULL, &notes));
        const found f = look("both");
        assert_int_equal(f.scenes, 6);
        assert_int_equal(f.frames, 60);
        assert_int_equal(f.rows, 6 * 18);
        assert_ok(dt_fs_remove_tree(top));
        assert_ok(dt_fs_mkdirs(top));
    }
    make("a", 2, "a", 0, 30);
    make("again", 1, "a", 0, 30);
    make("wide", 1, "w", 0, 60);
    make("smooth", 1, "s", 0.5, 30);
    assert_fails(dt_data_merge((const char *[]){at("a"), at("again")}, 2, at("m"), NULL, &notes), DT_EDATA,
                 "scene a0 is in a store before it too");
    assert_fails(dt_data_merge((const char *[]){at("a"), at("wide")}, 2, at("m"), NULL, &notes), DT_EDATA,
                 "radius_m is 30 in");
    assert_fails(dt_data_merge((const char *[]){at("a"), at("smooth")}, 2, at("m"), NULL, &notes), DT_EDATA,
                 "smooth_s is 0 in");
    assert_fails(dt_data_merge((const char *[]){at("a"), at("none")}, 2, at("m"), NULL, &notes), DT_ENOTFOUND,
                 "no store at");
    assert_fails(dt_data_merge((const char *[]){at("a")}, 1, at("wide"), NULL, &notes), DT_EINVAL, "exists already");
    assert_false(dt_fs_is_dir(at("m")));
    assert_false(dt_fs_is_dir(at("m.partial")));
}

/* A scene that is another one again is kept, left out, or the end; left out, it is as if it never came. */
static void test_repeats(void **state)
{
    dt_store *s = NULL;
    dt_str text = {0};
    make("a", 4, "a", 0.5, 30);
    make("b", 1, "b", 0.5, 30); /* what a0#1 is */
    make("c", 2, "c", 0.5, 30); /* that, and a0#2 */
    char path[3][256];
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/%c", top, 'a' + i);
    }
    const char *const all[] = {path[0], path[1], path[2]};
    assert_ok(dt_data_merge(all, 3, at("kept"), NULL, &notes));
    assert_int_equal(look("kept").scenes, 7);
    assert_ok(dt_data_inspect(at("kept"), true, &text));
    assert_non_null(strstr(dt_str_text(&text), "\"repeats\":3,\"repeated\":[{\"scene\":\"b0#1\",\"is\":\"a0#1\""));
    const dt_packing skip = {.repeats = DT_REPEATS_SKIP}, refuse = {.repeats = DT_REPEATS_REFUSE};
    assert_ok(dt_data_merge(all, 3, at("less"), &skip, &notes));
    assert_same_arrays("a", "less");
    assert_ok(dt_store_open(at("less"), &s));
    assert_int_equal(dt_store_view_of(s)->n_sites, 3);
    dt_store_close(s);
    assert_fails(dt_data_merge(all, 3, at("m"), &refuse, &notes), DT_EDATA, "scene b0#1 repeats scene a0#1");
    assert_false(dt_fs_is_dir(at("m")));
    dt_str_fini(&text);
}

/* What a closer look sees: a hole, an empty frame, speeds in km/h. */
static void test_survey(void **state)
{
    dt_store_writer *w = NULL;
    dt_store *s = NULL;
    dt_survey u;
    dt_str text = {0};
    const dt_store_meta meta = {.frame_rate_hz = 5, .source = "t"};
    assert_ok(dt_store_create(at("s"), &meta, &w));
    assert_ok(dt_store_scene_begin(w));
    for (int f = 0; f < 60; f++) {
        dt_vehicle v[2];
        for (int i = 0; i < 2; i++) {
            v[i] = (dt_vehicle){.id = i, .x = 2.0 * f, .y = 10.0 * i, .heading = 90, .speed = 36, .accel = NAN};
            v[i].length = v[i].width = 2;
            v[i].stop_distance = NAN;
        }
        assert_ok(dt_store_frame(w, f, 0.2 * f, v, f == 20 ? 0 : f == 30 || f == 31 ? 1 : 2));
    }
    assert_ok(dt_store_scene_end(w, "a", "x"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    assert_ok(dt_store_open(at("s"), &s));
    assert_ok(dt_survey_make(s, &u));
    assert_int_equal(u.empty_frames, 1);
    assert_int_equal(u.broken_tracks, 2);
    assert_int_equal(u.missing_rows, 1 + 3);
    assert_true(u.longest_gap_s == 0.4);
    assert_true(fabs(u.units.by_speed / u.units.moving_s - 36) < 1e-6 && u.units.heading_most == 90);
    assert_true(u.units.checked[DT_UNITS_SPEED] > 80 && u.units.off[DT_UNITS_SPEED] == u.units.checked[DT_UNITS_SPEED]);
    assert_int_equal(u.units.off[DT_UNITS_HEADING], u.units.checked[DT_UNITS_HEADING]);
    uint32_t n = 0;
    for (int i = 0; i < DT_SURVEY_BINS; i++) {
        n += u.edge[0][i];
    }
    assert_int_equal(n, 2 * 57); /* pairs see each other in 57 frames; nobody sees itself */
    assert_int_equal(u.node[0][0] + u.node[0][31], 8);
    dt_survey_text(&u, s, &text);
    assert_non_null(strstr(dt_str_text(&text), "3.60"));
    assert_non_null(strstr(dt_str_text(&text), "as if they were compass bearings in degrees"));
    dt_str_fini(&text);
    dt_store_close(s);
}

static void test_split_by_site(void **state)
{
    make("a", 6, "a", 0, 30);
    assert_ok(dt_data_split(at("a"), at("parts"), &(dt_split_options){.by = DT_SPLIT_SITE, .share = 0.5}, &notes));
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof(name), "parts/a%%2F%d", i); /* a '/' in a site's name is no folder */
        assert_int_equal(look(name).scenes, 2);
    }
    assert_fails(dt_data_split(at("a"), at("parts"), &(dt_split_options){.by = DT_SPLIT_SITE, .share = 0.5}, &notes),
                 DT_EINVAL, "exists already");
}

/* Both parts hold whole recordings, together all of them, and the seed decides. */
static void test_split_by_scene(void **state)
{
    bool differ = false;
    char first[64] = "";
    make("a", 10, "a", 0, 30);
    for (uint64_t seed = 0; seed < 8; seed++) {
        const dt_split_options opt = {.by = DT_SPLIT_SCENE, .share = 0.6, .seed = seed};
        assert_ok(dt_data_split(at("a"), at("p"), &opt, &notes));
        const found one = look("p/first"), two = look("p/second");
        assert_int_equal(one.scenes, 6); /* three recordings of five, two scenes each */
        assert_int_equal(two.scenes, 4);
        assert_true(strncmp(one.first, two.first, 2) != 0);
        differ |= seed > 0 && strcmp(first, one.first) != 0;
        snprintf(first, sizeof(first), "%s", one.first);
        /* no recording is in both: together they are a store */
        assert_ok(dt_data_merge((const char *[]){at("p/first"), at("p/second")}, 2, at("m"), NULL, &notes));
        assert_int_equal(look("m").scenes, 10);
        assert_ok(dt_fs_remove_tree(at("p")));
        assert_ok(dt_fs_remove_tree(at("m")));
    }
    assert_true(differ);
    make("one", 2, "o", 0, 30);
    assert_fails(dt_data_split(at("one"), at("p"), &(dt_split_options){.share = 0.5}, &notes), DT_EDATA,
                 "contains only one recording: split it by time");
    assert_fails(dt_data_split(at("one"), at("p"), &(dt_split_options){.share = 1}, &notes), DT_EINVAL,
                 "outside (0, 1)");
    assert_false(dt_fs_is_dir(at("p")));
    assert_false(dt_fs_is_dir(at("p.partial")));
}

static void test_split_by_time(void **state)
{
    make("a", 2, "a", 0, 30);
    assert_ok(
        dt_data_split(at("a"), at("p"), &(dt_split_options){.by = DT_SPLIT_TIME, .share = 0.6, .gap_s = 0.4}, &notes));
    assert_int_equal(look("p/first").frames, 12); /* six of ten, twice */
    assert_int_equal(look("p/first").rows, 2 * 10);
    assert_int_equal(look("p/second").frames, 4); /* ten without six and a gap of two */
    dt_store *s = NULL;
    assert_ok(dt_store_open(at("p/second"), &s));
    assert_true(dt_store_view_of(s)->frame_time[0] == 100 + 0.2 * 8);
    dt_store_close(s);
    assert_fails(
        dt_data_split(at("a"), at("q"), &(dt_split_options){.by = DT_SPLIT_TIME, .share = 0.6, .gap_s = 9}, &notes),
        DT_EDATA, "second would hold no row");
    assert_false(dt_fs_is_dir(at("q")));
    assert_false(dt_fs_is_dir(at("q.partial")));
}

static void test_sample(void **state)
{
    bool differ = false;
    char first[64] = "";
    make("a", 6, "a", 0, 30);
    assert_ok(dt_data_sample(at("a"), at("whole"), &(dt_sample_options){0}, &notes));
    assert_same_arrays("a", "whole");
    for (uint64_t seed = 0; seed < 6; seed++) {
        const dt_sample_options opt = {.scenes = 2, .seconds = 0.8, .seed = seed};
        assert_ok(dt_data_sample(at("a"), at("x"), &opt, &notes));
        assert_ok(dt_data_sample(at("a"), at("y"), &opt, &notes));
        assert_same_arrays("x", "y");
        const found f = look("x");
        assert_int_equal(f.scenes, 2);
        assert_int_equal(f.frames, 2 * 5);
        differ |= seed > 0 && strcmp(first, f.first) != 0;
        snprintf(first, sizeof(first), "%s", f.first);
        assert_ok(dt_fs_remove_tree(at("x")));
        assert_ok(dt_fs_remove_tree(at("y")));
    }
    assert_true(differ);
    assert_fails(dt_data_sample(at("a"), at("x"), &(dt_sample_options){.seconds = -1}, &notes), DT_EINVAL, "negative");
}

/* Whatever fails, nothing is left and nothing leaks. */
static void test_interruptions(void **state)
{
    static const char *const points[] = {"alloc", "fs.*"};
    make("a", 4, "a", 0, 30);
    for (size_t p = 0; p < 2; p++) {
        for (int n = 1;; n += n < 40 ? 1 : 7) {
            char spec[32];
            dt_str_fini(&notes);
            const uint64_t live = dt_alloc_live_bytes();
            snprintf(spec, sizeof(spec), "%s:%d", points[p], n);
            dt_fault_reset(spec);
            const dt_status st = dt_data_split(at("a"), at("p"), &(dt_split_options){.share = 0.5}, &notes);
            const bool is_over = dt_fault_count() == 0;
            dt_fault_reset(NULL);
            dt_str_fini(&notes);
            assert_int_equal(dt_alloc_live_bytes(), live);
            if (is_over) {
                assert_int_equal(st, DT_OK);
                assert_ok(dt_fs_remove_tree(at("p")));
                break;
            }
            assert_true(st == DT_OK || !dt_fs_is_dir(at("p")));
            assert_ok(dt_fs_remove_tree(at("p")));
            assert_ok(dt_fs_remove_tree(at("p.partial")));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_merge, begin, finish),
        cmocka_unit_test_setup_teardown(test_repeats, begin, finish),
        cmocka_unit_test_setup_teardown(test_survey, begin, finish),
        cmocka_unit_test_setup_teardown(test_split_by_site, begin, finish),
        cmocka_unit_test_setup_teardown(test_split_by_scene, begin, finish),
        cmocka_unit_test_setup_teardown(test_split_by_time, begin, finish),
        cmocka_unit_test_setup_teardown(test_sample, begin, finish),
        cmocka_unit_test_setup_teardown(test_interruptions, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
