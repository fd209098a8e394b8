/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/fs.c, in a folder of its own below the working folder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"

static char top[64];
static char path_text[512];

static const char *at(const char *name)
{
    snprintf(path_text, sizeof(path_text), "%s/%s", top, name);
    return path_text;
}

static int begin(void **state)
{
    dt_fault_reset(NULL);
    dt_error_clear();
    snprintf(top, sizeof(top), "test_fs.%ld.tmp", (long)getpid());
    return dt_fs_mkdirs(top);
}

static int end(void **state)
{
    dt_fault_reset(NULL);
    return dt_fs_remove_tree(top);
}

static void put(const char *name, const char *text)
{
    assert_int_equal(dt_fs_write_atomic(at(name), text, strlen(text)), DT_OK);
}

static void test_mkdirs(void **state)
{
    assert_int_equal(dt_fs_mkdirs(at("a/b//c/")), DT_OK);
    assert_true(dt_fs_is_dir(at("a/b/c")));
    assert_int_equal(dt_fs_mkdirs(at("a/b/c")), DT_OK);
    put("plain", "x");
    assert_int_equal(dt_fs_mkdirs(at("plain/b")), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "plain"));
    assert_int_equal(dt_fs_mkdirs(""), DT_EINVAL);
    dt_fault_reset("fs.mkdir:1");
    assert_int_equal(dt_fs_mkdirs(at("d")), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "No space"));
    assert_false(dt_fs_is_dir(at("d")));
}

static void test_write_atomic_replaces_or_keeps(void **state)
{
    put("f", "old text");
    /* fail each call in turn: the name always shows the whole old or the whole new text */
    uint64_t fired = 1;
    int n_failed = 0;
    for (int n = 1; fired != 0; n++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "fs.*:%d", n);
        dt_fault_reset(spec);
        dt_status st = dt_fs_write_atomic(at("f"), "new text, longer", 16);
        fired = dt_fault_count();
        dt_fault_reset(NULL);
        assert_int_equal(st, fired != 0 ? DT_EIO : DT_OK);
        n_failed += st != DT_OK;
        char *text = NULL, **names = NULL;
        size_t bytes = 0, n_names = 0;
        assert_int_equal(dt_fs_read_all(at("f"), 100, &text, &bytes), DT_OK);
        assert_true(strcmp(text, "old text") == 0 || strcmp(text, "new text, longer") == 0);
        dt_free(text);
        assert_int_equal(dt_fs_list(top, &names, &n_names), DT_OK);
        assert_int_equal(n_names, 1); /* no temporary file stays */
        dt_fs_list_free(names, n_names);
    }
    assert_true(n_failed >= 6);
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(dt_fs_read_all(at("f"), 16, &text, &bytes), DT_OK);
    assert_int_equal(bytes, 16);
    assert_string_equal(text, "new text, longer");
    dt_free(text);
}

/* What is data is a plain file, in any folder; nothing that is opened for it waits. */
static void test_pipe_is_no_data(void **state)
{
    const char *const not_plain[] = {"pipe", "null"};
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_int_equal(symlink("/dev/null", at("null")), 0);
    alarm(20); /* nobody writes to it */
    for (size_t i = 0; i < sizeof(not_plain) / sizeof(not_plain[0]); i++) {
        char *text = NULL;
        const void *p = NULL;
        size_t bytes = 0;
        int fd = -1;
        FILE *f = NULL;
        assert_int_equal(dt_fs_read_all(at(not_plain[i]), 16, &text, &bytes), DT_EDATA);
        assert_non_null(strstr(dt_error_text(), "it is not a regular file, but a pipe, a socket or a device"));
        assert_int_equal(dt_fs_map(at(not_plain[i]), &p, &bytes), DT_EDATA);
        assert_int_equal(dt_fs_open(at(not_plain[i]), O_RDONLY, &fd), DT_EDATA);
        assert_int_equal(dt_fs_open_stream(at(not_plain[i]), O_RDONLY, "r", &f), DT_EDATA);
        /* nor is it replaced by a file */
        assert_int_equal(dt_fs_write_atomic(at(not_plain[i]), "x", 1), DT_ECONFIG);
        assert_non_null(strstr(dt_error_text(), i == 0 ? "is a pipe and would be" : "is a device and would be"));
    }
    struct stat is;
    assert_true(lstat(at("pipe"), &is) == 0 && S_ISFIFO(is.st_mode));
    assert_true(lstat(at("null"), &is) == 0 && S_ISLNK(is.st_mode));
    /* but where the user may name one it is read to its end */
    char *text = NULL;
    size_t bytes = 0;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(20);
        const int writer = open(at("pipe"), O_WRONLY | O_CLOEXEC);
        _exit(writer < 0 || write(writer, "abc", 3) != 3);
    }
    assert_int_equal(dt_fs_read_any(at("pipe"), 16, &text, &bytes), DT_OK);
    assert_string_equal(text, "abc");
    dt_free(text);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    alarm(0);
}

