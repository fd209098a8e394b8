/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/leaf_grads.c: gradients of leaves that live at once do not overlap, none is summed before
 * its last call or written after, and together they take less than all of them.
 */
#include "harness.h"

#include "engine/device/device.h"
#include "engine/graph/leaf_grads.h"

static dt_plan *compile(const bench *b)
{
    const dt_plan_desc d = {
        .kernels = DT_KERNELS_DEVICE, .training = true, .reuse = true, .fuse = true, .cap = capacity};
    dt_plan *p = NULL;
    assert_int_equal(dt_plan_compile(b->g, &d, &p), DT_OK);
    return p;
}

static dt_leaf_grads plan(const dt_plan *p, uint32_t leaves, const uint32_t *due, uint32_t n_due)
{
    const dt_leaf_grads_desc d = {.leaves = leaves, .due = due, .n_due = n_due};
    dt_leaf_grads g = {0};
    assert_int_equal(dt_leaf_grads_plan(p, &d, &g), DT_OK);
    return g;
}

static int by_size(const void *a, const void *b)
{
    const dt_leaf_grad *x = *(const dt_leaf_grad *const *)a, *y = *(const dt_leaf_grad *const *)b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

static bool collides(const dt_leaf_grad *x, size_t room, const dt_leaf_grad *y)
{
    return x->first <= y->summed && y->first <= x->summed && room < y->room + (size_t)y->stride * sizeof(float) &&
           y->room < room + (size_t)x->stride * sizeof(float);
}

/* The same by another way: the largest first, each at 0 or at the end of one that has a place, the lowest free one. */
static void check_rooms(const dt_leaf_grads *g)
{
    const dt_leaf_grad *order[256];
    size_t bytes = 0;
    assert_true(g->n <= 256);
    for (uint32_t i = 0; i < g->n; i++) {
        order[i] = &g->grad[i];
    }
    qsort(order, g->n, sizeof(order[0]), by_size);
    for (uint32_t i = 0; i < g->n; i++) {
        size_t lowest = SIZE_MAX;
        for (uint32_t k = 0; k <= i; k++) {
            const size_t room = k == i ? 0 : order[k]->room + (size_t)order[k]->stride * sizeof(float);
            bool is_free = room < lowest;
            for (uint32_t j = 0; j < i && is_free; j++) {
                is_free = !collides(order[i], room, order[j]);
            }
            lowest = is_free ? room : lowest;
        }
        assert_int_equal(order[i]->room, lowest);
        const size_t end = lowest + (size_t)order[i]->stride * sizeof(float);
        bytes = end > bytes ? end : bytes;
    }
    assert_int_equal(g->bytes, bytes);
}

static void check_places(const dt_plan *p, const dt_leaf_grads *g)
{
    check_rooms(g);
    for (uint32_t i = 0; i < g->n; i++) {
        const dt_leaf_grad *x = &g->grad[i];
        assert_true(x->room % 256 == 0 && x->stride % 64 == 0 && x->stride >= x->count);
        assert_true(x->room + (size_t)x->stride * sizeof(float) <= g->bytes);
        assert_true(x->first <= x->last && x->last <= x->summed);
        assert_int_equal(dt_plan_last_write(p, x->at, x->at + x->count), x->last);
        assert_true(i == 0 || g->grad[i - 1].summed <= x->summed);
        assert_ptr_equal(dt_leaf_grads_find(g, x->at), x);
        for (uint32_t k = 0; k < i; k++) {
            const dt_leaf_grad *y = &g->grad[k];
            const bool in_time = x->first <= y->summed && y->first <= x->summed;
            const bool in_space = x->room < y->room + (size_t)y->stride * sizeof(float) &&
                                  y->room < x->room + (size_t)x->stride * sizeof(float);
            assert_false(in_time && in_space);
            assert_true(x->at >= y->at + y->count || y->at >= x->at + x->count);
        }
    }
}

/* Of so many leaves that each is summed at once, and of one, whose small gradients wait for each other. */
static void test_places(void **state)
{
    for (int k = 0; k < N_MODELS; k++) {
        bench b;
        bench_open(&b, models[k].m, 2, 1, 1);
        dt_plan *p = compile(&b);
        dt_leaf_grads few = plan(p, 1 << 20, NULL, 0), many = plan(p, 1, NULL, 0);
        check_places(p, &few);
        check_places(p, &many);
        size_t all = 0;
        for (uint32_t i = 0; i < few.n; i++) {
            const dt_leaf_grad *x = &few.grad[i];
            assert_int_equal(x->summed, x->last);
            all += (size_t)x->stride * sizeof(float);
        }
        assert_int_equal(many.n, few.n);
        assert_true(few.n > 2 && few.bytes < all);
        assert_true(many.bytes <= all);
        assert_null(dt_leaf_grads_find(&few, few.grad[0].at + 1));
        dt_leaf_grads_fini(&few);
        dt_leaf_grads_fini(&many);
        dt_plan_destroy(p);
        bench_close(&b);
    }
}

/* What is complete by a call that was named is summed there, though little of it is there. */
static void test_due(void **state)
{
    bench b;
    bench_open(&b, models[0].m, 2, 1, 1);
    dt_plan *p = compile(&b);
    dt_leaf_grads late = plan(p, 1, NULL, 0);
    const uint32_t due = late.grad[0].last;
    assert_true(late.n > 1 && late.n < DT_DEVICE_PIECES && late.grad[0].summed == late.grad[late.n - 1].last);
    dt_leaf_grads early = plan(p, 1, &due, 1);
    check_places(p, &early);
    for (uint32_t i = 0; i < early.n; i++) {
        const dt_leaf_grad *x = &early.grad[i];
        assert_int_equal(x->summed, x->last <= due ? due : late.grad[0].summed);
    }
    dt_leaf_grads_fini(&late);
    dt_leaf_grads_fini(&early);
    dt_plan_destroy(p);
    bench_close(&b);
}

static void record_twice(dt_graph *g)
{
    dt_tensor *x = dt_linear(g, I(g, "nodes"), P(g, "w"), NULL);
    x = dt_linear(g, dt_tanh(g, x), P(g, "w"), NULL);
    x = dt_mul(g, x, P(g, "scale")); /* not by an op that adds by itself */
    risk_loss(g, x);
}

/* A parameter that is used twice has one place, from the first of its calls to the last; what is read before anything
 * is written there must be zero. */
static void test_used_twice(void **state)
{
    static const param_spec spec[] = {{"w", NODE_FEATURES, NODE_FEATURES}, {"scale", NODE_FEATURES, 0}, {NULL, 0, 0}};
    static const model twice = {spec, record_twice};
    bench b;
    bench_open(&b, &twice, 2, 1, 1);
    dt_plan *p = compile(&b);
    dt_leaf_grads g = plan(p, 1, NULL, 0);
    check_places(p, &g);
    assert_int_equal(g.n, 2);
    const dt_leaf_grad *w = g.grad[0].count == NODE_FEATURES ? &g.grad[1] : &g.grad[0];
    assert_int_equal(w->count, NODE_FEATURES * NODE_FEATURES);
    assert_true(w->first < w->last && !w->is_read_first);
    dt_leaf_grads_fini(&g);
    dt_plan_destroy(p);
    bench_close(&b);
}

static void test_without_gradients(void **state)
{
    bench b;
    bench_open(&b, models[0].m, 2, 1, 1);
    const dt_plan_desc d = {.kernels = DT_KERNELS_DEVICE, .reuse = true, .cap = capacity};
    dt_plan *p = NULL;
    assert_int_equal(dt_plan_compile(b.g, &d, &p), DT_OK);
    dt_leaf_grads g = plan(p, 8, NULL, 0);
    assert_true(g.n == 0 && g.bytes == 0);
    dt_leaf_grads_fini(&g);
    dt_plan_destroy(p);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_due),
        cmocka_unit_test(test_used_twice),
        cmocka_unit_test(test_without_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
