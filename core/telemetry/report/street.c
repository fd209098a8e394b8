/* SPDX-License-Identifier: Apache-2.0
 *
 * See street.h.
 */
#include <config.h>

#include "telemetry/report/street.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 1 << 20, MAX_MOMENTS = 4096 };
enum { ID, X, Y, HEADING, LENGTH, WIDTH, SPEED, RISK, MARK };                         /* columns of vehicles */
enum { SIGNAL_X, SIGNAL_Y, SIGNAL_HEADING, SIGNAL_WIDTH, STATE, SIGNAL_MARK, AGENT }; /* of signals */
enum { MARK_AGENT = 1, MARK_CHANGED };
static const double MARGIN_M = 8, MARGIN = 0.025;  /* around the roads, at least; as a part of them: room for rings */
static const double LEAST_PX = 12, LARGEST = 6;    /* of a vehicle's length; times that it is enlarged */
#define LARGEST_NUMBER 3.4e38                      /* sums and products of these are numbers */
static const double LARGEST_LIGHT = 3, ARM_M = 30; /* times that a light is enlarged; between lanes of an arm */
enum { UNKNOWN = 4, N_STATES = 4 };                /* colour of a vehicle; of lights */
static const char *const state_name[N_STATES] = {"red", "yellow", "green", "yield"};
/* From where a vehicle has the next colour. */
static const double RISK_STEP[DT_STREET_BYS][3] = {[DT_STREET_BY_TIME] = {0.05, 0.35, 0.7},
                                                   [DT_STREET_BY_PERCEPTION] = {0.2, 0.5, 0.8},
                                                   [DT_STREET_BY_TIME_UNTAUGHT] = {0.05, 0.35, 0.7}};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static dt_status put(dt_rows *r, uint32_t columns, uint32_t row, uint32_t column, double value)
{
    if (row >= MAX_ROWS) {
        return DT_FAIL(DT_EDATA, "a picture of traffic has more than %d rows", MAX_ROWS);
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

static dt_status moment_of(dt_street *s, uint32_t i, dt_moment **out_p)
{
    if (i >= MAX_MOMENTS) {
        return DT_FAIL(DT_EDATA, "more than %d pictures of traffic", MAX_MOMENTS);
    }
    if (i >= s->cap_moments) {
        const uint32_t cap = i < 8 ? 16 : 2 * i;
        dt_moment *grown = dt_realloc(s->moment, cap * sizeof(*grown));
        if (grown == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u pictures of traffic", cap);
        }
        s->moment = grown;
        s->cap_moments = cap;
    }
    while (s->n_moments <= i) {
        s->moment[s->n_moments++] = (dt_moment){.time_s = NAN, .delay_s = NAN};
    }
    *out_p = &s->moment[i];
    return DT_OK;
}

/* "traffic/moment/3/vehicle/12/1" and the like. */
static dt_status take(dt_street *s, const char *path, double value)
{
    uint32_t i = 0, row = 0, column = 0;
    int bytes = 0;
    dt_moment *m = NULL;
    if (sscanf(path, "traffic/road/%u/%u", &row, &column) == 2) {
        return put(&s->road, DT_STREET_ROAD, row, column, value);
    }
    if (strncmp(path, "traffic/colours/", 16) == 0) {
        s->colours = value >= 0 && value < DT_STREET_BYS ? (uint32_t)value : DT_STREET_BY_TIME;
        return DT_OK;
    }
    if (sscanf(path, "traffic/moment/%u/%n", &i, &bytes) != 1 || bytes == 0) {
        return DT_OK;
    }
    DT_TRY(moment_of(s, i, &m));
    if (sscanf(path + bytes, "vehicle/%u/%u", &row, &column) == 2) {
        return put(&m->vehicle, DT_STREET_VEHICLE, row, column, value);
    }
    if (sscanf(path + bytes, "signal/%u/%u", &row, &column) == 2) {
        return put(&m->signal, DT_STREET_SIGNAL, row, column, value);
    }
    m->time_s = strncmp(path + bytes, "time/", 5) == 0 ? value : m->time_s;
    m->delay_s = strncmp(path + bytes, "delay/", 6) == 0 && fabs(value) <= LARGEST_NUMBER ? value : m->delay_s;
    return DT_OK;
}

dt_status dt_street_put(dt_street *s, const char *key, const double *value, uint32_t n, uint32_t columns)
{
    const bool is_traffic = strncmp(key, "traffic/", 8) == 0;
    for (uint32_t i = 0; i < n && is_traffic; i++) {
        char path[160];
        if (columns > 0) {
            snprintf(path, sizeof(path), "%s/%u/%u", key, i / columns, i % columns);
        } else {
            snprintf(path, sizeof(path), "%s/%u", key, i);
        }
        DT_TRY(take(s, path, value[i]));
    }
    return DT_OK;
}

/* What is no number, or none that f32 could hold, cannot be drawn, nor can what comes of it; a risk may be unknown. */
static void keep_numbers(dt_rows *r, uint32_t columns)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        bool is_whole = true;
        for (uint32_t k = 0; k < columns; k++) {
            const bool may_be_unknown = columns == DT_STREET_VEHICLE && k == RISK;
            is_whole = is_whole && (may_be_unknown || fabs(r->value[(size_t)i * columns + k]) <= LARGEST_NUMBER);
        }
        if (is_whole) {
            memmove(r->value + (size_t)n++ * columns, r->value + (size_t)i * columns, columns * sizeof(*r->value));
        }
    }
    r->n = n;
}

