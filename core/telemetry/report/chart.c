/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/chart.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/report/html.h"
#include "telemetry/report/scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* places in the picture's own units, which are pixels of CSS on a wide screen and a little less on a phone */
enum {
    WIDTH = 340,
    HEIGHT = 188,
    LEFT = 40,
    RIGHT = 334,
    TOP = 8,
    BOTTOM = 152,
    X_LABEL = 167,
    X_NAME = 183,
    LABEL_GAP = 12,   /* between the texts at two curves' ends */
    LABEL_CHARS = 13, /* room for two characters of them, on the right of the curves */
    LABEL_MOST = 17,  /* characters that there is room for */
    FEW = 12          /* points that are shown as such */
};

typedef struct frame {
    dt_scale x, y;
    int right; /* where curves end: names follow it */
    size_t n_outside;
} frame;

/* Is its name written? Each name once: several runs have one limit, and one constant velocity. */
static bool has_label(const dt_chart *c, uint32_t curve)
{
    const dt_curve *u = &c->curve[curve];
    bool has = u->label != NULL && u->n > 0;
    for (uint32_t i = 0; i < curve && has; i++) {
        has = c->curve[i].label == NULL || c->curve[i].n == 0 || strcmp(c->curve[i].label, u->label) != 0;
    }
    return has;
}

static int right_edge_of_plot(const dt_chart *c)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < c->n_curves; i++) {
        const size_t n = has_label(c, i) ? strlen(c->curve[i].label) : 0;
        longest = n > longest ? n : longest;
    }
    return longest == 0 ? RIGHT : RIGHT - LABEL_CHARS * (int)(longest < LABEL_MOST ? longest : LABEL_MOST) / 2;
}

static dt_status fit_scales(const dt_chart *c, frame *f, bool *is_empty_p)
{
    size_t n = 0;
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < c->n_curves; i++) {
        n += c->curve[i].n_runs > 0 ? 3 * c->curve[i].n : c->curve[i].n;
        if (c->curve[i].n > 0) {
            low = fmin(low, c->curve[i].x[0]);
            high = fmax(high, c->curve[i].x[c->curve[i].n - 1]);
        }
    }
    *is_empty_p = n == 0;
    if (n == 0) {
        return DT_OK;
    }
    double *all = dt_alloc_n(n, sizeof(*all));
    if (all == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a chart of %zu points", n);
    }
    n = 0;
    for (uint32_t i = 0; i < c->n_curves; i++) {
        for (uint32_t k = 0; k < c->curve[i].n; k++) {
            all[n++] = c->curve[i].y[k];
            if (c->curve[i].n_runs > 0) {
                all[n++] = c->curve[i].low[k];
                all[n++] = c->curve[i].high[k];
            }
        }
    }
    f->y = dt_scale_fit(all, n, c->may_log, &f->n_outside);
    f->y.from = BOTTOM;
    f->y.to = TOP;
    f->right = right_edge_of_plot(c);
    f->x = dt_scale_of_range(low, high, LEFT, f->right);
    dt_free(all);
    return DT_OK;
}

static void write_axes(const frame *f, const char *x_name, dt_str *out)
{
    dt_tick tick[DT_SCALE_MAX_TICKS];
    uint32_t n = dt_scale_list_ticks(&f->y, 5, tick);
    dt_str_add(out, "<path class=\"grid\" d=\"");
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(out, "M%d %.1fH%d", LEFT, dt_scale_map(&f->y, tick[i].value), f->right);
    }
    dt_str_add(out, "\"/>");
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(out, "<text class=\"y\" x=\"%d\" y=\"%.1f\">%s</text>", LEFT - 6,
                    dt_scale_map(&f->y, tick[i].value) + 3.5, tick[i].text);
    }
    n = dt_scale_list_ticks(&f->x, 5, tick);
    for (uint32_t i = 0; i < n; i++) {
        const double at = dt_scale_map(&f->x, tick[i].value);
        const char *side = at < LEFT + 8 ? " start" : at > f->right - 12 ? " end" : "";
        dt_str_addf(out, "<text class=\"x%s\" x=\"%.1f\" y=\"%d\">%s</text>", side, at, X_LABEL, tick[i].text);
    }
    dt_str_addf(out, "<text class=\"x name\" x=\"%d\" y=\"%d\">", (LEFT + f->right) / 2, X_NAME);
    dt_html_escape(out, x_name);
    dt_str_add(out, "</text>");
}

