/* SPDX-License-Identifier: Apache-2.0
 *
 * See trust_region_dual.h. The problem is convex, so cases can be told by what they say of x, without comparing dual
 * values: if the optimum without the constraint meets it, that is the optimum; if the plane c + b'x = 0 does not cut
 * the ball, no step meets it; else the optimum lies on both.
 */
#include "trust_region_dual.h"

#include <math.h>

#define PARALLEL 1e-12 /* g is a multiple of b where what of q is not along b is less than this share */

static trust_region_solution solution(int kind, double along_g, double along_b, const trust_region_numbers *n)
{
    return (trust_region_solution){
        .kind = kind, .along_g = along_g, .along_b = along_b, .gain = along_g * n->q + along_b * n->r};
}

trust_region_solution trust_region_solve(const trust_region_numbers *n)
{
    /* x = u sqrt(2 delta / q) */
    const double reach = n->q > 0 ? sqrt(2 * n->delta / n->q) : 0;
    const double room = n->s > 0 ? 2 * n->delta - n->c * n->c / n->s : 0;
    if (n->c + n->r * reach <= 0 || !(n->s > 0) || (n->c <= 0 && room <= 0)) {
        trust_region_solution x = solution(TRUST_REGION_FREE, reach, 0, n);
        x.lambda = reach > 0 ? 1 / reach : 0;
        return x;
    }
    /* the least of c + b'x in the ball is c - sqrt(2 delta s) */
    if (room <= 0) {
        trust_region_solution x = solution(TRUST_REGION_RECOVER, 0, -sqrt(2 * n->delta / n->s), n);
        x.lambda = sqrt(n->s / (2 * n->delta));
        x.nu = INFINITY;
        return x;
    }
    /* lambda^2 = (q - r^2 / s) / (2 delta - c^2 / s),  nu = (lambda c + r) / s */
    const double across = n->q - n->r * n->r / n->s;
    trust_region_solution x;
    if (across > PARALLEL * n->q) {
        const double lambda = sqrt(across / room), nu = (lambda * n->c + n->r) / n->s;
        x = solution(TRUST_REGION_BOUND, 1 / lambda, -nu / lambda, n);
        x.lambda = lambda;
        x.nu = nu;
    } else { /* all of the plane is as good: its nearest point */
        x = solution(TRUST_REGION_BOUND, 0, -n->c / n->s, n);
        x.lambda = 0;
        x.nu = n->r / n->s;
    }
    return x;
}
