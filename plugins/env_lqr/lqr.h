/* SPDX-License-Identifier: Apache-2.0
 *
 * The linear-quadratic regulator of one number, and its solution, which learning is held against. Double throughout.
 *
 *   x' = a x + b u + w,  w ~ N(0, sigma^2)        a step costs x^2 + r u^2        discount gamma
 *
 * The best is u = -K x. With value -P x^2 - c (Bertsekas 1995, section 4.1, discounted):
 *
 *   P = 1 + gamma a^2 P - (gamma a b P)^2 / (r + gamma b^2 P)          K = gamma a b P / (r + gamma b^2 P)
 *   c = gamma (P sigma^2 + c)
 *   Q(x, u) = -(1 + gamma a^2 P) x^2 - 2 gamma a b P x u - (r + gamma b^2 P) u^2 - c
 *
 * Threads: [any].
 */
#ifndef DTRAIN_PLUGINS_ENV_LQR_LQR_H
#define DTRAIN_PLUGINS_ENV_LQR_LQR_H

typedef struct lqr {
    double a, b, r, sigma;
} lqr;

typedef struct lqr_solution {
    double P, K;
    double xx, xu, uu, one; /* of Q: coefficients of x^2, x u, u^2 and 1 */
} lqr_solution;

/* gamma in [0,1). Iterates the equation of P from 0, which rises to its solution. */
static inline lqr_solution lqr_solve(const lqr *s, double gamma)
{
    double P = 0, before = -1;
    while (P > before) {
        const double cross = gamma * s->a * s->b * P;
        before = P;
        P = 1 + gamma * s->a * s->a * P - cross * cross / (s->r + gamma * s->b * s->b * P);
    }
    const double cross = gamma * s->a * s->b * P, uu = s->r + gamma * s->b * s->b * P;
    return (lqr_solution){.P = P,
                          .K = cross / uu,
                          .xx = -(1 + gamma * s->a * s->a * P),
                          .xu = -2 * cross,
                          .uu = -uu,
                          .one = -gamma * P * s->sigma * s->sigma / (1 - gamma)};
}

#endif
