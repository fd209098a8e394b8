/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/metrics/png.h"

#include "base/err.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

enum { MOST = 4096, DEPTH = 8, PALETTE = 3 };

dt_status dt_canvas_init(dt_canvas *c, uint32_t width, uint32_t height)
{
    memset(c, 0, sizeof(*c));
    if (width < 1 || height < 1 || width > MOST || height > MOST) {
        return DT_FAIL(DT_EINVAL, "a picture of %u by %u pixels; expected 1 to %d on a side", width, height, MOST);
    }
    c->width = width;
    c->height = height;
    c->pixel = dt_alloc_n(height, width);
    return c->pixel != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for a picture of %u by %u", width, height);
}

void dt_canvas_fini(dt_canvas *c)
{
    dt_free(c->pixel);
    c->pixel = NULL;
}

void dt_canvas_draw_disc(dt_canvas *c, double x, double y, double radius, uint8_t color)
{
    dt_canvas_draw_line(c, x, y, x, y, radius, color);
}

static uint32_t clamp_to_pixels(double x, uint32_t n)
{
    return x < 0 ? 0 : x > n ? n : (uint32_t)x;
}

/* Every pixel whose centre is within the radius of the segment. */
void dt_canvas_draw_line(dt_canvas *c, double x0, double y0, double x1, double y1, double radius, uint8_t color)
{
    const double dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy;
    if (!isfinite(square) || !isfinite(x0) || !isfinite(y0)) {
        return;
    }
    const uint32_t left = clamp_to_pixels(fmin(x0, x1) - radius, c->width),
                   right = clamp_to_pixels(fmax(x0, x1) + radius + 1, c->width);
    const uint32_t top = clamp_to_pixels(fmin(y0, y1) - radius, c->height);
    const uint32_t bottom = clamp_to_pixels(fmax(y0, y1) + radius + 1, c->height);
    for (uint32_t j = top; j < bottom; j++) {
        for (uint32_t i = left; i < right; i++) {
            const double x = i + 0.5 - x0, y = j + 0.5 - y0;
            const double at = square > 0 ? fmin(1, fmax(0, (x * dx + y * dy) / square)) : 0;
            if (hypot(x - at * dx, y - at * dy) <= radius) {
                c->pixel[(size_t)j * c->width + i] = color;
            }
        }
    }
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void write_u32(dt_str *out, uint32_t v)
{
    const char byte[] = {(char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v};
    dt_str_add_n(out, byte, sizeof(byte));
}

static void write_chunk(dt_str *out, const char *type, const void *data, size_t bytes)
{
    write_u32(out, (uint32_t)bytes);
    dt_str_add_n(out, type, 4);
    dt_str_add_n(out, data, bytes);
    const uLong crc = crc32(crc32(0, (const Bytef *)type, 4), data, (uInt)bytes);
    write_u32(out, (uint32_t)(bytes > 0 ? crc : crc32(0, (const Bytef *)type, 4)));
}

dt_status dt_canvas_write_png(const dt_canvas *c, dt_str *out)
{
    const size_t row = (size_t)c->width + 1; /* its filter, none, in front */
    uLongf bytes = compressBound((uLong)(row * c->height));
    uint8_t *rows = dt_alloc_n(c->height, row);
    uint8_t *packed = dt_alloc(bytes);
    dt_status st = rows != NULL && packed != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for a picture's file");
    for (uint32_t j = 0; j < c->height && st == DT_OK; j++) {
        memcpy(rows + j * row + 1, c->pixel + (size_t)j * c->width, c->width);
    }
    if (st == DT_OK && compress2(packed, &bytes, rows, (uLong)(row * c->height), Z_BEST_SPEED) != Z_OK) {
        st = DT_FAIL(DT_ENOMEM, "out of memory for a picture's file");
    }
    if (st == DT_OK) {
        dt_str head = {0};
        write_u32(&head, c->width);
        write_u32(&head, c->height);
        dt_str_add_n(&head, (const char[]){DEPTH, PALETTE, 0, 0, 0}, 5);
        dt_str_add_n(out, "\x89PNG\r\n\x1a\n", 8);
        write_chunk(out, "IHDR", dt_str_text(&head), head.bytes);
        write_chunk(out, "PLTE", c->color, sizeof(c->color));
        write_chunk(out, "IDAT", packed, bytes);
        write_chunk(out, "IEND", "", 0);
        out->failed = out->failed || head.failed;
        dt_str_fini(&head);
        st = dt_str_status(out);
    }
    dt_free(rows);
    dt_free(packed);
    return st;
}
