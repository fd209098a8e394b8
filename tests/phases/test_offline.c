/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_offline: what it records against its formulas written out in double, with gradients; and what it makes of
 * stored rollouts (scales, offsets, weights, estimated costs with their interval, multipliers), numbers by hand.
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../phases/phase_offline/phase_offline.c"

#include "unit.h"

#include "base/err.h"
#include "engine/graph/plan.h"
#include "mock/recorded.h"

/* ---- what is recorded -------------------------------------------------------------------------------------------- */

/* One continuous action; two critics of the reward, and one of the second of two costs. V is the field "v" plus the
 * parameter "value", the mean is the field "mean" plus "actor", and Q the field "q" plus "critic". */
enum { ROWS = 8, HEADS = 2, COSTS = 2, ESTIMATES = 3, CRITICS = 2, LIMITED = 1, ARENA = 1024 };
static float mean[ROWS], log_std[ROWS], v[ROWS], cv[ROWS][COSTS], next_v[ROWS], next_cv[ROWS][COSTS];
static float q[ROWS][ESTIMATES], target_q[ROWS][ESTIMATES], reward[ROWS], cost[ROWS][COSTS], discount[ROWS];
static float weight[ROWS], log_prob[ROWS], action_f[ROWS], executed[ROWS];
static const dt_port fields[] = {
    {"mean", "A 1", DT_F32, 0},   {"log_std", "A 1", DT_F32, 0},  {"v", "A 1", DT_F32, 0},
    {"cv", "A 2", DT_F32, 0},     {"next_v", "A 1", DT_F32, 0},   {"next_cv", "A 2", DT_F32, 0},
    {"q", "A 3", DT_F32, 0},      {"target_q", "A 3", DT_F32, 0}, {"reward", "A", DT_F32, 0},
    {"cost", "A 2", DT_F32, 0},   {"discount", "A", DT_F32, 0},   {"weight", "A", DT_F32, 0},
    {"log_prob", "A", DT_F32, 0}, {"action_f", "A 1", DT_F32, 0}, {"executed", "A 1", DT_F32, 0}};
static void *const at[] = {mean,   log_std, v,        cv,     next_v,   next_cv,  q,       target_q,
                           reward, cost,    discount, weight, log_prob, action_f, executed};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
static const double p_actor = 0.3, p_value = -0.4, p_critic[ESTIMATES] = {0.2, -0.1, 0.5};
static const float mix[HEADS] = {0.8F, -0.5F}, offset[HEADS] = {0.7F, -0.3F}, follows = 1;
static int the_critic;

static double draw(int i)
{
    return (double)(i * 37 % 101) / 50 - 1;
}

static void fill(void)
{
    for (int r = 0; r < ROWS; r++) {
        mean[r] = (float)draw(5 * r);
        log_std[r] = (float)(0.5 * draw(7 * r + 1) - 0.5);
        v[r] = (float)(2 * draw(3 * r + 2));
        next_v[r] = (float)(2 * draw(3 * r + 40));
        for (int k = 0; k < COSTS; k++) {
            cv[r][k] = (float)draw(9 * r + 11 * k + 3);
            next_cv[r][k] = (float)draw(9 * r + 13 * k + 50);
            cost[r][k] = (float)(1 + draw(9 * r + 17 * k + 60));
        }
        for (int k = 0; k < ESTIMATES; k++) {
            q[r][k] = (float)(2 * draw(8 * r + 19 * k + 4));
            target_q[r][k] = (float)(3 * draw(8 * r + 23 * k + 5));
        }
        reward[r] = (float)(3 * draw(r + 50));
        discount[r] = r % 3 == 0 ? 0 : 0.9F;
        weight[r] = 0.5F + 0.25F * (float)(r % 3);
        log_prob[r] = (float)(draw(6 * r + 8) - 1);
        action_f[r] = (float)(2 * draw(4 * r + 9));
        executed[r] = r % 2 == 0 ? action_f[r] : 0.5F * action_f[r]; /* bounds changed some */
    }
}

