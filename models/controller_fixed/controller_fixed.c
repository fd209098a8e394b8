/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_fixed, role controller: signals run the scenario's own program. An environment that can is instructed to
 * let it run, second by second (plugin.h, dtrain.program/1); what this answers is then ignored. In any other, signals
 * are asked at each action for the phase that the program would show then, late by up to one action: controller_rule.h.
 */
#include "controller_rule.h"

static const void *extension(const char *id)
{
    return strcmp(id, DT_EXT_PROGRAM) == 0 ? "" : NULL;
}

RULE_PLUGIN_OF("controller_fixed", "3", "0", "signals by the scenario's own program",
               "none: the program of the scenario, such as Webster 1958", extension);
