/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_max_pressure, role controller: every signal shows the phase with the most pressure, vehicles standing
 * before the junction less those standing where they want to go. It keeps queues bounded whenever any controller can,
 * if the roads have room. How: controller_rule.h.
 */
#include "controller_rule.h"

RULE_PLUGIN("controller_max_pressure", "2", "60", "signals choose the phase that relieves the most pressure",
            "Varaiya 2013, Max pressure control of a network of signalized intersections");