static dt_status record(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_policy_tensors *out)
{
    const dt_graph_api *api = g->api;
    const bool is_next = view != NULL && strcmp(view->prefix, "next_") == 0;
    out->mean = dt_add(g, api->input(g, "mean"), api->param(g, "actor"));
    out->log_std = api->input(g, "log_std");
    out->value = dt_merge(g, dt_add(g, api->input(g, is_next ? "next_v" : "v"), api->param(g, "value")));
    out->cost_value = api->input(g, is_next ? "next_cv" : "cv");
    return api->status(g);
}

static dt_status record_model(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_model *m, const dt_named *more,
                              uint32_t n_more, dt_named *out, uint32_t n_out)
{
    const dt_graph_api *api = g->api;
    (void)w, (void)n_more, (void)n_out;
    assert_ptr_equal(m, &the_critic);
    assert_string_equal(more[0].name, "action");
    const bool is_target = view != NULL && view->target != NULL;
    out[0].tensor = is_target ? api->input(g, "target_q") : dt_add(g, api->input(g, "q"), api->param(g, "critic"));
    return api->status(g);
}

typedef struct result {
    double loss[DT_GRAPH_MAX_LOSSES], actor, value, critic[ESTIMATES];
} result;

/* All losses, and gradients of the one called so, weighted. */
static void run(dt_graph *g, const dt_param_table *t, const char *of, result *out)
{
    static const int64_t live[] = {1, ROWS};
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(g, &loss);
    double seed[DT_GRAPH_MAX_LOSSES] = {0}, params[ARENA] = {0}, grads[ARENA] = {0};
    const float *step_input[8] = {0};
    const dt_plan_desc pd = {.kernels = DT_KERNELS_REF64, .training = true, .reuse = true, .cap = live};
    const dt_kernel_run how = {.seed = 5, .step = 3, .training = 1};
    dt_plan *p = NULL;
    dt_exec *e = NULL;
    assert_true(t->total <= ARENA);
    params[t->param[0].offset] = p_actor;
    params[t->param[1].offset] = p_value;
    memcpy(params + t->param[2].offset, p_critic, sizeof(p_critic));
    for (uint32_t i = 0; i < n; i++) {
        seed[i] = strcmp(loss[i].name, of) == 0 ? loss[i].weight : 0;
    }
    memset(out, 0, sizeof(*out));
    assert_int_equal(dt_plan_compile(g, &pd, &p), DT_OK);
    assert_int_equal(dt_exec_create(p, &e), DT_OK);
    const char *const *names = NULL;
    const int64_t *counts = NULL;
    const uint32_t n_names = dt_plan_step_inputs(p, &names, &counts);
    for (uint32_t i = 0; i < n_names; i++) {
        step_input[i] = strcmp(names[i], "mix") == 0 ? mix : strcmp(names[i], "offset") == 0 ? offset : &follows;
    }
    const dt_exec_feed feed = {.size = live,
                               .field = at,
                               .step_input = step_input,
                               .params = params,
                               .grads = grads,
                               .loss_seed = seed,
                               .loss = out->loss,
                               .run = &how};
    assert_int_equal(dt_exec_run(e, &feed), DT_OK);
    out->actor = grads[t->param[0].offset];
    out->value = grads[t->param[1].offset];
    memcpy(out->critic, grads + t->param[2].offset, sizeof(out->critic));
    dt_exec_destroy(e);
    dt_plan_destroy(p);
}

static double loss_of(const dt_graph *g, const result *r, const char *name, double *weight_p)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(g, &loss);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(loss[i].name, name) == 0) {
            *weight_p = loss[i].weight;
            return r->loss[i];
        }
    }
    fail_msg("there is no loss %s", name);
    return NAN;
}

static double gaussian(int r, double a)
{
    const double s = exp((double)log_std[r]), z = (a - (double)mean[r] - p_actor) / s;
    return -0.5 * z * z - (double)log_std[r] - 0.5 * log(2 * M_PI);
}

