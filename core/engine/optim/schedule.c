/* SPDX-License-Identifier: Apache-2.0
 *
 * Learning-rate schedules. See optim.h.
 */
#include <config.h>

#include "engine/optim/optim.h"

#include <math.h>

/* Warm-up: lr x / warmup. Cosine (Loshchilov & Hutter 2017, eq. 5, one period, PyTorch's CosineAnnealingLR shifted by
 * the warm-up): eta_min + (lr - eta_min)/2 (1 + cos(pi (x - warmup) / (t_max - warmup))).
 * Step: lr gamma^floor(x / size). Linear: from lr to eta_min over the same stretch as the cosine. */
double dt_schedule_rate(const dt_schedule *s, double x)
{
    if (s->warmup > 0 && x < s->warmup) {
        return s->lr * x / s->warmup;
    }
    switch (s->kind) {
    case DT_SCHEDULE_COSINE:
        if (x >= s->t_max) {
            return s->eta_min;
        }
        return s->eta_min + 0.5 * (s->lr - s->eta_min) * (1.0 + cos(M_PI * (x - s->warmup) / (s->t_max - s->warmup)));
    case DT_SCHEDULE_STEP:
        return s->lr * pow(s->gamma, floor(x / s->step_size));
    case DT_SCHEDULE_LINEAR:
        return x >= s->t_max ? s->eta_min : s->lr + (s->eta_min - s->lr) * (x - s->warmup) / (s->t_max - s->warmup);
    case DT_SCHEDULE_CONSTANT:
        break;
    }
    return s->lr;
}
