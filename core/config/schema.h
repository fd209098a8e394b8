/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's own sections: one struct each, filled by dt_config_section(c, phase, "<section>", ...) or, shorter, by
 * the functions below. Meaning, unit, default and range of every key are in schema.c. Threads: [main].
 */
#ifndef DTRAIN_CORE_CONFIG_SCHEMA_H
#define DTRAIN_CORE_CONFIG_SCHEMA_H

#include "base/choices.h"
#include "config/options.h"

enum { DT_REDUCTION_EXACT, DT_REDUCTION_FAST };
enum { DT_COMM_AUTO, DT_COMM_NULL, DT_COMM_SIM, DT_COMM_MPI, DT_COMM_NCCL };
enum { DT_ISOLATION_AUTO, DT_ISOLATION_THREAD, DT_ISOLATION_PROCESS };
enum { DT_AMP_BF16, DT_AMP_FP16 };
enum { DT_AMP_SCALING_AUTO, DT_AMP_SCALING_NONE, DT_AMP_SCALING_STATIC, DT_AMP_SCALING_DYNAMIC };
enum { DT_AMP_CONSECUTIVE, DT_AMP_UNTIL_GROWTH };
enum { DT_HAND_ON_LAST, DT_HAND_ON_BEST };

typedef struct dt_root_opts { /* keys outside any section */
    int64_t seed;
} dt_root_opts;

enum { DT_BATCH_AUTO = 0 };
typedef struct dt_data_opts {
    const char *store;  /* "" = the recording that comes with dtrain */
    const char *source; /* id of a data component */
    int64_t batch;      /* DT_BATCH_AUTO: it is still to be chosen, run/batch_auto.h */
    int64_t batch_max, shards, prefetch, workers;
    uint32_t sampling; /* dt_sampling */
    uint8_t drop_last;
    double replay_mb;
    const char *stream; /* "": none */
    int64_t window;
    double stream_timeout, stream_room; /* s, 0: none; 1 */
} dt_data_opts;

typedef struct dt_training_opts {
    int64_t epochs, warmup_epochs, eval_interval, save_interval, accumulation, retries;
    double learning_rate, weight_decay, gradient_clip;
    uint32_t optimizer, scheduler; /* dt_optimizer, dt_schedule_kind */
    double beta1, beta2, eps, momentum;
    int64_t t_max; /* epochs; 0 = to the end of the phase */
    double eta_min;
    int64_t step_size; /* epochs */
    double step_gamma;
    const char *const *freeze;        /* patterns over <role>.<parameter>, or a role alone */
    const char *const *freeze_loaded; /* roles */
} dt_training_opts;

typedef struct dt_amp_opts {
    uint8_t enabled;
    uint32_t dtype;   /* DT_AMP_* */
    uint32_t scaling; /* DT_AMP_SCALING_*; auto is resolved: dynamic for fp16, none for bf16 */
    double initial_scale, static_scale, min_scale, max_scale, growth_factor, backoff_factor;
    int64_t growth_interval, hysteresis;
    uint32_t hysteresis_mode; /* DT_AMP_CONSECUTIVE, DT_AMP_UNTIL_GROWTH */
    int64_t max_skips;
} dt_amp_opts;

typedef struct dt_checkpoint_opts {
    int64_t every_steps, every_seconds, keep_last, wait_s;
    double shard_mb;        /* 0: never */
    int64_t mirror_seconds; /* 0: never */
    const char *best_by;    /* "", a result of evaluation, or min: and one */
    uint32_t hand_on;       /* DT_HAND_ON_* */
} dt_checkpoint_opts;

typedef struct dt_engine_opts {
    int64_t threads, slice_rows; /* 0 = chosen by the host */
    uint8_t reuse, poison, recompute;
    const char *const *recompute_roles; /* empty = all */
    uint32_t reduction;                 /* DT_REDUCTION_* */
    const char *device;                 /* auto, cpu, cuda, cuda:N, cuda:GPU-<uuid> */
    uint8_t graphs, synchronous, tf32;
    int64_t micro_shards; /* 0 = as many as fit */
    int64_t in_flight;
} dt_engine_opts;

typedef struct dt_memory_opts {
    double target_gb, vram_gb; /* 0 = what there is */
    double warn_fraction, shed_fraction, watch_s;
} dt_memory_opts;

typedef struct dt_comm_opts {
    uint32_t backend; /* DT_COMM_* */
    int64_t ranks;
    double timeout_s, bucket_mb;
    int64_t check_every;
    uint32_t wire; /* dt_half */
    const char *const *shard_weights;
    uint32_t n_weights; /* of shard_weights, which are checked; 0: evenly */
} dt_comm_opts;
/* out [n_weights]. */
void dt_comm_list_weights(const dt_comm_opts *o, uint32_t *out);

typedef struct dt_env_opts {
    const char *id;
    const char *const *mix; /* mix.h */
    int64_t instances;
    uint32_t isolation;
    int64_t workers; /* threads that step environments, 0: the training threads do; or processes, 0: engine.threads */
    double timeout_s, startup_timeout_s;
    double ring_mb;
    int64_t restarts;
} dt_env_opts;

