/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/telemetry/report/{flat,state,logbook}.c: what a run directory says of a run.
 */
#include "telemetry/report/folder.h"

#include <limits.h>
#include <math.h>

#include "base/err.h"
#include "base/lock.h"
#include "telemetry/report/logbook.h"

static dt_run_state look(void)
{
    dt_logbook s;
    assert_int_equal(dt_logbook_open(folder, &s), DT_OK);
    const dt_run_state state = s.state;
    dt_logbook_close(&s);
    return state;
}

static void test_flat(void **state)
{
    dt_flat f;
    put("x.json", "w",
        "{\"a\":{\"b\":[1,\"two\",[true]],\"c\":{}},\"data.batch\":{\"value\":64,\"origin\":\"--set\"},\"n\":null}");
    assert_int_equal(dt_flat_read(in_folder("x.json"), &f), DT_OK);
    assert_int_equal(f.n, 6);
    assert_string_equal(dt_flat_text(&f, "a/b/1"), "two");
    assert_string_equal(dt_flat_text(&f, "a/b/2/0"), "true");
    assert_string_equal(dt_flat_text(&f, "data.batch/value"), "64");
    assert_true(dt_flat_number(&f, "data.batch/value", 0) == 64);
    assert_true(dt_flat_number(&f, "data.batch/origin", -7) == -7);
    assert_int_equal(dt_flat_find(&f, "n")->kind, DT_JSON_NULL);
    assert_null(dt_flat_find(&f, "a/c"));
    assert_string_equal(dt_flat_text(&f, "nowhere"), "");
    dt_flat_fini(&f);
    put("x.json", "w", "{\"a\":\n nope}");
    assert_int_equal(dt_flat_read(in_folder("x.json"), &f), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "x.json:2:"));
    assert_int_equal(f.n, 0);
    put("x.json", "w", "");
    for (int i = 0; i < 40; i++) {
        put("x.json", "a", "[");
    }
    assert_int_equal(dt_flat_read(in_folder("x.json"), &f), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "levels"));
    assert_int_equal(dt_flat_read(in_folder("none.json"), &f), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "none.json"));
}

static void test_conditions(void **state)
{
    static const struct {
        const char *end;
        dt_run_condition is;
    } of[] = {{",\"end\":\"x\",\"exit_code\":0", DT_RUN_DONE},
              {",\"end\":\"x\",\"exit_code\":75", DT_RUN_INTERRUPTED},
              {",\"end\":\"x\",\"exit_code\":7", DT_RUN_FAILED},
              {"", DT_RUN_INTERRUPTED}};
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        char meta[128];
        snprintf(meta, sizeof(meta), "{\"start\":\"2026-11-21T08:00:00Z\"%s}\n", of[i].end);
        put("meta.json", "w", meta);
        assert_int_equal(look().condition, of[i].is);
    }
    int fd = -1;
    assert_int_equal(dt_lock_acquire(in_folder("run.lock"), &fd), DT_OK);
    assert_int_equal(look().condition, DT_RUN_RUNNING);
    assert_string_equal(dt_run_condition_text(DT_RUN_RUNNING), "running");
    assert_int_equal(look().process, getpid());
    assert_true(look().host[0] != '\0');
    dt_lock_release(fd);
    assert_int_equal(look().process, 0);
    assert_int_equal(look().condition, DT_RUN_INTERRUPTED); /* the file stays, nobody holds it */
}

