/* SPDX-License-Identifier: Apache-2.0
 *
 * The origins that a run recorded of its values (config.origin.json), so that a resume does not replace all of them by
 * lines of the run's own config.cfg. They are text for people and reports; nothing is decided by them.
 * Threads: one object, one thread.
 */
#ifndef DTRAIN_CORE_CONFIG_ORIGINS_H
#define DTRAIN_CORE_CONFIG_ORIGINS_H

#include "base/str.h"

typedef struct dt_origins {
    struct dt_origin_entry *list;
    size_t n, cap, next; /* next: the entry expected now, because both are in the same order */
} dt_origins;

/* Reads what dt_config_write_origin wrote. Errors: DT_EDATA (out is empty then), DT_ENOMEM. */
dt_status dt_origins_read(const char *json, size_t bytes, dt_origins *out) DT_NODISCARD;
const char *dt_origins_find(dt_origins *o, const char *path); /* NULL: it has none */
void dt_origins_fini(dt_origins *o);

#endif
