/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiling a graph. See plan.h.
 */
#include <config.h>

#include "engine/graph/plan.h"
#include "engine/graph/derive.h"
#include "engine/backend/user.h"
#include "engine/graph/op.h"
#include "engine/graph/passes.h"
#include "engine/graph/plan_internal.h"
#include "engine/graph/recorder.h"
#include "engine/graph/storage.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/tensor/dtype.h"

#include <string.h>

static const char *const set_name[] = {[DT_KERNELS_REF64] = "ref64",
                                       [DT_KERNELS_REF32] = "ref32",
                                       [DT_KERNELS_CPU] = "cpu",
                                       [DT_KERNELS_CPU_BF16] = "cpu_bf16",
                                       [DT_KERNELS_DEVICE] = "device"};

static size_t element_bytes(const dt_plan *p, uint32_t dtype)
{
    return dtype == DT_F32 && p->kernels == DT_KERNELS_REF64 ? sizeof(double) : dt_dtype_bytes(dtype);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static dt_status run_passes(dt_plan *p, const dt_plan_desc *d)
{
    if (d->training) {
        p->ir.n_outputs = 0; /* outputs are for evaluation */
        DT_TRY(dt_derive_run(&p->ir));
    } else {
        p->ir.n_losses = d->outputs_only ? 0 : p->ir.n_losses;
        dt_ir_keep_outputs(&p->ir, d->pictures, d->outputs);
        dt_ir_index(&p->ir);
    }
    DT_TRY(dt_pass_drop_dead(&p->ir));
    DT_TRY(d->training ? dt_derive_check_statistics(&p->ir) : DT_OK);
    if (d->fuse) {
        dt_pass_fuse(&p->ir, &p->info.n_fused);
    }
    if (d->half != 0) { /* before recomputing, so that what is computed again is stored as it was */
        DT_TRY(dt_pass_assign_storage(&p->ir, d->half));
    }
    if (d->training && d->recompute) {
        DT_TRY(dt_pass_recompute(&p->ir, &p->info.n_recomputed));
        DT_TRY(dt_pass_drop_dead(&p->ir));
    }
    return DT_OK;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static bool is_external(const dt_value *v)
{
    return v->kind != DT_VALUE_NODE;
}

/* Base of a chain of views. */
static int32_t find_view_root(const dt_ir *ir, int32_t v)
{
    while (ir->value[v].producer >= 0 && !is_external(&ir->value[v]) &&
           dt_ir_is_view(&ir->node[ir->value[v].producer])) {
        v = ir->node[ir->value[v].producer].in[0];
    }
    return v;
}

/* Append the view of a value (-1: absent) of this type; has_data false: shape only, or unused. */
static void add_view(dt_plan *p, int32_t value, uint32_t dtype, bool has_data)
{
    uint32_t at = p->n_views++;
    p->offset[at] = SIZE_MAX;
    if (value < 0) {
        return;
    }
    const dt_value *v = &p->ir.value[value];
    dt_view *view = &p->view[at];
    view->rank = (int32_t)v->shape.rank;
    view->dtype = (int32_t)dtype;
    view->accum = v->kind == DT_VALUE_GRAD && v->accum ? 1 : 0;
    for (uint32_t i = 0; i < v->shape.rank; i++) {
        dt_extent e = v->shape.dim[i];
        view->dim[i] = dt_extent_live(e, p->cap);
        if (e.symbol >= 0) {
            p->dim[p->n_dims++] = (dt_plan_dim){.view = at, .dim = i, .symbol = e.symbol, .plus = e.size};
        }
    }
    if (!has_data) {
        return;
    }
    const dt_value *root = &p->ir.value[find_view_root(&p->ir, value)];
    if (is_external(root)) {
        size_t offset = (size_t)root->offset * element_bytes(p, dtype); /* 0 but for parameters */
        p->data[p->n_data++] = (dt_plan_data){.view = at, .kind = root->kind, .index = root->index, .offset = offset};
    } else if (p->memory.block[value] >= 0) {
        p->offset[at] = p->memory.at[p->memory.block[value]].offset;
    }
}

static dt_status add_call(dt_plan *p, int32_t node)
{
    const dt_node *n = &p->ir.node[node];
    dt_plan_call *c = &p->call[p->n_calls++];
    *c = (dt_plan_call){.node = node, .view = p->n_views, .n_in = n->n_in, .n_out = n->n_out};
    c->kernel = dt_kernel_find(n->op, p->kernels);
    if (c->kernel == NULL && p->kernels != DT_KERNELS_DEVICE) {
        return DT_FAIL(DT_EUNSUPPORTED, "op %s has no kernel in the set %s", dt_op_name(n->op), set_name[p->kernels]);
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        const uint32_t dtype = n->in[k] >= 0 ? dt_storage_dtype_read(&p->ir, n, k) : 0;
        add_view(p, n->in[k], dtype, n->in[k] >= 0 && dt_ir_reads(n, k));
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        add_view(p, n->out[k], dt_storage_dtype(&p->ir, n->out[k]), true);
    }
    return DT_OK;
}

/* Scratch is asked for with views at capacity, present ones marked by an address that is not read. */
static void size_scratch(dt_plan *p, const dt_plan_call *c)
{
    dt_view views[DT_KERNEL_MAX_IN + DT_KERNEL_MAX_OUT];
    uint32_t n = c->n_in + c->n_out;
    if (p->kernels == DT_KERNELS_DEVICE) {
        return; /* the device reports it itself (device_exec.h) */
    }
    memcpy(views, &p->view[c->view], n * sizeof(*views));
    for (uint32_t i = 0; i < n; i++) {
        views[i].data = p->offset[c->view + i] != SIZE_MAX ? p->view : NULL;
    }
    for (uint32_t i = 0; i < p->n_data; i++) {
        if (p->data[i].view >= c->view && p->data[i].view < c->view + n) {
            views[p->data[i].view - c->view].data = p->view;
        }
    }
    const dt_node *node = &p->ir.node[c->node];
    size_t bytes =
        node->op < DT_USER_OP_FIRST
            ? dt_kernel_scratch_bytes(node->op, p->kernels, &node->attr, views, views + c->n_in)
            : dt_user_scratch_bytes(node->op, p->kernels, &node->attr, views, c->n_in, views + c->n_in, c->n_out);
    bytes = (bytes + 255) / 256 * 256;
    p->scratch_bytes = bytes > p->scratch_bytes ? bytes : p->scratch_bytes;
}

/* What the call keeps of its parameters from run to run. */
static void place_kept_bytes(dt_plan *p, dt_plan_call *c)
{
    const dt_node *n = &p->ir.node[c->node];
    uint32_t params = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        params |= n->in[k] >= 0 && p->ir.value[n->in[k]].kind == DT_VALUE_PARAM ? 1u << k : 0;
    }
    const size_t bytes = dt_kernel_kept_bytes(n->op, p->kernels, &p->view[c->view], params);
    c->kept = bytes > 0 ? p->kept_bytes : SIZE_MAX;
    p->kept_bytes += (bytes + 255) / 256 * 256;
}

/* ---- lowering ---------------------------------------------------------------------------------------------------- */

static dt_status allocate_plan(dt_plan *p)
{
    const dt_ir *ir = &p->ir;
    size_t n_views = ir->n_outputs + ir->n_losses, n_calls = 0;
    for (int32_t i = 0; i < ir->n_nodes; i++) {
        if (!dt_ir_is_view(&ir->node[i])) {
            n_views += ir->node[i].n_in + ir->node[i].n_out;
            n_calls++;
        }
    }
    for (int32_t v = 0; v < ir->n_values; v++) {
        if (ir->value[v].kind == DT_VALUE_STEP) {
            p->n_steps++;
        }
    }
    p->call = dt_alloc_n(n_calls, sizeof(*p->call));
    p->view = dt_alloc_n(n_views, sizeof(*p->view));
    p->offset = dt_alloc_n(n_views, sizeof(*p->offset));
    p->dim = dt_alloc_n(n_views, DT_MAX_DIMS * sizeof(*p->dim));
    p->data = dt_alloc_n(n_views, sizeof(*p->data));
    p->source = dt_alloc_n((size_t)ir->n_values, sizeof(*p->source));
    p->fill = dt_alloc_n((size_t)p->memory.n_blocks, sizeof(*p->fill));
    p->step_name = dt_alloc_n(p->n_steps, sizeof(*p->step_name));
    p->step_count = dt_alloc_n(p->n_steps, sizeof(*p->step_count));
    if (p->call == NULL || p->view == NULL || p->offset == NULL || p->dim == NULL || p->data == NULL ||
        p->source == NULL || p->fill == NULL || p->step_name == NULL || p->step_count == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a plan of %zu calls", n_calls);
    }
    return DT_OK;
}

/* Fields and step inputs that are read; of kernel set ref64 f32 ones are copied to double first. */
static dt_status find_sources(dt_plan *p)
{
    for (int32_t i = 0; i < p->ir.n_values; i++) {
        const dt_value *v = &p->ir.value[i];
        if (v->kind == DT_VALUE_STEP) {
            p->step_name[v->index] = v->name;
            p->step_count[v->index] = v->shape.dim[0].size;
        }
        if ((v->kind != DT_VALUE_FIELD && v->kind != DT_VALUE_STEP) || v->n_uses == 0) {
            continue;
        }
        dt_plan_source *s = &p->source[p->n_sources++];
        *s = (dt_plan_source){.value = i, .copy_offset = SIZE_MAX};
        if (v->shape.dtype == DT_F32 && p->kernels == DT_KERNELS_REF64) {
            if (!dt_shape_count(&v->shape, p->cap, &s->copy_cap)) {
                return DT_FAIL(DT_ECONFIG, "field %s does not fit in memory at these capacities", v->name);
            }
            s->copy_offset = p->copy_bytes;
            p->copy_bytes += ((size_t)s->copy_cap * sizeof(double) + 255) / 256 * 256 + 256;
        }
    }
    return DT_OK;
}

/* Which blocks end with which call: the call of their last node. */
static void find_freed_blocks(dt_plan *p)
{
    for (uint32_t c = 0; c < p->n_calls; c++) {
        for (int32_t b = 0; b < p->memory.n_blocks; b++) {
            if (p->memory.at[b].last == p->call[c].node) {
                p->fill[p->n_fills++] = (dt_plan_fill){.call = c, .block = b};
            }
        }
    }
}

static dt_status lower_nodes(dt_plan *p)
{
    DT_TRY(allocate_plan(p));
    DT_TRY(find_sources(p));
    for (int32_t i = 0; i < p->ir.n_nodes; i++) {
        if (dt_ir_is_view(&p->ir.node[i])) {
            p->info.n_views++;
        } else {
            DT_TRY(add_call(p, i));
            size_scratch(p, &p->call[p->n_calls - 1]);
            place_kept_bytes(p, &p->call[p->n_calls - 1]);
        }
    }
    p->output_view = p->n_views;
    for (uint32_t i = 0; i < p->ir.n_outputs; i++) {
        add_view(p, p->ir.output[i].value, dt_storage_dtype(&p->ir, p->ir.output[i].value), true);
    }
    p->loss_view = p->n_views;
    for (uint32_t i = 0; i < p->ir.n_losses; i++) {
        add_view(p, p->ir.loss[i].value, dt_storage_dtype(&p->ir, p->ir.loss[i].value), true);
    }
    if (p->poison) {
        find_freed_blocks(p);
    }
    return DT_OK;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* Which groups need what the node computes: backwards from losses and gradients, each of one group, and outputs, of
 * all. */
static uint32_t groups_of_node(const dt_ir *ir, const dt_node *n, uint32_t *value)
{
    uint32_t groups = 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        const dt_value *v = n->out[k] >= 0 ? &ir->value[n->out[k]] : NULL;
        if (v != NULL) {
            groups |= v->kind == DT_VALUE_GRAD ? 1u << v->group : value[n->out[k]];
        }
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (dt_ir_reads(n, k)) {
            value[n->in[k]] |= groups;
        }
    }
    return groups;
}

static dt_status find_groups(dt_plan *p)
{
    const dt_ir *ir = &p->ir;
    uint32_t *value = dt_alloc_n((size_t)ir->n_values, sizeof(*value));
    if (value == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a graph of %d values", ir->n_values);
    }
    for (uint32_t i = 0; i < ir->n_outputs; i++) {
        value[ir->output[i].value] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < ir->n_losses; i++) {
        value[ir->loss[i].value] |= 1u << ir->loss[i].group;
    }
    uint32_t c = p->n_calls;
    for (int32_t i = ir->n_nodes - 1; i >= 0; i--) {
        const uint32_t groups = groups_of_node(ir, &ir->node[i], value);
        if (!dt_ir_is_view(&ir->node[i])) {
            p->call[--c].groups = groups;
        }
    }
    dt_free(value);
    return DT_OK;
}

static dt_status compile_plan(dt_plan *p, const dt_recorder *r, const dt_plan_desc *d)
{
    DT_TRY(r->face.api->status(&r->face));
    DT_TRY(dt_ir_copy(&r->ir, &p->ir));
    p->n_fields = r->desc.n_fields;
    for (uint32_t i = 0; i < p->ir.n_symbols; i++) {
        if (d->cap[i] < 0) {
            return DT_FAIL(DT_EINVAL, "capacity %lld of %s is negative", (long long)d->cap[i], p->ir.symbol[i]);
        }
        p->cap[i] = d->cap[i];
    }
    if (d->half != 0 && p->kernels != DT_KERNELS_DEVICE) {
        return DT_FAIL(DT_EINVAL, "the kernel set %s stores only f32", set_name[p->kernels]);
    }
    DT_TRY(run_passes(p, d));
    const dt_memory_desc m = {.cap = p->cap, .f32_bytes = element_bytes(p, DT_F32), .reuse = d->reuse};
    DT_TRY(dt_memory_plan(&p->ir, &m, &p->memory));
    DT_TRY(lower_nodes(p));
    DT_TRY(find_groups(p));
    p->info.n_calls = p->n_calls;
    p->info.arena_bytes = p->memory.bytes + p->scratch_bytes;
    p->info.kept_bytes = p->kept_bytes;
    p->info.lower_bound_bytes = p->memory.lower_bound_bytes;
    return DT_OK;
}

dt_status dt_plan_compile(const dt_graph *g, const dt_plan_desc *d, dt_plan **out_p)
{
    dt_plan *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a plan");
    }
    p->kernels = d->kernels;
    p->poison = d->poison;
    dt_status st = compile_plan(p, (const dt_recorder *)g, d);
    if (st != DT_OK) {
        dt_plan_destroy(p);
        return st;
    }
    *out_p = p;
    return DT_OK;
}

