/* SPDX-License-Identifier: Apache-2.0
 *
 * Radii of the regions that are told of a vehicle's future: of each level, second and class of vehicle the distance,
 * in deviations, within which so many of held-out vehicles were. Errors of predictions have a sharp peak and heavy
 * tails, so radii of a Gaussian cannot hold at more than one level, whatever factor deviations are given; these do, as
 * far as vehicles of a class err alike (split conformal prediction, class by class: Vovk et al. 2005, sections 2.2 and
 * 4.5). Classes are what drivers do now, so that a road with more vehicles that stand is told as well as one with few.
 *
 *   standing   at most 0.5 m/s
 *   steady     faster, acceleration below 1 m/s^2
 *   changing   faster, acceleration of 1 m/s^2 or more, or less than -1 m/s^2
 *
 * A table is what a world model has as its port regions: of class c, second i from 0 and level l the logarithm of the
 * radius over a Gaussian's, sqrt(-2 log(1 - level)), at [(c * 5 + i) * 10 + l]; 0 is a Gaussian. Threads: any, no
 * state.
 */
#ifndef DTRAIN_PHASES_SCENES_RADII_H
#define DTRAIN_PHASES_SCENES_RADII_H

#include <stdint.h>

enum { RADII_CLASSES = 3, RADII_SECONDS = 5, RADII_LEVELS = 10, RADII_BINS = 1024 };
enum { RADII_SIZE = RADII_CLASSES * RADII_SECONDS * RADII_LEVELS };

extern const double radii_level[RADII_LEVELS];
extern const char *const radii_class_name[RADII_CLASSES];

typedef struct radii_counts { /* vehicles by the logarithm of their distance */
    uint64_t n[RADII_CLASSES][RADII_SECONDS][RADII_BINS];
} radii_counts;

uint32_t radii_class(double speed_mps, double accel_mps2);
/* second is from 0 */
double radii_get(const float table[RADII_SIZE], uint32_t kind, uint32_t second, uint32_t level);
/* A vehicle that was so many deviations off. */
void radii_add(radii_counts *c, uint32_t kind, uint32_t second, double distance);
/* table: what the counts of n seconds come to, of later ones a Gaussian. Of n vehicles of a class the radius of level p
 * is the ceil((n + 1) p)-th least distance, rounded up by 1.4 % at most. Where the class has fewer, as at 95 % below 19
 * vehicles, it is the larger one of its largest distance and the radius of all classes; where these are too few as
 * well, the larger one of the largest distance and a Gaussian's radius. */
void radii_fit(const radii_counts *c, uint32_t n_seconds, float table[RADII_SIZE]);

#endif
