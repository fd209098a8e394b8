/* SPDX-License-Identifier: Apache-2.0
 *
 * Highest density regions of a mixture of Gaussians in the plane (Hyndman 1996): the region of level p is the smallest
 * one of probability p. For one Gaussian it is an ellipse. Threads: any, no state.
 */
#ifndef DTRAIN_PHASES_SCENES_REGION_H
#define DTRAIN_PHASES_SCENES_REGION_H

#include <stdint.h>

enum { REGION_MAX = 64 };

typedef struct region_gaussian { /* independent along x and y */
    double p, x, y, sigma_x, sigma_y;
} region_gaussian;

/* The smallest level whose region contains (x, y), in [0, 1]: the probability of a higher density. Exact for one
 * Gaussian, 1 - exp(-d^2 / 2), d in deviations; for 2 to REGION_MAX, by 80 points of each, to about 0.02. */
double region_level(const region_gaussian *g, int64_t n, double x, double y);
/* Logarithm of the mixture's density, per m^2; -inf where all of p are 0. */
double region_log_density(const region_gaussian *g, int64_t n, double x, double y);
/* The same as a distance, the radius sqrt(-2 log(1 - level)) of a Gaussian's region of that level: for one Gaussian the
 * distance in deviations. Outside the points of several it is the distance to the nearest, at least what 80 points can
 * resolve. */
double region_distance(const region_gaussian *g, int64_t n, double x, double y);

#endif