static void check_record(uint32_t algorithm)
{
    static const char *const symbol[] = {"B", "A"};
    static const int64_t dim[] = {1, 1, ESTIMATES};
    static const char *const name[] = {"actor", "value", "critic"};
    static const float low[] = {-2}, high[] = {2};
    static const char *const costs[] = {"first", "second"};
    const dt_wiring_api api = {.struct_size = sizeof(api), .record = record, .record_model = record_model};
    const dt_env_spec spec = {
        .n_continuous = 1, .low = low, .high = high, .n_agents = 1, .n_costs = COSTS, .costs = costs};
    dt_wiring w = {.api = &api, .spec = &spec, .env_id = "test"};
    dt_param_table table = {0};
    dt_graph *g = NULL;
    offline_state s;
    result r[3];
    memset(&s, 0, sizeof(s));
    s.config = (offline_config){.critics = CRITICS, .weight_max = 3, .ratio_max = 2, .value_coef = 0.25};
    s.config.algorithm = algorithm;
    s.n_heads = HEADS;
    s.cost_of[1] = LIMITED;
    s.scale[0] = 0.5;
    s.scale[1] = 2;
    s.models = (actor_critic){.spec = &spec,
                              .wiring = &w,
                              .n_actions = 1,
                              .n_critics = ESTIMATES,
                              .is_bounded = true,
                              .critic = (dt_model *)(void *)&the_critic};
    fill();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dt_param_table_add(&table, "m", name[i], &dim[i], 1, DT_INIT_ZERO, 0), DT_OK);
    }
    const dt_graph_desc d = {.symbol = symbol, .n_symbols = 2, .field = fields, .n_fields = FIELDS, .params = &table};
    assert_int_equal(dt_graph_create(&d, &g), DT_OK);
    dt_graph_set_scope(g, "m");
    if (offline_record(&s, g) != DT_OK) {
        fail_msg("%s", dt_error_text());
    }
    double actor = 0, value = 0, critic = 0, d_actor = 0, d_value = 0, d_critic[ESTIMATES] = {0}, heaviest = 0;
    for (int i = 0; i < ROWS; i++) {
        const double critic_values[HEADS] = {fmin((double)target_q[i][0], (double)target_q[i][1]),
                                             (double)target_q[i][2]};
        const double V[HEADS] = {(double)v[i] + p_value, (double)cv[i][LIMITED]};
        const double next[HEADS] = {(double)next_v[i] + p_value, (double)next_cv[i][LIMITED]};
        const double earned[HEADS] = {0.5 * (double)reward[i], 2 * (double)cost[i][LIMITED]};
        double sum = 0, y[HEADS];
        for (int h = 0; h < HEADS; h++) {
            sum += (double)mix[h] * (critic_values[h] - V[h]);
            y[h] = earned[h] - (double)offset[h] + (double)discount[i] * (next[h] + (double)offset[h]);
        }
        const double wide = exp(sum), w_of = algorithm == OFFLINE_CLONE ? 1 : fmin(wide, 3);
        const double rho = fmin(exp(gaussian(i, (double)action_f[i]) - (double)log_prob[i]), 2);
        const double std = exp((double)log_std[i]);
        heaviest = fmax(heaviest, wide);
        actor += w_of * gaussian(i, (double)executed[i]);
        d_actor -= w_of * ((double)executed[i] - (double)mean[i] - p_actor) / (std * std);
        for (int h = 0; h < HEADS; h++) {
            value += rho * (V[h] - critic_values[h]) * (V[h] - critic_values[h]);
        }
        d_value += 0.25 * 2 * rho * (V[0] - critic_values[0]);
        for (int k = 0; k < ESTIMATES; k++) {
            const double off = (double)q[i][k] + p_critic[k] - y[k < CRITICS ? 0 : 1];
            critic += (double)weight[i] * off * off;
            d_critic[k] += 2 * (double)weight[i] * off;
        }
    }
    assert_true(heaviest > 3); /* weight_max matters */
    double factor = 0;
    run(g, &table, "actor_loss", &r[0]);
    is_near("actor_loss", loss_of(g, &r[0], "actor_loss", &factor), actor);
    is_near("its weight", factor, -1);
    is_near("d actor_loss / d actor", r[0].actor, d_actor);
    is_near("d actor_loss / d value", r[0].value, 0);
    if (algorithm != OFFLINE_CLONE) {
        run(g, &table, "value_loss", &r[1]);
        run(g, &table, "critic_loss", &r[2]);
        is_near("value_loss", loss_of(g, &r[1], "value_loss", &factor), value);
        is_near("its weight", factor, 0.25);
        is_near("critic_loss", loss_of(g, &r[2], "critic_loss", &factor), critic);
        is_near("its weight", factor, 1);
        is_near("d value_loss / d value", r[1].value, d_value);
        is_near("d value_loss / d actor", r[1].actor, 0);
        is_near("d critic_loss / d value", r[2].value, 0);
        for (int k = 0; k < ESTIMATES; k++) {
            is_near("d critic_loss / d critic", r[2].critic[k], d_critic[k]);
            is_near("d value_loss / d critic", r[1].critic[k], 0);
        }
    }
    dt_graph_destroy(g);
    dt_param_table_fini(&table);
}

