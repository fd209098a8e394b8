/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "traffic/store/staging.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void write_in(const dt_staging *a, const char *text)
{
    char name[1024];
    snprintf(name, sizeof(name), "%s/x", dt_staging_path(a));
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void assert_text(const char *name, const char *text)
{
    char *got = NULL;
    size_t bytes = 0;
    assert_ok(dt_fs_read_all(at(name), 1 << 10, &got, &bytes));
    assert_string_equal(got, text);
    dt_free(got);
}

static dt_staging *take(const char *name)
{
    dt_staging *a = NULL;
    assert_ok(dt_staging_open(at(name), DT_STAGING_FOLDER, &a));
    return a;
}

static void assert_refused(const char *name, const char *words)
{
    dt_staging *a = NULL;
    assert_fails(dt_staging_check(at(name), DT_STAGING_FOLDER), DT_EINVAL, words);
    assert_fails(dt_staging_open(at(name), DT_STAGING_FOLDER, &a), DT_EINVAL, words);
    assert_null(a);
}

static void test_whole(void **state)
{
    dt_staging *a = take("below/s//");
    assert_int_equal(dt_fs_kind_of(at("below/s")), DT_FS_NOTHING);
    assert_true(strlen(dt_staging_out(a)) == strlen(at("below/s")));
    write_in(a, "whole");
    assert_ok(dt_staging_commit(a));
    dt_staging_close(a);
    assert_text("below/s/x", "whole");
    assert_int_equal(dt_fs_kind_of(at("below/s.partial")), DT_FS_NOTHING);
    a = take("given_up");
    write_in(a, "half");
    dt_staging_close(a);
    assert_int_equal(dt_fs_kind_of(at("given_up")), DT_FS_NOTHING);
    assert_int_equal(dt_fs_kind_of(at("given_up.partial")), DT_FS_NOTHING);
    dt_staging_close(NULL);
}

static void test_file(void **state)
{
    dt_staging *a = NULL;
    int fd = -1;
    assert_fails(dt_staging_check(at("t.csv/"), DT_STAGING_FILE), DT_EINVAL, "leave out the slash");
    assert_fails(dt_staging_open(at("no/t.csv"), DT_STAGING_FILE, &a), DT_EIO, "no/t.csv.partial");
    assert_int_equal(dt_fs_kind_of(at("no")), DT_FS_NOTHING);
    assert_ok(dt_staging_open(at("t.csv"), DT_STAGING_FILE, &a));
    assert_ok(dt_fs_create(dt_staging_path(a), &fd));
    close(fd);
    assert_ok(dt_staging_commit(a));
    dt_staging_close(a);
    assert_int_equal(dt_fs_kind_of(at("t.csv")), DT_FS_FILE);
    assert_int_equal(dt_fs_kind_of(at("t.csv.partial")), DT_FS_NOTHING);
}

/* Two at once: the second is refused and nothing of the first is harmed, in this process and in another one. */
static void test_second(void **state)
{
    dt_staging *a = take("s");
    write_in(a, "first");
    assert_refused("s", "s is being written by another process, wait until it ends or choose another name: ");
    assert_refused("s/", "is held by process ");
    const pid_t other = fork();
    if (other == 0) {
        dt_staging *b = NULL;
        _exit(dt_staging_open(at("s"), DT_STAGING_FOLDER, &b) == DT_EINVAL ? 0 : 1);
    }
    int how = -1;
    assert_int_equal(waitpid(other, &how, 0), other);
    assert_int_equal(how, 0);
    assert_ok(dt_staging_commit(a));
    dt_staging_close(a);
    assert_text("s/x", "first");
    assert_refused("s", "s exists already");
}

/* What a process left that was killed is restarted, whatever it had come to. */
static void test_killed(void **state)
{
    int end[2];
    char byte = 0;
    assert_int_equal(pipe(end), 0);
    const pid_t other = fork();
    if (other == 0) {
        write_in(take("s"), "half");
        if (write(end[1], "x", 1) == 1) {
            pause();
        }
        _exit(1);
    }
    assert_int_equal(read(end[0], &byte, 1), 1);
    assert_refused("s", "is held by process ");
    kill(other, SIGKILL);
    assert_int_equal(waitpid(other, NULL, 0), other);
    close(end[0]);
    close(end[1]);
    assert_text("s.partial/out/x", "half");
    assert_ok(dt_staging_check(at("s"), DT_STAGING_FOLDER));
    dt_staging *a = take("s");
    assert_int_equal(dt_fs_kind_of(at("s.partial/out/x")), DT_FS_NOTHING);
    dt_staging_close(a);
    assert_ok(dt_fs_mkdirs(at("s.partial"))); /* it died before it had the lock, */
    dt_staging_close(take("s"));
    assert_ok(dt_fs_mkdirs(at("s.partial")));
    put("s.partial/dtrain.lock", ""); /* before it had said its name */
    dt_staging_close(take("s"));
    assert_int_equal(dt_fs_kind_of(at("s.partial")), DT_FS_NOTHING);
}

/* What the user has there stays, byte for byte. */
static void test_foreign(void **state)
{
    assert_ok(dt_fs_mkdirs(at("s.partial")));
    put("s.partial/letter", "mine");
    assert_refused("s", "s.partial exists and was not written by dtrain (it contains \"letter\")");
    put("s.partial/dtrain.lock", "");
    assert_refused("s", "it contains \"letter\"");
    assert_text("s.partial/letter", "mine");
    assert_text("s.partial/dtrain.lock", "");
    assert_ok(dt_fs_mkdirs(at("t.partial/out")));
    put("t.partial/out/letter", "mine");
    assert_refused("t", "it contains no dtrain.lock");
    assert_text("t.partial/out/letter", "mine");
    put("u.partial", "mine");
    assert_refused("u", "it is not a folder");
    assert_text("u.partial", "mine");
    assert_ok(dt_fs_mkdirs(at("elsewhere")));
    assert_int_equal(symlink("elsewhere", at("v.partial")), 0);
    assert_refused("v", "it is a link");
    assert_int_equal(symlink("nowhere", at("w.partial")), 0);
    assert_refused("w", "it is a link");
    assert_int_equal(dt_fs_kind_of(at("nowhere")), DT_FS_NOTHING);
    assert_ok(dt_fs_mkdirs(at("y.partial"))); /* a lock that is a link cuts nothing else */
    assert_int_equal(symlink("../u.partial", at("y.partial/dtrain.lock")), 0);
    assert_refused("y", "dtrain.lock is not a regular file");
    assert_text("u.partial", "mine");
}

static void test_names(void **state)
{
    static const char *const nothing[] = {"", "/", ".", "..", "a/.", "a/..", "//"};
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
        assert_fails(dt_staging_check(nothing[i], DT_STAGING_FOLDER), DT_EINVAL, "cannot name a new file or folder");
    }
    put("taken", "mine");
    assert_refused("taken", "taken exists already");
    assert_refused("taken/", "taken exists already");
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_refused("pipe", "pipe exists already");
    assert_int_equal(symlink("nowhere", at("dangling")), 0);
    assert_refused("dangling", "dangling is a dangling link");
    assert_refused("dangling/", "dangling is a dangling link");
    assert_int_equal(symlink("taken", at("link")), 0);
    assert_refused("link", "link exists already, as a link");
}

