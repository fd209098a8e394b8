/* SPDX-License-Identifier: Apache-2.0
 *
 * What shields read of vehicles, traffic/ports.h "ahead" and "beside", of a frame of traffic whose lanes are unknown:
 * by geometry alone, straight on. Environments that know their lanes provide more; where a road is straight both agree.
 *
 * Let (dx, dy) be j's centre in i's frame (x forward, y left). j counts if its heading is within 60 degrees of i's and
 * |dx| within 100 m, where a barrier sees no more. It is on i's lane where |dy| < W/2, W = 3.5 m, and on the next one
 * to the left where W/2 <= dy < 3 W/2, to the right alike. It is ahead where its front is; gaps are from bumper to
 * bumper, negative where two overlap. There is an adjacent lane where a vehicle drives on it within sight, and room on
 * it from a gap of 1 m on. Lines where a vehicle must stop, and places in junctions, are not known: rows 1 and 2 of
 * ahead hold nothing. Threads: [any].
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_PAIRS_H
#define DTRAIN_PLUGINS_TRAFFIC_PAIRS_H

#include "dtrain/traffic/features.h"

/* Of vehicle i of v [n]: ahead [3,7], beside [4,7]. */
void dt_pairs_write(const dt_vehicle *v, uint32_t n, uint32_t i, const dt_pair_desc *d, float *ahead, float *beside);

#endif
