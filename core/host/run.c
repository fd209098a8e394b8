/* SPDX-License-Identifier: Apache-2.0
 *
 * See run.h.
 */
#include <config.h>

#include "host/run.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "host/baselines.h"
#include "host/course.h"
#include "host/event_files.h"
#include "host/forecast.h"
#include "host/memory_watch.h"
#include "host/handover.h"
#include "host/roles.h"
#include "host/signals.h"
#include "host/snapshot.h"
#include "metrics/record.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct run { /* what all ranks share */
    const dt_run_desc *d;
    dt_metrics *metrics;
    dt_screen *screen;
    double start_s;
    pthread_mutex_t create_lock; /* configuration and loader are used by one rank at a time */
    dt_course course;            /* where it begins, in this process or after the last failure */
    uint64_t base_step;          /* steps of finished phases, the same on every rank */
    int64_t phase;               /* that runs */
    bool stands;                 /* the phase is ready to step, or has stepped */
    uint32_t retries;            /* of the phase so far */
    dt_profile_steps profile;
} run;

typedef struct rank {
    run *r;
    dt_comm *comm;
    pthread_t thread;
    dt_stage *stage;
    double last_save_s, rate_s;
    uint64_t rate_samples, last_saved_step;
    uint64_t good_step, evaluated_step; /* of the run: where the last iteration began, where it was evaluated */
    dt_snapshot_held held;              /* of the first rank: besides the arenas, before this iteration */
    double rate;
    dt_training_opts training;
    dt_checkpoint_opts checkpoint;
    dt_stop_opts stop;
    double begin_s;           /* of the phase in this process */
    uint64_t begin_step;      /* the same */
    uint64_t histogram_every; /* epochs, 0: none */
    double from_s, from_part; /* since when the pace is measured, and how much was done then; NAN: not yet */
    uint64_t iterations;      /* the same */
    bool has_stepped;         /* the same: a step was made */
    bool has_evaluated;       /* the same */
    uint64_t epoch;           /* epochs of the phase that are done */
    uint32_t restarts;        /* of workers of this rank's environments, as far as they are known */
    dt_forecast forecast;     /* rank 0 */
    dt_memory_watch watch;
    dt_error error;
} rank;

enum { WANT_STOP = 1u, WANT_SAVE = 2u, WANT_END = 4u };

/* ---- what happens between two iterations ------------------------------------------------------------------------- */

static bool is_first(const rank *k)
{
    return dt_comm_rank(k->comm) == 0;
}

/* Where a phase does not count them, each call is one. */
static uint64_t iterations_done(const rank *k, const dt_progress *p)
{
    return p->iterations > 0 ? p->iterations : k->iterations + 1;
}

static uint64_t global_step(const rank *k)
{
    return k->r->base_step + dt_trainer_step_number(k->stage->trainer);
}

static bool is_late(const run *r)
{
    return r->d->max_time_s > 0 && dt_clock_s() - r->start_s >= r->d->max_time_s;
}

/* Any thread of any rank may ask. */
static bool stops(void *user)
{
    return dt_signals_stop() != 0 || is_late(user) || dt_fault("run.stop");
}

/* Spent on the phase, in earlier processes too. */
static double phase_s(const rank *k)
{
    const run *r = k->r;
    const bool is_here = r->course.resume != NULL && k->stage->d.index == r->course.begin;
    return dt_clock_s() - k->begin_s + (is_here ? (double)r->course.spent_ms / 1e3 : 0);
}

/* Signals, time and the wish to save are known to rank 0 alone; all ranks do the same thing. */
static dt_status agree_wishes(rank *k, const dt_progress *p, uint32_t *want_p)
{
    uint32_t want = 0;
    if (is_first(k)) {
        const dt_checkpoint_opts *c = &k->checkpoint;
        const int64_t save_interval = k->training.save_interval;
        const double now = dt_clock_s();
        const bool steps = c->every_steps > 0 && p->step % (uint64_t)c->every_steps == 0;
        const bool seconds = c->every_seconds > 0 && now - k->last_save_s >= (double)c->every_seconds;
        const bool epochs = p->epoch_end && save_interval > 0 && (p->epoch + 1) % (uint64_t)save_interval == 0;
        want |= stops(k->r) ? WANT_STOP : 0;
        want |= steps || seconds || epochs || dt_signals_save() ? WANT_SAVE : 0;
        want |= k->stop.time > 0 && phase_s(k) >= k->stop.time ? WANT_END : 0;
    }
    DT_TRY(dt_comm_broadcast(k->comm, 0, &want, sizeof(want)));
    *want_p = want;
    return DT_OK;
}

static dt_snapshot_desc describe_snapshot(const rank *k)
{
    const run *r = k->r;
    return (dt_snapshot_desc){.run_dir = dt_rundir_path(r->d->dir),
                              .base_step = r->base_step,
                              .epoch = k->epoch,
                              .phase_ms = (uint64_t)(phase_s(k) * 1e3),
                              .ranks = dt_comm_size(k->comm),
                              .is_evaluated = k->evaluated_step == global_step(k)};
}

static dt_status write_checkpoint(rank *k, const dt_snapshot_desc *d)
{
    DT_TRY(dt_snapshot_save(k->stage, d, NULL));
    k->last_saved_step = global_step(k);
    return dt_snapshot_prune(k->stage, d->run_dir);
}

