/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of list, show, check and new (core/cli/tools.h), on the plugins of tests/plugin/loader. What `check` finds in
 * broken models, phases and data is in tests/plugins/template.sh, which breaks the template in one way each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "plugin/service/stage.h"
#include "cli/tools.h"
#include "plugin/trial/check.h"

static char top[64], fixtures[4096];
static uint64_t bytes_before;
static dt_host host;
static dt_loader *loader;
static dt_str out;

static int begin(void **state)
{
    const char *build = getenv("DT_BUILDDIR");
    snprintf(fixtures, sizeof(fixtures), "%s/tests/plugin/loader/.libs", build != NULL ? build : ".");
    snprintf(top, sizeof(top), "test_tools.%ld.tmp", (long)getpid());
    bytes_before = dt_alloc_live_bytes();
    dt_host_init(&host);
    out = (dt_str){0};
    const dt_loader_desc desc = {
        .host = &host, .plugin_path = fixtures, .program_dir = "/no/build", .plugin_dir = "/no/where"};
    return dt_fs_mkdirs(top) != DT_OK || dt_loader_create(&desc, &loader) != DT_OK;
}

static int end(void **state)
{
    dt_str_fini(&out);
    dt_loader_destroy(loader);
    return dt_fs_remove_tree(top) != DT_OK || dt_alloc_live_bytes() != bytes_before;
}

static void out_says(const char *piece)
{
    if (strstr(dt_str_text(&out), piece) == NULL) {
        print_error("expected \"%s\" in:\n%s\n", piece, dt_str_text(&out));
        fail();
    }
}

static void error_says(const char *piece)
{
    if (strstr(dt_error_text(), piece) == NULL) {
        print_error("expected \"%s\" in:\n%s\n", piece, dt_error_text());
        fail();
    }
}

/* The answer is one JSON document; the number of times a key occurs in it. */
static int n_keys(const char *key)
{
    dt_json *json = NULL;
    dt_json_token token;
    int n = 0;
    assert_int_equal(dt_json_open_mem(dt_str_text(&out), out.bytes, "answer", &json), DT_OK);
    do {
        dt_status st = dt_json_next(json, &token);
        if (st != DT_OK) {
            print_error("%s\n%s\n", dt_error_text(), dt_str_text(&out));
        }
        assert_int_equal(st, DT_OK);
        n += token.kind == DT_JSON_KEY && strcmp(token.text, key) == 0;
    } while (token.kind != DT_JSON_END);
    dt_json_close(json);
    return n;
}

static void test_list(void **state)
{
    const dt_loaded *c = NULL;
    assert_int_equal(dt_loader_find(loader, 0, "good", &c), DT_OK); /* before bad_taken claims its id */
    assert_int_equal(dt_tools_list(loader, false, &out), DT_OK);
    out_says("\nphase  good ");
    out_says("\nmodel  good_model ");
    out_says("does nothing");
    out_says("\nrefused:\n");
    out_says("bad_magic.so: its descriptor begins with");
    dt_str_clear(&out);
    assert_int_equal(dt_tools_list(loader, true, &out), DT_OK);
    out_says("\"id\":\"good_model\",\"kind\":\"model\",\"role\":\"world\"");
    assert_int_equal(n_keys("id"), dt_loader_count(loader));
    assert_int_equal(n_keys("refused"), 1);
}

static void test_list_of_nothing(void **state)
{
    dt_loader *empty = NULL;
    const dt_loader_desc desc = {.host = &host, .plugin_path = top, .program_dir = "/no", .plugin_dir = "/no"};
    assert_int_equal(dt_loader_create(&desc, &empty), DT_OK);
    assert_int_equal(dt_tools_list(empty, false, &out), DT_OK);
    out_says("no plugins found; set DTRAIN_PLUGIN_PATH");
    dt_loader_destroy(empty);
}

static void test_show(void **state)
{
    dt_config *c = NULL;
    const dt_loaded *good = NULL;
    assert_int_equal(dt_loader_find(loader, 0, "good", &good), DT_OK);
    assert_int_equal(dt_config_create(&c), DT_OK);
    assert_int_equal(dt_config_set(c, "good_model.hidden=0x10"), DT_OK);
    assert_int_equal(dt_tools_show(c, loader, -1, "good_model", false, &out), DT_OK);
    out_says("good_model: model, role world");
    out_says("hidden = 16    from --set");
    out_says("width; an integer in [1, 64]; default 8");
    dt_str_clear(&out);
    assert_int_equal(dt_tools_show(c, loader, -1, "good_model", true, &out), DT_OK);
    out_says("\"name\":\"hidden\",\"type\":\"integer\",\"value\":16,\"origin\":\"--set\",\"default\":\"8\"");
    assert_int_equal(n_keys("origin"), 1);
    dt_str_clear(&out);
    assert_int_equal(dt_tools_show(c, loader, -1, "training", false, &out), DT_OK);
    out_says("optimizer = \"adamw\"    from built-in");
    out_says("one of adamw, adam, sgd");
    out_says("freeze = ");
    dt_str_clear(&out);
    assert_int_equal(dt_config_set(c, "training.gradient_clip=10"), DT_OK);
    assert_int_equal(dt_tools_show(c, loader, -1, "training", false, &out), DT_OK);
    out_says("gradient_clip = 10.0    from --set");
    assert_null(strstr(dt_str_text(&out), "unit ;"));
    dt_str_clear(&out);
    assert_int_equal(dt_tools_show(c, loader, -1, "training", true, &out), DT_OK);
    assert_true(n_keys("origin") >= 19);
    assert_int_equal(dt_tools_show(c, loader, -1, "good_modle", false, &out), DT_ENOTFOUND);
    error_says("did you mean \"good_model\"?");
    assert_int_equal(dt_config_set(c, "good_model.hidden=65"), DT_OK);
    assert_int_equal(dt_tools_show(c, loader, -1, "good_model", false, &out), DT_ECONFIG);
    error_says("good_model.hidden = \"65\" from --set: expected an integer in [1, 64]");
    dt_config_destroy(c);
}

