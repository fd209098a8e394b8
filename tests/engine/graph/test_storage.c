/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/engine/graph/storage.c: what is stored in half, and what that makes of a plan. The numbers:
 * cuda/test_kernels.c.
 */
#include "harness.h"

#include "engine/graph/op.h"
#include "engine/graph/plan_internal.h"
#include "engine/graph/storage.h"

/* of real batches, where places are not all of the least size */
static const int64_t many[N_SYMBOLS] = {2400, 8000, 900, 300};

static dt_plan *plan_of(bench *b, uint32_t half, bool training, bool recompute)
{
    const dt_plan_desc d = {.kernels = DT_KERNELS_DEVICE,
                            .training = training,
                            .reuse = true,
                            .fuse = true,
                            .recompute = recompute,
                            .cap = many,
                            .half = half};
    dt_plan *p = NULL;
    if (dt_plan_compile(b->g, &d, &p) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    return p;
}

static bool is_half(int32_t dtype)
{
    return dtype == DT_BF16 || dtype == DT_F16;
}

/* Of one call: what the rule of its op demands, and that what is alike is alike. */
static void check_call(const dt_plan *p, const dt_plan_call *c)
{
    const dt_node *n = &p->ir.node[c->node];
    const dt_op_storage r = dt_op_storage_of(n->op);
    int32_t alike = 0;
    for (uint32_t k = 0; k < c->n_in + c->n_out; k++) {
        const bool is_in = k < c->n_in;
        const uint32_t bit = 1u << (is_in ? k : k - c->n_in);
        const int32_t value = is_in ? n->in[k] : n->out[k - c->n_in], dtype = p->view[c->view + k].dtype;
        if (value < 0 || (is_in && !dt_ir_reads(n, k))) {
            continue;
        }
        const bool is_weight = is_in && (r.weight_in & bit) != 0;
        assert_false(is_half(dtype) && ((is_in ? r.full_in : r.full_out) & bit) != 0);
        assert_false(is_half(dtype) && p->ir.value[value].kind != DT_VALUE_NODE && !is_weight);
        if (((is_in ? r.alike_in : r.alike_out) & bit) != 0) {
            assert_true(alike == 0 || alike == dtype);
            alike = dtype;
        }
    }
}

static void test_calls_follow_the_table(void **state)
{
    for (int m = 0; m < N_MODELS; m++) {
        bench b;
        bench_open(&b, models[m].m, 5, 3, 2);
        for (int i = 0; i < 8; i++) {
            dt_plan *p = plan_of(&b, i % 2 == 0 ? DT_BF16 : DT_F16, i / 2 % 2 != 0, i / 4 != 0);
            uint32_t n_half = 0;
            for (uint32_t c = 0; c < p->n_calls; c++) {
                check_call(p, &p->call[c]);
            }
            for (uint32_t v = 0; v < p->n_views; v++) {
                n_half += is_half(p->view[v].dtype);
            }
            for (uint32_t v = p->output_view; v < p->n_views; v++) {
                assert_false(is_half(p->view[v].dtype)); /* outputs and losses */
            }
            assert_true(n_half > 0);
            dt_plan_destroy(p);
        }
        bench_close(&b);
    }
}

static void test_bytes(void **state)
{
    for (int m = 0; m < N_MODELS; m++) {
        bench b;
        bench_open(&b, models[m].m, 5, 3, 2);
        dt_plan *full = plan_of(&b, 0, true, false), *half = plan_of(&b, DT_BF16, true, false);
        assert_true(dt_plan_info_get(half)->arena_bytes <= dt_plan_info_get(full)->arena_bytes);
        assert_true(dt_plan_cost_get(half, many).bytes < dt_plan_cost_get(full, many).bytes);
        assert_true(dt_plan_cost_get(half, many).flops == dt_plan_cost_get(full, many).flops);
        dt_plan_destroy(half);
        dt_plan_destroy(full);
        bench_close(&b);
    }
}

/* What is computed again is stored as it was the first time, so recomputing changes no bit. */
static void test_clones_are_stored_like_the_first(void **state)
{
    bench b;
    bench_open(&b, &model_gat, 5, 3, 2);
    dt_plan *p = plan_of(&b, DT_BF16, true, true);
    uint32_t n_clones = 0;
    for (int32_t i = 0; i < p->ir.n_nodes; i++) {
        const dt_node *n = &p->ir.node[i];
        for (int32_t k = 0; n->is_clone && k < i; k++) {
            const dt_node *first = &p->ir.node[k];
            if (first->op == n->op && first->region != 0 && memcmp(&first->attr, &n->attr, sizeof(n->attr)) == 0 &&
                first->in[1] == n->in[1]) {
                assert_int_equal(p->ir.value[first->out[0]].is_half, p->ir.value[n->out[0]].is_half);
                n_clones++;
            }
        }
    }
    assert_true(n_clones > 0);
    dt_plan_destroy(p);
    bench_close(&b);
}

static void record_head(dt_graph *g)
{
    dt_tensor *h = dt_linear(g, dt_linear(g, I(g, "nodes"), P(g, "w0"), NULL), P(g, "w1"), P(g, "b1"));
    dt_tensor *logit = dt_merge(g, dt_slice(g, dt_affine(g, h, 2, 0), 0, 1));
    (void)g->api->loss(g, "risk", dt_bce_logits(g, logit, I(g, "label"), I(g, "label_weight")), 1, "N");
}

/* From the last product on everything is f32, also the bias that the product adds. */
static void test_what_leads_to_a_loss_is_full(void **state)
{
    static const param_spec spec[] = {{"w0", 4, 5}, {"w1", 3, 4}, {"b1", 3, 0}, {NULL, 0, 0}};
    static const model m = {spec, record_head};
    bench b;
    bench_open(&b, &m, 5, 3, 2);
    dt_plan *p = plan_of(&b, DT_BF16, true, false);
    dt_str text = {0};
    dt_plan_print(p, &text);
    const char *at = dt_str_text(&text);
    const char *const want[] = {"N 4 bf16 = linear x=nodes w=m.w0",
                                "N 3 f32 = linear x=",
                                "N 3 f32 = affine x=",
                                "N 1 f32 = slice x=",
                                "N 3 bf16 = slice_bwd",
                                "N 4 bf16 = linear_dx",
                                "+grad(m.w0) 4 5 f32 = linear_dw x=nodes"};
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        if (strstr(at, want[i]) == NULL) {
            fail_msg("no %s in\n%s", want[i], at);
        }
    }
    for (uint32_t c = 0; c < p->n_calls; c++) {
        const dt_node *n = &p->ir.node[p->call[c].node];
        if (n->op == DT_OPX_LINEAR && n->in[2] >= 0) {
            assert_int_equal(p->view[p->call[c].view + 1].dtype, DT_BF16); /* w */
            assert_int_equal(p->view[p->call[c].view + 2].dtype, DT_F32);  /* b */
        }
    }
    dt_str_fini(&text);
    dt_plan_destroy(p);
    bench_close(&b);
}

