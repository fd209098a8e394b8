/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/report/state.h"

#include "base/err.h"
#include "base/exit.h"
#include "base/fs.h"
#include "base/lock.h"
#include "dtrain/checked.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *dt_run_condition_text(dt_run_condition c)
{
    static const char *const text[] = {
        [DT_RUN_RUNNING] = "running", [DT_RUN_INTERRUPTED] = "interrupted", [DT_RUN_STOPPED] = "stopped",
        [DT_RUN_DONE] = "done",       [DT_RUN_FAILED] = "failed",           [DT_RUN_DAMAGED] = "damaged"};
    return text[c];
}

/* A run that was killed has neither an end nor a living holder of its lock. */
static dt_run_condition find_condition(const char *dir, int exit_code)
{
    dt_str lock = {0};
    if (exit_code >= 0) {
        return exit_code == DT_EXIT_DONE          ? DT_RUN_DONE
               : exit_code == DT_EXIT_INTERRUPTED ? DT_RUN_INTERRUPTED
                                                  : DT_RUN_FAILED;
    }
    dt_str_addf(&lock, "%s/run.lock", dir);
    const bool is_alive = dt_lock_is_held(dt_str_text(&lock));
    dt_str_fini(&lock);
    return is_alive ? DT_RUN_RUNNING : DT_RUN_INTERRUPTED;
}

/* The series that a run is ranked by: checkpoint.best_by; without one the return of evaluations, the error at the
 * longest horizon, the loss. The last phase that has it counts. */
static const dt_series *find_ranking_series(const dt_flat *config, const dt_records *r, bool *is_min_p)
{
    const char *best_by = dt_flat_text(config, "checkpoint.best_by/value");
    const bool is_min = strncmp(best_by, "min:", 4) == 0;
    for (uint32_t p = r->n_phases; p-- > 0;) {
        const dt_series *s = NULL;
        char name[160];
        if (best_by[0] != '\0') {
            snprintf(name, sizeof(name), "eval/%s", best_by + (is_min ? 4 : 0));
            s = dt_records_find(r, p, name);
            *is_min_p = is_min;
        }
        if (s == NULL && (s = dt_records_find(r, p, "eval/return/mean")) != NULL) {
            *is_min_p = false;
        }
        const uint32_t first = r->phase[p].first_series;
        const bool is_named = s != NULL;
        for (uint32_t i = first; !is_named && i < r->n_series && r->series[i].phase == p; i++) {
            if (strncmp(r->series[i].name, "eval/rmse_m/", 12) == 0) { /* horizons rise: the last one stays */
                s = &r->series[i];
                *is_min_p = true;
            }
        }
        if (s == NULL && (s = dt_records_find(r, p, "charts/episodic_return")) != NULL) {
            *is_min_p = false;
        }
        if (s == NULL && (s = dt_records_find(r, p, "loss")) != NULL) {
            *is_min_p = true;
        }
        if (s != NULL) {
            return s;
        }
    }
    return NULL;
}

static void set_condition(const dt_flat *config, const dt_records *r, dt_run_state *out)
{
    const dt_series *s = find_ranking_series(config, r, &out->best_is_min);
    out->best = out->last = NAN;
    if (s == NULL) {
        return;
    }
    snprintf(out->best_name, sizeof(out->best_name), "%s", s->name);
    out->last = dt_series_last(s);
    for (uint32_t i = 0; i < s->n; i++) {
        const double v = s->value[i];
        if (isfinite(v) && (isnan(out->best) || (out->best_is_min ? v < out->best : v > out->best))) {
            out->best = v;
            out->best_step = r->step[s->at[i]];
        }
    }
}

/* Planned, and what the records show of it: a phase that iterations end has as many steps as each of them makes. */
static void measure_progress(const dt_flat *progress, const dt_records *r, dt_run_state *out)
{
    const dt_series *s = r->n_phases > 0 ? dt_records_find(r, r->n_phases - 1, "progress") : NULL;
    const bool is_of_phase = r->n_phases > 0 && strcmp(r->phase[r->n_phases - 1].id, out->phase) == 0;
    out->steps = (uint64_t)dt_i64_within(dt_flat_number(progress, "steps", 0), 0, INT64_MAX);
    out->parameters = (uint64_t)dt_i64_within(dt_flat_number(progress, "parameters", 0), 0, INT64_MAX);
    out->trained = (uint64_t)dt_i64_within(dt_flat_number(progress, "parameters_trained", 0), 0, INT64_MAX);
    out->part = out->steps > 0 ? fmin(1, (double)out->step / (double)out->steps) : NAN;
    if (s == NULL || !is_of_phase || isnan(dt_series_last(s))) {
        return;
    }
    out->part = dt_series_last(s);
    if (dt_flat_number(progress, "stop_time_s", 0) > 0) {
        out->steps = 0;
    } else if (dt_flat_number(progress, "stop_iterations", 0) > 0 && out->part > 0) {
        out->steps = (uint64_t)dt_i64_within(round((double)out->step / out->part), 0, INT64_MAX);
    }
}

