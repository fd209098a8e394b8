/* SPDX-License-Identifier: Apache-2.0
 *
 * core/rl/policy/wiring.c with a service of bindings that keeps what it is asked for: which ports and sizes each role
 * is offered and which outputs it must have, for environments of every kind and under every flag; which models the
 * wiring counts; and what it refuses.
 */
#define dt_bind_service            fake_bind_service
#define dt_stage_take_ownership    fake_stage_own
#define dt_loader_visit_extensions fake_extensions
#include "../../../core/rl/policy/wiring.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MOST = 24 };

/* ---- fakes ------------------------------------------------------------------------------------------------------- */

static struct {
    dt_env_spec spec;
    char asked[8][1024]; /* each role as text, in the order of binding */
    uint32_t flags[8], n_asked;
    const char *absent;     /* a role that the configuration names no model for */
    const char *outputs[8]; /* of every model: low, high, allow */
    const dt_port *reads;   /* inputs of every model */
    uint32_t n_reads;
    char settings[256];
    dt_status env, own;
} fake;
static dt_loaded comp;
static dt_model models[MOST];
static uint32_t n_models;
static const dt_port embedding = {"embedding", "N 7", DT_F32, 0};

static const dt_port *fake_inputs(const void *self, uint32_t *n)
{
    *n = fake.n_reads;
    return fake.reads;
}

static size_t add_text(char *text, size_t n, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    const int more = vsnprintf(text + n, sizeof(fake.asked[0]) - n, format, ap);
    va_end(ap);
    assert_true(more >= 0 && n + (size_t)more < sizeof(fake.asked[0]));
    return n + (size_t)more;
}

static dt_status fake_model(const dt_host *h, const dt_model_request *want, dt_model **out)
{
    char *text = fake.asked[fake.n_asked];
    size_t n = add_text(text, 0, "%s:", want->role);
    for (uint32_t i = 0; i < want->n_dims; i++) {
        n = add_text(text, n, " %s=%lld", want->dims[i].name, (long long)want->dims[i].size);
    }
    for (uint32_t i = 0; i < want->n_offers; i++) {
        n = add_text(text, n, " %s[%s]%s", want->offers[i].name, want->offers[i].dims,
                     want->offers[i].dtype == DT_F32 ? "" : "i");
    }
    for (uint32_t i = 0; i < want->n_needs; i++) {
        n = add_text(text, n, " ->%s[%s]%s", want->needs[i].name, want->needs[i].dims,
                     (want->needs[i].flags & DT_PORT_OPTIONAL) != 0 ? "?" : "");
    }
    fake.flags[fake.n_asked++] = want->flags;
    *out = NULL;
    if (fake.absent == NULL || strstr(fake.absent, want->role) == NULL) {
        assert_true(n_models < MOST);
        models[n_models] = (dt_model){.comp = &comp, .role = want->role};
        *out = &models[n_models++];
    }
    return DT_OK;
}

static const dt_port *fake_output(const dt_model *m, const char *name)
{
    for (int i = 0; i < 8 && fake.outputs[i] != NULL; i++) {
        if (strcmp(m->role, "shield") == 0 && strcmp(fake.outputs[i], name) == 0) {
            return &embedding;
        }
    }
    return strcmp(name, "embedding") == 0 ? &embedding : NULL;
}

static const char *fake_id(const dt_model *m)
{
    return m->role;
}

static int64_t fake_dim(const dt_port *p, uint32_t i)
{
    const char *at = p->dims;
    for (; i > 0 && at != NULL; i--) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL && at[0] >= '0' && at[0] <= '9' ? atoll(at) : -1;
}

static dt_status fake_env(const dt_host *h, const dt_setting *set, uint32_t n, dt_env **out)
{
    size_t at = 0;
    fake.settings[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        at += (size_t)snprintf(fake.settings + at, sizeof(fake.settings) - at, "%s=%s ", set[i].key, set[i].value);
    }
    *out = (dt_env *)(void *)&fake;
    return fake.env < 0 ? DT_FAIL(fake.env, "no environment") : DT_OK;
}

