/* SPDX-License-Identifier: Apache-2.0
 *
 * `dtrain run --dry-run` and `dtrain bench gpu`: the plan of each phase, and what a run would refuse. The checks are
 * the run's own functions, in its order: dt_rundir_check_open, dt_run_start_find, dt_initial_weights_find,
 * dt_initial_weights_load, dt_fit_stage and dt_results_check.
 */
#include <config.h>

#include "run/dry_run.h"

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "run/batch_auto.h"
#include "plan/expect.h"
#include "run/initial_weights.h"
#include "plan/fit.h"
#include "plan/forecast.h"
#include "plan/roofline.h"
#include "run/run.h"
#include "run/run_start.h"
#include "run/session_parts.h"
#include "plugin/service/stage.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const run_files[] = {"config.cfg",   "config.origin.json", "meta.json",
                                        "train.log",    "error.log",          "metrics.jsonl",
                                        "tensorboard/", "checkpoints/",       "report.html"};

/* ---- what it prints ---------------------------------------------------------------------------------------------- */

/* What a run would write, and where. */
static void print_files(const dt_rundir_desc *dir)
{
    if (dir->dir != NULL) {
        dt_print("files below %s:\n", dir->dir);
    } else {
        dt_print("files below %s/%s-<UTC time>-<4 hex>:\n", dir->base, dir->name);
    }
    for (size_t i = 0; i < sizeof(run_files) / sizeof(run_files[0]); i++) {
        dt_print("  %s\n", run_files[i]);
    }
}

static void write_files_json(const dt_rundir_desc *dir, dt_json_out *o)
{
    dt_json_str(o, dir->dir != NULL ? "run_dir" : "run_dir_below", dir->dir != NULL ? dir->dir : dir->base);
    dt_json_str(o, "name", dir->name);
    dt_json_arr(o, "files");
    for (size_t i = 0; i < sizeof(run_files) / sizeof(run_files[0]); i++) {
        dt_json_str(o, NULL, run_files[i]);
    }
    dt_json_end(o, ']');
}

static void append_batch_choice(const dt_session *s, int64_t phase, dt_str *out)
{
    dt_str why = {0};
    dt_batch_append_choice(s, phase, &why);
    if (why.bytes > 0) {
        dt_str_addf(out, "  batch        %s\n", dt_str_text(&why));
    }
    dt_str_fini(&why);
}