/* Another process puts something there, or takes the folder away, while it is written. */
static void test_meanwhile(void **state)
{
    dt_staging *a = take("s");
    assert_ok(dt_fs_mkdirs(at("s")));
    assert_fails(dt_staging_commit(a), DT_EINVAL, "s exists already");
    dt_staging_close(a);
    assert_int_equal(dt_fs_kind_of(at("s.partial")), DT_FS_NOTHING);
    a = take("t");
    assert_ok(dt_fs_remove_tree(at("t.partial")));
    dt_staging *b = take("t");
    write_in(b, "second");
    assert_fails(dt_staging_commit(a), DT_EINVAL, "t.partial was removed while ");
    dt_staging_close(a);
    assert_ok(dt_staging_commit(b));
    dt_staging_close(b);
    assert_text("t/x", "second");
}

enum { RACERS = 3, ROUNDS = 150 };

/* A process that is let in is alone there. */
static int race(int who)
{
    int n = 0;
    char mine[16], got[8] = "", name[1024];
    snprintf(mine, sizeof(mine), "%d", who);
    for (int i = 0; i < ROUNDS || (n == 0 && i < 1000 * ROUNDS); i++) {
        dt_staging *a = NULL;
        const dt_status st = dt_staging_open(at("s"), DT_STAGING_FOLDER, &a);
        if (st != DT_OK) {
            if (st != DT_EINVAL || strstr(dt_error_text(), "is held by") == NULL) {
                print_error("racer %d: %s\n", who, dt_error_text());
                return 1;
            }
            continue;
        }
        snprintf(name, sizeof(name), "%s/%d", dt_staging_path(a), who);
        const int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        char **names = NULL;
        size_t n_names = 0;
        if (fd < 0 || write(fd, mine, 1) != 1 || pread(fd, got, 1, 0) != 1 || got[0] != mine[0] ||
            dt_fs_list(dt_staging_path(a), &names, &n_names) != DT_OK || n_names != 1) {
            print_error("racer %d is not alone\n", who);
            return 1;
        }
        dt_fs_list_free(names, n_names);
        close(fd);
        dt_staging_close(a);
        n++;
    }
    return n > 0 ? 0 : 1;
}