static const dt_env_spec *fake_spec(const dt_env *e)
{
    return &fake.spec;
}

static const char *fake_env_id(const dt_env *e)
{
    return "town";
}

const dt_bind_api fake_bind_service = {.struct_size = sizeof(dt_bind_api),
                                       .model = fake_model,
                                       .model_output = fake_output,
                                       .model_id = fake_id,
                                       .port_dim = fake_dim,
                                       .env = fake_env,
                                       .env_spec = fake_spec,
                                       .env_id = fake_env_id};

static int64_t embedding_width;

static dt_status fake_foresight_init(const char *phase, const dt_wiring_config *c, dt_foresight *f)
{
    assert_string_equal(phase, "phase_x");
    *f = (dt_foresight){.F = (int64_t)(c->horizon_s * c->rate_hz),
                        .dt_ms = (int64_t)(1000 / c->rate_hz),
                        .columns = 23,
                        .dims = "A 23",
                        .foreseen_dims = "A 12",
                        .setting = {{"past_s", "2"}, {"past_hz", "4"}}};
    return c->rate_hz < 1 ? DT_FAIL(DT_ECONFIG, "steps that are no whole numbers") : DT_OK;
}

static dt_status fake_foresight_bind(const dt_host *h, dt_foresight *f, const dt_env_spec *spec, const char *env_id,
                                     int64_t H)
{
    assert_true(spec == &fake.spec && strcmp(env_id, "town") == 0);
    embedding_width = H;
    models[n_models] = (dt_model){.comp = &comp, .role = "world"};
    f->world = &models[n_models++];
    return DT_OK;
}

static bool has_predictor = true;

void fake_extensions(const dt_loader *l, const char *id, dt_extension_fn *fn, void *user)
{
    static const dt_foresight_api api = {
        .struct_size = sizeof(api), .init = fake_foresight_init, .bind = fake_foresight_bind};
    static const dt_foresight_api second = {.struct_size = sizeof(second)}; /* of a later plugin */
    assert_true(l == NULL && strcmp(id, DT_EXT_FORESIGHT) == 0);
    if (has_predictor) {
        fn(user, &api, NULL, NULL);
        fn(user, &second, NULL, NULL);
    }
}

static void *owned;

dt_status fake_stage_own(dt_stage *s, void *p, void (*destroy)(void *p))
{
    assert_true(destroy == dt_free);
    owned = fake.own < 0 ? NULL : p;
    return fake.own;
}

/* ---- environments ------------------------------------------------------------------------------------------------ */

static const dt_port observations[] = {{"self", "A 5", DT_F32, 0},    {"kind", "A 3", DT_I32, 0},
                                       {"stack", "A 2 4", DT_F32, 0}, {"steps", "A 6", DT_F32, DT_PORT_STEPS},
                                       {"nodes", "N 9", DT_F32, 0},   {"ring", "A+1", DT_I32, 0}};
static const int32_t choices[] = {3, 4};
static const float low[] = {-1, 0}, high[] = {1, 2};

static void begin(uint32_t heads, uint32_t continuous, uint32_t costs)
{
    memset(&fake, 0, sizeof(fake));
    memset(&comp, 0, sizeof(comp));
    comp.ops.model.inputs = fake_inputs;
    n_models = 0;
    fake.spec = (dt_env_spec){.obs = observations,
                              .n_obs = 6,
                              .n_heads = heads,
                              .choices = choices,
                              .n_continuous = continuous,
                              .low = low,
                              .high = high,
                              .n_costs = costs};
    fake.absent = "perception shield";
    dt_error_clear();
}

