/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/backend/user.h"

#include "base/err.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum { ALIGN = 64 };

typedef struct user_kernel {
    const dt_user_op *op;
    void (*run)(const dt_op_call *c);
    dt_status (*launch)(const dt_op_launch *c);
    dt_device_kernel device;
} user_kernel;

static user_kernel kernels[2 * DT_USER_OP_MOST];
static _Atomic uint32_t n_kernels; /* those below it are complete */

static dt_status run_on_device(const dt_device_args *a);
static size_t device_scratch_bytes(const dt_device_args *a);

void dt_user_op_add(const dt_user_op *op)
{
    const uint32_t n = atomic_load_explicit(&n_kernels, memory_order_relaxed);
    const dt_device_kernel device = {.name = op->name, .run = run_on_device, .scratch = device_scratch_bytes};
    assert(n + 2 <= 2 * DT_USER_OP_MOST);
    kernels[n] = (user_kernel){op, op->forward, op->launch_forward, device};
    kernels[n + 1] = (user_kernel){op, op->backward, op->launch_backward, device};
    atomic_store_explicit(&n_kernels, n + 2, memory_order_release);
}

static const user_kernel *find_kernel(uint32_t op)
{
    const uint32_t n = atomic_load_explicit(&n_kernels, memory_order_acquire);
    return op >= DT_USER_OP_FIRST && op - DT_USER_OP_FIRST < n ? &kernels[op - DT_USER_OP_FIRST] : NULL;
}

const dt_user_op *dt_user_op_at(uint32_t op)
{
    const user_kernel *k = find_kernel(op);
    return k != NULL ? k->op : NULL;
}

