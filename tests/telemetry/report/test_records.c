/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/telemetry/report/records.c: series by phase, cut and damaged lines, files that grow and files that were
 * cut.
 */
#include "telemetry/report/folder.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "telemetry/report/records.h"

static dt_records_reader *open_records(void)
{
    dt_records_reader *r = NULL;
    assert_int_equal(dt_records_open(in_folder("metrics.jsonl"), &r), DT_OK);
    return r;
}

static void test_series(void **state)
{
    put("metrics.jsonl", "w",
        "{\"step\":1,\"phase\":\"a\",\"wall_s\":0.5,\"loss\":3,\"x\\u00e9\\\"<\":1e-3}\n"
        "{\"step\":2,\"phase\":\"a\",\"wall_s\":1,\"loss\":null}\n"
        "{\"step\":3,\"phase\":\"a\",\"wall_s\":0.25,\"loss\":2,\"note\":\"text is no number\",\"late\":7}\n"
        "{\"step\":1,\"phase\":\"b\",\"wall_s\":0.75,\"loss\":9}\n"
        "{\"step\":1,\"phase\":\"b\",\"wall_s\":0.8,\"loss\":8}\n");
    dt_records_reader *reader = open_records();
    assert_int_equal(dt_records_poll(reader), DT_OK);
    const dt_records *r = dt_records_get(reader);
    assert_int_equal(r->n, 5);
    assert_int_equal(r->n_phases, 3); /* b came twice: steps do not rise */
    assert_string_equal(r->phase[1].id, "b");
    assert_int_equal(r->phase[1].first, 3);
    assert_int_equal(r->phase[0].n, 3);
    const dt_series *loss = dt_records_find(r, 0, "loss");
    assert_non_null(loss);
    assert_int_equal(loss->n, 3);
    assert_true(loss->value[0] == 3 && isnan(loss->value[1]) && loss->value[2] == 2);
    assert_true(dt_series_last(loss) == 2);
    const dt_series *late = dt_records_find(r, 0, "late");
    assert_int_equal(late->at[0], 2);
    assert_true(dt_records_find(r, 0, "x\xc3\xa9\"<")->value[0] == 1e-3);
    assert_null(dt_records_find(r, 1, "late"));
    assert_null(dt_records_find(r, 0, "note"));
    assert_true(isnan(dt_series_last(NULL)));
    assert_true(r->wall_s[1] == 1 && r->wall_s[2] == 1.25 && r->wall_s[3] == 1.75); /* resumed at the third */
    assert_true(!r->is_cut && r->n_bad == 0);
    dt_records_close(reader);
}

static void test_lines_that_are_none(void **state)
{
    put("metrics.jsonl", "w",
        "{\"step\":1,\"phase\":\"a\",\"wall_s\":1,\"loss\":3}\n"
        "{\"step\":2,\"phase\":\"a\",\"wa\n"
        "\n"
        "[1]\n"
        "{\"loss\":1}\n"
        "{\"step\":-2,\"phase\":\"a\",\"wall_s\":1,\"loss\":3}\n"
        "{\"step\":5,\"phase\":\"a\",\"wall_s\":2,\"loss\":4}\n"
        "{\"step\":6,\"phase\":\"a\",\"wall_s\":3,\"lo");
    dt_records_reader *reader = open_records();
    assert_int_equal(dt_records_poll(reader), DT_OK);
    const dt_records *r = dt_records_get(reader);
    assert_int_equal(r->n, 2);
    assert_int_equal(r->n_bad, 5);
    assert_int_equal(r->first_bad, 2);
    assert_true(r->is_cut);
    assert_true(dt_series_last(dt_records_find(r, 0, "loss")) == 4);
    assert_string_equal(dt_error_text(), "");
    put("metrics.jsonl", "a", "ss\":5}\n"); /* the write that was under way ends */
    assert_int_equal(dt_records_poll(reader), DT_OK);
    assert_int_equal(r->n, 3);
    assert_false(r->is_cut);
    assert_true(dt_series_last(dt_records_find(r, 0, "loss")) == 5);
    assert_int_equal(dt_records_poll(reader), DT_DONE);
    dt_records_close(reader);
}

