/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/sweep_page.h"

#include "base/beneath.h"
#include "base/err.h"
#include "base/fs.h"
#include "study/sweep_coordinates.h"
#include "telemetry/report/html.h"
#include "telemetry/report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BEST = 10, MOST_ROWS = 1000, MOST_LINKS = 4, STATES = 4 };

typedef struct page {
    const char *folder;
    dt_sweep_results r;
    bool is_inside; /* it is a file of the folder: links to trials work */
    dt_str *out;
} page;

/* ---- head -------------------------------------------------------------------------------------------------------- */

static void write_tile(const char *name, const char *text, const char *note, dt_str *out)
{
    dt_str_addf(out, "<div><dt>%s</dt><dd>", name);
    dt_html_escape(out, text);
    dt_str_add(out, "</dd><dd class=\"note\">");
    dt_html_escape(out, note);
    dt_str_add(out, "</dd></div>");
}

/* "1 failed, 2 waiting": of trials without a value. */
static void count_states(const dt_sweep_results *r, char *out, size_t bytes)
{
    static const char *const name[STATES] = {"failed", "unknown", "waiting", "other"};
    uint32_t n[STATES] = {0};
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t t = r->n_ranked; t < r->n_trials; t++) {
        uint32_t i = 0;
        while (i < STATES - 1 && strncmp(r->trial[t].state, name[i], strlen(name[i])) != 0) {
            i++;
        }
        n[i]++;
    }
    for (uint32_t i = 0; i < STATES && used < bytes; i++) {
        if (n[i] > 0) {
            used += (size_t)snprintf(out + used, bytes - used, "%s%u %s", used > 0 ? ", " : "", n[i], name[i]);
        }
    }
}

