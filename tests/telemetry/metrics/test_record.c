/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/telemetry/metrics/record.c: what a line of metrics.jsonl holds, means, and the cut after a resume.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "telemetry/metrics/events.h"
#include "telemetry/metrics/record.h"

static char path[64];

static int begin(void **state)
{
    snprintf(path, sizeof(path), "test_record.%ld.tmp", (long)getpid());
    unlink(path);
    return 0;
}

static int end(void **state)
{
    return unlink(path);
}

static void expect(const char *want)
{
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(dt_fs_read_all(path, 1 << 20, &text, &bytes), DT_OK);
    assert_string_equal(text, want);
    dt_free(text);
}

static void test_lines(void **state)
{
    dt_metrics *m = NULL;
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    dt_metrics_add_scalar(m, "loss", 2);
    dt_metrics_add_scalar(m, "lr", 0.5);
    dt_metrics_add_scalar(m, "loss", 4); /* the mean */
    assert_int_equal(dt_metrics_flush(m, "p", 1, 0.25), DT_OK);
    dt_metrics_add_scalar(m, "lr", 1); /* another order, one less, one more, nothing left over */
    dt_metrics_add_scalar(m, "bad", NAN);
    assert_int_equal(dt_metrics_flush(m, "p", 2, 0.5), DT_OK);
    assert_int_equal(dt_metrics_flush(m, "p", 3, 0.75), DT_OK);
    dt_metrics_close(m);
    expect("{\"step\":1,\"phase\":\"p\",\"wall_s\":0.25,\"loss\":3,\"lr\":0.5}\n"
           "{\"step\":2,\"phase\":\"p\",\"wall_s\":0.5,\"lr\":1,\"bad\":null}\n"
           "{\"step\":3,\"phase\":\"p\",\"wall_s\":0.75}\n");
}

/* What waits for the next record is its mean; numbers that say what others are of are no curves. */
static void test_pending(void **state)
{
    dt_metrics *m = NULL;
    dt_events *e = NULL;
    char dir[80], file[400], **name = NULL, *text = NULL;
    size_t n = 0, bytes = 0;
    snprintf(dir, sizeof(dir), "%s.events", path);
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    assert_int_equal(dt_events_open(dir, 1, &e), DT_OK);
    dt_metrics_events_set(m, e);
    assert_ptr_equal(dt_metrics_events(m), e);
    assert_true(isnan(dt_metrics_pending_mean(m, "loss")) && isnan(dt_metrics_pending_mean(NULL, "loss")));
    dt_metrics_add_scalar(m, "loss", 2);
    dt_metrics_add_scalar(m, "loss", 4);
    dt_metrics_add_scalar(m, "eval/seeds/1", 7);
    dt_metrics_add_scalar(m, "eval/horizon_s/1", 7);
    dt_metrics_add_scalar(m, "eval/seed", 7);
    dt_metrics_add_scalar(m, "eval/horizon_s", 7);
    assert_true(dt_metrics_pending_mean(m, "loss") == 3 && isnan(dt_metrics_pending_mean(m, "los")));
    assert_null(dt_metrics_marked(m, 0));
    dt_metrics_mark_pending(m);
    assert_int_equal(dt_metrics_flush(m, "p", 1, 1), DT_OK);
    assert_true(isnan(dt_metrics_pending_mean(m, "loss")));
    assert_string_equal(dt_metrics_marked(m, 0), "loss");
    assert_string_equal(dt_metrics_marked(m, 4), "eval/horizon_s");
    assert_null(dt_metrics_marked(m, 5));
    assert_int_equal(dt_metrics_rewind(m, "p", 0, 1), DT_OK);
    assert_null(dt_metrics_marked(m, 0));
    dt_metrics_close(m);
    expect("{\"step\":1,\"phase\":\"p\",\"wall_s\":1,\"loss\":3,\"eval/seeds/1\":7,\"eval/horizon_s/1\":7,"
           "\"eval/seed\":7,\"eval/horizon_s\":7}\n");
    assert_int_equal(dt_fs_list(dir, &name, &n), DT_OK);
    assert_int_equal(n, 1);
    snprintf(file, sizeof(file), "%s/%.200s", dir, name[0]);
    dt_fs_list_free(name, n);
    assert_int_equal(dt_fs_read_all(file, 1 << 20, &text, &bytes), DT_OK);
    assert_null(memmem(text, bytes, "eval/seeds/", 11));
    assert_null(memmem(text, bytes, "eval/horizon_s/", 15));
    assert_non_null(memmem(text, bytes, "eval/seed", 9));
    assert_non_null(memmem(text, bytes, "eval/horizon_s", 14));
    dt_free(text);
    assert_int_equal(dt_fs_remove_tree(dir), DT_OK);
    assert_int_equal(dt_metrics_open(path, &m), DT_OK); /* records go on after those that are there */
    assert_int_equal(dt_metrics_flush(m, "p", 2, 1), DT_OK);
    assert_int_equal(dt_metrics_flush(m, "p", 3, 1), DT_OK);
    dt_metrics_close(m);
    assert_int_equal(dt_fs_read_all(path, 1 << 20, &text, &bytes), DT_OK);
    assert_string_equal(strchr(text, '\n') + 1, "{\"step\":2,\"phase\":\"p\",\"wall_s\":1}\n"
                                                "{\"step\":3,\"phase\":\"p\",\"wall_s\":1}\n");
    dt_free(text);
}

