/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins: finding, checking and opening shared objects, and the registry of their components.
 *
 * A file is opened once and never unloaded (resident in libltdl, RTLD_NODELETE underneath). Before libltdl sees it, a
 * dlopen with RTLD_NOW shows the true reason of a failure, which libltdl hides as "file not found", and binds every
 * symbol, which libltdl leaves to the first call hours later. Then, in order: the entry point is found in this very
 * file; magic; struct_size; major; need_minor; layout; name equals file; per component kind, id, options and required
 * operations; last, init. Every rejection reports the file, what was found, what was expected, and what to do.
 *
 * Search for a bare name: plugins that are linked in (added, or by --enable-force-preopen), DTRAIN_PLUGIN_PATH, the
 * build tree of the program, the installed folder. Only this room knows libltdl. The exit code of every error here is
 * 3. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_LOADER_LOADER_H
#define DTRAIN_CORE_PLUGIN_LOADER_LOADER_H

#include "base/str.h"
#include "dtrain/plugin.h"

typedef struct dt_loader dt_loader;

typedef struct dt_loaded_plugin {
    dt_plugin desc;   /* full-size copy: members a smaller plugin lacks are zero */
    const char *path; /* absolute; "(built in)" for an added one */
    char sha256[65];  /* of the file; "" for an added one */
} dt_loaded_plugin;

typedef struct dt_loaded { /* a component */
    dt_component desc;     /* full-size copy; texts and options belong to the plugin */
    union {                /* full-size copies of its operations: test optional members for NULL */
        dt_phase_ops phase;
        dt_model_ops model;
        dt_env_ops env;
        dt_data_ops data;
    } ops;
    const dt_loaded_plugin *plugin;
} dt_loaded;

typedef struct dt_loader_desc {
    const dt_host *host;     /* handed to init; must outlive the loader */
    const char *plugin_path; /* folders separated by ':', DTRAIN_PLUGIN_PATH; NULL = none */
    const char *program_dir; /* where a build tree may begin; NULL = the folder of the running program */
    const char *plugin_dir;  /* installed plugins; NULL = by dt_fs_installed_dir */
} dt_loader_desc;

dt_status dt_loader_create(const dt_loader_desc *desc, dt_loader **out_p) DT_NODISCARD;
void dt_loader_destroy(dt_loader *l); /* calls fini in reverse order; the files stay mapped */

/* Its fini will not be called: it does not return. */
void dt_loader_skip_fini(dt_loader *l, const dt_loaded_plugin *p);

/* Reports to next, as long as there is one, which code of a plugin runs now: its constructors, its entry point, or
 * init. */
void dt_loader_set_observer(dt_loader *l, void (*next)(void *user, const char *what), void *user);

/* A plugin that is linked into the program (tests, static builds): the same checks except those about a file. */
dt_status dt_loader_add(dt_loader *l, const dt_plugin *desc) DT_NODISCARD;

/* Open a file by path (anything with a '/'), file name or plugin name; opening again gives the same plugin.
 * Errors: DT_ENOTFOUND (every path tried is listed), DT_EABI, DT_EPLUGIN, DT_EIO. */
dt_status dt_loader_open(dt_loader *l, const char *file, const dt_loaded_plugin **out_p) DT_NODISCARD;

/* True when this path leads to the very file that its name alone would: nothing outside the search path is opened by
 * it. */
bool dt_loader_is_on_path(const dt_loader *l, const char *path);

/* A component by id, opening the file that holds it: the one named like it (an environment's also with env_ in front
 * of the id), else all files on the search path once.
 * kind 0 = any. A component of another kind under this id is named in the error. Errors: as open. */
dt_status dt_loader_find(dt_loader *l, uint32_t kind, const char *id, const dt_loaded **out_p) DT_NODISCARD;

/* The phase of a plugin given by path, file name or id (`--plugin`). A plugin with several phases must be asked for by
 * the phase's id. */
dt_status dt_loader_find_phase(dt_loader *l, const char *file_or_id, const dt_loaded **out_p) DT_NODISCARD;

/* A component given by path, file name or id (`dtrain show`). Of a plugin with several it is the one named like the
 * plugin; without one, an id must be given. Errors: as open. */
dt_status dt_loader_find_any(dt_loader *l, const char *file_or_id, const dt_loaded **out_p) DT_NODISCARD;

/* Open everything on the search path; files that are refused are left out, with one line each in refused_p. */
dt_status dt_loader_scan(dt_loader *l, dt_str *refused_p) DT_NODISCARD;

uint32_t dt_loader_count(const dt_loader *l); /* components so far, ordered by kind and id */
const dt_loaded *dt_loader_at(const dt_loader *l, uint32_t i);
uint32_t dt_loader_count_plugins(const dt_loader *l); /* in the order of opening */
const dt_loaded_plugin *dt_loader_plugin_at(const dt_loader *l, uint32_t i);
const char *const *dt_loader_list_ids(const dt_loader *l); /* of all components so far, ends with NULL */

/* Calls fn with every table of this extension: of each plugin so far, in the order of opening, its own and then those
 * of its components (component NULL: the plugin's own). */
typedef void dt_extension_fn(void *user, const void *table, const dt_loaded_plugin *plugin, const dt_loaded *component);
void dt_loader_visit_extensions(const dt_loader *l, const char *id, dt_extension_fn *fn, void *user);

/* A service that a plugin provides by its extension "dtrain.services/1" (plugin.h): of the plugins so far, and of those
 * that are linked into the program where l is NULL. NULL: there is none. */
const void *dt_loader_find_service(const dt_loader *l, const char *id);

/* Plugins that are linked into the program, NULL at the end; every loader has them. Programs without have none. */
extern const dt_plugin *const dt_builtin_plugins[] __attribute__((weak));

const char *dt_kind_name(uint32_t kind); /* "phase" "model" "environment" "data" */

#endif
