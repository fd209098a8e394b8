/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch norm in training: running statistics are what a second computation makes of the micro-batches that were read,
 * whatever the optimizer; neither threads, ranks, resumes nor a device change a bit; evaluations use them; and what is
 * frozen, of another group or of a target network keeps its own.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "engine/device/host_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 6, IN = 5, MOST = 64, CRITIC = 1, ACTOR = 2 };

static void with_batch_norm(toy *t)
{
    t->has_batch_norm = true;
    t->config.slice_rows = 64; /* a leaf is one slice on the CPU too */
    t->config.optim.weight_decay = 0.1;
}

static const dt_param *param(const toy *t, const char *name)
{
    const dt_param *p = dt_param_table_find(&t->params, name);
    assert_non_null(p);
    return p;
}

static const float *value(toy *t, const char *name)
{
    assert_int_equal(dt_trainer_synchronize(t->trainer), DT_OK);
    return dt_trainer_params(t->trainer) + param(t, name)->offset;
}

static dt_status step(toy *t, dt_step_report *r)
{
    *r = (dt_step_report){.struct_size = sizeof(*r)};
    return toy_step(t, r);
}

/* ---- the rule ---------------------------------------------------------------------------------------------------- */

typedef struct seen { /* a micro-batch: samples, and of the rows that count the statistics */
    double samples, mean[IN], var[IN];
    bool has_mean, has_var;
} seen;

static seen read_so_far[MOST];
static int n_read;
static float factor = 1; /* of what is read */
static dt_status (*read_toy)(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out);

static dt_status read_and_see(void *self, const uint64_t *index, const uint64_t *key, uint32_t n, void *const *out)
{
    const toy *t = self;
    float *x = out[0];
    int64_t rows = 0;
    const dt_status st = read_toy(self, index, key, n, out);
    assert_int_equal(t->ops.sizes(t, index, n, &rows), DT_OK);
    if (n_read < MOST) {
        seen *s = &read_so_far[n_read++];
        *s = (seen){.samples = n};
        for (int j = 0; j < IN; j++) {
            double count = 0, sum = 0, square = 0;
            for (int pass = 0; pass < 2; pass++) {
                for (int64_t r = 0; r < rows; r++) {
                    const double v = (double)x[r * IN + j] - (pass > 0 ? sum / count : 0);
                    const bool counts = x[r * IN] + 0.5F > 0;
                    count += counts && pass == 0;
                    sum += counts && pass == 0 ? v : 0;
                    square += counts && pass > 0 ? v * v : 0;
                }
            }
            s->has_mean = count > 0;
            s->has_var = count > 1;
            s->mean[j] = sum / count;
            s->var[j] = square / (count - 1);
        }
    }
    for (int64_t i = 0; i < rows * IN; i++) {
        x[i] *= factor;
    }
    return st;
}

static void watch_reading(toy *t)
{
    n_read = 0;
    factor = 1;
    read_toy = t->ops.read;
    t->ops.read = read_and_see;
}

/* batch: samples of a step, whose micro-batches are read in order by one thread */
static void check_rule(uint32_t batch, int64_t slice_rows, double momentum, bool sgd)
{
    toy t;
    dt_step_report r;
    toy_init(&t);
    with_batch_norm(&t);
    watch_reading(&t);
    t.momentum = momentum;
    t.config.batch = batch;
    t.config.slice_rows = slice_rows;
    t.config.threads = 1;
    t.config.gradient_clip = 1e-3; /* clips what the optimizer moves alone */
    if (sgd) {
        t.config.optim = (dt_optim_step){.kind = DT_OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 1e-3};
    }
    toy_start(&t);
    double mean[IN] = {0}, var[IN] = {1, 1, 1, 1, 1};
    int at = 0;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(step(&t, &r), DT_OK);
        const seen *first = &read_so_far[at];
        for (double n = 0; n < batch; n += read_so_far[at++].samples) {
            assert_true(at < n_read);
        }
        for (int j = 0; j < IN; j++) {
            double to_mean = 0, to_var = 0;
            for (const seen *s = first; s < &read_so_far[at]; s++) {
                to_mean += s->has_mean ? s->samples / batch * (s->mean[j] - mean[j]) : 0;
                to_var += s->has_var ? s->samples / batch * (s->var[j] - var[j]) : 0;
            }
            mean[j] += momentum * to_mean;
            var[j] += momentum * to_var;
            assert_true(fabs((double)value(&t, "net.bn.mean")[j] - mean[j]) < 1e-6);
            assert_true(fabs((double)value(&t, "net.bn.var")[j] - var[j]) < 1e-6);
        }
    }
    toy_fini(&t);
}

