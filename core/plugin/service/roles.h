/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of roles that models play, by name: those of the host, and whatever else a phase wires; ports by name. Threads:
 * [any].
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_ROLES_H
#define DTRAIN_CORE_PLUGIN_SERVICE_ROLES_H

#include "dtrain/plugin.h"

#include <stdbool.h>
#include <stdint.h>

enum { DT_ROLES_MAX = 32, DT_ROLE_BYTES = 64 };

typedef struct dt_roles { /* copied as it is */
    uint32_t n;
    char name[DT_ROLES_MAX][DT_ROLE_BYTES];
} dt_roles;

/* Each is there once. Errors: DT_EDATA, too many, or too long a name. */
dt_status dt_roles_add(dt_roles *r, const char *name) DT_NODISCARD;
void dt_roles_remove(dt_roles *r, const char *name);
bool dt_roles_contain(const dt_roles *r, const char *name);

bool dt_role_is_listed(const char *const *list, const char *name); /* list: ends with NULL, or NULL */
bool dt_tensor_has_role(const char *tensor, const char *role);     /* is it "<role>.<parameter>"? */

const dt_port *dt_port_find(const dt_port *p, uint32_t n, const char *name); /* NULL when there is none */

#endif
