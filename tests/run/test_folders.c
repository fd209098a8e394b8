/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders of runs: core/run/{run_meta,rundir,rundir_check,resume}.c. Which folder a run may begin in, what is written
 * there and comes back from it, which run is continued, and what a killed process leaves behind.
 */
#include "base/clock.h"
#include "base/lock.h"
#include "plugin/loader/loader.h"

#include <time.h>

/* A clock that only sleeping moves. */
static double now_s;
static uint32_t n_naps;

static double fake_clock_s(void)
{
    return now_s;
}

static int fake_nanosleep(const struct timespec *t, struct timespec *left)
{
    now_s += (double)t->tv_sec + 1e-9 * (double)t->tv_nsec;
    n_naps++;
    return 0;
}

static uint32_t fake_n_plugins(const dt_loader *l);
static const dt_loaded_plugin *fake_plugin_at(const dt_loader *l, uint32_t i);
/* What another process does between the look at a folder and the lock. */
static void (*before_lock)(void);

static dt_status lock_after_others(const char *path, int *fd_p)
{
    if (before_lock != NULL) {
        before_lock();
    }
    return dt_lock_acquire(path, fd_p);
}

#define dt_lock_acquire         lock_after_others
#define dt_clock_s              fake_clock_s
#define nanosleep               fake_nanosleep
#define dt_loader_count_plugins fake_n_plugins
#define dt_loader_plugin_at     fake_plugin_at
#include "../../core/run/run_meta.c"
#include "../../core/run/rundir.c"
#undef dt_lock_acquire

#include "run/resume.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint32_t fake_n_plugins(const dt_loader *l)
{
    return 1;
}

static const dt_loaded_plugin *fake_plugin_at(const dt_loader *l, uint32_t i)
{
    static const dt_loaded_plugin p = {.desc = {.name = "town", .version = "3"}, .path = "/p/town.so", .sha256 = "ab"};
    assert_int_equal(i, 0);
    return &p;
}

static char base[64], text[1 << 14];

static int begin(void **state)
{
    snprintf(base, sizeof(base), "/tmp/dtrain-folders-XXXXXX");
    dt_error_clear();
    dt_log_level_set(DT_LOG_ERROR);
    return mkdtemp(base) == NULL;
}

static int end(void **state)
{
    return dt_fs_remove_tree(base) != DT_OK;
}

static const char *at(const char *name) /* good for four calls */
{
    static char path[4][512];
    static int n;
    n = (n + 1) % 4;
    snprintf(path[n], sizeof(path[0]), "%s/%s", base, name);
    return path[n];
}

static void put(const char *name, const char *what)
{
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    fputs(what, f);
    assert_int_equal(fclose(f), 0);
}

static const char *get(const char *name)
{
    FILE *f = fopen(at(name), "r");
    if (f == NULL) {
        return NULL;
    }
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void make(const char *name)
{
    assert_int_equal(dt_fs_mkdirs(at(name)), DT_OK);
}

static void put_run(const char *name)
{
    static const char *const names[] = {"meta.json", "config.cfg", "config.origin.json"};
    char path[128];
    make(name);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", name, names[i]);
        put(path, "{}");
    }
}

static bool is_there(const char *name)
{
    return access(at(name), F_OK) == 0;
}

/* ---- which folders are free -------------------------------------------------------------------------------------- */

static void assert_state(const char *name, dt_folder_state want)
{
    dt_folder_state is = DT_FOLDER_FREE;
    assert_int_equal(dt_rundir_check_mixing(at(name), false, &is), want == DT_FOLDER_TAKEN ? DT_ECONFIG : DT_OK);
    assert_int_equal(is, want);
    assert_int_equal(dt_rundir_check_mixing(at(name), true, &is), DT_OK); /* a resume continues what is there */
    assert_int_equal(is, DT_FOLDER_FREE);
    dt_error_clear();
}

