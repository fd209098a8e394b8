/* SPDX-License-Identifier: Apache-2.0
 *
 * See event_pictures.h.
 */
#include <config.h>

#include "host/event_pictures.h"

#include "base/err.h"
#include "metrics/png.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dt_status put(dt_events *e, uint64_t step, const char *tag, const dt_canvas *c)
{
    dt_str png = {0};
    dt_status st = dt_canvas_png(c, &png);
    if (st == DT_OK) {
        st = dt_events_image(e, step, tag, c->width, c->height, &png);
    }
    dt_str_fini(&png);
    return st;
}

/* ---- a matrix ---------------------------------------------------------------------------------------------------- */

/* Row or column at which pixel i of n begins. */
static int64_t edge(uint32_t i, uint32_t n, int64_t items)
{
    return (int64_t)i * items / n;
}

static double mean_of(const dt_param *p, const float *value, const dt_canvas *c, uint32_t x, uint32_t y)
{
    double sum = 0;
    const int64_t top = edge(y, c->height, p->dim[0]), bottom = edge(y + 1, c->height, p->dim[0]);
    const int64_t left = edge(x, c->width, p->dim[1]), right = edge(x + 1, c->width, p->dim[1]);
    for (int64_t r = top; r < bottom; r++) {
        for (int64_t k = left; k < right; k++) {
            sum += value[r * p->dim[1] + k];
        }
    }
    return sum / (double)((bottom - top) * (right - left));
}

static void color_by_sign(dt_canvas *c)
{
    for (int i = 0; i < DT_CANVAS_COLORS; i++) { /* 128 is zero */
        const double v = fmax(-1, (i - 128) / 127.0), pale = 255 * (1 - fabs(v));
        c->color[i][0] = (uint8_t)(v > 0 ? 255 - 75 * v : pale);
        c->color[i][1] = (uint8_t)pale;
        c->color[i][2] = (uint8_t)(v < 0 ? 255 + 75 * v : pale);
    }
}

dt_status dt_event_matrix(dt_events *e, uint64_t step, const dt_param *p, const float *value)
{
    enum { MOST = 256 };
    dt_canvas c;
    char tag[192];
    double greatest = 0;
    const uint32_t width = (uint32_t)(p->dim[1] < MOST ? p->dim[1] : MOST);
    DT_TRY(dt_canvas_init(&c, width, (uint32_t)(p->dim[0] < MOST ? p->dim[0] : MOST)));
    color_by_sign(&c);
    for (int64_t i = 0; i < p->count; i++) {
        greatest = fmax(greatest, fabs((double)value[i]));
    }
    for (uint32_t y = 0; y < c.height; y++) {
        for (uint32_t x = 0; x < c.width; x++) {
            const double v = greatest > 0 ? mean_of(p, value, &c, x, y) / greatest : 0;
            c.pixel[(size_t)y * c.width + x] = isfinite(v) ? (uint8_t)(128 + lround(127 * v)) : 128;
        }
    }
    snprintf(tag, sizeof(tag), "weights/%.180s", p->name);
    const dt_status st = put(e, step, tag, &c);
    dt_canvas_fini(&c);
    return st;
}

/* ---- trajectories ------------------------------------------------------------------------------------------------ */

enum { SIZE = 480, MARGIN = 16, LEAST_M = 12, N_WAYS = 4 };
enum { PAPER, HISTORY, FUTURE, PREDICTED, CONSTANT, BODY, N_COLORS };

static const uint8_t color_of[N_COLORS][3] = {
    [PAPER] = {255, 255, 255},   [HISTORY] = {130, 130, 130}, [FUTURE] = {40, 150, 70},
    [PREDICTED] = {40, 90, 210}, [CONSTANT] = {225, 150, 60}, [BODY] = {205, 210, 220}};
static const struct {
    const char *name;
    uint8_t color;
} way[N_WAYS] = {{"/history", HISTORY}, {"/constant", CONSTANT}, {"/future", FUTURE}, {"/predicted", PREDICTED}};

typedef struct view {
    double left, top, width, height; /* x to the right, y upwards, in m */
    double scale;                    /* pixels a metre */
    dt_canvas c;
} view;

static double px(const view *v, double x)
{
    return MARGIN + (x - v->left) * v->scale;
}

static double py(const view *v, double y)
{
    return MARGIN + (v->top - y) * v->scale;
}

