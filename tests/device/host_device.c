/* SPDX-License-Identifier: Apache-2.0
 *
 * See host_device.h.
 */
#include <config.h>

#include "device/host_device.h"

#include "amp/scaler.h"
#include "backend/kernel.h"
#include "base/err.h"
#include "collective/tree_sum.h"
#include "optim/loops.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VIEWS = DT_KERNEL_MAX_IN + DT_KERNEL_MAX_OUT, MAX_SLICES = 64 };

/* ---- queues ------------------------------------------------------------------------------------------------------ */

typedef struct order { /* something to do */
    enum {
        ORDER_KERNEL,
        ORDER_COPY,
        ORDER_ZERO,
        ORDER_BEGIN,
        ORDER_SUM,
        ORDER_MEASURE,
        ORDER_APPLY,
        ORDER_ADD,
        ORDER_BLEND,
        ORDER_GRAPH,
        ORDER_RECORD,
        ORDER_WAIT
    } kind;
    dt_device_args args; /* KERNEL: in and out point at view */
    dt_device_view view[MAX_VIEWS];
    uint32_t op;
    void *to;
    const void *from;
    size_t bytes;
    dt_device_finish finish;
    dt_device_slice slice[MAX_SLICES]; /* of finish, which points elsewhere */
    dt_device_sums sums;
    dt_device_piece piece[DT_DEVICE_PIECES]; /* of sums */
    dt_device_blend blend;
    struct dt_device_graph *graph;
    struct dt_device_event *event;
    uint64_t ticket; /* of the event */
} order;

typedef struct orders {
    order *at;
    size_t n, cap, next; /* next: the first that has not run */
} orders;

struct dt_device {
    dt_device_info about;
};

struct dt_device_stream {
    orders queue;
    struct dt_device_graph *capturing;
};

struct dt_device_event {
    struct dt_device_stream *stream; /* where it was recorded last */
    uint64_t issued, reached;
};

struct dt_device_graph {
    orders list;
};

static dt_device the_device = {.about = {.major = 1, .n_units = 1, .name = "host memory", .uuid = "GPU-none"}};
static host_device_counts counts;
static uint64_t capacity = UINT64_C(1) << 33;
static uint32_t fail_in, fail_launch_in;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these: virtual ranks share the device */

static void count_one(uint64_t *n)
{
    pthread_mutex_lock(&lock);
    (*n)++;
    pthread_mutex_unlock(&lock);
}

static order *push(orders *q)
{
    if (q->n == q->cap) {
        q->cap = q->cap == 0 ? 64 : 2 * q->cap;
        q->at = realloc(q->at, q->cap * sizeof(*q->at));
    }
    order *o = &q->at[q->n++];
    memset(o, 0, sizeof(*o));
    return o;
}

