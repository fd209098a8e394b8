/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "train/device/infer.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"
#include "engine/device/memory.h"
#include "engine/graph/plan_internal.h"
#include "engine/tensor/dtype.h"

#include <string.h>

enum { MAX_CLASSES = 16 };

typedef struct infer_class { /* of runs with as many micro-batches, or fewer */
    uint32_t shards;
    dt_device_exec *exec;
    dt_device_input input;
    bool is_warm; /* it ran once without a graph */
    /* by place; [1]: of held parameters */
    dt_device_graph *graph[2][DT_DEVICE_INFER_PLACES]; /* NULL: not captured so far */
    const float *params[2][DT_DEVICE_INFER_PLACES];    /* that each graph reads */
} infer_class;

typedef struct infer_place {
    char *pinned, *device; /* inputs, twice */
    char *back;            /* pinned: outputs at capacity; those that are not joined are packed there */
    char *joined;
    dt_device_event *copied, *done;
    const infer_class *class;                    /* of the run that is under way; NULL: none is */
    uint32_t n;                                  /* its micro-batches */
    int64_t (*size)[DT_SAMPLES_MAX_SYMBOLS + 1]; /* [micro-batches] put so far */
    dt_view *view;                               /* [micro-batches (joined: 1), outputs] */
} infer_place;

struct dt_device_infer {
    dt_trainer *t;
    const dt_train_device *d;
    dt_device_infer_desc desc;
    dt_samples source; /* capacities rounded as classes are */
    dt_plan *plan;
    infer_class class[MAX_CLASSES];
    uint32_t n_classes, n_outputs;
    size_t output_bytes; /* of a run, at capacity */
    char *arena;         /* activations: runs follow each other on one stream */
    float *frozen;       /* device: parameters; NULL: no room was made */
    void *frozen_half;   /* the same rounded, where values are stored in half */
    bool is_frozen;      /* runs read them */
    infer_place place[DT_DEVICE_INFER_PLACES];
    bool was_begun;
};

/* ---- create ------------------------------------------------------------------------------------------------------ */

static const dt_view *output_capacity(const dt_device_infer *x, uint32_t o)
{
    return &x->plan->view[x->plan->output_view + o];
}

static size_t packed_bytes(const dt_view *v)
{
    return (size_t)dt_view_count(v) * dt_dtype_bytes((uint32_t)v->dtype);
}

/* of all micro-batches of a run, packed at capacity */
static size_t output_bytes_of_run(const dt_device_infer *x, uint32_t o)
{
    return dt_device_align(packed_bytes(output_capacity(x, o)) * x->desc.micro_batches);
}

static dt_status create_class(dt_device_infer *x, uint32_t shards)
{
    infer_class *k = &x->class[x->n_classes++];
    k->shards = shards;
    DT_TRY(dt_device_layout_input(x->plan, &x->source, x->source.slice_cap, shards, &k->input));
    return dt_device_create_exec(x->t, x->d, x->plan, shards, false, &k->exec);
}

static dt_status compile_inference(dt_device_infer *x)
{
    const dt_plan_desc pd = {.outputs_only = x->desc.outputs_only,
                             .pictures = x->desc.pictures,
                             .outputs = x->desc.outputs,
                             .cap = x->source.slice_cap};
    DT_TRY(dt_device_compile_plan(x->t, x->desc.graph, &pd, &x->plan));
    x->n_outputs = x->plan->ir.n_outputs;
    for (uint32_t o = 0; o < x->n_outputs; o++) {
        x->output_bytes += output_bytes_of_run(x, o);
    }
    for (uint32_t shards = 1; x->n_classes + 1 < MAX_CLASSES && shards < x->desc.micro_batches; shards *= 2) {
        DT_TRY(create_class(x, shards));
    }
    return create_class(x, x->desc.micro_batches);
}

static uint32_t count_views(const dt_device_infer *x)
{
    return x->desc.is_joined ? 1 : x->desc.micro_batches;
}

