/* SPDX-License-Identifier: Apache-2.0
 *
 * Accelerations of recorded vehicles. What cameras and their trackers write down as acceleration is mostly noise, and
 * clipped; the speeds next to it are better. So accelerations are computed again from differences of speeds and
 * averaged with an exponential kernel, exp(-|distance in time| / width), as in Thiemann, Treiber and Kesting (2008),
 * "Estimating acceleration and lane-changing dynamics from next generation simulation trajectory data", Transportation
 * Research Record 2088, eq. (1) and (2), with two differences: the kernel is not cut off at three widths (so two
 * running sums do), and at the ends of a track it is cut off by the track alone, where the paper narrows it on both
 * sides, until the noise of the first and last frames is back.
 *
 * There are two of them. Labels look ahead anyway and take the centred one. What a model is shown may not: it takes the
 * average over the past. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_SMOOTH_H
#define DTRAIN_PLUGINS_TRAFFIC_SMOOTH_H

#include <stdint.h>

#define DT_SMOOTH_MAX_S 10.0 /* s */

/* The average over the past, begun as zeros. */
typedef struct dt_past_mean {
    double sum, weight;
} dt_past_mean;

/* Takes the speed, in m/s, seconds after the one before; returns the acceleration in m/s^2. width > 0 s. */
double dt_past_mean_add(dt_past_mean *m, double speed_before, double speed, double seconds, double width);

/* The centred average over a whole track of n >= 1 frames: time [n] s, ascending, speed [n] m/s, accel [n] m/s^2
 * written whole; work [2 n] is overwritten. Differences are central, one-sided at both ends; a single frame gives 0.
 * width > 0 s. */
void dt_smooth_track(const double *time, const double *speed, int64_t n, double width, double *work, double *accel);

#endif
