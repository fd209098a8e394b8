/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimated costs of the policy; see offline.h. A one-step doubly robust estimate (Jiang & Li 2016, arXiv 1511.03722)
 * over rows of the data:
 *
 *   x_k    (1 - gamma (1 - p)) V_k(s) + min(rho, ratio_max) (c_k + gamma V_k(s') - V_k(s))
 *   J_k    rows of an episode times the mean of x_k, plus or minus 1.96 standard errors
 *   share  (sum rho)^2 / (n sum rho^2), the effective sample size per row (Kish 1965)
 *
 * Rows count as independent, as errors of V have little covariance between rows where V is right. The interval does not
 * include that the policy was trained on the same rows, systematic errors of V, or states without a row.
 */
#include "offline.h"

#include "dtrain/svc/comm.h"

#include <math.h>

#define ID                  "phase_offline"
#define Z_95                1.96 /* standard errors of a two-sided 95 % interval */
#define MIN_EFFECTIVE_SHARE 0.1  /* below it an estimate is unreliable */

typedef struct seen {
    offline_state *s;
    double rows, ratio, ratio_squares, sum[OFFLINE_MAX_HEADS], squares[OFFLINE_MAX_HEADS];
} seen;

static dt_status add_estimates(void *user, const dt_rows *r)
{
    seen *x = user;
    const offline_state *s = x->s;
    int64_t dim[DT_MAX_DIMS] = {0};
    uint32_t rank = 0;
    const float *target = s->train->rows(r, "targets", dim, &rank);
    const int64_t estimates = dim[1];
    const float *value = s->train->rows(r, "values", dim, &rank), *ratio = s->train->rows(r, "ratios", dim, &rank);
    if (target == NULL || value == NULL || ratio == NULL) {
        return DT_FAIL_H(s->h, DT_EPLUGIN, ID ": drawn samples have no recorded values");
    }
    for (int64_t row = 0; row < dim[0]; row++) {
        const double rho = (double)ratio[row];
        for (uint32_t i = 1; i < s->n_heads; i++) {
            const double v = (double)value[row * s->n_heads + i];
            const double y = (double)target[row * estimates + s->config.critics + i - 1];
            const double one = (offline_rate(s) * (v + s->kept.offset[i]) + rho * (y - v)) / s->scale[i];
            x->sum[i] += one;
            x->squares[i] += one * one;
        }
        x->ratio += rho;
        x->ratio_squares += rho * rho;
    }
    x->rows += (double)dim[0];
    return DT_OK;
}

/* As many rows as there are, at most those of a round. */
static dt_status evaluate_draws(offline_state *s, seen *x)
{
    const uint64_t draw = s->replay->draw_size(s->memory), all = (s->stats.samples + draw - 1) / draw;
    const uint64_t n = all < (uint64_t)s->config.updates ? all : (uint64_t)s->config.updates;
    for (uint64_t i = 0; i < n; i++) {
        DT_TRY_H(s->replay->draw(s->memory));
        DT_TRY_H(s->train->evaluate(s->trainer, s->replay->data(s->memory), x, add_estimates));
    }
    return DT_OK;
}

dt_status offline_estimate_costs(offline_state *s, offline_costs *out)
{
    const double an_episode = (double)s->stats.rows / (double)s->stats.episodes;
    seen x = {.s = s};
    DT_TRY_H(evaluate_draws(s, &x));
    const double rows = fmin(x.rows, (double)s->stats.rows); /* draws are with replacement */
    for (uint32_t i = 1; i < s->n_heads; i++) {
        const double mean = x.sum[i] / x.rows;
        const double error = sqrt(fmax(0, x.squares[i] / x.rows - mean * mean) / rows);
        const bool is_known = isfinite(an_episode * mean); /* fmax(0, NAN) is 0 */
        out->mean[i] = is_known ? fmax(0, an_episode * mean) : (double)NAN;
        out->off[i] = is_known ? Z_95 * an_episode * error : (double)NAN;
    }
    out->share = x.ratio_squares > 0 ? x.ratio * x.ratio / (x.rows * x.ratio_squares) : (double)NAN;
    s->metrics->scalar(s->h, "charts/ratio", x.ratio / x.rows);
    s->metrics->scalar(s->h, "charts/effective_share", out->share);
    return DT_OK;
}

/* ---- at the end -------------------------------------------------------------------------------------------------- */

static void log_limit(const offline_state *s, const offline_costs *c, uint32_t i)
{
    const char *name = s->models.spec->costs[s->cost_of[i]];
    const double limit = s->limits.at[s->cost_of[i]], low = fmax(0, c->mean[i] - c->off[i]);
    const double high = c->mean[i] + c->off[i], before = s->stats.cost[s->cost_of[i]] / (double)s->stats.episodes;
    const bool is_far = c->share < MIN_EFFECTIVE_SHARE;
    if (high <= limit && !is_far) {
        dt_logf(
            s->h, 2,
            "%s of an episode is estimated at %.4g, %.4g to %.4g at 95 %%, and its limit is %.4g (the rollouts cost "
            "%.4g); an evaluation measures it",
            name, c->mean[i], low, high, limit, before);
        return;
    }
    dt_logf(
        s->h, 1,
        "the rollouts do not prove that %s stays below its limit, %.4g: of an episode it is estimated at %.4g, %.4g "
        "to %.4g at 95 %% (the rollouts cost %.4g)%s; evaluate the policy before using it",
        name, limit, c->mean[i], low, high, before,
        is_far ? ", by as few as a tenth of the rows and less: the policy is too far from the recorded behaviour" : "");
}

void offline_log_limits(const offline_state *s, const offline_costs *c)
{
    const dt_comm_api *comm = s->h->service(s->h, DT_SVC_COMM);
    for (uint32_t i = 1; i < s->n_heads && (comm == NULL || comm->rank(s->h) == 0); i++) {
        log_limit(s, c, i);
    }
}
