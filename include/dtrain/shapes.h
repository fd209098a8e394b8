/* SPDX-License-Identifier: Apache-2.0
 *
 * The legend of shape letters used in every comment and port of dtrain, and the ports of the model roles.
 *
 *   B samples (scenes) in a slice   N node rows (vehicles of all frames)   E edges    S sequences (one per vehicle)
 *   T time steps of history         F steps of future                      D features H hidden     K costs
 *   A agents of an environment that act in a step                          W steps of observations kept
 *
 * Ragged letters (B, N, E, S, A) have a live size that changes from slice to slice; the others are numbers
 * when a model is wired. Everything is C order, last index fastest; sequences are time-major [T,S,...].
 *
 * Ports that phases offer and want, by role. A model declares the inputs it needs from these (by name) and all outputs.
 *
 * perception   in   nodes      "N 9"    f32  x y speed accel sin cos length stop controlled, normalised by the data
 *                                            component
 *                   rowptr     "N+1"    i32  CSR by target: edges of target i are rowptr[i] .. rowptr[i+1]-1
 *                   col        "E"      i32  source node row of each edge; each target lists itself first
 *                   edges      "E 4"    f32  longitudinal gap, lateral offset, closing speed, inverse time to collision
 *                   row_key    "N"      i64  key of dropout; without it, as in phases of a policy, whose
                                            probabilities dropout would blur, nothing is left out
 *              out  embedding  "N H"    f32
 *                   risk       "N"      f32  logit of the risk label
 *
 *                   Phases of a policy feed nodes and edges scaled as the data component scales them
 *                   (traffic/features.h)
 *              constants (of models that are normalised by recordings): node_shift "9", node_scale "9",
 *                   edge_shift "4", edge_scale "4", under constant.: what is read becomes (x + shift) scale; shift 0
 *                   and scale 1 before phase 1 has fitted them (dtrain/normalise.h). Whether it has, the scale of
 *                   accelerations tells, which is never 1 then
 *
 * world        in   history    "T S H"  f32  embeddings of each vehicle over time, zeros where absent; of recordings
 *                   latest     "S H"    f32  of the last step alone
 *                   motion     "T S 6"  f32  x y cos sin speed accel in the vehicle's frame at the last history step
 *                                            (origin: its position, x axis: its heading), m, m/s, m/s^2; x is ahead of
 *                                            where the last step's speed, held all along, would have had it
 *                   present    "T S"    f32  1 where the vehicle was recorded, else 0
 *                   seq_key    "S"      i64  key of dropout; without it nothing is left out
 *                   lane       "S R"    f32  what it sees of its lane, see below. Offered where roads are known
 *                   path       "S P 4"  f32  where its lane leads, in the frame of motion: row 0 has 0 0 and the unit
 *                                            vector to the left of the lane at the vehicle, row k the way of the k-th
 *                                            piece of 4 m, and how that vector changes along it; shifted aside by the
 *                                            vehicle's offset, so that it begins at the vehicle. Offered with lane
 *              dims H (0: there is no perception), T, F, and the step "dt_ms" between two steps; where roads are known
 *                   also R and P
 *              out  future     "S F 2"  f32  predicted positions in that frame, m
 *                   spread     "S F 2"  f32  log of the standard deviation, log m
 *                   and, of models that tell several futures (k, a number), which future and spread sum up as their
 *                   mean and deviation:
 *                   futures    "S k F 2" f32  predicted positions
 *                   spreads    "S k F 2" f32  log of their deviations, log m
 *                   probability "S k"   f32  of each, they sum to 1
 *                   and, of models that can be calibrated: temperature "2F" f32, a parameter of theirs that is part of
 *                   spread and spreads as it is, for x and y of each step; and, beside it regions "150" f32,
 *                   another parameter, 0 before it is fitted: logarithms of how much further than a Gaussian's the
 *                   regions of future and spread reach, by class of vehicle (at most 0.5 m/s; faster, below 1 m/s^2;
 *                   faster, 1 m/s^2 or more either way), second 1 to 5, and level 0.1 to 0.9 and 0.95, C order
 *
 * controller   in   obs        "A D"    f32  what each agent observes, normalised if the phase does so
 *                   obs_history "W A D" f32  the last W observations of each agent, the present one last; zeros before
 *                                            it came. Offered where W > 1
 *                   present    "W A"    f32  1 where the agent was there, else 0. Offered where W > 1
 *                   and the other observations of the environment under their own names and dims
 *                   foresight  "A Z"    f32  what the world model predicts of the agent and the vehicle ahead, scaled
 *                                            to order 1: of each its risk in 0..1, then for every whole second of the
 *                                            horizon the way ahead of constant speed / 10 m, that to the left / 4 m and
 *                                            the logarithm of the deviation along; at last the way by which the gap
 *                                            grows / 50 m. Zeros where there is nobody. Offered with foresight
 *              dims D, W, "choices" of all discrete actions together, "continuous" actions, K; 0 where there are none;
 *                   and the columns (last number of dims) of each other observation under its name; "values" 0 where
 *                   value is not wanted; "spread" 1 where log_std is to depend on what is seen; "squashed" 1 where the
 *                   phase puts a tanh over mean
 *              out  value      "A"      f32  of the reward from here on
 *                   logits     "A choices"     f32  where there are choices: of every discrete action one after another
 *                   mean, log_std "A continuous" f32  where there are continuous actions: independent Gaussians
 *                   cost_value "A K"    f32  where there are costs
 *
 * critic       in   obs, and the other observations that have a row of numbers per agent, as for controllers
 *                   action     "A P"    f32  what was done: of each discrete action a column per choice, 1 for the one
 *                                            taken; continuous ones, -1 at the low bound and 1 at the high one
 *              dims D, P, and Q, how many estimates are wanted; columns of other observations as for controllers
 *              out  q          "A Q"    f32  of the reward from here on, estimates that share no parameter
 *
 *              Of several agents, in place of action:
 *                   others     "A M"    f32  what the other places chose, 1 for the choice taken; M places * choices
 *                   state      "G F"    f32  the whole, where the environment shows it; agent_state "A" i32: in which
 *                                            row of it the agent is
 *              dims as for controllers, and "others" M
 *              out  q          "A choices" f32  of the reward from here on, for each choice of the agent
 *
 * temperature  out  log_alpha  "1"      f32  logarithm of what entropy is worth
 *
 * shield       in   what it reads of the environment's observations, see below
 *                   foreseen   "A 2F"   f32  of the vehicle ahead of the agent, at every step of the future: its
 *                                            predicted way along, m, then the logarithms of its deviation; zeros where
 *                                            there is none. Offered with foresight
 *              dims "choices", "continuous", and the columns of each observation under its name, as for controllers;
 *                   with foreseen also F and the step "dt_ms"
 *              out  low, high  "A continuous" f32  what may be executed; low is never above high, and where nothing is
 *                                            safe both are below what the environment takes: hardest braking
 *                   allow      "A choices" f32  > 0 where a choice is permitted. Infeasible: none that the mask
 *                                            leaves is; then those with the greatest value remain
 *                   barrier    "A"    f32  learned, > 0 where the state is safe
 *
 *              What controllers by rule read: of environments with signals "phases" "A choices F" f32, columns
 *              0 vehicles that the phase gives green, 1 those that stand, 2 pressure, 3 1 where the fixed program is
 *              now, 4 1 where it may be asked for, 5 (where there is one) vehicles near the stop line; of environments
 *              with vehicles "ego" "A F" f32, column 8 the acceleration that the car-following model would choose
 *
 *              What shields read: of environments with signals more columns of "phases", 8 and 9 columns 0 and 5
 *              without the vehicles that take another link of the same lane, 10 s that somebody whom the phase would
 *              give green waits for it, the longest, 11 pairs of its greens that conflict, 12 s that it is green by
 *              now, -1 where it is not (phases that a signal does not have: all 0, -1 here)
 *                   service    "A choices 5" f32  0 1 where it serves a link that has green in no phase without
 *                                           conflicts, 1 s that somebody waits for such a one, the longest, and the
 *                                           same for all phases 2 s from a choice to its green, 3 the least s from a
 *                                           choice that changes the phase to the next choice that may; 4 s that
 *                                           somebody waits for a link that it serves, the longest
 *              Environments with "service" mean: A link is a way from lane to lane over the junction. A phase serves it
 *              that shows it the best that any phase does (an arrow of its own, else a green that yields, else red that
 *              may be passed after a stop). Somebody waits for it who is first at the line of its lane and takes it,
 *              from standing there on and until it is served; column 10 of phases counts that only while the link has
 *              no green at all. Two greens that go first conflict where their ways cross, or end in one lane and the
 *              net does not say which one yields.
 *              Asked for (right_of_way) they also give
 *                   greens     "A choices L" f32  what a phase shows a link: 0 red, 0.25 the same but to be passed
 *                                           after a stop, 0.5 green that yields, 1 green that goes first
 *                   foes       "A L L" f32  0 the ways of two links do not meet, 1 they end in one lane, 2 they cross;
 *                                           negative where the first yields to the second
 *              What a world model is fed from, of environments with vehicles: past "T S 7" f32, motion and a column
 *              that is 1 where the vehicle was there (sequences S; by the flag DT_PORT_STEPS), seq_node "S" i32 its
 *              node, agent_seq "A 2" i32 the sequences of the agent and of the vehicle ahead of it, -1 where there is
 *              none; and with nodes, edges: centre "N 2" f32, the mean position of the frame
 *
 *              Of environments with vehicles pairs of a follower and what it must not run into, in columns 0 gap
 *              between them, m, 1000 where nothing is, 1 speed of the one ahead, m/s, 2 the hardest it may brake,
 *              m/s^2, 3 speed of the follower, 4 the hardest it can brake, 5 s between two actions of the agent, 6 s,
 *              step of Euler's rule (x += v' dt, v' the speed after the step) by which they move, 0 where the motion is
 *              that of constant acceleration:
 *                   ahead      "A 3 7" f32  the agent follows: 0 the vehicle ahead on its way, 1 the line or the end of
 *                                           the lane where it must stop, 2 a place in a junction that another one holds
 *                   beside     "A 4 7" f32  after a change of lane (choices 0 keep, 1 left, 2 right; where there are
 *                                           such): 0 the agent behind the next one on the left, 1 the next one on the
 *                                           left behind the agent, 2 and 3 the same on the right
 *
 * Fields that the data component data_trajectory reads (symbols N, E, S; a sample is a scene at an anchor frame; node
 * rows of all T history frames of all samples are packed one after another, oldest frame first within a sample):
 *
 *   nodes        "N 9"   f32  x, y relative to the mean position of the anchor frame; every feature scaled to order 1
 *                             by fixed constants, the same for every store; turned when the key is not 0
 *   rowptr       "N+1"   i32  as above, over the slice
 *   col          "E"     i32  node row within the slice
 *   edges        "E 4"   f32  scaled to order 1 (gap / 20 m, lateral offset / 4 m, closing speed / 5 m/s)
 *   row_key      "N"     i64  names the row in the run (sample, epoch, row): the key of dropout
 *   risk_label   "N"     f32  1 where the risk state is positive (1 or 2)
 *   risk_weight  "N"     f32  1 where the label is known, else 0
 *   risk_state   "N"     u8   0 negative, 1 positive, 2 positive already at this frame, 3 unknown
 *   step_of_row  "N"     i32  history step 0..T-1 of the row; T-1 is the anchor
 *   seq_row      "T S"   i32  node row of vehicle s at history step t, -1 where absent
 *   present      "T S"   f32
 *   motion       "T S 6" f32  zeros where absent
 *   target       "S F 2" f32  recorded future positions in the vehicle's own frame, m; zeros where unknown
 *   target_weight "S F"  f32  1 where recorded, else 0
 *   complete     "S"     u8   1: full history and full future, the windows that evaluation counts
 *   sample_of_seq "S"    i32  sample within the slice
 *   seq_key      "S"     i64  names the sequence in the run (sample, epoch, vehicle): the key of dropout
 *   pose         "S 4"   f32  x, y relative to the scene's first vehicle, heading as recorded, length, for pictures
 *   site         "S"     i32  number of the scene's site in the store, for figures by site
 * and with its option pairs, for phases that learn a barrier:
 *   ahead, beside  "S 3 7", "S 4 7" f32  as above, by geometry alone (traffic/features.h); next_ahead, next_beside: an
 *                             action later, zeros where the vehicle is not seen then
 *   next_present "S"     f32  1 where it is, else 0
 *   hazard_in    "S"     f32  actions until it is in danger: 0 is this one; -k where k of them without danger are all
 *                             that is known, or looked at
 * and with its option lanes, of a store with roads (without them nothing is added):
 *   lane         "S 53"  f32  0 1 where it is on a lane, and then: 1 m to the left of its centre / 2, 2 sine of its
 *                             heading off the lane's times 5, 3 twice what its width is above 3.5 m / 3.5 m, 4 nearness
 *                             of the end of the road, 5, 6 1 where there is a lane to the left, to the right, 7 to 9 1
 *                             on a highway, a ramp, in a junction, 10 to 14 how far its lane turns off its heading in
 *                             4, 8, 20, 32, 48 m, rad, 15 nearness of the next place where it parts, meets another one
 *                             or comes to a junction. From 16 on the vehicles ahead, nearest first, of each nearness
 *                             (bumper to bumper), how much faster it is / 5 m/s, 1 where it is there, acceleration / 2
 *                             m/s^2: four on its path, two a lane's width to the left, two to the right. From 48 on how
 *                             much further than at its speed it gets in 1 to 5 s / 10 m, if it does what those ahead of
 *                             it did (Newell 2002). Nearness: 2 - m / 50, at least 0
 *   path         "S 41 4" f32 as above; along the heading where it is on no lane
 * Vehicles present at the anchor frame are the sequences, in the order of their rows.
 * Options that the phase sets when it binds the data: split ("train", "eval", or "calibration" of calibration_folds
 * more, which train then leaves out), history_s, horizon_s, rate_hz; T is
 * history_s * rate_hz with the anchor as the last step, F is horizon_s * rate_hz.
 */
#ifndef DTRAIN_SHAPES_H
#define DTRAIN_SHAPES_H
#endif
