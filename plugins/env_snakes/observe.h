/* SPDX-License-Identifier: Apache-2.0
 *
 * What a snake of env_snakes is shown: one row of numbers, of one of four kinds. "Own" is its team, whichever of the
 * two that is: the three own snakes have the numbers 2 to 4, the others 5 to 7, as the sources number the first team.
 *
 *   numbers26   head (row, column); the four cells around it, up, down, left, right, as 0 free, 1 bean or a number of
 *               a snake; rows and columns of the five beans; of the five other heads. All as they are on the flat
 *               board (jidiai/Competition_3v3snakes, rl_trainer/common.py)
 *   numbers30   head; the four cells; of the two nearest beans columns, rows and distance on the torus; threat by the
 *               first two other snakes, length / (3 (distance + 1)); five beans; 0 0; the first two other heads
 *               (zhizhengzhao/snake at 9e815fb)
 *   planes      a window of the torus around the own head, row by row, 6 planes: own body, bodies of the team, of the
 *               others, heads of the team, of the others, beans; then 9 numbers of the game, below
 *   paths       for each of the four directions 9 numbers of what a step there leads to, below; the two nearest beans
 *               (rows, columns) / 10; then the 9 numbers of the game
 *
 * The game: heading (4), own length / 20, lead of the team / 20, share of the time that is left, lengths of the longest
 * of the team and of the others / 20.
 * A direction: blocked; tail (of those blocked: it leaves unless its snake eats); bean; heads of the team and of the
 * others that could step there too; 1 / (1 + steps) to the nearest bean around obstacles, and to the nearest one that
 * no other snake reaches as soon; share of the board that can be reached from there; 1 where that is less than the own
 * length.
 *
 * All numbers are exact functions of the board. Threads: [any].
 */
#ifndef DTRAIN_PLUGINS_ENV_SNAKES_OBSERVE_H
#define DTRAIN_PLUGINS_ENV_SNAKES_OBSERVE_H

#include "board.h"
#include "dtrain/plugin.h"

enum { OBSERVE_26, OBSERVE_30, OBSERVE_PLANES, OBSERVE_PATHS };
enum { OBSERVE_N_PLANES = 6, OBSERVE_GAME = 9, OBSERVE_DIRECTION = 9 };

typedef struct observe_kind {
    uint32_t kind, rows, columns; /* of the window of planes */
    uint32_t max_steps;
} observe_kind;

/* Numbers of a row. */
uint32_t observe_width(const observe_kind *k);
/* What they are, for people; returns how many. */
enum { OBSERVE_MOST_COLUMNS = 16 };
uint32_t observe_describe(const observe_kind *k, dt_column *out);
/* Rows of the three snakes of a team: [3, width], zero before. */
void observe_team(const observe_kind *k, const board *b, uint32_t team, float *out);
/* Euclidean distance on the torus from a cell to the nearest bean; 0 where there is none. */
double observe_bean_distance(const board *b, uint32_t cell);

#endif
