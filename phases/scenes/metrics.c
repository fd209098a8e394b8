/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <math.h>

enum { AXES = 2, KEY = 64 };
#define HALF_LOG_2PI 0.91893853320467274178

static const struct {
    uint32_t at;
    const char *key;
} coverage_keys[] = {{4, "coverage_50"}, {7, "coverage_80"}, {9, "coverage_95"}};
static const int64_t most_probable[METRICS_KS] = {1, 6};
static const char *const ade_name[METRICS_KS] = {"min_ade_1", "min_ade_6"};
static const char *const fde_name[METRICS_KS] = {"min_fde_1", "min_fde_6"};
static const char *const miss_name[METRICS_KS] = {"miss_rate_1", "miss_rate_6"};

/* Horizons of 1, 2, ... seconds that fall on a step. */
void metrics_horizons_init(metrics_horizons *s, int64_t F, double rate_hz)
{
    *s = (metrics_horizons){.F = F, .step_s = 1.0 / rate_hz};
    for (int second = 1; second <= METRICS_MAX_S; second++) {
        const double steps = second * rate_hz;
        if (fabs(steps - round(steps)) < 1e-6 && llround(steps) <= F) {
            s->step[s->n_horizons] = (uint32_t)llround(steps) - 1;
            s->seconds[s->n_horizons++] = second;
        }
    }
}

/* ---- one window -------------------------------------------------------------------------------------------------- */

static double point_distance(const float *p, const float *q)
{
    return hypot((double)p[0] - q[0], (double)p[1] - q[1]);
}

static void add_errors(metrics_sums *f, const metrics_horizons *s, const metrics_window *w)
{
    for (uint32_t i = 0; i < s->n_horizons; i++) {
        const int64_t at = s->step[i] * AXES;
        const float *p = w->future + at, *q = w->target + at;
        const double model = hypot(p[0] - (double)q[0], p[1] - (double)q[1]);
        const double cv = hypot(w->speed * s->seconds[i] - q[0], q[1]);
        f->square[i] += model * model;
        f->distance[i] += model;
        f->cv_square[i] += cv * cv;
        f->cv_distance[i] += cv;
    }
}

int64_t metrics_mixture_at(const metrics_horizons *s, const metrics_window *w, int64_t step, region_gaussian *g)
{
    const int64_t n = w->futures != NULL ? w->K : 1;
    for (int64_t j = 0; j < n; j++) {
        const int64_t at = (j * s->F + step) * AXES;
        const float *p = (w->futures != NULL ? w->futures : w->future) + at;
        const float *u = (w->futures != NULL ? w->spreads : w->spread) + at;
        g[j] = (region_gaussian){.p = w->futures != NULL ? (double)w->probability[j] : 1,
                                 .x = p[0],
                                 .y = p[1],
                                 .sigma_x = exp((double)u[0]),
                                 .sigma_y = exp((double)u[1])};
    }
    return n;
}

/* Counts the levels whose region contains the position at horizon i. */
static void count_levels_inside(metrics_sums *f, const metrics_horizons *s, const metrics_window *w, uint32_t i,
                                const region_gaussian *g, int64_t n)
{
    const float *q = w->target + s->step[i] * AXES;
    const uint32_t kind = radii_class(w->speed, w->acceleration);
    const double at = s->radii == NULL ? region_level(g, n, q[0], q[1]) : region_distance(g, n, q[0], q[1]);
    for (uint32_t j = 0; j < METRICS_LEVELS; j++) {
        f->inside[i][j] += at <= (s->radii == NULL ? radii_level[j] : radii_get(s->radii, kind, i, j));
    }
}

static void add_coverage(metrics_sums *f, const metrics_horizons *s, const metrics_window *w)
{
    for (uint32_t i = 0; i < s->n_horizons; i++) {
        region_gaussian g[METRICS_MAX_FUTURES];
        count_levels_inside(f, s, w, i, g, metrics_mixture_at(s, w, s->step[i], g));
    }
}

static void add_likelihood(metrics_sums *f, const metrics_horizons *s, const metrics_window *w)
{
    double nll = 0;
    for (int64_t k = 0; k < s->F * AXES; k++) {
        const double e = ((double)w->target[k] - w->future[k]) * exp(-(double)w->spread[k]);
        nll += w->spread[k] + 0.5 * e * e + HALF_LOG_2PI;
    }
    f->nll += nll / (double)s->F;
}

/* Place of future j in the order of their probability, from 0; equal ones stay as they are. */
static int64_t probability_rank(const metrics_window *w, int64_t j)
{
    int64_t before = 0;
    for (int64_t i = 0; i < w->K; i++) {
        before += w->probability[i] > w->probability[j] || (w->probability[i] == w->probability[j] && i < j);
    }
    return before;
}

static void add_futures(metrics_sums *f, const metrics_horizons *s, const metrics_window *w)
{
    double ade[METRICS_KS], fde[METRICS_KS];
    for (int k = 0; k < METRICS_KS; k++) {
        ade[k] = fde[k] = INFINITY;
    }
    for (int64_t j = 0; j < (w->futures != NULL ? w->K : 1); j++) {
        const float *p = w->futures != NULL ? w->futures + j * s->F * AXES : w->future;
        const int64_t place = w->futures != NULL ? probability_rank(w, j) : 0;
        double mean = 0;
        for (int64_t i = 0; i < s->F; i++) {
            mean += point_distance(p + i * AXES, w->target + i * AXES) / (double)s->F;
        }
        const double last = point_distance(p + (s->F - 1) * AXES, w->target + (s->F - 1) * AXES);
        for (int k = 0; k < METRICS_KS; k++) {
            ade[k] = place < most_probable[k] ? fmin(ade[k], mean) : ade[k];
            fde[k] = place < most_probable[k] ? fmin(fde[k], last) : fde[k];
        }
    }
    for (int k = 0; k < METRICS_KS; k++) {
        f->ade[k] += ade[k];
        f->fde[k] += fde[k];
        f->missed[k] += fde[k] > METRICS_MISS_M;
    }
}

