/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/select.c.
 */
#include "harness.h"

#include "engine/graph/select.h"

static void record(dt_graph *g)
{
    dt_tensor *h = dt_relu(g, dt_linear(g, I(g, "nodes"), P(g, "w"), NULL));
    (void)g->api->output(g, "h", h);
    (void)g->api->loss(g, "both", dt_sum(g, dt_linear(g, h, P(g, "top"), NULL)), 1, "N");
    (void)g->api->loss(g, "one", dt_sum(g, dt_affine(g, h, 3, 0)), 0.5, "B");
}

static const param_spec spec[] = {{"w", 3, 5}, {"top", 2, 3}, {"unused", 2, 2}, {NULL, 0, 0}};
static const model m = {spec, record};

static void says(const char *part)
{
    if (strstr(dt_error_text(), part) == NULL) {
        fail_msg("\"%s\" says nothing of %s", dt_error_text(), part);
    }
}

static void test_pick(void **state)
{
    static const char *const names[] = {"one", "both"}, *const twice[] = {"one", "one"}, *const strange[] = {"none"};
    bench b;
    const dt_graph_loss *loss = NULL;
    bench_open(&b, &m, 2, 1, 1);
    assert_int_equal(dt_graph_select_losses(b.g, strange, 1), DT_EINVAL);
    says("no loss none is recorded; recorded are: both, one");
    assert_int_equal(dt_graph_select_losses(b.g, twice, 2), DT_EINVAL);
    says("loss one is requested twice");
    assert_int_equal(dt_graph_losses(b.g, &loss), 2);
    assert_int_equal(dt_graph_select_losses(b.g, names, 2), DT_OK);
    assert_int_equal(dt_graph_losses(b.g, &loss), 2);
    assert_string_equal(loss[0].name, "one");
    assert_string_equal(loss[0].symbol, "B");
    assert_string_equal(loss[1].name, "both");
    assert_int_equal(dt_graph_select_losses(b.g, names, 1), DT_OK);
    dt_ir *ir = bench_ir(&b);
    assert_int_equal(ir->n_losses, 1);
    assert_int_equal(ir->n_outputs, 0);
    assert_string_equal(ir->loss[0].name, "one");
    bench_close(&b);
}

static void test_drop(void **state)
{
    bench b;
    const dt_graph_loss *loss = NULL;
    bench_open(&b, &m, 2, 1, 1);
    dt_graph_remove_loss(b.g, 0);
    assert_int_equal(dt_graph_losses(b.g, &loss), 1);
    assert_string_equal(loss[0].name, "one");
    dt_ir *ir = bench_ir(&b);
    assert_int_equal(ir->n_losses, 1);
    assert_int_equal(ir->n_outputs, 1); /* those stay */
    assert_string_equal(ir->loss[0].name, "one");
    bench_close(&b);
}

static void test_reach_and_hold(void **state)
{
    bench b;
    bool reached[3] = {false}; /* in the order of spec */
    bench_open(&b, &m, 2, 1, 1);
    assert_int_equal(dt_graph_params_of_loss(b.g, "fun", reached), DT_EINVAL);
    says("no loss fun is recorded");
    assert_int_equal(dt_graph_params_of_loss(b.g, "both", reached), DT_OK);
    assert_true(reached[0] && reached[1] && !reached[2]);
    assert_int_equal(dt_graph_params_of_loss(b.g, "one", reached), DT_OK);
    assert_true(reached[0] && !reached[1] && !reached[2]);
    dt_graph_freeze_params(b.g, reached);
    assert_int_equal(dt_graph_params_of_loss(b.g, "both", reached), DT_OK); /* as if they were frozen */
    assert_true(!reached[0] && reached[1] && !reached[2]);
    bench_close(&b);
}

static void count_call(void *user, uint32_t call)
{
    (*(uint32_t *)user)++;
}