static dt_wiring *open_wiring(uint32_t flags, const dt_wiring_config *c, dt_status want)
{
    static dt_stage stage;
    dt_wiring_desc d = DT_WIRING_DESC("phase_x", c);
    dt_wiring *w = NULL;
    d.flags = flags;
    stage.host.priv = &stage;
    assert_int_equal(wiring_create(&stage.host, &d, &w), want);
    assert_true((w != NULL) == (want == DT_OK));
    return w;
}

static void end(void)
{
    dt_free(owned);
    owned = NULL;
}

#define WORLD " self[A 5] kind[A 3]i stack[A 2 4] steps[A 6] nodes[N 9] ring[A+1]i"
#define SIZES " self=5 kind=3 stack=4 steps=6 nodes=9 ring=0"

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_controller_is_offered(void **unused)
{
    begin(2, 2, 3);
    dt_wiring *w = open_wiring(0, NULL, DT_OK);
    assert_int_equal(fake.n_asked, 3); /* perception, controller, shield */
    assert_string_equal(fake.asked[1], "controller: D=5 choices=7 continuous=2 K=3" SIZES " W=1 obs[A 5]" WORLD
                                       " ->value[A] ->logits[A 7] ->mean[A 2] ->log_std[A 2] ->cost_value[A 3]");
    assert_string_equal(fake.asked[0], "perception: D=5 choices=7 continuous=2 K=3" SIZES " obs[A 5]" WORLD
                                       " ->embedding[N H] ->risk[N]");
    assert_string_equal(fake.asked[2], "shield: D=5 choices=7 continuous=2 K=3" SIZES " obs[A 5]" WORLD
                                       " ->low[A 2]? ->high[A 2]? ->allow[A 7]?");
    assert_true(fake.flags[0] == DT_MODEL_OPTIONAL && fake.flags[1] == 0 && fake.flags[2] == DT_MODEL_OPTIONAL);
    assert_true(w->n_choices == 7 && w->window == 1 && w->F == 0 && w->dt_ms == 0 && w->has_graph == 0);
    assert_true(w->own == &observations[0] && w->controller == &models[0]);
    assert_true(w->perception == NULL && w->shield == NULL && w->world == NULL);
    assert_string_equal(w->env_id, "town");
    assert_string_equal(fake.settings, "");
    end();

    begin(0, 1, 0); /* what an environment does not have is not asked for */
    open_wiring(0, NULL, DT_OK);
    assert_non_null(strstr(fake.asked[1], " K=0"));
    assert_string_equal(strstr(fake.asked[1], " ->"), " ->value[A] ->mean[A 1] ->log_std[A 1]");
    end();
    begin(1, 0, 1);
    open_wiring(0, NULL, DT_OK);
    assert_string_equal(strstr(fake.asked[1], " ->"), " ->value[A] ->logits[A 3] ->cost_value[A 1]");
    end();
}

