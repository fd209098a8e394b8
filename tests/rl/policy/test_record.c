/* SPDX-License-Identifier: Apache-2.0
 *
 * core/rl/policy/record.c on a graph that only keeps names (libdtmock): what each role is fed, by which prefix and from
 * which target network, what is an output of the graph, and what is refused; and log probabilities of drawn actions
 * against the same written out in double.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#define dt_bind_service fake_bind_service
#include "../../../core/rl/policy/record.c"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/graph/plan.h"
#include "traffic/foresight/foresight.h"

/* ---- fakes ------------------------------------------------------------------------------------------------------- */

static const char *shield_outputs[4];
static dt_model perception, world, controller, shield, critic;
static char said[2048]; /* "controller@target(obs=x ...)->value logits" of each model */
static dt_status st_of_model;
static const dt_model *fails; /* it alone ends with that; NULL: all but the world model */

static const dt_port *fake_output(const dt_model *m, const char *name)
{
    static const dt_port port = {"x", "A 1", DT_F32, 0};
    assert_ptr_equal(m, &shield);
    for (int i = 0; i < 4 && shield_outputs[i] != NULL; i++) {
        if (strcmp(shield_outputs[i], name) == 0) {
            return &port;
        }
    }
    return NULL;
}

const dt_bind_api fake_bind_service = {.struct_size = sizeof(dt_bind_api), .model_output = fake_output};

static void say(const char *format, ...)
{
    const size_t n = strlen(said);
    va_list ap;
    va_start(ap, format);
    const int more = vsnprintf(said + n, sizeof(said) - n, format, ap);
    va_end(ap);
    assert_true(more >= 0 && n + (size_t)more < sizeof(said));
}

static dt_status fake_model_as(dt_graph *g, dt_model *m, const char *target, const dt_named *in, uint32_t n_in,
                               dt_named *out, uint32_t n_out)
{
    say("%s%s%s(", m->role, target != NULL ? "@" : "", target != NULL ? target : "");
    for (uint32_t i = 0; i < n_in; i++) {
        assert_non_null(in[i].tensor);
        say("%s%s=%s", i > 0 ? " " : "", in[i].name, in[i].tensor->name);
    }
    say(")");
    for (uint32_t i = 0; i < n_out; i++) {
        char name[MOCK_NAME];
        snprintf(name, sizeof(name), "%.20s.%.20s", m->role, out[i].name);
        out[i].tensor = mock_graph_tensor((mock_graph *)g, name);
        say(" %s", out[i].name);
    }
    say("\n");
    return m == &world || (fails != NULL && m != fails) ? DT_OK : st_of_model;
}

static dt_status fake_model(dt_graph *g, dt_model *m, const dt_named *in, uint32_t n_in, dt_named *out, uint32_t n_out)
{
    return fake_model_as(g, m, NULL, in, n_in, out, n_out);
}

/* ---- a wiring ---------------------------------------------------------------------------------------------------- */

static const dt_port plain[] = {
    {"self", "A 5", DT_F32, 0}, {"kind", "A 3", DT_I32, 0}, {"ring", "A+1", DT_I32, 0}, {"near", "R 2", DT_F32, 0}};
static const dt_port town[] = {{"self", "A 5", DT_F32, 0},   {"nodes", "N 9", DT_F32, 0},
                               {"edges", "E 4", DT_F32, 0},  {"past", "S 4 7", DT_F32, 2},
                               {"seq_node", "S", DT_I32, 0}, {"agent_seq", "A 2", DT_I32, 0}};

typedef struct rig {
    dt_env_spec spec;
    dt_wired w;
    mock_graph g;
    dt_graph_api api;
    dt_policy_tensors p;
} rig;