static void test_races(void **state)
{
    pid_t racer[RACERS];
    for (int i = 0; i < RACERS; i++) {
        racer[i] = fork();
        if (racer[i] == 0) {
            _exit(race(i));
        }
    }
    for (int i = 0; i < RACERS; i++) {
        int how = -1;
        assert_int_equal(waitpid(racer[i], &how, 0), racer[i]);
        assert_int_equal(how, 0);
    }
    assert_int_equal(dt_fs_kind_of(at("s.partial")), DT_FS_NOTHING);
}

static dt_status write_whole(const char *text)
{
    dt_staging *a = NULL;
    DT_TRY(dt_staging_open(at("s"), DT_STAGING_FOLDER, &a));
    write_in(a, text);
    const dt_status st = dt_staging_commit(a);
    dt_staging_close(a);
    return st;
}

/* Whatever fails, there is all or nothing, nothing leaks, and it can be begun again. */
static void test_failures(void **state)
{
    static const char *const points[] = {"alloc", "fs.*"};
    for (size_t p = 0; p < 2; p++) {
        bool is_over = false;
        for (int n = 1; !is_over; n++) {
            char spec[32];
            const uint64_t live = dt_alloc_live_bytes();
            snprintf(spec, sizeof(spec), "%s:%d", points[p], n);
            dt_fault_reset(spec);
            const dt_status st = write_whole("one");
            is_over = dt_fault_count() == 0;
            dt_fault_reset(NULL);
            assert_int_equal(dt_alloc_live_bytes(), live);
            assert_true(!is_over || (st == DT_OK && n > 2));
            assert_int_equal(dt_fs_kind_of(at("s")), st == DT_OK ? DT_FS_FOLDER : DT_FS_NOTHING);
            assert_ok(dt_fs_remove_tree(at("s")));
            assert_ok(write_whole("two"));
            assert_text("s/x", "two");
            assert_ok(dt_fs_remove_tree(at("s")));
            assert_int_equal(dt_fs_kind_of(at("s.partial")), DT_FS_NOTHING);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole, begin, end),
        cmocka_unit_test_setup_teardown(test_file, begin, end),
        cmocka_unit_test_setup_teardown(test_second, begin, end),
        cmocka_unit_test_setup_teardown(test_killed, begin, end),
        cmocka_unit_test_setup_teardown(test_foreign, begin, end),
        cmocka_unit_test_setup_teardown(test_names, begin, end),
        cmocka_unit_test_setup_teardown(test_meanwhile, begin, end),
        cmocka_unit_test_setup_teardown(test_races, begin, end),
        cmocka_unit_test_setup_teardown(test_failures, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
