/* SPDX-License-Identifier: Apache-2.0
 *
 * Every kernel of a device on every row of ops/cases.c, forward and derivative, against ref64. Runs on the emulated
 * device (emulate/cuda_runtime.h) in `make check`, and on a GPU with DT_CHECK_GPU=1 (skipped without one).
 *
 * A launch holds three leaves: one full, one with part of its rows live, one empty. The checks:
 *   parity      live elements agree with ref64; beyond them there are zeros; nothing else is written
 *   leaves      a leaf alone has the same bits as among others
 *   order       threads and blocks run in reverse order give the same bits (emulated device only)
 *   NaN         what depends on NaN is NaN (engine/backend/kernel.h), and other leaves are not
 *   accum, absent outputs, in place
 * Tensors are stored in f32, then in bf16 and in fp16 where engine/graph/storage.h allows it: all of them, and mixed.
 * On the emulated device the mixed ones and fp16, whose kernels are the templates of bf16, are checked for parity
 * alone, and fp16 not mixed; DT_LONG=1 checks everything.
 * DT_CASE: only the rows of these names, which are separated by commas. DT_TEST: only the tests whose names match this
 * pattern. Names that select nothing fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cuda/half.h"
#include "engine/cuda/open.h"
#include "engine/graph/op.h"
#include "engine/graph/storage.h"
#include "engine/ops/harness.h"

#define PARITY_TOL 1e-5

enum { LEAVES = 3, GUARD = 128, OWN_SCRATCH = 1 << 20, MAX_LAUNCHED = DT_KERNEL_MAX_IN + DT_KERNEL_MAX_OUT };

static const dt_device_ops *ops;
static dt_device *device;
static dt_device_stream *stream;
static bool is_emulated, is_thorough;
static uint32_t math = DT_DEVICE_MATH_F32;
/* what may be stored in half is, in this type (0: nothing); ODD, EVEN: of tensors that need not be alike every other */
static int32_t half_type;
static enum { ALL, ODD, EVEN } half_which;
static double tol_scale = 1;

/* ---- device memory ----------------------------------------------------------------------------------------------- */

static void *to_device(const void *host, size_t bytes)
{
    void *p = NULL;
    assert_int_equal(ops->alloc(device, bytes, &p), DT_OK);
    assert_int_equal(ops->copy(device, p, host, bytes, DT_DEVICE_TO_DEVICE, stream), DT_OK);
    assert_int_equal(ops->stream_sync(device, stream), DT_OK);
    return p;
}

static void to_host(void *host, const void *from, size_t bytes)
{
    assert_int_equal(ops->copy(device, host, from, bytes, DT_DEVICE_TO_HOST, stream), DT_OK);
    assert_int_equal(ops->stream_sync(device, stream), DT_OK);
}

/* Filled with 0xff before every launch: its first OWN_SCRATCH bytes, for what lies behind them is cuBLASLt's, and the
 * guard at its end. */
static struct {
    char *host;
    void *dev;
    size_t bytes;
} scratch;

/* bytes with the guard, of 2 * GUARD */
static void *scratch_of(size_t bytes)
{
    if (bytes > scratch.bytes) {
        ops->release(device, scratch.dev);
        free(scratch.host);
        scratch.host = zalloc(bytes);
        memset(scratch.host, 0xff, bytes);
        scratch.dev = to_device(scratch.host, bytes);
        scratch.bytes = bytes;
    }
    const size_t first = bytes < OWN_SCRATCH ? bytes : (size_t)OWN_SCRATCH, last = bytes - 2 * GUARD;
    assert_int_equal(ops->copy(device, scratch.dev, scratch.host, first, DT_DEVICE_TO_DEVICE, stream), DT_OK);
    assert_int_equal(
        ops->copy(device, (char *)scratch.dev + last, scratch.host + last, 2 * GUARD, DT_DEVICE_TO_DEVICE, stream),
        DT_OK);
    return scratch.dev;
}

/* ---- tensors of all leaves --------------------------------------------------------------------------------------- */

static size_t element_bytes(int32_t dtype)
{
    return dtype == DT_U8 ? 1 : dtype == DT_F32 || dtype == DT_I32 ? 4 : dtype == DT_BF16 || dtype == DT_F16 ? 2 : 8;
}

/* A tensor of one call: at capacity, one copy per leaf, GUARD elements around, in host memory and on the device. */
typedef struct batch {
    tensor shape; /* at capacity, no values */
    bool is_shared;
    int64_t stride; /* elements from leaf to leaf */
    size_t bytes;
    char *host;
    void *dev;
} batch;

