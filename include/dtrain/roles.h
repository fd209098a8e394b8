/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape letters used in every comment and port of dtrain, and the ports of the model roles that any environment can
 * have. Roles and observations of traffic: traffic/ports.h.
 *
 *   B samples (scenes) in a micro-batch   N node rows   E edges   S sequences   T time steps of history
 *   F steps of future   D features   H hidden   K costs
 *   A agents of an environment that act in a step   W steps of observations kept
 *
 * Ragged letters (B, N, E, S, A) have a live size that changes from micro-batch to micro-batch; the others are numbers
 * when a model is wired. Everything is C order, last index fastest; sequences are time-major [T,S,...].
 *
 * A model declares the inputs it needs from these (by name) and all outputs.
 *
 * controller   in   obs        "A D"    f32  what each agent observes, normalised if the phase does so
 *                   or, where the environment has no such row, its first image, as under its own name
 *                   obs_history "W A D" f32  the last W observations of each agent, the current one last; zeros before
 *                                            the agent appeared. Offered where W > 1
 *                   present    "W A"    f32  1 where the agent was there, else 0. Offered where W > 1
 *                   and the other observations of the environment under their own names and dims
 *              dims D, W, "choices" of all discrete actions together, "continuous" actions, K; 0 where there are none;
 *                   and the columns (last number of dims) of each other observation under its name; of an image X,
 *                   "A n1 n2" u8 or "A n1 n2 n3" u8 or f32, also X_dim1, X_dim2, ... and X_bytes, 1 (u8) or 4 (f32),
 *                   and D is 0 where obs is one; "values" 0 where value is not needed; "spread" 1 where log_std must
 *                   depend on the observation; "squashed" 1 where the phase applies tanh to mean
 *              out  value      "A"      f32  expected return
 *                   logits     "A choices"     f32  where there are choices: of every discrete action one after another
 *                   mean, log_std "A continuous" f32  where there are continuous actions: independent Gaussians
 *                   cost_value "A K"    f32  expected returns of the costs, where there are any
 *
 * critic       in   obs, and the other observations that have a row of numbers per agent, as for controllers
 *                   action     "A P"    f32  the executed action: of each discrete action a column per choice, 1 for
 *                                            the choice taken; continuous ones, -1 at the low bound and 1 at the high
 *                                            one
 *              dims D, P, and Q, the number of estimates; columns of other observations as for controllers
 *              out  q          "A Q"    f32  expected return, estimates that share no parameter
 *
 *              With several agents, in place of action:
 *                   others     "A M"    f32  choices of the other agents, one-hot; M = agents * choices
 *                   state      "G F"    f32  the global state, where the environment has one; agent_state "A" i32: its
 *                                            row that the agent belongs to
 *              dims as for controllers, and "others" M
 *              out  q          "A choices" f32  expected return of each choice of the agent
 *
 * temperature  out  log_alpha  "1"      f32  logarithm of the entropy coefficient
 *
 * shield       in   observations of the environment
 *              dims "choices", "continuous", and the columns of each observation under its name, as for controllers
 *              out  low, high  "A continuous" f32  bounds of the executed action; low is never above high, and where no
 *                                            action is safe both are below the range of the environment
 *                   allow      "A choices" f32  > 0 where a choice is permitted. Infeasible: the action mask permits no
 *                                            such choice; then those with the greatest value remain
 *                   barrier    "A"    f32  learned, > 0 where the state is safe
 */
#ifndef DTRAIN_ROLES_H
#define DTRAIN_ROLES_H
#endif
