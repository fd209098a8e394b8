/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/sweep_coordinates.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/report/html.h"
#include "telemetry/report/scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 1088, /* of the page; a wider picture scrolls */
    SIDE = 60,
    LEAST = 124, /* between two axes */
    TOP = 52,
    BOTTOM = 290,
    UNKNOWN = 316, /* where trials without a value end */
    HEIGHT = 344,
    LABEL_GAP = 13,
    LABEL_CHARS = 16,
    MOST_AXES = DT_SPACE_MAX_PARAMETERS + 2,
    MOST_LINES = 2000,
    MANY_LINES = 150, /* they are fainter then */
    BEST_LINES = 500  /* of more trials these are drawn, and an even choice of the others */
};

typedef struct axis {
    const char *name;
    const char *word[DT_SPACE_MAX_VALUES]; /* of a list, or of values that are no numbers; then places are 0, 1, ... */
    uint32_t n_words;
    dt_scale scale;
    double x;
} axis;

typedef struct picture {
    const dt_sweep_results *r;
    axis axis[MOST_AXES]; /* parameters, then steps where has_steps, then the metric */
    uint32_t n;
    bool has_steps;
    double width;
} picture;

/* ---- axes -------------------------------------------------------------------------------------------------------- */

static bool find_word(const axis *a, const char *word, uint32_t *i_p)
{
    for (*i_p = 0; *i_p < a->n_words; ++*i_p) {
        if (strcmp(a->word[*i_p], word) == 0) {
            return true;
        }
    }
    return false;
}

static void list_words(const dt_sweep_results *r, uint32_t k, axis *a)
{
    const dt_parameter *p = &r->space.parameter[k];
    uint32_t i = 0;
    for (; a->n_words < p->n_values; a->n_words++) {
        a->word[a->n_words] = p->value[a->n_words];
    }
    for (uint32_t t = 0; t < r->n_trials && a->n_words < DT_SPACE_MAX_VALUES; t++) {
        if (!find_word(a, r->trial[t].text[k], &i)) {
            a->word[a->n_words++] = r->trial[t].text[k];
        }
    }
    a->scale = dt_scale_of_range(-0.5, a->n_words - 0.5, BOTTOM, TOP);
}

/* The whole range that values are drawn from, and of a table without it, or with others, what it has. */
static void fit_parameter(const dt_sweep_results *r, uint32_t k, axis *a)
{
    const dt_parameter *p = &r->space.parameter[k];
    double low = isfinite(p->min) && isfinite(p->max) && p->min < p->max ? p->min : INFINITY;
    double high = low < INFINITY ? p->max : -INFINITY, v = 0;
    bool are_numbers = p->n_values == 0;
    a->name = p->key;
    for (uint32_t t = 0; t < r->n_trials && are_numbers; t++) {
        are_numbers = dt_parse_f64(r->trial[t].text[k], &v) && isfinite(v);
        low = fmin(low, v);
        high = fmax(high, v);
    }
    if (!are_numbers) {
        list_words(r, k, a);
        return;
    }
    a->scale = dt_scale_of_range(low, high, BOTTOM, TOP);
    a->scale.is_log = p->is_log && low > 0;
}

static void fit_steps(const dt_sweep_results *r, axis *a)
{
    double low = INFINITY, high = 0;
    for (uint32_t t = 0; t < r->n_ranked; t++) {
        low = fmin(low, r->trial[t].steps);
        high = fmax(high, r->trial[t].steps);
    }
    a->name = "steps";
    a->scale = dt_scale_of_range(low, high, BOTTOM, TOP);
    a->scale.is_log = low > 0;
}

static dt_status fit_metric(const dt_sweep_results *r, axis *a)
{
    size_t n_outside = 0;
    double *v = dt_alloc_n(r->n_ranked + 1, sizeof(*v));
    if (v == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u values", r->n_ranked);
    }
    for (uint32_t t = 0; t < r->n_ranked; t++) {
        v[t] = r->trial[t].value;
    }
    a->name = r->metric;
    a->scale = dt_scale_fit(v, r->n_ranked, false, &n_outside);
    a->scale.from = r->is_min ? TOP : BOTTOM; /* the best at the top */
    a->scale.to = r->is_min ? BOTTOM : TOP;
    dt_free(v);
    return DT_OK;
}

static bool differ_steps(const dt_sweep_results *r)
{
    for (uint32_t t = 0; t < r->n_ranked; t++) {
        if (!(r->trial[t].steps >= 0)) {
            return false;
        }
    }
    return r->n_ranked > 0 && r->trial[0].steps != r->trial[r->n_ranked - 1].steps;
}