static order *issue(dt_device_stream *s)
{
    return push(s->capturing != NULL ? &s->capturing->list : &s->queue);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static size_t item_bytes(int32_t dtype)
{
    return dtype == DT_F64 || dtype == DT_I64 ? 8 : dtype == DT_U8 ? 1 : 4;
}

/* One leaf's tensor: as blocks of cap items, of which live ones are packed for the CPU kernel. */
typedef struct leaf_view {
    char *data, *packed;
    size_t outer, live, cap, inner; /* inner: bytes */
} leaf_view;

static leaf_view leaf_of(const dt_device_args *a, const dt_device_view *v, uint32_t leaf, dt_view *out)
{
    leaf_view l = {.outer = 1, .live = 1, .cap = 1, .inner = item_bytes(v->dtype)};
    *out = (dt_view){.rank = v->rank, .dtype = v->dtype, .accum = v->accum};
    memcpy(out->dim, v->dim, sizeof(out->dim));
    for (int32_t i = 0; i < v->rank; i++) {
        if (i == v->ragged) {
            l.live = (size_t)(a->live[leaf * a->n_symbols + (uint32_t)v->symbol] + v->plus);
            l.cap = (size_t)v->dim[i];
            out->dim[i] = (int64_t)l.live;
        } else if (v->ragged >= 0 && i < v->ragged) {
            l.outer *= (size_t)v->dim[i];
        } else {
            l.inner *= (size_t)v->dim[i];
        }
    }
    if (v->data != NULL) {
        l.data = (char *)v->data + (int64_t)leaf * v->leaf_stride * (int64_t)item_bytes(v->dtype);
        l.packed = l.data;
        if (v->ragged >= 0) {
            l.packed = calloc(1, l.outer * l.live * l.inner + 64);
            for (size_t o = 0; o < l.outer; o++) {
                memcpy(l.packed + o * l.live * l.inner, l.data + o * l.cap * l.inner, l.live * l.inner);
            }
        }
    }
    out->data = l.packed;
    return l;
}

static void unpack(const leaf_view *l)
{
    for (size_t o = 0; l->packed != l->data && o < l->outer; o++) {
        char *block = l->data + o * l->cap * l->inner;
        memcpy(block, l->packed + o * l->live * l->inner, l->live * l->inner);
        memset(block + l->live * l->inner, 0, (l->cap - l->live) * l->inner);
    }
}

static void run_leaf(const order *o, uint32_t leaf)
{
    const dt_device_args *a = &o->args;
    dt_view view[MAX_VIEWS];
    leaf_view part[MAX_VIEWS];
    const uint32_t n = a->n_in + a->n_out;
    for (uint32_t i = 0; i < n; i++) {
        part[i] = leaf_of(a, &o->view[i], leaf, &view[i]);
    }
    const size_t bytes = dt_kernel_scratch(o->op, DT_LANE_CPU, a->attr, view, a->n_in, view + a->n_in, a->n_out);
    void *scratch = aligned_alloc(64, (bytes + 127) / 64 * 64);
    const dt_kernel_run run = {
        .seed = a->run->seed, .step = a->run->step, .phase = a->run->phase, .training = a->run->training};
    const dt_kernel_args args = {a->attr, &run, view, view + a->n_in, a->n_in, a->n_out, scratch, NULL};
    dt_kernel_find(o->op, DT_LANE_CPU)(&args);
    for (uint32_t i = 0; i < n; i++) {
        if (i >= a->n_in && part[i].data != NULL) {
            unpack(&part[i]);
        }
        if (part[i].packed != part[i].data) {
            free(part[i].packed);
        }
    }
    free(scratch);
}

static dt_status may_launch(const char *what)
{
    pthread_mutex_lock(&lock);
    const bool is_refused = fail_launch_in > 0 && --fail_launch_in == 0;
    pthread_mutex_unlock(&lock);
    return is_refused ? DT_FAIL(DT_ECUDA, "host memory refuses %s", what) : DT_OK;
}

static dt_status run_kernel(const dt_device_args *a, uint32_t op)
{
    DT_TRY(may_launch("a kernel"));
    order *o = issue(a->stream);
    o->kind = ORDER_KERNEL;
    o->op = op;
    o->args = *a;
    memcpy(o->view, a->in, a->n_in * sizeof(*a->in));
    memcpy(o->view + a->n_in, a->out, a->n_out * sizeof(*a->out));
    count_one(&counts.launches);
    return DT_OK;
}

/* ---- the end of a step ------------------------------------------------------------------------------------------- */

static void begin_now(const dt_device_finish *f)
{
    for (uint32_t i = 0; i < f->n_losses; i++) {
        f->seed[i] = f->control->loss_seed[i] * f->state->loss_scale;
    }
}

/* As the CPU path does it: norms of DT_SLICE_UNIT elements, which are a block. */
static void measure(const dt_device_finish *f, const float *grad, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end;) {
        const int64_t cut = (at / DT_DEVICE_BLOCK + 1) * DT_DEVICE_BLOCK, to = cut < end ? cut : end;
        f->block_sum[at / DT_DEVICE_BLOCK] = dt_optim_sum_squares(grad, at, to);
        at = to;
    }
}