static void test_flags(void **unused)
{
    static const float open_high[] = {1, INFINITY}, open_low[] = {-INFINITY, 0};
    static const struct {
        uint32_t flags, continuous;
        const float *low, *high;
        const char *has, *lacks, *needs;
    } c[] = {
        {DT_WIRING_NO_VALUE, 2, low, high, " K=0 ", "K=3", " ->logits[A 7] ->mean[A 2] ->log_std[A 2]"},
        {DT_WIRING_NO_VALUE, 2, low, high, " values=0 ", "spread", NULL},
        {DT_WIRING_STATE_LOG_STD, 2, low, high, " spread=1 ", "values", NULL},
        {DT_WIRING_NO_LOG_STD, 2, low, high, " K=3 ", "squashed",
         " ->value[A] ->logits[A 7] ->mean[A 2] ->cost_value[A 3]"},
        {DT_WIRING_SQUASHED, 2, low, high, " squashed=1 ", "values", NULL},
        {DT_WIRING_SQUASHED, 2, low, open_high, " K=3 ", "squashed", NULL}, /* there are no bounds to reach */
        {DT_WIRING_SQUASHED, 2, open_low, high, " K=3 ", "squashed", NULL},
        {DT_WIRING_SQUASHED, 0, low, high, " K=3 ", "squashed", NULL},
        {DT_WIRING_AGENT_ROWS, 2, low, high, " self[A 5] stack[A 2 4] ->", "kind", NULL},
        {DT_WIRING_AGENT_ROWS, 2, low, high, " self=5 stack=4 W=1 ", "steps", NULL},
        {DT_WIRING_OBS_ONLY, 2, low, high, " nodes=9 ring=0 obs[A 5] self[A 5] ->", "kind[", NULL},
    };
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        begin(2, c[i].continuous, 3);
        fake.spec.low = c[i].low;
        fake.spec.high = c[i].high;
        open_wiring(c[i].flags, NULL, DT_OK);
        const char *text = fake.asked[1];
        if (strstr(text, c[i].has) == NULL || strstr(text, c[i].lacks) != NULL ||
            (c[i].needs != NULL && strcmp(strstr(text, " ->"), c[i].needs) != 0)) {
            fail_msg("case %zu: %s", i, text);
        }
        end();
    }
}

/* "obs" is the agents' own where there is one, and is offered once. */
static void test_own_row(void **unused)
{
    static const dt_port with_obs[] = {
        {"near", "A 2", DT_F32, 0}, {"obs", "A 4", DT_F32, 0}, {"far", "A 8", DT_F32, 0}};
    static const dt_port none[][3] = {{{"x", "A 2", DT_I32, 0}},
                                      {{"x", "A", DT_F32, 0}},
                                      {{"x", "A 2 3", DT_F32, 0}},
                                      {{"x", "N 2", DT_F32, 0}},
                                      {{"x", "A D", DT_F32, 0}}};
    begin(1, 0, 0);
    fake.spec.obs = with_obs;
    fake.spec.n_obs = 3;
    dt_wiring *w = open_wiring(0, NULL, DT_OK);
    assert_ptr_equal(w->own, &with_obs[1]);
    assert_string_equal(fake.asked[1], "controller: D=4 choices=3 continuous=0 K=0 near=2 far=8 W=1 obs[A 4] near[A 2] "
                                       "far[A 8] ->value[A] ->logits[A 3]");
    end();
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        begin(1, 0, 0);
        fake.spec.obs = none[i];
        fake.spec.n_obs = 1;
        open_wiring(0, NULL, DT_ESHAPE);
        end();
    }
}

/* An image called "obs" is the agents' own, wherever rows stand; of other names a row comes first. What the name hides
 * is refused. */
static void test_own_image(void **unused)
{
    static const dt_port row = {"speed", "A 1", DT_F32, 0}, image = {"obs", "A 84 84 4", DT_U8, 0},
                         camera = {"camera", "A 84 84 4", DT_U8, 0};
    static const dt_port none[] = {{"obs", "N 4", DT_F32, 0}, {"obs", "A 2 3", DT_F32, 0}, {"obs", "A 4", DT_I32, 0}};
    const dt_port sets[][2] = {{image, row}, {row, image}, {camera, row}, {row, camera}, {camera, image}};
    const uint32_t own[] = {0, 1, 1, 0, 1};
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        begin(1, 0, 0);
        fake.spec.obs = sets[i];
        fake.spec.n_obs = 2;
        dt_wiring *w = open_wiring(0, NULL, DT_OK);
        assert_ptr_equal(w->own, &sets[i][own[i]]);
        if (strcmp(w->own->name, "obs") == 0) {
            assert_non_null(strstr(fake.asked[1], " obs_dim1=84 obs_dim2=84 obs_dim3=4 obs_bytes=1 "));
            assert_non_null(strstr(fake.asked[1], " obs[A 84 84 4]i "));
        }
        end();
    }
    for (size_t i = 0; i < 2 * sizeof(none) / sizeof(none[0]); i++) { /* before and after a row */
        const dt_port set[] = {i % 2 == 0 ? none[i / 2] : row, i % 2 == 0 ? row : none[i / 2]};
        begin(1, 0, 0);
        fake.spec.obs = set;
        fake.spec.n_obs = 2;
        open_wiring(0, NULL, DT_ESHAPE);
        end();
    }
}

