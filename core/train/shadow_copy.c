/* SPDX-License-Identifier: Apache-2.0
 *
 * Shadows that become their models because somebody asks for it; shadow.c moves them by their rules.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/str.h"

#include <string.h>

static dt_status check_name(const dt_param_table *table, const char *name)
{
    dt_str all = {0};
    for (uint32_t i = 0; i < table->n_shadows; i++) {
        if (strcmp(table->shadow[i].name, name) == 0) {
            dt_str_fini(&all);
            return DT_OK;
        }
        dt_str_addf(&all, "%s%s", i > 0 ? ", " : "", table->shadow[i].name);
    }
    const dt_status st = DT_FAIL(DT_EINVAL, "there is no target network \"%s\"; there %s%s", name,
                                 all.bytes > 0 ? "are " : "is none", dt_str_text(&all));
    dt_str_fini(&all);
    return st;
}

dt_status dt_trainer_copy_to_targets(dt_trainer *t, const char *name)
{
    DT_TRY(name != NULL ? check_name(t->d.params, name) : DT_OK);
    if (t->d.params->n_shadows == 0) {
        return DT_OK;
    }
    DT_TRY(dt_trainer_synchronize(t));
    dt_param_table_copy_shadows(t->d.params, name, t->state.params);
    t->state.params_version++;
    return DT_OK;
}
