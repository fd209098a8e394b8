/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters as one vector, and losses and gradients over all samples, against a second computation in double; threads,
 * ranks and devices change no bit of them; what a loss depends on stays as it is when steps are made.
 */
#include <config.h>

#include "outcome.h"

#include "base/err.h"
#include "engine/device/host_device.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 5, HIDDEN = 24, OUT = 2, FIRST = HIDDEN * (IN + 1), TOTAL = FIRST + OUT * (HIDDEN + 1) };
enum { RANKS = 4 };

typedef struct picture { /* all that is asked for */
    float vector[TOTAL], gradient[TOTAL];
    double value, both[2];
} picture;

static void with_hidden(toy *t)
{
    t->apart = "hidden";
}

static void as_it_is(toy *t) {}

static void look(toy *t, picture *p)
{
    static const char *const names[] = {"hidden", "mse"};
    memset(p, 0, sizeof(*p));
    assert_int_equal(dt_trainer_vector_size(t->trainer), t->apart != NULL ? FIRST : TOTAL);
    assert_int_equal(dt_trainer_vector_get(t->trainer, p->vector), DT_OK);
    assert_int_equal(dt_trainer_gradient(t->trainer, "mse", p->gradient, &p->value), DT_OK);
    if (t->apart != NULL) {
        assert_int_equal(dt_trainer_losses(t->trainer, names, 2, p->both), DT_OK);
    }
}

/* ---- the second computation -------------------------------------------------------------------------------------- */

/* w: w1 [HIDDEN, IN], b1, w2 [OUT, HIDDEN], b2. hidden_p: the mean of the sums of the hidden layer. */
static double error_of(toy *t, const double *w, double *hidden_p)
{
    enum { MOST_ROWS = 8 };
    const double *b1 = w + HIDDEN * IN, *w2 = b1 + HIDDEN, *b2 = w2 + OUT * HIDDEN;
    double sum = 0, hidden = 0, rows = 0;
    for (uint64_t i = 0; i < t->count; i++) {
        float x[MOST_ROWS * IN], y[MOST_ROWS * OUT], weight[MOST_ROWS];
        const uint64_t key = 0;
        int64_t k[MOST_ROWS], n = 0;
        void *const out[] = {x, y, weight, k};
        assert_int_equal(t->ops.sizes(t, &i, 1, &n), DT_OK);
        assert_int_equal(t->ops.read(t, &i, &key, 1, out), DT_OK);
        rows += (double)n;
        for (int64_t r = 0; r < n; r++) {
            double h[HIDDEN];
            for (int j = 0; j < HIDDEN; j++) {
                h[j] = b1[j];
                for (int d = 0; d < IN; d++) {
                    h[j] += w[j * IN + d] * (double)x[r * IN + d];
                }
                h[j] = tanh(h[j]);
                hidden += h[j];
            }
            for (int o = 0; o < OUT; o++) {
                double e = b2[o] - (double)y[r * OUT + o];
                for (int j = 0; j < HIDDEN; j++) {
                    e += w2[o * HIDDEN + j] * h[j];
                }
                sum += e * e;
            }
        }
    }
    *hidden_p = hidden / rows;
    return sum / rows;
}

static void test_equals_a_second_computation(void **state)
{
    toy t;
    picture p;
    double w[TOTAL], hidden = 0;
    toy_init(&t);
    with_hidden(&t);
    toy_start(&t);
    look(&t, &p);
    const float *all = dt_trainer_params(t.trainer);
    const dt_param_table *table = &t.params;
    for (uint32_t i = 0, n = 0; i < table->n; i++) {
        for (int64_t k = 0; k < table->param[i].count; k++) {
            w[n++] = (double)all[table->param[i].offset + k];
        }
    }
    const double error = error_of(&t, w, &hidden);
    assert_true(fabs(p.value - error) < 1e-5 * error);
    assert_true(fabs(p.both[1] - error) < 1e-5 * error);
    assert_true(fabs(p.both[0] - hidden) < 1e-4);
    for (int i = 0; i < FIRST; i += 7) {
        const double at = w[i], d = 1e-5;
        assert_true(p.vector[i] == (float)at);
        w[i] = at + d;
        const double above = error_of(&t, w, &hidden);
        w[i] = at - d;
        const double slope = (above - error_of(&t, w, &hidden)) / (2 * d);
        w[i] = at;
        assert_true(fabs((double)p.gradient[i] - slope) < 1e-5);
    }
    toy_fini(&t);
}

/* ---- the same bits everywhere ------------------------------------------------------------------------------------ */

static void picture_of(toy_change *change, uint32_t threads, bool is_live, picture *p)
{
    toy t;
    toy_init(&t);
    change(&t);
    t.config.threads = threads;
    t.is_live = is_live;
    toy_start(&t);
    look(&t, p);
    toy_fini(&t);
}

