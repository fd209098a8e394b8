/* SPDX-License-Identifier: Apache-2.0
 *
 * Dead code. See passes.h.
 */
#ifdef HAVE_CONFIG_H
#    include "config.h"
#endif

#include "engine/graph/passes.h"
#include "base/err.h"
#include "base/mem.h"

static dt_status drop_dead(dt_ir *ir, bool keeps_shapes)
{
    bool *live = dt_alloc_n((size_t)ir->n_values, sizeof(*live));
    if (live == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a graph of %d values", ir->n_values);
    }
    for (uint32_t i = 0; i < ir->n_losses; i++) {
        live[ir->loss[i].value] = true;
    }
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        live[ir->output[i].value] = true;
    }
    for (int32_t i = ir->n_nodes - 1; i >= 0; i--) {
        dt_node *n = &ir->node[i];
        bool is_live = false;
        for (uint32_t k = 0; k < n->n_out; k++) {
            is_live = is_live || live[n->out[k]] || ir->value[n->out[k]].kind == DT_VALUE_GRAD;
        }
        if (!is_live) {
            n->op = 0;
            continue;
        }
        for (uint32_t k = 0; k < n->n_in; k++) {
            if (keeps_shapes ? n->in[k] >= 0 : dt_ir_reads(n, k)) {
                live[n->in[k]] = true;
            }
        }
    }
    dt_free(live);
    dt_ir_index(ir);
    return DT_OK;
}

dt_status dt_pass_dead(dt_ir *ir)
{
    return drop_dead(ir, false);
}

dt_status dt_pass_dead_shaped(dt_ir *ir)
{
    return drop_dead(ir, true);
}
