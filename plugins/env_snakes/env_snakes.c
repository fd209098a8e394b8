/* SPDX-License-Identifier: Apache-2.0
 *
 * env_snakes: the 3v3 snakes game (board.h). Three agents are the snakes of one team; the other team plays by a rule
 * (rivals.h). The game lasts max_steps steps; the winner is the team whose snakes have grown more.
 *
 * With self_play there are three more places, of team 1: the snakes of the other team, which see and earn the same from
 * their side. They have agents in that share of a training's games, by the seed; in the others a rule plays as before.
 *
 *   obs      "A D" f32     observe.h, by option features
 *   advice   "A 24" f32    only with advice: what each rule would do in this place, four columns a rule, in their order
 *   action   0 up, 1 down, 2 left, 3 right; backwards becomes one of the three others at random, or is masked
 *   reward   the sum of the terms whose weight is not 0, see the options
 *   end      terminated after max_steps, or when a snake finds no room to come back
 *   metrics  score and rival_score (summed growth of the snakes), win, loss (neither: a draw), deaths and
 *            rival_deaths, beans (eaten), snake_length (mean of the three at the end), rival (number of the rule, or
 *            after the last one: agents); all of team 0
 *
 * In training the rule can follow a schedule over the episodes of an instance (schedule.h).
 *
 * Chance: the game has stream 0 of the episode's seed, a random rival 1, random advice 2, the side 3, self-play 4.
 */
#include "observe.h"
#include "rivals.h"
#include "scene.h"
#include "schedule.h"

#include "dtrain/helpers.h"

#include <math.h>

enum { STREAM_RIVAL = 1, STREAM_ADVICE, STREAM_SIDE, STREAM_SELF };
enum { SIDE_FIRST, SIDE_SECOND, SIDE_RANDOM };
enum { ADVICE = RIVALS * CELLS_DIRECTIONS, DIMS_TEXT = 24 };
enum { SCORE, RIVAL_SCORE, WIN, LOSS, DEATHS, RIVAL_DEATHS, BEANS, SNAKE_LENGTH, RIVAL, METRICS };

typedef struct config {
    uint32_t opponent, schedule, side, features;
    uint8_t mask_back, advice, reserved[6];
    int64_t max_steps, view_rows, view_columns, schedule_episodes, evasion_from;
    double reward_own, reward_score, reward_ate, reward_death, reward_alive, reward_distance;
    double reward_win, reward_loss, reward_lead, reward_trail;
    double self_play;
} config;

typedef struct state {
    const dt_host *h;
    config config;
    observe_kind view;
    schedule schedule;
    board board;
    dt_random rival, adviser;
    uint32_t n_teams; /* that agents play */
    uint32_t team;    /* the board's, of the places of team 0 */
    uint32_t rule;    /* of the other one; RIVALS: agents play it */
    uint32_t deaths, rival_deaths, beans;
    char obs_dims[DIMS_TEXT], advice_dims[DIMS_TEXT];
    dt_column column[OBSERVE_MOST_COLUMNS];
    uint32_t n_columns;
    dt_port port[2];
} state;

static const char *const rules[] = {"random", "l1", "l2", "l3", "l4", "evasion", NULL};
static const char *const schedules[] = {"fixed", "linear", "exponential", "curriculum", NULL};
static const char *const sides[] = {"first", "second", "random", NULL};
static const char *const kinds[] = {"numbers26", "numbers30", "planes", "paths", NULL};

