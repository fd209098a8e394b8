/* SPDX-License-Identifier: Apache-2.0
 *
 * Many instances of environments with one layout. A round steps every instance of a group once (an instance whose
 * episode is over is reset instead) and checks all it wrote. Instances depend on their number, the seed and their
 * actions alone: not on groups, workers, or the stepping thread.
 *
 * With workers there are two groups or more, so that one is stepped while the policy looks at another; without, the
 * thread that waits does the work. Instances that run elsewhere (dt_env_async) have no workers: post begins the calls
 * of a group, wait finishes them. A worker without work spins for a few microseconds and then sleeps: a busy neighbour
 * on the machine costs its share, never a barrier's time.
 * Threads: [main]; instances are stepped by workers and by the waiting thread. Without workers every group may be
 * posted and waited for by a thread of its own.
 */
#ifndef DTRAIN_CORE_RL_ENV_VECTOR_H
#define DTRAIN_CORE_RL_ENV_VECTOR_H

#include "base/err.h"
#include "rl/env/layout.h"

#include <stdatomic.h>

/* Instances that run elsewhere: calls of many begin before the first one is waited for. */
typedef struct dt_env_async {
    void (*begin_reset)(void *self, const dt_env_io *io, uint64_t seed);
    void (*begin_step)(void *self, const dt_env_io *io);
    void (*flush)(void *self);                            /* begun calls are on their way */
    dt_status (*finish)(void *self, const dt_env_io *io); /* as reset or step; what io holds is checked (check.h) */
} dt_env_async;

/* Instances of this process that return DT_EBROKEN or DT_EIO are created again; their episode counts as truncated. */
typedef struct dt_vector_restart {
    void *user;
    dt_status (*create)(void *user, uint32_t number, void *self); /* in place of the one that is there [worker] */
    uint32_t most;                                                /* of an instance */
    atomic_uint *n_restarts, *n_lost;                             /* of all instances: added to */
} dt_vector_restart;

typedef struct dt_vector_kind { /* what an instance is one of */
    const char *id;             /* of the environment, for errors */
    const dt_env_ops *ops;
    const dt_env_async *async;        /* NULL: ops. All kinds of a vector have it, or none */
    const dt_vector_restart *restart; /* NULL: such a status is an error of the run */
    uint32_t max_steps; /* of an episode, 0: open. One that would continue past it is truncated there by the vector: its
                         * agents' last observations have a value, and its metrics are unknown */
} dt_vector_kind;

typedef struct dt_instance {
    void *self;
    const dt_vector_kind *kind;
    char *record; /* layout */
    dt_env_io io;
    void *obs[DT_ENV_MAX_OBS];
    uint32_t number; /* in the run */
    bool is_idle;    /* left out of steps */
    bool is_begun;   /* its call runs elsewhere */
    bool is_stepped; /* its step was made together with others: result */
    dt_status result;
    char *kept; /* the record before the step under way, where its kind is restarted */
    uint32_t restarts;
    bool is_over;          /* the next step is a reset */
    bool has_ended;        /* the last step ended an episode: episode_* are its */
    bool is_cut;           /* and it was not the environment that ended it, but max_steps */
    bool is_learnt_from;   /* in the episode an agent acted that is no opponent */
    uint64_t episode;      /* number of the one being played, from 0; 0 before the first reset, too */
    uint64_t episode_step; /* steps made in it */
    uint64_t episodes;     /* begun */
    uint32_t opponent;     /* the policy of its opponents; set and read by the collector */
    double *earned;        /* [2 + n_costs + n_metrics] of the episode so far: return, length, costs, metrics */
    double env_s;          /* spent in it since it was last asked */
} dt_instance;

typedef struct dt_vector dt_vector;

typedef struct dt_vector_desc {
    const dt_vector_kind *kind; /* [n_kinds] of the caller's; instance i of the run is of kind i modulo n_kinds */
    uint32_t n_kinds;
    const dt_layout *layout; /* of all kinds */
    void *const *self;       /* [n] created instances, owned by the caller */
    uint32_t n, first;       /* number of the first in the run */
    uint32_t workers;        /* threads; 0: the waiting thread */
    uint32_t groups; /* how many, with workers at least two, at most n; without workers threads may go through one
                      * each on their own */
    const char *max_steps_from; /* what determines where episodes end, for the warning */
    atomic_uint *n_cut;         /* may be NULL; episodes cut so are added, and the first one is warned of */
    void *user;
    uint64_t (*seed)(void *user, uint32_t number, uint64_t episode); /* of a reset [worker] */
    const uint8_t *is_opponent; /* [n_agents] rewards of these places are not counted; may be NULL */
    bool passes_episode;        /* reset receives how many episodes the instance had before, else always 0 */
} dt_vector_desc;

/* Bytes of arenas that dt_vector_create maps, before rounding each of *arenas_p of them to whole pages. */
size_t dt_vector_bytes(const dt_vector_desc *d, uint32_t *arenas_p);
/* Errors: DT_ENOMEM, DT_EUNSUPPORTED (no thread could be started). */
dt_status dt_vector_create(const dt_vector_desc *d, dt_vector **out_p) DT_NODISCARD;
void dt_vector_destroy(dt_vector *v); /* nothing may be posted */
uint32_t dt_vector_size(const dt_vector *v);
dt_instance *dt_vector_instance(dt_vector *v, uint32_t i);
/* Group g holds instances [begin, end). */
uint32_t dt_vector_count_groups(const dt_vector *v);
void dt_vector_group_range(const dt_vector *v, uint32_t g, uint32_t *begin_p, uint32_t *end_p);

/* Begin a round of a group; from here to wait its instances must not be touched. */
void dt_vector_begin_step(dt_vector *v, uint32_t g);
/* Errors: what an environment returns, or DT_EPLUGIN what is wrong with what it wrote, with environment, instance,
 * episode and step; the first in the order of instances. */
dt_status dt_vector_wait(dt_vector *v, uint32_t g) DT_NODISCARD;
/* Wait for whatever is under way in groups [begin, end), however it ends. */
void dt_vector_drain(dt_vector *v, uint32_t begin, uint32_t end);
/* A round of all groups. */
dt_status dt_vector_step(dt_vector *v) DT_NODISCARD;
/* One instance alone, on the calling thread. */
dt_status dt_vector_step_instance(dt_vector *v, uint32_t i) DT_NODISCARD;

#endif
