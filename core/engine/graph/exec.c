/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a plan. See plan.h.
 */
#include <config.h>

#include "engine/graph/plan.h"
#include "engine/graph/plan_internal.h"
#include "base/call_watch.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"
#include "engine/backend/user.h"
#include "engine/graph/op.h"

#include <string.h>

enum { POISON = 0xff }; /* four or eight of them are a NaN */

struct dt_exec {
    const dt_plan *plan;
    char *arena; /* blocks, then scratch */
    char *copy;  /* ref64: sources as double */
    dt_view *view;
    dt_kernel_args *args; /* per call */
    void **field;         /* per field: the same, by the index of the field */
    void **step;          /* per step input */
    dt_kernel_run run;
    char *kept; /* forms of the parameters that calls keep */
    uint64_t kept_version;
    uint32_t groups, kept_groups; /* of this run; whose calls have run since the version changed */
};

static const double nothing; /* what an empty field without an address points to */

/* ---- create ------------------------------------------------------------------------------------------------------ */

static dt_status create_exec(dt_exec *e)
{
    const dt_plan *p = e->plan;
    e->view = dt_alloc_n(p->n_views, sizeof(*e->view));
    e->args = dt_alloc_n(p->n_calls, sizeof(*e->args));
    e->field = dt_alloc_n(p->n_fields, sizeof(*e->field));
    e->step = dt_alloc_n(p->n_steps, sizeof(*e->step));
    e->copy = dt_alloc(p->copy_bytes);
    if (e->view == NULL || e->args == NULL || e->field == NULL || e->step == NULL || e->copy == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to run a plan of %u calls", p->n_calls);
    }
    void *arena = NULL;
    DT_TRY(dt_arena_map(p->info.arena_bytes, &arena));
    e->arena = arena;
    void *kept = NULL;
    DT_TRY(dt_arena_map(p->kept_bytes, &kept));
    e->kept = kept;

    memcpy(e->view, p->view, p->n_views * sizeof(*e->view));
    for (uint32_t i = 0; i < p->n_views; i++) {
        e->view[i].data = p->offset[i] != SIZE_MAX ? e->arena + p->offset[i] : NULL;
    }
    for (uint32_t c = 0; c < p->n_calls; c++) {
        const dt_plan_call *call = &p->call[c];
        e->args[c] = (dt_kernel_args){
            .attr = &p->ir.node[call->node].attr,
            .run = &e->run,
            .in = &e->view[call->view],
            .out = &e->view[call->view + call->n_in],
            .n_in = call->n_in,
            .n_out = call->n_out,
            .scratch = e->arena + p->memory.bytes,
            .kept = call->kept != SIZE_MAX ? e->kept + call->kept : NULL,
            .user = dt_user_kernel_data(p->ir.node[call->node].op),
        };
    }
    return DT_OK;
}

dt_status dt_exec_create(const dt_plan *p, dt_exec **out_p)
{
    dt_exec *e = dt_alloc(sizeof(*e));
    if (e == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to run a plan");
    }
    e->plan = p;
    dt_status st = create_exec(e);
    if (st != DT_OK) {
        dt_exec_destroy(e);
        return st;
    }
    *out_p = e;
    return DT_OK;
}

