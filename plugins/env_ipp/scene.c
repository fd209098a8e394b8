/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of env_ipp (dtrain/ext/scene.h), with the marks that scenes have: the border of the field is a road, a UAV
 * is a vehicle, the larger the higher it flies. A light is shown over every point of the lattice, with the colour of
 * what all measurements show of its tile: red of interest, green not, yellow not known yet.
 */
#include "env_ipp.h"

static const double BORDER_M = 0.5, LIGHT = 0.5, SURE = 0.75;

static void draw_area(const void *self, dt_scene_roads *out)
{
    static const float corner[][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 0}};
    const ipp *s = self;
    out->n = 0;
    for (; out->n < sizeof(corner) / sizeof(corner[0]); out->n++) {
        if (out->n < out->cap) {
            out->point[out->n] = (dt_scene_point){.x = corner[out->n][0] * (float)s->config.field_m,
                                                  .y = corner[out->n][1] * (float)s->config.field_m,
                                                  .width = (float)BORDER_M,
                                                  .lane = 0};
        }
    }
}

/* By the cells that are nearest to the point: the map of all measurements. */
static uint32_t cell_state(const ipp *s, int32_t x, int32_t y)
{
    const ipp_place at = {x, y, 0};
    const field_rect r = ipp_footprint(s, &at);
    int64_t n_yes = 0, n_no = 0, n = 0;
    for (int32_t row = r.y0; row < r.y1; row++) {
        const int16_t *odds = s->field.odds + (int64_t)row * s->field.cells;
        for (int32_t k = r.x0; k < r.x1; k++, n++) {
            n_yes += odds[k] > 0;
            n_no += odds[k] < 0;
        }
    }
    return (double)n_yes >= SURE * (double)n  ? DT_SCENE_RED
           : (double)n_no >= SURE * (double)n ? DT_SCENE_GREEN
                                              : DT_SCENE_YELLOW;
}

static void draw_scene(const void *self, dt_scene *out)
{
    const ipp *s = self;
    const float step = (float)s->config.step_m;
    out->time_s = (double)s->step;
    out->n_vehicles = out->n_signals = 0;
    for (uint32_t i = 0; i < ipp_n(s); i++, out->n_vehicles++) {
        if (out->n_vehicles < out->cap_vehicles) {
            const float size = step * 0.2F * (float)(s->place[i].level + 1), front = 0.5F * size;
            out->vehicle[out->n_vehicles] =
                (dt_scene_vehicle){.x = (float)s->place[i].x * step + front * cosf(s->heading[i]),
                                   .y = (float)s->place[i].y * step + front * sinf(s->heading[i]),
                                   .heading = s->heading[i],
                                   .length = size,
                                   .width = size,
                                   .risk = NAN,
                                   .id = (int32_t)i,
                                   .agent = (int32_t)i};
        }
    }
    for (int32_t y = 0; y < s->points; y++) {
        for (int32_t x = 0; x < s->points; x++, out->n_signals++) {
            if (out->n_signals < out->cap_signals) {
                out->signal[out->n_signals] = (dt_scene_signal){.x = (float)x * step,
                                                                .y = (float)y * step,
                                                                .width = (float)LIGHT * step,
                                                                .state = cell_state(s, x, y),
                                                                .agent = -1};
            }
        }
    }
}

const dt_scene_api ipp_scene = {.struct_size = sizeof(dt_scene_api), .roads = draw_area, .capture = draw_scene};
