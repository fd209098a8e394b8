/* SPDX-License-Identifier: Apache-2.0
 *
 * What the trainer's files share: the struct of dt_trainer. Not for other rooms.
 */
#ifndef DTRAIN_CORE_TRAIN_TRAINER_INTERNAL_H
#define DTRAIN_CORE_TRAIN_TRAINER_INTERNAL_H

#include "base/err.h"
#include "comm/tree_sum.h"
#include "train/feed.h"
#include "train/mixed.h"
#include "train/pool.h"
#include "train/backend.h"
#include "train/trainer.h"

#include <pthread.h>
#include <stdatomic.h>

enum { DT_TRAIN_MAX_STEP_INPUTS = 16 };

typedef struct dt_step_value { /* a step input, by name, until set again */
    char *name;
    float *value;
    float *initial;   /* what start set */
    float *evaluated; /* what the last evaluation computed with; NULL: none did */
    uint32_t n;
    bool is_acting; /* for evaluations and exports, in place of the other of this name */
} dt_step_value;

typedef struct dt_compiled { /* a plan with everything needed to run it */
    const dt_samples *source;
    dt_graph *graph;
    dt_plan *plan;
    dt_exec **exec; /* [n_exec], none on a device */
    uint32_t n_exec;
    struct dt_device_infer *device; /* inference on a device: owns the plan */
    const float *step_input[DT_TRAIN_MAX_STEP_INPUTS];
    const char *symbol[DT_SAMPLES_MAX_SYMBOLS + 1];
} dt_compiled;

/* What training is: this, with the steps made, is what a checkpoint keeps. */
typedef struct dt_train_state {
    uint64_t step, updates, steps_per_epoch;
    dt_sampler sampler;      /* of the training data */
    uint64_t bypassed;       /* steps bypassed by seek; the schedule counts them */
    uint64_t empty_steps;    /* of this process: steps bypassed because their batch had no row */
    uint64_t vector_updates; /* of params as a vector, by the phase */
    uint64_t params_version; /* of the values of params, between steps and other uses */
    float *params;
    size_t arena_bytes; /* [table total] floats */
    size_t grad_bytes;  /* [table base_total] floats: what has gradients ends before the target networks */
    float *moment[2];   /* as params on one rank, of several this rank's slices; see arenas.c */
    size_t moment_bytes;
    float *whole[2]; /* while they are open */
    bool is_whole_mapped[2];
    dt_group_state group[DT_TRAIN_MAX_GROUPS];
    uint32_t n_groups;                          /* at least one */
    uint8_t *group_of;                          /* per parameter: whose steps move it; UINT8_MAX: none */
    uint8_t target_group[DT_TRAIN_MAX_TARGETS]; /* of what it is a copy of */
    bool *external; /* per parameter: the phase updates it, not step; NULL: step updates all that are not frozen */
    dt_scaler scaler;
    dt_amp_monitor monitor;
    dt_target_rule target[DT_TRAIN_MAX_TARGETS];
    dt_step_value *value;
    uint32_t n_values;
    bool is_acting;   /* an evaluation: step inputs have their values for acting */
    bool has_started; /* the phase's start is over */
} dt_train_state;

typedef struct dt_grad { /* gradients of a shard, later of a node: buckets of it are added elsewhere one by one */
    float *data;
    atomic_uint n_alive; /* buckets that were not */
} dt_grad;

/* What workers need to run shards. */
typedef struct dt_train_workers {
    dt_pool *pool;
    uint32_t shard_begin, shard_end; /* of this rank */
    uint32_t active;                 /* workers that run shards: the CPU's micro-batch */
    bool ran_out;                    /* memory ran out once, and the micro-batch became smaller */
    dt_feed *feed;
    uint64_t feed_first; /* step at which the feed began, or continued */
    bool feed_is_paused;
    uint64_t window; /* of a stream, which can be read */
    bool has_window;
    dt_feed_reader **reader; /* [threads] instead of the feed, when the source is live and the CPU computes */
    dt_samples live;         /* the source as they see it */
    dt_grad *grad;           /* [n_grads] buffers, mapped once, touched as used */
    dt_grad **grad_free;     /* [n_grad_free] */
    uint32_t n_grads, n_grad_free;
    pthread_mutex_t lock; /* grad_free */
    double *waited;       /* [threads] */
} dt_train_workers;

typedef struct dt_piece { /* of this rank's slices, for one worker at a time */
    dt_range at;
    int64_t unit;   /* of its first element, among all units */
    int64_t moment; /* where its first element is in the arenas of moments */
} dt_piece;

