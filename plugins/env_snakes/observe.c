/* SPDX-License-Identifier: Apache-2.0 */
#include "observe.h"

#include <math.h>
#include <string.h>

enum { NO_WAY = 255 };

/* A snake as the team sees it: 0 to 2 are its own. */
static uint32_t relative_snake(uint32_t team, uint32_t snake)
{
    return (snake + BOARD_TEAM * team) % BOARD_SNAKES;
}

static double torus_distance_squared(uint32_t a, uint32_t b)
{
    const int rows = cells_rows_to(a, b), columns = cells_columns_to(a, b);
    return (double)(rows * rows + columns * columns);
}

double observe_bean_distance(const board *b, uint32_t cell)
{
    double least = b->n_beans > 0 ? INFINITY : 0;
    for (uint32_t i = 0; i < b->n_beans; i++) {
        least = fmin(least, torus_distance_squared(cell, b->bean[i]));
    }
    return sqrt(least);
}

/* ---- numbers of the sources -------------------------------------------------------------------------------------- */

/* 0 free, 1 bean, else 2 + the snake as the team sees it */
static float cell_number(const board *b, uint32_t team, uint32_t cell)
{
    if (cells_has(&b->beans, cell)) {
        return 1;
    }
    for (uint32_t i = 0; i < BOARD_SNAKES && cells_has(&b->taken, cell); i++) {
        for (uint32_t k = 0; k < b->snake[i].length; k++) {
            if (board_segment(&b->snake[i], k) == cell) {
                return (float)(2 + relative_snake(team, i));
            }
        }
    }
    return 0;
}

static float *add_cell(float *at, uint32_t cell)
{
    at[0] = (float)cells_row(cell);
    at[1] = (float)cells_column(cell);
    return at + 2;
}

/* Own head and what is around it. */
static float *add_head(const board *b, uint32_t snake, float *at)
{
    const uint32_t head = board_head(&b->snake[snake]), team = snake / BOARD_TEAM;
    at = add_cell(at, head);
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        *at++ = cell_number(b, team, cells_neighbour(head, d));
    }
    return at;
}

static float *add_beans(const board *b, float *at)
{
    for (uint32_t i = 0; i < b->n_beans; i++) {
        (void)add_cell(at + 2 * (size_t)i, b->bean[i]);
    }
    return at + 2 * (size_t)BOARD_BEANS;
}

/* The first n other snakes in the order in which the team sees them. */
static uint32_t list_others(uint32_t snake, uint32_t n, uint32_t *out)
{
    const uint32_t team = snake / BOARD_TEAM;
    uint32_t found = 0;
    for (uint32_t k = 0; k < BOARD_SNAKES && found < n; k++) {
        const uint32_t other = relative_snake(team, k);
        if (other != snake) {
            out[found++] = other;
        }
    }
    return found;
}

static void write_26_numbers(const board *b, uint32_t snake, float *at)
{
    uint32_t other[BOARD_SNAKES];
    const uint32_t n = list_others(snake, BOARD_SNAKES - 1, other);
    at = add_beans(b, add_head(b, snake, at));
    for (uint32_t i = 0; i < n; i++) {
        at = add_cell(at, board_head(&b->snake[other[i]]));
    }
}

/* Difference along an axis of `size` cells, as the source wraps it: half of it away keeps its sign. */
static int wrap_difference(int d, int size)
{
    return d > size / 2 ? d - size : d < -(size / 2) ? d + size : d;
}

static void source_offset(uint32_t from, uint32_t to, int *rows_p, int *columns_p)
{
    *rows_p = wrap_difference((int)cells_row(to) - (int)cells_row(from), CELLS_ROWS);
    *columns_p = wrap_difference((int)cells_column(to) - (int)cells_column(from), CELLS_COLUMNS);
}