static void add_constant_velocity(metrics_sums *f, const metrics_horizons *s, const metrics_window *w)
{
    double mean = 0, last = 0;
    for (int64_t i = 0; i < s->F; i++) {
        const float *q = w->target + i * AXES;
        last = hypot(w->speed * (double)(i + 1) * s->step_s - q[0], q[1]);
        mean += last / (double)s->F;
    }
    f->cv_ade += mean;
    f->cv_missed += last > METRICS_MISS_M;
}

void metrics_add(metrics_sums *f, const metrics_horizons *s, const metrics_window *w)
{
    add_errors(f, s, w);
    add_coverage(f, s, w);
    add_likelihood(f, s, w);
    add_futures(f, s, w);
    add_constant_velocity(f, s, w);
    f->n_windows++;
}

/* ---- means ------------------------------------------------------------------------------------------------------- */

static void report_value(const dt_host *h, const dt_metrics_api *m, const char *prefix, const char *name,
                         const double *value, uint32_t n)
{
    char key[KEY];
    snprintf(key, sizeof(key), "%s%s", prefix, name);
    m->report(h, key, value, n);
}

static double mean_per_window(const metrics_sums *f, double sum)
{
    return f->n_windows > 0 ? sum / (double)f->n_windows : NAN;
}

dt_status metrics_report_errors(const metrics_sums *f, const metrics_horizons *s, const dt_host *h,
                                const dt_metrics_api *m, const char *prefix)
{
    double rmse[METRICS_MAX_S], displacement[METRICS_MAX_S], cv_rmse[METRICS_MAX_S], cv_displacement[METRICS_MAX_S];
    for (uint32_t i = 0; i < s->n_horizons; i++) {
        rmse[i] = sqrt(mean_per_window(f, f->square[i]));
        displacement[i] = mean_per_window(f, f->distance[i]);
        cv_rmse[i] = sqrt(mean_per_window(f, f->cv_square[i]));
        cv_displacement[i] = mean_per_window(f, f->cv_distance[i]);
        if (f->n_windows > 0 && !isfinite(rmse[i])) {
            return DT_FAIL_H(h, DT_EDIVERGED, "the predicted positions at %g s are not finite", s->seconds[i]);
        }
    }
    const double nll = mean_per_window(f, f->nll);
    report_value(h, m, prefix, "horizon_s", s->seconds, s->n_horizons);
    report_value(h, m, prefix, "rmse_m", rmse, s->n_horizons);
    report_value(h, m, prefix, "displacement_m", displacement, s->n_horizons);
    report_value(h, m, prefix, "cv_rmse_m", cv_rmse, s->n_horizons);
    report_value(h, m, prefix, "cv_displacement_m", cv_displacement, s->n_horizons);
    report_value(h, m, prefix, "nll", &nll, 0);
    return DT_OK;
}

void metrics_rmse_ratio(const metrics_sums *f, const metrics_horizons *s, double *ratio)
{
    for (uint32_t i = 0; i < s->n_horizons; i++) {
        ratio[i] = sqrt(mean_per_window(f, f->square[i])) / sqrt(mean_per_window(f, f->cv_square[i]));
    }
}

void metrics_report_futures(const metrics_sums *f, const metrics_horizons *s, const dt_host *h, const dt_metrics_api *m,
                            const char *prefix)
{
    double share[METRICS_MAX_S], all[METRICS_LEVELS] = {0};
    for (uint32_t c = 0; c < sizeof(coverage_keys) / sizeof(coverage_keys[0]); c++) {
        for (uint32_t i = 0; i < s->n_horizons; i++) {
            share[i] = mean_per_window(f, (double)f->inside[i][coverage_keys[c].at]);
        }
        report_value(h, m, prefix, coverage_keys[c].key, share, s->n_horizons);
    }
    for (uint32_t j = 0; j < METRICS_LEVELS; j++) { /* all horizons count alike */
        for (uint32_t i = 0; i < s->n_horizons; i++) {
            all[j] += mean_per_window(f, (double)f->inside[i][j]) / s->n_horizons;
        }
    }
    report_value(h, m, prefix, "reliability/level", radii_level, METRICS_LEVELS);
    report_value(h, m, prefix, "reliability/share", all, METRICS_LEVELS);
    for (int k = 0; k < METRICS_KS; k++) {
        const double ade = mean_per_window(f, f->ade[k]), fde = mean_per_window(f, f->fde[k]);
        const double missed = mean_per_window(f, (double)f->missed[k]);
        report_value(h, m, prefix, ade_name[k], &ade, 0);
        report_value(h, m, prefix, fde_name[k], &fde, 0);
        report_value(h, m, prefix, miss_name[k], &missed, 0);
    }
    const double cv_ade = mean_per_window(f, f->cv_ade), cv_missed = mean_per_window(f, (double)f->cv_missed);
    report_value(h, m, prefix, "cv_ade", &cv_ade, 0);
    report_value(h, m, prefix, "cv_miss_rate", &cv_missed, 0);
}