static void test_progress_and_best(void **state)
{
    put("meta.json", "w", "{\"start\":\"2026-11-21T08:00:00Z\"}\n");
    dt_run_state s = look();
    assert_false(s.has_phase); /* it never came to a phase */
    assert_true(isnan(s.progress) && s.best_name[0] == '\0');

    put("progress.json", "w", "{\"phase\":\"p2\",\"phase_index\":1,\"phases\":3,\"base_step\":9,\"steps\":40}\n");
    put("metrics.jsonl", "w", "{\"step\":9,\"phase\":\"p1\",\"wall_s\":4,\"loss\":1}\n");
    s = look();
    assert_string_equal(s.phase, "p2");
    assert_int_equal(s.step, 0); /* the record is of the phase before */
    assert_true(fabs(s.progress - 1.0 / 3) < 1e-12);
    assert_string_equal(s.best_name, "loss");

    put("metrics.jsonl", "a",
        "{\"step\":10,\"phase\":\"p2\",\"wall_s\":5,\"loss\":3,\"eval/return/mean\":-4,\"eval/x\":3}\n"
        "{\"step\":20,\"phase\":\"p2\",\"wall_s\":6,\"loss\":2,\"eval/return/mean\":-5,\"eval/x\":2}\n");
    s = look();
    assert_true(fabs(s.progress - 0.5) < 1e-12);
    assert_int_equal(s.step, 20);
    assert_string_equal(s.best_name, "eval/return/mean");
    assert_true(s.best == -4 && s.best_step == 10 && s.last == -5 && !s.best_is_min);

    put("config.origin.json", "w", "{\"checkpoint.best_by\":{\"value\":\"min:x\",\"origin\":\"--set\"}}");
    s = look();
    assert_string_equal(s.best_name, "eval/x");
    assert_true(s.best == 2 && s.best_is_min);

    put("metrics.jsonl", "w",
        "{\"step\":10,\"phase\":\"p2\",\"wall_s\":5,\"eval/rmse_m/1\":1,\"eval/rmse_m/2\":2.5,\"eval/nll\":0}\n");
    s = look();
    assert_string_equal(s.best_name, "eval/rmse_m/2");
    assert_true(s.best == 2.5 && s.best_is_min);
}

/* --max-steps ended it: all is well, but there are phases to come. */
static void test_stopped_before_its_last_phase(void **state)
{
    put("meta.json", "w", "{\"start\":\"x\",\"end\":\"x\",\"exit_code\":0}\n");
    put("metrics.jsonl", "w", "{\"step\":4,\"phase\":\"p\",\"wall_s\":5,\"progress\":1}\n");
    put("progress.json", "w", "{\"phase\":\"p\",\"phase_index\":0,\"phases\":2,\"steps\":4}\n");
    dt_run_state s = look();
    assert_int_equal(s.condition, DT_RUN_STOPPED);
    assert_string_equal(dt_run_condition_text(s.condition), "stopped");
    assert_true(s.step == 4 && s.steps == 0 && isnan(s.part) && isnan(s.progress));
    put("progress.json", "w", "{\"phase\":\"p\",\"phase_index\":1,\"phases\":2,\"steps\":4}\n");
    s = look();
    assert_int_equal(s.condition, DT_RUN_DONE);
    assert_true(s.steps == 4 && s.progress == 1);
}

/* The rule that ends a phase is the one its progress is reported by. */
static void test_stop_rules(void **state)
{
    put("meta.json", "w", "{\"start\":\"2026-11-21T08:00:00Z\"}\n");
    put("metrics.jsonl", "w", "{\"step\":30,\"phase\":\"p\",\"wall_s\":5,\"progress\":0.25}\n");
    static const struct {
        const char *stop;
        uint64_t steps;
    } of[] = {{"\"steps\":400", 400}, /* planned, whatever share the record says */
              {"\"steps\":400,\"stop_iterations\":8", 120},
              {"\"steps\":0,\"stop_iterations\":8", 120},
              {"\"steps\":400,\"stop_time_s\":60", 0}};
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        char text[160];
        snprintf(text, sizeof(text), "{\"phase\":\"p\",\"phase_index\":1,\"phases\":2,%s}\n", of[i].stop);
        put("progress.json", "w", text);
        const dt_run_state s = look();
        assert_int_equal(s.steps, of[i].steps);
        assert_true(s.part == 0.25 && fabs(s.progress - 0.625) < 1e-12);
    }
    put("progress.json", "w", "{\"phase\":\"q\",\"phase_index\":1,\"phases\":2,\"steps\":0,\"stop_time_s\":60}\n");
    assert_true(isnan(look().part) && isnan(look().progress)); /* the record is of the phase before */
}