void dt_plan_destroy(dt_plan *p)
{
    if (p == NULL) {
        return;
    }
    dt_free(p->step_count);
    dt_free(p->step_name);
    dt_free(p->fill);
    dt_free(p->source);
    dt_free(p->data);
    dt_free(p->dim);
    dt_free(p->offset);
    dt_free(p->view);
    dt_free(p->call);
    dt_memory_fini(&p->memory);
    dt_ir_fini(&p->ir);
    dt_free(p);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

const dt_plan_info *dt_plan_info_get(const dt_plan *p)
{
    return &p->info;
}

/* How often a call passes over the value of its view k: not at all when it is absent, or only its shape counts. */
static int count_passes_over(const dt_plan *p, const dt_node *n, uint32_t k, const dt_view *view)
{
    if (k < n->n_in) {
        return n->in[k] >= 0 && dt_ir_reads(n, k) ? 1 : 0;
    }
    const int32_t v = n->out[k - n->n_in];
    const bool is_written = v >= 0 && (is_external(&p->ir.value[v]) || p->memory.block[v] >= 0);
    return !is_written ? 0 : view->accum ? 2 : 1;
}

/* Mark the pages of [from, from + bytes). */
static void mark_touched_pages(bool *mark, size_t page, size_t n, size_t from, size_t bytes)
{
    for (size_t i = from / page; bytes > 0 && i <= (from + bytes - 1) / page && i < n; i++) {
        mark[i] = true;
    }
}

/* What is resident of an arena with these pages touched. */
static size_t count_resident_bytes(const bool *mark, size_t page, size_t arena_bytes)
{
    size_t sum = 0, granule = 0;
    for (size_t at = 0; at < arena_bytes; at += granule) {
        bool is_touched = false;
        granule = dt_arena_granule(arena_bytes, at);
        for (size_t i = at / page; i < (at + granule) / page && !is_touched; i++) {
            is_touched = mark[i];
        }
        if (is_touched) {
            sum += granule;
        }
    }
    return sum;
}

size_t dt_plan_touched_bytes(const dt_plan *p, const int64_t *size)
{
    const size_t page = dt_arena_bytes(1), n = dt_arena_bytes(p->info.arena_bytes) / page;
    bool *mark = dt_alloc(n);
    if (mark == NULL) {
        return p->info.arena_bytes + p->kept_bytes;
    }
    for (uint32_t c = 0; c < p->n_calls; c++) {
        const dt_node *node = &p->ir.node[p->call[c].node];
        for (uint32_t k = 0; k < node->n_out; k++) {
            const uint32_t at = p->call[c].view + node->n_in + k;
            dt_view v = p->view[at];
            if (node->out[k] >= 0) {
                for (int32_t i = 0; i < v.rank; i++) {
                    v.dim[i] = dt_extent_live(p->ir.value[node->out[k]].shape.dim[i], size);
                }
            }
            if (p->offset[at] != SIZE_MAX) {
                const size_t bytes = (size_t)dt_view_count(&v) * element_bytes(p, (uint32_t)v.dtype);
                mark_touched_pages(mark, page, n, p->offset[at], bytes);
            }
        }
    }
    mark_touched_pages(mark, page, n, p->memory.bytes, p->scratch_bytes);
    const size_t touched = count_resident_bytes(mark, page, p->info.arena_bytes);
    dt_free(mark);
    return touched + dt_arena_touched(p->kept_bytes, p->kept_bytes);
}

int64_t dt_plan_last_write(const dt_plan *p, int64_t begin, int64_t end)
{
    int64_t last = -1;
    for (uint32_t c = 0; c < p->n_calls; c++) {
        const dt_node *n = &p->ir.node[p->call[c].node];
        for (uint32_t k = 0; k < n->n_out; k++) {
            const dt_value *v = n->out[k] >= 0 ? &p->ir.value[find_view_root(&p->ir, n->out[k])] : NULL;
            int64_t count = 0;
            if (v == NULL || v->kind != DT_VALUE_GRAD || !dt_shape_count(&v->shape, p->cap, &count)) {
                continue;
            }
            const int64_t from = (int64_t)v->offset;
            last = from < end && from + count > begin ? (int64_t)c : last;
        }
    }
    return last;
}

dt_call_cost dt_plan_call_cost(const dt_plan *p, uint32_t call, const int64_t *size)
{
    const dt_node *n = &p->ir.node[p->call[call].node];
    const dt_op_info *info = dt_op_find(n->op);
    dt_call_cost out = {.op = dt_op_name(n->op), .is_product = dt_op_is_product(n->op)};
    dt_view views[DT_KERNEL_MAX_IN + DT_KERNEL_MAX_OUT];
    memcpy(views, &p->view[p->call[call].view], (n->n_in + n->n_out) * sizeof(*views));
    for (uint32_t k = 0; k < n->n_in + n->n_out; k++) {
        int32_t v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
        if (v >= 0) {
            for (int32_t i = 0; i < views[k].rank; i++) {
                views[k].dim[i] = dt_extent_live(p->ir.value[v].shape.dim[i], size);
            }
        }
        out.cost.bytes += count_passes_over(p, n, k, &views[k]) * (double)dt_view_count(&views[k]) *
                          (double)dt_dtype_bytes((uint32_t)views[k].dtype);
    }
    if (n->op >= DT_USER_OP_FIRST) {
        out.cost.flops = dt_user_flops(n->op, &n->attr, views, n->n_in, views + n->n_in, n->n_out);
        return out;
    }
    out.cost.flops = info->flops != NULL ? info->flops(views, views + n->n_in, &n->attr)
                                         : dt_flops_elements(views, views + n->n_in, &n->attr);
    return out;
}

dt_plan_cost dt_plan_cost_get(const dt_plan *p, const int64_t *size)
{
    dt_plan_cost cost = {0};
    for (uint32_t c = 0; c < p->n_calls; c++) {
        const dt_call_cost call = dt_plan_call_cost(p, c, size);
        cost.bytes += call.cost.bytes;
        cost.flops += call.cost.flops;
    }
    return cost;
}

void dt_plan_print(const dt_plan *p, dt_str *out)
{
    dt_str_addf(out, "plan: %u calls, %u views, %u fused, %u recomputed, kernels %s\n", p->n_calls, p->info.n_views,
                p->info.n_fused, p->info.n_recomputed, set_name[p->kernels]);
    dt_str_addf(out, "arena: %zu bytes of values (bound %zu), %zu of scratch\n", p->memory.bytes,
                p->memory.lower_bound_bytes, p->scratch_bytes);
    for (int32_t i = 0; i < p->ir.n_nodes; i++) {
        const dt_node *n = &p->ir.node[i];
        dt_str_addf(out, "%4d ", i);
        dt_ir_print_node(&p->ir, n, out);
        for (uint32_t k = 0; k < n->n_out; k++) {
            int32_t b = p->memory.block[n->out[k]];
            if (b >= 0) {
                dt_str_addf(out, " @%zu+%zu[%d..%d]", p->memory.at[b].offset, p->memory.at[b].bytes,
                            p->memory.at[b].first, p->memory.at[b].last);
            }
        }
        dt_str_add(out, "\n");
    }
}

int32_t dt_plan_field(const dt_plan *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_sources; i++) {
        const dt_value *v = &p->ir.value[p->source[i].value];
        if (v->kind == DT_VALUE_FIELD && strcmp(v->name, name) == 0) {
            return v->index;
        }
    }
    return -1;
}

uint32_t dt_plan_step_inputs(const dt_plan *p, const char *const **name_p, const int64_t **count_p)
{
    *name_p = p->step_name;
    *count_p = p->step_count;
    return p->n_steps;
}
