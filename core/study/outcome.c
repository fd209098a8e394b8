/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "study/outcome.h"

#include "base/err.h"
#include "base/exit.h"
#include "base/fs.h"
#include "base/mem.h"
#include "telemetry/report/logbook.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

bool dt_outcome_has_failed(const dt_outcome *r)
{
    const int signal = r->exit_code - 128;
    const bool was_stopped = signal == SIGHUP || signal == SIGINT || signal == SIGTERM || signal == SIGKILL;
    return r->condition == DT_RUN_FAILED && !was_stopped;
}

/* The last record of the first step of the last phase that is so many; UINT32_MAX: none. */
static uint32_t find_record(const dt_records *r, uint64_t steps)
{
    for (uint32_t i = r->n_phases > 0 ? r->phase[r->n_phases - 1].first : r->n; i < r->n; i++) {
        if (r->step[i] >= steps && (i + 1 == r->n || r->step[i + 1] != r->step[i])) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* The last one up to a record. One that is unknown, as the return of an evaluation without a completed episode, stays
 * so: an earlier one is another training's. */
static void set_value(const dt_series *s, uint32_t record, dt_outcome *out)
{
    for (uint32_t i = s->n; i-- > 0;) {
        if (s->at[i] <= record) {
            out->value = isfinite(s->value[i]) ? s->value[i] : (double)NAN;
            out->is_unknown = isnan(out->value);
            return;
        }
    }
}

static dt_status suggest_metric(const dt_records *r, const char *metric, dt_str *near)
{
    const char **name = dt_alloc_n(2 * (size_t)r->n_series + 1, sizeof(*name));
    size_t n = 0;
    if (name == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u names of metrics", r->n_series);
    }
    for (uint32_t i = 0; i < r->n_series; i++) {
        const bool is_evaluated = strncmp(r->series[i].name, "eval/", 5) == 0;
        name[n++] = r->series[i].name;
        name[n++] = r->series[i].name + (is_evaluated ? 5 : 0);
    }
    const char *found = dt_suggest_word(metric, name);
    if (found != NULL && near->bytes == 0) {
        dt_str_add(near, found);
    }
    dt_free(name);
    return dt_str_status(near);
}

static dt_status read_metric(const dt_logbook *l, const char *metric, uint64_t steps, dt_outcome *out, dt_str *near)
{
    const uint32_t record = steps > 0 ? find_record(l->records, steps) : UINT32_MAX;
    /* a run that was interrupted there may have a pending evaluation, which a resume makes */
    const bool has_end = out->condition == DT_RUN_DONE || dt_outcome_has_failed(out);
    const bool is_past = record < l->records->n && (record + 1 < l->records->n || has_end);
    out->is_reached = steps > 0 && is_past;
    if (metric == NULL) {
        snprintf(out->metric, sizeof(out->metric), "%s", l->state.best_name);
        out->is_min = l->state.best_is_min;
        metric = out->metric;
    }
    const dt_series *s = metric[0] != '\0' ? dt_records_find_metric(l->records, metric) : NULL;
    if (s == NULL) {
        return near != NULL && metric[0] != '\0' ? suggest_metric(l->records, metric, near) : DT_OK;
    }
    snprintf(out->metric, sizeof(out->metric), "%s", s->name);
    set_value(s, record, out);
    return DT_OK;
}

dt_status dt_outcome_read(const char *run, const char *metric, uint64_t steps, dt_outcome *out, dt_str *near)
{
    dt_str meta = {0};
    dt_logbook l;
    *out = (dt_outcome){.exit_code = -1, .value = NAN};
    dt_str_addf(&meta, "%s/meta.json", run);
    dt_status st = dt_str_status(&meta);
    out->has_run = st == DT_OK && dt_fs_is_file(dt_str_text(&meta));
    dt_str_fini(&meta);
    if (st < 0 || !out->has_run) {
        return st;
    }
    DT_TRY(dt_logbook_open(run, &l));
    out->condition = l.state.condition;
    out->exit_code = l.state.exit_code;
    out->step = l.state.step;
    snprintf(out->error, sizeof(out->error), "%s", l.state.error);
    st = read_metric(&l, metric, steps, out, near);
    dt_logbook_close(&l);
    return st;
}

bool dt_outcome_is_final(const dt_outcome *r)
{
    return r->has_run &&
           (r->condition == DT_RUN_DONE ||
            (dt_outcome_has_failed(r) && (r->exit_code == DT_EXIT_DIVERGED || dt_exit_is_rejection(r->exit_code))));
}

void dt_outcome_describe(const dt_outcome *r, char *out, size_t bytes)
{
    if (!r->has_run) {
        snprintf(out, bytes, "waiting");
    } else if (dt_outcome_has_failed(r)) {
        snprintf(out, bytes, "failed (%d)", r->exit_code);
    } else {
        snprintf(out, bytes, "%s", dt_run_condition_text(r->condition));
    }
}
