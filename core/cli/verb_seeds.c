/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain seeds SEEDS -- ARGS`: one training per seed in one folder, and what came of them. The folder is all that is
 * kept: the same command reads from it which seeds are complete, and continues the others.
 */
#include <config.h>

#include "cli/cli.h"
#include "cli/study_command.h"

#include "base/err.h"
#include "base/exit.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/print.h"
#include "base/signals.h"
#include "run/rundir.h"
#include "study/journal.h"
#include "study/trainings.h"
#include "study/outcome.h"
#include "study/seed_list.h"
#include "telemetry/report/iqm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESAMPLES = 4000 };

typedef struct study {
    const dt_args *a;
    dt_study_command command;
    dt_str folder;
    uint64_t seed[DT_SEEDS_MAX];
    dt_outcome result[DT_SEEDS_MAX];
    uint32_t n, next, n_ended;
    int lock;
    dt_str near; /* a metric that runs have, where --metric is none */
} study;

/* ---- the trainings ----------------------------------------------------------------------------------------------- */

static void append_run(const study *s, uint32_t i, dt_str *out)
{
    dt_str_addf(out, "%s/seed-%llu", dt_str_text(&s->folder), (unsigned long long)s->seed[i]);
}

static dt_status read_result(study *s, uint32_t i)
{
    dt_str run = {0};
    append_run(s, i, &run);
    dt_status st = dt_str_status(&run);
    if (st == DT_OK) {
        st = dt_outcome_read(dt_str_text(&run), s->a->metric, 0, &s->result[i], &s->near);
    }
    dt_str_fini(&run);
    return st;
}

static dt_status next_training(void *user, dt_words *command, dt_str *output, uint32_t *id_p)
{
    study *s = user;
    while (s->next < s->n && dt_outcome_is_final(&s->result[s->next])) {
        s->next++;
    }
    if (s->next == s->n) {
        return DT_DONE;
    }
    const uint32_t i = *id_p = s->next++;
    dt_str run = {0};
    append_run(s, i, &run);
    dt_str_addf(output, "%s.log", dt_str_text(&run));
    dt_status st = dt_str_status(&run);
    dt_study_command_begin(&s->command, command);
    dt_words_add(command, "--seed");
    dt_words_addf(command, "%llu", (unsigned long long)s->seed[i]);
    dt_study_command_end(&s->command, dt_str_text(&run), command);
    if (st == DT_OK) {
        st = dt_journal_check_run(dt_str_text(&run));
    }
    dt_str_fini(&run);
    return st;
}

/* What it wrote on its error output is in its own log as well, but for what went wrong before there was one. */
static void remove_output(const study *s, uint32_t i)
{
    dt_str path = {0};
    append_run(s, i, &path);
    dt_str_add(&path, ".log");
    dt_fs_try_remove(dt_str_text(&path));
    dt_str_fini(&path);
}

static dt_status end_training(void *user, uint32_t i, int code, bool stops)
{
    study *s = user;
    char text[64];
    dt_outcome *r = &s->result[i];
    DT_TRY(read_result(s, i));
    s->n_ended++;
    if (code == DT_EXIT_DONE) {
        remove_output(s, i);
    } else if (r->condition != DT_RUN_FAILED && !stops) { /* killed, or it failed before it had a folder */
        r->has_run = true;
        r->condition = DT_RUN_FAILED;
        r->exit_code = code;
    }
    dt_outcome_describe(r, text, sizeof(text));
    if (r->condition == DT_RUN_FAILED) {
        dt_log(DT_LOG_WARN, "seed %llu %s%s%s; see %s/seed-%llu.log", (unsigned long long)s->seed[i], text,
               r->error[0] != '\0' ? ": " : "", r->error, dt_str_text(&s->folder), (unsigned long long)s->seed[i]);
    } else {
        dt_log(DT_LOG_INFO, "seed %llu %s (%u of %u)", (unsigned long long)s->seed[i], text, s->n_ended, s->n);
    }
    return DT_OK;
}

/* ---- what came of them ------------------------------------------------------------------------------------------- */

typedef struct summary {
    const char *metric;
    uint32_t n; /* seeds with a value */
    dt_iqm iqm;
    double mean, least, most;
} summary;

static bool is_complete(const dt_outcome *r)
{
    return r->has_run && r->condition == DT_RUN_DONE;
}

/* That most complete runs are ranked by, of several the first: a run in which no episode ended is ranked by its loss.
 */
static const char *common_metric(const study *s)
{
    const char *best = "";
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < s->n; k++) {
            n += is_complete(&s->result[k]) && strcmp(s->result[k].metric, s->result[i].metric) == 0;
        }
        if (is_complete(&s->result[i]) && s->result[i].metric[0] != '\0' && n > most) {
            best = s->result[i].metric;
            most = n;
        }
    }
    return best;
}

/* Values of another metric are none of this one. */
static void keep_common_metric(study *s)
{
    char metric[sizeof(s->result[0].metric)];
    snprintf(metric, sizeof(metric), "%s", common_metric(s));
    for (uint32_t i = 0; i < s->n; i++) {
        dt_outcome *r = &s->result[i];
        if (!is_complete(r) || (isfinite(r->value) && strcmp(r->metric, metric) == 0)) {
            continue;
        }
        dt_log(DT_LOG_WARN, "seed %llu has no final value of %s: %s; it is left out of the summary",
               (unsigned long long)s->seed[i], metric[0] != '\0' ? metric : "any metric",
               r->metric[0] == '\0'             ? "it was not recorded"
               : strcmp(r->metric, metric) != 0 ? "other metrics alone were recorded"
                                                : "the last record is unknown");
        r->value = NAN;
        snprintf(r->metric, sizeof(r->metric), "%s", metric);
    }
}

/* Complete runs alone count: the value of one that was stopped early is not that of the others. */
static dt_status summarise(const study *s, summary *out)
{
    double *v = dt_alloc_n(s->n, sizeof(*v));
    if (v == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u results", s->n);
    }
    *out = (summary){.metric = common_metric(s), .mean = NAN, .least = NAN, .most = NAN};
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const dt_outcome *r = &s->result[i];
        if (is_complete(r) && isfinite(r->value)) {
            v[out->n++] = r->value;
            sum += r->value;
            out->least = fmin(out->least, r->value);
            out->most = fmax(out->most, r->value);
        }
    }
    out->mean = out->n > 0 ? sum / out->n : (double)NAN;
    out->iqm = dt_iqm_interval(v, out->n, RESAMPLES);
    dt_free(v);
    return DT_OK;
}

static void write_json(const study *s, const summary *all, dt_json_out *o)
{
    char text[64];
    dt_json_obj(o, NULL);
    dt_json_str(o, "metric", all->metric);
    dt_json_arr(o, "seeds");
    for (uint32_t i = 0; i < s->n; i++) {
        const dt_outcome *r = &s->result[i];
        dt_outcome_describe(r, text, sizeof(text));
        dt_json_obj(o, NULL);
        dt_json_i64(o, "seed", (int64_t)s->seed[i]);
        dt_json_str(o, "state", text);
        dt_json_i64(o, "step", (int64_t)r->step);
        dt_json_f64(o, "value", is_complete(r) ? r->value : (double)NAN);
        if (r->error[0] != '\0') {
            dt_json_str(o, "error", r->error);
        }
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
    dt_json_i64(o, "n", all->n);
    dt_json_f64(o, "iqm", all->iqm.value);
    dt_json_f64(o, "iqm_low", all->iqm.low);
    dt_json_f64(o, "iqm_high", all->iqm.high);
    dt_json_f64(o, "mean", all->mean);
    dt_json_f64(o, "min", all->least);
    dt_json_f64(o, "max", all->most);
    dt_json_end(o, '}');
}

static void print_table(const study *s, const summary *all)
{
    char state[64];
    dt_print("%-10s  %-12s  %10s  %s\n", "seed", "state", "step", all->metric[0] != '\0' ? all->metric : "result");
    for (uint32_t i = 0; i < s->n; i++) {
        const dt_outcome *r = &s->result[i];
        dt_outcome_describe(r, state, sizeof(state));
        dt_print("%-10llu  %-12s  %10llu  ", (unsigned long long)s->seed[i], state, (unsigned long long)r->step);
        if (is_complete(r) && isfinite(r->value)) {
            dt_print("%.6g\n", r->value);
        } else {
            dt_print("-  %.120s\n", r->error);
        }
    }
    if (all->n > 0) {
        dt_print("\n%u of %u seeds: interquartile mean %.6g", all->n, s->n, all->iqm.value);
        if (isfinite(all->iqm.low)) {
            dt_print(" [%.6g, %.6g] (95 %% bootstrap interval)", all->iqm.low, all->iqm.high);
        }
        dt_print(", mean %.6g, min %.6g, max %.6g\n", all->mean, all->least, all->most);
    }
}

/* For scripts also as a file in the folder. */
static dt_status report(const study *s)
{
    summary all = {.metric = ""};
    dt_str text = {0}, path = {0};
    dt_json_out o = {.s = &text};
    DT_TRY(summarise(s, &all));
    write_json(s, &all, &o);
    dt_str_addf(&path, "%s/summary.json", dt_str_text(&s->folder));
    dt_status st = dt_str_status(&text);
    if (st == DT_OK && s->a->json) {
        dt_print_line(dt_str_text(&text));
    } else if (st == DT_OK) {
        print_table(s, &all);
    }
    dt_str_add(&text, "\n");
    if (st == DT_OK) {
        st = dt_fs_write_text(&path, &text);
    }
    dt_str_fini(&path);
    dt_str_fini(&text);
    return st;
}

/* A name that no complete run has is a mistake, not a result. */
static dt_status check_metric(const study *s)
{
    uint32_t n_done = 0, n_values = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        n_done += is_complete(&s->result[i]);
        n_values += is_complete(&s->result[i]) && isfinite(s->result[i].value);
    }
    const char *near = dt_str_text(&s->near);
    return n_done == 0 || n_values > 0 || s->a->metric == NULL
               ? DT_OK
               : DT_FAIL(DT_ECONFIG, "--metric %s: no run has recorded a final value of it%s%s%s", s->a->metric,
                         near[0] != '\0' ? "; did you mean " : "", near, near[0] != '\0' ? "?" : "");
}

/* ---- the verb ---------------------------------------------------------------------------------------------------- */

static dt_status choose_folder(const dt_args *a, const dt_study_command *c, dt_str *out)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        hash = dt_hash64(c->arg[i], strlen(c->arg[i]) + 1, hash);
    }
    if (a->run_dir != NULL) {
        dt_str_add(out, a->run_dir);
    } else {
        dt_str_addf(out, "%s/seeds-%08llx", dt_rundir_base_folder(), (unsigned long long)(hash & 0xffffffff));
    }
    return dt_str_status(out);
}

static dt_status claim_folder(study *s)
{
    dt_words identity = {0};
    for (uint32_t i = 0; i < s->command.n; i++) {
        dt_words_add(&identity, s->command.arg[i]);
    }
    const dt_journal j = {.kind = "seeds", .identity = &identity};
    dt_status st = dt_study_command_add_contents(&s->command, &identity);
    if (st == DT_OK) {
        st = dt_journal_claim(dt_str_text(&s->folder), &j, &s->lock);
    }
    dt_words_fini(&identity);
    return st;
}

/* A run whose parent was killed may still be saving: the new training waits for its lock. */
static dt_status train_all(study *s, int *code_p)
{
    dt_words seed = {0};
    uint32_t n_left = 0;
    DT_TRY(dt_fs_is_dir(dt_str_text(&s->folder)) ? claim_folder(s) : DT_OK);
    for (uint32_t i = 0; i < s->n; i++) {
        DT_TRY(read_result(s, i));
        n_left += !dt_outcome_is_final(&s->result[i]);
    }
    s->n_ended = s->n - n_left;
    if (n_left == 0) {
        return DT_OK;
    }
    dt_words_add(&seed, "--seed");
    dt_words_addf(&seed, "%llu", (unsigned long long)s->seed[0]);
    dt_status st = dt_study_command_plan(s->a, &seed, n_left, &s->command, code_p);
    dt_words_fini(&seed);
    if (st < 0 || *code_p != 0) {
        return st;
    }
    DT_TRY(s->lock < 0 ? claim_folder(s) : DT_OK); /* not before its arguments were accepted */
    dt_log(DT_LOG_INFO, "%u trainings in %s, %u at the same time", n_left, dt_str_text(&s->folder),
           s->command.parallel < n_left ? s->command.parallel : n_left);
    dt_signals_install();
    const dt_trainings_desc pool = {
        .parallel = s->command.parallel, .next = next_training, .ended = end_training, .user = s};
    return dt_trainings_run(&pool);
}

static int code_of_results(const study *s)
{
    int code = DT_EXIT_DONE;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->result[i].condition != DT_RUN_DONE || !s->result[i].has_run) {
            code = code == DT_EXIT_DONE || code == s->result[i].exit_code ? s->result[i].exit_code : DT_EXIT_FAILED;
        }
    }
    return code < 0 || code > 255 ? DT_EXIT_FAILED : code;
}

static dt_status run_study(study *s, int *code_p)
{
    DT_TRY(dt_seed_list_parse(s->a->word[0], s->seed, &s->n));
    DT_TRY(dt_study_command_read(s->a, s->a->rest, s->a->n_rest, &s->command));
    DT_TRY(choose_folder(s->a, &s->command, &s->folder));
    const dt_status st = train_all(s, code_p);
    const bool is_interrupted = st == DT_EINTERRUPTED;
    if ((st < 0 && !is_interrupted) || *code_p != 0) {
        return st;
    }
    dt_error_clear();
    keep_common_metric(s);
    DT_TRY(report(s));
    if (is_interrupted) {
        dt_log(DT_LOG_INFO, "stopped, states saved; the same command continues");
        *code_p = DT_EXIT_INTERRUPTED;
        return DT_OK;
    }
    DT_TRY(check_metric(s));
    *code_p = code_of_results(s);
    return DT_OK;
}

dt_status dt_verb_seeds(const dt_args *a, int *code_p)
{
    study *s = dt_alloc(sizeof(*s));
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %d seeds", DT_SEEDS_MAX);
    }
    s->a = a;
    s->lock = -1;
    const dt_status st = run_study(s, code_p);
    dt_lock_release(s->lock);
    dt_str_fini(&s->folder);
    dt_str_fini(&s->near);
    dt_free(s);
    return st;
}