/* Before anything ran an output has the shape of its capacity, as on the CPU: its consumers read that. */
static dt_status create_views(const dt_device_infer *x, infer_place *p)
{
    p->size = dt_alloc_n(x->desc.micro_batches, sizeof(*p->size));
    p->view = dt_alloc_n((size_t)x->n_outputs * count_views(x), sizeof(*p->view));
    p->joined = x->desc.is_joined ? dt_alloc(x->output_bytes + 1) : NULL;
    if (p->size == NULL || p->view == NULL || (x->desc.is_joined && p->joined == NULL)) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u shards on a device", x->desc.micro_batches);
    }
    for (uint32_t i = 0; i < count_views(x); i++) {
        memcpy(p->view + (size_t)i * x->n_outputs, output_capacity(x, 0), x->n_outputs * sizeof(*p->view));
    }
    return DT_OK;
}

static dt_status create_place(const dt_device_infer *x, size_t input_bytes, infer_place *p)
{
    const dt_device_ops *ops = x->d->ops;
    DT_TRY(create_views(x, p));
    DT_TRY(dt_device_allocate(ops, x->d->device, input_bytes, &p->device));
    DT_TRY(dt_device_pin(ops, x->d->device, input_bytes, &p->pinned));
    DT_TRY(dt_device_pin(ops, x->d->device, x->output_bytes, &p->back));
    DT_TRY(ops->event_create(x->d->device, 0, &p->copied));
    return ops->event_create(x->d->device, 0, &p->done);
}

static dt_status create_parts(dt_device_infer *x)
{
    size_t arena = 0, input = 0;
    if (x->desc.micro_batches < 1 || x->desc.places < 1 || x->desc.places > DT_DEVICE_INFER_PLACES) {
        return DT_FAIL(DT_EINVAL, "inference on a device of %u shards in %u places; expected at least one, in 1 to %d",
                       x->desc.micro_batches, x->desc.places, DT_DEVICE_INFER_PLACES);
    }
    DT_TRY(compile_inference(x));
    for (uint32_t c = 0; c < x->n_classes; c++) {
        const size_t bytes = dt_device_exec_bytes(x->class[c].exec);
        arena = bytes > arena ? bytes : arena;
        input = x->class[c].input.bytes > input ? x->class[c].input.bytes : input;
    }
    DT_TRY(dt_device_allocate(x->d->ops, x->d->device, arena, &x->arena));
    for (uint32_t i = 0; i < x->desc.places; i++) {
        DT_TRY(create_place(x, input, &x->place[i]));
    }
    return DT_OK;
}

dt_status dt_device_infer_create(dt_trainer *t, const dt_device_infer_desc *d, dt_device_infer **out_p)
{
    dt_device_infer *x = dt_alloc(sizeof(*x));
    if (x == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for inference on a device");
    }
    x->t = t;
    x->d = t->device;
    x->desc = *d;
    x->source = *d->source;
    const dt_status st = create_parts(x);
    if (st < 0) {
        dt_device_infer_destroy(x);
        return st;
    }
    *out_p = x;
    return DT_OK;
}

static void destroy_place(const dt_device_infer *x, infer_place *p)
{
    const dt_device_ops *ops = x->d->ops;
    ops->event_destroy(x->d->device, p->copied);
    ops->event_destroy(x->d->device, p->done);
    ops->unpin(x->d->device, p->back);
    ops->unpin(x->d->device, p->pinned);
    dt_device_free(ops, x->d->device, p->device);
    dt_free(p->joined);
    dt_free(p->view);
    dt_free(p->size);
}

/* What was begun and not ended, or failed halfway, still reads and writes what goes now; its result is not needed, to
 * know. */
static void wait_for_all(const dt_device_infer *x)
{
    if (x->was_begun) {
        (void)x->d->ops->stream_sync(x->d->device, x->d->copy);
        (void)x->d->ops->stream_sync(x->d->device, x->d->compute);
    }
}

void dt_device_infer_destroy(dt_device_infer *x)
{
    if (x == NULL) {
        return;
    }
    wait_for_all(x);
    for (uint32_t c = 0; c < x->n_classes; c++) {
        for (uint32_t i = 0; i < DT_DEVICE_INFER_PLACES; i++) {
            x->d->ops->graph_destroy(x->d->device, x->class[c].graph[0][i]);
            x->d->ops->graph_destroy(x->d->device, x->class[c].graph[1][i]);
        }
        dt_device_exec_destroy(x->class[c].exec);
    }
    for (uint32_t i = 0; i < DT_DEVICE_INFER_PLACES; i++) {
        destroy_place(x, &x->place[i]);
    }
    dt_device_free(x->d->ops, x->d->device, x->frozen);
    dt_device_free(x->d->ops, x->d->device, x->frozen_half);
    dt_device_free(x->d->ops, x->d->device, x->arena);
    dt_plan_destroy(x->plan);
    dt_free(x);
}

