/* SPDX-License-Identifier: Apache-2.0
 *
 * A stage is one phase on one rank: the phase plugin's instance, the models and data bound to it, its parameters and
 * its trainer, and the dt_host table through which the plugin reaches all that. rank_phase.c drives it; services.c,
 * bind.c and train.c fill its tables. Threads: the rank's main thread, except where a service says [any].
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_STAGE_H
#define DTRAIN_CORE_PLUGIN_SERVICE_STAGE_H

#include "comm/comm.h"
#include "config/judged.h"
#include "config/schema.h"
#include "engine/graph/params.h"
#include "dtrain/svc/datasets.h"
#include "plugin/loader/loader.h"
#include "telemetry/metrics/record.h"
#include "rl/env/vector.h"
#include "plugin/service/roles.h"
#include "train/trainer.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DT_STAGE_MAX_MODELS = 8, DT_STAGE_MAX_DATA = 8, DT_STAGE_MAX_RESULTS = 256 };
enum { DT_STAGE_MAX_DATASETS = 1024 };
enum { DT_STAGE_MAX_OWNED = 4 };
enum { DT_STAGE_MAX_PICTURES = 8192, DT_STAGE_MAX_PICTURE_VALUES = 65536 };

struct dt_model { /* a bound model */
    const dt_loaded *comp;
    void *self, *config;
    const char *role;
    bool created, in_params;
};

struct dt_data {           /* bound data */
    const dt_loaded *comp; /* NULL: the phase's own */
    dt_data_ops own;       /* of those */
    void *self, *config;
    dt_samples source;
    bool created;
};

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

typedef struct dt_env_told { /* an option that training and evaluations need not have in common */
    const dt_option *option;
    const char *value, *trained;
} dt_env_told;

struct dt_env { /* a bound environment */
    struct dt_stage *stage;
    const dt_loaded *comp;
    dt_env_setup training, evaluation; /* evaluation: where those have other options, or training a mix */
    dt_env_setup *judged;              /* of evaluations: one of the two */
    dt_env_entry *mix;                 /* [n_mix] instance i of training is of entry i modulo n_mix; none: of comp */
    dt_vector_kind *kind;              /* [n_kinds] the same for vectors: one where there is no mix */
    uint32_t n_mix, n_kinds;
    dt_env_told told[DT_JUDGED_MAX];
    uint32_t n_told;
    void *self;             /* the first instance, of training */
    uint32_t number;        /* of it in the run */
    const dt_env_ops *ops;  /* of comp */
    bool in_process;        /* instances run in worker processes */
    atomic_uint n_restarts; /* of workers */
    atomic_uint n_cut;      /* episodes that went on behind the last step that the spec allows, or an evaluation */
    dt_layout layout, layout_judged; /* of evaluations: where their options leave teams out, with fewer places */
    dt_env_opts opts;
    int64_t learner; /* the team that learns; -1: all, or there is one */
    bool has_layout, has_layout_judged;
    bool has_options_judged; /* evaluations have options of their own */
};

typedef struct dt_result { /* one part of an evaluation's result */
    char *key;
    double *value;
    uint32_t n, columns; /* columns > 0: a table of n / columns rows */
    bool is_list;
} dt_result;

typedef struct dt_results { /* of the last evaluation, until the next one begins */
    dt_result at[DT_STAGE_MAX_RESULTS];
    uint32_t n;
    dt_result *picture; /* [n_pictures] what it left for pictures */
    uint32_t n_pictures, cap_pictures;
} dt_results;

typedef struct dt_trained_on { /* what the weights of an evaluation are known to have seen */
    const char *stores;        /* digests (store.h), a line each */
    bool is_trained, is_known; /* false, false: nothing was trained */
} dt_trained_on;

struct dt_rollout;

