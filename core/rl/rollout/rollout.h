/* SPDX-License-Identifier: Apache-2.0
 *
 * A rollout collects rounds for a phase: rollout.c drives acting.c (the policy), act.c and ahead.c (a round, now or
 * during learning), collect.c (turns of groups of instances), gather.c, returns.c and round.c; exchange.c presents the
 * round as data; checkpoint.c saves and loads. Each has a struct of its own here.
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_ROLLOUT_H
#define DTRAIN_CORE_RL_ROLLOUT_ROLLOUT_H

#include "dtrain/svc/rollout.h"
#include "rl/rollout/checkpoint.h"
#include "rl/rollout/collect.h"
#include "rl/rollout/episode_log.h"
#include "rl/rollout/exchange.h"
#include "rl/rollout/obs_stats.h"
#include "rl/rollout/returns.h"
#include "rl/rollout/round.h"
#include "train/pool.h"

#include <pthread.h>
#include <stdatomic.h>

/* A thread that acts: instances of its own, the policy on them, and memory for it. Each has a place of the policy on
 * the CPU; on a device there is one track, which has all places. */
typedef struct dt_track {
    dt_rollout *r;
    uint32_t number;
    dt_actor own, opponent;            /* the policy; that of opponents, where there are any */
    void *field[DT_BUFFER_MAX_FIELDS]; /* of one inference, or of a piece of it */
    void *room[DT_SAMPLES_MAX_FIELDS]; /* on a device: where they go, of the piece being packed */
    void *arena;                       /* where field is */
    uint64_t *index;                   /* [instances] scratch */
    dt_collector collector;
    dt_error error; /* of the last collect */
    dt_collect_opponents opponents;
} dt_track;

typedef struct dt_acting { /* instances of this rank and the policy that acts on them */
    dt_vector *vector;     /* NULL before the first round */
    void **self;           /* [instances of this rank] created so far */
    dt_policy *policy;
    dt_track *track; /* [n_tracks] the first one also evaluates */
    uint32_t n_tracks;
    size_t arena_bytes; /* of a track */
    uint32_t workers;   /* threads that step environments */
    uint32_t in_flight; /* on a device: places of the policy */
    bool is_squashed;   /* actions, where the policy is the phase's own */
    bool is_restored;   /* the episodes come from a checkpoint: play them before the first round */
} dt_acting;

typedef struct dt_round_ahead { /* the round that is acted while the one before is used for learning */
    pthread_t thread;
    dt_pool *pool;          /* one thread per track but the first */
    bool is_begun;          /* until a collect takes it */
    bool is_running;        /* there is a thread to wait for */
    atomic_bool is_dropped; /* its result is not needed any more */
    dt_error error;         /* how it ended */
    double hidden_s;        /* how long it took, without the time that was waited for it */
    char *restored;         /* from a checkpoint made in between: by which parameters the next collect acts; or NULL */
    size_t restored_bytes;
} dt_round_ahead;

typedef struct dt_port_text {
    char name[48], dims[16];
} dt_port_text;

typedef struct dt_rollout_ports { /* copies of what the description points to */
    dt_port kept[DT_ROLLOUT_MAX_KEPT], annotation[DT_ROLLOUT_MAX_ANNOTATIONS], carried[DT_ROLLOUT_MAX_CARRIED];
    dt_port_text kept_text[DT_ROLLOUT_MAX_KEPT], annotation_text[DT_ROLLOUT_MAX_ANNOTATIONS];
    dt_port_text carried_text[DT_ROLLOUT_MAX_CARRIED];
    char carried_output[DT_ROLLOUT_MAX_CARRIED][64];
    const char *output[DT_ROLLOUT_OUTPUTS + DT_ROLLOUT_MAX_CARRIED + 1]; /* what acting computes, ends with NULL */
    const char *read[DT_ROLLOUT_MAX_KEPT + 1]; /* of kept those that learning reads, ends with NULL */
} dt_rollout_ports;

typedef struct dt_round_listener { /* [collective] called with each round, before rewards are normalised */
    void *self;                    /* NULL: there is none */
    dt_status (*collected)(void *self);
    void (*destroy)(void *self); /* with the rollout */
} dt_round_listener;

