/* SPDX-License-Identifier: Apache-2.0
 *
 * What every bound component begins with; see stage.h.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/plugin_call.h"
#include "base/mem.h"
#include "base/name.h"
#include "engine/tensor/port.h"

dt_status dt_stage_check_ports(const dt_stage *s, const char *what, const dt_port *p, uint32_t n)
{
    return dt_ports_check(DT_EPLUGIN, s->d.phase->desc.id, what, p, n, false);
}

dt_status dt_settings_check(const char *who, const dt_setting *set, uint32_t n)
{
    enum { MOST_VALUE = 4095 };
    if (set == NULL && n > 0) {
        return DT_FAIL(DT_EPLUGIN, "%s sets %u options, but their list is NULL; pass the list, or 0 of them", who, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, set[i].key, "%s: option %u that it sets", who,
                             i));
        DT_TRY(dt_text_check(DT_EPLUGIN, MOST_VALUE, set[i].value, "%s: the value that it sets for option %s", who,
                             set[i].key));
    }
    return DT_OK;
}

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
        DT_CALL_PLUGIN(st, c->desc.id, "check", c->desc.check(&s->host, *config));
        if (st < 0) {
            return DT_CONTEXT(st, "checking the options of %s", c->desc.id);
        }
    }
    return DT_OK;
}
