/* SPDX-License-Identifier: Apache-2.0
 *
 * See open.h.
 */
#include <config.h>

#include "device/open.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* ---- what was asked for ------------------------------------------------------------------------------------------ */

dt_status dt_device_wish_parse(const char *text, dt_device_wish *out_p)
{
    dt_device_wish w = {.kind = DT_DEVICE_CUDA, .index = -1};
    int64_t index = 0;
    if (strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0) {
        w.kind = text[0] == 'a' ? DT_DEVICE_AUTO : DT_DEVICE_CPU;
    } else if (strncmp(text, "cuda:GPU-", 9) == 0 && strlen(text + 5) < sizeof(w.uuid)) {
        memcpy(w.uuid, text + 5, strlen(text + 5));
    } else if (strncmp(text, "cuda:", 5) == 0 && dt_parse_i64(text + 5, &index) && index >= 0 && index < 1024) {
        w.index = (int32_t)index;
    } else if (strcmp(text, "cuda") != 0) {
        return DT_FAIL(DT_ECONFIG,
                       "device \"%s\" is not known; say auto, cpu, cuda, cuda:N (N from 0) or cuda:GPU-<uuid>", text);
    }
    *out_p = w;
    return DT_OK;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static const dt_device_host host_table = {.struct_size = sizeof(host_table), .fail = dt_fail, .log = dt_log};

static bool try_path(const char *path, dt_str *tried)
{
    if (access(path, F_OK) == 0) {
        return true;
    }
    dt_str_addf(tried, "%s%s", tried->bytes > 0 ? ", " : "", path);
    return false;
}

/* Tests run below the build tree, at most two folders deep. */
static bool find_in_build(const char *dir, const char *name, char *path, size_t bytes, dt_str *tried)
{
    static const char *const up[] = {"", "/..", "/../.."};
    for (size_t i = 0; i < sizeof(up) / sizeof(up[0]); i++) {
        snprintf(path, bytes, "%s%s/core/backend/%s/.libs/backend_%s.so", dir, up[i], name, name);
        if (access(path, F_OK) == 0) {
            return true;
        }
    }
    snprintf(path, bytes, "%s/../lib/dtrain/backend_%s.so", dir, name);
    return try_path(path, tried);
}

static bool find_module(const char *name, char *path, size_t bytes, dt_str *tried)
{
    const char *p = getenv("DTRAIN_PLUGIN_PATH");
    while (p != NULL && *p != '\0') {
        const size_t n = strcspn(p, ":");
        snprintf(path, bytes, "%.*s/backend_%s.so", (int)n, p, name);
        if (n > 0 && try_path(path, tried)) {
            return true;
        }
        p += n + (p[n] == ':');
    }
    dt_str dir = {0};
    const bool is_near = dt_fs_program_dir(&dir) == DT_OK && find_in_build(dt_str_text(&dir), name, path, bytes, tried);
    dt_str_fini(&dir);
    if (is_near) {
        return true;
    }
    snprintf(path, bytes, "%s/backend_%s.so", DTRAIN_PLUGINDIR, name);
    return try_path(path, tried);
}

static dt_status not_installed(const char *name, const dt_str *tried)
{
    return DT_FAIL(DT_EUNSUPPORTED,
                   "this dtrain has no module for %s (no %s); build it where the CUDA toolkit is (configure "
                   "--with-cuda), or say --device cpu",
                   name, dt_str_text(tried));
}

dt_status dt_device_module_open(const char *name, const dt_device_ops **out_p)
{
    char path[PATH_BYTES];
    dt_str tried = {0};
    if (!find_module(name, path, sizeof(path), &tried)) {
        const dt_status st = not_installed(name, &tried);
        dt_str_fini(&tried);
        return st;
    }
    dt_str_fini(&tried);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "%s cannot be loaded: %s; make the libraries of the CUDA toolkit known (LD_LIBRARY_PATH, or "
                       "ldconfig), or say --device cpu",
                       path, dlerror());
    }
    dt_device_module_fn *entry = NULL;
    *(void **)(void *)&entry = dlsym(module, DT_DEVICE_MODULE_ENTRY);
    const dt_device_ops *ops = entry != NULL ? entry(&host_table) : NULL;
    if (ops == NULL || ops->version != DT_DEVICE_VERSION || ops->struct_size != sizeof(*ops)) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s belongs to another build of dtrain (version %u, this program wants %d)",
                       path, ops != NULL ? ops->version : 0, DT_DEVICE_VERSION);
    }
    *out_p = ops;
    return DT_OK;
}

/* ---- this process ------------------------------------------------------------------------------------------------ */

bool dt_device_driver_is_there(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

uint32_t dt_device_local_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "SLURM_LOCALID"};
    int64_t rank = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);
        if (text != NULL && dt_parse_i64(text, &rank) && rank >= 0 && rank < 4096) {
            return (uint32_t)rank;
        }
    }
    return 0;
}

/* ---- choice ------------------------------------------------------------------------------------------------------ */

void dt_device_info_text(const dt_device_info *i, dt_str *out)
{
    dt_str_addf(out, "%s, %.1f GiB, sm_%u%u, %s", i->name, (double)i->total_bytes / 0x1p30, i->major, i->minor,
                i->uuid);
}

static dt_status no_such_uuid(const dt_device_ops *ops, const char *uuid, uint32_t n)
{
    dt_str have = {0};
    for (uint32_t i = 0; i < n; i++) {
        dt_device_info info;
        DT_TRY(ops->describe(i, &info));
        dt_str_addf(&have, "%s%s", i > 0 ? ", " : "", info.uuid);
    }
    const dt_status st = DT_FAIL(DT_EUNSUPPORTED, "no visible GPU has a UUID that begins with %s; there %s %s", uuid,
                                 n == 1 ? "is" : "are", dt_str_text(&have));
    dt_str_fini(&have);
    return st;
}

dt_status dt_device_choose(const dt_device_ops *ops, const dt_device_wish *w, uint32_t local_rank, uint32_t *index_p)
{
    uint32_t n = 0;
    DT_TRY(ops->count(&n));
    if (w->uuid[0] != '\0') {
        for (uint32_t i = 0; i < n; i++) {
            dt_device_info info;
            DT_TRY(ops->describe(i, &info));
            if (strncmp(info.uuid, w->uuid, strlen(w->uuid)) == 0) {
                *index_p = i;
                return DT_OK;
            }
        }
        return no_such_uuid(ops, w->uuid, n);
    }
    if (w->index >= 0 && (uint32_t)w->index >= n) {
        return DT_FAIL(DT_EUNSUPPORTED, "there is no GPU %d: this process sees %u, numbered from 0", w->index, n);
    }
    *index_p = w->index >= 0 ? (uint32_t)w->index : local_rank % n;
    return DT_OK;
}
