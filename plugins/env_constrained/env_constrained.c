/* SPDX-License-Identifier: Apache-2.0
 *
 * env_constrained: four small problems whose best policy under a limit is known exactly, one agent. They show whether
 * an algorithm for constrained problems finds the optimum and its multiplier, or only something under the limit. Each
 * is the classic of its kind (Altman 1999, Constrained Markov Decision Processes).
 *
 *   problem   cost       limit    the most reward under it    multiplier    best policy
 *   bandit    price      0.6      0.84                        0.4           0, 0.8, 0.2 for the three arms
 *   detour    shortcuts  0.25     0.79675                     0.271         shortcut in a quarter of the episodes
 *   queue     waiting    1        14/47 = 0.29787234          8/47          admit at 0, at 1 by 16/23, never above
 *   lqr       effort     0.2      -1.52953953                 3.68953013    u = -0.36160518 x
 *
 * An episode's sums are what a phase limits. Those of bandit and detour are as above; queue and lqr are about means per
 * step, so that their limits are 1 and 0.2 times `steps`, and so is the reward. The multiplier is the same either way.
 *
 *   bandit  Arms 0, 1, 2 earn 0, 0.8, 1 and cost 0, 0.5, 1. An episode is one pull.          obs "A 1": 1
 *   detour  Action 0 is the shortcut: reward 1 and cost 1 at once. Action 1 begins the detour, which earns 1 three
 *           steps later, without choices (the mask is of action 1 alone) and costs. The reward is evaluated discounted
 *           by gamma = 0.9: p + (1 - p) 0.9^3.                                                  obs "A 4": where,
 *           one-hot
 *   queue   Up to 5 customers. In a step the first one is done with probability 0.4; then with probability 0.5 another
 *           comes, entering (reward 1) if action 1, decided on the queue before the step, admits; a full queue admits
 *           none (mask). The cost is the length after the step.                             obs "A 6": length, one-hot
 *   lqr     x' = 0.95 x + u + w, w normal(0, 1); reward -x'^2, cost u^2, u without bounds.  obs "A 1": x
 *
 * Episodes of queue and lqr are truncated after `steps` and start as the best policy's long run is distributed: 12, 23
 * and 12 of 47 for lengths 0, 1, 2; normal(0, 1.52953953). So the mean of an episode under it is that of its long run.
 *
 *   metrics  reward_rate, cost_rate   means per step of the episode
 */
#include "dtrain/helpers.h"
#include "dtrain/random.h"
#include <stdbool.h>

enum { BANDIT, DETOUR, QUEUE, LQR };
enum { DETOUR_STEPS = 3, QUEUE_MAX = 5, MAX_CHOICES = 3 };
enum { STREAM_START, STREAM_STEPS }; /* of random numbers */
#define QUEUE_DONE   0.4
#define QUEUE_COMES  0.5
#define LQR_KEEPS    0.95
#define LQR_VARIANCE 1.52953953 /* of x under the best policy */

typedef struct config {
    int64_t steps;
    uint32_t problem, reserved;
} config;

typedef struct state {
    const dt_host *h;
    config config;
    dt_random chance;
    int64_t place, step; /* place: on the detour, of the queue */
    double x;            /* lqr */
    double reward, cost; /* sums of the episode */
} state;

static const char *const problems[] = {"bandit", "detour", "queue", "lqr", NULL};

static const dt_option options[] = {
    DT_OPTION(config, problem, DT_OPT_ENUM, "bandit", NULL, 0, 0, problems,
              "bandit: 3 arms; detour: reward now or later; queue: admission, mean per step; lqr: linear-quadratic, "
              "continuous, mean per step"),
    DT_OPTION(config, steps, DT_OPT_I64, "200", "env steps", 1, 1e9, NULL,
              "queue, lqr: length of an episode; their limits and rewards grow with it"),
    DT_OPTION_END};

DT_CREATE_DEFINE(create, state);

static dt_status spec(const void *self, dt_env_spec *out)
{
    static const dt_port obs[][1] = {{{"obs", "A 1", DT_F32, 0}},
                                     {{"obs", "A 4", DT_F32, 0}},
                                     {{"obs", "A 6", DT_F32, 0}},
                                     {{"obs", "A 1", DT_F32, 0}}};
    static const dt_column columns[] = {{"obs", "state", "0 or 1", "always 1", 0, 1, 0, 1, 1, 0},
                                        {"obs", "place", "0 or 1", "place on the way, one-hot", 0, 1, 0, 4, 1, 0},
                                        {"obs", "length", "0 or 1", "length of the queue, one-hot", 0, 1, 0, 6, 1, 0},
                                        {"obs", "x", "1", "state", -INFINITY, INFINITY, 0, 1, 1, 0}};
    static const int32_t choices[][1] = {{3}, {2}, {2}};
    static const float low[] = {-INFINITY}, high[] = {INFINITY};
    static const char *const costs[][1] = {{"price"}, {"shortcuts"}, {"waiting"}, {"effort"}};
    static const char *const metrics[] = {"reward_rate", "cost_rate"};
    const state *s = self;
    const uint32_t p = s->config.problem;
    const uint32_t longest[] = {1, 1 + DETOUR_STEPS, (uint32_t)s->config.steps, (uint32_t)s->config.steps};
    out->n_agents = 1;
    out->obs = obs[p];
    out->n_obs = 1;
    if (p == LQR) {
        out->low = low;
        out->high = high;
        out->n_continuous = 1;
    } else {
        out->choices = choices[p];
        out->n_heads = 1;
    }
    out->costs = costs[p];
    out->n_costs = 1;
    out->metrics = metrics;
    out->n_metrics = 2;
    out->max_steps = longest[p];
    out->columns = &columns[p];
    out->n_columns = 1;
    return DT_OK;
}

