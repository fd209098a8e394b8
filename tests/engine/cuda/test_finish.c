/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of leaves (cuda/sums.cu) and the end of a step (cuda/optim.cu) on a device against the same on host memory
 * (tests/engine/device/host_device.h): sum of leaves, norm, decision, update. Sums and updates must have the same bits;
 * a norm may differ in its last ones, and with it an update that is clipped. Parts of several ranks must come to all
 * bits of one that has everything. Runs on the emulated device, and on a GPU with DT_CHECK_GPU=1 (skipped without one).
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
#include "comm/tree_sum.h"
#include "engine/cuda/open.h"
#include "engine/device/host_device.h"

enum { LOSSES = 2, MAX_TOTAL = 20000 / 64 * 64, MAX_LEAVES = 64, MOST_SLOTS = 4 };

typedef struct side { /* one device and what lies on it */
    const dt_device_ops *ops;
    dt_device *device;
    dt_device_stream *stream;
    dt_device_finish f;
    double *loss[LOSSES];
    dt_device_control *control;
    uint8_t *trained, *block_group;
    dt_device_slice slice;
    float *leaf; /* [leaves, total] gradients */
} side;

typedef struct setting {
    uint32_t leaves;
    int64_t total;
    bool is_sgd;
    double clip, loss_scale;
    int64_t bad;               /* element of leaf 0 that is not a number, -1: none */
    uint32_t n_groups, groups; /* of blocks in turn, and those that are moved; 0: one */
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
    s->slice = (dt_device_slice){.end = c->total};
    s->f = (dt_device_finish){
        .slice = &s->slice, .total = c->total, .loss_leaves = c->leaves, .n_losses = LOSSES, .n_slices = 1};
    s->f.n_groups = c->n_groups > 0 ? c->n_groups : 1;
    s->f.groups = c->n_groups > 0 ? c->groups : 1;
    s->leaf = take(s, bytes * c->leaves);
    s->f.grad = take(s, bytes * MOST_SLOTS);
    s->f.param = take(s, bytes);
    s->f.moment[0] = take(s, bytes);
    s->f.moment[1] = c->is_sgd ? NULL : take(s, bytes);
    s->f.trained = s->trained = take(s, (size_t)c->total / DT_DEVICE_GRANULE + 1);
    s->f.block_sum = take(s, ((size_t)c->total / DT_DEVICE_BLOCK + 1) * sizeof(double));
    s->f.seed = take(s, LOSSES * sizeof(double));
    s->f.control = s->control = take(s, sizeof(dt_device_control));
    s->f.state = take(s, sizeof(dt_device_state));
    s->f.result = take(s, sizeof(dt_device_result));
    dt_device_state state = {.updates = 6, .loss_scale = c->loss_scale};
    dt_device_control control = {.loss_seed = {0.25, 3}};
    for (uint32_t i = 0; i < 2 * s->f.n_groups; i++) {
        const uint32_t g = i / 2;
        state.group_updates[g] = 6 + g;
        control.first[g] = 7 + g;
        control.gradient_clip[g] = c->clip * (g + 1);
        control.consts[g][i % 2] = (dt_device_consts){.l2 = 1e-3f,
                                                      .beta1 = 0.9f,
                                                      .one_minus_beta1 = 0.1f,
                                                      .beta2 = 0.999f,
                                                      .one_minus_beta2 = 0.001f,
                                                      .rate = i % 2 == 0 ? 1e-2f * (float)(g + 1) : 100,
                                                      .inv_root = 3,
                                                      .eps = 1e-8f,
                                                      .keep = 0.999f};
    }
    put(s, s->f.state, &state, sizeof(state));
    put(s, s->control, &control, sizeof(control));
    uint8_t *mark = calloc(1, (size_t)c->total / DT_DEVICE_GRANULE + 1);
    for (int64_t i = 0; i < c->total / DT_DEVICE_GRANULE; i++) {
        mark[i] = (uint8_t)(i % 3 != 1 ? 1 + i * DT_DEVICE_GRANULE / DT_DEVICE_BLOCK % s->f.n_groups : 0);
    }
    put(s, s->trained, mark, (size_t)c->total / DT_DEVICE_GRANULE);
    const size_t n_blocks = (size_t)(c->total - 1) / DT_DEVICE_BLOCK + 1;
    for (size_t i = 0; i < n_blocks; i++) {
        mark[i] = (uint8_t)(i % s->f.n_groups);
    }
    s->block_group = take(s, n_blocks);
    put(s, s->block_group, mark, n_blocks);
    s->f.block_group = s->f.n_groups > 1 ? s->block_group : NULL;
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
    s->f.loss[1] = s->f.n_groups > 1 ? NULL : s->f.loss[1]; /* of a group that is not moved */
}