#define REWARD(member, dfl, help) DT_OPTION(config, member, DT_OPT_F64, dfl, "1", -1000, 1000, NULL, help)
static const dt_option options[] = {
    DT_OPTION(config, opponent, DT_OPT_ENUM, "l2", NULL, 0, 0, rules,
              "rule that plays the other team; l2 is the greedy one of the original and the strongest"),
    /* evaluations have the opponent that was asked for */
    DT_OPTION_WITH(
        config, schedule, DT_OPT_ENUM, "fixed", NULL, 0, 0, schedules,
        "training: the opponent by the episodes that an instance had (fixed: opponent; linear, exponential: levels "
        "random, "
        "l1, l2, l3, l4; curriculum: random, l1, l3, l4, evasion, l2, by strength)",
        DT_OPT_TRAINING, NULL),
    DT_OPTION(config, schedule_episodes, DT_OPT_I64, "100", "episodes", 1, 1e12, NULL,
              "episodes of an instance until the schedule has its last opponent"),
    DT_OPTION_WITH(
        config, evasion_from, DT_OPT_I64, "-1", "episodes", -1, 1e12, NULL,
        "training: the opponent is evasion from this episode of an instance on (original: 40000 of 50000); -1: never",
        DT_OPT_TRAINING, NULL),
    DT_OPTION_WITH(config, self_play, DT_OPT_F64, "0", "1", 0, 1, NULL,
                   "training: share of games in which the other team is also played by agents: by the policy and its "
                   "snapshots, see "
                   "section opponents",
                   DT_OPT_TRAINING, NULL),
    DT_OPTION(config, side, DT_OPT_ENUM, "first", NULL, 0, 0, sides,
              "team of the agents: the first moves before the second and so wins ties at beans; random: by the seed"),
    DT_OPTION(config, max_steps, DT_OPT_I64, "200", "env steps", 1, 1000000, NULL, "length of a game (original: 200)"),
    DT_OPTION(config, features, DT_OPT_ENUM, "paths", NULL, 0, 0, kinds,
              "observation of a snake: the numbers of the two originals, planes of cells around its head, or paths"),
    DT_OPTION(config, view_rows, DT_OPT_I64, "10", "cells", 1, CELLS_ROWS, NULL,
              "rows that planes show around the head"),
    DT_OPTION(config, view_columns, DT_OPT_I64, "20", "cells", 1, CELLS_COLUMNS, NULL,
              "columns that planes show around the head"),
    DT_OPTION(config, mask_back, DT_OPT_BOOL, "false", NULL, 0, 0, NULL,
              "forbid the action opposite to the heading, which the game would replace by a random one"),
    DT_OPTION(config, advice, DT_OPT_BOOL, "false", NULL, 0, 0, NULL,
              "provide the action of each rule, for controller_snakes, which sets this itself"),
    REWARD(reward_own, "1", "factor of the game's score of the snake: 1 for a bean, minus its growth for a death"),
    REWARD(reward_score, "0", "factor of the change of the team's lead, for each of its snakes"),
    REWARD(reward_ate, "0", "added for a bean that the snake survived (originals: 20 and 30)"),
    REWARD(reward_death, "0", "added for a death, also of a snake of length 3 (originals: -10 and -50)"),
    REWARD(reward_alive, "0", "added for a step without a death (zhizhengzhao/snake: 0.1)"),
    REWARD(reward_distance, "0",
           "factor of the distance to the nearest bean on the torus after a step without a bean (jidi: -1, not on the "
           "torus)"),
    REWARD(reward_win, "0", "added in the last step of a game that was won (originals: 50 and 100)"),
    REWARD(reward_loss, "0", "added in the last step of a game that was lost (originals: -25 and -100)"),
    REWARD(reward_lead, "0", "added in every other step in which the team leads (originals: 10 and 30)"),
    REWARD(reward_trail, "0", "added in every other step in which the team trails (originals: -5 and -30)"),
    DT_OPTION_END};

static dt_status create(void *self, const dt_host *h, const void *cfg)
{
    state *s = self;
    s->h = h;
    s->config = *(const config *)cfg;
    s->view = (observe_kind){.kind = s->config.features,
                             .rows = (uint32_t)s->config.view_rows,
                             .columns = (uint32_t)s->config.view_columns,
                             .max_steps = (uint32_t)s->config.max_steps};
    s->n_teams = s->config.self_play > 0 ? 2 : 1;
    s->schedule = (schedule){.kind = s->config.schedule,
                             .rule = s->config.opponent,
                             .episodes = (uint64_t)s->config.schedule_episodes,
                             .evasion_from = s->config.evasion_from};
    snprintf(s->obs_dims, sizeof(s->obs_dims), "A %u", observe_width(&s->view));
    snprintf(s->advice_dims, sizeof(s->advice_dims), "A %d", ADVICE);
    s->port[0] = (dt_port){"obs", s->obs_dims, DT_F32, 0};
    s->port[1] = (dt_port){"advice", s->advice_dims, DT_F32, 0};
    s->n_columns = observe_describe(&s->view, s->column);
    if (s->config.advice) {
        s->column[s->n_columns++] =
            (dt_column){"advice", "rule", "0 or 1", "action of each rule, one-hot", 0, 1, 0, ADVICE, 1, 0};
    }
    return DT_OK;
}

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const int32_t choices[] = {CELLS_DIRECTIONS};
    static const char *const metrics[METRICS] = {"score",        "rival_score", "win",          "loss", "deaths",
                                                 "rival_deaths", "beans",       "snake_length", "rival"};
    static const uint32_t team[BOARD_SNAKES] = {0, 0, 0, 1, 1, 1};
    const state *s = self;
    out->n_agents = s->n_teams * BOARD_TEAM;
    if (s->n_teams > 1) {
        out->team = team;
    }
    out->obs = s->port;
    out->n_obs = s->config.advice ? 2 : 1;
    out->choices = choices;
    out->n_heads = 1;
    out->metrics = metrics;
    out->n_metrics = METRICS;
    out->max_steps = (uint32_t)s->config.max_steps;
    out->columns = s->column;
    out->n_columns = s->n_columns;
    return DT_OK;
}

