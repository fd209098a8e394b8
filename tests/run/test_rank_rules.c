/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of the training loop, on ranks made by hand: when a phase ends (rank_loop.c, rank_evaluate.c), when a
 * checkpoint is due (rank_requests.c) or tried again (rank_save.c), how much is done and how a trend changes
 * (rank_record.c), which checkpoint.best_by is a mistake (rank_evaluate.c), which cost is above its limit
 * (rank_finish.c).
 */
#include "run/rank.h"

#define dt_clock_s      fake_clock_s
#define dt_rank_phase_s fake_phase_s
static double fake_clock_s(void);
static double fake_phase_s(const dt_rank *k);
#include "../../core/run/rank_evaluate.c"
#include "../../core/run/rank_finish.c"
#include "../../core/run/rank_loop.c"
#include "../../core/run/rank_record.c"
#include "../../core/run/rank_requests.c"
#include "../../core/run/rank_save.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static double now_s, phase_s;
static dt_rank k;
static dt_run_desc desc;
static dt_run_context context;

static double fake_clock_s(void)
{
    return now_s;
}

static double fake_phase_s(const dt_rank *rank)
{
    return phase_s;
}

static int begin(void **state)
{
    memset(&k, 0, sizeof(k));
    k.stop.metric = k.stop.training_metric = "";
    memset(&desc, 0, sizeof(desc));
    context = (dt_run_context){.d = &desc};
    k.r = &context;
    now_s = phase_s = 0;
    return 0;
}

/* ---- the end of a phase ------------------------------------------------------------------------------------------ */

static iteration after(uint64_t step, uint64_t iterations, uint32_t requests, uint64_t stop_step)
{
    iteration it = {.p = {.step = step, .iterations = iterations}, .requests = requests};
    apply_stop_rules(&k, &it, stop_step);
    return it;
}

static void test_stop_rules(void **state)
{
    assert_false(after(1000, 1000, DT_REQUEST_SAVE | DT_REQUEST_STOP | DT_REQUEST_GRADIENT, 0).ends);
    assert_true(after(1, 1, DT_REQUEST_END, 0).ends);
    k.stop.steps = 10;
    assert_false(after(9, 1, 0, 0).ends);
    assert_true(after(10, 1, 0, 0).ends);
    k.stop.steps = 0;
    k.stop.iterations = 4;
    assert_false(after(99, 3, 0, 0).ends);
    assert_true(after(99, 4, 0, 0).ends);
    assert_int_equal(k.iterations, 4);
    k.iterations = 2; /* a phase that does not count them */
    assert_false(after(99, 0, 0, 0).ends);
    assert_int_equal(k.iterations, 3);
    assert_true(after(99, 0, 0, 0).ends);
    k.stop.iterations = 0;
    assert_false(after(8, 1, 0, 0).stops);
    assert_false(after(8, 1, 0, 9).stops);
    assert_true(after(9, 1, 0, 9).stops);
    iteration it = {.ends = true};
    apply_stop_rules(&k, &it, 0);
    assert_true(it.ends);
}

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static bool is_due(uint64_t step, uint64_t epoch, bool epoch_end)
{
    const dt_progress p = {.step = step, .epoch = epoch, .epoch_end = epoch_end};
    return is_checkpoint_due(&k, &p);
}

static void test_checkpoint_due(void **state)
{
    now_s = 100;
    k.last_save_s = 90;
    assert_false(is_due(10, 9, true));
    k.checkpoint.every_steps = 5;
    assert_true(is_due(10, 0, false));
    assert_false(is_due(11, 0, false));
    k.checkpoint.every_steps = 0;
    k.checkpoint.every_seconds = 10;
    assert_true(is_due(11, 0, false));
    k.last_save_s = 90.5;
    assert_false(is_due(11, 0, false));
    k.checkpoint.every_seconds = 0;
    k.training.save_interval = 3;
    assert_true(is_due(11, 2, true));
    assert_false(is_due(11, 2, false));
    assert_false(is_due(11, 3, true));
    k.n_failed_saves = 1; /* again, later */
    k.save_again_s = 101;
    assert_false(is_due(11, 2, true));
    now_s = 101;
    assert_true(is_due(11, 3, false));
}