static void test_states(void **state)
{
    assert_state("none", DT_FOLDER_FREE);
    make("empty");
    assert_state("empty", DT_FOLDER_FREE);
    put("empty/notes.txt", "x");
    put("empty/metrics.jsonl", "");
    assert_state("empty", DT_FOLDER_FREE);
    put("empty/metrics.jsonl", "{}\n"); /* records, and nothing that says whose */
    assert_state("empty", DT_FOLDER_TAKEN);
    put_run("begun");
    put("begun/metrics.jsonl", "{}\n");
    assert_true(dt_rundir_is_run(at("begun")));
    assert_state("begun", DT_FOLDER_BEGUN); /* no checkpoint yet */
    make("begun/checkpoints/step-000000000005");
    assert_state("begun", DT_FOLDER_TAKEN);
    put_run("damaged"); /* all that it had is set aside */
    make("damaged/checkpoints/quarantine/step-000000000005");
    assert_state("damaged", DT_FOLDER_TAKEN);
    make("foreign/checkpoints");
    assert_state("foreign", DT_FOLDER_TAKEN);
    static const char *const names[] = {"part/meta.json", "part/config.cfg", "part/config.origin.json"};
    for (int i = 0; i < 3; i++) { /* each of the three is needed */
        put_run("part");
        assert_int_equal(unlink(at(names[i])), 0);
        assert_false(dt_rundir_is_run(at("part")));
    }
    put("file", "x");
    const dt_rundir_desc of_file = {.dir = at("file")}, nowhere = {.dir = NULL}, fresh = {.dir = at("empty2")};
    assert_int_equal(dt_rundir_check(&of_file), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "is a file; name a folder"));
    assert_int_equal(dt_rundir_check(&nowhere), DT_OK);
    assert_int_equal(dt_rundir_check(&fresh), DT_OK);
    assert_false(is_there("empty2")); /* looked at alone */
    assert_int_equal(dt_rundir_check_open(&fresh), DT_OK);
    static const char *const opened[] = {"plan/run.lock", "plan/train.log", "plan/error.log", "plan/metrics.jsonl"};
    make("plan");
    char plan[512];
    snprintf(plan, sizeof(plan), "%s", at("plan"));
    const dt_rundir_desc planned = {.dir = plan};
    assert_int_equal(dt_rundir_check_open(&planned), DT_OK); /* files that are not there will be made */
    for (int i = 1; i < 4; i++) { /* each is opened for writing, and no link leads out of the folder */
        make(opened[i]);
        assert_true(dt_rundir_check_open(&planned) < 0);
        assert_int_equal(rmdir(at(opened[i])), 0);
        put(opened[i], "");
        assert_int_equal(dt_rundir_check_open(&planned), DT_OK);
        dt_error_clear();
    }
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static dt_rundir *open_run(const char *name, bool resume, dt_status want)
{
    static char *const argv[] = {"dtrain", "run \"x\"", NULL};
    dt_rundir *r = NULL;
    char dir[512], runs[512];
    snprintf(dir, sizeof(dir), "%s", at(name != NULL ? name : ""));
    snprintf(runs, sizeof(runs), "%s", at("runs"));
    const dt_rundir_desc d = {.dir = name != NULL ? dir : NULL,
                              .base = runs,
                              .name = "ppo",
                              .resume = resume,
                              .phase = "phase_x",
                              .argc = 2,
                              .argv = argv};
    dt_error_clear();
    assert_int_equal(dt_rundir_open(&d, &r), want);
    return r;
}

static void assert_has(const char *file, const char *part, bool has)
{
    const char *is = get(file);
    assert_non_null(is);
    if ((strstr(is, part) != NULL) != has) {
        fail_msg("%s %s %s: %s", file, has ? "lacks" : "has", part, is);
    }
}

