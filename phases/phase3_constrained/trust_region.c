/* SPDX-License-Identifier: Apache-2.0
 *
 * See trust_region.h.
 */
#include "trust_region.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A difference is taken over so far that log probabilities change by about AIM (root of the mean square): enough digits
 * remain in f32, and the third derivatives are small. */
#define FIRST_MOVE 1e-2
#define MOST_MOVE  1.0
#define AIM        0.03
#define LEAST      0.01
#define MOST       0.1
#define SOLVED     1e-10 /* of the square of the right side: conjugate gradients stop */
enum { TRIES = 6 };

static const char *const both[] = {"policy_loss", "approx_kl"};

/* ---- life -------------------------------------------------------------------------------------------------------- */

dt_status trust_region_init(trust_region *t, const dt_host *h, const dt_train_api *train, dt_train *trainer,
                            const trust_region_config *c, uint32_t n_costs)
{
    t->h = h;
    t->train = train;
    t->trainer = trainer;
    t->config = *c;
    t->n_costs = n_costs;
    t->n = train->vector_size(trainer);
    float **const narrow[] = {&t->origin, &t->point, &t->plus, &t->minus};
    double **const wide[] = {&t->g, &t->b, &t->u, &t->w, &t->x, &t->residual, &t->direction, &t->image};
    for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++) {
        *narrow[i] = h->alloc(h, t->n * sizeof(**narrow[i]));
    }
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        *wide[i] = h->alloc(h, t->n * sizeof(**wide[i]));
    }
    bool is_complete = true;
    for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++) {
        is_complete = is_complete && *narrow[i] != NULL;
    }
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        is_complete = is_complete && *wide[i] != NULL;
    }
    if (!is_complete) {
        return DT_FAIL_H(h, DT_ENOMEM, "out of memory for a trust region of %llu parameters", (unsigned long long)t->n);
    }
    DT_TRY_H(train->expect(trainer, both, 1, 1));
    DT_TRY_H(train->expect(trainer, both + 1, 1, 1));
    DT_TRY_H(train->expect(trainer, both, 1, 0));
    return train->expect(trainer, both, 2, 0);
}

void trust_region_fini(trust_region *t)
{
    void *const all[] = {t->origin, t->point, t->plus, t->minus,    t->g,         t->b,
                         t->u,      t->w,     t->x,    t->residual, t->direction, t->image};
    if (t->h != NULL) {
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
            t->h->release(t->h, all[i]);
        }
    }
    memset(t, 0, sizeof(*t));
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

