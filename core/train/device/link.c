/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "train/device/link.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "comm/nccl/nccl.h"
#include "engine/device/memory.h"

#include <string.h>
#include <time.h>

typedef struct part { /* a node on the way up: its numbers over this rank's slice */
    uint32_t height, index;
    float *value;
} part;

struct dt_device_link {
    const dt_device_transport_ops *ops;
    dt_device_transport *transport;
    dt_device_stream *stream;
    dt_device_event *begun, *ended, *done; /* of the device's work; of a stream's; of all */
    dt_device_event **ready;               /* [buckets] */
    uint32_t n_ready;
    uint32_t n_most, n_nodes; /* nodes of a rank at most, of all ranks */
    uint32_t *first;          /* [ranks + 1] each rank's among all */
    dt_tree_node *node;       /* [n_nodes] left to right */
    part *parts;              /* [n_nodes] */
    dt_comm_out *out;         /* [n_most, ranks] */
    dt_comm_in *in;           /* [n_most, ranks] */
    int64_t *at;              /* [ranks + 1] the slices of a bucket */
    float *theirs;            /* device: slices of nodes that come in */
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static dt_status list_tree_nodes(const dt_trainer *t, dt_device_link *w)
{
    const uint32_t ranks = t->shape.ranks;
    dt_tree_node cover[DT_TREE_MAX_NODES];
    w->n_most = dt_tree_max_nodes(&t->shape);
    const size_t lists = (size_t)w->n_most * ranks;
    w->first = dt_alloc_n(ranks + (size_t)1, sizeof(*w->first));
    w->node = dt_alloc_n(lists, sizeof(*w->node));
    w->parts = dt_alloc_n(lists, sizeof(*w->parts));
    w->out = dt_alloc_n(lists, sizeof(*w->out));
    w->in = dt_alloc_n(lists, sizeof(*w->in));
    w->at = dt_alloc_n(ranks + (size_t)1, sizeof(*w->at));
    if (w->first == NULL || w->node == NULL || w->parts == NULL || w->out == NULL || w->in == NULL || w->at == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for sums over %u ranks", ranks);
    }
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t n = dt_tree_list_cover(&t->shape, r, cover);
        memcpy(w->node + w->n_nodes, cover, n * sizeof(*cover));
        w->first[r] = w->n_nodes;
        w->n_nodes += n;
    }
    w->first[ranks] = w->n_nodes;
    return DT_OK;
}

/* Room for this rank's longest slice of every other rank's nodes. */
static dt_status allocate_receive_buffer(dt_trainer *t, dt_device_link *w)
{
    const dt_train_device *d = t->device;
    size_t longest = 1, bytes = 0;
    for (uint32_t b = 0; b < d->n_slices; b++) {
        const size_t n = (size_t)(d->slice[b].end - d->slice[b].begin);
        longest = n > longest ? n : longest;
    }
    if (!dt_mul_size(longest * sizeof(float), t->c.fast_sums ? 1 : w->n_nodes - d->n_nodes + 1, &bytes)) {
        return DT_FAIL(DT_ENOMEM, "shards of %u nodes do not fit in memory", w->n_nodes);
    }
    DT_TRY(dt_device_allocate(d->ops, d->device, bytes, &w->theirs));
    DT_TRY(d->ops->stream_create(d->device, &w->stream));
    DT_TRY(d->ops->event_create(d->device, 0, &w->begun));
    DT_TRY(d->ops->event_create(d->device, 0, &w->ended));
    return d->ops->event_create(d->device, 0, &w->done);
}

static dt_status create_events(const dt_trainer *t, dt_device_link *w)
{
    const dt_train_device *d = t->device;
    w->ready = dt_alloc_n(t->reduce.n_buckets + (size_t)1, sizeof(dt_device_event *));
    if (w->ready == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for buckets of gradients");
    }
    for (; w->n_ready < t->reduce.n_buckets; w->n_ready++) {
        DT_TRY(d->ops->event_create(d->device, 0, &w->ready[w->n_ready]));
    }
    return DT_OK;
}

static dt_status allocate_parts(dt_trainer *t, dt_device_link *w)
{
    if (w == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for NCCL");
    }
    DT_TRY(list_tree_nodes(t, w));
    DT_TRY(create_events(t, w));
    return allocate_receive_buffer(t, w);
}

static dt_status connect_link(dt_trainer *t, dt_device_link *w)
{
    const dt_train_device *d = t->device;
    DT_TRY(dt_comm_agree(t->d.comm, allocate_parts(t, w)));
    DT_TRY(w->ops->create(t->d.comm, &w->transport));
    DT_TRY(w->ops->register_buffer(w->transport, d->grad, (size_t)d->total * d->slots * sizeof(float)));
    return w->ops->register_buffer(w->transport, d->params, (size_t)d->total * sizeof(float));
}

