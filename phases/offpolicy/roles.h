/* SPDX-License-Identifier: Apache-2.0
 *
 * The models of a phase that learns off policy, wired: an actor (role controller) and a critic, which see what each
 * agent observes in rows of its own, f32, now or an action later.
 *
 *   observations -> controller -> mean, log_std, logits        ports: dtrain/shapes.h
 *   observations, action -> critic -> q [A,Q]
 *
 * Actions as the critic gets them, [A,P]: for each discrete action a column per choice, 1 for the one taken; then the
 * continuous ones. Those with bounds are -1 at the low and 1 at the high one; those without are as they are. Of an
 * environment's either all have bounds or none has.
 *
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_OFFPOLICY_ROLES_H
#define DTRAIN_PHASES_OFFPOLICY_ROLES_H

#include "dtrain/helpers.h"
#include "dtrain/svc/bind.h"
#include <stdbool.h>

enum {
    OFFPOLICY_MAX_ACTIONS = 64, /* continuous */
    OFFPOLICY_MAX_CHOICES = 64, /* of one action */
    OFFPOLICY_MAX_COLUMNS = 256,
    OFFPOLICY_MAX_CRITICS = 8,
    OFFPOLICY_TEXT = 64
};

typedef struct offpolicy_roles {
    const dt_host *h;
    const dt_bind_api *bind;
    const char *phase, *env; /* their ids */
    const dt_env_spec *spec;
    const dt_port *own; /* each agent's observation of itself, [A,D] */
    int64_t D, n_choices, n_actions, n_critics;
    int64_t widest; /* choices of the head that has the most */
    bool is_bounded;
    bool has_spread; /* log_std is wanted, as a function of what is seen: set before */
    bool has_tanh;   /* the phase puts one over the means of actions with bounds: set before */
    dt_model *actor, *critic;
} offpolicy_roles;

typedef struct offpolicy_policy { /* NULL where there is no such thing */
    dt_tensor *mean, *log_std, *logits;
} offpolicy_policy;

/* r's h, bind, phase, n_critics, has_spread and has_tanh are set. Errors: those of bind; DT_ESHAPE, DT_ECONFIG. */
dt_status offpolicy_wire(offpolicy_roles *r, const dt_env *e);
/* What the actor says of what is observed; prefix "" or "next_"; shadow: whose parameters, NULL: the actor's own. */
dt_status offpolicy_act(const offpolicy_roles *r, dt_graph *g, const char *prefix, const char *shadow,
                        offpolicy_policy *out);
/* What doing `action` [A,P] is worth, [A,Q]. */
dt_status offpolicy_judge(const offpolicy_roles *r, dt_graph *g, const char *prefix, const char *shadow,
                          dt_tensor *action, dt_tensor **q_p);
/* [A,P]: what was done, of the experience. Step input "eye" where there are choices. */
dt_tensor *offpolicy_done(const offpolicy_roles *r, dt_graph *g);
/* Values of that step input, [widest, widest]. */
void offpolicy_eye(const offpolicy_roles *r, float *out);
/* Each discrete action's columns of logits [A,choices] as probabilities of what mask allows; mask [A,choices]: > 0. */
dt_tensor *offpolicy_probabilities(const offpolicy_roles *r, dt_graph *g, dt_tensor *logits, dt_tensor *mask);
/* What 1 is for the critic, in the units of continuous action i. */
double offpolicy_unit(const offpolicy_roles *r, uint32_t i);
/* Actions with bounds, from -1..1 to the environment's units. */
dt_tensor *offpolicy_in_units(const offpolicy_roles *r, dt_graph *g, dt_tensor *action);
/* The least of each row of q [A,Q], as [A,1]. */
dt_tensor *offpolicy_least(const offpolicy_roles *r, dt_graph *g, dt_tensor *q);

#endif