static void write_line(const frame *f, const char *class, const double *x, const double *y, uint32_t n, dt_str *out)
{
    dt_str_addf(out, "<polyline class=\"%s\" points=\"", class);
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(out, "%s%.1f,%.1f", i > 0 ? " " : "", dt_scale_map(&f->x, x[i]), dt_scale_map(&f->y, y[i]));
    }
    dt_str_add(out, "\"/>");
}

/* Along the greater ends of the intervals, and back along the lesser. */
static void write_band(const frame *f, const dt_curve *c, dt_str *out)
{
    dt_str_add(out, "<path class=\"band\" d=\"");
    for (uint32_t i = 0; i < 2 * c->n; i++) {
        const bool is_back = i >= c->n;
        const uint32_t k = is_back ? 2 * c->n - 1 - i : i;
        dt_str_addf(out, "%c%.1f %.1f", i == 0 ? 'M' : 'L', dt_scale_map(&f->x, c->x[k]),
                    dt_scale_map(&f->y, is_back ? c->low[k] : c->high[k]));
    }
    dt_str_add(out, "Z\"/>");
}

static void write_numbers(const char *name, const double *v, uint32_t n, dt_str *out)
{
    dt_str_addf(out, "\" %s=\"", name);
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(out, "%s%.7g", i > 0 ? " " : "", v[i]);
    }
}

static void write_curve(const frame *f, const dt_curve *c, dt_str *out)
{
    dt_str_addf(out, "<g class=\"curve %s%u\" data-x=\"", c->is_reference ? "ref c" : "c", c->color);
    for (uint32_t i = 0; i < c->n; i++) {
        dt_str_addf(out, "%s%.10g", i > 0 ? " " : "", c->x[i]);
    }
    write_numbers("data-y", c->y, c->n, out);
    if (c->n_runs > 0) {
        write_numbers("data-low", c->low, c->n, out);
        write_numbers("data-high", c->high, c->n, out);
        dt_str_addf(out, "\" data-runs=\"%u", c->n_runs);
    }
    dt_str_add(out, "\">");
    if (c->n_runs > 0) {
        write_band(f, c, out);
    }
    const bool is_smoothed = c->n_smooth > 1;
    write_line(f, is_smoothed ? "raw" : "line", c->x, c->y, c->n, out);
    if (is_smoothed) {
        write_line(f, "line", c->smooth_x, c->smooth_y, c->n_smooth, out);
    }
    if (c->n <= FEW) {
        for (uint32_t i = 0; i < c->n; i++) {
            dt_str_addf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", dt_scale_map(&f->x, c->x[i]),
                        dt_scale_map(&f->y, c->y[i]));
        }
    }
    dt_str_add(out, "</g>");
}

typedef struct label {
    uint32_t curve;
    double at; /* places grow downwards */
} label;

/* Names after the ends of curves, from the highest down, never on each other. */
static void write_labels(const dt_chart *c, const frame *f, dt_str *out)
{
    label list[DT_CHART_MAX_CURVES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_curves && n < DT_CHART_MAX_CURVES; i++) {
        const dt_curve *u = &c->curve[i];
        if (has_label(c, i)) {
            const double end = fmin(fmax(dt_scale_map(&f->y, u->y[u->n - 1]), TOP), BOTTOM);
            uint32_t k = n++;
            for (; k > 0 && list[k - 1].at > end; k--) {
                list[k] = list[k - 1];
            }
            list[k] = (label){i, end};
        }
    }
    for (uint32_t i = 1; i < n; i++) {
        list[i].at = fmax(list[i].at, list[i - 1].at + LABEL_GAP);
    }
    for (uint32_t i = n; i-- > 0;) { /* those that this moved out of the picture, and all above them, back into it */
        const double least = i + 1 < n ? list[i + 1].at - LABEL_GAP : BOTTOM;
        list[i].at = fmin(list[i].at, least);
    }
    for (uint32_t i = 0; i < n; i++) {
        const dt_curve *u = &c->curve[list[i].curve];
        dt_str_addf(out, "<text class=\"label %s%u\" x=\"%d\" y=\"%.1f\">", u->is_reference ? "ref c" : "c", u->color,
                    f->right + 5, list[i].at + 3.5);
        dt_html_escape(out, u->label);
        dt_str_add(out, "</text>");
    }
}

