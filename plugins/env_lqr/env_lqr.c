/* SPDX-License-Identifier: Apache-2.0
 *
 * env_lqr: the linear-quadratic regulator of one number (lqr.h), whose best policy and values are known exactly; one
 * agent.
 *
 *   obs      "A 1" f32   x; the state itself is double
 *   action   u, within bound; 0: without bounds
 *   reward   -(x^2 + r u^2), of the state before the step
 *   end      truncated after max_steps, never terminated
 *   metrics  gain: K of the line u = -K x that fits the episode's actions best, -sum x u / sum x^2
 *
 * An episode starts with x uniform in [-start, start]. A state beyond 1e6, which only a policy that drives it away can
 * reach, ends the training: DT_EDIVERGED.
 */
#include "dtrain/helpers.h"
#include "dtrain/random.h"
#include "lqr.h"

#include <math.h>

#define FARTHEST 1e6

typedef struct config {
    double a, b, r, sigma, bound, start;
    int64_t max_steps;
} config;

typedef struct state {
    const dt_host *h;
    config config;
    float low[1], high[1];
    dt_random random;
    double x, xu, xx; /* state; sums of the episode */
    int64_t step;
} state;

/* clang-format off */
static const dt_option options[] = {
    DT_OPTION(config, a, DT_OPT_F64, "0.95", "1", -10, 10, NULL, "x' = a x + b u + w"),
    DT_OPTION(config, b, DT_OPT_F64, "0.5", "1", -10, 10, NULL, "change of the state per unit of action"),
    DT_OPTION(config, r, DT_OPT_F64, "0.1", "1", 1e-6, 1e6, NULL, "cost of u^2, relative to 1 for x^2"),
    DT_OPTION(config, sigma, DT_OPT_F64, "0.2", "1", 0, 1e3, NULL, "standard deviation of w"),
    DT_OPTION(config, bound, DT_OPT_F64, "0", "1", 0, 1e6, NULL, "actions are within -bound and bound; 0: any number"),
    DT_OPTION(config, start, DT_OPT_F64, "2", "1", 0, 1e3, NULL, "an episode starts with x uniform in [-start, start]"),
    DT_OPTION(config, max_steps, DT_OPT_I64, "50", "env steps", 1, 1e9, NULL,
              "steps after which an episode is truncated"),
    DT_OPTION_END};
/* clang-format on */

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    s->high[0] = s->config.bound > 0 ? (float)s->config.bound : INFINITY;
    s->low[0] = -s->high[0];
    return DT_OK;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 1", DT_F32, 0}};
    static const dt_column columns[] = {{"obs", "x", "1", "state", -INFINITY, INFINITY, 0, 1, 1, 0}};
    static const char *const metrics[] = {"gain"};
    const state *s = self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->low = s->low;
    out->high = s->high;
    out->n_continuous = 1;
    out->metrics = metrics;
    out->n_metrics = 1;
    out->max_steps = (uint32_t)s->config.max_steps;
    out->columns = columns;
    out->n_columns = sizeof(columns) / sizeof(columns[0]);
    return DT_OK;
}

static void observe(const state *s, const dt_env_io *io)
{
    float *obs = io->obs[0];
    obs[0] = (float)s->x;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    dt_random_init(&s->random, seed, 0);
    s->x = dt_random_between(&s->random, -s->config.start, s->config.start);
    s->xu = s->xx = 0;
    s->step = 0;
    io->alive[0] = 1;
    observe(s, io);
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    const config *c = &s->config;
    const double u = (double)io->act_f[0], x = s->x;
    io->reward[0] = (float)-(x * x + c->r * u * u);
    s->xu += x * u;
    s->xx += x * x;
    s->x = c->a * x + c->b * u + c->sigma * dt_random_normal(&s->random);
    if (!(fabs(s->x) <= FARTHEST)) {
        return DT_FAIL_H(s->h, DT_EDIVERGED,
                         "env_lqr: the state is %g after the action %g; beyond %g the policy is unstable", s->x, u,
                         FARTHEST);
    }
    s->step++;
    io->truncated[0] = s->step >= c->max_steps;
    io->alive[0] = !io->truncated[0];
    observe(s, io);
    io->metric[0] = s->xx > 0 ? -s->xu / s->xx : NAN;
    return io->alive[0] ? DT_OK : DT_DONE;
}

DT_RESULTS_DEFINE(extension, "metrics/gain||||K of u = -K x that fits the actions best");

DT_ENV_DEFINE(component, "env_lqr", "the linear-quadratic regulator of one number, whose solution is known",
              "Bertsekas 1995, section 4.1", config, state, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = dt_no_op),
              .flags = DT_COMP_DETERMINISTIC, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_lqr", "1.0", "dtrain", "Apache-2.0");
