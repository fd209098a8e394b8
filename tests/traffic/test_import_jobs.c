/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of plugins/traffic/import/import_jobs.c, import_part.c and store_join.c: an import in parts makes the bytes of
 * one that is not, for any number of jobs, and goes on after whatever ended it, with finished parts that fit and no
 * others.
 */
#include "import_rig.h"

#include "base/lock.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { N_FILES = 5, DAY_S = 86400 };

static char file[N_FILES + 1][1024];
static const char *src[N_FILES + 1];

/* Tables of several scenes, with holes, people on foot, missing lengths, tracks of one frame, and many vehicles; the
 * last but one repeats a scene of the first by another name, the last has nobody who drives. */
static void make_files(void)
{
    for (int n = 0; n < N_FILES; n++) {
        dt_str t = {0};
        char name[32];
        dt_str_add(&t, "who,scene,site,frame,id,x,y,speed,length,stop_distance\n");
        for (int scene = 0; scene < 3 && n < N_FILES - 1; scene++) {
            const int like = n == N_FILES - 2 && scene == 1 ? 0 : n;
            for (int f = 0; f < 40; f++) {
                for (int v = 0; v < 3 + like; v++) {
                    const int at_f = f + (f > 20 && like == 1 ? 60 : 0); /* a hole: another scene */
                    if (f != 7 && (v != 2 || f == 9)) {
                        const double x = like + 20 * scene + 1.37 * f + 9.5 * v;
                        dt_str_addf(&t, "car,n%d.%d,%s,%d,%d,%.3f,%.3f,%.3f,%s,%s\n", n, scene,
                                    like % 2 == 0 ? "hill" : "dale", at_f, v, x, 3.1 * (v % 3), 13.7 - 0.3 * (f % 13),
                                    v == 1 ? "" : "4.5", v == 0 ? "12.5" : "");
                    }
                }
            }
        }
        dt_str_addf(&t, "pedestrian,z%d,hill,0,1,0,0,1,,\n", n);
        snprintf(name, sizeof(name), "f%d.csv", n);
        put(name, dt_str_text(&t));
        dt_str_fini(&t);
        snprintf(file[n], sizeof(file[n]), "%s", at(name));
        src[n] = file[n];
    }
}

static dt_import_options options(void)
{
    return (dt_import_options){.columns = "kind=who,scene=scene,site=site,frame=frame,id=id,x=x,y=y,speed=speed,"
                                          "length=length,stop_distance=stop_distance",
                               .frame_rate_hz = 5,
                               .smooth_s = 0.5,
                               .part_bytes = UINT64_MAX,
                               .memory_bytes = 1 << 20};
}

static dt_status import_to(const char *name, const dt_import_options *opt)
{
    dt_str_fini(&report);
    return dt_data_import(src, N_FILES, at(name), opt, &report);
}

/* What is the same of every file is reported once. */
static void assert_reported_once(const char *words)
{
    const char *first = strstr(dt_str_text(&report), words);
    assert_non_null(first);
    assert_null(strstr(first + 1, words));
}

/* All at once, and in parts by any number of jobs, with the same options. */
static void assert_any_jobs(dt_import_options opt)
{
    assert_ok(dt_fs_remove_tree(at("whole")));
    opt.part_bytes = UINT64_MAX;
    assert_ok(import_to("whole", &opt));
    assert_reported_once("columns: ");
    for (uint32_t jobs = 1; jobs <= 9; jobs = jobs * 2 + 1) {
        for (uint64_t bytes = 0; bytes <= 12000; bytes += 12000) { /* a file each, and two of them */
            opt.jobs = jobs;
            opt.part_bytes = bytes;
            assert_ok(dt_fs_remove_tree(at("s")));
            assert_ok(import_to("s", &opt));
            assert_same("whole", "s");
            assert_reported_once("columns: ");
            assert_false(dt_fs_is_dir(at("s.parts")));
            assert_false(dt_fs_is_dir(at("s.partial")));
        }
    }
}

static void test_any_jobs(void **state)
{
    make_files();
    assert_any_jobs(options());
    assert_ok(dt_store_open(at("s"), &store));
    const dt_store_view *v = dt_store_view_of(store);
    assert_int_equal(v->n_scenes, 3 * (N_FILES - 1) + 3); /* those with a hole are two */
    assert_string_equal(v->scene[3], "n1.0");
    assert_string_equal(v->scene[4], "n1.0#2");
    assert_int_equal(v->n_sites, 2);
}

