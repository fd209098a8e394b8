/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.rollout/1": collects experience. The host steps all instances of the bound environment with the
 * policy of the phase's trainer, and stores the transitions as a data set for the trainer.
 *
 * A sample is one step of one instance. Its rows of symbol "A" are the agents that were alive; a step without agents is
 * an empty sample. There are instances * steps samples, with index step * instances + instance. Fields:
 *   the environment's observation ports, ragged symbols packed, indices counted over the slice,
 *   rows with steps (DT_PORT_STEPS) step by step; of lists that each agent has of its own ("A+1") row
 *   pointers of the rows of "A" that there are, and the rows of their lists alone: dt_segment_mean of svc/graph.h
 *   gives each agent the mean of its own
 *   action_i      "A heads"       i32  as drawn            (where the environment has discrete actions)
 *   mask          "A choices"     f32  1 where allowed, of all heads one after another                  (the same)
 *   action_f      "A continuous"  f32  as drawn, before squash, bounds and shield   (where it has continuous ones)
 *   log_prob      "A"     f32  of the whole drawn action
 *   value         "A"     f32  of the policy that drew
 *   advantage     "A"     f32  generalised advantage (Schulman et al. 2016), normalised if requested over all rows
 *   target        "A"     f32  advantage before normalisation + value
 *   cost_value, cost_advantage, cost_target  "A costs"  f32  the same for every cost  (where it has costs)
 *   row_key       "A"     i64  names the row in the run: the key of dropout
 * and for every port of desc.carried, state that acting carries from step to step, such as that of a recurrent network;
 * known when an action is chosen
 *   its name      its dims  f32  what acting computed at the agent's step before, as output "carry/NAME"; zeros at its
 *                         first step
 * and with desc.has_last_action, known when an action is chosen, too
 *   last_action   "A P"   f32  what the agent did in the step before, in the form of a critic's action (roles.h); zeros
 *                         at its first step. With window W > 1 also last_action_history "W A P", as P_history
 * and with window W > 1, for every port of dims "A D" named P:
 *   P_history     "W A D" f32  the W observations of the place up to now, zeros before the agent came
 *   present       "W A"   f32  1 where the agent was there
 * and with transitions, for every f32 port P whose rows are agents, whatever its other dims:
 *   next_P        dims of P    what the same agent observes at its next step; zeros where this one ended it
 *   next_present  "A"     f32  0 where this step ended the agent, else 1
 *   cost_in       "A costs" f32  steps until the same agent's first step with this cost: 0 is this one;
 *                         DT_ROLLOUT_NEVER where it was terminated before; -n where all that is known are n steps
 *                         without the cost, this one included: then the round ended, or the agent was truncated
 * and with transitions = 2, for off-policy and multi-agent training:
 *   reward        "A"     f32  of this step, normalised and centred if set in desc
 *   cost          "A costs" f32  the same
 *   terminated    "A"     f32  1: no next step; its value is 0
 *   truncated     "A"     f32  1: the agent continues beyond what is known, and next_P is what a value bootstraps from:
 *                         the episode was cut, the agent left, or the round ended with this step
 *   executed      "A continuous" f32  what the environment executed: squashed, within the bounds and the shield
 *   place         "A"     i32  the agent's, 0 .. places - 1; known when an action is chosen
 *   next_mask     "A choices" f32  of the next step, as mask; ones if the environment sets no mask. After a round's
 *   last
 *                         step it is the mask of the environment alone, without the shield
 *   others        "A places*choices" f32  what the other places drew in this step, one-hot; zeros at the agent's own
 *                         place and where no agent acts  (where the environment has one discrete action)
 *   others_f      "A places*continuous" f32  their executed actions, the same
 *   discount      "A"     f32  gamma, 0 where the agent was terminated: the factor of the value of next_P
 *   weight        "A"     f32  1
 *   team_rows     "A places" i32  rows of the agents that act at the places of the same instance, its own among them;
 *                         -1 where none does. dt_gather(x, team_rows) of x [A,D] is [A,places,D], with zeros for -1:
 *                         what a row needs of its team (a mixing network, a mean); known when an action is chosen
 * next_P is then also what an agent saw last that this step truncated, and zeros only of terminated agents;
 * next_present stays as it is.
 * With transitions = 3 what is ragged is of both steps: a sample has its own rows of each symbol, then
 * those of the step after, which no index joins; a model of a graph is shown both at once. Indices of agents' rows
 * point at the first, and of the second
 *   next_P        dims of P    i32, as P; -1 where this step ended the agent
 * Of lists ("A+1") the rows of both steps are parted over the slice, not in each sample: those that P points at, of all
 * samples, and then those that next_P, "A+1" i32 too, points at: what the same agents have in the step after, of those
 * truncated by this one what it saw last, of terminated ones nothing. With other transitions lists are, as all that is
 * ragged, of the sample's own step alone.
 *
 * and for every port of desc.annotation, what the phase has annotate write after a collect; zeros before
 *   its name      its dims  f32
 * and for every port of desc.kept that the phase recorded by kept() of svc/graph.h and that stays the same
 * while the phase learns, because what computes it is frozen: what acting computed, so that no pass computes it again
 *   its name      its dims  f32
 *
 * Outputs the phase records under these names (graph output), which the host reads to act:
 *   carry/NAME    its dims        for every port of desc.carried: its value at the agent's next step
 *   logits        "A choices"     where there are discrete actions; each head is a softmax over its allowed choices
 *   mean, log_std "A continuous"  where there are continuous actions: independent Gaussians
 *   value         "A"     optional: 0 without it;     cost_value  "A costs"  optional
 *   low, high     "A continuous"  optional: what a shield permits; the environment executes the drawn action clamped
 *                         to it, the phase keeps the drawn one (its probability is the policy's)
 *   allow         "A choices"     optional: > 0 where a shield permits; joined to the mask before drawing. Where it
 *                         forbids everything that the mask leaves, those of that with its greatest value count (since
 *                         1.2; of equal ones, as of zeros, all), and the row is reported as infeasible
 *   picture/risk  "N"     optional: how dangerous it is for each row of the environment's symbol N, as a
 *                         logit. Computed when pictures are made (ext/scene.h: node), and at no other time; so is every
 *                         output whose name begins with picture/
 * Of an environment with several teams the agents of the team that learns are the rows, or of all teams
 * where the configuration has no opponents (section opponents: which policies play the others). What is said of places
 * counts all.
 *
 * With squash u is drawn where actions are, and what is executed is the middle of the environment's bounds
 * + half their width * tanh(u), clamped to low and high; action_f keeps u, log_prob is that of tanh(u) (as
 * dt_squashed_gaussian of svc/graph.h), and the most likely action is that of u = mean. Bounds have to be finite. In an
 * evaluation of a controller that learns nothing, as baselines are, mean is the action itself.
 *
 * Observations are normalised by the statistics of earlier rounds, which are constant during a round and the training
 * on it; the first round is not normalised. Rewards are normalised after a round, by all rounds including it. A
 * checkpoint has the statistics and what is needed to continue the current episodes; save between rounds.
 * Results depend on seed, configuration and parameters, not on the number of workers, threads or ranks. Threads:
 * [main].
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

/* Normalisation of advantages. EACH: reward and every cost to mean 0 and deviation 1; BY_REWARD: costs are divided by
 * the deviation of the reward's advantages, which keeps their ratio. A single row: 0. MEAN: to mean 0 only. */
enum { DT_NORMALISE_NONE = 0, DT_NORMALISE_EACH, DT_NORMALISE_BY_REWARD, DT_NORMALISE_MEAN };

#define DT_ROLLOUT_NEVER 1e6f /* of cost_in */
enum { DT_ROLLOUT_MAX_KEPT = 4, DT_ROLLOUT_MAX_ANNOTATIONS = 8, DT_ROLLOUT_MAX_CARRIED = 4 };

typedef struct dt_rollout_desc {
    uint32_t struct_size;
    uint32_t steps;              /* of every instance per collect */
    uint32_t window;             /* steps of history; 0 or 1: none */
    uint8_t normalise_advantage; /* DT_NORMALISE_*, over all rows of a collect */
    uint8_t normalise_obs;       /* f32 ports of dims "A D": running mean and deviation per column, clipped */
    uint8_t normalise_reward;    /* by the running deviation of the discounted return, clipped */
    uint8_t centre;       /* rewards and costs less their mean over all rows of a collect: what counts is the mean
                                  * per step of a task that continues without end, and gamma may be 1 */
    double gamma, lambda; /* of the reward */
    double cost_gamma, cost_lambda;
    double clip_obs, clip_reward; /* after normalisation; 0: none */
    uint8_t transitions;          /* 1: fields of what comes after a row; 2: and more, 3: ragged too */
    uint8_t reserved[3];
    uint32_t n_kept;     /* at most DT_ROLLOUT_MAX_KEPT */
    const dt_port *kept; /* of dims "A D", f32; copied */
    uint8_t has_ahead;   /* room for ahead */
    uint8_t squash;      /* continuous actions are squashed Gaussians, see above */
    uint8_t reserved_end[2];
    uint32_t n_annotations;    /* at most DT_ROLLOUT_MAX_ANNOTATIONS */
    const dt_port *annotation; /* of dims "A D", f32; copied */
    uint32_t n_carried;        /* at most DT_ROLLOUT_MAX_CARRIED */
    uint8_t has_last_action;   /* 1: fields last_action and last_action_history */
    uint8_t reserved_last[3];
    const dt_port *carried; /* of dims "A D", f32; copied. Checkpoints have their values; evaluations begin with zeros.
                             * Not together with opponents (DT_EUNSUPPORTED) */
} dt_rollout_desc;

typedef struct
    dt_rollout_report { /* of one collect or evaluate; means over finished episodes, NAN where there are none;
                         * deviations (_std) NAN where there are fewer than two */
    uint32_t struct_size, n_costs, n_metrics, reserved;
    uint64_t env_steps;                        /* steps of instances, resets not counted */
    uint64_t agent_steps;                      /* rows */
    uint64_t episodes;                         /* finished; of collect those in which an agent acted */
    double episode_return, episode_return_std; /* sum over agents of the raw reward; not of opponents */
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
    /* The data set that collect fills, for dt_train_desc.data. */
    dt_data *(*data)(dt_rollout *r);
    /* [collective] One round of experience with the trainer's parameters; the trainer's next step reads it. Errors:
     * DT_EPLUGIN (an environment broke its contract), those of environments. */
    dt_status (*collect)(dt_rollout *r, dt_train *t, dt_rollout_report *out);
    /* [collective] `episodes` whole episodes per seed, the first one reset with the seed itself, on instances of their
     * own, actions drawn or the most likely ones; leaves collected data and running statistics as they are.
     * out[n_seeds]. */
    dt_status (*evaluate)(dt_rollout *r, dt_train *t, const uint64_t *seed, uint32_t n_seeds, uint32_t episodes,
                          uint8_t greedy, dt_rollout_report *out);
    /* [collective] evaluate on the seeds and episodes of section evaluation, and report the result (svc/metrics.h). */
    dt_status (*report)(dt_rollout *r, dt_train *t);
    /* [collective] with desc.has_ahead, after a collect and before the next one: begins the next round,
     * with the parameters as they are now, while the caller learns from the last one: on threads of its own, on a
     * device by turns after each of the trainer's steps. The next collect waits for it and hands it out: its log_prob,
     * value and kept are those of the parameters that acted. A checkpoint in between keeps these, and the round is
     * played again. Errors: DT_EPLUGIN, DT_EUNSUPPORTED (no
     * thread). */
    dt_status (*collect_ahead)(dt_rollout *r, dt_train *t);
    /* [collective] after a collect: the rows of desc.annotation called name, [n_rows, D]; the trainer's next
     * steps read them. Rows come in the order in which an evaluation over the data shows them, samples in order and
     * their agents by place; every rank gives all of them. Errors: DT_ENOTFOUND (no such annotation), DT_EINVAL (not as
     * many rows as the round has), DT_EDIVERGED (not finite), DT_EPLUGIN (before the first collect). */
    dt_status (*annotate)(dt_rollout *r, const char *name, const float *rows, uint64_t n_rows);
    /* TD(lambda) returns of values that are given per row, in the same order (Sutton and Barto 2018, eq.
     * 12.20): y = r + gamma ((1 - lambda) v' + lambda y') with the reward r used for learning, v' and y' of the
     * agent's next row. r alone where the agent was terminated; r + gamma next_value where it was truncated and where
     * the round ends. next_value may be NULL, which is 0. Errors: as annotate. */
    dt_status (*returns)(dt_rollout *r, const float *value, const float *next_value, double gamma, double lambda,
                         float *out, uint64_t n_rows);
} dt_rollout_api;

#ifdef __cplusplus
}
#endif
#endif
