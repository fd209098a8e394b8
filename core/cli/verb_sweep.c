/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain sweep FILE`: trials of a search space as trainings in one folder. What is known is in the trials'
 * records, and the schedule (study/schedule.h) is computed again from them. So the same command continues after
 * any end, with the same table (sweep_table.h).
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/study_command.h"
#include "cli/sweep_table.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/fs.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/signals.h"
#include "run/rundir.h"
#include "study/copy_run.h"
#include "study/journal.h"
#include "study/outcome.h"
#include "study/schedule.h"
#include "study/sweep_file.h"
#include "study/trainings.h"
#include "telemetry/report/iqm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MAX_ATTEMPTS = 3 }; /* of a training that a signal ended */

typedef enum run_state { RUN_TODO, RUN_ACTIVE, RUN_ELSEWHERE, RUN_DONE, RUN_FAILED } run_state;

typedef struct trial {
    uint32_t rung, job;          /* the last one assigned */
    uint32_t done_rung;          /* the last one with a result */
    bool is_active;              /* its job has no result */
    bool has_failed, is_unknown; /* a seed of the last rung with a result has no value */
    double value;                /* of the last rung with a result */
    uint64_t step;               /* and where that was */
    int exit_code;               /* of a seed that failed */
    double *seed_value;          /* [n_seeds] of the last rung whose seeds have all ended; NAN: none */
    uint8_t *run;                /* [n_seeds] run_state of the job */
    uint8_t *attempts;
    int *claim; /* with --array: the lock of a run that trains here, -1: none */
} trial;

typedef struct study {
    const dt_args *a;
    dt_sweep sweep;
    dt_study_command command;
    dt_str folder;
    dt_sweep_schedule schedule;
    trial *trial; /* [sweep.trials] */
    int lock;
    double polled_s; /* when runs of other processes were last looked at */
    double saved_s;  /* when the table was last written */
} study;

/* ---- one training ------------------------------------------------------------------------------------------------ */

static void append_run_at(const study *s, uint32_t t, uint32_t rung, uint32_t k, dt_str *out)
{
    dt_str_addf(out, "%s/", dt_str_text(&s->folder));
    dt_sweep_schedule_append_folder(&s->schedule, t, rung, out);
    dt_str_addf(out, "/seed-%llu", (unsigned long long)s->sweep.seeds[k]);
}

static void append_run(const study *s, uint32_t t, uint32_t k, dt_str *out)
{
    append_run_at(s, t, s->trial[t].rung, k, out);
}

/* "--set KEY=VALUE" of all parameters. */
static void add_values(const study *s, uint32_t t, dt_words *out)
{
    for (uint32_t k = 0; k < s->sweep.space.n; k++) {
        dt_str value = {0};
        dt_sweep_schedule_append_value(&s->schedule, t, s->trial[t].rung, k, &value);
        dt_words_add(out, "--set");
        dt_words_addf(out, "%s=%s", s->sweep.space.parameter[k].key, dt_str_text(&value));
        dt_str_fini(&value);
    }
}

static void add_steps(const study *s, uint32_t rung, dt_words *out)
{
    if (s->sweep.rung_steps[rung] > 0) {
        dt_words_add(out, "--max-steps");
        dt_words_addf(out, "%llu", (unsigned long long)s->sweep.rung_steps[rung]);
    }
}

static dt_status read_run(const study *s, uint32_t t, uint32_t k, uint32_t rung, dt_outcome *out, dt_str *near)
{
    dt_str run = {0};
    append_run(s, t, k, &run);
    dt_status st = dt_str_status(&run);
    if (st == DT_OK) {
        st = dt_outcome_read(dt_str_text(&run), s->sweep.metric, s->sweep.rung_steps[rung], out, near);
    }
    dt_str_fini(&run);
    return st;
}

/* A metric that a training did not record by then would make every trial a failed one. */
static dt_status require_value(const study *s, uint32_t t, uint32_t k, const dt_outcome *o, const dt_str *near)
{
    const char *text = dt_str_text(near);
    if (isfinite(o->value) || o->is_unknown) {
        return DT_OK;
    }
    return DT_FAIL(DT_ECONFIG,
                   "metric %s: trial-%04u/seed-%llu has no value of it at step %llu%s%s%s; evaluations come every "
                   "training.eval_interval",
                   s->sweep.metric, t + 1, (unsigned long long)s->sweep.seeds[k], (unsigned long long)o->step,
                   text[0] != '\0' ? "; did you mean " : "", text, text[0] != '\0' ? "?" : "");
}

/* What its folder shows, before anything is started: records that come far enough, or an end. */
static dt_status look_at_run(study *s, uint32_t t, uint32_t k, uint32_t rung, bool has_ended, int code)
{
    dt_outcome o;
    dt_str near = {0};
    trial *r = &s->trial[t];
    dt_status st = read_run(s, t, k, rung, &o, &near);
    /* one that --max-steps of an earlier rung ended is complete, too, but not here */
    const bool is_complete = o.has_run && (o.condition == DT_RUN_DONE || o.condition == DT_RUN_STOPPED);
    const bool is_whole = s->sweep.rung_steps[rung] == 0 ? o.has_run && o.condition == DT_RUN_DONE
                                                         : is_complete && o.step >= s->sweep.rung_steps[rung];
    const bool is_rejected = has_ended && dt_exit_is_rejection(code);
    if (st == DT_OK && (o.is_reached || is_whole || (has_ended && code == DT_EXIT_DONE))) {
        r->run[k] = RUN_DONE;
        st = require_value(s, t, k, &o, &near);
    } else if (st == DT_OK && (is_rejected || (o.has_run && dt_outcome_has_failed(&o)))) {
        r->run[k] = RUN_FAILED;
        r->exit_code = is_rejected ? code : o.exit_code;
    } else {
        r->run[k] = RUN_TODO;
    }
    dt_str_fini(&near);
    return st;
}

/* ---- a trial at a rung ------------------------------------------------------------------------------------------- */

/* All seeds have ended: the interquartile mean of their values, or failed. */
static dt_status finish_job(study *s, uint32_t t)
{
    trial *r = &s->trial[t];
    double *v = dt_alloc_n(s->sweep.n_seeds, sizeof(*v));
    dt_status st = v != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u results", s->sweep.n_seeds);
    for (uint32_t k = 0; k < s->sweep.n_seeds && st == DT_OK; k++) {
        dt_outcome o;
        r->has_failed = r->has_failed || r->run[k] == RUN_FAILED;
        r->is_unknown = k > 0 && r->is_unknown;
        st = read_run(s, t, k, r->rung, &o, NULL);
        v[k] = r->run[k] == RUN_FAILED ? (double)NAN : o.value;
        r->is_unknown = r->is_unknown || !isfinite(o.value);
    }
    if (st == DT_OK && !r->has_failed) {
        r->value = r->is_unknown ? (double)NAN : dt_iqm_compute(v, s->sweep.n_seeds);
        r->step = s->sweep.rung_steps[r->rung];
    }
    if (st == DT_OK) {
        memcpy(r->seed_value, v, s->sweep.n_seeds * sizeof(*v));
        r->is_active = false;
        r->done_rung = r->rung;
        dt_sweep_schedule_set_result(&s->schedule, r->job, r->has_failed ? (double)NAN : r->value);
    }
    dt_free(v);
    return st;
}

static bool is_job_over(const study *s, uint32_t t)
{
    for (uint32_t k = 0; k < s->sweep.n_seeds; k++) {
        if (s->trial[t].run[k] < RUN_DONE) {
            return false;
        }
    }
    return true;
}

/* A run trains in the process that holds its lock. DT_AGAIN: another one. */
static dt_status lock_claim(const study *s, const char *name, int *fd_p)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/claims", dt_str_text(&s->folder));
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_fs_mkdirs(dt_str_text(&path));
    }
    dt_str_addf(&path, "/%s.lock", name);
    if (st == DT_OK) {
        st = dt_lock_acquire(dt_str_text(&path), fd_p);
    }
    dt_str_fini(&path);
    if (st == DT_AGAIN) {
        dt_error_clear();
    }
    return st;
}

/* A member of a population that was replaced begins with a copy of the other one's runs. */
static dt_status copy_source(const study *s, uint32_t t, uint32_t rung, uint32_t k)
{
    dt_str from = {0}, to = {0}, folder = {0};
    append_run_at(s, dt_sweep_schedule_source(&s->schedule, t, rung), rung - 1, k, &from);
    append_run_at(s, t, rung, k, &to);
    dt_str_addf(&folder, "%s/", dt_str_text(&s->folder));
    dt_sweep_schedule_append_folder(&s->schedule, t, rung, &folder);
    dt_status st = dt_str_status(&from);
    if (st == DT_OK) {
        st = dt_str_status(&to);
    }
    if (st == DT_OK) {
        st = dt_str_status(&folder);
    }
    if (st == DT_OK) {
        st = dt_fs_mkdirs(dt_str_text(&folder));
    }
    if (st == DT_OK) {
        st = dt_copy_run(dt_str_text(&from), dt_str_text(&to));
    }
    dt_str_fini(&from);
    dt_str_fini(&to);
    dt_str_fini(&folder);
    return st;
}

static dt_status copy_all_sources(const study *s, uint32_t rung)
{
    for (uint32_t t = 0; t < s->sweep.trials; t++) {
        for (uint32_t k = 0; k < s->sweep.n_seeds && dt_sweep_schedule_source(&s->schedule, t, rung) != t; k++) {
            DT_TRY(copy_source(s, t, rung, k));
        }
    }
    return DT_OK;
}

/* Waits until no other process holds it. */
static dt_status wait_for_claim(const study *s, const char *name, bool may_stop, int *fd_p)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    dt_status st = DT_AGAIN;
    while ((st = lock_claim(s, name, fd_p)) == DT_AGAIN) {
        if (may_stop && dt_signals_stop() != 0) {
            return DT_FAIL(DT_EINTERRUPTED, "asked to stop");
        }
        nanosleep(&nap, NULL);
    }
    return st;
}

/* All copies of a generation, before the first of it trains: then their sources are as they stopped. One process
 * copies at a time. */
static dt_status copy_sources(const study *s, uint32_t rung)
{
    int lock = -1;
    DT_TRY(wait_for_claim(s, "copies", true, &lock));
    const dt_status st = copy_all_sources(s, rung);
    dt_lock_release(lock);
    return st;
}

static dt_status begin_job(study *s, const dt_sweep_job *j)
{
    const uint32_t t = j->trial;
    trial *r = &s->trial[t];
    if (s->sweep.search == DT_SEARCH_PBT && j->rung > 0 && t == 0) {
        DT_TRY(copy_sources(s, j->rung));
    }
    r->rung = j->rung;
    r->job = j->number;
    r->is_active = true;
    r->has_failed = false;
    memset(r->attempts, 0, s->sweep.n_seeds);
    for (uint32_t k = 0; k < s->sweep.n_seeds; k++) {
        DT_TRY(look_at_run(s, t, k, r->rung, false, 0));
    }
    return is_job_over(s, t) ? finish_job(s, t) : DT_OK;
}

/* ---- other processes --------------------------------------------------------------------------------------------- */

static void release_claim(study *s, uint32_t t, uint32_t k)
{
    dt_lock_release(s->trial[t].claim[k]);
    s->trial[t].claim[k] = -1;
}

/* Claims a run, and looks at it again: what held it before may have completed it. */
static dt_status claim_run(study *s, uint32_t t, uint32_t k)
{
    trial *r = &s->trial[t];
    char name[64];
    snprintf(name, sizeof(name), "trial-%04u-seed-%llu", t + 1, (unsigned long long)s->sweep.seeds[k]);
    const dt_status st = r->claim[k] < 0 ? lock_claim(s, name, &r->claim[k]) : DT_OK;
    if (st == DT_AGAIN) {
        r->run[k] = RUN_ELSEWHERE;
        return DT_OK;
    }
    DT_TRY(st);
    DT_TRY(look_at_run(s, t, k, r->rung, false, 0));
    if (r->run[k] != RUN_TODO) {
        release_claim(s, t, k);
    }
    return DT_OK;
}

/* What other processes train: did they complete it, or leave it? */
static dt_status poll_elsewhere(study *s, bool *has_any_p, bool *has_changed_p)
{
    for (uint32_t t = 0; t < s->sweep.trials; t++) {
        trial *r = &s->trial[t];
        for (uint32_t k = 0; k < s->sweep.n_seeds && r->is_active; k++) {
            if (r->run[k] == RUN_ELSEWHERE) {
                DT_TRY(claim_run(s, t, k));
                *has_any_p = *has_any_p || r->run[k] == RUN_ELSEWHERE;
                *has_changed_p = *has_changed_p || r->run[k] != RUN_ELSEWHERE;
            }
        }
        if (r->is_active && is_job_over(s, t)) {
            DT_TRY(finish_job(s, t));
        }
    }
    s->polled_s = dt_clock_s();
    return DT_OK;
}

/* Nothing to begin here. With one rung nothing will follow; else decisions wait for results of other processes. */
static dt_status wait_for_others(study *s, bool *has_changed_p)
{
    static const double EVERY_S = 0.3;
    bool has_any = false;
    if (!s->a->is_array) {
        return DT_DONE;
    }
    if (dt_clock_s() < s->polled_s + EVERY_S) {
        return DT_AGAIN;
    }
    DT_TRY(poll_elsewhere(s, &has_any, has_changed_p));
    return has_any && s->sweep.n_rungs > 1 ? DT_AGAIN : DT_DONE;
}

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

static bool find_todo(const study *s, uint32_t *t_p, uint32_t *k_p)
{
    for (uint32_t t = 0; t < s->sweep.trials; t++) {
        for (uint32_t k = 0; k < s->sweep.n_seeds && s->trial[t].is_active; k++) {
            if (s->trial[t].run[k] == RUN_TODO) {
                *t_p = t;
                *k_p = k;
                return true;
            }
        }
    }
    return false;
}

static dt_status start_run(study *s, uint32_t t, uint32_t k, dt_words *command, dt_str *output)
{
    dt_str run = {0}, folder = {0};
    append_run(s, t, k, &run);
    dt_str_addf(&folder, "%s/", dt_str_text(&s->folder));
    dt_sweep_schedule_append_folder(&s->schedule, t, s->trial[t].rung, &folder);
    dt_str_addf(output, "%s.log", dt_str_text(&run));
    dt_status st = dt_str_status(&folder);
    if (st == DT_OK) {
        st = dt_fs_mkdirs(dt_str_text(&folder));
    }
    if (st == DT_OK) {
        st = dt_journal_check_run(dt_str_text(&run));
    }
    dt_study_command_begin(&s->command, command);
    add_values(s, t, command);
    add_steps(s, s->trial[t].rung, command);
    dt_words_add(command, "--seed");
    dt_words_addf(command, "%llu", (unsigned long long)s->sweep.seeds[k]);
    dt_study_command_end(&s->command, dt_str_text(&run), command);
    s->trial[t].run[k] = RUN_ACTIVE;
    dt_str_fini(&run);
    dt_str_fini(&folder);
    return st;
}

/* The next run to train, claimed. DT_DONE, DT_AGAIN: as wait_for_others. */
static dt_status find_next(study *s, uint32_t *t_p, uint32_t *k_p)
{
    dt_sweep_job job;
    while (true) {
        dt_status st = DT_OK;
        if (find_todo(s, t_p, k_p)) {
            DT_TRY(s->a->is_array ? claim_run(s, *t_p, *k_p) : DT_OK);
            if (s->trial[*t_p].run[*k_p] == RUN_TODO) {
                return DT_OK;
            }
            DT_TRY(is_job_over(s, *t_p) ? finish_job(s, *t_p) : DT_OK);
            continue;
        }
        st = dt_sweep_schedule_next(&s->schedule, &job);
        if (st == DT_OK) {
            DT_TRY(begin_job(s, &job));
            continue;
        }
        bool has_changed = false;
        DT_TRY(st < 0 ? st : DT_OK);
        st = wait_for_others(s, &has_changed);
        if (st < 0 || !has_changed) {
            return st;
        }
    }
}

static dt_status next_training(void *user, dt_words *command, dt_str *output, uint32_t *id_p)
{
    study *s = user;
    uint32_t t = 0, k = 0;
    const dt_status st = find_next(s, &t, &k);
    if (st != DT_OK) {
        return st;
    }
    *id_p = t * s->sweep.n_seeds + k;
    return start_run(s, t, k, command, output);
}

/* A trial whose job has no result yet is shown as it was at the one before, parameters included. */
static dt_status write_table(const study *s, dt_sweep_print print)
{
    const dt_sweep_table table = {
        .sweep = &s->sweep, .schedule = &s->schedule, .row = dt_alloc_n(s->sweep.trials, sizeof(*table.row))};
    if (table.row == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u trials", s->sweep.trials);
    }
    for (uint32_t t = 0; t < s->sweep.trials; t++) {
        const trial *r = &s->trial[t];
        table.row[t] = (dt_sweep_row){.trial = t,
                                      .rung = r->is_active ? r->done_rung : r->rung,
                                      .has_failed = r->has_failed,
                                      .is_unknown = r->is_unknown,
                                      .exit_code = r->exit_code,
                                      .value = r->value,
                                      .step = r->step,
                                      .seed_value = r->seed_value};
    }
    const dt_status st = dt_sweep_table_write(&table, dt_str_text(&s->folder), print);
    dt_free(table.row);
    return st;
}

/* Now and then while trainings end, for `dtrain report` of a sweep that still trains, or is killed. */
static dt_status save_table(study *s)
{
    static const double EVERY_S = 10;
    if (dt_clock_s() < s->saved_s + EVERY_S) {
        return DT_OK;
    }
    s->saved_s = dt_clock_s();
    return write_table(s, DT_SWEEP_PRINT_NOTHING);
}

static dt_status count_attempt(study *s, uint32_t t, uint32_t k, int code)
{
    return ++s->trial[t].attempts[k] < MAX_ATTEMPTS
               ? DT_OK
               : DT_FAIL(DT_EIO,
                         "trial-%04u/seed-%llu ended with code %d %d times, without a reason in its folder; the same "
                         "command continues the sweep; see %s/trial-%04u/seed-%llu.log",
                         t + 1, (unsigned long long)s->sweep.seeds[k], code, MAX_ATTEMPTS, dt_str_text(&s->folder),
                         t + 1, (unsigned long long)s->sweep.seeds[k]);
}

static dt_status end_training(void *user, uint32_t id, int code, bool stops)
{
    study *s = user;
    const uint32_t t = id / s->sweep.n_seeds, k = id % s->sweep.n_seeds;
    trial *r = &s->trial[t];
    DT_TRY(look_at_run(s, t, k, r->rung, true, code));
    release_claim(s, t, k);
    if (r->run[k] == RUN_TODO) {
        return stops ? DT_OK : count_attempt(s, t, k, code);
    }
    if (code == DT_EXIT_DONE) {
        dt_str path = {0};
        append_run(s, t, k, &path);
        dt_str_add(&path, ".log");
        dt_fs_try_remove(dt_str_text(&path));
        dt_str_fini(&path);
    }
    if (!is_job_over(s, t)) {
        return DT_OK;
    }
    DT_TRY(finish_job(s, t));
    if (r->has_failed) {
        dt_log(DT_LOG_WARN, "trial %u failed (%d)", t + 1, r->exit_code);
    } else if (r->is_unknown) {
        dt_log(DT_LOG_WARN, "trial %u: %s is unknown at step %llu, and the trial has no rank", t + 1, s->sweep.metric,
               (unsigned long long)r->step);
    } else {
        dt_log(DT_LOG_INFO, "trial %u: %s %.6g%s", t + 1, s->sweep.metric, r->value,
               r->rung + 1 < s->sweep.n_rungs ? ", before it may continue" : "");
    }
    return save_table(s);
}

/* Runs that other tasks completed since they were last looked at. */
static dt_status look_elsewhere(study *s)
{
    for (uint32_t t = 0; t < s->sweep.trials; t++) {
        trial *r = &s->trial[t];
        for (uint32_t k = 0; k < s->sweep.n_seeds && r->is_active; k++) {
            if (r->run[k] == RUN_ELSEWHERE) {
                DT_TRY(look_at_run(s, t, k, r->rung, false, 0));
                r->run[k] = r->run[k] == RUN_TODO ? RUN_ELSEWHERE : r->run[k];
            }
        }
        if (r->is_active && is_job_over(s, t)) {
            DT_TRY(finish_job(s, t));
        }
    }
    return DT_OK;
}

/* Tasks that end together look and write one after another, so that the last one has the results of all. */
static dt_status report(study *s)
{
    int lock = -1;
    if (s->a->is_array) {
        DT_TRY(wait_for_claim(s, "report", false, &lock));
    }
    dt_status st = s->a->is_array ? look_elsewhere(s) : DT_OK;
    if (st == DT_OK) {
        st = write_table(s, s->a->json ? DT_SWEEP_PRINT_JSON : DT_SWEEP_PRINT_TABLE);
    }
    dt_lock_release(lock);
    return st;
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static dt_status choose_folder(const dt_args *a, dt_str *out)
{
    const char *slash = strrchr(a->word[0], '/'), *name = slash != NULL ? slash + 1 : a->word[0];
    if (a->run_dir != NULL) {
        dt_str_add(out, a->run_dir);
    } else {
        dt_str_addf(out, "%s/sweep-%.*s", dt_rundir_base_folder(), (int)strcspn(name, "."), name);
    }
    return dt_str_status(out);
}

static dt_status allocate(study *s)
{
    DT_TRY(dt_sweep_schedule_init(&s->schedule, &s->sweep));
    s->trial = dt_alloc_n(s->sweep.trials, sizeof(*s->trial));
    bool is_ok = s->trial != NULL;
    for (uint32_t t = 0; t < s->sweep.trials && is_ok; t++) {
        s->trial[t].value = NAN;
        s->trial[t].seed_value = dt_alloc_n(s->sweep.n_seeds, sizeof(double));
        s->trial[t].run = dt_alloc(s->sweep.n_seeds);
        s->trial[t].attempts = dt_alloc(s->sweep.n_seeds);
        s->trial[t].claim = dt_alloc_n(s->sweep.n_seeds, sizeof(int));
        is_ok = s->trial[t].seed_value != NULL && s->trial[t].run != NULL && s->trial[t].attempts != NULL &&
                s->trial[t].claim != NULL;
        for (uint32_t k = 0; k < s->sweep.n_seeds && is_ok; k++) {
            s->trial[t].seed_value[k] = NAN;
            s->trial[t].claim[k] = -1;
        }
    }
    return is_ok ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for %u trials", s->sweep.trials);
}

static dt_status claim_folder(study *s)
{
    const dt_journal j = {.kind = "sweep",
                          .identity = &s->sweep.identity,
                          .is_keyed = true,
                          .is_shared = s->a->is_array,
                          .growing = s->sweep.search == DT_SEARCH_PBT ? NULL : "trials"};
    return dt_journal_claim(dt_str_text(&s->folder), &j, &s->lock);
}

/* More than `window` trials never run at the same time: decisions wait for the first of them. */
static dt_status plan_first(study *s, int *code_p)
{
    dt_words first = {0};
    const uint64_t n =
        (uint64_t)(s->sweep.window < s->sweep.trials ? s->sweep.window : s->sweep.trials) * s->sweep.n_seeds;
    add_values(s, 0, &first);
    add_steps(s, s->sweep.n_rungs - 1, &first);
    dt_words_add(&first, "--seed");
    dt_words_addf(&first, "%llu", (unsigned long long)s->sweep.seeds[0]);
    const dt_status st =
        dt_study_command_plan(s->a, &first, n < DT_TRAININGS_MAX ? (uint32_t)n : DT_TRAININGS_MAX, &s->command, code_p);
    dt_words_fini(&first);
    return st;
}

static bool have_all_failed(const study *s)
{
    for (uint32_t t = 0; t < s->sweep.trials; t++) {
        if (!s->trial[t].has_failed && !s->trial[t].is_unknown) {
            return false;
        }
    }
    return true;
}

static dt_status run_study(study *s, int *code_p)
{
    DT_TRY(dt_sweep_read(s->a->word[0], &s->sweep));
    DT_TRY(dt_study_command_read(s->a, s->sweep.arguments.word, s->sweep.arguments.n, &s->command));
    DT_TRY(dt_study_command_add_contents(&s->command, &s->sweep.identity));
    DT_TRY(choose_folder(s->a, &s->folder));
    DT_TRY(allocate(s));
    DT_TRY(dt_fs_is_dir(dt_str_text(&s->folder)) ? claim_folder(s) : DT_OK);
    DT_TRY(plan_first(s, code_p));
    if (*code_p != 0) {
        return DT_OK;
    }
    DT_TRY(s->lock < 0 ? claim_folder(s) : DT_OK);
    dt_log(DT_LOG_INFO, "%u trials in %s, %u trainings at the same time", s->sweep.trials, dt_str_text(&s->folder),
           s->command.parallel);
    dt_signals_install();
    const dt_trainings_desc d = {
        .parallel = s->command.parallel, .next = next_training, .ended = end_training, .user = s};
    const dt_status st = dt_trainings_run(&d);
    if (st < 0 && st != DT_EINTERRUPTED) {
        return st;
    }
    dt_error_clear();
    DT_TRY(report(s));
    if (st == DT_EINTERRUPTED) {
        dt_log(DT_LOG_INFO, "stopped, states saved; the same command continues");
        *code_p = DT_EXIT_INTERRUPTED;
    } else if (have_all_failed(s)) {
        *code_p = DT_EXIT_FAILED;
    }
    return DT_OK;
}

dt_status dt_verb_sweep(const dt_args *a, int *code_p)
{
    study *s = dt_alloc(sizeof(*s));
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a sweep");
    }
    s->a = a;
    s->lock = -1;
    const dt_status st = run_study(s, code_p);
    for (uint32_t t = 0; s->trial != NULL && t < s->sweep.trials; t++) {
        dt_free(s->trial[t].seed_value);
        dt_free(s->trial[t].run);
        for (uint32_t k = 0; s->trial[t].claim != NULL && k < s->sweep.n_seeds; k++) {
            release_claim(s, t, k);
        }
        dt_free(s->trial[t].attempts);
        dt_free(s->trial[t].claim);
    }
    dt_free(s->trial);
    dt_sweep_schedule_fini(&s->schedule);
    dt_sweep_fini(&s->sweep);
    dt_lock_release(s->lock);
    dt_str_fini(&s->folder);
    dt_free(s);
    return st;
}
