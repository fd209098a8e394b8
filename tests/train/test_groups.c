/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of losses: each moves its own parameters alone, to the bits it would move them to by itself, with updates,
 * learning rate and clipping of its own; steps of some groups leave all else as it was; neither threads nor ranks nor
 * resumes change a bit; what does not make sense is refused.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, CRITIC = 1, ACTOR = 2, BOTH = 3 };

static void as_groups(toy *t)
{
    t->is_pair = t->is_grouped = true;
    t->target[0] = (dt_target_rule){.tau = 0.1, .every = 1};
    t->target[1] = (dt_target_rule){.tau = 0.1, .every = 1};
}

/* The critic in every step, the actor in every second one. */
static void in_turns(toy *t)
{
    static const uint32_t turns[] = {CRITIC, BOTH};
    as_groups(t);
    t->turn = turns;
    t->n_turns = 2;
    t->group[0].gradient_clip = 0.3;
    t->group[1].gradient_clip = -1;
    t->group[1].learning_rate = 5e-3;
}

static dt_status step_of(toy *t, uint32_t groups, dt_step_report *r)
{
    *r = (dt_step_report){.struct_size = sizeof(*r)};
    const dt_status st = dt_trainer_step_groups(t->trainer, groups, r);
    assert_int_equal(dt_trainer_synchronize(t->trainer), DT_OK);
    return st;
}

/* ---- who moves what ---------------------------------------------------------------------------------------------- */

typedef struct copy { /* parameters and moments */
    float *at[3];
    size_t n;
} copy;

static copy copy_of(toy *t)
{
    copy c = {.n = (size_t)t->params.base_total};
    const float *from[] = {dt_trainer_params(t->trainer), dt_trainer_moment(t->trainer, 0),
                           dt_trainer_moment(t->trainer, 1)};
    for (int i = 0; i < 3; i++) {
        c.at[i] = calloc(c.n, sizeof(float));
        if (from[i] != NULL) {
            memcpy(c.at[i], from[i], c.n * sizeof(float));
        }
    }
    return c;
}

static void copy_drop(copy *c)
{
    for (int i = 0; i < 3; i++) {
        free(c->at[i]);
    }
}

/* Elements of a role that are other ones in b, in all arenas. */
static int64_t differ(const toy *t, const char *role, const copy *a, const copy *b)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < t->params.n; i++) {
        const dt_param *p = &t->params.param[i];
        const size_t length = strlen(role);
        if (p->is_target || strncmp(p->name, role, length) != 0 || p->name[length] != '.') {
            continue;
        }
        for (int k = 0; k < 3; k++) {
            for (int64_t e = p->offset; e < p->offset + p->count; e++) {
                n += memcmp(&a->at[k][e], &b->at[k][e], sizeof(float)) != 0;
            }
        }
    }
    return n;
}

/* Two steps of everything, then one of these groups; what came of it, and of before. */
static void after(toy_change *change, uint32_t groups, toy *t, copy *before, copy *now)
{
    dt_step_report r;
    toy_init(t);
    change(t);
    toy_start(t);
    assert_int_equal(step_of(t, BOTH, &r), DT_OK);
    assert_int_equal(step_of(t, BOTH, &r), DT_OK);
    *before = copy_of(t);
    assert_int_equal(step_of(t, groups, &r), DT_OK);
    *now = copy_of(t);
}

static void test_each_moves_its_own(void **state)
{
    toy t[3];
    copy before[3], now[3];
    for (uint32_t i = 0; i < 3; i++) {
        after(as_groups, i + 1, &t[i], &before[i], &now[i]);
        assert_int_equal(differ(&t[0], "actor", &before[0], &before[i]), 0);
    }
    /* a step of one leaves the other as it was, though its loss goes through it */
    assert_int_equal(differ(&t[0], "actor", &before[0], &now[0]), 0);
    assert_true(differ(&t[0], "critic", &before[0], &now[0]) > 100);
    assert_int_equal(differ(&t[1], "critic", &before[1], &now[1]), 0);
    assert_true(differ(&t[1], "actor", &before[1], &now[1]) > 30);
    /* and together they come to what each comes to alone */
    assert_int_equal(differ(&t[2], "critic", &now[0], &now[2]), 0);
    assert_int_equal(differ(&t[2], "actor", &now[1], &now[2]), 0);
    for (int i = 0; i < 3; i++) {
        copy_drop(&before[i]);
        copy_drop(&now[i]);
        toy_fini(&t[i]);
    }
}

