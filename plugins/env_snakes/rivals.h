/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules that play a team of env_snakes, as the sources have them. All run for the nearest bean by the distance on the
 * flat board, blind to what is across an edge, and score the four cells around a head; a cell is blocked where any
 * snake is, also one whose tail is about to leave.
 *
 *   random    any of the four actions
 *   l1        the cell nearest to the bean, blocked or not
 *   l2        the same among those that are not blocked; snakes of a team choose different beans, in their order
 *             ("greedy")
 *   l3        least distance + (10 blocked + 2 blocked neighbours of the head) / 2
 *   l4        least distance * a + 5 blocked neighbours * (1 - a) of those not blocked, a = max(0.3, 1 - length / 20)
 *   evasion   the cell nearest to the bean among those from which a second step is possible
 *
 * The second terms of l3 and l4 are the same for all four cells, a slip of the source that is kept: they add rounding
 * errors and nothing else. Of equals the first wins, up, down, left, right.
 *
 * Sources: l2 jidiai/Competition_3v3snakes (MIT), rl_trainer/common.py, greedy_snake; the others zhizhengzhao/snake
 * (MIT) at 9e815fb, the same file, rewritten. Threads: [any].
 */
#ifndef DTRAIN_PLUGINS_ENV_SNAKES_RIVALS_H
#define DTRAIN_PLUGINS_ENV_SNAKES_RIVALS_H

#include "board.h"

enum { RIVAL_RANDOM, RIVAL_L1, RIVAL_L2, RIVAL_L3, RIVAL_L4, RIVAL_EVASION, RIVALS };

/* What the team does next; the game is not over. r: of random alone. */
void rival_act(uint32_t rule, const board *b, uint32_t team, dt_random *r, uint8_t action[BOARD_TEAM]);

#endif
