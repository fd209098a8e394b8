/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/film.h"

#include "base/err.h"
#include "base/mem.h"
#include "dtrain/helpers.h"
#include "telemetry/report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 1 << 20, MAX_FRAMES = 4096 };
enum { ID, X, Y, HEADING, LENGTH, WIDTH, SPEED, RISK, STATUS };               /* columns of bodies */
enum { MARK_X, MARK_Y, MARK_HEADING, MARK_WIDTH, STATE, MARK_STATUS, AGENT }; /* of marks */
enum { STATUS_AGENT = 1, STATUS_CHANGED };
static const double MARGIN_M = 8, MARGIN = 0.025;   /* around the lines, at least; as a part of them: room for rings */
static const double LEAST_PX = 12, LARGEST = 6;     /* of a body's length; times that it is enlarged */
#define LARGEST_NUMBER 3.4e38                       /* sums and products of these are numbers */
static const double LARGEST_MARK = 3, MARKS_M = 30; /* times that a mark is enlarged; between marks of one group */
enum { UNKNOWN = 4, N_STATES = 4 };                 /* colour of a body; of marks */
static const char *const state_name[N_STATES] = {"red", "yellow", "green", "yield"};
/* Risk from which a body has the next colour. */
static const double RISK_STEP[DT_FILM_RISKS][3] = {[DT_FILM_RISK_COMPUTED] = {0.05, 0.35, 0.7},
                                                   [DT_FILM_RISK_PREDICTED] = {0.2, 0.5, 0.8},
                                                   [DT_FILM_RISK_UNTRAINED] = {0.05, 0.35, 0.7}};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static dt_status set_cell(dt_film_rows *r, uint32_t columns, uint32_t row, uint32_t column, double value)
{
    if (row >= MAX_ROWS) {
        return DT_FAIL(DT_EDATA, "a picture of an episode has more than %d rows", MAX_ROWS);
    }
    if (row >= r->cap) {
        const uint32_t cap = row < 32 ? 64 : 2 * row;
        double *grown = dt_realloc(r->value, (size_t)cap * columns * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for a picture of %u rows", row);
        }
        r->value = grown;
        r->cap = cap;
    }
    while (r->n <= row) {
        for (uint32_t i = 0; i < columns; i++) {
            r->value[(size_t)r->n * columns + i] = 0;
        }
        r->n++;
    }
    if (column < columns) {
        r->value[(size_t)row * columns + column] = value;
    }
    return DT_OK;
}

static dt_status add_frame(dt_film *s, uint32_t i, dt_film_frame **out_p)
{
    if (i >= MAX_FRAMES) {
        return DT_FAIL(DT_EDATA, "an episode has more than %d pictures", MAX_FRAMES);
    }
    if (i >= s->cap_frames) {
        const uint32_t cap = i < 8 ? 16 : 2 * i;
        dt_film_frame *grown = dt_realloc(s->frame, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u pictures of an episode", cap);
        }
        s->frame = grown;
        s->cap_frames = cap;
    }
    while (s->n_frames <= i) {
        s->frame[s->n_frames++] = (dt_film_frame){.time_s = NAN, .delay_s = NAN};
    }
    *out_p = &s->frame[i];
    return DT_OK;
}

/* "traffic/moment/3/vehicle/12/1" and the like. */
static dt_status read_value(dt_film *s, const char *path, double value)
{
    uint32_t i = 0, row = 0, column = 0;
    int bytes = 0;
    dt_film_frame *m = NULL;
    if (sscanf(path, "traffic/road/%u/%u", &row, &column) == 2) {
        return set_cell(&s->line, DT_FILM_LINE, row, column, value);
    }
    if (strncmp(path, "traffic/colours/", 16) == 0) {
        s->risk_source = value >= 0 && value < DT_FILM_RISKS ? (uint32_t)value : DT_FILM_RISK_COMPUTED;
        return DT_OK;
    }
    if (sscanf(path, "traffic/moment/%u/%n", &i, &bytes) != 1 || bytes == 0) {
        return DT_OK;
    }
    DT_TRY(add_frame(s, i, &m));
    if (sscanf(path + bytes, "vehicle/%u/%u", &row, &column) == 2) {
        return set_cell(&m->body, DT_FILM_BODY, row, column, value);
    }
    if (sscanf(path + bytes, "signal/%u/%u", &row, &column) == 2) {
        return set_cell(&m->mark, DT_FILM_MARK, row, column, value);
    }
    m->time_s = strncmp(path + bytes, "time/", 5) == 0 ? value : m->time_s;
    m->delay_s = strncmp(path + bytes, "delay/", 6) == 0 && fabs(value) <= LARGEST_NUMBER ? value : m->delay_s;
    return DT_OK;
}

