/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameter table: every trainable tensor of a phase's models, its place in the flat arenas, and its initial value.
 *
 * Parameters, gradients and moments are each one flat fp32 arena with the same offsets; each tensor starts at a
 * multiple of 64 elements, gaps are zero, so that norms, updates, hashes and reductions are single passes. Order: order
 * of registration (models as bound, perception first). Frozen tensors keep their place and have no gradient; constants
 * of a model are frozen from the beginning, and called <role>.constant.<name>. Running statistics have the place of a
 * gradient, in which shards put what the step subtracts (DT_OPX_BATCH_NORM_BWD).
 *
 * A target network is a copy of all parameters of a role, called <role>@<target>.<name>: frozen, moved by the trainer
 * alone. Frozen copies follow all else, so that arenas of gradients and moments end before them.
 * Threads: [main] while building, [any] read-only afterwards.
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_PARAMS_H
#define DTRAIN_CORE_ENGINE_GRAPH_PARAMS_H

#include "dtrain/plugin.h"
#include <stdbool.h>

#define DT_PARAM_CONSTANT "constant." /* what the name of a constant begins with, after its role */

typedef struct dt_param {
    char *name; /* "<role>.<name>", or "<role>@<target>.<name>"; owned */
    int64_t dim[4];
    uint32_t n_dims, init;
    double init_a;
    int64_t count, offset; /* elements */
    bool frozen;           /* constants are */
    bool is_constant;      /* DT_INIT_CONSTANT: no step ever trains it */
    bool is_statistic;     /* DT_INIT_STATISTIC: steps move it, but no optimizer */
    bool is_target;
    uint32_t target, of; /* of a target network: which of the table's, and the parameter that it is a copy of */
} dt_param;

typedef struct dt_param_target {
    char *role, *name; /* owned */
} dt_param_target;

typedef struct dt_param_table {
    dt_param *param;
    uint32_t n, cap;
    dt_param_target *target;
    uint32_t n_targets;
    int64_t total;      /* elements of an arena, gaps included: for memory; users are shown count */
    int64_t base_total; /* the same without target networks: arenas of gradients and moments */
    int64_t count;      /* elements of all parameters but target networks */
    bool has_statistics;
    int64_t trained_count; /* elements that are not frozen and no statistics, without gaps */
} dt_param_table;

/* Where what follows p in an arena begins at the earliest. */
int64_t dt_param_end(const dt_param *p);
void dt_param_table_fini(dt_param_table *t);
/* role may be <role>@<target>, where no model is any more. Errors: DT_EINVAL (name, dims), DT_ECONFIG (more
 * elements than a tensor may have), DT_ENOMEM; a duplicate name is DT_EPLUGIN. */
dt_status dt_param_table_add(dt_param_table *t, const char *role, const char *name, const int64_t *dim, uint32_t n_dims,
                             uint32_t init, double a) DT_NODISCARD;
/* What is added next begins at a multiple of so many elements. */
void dt_param_table_align(dt_param_table *t, int64_t elements);
const dt_param *dt_param_table_find(const dt_param_table *t, const char *full_name);
/* A copy of what the role has by now, which may be nothing, after all that was added; nothing is added after it but
 * target networks. name: [a-z][a-z0-9_]*. Errors: DT_EPLUGIN (name, the role has one of it), DT_ENOMEM. */
dt_status dt_param_table_add_target(dt_param_table *t, const char *role, const char *name) DT_NODISCARD;
bool dt_param_table_has_target(const dt_param_table *t, const char *role, const char *name);
/* Freeze every parameter whose role equals the pattern or whose full name matches it as a glob; count goes to n_p.
 * Target networks are not asked. Errors: DT_ECONFIG: the pattern is empty. */
dt_status dt_param_table_freeze(dt_param_table *t, const char *pattern, uint32_t *n_p);
/* Initial values of all tensors; each depends on (seed, name) alone, a target network's are those of what it is a copy
 * of. arena: [total]. DT_INIT_ORTHO of an r by c matrix costs r c min(r, c). Errors: DT_ENOMEM. */
dt_status dt_param_table_init(const dt_param_table *t, uint64_t seed, float *arena) DT_NODISCARD;
/* Target networks become what they are copies of; name: those called so alone, NULL: all. */
void dt_param_table_copy_targets(const dt_param_table *t, const char *name, float *arena);

#endif