static void test_record(void **state)
{
    check_record(OFFLINE_ADVANTAGE);
    check_record(OFFLINE_CLONE);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

enum { N = 4 };
static float a_rows[N][HEADS], v_rows[N][HEADS], y_rows[N][ESTIMATES], w_rows[N], rho_rows[N];
static int n_draws;
static struct {
    char name[16];
    float value[HEADS];
} set[8];
static int n_set;

static const void *fake_rows(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank)
{
    static const struct {
        const char *name;
        const void *rows;
        int64_t columns;
    } all[] = {{"advantages", a_rows, HEADS},
               {"values", v_rows, HEADS},
               {"targets", y_rows, ESTIMATES},
               {"weights", w_rows, 0},
               {"ratios", rho_rows, 0}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].name, name) == 0) {
            dim[0] = N;
            dim[1] = all[i].columns;
            *rank = all[i].columns > 0 ? 2 : 1;
            return all[i].rows;
        }
    }
    return NULL;
}

static dt_status fake_evaluate(dt_train *t, dt_data *d, void *user, dt_status (*each)(void *user, const dt_rows *r))
{
    (void)t, (void)d;
    return each(user, NULL);
}

static dt_status fake_set(dt_train *t, const char *name, const float *value, uint32_t n)
{
    assert_true(n <= HEADS && n_set < 8);
    snprintf(set[n_set].name, sizeof(set[0].name), "%s", name);
    memcpy(set[n_set++].value, value, n * sizeof(*value));
    return DT_OK;
}

static float was_set(const char *name, int i)
{
    for (int k = n_set - 1; k >= 0; k--) {
        if (strcmp(set[k].name, name) == 0) {
            return set[k].value[i];
        }
    }
    fail_msg("%s was not set", name);
    return NAN;
}

static dt_status fake_draw(dt_replay *p)
{
    n_draws++;
    return DT_OK;
}

static uint64_t fake_drawn(const dt_replay *p)
{
    return 32;
}

static dt_data *fake_data(dt_replay *p)
{
    return NULL;
}

static uint64_t now_step, n_steps;
static dt_train_desc made;
static dt_train_group made_group[GROUPS];
static dt_train_target made_target;

static dt_status fake_position(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *per_epoch)
{
    *step = now_step;
    *steps = n_steps;
    *per_epoch = 1;
    return DT_OK;
}

static dt_status fake_step(dt_train *t, dt_step_report *r)
{
    r->step = ++now_step;
    r->loss = (double)(now_step % 4);
    r->samples = 16;
    return DT_OK;
}

static dt_status fake_create(const dt_host *h, const dt_train_desc *d, dt_train **out)
{
    made = *d;
    memcpy(made_group, d->group, d->n_groups * sizeof(*d->group));
    made_target = *d->target;
    *out = (dt_train *)(void *)&the_critic;
    return DT_OK;
}

static uint32_t fake_models(const dt_wiring *w, dt_model **out, uint32_t n)
{
    (void)w, (void)out, (void)n;
    return 1;
}

/* 200 rows in 10 episodes, 10 of them terminated; a reward of -2 a row whose root mean square is 4, and of the second
 * cost 0.5 whose is 0.5; a limit of 8. */
