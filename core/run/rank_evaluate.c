/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluations of a rank's phase, and what follows from their results; see rank.h.
 */
#include <config.h>

#include "run/rank.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/trace.h"
#include "telemetry/tensorboard/event_files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const host_record[] = {"loss", "grad/norm", "lr"}; /* in every record of training */

static dt_status evaluate_stage(dt_rank *k, dt_progress *p)
{
    DT_TRACE("run", "evaluation");
    dt_activity_set(DT_ACTIVITY_EVALUATE, 0, 0);
    const dt_status st = dt_stage_evaluate(k->stage, p);
    dt_activity_set(DT_ACTIVITY_NONE, 0, 0);
    return st;
}

static dt_status evaluate_and_record(dt_rank *k)
{
    dt_progress p;
    const dt_status mine = evaluate_stage(k, &p);
    DT_TRY(dt_comm_join(k->comm, mine));
    k->evaluated_step = dt_rank_global_step(k);
    if (!dt_rank_is_first(k)) {
        return DT_OK;
    }
    const dt_result *report = NULL;
    const uint32_t n = dt_stage_get_results(k->stage, &report);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < report[i].n && !dt_result_is_detail(&report[i]); j++) {
            char name[128];
            if (report[i].is_list) {
                snprintf(name, sizeof(name), "eval/%s/%u", report[i].key, j + 1);
            } else {
                snprintf(name, sizeof(name), "eval/%s", report[i].key);
            }
            dt_metrics_add_scalar(k->r->metrics, name, report[i].value[j]);
        }
    }
    if (dt_result_write_pictures(k->stage, dt_rundir_path(k->r->d->dir)) < 0) {
        dt_log(DT_LOG_WARN, "no pictures of this evaluation: %s", dt_error_text());
        dt_error_clear();
    }
    dt_str table = {0};
    dt_result_text(k->stage, &table);
    const dt_status st = dt_str_status(&table);
    dt_event_files_write_evaluation(k->stage, k->r->metrics, dt_trainer_step_number(k->stage->trainer),
                                    dt_str_text(&table));
    char *rest = table.text, *line;
    while (st == DT_OK && (line = strsep(&rest, "\n")) != NULL && line[0] != '\0') {
        dt_log(DT_LOG_INFO, "%s", line);
    }
    dt_str_fini(&table);
    return st;
}

bool dt_rank_evaluation_due(const dt_rank *k, const dt_progress *p, bool ends)
{
    const int64_t every = k->training.eval_interval;
    return k->stage->d.phase->ops.phase.evaluate != NULL && every > 0 &&
           (ends || (p->epoch_end && (p->epoch + 1) % (uint64_t)every == 0));
}

static const char *find_similar_result(const dt_stage *s, const char *name)
{
    const char *names[DT_STAGE_MAX_RESULTS + 1] = {NULL};
    const dt_result *report = NULL;
    const uint32_t n = dt_stage_get_results(s, &report);
    for (uint32_t i = 0; i < n && i < DT_STAGE_MAX_RESULTS; i++) {
        names[i] = report[i].key;
    }
    return dt_suggest_word(strncmp(name, "eval/", 5) == 0 ? name + 5 : name, names);
}

/* The number that a key of the configuration names. Errors: DT_ECONFIG with those that there are. */
static dt_status find_result(const dt_stage *stage, const char *option, const char *name, double *out)
{
    const double *value = dt_stage_find_result(stage, name);
    if (value == NULL) {
        dt_str known = {0};
        dt_stage_list_result_names(stage, &known);
        const char *near = find_similar_result(stage, name);
        const dt_status st =
            DT_FAIL(DT_ECONFIG, "%s = \"%s\" is not a result of the evaluation of %s%s%s%s; it reports %s", option,
                    name, stage->d.phase->desc.id, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                    near != NULL ? "\"?" : "", dt_str_text(&known));
        dt_str_fini(&known);
        return st;
    }
    *out = *value;
    return DT_OK;
}