/* index in a tensor at capacity of element k of the same tensor at live sizes */
static int64_t place(const tensor *capacity, const tensor *live, int64_t k)
{
    if (capacity->ragged < 0) {
        return k;
    }
    int64_t inner = 1;
    for (int32_t i = capacity->ragged + 1; i < capacity->rank; i++) {
        inner *= capacity->dim[i];
    }
    const int64_t n = live->dim[live->ragged], block = k / inner / n;
    return (block * capacity->dim[capacity->ragged] + k / inner % n) * inner + k % inner;
}

static void put_float(int32_t dtype, double x, char *to)
{
    const float full = (float)x;
    const uint16_t half = dtype != DT_F32 ? half_bits(dtype, x) : 0;
    memcpy(to, dtype == DT_F32 ? (const void *)&full : &half, element_bytes(dtype));
}

static void put(const tensor *t, int32_t dtype, int64_t k, char *to)
{
    if (t->dtype == DT_I32 || t->dtype == DT_I64 || t->dtype == DT_U8) {
        memcpy(to, (char *)t->raw + (size_t)k * element_bytes(t->dtype), element_bytes(t->dtype));
    } else if (t->dtype == DT_F64) {
        memcpy(to, &t->f[k], 8);
    } else {
        put_float(dtype, t->f[k], to);
    }
}

/* What lies beyond the live size of an input (engine/device/device.h): fields hold zeros, row pointers repeat the last,
 * gradients and saved outputs are zero, everything else is any finite value. */
static void put_padding(const tensor *live, int32_t dtype, char *to)
{
    memset(to, 0, element_bytes(dtype));
    if (live->kind == 'r' || live->kind == 's') {
        memcpy(to, (int32_t *)live->raw + live->n - 1, 4);
    } else if (strchr("xkpb", live->kind) != NULL) {
        put_float(dtype, 7.5, to);
    }
}

static batch batch_of(const tensor *capacity, bool is_shared, int32_t dtype)
{
    batch b = {.shape = *capacity, .is_shared = is_shared};
    b.shape.dtype = dtype;
    b.stride = is_shared ? 0 : (capacity->n + 63) / 64 * 64 + 64;
    b.bytes = (size_t)(2 * GUARD + (is_shared ? capacity->n : LEAVES * b.stride)) * element_bytes(dtype);
    b.host = zalloc(b.bytes);
    memset(b.host, 0xff, b.bytes);
    return b;
}

static char *leaf_of(const batch *b, int leaf)
{
    return b->host + (size_t)(GUARD + leaf * b->stride) * element_bytes(b->shape.dtype);
}

static void fill_leaf(batch *b, int leaf, const tensor *live)
{
    const size_t size = element_bytes(b->shape.dtype);
    char *data = leaf_of(b, leaf);
    for (int64_t k = 0; k < b->shape.n; k++) {
        put_padding(live, b->shape.dtype, data + (size_t)k * size);
    }
    for (int64_t k = 0; k < live->n; k++) {
        put(live, b->shape.dtype, k, data + (size_t)place(&b->shape, live, k) * size);
    }
}

static dt_device_view view_of(const batch *b, int first_shard)
{
    const tensor *t = &b->shape;
    dt_device_view v = {.rank = t->rank, .dtype = t->dtype, .ragged = t->ragged, .leaf_stride = b->stride};
    memcpy(v.dim, t->dim, sizeof(v.dim));
    v.symbol = t->ragged < 0 ? 0 : t->symbol;
    v.plus = t->plus;
    v.data = (char *)b->dev + (size_t)(GUARD + first_shard * b->stride) * element_bytes(t->dtype);
    return v;
}

static void batch_free(batch *b)
{
    ops->release(device, b->dev);
    free(b->host);
}

/* ---- what is stored how ------------------------------------------------------------------------------------------ */

static bool is_half(uint32_t full, uint32_t alike, uint32_t k)
{
    const bool is_other = (full >> k & 1) != 0;
    return half_type != 0 && !is_other && (half_which == ALL || (alike >> k & 1) != 0 || k % 2 == (half_which == ODD));
}

static int32_t stored_out(const call *c, uint32_t k)
{
    const dt_op_storage r = dt_op_storage_of(c->op);
    const tensor *t = c->out[k];
    return t->dtype == DT_F32 && t->kind != 'a' && is_half(r.full_out, r.alike_out, k) ? half_type : t->dtype;
}

static int32_t stored_in(const call *c, uint32_t k)
{
    const dt_op_storage r = dt_op_storage_of(c->op);
    const tensor *t = c->in[k];
    if (half_type != 0 && c->op == DT_OP_LINEAR && k == 2) {
        return stored_out(c, 0); /* the bias is of the result's type */
    }
    const uint32_t alike = r.alike_in | (c->op == DT_OP_LINEAR || c->op == DT_OPX_LINEAR_DX ? r.weight_in : 0);
    return t->dtype == DT_F32 && is_half(r.full_in, alike, k) ? half_type : t->dtype;
}

