/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/features/pairs.h"
#include "traffic/features/features.h"

#include <math.h>
#include <stdbool.h>

enum { RIGHT, OWN, LEFT, LANES };
#define LANE_M    3.5
#define SIGHT_M   100.0
#define ROOM_M    1.0
#define NOTHING_M 1000.0 /* gap where nothing is */
#define ALONG     0.5    /* cosine between headings */

typedef struct lane_view { /* neighbours of i on a lane */
    bool is_there;
    double ahead, ahead_v, behind, behind_v;
} lane_view;

static void relate_vehicles(const dt_vehicle *a, const dt_vehicle *b, double sin_a, double cos_a, lane_view lane[LANES])
{
    const bool stands = isnan(b->heading) && fabs(b->speed) < DT_STANDS_MPS; /* needs no heading */
    const double ex = b->x - a->x, ey = b->y - a->y, along = stands ? 1 : cos(b->heading - a->heading);
    const double dx = ex * cos_a + ey * sin_a, dy = ey * cos_a - ex * sin_a;
    const double aside = floor(dy / LANE_M + 0.5) + OWN;
    if (!(along >= ALONG && fabs(dx) <= SIGHT_M && aside >= RIGHT && aside <= LEFT)) {
        return; /* also where a heading is unknown */
    }
    lane_view *l = &lane[(int)aside];
    const double gap = fabs(dx) - 0.5 * (a->length + b->length), speed = stands ? 0 : fmax(b->speed * along, 0);
    const bool is_ahead = dx + 0.5 * (b->length - a->length) > 0;
    l->is_there = true;
    if (is_ahead && gap < l->ahead) {
        l->ahead = gap;
        l->ahead_v = speed;
    } else if (!is_ahead && gap < l->behind) {
        l->behind = gap;
        l->behind_v = speed;
    }
}

static void write_pair(const dt_pair_desc *d, double gap, double speed, double brake, double follower,
                       double follower_brake, float *out)
{
    const double seen[DT_PAIR_COLUMNS] = {gap, speed, brake, follower, follower_brake, d->action_s, d->euler_s};
    for (int k = 0; k < DT_PAIR_COLUMNS; k++) {
        out[k] = (float)seen[k];
    }
}

void dt_pairs_write(const dt_vehicle *v, uint32_t n, uint32_t i, const dt_pair_desc *d, float *ahead, float *beside)
{
    static const int side[] = {LEFT, RIGHT};
    const double sin_h = sin(v[i].heading), cos_h = cos(v[i].heading), speed = v[i].speed;
    lane_view lane[LANES];
    for (int k = 0; k < LANES; k++) {
        lane[k] = (lane_view){.ahead = NOTHING_M, .behind = NOTHING_M};
    }
    for (uint32_t j = 0; j < n; j++) {
        if (j != i) {
            relate_vehicles(&v[i], &v[j], sin_h, cos_h, lane);
        }
    }
    write_pair(d, lane[OWN].ahead, lane[OWN].ahead_v, d->other_brake, speed, d->brake, ahead);
    for (int k = 1; k < DT_AHEAD_PAIRS; k++) {
        write_pair(d, NOTHING_M, 0, d->other_brake, speed, d->brake, ahead + (size_t)k * DT_PAIR_COLUMNS);
    }
    for (int k = 0; k < 2; k++) {
        lane_view l = lane[side[k]];
        float *out = beside + (size_t)(2 * k) * DT_PAIR_COLUMNS;
        if (!l.is_there || l.ahead < ROOM_M || l.behind < ROOM_M) {
            l = (lane_view){.is_there = false}; /* where it cannot be done there is no gap */
        }
        write_pair(d, l.ahead, l.ahead_v, d->other_brake, speed, d->brake, out);
        write_pair(d, l.behind, speed, d->brake, l.behind_v, d->other_brake, out + DT_PAIR_COLUMNS);
    }
}
