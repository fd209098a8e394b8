/* SPDX-License-Identifier: Apache-2.0
 *
 * Noise in what a training window shows of the past; targets and labels stay as they were recorded. It follows from the
 * key of the sample's use and the row of the store alone: the same for every worker, rank and resume, and the same for
 * a vehicle in the graph and in its motion. Threads: any, no state.
 */
#ifndef DTRAIN_DATA_TRAJECTORY_AUGMENT_H
#define DTRAIN_DATA_TRAJECTORY_AUGMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct augment {
    double speed_mps;  /* standard deviation of a normal error of speeds */
    double position_m; /* positions are off by up to this much along x and along y, evenly drawn */
    double edges;      /* share of edges between vehicles that are dropped */
    double nodes;      /* share of vehicles whose features are hidden in a frame */
} augment;

typedef struct augment_row {
    double speed, x, y; /* to be added: m/s, m */
    bool is_hidden;
} augment_row;

/* Of one vehicle in one frame. key 0: nothing changes. */
augment_row augment_of_row(const augment *a, uint64_t key, int64_t row);
bool augment_drops(const augment *a, uint64_t key, int64_t edge);

/* splitmix64 (Steele et al. 2014): one well mixed number from one. */
static inline uint64_t augment_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* [0, 1) */
static inline double augment_unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

#endif