/* The beans by their distance on the torus, the earlier of equals first. */
static void sort_beans(const board *b, uint32_t head, uint32_t order[BOARD_BEANS])
{
    for (uint32_t i = 0; i < b->n_beans; i++) {
        uint32_t k = i;
        for (; k > 0 && torus_distance_squared(head, b->bean[order[k - 1]]) > torus_distance_squared(head, b->bean[i]);
             k--) {
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
}

static void write_30_numbers(const board *b, uint32_t snake, float *at)
{
    const uint32_t head = board_head(&b->snake[snake]);
    uint32_t order[BOARD_BEANS], other[2];
    int rows, columns;
    at = add_head(b, snake, at);
    sort_beans(b, head, order);
    for (uint32_t i = 0; i < 2; i++, at += 3) {
        at[2] = 2 * CELLS_COLUMNS; /* of a bean that is not there */
        if (i < b->n_beans) {
            source_offset(head, b->bean[order[i]], &rows, &columns);
            at[0] = (float)columns;
            at[1] = (float)rows;
            at[2] = (float)sqrt((double)(rows * rows + columns * columns));
        }
    }
    (void)list_others(snake, 2, other);
    for (uint32_t i = 0; i < 2; i++) {
        const board_snake *s = &b->snake[other[i]];
        source_offset(head, board_head(s), &rows, &columns);
        const double distance = sqrt((double)(rows * rows + columns * columns)) + 1e-8;
        *at++ = (float)(1.0 / (distance + 1) * (s->length / 3.0));
    }
    at = add_beans(b, at) + 2; /* the source leaves room for a sixth bean */
    for (uint32_t i = 0; i < 2; i++) {
        at = add_cell(at, board_head(&b->snake[other[i]]));
    }
}

/* ---- numbers of the game ----------------------------------------------------------------------------------------- */

static float longest_length(const board *b, uint32_t team)
{
    uint32_t most = 0;
    for (uint32_t i = team * BOARD_TEAM; i < (team + 1) * BOARD_TEAM; i++) {
        most = b->snake[i].length > most ? b->snake[i].length : most;
    }
    return (float)most / 20.0F;
}

static void add_game(const observe_kind *k, const board *b, uint32_t snake, float *at)
{
    const uint32_t team = snake / BOARD_TEAM;
    const board_snake *s = &b->snake[snake];
    at[s->direction] = 1;
    at[4] = (float)s->length / 20.0F;
    at[5] = (float)(board_team_score(b, team) - board_team_score(b, 1 - team)) / 20.0F;
    at[6] = (float)(k->max_steps - b->step) / (float)k->max_steps;
    at[7] = longest_length(b, team);
    at[8] = longest_length(b, 1 - team);
}

/* ---- planes ------------------------------------------------------------------------------------------------------ */

static void mark_plane(const observe_kind *k, uint32_t head, uint32_t plane, uint32_t cell, float *out)
{
    const int row = cells_rows_to(head, cell) + (int)(k->rows - 1) / 2;
    const int column = cells_columns_to(head, cell) + (int)(k->columns - 1) / 2;
    if (row >= 0 && row < (int)k->rows && column >= 0 && column < (int)k->columns) {
        out[(plane * k->rows + (uint32_t)row) * k->columns + (uint32_t)column] = 1;
    }
}

static void write_planes(const observe_kind *k, const board *b, uint32_t snake, float *out)
{
    const uint32_t head = board_head(&b->snake[snake]), team = snake / BOARD_TEAM;
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        const board_snake *s = &b->snake[i];
        const uint32_t theirs = i / BOARD_TEAM != team;
        for (uint32_t n = 1; n < s->length; n++) {
            mark_plane(k, head, i == snake ? 0 : 1 + theirs, board_segment(s, n), out);
        }
        if (i != snake && s->length > 0) {
            mark_plane(k, head, 3 + theirs, board_head(s), out);
        }
    }
    for (uint32_t i = 0; i < b->n_beans; i++) {
        mark_plane(k, head, 5, b->bean[i], out);
    }
    add_game(k, b, snake, out + (size_t)OBSERVE_N_PLANES * k->rows * k->columns);
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

typedef struct flood { /* what can be reached from a cell over free ones */
    uint8_t to_bean[BOARD_BEANS];
    uint32_t n;
} flood;

/* From a cell, `steps` after now; the cell itself counts whether it is free or not. all: to the end, not only to the
 * last bean. */
static void flood_fill(const board *b, uint32_t from, uint32_t steps, bool all, flood *out)
{
    cells reached = {{0}}, edge;
    uint32_t found = 0;
    cells_add(&reached, from);
    edge = reached;
    memset(out->to_bean, NO_WAY, sizeof(out->to_bean));
    for (bool grows = true; grows; steps++) {
        for (uint32_t i = 0; i < b->n_beans; i++) {
            if (out->to_bean[i] == NO_WAY && cells_has(&edge, b->bean[i])) {
                out->to_bean[i] = (uint8_t)steps;
                found++;
            }
        }
        if (!all && found == b->n_beans) {
            break;
        }
        grows = false;
        edge = cells_neighbours(&edge);
        for (uint32_t i = 0; i < CELLS_WORDS; i++) {
            edge.w[i] &= ~(reached.w[i] | b->taken.w[i]);
            reached.w[i] |= edge.w[i];
            grows = grows || edge.w[i] != 0;
        }
    }
    out->n = cells_count(&reached);
}

/* Steps of the soonest of the other snakes to each bean. */
static void earliest_other_arrivals(const flood from[BOARD_SNAKES], uint32_t snake, uint8_t out[BOARD_BEANS])
{
    memset(out, NO_WAY, BOARD_BEANS);
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        for (uint32_t k = 0; k < BOARD_BEANS && i != snake; k++) {
            out[k] = from[i].to_bean[k] < out[k] ? from[i].to_bean[k] : out[k];
        }
    }
}

static bool is_tail(const board *b, uint32_t cell)
{
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        const board_snake *s = &b->snake[i];
        if (s->length > 0 && board_segment(s, s->length - 1U) == cell) {
            return true;
        }
    }
    return false;
}

