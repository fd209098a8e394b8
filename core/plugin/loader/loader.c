/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening plugins and the registry of their components. See loader.h.
 */
#include <config.h>

#include "plugin/loader/inner.h"
#include "base/err.h"
#include "base/fp_mode.h"
#include "base/plugin_call.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "plugin/loader/elf.h"

#include <dlfcn.h>
#include <ltdl.h> /* this file alone */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256 };

typedef const dt_plugin *entry_fn(void);

/* What libtool linked in by --enable-force-preopen: names of modules without an address, each followed by its symbols;
 * the end has no name. Programs that are linked otherwise have no such table. */
extern const lt_dlsymlist lt_preloaded_symbols[] __attribute__((weak));

static const char entry_suffix[] = "_LTX_dt_plugin_entry";

struct dt_loader {
    const dt_host *host;
    dt_search search;
    bool is_scanned, is_opening_owner;
    dt_str refused;             /* by the scan, one line each */
    dt_loaded_plugin **plugins; /* in the order of opening */
    uint32_t n_plugins;
    dt_loaded **components; /* by kind and id */
    uint32_t n_components;
    const char **ids; /* of components, ends with NULL */
    void (*next)(void *user, const char *what);
    void *next_user;
};

/* ---- life ------------------------------------------------------------------------------------------------------ */

static dt_status add_preopened(dt_loader *l);

dt_status dt_loader_create(const dt_loader_desc *desc, dt_loader **out_p)
{
    dt_loader *l = dt_alloc(sizeof(*l));
    if (l == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the loader");
    }
    l->host = desc->host;
    dt_status st = dt_search_init(&l->search, desc);
    if (st == DT_OK && lt_dlinit() != 0) {
        st = DT_FAIL(DT_EUNSUPPORTED, "libltdl does not start: %s", lt_dlerror());
    }
    if (st == DT_OK) {
        st = add_preopened(l);
    }
    for (uint32_t i = 0; st == DT_OK && dt_builtin_plugins != NULL && dt_builtin_plugins[i] != NULL; i++) {
        st = dt_loader_add(l, dt_builtin_plugins[i]);
    }
    if (st != DT_OK) {
        dt_loader_destroy(l);
        return st;
    }
    *out_p = l;
    return DT_OK;
}

void dt_loader_skip_fini(dt_loader *l, const dt_loaded_plugin *p)
{
    for (uint32_t i = 0; i < l->n_plugins; i++) {
        if (l->plugins[i] == p) {
            l->plugins[i]->desc.fini = NULL;
        }
    }
}

void dt_loader_set_observer(dt_loader *l, void (*next)(void *user, const char *what), void *user)
{
    l->next = next;
    l->next_user = user;
}

static void report_next(const dt_loader *l, const char *what)
{
    if (l->next != NULL) {
        l->next(l->next_user, what);
    }
}

static void plugin_destroy(dt_loaded_plugin *p)
{
    if (p != NULL) {
        dt_free((char *)p->path);
        dt_free(p);
    }
}

void dt_loader_destroy(dt_loader *l)
{
    if (l == NULL) {
        return;
    }
    for (uint32_t i = l->n_plugins; i-- > 0;) {
        if (l->plugins[i]->desc.fini != NULL) {
            DT_FP_GUARD(l->plugins[i]->path, "fini", l->plugins[i]->desc.fini());
        }
    }
    for (uint32_t i = 0; i < l->n_components; i++) {
        dt_free(l->components[i]);
    }
    for (uint32_t i = 0; i < l->n_plugins; i++) {
        plugin_destroy(l->plugins[i]);
    }
    dt_free(l->components);
    dt_free(l->plugins);
    dt_free(l->ids);
    dt_search_fini(&l->search);
    dt_str_fini(&l->refused);
    dt_free(l); /* without lt_dlexit: it would forget, and leak, the handles of modules that stay */
}

/* ---- registry -------------------------------------------------------------------------------------------------- */

