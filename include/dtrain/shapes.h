/* SPDX-License-Identifier: Apache-2.0
 *
 * The legend of shape letters used in every comment and port of dtrain, and the ports of the model roles.
 *
 *   B samples (scenes) in a slice   N node rows (vehicles of all frames)   E edges    S sequences (one per vehicle)
 *   T time steps of history         F steps of future                      D features H hidden     A actions  K costs
 *
 * Ragged letters (B, N, E, S) have a live size that changes from slice to slice; the others are numbers when a model
 * is wired. Everything is C order, last index fastest; sequences are time-major [T,S,...].
 *
 * Ports that phases offer and want, by role. A model declares the inputs it needs from these (by name) and all outputs.
 *
 * perception   in   nodes      "N 9"    f32  node features as in INTERFACES: x y speed accel sin cos length stop controlled,
 *                                            normalised by the phase's data (see the data component)
 *                   rowptr     "N+1"    i32  CSR by target: edges of target i are rowptr[i] .. rowptr[i+1]-1
 *                   col        "E"      i32  source node row of each edge; each target lists itself first
 *                   edges      "E 4"    f32  longitudinal gap, lateral offset, closing speed, inverse time to collision
 *              out  embedding  "N H"    f32
 *                   risk       "N"      f32  logit of the risk label
 *
 * world        in   history    "T S H"  f32  embeddings of each vehicle over time, zeros where absent
 *                   motion     "T S 6"  f32  x y cos sin speed accel in the vehicle's own frame at the last history step
 *                                            (origin: its position, x axis: its heading), in metres and m/s, m/s^2
 *                   present    "T S"    f32  1 where the vehicle was recorded, else 0
 *              dims H, T, F, and the step "dt_ms" between two steps
 *              out  future     "S F 2"  f32  predicted positions in that frame, m
 *                   spread     "S F 2"  f32  log of the standard deviation, log m
 */
#ifndef DTRAIN_SHAPES_H
#define DTRAIN_SHAPES_H
#endif