static void write_text(void *user, const char *verdict)
{
    dt_str_addf(user, "%s\n", verdict);
}

static void test_check(void **state)
{
    const dt_check_desc d = {.loader = loader, .report = write_text, .user = &out};
    assert_int_equal(dt_check_plugin(&d, "bad_layout"), DT_EABI);
    out_says("FAIL ");
    out_says("layout \"ilp32be;dims4\"");
    dt_str_clear(&out);
    assert_int_equal(dt_check_plugin(&d, "good"), DT_EPLUGIN);
    out_says("FAIL phase good: summary or reference is empty");
    out_says("FAIL model good_model: ports: no outputs, expected at least one");
    out_says("FAIL good: ");
    error_says("good.so: breaks its contract in 2 cases");
    dt_str_clear(&out); /* last: components are looked for in all plugins, and bad_taken claims good_model */
    assert_int_equal(dt_check_plugin(&d, "no_such_plugin"), DT_ENOTFOUND);
    out_says("FAIL no plugin no_such_plugin; tried ");
}

static void test_new(void **state)
{
    char dir[128], path[256], *text = NULL;
    size_t bytes = 0;
    snprintf(dir, sizeof(dir), "%s/deep/mine", top);
    assert_int_equal(dt_tools_new("phase", "my_phase", dir, NULL, &out), DT_OK);
    out_says("my_phase.c, Makefile, README.md\nNow: cd ");
    snprintf(path, sizeof(path), "%s/my_phase.c", dir);
    assert_int_equal(dt_fs_read_all(path, 1 << 20, &text, &bytes), DT_OK);
    assert_non_null(strstr(text, "DT_MODEL_DEFINE(model, \"my_phase_model\","));
    assert_null(strstr(text, "template"));
    dt_free(text);
    snprintf(path, sizeof(path), "%s/Makefile", dir);
    assert_int_equal(dt_fs_read_all(path, 1 << 20, &text, &bytes), DT_OK);
    assert_non_null(strstr(text, "NAME = my_phase\n"));
    assert_non_null(strstr(text, "\n\t$(CC) -std=c11"));
    dt_free(text);

    static const char *const kinds[] = {"phase", "policy", "model", "env", "data"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        snprintf(dir, sizeof(dir), "%s/cxx-%s", top, kinds[i]);
        assert_int_equal(dt_tools_new(kinds[i], "other", dir, "c++", &out), DT_OK);
        snprintf(path, sizeof(path), "%s/other.cpp", dir);
        assert_int_equal(dt_fs_read_all(path, 1 << 20, &text, &bytes), DT_OK);
        assert_non_null(strstr(text, "\"other\""));
        assert_null(strstr(text, "template"));
        dt_free(text);
        snprintf(path, sizeof(path), "%s/Makefile", dir);
        assert_int_equal(dt_fs_read_all(path, 1 << 20, &text, &bytes), DT_OK);
        assert_non_null(strstr(text, "\n\t$(CXX) -std=c++17"));
        dt_free(text);
    }
    snprintf(dir, sizeof(dir), "%s/deep/mine", top);

    assert_int_equal(dt_tools_new("model", "other", dir, NULL, &out), DT_ECONFIG);
    error_says("mine exists; name a new folder, nothing was written");
    snprintf(path, sizeof(path), "%s/other.c", dir);
    assert_false(dt_fs_is_file(path));
    static const char *const names[] = {"", "My", "my-phase", "1st", "a/b", "phase.c", "_x"};
    snprintf(dir, sizeof(dir), "%s/never", top);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(dt_tools_new("phase", names[i], dir, NULL, &out), DT_ECONFIG);
        error_says("is not a valid name: expected 1 to 48 of a-z, 0-9 and _");
    }
    assert_int_equal(dt_tools_new("phase", "training", dir, NULL, &out), DT_ECONFIG);
    error_says("reserved in dtrain's configuration");
    assert_int_equal(dt_tools_new("phas", "x", dir, NULL, &out), DT_ECONFIG);
    error_says("did you mean \"phase\"?");
    assert_int_equal(dt_tools_new("shield", "x", dir, NULL, &out), DT_ECONFIG);
    error_says("cannot make a new \"shield\": expected phase, policy, model, env or data");
    assert_int_equal(dt_tools_new("data", "x", dir, "rust", &out), DT_ECONFIG);
    error_says("--language \"rust\": plugins are written in c or c++");
    assert_false(dt_fs_is_dir(dir));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_list, begin, end),
        cmocka_unit_test_setup_teardown(test_list_of_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_show, begin, end),
        cmocka_unit_test_setup_teardown(test_check, begin, end),
        cmocka_unit_test_setup_teardown(test_new, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
