/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/loader: every refusal against a real shared object that is wrong in just that way (bad.c), search, and
 * the registry.
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
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"
#include "loader/loader.h"

static char top[64];
static char fixtures[4096]; /* where libtool puts the modules of this folder */
static uint64_t bytes_before;

/* the least a host must be for init: it records errors */
static dt_status host_fail(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    return DT_FAIL(st, "%s", msg);
}
static const dt_host host = {
    .struct_size = sizeof(dt_host), .abi_major = DT_ABI_MAJOR, .abi_minor = DT_ABI_MINOR, .fail = host_fail};

static int begin(void **state)
{
    const char *build = getenv("DT_BUILDDIR");
    snprintf(fixtures, sizeof(fixtures), "%s/tests/loader/.libs", build != NULL ? build : ".");
    snprintf(top, sizeof(top), "test_loader.%ld.tmp", (long)getpid());
    bytes_before = dt_alloc_live_bytes();
    dt_error_clear();
    return dt_fs_mkdirs(top);
}

static int end(void **state)
{
    return dt_fs_remove_tree(top) != DT_OK || dt_alloc_live_bytes() != bytes_before;
}

#define assert_says(piece)                                                                                             \
    do {                                                                                                               \
        if (strstr(dt_error_text(), (piece)) == NULL) {                                                                \
            print_error("said: %s\n", dt_error_text());                                                                \
            fail();                                                                                                    \
        }                                                                                                              \
    } while (0)

#define assert_done(expr)                                                                                              \
    do {                                                                                                               \
        dt_status st_ = (expr);                                                                                        \
        if (st_ != DT_OK) {                                                                                            \
            print_error("%s\n", dt_error_text());                                                                      \
        }                                                                                                              \
        assert_int_equal(st_, DT_OK);                                                                                  \
    } while (0)

#define assert_refused(expr, code, piece)                                                                              \
    do {                                                                                                               \
        dt_error_clear();                                                                                              \
        dt_status st_ = (expr);                                                                                        \
        assert_says(piece);                                                                                            \
        assert_int_equal(st_, (code));                                                                                 \
    } while (0)

static dt_loader *loader_on(const char *plugin_path)
{
    dt_loader *l = NULL;
    dt_loader_desc desc = {
        .host = &host, .plugin_path = plugin_path, .program_dir = "/no/build", .plugin_dir = "/no/where"};
    assert_done(dt_loader_create(&desc, &l));
    return l;
}

/* ---- refusals ---- */