struct dt_rollout {
    dt_stage *stage;
    dt_env *env;
    dt_rollout_desc d;
    dt_rollout_ports ports;
    dt_partition split;
    dt_buffer buffer; /* of this rank's instances */
    dt_buffer next;   /* the same, of the round ahead */
    dt_buffer rows;   /* of several ranks: of all instances, without wide arrays */
    dt_buffer *all;   /* of all instances: rows, or buffer */
    dt_exchange exchange;
    dt_data data;
    dt_acting acting;
    dt_round_ahead ahead;
    struct dt_opponents *opponents; /* NULL: all teams are the policy's own */
    dt_obs_stats stats;
    dt_returns returns;
    dt_episode_logs episodes;
    float *carried; /* [instances, columns of agents] of all ranks: what the next round begins with; NULL: none */
    size_t carried_items;
    uint64_t collects;
    uint64_t env_steps;        /* of all collects together; DT_ENV_STEPS_UNKNOWN */
    uint32_t evaluation_steps; /* of an evaluated episode, in an environment without a limit of its own */
    bool has_warned_unplayed;  /* that there are episodes without a learning agent */
    bool has_warned_unplayed_evaluation;
    struct dt_replay *replay; /* of its rounds; NULL: none */
    void (*destroy_replay)(struct dt_replay *p);
    dt_round_listener listener;
};

/* rollout.c */
dt_status dt_rollout_create(const dt_host *h, dt_env *env, const dt_rollout_desc *d, dt_rollout **out);
void dt_rollout_destroy(dt_rollout *r);
dt_data *dt_rollout_data(dt_rollout *r);
dt_status dt_rollout_collect(dt_rollout *r, dt_train *t, dt_rollout_report *out);
dt_status dt_rollout_prepare(dt_rollout *r, dt_trainer *t) DT_NODISCARD; /* records the policy */
dt_status dt_rollout_begin_policy(dt_rollout *r, dt_trainer *t)
    DT_NODISCARD;                               /* ready to act with the trainer's parameters */
void dt_rollout_release_trainer(dt_rollout *r); /* no round is acted any more, and the trainer is not needed */
/* acting.c */
dt_status dt_acting_create_policy(dt_rollout *r, dt_trainer *t) DT_NODISCARD;
void dt_acting_destroy_policy(dt_rollout *r);
uint32_t dt_acting_groups(const dt_rollout *r, uint32_t n); /* into which n instances are divided */
/* act.c: a round is begun into b, and run. pool: of a round ahead; NULL: the trainer's threads
 * act. Errors: those of environments and the policy; of several the one of the earliest step, as one track would. */
void dt_acting_begin_round(dt_rollout *r, dt_buffer *b, bool (*stops)(void *user), void *stops_user);
dt_status dt_acting_run_round(dt_rollout *r, dt_trainer *t, dt_pool *pool) DT_NODISCARD;
dt_status dt_acting_collect(dt_rollout *r, dt_trainer *t) DT_NODISCARD; /* a round into buffer */
/* ahead.c: a round into next during learning. finish: waits until it is complete; wait: the same, and how it ended;
 * take: next becomes buffer; drop: ends early. */
dt_status dt_round_ahead_prepare(dt_rollout *r) DT_NODISCARD;
dt_status dt_round_ahead_begin(dt_rollout *r, dt_train *t);
void dt_round_ahead_continue(dt_rollout *r); /* after a step of learning: on a device some turns */
void dt_round_ahead_finish(dt_rollout *r);
dt_status dt_round_ahead_wait(dt_rollout *r) DT_NODISCARD;
void dt_round_ahead_swap(dt_rollout *r);
void dt_round_ahead_cancel(dt_rollout *r);
void dt_round_ahead_fini(dt_rollout *r);
/* annotate.c */
dt_status dt_rollout_annotate(dt_rollout *r, const char *name, const float *rows, uint64_t n_rows);
dt_status dt_rollout_compute_returns(dt_rollout *r, const float *value, const float *next_value, double gamma,
                                     double lambda, float *out, uint64_t n_rows);
void dt_rollout_clear_annotations(dt_rollout *r); /* a new round has none */
/* carried.c: of all arrays that a buffer carries, the values that the next round begins with: those of own instances to
 * all ranks, and back. Errors: DT_ENOMEM, those of the exchange. */
dt_status dt_carried_allocate(dt_rollout *r) DT_NODISCARD;
dt_status dt_carried_gather(dt_rollout *r) DT_NODISCARD; /* [collective] */
void dt_carried_restore(dt_rollout *r);
/* gather.c: [collective] rows of own into those of all instances. Errors: DT_ENOMEM, those of the exchange. */
dt_status dt_gather_rows_of_ranks(const dt_partition *split, const dt_buffer *own, dt_buffer *rows) DT_NODISCARD;

#endif