static void fini(side *s)
{
    void *const all[] = {s->leaf,   s->f.grad,  s->f.param, s->f.moment[0], s->f.moment[1], s->trained, s->f.block_sum,
                         s->f.seed, s->control, s->f.state, s->f.result,    s->loss[0],     s->loss[1], s->block_group};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        s->ops->release(s->device, all[i]);
    }
}

/* Everything before the end of a step: gradients of leaves are there. */
static void begin(side *s, const setting *c)
{
    const float nan = NAN;
    double seed[LOSSES];
    init(s, c);
    assert_int_equal(s->ops->begin(s->device, &s->f, s->stream), DT_OK);
    get(s, seed, s->f.seed, sizeof(seed));
    assert_true(seed[0] == 0.25 * c->loss_scale && seed[1] == 3 * c->loss_scale);
    for (uint32_t l = 0; l < c->leaves; l++) {
        put_draws(s, s->leaf + l * c->total, 100 + l, c->total, 1, false);
    }
    if (c->bad >= 0) {
        put(s, s->leaf + c->bad, &nan, sizeof(nan));
    }
}

static void sum(side *s, const dt_device_node *node)
{
    const dt_device_piece piece = {.from = s->leaf, .leaf_stride = s->f.total, .n = s->f.total};
    const dt_device_sums f = {.slot = s->f.grad, .total = s->f.total, .piece = &piece, .n_pieces = 1, .node = *node};
    if (s->ops->sum(s->device, &f, s->stream) != DT_OK) {
        fail_msg("%u leaves: %s", node->n, dt_error_text());
    }
}

static void sum_all(side *s, uint32_t leaves)
{
    const dt_device_node node = {.n = leaves};
    sum(s, &node);
    assert_int_equal(s->ops->measure(s->device, &s->f, s->stream), DT_OK);
}

static void run(side *s, const setting *c)
{
    begin(s, c);
    sum_all(s, c->leaves);
    assert_int_equal(s->ops->apply(s->device, &s->f, s->stream), DT_OK);
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
    assert_memory_equal(x.group_updates, y.group_updates, sizeof(x.group_updates));
    for (uint32_t g = 0; g < host.f.n_groups; g++) {
        const uint64_t moved = x.applied ? host.f.groups >> g & 1 : 0;
        assert_int_equal(x.group_updates[g], 6 + g + moved);
        assert_true(c->bad >= 0 || fabs(x.group_norm[g] - y.group_norm[g]) <= 1e-14 * x.group_norm[g]);
    }
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
    for (uint32_t leaves = 1; leaves <= MAX_LEAVES; leaves *= 2) {
        check(&(setting){.leaves = leaves, .total = leaves > 8 ? 640 : MAX_TOTAL, .loss_scale = 1, .bad = -1});
    }
}

static void test_kinds(void **state)
{
    check(&(setting){.leaves = 8, .total = 64, .loss_scale = 1, .bad = -1});
    check(&(setting){.leaves = 8, .total = 8192 + 64, .is_sgd = true, .loss_scale = 1, .bad = -1});
    check(&(setting){.leaves = 4, .total = 8192, .clip = 0.5, .loss_scale = 1, .bad = -1});
    check(&(setting){.leaves = 4, .total = 8192, .clip = 1e9, .loss_scale = 1024, .bad = -1});
}

static void test_groups(void **state)
{
    for (uint32_t groups = 1; groups < 8; groups++) {
        check(&(setting){.leaves = 4, .total = 8192 + 64, .loss_scale = 1, .bad = -1, .n_groups = 3, .groups = groups});
    }
    check(&(setting){
        .leaves = 4, .total = MAX_TOTAL, .clip = 0.5, .loss_scale = 1024, .bad = -1, .n_groups = 8, .groups = 0xa5});
    check(&(setting){
        .leaves = 2, .total = 8192, .is_sgd = true, .loss_scale = 1, .bad = 4000, .n_groups = 2, .groups = 1});
}

/* Copies that follow: where the step was applied, and the group's updates are as many as they wait for. */
static void blend(side *s, float tau, uint64_t every, uint32_t applied, float *out)
{
    enum { N = 1000 };
    dt_device_result r = {.applied = applied};
    r.group_updates[5] = 6;
    dt_device_blend b = {.n = N, .every = every, .group = 5, .tau = tau};
    float *to = take(s, N * sizeof(float)), *from = take(s, N * sizeof(float));
    dt_device_result *result = take(s, sizeof(r));
    put(s, result, &r, sizeof(r));
    put_draws(s, to, 1, N, 1, false);
    put_draws(s, from, 2, N, 1, false);
    b.to = to;
    b.from = from;
    b.result = result;
    assert_int_equal(s->ops->blend(s->device, &b, s->stream), DT_OK);
    get(s, out, to, N * sizeof(float));
    s->ops->release(s->device, to);
    s->ops->release(s->device, from);
    s->ops->release(s->device, result);
}

