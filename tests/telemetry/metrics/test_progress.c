/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress line: what it shows of a round, what it leaves out where the terminal is narrow, and that it is redrawn
 * while the main thread is busy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/activity.h"
#include "base/clock.h"

/* The clock, and how far tests have put it on. */
static double ahead_s;

static double clock_s(void)
{
    return dt_clock_s() + ahead_s;
}
#define dt_clock_s clock_s
#include "../../../core/telemetry/metrics/progress.c"
#undef dt_clock_s

#include "base/err.h"
#include "base/log.h"
#include "telemetry/metrics/progress.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dt_progress_view a_round(void)
{
    return (dt_progress_view){.phase = "phase2_ppo",
                              .unit = "round",
                              .at = 12,
                              .of = 40,
                              .step = 660,
                              .steps = 2400,
                              .rate = 2346,
                              .rate_unit = "env steps",
                              .env_steps = 8640,
                              .episode_return = -195.13,
                              .return_change = 12.4,
                              .headline_name = "strict_delay_s",
                              .headline = 32.46,
                              .headline_change = -4.1,
                              .left_s = 200,
                              .loss = 2.23,
                              .grad_norm = 6.5,
                              .learning_rate = 1e-3,
                              .rss_bytes = 41000000,
                              .loss_scale = 1};
}

static void expect_parts(const char *line, const char *const *part)
{
    for (; *part != NULL; part++) {
        if (strstr(line, *part) == NULL) {
            fail_msg("\"%s\" lacks \"%s\"", line, *part);
        }
    }
}

static void test_round(void **state)
{
    char line[512];
    const dt_progress_view v = a_round();
    const dt_activity a = {DT_ACTIVITY_COLLECT, 45, 100};
    dt_progress_text(&v, &a, 200, line, sizeof(line));
    expect_parts(line, (const char *[]){"phase2_ppo", "round 12/40", "collecting 45%", "left 3:20",
                                        "return -195.1 (+12)", "strict_delay_s 32.46 (-4.1)", "2346 env steps/s",
                                        "8640 env steps", "loss 2.23", "step 660/2400", "lr 1.00e-03", NULL});
    /* 80 columns hold what matters most, whole */
    dt_progress_text(&v, &a, 79, line, sizeof(line));
    assert_true(strlen(line) <= 79);
    expect_parts(line, (const char *[]){"round 12/40", "collecting 45%", "left 3:20", "return -195.1",
                                        "strict_delay_s 32.46", NULL});
    for (int columns = 0; columns < 200; columns++) {
        dt_progress_text(&v, &a, columns, line, sizeof(line));
        assert_true(strlen(line) <= (size_t)columns || strcmp(line, "phase2_ppo") == 0);
    }
    char small[16];
    dt_progress_text(&v, &a, 200, small, sizeof(small));
    assert_true(strlen(small) < sizeof(small));
}

/* What is not known is not shown as a number. */
static void test_unknown(void **state)
{
    char line[512];
    dt_progress_view v = a_round();
    v.rate = v.env_steps = v.episode_return = v.headline = v.loss = v.grad_norm = v.learning_rate = NAN;
    v.left_s = -1;
    v.of = 0;
    const dt_activity a = {DT_ACTIVITY_NONE, 0, 0};
    dt_progress_text(&v, &a, 200, line, sizeof(line));
    assert_null(strstr(line, "nan"));
    assert_null(strstr(line, "return"));
    assert_null(strstr(line, "strict_delay_s"));
    assert_null(strstr(line, "loss"));
    expect_parts(line, (const char *[]){"round 12", "left --:--", NULL});
    assert_null(strstr(line, "12/"));
    v.headline_name = NULL;
    v.headline = 3;
    dt_progress_text(&v, &a, 200, line, sizeof(line));
    assert_null(strstr(line, " 3"));
}

/* What a round is doing, and times of seconds, minutes and hours. */
static void test_texts(void **state)
{
    static const struct {
        dt_activity a;
        double left_s;
        const char *activity, *left;
    } c[] = {{{DT_ACTIVITY_COLLECT, 1, 8}, 59.4, "collecting 12%", "left 0:59"},
             {{DT_ACTIVITY_COLLECT, 1, 0}, 59.6, "collecting 0%", "left 1:00"},
             {{DT_ACTIVITY_LEARN, 2, 5}, 3599, "learning 3/5", "left 59:59"}, /* the third of five passes */
             {{DT_ACTIVITY_EVALUATE, 2, 5}, 3600, "evaluating 2/5", "left 1:00:00"},
             {{DT_ACTIVITY_EVALUATE, 0, 0}, 3600 * 12 + 34 * 60 + 5, "evaluating", "left 12:34:05"},
             {{DT_ACTIVITY_SAVE, 0, 0}, 0, "saving", "left 0:00"}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        char line[512];
        dt_progress_view v = a_round();
        v.left_s = c[i].left_s;
        v.data_wait = 0.125;
        v.loss_scale = 64;
        dt_progress_text(&v, &c[i].a, 300, line, sizeof(line));
        expect_parts(line, (const char *[]){c[i].activity, c[i].left, "wait 12.5%", "scale 64", NULL});
    }
}

