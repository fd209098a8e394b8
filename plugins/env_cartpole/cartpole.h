/* SPDX-License-Identifier: Apache-2.0
 *
 * A pole on a cart, the mechanics alone: a rigid pole hinged without friction on a cart that is pushed left or right.
 * Source: Barto, Sutton & Anderson 1983; constants, the Euler step and the limits are those of Gymnasium's CartPole-v1
 * (Towers et al. 2024). Double throughout. Threads: [any].
 */
#ifndef DTRAIN_PLUGINS_ENV_CARTPOLE_CARTPOLE_H
#define DTRAIN_PLUGINS_ENV_CARTPOLE_CARTPOLE_H

#include <math.h>
#include <stdbool.h>

#define CARTPOLE_GRAVITY     9.8  /* m/s^2 */
#define CARTPOLE_MASS_CART   1.0  /* kg */
#define CARTPOLE_MASS_POLE   0.1  /* kg */
#define CARTPOLE_HALF_POLE   0.5  /* m, half its length */
#define CARTPOLE_FORCE       10.0 /* N */
#define CARTPOLE_STEP_S      0.02
#define CARTPOLE_X_LIMIT     2.4                                /* m */
#define CARTPOLE_THETA_LIMIT (12 * 2 * 3.141592653589793 / 360) /* rad */

typedef struct cartpole {
    double x, x_dot;         /* m, m/s, to the right */
    double theta, theta_dot; /* rad, rad/s, of the pole from upright, to the right */
} cartpole;

/* One step under a push of +-CARTPOLE_FORCE; m, M: masses, l: half length (Florian 2007, without friction):
 *   temp     = (F + m l theta'^2 sin theta) / (m + M)
 *   theta''  = (g sin theta - cos theta temp) / (l (4/3 - m cos^2 theta / (m + M)))
 *   x''      = temp - m l theta'' cos theta / (m + M)
 * then explicit Euler: places move by the old speeds. */
static inline void cartpole_step(cartpole *s, bool to_the_right)
{
    const double mass = CARTPOLE_MASS_CART + CARTPOLE_MASS_POLE, ml = CARTPOLE_MASS_POLE * CARTPOLE_HALF_POLE;
    const double force = to_the_right ? CARTPOLE_FORCE : -CARTPOLE_FORCE;
    const double cosine = cos(s->theta), sine = sin(s->theta);
    const double temp = (force + ml * s->theta_dot * s->theta_dot * sine) / mass;
    const double theta_acc = (CARTPOLE_GRAVITY * sine - cosine * temp) /
                             (CARTPOLE_HALF_POLE * (4.0 / 3.0 - CARTPOLE_MASS_POLE * cosine * cosine / mass));
    const double x_acc = temp - ml * theta_acc * cosine / mass;
    s->x += CARTPOLE_STEP_S * s->x_dot;
    s->x_dot += CARTPOLE_STEP_S * x_acc;
    s->theta += CARTPOLE_STEP_S * s->theta_dot;
    s->theta_dot += CARTPOLE_STEP_S * theta_acc;
}

static inline bool cartpole_has_failed(const cartpole *s)
{
    return s->x < -CARTPOLE_X_LIMIT || s->x > CARTPOLE_X_LIMIT || s->theta < -CARTPOLE_THETA_LIMIT ||
           s->theta > CARTPOLE_THETA_LIMIT;
}

#endif