static void begin(rig *r, uint32_t heads, uint32_t continuous, uint32_t costs)
{
    static const int32_t choices[] = {3, 4};
    memset(r, 0, sizeof(*r));
    said[0] = '\0';
    memset(shield_outputs, 0, sizeof(shield_outputs));
    st_of_model = DT_OK;
    fails = NULL;
    dt_error_clear();
    perception.role = "perception", world.role = "world", controller.role = "controller", shield.role = "shield";
    critic.role = "critic";
    r->spec = (dt_env_spec){
        .obs = plain, .n_obs = 4, .n_heads = heads, .choices = choices, .n_continuous = continuous, .n_costs = costs};
    r->w.face = (dt_wiring){.spec = &r->spec,
                            .own = &plain[0],
                            .controller = &controller,
                            .window = 1,
                            .n_choices = heads == 2 ? 7 : heads * 3};
    mock_graph_init(&r->g, NULL);
    r->api = *r->g.graph.api;
    r->api.model = fake_model;
    r->api.model_as = fake_model_as;
    r->g.graph.api = &r->api;
    r->p.struct_size = sizeof(r->p);
}

static void use_town(rig *r)
{
    static const dt_wiring_config c = {.foresight = 1, .history_s = 4, .horizon_s = 2, .rate_hz = 1};
    r->spec.obs = town;
    r->spec.n_obs = 6;
    r->w.face.own = &town[0];
    r->w.face.perception = &perception;
    r->w.face.F = 2;
    r->w.predictor = &dt_traffic_foresight;
    assert_int_equal(r->w.predictor->init("phase_x", &c, &r->w.foresight), DT_OK);
    r->w.foresight.world = &world;
}

static dt_status record_it(rig *r, const dt_wiring_view *view)
{
    return dt_wiring_record(&r->w.face, &r->g.graph, view, &r->p);
}

static void assert_outputs(const rig *r, const char *want)
{
    char text[512] = "";
    for (uint32_t i = 0; i < r->g.n_outputs; i++) {
        const size_t n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "%s%s", i > 0 ? " " : "", r->g.output[i].name);
    }
    assert_string_equal(text, want);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_controller(void **unused)
{
    static rig r;
    begin(&r, 2, 2, 1);
    assert_int_equal(record_it(&r, NULL), DT_OK);
    assert_string_equal(said, "controller(obs=self self=self kind=kind ring=ring near=near) value logits mean log_std "
                              "cost_value\n");
    assert_outputs(&r, "value logits mean log_std cost_value");
    assert_string_equal(r.p.value->name, "controller.value");
    assert_string_equal(r.p.logits->name, "controller.logits");
    assert_string_equal(r.p.mean->name, "controller.mean");
    assert_string_equal(r.p.log_std->name, "controller.log_std");
    assert_string_equal(r.p.cost_value->name, "controller.cost_value");
    assert_true(r.p.embedding == NULL && r.p.risk == NULL && r.p.foresight == NULL && r.p.foreseen == NULL);

    static const struct {
        uint32_t heads, continuous, costs, flags;
        const char *outputs;
    } c[] = {{0, 1, 0, 0, "value mean log_std"},
             {1, 0, 0, 0, "value logits"},
             {1, 1, 2, DT_WIRING_NO_VALUE, "logits mean log_std"},
             {0, 1, 0, DT_WIRING_NO_LOG_STD, "value mean"},
             {1, 1, 1, DT_WIRING_NO_OUTPUTS, ""}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        begin(&r, c[i].heads, c[i].continuous, c[i].costs);
        r.w.flags = c[i].flags;
        assert_int_equal(record_it(&r, NULL), DT_OK);
        assert_outputs(&r, c[i].outputs);
        assert_true((r.p.value != NULL) == ((c[i].flags & DT_WIRING_NO_VALUE) == 0));
        assert_true((r.p.mean != NULL) == (c[i].continuous > 0) && (r.p.logits != NULL) == (c[i].heads > 0));
    }
    begin(&r, 1, 1, 0); /* a caller of an older header gets what it has room for */
    r.p.struct_size = offsetof(dt_policy_tensors, log_std);
    dt_tensor untouched;
    r.p.log_std = &untouched;
    assert_int_equal(record_it(&r, NULL), DT_OK);
    assert_true(r.p.mean != NULL && r.p.log_std == &untouched);
    begin(&r, 1, 0, 0);
    st_of_model = DT_ESHAPE;
    assert_int_equal(record_it(&r, NULL), DT_ESHAPE);
    assert_outputs(&r, "");
}

