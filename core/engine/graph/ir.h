/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph: values and nodes in two flat arrays. Nodes are in execution order; an op reads and writes values by index.
 * The recorder appends, the passes append, rewrite and drop, the plan reads. Errors are sticky: after the first one,
 * dt_ir_emit returns -1 and status has the error, so passes need not check every call.
 * Threads: one owner.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_IR_H
#define DTRAIN_CORE_ENGINE_GRAPH_IR_H

#include "engine/backend/kernel.h"
#include "engine/graph/graph.h"
#include "engine/tensor/shape.h"

/* Storage of a value. All but NODE are supplied by the caller of a run. */
typedef enum dt_value_kind {
    DT_VALUE_NODE,  /* written by a node, in the activation arena */
    DT_VALUE_PARAM, /* index of the parameter table */
    DT_VALUE_FIELD, /* index of the fields */
    DT_VALUE_STEP,  /* index of the step inputs */
    DT_VALUE_SEED,  /* index of the losses: f64, where the derivative of that loss starts */
    DT_VALUE_GRAD   /* index of the parameter table: its place in the gradient arena */
} dt_value_kind;

typedef struct dt_value {
    dt_shape shape;
    dt_value_kind kind;
    int32_t index;
    int64_t offset;    /* PARAM and GRAD: element in the arena */
    const char *name;  /* all but NODE, for printing; owned by the graph's or plan's table of strings */
    uint32_t group;    /* PARAM and GRAD: whose losses update it */
    bool trained;      /* PARAM: not frozen, and no statistic */
    bool is_statistic; /* PARAM: a running statistic, not frozen */
    bool accum;        /* GRAD: the node adds to what is there; else it writes the sum itself */
    bool is_half;      /* stored in the half of the graph (storage.h) */
    /* filled by dt_ir_index */
    int32_t producer; /* node, -1 for external storage */
    uint32_t n_uses;  /* inputs that read the data, outputs and losses of the graph; shape-only inputs do not count */
} dt_value;

typedef struct dt_node {
    uint32_t op; /* DT_OPX_*; 0 = dropped */
    uint32_t n_in, n_out;
    int32_t in[DT_KERNEL_MAX_IN]; /* values, -1 = absent optional input */
    int32_t out[DT_KERNEL_MAX_OUT];
    dt_attr attr;
    int32_t region;   /* recompute region, 0 = none */
    bool is_backward; /* made by the derivative */
    bool is_clone;    /* made by recomputing */
} dt_node;

typedef struct dt_ir_loss {
    const char *name, *symbol;
    int32_t value;
    uint32_t group; /* it updates parameters of this group only */
    double weight;
} dt_ir_loss;

typedef struct dt_ir_output {
    const char *name;
    int32_t value;
} dt_ir_output;

typedef struct dt_ir {
    const char *symbol[DT_GRAPH_MAX_SYMBOLS];
    uint32_t n_symbols;
    dt_value *value;
    dt_node *node;
    dt_ir_output *output;
    dt_ir_loss loss[DT_GRAPH_MAX_LOSSES];
    int32_t n_values, n_nodes;
    uint32_t n_outputs, n_losses;
    uint32_t n_groups; /* of losses and parameters, up to 32; 0: one */
    int32_t cap_values, cap_nodes, cap_outputs;
    int32_t region; /* of the nodes being emitted */
    uint32_t half;  /* DT_BF16 or DT_F16 where some values are stored in half, 0: none are */
    bool is_backward;
    char **string; /* names, owned */
    uint32_t n_strings, cap_strings;
    dt_status status; /* first error */
} dt_ir;

void dt_ir_fini(dt_ir *ir);
/* A deep copy, independent of src. On failure dst is empty. */
dt_status dt_ir_copy(const dt_ir *src, dt_ir *dst) DT_NODISCARD;
const dt_ir *dt_graph_ir(const dt_graph *g);                /* what was recorded, until more is */
const char *dt_ir_copy_string(dt_ir *ir, const char *text); /* owned copy; "" after an error */

int32_t dt_ir_add_value(dt_ir *ir, const dt_value *v); /* -1 after an error */
/* Append a node; shapes of its outputs are inferred and checked. Returns the node, -1 after an error.
 * attr may be NULL. */
int32_t dt_ir_emit(dt_ir *ir, uint32_t op, const int32_t *in, uint32_t n_in, const dt_attr *attr);
int32_t dt_ir_output_of(const dt_ir *ir, int32_t node, uint32_t k); /* value of output k, -1 for node -1 */
dt_status dt_ir_add_output(dt_ir *ir, const char *name, int32_t value);
/* Of outputs those for pictures alone (their names begin with picture/), or all others; where names is not NULL, of
 * these those named there (it ends with NULL). Before dt_ir_index. */
void dt_ir_keep_outputs(dt_ir *ir, bool pictures, const char *const *names);

/* Close the gaps of dropped nodes and count producers and uses. */
void dt_ir_index(dt_ir *ir);
bool dt_ir_is_view(const dt_node *n); /* SPLIT, MERGE, STOP: no call, no storage */
/* Does input k of the node read data (present and not shape-only)? */
bool dt_ir_reads(const dt_node *n, uint32_t k);

/* One line per node. */
void dt_ir_print(const dt_ir *ir, dt_str *out);
void dt_ir_print_node(const dt_ir *ir, const dt_node *n, dt_str *out);

#endif
