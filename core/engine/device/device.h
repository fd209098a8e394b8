/* SPDX-License-Identifier: Apache-2.0
 *
 * The face of a device with memory of its own: what the host requires of a device module (backend_cuda) to do. The host
 * knows no header of CUDA; a module is opened on demand (open.h) and hands out one dt_device_ops. Addresses marked
 * "device" may not be read by the host.
 *
 * Leaves: a launch computes all leaves of the rank at once. A view describes the tensor of leaf 0 at CAPACITY, packed
 * in C order; leaf l is l * leaf_stride elements after it. Activations and gradients have one copy per leaf,
 * parameters and step inputs are shared (stride 0). How much of a ragged dimension is live differs by leaf and step and
 * is read by kernels from device memory, so that one captured graph serves every step of a shape class.
 *
 * Beyond the live size of a ragged dimension
 *   fields hold zeros; row pointers (SYMBOL+1) repeat their last live value, so that rows there are empty
 *   outputs are written as zeros, with one exception: LINEAR may leave any finite value there
 *   hence inputs are finite there, gradients (dy) are zero there, and a sum over rows may run at capacity
 * At most one dimension of a tensor is ragged.
 *
 * Kernels: launch on a->stream and return; no allocation, no waiting for the device, nothing that capture forbids. The
 * same input gives the same bits: no float atomics, fixed order of sums; the bits of a leaf do not depend on how many
 * leaves a launch holds. Which ops may write over their input is said in engine/backend/kernel.h, and what each op
 * means in dtrain/ops.def and engine/backend/ops.def. Threads: [main], one device per process.
 */
#ifndef DTRAIN_CORE_ENGINE_DEVICE_DEVICE_H
#define DTRAIN_CORE_ENGINE_DEVICE_DEVICE_H

#include "dtrain/plugin.h"
#include "dtrain/svc/graph.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_DEVICE_MODULE_ENTRY "dt_device_module" /* dt_device_module_fn, the one symbol a module exports */
enum { DT_DEVICE_VERSION = 7 };

typedef struct dt_device dt_device; /* an opened device: context, library handles */
typedef struct dt_device_stream dt_device_stream;
typedef struct dt_device_event dt_device_event;
typedef struct dt_device_graph dt_device_graph; /* captured launches, ready to be replayed */

/* How matrix products multiply. Sums are carried in f32. Tensors may be stored in bf16 or fp16 (a view's dtype), where
 * engine/graph/storage.h stores them so, and only of the type that math names: products of such tensors multiply them
 * as they are. */
typedef enum dt_device_math {
    DT_DEVICE_MATH_F32 = 0,
    DT_DEVICE_MATH_TF32, /* inputs rounded to 10 bits */
    DT_DEVICE_MATH_BF16, /* inputs rounded to bf16 */
    DT_DEVICE_MATH_F16   /* inputs rounded to fp16: needs loss scaling */
} dt_device_math;

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

typedef struct dt_device_view {
    void *data;               /* device, leaf 0; NULL: absent, not needed, or shape only (engine/backend/ops.def) */
    int64_t dim[DT_MAX_DIMS]; /* at capacity */
    int64_t leaf_stride;      /* elements; 0: shared by all leaves */
    int32_t rank, dtype;
    int32_t accum;  /* outputs: 1 = add to what is there */
    int32_t ragged; /* the dimension with a live size, -1: none */
    int32_t symbol; /* live size of leaf l is live[l * n_symbols + symbol] + plus */
    int32_t plus;
} dt_device_view;

typedef struct dt_device_run { /* in device memory: keys of dropout, the same for all leaves */
    uint64_t seed, step;
    uint32_t phase, training; /* training 0: dropout is the identity */
    double share;             /* of a leaf that is not empty in the step's update of statistics */
} dt_device_run;

typedef struct dt_device_args {
    const dt_attr *attr;
    const dt_device_view *in;
    const dt_device_view *out;
    uint32_t n_in, n_out;
    uint32_t leaves, n_symbols;
    const int32_t *live;      /* device [leaves, n_symbols] */
    const dt_device_run *run; /* device */
    void *scratch;            /* device, 256-byte aligned, as large as the kernel's scratch() asked for */
    void *state;              /* what the kernel's prepare() made, NULL without one */
    dt_device *device;
    dt_device_stream *stream;
    uint32_t math; /* dt_device_math */
    uint32_t reserved;
    const void *user; /* of ops of plugins: dt_user_kernel_data (engine/backend/user.h) */
} dt_device_args;