static dt_status print_plan(const dt_session *s, const dt_stage *stage, const dt_forecast *f, const dt_expected *e,
                            dt_json_out *json)
{
    dt_fit fit;
    dt_str text = {0};
    DT_TRY(dt_fit_measure(stage, f, &fit));
    if (json != NULL) {
        dt_json_obj(json, NULL);
        dt_forecast_json(stage, f, json);
        dt_estimate_json(e, json);
        dt_batch_write_choice(s, stage->d.index, json);
        dt_fit_json(&fit, f, json);
        dt_json_end(json, '}');
        return DT_OK;
    }
    dt_forecast_text(stage, f, &text);
    dt_str_add(&text, "  expected     ");
    dt_estimate_text(e, &text);
    dt_str_add(&text, "\n");
    append_batch_choice(s, stage->d.index, &text);
    dt_fit_text(&fit, f, &text);
    const dt_status st = dt_str_status(&text);
    dt_print_text(dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

/* dtrain bench gpu, instead of the plan. */
static dt_status print_roofline(const dt_stage *stage, const char *gpu, dt_json_out *json)
{
    dt_str text = {0};
    const dt_gpu_peak *g = dt_gpu_peak_find(gpu);
    if (json != NULL) {
        return dt_roofline_json(stage, g, json);
    }
    const dt_status st = dt_roofline_text(stage, g, &text);
    dt_print_text(dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

static dt_status print_graph(const dt_stage *stage)
{
    dt_str text = {0};
    dt_plan_print(dt_trainer_plan(stage->trainer), &text);
    const dt_status st = dt_str_status(&text);
    dt_print_text(dt_str_text(&text));
    dt_str_fini(&text);
    return st;
}

/* ---- one phase --------------------------------------------------------------------------------------------------- */

typedef struct dry_plan {
    const dt_dry_run *d;
    dt_json_out *json;          /* NULL: for people */
    dt_run_start start;         /* where the run would begin */
    dt_planned_shapes *planned; /* what the phases before would hand on */
    int64_t n_without_best;
    bool is_printed; /* of the last phase; a plan that does not fit is printed, then rejected */
} dry_plan;

static dt_status plan_phase(dry_plan *p, dt_stage *stage, bool *is_beyond_p)
{
    dt_forecast f;
    p->is_printed = stage->trainer == NULL;
    if (p->is_printed) {
        return DT_FAIL(DT_EPLUGIN, "phase %s created no trainer when it was started", stage->d.phase->desc.id);
    }
    dt_error refused;
    DT_TRY(dt_forecast_create(stage, p->d->max_steps, &f));
    const dt_status st = dt_fit_stage(stage, p->d->max_steps, &f, true, is_beyond_p);
    dt_error_save(&refused, st);
    DT_TRY(st < 0 && !*is_beyond_p ? st : DT_OK);
    const dt_args *a = p->d->args;
    if (a->predict != NULL) {
        DT_TRY(print_roofline(stage, a->predict, p->json));
    } else {
        dt_expected e = {.step_s = NAN, .all_s = NAN, .evaluation_s = NAN, .acts = stage->rollout != NULL};
        if (st == DT_OK) {
            dt_estimate_duration(stage, &f, p->d->max_steps, true, &e);
        }
        DT_TRY(print_plan(p->d->session, stage, &f, &e, p->json));
    }
    p->is_printed = true;
    DT_TRY(a->print_graph != NULL ? print_graph(stage) : DT_OK);
    dt_forecast_warn_disk(&f, stage->d.run_dir);
    return st < 0 ? dt_error_restore(&refused) : st;
}

/* A run evaluates before its first step where a result is named that has to exist. A plan does so where the user names
 * one: the names that phases prefer are taken. */
static dt_status check_results(dry_plan *p, dt_stage *stage, bool is_fresh)
{
    const dt_session *s = p->d->session;
    const char *metric = stage->opts.stop.metric, *best_by = stage->opts.checkpoint.best_by;
    dt_progress unused;
    const bool is_named = metric[0] != '\0' || dt_session_has_best_by(s, stage->d.index);
    const bool is_evaluated = stage->d.phase->ops.phase.evaluate != NULL && stage->opts.training.eval_interval > 0;
    if (!is_named || !is_evaluated || !is_fresh || p->d->args->predict != NULL) {
        return DT_OK;
    }
    DT_TRY(dt_stage_evaluate(stage, &unused));
    DT_TRY(dt_results_check(s, stage, metric, best_by, p->n_without_best));
    const char *best = strncmp(best_by, "min:", 4) == 0 ? best_by + 4 : best_by;
    p->n_without_best += best[0] != '\0' && dt_stage_find_result(stage, best) == NULL;
    return DT_OK;
}

static dt_status set_up_and_plan(dry_plan *p, const dt_initial_weights_desc *first, dt_stage_desc *d,
                                 dt_initial_weights *f, dt_stage **stage_p, bool *is_beyond_p)
{
    DT_TRY(dt_initial_weights_find(first, d->index, f, &d->loaded));
    DT_TRY(dt_stage_create(d, stage_p));
    DT_TRY(dt_stage_start(*stage_p));
    DT_TRY((*stage_p)->trainer != NULL ? dt_initial_weights_load(first, f, *stage_p) : DT_OK);
    const bool is_fresh = (*stage_p)->trainer != NULL && dt_trainer_step_number((*stage_p)->trainer) == 0;
    DT_TRY(plan_phase(p, *stage_p, is_beyond_p));
    DT_TRY(dt_rollout_check_room((*stage_p)->rollout)); /* after the plan was printed, which has its size */
    DT_TRY(check_results(p, *stage_p, is_fresh));
    return dt_planned_shapes_add(p->planned, *stage_p);
}

static dt_status plan_phase_on(dry_plan *p, int64_t index, uint32_t ranks)
{
    dt_session *s = p->d->session;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    dt_comm *comm = NULL;
    dt_stage *stage = NULL;
    dt_initial_weights f = {0};
    bool is_beyond = false;
    p->is_printed = false;
    const bool is_virtual = s->n_processes == 1;
    const uint32_t local = is_virtual || s->n_local > ranks ? ranks : s->n_local;
    DT_TRY(dt_comm_create_planned(ranks, is_virtual ? ranks : 1, local, &comm));
    dt_stage_desc d = dt_session_describe_stage(s, index, comm, &lock);
    d.run_dir = p->d->run_dir;
    const dt_initial_weights_desc first = {.session = s,
                                           .run_dir = p->d->run_dir,
                                           .init_from = p->d->args->init_from,
                                           .start = &p->start,
                                           .planned = p->planned,
                                           .lock = &lock};
    dt_status st = set_up_and_plan(p, &first, &d, &f, &stage, &is_beyond);
    dt_initial_weights_close(&f);
    dt_stage_destroy(stage);
    st = is_beyond || st == DT_ENOMEM ? dt_fit_advise(&d, st) : st;
    dt_comm_destroy(comm);
    return st;
}

/* Of MIN:MAX processes no more are planned than the run continues with: that the phase collects rollouts, and so needs
 * instances, is known once it is created (rank_phase.c). */
static dt_status plan_phase_at(dry_plan *p, int64_t index)
{
    dt_session *s = p->d->session;
    DT_TRY(dt_session_enter_phase(s, index));
    const uint32_t n = dt_session_count_ranks(s, index, false), fewer = dt_session_count_ranks(s, index, true);
    const dt_status st = plan_phase_on(p, index, n);
    if (st != DT_ECONFIG || fewer == n || p->is_printed) {
        return st;
    }
    dt_error_clear();
    return plan_phase_on(p, index, fewer);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static dt_status plan_all_phases(dry_plan *p)
{
    const dt_session *s = p->d->session;
    DT_TRY(p->d->rundir != NULL ? dt_rundir_check_open(p->d->rundir) : DT_OK);
    DT_TRY(dt_run_start_find(s, p->d->resume, true, &p->start));
    DT_TRY(dt_planned_shapes_create(&p->planned));
    dt_status st = DT_OK;
    for (int64_t i = p->start.begin; i < s->last && st == DT_OK; i++) {
        st = plan_phase_at(p, i);
    }
    return st;
}

dt_status dt_dry_run_print(const dt_dry_run *d)
{
    const dt_args *a = d->args;
    dt_str text = {0};
    dt_json_out o = {.s = &text};
    dry_plan p = {.d = d, .json = a->json ? &o : NULL, .is_printed = true};
    dt_error refused;
    if (a->json) {
        dt_json_obj(&o, NULL);
        dt_json_arr(&o, "phases");
    }
    dt_status st = plan_all_phases(&p);
    dt_run_start_fini(&p.start);
    dt_planned_shapes_destroy(p.planned);
    dt_error_save(&refused, st);
    if (!a->json && st == DT_OK && d->rundir != NULL) {
        print_files(d->rundir);
    }
    if (a->json && p.is_printed) {
        dt_json_end(&o, ']');
        if (d->rundir != NULL) {
            write_files_json(d->rundir, &o);
        }
        dt_json_end(&o, '}');
        if (st == DT_OK) {
            st = dt_str_status(&text);
        }
        dt_print_line(dt_str_text(&text));
    }
    dt_str_fini(&text);
    return refused.status < 0 ? dt_error_restore(&refused) : st;
}