/* How gradients become sums and parameters: see reduce.c. A unit is DT_SLICE_UNIT elements of the arena, or what a
 * bucket has of it. */
typedef struct dt_reduction {
    dt_range *bucket; /* [n_buckets] in the order of the arena */
    uint8_t *group;   /* [n_buckets] each one's */
    uint32_t n_buckets, n_pieces;
    uint32_t *unit; /* [n_buckets + 1] number of each one's first */
    uint32_t n_units;
    dt_piece *piece;                /* [n_pieces] */
    int64_t n_own;                  /* elements of this rank's slices */
    double *unit_sum, *unit_packed; /* [n_units] sums of squares, of all ranks; room to send them */
    dt_comm_out *out;               /* [ranks] */
    dt_comm_in *in;                 /* [ranks] */
    uint32_t *order;                /* [n_buckets] in which they are summed: as backward ends with them */
    uint32_t *due, n_due;           /* of these those that are summed now, which are of groups that are moved */
    int64_t *last;                  /* [n_buckets] the call of the plan that ends with each, -1: none writes it */
    dt_tree_sum **sum;              /* [n_sums] of as many buckets at a time */
    uint32_t half;                  /* DT_HALF_* of the sum that is under way */
    uint32_t n_sums;
    uint32_t n_begun, n_ended; /* buckets of this step, in order */
    dt_status failed;          /* the first failure of these; reported at the end */
    dt_error error;
    double *packed, *room; /* of losses */
} dt_reduction;

/* What lives for one step. */
typedef struct dt_train_scratch {
    atomic_uint next_shard;
    atomic_bool failed;
    double loss_seed[DT_GRAPH_MAX_LOSSES];
    double (*shard_loss)[DT_GRAPH_MAX_LOSSES]; /* [shards of this rank] */
    double step_loss[DT_GRAPH_MAX_LOSSES];     /* reported */
    double norm[DT_GRAPH_MAX_LOSSES];          /* of the batch: what losses are divided by */
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1], largest[DT_SAMPLES_MAX_SYMBOLS + 1]; /* of it; of its largest shard */
    float *gradient; /* the sum: this rank's slices of it, or all */
    bool has_whole;
    atomic_uint next_piece;
    uint32_t groups, reported;                   /* bits: groups that the step updates; groups of the last report */
    dt_optim_consts consts[DT_TRAIN_MAX_GROUPS]; /* of the update of each group that is moved */
    uint64_t *batch_index;                       /* samples of the global batch, for normalisers */
    dt_samples_part *part;                       /* [ranks] what each reads next of a live source */
} dt_train_scratch;

struct dt_trainer {
    dt_trainer_desc d;
    dt_trainer_config c;
    dt_mixed *mixed;      /* NULL: source is as it was given */
    uint32_t n_of_source; /* losses of the graph before those of stored data */

    dt_compiled train;
    dt_compiled acting; /* recorded alone, once it was asked for */
    dt_compiled *infer; /* one per data set evaluated so far */
    uint32_t n_infer;
    dt_tree_shape shape;   /* of the shards over ranks */
    uint32_t *first_shard; /* [ranks + 1] the shape's, where shards are dealt by weights */
    dt_tree *tree;

    dt_train_state state;
    dt_train_workers workers;
    dt_reduction reduce;
    dt_train_scratch scratch;

    const dt_train_backend *backend;
    struct dt_train_device *device; /* the device backend's; NULL: the CPU computes */
    struct dt_passes *passes;       /* vector.c: runs over all samples; NULL: none so far */
    dt_trainer_times times;
};

struct dt_rows {
    const dt_trainer *t;
    const dt_compiled *c;
    const dt_micro_batch *micro_batch;
    const dt_exec *exec;              /* NULL on a device, and of slices of other ranks */
    const struct dt_exchange *theirs; /* what the rank that ran the slice found; NULL: it was this one */
    uint32_t at;                      /* slice of the round */
    uint32_t place;                   /* of the round, on a device */
};

/* compile.c. Records alone; purpose, keep: as dt_graph_desc. */
dt_status dt_record_graph(dt_trainer *t, const dt_samples *source, uint32_t purpose, const char *const *keep,
                          dt_compiled *out);