static void test_window_and_perception(void **unused)
{
    const dt_wiring_config c = {.window = 4};
    begin(1, 0, 0);
    fake.absent = "shield";
    dt_wiring *w = open_wiring(0, &c, DT_OK);
    assert_int_equal(w->window, 4);
    assert_ptr_equal(w->perception, &models[0]);
    assert_string_equal(fake.asked[1], "controller: D=5 choices=3 continuous=0 K=0" SIZES " H=7 W=4 obs[A 5]" WORLD
                                       " embedding[N 7] risk[N] obs_history[4 A 5] present[4 A] ->value[A] "
                                       "->logits[A 3]");
    assert_non_null(strstr(fake.asked[2], "embedding[N 7] risk[N] ->low")); /* no history of it */
    end();
    const dt_wiring_config negative = {.window = -3};
    begin(1, 0, 0);
    w = open_wiring(0, &negative, DT_OK);
    assert_int_equal(w->window, 1);
    end();
}

static void test_foresight(void **unused)
{
    static const dt_port seen[] = {{"self", "A 5", DT_F32, 0},
                                   {"past", "S 4 7", DT_F32, 0},
                                   {"seq_node", "S", DT_I32, 0},
                                   {"agent_seq", "A 2", DT_I32, 0}};
    static const char *const low_high[] = {"low", "high"};
    dt_wiring_config c = {.foresight = 1, .history_s = 2, .horizon_s = 3, .rate_hz = 2};
    begin(1, 2, 0);
    fake.absent = "perception";
    fake.spec.obs = seen;
    fake.spec.n_obs = 4;
    fake.outputs[0] = low_high[1];
    dt_wiring *w = open_wiring(0, &c, DT_OK);
    assert_string_equal(fake.settings, "past_s=2 past_hz=4 ");
    assert_true(w->F == 6 && w->dt_ms == 500 && w->world == &models[0] && w->controller == &models[1]);
    assert_ptr_equal(w->shield, &models[2]);
    assert_true(fake.n_asked == 3 && embedding_width == 0);
    assert_non_null(strstr(fake.asked[1], " foresight=23 F=6 dt_ms=500 "));
    assert_non_null(strstr(fake.asked[1], " foresight[A 23] ->value"));
    assert_non_null(strstr(fake.asked[2], " foreseen=12 F=6 dt_ms=500 "));
    assert_non_null(strstr(fake.asked[2], " foreseen[A 12] ->low"));
    end();
    begin(1, 2, 0);
    fake.absent = "shield";
    open_wiring(0, &c, DT_OK);
    assert_int_equal(embedding_width, 7);
    end();
    c.rate_hz = 0.7; /* what the predictor rejects */
    begin(1, 2, 0);
    open_wiring(0, &c, DT_ECONFIG);
    end();
    begin(1, 2, 0);
    has_predictor = false;
    open_wiring(0, &c, DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), DT_EXT_FORESIGHT));
    has_predictor = true;
    end();
    c.rate_hz = 2;
    begin(1, 2, 0);
    fake.env = DT_ECONFIG;
    open_wiring(0, &c, DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "phase_x.foresight"));
    end();
    begin(1, 2, 0);
    fake.env = DT_ECONFIG;
    open_wiring(0, NULL, DT_ECONFIG);
    assert_null(strstr(dt_error_text(), "foresight"));
    end();
}

