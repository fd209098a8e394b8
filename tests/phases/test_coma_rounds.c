/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of phase_coma with a trainer and a rollout that only count: epsilon, passes of critic and actor, targets, the
 * explained variance, how many rounds a number of episodes is, what it reports, and what it binds, records and refuses.
 * (Its losses: test_coma.c.)
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../phases/phase_coma/phase_coma.c"
#include "mock/options.h"
#include "mock/recorded.h"

#include "unit.h"

enum { N = 4, OF_PASS = 2, CHOICES = 3 };
static const float rewards[N] = {1, 2, 3, 4}, values[N] = {2, 4, 5, 7};
static float td_of[N] = {3, 6, 4, 9}, given_next[N], annotated[N], epsilon, acting_epsilon;
static uint64_t now, n_steps, sought;
static uint32_t masks[16];
static dt_rollout_report collected;
static dt_train_desc made;
static dt_train_group made_group[GROUPS];
static dt_train_target made_target;
static const char *missing; /* a field that rows lack */
static uint32_t n_reports, n_destroyed, n_learners, wired_flags;
static dt_rollout_desc planned;
static double wanted_gamma = 0.5;
static dt_wiring *to_wire;
static char bound[160];
static dt_tensor *shown[2]; /* to the critic and to its target, of the others' actions */

static uint32_t fails_at; /* the n-th call from now that has a status fails; 0: none */

static dt_status turn(void)
{
    return fails_at > 0 && --fails_at == 0 ? DT_EDIVERGED : DT_OK;
}

static dt_status fake_position(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *of_pass)
{
    *step = now;
    *steps = n_steps;
    *of_pass = OF_PASS;
    return turn();
}

static dt_status fake_step(dt_train *t, uint32_t groups, dt_step_report *r)
{
    masks[now++ % 16] = groups;
    r->samples = now % 2 == 0 ? 0 : 8; /* every second minibatch is empty */
    r->loss = (double)now;
    r->grad_norm = 0.5 * (double)now;
    r->learning_rate = 0.25 * (double)now;
    return turn();
}

static dt_status fake_seek(dt_train *t, uint64_t step)
{
    now = sought = step;
    return turn();
}

static dt_status fake_set(dt_train *t, const char *name, const float *x, uint32_t n)
{
    assert_string_equal(name, "epsilon");
    assert_int_equal(n, CHOICES);
    epsilon = x[CHOICES - 1];
    return turn();
}

static dt_status fake_set_acting(dt_train *t, const char *name, const float *x, uint32_t n)
{
    assert_string_equal(name, "epsilon");
    assert_int_equal(n, CHOICES);
    acting_epsilon = x[CHOICES - 1];
    return turn();
}

static const void *fake_rows(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank)
{
    dim[0] = N / 2; /* they come in two parts */
    *rank = 1;
    const size_t from = r == NULL ? 0 : N / 2;
    if (missing != NULL && strcmp(name, missing) == 0) {
        return NULL;
    }
    return strcmp(name, "reward") == 0 ? rewards + from : strcmp(name, "target_q") == 0 ? values + from : NULL;
}

static dt_status fake_evaluate(dt_train *t, dt_data *d, void *user, dt_status (*each)(void *user, const dt_rows *r))
{
    (void)t, (void)d;
    DT_TRY_H(each(user, NULL));
    DT_TRY_H(each(user, (const dt_rows *)(const void *)&now));
    return turn();
}

static dt_status fake_create(const dt_host *h, const dt_train_desc *d, dt_train **out)
{
    made = *d;
    memcpy(made_group, d->group, sizeof(made_group));
    made_target = *d->target;
    *out = (dt_train *)(void *)&now;
    return turn();
}

static dt_status fake_collect(dt_rollout *r, dt_train *t, dt_rollout_report *out)
{
    (void)r, (void)t;
    *out = collected;
    return turn();
}

static dt_status fake_returns(dt_rollout *r, const float *value, const float *next, double gamma, double lambda,
                              float *out, uint64_t n)
{
    assert_int_equal(n, N);
    assert_true(gamma == wanted_gamma && lambda == 0.75);
    assert_memory_equal(value, values, sizeof(values));
    memcpy(given_next, next, sizeof(given_next));
    memcpy(out, td_of, sizeof(td_of));
    return turn();
}

