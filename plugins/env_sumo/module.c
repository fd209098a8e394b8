/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE /* dladdr */
#endif
#include "module.h"
#include "dtrain/helpers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "env_sumo_shim.so"
#define ADVICE    "install SUMO 1.15 or later with its C++ library (Debian: apt-get install sumo)"

enum { MAX_PATH = 1024 };

/* the folder of the object that holds this code, or of the program */
static void find_own_folder(char *out, size_t bytes)
{
    Dl_info info;
    const char *name =
        dladdr((const void *)find_own_folder, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "";
    const char *slash = strrchr(name, '/');
    snprintf(out, bytes, "%.*s", slash != NULL ? (int)(slash - name) : 1, slash != NULL ? name : ".");
}

dt_status module_open(const dt_host *h, const char *path, const sumo_api **out)
{
    /* installed; in a build folder, from the plugin's file, from the program and from where libtool hides it */
    static const char *const up[] = {"/sumo", "/../env_sumo/.libs", "/plugins/env_sumo/.libs",
                                     "/../plugins/env_sumo/.libs"};
    char folder[MAX_PATH], file[MAX_PATH + 64];
    if (path[0] != '\0') {
        snprintf(file, sizeof(file), "%s", path);
    } else {
        int i = 0;
        find_own_folder(folder, sizeof(folder));
        do {
            snprintf(file, sizeof(file), "%s%s/" FILE_NAME, folder, up[i]);
        } while (access(file, R_OK) != 0 && ++i < (int)(sizeof(up) / sizeof(up[0])));
        if (access(file, R_OK) != 0) {
            snprintf(file, sizeof(file), "%s/" FILE_NAME, MODULEDIR);
        }
    }
    if (access(file, R_OK) != 0) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED,
                         "there is no %s: this dtrain was built without SUMO. To use env_sumo, " ADVICE
                         " and g++, then configure and build dtrain again",
                         file);
    }
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "SUMO cannot be loaded: %s; " ADVICE, dlerror());
    }
    sumo_shim_entry entry = NULL;
    *(void **)&entry = dlsym(handle, SUMO_SHIM_ENTRY); /* POSIX's way to a function pointer */
    const sumo_api *api = entry != NULL ? entry() : NULL;
    if (api == NULL || api->struct_size != sizeof(sumo_api) || api->face != SUMO_FACE_VERSION) {
        return DT_FAIL_H(h, DT_EUNSUPPORTED, "%s is not the SUMO module of this dtrain; build both together", file);
    }
    *out = api;
    return DT_OK;
}