void dt_exec_destroy(dt_exec *e)
{
    if (e == NULL) {
        return;
    }
    dt_arena_unmap(e->arena, e->plan->info.arena_bytes);
    dt_arena_unmap(e->kept, e->plan->kept_bytes);
    dt_free(e->copy);
    dt_free(e->step);
    dt_free(e->field);
    dt_free(e->args);
    dt_free(e->view);
    dt_free(e);
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

static dt_status check_sizes(const dt_plan *p, const int64_t *size)
{
    for (uint32_t i = 0; i < p->ir.n_symbols; i++) {
        if (size[i] < 0 || size[i] > p->cap[i]) {
            return DT_FAIL(DT_EINVAL, "live size %lld of %s is outside 0..%lld, which the plan was compiled for",
                           (long long)size[i], p->ir.symbol[i], (long long)p->cap[i]);
        }
    }
    return DT_OK;
}

/* The address of each field and step input that the plan reads; for kernel set ref64 of its copy in double. */
static dt_status set_source_addresses(dt_exec *e, const dt_exec_feed *feed)
{
    const dt_plan *p = e->plan;
    for (uint32_t i = 0; i < p->n_sources; i++) {
        const dt_plan_source *s = &p->source[i];
        const dt_value *v = &p->ir.value[s->value];
        bool is_field = v->kind == DT_VALUE_FIELD;
        const void *from = NULL;
        if (is_field && feed->field != NULL) {
            from = feed->field[v->index];
        } else if (!is_field && feed->step_input != NULL) {
            from = feed->step_input[v->index];
        }
        int64_t count = 0;
        (void)dt_shape_count(&v->shape, feed->size, &count); /* it fits: the capacity did */
        if (from == NULL && count > 0) {
            return DT_FAIL(DT_EINVAL, "%s %s is not supplied", is_field ? "field" : "step input", v->name);
        }
        void *address = (void *)(uintptr_t)(from != NULL ? from : &nothing);
        if (s->copy_offset != SIZE_MAX) {
            double *to = (double *)(void *)(e->copy + s->copy_offset);
            if (p->poison) {
                memset(to, POISON, (size_t)s->copy_cap * sizeof(*to));
            }
            for (int64_t j = 0; j < count; j++) {
                to[j] = ((const float *)from)[j];
            }
            address = to;
        }
        if (is_field) {
            e->field[v->index] = address;
        } else {
            e->step[v->index] = address;
        }
    }
    return DT_OK;
}

static char *base_address(const dt_exec *e, const dt_exec_feed *feed, const dt_plan_data *d)
{
    switch (d->kind) {
    case DT_VALUE_PARAM:
        return (char *)(uintptr_t)feed->params;
    case DT_VALUE_GRAD:
        return feed->grads;
    case DT_VALUE_SEED:
        return feed->loss_seed == NULL ? NULL : (char *)(uintptr_t)&feed->loss_seed[d->index];
    case DT_VALUE_STEP:
        return e->step[d->index];
    default:
        return e->field[d->index];
    }
}

static dt_status patch_views(dt_exec *e, const dt_exec_feed *feed)
{
    const dt_plan *p = e->plan;
    for (uint32_t i = 0; i < p->n_dims; i++) {
        const dt_plan_dim *d = &p->dim[i];
        e->view[d->view].dim[d->dim] = feed->size[d->symbol] + d->plus;
    }
    for (uint32_t i = 0; i < p->n_data; i++) {
        const dt_plan_data *d = &p->data[i];
        char *base = base_address(e, feed, d);
        if (base == NULL) {
            return DT_FAIL(DT_EINVAL, "the plan needs %s, which the feed does not supply",
                           d->kind == DT_VALUE_PARAM  ? "parameters"
                           : d->kind == DT_VALUE_GRAD ? "a gradient arena"
                                                      : "loss seeds");
        }
        e->view[d->view].data = base + d->offset;
    }
    return DT_OK;
}

static void run_call(dt_exec *e, const dt_exec_feed *feed, uint32_t c)
{
    if ((e->plan->call[c].groups & e->groups) == 0) {
        return;
    }
    e->plan->call[c].kernel(&e->args[c]);
    if (feed->after != NULL) {
        feed->after(feed->after_user, c);
    }
}

static void run_calls(dt_exec *e, const dt_exec_feed *feed)
{
    for (uint32_t c = 0; c < e->plan->n_calls; c++) {
        run_call(e, feed, c);
    }
}

static uint32_t run_pass_calls(dt_exec *e, const dt_exec_feed *feed, uint32_t c)
{
    const dt_plan *p = e->plan;
    const bool is_backward = p->ir.node[p->call[c].node].is_backward;
    DT_TRACE("graph", is_backward ? "backward" : "forward");
    for (; c < p->n_calls && p->ir.node[p->call[c].node].is_backward == is_backward; c++) {
        DT_TRACE("op", dt_op_name(p->ir.node[p->call[c].node].op));
        run_call(e, feed, c);
    }
    return c;
}

/* The same, with a span for each call. */
static void run_traced(dt_exec *e, const dt_exec_feed *feed)
{
    for (uint32_t c = 0; c < e->plan->n_calls;) {
        c = run_pass_calls(e, feed, c);
    }
}

/* The same, with NaN wherever nothing should be read: what was freed, what was never written, scratch. */
static void run_poisoned(dt_exec *e, const dt_exec_feed *feed)
{
    const dt_plan *p = e->plan;
    const dt_plan_fill *fill = p->fill, *end = p->fill + p->n_fills;
    memset(e->arena, POISON, p->info.arena_bytes);
    for (uint32_t c = 0; c < p->n_calls; c++) {
        memset(e->arena + p->memory.bytes, POISON, p->scratch_bytes);
        run_call(e, feed, c);
        for (; fill < end && fill->call == c; fill++) {
            const dt_memory_block *b = &p->memory.at[fill->block];
            memset(e->arena + b->offset, POISON, b->bytes);
        }
    }
}

dt_status dt_exec_run(dt_exec *e, const dt_exec_feed *feed)
{
    const dt_plan *p = e->plan;
    DT_TRY(check_sizes(p, feed->size));
    if (feed->run == NULL || (p->ir.n_losses > 0 && feed->loss == NULL)) {
        return DT_FAIL(DT_EINVAL, "the plan needs %s, which the feed does not supply",
                       feed->run == NULL ? "run" : "a place for losses");
    }
    dt_call_pulse();
    DT_TRY(set_source_addresses(e, feed));
    DT_TRY(patch_views(e, feed));
    e->run = *feed->run;
    e->groups = feed->groups != 0 ? feed->groups : UINT32_MAX;
    const bool is_same = feed->params_version != 0 && feed->params_version == e->kept_version;
    e->run.is_kept = is_same && (e->groups & ~e->kept_groups) == 0;
    e->kept_version = feed->params_version;
    e->kept_groups = e->groups | (is_same ? e->kept_groups : 0);
    if (p->poison) {
        run_poisoned(e, feed);
    } else if (dt_trace_is_on()) {
        run_traced(e, feed);
    } else {
        run_calls(e, feed);
    }
    for (uint32_t i = 0; i < p->ir.n_losses; i++) {
        if ((1u << p->ir.loss[i].group & e->groups) == 0) {
            continue;
        }
        feed->loss[i] += *(const double *)e->view[p->loss_view + i].data;
    }
    return DT_OK;
}

const dt_view *dt_exec_output_at(const dt_exec *e, uint32_t i, const char **name_p)
{
    if (i >= e->plan->ir.n_outputs) {
        return NULL;
    }
    *name_p = e->plan->ir.output[i].name;
    return &e->view[e->plan->output_view + i];
}

const dt_view *dt_exec_output(const dt_exec *e, const char *name)
{
    const dt_plan *p = e->plan;
    for (uint32_t i = 0; i < p->ir.n_outputs; i++) {
        if (strcmp(p->ir.output[i].name, name) == 0) {
            return &e->view[p->output_view + i];
        }
    }
    return NULL;
}
