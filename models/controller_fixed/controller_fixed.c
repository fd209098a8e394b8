/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_fixed, role controller: every signal shows what the scenario's own program would show now.
 * How: controller_rule.h.
 */
#include "controller_rule.h"

RULE_PLUGIN("controller_fixed", "3", "signals by the scenario's own program",
            "none: the program of the scenario, such as Webster 1958");
