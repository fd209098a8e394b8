/* SPDX-License-Identifier: Apache-2.0
 *
 * Radii of the predicted regions of a vehicle's future: for each level, second and class of vehicle the distance, in
 * deviations, that contains this share of held-out vehicles: split conformal prediction by class (Vovk et al. 2005,
 * sections 2.2 and 4.5). Prediction errors have a sharp peak and heavy tails, so Gaussian radii fit at one level at
 * most, whatever the temperature. Classes by current motion make coverage independent of the share of standing
 * vehicles.
 *
 *   standing   at most 0.5 m/s
 *   steady     faster, acceleration below 1 m/s^2
 *   changing   faster, acceleration of 1 m/s^2 or more, or less than -1 m/s^2
 *
 * A table is the port regions of a world model: for class c, second i from 0 and level l the logarithm of the radius
 * over a Gaussian's, sqrt(-2 log(1 - level)), at [(c * 5 + i) * 10 + l]; 0 is a Gaussian. Threads: any, no state.
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
/* Counts a vehicle at this distance, in deviations. */
void radii_add(radii_counts *c, uint32_t kind, uint32_t second, double distance);
/* table: from counts of n_seconds; a Gaussian for later seconds. The radius of level p of a class with n vehicles is
 * the ceil((n + 1) p)-th smallest distance, rounded up by at most 1.4 %. If there are fewer vehicles (below 19 at 95
 * %), it is the larger of its largest distance and the radius of all classes, or, if these are too few as well, a
 * Gaussian's. */
void radii_fit(const radii_counts *c, uint32_t n_seconds, float table[RADII_SIZE]);

#endif
