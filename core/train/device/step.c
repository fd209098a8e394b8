/* SPDX-License-Identifier: Apache-2.0
 *
 * One optimizer step on a device. See device.h.
 */
#include <config.h>

#include "train/device/internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"
#include "engine/optim/loops.h"

#include <string.h>

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* A field of one shard from its live size to capacity: outer blocks of `live` items of inner bytes become blocks of
 * `room` items; what is beyond is zero, or repeats the last row pointer. */
static void pack_field(const dt_samples *s, uint32_t f, const int64_t *size, const int64_t *cap, const char *from,
                       char *to)
{
    int64_t live_dim[DT_MAX_DIMS], cap_dim[DT_MAX_DIMS];
    const dt_field_shape *p = &s->shape[f];
    size_t outer = 1, inner = p->item_bytes, live = 1, room = 1;
    bool is_pointer = false, is_after_change = false;
    dt_samples_field_dims(s, f, size, live_dim);
    dt_samples_field_dims(s, f, cap, cap_dim);
    for (uint32_t i = 0; i < p->rank; i++) {
        if (p->symbol[i] >= 0) {
            live = (size_t)live_dim[i];
            room = (size_t)cap_dim[i];
            is_pointer = p->number[i] == 1 && s->field[f].dtype == DT_I32;
            is_after_change = true;
        } else if (is_after_change) {
            inner *= (size_t)cap_dim[i];
        } else {
            outer *= (size_t)cap_dim[i];
        }
    }
    for (size_t o = 0; o < outer; o++) {
        char *block = to + o * room * inner;
        if (block != from) {
            memcpy(block, from + o * live * inner, live * inner);
        }
        memset(block + live * inner, 0, (room - live) * inner);
        if (is_pointer && live > 0) {
            for (size_t i = live; i < room; i++) {
                memcpy(block + i * inner, block + (live - 1) * inner, inner);
            }
        }
    }
}

bool dt_device_can_pack_in_place(const dt_samples *s, uint32_t f)
{
    const dt_field_shape *p = &s->shape[f];
    for (uint32_t i = 0; i < p->rank && p->symbol[i] < 0; i++) {
        if (p->number[i] != 1) {
            return false;
        }
    }
    return true;
}

dt_status dt_device_pack_micro_batch(const dt_samples *s, const dt_device_input *in, const int64_t *cap,
                                     const dt_micro_batch *slice, uint32_t i, char *base)
{
    int32_t *live = (int32_t *)(void *)(base + in->live) + (size_t)i * (s->n_symbols + 1);
    for (uint32_t k = 0; k <= s->n_symbols; k++) {
        live[k] = slice != NULL ? (int32_t)slice->size[k] : 0;
        if (live[k] > cap[k]) {
            return DT_FAIL(DT_EPLUGIN, "the data changed its sizes between sizes() and read()");
        }
    }
    for (uint32_t f = 0; f < s->n_fields; f++) {
        char *to = base + in->field[f] + in->field_bytes[f] * i;
        if (in->field_bytes[f] > 0 && slice != NULL) {
            pack_field(s, f, slice->size, cap, slice->field[f], to);
        } else {
            memset(to, 0, in->field_bytes[f]);
        }
    }
    return DT_OK;
}

static dt_status pack_shard(const dt_train_device *d, uint32_t i, const dt_feed_shard *shard)
{
    if (shard->n_micro_batches > 1) {
        return DT_FAIL(DT_EPLUGIN, "the data's samples grew: a shard of the batch no longer fits its largest size");
    }
    return dt_device_pack_micro_batch(&d->source, &d->staging->input, d->staging->cap,
                                      shard->n_micro_batches > 0 ? shard->micro_batch : NULL, i, d->staging_at);
}

