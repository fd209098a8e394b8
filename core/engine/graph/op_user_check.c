/* SPDX-License-Identifier: Apache-2.0
 *
 * An op of a plugin on small random inputs: what it must write, and its derivative against central differences. See
 * op_user.h.
 */
#include <config.h>

#include "engine/graph/op_user.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/backend/user.h"
#include "engine/tensor/dtype.h"

#include <math.h>
#include <string.h>

enum { GUARD = 64, MOST_ELEMENTS = 64 };
#define TOLERANCE 5e-3

typedef struct buffers { /* of one call */
    dt_view in[DT_KERNEL_MAX_IN], out[DT_KERNEL_MAX_OUT];
    uint32_t n_in, n_out;
} buffers;

typedef struct trial {
    uint32_t op;
    const dt_user_op *desc;
    dt_attr attr;
    buffers forward, backward;
    double low, high;
} trial;

static dt_status view_init(dt_view *v, const dt_shape *s)
{
    *v = (dt_view){.rank = (int32_t)s->rank, .dtype = (int32_t)s->dtype};
    for (uint32_t i = 0; i < s->rank; i++) {
        v->dim[i] = s->dim[i].size;
    }
    char *p = dt_alloc((size_t)dt_view_count(v) * sizeof(float) + 2 * GUARD);
    v->data = p != NULL ? p + GUARD : NULL;
    return p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory to check an op");
}

static void view_fini(dt_view *v)
{
    if (v->data != NULL) {
        dt_free((char *)v->data - GUARD);
    }
}

static void fill_random(dt_view *v, uint32_t stream, double low, double high)
{
    const dt_rng_key key = {.seed = 7, .op = stream};
    const int64_t n = dt_view_count(v);
    for (int64_t i = 0; i < n && v->dtype == DT_F32; i++) {
        ((float *)v->data)[i] = (float)(low + (high - low) * dt_rng_uniform(&key, (uint64_t)i));
    }
}

static dt_status infer_shapes(const trial *t, uint32_t op, const dt_shape *in, uint32_t n_in, dt_infer *q)
{
    *q = (dt_infer){.name = t->desc->name, .attr = t->attr, .n_in = n_in};
    for (uint32_t i = 0; i < n_in; i++) {
        q->in[i] = &in[i];
    }
    return dt_infer_run(q, dt_user_op_info(op));
}

static dt_status make_buffers(trial *t)
{
    dt_shape in[DT_KERNEL_MAX_IN];
    dt_infer q;
    uint32_t n = dt_user_op_example(t->op, in);
    DT_TRY(infer_shapes(t, t->op, in, n, &q));
    t->forward.n_in = n;
    t->forward.n_out = q.n_out;
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(view_init(&t->forward.in[i], &in[i]));
        fill_random(&t->forward.in[i], 1 + i, t->low, t->high);
    }
    for (uint32_t i = 0; i < q.n_out; i++) {
        DT_TRY(view_init(&t->forward.out[i], &q.out[i]));
    }
    if (t->desc->backward == NULL) {
        return DT_OK;
    }
    const uint32_t results = t->desc->results != 0 ? t->desc->results : 1;
    dt_shape all[DT_KERNEL_MAX_IN];
    buffers *b = &t->backward;
    for (uint32_t i = 0; i < results; i++) {
        DT_TRY(view_init(&b->in[i], &q.out[i]));
        fill_random(&b->in[i], 20 + i, -1, 1);
        all[i] = q.out[i];
    }
    memcpy(all + results, in, n * sizeof(*in));
    memcpy(all + results + n, q.out, q.n_out * sizeof(*all));
    memcpy(b->in + results, t->forward.in, n * sizeof(*b->in));
    memcpy(b->in + results + n, t->forward.out, q.n_out * sizeof(*b->in));
    b->n_in = results + n + q.n_out;
    DT_TRY(infer_shapes(t, t->op + 1, all, b->n_in, &q));
    for (b->n_out = 0; b->n_out < q.n_out; b->n_out++) {
        DT_TRY(view_init(&b->out[b->n_out], &q.out[b->n_out]));
    }
    return DT_OK;
}

