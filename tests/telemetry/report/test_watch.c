/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/telemetry/report/watch.c: what a terminal shows of a run, within its width and height.
 */
#include "telemetry/report/folder.h"

#include <math.h>

#include "base/lock.h"
#include "telemetry/report/watch.h"

static void put_run(void)
{
    put("meta.json", "w", "{\"start\":\"2026-11-21T08:00:00Z\"}\n");
    put("progress.json", "w", "{\"phase\":\"p2\",\"phase_index\":1,\"phases\":2,\"base_step\":9,\"steps\":40}\n");
    put("metrics.jsonl", "w", "{\"step\":9,\"phase\":\"p1\",\"wall_s\":4,\"before\":1}\n");
    for (int i = 1; i <= 20; i++) {
        char line[256];
        snprintf(line, sizeof(line),
                 "{\"step\":%d,\"phase\":\"p2\",\"wall_s\":%d,\"same\":5,\"x\\u001b[2Jy\":%d,\"loss\":%d,\"null\":null,"
                 "\"a_group/of_a_long_name/strict_delay_s/mean\":%d}\n",
                 i, 10 + 2 * i, i, 100 - i, i);
        put("metrics.jsonl", "a", line);
    }
}

static void expect_line(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    if (at == NULL) {
        print_message("no \"%s\" in:\n%s", line, text);
    }
    assert_non_null(at);
}

static void test_view(void **state)
{
    dt_logbook l;
    dt_str out = {0};
    int fd = -1;
    put_run();
    assert_int_equal(dt_lock_acquire(in_folder("run.lock"), &fd), DT_OK);
    assert_int_equal(dt_logbook_open(folder, &l), DT_OK);
    assert_true(fabs(dt_watch_left_s(&l) - 40) < 1e-9); /* 20 steps to go, 2 s each */
    const dt_watch_opts wide = {.columns = 100};
    dt_watch_append_view(&l, &wide, &out);
    const char *text = dt_str_text(&out);
    expect_line(text, ".tmp  running\n");
    expect_line(text, "p2 (2 of 2)  step 20/40  50.0 s, 40.0 s left  best loss 80\n");
    expect_line(text, "━─");
    expect_line(text, " 75 %\n");
    expect_line(text, "loss                           "
                      "███▇▇▆▆▆▅▅▄▄▃▃▃▂▂▁▁▁"
                      "             80\n");
    expect_line(text, "x?[2Jy                         ▁▁▁▂▂");
    expect_line(text, "\nstrict_delay_s/mean            ▁▁▁▂▂"); /* long names keep their end */
    assert_null(strchr(text, '\033'));
    assert_null(strstr(text, "same")); /* never changes */
    assert_null(strstr(text, "before"));
    assert_null(strstr(text, "null"));
    assert_true(strstr(text, "loss  ") < strstr(text, "x?[2Jy"));
    dt_str_clear(&out);
    const dt_watch_opts small = {.columns = 24, .rows = 6};
    dt_watch_append_view(&l, &small, &out);
    uint32_t lines = 0, column = 0;
    for (const char *c = dt_str_text(&out); *c != '\0'; c++) {
        lines += *c == '\n';
        column = *c == '\n' ? 0 : column + (((unsigned char)*c & 0xc0) != 0x80);
        assert_true(column <= 24);
    }
    assert_true(lines < 6);
    expect_line(dt_str_text(&out), "loss     80\n");
    dt_lock_release(fd);
    assert_int_equal(dt_logbook_poll(&l), DT_OK); /* it died: that is news */
    assert_true(isnan(dt_watch_left_s(&l)));
    dt_str_fini(&out);
    dt_logbook_close(&l);
}

