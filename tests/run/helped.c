/* SPDX-License-Identifier: Apache-2.0
 *
 * An environment whose episodes report which options they were played with: every step is worth `scale`, plus `help`,
 * which is there for training alone. What the policy does changes nothing.
 */
#include <dtrain/helpers.h>
#include <dtrain/random.h>

typedef struct config {
    double scale, help;
    int64_t steps;
} config;

typedef struct state {
    config config;
    dt_random random;
    int64_t step;
} state;

static const dt_option options[] = {
    DT_OPTION(config, scale, DT_OPT_F64, "1", "1", 0, 100, NULL, "of a step"),
    DT_OPTION_WITH(config, help, DT_OPT_F64, "0", "1", 0, 100, NULL, "added to it in training", DT_OPT_TRAINING, NULL),
    DT_OPTION(config, steps, DT_OPT_I64, "8", "env steps", 1, 1000, NULL, "of an episode"), DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    ((state *)self)->config = *(const config *)cfg;
    return DT_OK;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 2", DT_F32, 0}};
    static const int32_t choices[] = {2};
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->max_steps = (uint32_t)((const state *)self)->config.steps;
    return DT_OK;
}

static void observe(state *s, const dt_env_io *io)
{
    float *obs = io->obs[0];
    obs[0] = (float)dt_random_below(&s->random, 1000) * 1e-3F;
    obs[1] = (float)s->step / (float)s->config.steps;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    s->step = 0;
    dt_random_init(&s->random, seed, 0);
    io->alive[0] = 1;
    observe(s, io);
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    s->step++;
    io->reward[0] = (float)(s->config.scale + s->config.help);
    io->truncated[0] = s->step == s->config.steps;
    io->alive[0] = !io->truncated[0];
    observe(s, io);
    return io->alive[0] ? DT_OK : DT_DONE;
}

static void destroy(void *self) {}

static const dt_env_ops ops = {.struct_size = sizeof(dt_env_ops),
                               .create = create,
                               .spec = spec,
                               .reset = reset,
                               .step = step,
                               .destroy = destroy};

static const dt_component env = {.struct_size = sizeof(dt_component),
                                 .kind = DT_KIND_ENV,
                                 .id = "helped",
                                 .summary = "says with which options it is played",
                                 .reference = "none",
                                 .flags = DT_COMP_DETERMINISTIC,
                                 .config_size = sizeof(config),
                                 .state_size = sizeof(state),
                                 .options = options,
                                 .ops = &ops};

DT_PLUGIN_DEFINE_ONE(env, "helped", "1", "tests", "Apache-2.0");