/* Rank 0 writes; the others wait for its word. A failed save is an error only where nothing else would be left, and
 * where what should be saved is not finite. */
static dt_status save(rank *k, bool phase_end, bool must)
{
    dt_status st = DT_OK;
    const uint64_t step = global_step(k);
    if (is_first(k) && (phase_end || k->last_saved_step != step)) {
        DT_TRACE_N("run", "checkpoint", "step", step);
        dt_snapshot_desc d = describe_snapshot(k);
        d.phase_end = phase_end;
        st = write_checkpoint(k, &d);
        if (st < 0 && !must && st != DT_EDIVERGED) {
            dt_log(DT_LOG_ERROR, "checkpoint of step %llu failed, training goes on: %s", (unsigned long long)step,
                   dt_error_text());
            st = DT_OK;
        }
        k->last_save_s = dt_clock_s();
    }
    return dt_comm_agree(k->comm, st);
}

/* The phase fails with st, which all ranks know. Where nothing was learnt since the last good iteration its state is
 * saved, so that no more is lost than what failed. held: what that iteration left besides the arenas; NULL: the stage
 * as it is. On a device steps are under way that nobody has looked at: there the last checkpoint has to do. */
static dt_status rescue(rank *k, dt_status st, const dt_snapshot_held *held)
{
    const uint64_t step = global_step(k);
    const bool is_news = step > k->r->base_step && step == k->good_step && step != k->last_saved_step;
    if (!is_first(k) || st == DT_EINTERRUPTED || k->stage->d.device_ops != NULL || !is_news ||
        (held != NULL && !held->is_there)) {
        return st;
    }
    dt_error *reason = dt_alloc(sizeof(*reason));
    if (reason == NULL) {
        return st;
    }
    dt_error_take(reason, st);
    dt_snapshot_desc d = describe_snapshot(k);
    d.held = held;
    if (write_checkpoint(k, &d) < 0) {
        dt_log(DT_LOG_WARN, "what was learnt before the failure is not saved: %s", dt_error_text());
    } else {
        dt_log(DT_LOG_WARN, "what was learnt before the failure is saved at step %llu", (unsigned long long)step);
    }
    dt_error_put(reason);
    dt_free(reason);
    return st;
}

/* How much of the phase is done, 0..1, by the rule that will end it first; NAN where nothing is known to. */
static double part_done(const rank *k, const dt_progress *p)
{
    const struct {
        double done, limit;
    } rule[] = {{(double)p->step, (double)p->steps},
                {(double)p->step, (double)k->stop.steps},
                {(double)p->step, (double)k->r->d->max_steps},
                {(double)iterations_done(k, p), (double)k->stop.iterations},
                {phase_s(k), k->stop.time}};
    double part = NAN;
    for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
        part = rule[i].limit > 0 ? fmax(part, fmin(1, rule[i].done / rule[i].limit)) : part; /* fmax passes NAN over */
    }
    return part;
}

static void show(rank *k, const dt_progress *p, bool force)
{
    run *r = k->r;
    const dt_trainer_times t = dt_trainer_times_get(k->stage->trainer);
    const double now = dt_clock_s();
    k->rate_samples += p->samples;
    if (k->rate_s == 0 || now - k->rate_s > 0.5) { /* over half a second it is steady enough to read */
        const double since = k->rate_s > 0 ? k->rate_s : k->begin_s;
        k->rate = now > since ? (double)k->rate_samples / (now - since) : 0;
        k->rate_s = now;
        k->rate_samples = 0;
    }
    const double part = part_done(k, p), made = part - k->from_part;
    const double left = made > 0 ? (1 - part) * (now - k->from_s) / made : -1; /* made may be NAN */
    if (isnan(k->from_part)) { /* resumed: this process knows from here on */
        k->from_part = part;
        k->from_s = now;
    }
    const dt_progress_view v = {.phase = k->stage->d.phase->desc.id,
                                .step = p->step,
                                .steps = p->steps,
                                .epoch = p->epoch,
                                .epochs = p->epochs,
                                .samples_per_s = k->rate,
                                .left_s = left,
                                .loss = p->loss,
                                .grad_norm = p->grad_norm,
                                .learning_rate = p->learning_rate,
                                .data_wait = t.step > 0 ? t.data_wait / t.step : 0,
                                .rss_bytes = dt_rss_bytes(),
                                .loss_scale = dt_trainer_scaler(k->stage->trainer)->scale};
    dt_screen_show(r->screen, &v, force);
    dt_metrics_scalar(r->metrics, "loss", p->loss);
    dt_metrics_scalar(r->metrics, "lr", p->learning_rate);
    dt_metrics_scalar(r->metrics, "grad/norm", p->grad_norm);
    dt_metrics_scalar(r->metrics, "charts/SPS", k->rate);
    dt_metrics_scalar(r->metrics, "time/step", t.step);
    dt_metrics_scalar(r->metrics, "time/data_wait", t.data_wait);
    dt_metrics_scalar(r->metrics, "mem/rss", (double)v.rss_bytes);
    dt_metrics_scalar(r->metrics, "mem/planned", (double)k->forecast.resident);
    dt_metrics_scalar(r->metrics, "mem/arenas", (double)dt_arena_peak_bytes());
    dt_metrics_scalar(r->metrics, "mem/arenas_planned", (double)k->forecast.arenas);
    if (!isnan(part)) {
        dt_metrics_scalar(r->metrics, "progress", part);
    }
}

