/* SPDX-License-Identifier: Apache-2.0
 *
 * Policy, target and losses of phase_coma. For one agent's row with its choice u, the choices o of the others and the
 * policy p:
 *
 *   p(a)           (1 - epsilon) softmax(logits)(a) + epsilon / n, over the n unmasked choices
 *   A              Q(u, o) - sum_a p(a) Q(a, o)        the counterfactual advantage (Foerster et al. 2018, eq. 4)
 *   policy_loss    -A log p(u), or clipped as PPO's where clip > 0; no gradient flows through A
 *   critic_loss    (Q(u, o) - y)^2, y: field td_target
 *   with a value   V = mean_a Q(a, o) replaces Q(u, o) in critic_loss, and A = y - V
 *   entropy_bonus  -entropy_coef times the entropy of p
 *
 * Fields of the rollout: mask, action_i, log_prob; of the phase: td_target "A 1". Step input: epsilon [choices], all
 * equal. Threads: [main].
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
    dt_tensor *p, *log_p;    /* the host samples from log_p */
} coma_policy;

/* logits [A, choices] of the controller. */
coma_policy coma_record_policy(dt_graph *g, dt_tensor *logits, int64_t n_choices);
/* The estimate for the executed choice, [A, 1], from q [A, choices] of the critic: Q(u, o), or V. */
dt_tensor *coma_record_estimate(const coma_loss_config *c, dt_graph *g, dt_tensor *q);
/* q [A, choices] of the critic. Errors: those of the graph. */
dt_status coma_record_losses(const coma_loss_config *c, dt_graph *g, const coma_policy *p, dt_tensor *q);

#endif