/* As the CPU path does it: leaves begin as zeros. */
static void sum_piece(const dt_device_sums *f, const dt_device_piece *p)
{
    const uint32_t n = f->node.n;
    float *leaf = calloc((size_t)n * (size_t)p->n + 1, sizeof(*leaf));
    for (uint32_t i = 0; i < n; i++) {
        dt_optim_add(leaf + i * p->n, p->from + (f->node.first + i) * p->leaf_stride, 0, p->n);
    }
    for (uint32_t step = 1; step < n; step *= 2) {
        for (uint32_t i = 0; i < n; i += 2 * step) {
            dt_optim_add(leaf + i * p->n, leaf + (i + step) * p->n, 0, p->n);
        }
    }
    float *to = f->slot + f->node.slot * f->total + p->to;
    const float *right = leaf;
    for (uint32_t k = f->node.n_before; k > 0; k--) {
        float *left = to + (k - 1) * f->total;
        dt_optim_add(left, right, 0, p->n);
        right = left;
    }
    if (right != to) {
        memcpy(to, right, (size_t)p->n * sizeof(*to));
    }
    free(leaf);
}

static void measure_now(const dt_device_finish *f)
{
    for (uint32_t k = 0; k < f->n_slices; k++) {
        measure(f, f->grad, f->slice[k].begin, f->slice[k].end);
    }
}

static dt_optim_consts consts_of(const dt_device_finish *f, const dt_device_result *r, uint32_t g)
{
    const dt_device_consts *c = &f->control->consts[g][r->group_updates[g] == f->control->first[g] ? 0 : 1];
    const double clip = f->control->gradient_clip[g], norm = r->group_norm[g];
    double scale = 1.0 / r->loss_scale;
    if (clip > 0 && norm > clip) {
        scale *= clip / (norm + 1e-6);
    }
    return (dt_optim_consts){.grad_scale = (float)scale,
                             .l2 = c->l2,
                             .beta1 = c->beta1,
                             .one_minus_beta1 = c->one_minus_beta1,
                             .beta2 = c->beta2,
                             .one_minus_beta2 = c->one_minus_beta2,
                             .rate = c->rate,
                             .inv_root = c->inv_root,
                             .eps = c->eps,
                             .keep = c->keep};
}

static void update(const dt_device_finish *f, const dt_device_result *r, dt_device_slice s)
{
    for (int64_t i = s.begin; i < s.end;) {
        const int64_t cut = (i / DT_DEVICE_GRANULE + 1) * DT_DEVICE_GRANULE, end = cut < s.end ? cut : s.end;
        const int64_t m = s.moment + i - s.begin;
        const uint8_t mark = f->trained[i / DT_DEVICE_GRANULE];
        const bool is_moved = mark != 0 && (f->groups >> (mark - 1) & 1) != 0;
        const dt_optim_consts k = consts_of(f, r, is_moved ? mark - 1u : 0);
        if (is_moved && f->moment[1] != NULL) {
            dt_optim_loops_base.adam(&k, f->param + i, f->grad + i, f->moment[0] + m, f->moment[1] + m, end - i);
        } else if (is_moved) {
            dt_optim_loops_base.sgd(&k, f->param + i, f->grad + i, f->moment[0] + m, end - i);
        }
        i = end;
    }
}

/* what the device does by itself, in the words of core/amp */
static void rescale(const dt_device_finish *f, bool is_finite)
{
    const dt_device_scaler *k = &f->scaler;
    const dt_scaler_config c = {.kind = k->enabled && k->dynamic ? DT_SCALING_DYNAMIC : DT_SCALING_NONE,
                                .refill = k->refill != 0,
                                .min = k->min,
                                .max = k->max,
                                .growth = k->growth,
                                .backoff = k->backoff,
                                .interval = k->interval,
                                .hysteresis = k->hysteresis};
    dt_scaler s = {.scale = f->state->loss_scale, .good = f->state->good_steps, .tolerance = f->state->tolerance};
    dt_scaler_update(&s, &c, is_finite);
    f->state->loss_scale = s.scale;
    f->state->good_steps = s.good;
    f->state->tolerance = s.tolerance;
}