/* ---- against gradients derived apart ----------------------------------------------------------------------------- */

static void plain_descent(toy *t)
{
    as_groups(t);
    t->count = 32; /* a batch is all there is */
    t->dropout = 0;
    t->config.gradient_clip = 0;
    t->config.optim = (dt_optim_step){.kind = DT_OPTIMIZER_SGD};
    t->config.schedule = (dt_schedule){.kind = DT_SCHEDULE_CONSTANT, .lr = 1};
}

/* x -> x - gradient: what moved each parameter, against the gradient of its own group's loss alone, and that against
 * differences of the loss. */
static void test_equals_gradients_derived_apart(void **state)
{
    toy t;
    dt_step_report r;
    double value = 0;
    toy_init(&t);
    plain_descent(&t);
    toy_start(&t);
    const uint64_t n = dt_trainer_vector_size(t.trainer);
    float *from = malloc(n * sizeof(float)), *to = malloc(n * sizeof(float));
    float *of_actor = malloc(n * sizeof(float)), *of_critic = malloc(n * sizeof(float));
    assert_int_equal(dt_trainer_gradient(t.trainer, "critic", of_critic, &value), DT_OK);
    assert_int_equal(dt_trainer_gradient(t.trainer, "actor", of_actor, &value), DT_OK);
    assert_int_equal(dt_trainer_vector_get(t.trainer, from), DT_OK);
    const uint64_t n_actor = (uint64_t)(t.params.param[0].count + t.params.param[1].count);
    const char *const names[] = {"critic", "actor"};
    double through = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t loss = i < n_actor;
        const float was = from[i], e = 1e-2F;
        double above[2], below[2];
        from[i] = was + e;
        assert_int_equal(dt_trainer_vector_set(t.trainer, from), DT_OK);
        assert_int_equal(dt_trainer_losses(t.trainer, names, 2, above), DT_OK);
        from[i] = was - e;
        assert_int_equal(dt_trainer_vector_set(t.trainer, from), DT_OK);
        assert_int_equal(dt_trainer_losses(t.trainer, names, 2, below), DT_OK);
        from[i] = was;
        const double slope = (above[loss] - below[loss]) / (double)(2 * e);
        const float *gradient = loss == 1 ? of_actor : of_critic;
        assert_true(fabs(slope - (double)gradient[i]) < 2e-3);
        through += loss == 0 ? fabs((double)of_actor[i]) : 0; /* what the actor's loss would do to the critic */
    }
    assert_true(through > 1);
    assert_int_equal(dt_trainer_vector_set(t.trainer, from), DT_OK);
    /* gradient() reports losses without their weight, which is -1 of the actor */
    assert_int_equal(step_of(&t, BOTH, &r), DT_OK);
    assert_int_equal(dt_trainer_vector_get(t.trainer, to), DT_OK);
    for (uint64_t i = 0; i < n; i++) {
        const float gradient = i < n_actor ? -of_actor[i] : of_critic[i];
        assert_true(fabsf(from[i] - gradient - to[i]) < 2e-5F);
    }
    free(from);
    free(to);
    free(of_actor);
    free(of_critic);
    toy_fini(&t);
}