/* A text or a path that ran out of memory halfway is never written, nor what was there before touched. */
static void test_write_text_is_whole(void **state)
{
    dt_str path = {0}, text = {0};
    put("f", "old");
    dt_str_add(&path, at("f"));
    for (int k = 0; k < 2; k++) {
        dt_str *const half = k == 0 ? &path : &text;
        half->failed = true;
        assert_int_equal(dt_fs_write_text(&path, &text), DT_ENOMEM);
        assert_non_null(strstr(dt_error_text(), "memory"));
        half->failed = false;
    }
    char *got = NULL;
    size_t bytes = 0;
    assert_int_equal(dt_fs_read_all(path.text, 16, &got, &bytes), DT_OK);
    assert_string_equal(got, "old");
    dt_free(got);
    dt_str_add(&text, "new");
    assert_int_equal(dt_fs_write_text(&path, &text), DT_OK);
    assert_int_equal(dt_fs_read_all(path.text, 16, &got, &bytes), DT_OK);
    assert_string_equal(got, "new");
    dt_free(got);
    dt_str_fini(&path);
    dt_str_fini(&text);
}

static void test_create_write_sync(void **state)
{
    int fd = -1;
    assert_int_equal(dt_fs_create(at("f"), &fd), DT_OK);
    assert_int_equal(dt_fs_write(fd, "f", "abc", 3), DT_OK);
    assert_int_equal(dt_fs_write(fd, "f", "", 0), DT_OK);
    assert_int_equal(dt_fs_sync_close(fd, "f"), DT_OK);
    assert_int_equal(dt_fs_create(at("f"), &fd), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "exists"));
    assert_int_equal(dt_fs_create(at("no/such"), &fd), DT_EIO);

    assert_int_equal(dt_fs_create(at("g"), &fd), DT_OK);
    dt_fault_reset("fs.write:1");
    assert_int_equal(dt_fs_write(fd, "g", "abcdef", 6), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "write to g: No space"));
    dt_fault_reset("fs.fsync:1");
    assert_int_equal(dt_fs_sync_close(fd, "g"), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "flush to disk g"));
    assert_int_equal(close(fd), -1); /* closed in any case */
    dt_fault_reset(NULL);
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(dt_fs_read_all(at("g"), 100, &text, &bytes), DT_OK);
    assert_string_equal(text, "abc"); /* torn, as a full disk leaves it */
    dt_free(text);
    assert_int_equal(dt_fs_write(-1, "nowhere", "x", 1), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "nowhere"));
}

static void test_read_all_limits(void **state)
{
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(dt_fs_read_all(at("missing"), 100, &text, &bytes), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "missing: No such file"));
    put("f", "0123456789");
    assert_int_equal(dt_fs_read_all(at("f"), 9, &text, &bytes), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "10 bytes"));
    assert_int_equal(dt_fs_read_all(top, 9, &text, &bytes), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "is a folder"));
    assert_int_equal(dt_fs_read_all("/proc/self/status", 1 << 20, &text, &bytes), DT_OK); /* size unknown beforehand */
    assert_true(bytes > 100 && strlen(text) == bytes);
    dt_free(text);
    assert_int_equal(dt_fs_read_all("/proc/self/status", 10, &text, &bytes), DT_EDATA);
    put("empty", "");
    assert_int_equal(dt_fs_read_all(at("empty"), 10, &text, &bytes), DT_OK);
    assert_int_equal(bytes, 0);
    assert_string_equal(text, "");
    dt_free(text);
    dt_fault_reset("fs.read:1");
    assert_int_equal(dt_fs_read_all(at("f"), 100, &text, &bytes), DT_EIO);
    dt_fault_reset("alloc:1");
    assert_int_equal(dt_fs_read_all(at("f"), 100, &text, &bytes), DT_ENOMEM);
}

