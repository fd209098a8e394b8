/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic/store/smooth.h"

#include <math.h>

double dt_past_mean_add(dt_past_mean *m, double speed_before, double speed, double seconds, double width)
{
    const double keep = exp(-seconds / width);
    m->sum = m->sum * keep + (speed - speed_before) / seconds;
    m->weight = m->weight * keep + 1.0;
    return m->sum / m->weight;
}

static double difference_of_speed(const double *time, const double *speed, int64_t n, int64_t i)
{
    const int64_t a = i > 0 ? i - 1 : i, b = i < n - 1 ? i + 1 : i;
    return b > a ? (speed[b] - speed[a]) / (time[b] - time[a]) : 0.0;
}

/* With x_j the difference at time t_j, what comes up to i and what comes down to i:
 *   up_i = sum over j <= i of exp(-(t_i - t_j) / width) x_j,   down_i the same over j >= i,
 *   accel_i = (up_i + down_i - x_i) / (the same of ones). */
void dt_smooth_track(const double *time, const double *speed, int64_t n, double width, double *work, double *accel)
{
    double *up = work, *up_weight = work + n;
    for (int64_t i = 0; i < n; i++) {
        const double keep = i > 0 ? exp(-(time[i] - time[i - 1]) / width) : 0.0;
        up[i] = difference_of_speed(time, speed, n, i) + (i > 0 ? keep * up[i - 1] : 0.0);
        up_weight[i] = 1.0 + (i > 0 ? keep * up_weight[i - 1] : 0.0);
    }
    double down = 0.0, down_weight = 0.0; /* of the frames after i */
    for (int64_t i = n - 1; i >= 0; i--) {
        accel[i] = (up[i] + down) / (up_weight[i] + down_weight);
        const double keep = i > 0 ? exp(-(time[i] - time[i - 1]) / width) : 0.0;
        down = keep * (down + difference_of_speed(time, speed, n, i));
        down_weight = keep * (down_weight + 1.0);
    }
}
