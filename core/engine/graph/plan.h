/* SPDX-License-Identifier: Apache-2.0
 *
 * Plan: a compiled graph. Passes run at compile time (derivative, dead code, fusion, recompute mark, memory plan); the
 * result is a flat, immutable array of kernel calls over one planned activation arena. dt_exec is one worker's
 * instance: its arena and its views. Many execs of one plan run at once on different micro-batches. No allocation after
 * create.
 *
 * Memory plan: greedy by size over lifetime intervals of the joint forward-backward schedule (Pisarchyk & Lee 2020),
 * 256-byte alignment, in-place and views only where the op table allows. reuse = false gives every value its own place
 * and must be bitwise equal; poison fills freed and padding ranges with NaN.
 * Threads: compile [main]; dt_exec_run [worker], one thread per exec.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_PLAN_H
#define DTRAIN_CORE_ENGINE_GRAPH_PLAN_H

#include "engine/backend/kernel.h"
#include "engine/graph/graph.h"

typedef struct dt_plan dt_plan;
typedef struct dt_exec dt_exec;

typedef struct dt_plan_desc {
    dt_kernel_set kernels;
    bool training;      /* derive and run backward; false: outputs and losses only */
    bool reuse, poison; /* memory plan modes */
    bool fuse;
    bool recompute;    /* honour recompute_begin/end */
    bool outputs_only; /* not for training: losses, and what they alone need, are left out */
    bool pictures;     /* with outputs_only: outputs for pictures, which are left out otherwise, and no others */
    const char *const *outputs; /* with outputs_only: of these those named here, ends with NULL; NULL: all */
    const int64_t *cap;         /* largest live size per symbol of the graph */
    uint32_t half; /* kernel set DEVICE: DT_BF16 or DT_F16 to store in it what may be (storage.h); 0: all in f32 */
} dt_plan_desc;

typedef struct dt_plan_info {
    size_t arena_bytes;       /* activations and scratch of one exec */
    size_t kept_bytes;        /* of parameters, in another form, by one exec */
    size_t lower_bound_bytes; /* largest sum of live values at any node: what no plan can beat */
    uint32_t n_calls, n_views, n_fused, n_recomputed;
} dt_plan_info;

typedef struct dt_plan_cost {
    double flops; /* multiply-adds count two */
    double bytes; /* between calls: inputs read once, outputs written once, and read too where they are added to */
} dt_plan_cost;

dt_status dt_plan_compile(const dt_graph *g, const dt_plan_desc *d, dt_plan **out_p) DT_NODISCARD;
void dt_plan_destroy(dt_plan *p);
const dt_plan_info *dt_plan_info_get(const dt_plan *p);
typedef struct dt_call_cost { /* one of the plan's n_calls */
    const char *op;
    bool is_product; /* of matrices: what mixed precision computes in half */
    dt_plan_cost cost;
} dt_call_cost;

/* What one call costs at these live sizes, and one run of the whole plan. */
dt_call_cost dt_plan_call_cost(const dt_plan *p, uint32_t call, const int64_t *size);
dt_plan_cost dt_plan_cost_get(const dt_plan *p, const int64_t *size);
/* How much of an exec's arenas becomes resident by runs at these live sizes. */
size_t dt_plan_touched_bytes(const dt_plan *p, const int64_t *size);
void dt_plan_print(const dt_plan *p, dt_str *out); /* calls with shapes, offsets, lifetimes */

/* The last call, counted from 0, that writes gradients of elements [begin, end) of the parameter arena; -1: none. */
int64_t dt_plan_last_write(const dt_plan *p, int64_t begin, int64_t end);
/* Indices of what the feed must supply, by name; -1 when the plan does not use it. */
int32_t dt_plan_field(const dt_plan *p, const char *name);
uint32_t dt_plan_step_inputs(const dt_plan *p, const char *const **name_p, const int64_t **count_p);

typedef struct dt_exec_feed {
    const int64_t *size; /* live size per symbol of the graph */
    void *const *field;  /* per field of the graph's desc, in its order; NULL where dt_plan_field returns -1 */
    const float *const *step_input;           /* per step input */
    const void *params;                       /* parameter arena (double in ref64) */
    void *grads;                              /* gradient arena, added to; NULL when the plan is not for training */
    const double *loss_seed;                  /* per loss: weight / normaliser; the derivative starts from it */
    double *loss;                             /* per loss: the sum over the micro-batch is ADDED here */
    const dt_kernel_run *run;                 /* is_kept is set by dt_exec_run */
    void (*after)(void *user, uint32_t call); /* after each call, counted from 0; NULL: none */
    void *after_user;
    uint32_t groups;         /* bits of those whose losses and gradients are needed; 0: all */
    uint64_t params_version; /* as long as it stays the same, so do the parameters' values; 0: unknown */
} dt_exec_feed;

dt_status dt_exec_create(const dt_plan *p, dt_exec **out_p) DT_NODISCARD;
void dt_exec_destroy(dt_exec *e);
/* Runs the whole plan on one slice. Errors: DT_EINVAL when a live size is over its capacity. Allocates nothing. */
dt_status dt_exec_run(dt_exec *e, const dt_exec_feed *feed);
/* Output i of the last run, in the order of the graph's, with its name; NULL: there are no more. */
const dt_view *dt_exec_output_at(const dt_exec *e, uint32_t i, const char **name_p);
/* A named output of the last run; NULL when there is none. Live until the next run. */
const dt_view *dt_exec_output(const dt_exec *e, const char *name);

#endif
