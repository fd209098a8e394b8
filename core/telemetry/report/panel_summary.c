/* SPDX-License-Identifier: Apache-2.0
 *
 * What was achieved: a sentence for each phase; and, for each phase whose policy was evaluated next to baselines, its
 * return and the environment's first metric, with 95 % confidence intervals over the seeds, compared with each baseline
 * and with the phase before. All were evaluated on the same seeds, so differences are taken seed by seed (paired t
 * interval; Student 1908).
 */
#include <config.h>

#include "telemetry/report/plugin_panels.h"

#include "base/err.h"
#include "telemetry/report/html.h"
#include "telemetry/report/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SEEDS = 256 };
#define NO_BREAK "\xc2\xa0"

typedef struct sample { /* a result's values by seed */
    double value[MAX_SEEDS];
    uint32_t n;
} sample;

/* 0.975 quantile of Student's t with df degrees of freedom; beyond the table the next smaller df, which is wider. */
static double t_quantile(uint32_t df)
{
    static const double t[] = {NAN,   12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                               2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080,
                               2.074, 2.069,  2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    const uint32_t last = sizeof(t) / sizeof(t[0]) - 1;
    return df <= last ? t[df] : df < 60 ? 2.042 : df < 120 ? 2.000 : 1.980;
}

/* Mean, and half the width of its 95 % interval; NAN: one value, or none. */
static void compute_mean_and_interval(const sample *s, double *mean_p, double *half_p)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        sum += s->value[i];
    }
    *mean_p = s->n > 0 ? sum / s->n : NAN;
    for (uint32_t i = 0; i < s->n; i++) {
        squares += (s->value[i] - *mean_p) * (s->value[i] - *mean_p);
    }
    *half_p = s->n > 1 ? t_quantile(s->n - 1) * sqrt(squares / (s->n - 1) / s->n) : NAN;
}

/* Values by seed of one result; nothing where one of them is no number. */
static void read_sample(const dt_flat *f, uint32_t result, const char *name, sample *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < MAX_SEEDS; i++) {
        char path[256];
        snprintf(path, sizeof(path), "results/%u/result/%s/values/%u", result, name, i);
        if (dt_flat_find(f, path) == NULL) {
            break;
        }
        out->value[out->n++] = dt_flat_number(f, path, NAN);
    }
    for (uint32_t i = 0; i < out->n; i++) {
        if (!isfinite(out->value[i])) {
            out->n = 0;
        }
    }
}

/* "metrics/strict_delay_s": the first metric of the environment; false: it has none. */
static bool find_headline(const dt_flat *f, char name[192])
{
    static const char prefix[] = "results/0/result/metrics/";
    for (uint32_t i = 0; i < f->n; i++) {
        const char *path = f->item[i].path;
        const char *end =
            strncmp(path, prefix, sizeof(prefix) - 1) == 0 ? strstr(path + sizeof(prefix) - 1, "/mean") : NULL;
        if (end != NULL && end[5] == '\0') {
            snprintf(name, 192, "%.*s", (int)(end - path - (long)strlen("results/0/result/")),
                     path + strlen("results/0/result/"));
            return true;
        }
    }
    return false;
}

/* Were both evaluated in the same environment on the same seeds? */
static bool is_comparable(const dt_flat *a, const dt_flat *b)
{
    char path[64];
    bool is_same = strcmp(dt_flat_text(a, "results/0/result/env"), dt_flat_text(b, "results/0/result/env")) == 0;
    for (uint32_t i = 0; i < MAX_SEEDS && is_same; i++) {
        snprintf(path, sizeof(path), "results/0/result/seeds/%u", i);
        const dt_flat_item *x = dt_flat_find(a, path), *y = dt_flat_find(b, path);
        if (x == NULL && y == NULL) {
            return i > 0;
        }
        is_same = x != NULL && y != NULL && strcmp(x->text, y->text) == 0;
    }
    return is_same;
}

static void write_mean(const dt_page *p, const sample *s)
{
    char text[DT_NUMBER_BYTES];
    double mean = 0, half = 0;
    compute_mean_and_interval(s, &mean, &half);
    dt_str_add(p->out, dt_number_text(mean, text));
    if (isfinite(half)) {
        dt_str_addf(p->out, " \xc2\xb1 %s", dt_short_text(half, text));
    }
}

typedef struct difference { /* of the policy to another one */
    double mean, half;      /* half: of its interval, NAN: one seed */
    double share;           /* of the other's mean, NAN: that is 0 */
} difference;

/* Paired by seed; false: the two have no seeds in common. */
static bool compare_paired(const sample *policy, const sample *other, difference *out)
{
    sample d = {.n = policy->n};
    double base = 0, unused = 0;
    if (policy->n != other->n || policy->n == 0) {
        return false;
    }
    for (uint32_t i = 0; i < d.n; i++) {
        d.value[i] = policy->value[i] - other->value[i];
    }
    compute_mean_and_interval(&d, &out->mean, &out->half);
    compute_mean_and_interval(other, &base, &unused);
    out->share = base != 0 ? out->mean / fabs(base) : (double)NAN;
    return true;
}

