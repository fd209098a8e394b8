/* SPDX-License-Identifier: Apache-2.0
 *
 * What a phase trains as a policy, wired: the environment's observations through the models of the roles perception
 * (optional), world (where foresight is on), controller and shield (optional). It knows ports and names; what is learnt
 * from them is in loss.h.
 *
 *   observations -> perception -> embedding [N,H], risk [N]      where models.perception is set
 *   embedding, risk, past -> world -> foresight, foreseen        where foresight is on: foresight.h
 *   observations, embedding, risk, foresight -> controller -> policy         ports: dtrain/shapes.h
 *   observations, foreseen -> shield -> low, high, allow         where models.shield is set: outputs for the host alone
 *
 * Threads: [main].
 */
#ifndef DTRAIN_PHASES_POLICY_WIRING_H
#define DTRAIN_PHASES_POLICY_WIRING_H

#include "foresight.h"

enum { PPO_ROLES = 4, PPO_TEXT = 64 };

typedef struct ppo_wiring {
    const dt_host *h;
    const dt_bind_api *bind;
    const char *env; /* its id */
    const dt_env_spec *spec;
    uint32_t n_choices;                         /* of all heads together */
    int64_t window;                             /* steps of observations that the controller may see, at least 1 */
    const dt_port *own;                         /* each agent's observation of itself */
    dt_model *perception, *controller, *shield; /* NULL where the configuration names none */
    bool has_foresight, imagines;
    foresight foresight;
} ppo_wiring;

typedef struct ppo_policy { /* in a graph; NULL where the environment has no such thing */
    dt_tensor *logits, *mean, *log_std, *value, *cost_value;
    dt_tensor *foreseen; /* with foresight: of the vehicle ahead, [A,2F] */
} ppo_policy;

/* Binds the roles to the environment that bind knows under e, which was bound with foresight_settings where see is on.
 * Errors: those of bind, DT_ESHAPE. */
dt_status ppo_wire(ppo_wiring *w, const dt_host *h, const dt_bind_api *bind, const dt_env *e, int64_t window,
                   const foresight_config *see);
/* The bound models, for dt_train_desc: their number. */
uint32_t ppo_models(const ppo_wiring *w, dt_model *out[PPO_ROLES]);
/* Records all of them, with the outputs that the host acts by. Errors: those of the models. */
dt_status ppo_record_policy(const ppo_wiring *w, dt_graph *g, ppo_policy *out);
/* Is there a shield with a barrier to learn? */
bool ppo_has_barrier(const ppo_wiring *w);
/* The shield's barrier, [A], of what rows observe; prefix "next_": of the rows after them (svc/rollout.h, transitions),
 * for shields whose barrier reads rows of agents alone. foreseen: the policy's, which a shield may want for its bounds,
 * but not for the barrier. */
dt_status ppo_record_barrier(const ppo_wiring *w, dt_graph *g, const char *prefix, dt_tensor *foreseen,
                             dt_tensor **out_p);

#endif
