/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer: one optimizer step over one global batch, and inference over a data set. It owns the flat arenas, the
 * workers, the feed and the plans of one phase on one rank; phases reach it through svc/train.h.
 *
 * A step: shards of this rank are dealt to workers from a counter; a worker runs the whole plan, forward and backward,
 * slice by slice, into a shard's own gradient buffer; finished shards are summed in the fixed tree (comm/tree.h),
 * first here, then across ranks; then norm, clip and update are single passes over the arenas. Slices, shards and the
 * tree depend on data and configuration alone: threads and ranks change no bit, but where ranks' sums are fast.
 * Threads: [main][collective], except what pool.h runs.
 */
#ifndef DTRAIN_CORE_TRAIN_TRAINER_H
#define DTRAIN_CORE_TRAIN_TRAINER_H

#include "engine/amp/scaler.h"
#include "comm/comm.h"
#include "engine/device/device.h"
#include "dtrain/svc/train.h"
#include "engine/graph/plan.h"
#include "engine/optim/optim.h"
#include "train/sampler.h"

typedef struct dt_trainer dt_trainer;

/* Do gradients travel from device to device by NCCL, where several ranks have one each? */
typedef enum dt_train_nccl { DT_TRAIN_NCCL_NEVER = 0, DT_TRAIN_NCCL_AUTO, DT_TRAIN_NCCL_ALWAYS } dt_train_nccl;

typedef struct dt_trainer_config {
    uint64_t seed;
    uint32_t phase;                     /* index of the phase: part of every random key */
    uint32_t threads, shards, prefetch; /* workers; S; shards read ahead beyond one per worker */
    uint32_t readers;                   /* threads that read ahead; 0: one */
    dt_sampling sampling;               /* of stored data */
    bool keep_last;                     /* of stored data: what is left of an epoch, or all there is, is a smaller
                                         * batch */
    uint64_t batch;                     /* global samples of one optimizer step, accumulation included */
    int64_t slice_rows;
    uint64_t epochs;
    dt_optim_step optim;  /* kind, betas, eps, weight decay, momentum */
    dt_schedule schedule; /* x in epochs */
    double gradient_clip; /* 0: none */
    bool reuse, poison, fuse, recompute;
    const char *const *recompute_roles; /* of which models, ends with NULL; NULL or empty: all; outlives the trainer */
    uint32_t math;                      /* dt_device_math; on the CPU F32 and BF16 */
    dt_scaler_config scaling;           /* of the loss */
    /* on a device: */
    bool graphs;            /* replay captured steps */
    bool synchronous;       /* wait for every kernel, to find faults; for every step where there are graphs */
    bool reads_each_step;   /* a step's result is in its own report, not in that of the next one */
    uint64_t device_budget; /* bytes for activations and inputs; 0: what is free */
    uint32_t nccl;          /* dt_train_nccl; changes no bit of exact sums */
    /* everywhere: */
    uint32_t micro_shards; /* shards at once; 0: as many as fit, on the CPU one per worker */
    uint64_t budget;       /* bytes of the host that the trainer should keep to; 0: open */
    uint64_t bucket_bytes; /* of gradients that ranks sum at a time; changes no bit of exact sums */
    uint32_t half;         /* DT_HALF_*: in which values of the tree are sent, to which they are rounded on any ranks */
    const uint32_t
        *shard_weights; /* [ranks] by which shards are dealt to ranks (dt_tree_partition), NULL: evenly; changes
                                    * no bit of exact sums; read when the trainer is made */
    bool fast_sums;     /* ranks' gradients are summed by their library: other bits on another number of ranks */
} dt_trainer_config;

typedef struct
    dt_target_rule { /* target network += tau (model - target network) after every `every`-th update; 0: never */
    double tau;
    uint64_t every;
} dt_target_rule;

typedef struct dt_trainer_group { /* losses that move the parameters of these roles alone; see svc/train.h */
    const char *name;
    const char *const *role, *const *loss;
    uint32_t n_roles, n_losses;
    double learning_rate; /* 0: the schedule's */
    double gradient_clip; /* 0: as configured, negative: none */
} dt_trainer_group;

typedef struct dt_group_state {
    char *name; /* NULL: there are no groups, which is one of everything */
    double learning_rate, gradient_clip;
    uint64_t updates;
    double norm, rate; /* of the last step that was reported and moved it */
} dt_group_state;

