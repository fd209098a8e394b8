/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/config/port: memory that runs out anywhere in an import is reported and freed; undeclared options are
 * taken as they stand; options are written as a configuration would be.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"
#include "config/port/porting.h"
#include "config/port/yaml.h"
#include "traffic/guide_keys.h"

static char path[64];

static int begin(void **state)
{
    static const char text[] = "base: &base { learning_rate: 0.1 }\n"
                               "training: { <<: *base, num_epochs: 5, save_interval: 7 }\n"
                               "checkpoint: { save_interval: 3 }\n"
                               "optimizer: { betas: (0.9, 0.95), type: adam }\n"
                               "memory: { freeze_parameters: [controller, gnn] }\n"
                               "batch_size: { per_gpu: 8, effective: 64, accumulation_steps: 2 }\n"
                               "model: { gnn: { hidden_dim: 32 } }\n";
    snprintf(path, sizeof(path), "test_porting.%ld.tmp", (long)getpid());
    return dt_fs_write_atomic(path, text, sizeof(text) - 1);
}

static int end(void **state)
{
    return unlink(path);
}

#ifdef DT_HAVE_YAML

static void test_memory(void **state)
{
    dt_config *known = NULL;
    assert_int_equal(dt_config_create(&known), DT_OK);
    const uint64_t before = dt_alloc_live_bytes();
    for (int i = 1;; i++) {
        char spec[32];
        dt_str out = {0};
        dt_ported n;
        snprintf(spec, sizeof(spec), "alloc:%d", i);
        dt_fault_reset(spec);
        const dt_status st = dt_porting_import(path, 0, &dt_guide_keys, known, &out, &n);
        const bool is_over = dt_fault_count() == 0;
        dt_fault_reset(NULL);
        dt_str_fini(&out);
        assert_int_equal(dt_alloc_live_bytes(), before);
        if (is_over) {
            assert_int_equal(st, DT_OK);
            assert_true(i > 20);
            break;
        }
        assert_true(st == DT_ENOMEM || st == DT_OK); /* a message may lose its decoration */
    }
    dt_config_destroy(known);
}

static void test_undeclared(void **state)
{
    dt_str out = {0};
    dt_ported n;
    assert_int_equal(dt_porting_import(path, 0, &dt_guide_keys, NULL, &out, &n), DT_OK);
    assert_non_null(strstr(dt_str_text(&out), "hidden = 32;    # model.gnn.hidden_dim, line 7\n"));
    assert_non_null(strstr(dt_str_text(&out), "learning_rate = 0.10000000000000001;"));
    assert_non_null(strstr(dt_str_text(&out), "optimizer = \"adam\";"));
    assert_int_equal(n.unknown, 1);
    dt_str_fini(&out);
}

static void test_places(void **state)
{
    dt_yaml_doc *d = NULL;
    assert_int_equal(dt_yaml_read(path, &d), DT_OK);
    const dt_yaml *optimizer = dt_yaml_root(d)->first->next->next->next;
    assert_string_equal(optimizer->key, "optimizer");
    assert_string_equal(optimizer->first->text, "(0.9, 0.95)");
    assert_true(optimizer->first->is_repaired);
    assert_string_equal(optimizer->first->next->key, "type");
    assert_int_equal(optimizer->first->line, 4);
    assert_int_equal(optimizer->first->column, 21);
    assert_int_equal(dt_yaml_fail(d, optimizer, "no %s", "more"), DT_ECONFIG);
    assert_non_null(strstr(dt_error_text(), ":4:12: no more"));
    dt_yaml_close(d);
    dt_yaml_close(NULL);
}

#else

static void test_without(void **state)
{
    dt_yaml_doc *d = NULL;
    assert_int_equal(dt_yaml_read(path, &d), DT_EUNSUPPORTED);
    assert_non_null(strstr(dt_error_text(), "libyaml-dev"));
}

#endif

static void test_options(void **state)
{
    static const char *const choices[] = {"a", "b", NULL};
    static const struct {
        uint32_t type;
        const char *text, *want; /* NULL: refused */
    } row[] = {{DT_OPT_I64, "1e3", "1000"},
               {DT_OPT_I64, "2.5", NULL},
               {DT_OPT_F64, "3", "3.0"},
               {DT_OPT_F64, "x", NULL},
               {DT_OPT_BOOL, "Yes", "true"},
               {DT_OPT_ENUM, "b", "\"b\""},
               {DT_OPT_ENUM, "c", NULL},
               {DT_OPT_STR, "a\"\n", "\"a\\\"\\n\""},
               {DT_OPT_PATH, "x/y", "\"x/y\""},
               {DT_OPT_WORDS, "a, b", "( \"a\", \"b\" )"},
               {DT_OPT_I64, "4294967296", "4294967296L"}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const dt_option o = {.name = "o", .type = row[i].type, .choices = choices, .min = -1e12, .max = 1e12};
        dt_str out = {0};
        const dt_status st = dt_option_write(&o, row[i].text, &out);
        assert_int_equal(st, row[i].want != NULL ? DT_OK : DT_ECONFIG);
        assert_string_equal(dt_str_text(&out), row[i].want != NULL ? row[i].want : "");
        dt_str_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef DT_HAVE_YAML
        cmocka_unit_test_setup_teardown(test_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_undeclared, begin, end),
        cmocka_unit_test_setup_teardown(test_places, begin, end),
#else
        cmocka_unit_test_setup_teardown(test_without, begin, end),
#endif
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
