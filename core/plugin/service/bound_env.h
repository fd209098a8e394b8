/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment that a stage has bound: instances, options of training and evaluations, layout. bind_env.c,
 * env_mix.c, env_evaluation.c. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_BOUND_ENV_H
#define DTRAIN_CORE_PLUGIN_SERVICE_BOUND_ENV_H

#include "config/evaluation_env.h"
#include "config/schema.h"
#include "dtrain/svc/bind.h"
#include "plugin/loader/loader.h"
#include "rl/env/vector.h"

#include <stdatomic.h>

struct dt_stage;

typedef struct dt_env_setup { /* with which instances are made */
    void *config;
    dt_str request;     /* what a worker needs to make one */
    uint32_t max_steps; /* of its spec */
} dt_env_setup;

typedef struct dt_env_entry { /* of env.mix */
    const char *text;
    const dt_loaded *comp;
    dt_env_setup setup;
} dt_env_entry;

typedef struct dt_env_evaluation_option { /* an option that training and evaluations need not have in common */
    const dt_option *option;
    const char *value, *trained;
} dt_env_evaluation_option;

typedef struct dt_env_restart { /* of instances in this process, made with a setup */
    struct dt_env *e;
    dt_env_setup *with;
    dt_vector_restart table;
} dt_env_restart;

struct dt_env { /* a bound environment */
    struct dt_stage *stage;
    const dt_loaded *comp;
    dt_env_setup training, evaluation; /* evaluation: where those have other options, or training a mix */
    dt_env_setup *evaluated;           /* of evaluations: one of the two */
    dt_env_entry *mix;                 /* [n_mix] instance i of training is of entry i modulo n_mix; none: of comp */
    dt_vector_kind *kind;              /* [n_kinds] the same for vectors: one where there is no mix */
    uint32_t n_mix, n_kinds;
    dt_env_evaluation_option differing[DT_EVALUATION_OPTIONS_MAX];
    uint32_t n_differing;
    void *self;             /* the first instance, of training */
    uint32_t number;        /* of it in the run */
    const dt_env_ops *ops;  /* of comp */
    bool in_process;        /* instances run in worker processes */
    atomic_uint n_restarts; /* of instances */
    atomic_uint n_lost;     /* of them those that make the run irreproducible */
    bool can_restart;       /* instances that are broken or lost are created again */
    dt_env_restart restart_of_training, restart_of_evaluation;
    atomic_uint n_cut; /* episodes that continued past the last step that the spec allows, or an evaluation */
    dt_layout layout, evaluation_layout; /* of evaluations: where their options leave teams out, with fewer places */
    dt_env_opts opts;
    int64_t learner; /* the team that learns; -1: all, or there is one */
    bool has_layout, has_evaluation_layout;
    bool has_evaluation_options; /* evaluations have options of their own */
};

dt_status dt_bind_env(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_env **out);
const dt_env_spec *dt_bind_env_spec(const dt_env *e);
const char *dt_bind_env_id(const dt_env *e);
uint32_t dt_bind_env_instances(const dt_env *e);
uint32_t dt_bind_env_learners(const dt_env *e); /* 0: no place is of the team that is to learn */
bool dt_env_is_learner(const dt_env *e, uint32_t place);
/* n more instances, from number first of the run on, each with state of its own; processes begin side by side.
 * On failure those that were made stay in self [n, zeroed before], for dt_env_destroy_instances; the reason names the
 * instance. */
dt_status dt_env_create_instances(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n, void **self) DT_NODISCARD;
/* The n instances of training that come after the first one (self); in processes they share its workers. */
dt_status dt_env_create_others(dt_env *e, uint32_t first, uint32_t n, void **self) DT_NODISCARD;
/* Worker processes of n instances of training. */
uint32_t dt_env_count_workers(const dt_env *e, uint32_t n);
void dt_env_destroy_instances(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n,
                              void *const *self); /* NULL ones: none */
/* How instances of this setup in this process are created again; NULL: they are not. */
const dt_vector_restart *dt_env_restart_table(dt_env *e, dt_env_setup *with);
const dt_layout *dt_env_get_layout(const dt_env *e, const dt_env_setup *of); /* once one was made */
/* The first instance, which plays no episode, made again: where a process can have one alone, or as one of another
 * number. */
dt_status dt_env_recreate_first(dt_env *e, dt_env_setup *with, uint32_t number) DT_NODISCARD;
/* env_mix.c: "3 of cartpole, 3 of snakes:opponent=l2", of all instances of the run; nothing where there is no mix. */
void dt_env_describe_mix(const dt_env *e, dt_str *out);
/* env_evaluation.c: "teleport_s = -1 (training: 300)", of every option reported, ", " between. */
void dt_env_describe_evaluation(const dt_env *e, dt_str *out);
void dt_bind_env_fini(struct dt_stage *s);

#endif