static dt_status fake_annotate(dt_rollout *r, const char *name, const float *rows, uint64_t n)
{
    assert_string_equal(name, "td_target");
    assert_int_equal(n, N);
    memcpy(annotated, rows, sizeof(annotated));
    return turn();
}

static dt_data *fake_data(dt_rollout *r)
{
    return NULL;
}

static uint32_t fake_models(const dt_wiring *w, dt_model **out, uint32_t n)
{
    (void)w, (void)out, (void)n;
    return 1;
}

static uint32_t fake_instances(const dt_env *e)
{
    return 8;
}

static uint32_t fake_learners(const dt_env *e)
{
    return n_learners;
}

static dt_status fake_report(dt_rollout *r, dt_train *t)
{
    (void)r, (void)t;
    n_reports++;
    return turn();
}

static dt_status fake_plan(const dt_host *h, dt_env *env, const dt_rollout_desc *d, dt_rollout **out)
{
    (void)h, (void)env;
    planned = *d;
    assert_int_equal(d->n_annotations, 1);
    assert_string_equal(d->annotation->name, "td_target");
    assert_string_equal(d->annotation->dims, "A 1");
    *out = (dt_rollout *)(void *)&planned;
    return turn();
}

static void fake_destroy(dt_train *t)
{
    n_destroyed++;
}

static dt_status fake_wire(const dt_host *h, const dt_wiring_desc *d, dt_wiring **out)
{
    wired_flags = d->flags;
    *out = to_wire;
    return turn();
}

static dt_status fake_bind(dt_wiring *w, const dt_model_request *want, dt_model **out)
{
    assert_true(w == to_wire && want->n_dims == 1 && want->n_offers == 1 && want->n_needs == 1);
    snprintf(bound, sizeof(bound), "%s: %s=%lld %s[%s] -> %s[%s]", want->role, want->dims[0].name,
             (long long)want->dims[0].size, want->offers[0].name, want->offers[0].dims, want->needs[0].name,
             want->needs[0].dims);
    *out = (dt_model *)(void *)bound;
    return turn();
}

/* Of the controller logits; of the critic q, or by the target's parameters q_target. */
static dt_status fake_record(dt_wiring *w, dt_graph *g, const dt_wiring_view *view, dt_model *m, const dt_named *more,
                             uint32_t n_more, dt_named *out, uint32_t n_out)
{
    assert_int_equal(n_out, 1);
    if (m == w->controller) {
        assert_true(view == NULL && n_more == 0 && strcmp(out[0].name, "logits") == 0);
        out[0].tensor = g->api->input(g, "logits_of_controller");
        return DT_OK;
    }
    assert_ptr_equal(m, bound);
    assert_true(n_more == 1 && strcmp(more[0].name, "others") == 0 && strcmp(out[0].name, "q") == 0);
    const bool is_target = view != NULL;
    assert_true(!is_target || (view->has_all == 1 && view->prefix[0] == '\0' && strcmp(view->target, "target") == 0));
    shown[is_target] = more[0].tensor;
    out[0].tensor = g->api->input(g, is_target ? "q_target" : "q_now");
    return DT_OK;
}

typedef struct rig {
    mock_host host;
    dt_wiring wiring;
    dt_env_spec spec;
    float room[5][N];
    state s;
} rig;