dt_status dt_film_add(dt_film *s, const char *key, const double *value, uint32_t n, uint32_t columns)
{
    const bool is_traffic = strncmp(key, "traffic/", 8) == 0;
    for (uint32_t i = 0; i < n && is_traffic; i++) {
        char path[160];
        if (columns > 0) {
            snprintf(path, sizeof(path), "%s/%u/%u", key, i / columns, i % columns);
        } else {
            snprintf(path, sizeof(path), "%s/%u", key, i);
        }
        DT_TRY(read_value(s, path, value[i]));
    }
    return DT_OK;
}

/* What is no number, or none that f32 could hold, cannot be drawn, nor can what comes of it; a risk may be unknown. */
static void remove_invalid_rows(dt_film_rows *r, uint32_t columns)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        bool is_whole = true;
        for (uint32_t k = 0; k < columns; k++) {
            const bool may_be_unknown = columns == DT_FILM_BODY && k == RISK;
            is_whole = is_whole && (may_be_unknown || fabs(r->value[(size_t)i * columns + k]) <= LARGEST_NUMBER);
        }
        if (is_whole) {
            memmove(r->value + (size_t)n++ * columns, r->value + (size_t)i * columns, columns * sizeof(*r->value));
        }
    }
    r->n = n;
}

void dt_film_remove_invalid(dt_film *s)
{
    remove_invalid_rows(&s->line, DT_FILM_LINE);
    for (uint32_t i = 0; i < s->n_frames; i++) {
        remove_invalid_rows(&s->frame[i].body, DT_FILM_BODY);
        remove_invalid_rows(&s->frame[i].mark, DT_FILM_MARK);
    }
    for (int a = 0; a < 2; a++) {
        s->low[a] = INFINITY;
        s->high[a] = -INFINITY;
        for (uint32_t i = 0; i < s->line.n; i++) {
            const double at = s->line.value[(size_t)i * DT_FILM_LINE + 1 + (uint32_t)a];
            s->low[a] = fmin(s->low[a], at);
            s->high[a] = fmax(s->high[a], at);
        }
    }
    const double margin = fmax(MARGIN_M, MARGIN * fmax(s->high[0] - s->low[0], s->high[1] - s->low[1]));
    for (int a = 0; a < 2; a++) {
        s->low[a] -= margin;
        s->high[a] += margin;
    }
}

dt_status dt_film_read(const dt_flat *f, dt_film *out)
{
    *out = (dt_film){.n_frames = 0};
    for (uint32_t i = 0; i < f->n; i++) {
        if (strncmp(f->item[i].path, "traffic/", 8) == 0) {
            const dt_status st = read_value(out, f->item[i].path, f->item[i].number);
            if (st < 0) {
                dt_film_fini(out);
                return st;
            }
        }
    }
    dt_film_remove_invalid(out);
    return DT_OK;
}

