/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

static const float SEGMENT_M = 0.9F, BEAN_M = 0.5F;

void snakes_scene_roads(const void *self, dt_scene_roads *out)
{
    out->n = 0;
    for (uint32_t row = 0; row < CELLS_ROWS; row++) {
        for (uint32_t end = 0; end < 2; end++, out->n++) {
            if (out->n < out->cap) {
                out->point[out->n] = (dt_scene_point){.x = end == 0 ? 0.0F : (float)CELLS_COLUMNS,
                                                      .y = (float)CELLS_ROWS - 0.5F - (float)row,
                                                      .width = 1,
                                                      .lane = row};
            }
        }
    }
}

/* A square around the middle of its cell. */
static void add_square(dt_scene *out, uint32_t cell, uint32_t direction, float size, int32_t id, int32_t agent,
                       float risk)
{
    static const float ahead_x[] = {0, 0, -0.5F, 0.5F}, ahead_y[] = {0.5F, -0.5F, 0, 0};
    static const float heading[] = {1.57079633F, -1.57079633F, 3.14159265F, 0};
    if (out->n_vehicles < out->cap_vehicles) {
        out->vehicle[out->n_vehicles] =
            (dt_scene_vehicle){.x = (float)cells_column(cell) + 0.5F + ahead_x[direction] * size,
                               .y = (float)CELLS_ROWS - 0.5F - (float)cells_row(cell) + ahead_y[direction] * size,
                               .heading = heading[direction],
                               .length = size,
                               .width = size,
                               .risk = risk,
                               .id = id,
                               .agent = agent};
    }
    out->n_vehicles++;
}

static float blocked_share(const board *b, uint32_t head)
{
    float blocked = 0;
    for (uint32_t d = 0; d < CELLS_DIRECTIONS; d++) {
        blocked += cells_has(&b->taken, cells_neighbour(head, d));
    }
    return blocked / CELLS_DIRECTIONS;
}

void scene_draw(const board *b, uint32_t team, dt_scene *out)
{
    out->time_s = b->step;
    out->n_vehicles = out->n_signals = 0;
    for (uint32_t i = 0; i < BOARD_SNAKES; i++) {
        const board_snake *s = &b->snake[i];
        const int32_t agent = i / BOARD_TEAM == team ? (int32_t)(i % BOARD_TEAM) : -1;
        for (uint32_t k = 0; k < s->length; k++) {
            const uint32_t cell = board_segment(s, k);
            add_square(out, cell, k == 0 ? s->direction : CELLS_RIGHT, SEGMENT_M, (int32_t)(i * CELLS + k), agent,
                       k == 0 ? blocked_share(b, cell) : NAN);
        }
    }
    for (uint32_t i = 0; i < b->n_beans; i++) {
        add_square(out, b->bean[i], CELLS_RIGHT, BEAN_M, (int32_t)(BOARD_SNAKES * CELLS + b->bean[i]), -1, NAN);
    }
}
