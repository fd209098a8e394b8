/* SPDX-License-Identifier: Apache-2.0
 *
 * The dt_host table without services: errors, log and memory, for init of plugins and for checks; services.c adds the
 * services of a stage.
 */
#include <config.h>

#include "plugin/service/plugin_memory.h"
#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/log.h"

#include <string.h>

/* A message that is NULL is none: the reader gets the text of the code. */
static dt_status host_fail(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    msg = msg != NULL ? msg : "";
    if (where == NULL) {
        return dt_fail(st, "plugin", 0, "%s", msg);
    }
    char file[128];
    const char *colon = strrchr(where, ':');
    const size_t n = colon != NULL ? (size_t)(colon - where) : strlen(where);
    memset(file, 0, sizeof(file));
    memcpy(file, where, n < sizeof(file) ? n : sizeof(file) - 1);
    int64_t line = 0;
    if (colon == NULL || !dt_parse_i64(colon + 1, &line)) {
        line = 0;
    }
    return dt_fail(st, file, (int)line, "%s", msg);
}

static void host_log(const dt_host *h, int32_t level, const char *msg)
{
    dt_log(level, "%s", msg != NULL ? msg : "");
}

static void *host_alloc(const dt_host *h, uint64_t bytes)
{
    return dt_plugin_alloc(bytes);
}

static void host_release(const dt_host *h, void *p)
{
    dt_plugin_release(p);
}

/* None of the host's; those of plugins that are linked in need nothing of a phase. */
static const void *plugin_service(const dt_host *h, const char *id)
{
    return id != NULL ? dt_loader_find_service(NULL, id) : NULL;
}

void dt_host_init(dt_host *h)
{
    *h = (dt_host){.struct_size = sizeof(dt_host),
                   .abi_major = DT_ABI_MAJOR,
                   .abi_minor = DT_ABI_MINOR,
                   .fail = host_fail,
                   .log = host_log,
                   .alloc = host_alloc,
                   .release = host_release,
                   .service = plugin_service};
}