static double dot(const trust_region *t, const double *a, const double *b)
{
    double sum = 0;
    for (uint64_t i = 0; i < t->n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* y += factor x */
static void add(const trust_region *t, double *y, double factor, const double *x)
{
    for (uint64_t i = 0; i < t->n; i++) {
        y[i] += factor * x[i];
    }
}

/* The parameters to origin + factor v. */
static dt_status go(trust_region *t, double factor, const double *v)
{
    for (uint64_t i = 0; i < t->n; i++) {
        t->point[i] = (float)((double)t->origin[i] + factor * v[i]);
    }
    return t->train->vector_set(t->trainer, t->point);
}

/* policy_loss becomes -(reward A + cost A_k) ratio, as a mean. */
static dt_status follow(trust_region *t, float reward, int64_t k, float cost)
{
    float mix[1 + DT_ENV_MAX_COSTS] = {reward};
    if (k >= 0) {
        mix[1 + k] = cost;
    }
    return t->train->set(t->trainer, "advantage_mix", mix, 1 + t->n_costs);
}

/* ---- the Hessian ------------------------------------------------------------------------------------------------- */

dt_status trust_region_product(trust_region *t, const double *v, double *out)
{
    const double length = sqrt(dot(t, v, v));
    double epsilon = 0, change = 0, kl = 0;
    memset(out, 0, t->n * sizeof(*out));
    if (!(length > 0)) {
        return DT_OK;
    }
    for (int i = 0; i < TRIES; i++) {
        epsilon = t->move / length;
        DT_TRY_H(go(t, epsilon, v));
        DT_TRY_H(t->train->gradient(t->trainer, "approx_kl", t->plus, &kl));
        change = sqrt(2 * fmax(kl, 0)); /* kl = the mean of half of its square */
        if (change <= MOST) {
            break;
        }
        t->move *= isfinite(change) ? AIM / change : 0.1;
    }
    DT_TRY_H(go(t, -epsilon, v));
    DT_TRY_H(t->train->gradient(t->trainer, "approx_kl", t->minus, &kl));
    for (uint64_t i = 0; i < t->n; i++) {
        out[i] = ((double)t->plus[i] - (double)t->minus[i]) / (2 * epsilon) + t->config.damping * v[i];
    }
    if (change < LEAST) {
        t->move = fmin(t->move * fmin(AIM / fmax(change, 1e-6), 10), MOST_MOVE);
    }
    return DT_OK;
}

/* Conjugate gradients (Hestenes & Stiefel 1952): x = H^-1 right. */
static dt_status solve(trust_region *t, const double *right, double *x)
{
    double *r = t->residual, *p = t->direction, *z = t->image;
    memset(x, 0, t->n * sizeof(*x));
    memcpy(r, right, t->n * sizeof(*r));
    memcpy(p, right, t->n * sizeof(*p));
    double square = dot(t, r, r);
    const double enough = SOLVED * square;
    for (int64_t i = 0; i < t->config.cg_iterations && square > enough; i++) {
        DT_TRY_H(trust_region_product(t, p, z));
        const double curvature = dot(t, p, z);
        if (!(curvature > 0)) {
            break; /* beyond the digits there are */
        }
        add(t, x, square / curvature, p);
        add(t, r, -square / curvature, z);
        const double next = dot(t, r, r);
        for (uint64_t k = 0; k < t->n; k++) {
            p[k] = r[k] + next / square * p[k];
        }
        square = next;
    }
    return DT_OK;
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

/* Gradient of the surrogate of the reward (k = -1), or of a cost, at origin; value_p: the surrogate itself. */
static dt_status slope(trust_region *t, int64_t k, double *out, double *value_p)
{
    const double sign = k < 0 ? -1 : 1; /* of policy_loss as the surrogate */
    DT_TRY_H(k < 0 ? follow(t, 1, -1, 0) : follow(t, 0, k, -1));
    DT_TRY_H(t->train->gradient(t->trainer, "policy_loss", t->plus, value_p));
    *value_p *= sign;
    for (uint64_t i = 0; i < t->n; i++) {
        out[i] = sign * (double)t->plus[i];
    }
    return DT_OK;
}

typedef struct search {
    const double *excess;
    int64_t k;
    bool must_gain;
    double reward, cost[DT_ENV_MAX_COSTS]; /* surrogates at origin */
} search;

/* Surrogates of all limited costs, and of the reward with the divergence, at the parameters as they are. */
static dt_status cost_at(trust_region *t, int64_t k, double *out)
{
    DT_TRY_H(follow(t, 0, k, -1));
    return t->train->losses(t->trainer, both, 1, out);
}

static dt_status reward_at(trust_region *t, double *reward, double *kl)
{
    double value[2];
    DT_TRY_H(follow(t, 1, -1, 0));
    DT_TRY_H(t->train->losses(t->trainer, both, 2, value));
    *reward = -value[0];
    *kl = value[1];
    return DT_OK;
}

static dt_status is_good(trust_region *t, const search *s, trust_region_report *r, bool *good_p)
{
    double reward = 0;
    DT_TRY_H(reward_at(t, &reward, &r->kl));
    r->gain = reward - s->reward;
    *good_p = r->kl <= t->config.max_kl && (s->must_gain ? r->gain >= 0 : isfinite(r->gain));
    for (uint32_t j = 0; j < t->n_costs && *good_p; j++) {
        double cost = 0;
        const bool is_over = s->excess[j] > 0;
        if (isnan(s->excess[j]) || (is_over && j != s->k)) {
            continue; /* a cost above its limit has its turn when it is the worst */
        }
        DT_TRY_H(cost_at(t, j, &cost));
        *good_p = cost - s->cost[j] <= (is_over ? 0 : -s->excess[j]);
    }
    return DT_OK;
}

static dt_status search_line(trust_region *t, const search *s, trust_region_report *r)
{
    double share = 1;
    for (int64_t i = 0; i < t->config.line_search_steps; i++) {
        bool is_found = false;
        DT_TRY_H(go(t, share, t->x));
        DT_TRY_H(is_good(t, s, r, &is_found));
        if (is_found) {
            r->share = share;
            return DT_OK;
        }
        share *= t->config.backtrack;
    }
    r->kl = r->gain = 0;
    return t->train->vector_set(t->trainer, t->origin);
}

dt_status trust_region_step(trust_region *t, const double *excess, int64_t k, trust_region_report *out)
{
    trust_region_numbers n = {.c = k < 0 ? -INFINITY : excess[k], .delta = t->config.max_kl};
    search s = {.excess = excess, .k = k};
    *out = (trust_region_report){.share = 0};
    t->move = FIRST_MOVE;
    DT_TRY_H(t->train->vector_get(t->trainer, t->origin));
    DT_TRY_H(slope(t, -1, t->g, &s.reward));
    for (uint32_t j = 0; j < t->n_costs; j++) {
        if (j != k && !isnan(excess[j])) {
            DT_TRY_H(cost_at(t, j, &s.cost[j]));
        }
    }
    if (k >= 0) {
        DT_TRY_H(slope(t, k, t->b, &s.cost[k]));
    }
    DT_TRY_H(solve(t, t->g, t->u));
    n.q = dot(t, t->g, t->u);
    if (k >= 0) {
        DT_TRY_H(solve(t, t->b, t->w));
        n.r = dot(t, t->g, t->w);
        n.s = dot(t, t->b, t->w);
    }
    out->solution = trust_region_solve(&n);
    memset(t->x, 0, t->n * sizeof(*t->x));
    add(t, t->x, out->solution.along_g, t->u);
    if (k >= 0) {
        add(t, t->x, out->solution.along_b, t->w);
    }
    s.must_gain = out->solution.kind != TRUST_REGION_RECOVER && !(n.c > 0);
    DT_TRY_H(search_line(t, &s, out));
    return follow(t, 1, -1, 0);
}
