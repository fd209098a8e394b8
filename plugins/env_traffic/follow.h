/* SPDX-License-Identifier: Apache-2.0
 *
 * Car following: the acceleration of a vehicle behind another one. Pure functions, inlined into the loops over lanes.
 *
 *   IDM      Treiber, Hennecke & Helbing 2000, "Congested traffic states in empirical observations and microscopic
 *            simulations", eqs. 2 and 3:
 *                dv/dt = a [1 - (v / v0)^4 - (s* / s)^2],   s* = s0 + max(0, v T + v (v - v_leader) / (2 sqrt(a b)))
 *            with two bounds: where a lower limit makes v > v0 the first part brakes by b at most, and no vehicle
 *            brakes harder than BRAKE_MAX.
 *   Krauss   Krauss 1998, "Microscopic modeling of traffic flow", eqs. 3.1 to 3.4, in the form that SUMO documents
 *            (gap less the standing distance, reaction time T):
 *                v_safe = v_leader + (g - v_leader T) / ((v + v_leader) / (2 b) + T)
 *                v_next = max(0, min(v0, v + a dt, v_safe) - sigma a dt random)
 *            The random part is subtracted by the caller, after all leaders and lines have been looked at.
 */
#ifndef DTRAIN_ENV_TRAFFIC_FOLLOW_H
#define DTRAIN_ENV_TRAFFIC_FOLLOW_H

#include <math.h>
#include <stdint.h>

#define BRAKE_MAX 9.0  /* m/s^2, what tyres on dry asphalt give */
#define GAP_LEAST 0.01 /* m, nothing is closer as far as the formulas go */
#define FREE_GAP  1e6  /* m, of a vehicle without a leader */

enum { MODEL_IDM, MODEL_KRAUSS };

typedef struct driver {
    double T, a, b, s0; /* s, m/s^2, m/s^2, m */
    double over_2_ab;   /* 1 / (2 sqrt(a b)) */
    double dt;          /* s, step of the simulation */
    uint32_t model, reserved;
} driver;

static inline double most(double a, double b)
{
    return a > b ? a : b;
}

static inline double least(double a, double b)
{
    return a < b ? a : b;
}

static inline double idm(const driver *d, double v, double want, double gap, double leader)
{
    const double s = most(gap, GAP_LEAST);
    const double ratio = v / want, r2 = ratio * ratio;
    const double desired_gap = d->s0 + most(0, v * d->T + v * (v - leader) * d->over_2_ab);
    const double near = desired_gap / s;
    const double free = most(d->a * (1 - r2 * r2), -d->b);
    return most(free - d->a * near * near, -BRAKE_MAX);
}

static inline double krauss(const driver *d, double v, double want, double gap, double leader)
{
    const double safe = leader + (gap - d->s0 - leader * d->T) / ((v + leader) / (2 * d->b) + d->T);
    const double top = most(want, v - d->b * d->dt); /* a lower limit is no reason to brake harder than b */
    const double next = most(0, least(least(top, v + d->a * d->dt), safe));
    return most((next - v) / d->dt, -BRAKE_MAX);
}

static inline double follow(const driver *d, double v, double want, double gap, double leader)
{
    return d->model == MODEL_IDM ? idm(d, v, want, gap, leader) : krauss(d, v, want, gap, leader);
}

#endif