static dt_status evaluate(rank *k)
{
    dt_progress p;
    DT_TRACE("run", "evaluation");
    DT_TRY(dt_comm_agree(k->comm, dt_stage_evaluate(k->stage, &p)));
    k->evaluated_step = global_step(k);
    if (!is_first(k)) {
        return DT_OK;
    }
    const dt_report *report = NULL;
    const uint32_t n = dt_stage_reports(k->stage, &report);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < report[i].n; j++) {
            char name[128];
            if (report[i].is_list) {
                snprintf(name, sizeof(name), "eval/%s/%u", report[i].key, j + 1);
            } else {
                snprintf(name, sizeof(name), "eval/%s", report[i].key);
            }
            dt_metrics_scalar(k->r->metrics, name, report[i].value[j]);
        }
    }
    if (dt_report_pictures(k->stage, dt_rundir_path(k->r->d->dir)) < 0) {
        dt_log(DT_LOG_WARN, "no pictures of this evaluation: %s", dt_error_text());
        dt_error_clear();
    }
    dt_str table = {0};
    dt_report_text(k->stage, &table);
    const dt_status st = dt_str_status(&table);
    dt_event_files_evaluation(k->stage, k->r->metrics, dt_trainer_step_number(k->stage->trainer), dt_str_text(&table));
    char *rest = table.text, *line;
    while (st == DT_OK && (line = strsep(&rest, "\n")) != NULL && line[0] != '\0') {
        dt_log(DT_LOG_INFO, "%s", line);
    }
    dt_str_fini(&table);
    return st;
}

/* Every so many epochs, and when the phase ends, by whatever rule. */
static bool evaluation_due(const rank *k, const dt_progress *p, bool ends)
{
    const int64_t every = k->training.eval_interval;
    return k->stage->d.phase->ops.phase.evaluate != NULL && every > 0 &&
           (ends || (p->epoch_end && (p->epoch + 1) % (uint64_t)every == 0));
}

/* The number that a key of the configuration names. Errors: DT_ECONFIG with those that there are. */
static dt_status find_result(const rank *k, const char *option, const char *name, double *out)
{
    const double *value = dt_stage_report(k->stage, name);
    if (value == NULL) {
        dt_str known = {0};
        dt_stage_report_names(k->stage, &known);
        const dt_status st = DT_FAIL(DT_ECONFIG, "%s = \"%s\" is no result of the evaluation of %s; it reports %s",
                                     option, name, k->stage->d.phase->desc.id, dt_str_text(&known));
        dt_str_fini(&known);
        return st;
    }
    *out = *value;
    return DT_OK;
}

/* Rank 0 has the results; met_p: whether they end the phase. */
static dt_status meet_target(rank *k, bool *met_p)
{
    const dt_stop_opts *o = &k->stop;
    double value = NAN;
    uint32_t met = 0;
    if (o->metric[0] == '\0') {
        return DT_OK;
    }
    DT_TRY(dt_comm_agree(k->comm, is_first(k) ? find_result(k, "stop.metric", o->metric, &value) : DT_OK));
    met |= o->has_above && value >= o->above;
    met |= o->has_below && value <= o->below;
    DT_TRY(dt_comm_broadcast(k->comm, 0, &met, sizeof(met)));
    *met_p = met != 0;
    if (met != 0 && is_first(k)) {
        dt_log(DT_LOG_INFO, "%s is %g: the phase ends", o->metric, value);
    }
    return DT_OK;
}

/* A name that a phase does not report marks nothing as its best. Said once: other phases may report it. */
static void check_best(rank *k)
{
    const char *name =
        strncmp(k->checkpoint.best_by, "min:", 4) == 0 ? k->checkpoint.best_by + 4 : k->checkpoint.best_by;
    double value = 0;
    if (is_first(k) && name[0] != '\0' && !k->has_evaluated && find_result(k, "checkpoint.best_by", name, &value) < 0) {
        dt_log(DT_LOG_WARN, "%s", dt_error_text());
        dt_error_clear();
    }
    k->has_evaluated = true;
}

/* met_p: whether the result ends the phase. */
static dt_status evaluate_and_judge(rank *k, bool *met_p)
{
    DT_TRY(dt_comm_agree(k->comm, evaluate(k)));
    check_best(k);
    return meet_target(k, met_p);
}

/* Only what is evaluated can reach a target. */
static dt_status check_target(const rank *k)
{
    const dt_phase_ops *ops = &k->stage->d.phase->ops.phase;
    if (k->stop.metric[0] == '\0' || (ops->evaluate != NULL && k->training.eval_interval > 0)) {
        return DT_OK;
    }
    return DT_FAIL(DT_ECONFIG, "stop.metric = \"%s\": %s", k->stop.metric,
                   ops->evaluate == NULL ? "the phase has no evaluation"
                                         : "training.eval_interval = 0 evaluates never; set it to epochs");
}

/* The first epoch, every so many, and the last one. */
static void show_models(const rank *k, const dt_progress *p)
{
    const uint64_t every = k->histogram_every;
    if (every > 0 && p->epoch_end && (p->epoch == 0 || (p->epoch + 1) % every == 0 || p->step == p->steps)) {
        dt_event_files_models(k->stage, k->r->metrics, p->step);
    }
}

