/* SPDX-License-Identifier: Apache-2.0 */
#include "calibration.h"
#include "radii.h"
#include "region.h"
#include "batch.h"

#include <math.h>
#include <string.h>

enum { AXES = 2, TEXT = 24 };
static const double FIRST_LOG_FACTOR = -1.2, LOG_FACTOR_STEP = 0.05; /* of the factors' logarithms */

/* Length of the vector. */
static int64_t vector_length(const calibration *c)
{
    return AXES * c->prediction->F + (c->prediction->has_regions ? RADII_SIZE : 0);
}

dt_status calibration_init(calibration *c, prediction *p, const dt_train_api *train, int64_t folds)
{
    char text[TEXT];
    snprintf(text, sizeof(text), "%lld", (long long)folds);
    const dt_setting more = {"calibration_folds", text};
    *c = (calibration){.h = p->h, .prediction = p, .train = train};
    metrics_horizons_init(&c->shape, p->F, p->config.rate_hz);
    c->vector = p->h->alloc(p->h, (uint64_t)vector_length(c) * sizeof(*c->vector));
    if (c->vector == NULL) {
        return DT_FAIL_H(p->h, DT_ENOMEM, "no memory for a temperature of %lld steps", (long long)p->F);
    }
    DT_TRY_H(prediction_bind_data(p, "calibration", &more, 1, &c->data));
    c->n_samples = p->bind->data_count(c->data);
    return DT_OK;
}

void calibration_fini(calibration *c)
{
    if (c->h != NULL) {
        c->h->release(c->h, c->vector);
        c->vector = NULL;
    }
}

/* One sample in so many: the k-th is the first at or after k / CALIBRATION_SAMPLES of all. */
static int is_sampled(const calibration *c, uint64_t sample)
{
    return c->n_samples <= CALIBRATION_SAMPLES || sample == 0 ||
           sample * CALIBRATION_SAMPLES / c->n_samples != (sample - 1) * CALIBRATION_SAMPLES / c->n_samples;
}

static void add_window(calibration *c, const metrics_window *w)
{
    for (uint32_t i = 0; i < c->shape.n_horizons; i++) {
        region_gaussian g[METRICS_MAX_FUTURES];
        const float *q = w->target + c->shape.step[i] * AXES;
        for (int k = 0; k < CALIBRATION_FACTORS; k++) {
            const double factor = exp(FIRST_LOG_FACTOR + k * LOG_FACTOR_STEP);
            const int64_t n = metrics_mixture_at(&c->shape, w, c->shape.step[i], g);
            for (int64_t j = 0; j < n; j++) {
                g[j].sigma_x *= factor;
                g[j].sigma_y *= factor;
            }
            c->nll[k] -= region_log_density(g, n, q[0], q[1]);
        }
    }
    c->n_windows++;
}

static dt_status add_likelihoods(void *self, const dt_rows *r)
{
    calibration *c = self;
    scene_batch z;
    uint32_t n = 0;
    DT_TRY_H(batch_open(c->prediction, c->train, r, &z));
    const uint64_t *sample = c->train->samples(r, &n);
    for (int64_t v = 0; v < z.S; v++) {
        if (z.complete[v] && is_sampled(c, sample[z.sample_of_seq[v]])) {
            metrics_window w;
            batch_window(c->prediction, &z, v, &w);
            add_window(c, &w);
        }
    }
    return DT_OK;
}

/* Distances of all complete windows, for the radii. */
static dt_status add_distances(void *self, const dt_rows *r)
{
    calibration *c = self;
    scene_batch z;
    DT_TRY_H(batch_open(c->prediction, c->train, r, &z));
    for (int64_t v = 0; v < z.S; v++) {
        metrics_window w;
        batch_window(c->prediction, &z, v, &w);
        c->n_fitted += z.complete[v] != 0;
        for (uint32_t i = 0; i < c->shape.n_horizons && z.complete[v]; i++) {
            region_gaussian g[METRICS_MAX_FUTURES];
            const float *q = w.target + c->shape.step[i] * AXES;
            const int64_t n = metrics_mixture_at(&c->shape, &w, c->shape.step[i], g);
            const double far = region_distance(g, n, q[0], q[1]);
            if (!isfinite(far)) {
                return DT_FAIL_H(c->h, DT_EDIVERGED, "the predicted positions at %g s are not finite",
                                 c->shape.seconds[i]);
            }
            radii_add(&c->counts, radii_class(w.speed, w.acceleration), i, far);
        }
    }
    return DT_OK;
}

/* Logarithm of the factor. */
static double best_log_factor(const calibration *c)
{
    double least = INFINITY;
    int best = 0;
    for (int k = 0; k < CALIBRATION_FACTORS; k++) {
        if (c->nll[k] < least) {
            least = c->nll[k];
            best = k;
        }
    }
    return FIRST_LOG_FACTOR + best * LOG_FACTOR_STEP;
}

dt_status calibration_get(calibration *c, dt_train *t, calibration_found *found)
{
    const int64_t n = AXES * c->prediction->F;
    double sum = 0;
    if (c->train->vector_size(t) != (uint64_t)vector_length(c)) {
        return DT_FAIL_H(c->h, DT_EPLUGIN,
                         "the world model's temperature and regions have %llu numbers, its outputs have %lld",
                         (unsigned long long)c->train->vector_size(t), (long long)vector_length(c));
    }
    DT_TRY_H(c->train->vector_get(t, c->vector));
    for (int64_t i = 0; i < n; i++) {
        sum += (double)c->vector[i];
    }
    *found =
        (calibration_found){.temperature = sum / (double)n, .radii = c->prediction->has_regions ? c->vector + n : NULL};
    return DT_OK;
}

/* A second pass over the data: regions of several futures depend on the temperature. */
static dt_status fit_radii(calibration *c, dt_train *t)
{
    memset(&c->counts, 0, sizeof(c->counts));
    c->n_fitted = 0;
    DT_TRY_H(c->train->evaluate(t, c->data, c, add_distances));
    radii_fit(&c->counts, c->shape.n_horizons, c->vector + AXES * c->prediction->F);
    return c->train->vector_set(t, c->vector);
}

dt_status calibration_run(calibration *c, dt_train *t)
{
    const int64_t n = AXES * c->prediction->F;
    memset(c->nll, 0, sizeof(c->nll));
    c->n_windows = 0;
    DT_TRY_H(c->train->evaluate(t, c->data, c, add_likelihoods));
    if (c->n_windows == 0 || c->shape.n_horizons == 0) {
        return DT_OK; /* nothing to fit */
    }
    calibration_found before;
    DT_TRY_H(calibration_get(c, t, &before)); /* reads c->vector */
    const float found = (float)best_log_factor(c);
    for (int64_t i = 0; i < n; i++) {
        c->vector[i] += found;
    }
    DT_TRY_H(c->train->vector_set(t, c->vector));
    return c->prediction->has_regions ? fit_radii(c, t) : DT_OK;
}
