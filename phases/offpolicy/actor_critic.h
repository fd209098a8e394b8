/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of a phase that learns off policy: an actor (role controller) and what stands beside it, wired as
 * svc/wiring.h does, and a critic, which sees what the actor sees and what is done.
 *
 *   observations, embedding, risk, action -> critic -> q [A,Q]       ports: dtrain/roles.h
 *
 * Actions as the critic gets them, [A,P]: for each discrete action a column per choice, 1 for the one taken; then the
 * continuous ones. Those with bounds are -1 at the low and 1 at the high one; those without are as they are. Of an
 * environment's either all have bounds or none has. They are those that were executed: within a shield's bounds, where
 * there is one.
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
    ACTOR_CRITIC_TEXT = 64
};

typedef struct actor_critic {
    const dt_host *h;
    const dt_bind_api *bind;
    const char *phase; /* its id */
    const dt_env_spec *spec;
    dt_wiring *wiring;
    int64_t n_choices, n_actions, n_critics;
    int64_t widest; /* choices of the head that has the most */
    bool is_bounded;
    dt_model *critic;
} actor_critic;

/* r's h, bind, phase and n_critics are set, 0: there is no critic; flags: DT_WIRING_*. Errors: those of wiring;
 * DT_ESHAPE. */
dt_status actor_critic_bind(actor_critic *r, const dt_wiring_api *wiring, uint32_t flags);
dt_status actor_critic_bind_critic(actor_critic *r); /* later, of n_critics estimates */
/* What perception and actor say of what is observed, and of what was a step later, where perception has seen both;
 * shadow: the actor's, NULL: itself. */
dt_status actor_critic_record_policy(const actor_critic *r, dt_graph *g, dt_policy_tensors *out);
dt_status actor_critic_record_next_policy(const actor_critic *r, dt_graph *g, const dt_policy_tensors *now,
                                          const char *shadow, dt_policy_tensors *out);
/* What doing `action` [A,P] is worth where p was said, [A,Q]; prefix "" or "next_"; shadow: the critic's. */
dt_status actor_critic_record_q(const actor_critic *r, dt_graph *g, const char *prefix, const char *shadow,
                                const dt_policy_tensors *p, dt_tensor *action, dt_tensor **q_p);
/* What a shield makes of continuous actions *move_p, as the critic gets them, of which *move_p becomes the sum: the
 * gradient of what is executed goes to what was wanted. Without a shield they stay. */
dt_status actor_critic_apply_shield(const actor_critic *r, dt_graph *g, const char *prefix, const dt_policy_tensors *p,
                                    dt_tensor **move_p);
/* [A,P]: what was done, of the experience. Step input "eye" where there are choices. */
dt_tensor *actor_critic_executed_action(const actor_critic *r, dt_graph *g);
/* Sets that step input, an identity matrix [widest, widest], where there are choices. */
dt_status actor_critic_set_identity(const actor_critic *r, const dt_train_api *train, dt_train *trainer);
/* Each discrete action's columns of logits [A,choices] as probabilities of what mask allows; mask [A,choices]: > 0. */
dt_tensor *actor_critic_masked_softmax(const actor_critic *r, dt_graph *g, dt_tensor *logits, dt_tensor *mask);
/* What 1 is for the critic, in the units of continuous action i. */
double actor_critic_action_scale(const actor_critic *r, uint32_t i);
/* Actions with bounds, from -1..1 to the environment's units. */
dt_tensor *actor_critic_denormalise_action(const actor_critic *r, dt_graph *g, dt_tensor *action);
/* The least of each row of q [A,Q], as [A,1]. */
dt_tensor *actor_critic_min_q(const actor_critic *r, dt_graph *g, dt_tensor *q);

#endif