/* A known optimum: the actor goes where the critic is largest, and the critic's error falls all the while. */
static void test_they_learn(void **state)
{
    toy t;
    dt_step_report r;
    toy_init(&t);
    as_groups(&t);
    toy_start(&t);
    assert_int_equal(step_of(&t, BOTH, &r), DT_OK);
    const double first = r.loss_value[0];
    for (int i = 0; i < 60; i++) {
        assert_int_equal(step_of(&t, CRITIC, &r), DT_OK);
    }
    assert_true(r.loss_value[0] < 0.5 * first);
    assert_int_equal(step_of(&t, ACTOR, &r), DT_OK);
    assert_int_equal(r.n_losses, 1);
    assert_string_equal(r.loss_name[0], "actor");
    const double before = r.loss_value[0];
    for (int i = 0; i < 40; i++) { /* the critic stands still: its value of what is done rises */
        assert_int_equal(step_of(&t, ACTOR, &r), DT_OK);
    }
    assert_true(r.loss_value[0] > before + 0.1);
    assert_true(r.loss == -r.loss_value[0]);
    toy_fini(&t);
}

/* ---- updates, rates, clipping ------------------------------------------------------------------------------------ */

static void test_each_counts_its_own(void **state)
{
    static const uint32_t turns[] = {CRITIC, CRITIC, BOTH, ACTOR, CRITIC};
    const dt_group_state *group = NULL;
    toy t;
    uint64_t updates[2] = {0, 0};
    toy_init(&t);
    as_groups(&t);
    t.group[1].learning_rate = 1e-3;
    toy_start(&t);
    assert_int_equal(dt_trainer_groups(t.trainer, &group), 2);
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        dt_step_report r;
        assert_int_equal(step_of(&t, turns[i], &r), DT_OK);
        assert_int_equal(dt_trainer_reported_groups(t.trainer), turns[i]);
        for (uint32_t g = 0; g < 2; g++) {
            updates[g] += turns[i] >> g & 1;
            assert_int_equal(group[g].updates, updates[g]);
            dt_schedule s = t.config.schedule;
            s.eta_min *= g == 1 ? 1e-3 / s.lr : 1;
            s.lr = g == 1 ? 1e-3 : s.lr;
            if ((turns[i] >> g & 1) != 0) {
                assert_true(group[g].rate == dt_schedule_rate(&s, (double)updates[g] / (double)(t.count / 32)));
                assert_true(group[g].norm > 0 && group[g].norm <= r.grad_norm);
            }
        }
        assert_true(r.learning_rate == group[turns[i] == ACTOR].rate);
    }
    assert_int_equal(dt_trainer_updates(t.trainer), 5);
    toy_fini(&t);
}

/* Adam's first update is as long as the rate in every element, whichever step of the trainer it is in. */
static void test_the_first_update_is_the_first(void **state)
{
    toy t;
    dt_step_report r;
    toy_init(&t);
    as_groups(&t);
    t.config.optim.weight_decay = 0;
    t.config.schedule = (dt_schedule){.kind = DT_SCHEDULE_CONSTANT, .lr = 1e-3};
    toy_start(&t);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(step_of(&t, CRITIC, &r), DT_OK);
    }
    copy before = copy_of(&t);
    assert_int_equal(step_of(&t, ACTOR, &r), DT_OK);
    const dt_param *w = &t.params.param[0];
    for (int64_t i = w->offset; i < w->offset + w->count; i++) {
        const float way = fabsf(dt_trainer_params(t.trainer)[i] - before.at[0][i]);
        assert_true(way > 0.9e-3F && way < 1.1e-3F);
    }
    copy_drop(&before);
    toy_fini(&t);
}

static void clipped_descent(toy *t)
{
    plain_descent(t);
    t->config.gradient_clip = 0.01;
    t->group[0].gradient_clip = 0.05;
    t->group[1].gradient_clip = -1;
}

static double way_of(const toy *t, uint32_t from, uint32_t to, const float *before)
{
    double sum = 0;
    for (uint32_t i = from; i < to; i++) {
        const dt_param *p = &t->params.param[i];
        for (int64_t e = p->offset; e < p->offset + p->count; e++) {
            const double d = (double)(dt_trainer_params(t->trainer)[e] - before[e]);
            sum += d * d;
        }
    }
    return sqrt(sum);
}