static void rig_open(rig *r)
{
    static const dt_train_api train = {.struct_size = sizeof(train),
                                       .position = fake_position,
                                       .step_groups = fake_step,
                                       .seek = fake_seek,
                                       .set = fake_set,
                                       .set_acting = fake_set_acting,
                                       .rows = fake_rows,
                                       .evaluate = fake_evaluate,
                                       .create = fake_create,
                                       .destroy = fake_destroy};
    static const dt_rollout_api rollout = {.struct_size = sizeof(rollout),
                                           .collect = fake_collect,
                                           .returns = fake_returns,
                                           .annotate = fake_annotate,
                                           .data = fake_data,
                                           .create = fake_plan,
                                           .report = fake_report};
    static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .scalar = record_scalar};
    static const dt_wiring_api wiring = {.struct_size = sizeof(wiring),
                                         .create = fake_wire,
                                         .bind = fake_bind,
                                         .record_model = fake_record,
                                         .models = fake_models};
    static const dt_bind_api bind = {
        .struct_size = sizeof(bind), .env_instances = fake_instances, .env_learners = fake_learners};
    static const char *const costs[] = {"crash"}, *const names[] = {"delay"};
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    mock_host_serve(&r->host, DT_SVC_BIND, &bind);
    mock_host_serve(&r->host, DT_SVC_TRAIN, &train);
    mock_host_serve(&r->host, DT_SVC_METRICS, &metrics);
    mock_host_serve(&r->host, DT_SVC_ROLLOUT, &rollout);
    mock_host_serve(&r->host, DT_SVC_WIRING, &wiring);
    r->spec =
        (dt_env_spec){.max_steps = 15, .n_agents = 4, .costs = costs, .n_costs = 1, .metrics = names, .n_metrics = 1};
    r->wiring = (dt_wiring){.api = &wiring,
                            .spec = &r->spec,
                            .n_choices = CHOICES,
                            .env_id = "test",
                            .controller = (dt_model *)(void *)&r->spec};
    to_wire = &r->wiring;
    r->s = (state){.h = &r->host.host,
                   .bind = &bind,
                   .train = &train,
                   .rollout = &rollout,
                   .metrics = &metrics,
                   .wiring = &r->wiring,
                   .agents = 4,
                   .most = N,
                   .updates = 3,
                   .reward = r->room[0],
                   .value = r->room[1],
                   .next_value = r->room[2],
                   .td = r->room[3],
                   .chance = r->room[4],
                   .config = {.batch = 10,
                              .batch_number = OF_PASS,
                              .data_passes = 2,
                              .updates = 1500,
                              .target_interval = 3,
                              .target_tau = 0.5,
                              .epsilon = 0.5,
                              .epsilon_end = 0.1,
                              .epsilon_updates = 2,
                              .critic_learning_rate = 2e-3,
                              .gamma = 0.5,
                              .lambda = 0.75}};
    collected = (dt_rollout_report){.agent_steps = N,
                                    .env_steps = 1,
                                    .episodes = 1,
                                    .episode_return = 6,
                                    .episode_length = 9,
                                    .episode_cost = {0.75},
                                    .metric = {1.25},
                                    .env_s = 0.5,
                                    .policy_s = 0.125,
                                    .wait_s = 0.0625,
                                    .total_s = 2};
    now = sought = 0;
    n_reports = n_destroyed = 0;
    n_learners = 4;
    missing = NULL;
    n_steps = 3 * 2 * OF_PASS;
    n_recorded = 0;
}

