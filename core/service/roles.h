/* SPDX-License-Identifier: Apache-2.0
 *
 * The roles that models play, and sets of them as bits: 1u << DT_ROLE_*. Threads: [any].
 */
#ifndef DTRAIN_CORE_SERVICE_ROLES_H
#define DTRAIN_CORE_SERVICE_ROLES_H

#include <stddef.h>
#include <stdint.h>

enum { DT_ROLE_PERCEPTION, DT_ROLE_WORLD, DT_ROLE_CONTROLLER, DT_ROLE_SHIELD, DT_ROLES };
extern const char *const dt_role_name[DT_ROLES];

/* The role of this name, -1 when there is none. bytes: how much of name counts. */
int dt_role_find(const char *name, size_t bytes);

#endif
