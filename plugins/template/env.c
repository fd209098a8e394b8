/* SPDX-License-Identifier: Apache-2.0
 *
 * template: an environment. A robot on a line of cells walks to a charger before its battery is empty.
 *
 *   obs      "A 3" f32   robot, charger (both as shares of the line), battery left (share)
 *   action   0 to the left, 1 stay, 2 to the right; leaving the line is forbidden by the mask
 *   reward   1 at the charger, less 0.01 for every step
 *   cost     worn: 1 for every step on a rough cell, the middle third of the line
 *   end      terminated at the charger, truncated when the battery is empty
 *   metrics  charged: 1 when the charger was reached
 *
 * The host owns every buffer: an environment writes into what it is given and keeps no pointer to it. Many instances
 * live side by side, so there are no globals; all chance comes from the seed of reset, so that an episode can be
 * repeated bit for bit. This one has one agent; with more of them every array has a row per agent.
 *
 *   make && dtrain check ./template.so
 *   DTRAIN_PLUGIN_PATH=. dtrain --plugin phase2_ppo --set env.id=template --set models.controller=controller_mlp
 */
#include <dtrain/helpers.h>
#include <dtrain/random.h>

enum { LEFT, STAY, RIGHT, N_CHOICES };

typedef struct template_config { /* the host fills it from the section template */
    int64_t cells, battery;
} template_config;

typedef struct state { /* the host allocates it, zeroed, one per instance */
    const dt_host *h;
    template_config config;
    int64_t robot, charger, battery;
} state;

static const dt_option options[] = {
    DT_OPTION(template_config, cells, DT_OPT_I64, "21", "1", 2, 1000000, NULL, "length of the line"),
    DT_OPTION(template_config, battery, DT_OPT_I64, "60", "env steps", 1, 1000000, NULL, "steps until it is empty"),
    DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = (state *)self;
    s->h = h;
    s->config = *(const template_config *)cfg;
    return DT_OK;
}

/* What there is to see and to do; asked for once, after create. */
static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 3", DT_F32, 0}};
    static const int32_t choices[] = {N_CHOICES};
    static const char *const costs[] = {"worn"}, *const metrics[] = {"charged"};
    static const dt_column columns[] = {
        /* of obs: name, unit, meaning, range; for dtrain show and exported policies */
        {"obs", "robot", "share", "its cell, as a share of the line", 0, 1, 0, 1, 1, 0},
        {"obs", "charger", "share", "its cell, as a share of the line", 0, 1, 1, 1, 1, 0},
        {"obs", "battery", "share", "charge left", 0, 1, 2, 1, 1, 0}};
    const state *s = (const state *)self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = choices;
    out->n_heads = 1;
    out->costs = costs;
    out->n_costs = 1;
    out->metrics = metrics;
    out->n_metrics = 1;
    out->max_steps = (uint32_t)s->config.battery;
    out->columns = columns;
    out->n_columns = sizeof(columns) / sizeof(columns[0]);
    return DT_OK;
}

/* What the agent sees now, and what it may do next; the mask is all ones before. */
static void observe(const state *s, const dt_env_io *io)
{
    const float scale = 1.0F / (float)(s->config.cells - 1);
    float *obs = (float *)io->obs[0];
    obs[0] = (float)s->robot * scale;
    obs[1] = (float)s->charger * scale;
    obs[2] = (float)s->battery / (float)s->config.battery;
    io->mask[LEFT] = s->robot > 0;
    io->mask[RIGHT] = s->robot < s->config.cells - 1;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = (state *)self;
    const uint32_t cells = (uint32_t)s->config.cells;
    dt_random r;
    dt_random_init(&r, seed, 0);
    s->robot = dt_random_below(&r, cells);
    s->charger = (s->robot + 1 + dt_random_below(&r, cells - 1)) % cells; /* elsewhere */
    s->battery = s->config.battery;
    io->alive[0] = 1;
    observe(s, io);
    return DT_OK;
}

/* Outputs are zero before the call. The observation of the last step is the true last one; there is no reset here. */
static dt_status step(void *self, const dt_env_io *io)
{
    state *s = (state *)self;
    const int32_t action = io->act_i[0];
    if (action < LEFT || action > RIGHT) {
        return DT_FAIL_H(s->h, DT_EINVAL, "action %d, expected 0 (left), 1 (stay) or 2 (right)", action);
    }
    s->robot += action - STAY;
    s->battery--;
    const int has_arrived = s->robot == s->charger;
    io->reward[0] = (has_arrived ? 1.0F : 0.0F) - 0.01F;
    io->cost[0] = 3 * s->robot >= s->config.cells && 3 * s->robot < 2 * s->config.cells;
    io->terminated[0] = has_arrived ? 1 : 0;                    /* nothing follows: worth 0 */
    io->truncated[0] = !has_arrived && s->battery == 0 ? 1 : 0; /* time is over: what follows has a value */
    io->alive[0] = !io->terminated[0] && !io->truncated[0];
    io->metric[0] = has_arrived;
    observe(s, io);
    return io->alive[0] ? DT_OK : DT_DONE;
}

DT_ENV_DEFINE(env, "template", "a robot walks to its charger", "none", template_config, state, options,
              DT_OPS(DT_SET(create, create), DT_SET(spec, spec), DT_SET(reset, reset), DT_SET(step, step),
                     DT_SET(destroy, dt_no_op)),
              DT_SET(flags, DT_COMP_DETERMINISTIC));

DT_PLUGIN_DEFINE_ONE(env, "template", "0.1", "you", "Apache-2.0");