typedef struct dt_trainer_desc {
    const dt_trainer_config *config;
    dt_param_table *params;   /* complete and frozen as wanted; owned by the caller, outlives the trainer */
    const dt_samples *source; /* training data; outlives the trainer */
    dt_comm *comm;
    const dt_device_ops *device_ops; /* NULL: the CPU computes */
    dt_device *device;               /* outlives the trainer */
    const char *apart; /* a loss: step shards the parameters alone that it depends on; NULL: all are step's */
    const dt_trainer_group *group; /* [n_groups], read when the trainer is made; not next to apart */
    uint32_t n_groups;             /* 0: all losses move all parameters */
    const dt_target_rule
        *target; /* [target networks of params], NULL: none moves by itself; read when the trainer is made */
    /* Mixed into source, which is live then: n_stored samples of stored each time it was refilled. NULL: none */
    const dt_samples *stored;
    uint64_t n_stored;
    void *user;
    dt_status (*record)(void *user, dt_graph *g);
    dt_status (*record_stored)(void *user, dt_graph *g); /* of stored, and of all that is evaluated and not live */
    dt_status (*model)(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                       uint32_t n_out);
    bool only_acts; /* no step is made: its losses may move nothing */
} dt_trainer_desc;

typedef struct dt_trainer_memory { /* bytes on this rank */
    uint64_t params, grads, moments, activations, feed;
    uint64_t evaluation, inputs; /* inference over data sets that are prepared, and what it reads */
} dt_trainer_memory;

typedef struct dt_trainer_times { /* of the last step, s */
    double step, data_wait;
    double reduce, share;    /* waiting for sums across ranks after the shards, and for parameters; on the CPU */
    uint32_t buckets, early; /* buckets of gradients; of these under way before the shards were done */
} dt_trainer_times;

/* Errors: DT_EUNSUPPORTED (halves on a device), DT_ECONFIG (batch larger than the data, more ranks than shards, nothing
 * for stored data to train), DT_EINVAL (weights that leave a rank without a shard), what mixing, recording and
 * compiling report. */
dt_status dt_trainer_create(const dt_trainer_desc *d, dt_trainer **out_p) DT_NODISCARD;
void dt_trainer_destroy(dt_trainer *t);
dt_status dt_trainer_step_input_set(dt_trainer *t, const char *name, const float *value, uint32_t n);
/* Its value for acting: evaluations and exports have it in place of the other. */
dt_status dt_trainer_acting_input_set(dt_trainer *t, const char *name, const float *value, uint32_t n);
/* What a policy acts with, [*n_p], until it is set again; NULL: never set. */
const float *dt_trainer_acting_input(const dt_trainer *t, const char *name, uint32_t *n_p);
/* Step input i of those that the last evaluation computed with, and its value then, [*n_p]; NULL after the last. */
const float *dt_trainer_evaluated_input(const dt_trainer *t, uint32_t i, const char **name_p, uint32_t *n_p);
/* What is computed between them is an evaluation: step inputs have their values for acting. */
void dt_trainer_acting_begin(dt_trainer *t);
void dt_trainer_acting_end(dt_trainer *t);
/* The phase's start is over. Errors: DT_EPLUGIN where it has not set a step input that it records. */
dt_status dt_trainer_check_started(dt_trainer *t) DT_NODISCARD;
/* In a checkpoint: those that differ from what start set. They are loaded where start sets the same again: another
 * value comes from another configuration, and stays. trainer: the number of this one in its phase. Errors: DT_EDATA. */
dt_status dt_trainer_step_inputs_save(const dt_trainer *t, uint32_t trainer, dt_str *out) DT_NODISCARD;
dt_status dt_trainer_step_inputs_load(dt_trainer *t, uint32_t trainer, const void *data, size_t size) DT_NODISCARD;
dt_status dt_trainer_step(dt_trainer *t, dt_step_report *out);
/* Of the groups whose bit is set; the losses and parameters of others are left alone. Errors: also DT_EINVAL. */
dt_status dt_trainer_step_groups(dt_trainer *t, uint32_t groups, dt_step_report *out);
/* The source is about to change its samples: forgets what was read ahead, and reads nothing until the next step. */
void dt_trainer_discard_prefetched(dt_trainer *t);
/* Continue at a later step, as if those between had been done. Errors: DT_EINVAL. */
/* How often the parameters were set as a vector. */
uint64_t dt_trainer_vector_updates(const dt_trainer *t);
/* A step that the trainer did not make itself is over: what was moved by hand counts as one. */
dt_status dt_trainer_bypass_step(dt_trainer *t) DT_NODISCARD;
dt_status dt_trainer_seek(dt_trainer *t, uint64_t step) DT_NODISCARD;
/* rows: what svc/train.h hands to each. */
/* Runs job once on every worker, 0 being the caller; the first worker's failure is returned. */
dt_status dt_trainer_run_on_workers(dt_trainer *t, dt_status (*job)(void *user, uint32_t worker), void *user)
    DT_NODISCARD;