static dt_status read_and_pack_shard(void *user, uint32_t worker, uint32_t i)
{
    dt_trainer *t = user;
    const uint64_t number = dt_feed_number(t, i);
    const dt_feed_shard *shard = NULL;
    dt_status st = dt_feed_wait(t->workers.feed, number, &shard, &t->workers.waited[worker]);
    if (st == DT_OK) {
        st = pack_shard(t->device, i, shard);
    }
    dt_feed_release(t->workers.feed, number);
    return st;
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

static dt_device_consts make_consts(const dt_trainer *t, uint32_t group, uint64_t update)
{
    dt_optim_step s = t->c.optim;
    s.step = update;
    s.lr = dt_group_learning_rate(t, group, update);
    s.grad_scale = 1;
    const dt_optim_consts k = dt_optim_constants(&s);
    return (dt_device_consts){.l2 = k.l2,
                              .beta1 = k.beta1,
                              .one_minus_beta1 = k.one_minus_beta1,
                              .beta2 = k.beta2,
                              .one_minus_beta2 = k.one_minus_beta2,
                              .rate = k.rate,
                              .inv_root = k.inv_root,
                              .eps = k.eps,
                              .keep = k.keep};
}

static dt_device_control make_control(const dt_trainer *t)
{
    const dt_train_device *d = t->device;
    dt_device_control c = {
        .run = {
            .seed = t->c.seed, .step = t->state.step, .phase = t->c.phase, .training = 1, .share = dt_shard_share(t)}};
    for (uint32_t g = 0; g < t->state.n_groups; g++) {
        const double clip = t->state.group[g].gradient_clip;
        c.first[g] = d->updates[g] + 1;
        c.consts[g][0] = make_consts(t, g, d->updates[g] + 1);
        c.consts[g][1] = make_consts(t, g, d->updates[g] + 2);
        c.gradient_clip[g] = clip > 0 ? clip : 0;
    }
    memcpy(c.loss_seed, t->scratch.loss_seed, sizeof(c.loss_seed));
    return c;
}

void dt_device_write_control(const dt_plan *p, const dt_device_input *in, const dt_device_control *control,
                             const float *const *step_input, char *base)
{
    const char *const *name = NULL;
    const int64_t *count = NULL;
    const uint32_t n = dt_plan_step_inputs(p, &name, &count);
    memcpy(base, control, sizeof(*control));
    for (uint32_t i = 0; i < n; i++) {
        memcpy(base + in->step[i], step_input[i], (size_t)count[i] * sizeof(float));
    }
}

dt_status dt_device_copy_input(const dt_train_device *d, const dt_device_input *in, char *to, const char *from,
                               dt_device_event *read, dt_device_event *copied)
{
    DT_TRY(read != NULL ? d->ops->event_wait(d->device, read, d->copy) : DT_OK);
    DT_TRY(d->ops->copy(d->device, to, from, in->bytes, DT_DEVICE_TO_DEVICE, d->copy));
    DT_TRY(d->ops->event_record(d->device, copied, d->copy));
    return d->ops->event_wait(d->device, copied, d->compute);
}

static dt_status upload_inputs(dt_trainer *t, dt_device_class *k, dt_device_buffer *b)
{
    dt_train_device *d = t->device;
    DT_TRACE("device", "inputs");
    if (b->step != 0) { /* the copy out of it has long been made */
        DT_TRY(d->ops->event_sync(d->device, b->copied));
    }
    d->staging = k;
    d->staging_at = b->pinned;
    const dt_device_control control = make_control(t);
    dt_device_write_control(k->plan, &k->input, &control, t->train.step_input, b->pinned);
    DT_TRY(dt_run_shards(t, t->c.threads, read_and_pack_shard, t));
    return dt_device_copy_input(d, &k->input, b->device, b->pinned, b->step != 0 ? b->done : NULL, b->copied);
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

static dt_device_finish make_finish_args(const dt_trainer *t, const dt_device_buffer *b)
{
    const dt_train_device *d = t->device;
    const dt_scaler_config *k = &t->c.scaling;
    dt_device_finish f = {.grad = d->grad,
                          .param = d->params,
                          .moment = {d->moment[0], d->moment[1]},
                          .trained = d->trained,
                          .block_group = d->block_group,
                          .block_sum = d->block_sum,
                          .seed = d->seed,
                          .control = (const dt_device_control *)(const void *)b->device,
                          .state = d->state,
                          .result = d->result,
                          .scaler = {.enabled = k->kind != DT_SCALING_NONE,
                                     .dynamic = k->kind == DT_SCALING_DYNAMIC,
                                     .growth = k->growth,
                                     .backoff = k->backoff,
                                     .min = k->min,
                                     .max = k->max,
                                     .interval = k->interval,
                                     .hysteresis = k->hysteresis,
                                     .refill = k->refill},
                          .slice = d->slice,
                          .total = d->total,
                          .loss_leaves = d->ranks != NULL ? 1 : d->shards,
                          .n_slices = d->n_slices,
                          .is_part = d->ranks != NULL,
                          .n_groups = t->state.n_groups,
                          .groups = b->groups};
    const dt_graph_loss *loss = NULL;
    f.n_losses = dt_graph_losses(t->train.graph, &loss);
    for (uint32_t i = 0; i < f.n_losses; i++) {
        if ((b->groups >> loss[i].group & 1) != 0) {
            f.loss[i] = d->ranks != NULL ? d->ranks->device_total + i : d->loss[i];
        }
    }
    return f;
}

typedef struct readiness { /* of buckets, while the last of a rank's shards run */
    const dt_trainer *t;
    uint32_t n;
} readiness;

static dt_status mark_gradient_ready(void *user, uint32_t call)
{
    readiness *r = user;
    return dt_device_ranks_mark_ready(r->t, call, &r->n);
}

dt_device_feed dt_device_bind_input(const dt_samples *s, const dt_device_input *in, char *base, uint32_t first,
                                    dt_device_bound *room)
{
    for (uint32_t i = 0; i < s->n_fields; i++) {
        room->field[i] = base + in->field[i] + in->field_bytes[i] * first;
    }
    for (uint32_t i = 0; i < DT_TRAIN_MAX_STEP_INPUTS; i++) {
        room->step_input[i] = (const float *)(const void *)(base + in->step[i]);
    }
    const int32_t *live = (const int32_t *)(const void *)(base + in->live);
    return (dt_device_feed){.live = live + (size_t)first * (s->n_symbols + 1),
                            .run = &((const dt_device_control *)(const void *)base)->run,
                            .field = room->field,
                            .step_input = room->step_input};
}

static dt_status launch_shards(const dt_trainer *t, const dt_device_class *k, const dt_device_buffer *b, uint32_t first,
                               const dt_device_finish *f)
{
    readiness ready = {.t = t};
    const dt_train_device *d = t->device;
    dt_device_node node[DT_DEVICE_MAX_NODES];
    dt_device_bound bound;
    const bool is_last = d->ranks != NULL && first + d->launch_shards == d->shards;
    dt_device_feed feed = dt_device_bind_input(&d->source, &k->input, b->device, first, &bound);
    feed.arena = d->arena;
    feed.params = d->params;
    feed.params_half = d->params_half;
    feed.sums = d->grad;
    feed.total = d->total;
    feed.node = node;
    feed.n_nodes = dt_device_list_nodes(t, first, d->launch_shards, node);
    feed.loss_seed = d->seed;
    feed.groups = b->groups;
    feed.summed = is_last ? mark_gradient_ready : NULL;
    feed.user = &ready;
    DT_TRY(dt_device_exec_bind(k->exec, &feed));
    DT_TRY(dt_device_exec_launch(k->exec, d->compute));
    DT_TRY(is_last ? dt_device_ranks_mark_ready(t, INT64_MAX, &ready.n) : DT_OK);
    for (uint32_t i = 0; i < f->n_losses; i++) {
        if (f->loss[i] == NULL) {
            continue;
        }
        const void *from = dt_device_exec_loss(k->exec, i)->data;
        DT_TRY(d->ops->copy(d->device, d->loss[i] + first, from, d->launch_shards * sizeof(double), DT_DEVICE_WITHIN,
                            d->compute));
    }
    return DT_OK;
}

/* What the step does not move has no gradient: those of an earlier step would count in norms, and be sent. */
static dt_status clear_other_groups(const dt_trainer *t, uint32_t groups)
{
    const dt_train_device *d = t->device;
    const dt_reduction *r = &t->reduce;
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        const size_t bytes = (size_t)(r->bucket[b].end - r->bucket[b].begin) * sizeof(float);
        for (uint32_t s = 0; s < d->slots && (groups >> r->group[b] & 1) == 0; s++) {
            DT_TRY(d->ops->zero(d->device, d->grad + s * d->total + r->bucket[b].begin, bytes, d->compute));
        }
    }
    return DT_OK;
}

/* Everything between the inputs' arrival and the result's return; of several ranks, up to their exchange. */
static dt_status launch_all(const dt_trainer *t, const dt_device_class *k, const dt_device_buffer *b)
{
    const dt_train_device *d = t->device;
    const dt_device_finish f = make_finish_args(t, b);
    DT_TRY(d->ops->begin(d->device, &f, d->compute));
    DT_TRY(clear_other_groups(t, b->groups));
    for (uint32_t first = 0; first < d->shards; first += d->launch_shards) {
        DT_TRY(launch_shards(t, k, b, first, &f));
    }
    if (d->ranks != NULL) {
        return dt_device_ranks_download(d, &f);
    }
    DT_TRY(d->ops->measure(d->device, &f, d->compute));
    DT_TRY(d->ops->apply(d->device, &f, d->compute));
    DT_TRY(dt_device_update_targets(t, &f));
    DT_TRY(dt_device_narrow_params(t, d->params_half, d->params, d->all));
    return dt_device_copy_out(d, b->result, d->result, sizeof(*b->result));
}

static dt_status capture_step(const dt_trainer *t, dt_device_class *k, dt_device_buffer *b, dt_device_graph **out_p)
{
    const dt_train_device *d = t->device;
    DT_TRACE("device", "capture");
    DT_TRY(d->ops->capture_begin(d->device, d->compute));
    return dt_device_end_capture(d, launch_all(t, k, b), "a training step", out_p);
}

/* Of steps of these groups, NULL: none ran so far. */
static dt_device_replay *find_replay(const dt_device_class *k, uint32_t groups)
{
    for (uint32_t i = 0; i < k->n_replays; i++) {
        if (k->replay[i].groups == groups) {
            return &k->replay[i];
        }
    }
    return NULL;
}

static dt_status add_replay(dt_device_class *k, uint32_t groups)
{
    dt_device_replay *grown = dt_realloc(k->replay, (k->n_replays + 1) * sizeof(*grown));
    if (grown == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a captured step");
    }
    k->replay = grown;
    k->replay[k->n_replays++] = (dt_device_replay){.groups = groups};
    return DT_OK;
}

static dt_status launch_or_replay(dt_trainer *t, dt_device_class *k, dt_device_buffer *b)
{
    const dt_train_device *d = t->device;
    DT_TRACE("device", "launch");
    dt_device_replay *r = find_replay(k, b->groups);
    if (!t->c.graphs || r == NULL) {
        DT_TRY(launch_all(t, k, b));
        DT_TRY(r == NULL ? add_replay(k, b->groups) : DT_OK);
    } else {
        dt_device_graph **graph = &r->graph[b - d->buffer];
        if (*graph == NULL) {
            DT_TRY(capture_step(t, k, b, graph));
        }
        DT_TRY(d->ops->graph_launch(d->device, *graph, d->compute));
    }
    return d->ops->event_record(d->device, b->done, d->compute);
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

static dt_status launch_step(dt_trainer *t, dt_device_buffer *b)
{
    dt_train_device *d = t->device;
    DT_TRY(dt_train_device_upload(t));
    memcpy(b->norm, t->scratch.norm, sizeof(b->norm));
    const size_t c = dt_device_find_class(d, t->scratch.largest);
    if (c == DT_DEVICE_CLASSES) {
        return DT_FAIL(DT_EPLUGIN, "the data's samples grew: a shard of the batch no longer fits its largest size");
    }
    DT_TRY(dt_device_prepare_class(t, d, c));
    DT_TRY(upload_inputs(t, &d->class[c], b));
    return launch_or_replay(t, &d->class[c], b);
}

/* The buffer of the step that t->state.step counts next. */
static dt_device_buffer *next_buffer(const dt_trainer *t)
{
    return &t->device->buffer[t->state.step % DT_DEVICE_BUFFERS];
}

dt_status dt_device_begin_step(dt_trainer *t)
{
    next_buffer(t)->groups = t->scratch.groups;
    return t->device->ranks != NULL ? dt_device_ranks_connect(t) : DT_OK;
}

/* Of one rank: with norm, update and result, in the same launch. */
dt_status dt_device_run_shards(dt_trainer *t)
{
    return launch_step(t, next_buffer(t));
}

dt_status dt_device_reduce(dt_trainer *t, dt_status mine)
{
    return t->device->ranks != NULL ? dt_device_ranks_reduce(t, next_buffer(t)->groups, mine) : mine;
}

dt_status dt_device_update(dt_trainer *t, dt_step_report *out)
{
    dt_device_buffer *b = next_buffer(t);
    if (t->device->ranks == NULL) {
        return DT_OK;
    }
    const dt_device_finish f = make_finish_args(t, b);
    return dt_device_ranks_update(t, &f, b);
}

/* A step late, where nothing has to be known at once. */
dt_status dt_device_read_step(dt_trainer *t, dt_step_report *out)
{
    dt_train_device *d = t->device;
    const dt_device_buffer *before = next_buffer(t);
    dt_device_buffer *b = &d->buffer[(t->state.step - 1) % DT_DEVICE_BUFFERS];
    b->step = t->state.step;
    if (before->step > d->read) {
        DT_TRY(dt_device_read_result(t, before, out));
    }
    const bool is_waited_for =
        t->c.synchronous || t->c.reads_each_step || d->read == 0 || t->state.step % t->state.steps_per_epoch == 0;
    return dt_device_read_result(t, is_waited_for ? b : before, out);
}