/* A shield must bound something that the environment has. */
static void test_shield(void **unused)
{
    static const struct {
        uint32_t heads, continuous;
        const char *output;
        dt_status st;
    } c[] = {{1, 0, "allow", DT_OK}, {1, 0, "low", DT_ESHAPE}, {0, 1, "allow", DT_ESHAPE}, {0, 1, "low", DT_OK},
             {0, 1, "high", DT_OK},  {1, 1, "allow", DT_OK},   {1, 1, "high", DT_OK},      {1, 1, "none", DT_ESHAPE}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        begin(c[i].heads, c[i].continuous, 0);
        fake.absent = "perception";
        fake.outputs[0] = c[i].output;
        open_wiring(0, NULL, c[i].st);
        end();
    }
}

/* What a model may read that is no row of agents makes a graph of it. */
static void test_graph(void **unused)
{
    static const struct {
        dt_port in;
        uint32_t has_graph;
    } c[] = {{{"self", "A 5", DT_F32, 0}, 0},  {{"stack", "A 2 4", DT_F32, 0}, 0}, {{"kind", "A 3", DT_I32, 0}, 1},
             {{"nodes", "N 9", DT_F32, 0}, 1}, {{"steps", "A 6", DT_F32, 0}, 1},   {{"ring", "A+1", DT_I32, 0}, 1},
             {{"other", "N 9", DT_F32, 0}, 0}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        const dt_port reads[] = {{"obs", "A 5", DT_F32, 0}, c[i].in};
        begin(1, 0, 0);
        fake.reads = reads;
        fake.n_reads = 2;
        if (open_wiring(0, NULL, DT_OK)->has_graph != c[i].has_graph) {
            fail_msg("%s is taken for the wrong kind", c[i].in.name);
        }
        end();
    }
}

static void test_other_roles(void **unused)
{
    static dt_port offers[MAX_WANTED + 1] = {{"action", "A 2", DT_F32, 0}};
    static dt_dim dims[MAX_WANTED + 1] = {{"P", 2}};
    const dt_port needs[] = {{"q", "A 1", DT_F32, 0}};
    dt_model_request want = DT_MODEL_REQUEST("critic", offers, needs);
    dt_model *m = NULL, *all[16] = {0};
    want.n_offers = 1;
    want.dims = dims;
    want.n_dims = 1;
    begin(1, 0, 0);
    dt_wiring *w = open_wiring(0, NULL, DT_OK);
    assert_int_equal(wiring_models(w, all, 16), 1);
    assert_int_equal(wiring_bind(w, &want, &m), DT_OK);
    assert_ptr_equal(m, &models[1]);
    assert_string_equal(fake.asked[3], "critic: D=5 choices=3 continuous=0 K=0" SIZES " W=1 P=2 obs[A 5]" WORLD
                                       " action[A 2] ->q[A 1]");
    assert_int_equal(fake.flags[3], 0);
    assert_int_equal(wiring_models(w, all, 1), 2); /* as many as there are, and as many as there is room for */
    assert_true(all[0] == &models[0] && all[1] == NULL);
    assert_int_equal(wiring_models(w, all, 16), 2);
    assert_true(all[0] == w->controller && all[1] == m);
    want.flags = DT_MODEL_OPTIONAL;
    fake.absent = "critic";
    assert_int_equal(wiring_bind(w, &want, &m), DT_OK);
    assert_true(m == NULL && fake.flags[4] == DT_MODEL_OPTIONAL);
    assert_int_equal(wiring_models(w, all, 16), 2);
    want.n_offers = MAX_WANTED + 1;
    assert_int_equal(wiring_bind(w, &want, &m), DT_EINVAL);
    want.n_offers = 1;
    want.n_dims = MAX_WANTED + 1;
    assert_int_equal(wiring_bind(w, &want, &m), DT_EINVAL);
    for (uint32_t i = 0; i <= MAX_WANTED; i++) {
        offers[i] = (dt_port){"x", "A 1", DT_F32, 0};
        dims[i] = (dt_dim){"X", 1};
    }
    want.n_offers = want.n_dims = MAX_WANTED;
    assert_int_equal(wiring_bind(w, &want, &m), DT_OK);
    end();
}

