/* SPDX-License-Identifier: Apache-2.0
 *
 * How features of vehicles are normalised by what they are like in recordings: by kind, one rule for each. Used by
 * phases that fit a model's constants (traffic/ports.h, perception) and by reports of what they would be. Pure
 * functions, threads: [any].
 *
 *   position      x / R, R the farthest corner of the box of all distances from a frame's centre: within [-1, 1]
 *                 however a scene is turned or mirrored. x and y have one R, and the centre stays 0
 *   measure       (x - mean) / deviation: speeds, lengths, distances, gaps, offsets, closing speeds, inverse times
 *   acceleration  held within 5 m/s^2 either way, and divided by it: no statistic, so it is the same everywhere
 *   as it is      sines, cosines, flags
 *
 * A measure that deviates by less than a hundredth of the unit that dtrain/traffic/features.h scales it by is the same
 * everywhere in the recordings; divided by that deviation, the least difference elsewhere would be a huge number. It is
 * left as it is, and so is a position in scenes of single vehicles. Source: z-score and range scaling as in Han, Kamber
 * & Pei 2011, 3.5.2.
 */
#ifndef DTRAIN_TRAFFIC_NORMALISE_H
#define DTRAIN_TRAFFIC_NORMALISE_H

#include "dtrain/plugin.h"
#include "dtrain/traffic/features.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DT_FEATURE_AS_IS = 0, DT_FEATURE_POSITION, DT_FEATURE_MEASURE, DT_FEATURE_ACCELERATION };
enum { DT_NORMALISED_X = 0, DT_NORMALISED_Y = 1, DT_NORMALISED_ACCELERATION = 3 }; /* columns of nodes */

/* clang-format off */
#define DT_NODE_KINDS                                                                                                  \
    {DT_FEATURE_POSITION, DT_FEATURE_POSITION, DT_FEATURE_MEASURE, DT_FEATURE_ACCELERATION, DT_FEATURE_AS_IS,          \
     DT_FEATURE_AS_IS, DT_FEATURE_MEASURE, DT_FEATURE_MEASURE, DT_FEATURE_AS_IS}
#define DT_EDGE_KINDS {DT_FEATURE_MEASURE, DT_FEATURE_MEASURE, DT_FEATURE_MEASURE, DT_FEATURE_MEASURE}
/* clang-format on */

#define DT_ACCELERATION_BOUND 5.0  /* m/s^2 */
#define DT_LEAST_DEVIATION    0.01 /* of a feature's unit */

typedef struct dt_normaliser { /* (x + shift) scale */
    double shift, scale;
    uint32_t is_left; /* 1: of a kind that statistics scale, which these do not allow; shift 0, scale 1 */
    uint32_t reserved;
} dt_normaliser;

static inline dt_normaliser dt_normaliser_of(double shift, double scale, uint32_t is_left)
{
    dt_normaliser k;
    k.shift = shift;
    k.scale = scale;
    k.is_left = is_left;
    k.reserved = 0;
    return k;
}

/* Of a measure; unit: by how much the feature counts as one, in the statistic's own units, > 0. */
static inline dt_normaliser dt_normaliser_measure(const dt_field_stat *s, double unit)
{
    const int is_fit = s->n > 0 && isfinite(s->mean) && isfinite(s->std) && s->std >= DT_LEAST_DEVIATION * unit;
    return is_fit ? dt_normaliser_of(0 - s->mean, 1 / s->std, 0) : dt_normaliser_of(0, 1, 1);
}

/* Of both coordinates, distances from the centre of their frame. unit: as above. */
static inline dt_normaliser dt_normaliser_position(const dt_field_stat *x, const dt_field_stat *y, double unit)
{
    const double a = fmax(fabs(x->min), fabs(x->max)), b = fmax(fabs(y->min), fabs(y->max)), far = sqrt(a * a + b * b);
    const int is_fit = x->n > 0 && y->n > 0 && isfinite(far) && far >= DT_LEAST_DEVIATION * unit;
    return is_fit ? dt_normaliser_of(0, 1 / far, 0) : dt_normaliser_of(0, 1, 1);
}

/* unit: of acceleration, m/s^2 */
static inline dt_normaliser dt_normaliser_acceleration(double unit)
{
    return dt_normaliser_of(0, unit / DT_ACCELERATION_BOUND, 0);
}

#ifdef __cplusplus
}
#endif
#endif
