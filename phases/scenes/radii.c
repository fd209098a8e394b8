/* SPDX-License-Identifier: Apache-2.0 */
#include "radii.h"

#include <math.h>

/* below 1, which is the whole plane */
const double radii_level[RADII_LEVELS] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};
const char *const radii_class_name[RADII_CLASSES] = {"standing", "steady", "changing"};

static const double STANDING_MPS = 0.5, STEADY_MPS2 = 1.0;
static const double MIN_LOG_DISTANCE = -6.907755278982137,
                    MAX_LOG_DISTANCE = 6.907755278982137; /* logarithms of 1/1000 and 1000 */

uint32_t radii_class(double speed_mps, double accel_mps2)
{
    return speed_mps <= STANDING_MPS ? 0 : fabs(accel_mps2) < STEADY_MPS2 ? 1 : 2;
}

static uint32_t table_index(uint32_t kind, uint32_t second, uint32_t level)
{
    return (kind * RADII_SECONDS + second) * RADII_LEVELS + level;
}

static double gaussian_radius(uint32_t level)
{
    return sqrt(-2 * log1p(-radii_level[level]));
}

double radii_get(const float table[RADII_SIZE], uint32_t kind, uint32_t second, uint32_t level)
{
    return gaussian_radius(level) * exp((double)table[table_index(kind, second, level)]);
}

/* ---- from distances ---------------------------------------------------------------------------------------------- */

static double bin_width(void)
{
    return (MAX_LOG_DISTANCE - MIN_LOG_DISTANCE) / RADII_BINS;
}

void radii_add(radii_counts *c, uint32_t kind, uint32_t second, double distance)
{
    const double at = distance > 0 ? (log(distance) - MIN_LOG_DISTANCE) / bin_width() : 0;
    const uint32_t bin = at >= RADII_BINS ? RADII_BINS - 1 : at > 0 ? (uint32_t)at : 0;
    c->n[kind][second][bin]++;
}

static uint64_t total_count(const uint64_t n[RADII_BINS])
{
    uint64_t sum = 0;
    for (uint32_t b = 0; b < RADII_BINS; b++) {
        sum += n[b];
    }
    return sum;
}

/* Upper edge of the bin with the rank-th smallest distance, from 1; 0: empty. */
static double ranked_distance(const uint64_t n[RADII_BINS], uint64_t rank)
{
    uint64_t sum = 0;
    for (uint32_t b = 0; b < RADII_BINS; b++) {
        sum += n[b];
        if (sum >= rank) {
            return exp(MIN_LOG_DISTANCE + (b + 1) * bin_width());
        }
    }
    return 0;
}

/* The radius of a level; with too few counts the largest distance, at least `otherwise`. */
static double conformal_radius(const uint64_t n[RADII_BINS], double level, double otherwise)
{
    const uint64_t sum = total_count(n);
    const uint64_t rank = (uint64_t)ceil((double)(sum + 1) * level - 1e-9); /* (n + 1) 0.1 is more than it */
    return rank <= sum ? ranked_distance(n, rank) : fmax(sum > 0 ? ranked_distance(n, sum) : 0, otherwise);
}

void radii_fit(const radii_counts *c, uint32_t n_seconds, float table[RADII_SIZE])
{
    for (uint32_t i = 0; i < RADII_SIZE; i++) {
        table[i] = 0;
    }
    for (uint32_t i = 0; i < n_seconds && i < RADII_SECONDS; i++) {
        uint64_t all[RADII_BINS] = {0};
        for (uint32_t k = 0; k < RADII_CLASSES; k++) {
            for (uint32_t b = 0; b < RADII_BINS; b++) {
                all[b] += c->n[k][i][b];
            }
        }
        for (uint32_t k = 0; k < RADII_CLASSES; k++) {
            double inner = 0; /* a region holds those of lower levels */
            for (uint32_t l = 0; l < RADII_LEVELS; l++) {
                const double found = conformal_radius(c->n[k][i], radii_level[l],
                                                      conformal_radius(all, radii_level[l], gaussian_radius(l)));
                inner = fmax(inner, found);
                table[table_index(k, i, l)] = (float)log(inner / gaussian_radius(l));
            }
        }
    }
}
