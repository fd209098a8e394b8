/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of base/beneath.h: nothing in a guarded folder leads out of it, by each kind of link, pipe and path, through
 * every call of base/fs.h; with openat2 and without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/lock.h"
#include "base/logfile.h"
#include "base/mem.h"

static char top[64], path[512], other[512];

static const char *at(const char *name)
{
    snprintf(path, sizeof(path), "%s/run/%s", top, name);
    return path;
}

static const char *outside(const char *name)
{
    snprintf(other, sizeof(other), "%s/outside/%s", top, name);
    return other;
}

static dt_status make_folders(void)
{
    DT_TRY(dt_fs_mkdirs(at("inner")));
    DT_TRY(dt_fs_mkdirs(outside("")));
    DT_TRY(dt_fs_write_atomic(outside("file"), "mine", 4));
    snprintf(path, sizeof(path), "%s/run", top);
    return dt_beneath_guard(path);
}

static int begin(void **state)
{
    snprintf(top, sizeof(top), "test_beneath.%ld.tmp", (long)getpid());
    (void)!dt_fs_remove_tree(top);
    const dt_status st = make_folders();
    if (*state != NULL) { /* without openat2 */
        dt_fault_reset("beneath.openat2:1+");
    }
    const int failed = symlink("../outside/file", at("to_file")) + symlink("../outside", at("to_folder")) +
                       symlink("../../outside/file", at("inner/to_file")) + symlink("inner", at("to_inner")) +
                       symlink("../outside/new", at("to_new")) + mkfifo(at("pipe"), 0666) +
                       link(outside("file"), at("hard"));
    return st != DT_OK || failed != 0;
}

static int end(void **state)
{
    dt_fault_reset(NULL);
    snprintf(path, sizeof(path), "%s/run", top);
    dt_beneath_unguard(path);
    return dt_fs_remove_tree(top) != DT_OK;
}

/* Nobody touched what lies outside. */
static void assert_untouched(void)
{
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(dt_fs_read_all(outside("file"), 100, &text, &bytes), DT_OK);
    assert_string_equal(text, "mine");
    dt_free(text);
    assert_int_equal(access(outside("new"), F_OK), -1);
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_list(outside(""), &names, &n), DT_OK);
    assert_int_equal(n, 1);
    dt_fs_list_free(names, n);
}

static void refused(dt_status st, dt_status want, const char *piece)
{
    if (st != want || strstr(dt_error_text(), piece) == NULL) {
        print_error("%s instead of %s: %s\n", dt_status_name(st), dt_status_name(want), dt_error_text());
        fail();
    }
    dt_error_clear();
}

static void test_reading(void **state)
{
    static const char *const links[] = {"to_file", "to_folder/file", "inner/to_file", "to_inner/to_file"};
    char *text = NULL;
    const void *p = NULL;
    char **names = NULL;
    size_t bytes = 0, n = 0;
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        refused(dt_fs_read_all(at(links[i]), 100, &text, &bytes), DT_EDATA, "it is a link");
        refused(dt_fs_map(at(links[i]), &p, &bytes), DT_EDATA, "it is a link");
        assert_false(dt_fs_is_file(at(links[i])));
    }
    refused(dt_fs_list(at("to_folder"), &names, &n), DT_EDATA, "it is a link");
    assert_false(dt_fs_is_dir(at("to_folder")));
    refused(dt_fs_read_all(at("../outside/file"), 100, &text, &bytes), DT_EDATA, "points outside its folder");
    refused(dt_fs_read_all(at("inner/../../outside/file"), 100, &text, &bytes), DT_EDATA, "points outside");
    refused(dt_fs_read_all(at("pipe"), 100, &text, &bytes), DT_EDATA, "not a regular file"); /* and does not wait */
    refused(dt_fs_map(at("pipe"), &p, &bytes), DT_EDATA, "not a regular file");
    assert_false(dt_lock_is_held(at("pipe")));
    refused(dt_fs_read_all(at("none/file"), 100, &text, &bytes), DT_ENOTFOUND, "No such file");
    assert_int_equal(dt_fs_write_atomic(at("inner/own"), "own", 3), DT_OK);
    assert_int_equal(dt_fs_read_all(at("inner//own"), 100, &text, &bytes), DT_OK);
    assert_string_equal(text, "own");
    dt_free(text);
    assert_int_equal(dt_fs_list(at("inner/"), &names, &n), DT_OK);
    assert_int_equal(n, 2);
    dt_fs_list_free(names, n);
    assert_untouched();
}