/* What is seen and allowed before the next step. */
static void observe(const state *s, const dt_env_io *io)
{
    float *obs = io->obs[0];
    if (s->config.problem == LQR) {
        obs[0] = (float)s->x;
    } else {
        obs[s->place] = 1.0F;
    }
    if (s->config.problem == DETOUR) {
        io->mask[0] = s->place == 0;
    } else if (s->config.problem == QUEUE) {
        io->mask[1] = s->place < QUEUE_MAX;
    }
}

static dt_status reset(void *self, const dt_env_io *io, uint64_t seed)
{
    state *s = self;
    dt_random start;
    dt_random_init(&start, seed, STREAM_START);
    dt_random_init(&s->chance, seed, STREAM_STEPS);
    s->place = s->step = 0;
    s->x = s->reward = s->cost = 0;
    if (s->config.problem == QUEUE) {
        const uint32_t of_47 = dt_random_below(&start, 47);
        s->place = (of_47 >= 12) + (of_47 >= 12 + 23);
    } else if (s->config.problem == LQR) {
        s->x = sqrt(LQR_VARIANCE) * dt_random_normal(&start);
    }
    io->alive[0] = 1;
    observe(s, io);
    return DT_OK;
}

/* ---- a step of each: what it earns and costs; true: the episode ends by itself ----------------------------------- */

static bool pull_arm(int32_t arm, const dt_env_io *io)
{
    static const float reward[] = {0, 0.8F, 1}, cost[] = {0, 0.5F, 1};
    io->reward[0] = reward[arm];
    io->cost[0] = cost[arm];
    return true;
}

static bool walk_cell(state *s, int32_t action, const dt_env_io *io)
{
    const bool is_short = s->place == 0 && action == 0;
    const bool is_there = is_short || s->place == DETOUR_STEPS;
    io->reward[0] = is_there;
    io->cost[0] = is_short;
    if (!is_there) {
        s->place++;
    }
    return is_there;
}

static bool serve_queue(state *s, int32_t admits, const dt_env_io *io)
{
    const bool is_done = dt_random_uniform(&s->chance) < QUEUE_DONE;
    const bool comes = dt_random_uniform(&s->chance) < QUEUE_COMES;
    const bool enters = comes && admits != 0;
    s->place += enters - (is_done && s->place > 0);
    io->reward[0] = enters;
    io->cost[0] = (float)s->place;
    return false;
}

static bool push_mass(state *s, double u, const dt_env_io *io)
{
    s->x = LQR_KEEPS * s->x + u + dt_random_normal(&s->chance);
    io->reward[0] = (float)-(s->x * s->x);
    io->cost[0] = (float)(u * u);
    return false;
}

static dt_status act_by_task(state *s, const dt_env_io *io, bool *ends_p)
{
    static const int32_t n_choices[] = {3, 2, 2};
    const uint32_t p = s->config.problem;
    if (p == LQR) {
        if (!isfinite(io->act_f[0])) {
            return DT_FAIL_H(s->h, DT_EINVAL, "action %g, expected a finite number", (double)io->act_f[0]);
        }
        *ends_p = push_mass(s, (double)io->act_f[0], io);
        return DT_OK;
    }
    const int32_t action = io->act_i[0];
    const bool is_masked = p == DETOUR ? s->place > 0 && action == 0 : p == QUEUE && s->place == QUEUE_MAX && action;
    if (action < 0 || action >= n_choices[p] || is_masked) {
        return DT_FAIL_H(s->h, DT_EINVAL, "action %d, expected 0 to %d, and one that the mask allows", action,
                         n_choices[p] - 1);
    }
    *ends_p = p == BANDIT ? pull_arm(action, io) : p == DETOUR ? walk_cell(s, action, io) : serve_queue(s, action, io);
    return DT_OK;
}

static dt_status step(void *self, const dt_env_io *io)
{
    state *s = self;
    bool ends = false;
    DT_TRY_H(act_by_task(s, io, &ends));
    s->step++;
    s->reward += (double)io->reward[0];
    s->cost += (double)io->cost[0];
    io->terminated[0] = ends;
    io->truncated[0] = s->config.problem >= QUEUE && s->step >= s->config.steps;
    io->alive[0] = !io->terminated[0] && !io->truncated[0];
    observe(s, io);
    io->metric[0] = s->reward / (double)s->step;
    io->metric[1] = s->cost / (double)s->step;
    return io->alive[0] ? DT_OK : DT_DONE;
}

DT_RESULTS_DEFINE(extension, "metrics/reward_rate|||higher|reward of a step, mean",
                  "metrics/cost_rate|||lower|cost of a step, mean");

DT_ENV_DEFINE(component, "env_constrained", "small problems under a limit whose solution is known exactly",
              "Altman 1999, Constrained Markov Decision Processes", config, state, options,
              DT_OPS(.create = create, .spec = spec, .reset = reset, .step = step, .destroy = dt_no_op),
              .flags = DT_COMP_DETERMINISTIC, .extension = extension);

DT_PLUGIN_DEFINE_ONE(component, "env_constrained", "1.0", "dtrain", "Apache-2.0");
