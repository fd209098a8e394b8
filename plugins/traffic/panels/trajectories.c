/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicted traffic: scenes that an evaluation left ("trajectories" of svc/metrics.h), from above, turned so that their
 * longest extent is across the page. Of every vehicle where it came from, where it went, where the model thought it
 * would be with one standard deviation as a shade, and constant velocity. Of several futures each is drawn, stronger
 * the more probable it is, with its probability where it ends; where roads are known, the lane ahead.
 */
#include <config.h>

#include "traffic/panels/panels.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/report/html.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STEPS = 256, MAX_MARKS = 8, MAX_FUTURES = 16, POSE = 4, MAX_VEHICLES = 1024, MAX_SCENES = 64 };
enum { HISTORY, FUTURE, PREDICTED, CONSTANT, SPREAD, LANE, N_LINES };
static const char *const line_name[N_LINES] = {[HISTORY] = "history",   [FUTURE] = "future", [PREDICTED] = "predicted",
                                               [CONSTANT] = "constant", [SPREAD] = "spread", [LANE] = "lane"};
static const double MARGIN_M = 5, WIDTH_M = 1.9; /* around the scene; of vehicles, which recordings often lack */
static const double LEAST_SHOWN = 0.05, LEAST_LABELLED = 0.15; /* probabilities of futures: drawn, written */
static const double WIDE = 2.4, SHAPE = 1.5; /* width over height from where a scene gets a row of its own; of others */

typedef struct line {
    double at[MAX_STEPS][2];
    uint32_t n;
} line;

typedef struct vehicle {
    double pose[POSE]; /* x, y, heading, length */
    line line[N_LINES];
    line way[MAX_FUTURES]; /* futures */
    double probability[MAX_FUTURES];
} vehicle;

typedef struct scene {
    double rmse_m, share;
    vehicle *vehicle;
    uint32_t n_vehicles, cap;
    bool is_cut;         /* a vehicle had no room */
    double cos_a, sin_a; /* of the angle that the scene is turned back by */
    double low[2], high[2];
} scene;

