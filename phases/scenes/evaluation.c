/* SPDX-License-Identifier: Apache-2.0 */
#include "evaluation.h"
#include "batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 32 };
enum { RISK_NEGATIVE, RISK_POSITIVE, RISK_ALREADY, RISK_UNKNOWN }; /* values of risk_state */

void evaluation_init(evaluation *a, const prediction *p, const dt_train_api *train, const dt_metrics_api *metrics)
{
    *a = (evaluation){.h = p->h, .prediction = p, .train = train, .metrics = metrics, .T = p->T, .F = p->F};
    metrics_horizons_init(&a->shape, p->F, p->config.rate_hz);
}

void evaluation_fini(evaluation *a)
{
    if (a->h != NULL) {
        a->h->release(a->h, a->risk);
        pictures_free(&a->pictures);
    }
}

static dt_status add_risk_score(evaluation *a, float value, uint32_t is_positive)
{
    if (a->n_risk == a->cap_risk) {
        const uint64_t cap = a->cap_risk > 0 ? 2 * a->cap_risk : 4096;
        evaluation_risk *risk = a->h->alloc(a->h, cap * sizeof(*risk));
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
    a->risk[a->n_risk++] = (evaluation_risk){value, is_positive};
    return DT_OK;
}

/* One complete window. */
static void add_window(evaluation *a, const scene_batch *z, int64_t v)
{
    metrics_window w;
    batch_window(a->prediction, z, v, &w);
    metrics_add(&a->all, &a->shape, &w);
    if (z->site != NULL && z->site[v] >= 0 && z->site[v] < EVALUATION_SITES) {
        metrics_add(&a->site[z->site[v]], &a->shape, &w);
    }
}

/* Scenes for pictures, if the data has poses. */
static dt_status add_pictures(evaluation *a, const dt_rows *r, const scene_batch *z)
{
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    pictures_batch k = {.motion = z->motion, .target = z->target, .future = z->future, .spread = z->spread, .S = z->S};
    k.complete = z->complete;
    k.pose = a->train->rows(r, "pose", dim, &rank);
    k.sample_of_seq = a->train->rows(r, "sample_of_seq", dim, &rank);
    k.sample = a->train->samples(r, &k.n_samples);
    k.futures = z->futures;
    k.probability = z->probability;
    k.K = z->K;
    k.path = a->train->rows(r, "path", dim, &rank);
    k.P = k.path != NULL ? dim[1] : 0;
    return pictures_add(&a->pictures, &k);
}

static dt_status add_rows(void *self, const dt_rows *r)
{
    evaluation *a = self;
    scene_batch z = {0};
    DT_TRY_H(batch_open(a->prediction, a->train, r, &z));
    for (int64_t v = 0; v < z.S; v++) {
        if (z.complete[v]) {
            add_window(a, &z, v);
        }
        const int32_t row = z.seq_row[(a->T - 1) * z.S + v];
        if (z.risk != NULL && row >= 0 &&
            z.risk_state[row] <= RISK_POSITIVE) { /* neither positive already nor unknown */
            if (!isfinite(z.risk[row])) {
                return DT_FAIL_H(a->h, DT_EDIVERGED, "the risk of a vehicle is %g in evaluation", (double)z.risk[row]);
            }
            DT_TRY_H(add_risk_score(a, z.risk[row], z.risk_state[row] == RISK_POSITIVE));
        }
    }
    return a->has_pictures ? add_pictures(a, r, &z) : DT_OK;
}

static int compare_scores(const void *a, const void *b)
{
    const float x = ((const evaluation_risk *)a)->value, y = ((const evaluation_risk *)b)->value;
    return (x > y) - (x < y);
}

/* Area under the ROC curve from ranks: (sum of the positives' ranks - P (P + 1) / 2) / (P Q), equal scores share their
 * mean rank; NAN without positives or without negatives. Sorts r. */
static double compute_auroc(evaluation_risk *r, uint64_t n, uint64_t n_positive)
{
    if (n_positive == 0 || n_positive == n) {
        return NAN;
    }
    qsort(r, n, sizeof(*r), compare_scores);
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

/* Metrics of each site, by its number in the store, if there are several. */
static dt_status report_sites(evaluation *a)
{
    uint32_t n_sites = 0;
    for (uint32_t i = 0; i < EVALUATION_SITES; i++) {
        n_sites += a->site[i].n_windows > 0;
    }
    for (uint32_t i = 0; i < EVALUATION_SITES && n_sites > 1; i++) {
        char prefix[KEY];
        const double samples = (double)a->site[i].n_windows;
        if (a->site[i].n_windows > 0) {
            snprintf(prefix, sizeof(prefix), "sites/%u/samples", i);
            a->metrics->report(a->h, prefix, &samples, 0);
            snprintf(prefix, sizeof(prefix), "sites/%u/", i);
            DT_TRY_H(metrics_report_errors(&a->site[i], &a->shape, a->h, a->metrics, prefix));
            metrics_report_futures(&a->site[i], &a->shape, a->h, a->metrics, prefix);
        }
    }
    return DT_OK;
}

static dt_status report_evaluation(evaluation *a)
{
    const dt_metrics_api *m = a->metrics;
    uint64_t n_positive = 0;
    for (uint64_t i = 0; i < a->n_risk; i++) {
        n_positive += a->risk[i].is_positive;
    }
    const double area = compute_auroc(a->risk, a->n_risk, n_positive);
    const double samples = (double)a->all.n_windows, risk_samples = (double)a->n_risk;
    double ratio[METRICS_MAX_S];
    const double prevalence = a->n_risk > 0 ? (double)n_positive / risk_samples : NAN;
    const bool has_risk = a->prediction->perception != NULL;

    DT_TRY_H(metrics_report_errors(&a->all, &a->shape, a->h, m, ""));
    if (has_risk) {
        m->report(a->h, "risk_auroc", &area, 0);
    }
    m->report(a->h, "samples", &samples, 0);
    metrics_rmse_ratio(&a->all, &a->shape, ratio);
    m->report(a->h, "rmse_over_cv", ratio, a->shape.n_horizons);
    if (has_risk) {
        m->report(a->h, "risk_prevalence", &prevalence, 0);
        m->report(a->h, "risk_samples", &risk_samples, 0);
    }
    metrics_report_futures(&a->all, &a->shape, a->h, m, "");
    DT_TRY_H(report_sites(a));
    if (a->all.n_windows == 0) {
        dt_logf(a->h, 1,
                "the eval split has no complete window of %g s history and %g s future: nothing was evaluated; it "
                "needs longer scenes",
                a->prediction->config.history_s, a->prediction->config.horizon_s);
    }
    return DT_OK;
}

dt_status evaluation_run(evaluation *a, dt_train *t, dt_data *data)
{
    const dt_bind_api *bind = a->prediction->bind;
    memset(&a->all, 0, sizeof(a->all));
    memset(a->site, 0, sizeof(a->site));
    a->n_risk = 0;
    a->has_pictures = DT_HAS(a->metrics, picture) && bind->data_field(data, "pose") != NULL &&
                      bind->data_field(data, "sample_of_seq") != NULL;
    pictures_begin(&a->pictures, a->h, a->T, a->F, 1.0 / a->prediction->config.rate_hz, bind->data_count(data));
    DT_TRY_H(a->train->evaluate(t, data, a, add_rows));
    DT_TRY_H(report_evaluation(a));
    if (a->has_pictures) {
        pictures_report(&a->pictures, a->metrics, a->shape.step, a->shape.n_horizons);
    }
    pictures_free(&a->pictures);
    return DT_OK;
}
