/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory plan. See memory_plan.h.
 */
#include <config.h>

#include "engine/graph/memory_plan.h"
#include "engine/graph/op.h"
#include "engine/graph/storage.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/tensor/dtype.h"

#include <stdlib.h>

enum { ALIGN_BYTES = 256 };

typedef struct planner {
    const dt_ir *ir;
    const dt_memory_desc *d;
    int32_t *root;  /* per value: whose storage it is, itself unless it is a view */
    int32_t *last;  /* per root: last node that reads it, -1 = none */
    int32_t *order; /* blocks, largest first */
    dt_memory m;
} planner;

void dt_memory_fini(dt_memory *m)
{
    dt_free(m->block);
    dt_free(m->at);
    *m = (dt_memory){0};
}

/* ---- lives ------------------------------------------------------------------------------------------------------- */

static void find_roots(planner *p)
{
    for (int32_t v = 0; v < p->ir->n_values; v++) {
        p->root[v] = v;
        p->last[v] = -1;
        p->m.block[v] = -1;
    }
    for (int32_t i = 0; i < p->ir->n_nodes; i++) {
        const dt_node *n = &p->ir->node[i];
        if (dt_ir_is_view(n)) {
            p->root[n->out[0]] = p->root[n->in[0]];
        }
    }
}

static void find_last_uses(planner *p)
{
    const dt_ir *ir = p->ir;
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        if (!dt_ir_is_view(n)) {
            for (uint32_t k = 0; k < n->n_in; k++) {
                if (dt_ir_reads(n, k)) {
                    p->last[p->root[n->in[k]]] = i;
                }
            }
        }
    }
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        p->last[p->root[ir->output[i].value]] = ir->n_nodes;
    }
    for (uint32_t i = 0; i < ir->n_losses; i++) {
        p->last[p->root[ir->loss[i].value]] = ir->n_nodes;
    }
}

static dt_status value_bytes(const planner *p, int32_t v, size_t *out_p)
{
    const dt_shape *s = &p->ir->value[v].shape;
    const uint32_t dtype = dt_storage_dtype(p->ir, v);
    size_t element = dtype == DT_F32 ? p->d->f32_bytes : dt_dtype_bytes(dtype), bytes = 0;
    int64_t count = 0;
    if (!dt_shape_count(s, p->d->cap, &count) || !dt_mul_size((size_t)count, element, &bytes) || bytes > SIZE_MAX / 4) {
        dt_str t = {0};
        dt_shape_text(s, p->ir->symbol, &t);
        dt_status st =
            DT_FAIL(DT_ECONFIG, "a value of shape %s does not fit in memory at these capacities", dt_str_text(&t));
        dt_str_fini(&t);
        return st;
    }
    bytes = bytes > 0 ? bytes : 1;
    *out_p = (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    return DT_OK;
}

/* The block that output 0 of node i may take over, -1 when there is none. */
static int32_t find_block_to_overwrite(const planner *p, int32_t i, size_t bytes)
{
    const dt_node *n = &p->ir->node[i];
    uint32_t allowed = p->d->reuse ? dt_op_find(n->op)->inplace : 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        if ((allowed & DT_BIT(k)) == 0 || n->in[k] < 0) {
            continue;
        }
        int32_t root = p->root[n->in[k]], block = p->m.block[root];
        uint32_t n_readers = 0; /* inputs of this node that read the block */
        for (uint32_t j = 0; j < n->n_in; j++) {
            if (n->in[j] >= 0 && p->m.block[p->root[n->in[j]]] == block) {
                n_readers++;
            }
        }
        if (block >= 0 && p->last[root] == i && n_readers == 1 && p->m.at[block].bytes == bytes &&
            dt_shape_equal(&p->ir->value[n->in[k]].shape, &p->ir->value[n->out[0]].shape) &&
            p->ir->value[n->in[k]].is_half == p->ir->value[n->out[0]].is_half) {
            return block;
        }
    }
    return -1;
}

/* Does anything read output k of n? Output 0 of a public op always has a place: kernels may lean on it. */
static bool is_stored(const planner *p, const dt_node *n, uint32_t k)
{
    int32_t v = n->out[k];
    return p->ir->value[v].kind == DT_VALUE_NODE && (p->last[v] >= 0 || (k == 0 && n->op < DT_OP_PUBLIC_END));
}

