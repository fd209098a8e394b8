/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

#include <string.h>

enum { STREAM_GAME = 0 };

/* ---- placing ----------------------------------------------------------------------------------------------------- */

void board_place(board *b, uint32_t snake, const uint8_t *cell, uint32_t n, uint32_t direction)
{
    board_snake *s = &b->snake[snake];
    s->head = 0;
    s->length = (uint16_t)n;
    s->direction = (uint8_t)direction;
    for (uint32_t k = 0; k < n; k++) {
        s->cell[k] = cell[k];
        cells_add(&b->taken, cell[k]);
    }
}

void board_add_bean(board *b, uint32_t cell)
{
    b->bean[b->n_beans++] = (uint8_t)cell;
    cells_add(&b->beans, cell);
}

static void lay_beans(board *b, const board_fate *fate)
{
    if (fate != NULL) {
        for (uint32_t i = 0; i < fate->n_beans; i++) {
            board_add_bean(b, fate->bean[i]);
        }
        return;
    }
    if (b->n_beans == BOARD_BEANS) {
        return;
    }
    cells room = cells_neither(&b->taken, &b->beans);
    for (uint32_t n = cells_count(&room); b->n_beans < BOARD_BEANS && n > 0; n--) {
        const uint32_t c = cells_pick(&room, dt_random_below(&b->random, n));
        board_add_bean(b, c);
        cells_remove(&room, c);
    }
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

/* Straight, its head where two moves from a random cell lead; taken again until no cell is another's. */
static void place_at_random(board *b, uint32_t snake)
{
    for (;;) {
        const uint32_t direction = dt_random_below(&b->random, CELLS_DIRECTIONS);
        const uint32_t tail = dt_random_below(&b->random, CELLS);
        const uint32_t middle = cells_neighbour(tail, direction), head = cells_neighbour(middle, direction);
        if (!cells_has(&b->taken, tail) && !cells_has(&b->taken, middle) && !cells_has(&b->taken, head)) {
            const uint8_t cell[BOARD_LENGTH] = {(uint8_t)head, (uint8_t)middle, (uint8_t)tail};
            board_place(b, snake, cell, BOARD_LENGTH, direction);
            return;
        }
    }
}

void board_begin(board *b, uint64_t seed)
{
    memset(b, 0, sizeof(*b));
    dt_random_init(&b->random, seed, STREAM_GAME);
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        place_at_random(b, i);
    }
    lay_beans(b, NULL);
}

/* ---- coming back ------------------------------------------------------------------------------------------------- */

/* Free neighbours of c other than `without`, in the order of the search; at most two of them count. */
static uint32_t find_exits(const cells *room, uint32_t c, uint32_t without, uint32_t out[2])
{
    static const uint8_t order[] = {CELLS_RIGHT, CELLS_DOWN, CELLS_UP, CELLS_LEFT};
    uint32_t n = 0;
    for (uint32_t i = 0; i < CELLS_DIRECTIONS && n < 2; i++) {
        const uint32_t next = cells_neighbour(c, order[i]);
        if (next != without && cells_has(room, next)) {
            out[n++] = next;
        }
    }
    return n;
}

/* The first three cells that a breadth-first search from c meets, which is all that is left of it. */
static bool find_three_cells(const cells *room, uint32_t c, uint32_t out[BOARD_LENGTH])
{
    uint32_t beyond[2];
    out[0] = c;
    const uint32_t n = find_exits(room, c, c, out + 1);
    if (n == 1 && find_exits(room, out[1], c, beyond) > 0) {
        out[2] = beyond[0];
        return true;
    }
    return n == 2;
}

/* A cell that both others touch at a corner is between them. */
static bool is_corner(uint32_t c, uint32_t a, uint32_t b)
{
    return (cells_row(c) == cells_row(a) && cells_column(c) == cells_column(b)) ||
           (cells_row(c) == cells_row(b) && cells_column(c) == cells_column(a));
}

static uint32_t head_direction(uint32_t head, uint32_t neck)
{
    if (cells_row(head) == cells_row(neck)) {
        return cells_column(head) > cells_column(neck) ? CELLS_RIGHT : CELLS_LEFT;
    }
    return cells_row(head) > cells_row(neck) ? CELLS_DOWN : CELLS_UP;
}

/* false: no room. Heads are distinguished by rows and columns alone, also across an edge, where that is wrong: a rule.
 * */
