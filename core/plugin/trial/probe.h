/* SPDX-License-Identifier: Apache-2.0
 *
 * A model on trial, outside of any run: created with typical sizes, its graph recorded on inputs of zeros and run. For
 * `dtrain check` and `dtrain show`. The host it gets counts its memory and serves nothing else. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_TRIAL_PROBE_H
#define DTRAIN_CORE_PLUGIN_TRIAL_PROBE_H

#include "engine/graph/graph.h"
#include "plugin/loader/loader.h"
#include "plugin/trial/trial.h"

typedef struct dt_probe_host {
    dt_host host;   /* first */
    int64_t n_live; /* blocks allocated and not released */
} dt_probe_host;
void dt_probe_host_init(dt_probe_host *p);

enum { DT_PROBE_SYMBOL_BYTES = 16 };

typedef struct dt_probe {
    const dt_loaded *model;
    dt_probe_host host;
    dt_trial *trial;      /* notified of calls; NULL */
    void *state, *config; /* owned */
    bool is_created;
    const dt_port *in, *out; /* the model's */
    uint32_t n_in, n_out;
    char symbol_text[DT_GRAPH_MAX_SYMBOLS][DT_PROBE_SYMBOL_BYTES];
    const char
        *symbol[DT_GRAPH_MAX_SYMBOLS]; /* those of roles.h, then those of its ports that an environment defines */
    uint32_t n_symbols;
    dt_param_table params;
    dt_graph *graph;
} dt_probe;

/* config: filled by the model's option table, copied. Sizes: H 16, T 3, F 4, dt_ms 200 and the like, by name. No trial
 * yet. */
dt_status dt_probe_create(dt_probe *p, const dt_loaded *model, const void *config) DT_NODISCARD;
dt_status dt_probe_ports(dt_probe *p) DT_NODISCARD;  /* legal, unique, fixed sizes; fills in and out */
dt_status dt_probe_params(dt_probe *p) DT_NODISCARD; /* registers */
dt_status dt_probe_record(dt_probe *p) DT_NODISCARD; /* and compares shapes of outputs with the ports */
/* Is the graph of `other`, recorded here while that of p lives, the same; and p's, recorded again? other: NULL is fine.
 * Errors: DT_EPLUGIN; those of recording. */
dt_status dt_probe_compare(dt_probe *p, dt_probe *other) DT_NODISCARD;
/* Forward and backward on zeros, on live sizes 3 and then 1; outputs and gradients must be finite. */
dt_status dt_probe_run(dt_probe *p) DT_NODISCARD;
void dt_probe_destroy(dt_probe *p); /* calls the model's destroy; p->host.n_live then counts leaks */

#endif
