/* SPDX-License-Identifier: Apache-2.0
 *
 * A pendulum with a weak motor, the mechanics alone. Constants, the semi-implicit Euler step and the cost are those of
 * Gymnasium's Pendulum-v1 (Towers et al. 2024). Double throughout. Threads: [any].
 */
#ifndef DTRAIN_PLUGINS_ENV_PENDULUM_PENDULUM_H
#define DTRAIN_PLUGINS_ENV_PENDULUM_PENDULUM_H

#include <math.h>

#define PENDULUM_GRAVITY 10.0 /* m/s^2 */
#define PENDULUM_MASS    1.0  /* kg */
#define PENDULUM_LENGTH  1.0  /* m */
#define PENDULUM_TORQUE  2.0  /* N m, the most */
#define PENDULUM_SPEED   8.0  /* rad/s, the most */
#define PENDULUM_STEP_S  0.05
#define PENDULUM_PI      3.141592653589793

typedef struct pendulum {
    double theta, theta_dot; /* rad from upright, not wrapped; rad/s */
} pendulum;

/* the same angle in [-pi, pi) */
static inline double pendulum_wrap(double theta)
{
    const double turn = 2 * PENDULUM_PI;
    return theta - turn * floor((theta + PENDULUM_PI) / turn);
}

/* One step under torque u in [-PENDULUM_TORQUE, PENDULUM_TORQUE]; sine: sin(theta), which the caller has anyway.
 * Returns the cost of the state before it:
 *   cost      = wrap(theta)^2 + 0.1 theta'^2 + 0.001 u^2
 *   theta'   += (3 g / (2 l) sin theta + 3 / (m l^2) u) dt,  clipped to +-PENDULUM_SPEED
 *   theta    += theta' dt                                     (the new speed) */
static inline double pendulum_step(pendulum *s, double sine, double u)
{
    const double pull = 3 * PENDULUM_GRAVITY / (2 * PENDULUM_LENGTH);
    const double push = 3.0 / (PENDULUM_MASS * PENDULUM_LENGTH * PENDULUM_LENGTH);
    const double angle = pendulum_wrap(s->theta);
    const double cost = angle * angle + 0.1 * s->theta_dot * s->theta_dot + 0.001 * u * u;
    double speed = s->theta_dot + (pull * sine + push * u) * PENDULUM_STEP_S;
    speed = speed < -PENDULUM_SPEED ? -PENDULUM_SPEED : (speed > PENDULUM_SPEED ? PENDULUM_SPEED : speed);
    s->theta_dot = speed;
    s->theta += speed * PENDULUM_STEP_S;
    return cost;
}

#endif