static void test_adopted(void **unused)
{
    dt_model world = {.comp = &comp, .role = "world"}, second = world, other[DT_WIRING_MAX_MODELS + 1];
    dt_model *all[16] = {0};
    begin(1, 0, 0);
    fake.absent = "none";
    fake.outputs[0] = "allow";
    dt_wiring *w = open_wiring(0, NULL, DT_OK);
    assert_int_equal(wiring_adopt(w, &world), DT_OK);
    assert_ptr_equal(w->world, &world);
    assert_int_equal(wiring_adopt(w, &world), DT_EINVAL);
    assert_int_equal(wiring_adopt(w, &second), DT_OK); /* one more of the role is another model */
    assert_ptr_equal(w->world, &world);
    for (int i = 0; i < DT_WIRING_MAX_MODELS; i++) {
        other[i] = (dt_model){.comp = &comp, .role = "other"};
        assert_int_equal(wiring_adopt(w, &other[i]), i < DT_WIRING_MAX_MODELS - 1 ? DT_OK : DT_EINVAL);
    }
    assert_int_equal(wiring_adopt(w, &other[3]), DT_EINVAL);
    const dt_model_request want = {.struct_size = sizeof(want), .role = "late"};
    dt_model *m = NULL;
    assert_int_equal(wiring_bind(w, &want, &m), DT_EINVAL);
    /* perception, world, controller, shield, then others */
    assert_int_equal(wiring_models(w, all, 16), 4 + DT_WIRING_MAX_MODELS);
    assert_true(all[0] == w->perception && all[1] == &world && all[2] == w->controller && all[3] == w->shield);
    assert_true(all[4] == &second && all[5] == &other[0] && all[11] == &other[6]);
    end();
}

static void test_settings(void **unused)
{
    static dt_setting set[17];
    static dt_stage stage;
    dt_wiring_config c = {.foresight = 0};
    dt_wiring_desc d = DT_WIRING_DESC("phase_x", &c);
    dt_wiring *w = NULL;
    stage.host.priv = &stage;
    for (int i = 0; i < 17; i++) {
        set[i] = (dt_setting){"k", i == 0 ? "first" : "v"};
    }
    d.settings = set;
    d.n_settings = 2;
    begin(1, 0, 0);
    assert_int_equal(wiring_create(&stage.host, &d, &w), DT_OK);
    assert_string_equal(fake.settings, "k=first k=v ");
    end();
    d.n_settings = 16;
    assert_int_equal(wiring_create(&stage.host, &d, &w), DT_OK);
    end();
    d.n_settings = 17;
    assert_int_equal(wiring_create(&stage.host, &d, &w), DT_EINVAL);
    end();
    d.n_settings = 0;
    fake.own = DT_ENOMEM; /* nothing is left behind */
    assert_int_equal(wiring_create(&stage.host, &d, &w), DT_ENOMEM);
    assert_null(owned);
    begin(1, 0, 0);
    d.struct_size = offsetof(dt_wiring_desc, settings); /* of an older header: no settings, no flags */
    d.n_settings = 9;
    d.flags = DT_WIRING_NO_VALUE;
    assert_int_equal(wiring_create(&stage.host, &d, &w), DT_OK);
    assert_string_equal(fake.settings, "");
    assert_non_null(strstr(fake.asked[1], "->value[A]"));
    end();
    assert_int_equal(dt_alloc_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_controller_is_offered),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_own_row),
        cmocka_unit_test(test_own_image),
        cmocka_unit_test(test_window_and_perception),
        cmocka_unit_test(test_foresight),
        cmocka_unit_test(test_shield),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_other_roles),
        cmocka_unit_test(test_adopted),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