typedef struct dt_stage_rollouts { /* how a phase gets environments to act in; rl/experience/service.h */
    const struct dt_rollout_api *service;
    const struct dt_replay_api *replay;
    void (*beside)(struct dt_rollout *r);  /* after each step of training: what goes on beside it and has no thread */
    void (*settle)(struct dt_rollout *r);  /* before its trainer goes: nothing of it goes on, or needs that */
    void (*destroy)(struct dt_rollout *r); /* what a stage has, or NULL */
    const struct dt_wiring_api *wiring;    /* services on top of it; rl/policy/wiring.h */
    const struct dt_rounds_api *rounds;
} dt_stage_rollouts;

typedef struct dt_stage_owned { /* what a service made for the phase, and how it goes */
    void *p;
    void (*destroy)(void *p);
} dt_stage_owned;

typedef struct dt_stage_desc {
    dt_config *config; /* read-only after checking, except for the cache behind sections */
    dt_loader *loader;
    dt_comm *comm;
    dt_metrics *metrics; /* NULL on ranks other than 0 and where nothing is recorded */
    const dt_loaded *phase;
    const char *demo_store; /* what data.store = "" stands for */
    int64_t index;          /* of the phase in the configuration */
    const char *run_dir;    /* for what is too large for memory; NULL: nowhere */
    uint64_t seed;
    uint32_t threads;                  /* workers of this rank */
    const char *controller;            /* in place of models.controller and without other models; NULL: as configured */
    double frames_every_s;             /* pictures of an evaluated episode (frames.h); 0: a few of it */
    dt_roles loaded;                   /* whose first weights come from a checkpoint */
    const dt_stage_rollouts *rollouts; /* NULL: the phase has no environments */
    const dt_device_ops *device_ops;   /* NULL: the CPU computes */
    dt_device *device;
    const dt_trained_on *judged; /* an evaluation apart from training: what was trained on; NULL: it trains */
    bool (*stops)(void *user);   /* [any] should what takes long and can be done again stop now? NULL: never */
    void *stops_user;
    pthread_mutex_t *config_lock; /* the configuration is used by one rank at a time; held during create */
} dt_stage_desc;

typedef struct dt_stage {
    dt_stage_desc d;
    dt_sections opts; /* of the phase, read by dt_stage_create */
    dt_host host;
    void *self, *config;
    bool created, started;
    bool is_evaluating; /* the phase evaluates, which may be done again; an iteration is not broken off */
    dt_model model[DT_STAGE_MAX_MODELS];
    uint32_t n_models;
    dt_data data[DT_STAGE_MAX_DATA];
    uint32_t n_data;
    dt_env env;
    struct dt_rollout *rollout;
    dt_stage_owned owned[DT_STAGE_MAX_OWNED];
    uint32_t n_owned;
    bool tries_processes;                      /* rl/experience/memory_need.c plays an instance in a process, too */
    struct dt_stream *stream;                  /* what it trains on; NULL: stores of data */
    dt_dataset dataset[DT_STAGE_MAX_DATASETS]; /* that data sources have open */
    uint32_t n_datasets;
    dt_str seen_before; /* digests of stores that the checkpoint was trained on, a line each, and of a stream's */
    dt_param_table params;
    dt_trainer *trainer;
    dt_train_desc train;
    dt_results results;
} dt_stage;

dt_status dt_stage_create(const dt_stage_desc *d, dt_stage **out_p)
    DT_NODISCARD;                                   /* phase create: models and data bound */
dt_status dt_stage_start(dt_stage *s) DT_NODISCARD; /* phase start: arenas and plans */
dt_status dt_stage_iterate(dt_stage *s, dt_progress *out);
dt_status dt_stage_evaluate(dt_stage *s, dt_progress *out); /* DT_EUNSUPPORTED when the phase has no evaluation */
dt_status dt_stage_finish(dt_stage *s) DT_NODISCARD;        /* phase finish, where it has one: the phase is over */
void dt_stage_stop(dt_stage *s); /* phase stop, where it was started; dt_stage_destroy does it too */
void dt_stage_destroy(dt_stage *s);
/* p goes with the stage: after the phase was destroyed, the last one first, before experience, trainer and what is
 * bound. Errors: DT_EINVAL, and then it does not. */
