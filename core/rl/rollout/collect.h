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

enum { DT_COLLECT_PLACES = 8 };

/* The policy; run fills the outputs, row by row, NULL where there is none. One that is asked answers later: groups take
 * turns at its places, and while some of them wait for their answer others are stepped and packed. */
typedef struct dt_actor {
    void *user;
    dt_status (*run)(void *user, const int64_t *size, void *const *field);
    void *const *field; /* room for the rows of one group, per field of the buffer */
    uint32_t places;    /* at most DT_COLLECT_PLACES; 0: it is run, not asked */
    uint32_t unit;      /* a group is handed over in pieces of as many instances */
    /* Where the fields of piece i of n go; it is complete; all are, and the place is at work; and when it is done its
     * outputs are there, all pieces row by row. */
    void *const *(*room)(void *user, uint32_t place, uint32_t i, uint32_t n);
    dt_status (*put)(void *user, uint32_t place, uint32_t i, uint32_t n, const int64_t *size);
    dt_status (*ask)(void *user, uint32_t place, uint32_t n);
    dt_status (*answer)(void *user, uint32_t place);
    uint64_t want;      /* fields that it reads */
    size_t log_std_row; /* 0: one for all rows */
    const float *logits, *mean, *log_std, *value, *cost_value, *low, *high, *allow;
    const float *kept[DT_ROLLOUT_MAX_KEPT]; /* of the buffer's desc.kept */
} dt_actor;

typedef struct dt_turn { /* of a group: what its last round left is looked at; later its actions are taken */
    uint32_t t, group, begin, end;
    uint32_t place;
    bool infers, is_asked; /* it has values, of agents that the policy is at */
} dt_turn;

/* Who acts for the rows of opponents: one of n policies in each instance. */
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
    bool is_squashed;      /* dist.h */
    bool reports_activity; /* to the progress line (base/activity.h) */
    bool bootstraps;       /* infer the values of the state after the last step, too */
    bool (*stops)(
        void *user); /* asked before every step: true ends the round with DT_EINTERRUPTED; NULL: nobody asks */
    void *stops_user;
    double policy_s, wait_s;
    uint32_t step; /* the one it is at, or failed at */

    /* a round of groups from `begin` on, turn by turn */
    uint64_t first_step, at, turns;
    uint32_t begin, groups, places;
    dt_turn turn[DT_COLLECT_PLACES]; /* under way, by place */
    double now;                      /* when the last half of a turn ended */
} dt_collector;

/* buffer steps 0 .. steps of the vector's instances; first_step names the random numbers. Errors: what environments and
 * the policy say, DT_EDIVERGED (outputs that are not finite), DT_EINTERRUPTED (stops said so). */
dt_status dt_collect_run(dt_collector *c, uint64_t first_step) DT_NODISCARD;
/* The same for groups [begin, end) alone; the caller calls dt_buffer_begin before, and sets is_filled afterwards. */
dt_status dt_collect_groups(dt_collector *c, uint64_t first_step, uint32_t begin, uint32_t end) DT_NODISCARD;
/* The same, turn by turn: a turn is a step of a group. DT_DONE: that was the last. Nothing is under way behind the end
 * or an error. */
void dt_collect_open(dt_collector *c, uint64_t first_step, uint32_t begin, uint32_t end);
dt_status dt_collect_turns(dt_collector *c, uint64_t n) DT_NODISCARD;

#endif