static bool is_significant(const difference *d)
{
    return !(isfinite(d->half) && fabs(d->mean) <= d->half);
}

/* "+12", with a true minus, in percent. */
static void write_percent(const dt_page *p, double share)
{
    const double percent = round(100 * share);
    dt_str_addf(p->out, "%s%.0f" NO_BREAK "%%", percent < 0 ? "\xe2\x88\x92" : "+", fabs(percent));
}

/* The policy's difference to another one, as "-38 %" or as "no significant difference". */
static void write_difference(const dt_page *p, const sample *policy, const sample *other)
{
    char text[DT_NUMBER_BYTES];
    difference d;
    if (!compare_paired(policy, other, &d)) {
        return;
    }
    dt_str_add(p->out, "<br/><span class=\"soft\">");
    if (!is_significant(&d)) {
        dt_str_add(p->out, "no significant difference");
    } else {
        dt_str_addf(p->out, "policy %s%s", d.mean > 0 ? "+" : "", dt_short_text(d.mean, text));
        if (isfinite(d.share)) {
            dt_str_add(p->out, " (");
            write_percent(p, d.share);
            dt_str_add(p->out, ")");
        }
        dt_str_add(p->out, isfinite(d.half) ? "" : ", one seed");
    }
    dt_str_add(p->out, "</span>");
}

static void write_row(const dt_page *p, const dt_flat *f, const dt_flat *before, const char *name, uint32_t n)
{
    sample policy, other;
    const char *slash = strrchr(name, '/');
    read_sample(f, 0, name, &policy);
    dt_str_add(p->out, "<tr><th>");
    dt_html_escape(p->out, slash != NULL ? slash + 1 : name);
    dt_str_add(p->out, "</th><td><b>");
    write_mean(p, &policy);
    dt_str_add(p->out, "</b></td>");
    if (before != NULL) {
        read_sample(before, 0, name, &other);
        dt_str_add(p->out, "<td>");
        write_mean(p, &other);
        write_difference(p, &policy, &other);
        dt_str_add(p->out, "</td>");
    }
    for (uint32_t i = 1; i <= n; i++) {
        read_sample(f, i, name, &other);
        dt_str_add(p->out, "<td>");
        write_mean(p, &other);
        write_difference(p, &policy, &other);
        dt_str_add(p->out, "</td>");
    }
    dt_str_add(p->out, "</tr>\n");
}

static void write_phase(const dt_page *p, uint32_t run, uint32_t phase, const dt_flat *f, const dt_flat *before)
{
    char metric[192], path[64];
    const uint32_t n = dt_page_count_baselines(f);
    uint32_t n_seeds = 0;
    do {
        snprintf(path, sizeof(path), "results/0/result/seeds/%u", n_seeds);
    } while (dt_flat_find(f, path) != NULL && ++n_seeds < MAX_SEEDS);
    dt_str_add(p->out, "<div class=\"scroll\"><table class=\"achieved\"><thead><tr><th>");
    dt_page_write_run_name(p, run);
    dt_str_add(p->out, p->n_runs > 1 ? " " : "");
    dt_html_escape(p->out, p->run[run].records->phase[phase].id);
    dt_str_addf(p->out, ", %u seed%s</th><th>policy</th>", n_seeds, n_seeds == 1 ? "" : "s");
    dt_str_add(p->out, before != NULL ? "<th>phase before</th>" : "");
    for (uint32_t i = 0; i < n; i++) {
        dt_str_add(p->out, "<th>");
        dt_html_escape(p->out, dt_page_baseline_name(f, i));
        dt_str_add(p->out, "</th>");
    }
    dt_str_add(p->out, "</tr></thead><tbody>\n");
    if (find_headline(f, metric)) {
        write_row(p, f, before, metric, n);
    }
    write_row(p, f, before, "return", n);
    dt_str_add(p->out, "</tbody></table></div>\n");
}

/* ---- a sentence for each phase ---------------------------------------------------------------------------------- */

static void write_unit(const dt_page *p, const char *unit)
{
    dt_str_add(p->out, unit[0] != '\0' ? NO_BREAK : "");
    dt_html_escape(p->out, unit);
}

/* ", greedy 67.7 s (policy -22 %)" */
static void write_comparison(const dt_page *p, const char *who, const sample *policy, const sample *other,
                             const char *unit)
{
    char text[DT_NUMBER_BYTES];
    difference d;
    double mean = 0, unused = 0;
    if (!compare_paired(policy, other, &d)) {
        return;
    }
    compute_mean_and_interval(other, &mean, &unused);
    dt_str_add(p->out, "; ");
    dt_html_escape(p->out, who);
    dt_str_addf(p->out, NO_BREAK "%s", dt_number_text(mean, text));
    write_unit(p, unit);
    if (!is_significant(&d)) {
        dt_str_add(p->out, " (no significant difference)");
    } else if (isfinite(d.share)) {
        dt_str_add(p->out, " (<b>");
        write_percent(p, d.share);
        dt_str_addf(p->out, "</b>%s)", isfinite(d.half) ? "" : ", one seed");
    }
}

