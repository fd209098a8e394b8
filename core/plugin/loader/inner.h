/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of a dt_loader, shared by the files of this room alone.
 */
#ifndef DTRAIN_CORE_PLUGIN_LOADER_INNER_H
#define DTRAIN_CORE_PLUGIN_LOADER_INNER_H

#include "plugin/loader/loader.h"

/* The rules of a descriptor. file: for messages; name: what the file is called without folder and ending, NULL when
 * there is no file. desc_p gets a full-size copy. Errors: DT_EABI (rebuild it), DT_EPLUGIN (its author's mistake). */
dt_status dt_plugin_check(const dt_plugin *raw, const char *file, const char *name, dt_plugin *desc_p) DT_NODISCARD;

/* The rules of one component of plugin p, except that its id is unique. out_p gets full-size copies. Errors: DT_EABI
 * (its kind was not final in the version it was built for), DT_EPLUGIN. */
dt_status dt_component_check(const dt_component *raw, const dt_loaded_plugin *p, dt_loaded *out_p) DT_NODISCARD;

/* Where plugins are looked for, in order; absolute or as given. */
typedef struct dt_search {
    char **dirs;
    size_t n_dirs;
} dt_search;

dt_status dt_search_init(dt_search *s, const dt_loader_desc *desc) DT_NODISCARD;
void dt_search_fini(dt_search *s);
/* "x/phase2_ppo.so" gives "phase2_ppo"; name holds bytes characters. Errors: DT_EINVAL when it is longer or empty. */
dt_status dt_plugin_name_of(const char *file, char *name, size_t bytes) DT_NODISCARD;
/* The file that a user's words mean. DT_ENOTFOUND with every path tried. */
dt_status dt_search_resolve(const dt_search *s, const char *file, dt_str *path_p) DT_NODISCARD;
void dt_search_list(const dt_search *s, dt_str *out); /* "a, b and c" */

#endif