/* What the reference computes with is what the device reads. */
static void round_inputs(const call *c)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        const tensor *t = c->in[i];
        const int32_t dtype = t->kind == '-' || c->shape_only[i] ? DT_F32 : stored_in(c, i);
        for (int64_t k = 0; k < t->n && (dtype == DT_BF16 || dtype == DT_F16); k++) {
            t->f[k] = isnan(t->f[k]) ? t->f[k] : half_value(dtype, half_bits(dtype, t->f[k]));
        }
    }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct options {
    int first_shard, n_leaves;
    bool accum, in_place, is_reverse;
    uint32_t null_out;
} options;

/* One op on all leaves: calls[l] is what the op should do on leaf l, capacity the same at capacity. Outputs go to
 * out, one batch each, left on the host. */
static void launch(const call *capacity, const call *calls, const int32_t live[LEAVES][N_SYMBOLS], options o,
                   batch *out, const char *what)
{
    batch in[DT_KERNEL_MAX_IN] = {{.bytes = 0}};
    dt_device_view in_view[DT_KERNEL_MAX_IN] = {{0}}, out_view[DT_KERNEL_MAX_OUT] = {{0}};
    for (uint32_t i = 0; i < capacity->n_in; i++) {
        const tensor *t = capacity->in[i];
        if (t->kind == '-') {
            continue;
        }
        const bool is_result = strchr("gfaj", t->kind) != NULL || t->kind == 'd';
        in[i] = batch_of(t, t->ragged < 0 && !is_result, stored_in(capacity, i));
        for (int l = 0; l < (in[i].is_shared ? 1 : LEAVES); l++) {
            fill_leaf(&in[i], l, calls[l].in[i]);
        }
        in[i].dev = to_device(in[i].host, in[i].bytes);
        in_view[i] = view_of(&in[i], o.first_shard);
        in_view[i].data = capacity->shape_only[i] ? NULL : in_view[i].data;
    }
    for (uint32_t i = 0; i < capacity->n_out; i++) {
        const tensor *t = capacity->out[i];
        out[i] = batch_of(t, false, stored_out(capacity, i));
        const bool adds = o.accum && t->kind == 'a';
        for (int l = 0; l < LEAVES && (adds || (i == 0 && o.in_place)); l++) {
            for (int64_t k = 0; k < t->n && adds; k++) {
                ((float *)(void *)leaf_of(&out[i], l))[k] = (float)(k % 7 - 3);
            }
            for (int64_t k = 0; k < t->n && !adds; k++) { /* output 0 begins as a copy of input 0 */
                put_padding(calls[l].in[0], out[i].shape.dtype,
                            leaf_of(&out[i], l) + (size_t)k * element_bytes(out[i].shape.dtype));
            }
            if (!adds) {
                fill_leaf(&out[i], l, calls[l].in[0]);
            }
        }
        out[i].dev = to_device(out[i].host, out[i].bytes);
        out_view[i] = view_of(&out[i], o.first_shard);
        out_view[i].accum = adds;
        if ((o.null_out >> i & 1) != 0) {
            out_view[i].data = NULL;
        }
        if (i == 0 && o.in_place) {
            in_view[0].data = out_view[0].data;
            in_view[0].leaf_stride = out_view[0].leaf_stride;
        }
    }
    const dt_device_run run_host = {op_run.seed, op_run.step, op_run.phase, op_run.training, op_run.share};
    int32_t *live_dev = to_device(live, LEAVES * N_SYMBOLS * sizeof(int32_t));
    dt_device_run *run_dev = to_device(&run_host, sizeof(run_host));
    dt_device_args args = {.attr = capacity->attr,
                           .in = in_view,
                           .out = out_view,
                           .n_in = capacity->n_in,
                           .n_out = capacity->n_out,
                           .leaves = (uint32_t)o.n_leaves,
                           .n_symbols = N_SYMBOLS,
                           .live = live_dev + o.first_shard * N_SYMBOLS,
                           .run = run_dev,
                           .device = device,
                           .stream = stream,
                           .math = math};
    const dt_device_kernel *k = ops->kernel(capacity->op);
    const size_t scratch_bytes = k->scratch != NULL ? k->scratch(&args) : 0;
    args.scratch = scratch_of(scratch_bytes + 2 * GUARD);
    setenv("DT_EMULATE_ORDER", o.is_reverse ? "reverse" : "forward", 1);
    if (k->prepare != NULL && k->prepare(&args, &args.state) != DT_OK) {
        fail_msg("%s: prepare of %s: %s", what, k->name, dt_error_text());
    }
    if (k->run(&args) != DT_OK) {
        fail_msg("%s: %s: %s", what, k->name, dt_error_text());
    }
    assert_int_equal(ops->stream_sync(device, stream), DT_OK);
    if (k->release != NULL) {
        k->release(args.state);
    }
    unsigned char guard[2 * GUARD];
    to_host(guard, (char *)args.scratch + scratch_bytes, sizeof(guard));
    for (size_t i = 0; i < sizeof(guard); i++) {
        if (guard[i] != 0xff) {
            fail_msg("%s: %s used more than %zu bytes of scratch", what, k->name, scratch_bytes);
        }
    }
    for (uint32_t i = 0; i < capacity->n_out; i++) {
        to_host(out[i].host, out[i].dev, out[i].bytes);
    }
    for (uint32_t i = 0; i < capacity->n_in; i++) {
        if (capacity->in[i]->kind != '-') {
            batch_free(&in[i]);
        }
    }
    ops->release(device, live_dev);
    ops->release(device, run_dev);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static double at(const batch *b, int leaf, int64_t k)
{
    const char *data = leaf_of(b, leaf);
    if (b->shape.dtype == DT_BF16 || b->shape.dtype == DT_F16) {
        return half_value(b->shape.dtype, ((const uint16_t *)(const void *)data)[k]);
    }
    if (b->shape.dtype == DT_I32) {
        return ((const int32_t *)(const void *)data)[k];
    }
    return b->shape.dtype == DT_F64 ? ((const double *)(const void *)data)[k]
                                    : (double)((const float *)(const void *)data)[k];
}

static void nothing_else_is_written(const batch *b, options o, const char *what)
{
    const size_t size = element_bytes(b->shape.dtype);
    const unsigned char *p = (const unsigned char *)b->host;
    for (int l = -1; l <= LEAVES; l++) { /* the guard before the first leaf, what follows each leaf */
        const bool is_written = l >= o.first_shard && l < o.first_shard + o.n_leaves;
        const size_t from = l < 0 ? 0 : (size_t)(GUARD + l * b->stride + (is_written ? b->shape.n : 0)) * size;
        const size_t to = l < 0 ? GUARD * size : l == LEAVES ? b->bytes : (size_t)(GUARD + (l + 1) * b->stride) * size;
        for (size_t i = from; i < to; i++) {
            if (p[i] != 0xff) {
                fail_msg("%s: written outside the output (leaf %d, byte %zu of %zu)", what, l, i - from, to - from);
            }
        }
    }
}

static void check_values(const batch *b, const call *calls, uint32_t k, double tol, const char *what)
{
    const bool may_be_any = calls[0].op == DT_OP_LINEAR;
    for (int l = 0; l < LEAVES; l++) {
        const tensor *want = calls[l].out[k];
        char *is_live = zalloc((size_t)b->shape.n + 1);
        double diff = 0, norm = 0;
        for (int64_t i = 0; i < want->n; i++) {
            const int64_t where = place(&b->shape, want, i);
            const double w = weight_of(want->f[i]), d = w * (at(b, l, where) - want->f[i]);
            is_live[where] = 1;
            diff += d * d;
            norm += w * want->f[i] * w * want->f[i];
        }
        const double residual = diff == 0 ? 0 : sqrt(diff) / fmax(sqrt(norm), 1e-3);
        if (tol == 0) {
            printf("parity    %-40s leaf %d output %u  %.2e\n", what, l, k, residual);
        } else if (!(residual < tol)) {
            fail_msg("%s, leaf %d, output %u: |difference| / |reference| is %g, allowed %g", what, l, k, residual, tol);
        }
        for (int64_t i = 0; i < b->shape.n; i++) {
            const double x = at(b, l, i);
            if (!is_live[i] && (may_be_any ? !isfinite(x) : x != 0)) {
                fail_msg("%s, leaf %d, output %u at %lld: %g beyond the live size", what, l, k, (long long)i, x);
            }
        }
        free(is_live);
    }
}

static void check_same_bits(const batch *a, const batch *b, int first, int n, const char *why, const char *what)
{
    const size_t size = element_bytes(a->shape.dtype);
    for (int l = first; l < first + n; l++) {
        if (memcmp(leaf_of(a, l), leaf_of(b, l), (size_t)a->shape.n * size) != 0) {
            fail_msg("%s, leaf %d: other bits %s", what, l, why);
        }
    }
}

static void free_batches(batch *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        batch_free(&b[i]);
    }
}

