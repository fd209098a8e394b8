/* SPDX-License-Identifier: Apache-2.0
 *
 * env_cartpole: Gymnasium's CartPole-v1 (Barto, Sutton & Anderson 1983), one agent.
 *
 *   obs      "A 4" f32   x, x', theta, theta' (cartpole.h); the state itself is double
 *   action   0 push to the left, 1 push to the right
 *   reward   1 for every step, the last one too
 *   end      terminated when the cart is beyond 2.4 m or the pole beyond 12 degrees, truncated after max_steps
 *   metrics  balanced: 1 when the pole stood for all of max_steps, else 0
 *
 * An episode starts with every variable uniform in [-start, start], drawn in the order of obs. Only these bits differ
 * from Gymnasium's: its generator is another.
 */
#include "cartpole.h"
#include "dtrain/helpers.h"
#include "dtrain/random.h"

typedef struct config {
    int64_t max_steps;
    double start;
} config;

typedef struct state {
    const dt_host *h;
    config config;
    cartpole world;
    int64_t step; /* of the episode */
} state;

static const dt_option options[] = {
    DT_OPTION(config, max_steps, DT_OPT_I64, "500", "env steps", 1, 1e9, NULL,
              "steps after which an episode is truncated (CartPole-v1: 500, v0: 200)"),
    DT_OPTION(config, start, DT_OPT_F64, "0.05", "1", 0, 0.2, NULL,
              "every variable of the first state is uniform in [-start, start] (CartPole-v1: 0.05)"),
    DT_OPTION_END};

DT_CREATE_DEFINE(create, state);

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 4", DT_F32, 0}};
    static const int32_t choices[] = {2};
    static const dt_column columns[] = {
        {"obs", "position", "m", "of the cart", -INFINITY, INFINITY, 0, 1, 1, 0},
        {"obs", "velocity", "m/s", "of the cart", -INFINITY, INFINITY, 1, 1, 1, 0},
        {"obs", "angle", "rad", "of the pole from upright", -INFINITY, INFINITY, 2, 1, 1, 0},
        {"obs", "angular_velocity", "rad/s", "of the pole", -INFINITY, INFINITY, 3, 1, 1, 0}};
    static const char *const metrics[] = {"balanced"};
    const state *s = self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->metrics = metrics;
    out->n_metrics = 1;
    out->max_steps = (uint32_t)s->config.max_steps;
    out->step_s = CARTPOLE_STEP_S;
    out->columns = columns;
    out->n_columns = sizeof(columns) / sizeof(columns[0]);
    return DT_OK;
}

static void observe(const state *s, const dt_env_io *io)
{
    float *obs = io->obs[0];
    obs[0] = (float)s->world.x;
    obs[1] = (float)s->world.x_dot;
    obs[2] = (float)s->world.theta;
    obs[3] = (float)s->world.theta_dot;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    const double a = s->config.start;
    dt_random r;
    dt_random_init(&r, seed, 0);
    s->world.x = dt_random_between(&r, -a, a);
    s->world.x_dot = dt_random_between(&r, -a, a);
    s->world.theta = dt_random_between(&r, -a, a);
    s->world.theta_dot = dt_random_between(&r, -a, a);
    s->step = 0;
    io->alive[0] = 1;
    observe(s, io);
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    const int32_t action = io->act_i[0];
    if (action != 0 && action != 1) {
        return DT_FAIL_H(s->h, DT_EINVAL, "action %d, expected 0 (left) or 1 (right)", action);
    }
    cartpole_step(&s->world, action == 1);
    s->step++;
    io->reward[0] = 1.0F;
    io->terminated[0] = cartpole_has_failed(&s->world);
    io->truncated[0] = !io->terminated[0] && s->step >= s->config.max_steps;
    io->alive[0] = !io->terminated[0] && !io->truncated[0];
    observe(s, io);
    io->metric[0] = io->truncated[0];
    return io->alive[0] ? DT_OK : DT_DONE;
}

DT_RESULTS_DEFINE(extension, "metrics/balanced||share of episodes|higher|that reached the last step upright");

DT_ENV_DEFINE(component, "env_cartpole", "CartPole-v1: keep a pole upright by pushing its cart",
              "Barto, Sutton & Anderson 1983; Towers et al. 2024 (Gymnasium)", config, state, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = dt_no_op),
              .flags = DT_COMP_DETERMINISTIC, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_cartpole", "1.0", "dtrain", "Apache-2.0");