void dt_street_finish(dt_street *s)
{
    keep_numbers(&s->road, DT_STREET_ROAD);
    for (uint32_t i = 0; i < s->n_moments; i++) {
        keep_numbers(&s->moment[i].vehicle, DT_STREET_VEHICLE);
        keep_numbers(&s->moment[i].signal, DT_STREET_SIGNAL);
    }
    for (int a = 0; a < 2; a++) {
        s->low[a] = INFINITY;
        s->high[a] = -INFINITY;
        for (uint32_t i = 0; i < s->road.n; i++) {
            const double at = s->road.value[(size_t)i * DT_STREET_ROAD + 1 + (uint32_t)a];
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

dt_status dt_street_read(const dt_flat *f, dt_street *out)
{
    *out = (dt_street){.n_moments = 0};
    for (uint32_t i = 0; i < f->n; i++) {
        if (strncmp(f->item[i].path, "traffic/", 8) == 0) {
            const dt_status st = take(out, f->item[i].path, f->item[i].number);
            if (st < 0) {
                dt_street_fini(out);
                return st;
            }
        }
    }
    dt_street_finish(out);
    return DT_OK;
}

void dt_street_fini(dt_street *s)
{
    for (uint32_t i = 0; i < s->n_moments; i++) {
        dt_free(s->moment[i].vehicle.value);
        dt_free(s->moment[i].signal.value);
    }
    dt_free(s->moment);
    dt_free(s->road.value);
    *s = (dt_street){0};
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static void write_roads(const dt_street *s, dt_str *out)
{
    double lane = NAN;
    for (int k = 0; k < 2; k++) { /* as wide as it is, and never thinner than a hair */
        dt_str_addf(out, "<path class=\"%s\" stroke-width=\"%.1f\" d=\"", k == 0 ? "hair" : "road",
                    k == 0 ? 1.0 : s->road.value[3]);
        for (uint32_t i = 0; i < s->road.n; i++) {
            const double *row = s->road.value + (size_t)i * DT_STREET_ROAD;
            dt_str_addf(out, "%c%.1f %.1f", i == 0 || row[0] != lane ? 'M' : 'L', row[1] - s->low[0],
                        s->high[1] - row[2]);
            lane = row[0];
        }
        dt_str_add(out, "\"/>");
    }
}

/* The light of a lane is a bar across it at the stop line, which is two pixels where a whole town is shown. Those of an
 * arm (one agent, one heading) grow around their middle, so that none covers another. */
static void middle_of_arm(const dt_rows *signal, uint32_t i, double out[2])
{
    const double *v = signal->value + (size_t)i * DT_STREET_SIGNAL;
    uint32_t n = 0;
    out[0] = out[1] = 0;
    for (int step = -1; step <= 1; step += 2) { /* lanes of an arm follow each other */
        for (uint32_t k = step < 0 ? i : i + 1; k < signal->n; k += (uint32_t)step) {
            const double *w = signal->value + (size_t)k * DT_STREET_SIGNAL;
            if (w[AGENT] != v[AGENT] || fabs(w[SIGNAL_HEADING] - v[SIGNAL_HEADING]) > 0.1 ||
                hypot(w[SIGNAL_X] - v[SIGNAL_X], w[SIGNAL_Y] - v[SIGNAL_Y]) > ARM_M) {
                break;
            }
            out[0] += w[SIGNAL_X];
            out[1] += w[SIGNAL_Y];
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

static bar bar_of(const dt_street *s, const dt_rows *signal, uint32_t i)
{
    const double *v = signal->value + (size_t)i * DT_STREET_SIGNAL, half = 0.45 * v[SIGNAL_WIDTH];
    bar b;
    middle_of_arm(signal, i, b.middle);
    b.middle[0] -= s->low[0];
    b.middle[1] = s->high[1] - b.middle[1];
    for (int k = 0; k < 2; k++) {
        const double side = k == 0 ? half : -half;
        b.end[k][0] = v[SIGNAL_X] - sin(v[SIGNAL_HEADING]) * side - s->low[0];
        b.end[k][1] = s->high[1] - v[SIGNAL_Y] - cos(v[SIGNAL_HEADING]) * side;
    }
    return b;
}

static double grown(const bar *b, int end, int axis, double larger)
{
    return b->middle[axis] + (b->end[end][axis] - b->middle[axis]) * larger;
}

static void write_signals(const dt_street *s, const dt_rows *signal, double larger, dt_str *out)
{
    for (int state = 0; state < N_STATES; state++) {
        bool is_open = false;
        for (uint32_t i = 0; i < signal->n; i++) {
            if (!(signal->value[(size_t)i * DT_STREET_SIGNAL + STATE] == state)) {
                continue;
            }
            if (!is_open) {
                dt_str_addf(out, "<path class=\"light %s\" d=\"", state_name[state]);
                is_open = true;
            }
            const bar b = bar_of(s, signal, i);
            dt_str_addf(out, "M%.1f %.1fL%.1f %.1f", grown(&b, 0, 0, larger), grown(&b, 0, 1, larger),
                        grown(&b, 1, 0, larger), grown(&b, 1, 1, larger));
        }
        dt_str_add(out, is_open ? "\"/>" : "");
    }
}

static int color_of(const dt_street *s, double risk)
{
    int color = isnan(risk) ? UNKNOWN : 0;
    while (color < 3 && risk > RISK_STEP[s->colours][color]) {
        color++;
    }
    return color;
}

static void write_vehicle(const dt_street *s, const double *v, double larger, dt_str *out)
{
    const double length = v[LENGTH] * larger, width = v[WIDTH] * larger;
    dt_str_addf(out,
                "<rect class=\"car r%d%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" "
                "transform=\"translate(%.1f %.1f) rotate(%.0f)\"/>",
                color_of(s, v[RISK]), v[MARK] >= MARK_AGENT ? " agent" : "", -length, -width / 2, length, width,
                width / 4, v[X] - s->low[0], s->high[1] - v[Y], -v[HEADING] * 180 / acos(-1));
}

static void write_ring(const dt_street *s, double x, double y, double radius, dt_str *out)
{
    dt_str_addf(out, "<circle class=\"changed\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", x - s->low[0], s->high[1] - y,
                radius);
}

/* Vehicles as large as it takes to see them. */
static double enlarged(const dt_street *s, double wide_px)
{
    return fmin(LARGEST, fmax(1, LEAST_PX / 5 * (s->high[0] - s->low[0]) / wide_px));
}

/* Around all lanes of a light that the shield kept from what it was asked for. */
typedef void ring_writer(const dt_street *s, double x, double y, double radius, dt_str *out);

static void write_signal_rings(const dt_street *s, const dt_moment *m, double larger, ring_writer *write, dt_str *out)
{
    for (uint32_t i = 0; i < m->signal.n;) {
        const double *first = m->signal.value + (size_t)i * DT_STREET_SIGNAL;
        double x = 0, y = 0, radius = 0;
        uint32_t end = i;
        for (; end < m->signal.n && m->signal.value[(size_t)end * DT_STREET_SIGNAL + AGENT] == first[AGENT]; end++) {
            x += m->signal.value[(size_t)end * DT_STREET_SIGNAL + SIGNAL_X];
            y += m->signal.value[(size_t)end * DT_STREET_SIGNAL + SIGNAL_Y];
        }
        x /= end - i;
        y /= end - i;
        for (uint32_t k = i; k < end; k++) {
            const double *v = m->signal.value + (size_t)k * DT_STREET_SIGNAL;
            radius = fmax(radius, hypot(v[SIGNAL_X] - x, v[SIGNAL_Y] - y));
        }
        if (first[SIGNAL_MARK] >= MARK_CHANGED) {
            write(s, x, y, radius + 4 * larger, out);
        }
        i = end > i ? end : i + 1;
    }
}

static void write_rings(const dt_street *s, const dt_moment *m, double larger, dt_str *out)
{
    for (uint32_t i = 0; i < m->vehicle.n; i++) {
        const double *v = m->vehicle.value + (size_t)i * DT_STREET_VEHICLE, back = 0.5 * v[LENGTH] * larger;
        if (v[MARK] >= MARK_CHANGED) {
            write_ring(s, v[X] - back * cos(v[HEADING]), v[Y] - back * sin(v[HEADING]), 5 * larger, out);
        }
    }
    write_signal_rings(s, m, larger, write_ring, out);
}

void dt_street_svg(const dt_street *s, uint32_t moment, double wide_px, const char *style, dt_str *out)
{
    const dt_moment *m = &s->moment[moment];
    const double w = s->high[0] - s->low[0], h = s->high[1] - s->low[1];
    const double larger = enlarged(s, wide_px);
    dt_str_add(out, "<svg");
    if (style != NULL) {
        dt_str_addf(out, " xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\"", wide_px,
                    wide_px * h / w);
    }
    dt_str_addf(out, " class=\"street\" viewBox=\"0 0 %.1f %.1f\" role=\"img\" aria-label=\"traffic\">", w, h);
    if (style != NULL) {
        dt_str_addf(out, "<style>%s</style>", style);
    }
    write_roads(s, out);
    dt_str_add(out, "<g class=\"now\">");
    for (int dangerous = 0; dangerous < 2; dangerous++) { /* those in danger over the others */
        for (uint32_t i = 0; i < m->vehicle.n; i++) {
            const double *v = m->vehicle.value + (size_t)i * DT_STREET_VEHICLE;
            const int color = color_of(s, v[RISK]);
            if ((color > 0 && color < UNKNOWN) == (dangerous != 0)) {
                write_vehicle(s, v, larger, out);
            }
        }
    }
    write_signals(s, &m->signal, fmin(larger, LARGEST_LIGHT), out);
    write_rings(s, m, larger, out);
    dt_str_add(out, "</g></svg>");
}

static void write_key(const char *class, const char *text, dt_str *out)
{
    dt_str_addf(out,
                "<span><svg class=\"street key\" viewBox=\"0 0 26 8\"><rect class=\"car %s\" x=\"5\" y=\"0.5\" "
                "width=\"18\" height=\"7\" rx=\"2\"/></svg>%s</span> ",
                class, text);
}

/* Has a vehicle or, of what is changed, a light this mark at any moment? Others are not spoken of. */
static bool has_mark(const dt_street *s, int mark)
{
    for (uint32_t i = 0; i < s->n_moments; i++) {
        const dt_moment *m = &s->moment[i];
        for (uint32_t k = 0; k < m->vehicle.n; k++) {
            if (m->vehicle.value[(size_t)k * DT_STREET_VEHICLE + MARK] >= mark) {
                return true;
            }
        }
        for (uint32_t k = 0; mark == MARK_CHANGED && k < m->signal.n; k++) {
            if (m->signal.value[(size_t)k * DT_STREET_SIGNAL + SIGNAL_MARK] >= mark) {
                return true;
            }
        }
    }
    return false;
}

/* Games have no risk to speak of: then nobody's is known. */
static bool has_risk(const dt_street *s)
{
    for (uint32_t i = 0; i < s->n_moments; i++) {
        const dt_moment *m = &s->moment[i];
        for (uint32_t k = 0; k < m->vehicle.n; k++) {
            if (!isnan(m->vehicle.value[(size_t)k * DT_STREET_VEHICLE + RISK])) {
                return true;
            }
        }
    }
    return false;
}

static void write_colours(const dt_street *s, dt_str *out)
{
    static const char *const of[DT_STREET_BYS] = {
        [DT_STREET_BY_TIME] = "Risk computed by the environment",
        [DT_STREET_BY_PERCEPTION] = "Risk that perception predicts",
        [DT_STREET_BY_TIME_UNTAUGHT] =
            "Risk computed by the environment: this perception was not trained to predict it"};
    static const char *const word[DT_STREET_BYS][5] = {
        [DT_STREET_BY_TIME] = {"calm", "must brake hard", "at risk", "in danger", NULL},
        [DT_STREET_BY_PERCEPTION] = {"up to 20 %", "to 50 %", "to 80 %", "above", "not seen"},
        [DT_STREET_BY_TIME_UNTAUGHT] = {"calm", "must brake hard", "at risk", "in danger", NULL}};
    dt_str_addf(out, "<b>%s</b> ", of[s->colours]);
    for (int i = 0; i < 5 && word[s->colours][i] != NULL; i++) {
        const char class[] = {'r', (char)('0' + i), '\0'};
        write_key(class, word[s->colours][i], out);
    }
}

/* Of the states that lights have at any moment. */
static void write_light_keys(const dt_street *s, dt_str *out)
{
    static const char *const word[N_STATES] = {"red light", "yellow", "green", "green that gives way"};
    for (int state = 0; state < N_STATES; state++) {
        bool has = false;
        for (uint32_t i = 0; i < s->n_moments && !has; i++) {
            const dt_rows *r = &s->moment[i].signal;
            for (uint32_t k = 0; k < r->n && !has; k++) {
                has = r->value[(size_t)k * DT_STREET_SIGNAL + STATE] == state;
            }
        }
        if (has) {
            dt_str_addf(out,
                        "<span><svg class=\"street key\" viewBox=\"0 0 26 8\"><path class=\"light %s\" d=\"M14 "
                        "-1V9\"/></svg>%s</span> ",
                        state_name[state], word[state]);
        }
    }
}

void dt_street_legend(const dt_street *s, dt_str *out)
{
    dt_str_add(out, "<p class=\"legend\">");
    if (has_risk(s)) {
        write_colours(s, out);
    }
    write_light_keys(s, out);
    if (has_mark(s, MARK_AGENT)) {
        write_key("agent r0", "steered by the policy", out);
    }
    if (has_mark(s, MARK_CHANGED)) {
        dt_str_add(out,
                   "<span><svg class=\"street key\" viewBox=\"0 0 26 8\"><circle class=\"changed\" cx=\"14\" cy=\"4\" "
                   "r=\"3.2\"/></svg>the shield changed what it does</span>");
    }
    dt_str_add(out, "</p>\n");
}

/* ---- for the player ---------------------------------------------------------------------------------------------- */

static void json_ring(const dt_street *s, double x, double y, double radius, dt_str *out)
{
    const char *comma = out->bytes > 0 && out->text[out->bytes - 1] == '[' ? "" : ",";
    dt_str_addf(out, "%s[%.1f,%.1f,%.1f]", comma, x - s->low[0], s->high[1] - y, radius);
}

static void json_moment(const dt_street *s, const dt_moment *m, dt_str *out)
{
    dt_str_addf(out, "{\"t\":%.2f,", isfinite(m->time_s) ? m->time_s : 0);
    if (isfinite(m->delay_s)) {
        dt_str_addf(out, "\"d\":%.1f,", m->delay_s);
    }
    dt_str_add(out, "\"v\":[");
    for (uint32_t i = 0; i < m->vehicle.n; i++) {
        const double *v = m->vehicle.value + (size_t)i * DT_STREET_VEHICLE;
        dt_str_addf(out, "%s%.0f,%.0f,%.0f,%.0f,%d,%d,%.0f,%.0f", i > 0 ? "," : "", v[ID], 10 * (v[X] - s->low[0]),
                    10 * (s->high[1] - v[Y]), -v[HEADING] * 180 / acos(-1), color_of(s, v[RISK]),
                    (int)dt_i64_within(v[MARK], 0, MARK_CHANGED), 10 * v[LENGTH], 10 * v[WIDTH]);
    }
    dt_str_add(out, "],\"s\":\"");
    for (uint32_t i = 0; i < m->signal.n; i++) {
        const double state = m->signal.value[(size_t)i * DT_STREET_SIGNAL + STATE];
        dt_str_addf(out, "%d", state >= 0 && state < 4 ? (int)state : 0);
    }
    dt_str_add(out, "\",\"c\":[");
    write_signal_rings(s, m, 1, json_ring, out); /* those of vehicles move with them */
    dt_str_add(out, "]}");
}

void dt_street_json(const dt_street *s, dt_str *out)
{
    dt_str_add(out, "{\"light\":[");
    if (s->n_moments > 0) {
        for (uint32_t i = 0; i < s->moment[0].signal.n; i++) { /* lights stay where they are */
            const bar b = bar_of(s, &s->moment[0].signal, i);
            dt_str_addf(out, "%s[%.1f,%.1f,%.1f,%.1f,%.1f,%.1f]", i > 0 ? "," : "", b.end[0][0], b.end[0][1],
                        b.end[1][0], b.end[1][1], b.middle[0], b.middle[1]);
        }
    }
    dt_str_add(out, "],\"frame\":[");
    for (uint32_t i = 0; i < s->n_moments; i++) {
        dt_str_add(out, i > 0 ? ",\n" : "\n");
        json_moment(s, &s->moment[i], out);
    }
    dt_str_add(out, "]}");
}
