/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of a comparison. Where there are several tasks, the scores of each are scaled to [0, 1] by the least and
 * the greatest final value of all runs, so that none outweighs the others.
 */
#include <config.h>

#include "study/compare.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>

enum { RESAMPLES = 2000, CURVE_RESAMPLES = 400 };

/* Linear between neighbours; constant past the ends. */
static double curve_at(const dt_compare_run *r, double x)
{
    uint32_t i = 0;
    while (i + 1 < r->n && r->x[i + 1] <= x) {
        i++;
    }
    if (i + 1 == r->n || x <= r->x[i] || r->x[i + 1] == r->x[i]) {
        return r->y[i];
    }
    return r->y[i] + (r->y[i + 1] - r->y[i]) * (x - r->x[i]) / (r->x[i + 1] - r->x[i]);
}

/* The last value up to there, and the mean of the curve from its first value on. */
static dt_status summarise_run(const dt_compare *c, dt_compare_run *r)
{
    enum { PIECES = 200 };
    const double slack = 1.01 * c->steps;
    uint32_t last = 0;
    while (last + 1 < r->n && r->x[last + 1] <= slack) {
        last++;
    }
    if (r->x[0] > slack) {
        return DT_FAIL(DT_ECONFIG, "metric %s: the first value of %s is at step %.0f, after --steps %.0f", c->metric,
                       r->path, r->x[0], c->steps);
    }
    if (r->unknown[last] <= slack) {
        return DT_FAIL(DT_ECONFIG,
                       "metric %s: it is unknown at step %.0f of %s; compare after fewer steps (--steps %.0f) or leave "
                       "the run out",
                       c->metric, r->unknown[last], r->path, r->x[last]);
    }
    r->final = r->y[last];
    double sum = 0;
    for (int i = 0; i <= PIECES; i++) {
        const double x = r->x[0] + (r->x[last] - r->x[0]) * i / PIECES;
        sum += curve_at(r, x) * (i == 0 || i == PIECES ? 0.5 : 1);
    }
    r->area = sum / PIECES;
    return DT_OK;
}

static double scale(const dt_compare *c, uint32_t task, double v)
{
    const dt_compare_task *t = &c->task[task];
    return c->n_tasks == 1 ? v : t->high > t->low ? (v - t->low) / (t->high - t->low) : 0.5;
}

/* Scores of a group: kind 0 final values, 1 areas, 2 curves at x. */
static dt_strata list_scores(const dt_compare *c, const dt_compare_group *g, int kind, double x, double *out)
{
    for (uint32_t i = 0; i < g->n; i++) {
        const dt_compare_run *r = &c->run[g->first + i];
        out[i] = scale(c, r->task, kind == 0 ? r->final : kind == 1 ? r->area : curve_at(r, x));
    }
    return (dt_strata){out, g->end, c->n_tasks};
}

static void summarise_group(dt_compare *c, dt_compare_group *g, double *scores)
{
    dt_strata s = list_scores(c, g, 0, 0, scores);
    double sum = 0;
    g->least = INFINITY;
    g->most = -INFINITY;
    for (uint32_t i = 0; i < g->n; i++) {
        sum += scores[i];
        g->least = fmin(g->least, scores[i]);
        g->most = fmax(g->most, scores[i]);
    }
    g->mean = sum / g->n;
    g->final = dt_iqm_stratified(&s, RESAMPLES);
    for (int i = 0; i < DT_COMPARE_PLACES; i++) {
        g->share[i] = dt_iqm_share(&s, c->threshold[i], c->is_min, CURVE_RESAMPLES);
    }
    s = list_scores(c, g, 1, 0, scores);
    g->area = dt_iqm_stratified(&s, RESAMPLES);
    for (int i = 0; i < DT_COMPARE_PLACES; i++) {
        s = list_scores(c, g, 2, c->place[i], scores);
        g->at[i] = dt_iqm_stratified(&s, CURVE_RESAMPLES);
    }
}

static void choose_places(dt_compare *c)
{
    double first = 0, low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < c->n_runs; i++) {
        const double v = scale(c, c->run[i].task, c->run[i].final);
        first = fmax(first, c->run[i].x[0]);
        low = fmin(low, v);
        high = fmax(high, v);
    }
    for (int i = 0; i < DT_COMPARE_PLACES; i++) {
        const double at = (double)i / (DT_COMPARE_PLACES - 1);
        c->place[i] = first < c->steps ? first + at * (c->steps - first) : c->steps;
        c->threshold[i] = low + at * (high - low);
    }
}

dt_status dt_compare_summarise(dt_compare *c)
{
    double *a = dt_alloc_n(c->n_runs, sizeof(*a)), *b = dt_alloc_n(c->n_runs, sizeof(*b));
    c->improvement = dt_alloc_n((size_t)c->n_groups * c->n_groups, sizeof(*c->improvement));
    dt_status st = a != NULL && b != NULL && c->improvement != NULL
                       ? DT_OK
                       : DT_FAIL(DT_ENOMEM, "out of memory for %u runs", c->n_runs);
    for (uint32_t i = 0; i < c->n_runs && st == DT_OK; i++) {
        dt_compare_run *r = &c->run[i];
        if (r->n == 0) {
            st = DT_FAIL(DT_ECONFIG, "metric %s: %s has no finite value of it", c->metric, r->path);
            break;
        }
        st = summarise_run(c, r);
        if (st != DT_OK) {
            break;
        }
        c->task[r->task].low = fmin(c->task[r->task].low, r->final);
        c->task[r->task].high = fmax(c->task[r->task].high, r->final);
    }
    if (st == DT_OK) {
        choose_places(c);
    }
    for (uint32_t i = 0; i < c->n_groups && st == DT_OK; i++) {
        summarise_group(c, &c->group[i], a);
        for (uint32_t k = 0; k < c->n_groups; k++) {
            const dt_strata x = list_scores(c, &c->group[i], 0, 0, a), y = list_scores(c, &c->group[k], 0, 0, b);
            c->improvement[i * c->n_groups + k] = dt_iqm_improvement(&x, &y, c->is_min, RESAMPLES);
        }
    }
    dt_free(a);
    dt_free(b);
    return st;
}