/* Title with the unit, and the last value of every curve where the pointer later shows others. */
static void write_caption(const dt_chart *c, const frame *f, dt_str *out)
{
    dt_str_add(out, "<figcaption><b><i>");
    dt_html_escape(out, c->prefix);
    dt_str_add(out, "</i>");
    dt_html_escape(out, c->name);
    dt_str_add(out, "</b>");
    if (c->unit[0] != '\0') {
        dt_str_add(out, "<small>in ");
        dt_html_escape(out, c->unit);
        dt_str_add(out, "</small>");
    }
    dt_str_add(out, f->y.is_log        ? "<small>log scale</small>"
                    : f->n_outside > 0 ? "<small>most extreme 2 % not shown</small>"
                                       : "");
    dt_str_add(out, "<span class=\"now\">");
    for (uint32_t i = 0; i < c->n_curves; i++) {
        const dt_curve *u = &c->curve[i];
        if (u->n > 0 && !u->is_reference) {
            char text[DT_NUMBER_BYTES];
            dt_str_addf(out, "<em class=\"c%u\">%s</em> ", u->color, dt_short_text(u->last, text));
        }
    }
    dt_str_add(out, "</span></figcaption>");
}

dt_status dt_chart_write(const dt_chart *c, dt_str *out)
{
    frame f;
    bool is_empty = false;
    DT_TRY(fit_scales(c, &f, &is_empty));
    if (is_empty) {
        return DT_OK;
    }
    dt_str_add(out, "<figure>");
    write_caption(c, &f, out);
    dt_str_addf(out, "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    dt_html_escape(out, c->prefix);
    dt_html_escape(out, c->name);
    dt_str_addf(out, "\" data-scale=\"%.10g %.10g %d %d\" data-name=\"", f.x.low, f.x.high, LEFT, f.right);
    dt_html_escape(out, c->prefix);
    dt_html_escape(out, c->name);
    dt_str_add(out, "\" data-x-name=\"");
    dt_html_escape(out, c->x_name);
    dt_str_add(out, "\">");
    write_axes(&f, c->x_name, out);
    /* an inner picture cuts off what is outside */
    dt_str_addf(out, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" viewBox=\"%d %d %d %d\">", LEFT - 3, TOP - 3,
                f.right - LEFT + 6, BOTTOM - TOP + 6, LEFT - 3, TOP - 3, f.right - LEFT + 6, BOTTOM - TOP + 6);
    for (uint32_t i = 0; i < c->n_curves; i++) {
        if (c->curve[i].n > 0) {
            write_curve(&f, &c->curve[i], out);
        }
    }
    dt_str_add(out, "</svg>");
    write_labels(c, &f, out);
    dt_str_addf(out, "<path class=\"at\" d=\"M0 %dV%d\"/></svg>", TOP, BOTTOM);
    if (c->note != NULL) {
        dt_str_add(out, "<p class=\"note\">");
        dt_html_escape(out, c->note);
        dt_str_add(out, "</p>");
    }
    dt_str_add(out, "</figure>\n");
    return DT_OK;
}

void dt_sparkline_write(const double *value, uint32_t n, uint32_t color, dt_str *out)
{
    enum { W = 72, H = 18, ROOM = 3 };
    double low = INFINITY, high = -INFINITY;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(value[i])) {
            low = fmin(low, value[i]);
            high = fmax(high, value[i]);
            last = i;
        }
    }
    if (n < 2 || !(low <= high)) {
        return;
    }
    const dt_scale x = {.low = 0, .high = n - 1, .from = ROOM, .to = W - ROOM};
    const dt_scale y = dt_scale_of_range(low, high, H - ROOM, ROOM);
    dt_str_addf(
        out, "<svg class=\"spark c%u\" viewBox=\"0 0 %d %d\" aria-hidden=\"true\"><polyline class=\"line\" points=\"",
        color, W, H);
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(value[i])) {
            dt_str_addf(out, "%.1f,%.1f ", dt_scale_map(&x, i), dt_scale_map(&y, value[i]));
        }
    }
    dt_str_addf(out, "\"/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\"/></svg>", dt_scale_map(&x, last),
                dt_scale_map(&y, value[last]));
}
