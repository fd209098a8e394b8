/* SPDX-License-Identifier: Apache-2.0
 *
 * env_matrix: two agents play a matrix game again and again, and both earn what it pays. Small problems of cooperation
 * whose limits of learning are known.
 *
 *   climbing                 penalty                  two_step
 *      11  -30    0            -k    0   10             7  7      0  1
 *     -30    7    6             0    2    0             7  7      1  8
 *       0    0    5            10    0   -k
 *
 * A game of two_step takes two steps: the first one pays nothing, and in it the first agent chooses which of the two
 * matrices the second one pays.
 *
 *   obs      "A 2" f32   1 in the column of the agent, else 0; two_step: "A 5", and one-hot which step and matrix
 *   action   of the first agent a row, of the second one a column
 *   reward   of both: the entry
 *   end      terminated after `repeats` games
 *   metrics  payoff: mean of a game; best: share of games with the largest entry
 *
 * Nothing is random. Source: Claus & Boutilier 1998, The dynamics of reinforcement learning in cooperative multiagent
 * systems; 25 repeats: Papoudakis et al. 2021, arXiv 2006.07869; two_step: Rashid et al. 2018, arXiv 1803.11485.
 */
#include "dtrain/helpers.h"
#include <stdbool.h>

enum { AGENTS = 2, CHOICES = 3 };
enum { CLIMBING, PENALTY, TWO_STEP };
static const char *const games[] = {"climbing", "penalty", "two_step", NULL};
enum { FIRST_STEP, SAFE_MATRIX, RISKY_MATRIX, STATES }; /* of two_step */

typedef struct config {
    int64_t repeats;
    double k;
    uint32_t game, reserved;
} config;

typedef struct state {
    const dt_host *h;
    config config;
    double pay[CHOICES][CHOICES], most, sum;
    int64_t step, n_best;
    int32_t n_choices, at; /* at: the state of two_step */
} state;

static const dt_option options[] = {
    DT_OPTION(config, game, DT_OPT_ENUM, "climbing", NULL, 0, 0, games, "which game"),
    DT_OPTION(config, k, DT_OPT_F64, "100", "1", 0, 1e6, NULL, "game = \"penalty\": cost of a miss"),
    DT_OPTION(config, repeats, DT_OPT_I64, "25", "games", 1, 1e6, NULL, "games of an episode (arXiv 2006.07869: 25)"),
    DT_OPTION_END};

static void fill_payoffs(state *s)
{
    static const double climbing[CHOICES][CHOICES] = {{11, -30, 0}, {-30, 7, 6}, {0, 0, 5}};
    const double k = s->config.k, penalty[CHOICES][CHOICES] = {{-k, 0, 10}, {0, 2, 0}, {10, 0, -k}};
    static const double risky[CHOICES][CHOICES] = {{0, 1}, {1, 8}};
    const bool is_one = s->config.game != TWO_STEP;
    memcpy(s->pay, s->config.game == CLIMBING ? climbing : is_one ? penalty : risky, sizeof(s->pay));
    s->most = s->config.game == CLIMBING ? 11 : is_one ? 10 : 8;
    s->n_choices = is_one ? CHOICES : CHOICES - 1;
}

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    fill_payoffs(s);
    return DT_OK;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[] = {{"obs", "A 2", DT_F32, 0}}, obs_of_two[] = {{"obs", "A 5", DT_F32, 0}};
    static const dt_column columns[] = {
        {"obs", "agent", "0 or 1", "index of the agent, one-hot", 0, 1, 0, 2, 1, 0},
        {"obs", "state", "0 or 1", "first step, second step with the left or the right matrix", 0, 1, 2, 3, 1, 0}};
    static const char *const metrics[] = {"payoff", "best"};
    const state *s = self;
    const bool is_one = s->config.game != TWO_STEP;
    out->n_agents = AGENTS;
    out->obs = is_one ? obs : obs_of_two;
    out->n_obs = 1;
    out->choices = &s->n_choices;
    out->n_heads = 1;
    out->metrics = metrics;
    out->n_metrics = 2;
    out->max_steps = (uint32_t)(is_one ? s->config.repeats : 2 * s->config.repeats);
    out->columns = columns;
    out->n_columns = is_one ? 1 : 2;
    return DT_OK;
}

static void observe(const state *s, const dt_env_io *io, uint8_t is_alive)
{
    float *obs = io->obs[0];
    for (int i = 0; i < AGENTS; i++, obs += AGENTS + (s->config.game == TWO_STEP ? STATES : 0)) {
        obs[i] = 1;
        io->alive[i] = is_alive;
        if (s->config.game == TWO_STEP) {
            obs[AGENTS + s->at] = 1;
        }
    }
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    s->step = s->n_best = 0;
    s->sum = 0;
    s->at = FIRST_STEP;
    observe(s, io, 1);
    return DT_OK;
}

/* What this step pays, and whether a game is over. */
static double play_step(state *s, const int32_t *action, bool *is_over_p)
{
    const int32_t before = s->at;
    *is_over_p = s->config.game != TWO_STEP || before != FIRST_STEP;
    if (s->config.game == TWO_STEP) {
        s->at = before != FIRST_STEP ? FIRST_STEP : action[0] == 0 ? SAFE_MATRIX : RISKY_MATRIX;
    }
    return !*is_over_p ? 0 : before == SAFE_MATRIX ? 7 : s->pay[action[0]][action[1]];
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    for (int i = 0; i < AGENTS; i++) {
        if (io->act_i[i] < 0 || io->act_i[i] >= s->n_choices) {
            return DT_FAIL_H(s->h, DT_EINVAL, "action %d of agent %d, expected 0 to %d", io->act_i[i], i,
                             s->n_choices - 1);
        }
    }
    bool is_game = false;
    const double pay = play_step(s, io->act_i, &is_game);
    s->step += is_game;
    s->sum += pay;
    s->n_best += is_game && pay >= s->most;
    const uint8_t is_over = s->step >= s->config.repeats;
    for (int i = 0; i < AGENTS; i++) {
        io->reward[i] = (float)pay;
        io->terminated[i] = is_over;
    }
    observe(s, io, !is_over);
    if (!is_over) {
        return DT_OK;
    }
    io->metric[0] = s->sum / (double)s->step;
    io->metric[1] = (double)s->n_best / (double)s->step;
    return DT_DONE;
}

DT_RESULTS_DEFINE(extension, "metrics/payoff|||higher|mean of a game",
                  "metrics/best||share of games|higher|with the largest entry");

DT_ENV_DEFINE(component, "env_matrix", "two agents play a matrix game: climbing, penalty or two_step",
              "Claus & Boutilier 1998; Papoudakis et al. 2021, arXiv 2006.07869; Rashid et al. 2018, arXiv 1803.11485",
              config, state, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = dt_no_op),
              .flags = DT_COMP_DETERMINISTIC, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_matrix", "1.0", "dtrain", "Apache-2.0");