static void open_state(offline_state *s, mock_host *h)
{
    static const dt_train_api train = {.struct_size = sizeof(train),
                                       .set = fake_set,
                                       .evaluate = fake_evaluate,
                                       .rows = fake_rows,
                                       .position = fake_position,
                                       .step = fake_step,
                                       .create = fake_create};
    static const dt_replay_api replay = {
        .struct_size = sizeof(replay), .draw = fake_draw, .draw_size = fake_drawn, .data = fake_data};
    static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .scalar = record_scalar};
    static const char *const costs[] = {"first", "second"};
    static const dt_env_spec spec = {.n_costs = COSTS, .costs = costs};
    memset(s, 0, sizeof(*s));
    mock_host_init(h);
    s->h = &h->host;
    s->train = &train;
    s->replay = &replay;
    s->metrics = &metrics;
    s->models.spec = &spec;
    s->config = (offline_config){.critics = CRITICS,
                                 .gamma = 0.9,
                                 .beta = 0.5,
                                 .clone_rounds = 3,
                                 .updates = 100,
                                 .iterations = 10,
                                 .margin = 0.25,
                                 .limits = "second:8",
                                 .rollouts = "folder"};
    s->stats = (dt_replay_stats){.samples = 300,
                                 .rows = 200,
                                 .episodes = 10,
                                 .terminated = 10,
                                 .reward = -400,
                                 .reward_squares = 200 * 16,
                                 .cost = {7, 100},
                                 .cost_squares = {1e9, 200 * 0.25}};
    s->n_heads = HEADS;
    s->cost_of[1] = LIMITED;
    s->limits = (limits){.has = {0, 1}, .at = {0, 8}};
    n_set = n_recorded = n_draws = 0;
}

static const double rate = 1 - 0.9 * (1 - 0.05);

static void test_measures(void **state)
{
    offline_state s;
    mock_host h;
    open_state(&s, &h);
    set_scales(&s);
    is_near("scale", s.scale[0], 10 * 0.1 / 4);
    is_near("scale", s.scale[1], 10 * 0.1 / 0.5);
    is_near("known", s.known[0], 0.25 * -2 / rate);
    is_near("known", s.known[1], 2 * 0.5 / rate);
    is_near("offset", s.kept.offset[0], s.known[0]);
    is_near("offset", s.kept.offset[1], s.known[1]);
    s.stats.reward_squares = 0; /* nothing was earned: no scale follows */
    set_scales(&s);
    is_near("scale", s.scale[0], 1);
    assert_int_equal(check_rollouts(&s), DT_OK);
    s.stats.episodes = 0;
    assert_int_equal(check_rollouts(&s), DT_ECONFIG); /* limits are of episodes */
    s.n_heads = 1;
    assert_int_equal(check_rollouts(&s), DT_OK);
    s.stats.rows = 0;
    assert_int_equal(check_rollouts(&s), DT_EDATA);
    s.stats.samples = 0;
    assert_int_equal(check_rollouts(&s), DT_OK); /* of an evaluation */
}

/* Advantages of the two heads: deviations (of all) 2 and 1 around means 1 and -1, then 4 and 3 around 0. */
static void fill_advantages(bool again)
{
    static const float first[N][HEADS] = {{3, 0}, {-1, -2}, {3, -2}, {-1, 0}},
                       second[N][HEADS] = {{4, 3}, {-4, 3}, {4, -3}, {-4, -3}};
    memcpy(a_rows, again ? second : first, sizeof(a_rows));
    for (int i = 0; i < N; i++) {
        v_rows[i][0] = (float)(10 + i); /* 11.5 */
        v_rows[i][1] = (float)(2 * i);  /* 3 */
        w_rows[i] = (float)i;
    }
}

static void test_estimates(void **state)
{
    offline_state s;
    mock_host h;
    open_state(&s, &h);
    s.known[0] = 20;
    s.known[1] = 5;
    s.kept.offset[0] = 100;
    s.kept.offset[1] = 200;
    fill_advantages(false);
    assert_int_equal(update_estimates(&s, 1), DT_OK); /* round + 1 < 3: V is that of the behaviour */
    is_near("deviation", s.kept.deviation[0], 2);
    is_near("deviation", s.kept.deviation[1], 1);
    is_near("offset", s.kept.offset[0], 20 - 11.5);
    is_near("offset", s.kept.offset[1], 5 - 3);
    is_near("weight", recorded_value("charts/weight"), 1.5);
    fill_advantages(true);
    s.known[0] = 99;
    assert_int_equal(update_estimates(&s, 2), DT_OK); /* the last of the clone_rounds keeps it */
    is_near("deviation", s.kept.deviation[0], 0.9 * 2 + 0.1 * 4);
    is_near("deviation", s.kept.deviation[1], 0.9 * 1 + 0.1 * 3);
    is_near("offset", s.kept.offset[0], 20 - 11.5);
    assert_int_equal(s.kept.estimates, 2);
}

