/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain report RUN... [--out FILE]`: runs as one HTML file, or the folder of dtrain seeds or dtrain sweep.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "telemetry/report/panel.h"
#include "telemetry/report/plugin_panels.h"
#include "run/session.h"
#include "study/journal.h"
#include "study/sweep_page.h"
#include "study/words.h"

#include <stdio.h>
#include <string.h>

/* Without --out: into the run itself; a comparison of several belongs to none of them. */
static void report_path(const dt_args *a, dt_str *out)
{
    if (a->out != NULL) {
        dt_str_add(out, a->out);
        if (dt_fs_is_dir(a->out)) {
            dt_str_add(out, "/report.html");
        }
    } else if (a->n_words == 1) {
        dt_str_addf(out, "%s/report.html", a->word[0]);
    } else {
        dt_str_add(out, "report.html");
    }
}

/* With what all plugins draw. */
static dt_status write_runs(const dt_words *run, const char *path)
{
    dt_session s;
    dt_str refused = {0};
    dt_status st = dt_session_open_loader(&s);
    if (st >= 0) {
        dt_log_mute(true); /* of plugins that cannot be opened `dtrain list` reports */
        st = dt_loader_scan(s.loader, &refused);
        dt_log_mute(false);
    }
    if (st >= 0) {
        const dt_plugin_panels plugins = {.loader = s.loader, .host = &s.host};
        st = dt_page_write((const char *const *)run->word, run->n, &plugins, path);
    }
    dt_str_fini(&refused);
    dt_session_close(&s);
    return st;
}

/* The runs of all seeds, instead of their folder. */
static dt_status add_seeds(const char *folder, dt_words *run)
{
    char **name = NULL;
    size_t n = 0;
    const uint32_t before = run->n;
    DT_TRY(dt_fs_list(folder, &name, &n));
    for (size_t i = 0; i < n; i++) {
        dt_str meta = {0};
        dt_str_addf(&meta, "%s/%s/meta.json", folder, name[i]);
        if (strncmp(name[i], "seed-", 5) == 0 && dt_str_status(&meta) == DT_OK && dt_fs_is_file(dt_str_text(&meta))) {
            dt_words_addf(run, "%s/%s", folder, name[i]);
        }
        dt_str_fini(&meta);
    }
    dt_fs_list_free(name, n);
    DT_TRY(dt_words_status(run));
    if (run->n == before) {
        return DT_FAIL(DT_ECONFIG, "%s has no run yet", folder);
    }
    return run->n <= DT_PAGE_MAX_RUNS
               ? DT_OK
               : DT_FAIL(DT_ECONFIG,
                         "%s makes more than %d runs, the most of a report: name some of them, or use dtrain compare "
                         "%s --out FILE",
                         folder, DT_PAGE_MAX_RUNS, folder);
}

static dt_status list_runs(const dt_args *a, dt_words *run)
{
    for (uint32_t i = 0; i < a->n_words; i++) {
        if (dt_journal_is_of(a->word[i], "sweep")) {
            return DT_FAIL(DT_ECONFIG, "%s is a sweep, which has a report of its own; dtrain compare compares them",
                           a->word[i]);
        }
        if (dt_journal_is_of(a->word[i], "seeds")) {
            DT_TRY(add_seeds(a->word[i], run));
        } else {
            dt_words_add(run, a->word[i]);
        }
    }
    return dt_words_status(run);
}

static dt_status write_report(const dt_args *a, const char *path)
{
    dt_words run = {0};
    if (a->n_words == 1 && dt_journal_is_of(a->word[0], "sweep")) {
        return dt_sweep_write_page(a->word[0], path);
    }
    dt_status st = list_runs(a, &run);
    if (st == DT_OK) {
        st = write_runs(&run, path);
    }
    dt_words_fini(&run);
    return st;
}

dt_status dt_verb_report(const dt_args *a, int *code_p)
{
    dt_str path = {0};
    report_path(a, &path);
    dt_status st = dt_str_status(&path);
    if (st == DT_OK && a->out != NULL) {
        st = dt_cli_check_out(dt_str_text(&path));
    }
    if (st == DT_OK) {
        st = write_report(a, dt_str_text(&path));
    }
    if (st == DT_OK && a->json) {
        dt_str text = {0};
        dt_json_out o = {.s = &text};
        dt_json_obj(&o, NULL);
        dt_json_str(&o, "report", dt_str_text(&path));
        dt_json_end(&o, '}');
        st = dt_str_status(&text);
        if (st == DT_OK) {
            dt_print_line(dt_str_text(&text));
        }
        dt_str_fini(&text);
    } else if (st == DT_OK) {
        dt_print_line(dt_str_text(&path));
    }
    dt_str_fini(&path);
    return st;
}