/* ---- what agents see --------------------------------------------------------------------------------------------- */

static void write_advice(state *s, uint32_t team, float *out)
{
    for (uint32_t rule = 0; rule < RIVALS; rule++) {
        uint8_t action[BOARD_TEAM];
        rival_act(rule, &s->board, team, &s->adviser, action);
        for (uint32_t i = 0; i < BOARD_TEAM; i++) {
            out[i * ADVICE + rule * CELLS_DIRECTIONS + action[i]] = 1;
        }
    }
}

/* Teams that agents play in this game: places of team k are those of the board's team_of(k). */
static uint32_t count_played_teams(const state *s)
{
    return s->rule == RIVALS ? 2 : 1;
}

static uint32_t agent_team(const state *s, uint32_t k)
{
    return k == 0 ? s->team : 1 - s->team;
}

static void observe(state *s, const dt_env_io *io, bool is_over)
{
    for (uint32_t k = 0; k < count_played_teams(s); k++) {
        const uint32_t team = agent_team(s, k), first = k * BOARD_TEAM;
        observe_team(&s->view, &s->board, team, (float *)io->obs[0] + (size_t)first * observe_width(&s->view));
        if (s->config.advice && !is_over) { /* of the last board no rule requires: a snake may have found no room */
            write_advice(s, team, (float *)io->obs[1] + (size_t)first * ADVICE);
        }
        for (uint32_t i = 0; i < BOARD_TEAM; i++) {
            const board_snake *snake = &s->board.snake[team * BOARD_TEAM + i];
            io->alive[first + i] = !is_over;
            if (s->config.mask_back && !is_over) {
                io->mask[(first + i) * CELLS_DIRECTIONS + cells_opposite(snake->direction)] = 0;
            }
        }
    }
}

/* By a number of its own, so that a game that a rule plays is the same whatever the share. */
static bool is_against_itself(const state *s, uint64_t seed)
{
    dt_random draw;
    dt_random_init(&draw, seed, STREAM_SELF);
    return dt_random_uniform(&draw) < s->config.self_play;
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    dt_random side;
    dt_random_init(&side, seed, STREAM_SIDE);
    dt_random_init(&s->rival, seed, STREAM_RIVAL);
    dt_random_init(&s->adviser, seed, STREAM_ADVICE);
    s->team = s->config.side == SIDE_RANDOM ? dt_random_below(&side, 2) : s->config.side == SIDE_SECOND;
    s->rule = schedule_rule(&s->schedule, io->episode);
    s->rule = is_against_itself(s, seed) ? RIVALS : s->rule;
    s->deaths = s->rival_deaths = s->beans = 0;
    board_begin(&s->board, seed);
    observe(s, io, false);
    return DT_OK;
}

/* ---- what they earn ---------------------------------------------------------------------------------------------- */

static int32_t lead_of_team(const state *s, uint32_t team)
{
    return board_team_score(&s->board, team) - board_team_score(&s->board, 1 - team);
}

/* The original gives a living snake its punishment and a dead one its prize (get_reward of zhizhengzhao/snake computes
 * reward < 0, which only the dead have, where it means the living), and does not see deaths of length 3. Both are right
 * here, and distances are those of the torus. */
static double reward_of_snake(const state *s, uint32_t snake, int32_t lead_before, bool is_over)
{
    const config *c = &s->config;
    const int32_t now = lead_of_team(s, snake / BOARD_TEAM), own = s->board.reward[snake];
    const bool died = (s->board.died >> snake & 1) != 0;
    double r = c->reward_own * own + c->reward_score * (now - lead_before);
    r += died ? c->reward_death : c->reward_alive;
    if (own > 0) {
        r += c->reward_ate;
    } else if (c->reward_distance != 0) {
        r += c->reward_distance * observe_bean_distance(&s->board, board_head(&s->board.snake[snake]));
    }
    if (now > 0) {
        r += is_over ? c->reward_win : c->reward_lead;
    } else if (now < 0) {
        r += is_over ? c->reward_loss : c->reward_trail;
    }
    return r;
}

