/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/tensorboard/event_pictures.h"

#include "base/err.h"
#include "telemetry/metrics/png.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dt_status set_pixel(dt_events *e, uint64_t step, const char *tag, const dt_canvas *c)
{
    dt_str png = {0};
    dt_status st = dt_canvas_write_png(c, &png);
    if (st == DT_OK) {
        st = dt_events_write_image(e, step, tag, c->width, c->height, &png);
    }
    dt_str_fini(&png);
    return st;
}

/* ---- a matrix ---------------------------------------------------------------------------------------------------- */

/* Row or column at which pixel i of n begins. */
static int64_t pixel_edge(uint32_t i, uint32_t n, int64_t items)
{
    return (int64_t)i * items / n;
}

static double mean_of_pixel(const dt_param *p, const float *value, const dt_canvas *c, uint32_t x, uint32_t y)
{
    double sum = 0;
    const int64_t top = pixel_edge(y, c->height, p->dim[0]), bottom = pixel_edge(y + 1, c->height, p->dim[0]);
    const int64_t left = pixel_edge(x, c->width, p->dim[1]), right = pixel_edge(x + 1, c->width, p->dim[1]);
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

dt_status dt_event_write_matrix(dt_events *e, uint64_t step, const dt_param *p, const float *value)
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
            const double v = greatest > 0 ? mean_of_pixel(p, value, &c, x, y) / greatest : 0;
            c.pixel[(size_t)y * c.width + x] = isfinite(v) ? (uint8_t)(128 + lround(127 * v)) : 128;
        }
    }
    snprintf(tag, sizeof(tag), "weights/%.180s", p->name);
    const dt_status st = set_pixel(e, step, tag, &c);
    dt_canvas_fini(&c);
    return st;
}

/* ---- the view from above ----------------------------------------------------------------------------------------- */

enum { SIZE = 480, MARGIN = 16, LEAST_M = 12 };

typedef struct view {
    double left, right, top, bottom; /* x to the right, y upwards, in m */
    double scale;                    /* pixels a metre */
    dt_canvas c;
} view;

static double pixel_x(const view *v, double x)
{
    return MARGIN + (x - v->left) * v->scale;
}

static double pixel_y(const view *v, double y)
{
    return MARGIN + (v->top - y) * v->scale;
}

static void begin_view(view *v)
{
    *v = (view){.left = INFINITY, .right = -INFINITY, .top = -INFINITY, .bottom = INFINITY};
}

static void extend_view(view *v, double x, double y)
{
    v->left = fmin(v->left, x);
    v->right = fmax(v->right, x);
    v->top = fmax(v->top, y);
    v->bottom = fmin(v->bottom, y);
}

/* The canvas; DT_DONE where there is nothing to see. */
static dt_status open_view(view *v, const uint8_t (*color)[3], size_t n_colors)
{
    if (!isfinite(v->right - v->left + v->top - v->bottom)) {
        return DT_DONE;
    }
    const double wide = fmax(0, LEAST_M - (v->right - v->left)) / 2, high = fmax(0, LEAST_M - (v->top - v->bottom)) / 2;
    extend_view(v, v->left - wide, v->bottom - high); /* what is narrow is in the middle */
    extend_view(v, v->right + wide, v->top + high);
    v->scale = (SIZE - 2 * MARGIN) / fmax(v->right - v->left, v->top - v->bottom);
    DT_TRY(dt_canvas_init(&v->c, 2 * MARGIN + (uint32_t)(v->scale * (v->right - v->left)),
                          2 * MARGIN + (uint32_t)(v->scale * (v->top - v->bottom))));
    memcpy(v->c.color, color, n_colors * sizeof(*color));
    return DT_OK;
}

/* A bar from its middle x, y along heading, half of it to each side. */
static void draw_bar(view *v, double x, double y, double heading, double length, double radius, uint8_t color)
{
    const double dx = length / 2 * cos(heading), dy = length / 2 * sin(heading);
    dt_canvas_draw_line(&v->c, pixel_x(v, x - dx), pixel_y(v, y - dy), pixel_x(v, x + dx), pixel_y(v, y + dy), radius,
                        color);
}

/* ---- trajectories ------------------------------------------------------------------------------------------------ */

enum { N_KINDS = 4 };
enum { PAPER, HISTORY, FUTURE, PREDICTED, CONSTANT, BODY, N_COLORS };

static const uint8_t color_of[N_COLORS][3] = {
    [PAPER] = {255, 255, 255},   [HISTORY] = {130, 130, 130}, [FUTURE] = {40, 150, 70},
    [PREDICTED] = {40, 90, 210}, [CONSTANT] = {225, 150, 60}, [BODY] = {205, 210, 220}};