static void check_accum(const call *capacity, const call *calls, const int32_t live[LEAVES][N_SYMBOLS],
                        const batch *plain, double tol, const char *what)
{
    batch added[DT_KERNEL_MAX_OUT];
    launch(capacity, calls, live, (options){.n_leaves = LEAVES, .accum = true}, added, what);
    for (uint32_t k = 0; k < capacity->n_out; k++) {
        for (int64_t i = 0; i < LEAVES * capacity->out[k]->n && tol > 0; i++) {
            const int l = (int)(i / capacity->out[k]->n);
            const int64_t e = i % capacity->out[k]->n;
            const double want = at(&plain[k], l, e) + (capacity->out[k]->kind == 'a' ? (double)(e % 7 - 3) : 0);
            if (!(fabs(at(&added[k], l, e) - want) <= tol * fmax(10, fabs(want)))) {
                fail_msg("%s, leaf %d, output %u at %lld: with accum %g, wanted %g", what, l, k, (long long)e,
                         at(&added[k], l, e), want);
            }
        }
    }
    free_batches(added, capacity->n_out);
}

/* dwh is summed in another order when dxw is not wanted (engine/backend/ops.def) */
static bool may_sum_otherwise(const call *c, uint32_t null_out)
{
    return (null_out & 1) != 0 && (c->op == DT_OPX_LSTM_BWD || c->op == DT_OPX_GRU_BWD);
}

