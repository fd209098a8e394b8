/* SPDX-License-Identifier: Apache-2.0
 *
 * See calibration.h.
 */
#include "calibration.h"
#include "region.h"
#include "slice.h"

#include <math.h>
#include <string.h>

enum { AXES = 2, TEXT = 24 };
static const double level[CALIBRATION_LEVELS] = {0.5, 0.68, 0.8, 0.95};
static const double FIRST = -1.2, STEP = 0.05; /* of the factors' logarithms */

dt_status calibration_init(calibration *c, prediction *p, const dt_train_api *train, int64_t folds)
{
    char text[TEXT];
    snprintf(text, sizeof(text), "%lld", (long long)folds);
    const dt_setting more = {"calibration_folds", text};
    *c = (calibration){.h = p->h, .prediction = p, .train = train};
    figures_shape_init(&c->shape, p->F, p->config.rate_hz);
    c->temperature = p->h->alloc(p->h, (uint64_t)(p->F * AXES) * sizeof(*c->temperature));
    if (c->temperature == NULL) {
        return DT_FAIL_H(p->h, DT_ENOMEM, "no memory for a temperature of %lld steps", (long long)p->F);
    }
    DT_TRY_H(prediction_bind_data(p, "calibration", &more, 1, &c->data));
    c->n_samples = p->bind->data_count(c->data);
    return DT_OK;
}

void calibration_fini(calibration *c)
{
    if (c->h != NULL) {
        c->h->release(c->h, c->temperature);
        c->temperature = NULL;
    }
}

/* One sample in so many: the k-th is the first at or after k / CALIBRATION_SAMPLES of all. */
static int is_taken(const calibration *c, uint64_t sample)
{
    return c->n_samples <= CALIBRATION_SAMPLES || sample == 0 ||
           sample * CALIBRATION_SAMPLES / c->n_samples != (sample - 1) * CALIBRATION_SAMPLES / c->n_samples;
}

static void add_window(calibration *c, const figures_window *w)
{
    for (uint32_t i = 0; i < c->shape.n_horizons; i++) {
        region_gaussian g[FIGURES_MAX_FUTURES];
        const float *q = w->target + c->shape.step[i] * AXES;
        for (int k = 0; k < CALIBRATION_FACTORS; k++) {
            const double factor = exp(FIRST + k * STEP);
            const int64_t n = figures_told(&c->shape, w, c->shape.step[i], g);
            for (int64_t j = 0; j < n; j++) {
                g[j].sigma_x *= factor;
                g[j].sigma_y *= factor;
            }
            const double at = region_level(g, n, q[0], q[1]);
            for (int l = 0; l < CALIBRATION_LEVELS; l++) {
                c->inside[i][k][l] += at <= level[l];
            }
        }
    }
    c->n_windows++;
}

static dt_status each(void *self, const dt_rows *r)
{
    calibration *c = self;
    slice z;
    uint32_t n = 0;
    DT_TRY_H(slice_open(c->prediction, c->train, r, &z));
    const uint64_t *sample = c->train->samples(r, &n);
    for (int64_t v = 0; v < z.S; v++) {
        if (z.complete[v] && is_taken(c, sample[z.sample_of_seq[v]])) {
            figures_window w;
            slice_window(c->prediction, &z, v, &w);
            add_window(c, &w);
        }
    }
    return DT_OK;
}

/* Logarithm of the factor. */
static double best_of(const calibration *c)
{
    double least = INFINITY;
    int best = 0;
    for (int k = 0; k < CALIBRATION_FACTORS; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < c->shape.n_horizons; i++) {
            for (int l = 0; l < CALIBRATION_LEVELS; l++) {
                const double off = (double)c->inside[i][k][l] / (double)c->n_windows - level[l];
                sum += off * off;
            }
        }
        if (sum < least) {
            least = sum;
            best = k;
        }
    }
    return FIRST + best * STEP;
}

dt_status calibration_told(calibration *c, dt_train *t, double *mean_p)
{
    const int64_t n = AXES * c->prediction->F;
    double sum = 0;
    if (c->train->vector_size(t) != (uint64_t)n) {
        return DT_FAIL_H(c->h, DT_EPLUGIN, "the world model's temperature has %llu numbers, its output has %lld",
                         (unsigned long long)c->train->vector_size(t), (long long)n);
    }
    DT_TRY_H(c->train->vector_get(t, c->temperature));
    for (int64_t i = 0; i < n; i++) {
        sum += (double)c->temperature[i];
    }
    *mean_p = sum / (double)n;
    return DT_OK;
}

dt_status calibration_run(calibration *c, dt_train *t)
{
    const int64_t n = AXES * c->prediction->F;
    memset(c->inside, 0, sizeof(c->inside));
    c->n_windows = 0;
    DT_TRY_H(c->train->evaluate(t, c->data, c, each));
    if (c->n_windows == 0 || c->shape.n_horizons == 0) {
        return DT_OK; /* nothing is known */
    }
    double before = 0;
    DT_TRY_H(calibration_told(c, t, &before)); /* c->temperature is what it was */
    const float found = (float)best_of(c);
    for (int64_t i = 0; i < n; i++) {
        c->temperature[i] += found;
    }
    return c->train->vector_set(t, c->temperature);
}