static void test_map(void **state)
{
    const void *p = NULL;
    size_t bytes = 0;
    put("f", "mapped");
    assert_int_equal(dt_fs_map(at("f"), &p, &bytes), DT_OK);
    assert_int_equal(bytes, 6);
    assert_memory_equal(p, "mapped", 6);
    dt_fs_unmap(p, bytes);
    dt_fs_unmap(NULL, 0);
    put("empty", "");
    assert_int_equal(dt_fs_map(at("empty"), &p, &bytes), DT_EDATA);
    assert_int_equal(dt_fs_map(at("missing"), &p, &bytes), DT_ENOTFOUND);
    assert_int_equal(dt_fs_map(top, &p, &bytes), DT_EDATA);
    dt_fault_reset("fs.map:1");
    assert_int_equal(dt_fs_map(at("f"), &p, &bytes), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "cannot map"));
}

/* Room in a file without a name: zeros, ours alone, and gone with the mapping. */
static void test_map_room(void **state)
{
    enum { BYTES = 100000 };
    static const char *const points[] = {"fs.open:1", "fs.write:1", "fs.map:1"};
    static const char *const says[] = {"cannot open", "cannot reserve 100000 bytes in", "cannot reserve"};
    void *p = NULL;
    assert_int_equal(dt_fs_map_scratch(at("room"), BYTES, &p), DT_OK);
    assert_false(dt_fs_is_file(at("room")));
    char *text = p;
    assert_true(text[0] == 0 && text[BYTES - 1] == 0);
    memset(text, 7, BYTES);
    assert_true(text[BYTES / 2] == 7);
    dt_fs_unmap_scratch(p, BYTES);
    dt_fs_unmap_scratch(NULL, 0);
    assert_true(dt_fs_free_bytes(at("not/yet/there")) > BYTES); /* of the folder that is there */
    assert_true(dt_fs_free_bytes(at("not/yet/there")) < UINT64_MAX);
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        dt_fault_reset(points[i]);
        assert_int_equal(dt_fs_map_scratch(at("room"), BYTES, &p), DT_EIO);
        assert_non_null(strstr(dt_error_text(), says[i]));
        assert_false(dt_fs_is_file(at("room")));
    }
    dt_fault_reset(NULL);
    put("there", "x");
    assert_int_equal(dt_fs_map_scratch(at("there"), BYTES, &p), DT_EIO); /* never over what is there */
    assert_true(dt_fs_is_file(at("there")));
}

static void test_rename(void **state)
{
    put("f", "x");
    char to[512];
    snprintf(to, sizeof(to), "%s/g", top);
    assert_int_equal(dt_fs_rename(at("f"), to), DT_OK);
    assert_true(dt_fs_is_file(to));
    assert_false(dt_fs_is_file(at("f")));
    assert_int_equal(dt_fs_rename(at("f"), to), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "cannot rename"));
}

static void test_swap(void **state)
{
    put("f", "one");
    put("g", "two");
    char other[512], *text = NULL;
    size_t bytes = 0;
    snprintf(other, sizeof(other), "%s/g", top);
    assert_int_equal(dt_fs_swap(at("f"), other), DT_OK);
    assert_int_equal(dt_fs_read_all(at("f"), 10, &text, &bytes), DT_OK);
    assert_string_equal(text, "two");
    dt_free(text);
    assert_int_equal(dt_fs_swap(at("missing"), other), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "cannot exchange"));
}

static void test_list_is_sorted(void **state)
{
    char name[16];
    for (int i = 39; i >= 0; i--) {
        snprintf(name, sizeof(name), "n%02d", i);
        put(name, "");
    }
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(dt_fs_list(top, &names, &n), DT_OK);
    assert_int_equal(n, 40);
    assert_string_equal(names[0], "n00");
    assert_string_equal(names[39], "n39");
    dt_fs_list_free(names, n);
    dt_fs_list_free(NULL, 0);
    assert_int_equal(dt_fs_list(at("missing"), &names, &n), DT_ENOTFOUND);
    assert_int_equal(dt_fs_list(at("n00"), &names, &n), DT_ENOTFOUND);
    /* out of memory at each allocation in turn */
    dt_status st = DT_ENOMEM;
    for (int i = 1; st != DT_OK; i++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "alloc:%d", i);
        dt_fault_reset(spec);
        st = dt_fs_list(top, &names, &n);
        assert_true(st == DT_OK || st == DT_ENOMEM);
    }
    dt_fs_list_free(names, n);
}