static void test_rounds(void **state_p)
{
    static const float of_round[] = {0.5F, 0.3F, 0.1F}; /* in a line, and then 0.1 */
    rig r;
    dt_progress p = {0};
    rig_open(&r);
    r.s.updates = 7;
    for (int k = 0; k < 3; k++) {
        n_recorded = 0;
        assert_int_equal(iterate(&r.s, &p), k < 2 ? DT_OK : DT_DONE);
        assert_true(fabsf(epsilon - of_round[k]) < 1e-6F);
        assert_true(p.step == (uint64_t)(k + 1) * 4 && p.epoch == (uint64_t)k && p.iterations == (uint64_t)k + 1);
        assert_true(p.loss == (double)(4 * k + 3)); /* of the last minibatch that had samples */
        assert_true(p.grad_norm == 0.5 * (4 * k + 3) && p.learning_rate == 0.25 * (4 * k + 3));
        assert_true(p.steps == 12 && p.epochs == 7 && p.samples == 1 && p.epoch_end == 1);
        assert_true(masks[4 * k] == 3 && masks[4 * k + 3] == 3);
        assert_true(recorded_value("charts/episodic_return") == 6 && recorded_value("charts/env_steps_per_s") == 0.5);
        assert_true(recorded_value("charts/episodic_length") == 9 && recorded_value("costs/crash") == 0.75);
        assert_true(recorded_value("env/delay") == 1.25 && recorded_value("charts/episodes") == 1);
        assert_true(fabs(recorded_value("charts/epsilon") - (double)of_round[k]) < 1e-6);
        assert_true(recorded_value("time/env") == 0.5 && recorded_value("time/policy") == 0.125);
        assert_true(recorded_value("time/env_wait") == 0.0625 && recorded_value("time/learn") >= 0);
        assert_true(fabs(recorded_value("charts/learn_samples_per_s") * recorded_value("time/learn") - 16) < 1e-9);
        assert_false(is_recorded("charts/rounds_without_samples"));
    }
    assert_int_equal(iterate(&r.s, &p), DT_DONE);
    assert_true(fabs(epsilon_at(&r.s.config, 9) - 0.1) < 1e-12);
    for (int i = 0; i < N; i++) { /* (Q' - r) / gamma */
        assert_true(fabsf(given_next[i] - (values[i] - rewards[i]) / 0.5F) < 1e-6F);
    }
    assert_memory_equal(annotated, td_of, sizeof(td_of));
    /* y: 3 6 4 9, deviation squared 5.25; y - Q': 1 2 -1 2, 1.5 */
    assert_true(fabs(recorded_value("losses/explained_variance") - (1 - 1.5 / 5.25)) < 1e-9);
    for (int i = 0; i < N; i++) {
        r.s.td[i] = 5; /* does not vary */
    }
    assert_true(isnan(explained_variance(&r.s)));
}

/* All passes of the critic, then as many of the actor. */
static void test_critic_first(void **state_p)
{
    rig r;
    dt_progress p = {0};
    rig_open(&r);
    r.s.config.critic_first = 1;
    n_steps = 3 * 4 * OF_PASS;
    assert_int_equal(iterate(&r.s, &p), DT_OK);
    assert_int_equal(now, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(masks[i], i < 4 ? 1 << CRITIC : 1 << ACTOR);
    }
}

static void test_empty_round(void **state_p)
{
    rig r;
    dt_progress p = {0};
    rig_open(&r);
    collected = (dt_rollout_report){.episodes = 0};
    assert_int_equal(iterate(&r.s, &p), DT_OK);
    assert_int_equal(sought, 4);
    assert_true(p.step == 4 && isnan(p.loss) && recorded_value("charts/rounds_without_samples") == 1);
    assert_true(isnan(recorded_value("charts/episodic_return")) && isnan(recorded_value("losses/explained_variance")));
    assert_true(isnan(recorded_value("charts/learn_samples_per_s")) && recorded_value("charts/episodes") == 0);
    assert_true(isnan(recorded_value("charts/env_steps_per_s"))); /* no time was measured */
    assert_true(mock_names(r.host.log, "1 charts/rounds_without_samples"));
    /* rows of an earlier round do not explain an empty one, and the log has one line of all */
    collected = (dt_rollout_report){.agent_steps = N, .total_s = 1};
    assert_int_equal(iterate(&r.s, &p), DT_OK);
    assert_true(!isnan(recorded_value("losses/explained_variance")));
    r.host.log[0] = '\0';
    collected = (dt_rollout_report){.episodes = 0};
    n_recorded = 0;
    assert_int_equal(iterate(&r.s, &p), DT_DONE);
    assert_int_equal(sought, 12);
    assert_true(isnan(recorded_value("losses/explained_variance")));
    assert_true(recorded_value("charts/rounds_without_samples") == 2);
    assert_string_equal(r.host.log, "");
}

/* What rows must have; without a discount nothing follows. */
static void test_rows(void **state_p)
{
    static const char *const field[] = {"reward", "target_q"};
    rig r;
    dt_progress p = {0};
    for (int i = 0; i < 2; i++) {
        rig_open(&r);
        missing = field[i];
        assert_int_equal(iterate(&r.s, &p), DT_EUNSUPPORTED);
    }
    rig_open(&r);
    r.s.most = N - 1; /* more than there is room for */
    assert_int_equal(iterate(&r.s, &p), DT_EUNSUPPORTED);
    rig_open(&r);
    r.s.config.gamma = 0;
    for (int i = 0; i < N; i++) {
        r.room[2][i] = 9;
    }
    wanted_gamma = 0;
    assert_int_equal(compute_targets(&r.s), DT_OK);
    wanted_gamma = 0.5;
    assert_int_equal(r.s.n, N);
    for (int i = 0; i < N; i++) {
        assert_true(given_next[i] == 0 && r.s.reward[i] == rewards[i] && r.s.value[i] == values[i]);
    }
    r.s.n = 0;
    assert_true(isnan(explained_variance(&r.s)));
}

