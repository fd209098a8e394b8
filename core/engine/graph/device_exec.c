/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/graph/device_exec.h"

#include "base/call_watch.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/backend/user.h"
#include "engine/graph/leaf_grads.h"
#include "engine/graph/op.h"
#include "engine/graph/plan_internal.h"

#include <string.h>

enum { ALIGN = 256 };

typedef struct device_call {
    const dt_device_kernel *kernel;
    dt_device_args args;
    void *state;
} device_call;

struct dt_device_exec {
    dt_device_exec_desc d;
    dt_device_view *view; /* [n_views], as in the plan */
    device_call *call;    /* [n_calls] */
    dt_leaf_grads grads;
    dt_device_feed feed; /* as it was bound last; what it lists may be gone, but for nodes */
    size_t values_bytes, grads_bytes, scratch_bytes;
    bool is_prepared;
    uint32_t groups; /* of the launches that follow */
};

static size_t align_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static dt_status set_view(const dt_plan *p, uint32_t i, dt_device_view *v)
{
    const dt_view *from = &p->view[i];
    int64_t count = 1;
    *v = (dt_device_view){.rank = from->rank, .dtype = from->dtype, .accum = from->accum, .ragged = -1, .symbol = -1};
    memcpy(v->dim, from->dim, sizeof(v->dim));
    for (int32_t k = 0; k < v->rank; k++) {
        if (v->dim[k] > INT32_MAX || count * v->dim[k] > INT32_MAX) {
            return DT_FAIL(DT_EUNSUPPORTED,
                           "a tensor of this model has more than 2^31 elements in one shard of the batch; lower "
                           "data.batch or raise data.shards");
        }
        count *= v->dim[k];
    }
    v->leaf_stride = count;
    return DT_OK;
}

static const dt_leaf_grad *find_leaf_grad(const dt_device_exec *e, const dt_plan_data *d)
{
    return dt_leaf_grads_find(&e->grads, (int64_t)(d->offset / sizeof(float)));
}

static dt_status set_views(dt_device_exec *e)
{
    const dt_plan *p = e->d.plan;
    for (uint32_t i = 0; i < p->n_views; i++) {
        DT_TRY(set_view(p, i, &e->view[i]));
    }
    for (uint32_t i = 0; i < p->n_dims; i++) {
        const dt_plan_dim *d = &p->dim[i];
        dt_device_view *v = &e->view[d->view];
        if (v->ragged >= 0) {
            return DT_FAIL(DT_EUNSUPPORTED, "a tensor with two ragged dimensions (%s and %s) cannot run on a device",
                           p->ir.symbol[v->symbol], p->ir.symbol[d->symbol]);
        }
        v->ragged = (int32_t)d->dim;
        v->symbol = d->symbol;
        v->plus = (int32_t)d->plus;
    }
    for (uint32_t i = 0; i < p->n_data; i++) {
        const dt_plan_data *d = &p->data[i];
        if (d->kind == DT_VALUE_PARAM || d->kind == DT_VALUE_STEP || d->kind == DT_VALUE_SEED) {
            e->view[d->view].leaf_stride = 0; /* shared by all leaves */
        }
    }
    return DT_OK;
}

/* The first call that writes a gradient does not add to what was there. */
static void set_gradient_views(dt_device_exec *e)
{
    const dt_plan *p = e->d.plan;
    uint32_t call = 0;
    for (uint32_t i = 0; i < p->n_data; i++) {
        const dt_plan_data *d = &p->data[i];
        if (d->kind == DT_VALUE_GRAD) {
            const dt_leaf_grad *g = find_leaf_grad(e, d);
            while (p->call[call].view + p->call[call].n_in + p->call[call].n_out <= d->view) {
                call++;
            }
            e->view[d->view].leaf_stride = g->stride;
            if (g->first == call && !g->is_read_first) {
                e->view[d->view].accum = 0;
            }
        }
    }
}

/* Addresses that only mark "present", for questions before there is memory. */
static void mark_views_present(dt_device_exec *e)
{
    const dt_plan *p = e->d.plan;
    for (uint32_t i = 0; i < p->n_views; i++) {
        e->view[i].data = p->offset[i] != SIZE_MAX ? e : NULL;
    }
    for (uint32_t i = 0; i < p->n_data; i++) {
        e->view[p->data[i].view].data = e;
    }
}

/* ---- create ------------------------------------------------------------------------------------------------------ */

static dt_status set_calls(dt_device_exec *e)
{
    const dt_plan *p = e->d.plan;
    for (uint32_t c = 0; c < p->n_calls; c++) {
        const dt_plan_call *from = &p->call[c];
        const dt_node *node = &p->ir.node[from->node];
        device_call *to = &e->call[c];
        const bool is_user = node->op >= DT_USER_OP_FIRST;
        to->kernel = is_user ? dt_user_device_kernel(node->op) : e->d.ops->kernel(node->op);
        if (to->kernel == NULL) {
            return DT_FAIL(DT_EUNSUPPORTED, "op %s has no %s on %s; use --device cpu", dt_op_name(node->op),
                           is_user ? "launch function" : "kernel", e->d.ops->name);
        }
        to->args = (dt_device_args){.attr = &node->attr,
                                    .in = &e->view[from->view],
                                    .out = &e->view[from->view + from->n_in],
                                    .n_in = from->n_in,
                                    .n_out = from->n_out,
                                    .leaves = e->d.leaves,
                                    .n_symbols = p->ir.n_symbols,
                                    .device = e->d.device,
                                    .math = e->d.math,
                                    .user = dt_user_kernel_data(node->op)};
        const size_t bytes = to->kernel->scratch != NULL ? to->kernel->scratch(&to->args) : 0;
        e->scratch_bytes = bytes > e->scratch_bytes ? bytes : e->scratch_bytes;
    }
    return DT_OK;
}

