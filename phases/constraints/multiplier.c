/* SPDX-License-Identifier: Apache-2.0 */
#include "multiplier.h"

#include <math.h>
#include <string.h>

#define UNIT_EMA 0.9 /* smoothing of units and costs */

multiplier_rule multiplier_rule_from_config(const multiplier_config *c, uint32_t algorithm)
{
    return (multiplier_rule){.algorithm = algorithm,
                             .start = c->start,
                             .max = c->multiplier_max,
                             .kp = c->kp,
                             .ki = c->ki,
                             .kd = c->kd,
                             .error_ema = c->error_ema,
                             .cost_ema = c->cost_ema,
                             .delay = c->pid_delay};
}

dt_status multiplier_check(const dt_host *h, const char *phase, const multiplier_config *c, uint32_t algorithm)
{
    const bool is_pid = algorithm == MULTIPLIER_PID;
    if (c->multiplier_max <= 0) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "%s.multiplier_max = 0 keeps every multiplier at 0, and limits have no effect; set it above 0",
                         phase);
    }
    if (is_pid && c->start <= 0 && c->kp <= 0 && c->ki <= 0 && c->kd <= 0) {
        return DT_FAIL_H(
            h, DT_ECONFIG,
            "%s.start, kp, ki and kd are all 0: every multiplier stays at 0, and limits have no effect; set "
            "one of them above 0",
            phase);
    }
    if ((is_pid || algorithm == MULTIPLIER_LAGRANGIAN) && c->start > c->multiplier_max) {
        return DT_FAIL_H(h, DT_ECONFIG,
                         "%s.start = %g is above multiplier_max = %g; lower the first or raise the second", phase,
                         c->start, c->multiplier_max);
    }
    return DT_OK;
}

void multiplier_init(multiplier *m)
{
    memset(m, 0, sizeof(*m));
}

static double exponential_average(double keep, double before, double now, uint64_t rounds)
{
    return rounds == 0 ? now : keep * before + (1 - keep) * now;
}

/* Stooke et al. 2020, algorithm 2, with smoothed proportional and derivative parts. */
static double pid_update(multiplier *m, const multiplier_rule *r, double error, double share)
{
    double *past = &m->past[m->rounds % (uint64_t)r->delay];
    m->integral = fmin(fmax(0, m->integral + share * r->ki * error * m->unit), r->max * m->unit);
    m->error = exponential_average(r->error_ema, m->error, error, m->rounds);
    m->cost = exponential_average(r->cost_ema, m->cost, error, m->rounds);
    const double rise = m->rounds < (uint64_t)r->delay ? 0 : fmax(0, m->cost - *past);
    *past = m->cost;
    return m->integral + (r->kp * m->error + r->kd * rise) * m->unit;
}

static double relative_excess(const multiplier *m, double cost, double limit)
{
    const double size = fmax(limit, m->size);
    return size > 0 ? (cost - limit) / size : 0;
}

static double penalty_slope(const multiplier *m, const multiplier_rule *r, double error)
{
    if (r->algorithm == MULTIPLIER_PENALTY) { /* of penalty * max(0, cost - limit) */
        return error > 0 ? r->penalty * m->unit : 0;
    }
    /* minus that of log(limit - cost) / t; the maximum outside */
    return error < 0 ? m->unit / (r->sharpness * -error) : INFINITY;
}

void multiplier_update_in_round(multiplier *m, const multiplier_rule *r, double cost, double limit)
{
    m->value = fmin(penalty_slope(m, r, relative_excess(m, cost, limit)), r->max * m->unit);
}

void multiplier_update(multiplier *m, const multiplier_rule *r, double cost, double limit, double unit, double share)
{
    m->size = exponential_average(UNIT_EMA, m->size, cost, m->rounds);
    m->unit = unit > 0 ? exponential_average(UNIT_EMA, m->unit, unit, m->unit > 0 ? m->rounds : 0) : m->unit;
    const double error = relative_excess(m, cost, limit);
    double next = 0;
    if (m->rounds == 0) { /* the first unit */
        m->value = m->integral = fmin(r->start, r->max) * m->unit;
    }
    switch (r->algorithm) {
    case MULTIPLIER_PID:
        next = pid_update(m, r, error, share);
        break;
    case MULTIPLIER_LAGRANGIAN:
        next = m->value + share * r->rate * error * m->unit;
        break;
    default:
        next = penalty_slope(m, r, error);
    }
    m->value = fmin(fmax(0, next), r->max * m->unit);
    m->rounds++;
}