static float nearness_of_steps(uint32_t steps)
{
    return steps == NO_WAY ? 0.0F : 1.0F / (1.0F + (float)steps);
}

static void add_direction(const board *b, uint32_t snake, uint32_t cell, const uint8_t soonest[BOARD_BEANS], float *at)
{
    flood f;
    uint32_t any = NO_WAY, own = NO_WAY;
    at[0] = cells_has(&b->taken, cell);
    at[1] = at[0] != 0.0F && is_tail(b, cell);
    at[2] = cells_has(&b->beans, cell);
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        for (uint32_t d = 0; d < CELLS_DIRECTIONS && i != snake && b->snake[i].length > 0; d++) {
            at[i / BOARD_TEAM == snake / BOARD_TEAM ? 3 : 4] += cells_neighbour(board_head(&b->snake[i]), d) == cell;
        }
    }
    if (at[0] != 0.0F && at[1] == 0.0F) {
        return;
    }
    flood_fill(b, cell, 1, true, &f);
    for (uint32_t i = 0; i < b->n_beans; i++) {
        any = f.to_bean[i] < any ? f.to_bean[i] : any;
        own = f.to_bean[i] < soonest[i] && f.to_bean[i] < own ? f.to_bean[i] : own;
    }
    at[5] = nearness_of_steps(any);
    at[6] = nearness_of_steps(own);
    at[7] = (float)f.n / CELLS;
    at[8] = f.n < b->snake[snake].length;
}

static void write_paths(const observe_kind *k, const board *b, const flood from[BOARD_SNAKES], uint32_t snake,
                        float *out)
{
    const uint32_t head = board_head(&b->snake[snake]);
    uint8_t soonest[BOARD_BEANS];
    uint32_t order[BOARD_BEANS];
    earliest_other_arrivals(from, snake, soonest);
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++, out += OBSERVE_DIRECTION) {
        add_direction(b, snake, cells_neighbour(head, d), soonest, out);
    }
    sort_beans(b, head, order);
    for (uint32_t i = 0; i < 2 && i < b->n_beans; i++) {
        out[2 * i] = (float)cells_rows_to(head, b->bean[order[i]]) / 10.0F;
        out[2 * i + 1] = (float)cells_columns_to(head, b->bean[order[i]]) / 10.0F;
    }
    add_game(k, b, snake, out + 4);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

uint32_t observe_width(const observe_kind *k)
{
    switch (k->kind) {
    case OBSERVE_26:
        return 26;
    case OBSERVE_30:
        return 30;
    case OBSERVE_PLANES:
        return OBSERVE_N_PLANES * k->rows * k->columns + OBSERVE_GAME;
    default:
        return CELLS_DIRECTIONS * OBSERVE_DIRECTION + 4 + OBSERVE_GAME;
    }
}

void observe_team(const observe_kind *k, const board *b, uint32_t team, float *out)
{
    const uint32_t width = observe_width(k);
    flood from[BOARD_SNAKES];
    for (uint32_t i = 0; k->kind == OBSERVE_PATHS && i < BOARD_SNAKES; i++) {
        flood_fill(b, board_head(&b->snake[i]), 0, false, &from[i]);
    }
    for (uint32_t i = team * BOARD_TEAM; i < (team + 1) * BOARD_TEAM; i++, out += width) {
        switch (k->kind) {
        case OBSERVE_26:
            write_26_numbers(b, i, out);
            break;
        case OBSERVE_30:
            write_30_numbers(b, i, out);
            break;
        case OBSERVE_PLANES:
            write_planes(k, b, i, out);
            break;
        default:
            write_paths(k, b, from, i, out);
        }
    }
}

