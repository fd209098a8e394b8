/* SPDX-License-Identifier: Apache-2.0
 *
 * Target networks: copies of parameters that follow them by a rule or when they are asked to. An actor and a critic
 * learn from a target network of each; every move is checked against a second computation, element by element, and
 * neither threads nor ranks, resumes or skipped steps change a bit.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "train/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 12, OUT = 2, EVERY = 3 };

/* The actor's target follows at a tenth, the critic's is a copy after every third step, the past stays. */
static void as_pair(toy *t)
{
    t->is_pair = true;
    t->target[0] = (dt_target_rule){.tau = 0.1, .every = 1};
    t->target[1] = (dt_target_rule){.tau = 1, .every = EVERY};
    t->target[2] = (dt_target_rule){.tau = 1, .every = 0};
}

static dt_status step(toy *t)
{
    dt_step_report r = {.struct_size = sizeof(r)};
    const dt_status st = toy_step(t, &r);
    assert_int_equal(dt_trainer_synchronize(t->trainer), DT_OK);
    return st;
}

/* ---- the rule ---------------------------------------------------------------------------------------------------- */

static float follow(float target, float model, float tau)
{
    const volatile float way = model - target, part = tau * way; /* rounded twice, wherever this is compiled */
    return target + part;
}

/* What the target networks must be, from what they were and what their models are now. */
static void move(const toy *t, uint64_t update, float *expected)
{
    const float *now = dt_trainer_params(t->trainer);
    for (uint32_t i = 0; i < t->params.n; i++) {
        const dt_param *p = &t->params.param[i];
        if (!p->is_target || t->target[p->target].every == 0 || update % t->target[p->target].every != 0) {
            continue;
        }
        for (int64_t k = 0; k < p->count; k++) {
            float *s = &expected[p->offset + k];
            const float m = now[t->params.param[p->of].offset + k];
            const double tau = t->target[p->target].tau;
            *s = tau == 1 ? m : follow(*s, m, (float)tau);
        }
    }
}

static void same_targets(const toy *t, const float *expected)
{
    const float *now = dt_trainer_params(t->trainer);
    for (uint32_t i = 0; i < t->params.n; i++) {
        const dt_param *p = &t->params.param[i];
        if (p->is_target) {
            assert_memory_equal(now + p->offset, expected + p->offset, (size_t)p->count * sizeof(*now));
        }
    }
}

/* Of the parameters called so, those that are other numbers than in `before`. */
static int64_t changed(const toy *t, const char *prefix, const float *before)
{
    const float *now = dt_trainer_params(t->trainer);
    int64_t n = 0;
    for (uint32_t i = 0; i < t->params.n; i++) {
        const dt_param *p = &t->params.param[i];
        for (int64_t k = p->offset; strncmp(p->name, prefix, strlen(prefix)) == 0 && k < p->offset + p->count; k++) {
            n += now[k] != before[k];
        }
    }
    return n;
}

static float *copy_of(const toy *t)
{
    const size_t bytes = (size_t)t->params.total * sizeof(float);
    float *copy = malloc(bytes);
    memcpy(copy, dt_trainer_params(t->trainer), bytes);
    return copy;
}

static void test_they_follow_their_models(void **state)
{
    toy t;
    toy_init(&t);
    as_pair(&t);
    toy_start(&t);
    float *expected = copy_of(&t), *first = copy_of(&t);
    dt_param_table_copy_targets(&t.params, NULL, expected); /* they begin as their models */
    same_targets(&t, expected);
    for (uint64_t i = 1; i <= STEPS; i++) {
        assert_int_equal(step(&t), DT_OK);
        move(&t, i, expected);
        same_targets(&t, expected);
    }
    assert_true(changed(&t, "actor@target.", first) > 0);
    assert_true(changed(&t, "critic@target.", first) > 0);
    assert_int_equal(changed(&t, "actor@past.", first), 0);
    free(expected);
    free(first);
    toy_fini(&t);
}

/* Parameters of more elements than a worker moves at a time, which begin and end within what others move. */
static void test_many_elements_follow(void **state)
{
    toy t;
    toy_init(&t);
    as_pair(&t);
    t.pair_hidden = 20011; /* w1: 140,077 elements, more than twice 65,536 */
    t.count = 40;
    t.config.threads = 2;
    toy_start(&t);
    float *expected = copy_of(&t), *first = copy_of(&t);
    for (uint64_t i = 1; i <= EVERY; i++) {
        assert_int_equal(step(&t), DT_OK);
        move(&t, i, expected);
        same_targets(&t, expected);
    }
    assert_true(changed(&t, "critic@target.", first) > 130000);
    free(expected);
    free(first);
    toy_fini(&t);
}

