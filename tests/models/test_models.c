/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped models in a fake host: ports, sizes of presets and options, parameters all used, refusals.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct bench {
    mock_host host;
    const dt_component *c;
    const dt_model_ops *ops;
    void *config, *self;
    mock_params params;
    mock_graph graph;
    dt_tensor *out[4];
} bench;

static const dt_dim world_dims[] = {{"H", 256}, {"T", 15}, {"F", 25}, {"dt_ms", 200}};

static dt_status bench_open(bench *b, const char *id, const char *const *set, const dt_dim *dims, uint32_t n_dims)
{
    memset(b, 0, sizeof(*b));
    mock_host_init(&b->host);
    b->c = mock_load("models", id, id);
    assert_non_null(b->c);
    assert_int_equal(b->c->kind, DT_KIND_MODEL);
    b->ops = b->c->ops;
    b->config = mock_config(b->c, set);
    b->self = calloc(1, b->c->state_size);
    assert_true(b->config != NULL && b->self != NULL);
    if (b->c->check != NULL) {
        DT_TRY_H(b->c->check(&b->host.host, b->config));
    }
    return b->ops->create(b->self, &b->host.host, b->config, dims, n_dims);
}

/* Registers parameters and records the graph; every parameter must be used. */
static void bench_record(bench *b)
{
    for (uint32_t n = 1, left = 0; left == 0; n++) { /* whichever is refused, the model says so */
        mock_params_init(&b->params);
        b->params.fails_at = n;
        const dt_status st = b->ops->params(b->self, &b->params.reg);
        left = b->params.fails_at;
        assert_int_equal(st, left > 0 ? DT_OK : DT_EINVAL);
    }
    mock_params_init(&b->params);
    assert_int_equal(b->ops->params(b->self, &b->params.reg), DT_OK);
    mock_graph_init(&b->graph, &b->params);
    uint32_t n_in = 0, n_out = 0;
    const dt_port *in_port = b->ops->inputs(b->self, &n_in);
    assert_non_null(b->ops->outputs(b->self, &n_out));
    dt_tensor *in[8] = {NULL};
    for (uint32_t i = 0; i < n_in; i++) {
        in[i] = mock_graph_tensor(&b->graph, in_port[i].name);
    }
    assert_int_equal(b->ops->forward(b->self, &b->graph.graph, in, b->out), DT_OK);
    assert_string_equal(b->graph.error, "");
    for (uint32_t i = 0; i < n_out; i++) {
        assert_non_null(b->out[i]);
    }
    for (uint32_t i = 0; i < b->params.n; i++) {
        if (!b->params.param[i].used) {
            fail_msg("%s registers %s and never uses it", b->c->id, b->params.param[i].name);
        }
    }
}

static void bench_close(bench *b)
{
    b->ops->destroy(b->self);
    assert_int_equal(b->host.n_live, 0);
    free(b->self);
    free(b->config);
}

static void assert_port(const dt_port *port, uint32_t n, const char *name, const char *dims, uint32_t dtype)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(port[i].name, name) == 0) {
            assert_string_equal(port[i].dims, dims);
            assert_int_equal(port[i].dtype, dtype);
            return;
        }
    }
    fail_msg("no port %s", name);
}

static void assert_param(bench *b, const char *name, int64_t rows, int64_t cols)
{
    const mock_param *p = mock_params_find(&b->params, name);
    if (p == NULL) {
        fail_msg("no parameter %s", name);
        return;
    }
    assert_int_equal(p->dim[0], rows);
    assert_int_equal(p->n_dims, cols > 0 ? 2 : 1);
    assert_int_equal(p->dim[1], cols);
}

/* ---- risk_gnn --------------------------------------------------------------------------------------------------- */