/* One op. run is called for every launch while capturing, and every step without graphs. */
typedef struct dt_device_kernel {
    uint32_t op; /* DT_OPX_* */
    uint32_t reserved;
    const char *name;
    dt_status (*run)(const dt_device_args *a);
    /* Device bytes for one call at these capacities; NULL: none. Addresses in a only mark what is present. */
    size_t (*scratch)(const dt_device_args *a);
    /* Once per call of a plan, before it first runs: descriptors, choice of algorithms. May wait. NULL: none. */
    dt_status (*prepare)(const dt_device_args *a, void **state_p);
    void (*release)(void *state);
} dt_device_kernel;

/* ---- devices ----------------------------------------------------------------------------------------------------- */

typedef struct dt_device_info {
    uint32_t index;                 /* among those this process may see */
    uint32_t major, minor, n_units; /* compute capability, multiprocessors */
    uint64_t total_bytes;
    char name[64], uuid[48]; /* "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6" */
    char bus[24];
    /* Of an opened one: the compute capability, as 10 * major + minor, for which the code that runs there was compiled;
     * an earlier major than its own when the driver translated it. 0: unknown. */
    uint32_t code;
} dt_device_info;

typedef struct dt_device_versions { /* 1000 * major + 10 * minor, as CUDA counts; 0: not there */
    uint32_t driver, runtime, built_for;
    uint32_t blas, dnn, nccl; /* as each library counts */
} dt_device_versions;

enum { DT_DEVICE_TO_DEVICE = 0, DT_DEVICE_TO_HOST, DT_DEVICE_WITHIN };

/* ---- the end of a step ------------------------------------------------------------------------------------------- */

/* Sums of squares are taken of blocks of the arena, and blocks are added in one order: the same norm, whichever ranks
 * had which blocks. Parameters may belong to groups, which are moved in some steps and not in others, with norms, clips
 * and updates of their own: a block has parameters of one group at most. */
enum { DT_DEVICE_MAX_LOSSES = 16, DT_DEVICE_MAX_GROUPS = 8, DT_DEVICE_BLOCK = 1024, DT_DEVICE_GRANULE = 64 };
/* Of a mark of dt_device_finish.trained: a running statistic, from which the sum is subtracted; it is in no norm, but
 * must be finite like all. */
enum { DT_DEVICE_STATISTIC = 0x80 };

typedef struct dt_device_consts { /* one update's numbers (engine/optim/loops.h), rounded to float once by the host */
    float l2, beta1, one_minus_beta1, beta2, one_minus_beta2, rate, inv_root, eps, keep;
    float reserved;
} dt_device_consts;

/* What the host sends with the inputs of a step. Steps are launched before it is known whether the last one was
 * applied, so there are two sets for each group: for its update number `first` and for the one after it. */
typedef struct dt_device_control {
    dt_device_run run;
    uint64_t first[DT_DEVICE_MAX_GROUPS];
    dt_device_consts consts[DT_DEVICE_MAX_GROUPS][2];
    double gradient_clip[DT_DEVICE_MAX_GROUPS]; /* 0: none */
    double loss_seed[DT_DEVICE_MAX_LOSSES];     /* weight / normaliser, before the loss scale */
} dt_device_control;

typedef struct dt_device_state { /* in device memory from step to step, and in checkpoints */
    uint64_t updates;            /* applied so far */
    uint64_t group_updates[DT_DEVICE_MAX_GROUPS];
    double loss_scale;
    int64_t good_steps; /* since the scale last changed */
    int64_t tolerance;  /* overflows left before the scale is lowered */
    uint64_t skipped;   /* steps without an update in a row */
} dt_device_state;

typedef struct dt_device_scaler { /* constant: fp16 loss scaling (core/engine/amp) */
    uint32_t enabled, dynamic;
    double growth, backoff, min, max;
    int64_t interval, hysteresis;
    uint32_t refill, reserved; /* hysteresis is refilled by: 0 growth of the scale, 1 any finite step */
} dt_device_scaler;

typedef struct dt_device_result {      /* copied to the host, read a step late */
    double loss[DT_DEVICE_MAX_LOSSES]; /* sums over the leaves in the fixed tree */
    double norm;                       /* of the unscaled gradient, before clipping */
    double group_norm[DT_DEVICE_MAX_GROUPS];
    uint64_t group_updates[DT_DEVICE_MAX_GROUPS]; /* after this step */
    int64_t bad;       /* the first element of the gradient that is not finite, -1: none is known */
    double loss_scale; /* with which this step ran */
    uint64_t updates;  /* after this step */
    uint64_t skipped;
    uint32_t is_finite, applied;
} dt_device_result;