static dt_loaded *find_component_by_id(const dt_loader *l, const char *id)
{
    for (uint32_t i = 0; i < l->n_components; i++) {
        if (strcmp(l->components[i]->desc.id, id) == 0) {
            return l->components[i];
        }
    }
    return NULL;
}

static dt_loaded_plugin *find_plugin_by_name(const dt_loader *l, const char *name)
{
    for (uint32_t i = 0; i < l->n_plugins; i++) {
        if (strcmp(l->plugins[i]->desc.name, name) == 0) {
            return l->plugins[i];
        }
    }
    return NULL;
}

static int compare_kind_and_id(const void *a, const void *b)
{
    const dt_component *x = &(*(dt_loaded *const *)a)->desc, *y = &(*(dt_loaded *const *)b)->desc;
    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : strcmp(x->id, y->id);
}

/* Room for n_more entries everywhere, so that registering itself cannot fail half-way. */
static dt_status reserve_entries(dt_loader *l, uint32_t n_more)
{
    dt_loaded_plugin **plugins = dt_realloc(l->plugins, (l->n_plugins + 1) * sizeof(*plugins));
    l->plugins = plugins != NULL ? plugins : l->plugins;
    dt_loaded **components = dt_realloc(l->components, (l->n_components + n_more) * sizeof(*components));
    l->components = components != NULL ? components : l->components;
    const char **ids = dt_realloc(l->ids, (l->n_components + n_more + 1) * sizeof(*ids));
    l->ids = ids != NULL ? ids : l->ids;
    return plugins != NULL && components != NULL && ids != NULL
               ? DT_OK
               : DT_FAIL(DT_ENOMEM, "out of memory for %u components", n_more);
}

static dt_status open_path(dt_loader *l, const char *path, const dt_loaded_plugin **out_p);

/* An id belongs to the file of its name on the search path, whatever file is opened first: so a listing, a lookup and
 * a check agree. Opens that file, if it is another one than p's. */
static void open_owner(dt_loader *l, const dt_loaded_plugin *p, const char *id)
{
    dt_str path = {0};
    const dt_loaded_plugin *unused = NULL;
    if (l->is_opening_owner || find_component_by_id(l, id) != NULL || strcmp(p->desc.name, id) == 0) {
        return;
    }
    char *real = dt_search_resolve(&l->search, id, &path) == DT_OK ? realpath(dt_str_text(&path), NULL) : NULL;
    l->is_opening_owner = true;
    if (real != NULL && strcmp(real, p->path) != 0) {
        (void)open_path(l, real, &unused); /* why it is rejected is reported when it is asked for */
    }
    l->is_opening_owner = false;
    free(real);
    dt_str_fini(&path);
    dt_error_clear();
}

static void open_owners(dt_loader *l, const dt_loaded_plugin *p)
{
    for (uint32_t i = 0; i < p->desc.n_components; i++) {
        dt_loaded c;
        if (dt_component_check(p->desc.components[i], p, &c) == DT_OK) {
            open_owner(l, p, c.desc.id);
        }
    }
    dt_error_clear();
}

