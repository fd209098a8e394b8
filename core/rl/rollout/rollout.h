/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files behind service "dtrain.rollout/1" share: rollout.c (life, collect), policy.c (what acts), act.c
 * (acting), evaluate.c, state.c (what a checkpoint keeps), ranks.c (what all ranks know), share.c (the rest, as far as
 * they need it).
 */
#ifndef DTRAIN_CORE_RL_ROLLOUT_ROLLOUT_H
#define DTRAIN_CORE_RL_ROLLOUT_ROLLOUT_H

#include "dtrain/svc/rollout.h"
#include "rl/buffer/normaliser.h"
#include "rl/rollout/checkpoint.h"
#include "rl/rollout/collect.h"
#include "train/policy.h"
#include "train/pool.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DT_ROLLOUT_OUTPUTS = 8 };
extern const char *const dt_rollout_output[DT_ROLLOUT_OUTPUTS + 1]; /* what acting reads; ends with NULL */

/* The episode that an instance plays: enough to play it again. */
typedef struct dt_episode_log {
    uint64_t episode, steps;
    bool is_over;
    char *action; /* [steps, action_bytes] as executed */
    uint64_t cap; /* steps */
} dt_episode_log;

typedef struct dt_answer {                    /* of a place of the policy */
    const dt_view *view[DT_ROLLOUT_OUTPUTS];  /* the actor's outputs */
    const dt_view *kept[DT_ROLLOUT_MAX_KEPT]; /* and what it keeps; NULL: not this one */
} dt_answer;

typedef struct dt_asker { /* a policy as a track asks it */
    struct dt_track *track;
    dt_policy *policy;
    dt_actor actor;
    dt_answer answer[DT_COLLECT_PLACES];
} dt_asker;

/* A thread that acts: instances of its own, the policy on them, and the room for it. Each has a place of the policy on
 * the CPU; on a device there is one track, which has all places. */
typedef struct dt_track {
    dt_rollout *r;
    uint32_t number;
    dt_asker own, opponent;            /* the policy; that of opponents, where there are any */
    void *field[DT_BUFFER_MAX_FIELDS]; /* of one inference, or of a piece of it */
    void *room[DT_SAMPLES_MAX_FIELDS]; /* on a device: where they go, of the piece being packed */
    void *arena;                       /* where field is */
    uint64_t *index;                   /* [instances] scratch */
    dt_collector collector;
    dt_error error; /* of the last collect */
    dt_collect_opponents opponents;
} dt_track;

typedef struct dt_kept_text {
    char name[48], dims[16];
} dt_kept_text;

/* The round that is acted while the one before is learnt from. */
typedef struct dt_rollout_ahead {
    pthread_t thread;
    dt_pool *pool;          /* one thread per track but the first */
    bool is_begun;          /* until a collect takes it */
    bool is_running;        /* there is a thread to wait for */
    atomic_bool is_dropped; /* nobody wants it any more */
    dt_error error;         /* how it ended */
    double beside_s;        /* how long it took, as far as nobody waited for it */
    char *restored;         /* from a checkpoint made in between: by which parameters the next collect acts; or NULL */
    size_t restored_bytes;
} dt_rollout_ahead;

typedef struct dt_round_listener { /* [collective] called with each round, before rewards are normalised */
    void *self;                    /* NULL: there is none */
    dt_status (*collected)(void *self);
    void (*destroy)(void *self); /* with the rollout */
} dt_round_listener;

typedef struct dt_rollout_share { /* of several ranks: samples on their way to where they are learnt from */
    uint32_t *place;              /* [samples] of the round: instance of batch */
    uint64_t room, sent;          /* samples that fit into batch and in, into out */
    uint64_t agreed, agreed_sent; /* and that fit on all ranks, as all of them know */
    char *in, *out;               /* arenas of in_bytes, out_bytes */
    size_t in_bytes, out_bytes;
    dt_comm_out *to;       /* [ranks] */
    dt_comm_in *from;      /* [ranks] */
    dt_samples_part *last; /* [ranks] what lies in batch, if has_last */
    uint64_t last_skipped;
    bool has_last;
} dt_rollout_share;

struct dt_rollout {
    dt_stage *stage;
    dt_env *env;
    dt_rollout_desc d;
    dt_port kept[DT_ROLLOUT_MAX_KEPT]; /* d.kept, copied */
    dt_kept_text kept_text[DT_ROLLOUT_MAX_KEPT];
    dt_port annotation[DT_ROLLOUT_MAX_ANNOTATIONS]; /* d.annotation, copied */
    dt_kept_text annotation_text[DT_ROLLOUT_MAX_ANNOTATIONS];
    const char *keep[DT_ROLLOUT_MAX_KEPT + 1]; /* of these what learning reads, ends with NULL */
    dt_data data;
    dt_buffer buffer; /* of this rank's instances */
    dt_buffer next;   /* the same, of the round ahead */
    dt_buffer rows;   /* of several ranks: of all instances, without what is wide */
    dt_buffer batch;  /* of several ranks: the samples that this one learns from now */
    dt_buffer *all;   /* of all instances: rows, or buffer */
    dt_rollout_share share;
    dt_rollout_ahead ahead;
    uint32_t instances;        /* of all ranks */
    uint32_t first, last;      /* of this rank: [first, last) */
    uint32_t workers;          /* threads that step environments */
    uint32_t in_flight;        /* on a device: places of the policy */
    uint32_t evaluation_steps; /* of an evaluated episode, in an environment that says no end of its own */
    void **self;               /* [last - first] created so far */
    dt_vector *vector;

    struct dt_opponents *opponents; /* NULL: all teams are the policy's own */
    dt_policy *policy;
    dt_track *track; /* [n_tracks] the first one also evaluates */
    uint32_t n_tracks;
    size_t arena_bytes; /* of a track */