typedef struct rank_run {
    toy t;
    picture p;
    pthread_t thread;
} rank_run;

static void *rank_main(void *arg)
{
    rank_run *r = arg;
    toy_start(&r->t);
    look(&r->t, &r->p);
    return NULL;
}

static void test_threads_and_ranks_change_no_bit(void **state)
{
    picture one;
    picture_of(with_hidden, 1, false, &one);
    for (uint32_t threads = 2; threads <= 4; threads++) {
        picture many;
        picture_of(with_hidden, threads, threads == 3, &many);
        assert_memory_equal(&one, &many, sizeof(one));
    }
    rank_run r[RANKS];
    dt_comm *comm[RANKS];
    assert_int_equal(dt_comm_create_simulated(RANKS, 20, comm), DT_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        toy_init(&r[i].t);
        with_hidden(&r[i].t);
        r[i].t.comm = comm[i];
        r[i].t.config.threads = 1 + i % 2;
        assert_int_equal(pthread_create(&r[i].thread, NULL, rank_main, &r[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        pthread_join(r[i].thread, NULL);
        assert_memory_equal(&one, &r[i].p, sizeof(one));
        toy_fini(&r[i].t);
    }
}

static void with_halves(toy *t)
{
    with_hidden(t);
    t->config.half = DT_HALF_BF16;
}

/* Gradients over all samples are never rounded to halves: their differences want the digits. */
static void test_halves_are_for_steps_alone(void **state)
{
    picture whole, halves;
    rank_run r[RANKS];
    dt_comm *comm[RANKS];
    toy t;
    toy_init(&t);
    with_hidden(&t);
    toy_start(&t);
    look(&t, &whole);
    toy_fini(&t);
    toy_init(&t);
    with_halves(&t);
    toy_start(&t);
    look(&t, &halves);
    toy_fini(&t);
    assert_memory_equal(&whole, &halves, sizeof(whole));
    assert_int_equal(dt_comm_create_simulated(RANKS, 20, comm), DT_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        toy_init(&r[i].t);
        with_halves(&r[i].t);
        r[i].t.comm = comm[i];
        assert_int_equal(pthread_create(&r[i].thread, NULL, rank_main, &r[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        pthread_join(r[i].thread, NULL);
        assert_memory_equal(&whole, &r[i].p, sizeof(whole));
        toy_fini(&r[i].t);
    }
}

/* What three steps, another vector and two more steps leave. */
static void picture_of_steps(toy_change *change, bool on_device, picture *p)
{
    dt_step_report report = {.struct_size = sizeof(report)};
    toy t;
    float vector[TOTAL];
    toy_init(&t);
    change(&t);
    if (on_device) {
        host_device_reset(UINT64_C(1) << 32);
        t.device_ops = host_device_ops();
        t.device = host_device();
    }
    toy_start(&t);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(toy_step(&t, &report), DT_OK);
    }
    for (uint32_t i = 0; i < dt_trainer_vector_size(t.trainer); i++) {
        vector[i] = 0.1F * (float)(i % 7) - 0.3F; /* not by what is there: nobody asked the device for it so far */
    }
    assert_int_equal(dt_trainer_vector_set(t.trainer, vector), DT_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(toy_step(&t, &report), DT_OK);
    }
    look(&t, p);
    toy_fini(&t);
}

/* Vectors, gradients and losses are computed on the CPU: of what the steps on the device have left, and those go on
 * with the vector that was set. */
static void test_a_device_changes_no_bit(void **state)
{
    static toy_change *const change[] = {as_it_is, with_hidden};
    for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
        picture first, cpu, device;
        picture_of(change[i], 2, false, &first);
        picture_of_steps(change[i], false, &cpu);
        picture_of_steps(change[i], true, &device);
        assert_memory_equal(&cpu, &device, sizeof(cpu));
        assert_true(host_device_read().launches + host_device_read().graph_launches > 0);
        assert_memory_not_equal(first.vector, device.vector, sizeof(first.vector));
        assert_true(first.value != device.value);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void test_steps_leave_what_is_apart(void **state)
{
    dt_step_report report = {.struct_size = sizeof(report)};
    picture before, after;
    toy t;
    toy_init(&t);
    with_hidden(&t);
    toy_start(&t);
    look(&t, &before);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(toy_step(&t, &report), DT_OK);
    }
    look(&t, &after);
    assert_memory_equal(before.vector, after.vector, sizeof(before.vector));
    assert_true(after.both[0] == before.both[0]);
    assert_true(after.both[1] < before.both[1]);
    for (int i = 0; i < FIRST; i++) {
        after.vector[i] *= 0.5f;
    }
    assert_int_equal(dt_trainer_vector_set(t.trainer, after.vector), DT_OK);
    look(&t, &before);
    assert_memory_equal(before.vector, after.vector, sizeof(before.vector));
    assert_true(after.both[0] != before.both[0]);
    toy_fini(&t);
}

/* What looks does not touch: steps go on as if nobody had looked. */
static void test_looking_changes_nothing(void **state)
{
    enum { STEPS = 6 };
    outcome whole, seen;
    picture p;
    toy t;
    outcome_train(NULL, STEPS, &whole);
    toy_init(&t);
    toy_start(&t);
    outcome_run(&t, &seen, 0, 1);
    look(&t, &p);
    outcome_run(&t, &seen, 1, 4);
    look(&t, &p);
    assert_int_equal(dt_trainer_vector_set(t.trainer, p.vector), DT_OK);
    outcome_run(&t, &seen, 4, STEPS);
    outcome_keep(&t, &seen);
    outcome_same(&whole, &seen);
    outcome_drop(&whole);
    outcome_drop(&seen);
    toy_fini(&t);
}

/* A loss may be asked for without its gradient first, and the other way round: each is what it is alone. */
static void test_losses_and_gradients_in_any_order(void **state)
{
    static const char *const name[] = {"mse"};
    static float gradient[2][TOTAL];
    double value[2][2];
    for (int first = 0; first < 2; first++) {
        toy t;
        toy_init(&t);
        toy_start(&t);
        for (int k = 0; k < 2; k++) {
            if (k == first) {
                assert_int_equal(dt_trainer_losses(t.trainer, name, 1, &value[first][0]), DT_OK);
            } else {
                assert_int_equal(dt_trainer_gradient(t.trainer, "mse", gradient[first], &value[first][1]), DT_OK);
            }
        }
        toy_fini(&t);
    }
    double size = 0;
    for (int i = 0; i < TOTAL; i++) {
        size += fabs((double)gradient[0][i]);
    }
    assert_true(size > 0.01);
    assert_memory_equal(gradient[0], gradient[1], sizeof(gradient[0]));
    assert_memory_equal(value[0], value[1], sizeof(value[0]));
    assert_true(value[0][0] == value[0][1]);
}

static void test_frozen_ones_are_not_in_it(void **state)
{
    toy t;
    toy_init(&t);
    t.freeze = "net.w1";
    toy_start(&t);
    assert_int_equal(dt_trainer_vector_size(t.trainer), TOTAL - HIDDEN * IN);
    toy_fini(&t);
    toy_init(&t);
    with_hidden(&t);
    t.freeze = "net.w1";
    toy_start(&t);
    assert_int_equal(dt_trainer_vector_size(t.trainer), HIDDEN);
    toy_fini(&t);
}

static void test_errors(void **state)
{
    static const char *const names[] = {"mse", "mse"}, *const strange[] = {"fun"};
    float gradient[TOTAL];
    double value[2];
    toy t;
    toy_init(&t);
    with_hidden(&t);
    toy_start(&t);
    assert_int_equal(dt_trainer_gradient(t.trainer, "fun", gradient, value), DT_EINVAL);
    assert_error_has("no loss fun is recorded; recorded are: mse, hidden");
    assert_int_equal(dt_trainer_losses(t.trainer, strange, 1, value), DT_EINVAL);
    assert_error_has("no loss fun");
    assert_int_equal(dt_trainer_losses(t.trainer, names, 2, value), DT_EINVAL);
    assert_error_has("loss mse is requested twice");
    assert_int_equal(dt_trainer_losses(t.trainer, names, 0, value), DT_EINVAL);
    assert_error_has("0 losses are requested; 1 to 16");
    toy_fini(&t);

    toy_init(&t);
    t.apart = "fun";
    assert_int_equal(toy_try_start(&t), DT_EINVAL);
    assert_error_has("no loss fun");
    toy_fini(&t);

    toy_init(&t);
    with_hidden(&t);
    t.freeze = "net.?1";
    assert_int_equal(toy_try_start(&t), DT_ECONFIG);
    assert_error_has("loss hidden depends on no parameter that is trained");
    toy_fini(&t);

    toy_init(&t);
    t.broken_sample = 40;
    toy_start(&t);
    assert_int_equal(dt_trainer_gradient(t.trainer, "mse", gradient, value), DT_EDATA);
    assert_error_has("sample 40 cannot be read");
    toy_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_a_second_computation),
        cmocka_unit_test(test_threads_and_ranks_change_no_bit),
        cmocka_unit_test(test_halves_are_for_steps_alone),
        cmocka_unit_test(test_a_device_changes_no_bit),
        cmocka_unit_test(test_steps_leave_what_is_apart),
        cmocka_unit_test(test_looking_changes_nothing),
        cmocka_unit_test(test_losses_and_gradients_in_any_order),
        cmocka_unit_test(test_frozen_ones_are_not_in_it),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