#define NOW   "1" /* DT_ABI_MINOR */
#define NEWER "8" /* what bad.c makes of it: 7 more */
static const struct {
    const char *file;
    dt_status status;
    const char *found, *advice;
} bad[] = {
    {"bad_magic", DT_EABI, "begins with 0x12345678, expected 0x4e525444", "DT_PLUGIN_PREFIX"},
    {"bad_size", DT_EABI, "its descriptor has 12 bytes, expected at least 24", "rebuild it"},
    {"bad_short", DT_EABI, "its descriptor has 64 bytes, version 1.0 has", "rebuild it"},
    {"bad_major", DT_EABI, "built for plugin ABI 2." NOW ", this dtrain speaks 1." NOW, "update dtrain"},
    {"old_major", DT_EABI, "built for plugin ABI 0." NOW ", this dtrain speaks 1." NOW, "rebuild it"},
    {"bad_minor", DT_EABI, "needs plugin ABI 1." NEWER ", this dtrain speaks 1." NOW, "update dtrain"},
    {"bad_layout", DT_EABI, "layout \"ilp32be;dims4\", expected \"lp64le;dims8\"", "rebuild it for this machine"},
    {"bad_name", DT_EPLUGIN, "is called \"someone_else\", expected \"bad_name\"", "rename the file to someone_else.so"},
    {"bad_symbol", DT_EPLUGIN, "once_called_LTX_dt_plugin_entry, expected bad_symbol_LTX_",
     "rename the file to once_called"},
    {"bad_entry", DT_EPLUGIN, "has no entry point bad_entry_LTX_dt_plugin_entry", "-DDT_PLUGIN_NAME=bad_entry"},
    {"bad_borrowed", DT_EPLUGIN, "its entry point lies in ", "expected in the file itself"},
    {"bad_lazy", DT_EPLUGIN, "undefined symbol: symbol_that_nobody_defines", "-Wl,-z,defs"},
    {"bad_null", DT_EPLUGIN, "returns no descriptor", "bad_null.so"},
    {"bad_empty", DT_EPLUGIN, "holds no components", "expected at least one"},
    {"bad_duplicate", DT_EPLUGIN, "two components have the id bad_duplicate_model", "rename one"},
    {"bad_op", DT_EPLUGIN, "component bad_op_model lacks the operation forward", "every model needs"},
    {"bad_ops_size", DT_EPLUGIN, "bad_ops_size_model have struct_size 16", "sizeof the table"},
    {"bad_no_ops", DT_EPLUGIN, "component bad_no_ops has no table of operations", "dt_phase_ops"},
    {"bad_save", DT_EPLUGIN, "has only one of save and load", "both or none"},
    {"bad_component_size", DT_EPLUGIN, "a component has struct_size 24", "sizeof(dt_component)"},
    {"bad_option_size", DT_EPLUGIN, "option narrow is a integer and needs a member of 8 bytes, its member has 4",
     "component bad_option_size_model"},
    {"bad_default", DT_EPLUGIN, "option hidden: the default \"many\" does not parse", "expected an integer in [1, 64]"},
    {"bad_kind", DT_EPLUGIN, "has kind 9, known are 1 to 4", "update dtrain"},
    {"bad_id", DT_EPLUGIN, "id is \"Bad Id\", expected a-z", "bad_id.so"},
    {"bad_reserved", DT_EPLUGIN, "the id \"training\" is a word of dtrain's own configuration", "choose another"},
    {"bad_role", DT_EPLUGIN, "model bad_role_model has the role \"\"", "expected perception, world"},
    {"bad_old_env", DT_EABI, "component bad_old_env_world is an environment built for plugin ABI 1.0",
     "environments are final since 1.1, rebuild it"},
    {"bad_init", DT_EPLUGIN, "its init failed with DT_EIO: the licence server is asleep", "bad_init.so"},
};

static void test_refusals(void **state)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dt_loader *l = loader_on(fixtures);
        const dt_loaded_plugin *p = NULL;
        char file[64];
        snprintf(file, sizeof(file), "%s.so", bad[i].file);
        assert_refused(dt_loader_open(l, file, &p), bad[i].status, bad[i].found);
        assert_says(bad[i].advice);
        assert_says(file); /* the file is named in every refusal */
        assert_null(p);
        assert_int_equal(dt_loader_n(l), 0); /* nothing of it is left */
        assert_int_equal(dt_loader_n_plugins(l), 0);
        dt_loader_destroy(l);
    }
}

static void put(const char *name, const char *text, size_t bytes, char path[256])
{
    snprintf(path, 256, "%s/%s", top, name);
    assert_int_equal(dt_fs_write_atomic(path, text, bytes), DT_OK);
}

static void test_no_shared_object(void **state)
{
    dt_loader *l = loader_on(NULL);
    const dt_loaded_plugin *p = NULL;
    char path[256];
    static const char script[] =
        "#!/bin/sh\necho a script is no shared object, however long it may be, or so one hopes\n";
    put("text.so", script, sizeof(script) - 1, path);
    assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "text.so: is no shared object: invalid ELF header");
    put("short.so", "x", 1, path);
    assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "is no shared object");
    put("empty.so", "", 0, path);
    assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "is empty or no plain file");
    /* a good plugin cut in the middle */
    char *bytes = NULL, good[4200];
    size_t n_bytes = 0;
    snprintf(good, sizeof(good), "%s/good.so", fixtures);
    assert_done(dt_fs_read_all(good, 1 << 24, &bytes, &n_bytes));
    for (size_t cut = 1; cut < 8; cut++) {
        put("cut.so", bytes, n_bytes * cut / 8, path);
        assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "cut.so: is cut off: has ");
    }
    bytes[18] ^= 1; /* e_machine */
    put("other.so", bytes, n_bytes, path);
    assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "other.so: built for machine ");
    bytes[18] ^= 1;
    /* and a whole copy under another name */
    put("copy.so", bytes, n_bytes, path);
    assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "good_LTX_dt_plugin_entry, expected copy_LTX_");
    dt_free(bytes);
    dt_loader_destroy(l);
}