static void test_remove_tree(void **state)
{
    assert_int_equal(dt_fs_mkdirs(at("t/u/v")), DT_OK);
    put("keep", "kept");
    put("t/u/f", "x");
    char link[512];
    snprintf(link, sizeof(link), "%s/t/u/v/link", top);
    assert_int_equal(symlink("../../../keep", link), 0);
    dt_fault_reset("fs.unlink:3");
    assert_int_equal(dt_fs_remove_tree(at("t")), DT_EIO);
    dt_fault_reset(NULL);
    assert_int_equal(dt_fs_remove_tree(at("t")), DT_OK);
    assert_false(dt_fs_is_dir(at("t")));
    assert_true(dt_fs_is_file(at("keep"))); /* the link went, not what it names */
    assert_int_equal(dt_fs_remove_tree(at("t")), DT_OK);
}

/* Names of files for any text: safe, and different ones for different texts. */
static void test_names_of_texts(void **state)
{
    static const char *const texts[][2] = {
        {"town", "town"}, {"a/b", "a%2Fb"}, {"a_b", "a_b"},   {"a%2Fb", "a%252Fb"}, {"-rf", "%2Drf"}, {"..", "%2E."},
        {"", "%"},        {"%", "%25"},     {"a b", "a%20b"}, {"x-1.5+", "x-1.5+"}, {"a\n", "a%0A"},  {"*", "%2A"}};
    dt_str name = {0};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        dt_str_clear(&name);
        dt_fs_encode_name(texts[i][0], &name);
        assert_string_equal(dt_str_text(&name), texts[i][1]);
    }
    char text[2][1000], names[2][300];
    for (int i = 0; i < 2; i++) {
        memset(text[i], '/', sizeof(text[i]) - 1);
        text[i][sizeof(text[i]) - 1] = '\0';
        text[i][900] = i == 0 ? 'a' : 'b';
        dt_str_clear(&name);
        dt_fs_encode_name(text[i], &name);
        assert_int_equal(name.bytes, DT_FS_NAME_BYTES);
        snprintf(names[i], sizeof(names[i]), "%s", dt_str_text(&name));
    }
    assert_string_not_equal(names[0], names[1]);
    dt_str_fini(&name);
}

/* Lines longer than what is kept, and a hole of a terabyte in one: passed over without reading it. */
static void test_lines(void **state)
{
    enum { KEPT = 8 };
    const off_t hole = (off_t)1 << 40;
    dt_fs_line l = {0};
    put("lines", "short\nlonger than that\n");
    FILE *f = fopen(at("lines"), "r+");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), hole), 0);
    if (pwrite(fileno(f), "x\nlast", 6, hole) != 6) { /* the file system has no files of this size */
        fclose(f);
        skip();
    }
    assert_int_equal(dt_fs_read_line(f, KEPT, &l), DT_OK);
    assert_true(l.is_whole && l.bytes == 6);
    assert_memory_equal(l.text, "short\n", 7);
    assert_int_equal(dt_fs_read_line(f, KEPT, &l), DT_OK);
    assert_true(!l.is_whole && l.has_end && l.kept == KEPT && l.bytes == 17);
    assert_int_equal(dt_fs_read_line(f, KEPT, &l), DT_OK);
    assert_true(!l.is_whole && l.has_end && l.kept == KEPT && l.bytes == (uint64_t)hole + 2 - 23);
    assert_int_equal(dt_fs_read_line(f, KEPT, &l), DT_OK);
    assert_true(!l.has_end && l.bytes == 4);
    assert_memory_equal(l.text, "last", 5);
    assert_int_equal(dt_fs_read_line(f, KEPT, &l), DT_OK);
    assert_true(l.bytes == 0 && !l.has_end);
    dt_free(l.text);
    fclose(f);
}

/* What helps against a failed write follows from its reason, and nothing is advised where that is not known. */
static void test_remedies(void **state)
{
    static const struct {
        int reason;
        const char *words;
    } all[] = {{ENOSPC, "free space"}, {EDQUOT, "quota"},     {EROFS, "for writing"}, {EACCES, "the right to write"},
               {EFBIG, "ulimit -f"},   {EMFILE, "ulimit -n"}, {EEXIST, "remove"},     {EIO, NULL}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        char message[128];
        snprintf(message, sizeof(message), "cannot write to x: %s", strerror(all[i].reason));
        const char *remedy = dt_fs_write_advice(message);
        assert_true(all[i].words == NULL ? remedy == NULL : remedy != NULL && strstr(remedy, all[i].words) != NULL);
    }
}

