/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a step where several ranks have a device each. The sums of this rank's nodes come to the host and are
 * summed with those of others as a CPU's are (reduce.c), and this rank's slices of the sum go back to the device; or
 * all of that happens between devices (link.h). The device measures its slices; every rank gets the sums of squares of
 * all blocks and the losses of all shards, decides alike, and updates its slices; their parameters take the same way to
 * all. See device.h.
 */
#include <config.h>

#include "train/device/link.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"
#include "engine/device/memory.h"

#include <math.h>
#include <string.h>

_Static_assert((int)DT_DEVICE_BLOCK == (int)DT_SLICE_UNIT, "what a rank owns is whole blocks");
_Static_assert((int)DT_DEVICE_MAX_LOSSES >= (int)DT_GRAPH_MAX_LOSSES, "there is room for all losses");

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int64_t count_blocks(const dt_train_device *d)
{
    return (d->total + DT_DEVICE_BLOCK - 1) / DT_DEVICE_BLOCK;
}

static dt_status allocate_pinned(const dt_train_device *d, size_t bytes, void *out_p)
{
    return dt_device_pin(d->ops, d->device, bytes, out_p);
}

dt_status dt_device_ranks_create(dt_trainer *t, dt_train_device *d)
{
    dt_device_ranks *r = dt_alloc(sizeof(*r));
    if (r == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    d->ranks = r;
    r->node = dt_alloc_n(d->n_nodes, sizeof(*r->node));
    if (r->node == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    for (uint32_t k = 0; k < d->n_nodes; k++) {
        DT_TRY(allocate_pinned(d, (size_t)d->total * sizeof(float), &r->node[k].data));
    }
    DT_TRY(allocate_pinned(d, (size_t)d->total * sizeof(float), &r->params));
    DT_TRY(allocate_pinned(d, DT_DEVICE_MAX_LOSSES * d->shards * sizeof(double), &r->loss));
    DT_TRY(allocate_pinned(d, (size_t)(count_blocks(d) + 1) * sizeof(double), &r->block_sum));
    DT_TRY(allocate_pinned(d, DT_DEVICE_MAX_LOSSES * sizeof(double), &r->total));
    return dt_device_allocate(d->ops, d->device, DT_DEVICE_MAX_LOSSES * sizeof(double), &r->device_total);
}

dt_status dt_device_ranks_connect(dt_trainer *t)
{
    dt_device_ranks *r = t->device->ranks;
    if (r->is_negotiated) {
        return DT_OK;
    }
    DT_TRY(dt_device_link_create(t, &r->link));
    r->is_negotiated = true;
    return DT_OK;
}

void dt_device_ranks_disconnect(dt_trainer *t, dt_train_device *d)
{
    if (d->ranks != NULL) {
        dt_device_link_destroy(t, d->ranks->link);
        d->ranks->link = NULL;
    }
}

void dt_device_ranks_destroy(dt_train_device *d)
{
    dt_device_ranks *r = d->ranks;
    if (r == NULL) {
        return;
    }
    for (uint32_t k = 0; r->node != NULL && k < d->n_nodes; k++) {
        d->ops->unpin(d->device, r->node[k].data);
    }
    d->ops->unpin(d->device, r->params);
    d->ops->unpin(d->device, r->loss);
    d->ops->unpin(d->device, r->block_sum);
    d->ops->unpin(d->device, r->total);
    dt_device_free(d->ops, d->device, r->device_total);
    dt_free(r->node);
    dt_free(r);
    d->ranks = NULL;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

dt_status dt_device_ranks_mark_ready(const dt_trainer *t, int64_t call, uint32_t *n_p)
{
    const dt_reduction *r = &t->reduce;
    struct dt_device_link *w = t->device->ranks->link;
    for (; w != NULL && *n_p < r->n_buckets && r->last[r->order[*n_p]] <= call; (*n_p)++) {
        DT_TRY(dt_device_link_mark_ready(t, w, r->order[*n_p]));
    }
    return DT_OK;
}

dt_status dt_device_ranks_download(const dt_train_device *d, const dt_device_finish *f)
{
    const dt_device_ranks *r = d->ranks;
    for (uint32_t k = 0; k < d->n_nodes && r->link == NULL; k++) {
        DT_TRY(dt_device_copy_out(d, r->node[k].data, d->grad + k * d->total, (size_t)d->total * sizeof(float)));
    }
    for (uint32_t i = 0; i < f->n_losses; i++) {
        DT_TRY(dt_device_copy_out(d, r->loss + (size_t)i * d->shards, d->loss[i], d->shards * sizeof(double)));
    }
    return DT_OK;
}

/* This rank's slices of a vector, from the host or to it. */
static dt_status copy_slices(const dt_train_device *d, float *there, float *here, bool is_to_host)
{
    for (uint32_t k = 0; k < d->n_slices; k++) {
        const dt_device_slice *s = &d->slice[k];
        const size_t bytes = (size_t)(s->end - s->begin) * sizeof(float);
        DT_TRY(is_to_host ? dt_device_copy_out(d, here + s->begin, there + s->begin, bytes)
                          : dt_device_copy_in(d, there + s->begin, here + s->begin, bytes));
    }
    return DT_OK;
}

/* ---- the sum ----------------------------------------------------------------------------------------------------- */

static dt_status insert_nodes(dt_trainer *t)
{
    dt_train_device *d = t->device;
    DT_TRACE("device", "wait for gradients");
    DT_TRY(d->ops->stream_sync(d->device, d->compute));
    for (uint32_t i = 0; i < t->reduce.n_due; i++) {
        const uint32_t b = t->reduce.due[i];
        for (uint32_t k = 0; k < d->n_nodes; k++) {
            dt_tree_node node = d->cover[k];
            dt_tree_merge unused; /* they are the fewest that cover the shards: no two of them are siblings */
            node.value = &d->ranks->node[k];
            (void)dt_tree_insert(t->tree, b, &node, &unused);
        }
    }
    return DT_OK;
}

/* Of what these groups update. */
static dt_status reduce_on_hosts(dt_trainer *t, dt_status mine, uint32_t groups)
{
    DT_TRY(dt_grads_reset(t, false, DT_HALF_NONE, groups)); /* with no buffers to make it cannot fail */
    return dt_reduce_over_ranks(t, mine == DT_OK ? insert_nodes(t) : mine);
}

/* Nothing is queued for others before all know that all will. */
static dt_status reduce_on_devices(dt_trainer *t, dt_status mine, uint32_t groups)
{
    DT_TRY(dt_comm_agree(t->d.comm, mine));
    return dt_device_link_sum_buckets(t, t->device->ranks->link, groups);
}

/* Until the device has done what it was asked for. */
static dt_status wait_for_device(dt_trainer *t)
{
    const dt_train_device *d = t->device;
    return d->ranks->link != NULL ? dt_device_link_wait(t, d->ranks->link) : d->ops->stream_sync(d->device, d->compute);
}

/* ---- the norm ---------------------------------------------------------------------------------------------------- */

/* A bucket's blocks, or this rank's of them: where they are among all of the arena, and among those of buckets. */
static size_t locate_blocks(const dt_trainer *t, uint32_t b, int64_t begin, int64_t end, int64_t *block_p,
                            int64_t *unit_p)
{
    *block_p = begin / DT_DEVICE_BLOCK;
    *unit_p = t->reduce.unit[b] + *block_p - t->reduce.bucket[b].begin / DT_DEVICE_BLOCK;
    return end > begin ? (size_t)((end + DT_DEVICE_BLOCK - 1) / DT_DEVICE_BLOCK - *block_p) : 0;
}

/* Sums of squares of all blocks, on the host; outside of buckets they are zero. */
static dt_status measure_and_share(dt_trainer *t, const dt_device_finish *f, bool *is_finite_p)
{
    dt_train_device *d = t->device;
    dt_reduction *r = &t->reduce;
    double *sum = d->ranks->block_sum;
    int64_t block = 0, unit = 0;
    const size_t bytes = (size_t)count_blocks(d) * sizeof(double);
    DT_TRY(d->ranks->link != NULL ? DT_OK : copy_slices(d, d->grad, d->ranks->node[0].data, false));
    DT_TRY(d->ops->measure(d->device, f, d->compute));
    DT_TRY(dt_device_copy_out(d, sum, d->block_sum, bytes));
    DT_TRY(wait_for_device(t));
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        const size_t n = locate_blocks(t, b, d->slice[b].begin, d->slice[b].end, &block, &unit);
        memcpy(r->unit_sum + unit, sum + block, n * sizeof(*sum));
    }
    DT_TRY(dt_all_gather_square_sums(t));
    memset(sum, 0, bytes);
    *is_finite_p = true;
    for (uint32_t b = 0; b < r->n_buckets; b++) {
        const size_t n = locate_blocks(t, b, r->bucket[b].begin, r->bucket[b].end, &block, &unit);
        memcpy(sum + block, r->unit_sum + unit, n * sizeof(*sum));
    }
    for (uint32_t i = 0; i < r->n_units; i++) {
        *is_finite_p = *is_finite_p && isfinite(r->unit_sum[i]);
    }
    return dt_device_copy_in(d, d->block_sum, sum, bytes);
}

/* Sums between devices are fetched to the host only now. */
static dt_status find_not_finite(dt_trainer *t, int64_t *bad_p)
{
    const dt_train_device *d = t->device;
    if (d->ranks->link != NULL) {
        t->scratch.gradient = d->ranks->node[0].data;
        DT_TRY(copy_slices(d, d->grad, t->scratch.gradient, true));
        DT_TRY(wait_for_device(t));
    }
    return dt_find_first_not_finite(t, bad_p);
}

static dt_status reduce_losses(dt_trainer *t, uint32_t n)
{
    const dt_train_device *d = t->device;
    for (uint32_t l = 0; l < d->shards; l++) {
        for (uint32_t i = 0; i < n; i++) {
            t->scratch.shard_loss[l][i] = d->ranks->loss[(size_t)i * d->shards + l];
        }
    }
    DT_TRY(dt_reduce_losses(t, n, d->ranks->total));
    return dt_device_copy_in(d, d->ranks->device_total, d->ranks->total, n * sizeof(double));
}

/* ---- the update -------------------------------------------------------------------------------------------------- */

/* It waits here, where failures of others are noticed: a thread that waits for the stream from now on does not wait
 * forever. */
static dt_status all_gather_by_link(dt_trainer *t, uint32_t groups)
{
    DT_TRY(dt_device_link_share_params(t, t->device->ranks->link, groups));
    return wait_for_device(t);
}

static dt_status all_gather_params(dt_trainer *t, const dt_device_finish *f)
{
    const dt_train_device *d = t->device;
    const bool is_linked = d->ranks->link != NULL;
    const float *params = d->ranks->params;
    const double begin = dt_clock_s();
    DT_TRY(is_linked ? all_gather_by_link(t, f->groups) : dt_reduce_all_gather(t, d->ranks->params, false));
    t->times.share = dt_clock_s() - begin;
    for (uint32_t i = 0; i < t->reduce.n_due && !is_linked; i++) {
        const dt_range at = t->reduce.bucket[t->reduce.due[i]];
        DT_TRY(
            dt_device_copy_in(d, d->params + at.begin, params + at.begin, (size_t)(at.end - at.begin) * sizeof(float)));
    }
    DT_TRY(dt_device_update_targets(t, f));
    return dt_device_narrow_params(t, d->params_half, d->params, d->all);
}

/* All ranks have the same block sums and losses, so all of them skip or none. */
static dt_status apply_update(dt_trainer *t, const dt_device_finish *f, dt_device_buffer *b, int64_t bad)
{
    dt_train_device *d = t->device;
    DT_TRY(d->ops->apply(d->device, f, d->compute));
    DT_TRY(d->ranks->link != NULL ? DT_OK : copy_slices(d, d->params, d->ranks->params, true));
    DT_TRY(dt_device_copy_out(d, b->result, d->result, sizeof(*b->result)));
    DT_TRY(wait_for_device(t));
    b->result->bad = bad;
    return b->result->applied ? all_gather_params(t, f) : DT_OK;
}

dt_status dt_device_ranks_reduce(dt_trainer *t, uint32_t groups, dt_status mine)
{
    return t->device->ranks->link != NULL ? reduce_on_devices(t, mine, groups) : reduce_on_hosts(t, mine, groups);
}

dt_status dt_device_ranks_update(dt_trainer *t, const dt_device_finish *f, dt_device_buffer *b)
{
    const dt_train_device *d = t->device;
    bool is_finite = false;
    int64_t bad = -1;
    DT_TRY(measure_and_share(t, f, &is_finite));
    DT_TRY(is_finite ? DT_OK : find_not_finite(t, &bad));
    DT_TRY(reduce_losses(t, f->n_losses));
    t->scratch.gradient = NULL; /* its buffer is the next step's */
    DT_TRY(apply_update(t, f, b, bad));
    return d->ops->event_record(d->device, b->done, d->compute);
}
