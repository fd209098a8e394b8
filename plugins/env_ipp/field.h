/* SPDX-License-Identifier: Apache-2.0
 *
 * The field that is watched: which cells are of interest (the truth), what the measurements of all UAVs together show
 * of every cell (the map), and what a set of measurements was worth. Rows go to the north, columns to the east.
 *
 * The map holds the log-odds of every cell, L = ln(p / (1 - p)), as integers of 1 / FIELD_UNIT. A measurement at a
 * level with error rate q shows the truth, flipped with probability q, and adds +-ln((1 - q) / q); L stays within that
 * of p = FIELD_CLAMP and 1 - FIELD_CLAMP. Entropies are integers too, so that all sums are exact in any order and
 * those kept up to date never drift:
 *
 *   H = -p log2 p - (1 - p) log2(1 - p)                   in 1 / FIELD_ONE bits
 *   w = 1 where p > FIELD_SURE, 0 where p < 1 - FIELD_SURE, else 1/2
 *
 * Source of the rules: Westheider, Rueckin & Popovic 2023, arXiv 2303.01150. Threads: one per field.
 */
#ifndef DTRAIN_ENV_IPP_FIELD_H
#define DTRAIN_ENV_IPP_FIELD_H

#include "dtrain/plugin.h"

#include <stdbool.h>

enum {
    FIELD_UNIT = 1024,
    FIELD_ONE = 32767,
    FIELD_LEVELS = 3,
    FIELD_MAX_CELLS = 1024,
    FIELD_MAX_VIEWS = 8,
    FIELD_LANES = 4 /* of a noise: words drawn at once */
};
#define FIELD_CLAMP 1e-4
#define FIELD_SURE  0.501

typedef struct field_level { /* an altitude */
    double metres, error;
    int32_t half; /* cells: a footprint has 2 half by 2 half of them */
    int16_t odds; /* ln((1 - error) / error), FIELD_UNIT */
    int16_t flip; /* 15 random bits below this are an error */
} field_level;

typedef struct field_rect { /* cells x0 <= x < x1, y0 <= y < y1 */
    int32_t x0, x1, y0, y1;
} field_rect;

typedef struct field_noise { /* FIELD_LANES streams of xoshiro128+ (Blackman & Vigna 2021) side by side */
    uint32_t word[4][FIELD_LANES];
} field_noise;

typedef struct field_view { /* a measurement */
    field_rect at;
    int32_t level, stride;
    field_noise noise;
    int16_t *seen; /* what it adds to cells whose row and column are multiples of stride, row by row */
} field_view;

typedef struct field_worth { /* of measurements made at the same time, summed over cells, weights of the map after */
    int64_t gained;          /* 2 w (H before - H after) of the cells measured */
    int64_t before;          /* 2 w H before of all cells */
} field_worth;

typedef struct field_score {
    int64_t H;                  /* of the cells of interest, together */
    int64_t n_found, n_claimed; /* of these those with p > 1/2; all with p > 1/2 */
} field_score;

typedef struct field { /* owns what it points to */
    int32_t cells;     /* in each direction */
    int16_t limit;     /* largest |L| */
    int16_t unsure;    /* w is 1/2 up to this |L| */
    int16_t *entropy;  /* [2 limit + 1] H of L + limit */
    int16_t *truth;    /* [cells, cells] -1: of interest, 0: not */
    int16_t *odds, *H; /* [cells, cells] */
    int64_t weighted;  /* 2 w H of all cells */
    int64_t n_target;  /* cells of interest */
    field_score score;
    bool is_wide; /* by vectors of 256 bits, with the same numbers */
} field;

/* Allocates; fini accepts what init left half done. Errors: DT_ENOMEM. */
dt_status field_init(field *f, const dt_host *h, int32_t cells);
void field_fini(field *f, const dt_host *h);

/* Truths; share of the cells that is of interest. Nothing is known afterwards: p = 1/2. */
void field_half_plane(field *f, uint32_t side, double share); /* of the west, east, south, north */
void field_patches(field *f, uint64_t seed, int32_t knots, double share);

void field_noise_init(field_noise *n, uint64_t seed, uint32_t step, uint32_t uav);
/* The cells that a camera over (x, y) sees. */
field_rect field_footprint(const field *f, int32_t x, int32_t y, int32_t half);
/* Makes n measurements, one after another where they overlap, and fills what each has seen. */
void field_measure(field *f, field_view *view, uint32_t n, const field_level *level, field_worth *worth_p);

/* Of the whole field. */
field_score field_score_of(const field *f);

/* L of a probability in (0,1), rounded, and back. */
int32_t field_odds(double p);
double field_probability(int32_t odds);
double field_entropy_bits(double p);
/* 2 w of L: 0, 1 or 2. */
static inline int32_t field_weight(const field *f, int32_t odds)
{
    return (odds > f->unsure) + (odds >= -f->unsure);
}

#endif
