/* SPDX-License-Identifier: Apache-2.0
 *
 * See multiplier.h.
 */
#include "multiplier.h"

#include <math.h>
#include <string.h>

void multiplier_init(multiplier *m, const multiplier_rule *r)
{
    const int is_integrated = r->algorithm == MULTIPLIER_PID || r->algorithm == MULTIPLIER_LAGRANGIAN;
    memset(m, 0, sizeof(*m));
    m->value = m->integral = is_integrated ? fmin(r->start, r->max) : 0;
}

static double smooth(double keep, double before, double now, uint64_t rounds)
{
    return rounds == 0 ? now : keep * before + (1 - keep) * now;
}

/* Stooke et al. 2020, algorithm 2, with smoothed proportional and derivative parts. */
static double pid(multiplier *m, const multiplier_rule *r, double cost, double limit)
{
    const double error = cost - limit;
    double *past = &m->past[m->rounds % (uint64_t)r->delay];
    m->integral = fmin(fmax(0, m->integral + r->ki * error), r->max);
    m->error = smooth(r->error_ema, m->error, error, m->rounds);
    m->cost = smooth(r->cost_ema, m->cost, cost, m->rounds);
    const double rise = m->rounds < (uint64_t)r->delay ? 0 : fmax(0, m->cost - *past);
    *past = m->cost;
    return r->kp * m->error + m->integral + r->kd * rise;
}

void multiplier_update(multiplier *m, const multiplier_rule *r, double cost, double limit)
{
    double next = 0;
    switch (r->algorithm) {
    case MULTIPLIER_PID:
        next = pid(m, r, cost, limit);
        break;
    case MULTIPLIER_LAGRANGIAN:
        next = m->value + r->rate * (cost - limit);
        break;
    case MULTIPLIER_PENALTY: /* slope of penalty * max(0, cost - limit) */
        next = cost > limit ? r->penalty : 0;
        break;
    default: /* minus the slope of log(limit - cost) / t; none outside: as hard as it may be */
        next = cost < limit ? 1 / (r->sharpness * (limit - cost)) : r->max;
    }
    m->value = fmin(fmax(0, next), r->max);
    m->rounds++;
}
