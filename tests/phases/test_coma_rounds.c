/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of phase_coma with a trainer and a rollout that only count: epsilon, passes of critic and actor, targets, the
 * explained variance and how many rounds a number of episodes is. (Its losses: test_coma.c.)
 */
#include "mock/mock.h" /* before cmocka.h, which has a macro fail() */
#include "../../phases/phase_coma/phase_coma.c"
#include "mock/recorded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { N = 4, OF_PASS = 2, CHOICES = 3 };
static const float rewards[N] = {1, 2, 3, 4}, values[N] = {2, 4, 5, 7};
static float td_of[N] = {3, 5, 4, 8}, given_next[N], annotated[N], epsilon;
static uint64_t now, n_steps, sought;
static uint32_t masks[16];
static dt_rollout_report collected;
static dt_train_desc made;
static dt_train_group made_group[GROUPS];
static dt_train_shadow made_shadow;

static dt_status fake_position(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *of_pass)
{
    (void)t;
    *step = now;
    *steps = n_steps;
    *of_pass = OF_PASS;
    return DT_OK;
}

static dt_status fake_step(dt_train *t, uint32_t groups, dt_step_report *r)
{
    (void)t;
    masks[now++ % 16] = groups;
    r->samples = now % 2 == 0 ? 0 : 8; /* every second minibatch is empty */
    r->loss = (double)now;
    return DT_OK;
}

static dt_status fake_seek(dt_train *t, uint64_t step)
{
    (void)t;
    now = sought = step;
    return DT_OK;
}

static dt_status fake_set(dt_train *t, const char *name, const float *x, uint32_t n)
{
    (void)t;
    assert_string_equal(name, "epsilon");
    assert_int_equal(n, CHOICES);
    epsilon = x[CHOICES - 1];
    return DT_OK;
}

static const void *fake_rows(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank)
{
    (void)r;
    dim[0] = N / 2; /* they come in two parts */
    *rank = 1;
    const size_t from = r == NULL ? 0 : N / 2;
    return strcmp(name, "reward") == 0 ? rewards + from : strcmp(name, "target_q") == 0 ? values + from : NULL;
}

static dt_status fake_evaluate(dt_train *t, dt_data *d, void *user, dt_status (*each)(void *user, const dt_rows *r))
{
    (void)t, (void)d;
    DT_TRY_H(each(user, NULL));
    return each(user, (const dt_rows *)(const void *)&now);
}

static dt_status fake_create(const dt_host *h, const dt_train_desc *d, dt_train **out)
{
    (void)h;
    made = *d;
    memcpy(made_group, d->group, sizeof(made_group));
    made_shadow = *d->shadow;
    *out = (dt_train *)(void *)&now;
    return DT_OK;
}

static dt_status fake_collect(dt_rollout *r, dt_train *t, dt_rollout_report *out)
{
    (void)r, (void)t;
    *out = collected;
    return DT_OK;
}

static dt_status fake_returns(dt_rollout *r, const float *value, const float *next, double gamma, double lambda,
                              float *out, uint64_t n)
{
    (void)r;
    assert_int_equal(n, N);
    assert_true(gamma == 0.5 && lambda == 0.75);
    assert_memory_equal(value, values, sizeof(values));
    memcpy(given_next, next, sizeof(given_next));
    memcpy(out, td_of, sizeof(td_of));
    return DT_OK;
}

static dt_status fake_annotate(dt_rollout *r, const char *name, const float *rows, uint64_t n)
{
    (void)r;
    assert_string_equal(name, "td_target");
    assert_int_equal(n, N);
    memcpy(annotated, rows, sizeof(annotated));
    return DT_OK;
}

static dt_data *fake_data(dt_rollout *r)
{
    (void)r;
    return NULL;
}

static uint32_t fake_models(const dt_wiring *w, dt_model **out, uint32_t n)
{
    (void)w, (void)out, (void)n;
    return 1;
}

static uint32_t fake_instances(const dt_env *e)
{
    (void)e;
    return 8;
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
                                       .rows = fake_rows,
                                       .evaluate = fake_evaluate,
                                       .create = fake_create};
    static const dt_rollout_api rollout = {.struct_size = sizeof(rollout),
                                           .collect = fake_collect,
                                           .returns = fake_returns,
                                           .annotate = fake_annotate,
                                           .data = fake_data};
    static const dt_metrics_api metrics = {.struct_size = sizeof(metrics), .scalar = record_scalar};
    static const dt_wiring_api wiring = {.struct_size = sizeof(wiring), .models = fake_models};
    static const dt_bind_api bind = {.struct_size = sizeof(bind), .env_instances = fake_instances};
    static const char *const costs[] = {"crash"}, *const names[] = {"delay"};
    memset(r, 0, sizeof(*r));
    mock_host_init(&r->host);
    r->spec =
        (dt_env_spec){.max_steps = 15, .n_agents = 4, .costs = costs, .n_costs = 1, .metrics = names, .n_metrics = 1};
    r->wiring = (dt_wiring){.api = &wiring, .spec = &r->spec, .n_choices = CHOICES, .env_id = "test"};
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
    collected = (dt_rollout_report){.agent_steps = N, .env_steps = 1, .episodes = 1, .episode_return = 6, .total_s = 2};
    now = sought = 0;
    n_steps = 3 * 2 * OF_PASS;
    n_recorded = 0;
}