static void test_start(void **state_p)
{
    rig r;
    rig_open(&r);
    epsilon = acting_epsilon = 1;
    assert_int_equal(start(&r.s), DT_OK);
    assert_int_equal(made.epochs, 3 * 2);
    assert_int_equal(made.n_groups, 2);
    assert_true(made_target.tau == 0.5 && made_target.every == 3 * OF_PASS * 2); /* steps of three rounds */
    assert_string_equal(made_group[ACTOR].loss[0], "policy_loss");
    assert_int_equal(made_group[ACTOR].n_losses, 3);
    assert_string_equal(made_group[CRITIC].loss[0], "critic_loss");
    assert_true(made_group[CRITIC].learning_rate == 2e-3 && made_group[ACTOR].learning_rate == 0);
    assert_true(epsilon == 0);
    assert_string_equal(made_group[ACTOR].name, "actor");
    assert_string_equal(made_group[CRITIC].name, "critic");
    assert_string_equal(made_group[ACTOR].role[0], "controller");
    assert_string_equal(made_group[CRITIC].role[0], "critic");
    assert_true(made_group[ACTOR].n_roles == 1 && made_group[CRITIC].n_roles == 1);
    assert_int_equal(made_group[CRITIC].n_losses, 1);
    assert_string_equal(made_group[ACTOR].loss[1], "approx_kl");
    assert_string_equal(made_group[ACTOR].loss[2], "entropy");
    assert_true(made.n_models == 1 && made.n_targets == 1 && made.user == &r.s && made.record == record);
    assert_string_equal(made_target.name, "target");
    assert_ptr_equal(made_target.model, r.s.critic);
    assert_string_equal(r.host.log, ""); /* batches are as asked for */
    r.s.config.critic_first = 1;
    r.s.config.batch_number = 3;
    assert_int_equal(start(&r.s), DT_OK);
    assert_int_equal(made.epochs, 3 * 4);
    assert_int_equal(made_target.every, 3 * 3 * 2); /* of the critic's own steps */
    assert_true(mock_names(r.host.log, "2 phase_coma.batch_number 3"));
    assert_true(mock_names(r.host.log, "data.batch 3 env.instances 8"));
    assert_true(acting_epsilon == 0);
    dt_progress p = {0};
    assert_int_equal(evaluate(&r.s, &p), DT_OK);
    assert_true(n_reports == 1 && p.evaluated == 1);
}

static config configured(const char *const *set)
{
    void *at = mock_config(&component, set);
    const config c = *(const config *)at;
    free(at);
    return c;
}

static void test_create(void **state_p)
{
    static const char *const set[] = {"batch=81", "batch_number=2", "gamma=0.25", "lambda=0.125", NULL};
    const config c = configured(set);
    rig r;
    state s = {0};
    rig_open(&r);
    r.spec.n_heads = 1;
    assert_int_equal(create(&s, &r.host.host, &c), DT_OK);
    assert_int_equal(wired_flags, DT_WIRING_NO_VALUE);
    assert_string_equal(bound, "critic: others=12 others[A 12] -> q[A 3]");
    assert_true(planned.steps == 6 && planned.gamma == 0.25 && planned.lambda == 0.125 && planned.transitions == 2);
    assert_int_equal(s.most, 6 * 8 * 4); /* steps, instances, agents */
    assert_int_equal(r.host.n_live, 5);
    destroy(&s);
    assert_true(r.host.n_live == 0 && n_destroyed == 0);
    n_learners = 2; /* a team: as many transitions take more steps */
    s = (state){0};
    assert_int_equal(create(&s, &r.host.host, &c), DT_OK);
    assert_true(s.agents == 2 && planned.steps == 11 && s.most == 11 * 8 * 2);
    s.trainer = (dt_train *)(void *)&now;
    destroy(&s);
    assert_true(r.host.n_live == 0 && n_destroyed == 1);
    n_learners = 0; /* refused later */
    s = (state){0};
    assert_int_equal(create(&s, &r.host.host, &c), DT_OK);
    assert_int_equal(s.agents, 1);
    destroy(&s);
    for (int i = 1; i <= 5; i++) {
        r.host.fail_alloc = i;
        s = (state){0};
        assert_int_equal(create(&s, &r.host.host, &c), DT_ENOMEM);
        destroy(&s);
        assert_int_equal(r.host.n_live, 0);
    }
    destroy(&(state){0});
}

