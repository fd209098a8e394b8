/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/traffic/foresight/foresight.c: steps and columns, what the world model is bound with, and what is recorded of
 * its predictions, run in double and compared with the same written out.
 */
#include "../../plugins/traffic/foresight/foresight.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/graph/plan.h"

static char asked[512];
static dt_status st_of_bind;

static dt_status fake_model(const dt_host *h, const dt_model_request *want, dt_model **out)
{
    int n = snprintf(asked, sizeof(asked), "%s:", want->role);
    for (uint32_t i = 0; i < want->n_dims; i++) {
        n += snprintf(asked + n, sizeof(asked) - (size_t)n, " %s=%lld", want->dims[i].name,
                      (long long)want->dims[i].size);
    }
    for (uint32_t i = 0; i < want->n_offers; i++) {
        n += snprintf(asked + n, sizeof(asked) - (size_t)n, " %s[%s]", want->offers[i].name, want->offers[i].dims);
    }
    for (uint32_t i = 0; i < want->n_needs; i++) {
        n += snprintf(asked + n, sizeof(asked) - (size_t)n, " ->%s[%s]", want->needs[i].name, want->needs[i].dims);
    }
    *out = (dt_model *)(void *)asked;
    return st_of_bind;
}

static const void *fake_service(const dt_host *h, const char *id)
{
    static const dt_bind_api api = {.struct_size = sizeof(api), .model = fake_model};
    return strcmp(id, DT_SVC_BIND) == 0 ? &api : NULL;
}

static const dt_host host = {.service = fake_service};

static const dt_port graph_ports[] = {{"nodes", "N 9", DT_F32, 0}, {"edges", "E 4", DT_F32, 0}};

static void test_check(void **unused)
{
    static const struct {
        double history_s, horizon_s, rate_hz;
        dt_status st;
    } c[] = {{3, 5, 5, DT_OK},        {0.2, 0.2, 5, DT_OK},    {0.1, 5, 5, DT_ECONFIG}, {3, 5.1, 5, DT_ECONFIG},
             {3, 5, 3, DT_ECONFIG},   {1.1, 0.3, 10, DT_OK},   {0, 5, 5, DT_ECONFIG},   {3, 0, 5, DT_ECONFIG},
             {0.001, 1, 1000, DT_OK}, {1, 1, 2000, DT_ECONFIG}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        dt_foresight f;
        const dt_wiring_config w = {
            .foresight = 1, .history_s = c[i].history_s, .horizon_s = c[i].horizon_s, .rate_hz = c[i].rate_hz};
        if (init_foresight("phase_x", &w, &f) != c[i].st) {
            fail_msg("case %zu", i);
        }
    }
}

static void test_columns(void **unused)
{
    static const struct {
        double horizon_s, rate_hz;
        int64_t F, n_seconds, first, last;
    } c[] = {{5, 5, 25, 5, 4, 24}, {0.8, 5, 4, 1, 3, 3}, {1, 5, 5, 1, 4, 4},
             {2.5, 2, 5, 2, 1, 3}, {20, 1, 20, 8, 0, 7}, {4, 0.5, 2, 4, 0, 1}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        const dt_wiring_config w = {
            .foresight = 1, .history_s = 4, .horizon_s = c[i].horizon_s, .rate_hz = c[i].rate_hz};
        dt_foresight f;
        char want[DT_FORESIGHT_TEXT];
        assert_int_equal(init_foresight("phase_x", &w, &f), DT_OK);
        assert_true(f.T == llround(4 * c[i].rate_hz) && f.F == c[i].F && f.dt_ms == llround(1000 / c[i].rate_hz));
        assert_true(f.n_seconds == c[i].n_seconds && f.second[0] == c[i].first);
        assert_int_equal(f.second[f.n_seconds - 1], c[i].last);
        assert_int_equal(f.columns, 2 * (1 + 3 * f.n_seconds) + f.n_seconds);
        snprintf(want, sizeof(want), "A %d", (int)f.columns);
        assert_string_equal(f.dims, want);
        snprintf(want, sizeof(want), "A %d", (int)(2 * f.F));
        assert_string_equal(f.foreseen_dims, want);
        assert_string_equal(f.setting[0].key, "history_s");
        assert_string_equal(f.setting[0].value, "4");
        assert_string_equal(f.setting[1].key, "history_hz");
        assert_true(strtod(f.setting[1].value, NULL) == c[i].rate_hz);
    }
}