/* What was counted of another metric, before the run was resumed with this one, does not count. */
static void keep_rule(dt_snapshot_patience *p, const char *metric, uint64_t kind)
{
    const int64_t rule = (int64_t)(dt_hash64(metric, strlen(metric), kind) >> 1 | 1);
    if (p->rule != rule) {
        *p = (dt_snapshot_patience){.rule = rule};
    }
}

/* stop.patience: has the value not improved for so many evaluations? What is no number is no improvement. */
static bool is_patience_over(dt_rank *k, double value)
{
    const dt_stop_opts *o = &k->stop;
    dt_snapshot_patience *p = &k->patience;
    if (o->patience == 0) {
        return false;
    }
    const double gain = o->is_min ? p->best - value : value - p->best;
    if (isfinite(value) && (!p->has_best || gain > o->min_delta)) {
        *p = (dt_snapshot_patience){.has_best = true, .best = value, .rule = p->rule};
    } else {
        p->n_stale++;
    }
    return p->n_stale >= o->patience;
}

/* Rank 0 has the results; met_p: whether they end the phase. */
static dt_status check_stop_target(dt_rank *k, bool *met_p)
{
    const dt_stop_opts *o = &k->stop;
    double value = NAN;
    uint32_t met = 0;
    if (o->metric[0] == '\0') {
        return DT_OK;
    }
    const dt_status found = dt_rank_is_first(k) ? find_result(k->stage, "stop.metric", o->metric, &value) : DT_OK;
    DT_TRY(dt_comm_agree(k->comm, found));
    k->n_target_known += !isnan(value);
    met |= o->has_above && value >= o->above;
    met |= o->has_below && value <= o->below;
    if (o->patience > 0) {
        keep_rule(&k->patience, o->metric, o->is_min);
    }
    const bool is_stale = dt_rank_is_first(k) && is_patience_over(k, value);
    met |= is_stale;
    DT_TRY(dt_comm_broadcast(k->comm, 0, &met, sizeof(met)));
    *met_p = met != 0;
    if (is_stale) {
        dt_log(DT_LOG_INFO, "%s has not improved for %lld evaluations: the phase ends", o->metric,
               (long long)k->patience.n_stale);
    } else if (met != 0 && dt_rank_is_first(k)) {
        dt_log(DT_LOG_INFO, "%s is %g: the phase ends", o->metric, value);
    }
    return DT_OK;
}

/* The phase's own records of this iteration, and those that the host adds when it ends. NAN: none. */
static double find_training_value(const dt_rank *k, const dt_progress *p)
{
    const double of_host[] = {p->loss, p->grad_norm, p->learning_rate};
    const char *name = k->stop.training_metric;
    for (size_t i = 0; i < sizeof(of_host) / sizeof(of_host[0]); i++) {
        if (strcmp(host_record[i], name) == 0) {
            return of_host[i];
        }
    }
    return dt_metrics_pending_mean(k->r->metrics, name);
}

void dt_rank_list_training_names(const dt_rank *k, dt_str *out)
{
    const char *name = NULL;
    dt_str_addf(out, "%s, %s, %s", host_record[0], host_record[1], host_record[2]);
    for (uint32_t i = 0; (name = dt_metrics_marked(k->r->metrics, i)) != NULL; i++) {
        if (!dt_config_is_measured_metric(name)) {
            dt_str_addf(out, ", %s", name);
        }
    }
}

/* Recorded of episodes that end: in a round that is shorter than an episode there are none. */
static bool is_of_episodes(const dt_rank *k)
{
    static const char *const group[] = {"charts/episodic_", "costs/", "env/"};
    for (size_t i = 0; i < sizeof(group) / sizeof(group[0]); i++) {
        if (strncmp(k->stop.training_metric, group[i], strlen(group[i])) == 0) {
            return k->stage->rollout != NULL;
        }
    }
    return false;
}

/* After the first epoch: a mistyped name is known long before the end of the phase, where it is an error. */
static void warn_unknown_name(const dt_rank *k)
{
    dt_str names = {0};
    if (k->n_training_epochs != 1 || k->n_training_known > 0 || is_of_episodes(k)) {
        return;
    }
    dt_rank_list_training_names(k, &names);
    dt_log(DT_LOG_WARN, "stop.metric = \"train/%s\" has no value in the first epoch of %s, which records %s",
           k->stop.training_metric, k->stage->d.phase->desc.id, dt_str_text(&names));
    dt_str_fini(&names);
}