/* ---- what they are ----------------------------------------------------------------------------------------------- */

typedef struct group { /* n columns, one after another */
    const char *name, *unit, *meaning;
    double low, high;
    uint32_t n;
} group;

static uint32_t describe_groups(const group *g, uint32_t n_groups, uint32_t first, dt_column *out)
{
    for (uint32_t i = 0; i < n_groups; first += g[i].n, i++) {
        out[i] = (dt_column){"obs", g[i].name, g[i].unit, g[i].meaning, g[i].low, g[i].high, first, g[i].n, 1, 0};
    }
    return n_groups;
}

uint32_t observe_describe(const observe_kind *k, dt_column *out)
{
    static const char around_text[] = "up, down, left, right of the head: 0 free, 1 bean, 2-4 own team, 5-7 others";
    static const group numbers26[] = {
        {"head", "cells", "row, column of the head", 0, CELLS_COLUMNS - 1, 2},
        {"around", "kind", around_text, 0, 7, CELLS_DIRECTIONS},
        {"beans", "cells", "row, column of each bean", 0, CELLS_COLUMNS - 1, 2 * BOARD_BEANS},
        {"heads", "cells", "row, column of the other heads", 0, CELLS_COLUMNS - 1, 2 * (BOARD_SNAKES - 1)}};
    static const group numbers30[] = {
        {"head", "cells", "row, column of the head", 0, CELLS_COLUMNS - 1, 2},
        {"around", "kind", around_text, 0, 7, CELLS_DIRECTIONS},
        {"near", "cells", "columns, rows, distance of the two nearest beans", -CELLS_COLUMNS, 2 * CELLS_COLUMNS, 6},
        {"threat", "1", "by two other snakes: length / (3 (distance + 1))", 0, INFINITY, 2},
        {"beans", "cells", "row, column of each bean", 0, CELLS_COLUMNS - 1, 2 * BOARD_BEANS},
        {"unused", "1", "always 0", 0, 0, 2},
        {"heads", "cells", "row, column of two other heads", 0, CELLS_COLUMNS - 1, 4}};
    static const group game[] = {{"heading", "0 or 1", "direction of the snake, one-hot", 0, 1, CELLS_DIRECTIONS},
                                 {"length", "20 cells", "own length", 0, INFINITY, 1},
                                 {"lead", "20 cells", "lead of the team", -INFINITY, INFINITY, 1},
                                 {"time", "share", "of the game that is left", 0, 1, 1},
                                 {"longest", "20 cells", "longest snake of the team, of the others", 0, INFINITY, 2}};
    static const group paths[] = {
        {"directions", "1",
         "9 numbers for each direction: blocked, tail, bean, heads of the team and of the others that could step "
         "there, "
         "two proximities to beans, reachable share, 1 if that is less than the own length",
         0, INFINITY, CELLS_DIRECTIONS * OBSERVE_DIRECTION},
        {"near", "10 cells", "rows, columns to the two nearest beans", -INFINITY, INFINITY, 4}};
    enum { N_GAME = sizeof(game) / sizeof(game[0]) };
    const uint32_t window = k->rows * k->columns;
    const group planes = {"planes",
                          "0 or 1",
                          "6 windows around the head: own body, bodies of the team, of the others, heads of the team, "
                          "of the others, beans",
                          0,
                          1,
                          OBSERVE_N_PLANES * window};
    uint32_t n = 0;
    switch (k->kind) {
    case OBSERVE_26:
        return describe_groups(numbers26, sizeof(numbers26) / sizeof(numbers26[0]), 0, out);
    case OBSERVE_30:
        return describe_groups(numbers30, sizeof(numbers30) / sizeof(numbers30[0]), 0, out);
    case OBSERVE_PLANES:
        n = describe_groups(&planes, 1, 0, out);
        break;
    default:
        n = describe_groups(paths, sizeof(paths) / sizeof(paths[0]), 0, out);
    }
    return n + describe_groups(game, N_GAME, observe_width(k) - OBSERVE_GAME, out + n);
}