typedef struct survey { /* what the file of a run has */
    uint32_t number[MAX_SCENES];
    double share[MAX_SCENES]; /* of the scenes that are better */
    uint32_t n_scenes;
    uint32_t mark[MAX_MARKS], n_marks; /* steps of the horizons */
    bool has_futures, has_lanes;
    double typical, worst; /* shares of the scenes that are shown; the others are opened by a click */
} survey;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static vehicle *scene_vehicle(scene *s, uint32_t j)
{
    if (j >= MAX_VEHICLES) {
        return NULL;
    }
    if (j >= s->cap) {
        const uint32_t cap = j < 16 ? 16 : 2 * j;
        vehicle *grown = dt_realloc(s->vehicle, cap * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        s->vehicle = grown;
        s->cap = cap;
    }
    while (s->n_vehicles <= j) {
        s->vehicle[s->n_vehicles++] = (vehicle){0};
    }
    return &s->vehicle[j];
}

/* "future/3/1", "futures/2/3/1", "probability/2" or "pose/2" of a vehicle */
static void read_number(vehicle *v, const char *path, double value)
{
    uint32_t row = 0, column = 0;
    if (sscanf(path, "pose/%u", &column) == 1 && column < POSE) {
        v->pose[column] = value;
        return;
    }
    uint32_t which = 0;
    if (sscanf(path, "probability/%u", &which) == 1 && which < MAX_FUTURES) {
        v->probability[which] = value;
        return;
    }
    if (sscanf(path, "futures/%u/%u/%u", &which, &row, &column) == 3) {
        if (which < MAX_FUTURES && row < MAX_STEPS && column < 2) {
            v->way[which].at[row][column] = value;
            v->way[which].n = row + 1 > v->way[which].n ? row + 1 : v->way[which].n;
        }
        return;
    }
    for (int k = 0; k < N_LINES; k++) {
        const size_t bytes = strlen(line_name[k]);
        if (strncmp(path, line_name[k], bytes) == 0 && sscanf(path + bytes, "/%u/%u", &row, &column) == 2 &&
            row < MAX_STEPS && column < 2) {
            v->line[k].at[row][column] = value;
            v->line[k].n = row + 1 > v->line[k].n ? row + 1 : v->line[k].n;
        }
    }
}

/* A value below "trajectories/"; of a scene its number, its share, and whether it has futures and lanes. */
static void survey_value(void *user, const char *path, double value)
{
    survey *v = user;
    uint32_t i = 0;
    int bytes = 0;
    if (sscanf(path, "trajectories/horizon/%u", &i) == 1) {
        if (i < MAX_MARKS && value >= 0) {
            v->mark[i] = (uint32_t)dt_i64_within(value, 0, UINT32_MAX);
            v->n_marks = i + 1;
        }
        return;
    }
    if (sscanf(path, "trajectories/%u/%n", &i, &bytes) != 1 || bytes == 0) {
        return;
    }
    if ((v->n_scenes == 0 || v->number[v->n_scenes - 1] != i) && v->n_scenes < MAX_SCENES) {
        v->share[v->n_scenes] = NAN;
        v->number[v->n_scenes++] = i;
    }
    v->has_futures = v->has_futures || strstr(path, "/futures/") != NULL;
    v->has_lanes = v->has_lanes || strstr(path, "/lane/") != NULL;
    if (strncmp(path + bytes, "share/", 6) == 0 && v->number[v->n_scenes - 1] == i) {
        v->share[v->n_scenes - 1] = value;
        v->worst = fmax(v->worst, value);
        v->typical = isnan(v->typical) || fabs(value - 0.5) < fabs(v->typical - 0.5) ? value : v->typical;
    }
}

static void read_value(void *user, const char *path, double value)
{
    scene *s = user;
    uint32_t i = 0, j = 0;
    int bytes = 0;
    if (sscanf(path, "trajectories/%u/%n", &i, &bytes) != 1 || bytes == 0) {
        return;
    }
    const char *rest = path + bytes;
    s->rmse_m = strncmp(rest, "rmse_m/", 7) == 0 ? value : s->rmse_m;
    s->share = strncmp(rest, "share/", 6) == 0 ? value : s->share;
    if (sscanf(rest, "vehicle/%u/%n", &j, &bytes) == 1 && isfinite(value)) {
        vehicle *v = scene_vehicle(s, j);
        s->is_cut = s->is_cut || v == NULL;
        if (v != NULL) {
            read_number(v, rest + bytes, value);
        }
    }
}

static dt_status read_scene(const dt_panel_view *p, uint32_t run, uint32_t number, scene *s)
{
    char prefix[48];
    *s = (scene){.rmse_m = NAN, .share = NAN};
    snprintf(prefix, sizeof(prefix), "trajectories/%u/", number);
    DT_TRY(p->pictures(p, run, prefix, read_value, s));
    if (s->is_cut) {
        dt_free(s->vehicle);
        return DT_FAIL(DT_EDATA, "a scene of pictures has more than %d vehicles, or memory is short", MAX_VEHICLES);
    }
    return DT_OK;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static void turn_point(const scene *s, const double at[2], double out[2])
{
    out[0] = at[0] * s->cos_a + at[1] * s->sin_a;
    out[1] = at[0] * s->sin_a - at[1] * s->cos_a; /* pictures grow downwards */
}

/* Along the scene's longest extent: the first principal direction of all that was recorded. */
static void orient_scene(scene *s)
{
    double n = 0, mean[2] = {0, 0}, xx = 0, yy = 0, xy = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t v = 0; v < s->n_vehicles; v++) {
            for (int k = HISTORY; k <= FUTURE; k++) {
                const line *l = &s->vehicle[v].line[k];
                for (uint32_t i = 0; i < l->n; i++) {
                    const double x = l->at[i][0] - mean[0], y = l->at[i][1] - mean[1];
                    n += pass == 0;
                    xx += pass == 0 ? x : x * x;
                    yy += pass == 0 ? y : y * y;
                    if (pass != 0) {
                        xy += x * y;
                    }
                }
            }
        }
        if (pass == 0) {
            mean[0] = n > 0 ? xx / n : 0;
            mean[1] = n > 0 ? yy / n : 0;
            xx = yy = 0;
        }
    }
    const double angle = 0.5 * atan2(2 * xy, xx - yy);
    s->cos_a = cos(angle);
    s->sin_a = sin(angle);
    s->low[0] = s->low[1] = INFINITY;
    s->high[0] = s->high[1] = -INFINITY;
    for (uint32_t v = 0; v < s->n_vehicles; v++) {
        for (int k = HISTORY; k <= CONSTANT; k++) {
            const line *l = &s->vehicle[v].line[k];
            for (uint32_t i = 0; i < l->n; i++) {
                double at[2];
                turn_point(s, l->at[i], at);
                for (int a = 0; a < 2; a++) {
                    s->low[a] = fmin(s->low[a], at[a] - MARGIN_M);
                    s->high[a] = fmax(s->high[a], at[a] + MARGIN_M);
                }
            }
        }
    }
}

static void write_point(const scene *s, const double at[2], const char *before, dt_str *out)
{
    double p[2];
    turn_point(s, at, p);
    dt_str_addf(out, "%s%.1f %.1f", before, p[0] - s->low[0], p[1] - s->low[1]);
}