/* Whole lines: which parts there are, in which order, with which gaps, and which of them go first. */
static void test_lines(void **state)
{
    static const char all[] = "phase2_ppo  round 12/40  collecting 45%  left 3:20  return -195.1 (+12)  "
                              "strict_delay_s 32.46 (-4.1)  2346 env steps/s  8640 env steps  loss 2.23  "
                              "step 660/2400  grad 6.5  lr 1.00e-03  mem 41 MB  wait 12.5%  scale 8";
    static const char unknown[] = "phase2_ppo  round 12  left --:--  step 660  mem 41 MB";
    static const char head[] = "phase2_ppo  round 12/40  collecting 45%  left 3:20  return -195.1 (+12)  "
                               "strict_delay_s 32.46 (-4.1)";
    static const char without_trends[] =
        "phase2_ppo  round 12/40  collecting 45%  left 3:20  return -195.1  strict_delay_s 32.46";
    static const char with_loss[] = /* what is short has room that trends leave */
        "phase2_ppo  round 12/40  collecting 45%  left 3:20  return -195.1  strict_delay_s 32.46  loss 2.23";
    static const char narrow[] = "phase2_ppo round 12/40 collecting 45% left 3:20 return -195.1 strict_delay_s 32.46";
    static const char without_name[] = "round 12/40 collecting 45% left 3:20 return -195.1 strict_delay_s 32.46";
    char line[512];
    dt_progress_view v = a_round(), none;
    const dt_activity a = {DT_ACTIVITY_COLLECT, 45, 100}, nothing = {DT_ACTIVITY_NONE, 0, 0};
    v.data_wait = 0.125;
    v.loss_scale = 8;
    dt_progress_text(&v, &a, 400, line, sizeof(line));
    assert_string_equal(line, all);
    none = v;
    none.rate = none.env_steps = none.episode_return = none.headline = none.loss = NAN;
    none.grad_norm = none.learning_rate = none.data_wait = none.left_s = NAN;
    none.of = none.steps = 0;
    none.loss_scale = 1;                                        /* a scale of 1 is none */
    dt_progress_text(&none, &nothing, 400, line, sizeof(line)); /* nothing is left over from the line before */
    assert_string_equal(line, unknown);
    const struct {
        const char *line;
        size_t columns;
    } c[] = {{head, sizeof(head) - 1},
             {with_loss, sizeof(head) - 2},
             {without_trends, sizeof(without_trends) - 1},
             {narrow, sizeof(without_trends) - 2},
             {narrow, sizeof(narrow) - 1},
             {"round 12/40 collecting 45% left 3:20 return -195.1 strict_delay_s 32.46 loss 2.23", sizeof(narrow) - 2},
             {without_name, sizeof(without_name) - 1}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        dt_progress_text(&v, &a, (int)c[i].columns, line, sizeof(line));
        assert_string_equal(line, c[i].line);
    }
    dt_progress_text(&v, &a, 39, line, sizeof(line)); /* the name goes where something else has room */
    assert_string_equal(line, "phase2_ppo round 12/40 collecting 45%");
    dt_progress_text(&v, &a, 40, line, sizeof(line));
    assert_string_equal(line, "round 12/40 collecting 45% left 3:20");
    dt_progress_text(&v, &a, -1, line, sizeof(line));
    assert_string_equal(line, "phase2_ppo");
    char exact[sizeof(without_name)], less[sizeof(without_name) - 1];
    dt_progress_text(&v, &a, (int)sizeof(without_name) - 1, exact, sizeof(exact));
    assert_string_equal(exact, without_name);
    dt_progress_text(&v, &a, (int)sizeof(without_name) - 1, less, sizeof(less));
    assert_string_equal(less, "round 12/40 collecting 45% left 3:20 return -195.1 2346 env steps/s");
}

/* ---- where standard error is no terminal ------------------------------------------------------------------------- */

static char logged[16][512];
static int n_logged;

static void keep_line(void *user, int level, const char *line)
{
    (void)user, (void)level;
    if (n_logged < 16) {
        snprintf(logged[n_logged++], sizeof(logged[0]), "%s", line);
    }
}

