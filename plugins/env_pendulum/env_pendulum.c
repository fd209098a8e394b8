/* SPDX-License-Identifier: Apache-2.0
 *
 * env_pendulum: Gymnasium's Pendulum-v1, swing a pendulum up and hold it there; one agent.
 *
 *   obs      "A 3" f32   cos theta, sin theta, theta' (pendulum.h); the state itself is double
 *   action   one torque in [-2, 2] N m
 *   reward   -(theta^2 + 0.1 theta'^2 + 0.001 torque^2), theta in [-pi, pi), of the state before the step
 *   end      truncated after max_steps, never terminated
 *   metrics  upright: share of the steps whose angle after the step is within 0.1 rad of upright
 *
 * An episode starts with theta uniform in [-pi, pi), then theta' uniform in [-1, 1). Only these bits differ from
 * Gymnasium's: its generator is another.
 */
#include "dtrain/helpers.h"
#include "dtrain/random.h"
#include "pendulum.h"

#define UPRIGHT_RAD 0.1

typedef struct config {
    int64_t max_steps;
} config;

typedef struct state {
    const dt_host *h;
    config config;
    pendulum world;
    double sine;             /* of theta */
    int64_t step, n_upright; /* of the episode */
} state;

static const dt_option options[] = {DT_OPTION(config, max_steps, DT_OPT_I64, "200", "env steps", 1, 1e9, NULL,
                                              "steps after which an episode is truncated (Pendulum-v1: 200)"),
                                    DT_OPTION_END};

DT_CREATE_DEFINE(create, state);

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 3", DT_F32, 0}};
    static const dt_column columns[] = {
        {"obs", "cos_angle", "1", "angle from upright", -1, 1, 0, 1, 1, 0},
        {"obs", "sin_angle", "1", "angle from upright", -1, 1, 1, 1, 1, 0},
        {"obs", "angular_velocity", "rad/s", "clipped as in Gymnasium", -8, 8, 2, 1, 1, 0}};
    static const float low[] = {(float)-PENDULUM_TORQUE}, high[] = {(float)PENDULUM_TORQUE};
    static const char *const metrics[] = {"upright"};
    const state *s = self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->low = low;
    out->high = high;
    out->n_continuous = 1;
    out->metrics = metrics;
    out->n_metrics = 1;
    out->max_steps = (uint32_t)s->config.max_steps;
    out->step_s = PENDULUM_STEP_S;
    out->columns = columns;
    out->n_columns = sizeof(columns) / sizeof(columns[0]);
    return DT_OK;
}

static void observe(state *s, const dt_env_io *io)
{
    float *obs = io->obs[0];
    s->sine = sin(s->world.theta);
    obs[0] = (float)cos(s->world.theta);
    obs[1] = (float)s->sine;
    obs[2] = (float)s->world.theta_dot;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    dt_random r;
    dt_random_init(&r, seed, 0);
    s->world.theta = dt_random_between(&r, -PENDULUM_PI, PENDULUM_PI);
    s->world.theta_dot = dt_random_between(&r, -1.0, 1.0);
    s->step = s->n_upright = 0;
    io->alive[0] = 1;
    observe(s, io);
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    const double torque = (double)io->act_f[0];
    if (!(torque >= -PENDULUM_TORQUE && torque <= PENDULUM_TORQUE)) {
        return DT_FAIL_H(s->h, DT_EINVAL, "torque %g N m is outside [-%g, %g]", torque, PENDULUM_TORQUE,
                         PENDULUM_TORQUE);
    }
    io->reward[0] = (float)-pendulum_step(&s->world, s->sine, torque);
    s->step++;
    s->n_upright += fabs(pendulum_wrap(s->world.theta)) <= UPRIGHT_RAD;
    io->truncated[0] = s->step >= s->config.max_steps;
    io->alive[0] = !io->truncated[0];
    observe(s, io);
    io->metric[0] = (double)s->n_upright / (double)s->step;
    return io->alive[0] ? DT_OK : DT_DONE;
}

DT_RESULTS_DEFINE(extension, "metrics/upright||share of steps|higher|with the pendulum upright");

DT_ENV_DEFINE(component, "env_pendulum", "Pendulum-v1: swing a pendulum up with a weak motor",
              "Towers et al. 2024 (Gymnasium)", config, state, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = dt_no_op),
              .flags = DT_COMP_DETERMINISTIC, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_pendulum", "1.0", "dtrain", "Apache-2.0");