/* More numbers than there is room for at first, in the order in which they came first. */
static void test_many_numbers(void **state)
{
    enum { MANY = 100 };
    char name[16], want[4096];
    dt_metrics *m = NULL;
    size_t n = (size_t)snprintf(want, sizeof(want), "{\"step\":1,\"phase\":\"p\",\"wall_s\":0");
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        dt_metrics_add_scalar(m, name, i);
        n += (size_t)snprintf(want + n, sizeof(want) - n, ",\"n%d\":%d", i, i);
    }
    snprintf(want + n, sizeof(want) - n, "}\n");
    assert_int_equal(dt_metrics_flush(m, "p", 1, 0), DT_OK);
    dt_metrics_close(m);
    expect(want);
}

/* What is dropped is in no later record. */
static void test_drop(void **state)
{
    dt_metrics *m = NULL;
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    dt_metrics_add_scalar(m, "loss", 2);
    dt_metrics_discard_pending(m);
    dt_metrics_discard_pending(NULL);
    dt_metrics_add_scalar(m, "loss", 4);
    assert_int_equal(dt_metrics_flush(m, "p", 2, 0.5), DT_OK);
    dt_metrics_close(m);
    expect("{\"step\":2,\"phase\":\"p\",\"wall_s\":0.5,\"loss\":4}\n");
}

static void test_rewind(void **state)
{
    dt_metrics *m = NULL;
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(dt_metrics_flush(m, "p", i, 0), DT_OK);
    }
    assert_int_equal(dt_metrics_rewind(m, "p", 0, 1), DT_OK);
    assert_int_equal(dt_metrics_flush(m, "p", 2, 9), DT_OK);
    dt_metrics_close(m);
    expect("{\"step\":1,\"phase\":\"p\",\"wall_s\":0}\n{\"step\":2,\"phase\":\"p\",\"wall_s\":9}\n");
}

/* Two phases of one plugin, one of another between or not: each has its own records. */
/* As a run of several phases does: what was written since the last look is seen by the next one. */
static void test_rewind_again(void **state)
{
    dt_metrics *m = NULL;
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    assert_int_equal(dt_metrics_flush(m, "a", 1, 0), DT_OK);
    assert_int_equal(dt_metrics_rewind(m, "a", 0, 1), DT_OK);
    assert_int_equal(dt_metrics_flush(m, "a", 2, 0), DT_OK);
    assert_int_equal(dt_metrics_rewind(m, "b", 0, 0), DT_OK);
    assert_int_equal(dt_metrics_flush(m, "b", 1, 0), DT_OK);
    assert_int_equal(dt_metrics_rewind(m, "b", 0, 1), DT_OK);
    assert_int_equal(dt_metrics_rewind(m, "c", 0, 0), DT_OK);
    dt_metrics_close(m);
    expect("{\"step\":1,\"phase\":\"a\",\"wall_s\":0}\n{\"step\":2,\"phase\":\"a\",\"wall_s\":0}\n"
           "{\"step\":1,\"phase\":\"b\",\"wall_s\":0}\n");
}

static void test_rewind_of_equal_names(void **state)
{
    dt_metrics *m = NULL;
    static const char *const name[] = {"p", "p", "q", "p"};
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(dt_metrics_flush(m, name[i], 1, i), DT_OK);
        assert_int_equal(dt_metrics_flush(m, name[i], 2, i), DT_OK);
    }
    dt_metrics_add_scalar(m, "half", 1); /* of an iteration that failed */
    assert_int_equal(dt_metrics_rewind(m, "p", 2, 1), DT_OK);
    assert_int_equal(dt_metrics_flush(m, "p", 2, 9), DT_OK);
    const char *const before = "{\"step\":1,\"phase\":\"p\",\"wall_s\":0}\n{\"step\":2,\"phase\":\"p\",\"wall_s\":0}\n"
                               "{\"step\":1,\"phase\":\"p\",\"wall_s\":1}\n";
    char text[600];
    snprintf(text, sizeof(text), "%s%s", before,
             "{\"step\":2,\"phase\":\"p\",\"wall_s\":1}\n{\"step\":1,\"phase\":\"q\",\"wall_s\":2}\n"
             "{\"step\":2,\"phase\":\"q\",\"wall_s\":2}\n{\"step\":1,\"phase\":\"p\",\"wall_s\":3}\n"
             "{\"step\":2,\"phase\":\"p\",\"wall_s\":9}\n");
    expect(text);
    assert_int_equal(dt_metrics_rewind(m, "p", 1, 1), DT_OK);
    expect(before);
    dt_metrics_close(m);
}

