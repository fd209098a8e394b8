/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer's steps on a device. The host reads shards and packs them, at capacity, into one of two page-locked
 * buffers; a copy stream brings it over while the device still computes the step before; then everything from seeds to
 * update is one launch of a graph that was captured the second time its shape class came up (engine/device/device.h
 * explains why live sizes do not matter to it). Results are read one step late.
 *
 * Shape classes: capacities of a shard, 2^(1/4) apart, chosen by the largest shard of the whole global batch, so that
 * the choice is the same on every rank. Shards that do not fit into the device's memory at once run one group after the
 * other on the same activations. Gradients of shards are summed as backward ends with each parameter, in the fixed
 * tree: what is kept is one arena for all shards at once, and one for each height of the tree where a group is a shard.
 * The sums are the same.
 *
 * Several ranks have a device each. Sums of a rank's shards come to its host, and from there take the way of a CPU's
 * (reduce.c), in the same tree; each rank updates its slices on its device, and all get the parameters of all
 * (ranks.c). The same bits on any number of ranks.
 *
 * State: arenas live on the device. dt_train_device_download brings them to the host's arenas; the next step takes them
 * back in case they were changed. Threads: [main], packing on the workers.
 *
 * device.c: life, memory, shape classes; slots.c: sums of gradients; params.c: after an update; step.c: the step;
 * results.c: what it found; ranks.c: its end where there are several ranks.
 */
#ifndef DTRAIN_CORE_TRAIN_DEVICE_INTERNAL_H
#define DTRAIN_CORE_TRAIN_DEVICE_INTERNAL_H

#include "engine/graph/device_exec.h"
#include "train/trainer_internal.h"

typedef struct dt_train_device dt_train_device;

enum {
    DT_DEVICE_CLASSES = 25,
    DT_DEVICE_BUFFERS = 2,
    DT_DEVICE_MAX_NODES = DT_TREE_MAX_LEAVES / DT_DEVICE_NODE_LEAVES + DT_TREE_MAX_NODES /* of a launch */
};

_Static_assert((int)DT_DEVICE_MAX_GROUPS >= (int)DT_TRAIN_MAX_GROUPS, "there is room for all groups");

/* Where the parts of a step's input lie in its buffer: control first, then live sizes, step inputs, fields. */
typedef struct dt_device_input {
    size_t live, step[DT_TRAIN_MAX_STEP_INPUTS], field[DT_SAMPLES_MAX_FIELDS], bytes;
    size_t field_bytes[DT_SAMPLES_MAX_FIELDS]; /* of one shard */
} dt_device_input;

typedef struct dt_device_replay { /* they ran once without a graph */
    uint32_t groups;
    dt_device_graph *graph[DT_DEVICE_BUFFERS]; /* NULL: not captured so far */
} dt_device_replay;

typedef struct dt_device_class {
    int64_t cap[DT_SAMPLES_MAX_SYMBOLS + 1]; /* of a shard */
    dt_plan *plan;                           /* NULL: not met so far */
    dt_device_exec *exec;
    dt_device_input input;
    dt_device_replay *replay; /* [n_replays] by the groups that steps move: those met so far */
    uint32_t n_replays;
} dt_device_class;

typedef struct dt_device_buffer { /* one of the two inputs in flight */
    char *pinned, *device;
    dt_device_result *result; /* pinned */
    dt_device_event *copied, *done;
    uint64_t step;                    /* that was launched from it, counted from 1; 0: none */
    uint32_t groups;                  /* that it moves */
    double norm[DT_GRAPH_MAX_LOSSES]; /* what its losses are divided by */
} dt_device_buffer;

/* The host's side of one of several ranks: what goes to others and comes from them passes through it. Pinned. */
typedef struct dt_device_ranks {
    dt_grad *node;        /* [n_nodes] sums of this rank's nodes, then of all */
    float *params;        /* apart from these: a step's leave for the device while the next ones come from there */
    double *loss;         /* [DT_DEVICE_MAX_LOSSES, shards] */
    double *block_sum;    /* of all ranks */
    double *total;        /* [DT_DEVICE_MAX_LOSSES] losses of all shards */
    double *device_total; /* the same on the device */
    struct dt_device_link *link; /* NULL: by the hosts */
    bool is_negotiated;          /* whether there are any */
} dt_device_ranks;

struct dt_train_device {
    const dt_device_ops *ops;
    dt_device *device;
    dt_samples source;              /* the trainer's, cut so that a shard is one slice */
    uint32_t shards, launch_shards; /* of this rank; computed by one launch */
    dt_device_class class[DT_DEVICE_CLASSES];
    dt_device_stream *compute, *copy;
    dt_device_buffer buffer[DT_DEVICE_BUFFERS];
    size_t buffer_bytes, arena_bytes;

