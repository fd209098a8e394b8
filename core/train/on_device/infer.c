/* SPDX-License-Identifier: Apache-2.0
 *
 * See device_infer.h.
 */
#include <config.h>

#include "train/on_device/infer.h"

#include "base/err.h"
#include "base/mem.h"
#include "device/held.h"
#include "graph/plan_impl.h"
#include "tensor/dtype.h"

#include <string.h>

struct dt_device_infer {
    dt_trainer *t;
    const dt_train_device *d;
    dt_samples source; /* capacities rounded as classes are */
    dt_plan *plan;
    dt_device_exec *exec;
    dt_device_input input;
    char *pinned, *device, *arena; /* inputs, twice; activations */
    char *back;                    /* pinned: outputs at capacity, then packed in place */
    size_t back_bytes;
    dt_view *view; /* [slices, outputs] */
    uint32_t slices, n_outputs;
};

/* ---- create ------------------------------------------------------------------------------------------------------ */

static size_t output_bytes(const dt_device_infer *x, uint32_t o)
{
    const dt_view *v = &x->plan->view[x->plan->output_view + o];
    return dt_device_align((size_t)dt_view_count(v) * dt_dtype_bytes((uint32_t)v->dtype));
}

static dt_status compile(dt_device_infer *x, const dt_graph *graph, bool outputs_only, bool pictures)
{
    const dt_trainer *t = x->t;
    int64_t cap[DT_SAMPLES_MAX_SYMBOLS + 1];
    memcpy(cap, x->source.slice_cap, sizeof(cap));
    const dt_plan_desc pd = {.lane = DT_LANE_DEVICE,
                             .reuse = t->c.reuse,
                             .fuse = t->c.fuse,
                             .outputs_only = outputs_only,
                             .pictures = pictures,
                             .cap = cap};
    DT_TRY(dt_plan_compile(graph, &pd, &x->plan));
    DT_TRY(dt_device_lay_out(x->plan, &x->source, cap, x->slices, &x->input));
    const dt_device_exec_desc ed = {.plan = x->plan,
                                    .ops = x->d->ops,
                                    .device = x->d->device,
                                    .leaves = x->slices,
                                    .math = t->c.math,
                                    .synchronous = t->c.synchronous};
    return dt_device_exec_create(&ed, &x->exec);
}

/* Before anything ran an output has the shape of its capacity, as on the CPU: who feeds on it looks at that. */
static void shape_outputs(dt_device_infer *x)
{
    for (uint32_t i = 0; i < x->slices; i++) {
        memcpy(x->view + (size_t)i * x->n_outputs, x->plan->view + x->plan->output_view,
               x->n_outputs * sizeof(*x->view));
    }
}

static dt_status take(dt_device_infer *x)
{
    const dt_device_ops *ops = x->d->ops;
    void *p = NULL;
    x->n_outputs = x->plan->ir.n_outputs;
    for (uint32_t o = 0; o < x->n_outputs; o++) {
        x->back_bytes += output_bytes(x, o) * x->slices;
    }
    x->view = dt_alloc_n((size_t)x->n_outputs * x->slices, sizeof(*x->view));
    if (x->view == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for evaluation");
    }
    shape_outputs(x);
    DT_TRY(dt_device_take(ops, x->d->device, dt_device_exec_bytes(x->exec), &p));
    x->arena = p;
    DT_TRY(dt_device_take(ops, x->d->device, x->input.bytes, &p));
    x->device = p;
    DT_TRY(ops->pin(x->d->device, x->input.bytes, &p));
    x->pinned = p;
    DT_TRY(ops->pin(x->d->device, x->back_bytes, &p));
    x->back = p;
    return DT_OK;
}

dt_status dt_device_infer_create(dt_trainer *t, const dt_samples *source, const dt_graph *graph, uint32_t slices,
                                 bool outputs_only, bool pictures, dt_device_infer **out_p)
{
    dt_device_infer *x = dt_alloc(sizeof(*x));
    if (x == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for evaluation");
    }
    x->t = t;
    x->d = t->device;
    x->source = *source;
    x->slices = slices;
    dt_status st = compile(x, graph, outputs_only, pictures);
    if (st == DT_OK) {
        st = take(x);
    }
    if (st < 0) {
        dt_device_infer_destroy(x);
        return st;
    }
    *out_p = x;
    return DT_OK;
}

void dt_device_infer_destroy(dt_device_infer *x)
{
    if (x == NULL) {
        return;
    }
    x->d->ops->unpin(x->d->device, x->back);
    x->d->ops->unpin(x->d->device, x->pinned);
    dt_device_give(x->d->ops, x->d->device, x->device);
    dt_device_give(x->d->ops, x->d->device, x->arena);
    dt_device_exec_destroy(x->exec);
    dt_plan_destroy(x->plan);
    dt_free(x->view);
    dt_free(x);
}

const dt_plan *dt_device_infer_plan(const dt_device_infer *x)
{
    return x->plan;
}