/* The end of an epoch: its mean. One without a number, as a round in which no episode ended, does not count. */
static bool is_training_over(dt_rank *k)
{
    const dt_stop_opts *o = &k->stop;
    const double value = k->patience.n > 0 ? k->patience.sum / (double)k->patience.n : (double)NAN;
    k->patience.sum = 0;
    k->patience.n = 0;
    if (isnan(value)) {
        return false;
    }
    if ((o->has_above && value >= o->above) || (o->has_below && value <= o->below)) {
        dt_log(DT_LOG_INFO, "%s is %g: the phase ends", o->training_metric, value);
        return true;
    }
    const bool is_over = is_patience_over(k, value);
    if (is_over) {
        dt_log(DT_LOG_INFO, "%s has not improved for %lld epochs: the phase ends", o->training_metric,
               (long long)k->patience.n_stale);
    }
    return is_over;
}

dt_status dt_rank_check_training(dt_rank *k, const dt_progress *p, bool *met_p)
{
    const char *name = k->stop.training_metric;
    uint32_t met = 0;
    if (name[0] == '\0') {
        return DT_OK;
    }
    if (dt_rank_is_first(k)) {
        const double value = find_training_value(k, p);
        keep_rule(&k->patience, name, 2 + k->stop.is_min);
        if (!isnan(value)) {
            k->patience.sum += value;
            k->patience.n++;
            k->n_training_known++;
        } else if (k->n_training_known == 0) {
            dt_metrics_mark_pending(k->r->metrics);
        }
    }
    if (!p->epoch_end) {
        return DT_OK;
    }
    k->n_training_epochs++;
    if (dt_rank_is_first(k)) {
        warn_unknown_name(k);
        met = is_training_over(k);
    }
    DT_TRY(dt_comm_broadcast(k->comm, 0, &met, sizeof(met)));
    *met_p = *met_p || met != 0;
    return DT_OK;
}

static const char *best_result_name(const char *best_by)
{
    return strncmp(best_by, "min:", 4) == 0 ? best_by + 4 : best_by;
}

const char *dt_rank_best_result_name(const dt_rank *k)
{
    return best_result_name(k->checkpoint.best_by);
}

/* Is a best_by that this phase does not report a mistake? Not where other phases share it and may report it; it is
 * where it is this phase's own, where no other phase is evaluated, or none of the others reported it, and where a
 * result here has nearly that name. */
static dt_status is_best_by_mistake(const dt_session *s, const dt_stage *stage, const char *best_by,
                                    int64_t n_without_best, bool *is_p)
{
    dt_checkpoint_opts shared;
    int64_t n = 0, last = 0;
    for (int64_t i = 0; i < s->n_phases; i++) {
        const bool is_evaluated = s->phase[i]->ops.phase.evaluate != NULL && s->opts[i].training.eval_interval > 0;
        n += is_evaluated;
        last = is_evaluated ? i : last;
    }
    DT_TRY(dt_config_checkpoint(s->config, -1, &shared));
    const bool is_last_chance = stage->d.index == last && n_without_best == n - 1;
    *is_p = n <= 1 || is_last_chance || strcmp(shared.best_by, best_by) != 0 ||
            find_similar_result(stage, best_result_name(best_by)) != NULL;
    return DT_OK;
}

dt_status dt_results_check(const dt_session *s, const dt_stage *stage, const char *stop_metric, const char *best_by,
                           int64_t n_without_best)
{
    double unused = 0;
    bool is_meant = false;
    if (stop_metric[0] != '\0') {
        DT_TRY(find_result(stage, "stop.metric", stop_metric, &unused));
    }
    if (best_by[0] == '\0' || dt_stage_find_result(stage, best_result_name(best_by)) != NULL) {
        return DT_OK;
    }
    DT_TRY(is_best_by_mistake(s, stage, best_by, n_without_best, &is_meant));
    return is_meant ? find_result(stage, "checkpoint.best_by", best_result_name(best_by), &unused) : DT_OK;
}

