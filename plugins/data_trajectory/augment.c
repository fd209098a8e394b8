/* SPDX-License-Identifier: Apache-2.0 */
#include "augment.h"

#include <math.h>

enum { FOR_SPEED, FOR_ANGLE, FOR_X, FOR_Y, FOR_HIDING, FOR_EDGE };

/* [0, 1), for one purpose and one row or edge. */
static double draw_unit(uint64_t key, int64_t number, uint64_t purpose)
{
    return augment_unit(augment_mix(augment_mix(augment_mix(key) ^ purpose << 56) + (uint64_t)number));
}

augment_row augment_of_row(const augment *a, uint64_t key, int64_t row)
{
    augment_row out = {0};
    if (key == 0) {
        return out;
    }
    if (a->speed_mps > 0) { /* Box & Muller 1958; 1 - u is above 0 */
        const double r = sqrt(-2 * log(1 - draw_unit(key, row, FOR_SPEED)));
        out.speed = a->speed_mps * r * cos(2 * M_PI * draw_unit(key, row, FOR_ANGLE));
    }
    if (a->position_m > 0) {
        out.x = a->position_m * (2 * draw_unit(key, row, FOR_X) - 1);
        out.y = a->position_m * (2 * draw_unit(key, row, FOR_Y) - 1);
    }
    out.is_hidden = a->nodes > 0 && draw_unit(key, row, FOR_HIDING) < a->nodes;
    return out;
}

bool augment_drops(const augment *a, uint64_t key, int64_t edge)
{
    return key != 0 && a->edges > 0 && draw_unit(key, edge, FOR_EDGE) < a->edges;
}
