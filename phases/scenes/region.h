/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of a mixture of Gaussians in the plane: the region of level p is the smallest one that the mixture fills to
 * p, where its density is highest (Hyndman 1996). Of one Gaussian it is an ellipse. Threads: any, no state.
 */
#ifndef DTRAIN_PHASES_SCENES_REGION_H
#define DTRAIN_PHASES_SCENES_REGION_H

#include <stdint.h>

enum { REGION_MAX = 64 };

typedef struct region_gaussian { /* independent along x and y */
    double p, x, y, sigma_x, sigma_y;
} region_gaussian;

/* The least level whose region holds (x, y), in [0, 1]: the mixture's share where it is denser than there. Exact for
 * one Gaussian, 1 - exp(-d^2 / 2), d in deviations; of 2 to REGION_MAX, by 80 points of each, to about 0.02. */
double region_level(const region_gaussian *g, int64_t n, double x, double y);
/* Logarithm of the mixture's density, per m^2; -inf where all of p are 0. */
double region_log_density(const region_gaussian *g, int64_t n, double x, double y);
/* The same as the distance that a Gaussian's region of that level reaches to, sqrt(-2 log(1 - level)): of one the
 * distance in deviations, at any distance. Of several, where no point is less dense, that to the nearest, and not below
 * what 80 points tell. */
double region_distance(const region_gaussian *g, int64_t n, double x, double y);

#endif