static void test_retry_delay(void **state)
{
    assert_float_equal(retry_delay_s(1, 60), 0.5, 0);
    assert_float_equal(retry_delay_s(2, 60), 1, 0);
    assert_float_equal(retry_delay_s(7, 60), 32, 0);
    assert_float_equal(retry_delay_s(8, 60), 60, 0);
    assert_float_equal(retry_delay_s(16, 1e6), 16384, 0);
    assert_float_equal(retry_delay_s(1000, 1e6), 16384, 0);
}

/* ---- stop.metric ------------------------------------------------------------------------------------------------- */

static bool is_target_met(double value)
{
    static dt_stage stage;
    static dt_comm *alone;
    char key[] = "score";
    bool is_met = false;
    if (alone == NULL) {
        assert_int_equal(dt_comm_create_null(&alone), DT_OK);
    }
    memset(&stage, 0, sizeof(stage));
    stage.results.n = 1;
    stage.results.at[0] = (dt_result){.key = key, .value = &value, .n = 1};
    k.stage = &stage;
    k.comm = alone;
    assert_int_equal(check_stop_target(&k, &is_met), DT_OK);
    return is_met;
}

static void test_stop_target(void **state)
{
    assert_false(is_target_met(1));
    k.stop.metric = "score";
    k.stop.has_above = true;
    k.stop.above = 3;
    assert_false(is_target_met(2.5));
    assert_true(is_target_met(3));
    assert_false(is_target_met(NAN));
    assert_int_equal(k.n_target_known, 2);
    k.stop.has_above = false;
    k.stop.has_below = true;
    k.stop.below = 1;
    assert_true(is_target_met(1));
    assert_false(is_target_met(1.5));
}

static void test_patience(void **state)
{
    k.stop.metric = "score";
    k.stop.patience = 2;
    k.stop.min_delta = 0.5;
    static const struct {
        double value;
        bool is_met;
    } rising[] = {{NAN, false}, {1, false}, {1.5, false}, {1.75, false}, {2, false}, {INFINITY, true}};
    for (size_t i = 0; i < sizeof(rising) / sizeof(rising[0]); i++) {
        assert_int_equal(is_target_met(rising[i].value), rising[i].is_met);
    }
    assert_true(k.patience.has_best && k.patience.best == 1.75 && k.patience.n_stale == 2);
    k.patience = (dt_snapshot_patience){.n_stale = 0};
    k.stop.is_min = true;
    assert_false(is_target_met(3));
    assert_false(is_target_met(2));
    assert_false(is_target_met(4));
    assert_true(is_target_met(1.5));
    assert_true(k.patience.best == 2);
}

static bool ends_with(double loss, bool epoch_end)
{
    const dt_progress p = {.loss = loss, .epoch_end = epoch_end};
    bool is_met = false;
    assert_int_equal(dt_rank_check_training(&k, &p, &is_met), DT_OK);
    return is_met;
}

/* Means of epochs; one without a number does not count; what a checkpoint in the middle of an epoch keeps. */
static void test_training_patience(void **state)
{
    assert_false(is_target_met(1)); /* sets up the communicator */
    k.stop.metric = "";
    k.stop.training_metric = "loss";
    k.stop.patience = 2;
    k.stop.is_min = true;
    k.patience = (dt_snapshot_patience){.n_stale = 0};
    assert_false(ends_with(4, false));
    assert_true(k.patience.n == 1 && k.patience.sum == 4);
    assert_false(ends_with(2, true));
    assert_true(k.patience.best == 3 && k.patience.n == 0);
    assert_false(ends_with(5, true));
    assert_false(ends_with(NAN, true));
    assert_true(k.patience.n_stale == 1);
    assert_false(ends_with(2, true));
    assert_false(ends_with(1, false));
    assert_false(ends_with(3, true));
    assert_true(ends_with(9, true));
    assert_int_equal(k.n_training_known, 7);
    assert_int_equal(k.n_training_epochs, 6);
    k.stop.training_metric = "";
    assert_false(ends_with(9, true));
}