/* The one event file in dir says nothing of name; dir goes. */
static void expect_no_event(const char *dir, const char *name)
{
    char **list = NULL, *text = NULL, file[400];
    size_t n = 0, bytes = 0;
    assert_int_equal(dt_fs_list(dir, &list, &n), DT_OK);
    assert_int_equal(n, 1);
    snprintf(file, sizeof(file), "%s/%.200s", dir, list[0]);
    dt_fs_list_free(list, n);
    assert_int_equal(dt_fs_read_all(file, 1 << 20, &text, &bytes), DT_OK);
    assert_non_null(memmem(text, bytes, "eval/x", strlen("eval/x")));
    assert_null(memmem(text, bytes, name, strlen(name)));
    dt_free(text);
    assert_int_equal(dt_fs_remove_tree(dir), DT_OK);
}

/* An evaluation that was interrupted is made after a resume: its results go to the record of their step. */
static void test_record_that_is_completed(void **state)
{
    dt_metrics *m = NULL;
    dt_events *e = NULL;
    char dir[80];
    snprintf(dir, sizeof(dir), "%s.events", path);
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    for (uint64_t i = 1; i <= 3; i++) {
        dt_metrics_add_scalar(m, "loss", (double)i / 10);
        dt_metrics_add_scalar(m, "bad", NAN);
        assert_int_equal(dt_metrics_flush(m, "p", i, (double)i), DT_OK);
    }
    dt_metrics_close(m);
    assert_int_equal(dt_metrics_open(path, &m), DT_OK); /* as the next process does */
    assert_int_equal(dt_metrics_rewind(m, "p", 0, 2), DT_OK);
    assert_int_equal(dt_events_open(dir, 1, &e), DT_OK);
    dt_metrics_events_set(m, e);
    dt_metrics_add_scalar(m, "eval/x", 5);
    assert_int_equal(dt_metrics_flush(m, "p", 2, 0.25), DT_OK);
    dt_metrics_add_scalar(m, "eval/x", 6);
    assert_int_equal(dt_metrics_flush(m, "p", 3, 0.5), DT_OK);
    const char *const first = "{\"step\":1,\"phase\":\"p\",\"wall_s\":1,\"loss\":0.1,\"bad\":null}\n"
                              "{\"step\":2,\"phase\":\"p\",\"wall_s\":2,\"eval/x\":5,\"loss\":0.2,\"bad\":null}\n";
    char text[400];
    snprintf(text, sizeof(text), "%s{\"step\":3,\"phase\":\"p\",\"wall_s\":0.5,\"eval/x\":6}\n", first);
    expect(text);
    /* made once more: what was said again counts; a step without a record gets one */
    assert_int_equal(dt_metrics_rewind(m, "p", 0, 2), DT_OK);
    dt_metrics_add_scalar(m, "eval/x", 7);
    assert_int_equal(dt_metrics_flush(m, "p", 2, 9), DT_OK);
    assert_int_equal(dt_metrics_rewind(m, "q", 0, 2), DT_OK);
    assert_int_equal(dt_metrics_flush(m, "q", 2, 9), DT_OK);
    expect("{\"step\":1,\"phase\":\"p\",\"wall_s\":1,\"loss\":0.1,\"bad\":null}\n"
           "{\"step\":2,\"phase\":\"p\",\"wall_s\":2,\"eval/x\":7,\"loss\":0.2,\"bad\":null}\n"
           "{\"step\":2,\"phase\":\"q\",\"wall_s\":9}\n");
    dt_metrics_close(m);
    expect_no_event(dir, "loss"); /* an earlier file has it */
}

static void test_no_place(void **state)
{
    dt_metrics *m = NULL;
    assert_int_equal(dt_metrics_open("no/such/folder/metrics.jsonl", &m), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "no/such/folder/metrics.jsonl"));
    assert_null(m);
    dt_metrics_add_scalar(NULL, "x", 1); /* ranks that record nothing */
    assert_int_equal(dt_metrics_flush(NULL, "p", 1, 0), DT_OK);
}