static const struct {
    const char *name;
    uint8_t color;
} trajectory[N_KINDS] = {
    {"/history", HISTORY}, {"/constant", CONSTANT}, {"/future", FUTURE}, {"/predicted", PREDICTED}};

/* Number of the scene that a table is of; -1: it is of none. */
static long scene_of_table(const dt_result *r)
{
    static const char begin[] = "trajectories/";
    return strncmp(r->key, begin, sizeof(begin) - 1) == 0 ? strtol(r->key + sizeof(begin) - 1, NULL, 10) : -1;
}

/* The table's kind: index of trajectory, -1 otherwise. */
static int kind_of_table(const dt_result *r)
{
    const char *last = strrchr(r->key, '/');
    if (last != NULL && r->columns == 2) {
        for (int i = 0; i < N_KINDS; i++) {
            if (strcmp(last, trajectory[i].name) == 0) {
                return i;
            }
        }
    }
    return -1;
}

static bool is_pose_result(const dt_result *r)
{
    const char *last = strrchr(r->key, '/');
    return last != NULL && strcmp(last, "/pose") == 0 && r->n >= 4;
}

static void fit_view(view *v, const dt_result *r, uint32_t n, long scene)
{
    begin_view(v);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t items = kind_of_table(&r[i]) >= 0 ? r[i].n : is_pose_result(&r[i]) ? 2 : 0;
        for (uint32_t k = 0; scene_of_table(&r[i]) == scene && k + 1 < items; k += 2) {
            extend_view(v, r[i].value[k], r[i].value[k + 1]);
        }
    }
}

static void draw_trajectory(view *v, const dt_result *r, uint8_t color)
{
    for (uint32_t k = 0; k + 1 < r->n; k += 2) {
        const double x = pixel_x(v, r->value[k]), y = pixel_y(v, r->value[k + 1]);
        if (color == CONSTANT || k == 0) {
            dt_canvas_draw_disc(&v->c, x, y, 1, color);
        } else {
            dt_canvas_draw_line(&v->c, pixel_x(v, r->value[k - 2]), pixel_y(v, r->value[k - 1]), x, y, 1.2, color);
        }
    }
}

static void draw_table(view *v, const dt_result *r, long scene, int layer)
{
    if (scene_of_table(r) != scene) {
        return;
    }
    if (layer < 0 && is_pose_result(r)) {
        draw_bar(v, r->value[0], r->value[1], r->value[2], r->value[3], fmax(1.5, 0.9 * v->scale), BODY);
    } else if (layer >= 0 && kind_of_table(r) == layer) {
        draw_trajectory(v, r, trajectory[layer].color);
    }
}

dt_status dt_event_write_trajectories(dt_events *e, uint64_t step, const dt_result *picture, uint32_t n)
{
    long n_scenes = 0;
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < n; i++) {
        n_scenes = scene_of_table(&picture[i]) + 1 > n_scenes ? scene_of_table(&picture[i]) + 1 : n_scenes;
    }
    for (long scene = 0; scene < n_scenes && st == DT_OK; scene++) {
        view v;
        char tag[48];
        fit_view(&v, picture, n, scene);
        st = open_view(&v, color_of, N_COLORS);
        if (st != DT_OK) {
            st = st == DT_DONE ? DT_OK : st;
            continue;
        }
        for (int layer = -1; layer < N_KINDS; layer++) { /* bodies below */
            for (uint32_t i = 0; i < n; i++) {
                draw_table(&v, &picture[i], scene, layer);
            }
        }
        snprintf(tag, sizeof(tag), "trajectories/%ld", scene + 1);
        st = set_pixel(e, step, tag, &v.c);
        dt_canvas_fini(&v.c);
    }
    return st;
}

/* ---- episodes ---------------------------------------------------------------------------------------------------- */

enum { RISKS = 32 };
enum { LINE = 1, RED, YELLOW, GREEN, UNKNOWN, CALM, N_FILM = CALM + RISKS };
enum { OF_LINE = 4, OF_BODY = 9, OF_MARK = 7 }; /* columns (svc/metrics.h) */

static void set_film_colors(uint8_t (*color)[3])
{
    static const uint8_t fixed[CALM][3] = {
        {255, 255, 255},           [LINE] = {226, 228, 232}, [RED] = {215, 40, 40},
        [YELLOW] = {235, 185, 30}, [GREEN] = {40, 165, 75},  [UNKNOWN] = {90, 95, 105}};
    memcpy(color, fixed, sizeof(fixed));
    for (int i = 0; i < RISKS; i++) { /* from blue by orange to red */
        const double x = (double)i / (RISKS - 1);
        color[CALM + i][0] = (uint8_t)(60 + 170 * fmin(1, 2 * x));
        color[CALM + i][1] = (uint8_t)(120 + 20 * fmin(1, 2 * x) - 110 * fmax(0, 2 * x - 1));
        color[CALM + i][2] = (uint8_t)(215 - 175 * fmin(1, 2 * x));
    }
}