/* A line without an end takes no memory: it is passed over as any that is no record. */
static void test_a_line_of_any_length(void **state)
{
    char *part = malloc(1 << 20);
    assert_non_null(part);
    memset(part, '1', 1 << 20);
    part[(1 << 20) - 1] = '\0';
    put("metrics.jsonl", "w", "{\"step\":1,\"phase\":\"a\",\"wall_s\":1,\"loss\":3}\n{\"step\":");
    for (int i = 0; i < 6; i++) {
        put("metrics.jsonl", "a", part);
    }
    put("metrics.jsonl", "a", "\n{\"step\":2,\"phase\":\"a\",\"wall_s\":1,\"loss\":2}\n");
    free(part);
    dt_records_reader *reader = open_records();
    assert_int_equal(dt_records_poll(reader), DT_OK);
    const dt_records *r = dt_records_get(reader);
    assert_true(r->n == 2 && r->n_bad == 1 && r->first_bad == 2 && !r->is_cut);
    assert_true(dt_series_last(dt_records_find(r, 0, "loss")) == 2);
    dt_records_close(reader);
}

static void test_cut_by_a_resume(void **state)
{
    put("metrics.jsonl", "w",
        "{\"step\":1,\"phase\":\"a\",\"wall_s\":1,\"loss\":3}\n{\"step\":2,\"phase\":\"a\",\"wall_s\":2,\"loss\":4}\n");
    dt_records_reader *reader = open_records();
    assert_int_equal(dt_records_poll(reader), DT_OK);
    put("metrics.jsonl", "w", "{\"step\":1,\"phase\":\"a\",\"wall_s\":1,\"loss\":7}\n");
    assert_int_equal(dt_records_poll(reader), DT_OK);
    assert_int_equal(dt_records_get(reader)->n, 1);
    assert_true(dt_series_last(dt_records_find(dt_records_get(reader), 0, "loss")) == 7);
    /* it is longer than before: its last record was written again */
    put("metrics.jsonl", "w", "{\"step\":1,\"phase\":\"a\",\"wall_s\":1,\"eval/x\":5,\"loss\":8}\n");
    assert_int_equal(dt_records_poll(reader), DT_OK);
    assert_true(dt_records_get(reader)->n == 1 && dt_records_get(reader)->n_bad == 0);
    assert_true(dt_series_last(dt_records_find(dt_records_get(reader), 0, "loss")) == 8);
    unlink(in_folder("metrics.jsonl"));
    assert_int_equal(dt_records_poll(reader), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "metrics.jsonl"));
    dt_records_close(reader);
    assert_int_equal(dt_records_open(in_folder("metrics.jsonl"), &reader), DT_ENOTFOUND);
    assert_non_null(strstr(dt_error_text(), "metrics.jsonl"));
}

/* Names are looked up in a time that does not grow with their number: counted, not measured. */
static void test_many_names(void **state)
{
    enum { NAMES = 40000 };
    FILE *f = fopen(in_folder("metrics.jsonl"), "w");
    assert_non_null(f);
    for (int step = 1; step <= 2; step++) { /* the second time from behind, so that no order helps */
        fprintf(f, "{\"step\":%d,\"phase\":\"a\",\"wall_s\":1", step);
        for (int i = 0; i < NAMES; i++) {
            const int name = step == 1 ? i : NAMES - 1 - i;
            fprintf(f, ",\"name/%d\":%d", name, name + step);
        }
        fprintf(f, "}\n");
    }
    fclose(f);
    dt_records_reader *reader = open_records();
    assert_int_equal(dt_records_poll(reader), DT_OK);
    const dt_records *r = dt_records_get(reader);
    assert_int_equal(r->n_series, NAMES);
    assert_true(r->n_looks < 20 * (uint64_t)NAMES);
    for (int i = 0; i < NAMES; i += 997) {
        char name[32];
        snprintf(name, sizeof(name), "name/%d", i);
        const dt_series *s = dt_records_find(r, 0, name);
        assert_non_null(s);
        assert_true(s->n == 2 && s->value[0] == i + 1 && s->value[1] == i + 2);
    }
    assert_null(dt_records_find(r, 0, "name/40000"));
    dt_records_close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_series, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_lines_that_are_none, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_a_line_of_any_length, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_cut_by_a_resume, folder_begin, folder_end),
        cmocka_unit_test_setup_teardown(test_many_names, folder_begin, folder_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
