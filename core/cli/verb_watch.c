/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain watch RUN`: a run while it runs, redrawn twice a second until it ends; once where it has ended or where
 * the output is no terminal. It only reads, so the run does not know.
 */
#include <config.h>

#include "cli/cli.h"

#include "base/err.h"
#include "base/json.h"
#include "telemetry/report/watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const long EVERY_NS = 500000000L;

static dt_watch_opts open_terminal(void)
{
    struct winsize w;
    const char *no_color = getenv("NO_COLOR");
    dt_watch_opts o = {.columns = 80, .rows = 0};
    if (isatty(STDOUT_FILENO)) {
        const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 && w.ws_row > 0;
        o.columns = is_known ? w.ws_col : 80;
        o.rows = is_known ? w.ws_row : 24;
        o.color = no_color == NULL || no_color[0] == '\0';
    }
    return o;
}

static dt_status print_json(const dt_logbook *l)
{
    const dt_records *r = l->records;
    const dt_run_state *s = &l->state;
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "run", l->path);
    dt_json_str(&o, "state", dt_run_condition_text(s->condition));
    dt_json_str(&o, "phase", s->phase);
    dt_json_i64(&o, "step", (int64_t)s->step);
    dt_json_i64(&o, "steps", (int64_t)s->steps);
    dt_json_i64(&o, "phase_index", s->phase_index);
    dt_json_i64(&o, "phases", s->n_phases);
    dt_json_f64(&o, "phase_progress", s->part);
    dt_json_f64(&o, "progress", s->progress);
    dt_json_f64(&o, "left_s", dt_watch_left_s(l));
    dt_json_obj(&o, "last");
    const uint32_t evaluated = r->n_phases > 0 ? dt_records_last_evaluation(r, r->n_phases - 1) : UINT32_MAX;
    for (uint32_t i = 0; i < r->n_series; i++) {
        const bool is_old =
            strncmp(r->series[i].name, "eval/", 5) == 0 && !dt_series_has_record(&r->series[i], evaluated);
        if (r->series[i].phase + 1 == r->n_phases && !is_old) {
            dt_json_f64(&o, r->series[i].name, dt_series_last(&r->series[i]));
        }
    }
    dt_json_end(&o, '}');
    dt_json_end(&o, '}');
    const dt_status st = dt_str_status(&text);
    if (st == DT_OK) {
        puts(dt_str_text(&text));
    }
    dt_str_fini(&text);
    return st;
}

/* Over what was drawn before: up as many lines as that had, and everything below away. */
static dt_status draw_screen(const dt_logbook *l, uint32_t *n_lines_p)
{
    dt_str text = {0};
    const dt_watch_opts o = open_terminal();
    dt_watch_append_view(l, &o, &text);
    const dt_status st = dt_str_status(&text);
    if (st == DT_OK) {
        if (*n_lines_p > 0) {
            printf("\033[%uA\r\033[J", *n_lines_p);
        }
        fputs(dt_str_text(&text), stdout);
        fflush(stdout);
        *n_lines_p = 0;
        for (const char *c = dt_str_text(&text); *c != '\0'; c++) {
            *n_lines_p += *c == '\n';
        }
    }
    dt_str_fini(&text);
    return st;
}

dt_status dt_verb_watch(const dt_args *a, int *code_p)
{
    dt_logbook l;
    uint32_t n_lines = 0;
    DT_TRY(dt_logbook_open(a->word[0], &l));
    dt_status st = a->json ? print_json(&l) : draw_screen(&l, &n_lines);
    const bool is_live = !a->json && isatty(STDOUT_FILENO);
    while (st >= 0 && is_live && l.state.condition == DT_RUN_RUNNING) {
        const struct timespec pause = {.tv_nsec = EVERY_NS};
        nanosleep(&pause, NULL);
        st = dt_logbook_poll(&l);
        if (st == DT_OK) {
            st = draw_screen(&l, &n_lines);
        }
    }
    dt_logbook_close(&l);
    return st < 0 ? st : DT_OK;
}