/* Number of the scene that a table is of; -1: it is of none. */
static long scene_of(const dt_report *r)
{
    static const char begin[] = "trajectories/";
    return strncmp(r->key, begin, sizeof(begin) - 1) == 0 ? strtol(r->key + sizeof(begin) - 1, NULL, 10) : -1;
}

/* The table's kind: index of way, -1 otherwise. */
static int way_of(const dt_report *r)
{
    const char *last = strrchr(r->key, '/');
    for (int i = 0; last != NULL && r->columns == 2 && i < N_WAYS; i++) {
        if (strcmp(last, way[i].name) == 0) {
            return i;
        }
    }
    return -1;
}

static bool is_pose(const dt_report *r)
{
    const char *last = strrchr(r->key, '/');
    return last != NULL && strcmp(last, "/pose") == 0 && r->n >= 4;
}

static void fit(view *v, const dt_report *r, uint32_t n, long scene)
{
    double right = -INFINITY, bottom = INFINITY;
    v->left = INFINITY;
    v->top = -INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t items = way_of(&r[i]) >= 0 ? r[i].n : is_pose(&r[i]) ? 2 : 0;
        for (uint32_t k = 0; scene_of(&r[i]) == scene && k + 1 < items; k += 2) {
            v->left = fmin(v->left, r[i].value[k]);
            right = fmax(right, r[i].value[k]);
            v->top = fmax(v->top, r[i].value[k + 1]);
            bottom = fmin(bottom, r[i].value[k + 1]);
        }
    }
    v->width = fmax(LEAST_M, right - v->left);
    v->height = fmax(LEAST_M, v->top - bottom);
    v->left = (v->left + right - v->width) / 2; /* what is narrow stands in the middle */
    v->top = (v->top + bottom + v->height) / 2;
    v->scale = (SIZE - 2 * MARGIN) / fmax(v->width, v->height);
}

static void draw_way(view *v, const dt_report *r, uint8_t color)
{
    for (uint32_t k = 0; k + 1 < r->n; k += 2) {
        const double x = px(v, r->value[k]), y = py(v, r->value[k + 1]);
        if (color == CONSTANT || k == 0) {
            dt_canvas_disc(&v->c, x, y, 1, color);
        } else {
            dt_canvas_line(&v->c, px(v, r->value[k - 2]), py(v, r->value[k - 1]), x, y, 1.2, color);
        }
    }
}

static void draw_body(view *v, const dt_report *r)
{
    const double half = r->value[3] / 2, dx = half * cos(r->value[2]), dy = half * sin(r->value[2]);
    dt_canvas_line(&v->c, px(v, r->value[0] - dx), py(v, r->value[1] - dy), px(v, r->value[0] + dx),
                   py(v, r->value[1] + dy), fmax(1.5, 0.9 * v->scale), BODY);
}

static void draw_table(view *v, const dt_report *r, long scene, int layer)
{
    if (scene_of(r) != scene) {
        return;
    }
    if (layer < 0 && is_pose(r)) {
        draw_body(v, r);
    } else if (layer >= 0 && way_of(r) == layer) {
        draw_way(v, r, way[layer].color);
    }
}

dt_status dt_event_trajectories(dt_events *e, uint64_t step, const dt_report *picture, uint32_t n)
{
    long n_scenes = 0;
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < n; i++) {
        n_scenes = scene_of(&picture[i]) + 1 > n_scenes ? scene_of(&picture[i]) + 1 : n_scenes;
    }
    for (long scene = 0; scene < n_scenes && st == DT_OK; scene++) {
        view v = {0};
        char tag[48];
        fit(&v, picture, n, scene);
        if (!isfinite(v.scale)) {
            continue; /* nothing to see */
        }
        DT_TRY(dt_canvas_init(&v.c, 2 * MARGIN + (uint32_t)(v.scale * v.width),
                              2 * MARGIN + (uint32_t)(v.scale * v.height)));
        memcpy(v.c.color, color_of, sizeof(color_of));
        for (int layer = -1; layer < N_WAYS; layer++) { /* bodies below */
            for (uint32_t i = 0; i < n; i++) {
                draw_table(&v, &picture[i], scene, layer);
            }
        }
        snprintf(tag, sizeof(tag), "trajectories/%ld", scene + 1);
        st = put(e, step, tag, &v.c);
        dt_canvas_fini(&v.c);
    }
    return st;
}
