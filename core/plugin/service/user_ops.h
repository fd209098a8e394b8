/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that plugins bring along (dtrain/ext/ops.h), made known to graphs. Threads: [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_SERVICE_USER_OPS_H
#define DTRAIN_CORE_PLUGIN_SERVICE_USER_OPS_H

#include "plugin/loader/loader.h"

/* Those of all loaded plugins and of their components; those already registered stay. Errors: DT_EPLUGIN, such as two
 * of a name. */
dt_status dt_user_ops_register_all(const dt_loader *l) DT_NODISCARD;

#endif