static void test_gnn_guide_is_graph_attention(void **test)
{
    bench b;
    assert_int_equal(bench_open(&b, "risk_gnn", NULL, NULL, 0), DT_OK);
    uint32_t n = 0;
    const dt_port *port = b.ops->inputs(b.self, &n);
    assert_int_equal(n, 5);
    assert_port(port, n, "row_key", "N", DT_I64); /* the key of dropout */
    assert_port(port, n, "nodes", "N 9", DT_F32);
    assert_port(port, n, "rowptr", "N+1", DT_I32);
    assert_port(port, n, "col", "E", DT_I32);
    assert_port(port, n, "edges", "E 4", DT_F32);
    port = b.ops->outputs(b.self, &n);
    assert_int_equal(n, 2);
    assert_port(port, n, "embedding", "N 256", DT_F32);
    assert_port(port, n, "risk", "N", DT_F32);

    bench_record(&b);
    assert_param(&b, "edge.w", 16, 4);
    assert_param(&b, "in.w", 256, 9 + 16 + 14); /* node, mean of edges, nearest of 7 slots */
    assert_param(&b, "layer.0.w", 256, 256);
    assert_param(&b, "layer.2.w_e", 8, 8 + 16);                                      /* slots first */
    assert_int_equal(mock_params_find(&b.params, "layer.2.w_e")->init, DT_INIT_EYE); /* head k starts from slot k */
    assert_param(&b, "layer.2.a_dst", 256, 0);
    /* an attention vector of a head maps 32 numbers to one logit: Glorot's bound */
    assert_int_equal(mock_params_find(&b.params, "layer.2.a_dst")->init, DT_INIT_UNIFORM);
    assert_true(fabs(mock_params_find(&b.params, "layer.2.a_dst")->a - sqrt(6.0 / 33)) < 1e-12);
    assert_true(fabs(mock_params_find(&b.params, "layer.0.a_src")->a - sqrt(6.0 / 33)) < 1e-12);
    assert_param(&b, "risk.0.w", 128, 256);
    assert_param(&b, "risk.1.w", 1, 128);
    assert_null(mock_params_find(&b.params, "layer.3.w"));
    assert_int_equal(mock_graph_count(&b.graph, DT_OP_GAT), 3);
    assert_int_equal(mock_graph_count(&b.graph, DT_OP_GRAPH_QK), 0);
    for (uint32_t i = 0; i < b.graph.n; i++) {
        if (b.graph.tensor[i].op == DT_OP_GAT) {
            assert_int_equal(b.graph.tensor[i].attr.i[0], 8);
        }
    }
    /* edge 80, in 256*40, a layer 256*256 + 5*256 + 8*24, risk 128*256 + 128 + 129 */
    assert_int_equal(mock_params_total(&b.params), 80 + 10240 + 3 * (65536 + 1280 + 192) + 32768 + 128 + 129);
    bench_close(&b);
}

static void test_gnn_15m_is_a_transformer_of_the_documented_size(void **test)
{
    bench b;
    const char *const set[] = {"preset=15m", NULL};
    assert_int_equal(bench_open(&b, "risk_gnn", set, NULL, 0), DT_OK);
    bench_record(&b);
    assert_int_equal(mock_graph_count(&b.graph, DT_OP_GRAPH_QK), 3);
    assert_int_equal(mock_graph_count(&b.graph, DT_OP_GAT), 0);
    assert_param(&b, "layer.1.ffn0.w", 1024, 256);
    assert_param(&b, "layer.1.ffn1.w", 256, 1024);
    assert_in_range(mock_params_total(&b.params), 2300000, 2500000); /* 2.4 million */
    bench_close(&b);
}

static void test_gnn_options_win_over_the_preset(void **test)
{
    bench b;
    const char *const set[] = {"preset=15m", "layer=gat", "hidden=96", "heads=4", "layers=1", "pose=false", NULL};
    assert_int_equal(bench_open(&b, "risk_gnn", set, NULL, 0), DT_OK);
    uint32_t n = 0;
    assert_port(b.ops->outputs(b.self, &n), 2, "embedding", "N 96", DT_F32);
    bench_record(&b);
    assert_int_equal(mock_graph_count(&b.graph, DT_OP_GAT), 1);
    assert_param(&b, "in.w", 96, 5 + 16 + 14); /* without x, y, sin, cos */
    assert_param(&b, "layer.0.w", 96, 96);
    assert_param(&b, "layer.0.w_e", 4, 8 + 16);
    bench_close(&b);
}

