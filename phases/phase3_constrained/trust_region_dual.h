/* SPDX-License-Identifier: Apache-2.0
 *
 * The step of constrained policy optimisation, in closed form (Achiam et al. 2017, arXiv 1705.10528, appendix 10.2):
 *
 *   maximise g'x   where   c + b'x <= 0   and   x'Hx / 2 <= delta
 *
 * With u = H^-1 g and w = H^-1 b the solution is x = (u - nu w) / lambda, a sum along_g u + along_b w of two vectors
 * that the caller has; here are only the numbers q = g'u, r = g'w, s = b'w. Threads: any.
 */
#ifndef DTRAIN_PHASES_PHASE3_TRUST_REGION_DUAL_H
#define DTRAIN_PHASES_PHASE3_TRUST_REGION_DUAL_H

enum {
    TRUST_REGION_FREE,    /* the best step within the divergence alone keeps the constraint: nu = 0 */
    TRUST_REGION_BOUND,   /* the constraint holds the step back: it is met exactly */
    TRUST_REGION_RECOVER, /* no step meets it: the one that lowers the cost most */
};

typedef struct trust_region_numbers {
    double q, r, s; /* q, s >= 0; s = 0: nothing changes the cost */
    double c;       /* how far the cost is above its limit, in the unit of b'x; -INFINITY: it has none */
    double delta;   /* > 0 */
} trust_region_numbers;

typedef struct trust_region_solution {
    int kind; /* TRUST_REGION_* */
    double along_g, along_b;
    double lambda, nu; /* multipliers of divergence and constraint; of a recovery nu is INFINITY */
    double gain;       /* g'x */
} trust_region_solution;

trust_region_solution trust_region_solve(const trust_region_numbers *n);

#endif
