/* SPDX-License-Identifier: Apache-2.0
 *
 * See progress.h.
 */
#include <config.h>

#include "metrics/progress.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double LIVE_EVERY_S = 0.1;
static const double PLAIN_EVERY_S = 5.0;
enum { LINE_BYTES = 512 };

struct dt_screen {
    bool live, color, quiet, drawn;
    double last_s;
    char line[LINE_BYTES];
};

static int columns(void)
{
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) {
        return w.ws_col;
    }
    return 80;
}

static void wipe(void *user)
{
    dt_screen *s = user;
    if (s->drawn) {
        fputs("\r\033[K", stderr);
    }
}

static void redraw(void *user)
{
    dt_screen *s = user;
    if (s->drawn) {
        const int width = columns() - 1;
        fprintf(stderr, "\r%s%.*s%s\033[K", s->color ? "\033[36m" : "", width, s->line, s->color ? "\033[0m" : "");
        fflush(stderr);
    }
}

dt_status dt_screen_open(bool quiet, dt_screen **out_p)
{
    dt_screen *s = dt_alloc(sizeof(*s));
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the progress line");
    }
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    s->quiet = quiet;
    s->live = !quiet && isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb") != 0);
    s->color = s->live && (no_color == NULL || no_color[0] == '\0');
    s->last_s = -1e9;
    if (s->live) {
        dt_log_screen_set(wipe, redraw, s);
    }
    *out_p = s;
    return DT_OK;
}

void dt_screen_close(dt_screen *s)
{
    if (s == NULL) {
        return;
    }
    dt_screen_end(s);
    if (s->live) {
        dt_log_screen_set(NULL, NULL, NULL);
    }
    dt_free(s);
}

static int add_time(char *out, size_t bytes, double s)
{
    if (s < 0 || !isfinite(s)) {
        return snprintf(out, bytes, "  left --:--");
    }
    const long t = (long)dt_i64_within(s + 0.5, 0, LONG_MAX);
    if (t >= 3600) {
        return snprintf(out, bytes, "  left %ld:%02ld:%02ld", t / 3600, t / 60 % 60, t % 60);
    }
    return snprintf(out, bytes, "  left %ld:%02ld", t / 60, t % 60);
}

static void format(dt_screen *s, const dt_progress_view *v)
{
    char left[32];
    char steps[48];
    add_time(left, sizeof(left), v->left_s);
    if (v->steps > 0) {
        snprintf(steps, sizeof(steps), "%llu/%llu", (unsigned long long)v->step, (unsigned long long)v->steps);
    } else {
        snprintf(steps, sizeof(steps), "%llu", (unsigned long long)v->step);
    }
    int n =
        snprintf(s->line, sizeof(s->line), "%s  step %s  epoch %llu/%llu  %.0f samples/s%s  loss %.4g", v->phase, steps,
                 (unsigned long long)(v->epoch + 1), (unsigned long long)v->epochs, v->samples_per_s, left, v->loss);
    if (n > 0 && (size_t)n < sizeof(s->line)) {
        snprintf(s->line + n, sizeof(s->line) - (size_t)n, "  grad %.3g  lr %.2e  mem %.0f MB  wait %.1f%%",
                 v->grad_norm, v->learning_rate, (double)v->rss_bytes / 1e6, 100.0 * v->data_wait);
    }
    const size_t at = strlen(s->line);
    if (v->loss_scale != 1) {
        snprintf(s->line + at, sizeof(s->line) - at, "  scale %g", v->loss_scale);
    }
}

static bool is_due(dt_screen *s, bool force)
{
    const double now = dt_clock_s();
    if (s->quiet || (!force && now - s->last_s < (s->live ? LIVE_EVERY_S : PLAIN_EVERY_S))) {
        return false;
    }
    s->last_s = now;
    return true;
}

static void put_line(dt_screen *s)
{
    if (s->live) {
        s->drawn = true;
        redraw(s);
    } else {
        dt_log(DT_LOG_INFO, "%s", s->line);
    }
}

void dt_screen_show(dt_screen *s, const dt_progress_view *v, bool force)
{
    if (is_due(s, force)) {
        format(s, v);
        put_line(s);
    }
}

void dt_screen_say(dt_screen *s, const char *text, double left_s)
{
    if (is_due(s, false)) {
        char left[32];
        add_time(left, sizeof(left), left_s);
        snprintf(s->line, sizeof(s->line), "%s%s", text, left);
        put_line(s);
    }
}

void dt_screen_end(dt_screen *s)
{
    if (s->drawn) {
        fputc('\n', stderr);
        s->drawn = false;
    }
}

bool dt_screen_is_live(const dt_screen *s)
{
    return s->live;
}
