/* SPDX-License-Identifier: Apache-2.0
 *
 * The board of env_snakes as sets of cells: a torus of 10 rows and 20 columns, cell = 20 row + column, 200 bits in four
 * words. Directions are 0 up, 1 down, 2 left, 3 right; up is towards row 0, and row 0 is below row 9. Threads: [any].
 */
#ifndef DTRAIN_PLUGINS_ENV_SNAKES_CELLS_H
#define DTRAIN_PLUGINS_ENV_SNAKES_CELLS_H

#include <stdbool.h>
#include <stdint.h>

enum { CELLS_ROWS = 10, CELLS_COLUMNS = 20, CELLS = CELLS_ROWS * CELLS_COLUMNS, CELLS_WORDS = 4 };
enum { CELLS_UP, CELLS_DOWN, CELLS_LEFT, CELLS_RIGHT, CELLS_DIRECTIONS };

typedef struct cells {
    uint64_t w[CELLS_WORDS]; /* cell c is bit c mod 64 of word c / 64; the last 56 bits are 0 */
} cells;

static inline bool cells_has(const cells *s, uint32_t c)
{
    return (s->w[c >> 6] >> (c & 63) & 1) != 0;
}

static inline void cells_add(cells *s, uint32_t c)
{
    s->w[c >> 6] |= UINT64_C(1) << (c & 63);
}

static inline void cells_remove(cells *s, uint32_t c)
{
    s->w[c >> 6] &= ~(UINT64_C(1) << (c & 63));
}

static inline uint32_t cells_count(const cells *s)
{
    uint32_t n = 0;
    for (int i = 0; i < CELLS_WORDS; i++) {
        n += (uint32_t)__builtin_popcountll(s->w[i]);
    }
    return n;
}

/* Those of neither a nor b. */
static inline cells cells_neither(const cells *a, const cells *b)
{
    cells out;
    for (int i = 0; i < CELLS_WORDS; i++) {
        out.w[i] = ~(a->w[i] | b->w[i]);
    }
    out.w[CELLS_WORDS - 1] &= (UINT64_C(1) << (CELLS & 63)) - 1;
    return out;
}

/* The k-th member from the lowest, k from 0; k < cells_count(s). */
static inline uint32_t cells_pick(const cells *s, uint32_t k)
{
    uint32_t i = 0;
    for (uint32_t n; k >= (n = (uint32_t)__builtin_popcountll(s->w[i])); i++) {
        k -= n;
    }
    uint64_t word = s->w[i];
    for (; k > 0; k--) {
        word &= word - 1;
    }
    return 64 * i + (uint32_t)__builtin_ctzll(word);
}

static inline uint32_t cells_row(uint32_t c)
{
    return c / CELLS_COLUMNS;
}

static inline uint32_t cells_column(uint32_t c)
{
    return c % CELLS_COLUMNS;
}

/* The cell next to c. */
static inline uint32_t cells_neighbour(uint32_t c, uint32_t direction)
{
    switch (direction) {
    case CELLS_UP:
        return c >= CELLS_COLUMNS ? c - CELLS_COLUMNS : c + (CELLS - CELLS_COLUMNS);
    case CELLS_DOWN:
        return c < CELLS - CELLS_COLUMNS ? c + CELLS_COLUMNS : c - (CELLS - CELLS_COLUMNS);
    case CELLS_LEFT:
        return cells_column(c) > 0 ? c - 1 : c + (CELLS_COLUMNS - 1);
    default:
        return cells_column(c) < CELLS_COLUMNS - 1 ? c + 1 : c - (CELLS_COLUMNS - 1);
    }
}

static inline uint32_t cells_opposite(uint32_t direction)
{
    return direction ^ 1;
}

/* Neighbours of all members: the union of the four cells next to each. */
static inline cells cells_neighbours(const cells *s)
{
    /* cells of the first and of the last column */
    static const uint64_t first[CELLS_WORDS] = {UINT64_C(0x1000010000100001), UINT64_C(0x0100001000010000),
                                                UINT64_C(0x0010000100001000), 0};
    static const uint64_t last[CELLS_WORDS] = {UINT64_C(0x0800008000080000), UINT64_C(0x0080000800008000),
                                               UINT64_C(0x0008000080000800), UINT64_C(0x80)};
    cells out;
    const uint64_t *w = s->w;
    for (int i = 0; i < CELLS_WORDS; i++) {
        const uint64_t below = i > 0 ? w[i - 1] : 0, above = i + 1 < CELLS_WORDS ? w[i + 1] : 0;
        const uint64_t below_last = i > 0 ? w[i - 1] & last[i - 1] : 0;
        const uint64_t above_first = i + 1 < CELLS_WORDS ? w[i + 1] & first[i + 1] : 0;
        const uint64_t below_first = i > 0 ? w[i - 1] & first[i - 1] : 0;
        const uint64_t above_last = i + 1 < CELLS_WORDS ? w[i + 1] & last[i + 1] : 0;
        const uint64_t right =
            (w[i] & ~last[i]) << 1 | (below & ~below_last) >> 63 | (w[i] & last[i]) >> 19 | above_last << 45;
        const uint64_t left =
            (w[i] & ~first[i]) >> 1 | (above & ~above_first) << 63 | (w[i] & first[i]) << 19 | below_first >> 45;
        out.w[i] = right | left | w[i] << 20 | below >> 44 | w[i] >> 20 | above << 44;
    }
    /* row 9 to row 0 and back: cells 180 to 199 are bits 52 of word 2 to 7 of word 3 */
    out.w[0] |= w[2] >> 52 | (w[3] & 0xff) << 12;
    out.w[2] |= (w[0] & 0xfff) << 52;
    out.w[3] |= w[0] >> 12 & 0xff;
    out.w[3] &= (UINT64_C(1) << (CELLS & 63)) - 1;
    return out;
}

/* Steps from a to b on the torus without obstacles, per axis: positive down and to the right, in [-4,5] and [-9,10]. */
static inline int cells_rows_to(uint32_t a, uint32_t b)
{
    const int d = ((int)cells_row(b) - (int)cells_row(a) + CELLS_ROWS) % CELLS_ROWS;
    return d > CELLS_ROWS / 2 ? d - CELLS_ROWS : d;
}

static inline int cells_columns_to(uint32_t a, uint32_t b)
{
    const int d = ((int)cells_column(b) - (int)cells_column(a) + CELLS_COLUMNS) % CELLS_COLUMNS;
    return d > CELLS_COLUMNS / 2 ? d - CELLS_COLUMNS : d;
}

#endif