static void test_copies_that_follow(void **state)
{
    enum { N = 1000 };
    static const struct {
        float tau;
        uint64_t every;
        uint32_t applied, moves;
    } c[] = {{0.1F, 1, 1, 1}, {1, 3, 1, 1}, {0.1F, 4, 1, 0}, {1, 1, 0, 0}};
    side host = {.ops = host_device_ops(), .device = host_device()};
    assert_int_equal(host.ops->stream_create(host.device, &host.stream), DT_OK);
    for (size_t k = 0; k < sizeof(c) / sizeof(c[0]); k++) {
        float x[N], y[N];
        blend(&host, c[k].tau, c[k].every, c[k].applied, x);
        blend(&gpu, c[k].tau, c[k].every, c[k].applied, y);
        assert_memory_equal(x, y, sizeof(x));
        for (int64_t i = 0; i < N; i++) {
            const float to = draw(1, i), from = draw(2, i);
            const float want = c[k].moves == 0 ? to : c[k].tau == 1 ? from : to + c[k].tau * (from - to);
            assert_true(fabsf(x[i] - want) <= 1e-6F);
            assert_int_equal(x[i] != to, c[k].moves);
        }
    }
    host.ops->stream_destroy(host.device, host.stream);
}

static void test_not_finite(void **state)
{
    check(&(setting){.leaves = 2, .total = 8192 + 64, .loss_scale = 1, .bad = 8191});
    check(&(setting){.leaves = 2, .total = MAX_TOTAL, .loss_scale = 1, .bad = MAX_TOTAL - 1});
    check(&(setting){.leaves = 2, .total = MAX_TOTAL, .is_sgd = true, .loss_scale = 1, .bad = 0});
}

/* ---- one of several ranks ---------------------------------------------------------------------------------------- */

enum { SHARED_LEAVES = 8, MOST_RANKS = 5 };

typedef struct part { /* a rank: its leaves of those that one rank has in `whole` */
    dt_tree_shape shape;
    dt_tree_node cover[DT_TREE_MAX_NODES];
    uint32_t n_nodes;
    dt_device_slice slice[2];
    side s;
} part;

/* Two buckets, as if the elements between them were frozen; the rank's slice of each. */
static void cut(part *p, int64_t total)
{
    const dt_range bucket[] = {{0, total / 2 / DT_SLICE_UNIT * DT_SLICE_UNIT},
                               {total / 2 / DT_SLICE_UNIT * DT_SLICE_UNIT, total}};
    int64_t moment = 0;
    for (int k = 0; k < 2; k++) {
        const dt_range r = dt_rank_slice(bucket[k], p->shape.ranks, p->shape.rank);
        p->slice[k] = (dt_device_slice){.begin = r.begin, .end = r.end, .moment = moment};
        moment += r.end - r.begin;
    }
}

/* The gradients, moments and losses of its part, from one rank that has all of them. */
static void begin_part(part *p, side *whole, const setting *c)
{
    const uint32_t first = dt_tree_leaf_begin(&p->shape, p->shape.rank);
    const uint32_t own = dt_tree_leaf_begin(&p->shape, p->shape.rank + 1) - first;
    const size_t bytes = (size_t)c->total * sizeof(float);
    float *x = malloc(bytes);
    init(&p->s, c);
    cut(p, c->total);
    p->n_nodes = dt_tree_list_cover(&p->shape, p->shape.rank, p->cover);
    assert_in_range(p->n_nodes, 1, MOST_SLOTS);
    p->s.f.slice = p->slice;
    p->s.f.n_slices = 2;
    p->s.f.is_part = 1;
    for (uint32_t l = 0; l < own; l++) {
        get(whole, x, whole->leaf + (first + l) * c->total, bytes);
        put(&p->s, p->s.leaf + l * c->total, x, bytes);
    }
    for (int m = 0; m < (c->is_sgd ? 1 : 2); m++) {
        get(whole, x, whole->f.moment[m], bytes);
        for (int k = 0; k < 2; k++) {
            put(&p->s, p->s.f.moment[m] + p->slice[k].moment, x + p->slice[k].begin,
                (size_t)(p->slice[k].end - p->slice[k].begin) * sizeof(float));
        }
    }
    free(x);
    for (uint32_t k = 0; k < p->n_nodes; k++) {
        const dt_device_node node = {
            .first = (p->cover[k].index << p->cover[k].height) - first, .n = 1u << p->cover[k].height, .slot = k};
        sum(&p->s, &node);
    }
}