static void test_taken(void **state)
{
    dt_loader *l = loader_on(fixtures);
    const dt_loaded_plugin *p = NULL;
    assert_done(dt_loader_open(l, "good", &p));
    assert_refused(dt_loader_open(l, "bad_taken", &p), DT_EPLUGIN, "the id good_model is taken by the model of ");
    assert_says("good.so; remove one of the two files");
    assert_int_equal(dt_loader_n(l), 2);
    dt_loader_destroy(l);
}

/* ---- what is good ---- */

static void test_good(void **state)
{
    dt_loader *l = loader_on(fixtures);
    const dt_loaded_plugin *p = NULL, *again = NULL;
    assert_done(dt_loader_open(l, "good.so", &p));
    assert_string_equal(p->desc.name, "good");
    assert_string_equal(p->desc.version, "1.2");
    assert_int_equal(strlen(p->sha256), 64);
    char path[4200];
    snprintf(path, sizeof(path), "%s/../.libs/good.so", fixtures);
    assert_done(dt_loader_open(l, path, &again));
    assert_ptr_equal(p, again); /* one file, however it is named */
    assert_done(dt_loader_open(l, "good", &again));
    assert_ptr_equal(p, again);
    snprintf(path, sizeof(path), "%s/../good.la", fixtures);
    assert_done(dt_loader_open(l, path, &again));
    assert_ptr_equal(p, again);
    snprintf(path, sizeof(path), "%s/../good.so", fixtures); /* as in the build tree: the module lies in .libs */
    assert_done(dt_loader_open(l, path, &again));
    assert_ptr_equal(p, again);
    assert_int_equal(dt_loader_n_plugins(l), 1);
    assert_int_equal(dt_loader_n(l), 2);
    const dt_loaded *c = dt_loader_at(l, 0);
    assert_int_equal(c->desc.kind, DT_KIND_PHASE);
    assert_string_equal(c->desc.id, "good");
    assert_null(c->ops.phase.save);
    dt_progress progress = {.struct_size = sizeof(progress)};
    assert_int_equal(c->ops.phase.iterate(NULL, &progress), DT_DONE);
    assert_string_equal(dt_loader_ids(l)[1], "good_model");
    assert_null(dt_loader_at(l, 2));

    assert_done(dt_loader_open(l, "good_plain", &p)); /* plain entry point */
    assert_done(dt_loader_open(l, "good_newer", &p)); /* longer tables of a later minor */
    assert_int_equal(p->desc.abi_minor, DT_ABI_MINOR + 7);
    dt_loader_destroy(l);
}

static void test_find(void **state)
{
    dt_loader *l = loader_on(fixtures);
    const dt_loaded *c = NULL;
    assert_done(dt_loader_find(l, DT_KIND_PHASE, "good", &c));
    assert_string_equal(c->desc.id, "good");
    assert_refused(dt_loader_find(l, DT_KIND_MODEL, "good", &c), DT_ENOTFOUND, "good is a phase (from ");
    assert_done(dt_loader_find(l, 0, "good_model", &c));                        /* in a file of another name */
    assert_done(dt_loader_find(l, DT_KIND_MODEL, "good_model_only_model", &c)); /* only a scan finds it */
    assert_int_equal(c->plugin->desc.abi_minor, 0); /* what was final in 1.0 loads in every later minor */
    assert_done(dt_loader_find(l, DT_KIND_ENV, "good_env_world", &c));
    assert_refused(dt_loader_find(l, DT_KIND_MODEL, "good_modle", &c), DT_ENOTFOUND, "did you mean \"good_model\"?");
    assert_refused(dt_loader_find(l, DT_KIND_MODEL, "bad_magic", &c), DT_EABI, "bad_magic.so");
    assert_refused(dt_loader_find(l, DT_KIND_DATA, "zzzzzzzzzzzzz", &c), DT_ENOTFOUND, "no data \"zzzzzzzzzzzzz\"");
    assert_says("refused there:\n");
    dt_loader_destroy(l);
    l = loader_on(NULL);
    assert_refused(dt_loader_find(l, 0, "zzzzzzzzzzzzz", &c), DT_ENOTFOUND, "`dtrain list` shows what there is");
    dt_loader_destroy(l);
}