/* What other programs remove during a run is there again at the next save; what they changed stays. */
static void test_removed_during_run(void **state)
{
    dt_rundir *r = open_run("thinned", false, DT_OK);
    const dt_rundir_phase p = {.id = "phase_x", .n_phases = 1};
    const dt_session session = {.seed = 11, .threads = 2, .ranks = 4, .device = {.text = "cpu"}};
    char progress[512];
    assert_int_equal(dt_rundir_write_meta(r, &session, -1), DT_OK);
    assert_int_equal(dt_rundir_write_progress(r, &p), DT_OK);
    snprintf(progress, sizeof(progress), "%s", get("thinned/progress.json"));
    put("thinned/meta.json", "{}");
    assert_int_equal(remove(at("thinned/progress.json")), 0);
    assert_int_equal(remove(at("thinned/run.lock")), 0);
    assert_int_equal(dt_rundir_restore(r), DT_OK);
    assert_string_equal(get("thinned/progress.json"), progress);
    assert_string_equal(get("thinned/meta.json"), "{}");
    assert_has("thinned/error.log", "progress.json", true);
    assert_has("thinned/error.log", "run.lock", true);
    assert_has("thinned/error.log", "meta.json", false);
    assert_true(dt_lock_is_held(at("thinned/run.lock")));
    /* another process took the folder in the meantime: this one does not write into it */
    int other = -1;
    assert_int_equal(remove(at("thinned/run.lock")), 0);
    assert_int_equal(dt_lock_acquire(at("thinned/run.lock"), &other), DT_OK);
    assert_int_equal(remove(at("thinned/progress.json")), 0);
    assert_int_equal(dt_rundir_restore(r), DT_ECONFIG);
    assert_false(dt_fs_is_file(at("thinned/progress.json")));
    dt_lock_release(other);
    /* a folder that is gone does not come back */
    assert_int_equal(rename(at("thinned"), at("moved")), 0);
    assert_int_equal(dt_rundir_restore(r), DT_OK);
    assert_false(dt_fs_is_dir(at("thinned")));
    dt_rundir_close(r);
}

