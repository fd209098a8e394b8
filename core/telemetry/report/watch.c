/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/watch.h"

#include "base/print.h"
#include "telemetry/report/html.h"
#include "telemetry/report/ranks_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PACE_RECORDS = 50, COURSE = 32, NAME = 30, BAR = 40, HEAD_LINES = 4, MAX_LINE = 512 };

/* Text as columns see it: characters, not bytes; what would move the cursor is left out. */
static void append_clipped(dt_str *out, const char *text, uint32_t columns)
{
    for (uint32_t n = 0; *text != '\0' && n < columns; n++) {
        size_t skip = 0;
        const size_t bytes = dt_print_safe(text, &skip);
        const bool is_plain = bytes > 0 && *text != '\n' && *text != '\t';
        dt_str_add_n(out, is_plain ? text : "?", is_plain ? bytes : 1);
        text += skip;
    }
}

static void append_padding(dt_str *out, const char *text, uint32_t columns)
{
    uint32_t n = 0;
    for (const char *c = text; *c != '\0'; c++) {
        n += ((unsigned char)*c & 0xc0) != 0x80;
    }
    append_clipped(out, text, columns);
    for (; n < columns; n++) {
        dt_str_add(out, " ");
    }
}

double dt_watch_left_s(const dt_logbook *l)
{
    const dt_records *r = l->records;
    const dt_run_state *s = &l->state;
    const dt_series *done = r->n_phases > 0 ? dt_records_find(r, r->n_phases - 1, "progress") : NULL;
    if (r->n_phases == 0 || s->condition != DT_RUN_RUNNING || strcmp(r->phase[r->n_phases - 1].id, s->phase) != 0) {
        return NAN;
    }
    const dt_phase_records *p = &r->phase[r->n_phases - 1];
    const uint32_t last = p->first + p->n - 1;
    const uint32_t first = p->n > PACE_RECORDS ? last - PACE_RECORDS : p->first;
    const double passed = r->wall_s[last] - r->wall_s[first];
    double made = s->steps > 0 ? (double)(r->step[last] - r->step[first]) / (double)s->steps : NAN;
    if (done != NULL && done->n > 0) {
        const uint32_t n = done->n < PACE_RECORDS + 1 ? done->n : PACE_RECORDS + 1;
        made = done->value[done->n - 1] - done->value[done->n - n];
    }
    return made > 0 && passed > 0 && s->part <= 1 ? passed * (1 - s->part) / made : NAN;
}

/* Means of equal pieces of a series, as blocks between its least and its greatest. */
static void append_sparkline(dt_str *out, const dt_series *s)
{
    static const char *const block[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double mean[COURSE], low = INFINITY, high = -INFINITY;
    const uint32_t pieces = s->n < COURSE ? s->n : COURSE;
    for (uint32_t p = 0; p < pieces; p++) {
        const uint32_t first = (uint32_t)((uint64_t)p * s->n / pieces);
        const uint32_t end = (uint32_t)((uint64_t)(p + 1) * s->n / pieces);
        double sum = 0, n = 0;
        for (uint32_t i = first; i < end; i++) {
            if (isfinite(s->value[i])) {
                sum += s->value[i];
            }
            n += isfinite(s->value[i]);
        }
        mean[p] = n > 0 ? sum / n : NAN;
        low = n > 0 ? fmin(low, mean[p]) : low;
        high = n > 0 ? fmax(high, mean[p]) : high;
    }
    for (uint32_t p = 0; p < COURSE; p++) {
        const bool is_there = p < pieces && isfinite(mean[p]);
        const double part = is_there && high > low ? (mean[p] - low) / (high - low) : 0;
        dt_str_add(out, is_there ? block[(int)fmin(7, part * 8)] : " ");
    }
}

static bool is_constant(const dt_series *s)
{
    for (uint32_t i = 1; i < s->n; i++) {
        if (s->value[i] != s->value[0] && !(isnan(s->value[i]) && isnan(s->value[0]))) {
            return false;
        }
    }
    return true;
}

static void append_head(const dt_logbook *l, const dt_watch_opts *o, dt_str *out)
{
    const dt_run_state *s = &l->state;
    char line[MAX_LINE], time[DT_NUMBER_BYTES], left[DT_NUMBER_BYTES], best[DT_NUMBER_BYTES];
    const char *strong = o->color ? "\033[1m" : "", *plain = o->color ? "\033[0m" : "";
    const int n_name = snprintf(line, sizeof(line), "%.120s  %s", l->name, dt_run_condition_text(s->condition));
    if (s->condition == DT_RUN_FAILED) {
        snprintf(line + n_name, sizeof(line) - (size_t)n_name, " (%d)  %.200s", s->exit_code, s->error);
    }
    dt_str_add(out, strong);
    append_clipped(out, line, o->columns);
    dt_str_addf(out, "%s\n", plain);

    const double left_s = dt_watch_left_s(l);
    int n = snprintf(line, sizeof(line), "%.100s", s->phase[0] != '\0' ? s->phase : "no phase yet");
    if (s->n_phases > 1) {
        n += snprintf(line + n, sizeof(line) - (size_t)n, " (%lld of %lld)", (long long)s->phase_index + 1,
                      (long long)s->n_phases);
    }
    n += snprintf(line + n, sizeof(line) - (size_t)n, "  step %llu", (unsigned long long)s->step);
    if (s->steps > 0) {
        n += snprintf(line + n, sizeof(line) - (size_t)n, "/%llu", (unsigned long long)s->steps);
    }
    n += snprintf(line + n, sizeof(line) - (size_t)n, "  %s", dt_duration_text(s->wall_s, time));
    if (isfinite(left_s)) {
        n += snprintf(line + n, sizeof(line) - (size_t)n, ", %s left", dt_duration_text(left_s, left));
    }
    if (s->best_name[0] != '\0' && isfinite(s->best)) {
        snprintf(line + n, sizeof(line) - (size_t)n, "  best %.60s %s", s->best_name, dt_short_text(s->best, best));
    }
    append_clipped(out, line, o->columns);
    dt_str_add(out, "\n");
    const uint32_t width = o->columns > BAR + 8 ? BAR : o->columns > 12 ? o->columns - 8 : 4;
    if (isfinite(s->progress)) {
        for (uint32_t i = 0; i < width; i++) {
            dt_str_add(out, (i + 0.5) / width <= s->progress ? "━" : "─");
        }
        dt_str_addf(out, " %.0f %%\n\n", 100 * s->progress);
    } else {
        dt_str_add(out, "\n\n");
    }
}

/* Every cost that has a limit, next to it: what a constrained phase is about. */
static uint32_t append_costs(const dt_logbook *l, const dt_watch_opts *o, uint32_t room, dt_str *out)
{
    const dt_records *r = l->records;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_series && n < room; i++) {
        const dt_series *limit = &r->series[i];
        char name[160], cost[DT_NUMBER_BYTES], most[DT_NUMBER_BYTES], factor[DT_NUMBER_BYTES], line[MAX_LINE];
        if (limit->phase + 1 != r->n_phases || strncmp(limit->name, "limits/", 7) != 0) {
            continue;
        }
        snprintf(name, sizeof(name), "costs/%.140s", limit->name + 7);
        const dt_series *s = dt_records_find(r, limit->phase, name);
        snprintf(name, sizeof(name), "multipliers/%.140s", limit->name + 7);
        const dt_series *m = dt_records_find(r, limit->phase, name);
        const double is = s != NULL ? dt_series_last(s) : NAN, may_be = dt_series_last(limit);
        const bool is_over = is > may_be;
        int bytes = snprintf(line, sizeof(line), "cost %.*s  %s of at most %s%s", NAME, limit->name + 7,
                             dt_short_text(is, cost), dt_short_text(may_be, most), is_over ? "  OVER" : "");
        if (m != NULL) {
            snprintf(line + bytes, sizeof(line) - (size_t)bytes, "  multiplier %s",
                     dt_short_text(dt_series_last(m), factor));
        }
        dt_str_add(out, o->color ? (is_over ? "\033[31m" : "\033[32m") : "");
        append_clipped(out, line, o->columns);
        dt_str_add(out, o->color ? "\033[0m\n" : "\n");
        n++;
    }
    return n;
}

