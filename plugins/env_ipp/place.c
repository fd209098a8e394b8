/* SPDX-License-Identifier: Apache-2.0
 *
 * See env_ipp.h: the lattice, positions on it, and which UAVs receive from which.
 */
#include "env_ipp.h"

bool ipp_target(const ipp *s, const ipp_place *from, int32_t move, ipp_place *to_p)
{
    static const int32_t by[IPP_MOVES][3] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
    *to_p = (ipp_place){from->x + by[move][0], from->y + by[move][1], from->level + by[move][2]};
    return to_p->x >= 0 && to_p->x < s->points && to_p->y >= 0 && to_p->y < s->points && to_p->level >= 0 &&
           to_p->level < FIELD_LEVELS;
}

uint32_t ipp_occupant(const ipp *s, uint32_t i, const ipp_place *at)
{
    uint32_t j = 0;
    while (j < ipp_n(s) &&
           (j == i || s->place[j].x != at->x || s->place[j].y != at->y || s->place[j].level != at->level)) {
        j++;
    }
    return j;
}

bool ipp_receives(const ipp *s, uint32_t i, uint32_t j)
{
    const double x = s->place[i].x - s->place[j].x, y = s->place[i].y - s->place[j].y;
    const double z = s->place[i].level - s->place[j].level, far = s->config.communication_m / s->config.step_m;
    return i == j || (far > 0 && x * x + y * y + z * z <= far * far);
}

field_rect ipp_footprint(const ipp *s, const ipp_place *at)
{
    return field_footprint(&s->field, (int32_t)lround(at->x * s->step_cells), (int32_t)lround(at->y * s->step_cells),
                           s->level[at->level].half);
}
