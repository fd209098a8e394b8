/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of core/plugin/loader: every refusal against a real shared object that is wrong in just that way (bad.c),
 * search, and the registry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <link.h> /* ElfW */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/mem.h"
#include "plugin/loader/elf.h"
#include "plugin/loader/loader.h"

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
    snprintf(fixtures, sizeof(fixtures), "%s/tests/plugin/loader/.libs", build != NULL ? build : ".");
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

#define NOW   "0" /* DT_ABI_MINOR */
#define NEWER "7" /* what bad.c makes of it: 7 more */
static const struct {
    const char *file;
    dt_status status;
    const char *found, *advice;
} bad[] = {
    {"bad_magic", DT_EABI, "begins with 0x12345678, expected 0x4e525444", "DT_PLUGIN_PREFIX"},
    {"bad_size", DT_EABI, "its descriptor has 12 bytes, expected at least 24", "rebuild it"},
    {"bad_short", DT_EABI, "its descriptor has 64 bytes, version 1.0 has", "rebuild it"},
    {"bad_major", DT_EABI, "built for plugin ABI 2." NOW ", this dtrain supports 1." NOW, "update dtrain"},
    {"old_major", DT_EABI, "built for plugin ABI 0." NOW ", this dtrain supports 1." NOW, "rebuild it"},
    {"bad_minor", DT_EABI, "needs plugin ABI 1." NEWER ", this dtrain supports 1." NOW, "update dtrain"},
    {"bad_layout", DT_EABI, "layout \"ilp32be;dims4\", expected \"lp64le;dims8\"", "rebuild it for this machine"},
    {"bad_name", DT_EPLUGIN, "is called \"someone_else\", expected \"bad_name\"", "rename the file to someone_else.so"},
    {"bad_symbol", DT_EPLUGIN, "once_called_LTX_dt_plugin_entry, expected bad_symbol_LTX_",
     "rename the file to once_called"},
    {"bad_entry", DT_EPLUGIN, "has no entry point bad_entry_LTX_dt_plugin_entry", "-DDT_PLUGIN_NAME=bad_entry"},
    {"bad_borrowed", DT_EPLUGIN, "its entry point is in ", "expected in the file itself"},
    {"bad_lazy", DT_EPLUGIN, "undefined symbol: undefined_symbol", "-Wl,-z,defs"},
    {"bad_null", DT_EPLUGIN, "returns no descriptor", "bad_null.so"},
    {"bad_empty", DT_EPLUGIN, "contains no components", "expected at least one"},
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
    {"bad_id", DT_EPLUGIN, "a component: its name \"Bad Id\"", "expected [a-z][a-z0-9_]*"},
    {"bad_reserved", DT_EPLUGIN, "the id \"training\" is reserved in dtrain's configuration", "choose another"},
    {"bad_role", DT_EPLUGIN, "the role of model bad_role_model", "perception, world"},
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
        assert_int_equal(dt_loader_count(l), 0); /* nothing of it is left */
        assert_int_equal(dt_loader_count_plugins(l), 0);
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
    assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "text.so: is not a shared object: invalid ELF header");
    put("short.so", "x", 1, path);
    assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "is not a shared object");
    snprintf(path, sizeof(path), "%s/fifo.so", top);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20); /* nobody writes to it */
    assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "fifo.so: is empty or not a regular file");
    alarm(0);
    put("empty.so", "", 0, path);
    assert_refused(dt_loader_open(l, path, &p), DT_EPLUGIN, "is empty or not a regular file");
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

/* Opened in a process of its own, as the dynamic loader may die of it. */
static void survives(const char *path, size_t at, int how)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const dt_loaded_plugin *p = NULL;
        dt_loader *l = NULL;
        dt_loader_desc desc = {.host = &host, .program_dir = "/no/build", .plugin_dir = "/no/where"};
        alarm(20);
        _exit(dt_loader_create(&desc, &l) != DT_OK || dt_loader_open(l, path, &p) == DT_EIO);
    }
    int ended = 0;
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
        print_error("damage %d at byte %zu: ended with %#x\n", how, at, (unsigned)ended);
        fail();
    }
}