    /* device memory */
    char *arena; /* activations of one group */
    float *params, *moment[2];
    float *grad;       /* [slots, total] sums of nodes that wait for others; in the end those of cover, left to right */
    uint32_t slots;    /* as many as wait at once */
    void *params_half; /* [total] params rounded to half, as soon as they change; NULL: nothing is stored in half */
    uint8_t *trained, *block_group;                        /* block_group NULL: one group */
    double *block_sum, *seed, *loss[DT_DEVICE_MAX_LOSSES]; /* loss: [shards] each */
    dt_device_state *state;
    dt_device_result *result;
    int64_t total;       /* elements of an arena of gradients, rounded up to granules */
    int64_t all;         /* of parameters: target networks too */
    size_t moment_bytes; /* of one of them: one rank has all, one of several those of its slices */

    dt_tree_node cover[DT_TREE_MAX_NODES]; /* the fewest nodes of the tree that hold this rank's shards */
    uint32_t n_nodes;
    dt_device_slice *slice; /* [n_slices] of the sum: those of the buckets, in their order; one rank: all of it */
    uint32_t n_slices;
    dt_device_ranks *ranks; /* NULL: one rank */
    uint32_t *due;          /* [n_due] calls of plans that end with a bucket which goes to others by NCCL */
    uint32_t n_due;

    dt_device_state host_state; /* what the host has of the state; the arenas are the trainer's */
    bool is_on_host;            /* the host's arenas hold the state, perhaps changed: upload before the next step */
    uint64_t updates[DT_TRAIN_MAX_GROUPS]; /* applied, as far as the host has read */
    uint64_t read; /* step whose result was read last, counted from 1; 0: none since the upload */

    /* one step's staging */
    const dt_device_class *staging;
    char *staging_at;
};

static inline size_t dt_device_align(size_t n)
{
    return (n + 255) / 256 * 256;
}

/* In what values between ops are stored: DT_BF16 or DT_F16, 0: f32. */
static inline uint32_t dt_device_storage_type(const dt_trainer *t)
{
    return t->c.math == DT_DEVICE_MATH_BF16 ? DT_BF16 : t->c.math == DT_DEVICE_MATH_F16 ? DT_F16 : 0;
}

/* Copies on the stream that computes, to the device and to the host. */
DT_NODISCARD static inline dt_status dt_device_copy_in(const dt_train_device *d, void *to, const void *from,
                                                       size_t bytes)
{
    return bytes > 0 ? d->ops->copy(d->device, to, from, bytes, DT_DEVICE_TO_DEVICE, d->compute) : DT_OK;
}

DT_NODISCARD static inline dt_status dt_device_copy_out(const dt_train_device *d, void *to, const void *from,
                                                        size_t bytes)
{
    return bytes > 0 ? d->ops->copy(d->device, to, from, bytes, DT_DEVICE_TO_HOST, d->compute) : DT_OK;
}

/* params.c */
/* After parameters have changed, on the stream that computes; half NULL: nothing is stored in half. */
dt_status dt_device_narrow_params(const dt_trainer *t, void *half, const float *params, int64_t n) DT_NODISCARD;
/* Target networks of groups that f updates, after the parameters of all ranks. */
dt_status dt_device_update_targets(const dt_trainer *t, const dt_device_finish *f) DT_NODISCARD;
/* device.c */
/* Ends the capture that launched with status st. what: for an error. */
dt_status dt_device_end_capture(const dt_train_device *d, dt_status st, const char *what, dt_device_graph **out_p)
    DT_NODISCARD;
/* The trainer's plan of a graph for its device, and what runs it for so many shards; is_step: with gradients that go to
 * other ranks. */
dt_status dt_device_compile_plan(const dt_trainer *t, const dt_graph *g, const dt_plan_desc *d, dt_plan **out_p)
    DT_NODISCARD;
dt_status dt_device_create_exec(const dt_trainer *t, const dt_train_device *d, const dt_plan *p, uint32_t shards,
                                bool is_step, dt_device_exec **out_p) DT_NODISCARD;
dt_status dt_device_layout_input(const dt_plan *p, const dt_samples *s, const int64_t *cap, uint32_t shards,
                                 dt_device_input *out_p) DT_NODISCARD;
size_t dt_device_find_class(const dt_train_device *d,
                            const int64_t *size); /* DT_DEVICE_CLASSES: none is large enough */
dt_status dt_device_prepare_class(dt_trainer *t, dt_train_device *d, size_t c) DT_NODISCARD;
dt_status dt_device_synchronize(dt_train_device *d); /* for all that was asked for */
/* What both sides have of an arena, 0: the parameters'; the host's is never empty, the device's is rounded up. */
size_t dt_device_shared_bytes(const dt_trainer *t, int arena);
/* The host's arenas to the device, if they hold the state. */
dt_status dt_train_device_upload(dt_trainer *t) DT_NODISCARD;
/* Waits for what was launched, reads what steps found, and copies parameters and moments to the host's arenas. Errors:
 * also those of a step whose result was not read so far. */
