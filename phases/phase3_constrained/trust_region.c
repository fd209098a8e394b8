/* SPDX-License-Identifier: Apache-2.0 */
#include "trust_region.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Differences for Hessian products change log probabilities by about TARGET_CHANGE (root mean square): enough digits
 * remain in f32, and third derivatives are small. */
#define FIRST_DIFFERENCE 1e-2
#define MAX_DIFFERENCE   1.0
#define TARGET_CHANGE    0.03
#define MIN_CHANGE       0.01
#define MAX_CHANGE       0.1
#define CG_TOLERANCE     1e-10 /* of the squared norm of the right side */
#define PARALLEL         1e-12 /* g is a multiple of b where what of q is not along b is less than this share */
enum { MAX_TRIES = 6 };

static const char *const loss_names[] = {"policy_loss", "approx_kl"};

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
    DT_TRY_H(train->plan_losses(trainer, loss_names, 1, 1));
    DT_TRY_H(train->plan_losses(trainer, loss_names + 1, 1, 1));
    DT_TRY_H(train->plan_losses(trainer, loss_names, 1, 0));
    return train->plan_losses(trainer, loss_names, 2, 0);
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

static double dot_product(const trust_region *t, const double *a, const double *b)
{
    double sum = 0;
    for (uint64_t i = 0; i < t->n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* y += factor x */
static void add_scaled(const trust_region *t, double *y, double factor, const double *x)
{
    for (uint64_t i = 0; i < t->n; i++) {
        y[i] += factor * x[i];
    }
}

/* parameters = origin + factor v */
static dt_status set_parameters_along(trust_region *t, double factor, const double *v)
{
    for (uint64_t i = 0; i < t->n; i++) {
        t->point[i] = (float)((double)t->origin[i] + factor * v[i]);
    }
    return t->train->vector_set(t->trainer, t->point);
}

/* policy_loss becomes the mean of -(reward A + cost A_k) ratio. */
static dt_status select_surrogate(trust_region *t, float reward, int64_t k, float cost)
{
    float mix[1 + DT_ENV_MAX_COSTS] = {reward};
    if (k >= 0) {
        mix[1 + k] = cost;
    }
    return t->train->set(t->trainer, "advantage_mix", mix, 1 + t->n_costs);
}

/* ---- the Hessian ------------------------------------------------------------------------------------------------- */

dt_status trust_region_hessian_product(trust_region *t, const double *v, double *out)
{
    const double length = sqrt(dot_product(t, v, v));
    double epsilon = 0, change = 0, kl = 0;
    memset(out, 0, t->n * sizeof(*out));
    if (!(length > 0)) {
        return DT_OK;
    }
    for (int i = 0; i < MAX_TRIES; i++) {
        epsilon = t->move / length;
        DT_TRY_H(set_parameters_along(t, epsilon, v));
        DT_TRY_H(t->train->gradient(t->trainer, "approx_kl", t->plus, &kl));
        change = sqrt(2 * fmax(kl, 0)); /* kl = the mean of half of its square */
        if (change <= MAX_CHANGE) {
            break;
        }
        t->move *= isfinite(change) ? TARGET_CHANGE / change : 0.1;
    }
    DT_TRY_H(set_parameters_along(t, -epsilon, v));
    DT_TRY_H(t->train->gradient(t->trainer, "approx_kl", t->minus, &kl));
    for (uint64_t i = 0; i < t->n; i++) {
        out[i] = ((double)t->plus[i] - (double)t->minus[i]) / (2 * epsilon) + t->config.damping * v[i];
    }
    if (change < MIN_CHANGE) {
        t->move = fmin(t->move * fmin(TARGET_CHANGE / fmax(change, 1e-6), 10), MAX_DIFFERENCE);
    }
    return DT_OK;
}

/* Conjugate gradients (Hestenes & Stiefel 1952): x = H^-1 right. */
static dt_status conjugate_gradient(trust_region *t, const double *right, double *x)
{
    double *r = t->residual, *p = t->direction, *z = t->image;
    memset(x, 0, t->n * sizeof(*x));
    memcpy(r, right, t->n * sizeof(*r));
    memcpy(p, right, t->n * sizeof(*p));
    double square = dot_product(t, r, r);
    const double enough = CG_TOLERANCE * square;
    for (int64_t i = 0; i < t->config.cg_iterations && square > enough; i++) {
        DT_TRY_H(trust_region_hessian_product(t, p, z));
        const double curvature = dot_product(t, p, z);
        if (!(curvature > 0)) {
            break; /* limit of precision */
        }
        add_scaled(t, x, square / curvature, p);
        add_scaled(t, r, -square / curvature, z);
        const double next = dot_product(t, r, r);
        for (uint64_t k = 0; k < t->n; k++) {
            p[k] = r[k] + next / square * p[k];
        }
        square = next;
    }
    return DT_OK;
}

/* ---- the dual ---------------------------------------------------------------------------------------------------- */

static trust_region_solution make_solution(int kind, double along_g, double along_b, const trust_region_numbers *n)
{
    return (trust_region_solution){
        .kind = kind, .along_g = along_g, .along_b = along_b, .gain = along_g * n->q + along_b * n->r};
}

/* The problem is convex, so cases follow from x without comparing dual values: an optimum without the constraint that
 * meets it is the optimum; if the plane c + b'x = 0 does not cut the ball, no step meets it; else it is on both. */
trust_region_solution trust_region_solve_dual(const trust_region_numbers *n)
{
    /* x = u sqrt(2 delta / q) */
    const double reach = n->q > 0 ? sqrt(2 * n->delta / n->q) : 0;
    const double room = n->s > 0 ? 2 * n->delta - n->c * n->c / n->s : 0;
    if (n->c + n->r * reach <= 0 || !(n->s > 0) || (n->c <= 0 && room <= 0)) {
        trust_region_solution x = make_solution(TRUST_REGION_FREE, reach, 0, n);
        x.lambda = reach > 0 ? 1 / reach : 0;
        return x;
    }
    /* the least of c + b'x in the ball is c - sqrt(2 delta s) */
    if (room <= 0) {
        trust_region_solution x = make_solution(TRUST_REGION_RECOVER, 0, -sqrt(2 * n->delta / n->s), n);
        x.lambda = sqrt(n->s / (2 * n->delta));
        x.nu = INFINITY;
        return x;
    }
    /* lambda^2 = (q - r^2 / s) / (2 delta - c^2 / s),  nu = (lambda c + r) / s */
    const double across = n->q - n->r * n->r / n->s;
    trust_region_solution x;
    if (across > PARALLEL * n->q) {
        const double lambda = sqrt(across / room), nu = (lambda * n->c + n->r) / n->s;
        x = make_solution(TRUST_REGION_BOUND, 1 / lambda, -nu / lambda, n);
        x.lambda = lambda;
        x.nu = nu;
    } else { /* all of the plane is as good: its nearest point */
        x = make_solution(TRUST_REGION_BOUND, 0, -n->c / n->s, n);
        x.lambda = 0;
        x.nu = n->r / n->s;
    }
    return x;
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

/* Gradient of the surrogate of the reward (k = -1), or of a cost, at origin; value_p: the surrogate itself. */
static dt_status surrogate_gradient(trust_region *t, int64_t k, double *out, double *value_p)
{
    const double sign = k < 0 ? -1 : 1; /* of policy_loss as the surrogate */
    DT_TRY_H(k < 0 ? select_surrogate(t, 1, -1, 0) : select_surrogate(t, 0, k, -1));
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
static dt_status cost_surrogate(trust_region *t, int64_t k, double *out)
{
    DT_TRY_H(select_surrogate(t, 0, k, -1));
    return t->train->losses(t->trainer, loss_names, 1, out);
}

static dt_status reward_surrogate(trust_region *t, double *reward, double *kl)
{
    double value[2];
    DT_TRY_H(select_surrogate(t, 1, -1, 0));
    DT_TRY_H(t->train->losses(t->trainer, loss_names, 2, value));
    *reward = -value[0];
    *kl = value[1];
    return DT_OK;
}

static dt_status is_acceptable(trust_region *t, const search *s, trust_region_report *r, bool *good_p)
{
    double reward = 0;
    DT_TRY_H(reward_surrogate(t, &reward, &r->kl));
    r->gain = reward - s->reward;
    *good_p = r->kl <= t->config.max_kl && (s->must_gain ? r->gain >= 0 : isfinite(r->gain));
    for (uint32_t j = 0; j < t->n_costs && *good_p; j++) {
        double cost = 0;
        const bool is_over = s->excess[j] > 0;
        if (isnan(s->excess[j]) || (is_over && j != s->k)) {
            continue; /* other costs above their limits constrain later steps */
        }
        DT_TRY_H(cost_surrogate(t, j, &cost));
        *good_p = cost - s->cost[j] <= (is_over ? 0 : -s->excess[j]);
    }
    return DT_OK;
}

static dt_status line_search(trust_region *t, const search *s, trust_region_report *r)
{
    double share = 1;
    for (int64_t i = 0; i < t->config.line_search_steps; i++) {
        bool is_found = false;
        DT_TRY_H(set_parameters_along(t, share, t->x));
        DT_TRY_H(is_acceptable(t, s, r, &is_found));
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
    t->move = FIRST_DIFFERENCE;
    DT_TRY_H(t->train->vector_get(t->trainer, t->origin));
    DT_TRY_H(surrogate_gradient(t, -1, t->g, &s.reward));
    for (uint32_t j = 0; j < t->n_costs; j++) {
        if (j != k && !isnan(excess[j])) {
            DT_TRY_H(cost_surrogate(t, j, &s.cost[j]));
        }
    }
    if (k >= 0) {
        DT_TRY_H(surrogate_gradient(t, k, t->b, &s.cost[k]));
    }
    DT_TRY_H(conjugate_gradient(t, t->g, t->u));
    n.q = dot_product(t, t->g, t->u);
    if (k >= 0) {
        DT_TRY_H(conjugate_gradient(t, t->b, t->w));
        n.r = dot_product(t, t->g, t->w);
        n.s = dot_product(t, t->b, t->w);
    }
    out->solution = trust_region_solve_dual(&n);
    memset(t->x, 0, t->n * sizeof(*t->x));
    add_scaled(t, t->x, out->solution.along_g, t->u);
    if (k >= 0) {
        add_scaled(t, t->x, out->solution.along_b, t->w);
    }
    s.must_gain = out->solution.kind != TRUST_REGION_RECOVER && !(n.c > 0);
    DT_TRY_H(line_search(t, &s, out));
    return select_surrogate(t, 1, -1, 0);
}