typedef struct dt_opponents_opts { /* which policies play the teams that do not learn */
    int64_t pool, every, learner;
    double latest;
    const char *target; /* "": the pool */
} dt_opponents_opts;

typedef struct dt_rollouts_opts { /* what a phase leaves of what it did */
    int64_t keep;                 /* samples; 0: nothing */
} dt_rollouts_opts;

typedef struct dt_metrics_opts {
    uint8_t tensorboard;
    int64_t histogram_every;
    double device_every_s; /* 0: never */
} dt_metrics_opts;

typedef struct dt_log_opts { /* of train.log, error.log and metrics.jsonl */
    double max_mb;
    int64_t keep, every;
} dt_log_opts;

typedef struct dt_report_opts {
    uint8_t enabled;
} dt_report_opts;

enum { DT_FOLDS_AUTO, DT_FOLDS_HELD, DT_FOLDS_ALL };
enum { DT_EVALUATION_MAX_SEEDS = 64 };
typedef struct dt_evaluation_opts { /* of a policy in its environment */
    const char *seeds;              /* "1,2,3" */
    int64_t episodes;               /* per seed */
    int64_t max_steps;              /* of an episode in an environment without an end of its own */
    uint8_t greedy;
    const char *baselines;  /* "auto", or ids with commas between */
    const char *const *env; /* evaluation_env.h */
    uint32_t folds;         /* DT_FOLDS_* */
    uint32_t n_seeds;       /* seeds, read */
    uint64_t seed[DT_EVALUATION_MAX_SEEDS];
} dt_evaluation_opts;

/* One entry of phases. */
typedef struct dt_phase_opts {
    const char *plugin; /* file or id */
    const char *init;   /* "random", "previous", a checkpoint, or "": previous, random in the first phase of a run */
    const char *const *freeze; /* roles or patterns, in addition to training.freeze */
    const char *const *fresh;  /* roles */
} dt_phase_opts;
typedef struct dt_stop_opts { /* its stop group; 0 = no limit */
    int64_t epochs, iterations, steps;
    double time;                 /* s */
    const char *metric;          /* a result of evaluation, "": none; without its prefix "min:" */
    const char *training_metric; /* the same of what training records, without "train/"; one of the two is "" */
    double above, below;
    int64_t patience; /* evaluations without an improvement by more than min_delta */
    double min_delta;
    bool has_above, has_below, is_min;
} dt_stop_opts;

/* Of what training records: does it depend on the machine, or on how many processes there are? */
bool dt_config_is_measured_metric(const char *name);

typedef struct dt_sections { /* the host's sections as a phase sees them */
    dt_data_opts data;
    dt_training_opts training;
    dt_amp_opts amp;
    dt_engine_opts engine;
    dt_memory_opts memory;
    dt_comm_opts comm;
    dt_env_opts env;
    dt_opponents_opts opponents;
    dt_rollouts_opts rollouts;
    dt_evaluation_opts evaluation;
    dt_checkpoint_opts checkpoint;
    dt_phase_opts phase;
    dt_stop_opts stop;
} dt_sections;

bool dt_config_is_host_section(const char *name); /* also "phases" and keys outside any section: no id of a component */

const char *dt_config_host_section(uint32_t i); /* its name, in the order of schema.c; NULL after the last one */

dt_status dt_config_root(dt_config *c, dt_root_opts *out_p) DT_NODISCARD;
dt_status dt_config_data(dt_config *c, int64_t phase, dt_data_opts *out_p) DT_NODISCARD;
dt_status dt_config_training(dt_config *c, int64_t phase, dt_training_opts *out_p) DT_NODISCARD;
dt_status dt_config_amp(dt_config *c, int64_t phase, dt_amp_opts *out_p) DT_NODISCARD;
dt_status dt_config_checkpoint(dt_config *c, int64_t phase, dt_checkpoint_opts *out_p) DT_NODISCARD;
dt_status dt_config_engine(dt_config *c, int64_t phase, dt_engine_opts *out_p) DT_NODISCARD;
dt_status dt_config_memory(dt_config *c, int64_t phase, dt_memory_opts *out_p) DT_NODISCARD;
dt_status dt_config_comm(dt_config *c, int64_t phase, dt_comm_opts *out_p) DT_NODISCARD;
dt_status dt_config_evaluation(dt_config *c, int64_t phase, dt_evaluation_opts *out_p) DT_NODISCARD;
/* Of the run: no phase has its own. */
dt_status dt_config_metrics(dt_config *c, dt_metrics_opts *out_p) DT_NODISCARD;
dt_status dt_config_log(dt_config *c, dt_log_opts *out_p) DT_NODISCARD;
dt_status dt_config_report(dt_config *c, dt_report_opts *out_p) DT_NODISCARD;
dt_status dt_config_env(dt_config *c, int64_t phase, dt_env_opts *out_p) DT_NODISCARD;
dt_status dt_config_phase(dt_config *c, int64_t phase, dt_phase_opts *out_p, dt_stop_opts *stop_p) DT_NODISCARD;
/* All of them, for an entry of phases. */
dt_status dt_config_sections(dt_config *c, int64_t phase, dt_sections *out_p) DT_NODISCARD;

#endif