/* What this user may not look at is not said to be missing. */
static void test_reach(void **state)
{
    put("plain", "x");
    assert_int_equal(dt_fs_check_access(at("plain")), DT_OK);
    assert_int_equal(dt_fs_check_access(at("missing")), DT_OK);
    assert_int_equal(dt_fs_check_access(at("plain/below")), DT_OK);
    assert_int_equal(dt_fs_mkdirs(at("closed/in")), DT_OK);
    assert_int_equal(chmod(at("closed"), 0), 0);
    char path[512];
    snprintf(path, sizeof(path), "%s", at("closed/in"));
    fflush(NULL);
    const pid_t child = fork(); /* root may look everywhere */
    assert_true(child >= 0);
    if (child == 0) {
        const bool is_other = geteuid() != 0 || setuid(65534) == 0;
        const bool is_reported =
            dt_fs_check_access(path) == DT_EIO && strstr(dt_error_text(), "Permission denied") != NULL;
        _exit(!is_other || is_reported ? 0 : 1);
    }
    int end;
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(chmod(at("closed"), 0755), 0);
    assert_int_equal(end, 0);
}

static void test_sync_dir(void **state)
{
    assert_int_equal(dt_fs_sync_dir(top), DT_OK);
    assert_int_equal(dt_fs_sync_dir(at("missing")), DT_ENOTFOUND);
}

/* A program that was moved, or installed with DESTDIR, finds what was installed with it. */
static void test_relocate(void **state)
{
    static const struct {
        const char *configured, *bindir, *program_dir, *expected;
    } rows[] = {
        {"/usr/local/lib/dtrain", "/usr/local/bin", "/usr/local/bin", "/usr/local/lib/dtrain"},
        {"/usr/local/lib/dtrain", "/usr/local/bin", "/home/a/dtrain/bin", "/home/a/dtrain/lib/dtrain"},
        {"/usr/local/lib/dtrain", "/usr/local/bin", "/tmp/stage/usr/local/bin", "/tmp/stage/usr/local/lib/dtrain"},
        {"/usr/lib/x86/dtrain", "/usr/bin", "/bin", "/lib/x86/dtrain"},
        {"/opt/plugins", "/usr/bin", "/tmp/stage/usr/bin", "/tmp/stage/opt/plugins"},
        {"/opt/plugins", "/usr/bin", "/tmp/bin", ""},
        {"/usr/local/lib/dtrain", "/usr/local/bin", "/home/a/build-check", ""},
        {"/usr/local/lib/dtrain", "/usr/local/bin", "/home/a/cabin", ""},
        {"/usr/local/lib/dtrain", "/usr/local/bin", "", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dt_str out = {0};
        dt_fs_relocate(rows[i].configured, rows[i].bindir, rows[i].program_dir, &out);
        assert_string_equal(dt_str_text(&out), rows[i].expected);
        dt_str_fini(&out);
    }
    dt_str out = {0}; /* no program of the tests is in a bindir */
    assert_int_equal(dt_fs_installed_dir("/no/where/dtrain", &out), DT_OK);
    assert_string_equal(dt_str_text(&out), "/no/where/dtrain");
    dt_str_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relocate),
        cmocka_unit_test_setup_teardown(test_mkdirs, begin, end),
        cmocka_unit_test_setup_teardown(test_write_atomic_replaces_or_keeps, begin, end),
        cmocka_unit_test_setup_teardown(test_pipe_is_no_data, begin, end),
        cmocka_unit_test_setup_teardown(test_write_text_is_whole, begin, end),
        cmocka_unit_test_setup_teardown(test_create_write_sync, begin, end),
        cmocka_unit_test_setup_teardown(test_read_all_limits, begin, end),
        cmocka_unit_test_setup_teardown(test_map, begin, end),
        cmocka_unit_test_setup_teardown(test_map_room, begin, end),
        cmocka_unit_test_setup_teardown(test_rename, begin, end),
        cmocka_unit_test_setup_teardown(test_swap, begin, end),
        cmocka_unit_test_setup_teardown(test_list_is_sorted, begin, end),
        cmocka_unit_test_setup_teardown(test_remove_tree, begin, end),
        cmocka_unit_test(test_names_of_texts),
        cmocka_unit_test_setup_teardown(test_lines, begin, end),
        cmocka_unit_test(test_remedies),
        cmocka_unit_test_setup_teardown(test_reach, begin, end),
        cmocka_unit_test_setup_teardown(test_sync_dir, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