static void record_features(dt_graph *g)
{
    dt_tensor *square = dt_mul(g, I(g, "nodes"), I(g, "nodes"));
    dt_tensor *mean = dt_unary(g, DT_FN_LOG, dt_affine(g, dt_segment_mean(g, square, I(g, "ptr")), 1, 1e-12), 0);
    dt_tensor *h = dt_tanh(g, dt_linear(g, mean, P(g, "w"), NULL));
    (void)g->api->loss(g, "sum", dt_sum(g, dt_linear(g, dt_mul(g, h, h), P(g, "v"), NULL)), 1, "B");
}

/* A square beyond 65504, and 1e-12, which fp16 does not know, are f32; what a parameter made is not. */
static void test_what_is_made_of_data_is_full(void **state)
{
    static const param_spec spec[] = {{"w", 4, 5}, {"v", 1, 4}, {NULL, 0, 0}};
    static const model m = {spec, record_features};
    bench b;
    bench_open(&b, &m, 5, 3, 2);
    dt_plan *p = plan_of(&b, DT_F16, true, false);
    for (uint32_t c = 0; c < p->n_calls; c++) {
        const dt_node *n = &p->ir.node[p->call[c].node];
        const bool is_feature = n->op == DT_OPX_SEGMENT_MEAN || n->op == DT_OPX_AFFINE ||
                                (n->op == DT_OPX_UNARY && n->attr.i[0] == DT_FN_LOG) ||
                                (n->op == DT_OPX_BINARY && p->ir.value[n->in[0]].kind == DT_VALUE_FIELD);
        if (is_feature) {
            assert_int_equal(p->view[p->call[c].view + p->call[c].n_in].dtype, DT_F32);
        } else if (n->op == DT_OPX_BINARY) {
            assert_int_equal(p->view[p->call[c].view + p->call[c].n_in].dtype, DT_F16);
        }
    }
    dt_plan_destroy(p);
    bench_close(&b);
}

static void test_the_cpu_stores_in_f32(void **state)
{
    bench b;
    dt_plan *p = NULL;
    bench_open(&b, &model_mlp, 5, 3, 2);
    const dt_plan_desc d = {.kernels = DT_KERNELS_CPU, .training = true, .cap = capacity, .half = DT_BF16};
    assert_int_equal(dt_plan_compile(b.g, &d, &p), DT_EINVAL);
    assert_string_equal(dt_error_text(), "the kernel set cpu stores only f32");
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_follow_the_table),           cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_clones_are_stored_like_the_first), cmocka_unit_test(test_what_leads_to_a_loss_is_full),
        cmocka_unit_test(test_what_is_made_of_data_is_full),     cmocka_unit_test(test_the_cpu_stores_in_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