static void test_a_copy_is_exact(void **state)
{
    toy t;
    toy_init(&t);
    as_pair(&t);
    toy_start(&t);
    assert_int_equal(step(&t), DT_OK);
    float *before = copy_of(&t);
    assert_int_equal(dt_trainer_copy_to_targets(t.trainer, "past"), DT_OK);
    dt_param_table_copy_targets(&t.params, "past", before);
    same_targets(&t, before);
    assert_int_equal(changed(&t, "a", before) + changed(&t, "c", before), 0); /* nothing else */
    assert_int_equal(dt_trainer_copy_to_targets(t.trainer, "target"), DT_OK);
    dt_param_table_copy_targets(&t.params, "target", before); /* of both models */
    same_targets(&t, before);
    assert_int_equal(dt_trainer_copy_to_targets(t.trainer, "ghost"), DT_EINVAL);
    assert_error_has("there is no target network \"ghost\"; there are target, target, past");
    free(before);
    toy_fini(&t);
    toy_init(&t);
    toy_start(&t);
    assert_int_equal(dt_trainer_copy_to_targets(t.trainer, "past"), DT_EINVAL);
    assert_error_has("there is none");
    toy_fini(&t);
}

/* A step that is skipped for an overflow moves nothing and does not count. */
static void test_a_skipped_step_moves_nothing(void **state)
{
    toy t;
    int skipped = 0;
    toy_init(&t);
    as_pair(&t);
    t.config.scaling = toy_overflowing;
    toy_start(&t);
    float *expected = copy_of(&t);
    for (int i = 0; i < STEPS; i++) {
        const uint64_t before = dt_trainer_updates(t.trainer);
        assert_int_equal(step(&t), DT_OK);
        const uint64_t now = dt_trainer_updates(t.trainer);
        skipped += now == before;
        if (now != before) {
            move(&t, now, expected);
        }
        same_targets(&t, expected);
    }
    assert_true(skipped > 0 && skipped < STEPS);
    free(expected);
    toy_fini(&t);
}

/* ---- in graphs --------------------------------------------------------------------------------------------------- */

static void valued_by_target(toy *t)
{
    as_pair(t);
    t->target[0].every = t->target[1].every = 0;
    t->is_valued_by_target = true;
}

/* The actor's gradient through the critic's target network, against differences of the loss; nothing of it reaches the
 * target, nor the critic. */
static void test_gradients_flow_through(void **state)
{
    const char *const names[] = {"actor"};
    toy t;
    toy_init(&t);
    valued_by_target(&t);
    toy_start(&t);
    const uint64_t n = dt_trainer_vector_size(t.trainer);
    assert_int_equal(n, t.params.count); /* what is a target network's is not in the vector */
    float *at = malloc(n * sizeof(*at)), *gradient = malloc(n * sizeof(*at));
    double value = 0;
    assert_int_equal(dt_trainer_vector_get(t.trainer, at), DT_OK);
    assert_int_equal(dt_trainer_gradient(t.trainer, "actor", gradient, &value), DT_OK);
    const int64_t n_actor = t.params.param[0].count + t.params.param[1].count;
    const float e = 1e-2F;
    double largest = 0;
    for (int64_t i = 0; i < n_actor; i++) {
        double above = 0, below = 0;
        const float was = at[i];
        at[i] = was + e;
        assert_int_equal(dt_trainer_vector_set(t.trainer, at), DT_OK);
        assert_int_equal(dt_trainer_losses(t.trainer, names, 1, &above), DT_OK);
        at[i] = was - e;
        assert_int_equal(dt_trainer_vector_set(t.trainer, at), DT_OK);
        assert_int_equal(dt_trainer_losses(t.trainer, names, 1, &below), DT_OK);
        at[i] = was;
        const double slope = (above - below) / (double)(2 * e);
        assert_true(fabs(slope - (double)gradient[i]) < 1e-4);
        largest = fmax(largest, fabs(slope));
    }
    assert_true(largest > 0.05);
    for (uint64_t i = (uint64_t)n_actor; i < n; i++) {
        assert_true(gradient[i] == 0);
    }
    free(at);
    free(gradient);
    toy_fini(&t);
}

typedef struct acts { /* how many actions of the actor and of its past differ */
    int64_t rows, differ;
} acts;

static dt_status compare_acts(void *user, const dt_rows *rows)
{
    acts *a = user;
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *now = dt_rows_get_output(rows, "a", dim, &rank),
                *past = dt_rows_get_output(rows, "a_past", dim, &rank);
    for (int64_t i = 0; i < dim[0] * OUT; i++) {
        a->differ += now[i] != past[i];
    }
    a->rows += dim[0];
    return DT_OK;
}

static int64_t n_differ(toy *t)
{
    acts a = {0};
    assert_int_equal(dt_trainer_evaluate(t->trainer, &t->source, &a, compare_acts), DT_OK);
    assert_true(a.rows > 100);
    return a.differ;
}

static void test_they_act(void **state)
{
    toy t;
    toy_init(&t);
    as_pair(&t);
    toy_start(&t);
    assert_int_equal(n_differ(&t), 0);
    assert_int_equal(step(&t), DT_OK);
    assert_true(n_differ(&t) > 100);
    assert_int_equal(dt_trainer_copy_to_targets(t.trainer, "past"), DT_OK);
    assert_int_equal(n_differ(&t), 0);
    toy_fini(&t);
}