static void test_each_is_clipped_by_its_own_norm(void **state)
{
    const dt_group_state *group = NULL;
    toy t;
    dt_step_report r;
    toy_init(&t);
    clipped_descent(&t);
    toy_start(&t);
    copy before = copy_of(&t);
    assert_int_equal(step_of(&t, BOTH, &r), DT_OK);
    (void)dt_trainer_groups(t.trainer, &group);
    assert_true(group[0].norm > 0.06 && group[1].norm > 0.06);
    assert_true(fabs(r.grad_norm - hypot(group[0].norm, group[1].norm)) < 1e-12);
    assert_true(fabs(way_of(&t, 0, 2, before.at[0]) - group[1].norm) < 1e-5); /* the actor: not at all */
    assert_true(fabs(way_of(&t, 2, 6, before.at[0]) - 0.05) < 1e-5);          /* the critic: to its own limit */
    copy_drop(&before);
    toy_fini(&t);
    toy_init(&t);
    clipped_descent(&t);
    t.group[1].gradient_clip = 0;
    toy_start(&t);
    before = copy_of(&t);
    assert_int_equal(step_of(&t, BOTH, &r), DT_OK);
    assert_true(fabs(way_of(&t, 0, 2, before.at[0]) - 0.01) < 1e-5); /* as configured */
    copy_drop(&before);
    toy_fini(&t);
    toy_init(&t);
    clipped_descent(&t);
    t.group[1].gradient_clip = 1000;
    toy_start(&t);
    before = copy_of(&t);
    assert_int_equal(step_of(&t, BOTH, &r), DT_OK);
    (void)dt_trainer_groups(t.trainer, &group);
    assert_true(fabs(way_of(&t, 0, 2, before.at[0]) - group[1].norm) < 1e-5); /* what is below stays as it is */
    copy_drop(&before);
    toy_fini(&t);
}