/* How several ranks share the work of the phase. */
static uint32_t append_ranks(const dt_logbook *l, const dt_watch_opts *o, uint32_t room, dt_str *out)
{
    char line[DT_RANKS_TEXT_BYTES];
    const dt_records *r = l->records;
    if (room == 0 || r->n_phases == 0 || !dt_ranks_describe_waiting(r, r->n_phases - 1, l->state.ranks, line)) {
        return 0;
    }
    append_clipped(out, line, o->columns);
    dt_str_add(out, "\n");
    return 1;
}

/* Of a long name the part that distinguishes it from others: folders in front are left out. */
static const char *shorten_name(const char *name, uint32_t columns)
{
    for (const char *slash = name; strlen(name) > columns && (slash = strchr(name, '/')) != NULL;) {
        name = slash + 1;
    }
    return name;
}

static void append_series(const dt_series *s, const dt_watch_opts *o, dt_str *out)
{
    char last[DT_NUMBER_BYTES];
    const uint32_t name = o->columns > NAME + COURSE + 14 ? NAME : o->columns / 3;
    append_padding(out, shorten_name(s->name, name), name);
    dt_str_add(out, " ");
    if (o->columns >= name + COURSE + 14) {
        dt_str_add(out, o->color ? "\033[36m" : "");
        append_sparkline(out, s);
        dt_str_add(out, o->color ? "\033[0m " : " ");
    }
    dt_short_text(dt_series_last(s), last);
    dt_str_addf(out, "%s\n", last);
}

void dt_watch_append_view(const dt_logbook *l, const dt_watch_opts *o, dt_str *out)
{
    const dt_records *r = l->records;
    append_head(l, o, out);
    const uint32_t room = o->rows == 0 ? UINT32_MAX : o->rows > HEAD_LINES + 1 ? o->rows - HEAD_LINES - 1 : 0;
    uint32_t n = append_costs(l, o, room, out);
    n += append_ranks(l, o, room - n, out);
    const uint32_t evaluated = r->n_phases > 0 ? dt_records_last_evaluation(r, r->n_phases - 1) : UINT32_MAX;
    for (uint32_t i = 0; i < 2 * r->n_series; i++) { /* what runs are ranked by and the loss before the others */
        const dt_series *s = &r->series[i % r->n_series];
        const bool is_first = strcmp(s->name, "loss") == 0 || strcmp(s->name, l->state.best_name) == 0;
        const bool is_old = strncmp(s->name, "eval/", 5) == 0 && !dt_series_has_record(s, evaluated);
        if (s->phase + 1 == r->n_phases && !is_old && is_first == (i < r->n_series) && (is_first || !is_constant(s)) &&
            strcmp(s->name, "progress") != 0 && strncmp(s->name, "eval/seeds/", 11) != 0 &&
            (o->rows == 0 || HEAD_LINES + n + 1 < o->rows)) {
            append_series(s, o, out);
            n++;
        }
    }
}
