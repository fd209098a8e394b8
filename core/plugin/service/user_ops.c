/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/service/user_ops.h"

#include "base/err.h"
#include "engine/graph/op_user.h"

typedef struct registering {
    dt_status st;
} registering;

static void register_ops(void *user, const void *table, const dt_loaded_plugin *p, const dt_loaded *component)
{
    registering *r = user;
    for (const dt_user_op *const *op = table; *op != NULL && r->st == DT_OK; op++) {
        r->st = dt_user_op_register(*op, p->desc.name);
    }
}

dt_status dt_user_ops_register_all(const dt_loader *l)
{
    registering r = {DT_OK};
    if (l != NULL) {
        dt_loader_visit_extensions(l, DT_EXT_OPS, register_ops, &r);
    }
    return r.st;
}
