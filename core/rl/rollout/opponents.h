/* SPDX-License-Identifier: Apache-2.0
 *
 * Self-play: the policies of the teams of an environment that do not learn (section opponents). It is the policy as it
 * is now, or an earlier one: of a pool of snapshots, or a target network. A policy is all parameters that act;
 * its step inputs, such as what it explores by, are those of now.
 *
 * The first round takes the first snapshot, and every so many rounds one more, of the parameters that act in that
 * round; a full pool gives up its oldest one. The opponent of an episode follows from the seed and the numbers of
 * instance and episode: with one random number latest or one of the places of the pool, evenly. An episode during which
 * its place gets another snapshot continues against that one. Evaluations play against the policy itself.
 *
 * Opponents' rows are no rows of the data: no statistic, return or count has anything of theirs.
 * Threads: [main] of each rank, except for what acting calls, by track.
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_OPPONENTS_H
#define DTRAIN_CORE_RL_ROLLOUT_OPPONENTS_H

#include "rl/rollout/rollout.h"

typedef struct dt_opponents {
    dt_rollout *r;
    dt_opponents_opts opts;
    uint8_t *is_opponent; /* [n_agents] */
    dt_policy *policy;    /* NULL before prepare */
    uint32_t n;           /* policies: the latest, then the places of the pool, or the target network */
    float **values;       /* [n] arenas of values_bytes */
    size_t values_bytes;
    uint64_t *version; /* [n] of values */
    uint64_t versions; /* given out so far */
    uint64_t added;    /* snapshots so far; number k has place 1 + k % pool */
    uint64_t round;    /* that the last one was taken in */
} dt_opponents;

/* NULL in *out_p: the environment has one team, or the configuration lets the policy play all of them. Errors:
 * DT_ECONFIG (no such team, or none of its places in the evaluations that training makes), DT_ENOMEM. */
dt_status dt_opponents_create(dt_rollout *r, dt_opponents **out_p) DT_NODISCARD;
void dt_opponents_destroy(dt_opponents *o);
/* Their policy was recorded; the tracks are there. Errors: DT_ENOMEM, DT_ECONFIG (no such target network, or it does
 * not hold the controller), which a plan finds too. */
dt_status dt_opponents_prepare(dt_opponents *o) DT_NODISCARD;
void dt_opponents_destroy_policy(dt_opponents *o); /* the policy, and the tracks, go */
/* Errors: DT_ECONFIG (evaluations have no place of the team that learns). */
dt_status dt_opponents_check_evaluation(const dt_opponents *o) DT_NODISCARD;
/* A round is about to be acted by the rollout's policy, which is ready. Errors: DT_ECONFIG (no such target network, or
 * it does not hold the controller). */
dt_status dt_opponents_begin_round(dt_opponents *o) DT_NODISCARD;
/* The same of an evaluation; *with acts there. */
dt_status dt_opponents_begin_evaluation(dt_opponents *o, dt_collect_opponents *with) DT_NODISCARD;
uint32_t dt_opponents_count_snapshots(const dt_opponents *o); /* in the pool */

#endif
