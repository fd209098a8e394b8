/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rule plays the other team of env_snakes in an episode of a training. Progress p is the number of the episode
 * within its instance over a number of them, at most 1; an environment knows nothing else of how far a training is.
 *
 *   fixed        always the same
 *   linear       level floor(4 p) of random, l1, l2, l3, l4
 *   exponential  level floor(4 p^1.5) of the same
 *   curriculum   by measured strength: random up to p = .1, l1 to .3, l3 to .45, l4 to .6, evasion to .85, then l2
 *
 * and evasion from a given episode on, whatever the rest specifies. Source of the first three and of the thresholds:
 * zhizhengzhao/snake (MIT) at 9e815fb, get_opponent_difficulty, whose own curriculum goes random, l1, l2, l3, l4: not
 * in the order of strength, since l2 is the strongest. Threads: [any].
 */
#ifndef DTRAIN_PLUGINS_ENV_SNAKES_SCHEDULE_H
#define DTRAIN_PLUGINS_ENV_SNAKES_SCHEDULE_H

#include "rivals.h"

enum { SCHEDULE_FIXED, SCHEDULE_LINEAR, SCHEDULE_EXPONENTIAL, SCHEDULE_CURRICULUM };

typedef struct schedule {
    uint32_t kind, rule;  /* rule: of fixed */
    uint64_t episodes;    /* until p is 1, at least 1 */
    int64_t evasion_from; /* -1: never */
} schedule;

uint32_t schedule_rule(const schedule *s, uint64_t episode);

#endif