static void test_bind(void **unused)
{
    static const dt_port right[] = {
        {"past", "S 8 7", DT_F32, DT_PORT_STEPS}, {"seq_node", "S", DT_I32, 0}, {"agent_seq", "A 2", DT_I32, 0}};
    const dt_wiring_config c = {.foresight = 1, .history_s = 4, .horizon_s = 3, .rate_hz = 2};
    dt_foresight f;
    assert_int_equal(init_foresight("phase_x", &c, &f), DT_OK);
    const dt_env_spec spec = {.obs = right, .n_obs = 3};
    assert_int_equal(bind_foresight(&host, &f, &spec, "town", 16), DT_OK);
    assert_string_equal(asked, "world: H=16 T=8 F=6 dt_ms=500 motion[8 S 6] present[8 S] latest[S 16] ->future[S 6 2] "
                               "->spread[S 6 2]");
    assert_ptr_equal(f.world, (dt_model *)(void *)asked);
    assert_int_equal(bind_foresight(&host, &f, &spec, "town", 0), DT_OK); /* without embeddings */
    assert_string_equal(asked, "world: H=0 T=8 F=6 dt_ms=500 motion[8 S 6] present[8 S] ->future[S 6 2] "
                               "->spread[S 6 2]");
    st_of_bind = DT_ESHAPE;
    assert_int_equal(bind_foresight(&host, &f, &spec, "town", 0), DT_ESHAPE);
    st_of_bind = DT_OK;
    for (int i = 0; i < 9; i++) { /* each port: not there, of other dims, of another type */
        dt_port wrong[3];
        memcpy(wrong, right, sizeof(wrong));
        wrong[i / 3].name = i % 3 == 0 ? "other" : wrong[i / 3].name;
        wrong[i / 3].dims = i % 3 == 1 ? "S 9" : wrong[i / 3].dims;
        wrong[i / 3].dtype = i % 3 == 2 ? DT_I64 : wrong[i / 3].dtype;
        const dt_env_spec lacks = {.obs = wrong, .n_obs = 3};
        assert_int_equal(bind_foresight(&host, &f, &lacks, "town", 0), DT_ESHAPE);
    }
    assert_true(has_graph(&(dt_env_spec){.obs = graph_ports, .n_obs = 2}));
    assert_false(has_graph(&(dt_env_spec){.obs = graph_ports, .n_obs = 1}));
    assert_false(has_graph(&(dt_env_spec){.obs = graph_ports + 1, .n_obs = 1}));
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

enum { STEPS = 3, SEQUENCES = 4, NODES = 5, AGENTS = 3, EDGES = 6, MOST_F = 18, WIDTH = 2 };
static float past[STEPS][SEQUENCES][7], future[SEQUENCES][MOST_F][2], spread[SEQUENCES][MOST_F][2];
static float risk[NODES], embedding_rows[NODES][WIDTH], nodes[NODES][9], centre[NODES][2], edges[EDGES][4];
static int32_t seq_node[SEQUENCES] = {3, 0, 4, 1}, agent_seq[AGENTS][2] = {{0, 2}, {3, 1}, {2, 2}};
static bool sees_embedding;
static char kept_names[64];

/* What a rollout may have kept; here it has not. */
static dt_tensor *keep(dt_graph *g, const char *name, dt_tensor *x)
{
    const size_t n = strlen(kept_names);
    snprintf(kept_names + n, sizeof(kept_names) - n, "%s ", name);
    return x;
}

static float draw(int i)
{
    return (float)(i * 37 % 101) / 25 - 2;
}

/* The world model: what it is fed becomes outputs, and its predictions are fields. */
static dt_status says(dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out, uint32_t n_out)
{
    assert_ptr_equal(m, (dt_model *)(void *)asked);
    assert_true(n_out == 2 && n_in == (sees_embedding ? 3 : 2));
    assert_string_equal(in[0].name, "motion");
    assert_string_equal(in[1].name, "present");
    assert_true(!sees_embedding || strcmp(in[2].name, "latest") == 0);
    (void)g->api->output(g, "motion", in[0].tensor);
    (void)g->api->output(g, "present", in[1].tensor);
    if (sees_embedding) {
        (void)g->api->output(g, "latest", in[2].tensor);
    }
    out[0].tensor = g->api->input(g, "future");
    out[1].tensor = g->api->input(g, "spread");
    return g->api->status(g);
}

static void get(dt_exec *e, const char *name, double *to, int64_t n)
{
    const dt_view *v = dt_exec_output(e, name);
    assert_non_null(v);
    assert_int_equal(dt_view_count(v), n);
    memcpy(to, v->data, (size_t)n * sizeof(*to));
}

static void assert_near(const char *what, double is, double want)
{
    if (!(fabs(is - want) <= 1e-6 * (1 + fabs(want)))) {
        fail_msg("%s: %.9g is not %.9g", what, is, want);
    }
}

static void fill(void)
{
    int k = 0;
    float *const all[] = {&past[0][0][0],        &future[0][0][0], &spread[0][0][0], risk,
                          &embedding_rows[0][0], &nodes[0][0],     &centre[0][0],    &edges[0][0]};
    const size_t count[] = {sizeof(past),           sizeof(future), sizeof(spread), sizeof(risk),
                            sizeof(embedding_rows), sizeof(nodes),  sizeof(centre), sizeof(edges)};
    for (int a = 0; a < 8; a++) {
        for (size_t i = 0; i < count[a] / sizeof(float); i++) {
            all[a][i] = draw(k++);
        }
    }
}

/* Columns of a sequence, by hand: risk, then for each second what is gained on the present speed, in tens of metres,
 * the offset to the left in quarters, and the deviation. */
static double column(const dt_foresight *f, int s, int64_t i)
{
    if (i == 0) {
        return sees_embedding ? 1 / (1 + exp(-(double)risk[seq_node[s]])) : 0;
    }
    const int64_t at = f->second[(i - 1) / 3];
    const double ahead_s = (double)(at + 1) * (double)f->dt_ms / 1000, speed = (double)past[STEPS - 1][s][4];
    switch ((i - 1) % 3) {
    case 0:
        return ((double)future[s][at][0] - speed * ahead_s) / 10;
    case 1:
        return (double)future[s][at][1] / 4;
    default:
        return (double)spread[s][at][0];
    }
}

static void check_record(double horizon_s, double rate_hz, bool has_embedding)
{
    static const char *const symbol[] = {"N", "A", "S", "E"};
    static const int64_t live[] = {NODES, AGENTS, SEQUENCES, EDGES};
    static double got[4096];
    const dt_wiring_config c = {
        .foresight = 1, .history_s = STEPS / rate_hz, .horizon_s = horizon_s, .rate_hz = rate_hz};
    char dims[DT_FORESIGHT_TEXT];
    dt_foresight f;
    assert_int_equal(init_foresight("phase_x", &c, &f), DT_OK);
    f.world = (dt_model *)(void *)asked;
    assert_true(f.T == STEPS && f.F <= MOST_F);
    snprintf(dims, sizeof(dims), "S %d 2", (int)f.F);
    const dt_port port[] = {{"past", "3 S 7", DT_F32, 0},    {"seq_node", "S", DT_I32, 0},
                            {"agent_seq", "A 2", DT_I32, 0}, {"future", dims, DT_F32, 0},
                            {"spread", dims, DT_F32, 0},     {"risk", "N", DT_F32, 0},
                            {"embedding", "N 2", DT_F32, 0}};
    static float packed[2][SEQUENCES * MOST_F * 2];
    for (int s = 0; s < SEQUENCES; s++) {
        memcpy(packed[0] + s * f.F * 2, future[s], (size_t)f.F * 2 * sizeof(float));
        memcpy(packed[1] + s * f.F * 2, spread[s], (size_t)f.F * 2 * sizeof(float));
    }
    void *const field[] = {past, seq_node, agent_seq, packed[0], packed[1], risk, embedding_rows};
    dt_param_table params = {0};
    dt_graph *g = NULL;
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 4, .field = port, .n_fields = 7, .params = &params};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_graph_api api = *g->api;
    api.model = says;
    api.kept = keep;
    kept_names[0] = '\0';
    g->api = &api;
    sees_embedding = has_embedding;
    const dt_named seen[] = {{"past", api.input(g, "past")},
                             {"seq_node", api.input(g, "seq_node")},
                             {"agent_seq", api.input(g, "agent_seq")}};
    const dt_foresight_inputs in = {.observation = seen,
                                    .n = 3,
                                    .prefix = "",
                                    .embedding = has_embedding ? api.input(g, "embedding") : NULL,
                                    .risk = has_embedding ? api.input(g, "risk") : NULL,
                                    .is_kept = has_embedding};
    dt_tensor *foresight = NULL, *foreseen = NULL;
    if (record_foresight(g, &f, &in, &foresight, &foreseen) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    assert_string_equal(kept_names, has_embedding ? "foresight foreseen " : "");
    assert_int_equal(api.output(g, "foresight", foresight), DT_OK);
    assert_int_equal(api.output(g, "foreseen", foreseen), DT_OK);
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF64, .reuse = true, .cap = live};
    const dt_kernel_run how = {.seed = 1};
    if (dt_plan_compile(g, &pd, &p) != DT_OK || dt_exec_create(p, &e) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    const dt_exec_feed feed = {.size = live, .field = field, .run = &how};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    const int64_t each = 1 + 3 * f.n_seconds;
    get(e, "foresight", got, AGENTS * f.columns);
    for (int a = 0; a < AGENTS; a++) {
        const double *row = got + a * f.columns;
        for (int64_t i = 0; i < 2 * each; i++) {
            assert_near("column", row[i], column(&f, agent_seq[a][i / each], i % each));
        }
        for (int64_t i = 0; i < f.n_seconds; i++) { /* the vehicle ahead less the agent, in fifties of metres */
            const int64_t at = f.second[i];
            assert_near("gap", row[2 * each + i],
                        ((double)future[agent_seq[a][1]][at][0] - (double)future[agent_seq[a][0]][at][0]) * 0.02);
        }
    }
    get(e, "foreseen", got, AGENTS * 2 * f.F);
    for (int a = 0; a < AGENTS; a++) { /* of the vehicle ahead */
        for (int64_t i = 0; i < f.F; i++) {
            assert_near("along", got[a * 2 * f.F + i], (double)future[agent_seq[a][1]][i][0]);
            assert_near("deviation", got[a * 2 * f.F + f.F + i], (double)spread[agent_seq[a][1]][i][0]);
        }
    }
    get(e, "motion", got, STEPS * SEQUENCES * 6);
    for (int i = 0; i < STEPS * SEQUENCES * 6; i++) {
        assert_near("motion", got[i], (double)past[i / 6 / SEQUENCES][i / 6 % SEQUENCES][i % 6]);
    }
    get(e, "present", got, STEPS * SEQUENCES);
    for (int i = 0; i < STEPS * SEQUENCES; i++) {
        assert_near("present", got[i], (double)past[i / SEQUENCES][i % SEQUENCES][6]);
    }
    if (has_embedding) {
        get(e, "latest", got, SEQUENCES * WIDTH);
        for (int i = 0; i < SEQUENCES * WIDTH; i++) {
            assert_near("latest", got[i], (double)embedding_rows[seq_node[i / WIDTH]][i % WIDTH]);
        }
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    dt_graph_destroy(g);
    dt_param_table_fini(&params);
}

static void test_record(void **unused)
{
    fill();
    check_record(3, 2, true);
    check_record(3, 2, false);
    check_record(0.4, 5, true); /* less than a second */
    check_record(7, 1, true);
    check_record(8, 1, true); /* as many seconds as are shown at most */
    check_record(9, 2, false);
}

/* Features as phase 1 has them: positions from a centre by 30 m, and so on (dtrain/traffic/features.h). */
static void test_scaled(void **unused)
{
    static const char *const symbol[] = {"N", "A", "S", "E"};
    static const int64_t live[] = {NODES, AGENTS, SEQUENCES, EDGES};
    static const double shift[] = {0, 0, 0, 0, 0, 0, -5, -200, 0}, edge_scale[] = {1 / 20.0, 1 / 4.0, 1 / 5.0, 1};
    static const double node_scale[] = {1 / 30.0, 1 / 30.0, 1 / 10.0, 1 / 2.0, 1, 1, 1 / 4.0, -1 / 100.0, 1};
    static const dt_port port[] = {
        {"nodes", "N 9", DT_F32, 0}, {"centre", "N 2", DT_F32, 0}, {"edges", "E 4", DT_F32, 0}};
    void *const field[] = {nodes, centre, edges};
    double got[3][NODES * 9];
    dt_param_table params = {0};
    dt_graph *g = NULL;
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    fill();
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 4, .field = port, .n_fields = 3, .params = &params};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    const dt_env_spec spec = {.obs = graph_ports, .n_obs = 2};
    dt_named seen[] = {{"nodes", g->api->input(g, "nodes")},
                       {"edges", g->api->input(g, "edges")},
                       {"centre", g->api->input(g, "centre")}};
    dt_named plain[] = {seen[0], {"other", seen[0].tensor}};
    scale_observation(g, &spec, seen, 3);
    scale_observation(g, &spec, plain, 2);
    assert_ptr_equal(plain[1].tensor, g->api->input(g, "nodes")); /* other observations are as they were */
    (void)g->api->output(g, "centred", seen[0].tensor);
    (void)g->api->output(g, "plain", plain[0].tensor);
    assert_int_equal(g->api->output(g, "edges", seen[1].tensor), DT_OK);
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF64, .reuse = true, .cap = live};
    const dt_kernel_run how = {.seed = 1};
    assert_int_equal(dt_plan_compile(g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    const dt_exec_feed feed = {.size = live, .field = field, .run = &how};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    get(e, "centred", got[0], NODES * 9);
    get(e, "plain", got[1], NODES * 9);
    get(e, "edges", got[2], EDGES * 4);
    for (int i = 0; i < NODES * 9; i++) {
        const double x = (double)nodes[i / 9][i % 9], c = i % 9 < 2 ? (double)centre[i / 9][i % 9] : 0;
        assert_near("node", got[0][i], (x - c + shift[i % 9]) * node_scale[i % 9]);
        assert_near("node", got[1][i], (x + shift[i % 9]) * node_scale[i % 9]);
    }
    for (int i = 0; i < EDGES * 4; i++) {
        assert_near("edge", got[2][i], (double)edges[i / 4][i % 4] * edge_scale[i % 4]);
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    dt_graph_destroy(g);
    dt_param_table_fini(&params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),  cmocka_unit_test(test_columns), cmocka_unit_test(test_bind),
        cmocka_unit_test(test_record), cmocka_unit_test(test_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
