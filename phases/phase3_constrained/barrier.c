/* SPDX-License-Identifier: Apache-2.0
 *
 * See barrier.h. One loss serves learning and measuring: a weighted sum of PARTS, the weights being a step input.
 */
#include "barrier.h"

#include "dtrain/svc/graph.h"

#include <math.h>
#include <string.h>

/* Of a row: terms of the loss, what is counted of it, and which kind of row it is. */
enum { SAFE_LOSS, UNSAFE_LOSS, STEP_LOSS, VIOLATED, SAFE_RIGHT, UNSAFE_RIGHT, IS_SAFE, IS_UNSAFE, HAS_STEP, PARTS };

static const char *const measured[] = {"barrier_loss"};

#define SHARP       1e6  /* slope of a step from 0 to 1 */
#define STEP_MARGIN 0.1  /* of the margin */
#define LEAST_SHARE 1e-3 /* of the rows: what is rarer counts no more */

/* ---- the graph --------------------------------------------------------------------------------------------------- */

static dt_tensor *one_minus(dt_graph *g, dt_tensor *x)
{
    return dt_affine(g, x, -1, 1);
}

/* 1 where x > 0 */
static dt_tensor *is_above(dt_graph *g, dt_tensor *x)
{
    return dt_clamp(g, dt_affine(g, x, SHARP, 0), 0, 1);
}

/* Rows that are safe, and unsafe, by all costs that mark, [A, 1]. n: steps until a cost, a whole number. */
static void record_labels(const barrier *b, const ppo_wiring *w, dt_graph *g, dt_tensor **safe, dt_tensor **unsafe)
{
    dt_tensor *cost_in = g->api->input(g, "cost_in"), *is_fine = NULL, *is_free = NULL;
    for (uint32_t k = 0; k < w->spec->n_costs; k++) {
        if (!b->marks[k]) {
            continue;
        }
        dt_tensor *n = dt_slice(g, cost_in, k, 1), *seen = dt_add(g, dt_relu(g, n), dt_relu(g, dt_affine(g, n, -1, 0)));
        dt_tensor *is_far = dt_clamp(g, dt_affine(g, seen, 1, -(double)b->config.safe_steps), 0, 1);
        dt_tensor *is_near = dt_clamp(g, dt_affine(g, n, -1, (double)b->config.unsafe_steps + 1), 0, 1);
        dt_tensor *is_known = dt_clamp(g, dt_affine(g, n, 1, 1), 0, 1); /* n >= 0 */
        dt_tensor *is_not = one_minus(g, dt_mul(g, is_near, is_known));
        is_fine = is_fine == NULL ? is_far : dt_mul(g, is_fine, is_far);
        is_free = is_free == NULL ? is_not : dt_mul(g, is_free, is_not);
    }
    *safe = is_fine;
    *unsafe = one_minus(g, is_free);
}

dt_status barrier_record(const barrier *b, const ppo_wiring *w, dt_graph *g, const ppo_policy *p)
{
    const double m = b->config.margin;
    dt_tensor *part[PARTS], *here = NULL, *next = NULL, *safe = NULL, *unsafe = NULL, *sum = NULL;
    DT_TRY_H(ppo_record_barrier(w, g, "", p->foreseen, &here));
    DT_TRY_H(ppo_record_barrier(w, g, "next_", p->foreseen, &next));
    dt_tensor *h = dt_split(g, here, 0), *h1 = dt_split(g, next, 0);
    record_labels(b, w, g, &safe, &unsafe);
    dt_tensor *step = dt_mul(g, safe, dt_split(g, g->api->input(g, "next_present"), 0));
    dt_tensor *lost = dt_sub(g, dt_affine(g, dt_clamp(g, h, -m, m), 1 - b->config.alpha, 0), dt_clamp(g, h1, -m, m));
    part[SAFE_LOSS] = dt_mul(g, safe, dt_relu(g, dt_affine(g, h, -1, m)));
    part[UNSAFE_LOSS] = dt_mul(g, unsafe, dt_relu(g, dt_affine(g, h, 1, m)));
    part[STEP_LOSS] = dt_mul(g, step, dt_relu(g, dt_affine(g, lost, 1, STEP_MARGIN * m)));
    part[VIOLATED] = dt_mul(g, step, is_above(g, lost));
    part[SAFE_RIGHT] = dt_mul(g, safe, is_above(g, h));
    part[UNSAFE_RIGHT] = dt_mul(g, unsafe, one_minus(g, is_above(g, h)));
    part[IS_SAFE] = safe;
    part[IS_UNSAFE] = unsafe;
    part[HAS_STEP] = step;
    dt_tensor *mix = g->api->step_input(g, "barrier_mix", PARTS);
    for (int i = 0; i < PARTS; i++) {
        dt_tensor *one = dt_mul(g, part[i], dt_slice(g, mix, i, 1));
        sum = sum == NULL ? one : dt_add(g, sum, one);
    }
    return g->api->loss(g, "barrier_loss", dt_sum(g, dt_merge(g, sum)), 1, "A");
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static dt_status set_mix(const ppo_learner *l, const float *mix)
{
    return l->train->set(l->trainer, "barrier_mix", mix, PARTS);
}

dt_status barrier_start(const ppo_learner *l)
{
    DT_TRY_H(l->train->expect(l->trainer, measured, 1, 0));
    return set_mix(l, (const float[PARTS]){0});
}

/* The mean of every part over all rows of the round. */
static dt_status measure(const ppo_learner *l, double *mean)
{
    for (int i = 0; i < PARTS; i++) {
        float mix[PARTS] = {0};
        mix[i] = 1;
        DT_TRY_H(set_mix(l, mix));
        DT_TRY_H(l->train->losses(l->trainer, measured, 1, &mean[i]));
    }
    return DT_OK;
}

static void report(const ppo_learner *l, const char *name, double sum, double rows)
{
    if (rows > 0) {
        l->metrics->scalar(l->h, name, sum / rows);
    }
}

dt_status barrier_round(const barrier *b, const ppo_learner *l)
{
    double mean[PARTS];
    float mix[PARTS] = {0};
    DT_TRY_H(measure(l, mean));
    report(l, "barrier/violation_rate", mean[VIOLATED], mean[HAS_STEP]);
    report(l, "barrier/accuracy", mean[SAFE_RIGHT] + mean[UNSAFE_RIGHT], mean[IS_SAFE] + mean[IS_UNSAFE]);
    report(l, "barrier/accuracy_safe", mean[SAFE_RIGHT], mean[IS_SAFE]);
    report(l, "barrier/accuracy_unsafe", mean[UNSAFE_RIGHT], mean[IS_UNSAFE]);
    report(l, "barrier/unsafe", mean[IS_UNSAFE], 1);
    report(l, "barrier/safe_loss", mean[SAFE_LOSS], mean[IS_SAFE]);
    report(l, "barrier/unsafe_loss", mean[UNSAFE_LOSS], mean[IS_UNSAFE]);
    report(l, "barrier/step_loss", mean[STEP_LOSS], mean[HAS_STEP]);
    for (int i = SAFE_LOSS; i <= STEP_LOSS; i++) {
        const double rows = mean[IS_SAFE + i];
        mix[i] = rows > 0 ? (float)(b->config.coef / fmax(rows, LEAST_SHARE)) : 0;
    }
    return set_mix(l, mix);
}
