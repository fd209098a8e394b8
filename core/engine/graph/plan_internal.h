/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan is made of, for plan.c and exec.c only. Views of all calls are in one array: the inputs, then the
 * outputs of call 0, of call 1, ...; after them one per named output and one per loss. The plan holds a template of
 * each view; patches list what a run fills in: live sizes, and addresses that the caller supplies.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_PLAN_INTERNAL_H
#define DTRAIN_CORE_ENGINE_GRAPH_PLAN_INTERNAL_H

#include "engine/graph/ir.h"
#include "engine/graph/memory_plan.h"
#include "engine/graph/plan.h"

typedef struct dt_plan_call {
    dt_kernel *kernel;
    int32_t node;
    uint32_t view, n_in, n_out; /* first view */
    size_t kept;                /* bytes into what calls keep, SIZE_MAX = keeps nothing */
    uint32_t groups;            /* bits of those that need it */
} dt_plan_call;

typedef struct dt_plan_dim { /* dimension of a view = live size of symbol + plus */
    uint32_t view, dim;
    int32_t symbol;
    int64_t plus;
} dt_plan_dim;

typedef struct dt_plan_data { /* data of a view = address supplied by the caller + offset */
    uint32_t view;
    dt_value_kind kind;
    int32_t index;
    size_t offset;
} dt_plan_data;

typedef struct dt_plan_source { /* a field or step input that the plan reads */
    int32_t value;
    size_t copy_offset; /* ref64: where its copy in double is among the copies; SIZE_MAX = used in place */
    int64_t copy_cap;   /* elements */
} dt_plan_source;

typedef struct dt_plan_fill { /* poison: a block that ends with a call */
    uint32_t call;
    int32_t block;
} dt_plan_fill;

struct dt_plan {
    dt_kernel_set kernels;
    bool poison;
    int64_t cap[DT_GRAPH_MAX_SYMBOLS];
    dt_plan_info info;
    dt_ir ir;
    dt_memory memory;
    size_t scratch_bytes, copy_bytes, kept_bytes;
    dt_plan_call *call;
    dt_view *view;  /* templates, data is NULL */
    size_t *offset; /* per view: bytes into the arena, SIZE_MAX = not there */
    dt_plan_dim *dim;
    dt_plan_data *data;
    dt_plan_source *source;
    dt_plan_fill *fill; /* by call */
    const char **step_name;
    int64_t *step_count;
    uint32_t n_calls, n_views, n_dims, n_data, n_sources, n_fills, n_steps, n_fields;
    uint32_t output_view, loss_view; /* first of each */
};

#endif