/* An epoch without a value fails nothing; a phase without one does, where all of it ran in this process. */
static void test_training_metric_without_value(void **state)
{
    static const dt_loaded phase = {.desc.id = "p"};
    dt_metrics *m = NULL;
    assert_int_equal(dt_metrics_open("/dev/null", &m), DT_OK);
    assert_false(is_target_met(1)); /* sets up the communicator */
    k.stage->d.phase = &phase;
    context.metrics = m;
    k.stop.training_metric = "charts/x";
    assert_int_equal(check_training_was_number(&k), DT_OK);
    dt_metrics_add_scalar(m, "charts/y", 1);
    dt_metrics_add_scalar(m, "charts/z", NAN);
    dt_metrics_add_scalar(m, "time/env", 1);
    assert_false(ends_with(1, true));
    dt_metrics_discard_pending(m);
    assert_int_equal(check_training_was_number(&k), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), "loss, grad/norm, lr, charts/y"));
    assert_null(strstr(dt_error_text(), "charts/z"));
    assert_null(strstr(dt_error_text(), "time/env"));
    dt_error_clear();
    k.begin_step = 1;
    assert_int_equal(check_training_was_number(&k), DT_OK);
    k.begin_step = 0;
    dt_metrics_add_scalar(m, "charts/x", 1);
    assert_false(ends_with(1, true));
    assert_int_equal(check_training_was_number(&k), DT_OK);
    dt_metrics_close(m);
}

/* ---- checkpoint.best_by ------------------------------------------------------------------------------------------ */

static bool is_mistake(const dt_session *s, int64_t index, const char *best_by, int64_t n_without_best)
{
    static dt_stage stage;
    char key[] = "score";
    double value = 1;
    bool is = false;
    stage.d.index = index;
    stage.results.n = 1;
    stage.results.at[0] = (dt_result){.key = key, .value = &value, .n = 1};
    assert_int_equal(is_best_by_mistake(s, &stage, best_by, n_without_best, &is), DT_OK);
    return is;
}

static dt_status evaluate_nothing(void *self, dt_progress *p)
{
    return DT_OK;
}