const void *dt_user_kernel_data(uint32_t op)
{
    return find_kernel(op);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

typedef struct call_room {
    dt_op_tensor in[DT_KERNEL_MAX_IN], out[DT_KERNEL_MAX_OUT];
    dt_op_call call;
} call_room;

static dt_op_tensor make_op_tensor(const dt_view *v)
{
    dt_op_tensor t = {.data = v->data, .rank = (uint32_t)v->rank, .dtype = (uint32_t)v->dtype};
    memcpy(t.dim, v->dim, sizeof(t.dim));
    return t;
}

static void make_call(call_room *r, const dt_attr *attr, const dt_view *in, uint32_t n_in, const dt_view *out,
                      uint32_t n_out)
{
    for (uint32_t i = 0; i < n_in; i++) {
        r->in[i] = make_op_tensor(&in[i]);
    }
    for (uint32_t i = 0; i < n_out; i++) {
        r->out[i] = make_op_tensor(&out[i]);
    }
    r->call = (dt_op_call){.struct_size = (uint32_t)sizeof(r->call),
                           .n_in = n_in,
                           .n_out = n_out,
                           .in = r->in,
                           .out = r->out,
                           .attr = attr};
}

static size_t float_copy_bytes(const dt_view *v)
{
    return ((size_t)dt_view_count(v) * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
}

/* Where it is stored as double, or unused, an op of a plugin works on floats in scratch. */
static bool needs_float_copy(const dt_view *v, bool is_double)
{
    return v->data == NULL || (is_double && v->dtype == DT_F32);
}

static void run_user_op(const dt_kernel_args *a, bool is_double)
{
    const user_kernel *k = a->user;
    call_room r;
    char *at = a->scratch;
    make_call(&r, a->attr, a->in, a->n_in, a->out, a->n_out);
    for (uint32_t i = 0; i < a->n_in; i++) {
        if (a->in[i].data == NULL || !needs_float_copy(&a->in[i], is_double)) {
            continue;
        }
        const int64_t n = dt_view_count(&a->in[i]);
        for (int64_t e = 0; e < n; e++) {
            ((float *)(void *)at)[e] = (float)((const double *)a->in[i].data)[e];
        }
        r.in[i].data = at;
        at += float_copy_bytes(&a->in[i]);
    }
    for (uint32_t i = 0; i < a->n_out; i++) {
        if (needs_float_copy(&a->out[i], is_double)) {
            r.out[i].data = at;
            at += float_copy_bytes(&a->out[i]);
        }
    }
    r.call.scratch = at;
    k->run(&r.call);
    for (uint32_t i = 0; i < a->n_out; i++) {
        if (a->out[i].data == NULL || !needs_float_copy(&a->out[i], is_double)) {
            continue;
        }
        const int64_t n = dt_view_count(&a->out[i]);
        for (int64_t e = 0; e < n; e++) {
            ((double *)a->out[i].data)[e] = ((const float *)r.out[i].data)[e];
        }
    }
}

static void run_float(const dt_kernel_args *a)
{
    run_user_op(a, false);
}

static void run_double(const dt_kernel_args *a)
{
    run_user_op(a, true);
}

dt_kernel *dt_user_kernel_find(uint32_t op, dt_kernel_set set)
{
    const user_kernel *k = find_kernel(op);
    if (k == NULL || k->run == NULL || set == DT_KERNELS_DEVICE) {
        return NULL;
    }
    return set == DT_KERNELS_REF64 ? run_double : run_float;
}

size_t dt_user_scratch_bytes(uint32_t op, dt_kernel_set set, const dt_attr *attr, const dt_view *in, uint32_t n_in,
                             const dt_view *out, uint32_t n_out)
{
    const user_kernel *k = find_kernel(op);
    size_t bytes = 0;
    call_room r;
    make_call(&r, attr, in, n_in, out, n_out);
    for (uint32_t i = 0; i < n_in; i++) {
        if (set == DT_KERNELS_REF64 && in[i].rank > 0) {
            bytes += float_copy_bytes(&in[i]);
        }
        r.in[i].data = NULL;
    }
    for (uint32_t i = 0; i < n_out; i++) {
        bytes += float_copy_bytes(&out[i]);
        r.out[i].data = NULL;
    }
    return bytes + (k->op->scratch_bytes != NULL ? k->op->scratch_bytes(&r.call) : 0);
}

double dt_user_flops(uint32_t op, const dt_attr *attr, const dt_view *in, uint32_t n_in, const dt_view *out,
                     uint32_t n_out)
{
    const user_kernel *k = find_kernel(op);
    const bool is_backward = (op - DT_USER_OP_FIRST) % 2 != 0;
    call_room r;
    if (k->op->flops == NULL || is_backward) {
        return (double)dt_view_count(&out[0]);
    }
    make_call(&r, attr, in, n_in, out, n_out);
    return k->op->flops(&r.call);
}

/* ---- on a device ------------------------------------------------------------------------------------------------- */

typedef struct launch_room {
    dt_op_device_tensor in[DT_KERNEL_MAX_IN], out[DT_KERNEL_MAX_OUT];
    dt_op_launch launch;
} launch_room;

static dt_op_device_tensor make_device_tensor(const dt_device_view *v)
{
    dt_op_device_tensor t = {.data = v->data,
                             .shard_stride = v->leaf_stride,
                             .rank = (uint32_t)v->rank,
                             .dtype = (uint32_t)v->dtype,
                             .ragged = v->ragged,
                             .symbol = v->symbol,
                             .plus = v->plus};
    memcpy(t.dim, v->dim, sizeof(t.dim));
    return t;
}

static size_t device_bytes(const dt_device_view *v, uint32_t leaves)
{
    size_t n = leaves * sizeof(float);
    for (int32_t i = 0; i < v->rank; i++) {
        n *= (size_t)v->dim[i];
    }
    return (n + 255) / 256 * 256;
}

/* An output that the graph has no use for; one of rank 0 is not there at all. */
static bool is_unused(const dt_device_view *v)
{
    return v->data == NULL && v->rank > 0;
}

static void make_launch(launch_room *r, const dt_device_args *a)
{
    for (uint32_t i = 0; i < a->n_in; i++) {
        r->in[i] = make_device_tensor(&a->in[i]);
    }
    for (uint32_t i = 0; i < a->n_out; i++) {
        r->out[i] = make_device_tensor(&a->out[i]);
    }
    r->launch = (dt_op_launch){.struct_size = (uint32_t)sizeof(r->launch),
                               .n_in = a->n_in,
                               .n_out = a->n_out,
                               .shards = a->leaves,
                               .in = r->in,
                               .out = r->out,
                               .attr = a->attr,
                               .n_symbols = a->n_symbols};
}

static size_t device_scratch_bytes(const dt_device_args *a)
{
    const user_kernel *k = a->user;
    size_t bytes = 0;
    launch_room r;
    make_launch(&r, a);
    for (uint32_t i = 0; i < a->n_in; i++) {
        r.in[i].data = NULL;
    }
    for (uint32_t i = 0; i < a->n_out; i++) {
        if (is_unused(&a->out[i])) {
            bytes += device_bytes(&a->out[i], a->leaves);
        }
        r.out[i].data = NULL;
    }
    return bytes + (k->op->launch_scratch != NULL ? k->op->launch_scratch(&r.launch) : 0);
}

static dt_status run_on_device(const dt_device_args *a)
{
    const user_kernel *k = a->user;
    char *at = a->scratch;
    launch_room r;
    make_launch(&r, a);
    for (uint32_t i = 0; i < a->n_out; i++) {
        if (is_unused(&a->out[i])) {
            r.out[i].data = at;
            at += device_bytes(&a->out[i], a->leaves);
        }
    }
    r.launch.live = a->live;
    r.launch.scratch = at;
    r.launch.stream = a->stream;
    const dt_status st = k->launch(&r.launch);
    return st < 0 ? DT_FAIL(st, "op %s of a plugin: its launch function returned %d (%s)", k->op->name, (int)st,
                            dt_status_name(st))
                  : DT_OK;
}

const dt_device_kernel *dt_user_device_kernel(uint32_t op)
{
    const user_kernel *k = find_kernel(op);
    return k != NULL && k->launch != NULL ? &k->device : NULL;
}
