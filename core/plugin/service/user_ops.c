/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/service/user_ops.h"

#include "base/err.h"
#include "engine/graph/op_user.h"

dt_status dt_user_ops_register(const dt_loaded_plugin *p)
{
    const dt_user_op *const *ops = p->desc.extension != NULL ? p->desc.extension(DT_EXT_OPS) : NULL;
    for (; ops != NULL && *ops != NULL; ops++) {
        DT_TRY(dt_user_op_register(*ops, p->desc.name));
    }
    return DT_OK;
}

dt_status dt_user_ops_register_all(const dt_loader *l)
{
    for (uint32_t i = 0; l != NULL && i < dt_loader_count_plugins(l); i++) {
        DT_TRY(dt_user_ops_register(dt_loader_plugin_at(l, i)));
    }
    return DT_OK;
}