static void write_line(const scene *s, const vehicle *v, int k, bool from_pose, dt_str *out)
{
    const line *l = &v->line[k];
    if (l->n == 0) {
        return;
    }
    dt_str_addf(out, "<path class=\"%s\" d=\"", line_name[k]);
    if (from_pose) {
        write_point(s, v->pose, "M", out);
    }
    for (uint32_t i = 0; i < l->n; i++) {
        write_point(s, l->at[i], i > 0 || from_pose ? "L" : "M", out);
    }
    dt_str_add(out, "\"/>");
}

/* Each future, and its probability where it ends. */
static void write_futures(const scene *s, const vehicle *v, dt_str *out)
{
    for (uint32_t k = 0; k < MAX_FUTURES; k++) {
        const line *l = &v->way[k];
        const double p = fmin(fmax(v->probability[k], 0), 1);
        if (l->n == 0 || p < LEAST_SHOWN) {
            continue;
        }
        dt_str_addf(out, "<path class=\"way\" stroke-opacity=\"%.2f\" d=\"", 0.25 + 0.75 * p);
        write_point(s, v->pose, "M", out);
        for (uint32_t i = 0; i < l->n; i++) {
            write_point(s, l->at[i], "L", out);
        }
        dt_str_add(out, "\"/>");
        if (p >= LEAST_LABELLED && p < 1) {
            double at[2];
            turn_point(s, l->at[l->n - 1], at);
            dt_str_addf(out, "<text class=\"share\" x=\"%.1f\" y=\"%.1f\">%.0f %%</text>", at[0] - s->low[0] + 0.5,
                        at[1] - s->low[1] - 0.5, 100 * p);
        }
    }
}

/* Dots as wide on a phone as on a wide screen: ends of a line without length. */
static void write_marks(const scene *s, const survey *of, const vehicle *v, int k, dt_str *out)
{
    const line *l = &v->line[k];
    dt_str_addf(out, "<path class=\"%s dots\" d=\"", line_name[k]);
    for (uint32_t i = 0; i < of->n_marks; i++) {
        if (of->mark[i] < l->n) {
            write_point(s, l->at[of->mark[i]], "M", out);
            dt_str_add(out, "h0");
        }
    }
    dt_str_add(out, "\"/>");
}

static void write_shade(const scene *s, const vehicle *v, dt_str *out)
{
    const line *l = &v->line[PREDICTED], *spread = &v->line[SPREAD];
    const double angle = -180 / acos(-1) * (v->pose[2] - atan2(s->sin_a, s->cos_a));
    for (uint32_t i = 0; i < l->n && i < spread->n; i++) {
        double p[2];
        turn_point(s, l->at[i], p);
        p[0] -= s->low[0];
        p[1] -= s->low[1];
        dt_str_addf(out,
                    "<ellipse cx=\"%.1f\" cy=\"%.1f\" rx=\"%.2f\" ry=\"%.2f\" transform=\"rotate(%.1f %.1f %.1f)\"/>",
                    p[0], p[1], fmin(spread->at[i][0], 200), fmin(spread->at[i][1], 200), angle, p[0], p[1]);
    }
}

static void write_body(const scene *s, const vehicle *v, dt_str *out)
{
    const double length = v->pose[3] > 0 ? v->pose[3] : 4.5;
    const double angle = -180 / acos(-1) * (v->pose[2] - atan2(s->sin_a, s->cos_a));
    double p[2];
    turn_point(s, v->pose, p);
    dt_str_addf(out,
                "<rect class=\"body\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" rx=\"0.5\" "
                "transform=\"translate(%.1f %.1f) rotate(%.1f)\"/>",
                -length / 2, -WIDTH_M / 2, length, WIDTH_M, p[0] - s->low[0], p[1] - s->low[1], angle);
}

static void write_caption(const scene *s, double across, dt_str *out)
{
    char text[DT_NUMBER_BYTES];
    const double percent = 100 * s->share;
    dt_str_add(out, "<figcaption><b>");
    if (percent >= 100) {
        dt_str_add(out, "The worst scene");
    } else if (fabs(percent - 50) < 2) {
        dt_str_add(out, "A typical scene");
    } else {
        dt_str_addf(out, percent < 50 ? "%.0f %% of scenes are worse" : "%.0f %% of scenes are better",
                    percent < 50 ? 100 - percent : percent);
    }
    dt_str_addf(out, "</b><span>error at the last horizon <b>%s m</b></span>", dt_short_text(s->rmse_m, text));
    dt_str_addf(out, "<span>%u vehicles, %.0f m across</span></figcaption>", s->n_vehicles, across);
}