static void test_other_options(void **state)
{
    make_files();
    dt_import_options opt = options();
    opt.smooth_s = 0;
    opt.packing = (dt_packing){.features = DT_KEPT_F16, .repeats = DT_REPEATS_SKIP};
    assert_any_jobs(opt);
    assert_ok(dt_store_open(at("s"), &store));
    assert_int_equal(dt_store_view_of(store)->n_scenes, 3 * (N_FILES - 1) + 3 - 1);
    opt = options();
    opt.packing =
        (dt_packing){.features = DT_KEPT_I8, .codec = dt_blocks_has_zstd() ? DT_CODEC_ZSTD : DT_CODEC_NONE, .level = 1};
    assert_any_jobs(opt);
    opt.packing.repeats = DT_REPEATS_REFUSE;
    opt.jobs = 3;
    opt.part_bytes = 0;
    assert_fails(import_to("t", &opt), DT_EDATA, "scene n3.1 repeats scene n0.1 row for row");
    assert_false(dt_fs_is_dir(at("t")));
    opt.packing.repeats = DT_REPEATS_KEEP; /* another way to write the store: the same parts */
    assert_ok(import_to("t", &opt));
    assert_same("s", "t");
}

/* ---- maps -------------------------------------------------------------------------------------------------------- */

#define TAG(k, v)      "<tag k=\"" k "\" v=\"" v "\"/>"
#define NODE(id, x, y) "<node id=\"" id "\">" TAG("local_x", x) TAG("local_y", y) "</node>\n"
#define WAY(id, a, b)  "<way id=\"" id "\"><nd ref=\"" a "\"/><nd ref=\"" b "\"/></way>\n"
#define BOUND(id, is)  "<member type=\"way\" ref=\"" id "\" role=\"" is "\"/>"
#define LANE(end)                                                                                                      \
    "<osm>\n" NODE("1", "0", "4") NODE("2", "50", "4") NODE("3", "0", "0") NODE("4", end, "0") WAY("5", "1", "2")      \
        WAY("6", "3", "4") "<relation id=\"7\">" BOUND("5", "left") BOUND("6", "right") TAG("type", "lanelet")         \
            TAG("subtype", "road") "</relation>\n</osm>\n"

static void test_maps(void **state)
{
    static char map[1024];
    dt_import_options opt = options();
    make_files();
    put("one.osm", LANE("50"));
    snprintf(map, sizeof(map), "%s", at("one.osm"));
    opt.map = map;
    assert_any_jobs(opt);
    assert_ok(dt_store_open(at("s"), &store));
    assert_int_equal(dt_store_view_of(store)->n_maps, 1);
    close_all();
    assert_ok(dt_fs_mkdirs(at("maps")));
    for (int n = 0; n < N_FILES - 1; n++) {
        for (int scene = 0; scene < 3; scene++) {
            char name[64];
            snprintf(name, sizeof(name), "maps/n%d.%d.osm", n, scene);
            put(name, scene == 1 ? LANE("49") : LANE("50"));
        }
    }
    snprintf(map, sizeof(map), "%s", at("maps"));
    assert_any_jobs(opt);
    assert_ok(dt_store_open(at("s"), &store));
    assert_int_equal(dt_store_view_of(store)->n_maps, 3 * (N_FILES - 1)); /* their names differ */
    close_all();
    opt.jobs = 2;
    opt.part_bytes = 0;
    snprintf(map, sizeof(map), "%s", at("no.osm"));
    assert_fails(import_to("t", &opt), DT_ENOTFOUND, "no.osm");
    assert_false(dt_fs_is_dir(at("t.parts")));
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

typedef struct course {
    uint32_t until; /* so many parts are finished */
    uint32_t n_done;
    uint64_t before, total;
    bool is_wrong;
} course;

static void watch(void *user, const dt_import_progress *p)
{
    course *c = user;
    c->is_wrong |= !p->is_parts || p->done > p->total || p->before > p->done || p->n_done < c->n_done;
    c->n_done = p->n_done;
    c->before = p->before;
    c->total = p->total;
}

static _Atomic int asked;

static bool stops_at(void *user)
{
    return ++asked >= *(const int *)user;
}

/* Asked to stop for the first time, the second, ...: what was finished is there, and what was not is no store. */
static void test_stops(void **state)
{
    dt_import_options opt = options();
    make_files();
    assert_ok(import_to("whole", &opt));
    uint64_t most = 0;
    for (int n = 1;; n++) {
        course c = {.until = 0};
        opt.part_bytes = 0;
        opt.jobs = 1 + (uint32_t)n % 3;
        opt.stops = stops_at;
        opt.stops_user = &n;
        asked = 0;
        assert_ok(dt_fs_remove_tree(at("s")));
        const dt_status st = import_to("s", &opt);
        opt.stops = NULL;
        if (st == DT_OK) {
            break;
        }
        assert_int_equal(st, DT_EINTERRUPTED);
        assert_false(dt_fs_is_dir(at("s")));
        assert_false(dt_fs_is_dir(at("s.partial")));
        opt.progress = watch;
        opt.progress_user = &c;
        assert_ok(import_to("s", &opt));
        opt.progress = NULL;
        assert_false(c.is_wrong);
        assert_int_equal(c.n_done, N_FILES);
        assert_same("whole", "s");
        most = c.before > most ? c.before : most;
    }
    assert_true(most > 0); /* some went on */
}

static bool are_all_finished(void *unused)
{
    char **names = NULL;
    size_t n = 0;
    int n_finished = 0;
    char folder[1024], path[2200];
    snprintf(folder, sizeof(folder), "%s/s.parts", top);
    if (!dt_fs_is_dir(folder) || dt_fs_list(folder, &names, &n) != DT_OK) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s/digest", folder, names[i]);
        n_finished += dt_fs_is_file(path);
    }
    dt_fs_list_free(names, n);
    return n_finished == N_FILES;
}

