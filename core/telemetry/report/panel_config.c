/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration and where every value came from: first values that a file, an option or the environment set, or,
 * of several configurations, those that differ; then, folded, the others.
 */
#include <config.h>

#include "telemetry/report/panel.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/report/html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct keys { /* of all runs, each once; in the order of the first run that has it */
    char **key;
    uint32_t n, cap;
} keys;

static bool add_key(keys *k, const char *path, size_t bytes)
{
    for (uint32_t i = 0; i < k->n; i++) {
        if (strncmp(k->key[i], path, bytes) == 0 && k->key[i][bytes] == '\0') {
            return true;
        }
    }
    if (k->n == k->cap) {
        const uint32_t cap = k->cap > 0 ? 2 * k->cap : 128;
        char **grown = dt_realloc(k->key, cap * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        k->key = grown;
        k->cap = cap;
    }
    char *copy = dt_alloc(bytes + 1);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, path, bytes);
    k->key[k->n++] = copy;
    return true;
}

static dt_status collect_values(const dt_page *p, keys *k)
{
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const dt_flat *f = &p->run[i].config;
        for (uint32_t j = 0; j < f->n; j++) {
            const char *end = strstr(f->item[j].path, "/origin");
            if (end != NULL && end[7] == '\0' && !add_key(k, f->item[j].path, (size_t)(end - f->item[j].path))) {
                return DT_FAIL(DT_ENOMEM, "out of memory for the configuration of %s", p->run[i].path);
            }
        }
    }
    return DT_OK;
}

/* The key whose value holds for this one: a phase that has no value of its own has that of all phases. */
static const char *find_effective_key(const dt_flat *f, const char *key)
{
    static const char begin[] = "phases.";
    char path[256];
    snprintf(path, sizeof(path), "%s/origin", key);
    const size_t digits =
        strncmp(key, begin, sizeof(begin) - 1) == 0 ? strspn(key + sizeof(begin) - 1, "0123456789") : 0;
    const char *shared = key + sizeof(begin) - 1 + digits;
    return digits > 0 && *shared == '.' && dt_flat_text(f, path)[0] == '\0' ? shared + 1 : key;
}

/* A value as text; the elements of a list with commas between. */
static void append_value(const dt_flat *f, const char *key, dt_str *out)
{
    char path[256];
    const int n = snprintf(path, sizeof(path), "%s/value", find_effective_key(f, key));
    bool is_next = false;
    for (uint32_t i = 0; i < f->n; i++) {
        const char *at = f->item[i].path;
        if (strncmp(at, path, (size_t)n) == 0 && (at[n] == '\0' || at[n] == '/')) {
            dt_str_add(out, is_next ? ", " : "");
            dt_str_add(out, f->item[i].text);
            is_next = true;
        }
    }
}

static const char *read_origin(const dt_flat *f, const char *key)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/origin", find_effective_key(f, key));
    return dt_flat_text(f, path);
}

/* "plugin phase2_ppo": a default of that plugin. */
static bool is_default(const char *origin)
{
    return origin[0] == '\0' || strcmp(origin, "built-in") == 0 || strncmp(origin, "plugin ", 7) == 0;
}

typedef struct entry {
    dt_str value[DT_PAGE_MAX_RUNS];
    bool differs, is_chosen;
} entry;

static dt_status read_entry(const dt_page *p, const char *key, entry *e)
{
    *e = (entry){0};
    for (uint32_t i = 0; i < p->n_runs; i++) {
        if (!dt_page_is_first_of_group(p, i)) {
            continue; /* as the first of its group, but for the seed */
        }
        const char *origin = read_origin(&p->run[i].config, key);
        append_value(&p->run[i].config, key, &e->value[i]);
        DT_TRY(dt_str_status(&e->value[i]));
        e->differs = e->differs || strcmp(dt_str_text(&e->value[0]), dt_str_text(&e->value[i])) != 0;
        e->is_chosen = e->is_chosen || !is_default(origin);
    }
    return DT_OK;
}