static void test_event_files(void **state)
{
    dt_metrics *m = NULL;
    dt_events *e = NULL;
    char dir[80], file[400];
    snprintf(dir, sizeof(dir), "%s.events", path);
    assert_int_equal(dt_events_open("/dev/null/x", 1, &e), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "/dev/null"));
    assert_null(e);
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    assert_int_equal(dt_events_open(dir, 1, &e), DT_OK);
    dt_metrics_events_set(m, e);
    uint64_t before = 0;
    for (uint64_t i = 0; i < 4; i++) {
        before = i == 3 ? dt_alloc_calls() : 0;
        dt_metrics_add_scalar(m, "a", 1);
        dt_metrics_add_scalar(m, "b/c", NAN);
        assert_int_equal(dt_metrics_flush(m, "p", i + 1, 1), DT_OK);
    }
    assert_int_equal(dt_alloc_calls(), before); /* a steady record allocates nothing */
    dt_metrics_close(m);
    /* the file begins with a record whose every byte but the time is known: length 24, its checksum */
    char **name = NULL, *text = NULL;
    size_t n = 0, bytes = 0;
    assert_int_equal(dt_fs_list(dir, &name, &n), DT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(strncmp(name[0], "events.out.tfevents.", 20), 0);
    snprintf(file, sizeof(file), "%s/%.200s", dir, name[0]);
    dt_fs_list_free(name, n);
    assert_int_equal(dt_fs_read_all(file, 1 << 20, &text, &bytes), DT_OK);
    static const unsigned char head[] = {26, 0, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(text, head, sizeof(head));
    assert_memory_equal(text + 12 + 13 - 2,
                        "\x1a\x0d"
                        "brain.Event:2",
                        15);
    dt_free(text);
    assert_int_equal(dt_fs_remove_tree(dir), DT_OK);
}

static void test_steady_records_allocate_nothing(void **state)
{
    dt_metrics *m = NULL;
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    uint64_t before = 0;
    for (uint64_t i = 0; i < 3; i++) {
        before = i == 2 ? dt_alloc_calls() : 0;
        dt_metrics_add_scalar(m, "a", 1);
        dt_metrics_add_scalar(m, "b", 1);
        assert_int_equal(dt_metrics_flush(m, "p", i + 1, 1), DT_OK);
    }
    assert_int_equal(dt_alloc_calls(), before);
    dt_metrics_close(m);
}

static void add_step(dt_metrics *m, uint64_t step)
{
    dt_metrics_add_scalar(m, "a", 1);
    assert_int_equal(dt_metrics_flush(m, "p", step, 1), DT_OK);
}

/* The steps in the file, each in a whole line. */
static void check_steps(const uint64_t *step, size_t n)
{
    char *text = NULL;
    size_t bytes = 0, found = 0;
    assert_int_equal(dt_fs_read_all(path, 1 << 20, &text, &bytes), DT_OK);
    assert_int_equal(strlen(text), bytes); /* no holes */
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char wanted[32];
        snprintf(wanted, sizeof(wanted), "\"step\":%llu,", found < n ? (unsigned long long)step[found] : 0ull);
        assert_true(found < n && line[0] == '{' && line[strlen(line) - 1] == '}' && strstr(line, wanted) != NULL);
        found++;
    }
    assert_int_equal(found, n);
    dt_free(text);
}

/* Another program removes, replaces or cuts the file during the run. */
static void test_removed_meanwhile(void **state)
{
    dt_metrics *m = NULL;
    struct stat s;
    assert_int_equal(dt_metrics_open(path, &m), DT_OK);
    add_step(m, 1);
    assert_int_equal(unlink(path), 0);
    add_step(m, 2);
    add_step(m, 3);
    check_steps((const uint64_t[]){2, 3}, 2);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(truncate(path, s.st_size - 5), 0); /* in the middle of a line */
    add_step(m, 4);
    check_steps((const uint64_t[]){2, 4}, 2);
    assert_int_equal(truncate(path, 0), 0);
    add_step(m, 5);
    check_steps((const uint64_t[]){5}, 1);
    assert_int_equal(dt_fs_write_atomic(path, "", 0), DT_OK); /* another file */
    add_step(m, 6);
    check_steps((const uint64_t[]){6}, 1);
    dt_metrics_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines, begin, end),
        cmocka_unit_test_setup_teardown(test_rewind, begin, end),
        cmocka_unit_test_setup_teardown(test_drop, begin, end),
        cmocka_unit_test_setup_teardown(test_pending, begin, end),
        cmocka_unit_test_setup_teardown(test_many_numbers, begin, end),
        cmocka_unit_test_setup_teardown(test_removed_meanwhile, begin, end),
        cmocka_unit_test_setup_teardown(test_rewind_again, begin, end),
        cmocka_unit_test_setup_teardown(test_rewind_of_equal_names, begin, end),
        cmocka_unit_test_setup_teardown(test_record_that_is_completed, begin, end),
        cmocka_unit_test(test_no_place),
        cmocka_unit_test_setup_teardown(test_event_files, begin, end),
        cmocka_unit_test_setup_teardown(test_steady_records_allocate_nothing, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
