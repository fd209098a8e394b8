/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain run`: options of the command line into a run.
 */
#include <config.h>

#include "cli/cli.h"
#include "run/dry_run.h"
#include "run/rank_processes.h"
#include "run/later_phases.h"

#include "base/err.h"
#include "base/beneath.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/print.h"
#include "base/exit.h"
#include "run/batch_auto.h"
#include "plan/fit.h"
#include "plan/forecast.h"
#include "state/snapshot/weight_sources.h"
#include "run/resume.h"
#include "run/run.h"
#include "base/signals.h"
#include "plugin/service/stage.h"
#include "telemetry/report/plugin_panels.h"

#include <limits.h>
#include <math.h>
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
    if (!dt_parse_whole(text, &v) || v < 1) {
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
                       "--max-time %s: expected a positive number of seconds, optionally followed by s, m or h", text);
    }
    *out *= factor;
    return DT_OK;
}

/* ---- run ------------------------------------------------------------------------------------------------------- */

/* A run that ends leaves a picture of itself; one without a step has nothing to show. What goes wrong here costs no
 * result and is a warning. */
static void write_report(dt_session *s, const char *run)
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
        const dt_plugin_panels plugins = {.loader = s->loader, .host = &s->host};
        st = dt_page_write(&run, 1, &plugins, dt_str_text(&path));
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

/* Is there one to continue from? */
static bool has_checkpoint(const char *run)
{
    dt_ckpt_info info;
    const bool is_there = dt_ckpt_inspect(run, &info) == DT_OK;
    dt_error_clear();
    return is_there;
}

static const char *run_dir_of(const dt_args *a, const char *resumed)
{
    return a->run_dir != NULL ? a->run_dir : resumed != NULL ? resumed : dt_rundir_base_folder();
}

/* init_from: as it can be found from anywhere; lives as long as the folder. */
static dt_status describe_run_dir(const dt_args *a, const dt_session *s, const dt_resume *r, const char *init_from,
                                  dt_rundir_desc *out)
{
    dt_log_opts log;
    DT_TRY(dt_config_log(s->config, &log));
    *out = (dt_rundir_desc){.dir = a->run_dir != NULL ? a->run_dir : r->run,
                            .base = dt_rundir_base_folder(),
                            .name = a->name != NULL ? a->name : s->phase[s->first]->desc.id,
                            .resume = r->from != NULL,
                            .log = {.max_bytes = (uint64_t)(log.max_mb * 1e6), .keep = (uint32_t)log.keep},
                            .phase = a->phase,
                            .init_from = init_from,
                            .argc = a->argc,
                            .argv = a->argv};
    return DT_OK;
}

static dt_status open_run_dir(const dt_args *a, const dt_session *s, const dt_resume *r, const char *init_from,
                              dt_rundir **out_p)
{
    dt_rundir_desc d;
    DT_TRY(describe_run_dir(a, s, r, init_from, &d));
    DT_TRY(dt_rundir_open(&d, out_p));
    dt_log(DT_LOG_INFO, "run directory %s", dt_rundir_path(*out_p));
    return DT_OK;
}

/* Rank 0 makes it, and sends its path to the others. */
static dt_status share_run_dir(const dt_session *s, dt_comm *c, dt_rundir **dir_p)
{
    char path[PATH_MAX] = "";
    dt_log_opts log;
    dt_status st = dt_config_log(s->config, &log);
    if (dt_comm_rank(c) == 0 && realpath(dt_rundir_path(*dir_p), path) == NULL) {
        st = DT_FAIL(DT_EIO, "cannot find %s again", dt_rundir_path(*dir_p));
    }
    DT_TRY(dt_comm_agree(c, st));
    if (dt_comm_rank(c) == 0) {
        dt_processes_run_dir_set(c, dt_rundir_path(*dir_p));
    }
    DT_TRY(dt_comm_broadcast(c, 0, path, sizeof(path)));
    if (dt_comm_rank(c) != 0) {
        const dt_logfile_opts opts = {.max_bytes = (uint64_t)(log.max_mb * 1e6), .keep = (uint32_t)log.keep};
        st = dt_rundir_join(path, dt_comm_rank(c), &opts, dir_p);
    }
    return dt_comm_agree(c, st);
}

/* What a run's end means for the exit code, reported to the caller. */
static dt_status report_run_end(const dt_args *a, const dt_run_desc *d, dt_status st, int *code_p)
{
    const dt_rundir *dir = d->dir;
    char before[48], after[512];
    *code_p = dt_exit_code(st);
    dt_processes_list_command_words(d->processes, before, sizeof(before), after, sizeof(after));
    const bool has_advanced =
        *d->advanced_p || (d->processes != NULL && dt_board_has_advanced(dt_processes_board(d->processes)));
    if (st == DT_EINTERRUPTED && *d->resized_p) {
        *code_p = DT_EXIT_DONE; /* for the launcher alone: mpirun takes seconds to end after any other code */
        dt_log(DT_LOG_INFO, "stopped, to continue on another number of processes");
    } else if (st == DT_EINTERRUPTED && !has_advanced && d->max_time_s > 0 && dt_signals_stop() == 0) {
        *code_p = DT_EXIT_USAGE;
        dt_log(dt_processes_log_level(d->processes, st),
               "--max-time %g s is shorter than start-up and the first step or evaluation: no progress is saved, and "
               "the same command would end the same way; use a longer --max-time",
               d->max_time_s);
    } else if (st == DT_EINTERRUPTED && !has_checkpoint(dt_rundir_path(dir))) {
        *code_p = dt_signals_stop() != 0 ? 128 + dt_signals_stop() : *code_p;
        dt_log(DT_LOG_INFO, "stopped before the first checkpoint; start again with: %s%s run --resume %s%s", before,
               a->argv[0], dt_rundir_path(dir), after);
    } else if (st == DT_EINTERRUPTED) {
        dt_log(DT_LOG_INFO, "stopped, state saved; continue with: %s%s run --resume %s%s", before, a->argv[0],
               dt_rundir_path(dir), after);
    } else if (st < 0) {
        dt_log(dt_processes_log_level(d->processes, st), "%s", dt_error_text());
    } else if (*d->stopped_p) {
        dt_log(DT_LOG_INFO, "stopped after --max-steps %llu, state saved; continue with: %s%s run --resume %s%s",
               (unsigned long long)d->max_steps, before, a->argv[0], dt_rundir_path(dir), after);
    } else if (d->processes == NULL || dt_comm_rank(d->processes) == 0) {
        dt_log(DT_LOG_INFO, "Training completed");
    }
    dt_error_clear();
    return DT_OK; /* said, and in the run's own logs */
}

/* A run that was rejected before its first step leaves nothing; the other ranks close their logs first. False: a phase
 * has begun. */
static bool undo_rejected(dt_comm *c, dt_rundir **dir_p)
{
    const bool is_first = c == NULL || dt_comm_rank(c) == 0;
    if (!is_first) {
        dt_rundir_close(*dir_p);
        *dir_p = NULL;
    }
    if (c != NULL && dt_comm_barrier(c) < 0) {
        dt_error_clear();
    }
    return is_first && dt_rundir_undo(*dir_p);
}

static dt_status run_phases(const dt_args *a, dt_session *s, const dt_resume *r, dt_run_desc *d, int *code_p)
{
    dt_comm *c = d->processes;
    char init_path[PATH_MAX];
    const char *init_from = a->init_from != NULL ? realpath(a->init_from, init_path) : NULL;
    const bool is_first = c == NULL || dt_comm_rank(c) == 0;
    dt_rundir *dir = NULL;
    dt_status st = is_first ? dt_later_phases_check(a, s, run_dir_of(a, r->run), r->from) : DT_OK;
    if (st == DT_OK && is_first) {
        st = open_run_dir(a, s, r, init_from, &dir);
    }
    bool has_begun = r->from == NULL && (dir == NULL || !dt_rundir_is_again(dir)), has_stopped = false,
         has_advanced = false, is_resized = false;
    if (st == DT_OK && is_first && has_begun) {
        st = dt_rundir_write_start(dir, s);
    }
    if (c != NULL) {
        st = dt_comm_agree(c, st);
    }
    if (c != NULL && st == DT_OK) {
        st = share_run_dir(s, c, &dir);
    }
    if (st < 0) {
        dt_error reason;
        dt_error_save(&reason, st);
        if (dir != NULL && is_first) {
            dt_rundir_undo(dir);
        }
        dt_rundir_close(dir);
        return dt_error_restore(&reason);
    }
    d->session = s;
    d->dir = dir;
    d->resume = r->from;
    d->init_from = a->init_from;
    d->quiet = a->quiet;
    d->begun_p = &has_begun;
    d->stopped_p = &has_stopped;
    d->advanced_p = &has_advanced;
    d->resized_p = &is_resized;
    dt_signals_install();
    st = dt_run_training(d);
    st = report_run_end(a, d, st, code_p);
    if (dt_exit_is_rejection(*code_p) && undo_rejected(c, &dir)) {
        has_begun = false;
    }
    if (has_begun && is_first && !is_resized) {
        if (dt_rundir_restore(dir) == DT_OK) {
            dt_rundir_update_meta(dir, s, *code_p);
            write_report(s, dt_rundir_path(dir));
        } else { /* another training has the folder now: nothing there is ours */
            dt_log(DT_LOG_WARN, "%s", dt_error_text());
            dt_error_clear();
        }
    }
    dt_rundir_close(dir);
    return st;
}

/* Weights to begin with are looked for, and looked at, before any file is created. */
static dt_status check_init_from(const dt_args *a)
{
    dt_weight_sources *weights = NULL;
    if (a->init_from == NULL || a->has_resume) {
        return DT_OK;
    }
    const dt_status st = dt_weight_sources_open(a->init_from, NULL, &weights);
    dt_weight_sources_close(weights);
    return st < 0 ? DT_CONTEXT(st, "--init-from %s", a->init_from) : DT_OK;
}

/* The command of a run that begins again, or of one that continues. */
static dt_args resumed_args(const dt_args *a, const dt_resume *r)
{
    dt_args b = *a;
    b.has_resume = r->from != NULL;
    b.phase = a->phase != NULL ? a->phase : r->phase;
    b.init_from = a->init_from != NULL ? a->init_from : r->init_from;
    return b;
}

/* A name becomes part of a folder's: of one below runs/, and of nothing else. */
static dt_status check_name(const char *name)
{
    enum { MOST = 128 };
    if (name == NULL) {
        return DT_OK;
    }
    const size_t bytes = strlen(name);
    bool is_plain = bytes > 0 && bytes <= MOST && name[0] != '.' && name[0] != '-';
    for (const char *p = name; *p != '\0' && is_plain; p++) {
        is_plain = (unsigned char)*p > 0x20 && *p != '/' && *p != 0x7f && dt_utf8_bytes(p) > 0;
        if (is_plain) {
            p += dt_utf8_bytes(p) - 1;
        }
    }
    return is_plain
               ? DT_OK
               : DT_FAIL(DT_ECONFIG,
                         "--name %s: expected 1 to %d characters without spaces and '/', not beginning with '.' or "
                         "'-'; for another folder use --run-dir DIR",
                         name, MOST);
}

/* A job whose launcher was killed takes a while to end, and a process that was killed a moment; a user that restarts it
 * does so at once. Only then do all of its processes look for a checkpoint to continue from. */
static dt_status wait_for_job_end(const dt_args *a, dt_comm *c)
{
    const bool is_named = a->resume != NULL && strcmp(a->resume, "auto") != 0;
    const char *path = is_named ? a->resume : a->run_dir;
    char *run = NULL;
    if (path == NULL || (c == NULL && !a->has_resume)) {
        return DT_OK;
    }
    const bool is_first = c == NULL || dt_comm_rank(c) == 0;
    const bool is_run = is_first && dt_resume_find_run(path, &run) == DT_OK;
    if (is_run || (is_first && !is_named)) { /* a folder may be held before it is a run */
        dt_rundir_wait_unlocked(is_run ? run : path, c != NULL);
    }
    dt_free(run);
    dt_error_clear(); /* where no run is, all ranks report it */
    return c == NULL ? DT_OK : dt_comm_barrier(c);
}

static dt_status plan_run(const dt_args *a, dt_session *s, const dt_resume *r, uint64_t max_steps)
{
    dt_rundir_desc dir;
    DT_TRY(describe_run_dir(a, s, r, a->init_from, &dir));
    const dt_dry_run d = {.session = s,
                          .args = a,
                          .rundir = a->predict == NULL ? &dir : NULL,
                          .run_dir = run_dir_of(a, r->run),
                          .resume = r->from,
                          .max_steps = max_steps};
    return dt_dry_run_print(&d);
}

static dt_status open_and_run(const dt_args *a, dt_run_desc *d, int *code_p)
{
    dt_session s;
    dt_resume r;
    dt_str config = {0};
    struct stat info;
    dt_comm *c = d->processes;
    DT_TRY(wait_for_job_end(a, c));
    dt_status found = dt_resume_read(a, &r);
    if (c != NULL) {
        found = dt_comm_agree(c, found);
    }
    if (found < 0) {
        dt_resume_fini(&r);
        return found;
    }
    const dt_args b = resumed_args(a, &r);
    if (r.run != NULL) {
        dt_str_addf(&config, "%s/config.cfg", r.run);
    }
    const bool own_config = r.run != NULL && dt_beneath_stat(dt_str_text(&config), &info) == 0;
    dt_status st = check_init_from(&b);
    if (st == DT_OK) {
        st = dt_session_open(&b, own_config ? dt_str_text(&config) : NULL, c, &s);
    }
    dt_str_fini(&config);
    const bool is_open = st == DT_OK;
    if (c != NULL) {
        st = dt_comm_agree(c, st);
    }
    if (c != NULL && st == DT_OK) {
        st = dt_processes_check_same_launch(c, &s, a, d->max_steps);
    }
    if (st == DT_OK) {
        st = dt_batch_choose_all(&s, c, run_dir_of(&b, r.run), d->max_steps);
    }
    if (st == DT_OK && !b.dry_run) {
        st = run_phases(&b, &s, &r, d, code_p);
    } else if (st == DT_OK && (c == NULL || dt_comm_rank(c) == 0)) {
        st = plan_run(&b, &s, &r, d->max_steps);
    }
    if (is_open) {
        dt_session_close(&s);
    }
    dt_resume_fini(&r);
    return st;
}

/* Of --max-time, which a launcher's restarts do not extend. */
static double time_left(const dt_run_desc *d)
{
    const double least_s = 1e-3, spent_s = d->processes != NULL ? dt_board_age_s(dt_processes_board(d->processes)) : 0;
    return d->max_time_s > 0 ? fmax(d->max_time_s - spent_s, least_s) : 0;
}

dt_status dt_verb_run(const dt_args *a, int *code_p)
{
    dt_run_desc d = {0};
    DT_TRY(parse_count("--max-steps", a->max_steps, &d.max_steps));
    DT_TRY(dt_profile_steps_parse(a->profile_steps, &d.profile));
    DT_TRY(parse_time(a->max_time, &d.max_time_s));
    DT_TRY(check_name(a->name));
    dt_launch_range n, machines;
    DT_TRY(dt_processes_parse_range("--nproc", a->nproc, &n));
    DT_TRY(dt_processes_parse_range("--nnodes", a->nnodes, &machines));
    dt_launch launch;
    if (!dt_launch_detect(&launch) && (n.max > 1 || machines.max > 0)) {
        return dt_processes_launch(a, n, machines, code_p);
    }
    dt_status st = dt_processes_reject_single(a);
    if (st == DT_OK) {
        st = dt_processes_begin(&launch, n, &d.processes);
    }
    if (st == DT_OK) {
        d.max_time_s = time_left(&d);
        st = open_and_run(a, &d, code_p);
    }
    return dt_processes_end(&launch, d.processes, st, code_p);
}
