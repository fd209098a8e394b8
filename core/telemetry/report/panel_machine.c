/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run ran on and with: program, machine, command line, plugins with their hashes.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "telemetry/report/html.h"

#include <stdio.h>
#include <string.h>

enum { HASH_SHOWN = 12 };

static const struct {
    const char *name, *path[3]; /* in meta.json; joined by spaces */
} facts[] = {
    {"Version", {"version"}},
    {"Host", {"host/name"}},
    {"System", {"host/system", "host/release", "host/machine"}},
    {"Device", {"device"}},
    {"Instructions", {"cpu_isa"}},
    {"Threads", {"threads"}},
    {"Ranks", {"ranks"}},
    {"Seed", {"seed"}},
    {"Began", {"start"}},
    {"Ended", {"end"}},
    {"Exit code", {"exit_code"}},
};

static void write_head(const dt_page *p, const char *name)
{
    dt_str_addf(p->out, "<tr><th>%s</th>", name);
}

static void write_facts(const dt_page *p)
{
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        write_head(p, facts[i].name);
        for (uint32_t r = 0; r < p->n_runs; r++) {
            dt_str_add(p->out, "<td class=\"l\">");
            for (int k = 0; k < 3 && facts[i].path[k] != NULL; k++) {
                dt_str_add(p->out, k > 0 ? " " : "");
                dt_html_escape(p->out, dt_flat_text(&p->run[r].meta, facts[i].path[k]));
            }
            dt_str_add(p->out, "</td>");
        }
        dt_str_add(p->out, "</tr>\n");
    }
}

static void write_command(const dt_page *p, const dt_flat *meta)
{
    char path[32];
    dt_str_add(p->out, "<td class=\"l\"><code>");
    for (uint32_t i = 0;; i++) {
        snprintf(path, sizeof(path), "argv/%u", i);
        const dt_flat_item *word = dt_flat_find(meta, path);
        if (word == NULL) {
            break;
        }
        dt_str_add(p->out, i > 0 ? " " : "");
        dt_html_escape(p->out, word->text);
    }
    dt_str_add(p->out, "</code></td>");
}

static void write_plugins(const dt_page *p, const dt_flat *meta)
{
    char path[48], hash[HASH_SHOWN + 1];
    dt_str_add(p->out, "<td class=\"l\"><ul class=\"plain\">");
    for (uint32_t i = 0;; i++) {
        snprintf(path, sizeof(path), "plugins/%u/name", i);
        const dt_flat_item *name = dt_flat_find(meta, path);
        if (name == NULL) {
            break;
        }
        dt_str_add(p->out, "<li>");
        dt_html_escape(p->out, name->text);
        dt_str_add(p->out, " ");
        snprintf(path, sizeof(path), "plugins/%u/version", i);
        dt_html_escape(p->out, dt_flat_text(meta, path));
        snprintf(path, sizeof(path), "plugins/%u/sha256", i);
        snprintf(hash, sizeof(hash), "%s", dt_flat_text(meta, path));
        dt_str_add(p->out, " <code class=\"soft\">");
        dt_html_escape(p->out, hash);
        dt_str_add(p->out, "</code></li>");
    }
    dt_str_add(p->out, "</ul></td>");
}

dt_status dt_panel_write_machine(const dt_page *p)
{
    dt_str_add(p->out,
               "<section id=\"machine\"><h2>Program and machine</h2>\n<details><summary>Version, host, command and "
               "plugins</summary>\n<div class=\"scroll\"><table class=\"machine\">");
    if (p->n_runs > 1) {
        dt_str_add(p->out, "<thead><tr><th></th>");
        for (uint32_t r = 0; r < p->n_runs; r++) {
            dt_str_add(p->out, "<th class=\"l\">");
            dt_page_write_run_name(p, r);
            dt_str_add(p->out, "</th>");
        }
        dt_str_add(p->out, "</tr></thead>");
    }
    dt_str_add(p->out, "<tbody>\n");
    write_facts(p);
    write_head(p, "Command");
    for (uint32_t r = 0; r < p->n_runs; r++) {
        write_command(p, &p->run[r].meta);
    }
    dt_str_add(p->out, "</tr>\n");
    write_head(p, "Plugins");
    for (uint32_t r = 0; r < p->n_runs; r++) {
        write_plugins(p, &p->run[r].meta);
    }
    dt_str_add(p->out, "</tr></tbody></table></div></details></section>\n");
    return DT_OK;
}