/* Leaves of a launch that make a node of the fixed tree (comm/tree.h), a power of two of them. The sums that the
 * tree adds on their left by then, each of as many leaves as what it meets, lie in the slots from `slot` on, the
 * leftmost first; what they all come to is put into the first of these. */
typedef struct dt_device_node {
    uint32_t first, n;       /* leaves of the launch */
    uint32_t slot, n_before; /* slots of sums */
} dt_device_node;

enum { DT_DEVICE_NODE_LEAVES = 64, DT_DEVICE_PIECES = 32 }; /* at most: of a node, of one call */

/* Gradients of leaves that are complete: [leaves, leaf_stride], of which n elements count. */
typedef struct dt_device_piece {
    const float *from; /* device; of the first leaf of the launch */
    int64_t leaf_stride, n;
    int64_t to; /* element of a slot where they belong */
} dt_device_piece;

typedef struct dt_device_sums {
    float *slot;                  /* device; [slots, total] */
    int64_t total;                /* elements; a multiple of DT_DEVICE_GRANULE */
    const dt_device_piece *piece; /* [n_pieces] read while launching */
    uint32_t n_pieces;
    dt_device_node node;
} dt_device_sums;

/* Elements [begin, end) of the arena that this rank owns of the sum, and updates. A slice begins and ends with a block,
 * or where everything in the block beyond is frozen, whose gradient is zero. moment: where its first element is in the
 * arenas of moments. */
typedef struct dt_device_slice {
    int64_t begin, end, moment;
} dt_device_slice;

typedef struct dt_device_finish {             /* all addresses are device addresses, but for slice */
    float *grad;                              /* [total] the sum; one of several ranks: in its slices */
    float *param;                             /* [total] */
    float *moment[2];                         /* of the slices; moment[1] NULL: SGD */
    const uint8_t *trained;                   /* [total / DT_DEVICE_GRANULE]: 1 + group that may update it (and
                                               * DT_DEVICE_STATISTIC), 0: none */
    const uint8_t *block_group;               /* [total / DT_DEVICE_BLOCK, rounded up]; NULL: there is one group */
    double *block_sum;                        /* [total / DT_DEVICE_BLOCK, rounded up] */
    double *seed;                             /* [n_losses], what the derivative starts from: written by begin */
    const double *loss[DT_DEVICE_MAX_LOSSES]; /* per loss: [loss_leaves]; NULL: of groups that are not moved */
    const dt_device_control *control;
    dt_device_state *state;
    dt_device_result *result;
    const dt_device_slice *slice; /* [n_slices] read while launching */
    dt_device_scaler scaler;
    int64_t total;        /* a multiple of DT_DEVICE_GRANULE */
    uint32_t loss_leaves; /* a power of two */
    uint32_t n_losses, n_slices;
    uint32_t is_part;          /* 1: grad holds the sum in the slices alone, so that a bad element is not looked for */
    uint32_t n_groups, groups; /* at least one; bits of those that this step moves */
} dt_device_finish;

/* to += tau (from - to) of n, tau 1: a copy; where the step was applied, and the group's updates are then a multiple of
 * `every`. */
typedef struct dt_device_blend {
    float *to; /* device, as from and result are */
    const float *from;
    const dt_device_result *result;
    int64_t n;
    uint64_t every;
    uint32_t group;
    float tau;
} dt_device_blend;

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef struct dt_device_host { /* what the host lends to a module */
    uint32_t struct_size, reserved;
    dt_status (*fail)(dt_status st, const char *file, int line, const char *fmt, ...) DT_PRINTF(4, 5);
    void (*log)(int level, const char *fmt, ...) DT_PRINTF(2, 3);
} dt_device_host;