static void test_find_phase(void **state)
{
    dt_loader *l = loader_on(fixtures);
    const dt_loaded *c = NULL;
    char path[4200];
    assert_done(dt_loader_find_phase(l, "good.so", &c));
    assert_string_equal(c->desc.id, "good");
    assert_done(dt_loader_find_phase(l, "good", &c));
    snprintf(path, sizeof(path), "%s/good.so", fixtures);
    assert_done(dt_loader_find_phase(l, path, &c));
    assert_string_equal(c->desc.id, "good");
    assert_refused(dt_loader_find_phase(l, "good_two.so", &c), DT_ENOTFOUND,
                   "several phases (phase second_phase, phase third");
    assert_done(dt_loader_find_phase(l, "second_phase", &c));
    assert_refused(dt_loader_find_phase(l, "good_model", &c), DT_ENOTFOUND, "good_model is a model (from ");
    assert_refused(dt_loader_find_phase(l, "good_model_only", &c), DT_ENOTFOUND,
                   "holds no phase, but model good_model_only_model");
    assert_refused(dt_loader_find_phase(l, "bad_init", &c), DT_EPLUGIN, "asleep");
    assert_refused(dt_loader_find_phase(l, "phase9_missing.so", &c), DT_ENOTFOUND,
                   "no plugin phase9_missing.so; tried ");
    dt_loader_destroy(l);
}

static void test_scan(void **state)
{
    dt_loader *l = loader_on(fixtures);
    dt_str refused = {0};
    assert_done(dt_loader_scan(l, &refused));
    assert_true(dt_loader_n(l) >= 9);
    for (uint32_t i = 1; i < dt_loader_n(l); i++) { /* by kind, then id */
        const dt_component *a = &dt_loader_at(l, i - 1)->desc, *b = &dt_loader_at(l, i)->desc;
        assert_true(a->kind < b->kind || (a->kind == b->kind && strcmp(a->id, b->id) < 0));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_non_null(strstr(dt_str_text(&refused), bad[i].file));
    }
    dt_str_fini(&refused);
    dt_loader_destroy(l);
}

/* ---- search ---- */

static void link_good(const char *dir, const char *name)
{
    char from[4200], to[4300];
    assert_done(dt_fs_mkdirs(dir));
    snprintf(from, sizeof(from), "%s/%s", fixtures, name);
    snprintf(to, sizeof(to), "%s/%s", dir, name);
    char *bytes = NULL;
    size_t n_bytes = 0;
    assert_done(dt_fs_read_all(from, 1 << 24, &bytes, &n_bytes));
    assert_done(dt_fs_write_atomic(to, bytes, n_bytes));
    dt_free(bytes);
}

static void test_search(void **state)
{
    char build[128], modules[256], installed[128], path[300];
    snprintf(build, sizeof(build), "%s/build", top);
    snprintf(modules, sizeof(modules), "%s/models/.libs", build);
    snprintf(installed, sizeof(installed), "%s/lib/dtrain", top);
    link_good(installed, "good.so");
    dt_loader_desc desc = {.host = &host, .program_dir = build, .plugin_dir = installed};
    const dt_loaded_plugin *p = NULL;

    /* nowhere: every path tried is listed */
    snprintf(path, sizeof(path), "%s/a:%s/b", top, top);
    desc.plugin_path = path;
    dt_loader *l = NULL;
    assert_done(dt_fs_mkdirs(modules));
    assert_done(dt_loader_create(&desc, &l));
    assert_refused(dt_loader_open(l, "absent", &p), DT_ENOTFOUND, "no plugin absent; tried ");
    assert_says("/a/absent.so, ");
    assert_says("/b/absent.so, ");
    assert_says("build/models/.libs/absent.so, ");
    assert_says("lib/dtrain/absent.so");
    char here[80];
    snprintf(here, sizeof(here), "./%s/absent", top);
    assert_refused(dt_loader_open(l, here, &p), DT_ENOTFOUND, "/.libs/absent.so");
    assert_refused(dt_loader_open(l, "", &p), DT_EINVAL, "is no name of a plugin");

    /* the installed folder, then the build tree before it, then DTRAIN_PLUGIN_PATH before both */
    assert_done(dt_loader_open(l, "good", &p));
    assert_non_null(strstr(p->path, "lib/dtrain/good.so"));
    dt_loader_destroy(l);
    link_good(modules, "good.so");
    assert_done(dt_loader_create(&desc, &l));
    assert_done(dt_loader_open(l, "good", &p));
    assert_non_null(strstr(p->path, "build/models/.libs/good.so"));
    dt_loader_destroy(l);
    char first[128];
    snprintf(first, sizeof(first), "%s/b", top);
    link_good(first, "good.so");
    assert_done(dt_loader_create(&desc, &l));
    assert_done(dt_loader_open(l, "good", &p));
    assert_non_null(strstr(p->path, "/b/good.so"));
    dt_str refused = {0};
    assert_done(dt_loader_scan(l, &refused)); /* the shadowed ones are passed over */
    assert_int_equal(refused.bytes, 0);
    assert_int_equal(dt_loader_n_plugins(l), 1);
    dt_str_fini(&refused);
    dt_loader_destroy(l);
}

