/* SPDX-License-Identifier: Apache-2.0
 *
 * What phase_coma records of a policy and a critic: how it acts, what is learnt, and what it is to learn from. One
 * agent's row, u its choice, o what the others chose, p the policy that acts:
 *
 *   p(a)           (1 - epsilon) softmax(logits)(a) + epsilon / n, over the n choices that the mask allows
 *   A              Q(u, o) - sum_a p(a) Q(a, o)        the counterfactual advantage (Foerster et al. 2018, eq. 4)
 *   policy_loss    -A log p(u), or clipped as PPO's where clip > 0; no gradient flows through A
 *   critic_loss    (Q(u, o) - y)^2, y: field td_target
 *   with a value   V = mean_a Q(a, o) stands in the place of Q(u, o) in critic_loss, and A = y - V
 *   entropy_bonus  -entropy_coef times the entropy of p
 *
 * Fields of the rollout: mask, action_i, log_prob; of the phase: td_target "A 1". Step input: epsilon [choices], each
 * the same. Threads: [main].
 */
#ifndef DTRAIN_PHASES_COMA_LOSS_H
#define DTRAIN_PHASES_COMA_LOSS_H

#include "dtrain/helpers.h"
#include "dtrain/svc/graph.h"

enum { COMA_COUNTERFACTUAL, COMA_VALUE, COMA_NO_BASELINE };

typedef struct coma_loss_config {
    double clip, entropy_coef;
    uint32_t baseline; /* COMA_*; with none A is Q(u, o) */
} coma_loss_config;

typedef struct coma_policy { /* [A, choices] */
    dt_tensor *p, *log_p;    /* log_p is what the host acts by */
} coma_policy;

/* logits [A, choices] of the controller. */
coma_policy coma_record_policy(dt_graph *g, dt_tensor *logits, int64_t n_choices);
/* What the critic q [A, choices] says of the choice that was made, [A, 1]: Q(u, o), or V. */
dt_tensor *coma_record_estimate(const coma_loss_config *c, dt_graph *g, dt_tensor *q);
/* q [A, choices] of the critic. Errors: those of the graph. */
dt_status coma_record_losses(const coma_loss_config *c, dt_graph *g, const coma_policy *p, dt_tensor *q);

#endif