static void test_run(void **state)
{
    dt_rundir *r = open_run("mine", false, DT_OK);
    assert_string_equal(dt_rundir_path(r), at("mine"));
    const dt_rundir_phase p = {.id = "phase_x",
                               .index = 1,
                               .n_phases = 3,
                               .base_step = 40,
                               .steps = 50,
                               .steps_per_epoch = 6,
                               .iterations = 7,
                               .time_s = 2.5,
                               .parameters = 90,
                               .trained = 80};
    const dt_session session = {.seed = 11, .threads = 2, .ranks = 4, .device = {.text = "cpu"}};
    assert_int_equal(dt_rundir_write_meta(r, &session, -1), DT_OK);
    assert_has("mine/meta.json",
               "\"plugins\":[{\"name\":\"town\",\"version\":\"3\",\"path\":\"/p/town.so\","
               "\"sha256\":\"ab\"}]",
               true);
    struct utsname host;
    assert_int_equal(uname(&host), 0);
    char where[512];
    snprintf(where, sizeof(where),
             "\"host\":{\"name\":\"%s\",\"system\":\"%s\",\"release\":\"%s\",\"machine\":\"%s\"},\"device\":\"cpu\","
             "\"cpu_isa\":\"%s\"",
             host.nodename, host.sysname, host.release, host.machine, dt_cpu_isa());
    assert_has("mine/meta.json", where, true);
    assert_has("mine/meta.json", "{\"version\":\"" PACKAGE_VERSION "\"", true);
    assert_has("mine/meta.json", "\"threads\":2,\"ranks\":4,\"seed\":11,\"argv\":[\"dtrain\",\"run \\\"x\\\"\"],",
               true);
    assert_has("mine/meta.json", "\"began_with\":{\"phase\":\"phase_x\"},\"start\":\"2", true);
    assert_has("mine/meta.json", "end", false);
    assert_has("mine/meta.json", DT_RUN_META_MARK, false);
    assert_int_equal(dt_rundir_write_progress(r, &p), DT_OK);
    assert_string_equal(get("mine/progress.json"),
                        "{\"phase\":\"phase_x\",\"phase_index\":1,\"phases\":3,\"base_step\":40,\"steps\":50,"
                        "\"steps_per_epoch\":6,\"stop_iterations\":7,\"stop_time_s\":2.5,\"parameters\":90,"
                        "\"parameters_trained\":80}\n");
    dt_log(DT_LOG_ERROR, "of error");
    dt_log(DT_LOG_WARN, "of warning");
    dt_log(DT_LOG_INFO, "of info");
    assert_has("mine/error.log", "by another program", false);
    dt_rundir_mark_irreproducible(r, 30);
    dt_rundir_mark_irreproducible(r, 20); /* the first one counts */
    assert_int_equal(dt_rundir_write_meta(r, &session, 0), DT_OK);
    assert_has("mine/meta.json", "\"" DT_RUN_META_MARK "\":30,\"end\":\"2", true);
    assert_has("mine/meta.json", "Z\",\"exit_code\":0}\n", true);
    assert_int_equal(dt_rundir_begin(r, &session, false), DT_OK);
    assert_false(dt_rundir_undo(r)); /* a phase has begun in it */
    dt_rundir_close(r);
    assert_has("mine/train.log", "of info", true);
    assert_has("mine/error.log", "of error", true);
    assert_has("mine/error.log", "of warning", true);
    assert_has("mine/error.log", "of info", false);
    put("mine/config.cfg", "");
    put("mine/config.origin.json", "{}");
    put("mine/metrics.jsonl", "{}\n");
    put("mine/config.cfg.tmp.77", "");
    put("mine/trace.json", "");

    r = open_run("mine", true, DT_OK); /* it goes on: its marks and its records are kept */
    assert_true(is_there("mine/metrics.jsonl") && is_there("mine/trace.json") && !is_there("mine/config.cfg.tmp.77"));
    dt_rundir_rewind(r, 31);
    assert_int_equal(r->meta.mark, 30);
    dt_rundir_rewind(r, 30); /* what made it so comes again */
    assert_int_equal(r->meta.mark, -1);
    dt_rundir_mark_irreproducible(r, 0);
    assert_int_equal(r->meta.mark, 0);
    assert_int_equal(dt_rundir_begin(r, &session, false), DT_OK);
    assert_false(dt_rundir_undo(r));
    /* who trains there keeps others out */
    assert_int_equal(dt_lock_check(at("mine/run.lock")), DT_AGAIN);
    assert_null(open_run("mine", true, DT_ECONFIG));
    assert_non_null(strstr(dt_error_text(), "is in use by a training"));
    dt_rundir_close(r);
    assert_int_equal(dt_lock_check(at("mine/run.lock")), DT_OK);

    r = open_run("mine", false, DT_OK); /* it begins again, since it has no checkpoint */
    static const char *const earlier[] = {"mine/progress.json", "mine/trace.json", "mine/metrics.jsonl"};
    assert_true(dt_rundir_is_again(r));
    assert_true(dt_rundir_undo(r)); /* rejected: as it was */
    dt_rundir_close(r);
    for (int i = 0; i < 3; i++) {
        assert_true(is_there(earlier[i]));
    }
    assert_has("mine/train.log", "it starts again", false);
    r = open_run("mine", false, DT_OK);
    dt_session again = session;
    assert_int_equal(dt_config_create(&again.config), DT_OK);
    assert_int_equal(dt_rundir_begin(r, &again, true), DT_OK);
    assert_false(is_there("mine/progress.json") || is_there("mine/trace.json"));
    assert_false(dt_rundir_is_again(r) || dt_rundir_undo(r));
    assert_has("mine/train.log", "of info", true);
    assert_has("mine/train.log", "it starts again", true);
    assert_int_equal(r->meta.mark, -1);
    dt_rundir_close(r);
    dt_config_destroy(again.config);
    make("mine/checkpoints/x");
    put("mine/metrics.jsonl", "{}\n");
    unlink(at("mine/meta.json"));
    assert_null(open_run("mine", false, DT_ECONFIG));
}

