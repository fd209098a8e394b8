/* SPDX-License-Identifier: Apache-2.0
 *
 * See barrier.h. One loss trains and evaluates: a sum of PARTS whose weights are a step input.
 */
#include "barrier.h"

#include "dtrain/svc/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a row: terms of the loss, counts, and labels. */
enum { SAFE_LOSS, UNSAFE_LOSS, STEP_LOSS, VIOLATED, SAFE_RIGHT, UNSAFE_RIGHT, IS_SAFE, IS_UNSAFE, HAS_STEP, PARTS };

/* Of experience and of stored data. */
static const char *const measured[] = {"barrier_loss", "stored_barrier_loss"};
static const char *const weights_input[] = {"barrier_mix", "stored_barrier_mix"};
static const char *const key_prefix[] = {"", "stored_"};
enum { EXPERIENCE, STORED, SOURCES };

enum { TEXT = 64 };
#define SHARP       1e6  /* slope of a step from 0 to 1 */
#define STEP_MARGIN 0.1  /* of the margin */
#define LEAST_SHARE 1e-3 /* of the rows: lower bound of a divisor */

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static dt_tensor *one_minus(dt_graph *g, dt_tensor *x)
{
    return dt_affine(g, x, -1, 1);
}

/* 1 where x > 0 */
static dt_tensor *record_positive(dt_graph *g, dt_tensor *x)
{
    return dt_clamp(g, dt_affine(g, x, SHARP, 0), 0, 1);
}

/* Labels [rows, 1] of one cost, n steps away: 1 where it is far, and where it is not near. */
static void record_cost_labels(const barrier *b, dt_graph *g, dt_tensor *n, dt_tensor **is_far, dt_tensor **is_not)
{
    dt_tensor *seen = dt_add(g, dt_relu(g, n), dt_relu(g, dt_affine(g, n, -1, 0)));
    dt_tensor *is_near = dt_clamp(g, dt_affine(g, n, -1, (double)b->config.unsafe_steps + 1), 0, 1);
    dt_tensor *is_known = dt_clamp(g, dt_affine(g, n, 1, 1), 0, 1); /* n >= 0 */
    *is_far = dt_clamp(g, dt_affine(g, seen, 1, -(double)b->config.safe_steps), 0, 1);
    *is_not = one_minus(g, dt_mul(g, is_near, is_known));
}

/* Labels safe and unsafe of rows by all unsafe costs, [A, 1]. */
static void record_labels(const barrier *b, const dt_wiring *w, dt_graph *g, dt_tensor **safe, dt_tensor **unsafe)
{
    dt_tensor *cost_in = g->api->input(g, "cost_in"), *is_fine = NULL, *is_free = NULL;
    for (uint32_t k = 0; k < w->spec->n_costs; k++) {
        if (!b->marks[k]) {
            continue;
        }
        dt_tensor *is_far = NULL, *is_not = NULL;
        record_cost_labels(b, g, dt_slice(g, cost_in, k, 1), &is_far, &is_not);
        is_fine = is_fine == NULL ? is_far : dt_mul(g, is_fine, is_far);
        is_free = is_free == NULL ? is_not : dt_mul(g, is_free, is_not);
    }
    *safe = is_fine;
    *unsafe = one_minus(g, is_free);
}