/* A target network follows after steps that moved its model. */
static void test_targets_follow_their_group(void **state)
{
    toy t;
    dt_step_report r;
    toy_init(&t);
    as_groups(&t);
    toy_start(&t);
    const dt_param *of_actor = NULL, *of_critic = NULL;
    for (uint32_t i = t.params.n; i-- > 0;) {
        const dt_param *p = &t.params.param[i];
        of_actor = p->is_target && p->target == 0 ? p : of_actor;
        of_critic = p->is_target && p->target == 1 ? p : of_critic;
    }
    const float *now = dt_trainer_params(t.trainer);
    assert_int_equal(step_of(&t, BOTH, &r), DT_OK);
    float a = now[of_actor->offset], c = now[of_critic->offset];
    assert_int_equal(step_of(&t, CRITIC, &r), DT_OK);
    assert_true(now[of_actor->offset] == a && now[of_critic->offset] != c);
    c = now[of_critic->offset];
    assert_int_equal(step_of(&t, ACTOR, &r), DT_OK);
    assert_true(now[of_actor->offset] != a && now[of_critic->offset] == c);
    toy_fini(&t);
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

static void of_sgd(toy *t)
{
    in_turns(t);
    t->config.optim = (dt_optim_step){.kind = DT_OPTIMIZER_SGD, .momentum = 0.9};
}

/* Some steps overflow and are skipped. */
static void of_scaled_losses(toy *t)
{
    in_turns(t);
    t->config.scaling = toy_overflowing;
}

static void poisoned_memory(toy *t)
{
    in_turns(t);
    t->config.poison = true;
}

static void without_reuse(toy *t)
{
    in_turns(t);
    t->config.reuse = false;
}

static void test_threads_ranks_and_resumes_change_no_bit(void **state)
{
    toy_change *const change[] = {in_turns, of_sgd, of_scaled_losses};
    for (size_t c = 0; c < sizeof(change) / sizeof(change[0]); c++) {
        outcome one;
        outcome_train(change[c], STEPS, &one);
        assert_true(one.of_group[0] > one.of_group[1] && one.of_group[1] > 0);
        for (uint32_t ranks = 1; ranks <= 4; ranks++) {
            outcome_on_ranks(change[c], STEPS, ranks, &one);
        }
        for (int cut = 1; cut < STEPS; cut += 4) {
            outcome_resumed(change[c], STEPS, cut, &one);
        }
        outcome_drop(&one);
    }
}

static void the_critic_alone(toy *t)
{
    static const uint32_t turns[] = {CRITIC};
    as_groups(t);
    t->turn = turns;
    t->n_turns = 1;
}

static void test_others_are_not_sent(void **state)
{
    outcome all[2], one[2];
    outcome_of_ranks(as_groups, NULL, 0, 4, 2, all);
    outcome_of_ranks(the_critic_alone, NULL, 0, 4, 2, one);
    for (int i = 0; i < 2; i++) {
        assert_true(all[i].sent > 0);
        assert_true(one[i].sent < all[i].sent);
        outcome_drop(&all[i]);
        outcome_drop(&one[i]);
    }
}

static void test_memory_plan_changes_no_bit(void **state)
{
    outcome reuse, poisoned, separate;
    outcome_train(in_turns, STEPS, &reuse);
    outcome_train(poisoned_memory, STEPS, &poisoned);
    outcome_train(without_reuse, STEPS, &separate);
    outcome_same(&reuse, &poisoned);
    outcome_same(&reuse, &separate);
    outcome_drop(&reuse);
    outcome_drop(&poisoned);
    outcome_drop(&separate);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void refused(toy *t, dt_status st, const char *text)
{
    assert_int_equal(toy_try_start(t), st);
    assert_error_has(text);
    toy_fini(t);
}

static void test_refusals(void **state)
{
    static const char *const both[] = {"critic", "actor"}, *const ghost[] = {"critic", "ghost"};
    toy t;
    toy_init(&t);
    as_groups(&t);
    t.group[0].loss = both;
    t.group[0].n_losses = 2;
    refused(&t, DT_EPLUGIN, "loss actor is in two groups, critic and actor");
    toy_init(&t);
    as_groups(&t);
    t.group[0].loss = ghost;
    t.group[0].n_losses = 2;
    refused(&t, DT_EPLUGIN, "group critic has the loss ghost, which is not recorded");
    toy_init(&t);
    as_groups(&t);
    t.n_groups = 1;
    refused(&t, DT_EPLUGIN, "loss actor is in no group");
    toy_init(&t);
    as_groups(&t);
    t.freeze = "actor";
    refused(&t, DT_ECONFIG, "group actor updates nothing: its losses depend on no parameter of its roles");
    toy_init(&t);
    as_groups(&t);
    t.apart = "actor";
    refused(&t, DT_EPLUGIN, "loss actor is in no group, but groups are used");
    toy_init(&t);
    as_groups(&t);
    t.n_groups = DT_TRAIN_MAX_GROUPS + 1;
    refused(&t, DT_EINVAL, "9 groups of losses; at most 8 are possible");
    toy_init(&t);
    as_groups(&t);
    toy_start(&t);
    dt_step_report r = {.struct_size = sizeof(r)};
    assert_int_equal(dt_trainer_step_groups(t.trainer, 0, &r), DT_EINVAL);
    assert_error_has("a step of the groups 0x0; there are 2, the mask is 0x3");
    assert_int_equal(dt_trainer_step_groups(t.trainer, 5, &r), DT_EINVAL);
    assert_error_has("0x5");
    assert_int_equal(dt_trainer_step_number(t.trainer), 0);
    toy_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_moves_its_own),
        cmocka_unit_test(test_equals_gradients_derived_apart),
        cmocka_unit_test(test_they_learn),
        cmocka_unit_test(test_each_counts_its_own),
        cmocka_unit_test(test_the_first_update_is_the_first),
        cmocka_unit_test(test_each_is_clipped_by_its_own_norm),
        cmocka_unit_test(test_targets_follow_their_group),
        cmocka_unit_test(test_threads_ranks_and_resumes_change_no_bit),
        cmocka_unit_test(test_others_are_not_sent),
        cmocka_unit_test(test_memory_plan_changes_no_bit),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
