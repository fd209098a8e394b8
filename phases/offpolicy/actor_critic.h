/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of an off-policy phase: an actor (role controller) with perception and shield, bound by svc/wiring.h, and
 * a critic, which reads the actor's inputs and an action.
 *
 *   observations, embedding, risk, action -> critic -> q [A,Q]       ports: dtrain/roles.h
 *
 * The critic reads normalised actions [A,P]: a one-hot column per choice of each discrete action, then the continuous
 * ones, scaled to -1..1 between their bounds, or unchanged without bounds. Either all actions of an environment have
 * bounds or none has. They are the executed actions, within the bounds of a shield.
 *
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_OFFPOLICY_ROLES_H
#define DTRAIN_PHASES_OFFPOLICY_ROLES_H

#include "dtrain/helpers.h"
#include "dtrain/svc/train.h"
#include "dtrain/svc/wiring.h"
#include <stdbool.h>

enum {
    ACTOR_CRITIC_MAX_ACTIONS = 64, /* continuous */
    ACTOR_CRITIC_MAX_CHOICES = 64, /* of one action */
    ACTOR_CRITIC_MAX_COLUMNS = 256,
    ACTOR_CRITIC_MAX_CRITICS = 8,
};

typedef struct actor_critic {
    const dt_host *h;
    const dt_bind_api *bind;
    const char *phase; /* its id */
    const dt_env_spec *spec;
    dt_wiring *wiring;
    int64_t n_choices, n_actions, n_critics;
    int64_t widest; /* the largest number of choices of a discrete action */
    bool is_bounded;
    dt_model *critic;
} actor_critic;

/* The caller has set h, bind, phase and n_critics (0: no critic); flags: DT_WIRING_*. Errors: those of wiring;
 * DT_ESHAPE. */
dt_status actor_critic_bind(actor_critic *r, const dt_wiring_api *wiring, uint32_t flags);
/* Outputs of perception and actor for the observations, and for the next ones, where perception has seen both; target:
 * the actor's target network, NULL: the actor. */
dt_status actor_critic_record_policy(const actor_critic *r, dt_graph *g, dt_policy_tensors *out);
dt_status actor_critic_record_next_policy(const actor_critic *r, dt_graph *g, const dt_policy_tensors *now,
                                          const char *target, dt_policy_tensors *out);
/* Q(s, action) [A,Q] of every critic; action [A,P], p: outputs of the policy for s; prefix "" or "next_"; target: the
 * critic's target network, NULL: the critic. */
dt_status actor_critic_record_q(const actor_critic *r, dt_graph *g, const char *prefix, const char *target,
                                const dt_policy_tensors *p, dt_tensor *action, dt_tensor **q_p);
/* Clips normalised continuous actions to the shield's bounds, as the host does; the gradient passes through unchanged
 * (straight-through). Without a shield nothing changes. */
dt_status actor_critic_apply_shield(const actor_critic *r, dt_graph *g, const char *prefix, const dt_policy_tensors *p,
                                    dt_tensor **move_p);
/* Executed actions of the buffer, normalised, [A,P]. Step input "eye" if there are discrete actions. */
dt_tensor *actor_critic_executed_action(const actor_critic *r, dt_graph *g);
/* Sets that step input, an identity matrix [widest, widest]. */
dt_status actor_critic_set_identity(const actor_critic *r, const dt_train_api *train, dt_train *trainer);
/* Probabilities of each discrete action from logits [A,choices], 0 where mask [A,choices] is 0. */
dt_tensor *actor_critic_masked_softmax(const actor_critic *r, dt_graph *g, dt_tensor *logits, dt_tensor *mask);
/* Half of the range of continuous action i, 1 without bounds. */
double actor_critic_action_scale(const actor_critic *r, uint32_t i);
/* Normalised continuous actions in the environment's units. */
dt_tensor *actor_critic_denormalise_action(const actor_critic *r, dt_graph *g, dt_tensor *action);
/* Minimum over critics of q [A,Q], as [A,1] (Fujimoto et al. 2018). */
dt_tensor *actor_critic_min_q(const actor_critic *r, dt_graph *g, dt_tensor *q);

#endif
