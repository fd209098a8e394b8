/* SPDX-License-Identifier: Apache-2.0
 *
 * Car following: the acceleration of a vehicle behind another one. Pure functions, inlined into the loops over lanes.
 *
 *   IDM      Treiber, Hennecke & Helbing 2000, "Congested traffic states in empirical observations and microscopic
 *            simulations", eqs. 2 and 3:
 *                dv/dt = a [1 - (v / v0)^4 - (s* / s)^2],   s* = s0 + max(0, v T + v (v - v_leader) / (2 sqrt(a b)))
 *            with two bounds: where a lower limit makes v > v0 the first part brakes by b at most, and no vehicle
 *            brakes harder than BRAKE_MAX.
 *   Krauss   Krauss 1998, "Microscopic modeling of traffic flow", ch. 3, with the exact safe speed of Euler's rule
 *            x += v dt, by which SUMO moves vehicles: the largest speed from which a vehicle that keeps it for T, then
 *            brakes by b in every step, stops s0 behind a leader that brakes by b from now on:
 *                g - s0 + way(v_leader) = v_safe T + way(v_safe),
 *                way(v) = dt sum_{i = 1 ... n} (v - i b dt),   n = floor(v / (b dt))
 *                v_next = max(0, min(v0, v + a dt, v_safe) - sigma a dt random)
 *            Krauss's eq. 3.4 is its limit for small steps; with steps of 1 s, vehicles would creep up to a standing
 *            one for seconds instead of stopping.
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

/* Euler's rule: the way in which a vehicle stops that brakes by b from its next step on. */
static inline double braking_way(const driver *d, double v)
{
    const double less = d->b * d->dt, n = floor(v / less);
    return d->dt * n * (v - 0.5 * less * (n + 1));
}

/* The speed that, kept for T, leads to a stop within `room`; no driver reacts within a step. */
static inline double safe_speed(const driver *d, double room)
{
    const double T = most(d->T, d->dt), less = d->b * d->dt, half = T - 0.5 * d->dt, way = most(room, 0);
    const double n = floor((sqrt(half * half + 2 * d->dt * way / less) - half) / d->dt);
    return (way + 0.5 * less * d->dt * n * (n + 1)) / (T + n * d->dt);
}

static inline double krauss(const driver *d, double v, double want, double gap, double leader)
{
    const double safe = safe_speed(d, gap - d->s0 + braking_way(d, leader));
    const double top = most(want, v - d->b * d->dt); /* a lower limit is no reason to brake harder than b */
    const double next = most(0, least(least(top, v + d->a * d->dt), safe));
    return most((next - v) / d->dt, -BRAKE_MAX);
}

static inline double follow(const driver *d, double v, double want, double gap, double leader)
{
    return d->model == MODEL_IDM ? idm(d, v, want, gap, leader) : krauss(d, v, want, gap, leader);
}

#endif