const dt_plan *dt_device_infer_plan(const dt_device_infer *x)
{
    return x->plan;
}

uint32_t dt_device_infer_max_micro_batches(const dt_device_infer *x)
{
    return x->desc.micro_batches;
}

uint32_t dt_device_infer_n_places(const dt_device_infer *x)
{
    return x->desc.places;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static infer_class *find_class(dt_device_infer *x, uint32_t n)
{
    uint32_t c = 0;
    while (c + 1 < x->n_classes && x->class[c].shards < n) {
        c++;
    }
    return &x->class[c];
}

void dt_device_infer_input_buffers(dt_device_infer *x, uint32_t place, uint32_t i, uint32_t n, void **field)
{
    const dt_device_input *in = &find_class(x, n)->input;
    for (uint32_t f = 0; f < x->source.n_fields; f++) {
        char *at = x->place[place].pinned + in->field[f] + in->field_bytes[f] * i;
        field[f] = in->field_bytes[f] > 0 && dt_device_can_pack_in_place(&x->source, f) ? at : NULL;
    }
}

dt_status dt_device_infer_write_input(dt_device_infer *x, uint32_t place, uint32_t i, uint32_t n,
                                      const dt_micro_batch *micro_batch)
{
    infer_place *p = &x->place[place];
    memcpy(p->size[i], micro_batch->size, (x->source.n_symbols + 1) * sizeof(p->size[i][0]));
    return dt_device_pack_micro_batch(&x->source, &find_class(x, n)->input, x->source.slice_cap, micro_batch, i,
                                      p->pinned);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static const float *current_params(const dt_device_infer *x)
{
    return x->is_frozen ? x->frozen : x->d->params;
}

static size_t params_bytes(const dt_device_infer *x)
{
    return (size_t)x->t->d.params->total * sizeof(float);
}

dt_status dt_device_infer_allocate_frozen(dt_device_infer *x)
{
    const dt_device_ops *ops = x->d->ops;
    DT_TRY(dt_device_allocate(ops, x->d->device, params_bytes(x), &x->frozen));
    return x->d->params_half != NULL ? dt_device_allocate(ops, x->d->device, params_bytes(x) / 2, &x->frozen_half)
                                     : DT_OK;
}

/* After the steps that were launched, before those that will be. */
dt_status dt_device_infer_freeze_params(dt_device_infer *x)
{
    DT_TRY(dt_train_device_upload(x->t));
    DT_TRY(x->d->ops->copy(x->d->device, x->frozen, x->d->params, params_bytes(x), DT_DEVICE_WITHIN, x->d->compute));
    DT_TRY(dt_device_narrow_params(x->t, x->frozen_half, x->frozen, x->t->d.params->total));
    x->is_frozen = true;
    return DT_OK;
}

void dt_device_infer_unfreeze_params(dt_device_infer *x)
{
    x->is_frozen = false;
}

dt_status dt_device_infer_frozen_get(const dt_device_infer *x, float *to)
{
    DT_TRY(dt_device_copy_out(x->d, to, x->frozen, params_bytes(x)));
    return x->d->ops->stream_sync(x->d->device, x->d->compute);
}

dt_status dt_device_infer_frozen_set(dt_device_infer *x, const float *from)
{
    DT_TRY(dt_device_copy_in(x->d, x->frozen, from, params_bytes(x)));
    DT_TRY(dt_device_narrow_params(x->t, x->frozen_half, x->frozen, x->t->d.params->total));
    return x->d->ops->stream_sync(x->d->device, x->d->compute);
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

static dt_status bind_inputs(dt_device_infer *x, const infer_class *k, const infer_place *p)
{
    dt_device_bound bound;
    dt_device_feed feed = dt_device_bind_input(&x->source, &k->input, p->device, 0, &bound);
    feed.arena = x->arena;
    feed.params = current_params(x);
    feed.params_half = x->is_frozen ? x->frozen_half : x->d->params_half;
    return dt_device_exec_bind(k->exec, &feed);
}

static dt_status copy_output(const dt_device_infer *x, const infer_class *k, uint32_t o, char *to)
{
    const dt_device_view *v = dt_device_exec_output(k->exec, o);
    const size_t packed = packed_bytes(output_capacity(x, o));
    const size_t stride = (size_t)v->leaf_stride * dt_dtype_bytes((uint32_t)v->dtype);
    const uint32_t copies = stride == packed ? 1 : k->shards; /* what all shards share is there once */
    for (uint32_t i = 0; i < copies; i++) {
        DT_TRY(dt_device_copy_out(x->d, to + i * packed, (const char *)v->data + i * stride,
                                  packed * (k->shards / copies)));
    }
    return DT_OK;
}

/* Everything between the inputs' arrival and the outputs' return. */
static dt_status queue_inference(dt_device_infer *x, const infer_class *k, const infer_place *p)
{
    char *to = p->back;
    DT_TRY(bind_inputs(x, k, p));
    DT_TRY(dt_device_exec_launch(k->exec, x->d->compute));
    for (uint32_t o = 0; o < x->n_outputs; o++) {
        DT_TRY(copy_output(x, k, o, to));
        to += output_bytes_of_run(x, o);
    }
    return DT_OK;
}

static dt_status capture_launch(dt_device_infer *x, infer_class *k, uint32_t place)
{
    const dt_device_ops *ops = x->d->ops;
    dt_device_graph **graph = &k->graph[x->is_frozen][place];
    DT_TRACE("device", "capture");
    ops->graph_destroy(x->d->device, *graph);
    *graph = NULL;
    DT_TRY(ops->capture_begin(x->d->device, x->d->compute));
    DT_TRY(dt_device_end_capture(x->d, queue_inference(x, k, &x->place[place]), "inference", graph));
    k->params[x->is_frozen][place] = current_params(x);
    return DT_OK;
}

static dt_status launch_or_replay(dt_device_infer *x, infer_class *k, uint32_t place)
{
    if (!x->t->c.graphs || !k->is_warm) {
        DT_TRY(queue_inference(x, k, &x->place[place]));
        k->is_warm = true;
        return DT_OK;
    }
    /* values of parameters may change under a graph, their address may not */
    if (k->graph[x->is_frozen][place] == NULL || k->params[x->is_frozen][place] != current_params(x)) {
        DT_TRY(capture_launch(x, k, place));
    }
    return x->d->ops->graph_launch(x->d->device, k->graph[x->is_frozen][place], x->d->compute);
}

dt_status dt_device_infer_start(dt_device_infer *x, uint32_t place, uint32_t n, uint64_t step,
                                const float *const *step_input)
{
    infer_place *p = &x->place[place];
    infer_class *k = find_class(x, n);
    DT_TRACE_N("device", "infer", "slices", n);
    const dt_device_control control = {
        .run = {.seed = x->t->c.seed, .step = step, .phase = x->t->c.phase, .training = 0}};
    dt_device_write_control(x->plan, &k->input, &control, step_input, p->pinned);
    for (uint32_t i = n; i < k->shards; i++) {
        DT_TRY(dt_device_pack_micro_batch(&x->source, &k->input, x->source.slice_cap, NULL, i, p->pinned));
    }
    DT_TRY(x->is_frozen ? DT_OK : dt_train_device_upload(x->t));
    p->class = k;
    p->n = n;
    x->was_begun = true;
    DT_TRY(dt_device_copy_input(x->d, &k->input, p->device, p->pinned, NULL, p->copied));
    DT_TRY(launch_or_replay(x, k, place));
    return x->d->ops->event_record(x->d->device, p->done, x->d->compute);
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

typedef struct blocks { /* an output of a micro-batch: outer blocks of `live` items, in room for `cap` of them */
    size_t outer, live, cap, inner;
    int32_t ragged; /* its dimension, -1: none */
} blocks;

static blocks measure_blocks(const dt_view *v, const dt_device_view *shape, const int64_t *size)
{
    blocks b = {.outer = 1, .live = 1, .cap = 1, .inner = dt_dtype_bytes((uint32_t)v->dtype), .ragged = shape->ragged};
    for (int32_t k = 0; k < v->rank; k++) {
        if (k == shape->ragged) {
            b.live = (size_t)(size[shape->symbol] + shape->plus);
            b.cap = (size_t)v->dim[k];
        } else if (k < shape->ragged) {
            b.outer *= (size_t)v->dim[k];
        } else {
            b.inner *= (size_t)v->dim[k];
        }
    }
    return b;
}

/* The outputs of micro-batch i lie at capacity; move the live parts together, front to back. */
static void pack_output(const dt_device_infer *x, infer_place *p, uint32_t o, uint32_t i, char *at)
{
    const dt_view *cap = output_capacity(x, o);
    const blocks b = measure_blocks(cap, dt_device_exec_output(p->class->exec, o), p->size[i]);
    dt_view *v = &p->view[(size_t)i * x->n_outputs + o];
    *v = *cap;
    v->data = at;
    if (b.ragged >= 0) {
        v->dim[b.ragged] = (int64_t)b.live;
    }
    for (size_t k = 1; k < b.outer && b.live < b.cap; k++) {
        memmove(at + k * b.live * b.inner, at + k * b.cap * b.inner, b.live * b.inner);
    }
}

/* The live parts of all micro-batches one after another; of what is not ragged all have the same. */
static void concat_output(const dt_device_infer *x, infer_place *p, uint32_t o, const char *from, char *to)
{
    const dt_view *cap = output_capacity(x, o);
    const dt_device_view *shape = dt_device_exec_output(p->class->exec, o);
    dt_view *v = &p->view[o];
    *v = *cap;
    v->data = to;
    const uint32_t n = shape->ragged >= 0 ? p->n : 1;
    blocks b = measure_blocks(cap, shape, p->size[0]);
    for (size_t k = 0; k < b.outer; k++) {
        for (uint32_t i = 0; i < n; i++) {
            b = measure_blocks(cap, shape, p->size[i]);
            memcpy(to, from + i * packed_bytes(cap) + k * b.cap * b.inner, b.live * b.inner);
            to += b.live * b.inner;
        }
    }
    if (b.ragged >= 0) {
        v->dim[b.ragged] = 0;
        for (uint32_t i = 0; i < n; i++) {
            v->dim[b.ragged] += (int64_t)measure_blocks(cap, shape, p->size[i]).live;
        }
    }
}

static void unpack_outputs(const dt_device_infer *x, infer_place *p)
{
    char *at = p->back, *joined = p->joined;
    for (uint32_t o = 0; o < x->n_outputs; o++) {
        for (uint32_t i = 0; i < p->n && !x->desc.is_joined; i++) {
            pack_output(x, p, o, i, at + i * packed_bytes(output_capacity(x, o)));
        }
        if (x->desc.is_joined) {
            concat_output(x, p, o, at, joined);
            joined += output_bytes_of_run(x, o);
        }
        at += output_bytes_of_run(x, o);
    }
}

dt_status dt_device_infer_wait(dt_device_infer *x, uint32_t place)
{
    infer_place *p = &x->place[place];
    if (p->class == NULL) {
        return DT_OK;
    }
    DT_TRACE("device", "wait for outputs");
    DT_TRY(x->d->ops->event_sync(x->d->device, p->done));
    unpack_outputs(x, p);
    p->class = NULL;
    return DT_OK;
}

const dt_view *dt_device_infer_output(const dt_device_infer *x, uint32_t place, uint32_t i, const char *name)
{
    for (uint32_t o = 0; o < x->n_outputs; o++) {
        if (strcmp(x->plan->ir.output[o].name, name) == 0) {
            return &x->place[place].view[(size_t)i * x->n_outputs + o];
        }
    }
    return NULL;
}

const dt_view *dt_device_infer_output_at(const dt_device_infer *x, uint32_t place, uint32_t i, uint32_t k,
                                         const char **name_p)
{
    if (k >= x->n_outputs) {
        return NULL;
    }
    *name_p = x->plan->ir.output[k].name;
    return &x->place[place].view[(size_t)i * x->n_outputs + k];
}