/* Whatever call fails ends what was begun. */
static void test_no_error_is_lost(void **state_p)
{
    for (int op = 0; op < 5; op++) {
        for (uint32_t n = 1, left = 0; left == 0; n++) {
            const config c = configured(NULL);
            dt_progress p = {0};
            state fresh = {0};
            rig r;
            rig_open(&r);
            r.spec.n_heads = 1;
            if (op == 3) {
                collected = (dt_rollout_report){.episodes = 0}; /* a round in which no agent acted */
            }
            fails_at = n;
            const dt_status st = op == 0   ? create(&fresh, &r.host.host, &c)
                                 : op == 1 ? start(&r.s)
                                 : op < 4  ? iterate(&r.s, &p)
                                           : evaluate(&r.s, &p);
            left = fails_at;
            fails_at = 0;
            destroy(&fresh);
            n_recorded = 0;
            if (st != (left > 0 ? DT_OK : DT_EDIVERGED)) {
                fail_msg("operation %d: call %u failed, and the whole ended with %d", op, n, (int)st);
            }
        }
    }
}

static void test_refused(void **state_p)
{
    static const struct {
        uint32_t heads, continuous, agents;
        dt_status st;
    } world[] = {
        {1, 0, 2, DT_OK}, {1, 0, 1, DT_ESHAPE}, {2, 0, 2, DT_ESHAPE}, {0, 0, 2, DT_ESHAPE}, {1, 1, 2, DT_ESHAPE}};
    rig r;
    rig_open(&r);
    for (size_t i = 0; i < sizeof(world) / sizeof(world[0]); i++) {
        r.spec.n_heads = world[i].heads;
        r.spec.n_continuous = world[i].continuous;
        r.spec.n_agents = world[i].agents;
        assert_int_equal(check_environment(&r.s), world[i].st);
    }
    r.spec.n_continuous = 0;
    r.wiring.shield = (dt_model *)(void *)bound;
    assert_int_equal(check_environment(&r.s), DT_ECONFIG);
    assert_true(mock_names(r.host.message, "models.shield"));
    r.wiring.shield = NULL;
    r.wiring.perception = (dt_model *)(void *)bound;
    assert_int_equal(check_environment(&r.s), DT_ECONFIG);
    assert_true(mock_names(r.host.message, "models.perception"));
    for (uint32_t i = 0; i < 5; i++) {
        const config c = configured(NULL);
        state s = {0};
        rig_open(&r);
        r.host.service_id[i] = "none";
        assert_int_equal(create(&s, &r.host.host, &c), DT_EUNSUPPORTED);
    }
}