static dt_status create_device_exec(dt_device_exec *e)
{
    const dt_plan *p = e->d.plan;
    if (p->kernels != DT_KERNELS_DEVICE || e->d.leaves < 1) {
        return DT_FAIL(DT_EINVAL, "running on a device requires a plan for devices and at least one shard");
    }
    e->view = dt_alloc_n(p->n_views, sizeof(*e->view));
    e->call = dt_alloc_n(p->n_calls, sizeof(*e->call));
    if (e->view == NULL || e->call == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to run a plan of %u calls", p->n_calls);
    }
    const dt_leaf_grads_desc gd = {.leaves = e->d.leaves, .due = e->d.due, .n_due = e->d.n_due};
    DT_TRY(dt_leaf_grads_plan(p, &gd, &e->grads));
    DT_TRY(set_views(e));
    set_gradient_views(e);
    mark_views_present(e);
    DT_TRY(set_calls(e));
    e->values_bytes = align_up(p->memory.bytes * e->d.leaves);
    e->grads_bytes = align_up(e->grads.bytes * e->d.leaves);
    e->scratch_bytes = align_up(e->scratch_bytes);
    return DT_OK;
}

dt_status dt_device_exec_create(const dt_device_exec_desc *d, dt_device_exec **out_p)
{
    dt_device_exec *e = dt_alloc(sizeof(*e));
    if (e == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to run a plan");
    }
    e->d = *d;
    const dt_status st = create_device_exec(e);
    if (st < 0) {
        dt_device_exec_destroy(e);
        return st;
    }
    *out_p = e;
    return DT_OK;
}

void dt_device_exec_destroy(dt_device_exec *e)
{
    if (e == NULL) {
        return;
    }
    if (e->call != NULL) {
        for (uint32_t c = 0; c < e->d.plan->n_calls; c++) {
            if (e->call[c].state != NULL && e->call[c].kernel->release != NULL) {
                e->call[c].kernel->release(e->call[c].state);
            }
        }
    }
    dt_leaf_grads_fini(&e->grads);
    dt_free(e->call);
    dt_free(e->view);
    dt_free(e);
}

size_t dt_device_exec_bytes(const dt_device_exec *e)
{
    return e->values_bytes + e->grads_bytes + e->scratch_bytes;
}

/* ---- bind -------------------------------------------------------------------------------------------------------- */

static char *base_address(const dt_device_feed *f, const dt_plan_data *d, bool is_half)
{
    switch (d->kind) {
    case DT_VALUE_PARAM:
        return (char *)(uintptr_t)(is_half ? f->params_half : f->params);
    case DT_VALUE_SEED:
        return f->loss_seed != NULL ? (char *)(uintptr_t)&f->loss_seed[d->index] : NULL;
    case DT_VALUE_STEP:
        return (char *)(uintptr_t)f->step_input[d->index];
    default:
        return f->field[d->index];
    }
}

/* Where the gradient of leaves begins. */
static char *grad_address(const dt_device_exec *e, const dt_leaf_grad *g)
{
    return (char *)e->feed.arena + e->values_bytes + g->room * e->d.leaves;
}

static dt_status bind_views(dt_device_exec *e, const dt_device_feed *f)
{
    const dt_plan *p = e->d.plan;
    for (uint32_t i = 0; i < p->n_views; i++) {
        e->view[i].data = p->offset[i] != SIZE_MAX ? (char *)f->arena + p->offset[i] * e->d.leaves : NULL;
    }
    for (uint32_t i = 0; i < p->n_data; i++) {
        const dt_plan_data *d = &p->data[i];
        const int32_t dtype = e->view[d->view].dtype;
        if (d->kind == DT_VALUE_GRAD && f->sums != NULL) {
            e->view[d->view].data = grad_address(e, find_leaf_grad(e, d));
            continue;
        }
        char *base = d->kind == DT_VALUE_GRAD ? NULL : base_address(f, d, dtype == DT_BF16 || dtype == DT_F16);
        if (base == NULL) {
            return DT_FAIL(DT_EINVAL, "the plan needs %s, which the feed does not supply",
                           d->kind == DT_VALUE_PARAM  ? "parameters"
                           : d->kind == DT_VALUE_GRAD ? "room for sums of gradients"
                           : d->kind == DT_VALUE_SEED ? "loss seeds"
                                                      : "a field or step input");
        }
        e->view[d->view].data = base + d->offset;
    }
    return DT_OK;
}

