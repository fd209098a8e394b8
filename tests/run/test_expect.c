/* SPDX-License-Identifier: Apache-2.0
 *
 * core/plan/expect.c with a trainer and environments whose numbers are known: what is measured and what is not, how
 * long a phase takes by that, and how it is said.
 */
#include "plan/expect.h"

#include "base/clock.h"
#include "plan/machine/limits.h"

#define dt_trainer_step_number     fake_step_number
#define dt_trainer_steps_per_epoch fake_steps_per_epoch
#define dt_trainer_steps           fake_steps
#define dt_trainer_step_cost       fake_cost
#define dt_limits_count_cores      fake_cores
#define dt_comm_process_size       fake_in_process
#define dt_comm_size               fake_size
#define dt_stage_iterate           fake_iterate
#define dt_rollout_measure_speed   fake_try_speed
#define dt_clock_s                 fake_clock_s
static uint64_t fake_step_number(const dt_trainer *t);
static uint64_t fake_steps_per_epoch(const dt_trainer *t);
static uint64_t fake_steps(const dt_trainer *t);
static dt_plan_cost fake_cost(const dt_trainer *t);
static uint32_t fake_cores(const char *root);
static uint32_t fake_in_process(const dt_comm *c);
static uint32_t fake_size(const dt_comm *c);
static dt_status fake_iterate(dt_stage *s, dt_progress *out);
static double fake_try_speed(struct dt_rollout *r, double most_s, uint32_t *n_p);
static double fake_clock_s(void);
#include "../../core/plan/expect.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static uint64_t step, steps, per_epoch, iterated, fails_at;
static double flops, now_s, tried_s, each_s;
static uint32_t ranks, ranks_here, n_speeds;