/* The graph of steps, recorded alone, without losses of stored data that reach nothing they may move. */
dt_status dt_record_training_graph(dt_trainer *t, const dt_samples *source, dt_compiled *out);
/* Records, compiles and makes one exec per worker. training: with losses and derivative. */
dt_status dt_compile_source(dt_trainer *t, const dt_samples *source, bool training, dt_compiled *out);
/* The CPU's plan of what was recorded, and n execs. */
dt_status dt_compile_for_cpu(dt_trainer *t, const dt_plan_desc *d, uint32_t n, dt_compiled *out);
dt_status dt_compile_plan(const dt_plan_desc *d, uint32_t n, dt_compiled *out); /* in the lane and modes of d */
void dt_compiled_fini(dt_compiled *c);
/* Sizes of step's batch per symbol ("B" last), over all ranks: the largest of its shards, and the sum of all. */
dt_status dt_compute_batch_sizes(dt_trainer *t, uint64_t step, int64_t *largest, int64_t *total);
/* The batch of the current step: scratch.size, largest, norm and loss_seed. is_empty_p: no loss of the groups that the
 * step moves has a row in it. */
dt_status dt_prepare_batch(dt_trainer *t, bool *is_empty_p);
/* [collective] What a live source of several ranks has to bring. Samples of the batch whose sizes were asked for last;
 * each rank's shards of all samples, in their order; all of [first, first + n) to all ranks. */
dt_status dt_fetch_batch(dt_trainer *t, const dt_samples *s);
dt_status dt_fetch_shards(dt_trainer *t, const dt_samples *s);
dt_status dt_fetch_range(dt_trainer *t, const dt_samples *s, uint64_t first, uint64_t n);
/* Once for step number `step`, when t->state.scaler knows about it: warns, and gives up when it is time. bad: the first
 * element of the gradient that is not finite, -1: none. */
dt_status dt_trainer_check_divergence(dt_trainer *t, uint64_t step, bool is_finite, const dt_step_report *r,
                                      int64_t bad);
/* The losses of a step of these groups, reported: total[i] / norm[i]; in the report those it has room for. */
void dt_report_losses(dt_trainer *t, uint32_t groups, const double *total, const double *norm, dt_step_report *out);
/* Of each shard with samples in what the current step makes of statistics: all count alike. */
double dt_shard_share(const dt_trainer *t);
/* Marks fields of a live source that a plan does not read. */
void dt_mark_unread_fields(dt_samples *s, const dt_plan *p);
/* What start_feed does once for a live source. */
dt_status dt_create_readers(dt_trainer *t);
/* Gradient buffers, where there are none yet. */
dt_status dt_grads_create(dt_trainer *t);
void dt_grads_destroy(dt_trainer *t, uint32_t from); /* all from this one on */
/* reduce.c. Buckets, the tree, and what sums need; the shards of this rank are known. */
dt_status dt_reduce_create(dt_trainer *t);
void dt_reduce_destroy(dt_trainer *t);
uint64_t dt_reduce_bytes(const dt_trainer *t); /* mapped for nodes of other ranks */
/* Before shards are run: all of their buffers are free, the tree is empty. has_gradient: there must be buffers. half:
 * how their gradients are sent, DT_HALF_NONE or the configured one. groups: bits; buckets of others are not summed. */
dt_status dt_grads_reset(dt_trainer *t, bool has_gradient, uint32_t half, uint32_t groups);
dt_grad *dt_grad_acquire(dt_trainer *t);
/* Offers the shard to the tree and does every addition that becomes due: buckets from the n-th of the order on. */
void dt_grad_reduce(dt_trainer *t, uint32_t shard, dt_grad *grad, uint32_t n);
/* The next of the order, n, as the plan's calls end with them; returns how many are offered by now. */
uint32_t dt_grad_reduce_after_call(dt_trainer *t, uint32_t shard, dt_grad *grad, uint32_t n, int64_t call);
/* The order of buckets, once the plan of steps is there. */
void dt_reduce_order_buckets(dt_trainer *t);
/* [main] While shards run: begins to sum buckets that this rank is done with, and ends what has arrived. */
void dt_reduce_progress(dt_trainer *t);
/* [collective] After all shards: scratch.gradient holds this rank's slices of the sum. A rank whose shards failed takes
 * part, so that no rank waits for it, and sums nothing. */
