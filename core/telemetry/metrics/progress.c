/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/metrics/progress.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double LIVE_EVERY_S = 0.1;
static const double PLAIN_EVERY_S = 5.0;
static const double PLAIN_WITHIN_S = 30.0; /* within an iteration */
enum { LINE_BYTES = 512, PART_BYTES = 96, PLAIN_COLUMNS = 400 };

struct dt_screen {
    bool live, color, quiet;
    double begun_s; /* first view of the phase */

    pthread_t ticker;
    bool has_ticker;
    pthread_mutex_t lock; /* what follows; taken after the lock of the log */
    pthread_cond_t wake;
    bool ends, drawn, has_view;
    dt_progress_view view;
    char headline_name[64];
    double view_s, shown_s;
    char line[LINE_BYTES];
};

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void append_time(char *out, size_t bytes, const char *about, double s)
{
    const long t = (long)dt_i64_within(s + 0.5, 0, LONG_MAX);
    if (s < 0 || !isfinite(s)) {
        snprintf(out, bytes, "left --:--");
    } else if (t >= 3600) {
        snprintf(out, bytes, "left %s%ld:%02ld:%02ld", about, t / 3600, t / 60 % 60, t % 60);
    } else {
        snprintf(out, bytes, "left %s%ld:%02ld", about, t / 60, t % 60);
    }
}

static void append_activity(char *out, size_t bytes, const dt_activity *a)
{
    out[0] = '\0';
    switch (a->kind) {
    case DT_ACTIVITY_COLLECT:
        snprintf(out, bytes, "collecting %.0f%%", a->total > 0 ? 100.0 * a->done / a->total : 0.0);
        break;
    case DT_ACTIVITY_LEARN:
        snprintf(out, bytes, "learning %u/%u", a->done + 1, a->total);
        break;
    case DT_ACTIVITY_EVALUATE:
        if (a->total > 0) {
            snprintf(out, bytes, "evaluating %u/%u", a->done, a->total);
        } else {
            snprintf(out, bytes, "evaluating");
        }
        break;
    case DT_ACTIVITY_SAVE:
        snprintf(out, bytes, "saving");
        break;
    default:
        break;
    }
}

static void append_named_value(char *out, size_t bytes, const char *name, double value, double change)
{
    out[0] = '\0';
    if (isfinite(value)) {
        const int n = snprintf(out, bytes, "%.40s %.4g", name, value);
        if (isfinite(change) && n > 0 && (size_t)n < bytes) {
            snprintf(out + n, bytes - (size_t)n, " (%+.2g)", change);
        }
    }
}

static void append_number(char *out, size_t bytes, const char *format, double value)
{
    out[0] = '\0';
    if (isfinite(value)) {
        snprintf(out, bytes, format, value);
    }
}

static void append_count(char *out, size_t bytes, const char *name, uint64_t at, uint64_t of)
{
    if (of > 0) {
        snprintf(out, bytes, "%s %llu/%llu", name, (unsigned long long)at, (unsigned long long)of);
    } else {
        snprintf(out, bytes, "%s %llu", name, (unsigned long long)at);
    }
}

/* In the first round nothing has ended that a pace could be taken from but the round's own steps. */
static double remaining_by_activity(const dt_progress_view *v, const dt_activity *a, double elapsed_s)
{
    if (a->kind != DT_ACTIVITY_COLLECT || v->at != 1 || v->of == 0 || a->done == 0 || a->total == 0) {
        return -1;
    }
    return elapsed_s * ((double)v->of * a->total / a->done - 1);
}

/* Length of the first n parts with gaps between them. */
static size_t append_field(char (*part)[PART_BYTES], uint32_t n, size_t gap)
{
    size_t all = 0;
    for (uint32_t i = 0; i < n; i++) {
        all += part[i][0] != '\0' ? strlen(part[i]) + (all > 0 ? gap : 0) : 0;
    }
    return all;
}