static void apply_now(const dt_device_finish *f)
{
    dt_device_result r = {.loss_scale = f->state->loss_scale, .bad = -1};
    double sum = 0, of_group[DT_DEVICE_MAX_GROUPS] = {0};
    for (int64_t i = 0; i * DT_DEVICE_BLOCK < f->total; i++) {
        sum += f->block_sum[i];
        of_group[f->block_group != NULL ? f->block_group[i] : 0] += f->block_sum[i];
    }
    r.norm = sqrt(sum) / r.loss_scale;
    r.is_finite = isfinite(sum);
    for (uint32_t g = 0; g < f->n_groups; g++) {
        r.group_norm[g] = sqrt(of_group[g]) / r.loss_scale;
    }
    for (uint32_t i = 0; i < f->n_losses; i++) {
        double leaf[DT_TREE_MAX_LEAVES];
        if (f->loss[i] == NULL) {
            continue;
        }
        memcpy(leaf, f->loss[i], f->loss_leaves * sizeof(double));
        for (uint32_t step = 1; step < f->loss_leaves; step *= 2) {
            for (uint32_t k = 0; k < f->loss_leaves; k += 2 * step) {
                leaf[k] += leaf[k + step];
            }
        }
        r.loss[i] = leaf[0];
        r.is_finite = r.is_finite && isfinite(leaf[0]);
    }
    for (int64_t i = 0; i < f->total && r.bad < 0 && !f->is_part; i++) {
        r.bad = isfinite(f->grad[i]) ? -1 : i;
    }
    r.applied = r.is_finite;
    f->state->updates += r.applied;
    f->state->skipped = r.applied ? 0 : f->state->skipped + 1;
    rescale(f, r.applied);
    r.updates = f->state->updates;
    for (uint32_t g = 0; g < f->n_groups; g++) {
        f->state->group_updates[g] += r.applied ? f->groups >> g & 1 : 0;
        r.group_updates[g] = f->state->group_updates[g];
    }
    r.skipped = f->state->skipped;
    for (uint32_t k = 0; k < f->n_slices && r.applied; k++) {
        update(f, &r, f->slice[k]);
    }
    *f->result = r;
}

static void blend_now(const dt_device_blend *b)
{
    if (b->result->applied && b->result->group_updates[b->group] % b->every == 0) {
        dt_optim_blend(b->to, b->from, (double)b->tau, b->n);
    }
}

/* ---- running queues ---------------------------------------------------------------------------------------------- */

static void run_until(dt_device_stream *s, const dt_device_event *e, uint64_t ticket);

static void run_order(const order *o)
{
    switch (o->kind) {
    case ORDER_KERNEL: {
        order bound = *o; /* the views moved with the list */
        bound.args.in = bound.view;
        bound.args.out = bound.view + o->args.n_in;
        for (uint32_t leaf = 0; leaf < o->args.leaves; leaf++) {
            run_leaf(&bound, leaf);
        }
        break;
    }
    case ORDER_COPY:
        memmove(o->to, o->from, o->bytes);
        break;
    case ORDER_ZERO:
        memset(o->to, 0, o->bytes);
        break;
    case ORDER_BEGIN:
        begin_now(&o->finish);
        break;
    case ORDER_SUM:
        for (uint32_t k = 0; k < o->sums.n_pieces; k++) {
            sum_piece(&o->sums, &o->piece[k]);
        }
        break;
    case ORDER_MEASURE:
    case ORDER_APPLY: {
        dt_device_finish f = o->finish; /* the list moved with the order */
        f.slice = o->slice;
        (o->kind == ORDER_MEASURE ? measure_now : apply_now)(&f);
        break;
    }
    case ORDER_ADD:
        dt_optim_add(o->to, o->from, 0, (int64_t)o->bytes);
        break;
    case ORDER_BLEND:
        blend_now(&o->blend);
        break;
    case ORDER_GRAPH:
        for (size_t i = 0; i < o->graph->list.n; i++) {
            run_order(&o->graph->list.at[i]);
        }
        break;
    case ORDER_RECORD: /* captured: of whichever launch it is */
        o->event->reached = o->ticket > 0 ? o->ticket : o->event->reached + 1;
        break;
    default:
        if (o->event->reached < o->ticket) {
            run_until(o->event->stream, o->event, o->ticket);
        }
        break;
    }
}

