/* SPDX-License-Identifier: Apache-2.0
 *
 * The game of env_snakes by its exact rules: two teams of three snakes and five beans on a torus of 10 x 20 cells. It
 * knows nothing of rewards, observations or hosts.
 *
 * A step, in the order of the snakes:
 *   turn     an action opposite to the heading becomes one of the three others at random
 *   move     the head advances; a bean under it is eaten at once (of two heads on one bean that of the lower number
 *            eats), otherwise the tail leaves
 * then for all at once: whose head shares its cell with any other segment dies, of any snake; the dead are
 * removed, and come back in their order; beans are laid on random free cells until there are five again.
 *
 * A snake comes back by a scan, not by chance: on the first cell, row by row, that belongs to three or more connected
 * free ones, and on two more as a breadth-first search finds them (right, down, up, left). Its segments need not be in
 * a row: of a cell between two others the head is the middle one, and a body across the edge can lie before its own
 * head. Where there is no room the game is over.
 *
 * Source: the rules of the 3v3 snakes of jidiai/Competition_3v3snakes (MIT), env/snakes.py, rewritten; tests replay
 * recorded games of it step by step. Threads: as its owner.
 */
#ifndef DTRAIN_PLUGINS_ENV_SNAKES_BOARD_H
#define DTRAIN_PLUGINS_ENV_SNAKES_BOARD_H

#include "cells.h"
#include "dtrain/random.h"

enum { BOARD_SNAKES = 6, BOARD_TEAM = 3, BOARD_BEANS = 5, BOARD_LENGTH = 3, BOARD_RING = 256 };

typedef struct board_snake {
    uint8_t cell[BOARD_RING]; /* segment k is cell[(head + k) mod 256]: a ring longer than the board */
    uint8_t head, direction;
    uint16_t length; /* 0: there was no room for it */
} board_snake;

typedef struct board {
    board_snake snake[BOARD_SNAKES]; /* the first three are team 0 */
    cells taken, beans;              /* cells of all segments; of beans */
    uint8_t bean[BOARD_BEANS];       /* in the order in which they were laid: rules of opponents look at the first */
    uint32_t n_beans, step, reserved;
    int32_t score[BOARD_SNAKES]; /* what a snake earned so far */
    int32_t
        reward[BOARD_SNAKES];   /* of the last step: 1 eaten, and what it had grown is lost by death; at most 0 then */
    uint8_t died, ate;          /* in the last step: bit i is snake i */
    uint8_t is_over, reserved2; /* a snake found no room, or the board is full */
    dt_random random;
} board;

/* Chance as a record has it, in the place of random numbers. */
typedef struct board_fate {
    const uint8_t *direction; /* [6] where each snake turns to, after a replaced action */
    const uint8_t *bean;      /* [n_beans] laid in this step */
    uint32_t n_beans;
} board_fate;

static inline uint32_t board_segment(const board_snake *s, uint32_t k)
{
    return s->cell[(uint8_t)(s->head + k)];
}

static inline uint32_t board_head(const board_snake *s)
{
    return s->cell[s->head];
}

/* What a team's snakes earned. */
static inline int32_t board_team_score(const board *b, uint32_t team)
{
    const int32_t *s = b->score + team * BOARD_TEAM;
    return s[0] + s[1] + s[2];
}

/* A new game: straight snakes of three at random, beans. */
void board_begin(board *b, uint64_t seed);
/* action: [6], directions. fate NULL: by random numbers. */
void board_step(board *b, const uint8_t *action, const board_fate *fate);
/* The cells of a snake from its head on; for boards that are set up rather than played. Cells that others have are
 * counted twice: the caller's mistake. */
void board_place(board *b, uint32_t snake, const uint8_t *cell, uint32_t n, uint32_t direction);
void board_add_bean(board *b, uint32_t cell);

#endif
