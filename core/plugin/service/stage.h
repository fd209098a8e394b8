/* SPDX-License-Identifier: Apache-2.0
 *
 * A stage is one phase on one rank: the phase plugin's instance, the models and data bound to it, its parameters and
 * its trainer, and the dt_host table through which the plugin reaches all that. rank_phase.c drives it; services.c,
 * bind.c and train.c fill its tables. Threads: the rank's main thread, except where a service is marked [any].
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_STAGE_H
#define DTRAIN_CORE_PLUGIN_SERVICE_STAGE_H

#include "base/fp_mode.h"
#include "comm/comm.h"
#include "config/schema.h"
#include "engine/graph/params.h"
#include "dtrain/svc/datasets.h"
#include "plugin/loader/loader.h"
#include "telemetry/metrics/record.h"
#include "plugin/service/bound_env.h"
#include "plugin/service/results.h"
#include "plugin/service/roles.h"
#include "train/trainer.h"

#include <pthread.h>

enum { DT_STAGE_MAX_MODELS = 8, DT_STAGE_MAX_DATA = 8 };
enum { DT_STAGE_MAX_DATASETS = 1024 };
enum { DT_STAGE_MAX_OWNED = 4 };

struct dt_model { /* a bound model */
    const dt_loaded *comp;
    void *self, *config;
    const char *role;
    bool created;
    bool is_in_trainer;
};

struct dt_data {           /* bound data */
    const dt_loaded *comp; /* NULL: the phase's own */
    dt_data_ops own;       /* of those */
    void *self, *config;
    dt_samples source;
    bool created;
    /* What a phase draws itself (svc/replay.h): a trainer that is about to be created reads it, `samples` in a step;
     * source.count may change. DT_ECONFIG. NULL: a step takes any number. */
    dt_status (*accept_step)(struct dt_data *d, uint64_t samples);
};

typedef struct dt_trained_on { /* what the weights of an evaluation are known to have seen */
    const char *stores;        /* digests (store.h), a line each */
    bool is_trained, is_known; /* false, false: nothing was trained */
} dt_trained_on;

struct dt_rollout;

typedef struct dt_stage_rollouts { /* how a phase gets environments to act in; rl/experience/service.h */
    const struct dt_rollout_api *service;
    const struct dt_replay_api *replay;
    void (*advance)(struct dt_rollout *r); /* after each step of training: what runs in parallel and has no thread */
    void (*finish)(struct dt_rollout *r);  /* before its trainer goes: nothing of it continues, or needs that */
    void (*destroy)(struct dt_rollout *r); /* what a stage has, or NULL */
    const struct dt_wiring_api *wiring;    /* services on top of it; rl/policy/wiring.h */
    const struct dt_rounds_api *rounds;
} dt_stage_rollouts;

typedef struct dt_stage_owned { /* what a service made for the phase, and how it goes */
    void *p;
    void (*destroy)(void *p);
} dt_stage_owned;

typedef struct dt_stage_desc {
    dt_config *config; /* read-only after checking, except for the cache of sections */
    dt_loader *loader;
    dt_comm *comm;
    dt_metrics *metrics; /* NULL on ranks other than 0 and where nothing is recorded */
    const dt_loaded *phase;
    const char *demo_store; /* what data.store = "" means */
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
    const dt_trained_on *trained_on; /* an evaluation apart from training: what was trained on; NULL: it trains */
    bool (*stops)(void *user);       /* [any] should what takes long and can be done again stop now? NULL: never */
    void *stops_user;
    pthread_mutex_t *config_lock; /* the configuration is used by one rank at a time; held during create */
} dt_stage_desc;

struct dt_train { /* a trainer of the phase; its handle in svc/train.h */
    struct dt_stage *stage;
    dt_trainer *trainer;    /* NULL: destroyed */
    dt_param_table *params; /* of the first one: the stage's */
    dt_param_table own;
    dt_train_desc desc;
    char name[32]; /* "": the first */
};