/* Runs what is queued until the event is reached; everything when e is NULL. */
static void run_until(dt_device_stream *s, const dt_device_event *e, uint64_t ticket)
{
    while (s->queue.next < s->queue.n && (e == NULL || e->reached < ticket)) {
        const order o = s->queue.at[s->queue.next++];
        run_order(&o);
    }
    if (s->queue.next == s->queue.n) {
        s->queue.next = s->queue.n = 0;
    }
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* HOST_DEVICES: how many there seem to be (1), each with a UUID of its own. */
static uint32_t devices(void)
{
    const char *n = getenv("HOST_DEVICES");
    return n != NULL && atoi(n) > 0 ? (uint32_t)atoi(n) : 1;
}

static dt_status count(uint32_t *n_p)
{
    *n_p = devices();
    return DT_OK;
}

static dt_status describe(uint32_t index, dt_device_info *out_p)
{
    *out_p = the_device.about;
    out_p->index = index;
    out_p->total_bytes = capacity;
    if (index == 0) { /* as fake_nvml.c knows it */
        snprintf(out_p->uuid, sizeof(out_p->uuid), "GPU-none");
    } else {
        snprintf(out_p->uuid, sizeof(out_p->uuid), "GPU-none%u", index);
    }
    return DT_OK;
}

static void versions(dt_device_versions *out_p)
{
    memset(out_p, 0, sizeof(*out_p));
}

static dt_status open_device(uint32_t index, dt_device **out_p)
{
    *out_p = &the_device;
    return describe(index, &the_device.about);
}

static void close_device(dt_device *d)
{
    (void)d;
}

static const dt_device_info *info(const dt_device *d)
{
    return &d->about;
}

static dt_status memory(dt_device *d, uint64_t *free_p, uint64_t *total_p)
{
    (void)d;
    *free_p = capacity > counts.live_bytes ? capacity - counts.live_bytes : 0;
    *total_p = capacity;
    return DT_OK;
}

static dt_status peer(uint32_t from, uint32_t to, uint32_t *can_p)
{
    *can_p = from != to ? 1 : 0;
    return DT_OK;
}

/* Takes so many bytes of what there is. */
static bool has_room(size_t bytes)
{
    pthread_mutex_lock(&lock);
    const bool is_there = !(fail_in > 0 && --fail_in == 0) && counts.live_bytes + bytes <= capacity;
    if (is_there) {
        counts.live_bytes += bytes;
        counts.peak_bytes = counts.live_bytes > counts.peak_bytes ? counts.live_bytes : counts.peak_bytes;
        counts.allocations++;
    }
    pthread_mutex_unlock(&lock);
    return is_there;
}

static dt_status alloc(dt_device *d, size_t bytes, void **device_p)
{
    (void)d;
    if (!has_room(bytes)) {
        return DT_FAIL(DT_ENOMEM, "host memory has no room for %zu bytes more", bytes);
    }
    char *p = aligned_alloc(256, (bytes + 511) / 256 * 256);
    memset(p, 0, (bytes + 511) / 256 * 256);
    memcpy(p, &bytes, sizeof(bytes)); /* its size stands before it */
    *device_p = p + 256;
    return DT_OK;
}

static void release(dt_device *d, void *device)
{
    (void)d;
    if (device != NULL) {
        size_t bytes = 0;
        memcpy(&bytes, (char *)device - 256, sizeof(bytes));
        pthread_mutex_lock(&lock);
        counts.live_bytes -= bytes;
        pthread_mutex_unlock(&lock);
        free((char *)device - 256);
    }
}

static dt_status pin(dt_device *d, size_t bytes, void **host_p)
{
    (void)d;
    *host_p = calloc(1, bytes);
    return *host_p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
}

static void unpin(dt_device *d, void *host)
{
    (void)d;
    free(host);
}

static dt_status stream_create(dt_device *d, dt_device_stream **out_p)
{
    (void)d;
    *out_p = calloc(1, sizeof(**out_p));
    return DT_OK;
}

static void stream_destroy(dt_device *d, dt_device_stream *s)
{
    (void)d;
    if (s != NULL) {
        free(s->queue.at);
        free(s);
    }
}

static dt_status stream_sync(dt_device *d, dt_device_stream *s)
{
    (void)d;
    count_one(&counts.syncs);
    count_one(&counts.drains);
    run_until(s, NULL, 0);
    return DT_OK;
}

static dt_status event_create(dt_device *d, uint32_t timed, dt_device_event **out_p)
{
    (void)d;
    (void)timed;
    *out_p = calloc(1, sizeof(**out_p));
    return DT_OK;
}

static void event_destroy(dt_device *d, dt_device_event *e)
{
    (void)d;
    free(e);
}

static dt_status event_record(dt_device *d, dt_device_event *e, dt_device_stream *s)
{
    (void)d;
    order *o = issue(s);
    o->kind = ORDER_RECORD;
    o->event = e;
    if (s->capturing == NULL) {
        o->ticket = ++e->issued;
        e->stream = s;
    }
    return DT_OK;
}

static dt_status event_wait(dt_device *d, dt_device_event *e, dt_device_stream *s)
{
    (void)d;
    order *o = issue(s);
    o->kind = ORDER_WAIT;
    o->event = e;
    o->ticket = e->issued;
    return DT_OK;
}

static dt_status event_sync(dt_device *d, dt_device_event *e)
{
    (void)d;
    count_one(&counts.syncs);
    if (e->reached < e->issued) {
        run_until(e->stream, e, e->issued);
    }
    if (e->stream == NULL || e->stream->queue.n == 0) {
        count_one(&counts.drains);
    }
    return DT_OK;
}

/* Asking lets the queue go on to there: nothing else would. */
static dt_status event_query(dt_device *d, dt_device_event *e, bool *is_done_p)
{
    *is_done_p = true;
    return event_sync(d, e);
}

static dt_status event_ms(dt_device *d, dt_device_event *from, dt_device_event *to, float *ms_p)
{
    (void)d;
    (void)from;
    (void)to;
    *ms_p = 0;
    return DT_OK;
}

static dt_status copy(dt_device *d, void *to, const void *from, size_t bytes, uint32_t direction, dt_device_stream *s)
{
    (void)d;
    (void)direction;
    order *o = issue(s);
    o->kind = ORDER_COPY;
    o->to = to;
    o->from = from;
    o->bytes = bytes;
    return DT_OK;
}

static dt_status zero(dt_device *d, void *device, size_t bytes, dt_device_stream *s)
{
    (void)d;
    order *o = issue(s);
    o->kind = ORDER_ZERO;
    o->to = device;
    o->bytes = bytes;
    return DT_OK;
}

static dt_status capture_begin(dt_device *d, dt_device_stream *s)
{
    (void)d;
    s->capturing = calloc(1, sizeof(*s->capturing));
    return DT_OK;
}

static dt_status capture_end(dt_device *d, dt_device_stream *s, dt_device_graph **out_p)
{
    (void)d;
    *out_p = s->capturing;
    s->capturing = NULL;
    count_one(&counts.captures);
    return DT_OK;
}

static void graph_destroy(dt_device *d, dt_device_graph *g)
{
    (void)d;
    if (g != NULL) {
        free(g->list.at);
        free(g);
    }
}

static dt_status graph_launch(dt_device *d, dt_device_graph *g, dt_device_stream *s)
{
    (void)d;
    DT_TRY(may_launch("a graph"));
    order *o = issue(s);
    o->kind = ORDER_GRAPH;
    o->graph = g;
    for (size_t i = 0; i < g->list.n; i++) {
        if (g->list.at[i].kind == ORDER_RECORD) {
            g->list.at[i].event->issued++;
            g->list.at[i].event->stream = s;
        }
    }
    count_one(&counts.graph_launches);
    return DT_OK;
}

static uint32_t graph_nodes(const dt_device_graph *g)
{
    return (uint32_t)g->list.n;
}

static dt_status begin(dt_device *d, const dt_device_finish *f, dt_device_stream *s)
{
    (void)d;
    order *o = issue(s);
    o->kind = ORDER_BEGIN;
    o->finish = *f;
    return DT_OK;
}

static dt_status issue_end(const dt_device_finish *f, dt_device_stream *s, int kind)
{
    if (f->n_slices > MAX_SLICES) {
        return DT_FAIL(DT_EINVAL, "%u slices, at most %d are possible", f->n_slices, MAX_SLICES);
    }
    order *o = issue(s);
    o->kind = kind;
    o->finish = *f;
    memcpy(o->slice, f->slice, f->n_slices * sizeof(*f->slice));
    return DT_OK;
}

static dt_status sum(dt_device *d, const dt_device_sums *f, dt_device_stream *s)
{
    (void)d;
    if (f->n_pieces > DT_DEVICE_PIECES) {
        return DT_FAIL(DT_EINVAL, "%u gradients in one sum, at most %d are possible", f->n_pieces, DT_DEVICE_PIECES);
    }
    order *o = issue(s);
    o->kind = ORDER_SUM;
    o->sums = *f;
    memcpy(o->piece, f->piece, f->n_pieces * sizeof(*f->piece));
    return DT_OK;
}

static dt_status measure_slices(dt_device *d, const dt_device_finish *f, dt_device_stream *s)
{
    (void)d;
    return issue_end(f, s, ORDER_MEASURE);
}

static dt_status apply(dt_device *d, const dt_device_finish *f, dt_device_stream *s)
{
    (void)d;
    return issue_end(f, s, ORDER_APPLY);
}

static dt_status add(dt_device *d, float *to, const float *from, int64_t n, dt_device_stream *s)
{
    (void)d;
    order *o = issue(s);
    o->kind = ORDER_ADD;
    o->to = to;
    o->from = from;
    o->bytes = (size_t)n; /* elements */
    return DT_OK;
}

static dt_status blend(dt_device *d, const dt_device_blend *b, dt_device_stream *s)
{
    (void)d;
    order *o = issue(s);
    o->kind = ORDER_BLEND;
    o->blend = *b;
    return DT_OK;
}

/* One launcher per op, because a kernel is not told which op it is. */
#define DT_OP(ID, number, name)                                                                                        \
    static dt_status launch_##name(const dt_device_args *a)                                                            \
    {                                                                                                                  \
        return run_kernel(a, number);                                                                                  \
    }
#include "backend/ops.def"
#undef DT_OP

static const dt_device_kernel *kernel(uint32_t op)
{
    static const dt_device_kernel rows[] = {
#define DT_OP(ID, number, name) {number, 0, #name, launch_##name, NULL, NULL, NULL},
#include "backend/ops.def"
#undef DT_OP
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op && dt_kernel_find(op, DT_LANE_CPU) != NULL) {
            return &rows[i];
        }
    }
    return NULL;
}