static void test_why_it_failed(void **state)
{
    put("meta.json", "w", "{\"start\":\"x\",\"exit_code\":7}\n");
    assert_string_equal(look().error, "");
    for (int i = 0; i < 200; i++) {
        put("error.log", "a", "2026-11-21T08:00:00Z warn  a line of no interest, of which there are many\n");
    }
    put("error.log", "a", "2026-11-21T08:00:00Z error it diverged at step 3\n");
    assert_string_equal(look().error, "it diverged at step 3");
    put("meta.json", "w", "{\"start\":\"x\",\"exit_code\":0}\n"); /* resumed, and done */
    assert_string_equal(look().error, "");
}

static void test_no_run(void **state)
{
    dt_logbook s;
    assert_int_equal(dt_logbook_open("no-such-run", &s), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "no-such-run: no such run directory"));
    assert_int_equal(dt_logbook_open(folder, &s), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "has no meta.json"));
    put("meta.json", "w", "{");
    assert_int_equal(dt_logbook_open(folder, &s), DT_EDATA);
    assert_non_null(strstr(dt_error_text(), "meta.json:1:"));
}

static void test_poll(void **state)
{
    dt_logbook s;
    put("meta.json", "w", "{\"start\":\"2026-11-21T08:00:00Z\"}\n");
    assert_int_equal(dt_logbook_open(folder, &s), DT_OK);
    assert_int_equal(dt_logbook_poll(&s), DT_DONE);
    put("metrics.jsonl", "w", "{\"step\":9,\"phase\":\"p1\",\"wall_s\":4,\"loss\":1}\n");
    assert_int_equal(dt_logbook_poll(&s), DT_OK);
    assert_int_equal(s.records->n, 1);
    assert_int_equal(s.state.step, 9);
    assert_int_equal(dt_logbook_poll(&s), DT_DONE);
    put("meta.json", "w", "{\"start\":\"2026-11-21T08:00:00Z\",\"exit_code\":0}\n");
    assert_int_equal(dt_logbook_poll(&s), DT_OK);
    assert_int_equal(s.state.condition, DT_RUN_DONE);
    dt_logbook_close(&s);
}

/* Numbers that no run of ours writes, and that no integer of ours holds. */
static void test_foreign_numbers(void **state)
{
    put("meta.json", "w", "{\"exit_code\":-1e300}");
    put("progress.json", "w", "{\"phase\":\"p\",\"phase_index\":-1e300,\"phases\":1e300,\"steps\":-5}");
    put("metrics.jsonl", "w", "{\"step\":9,\"phase\":\"p\",\"wall_s\":4,\"loss\":1}\n");
    dt_run_state s = look();
    assert_int_equal(s.condition, DT_RUN_INTERRUPTED);
    assert_int_equal(s.exit_code, INT_MIN);
    assert_int_equal(s.phase_index, 0);
    assert_int_equal(s.n_phases, INT32_MAX);
    assert_int_equal(s.steps, 0);

    put("meta.json", "w", "{\"exit_code\":1e300}");
    put("progress.json", "w", "{\"phase\":\"p\",\"steps\":1e300,\"stop_iterations\":3}");
    s = look();
    assert_int_equal(s.condition, DT_RUN_FAILED);
    assert_int_equal(s.steps, INT64_MAX);
    put("metrics.jsonl", "w", "{\"step\":9,\"phase\":\"p\",\"wall_s\":4,\"progress\":1e-320}\n");
    assert_int_equal(look().steps, INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_flat, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_conditions, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_progress_and_best, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_stopped_before_its_last_phase, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_stop_rules, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_why_it_failed, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_no_run, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_foreign_numbers, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_poll, folder_begin, folder_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
