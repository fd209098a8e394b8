/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a vehicle gets that does what the one ahead of it did (Newell 2002): it repeats it, as much later as that one
 * took for the gap between them but STAND_M. So what several vehicles ahead did in the last seconds determines where
 * this one will be; where no vehicle is ahead, or none that ever was where this one would be, it keeps its speed.
 *
 *   D_i(t) = W_j(tau) - W_j(tau - t) for t <= tau, W_j(tau) + D_j(t - tau) after it    j the one ahead of i
 *   W_j(t)   way that j went in the last t seconds        tau: W_j(tau) = gap - STAND_M
 *
 * Threads: [any], one object one thread.
 */
#ifndef DTRAIN_DATA_TRAJECTORY_FOLLOWING_H
#define DTRAIN_DATA_TRAJECTORY_FOLLOWING_H

#include "dtrain/helpers.h"
#include "dtrain/traffic/store.h"

typedef struct following {
    const dt_host *h;
    double *way;    /* [n,K+1] owned: m that the frame's vehicles went in the last k frames */
    double *oldest; /* [n] owned: m/s, the first speed in it */
    int64_t K;
    double frame_s;
} following;

/* Of the vehicles of a frame, K frames back; what is before a scene, or before a vehicle came, is as what came first.
 * Errors: DT_ENOMEM. */
dt_status following_init(following *f, const dt_host *h, const dt_store_view *v, int64_t scene, int64_t frame,
                         int64_t K);
void following_fini(following *f);

typedef struct follower { /* the ones ahead of a vehicle, itself first */
    int64_t i;            /* which of the frame's vehicles */
    double gap, speed;    /* m to the one ahead, bumper to bumper; m/s */
} follower;

/* m that chain[0] gets in t seconds; n at least 1, gap of the last is not read. */
double following_distance(const following *f, const follower *chain, int n, double t);

#endif