/* Check every component, run init, and only then make them known. */
static dt_status register_plugin(dt_loader *l, dt_loaded_plugin *p)
{
    uint32_t n = p->desc.n_components;
    if (p->sha256[0] != '\0') {
        open_owners(l, p);
    }
    DT_TRY(reserve_entries(l, n));
    dt_loaded **fresh = dt_alloc_n(n, sizeof(*fresh));
    dt_status st = fresh != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u components", n);
    for (uint32_t i = 0; st == DT_OK && i < n; i++) {
        fresh[i] = dt_alloc(sizeof(*fresh[i]));
        st = fresh[i] != NULL ? dt_component_check(p->desc.components[i], p, fresh[i])
                              : DT_FAIL(DT_ENOMEM, "out of memory for a component");
        if (st != DT_OK) {
            break;
        }
        fresh[i]->plugin = p;
        const char *id = fresh[i]->desc.id;
        const dt_loaded *taken = find_component_by_id(l, id);
        if (taken != NULL && taken->plugin->sha256[0] == '\0') {
            st = DT_FAIL(DT_EPLUGIN, "%s: %s is linked into this program already; name it without a path", p->path, id);
        } else if (taken != NULL) {
            st = DT_FAIL(DT_EPLUGIN,
                         "%s: the id %s is taken by the %s of %s; remove one of the two files, or rename the "
                         "component",
                         p->path, id, dt_kind_name(taken->desc.kind), taken->plugin->path);
        }
        for (uint32_t j = 0; j < i && st == DT_OK; j++) {
            if (strcmp(fresh[j]->desc.id, id) == 0) {
                st = DT_FAIL(DT_EPLUGIN, "%s: two components have the id %s; rename one", p->path, id);
            }
        }
    }
    if (st == DT_OK && p->desc.init != NULL) {
        dt_error_clear();
        report_next(l, "init");
        DT_CALL_PLUGIN(st, p->path, "init", p->desc.init(l->host));
        if (st < 0) {
            st = DT_CONTEXT(DT_EPLUGIN, "%s: its init failed with %s", p->path, dt_status_name(st));
        } else {
            st = DT_OK;
        }
    }
    if (fresh != NULL) {
        for (uint32_t i = 0; i < n; i++) {
            if (st == DT_OK) {
                l->components[l->n_components++] = fresh[i];
            } else {
                dt_free(fresh[i]);
            }
        }
    }
    dt_free(fresh);
    DT_TRY(st);
    l->plugins[l->n_plugins++] = p;
    qsort(l->components, l->n_components, sizeof(*l->components), compare_kind_and_id);
    for (uint32_t i = 0; i < l->n_components; i++) {
        l->ids[i] = l->components[i]->desc.id;
    }
    l->ids[l->n_components] = NULL;
    return DT_OK;
}

/* name: what the plugin's entry point is called after, NULL when nothing is. */
static dt_status add_built_in_plugin(dt_loader *l, const dt_plugin *desc, const char *name)
{
    static const char built_in[] = "(built in)";
    dt_loaded_plugin *p = dt_alloc(sizeof(*p));
    if (p == NULL || (p->path = dt_strdup(built_in)) == NULL) {
        plugin_destroy(p);
        return DT_FAIL(DT_ENOMEM, "out of memory for a plugin");
    }
    dt_status st = dt_plugin_check(desc, built_in, name, &p->desc);
    if (st == DT_OK) {
        st = register_plugin(l, p);
    }
    if (st != DT_OK) {
        plugin_destroy(p);
    }
    return st;
}

dt_status dt_loader_add(dt_loader *l, const dt_plugin *desc)
{
    return add_built_in_plugin(l, desc, NULL);
}

/* Every plugin that is linked into this program. */
static dt_status add_preopened(dt_loader *l)
{
    for (const lt_dlsymlist *s = lt_preloaded_symbols; s != NULL && s->name != NULL; s++) {
        char name[NAME_BYTES];
        const char *suffix = strstr(s->name, entry_suffix);
        if (s->address == NULL || suffix == NULL || suffix[sizeof(entry_suffix) - 1] != '\0') {
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)(suffix - s->name), s->name);
        entry_fn *entry = NULL;
        memcpy(&entry, &s->address, sizeof(entry)); /* ISO C has no cast from void * to a function */
        DT_TRY(add_built_in_plugin(l, entry(), name));
    }
    return DT_OK;
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

/* The dynamic loader's words, without the path in front, which our message has already. */
static const char *dlopen_error_reason(const char *path)
{
    const char *text = dlerror();
    if (text == NULL) {
        return "the dynamic loader gives no reason";
    }
    size_t bytes = strlen(path);
    return strncmp(text, path, bytes) == 0 && strncmp(text + bytes, ": ", 2) == 0 ? text + bytes + 2 : text;
}