static void test_fresh_names(void **state)
{
    dt_rundir *r = open_run(NULL, false, DT_OK);
    const char *name = strrchr(dt_rundir_path(r), '/') + 1;
    assert_true(strncmp(dt_rundir_path(r), at("runs/"), strlen(at("runs/"))) == 0);
    assert_true(dt_glob_match("ppo-????????T??????Z-????", name));
    assert_int_equal(strspn(name + strlen(name) - 4, "0123456789abcdef"), 4);
    char path[512];
    snprintf(path, sizeof(path), "%s", dt_rundir_path(r));
    assert_true(dt_rundir_undo(r)); /* nothing was trained */
    dt_rundir_close(r);
    assert_int_equal(access(path, F_OK), -1);
    r = open_run("new/deep", false, DT_OK); /* a folder that was named, and made */
    assert_true(dt_rundir_undo(r));
    dt_rundir_close(r);
    assert_false(is_there("new/deep"));
    make("old");
    r = open_run("old", false, DT_OK);
    assert_true(dt_rundir_undo(r)); /* this process did not make it: it stays */
    dt_rundir_close(r);
    assert_true(is_there("old"));
    dt_rundir *other = NULL;
    const dt_logfile_opts log = {0};
    assert_int_equal(dt_rundir_join(at("old"), 3, &log, &other), DT_OK);
    dt_log(DT_LOG_WARN, "of rank");
    dt_rundir_close(other);
    assert_has("old/rank-3.log", "of rank", true);
    assert_false(is_there("old/error.log"));
    setenv("DTRAIN_RUN_DIR", "", 1);
    assert_string_equal(dt_rundir_base_folder(), "runs");
    setenv("DTRAIN_RUN_DIR", "/else", 1);
    assert_string_equal(dt_rundir_base_folder(), "/else");
    unsetenv("DTRAIN_RUN_DIR");
    assert_string_equal(dt_rundir_base_folder(), "runs");
}

static void train_there(void)
{
    make("shared/checkpoints");
    put("shared/metrics.jsonl", "{}\n");
}

/* What another process left there while this one came to its lock is not this one's to remove. */
static void test_undo_keeps_others(void **state)
{
    before_lock = train_there;
    dt_rundir *r = open_run("shared", true, DT_OK);
    before_lock = NULL;
    assert_true(dt_rundir_undo(r));
    dt_rundir_close(r);
    assert_true(is_there("shared/checkpoints") && is_there("shared/metrics.jsonl"));
    assert_false(is_there("shared/train.log") || is_there("shared/run.lock"));
}

/* A log that another program takes away is reported at the end, and one that stays is not. */
static void test_lost_log(void **state)
{
    dt_rundir *r = open_run("lost", false, DT_OK);
    dt_log(DT_LOG_WARN, "first");
    assert_int_equal(unlink(at("lost/error.log")), 0);
    dt_log(DT_LOG_WARN, "second");
    dt_rundir_close(r);
    assert_has("lost/train.log", "lost/error.log was removed, replaced or cut", true);
    assert_has("lost/train.log", "lost/train.log was removed", false);
    assert_has("lost/error.log", "second", true);
}

static void test_newest_and_latest(void **state)
{
    char *found = NULL;
    assert_int_equal(dt_rundir_find_newest(at("none"), "ppo", &found), DT_OK);
    assert_null(found);
    assert_int_equal(dt_rundir_find_latest_checkpoint(at("none"), &found), DT_ECONFIG);
    put_run("b/ppo-20260102T000000Z-0001");
    put_run("b/ppo-20260103T000000Z-0001");
    make("b/ppo-20260104T000000Z-0001"); /* no run */
    put_run("b/ppo-20260105T000000Z-00010");
    put_run("b/ppo-2-20260106T000000Z-0001"); /* of the name ppo-2 */
    assert_int_equal(dt_rundir_find_newest(at("b"), "ppo", &found), DT_OK);
    assert_string_equal(found, at("b/ppo-20260103T000000Z-0001"));
    dt_free(found);
    assert_int_equal(dt_rundir_find_newest(at("b"), "ppo-2", &found), DT_OK);
    assert_string_equal(found, at("b/ppo-2-20260106T000000Z-0001"));
    dt_free(found);
    assert_int_equal(dt_rundir_find_latest_checkpoint(at("b"), &found), DT_ECONFIG); /* none has a checkpoint */
    make("b/x/checkpoints");
    make("b/y/checkpoints");
    make("b/z/checkpoints");
    put("b/w", "");
    static const char *const name[] = {"b/x/checkpoints", "b/y/checkpoints", "b/z/checkpoints"};
    for (int newest = 0; newest < 3; newest++) {
        for (int i = 0; i < 3; i++) { /* by seconds, and where these are equal by parts of them */
            const struct timespec when[2] = {{1000, 0}, {newest == 1 ? 1000 + (i == 1) : 1000, newest == i ? 9 : 5}};
            assert_int_equal(utimensat(AT_FDCWD, at(name[i]), when, 0), 0);
        }
        assert_int_equal(dt_rundir_find_latest_checkpoint(at("b"), &found), DT_OK);
        char want[16];
        snprintf(want, sizeof(want), "b/%c", 'x' + newest);
        assert_string_equal(found, at(want));
        dt_free(found);
    }
}

