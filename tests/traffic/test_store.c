/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/store/store_write.c, store_open.c and those they call: what goes in comes out, tracks and
 * risk labels by hand, every refusal of a damaged store, and nothing left behind by an interrupted one.
 */
#include "damage.h"

#include "traffic/store/tracker.h"

#include <sys/stat.h>

static dt_vehicle car(int64_t id, double x, double speed)
{
    return (dt_vehicle){
        .id = id, .x = x, .speed = speed, .accel = NAN, .length = 4, .width = NAN, .stop_distance = NAN};
}

static dt_store_writer *create(const char *name, double rate_hz)
{
    dt_store_writer *w = NULL;
    dt_store_meta meta = {.frame_rate_hz = rate_hz, .source = "a \"test\""};
    assert_ok(dt_store_create(at(name), &meta, &w));
    return w;
}

/* Scene "a": vehicle 7 in frames 0..3, vehicle 9 in frames 1 and 3 (2 Hz); scene "b#1": vehicle 7 again, one frame. */
static void make_sound(const char *name)
{
    dt_store_writer *w = create(name, 2);
    assert_ok(dt_store_scene_begin(w));
    for (int64_t f = 0; f < 4; f++) {
        dt_vehicle v[2] = {car(7, (double)f, 10 - 2 * (double)f), car(9, 30 + (double)f, 5)};
        v[0].width = v[1].width = 1.8;
        v[0].accel = f == 0 ? 0 : NAN;
        v[1].accel = f == 1 ? 0 : NAN;
        assert_ok(dt_store_frame(w, f, 100 + 0.5 * (double)f, v, f % 2 == 1 ? 2 : 1));
    }
    assert_ok(dt_store_scene_end(w, "a", "north"));
    assert_ok(dt_store_scene_begin(w));
    dt_vehicle v = car(7, 0, 3);
    v.width = 1.8;
    v.accel = 0;
    assert_ok(dt_store_frame(w, 0, 0, &v, 1));
    assert_ok(dt_store_scene_end(w, "b#1", "south"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

static void test_contents(void **state)
{
    make_sound("s");
    dt_store *s = NULL;
    assert_ok(dt_store_open(at("s"), &s));
    const dt_store_view *v = dt_store_view_of(s);
    assert_true(v->frame_rate_hz == 2);
    assert_int_equal(v->n_scenes, 2);
    assert_int_equal(v->n_frames, 5);
    assert_int_equal(v->n_rows, 7);
    assert_int_equal(v->n_tracks, 3);
    assert_int_equal(v->n_edges, 4 + 4 + 3); /* rows 1, 2, 1, 2, 1; the pairs see each other */
    const int64_t scene_frame[] = {0, 4, 5}, frame_row[] = {0, 1, 3, 4, 6, 7}, track_ptr[] = {0, 4, 6, 7};
    const int64_t track_row[] = {0, 1, 3, 4, 2, 5, 6}, track_id[] = {7, 9, 7};
    const int32_t row_track[] = {0, 0, 1, 0, 0, 1, 2};
    assert_memory_equal(v->scene_frame, scene_frame, sizeof(scene_frame));
    assert_memory_equal(v->frame_row, frame_row, sizeof(frame_row));
    assert_memory_equal(v->track_ptr, track_ptr, sizeof(track_ptr));
    assert_memory_equal(v->track_row, track_row, sizeof(track_row));
    assert_memory_equal(v->row_track, row_track, sizeof(row_track));
    assert_memory_equal(dt_store_track_ids(s), track_id, sizeof(track_id));
    assert_string_equal(v->scene[1], "b#1");
    assert_string_equal(v->site[v->scene_site[0]], "north");
    assert_string_equal(v->site[v->scene_site[1]], "south");
    assert_string_equal(dt_store_source(s), "a \"test\"");
    assert_true(v->frame_time[3] == 101.5);
    /* accelerations from the speed before where there are none: -2 m/s in 0.5 s; 9 keeps its speed */
    assert_true(v->motion[4 * 0 + 1] == 0 && v->motion[4 * 1 + 1] == -4 && v->motion[4 * 5 + 1] == 0);
    assert_true(v->node[9 * 1 + 3] == -4 && v->motion[3] == 1.8f && v->motion[2] == 4);
    assert_true(v->pose[3 * 5] == 33);
    const int32_t edge_src[] = {0, 0, 1, 1, 0};
    assert_memory_equal(v->edge_src, edge_src, sizeof(edge_src));
    assert_true(v->edge[4 * 2] == 26); /* 31 - 1 - 4 */
    /* statistics: speeds 10 8 5 6 4 5 3 */
    assert_true(fabs(v->node_mean[2] - 41.0 / 7) < 1e-12);
    assert_true(dt_store_node_stat(s)[2].min == 3 && dt_store_node_stat(s)[2].max == 10);
    assert_true(dt_store_edge_stat(s)[0].max == 28 - 1 || dt_store_edge_stat(s)[0].max == 26);
    dt_store_close(s);
    assert_false(dt_fs_is_dir(at("s.partial")));
}

/* Vehicle 1 drives behind one that stands and one that drives, whose headings are unknown, and nothing else of them. */
static void make_unknown(const char *name, bool has_standing)
{
    dt_store_writer *w = create(name, 1);
    assert_ok(dt_store_scene_begin(w));
    for (int64_t f = 0; f < 6; f++) {
        dt_vehicle v[3] = {car(1, (double)f, 10), car(2, 30, 12), car(3, 45, 0)};
        v[1].heading = f == 0 ? NAN : 0;
        v[2].heading = NAN;
        v[2].length = NAN;
        assert_ok(dt_store_frame(w, f, (double)f, v, has_standing ? 3 : 2));
    }
    assert_ok(dt_store_scene_end(w, "a", "x"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
}

static void test_unknown(void **state)
{
    dt_store *s = NULL;
    make_unknown("s", true);
    assert_ok(dt_store_open(at("s"), &s));
    const dt_store_view *v = dt_store_view_of(s);
    assert_int_equal(dt_store_version(s), DT_STORE_VERSION);
    static const int64_t want[DT_N_UNKNOWN] = {1 + 6, 3, 6, 18};
    for (int k = 0; k < DT_N_UNKNOWN; k++) {
        assert_int_equal(dt_store_unknown(s, k), want[k]);
    }
    assert_true(isnan(v->pose[3 + 2]) && isnan(v->motion[4 + 1]) && isnan(v->motion[8 + 2]) && isnan(v->motion[3]));
    assert_true(v->node[9 + 2] == 12 && v->node[9 + 3] == 0 && v->node[18 + 6] == 4.5f);
    assert_true(v->node[9 + 4] == 0 && v->node[9 + 5] == 0 && v->node[27 + 9 + 5] == 1);
    /* frame 0: who drives without a heading is nobody's neighbour, who stands is one; neither has any */
    const int64_t edges[] = {0, 2, 3, 4, 7};
    assert_memory_equal(v->edge_ptr, edges, sizeof(edges));
    assert_true(v->edge_src[1] == 2 && v->edge[4] == 45 - 4.25f && v->edge[4 + 2] == 10);
    dt_store_close(s);
    /* risk: of 1 in frame 0 unknown, since 2 might come towards it; 2 is unknown there as well */
    make_unknown("moves", false);
    assert_ok(dt_store_open(at("moves"), &s));
    static const uint8_t risk[] = {3, 3, 0, 0, 0, 0, 3, 3, 3, 3, 3, 3};
    assert_memory_equal(dt_store_view_of(s)->risk, risk, sizeof(risk));
    dt_store_close(s);
    assert_ok(dt_fs_remove_tree(at("sound")));
    assert_int_equal(rename(at("s"), at("sound")), 0);
    restore();
    spoil_description("\"length\":6", "\"length\":5", "unknown.length is 5, and it is unknown in 6 rows");
    spoil_description("\"unknown\":{", "\"unknown_\":{", "pose.npy: heading of row 1 is nan");
    SPOIL("pose", double, DT_F64, 3, 2, NAN, "unknown.heading is 7, and it is unknown in 8 rows");
    SPOIL("motion", float, DT_F32, 4, 0, NAN, "motion.npy: speed of row 0 is nan");
}

/* One vehicle at 1 Hz, its accelerations given; labels by the definition: 3 frames ahead. */
static void test_risk(void **state)
{
    static const double accel[] = {0, 0, 0, 0, -4, 0, 0, 0, 0, 0, 0};
    static const uint8_t want[] = {0, 1, 1, 1, 2, 0, 0, 0, 3, 3, 3};
    dt_store_writer *w = create("s", 1);
    assert_ok(dt_store_scene_begin(w));
    for (int64_t f = 0; f < 11; f++) {
        dt_vehicle v = car(1, 0, 10);
        v.accel = accel[f];
        assert_ok(dt_store_frame(w, f, (double)f, &v, 1));
    }
    assert_ok(dt_store_scene_end(w, "a", "x"));
    assert_ok(dt_store_commit(w));
    dt_store_counts c;
    dt_store_writer_counts(w, &c);
    assert_int_equal(c.risk[0], 4);
    assert_int_equal(c.risk[1], 3);
    assert_int_equal(c.risk[2], 1);
    assert_int_equal(c.risk[3], 3);
    dt_store_destroy(w);
    dt_store *s = NULL;
    assert_ok(dt_store_open(at("s"), &s));
    assert_memory_equal(dt_store_view_of(s)->risk, want, sizeof(want));
    dt_store_close(s);
}

/* 12 m/s towards a leader that stands; the third vehicle has a hole in its track, which makes labels unknown. */
static void test_risk_of_leader_and_hole(void **state)
{
    dt_store_writer *w = create("s", 2);
    assert_ok(dt_store_scene_begin(w));
    for (int64_t f = 0; f < 12; f++) {
        /* gap 66 - 6 f: 1.5 s, which is not under 1.5 s, in frame 8; under it from frame 9 on */
        dt_vehicle v[3] = {car(1, 6 * (double)f, 12), car(2, 70, 0), car(3, -500, 5)};
        assert_ok(dt_store_frame(w, f, 0.5 * (double)f, v, f == 4 ? 2 : 3)); /* vehicle 3 is missing in frame 4 */
    }
    assert_ok(dt_store_scene_end(w, "a", "x"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    dt_store *s = NULL;
    assert_ok(dt_store_open(at("s"), &s));
    const dt_store_view *v = dt_store_view_of(s);
    static const uint8_t first[] = {0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2}, third[] = {3, 3, 3, 3, 0, 3, 3, 3, 3, 3, 3};
    for (int64_t i = 0; i < 12; i++) {
        assert_int_equal(v->risk[v->track_row[v->track_ptr[0] + i]], first[i]);
    }
    assert_int_equal(v->track_ptr[3] - v->track_ptr[2], 11);
    for (int64_t i = 0; i < 11; i++) {
        assert_int_equal(v->risk[v->track_row[v->track_ptr[2] + i]], third[i]);
    }
    dt_store_close(s);
}

/* Holes become empty frames; out of sight for more than a second is a new track. */
static void test_holes(void **state)
{
    dt_store_writer *w = create("s", 10);
    dt_vehicle v[2] = {car(1, 0, 0), car(2, 9, 0)};
    assert_ok(dt_store_scene_begin(w));
    assert_ok(dt_store_frame(w, 0, 0.0, v, 2));
    assert_ok(dt_store_frame(w, 10, 1.0, v, 1)); /* vehicle 1 after exactly a second: the same track */
    assert_ok(dt_store_frame(w, 11, 1.1, v, 2)); /* vehicle 2 after 1.1 s: a new one */
    assert_ok(dt_store_scene_end(w, "a", "x"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    dt_store *s = NULL;
    assert_ok(dt_store_open(at("s"), &s));
    const dt_store_view *view = dt_store_view_of(s);
    assert_int_equal(view->n_frames, 12);
    assert_int_equal(view->n_tracks, 3);
    assert_int_equal(view->frame_row[9] - view->frame_row[1], 0);
    assert_true(fabs(view->frame_time[5] - 0.5) < 1e-12);
    dt_store_close(s);
}

static void test_many_in_sight(void **state)
{
    dt_tracker t;
    dt_tracker_init(&t, 10);
    dt_tracked_vehicle *l = NULL;
    bool is_new = false;
    for (int64_t frame = 0; frame < 400; frame++) { /* 5 new vehicles a frame, each seen in 3 frames */
        for (int64_t id = 5 * (frame - 2); id < 5 * (frame + 1); id++) {
            assert_ok(dt_tracker_get(&t, id * 1000003, frame, &l, &is_new));
            assert_int_equal(is_new, id >= 5 * frame || frame == 0 || l->frame == frame);
            assert_int_equal(l->id, id * 1000003);
            l->frame = frame;
        }
    }
    assert_true(t.cap <= 1024); /* memory follows those in sight, not the 2000 that came by */
    dt_tracker_clear(&t);
    assert_ok(dt_tracker_get(&t, 5, 400, &l, &is_new));
    assert_true(is_new);
    dt_tracker_fini(&t);
}

static void test_writer_refusals(void **state)
{
    dt_store_meta meta = {.frame_rate_hz = 0};
    dt_store_writer *w = NULL;
    assert_fails(dt_store_create(at("s"), &meta, &w), DT_EINVAL, "frame rate 0 Hz");
    meta.frame_rate_hz = 5;
    put("taken", "x");
    assert_fails(dt_store_create(at("taken"), &meta, &w), DT_EINVAL, "exists already");
    w = create("s", 5);
    assert_true(dt_fs_is_dir(at("s.partial")));
    assert_fails(dt_store_commit(w), DT_EDATA, "contains no data");
    dt_vehicle v[2] = {car(3, 0, 0), car(3, 5, 0)};
    assert_fails(dt_store_frame(w, 0, 0, v, 1), DT_EINVAL, "outside a scene");
    assert_ok(dt_store_scene_begin(w));
    assert_fails(dt_store_scene_begin(w), DT_EINVAL, "before the last one ended");
    assert_fails(dt_store_scene_end(w, "a", "x"), DT_EDATA, "no vehicles");
    assert_fails(dt_store_frame(w, 0, 0, v, 2), DT_EDATA, "vehicle 3 is in the frame twice");
    dt_store_destroy(w);
    assert_false(dt_fs_is_dir(at("s.partial")));
    w = create("s", 5);
    assert_ok(dt_store_scene_begin(w));
    assert_ok(dt_store_frame(w, 4, 0, v, 1));
    assert_fails(dt_store_frame(w, 4, 0, v, 1), DT_EINVAL, "frame 4 comes after frame 4");
    v[0].length = -1;
    assert_fails(dt_store_frame(w, 5, 0, v, 1), DT_EDATA, "length -1");
    assert_fails(dt_store_commit(w), DT_EINVAL, "still open");
    dt_store_destroy(w);
    dt_store_destroy(NULL);
    make_sound("whole");
    assert_ok(dt_fs_mkdirs(at("whole/below")));
    const char *const within[] = {"whole/s", "whole/below/s", "whole//s"};
    for (size_t i = 0; i < 3; i++) {
        w = NULL;
        assert_fails(dt_store_create(at(within[i]), &(dt_store_meta){.frame_rate_hz = 2}, &w), DT_EINVAL,
                     "/s would be inside another store, the one of ");
    }
    char here[1024];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(at("whole")), 0);
    assert_fails(dt_store_create("s", &(dt_store_meta){.frame_rate_hz = 2}, &w), DT_EINVAL, "the one of store.json");
    assert_int_equal(chdir(here), 0);
}

/* Whatever call fails, nothing is left that looks like a store, and nothing leaks. */
static dt_status write_scene(const dt_store_meta *meta, dt_store_writer **w_p)
{
    const dt_vehicle v = car(1, 0, 0);
    DT_TRY(dt_store_create(at("s"), meta, w_p));
    DT_TRY(dt_store_scene_begin(*w_p));
    DT_TRY(dt_store_frame(*w_p, 0, 0, &v, 1));
    DT_TRY(dt_store_scene_end(*w_p, "a", "x"));
    return dt_store_commit(*w_p);
}

static void test_interruptions(void **state)
{
    static const char *const point[] = {"alloc", "fs.open", "fs.write", "fs.fsync", "fs.rename"};
    dt_store_meta meta = {.frame_rate_hz = 5, .source = "t"};
    uint64_t live = dt_alloc_live_bytes();
    for (size_t p = 0; p < sizeof(point) / sizeof(point[0]); p++) {
        for (int n = 1;; n += p == 0 ? 1 : 5) { /* the later ones wait for the disk */
            char spec[64];
            snprintf(spec, sizeof(spec), "%s:%d", point[p], n);
            dt_fault_reset(spec);
            dt_store_writer *w = NULL;
            dt_status st = write_scene(&meta, &w);
            dt_fault_reset(NULL);
            dt_store_destroy(w);
            assert_int_equal(dt_alloc_live_bytes(), live);
            if (st == DT_OK) {
                assert_true(n > 1); /* the fault point exists */
                assert_ok(dt_fs_remove_tree(at("s")));
                break;
            }
            assert_false(dt_fs_is_dir(at("s")));
            assert_false(dt_fs_is_dir(at("s.partial")));
        }
    }
}

/* ---- damaged stores ---------------------------------------------------------------------------------------------- */

static void test_damage(void **state)
{
    restore();
    SPOIL("scene_frame", int64_t, DT_I64, 0, 1, 6, "scene_frame.npy falls from 6 to 5 at 1");
    SPOIL("frame_row", int64_t, DT_I64, 0, 5, 8, "frame_row.npy runs from 0 to 8, expected 0 to 7");
    SPOIL("edge_ptr", int64_t, DT_I64, 0, 2, 99, "edge_ptr.npy falls");
    SPOIL("edge_src", int32_t, DT_I32, 0, 2, 2, "edge_src.npy: 2 at 2 is outside frame 1 of 2 vehicles");
    SPOIL("edge_src", int32_t, DT_I32, 0, 0, -1, "edge_src.npy: -1 at 0");
    SPOIL("row_track", int32_t, DT_I32, 0, 0, 3, "row_track.npy: 3 at 0 is outside [0, 3)");
    SPOIL("track_row", int64_t, DT_I64, 0, 1, 6, "row 6 at 1 does not belong to track 0");
    SPOIL("track_row", int64_t, DT_I64, 0, 1, 0, "row 0 at 1 does not belong to track 0 in time order");
    SPOIL("scene_site", int32_t, DT_I32, 0, 1, 2, "scene_site.npy: 2 at 1");
    SPOIL("risk", uint8_t, DT_U8, 0, 4, 4, "risk.npy: 4 at 4");
    SPOIL("node", float, DT_F32, 9, 11, NAN, "node.npy: speed of row 1 is nan, outside [-150, 150]");
    SPOIL("edge", float, DT_F32, 4, 7, INFINITY, "edge.npy: inverse_ttc of row 1 is inf, outside [0, 10]");
    SPOIL("pose", double, DT_F64, 3, 2, NAN, "pose.npy: heading of row 0 is nan");
    SPOIL("pose", double, DT_F64, 3, 4, 2e7, "pose.npy: y of row 1 is 2e+07, outside [-1e+07, 1e+07]");
    SPOIL("motion", float, DT_F32, 4, 8, 151, "motion.npy: speed of row 2 is 151, outside [-150, 150]");
    SPOIL("motion", float, DT_F32, 4, 2, -4, "motion.npy: length of row 0 is -4, outside [0, 100]");
    SPOIL("motion", float, DT_F32, 4, 27, 101, "motion.npy: width of row 6 is 101");
    SPOIL("motion", float, DT_F32, 4, 1, INFINITY, "motion.npy: acceleration of row 0 is inf");
    SPOIL("node", float, DT_F32, 9, 8, 2, "node.npy: controlled of row 0 is 2, outside [0, 1]");
    SPOIL("node", float, DT_F32, 9, 13, 1.5f, "node.npy: sin_heading of row 1 is 1.5");
    SPOIL("frame_time", double, DT_F64, 0, 0, -INFINITY, "frame_time.npy: time of row 0 is -inf");
    SPOIL("frame_time", double, DT_F64, 0, 2, 100.5,
          "frame_time.npy: time of row 2 is 100.5 s, after 100.5 s: times rise within a scene");
    assert_int_equal(unlink(at("s/motion.npy")), 0);
    expect_refused("motion.npy is missing from the store");
    assert_int_equal(truncate(at("s/pose.npy"), 200), 0);
    expect_refused("pose.npy: 72 bytes of data, but 7 rows of 24");
}

/* A vehicle twice in a frame, and in two scenes: both arrays that say so agree. */
static void test_damaged_tracks(void **state)
{
    static const struct {
        int64_t ptr[4], row[7];
        int32_t track[7];
        const char *words;
    } bad[] = {{{0, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 1, 2}, "track 0 is in frame 1 twice, in row 2"},
               {{0, 4, 6, 7},
                {0, 1, 3, 6, 2, 5, 4},
                {0, 0, 1, 0, 2, 1, 0},
                "track 0 is in scene 0 and, in row 6, in scene 1"}};
    restore();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dt_npy ptr, row, track;
        assert_ok(dt_npy_map_rw(at("s/track_ptr.npy"), DT_I64, 0, &ptr));
        assert_ok(dt_npy_map_rw(at("s/track_row.npy"), DT_I64, 0, &row));
        assert_ok(dt_npy_map_rw(at("s/row_track.npy"), DT_I32, 0, &track));
        memcpy((void *)(uintptr_t)ptr.data, bad[i].ptr, sizeof(bad[i].ptr));
        memcpy((void *)(uintptr_t)row.data, bad[i].row, sizeof(bad[i].row));
        memcpy((void *)(uintptr_t)track.data, bad[i].track, sizeof(bad[i].track));
        dt_npy_unmap(&ptr);
        dt_npy_unmap(&row);
        dt_npy_unmap(&track);
        expect_refused(bad[i].words);
    }
}

/* Rows are found in the middle of many, and at their end. */
static void test_damaged_rows(void **state)
{
    enum { N = 300 };
    static const int64_t row[] = {0, 10, 287, 288, N - 1};
    dt_vehicle v[N];
    dt_store_writer *w = create("s", 2);
    for (int64_t i = 0; i < N; i++) {
        v[i] = car(i, 10 * (double)i, 5);
    }
    assert_ok(dt_store_scene_begin(w));
    assert_ok(dt_store_frame(w, 0, 0, v, N));
    assert_ok(dt_store_scene_end(w, "a", "north"));
    assert_ok(dt_store_commit(w));
    dt_store_destroy(w);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        char words[64];
        dt_store *s = NULL;
        dt_npy a;
        assert_ok(dt_npy_map_rw(at("s/motion.npy"), DT_F32, 4, &a));
        float *length = (float *)(uintptr_t)a.data + 4 * row[i] + 2, kept = *length;
        *length = -1;
        snprintf(words, sizeof(words), "motion.npy: length of row %d is -1,", (int)row[i]);
        assert_fails(dt_store_open(at("s"), &s), DT_EDATA, words);
        *length = kept;
        dt_npy_unmap(&a);
    }
    dt_store *s = NULL;
    assert_ok(dt_store_open(at("s"), &s));
    dt_store_close(s);
}

static void test_damaged_description(void **state)
{
    restore();
    spoil_description("\"version\":2", "\"version\":3",
                      "store of version 3, this program reads version 2: import it again");
    spoil_description("\"version\":2", "\"version\":1",
                      "store of version 1, this program reads version 2: import it again");
    spoil_description("\"counts\":{", "\"unknown\":{\"width\":1},\"counts\":{",
                      "unknown.width is 1, and it is unknown in 0 rows");
    spoil_description("\"dtrain-store\"", "\"other\"", "format is \"other\"");
    spoil_description("\"rows\":7", "\"rows\":6", "store.json announces 6");
    spoil_description("\"rows\":7", "\"rows\":\"7\"", "rows must be a number, but is a string");
    spoil_description("\"rows\":7", "\"rows\":9223372036854775807",
                      "a count of 9223372036854775807, at most 9007199254740992");
    spoil_description("\"tracks\":3", "\"tracks\":0", "contradict each other");
    spoil_description("\"name\":\"speed\"", "\"name\":\"pace\"",
                      "feature 2 of statistics.node is \"pace\", expected \"speed\"");
    spoil_description("\"name\":\"speed\",\"min\":", "\"name\":\"speed\",\"min\":-9e9",
                      "statistics.node: speed runs from -9e+93 to 10, outside [-150, 150]");
    spoil_description("\"frame_rate_hz\":2", "\"frame_rate_hz\":0", "frame_rate_hz 0 is outside");
    spoil_description("\"name\":\"b#1\"", "\"name\":\"a\"", "scene 1 is called \"a\", as scene 0 is");
    spoil_description("\"name\":\"b#1\"", "\"name\":\"b\\n#1\"",
                      "the name of scene 1, \"b?#1\", has control characters");
    spoil_description("\"south\"", "\"north\"", "site 1 is called \"north\", as site 0 is");
    spoil_description("\"sites\":", "\"seats\":", "is missing");
    assert_int_equal(truncate(at("s/store.json"), 300), 0);
    expect_refused("store.json");
    assert_int_equal(unlink(at("s/store.json")), 0);
    expect_refused("has no store.json: not a store");
    dt_store *s = NULL;
    assert_fails(dt_store_open(at("nothing"), &s), DT_ENOTFOUND, "there is no store at");
    assert_null(strstr(dt_error_text(), "yet"));
    assert_int_equal(mkdir(at("nothing.partial"), 0700), 0);
    assert_fails(dt_store_open(at("nothing"), &s), DT_ENOTFOUND, "nothing.partial is still being written, or was left");
    assert_int_equal(rmdir(at("nothing.partial")), 0);
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_fails(dt_store_open(at("pipe"), &s), DT_EDATA, "pipe is a device, a pipe or a socket, and a store is");
    assert_int_equal(symlink("ring", at("ring")), 0);
    assert_fails(dt_store_open(at("ring"), &s), DT_ENOTFOUND, "ring is a link that does not point to a folder");
    assert_fails(dt_store_open(at("s/pose.npy"), &s), DT_EDATA, "pose.npy is a file, and a store is a folder");
    dt_store_close(NULL);
}

/* numpy, where there is one, sees the same arrays. */
static void test_numpy(void **state)
{
    if (system("python3 -c 'import numpy' >/dev/null 2>&1") != 0) {
        print_message("no python3 with numpy here: not compared\n");
        skip();
    }
    make_sound("s");
    char command[1024];
    snprintf(command, sizeof(command),
             "python3 -c 'import numpy as n; o=lambda a: n.load(\"%s/\"+a+\".npy\", mmap_mode=\"r\"); "
             "assert o(\"node\").shape==(7,9) and o(\"node\").dtype==n.float32 and o(\"node\")[1,3]==-4; "
             "assert o(\"track_row\").tolist()==[0,1,3,4,2,5,6] and o(\"risk\").dtype==n.uint8; "
             "assert o(\"pose\")[5,0]==33.0 and o(\"edge_src\").tolist()[:3]==[0,0,1]'",
             at("s"));
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_contents, begin, end),
        cmocka_unit_test_setup_teardown(test_risk, begin, end),
        cmocka_unit_test_setup_teardown(test_unknown, begin, end),
        cmocka_unit_test_setup_teardown(test_risk_of_leader_and_hole, begin, end),
        cmocka_unit_test_setup_teardown(test_holes, begin, end),
        cmocka_unit_test(test_many_in_sight),
        cmocka_unit_test_setup_teardown(test_writer_refusals, begin, end),
        cmocka_unit_test_setup_teardown(test_interruptions, begin, end),
        cmocka_unit_test_setup_teardown(test_damage, begin, end),
        cmocka_unit_test_setup_teardown(test_damaged_tracks, begin, end),
        cmocka_unit_test_setup_teardown(test_damaged_rows, begin, end),
        cmocka_unit_test_setup_teardown(test_damaged_description, begin, end),
        cmocka_unit_test_setup_teardown(test_numpy, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
