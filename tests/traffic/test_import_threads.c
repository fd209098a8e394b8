/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of what several threads do for one recording (plugins/traffic/store/batches.c and of readers of tables): the
 * bytes of a store, the messages and what is left behind are those of one thread.
 */
#include "import_rig.h"

#include "base/fault.h"
#include "traffic/store/npy.h"

enum { FRAMES = 150, VEHICLES = 24, SCENES = 2, JOBS = 5 };

/* What a table has in addition to numbers. */
typedef struct manner {
    bool has_crlf, has_quotes, has_blanks, is_by_vehicle, is_cut;
    int bad_row;  /* its speed is a word; 0: none is */
    int bad_line; /* where it lies */
} manner;

static void add_row(dt_str *t, const manner *m, int scene, int f, int v, const char *speed)
{
    dt_str_addf(t,
                m->has_quotes && v % 5 == 0 ? "\"road, %d\","
                : m->has_quotes             ? "\"road, %d\" ,"
                                            : "road %d,",
                scene);
    dt_str_addf(t, m->has_quotes && f % 7 == 0 ? " \"%d\" ,%d," : "%d,%d,", f, 100 * scene + v);
    dt_str_addf(t, "%.3f,%.2f,%s,%s,%s%s", 1.3 * f + 9.7 * v + scene, 3.4 * (v % 4), speed, v % 3 == 0 ? "" : "4.7",
                v == 1 ? "12.5" : "", m->has_crlf ? "\r\n" : "\n");
}

/* The table t.csv, with a frame of nobody and a hole in time. */
static void make_table(manner *m)
{
    const char *end = m->has_crlf ? "\r\n" : "\n";
    dt_str t = {0};
    int line = 1, row = 0;
    dt_str_addf(&t, "scene,frame,id,x,y,speed,length,stop_distance%s", end);
    for (int outer = 0; outer < (m->is_by_vehicle ? VEHICLES : FRAMES); outer++) {
        for (int inner = 0; inner < (m->is_by_vehicle ? FRAMES : VEHICLES); inner++) {
            const int f = m->is_by_vehicle ? inner : outer, v = m->is_by_vehicle ? outer : inner;
            for (int scene = 0; scene < SCENES && f != 40; scene++) {
                char speed[32];
                line++;
                if (++row == m->bad_row) {
                    m->bad_line = line;
                }
                snprintf(speed, sizeof(speed), row == m->bad_row ? "fast" : "%.2f", 13.0 - 0.25 * ((f + v) % 17));
                add_row(&t, m, scene, f > 100 ? f + 90 : f, v, speed);
            }
            if (m->has_blanks && (f + v) % 11 == 0) {
                dt_str_addf(&t, "%s%s", v % 2 == 0 ? "" : " \t ", end);
                line++;
            }
        }
    }
    t.bytes -= m->is_cut ? strlen(end) : 0;
    t.text[t.bytes] = '\0';
    put("t.csv", dt_str_text(&t));
    dt_str_fini(&t);
}

static dt_import_options options(uint32_t jobs)
{
    return (dt_import_options){.frame_rate_hz = 10,
                               .columns = "scene=scene,frame=frame,id=id,x=x,y=y,speed=speed,length=length,"
                                          "stop_distance=stop_distance",
                               .smooth_s = 0.5,
                               .jobs = jobs};
}

static dt_status import_to(const char *name, const dt_import_options *opt)
{
    dt_str_fini(&report);
    return dt_data_import(&(const char *){at("t.csv")}, 1, at(name), opt, &report);
}

static void test_any_threads(void **state)
{
    for (int k = 0; k < 5; k++) {
        manner m = {.has_crlf = k == 1 || k == 4,
                    .has_quotes = k == 2 || k == 4,
                    .has_blanks = k >= 3,
                    .is_by_vehicle = k == 1 || k == 3,
                    .is_cut = k >= 3};
        make_table(&m);
        for (uint32_t jobs = 1; jobs <= JOBS; jobs++) {
            dt_import_options opt = options(jobs);
            opt.memory_bytes = jobs % 2 == 0 ? 1 << 16 : 0; /* sorted in runs, and at once */
            assert_ok(dt_fs_remove_tree(at("s")));
            assert_ok(import_to(jobs == 1 ? "one" : "s", &opt));
            if (jobs > 1) {
                assert_same("one", "s");
            }
        }
        assert_ok(dt_store_open(at("s"), &store));
        assert_int_equal(dt_store_view_of(store)->n_rows, (FRAMES - 1) * VEHICLES * SCENES);
        assert_int_equal(dt_store_view_of(store)->n_scenes, 2 * SCENES);
        close_all();
        assert_ok(dt_fs_remove_tree(at("one")));
    }
}