/* What ranks do between them, here by hand: all nodes, left to right, added as siblings meet. */
static float *sum_of_all(part *p, uint32_t ranks, int64_t total)
{
    float *value[SHARED_LEAVES];
    dt_tree_node at[SHARED_LEAVES];
    uint32_t top = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        for (uint32_t k = 0; k < p[r].n_nodes; k++) {
            value[top] = malloc((size_t)total * sizeof(float));
            get(&p[r].s, value[top], p[r].s.f.grad + k * total, (size_t)total * sizeof(float));
            at[top++] = p[r].cover[k];
            while (top > 1 && at[top - 2].height == at[top - 1].height && (at[top - 2].index & 1) == 0) {
                dt_optim_add(value[top - 2], value[top - 1], 0, total);
                free(value[--top]);
                at[top - 1] = (dt_tree_node){.height = at[top - 1].height + 1, .index = at[top - 1].index / 2};
            }
        }
    }
    assert_int_equal(top, 1);
    return value[0];
}

static void measure_parts(part *p, uint32_t ranks, const float *sum, int64_t total)
{
    double block[MAX_TOTAL / DT_DEVICE_BLOCK + 1], theirs[MAX_TOTAL / DT_DEVICE_BLOCK + 1];
    const size_t bytes = ((size_t)(total - 1) / DT_DEVICE_BLOCK + 1) * sizeof(double);
    for (uint32_t r = 0; r < ranks; r++) {
        for (int k = 0; k < 2; k++) {
            const dt_device_slice *s = &p[r].slice[k];
            put(&p[r].s, p[r].s.f.grad + s->begin, sum + s->begin, (size_t)(s->end - s->begin) * sizeof(float));
        }
        assert_int_equal(p[r].s.ops->measure(p[r].s.device, &p[r].s.f, p[r].s.stream), DT_OK);
        get(&p[r].s, theirs, p[r].s.f.block_sum, bytes);
        for (int k = 0; k < 2; k++) {
            for (int64_t b = p[r].slice[k].begin / DT_DEVICE_BLOCK; b * DT_DEVICE_BLOCK < p[r].slice[k].end; b++) {
                block[b] = theirs[b];
            }
        }
    }
    for (uint32_t r = 0; r < ranks; r++) {
        put(&p[r].s, p[r].s.f.block_sum, block, bytes);
        assert_int_equal(p[r].s.ops->apply(p[r].s.device, &p[r].s.f, p[r].s.stream), DT_OK);
    }
}

static void same_part(part *p, side *whole, const setting *c)
{
    dt_device_result x, y;
    get(whole, &x, whole->f.result, sizeof(x));
    get(&p->s, &y, p->s.f.result, sizeof(y));
    assert_int_equal(y.bad, -1); /* nobody here can know */
    y.bad = x.bad;
    assert_memory_equal(&x, &y, sizeof(x));
    for (int k = 0; k < 2; k++) {
        const dt_device_slice *s = &p->slice[k];
        same(whole, &p->s, whole->f.param + s->begin, p->s.f.param + s->begin, s->end - s->begin, false, "parameters");
        for (int m = 0; m < (c->is_sgd ? 1 : 2); m++) {
            same(whole, &p->s, whole->f.moment[m] + s->begin, p->s.f.moment[m] + s->moment, s->end - s->begin, false,
                 "moment");
        }
    }
}

/* Ranks that each have a part of the leaves and a part of the sum end in the bits of one that has all. */
static void check_parts(uint32_t ranks, const setting *c)
{
    part *p = calloc(ranks, sizeof(*p));
    side whole = gpu;
    begin(&whole, c);
    for (uint32_t r = 0; r < ranks; r++) {
        p[r].s = gpu;
        p[r].shape = (dt_tree_shape){.leaves = c->leaves, .ranks = ranks, .rank = r};
        begin_part(&p[r], &whole, c);
    }
    sum_all(&whole, c->leaves);
    assert_int_equal(gpu.ops->apply(gpu.device, &whole.f, gpu.stream), DT_OK);
    float *sum = sum_of_all(p, ranks, c->total);
    measure_parts(p, ranks, sum, c->total);
    for (uint32_t r = 0; r < ranks; r++) {
        same_part(&p[r], &whole, c);
        fini(&p[r].s);
    }
    free(sum);
    fini(&whole);
    free(p);
}