static void free_buffers(trial *t)
{
    const uint32_t results = t->desc->results != 0 ? t->desc->results : 1;
    for (uint32_t i = 0; i < DT_KERNEL_MAX_IN; i++) {
        view_fini(&t->forward.in[i]);
        if (i < results) {
            view_fini(&t->backward.in[i]); /* the others are those of forward */
        }
    }
    for (uint32_t i = 0; i < DT_KERNEL_MAX_OUT; i++) {
        view_fini(&t->forward.out[i]);
        view_fini(&t->backward.out[i]);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool is_filled(const void *from, size_t bytes, int value)
{
    for (size_t i = 0; i < bytes; i++) {
        if (((const unsigned char *)from)[i] != value) {
            return false;
        }
    }
    return true;
}

/* Into outputs and scratch of these bytes; nothing else may be written. */
static dt_status run_op(const trial *t, uint32_t op, buffers *b, int value)
{
    const dt_kernel_run how = {.training = 1};
    const size_t bytes = dt_user_scratch_bytes(op, DT_KERNELS_CPU, &t->attr, b->in, b->n_in, b->out, b->n_out);
    const char *name = op == t->op ? "forward" : "backward";
    char *scratch = dt_alloc(bytes + GUARD);
    if (scratch == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to check an op");
    }
    memset(scratch, value, bytes + GUARD);
    for (uint32_t i = 0; i < b->n_out; i++) {
        memset((char *)b->out[i].data - GUARD, value, (size_t)dt_view_count(&b->out[i]) * sizeof(float) + 2 * GUARD);
    }
    const dt_kernel_args args = {.attr = &t->attr,
                                 .run = &how,
                                 .in = b->in,
                                 .out = b->out,
                                 .n_in = b->n_in,
                                 .n_out = b->n_out,
                                 .scratch = scratch,
                                 .user = dt_user_kernel_data(op)};
    dt_user_kernel_find(op, DT_KERNELS_CPU)(&args);
    dt_status st = DT_OK;
    if (!is_filled(scratch + bytes, GUARD, value)) {
        st = DT_FAIL(DT_EPLUGIN, "%s writes past the %zu bytes of scratch", name, bytes);
    }
    for (uint32_t i = 0; i < b->n_out && st == DT_OK; i++) {
        const char *data = b->out[i].data;
        if (!is_filled(data - GUARD, GUARD, value) ||
            !is_filled(data + (size_t)dt_view_count(&b->out[i]) * sizeof(float), GUARD, value)) {
            st = DT_FAIL(DT_EPLUGIN, "%s writes outside of output %u", name, i);
        }
    }
    dt_free(scratch);
    return st;
}

static char *copy_data(const dt_view *v)
{
    const size_t bytes = (size_t)dt_view_count(v) * sizeof(float);
    char *copy = dt_alloc(bytes + 1);
    if (copy != NULL) {
        memcpy(copy, v->data, bytes);
    }
    return copy;
}

static bool equals_copy(const dt_view *v, const char *copy)
{
    return copy != NULL && memcmp(v->data, copy, (size_t)dt_view_count(v) * sizeof(float)) == 0;
}

/* Twice, into memory of other content: every element is written, inputs stay, and the result is the same. */
static dt_status run_twice(const trial *t, uint32_t op, buffers *b)
{
    const char *name = op == t->op ? "forward" : "backward";
    char *in[DT_KERNEL_MAX_IN] = {NULL}, *out[DT_KERNEL_MAX_OUT] = {NULL};
    for (uint32_t i = 0; i < b->n_in; i++) {
        in[i] = copy_data(&b->in[i]);
    }
    dt_status st = run_op(t, op, b, 0x5a);
    for (uint32_t i = 0; i < b->n_out; i++) {
        out[i] = copy_data(&b->out[i]);
    }
    if (st == DT_OK) {
        st = run_op(t, op, b, 0xa5);
    }
    for (uint32_t i = 0; i < b->n_in; i++) {
        if (st == DT_OK && !equals_copy(&b->in[i], in[i])) {
            st = DT_FAIL(DT_EPLUGIN, "%s changes its input %u", name, i);
        }
        dt_free(in[i]);
    }
    for (uint32_t i = 0; i < b->n_out; i++) {
        if (st == DT_OK && !equals_copy(&b->out[i], out[i])) {
            st = DT_FAIL(DT_EPLUGIN,
                         "two calls of %s differ in output %u: an element is not written, or depends on more "
                         "than the call",
                         name, i);
        }
        dt_free(out[i]);
    }
    return st;
}

/* ---- derivative -------------------------------------------------------------------------------------------------- */

/* sum of gradient times result, over all results */
static dt_status weighted_sum(trial *t, double *out_p)
{
    const uint32_t results = t->desc->results != 0 ? t->desc->results : 1;
    DT_TRY(run_op(t, t->op, &t->forward, 0));
    *out_p = 0;
    for (uint32_t k = 0; k < results; k++) {
        const float *y = t->forward.out[k].data, *g = t->backward.in[k].data;
        const int64_t n = dt_view_count(&t->forward.out[k]);
        for (int64_t i = 0; i < n; i++) {
            *out_p += (double)g[i] * (double)y[i];
        }
    }
    return DT_OK;
}

static dt_status central_difference(trial *t, float *x, double step, double *out_p)
{
    const float keep = *x;
    double above = 0, below = 0;
    *x = (float)((double)keep + step);
    const double up = *x;
    DT_TRY(weighted_sum(t, &above));
    *x = (float)((double)keep - step);
    const double down = *x;
    DT_TRY(weighted_sum(t, &below));
    *x = keep;
    *out_p = (above - below) / (up - down);
    return DT_OK;
}

static dt_status check_input(trial *t, uint32_t k, const dt_view *gradient, uint32_t *n_checked)
{
    float *x = t->forward.in[k].data;
    const int64_t n = dt_view_count(&t->forward.in[k]), stride = n / MOST_ELEMENTS + 1;
    const double h = 0.01 * (t->high - t->low);
    for (int64_t i = 0; i < n; i += stride) {
        double wide = 0, narrow = 0;
        DT_TRY(central_difference(t, &x[i], h, &wide));
        DT_TRY(central_difference(t, &x[i], h / 2, &narrow));
        const double want = (4 * narrow - wide) / 3, got = (double)((const float *)gradient->data)[i];
        const double room = TOLERANCE * fmax(1, fabs(want));
        if (!(fabs(wide - narrow) <= 10 * room)) {
            continue; /* a jump or a kink next to it */
        }
        ++*n_checked;
        if (!(fabs(got - want) <= room)) {
            return DT_FAIL(DT_EPLUGIN,
                           "backward: the gradient of input %u at element %lld is %g, central differences of "
                           "forward give %g",
                           k, (long long)i, got, want);
        }
    }
    return DT_OK;
}

static dt_status check_derivative(trial *t)
{
    uint32_t out = 0, n_checked = 0;
    DT_TRY(run_twice(t, t->op + 1, &t->backward));
    for (uint32_t k = 0; k < t->forward.n_in; k++) {
        if (t->forward.in[k].dtype == DT_F32) {
            DT_TRY(check_input(t, k, &t->backward.out[out++], &n_checked));
        }
    }
    return n_checked > 0 || out == 0
               ? DT_OK
               : DT_FAIL(DT_EPLUGIN,
                         "forward has a jump next to every input between %g and %g; set check_low and "
                         "check_high to a range where it is smooth",
                         t->low, t->high);
}

static dt_status check_finite(const trial *t)
{
    for (uint32_t k = 0; k < t->forward.n_out; k++) {
        const dt_view *v = &t->forward.out[k];
        const int64_t n = dt_view_count(v);
        for (int64_t i = 0; i < n && v->dtype == DT_F32; i++) {
            if (!isfinite(((const float *)v->data)[i])) {
                return DT_FAIL(DT_EPLUGIN,
                               "forward returns %g for inputs between %g and %g; set check_low and check_high "
                               "to its range",
                               (double)((const float *)v->data)[i], t->low, t->high);
            }
        }
    }
    return DT_OK;
}

static dt_status check_all(trial *t)
{
    DT_TRY(make_buffers(t));
    DT_TRY(run_twice(t, t->op, &t->forward));
    DT_TRY(check_finite(t));
    return t->desc->backward != NULL ? check_derivative(t) : DT_OK;
}

dt_status dt_user_op_verify(uint32_t op)
{
    trial t = {.op = op, .desc = dt_user_op_at(op)};
    const bool has_range = t.desc->check_low < t.desc->check_high;
    t.attr = t.desc->check_attr;
    t.low = has_range ? t.desc->check_low : -1;
    t.high = has_range ? t.desc->check_high : 1;
    const dt_status st = check_all(&t);
    free_buffers(&t);
    return st;
}
