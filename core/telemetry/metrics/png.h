/* SPDX-License-Identifier: Apache-2.0
 *
 * Small pictures: a canvas of pixels from a palette, lines and discs on it, and the PNG of it (PNG 1.2, colour type 3).
 * For event files; reports draw SVG. Threads: an object belongs to one thread.
 */
#ifndef DTRAIN_CORE_TELEMETRY_METRICS_PNG_H
#define DTRAIN_CORE_TELEMETRY_METRICS_PNG_H

#include "base/str.h"

#include <stdint.h>

enum { DT_CANVAS_COLORS = 256 };

typedef struct dt_canvas {
    uint32_t width, height;
    uint8_t *pixel;                     /* [height, width] indices of color */
    uint8_t color[DT_CANVAS_COLORS][3]; /* red, green, blue; all of them are written */
} dt_canvas;

/* All pixels 0. Errors: DT_EINVAL (no pixel, or more than 4096 on a side), DT_ENOMEM. */
dt_status dt_canvas_init(dt_canvas *c, uint32_t width, uint32_t height) DT_NODISCARD;
void dt_canvas_fini(dt_canvas *c);
/* Of pixels, from the upper left corner; what is outside is left out. radius: half the thickness of the line. */
void dt_canvas_draw_line(dt_canvas *c, double x0, double y0, double x1, double y1, double radius, uint8_t color);
void dt_canvas_draw_disc(dt_canvas *c, double x, double y, double radius, uint8_t color);
/* Appends the file. Errors: DT_ENOMEM. */
dt_status dt_canvas_write_png(const dt_canvas *c, dt_str *out) DT_NODISCARD;

#endif
