/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "engine/device/open.h"

#include "base/err.h"
#include "base/log.h"
#include "base/module.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what was asked for ------------------------------------------------------------------------------------------ */

dt_status dt_device_selector_parse(const char *text, dt_device_selector *out_p)
{
    dt_device_selector w = {.kind = DT_DEVICE_CUDA, .index = -1};
    int64_t index = 0;
    if (strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0) {
        w.kind = text[0] == 'a' ? DT_DEVICE_AUTO : DT_DEVICE_CPU;
    } else if (strncmp(text, "cuda:GPU-", 9) == 0 && strlen(text + 5) < sizeof(w.uuid)) {
        memcpy(w.uuid, text + 5, strlen(text + 5));
    } else if (strncmp(text, "cuda:", 5) == 0 && dt_parse_i64(text + 5, &index) && index >= 0 && index < 1024) {
        w.index = (int32_t)index;
    } else if (strcmp(text, "cuda") != 0) {
        return DT_FAIL(DT_ECONFIG,
                       "device \"%s\" is not known; use auto, cpu, cuda, cuda:N (N from 0) or cuda:GPU-<uuid>", text);
    }
    *out_p = w;
    return DT_OK;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static const dt_device_host host_table = {.struct_size = sizeof(host_table), .fail = dt_fail, .log = dt_log};

enum { NAME_BYTES = 64 };

/* file and build: room for its names. */
static dt_module_desc describe_module(const char *name, char file[NAME_BYTES], char build[NAME_BYTES])
{
    snprintf(file, NAME_BYTES, "backend_%s.so", name);
    snprintf(build, NAME_BYTES, "core/engine/backend/%s", name);
    return (dt_module_desc){
        .file = file,
        .build = build,
        .entry = DT_DEVICE_MODULE_ENTRY,
        .what = name,
        .if_none = "build it with the CUDA toolkit installed (configure --with-cuda), or use --device cpu",
        .if_wrong = "make the libraries of the CUDA toolkit known (LD_LIBRARY_PATH, or ldconfig), or use --device cpu"};
}

bool dt_device_module_exists(const char *name)
{
    char file[NAME_BYTES], build[NAME_BYTES];
    const dt_module_desc d = describe_module(name, file, build);
    return dt_module_exists(&d);
}

dt_status dt_device_module_open(const char *name, const dt_device_ops **out_p)
{
    char file[NAME_BYTES], build[NAME_BYTES];
    const dt_module_desc d = describe_module(name, file, build);
    dt_device_module_fn *entry = NULL;
    DT_TRY(dt_module_open(&d, (void **)(void *)&entry));
    const dt_device_ops *ops = entry(&host_table);
    if (ops == NULL || ops->version != DT_DEVICE_VERSION || ops->struct_size != sizeof(*ops)) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s belongs to another build of dtrain (version %u, this program expects %d)",
                       file, ops != NULL ? ops->version : 0, DT_DEVICE_VERSION);
    }
    *out_p = ops;
    return DT_OK;
}

/* ---- this process ------------------------------------------------------------------------------------------------ */

bool dt_device_driver_exists(void)
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

static dt_status fail_unknown_uuid(const dt_device_ops *ops, const char *uuid, uint32_t n)
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

dt_status dt_device_select(const dt_device_ops *ops, const dt_device_selector *w, uint32_t local_rank,
                           uint32_t *index_p)
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
        return fail_unknown_uuid(ops, w->uuid, n);
    }
    if (w->index >= 0 && (uint32_t)w->index >= n) {
        return DT_FAIL(DT_EUNSUPPORTED, "there is no GPU %d: this process sees %u, numbered from 0", w->index, n);
    }
    *index_p = w->index >= 0 ? (uint32_t)w->index : local_rank % n;
    return DT_OK;
}
