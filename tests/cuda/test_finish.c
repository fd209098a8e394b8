/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a step on a device (cuda/optim.cu) against the same on host memory (tests/device/host_device.h): sum of
 * leaves, norm, decision, update. Sums and updates must have the same bits; a norm may differ in its last ones, and
 * with it an update that is clipped. Runs on the emulated device, and on a GPU with DT_CHECK_GPU=1 (skipped without
 * one).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cuda/open.h"
#include "device/host_device.h"

enum { LOSSES = 2, MAX_TOTAL = 20000 / 64 * 64, MAX_LEAVES = 64 };

typedef struct side { /* one device and what lies on it */
    const dt_device_ops *ops;
    dt_device *device;
    dt_device_stream *stream;
    dt_device_finish f;
    double *loss[LOSSES];
    dt_device_control *control;
    uint8_t *trained;
} side;

typedef struct setting {
    uint32_t leaves;
    int64_t total;
    bool is_sgd;
    double clip, loss_scale;
    int64_t bad; /* element of leaf 0 that is not a number, -1: none */
} setting;

static side gpu;

static void *take(side *s, size_t bytes)
{
    void *p = NULL;
    assert_int_equal(s->ops->alloc(s->device, bytes, &p), DT_OK);
    return p;
}

static void put(side *s, const void *to, const void *from, size_t bytes)
{
    void *p = (void *)(uintptr_t)to;
    assert_int_equal(s->ops->copy(s->device, p, from, bytes, DT_DEVICE_TO_DEVICE, s->stream), DT_OK);
    assert_int_equal(s->ops->stream_sync(s->device, s->stream), DT_OK);
}

static void get(side *s, void *to, const void *from, size_t bytes)
{
    assert_int_equal(s->ops->copy(s->device, to, from, bytes, DT_DEVICE_TO_HOST, s->stream), DT_OK);
    assert_int_equal(s->ops->stream_sync(s->device, s->stream), DT_OK);
}

static float draw(uint64_t stream, int64_t i)
{
    const dt_rng_key key = {.seed = 5, .sample = stream};
    return (float)dt_rng_normal(&key, (uint64_t)i);
}

static void put_draws(side *s, float *to, uint64_t stream, int64_t n, float scale, bool is_square)
{
    float *x = malloc((size_t)n * sizeof(*x));
    for (int64_t i = 0; i < n; i++) {
        x[i] = scale * draw(stream, i);
        x[i] = is_square ? x[i] * x[i] : x[i];
    }
    put(s, to, x, (size_t)n * sizeof(*x));
    free(x);
}

static void init(side *s, const setting *c)
{
    const size_t bytes = (size_t)c->total * sizeof(float);
    s->f = (dt_device_finish){.total = c->total, .leaves = c->leaves, .n_losses = LOSSES};
    s->f.grad = take(s, bytes * c->leaves);
    s->f.param = take(s, bytes);
    s->f.moment[0] = take(s, bytes);
    s->f.moment[1] = c->is_sgd ? NULL : take(s, bytes);
    s->f.trained = s->trained = take(s, (size_t)c->total / DT_DEVICE_GRANULE + 1);
    s->f.block_sum = take(s, ((size_t)c->total / DT_DEVICE_BLOCK + 1) * sizeof(double));
    s->f.seed = take(s, LOSSES * sizeof(double));
    s->f.control = s->control = take(s, sizeof(dt_device_control));
    s->f.state = take(s, sizeof(dt_device_state));
    s->f.result = take(s, sizeof(dt_device_result));
    const dt_device_state state = {.updates = 6, .loss_scale = c->loss_scale};
    dt_device_control control = {.first = 7, .gradient_clip = c->clip, .loss_seed = {0.25, 3}};
    for (int i = 0; i < 2; i++) {
        control.consts[i] = (dt_device_consts){.l2 = 1e-3f,
                                               .beta1 = 0.9f,
                                               .one_minus_beta1 = 0.1f,
                                               .beta2 = 0.999f,
                                               .one_minus_beta2 = 0.001f,
                                               .rate = i == 0 ? 1e-2f : 100,
                                               .inv_root = 3,
                                               .eps = 1e-8f,
                                               .keep = 0.999f};
    }
    put(s, s->f.state, &state, sizeof(state));
    put(s, s->control, &control, sizeof(control));
    uint8_t *mark = calloc(1, (size_t)c->total / DT_DEVICE_GRANULE + 1);
    for (int64_t i = 0; i < c->total / DT_DEVICE_GRANULE; i++) {
        mark[i] = i % 3 != 1;
    }
    put(s, s->trained, mark, (size_t)c->total / DT_DEVICE_GRANULE);
    free(mark);
    put_draws(s, s->f.param, 1, c->total, 1, false);
    put_draws(s, s->f.moment[0], 2, c->total, 0.1f, false);
    if (!c->is_sgd) {
        put_draws(s, s->f.moment[1], 3, c->total, 0.1f, true);
    }
    for (int i = 0; i < LOSSES; i++) {
        double leaf[MAX_LEAVES];
        for (uint32_t k = 0; k < c->leaves; k++) {
            leaf[k] = draw(10 + (uint64_t)i, k);
        }
        s->f.loss[i] = s->loss[i] = take(s, c->leaves * sizeof(double));
        put(s, s->loss[i], leaf, c->leaves * sizeof(double));
    }
}

