/* SPDX-License-Identifier: Apache-2.0
 *
 * Recomputing instead of keeping (activation checkpointing; Chen et al. 2016, "Training deep nets with sublinear memory
 * cost"). See passes.h.
 *
 * For one region: values that leave it in the forward pass are kept; of the others, those that a backward node reads
 * are cloned together with what they need inside the region, in front of the first backward node that reads one of
 * them.
 */
#include <config.h>

#include "engine/graph/passes.h"
#include "base/err.h"
#include "base/mem.h"

#include <string.h>

typedef struct region {
    dt_ir *ir;
    int32_t id;
    bool *hidden;   /* per value: made in the region and read by nothing in the forward pass outside it */
    bool *wanted;   /* per value: must be computed again */
    int32_t *clone; /* per value: its second copy, -1 = none */
    int32_t n_values;
    int32_t first; /* first backward node that reads a wanted value, -1 = none */
} region;

static bool is_inside(const region *r, const dt_node *n)
{
    return n->region == r->id && !n->is_backward && !n->is_clone;
}

static void find_hidden_values(region *r)
{
    const dt_ir *ir = r->ir;
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        if (is_inside(r, n)) {
            for (uint32_t k = 0; k < n->n_out; k++) {
                r->hidden[n->out[k]] = true;
            }
        } else if (!n->is_backward && !n->is_clone) {
            for (uint32_t k = 0; k < n->n_in; k++) {
                if (dt_ir_reads(n, k)) {
                    r->hidden[n->in[k]] = false;
                }
            }
        }
    }
}

static void find_wanted_nodes(region *r)
{
    const dt_ir *ir = r->ir;
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        if (n->is_backward) {
            for (uint32_t k = 0; k < n->n_in; k++) {
                if (dt_ir_reads(n, k) && r->hidden[n->in[k]]) {
                    r->wanted[n->in[k]] = true;
                    r->first = r->first < 0 ? i : r->first;
                }
            }
        }
    }
    /* and what these are made of, inside the region */
    for (int32_t i = ir->n_nodes - 1; i >= 0; i--) {
        const dt_node *n = &ir->node[i];
        bool is_wanted = false;
        if (is_inside(r, n)) {
            for (uint32_t k = 0; k < n->n_out; k++) {
                is_wanted = is_wanted || r->wanted[n->out[k]];
            }
        }
        if (is_wanted) {
            for (uint32_t k = 0; k < n->n_in; k++) {
                if (dt_ir_reads(n, k) && r->hidden[n->in[k]]) {
                    r->wanted[n->in[k]] = true;
                }
            }
        }
    }
}

/* Copy the wanted nodes to the end of the node array, in order; returns how many. */
static int32_t append_clones(region *r)
{
    dt_ir *ir = r->ir;
    int32_t before = ir->n_nodes;
    for (int32_t i = 0; i < before; i++) {
        const dt_node n = ir->node[i]; /* a copy: emitting moves the array */
        bool is_wanted = false;
        if (is_inside(r, &n)) {
            for (uint32_t k = 0; k < n.n_out; k++) {
                is_wanted = is_wanted || r->wanted[n.out[k]];
            }
        }
        if (!is_wanted) {
            continue;
        }
        int32_t in[DT_KERNEL_MAX_IN];
        for (uint32_t k = 0; k < n.n_in; k++) {
            in[k] = n.in[k] >= 0 && r->clone[n.in[k]] >= 0 ? r->clone[n.in[k]] : n.in[k];
        }
        int32_t c = dt_ir_emit(ir, n.op, in, n.n_in, &n.attr);
        if (c < 0) {
            return 0;
        }
        ir->node[c].is_clone = true;
        ir->node[c].is_backward = true;
        for (uint32_t k = 0; k < n.n_out; k++) {
            if (r->wanted[n.out[k]]) {
                r->clone[n.out[k]] = ir->node[c].out[k];
                ir->value[ir->node[c].out[k]].is_half = ir->value[n.out[k]].is_half;
            }
        }
    }
    return ir->n_nodes - before;
}

/* Backward nodes read the copies. */
static void rewire_readers(region *r)
{
    for (int32_t i = r->first; i < r->ir->n_nodes; i++) {
        dt_node *n = &r->ir->node[i];
        if (n->is_backward) {
            for (uint32_t k = 0; k < n->n_in; k++) {
                if (n->in[k] >= 0 && n->in[k] < r->n_values && r->clone[n->in[k]] >= 0) {
                    n->in[k] = r->clone[n->in[k]];
                }
            }
        }
    }
}

/* Move the last n nodes in front of node first. */
static dt_status move_clones(dt_ir *ir, int32_t first, int32_t n)
{
    size_t bytes = (size_t)n * sizeof(*ir->node);
    dt_node *clones = dt_alloc(bytes);
    if (clones == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %d recomputed nodes", n);
    }
    int32_t rest = ir->n_nodes - n - first;
    memcpy(clones, &ir->node[ir->n_nodes - n], bytes);
    memmove(&ir->node[first + n], &ir->node[first], (size_t)rest * sizeof(*ir->node));
    memcpy(&ir->node[first], clones, bytes);
    dt_free(clones);
    return DT_OK;
}

static dt_status recompute_region(region *r, uint32_t *n_p)
{
    find_hidden_values(r);
    find_wanted_nodes(r);
    if (r->first < 0) {
        return DT_OK;
    }
    int32_t n = append_clones(r);
    DT_TRY(r->ir->status);
    rewire_readers(r);
    DT_TRY(move_clones(r->ir, r->first, n));
    *n_p += (uint32_t)n;
    return DT_OK;
}

dt_status dt_pass_recompute(dt_ir *ir, uint32_t *n_p)
{
    int32_t n_regions = 0;
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        n_regions = ir->node[i].region > n_regions ? ir->node[i].region : n_regions;
    }
    uint32_t n_clones = 0;
    dt_status st = DT_OK;
    for (int32_t id = 1; id <= n_regions && st == DT_OK; id++) {
        size_t n = (size_t)ir->n_values;
        region r = {.ir = ir, .id = id, .n_values = ir->n_values, .first = -1};
        r.hidden = dt_alloc_n(n, sizeof(*r.hidden));
        r.wanted = dt_alloc_n(n, sizeof(*r.wanted));
        r.clone = dt_alloc_n(n, sizeof(*r.clone));
        if (r.hidden == NULL || r.wanted == NULL || r.clone == NULL) {
            st = DT_FAIL(DT_ENOMEM, "out of memory to recompute in a graph of %d values", ir->n_values);
        } else {
            memset(r.clone, 0xff, n * sizeof(*r.clone)); /* -1 */
            st = recompute_region(&r, &n_clones);
        }
        dt_free(r.clone);
        dt_free(r.wanted);
        dt_free(r.hidden);
    }
    dt_ir_index(ir);
    *n_p = n_clones;
    return st;
}