static void compose_line(const dt_progress_view *v, const dt_activity *a, double elapsed_s, int columns, char *out,
                         size_t bytes)
{
    enum { N_PARTS = 15, N_HEAD = 6 };
    char part[N_PARTS][PART_BYTES];
    char left_about[PART_BYTES], rate[PART_BYTES];
    uint32_t n = 0;
    const double guess_s = isfinite(v->left_s) && v->left_s >= 0 ? -1 : remaining_by_activity(v, a, elapsed_s);
    append_time(left_about, sizeof(left_about), guess_s >= 0 ? "~" : "", guess_s >= 0 ? guess_s : v->left_s);
    snprintf(part[n++], PART_BYTES, "%.40s", v->phase);
    append_count(part[n++], PART_BYTES, v->unit, v->at, v->of);
    append_activity(part[n++], PART_BYTES, a);
    snprintf(part[n++], PART_BYTES, "%s", left_about);
    append_named_value(part[n++], PART_BYTES, "return", v->episode_return, v->return_change);
    append_named_value(part[n++], PART_BYTES, v->headline_name != NULL ? v->headline_name : "",
                       v->headline_name != NULL ? v->headline : NAN, v->headline_change);
    snprintf(rate, sizeof(rate), "%%.0f %s/s", v->rate_unit);
    append_number(part[n++], PART_BYTES, rate, v->rate);
    append_number(part[n++], PART_BYTES, "%.0f env steps", v->env_steps);
    append_number(part[n++], PART_BYTES, "loss %.4g", v->loss);
    append_count(part[n++], PART_BYTES, "step", v->step, v->steps);
    append_number(part[n++], PART_BYTES, "grad %.3g", v->grad_norm);
    append_number(part[n++], PART_BYTES, "lr %.2e", v->learning_rate);
    snprintf(part[n++], PART_BYTES, "mem %.0f MB", (double)v->rss_bytes / 1e6);
    append_number(part[n++], PART_BYTES, "wait %.1f%%", 100.0 * v->data_wait);
    append_number(part[n++], PART_BYTES, "scale %g", v->loss_scale != 1 ? v->loss_scale : NAN);

    const size_t room = columns > 0 ? (size_t)columns : 0;
    if (append_field(part, N_HEAD, 2) >
        room) { /* the numbers are worth more than their trends, and than the phase's name */
        append_named_value(part[4], PART_BYTES, "return", v->episode_return, NAN);
        append_named_value(part[5], PART_BYTES, v->headline_name != NULL ? v->headline_name : "",
                           v->headline_name != NULL ? v->headline : NAN, NAN);
    }
    const char *gap = append_field(part, N_HEAD, 2) > room ? " " : "  ";
    if (append_field(part, N_HEAD, 1) > room && columns >= 40) {
        part[0][0] = '\0';
    }
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        const size_t wanted = strlen(part[i]) + (used > 0 ? strlen(gap) : 0);
        if (part[i][0] != '\0' && (used == 0 || used + wanted <= room) && used + wanted < bytes) {
            snprintf(out + used, bytes - used, "%s%s", used > 0 ? gap : "", part[i]);
            used += wanted;
        }
    }
}

void dt_progress_text(const dt_progress_view *v, const dt_activity *a, int columns, char *out, size_t bytes)
{
    compose_line(v, a, 0, columns, out, bytes);
}

/* ---- screen ------------------------------------------------------------------------------------------------------ */

static int terminal_columns(void)
{
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) {
        return w.ws_col;
    }
    return 80;
}

/* The cursor stays at the begin of the line: a terminal that breaks the line when it gets narrower keeps the cursor
 * there, and all rows of the line are erased from it. */
static void erase_line(void *user)
{
    dt_screen *s = user;
    pthread_mutex_lock(&s->lock);
    if (s->drawn) {
        fputs("\r\033[J", stderr);
    }
    pthread_mutex_unlock(&s->lock);
}