/* What the actor's target network "past" does on five rows, by a policy. */
static void act_of_past(dt_policy *p, float *out)
{
    float x[5 * 5];
    const int64_t size[2] = {5, 2};
    for (int i = 0; i < 25; i++) {
        x[i] = (float)(i % 7) / 7 - 0.4F;
    }
    void *const field[4] = {x, NULL, NULL, NULL};
    assert_int_equal(dt_policy_run(p, 0, size, field), DT_OK);
    const dt_view *v = dt_policy_output(p, 0, "a_past");
    assert_non_null(v);
    memcpy(out, v->data, 5 * OUT * sizeof(*out));
}

/* A policy that is held, as while the next round is collected in parallel with learning, keeps its target networks;
 * saved and loaded, it has them elsewhere. */
static void test_a_policy_holds_them(void **state)
{
    toy t, other;
    dt_policy *p[2];
    dt_str saved = {0};
    float held[10], later[10], loaded[10];
    toy *const both[] = {&t, &other};
    const int64_t cap[2] = {8, 2};
    for (int i = 0; i < 2; i++) {
        toy_init(both[i]);
        as_pair(both[i]);
        both[i]->target[2].every = 1;
        toy_start(both[i]);
        const dt_policy_desc d = {.source = &both[i]->source, .cap = cap, .pieces = 1, .places = 1};
        assert_int_equal(dt_policy_create(both[i]->trainer, &d, &p[i]), DT_OK);
        assert_int_equal(dt_policy_allocate_frozen(p[i]), DT_OK);
    }
    assert_int_equal(step(&t), DT_OK);
    assert_int_equal(dt_policy_freeze_params(p[0]), DT_OK);
    act_of_past(p[0], held);
    assert_int_equal(step(&t), DT_OK); /* the target continues */
    act_of_past(p[0], later);
    assert_memory_equal(held, later, sizeof(held));
    assert_int_equal(dt_policy_save(p[0], &saved), DT_OK);
    assert_int_equal(dt_policy_load(p[1], dt_str_text(&saved), saved.bytes), DT_OK);
    act_of_past(p[1], loaded);
    assert_memory_equal(held, loaded, sizeof(held));
    assert_int_equal(dt_policy_use_current_params(p[0]), DT_OK);
    act_of_past(p[0], later);
    assert_true(memcmp(held, later, sizeof(held)) != 0);
    dt_str_fini(&saved);
    for (int i = 0; i < 2; i++) {
        dt_policy_destroy(p[i]);
        toy_fini(both[i]);
    }
}

static void test_one_that_is_not_there(void **state)
{
    toy t;
    toy_init(&t);
    as_pair(&t);
    t.as = "ghost";
    assert_int_equal(toy_try_start(&t), DT_ENOTFOUND);
    assert_error_has("model_as: critic has no target network \"ghost\"; the trainer gave it target");
    toy_fini(&t);
    toy_init(&t);
    as_pair(&t);
    t.as = "past"; /* another model's */
    assert_int_equal(toy_try_start(&t), DT_ENOTFOUND);
    assert_error_has("critic has no target network \"past\"");
    toy_fini(&t);
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

static void on_two_threads(toy *t)
{
    as_pair(t);
    t->config.threads = 2;
}

static void of_sgd(toy *t)
{
    as_pair(t);
    t->config.optim = (dt_optim_step){.kind = DT_OPTIMIZER_SGD, .momentum = 0.9};
}

static void test_threads_ranks_and_resumes_change_no_bit(void **state)
{
    toy_change *const change[] = {on_two_threads, of_sgd};
    for (size_t c = 0; c < sizeof(change) / sizeof(change[0]); c++) {
        outcome one;
        outcome_train(change[c], STEPS, &one);
        for (uint32_t ranks = 1; ranks <= 4; ranks++) {
            outcome_on_ranks(change[c], STEPS, ranks, &one);
        }
        for (int cut = 1; cut < STEPS; cut += 4) {
            outcome_resumed(change[c], STEPS, cut, &one);
        }
        outcome_drop(&one);
    }
}

static void test_arenas_end_before_them(void **state)
{
    toy t;
    toy_init(&t);
    as_pair(&t);
    toy_start(&t);
    assert_true(t.params.base_total < t.params.total);
    assert_true(t.params.count < t.params.base_total);
    for (uint32_t i = 0; i < t.params.n; i++) {
        const dt_param *p = &t.params.param[i];
        assert_int_equal(p->is_target, p->offset >= t.params.base_total);
        assert_true(p->frozen == p->is_target);
    }
    toy_fini(&t);
    toy_init(&t);
    toy_start(&t);
    assert_int_equal(t.params.base_total, t.params.total);
    toy_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_they_follow_their_models),
        cmocka_unit_test(test_many_elements_follow),
        cmocka_unit_test(test_a_copy_is_exact),
        cmocka_unit_test(test_a_skipped_step_moves_nothing),
        cmocka_unit_test(test_gradients_flow_through),
        cmocka_unit_test(test_they_act),
        cmocka_unit_test(test_a_policy_holds_them),
        cmocka_unit_test(test_one_that_is_not_there),
        cmocka_unit_test(test_threads_ranks_and_resumes_change_no_bit),
        cmocka_unit_test(test_arenas_end_before_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