/* [collective] All ranks get all of it. */
dt_status dt_trainer_evaluate(dt_trainer *t, const dt_samples *d, void *user,
                              dt_status (*each)(void *user, const dt_rows *r));
/* Parameters as one vector, and losses over all samples; see svc/train.h. Threads and ranks change no bit. Errors:
 * DT_EINVAL (no such loss), what reading the samples reports. */
/* Place of parameter i of the table in the vector; UINT64_MAX: it is not there. */
uint64_t dt_trainer_vector_offset(const dt_trainer *t, uint32_t i);
uint64_t dt_trainer_vector_size(const dt_trainer *t);
dt_status dt_trainer_vector_get(dt_trainer *t, float *out);
dt_status dt_trainer_vector_set(dt_trainer *t, const float *in);
/* Parameter i of the table, [its count]: of a constant, which no step moves. */
dt_status dt_trainer_constant_get(dt_trainer *t, uint32_t i, float *out) DT_NODISCARD;
dt_status dt_trainer_constant_set(dt_trainer *t, uint32_t i, const float *in) DT_NODISCARD;
dt_status dt_trainer_gradient(dt_trainer *t, const char *loss, float *out, double *value_p);
dt_status dt_trainer_losses(dt_trainer *t, const char *const *loss, uint32_t n, double *out);
dt_status dt_trainer_compile_losses(dt_trainer *t, const char *const *loss, uint32_t n, bool has_gradient);
const void *dt_rows_get_output(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank);
const uint64_t *dt_rows_samples(const dt_rows *r, uint32_t *n);

/* State: three arenas with the table's offsets, the number of finished steps, how many of them were updates, and the
 * loss scaler. Everything else follows from them. Before they are read or written, hold brings them to the host; the
 * next step takes them back. */
dt_status dt_trainer_synchronize(dt_trainer *t) DT_NODISCARD;
float *dt_trainer_params(dt_trainer *t);
/* Target networks become what they are copies of: name: those called so alone, NULL: all, where training begins.
 * Errors: DT_EINVAL (there is none of the name). */
dt_status dt_trainer_copy_to_targets(dt_trainer *t, const char *name) DT_NODISCARD;
/* Of the last step, summed; NULL: none yet, a device's, or of several ranks before this one was called. */
const float *dt_trainer_last_gradient(const dt_trainer *t);
dt_status dt_trainer_gather_gradient(dt_trainer *t) DT_NODISCARD; /* [collective] */
uint32_t dt_trainer_n_moments(const dt_trainer *t);               /* arenas of them: 1 or 2 */
/* 0: first, 1: second; NULL when the optimizer has none, and on one of several ranks while they are not open. */
float *dt_trainer_moment(dt_trainer *t, uint32_t which);
/* One of several ranks keeps moments of its slices alone. Open: all have room for all of them; is_gathered:
 * [collective] and all are there. Close: is_changed: this rank's slices are taken from it. No step in between. */
dt_status dt_trainer_open_moments(dt_trainer *t, bool is_gathered) DT_NODISCARD;
void dt_trainer_close_moments(dt_trainer *t, bool is_changed);
uint64_t dt_trainer_step_number(const dt_trainer *t);
void dt_trainer_step_number_set(dt_trainer *t,
                                uint64_t step);          /* before the first step, after loading arenas; all updates */
uint64_t dt_trainer_updates(const dt_trainer *t);        /* steps that were neither skipped nor passed over */
uint64_t dt_trainer_bypassed_steps(const dt_trainer *t); /* steps that seek passed over, and those without a row */
uint64_t
dt_trainer_empty_steps(const dt_trainer *t); /* steps of this process whose batch had no row: none was an update */
void dt_trainer_bypassed_steps_set(dt_trainer *t, uint64_t n); /* after step_set */
/* The groups, 0: none were named. reported: bits of those that the last report is of. */
uint32_t dt_trainer_groups(const dt_trainer *t, const dt_group_state **out_p);
uint32_t dt_trainer_reported_groups(const dt_trainer *t);
void dt_trainer_group_updates_set(dt_trainer *t, uint32_t group, uint64_t updates); /* after scaler_set */
const dt_scaler *dt_trainer_scaler(const dt_trainer *t);
void dt_trainer_scaler_set(dt_trainer *t, uint64_t updates, const dt_scaler *s); /* after step_set; of all groups */
uint64_t dt_trainer_steps(const dt_trainer *t);
uint64_t dt_trainer_steps_per_epoch(const dt_trainer *t);
dt_sampling dt_trainer_sampling(const dt_trainer *t);
uint64_t dt_trainer_samples(const dt_trainer *t); /* that a pass over the data draws from */
uint64_t dt_trainer_batch(const dt_trainer *t);   /* samples of a step; what is left of a pass is less than one */