void dt_film_fini(dt_film *s)
{
    for (uint32_t i = 0; i < s->n_frames; i++) {
        dt_free(s->frame[i].body.value);
        dt_free(s->frame[i].mark.value);
    }
    dt_free(s->frame);
    dt_free(s->line.value);
    *s = (dt_film){0};
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

const dt_scene_labels *dt_film_read_labels(const void *scene_api)
{
    const dt_scene_api *api = scene_api;
    const dt_scene_labels *l = api != NULL && DT_HAS(api, labels) ? api->labels : NULL;
    bool is_whole = l != NULL && l->scene != NULL && l->bodies != NULL;
    for (int i = 0; i < N_STATES && is_whole; i++) {
        is_whole = l->risk[i] != NULL && l->state[i] != NULL;
    }
    return is_whole ? l : NULL;
}

static const dt_scene_labels *scene_labels_of(const dt_film *s)
{
    static const dt_scene_labels general = {.struct_size = sizeof(general),
                                            .scene = "scene",
                                            .bodies = "bodies",
                                            .risk = {"low", "moderate", "high", "very high"},
                                            .state = {"red", "yellow", "green", "light green"}};
    return s->labels != NULL ? s->labels : &general;
}

static void write_lines(const dt_film *s, dt_str *out)
{
    double line = NAN;
    for (int k = 0; k < 2; k++) { /* as wide as it is, and never thinner than a hair */
        dt_str_addf(out, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"", k == 0 ? "hair" : "track",
                    k == 0 ? 1.0 : s->line.value[3]);
        for (uint32_t i = 0; i < s->line.n; i++) {
            const double *row = s->line.value + (size_t)i * DT_FILM_LINE;
            dt_str_addf(out, "%c%.1f %.1f", i == 0 || row[0] != line ? 'M' : 'L', row[1] - s->low[0],
                        s->high[1] - row[2]);
            line = row[0];
        }
        dt_str_add(out, "\"/>");
    }
}

/* A mark is a bar across its heading, which is two pixels where a large scene is shown. Neighbours with one agent and
 * one heading grow around their common middle, so that none covers another. */
static void middle_of_marks(const dt_film_rows *mark, uint32_t i, double out[2])
{
    const double *v = mark->value + (size_t)i * DT_FILM_MARK;
    uint32_t n = 0;
    out[0] = out[1] = 0;
    for (int step = -1; step <= 1; step += 2) { /* those of a group follow each other */
        for (uint32_t k = step < 0 ? i : i + 1; k < mark->n; k += (uint32_t)step) {
            const double *w = mark->value + (size_t)k * DT_FILM_MARK;
            if (w[AGENT] != v[AGENT] || fabs(w[MARK_HEADING] - v[MARK_HEADING]) > 0.1 ||
                hypot(w[MARK_X] - v[MARK_X], w[MARK_Y] - v[MARK_Y]) > MARKS_M) {
                break;
            }
            out[0] += w[MARK_X];
            out[1] += w[MARK_Y];
            n++;
        }
    }
    out[0] /= n;
    out[1] /= n;
}

/* Ends of the bar, in the picture, and the middle that it grows around. */
typedef struct bar {
    double end[2][2], middle[2];
} bar;

static bar bar_of_mark(const dt_film *s, const dt_film_rows *mark, uint32_t i)
{
    const double *v = mark->value + (size_t)i * DT_FILM_MARK, half = 0.45 * v[MARK_WIDTH];
    bar b;
    middle_of_marks(mark, i, b.middle);
    b.middle[0] -= s->low[0];
    b.middle[1] = s->high[1] - b.middle[1];
    for (int k = 0; k < 2; k++) {
        const double side = k == 0 ? half : -half;
        b.end[k][0] = v[MARK_X] - sin(v[MARK_HEADING]) * side - s->low[0];
        b.end[k][1] = s->high[1] - v[MARK_Y] - cos(v[MARK_HEADING]) * side;
    }
    return b;
}

static double enlarge_bar_end(const bar *b, int end, int axis, double larger)
{
    return b->middle[axis] + (b->end[end][axis] - b->middle[axis]) * larger;
}

static void write_marks(const dt_film *s, const dt_film_rows *mark, double larger, dt_str *out)
{
    for (int state = 0; state < N_STATES; state++) {
        bool is_open = false;
        for (uint32_t i = 0; i < mark->n; i++) {
            if (!(mark->value[(size_t)i * DT_FILM_MARK + STATE] == state)) {
                continue;
            }
            if (!is_open) {
                dt_str_addf(out, "<path class=\"mark %s\" d=\"", state_name[state]);
                is_open = true;
            }
            const bar b = bar_of_mark(s, mark, i);
            dt_str_addf(out, "M%.1f %.1fL%.1f %.1f", enlarge_bar_end(&b, 0, 0, larger),
                        enlarge_bar_end(&b, 0, 1, larger), enlarge_bar_end(&b, 1, 0, larger),
                        enlarge_bar_end(&b, 1, 1, larger));
        }
        dt_str_add(out, is_open ? "\"/>" : "");
    }
}

static int color_of_risk(const dt_film *s, double risk)
{
    int color = isnan(risk) ? UNKNOWN : 0;
    while (color < 3 && risk > RISK_STEP[s->risk_source][color]) {
        color++;
    }
    return color;
}

static void write_body(const dt_film *s, const double *v, double larger, dt_str *out)
{
    const double length = v[LENGTH] * larger, width = v[WIDTH] * larger;
    dt_str_addf(out,
                "<rect class=\"body r%d%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" "
                "transform=\"translate(%.1f %.1f) rotate(%.0f)\"/>",
                color_of_risk(s, v[RISK]), v[STATUS] >= STATUS_AGENT ? " agent" : "", -length, -width / 2, length,
                width, width / 4, v[X] - s->low[0], s->high[1] - v[Y], -v[HEADING] * 180 / acos(-1));
}

static void draw_ring(const dt_film *s, double x, double y, double radius, dt_str *out)
{
    dt_str_addf(out, "<circle class=\"changed\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", x - s->low[0], s->high[1] - y,
                radius);
}

/* Scale that makes bodies visible. */
static double body_scale(const dt_film *s, double wide_px)
{
    return fmin(LARGEST, fmax(1, LEAST_PX / 5 * (s->high[0] - s->low[0]) / wide_px));
}

/* Around all marks of an agent whose action the shield changed. */
typedef void ring_writer(const dt_film *s, double x, double y, double radius, dt_str *out);

static void write_mark_rings(const dt_film *s, const dt_film_frame *m, double larger, ring_writer *write, dt_str *out)
{
    for (uint32_t i = 0; i < m->mark.n;) {
        const double *first = m->mark.value + (size_t)i * DT_FILM_MARK;
        double x = 0, y = 0, radius = 0;
        uint32_t end = i;
        for (; end < m->mark.n && m->mark.value[(size_t)end * DT_FILM_MARK + AGENT] == first[AGENT]; end++) {
            x += m->mark.value[(size_t)end * DT_FILM_MARK + MARK_X];
            y += m->mark.value[(size_t)end * DT_FILM_MARK + MARK_Y];
        }
        x /= end - i;
        y /= end - i;
        for (uint32_t k = i; k < end; k++) {
            const double *v = m->mark.value + (size_t)k * DT_FILM_MARK;
            radius = fmax(radius, hypot(v[MARK_X] - x, v[MARK_Y] - y));
        }
        if (first[MARK_STATUS] >= STATUS_CHANGED) {
            write(s, x, y, radius + 4 * larger, out);
        }
        i = end > i ? end : i + 1;
    }
}

static void write_rings(const dt_film *s, const dt_film_frame *m, double larger, dt_str *out)
{
    for (uint32_t i = 0; i < m->body.n; i++) {
        const double *v = m->body.value + (size_t)i * DT_FILM_BODY, back = 0.5 * v[LENGTH] * larger;
        if (v[STATUS] >= STATUS_CHANGED) {
            draw_ring(s, v[X] - back * cos(v[HEADING]), v[Y] - back * sin(v[HEADING]), 5 * larger, out);
        }
    }
    write_mark_rings(s, m, larger, draw_ring, out);
}

void dt_film_write_svg(const dt_film *s, uint32_t frame, double wide_px, const char *style, dt_str *out)
{
    const dt_film_frame *m = &s->frame[frame];
    const double w = s->high[0] - s->low[0], h = s->high[1] - s->low[1];
    const double larger = body_scale(s, wide_px);
    dt_str_add(out, "<svg");
    if (style != NULL) {
        dt_str_addf(out, " xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\"", wide_px,
                    wide_px * h / w);
    }
    dt_str_addf(out, " class=\"view\" viewBox=\"0 0 %.1f %.1f\" role=\"img\" aria-label=\"", w, h);
    dt_html_escape(out, scene_labels_of(s)->scene);
    dt_str_add(out, "\">");
    if (style != NULL) {
        dt_str_addf(out, "<style>%s</style>", style);
    }
    write_lines(s, out);
    dt_str_add(out, "<g class=\"now\">");
    for (int dangerous = 0; dangerous < 2; dangerous++) { /* those in danger over the others */
        for (uint32_t i = 0; i < m->body.n; i++) {
            const double *v = m->body.value + (size_t)i * DT_FILM_BODY;
            const int color = color_of_risk(s, v[RISK]);
            if ((color > 0 && color < UNKNOWN) == (dangerous != 0)) {
                write_body(s, v, larger, out);
            }
        }
    }
    write_marks(s, &m->mark, fmin(larger, LARGEST_MARK), out);
    write_rings(s, m, larger, out);
    dt_str_add(out, "</g></svg>");
}

static void write_legend_entry(const char *class, const char *text, dt_str *out)
{
    dt_str_addf(out,
                "<span><svg class=\"view key\" viewBox=\"0 0 26 8\"><rect class=\"body %s\" x=\"5\" y=\"0.5\" "
                "width=\"18\" height=\"7\" rx=\"2\"/></svg>",
                class);
    dt_html_escape(out, text);
    dt_str_add(out, "</span> ");
}

/* Has a body, or a mark that was changed, this status in any frame? The legend leaves out the others. */
static bool shows_status_from(const dt_film *s, int mark)
{
    for (uint32_t i = 0; i < s->n_frames; i++) {
        const dt_film_frame *m = &s->frame[i];
        for (uint32_t k = 0; k < m->body.n; k++) {
            if (m->body.value[(size_t)k * DT_FILM_BODY + STATUS] >= mark) {
                return true;
            }
        }
        for (uint32_t k = 0; mark == STATUS_CHANGED && k < m->mark.n; k++) {
            if (m->mark.value[(size_t)k * DT_FILM_MARK + MARK_STATUS] >= mark) {
                return true;
            }
        }
    }
    return false;
}

static bool has_risk(const dt_film *s)
{
    for (uint32_t i = 0; i < s->n_frames; i++) {
        const dt_film_frame *m = &s->frame[i];
        for (uint32_t k = 0; k < m->body.n; k++) {
            if (!isnan(m->body.value[(size_t)k * DT_FILM_BODY + RISK])) {
                return true;
            }
        }
    }
    return false;
}

static void write_colours(const dt_film *s, dt_str *out)
{
    static const char *const of[DT_FILM_RISKS] = {
        [DT_FILM_RISK_COMPUTED] = "Risk computed by the environment",
        [DT_FILM_RISK_PREDICTED] = "Risk that perception predicts",
        [DT_FILM_RISK_UNTRAINED] = "Risk computed by the environment: this perception was not trained to predict it"};
    static const char *const share[] = {"up to 20 %", "to 50 %", "to 80 %", "above", "not seen"};
    const bool is_predicted = s->risk_source == DT_FILM_RISK_PREDICTED;
    const int n = is_predicted ? 5 : 4;
    dt_str_addf(out, "<b>%s</b> ", of[s->risk_source]);
    for (int i = 0; i < n; i++) {
        const char class[] = {'r', (char)('0' + i), '\0'};
        write_legend_entry(class, is_predicted ? share[i] : scene_labels_of(s)->risk[i], out);
    }
}

/* Of the states that marks have in any frame. */
static void write_state_keys(const dt_film *s, dt_str *out)
{
    for (int state = 0; state < N_STATES; state++) {
        bool has = false;
        for (uint32_t i = 0; i < s->n_frames && !has; i++) {
            const dt_film_rows *r = &s->frame[i].mark;
            for (uint32_t k = 0; k < r->n && !has; k++) {
                has = r->value[(size_t)k * DT_FILM_MARK + STATE] == state;
            }
        }
        if (has) {
            dt_str_addf(out,
                        "<span><svg class=\"view key\" viewBox=\"0 0 26 8\"><path class=\"mark %s\" d=\"M14 "
                        "-1V9\"/></svg>",
                        state_name[state]);
            dt_html_escape(out, scene_labels_of(s)->state[state]);
            dt_str_add(out, "</span> ");
        }
    }
}

void dt_film_write_legend(const dt_film *s, dt_str *out)
{
    dt_str_add(out, "<p class=\"legend\">");
    if (has_risk(s)) {
        write_colours(s, out);
    }
    write_state_keys(s, out);
    if (shows_status_from(s, STATUS_AGENT)) {
        write_legend_entry("agent r0", "steered by the policy", out);
    }
    if (shows_status_from(s, STATUS_CHANGED)) {
        dt_str_add(out,
                   "<span><svg class=\"view key\" viewBox=\"0 0 26 8\"><circle class=\"changed\" cx=\"14\" cy=\"4\" "
                   "r=\"3.2\"/></svg>the shield changed what it does</span>");
    }
    dt_str_add(out, "</p>\n");
}

/* ---- for the player ---------------------------------------------------------------------------------------------- */

static void write_json_ring(const dt_film *s, double x, double y, double radius, dt_str *out)
{
    const char *comma = out->bytes > 0 && out->text[out->bytes - 1] == '[' ? "" : ",";
    dt_str_addf(out, "%s[%.1f,%.1f,%.1f]", comma, x - s->low[0], s->high[1] - y, radius);
}

static void write_json_frame(const dt_film *s, const dt_film_frame *m, dt_str *out)
{
    dt_str_addf(out, "{\"t\":%.2f,", isfinite(m->time_s) ? m->time_s : 0);
    if (isfinite(m->delay_s)) {
        dt_str_addf(out, "\"d\":%.1f,", m->delay_s);
    }
    dt_str_add(out, "\"v\":[");
    for (uint32_t i = 0; i < m->body.n; i++) {
        const double *v = m->body.value + (size_t)i * DT_FILM_BODY;
        dt_str_addf(out, "%s%.0f,%.0f,%.0f,%.0f,%d,%d,%.0f,%.0f", i > 0 ? "," : "", v[ID], 10 * (v[X] - s->low[0]),
                    10 * (s->high[1] - v[Y]), -v[HEADING] * 180 / acos(-1), color_of_risk(s, v[RISK]),
                    (int)dt_i64_within(v[STATUS], 0, STATUS_CHANGED), 10 * v[LENGTH], 10 * v[WIDTH]);
    }
    dt_str_add(out, "],\"s\":\"");
    for (uint32_t i = 0; i < m->mark.n; i++) {
        const double state = m->mark.value[(size_t)i * DT_FILM_MARK + STATE];
        dt_str_addf(out, "%d", state >= 0 && state < 4 ? (int)state : 0);
    }
    dt_str_add(out, "\",\"c\":[");
    write_mark_rings(s, m, 1, write_json_ring, out); /* those of bodies move with them */
    dt_str_add(out, "]}");
}

void dt_film_write_json(const dt_film *s, dt_str *out)
{
    dt_str_add(out, "{\"bodies\":\"");
    dt_html_escape(out, scene_labels_of(s)->bodies);
    dt_str_addf(out, "\",\"risk\":%s,\"mark\":[", has_risk(s) ? "true" : "false");
    if (s->n_frames > 0) {
        for (uint32_t i = 0; i < s->frame[0].mark.n; i++) { /* marks do not move */
            const bar b = bar_of_mark(s, &s->frame[0].mark, i);
            dt_str_addf(out, "%s[%.1f,%.1f,%.1f,%.1f,%.1f,%.1f]", i > 0 ? "," : "", b.end[0][0], b.end[0][1],
                        b.end[1][0], b.end[1][1], b.middle[0], b.middle[1]);
        }
    }
    dt_str_add(out, "],\"frame\":[");
    for (uint32_t i = 0; i < s->n_frames; i++) {
        dt_str_add(out, i > 0 ? ",\n" : "\n");
        write_json_frame(s, &s->frame[i], out);
    }
    dt_str_add(out, "]}");
}
