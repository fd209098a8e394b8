/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of constrained policy optimisation (Achiam et al. 2017, arXiv 1705.10528) over the parameters that policy_loss
 * depends on, the vector of svc/train.h. With x = 0 at the policy that collected the round:
 *
 *   g, b    gradients of the surrogates, the means of ratio A and ratio A_k for one cost k
 *   H       Hessian of the mean KL divergence, from its samples (ratio - 1) - log ratio, plus damping: a product with
 *           it is a difference of two gradients; H^-1 g and H^-1 b by conjugate gradients
 *   x       maximises g'x where c + b'x <= 0 and x'Hx / 2 <= max_kl, in closed form (appendix 10.2 of the paper): with
 *           u = H^-1 g and w = H^-1 b it is (u - nu w) / lambda, a sum along_g u + along_b w
 *   search  backtracking: the longest of x, backtrack x, backtrack^2 x, ... with a divergence of at most max_kl, a gain
 *           unless the limit is exceeded, and no cost above its limit that was below it; else parameters do not change
 *
 * Sums have the order of the host's shards: results are bit-identical for all threads and ranks. Threads:
 * [main][collective].
 */
#ifndef DTRAIN_PHASES_PHASE3_TRUST_REGION_H
#define DTRAIN_PHASES_PHASE3_TRUST_REGION_H

#include "dtrain/helpers.h"
#include "dtrain/svc/train.h"

enum {
    TRUST_REGION_FREE,    /* the optimum within the divergence satisfies the constraint: nu = 0 */
    TRUST_REGION_BOUND,   /* the constraint is active */
    TRUST_REGION_RECOVER, /* no step satisfies it: the one that lowers the cost most */
};

typedef struct trust_region_numbers {
    double q, r, s; /* q, s >= 0; s = 0: no step changes the cost */
    double c;       /* how far the cost is above its limit, in the unit of b'x; -INFINITY: it has none */
    double delta;   /* > 0 */
} trust_region_numbers;

typedef struct trust_region_solution {
    int kind; /* TRUST_REGION_* */
    double along_g, along_b;
    double lambda, nu; /* multipliers of divergence and constraint; of a recovery nu is INFINITY */
    double gain;       /* g'x */
} trust_region_solution;

typedef struct trust_region_config {
    double max_kl, damping, backtrack;
    int64_t cg_iterations, line_search_steps;
} trust_region_config;

typedef struct trust_region { /* zeroed before init */
    const dt_host *h;
    const dt_train_api *train;
    dt_train *trainer;
    trust_region_config config;
    uint32_t n_costs;
    uint64_t n;                           /* parameters */
    float *origin, *point, *plus, *minus; /* [n] */
    double *g, *b, *u, *w, *x;            /* [n], the names of the formulas; u, w: H^-1 g, H^-1 b */
    double *residual, *direction, *image;
    double move; /* length of the next difference */
} trust_region;

typedef struct trust_region_report {
    trust_region_solution solution;
    double share; /* of x that was taken; 0: no step */
    double kl;    /* of the step taken */
    double gain;  /* of the surrogate of the reward */
} trust_region_report;

/* trainer: records policy_loss (step input advantage_mix [1 + n_costs]) and approx_kl. Errors: DT_ENOMEM. */
dt_status trust_region_init(trust_region *t, const dt_host *h, const dt_train_api *train, dt_train *trainer,
                            const trust_region_config *c, uint32_t n_costs);
void trust_region_fini(trust_region *t);
/* excess [n_costs]: how far each cost is above its limit, as a mean over rows; NAN: it has no limit. k: the cost that
 * bounds the step, -1: none. Leaves advantage_mix at the reward alone. Errors: those of the trainer. */
dt_status trust_region_step(trust_region *t, const double *excess, int64_t k, trust_region_report *out);
/* The step x from q = g'u, r = g'w, s = b'w alone. Threads: any. */
trust_region_solution trust_region_solve_dual(const trust_region_numbers *n);
/* out = (H + damping) v at the parameters that the trainer has in origin. [n] each. */
dt_status trust_region_hessian_product(trust_region *t, const double *v, double *out);

#endif