/* Those of an import that was stopped when all of them were finished. */
static void leave_parts(dt_import_options opt)
{
    opt.stops = are_all_finished;
    assert_ok(dt_fs_remove_tree(at("s")));
    assert_fails(import_to("s", &opt), DT_EINTERRUPTED, "5 of 5 parts are finished in ");
}

static uint64_t go_on(dt_import_options opt)
{
    course c = {.until = 0};
    opt.progress = watch;
    opt.progress_user = &c;
    assert_ok(dt_fs_remove_tree(at("s")));
    assert_ok(import_to("s", &opt));
    assert_false(dt_fs_is_dir(at("s.parts")));
    return c.before;
}

static void bend(const char *path)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, -1, SEEK_END), 0);
    const int c = fgetc(f);
    assert_int_equal(fseek(f, -1, SEEK_END), 0);
    assert_int_not_equal(fputc(c ^ 1, f), EOF);
    assert_int_equal(fclose(f), 0);
}

static uint64_t bytes_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (uint64_t)info.st_size;
}

/* Each file of a part in turn is damaged, cut short or missing: the part is made again. */
static void test_damaged_parts(void **state)
{
    dt_import_options opt = options();
    make_files();
    assert_ok(import_to("whole", &opt));
    opt.part_bytes = 0;
    opt.jobs = 2;
    uint64_t all = 0;
    for (int i = 0; i < N_FILES; i++) {
        all += bytes_of(src[i]);
    }
    leave_parts(opt);
    assert_int_equal(go_on(opt), all);
    assert_same("whole", "s");
    for (size_t k = 0, n = 1; k < n; k++) {
        for (size_t how = k % 2; how < 3; how += 2) {
            char **parts = NULL, **names = NULL, path[2200], folder[1100];
            size_t n_parts = 0;
            leave_parts(opt);
            assert_ok(dt_fs_list(at("s.parts"), &parts, &n_parts));
            assert_int_equal(n_parts, N_FILES + 1); /* and the lock */
            snprintf(folder, sizeof(folder), "%s/%s", at("s.parts"), parts[k % N_FILES]);
            assert_ok(dt_fs_list(folder, &names, &n));
            snprintf(path, sizeof(path), "%s/%s", folder, names[k < n ? k : 0]);
            if (how == 0) {
                bend(path);
            } else {
                assert_int_equal(how == 1 ? truncate(path, (off_t)bytes_of(path) - 1) : unlink(path), 0);
            }
            dt_fs_list_free(parts, n_parts);
            dt_fs_list_free(names, n);
            assert_true(go_on(opt) < all);
            assert_same("whole", "s");
        }
    }
}