static void test_costs_beside_their_limits(void **state)
{
    dt_logbook l;
    dt_str out = {0};
    int fd = -1;
    put("meta.json", "w", "{}\n");
    put("progress.json", "w", "{\"phase\":\"p\",\"phase_index\":0,\"phases\":1,\"steps\":0,\"stop_time_s\":100}\n");
    put("metrics.jsonl", "w",
        "{\"step\":1,\"phase\":\"p\",\"wall_s\":1,\"progress\":0.1,\"costs/crash\":9,\"limits/crash\":5}\n"
        "{\"step\":2,\"phase\":\"p\",\"wall_s\":3,\"progress\":0.2,\"costs/crash\":6,\"limits/crash\":5,"
        "\"multipliers/crash\":1.5,\"costs/jerk\":1,\"limits/jerk\":2,\"costs/free\":3}\n");
    assert_int_equal(dt_lock_acquire(in_folder("run.lock"), &fd), DT_OK);
    assert_int_equal(dt_logbook_open(folder, &l), DT_OK);
    assert_true(fabs(dt_watch_left_s(&l) - 16) < 1e-9); /* 0.1 in 2 s */
    const dt_watch_opts o = {.columns = 100};
    dt_watch_append_view(&l, &o, &out);
    expect_line(dt_str_text(&out), "cost crash  6 of at most 5  OVER  multiplier 1.5\n");
    expect_line(dt_str_text(&out), "cost jerk  1 of at most 2\n");
    expect_line(dt_str_text(&out), " 20 %\n");
    assert_null(strstr(dt_str_text(&out), "cost free"));
    assert_null(strstr(dt_str_text(&out), "progress"));
    dt_lock_release(fd);
    dt_logbook_close(&l);

    put("meta.json", "w", "{\"exit_code\":7}\n");
    put("error.log", "w", "2026-11-21T08:00:00Z error it diverged\n");
    assert_int_equal(dt_logbook_open(folder, &l), DT_OK);
    dt_str_clear(&out);
    dt_watch_append_view(&l, &o, &out);
    expect_line(dt_str_text(&out), ".tmp  failed (7)  it diverged\n");
    dt_str_fini(&out);
    dt_logbook_close(&l);
}

static void test_ranks(void **state)
{
    dt_logbook l;
    dt_str out = {0};
    const char line[] = "{\"step\":%d,\"phase\":\"p\",\"wall_s\":%d,\"ranks/busy_s\":0.%d,\"ranks/waiting\":0.25,"
                        "\"ranks/imbalance\":%s,\"ranks/slowest\":%d,\"ranks/sent\":2000000}\n";
    put("meta.json", "w", "{\"ranks\":3}\n");
    put("metrics.jsonl", "w", "");
    for (int i = 1; i <= 4; i++) {
        char text[256];
        snprintf(text, sizeof(text), line, i, i, i, i == 4 ? "null" : "0.1", i == 1 ? 0 : 2);
        put("metrics.jsonl", "a", text);
    }
    assert_int_equal(dt_logbook_open(folder, &l), DT_OK);
    assert_int_equal(l.state.ranks, 3);
    const dt_watch_opts wide = {.columns = 200}, narrow = {.columns = 20};
    dt_watch_append_view(&l, &wide, &out);
    expect_line(dt_str_text(&out),
                "\n3 ranks: busy 0.25 s an iteration, waiting 25.0 % of the time for each other; the "
                "slowest is 10.0 % above the mean, rank 2 in 75 % of the iterations; each sends 2.0 MB\n");
    dt_str_clear(&out);
    dt_watch_append_view(&l, &narrow, &out);
    expect_line(dt_str_text(&out), "\n3 ranks: busy 0.25 s\n");
    dt_logbook_close(&l);

    put("meta.json", "w", "{\"ranks\":1}\n"); /* resumed on one */
    assert_int_equal(dt_logbook_open(folder, &l), DT_OK);
    dt_str_clear(&out);
    dt_watch_append_view(&l, &wide, &out);
    assert_null(strstr(dt_str_text(&out), "ranks:"));
    dt_logbook_close(&l);
    put("meta.json", "w", "{\"ranks\":-7}\n"); /* foreign */
    assert_int_equal(dt_logbook_open(folder, &l), DT_OK);
    assert_int_equal(l.state.ranks, 1);
    dt_logbook_close(&l);
    put("meta.json", "w", "{\"ranks\":1e300}\n");
    assert_int_equal(dt_logbook_open(folder, &l), DT_OK);
    dt_str_clear(&out);
    dt_watch_append_view(&l, &wide, &out);
    assert_null(strstr(dt_str_text(&out), "ranks:"));
    dt_str_fini(&out);
    dt_logbook_close(&l);
}

static void test_nothing_yet(void **state)
{
    dt_logbook l;
    dt_str out = {0};
    put("meta.json", "w", "{}\n");
    assert_int_equal(dt_logbook_open(folder, &l), DT_OK);
    const dt_watch_opts o = {.columns = 80, .color = true};
    dt_watch_append_view(&l, &o, &out);
    expect_line(dt_str_text(&out), "interrupted");
    expect_line(dt_str_text(&out), "no phase yet  step 0");
    assert_true(isnan(dt_watch_left_s(&l)));
    dt_str_fini(&out);
    dt_logbook_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_view, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_costs_beside_their_limits, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_ranks, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_nothing_yet, folder_begin, folder_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