typedef struct dt_device_ops {
    uint32_t struct_size, version; /* DT_DEVICE_VERSION */
    const char *name;              /* "cuda" */

    /* Discovery. No driver or no device is DT_EUNSUPPORTED with the reason and a remedy. */
    dt_status (*count)(uint32_t *n_p);
    dt_status (*describe)(uint32_t index, dt_device_info *out_p);
    void (*versions)(dt_device_versions *out_p);
    /* The device of this process: its context is created here. DT_EUNSUPPORTED: no code for it. */
    dt_status (*open)(uint32_t index, dt_device **out_p);
    void (*close)(dt_device *d);
    const dt_device_info *(*info)(const dt_device *d);
    dt_status (*memory)(dt_device *d, uint64_t *free_p, uint64_t *total_p);
    /* Can device `from` read and write the memory of device `to` by itself? Nothing is opened for it. */
    dt_status (*peer)(uint32_t from, uint32_t to, uint32_t *can_p); /* 1 or 0 */

    /* Memory, zeroed. DT_ENOMEM reports how much was requested and how much is free. */
    dt_status (*alloc)(dt_device *d, size_t bytes, void **device_p);
    void (*release)(dt_device *d, void *device);
    dt_status (*pin)(dt_device *d, size_t bytes, void **host_p); /* page-locked host memory */
    void (*unpin)(dt_device *d, void *host);

    /* Streams and events. event_wait: the stream waits, not the host; stream_sync and event_sync: the host waits. */
    dt_status (*stream_create)(dt_device *d, dt_device_stream **out_p);
    void (*stream_destroy)(dt_device *d, dt_device_stream *s);
    dt_status (*stream_sync)(dt_device *d, dt_device_stream *s);
    dt_status (*event_create)(dt_device *d, uint32_t timed, dt_device_event **out_p);
    void (*event_destroy)(dt_device *d, dt_device_event *e);
    dt_status (*event_record)(dt_device *d, dt_device_event *e, dt_device_stream *s); /* captured: at every launch */
    dt_status (*event_wait)(dt_device *d, dt_device_event *e, dt_device_stream *s);
    dt_status (*event_sync)(dt_device *d, dt_device_event *e);
    dt_status (*event_query)(dt_device *d, dt_device_event *e, bool *is_done_p);
    dt_status (*event_ms)(dt_device *d, dt_device_event *from, dt_device_event *to, float *ms_p);
    dt_status (*copy)(dt_device *d, void *to, const void *from, size_t bytes, uint32_t direction, dt_device_stream *s);
    dt_status (*zero)(dt_device *d, void *device, size_t bytes, dt_device_stream *s);

    /* Graphs: what is launched on s between begin and end is recorded instead of run. */
    dt_status (*capture_begin)(dt_device *d, dt_device_stream *s);
    dt_status (*capture_end)(dt_device *d, dt_device_stream *s, dt_device_graph **out_p);
    void (*graph_destroy)(dt_device *d, dt_device_graph *g);
    dt_status (*graph_launch)(dt_device *d, dt_device_graph *g, dt_device_stream *s);
    uint32_t (*graph_nodes)(const dt_device_graph *g);

    const dt_device_kernel *(*kernel)(uint32_t op); /* NULL when the device has none for the op */
    /* to[n] = from[n], rounded to the nearest of dtype, DT_BF16 or DT_F16. NULL: this device stores f32 alone. */
    dt_status (*narrow)(dt_device *d, void *to, const float *from, int64_t n, uint32_t dtype, dt_device_stream *s);
    /* Before forward: seeds from control and the loss scale. */
    dt_status (*begin)(dt_device *d, const dt_device_finish *f, dt_device_stream *s);
    /* While backward continues: gradients of leaves into sums, in the fixed tree. A leaf's zeros lose their sign. */
    dt_status (*sum)(dt_device *d, const dt_device_sums *f, dt_device_stream *s);
    /* After backward: measure, apply. Of several ranks: their slices of the sum of all ranks are put where they belong
     * in grad; measure; block sums and losses of all ranks are put into their places; apply.
     * measure: block sums of the slices of grad. */
    dt_status (*measure)(dt_device *d, const dt_device_finish *f, dt_device_stream *s);
    /* Norm and finite check, of all block sums and losses; loss scale, clipping, update of the slices, result. */
    dt_status (*apply)(dt_device *d, const dt_device_finish *f, dt_device_stream *s);
    /* to[i] += from[i], of n: a step of the fixed tree over ranks */
    dt_status (*add)(dt_device *d, float *to, const float *from, int64_t n, dt_device_stream *s);
    /* After apply: copies of parameters that follow them. */
    dt_status (*blend)(dt_device *d, const dt_device_blend *b, dt_device_stream *s);
} dt_device_ops;

typedef const dt_device_ops *dt_device_module_fn(const dt_device_host *host);

#ifdef __cplusplus
}
#endif
#endif