static void check_absent_outputs(const call *capacity, const call *calls, const int32_t live[LEAVES][N_SYMBOLS],
                                 const batch *whole, double tol, const char *what)
{
    for (uint32_t skip = 1; skip < (1u << capacity->n_out) - 1; skip++) {
        if ((skip & 1) != 0 && capacity->op < 1000) {
            continue; /* the first output of a public op is always wanted */
        }
        const int n_skipped = __builtin_popcount(skip);
        if (n_skipped > 1 && n_skipped + 1 < (int)capacity->n_out) {
            continue; /* of many outputs one is absent, or all but one */
        }
        batch part[DT_KERNEL_MAX_OUT];
        launch(capacity, calls, live, (options){.n_leaves = LEAVES, .null_out = skip}, part, what);
        for (uint32_t k = 0; k < capacity->n_out; k++) {
            if ((skip >> k & 1) != 0) {
                nothing_else_is_written(&part[k], (options){.n_leaves = 0}, what);
            } else if (!may_sum_otherwise(capacity, skip)) {
                check_same_bits(&whole[k], &part[k], 0, LEAVES, "when an output is absent", what);
            } else if (tol > 0) {
                check_values(&part[k], calls, k, tol, what);
            }
        }
        free_batches(part, capacity->n_out);
    }
}