static void test_running_statistics_follow_the_rule(void **state)
{
    check_rule(32, 64, 0.1, false);
    check_rule(32, 64, 1, true);
    check_rule(32, 9, 0.25, false); /* leaves are cut into slices */
    check_rule(8, 64, 0.5, false);  /* a sample a leaf, some with one row, some with none that counts */
    check_rule(5, 64, 0.5, false);  /* empty leaves */
}

/* Neither norms nor losses have a part of statistics. */
static void test_they_are_in_no_norm(void **state)
{
    dt_step_report r[2];
    for (int k = 0; k < 2; k++) {
        toy t;
        toy_init(&t);
        with_batch_norm(&t);
        t.momentum = k;
        toy_start(&t);
        assert_int_equal(dt_trainer_vector_size(t.trainer), t.params.count - 2 * IN);
        assert_int_equal(t.params.trained_count, t.params.count - 2 * IN);
        assert_int_equal(step(&t, &r[k]), DT_OK);
        assert_true((value(&t, "net.bn.mean")[0] != 0) == (k != 0));
        assert_true((value(&t, "net.bn.var")[0] != 1) == (k != 0));
        toy_fini(&t);
    }
    assert_true(r[0].grad_norm == r[1].grad_norm && r[0].loss == r[1].loss && r[0].grad_norm > 0);
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static void of_sgd(toy *t)
{
    with_batch_norm(t);
    t->config.optim = (dt_optim_step){.kind = DT_OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 1e-3};
}

static void of_few_samples(toy *t)
{
    with_batch_norm(t);
    t->config.batch = 5;
}

static void of_scaled_losses(toy *t)
{
    with_batch_norm(t);
    t->config.scaling = toy_overflowing;
}

static void as_pair(toy *t)
{
    static const uint32_t turns[] = {CRITIC, CRITIC | ACTOR, ACTOR};
    with_batch_norm(t);
    t->is_pair = t->is_grouped = true;
    t->target[0] = (dt_target_rule){.tau = 0.1, .every = 1};
    t->target[1] = (dt_target_rule){.tau = 0.5, .every = 1};
    t->turn = turns;
    t->n_turns = 3;
}

static toy_change *const changes[] = {with_batch_norm, of_sgd, of_few_samples, of_scaled_losses, as_pair};
enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

static void test_threads_ranks_and_resumes_change_no_bit(void **state)
{
    for (int k = 0; k < CHANGES; k++) {
        outcome one;
        outcome_train(changes[k], STEPS, &one);
        outcome_on_ranks(changes[k], STEPS, 2, &one);
        outcome_on_ranks(changes[k], STEPS, 3, &one);
        outcome_resumed(changes[k], STEPS, 4, &one);
        outcome_drop(&one);
    }
}

static void test_a_device_equals_the_cpu(void **state)
{
    for (int k = 0; k < CHANGES; k++) {
        outcome o[2];
        for (int on_device = 0; on_device < 2; on_device++) {
            toy t;
            toy_init(&t);
            changes[k](&t);
            if (on_device) {
                host_device_reset(UINT64_C(1) << 32);
                t.device_ops = host_device_ops();
                t.device = host_device();
                t.config.synchronous = true;
                t.config.graphs = true;
            }
            toy_start(&t);
            outcome_run(&t, &o[on_device], 0, STEPS);
            outcome_keep(&t, &o[on_device]);
            toy_fini(&t);
        }
        outcome_same_state(&o[0], &o[1]);
        if (changes[k] != of_scaled_losses) { /* of skipped steps another rate */
            outcome_same_reports(&o[0], &o[1]);
        }
        outcome_drop(&o[0]);
        outcome_drop(&o[1]);
    }
}

/* ---- who has which ----------------------------------------------------------------------------------------------- */

/* gamma (x - mean) / sqrt(var + 1e-5) + beta, by numbers that are set, row by row */
static dt_status check_outputs(void *user, const dt_rows *rows)
{
    toy *t = user;
    int64_t dim[DT_MAX_DIMS];
    uint32_t rank = 0;
    const float *y = dt_rows_get_output(rows, "y_hat", dim, &rank), *x = dt_rows_get_output(rows, "x", dim, &rank);
    const float *w1 = value(t, "net.w1"), *b1 = value(t, "net.b1"), *w2 = value(t, "net.w2"), *b2 = value(t, "net.b2");
    const float *gamma = value(t, "net.bn.gamma"), *beta = value(t, "net.bn.beta");
    const float *mean = value(t, "net.bn.mean"), *var = value(t, "net.bn.var");
    for (int64_t r = 0; r < dim[0]; r++) {
        double out = (double)b2[0];
        for (int64_t h = 0; h < t->hidden; h++) {
            double sum = (double)b1[h];
            for (int j = 0; j < IN && x[r * IN] + 0.5F > 0; j++) {
                const double n = ((double)x[r * IN + j] - (double)mean[j]) / sqrt((double)var[j] + 1e-5);
                sum += (double)w1[h * IN + j] * ((double)gamma[j] * n + (double)beta[j]);
            }
            out += (double)w2[h] * tanh(sum);
        }
        assert_true(fabs((double)y[r * 2] - out) < 1e-4);
    }
    return DT_OK;
}

static void test_evaluations_use_running_statistics(void **state)
{
    toy t;
    outcome o;
    toy_init(&t);
    with_batch_norm(&t);
    t.momentum = 0.5;
    toy_start(&t);
    outcome_run(&t, &o, 0, STEPS);
    assert_int_equal(dt_trainer_evaluate(t.trainer, &t.source, &t, check_outputs), DT_OK);
    toy_fini(&t);
}

static void test_frozen_ones_stay_and_are_used(void **state)
{
    static const char *const pattern[] = {"net.bn.mean", "net.bn.*"};
    for (int k = 0; k < 2; k++) {
        toy t;
        outcome o;
        toy_init(&t);
        with_batch_norm(&t);
        t.dropout = 0;
        t.freeze = pattern[k];
        toy_start(&t);
        float *p = dt_trainer_params(t.trainer);
        for (int j = 0; j < IN; j++) {
            p[param(&t, "net.bn.mean")->offset + j] = 0.25F;
            p[param(&t, "net.bn.var")->offset + j] = 4;
        }
        outcome_run(&t, &o, 0, STEPS);
        for (int j = 0; j < IN; j++) {
            assert_true(value(&t, "net.bn.mean")[j] == 0.25F && value(&t, "net.bn.var")[j] == 4);
            assert_true((value(&t, "net.bn.gamma")[j] == 1) == (k == 1));
        }
        toy_fini(&t);
    }
}

static void test_groups_and_target_networks(void **state)
{
    toy t;
    dt_step_report r;
    float before[2];
    toy_init(&t);
    as_pair(&t);
    toy_start(&t);
    for (int k = 0; k < STEPS; k++) {
        before[0] = value(&t, "critic.bn.mean")[0];
        before[1] = value(&t, "critic@target.bn.mean")[0];
        assert_int_equal(step(&t, &r), DT_OK);
        const float now = value(&t, "critic.bn.mean")[0], target = value(&t, "critic@target.bn.mean")[0];
        const bool is_moved = (t.turn[k % 3] & CRITIC) != 0;
        assert_true((now != before[0]) == is_moved);
        assert_true(target == (is_moved ? before[1] + 0.5F * (now - before[1]) : before[1]));
    }
    toy_fini(&t);
}

/* Two ops of a graph that read the same x, of which with groups the critic's losses reach one: with momentum 1 the mean
 * is that of all that is read, neither twice nor half of it. */
static void check_one_update(bool is_grouped)
{
    enum { ALL = 150, MOST_ROWS = 5 * ALL };
    toy t;
    dt_step_report r;
    static float x[MOST_ROWS * IN], y[MOST_ROWS * 2], w[MOST_ROWS];
    uint64_t index[ALL];
    int64_t rows = 0;
    double sum = 0;
    toy_init(&t);
    as_pair(&t);
    t.is_grouped = is_grouped;
    t.turn = NULL;
    t.momentum = 1;
    t.config.shards = 1;
    t.config.batch = ALL;
    t.config.slice_rows = MOST_ROWS;
    toy_start(&t);
    for (uint64_t i = 0; i < ALL; i++) {
        index[i] = i;
    }
    assert_int_equal(t.ops.sizes(&t, index, ALL, &rows), DT_OK);
    assert_int_equal(t.ops.read(&t, index, index, ALL, (void *[]){x, y, w, NULL}), DT_OK);
    for (int64_t k = 0; k < rows; k++) {
        sum += (double)x[k * IN];
    }
    assert_int_equal(step(&t, &r), DT_OK);
    assert_true(fabs((double)value(&t, "critic.bn.mean")[0] - sum / (double)rows) < 1e-6);
    toy_fini(&t);
}

static void test_several_uses_are_one_update(void **state)
{
    check_one_update(false);
    check_one_update(true);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* y is near 1, but the variance is beyond what a float holds. */
static void test_a_statistic_that_is_not_finite_ends_training(void **state)
{
    for (int on_device = 0; on_device < 2; on_device++) {
        toy t;
        dt_step_report r;
        toy_init(&t);
        with_batch_norm(&t);
        watch_reading(&t);
        factor = 1e25F;
        if (on_device) {
            host_device_reset(UINT64_C(1) << 32);
            t.device_ops = host_device_ops();
            t.device = host_device();
            t.config.synchronous = true;
        }
        toy_start(&t);
        assert_int_equal(step(&t, &r), DT_EDIVERGED);
        assert_error_has("net.bn.var is not finite");
        toy_fini(&t);
    }
}

static void test_a_phase_that_updates_parameters_itself_is_rejected(void **state)
{
    toy t;
    toy_init(&t);
    with_batch_norm(&t);
    t.apart = "hidden";
    assert_int_equal(toy_try_start(&t), DT_ECONFIG);
    assert_error_has("net.bn.mean");
    assert_error_has("group norm");
    toy_fini(&t);
}

static void of_no_group(toy *t)
{
    static const char *const role[] = {"actor"}, *const loss[] = {"critic", "actor"};
    as_pair(t);
    t->turn = NULL;
    t->n_groups = 1;
    t->group[0] = (dt_trainer_group){.name = "all", .role = role, .loss = loss, .n_roles = 1, .n_losses = 2};
}

/* x needs no gradient. */
static void of_frozen_scale_and_shift(toy *t)
{
    with_batch_norm(t);
    t->freeze = "net.bn.*a"; /* gamma, beta */
}

static void test_statistics_that_nothing_moves_are_rejected(void **state)
{
    static const struct {
        toy_change *change;
        const char *stays, *freeze;
    } c[] = {{of_no_group, "critic.bn.mean", "critic.bn.*"}, {of_frozen_scale_and_shift, "net.bn.mean", "net.bn.*"}};
    for (int k = 0; k < 4; k++) {
        const bool is_frozen = k % 2 != 0;
        toy t;
        toy_init(&t);
        c[k / 2].change(&t);
        t.freeze = is_frozen ? c[k / 2].freeze : t.freeze;
        assert_int_equal(toy_try_start(&t), is_frozen ? DT_OK : DT_ECONFIG);
        if (!is_frozen) {
            assert_error_has(c[k / 2].stays);
            assert_error_has("training.freeze");
        }
        toy_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_running_statistics_follow_the_rule),
        cmocka_unit_test(test_they_are_in_no_norm),
        cmocka_unit_test(test_threads_ranks_and_resumes_change_no_bit),
        cmocka_unit_test(test_a_device_equals_the_cpu),
        cmocka_unit_test(test_evaluations_use_running_statistics),
        cmocka_unit_test(test_frozen_ones_stay_and_are_used),
        cmocka_unit_test(test_groups_and_target_networks),
        cmocka_unit_test(test_several_uses_are_one_update),
        cmocka_unit_test(test_a_statistic_that_is_not_finite_ends_training),
        cmocka_unit_test(test_a_phase_that_updates_parameters_itself_is_rejected),
        cmocka_unit_test(test_statistics_that_nothing_moves_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