static void test_needed_by_outputs(void **state)
{
    static const char *const none[] = {NULL}, *const all[] = {"other", "h", NULL};
    bench b;
    bool needed[3] = {false};
    bench_open(&b, &m, 2, 1, 1);
    assert_int_equal(dt_graph_params_of_outputs(b.g, none, needed), DT_OK);
    assert_true(needed[0] && !needed[1] && !needed[2]); /* "top" is of a loss alone */
    dt_graph_freeze_params(b.g, needed);
    assert_int_equal(dt_graph_params_of_outputs(b.g, none, needed), DT_OK);
    assert_true(needed[0] && !needed[1]); /* trained or not */
    assert_int_equal(dt_graph_params_of_outputs(b.g, all, needed), DT_OK);
    assert_true(!needed[0] && !needed[1] && !needed[2]);
    bench_close(&b);
}

typedef struct ran { /* what a run of some groups did */
    uint32_t calls;
    double loss[2];
    double grad[512];
} ran;

static void run_groups(bench *b, const dt_plan *p, uint32_t groups, ran *out)
{
    static const double seed[] = {0.25, 0.5};
    const dt_kernel_run how = {.seed = 3, .step = 7, .phase = 1, .training = 1};
    dt_exec *e = NULL;
    *out = (ran){0};
    assert_in_range(b->params.total, 1, 512);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    const dt_exec_feed feed = {.size = b->s.size,
                               .field = b->s.field,
                               .params = b->value,
                               .grads = out->grad,
                               .loss_seed = seed,
                               .loss = out->loss,
                               .run = &how,
                               .after = count_call,
                               .after_user = &out->calls,
                               .groups = groups};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    dt_exec_destroy(e);
}

/* Parameter i's gradient is zero, or the same in both. */
static void same_gradient(const bench *b, uint32_t i, const ran *one, const ran *all, bool is_there)
{
    const dt_param *p = &b->params.param[i];
    bool any = false;
    for (int64_t k = p->offset; k < p->offset + p->count; k++) {
        any = any || one->grad[k] != 0;
        assert_true(one->grad[k] == (is_there ? all->grad[k] : 0));
    }
    assert_int_equal(any, is_there);
}

/* The loss "both" moves top alone, though it depends on w, which "one" moves. */
static void test_groups(void **state)
{
    static const uint32_t loss[] = {0, 1}, param[] = {1, 0, 0};
    bench b;
    bool reached[3] = {false};
    dt_plan *p = NULL;
    ran all, top, w;
    bench_open(&b, &m, 7, 1, 1);
    dt_graph_set_groups(b.g, 2, loss, param);
    assert_int_equal(dt_graph_params_of_loss(b.g, "both", reached), DT_OK);
    assert_true(!reached[0] && reached[1] && !reached[2]);
    assert_int_equal(dt_graph_params_of_loss(b.g, "one", reached), DT_OK);
    assert_true(reached[0] && !reached[1] && !reached[2]);
    assert_int_equal(dt_plan_compile(b.g, &plain, &p), DT_OK);
    run_groups(&b, p, 0, &all);
    run_groups(&b, p, 1, &top);
    run_groups(&b, p, 2, &w);
    assert_int_equal(all.calls, dt_plan_info_get(p)->n_calls);
    assert_true(top.calls < all.calls && w.calls < all.calls);
    assert_true(top.calls + w.calls > all.calls); /* what both need */
    assert_true(top.loss[0] == all.loss[0] && top.loss[1] == 0);
    assert_true(w.loss[0] == 0 && w.loss[1] == all.loss[1]);
    same_gradient(&b, 0, &top, &all, false);
    same_gradient(&b, 1, &top, &all, true);
    same_gradient(&b, 0, &w, &all, true);
    same_gradient(&b, 1, &w, &all, false);
    dt_plan_destroy(p);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pick),           cmocka_unit_test(test_drop),
        cmocka_unit_test(test_reach_and_hold), cmocka_unit_test(test_needed_by_outputs),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
