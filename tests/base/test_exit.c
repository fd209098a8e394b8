/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of exit codes: docs/reference/exit-codes.md has the same rows, each status maps to one, and predicates
 * follow the table.
 */
#include "base/exit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_documented(void **state)
{
    char path[4096], line[1024];
    const char *tree = getenv("DT_SRCDIR");
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/docs/reference/exit-codes.md", tree != NULL ? tree : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        int code = 0, at = 0;
        if (sscanf(line, "| %d | %n", &code, &at) != 1 || at == 0) {
            continue; /* not a row, or 128+n */
        }
        const dt_exit_row *row = dt_exit_find(code);
        assert_non_null(row);
        assert_ptr_equal(row, &dt_exit_rows[n++]);
        const size_t bytes = strcspn(row->meaning, ":"); /* advice has a column of its own there */
        assert_memory_equal(line + at, row->meaning, bytes);
    }
    fclose(f);
    assert_int_equal(n, DT_EXIT_ROWS);
}

static void test_status_codes(void **state)
{
    static const struct {
        dt_status st;
        int code;
    } row[] = {{DT_OK, 0},           {DT_DONE, 0},         {DT_EIO, 1},   {DT_ENOMEM, 1},  {DT_EINVAL, 2},
               {DT_ECONFIG, 2},      {DT_ESHAPE, 2},       {DT_EABI, 3},  {DT_EPLUGIN, 3}, {DT_EDATA, 4},
               {DT_EUNSUPPORTED, 5}, {DT_ECUDA, 5},        {DT_ECOMM, 6}, {DT_EPEER, 6},   {DT_EDIVERGED, 7},
               {DT_ENOTFOUND, 2},    {DT_EINTERRUPTED, 75}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        assert_int_equal(dt_exit_code(row[i].st), row[i].code);
        assert_non_null(dt_exit_find(row[i].code));
    }
}

static void test_predicates(void **state)
{
    for (int code = 0; code < 256; code++) {
        assert_int_equal(dt_exit_find(code) != NULL, code <= 7 || code == 75);
        assert_int_equal(dt_exit_is_rejection(code), code >= 2 && code <= 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documented), cmocka_unit_test(test_status_codes),
                                       cmocka_unit_test(test_predicates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
