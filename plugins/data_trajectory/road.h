/* SPDX-License-Identifier: Apache-2.0
 *
 * What perception sees of roads in a window: the pieces of lanes (pieces.h) in reach of any vehicle of its history, in
 * ascending order, the edges between them, and edges from each vehicle of each frame to the few nearest pieces.
 *
 * A vehicle looks at the pieces within PIECES_NEAR_M of where it was recorded and takes those with the least gap + 3 m
 * per rad between headings, the nearest first, of equal ones the first; fewer than ROAD_NEAR where fewer are there. So
 * how many there are does not depend on what training does to it: a vehicle that is shown off its place
 * (position_noise_m) is so here too, and one that is hidden has edges of zeros, which tell that nothing is told.
 * Threads: [any].
 */
#ifndef DTRAIN_DATA_TRAJECTORY_ROAD_H
#define DTRAIN_DATA_TRAJECTORY_ROAD_H

#include "windows.h"

enum { ROAD_NEAR = 6 };

/* Of a sample: pieces, edges between them, edges of vehicles to them. Errors: DT_ENOMEM. */
dt_status road_sizes(const windows *s, const windows_sample *w, int64_t size[3]);
/* The fields of a sample behind what the cursor has filled, before its graphs are read. out: the seven fields of roads.
 * use: 0 where nothing is augmented. Errors: DT_ENOMEM. */
dt_status road_read(const windows *s, const windows_sample *w, const windows_turn *t, uint64_t use, windows_cursor *c,
                    void *const *out);

#endif