/* ---- added plugins ---- */

static int n_fini;
static void count_fini(void)
{
    n_fini++;
}

static void test_added(void **state)
{
    static const dt_data_ops none = {.struct_size = sizeof(dt_data_ops)};
    static const dt_component broken = {
        .struct_size = sizeof(dt_component), .kind = DT_KIND_DATA, .id = "built", .ops = &none};
    static const dt_component *const list[] = {&broken, NULL};
    dt_plugin desc = {DT_PLUGIN_PREFIX, .name = "built", .n_components = 1, .components = list, .fini = count_fini};
    dt_loader *l = loader_on(NULL);
    assert_refused(dt_loader_add(l, &desc), DT_EPLUGIN, "(built in): component built lacks the operation create");
    desc.components = list + 1;
    assert_refused(dt_loader_add(l, &desc), DT_EPLUGIN, "a component is NULL");
    assert_refused(dt_loader_add(l, NULL), DT_EPLUGIN, "no descriptor");
    desc.name = "Built";
    assert_refused(dt_loader_add(l, &desc), DT_EPLUGIN, "its name is \"Built\"");
    assert_int_equal(dt_loader_n_plugins(l), 0);

    const dt_loaded_plugin *good = NULL; /* take a good descriptor from a file and add it to another loader */
    dt_loader *files = loader_on(fixtures);
    assert_done(dt_loader_open(files, "good", &good));
    dt_plugin copy = good->desc;
    copy.fini = count_fini;
    assert_done(dt_loader_add(l, &copy));
    const dt_loaded *c = NULL;
    assert_done(dt_loader_find(l, DT_KIND_MODEL, "good_model", &c));
    assert_string_equal(c->plugin->path, "(built in)");
    dt_loader_destroy(l);
    assert_int_equal(n_fini, 1);
    dt_loader_destroy(files);
}

static void test_memory(void **state)
{
    for (int i = 1;; i++) {
        char spec[32];
        snprintf(spec, sizeof(spec), "alloc:%d", i);
        dt_loader *l = NULL;
        const dt_loaded *c = NULL;
        dt_loader_desc desc = {.host = &host, .plugin_path = fixtures, .program_dir = "/no", .plugin_dir = "/no"};
        dt_fault_reset(spec);
        dt_status st = dt_loader_create(&desc, &l);
        st = st == DT_OK ? dt_loader_find(l, DT_KIND_MODEL, "good_model_only_model", &c) : st;
        bool is_over = dt_fault_fired() == 0;
        dt_fault_reset(NULL);
        dt_loader_destroy(l);
        assert_int_equal(dt_alloc_live_bytes(), bytes_before);
        if (is_over) {
            assert_int_equal(st, DT_OK);
            break;
        }
        assert_true(i < 2000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refusals, begin, end),
        cmocka_unit_test_setup_teardown(test_no_shared_object, begin, end),
        cmocka_unit_test_setup_teardown(test_taken, begin, end),
        cmocka_unit_test_setup_teardown(test_good, begin, end),
        cmocka_unit_test_setup_teardown(test_find, begin, end),
        cmocka_unit_test_setup_teardown(test_find_phase, begin, end),
        cmocka_unit_test_setup_teardown(test_scan, begin, end),
        cmocka_unit_test_setup_teardown(test_search, begin, end),
        cmocka_unit_test_setup_teardown(test_added, begin, end),
        cmocka_unit_test_setup_teardown(test_memory, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
