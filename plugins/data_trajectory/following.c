/* SPDX-License-Identifier: Apache-2.0 */
#include "following.h"
#include "tracks.h"

#include <math.h>

#define STAND_M     2.5 /* between bumpers of a queue */
#define LEAST_TAU_S 0.3 /* no driver reacts faster */
#define MOST_TAU_S  6.0 /* a driver that needs longer does not follow */

static void walk_back(const following *f, const dt_store_view *v, int64_t scene, int64_t frame, int64_t i)
{
    const int64_t r = v->frame_row[frame] + i, first = v->track_ptr[v->row_track[r]];
    int64_t at = tracks_place(v, v->row_track[r], r);
    double speed = (double)v->motion[4 * r], *way = f->way + i * (f->K + 1);
    way[0] = 0;
    for (int64_t k = 1; k <= f->K; k++) {
        const int64_t b = frame - k;
        double before = speed; /* also of a frame in which it was not seen */
        if (b >= v->scene_frame[scene] && at > first && v->track_row[at - 1] >= v->frame_row[b]) {
            before = (double)v->motion[4 * v->track_row[--at]];
        }
        way[k] = way[k - 1] + 0.5 * (speed + before) * f->frame_s;
        speed = before;
    }
    f->oldest[i] = speed;
}

dt_status following_init(following *f, const dt_host *h, const dt_store_view *v, int64_t scene, int64_t frame,
                         int64_t K)
{
    const int64_t n = v->frame_row[frame + 1] - v->frame_row[frame];
    *f = (following){.h = h, .K = K, .frame_s = 1.0 / v->frame_rate_hz};
    f->way = h->alloc(h, (uint64_t)(n * (K + 1)) * sizeof(*f->way) + 1);
    f->oldest = h->alloc(h, (uint64_t)n * sizeof(*f->oldest) + 1);
    if (f->way == NULL || f->oldest == NULL) {
        following_fini(f);
        return DT_FAIL_H(h, DT_ENOMEM, "no memory for the last %lld frames of %lld vehicles", (long long)K,
                         (long long)n);
    }
    for (int64_t i = 0; i < n; i++) {
        walk_back(f, v, scene, frame, i);
    }
    return DT_OK;
}

void following_fini(following *f)
{
    if (f->h != NULL) {
        f->h->release(f->h, f->way);
        f->h->release(f->h, f->oldest);
    }
    *f = (following){0};
}

static double distance_back(const following *f, int64_t i, double t)
{
    const double *way = f->way + i * (f->K + 1), k = t / f->frame_s;
    if (k >= (double)f->K) {
        return way[f->K] + f->oldest[i] * (t - (double)f->K * f->frame_s);
    }
    const int64_t lo = (int64_t)k;
    return way[lo] + (k - (double)lo) * (way[lo + 1] - way[lo]);
}

/* Seconds after which it repeats what vehicle i did, -1: it does not follow. */
static double delay_of_follower(const following *f, int64_t i, double gap)
{
    const double *way = f->way + i * (f->K + 1), wanted = gap - STAND_M;
    double tau = 0;
    if (wanted > way[f->K]) {
        tau = f->oldest[i] > 0 ? (double)f->K * f->frame_s + (wanted - way[f->K]) / f->oldest[i] : INFINITY;
    } else if (wanted > 0) {
        int64_t k = 1;
        while (way[k] < wanted) {
            k++;
        }
        const double step = way[k] - way[k - 1]; /* above 0: way[k - 1] < wanted <= way[k] */
        tau = ((double)k - (way[k] - wanted) / step) * f->frame_s;
    }
    return tau > MOST_TAU_S ? -1 : fmax(tau, LEAST_TAU_S);
}

double following_distance(const following *f, const follower *chain, int n, double t)
{
    double way = 0;
    for (int i = 0; i + 1 < n; i++) {
        const int64_t j = chain[i + 1].i;
        const double tau = delay_of_follower(f, j, chain[i].gap);
        if (tau < 0) {
            return way + chain[i].speed * t;
        }
        if (t <= tau) {
            return way + distance_back(f, j, tau) - distance_back(f, j, tau - t);
        }
        way += distance_back(f, j, tau);
        t -= tau;
    }
    return way + chain[n - 1].speed * t;
}