static uint32_t naps(const char *name, bool is_job)
{
    n_naps = 0;
    dt_rundir_wait_unlocked(at(name), is_job);
    return n_naps;
}

/* Of a folder that is held: 2 s for a process alone, 10 s for several; others are not waited for. */
static void test_await(void **state)
{
    int fd = -1;
    make("w");
    put("w/run.lock", "");
    assert_int_equal(naps("w", true), 0);
    assert_int_equal(naps("none", true), 0);
    assert_int_equal(dt_lock_acquire(at("w/run.lock"), &fd), DT_OK);
    assert_in_range(naps("w", false), 20, 21);
    assert_in_range(naps("w", true), 300, 301); /* the folder does not say how many there were */
    put("w/meta.json", "{\"ranks\":1}");
    assert_in_range(naps("w", true), 20, 21);
    put("w/meta.json", "{\"ranks\":2}");
    assert_in_range(naps("w", false), 300, 301);
    put("w/meta.json", "{\"ranks\":"); /* broken */
    assert_in_range(naps("w", false), 20, 21);
    dt_lock_release(fd);
    assert_int_equal(naps("w", true), 0);
}

/* ---- what goes on ------------------------------------------------------------------------------------------------ */

static void assert_run_of(const char *name, const char *want)
{
    char *run = NULL;
    assert_int_equal(dt_resume_find_run(at(name), &run), want != NULL ? DT_OK : DT_ECONFIG);
    if (want != NULL) {
        assert_string_equal(run, at(want));
    }
    dt_free(run);
    dt_error_clear();
}

static void test_run_of(void **state)
{
    put_run("r");
    make("r/checkpoints/step-000000000010/deeper");
    assert_run_of("r", "r");
    assert_run_of("r/", "r");
    assert_run_of("r/checkpoints", "r");
    assert_run_of("r/checkpoints/step-000000000010", "r");
    assert_run_of("r/checkpoints/step-000000000010/deeper", NULL); /* a run, its checkpoints, one of them */
    assert_run_of("none", NULL);
    make("other");
    assert_run_of("other", NULL);
    assert_int_equal(symlink(at("r"), at("link")), 0);
    assert_run_of("link/checkpoints/..", "r");
}

static void test_resume(void **state)
{
    dt_resume r;
    char go[512];
    snprintf(go, sizeof(go), "%s", at("go"));
    dt_args a = {.has_resume = false, .run_dir = go};
    assert_int_equal(dt_resume_read(&a, &r), DT_OK);
    assert_true(r.run == NULL && r.from == NULL && r.phase == NULL && r.init_from == NULL);
    a.has_resume = true;
    char auto_text[] = "auto";
    a.resume = auto_text;
    assert_int_equal(dt_resume_read(&a, &r), DT_OK); /* it still has to begin */
    assert_null(r.run);
    put_run("go");
    put("go/meta.json", "{\"began_with\":{\"phase\":\"p2\",\"init_from\":\"x\"}}");
    assert_int_equal(dt_resume_read(&a, &r), DT_OK); /* no checkpoint: it begins again, as it began */
    assert_string_equal(r.run, at("go"));
    assert_null(r.from);
    assert_string_equal(r.phase, "p2");
    assert_string_equal(r.init_from, "x");
    dt_resume_fini(&r);
    put("go/meta.json", "{}");
    char named[512];
    snprintf(named, sizeof(named), "%s", at("go"));
    a.run_dir = NULL;
    a.resume = named;
    assert_int_equal(dt_resume_read(&a, &r), DT_OK);
    assert_true(r.run != NULL && r.phase == NULL && r.init_from == NULL);
    dt_resume_fini(&r);
    a.resume = auto_text; /* auto has to know where */
    assert_int_equal(dt_resume_read(&a, &r), DT_ECONFIG);
    setenv("DTRAIN_RUN_DIR", at("b"), 1);
    put_run("b/ppo-20260102T000000Z-0001");
    a.name = "ppo";
    assert_int_equal(dt_resume_read(&a, &r), DT_OK);
    assert_string_equal(r.run, at("b/ppo-20260102T000000Z-0001"));
    dt_resume_fini(&r);
    a.resume = NULL;
    a.name = NULL;
    assert_int_equal(dt_resume_read(&a, &r), DT_ECONFIG); /* the latest with a checkpoint: none */
    unsetenv("DTRAIN_RUN_DIR");
    snprintf(named, sizeof(named), "%s", at("nothing"));
    a.resume = named;
    assert_int_equal(dt_resume_read(&a, &r), DT_ECONFIG);
    assert_null(r.run);
}