/* Three phases of four are evaluated; the name may be a result of any of them. */
static void test_best_by(void **state)
{
    static dt_loaded evaluated, other;
    static dt_sections opts[4];
    dt_session s = {.n_phases = 4, .phase = {&evaluated, &other, &evaluated, &evaluated}, .opts = opts};
    for (int i = 0; i < 4; i++) {
        opts[i].training.eval_interval = 1;
    }
    evaluated.ops.phase.evaluate = evaluate_nothing;
    assert_int_equal(dt_config_create(&s.config), DT_OK);
    assert_int_equal(dt_config_set(s.config, "checkpoint.best_by=min:return/mean"), DT_OK);
    assert_false(is_mistake(&s, 0, "min:return/mean", 0));
    assert_false(is_mistake(&s, 2, "min:return/mean", 1));
    assert_false(is_mistake(&s, 3, "min:return/mean", 1)); /* another one reported it */
    assert_true(is_mistake(&s, 3, "min:return/mean", 2));
    assert_false(is_mistake(&s, 2, "min:return/mean", 2)); /* the last phase may report it */
    assert_true(is_mistake(&s, 0, "return/mean", 0));      /* the phase's own */
    assert_int_equal(dt_config_set(s.config, "checkpoint.best_by=scroe"), DT_OK);
    assert_true(is_mistake(&s, 0, "scroe", 0));
    assert_int_equal(dt_config_set(s.config, "checkpoint.best_by=return/mean"), DT_OK);
    s.n_phases = 2; /* no other phase is evaluated */
    assert_true(is_mistake(&s, 0, "return/mean", 0));
    dt_config_destroy(s.config);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static char heard[1024];

static void hear(void *user, int level, const char *text)
{
    strncat(heard, text, sizeof(heard) - strlen(heard) - 1);
}

static const char *limit_warning(double limit, double cost)
{
    static dt_stage stage;
    char limit_key[] = "limits/hits", cost_key[] = "costs/hits/mean";
    heard[0] = '\0';
    stage.results.n = isinf(cost) ? 1 : 2;
    stage.results.at[0] = (dt_result){.key = limit_key, .value = &limit, .n = 1};
    stage.results.at[1] = (dt_result){.key = cost_key, .value = &cost, .n = 1};
    dt_log_sink_set(hear, NULL);
    dt_result_warn_limits(&stage);
    dt_log_sink_set(NULL, NULL);
    return heard;
}

static void test_limit_warnings(void **state)
{
    assert_string_equal(limit_warning(2, 1.5), "");
    assert_string_equal(limit_warning(2, 2), ""); /* a cost may equal its limit */
    assert_non_null(strstr(limit_warning(2, 2.5), "hits is 2.5"));
    assert_non_null(strstr(limit_warning(2, NAN), "hits"));
    assert_non_null(strstr(limit_warning(2, INFINITY), "hits")); /* not reported */
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

static void test_part_done(void **state)
{
    dt_progress p = {.step = 25};
    assert_true(isnan(compute_part_done(&k, &p)));
    p.steps = 100;
    assert_float_equal(compute_part_done(&k, &p), 0.25, 0);
    k.stop.steps = 50;
    assert_float_equal(compute_part_done(&k, &p), 0.5, 0);
    desc.max_steps = 40;
    assert_float_equal(compute_part_done(&k, &p), 0.625, 0);
    k.stop.iterations = 8;
    p.iterations = 6;
    assert_float_equal(compute_part_done(&k, &p), 0.75, 0);
    k.stop.time = 10;
    phase_s = 9;
    assert_float_equal(compute_part_done(&k, &p), 0.9, 0);
    phase_s = 11;
    assert_float_equal(compute_part_done(&k, &p), 1, 0);
}

static void test_trend(void **state)
{
    dt_trend t = {.n = 0};
    assert_true(isnan(last_of_trend(&t)));
    for (int i = 1; i <= 3; i++) {
        add_to_trend(&t, i);
        add_to_trend(&t, NAN); /* a round without an episode */
        assert_true(isnan(change_of_trend(&t)));
    }
    assert_float_equal(last_of_trend(&t), 3, 0);
    add_to_trend(&t, 10);
    assert_float_equal(change_of_trend(&t), (10 + 3 - 2 - 1) / 2.0, 1e-12);
    for (int i = 0; i < 10; i++) {
        add_to_trend(&t, i * i);
    }
    assert_float_equal(change_of_trend(&t), (81 + 64 + 49 + 36 + 25 - 16 - 9 - 4 - 1 - 0) / 5.0, 1e-12);
    assert_float_equal(last_of_trend(&t), 81, 0);
}

static bool is_histogram_due(uint64_t epoch, bool epoch_end, uint64_t step)
{
    const dt_progress p = {.epoch = epoch, .epoch_end = epoch_end, .step = step, .steps = 50};
    return dt_rank_histograms_due(&k, &p);
}

static void test_histograms_due(void **state)
{
    static dt_stage stage;
    stage.trainer = (dt_trainer *)(void *)&stage; /* any */
    k.stage = &stage;
    assert_false(is_histogram_due(0, true, 1));
    k.histogram_every = 4;
    assert_true(is_histogram_due(0, true, 1));
    assert_false(is_histogram_due(0, false, 1));
    assert_false(is_histogram_due(1, true, 1));
    assert_true(is_histogram_due(3, true, 1));
    assert_false(is_histogram_due(4, true, 1));
    assert_true(is_histogram_due(4, true, 50)); /* the last one */
    stage.trainer = NULL;
    assert_false(is_histogram_due(0, true, 1));
}

#define OF(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {OF(test_stop_rules),
                                       OF(test_checkpoint_due),
                                       OF(test_retry_delay),
                                       OF(test_stop_target),
                                       OF(test_patience),
                                       OF(test_training_patience),
                                       OF(test_training_metric_without_value),
                                       OF(test_best_by),
                                       OF(test_limit_warnings),
                                       OF(test_part_done),
                                       OF(test_trend),
                                       OF(test_histograms_due)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