/* Rows of the step after have names of their own where they are of agents, and nothing of them is an output. */
static void test_views(void **unused)
{
    static rig r;
    dt_wiring_view view = {.struct_size = sizeof(view), .prefix = "next_", .target = "slow"};
    begin(&r, 1, 0, 0);
    assert_int_equal(record_it(&r, &view), DT_OK);
    assert_string_equal(said, "controller@slow(obs=next_self self=next_self) value logits\n");
    assert_outputs(&r, "");
    view.has_all = 1;
    begin(&r, 1, 0, 0);
    assert_int_equal(record_it(&r, &view), DT_OK);
    assert_string_equal(said, "controller@slow(obs=next_self self=next_self kind=next_kind ring=next_ring near=near) "
                              "value logits\n");
    view = (dt_wiring_view){.struct_size = sizeof(view), .prefix = ""};
    begin(&r, 1, 0, 0);
    assert_int_equal(record_it(&r, &view), DT_OK);
    assert_string_equal(said, "controller(obs=self self=self) value logits\n");
    assert_outputs(&r, "value logits");
    view.prefix = NULL;
    begin(&r, 1, 0, 0);
    assert_int_equal(record_it(&r, &view), DT_OK);
    assert_outputs(&r, "value logits");
}

static void test_history(void **unused)
{
    static rig r;
    const dt_wiring_view view = {.struct_size = sizeof(view), .prefix = "next_"};
    begin(&r, 1, 0, 0);
    r.w.face.window = 2;
    assert_int_equal(record_it(&r, NULL), DT_OK);
    assert_string_equal(said, "controller(obs=self self=self kind=kind ring=ring near=near obs_history=self_history "
                              "present=present) value logits\n");
    begin(&r, 1, 0, 0);
    r.w.face.window = 2;
    assert_int_equal(record_it(&r, &view), DT_ECONFIG);
}

static void test_shield(void **unused)
{
    static rig r;
    const dt_wiring_view view = {.struct_size = sizeof(view), .prefix = "next_"};
    begin(&r, 1, 1, 0);
    r.w.face.shield = &shield;
    shield_outputs[0] = "high";
    shield_outputs[1] = "allow";
    assert_int_equal(record_it(&r, NULL), DT_OK);
    assert_non_null(strstr(said, "\nshield(obs=self self=self kind=kind ring=ring near=near) high allow\n"));
    assert_outputs(&r, "value logits mean log_std high allow");
    begin(&r, 1, 1, 0);
    r.w.face.shield = &shield;
    st_of_model = DT_ESHAPE;
    fails = &shield;
    assert_int_equal(record_it(&r, NULL), DT_ESHAPE);
    begin(&r, 1, 1, 0);
    r.w.face.shield = &shield;
    assert_int_equal(record_it(&r, &view), DT_OK);
    assert_null(strstr(said, "shield"));
}

static bool begins_with(const char *text, const char *want)
{
    return text != NULL && strncmp(text, want, strlen(want)) == 0;
}

