/* SPDX-License-Identifier: Apache-2.0
 *
 * dt_policy_host of dtrain/policy.h: the table that an environment plugin gets from a program that drives it.
 */
#include <config.h>

#include "dtrain/policy.h"

#include "base/err.h"
#include "base/mem.h"
#include "data/features.h"

#include <stdio.h>
#include <string.h>

static dt_status host_fail(const dt_host *h, dt_status st, const char *where, const char *msg)
{
    (void)h;
    return dt_fail(st, where != NULL ? where : "plugin", 0, "%s", msg);
}

static void host_log(const dt_host *h, int32_t level, const char *msg)
{
    (void)h;
    if (level <= 1) {
        fprintf(stderr, "%s: %s\n", level == 0 ? "error" : "warning", msg);
    }
}

static void *host_alloc(const dt_host *h, uint64_t bytes)
{
    (void)h;
    return dt_alloc(bytes);
}

static void host_release(const dt_host *h, void *p)
{
    (void)h;
    dt_free(p);
}

static dt_status features_frame(const dt_host *h, const dt_vehicle *v, uint32_t n, double radius_m, uint32_t k_max,
                                float *node, int32_t *rowptr, int32_t *col, float *edge)
{
    (void)h;
    return dt_features_frame(NULL, v, n, radius_m, k_max, node, rowptr, col, edge, NULL);
}

static const dt_features_api features = {.struct_size = sizeof(dt_features_api), .frame = features_frame};

static const void *host_service(const dt_host *h, const char *id)
{
    (void)h;
    return strcmp(id, DT_SVC_FEATURES) == 0 ? &features : NULL;
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