    dt_moments obs[DT_ENV_MAX_OBS]; /* of plain ports, where they are normalised */
    float *held[DT_ENV_MAX_OBS];    /* twice shift and scale: of the round being learnt from, of the one ahead */
    uint32_t side;                  /* which of the two was held last */
    dt_moments returns;             /* of discounted returns */
    double *ret;                    /* [instances, places] running discounted return */
    double *carry;                  /* [2, instances, places] scratch */
    double deviation[1 + DT_ENV_MAX_COSTS]; /* of the last round's advantages, before they were normalised */
    uint64_t collects;
    uint64_t env_steps;       /* of all collects together; DT_ENV_STEPS_UNKNOWN */
    dt_episode_log *log;      /* [instances] */
    size_t action_bytes;      /* of all places of an instance */
    struct dt_replay *replay; /* of its rounds; NULL: none */
    void (*destroy_replay)(struct dt_replay *p);
    dt_round_listener listener;
    bool is_squashed;   /* d.squash, where the policy is the phase's own */
    bool wants_frames;  /* the evaluation under way leaves pictures */
    bool told_unplayed; /* that there are episodes without anybody who learns */
    bool is_restored;   /* the logs come from a checkpoint: play them before going on */
};

/* rollout.c */
void dt_rollout_destroy(dt_rollout *r);
dt_status dt_rollout_create(const dt_host *h, dt_env *env, const dt_rollout_desc *d, dt_rollout **out);
dt_data *dt_rollout_data(dt_rollout *r);
dt_status dt_rollout_collect(dt_rollout *r, dt_train *t, dt_rollout_report *out);
dt_status dt_rollout_prepare(dt_rollout *r, dt_trainer *t) DT_NODISCARD; /* records the policy */
dt_status dt_rollout_policy(dt_rollout *r, dt_trainer *t) DT_NODISCARD; /* ready to act with the trainer's parameters */
void dt_rollout_settle(dt_rollout *r); /* nothing goes on, and nothing needs the trainer any more */
/* actor.c */
dt_status dt_rollout_make_policy(dt_rollout *r, dt_trainer *t) DT_NODISCARD;
void dt_rollout_drop_policy(dt_rollout *r);
uint32_t dt_rollout_groups(const dt_rollout *r, uint32_t n); /* into which n instances are to be divided */
/* act.c */
uint64_t dt_rollout_seed(void *user, uint32_t number, uint64_t episode);
/* Rows read from now on are normalised as the statistics say now. */
void dt_rollout_scale(dt_rollout *r, dt_buffer *b);
/* A round acted now by the policy that is ready, into buffer; or in a thread, into next. rest: until the thread ended;
 * wait: and how; take: what it did becomes buffer, and what a checkpoint said of it is over. */
dt_status dt_rollout_act(dt_rollout *r, dt_trainer *t) DT_NODISCARD;
dt_status dt_rollout_ahead_prepare(dt_rollout *r) DT_NODISCARD;
dt_status dt_rollout_ahead_begin(dt_rollout *r, dt_train *t);
void dt_rollout_ahead_beside(dt_rollout *r); /* after a step of learning: on a device it goes on now */
void dt_rollout_ahead_rest(dt_rollout *r);
dt_status dt_rollout_ahead_wait(dt_rollout *r) DT_NODISCARD;
void dt_rollout_ahead_take(dt_rollout *r);
void dt_rollout_ahead_drop(dt_rollout *r); /* no thread goes on after this */
void dt_rollout_ahead_fini(dt_rollout *r);
/* annotate.c */
dt_status dt_rollout_annotate(dt_rollout *r, const char *name, const float *rows, uint64_t n_rows);
dt_status dt_rollout_returns(dt_rollout *r, const float *value, const float *next_value, double gamma, double lambda,
                             float *out, uint64_t n_rows);
void dt_rollout_clear_annotations(dt_rollout *r); /* a new round has none */
/* gather.c: instances [first(rank), first(rank + 1)) are a rank's; the most that one has. */
uint32_t dt_rollout_first(const dt_rollout *r, uint32_t rank);
uint32_t dt_rollout_most(const dt_rollout *r);
dt_status dt_rollout_gather(dt_rollout *r) DT_NODISCARD; /* [collective] rows, of all instances */
/* Of the round that was gathered last: samples in which somebody acted, in order, to sample [all of a round]; and
 * episodes that ended in it. */
uint64_t dt_rollout_list_acted(const dt_rollout *r, uint64_t *sample);
uint64_t dt_rollout_episodes(const dt_rollout *r);
static inline bool dt_rollout_is_counted(uint8_t done) /* an episode ended, and somebody who learns was in it */
{
    return done != 0 && (done & DT_DONE_UNPLAYED) == 0;
}
/* [collective] What was seen joins the statistics; they hold from the next collect on. */
dt_status dt_rollout_learn_observations(dt_rollout *r) DT_NODISCARD;
/* share.c: room for what the trainer wants brought; train/samples.h: bring; the rollout as data. */
dt_status dt_rollout_share_prepare(dt_rollout *r, const dt_trainer *t) DT_NODISCARD;
void dt_rollout_share_fini(dt_rollout *r);
dt_status dt_rollout_bring(void *self, uint64_t skipped, const dt_samples_part *part) DT_NODISCARD;
extern const dt_data_ops dt_rollout_data_ops; /* self is the rollout */
/* checkpoint.c */
/* After a collect: the actions of the episodes that go on. Errors: DT_ENOMEM. */
dt_status dt_rollout_log(dt_rollout *r) DT_NODISCARD;
dt_status dt_rollout_replay(dt_rollout *r) DT_NODISCARD; /* instances go on where the logs end */

#endif