static void write_scene(const survey *of, scene *s, dt_str *out)
{
    orient_scene(s);
    const double across = s->high[0] - s->low[0], along = s->high[1] - s->low[1];
    const bool is_wide = across > WIDE * along;
    /* a single lane is not drawn as a hair, and what is not wide has one shape for all */
    const double h = is_wide ? fmax(along, across / 9) : fmax(along, across / SHAPE), w = is_wide ? across : h * SHAPE;
    s->low[0] -= (w - across) / 2;
    s->low[1] -= (h - along) / 2;
    dt_str_addf(out, "<figure class=\"scene paths%s\">", is_wide ? " wide" : "");
    write_caption(s, across, out);
    dt_str_addf(out,
                "<svg class=\"above\" viewBox=\"0 0 %.1f %.1f\" role=\"img\" aria-label=\"predicted trajectories\">", w,
                h);
    dt_str_add(out, "<g class=\"shade\">");
    for (uint32_t v = 0; v < s->n_vehicles; v++) {
        write_shade(s, &s->vehicle[v], out);
    }
    dt_str_add(out, "</g>");
    for (uint32_t v = 0; v < s->n_vehicles; v++) {
        const vehicle *u = &s->vehicle[v];
        dt_str_add(out, "<g class=\"vehicle\">");
        write_line(s, u, LANE, false, out);
        write_line(s, u, HISTORY, false, out);
        write_line(s, u, CONSTANT, true, out);
        write_line(s, u, FUTURE, true, out);
        write_futures(s, u, out);
        write_line(s, u, PREDICTED, true, out);
        write_marks(s, of, u, FUTURE, out);
        write_marks(s, of, u, PREDICTED, out);
        write_body(s, u, out);
        dt_str_add(out, "</g>");
    }
    dt_str_add(out, "</svg></figure>\n");
}

static void write_legend(const survey *of, dt_str *out)
{
    const struct {
        const char *class, *text;
        bool is_left_out;
    } key[] = {
        {"history", "recorded past", false},
        {"future", "recorded future", false},
        {"predicted", "predicted: a dot at each horizon, the shade is one standard deviation", false},
        {"way", "one of several futures, stronger the more probable; the prediction is their mean", !of->has_futures},
        {"constant", "constant velocity", false},
        {"lane", "where the lane leads", !of->has_lanes}};
    dt_str_add(out, "<p class=\"legend\">");
    for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++) {
        if (key[i].is_left_out) {
            continue;
        }
        dt_str_addf(out,
                    "<span><svg class=\"above key\" viewBox=\"0 0 26 8\"><path class=\"%s\" d=\"M1 4H25\"/></svg>"
                    "%s</span> ",
                    key[i].class, key[i].text);
    }
    dt_str_add(out, "</p>\n");
}

/* Either those that are shown at once, or the others. */
static dt_status write_scenes(const dt_panel_view *p, uint32_t run, const survey *of, bool are_shown, bool *is_open_p,
                              dt_str *out)
{
    bool is_first = true;
    for (uint32_t i = 0; i < of->n_scenes; i++) {
        scene s;
        const bool is_shown = of->share[i] == of->typical || of->share[i] == of->worst;
        if (is_shown != are_shown) {
            continue;
        }
        DT_TRY(read_scene(p, run, of->number[i], &s));
        if (s.n_vehicles > 0) {
            if (!*is_open_p) {
                dt_str_add(out, "<h3>Predicted and recorded trajectories</h3>\n");
                write_legend(of, out);
            }
            if (is_first) {
                dt_str_add(out, are_shown ? "" : "<details class=\"panel\"><summary>More scenes</summary>\n");
                dt_str_add(out, "<div class=\"scenes\">\n");
                dt_str_add(out, p->run_label(p, run));
            }
            *is_open_p = true;
            is_first = false;
            write_scene(of, &s, out);
        }
        dt_free(s.vehicle);
    }
    dt_str_add(out, is_first ? "" : are_shown ? "</div>\n" : "</div></details>\n");
    return DT_OK;
}

dt_status dt_panel_trajectories(const dt_panel_view *p, dt_str *out)
{
    bool is_open = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        survey of = {.typical = NAN, .worst = NAN};
        if (!p->is_first_of_group(p, i)) {
            continue;
        }
        DT_TRY(p->pictures(p, i, "trajectories/", survey_value, &of));
        DT_TRY(write_scenes(p, i, &of, true, &is_open, out));
        DT_TRY(write_scenes(p, i, &of, false, &is_open, out));
    }
    return DT_OK;
}