/* A name that a phase does not report marks nothing as its best. Said once: other phases may report it. */
static void record_best_result(dt_rank *k)
{
    const char *name = dt_rank_best_result_name(k);
    double value = 0;
    if (dt_rank_is_first(k) && name[0] != '\0' && !k->has_evaluated &&
        find_result(k->stage, "checkpoint.best_by", name, &value) < 0) {
        dt_log(DT_LOG_WARN, "%s", dt_error_text());
        dt_error_clear();
        k->r->n_without_best++;
    }
    const double *best = dt_rank_is_first(k) ? dt_stage_find_result(k->stage, name) : NULL;
    k->n_best_known += best != NULL && !isnan(*best);
    k->has_evaluated = true;
}

dt_status dt_rank_evaluate(dt_rank *k, bool *met_p)
{
    const dt_status mine = evaluate_and_record(k);
    DT_TRY(dt_comm_join(k->comm, mine));
    k->n_evaluations++;
    record_best_result(k);
    return check_stop_target(k, met_p);
}

dt_status dt_rank_check_results(dt_rank *k)
{
    const bool wants_any = k->stop.metric[0] != '\0' || k->checkpoint.best_by[0] != '\0';
    if (!wants_any || k->stage->d.phase->ops.phase.evaluate == NULL || k->training.eval_interval == 0) {
        return DT_OK;
    }
    dt_progress p;
    const dt_status mine = evaluate_stage(k, &p);
    DT_TRY(dt_comm_join(k->comm, mine));
    dt_status st = DT_OK;
    if (dt_rank_is_first(k)) {
        st = dt_results_check(k->r->d->session, k->stage, k->stop.metric, k->checkpoint.best_by, k->r->n_without_best);
    }
    if (st == DT_OK) {
        record_best_result(k);
    }
    dt_stage_results_clear(k->stage);
    return dt_comm_agree(k->comm, st);
}

/* ---- pending evaluations ----------------------------------------------------------------------------------------- */

dt_status dt_rank_save_pending(dt_rank *k, const dt_progress *p, bool ends)
{
    k->pending = ends ? DT_PENDING_END : DT_PENDING_EVALUATION;
    if (dt_rank_is_first(k)) {
        dt_rank_report_iteration(k, p, p->step == p->steps);
        DT_TRY(dt_metrics_flush(k->r->metrics, k->stage->d.phase->desc.id, p->step, dt_clock_s() - k->r->start_s));
    }
    DT_TRY(dt_rank_save(k, false, true));
    return DT_EINTERRUPTED;
}

dt_status dt_rank_run_pending(dt_rank *k)
{
    const bool ends = k->pending == DT_PENDING_END;
    bool is_met = false;
    k->good_step = dt_rank_global_step(k);
    k->good_further = dt_stage_further_steps(k->stage);
    const dt_status st = dt_rank_evaluate(k, &is_met);
    if (st < 0) {
        return st == DT_EINTERRUPTED ? st : dt_rank_save_after_failure(k, st, NULL);
    }
    k->pending = DT_PENDING_NONE;
    dt_rank_mark_advanced(k);
    if (dt_rank_is_first(k)) {
        DT_TRY(dt_metrics_flush(k->r->metrics, k->stage->d.phase->desc.id, dt_trainer_step_number(k->stage->trainer),
                                dt_clock_s() - k->r->start_s));
    }
    if (ends || is_met) {
        return DT_DONE;
    }
    k->last_saved_step = UINT64_MAX; /* the checkpoint of this step records that it is pending */
    return dt_rank_save(k, false, false);
}

dt_status dt_rank_end_stream(dt_rank *k)
{
    const bool is_evaluated = k->stage->d.phase->ops.phase.evaluate != NULL && k->training.eval_interval > 0;
    const uint64_t step = dt_rank_global_step(k);
    if (k->stage->stream == NULL || !is_evaluated || step == k->evaluated_step || step == k->r->base_step) {
        return DT_DONE;
    }
    k->pending = DT_PENDING_END;
    return dt_rank_run_pending(k);
}