static void fini(side *s)
{
    void *const all[] = {s->f.grad, s->f.param, s->f.moment[0], s->f.moment[1], s->trained, s->f.block_sum,
                         s->f.seed, s->control, s->f.state,     s->f.result,    s->loss[0], s->loss[1]};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        s->ops->release(s->device, all[i]);
    }
}

static void run(side *s, const setting *c)
{
    const float nan = NAN;
    double seed[LOSSES];
    init(s, c);
    assert_int_equal(s->ops->begin(s->device, &s->f, s->stream), DT_OK);
    get(s, seed, s->f.seed, sizeof(seed));
    assert_true(seed[0] == 0.25 * c->loss_scale && seed[1] == 3 * c->loss_scale);
    for (uint32_t l = 0; l < c->leaves; l++) {
        put_draws(s, s->f.grad + l * c->total, 100 + l, c->total, 1, false);
    }
    if (c->bad >= 0) {
        put(s, s->f.grad + c->bad, &nan, sizeof(nan));
    }
    assert_int_equal(s->ops->finish(s->device, &s->f, s->stream), DT_OK);
    assert_int_equal(s->ops->stream_sync(s->device, s->stream), DT_OK);
}

/* Equal bits, or within a share when something rests on the norm. */
static void same(side *a, side *b, const float *of_a, const float *of_b, int64_t n, bool is_close, const char *what)
{
    float *x = malloc((size_t)n * sizeof(*x)), *y = malloc((size_t)n * sizeof(*y));
    get(a, x, of_a, (size_t)n * sizeof(*x));
    get(b, y, of_b, (size_t)n * sizeof(*y));
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(&x[i], &y[i], sizeof(*x)) != 0 && !(is_close && fabsf(x[i] - y[i]) <= 1e-6f * (fabsf(x[i]) + 1))) {
            fail_msg("%s: element %lld is %.9g, not %.9g", what, (long long)i, (double)x[i], (double)y[i]);
        }
    }
    free(x);
    free(y);
}

static void check(const setting *c)
{
    side host = {.ops = host_device_ops(), .device = host_device()};
    assert_int_equal(host.ops->stream_create(host.device, &host.stream), DT_OK);
    run(&host, c);
    run(&gpu, c);
    dt_device_result x, y;
    get(&host, &x, host.f.result, sizeof(x));
    get(&gpu, &y, gpu.f.result, sizeof(y));
    assert_int_equal(x.applied, c->bad < 0);
    assert_int_equal(y.applied, x.applied);
    assert_int_equal(y.is_finite, x.is_finite);
    assert_int_equal(y.updates, x.updates);
    assert_int_equal(y.skipped, x.skipped);
    assert_int_equal(y.bad, c->bad);
    assert_int_equal(x.bad, c->bad);
    assert_memory_equal(x.loss, y.loss, LOSSES * sizeof(double));
    assert_true(y.loss_scale == c->loss_scale);
    if (c->bad < 0) {
        assert_true(fabs(x.norm - y.norm) <= 1e-14 * x.norm);
        same(&host, &gpu, host.f.grad, gpu.f.grad, c->total, false, "sum of leaves");
    }
    const bool is_close = c->clip > 0;
    same(&host, &gpu, host.f.param, gpu.f.param, c->total, is_close, "parameters");
    same(&host, &gpu, host.f.moment[0], gpu.f.moment[0], c->total, is_close, "first moment");
    if (!c->is_sgd) {
        same(&host, &gpu, host.f.moment[1], gpu.f.moment[1], c->total, is_close, "second moment");
    }
    fini(&host);
    fini(&gpu);
    host.ops->stream_destroy(host.device, host.stream);
}

static void test_leaves(void **state)
{
    (void)state;
    for (uint32_t leaves = 1; leaves <= MAX_LEAVES; leaves *= 2) {
        check(&(setting){.leaves = leaves, .total = leaves > 8 ? 640 : MAX_TOTAL, .loss_scale = 1, .bad = -1});
    }
}

static void test_kinds(void **state)
{
    (void)state;
    check(&(setting){.leaves = 8, .total = 64, .loss_scale = 1, .bad = -1});
    check(&(setting){.leaves = 8, .total = 8192 + 64, .is_sgd = true, .loss_scale = 1, .bad = -1});
    check(&(setting){.leaves = 4, .total = 8192, .clip = 0.5, .loss_scale = 1, .bad = -1});
    check(&(setting){.leaves = 4, .total = 8192, .clip = 1e9, .loss_scale = 1024, .bad = -1});
}

static void test_not_finite(void **state)
{
    (void)state;
    check(&(setting){.leaves = 2, .total = 8192 + 64, .loss_scale = 1, .bad = 8191});
    check(&(setting){.leaves = 2, .total = MAX_TOTAL, .loss_scale = 1, .bad = MAX_TOTAL - 1});
    check(&(setting){.leaves = 2, .total = MAX_TOTAL, .is_sgd = true, .loss_scale = 1, .bad = 0});
}

static void test_refusals(void **state)
{
    (void)state;
    dt_device_finish f = {.leaves = 3, .total = 64};
    assert_int_equal(gpu.ops->finish(gpu.device, &f, gpu.stream), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "3 leaves on one device; a power of two up to 64"));
}

int main(void)
{
    const int cannot = cuda_open(&gpu.ops, &gpu.device);
    if (cannot != 0 || gpu.ops->stream_create(gpu.device, &gpu.stream) < 0) {
        return cannot != 0 ? cannot : 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
