/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/base/trace.c: off records nothing, spans of several threads nest, counters, what is written reads back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/trace.h"

static char path[64];

static int begin(void **state)
{
    snprintf(path, sizeof(path), "test_trace.%ld.tmp", (long)getpid());
    return 0;
}

static int end(void **state)
{
    dt_trace_fini();
    return unlink(path);
}

static int work(int depth)
{
    DT_TRACE_N("test", "outer", "depth", depth);
    if (depth == 0) {
        return 0; /* a scope ends however it is left */
    }
    DT_TRACE("test", "inner");
    return 1 + work(depth - 1);
}

static void *thread(void *user)
{
    dt_trace_thread("worker", *(uint32_t *)user);
    work(2);
    return NULL;
}

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (const char *p = text; (p = strstr(p, what)) != NULL; p++) {
        n++;
    }
    return n;
}

static char *written(uint64_t want_n)
{
    uint64_t n = 0, dropped = 0;
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(dt_trace_write(path, NULL, 0, &n, &dropped), DT_OK);
    assert_int_equal(n, want_n);
    assert_int_equal(dropped, 0);
    assert_int_equal(dt_fs_read_all(path, 1 << 20, &text, &bytes), DT_OK);
    dt_json *j = NULL;
    dt_json_token t;
    assert_int_equal(dt_json_open_mem(text, bytes, path, &j), DT_OK);
    do {
        assert_int_equal(dt_json_next(j, &t), DT_OK);
    } while (t.kind != DT_JSON_END);
    dt_json_close(j);
    return text;
}

static void test_spans(void **state)
{
    pthread_t t[2];
    uint32_t number[] = {1, 2};
    const uint64_t before = dt_alloc_calls();
    assert_int_equal(work(3), 3);
    assert_int_equal(dt_alloc_calls(), before); /* off: nothing */
    dt_trace_start();
    dt_trace_counter("level", 0.5);
    work(1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, thread, &number[i]), 0);
        pthread_join(t[i], NULL);
    }
    {
        DT_TRACE("test", "cut off");
        dt_trace_stop();
    }
    work(1);
    char *text = written(1 + 3 + 2 * 5);
    uint64_t n_times = 0;
    for (const char *at = text; (at = strstr(at, "\"ts\":")) != NULL; n_times++) { /* microseconds, to the nanosecond */
        at += strlen("\"ts\":");
        at += strspn(at, "0123456789");
        assert_true(*at == '.' && strspn(at + 1, "0123456789") == 3);
    }
    assert_true(n_times >= 1 + 3 + 2 * 5);
    assert_int_equal(count(text, "\"name\":\"outer\""), 2 + 2 * 3);
    assert_int_equal(count(text, "\"name\":\"inner\""), 1 + 2 * 2);
    assert_int_equal(count(text, "\"args\":{\"depth\":0}"), 3);
    assert_int_equal(count(text, "\"ph\":\"C\",\"args\":{\"level\":0.5}"), 1);
    assert_int_equal(count(text, "\"name\":\"worker 1\"") * count(text, "\"name\":\"worker 2\""), 1);
    assert_int_equal(count(text, "cut off"), 0);
    dt_free(text);

    dt_trace_start(); /* starts again, in the same buffers */
    work(0);
    dt_trace_stop();
    text = written(1);
    dt_free(text);
    dt_trace_fini();
    dt_trace_start(); /* and after those are gone */
    work(0);
    dt_trace_stop();
    text = written(1);
    dt_free(text);
}

static void test_no_place(void **state)
{
    uint64_t n = 0, dropped = 0;
    assert_int_equal(dt_trace_write("no/such/folder/t.json", NULL, 0, &n, &dropped), DT_EIO);
    assert_non_null(strstr(dt_error_text(), "no/such/folder/t.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_spans, begin, end),
        cmocka_unit_test(test_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
