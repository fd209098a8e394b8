/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1": experience. The host steps all instances of the bound environment under the policy that
 * the phase's trainer holds, and keeps what happened as a data set that the trainer then learns from.
 *
 * A sample is one instance at one step; its agents that were alive are its rows of symbol "A", so that a step without
 * agents is an empty sample. There are instances * steps samples, in the order step * instances + instance. Fields:
 *   the environment's observation ports, ragged symbols packed, indices counted over the slice,
 *   rows with steps (DT_PORT_STEPS) step by step
 *   action_i      "A heads"       i32  as drawn            (where the environment has discrete actions)
 *   mask          "A choices"     f32  1 where allowed, of all heads one after another                  (the same)
 *   action_f      "A continuous"  f32  as drawn, before bounds and shield           (where it has continuous ones)
 *   log_prob      "A"     f32  of the whole drawn action
 *   value         "A"     f32  of the policy that drew
 *   advantage     "A"     f32  generalised advantage (Schulman et al. 2016), normalised if wanted over all rows
 *   target        "A"     f32  advantage before normalisation + value
 *   cost_value, cost_advantage, cost_target  "A costs"  f32  the same for every cost  (where it has costs)
 *   row_key       "A"     i64  names the row in the run: the key of dropout
 * and with window W > 1, for every port of dims "A D" named P:
 *   P_history     "W A D" f32  the W observations of the place up to now, zeros before the agent came
 *   present       "W A"   f32  1 where the agent was there
 * and with transitions (since 1.1), for every f32 port P whose rows are agents, whatever its other dims:
 *   next_P        dims of P    what the same agent observes at its next step; zeros where this one ended it
 *   next_present  "A"     f32  0 where this step ended the agent, else 1
 *   cost_in       "A costs" f32  steps until the same agent's first step with this cost: 0 is this one;
 *                         DT_ROLLOUT_NEVER where it was terminated before; -n where all that is known are n steps
 *                         without the cost, this one included: then the round ended, or the agent was truncated
 *
 * and (since 1.1) for every port of desc.kept that the phase recorded by kept() of svc/graph.h and that stays the same
 * while the phase learns, because what computes it is frozen: what acting computed, so that no pass computes it again
 *   its name      its dims  f32
 *
 * Outputs the phase records under these names (graph output), which the host reads to act:
 *   logits        "A choices"     where there are discrete actions; each head is a softmax over its allowed choices
 *   mean, log_std "A continuous"  where there are continuous actions: independent Gaussians
 *   value         "A"     optional: 0 without it;     cost_value  "A costs"  optional
 *   low, high     "A continuous"  optional: what a shield permits; the environment executes the drawn action clamped
 *                         to it, the phase keeps the drawn one (its probability is the policy's)
 *   allow         "A choices"     optional: > 0 where a shield permits; joined to the mask before drawing. Where it
 *                         forbids everything the mask alone counts, and the row is reported as infeasible
 *   picture/risk  "N"     optional, since 1.1: how dangerous it is for each row of the environment's symbol N, as a
 *                         logit. Computed when pictures are made (ext/scene.h: node), and at no other time; so is every
 *                         output whose name begins with picture/
 * Observations are normalised by the statistics of the rounds before, held still during a round and the learning from
 * it; the first round sees them as they are. Rewards are normalised after a round, by all rounds with it.
 * A checkpoint keeps the statistics and what it takes to go on with the episodes being played; save between rounds.
 * Results depend on seed, configuration and parameters, not on workers, threads or ranks. Threads: [main].
 */
#ifndef DTRAIN_SVC_ROLLOUT_H
#define DTRAIN_SVC_ROLLOUT_H

#include "dtrain/plugin.h"
#include "dtrain/svc/bind.h"
#include "dtrain/svc/train.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SVC_ROLLOUT "dtrain.rollout/1"

typedef struct dt_rollout dt_rollout;

/* Advantages to mean 0 and deviation 1: reward and costs each for itself, or (since 1.1) those of costs by the reward's
 * deviation, so that weights between them keep their meaning; a single row is nothing to measure by: all 0. Since 1.1
 * also to mean 0 alone, in their own units. */
enum { DT_NORMALISE_NONE = 0, DT_NORMALISE_EACH, DT_NORMALISE_ALIKE, DT_NORMALISE_MEAN };

#define DT_ROLLOUT_NEVER 1e6f /* of cost_in */
enum { DT_ROLLOUT_MAX_KEPT = 4 };

typedef struct dt_rollout_desc {
    uint32_t struct_size;
    uint32_t steps;              /* of every instance per collect */
    uint32_t window;             /* steps of history; 0 or 1: none */
    uint8_t normalise_advantage; /* DT_NORMALISE_*, over all rows of a collect */
    uint8_t normalise_obs;       /* f32 ports of dims "A D": running mean and deviation per column, clipped */
    uint8_t normalise_reward;    /* by the running deviation of the discounted return, clipped */
    uint8_t centre;       /* rewards and costs less their mean over all rows of a collect: what counts is the mean
                                  * per step of a task that goes on for ever, and gamma may be 1 */
    double gamma, lambda; /* of the reward */
    double cost_gamma, cost_lambda;
    double clip_obs, clip_reward; /* after normalisation; 0: none */
    uint8_t transitions;          /* since 1.1: fields of what comes after a row */
    uint8_t reserved[3];
    uint32_t n_kept;     /* since 1.1, at most DT_ROLLOUT_MAX_KEPT */
    const dt_port *kept; /* since 1.1: of dims "A D", f32; copied */
} dt_rollout_desc;

typedef struct
    dt_rollout_report { /* of one collect or evaluate; means over finished episodes, NAN where there are none */
    uint32_t struct_size, n_costs, n_metrics, reserved;
    uint64_t env_steps;                        /* steps of instances, resets not counted */
    uint64_t agent_steps;                      /* rows */
    uint64_t episodes;                         /* finished */
    double episode_return, episode_return_std; /* sum over agents of the raw reward */
    double episode_length;
    double episode_cost[DT_ENV_MAX_COSTS], episode_cost_std[DT_ENV_MAX_COSTS];
    double metric[DT_ENV_MAX_METRICS], metric_std[DT_ENV_MAX_METRICS];
    double explained_variance; /* 1 - var(target - value) / var(target); of collect */
    double interventions;      /* share of rows whose action the shield changed, or whose drawn choices it cut */
    double infeasible;         /* share of rows for which the shield permitted nothing */
    double env_s, policy_s, wait_s, total_s; /* where the time went: environments (worker time), policy, waiting */
    /* of collect: deviation of the advantages of all rows before they were normalised, of the reward and every cost */
    double advantage_std, cost_advantage_std[DT_ENV_MAX_COSTS];
} dt_rollout_report;

typedef struct dt_rollout_api {
    uint32_t struct_size, reserved;
    /* In create. The host destroys it with the phase. Errors: DT_ECONFIG, DT_ENOMEM. */
    dt_status (*create)(const dt_host *h, dt_env *env, const dt_rollout_desc *d, dt_rollout **out);
    /* What collect fills: for dt_train_desc.data. */
    dt_data *(*data)(dt_rollout *r);
    /* [collective] One round of experience with the trainer's parameters; the trainer's next step reads it. Errors:
     * DT_EPLUGIN (an environment answered nonsense), what environments say. */
    dt_status (*collect)(dt_rollout *r, dt_train *t, dt_rollout_report *out);
    /* [collective] `episodes` whole episodes per seed, the first one reset with the seed itself, on instances of their
     * own, actions drawn or the most likely ones; leaves collected data and running statistics as they are.
     * out[n_seeds]. */
    dt_status (*evaluate)(dt_rollout *r, dt_train *t, const uint64_t *seed, uint32_t n_seeds, uint32_t episodes,
                          uint8_t greedy, dt_rollout_report *out);
    /* [collective] evaluate on the seeds and episodes of section evaluation, and report the result (svc/metrics.h). */
    dt_status (*report)(dt_rollout *r, dt_train *t);
} dt_rollout_api;

#ifdef __cplusplus
}
#endif
#endif