static dt_status fit_axes(picture *p)
{
    for (uint32_t k = 0; k < p->r->space.n; k++) {
        fit_parameter(p->r, k, &p->axis[p->n++]);
    }
    p->has_steps = differ_steps(p->r);
    if (p->has_steps) {
        fit_steps(p->r, &p->axis[p->n++]);
    }
    DT_TRY(fit_metric(p->r, &p->axis[p->n++]));
    p->width = fmax(WIDTH, 2 * SIDE + (double)LEAST * (p->n - 1));
    for (uint32_t k = 0; k < p->n; k++) {
        p->axis[k].x = SIDE + (p->width - 2 * SIDE) * k / (p->n - 1);
    }
    return DT_OK;
}

/* ---- their texts ------------------------------------------------------------------------------------------------- */

/* A foreign text of any length: what there is room for. */
static void write_short(const char *text, dt_str *out)
{
    char part[4 * LABEL_CHARS + 1] = "";
    size_t bytes = 0;
    int n = 0;
    for (; text[bytes] != '\0' && n < LABEL_CHARS; n++) {
        const size_t one = dt_utf8_bytes(text + bytes);
        bytes += one > 0 ? one : 1;
    }
    memcpy(part, text, bytes);
    part[bytes] = '\0';
    dt_html_escape(out, part);
    dt_str_add(out, text[bytes] != '\0' ? "\xe2\x80\xa6" : "");
}

/* "training" above "learning_rate". */
static void write_name(const axis *a, dt_str *out)
{
    char section[4 * LABEL_CHARS] = "";
    const char *dot = strrchr(a->name, '.');
    const char *last = dot != NULL && dot[1] != '\0' ? dot + 1 : a->name;
    snprintf(section, sizeof(section), "%.*s", last > a->name ? (int)(last - a->name) - 1 : 0, a->name);
    dt_str_add(out, "<g><title>");
    dt_html_escape(out, a->name);
    dt_str_addf(out, "</title><text x=\"%.1f\" y=\"14\">", a->x);
    write_short(section, out);
    dt_str_addf(out, "</text><text class=\"name\" x=\"%.1f\" y=\"29\">", a->x);
    write_short(last, out);
    dt_str_add(out, "</text></g>");
}

static void write_label(const axis *a, double y, const char *text, dt_str *out)
{
    dt_str_addf(out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\">", a->x + 6, y + 4);
    write_short(text, out);
    dt_str_add(out, "</text>");
}

static void write_labels(const axis *a, dt_str *out)
{
    dt_tick tick[DT_SCALE_MAX_TICKS];
    const uint32_t n = a->n_words > 0 ? 0 : dt_scale_list_ticks(&a->scale, 6, tick);
    const uint32_t every = 1 + a->n_words * LABEL_GAP / (BOTTOM - TOP);
    for (uint32_t i = 0; i < n; i++) {
        write_label(a, dt_scale_map(&a->scale, tick[i].value), tick[i].text, out);
    }
    for (uint32_t i = 0; i < a->n_words; i += every) {
        write_label(a, dt_scale_map(&a->scale, i), a->word[i], out);
    }
}