/* Binds every symbol now and reports the true reason when it cannot. The file stays mapped for good. */
static dt_status check_bindings(const char *path)
{
    void *handle = NULL;
    DT_FP_GUARD(path, "its constructors", handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
    if (handle != NULL) {
        return DT_OK;
    }
    const char *reason = dlopen_error_reason(path);
    const char *advice = "; is it a shared object built for this machine?";
    if (strstr(reason, "undefined symbol") != NULL) {
        advice = "; link the plugin with -Wl,-z,defs and the library that has it";
    } else if (strstr(reason, "cannot open shared object") != NULL) {
        advice = "; a library that it needs is not installed";
    }
    return DT_FAIL(DT_EPLUGIN, "%s: cannot be opened: %s%s", path, reason, advice);
}

/* The name of some other plugin's entry point in the file's bytes, "" when there is none. */
static void find_other_entry(const char *bytes, size_t n_bytes, char name[NAME_BYTES])
{
    *name = '\0';
    const char *hit = memmem(bytes, n_bytes, entry_suffix, sizeof(entry_suffix));
    const char *begin = hit;
    while (begin != NULL && begin > bytes &&
           (begin[-1] == '_' || (begin[-1] >= '0' && begin[-1] <= '9') || (begin[-1] >= 'a' && begin[-1] <= 'z'))) {
        begin--;
    }
    if (hit != NULL && hit > begin && (size_t)(hit - begin) < NAME_BYTES) {
        memcpy(name, begin, (size_t)(hit - begin));
        name[hit - begin] = '\0';
    }
}

/* The entry point, defined in this very file and not in a library that it pulls in. */
static dt_status find_entry(const char *path, const char *name, const char *bytes, size_t n_bytes, entry_fn **out_p)
{
    lt_dladvise advise;
    lt_dlhandle handle = NULL;
    if (lt_dladvise_init(&advise) != 0) {
        return DT_FAIL(DT_ENOMEM, "libltdl gives no advice for %s", path);
    }
    if (lt_dladvise_resident(&advise) == 0 && lt_dladvise_local(&advise) == 0) {
        DT_FP_GUARD(path, "its constructors", handle = lt_dlopenadvise(path, advise));
    }
    lt_dladvise_destroy(&advise);
    if (handle == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s: libltdl cannot open it: %s", path, lt_dlerror());
    }
    void *symbol = lt_dlsym(handle, "dt_plugin_entry"); /* with and without the <name>_LTX_ prefix */
    Dl_info info;
    memset(&info, 0, sizeof(info));
    if (symbol == NULL) {
        char other[NAME_BYTES];
        find_other_entry(bytes, n_bytes, other);
        return *other != '\0'
                   ? DT_FAIL(DT_EPLUGIN,
                             "%s: has the entry point %s_LTX_dt_plugin_entry, expected %s_LTX_dt_plugin_entry; "
                             "rename the file to %s.so, or build it with -DDT_PLUGIN_NAME=%s",
                             path, other, name, other, name)
                   : DT_FAIL(DT_EPLUGIN,
                             "%s: has no entry point %s_LTX_dt_plugin_entry; end the plugin with "
                             "DT_PLUGIN_DEFINE and build it with -DDT_PLUGIN_NAME=%s",
                             path, name, name);
    }
    char *there = NULL;
    if (dladdr(symbol, &info) == 0 || info.dli_fname == NULL || (there = realpath(info.dli_fname, NULL)) == NULL ||
        strcmp(there, path) != 0) {
        dt_status st = DT_FAIL(DT_EPLUGIN,
                               "%s: its entry point is in %s, expected in the file itself; a plugin must not "
                               "link another plugin",
                               path, there != NULL ? there : "an unknown file");
        free(there);
        return st;
    }
    free(there);
    memcpy(out_p, &symbol, sizeof(symbol)); /* ISO C has no cast from void * to a function */
    return DT_OK;
}

static dt_status open_file(dt_loader *l, const char *path, const char *name, dt_loaded_plugin *p)
{
    const void *bytes = NULL;
    size_t n_bytes = 0;
    dt_status st = dt_fs_map(path, &bytes, &n_bytes);
    if (st != DT_OK) {
        return st == DT_EDATA
                   ? DT_FAIL(DT_EPLUGIN, "%s: is empty or not a regular file, expected a shared object", path)
                   : st;
    }
    dt_sha256 sha;
    uint8_t digest[32];
    dt_sha256_init(&sha);
    dt_sha256_add(&sha, bytes, n_bytes);
    dt_sha256_end(&sha, digest);
    dt_hex(digest, sizeof(digest), p->sha256);
    entry_fn *entry = NULL;
    st = dt_elf_check(bytes, n_bytes);
    if (st < 0) {
        st = DT_CONTEXT(st, "%s", path);
    }
    if (st == DT_OK) {
        report_next(l, "its constructors");
        st = check_bindings(path);
    }
    if (st == DT_OK) {
        st = find_entry(path, name, bytes, n_bytes, &entry);
    }
    dt_fs_unmap(bytes, n_bytes);
    if (st == DT_OK) {
        report_next(l, "its entry point");
        const dt_plugin *desc = NULL;
        DT_FP_GUARD(path, "its entry point", desc = entry());
        st = dt_plugin_check(desc, path, name, &p->desc);
    }
    return st == DT_OK ? register_plugin(l, p) : st;
}

/* Open a file that exists; its real path shows whether it is open already. */
static dt_status open_path(dt_loader *l, const char *path, const dt_loaded_plugin **out_p)
{
    char name[NAME_BYTES];
    DT_TRY(dt_plugin_name_of(path, name, sizeof(name)));
    char *real = realpath(path, NULL);
    if (real == NULL) {
        return DT_FAIL(DT_ENOTFOUND, "no plugin %s", path);
    }
    char *own = dt_strdup(real);
    free(real);
    dt_loaded_plugin *p = own != NULL ? dt_alloc(sizeof(*p)) : NULL;
    if (p == NULL) {
        dt_free(own);
        return DT_FAIL(DT_ENOMEM, "out of memory for plugin %s", path);
    }
    p->path = own;
    for (uint32_t i = 0; i < l->n_plugins; i++) {
        if (strcmp(l->plugins[i]->path, own) == 0) {
            plugin_destroy(p);
            *out_p = l->plugins[i];
            return DT_OK;
        }
    }
    dt_status st = open_file(l, own, name, p);
    if (st != DT_OK) {
        plugin_destroy(p);
        return st;
    }
    *out_p = p;
    return DT_OK;
}

dt_status dt_loader_open(dt_loader *l, const char *file, const dt_loaded_plugin **out_p)
{
    if (strchr(file, '/') == NULL) {
        char name[NAME_BYTES];
        DT_TRY(dt_plugin_name_of(file, name, sizeof(name)));
        const dt_loaded_plugin *known = find_plugin_by_name(l, name);
        if (known != NULL) {
            *out_p = known;
            return DT_OK;
        }
    }
    dt_str path = {0};
    dt_status st = dt_search_resolve(&l->search, file, &path);
    if (st == DT_OK) {
        st = open_path(l, dt_str_text(&path), out_p);
    }
    dt_str_fini(&path);
    return st;
}

bool dt_loader_is_on_path(const dt_loader *l, const char *path)
{
    char name[NAME_BYTES];
    dt_str given = {0}, found = {0};
    char *a = NULL, *b = NULL;
    if (dt_plugin_name_of(path, name, sizeof(name)) == DT_OK && dt_search_resolve(&l->search, path, &given) == DT_OK &&
        dt_search_resolve(&l->search, name, &found) == DT_OK) {
        a = realpath(dt_str_text(&given), NULL);
        b = realpath(dt_str_text(&found), NULL);
    }
    dt_error_clear();
    const bool is_same = a != NULL && b != NULL && strcmp(a, b) == 0;
    free(a);
    free(b);
    dt_str_fini(&given);
    dt_str_fini(&found);
    return is_same;
}

/* ---- looking up ------------------------------------------------------------------------------------------------ */

static bool is_shared_object(const char *file)
{
    size_t bytes = strlen(file);
    return bytes > 3 && strcmp(file + bytes - 3, ".so") == 0;
}

/* One folder; a name met earlier on the path precedes one met later. */
static dt_status scan_dir(dt_loader *l, const char *dir)
{
    char **files = NULL;
    size_t n_files = 0;
    if (!dt_fs_is_dir(dir)) {
        return DT_OK;
    }
    DT_TRY(dt_fs_list(dir, &files, &n_files));
    dt_status st = DT_OK;
    for (size_t i = 0; i < n_files && st == DT_OK; i++) {
        char name[NAME_BYTES];
        if (!is_shared_object(files[i]) || dt_plugin_name_of(files[i], name, sizeof(name)) != DT_OK ||
            find_plugin_by_name(l, name) != NULL) {
            continue;
        }
        dt_str path = {0};
        dt_str_addf(&path, "%s/%s", dir, files[i]);
        const dt_loaded_plugin *ignored = NULL;
        st = dt_str_status(&path);
        if (st == DT_OK && open_path(l, dt_str_text(&path), &ignored) != DT_OK) {
            dt_str_addf(&l->refused, "%s\n", dt_error_text());
        }
        dt_str_fini(&path);
    }
    dt_fs_list_free(files, n_files);
    return st;
}

static dt_status scan_search_path(dt_loader *l)
{
    for (size_t i = 0; i < l->search.n_dirs && !l->is_scanned; i++) {
        DT_TRY(scan_dir(l, l->search.dirs[i]));
    }
    l->is_scanned = true;
    return dt_str_status(&l->refused);
}

dt_status dt_loader_scan(dt_loader *l, dt_str *refused_p)
{
    DT_TRY(scan_search_path(l));
    dt_str_add(refused_p, dt_str_text(&l->refused));
    return dt_str_status(refused_p);
}

static const char *article_of_kind(uint32_t kind)
{
    return kind == DT_KIND_ENV /* environment */ ? "an" : "a";
}

static dt_status check_component_kind(const dt_loaded *comp, uint32_t kind, const dt_loaded **out_p)
{
    if (kind != 0 && comp->desc.kind != kind) {
        return DT_FAIL(DT_ENOTFOUND, "%s is %s %s (from %s), expected %s %s", comp->desc.id,
                       article_of_kind(comp->desc.kind), dt_kind_name(comp->desc.kind), comp->plugin->path,
                       article_of_kind(kind), dt_kind_name(kind));
    }
    *out_p = comp;
    return DT_OK;
}

/* The id of that kind (0: of any) that is likely meant, NULL: none. */
static const char *find_similar_id(const dt_loader *l, uint32_t kind, const char *id)
{
    const char **ids = dt_alloc_n(l->n_components + 1, sizeof(*ids)), *near = NULL;
    char full[128];
    if (ids == NULL) {
        return NULL; /* the error is reported without a suggestion */
    }
    for (size_t i = 0, n = 0; i < l->n_components; i++) {
        if (kind == 0 || l->components[i]->desc.kind == kind) {
            ids[n++] = l->components[i]->desc.id;
        }
    }
    near = dt_suggest_word(id, ids);
    if (near == NULL && kind == DT_KIND_ENV && (size_t)snprintf(full, sizeof(full), "env_%s", id) < sizeof(full)) {
        near = dt_suggest_word(full, ids); /* a short name, as find_env_by_short_id takes it */
    }
    dt_free(ids);
    return near;
}

static dt_status fail_no_component(const dt_loader *l, uint32_t kind, const char *id)
{
    dt_str dirs = {0};
    dt_search_list(&l->search, &dirs);
    const char *what = kind == 0 ? "component" : dt_kind_name(kind);
    const char *near = find_similar_id(l, kind, id);
    dt_status st = DT_OK;
    if (near != NULL) {
        st = DT_FAIL(DT_ENOTFOUND, "no %s \"%s\" in the plugins of %s; did you mean \"%s\"?", what, id,
                     dt_str_text(&dirs), near);
    } else if (l->refused.bytes > 0) {
        st = DT_FAIL(DT_ENOTFOUND, "no %s \"%s\" in the plugins of %s; rejected there:", what, id, dt_str_text(&dirs));
        st = DT_FAIL_LINES(st, "%s\n%s", dt_error_text(), dt_str_text(&l->refused));
    } else {
        st = DT_FAIL(DT_ENOTFOUND, "no %s \"%s\" in the plugins of %s; `dtrain list` prints those available", what, id,
                     dt_str_text(&dirs));
    }
    dt_str_fini(&dirs);
    return st;
}

/* "cartpole" is env_cartpole; NULL where there is no such file. */
static const dt_loaded *find_env_by_short_id(dt_loader *l, const char *id)
{
    char full[128];
    const dt_loaded_plugin *p = NULL;
    const int n = snprintf(full, sizeof(full), "env_%s", id);
    if (n < 0 || (size_t)n >= sizeof(full) || strchr(id, '/') != NULL || dt_loader_open(l, full, &p) != DT_OK) {
        dt_error_clear();
        return NULL;
    }
    return find_component_by_id(l, full);
}

dt_status dt_loader_find(dt_loader *l, uint32_t kind, const char *id, const dt_loaded **out_p)
{
    const dt_loaded *comp = find_component_by_id(l, id);
    if (comp != NULL) {
        return check_component_kind(comp, kind, out_p);
    }
    /* usually the file is named like the component */
    const dt_loaded_plugin *p = NULL;
    dt_status st = strchr(id, '/') == NULL ? dt_loader_open(l, id, &p) : DT_ENOTFOUND;
    if (st != DT_OK && st != DT_ENOTFOUND && st != DT_EINVAL) {
        return st;
    }
    comp = find_component_by_id(l, id);
    if (comp == NULL && kind == DT_KIND_ENV) {
        comp = find_env_by_short_id(l, id);
    }
    if (comp == NULL) {
        DT_TRY(scan_search_path(l));
        comp = find_component_by_id(l, id);
    }
    return comp != NULL ? check_component_kind(comp, kind, out_p) : fail_no_component(l, kind, id);
}

/* The phase a plugin is asked for: its only one, or the one named like the plugin. */
/* The one component of a plugin, of that kind (0: any), or the one named like the plugin. */
static dt_status find_only_component(const dt_loader *l, uint32_t kind, const dt_loaded_plugin *p,
                                     const dt_loaded **out_p)
{
    const dt_loaded *only = NULL;
    uint32_t n = 0;
    dt_str ids = {0};
    for (uint32_t i = 0; i < l->n_components; i++) {
        const dt_loaded *comp = l->components[i];
        if (comp->plugin != p) {
            continue;
        }
        dt_str_addf(&ids, "%s%s %s", ids.bytes > 0 ? ", " : "", dt_kind_name(comp->desc.kind), comp->desc.id);
        if (kind == 0 || comp->desc.kind == kind) {
            bool is_named = strcmp(comp->desc.id, p->desc.name) == 0;
            only = is_named || n == 0 ? comp : only;
            n = is_named ? 1 : n + 1;
            if (is_named) {
                break;
            }
        }
    }
    dt_status st = DT_OK;
    if (n == 0) {
        st = DT_FAIL(DT_ENOTFOUND, "%s contains no phase, but %s; a model is wired with --set models.<role>=<id>",
                     p->path, dt_str_text(&ids));
    } else if (n > 1) {
        st = DT_FAIL(DT_ENOTFOUND, "%s contains several %s (%s); name one by its id, its folder in DTRAIN_PLUGIN_PATH",
                     p->path, kind == 0 ? "components" : "phases", dt_str_text(&ids));
    } else {
        *out_p = only;
    }
    dt_str_fini(&ids);
    return st;
}

dt_status dt_loader_find_phase(dt_loader *l, const char *file_or_id, const dt_loaded **out_p)
{
    const dt_loaded_plugin *p = NULL;
    if (strchr(file_or_id, '/') != NULL || is_shared_object(file_or_id)) {
        DT_TRY(dt_loader_open(l, file_or_id, &p));
        return find_only_component(l, DT_KIND_PHASE, p, out_p);
    }
    const dt_loaded *comp = find_component_by_id(l, file_or_id);
    if (comp != NULL) {
        return check_component_kind(comp, DT_KIND_PHASE, out_p);
    }
    dt_status st = dt_loader_open(l, file_or_id, &p);
    if (st == DT_OK) {
        comp = find_component_by_id(l, file_or_id);
        return comp != NULL ? check_component_kind(comp, DT_KIND_PHASE, out_p)
                            : find_only_component(l, DT_KIND_PHASE, p, out_p);
    }
    if (st != DT_ENOTFOUND) {
        return st;
    }
    dt_error why;
    dt_error_save(&why, st);
    st = dt_loader_find(l, DT_KIND_PHASE, file_or_id, out_p);
    if (st == DT_ENOTFOUND && find_similar_id(l, DT_KIND_PHASE, file_or_id) == NULL) {
        (void)dt_error_restore(&why); /* the list of paths helps more than the list of folders */
        return DT_FAIL(why.status, "%s; `dtrain list` prints those available", dt_error_text());
    }
    return st;
}

dt_status dt_loader_find_any(dt_loader *l, const char *file_or_id, const dt_loaded **out_p)
{
    const dt_loaded_plugin *p = NULL;
    if (strchr(file_or_id, '/') == NULL && !is_shared_object(file_or_id)) {
        return dt_loader_find(l, 0, file_or_id, out_p);
    }
    DT_TRY(dt_loader_open(l, file_or_id, &p));
    return find_only_component(l, 0, p, out_p);
}

uint32_t dt_loader_count(const dt_loader *l)
{
    return l->n_components;
}

const dt_loaded *dt_loader_at(const dt_loader *l, uint32_t i)
{
    return i < l->n_components ? l->components[i] : NULL;
}

uint32_t dt_loader_count_plugins(const dt_loader *l)
{
    return l->n_plugins;
}

const dt_loaded_plugin *dt_loader_plugin_at(const dt_loader *l, uint32_t i)
{
    return i < l->n_plugins ? l->plugins[i] : NULL;
}

void dt_loader_visit_extensions(const dt_loader *l, const char *id, dt_extension_fn *fn, void *user)
{
    for (uint32_t i = 0; i < l->n_plugins; i++) {
        const dt_loaded_plugin *p = l->plugins[i];
        const void *table = p->desc.extension != NULL ? p->desc.extension(id) : NULL;
        if (table != NULL) {
            fn(user, table, p, NULL);
        }
        for (uint32_t j = 0; j < l->n_components; j++) {
            const dt_loaded *c = l->components[j];
            table = c->plugin == p && c->desc.extension != NULL ? c->desc.extension(id) : NULL;
            if (table != NULL) {
                fn(user, table, p, c);
            }
        }
    }
}

typedef struct wanted_service {
    const char *id;
    const void *found;
} wanted_service;

static void find_service(void *user, const void *table, const dt_loaded_plugin *plugin, const dt_loaded *component)
{
    wanted_service *w = user;
    for (const dt_provided *p = table; w->found == NULL && p->id != NULL; p++) {
        w->found = strcmp(p->id, w->id) == 0 ? p->table : NULL;
    }
}

const void *dt_loader_find_service(const dt_loader *l, const char *id)
{
    static const char services[] = DT_EXT_SERVICES;
    wanted_service w = {.id = id};
    if (l != NULL) {
        dt_loader_visit_extensions(l, services, find_service, &w);
        return w.found;
    }
    for (uint32_t i = 0; dt_builtin_plugins != NULL && dt_builtin_plugins[i] != NULL; i++) {
        const dt_plugin *p = dt_builtin_plugins[i];
        const void *table = p->extension != NULL ? p->extension(services) : NULL;
        if (table != NULL) {
            find_service(&w, table, NULL, NULL);
        }
    }
    return w.found;
}

const char *const *dt_loader_list_ids(const dt_loader *l)
{
    static const char *const none[] = {NULL};
    return l->ids != NULL && l->n_components > 0 ? l->ids : none;
}
