/* SPDX-License-Identifier: Apache-2.0
 *
 * An export as a safetensors file: the tensors under their names, the bounds of actions as actions.low and
 * actions.high, and in the file's metadata what the caller names, and "dtrain.export", the rest as JSON:
 *
 *   { "version": 1, "window": W,
 *     "symbols": [ {"name": "A", "most": 64}, ... ],
 *     "inputs":  [ {"name": "obs", "dims": "A 12", "dtype": "f32", "kind": "given", "read": true}, ... ],
 *     "heads":   [ 5, 3 ], "continuous": 1, "squash": true,
 *     "tensors": [ "controller.policy.0.w", ... ],
 *     "nodes":   [ {"op": "linear", "in": [0, 5, 6]}, {"op": "affine", "in": [9], "f": [0.5]}, ... ],
 *     "outputs": [ {"name": "logits", "value": 31}, ... ] }
 *
 * squash: actions are the middle of their bounds + half the distance * tanh(mean), where it is there and true; such a
 * file is of version 2, any other of version 1.
 * Values are numbered as in bundle.h; -1 is an optional input that is absent; "i" and "f" are the node's attributes as
 * in dtrain/ops.def, zeros at their end left out, "inf" and "-inf" as text. Any safetensors reader opens the file.
 * Threads: [any], an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_EXPORT_POLICY_FILE_H
#define DTRAIN_CORE_EXPORT_POLICY_FILE_H

#include "export/bundle.h"

/* Written to a temporary file, flushed, renamed. Errors: DT_EIO, DT_ENOMEM. */
dt_status dt_policy_file_write(const dt_bundle *b, const char *path) DT_NODISCARD;

typedef struct dt_policy_file { /* as read: nothing of the file stays open */
    dt_bundle_input input[DT_BUNDLE_MAX_INPUTS];
    dt_port port[DT_BUNDLE_MAX_INPUTS]; /* the graph's fields: the inputs again */
    uint32_t n_inputs;
    const char *symbol[DT_GRAPH_MAX_SYMBOLS];
    int64_t most[DT_GRAPH_MAX_SYMBOLS];
    uint32_t n_symbols;
    dt_param_table params;
    float *values; /* arena of params */
    dt_graph *graph;
    uint32_t n_heads, n_continuous, window;
    int32_t choices[DT_ENV_MAX_HEADS];
    float *low, *high; /* [n_continuous] */
    bool is_squashed;
    const char *phase, *environment;
    dt_setting *setting; /* options of what it was trained with: "cartpole.max_steps", "500" */
    uint32_t n_settings;
    char **string; /* after all texts */
    uint32_t n_strings, cap_strings;
} dt_policy_file;

/* Keys of metadata that the reader knows; others are for people. */
#define DT_POLICY_FILE_EXPORT      "dtrain.export"
#define DT_POLICY_FILE_PHASE       "phase"
#define DT_POLICY_FILE_ENVIRONMENT "environment"
#define DT_POLICY_FILE_SETTINGS    "settings" /* one JSON object of key and text */

/* Everything is checked before it is used; the graph is recorded again, so that shapes fit. Errors: DT_ENOTFOUND,
 * DT_EDATA (what is wrong, and where), DT_EIO, DT_ENOMEM. On failure *out_p is empty. */
dt_status dt_policy_file_read(const char *path, dt_policy_file *out_p) DT_NODISCARD;
/* The same of bytes in memory, which are not needed afterwards; name: what messages call it. */
dt_status dt_policy_file_read_bytes(const void *bytes, size_t n_bytes, const char *name, dt_policy_file *out_p)
    DT_NODISCARD;
void dt_policy_file_fini(dt_policy_file *f);

#endif