static dt_screen *open_plain(bool quiet)
{
    dt_screen *screen = NULL;
    setenv("TERM", "dumb", 1);
    dt_log_level_set(DT_LOG_ERROR);
    dt_log_sink_set(keep_line, NULL);
    n_logged = 0;
    assert_int_equal(dt_screen_open(quiet, &screen), DT_OK);
    return screen;
}

static void close_plain(dt_screen *screen)
{
    dt_screen_close(screen);
    dt_log_sink_set(NULL, NULL);
}

/* Lines come every few seconds, or when they must; a quiet run has none. */
static void test_plain(void **state)
{
    char name[] = "strict_delay_s";
    dt_progress_view v = a_round();
    v.headline_name = name;
    dt_screen *screen = open_plain(false);
    dt_screen_begin(screen, &v);
    assert_int_equal(n_logged, 0); /* the log says that it begins */
    dt_screen_show(screen, &v, false);
    assert_int_equal(n_logged, 1);
    assert_non_null(strstr(logged[0], "round 12/40  left 3:20  return -195.1 (+12)  strict_delay_s 32.46 (-4.1)"));
    dt_screen_show(screen, &v, false); /* not yet */
    dt_screen_show_activity(screen, "evaluating", 65);
    ahead_s += 4; /* seconds */
    dt_screen_show(screen, &v, false);
    assert_int_equal(n_logged, 1);
    ahead_s += 2;
    dt_screen_show(screen, &v, false);
    assert_int_equal(n_logged, 2);
    assert_non_null(strstr(logged[1], "left 3:20")); /* of the view as it is now */
    n_logged = 1;
    dt_screen_show_activity(screen, "evaluating", 65);
    assert_int_equal(n_logged, 1);
    ahead_s += 6;
    dt_screen_show_activity(screen, "evaluating", 65);
    assert_int_equal(n_logged, 2);
    n_logged = 1;
    memset(name, 'x', 6); /* the view has a copy */
    dt_screen_show(screen, &v, true);
    assert_int_equal(n_logged, 2);
    dt_screen_end(screen);
    close_plain(screen);
    screen = open_plain(false);
    dt_screen_show_activity(screen, "evaluating", 65);
    assert_int_equal(n_logged, 1);
    assert_non_null(strstr(logged[0], "evaluating  left 1:05"));
    close_plain(screen);
    screen = open_plain(true);
    dt_screen_begin(screen, &v);
    dt_screen_show(screen, &v, false);
    dt_screen_show(screen, &v, true);
    dt_screen_show_activity(screen, "evaluating", 65);
    assert_int_equal(n_logged, 0);
    close_plain(screen);
    dt_screen_close(NULL);
}

/* Seconds that a line says are left, and whether it says about; -1: it says nothing of them. */
static double left_of(const char *line, bool *is_about)
{
    const char *at = strstr(line, "left ");
    long h = 0, m = 0, s = 0;
    assert_non_null(at);
    at += strlen("left ");
    *is_about = *at == '~';
    at += *is_about;
    if (strncmp(at, "--:--", 5) == 0) {
        return -1;
    }
    if (sscanf(at, "%ld:%ld:%ld", &h, &m, &s) != 3) {
        h = 0;
        assert_int_equal(sscanf(at, "%ld:%ld", &m, &s), 2);
    }
    return (double)(3600 * h + 60 * m + s);
}

/* In the first round what is left is guessed from its own steps; in later ones from what has ended. */
static void test_first_round(void **state)
{
    static const struct {
        uint64_t at, of;
        dt_activity a;
        bool guesses;
    } c[] = {{1, 3, {DT_ACTIVITY_COLLECT, 1, 4}, true},  {2, 3, {DT_ACTIVITY_COLLECT, 1, 4}, false},
             {1, 0, {DT_ACTIVITY_COLLECT, 1, 4}, false}, {1, 3, {DT_ACTIVITY_COLLECT, 0, 4}, false},
             {1, 3, {DT_ACTIVITY_COLLECT, 1, 0}, false}, {1, 3, {DT_ACTIVITY_LEARN, 1, 4}, false}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        dt_progress_view v = a_round();
        bool is_about = false;
        v.left_s = NAN;
        v.at = c[i].at;
        v.of = c[i].of;
        dt_screen *screen = open_plain(false);
        dt_activity_set_reporter(true);
        dt_screen_begin(screen, &v);
        dt_activity_set(c[i].a.kind, c[i].a.done, c[i].a.total);
        ahead_s += 100;
        dt_screen_show(screen, &v, true);
        dt_activity_set_reporter(false);
        close_plain(screen);
        assert_int_equal(n_logged, 1);
        const double left = left_of(logged[0], &is_about);
        if (c[i].guesses) { /* 100 s for a quarter of the first of 3 rounds: 11 quarters are left */
            assert_true(is_about && left >= 1100 && left < 1160);
        } else {
            assert_true(!is_about && left == -1);
        }
    }
}