static void test_mix(void **state)
{
    offline_state s;
    mock_host h;
    open_state(&s, &h);
    s.scale[0] = 0.25;
    s.scale[1] = 2;
    s.kept.deviation[0] = 3;
    s.kept.deviation[1] = 4;
    s.kept.multiplier[1].value = 6; /* in learnt units 6 * 0.25 / 2 = 0.75: sizes add up to 3 + 0.75 * 4 = 6 */
    s.kept.offset[0] = 0.5;
    s.kept.offset[1] = -1;
    assert_int_equal(set_weights(&s, 2), DT_OK);
    is_near("mix", (double)was_set("mix", 0), 0);
    is_near("mix", (double)was_set("mix", 1), 0);
    is_near("follows", (double)was_set("follows", 0), 0);
    assert_int_equal(set_weights(&s, 3), DT_OK); /* clone_rounds are over */
    is_near("mix", (double)was_set("mix", 0), 1 / (0.5 * 6));
    is_near("mix", (double)was_set("mix", 1), -0.75 / (0.5 * 6));
    is_near("follows", (double)was_set("follows", 0), 1);
    is_near("offset", (double)was_set("offset", 0), 0.5);
    is_near("offset", (double)was_set("offset", 1), -1);
    s.kept.deviation[0] = s.kept.multiplier[1].value = 0;
    n_set = 0;
    assert_int_equal(set_weights(&s, 3), DT_OK); /* no advantage differs */
    is_near("mix", (double)was_set("mix", 0), 0);
}

static double fill_costs(double *off_p, double scale, double offset_of)
{
    double one[N], sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        rho_rows[i] = (float)(0.5 * (i + 1));
        v_rows[i][1] = (float)(1 + 0.25 * i);
        y_rows[i][0] = y_rows[i][1] = 1e6F; /* of the reward */
        y_rows[i][2] = (float)(2 - 0.5 * i);
        one[i] = (rate * ((double)v_rows[i][1] + offset_of) +
                  (double)rho_rows[i] * ((double)y_rows[i][2] - (double)v_rows[i][1])) /
                 scale;
        sum += one[i] / N;
    }
    for (int i = 0; i < N; i++) {
        squares += (one[i] - sum) * (one[i] - sum) / N;
    }
    *off_p = 1.96 * 20 * sqrt(squares); /* over the root of rows; 200 rows in 10 episodes */
    return 20 * sum;
}

static void test_costs(void **state)
{
    offline_state s;
    offline_costs out;
    mock_host h;
    double off = 0;
    open_state(&s, &h);
    s.scale[1] = 2;
    s.kept.offset[1] = 3;
    const double want = fill_costs(&off, 2, 3);
    assert_true(want > 0);
    assert_int_equal(offline_estimate_costs(&s, &out), DT_OK);
    assert_int_equal(n_draws, 10); /* 300 samples by 32 */
    is_near("cost", out.mean[1], want);
    is_near("off", out.off[1], off / sqrt(10 * N));
    is_near("share", out.share, (0.5 + 1 + 1.5 + 2) * (0.5 + 1 + 1.5 + 2) / (N * (0.25 + 1 + 2.25 + 4)));
    is_near("ratio", recorded_value("charts/ratio"), 1.25);
    is_near("share", recorded_value("charts/effective_share"), out.share);
    s.config.updates = 7; /* no more than a round has */
    n_draws = n_recorded = 0;
    assert_int_equal(offline_estimate_costs(&s, &out), DT_OK);
    assert_int_equal(n_draws, 7);
    is_near("off", out.off[1], off / sqrt(7 * N));
    s.stats.rows = 20, s.stats.episodes = 1; /* fewer rows than were drawn: as many count */
    n_recorded = 0;
    assert_int_equal(offline_estimate_costs(&s, &out), DT_OK);
    const double other = 1 - 0.9 * (1 - 10.0 / 20);
    assert_true(fabs(other - rate) > 0.1 && out.off[1] > 0);
    s.stats.terminated = 1; /* p as it was */
    n_recorded = 0;
    assert_int_equal(offline_estimate_costs(&s, &out), DT_OK);
    is_near("cost", out.mean[1], want);
    is_near("off", out.off[1], off / sqrt(20));
    s.kept.offset[1] = -1e3; /* costs are not below 0 */
    n_recorded = 0;
    assert_int_equal(offline_estimate_costs(&s, &out), DT_OK);
    is_near("cost", out.mean[1], 0);
    y_rows[1][2] = NAN; /* and what is not known stays unknown */
    n_recorded = 0;
    assert_int_equal(offline_estimate_costs(&s, &out), DT_OK);
    assert_true(isnan(out.mean[1]) && isnan(out.off[1]));
}