static void test_rounds(void **state_p)
{
    (void)state_p;
    static const float of_round[] = {0.5F, 0.3F, 0.1F}; /* in a line, and then 0.1 */
    rig r;
    dt_progress p = {0};
    rig_open(&r);
    for (int k = 0; k < 3; k++) {
        n_recorded = 0;
        assert_int_equal(iterate(&r.s, &p), k < 2 ? DT_OK : DT_DONE);
        assert_true(fabsf(epsilon - of_round[k]) < 1e-6F);
        assert_true(p.step == (uint64_t)(k + 1) * 4 && p.epoch == (uint64_t)k && p.iterations == (uint64_t)k + 1);
        assert_true(p.loss == (double)(4 * k + 3)); /* of the last minibatch that had samples */
        assert_true(masks[4 * k] == 3 && masks[4 * k + 3] == 3);
        assert_true(recorded_value("charts/episodic_return") == 6 && recorded_value("charts/env_steps_per_s") == 0.5);
    }
    assert_int_equal(iterate(&r.s, &p), DT_DONE);
    assert_true(fabs(epsilon_of(&r.s.config, 9) - 0.1) < 1e-12);
    for (int i = 0; i < N; i++) { /* (Q' - r) / gamma */
        assert_true(fabsf(given_next[i] - (values[i] - rewards[i]) / 0.5F) < 1e-6F);
    }
    assert_memory_equal(annotated, td_of, sizeof(td_of));
    /* y: 3 5 4 8, deviation squared 3.5; y - Q': 1 1 -1 1, 0.75 */
    assert_true(fabs(recorded_value("losses/explained_variance") - (1 - 0.75 / 3.5)) < 1e-9);
    for (int i = 0; i < N; i++) {
        r.s.td[i] = 5; /* does not vary */
    }
    assert_true(isnan(explained_variance(&r.s)));
}

/* All passes of the critic, then as many of the actor. */
static void test_critic_first(void **state_p)
{
    (void)state_p;
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
    (void)state_p;
    rig r;
    dt_progress p = {0};
    rig_open(&r);
    collected = (dt_rollout_report){.episodes = 0};
    assert_int_equal(iterate(&r.s, &p), DT_OK);
    assert_int_equal(sought, 4);
    assert_true(p.step == 4 && isnan(p.loss) && recorded_value("charts/rounds_without_samples") == 1);
    assert_true(isnan(recorded_value("charts/episodic_return")) && isnan(recorded_value("losses/explained_variance")));
}

static void test_start(void **state_p)
{
    (void)state_p;
    rig r;
    rig_open(&r);
    assert_int_equal(start(&r.s), DT_OK);
    assert_int_equal(made.epochs, 3 * 2);
    assert_int_equal(made.n_groups, 2);
    assert_true(made_shadow.tau == 0.5 && made_shadow.every == 3 * OF_PASS * 2); /* steps of three rounds */
    assert_string_equal(made_group[ACTOR].loss[0], "policy_loss");
    assert_int_equal(made_group[ACTOR].n_losses, 3);
    assert_string_equal(made_group[CRITIC].loss[0], "critic_loss");
    assert_true(made_group[CRITIC].learning_rate == 2e-3 && made_group[ACTOR].learning_rate == 0);
    assert_true(epsilon == 0);
}

/* 20 transitions of 4 agents in 8 instances: a step of each. 100 episodes of 15 steps are 300 rounds of them. */
static void test_number_of_rounds(void **state_p)
{
    (void)state_p;
    uint32_t steps = 0;
    rig r;
    rig_open(&r);
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(steps, 1);
    assert_int_equal(r.s.updates, 1500);
    r.s.config.batch = 81; /* 162 transitions: 41 steps of all, 6 of 8 instances */
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(steps, 6);
    r.s.config.batch = 10;
    r.s.config.episodes = 100;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_OK);
    assert_int_equal(r.s.updates, 300);
    r.spec.max_steps = 0;
    assert_int_equal(plan_rounds(&r.s, &steps), DT_ECONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds), cmocka_unit_test(test_critic_first),     cmocka_unit_test(test_empty_round),
        cmocka_unit_test(test_start),  cmocka_unit_test(test_number_of_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
