/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/device/host_device.h"

#include "engine/amp/scaler.h"
#include "engine/backend/kernel.h"
#include "base/err.h"
#include "comm/tree_sum.h"
#include "engine/optim/loops.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SLICES = 64 };

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
    dt_device_view view[HOST_MAX_VIEWS];
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

static dt_status issue(dt_device_stream *s, const order *o)
{
    orders *q = s->capturing != NULL ? &s->capturing->list : &s->queue;
    if (q->n == q->cap) {
        q->cap = q->cap == 0 ? 64 : 2 * q->cap;
        q->at = realloc(q->at, q->cap * sizeof(*q->at));
    }
    q->at[q->n++] = *o;
    return DT_OK;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

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
    order o = {.kind = ORDER_KERNEL, .op = op, .args = *a};
    memcpy(o.view, a->in, a->n_in * sizeof(*a->in));
    memcpy(o.view + a->n_in, a->out, a->n_out * sizeof(*a->out));
    count_one(&counts.launches);
    return issue(a->stream, &o);
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
            host_run_leaf(&bound.args, bound.op, leaf);
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
        host_begin(&o->finish);
        break;
    case ORDER_SUM:
        for (uint32_t k = 0; k < o->sums.n_pieces; k++) {
            host_sum_piece(&o->sums, &o->piece[k]);
        }
        break;
    case ORDER_MEASURE:
    case ORDER_APPLY: {
        dt_device_finish f = o->finish; /* the list moved with the order */
        f.slice = o->slice;
        (o->kind == ORDER_MEASURE ? host_measure : host_apply)(&f);
        break;
    }
    case ORDER_ADD:
        dt_optim_add(o->to, o->from, 0, (int64_t)o->bytes);
        break;
    case ORDER_BLEND:
        host_blend(&o->blend);
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

static void close_device(dt_device *d) {}

static const dt_device_info *info(const dt_device *d)
{
    return &d->about;
}

static dt_status memory(dt_device *d, uint64_t *free_p, uint64_t *total_p)
{
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
    *host_p = calloc(1, bytes);
    return *host_p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
}

static void unpin(dt_device *d, void *host)
{
    free(host);
}

static dt_status stream_create(dt_device *d, dt_device_stream **out_p)
{
    *out_p = calloc(1, sizeof(**out_p));
    return DT_OK;
}

static void stream_destroy(dt_device *d, dt_device_stream *s)
{
    if (s != NULL) {
        free(s->queue.at);
        free(s);
    }
}

static dt_status stream_sync(dt_device *d, dt_device_stream *s)
{
    count_one(&counts.syncs);
    count_one(&counts.drains);
    run_until(s, NULL, 0);
    return DT_OK;
}

static dt_status event_create(dt_device *d, uint32_t timed, dt_device_event **out_p)
{
    *out_p = calloc(1, sizeof(**out_p));
    return DT_OK;
}

static void event_destroy(dt_device *d, dt_device_event *e)
{
    free(e);
}

static dt_status event_record(dt_device *d, dt_device_event *e, dt_device_stream *s)
{
    order o = {.kind = ORDER_RECORD, .event = e};
    if (s->capturing == NULL) {
        o.ticket = ++e->issued;
        e->stream = s;
    }
    return issue(s, &o);
}

static dt_status event_wait(dt_device *d, dt_device_event *e, dt_device_stream *s)
{
    return issue(s, &(order){.kind = ORDER_WAIT, .event = e, .ticket = e->issued});
}

static dt_status event_sync(dt_device *d, dt_device_event *e)
{
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
    *ms_p = 0;
    return DT_OK;
}

static dt_status copy(dt_device *d, void *to, const void *from, size_t bytes, uint32_t direction, dt_device_stream *s)
{
    return issue(s, &(order){.kind = ORDER_COPY, .to = to, .from = from, .bytes = bytes});
}

static dt_status zero(dt_device *d, void *device, size_t bytes, dt_device_stream *s)
{
    return issue(s, &(order){.kind = ORDER_ZERO, .to = device, .bytes = bytes});
}

static dt_status capture_begin(dt_device *d, dt_device_stream *s)
{
    s->capturing = calloc(1, sizeof(*s->capturing));
    return DT_OK;
}

static dt_status capture_end(dt_device *d, dt_device_stream *s, dt_device_graph **out_p)
{
    *out_p = s->capturing;
    s->capturing = NULL;
    count_one(&counts.captures);
    return DT_OK;
}

static void graph_destroy(dt_device *d, dt_device_graph *g)
{
    if (g != NULL) {
        free(g->list.at);
        free(g);
    }
}

static dt_status graph_launch(dt_device *d, dt_device_graph *g, dt_device_stream *s)
{
    DT_TRY(may_launch("a graph"));
    for (size_t i = 0; i < g->list.n; i++) {
        if (g->list.at[i].kind == ORDER_RECORD) {
            g->list.at[i].event->issued++;
            g->list.at[i].event->stream = s;
        }
    }
    count_one(&counts.graph_launches);
    return issue(s, &(order){.kind = ORDER_GRAPH, .graph = g});
}

static uint32_t graph_nodes(const dt_device_graph *g)
{
    return (uint32_t)g->list.n;
}

static dt_status begin(dt_device *d, const dt_device_finish *f, dt_device_stream *s)
{
    return issue(s, &(order){.kind = ORDER_BEGIN, .finish = *f});
}

static dt_status issue_end(const dt_device_finish *f, dt_device_stream *s, int kind)
{
    if (f->n_slices > MAX_SLICES) {
        return DT_FAIL(DT_EINVAL, "%u slices, at most %d are possible", f->n_slices, MAX_SLICES);
    }
    order o = {.kind = kind, .finish = *f};
    memcpy(o.slice, f->slice, f->n_slices * sizeof(*f->slice));
    return issue(s, &o);
}

static dt_status sum(dt_device *d, const dt_device_sums *f, dt_device_stream *s)
{
    if (f->n_pieces > DT_DEVICE_PIECES) {
        return DT_FAIL(DT_EINVAL, "%u gradients in one sum, at most %d are possible", f->n_pieces, DT_DEVICE_PIECES);
    }
    order o = {.kind = ORDER_SUM, .sums = *f};
    memcpy(o.piece, f->piece, f->n_pieces * sizeof(*f->piece));
    return issue(s, &o);
}

static dt_status measure_slices(dt_device *d, const dt_device_finish *f, dt_device_stream *s)
{
    return issue_end(f, s, ORDER_MEASURE);
}

static dt_status apply(dt_device *d, const dt_device_finish *f, dt_device_stream *s)
{
    return issue_end(f, s, ORDER_APPLY);
}

static dt_status add(dt_device *d, float *to, const float *from, int64_t n, dt_device_stream *s)
{
    return issue(s, &(order){.kind = ORDER_ADD, .to = to, .from = from, .bytes = (size_t)n /* elements */});
}

static dt_status blend(dt_device *d, const dt_device_blend *b, dt_device_stream *s)
{
    return issue(s, &(order){.kind = ORDER_BLEND, .blend = *b});
}

/* One launcher per op, because a kernel does not know which op it is. */
#define DT_OP(ID, number, name)                                                                                        \
    static dt_status launch_##name(const dt_device_args *a)                                                            \
    {                                                                                                                  \
        return run_kernel(a, number);                                                                                  \
    }
#include "engine/backend/ops.def"

static const dt_device_kernel *kernel(uint32_t op)
{
    static const dt_device_kernel rows[] = {
#define DT_OP(ID, number, name) {number, 0, #name, launch_##name, NULL, NULL, NULL},
#include "engine/backend/ops.def"
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op && dt_kernel_find(op, DT_KERNELS_CPU) != NULL) {
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

/* As a module under CUDA's name (backend_cuda.la), so that whole runs take the device path on a machine without a GPU:
 * its folder is on DTRAIN_PLUGIN_PATH, with --device cuda. */
const dt_device_ops *dt_device_module(const dt_device_host *host);

DT_EXPORT const dt_device_ops *dt_device_module(const dt_device_host *host)
{
    return host_device_ops();
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