/* The fixed one is the net as it ever was; the other one has four constants more. */
static void test_gnn_normalised_has_constants(void **test)
{
    bench b;
    int64_t total[2];
    for (int i = 0; i < 2; i++) {
        const char *const set[] = {"hidden=32", "heads=4", i == 0 ? "normalise=fixed" : "normalise=store", NULL};
        assert_int_equal(bench_open(&b, "risk_gnn", set, NULL, 0), DT_OK);
        bench_record(&b);
        total[i] = mock_params_total(&b.params);
        if (i == 1) {
            assert_param(&b, "constant.node_shift", 9, 0);
            assert_param(&b, "constant.edge_scale", 4, 0);
            assert_int_equal(mock_params_find(&b.params, "constant.node_scale")->init,
                             DT_INIT_CONST | DT_INIT_CONSTANT);
        } else {
            assert_null(mock_params_find(&b.params, "constant.node_scale"));
        }
        bench_close(&b);
    }
    assert_int_equal(total[1] - total[0], 2 * (9 + 4));
}

/* No dropout, no key: the port is asked for only when it is used. */
static void test_dropout_asks_for_a_key(void **test)
{
    static const char *const ids[] = {"risk_gnn", "world_lstm", "world_gru"};
    static const char *const keys[] = {"row_key", "seq_key", "seq_key"};
    const char *const none[] = {"dropout=0", NULL};
    for (uint32_t i = 0; i < 3; i++) {
        for (int with = 0; with < 2; with++) {
            bench b;
            assert_int_equal(bench_open(&b, ids[i], with ? NULL : none, world_dims, 4), DT_OK);
            uint32_t n = 0;
            const dt_port *port = b.ops->inputs(b.self, &n);
            bool has_key = false;
            for (uint32_t k = 0; k < n; k++) {
                has_key = has_key || strcmp(port[k].name, keys[i]) == 0;
            }
            assert_int_equal(has_key, with);
            bench_record(&b);
            assert_int_equal(mock_graph_count(&b.graph, DT_OP_DROPOUT) > 0, with);
            bench_close(&b);
        }
    }
}

static void test_gnn_refuses_heads_that_do_not_divide_hidden(void **test)
{
    bench b;
    const char *const set[] = {"hidden=100", NULL};
    assert_int_equal(bench_open(&b, "risk_gnn", set, NULL, 0), DT_ECONFIG);
    assert_non_null(strstr(b.host.message, "risk_gnn.hidden"));
    bench_close(&b);
}

/* ---- world models ----------------------------------------------------------------------------------------------- */

static void test_world_models_share_their_ports(void **test)
{
    static const char *const ids[] = {"world_lstm", "world_gru", "world_constant_velocity"};
    for (uint32_t i = 0; i < 3; i++) {
        bench b;
        assert_int_equal(bench_open(&b, ids[i], NULL, world_dims, 4), DT_OK);
        assert_string_equal(b.c->role, "world");
        uint32_t n = 0;
        const dt_port *port = b.ops->inputs(b.self, &n);
        assert_port(port, n, "motion", "15 S 6", DT_F32);
        if (n > 1) {
            assert_port(port, n, "latest", "S 256", DT_F32);
            assert_port(port, n, "present", "15 S", DT_F32);
        }
        port = b.ops->outputs(b.self, &n);
        assert_int_equal(n, 2);
        assert_port(port, n, "future", "S 25 2", DT_F32);
        assert_port(port, n, "spread", "S 25 2", DT_F32);
        bench_record(&b);
        bench_close(&b);
    }
}

static void test_world_lstm_parameters(void **test)
{
    bench b;
    assert_int_equal(bench_open(&b, "world_lstm", NULL, world_dims, 4), DT_OK);
    bench_record(&b);
    assert_param(&b, "lstm.0.x.w", 1024, 6); /* motion alone */
    assert_param(&b, "lstm.0.x.b", 1024, 0);
    assert_param(&b, "lstm.0.h.w", 1024, 256);
    assert_param(&b, "lstm.1.x.w", 1024, 256);
    assert_param(&b, "head.0.w", 256, 256 + 256 + 5 * 6); /* state, embedding, motion of 0, 14, 7, 3, 1 steps ago */
    assert_param(&b, "head.1.w", 100, 256);
    assert_int_equal(mock_graph_count(&b.graph, DT_OP_LSTM), 2);
    /* an untrained model is constant velocity: the last layer starts at zero */
    assert_int_equal(mock_params_find(&b.params, "head.1.w")->init, DT_INIT_ZERO);
    assert_int_equal(mock_params_find(&b.params, "head.1.b")->init, DT_INIT_ZERO);
    bench_close(&b);

    const char *const set[] = {"preset=15m", "narrow=16", NULL};
    assert_int_equal(bench_open(&b, "world_lstm", set, world_dims, 4), DT_OK);
    bench_record(&b);
    uint32_t n = 0;
    const dt_port *port = b.ops->inputs(b.self, &n);
    assert_port(port, n, "history", "15 S 256", DT_F32); /* all embeddings, where they enter the recurrent layers */
    assert_param(&b, "lstm.0.x.w", 2560, 16 + 6);
    assert_param(&b, "narrow.w", 16, 256);
    assert_param(&b, "lstm.1.h.w", 2560, 640);
    bench_close(&b);

    const char *const own[] = {"preset=15m", "hidden=32", "layers=3", "head=16", NULL};
    assert_int_equal(bench_open(&b, "world_lstm", own, world_dims, 4), DT_OK);
    bench_record(&b);
    assert_param(&b, "lstm.2.h.w", 128, 32);
    assert_param(&b, "head.0.w", 16, 32 + 256 + 5 * 6);
    bench_close(&b);
}

