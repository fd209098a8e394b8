/* SPDX-License-Identifier: Apache-2.0
 *
 * What an export holds: the inference part of what a phase recorded, with its parameters, and what one must know to
 * feed it and to act by it. It is a graph of public ops alone: losses, dropout and what only they need are gone, and
 * what the host does to observations before a policy sees them (normalisation) is part of it.
 *
 * The graph's values are numbered inputs first, tensors next, then the results of its nodes in order, so that a reader
 * recording the same nodes gives the same numbers (policy_file.h). Written by policy_file.c and onnx.c; the host fills
 * it. Threads: one owner.
 */
#ifndef DTRAIN_CORE_EXPORT_BUNDLE_H
#define DTRAIN_CORE_EXPORT_BUNDLE_H

#include "engine/graph/ir.h"

enum { DT_BUNDLE_MAX_INPUTS = 48 };

typedef enum dt_bundle_kind {
    DT_BUNDLE_GIVEN,   /* the caller has it: an observation, or a field of the data */
    DT_BUNDLE_HISTORY, /* [W,A,D] the last rows of a given input, zeros before an agent came */
    DT_BUNDLE_PRESENT, /* [W,A] 1 where the agent was there */
    DT_BUNDLE_MASK,    /* [A,choices] f32: 1 where the environment allows the choice */
    DT_BUNDLE_STEPS    /* [T,rows,...]: the caller has [rows,T,...], an observation by DT_PORT_STEPS */
} dt_bundle_kind;

typedef struct dt_bundle_field { /* a field of the recorded graph, in its order */
    dt_bundle_kind kind;
    int32_t of;                /* HISTORY: which field it remembers */
    int32_t index_of;          /* of i32: its values count rows of this symbol, -1: of none */
    const float *mean, *scale; /* GIVEN: (x - mean) * scale comes first, [columns]; NULL: as it is */
    float clip;                /* and then within +- clip; 0: no bound */
} dt_bundle_field;

typedef struct dt_bundle_input {
    const char *name, *dims;
    uint32_t dtype;
    dt_bundle_kind kind;
    int32_t of, index_of; /* as above; of: an input */
    bool is_read;         /* false: only its history is */
} dt_bundle_input;

typedef struct dt_bundle_tensor {
    const char *name;
    const int64_t *dim;
    uint32_t n_dims;
    const float *data; /* the caller's */
} dt_bundle_tensor;

typedef struct dt_bundle_actions { /* none: not a policy */
    uint32_t n_heads, n_continuous, window;
    const int32_t *choices;  /* [n_heads] */
    const float *low, *high; /* [n_continuous] */
    bool is_squashed;        /* mean becomes the middle of low and high + half their distance * tanh(mean) */
} dt_bundle_actions;

typedef struct dt_bundle {
    dt_ir ir; /* FIELD and PARAM values: index of input and tensor */
    dt_bundle_input input[DT_BUNDLE_MAX_INPUTS];
    dt_bundle_tensor *tensor;
    uint32_t n_inputs, n_tensors;
    int64_t most[DT_GRAPH_MAX_SYMBOLS]; /* rows per symbol that a run may have */
    dt_bundle_actions actions;
    const char *const (*metadata)[2]; /* what else is to be known, [n_metadata] key and text; the caller's */
    uint32_t n_metadata;
    int64_t *dims; /* after tensor */
} dt_bundle;

typedef struct dt_bundle_desc { /* all the caller's; parameters, statistics and actions outlive the bundle */
    const dt_graph *graph;
    const dt_port *field; /* what the graph's input() can name, in the order it was given */
    const dt_bundle_field *how;
    uint32_t n_fields;
    const dt_param_table *params;
    const float *values; /* arena of params */
    const int64_t *most; /* per symbol of the graph */
    dt_bundle_actions actions;
    const char *const *outputs; /* which of those recorded, ends with NULL; NULL: all but those for pictures */
    /* What a step input was set to, [*n_p], outliving the bundle, of which it becomes a tensor step.<name>; NULL: it
     * was not. NULL: none was. */
    const float *(*step)(const void *user, const char *name, uint32_t *n_p);
    const void *user;
} dt_bundle_desc;

/* Errors: DT_EINVAL when an output depends on a step input that was not set, DT_ENOMEM. */
dt_status dt_bundle_make(const dt_bundle_desc *d, dt_bundle *out_p) DT_NODISCARD;
void dt_bundle_fini(dt_bundle *b);

#endif