static void test_perception_and_foresight(void **unused)
{
    static rig r;
    begin(&r, 1, 0, 0);
    use_town(&r);
    r.w.face.shield = &shield;
    shield_outputs[0] = "low";
    assert_int_equal(record_it(&r, NULL), DT_OK);
    /* perception sees the graph scaled, as the result of an op; the others see it as it is */
    const char *line = said;
    assert_true(begins_with(line, "perception(obs=self self=self nodes=op "));
    assert_non_null(strstr(line, " edges=op "));
    assert_non_null(strstr(line, ") embedding risk\nworld("));
    const char *of_controller = strstr(said, "\ncontroller(");
    assert_true(begins_with(of_controller, "\ncontroller(obs=self self=self nodes=nodes edges=edges past=past "
                                           "seq_node=seq_node agent_seq=agent_seq embedding=perception.embedding "
                                           "risk=perception.risk foresight="));
    assert_non_null(strstr(of_controller, " foreseen="));
    assert_non_null(strstr(strstr(said, "\nshield("), " foreseen="));
    assert_outputs(&r, "picture/risk value logits low");
    assert_string_equal(r.p.embedding->name, "perception.embedding");
    assert_string_equal(r.p.risk->name, "perception.risk");
    assert_true(r.p.foresight != NULL && r.p.foreseen != NULL && r.p.foresight != r.p.foreseen);

    begin(&r, 1, 0, 0); /* perception has seen both steps: it is not recorded again */
    use_town(&r);
    dt_tensor *seen = mock_graph_tensor(&r.g, "seen"), *danger = mock_graph_tensor(&r.g, "danger");
    r.p.embedding = seen;
    r.p.risk = danger;
    const dt_wiring_view all = {.struct_size = sizeof(all), .prefix = "next_", .has_all = 1};
    assert_int_equal(record_it(&r, &all), DT_OK);
    assert_null(strstr(said, "perception("));
    assert_non_null(strstr(said, " embedding=seen risk=danger "));
    assert_true(r.p.embedding == seen && r.p.risk == danger);
    assert_outputs(&r, "");

    begin(&r, 1, 0, 0); /* rows alone have no past */
    use_town(&r);
    const dt_wiring_view rows = {.struct_size = sizeof(rows), .prefix = "next_"};
    assert_int_equal(record_it(&r, &rows), DT_EINVAL);
    begin(&r, 1, 0, 0);
    use_town(&r);
    st_of_model = DT_ESHAPE;
    assert_int_equal(record_it(&r, NULL), DT_ESHAPE);
    assert_null(strstr(said, "world("));
}

static void test_other_models(void **unused)
{
    static rig r;
    dt_named more[MAX_MORE + 1] = {{"action", NULL}, {"embedding", NULL}}, q = {"q", NULL};
    const dt_wiring_view view = {.struct_size = sizeof(view), .prefix = "next_", .target = "target"};
    begin(&r, 1, 0, 0);
    more[0].tensor = mock_graph_tensor(&r.g, "drawn");
    assert_int_equal(dt_wiring_record_model(&r.w.face, &r.g.graph, &view, &critic, more, 2, &q, 1), DT_OK);
    assert_string_equal(
        said, "critic@target(obs=next_self self=next_self action=drawn) q\n"); /* what is missing is not fed */
    assert_string_equal(q.tensor->name, "critic.q");
    said[0] = '\0';
    for (int i = 0; i <= MAX_MORE; i++) {
        more[i] = more[0];
    }
    assert_int_equal(dt_wiring_record_model(&r.w.face, &r.g.graph, NULL, &critic, more, MAX_MORE, &q, 1), DT_OK);
    assert_int_equal(dt_wiring_record_model(&r.w.face, &r.g.graph, NULL, &critic, more, MAX_MORE + 1, &q, 1),
                     DT_EINVAL);
}

/* ---- drawn actions ----------------------------------------------------------------------------------------------- */

enum { ROWS = 6, CHOICES = 7, MOVES = 2 };
static float logits[ROWS][CHOICES], mask[ROWS][CHOICES], mean[ROWS][MOVES], log_std[ROWS][MOVES], drawn[ROWS][MOVES];
static int32_t chosen[ROWS][2];

static void categorical(int row, int from, int n, int action, double *log_prob, double *entropy)
{
    double sum = 0;
    for (int i = from; i < from + n; i++) {
        sum += mask[row][i] > 0 ? exp((double)logits[row][i]) : 0;
    }
    *log_prob += (double)logits[row][from + action] - log(sum);
    for (int i = from; i < from + n; i++) {
        const double p = mask[row][i] > 0 ? exp((double)logits[row][i]) / sum : 0;
        *entropy -= p > 0 ? p * log(p) : 0;
    }
}

static void gaussian(int row, double *log_prob, double *entropy)
{
    for (int i = 0; i < MOVES; i++) {
        const double s = exp((double)log_std[row][i]), z = ((double)drawn[row][i] - (double)mean[row][i]) / s;
        *log_prob -= 0.5 * z * z + log(s * sqrt(2 * M_PI));
        *entropy += 0.5 + 0.5 * log(2 * M_PI) + (double)log_std[row][i];
    }
}

