/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/group.h"

#include "telemetry/report/iqm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PLACES = 48, CURVE_RESAMPLES = 400 };

/* ---- which runs belong together ---------------------------------------------------------------------------------- */

/* "phases.1.seed" or "seed": does it leave results as they are, or is it the seed? */
static bool is_ungrouped_option(const char *path)
{
    static const char *const whole[] = {"seed", "engine.threads", "env.workers", "env.isolation"};
    static const char *const sections[] = {"log.", "report.", "metrics.", "memory."};
    unsigned phase = 0;
    int bytes = 0;
    if (sscanf(path, "phases.%u.%n", &phase, &bytes) == 1 && bytes > 0) {
        path += bytes;
    }
    const size_t n = strcspn(path, "/");
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        if (strlen(whole[i]) == n && strncmp(path, whole[i], n) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (strncmp(path, sections[i], strlen(sections[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_value_item(const dt_flat_item *item)
{
    const char *end = strrchr(item->path, '/');
    return (end == NULL || strcmp(end, "/origin") != 0) && !is_ungrouped_option(item->path);
}

/* Both list their options in the same order. */
static bool is_same_configuration(const dt_flat *a, const dt_flat *b)
{
    for (uint32_t i = 0, k = 0;; i++, k++) {
        while (i < a->n && !is_value_item(&a->item[i])) {
            i++;
        }
        while (k < b->n && !is_value_item(&b->item[k])) {
            k++;
        }
        if (i == a->n || k == b->n) {
            return i == a->n && k == b->n;
        }
        if (strcmp(a->item[i].path, b->item[k].path) != 0 || strcmp(a->item[i].text, b->item[k].text) != 0) {
            return false;
        }
    }
}

uint32_t dt_group_number_runs(const dt_logbook *run, uint32_t n, uint32_t group[DT_PAGE_MAX_RUNS])
{
    uint32_t n_groups = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < i && (run[i].config.n == 0 || !is_same_configuration(&run[i].config, &run[k].config))) {
            k++;
        }
        group[i] = k < i ? group[k] : n_groups++;
    }
    return n_groups;
}

void dt_group_name(const dt_page *p, uint32_t group, char out[DT_GROUP_NAME])
{
    uint32_t n = 0;
    size_t bytes = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        if (p->group[i] != group) {
            continue;
        }
        if (n++ == 0) {
            snprintf(out, DT_GROUP_NAME, "%s", p->run[i].name);
            bytes = strlen(out);
        }
        size_t same = 0;
        while (same < bytes && out[same] == p->run[i].name[same]) {
            same++;
        }
        bytes = same;
    }
    if (n < 2) {
        return;
    }
    while (bytes > 0 && ((unsigned char)out[bytes] & 0xc0) == 0x80) { /* no part of a character */
        bytes--;
    }
    while (bytes > 0 && strchr("-_. =", out[bytes - 1]) != NULL) {
        bytes--;
    }
    const size_t most = DT_GROUP_NAME - 24;
    bytes = bytes < most ? bytes : most;
    if (bytes > 0) {
        snprintf(out + bytes, DT_GROUP_NAME - bytes, " (%u runs)", n);
    } else {
        snprintf(out, DT_GROUP_NAME, "configuration %u (%u runs)", group + 1, n);
    }
}

/* ---- one curve of several ---------------------------------------------------------------------------------------- */

typedef struct line { /* smoothed where the curve is */
    const double *x, *y;
    uint32_t n;
} line;

static line line_of_curve(const dt_curve *c)
{
    return c->n_smooth > 1 ? (line){c->smooth_x, c->smooth_y, c->n_smooth} : (line){c->x, c->y, c->n};
}

/* Linear between neighbours; x is within the line. */
static double interpolate_line(const line *l, double x)
{
    uint32_t i = 0;
    while (i + 1 < l->n && l->x[i + 1] <= x) {
        i++;
    }
    if (i + 1 == l->n || l->x[i] == x) {
        return l->y[i];
    }
    return l->y[i] + (l->y[i + 1] - l->y[i]) * (x - l->x[i]) / (l->x[i + 1] - l->x[i]);
}

bool dt_group_average_curve(const dt_curve *member, uint32_t n, dt_curve *out)
{
    double from = -INFINITY, to = INFINITY, value[DT_PAGE_MAX_RUNS];
    for (uint32_t i = 0; i < n; i++) {
        const line l = line_of_curve(&member[i]);
        from = l.n > 0 ? fmax(from, l.x[0]) : INFINITY;
        to = l.n > 0 ? fmin(to, l.x[l.n - 1]) : -INFINITY;
    }
    if (n < 2 || !(from <= to)) {
        return false;
    }
    *out = (dt_curve){.color = member[0].color, .n_runs = n};
    const line first = line_of_curve(&member[0]);
    const uint32_t stride = (first.n + MAX_PLACES - 1) / MAX_PLACES;
    for (uint32_t i = 0; i < first.n; i++) {
        const bool is_taken = i % stride == 0 || i + 1 == first.n;
        if (!is_taken || first.x[i] < from || first.x[i] > to) {
            continue;
        }
        for (uint32_t k = 0; k < n; k++) {
            const line l = line_of_curve(&member[k]);
            value[k] = interpolate_line(&l, first.x[i]);
        }
        const dt_iqm r = dt_iqm_interval(value, n, CURVE_RESAMPLES);
        out->x[out->n] = first.x[i];
        out->y[out->n] = out->last = r.value;
        out->low[out->n] = r.low;
        out->high[out->n++] = r.high;
    }
    for (uint32_t k = 0; k < n; k++) { /* what was recorded last, not what is drawn there */
        value[k] = member[k].last;
    }
    out->last = dt_iqm_compute(value, n);
    return out->n > 0;
}