static void test_world_gru_parameters(void **test)
{
    bench b;
    assert_int_equal(bench_open(&b, "world_gru", NULL, world_dims, 4), DT_OK);
    bench_record(&b);
    assert_param(&b, "gru.0.x.w", 768, 6);
    assert_param(&b, "gru.1.h.w", 768, 256);
    assert_param(&b, "gru.1.h.b", 768, 0);
    assert_int_equal(mock_graph_count(&b.graph, DT_OP_GRU), 2);
    assert_int_equal(mock_graph_count(&b.graph, DT_OP_LSTM), 0);
    bench_close(&b);
}

static void test_world_constant_velocity_has_nothing_to_train(void **test)
{
    bench b;
    assert_int_equal(bench_open(&b, "world_constant_velocity", NULL, world_dims, 4), DT_OK);
    bench_record(&b);
    assert_int_equal(b.params.n, 0);
    bench_close(&b);
}

static void test_world_names_the_missing_dimension(void **test)
{
    bench b;
    assert_int_equal(bench_open(&b, "world_lstm", NULL, world_dims, 3), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "dt_ms"));
    bench_close(&b);
    const dt_dim empty[] = {{"H", 256}, {"T", 0}, {"F", 25}, {"dt_ms", 200}};
    assert_int_equal(bench_open(&b, "world_gru", NULL, empty, 4), DT_ESHAPE);
    assert_non_null(strstr(b.host.message, "dimension T the size 0"));
    assert_null(strstr(b.host.message, "models.perception"));
    bench_close(&b);
    const dt_dim blind[] = {{"H", 0}, {"T", 15}, {"F", 25}, {"dt_ms", 200}}; /* what reads embeddings says whose */
    assert_int_equal(bench_open(&b, "world_gru", NULL, blind, 4), DT_ESHAPE);
    assert_non_null(strstr(b.host.message,
                           "dimension H the size 0, a world model needs 1 or more: embeddings come from "
                           "models.perception, set it"));
    bench_close(&b);
    for (int i = 1; i < 4; i++) { /* each of them is read, and 1 is enough */
        dt_dim dims[] = {{"H", 1}, {"T", 1}, {"F", 1}, {"dt_ms", 1}};
        assert_int_equal(bench_open(&b, "world_gru", NULL, dims, 4), DT_OK);
        bench_close(&b);
        dims[i].size = -1;
        assert_int_equal(bench_open(&b, "world_gru", NULL, dims, 4), DT_ESHAPE);
        assert_non_null(strstr(b.host.message, dims[i].name));
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gnn_guide_is_graph_attention),
        cmocka_unit_test(test_gnn_15m_is_a_transformer_of_the_documented_size),
        cmocka_unit_test(test_gnn_options_win_over_the_preset),
        cmocka_unit_test(test_gnn_normalised_has_constants),
        cmocka_unit_test(test_dropout_asks_for_a_key),
        cmocka_unit_test(test_gnn_refuses_heads_that_do_not_divide_hidden),
        cmocka_unit_test(test_world_models_share_their_ports),
        cmocka_unit_test(test_world_lstm_parameters),
        cmocka_unit_test(test_world_gru_parameters),
        cmocka_unit_test(test_world_constant_velocity_has_nothing_to_train),
        cmocka_unit_test(test_world_names_the_missing_dimension),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
