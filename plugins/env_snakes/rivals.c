/* SPDX-License-Identifier: Apache-2.0 */
#include "rivals.h"

#include <math.h>
#include <string.h>

/* Squared distance on the flat board. */
static int square_distance(uint32_t a, uint32_t b)
{
    const int rows = (int)cells_row(a) - (int)cells_row(b), columns = (int)cells_column(a) - (int)cells_column(b);
    return rows * rows + columns * columns;
}

/* Place of the nearest bean in the list, the first of equals; n >= 1. */
static uint32_t nearest_bean(uint32_t head, const uint8_t *bean, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++) {
        best = square_distance(head, bean[i]) < square_distance(head, bean[best]) ? i : best;
    }
    return best;
}

typedef struct view { /* what a snake looks at */
    uint32_t next[CELLS_DIRECTIONS];
    int square[CELLS_DIRECTIONS];
    bool blocked[CELLS_DIRECTIONS];
    uint32_t n_blocked, length;
} view;

static view make_view(const board *b, uint32_t snake, uint32_t bean)
{
    const board_snake *s = &b->snake[snake];
    view v = {.length = s->length};
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        v.next[d] = cells_neighbour(board_head(s), d);
        v.square[d] = square_distance(v.next[d], bean);
        v.blocked[d] = cells_has(&b->taken, v.next[d]);
        v.n_blocked += v.blocked[d];
    }
    return v;
}

static uint8_t least_score(const double score[CELLS_DIRECTIONS])
{
    uint32_t best = 0;
    for (uint32_t d = 1; d < CELLS_DIRECTIONS; d++) {
        best = score[d] < score[best] ? d : best;
    }
    return (uint8_t)best;
}

/* The nearest to the bean of those that `allowed` has; up where it has none. Squares have the order of roots. */
static uint8_t least_allowed(const view *v, const bool allowed[CELLS_DIRECTIONS])
{
    uint32_t best = CELLS_DIRECTIONS;
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        if (allowed[d] && (best == CELLS_DIRECTIONS || v->square[d] < v->square[best])) {
            best = d;
        }
    }
    return (uint8_t)(best % CELLS_DIRECTIONS);
}

static uint8_t act_free(const view *v)
{
    bool allowed[CELLS_DIRECTIONS];
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        allowed[d] = !v->blocked[d];
    }
    return least_allowed(v, allowed);
}

static uint8_t act_blind(const view *v)
{
    static const bool all[CELLS_DIRECTIONS] = {true, true, true, true};
    return least_allowed(v, all);
}

/* In the arithmetic of the source, whose rounding decides between equals. */
static uint8_t act_l3(const view *v)
{
    double score[CELLS_DIRECTIONS];
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        const double risk = (v->blocked[d] ? 10.0 : 0.0) + 2.0 * v->n_blocked;
        score[d] = sqrt(v->square[d]) + 0.5 * risk;
    }
    return least_score(score);
}

static uint8_t act_l4(const view *v)
{
    const double free_one = 1.0 - v->length / 20.0, boldness = free_one > 0.3 ? free_one : 0.3;
    double score[CELLS_DIRECTIONS];
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        const double siege = 5.0 * v->n_blocked;
        score[d] = v->blocked[d] ? 1000.0 : sqrt(v->square[d]) * boldness + siege * (1.0 - boldness);
    }
    return least_score(score);
}

/* A cell two steps away counts for the first direction that leads there. */
static uint8_t act_evasion(const board *b, const view *v)
{
    cells seen = b->taken;
    bool allowed[CELLS_DIRECTIONS] = {false};
    bool is_any = false;
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        for (uint32_t e = 0; e < CELLS_DIRECTIONS && !v->blocked[d]; e++) {
            const uint32_t c = cells_neighbour(v->next[d], e);
            if (!cells_has(&seen, c)) {
                cells_add(&seen, c);
                is_any = allowed[d] = true;
            }
        }
    }
    return is_any ? least_allowed(v, allowed) : act_blind(v);
}

static uint8_t act_by_rule(uint32_t rule, const board *b, const view *v)
{
    switch (rule) {
    case RIVAL_L1:
        return act_blind(v);
    case RIVAL_L2:
        return act_free(v);
    case RIVAL_L3:
        return act_l3(v);
    case RIVAL_L4:
        return act_l4(v);
    default:
        return act_evasion(b, v);
    }
}

void rival_act(uint32_t rule, const board *b, uint32_t team, dt_random *r, uint8_t action[BOARD_TEAM])
{
    uint8_t bean[BOARD_BEANS];
    uint32_t n = b->n_beans;
    memcpy(bean, b->bean, sizeof(bean));
    for (uint32_t i = 0; i < BOARD_TEAM; i++) {
        const uint32_t snake = team * BOARD_TEAM + i;
        if (rule == RIVAL_RANDOM) {
            action[i] = (uint8_t)dt_random_below(r, CELLS_DIRECTIONS);
            continue;
        }
        const uint32_t k = nearest_bean(board_head(&b->snake[snake]), bean, n);
        const view v = make_view(b, snake, bean[k]);
        action[i] = act_by_rule(rule, b, &v);
        if (rule == RIVAL_L2) { /* its bean is its own */
            n--;
            memmove(bean + k, bean + k + 1, n - k);
        }
    }
}