static void write_policy_sentence(const dt_page *p, const dt_flat *f, const dt_flat *before)
{
    char metric[192] = "return";
    sample policy, other;
    (void)find_headline(f, metric);
    const char *slash = strrchr(metric, '/'), *unit = dt_unit_of(metric);
    read_sample(f, 0, metric, &policy);
    dt_html_escape(p->out, slash != NULL ? slash + 1 : metric);
    dt_str_add(p->out, " <b>");
    write_mean(p, &policy);
    write_unit(p, unit);
    dt_str_add(p->out, "</b>");
    for (uint32_t i = 0; i < dt_page_count_baselines(f); i++) {
        read_sample(f, i + 1, metric, &other);
        write_comparison(p, dt_page_baseline_name(f, i), &policy, &other, unit);
    }
    if (before != NULL) {
        read_sample(before, 0, metric, &other);
        write_comparison(p, "phase before", &policy, &other, unit);
    }
}

/* Of a policy without baselines its return; of other phases what their plugin reports. */
static void write_other_sentence(const dt_page *p, const dt_page_phase *phase)
{
    const size_t before = p->out->bytes;
    char text[DT_NUMBER_BYTES];
    dt_plugin_panels_summarise(p, phase);
    const double mean = dt_page_last_evaluated(p, phase, 0, "eval/return/mean");
    const double deviation = dt_page_last_evaluated(p, phase, 0, "eval/return/std");
    if (p->out->bytes > before || isnan(mean)) {
        return;
    }
    dt_str_addf(p->out, "return <b>%s</b>", dt_number_text(mean, text));
    if (isfinite(deviation)) {
        dt_str_addf(p->out, ", deviation over seeds %s", dt_short_text(deviation, text));
    }
}

/* What is written of each phase of a run. */
enum { SENTENCES, TABLES };

static void open_section(const dt_page *p, int what, bool *is_open_p)
{
    if (!*is_open_p) {
        dt_str_add(p->out, "<section id=\"achieved\"><h2>What was achieved</h2>\n");
        dt_str_add(p->out, p->n_groups < p->n_runs
                               ? "<details><summary>Each run, compared with its baselines</summary>\n"
                               : "");
        dt_str_add(p->out, what == SENTENCES ? "<ul class=\"headline\">\n" : "");
    }
    *is_open_p = true;
}

/* number: of the phase, from 1 */
static void write_result_sentence(const dt_page *p, const dt_page_phase *phase, uint32_t number, const dt_flat *f,
                                  const dt_flat *before, bool *is_open_p)
{
    const size_t start = p->out->bytes;
    const bool was_open = *is_open_p;
    open_section(p, SENTENCES, is_open_p);
    dt_str_addf(p->out, "<li><a href=\"#phase-%u\">", number);
    dt_html_escape(p->out, phase->id);
    dt_str_add(p->out, "</a> ");
    const size_t empty = p->out->bytes;
    if (dt_page_count_baselines(f) > 0) {
        write_policy_sentence(p, f, before);
    } else {
        write_other_sentence(p, phase);
    }
    if (p->out->bytes == empty) {
        dt_str_cut(p->out, start);
        *is_open_p = was_open;
        return;
    }
    dt_str_add(p->out, "</li>\n");
}

/* phase: of the page, for sentences, which are of its only run */
static dt_status write_run(const dt_page *p, uint32_t run, const dt_page_phase *phase, uint32_t n, bool *is_open_p)
{
    dt_flat before = {0};
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        dt_flat f = {0};
        st = dt_logbook_read_evaluation(&p->run[run], i, ".baselines.json", &f);
        const bool has_baselines = st == DT_OK && dt_page_count_baselines(&f) > 0;
        const dt_flat *last = has_baselines && before.n > 0 && is_comparable(&f, &before) ? &before : NULL;
        if (st == DT_OK && phase != NULL) {
            write_result_sentence(p, &phase[i], i + 1, &f, last, is_open_p);
        } else if (has_baselines) {
            open_section(p, TABLES, is_open_p);
            write_phase(p, run, i, &f, last);
        }
        if (has_baselines) {
            dt_flat_fini(&before);
            before = f;
        } else {
            dt_flat_fini(&f);
        }
    }
    dt_flat_fini(&before);
    return st;
}

dt_status dt_panel_write_summary(const dt_page *p, const dt_page_phase *phase, uint32_t n)
{
    bool is_open = false;
    if (p->n_runs == 1) {
        DT_TRY(write_run(p, 0, phase, n, &is_open));
        dt_str_add(p->out, is_open ? "</ul>\n" : "");
    }
    const size_t before = p->out->bytes;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        DT_TRY(write_run(p, i, NULL, p->run[i].records->n_phases, &is_open));
    }
    if (p->out->bytes > before) {
        dt_str_add(p->out,
                   "<p class=\"note\">Means over seeds with 95 % confidence intervals. Differences are taken seed "
                   "by seed; one whose interval contains 0 is not significant.</p>");
    }
    dt_str_add(p->out, is_open && p->n_groups < p->n_runs ? "</details>" : "");
    dt_str_add(p->out, is_open ? "</section>\n" : "");
    return DT_OK;
}
