/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain run`: options of the command line into a run, and --dry-run.
 */
#include <config.h>

#include "host/cli.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/exit.h"
#include "host/forecast.h"
#include "host/run.h"
#include "host/signals.h"
#include "host/stage.h"
#include "report/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static dt_status parse_count(const char *option, const char *text, uint64_t *out)
{
    int64_t v = 0;
    if (text == NULL) {
        return DT_OK;
    }
    if (!dt_parse_i64(text, &v) || v < 1) {
        return DT_FAIL(DT_ECONFIG, "%s %s: expected a whole number of at least 1", option, text);
    }
    *out = (uint64_t)v;
    return DT_OK;
}

/* "90", "90s", "5m", "2h" */
static dt_status parse_time(const char *text, double *out)
{
    char number[32];
    double factor = 1;
    if (text == NULL) {
        return DT_OK;
    }
    size_t n = strlen(text);
    if (n > 1 && strchr("smh", text[n - 1]) != NULL) {
        factor = text[n - 1] == 'h' ? 3600 : text[n - 1] == 'm' ? 60 : 1;
        n--;
    }
    if (n >= sizeof(number)) {
        n = 0;
    }
    memcpy(number, text, n);
    number[n] = '\0';
    if (!dt_parse_f64(number, out) || *out <= 0) {
        return DT_FAIL(DT_ECONFIG,
                       "--max-time %s: expected a positive number of seconds, or one with s, m or h behind it", text);
    }
    *out *= factor;
    return DT_OK;
}

static const char *const run_files[] = {"config.cfg",   "config.origin.json", "meta.json",
                                        "train.log",    "error.log",          "metrics.jsonl",
                                        "tensorboard/", "checkpoints/",       "report.html"};

/* ---- dry run --------------------------------------------------------------------------------------------------- */

/* What a run would write, and where. */
static void files_text(const dt_args *a, const dt_session *s)
{
    const char *name = a->name != NULL ? a->name : s->phase[s->first]->desc.id;
    if (a->run_dir != NULL) {
        printf("files below %s:\n", a->run_dir);
    } else {
        printf("files below %s/%s-<UTC time>-<4 hex>:\n", dt_rundir_base(), name);
    }
    for (size_t i = 0; i < sizeof(run_files) / sizeof(run_files[0]); i++) {
        printf("  %s\n", run_files[i]);
    }
}

static void files_json(const dt_args *a, const dt_session *s, dt_json_out *o)
{
    dt_str dir = {0};
    dt_str_addf(&dir, "%s", a->run_dir != NULL ? a->run_dir : dt_rundir_base());
    dt_json_str(o, a->run_dir != NULL ? "run_dir" : "run_dir_below", dt_str_text(&dir));
    dt_json_str(o, "name", a->name != NULL ? a->name : s->phase[s->first]->desc.id);
    dt_json_arr(o, "files");
    for (size_t i = 0; i < sizeof(run_files) / sizeof(run_files[0]); i++) {
        dt_json_str(o, NULL, run_files[i]);
    }
    dt_json_end(o, ']');
    dt_str_fini(&dir);
}

static dt_status tell_plan(dt_stage *stage, uint64_t max_steps, dt_json_out *json)
{
    dt_forecast f;
    dt_str text = {0};
    DT_TRY(dt_forecast_make(stage, max_steps, &f));
    if (json != NULL) {
        dt_json_obj(json, NULL);
        dt_forecast_json(stage, &f, json);
        dt_json_end(json, '}');
        return DT_OK;
    }
    dt_forecast_text(stage, &f, &text);
    const dt_status st = dt_str_status(&text);
    fputs(dt_str_text(&text), stdout);
    dt_str_fini(&text);
    return st;
}

static dt_status dry_run_phase(dt_session *s, int64_t index, const dt_args *a, dt_json_out *json)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_comm *comm = NULL;
    dt_stage *stage = NULL;
    uint64_t max_steps = 0;
    DT_TRY(parse_count("--max-steps", a->max_steps, &max_steps));
    DT_TRY(dt_session_enter(s, index));
    DT_TRY(dt_comm_null(&comm));
    const dt_stage_desc d = dt_session_stage(s, index, comm, &lock);
    dt_status st = dt_stage_create(&d, &stage);
    if (st == DT_OK) {
        st = dt_stage_start(stage);
    }
    if (st == DT_OK && stage->trainer != NULL) {
        st = tell_plan(stage, max_steps, json);
        if (st == DT_OK && a->print_graph != NULL) {
            dt_str text = {0};
            dt_plan_print(dt_trainer_plan(stage->trainer), &text);
            st = dt_str_status(&text);
            fputs(dt_str_text(&text), stdout);
            dt_str_fini(&text);
        }
    }
    dt_stage_destroy(stage);
    dt_comm_destroy(comm);
    return st;
}

static dt_status dry_run(dt_session *s, const dt_args *a)
{
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    dt_status st = DT_OK;
    if (a->json) {
        dt_json_obj(&o, NULL);
        dt_json_arr(&o, "phases");
    }
    for (int64_t i = s->first; i < s->last && st == DT_OK; i++) {
        st = dry_run_phase(s, i, a, a->json ? &o : NULL);
    }
    if (!a->json && st == DT_OK) {
        files_text(a, s);
    }
    if (a->json && st == DT_OK) {
        dt_json_end(&o, ']');
        files_json(a, s, &o);
        dt_json_end(&o, '}');
        st = dt_str_status(&text);
        puts(dt_str_text(&text));
    }
    dt_str_fini(&text);
    return st;
}

/* ---- run ------------------------------------------------------------------------------------------------------- */

/* The run directory of what --resume names: a run itself, its checkpoints folder, or one checkpoint. */
static dt_status run_of(const char *resume, char **out)
{
    dt_str path = {0};
    static const char *const up[] = {"", "/..", "/../.."};
    for (size_t i = 0; i < sizeof(up) / sizeof(up[0]); i++) {
        dt_str_clear(&path);
        dt_str_addf(&path, "%s%s/meta.json", resume, up[i]);
        if (dt_fs_is_file(dt_str_text(&path))) {
            char full[4096];
            dt_str_clear(&path);
            dt_str_addf(&path, "%s%s", resume, up[i]);
            if (realpath(dt_str_text(&path), full) != NULL) {
                *out = dt_strdup(full);
                dt_str_fini(&path);
                return *out != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory");
            }
        }
    }
    dt_str_fini(&path);
    return DT_FAIL(DT_ECONFIG, "--resume %s: no run is there (a run directory holds meta.json)", resume);
}

static dt_status find_resumed(const dt_args *a, char **run_p, char **resume_p)
{
    char *latest = NULL;
    const char *what = a->resume != NULL ? a->resume : a->run_dir;
    if (what == NULL) {
        DT_TRY(dt_rundir_latest(dt_rundir_base(), &latest));
        what = latest;
    }
    dt_status st = run_of(what, run_p);
    *resume_p = st == DT_OK ? dt_strdup(what) : NULL;
    dt_free(latest);
    return st;
}

/* A run that ends leaves a picture of itself; one without a step has nothing to show. What goes wrong here costs no
 * result and is a warning. */
static void leave_report(dt_session *s, const char *run)
{
    dt_report_opts o;
    dt_str path = {0};
    dt_str records = {0};
    struct stat file;
    dt_str_addf(&path, "%s/report.html", run);
    dt_str_addf(&records, "%s/metrics.jsonl", run);
    dt_status st = dt_config_report(s->config, &o);
    const bool has_records = stat(dt_str_text(&records), &file) == 0 && file.st_size > 0;
    if (st == DT_OK && o.enabled && has_records) {
        st = dt_page_write(&run, 1, dt_str_text(&path));
        if (st == DT_OK) {
            dt_log(DT_LOG_INFO, "report %s", dt_str_text(&path));
        }
    }
    if (st < 0) {
        dt_log(DT_LOG_WARN, "no report: %s", dt_error_text());
        dt_error_clear();
    }
    dt_str_fini(&records);
    dt_str_fini(&path);
}

/* Later phases are made once, and given back, before the first one begins: what they cannot read of their
 * configuration is better known now than after hours. What else is missing may be there when they are due. */
static dt_status rehearse(const dt_session *s)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_comm *comm = NULL;
    dt_status st = dt_comm_null(&comm);
    for (int64_t i = s->first + 1; i < s->last && st == DT_OK; i++) {
        dt_stage *stage = NULL;
        const dt_stage_desc d = dt_session_stage(s, i, comm, &lock);
        st = dt_stage_create(&d, &stage);
        dt_stage_destroy(stage);
        if (st < 0 && dt_exit_code(st) != DT_EXIT_USAGE) {
            dt_log(DT_LOG_WARN, "phase %lld could not begin now: %s", (long long)i + 1, dt_error_text());
            dt_error_clear();
            st = DT_OK;
        } else if (st < 0) {
            st =
                DT_CONTEXT(st, "phase %lld, tried before phase %lld begins", (long long)i + 1, (long long)s->first + 1);
        }
    }
    dt_comm_destroy(comm);
    return st;
}

static dt_status run(const dt_args *a, dt_session *s, const char *run_dir, const char *resume, dt_run_desc *d,
                     int *code_p)
{
    const char *id = s->phase[s->first]->desc.id;
    dt_log_opts log;
    DT_TRY(dt_config_log(s->config, &log));
    DT_TRY(rehearse(s));
    const dt_rundir_desc rd = {.dir = a->run_dir != NULL ? a->run_dir : run_dir,
                               .base = dt_rundir_base(),
                               .name = a->name != NULL ? a->name : id,
                               .resume = resume != NULL,
                               .log = {.max_bytes = (uint64_t)(log.max_mb * 1e6), .keep = (uint32_t)log.keep},
                               .argc = a->argc,
                               .argv = a->argv};
    dt_rundir *dir = NULL;
    DT_TRY(dt_rundir_open(&rd, &dir));
    dt_log(DT_LOG_INFO, "run directory %s", dt_rundir_path(dir));
    bool has_begun = resume == NULL;
    dt_status st = has_begun ? dt_run_record(s, dir) : DT_OK;
    if (st == DT_OK) {
        d->session = s;
        d->dir = dir;
        d->resume = resume;
        d->init_from = a->init_from;
        d->quiet = a->quiet;
        d->begun_p = &has_begun;
        dt_signals_install();
        st = dt_run(d);
    }
    *code_p = dt_exit_code(st);
    if (st == DT_EINTERRUPTED) {
        dt_log(DT_LOG_INFO, "stopped, state saved; go on with: %s run --resume %s", a->argv[0], dt_rundir_path(dir));
        dt_error_clear();
        st = DT_OK;
    } else if (st < 0) {
        dt_log(DT_LOG_ERROR, "%s", dt_error_text());
        st = DT_OK; /* said, and in the run's own logs */
    } else {
        dt_log(DT_LOG_INFO, "Training completed");
    }
    dt_status meta = DT_OK;
    if (has_begun) {
        meta = dt_run_note(s, dir, *code_p);
        leave_report(s, dt_rundir_path(dir));
    }
    dt_rundir_close(dir);
    return st < 0 ? st : meta;
}

dt_status dt_verb_run(const dt_args *a, int *code_p)
{
    dt_run_desc d = {0};
    dt_session s;
    char *run_dir = NULL;
    char *resume = NULL;
    dt_str config = {0};
    DT_TRY(parse_count("--max-steps", a->max_steps, &d.max_steps));
    DT_TRY(dt_profile_steps_parse(a->profile_steps, &d.profile));
    DT_TRY(parse_time(a->max_time, &d.max_time_s));
    if (a->has_resume) {
        DT_TRY(find_resumed(a, &run_dir, &resume));
        dt_str_addf(&config, "%s/config.cfg", run_dir);
    }
    const bool own_config = a->has_resume && dt_fs_is_file(dt_str_text(&config));
    dt_status st = dt_session_open(a, own_config ? dt_str_text(&config) : NULL, &s);
    dt_str_fini(&config);
    if (st == DT_OK) {
        st = a->dry_run ? dry_run(&s, a) : run(a, &s, run_dir, resume, &d, code_p);
        dt_session_close(&s);
    }
    dt_free(run_dir);
    dt_free(resume);
    return st;
}