/* Where the trainer computes: all that it maps at most, on a device or in the host's arenas. */
void dt_trainer_memory_get(const dt_trainer *t, dt_trainer_memory *out);
/* The host's arenas alone: mapped, which no run exceeds, and what is likely to become resident of it. mean: live size
 * of a sample per symbol, NULL = as the source declares. */
void dt_trainer_arenas_get(const dt_trainer *t, const double *mean, dt_trainer_memory *mapped,
                           dt_trainer_memory *resident);
/* The micro-batch: shards computed at once. Fewer of them take less memory and more time, and change no bit. shrink
 * gives memory back between steps: what is read ahead, then half of the shards; false: nothing is left to give. */
uint32_t dt_trainer_concurrent_shards(const dt_trainer *t);
bool dt_trainer_release_memory(dt_trainer *t);
/* Compiles inference over d, which evaluate would do at its first call, so that its memory is known. */
dt_status dt_trainer_compile_evaluation(dt_trainer *t, const dt_samples *d) DT_NODISCARD;
/* Samples of a live source that a step or a run over all samples needs fetched to one rank at most (samples.h). */
uint64_t dt_trainer_max_fetched(const dt_trainer *t);
/* A slice of typical samples: as many of this mean as fit, at most `most`. */
void dt_trainer_typical_sizes(const dt_samples *s, const double *mean, uint64_t most, int64_t *size);
/* Forward and backward of a whole batch of mean samples, as if it were one slice. */
dt_plan_cost dt_trainer_step_cost(const dt_trainer *t);
/* What a device moves in a step for gradients of shards and their sums; 0 where the CPU computes. */
uint64_t dt_trainer_reduction_bytes(const dt_trainer *t);
/* The same as cost, call by call, as a device has it that stores in half (DT_BF16, DT_F16, or 0 for f32), wherever this
 * trainer computes. */
dt_status dt_trainer_list_device_calls(const dt_trainer *t, uint32_t half, void *user,
                                       void (*each)(void *user, const dt_call_cost *c)) DT_NODISCARD;
dt_trainer_times dt_trainer_times_get(const dt_trainer *t);
/* How many leaves a rank has. */
uint32_t dt_trainer_shards(const dt_trainer *t, uint32_t rank);
uint32_t dt_trainer_wire_type(const dt_trainer *t); /* DT_HALF_*: in what gradients are sent */
bool dt_trainer_has_fast_sums(const dt_trainer *t); /* ranks' gradients are summed in an order of their library */
/* What this rank sends in a step of its gradient and its parameters; and of losses and of what is agreed on, that is
 * little. */
uint64_t dt_trainer_sent_bytes(const dt_trainer *t);
bool dt_trainer_is_mixed_precision(const dt_trainer *t); /* mixed precision: products in half, or a scaled loss */
double dt_trainer_overflow_rate(const dt_trainer *t);    /* share of skipped steps, over a window of the last ones */
const dt_plan *dt_trainer_plan(const dt_trainer *t);
const dt_graph *dt_trainer_graph(const dt_trainer *t); /* what was recorded for training */
/* What is recorded, over the same data, to act by: what an export takes. It lives as long as the trainer. */
dt_status dt_trainer_acting_graph(dt_trainer *t, const dt_graph **out_p) DT_NODISCARD;
/* Which of the desc's params its outputs depend on, but for those named in except, which ends with NULL. */
dt_status dt_trainer_params_of_acting(dt_trainer *t, const char *const *except, bool *param_p) DT_NODISCARD;
const dt_samples *dt_trainer_source(const dt_trainer *t);       /* its fields and symbols; "B" comes after these */
const dt_samples *dt_trainer_live_samples(const dt_trainer *t); /* the source before stored data was mixed into it */
bool dt_trainer_trains_on(const dt_trainer *t, const dt_samples *s); /* is it the source, or mixed into it? */
/* The losses of the last step, weightless means over its batch, in the order of the graph's. */
const double *dt_trainer_step_losses(const dt_trainer *t);

#endif