/* The first of two bad rows is reported, by its line, whichever thread reads it; and nothing is left. */
static void test_bad_rows(void **state)
{
    static const int bad[] = {1, 700, FRAMES * VEHICLES * SCENES - 100};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        manner m = {.has_crlf = i == 1, .has_blanks = true, .bad_row = bad[i]};
        char words[64];
        make_table(&m);
        snprintf(words, sizeof(words), "t.csv:%d: speed is \"fast\", not a finite number", m.bad_line);
        for (uint32_t jobs = 1; jobs <= JOBS; jobs++) {
            const dt_import_options opt = options(jobs);
            assert_fails(import_to("s", &opt), DT_EDATA, words);
            assert_false(dt_fs_is_dir(at("s")));
            assert_false(dt_fs_is_dir(at("s.partial")));
        }
    }
}

static bool stops_after(void *user)
{
    return (*(int *)user)-- <= 0;
}

/* Asked to stop at any time, and restarted. */
static void test_stops(void **state)
{
    manner m = {.has_blanks = true};
    make_table(&m);
    dt_import_options opt = options(1);
    assert_ok(import_to("one", &opt));
    for (int after = 0; after < 7; after += 2) {
        int left = after;
        opt = options(3);
        opt.stops = stops_after;
        opt.stops_user = &left;
        assert_fails(import_to("s", &opt), DT_EINTERRUPTED, "asked to stop");
        assert_false(dt_fs_is_dir(at("s")));
        assert_false(dt_fs_is_dir(at("s.partial")));
    }
    opt = options(3);
    assert_ok(import_to("s", &opt));
    assert_same("one", "s");
}

/* Memory that is not there, for whichever thread. */
static void test_faults(void **state)
{
    manner m = {.is_by_vehicle = true};
    make_table(&m);
    const dt_import_options opt = options(3);
    assert_ok(import_to("one", &opt));
    for (int n = 1;; n += n < 100 ? 5 : 101) {
        char spec[32];
        dt_str_fini(&report);
        const uint64_t live = dt_alloc_live_bytes();
        snprintf(spec, sizeof(spec), "alloc:%d", n);
        dt_fault_reset(spec);
        const dt_status st = import_to("s", &opt);
        const bool is_over = dt_fault_count() == 0;
        dt_fault_reset(NULL);
        dt_str_fini(&report);
        assert_int_equal(dt_alloc_live_bytes(), live);
        assert_int_equal(dt_fs_is_dir(at("s")), st == DT_OK);
        if (st == DT_OK) {
            assert_same("one", "s");
        }
        assert_ok(dt_fs_remove_tree(at("s")));
        if (is_over) {
            break;
        }
    }
}

/* The last value of an array of store s. */
static void spoil(const char *name, uint32_t dtype, int64_t width, const void *value, size_t bytes)
{
    dt_npy a;
    assert_ok(dt_npy_map_rw(at(name), dtype, width, &a));
    memcpy((unsigned char *)(uintptr_t)a.map + a.map_bytes - bytes, value, bytes);
    dt_npy_unmap(&a);
}

static void expect_damage(const char *words)
{
    for (uint32_t jobs = 1; jobs <= 3; jobs++) {
        for (int turn = 0; turn < 20; turn++) {
            dt_store *s = NULL;
            assert_fails(dt_store_open_jobs(at("s"), jobs, &s), DT_EDATA, words);
        }
    }
}

/* Of several things that are wrong the first is reported, whichever thread finds which one when. */
static void test_first_damage(void **state)
{
    manner m = {.has_blanks = true};
    make_table(&m);
    const dt_import_options opt = options(2);
    const float many = 1e9f;
    const int32_t none = -1;
    const uint8_t no_risk = 4;
    assert_ok(import_to("s", &opt));
    spoil("s/risk.npy", DT_U8, 0, &no_risk, sizeof(no_risk));
    expect_damage("risk.npy: 4 at");
    spoil("s/edge_src.npy", DT_I32, 0, &none, sizeof(none));
    expect_damage("edge_src.npy: -1 at");
    spoil("s/edge.npy", DT_F32, DT_EDGE_FEATURES, &many, sizeof(many));
    expect_damage("edge.npy: inverse_ttc of row");
    spoil("s/node.npy", DT_F32, DT_NODE_FEATURES, &many, sizeof(many));
    expect_damage("node.npy: controlled of row 7151 is 1e+09, outside [0, 1]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_threads, begin, finish),
        cmocka_unit_test_setup_teardown(test_bad_rows, begin, finish),
        cmocka_unit_test_setup_teardown(test_stops, begin, finish),
        cmocka_unit_test_setup_teardown(test_faults, begin, finish),
        cmocka_unit_test_setup_teardown(test_first_damage, begin, finish),
    };
    dt_fs_set_flush(false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