/* What was left when the view was made gets less, and never below nothing. */
static void test_left_gets_less(void **state)
{
    dt_progress_view v = a_round();
    bool is_about = false;
    v.left_s = 0.0005;
    dt_screen *screen = open_plain(false);
    dt_activity_set_reporter(true);
    dt_screen_begin(screen, &v);
    dt_screen_show(screen, &v, true);
    dt_activity_set(DT_ACTIVITY_LEARN, 1, 4);
    v.left_s = 0;
    dt_screen_show(screen, &v, true);
    dt_activity_set(DT_ACTIVITY_EVALUATE, 1, 4); /* learning is over, and this is not */
    dt_screen_show(screen, &v, true);
    v.left_s = 100;
    dt_screen_show(screen, &v, true);
    dt_activity_set_reporter(false);
    close_plain(screen);
    assert_int_equal(n_logged, 4);
    assert_true(left_of(logged[0], &is_about) == 0 && !is_about);
    assert_true(left_of(logged[1], &is_about) == 0);
    assert_true(left_of(logged[2], &is_about) == -1);
    assert_true(left_of(logged[3], &is_about) == 100 || left_of(logged[3], &is_about) == 99);
}

static void *report_elsewhere(void *unused)
{
    dt_activity_set(DT_ACTIVITY_LEARN, 7, 9);
    return unused;
}

static void test_activity(void **state)
{
    pthread_t thread;
    dt_activity_set(DT_ACTIVITY_COLLECT, 1, 2); /* this thread does not report yet */
    assert_int_equal(dt_activity_get().kind, DT_ACTIVITY_NONE);
    dt_activity_set_reporter(true);
    dt_activity_set(DT_ACTIVITY_COLLECT, 3, UINT64_MAX);
    assert_int_equal(dt_activity_get().kind, DT_ACTIVITY_COLLECT);
    assert_int_equal(dt_activity_get().done, 3);
    assert_int_equal(dt_activity_get().total, (1u << 28) - 1);
    assert_int_equal(pthread_create(&thread, NULL, report_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(dt_activity_get().kind, DT_ACTIVITY_COLLECT);
    dt_activity_set_reporter(false);
    assert_int_equal(dt_activity_get().kind, DT_ACTIVITY_NONE);
}

/* On a terminal, with a main thread that does nothing for the screen. */
static void test_redrawn(void **state)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY), standard = dup(STDERR_FILENO);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        skip();
    }
    const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    setenv("TERM", "xterm", 1);
    fflush(stderr);
    dup2(terminal, STDERR_FILENO);
    dt_screen *screen = NULL;
    assert_int_equal(dt_screen_open(false, &screen), DT_OK);
    dt_progress_view v = a_round();
    dt_activity_set_reporter(true);
    dt_screen_begin(screen, &v);
    char seen[8192] = "";
    struct pollfd first = {.fd = master, .events = POLLIN};
    size_t n = 0;
    assert_int_equal(poll(&first, 1, 500), 1); /* at once, before the ticker comes */
    const ssize_t begun = read(master, seen, sizeof(seen) - 1);
    n = begun > 0 ? (size_t)begun : 0;
    assert_non_null(strstr(seen, "round 12/40"));
    dt_activity_set(DT_ACTIVITY_COLLECT, 50, 100);
    for (int i = 0; i < 100 && strstr(seen, "collecting 50%") == NULL; i++) {
        struct pollfd p = {.fd = master, .events = POLLIN};
        if (poll(&p, 1, 100) > 0 && n + 1 < sizeof(seen)) {
            const ssize_t more = read(master, seen + n, sizeof(seen) - n - 1);
            n += more > 0 ? (size_t)more : 0;
            seen[n] = '\0';
        }
    }
    dt_screen_close(screen);
    dt_activity_set_reporter(false);
    dup2(standard, STDERR_FILENO);
    close(standard);
    close(terminal);
    close(master);
    assert_non_null(strstr(seen, "collecting 50%"));
    /* after each redraw the cursor is back at the begin: a terminal that got narrower has broken the line in two, and
     * what follows erases both rows */
    for (const char *p = seen; (p = strstr(p, "phase2_ppo")) != NULL; p++) {
        const char *end = strstr(p, "\033[J");
        if (end != NULL && end[3] != '\0') {
            assert_int_equal(end[3], '\r');
        }
    }
    assert_null(strstr(seen, "\033[K"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round), cmocka_unit_test(test_unknown),     cmocka_unit_test(test_lines),
        cmocka_unit_test(test_plain), cmocka_unit_test(test_first_round), cmocka_unit_test(test_left_gets_less),
        cmocka_unit_test(test_texts), cmocka_unit_test(test_activity),    cmocka_unit_test(test_redrawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