uint32_t dt_device_infer_slices(const dt_device_infer *x)
{
    return x->slices;
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

static dt_status bind(dt_device_infer *x, const float *const *step_input)
{
    void *field[DT_SAMPLES_MAX_FIELDS];
    const float *at[DT_TRAIN_MAX_STEP_INPUTS] = {NULL};
    const char *const *name = NULL;
    const int64_t *count = NULL;
    const uint32_t n = dt_plan_step_inputs(x->plan, &name, &count);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(x->pinned + x->input.step[i], step_input[i], (size_t)count[i] * sizeof(float));
        at[i] = (const float *)(const void *)(x->device + x->input.step[i]);
    }
    for (uint32_t f = 0; f < x->source.n_fields; f++) {
        field[f] = x->device + x->input.field[f];
    }
    const dt_device_feed feed = {.arena = x->arena,
                                 .live = (const int32_t *)(const void *)(x->device + x->input.live),
                                 .run = &((const dt_device_control *)(const void *)x->device)->run,
                                 .field = field,
                                 .step_input = at,
                                 .params = x->d->params};
    return dt_device_exec_bind(x->exec, &feed);
}

/* The outputs of slice i lie at capacity; move the live parts together, front to back. */
static void pack_output(dt_device_infer *x, uint32_t o, uint32_t i, const int64_t *size, char *at)
{
    const dt_view *from = &x->plan->view[x->plan->output_view + o];
    dt_view *v = &x->view[(size_t)i * x->n_outputs + o];
    size_t outer = 1, inner = dt_dtype_bytes((uint32_t)from->dtype), live = 1, room = 1;
    *v = *from;
    v->data = at;
    const dt_device_view *shape = dt_device_exec_output(x->exec, o);
    for (int32_t k = 0; k < from->rank; k++) {
        if (k == shape->ragged) {
            v->dim[k] = size[shape->symbol] + shape->plus;
            live = (size_t)v->dim[k];
            room = (size_t)from->dim[k];
        } else if (shape->ragged >= 0 && k < shape->ragged) {
            outer *= (size_t)from->dim[k];
        } else {
            inner *= (size_t)from->dim[k];
        }
    }
    for (size_t b = 1; b < outer && live < room; b++) {
        memmove(at + b * live * inner, at + b * room * inner, live * inner);
    }
}

static dt_status fetch_outputs(dt_device_infer *x, const dt_feed_slice *slice, uint32_t n)
{
    const dt_device_ops *ops = x->d->ops;
    char *at = x->back;
    for (uint32_t o = 0; o < x->n_outputs; o++) {
        const dt_device_view *v = dt_device_exec_output(x->exec, o);
        const size_t leaf = (size_t)v->leaf_stride * dt_dtype_bytes((uint32_t)v->dtype);
        for (uint32_t i = 0; i < n; i++) {
            const char *from = (const char *)v->data + i * leaf;
            char *to = at + i * output_bytes(x, o);
            const size_t bytes =
                (size_t)dt_view_count(&x->plan->view[x->plan->output_view + o]) * dt_dtype_bytes((uint32_t)v->dtype);
            DT_TRY(ops->copy(x->d->device, to, from, bytes, DT_DEVICE_TO_HOST, x->d->compute));
        }
        at += output_bytes(x, o) * x->slices;
    }
    DT_TRY(ops->stream_sync(x->d->device, x->d->compute));
    at = x->back;
    for (uint32_t o = 0; o < x->n_outputs; o++) {
        for (uint32_t i = 0; i < n; i++) {
            pack_output(x, o, i, slice[i].size, at + i * output_bytes(x, o));
        }
        at += output_bytes(x, o) * x->slices;
    }
    return DT_OK;
}

dt_status dt_device_infer_run(dt_device_infer *x, const dt_feed_slice *slice, uint32_t n,
                              const float *const *step_input)
{
    const dt_device_ops *ops = x->d->ops;
    dt_device_control *control = (dt_device_control *)(void *)x->pinned;
    control->run =
        (dt_device_run){.seed = x->t->c.seed, .step = x->t->state.step, .phase = x->t->c.phase, .training = 0};
    DT_TRY(bind(x, step_input));
    for (uint32_t i = 0; i < x->slices; i++) {
        DT_TRY(dt_device_pack(&x->source, &x->input, x->source.slice_cap, i < n ? &slice[i] : NULL, i, x->pinned));
    }
    DT_TRY(dt_train_device_push(x->t));
    DT_TRY(ops->copy(x->d->device, x->device, x->pinned, x->input.bytes, DT_DEVICE_TO_DEVICE, x->d->compute));
    DT_TRY(dt_device_exec_launch(x->exec, x->d->compute));
    return fetch_outputs(x, slice, n);
}

const dt_view *dt_device_infer_output(const dt_device_infer *x, uint32_t i, const char *name)
{
    for (uint32_t o = 0; o < x->n_outputs; o++) {
        if (strcmp(x->plan->ir.output[o].name, name) == 0) {
            return &x->view[(size_t)i * x->n_outputs + o];
        }
    }
    return NULL;
}

const dt_view *dt_device_infer_output_at(const dt_device_infer *x, uint32_t i, uint32_t k, const char **name_p)
{
    if (k >= x->n_outputs) {
        return NULL;
    }
    *name_p = x->plan->ir.output[k].name;
    return &x->view[(size_t)i * x->n_outputs + k];
}
