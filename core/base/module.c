/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/module.h"

#include "base/err.h"
#include "base/fs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static bool try_path(const char *path, dt_str *tried)
{
    if (access(path, F_OK) == 0) {
        return true;
    }
    dt_str_addf(tried, "%s%s", tried->bytes > 0 ? ", " : "", path);
    return false;
}

/* Tests run below the build tree, at most three folders deep. */
static bool find_in_build_tree(const dt_module_desc *d, const char *dir, char *path)
{
    static const char *const up[] = {"", "/..", "/../..", "/../../.."};
    for (size_t i = 0; i < sizeof(up) / sizeof(up[0]); i++) {
        snprintf(path, PATH_BYTES, "%s%s/%s/.libs/%s", dir, up[i], d->build, d->file);
        if (access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

static bool find_file(const dt_module_desc *d, char *path, dt_str *tried)
{
    const char *p = getenv("DTRAIN_PLUGIN_PATH");
    while (p != NULL && *p != '\0') {
        const size_t n = strcspn(p, ":");
        snprintf(path, PATH_BYTES, "%.*s/modules/%s", (int)n, p, d->file);
        if (n > 0 && try_path(path, tried)) {
            return true;
        }
        snprintf(path, PATH_BYTES, "%.*s/%s", (int)n, p, d->file);
        if (n > 0 && access(path, F_OK) == 0) {
            return true;
        }
        p += n + (p[n] == ':');
    }
    dt_str dir = {0};
    bool is_found = dt_fs_program_dir(&dir) == DT_OK && find_in_build_tree(d, dt_str_text(&dir), path);
    dt_str_clear(&dir);
    if (!is_found && dt_fs_installed_dir(DTRAIN_PLUGINDIR, &dir) == DT_OK) {
        snprintf(path, PATH_BYTES, "%s/modules/%s", dt_str_text(&dir), d->file);
        is_found = try_path(path, tried);
    }
    dt_str_fini(&dir);
    return is_found;
}

bool dt_module_exists(const dt_module_desc *d)
{
    char path[PATH_BYTES];
    dt_str tried = {0};
    const bool is_there = find_file(d, path, &tried);
    dt_str_fini(&tried);
    return is_there;
}

dt_status dt_module_open(const dt_module_desc *d, void **entry_p)
{
    char path[PATH_BYTES];
    dt_str tried = {0};
    if (!find_file(d, path, &tried)) {
        const dt_status st = DT_FAIL(DT_EUNSUPPORTED, "this dtrain has no module for %s (no %s); %s", d->what,
                                     dt_str_text(&tried), d->if_none);
        dt_str_fini(&tried);
        return st;
    }
    dt_str_fini(&tried);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s cannot be loaded: %s; %s", path, dlerror(), d->if_wrong);
    }
    *entry_p = dlsym(module, d->entry);
    if (*entry_p == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s is not a dtrain module: it has no %s", path, d->entry);
    }
    return DT_OK;
}