dt_status dt_reduce_gradient(dt_trainer *t, bool is_failed);
/* [collective] The same, timed, and what all ranks agree on. mine: how this rank's shards went. */
dt_status dt_reduce_over_ranks(dt_trainer *t, dt_status mine);
/* [collective] All ranks' slices to all ranks; is_all: not of the buckets alone that were summed last. */
dt_status dt_reduce_all_gather(dt_trainer *t, float *vector, bool is_all);
/* [collective] Sums of n losses over all shards, of scratch.shard_loss. */
dt_status dt_reduce_losses(dt_trainer *t, uint32_t n, double *total);
/* groups.c. Which group moves which parameter, by roles. */
dt_status dt_groups_create(dt_trainer *t);
void dt_groups_destroy(dt_trainer *t);
/* The graph of steps: losses and parameters into their groups; and, once it has the losses that it will have, whether
 * each group moves something. Errors: DT_EPLUGIN (a loss in none, or two; one that is not recorded), DT_ECONFIG. */
dt_status dt_groups_assign(const dt_trainer *t, dt_graph *g);
dt_status dt_groups_check(const dt_trainer *t, const dt_graph *g);
void dt_groups_exclude_params(dt_trainer *t, const bool *param); /* these are no group's */
dt_status dt_groups_select(dt_trainer *t, uint32_t groups);      /* for the step that comes */
double dt_group_learning_rate(const dt_trainer *t, uint32_t group,
                              uint64_t update);                             /* of its update number 1, 2, ... */
void dt_groups_set_updates(dt_trainer *t, uint64_t updates);                /* so many of all */
static inline bool dt_group_is_updated(const dt_trainer *t, uint32_t group) /* by this step */
{
    return group < t->state.n_groups && (t->scratch.groups >> group & 1) != 0;
}
/* update.c. [collective] Norm, decision, update, and the parameters of all. */
dt_status dt_apply_update(dt_trainer *t, dt_step_report *out);
/* [collective] Sums of squares of this rank's units, in reduce.unit_sum, to all ranks. */
dt_status dt_all_gather_square_sums(dt_trainer *t);
/* [collective] The first element of scratch.gradient that is not finite, in slices of any rank; -1: there is none. */
dt_status dt_find_first_not_finite(dt_trainer *t, int64_t *bad_p);
/* What each loss of the graph is divided by, for these live sizes ("B" last). */
void dt_compute_loss_divisors(const dt_samples *s, const dt_compiled *c, const int64_t *size, double *norm);
/* vector.c */
void dt_passes_destroy(struct dt_passes *p);
/* Adds what runs over all samples map, and what of it is likely to become resident. */
void dt_passes_arenas_get(const dt_trainer *t, const double *mean, dt_trainer_memory *mapped,
                          dt_trainer_memory *resident);
/* state.c: of one exec, for slices of at most so many samples; and inputs of so many samples of this mean. */
void dt_compute_activation_bytes(const dt_compiled *c, const double *mean, uint64_t most, uint64_t *mapped,
                                 uint64_t *resident);
uint64_t dt_compute_input_bytes(const dt_samples *s, const double *mean, uint64_t n);
/* Memory ran out during a step: the smaller micro-batch, once, said with the reason. False: it was tried before. */
bool dt_trainer_shrink_on_enomem(dt_trainer *t, dt_status st);
/* Adds to DT_ENOMEM what to do. */
dt_status dt_trainer_explain_memory(const dt_trainer *t, dt_status st);
/* state.c: an arena. */
dt_status dt_map_float_arena(size_t bytes, float **out);
/* state.c: workers from n on run no shards any more. Between steps; what the feed read ahead is forgotten. */
void dt_trainer_limit_workers(dt_trainer *t, uint32_t n);
/* That memory ran out with `before` shards at once, and fewer are tried; takes the error back. */
void dt_trainer_log_smaller_batch(const dt_trainer *t, uint32_t before);
/* step.c */
/* run for each shard of this rank, i counting from its first, by so many of the workers; the first failure ends it. */
dt_status dt_run_shards(dt_trainer *t, uint32_t workers, dt_status (*run)(void *user, uint32_t worker, uint32_t i),
                        void *user);
uint64_t dt_feed_number(const dt_trainer *t, uint32_t i); /* of shard i of this rank in the current step */
/* trainer.c: parameters, gradients, moments and lists of the host. */
dt_status dt_trainer_create_arenas(dt_trainer *t);
void dt_trainer_destroy_arenas(dt_trainer *t);
/* Step inputs as the plan wants them. DT_ECONFIG names one that was never set. */
/* step_inputs.c */
dt_status dt_bind_step_inputs(dt_trainer *t, dt_compiled *c);
void dt_step_value_fini(dt_step_value *v);

#endif