/* The value of a tag of the dynamic section, of which there must be one. */
static uint64_t *tag_of(char *bytes, int64_t tag)
{
    ElfW(Ehdr) h;
    memcpy(&h, bytes, sizeof(h));
    for (size_t i = 0; i < h.e_phnum; i++) {
        ElfW(Phdr) p;
        memcpy(&p, bytes + h.e_phoff + i * sizeof(p), sizeof(p));
        for (ElfW(Dyn) *d = (ElfW(Dyn) *)(void *)(bytes + p.p_offset); p.p_type == PT_DYNAMIC && d->d_tag != DT_NULL;
             d++) {
            if (d->d_tag == tag) {
                return &d->d_un.d_val;
            }
        }
    }
    fail_msg("no tag %lld", (long long)tag);
    return NULL;
}

/* What is called when a plugin is opened or closed: each byte of where it lies changed to each other value. */
static void test_damaged_calls(void **state)
{
    static const struct {
        int64_t tag;
        int32_t to;
    } moved[] = {{DT_INIT_ARRAY, 1},   {DT_INIT_ARRAY, 8},   {DT_INIT_ARRAY, -8},    {DT_INIT_ARRAY, 0x80},
                 {DT_INIT_ARRAY, 256}, {DT_FINI_ARRAY, 4},   {DT_FINI_ARRAY, 0x800}, {DT_INIT_ARRAYSZ, 8},
                 {DT_INIT_ARRAYSZ, 1}, {DT_FINI_ARRAYSZ, 8}, {DT_FINI_ARRAYSZ, 256}};
    static const int64_t tags[] = {DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_FINI_ARRAY, DT_FINI_ARRAYSZ};
    char *bytes = NULL, good[4200], path[256];
    size_t n = 0;
    snprintf(good, sizeof(good), "%s/good.so", fixtures);
    assert_done(dt_fs_read_all(good, 1 << 24, &bytes, &n));
    const uint8_t *const file = (const uint8_t *)bytes;
    for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
        uint64_t *const v = tag_of(bytes, moved[i].tag), kept = *v;
        *v += (uint64_t)(int64_t)moved[i].to;
        print_message("tag %lld moved by %d\n", (long long)moved[i].tag, (int)moved[i].to);
        assert_refused(dt_elf_check(file, n), DT_EPLUGIN, "is damaged: ");
        *v = kept;
    }
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        uint8_t *const v = (uint8_t *)tag_of(bytes, tags[i]);
        for (size_t at = 0; at < sizeof(uint64_t); at++) {
            const uint8_t kept = v[at];
            for (int how = 1; how < 256; how++) {
                v[at] = (uint8_t)(kept ^ how);
                if (dt_elf_check(file, n) == DT_OK) { /* harmless: a list that is empty, or the other one */
                    put("good.so", bytes, n, path);
                    survives(path, at, how);
                }
            }
            v[at] = kept;
        }
    }
    uint64_t *const init = tag_of(bytes, DT_INIT), code = *init;
    *init = *tag_of(bytes, DT_INIT_ARRAY);
    assert_refused(dt_elf_check(file, n), DT_EPLUGIN, "a function that is called when it is opened is outside");
    *init = code;
    int64_t *const tag = (int64_t *)tag_of(bytes, DT_INIT_ARRAY) - 1;
    *tag = DT_PREINIT_ARRAY;
    assert_refused(dt_elf_check(file, n), DT_EPLUGIN, "which only a program has");
    *tag = DT_INIT_ARRAY;
    assert_done(dt_elf_check(file, n));
    dt_free(bytes);
}