/* Multipliers see the upper end of the cost, a limit less the margin, and units of reward by cost. */
static void test_multipliers(void **state)
{
    offline_state s;
    mock_host h;
    double off = 0;
    open_state(&s, &h);
    s.rule = (multiplier_rule){
        .algorithm = MULTIPLIER_PID, .start = 0.1, .max = 1e6, .kp = 2, .ki = 0.2, .kd = 0.1, .delay = 1};
    s.scale[0] = 0.25;
    s.scale[1] = 2;
    s.kept.deviation[0] = 3;
    s.kept.deviation[1] = 4;
    multiplier_init(&s.kept.multiplier[1]);
    multiplier want = s.kept.multiplier[1];
    s.kept.offset[1] = 10;
    const double cost_of = fill_costs(&off, 2, 10);
    assert_true(cost_of > 6);
    multiplier_update(&want, &s.rule, cost_of + off / sqrt(10 * N), 6, 3 / 0.25 / (4 / 2.0), 1);
    assert_int_equal(update_multipliers(&s, false), DT_OK);
    assert_true(want.value > 0);
    is_near("multiplier", s.kept.multiplier[1].value, want.value);
    is_near("recorded", recorded_value("multipliers/second"), want.value);
    is_near("recorded", recorded_value("estimated_costs/second"), cost_of);
    is_near("recorded", recorded_value("estimated_costs_off/second"), off / sqrt(10 * N));
    assert_int_equal(finish(&s), DT_OK);
    y_rows[1][2] = NAN; /* by what is not known no multiplier moves */
    n_recorded = 0;
    assert_int_equal(update_multipliers(&s, false), DT_OK);
    is_near("multiplier", s.kept.multiplier[1].value, want.value);
    multiplier_init(&s.kept.multiplier[1]);
    assert_int_equal(finish(&s), DT_ECONFIG); /* a limit that was never evaluated */
}

/* Rounds of draws and steps: what is estimated after each, when multipliers begin, and when it is over. */
static void test_rounds(void **state)
{
    offline_state s;
    mock_host h;
    double unused = 0;
    open_state(&s, &h);
    s.rule = (multiplier_rule){.algorithm = MULTIPLIER_PID, .max = 1e6, .kp = 2, .delay = 1};
    s.config.updates = 4;
    s.config.tau = 1;
    s.scale[0] = s.scale[1] = 1;
    fill_advantages(false);
    (void)fill_costs(&unused, 1, 0);
    now_step = 0;
    n_steps = 4 * 5;
    for (uint64_t round = 0; round < 5; round++) {
        dt_progress out = {0};
        n_draws = n_recorded = n_set = 0;
        assert_int_equal(iterate(&s, &out), round == 4 ? DT_DONE : DT_OK);
        assert_int_equal(out.step, 4 * (round + 1));
        assert_int_equal(out.epoch, round);
        assert_int_equal(out.iterations, round + 1);
        assert_int_equal(out.steps, 20);
        assert_int_equal(out.samples, 4 * 16);
        is_near("loss", out.loss, (1 + 2 + 3 + 0) / 4.0);
        is_near("follows", (double)was_set("follows", 0), round >= 3 ? 1 : 0);
        assert_int_equal(s.kept.estimates, round + 1);
        assert_int_equal(s.kept.multiplier[1].rounds, round >= 2 ? round - 1 : 0);
        assert_int_equal(n_draws, 4 + (round >= 2 ? 4 : 0));
        if (round == 0) {
            is_near("episodes", recorded_value("rollouts/episodes"), 10);
            is_near("return", recorded_value("rollouts/return"), -40);
            is_near("cost", recorded_value("rollouts/second"), 10);
        }
    }
    dt_progress out = {0};
    assert_int_equal(iterate(&s, &out), DT_DONE);
    assert_int_equal(now_step, 20);
}