typedef struct dt_stage {
    dt_stage_desc d;
    dt_sections opts; /* of the phase, read by dt_stage_create */
    dt_host host;
    void *self, *config;
    bool created, started;
    dt_status misuse; /* of a call that returns no status; the callback that made it fails */
    char misuse_text[512];
    bool is_evaluating; /* the phase evaluates, which may be done again; an iteration is not broken off */
    dt_model model[DT_STAGE_MAX_MODELS];
    uint32_t n_models;
    dt_data data[DT_STAGE_MAX_DATA];
    uint32_t n_data;
    dt_env env;
    struct dt_rollout *rollout;
    dt_stage_owned owned[DT_STAGE_MAX_OWNED];
    uint32_t n_owned;
    dt_fp_mode fp_mode;                        /* of the program; what the phase changes is set back */
    bool tries_processes;                      /* rl/experience/memory_need.c plays an instance in a process, too */
    struct dt_stream *stream;                  /* what it trains on; NULL: stores of data */
    dt_dataset dataset[DT_STAGE_MAX_DATASETS]; /* that data sources have open */
    uint32_t n_datasets;
    dt_str seen_before;    /* digests of stores that the checkpoint was trained on, a line each, and of a stream's */
    dt_param_table params; /* of train[0], the one that acts */
    dt_trainer *trainer;   /* of train[0] */
    struct dt_train train[DT_TRAIN_MAX_TRAINERS];
    uint32_t n_trains;
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
dt_status dt_stage_take_ownership(dt_stage *s, void *p, void (*destroy)(void *p)) DT_NODISCARD;
/* Parameter i of all trainers, the first one's first; NULL after the last. value_p: its elements, NULL where they are
 * not needed; dt_stage_synchronize comes before. */
const dt_param *dt_stage_param(const dt_stage *s, uint32_t i, float **value_p);
uint32_t dt_stage_n_params(const dt_stage *s);
/* Elements of all but target networks, and of these the trained ones. */
void dt_stage_count_params(const dt_stage *s, int64_t *all_p, int64_t *trained_p);
/* Of every trainer: dt_trainer_synchronize, dt_trainer_discard_prefetched, and so on. */
dt_status dt_stage_synchronize(dt_stage *s) DT_NODISCARD;
void dt_stage_discard_prefetched(dt_stage *s);
dt_status dt_stage_open_moments(dt_stage *s, bool is_gathered) DT_NODISCARD;
void dt_stage_close_moments(dt_stage *s, bool is_changed);
/* Steps that the trainers after the first have made, together. */
uint64_t dt_stage_further_steps(const dt_stage *s);
/* A call that returns no status got what it cannot take, as recorded: the first one is kept. */
void dt_stage_keep_misuse(dt_stage *s);
static inline dt_stage *dt_stage_of(const dt_host *h)
{
    return h->priv;
}

/* First thing of a service that computes: the phase, which calls it, may have changed the mode. */
static inline void dt_stage_restore_fp_mode(const dt_stage *s)
{
    dt_fp_mode_restore(s->fp_mode, s->d.phase->desc.id, "a callback that calls the host");
}

/* services of the files of their names */
extern const struct dt_metrics_api dt_metrics_service;
extern const struct dt_comm_api dt_comm_service;
extern const struct dt_rng_api dt_rng_service;
extern const struct dt_datasets_api dt_datasets_service;
extern const struct dt_bind_api dt_bind_service;
extern const struct dt_train_api dt_train_service;
/* services.c */
void dt_services_init(dt_stage *s);
/* host_table.c */
void dt_host_init(dt_host *h); /* errors, log and memory only: for plugins' init and for checks */
/* bind.c */
void dt_bind_fini(dt_stage *s);
dt_status dt_bind_forward(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                          uint32_t n_out);
/* bind_data.c: members of dt_bind_service. */
dt_status dt_bind_data(const dt_host *h, const dt_setting *overrides, uint32_t n, dt_data **out);
dt_status dt_bind_own_data(const dt_host *h, const dt_data_ops *ops, void *self, dt_data **out);
const dt_port *dt_bind_data_field(const dt_data *d, const char *name);
uint64_t dt_bind_data_count(const dt_data *d);
dt_status dt_bind_data_statistics(const dt_data *d, const char *field, dt_field_stat *out, uint32_t n);
/* Could a component's statistics of a column be so? who: the component, for the message. DT_EPLUGIN. */
dt_status dt_bind_check_stat(const char *who, const char *field, uint32_t column, const dt_field_stat *s) DT_NODISCARD;
/* component.c: configuration section of a component, checked, and zeroed state of a first instance. */
dt_status dt_component_configure(dt_stage *s, const dt_loaded *c, const dt_setting *over, uint32_t n_over,
                                 void **config, void **self) DT_NODISCARD;
/* Ports that the phase hands to a service; what: "kept value". DT_EPLUGIN. */
dt_status dt_stage_check_ports(const dt_stage *s, const char *what, const dt_port *p, uint32_t n) DT_NODISCARD;
/* Options that `who` sets of a component that it binds. DT_EPLUGIN. */
dt_status dt_settings_check(const char *who, const dt_setting *set, uint32_t n) DT_NODISCARD;
/* idle_options.c: DT_ECONFIG for options that the user set and that have no effect. */
dt_status dt_reject_disabled_options(const dt_stage *s, const dt_loaded *c, const void *config) DT_NODISCARD;
/* over: values that the host and the phase set. */
dt_status dt_reject_overridden_options(const dt_stage *s, const dt_loaded *c, const dt_setting *over, uint32_t n_over)
    DT_NODISCARD;
dt_status dt_reject_stream_options(const dt_stage *s, const dt_data_opts *d) DT_NODISCARD;
dt_status dt_reject_sampling_options(const dt_stage *s, const dt_data *data, const dt_data_opts *d) DT_NODISCARD;

#endif