static void check_call(const call *capacity, const call *calls, const int32_t live[LEAVES][N_SYMBOLS], double tol,
                       bool in_place, const char *what)
{
    batch whole[DT_KERNEL_MAX_OUT], other[DT_KERNEL_MAX_OUT];
    const options all = {.n_leaves = LEAVES};
    launch(capacity, calls, live, all, whole, what);
    for (uint32_t k = 0; k < capacity->n_out; k++) {
        nothing_else_is_written(&whole[k], all, what);
        check_values(&whole[k], calls, k, tol, what);
    }
    if (half_type != 0 && (half_which != ALL || half_type == DT_F16) && !is_thorough) {
        free_batches(whole, capacity->n_out);
        return;
    }
    const options alone = {.first_shard = 1, .n_leaves = 1};
    launch(capacity, calls, live, alone, other, what);
    for (uint32_t k = 0; k < capacity->n_out; k++) {
        nothing_else_is_written(&other[k], alone, what);
        check_same_bits(&whole[k], &other[k], 1, 1, "when it is alone", what);
    }
    free_batches(other, capacity->n_out);
    launch(capacity, calls, live, (options){.n_leaves = LEAVES, .is_reverse = true}, other, what);
    for (uint32_t k = 0; k < capacity->n_out; k++) {
        check_same_bits(&whole[k], &other[k], 0, LEAVES, is_emulated ? "in reverse order" : "when run again", what);
    }
    free_batches(other, capacity->n_out);
    if (in_place && stored_in(capacity, 0) == stored_out(capacity, 0)) {
        launch(capacity, calls, live, (options){.n_leaves = LEAVES, .in_place = true}, other, what);
        check_same_bits(&whole[0], &other[0], 0, LEAVES, "in place", what);
        free_batches(other, capacity->n_out);
    }
    for (uint32_t k = 0; k < capacity->n_out; k++) {
        if (capacity->out[k]->kind == 'a') {
            check_accum(capacity, calls, live, whole, tol, what);
            break;
        }
    }
    check_absent_outputs(capacity, calls, live, whole, tol, what);
    free_batches(whole, capacity->n_out);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

/* Capacity of the symbols of a row, then the live sizes of each leaf: all, two thirds, none. */
static void sizes_of(const op_case *row, int64_t capacity[N_SYMBOLS], int64_t live[LEAVES][N_SYMBOLS])
{
    memset(capacity, 0, N_SYMBOLS * sizeof(capacity[0]));
    for (int i = 0; i < MAX_LAUNCHED; i++) {
        const char *text = i < DT_KERNEL_MAX_IN       ? row->in[i]
                           : i < DT_KERNEL_MAX_IN + 3 ? row->out[i - DT_KERNEL_MAX_IN]
                                                      : NULL;
        for (const char *c = text != NULL ? text + 1 : ""; *c != '\0'; c++) {
            if (*c >= 'A' && *c <= 'Z') {
                capacity[*c - 'A'] = strtoll(c + 1, NULL, 10);
            }
        }
    }
    for (int s = 0; s < N_SYMBOLS; s++) {
        live[0][s] = capacity[s];
        live[1][s] = capacity[s] - capacity[s] / 3;
        live[2][s] = 0;
    }
}

static void check_case(const op_case *row, double tol)
{
    int64_t capacity[N_SYMBOLS], live[LEAVES][N_SYMBOLS];
    int32_t live32[LEAVES][N_SYMBOLS];
    sizes_of(row, capacity, live);
    problem whole = problem_of(row, capacity, 0), leaf[LEAVES];
    call calls[LEAVES];
    for (int l = 0; l < LEAVES; l++) {
        leaf[l] = problem_of(row, live[l], l);
        calls[l] = forward_call(&leaf[l], leaf[l].out);
        if (half_type != 0) {
            round_inputs(&calls[l]);
            run(&ref64, &calls[l], row->name);
        }
        for (int s = 0; s < N_SYMBOLS; s++) {
            live32[l][s] = (int32_t)live[l][s];
        }
    }
    call at_capacity = forward_call(&whole, whole.out);
    check_call(&at_capacity, calls, live32, tol, row->in_place, row->name);
    for (int d = 0; d < 3 && row->derivative[d].op != 0; d++) {
        tensor grads[LEAVES + 1][DT_KERNEL_MAX_OUT];
        uint32_t of[DT_KERNEL_MAX_OUT];
        char what[128];
        snprintf(what, sizeof(what), "%s, derivative %d", row->name, d);
        at_capacity = derivative_call(&whole, &row->derivative[d], grads[LEAVES], of);
        for (int l = 0; l < LEAVES; l++) {
            calls[l] = derivative_call(&leaf[l], &row->derivative[d], grads[l], of);
            round_inputs(&calls[l]);
            run(&ref64, &calls[l], what);
        }
        check_call(&at_capacity, calls, live32, tol, false, what);
        for (int l = 0; l <= LEAVES; l++) {
            free_outputs(grads[l], at_capacity.n_out);
        }
    }
    for (int l = 0; l < LEAVES; l++) {
        problem_free(&leaf[l]);
    }
    problem_free(&whole);
}

/* ---- NaN --------------------------------------------------------------------------------------------------------- */

static void check_reached(const call *capacity, const call *calls, const int32_t live[LEAVES][N_SYMBOLS], uint32_t in,
                          const char *must, const char *what)
{
    batch out[DT_KERNEL_MAX_OUT];
    launch(capacity, calls, live, (options){.n_leaves = LEAVES}, out, what);
    const bool is_shared = capacity->in[in]->ragged < 0 && strchr("gfad", capacity->in[in]->kind) == NULL;
    for (uint32_t k = 0; k < capacity->n_out; k++) {
        const int64_t n = calls[0].out[k]->n;
        double *value = zalloc((size_t)n * sizeof(double) + 1);
        for (int64_t i = 0; i < n; i++) {
            value[i] = at(&out[k], 0, place(&out[k].shape, calls[0].out[k], i));
        }
        const int64_t lost = lost_nan(&calls[0], must, k, value);
        if (lost >= 0) {
            fail_msg("%s: NaN in input %u does not reach output %u at %lld, which is %g", what, in, k, (long long)lost,
                     value[lost]);
        }
        for (int64_t i = 0; i < out[k].shape.n && !is_shared; i++) {
            if (isnan(at(&out[k], 1, i)) || isnan(at(&out[k], 2, i))) {
                fail_msg("%s: NaN in input %u reaches output %u of another leaf", what, in, k);
            }
        }
        free(value);
    }
    free_batches(out, capacity->n_out);
}

static void check_nan_of(const call *capacity, const call *calls, const int32_t live[LEAVES][N_SYMBOLS],
                         const char *what)
{
    bool has_gradient = false;
    for (uint32_t i = 0; i < capacity->n_in; i++) {
        has_gradient = has_gradient || is_gradient(capacity, i);
    }
    for (uint32_t i = 0; i < capacity->n_in; i++) {
        const tensor *t = calls[0].in[i];
        if (t->n == 0 || !may_be_nan(&calls[0], i) || (has_gradient && !is_gradient(capacity, i))) {
            continue;
        }
        const int64_t last = t->n - 1;
        const double keep = t->f[last];
        char *must = depends_on(&calls[0], i, last);
        t->f[last] = NAN;
        check_reached(capacity, calls, live, i, must, what);
        t->f[last] = keep;
        free(must);
    }
}

static void check_nan_of_case(const op_case *row)
{
    int64_t capacity[N_SYMBOLS], live[LEAVES][N_SYMBOLS];
    int32_t live32[LEAVES][N_SYMBOLS];
    sizes_of(row, capacity, live);
    problem whole = problem_of(row, capacity, 0), leaf[LEAVES];
    call calls[LEAVES];
    for (int l = 0; l < LEAVES; l++) {
        leaf[l] = problem_of(row, live[l], l);
        calls[l] = forward_call(&leaf[l], leaf[l].out);
        for (int s = 0; s < N_SYMBOLS; s++) {
            live32[l][s] = (int32_t)live[l][s];
        }
    }
    call at_capacity = forward_call(&whole, whole.out);
    check_nan_of(&at_capacity, calls, live32, row->name);
    for (int d = 0; d < 3 && row->derivative[d].op != 0; d++) {
        tensor grads[LEAVES + 1][DT_KERNEL_MAX_OUT];
        uint32_t of[DT_KERNEL_MAX_OUT];
        at_capacity = derivative_call(&whole, &row->derivative[d], grads[LEAVES], of);
        for (int l = 0; l < LEAVES; l++) {
            calls[l] = derivative_call(&leaf[l], &row->derivative[d], grads[l], of);
        }
        check_nan_of(&at_capacity, calls, live32, row->name);
        for (int l = 0; l <= LEAVES; l++) {
            free_outputs(grads[l], at_capacity.n_out);
        }
    }
    for (int l = 0; l < LEAVES; l++) {
        problem_free(&leaf[l]);
    }
    problem_free(&whole);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_every_op_has_a_kernel(void **state)
{
#define DT_OP(ID, number, name) assert_int_equal((ops->kernel(number) == NULL), dt_op_is_view(number));
#include "engine/backend/ops.def"
    assert_null(ops->kernel(0));
    assert_null(ops->kernel(999999));
}

/* whether names, separated by commas, have this one; NULL has all */
static bool is_selected(const char *names, const char *name)
{
    const size_t length = strlen(name);
    while (names != NULL && (strncmp(names, name, length) != 0 || (names[length] != ',' && names[length] != '\0'))) {
        names = strchr(names, ',');
        if (names == NULL) {
            return false;
        }
        names++;
    }
    return true;
}

/* Each name of DT_CASE must be the name of a row, and DT_TEST match a test: a mistyped one would pass silently. */
static bool are_selections_known(const struct CMUnitTest *tests, size_t n_tests)
{
    const char *pattern = getenv("DT_TEST"), *names = getenv("DT_CASE");
    size_t n_matching = 0;
    for (size_t i = 0; i < n_tests; i++) {
        n_matching += pattern == NULL || *pattern == '\0' || fnmatch(pattern, tests[i].name, 0) == 0;
    }
    if (n_matching == 0) {
        printf("DT_TEST: no test matches \"%s\"\n", pattern);
        return false;
    }
    for (const char *at = names; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        const int length = (int)strcspn(at, ",");
        bool is_known = false;
        for (int i = 0; i < n_op_cases && !is_known; i++) {
            is_known = (int)strlen(op_cases[i].name) == length && strncmp(at, op_cases[i].name, (size_t)length) == 0;
        }
        if (!is_known) {
            printf("DT_CASE: no row is called \"%.*s\"\n", length, at);
            return false;
        }
    }
    return true;
}

static void check_cases(double tol, uint32_t op)
{
    const char *only = getenv("DT_CASE");
    for (int i = 0; i < n_op_cases; i++) {
        if ((op == 0 || op_cases[i].op == op) && is_selected(only, op_cases[i].name)) {
            check_case(&op_cases[i], tol * tol_scale * fmax(1, sqrt(op_cases[i].sum_length / 1024)));
        }
    }
}

static void test_nan_is_never_lost(void **state)
{
    const char *only = getenv("DT_CASE");
    for (int i = 0; i < n_op_cases; i++) {
        if (is_selected(only, op_cases[i].name)) {
            check_nan_of_case(&op_cases[i]);
        }
    }
}

/* attr i0 heads of C channels; the op is refused before anything is launched */
static void heads_are_refused(uint32_t op, int64_t heads, int64_t C, const char *limit)
{
    const dt_attr attr = {{heads}, {0.2}};
    dt_device_view in[8] = {{0}}, out[2] = {{0}};
    for (int i = 0; i < 8; i++) {
        in[i] = (dt_device_view){.rank = 2, .dim = {4, heads * C}, .ragged = -1};
    }
    const dt_device_args args = {
        .attr = &attr, .in = in, .out = out, .n_in = 7, .n_out = 2, .leaves = 1, .device = device, .stream = stream};
    assert_int_equal(ops->kernel(op)->run(&args), DT_EUNSUPPORTED);
    assert_non_null(strstr(dt_error_text(), limit));
}

static void test_too_many_heads_or_channels_are_refused(void **state)
{
    for (int i = 0; i < 2; i++) {
        const uint32_t op = i == 0 ? DT_OP_GAT : DT_OP_GRAPH_QK;
        heads_are_refused(op, 1, 1025, "1 heads of 1025 channels: on a GPU at most 1024 channels");
        heads_are_refused(op, 513, 1,
                          "513 heads of 1 channels: on a GPU at most 1024 channels of a head and 512 heads");
        heads_are_refused(op, 17, 128, "and 16 heads of this width");
    }
}

static void test_kernels_agree_with_ref64(void **state)
{
    check_cases(PARITY_TOL, 0);
}

/* Inputs are exact, so what differs is what was rounded on the way: each output once, to 8 or 11 bits, and inside some
 * ops once more what they read again (the argument of a function, which the exponential multiplies by its size; h and
 * gates of a sequence). Half a unit in the last place is 2^-9 or 2^-12 of a value at most; ROUNDINGS are allowed. */
static void check_stored_in_half(int32_t dtype, uint32_t of_math, double unit)
{
    enum { ROUNDINGS = 8 };
    half_type = dtype;
    math = of_math;
    const int last = is_thorough || dtype == DT_BF16 ? EVEN : ALL;
    for (int which = ALL; which <= last; which++) {
        half_which = which;
        check_cases(ROUNDINGS * unit, 0);
    }
    half_type = 0;
    math = DT_DEVICE_MATH_F32;
}

static void test_what_is_stored_in_bf16(void **state)
{
    check_stored_in_half(DT_BF16, DT_DEVICE_MATH_BF16, 0x1p-9);
}

static void test_what_is_stored_in_fp16(void **state)
{
    check_stored_in_half(DT_F16, DT_DEVICE_MATH_F16, 0x1p-12);
}

/* Products of inputs rounded to 8 or 11 bits; the sums and what is stored are f32. From 9.0 on LSTM runs on clusters
 * where it fits. The emulated cuBLASLt rounds nothing. */
static void test_products_of_rounded_inputs(void **state)
{
    const struct {
        uint32_t math;
        double tol;
    } rows[] = {{DT_DEVICE_MATH_TF32, is_emulated ? PARITY_TOL : 2e-3},
                {DT_DEVICE_MATH_BF16, 1e-2},
                {DT_DEVICE_MATH_F16, 2e-3}};
    dt_device *const usual = device;
    setenv("DT_EMULATE_ARCH", "90", 0); /* unless another one was asked for */
    assert_int_equal(ops->open(0, &device), DT_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        math = rows[i].math;
        if (math == DT_DEVICE_MATH_F16 || ops->info(device)->major >= 8) {
            check_cases(rows[i].tol, DT_OP_LSTM);
            if (!is_emulated || math == DT_DEVICE_MATH_TF32) {
                check_cases(rows[i].tol, DT_OP_GRU);
                check_cases(rows[i].tol, DT_OP_LINEAR);
            }
        }
    }
    math = DT_DEVICE_MATH_F32;
    ops->close(device);
    device = usual;
}

int main(void)
{
    const char *scale = getenv("DT_TOL_SCALE"), *is_long = getenv("DT_LONG");
    tol_scale = scale != NULL ? atof(scale) : 1;
    is_emulated = cuda_is_emulated();
    is_thorough = !is_emulated || (is_long != NULL && strcmp(is_long, "1") == 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_has_a_kernel),    cmocka_unit_test(test_too_many_heads_or_channels_are_refused),
        cmocka_unit_test(test_kernels_agree_with_ref64), cmocka_unit_test(test_products_of_rounded_inputs),
        cmocka_unit_test(test_nan_is_never_lost),        cmocka_unit_test(test_what_is_stored_in_bf16),
        cmocka_unit_test(test_what_is_stored_in_fp16),
    };
    if (!are_selections_known(tests, sizeof(tests) / sizeof(tests[0]))) {
        return 1;
    }
    const int status = cuda_open(&ops, &device);
    if (status != 0) {
        return status;
    }
    if (ops->stream_create(device, &stream) != DT_OK) {
        printf("%s\n", dt_error_text());
        return 1;
    }
    const char *pattern = getenv("DT_TEST");
    cmocka_set_test_filter(pattern != NULL && *pattern != '\0' ? pattern : NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ops->release(device, scratch.dev);
    free(scratch.host);
    ops->stream_destroy(device, stream);
    ops->close(device);
    return failed;
}