static uint64_t fake_step_number(const dt_trainer *t)
{
    return step;
}
static uint64_t fake_steps_per_epoch(const dt_trainer *t)
{
    return per_epoch;
}
static uint64_t fake_steps(const dt_trainer *t)
{
    return steps;
}
static dt_plan_cost fake_cost(const dt_trainer *t)
{
    return (dt_plan_cost){.flops = flops};
}
static uint32_t fake_cores(const char *root)
{
    return 3;
}
static uint32_t fake_in_process(const dt_comm *c)
{
    return ranks_here;
}
static uint32_t fake_size(const dt_comm *c)
{
    return ranks;
}
static dt_status fake_iterate(dt_stage *s, dt_progress *out)
{
    (void)s, (void)out;
    now_s += iterated == 0 ? 100 : each_s; /* the first one makes what the others find */
    return ++iterated == fails_at ? DT_ENOMEM : DT_OK;
}
static double fake_try_speed(struct dt_rollout *r, double most_s, uint32_t *n_p)
{
    tried_s = most_s;
    n_speeds++;
    *n_p = 40;
    return 0.002;
}
static double fake_clock_s(void)
{
    return now_s;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dt_loaded phase;

static dt_status evaluates(void *self, dt_progress *out)
{
    (void)self, (void)out;
    return DT_OK;
}

static dt_stage stage_of(bool acts)
{
    static int rollout;
    static dt_stage s;
    memset(&s, 0, sizeof(s));
    memset(&phase, 0, sizeof(phase));
    phase.ops.phase.evaluate = evaluates;
    s.d.phase = &phase;
    s.d.config_lock = &lock;
    s.rollout = acts ? (struct dt_rollout *)(void *)&rollout : NULL;
    s.env.layout.spec.max_steps = 50;
    step = 0, steps = 1000, per_epoch = 100, iterated = fails_at = 0;
    flops = 1e9, now_s = 0, tried_s = 0, each_s = 0.125;
    ranks = ranks_here = 1, n_speeds = 0;
    s.opts.evaluation = (dt_evaluation_opts){.n_seeds = 5, .episodes = 2, .max_steps = 30};
    return s;
}

static void assert_near(double is, double want)
{
    if (!(fabs(is - want) <= 1e-9 * (1 + fabs(want)))) {
        fail_msg("%.12g is not %.12g", is, want);
    }
}

/* A phase without environments: a few steps are tried where that is cheap and nothing depends on them. */
static void test_trainer(void **state)
{
    dt_expected e;
    dt_forecast f = {.resident = 1000};
    dt_stage s = stage_of(false);
    dt_estimate_duration(&s, &f, 0, true, &e);
    assert_true(e.n_tried == 3 && iterated == 4 && !e.acts);
    assert_near(e.step_s, 0.125);
    assert_near(e.all_s, 125);
    s = stage_of(false);
    each_s = 0.25; /* the second one is the last that begins within half a second */
    dt_estimate_duration(&s, &f, 0, true, &e);
    assert_true(e.n_tried == 2 && iterated == 3);
    assert_near(e.all_s, 250);
    s = stage_of(false);
    each_s = 7;
    dt_estimate_duration(&s, &f, 0, true, &e);
    assert_true(e.n_tried == 1 && iterated == 2);
    assert_near(e.all_s, 7000);
    assert_true(isnan(e.evaluation_s) && isnan(e.rounds));
    static const struct {
        uint64_t step, steps, max_steps, stop_steps, stop_epochs;
        double left;
    } c[] = {{0, 1000, 0, 0, 0, 1000}, {900, 1000, 0, 0, 0, 100}, {0, 1000, 40, 0, 0, 40},
             {0, 1000, 0, 60, 0, 60},  {0, 1000, 0, 0, 2, 200},   {0, 1000, 300, 70, 2, 70},
             {50, 1000, 0, 0, 2, 150}, {0, 0, 30, 0, 0, 30},      {0, 100, 300, 0, 0, 100}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        s = stage_of(false);
        step = c[i].step;
        steps = c[i].steps;
        f.stop = (dt_stop_opts){.steps = (int64_t)c[i].stop_steps, .epochs = (int64_t)c[i].stop_epochs};
        dt_estimate_duration(&s, &f, c[i].max_steps, true, &e);
        assert_near(e.all_s, 0.125 * c[i].left);
    }
    f.stop = (dt_stop_opts){0};
    for (int i = 0; i < 7; i++) { /* what is not tried is not known */
        static const dt_device_ops *const device = (const dt_device_ops *)(const void *)&lock;
        s = stage_of(false);
        f.resident = i == 1 ? 2000000001 : 2000000000;
        flops = i == 2 ? 1.1e11 : 1e11;
        steps = i == 3 ? 3 : 4;
        s.d.device_ops = i == 4 ? device : NULL;
        ranks = i == 5 ? 2 : 1;
        dt_estimate_duration(&s, &f, 0, i != 6, &e);
        assert_int_equal(iterated, i == 0 ? 4 : 0);
        assert_int_equal(isnan(e.all_s) != 0, i != 0);
    }
    s = stage_of(false);
    fails_at = 3; /* one step was timed before */
    dt_estimate_duration(&s, &f, 0, true, &e);
    assert_int_equal(e.n_tried, 1);
    assert_near(e.step_s, 0.125); /* without the time of the one that failed */
    s = stage_of(false);
    fails_at = 1;
    dt_estimate_duration(&s, &f, 0, true, &e);
    assert_true(e.n_tried == 0 && isnan(e.step_s) && isnan(e.all_s));
}

static void test_environments(void **state)
{
    dt_expected e;
    dt_stage s = stage_of(true);
    dt_forecast f = {.iterations = 20, .round = 800, .rollout = {.instances = 8, .threads = 4}};
    dt_estimate_duration(&s, &f, 0, false, &e);
    assert_true(e.acts && e.parallel == 4 && e.n_tried == 40 && tried_s == 0.3);
    assert_near(e.rounds, 20);
    assert_near(e.step_s, 0.002);
    assert_near(e.all_s, 20 * 800 * 0.002 / 4);
    assert_near(e.evaluation_s, 30 * 0.002 * 3); /* ten episodes, four at a time; each of 30 steps at most */
    s.opts.evaluation.max_steps = 70;            /* the environment's own end comes before */
    f.rollout.instances = 2;
    f.iterations = 7;
    step = 500; /* half of the steps: four rounds */
    dt_estimate_duration(&s, &f, 0, false, &e);
    assert_int_equal(e.parallel, 2);
    assert_near(e.rounds, 4);
    assert_near(e.evaluation_s, 50 * 0.002 * 5);
    f.stop.iterations = 3;
    step = 0;
    ranks_here = 2;
    f.rollout.instances = 0;
    dt_estimate_duration(&s, &f, 0, false, &e);
    assert_near(e.rounds, 3);
    assert_int_equal(e.parallel, 1);
    f.rollout.instances = 4;
    steps = 0; /* open: what stops it counts */
    dt_estimate_duration(&s, &f, 0, false, &e);
    assert_near(e.rounds, 3);
    assert_int_equal(e.parallel, 8);
}

static void test_environments_that_are_not_tried(void **state)
{
    dt_expected e;
    dt_stage s = stage_of(true);
    dt_forecast f = {.iterations = 20, .round = 800, .rollout = {.instances = 8, .threads = 4, .processes = 8}};
    dt_estimate_duration(&s, &f, 0, false, &e); /* in processes, before a run */
    assert_true(n_speeds == 0 && isnan(e.all_s) && isnan(e.step_s));
    dt_estimate_duration(&s, &f, 0, true, &e);
    assert_true(n_speeds == 1 && tried_s == 3 && e.parallel == 3); /* as many as cores */
    f.rollout.processes = 1;
    dt_estimate_duration(&s, &f, 0, true, &e);
    assert_true(n_speeds == 2 && tried_s == 3 && e.parallel == 3);
    f.round = 0;
    dt_estimate_duration(&s, &f, 0, true, &e);
    assert_int_equal(n_speeds, 2);
    f.round = 800;
    f.iterations = 0; /* open */
    dt_estimate_duration(&s, &f, 0, true, &e);
    assert_int_equal(n_speeds, 2);
    f.iterations = 5;
    for (int i = 0; i < 2; i++) {
        s = stage_of(true);
        s.env.layout.spec.max_steps = i == 0 ? 0 : 50; /* of episodes without a longest length */
        phase.ops.phase.evaluate = i == 1 ? NULL : evaluates;
        dt_estimate_duration(&s, &f, 0, true, &e);
        assert_true(isnan(e.evaluation_s) && !isnan(e.all_s));
    }
}

static void assert_said(const dt_expected *e, const char *want, const char *json)
{
    dt_str text = {0};
    dt_estimate_text(e, &text);
    assert_string_equal(dt_str_text(&text), want);
    dt_str_clear(&text);
    dt_json_out o = {.s = &text};
    dt_json_obj(&o, NULL);
    dt_estimate_json(e, &o);
    dt_json_end(&o, '}');
    assert_string_equal(dt_str_text(&text), json);
    dt_str_fini(&text);
}

static void test_said(void **state)
{
    dt_expected e = {.all_s = NAN, .step_s = NAN, .evaluation_s = NAN};
    assert_said(&e, "not known before the first steps are measured; a run logs it after 3 s of training",
                "{\"expected\":{\"training_s\":null,\"evaluation_s\":null,\"step_s\":null,\"steps_tried\":0}}");
    e = (dt_expected){.all_s = 3400, .step_s = 3.4, .evaluation_s = NAN, .n_tried = 1};
    assert_said(&e,
                "56 min 40 s of training, by estimate from 1 step tried here (3.4 s each); evaluations are not in it",
                "{\"expected\":{\"training_s\":3400,\"evaluation_s\":null,\"step_s\":3.4,\"steps_tried\":1}}");
    e = (dt_expected){.all_s = NAN, .step_s = NAN, .evaluation_s = NAN, .acts = true};
    assert_said(&e, "not known before the first round is measured; a run logs it after that round",
                "{\"expected\":{\"environments_s\":null,\"evaluation_s\":null,\"step_s\":null,\"steps_tried\":0}}");
    e = (dt_expected){.all_s = 75, .step_s = 0.25, .evaluation_s = NAN, .n_tried = 3};
    assert_said(&e,
                "1 min 15 s of training, by estimate from 3 steps tried here (250 ms each); evaluations are not in it",
                "{\"expected\":{\"training_s\":75,\"evaluation_s\":null,\"step_s\":0.25,\"steps_tried\":3}}");
    e = (dt_expected){
        .all_s = 0.05, .step_s = 0.002, .evaluation_s = 0.1, .n_tried = 40, .parallel = 4, .rounds = 20, .acts = true};
    assert_said(
        &e,
        "less than 0.1 s for environments in 20 rounds, up to 0.10 s in each evaluation, by estimate from 40 "
        "steps tried here (2 ms each, 4 at a time); acting and learning are not known before the first round is "
        "measured",
        "{\"expected\":{\"environments_s\":0.05,\"evaluation_s\":0.1,\"step_s\":0.002,\"steps_tried\":40}}");
    e.evaluation_s = NAN;
    dt_str text = {0};
    dt_estimate_text(&e, &text);
    assert_null(strstr(dt_str_text(&text), "evaluation"));
    dt_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trainer),
        cmocka_unit_test(test_environments),
        cmocka_unit_test(test_environments_that_are_not_tried),
        cmocka_unit_test(test_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
