/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <string.h>

/* The columns that sum over the lanes of phase p. */
static void write_lanes(const signal_shape *s, const signal_now *now, uint32_t p, float *out)
{
    double pressure = 0, longest_s = 0, speed = 0, first_m = now->detection_m;
    uint32_t n = 0, standing = 0, near = 0, due = 0, queue = 0;
    for (uint32_t i = 0; i < s->n_lanes; i++) {
        const signal_lane *l = &now->lane[i];
        if (s->green_lane[p * s->n_lanes + i] == 0) {
            continue;
        }
        n += l->n;
        standing += l->standing;
        near += l->near;
        due += l->due;
        speed += l->speed;
        queue = l->standing > queue ? l->standing : queue;
        longest_s = l->n > 0 ? fmax(longest_s, l->stood_s) : longest_s;
        first_m = l->n > 0 ? fmin(first_m, l->first_m) : first_m;
        pressure += now->halting_before[i];
    }
    for (uint32_t i = 0; i < s->n_out; i++) {
        if (s->out_lane[p * s->n_out + i] != 0) {
            pressure -= now->halting_after[i];
        }
    }
    out[SIGNAL_COLUMN_VEHICLES] = (float)n;
    out[SIGNAL_COLUMN_STANDING] = (float)standing;
    out[SIGNAL_COLUMN_PRESSURE] = (float)pressure;
    out[SIGNAL_COLUMN_NEAR] = (float)near;
    out[SIGNAL_COLUMN_LONGEST] = (float)longest_s;
    out[SIGNAL_COLUMN_QUEUE] = (float)queue;
    out[SIGNAL_COLUMN_DUE] = (float)due;
    out[SIGNAL_COLUMN_SPEED] = n > 0 ? (float)(speed / n) : 0.0F;
    out[SIGNAL_COLUMN_FIRST] = (float)first_m;
}

/* The columns that sum over the links of phase p. */
static void write_links(const signal_shape *s, const signal_now *now, uint32_t p, float *out)
{
    const uint8_t *letter = s->letter + (size_t)p * s->n_links;
    double red_s = 0;
    uint32_t n = 0, near = 0;
    for (uint32_t i = 0; i < s->n_links; i++) {
        if (letter[i] >= SIGNAL_YIELD) {
            n += now->link[i].n;
            near += now->link[i].near;
        }
        if (s->best[i] != SIGNAL_RED && letter[i] == s->best[i] && now->shown[i] < SIGNAL_YIELD) {
            red_s = fmax(red_s, now->red_s[i]);
        }
    }
    out[SIGNAL_COLUMN_GOING] = (float)n;
    out[SIGNAL_COLUMN_GOING_NEAR] = (float)near;
    out[SIGNAL_COLUMN_RED] = (float)red_s;
}

void signal_write_phases(const signal_shape *s, const signal_now *now, uint32_t P, float *out)
{
    memset(out, 0, (size_t)P * N_SIGNAL_COLUMNS * sizeof(*out));
    for (uint32_t p = 0; p < P; p++, out += N_SIGNAL_COLUMNS) {
        out[SIGNAL_COLUMN_GREEN] = -1;
        if (p >= s->n_phases) {
            continue;
        }
        write_lanes(s, now, p, out);
        write_links(s, now, p, out);
        out[SIGNAL_COLUMN_PROGRAM] = p == now->program;
        out[SIGNAL_COLUMN_ALLOWED] = now->allowed[p];
        out[SIGNAL_COLUMN_SHOWN] = p == now->phase;
        out[SIGNAL_COLUMN_CONFLICTS] = (float)s->conflicts[p];
        if (p == now->phase && now->green_s >= 0) {
            out[SIGNAL_COLUMN_GREEN] = (float)now->green_s;
        }
    }
}
