/* SPDX-License-Identifier: Apache-2.0
 *
 * A policy as a thread runs it: fields in, outputs row by row. On the CPU it runs at once, in the thread's own place of
 * the policy. On a device it is asked, piece by piece, and answers later: groups of instances take turns at its places,
 * and while some wait for their answer others are stepped and packed. Threads: one at a time.
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_ACTOR_H
#define DTRAIN_CORE_RL_ROLLOUT_ACTOR_H

#include "rl/buffer/buffer.h"
#include "train/policy.h"

enum { DT_ROLLOUT_OUTPUTS = 8, DT_ACTOR_PLACES = 8 };
enum {
    DT_OUT_LOGITS,
    DT_OUT_MEAN,
    DT_OUT_LOG_STD,
    DT_OUT_VALUE,
    DT_OUT_COST_VALUE,
    DT_OUT_LOW,
    DT_OUT_HIGH,
    DT_OUT_ALLOW
};
extern const char *const dt_rollout_output[DT_ROLLOUT_OUTPUTS + 1]; /* what acting reads; ends with NULL */

typedef struct dt_answer {                    /* of a place of the policy */
    const dt_view *view[DT_ROLLOUT_OUTPUTS];  /* the actor's outputs */
    const dt_view *kept[DT_ROLLOUT_MAX_KEPT]; /* and what it keeps; NULL: not this one */
    const dt_view *carried[DT_ROLLOUT_MAX_CARRIED];
} dt_answer;

typedef struct dt_actor {
    dt_policy *policy;
    uint32_t number;    /* on the CPU: its place */
    uint32_t places;    /* at most DT_ACTOR_PLACES; 0: it runs at once */
    uint32_t unit;      /* of places: a group is handed over in pieces of as many instances */
    uint64_t want;      /* fields that it reads */
    void *const *field; /* memory for the rows of one group or piece, by field of the buffer */
    void **room;        /* [DT_SAMPLES_MAX_FIELDS] scratch: where the fields of a piece are packed */
    size_t log_std_row; /* 0: one for all rows */
    dt_answer answer[DT_ACTOR_PLACES];
    /* of the answer that was taken last, all pieces row by row; NULL where the policy has none */
    const float *logits, *mean, *log_std, *value, *cost_value, *low, *high, *allow;
    const float *kept[DT_ROLLOUT_MAX_KEPT]; /* of the buffer's desc.kept */
    const float *carried[DT_ROLLOUT_MAX_CARRIED];
} dt_actor;

/* Outputs of a place of the policy. */
void dt_actor_find_outputs(const dt_policy *p, uint32_t place, dt_answer *out);
/* Runs on the rows in field. */
dt_status dt_actor_run_policy(dt_actor *a, const int64_t *size) DT_NODISCARD;
/* Where the fields of piece i of n go: page-locked memory where it can be packed there. */
void *const *dt_actor_piece_fields(dt_actor *a, uint32_t place, uint32_t i, uint32_t n);
/* Piece i is packed; all n are, and the place begins; its outputs are there. */
dt_status dt_actor_submit_piece(dt_actor *a, uint32_t place, uint32_t i, uint32_t n, const int64_t *size) DT_NODISCARD;
dt_status dt_actor_start_policy(dt_actor *a, uint32_t place, uint32_t n) DT_NODISCARD;
dt_status dt_actor_wait_for_policy(dt_actor *a, uint32_t place) DT_NODISCARD;

#endif