static uint32_t mask_of_team(uint32_t bits, uint32_t team)
{
    return (uint32_t)__builtin_popcount(bits >> team * BOARD_TEAM & 7);
}

static void write_metrics(const state *s, double *metric)
{
    const board_snake *own = &s->board.snake[s->team * BOARD_TEAM];
    metric[SCORE] = board_team_score(&s->board, s->team);
    metric[RIVAL_SCORE] = board_team_score(&s->board, 1 - s->team);
    metric[WIN] = lead_of_team(s, s->team) > 0;
    metric[LOSS] = lead_of_team(s, s->team) < 0;
    metric[DEATHS] = s->deaths;
    metric[RIVAL_DEATHS] = s->rival_deaths;
    metric[BEANS] = s->beans;
    metric[SNAKE_LENGTH] = (own[0].length + own[1].length + own[2].length) / 3.0;
    metric[RIVAL] = s->rule;
}

static dt_status take_actions(const state *s, const dt_env_io *io, uint8_t action[BOARD_SNAKES])
{
    for (uint32_t k = 0; k < count_played_teams(s); k++) {
        for (uint32_t i = 0; i < BOARD_TEAM; i++) {
            const int32_t a = io->act_i[k * BOARD_TEAM + i];
            if (a < 0 || a >= CELLS_DIRECTIONS) {
                return DT_FAIL_H(s->h, DT_EINVAL,
                                 "action %d of snake %u, expected 0 (up), 1 (down), 2 (left) or 3 (right)", a,
                                 k * BOARD_TEAM + i);
            }
            action[agent_team(s, k) * BOARD_TEAM + i] = (uint8_t)a;
        }
    }
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    uint8_t action[BOARD_SNAKES];
    DT_TRY_H(take_actions(s, io, action));
    const int32_t lead_before = lead_of_team(s, s->team);
    if (count_played_teams(s) == 1) {
        rival_act(s->rule, &s->board, 1 - s->team, &s->rival, action + (size_t)(1 - s->team) * BOARD_TEAM);
    }
    board_step(&s->board, action, NULL);
    s->deaths += mask_of_team(s->board.died, s->team);
    s->rival_deaths += mask_of_team(s->board.died, 1 - s->team);
    s->beans += mask_of_team(s->board.ate, s->team);
    const bool is_over = s->board.is_over || s->board.step >= s->config.max_steps;
    for (uint32_t i = 0; i < count_played_teams(s) * BOARD_TEAM; i++) {
        const uint32_t k = i / BOARD_TEAM, snake = agent_team(s, k) * BOARD_TEAM + i % BOARD_TEAM;
        io->reward[i] = (float)reward_of_snake(s, snake, k == 0 ? lead_before : -lead_before, is_over);
        io->terminated[i] = is_over;
    }
    observe(s, io, is_over);
    if (!is_over) {
        return DT_OK;
    }
    write_metrics(s, io->metric);
    return DT_DONE;
}

/* ---- the plugin -------------------------------------------------------------------------------------------------- */

static void draw_scene(const void *self, dt_scene *out)
{
    const state *s = self;
    scene_draw(&s->board, s->team, out);
}

static const dt_scene_api scene = {
    .struct_size = sizeof(dt_scene_api), .roads = snakes_scene_roads, .capture = draw_scene};

static const char *const results[] = {"metrics/score||pieces|higher|growth of the team",
                                      "metrics/rival_score||pieces|lower|growth of the other team",
                                      "metrics/win||share of games|higher|won",
                                      "metrics/loss||share of games|lower|lost",
                                      "metrics/deaths||snakes|lower|of the team",
                                      "metrics/rival_deaths||snakes|higher|of the other team",
                                      NULL};

static const void *extension(const char *id)
{
    static const char *const baselines[] = {"controller_snakes", NULL};
    static const char *const program[] = {"advice=true", NULL};
    if (strcmp(id, DT_EXT_SCENE) == 0) {
        return &scene;
    }
    if (strcmp(id, DT_EXT_PROGRAM) == 0) {
        return program;
    }
    if (strcmp(id, DT_EXT_RESULTS) == 0) {
        return results;
    }
    return strcmp(id, DT_EXT_BASELINES) == 0 ? baselines : NULL;
}

DT_ENV_DEFINE(component, "env_snakes", "3v3 snakes: grow more than the other team",
              "jidiai/Competition_3v3snakes; zhizhengzhao/snake", config, state, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = dt_no_op),
              .flags = DT_COMP_DETERMINISTIC, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_snakes", "1.0", "dtrain", "Apache-2.0");