static void write_head(const page *p)
{
    const dt_sweep_results *r = &p->r;
    char text[DT_NUMBER_BYTES], count[24], note[96], seeds[48];
    dt_str name = {0};
    dt_str_add(&name, p->folder);
    while (name.bytes > 1 && dt_str_text(&name)[name.bytes - 1] == '/') {
        dt_str_cut(&name, name.bytes - 1);
    }
    const char *slash = strrchr(dt_str_text(&name), '/');
    dt_page_begin("sweep", slash != NULL && slash[1] != '\0' ? slash + 1 : dt_str_text(&name), p->out);
    dt_str_fini(&name);
    dt_str_add(p->out, "<p class=\"soft\">");
    dt_html_escape(p->out, r->metric);
    dt_str_addf(p->out, ", %s is better</p></header>\n<dl class=\"tiles\">", r->is_min ? "less" : "more");
    snprintf(count, sizeof(count), "%u", r->n_trials);
    count_states(r, note, sizeof(note));
    write_tile("Trials", count, note[0] != '\0' ? note : "all have a value", p->out);
    write_tile("Search", r->search[0] != '\0' ? r->search : "\xe2\x80\x93", "", p->out);
    snprintf(seeds, sizeof(seeds), "%u", r->n_seeds);
    write_tile("Seeds of a trial", r->n_seeds > 0 ? seeds : "\xe2\x80\x93", "", p->out);
    write_tile("Best", r->n_ranked > 0 ? dt_number_text(r->trial[0].value, text) : "\xe2\x80\x93", "", p->out);
    dt_str_add(p->out, "</dl>\n");
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* Below the folder of the sweep; of a population its last copy. A foreign table names no other place. */
static bool append_trial_folder(const dt_trial_result *t, dt_str *out)
{
    unsigned trial = 0, generation = 0;
    int bytes = 0;
    if (t->trial == 0) {
        return false;
    }
    dt_str_addf(out, "trial-%04u", t->trial);
    if (sscanf(t->folder, "trial-%5u/generation-%3u%n", &trial, &generation, &bytes) == 2 && trial == t->trial &&
        t->folder[bytes] == '\0') {
        dt_str_addf(out, "/generation-%02u", generation);
    }
    return true;
}

/* To the report of each seed that has one. */
static void write_links(const page *p, const dt_trial_result *t)
{
    dt_str trial = {0}, path = {0};
    if (p->is_inside && append_trial_folder(t, &trial)) {
        for (uint32_t k = 0; k < p->r.n_seeds && k < MOST_LINKS; k++) {
            const long long seed = (long long)p->r.seed[k];
            dt_str_clear(&path);
            dt_str_addf(&path, "%s/%s/seed-%lld/report.html", p->folder, dt_str_text(&trial), seed);
            if (dt_str_status(&path) == DT_OK && dt_fs_is_file(dt_str_text(&path))) {
                dt_str_addf(p->out, " <a href=\"%s/seed-%lld/report.html\">seed %lld</a>", dt_str_text(&trial), seed,
                            seed);
            }
        }
    }
    dt_str_fini(&trial);
    dt_str_fini(&path);
}

static void write_value(const page *p, uint32_t row)
{
    char text[DT_NUMBER_BYTES];
    const dt_iqm v = dt_sweep_results_interval(&p->r, row);
    dt_str_addf(p->out, "<td><b>%s</b>", dt_number_text(v.value, text));
    if (isfinite(v.low)) {
        dt_str_addf(p->out, " <span class=\"soft\">[%s", dt_number_text(v.low, text));
        dt_str_addf(p->out, ", %s]</span>", dt_number_text(v.high, text));
    }
    dt_str_add(p->out, "</td>");
}

static void write_row(const page *p, uint32_t row)
{
    const dt_trial_result *t = &p->r.trial[row];
    char text[DT_NUMBER_BYTES];
    if (row < p->r.n_ranked) {
        dt_str_addf(p->out, "<tr><th>%u</th><td><span class=\"dot %s%u\"></span>%u</td><td class=\"l\">", row + 1,
                    row == 0 ? "c" : "q", row == 0 ? 1 : dt_coordinates_color(&p->r, row), t->trial);
    } else {
        dt_str_addf(p->out, "<tr><th>\xe2\x80\x93</th><td>%u</td><td class=\"l\">", t->trial);
    }
    dt_html_escape(p->out, t->state);
    const bool has_steps = t->steps > 0 && row < p->r.n_ranked; /* 0: it trained until it ended by itself */
    dt_str_addf(p->out, "</td><td>%s</td>", dt_number_text(has_steps ? t->steps : (double)NAN, text));
    write_value(p, row);
    dt_str_add(p->out, "<td class=\"l\">");
    write_links(p, t);
    dt_str_add(p->out, "</td>");
    for (uint32_t k = 0; k < p->r.space.n; k++) {
        dt_str_add(p->out, "<td>");
        dt_html_escape(p->out, t->text[k]);
        dt_str_add(p->out, "</td>");
    }
    dt_str_add(p->out, "</tr>\n");
}

static void write_rows(const page *p, uint32_t from, uint32_t to)
{
    dt_str_add(p->out, "<div class=\"scroll\"><table class=\"trials\"><thead><tr><th>rank</th><th>trial</th>"
                       "<th class=\"l\">state</th><th>steps</th><th>");
    dt_html_escape(p->out, p->r.metric);
    dt_str_add(p->out, "</th><th class=\"l\">report</th>");
    for (uint32_t k = 0; k < p->r.space.n; k++) {
        dt_str_add(p->out, "<th>");
        dt_html_escape(p->out, p->r.space.parameter[k].key);
        dt_str_add(p->out, "</th>");
    }
    dt_str_add(p->out, "</tr></thead><tbody>\n");
    for (uint32_t i = from; i < to; i++) {
        write_row(p, i);
    }
    dt_str_add(p->out, "</tbody></table></div>\n");
}

static void write_trials(const page *p)
{
    const uint32_t n = p->r.n_trials, shown = n < MOST_ROWS ? n : MOST_ROWS, best = n < BEST ? n : BEST;
    dt_str_add(p->out, "<section id=\"trials\"><h2>Best trials</h2>\n");
    write_rows(p, 0, best);
    dt_str_addf(p->out, "<p class=\"note\">Trials that trained longest first, of these the best.%s%s</p>\n",
                p->r.n_seeds > 1 ? " Values are interquartile means over seeds, with 95 % intervals of a bootstrap "
                                   "(Agarwal et al. 2021). The best of many is better than it will be with other seeds."
                                 : " With one seed, the best of many is better than it will be with other seeds.",
                p->is_inside ? "" : " Reports of trials are in their folders.");
    if (shown > best) {
        dt_str_addf(p->out, "<details class=\"panel\"><summary>Trials %u to %u of %u</summary>\n", best + 1, shown, n);
        write_rows(p, best, shown);
        dt_str_add(p->out, "</details>\n");
    }
    dt_str_add(p->out, shown < n ? "<p class=\"note\">summary.json has the others.</p></section>\n" : "</section>\n");
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static bool is_file_of(const char *folder, const char *path)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/') {
        n--;
    }
    const char *name = path + n + strspn(path + (strncmp(path, folder, n) == 0 ? n : 0), "/");
    return strncmp(path, folder, n) == 0 && path[n] == '/' && strchr(name, '/') == NULL;
}

static dt_status write_page(page *p, const char *path)
{
    DT_TRY(dt_sweep_results_read(p->folder, &p->r));
    write_head(p);
    write_trials(p);
    DT_TRY(dt_coordinates_write(&p->r, p->out));
    dt_page_end(p->out);
    DT_TRY(dt_str_status(p->out));
    return dt_fs_write_atomic(path, dt_str_text(p->out), p->out->bytes);
}

dt_status dt_sweep_write_page(const char *folder, const char *path)
{
    dt_str text = {0};
    page p = {.folder = folder, .is_inside = is_file_of(folder, path), .out = &text};
    DT_TRY(dt_beneath_guard(folder)); /* it may be foreign */
    const dt_status st = write_page(&p, path);
    dt_beneath_unguard(folder);
    dt_sweep_results_fini(&p.r);
    dt_str_fini(&text);
    return st;
}