static void check_drawn(uint32_t heads, uint32_t continuous)
{
    static const char *const symbol[] = {"A", "B"};
    static const int64_t live[] = {ROWS, 1};
    static const int32_t choices[] = {3, 4};
    const int width = heads == 1 ? 3 : CHOICES;
    const dt_port port[] = {{"logits", width == 3 ? "A 3" : "A 7", DT_F32, 0},
                            {"mask", width == 3 ? "A 3" : "A 7", DT_F32, 0},
                            {"action_i", heads == 1 ? "A 1" : "A 2", DT_I32, 0},
                            {"mean", "A 2", DT_F32, 0},
                            {"log_std", "A 2", DT_F32, 0},
                            {"action_f", "A 2", DT_F32, 0}};
    float narrow[2][ROWS * CHOICES];
    int32_t actions[ROWS * 2];
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < width; i++) {
            narrow[0][r * width + i] = logits[r][i];
            narrow[1][r * width + i] = mask[r][i];
        }
        for (uint32_t h = 0; h < heads; h++) {
            actions[(uint32_t)r * heads + h] = chosen[r][h];
        }
    }
    void *const field[] = {narrow[0], narrow[1], actions, mean, log_std, drawn};
    const dt_env_spec spec = {.n_heads = heads, .choices = choices, .n_continuous = continuous};
    const dt_wiring w = {.spec = &spec};
    dt_param_table params = {0};
    dt_graph *g = NULL;
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    dt_tensor *log_prob = NULL, *entropy = NULL;
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 2, .field = port, .n_fields = 6, .params = &params};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    const dt_policy_tensors said_of = {.logits = heads > 0 ? g->api->input(g, "logits") : NULL,
                                       .mean = g->api->input(g, "mean"),
                                       .log_std = g->api->input(g, "log_std")};
    assert_int_equal(dt_wiring_drawn(&w, g, &said_of, &log_prob, NULL), DT_OK);
    assert_int_equal(dt_wiring_drawn(&w, g, &said_of, &log_prob, &entropy), DT_OK);
    assert_int_equal(g->api->output(g, "log_prob", log_prob), DT_OK);
    assert_int_equal(g->api->output(g, "entropy", entropy), DT_OK);
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF64, .reuse = true, .cap = live};
    const dt_kernel_run how = {.seed = 1};
    assert_int_equal(dt_plan_compile(g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    const dt_exec_feed feed = {.size = live, .field = field, .run = &how};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    const double *lp = dt_exec_output(e, "log_prob")->data, *h = dt_exec_output(e, "entropy")->data;
    for (int r = 0; r < ROWS; r++) {
        double want = 0, spread = 0;
        for (uint32_t i = 0; i < heads; i++) {
            categorical(r, i == 0 ? 0 : 3, choices[i], chosen[r][i], &want, &spread);
        }
        if (continuous > 0) {
            gaussian(r, &want, &spread);
        }
        assert_true(fabs(lp[r] - want) < 1e-6 && fabs(h[r] - spread) < 1e-6);
    }
    dt_exec_destroy(e);
    dt_plan_destroy(p);
    dt_graph_destroy(g);
    dt_param_table_fini(&params);
}

static void test_drawn(void **unused)
{
    for (int r = 0; r < ROWS; r++) {
        chosen[r][0] = r % 3;
        chosen[r][1] = (r + 1) % 4;
        for (int i = 0; i < CHOICES; i++) {
            logits[r][i] = (float)((r * 7 + i * 5) % 11) / 4 - 1;
            mask[r][i] = i == chosen[r][0] || i == 3 + chosen[r][1] || (r + i) % 3 > 0 ? 1 : 0;
        }
        for (int i = 0; i < MOVES; i++) {
            mean[r][i] = (float)(r - i) / 4;
            log_std[r][i] = (float)(i - r) / 8;
            drawn[r][i] = (float)(2 * i - r) / 3;
        }
    }
    check_drawn(1, 0);
    check_drawn(2, 0);
    check_drawn(0, MOVES);
    check_drawn(2, MOVES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_controller),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_shield),
        cmocka_unit_test(test_perception_and_foresight),
        cmocka_unit_test(test_other_models),
        cmocka_unit_test(test_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
