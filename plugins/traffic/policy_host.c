/* SPDX-License-Identifier: Apache-2.0
 *
 * dt_policy_host of dtrain/policy.h: the table that an environment plugin gets from a program that drives it.
 */
#include <config.h>

#include "dtrain/policy.h"

#include "base/err.h"
#include "base/mem.h"
#include "traffic/features/features.h"

#include <stdio.h>
#include <string.h>

static dt_status host_fail(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    return dt_fail(st, where != NULL ? where : "plugin", 0, "%s", msg != NULL ? msg : "");
}

static void host_log(const dt_host *h, int32_t level, const char *msg)
{
    if (level <= 1) {
        fprintf(stderr, "%s: %s\n", level == 0 ? "error" : "warning", msg != NULL ? msg : "");
    }
}

static void *host_alloc(const dt_host *h, uint64_t bytes)
{
    return dt_alloc(bytes);
}

static void host_release(const dt_host *h, void *p)
{
    dt_free(p);
}

static const void *host_service(const dt_host *h, const char *id)
{
    return strcmp(id, DT_SVC_FEATURES) == 0 ? &dt_features_service : NULL;
}

const dt_host *dt_policy_host(void)
{
    static const dt_host host = {.struct_size = sizeof(dt_host),
                                 .abi_major = DT_ABI_MAJOR,
                                 .abi_minor = DT_ABI_MINOR,
                                 .fail = host_fail,
                                 .log = host_log,
                                 .alloc = host_alloc,
                                 .release = host_release,
                                 .service = host_service};
    return &host;
}

const char *dt_policy_host_error(void)
{
    return dt_error_text();
}