static void test_start(void **state)
{
    static const dt_wiring_api api = {.struct_size = sizeof(api), .models = fake_models};
    offline_state s;
    mock_host h;
    dt_wiring w = {.api = &api};
    open_state(&s, &h);
    w.spec = s.models.spec;
    s.models.wiring = &w;
    s.config.tau = 0.25;
    s.config.actor_learning_rate = 1e-3;
    s.config.critic_learning_rate = 2e-3;
    s.config.actor_clip = 3;
    s.config.critic_clip = 4;
    assert_int_equal(start(&s), DT_OK);
    assert_int_equal(made.epochs, 10 * 100);
    assert_int_equal(made.n_groups, 2);
    assert_int_equal(made.n_targets, 1);
    assert_true(made_target.tau == 0.25 && made_target.every == 1);
    assert_string_equal(made_target.name, "target");
    assert_true(made_group[0].learning_rate == 1e-3 && made_group[0].gradient_clip == 3);
    assert_true(made_group[1].learning_rate == 2e-3 && made_group[1].gradient_clip == 4);
    assert_string_equal(made_group[0].loss[0], "actor_loss");
    assert_string_equal(made_group[0].loss[1], "value_loss");
    assert_string_equal(made_group[1].loss[0], "critic_loss");
    assert_int_equal(made_group[0].n_losses, 2);
    assert_string_equal(made_group[0].role[0], "controller");
    assert_string_equal(made_group[1].role[0], "critic");
    assert_int_equal(made_group[0].n_roles, 1);
    is_near("mix", (double)was_set("mix", 0), 0);
    s.config.algorithm = OFFLINE_CLONE;
    n_set = 0;
    assert_int_equal(start(&s), DT_OK);
    assert_int_equal(made.n_groups, 1);
    assert_int_equal(made.n_targets, 0);
    assert_int_equal(made_group[0].n_losses, 1);
    assert_int_equal(n_set, 0);
}

static void test_options_without_effect(void **state)
{
    mock_host h;
    mock_host_init(&h);
    offline_config *defaults = mock_config(&component, NULL);
    offline_config c = *defaults;
    free(defaults);
    assert_int_equal(offline_check_idle(&h.host, options, &c), DT_OK);
    c.algorithm = OFFLINE_CLONE;
    assert_int_equal(offline_check_idle(&h.host, options, &c), DT_OK);
    c.beta = 0.75;
    assert_int_equal(offline_check_idle(&h.host, options, &c), DT_ECONFIG);
    assert_non_null(strstr(h.message, "beta"));
    c.algorithm = OFFLINE_ADVANTAGE;
    assert_int_equal(offline_check_idle(&h.host, options, &c), DT_OK);
    c.margin = 0.5;
    assert_int_equal(offline_check_idle(&h.host, options, &c), DT_ECONFIG);
    assert_non_null(strstr(h.message, "margin"));
    c.limits = "second:8";
    assert_int_equal(offline_check_idle(&h.host, options, &c), DT_OK);
    c.clip_obs = 3;
    assert_int_equal(offline_check_idle(&h.host, options, &c), DT_ECONFIG);
    c.normalise_obs = 1;
    assert_int_equal(offline_check_idle(&h.host, options, &c), DT_OK);
    c.margin = 1;
    assert_int_equal(offline_check(&h.host, &c), DT_ECONFIG);
    c.margin = 0.5;
    assert_int_equal(offline_check(&h.host, &c), DT_OK);
    c.clone_rounds = c.iterations;
    assert_int_equal(offline_check(&h.host, &c), DT_ECONFIG);
    c.clone_rounds = c.iterations - 1;
    assert_int_equal(offline_check(&h.host, &c), DT_OK);
    c.algorithm = OFFLINE_CLONE;
    assert_int_equal(offline_check(&h.host, &c), DT_ECONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record), cmocka_unit_test(test_measures), cmocka_unit_test(test_estimates),
        cmocka_unit_test(test_mix),    cmocka_unit_test(test_costs),    cmocka_unit_test(test_multipliers),
        cmocka_unit_test(test_rounds), cmocka_unit_test(test_start),    cmocka_unit_test(test_options_without_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