/* Whatever a header says: a byte of it changed, opened for real; and any byte of the file changed, looked at alone. */
static void test_damaged_headers(void **state)
{
    char *bytes = NULL, good[4200], path[256];
    size_t n = 0;
    ElfW(Ehdr) h;
    snprintf(good, sizeof(good), "%s/good.so", fixtures);
    assert_done(dt_fs_read_all(good, 1 << 24, &bytes, &n));
    memcpy(&h, bytes, sizeof(h));
    assert_done(dt_elf_check((const uint8_t *)bytes, n));
    const size_t headers = (size_t)h.e_phoff + h.e_phnum * sizeof(ElfW(Phdr));
    for (size_t at = 0; at < headers; at++) {
        const char kept = bytes[at];
        for (int how = 0; how < 3; how++) {
            bytes[at] = (char)(how == 0 ? ~kept : how == 1 ? kept ^ 0x10 : kept + 1);
            if (dt_elf_check((const uint8_t *)bytes, n) == DT_OK) { /* harmless, as in a note: the loader takes it */
                put("good.so", bytes, n, path);
                survives(path, at, how);
            }
        }
        bytes[at] = kept;
    }
    uint8_t *exact = malloc(n); /* without room behind it: a sanitizer sees every step outside */
    assert_non_null(exact);
    memcpy(exact, bytes, n);
    uint64_t random = 1;
    for (int i = 0; i < 60000; i++) {
        size_t at[3];
        for (int k = 0; k < 3; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            at[k] = (size_t)(random >> 33) % n;
            exact[at[k]] = (uint8_t)(random >> 20);
        }
        (void)!dt_elf_check(exact, i % 5 == 0 ? at[0] : n);
        for (int k = 0; k < 3; k++) {
            exact[at[k]] = (uint8_t)bytes[at[k]];
        }
    }
    free(exact);
    dt_free(bytes);
    dt_error_clear();
}

static void test_taken(void **state)
{
    dt_loader *l = loader_on(fixtures);
    const dt_loaded_plugin *p = NULL;
    assert_done(dt_loader_open(l, "good", &p));
    assert_refused(dt_loader_open(l, "bad_taken", &p), DT_EPLUGIN, "the id good_model is taken by the model of ");
    assert_says("good.so; remove one of the two files");
    assert_int_equal(dt_loader_count(l), 2);
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
    assert_int_equal(dt_loader_count_plugins(l), 1);
    assert_int_equal(dt_loader_count(l), 2);
    const dt_loaded *c = dt_loader_at(l, 0);
    assert_int_equal(c->desc.kind, DT_KIND_PHASE);
    assert_string_equal(c->desc.id, "good");
    assert_null(c->ops.phase.save);
    dt_progress progress = {.struct_size = sizeof(progress)};
    assert_int_equal(c->ops.phase.iterate(NULL, &progress), DT_DONE);
    assert_string_equal(dt_loader_list_ids(l)[1], "good_model");
    assert_null(dt_loader_at(l, 2));

    assert_done(dt_loader_open(l, "good_plain", &p)); /* plain entry point */
    assert_done(dt_loader_open(l, "good_newer", &p)); /* longer tables of a later minor */
    assert_int_equal(p->desc.abi_minor, DT_ABI_MINOR + 7);
    /* a table that ends before a member was appended: what lies past its struct_size is not read */
    assert_done(dt_loader_open(l, "good_smaller", &p));
    assert_done(dt_loader_find(l, DT_KIND_PHASE, "good_smaller", &c));
    assert_null(c->ops.phase.finish);
    assert_true(c->ops.phase.start != NULL && c->ops.phase.struct_size < sizeof(dt_phase_ops));
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
    assert_says("rejected there:\n");
    dt_loader_destroy(l);
    l = loader_on(NULL);
    assert_refused(dt_loader_find(l, 0, "zzzzzzzzzzzzz", &c), DT_ENOTFOUND, "`dtrain list` prints those available");
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
                   "contains no phase, but model good_model_only_model");
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
    assert_true(dt_loader_count(l) >= 9);
    for (uint32_t i = 1; i < dt_loader_count(l); i++) { /* by kind, then id */
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
    assert_refused(dt_loader_open(l, "", &p), DT_EINVAL, "is not a plugin name");

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
    assert_int_equal(dt_loader_count_plugins(l), 1);
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
    assert_refused(dt_loader_add(l, &desc), DT_EPLUGIN, "the plugin: its name \"Built\"");
    assert_int_equal(dt_loader_count_plugins(l), 0);

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
        if (st == DT_OK) {
            st = dt_loader_find(l, DT_KIND_MODEL, "good_model_only_model", &c);
        }
        bool is_over = dt_fault_count() == 0;
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
        cmocka_unit_test_setup_teardown(test_damaged_headers, begin, end),
        cmocka_unit_test_setup_teardown(test_damaged_calls, begin, end),
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