/* here, next [rows]: h and h'; the rest [rows, 1]. symbol: of the rows. */
static dt_status record_loss(const barrier *b, dt_graph *g, int source, const char *symbol, dt_tensor *here,
                             dt_tensor *next, dt_tensor *safe, dt_tensor *unsafe)
{
    const double m = b->config.margin;
    dt_tensor *part[PARTS], *sum = NULL;
    dt_tensor *h = dt_split(g, here, 0), *h1 = dt_split(g, next, 0);
    dt_tensor *step = dt_mul(g, safe, dt_split(g, g->api->input(g, "next_present"), 0));
    dt_tensor *lost = dt_sub(g, dt_affine(g, dt_clamp(g, h, -m, m), 1 - b->config.alpha, 0), dt_clamp(g, h1, -m, m));
    part[SAFE_LOSS] = dt_mul(g, safe, dt_relu(g, dt_affine(g, h, -1, m)));
    part[UNSAFE_LOSS] = dt_mul(g, unsafe, dt_relu(g, dt_affine(g, h, 1, m)));
    part[STEP_LOSS] = dt_mul(g, step, dt_relu(g, dt_affine(g, lost, 1, STEP_MARGIN * m)));
    part[VIOLATED] = dt_mul(g, step, record_positive(g, lost));
    part[SAFE_RIGHT] = dt_mul(g, safe, record_positive(g, h));
    part[UNSAFE_RIGHT] = dt_mul(g, unsafe, one_minus(g, record_positive(g, h)));
    part[IS_SAFE] = safe;
    part[IS_UNSAFE] = unsafe;
    part[HAS_STEP] = step;
    dt_tensor *mix = g->api->step_input(g, weights_input[source], PARTS);
    for (int i = 0; i < PARTS; i++) {
        dt_tensor *one = dt_mul(g, part[i], dt_slice(g, mix, i, 1));
        sum = sum == NULL ? one : dt_add(g, sum, one);
    }
    return g->api->loss(g, measured[source], dt_sum(g, dt_merge(g, sum)), 1, symbol);
}

/* The barrier h of rows, [A]; prefix "next_": of their next rows. Only the bounds of the shield depend on the
 * predictions `foreseen`. */
static dt_status record_barrier(dt_wiring *w, dt_graph *g, const char *prefix, dt_tensor *foreseen, dt_tensor **out_p)
{
    const dt_wiring_view view = {.struct_size = sizeof(view), .prefix = prefix};
    const dt_named more = {"foreseen", foreseen};
    dt_named out = {"barrier", NULL};
    DT_TRY_H(w->api->record_model(w, g, &view, w->shield, &more, 1, &out, 1));
    *out_p = out.tensor;
    return DT_OK;
}

dt_status barrier_record(const barrier *b, dt_wiring *w, dt_graph *g, const dt_policy_tensors *p)
{
    dt_tensor *here = NULL, *next = NULL, *safe = NULL, *unsafe = NULL;
    DT_TRY_H(record_barrier(w, g, "", p->foreseen, &here));
    DT_TRY_H(record_barrier(w, g, "next_", p->foreseen, &next));
    record_labels(b, w, g, &safe, &unsafe);
    return record_loss(b, g, EXPERIENCE, "A", here, next, safe, unsafe);
}

/* The barrier h of recorded vehicles, [S]. It does not depend on `foreseen`, for which any tensor of that shape will
 * do. */
static dt_status record_stored_barrier(const dt_wiring *w, dt_graph *g, const char *prefix, dt_tensor **out_p)
{
    char name[2][TEXT];
    snprintf(name[0], TEXT, "%sahead", prefix);
    snprintf(name[1], TEXT, "%sbeside", prefix);
    const dt_named in[] = {{"ahead", g->api->input(g, name[0])},
                           {"beside", g->api->input(g, name[1])},
                           {"foreseen", dt_merge(g, g->api->input(g, "target"))}};
    dt_named out = {"barrier", NULL};
    DT_TRY_H(g->api->model(g, w->shield, in, 3, &out, 1));
    *out_p = out.tensor;
    return DT_OK;
}

