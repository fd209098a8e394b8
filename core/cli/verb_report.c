/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain report RUN... [--out FILE]`: runs as one HTML file.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "telemetry/report/plugin_panels.h"
#include "run/session.h"

#include <stdio.h>

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
static dt_status write_report(const dt_args *a, const char *path)
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
        st = dt_page_write(a->word, a->n_words, &plugins, path);
    }
    dt_str_fini(&refused);
    dt_session_close(&s);
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
