/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/graph/leaf_grads.h"

#include "base/err.h"
#include "base/mem.h"
#include "engine/device/device.h"
#include "engine/graph/plan_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    ALIGN = 256,
    TOGETHER = 16 << 20 /* bytes of all leaves that are summed together: what the second cache of a GPU still holds */
};

/* ---- which there are --------------------------------------------------------------------------------------------- */

static int64_t count_elements(const dt_view *v)
{
    int64_t n = 1;
    for (int32_t i = 0; i < v->rank; i++) {
        n *= v->dim[i]; /* of a parameter: no dimension is ragged */
    }
    return n;
}

static dt_leaf_grad *find_grad(const dt_leaf_grads *g, int64_t at)
{
    for (uint32_t i = 0; i < g->n; i++) {
        if (g->grad[i].at == at) {
            return &g->grad[i];
        }
    }
    return NULL;
}

/* A call reads or writes a view at that place: calls come in their order, and of each what it reads comes first. One
 * that writes two summands adds both. */
static void record_write(dt_leaf_grads *g, const dt_view *v, int64_t at, uint32_t call, bool is_read)
{
    dt_leaf_grad *x = find_grad(g, at);
    if (x == NULL) {
        const int64_t unit = ALIGN / (int64_t)sizeof(float), count = count_elements(v);
        x = &g->grad[g->n++];
        *x = (dt_leaf_grad){.at = at,
                            .count = count,
                            .stride = (count + unit - 1) / unit * unit,
                            .first = call,
                            .is_read_first = is_read};
    } else if (x->first == call) {
        x->is_read_first = true;
    }
    x->last = call;
}

static void record_writes_of_call(const dt_plan *p, dt_leaf_grads *g, uint32_t call, uint32_t *data)
{
    const dt_plan_call *c = &p->call[call];
    for (; *data < p->n_data && p->data[*data].view < c->view + c->n_in + c->n_out; (*data)++) {
        const dt_plan_data *d = &p->data[*data];
        if (d->kind == DT_VALUE_GRAD) {
            record_write(g, &p->view[d->view], (int64_t)(d->offset / sizeof(float)), call, d->view < c->view + c->n_in);
        }
    }
}

/* ---- when they are summed ---------------------------------------------------------------------------------------- */

static bool is_sum_due(const dt_leaf_grads_desc *d, uint32_t call)
{
    for (uint32_t i = 0; i < d->n_due; i++) {
        if (d->due[i] == call) {
            return true;
        }
    }
    return false;
}

static int compare_ends(const void *a, const void *b)
{
    const dt_leaf_grad *x = a, *y = b;
    if (x->last != y->last) {
        return x->last < y->last ? -1 : 1;
    }
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Those that are complete wait until they are as many bytes as are summed together, or as many as one call can sum. */
static void group_sums(const dt_plan *p, const dt_leaf_grads_desc *d, dt_leaf_grads *g)
{
    uint32_t first = 0, n = 0;
    uint64_t bytes = 0;
    qsort(g->grad, g->n, sizeof(*g->grad), compare_ends);
    for (uint32_t c = 0; c < p->n_calls; c++) {
        for (; n < g->n && g->grad[n].last == c; n++) {
            bytes += (uint64_t)g->grad[n].stride * sizeof(float) * d->leaves;
        }
        const bool is_full = bytes >= TOGETHER || n - first >= DT_DEVICE_PIECES || n == g->n;
        if (n > first && (is_full || is_sum_due(d, c))) {
            for (; first < n; first++) {
                g->grad[first].summed = c;
            }
            bytes = 0;
        }
    }
}

/* ---- where they lie ---------------------------------------------------------------------------------------------- */

static size_t grad_bytes(const dt_leaf_grad *g)
{
    return (size_t)g->stride * sizeof(float);
}

static bool is_placed_before(const dt_leaf_grad *a, const dt_leaf_grad *b)
{
    return a->count != b->count ? a->count > b->count : a->at < b->at;
}

/* The lowest place that is free as long as x lives; placed: those that have one. */
static size_t find_lowest_gap(dt_leaf_grad *const *placed, uint32_t n, const dt_leaf_grad *x)
{
    size_t at = 0;
    for (uint32_t k = 0; k < n; k++) {
        const dt_leaf_grad *o = placed[k];
        const bool meets = o->first <= x->summed && x->first <= o->summed;
        if (meets && o->room < at + grad_bytes(x) && at < o->room + grad_bytes(o)) {
            at = o->room + grad_bytes(o);
            k = UINT32_MAX; /* from the beginning: it may now be in the way of one before */
        }
    }
    return at;
}

/* The largest first. */
static dt_status assign_offsets(dt_leaf_grads *g)
{
    dt_leaf_grad **order = dt_alloc_n(g->n + (size_t)1, sizeof(*order));
    if (order == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u gradients of parameters", g->n);
    }
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t at = i;
        for (; at > 0 && is_placed_before(&g->grad[i], order[at - 1]); at--) {
            order[at] = order[at - 1];
        }
        order[at] = &g->grad[i];
    }
    for (uint32_t i = 0; i < g->n; i++) {
        order[i]->room = find_lowest_gap(order, i, order[i]);
        const size_t end = order[i]->room + grad_bytes(order[i]);
        g->bytes = end > g->bytes ? end : g->bytes;
    }
    dt_free(order);
    return DT_OK;
}

dt_status dt_leaf_grads_plan(const dt_plan *p, const dt_leaf_grads_desc *d, dt_leaf_grads *out_p)
{
    dt_leaf_grads g = {0};
    uint32_t n = 0, data = 0;
    for (uint32_t i = 0; i < p->n_data; i++) {
        n += p->data[i].kind == DT_VALUE_GRAD;
    }
    g.grad = dt_alloc_n(n + (size_t)1, sizeof(*g.grad));
    if (g.grad == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u gradients of parameters", n);
    }
    for (uint32_t c = 0; c < p->n_calls; c++) {
        record_writes_of_call(p, &g, c, &data);
    }
    group_sums(p, d, &g);
    const dt_status st = assign_offsets(&g);
    if (st < 0) {
        dt_leaf_grads_fini(&g);
        return st;
    }
    *out_p = g;
    return DT_OK;
}

void dt_leaf_grads_fini(dt_leaf_grads *g)
{
    dt_free(g->grad);
    *g = (dt_leaf_grads){0};
}

const dt_leaf_grad *dt_leaf_grads_find(const dt_leaf_grads *g, int64_t at)
{
    return find_grad(g, at);
}