const dt_device_ops *host_device_ops(void)
{
    static const dt_device_ops ops = {.struct_size = sizeof(ops),
                                      .version = DT_DEVICE_VERSION,
                                      .name = "host",
                                      .count = count,
                                      .describe = describe,
                                      .versions = versions,
                                      .open = open_device,
                                      .close = close_device,
                                      .info = info,
                                      .memory = memory,
                                      .peer = peer,
                                      .alloc = alloc,
                                      .release = release,
                                      .pin = pin,
                                      .unpin = unpin,
                                      .stream_create = stream_create,
                                      .stream_destroy = stream_destroy,
                                      .stream_sync = stream_sync,
                                      .event_create = event_create,
                                      .event_destroy = event_destroy,
                                      .event_record = event_record,
                                      .event_wait = event_wait,
                                      .event_sync = event_sync,
                                      .event_query = event_query,
                                      .event_ms = event_ms,
                                      .copy = copy,
                                      .zero = zero,
                                      .capture_begin = capture_begin,
                                      .capture_end = capture_end,
                                      .graph_destroy = graph_destroy,
                                      .graph_launch = graph_launch,
                                      .graph_nodes = graph_nodes,
                                      .kernel = kernel,
                                      .begin = begin,
                                      .sum = sum,
                                      .measure = measure_slices,
                                      .apply = apply,
                                      .add = add,
                                      .blend = blend};
    return &ops;
}

dt_device *host_device(void)
{
    return &the_device;
}

host_device_counts host_device_read(void)
{
    return counts;
}

void host_device_reset(uint64_t capacity_bytes)
{
    const uint64_t live = counts.live_bytes;
    counts = (host_device_counts){.live_bytes = live, .peak_bytes = live};
    capacity = capacity_bytes;
}

void host_device_fail_alloc(uint32_t n)
{
    fail_in = n;
}

void host_device_fail_launch(uint32_t n)
{
    fail_launch_in = n;
}