static void test_parts_of_ranks(void **state)
{
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
        check_parts(ranks,
                    &(setting){.leaves = SHARED_LEAVES, .total = MAX_TOTAL, .clip = 0.5, .loss_scale = 8, .bad = -1});
    }
    check_parts(2, &(setting){.leaves = SHARED_LEAVES, .total = 64, .is_sgd = true, .loss_scale = 1, .bad = -1});
    check_parts(3, &(setting){.leaves = SHARED_LEAVES, .total = 8192 + 64, .loss_scale = 1, .bad = 8192});
}

/* ---- sums of several launches ------------------------------------------------------------------------------------ */

/* Tensors of all lengths, more of them than a block of threads has elements, next to each other as in an arena. */
static uint32_t cut_pieces(side *s, dt_device_piece *piece)
{
    const int64_t length[] = {1, 3, 64, 65, 1024, 1, 1025, 4096, 7};
    int64_t at = 0;
    uint32_t n = 0;
    for (; n < DT_DEVICE_PIECES && at + 5000 < MAX_TOTAL; n++) {
        piece[n] = (dt_device_piece){.from = s->leaf + at,
                                     .leaf_stride = MAX_TOTAL,
                                     .n = length[n % (sizeof(length) / sizeof(length[0]))],
                                     .to = at};
        at += (piece[n].n + 63) / 64 * 64;
    }
    return n;
}

/* Leaves of launches, sums in slots, and gaps between tensors: the same bits on both sides, and of all at once. */
static void test_sums_of_several_launches(void **state)
{
    const setting c = {.leaves = 8, .total = MAX_TOTAL, .loss_scale = 1, .bad = -1};
    const dt_device_node one = {.n = 8};
    const dt_device_node step[] = {{.first = 0, .n = 4, .slot = 0},
                                   {.first = 4, .n = 1, .slot = 1},
                                   {.first = 5, .n = 1, .slot = 1, .n_before = 1},
                                   {.first = 6, .n = 2, .slot = 0, .n_before = 2}};
    const float minus_zero = -0.0f;
    side host = {.ops = host_device_ops(), .device = host_device()}, whole = gpu;
    side *const sides[] = {&host, &gpu, &whole};
    assert_int_equal(host.ops->stream_create(host.device, &host.stream), DT_OK);
    for (int i = 0; i < 3; i++) {
        dt_device_piece piece[DT_DEVICE_PIECES];
        begin(sides[i], &c);
        for (uint32_t l = 0; l < c.leaves; l++) {
            put(sides[i], sides[i]->leaf + l * c.total, &minus_zero, sizeof(minus_zero));
        }
        dt_device_sums f = {.slot = sides[i]->f.grad, .total = c.total, .piece = piece};
        f.n_pieces = cut_pieces(sides[i], piece);
        for (size_t k = 0; k < (i < 2 ? sizeof(step) / sizeof(step[0]) : 1); k++) {
            f.node = i < 2 ? step[k] : one;
            assert_int_equal(sides[i]->ops->sum(sides[i]->device, &f, sides[i]->stream), DT_OK);
        }
    }
    same(&host, &gpu, host.f.grad, gpu.f.grad, c.total, false, "sum of launches");
    same(&whole, &gpu, whole.f.grad, gpu.f.grad, c.total, false, "sum of all");
    float first[2];
    get(&gpu, first, gpu.f.grad, sizeof(first));
    assert_true(first[0] == 0 && !signbit(first[0]));
    assert_true(first[1] == 0); /* a gap, which nobody wrote */
    fini(&host);
    fini(&gpu);
    fini(&whole);
    host.ops->stream_destroy(host.device, host.stream);
}

static void test_refusals(void **state)
{
    dt_device_piece piece[DT_DEVICE_PIECES + 1] = {{.n = 64}};
    dt_device_sums f = {.piece = piece, .n_pieces = 1, .total = 64, .node = {.n = 3}};
    assert_int_equal(gpu.ops->sum(gpu.device, &f, gpu.stream), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "at most 64"));
    f.n_pieces = DT_DEVICE_PIECES + 1;
    assert_int_equal(gpu.ops->sum(gpu.device, &f, gpu.stream), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "33 gradients"));
    f.n_pieces = 1;
    piece[0].to = 2;
    assert_int_equal(gpu.ops->sum(gpu.device, &f, gpu.stream), DT_EINVAL);
    assert_non_null(strstr(dt_error_text(), "gradients of a sum begin at multiples of 4 elements"));
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
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_copies_that_follow),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_parts_of_ranks),
        cmocka_unit_test(test_sums_of_several_launches),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
