/* SPDX-License-Identifier: Apache-2.0
 *
 * An environment whose agents are there in one of `alive_every` episodes alone, 0: in none. Each step costs `cost`; its
 * metric is not known in any episode.
 */
#include <dtrain/helpers.h>
#include <dtrain/random.h>

#include <math.h>

typedef struct config {
    double cost;
    int64_t agents, steps, alive_every;
    uint8_t continuous;
} config;

typedef struct state {
    config config;
    dt_random random;
    int64_t step;
    int has_agents;
} state;

static const dt_option options[] = {
    DT_OPTION(config, cost, DT_OPT_F64, "1", "1", 0, 100, NULL, "of a step of an agent"),
    DT_OPTION(config, agents, DT_OPT_I64, "2", "1", 1, 8, NULL, "places"),
    DT_OPTION(config, steps, DT_OPT_I64, "8", "env steps", 1, 1000, NULL, "of an episode"),
    DT_OPTION(config, alive_every, DT_OPT_I64, "0", "episodes", 0, 1000, NULL, "in one of so many there are agents"),
    DT_OPTION(config, continuous, DT_OPT_BOOL, "false", NULL, 0, 0, NULL, "actions"),
    DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    ((state *)self)->config = *(const config *)cfg;
    return DT_OK;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 2", DT_F32, 0}};
    static const int32_t choices[] = {2};
    static const float low[] = {-1}, high[] = {1};
    static const char *const costs[] = {"worn"}, *const metrics[] = {"unknown"};
    const config *c = &((const state *)self)->config;
    out->n_agents = (uint32_t)c->agents;
    out->obs = obs;
    out->n_obs = 1;
    out->low = low;
    out->high = high;
    out->n_continuous = c->continuous ? 1 : 0;
    out->choices = choices;
    out->n_heads = c->continuous ? 0 : 1;
    out->costs = costs;
    out->n_costs = 1;
    out->metrics = metrics;
    out->n_metrics = 1;
    out->max_steps = (uint32_t)c->steps;
    return DT_OK;
}

static void show(state *s, const dt_env_io *io, int is_over)
{
    const int is_alive = s->has_agents && !is_over;
    float *obs = io->obs[0];
    for (int64_t a = 0; a < s->config.agents; a++) {
        io->alive[a] = (uint8_t)is_alive;
        for (int k = 0; k < 2; k++) {
            obs[2 * a + k] = is_alive ? dt_random_uniform(&s->random) : 0;
        }
    }
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    s->step = 0;
    dt_random_init(&s->random, seed, 0);
    s->has_agents = s->config.alive_every > 0 && dt_random_below(&s->random, (uint32_t)s->config.alive_every) == 0;
    show(s, io, 0);
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    const int is_over = ++s->step == s->config.steps;
    for (int64_t a = 0; a < s->config.agents; a++) {
        if (s->has_agents) {
            io->reward[a] = 1;
            io->cost[a] = (float)s->config.cost;
            io->truncated[a] = (uint8_t)is_over;
        }
    }
    io->metric[0] = NAN;
    show(s, io, is_over);
    return is_over ? DT_DONE : DT_OK;
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
                                 .id = "sparse",
                                 .summary = "agents are rarely there",
                                 .reference = "none",
                                 .flags = DT_COMP_DETERMINISTIC,
                                 .config_size = sizeof(config),
                                 .state_size = sizeof(state),
                                 .options = options,
                                 .ops = &ops};

DT_PLUGIN_DEFINE_ONE(env, "sparse", "1", "tests", "Apache-2.0");
