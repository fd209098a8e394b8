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
 * perception   in   nodes      "N 9"    f32  x y speed accel sin cos length stop controlled, normalised by the data
 *                                            component
 *                   rowptr     "N+1"    i32  CSR by target: edges of target i are rowptr[i] .. rowptr[i+1]-1
 *                   col        "E"      i32  source node row of each edge; each target lists itself first
 *                   edges      "E 4"    f32  longitudinal gap, lateral offset, closing speed, inverse time to collision
 *                   row_key    "N"      i64  key of dropout
 *              out  embedding  "N H"    f32
 *                   risk       "N"      f32  logit of the risk label
 *
 * world        in   history    "T S H"  f32  embeddings of each vehicle over time, zeros where absent
 *                   motion     "T S 6"  f32  x y cos sin speed accel in the vehicle's frame at the last history step
 *                                            (origin: its position, x axis: its heading), m, m/s, m/s^2; x is ahead of
 *                                            where the last step's speed, held all along, would have had it
 *                   present    "T S"    f32  1 where the vehicle was recorded, else 0
 *                   seq_key    "S"      i64  key of dropout
 *              dims H, T, F, and the step "dt_ms" between two steps
 *              out  future     "S F 2"  f32  predicted positions in that frame, m
 *                   spread     "S F 2"  f32  log of the standard deviation, log m
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
 * Vehicles present at the anchor frame are the sequences, in the order of their rows.
 * Options that the phase sets when it binds the data: split ("train" or "eval"), history_s, horizon_s, rate_hz; T is
 * history_s * rate_hz with the anchor as the last step, F is horizon_s * rate_hz.
 */
#ifndef DTRAIN_SHAPES_H
#define DTRAIN_SHAPES_H
#endif
