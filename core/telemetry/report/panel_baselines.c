/* SPDX-License-Identifier: Apache-2.0
 *
 * The policy compared with rule-based controllers, on the same seeds: evaluation/<n>-<phase>.baselines.json as a
 * table, a column a controller.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "base/err.h"
#include "telemetry/report/html.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 9 };

static const char result_prefix[] = "results/0/result/";

uint32_t dt_page_count_baselines(const dt_flat *f)
{
    char path[48];
    uint32_t n = 0;
    do {
        snprintf(path, sizeof(path), "results/%u/controller", ++n);
    } while (n < MAX_COLUMNS && dt_flat_find(f, path) != NULL);
    return n - 1;
}

double dt_page_baseline_value(const dt_flat *f, uint32_t i, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "results/%u/result/%s", i + 1, name);
    return dt_flat_number(f, path, NAN);
}

const char *dt_page_baseline_name(const dt_flat *f, uint32_t i)
{
    char path[48];
    snprintf(path, sizeof(path), "results/%u/controller", i + 1);
    const char *id = dt_flat_text(f, path);
    return strncmp(id, "controller_", 11) == 0 ? id + 11 : id;
}

/* "metrics/queue" of "results/0/result/metrics/queue/mean"; false: no mean */
static bool name_of_mean(const dt_flat_item *item, char name[192])
{
    const size_t bytes = strlen(item->path), skip = sizeof(result_prefix) - 1;
    if (bytes < skip + 5 || strncmp(item->path, result_prefix, skip) != 0 ||
        strcmp(item->path + bytes - 5, "/mean") != 0) {
        return false;
    }
    snprintf(name, 192, "%.*s", (int)(bytes - skip - 5), item->path + skip);
    return true;
}

static void write_row(const dt_page *p, const dt_flat *f, const char *name, uint32_t n)
{
    double value[MAX_COLUMNS], std[MAX_COLUMNS];
    char path[256], text[DT_NUMBER_BYTES];
    bool is_shown = false;
    for (uint32_t i = 0; i <= n; i++) {
        snprintf(path, sizeof(path), "results/%u/result/%s/mean", i, name);
        value[i] = dt_flat_number(f, path, NAN);
        snprintf(path, sizeof(path), "results/%u/result/%s/std", i, name);
        std[i] = dt_flat_number(f, path, NAN);
        is_shown = is_shown || (isfinite(value[i]) && value[i] != 0);
    }
    if (!is_shown) {
        return;
    }
    const char *slash = strrchr(name, '/');
    const int decimals = dt_decimals_for(value, n + 1);
    dt_str_add(p->out, "<tr><th><i>");
    if (slash != NULL) {
        snprintf(path, sizeof(path), "%.*s", (int)(slash + 1 - name), name);
        dt_html_escape(p->out, path);
    }
    dt_str_add(p->out, "</i>");
    dt_html_escape(p->out, slash != NULL ? slash + 1 : name);
    dt_str_add(p->out, "</th>");
    for (uint32_t i = 0; i <= n; i++) {
        dt_str_addf(p->out, i == 0 ? "<td><b>%s</b></td>" : "<td>%s</td>", dt_aligned_text(value[i], decimals, text));
        dt_str_add(p->out, "<td class=\"l soft near\">");
        if (isfinite(std[i])) {
            dt_str_addf(p->out, "\xc2\xb1 %s", dt_short_text(std[i], text));
        }
        dt_str_add(p->out, "</td>");
    }
    dt_str_add(p->out, "</tr>\n");
}

static void write_table(const dt_page *p, uint32_t run, const dt_flat *f, uint32_t n)
{
    char name[192];
    dt_str_add(p->out, "<div class=\"scroll\"><table class=\"baselines\"><thead><tr><th>");
    dt_page_write_run_name(p, run);
    dt_str_add(p->out, "</th><th>this policy</th><th></th>");
    for (uint32_t i = 0; i < n; i++) {
        dt_str_add(p->out, "<th>");
        dt_html_escape(p->out, dt_page_baseline_name(f, i));
        dt_str_add(p->out, "</th><th></th>");
    }
    dt_str_add(p->out, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < f->n; i++) {
        if (name_of_mean(&f->item[i], name) && strcmp(name, "length") != 0) {
            write_row(p, f, name, n);
        }
    }
    dt_str_add(p->out, "</tbody></table></div>\n");
}

dt_status dt_panel_write_baselines(const dt_page *p, const dt_page_phase *phase)
{
    bool is_open = false;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        dt_flat f = {0};
        if (phase->at[i] < 0) {
            continue;
        }
        DT_TRY(dt_logbook_read_evaluation(&p->run[i], (uint32_t)phase->at[i], ".baselines.json", &f));
        const uint32_t n = dt_page_count_baselines(&f);
        if (n > 0) {
            dt_str_add(p->out, is_open ? ""
                                       : "<details class=\"panel\"><summary>Compared with rule-based controllers, on "
                                         "the same seeds</summary>\n");
            is_open = true;
            write_table(p, i, &f, n);
        }
        dt_flat_fini(&f);
    }
    dt_str_add(p->out, is_open ? "</details>\n" : "");
    return DT_OK;
}
