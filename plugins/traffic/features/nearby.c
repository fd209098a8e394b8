/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/features/nearby.h"

#include <math.h>
#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* The next array of a room. Those of 8-byte values come first. */
static void *allocate_from(unsigned char **at, size_t n, size_t size)
{
    void *place = *at;
    *at += n * size;
    return place;
}

void dt_nearby_init(dt_nearby *g, uint32_t cap, void *room)
{
    const size_t padded = (size_t)cap + DT_NEARBY_PAD;
    unsigned char *at = room;
    g->key = allocate_from(&at, cap, sizeof(*g->key));
    g->x = allocate_from(&at, padded, sizeof(*g->x));
    g->y = allocate_from(&at, padded, sizeof(*g->y));
    g->width = allocate_from(&at, padded, sizeof(*g->width));
    g->sin_h = allocate_from(&at, cap, sizeof(*g->sin_h));
    g->cos_h = allocate_from(&at, cap, sizeof(*g->cos_h));
    g->d2 = allocate_from(&at, padded, sizeof(*g->d2));
    g->cell = allocate_from(&at, cap, sizeof(*g->cell));
    g->order = allocate_from(&at, cap, sizeof(*g->order));
    g->spare = allocate_from(&at, cap, sizeof(*g->spare));
    g->place = allocate_from(&at, cap, sizeof(*g->place));
    g->ahead = allocate_from(&at, cap, sizeof(*g->ahead));
    g->unknown = NULL;
    g->cap = cap;
    g->room = room;
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* key = column * height + row, counted from a border of empty cells: a cell's neighbours along its column have the keys
 * next to its own, and none of them is another column's. Returns the height; *most_p: no key is greater. */
static uint64_t number_cells(dt_nearby *g, const dt_vehicle *v, uint32_t n, double side_m, uint64_t *most_p)
{
    double least[2] = {v[0].x, v[0].y}, most[2] = {v[0].x, v[0].y};
    for (uint32_t i = 1; i < n; i++) {
        least[0] = v[i].x < least[0] ? v[i].x : least[0];
        least[1] = v[i].y < least[1] ? v[i].y : least[1];
        most[0] = v[i].x > most[0] ? v[i].x : most[0];
        most[1] = v[i].y > most[1] ? v[i].y : most[1];
    }
    const int64_t x0 = (int64_t)floor(least[0] / side_m) - 1, y0 = (int64_t)floor(least[1] / side_m) - 1;
    const uint64_t width = (uint64_t)((int64_t)floor(most[0] / side_m) - x0 + 2);
    const uint64_t height = (uint64_t)((int64_t)floor(most[1] / side_m) - y0 + 2);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t cx = (uint64_t)((int64_t)floor(v[i].x / side_m) - x0);
        const uint64_t cy = (uint64_t)((int64_t)floor(v[i].y / side_m) - y0);
        g->key[i] = cx * height + cy;
    }
    *most_p = width * height; /* positions and the side have limits: below 2^57 */
    return height;
}

/* Radix sort from the lowest digit up (Knuth, TAOCP 3, 5.2.5): vehicles of one cell stay in the order of their
 * numbers. */
static void sort_by_key(dt_nearby *g, uint32_t n, uint64_t most)
{
    for (uint32_t i = 0; i < n; i++) {
        g->order[i] = i;
    }
    for (int shift = 0; most >> shift > 0; shift += DIGIT_BITS) {
        uint32_t begin[DIGITS] = {0}, at = 0;
        for (uint32_t i = 0; i < n; i++) {
            begin[g->key[i] >> shift & (DIGITS - 1)]++;
        }
        for (int d = 0; d < DIGITS; d++) {
            const uint32_t held = begin[d];
            begin[d] = at;
            at += held;
        }
        for (uint32_t p = 0; p < n; p++) {
            g->spare[begin[g->key[g->order[p]] >> shift & (DIGITS - 1)]++] = g->order[p];
        }
        uint32_t *sorted = g->spare;
        g->spare = g->order;
        g->order = sorted;
    }
}

/* Keys rise from cell to cell, so each end of each stretch moves on and never back. */
static void find_stretches(dt_nearby *g, uint32_t n, uint64_t height)
{
    uint32_t begin[3] = {0}, end[3] = {0}, n_cells = 0;
    for (uint32_t p = 0; p < n; n_cells++) {
        const uint64_t own = g->key[g->order[p]];
        dt_nearby_cell *c = &g->cell[n_cells];
        for (int side = 0; side < 3; side++) {
            const uint64_t middle = own + (uint64_t)side * height - height; /* own >= height: there is a border */
            while (begin[side] < n && g->key[g->order[begin[side]]] < middle - 1) {
                begin[side]++;
            }
            end[side] = end[side] > begin[side] ? end[side] : begin[side];
            while (end[side] < n && g->key[g->order[end[side]]] <= middle + 1) {
                end[side]++;
            }
            c->begin[side] = begin[side];
            c->end[side] = end[side];
        }
        c->likely_d2 = 0;
        for (; p < n && g->key[g->order[p]] == own; p++) {
            g->spare[g->order[p]] = n_cells;
        }
    }
}

void dt_nearby_build(dt_nearby *g, const dt_vehicle *v, uint32_t n, double side_m, double width_m)
{
    uint64_t most = 0;
    const uint64_t height = number_cells(g, v, n, side_m, &most);
    sort_by_key(g, n, most);
    find_stretches(g, n, height);
    for (uint32_t p = 0; p < n; p++) {
        const dt_vehicle *a = &v[g->order[p]];
        g->place[g->order[p]] = p;
        g->x[p] = a->x;
        g->y[p] = a->y;
        g->width[p] = isnan(a->width) ? width_m : a->width;
    }
    memset(g->x + n, 0, DT_NEARBY_PAD * sizeof(*g->x));
    memset(g->y + n, 0, DT_NEARBY_PAD * sizeof(*g->y));
    memset(g->width + n, 0, DT_NEARBY_PAD * sizeof(*g->width));
}