static void test_writing(void **state)
{
    static const char *const links[] = {"to_file",          "to_folder/file", "inner/to_file",
                                        "to_inner/to_file", "to_new",         "to_folder/new"};
    const dt_logfile_opts plain = {0};
    int fd = -1;
    FILE *f = NULL;
    dt_logfile *log = NULL;
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        refused(dt_lock_acquire(at(links[i]), &fd), DT_EDATA, "it is a link");
        refused(dt_logfile_open(at(links[i]), &plain, &log), DT_EDATA, "it is a link");
        refused(dt_fs_open_stream(at(links[i]), O_RDWR | O_CREAT | O_TRUNC, "w", &f), DT_EDATA, "it is a link");
        assert_untouched();
    }
    refused(dt_lock_acquire(at("hard"), &fd), DT_EDATA, "second name");
    refused(dt_fs_open_stream(at("hard"), O_WRONLY | O_TRUNC, "w", &f), DT_EDATA, "second name");
    refused(dt_lock_acquire(at("pipe"), &fd), DT_EDATA, "not a regular file");
    refused(dt_fs_mkdirs(at("to_folder/new")), DT_EDATA, "it is a link");
    refused(dt_fs_mkdirs(at("to_folder")), DT_EDATA, "it is a link");
    refused(dt_fs_create(at("to_folder/new"), &fd), DT_EDATA, "it is a link");
    refused(dt_fs_write_atomic(at("to_folder/new"), "x", 1), DT_EDATA, "it is a link");
    refused(dt_fs_remove_tree(at("to_folder/file")), DT_EDATA, "it is a link");
    refused(dt_fs_sync_dir(at("to_folder")), DT_EDATA, "it is a link");
    assert_int_not_equal(dt_fs_rename(at("to_folder/file"), outside("moved")), DT_OK);
    dt_fs_try_remove(at("to_folder/file"));
    char from[512];
    snprintf(from, sizeof(from), "%s", at("to_folder/file"));
    dt_fs_try_move(from, at("inner/file"));
    assert_untouched();
    /* a link is replaced and removed as what it is */
    assert_int_equal(dt_fs_write_atomic(at("to_file"), "own", 3), DT_OK);
    assert_true(dt_fs_is_file(at("to_file")));
    assert_int_equal(dt_fs_remove_tree(at("to_folder")), DT_OK);
    assert_untouched();
    assert_int_equal(dt_fs_mkdirs(at("new/folders/here")), DT_OK);
    assert_true(dt_fs_is_dir(at("new/folders/here")));
    assert_int_equal(dt_lock_acquire(at("run.lock"), &fd), DT_OK);
    assert_true(dt_lock_is_held(at("run.lock")));
    dt_lock_release(fd);
    dt_error_clear();
}

/* The guard is as wide as the outermost folder, and begins below it. */
static void test_extent(void **state)
{
    char *text = NULL;
    size_t bytes = 0;
    char inner[512];
    snprintf(inner, sizeof(inner), "%s", at("inner/"));
    assert_int_equal(dt_beneath_guard(inner), DT_OK);
    refused(dt_fs_read_all(at("to_inner/to_file"), 100, &text, &bytes), DT_EDATA, "it is a link");
    dt_beneath_unguard(inner);
    snprintf(path, sizeof(path), "%s/linked", top); /* the folder itself may be a link: the user said it */
    assert_int_equal(symlink("run", path), 0);
    assert_int_equal(dt_beneath_guard(path), DT_OK);
    assert_int_equal(dt_fs_write_atomic(at("inner/own"), "own", 3), DT_OK);
    snprintf(path, sizeof(path), "%s/linked/inner/own", top);
    assert_int_equal(dt_fs_read_all(path, 100, &text, &bytes), DT_OK);
    dt_free(text);
    snprintf(path, sizeof(path), "%s/linked/to_file", top);
    refused(dt_fs_read_all(path, 100, &text, &bytes), DT_EDATA, "it is a link");
    snprintf(path, sizeof(path), "%s/linked", top);
    dt_beneath_unguard(path);
    snprintf(path, sizeof(path), "%s/linked/to_file", top); /* what nobody guards is the user's, links and all */
    assert_int_equal(dt_fs_read_all(path, 100, &text, &bytes), DT_OK);
    dt_free(text);
    snprintf(path, sizeof(path), "%s/runner", top); /* begins like the guarded folder */
    assert_int_equal(symlink("outside/file", path), 0);
    assert_true(dt_fs_is_file(path));
}

int main(void)
{
    static int walked;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reading, begin, end),
        cmocka_unit_test_setup_teardown(test_writing, begin, end),
        cmocka_unit_test_setup_teardown(test_extent, begin, end),
        cmocka_unit_test_prestate_setup_teardown(test_reading, begin, end, &walked),
        cmocka_unit_test_prestate_setup_teardown(test_writing, begin, end, &walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