/* Other files, other times of change, other options: other parts. */
static void test_keys(void **state)
{
    const struct timespec yesterday[2] = {{.tv_sec = DAY_S}, {.tv_sec = DAY_S}};
    dt_import_options opt = options();
    make_files();
    opt.part_bytes = 0;
    leave_parts(opt);
    assert_int_equal(utimensat(AT_FDCWD, src[2], yesterday, 0), 0);
    const uint64_t before = go_on(opt);
    uint64_t all = 0;
    for (int i = 0; i < N_FILES; i++) {
        all += bytes_of(src[i]);
    }
    assert_int_equal(before, all - bytes_of(src[2]));
    leave_parts(opt);
    replace_in("f1.csv", "dale", "hill");
    assert_true(go_on(opt) == all - bytes_of(src[1]));
    const dt_import_options first = opt;
    for (int k = 0; k < 4; k++) {
        opt = first;
        leave_parts(opt);
        opt.radius_m = k == 0 ? 20 : opt.radius_m;
        opt.smooth_s = k == 1 ? 0.25 : opt.smooth_s;
        opt.k_max = k == 2 ? 3 : opt.k_max;
        opt.is_unordered = k == 3;
        assert_int_equal(go_on(opt), 0);
    }
    leave_parts(first);
    opt = first;
    opt.jobs = 3;
    opt.memory_bytes = 2 << 20;
    assert_int_equal(go_on(opt), all);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    dt_import_options opt = options();
    int lock = -1;
    make_files();
    opt.part_bytes = 0;
    opt.jobs = 3;
    assert_ok(dt_fs_mkdirs(at("s.parts")));
    assert_ok(dt_lock_acquire(at("s.parts/lock"), &lock));
    assert_fails(import_to("s", &opt), DT_EINVAL, "an import to ");
    dt_lock_release(lock);
    put("s.parts/letter", "mine");
    assert_fails(import_to("s", &opt), DT_EINVAL, "contains \"letter\", which no import wrote");
    assert_true(dt_fs_is_file(at("s.parts/letter")));
    assert_ok(dt_fs_remove_tree(at("s.parts")));
    assert_ok(dt_fs_mkdirs(at("s")));
    assert_fails(import_to("s", &opt), DT_EINVAL, "s exists already");
    assert_false(dt_fs_is_dir(at("s.parts")));
    assert_ok(dt_fs_remove_tree(at("s")));
    src[4] = src[1];
    assert_fails(import_to("s", &opt), DT_EDATA, "f1.csv appears twice");
    src[4] = file[4];
    replace_in("f4.csv", "pedestrian,z4", "car,n1.1");
    assert_fails(import_to("s", &opt), DT_EDATA, "f4.csv: scene n1.1 is in ");
    replace_in("f3.csv", "13.7", "fast");
    replace_in("f2.csv", "13.7", "slow");
    replace_in("f2.csv", "hill", "dale");
    for (opt.jobs = 1; opt.jobs < 6; opt.jobs++) { /* the first file that is wrong */
        assert_fails(import_to("s", &opt), DT_EDATA, "f2.csv:2: speed is \"slow00\"");
        assert_false(dt_fs_is_dir(at("s")));
    }
    assert_ok(dt_fs_remove_tree(at("s.parts")));
    for (int i = 0; i < N_FILES; i++) { /* nobody drives */
        char name[16];
        snprintf(name, sizeof(name), "f%d.csv", i);
        put(name, "who,scene,site,frame,id,x,y,speed,length,stop_distance\npedestrian,a,b,0,1,0,0,1,,\n");
    }
    assert_fails(import_to("s", &opt), DT_EDATA, "");
    dt_import_options rates = {.jobs = 2};
    put("f0.csv", "frame,id,x,y,speed,frame_rate_hz\n0,1,0,0,5,10\n");
    put("f1.csv", "frame,id,x,y,speed,frame_rate_hz\n0,1,0,0,5,5\n");
    assert_fails(dt_data_import(src, 2, at("s"), &rates, &report), DT_EDATA,
                 "f1.csv of 5 Hz: a store has one frame rate");
}

/* Whatever fails, nothing that is left is taken for a store, nothing leaks, and the next import makes all of it. */
static void test_faults(void **state)
{
    static const char *const points[] = {"alloc", "fs.*"};
    dt_import_options opt = options();
    make_files();
    opt.columns = "scene=scene,frame=frame,id=id,x=x,y=y,speed=speed";
    assert_ok(dt_data_import(src, 2, at("whole"), &opt, &report));
    opt.part_bytes = 0;
    opt.jobs = 2;
    for (size_t p = 0; p < 2; p++) {
        for (int n = 1;; n += n < 30 ? 3 : 41) {
            char spec[32];
            dt_str_fini(&report);
            const uint64_t live = dt_alloc_live_bytes();
            snprintf(spec, sizeof(spec), "%s:%d", points[p], n);
            dt_fault_reset(spec);
            const dt_status st = dt_data_import(src, 2, at("s"), &opt, &report);
            const bool is_over = dt_fault_count() == 0;
            dt_fault_reset(NULL);
            dt_str_fini(&report);
            assert_int_equal(dt_alloc_live_bytes(), live);
            assert_true(st == DT_OK || !dt_fs_is_dir(at("s")));
            if (st != DT_OK) {
                assert_ok(dt_data_import(src, 2, at("s"), &opt, &report));
            }
            assert_same("whole", "s");
            assert_ok(dt_fs_remove_tree(at("s")));
            assert_ok(dt_fs_remove_tree(at("s.parts")));
            if (is_over) {
                break;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_jobs, begin, finish),
        cmocka_unit_test_setup_teardown(test_other_options, begin, finish),
        cmocka_unit_test_setup_teardown(test_maps, begin, finish),
        cmocka_unit_test_setup_teardown(test_stops, begin, finish),
        cmocka_unit_test_setup_teardown(test_damaged_parts, begin, finish),
        cmocka_unit_test_setup_teardown(test_keys, begin, finish),
        cmocka_unit_test_setup_teardown(test_refusals, begin, finish),
        cmocka_unit_test_setup_teardown(test_faults, begin, finish),
    };
    dt_fs_set_flush(false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