static dt_status prepare_calls(dt_device_exec *e)
{
    for (uint32_t c = 0; c < e->d.plan->n_calls; c++) {
        device_call *call = &e->call[c];
        if (call->kernel->prepare != NULL) {
            const dt_status st = call->kernel->prepare(&call->args, &call->state);
            if (st < 0) {
                return DT_CONTEXT(st, "preparing %s", call->kernel->name);
            }
            call->args.state = call->state;
        }
    }
    e->is_prepared = true;
    return DT_OK;
}

dt_status dt_device_exec_bind(dt_device_exec *e, const dt_device_feed *f)
{
    e->feed = *f;
    DT_TRY(bind_views(e, f));
    e->groups = f->groups != 0 ? f->groups : UINT32_MAX;
    for (uint32_t c = 0; c < e->d.plan->n_calls; c++) {
        dt_device_args *a = &e->call[c].args;
        a->live = f->live;
        a->run = f->run;
        a->scratch = (char *)f->arena + e->values_bytes + e->grads_bytes;
    }
    return e->is_prepared ? DT_OK : prepare_calls(e);
}

/* ---- launch ------------------------------------------------------------------------------------------------------ */

static bool is_skipped(const dt_device_exec *e, uint32_t call)
{
    return (e->d.plan->call[call].groups & e->groups) == 0;
}

static dt_status zero_gradients(dt_device_exec *e, uint32_t call, dt_device_stream *s)
{
    for (uint32_t i = 0; i < e->grads.n; i++) {
        const dt_leaf_grad *g = &e->grads.grad[i];
        if (g->first == call && g->is_read_first) {
            const size_t bytes = (size_t)g->stride * sizeof(float) * e->d.leaves;
            DT_TRY(e->d.ops->zero(e->d.device, grad_address(e, g), bytes, s));
        }
    }
    return DT_OK;
}

/* Those from number `first` on that are summed after the call, as many as possible at a time; how many are dealt with.
 * */
static dt_status sum_ready_gradients(dt_device_exec *e, uint32_t first, uint32_t call, dt_device_stream *s,
                                     uint32_t *n_p)
{
    uint32_t n = 0;
    dt_device_piece piece[DT_DEVICE_PIECES];
    dt_device_sums sums = {.slot = e->feed.sums, .total = e->feed.total, .piece = piece};
    for (; first + n < e->grads.n && n < DT_DEVICE_PIECES; n++) {
        const dt_leaf_grad *g = &e->grads.grad[first + n];
        if (g->summed != call) {
            break;
        }
        if (!is_skipped(e, g->first)) { /* the writing call writes all of it */
            piece[sums.n_pieces++] = (dt_device_piece){.from = (const float *)(const void *)grad_address(e, g),
                                                       .leaf_stride = g->stride,
                                                       .n = g->count,
                                                       .to = g->at};
        }
    }
    for (uint32_t k = 0; k < e->feed.n_nodes && sums.n_pieces > 0; k++) {
        sums.node = e->feed.node[k];
        DT_TRY(e->d.ops->sum(e->d.device, &sums, s));
    }
    *n_p = n;
    return DT_OK;
}

/* next: the first that is not summed so far. */
static dt_status sum_gradients(dt_device_exec *e, uint32_t call, dt_device_stream *s, uint32_t *next)
{
    uint32_t n = 0;
    if (*next == e->grads.n || e->grads.grad[*next].summed != call) {
        return DT_OK;
    }
    for (; *next < e->grads.n && e->grads.grad[*next].summed == call; *next += n) {
        DT_TRY(sum_ready_gradients(e, *next, call, s, &n));
    }
    return e->feed.summed != NULL ? e->feed.summed(e->feed.user, call) : DT_OK;
}

static dt_status run_call(dt_device_exec *e, uint32_t c, dt_device_stream *s)
{
    device_call *call = &e->call[c];
    call->args.stream = s;
    DT_TRY(zero_gradients(e, c, s));
    dt_status st = call->kernel->run(&call->args);
    if (st == DT_OK && e->d.synchronous) {
        st = e->d.ops->stream_sync(e->d.device, s);
    }
    return st < 0 ? DT_CONTEXT(st, "op %s (call %u of %u)", call->kernel->name, c + 1, e->d.plan->n_calls) : DT_OK;
}

dt_status dt_device_exec_launch(dt_device_exec *e, dt_device_stream *s)
{
    uint32_t next = 0;
    dt_call_pulse();
    for (uint32_t c = 0; c < e->d.plan->n_calls; c++) {
        DT_TRY(is_skipped(e, c) ? DT_OK : run_call(e, c, s));
        DT_TRY(sum_gradients(e, c, s, &next));
    }
    return DT_OK;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

const dt_device_view *dt_device_exec_output(const dt_device_exec *e, uint32_t i)
{
    return i < e->d.plan->ir.n_outputs ? &e->view[e->d.plan->output_view + i] : NULL;
}

const dt_device_view *dt_device_exec_loss(const dt_device_exec *e, uint32_t i)
{
    return i < e->d.plan->ir.n_losses ? &e->view[e->d.plan->loss_view + i] : NULL;
}
