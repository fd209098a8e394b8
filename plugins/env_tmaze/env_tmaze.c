/* SPDX-License-Identifier: Apache-2.0
 *
 * env_tmaze: the T-maze of Bakker 2002, a test of memory, one agent. It walks along a corridor to a junction and there
 * turns to one of two sides; which one has the goal was shown by a sign at the start, and by nothing later.
 *
 *   obs      "A 3" f32   at the start 0 1 1 (goal in the north) or 1 1 0 (south); in the corridor 1 0 1; at the
 *                        junction 0 1 0
 *   action   0 north, 1 east, 2 south, 3 west (absent where back is false)
 *   reward   4 for the turn to the goal, -0.1 for the wrong turn and for every step that stands still, else 0
 *   end      terminated by a turn at the junction; truncated after max_steps, which Bakker does not have
 *   metrics  solved: 1 when the goal was reached, else 0; junction: 1 when a turn was made, else 0
 *
 * The corridor has the places 0 (start) to length (junction). An agent without memory reaches the goal in half of the
 * episodes at most. The goal of an episode is the one random number of its seed.
 */
#include "dtrain/helpers.h"
#include "dtrain/random.h"

enum { NORTH, EAST, SOUTH, WEST };
#define REWARD_GOAL  4.0F
#define REWARD_STILL -0.1F

typedef struct config {
    int64_t length, max_steps;
    uint8_t back, reserved[7];
} config;

typedef struct state {
    const dt_host *h;
    config config;
    int64_t place, step;
    int32_t goal; /* NORTH or SOUTH */
    int32_t choices[1];
} state;

static const dt_option options[] = {
    DT_OPTION(
        config, length, DT_OPT_I64, "20", "env steps", 1, 10000, NULL,
        "steps from the start to the junction, over which the agent must remember the sign (Bakker 2002: 5 to 70)"),
    DT_OPTION(config, max_steps, DT_OPT_I64, "500", "env steps", 2, 1e9, NULL,
              "steps after which an episode is truncated; at least length + 1"),
    DT_OPTION(config, back, DT_OPT_BOOL, "true", NULL, 0, 0, NULL, "the agent can walk back, to the west, too"),
    DT_OPTION_END};

static dt_status check(const dt_host *h, const void *cfg)
{
    const config *c = cfg;
    if (c->max_steps <= c->length) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "max_steps %lld is too short for length %lld: the goal is at least %lld steps away",
                         (long long)c->max_steps, (long long)c->length, (long long)c->length + 1);
    }
    return DT_OK;
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    s->choices[0] = s->config.back ? WEST + 1 : WEST;
    return DT_OK;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 3", DT_F32, 0}};
    static const dt_column columns[] = {
        {"obs", "south_or_corridor", "0 or 1",
         "at the start: 1 if the goal is south; in the corridor 1; at the junction 0", 0, 1, 0, 1, 1, 0},
        {"obs", "start_or_junction", "0 or 1", "1 at the start and at the junction", 0, 1, 1, 1, 1, 0},
        {"obs", "north_or_corridor", "0 or 1",
         "at the start: 1 if the goal is north; in the corridor 1; at the junction 0", 0, 1, 2, 1, 1, 0}};
    static const char *const metrics[] = {"solved", "junction"};
    const state *s = self;
    out->n_agents = 1;
    out->obs = obs;
    out->n_obs = 1;
    out->choices = s->choices;
    out->n_heads = 1;
    out->metrics = metrics;
    out->n_metrics = 2;
    out->max_steps = (uint32_t)s->config.max_steps;
    out->columns = columns;
    out->n_columns = sizeof(columns) / sizeof(columns[0]);
    return DT_OK;
}

static void observe(const state *s, const dt_env_io *io)
{
    float *obs = io->obs[0];
    const int is_start = s->place == 0, is_junction = s->place == s->config.length;
    obs[0] = is_start ? s->goal == SOUTH : !is_junction;
    obs[1] = is_start || is_junction;
    obs[2] = is_start ? s->goal == NORTH : !is_junction;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    dt_random r;
    dt_random_init(&r, seed, 0);
    s->goal = dt_random_below(&r, 2) == 0 ? NORTH : SOUTH;
    s->place = s->step = 0;
    io->alive[0] = 1;
    observe(s, io);
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    const int32_t action = io->act_i[0];
    if (action < 0 || action >= s->choices[0]) {
        return DT_FAIL_H(s->h, DT_EINVAL, "action %d, expected 0 to %d", action, s->choices[0] - 1);
    }
    const int is_junction = s->place == s->config.length, is_turn = action == NORTH || action == SOUTH;
    s->step++;
    if (is_junction && is_turn) {
        io->terminated[0] = 1;
        io->reward[0] = action == s->goal ? REWARD_GOAL : REWARD_STILL;
    } else if (action == EAST && !is_junction) {
        s->place++;
    } else if (action == WEST && s->place > 0) {
        s->place--;
    } else {
        io->reward[0] = REWARD_STILL;
    }
    io->truncated[0] = !io->terminated[0] && s->step >= s->config.max_steps;
    io->alive[0] = !io->terminated[0] && !io->truncated[0];
    observe(s, io);
    io->metric[0] = io->terminated[0] && action == s->goal;
    io->metric[1] = io->terminated[0];
    return io->alive[0] ? DT_OK : DT_DONE;
}

DT_RESULTS_DEFINE(extension, "metrics/solved||share of episodes|higher|that reached the goal",
                  "metrics/junction||share of episodes|higher|that turned at the junction");

DT_ENV_DEFINE(component, "env_tmaze", "T-maze: remember a sign until the junction",
              "Bakker 2002, Reinforcement learning with long short-term memory", config, state, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = dt_no_op),
              .flags = DT_COMP_DETERMINISTIC, .check = check, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_tmaze", "1.0", "dtrain", "Apache-2.0");