static void draw_lines(view *v, const dt_result *r)
{
    for (uint32_t k = OF_LINE; k + OF_LINE <= r->n; k += OF_LINE) {
        const double *to = &r->value[k], *from = to - OF_LINE; /* lane, x, y, width */
        if (from[0] == to[0]) {
            dt_canvas_draw_line(&v->c, pixel_x(v, from[1]), pixel_y(v, from[2]), pixel_x(v, to[1]), pixel_y(v, to[2]),
                                fmax(1, to[3] / 2 * v->scale), LINE);
        }
    }
}

static void draw_bodies(view *v, const dt_result *r)
{
    for (uint32_t k = 0; k + OF_BODY <= r->n; k += OF_BODY) {
        const double *c = &r->value[k]; /* id, x, y, heading, length, width, speed, risk, mark */
        const double risk = fmin(1, fmax(0, c[7]));
        const int color = isnan(c[7]) ? UNKNOWN : CALM + (int)lround(risk * (RISKS - 1));
        draw_bar(v, c[1] - c[4] / 2 * cos(c[3]), c[2] - c[4] / 2 * sin(c[3]), c[3], c[4],
                 fmax(1.5, c[5] / 2 * v->scale), (uint8_t)color);
    }
}

static void draw_marks(view *v, const dt_result *r)
{
    static const uint8_t color[] = {RED, YELLOW, GREEN, GREEN}; /* DT_SCENE_* */
    for (uint32_t k = 0; k + OF_MARK <= r->n; k += OF_MARK) {
        const double *c = &r->value[k]; /* x, y, heading, width, state, mark, agent */
        const bool is_known = c[4] >= 0 && c[4] < sizeof(color);
        draw_bar(v, c[0], c[1], c[2] + M_PI_2, c[3], 1.5, is_known ? color[(int)c[4]] : UNKNOWN);
    }
}

static const dt_result *find_table(const dt_result *picture, uint32_t n, uint32_t columns, const char *key)
{
    for (uint32_t i = 0; i < n; i++) {
        if (picture[i].columns == columns && strcmp(picture[i].key, key) == 0) {
            return &picture[i];
        }
    }
    return NULL;
}

/* Moments that are shown of a film: the first, the last, and some between. */
static bool is_moment_shown(uint32_t moment, uint32_t n)
{
    enum { MOST = 6 };
    for (uint32_t i = 0; i < MOST && n > MOST; i++) {
        if (moment == i * (n - 1) / (MOST - 1)) {
            return true;
        }
    }
    return n <= MOST;
}

static uint32_t count_moments(const dt_result *picture, uint32_t n)
{
    uint32_t moments = 0;
    for (uint32_t i = 0; i < n; i++) {
        unsigned moment = 0;
        if (sscanf(picture[i].key, "traffic/moment/%u/", &moment) == 1 && moment >= moments) {
            moments = moment + 1;
        }
    }
    return moments;
}

dt_status dt_event_write_film(dt_events *e, uint64_t step, const dt_result *picture, uint32_t n)
{
    const uint32_t moments = count_moments(picture, n);
    uint32_t n_shown = 0;
    uint8_t color[N_FILM][3];
    dt_status st = DT_OK;
    const dt_result *line = find_table(picture, n, OF_LINE, "traffic/road"), *bodies = NULL;
    set_film_colors(color);
    for (uint32_t i = 0; st == DT_OK && line != NULL && i < moments; i++) {
        view v;
        char key[64], tag[48];
        if (!is_moment_shown(i, moments)) {
            continue;
        }
        snprintf(key, sizeof(key), "traffic/moment/%u/vehicle", i);
        bodies = find_table(picture, n, OF_BODY, key);
        snprintf(key, sizeof(key), "traffic/moment/%u/signal", i);
        const dt_result *marks = find_table(picture, n, OF_MARK, key);
        if (bodies == NULL && marks == NULL) {
            continue;
        }
        begin_view(&v);
        for (uint32_t k = 0; k + OF_LINE <= line->n; k += OF_LINE) {
            extend_view(&v, line->value[k + 1], line->value[k + 2]);
        }
        st = open_view(&v, (const uint8_t(*)[3])color, N_FILM);
        if (st != DT_OK) {
            return st == DT_DONE ? DT_OK : st;
        }
        draw_lines(&v, line);
        if (marks != NULL) {
            draw_marks(&v, marks);
        }
        if (bodies != NULL) {
            draw_bodies(&v, bodies);
        }
        snprintf(tag, sizeof(tag), "traffic/%u", ++n_shown);
        st = set_pixel(e, step, tag, &v.c);
        dt_canvas_fini(&v.c);
    }
    return st;
}