static void write_axes(const picture *p, bool has_unknown, dt_str *out)
{
    dt_str_add(out, "<path class=\"grid\" d=\"");
    for (uint32_t k = 0; k < p->n; k++) {
        dt_str_addf(out, "M%.1f %dV%d", p->axis[k].x, TOP, BOTTOM);
    }
    dt_str_add(out, "\"/>");
    for (uint32_t k = 0; k < p->n; k++) {
        write_name(&p->axis[k], out);
    }
    if (has_unknown) {
        write_label(&p->axis[p->n - 1], UNKNOWN, "no value", out);
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static double place(const picture *p, uint32_t k, uint32_t row)
{
    const dt_trial_result *t = &p->r->trial[row];
    const axis *a = &p->axis[k];
    uint32_t i = 0;
    double v = NAN;
    if (k + 1 == p->n) {
        return row < p->r->n_ranked ? dt_scale_map(&a->scale, t->value) : UNKNOWN;
    }
    if (k == p->r->space.n) {
        return row < p->r->n_ranked ? dt_scale_map(&a->scale, t->steps) : UNKNOWN;
    }
    if (a->n_words > 0) {
        return dt_scale_map(&a->scale, find_word(a, t->text[k], &i) ? i : a->n_words - 1);
    }
    return dt_parse_f64(t->text[k], &v) ? dt_scale_map(&a->scale, v) : UNKNOWN;
}

static void write_line(const picture *p, uint32_t row, dt_str *out)
{
    const dt_sweep_results *r = p->r;
    const dt_trial_result *t = &r->trial[row];
    char text[DT_NUMBER_BYTES];
    const bool has_value = row < r->n_ranked;
    if (has_value) {
        dt_str_addf(out, "<g class=\"q%u%s\"><title>trial %u: %s</title>", dt_coordinates_color(r, row),
                    row == 0 ? " best" : "", t->trial, dt_number_text(t->value, text));
    } else {
        dt_str_addf(out, "<g class=\"none\"><title>trial %u: ", t->trial);
        write_short(t->state, out);
        dt_str_add(out, "</title>");
    }
    dt_str_add(out, "<polyline points=\"");
    for (uint32_t k = 0; k < p->n; k++) {
        const double y = fmin(HEIGHT, fmax(0, place(p, k, row)));
        dt_str_addf(out, "%s%.1f,%.1f", k > 0 ? " " : "", p->axis[k].x, y);
    }
    dt_str_add(out, "\"/></g>\n");
}

/* The best on top: last. Returns how many of the trials after the best ones each drawn one stands for. */
static uint32_t write_lines(const picture *p, dt_str *out)
{
    const uint32_t n = p->r->n_trials;
    const uint32_t every = n > MOST_LINES ? (n - BEST_LINES) / (MOST_LINES - BEST_LINES) + 1 : 1;
    for (uint32_t i = n; i-- > 0;) {
        if (i < BEST_LINES || (i - BEST_LINES) % every == 0) {
            write_line(p, i, out);
        }
    }
    return every;
}

/* ---- the section ------------------------------------------------------------------------------------------------- */

uint32_t dt_coordinates_color(const dt_sweep_results *r, uint32_t row)
{
    return (uint32_t)((uint64_t)row * DT_COORDINATES_COLORS / (r->n_ranked > 0 ? r->n_ranked : 1));
}

static void write_legend(const dt_sweep_results *r, dt_str *out)
{
    static const char *const name[DT_COORDINATES_COLORS] = {"the best fifth", "second", "third", "fourth",
                                                            "the last fifth"};
    dt_str_add(out, "<p class=\"legend\">");
    if (r->n_ranked > 0) {
        dt_str_addf(out, "<span><i class=\"dot c1\"></i>trial %u, the best</span>", r->trial[0].trial);
    }
    for (uint32_t i = 0; i < DT_COORDINATES_COLORS && r->n_ranked >= DT_COORDINATES_COLORS; i++) {
        dt_str_addf(out, "<span><i class=\"dot q%u\"></i>%s</span>", i, name[i]);
    }
    if (r->n_ranked < r->n_trials) {
        dt_str_addf(out, "<span>dashed: %u without a value</span>", r->n_trials - r->n_ranked);
    }
    dt_str_add(out, "</p>\n");
}

dt_status dt_coordinates_write(const dt_sweep_results *r, dt_str *out)
{
    picture *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a picture of %u trials", r->n_trials);
    }
    p->r = r;
    dt_status st = fit_axes(p);
    if (st == DT_OK) {
        dt_str_add(out,
                   "<section id=\"parameters\"><h2>Parameters and results<small>a line for each trial</small></h2>\n");
        write_legend(r, out);
        dt_str_addf(out,
                    "<div class=\"scroll\"><svg class=\"parallel%s\" width=\"%.0f\" height=\"%d\" viewBox=\"0 0 %.0f "
                    "%d\" role=\"img\" aria-label=\"parallel coordinates of all trials\">",
                    r->n_trials > MANY_LINES ? " many" : "", p->width, HEIGHT, p->width, HEIGHT);
        write_axes(p, r->n_ranked < r->n_trials, out);
        const uint32_t every = write_lines(p, out);
        for (uint32_t k = 0; k < p->n; k++) {
            write_labels(&p->axis[k], out);
        }
        dt_str_add(out, "</svg></div>\n<p class=\"note\">Axes are the ranges that values are drawn from. Colours are "
                        "by rank: trials that trained longest first, of these the best.");
        if (every > 1) {
            dt_str_addf(out, " Of %u trials the first %d are drawn, and one in %u of the others.", r->n_trials,
                        BEST_LINES, every);
        }
        dt_str_add(out, "</p></section>\n");
        st = dt_str_status(out);
    }
    dt_free(p);
    return st;
}
