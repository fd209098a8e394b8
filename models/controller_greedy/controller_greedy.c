/* SPDX-License-Identifier: Apache-2.0
 *
 * controller_greedy, role controller: every signal shows the phase that gives green to the most vehicles near the stop
 * line; where the environment does not count these, to the most vehicles it sees. How: controller_rule.h.
 */
#include "controller_rule.h"

RULE_PLUGIN("controller_greedy", "5", "60", "signals choose the phase that serves the most vehicles",
            "Ault & Sharon 2021 (RESCO: max wave, vehicles within 50 m)");
