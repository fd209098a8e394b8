/* SPDX-License-Identifier: Apache-2.0
 *
 * See accuracy.h.
 */
#include "accuracy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOTION = 6, MOTION_SPEED = 4, AXES = 2 };
enum { RISK_NEGATIVE, RISK_POSITIVE, RISK_ALREADY, RISK_UNKNOWN }; /* values of risk_state */
#define HALF_LOG_2PI 0.91893853320467274178

/* Horizons of 1, 2, ... seconds that fall on a step. */
void accuracy_init(accuracy *a, const prediction *p, const dt_train_api *train, const dt_metrics_api *metrics)
{
    *a = (accuracy){.h = p->h, .prediction = p, .train = train, .metrics = metrics, .T = p->T, .F = p->F};
    for (int second = 1; second <= ACCURACY_MAX_S; second++) {
        const double steps = second * p->config.rate_hz;
        if (fabs(steps - round(steps)) < 1e-6 && llround(steps) <= a->F) {
            a->step[a->n_horizons] = (uint32_t)llround(steps) - 1;
            a->seconds[a->n_horizons++] = second;
        }
    }
}

void accuracy_fini(accuracy *a)
{
    if (a->h != NULL) {
        a->h->release(a->h, a->risk);
        pictures_free(&a->pictures);
    }
}

/* Buffers of a slice that evaluation reads. */
typedef struct slice {
    const float *motion, *target, *future, *spread, *risk; /* [T,S,6] [S,F,2] [S,F,2] [S,F,2] [N] */
    const int32_t *seq_row;                                /* [T,S] */
    const uint8_t *complete, *risk_state;                  /* [S] [N] */
    int64_t S;
} slice;

static dt_status slice_open(const accuracy *a, const dt_rows *r, slice *z)
{
    const struct {
        const char *name;
        const void **to;
    } part[] = {{"motion", (const void **)&z->motion},
                {"target", (const void **)&z->target},
                {"future", (const void **)&z->future},
                {"spread", (const void **)&z->spread},
                {"risk", (const void **)&z->risk},
                {"seq_row", (const void **)&z->seq_row},
                {"risk_state", (const void **)&z->risk_state},
                {"complete", (const void **)&z->complete}};
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
        if (part[i].to == (const void **)&z->risk && a->prediction->perception == NULL) {
            continue;
        }
        *part[i].to = a->train->rows(r, part[i].name, dim, &rank);
        if (*part[i].to == NULL) {
            return DT_FAIL_H(a->h, DT_EPLUGIN, "evaluation has no values named %s", part[i].name);
        }
    }
    z->S = dim[0]; /* of complete, the last one */
    return DT_OK;
}

static dt_status push_risk(accuracy *a, float value, uint32_t is_positive)
{
    if (a->n_risk == a->cap_risk) {
        const uint64_t cap = a->cap_risk > 0 ? 2 * a->cap_risk : 4096;
        accuracy_risk *risk = a->h->alloc(a->h, cap * sizeof(*risk));
        if (risk == NULL) {
            return DT_FAIL_H(a->h, DT_ENOMEM, "no memory for %llu risk scores", (unsigned long long)cap);
        }
        if (a->n_risk > 0) {
            memcpy(risk, a->risk, a->n_risk * sizeof(*risk));
        }
        a->h->release(a->h, a->risk);
        a->risk = risk;
        a->cap_risk = cap;
    }
    a->risk[a->n_risk++] = (accuracy_risk){value, is_positive};
    return DT_OK;
}

/* One complete window: distances at the horizons, likelihood over all steps. */
static void add_window(accuracy *a, const slice *z, int64_t v)
{
    const float *p = z->future + v * a->F * AXES, *q = z->target + v * a->F * AXES, *u = z->spread + v * a->F * AXES;
    const double speed = z->motion[((a->T - 1) * z->S + v) * MOTION + MOTION_SPEED];
    for (uint32_t i = 0; i < a->n_horizons; i++) {
        const uint32_t f = a->step[i];
        const double x = q[f * AXES], y = q[f * AXES + 1];
        const double model = hypot(p[f * AXES] - x, p[f * AXES + 1] - y);
        const double cv = hypot(speed * a->seconds[i] - x, y);
        a->square[i] += model * model;
        a->distance[i] += model;
        a->cv_square[i] += cv * cv;
        a->cv_distance[i] += cv;
    }
    double nll = 0;
    for (int64_t k = 0; k < a->F * AXES; k++) {
        const double e = ((double)q[k] - p[k]) * exp(-(double)u[k]);
        nll += u[k] + 0.5 * e * e + HALF_LOG_2PI;
    }
    a->nll += nll / (double)a->F;
    a->n_windows++;
}

/* Of a source that says where vehicles are: scenes for pictures. */
static dt_status take_pictures(accuracy *a, const dt_rows *r, const slice *z)
{
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    pictures_slice k = {.motion = z->motion, .target = z->target, .future = z->future, .spread = z->spread, .S = z->S};
    k.complete = z->complete;
    k.pose = a->train->rows(r, "pose", dim, &rank);
    k.sample_of_seq = a->train->rows(r, "sample_of_seq", dim, &rank);
    k.sample = a->train->samples(r, &k.n_samples);
    return pictures_take(&a->pictures, &k);
}

