/* SPDX-License-Identifier: Apache-2.0
 *
 * Many instances of one environment. A round steps every instance of a group once (an instance whose episode is over is
 * reset instead) and checks all it wrote. Instances depend on their number, the seed and their actions alone: not on
 * groups, workers, or who stepped them.
 * Threads: [main]; instances are stepped by workers.
 */
#ifndef DTRAIN_CORE_ROLLOUT_VECTOR_H
#define DTRAIN_CORE_ROLLOUT_VECTOR_H

#include "base/err.h"
#include "rollout/layout.h"

typedef struct dt_instance {
    void *self;
    char *record; /* layout */
    dt_env_io io;
    void *obs[DT_ENV_MAX_OBS];
    uint32_t number;       /* in the run */
    bool is_idle;          /* left out of steps */
    bool is_over;          /* the next step is a reset */
    bool has_ended;        /* the last step ended an episode: episode_* are its */
    uint64_t episode;      /* number of the one being played, from 0; 0 before the first reset, too */
    uint64_t episode_step; /* steps made in it */
    uint64_t episodes;     /* begun */
    double *earned;        /* [2 + n_costs + n_metrics] of the episode so far: return, length, costs, metrics */
    double env_s;          /* spent in it since it was last asked */
    dt_error *error;       /* of the last step */
} dt_instance;

typedef struct dt_vector dt_vector;

typedef struct dt_vector_desc {
    const char *id; /* of the environment, for errors */
    const dt_layout *layout;
    const dt_env_ops *ops;
    void *const *self; /* [n] created instances, owned by the caller */
    uint32_t n, first; /* number of the first in the run */
    void *user;
    uint64_t (*seed)(void *user, uint32_t number, uint64_t episode); /* of a reset [worker] */
} dt_vector_desc;

/* Errors: DT_ENOMEM. */
dt_status dt_vector_create(const dt_vector_desc *d, dt_vector **out_p) DT_NODISCARD;
void dt_vector_destroy(dt_vector *v);
uint32_t dt_vector_size(const dt_vector *v);
dt_instance *dt_vector_at(dt_vector *v, uint32_t i);
/* Step instances [begin, end); wait for them. Errors: what an environment says, or DT_EPLUGIN what is wrong with what
 * it wrote, with environment, instance, episode and step; the first in the order of instances. */
dt_status dt_vector_step(dt_vector *v, uint32_t begin, uint32_t end) DT_NODISCARD;
/* One instance alone, on the calling thread. */
dt_status dt_vector_advance(dt_vector *v, uint32_t i) DT_NODISCARD;

#endif