/* The process that holds the lock: what base/lock.h leaves in it. */
static void find_process(const char *dir, dt_run_state *out)
{
    dt_str path = {0};
    dt_str_addf(&path, "%s/run.lock", dir);
    FILE *f = NULL;
    if (dt_fs_open_stream(dt_str_text(&path), O_RDONLY, "r", &f) == DT_OK) {
        if (fscanf(f, "process %ld on %63s", &out->process, out->host) != 2) {
            out->process = 0;
            out->host[0] = '\0';
        }
        fclose(f);
    }
    dt_error_clear();
    dt_str_fini(&path);
}

/* The last line of a log, without its time and level. */
static void read_last_line(const char *dir, const char *file, char *out, size_t bytes)
{
    enum { END = 4096 };
    char text[END + 1];
    dt_str path = {0};
    dt_str_addf(&path, "%s/%s", dir, file);
    FILE *f = NULL;
    const dt_status st = dt_fs_open_stream(dt_str_text(&path), O_RDONLY, "r", &f);
    dt_str_fini(&path);
    if (st < 0) {
        dt_error_clear();
        return;
    }
    if (fseek(f, -END, SEEK_END) != 0) {
        rewind(f);
    }
    size_t n = fread(text, 1, END, f);
    fclose(f);
    while (n > 0 && text[n - 1] == '\n') {
        n--;
    }
    text[n] = '\0';
    const char *line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    const char *error = strstr(line, " error ");
    snprintf(out, bytes, "%.*s", (int)bytes - 1, error != NULL ? error + strlen(" error ") : line);
}

void dt_run_state_get(const char *dir, const dt_flat *meta, const dt_flat *config, const dt_flat *progress,
                      const dt_records *records, dt_run_state *out)
{
    const double code = dt_flat_number(meta, "exit_code", -1);
    *out = (dt_run_state){.exit_code = (int)dt_i64_within(code, INT_MIN, INT_MAX), .progress = NAN, .part = NAN};
    out->condition = find_condition(dir, out->exit_code);
    snprintf(out->start, sizeof(out->start), "%s", dt_flat_text(meta, "start"));
    snprintf(out->end, sizeof(out->end), "%s", dt_flat_text(meta, "end"));
    out->ranks = (uint32_t)dt_i64_within(dt_flat_number(meta, "ranks", 1), 1, UINT32_MAX);
    const char *planned = dt_flat_text(progress, "phase");
    const dt_phase_records *last = records->n_phases > 0 ? &records->phase[records->n_phases - 1] : NULL;
    out->has_phase = planned[0] != '\0' || last != NULL;
    snprintf(out->phase, sizeof(out->phase), "%s", planned[0] != '\0' ? planned : last != NULL ? last->id : "");
    if (last != NULL && strcmp(last->id, out->phase) == 0) {
        out->step = records->step[records->n - 1];
    }
    out->wall_s = records->n > 0 ? records->wall_s[records->n - 1] : 0;
    if (planned[0] != '\0') {
        out->phase_index = dt_i64_within(dt_flat_number(progress, "phase_index", 0), 0, INT32_MAX);
        out->n_phases = dt_i64_within(dt_flat_number(progress, "phases", 1), 0, INT32_MAX);
        measure_progress(progress, records, out);
    }
    if (out->condition == DT_RUN_DONE && out->phase_index + 1 < out->n_phases) {
        out->condition = DT_RUN_STOPPED;
        out->steps = 0; /* those planned were --max-steps, not the phase's */
        out->part = NAN;
    } else if (out->condition == DT_RUN_DONE) {
        out->progress = 1;
    } else if (out->n_phases > 0) {
        out->progress = ((double)out->phase_index + out->part) / (double)out->n_phases;
    }
    if (out->condition == DT_RUN_RUNNING) {
        find_process(dir, out);
    }
    if (out->condition == DT_RUN_FAILED) {
        read_last_line(dir, "error.log", out->error, sizeof(out->error));
    }
    set_condition(config, records, out);
}