static dt_status each(void *self, const dt_rows *r)
{
    accuracy *a = self;
    slice z = {0};
    DT_TRY_H(slice_open(a, r, &z));
    for (int64_t v = 0; v < z.S; v++) {
        if (z.complete[v]) {
            add_window(a, &z, v);
        }
        const int32_t row = z.seq_row[(a->T - 1) * z.S + v];
        if (z.risk != NULL && row >= 0 && z.risk_state[row] <= RISK_POSITIVE) { /* not positive already, not unknown */
            if (!isfinite(z.risk[row])) {
                return DT_FAIL_H(a->h, DT_EDIVERGED, "the risk of a vehicle is %g in evaluation", (double)z.risk[row]);
            }
            DT_TRY_H(push_risk(a, z.risk[row], z.risk_state[row] == RISK_POSITIVE));
        }
    }
    return a->has_pictures ? take_pictures(a, r, &z) : DT_OK;
}

static int by_value(const void *a, const void *b)
{
    const float x = ((const accuracy_risk *)a)->value, y = ((const accuracy_risk *)b)->value;
    return (x > y) - (x < y);
}

/* Area under the ROC curve from ranks: (sum of the positives' ranks - P (P + 1) / 2) / (P Q), equal scores share their
 * mean rank; NAN without positives or without negatives. Sorts r. */
static double auroc(accuracy_risk *r, uint64_t n, uint64_t n_positive)
{
    if (n_positive == 0 || n_positive == n) {
        return NAN;
    }
    qsort(r, n, sizeof(*r), by_value);
    double rank_sum = 0;
    for (uint64_t i = 0; i < n;) {
        uint64_t j = i, positive = 0;
        while (j < n && r[j].value == r[i].value) {
            positive += r[j++].is_positive;
        }
        rank_sum += (double)positive * ((double)(i + 1) + (double)j) / 2.0;
        i = j;
    }
    const double P = (double)n_positive, Q = (double)(n - n_positive);
    return (rank_sum - P * (P + 1) / 2) / (P * Q);
}

static dt_status report(accuracy *a)
{
    const dt_metrics_api *m = a->metrics;
    const double n = a->n_windows > 0 ? (double)a->n_windows : NAN;
    double rmse[ACCURACY_MAX_S], displacement[ACCURACY_MAX_S], cv_rmse[ACCURACY_MAX_S], cv_displacement[ACCURACY_MAX_S];
    double ratio[ACCURACY_MAX_S];
    for (uint32_t i = 0; i < a->n_horizons; i++) {
        rmse[i] = sqrt(a->square[i] / n);
        displacement[i] = a->distance[i] / n;
        cv_rmse[i] = sqrt(a->cv_square[i] / n);
        cv_displacement[i] = a->cv_distance[i] / n;
        ratio[i] = rmse[i] / cv_rmse[i];
        if (a->n_windows > 0 && !isfinite(rmse[i])) {
            return DT_FAIL_H(a->h, DT_EDIVERGED, "the predicted positions at %g s are not finite", a->seconds[i]);
        }
    }
    uint64_t n_positive = 0;
    for (uint64_t i = 0; i < a->n_risk; i++) {
        n_positive += a->risk[i].is_positive;
    }
    const double nll = a->nll / n, area = auroc(a->risk, a->n_risk, n_positive);
    const double samples = (double)a->n_windows, risk_samples = (double)a->n_risk;
    const double prevalence = a->n_risk > 0 ? (double)n_positive / risk_samples : NAN;
    const bool has_risk = a->prediction->perception != NULL;

    m->report(a->h, "horizon_s", a->seconds, a->n_horizons);
    m->report(a->h, "rmse_m", rmse, a->n_horizons);
    m->report(a->h, "displacement_m", displacement, a->n_horizons);
    m->report(a->h, "cv_rmse_m", cv_rmse, a->n_horizons);
    m->report(a->h, "cv_displacement_m", cv_displacement, a->n_horizons);
    m->report(a->h, "nll", &nll, 0);
    if (has_risk) {
        m->report(a->h, "risk_auroc", &area, 0);
    }
    m->report(a->h, "samples", &samples, 0);
    m->report(a->h, "rmse_over_cv", ratio, a->n_horizons);
    if (has_risk) {
        m->report(a->h, "risk_prevalence", &prevalence, 0);
        m->report(a->h, "risk_samples", &risk_samples, 0);
    }
    if (a->n_windows == 0) {
        dt_logf(a->h, 1,
                "the eval split has no complete window of %g s history and %g s future: nothing was compared, give it "
                "longer scenes",
                a->prediction->config.history_s, a->prediction->config.horizon_s);
    }
    return DT_OK;
}

dt_status accuracy_run(accuracy *a, dt_train *t, dt_data *data)
{
    const dt_bind_api *bind = a->prediction->bind;
    for (uint32_t i = 0; i < ACCURACY_MAX_S; i++) {
        a->square[i] = a->distance[i] = a->cv_square[i] = a->cv_distance[i] = 0;
    }
    a->nll = 0;
    a->n_windows = a->n_risk = 0;
    a->has_pictures = DT_HAS(a->metrics, picture) && bind->data_field(data, "pose") != NULL &&
                      bind->data_field(data, "sample_of_seq") != NULL;
    pictures_begin(&a->pictures, a->h, a->T, a->F, 1.0 / a->prediction->config.rate_hz, bind->data_count(data));
    DT_TRY_H(a->train->evaluate(t, data, a, each));
    DT_TRY_H(report(a));
    if (a->has_pictures) {
        pictures_tell(&a->pictures, a->metrics, a->step, a->n_horizons);
    }
    pictures_free(&a->pictures);
    return DT_OK;
}