/* What is recorded of which model: the actor's mixed choices, the critic and its target. */
static void test_recorded(void **state_p)
{
    rig r;
    for (int others = 0; others < 2; others++) {
        mock_graph g;
        mock_graph_init(&g, NULL);
        rig_open(&r);
        r.s.critic = (dt_model *)(void *)bound;
        r.s.config.others = (uint8_t)others;
        r.s.config.entropy_coef = 0.5;
        assert_int_equal(record(&r.s, &g.graph), DT_OK);
        for (int i = 0; i < 2; i++) { /* without the others nothing of them is seen */
            if (others) {
                assert_string_equal(shown[i]->name, "others");
            } else {
                assert_true(shown[i]->op == DT_OP_AFFINE && shown[i]->attr.f[0] == 0 && shown[i]->attr.f[1] == 0);
                assert_string_equal(shown[i]->in[0]->name, "others");
            }
        }
        assert_int_equal(g.n_outputs, 2);
        assert_string_equal(g.output[0].name, "logits");
        assert_string_equal(g.output[1].name, "target_q");
        assert_int_equal(g.output[1].value->op, DT_OP_PICK);
        assert_string_equal(g.output[1].value->in[0]->name, "q_target");
        assert_int_equal(g.n_losses, 4);
        static const char *const name[] = {"policy_loss", "approx_kl", "entropy", "critic_loss"};
        static const double weight[] = {1, 0, -0.5, 1};
        for (int i = 0; i < 4; i++) {
            assert_string_equal(g.loss[i].name, name[i]);
            assert_string_equal(g.loss[i].symbol, "A");
            assert_true(g.loss[i].weight == weight[i]);
        }
        const dt_tensor *critic = g.loss[3].value;
        assert_int_equal(critic->op, DT_OP_MSE);
        assert_string_equal(critic->in[0]->in[0]->name, "q_now");
        assert_string_equal(critic->in[1]->name, "td_target");
    }
}

static void test_options(void **state_p)
{
    assert_options(&component, "updates=1500 [1,1e+09]\n"
                               "episodes=0 [0,1e+12]\n"
                               "batch=128 [1,1e+09]\n"
                               "batch_number=5 [1,1e+06]\n"
                               "data_passes=5 [1,1000]\n"
                               "critic_first=false\n"
                               "gamma=0.99 [0,1]\n"
                               "lambda=0.8 [0,1]\n"
                               "target_interval=10 [1,1e+09]\n"
                               "target_tau=1 [1e-06,1]\n"
                               "critic_learning_rate=1e-4 [0,1000]\n"
                               "epsilon=0.5 [0,0.999]\n"
                               "epsilon_end=0.02 [0,0.999]\n"
                               "epsilon_updates=1000 [1,1e+09]\n"
                               "clip=0 [0,1]\n"
                               "entropy_coef=0 [0,1e+06]\n"
                               "baseline=counterfactual\n"
                               "others=true\n");
}

static int n_warnings;

static void count_warnings(const dt_host *h, int32_t level, const char *message)
{
    (void)h, (void)message;
    n_warnings += level == 1;
}

/* 20 transitions of 4 agents in 8 instances: a step of each. 100 episodes of 15 steps are 300 rounds of them. */
static void test_number_of_rounds(void **state_p)
{
    uint32_t steps = 0;
    rig r;
    rig_open(&r);
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(steps, 1);
    assert_int_equal(r.s.updates, 1500);
    assert_true(mock_names(r.host.log, "1500 20 500 15 4"));
    r.s.config.batch = 81; /* 162 transitions: 41 steps of all, 6 of 8 instances */
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(steps, 6);
    r.s.config.batch = 10;
    r.s.config.episodes = 100;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(r.s.updates, 300);
    r.s.config.episodes = 1; /* 60 transitions are 3 rounds of 20, and 4 of 19 */
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(r.s.updates, 3);
    r.s.config.batch_number = 1;
    r.s.config.batch = 19;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(r.s.updates, 4);
    r.spec.max_steps = 0;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_ECONFIG);
    r.s.config.episodes = 0; /* updates count, and episodes may be of any length */
    r.host.log[0] = '\0';
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_string_equal(r.host.log, "");
    r.s.config.batch = (int64_t)UINT32_MAX * 32;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(steps, UINT32_MAX);
    r.s.config.batch += 32;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_ECONFIG);
}

/* One of two numbers that say how many rounds there are has no effect, and is reported where it was set. */
static void test_updates_without_effect(void **state_p)
{
    uint32_t steps = 0;
    rig r;
    rig_open(&r);
    r.spec.max_steps = 15;
    r.s.config.episodes = 100;
    n_warnings = 0;
    r.host.host.log = count_warnings;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(n_warnings, 0);
    r.s.config.updates = 1501;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(n_warnings, 1);
    r.s.config.episodes = 0;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(n_warnings, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_critic_first),
        cmocka_unit_test(test_empty_round),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_no_error_is_lost),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_number_of_rounds),
        cmocka_unit_test(test_updates_without_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
