/* SPDX-License-Identifier: Apache-2.0
 *
 * What one UAV knows of the field, by its own measurements and those it received: the log-odds of every stride-th
 * cell of every stride-th row, means over the tiles of the lattice (a tile: the cells next to a point of it), and what
 * a measurement is expected to bring. With stride 1 that is the whole field. Threads: one per belief; tables are
 * shared. Numbers: field.h.
 */
#ifndef DTRAIN_ENV_IPP_BELIEF_H
#define DTRAIN_ENV_IPP_BELIEF_H

#include "field.h"

typedef struct belief_tables {        /* owns what it points to */
    int32_t cells, stride, n, points; /* n: samples in a row; points of the lattice in a row */
    int16_t limit;
    uint8_t *tile;               /* [n] of a column, or row, of samples */
    int32_t *end;                /* [points] the sample after the last one of a tile */
    int32_t *count;              /* [points, points] samples */
    uint64_t *both;              /* [2 limit + 1] of L + limit: p in the upper half, H in the lower */
    int16_t *gain[FIELD_LEVELS]; /* [2 limit + 1] of L + limit, see belief_gain */
} belief_tables;

typedef struct belief { /* owns what it points to */
    int16_t *odds;      /* [n, n] */
    uint64_t *sum;      /* [points, points] of both */
} belief;

/* step: cells from a point of the lattice to the next. Errors: DT_ENOMEM. fini accepts what init left half done. */
dt_status belief_tables_init(belief_tables *t, const dt_host *h, const field *f, const field_level *level,
                             int32_t stride, int32_t points, double step);
void belief_tables_fini(belief_tables *t, const dt_host *h);
dt_status belief_init(belief *b, const dt_host *h, const belief_tables *t);
void belief_fini(belief *b, const dt_host *h);
void belief_reset(belief *b, const belief_tables *t);

/* Samples of a whole footprint, and so the room for what a measurement has seen. */
int64_t belief_samples(const belief_tables *t, int32_t half);

/* Adds what a measurement has seen. */
void belief_add(belief *b, const belief_tables *t, const field_view *view);

/* Means over the tile of a point: probability, and entropy in bits. */
void belief_tile(const belief *b, const belief_tables *t, int32_t point, float *p_p, float *H_p);

/* Expected weighted information of measuring a rectangle at a level, bits summed over its samples:
 *   sum over samples: w(L) sum over z in {0,1}: P(z) (H(L) - H(L_z)),  L_z what z makes of L
 *   P(1) = p (1 - error) + (1 - p) error
 * by what this UAV knows, weighted as its map is now (the reward: as the map is then). */
double belief_gain(const belief *b, const belief_tables *t, const field_rect *at, int32_t level);

#endif