static void test_end_is_forgotten(void **state)
{
    make("e");
    put("e/meta.json", "{\"argv\":[\",\\\"end\\\":\\\"x\"],\"start\":\"1\",\"end\":\"2\",\"exit_code\":3}\n");
    assert_int_equal(dt_run_meta_clear_end(at("e")), DT_OK);
    assert_string_equal(get("e/meta.json"), "{\"argv\":[\",\\\"end\\\":\\\"x\"],\"start\":\"1\"}\n");
    assert_int_equal(dt_run_meta_clear_end(at("e")), DT_OK); /* there is none */
    assert_string_equal(get("e/meta.json"), "{\"argv\":[\",\\\"end\\\":\\\"x\"],\"start\":\"1\"}\n");
    put("e/meta.json", "{\"a\":1,\"end\":\"1\",\"b\":2,\"end\":\"2\"}\n"); /* the last one */
    assert_int_equal(dt_run_meta_clear_end(at("e")), DT_OK);
    assert_string_equal(get("e/meta.json"), "{\"a\":1,\"end\":\"1\",\"b\":2}\n");
    assert_true(dt_run_meta_clear_end(at("none")) < 0);
}

static void test_leftovers(void **state)
{
    static const char *const goes[] = {"l/config.cfg.tmp.1",
                                       "l/config.origin.json.tmp.2",
                                       "l/meta.json.tmp.3",
                                       "l/progress.json.tmp.4",
                                       "l/report.html.tmp.5",
                                       "l/trace.json.tmp.6",
                                       "l/rollouts/p/round-1.safetensors.tmp.7"};
    static const char *const stays[] = {"l/config.cfg",
                                        "l/notes.tmp.1",
                                        "l/xmeta.json.tmp.3",
                                        "l/meta.json.tmp",
                                        "l/rollouts/p/round-1.safetensors",
                                        "l/rollouts/p/other.tmp.7",
                                        "l/rollouts/round-1.safetensors.tmp.7"};
    make("l/rollouts/p");
    for (int i = 0; i < 7; i++) {
        put(goes[i], "");
        put(stays[i], "");
    }
    assert_int_equal(dt_rundir_remove_temporary(at("l")), DT_OK);
    for (int i = 0; i < 7; i++) {
        assert_false(is_there(goes[i]));
        assert_true(is_there(stays[i]));
    }
    make("m");
    put("m/meta.json.tmp.3", "");
    assert_int_equal(dt_rundir_remove_temporary(at("m")), DT_OK); /* without rollouts */
    assert_false(is_there("m/meta.json.tmp.3"));
    assert_true(dt_rundir_remove_temporary(at("none")) < 0);
}

#define OF(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(test_states),      OF(test_run),
        OF(test_fresh_names), OF(test_undo_keeps_others),
        OF(test_lost_log),    OF(test_newest_and_latest),
        OF(test_await),       OF(test_run_of),
        OF(test_resume),      OF(test_end_is_forgotten),
        OF(test_leftovers),   OF(test_removed_during_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