static void redraw_line(void *user)
{
    dt_screen *s = user;
    pthread_mutex_lock(&s->lock);
    if (s->drawn) {
        const int width = terminal_columns() - 1;
        fprintf(stderr, "\r%s%.*s%s\033[J\r", s->color ? "\033[36m" : "", width, s->line, s->color ? "\033[0m" : "");
        fflush(stderr);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Under the lock: the line as of now. */
static void format_line(dt_screen *s)
{
    const double now = dt_clock_s();
    const dt_activity a = dt_activity_get();
    dt_progress_view v = s->view;
    if (isfinite(v.left_s) && v.left_s >= 0) {
        v.left_s = fmax(0, v.left_s - (now - s->view_s));
        v.left_s = v.left_s == 0 && a.kind == DT_ACTIVITY_EVALUATE ? -1 : v.left_s; /* learning is over, this is not */
    }
    compose_line(&v, &a, now - s->begun_s, s->live ? terminal_columns() - 1 : PLAIN_COLUMNS, s->line, sizeof(s->line));
}

static void write_line(dt_screen *s, const char *line)
{
    if (s->live) {
        dt_log_screen_redraw();
    } else {
        dt_log(DT_LOG_INFO, "%s", line);
    }
}

/* Redraws while the main thread is busy. */
static void *redraw_periodically(void *user)
{
    dt_screen *s = user;
    pthread_mutex_lock(&s->lock);
    while (!s->ends) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        (void)pthread_cond_timedwait(&s->wake, &s->lock, &until);
        const double now = dt_clock_s();
        if (s->ends || !s->has_view || now - s->shown_s < (s->live ? 0.9 : PLAIN_WITHIN_S)) {
            continue;
        }
        char line[LINE_BYTES];
        format_line(s);
        s->shown_s = now;
        s->drawn = s->live;
        memcpy(line, s->line, sizeof(line));
        pthread_mutex_unlock(&s->lock);
        write_line(s, line);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* A screen without it shows what the main thread shows. Signals are the main thread's. */
static void start_ticker(dt_screen *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->has_ticker = pthread_create(&s->ticker, NULL, redraw_periodically, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

dt_status dt_screen_open(bool quiet, dt_screen **out_p)
{
    dt_screen *s = dt_alloc(sizeof(*s));
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the progress line");
    }
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    pthread_condattr_t monotonic;
    s->quiet = quiet;
    s->live = !quiet && isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb") != 0);
    s->color = s->live && (no_color == NULL || no_color[0] == '\0');
    s->shown_s = -1e9;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (s->live) {
        dt_log_screen_set(erase_line, redraw_line, s);
    }
    if (!quiet) {
        start_ticker(s);
    }
    *out_p = s;
    return DT_OK;
}

void dt_screen_close(dt_screen *s)
{
    if (s == NULL) {
        return;
    }
    if (s->has_ticker) {
        pthread_mutex_lock(&s->lock);
        s->ends = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->ticker, NULL);
    }
    dt_screen_end(s);
    if (s->live) {
        dt_log_screen_set(NULL, NULL, NULL);
    }
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    dt_free(s);
}

/* Under the lock. */
static bool is_redraw_due(dt_screen *s, bool force)
{
    const double now = dt_clock_s();
    if (s->quiet || (!force && now - s->shown_s < (s->live ? LIVE_EVERY_S : PLAIN_EVERY_S))) {
        return false;
    }
    s->shown_s = now;
    return true;
}

/* Under the lock. */
static void copy_view(dt_screen *s, const dt_progress_view *v)
{
    s->view = *v;
    s->view_s = dt_clock_s();
    s->has_view = true;
    if (v->headline_name != NULL) {
        snprintf(s->headline_name, sizeof(s->headline_name), "%s", v->headline_name);
        s->view.headline_name = s->headline_name;
    }
}

void dt_screen_begin(dt_screen *s, const dt_progress_view *v)
{
    pthread_mutex_lock(&s->lock);
    copy_view(s, v);
    s->begun_s = s->view_s;
    if (s->live) { /* elsewhere the log reports that it begins */
        format_line(s);
        s->shown_s = s->view_s;
        s->drawn = true;
    }
    pthread_mutex_unlock(&s->lock);
    dt_log_screen_redraw();
}

void dt_screen_show(dt_screen *s, const dt_progress_view *v, bool force)
{
    char line[LINE_BYTES];
    pthread_mutex_lock(&s->lock);
    copy_view(s, v);
    const bool shows = is_redraw_due(s, force);
    if (shows) {
        format_line(s);
        s->drawn = s->live;
        memcpy(line, s->line, sizeof(line));
    }
    pthread_mutex_unlock(&s->lock);
    if (shows) {
        write_line(s, line);
    }
}

void dt_screen_show_activity(dt_screen *s, const char *what, double left_s)
{
    char line[LINE_BYTES], left[PART_BYTES];
    append_time(left, sizeof(left), "", left_s);
    snprintf(line, sizeof(line), "%s  %s", what, left);
    pthread_mutex_lock(&s->lock);
    const bool shows = is_redraw_due(s, false);
    if (shows) {
        memcpy(s->line, line, sizeof(line));
        s->drawn = s->live;
    }
    pthread_mutex_unlock(&s->lock);
    if (shows) {
        write_line(s, line);
    }
}

void dt_screen_end(dt_screen *s)
{
    pthread_mutex_lock(&s->lock);
    s->has_view = false;
    if (s->drawn) {
        fputc('\n', stderr);
        s->drawn = false;
    }
    pthread_mutex_unlock(&s->lock);
}