dt_status dt_device_link_create(dt_trainer *t, dt_device_link **out_p)
{
    const dt_device_transport_ops *ops = &dt_nccl_transport;
    bool is_available = false;
    uint32_t version = 0;
    if (t->c.nccl != DT_TRAIN_NCCL_NEVER) {
        DT_TRY(
            dt_device_transport_negotiate(ops, t->d.comm, t->c.nccl == DT_TRAIN_NCCL_ALWAYS, &is_available, &version));
    }
    if (!is_available) {
        *out_p = NULL;
        return DT_OK;
    }
    dt_device_link *w = dt_alloc(sizeof(*w));
    if (w != NULL) {
        w->ops = ops;
    }
    const dt_status st = connect_link(t, w);
    if (st < 0) {
        dt_device_link_destroy(t, w);
        return st;
    }
    if (dt_comm_rank(t->d.comm) == 0) {
        dt_log(DT_LOG_INFO, "gradients go from GPU to GPU by %s %u.%u.%u", ops->name, version / 10000,
               version / 100 % 100, version % 100);
    }
    *out_p = w;
    return DT_OK;
}

void dt_device_link_destroy(dt_trainer *t, dt_device_link *w)
{
    const dt_train_device *d = t->device;
    if (w == NULL) {
        return;
    }
    w->ops->destroy(w->transport); /* first: what it has in the stream ends */
    if (w->stream != NULL) {
        (void)d->ops->stream_sync(d->device, w->stream);
    }
    dt_device_free(d->ops, d->device, w->theirs);
    d->ops->event_destroy(d->device, w->begun);
    d->ops->event_destroy(d->device, w->ended);
    d->ops->event_destroy(d->device, w->done);
    for (uint32_t b = 0; b < w->n_ready; b++) {
        d->ops->event_destroy(d->device, w->ready[b]);
    }
    dt_free(w->ready);
    d->ops->stream_destroy(d->device, w->stream);
    dt_free(w->first);
    dt_free(w->node);
    dt_free(w->parts);
    dt_free(w->out);
    dt_free(w->in);
    dt_free(w->at);
    dt_free(w);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* `later` continues when `earlier` has completed what was queued by now. */
static dt_status order_streams(const dt_train_device *d, dt_device_event *e, dt_device_stream *earlier,
                               dt_device_stream *later)
{
    DT_TRY(d->ops->event_record(d->device, e, earlier));
    return d->ops->event_wait(d->device, e, later);
}

dt_status dt_device_link_wait(dt_trainer *t, dt_device_link *w)
{
    const dt_train_device *d = t->device;
    const struct timespec nap = {.tv_nsec = 20000};
    const double begin = dt_clock_s();
    bool is_done = false;
    DT_TRACE("device", "wait for others");
    DT_TRY(d->ops->event_record(d->device, w->done, d->compute));
    for (;;) {
        DT_TRY(d->ops->event_query(d->device, w->done, &is_done));
        if (is_done) {
            return DT_OK;
        }
        DT_TRY(w->ops->poll(w->transport, begin));
        if (dt_clock_s() - begin > 2e-3) { /* most waits are short */
            nanosleep(&nap, NULL);
        }
    }
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static float *own_node_at(const dt_train_device *d, uint32_t k)
{
    return d->grad + k * d->total;
}

static size_t bytes_of_range(dt_range r)
{
    return (size_t)(r.end - r.begin) * sizeof(float);
}

/* What goes out and comes in of a bucket: each other rank's slice of this one's nodes, this one's of all others'. */
static void list_slices(const dt_trainer *t, dt_device_link *w, dt_range bucket)
{
    const dt_train_device *d = t->device;
    const uint32_t ranks = t->shape.ranks, me = t->shape.rank;
    const dt_range own = dt_rank_slice(bucket, ranks, me);
    float *come = w->theirs;
    for (uint32_t r = 0; r < ranks; r++) {
        const dt_range theirs = dt_rank_slice(bucket, ranks, r);
        for (uint32_t k = 0; k < w->n_most; k++) {
            const bool has_it = w->first[r] + k < w->first[r + 1];
            const size_t i = (size_t)k * ranks + r;
            w->out[i] = (dt_comm_out){0};
            w->in[i] = (dt_comm_in){0};
            if (r != me && k < d->n_nodes) {
                w->out[i] = (dt_comm_out){own_node_at(d, k) + theirs.begin, bytes_of_range(theirs)};
            }
            if (has_it) {
                const dt_tree_node *node = &w->node[w->first[r] + k];
                w->parts[w->first[r] + k] =
                    (part){node->height, node->index, r == me ? own_node_at(d, k) + own.begin : come};
            }
            if (has_it && r != me) {
                w->in[i] = (dt_comm_in){come, bytes_of_range(own)};
                come += own.end - own.begin;
            }
        }
    }
}

/* As dt_tree_sum_finish: nodes left to right, siblings are added as they meet. */
static dt_status add_node_parts(const dt_train_device *d, dt_device_link *w, dt_range own)
{
    const int64_t n = own.end - own.begin;
    part *parts = w->parts;
    uint32_t top = 0;
    for (uint32_t k = 0; k < w->n_nodes; k++) {
        parts[top++] = parts[k];
        while (top > 1 && parts[top - 2].height == parts[top - 1].height && (parts[top - 2].index & 1) == 0) {
            DT_TRY(d->ops->add(d->device, parts[top - 2].value, parts[top - 1].value, n, w->stream));
            top--;
            parts[top - 1].height++;
            parts[top - 1].index /= 2;
        }
    }
    float *mine = own_node_at(d, 0) + own.begin;
    return parts[0].value == mine
               ? DT_OK
               : d->ops->copy(d->device, mine, parts[0].value, bytes_of_range(own), DT_DEVICE_WITHIN, w->stream);
}

static void list_bounds(const dt_trainer *t, dt_device_link *w, dt_range bucket)
{
    for (uint32_t r = 0; r < t->shape.ranks; r++) {
        w->at[r] = dt_rank_slice(bucket, t->shape.ranks, r).begin;
    }
    w->at[t->shape.ranks] = bucket.end;
}

static dt_status sum_fast(dt_trainer *t, dt_device_link *w, dt_range bucket)
{
    const dt_train_device *d = t->device;
    for (uint32_t k = 1; k < d->n_nodes; k++) {
        DT_TRY(d->ops->add(d->device, own_node_at(d, 0) + bucket.begin, own_node_at(d, k) + bucket.begin,
                           bucket.end - bucket.begin, w->stream));
    }
    list_bounds(t, w, bucket);
    return w->ops->reduce_scatter(w->transport, own_node_at(d, 0), w->at, w->stream);
}

static dt_status sum_exact(dt_trainer *t, dt_device_link *w, dt_range bucket)
{
    const dt_range own = dt_rank_slice(bucket, t->shape.ranks, t->shape.rank);
    list_slices(t, w, bucket);
    DT_TRY(w->ops->all_to_all(w->transport, w->out, w->in, w->n_most, w->stream));
    return own.end > own.begin ? add_node_parts(t->device, w, own) : DT_OK;
}

dt_status dt_device_link_mark_ready(const dt_trainer *t, const dt_device_link *w, uint32_t bucket)
{
    const dt_train_device *d = t->device;
    return d->ops->event_record(d->device, w->ready[bucket], d->compute);
}

static bool is_in_groups(const dt_trainer *t, uint32_t bucket, uint32_t groups)
{
    return (groups >> t->reduce.group[bucket] & 1) != 0;
}

/* Buckets in the order in which backward ends with them.
 * Where the step is a captured graph, ready[b] is recorded by a node of it, a use which CUDA documents: recorded with
 * cudaEventRecordExternal during capture, an event becomes an event record node, "each launch of the graph will record
 * event" (cudaGraphAddEventRecordNode), and a wait outside the graph takes what was recorded last when it is asked for
 * (cudaEventRecord). So the order of the host's calls counts, and it is kept: the graph is launched before this is
 * called, and the next launch comes after w->stream was waited for. Waiting before the launch would be for the step
 * before, or for nothing.
 */
dt_status dt_device_link_sum_buckets(dt_trainer *t, dt_device_link *w, uint32_t groups)
{
    const dt_train_device *d = t->device;
    for (uint32_t n = 0; n < t->reduce.n_buckets; n++) {
        const uint32_t b = t->reduce.order[n];
        if (!is_in_groups(t, b, groups)) {
            continue;
        }
        DT_TRY(d->ops->event_wait(d->device, w->ready[b], w->stream));
        DT_TRY(t->c.fast_sums ? sum_fast(t, w, t->reduce.bucket[b]) : sum_exact(t, w, t->reduce.bucket[b]));
    }
    return order_streams(d, w->ended, w->stream, d->compute);
}

dt_status dt_device_link_share_params(dt_trainer *t, dt_device_link *w, uint32_t groups)
{
    const dt_train_device *d = t->device;
    DT_TRY(order_streams(d, w->begun, d->compute, w->stream));
    for (uint32_t b = 0; b < t->reduce.n_buckets; b++) {
        if (!is_in_groups(t, b, groups)) {
            continue;
        }
        list_bounds(t, w, t->reduce.bucket[b]);
        DT_TRY(w->ops->all_gather(w->transport, d->params, w->at, w->stream));
    }
    return order_streams(d, w->ended, w->stream, d->compute);
}
