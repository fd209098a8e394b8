/* SPDX-License-Identifier: Apache-2.0
 *
 * The static graph: recorded once through the C API (svc/graph.h), differentiated, rewritten by passes, and compiled
 * to a plan (plan.h). This header is how the host makes one; plugins see svc/graph.h only.
 * Threads: [main].
 */
#ifndef DTRAIN_CORE_ENGINE_GRAPH_GRAPH_H
#define DTRAIN_CORE_ENGINE_GRAPH_GRAPH_H

#include "dtrain/svc/graph.h"
#include "base/str.h"
#include "engine/graph/params.h"

enum { DT_GRAPH_MAX_SYMBOLS = 16, DT_GRAPH_MAX_LOSSES = 16 };

typedef struct dt_graph_desc {
    const char *const *symbol; /* ragged letters: those of the data plus "B" (samples) which the host adds; n_symbols */
    uint32_t n_symbols, n_fields;
    const dt_port *field; /* what input() can name; dims tokens: numbers, symbols, symbol+1 */
    const dt_param_table *params;
    /* How model() reaches a bound model: calls its forward between dt_graph_set_scope(g, role) and
     * dt_graph_set_scope(g, "").
     *  */
    dt_status (*model)(void *user, dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out,
                       uint32_t n_out);
    void *user;
    const char *const *recompute; /* roles whose regions count, ends with NULL; NULL or empty: all */
    const char *const *keep;      /* kept values that become outputs, ends with NULL; NULL: none */
    uint32_t purpose;             /* DT_FOR_*; 0: training */
} dt_graph_desc;

/* The desc's arrays must outlive the graph. */
dt_status dt_graph_create(const dt_graph_desc *d, dt_graph **out_p) DT_NODISCARD;
void dt_graph_destroy(dt_graph *g);
const dt_graph_api *dt_graph_api_table(void);           /* service dtrain.graph/1; every graph has it */
void dt_graph_set_scope(dt_graph *g, const char *role); /* prefix of param(): "<role>." */
/* Until set again: prefix of the names that input() takes and of the symbols that loss() takes; what output() names is
 * left out. "": none. prefix outlives the recording. */
void dt_graph_set_source(dt_graph *g, const char *prefix);
/* Shape of a recorded tensor as text, "N 256 f32", for messages. */
void dt_graph_shape_text(const dt_tensor *t, dt_str *out);

typedef struct dt_graph_loss {
    const char *name, *symbol; /* symbol "1": no division */
    double weight;
    uint32_t group; /* select.h */
} dt_graph_loss;
uint32_t dt_graph_losses(const dt_graph *g, const dt_graph_loss **out_p);
bool dt_graph_reads(const dt_graph *g, const char *field);       /* was input(field) recorded? */
const char *dt_graph_output_name(const dt_graph *g, uint32_t i); /* NULL after the last */

#endif
