/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that was recorded, a small chart each, in groups; constant values are printed in a line instead. The
 * curves that show at a glance whether a phase learns are a panel of their own.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/report/html.h"

#include <stdio.h>
#include <string.h>

typedef struct group {
    const char *title;
    const char *begins[6]; /* names that belong here, by how they begin */
} group;

static const group groups[] = {
    {"Learning", {"loss", "lr", "losses/", "grad/", "charts/", "multipliers/"}},
    {"Episodes", {"charts/episod", "env/", "shield/"}},
    {"Other", {""}},
    {"Speed", {"charts/SPS", "charts/env_steps_", "charts/learn_samples_", "time/", "ranks/", "mem/"}},
};
enum { N_GROUPS = sizeof(groups) / sizeof(groups[0]), MAX_BEGINS = 6 };

/* Panels of their own show these. */
static bool has_own_panel(const dt_page_phase *phase, const char *name)
{
    static const char *const begins[] = {"eval/", "costs/", "limits/"};
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    const bool is_axis = phase->is_over_env_steps && strcmp(name, "env_steps") == 0;
    return is_axis || strcmp(name, "progress") == 0 || dt_page_is_memory(name);
}

/* The group whose beginning fits best, and which of its beginnings. */
static size_t group_of_metric(const char *name, size_t *begin_p)
{
    size_t best = 0, bytes = 0;
    *begin_p = 0;
    for (size_t i = 0; i < N_GROUPS; i++) {
        for (size_t k = 0; k < MAX_BEGINS && groups[i].begins[k] != NULL; k++) {
            const size_t n = strlen(groups[i].begins[k]);
            if (strncmp(name, groups[i].begins[k], n) == 0 && (n > bytes || (bytes == 0 && n == 0))) {
                best = i;
                bytes = n;
                *begin_p = k;
            }
        }
    }
    return best;
}

/* One group, its names in the order of its beginnings. */
static dt_status write_group(const dt_page *p, const dt_page_phase *phase, size_t g, const char **name, uint32_t n)
{
    bool is_open = false;
    for (size_t k = 0; k < MAX_BEGINS; k++) {
        for (uint32_t i = 0; i < n; i++) {
            double value = 0;
            size_t begin = 0;
            if (has_own_panel(phase, name[i]) || group_of_metric(name[i], &begin) != g || begin != k ||
                dt_page_is_constant(p, phase, name[i], &value)) {
                continue;
            }
            if (!is_open) {
                dt_str_addf(p->out, "<h3>%s</h3>\n<div class=\"charts\">\n", groups[g].title);
                is_open = true;
            }
            DT_TRY(dt_page_write_chart(p, phase, name[i]));
        }
    }
    dt_str_add(p->out, is_open ? "</div>\n" : "");
    return DT_OK;
}

static void write_constants(const dt_page *p, const dt_page_phase *phase, const char **name, uint32_t n)
{
    bool is_open = false;
    double value = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (strncmp(name[i], "eval/", 5) == 0 || dt_page_is_memory(name[i]) || dt_page_is_unused(p, name[i]) ||
            !dt_page_is_constant(p, phase, name[i], &value)) {
            continue;
        }
        if (!is_open) {
            dt_str_add(p->out, "<h3>Never changed</h3>\n<ul class=\"constants\">");
            is_open = true;
        }
        dt_str_add(p->out, "<li>");
        dt_html_escape(p->out, name[i]);
        dt_str_add(p->out, " <b>");
        dt_html_append_number(p->out, value);
        dt_str_add(p->out, "</b></li>\n");
    }
    dt_str_add(p->out, is_open ? "</ul>\n" : "");
}

/* Of the environment's metrics the first one that is evaluated: what the progress line shows. */
static void find_headline(const char **name, uint32_t n, char out[192])
{
    static const char begin[] = "eval/metrics/", end[] = "/mean";
    const size_t skipped = sizeof(begin) - 1, ending = sizeof(end) - 1;
    out[0] = '\0';
    for (uint32_t i = 0; i < n && out[0] == '\0'; i++) {
        const size_t bytes = strlen(name[i]);
        if (bytes > skipped + ending && strncmp(name[i], begin, skipped) == 0 &&
            strcmp(name[i] + bytes - ending, end) == 0) {
            snprintf(out, 192, "env/%.*s", (int)(bytes - skipped - ending), name[i] + skipped);
        }
    }
}

dt_status dt_panel_write_training(const dt_page *p, const dt_page_phase *phase)
{
    const char **name = NULL;
    char headline[192];
    uint32_t n = 0;
    bool is_open = false;
    DT_TRY(dt_page_list_names(p, phase, &name, &n));
    find_headline(name, n, headline);
    dt_free(name);
    const bool acts = dt_page_has_course(p, phase, "charts/episodic_return");
    const char *const shown[] = {acts ? "charts/episodic_return" : "loss", headline};
    dt_status st = DT_OK;
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]) && st == DT_OK; i++) {
        if (shown[i][0] != '\0' && dt_page_has_course(p, phase, shown[i])) {
            dt_str_add(p->out, is_open ? "" : "<h3>Training</h3>\n<div class=\"charts\">\n");
            is_open = true;
            st = dt_page_write_chart(p, phase, shown[i]);
        }
    }
    dt_str_add(p->out, is_open ? "</div>\n" : "");
    return st;
}

dt_status dt_panel_write_curves(const dt_page *p, const dt_page_phase *phase)
{
    const char **name = NULL;
    uint32_t n = 0;
    DT_TRY(dt_page_list_names(p, phase, &name, &n));
    dt_status st = DT_OK;
    for (size_t g = 0; g < N_GROUPS && st == DT_OK; g++) {
        st = write_group(p, phase, g, name, n);
    }
    if (st == DT_OK) {
        write_constants(p, phase, name, n);
    }
    dt_free(name);
    return st;
}