static dt_status make_blocks(planner *p)
{
    const dt_ir *ir = p->ir;
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        const dt_node *n = &ir->node[i];
        if (!dt_ir_is_view(n)) {
            for (uint32_t k = 0; k < n->n_out; k++) {
                int32_t v = n->out[k];
                if (!is_stored(p, n, k)) {
                    continue;
                }
                size_t bytes = 0;
                DT_TRY(value_bytes(p, v, &bytes));
                int32_t last = p->last[v] > i ? p->last[v] : i;
                int32_t block = k == 0 ? find_block_to_overwrite(p, i, bytes) : -1;
                if (block < 0) {
                    block = p->m.n_blocks++;
                    p->m.at[block] = (dt_memory_block){.first = i, .bytes = bytes};
                }
                p->m.at[block].last = last;
                p->m.block[v] = block;
            }
        }
    }
    for (int32_t v = 0; v < ir->n_values; v++) {
        p->m.block[v] = p->m.block[p->root[v]];
    }
    return DT_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static void place_separately(planner *p)
{
    for (int32_t b = 0; b < p->m.n_blocks; b++) {
        p->m.at[b].offset = p->m.bytes;
        p->m.bytes += p->m.at[b].bytes;
    }
}

/* Largest first, then in order of birth. */
static int compare_blocks(const void *a, const void *b, void *at)
{
    const dt_memory_block *x = (const dt_memory_block *)at + *(const int32_t *)a;
    const dt_memory_block *y = (const dt_memory_block *)at + *(const int32_t *)b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x < y ? -1 : x > y;
}

/* Smallest gap between those of the n placed blocks (sorted by offset) that live at the same time as b. */
static size_t find_best_gap(const dt_memory *m, const int32_t *placed, int32_t n, const dt_memory_block *b)
{
    size_t end = 0, best = SIZE_MAX, best_gap_bytes = SIZE_MAX; /* end: of what is taken below */
    for (int32_t i = 0; i < n; i++) {
        const dt_memory_block *o = &m->at[placed[i]];
        if (o->first > b->last || b->first > o->last) {
            continue;
        }
        if (o->offset >= end + b->bytes && o->offset - end < best_gap_bytes) {
            best = end;
            best_gap_bytes = o->offset - end;
        }
        end = o->offset + o->bytes > end ? o->offset + o->bytes : end;
    }
    return best != SIZE_MAX ? best : end;
}

static void place_blocks_greedily(planner *p)
{
    dt_memory *m = &p->m;
    int32_t *placed = p->order; /* the sorted front part of the same array: block i is read before it is moved */
    for (int32_t b = 0; b < m->n_blocks; b++) {
        p->order[b] = b;
    }
    qsort_r(p->order, (size_t)m->n_blocks, sizeof(*p->order), compare_blocks, m->at);
    for (int32_t i = 0; i < m->n_blocks; i++) {
        int32_t b = p->order[i];
        m->at[b].offset = find_best_gap(m, placed, i, &m->at[b]);
        m->bytes = m->at[b].offset + m->at[b].bytes > m->bytes ? m->at[b].offset + m->at[b].bytes : m->bytes;
        int32_t j = i;
        for (; j > 0 && m->at[placed[j - 1]].offset > m->at[b].offset; j--) {
            placed[j] = placed[j - 1];
        }
        placed[j] = b;
    }
}

static void find_lower_bound(planner *p)
{
    for (int32_t t = 0; t < p->ir->n_nodes; t++) {
        size_t sum = 0;
        for (int32_t b = 0; b < p->m.n_blocks; b++) {
            if (p->m.at[b].first <= t && t <= p->m.at[b].last) {
                sum += p->m.at[b].bytes;
            }
        }
        p->m.lower_bound_bytes = sum > p->m.lower_bound_bytes ? sum : p->m.lower_bound_bytes;
    }
}

static dt_status plan_memory(planner *p)
{
    size_t n = (size_t)p->ir->n_values;
    p->root = dt_alloc_n(n, sizeof(*p->root));
    p->last = dt_alloc_n(n, sizeof(*p->last));
    p->order = dt_alloc_n(n, sizeof(*p->order));
    p->m.block = dt_alloc_n(n, sizeof(*p->m.block));
    p->m.at = dt_alloc_n(n, sizeof(*p->m.at));
    if (p->root == NULL || p->last == NULL || p->order == NULL || p->m.block == NULL || p->m.at == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to plan %d values", p->ir->n_values);
    }
    find_roots(p);
    find_last_uses(p);
    DT_TRY(make_blocks(p));
    if (p->d->reuse) {
        place_blocks_greedily(p);
    } else {
        place_separately(p);
    }
    find_lower_bound(p);
    return DT_OK;
}

dt_status dt_memory_plan(const dt_ir *ir, const dt_memory_desc *d, dt_memory *out_p)
{
    planner p = {.ir = ir, .d = d};
    dt_status st = plan_memory(&p);
    dt_free(p.order);
    dt_free(p.last);
    dt_free(p.root);
    if (st != DT_OK) {
        dt_memory_fini(&p.m);
        return st;
    }
    *out_p = p.m;
    return DT_OK;
}
