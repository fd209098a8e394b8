/* SPDX-License-Identifier: Apache-2.0
 *
 * What every bound component begins with; see stage.h.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/fp_mode.h"
#include "base/mem.h"

dt_status dt_component_configure(dt_stage *s, const dt_loaded *c, const dt_setting *over, uint32_t n_over,
                                 void **config, void **self)
{
    *config = dt_alloc(c->desc.config_size > 0 ? c->desc.config_size : 1);
    *self = dt_alloc(c->desc.state_size > 0 ? c->desc.state_size : 1);
    if (*config == NULL || *self == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for component %s", c->desc.id);
    }
    if (c->desc.options != NULL) {
        DT_TRY(dt_config_section(s->d.config, s->d.index, c->desc.id, over, n_over, *config, c->desc.config_size));
        DT_TRY(dt_reject_disabled_options(s, c, *config));
    }
    if (c->desc.check != NULL) {
        dt_status st = DT_OK;
        DT_FP_GUARD(c->desc.id, "check", st = c->desc.check(&s->host, *config));
        if (st < 0) {
            return DT_CONTEXT(st, "checking the options of %s", c->desc.id);
        }
    }
    return DT_OK;
}