dt_status dt_stage_own(dt_stage *s, void *p, void (*destroy)(void *p)) DT_NODISCARD;
static inline dt_stage *dt_stage_of(const dt_host *h)
{
    return h->priv;
}

/* What the last evaluation reported. */
uint32_t dt_stage_results(const dt_stage *s, const dt_result **out_p);
/* The number of a key; of a list "key/2" is the second, and the key alone the first. With eval/ in front, as records
 * name it, the same. NULL when it was not reported. */
const double *dt_stage_result(const dt_stage *s, const char *key);
/* What was reported, for people: "rmse_m/1..5, nll". */
void dt_stage_result_names(const dt_stage *s, dt_str *out);
/* "return/values": what a mean is of, seed by seed. JSON has it; tables and records have mean and deviation. */
bool dt_result_is_detail(const dt_result *r);
void dt_stage_results_clear(dt_stage *s);

/* services.c */
void dt_services_init(dt_stage *s);
/* host_table.c */
void dt_services_bare(dt_host *h); /* errors, log and memory only: for plugins' init and for checks */
/* bind.c */
extern const struct dt_bind_api dt_bind_service;
void dt_bind_fini(dt_stage *s);
dt_status dt_bind_forward(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                          uint32_t n_out);
/* Could a component's statistics of a column be so? who: the component, for the message. DT_EPLUGIN. */
dt_status dt_bind_check_stat(const char *who, const char *field, uint32_t column, const dt_field_stat *s) DT_NODISCARD;
/* component.c: configuration section of a component, checked, and zeroed state of a first instance. */
dt_status dt_bind_config(dt_stage *s, const dt_loaded *c, const dt_setting *over, uint32_t n_over, void **config,
                         void **self) DT_NODISCARD;
/* idle_options.c: DT_ECONFIG for options that the user set and that have no effect. */
dt_status dt_reject_disabled_options(const dt_stage *s, const dt_loaded *c, const void *config) DT_NODISCARD;
/* over: values that the host and the phase set. */
dt_status dt_reject_overridden_options(const dt_stage *s, const dt_loaded *c, const dt_setting *over, uint32_t n_over)
    DT_NODISCARD;
dt_status dt_reject_stream_options(const dt_stage *s, const dt_data_opts *d) DT_NODISCARD;
dt_status dt_reject_sampling_options(const dt_stage *s, const dt_data *data, const dt_data_opts *d) DT_NODISCARD;
/* bind_env.c */
dt_status dt_bind_env(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_env **out);
const dt_env_spec *dt_bind_env_spec(const dt_env *e);
const char *dt_bind_env_id(const dt_env *e);
uint32_t dt_bind_env_instances(const dt_env *e);
uint32_t dt_bind_env_learners(const dt_env *e); /* 0: no place is of the team that is to learn */
bool dt_env_learns(const dt_env *e, uint32_t place);
/* n more instances, from number first of the run on, each with state of its own; those in processes begin side by side.
 * On failure those that were made stay in self [n, zeroed before], for dt_env_drop; the reason names the instance. */
dt_status dt_env_make(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n, void **self) DT_NODISCARD;
void dt_env_drop(dt_env *e, dt_env_setup *with, uint32_t first, uint32_t n, void *const *self); /* NULL ones: none */
const dt_layout *dt_env_layout(const dt_env *e, const dt_env_setup *of);                        /* once one was made */
/* The first instance, which nobody plays with, made again: where a process can have one alone, or as one of another
 * number. */
dt_status dt_env_remake(dt_env *e, dt_env_setup *with, uint32_t number) DT_NODISCARD;
/* env_mix.c: "3 of cartpole, 3 of snakes:opponent=l2", of all instances of the run; nothing where there is no mix. */
void dt_env_tell_mix(const dt_env *e, dt_str *out);
/* env_judge.c: "teleport_s = -1 (training: 300)", of every option told, ", " between. */
void dt_env_tell(const dt_env *e, dt_str *out);
void dt_bind_env_fini(dt_stage *s);
/* train.c */
extern const struct dt_train_api dt_train_service;

#endif