dt_status dt_train_device_download(dt_trainer *t) DT_NODISCARD;
/* For backend.c: buffers, plans and streams of a trainer whose graph is recorded, and their bytes on the device. */
dt_status dt_train_device_create(dt_trainer *t, dt_train_device **out_p) DT_NODISCARD;
void dt_train_device_destroy(dt_trainer *t, dt_train_device *d);
void dt_train_device_memory_get(const dt_train_device *d, dt_trainer_memory *out);
/* The host's state has changed: dt_train_device_upload copies it before the next use. */
void dt_train_device_invalidate(dt_trainer *t);

/* results.c: what step b->step found; waits for it. Errors: DT_EDIVERGED. */
dt_status dt_device_read_result(dt_trainer *t, const dt_device_buffer *b, dt_step_report *out) DT_NODISCARD;

/* slots.c: a rank's shards are summed launch by launch, as a stack: a sum whose sibling is not there yet waits in the
 * next slot. Shards [first, first + n) of this rank's, of one launch, and how they meet what waits. Returns how many
 * nodes. */
uint32_t dt_device_list_nodes(const dt_trainer *t, uint32_t first, uint32_t n, dt_device_node out[DT_DEVICE_MAX_NODES]);
uint32_t dt_device_count_slots(const dt_trainer *t, uint32_t shards, uint32_t group); /* as many as wait at once */
/* What the gradients of shards and their sums move through the device's memory in a step. */
uint64_t dt_train_device_sum_bytes(const dt_trainer *t);

/* ranks.c */
/* [collective] Before the first step: how gradients will travel. */
dt_status dt_device_ranks_connect(dt_trainer *t) DT_NODISCARD;
dt_status dt_device_ranks_create(dt_trainer *t, dt_train_device *d) DT_NODISCARD;
/* Before anything is waited for: what other ranks may never do is given up. */
void dt_device_ranks_disconnect(dt_trainer *t, dt_train_device *d);
void dt_device_ranks_destroy(dt_train_device *d);
/* The gradients that calls of the plan up to this one have completed are summed: their buckets may go to others. n_p:
 * buckets that were ready before. May be captured. */
dt_status dt_device_ranks_mark_ready(const dt_trainer *t, int64_t call, uint32_t *n_p) DT_NODISCARD;
/* After the sum of this rank's shards: its nodes and losses go to the host. May be captured. */
dt_status dt_device_ranks_download(const dt_train_device *d, const dt_device_finish *f) DT_NODISCARD;
/* [collective] The sum over ranks of what these groups update. mine: as dt_train_backend.reduce. */
dt_status dt_device_ranks_reduce(dt_trainer *t, uint32_t groups, dt_status mine) DT_NODISCARD;
/* [collective] The rest of a step that was launched from b: norm, update of this rank's slices, parameters of all. */
dt_status dt_device_ranks_update(dt_trainer *t, const dt_device_finish *f, dt_device_buffer *b) DT_NODISCARD;

/* step.c: parts of a step (backend.h) */
dt_status dt_device_begin_step(dt_trainer *t) DT_NODISCARD;
dt_status dt_device_run_shards(dt_trainer *t) DT_NODISCARD;
dt_status dt_device_reduce(dt_trainer *t, dt_status mine) DT_NODISCARD;
dt_status dt_device_update(dt_trainer *t, dt_step_report *out) DT_NODISCARD;
dt_status dt_device_read_step(dt_trainer *t, dt_step_report *out) DT_NODISCARD;
/* The control and step inputs at the begin of an input at base. */
void dt_device_write_control(const dt_plan *p, const dt_device_input *in, const dt_device_control *control,
                             const float *const *step_input, char *base);
/* Copies an input to the device after what still reads it there (NULL: nothing does); what computes waits for it. */
dt_status dt_device_copy_input(const dt_train_device *d, const dt_device_input *in, char *to, const char *from,
                               dt_device_event *read, dt_device_event *copied) DT_NODISCARD;
/* What an exec reads of an input at base on the device, from shard `first` on: live sizes, fields, step inputs. */
typedef struct dt_device_bound {
    void *field[DT_SAMPLES_MAX_FIELDS];
    const float *step_input[DT_TRAIN_MAX_STEP_INPUTS];
} dt_device_bound;
dt_device_feed dt_device_bind_input(const dt_samples *s, const dt_device_input *in, char *base, uint32_t first,
                                    dt_device_bound *room);
/* One slice (NULL: nothing is live) into place i of an input at base. A field may already lie where it goes, if
 * its live part is first there. */
bool dt_device_can_pack_in_place(const dt_samples *s, uint32_t f);
dt_status dt_device_pack_micro_batch(const dt_samples *s, const dt_device_input *in, const int64_t *cap,
                                     const dt_micro_batch *slice, uint32_t i, char *base) DT_NODISCARD;

#endif