/* The phase's stop group; epochs are the trainer's business, time is rank 0's. */
static bool stop_rule_met(rank *k, const dt_progress *p)
{
    k->iterations = iterations_done(k, p);
    return (k->stop.steps > 0 && p->step >= (uint64_t)k->stop.steps) ||
           (k->stop.iterations > 0 && k->iterations >= (uint64_t)k->stop.iterations);
}

/* Workers of environments that were lost on any rank since the last call, in what began at `step`. */
static dt_status note_lost_workers(rank *k, uint64_t step)
{
    const uint32_t restarts = atomic_load(&k->stage->env.n_restarts), ranks = dt_comm_size(k->comm);
    uint32_t lost = restarts - k->restarts;
    k->restarts = restarts;
    if (!k->stage->env.in_process) {
        return DT_OK;
    }
    if (ranks > 1) {
        uint32_t *all = dt_alloc_n(ranks, sizeof(*all));
        dt_status st = dt_comm_agree(k->comm, all != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory"));
        st = st == DT_OK ? dt_comm_all_gather(k->comm, &lost, sizeof(lost), all) : st;
        for (uint32_t i = 0; i < ranks && st == DT_OK; i++) {
            lost |= all[i];
        }
        dt_free(all);
        DT_TRY(st);
    }
    if (lost > 0 && is_first(k)) {
        dt_rundir_mark(k->r->d->dir, step);
        return dt_run_note(k->r->d->session, k->r->d->dir, -1);
    }
    return DT_OK;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* How long a start takes, with all that a first step has to make. */
static void tell_first_step(rank *k)
{
    if (!k->has_stepped) {
        dt_log(DT_LOG_INFO, "first step done after %.2f s", dt_clock_s() - k->r->start_s);
        k->has_stepped = true;
    }
}

/* Tests make it fail as a plugin does, or diverge. */
static dt_status iterate(rank *k, dt_progress *p)
{
    const uint64_t before = dt_trainer_step_number(k->stage->trainer);
    if (is_first(k)) {
        dt_profile_steps_before(&k->r->profile, before);
        dt_snapshot_hold(k->stage, &k->held);
    }
    if (dt_fault("run.iterate")) {
        return DT_FAIL(DT_EPLUGIN, "the iteration failed on purpose");
    }
    if (dt_fault("run.diverge")) {
        return DT_FAIL(DT_EDIVERGED, "the iteration diverged on purpose");
    }
    DT_TRACE_N("run", "iteration", "first step", before + 1);
    return dt_stage_iterate(k->stage, p);
}

/* After all that an iteration brings with it: evaluation, records, checkpoint. */
static void end_iteration(rank *k, uint64_t before)
{
    const uint64_t now = global_step(k);
    if (is_first(k)) {
        dt_profile_steps_after(&k->r->profile, now - k->r->base_step, now - before);
    }
    dt_memory_watch_look(&k->watch, dt_clock_s(), k->stage->trainer);
}

static dt_status rank_loop(rank *k, uint64_t stop_step)
{
    run *r = k->r;
    for (;;) {
        dt_progress p;
        const uint64_t before = k->good_step = global_step(k);
        const dt_status st = iterate(k, &p), worst = dt_comm_agree(k->comm, st);
        if (worst < 0) {
            return rescue(k, worst, &k->held);
        }
        DT_TRY(note_lost_workers(k, before));
        if (st == DT_DONE && p.step == 0) {
            return DT_DONE; /* nothing was left to do */
        }
        k->epoch = p.epoch + p.epoch_end;
        k->good_step = global_step(k);
        uint32_t want = 0;
        DT_TRY(agree_wishes(k, &p, &want));
        bool is_met = (want & WANT_END) != 0 || stop_rule_met(k, &p);
        const bool ends = st == DT_DONE || (p.steps > 0 && p.step >= p.steps) || is_met;
        if (evaluation_due(k, &p, ends)) {
            const dt_status judged = evaluate_and_judge(k, &is_met);
            if (judged < 0) {
                return rescue(k, judged, NULL);
            }
            want |= k->checkpoint.best_by[0] != '\0' ? WANT_SAVE : 0;
        }
        if (is_first(k)) {
            tell_first_step(k);
            show(k, &p, p.step == p.steps);
            show_models(k, &p);
            DT_TRY(dt_metrics_flush(r->metrics, k->stage->d.phase->desc.id, p.step, dt_clock_s() - r->start_s));
        }
        if (ends || is_met) {
            return DT_DONE;
        }
        if (stop_step > 0 && p.step >= stop_step) {
            return DT_OK;
        }
        if ((want & (WANT_SAVE | WANT_STOP)) != 0) {
            DT_TRY(save(k, false, (want & WANT_STOP) != 0));
        }
        if ((want & WANT_STOP) != 0) {
            return DT_EINTERRUPTED;
        }
        end_iteration(k, before);
    }
}

/* ---- one phase on one rank --------------------------------------------------------------------------------------- */

static dt_stage_desc describe_stage(const rank *k, int64_t index, uint32_t loaded)
{
    run *r = k->r;
    const dt_session *s = r->d->session;
    const uint32_t ranks = dt_comm_size(k->comm);
    return (dt_stage_desc){.config = s->config,
                           .loader = s->loader,
                           .comm = k->comm,
                           .metrics = is_first(k) ? r->metrics : NULL,
                           .phase = s->phase[index],
                           .demo_store = s->demo_store,
                           .index = index,
                           .seed = s->seed,
                           .threads = s->threads > ranks ? s->threads / ranks : 1,
                           .loaded = loaded,
                           .device_ops = s->device_ops,
                           .device = s->device,
                           .stops = stops,
                           .stops_user = r,
                           .config_lock = &r->create_lock};
}

static dt_status create_stage(rank *k, int64_t index, uint32_t loaded)
{
    run *r = k->r;
    const dt_session *s = r->d->session;
    const dt_stage_desc d = describe_stage(k, index, loaded);
    pthread_mutex_lock(&r->create_lock);
    dt_status st = dt_stage_create(&d, &k->stage);
    if (st == DT_OK) {
        st = dt_config_training(s->config, index, &k->training);
    }
    if (st == DT_OK) {
        st = dt_config_checkpoint(s->config, index, &k->checkpoint);
    }
    if (st == DT_OK) {
        dt_phase_opts phase;
        st = dt_config_phase(s->config, index, &phase, &k->stop);
    }
    dt_memory_opts memory;
    if (st == DT_OK) {
        st = dt_config_memory(s->config, index, &memory);
    }
    if (st == DT_OK) {
        dt_memory_watch_init(&k->watch, &memory, is_first(k));
    }
    pthread_mutex_unlock(&r->create_lock);
    return st;
}

static bool is_resumed(const rank *k, int64_t index)
{
    return k->r->course.resume != NULL && index == k->r->course.begin;
}

typedef struct weights {      /* where a phase's first ones come from */
    dt_handover *from;        /* NULL: random ones, and a resumed phase */
    uint32_t want;            /* DT_HANDOVER_* */
    const char *const *fresh; /* roles that do not come from there */
} weights;

/* A phase goes on from those before it where it says nothing else; then they may have nothing in common. */
static dt_status open_weights(const rank *k, int64_t index, weights *w)
{
    const run *r = k->r;
    dt_config *c = r->d->session->config;
    dt_phase_opts p;
    dt_stop_opts stop;
    DT_TRY(dt_config_phase(c, index, &p, &stop));
    *w = (weights){.want = DT_HANDOVER_SOME, .fresh = p.fresh};
    if (r->d->init_from != NULL && index == r->d->session->first) {
        return dt_handover_open(r->d->init_from, NULL, &w->from);
    }
    if (strcmp(p.init, "random") == 0) {
        return DT_OK;
    }
    if (p.init[0] != '\0' && strcmp(p.init, "previous") != 0) {
        return dt_handover_open(p.init, NULL, &w->from);
    }
    w->want = p.init[0] == '\0' ? DT_HANDOVER_ANY : DT_HANDOVER_SOME;
    DT_TRY(dt_handover_previous(dt_rundir_path(r->d->dir), c, index, &w->from));
    if (dt_handover_is_empty(w->from) && p.init[0] != '\0') {
        return DT_FAIL(DT_ECONFIG, "init = \"previous\" in the first phase of this run: nothing is before it; use "
                                   "\"random\" or a checkpoint");
    }
    return DT_OK;
}

/* Before a phase is made: what it will begin with, and which roles that holds. */
static dt_status find_weights(rank *k, int64_t index, weights *w, uint32_t *roles_p)
{
    *w = (weights){0};
    *roles_p = 0;
    if (is_resumed(k, index)) {
        return dt_snapshot_loaded(k->r->course.resume, roles_p);
    }
    pthread_mutex_lock(&k->r->create_lock);
    const dt_status st = open_weights(k, index, w);
    pthread_mutex_unlock(&k->r->create_lock);
    *roles_p = dt_handover_roles(w->from);
    for (const char *const *role = w->fresh; role != NULL && *role != NULL; role++) {
        const int bit = dt_role_find(*role, strlen(*role));
        *roles_p &= bit >= 0 ? ~(1u << bit) : UINT32_MAX;
    }
    return st;
}

static dt_status initialise(rank *k, int64_t index, const weights *w)
{
    if (is_resumed(k, index)) {
        return dt_snapshot_load(k->stage, k->r->course.resume);
    }
    return dt_handover_is_empty(w->from) ? DT_OK : dt_handover_load(w->from, k->stage, w->fresh, w->want);
}

static dt_status announce(rank *k)
{
    const dt_trainer *t = k->stage->trainer;
    if (!is_first(k)) {
        return DT_OK;
    }
    for (uint32_t i = 0; i < k->stage->n_models; i++) {
        dt_log(DT_LOG_INFO, "%-10s %s", k->stage->model[i].role, k->stage->model[i].comp->desc.id);
    }
    dt_log(DT_LOG_INFO, "%lld parameters (%lld trained), %llu steps; %u worker%s on %u rank%s, %s",
           (long long)k->stage->params.total, (long long)k->stage->params.trained_count,
           (unsigned long long)dt_trainer_steps(t), k->stage->d.threads, k->stage->d.threads == 1 ? "" : "s",
           dt_comm_size(k->comm), dt_comm_size(k->comm) == 1 ? "" : "s", dt_cpu_isa());
    DT_TRY(dt_forecast_make(k->stage, &k->forecast));
    dt_forecast_log(&k->forecast);
    dt_arena_peak_reset();
    if (dt_trainer_is_half(t)) {
        dt_log(DT_LOG_INFO, "mixed precision: products in half%s%s, loss scale %g, masters and sums in fp32",
               k->r->d->session->device_ops == NULL ? " by " : "",
               k->r->d->session->device_ops == NULL ? dt_cpu_bf16_isa() : "", dt_trainer_scaler(t)->scale);
    }
    return DT_OK;
}

/* Asked to stop while experience was collected: the round is left out, a resume collects it again. Before the first
 * step of a later phase the end of the one before says the same. */
static dt_status save_before_round(rank *k)
{
    const bool is_saved = k->r->base_step > 0 && global_step(k) == k->r->base_step;
    return is_saved ? DT_OK : save(k, false, true);
}

static dt_status tell_progress(const rank *k, int64_t index)
{
    const run *r = k->r;
    uint64_t steps = dt_trainer_steps(k->stage->trainer);
    const uint64_t limit[] = {(uint64_t)k->stop.steps, r->d->max_steps};
    for (size_t i = 0; i < sizeof(limit) / sizeof(limit[0]); i++) {
        steps = limit[i] > 0 && (steps == 0 || limit[i] < steps) ? limit[i] : steps;
    }
    const dt_rundir_phase p = {.id = k->stage->d.phase->desc.id,
                               .index = index - r->d->session->first,
                               .n_phases = r->d->session->last - r->d->session->first,
                               .base_step = r->base_step,
                               .steps = steps,
                               .iterations = (uint64_t)k->stop.iterations,
                               .time_s = k->stop.time,
                               .steps_per_epoch = dt_trainer_steps_per_epoch(k->stage->trainer)};
    return dt_rundir_write_progress(r->d->dir, &p);
}

static dt_status begin_event_files(rank *k, int64_t index, uint64_t begin)
{
    run *r = k->r;
    dt_metrics_opts o;
    const dt_event_files_desc d = {.run_dir = dt_rundir_path(r->d->dir),
                                   .config = r->d->session->config,
                                   .stage = k->stage,
                                   .first_step = begin + 1};
    pthread_mutex_lock(&r->create_lock);
    const dt_status st = dt_config_metrics(r->d->session->config, &o);
    if (st == DT_OK && o.tensorboard) {
        dt_event_files_begin(&d, r->metrics);
    }
    k->histogram_every = st == DT_OK ? (uint64_t)o.histogram_every : 0;
    pthread_mutex_unlock(&r->create_lock);
    return st;
}

/* The phase's instance, started and with its first weights or those it stopped with. */
static dt_status set_up(rank *k, int64_t index)
{
    weights w;
    uint32_t loaded = 0;
    dt_status st = dt_comm_agree(k->comm, find_weights(k, index, &w, &loaded));
    st = st == DT_OK ? dt_comm_agree(k->comm, create_stage(k, index, loaded)) : st;
    st = st == DT_OK ? check_target(k) : st;
    st = st == DT_OK ? dt_comm_agree(k->comm, dt_stage_start(k->stage)) : st;
    st = st == DT_OK ? dt_comm_agree(k->comm, initialise(k, index, &w)) : st;
    dt_handover_close(w.from);
    return st;
}

/* What the run did behind this step, in a course that it leaves now, does not count any more. */
static dt_status rewind_run(rank *k, uint64_t begin)
{
    run *r = k->r;
    uint32_t n = 0;
    dt_rundir_rewind(r->d->dir, r->base_step + begin);
    DT_TRY(dt_ckpt_supersede(dt_rundir_path(r->d->dir), r->base_step + begin, &n));
    if (n > 0) {
        dt_log(DT_LOG_WARN,
               "%u checkpoint%s behind step %llu moved to checkpoints/superseded: the run takes another course", n,
               n == 1 ? "" : "s", (unsigned long long)(r->base_step + begin));
    }
    return DT_OK;
}

/* Phases of the same plugin before this one. */
static uint32_t namesakes(const run *r, int64_t index)
{
    uint32_t n = 0;
    for (int64_t i = 0; i < index; i++) {
        n += r->d->session->phase[i] == r->d->session->phase[index];
    }
    return n;
}

static dt_status run_phase(rank *k, int64_t index)
{
    run *r = k->r;
    if (is_first(k)) {
        r->stands = false;
        (void)dt_fault("run.begin"); /* tests kill here */
    }
    DT_TRY(set_up(k, index));
    if (k->stage->trainer == NULL) {
        return DT_FAIL(DT_EPLUGIN, "phase %s made no trainer when it was started", k->stage->d.phase->desc.id);
    }
    DT_TRY(announce(k));
    const uint64_t begin = dt_trainer_step_number(k->stage->trainer);
    if (is_first(k)) {
        DT_TRY(rewind_run(k, begin));
        if (!*r->d->begun_p) { /* a resume that was refused before this line leaves the run as it was */
            DT_TRY(dt_run_record(r->d->session, r->d->dir));
            *r->d->begun_p = true;
        }
        DT_TRY(tell_progress(k, index));
        DT_TRY(dt_metrics_rewind(r->metrics, k->stage->d.phase->desc.id, namesakes(r, index), begin));
        DT_TRY(begin_event_files(k, index, begin));
    }
    if (is_first(k)) {
        r->retries = index == r->phase ? r->retries : 0;
        r->phase = index;
        r->stands = true;
    }
    k->last_save_s = k->begin_s = k->from_s = dt_clock_s();
    k->from_part = begin > 0 ? NAN : 0;
    k->begin_step = begin;
    k->has_stepped = k->has_evaluated = false;
    k->epoch = begin / dt_trainer_steps_per_epoch(k->stage->trainer);
    k->rate_s = k->rate = 0;
    k->restarts = 0;
    k->rate_samples = 0;
    k->iterations = begin; /* where a phase does not count them, each is one step of the trainer */
    k->last_saved_step = begin > 0 ? global_step(k) : UINT64_MAX;
    k->evaluated_step = UINT64_MAX;
    /* a resumed run may have all the steps it was asked for */
    const uint64_t most = r->d->max_steps, steps = dt_trainer_steps(k->stage->trainer);
    const bool is_there = most > 0 && begin >= most && (steps == 0 || begin < steps);
    const bool is_over = k->stop.steps > 0 && begin >= (uint64_t)k->stop.steps;
    const dt_status st = is_over ? DT_DONE : is_there ? DT_OK : rank_loop(k, most);
    if (is_first(k) && st != DT_OK && st != DT_EINTERRUPTED) {
        dt_error reason;
        dt_error_take(&reason, st);
        dt_event_files_end(r->metrics, st == DT_DONE);
        dt_error_put(&reason);
    }
    if (st >= 0) {
        DT_TRY(save(k, st == DT_DONE, true));
        (void)(is_first(k) && dt_fault("run.end"));
    } else if (st == DT_EINTERRUPTED) {
        DT_TRY(save_before_round(k));
    }
    return st;
}

/* The policy of a phase that is over beside controllers that learn nothing. */
static dt_status compare(rank *k, int64_t index, const dt_policy_result *policy)
{
    const dt_stage_desc d = describe_stage(k, index, 0);
    return policy == NULL ? DT_OK : dt_baselines_run(&d, policy, is_first(k) ? dt_rundir_path(k->r->d->dir) : NULL);
}

/* What a phase held is given back before the next one begins: arenas, and what the heap keeps for later. */
static void tell_release(const rank *k, int64_t index)
{
    const dt_session *s = k->r->d->session;
    const uint64_t arenas = dt_arena_live_bytes();
    uint64_t free_bytes = 0, total = 0;
    char device[64] = "";
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
    if (s->device != NULL && s->device_ops->memory(s->device, &free_bytes, &total) == DT_OK) {
        snprintf(device, sizeof(device), ", device %.1f of %.1f MB free", (double)free_bytes / 1e6,
                 (double)total / 1e6);
    }
    dt_log(arenas > 0 ? DT_LOG_WARN : DT_LOG_INFO, "phase %lld (%s) is released: arenas %.1f MB, resident %.1f MB%s",
           (long long)index + 1, s->phase[index]->desc.id, (double)arenas / 1e6, (double)dt_rss_bytes() / 1e6, device);
}

static dt_status run_phases(rank *k)
{
    run *r = k->r;
    const dt_session *s = r->d->session;
    for (int64_t i = r->course.begin; i < s->last; i++) {
        DT_TRY(dt_comm_agree(k->comm, is_first(k) ? dt_session_enter(r->d->session, i) : DT_OK));
        const dt_status st = run_phase(k, i);
        const uint64_t steps = st >= 0 ? dt_trainer_step_number(k->stage->trainer) : 0;
        dt_policy_result *policy = NULL;
        const dt_status kept = st == DT_DONE ? dt_policy_result_take(k->stage, &policy) : DT_OK;
        dt_stage_destroy(k->stage);
        dt_snapshot_held_fini(&k->held);
        k->stage = NULL;
        const dt_status compared = kept == DT_OK ? compare(k, i, policy) : kept;
        dt_policy_result_free(policy);
        DT_TRY(st);
        DT_TRY(compared);
        if (st != DT_DONE) {
            return DT_OK; /* --max-steps */
        }
        DT_TRY(dt_comm_barrier(k->comm));
        if (is_first(k)) {
            r->base_step += steps;
            tell_release(k, i);
        }
        DT_TRY(dt_comm_barrier(k->comm));
    }
    return DT_OK;
}

static void *rank_main(void *arg)
{
    rank *k = arg;
    char prefix[32] = "";
    dt_trace_thread("rank", dt_comm_rank(k->comm));
    if (dt_comm_size(k->comm) > 1) {
        snprintf(prefix, sizeof(prefix), "rank %u", dt_comm_rank(k->comm));
        dt_log_prefix_set(prefix);
    }
    const dt_status st = run_phases(k);
    dt_error_take(&k->error, st);
    if (st < 0) {
        dt_stage_destroy(k->stage);
        k->stage = NULL;
        if (st != DT_EINTERRUPTED) {
            dt_comm_abandon(k->comm, dt_error_text());
        }
    }
    return NULL;
}

/* ---- all ranks --------------------------------------------------------------------------------------------------- */

static dt_status make_comms(uint32_t ranks, dt_comm **comm)
{
    enum { COLLECTIVE_TIMEOUT_S = 120 };
    return ranks == 1 ? dt_comm_null(&comm[0]) : dt_comm_sim(ranks, COLLECTIVE_TIMEOUT_S, comm);
}

static dt_status run_ranks(run *r)
{
    const uint32_t n = r->d->session->ranks;
    rank *k = dt_alloc_n(n, sizeof(*k));
    dt_comm **comm = dt_alloc_n(n, sizeof(*comm));
    dt_status st =
        k != NULL && comm != NULL ? make_comms(n, comm) : DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", n);
    uint32_t started = 1;
    if (st == DT_OK) {
        for (uint32_t i = 0; i < n; i++) {
            k[i].r = r;
            k[i].comm = comm[i];
        }
        for (; started < n && st == DT_OK; started++) {
            if (pthread_create(&k[started].thread, NULL, rank_main, &k[started]) != 0) {
                st = DT_FAIL(DT_EUNSUPPORTED, "the system refused to start virtual rank %u of %u", started, n);
                dt_comm_abandon(comm[0], "not all ranks could be started");
                break;
            }
        }
        if (st == DT_OK) {
            rank_main(&k[0]);
        }
        for (uint32_t i = 1; i < started; i++) {
            pthread_join(k[i].thread, NULL);
        }
        dt_log_prefix_set("");
        /* the rank that knows why, before those that only heard of it */
        for (uint32_t i = 0; i < n && st == DT_OK; i++) {
            if (k[i].error.status < 0 && k[i].error.status != DT_EPEER) {
                st = dt_error_put(&k[i].error);
            }
        }
        for (uint32_t i = 0; i < n && st == DT_OK; i++) {
            if (k[i].error.status < 0) {
                st = dt_error_put(&k[i].error);
            }
        }
    }
    for (uint32_t i = 0; comm != NULL && i < n; i++) {
        dt_comm_destroy(comm[i]);
    }
    dt_free(comm);
    dt_free(k);
    return st;
}

static dt_status set_course(run *r)
{
    const dt_run_desc *d = r->d;
    if (d->resume == NULL) {
        dt_course_fresh(d->session, &r->course);
        return DT_OK;
    }
    const dt_status st = dt_course_resume(d->session, d->resume, &r->course);
    /* exit code 2; none that is valid is DT_EDATA, 4 */
    return st == DT_ENOTFOUND ? DT_CONTEXT(DT_ECONFIG, "--resume") : st;
}

/* Back to the newest checkpoint of the run; without one, to where it began. */
static dt_status go_back(run *r)
{
    dt_course_fini(&r->course);
    const dt_status st = dt_course_resume(r->d->session, dt_rundir_path(r->d->dir), &r->course);
    return st == DT_ENOTFOUND ? set_course(r) : st;
}

/* May the phase that failed with st be tried again? */
static bool is_worth_it(run *r, dt_status st, uint32_t *retries_p)
{
    dt_training_opts o;
    if (!r->stands || !dt_course_may_retry(st) || dt_signals_stop() != 0) {
        return false;
    }
    dt_error *reason = dt_alloc(sizeof(*reason));
    if (reason == NULL) {
        return false;
    }
    dt_error_take(reason, st);
    *retries_p = dt_config_training(r->d->session->config, r->phase, &o) == DT_OK ? (uint32_t)o.retries : 0;
    dt_error_put(reason);
    dt_free(reason);
    return r->retries < *retries_p;
}

/* A phase that fails goes on from the run's last checkpoint, as often as training.retries allows. */
static dt_status run_with_retries(run *r)
{
    for (;;) {
        uint32_t retries = 0;
        r->base_step = r->course.base_step;
        r->stands = false;
        const dt_status st = run_ranks(r);
        if (st >= 0 || !is_worth_it(r, st, &retries)) {
            if (st < 0 && r->retries > 0) {
                dt_log(DT_LOG_WARN, "phase %lld (%s) failed %u times, the run ends", (long long)r->phase + 1,
                       r->d->session->phase[r->phase]->desc.id, r->retries + 1);
            }
            return st;
        }
        r->retries++;
        dt_log(DT_LOG_WARN, "phase %lld (%s) failed and goes on from the last checkpoint, retry %u of %u: %s",
               (long long)r->phase + 1, r->d->session->phase[r->phase]->desc.id, r->retries, retries, dt_error_text());
        dt_error_clear();
        DT_TRY(go_back(r));
    }
}

dt_status dt_run_record(const dt_session *s, dt_rundir *dir)
{
    DT_TRY(dt_rundir_write_config(dir, s->config));
    return dt_run_note(s, dir, -1);
}

dt_status dt_run_note(const dt_session *s, dt_rundir *dir, int exit_code)
{
    return dt_rundir_write_meta(dir, s->loader, (int64_t)s->seed, s->threads, s->ranks, s->device_text, exit_code);
}

dt_status dt_run(const dt_run_desc *d)
{
    run r = {.d = d, .start_s = dt_clock_s(), .profile = d->profile};
    r.profile.run_dir = dt_rundir_path(d->dir);
    dt_str path = {0};
    pthread_mutex_init(&r.create_lock, NULL);
    dt_str_addf(&path, "%s/metrics.jsonl", dt_rundir_path(d->dir));
    dt_status st = dt_str_status(&path);
    if (st == DT_OK) {
        st = dt_screen_open(d->quiet, &r.screen);
    }
    if (st == DT_OK) {
        st = dt_metrics_open(dt_str_text(&path), &r.metrics);
    }
    if (st == DT_OK) {
        st = set_course(&r);
    }
    if (st == DT_OK) {
        dt_error reason;
        dt_error_take(&reason, run_with_retries(&r));
        dt_profile_steps_end(&r.profile);
        dt_trace_fini();
        st = dt_error_put(&reason);
    }
    dt_course_fini(&r.course);
    dt_metrics_close(r.metrics);
    dt_screen_close(r.screen);
    dt_str_fini(&path);
    pthread_mutex_destroy(&r.create_lock);
    return st;
}
