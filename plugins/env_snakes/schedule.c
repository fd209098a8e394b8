/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include <math.h>

static uint32_t level_of_strength(double p)
{
    static const uint32_t rule[] = {RIVAL_RANDOM, RIVAL_L1, RIVAL_L2, RIVAL_L3, RIVAL_L4};
    return rule[(uint32_t)(4 * p)];
}

static uint32_t rule_by_strength(double p)
{
    static const struct {
        double until;
        uint32_t rule;
    } stage[] = {{0.1, RIVAL_RANDOM}, {0.3, RIVAL_L1}, {0.45, RIVAL_L3}, {0.6, RIVAL_L4}, {0.85, RIVAL_EVASION}};
    for (uint32_t i = 0; i < sizeof(stage) / sizeof(stage[0]); i++) {
        if (p < stage[i].until) {
            return stage[i].rule;
        }
    }
    return RIVAL_L2;
}

uint32_t schedule_rule(const schedule *s, uint64_t episode)
{
    const double p = episode < s->episodes ? (double)episode / (double)s->episodes : 1.0;
    if (s->evasion_from >= 0 && episode >= (uint64_t)s->evasion_from) {
        return RIVAL_EVASION;
    }
    switch (s->kind) {
    case SCHEDULE_LINEAR:
        return level_of_strength(p);
    case SCHEDULE_EXPONENTIAL:
        return level_of_strength(p * sqrt(p));
    case SCHEDULE_CURRICULUM:
        return rule_by_strength(p);
    default:
        return s->rule;
    }
}
