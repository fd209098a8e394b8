/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugins that were just built, for programs that write documentation from their tables. Such a program is located
 * next to dtrain, where a build tree's plugins are looked for.
 */
#ifndef DTRAIN_CORE_CLI_BUILT_PLUGINS_H
#define DTRAIN_CORE_CLI_BUILT_PLUGINS_H

#include "base/err.h"
#include "plugin/loader/loader.h"
#include "plugin/service/stage.h"

/* *l_p: for dt_loader_destroy, also after an error (NULL: none). *host must outlive it. Errors: those of the loader;
 * DT_EPLUGIN: no plugin was found, or one was rejected. */
static inline dt_status dt_load_built(dt_host *host, dt_loader **l_p)
{
    dt_str rejected = {0};
    *l_p = NULL;
    dt_host_init(host);
    const dt_loader_desc desc = {.host = host, .plugin_dir = "."}; /* not what an older dtrain has installed */
    DT_TRY(dt_loader_create(&desc, l_p));
    dt_status st = dt_loader_scan(*l_p, &rejected);
    if (st == DT_OK && (dt_loader_count(*l_p) == 0 || rejected.bytes > 0)) {
        st = DT_FAIL(DT_EPLUGIN, "expected plugins next to this program, found %u; rejected: %s", dt_loader_count(*l_p),
                     dt_str_text(&rejected));
    }
    dt_str_fini(&rejected);
    return st;
}

#endif
