/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports of traffic: the roles perception and world, observations of environments with signals or vehicles, and the
 * fields of the data component data_trajectory. Shape letters and the other roles: dtrain/roles.h. Here N are the rows
 * of vehicles of all frames, S has a sequence per vehicle.
 *
 * perception   in   nodes      "N 9"    f32  x y speed accel sin cos length stop controlled, normalised by the data
 *                                            component
 *                   rowptr     "N+1"    i32  CSR by target: edges of target i are rowptr[i] .. rowptr[i+1]-1
 *                   col        "E"      i32  source node row of each edge; each target lists itself first
 *                   edges      "E 4"    f32  longitudinal gap, lateral offset, closing speed, inverse time to collision
 *                   row_key    "N"      i64  key of dropout; without it, as in phases of a policy, there is no dropout
 *              out  embedding  "N H"    f32
 *                   risk       "N"      f32  logit of the risk label
 *
 *                   Phases of a policy feed nodes and edges scaled as the data component scales them
 *                   (traffic/features.h)
 *              constants (of models that are normalised by recordings): node_shift "9", node_scale "9",
 *                   edge_shift "4", edge_scale "4", under constant.: a feature becomes (x + shift) scale; shift 0
 *                   and scale 1 until phase 1 has fitted them (traffic/normalise.h). The fitted scale of accelerations
 *                   is never 1
 *
 * world        in   history    "T S H"  f32  embeddings of each vehicle over time, zeros where absent; of recordings
 *                   latest     "S H"    f32  of the last step alone
 *                   motion     "T S 6"  f32  x y cos sin speed accel in the vehicle's frame at the last history step
 *                                            (origin: its position, x axis: its heading), m, m/s, m/s^2; x is relative
 *                                            to motion at the constant speed of the last step
 *                   present    "T S"    f32  1 where the vehicle was recorded, else 0
 *                   seq_key    "S"      i64  key of dropout; without it there is no dropout
 *                   lane       "S R"    f32  features of its lane, see below. Offered where roads are known
 *                   path       "S P 4"  f32  the course of its lane, in the frame of motion: row 0 has 0 0 and the unit
 *                                            vector to the left of the lane at the vehicle, row k the displacement
 *                                            along the k-th piece of 4 m, and the change of that vector along it;
 *                                            shifted laterally by the vehicle's offset, so that it begins at the
 *                                            vehicle. Offered with lane
 *              dims H (0: there is no perception), T, F, and the step "dt_ms" between two steps; where roads are known
 *                   also R and P
 *              out  future     "S F 2"  f32  predicted positions in that frame, m
 *                   spread     "S F 2"  f32  log of the standard deviation, log m
 *                   and, of models that predict several futures (k, a number), of which future and spread are the
 *                   mean and deviation:
 *                   futures    "S k F 2" f32  predicted positions
 *                   spreads    "S k F 2" f32  log of their deviations, log m
 *                   probability "S k"   f32  of each, they sum to 1
 *                   and, of models that can be calibrated: temperature "2F" f32, a parameter that spread and spreads
 *                   already contain, for x and y of each step; and regions "150" f32, another parameter, 0 before it is
 *                   fitted: logarithms of the factor by which the regions of future and spread exceed those of a
 *                   Gaussian, by class of vehicle (at most 0.5 m/s; faster, below 1 m/s^2; faster, 1 m/s^2 or more
 *                   either way), second 1 to 5, and level 0.1 to 0.9 and 0.95, C order
 *
 * controller   in   foresight  "A Z"    f32  prediction of the world model for the agent and the vehicle ahead, scaled
 *                                            to order 1: of each its risk in 0..1, then for every whole second of the
 *                                            horizon the displacement ahead of constant speed / 10 m, that to the left
 *                                            / 4 m and the logarithm of the longitudinal deviation; last the growth of
 *                                            the gap / 50 m. Zeros where there is no vehicle. Offered with foresight
 *
 * shield       in   foreseen   "A 2F"   f32  of the vehicle ahead of the agent, at every step of the future: its
 *                                            predicted distance along, m, then the logarithms of its deviation; zeros
 *                                            where there is none. Offered with foresight
 *              dims with foreseen also F and the step "dt_ms"
 *
 *              Rule-based controllers read: of environments with signals "phases" "A choices F" f32, columns
 *              0 vehicles that the phase gives green, 1 stopped ones, 2 pressure, 3 1 where the fixed program is
 *              now, 4 1 where it may be chosen, 5 (where there is one) vehicles near the stop line; of environments
 *              with vehicles "ego" "A F" f32, column 8 the acceleration that the car-following model would choose
 *
 *              Shields read: of environments with signals more columns of "phases", 8 and 9 columns 0 and 5
 *              without the vehicles that take another link of the same lane, 10 the longest wait, s, of a vehicle that
 *              the phase would give green, 11 pairs of its greens that conflict, 12 s that it has been green, -1 where
 *              it is not (phases that a signal does not have: all 0, -1 here)
 *                   service    "A choices 5" f32  0 1 where it serves a link that has green in no phase without
 *                                           conflicts, 1 the longest wait for such a link, s, and the same for all
 *                                           phases 2 s from a choice to its green, 3 the least s from a choice that
 *                                           changes the phase to the next choice that may; 4 the longest wait, s, for a
 *                                           link that it serves
 *              Environments with "service" define: A link is a way from lane to lane over the junction. A phase serves
 *              it if no phase shows it a better signal (an arrow of its own, else a green that yields, else red that
 *              may be passed after a stop). A vehicle waits for a link if it is first at the line of its lane and takes
 *              that link, from when it stops there until it is served; column 10 of phases counts only while the link
 *              has no green at all. Two greens with right of way conflict where their ways cross, or end in one lane
 *              and the net does not determine which one yields.
 *              With right_of_way they also give
 *                   greens     "A choices L" f32  what a phase shows a link: 0 red, 0.25 red that may be passed after a
 *                                           stop, 0.5 green that yields, 1 green with right of way
 *                   foes       "A L L" f32  0 the ways of two links do not meet, 1 they end in one lane, 2 they cross;
 *                                           negative where the first yields to the second
 *              World models read, of environments with vehicles: past "T S 7" f32, motion and a column
 *              that is 1 where the vehicle was there (sequences S; by the flag DT_PORT_STEPS), seq_node "S" i32 its
 *              node, agent_seq "A 2" i32 the sequences of the agent and of the vehicle ahead of it, -1 where there is
 *              none; and with nodes, edges: centre "N 2" f32, the mean position of the frame
 *
 *              Of environments with vehicles: pairs of a follower and the obstacle ahead of it, in columns 0 gap
 *              between them, m, 1000 without an obstacle, 1 speed of the obstacle, m/s, 2 its hardest braking,
 *              m/s^2, 3 speed of the follower, 4 its hardest braking, 5 s between two actions of the agent, 6 s,
 *              step of Euler's rule (x += v' dt, v' the speed after the step) of the motion, 0 where the motion is
 *              that of constant acceleration:
 *                   ahead      "A 3 7" f32  the agent follows: 0 the vehicle ahead on its way, 1 the line or the end of
 *                                           the lane where it must stop, 2 a place in a junction that another vehicle
 *                                           occupies
 *                   beside     "A 4 7" f32  after a change of lane (choices 0 keep, 1 left, 2 right; where there are
 *                                           such): 0 the agent after the next one on the left, 1 the next one on the
 *                                           left after the agent, 2 and 3 the same on the right
 *
 * Fields that the data component data_trajectory reads (symbols N, E, S; a sample is a scene at an anchor frame; node
 * rows of all T history frames of all samples are packed one after another, oldest frame first within a sample):
 *
 *   nodes        "N 9"   f32  x, y relative to the mean position of the anchor frame; every feature scaled to order 1
 *                             by fixed constants, the same for every store; rotated when the key is not 0
 *   rowptr       "N+1"   i32  as above, over the micro-batch
 *   col          "E"     i32  node row within the micro-batch
 *   edges        "E 4"   f32  scaled to order 1 (gap / 20 m, lateral offset / 4 m, closing speed / 5 m/s)
 *   row_key      "N"     i64  identifies the row in the run (sample, epoch, row): the key of dropout
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
 *   sample_of_seq "S"    i32  sample within the micro-batch
 *   seq_key      "S"     i64  identifies the sequence in the run (sample, epoch, vehicle): the key of dropout
 *   pose         "S 4"   f32  x, y relative to the scene's first vehicle, heading as recorded, length, for pictures
 *   site         "S"     i32  number of the scene's site in the store, for figures by site
 * and with its option pairs, for phases that learn a barrier:
 *   ahead, beside  "S 3 7", "S 4 7" f32  as above, by geometry alone (traffic/features.h); next_ahead, next_beside: one
 *                             action later, zeros where the vehicle is not recorded then
 *   next_present "S"     f32  1 where it is, else 0
 *   hazard_in    "S"     f32  actions until it is in danger: 0 is this one; -k where only k actions without danger are
 *                             known or were examined
 * and with its option lanes, of a store with roads (without them nothing is added):
 *   lane         "S 53"  f32  0 1 where it is on a lane, and then: 1 m to the left of its centre / 2, 2 sine of its
 *                             heading off the lane's times 5, 3 twice its width above 3.5 m / 3.5 m, 4 nearness
 *                             of the end of the road, 5, 6 1 where there is a lane to the left, to the right, 7 to 9 1
 *                             on a highway, a ramp, in a junction, 10 to 14 the angle of its lane off its heading in
 *                             4, 8, 20, 32, 48 m, rad, 15 nearness of the next place where it splits, merges
 *                             or reaches a junction. From 16 on the vehicles ahead, nearest first, of each nearness
 *                             (bumper to bumper), its relative speed / 5 m/s, 1 where it is there, acceleration / 2
 *                             m/s^2: four on its path, two a lane's width to the left, two to the right. From 48 on the
 *                             additional distance, relative to its speed, in 1 to 5 s / 10 m, if it behaves like those
 *                             ahead of it (Newell 2002). Nearness: 2 - m / 50, at least 0
 *   path         "S 41 4" f32 as above; along the heading where it is on no lane
 * Vehicles present at the anchor frame are the sequences, in the order of their rows.
 * Options that the phase sets when it binds the data: split ("train", "eval", or "calibration" of calibration_folds
 * more, which train then leaves out), history_s, horizon_s, rate_hz; T is
 * history_s * rate_hz with the anchor as the last step, F is horizon_s * rate_hz.
 */
#ifndef DTRAIN_TRAFFIC_PORTS_H
#define DTRAIN_TRAFFIC_PORTS_H
#endif