static bool respawn_snake(board *b, uint32_t snake)
{
    const cells room = cells_neither(&b->taken, &b->beans);
    uint32_t three[BOARD_LENGTH];
    for (uint32_t i = 0; i < CELLS_WORDS; i++) {
        for (uint64_t word = room.w[i]; word != 0; word &= word - 1) {
            const uint32_t c = 64 * i + (uint32_t)__builtin_ctzll(word);
            if (!find_three_cells(&room, c, three)) {
                continue;
            }
            const bool turns = is_corner(three[0], three[1], three[2]);
            const uint32_t head = three[turns ? 1 : 0], neck = three[turns ? 0 : 1];
            const uint8_t cell[BOARD_LENGTH] = {(uint8_t)head, (uint8_t)neck, (uint8_t)three[2]};
            board_place(b, snake, cell, BOARD_LENGTH, head_direction(head, neck));
            return true;
        }
    }
    b->snake[snake].length = 0;
    return false;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static uint32_t turn_snake(board *b, uint32_t snake, uint32_t action)
{
    const uint32_t direction = b->snake[snake].direction, back = cells_opposite(direction);
    if (action != back) {
        return action;
    }
    const uint32_t k = dt_random_below(&b->random, CELLS_DIRECTIONS - 1);
    return k + (k >= back);
}

static bool eat_bean(board *b, uint32_t cell)
{
    if (!cells_has(&b->beans, cell)) {
        return false;
    }
    uint32_t i = 0;
    while (b->bean[i] != cell) {
        i++;
    }
    b->n_beans--;
    memmove(b->bean + i, b->bean + i + 1, b->n_beans - i);
    cells_remove(&b->beans, cell);
    return true;
}

/* Afterwards `taken` has the bodies without heads. */
static void move_snake(board *b, uint32_t snake, uint32_t direction)
{
    board_snake *s = &b->snake[snake];
    const uint32_t cell = cells_neighbour(board_head(s), direction);
    s->direction = (uint8_t)direction;
    s->head--;
    s->cell[s->head] = (uint8_t)cell;
    if (eat_bean(b, cell)) {
        b->ate |= (uint8_t)(1U << snake);
        s->length++;
    } else {
        cells_remove(&b->taken, board_segment(s, s->length));
    }
}

/* Heads on bodies, and heads on heads. */
static void resolve_collisions(board *b)
{
    cells once = {{0}}, twice = {{0}};
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        const uint32_t c = board_head(&b->snake[i]);
        if (cells_has(&once, c)) {
            cells_add(&twice, c);
        }
        cells_add(&once, c);
    }
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        const uint32_t c = board_head(&b->snake[i]);
        if (cells_has(&b->taken, c) || cells_has(&twice, c)) {
            b->died |= (uint8_t)(1U << i);
        }
    }
}

static void earn_reward(board *b, uint32_t snake, uint32_t length)
{
    const int32_t eaten = (b->ate >> snake & 1) != 0;
    b->reward[snake] = (b->died >> snake & 1) != 0 ? BOARD_LENGTH - (int32_t)length + eaten : eaten;
    b->score[snake] += b->reward[snake];
}

/* Bodies of the dead go, heads of the living come. */
static void finish_step(board *b)
{
    uint32_t total = BOARD_BEANS;
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        const board_snake *s = &b->snake[i];
        earn_reward(b, i, s->length);
        for (uint32_t k = 1; (b->died >> i & 1) != 0 && k < s->length; k++) {
            cells_remove(&b->taken, board_segment(s, k));
        }
    }
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        if ((b->died >> i & 1) == 0) {
            cells_add(&b->taken, board_head(&b->snake[i]));
        }
    }
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        if ((b->died >> i & 1) != 0 && !respawn_snake(b, i)) {
            b->is_over = 1;
        }
        total += b->snake[i].length;
    }
    b->is_over |= total > CELLS;
}

void board_step(board *b, const uint8_t *action, const board_fate *fate)
{
    uint8_t direction[BOARD_SNAKES];
    b->died = b->ate = 0;
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        direction[i] = fate != NULL ? fate->direction[i] : (uint8_t)turn_snake(b, i, action[i]);
    }
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        move_snake(b, i, direction[i]);
    }
    resolve_collisions(b);
    finish_step(b);
    lay_beans(b, fate);
    b->step++;
}