dt_status barrier_record_stored(const barrier *b, const dt_wiring *w, dt_graph *g)
{
    dt_tensor *here = NULL, *next = NULL, *safe = NULL, *is_not = NULL;
    DT_TRY_H(record_stored_barrier(w, g, "", &here));
    DT_TRY_H(record_stored_barrier(w, g, "next_", &next));
    record_cost_labels(b, g, dt_split(g, g->api->input(g, "hazard_in"), 0), &safe, &is_not);
    return record_loss(b, g, STORED, "S", here, next, safe, one_minus(g, is_not));
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static int count_sources(const barrier *b)
{
    return b->has_stored ? SOURCES : STORED;
}

static dt_status set_loss_weights(const ppo *l, int source, const float *mix)
{
    return l->rounds->train->set(l->rounds->trainer, weights_input[source], mix, PARTS);
}

dt_status barrier_start(const barrier *b, const ppo *l)
{
    for (int i = 0; i < count_sources(b); i++) {
        DT_TRY_H(set_loss_weights(l, i, (const float[PARTS]){0}));
    }
    return l->rounds->train->plan_losses(l->rounds->trainer, measured, (uint32_t)count_sources(b), 0);
}

/* The mean of every part over all rows of the round, for each source. */
static dt_status measure_losses(const barrier *b, const ppo *l, double mean[SOURCES][PARTS])
{
    const int n = count_sources(b);
    for (int i = 0; i < PARTS; i++) {
        float mix[PARTS] = {0};
        double value[SOURCES] = {0};
        mix[i] = 1;
        for (int k = 0; k < n; k++) {
            DT_TRY_H(set_loss_weights(l, k, mix));
        }
        DT_TRY_H(l->rounds->train->losses(l->rounds->trainer, measured, (uint32_t)n, value));
        for (int k = 0; k < n; k++) {
            mean[k][i] = value[k];
        }
    }
    return DT_OK;
}

static void report_part(const ppo *l, int source, const char *what, double sum, double rows)
{
    char name[TEXT];
    snprintf(name, TEXT, "barrier/%s%s", key_prefix[source], what);
    if (rows > 0) {
        l->metrics->scalar(l->h, name, sum / rows);
    }
}

static void report_source(const ppo *l, int source, const double *mean)
{
    report_part(l, source, "violation_rate", mean[VIOLATED], mean[HAS_STEP]);
    report_part(l, source, "accuracy", mean[SAFE_RIGHT] + mean[UNSAFE_RIGHT], mean[IS_SAFE] + mean[IS_UNSAFE]);
    report_part(l, source, "accuracy_safe", mean[SAFE_RIGHT], mean[IS_SAFE]);
    report_part(l, source, "accuracy_unsafe", mean[UNSAFE_RIGHT], mean[IS_UNSAFE]);
    report_part(l, source, "unsafe", mean[IS_UNSAFE], 1);
    report_part(l, source, "safe_loss", mean[SAFE_LOSS], mean[IS_SAFE]);
    report_part(l, source, "unsafe_loss", mean[UNSAFE_LOSS], mean[IS_UNSAFE]);
    report_part(l, source, "step_loss", mean[STEP_LOSS], mean[HAS_STEP]);
}

static bool has_safe_rows(barrier *b, const ppo *l, int source, const double *mean)
{
    if (source == EXPERIENCE || mean[IS_SAFE] > 0) {
        return true;
    }
    if (!b->has_warned) {
        const double step_s = l->wiring->spec->step_s;
        dt_logf(l->h, 1,
                "no recorded vehicle of this round is known to be safe, so the barrier is not trained on them: it "
                "takes %lld actions of %g s, %g s in sight; lower %s.shield_safe_steps or give longer recordings",
                (long long)b->config.safe_steps + 1, step_s, (double)(b->config.safe_steps + 1) * step_s, l->phase);
        b->has_warned = true;
    }
    return false;
}

dt_status barrier_after_collect(barrier *b, const ppo *l)
{
    double mean[SOURCES][PARTS];
    DT_TRY_H(measure_losses(b, l, mean));
    for (int k = 0; k < count_sources(b); k++) {
        float mix[PARTS] = {0};
        report_source(l, k, mean[k]);
        const bool learns = has_safe_rows(b, l, k, mean[k]);
        if (learns) {
            for (int i = SAFE_LOSS; i <= STEP_LOSS; i++) {
                const double rows = mean[k][IS_SAFE + i];
                mix[i] = rows > 0 ? (float)(b->config.coef / fmax(rows, LEAST_SHARE)) : 0;
            }
        }
        DT_TRY_H(set_loss_weights(l, k, mix));
    }
    return DT_OK;
}