static void write_entry(const dt_page *p, const char *key, const entry *e)
{
    dt_str_add(p->out, e->differs ? "<tr class=\"differs\"><th>" : "<tr><th>");
    dt_html_escape(p->out, key);
    dt_str_add(p->out, "</th>");
    for (uint32_t i = 0; i < p->n_runs; i++) {
        if (!dt_page_is_first_of_group(p, i)) {
            continue;
        }
        dt_str_add(p->out, "<td class=\"l\">");
        dt_html_escape(p->out, dt_str_text(&e->value[i]));
        dt_str_add(p->out, "</td>");
    }
    dt_str_add(p->out, "<td class=\"l soft\">");
    const char *before = NULL;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const char *origin = read_origin(&p->run[i].config, key);
        if (before == NULL || strcmp(before, origin) != 0) {
            dt_str_add(p->out, before != NULL ? "; " : "");
            dt_html_escape(p->out, origin);
        }
        before = origin;
    }
    dt_str_add(p->out, "</td></tr>\n");
}

static void write_item(const dt_page *p, const char *key, const entry *e)
{
    dt_str_add(p->out, "<li>");
    dt_html_escape(p->out, key);
    dt_str_add(p->out, " <b>");
    dt_html_escape(p->out, dt_str_text(&e->value[0]));
    dt_str_add(p->out, "</b> <i>");
    dt_html_escape(p->out, read_origin(&p->run[0].config, key));
    dt_str_add(p->out, "</i></li>\n");
}

static void write_opening(const dt_page *p)
{
    if (p->n_groups == 1) {
        dt_str_add(p->out, "<ul class=\"constants config\">\n");
        return;
    }
    dt_str_add(p->out, "<div class=\"scroll\"><table class=\"config\"><thead><tr><th>Key</th>");
    for (uint32_t r = 0; r < p->n_runs; r++) {
        if (!dt_page_is_first_of_group(p, r)) {
            continue;
        }
        dt_str_add(p->out, "<th class=\"l\">");
        dt_page_write_run_name(p, r);
        dt_str_add(p->out, "</th>");
    }
    dt_str_add(p->out, "<th class=\"l\">From</th></tr></thead><tbody>\n");
}

/* Of one configuration what was set; of several what differs between them. */
static bool is_entry_shown(const dt_page *p, const entry *e)
{
    return p->n_groups > 1 ? e->differs : e->is_chosen;
}

static dt_status write_values(const dt_page *p, const keys *k, bool want_shown, uint32_t *n_p)
{
    uint32_t n = 0;
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < k->n && st == DT_OK; i++) {
        entry e;
        st = read_entry(p, k->key[i], &e);
        if (st == DT_OK && is_entry_shown(p, &e) == want_shown) {
            if (n++ == 0) {
                write_opening(p);
            }
            if (p->n_groups == 1) {
                write_item(p, k->key[i], &e);
            } else {
                write_entry(p, k->key[i], &e);
            }
        }
        for (uint32_t r = 0; r < p->n_runs; r++) {
            dt_str_fini(&e.value[r]);
        }
    }
    dt_str_add(p->out, n == 0 ? "" : p->n_groups == 1 ? "</ul>\n" : "</tbody></table></div>\n");
    *n_p = n;
    return st;
}

dt_status dt_panel_write_config(const dt_page *p)
{
    keys k = {0};
    uint32_t n = 0;
    dt_status st = collect_values(p, &k);
    if (st == DT_OK && k.n > 0) {
        dt_str_addf(p->out, "<section id=\"configuration\"><h2>Configuration%s</h2>\n",
                    p->n_groups > 1 ? "<small>what differs</small>" : "");
        st = write_values(p, &k, true, &n);
        if (st == DT_OK) {
            dt_str_addf(p->out, "<details><summary>%u %s</summary>\n", k.n - n,
                        p->n_groups > 1 ? "equal values" : "defaults");
            st = write_values(p, &k, false, &n);
            dt_str_add(p->out, "</details></section>\n");
        }
    }
    for (uint32_t i = 0; i < k.n; i++) {
        dt_free(k.key[i]);
    }
    dt_free(k.key);
    return st;
}
