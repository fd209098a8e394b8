/* SPDX-License-Identifier: Apache-2.0
 *
 * Acting: instances of a vector are stepped under a policy, and a buffer keeps what happened. Threads: [main]; groups
 * of a vector without workers may be collected by a thread each, with a collector each, when no observation is ragged.
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_COLLECT_H
#define DTRAIN_CORE_RL_ROLLOUT_COLLECT_H

#include "base/rng.h"
#include "rl/buffer/buffer.h"
#include "rl/buffer/dist.h"
#include "rl/env/vector.h"
#include "rl/rollout/actor.h"

typedef struct dt_turn { /* of a group: what its last round left is looked at; later its actions are taken */
    uint32_t t, group, begin, end;
    uint32_t place;
    bool infers, is_asked; /* it has values, of agents that the policy is at */
} dt_turn;

/* The policy of the rows of opponents: one of n policies in each instance. */
typedef struct dt_collect_opponents {
    void *user;
    uint32_t n;
    uint32_t (*of)(void *user, const dt_instance *x); /* of an instance in the step to come, below n */
    dt_status (*choose)(void *user, uint32_t policy); /* actor runs as this one from now on */
    dt_actor *actor;                                  /* with one place, if it is asked */
} dt_collect_opponents;

typedef struct dt_collector {
    dt_vector *vector;
    dt_buffer *buffer; /* its instances include those of the vector */
    dt_actor *actor;
    const dt_collect_opponents *opponents; /* NULL: there are none */
    uint64_t *index;                       /* [instances] scratch */
    dt_rng_key key;                        /* of actions; step and sample are set here */
    /* of one instance's actions in the step to come, sample included; NULL: from the numbers of step and instance */
    void (*key_of)(void *user, const dt_instance *x, dt_rng_key *key);
    void *user;
    bool greedy;
    bool is_squashed;          /* dist.h */
    bool reports_activity;     /* to the progress line (base/activity.h) */
    bool bootstraps;           /* infer the values of the state after the last step, too */
    bool (*stops)(void *user); /* asked before every step: true ends the round with DT_EINTERRUPTED; NULL: never */
    void *stops_user;
    double policy_s, wait_s;
    uint32_t step; /* the one it is at, or failed at */

    /* a round of groups from `begin` on, turn by turn */
    uint64_t first_step, at, turns;
    uint32_t begin, groups, places;
    dt_turn turn[DT_ACTOR_PLACES]; /* under way, by place */
    double now;                    /* when the last half of a turn ended */
} dt_collector;

/* buffer steps 0 .. steps of the vector's instances; first_step names the random numbers. Errors: what environments and
 * the policy return, DT_EDIVERGED (outputs that are not finite), DT_EINTERRUPTED (stops requested it). */
dt_status dt_collect_run_round(dt_collector *c, uint64_t first_step) DT_NODISCARD;
/* The same for groups [begin, end) alone; the caller calls dt_buffer_begin_round before and sets is_filled after. */
dt_status dt_collect_groups(dt_collector *c, uint64_t first_step, uint32_t begin, uint32_t end) DT_NODISCARD;
/* The same, turn by turn: a turn is a step of a group. DT_DONE: that was the last. Nothing is under way after the end
 * or an error. */
void dt_collect_begin(dt_collector *c, uint64_t first_step, uint32_t begin, uint32_t end);
dt_status dt_collect_run_turns(dt_collector *c, uint64_t n) DT_NODISCARD;

#endif
