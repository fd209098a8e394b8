/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of a phase; see rank.h.
 */
#include <config.h>

#include "run/rank.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mapping.h"
#include "base/mem.h"
#include "base/trace.h"
#include "base/signals.h"

static const double MAPPING_LOOK_S = 0.25; /* how often mapped files are compared with what they were */

enum { WANT_STOP = 1u, WANT_SAVE = 2u, WANT_END = 4u, WANT_GRADIENT = 8u };

/* any_p: what any rank set in its word. */
static dt_status agree_or(dt_rank *k, const dt_rank_word *mine, uint32_t *any_p)
{
    DT_TRY(dt_comm_all_gather(k->comm, mine, sizeof(*mine), k->words));
    *any_p = 0;
    for (uint32_t i = 0; i < dt_comm_size(k->comm); i++) {
        *any_p |= k->words[i].want;
    }
    return DT_OK;
}

/* Signals reach any process; time and checkpoints that are due are rank 0's to know. All ranks do the same thing. */
static dt_status agree_wishes(dt_rank *k, const dt_progress *p, uint32_t *want_p)
{
    uint32_t want = 0;
    if (k->leads) {
        want |= dt_fault("run.stop") || dt_run_stops(k->r) ? WANT_STOP : 0;
        want |= dt_signals_save() ? WANT_SAVE : 0;
    }
    if (dt_rank_is_first(k)) {
        const dt_checkpoint_opts *c = &k->checkpoint;
        const int64_t save_interval = k->training.save_interval;
        const double now = dt_clock_s();
        const bool steps = c->every_steps > 0 && p->step % (uint64_t)c->every_steps == 0;
        const bool seconds = c->every_seconds > 0 && now - k->last_save_s >= (double)c->every_seconds;
        const bool epochs = p->epoch_end && save_interval > 0 && (p->epoch + 1) % (uint64_t)save_interval == 0;
        const bool due = steps || seconds || epochs || k->n_failed_saves > 0;
        want |= due && (k->n_failed_saves == 0 || now >= k->save_again_s) ? WANT_SAVE : 0;
        want |= k->stop.time > 0 && dt_rank_phase_s(k) >= k->stop.time ? WANT_END : 0;
        want |= dt_rank_shows_models(k, p) ? WANT_GRADIENT : 0;
    }
    const dt_rank_word mine = dt_rank_load_take(k, want);
    DT_TRY(agree_or(k, &mine, want_p));
    if (dt_rank_is_first(k) && k->r->d->processes != NULL) {
        dt_rank_load_show(k);
    }
    return DT_OK;
}

/* The phase's stop group; epochs are the trainer's business, time is rank 0's. */
static bool stop_rule_met(dt_rank *k, const dt_progress *p)
{
    k->iterations = dt_rank_iterations(k, p);
    return (k->stop.steps > 0 && p->step >= (uint64_t)k->stop.steps) ||
           (k->stop.iterations > 0 && k->iterations >= (uint64_t)k->stop.iterations);
}

/* Workers of environments that were lost on any rank since the last call, in what began at `step`. */
static dt_status note_lost_workers(dt_rank *k, uint64_t step)
{
    const uint32_t restarts = atomic_load(&k->stage->env.n_restarts);
    uint32_t lost = restarts - k->restarts;
    k->restarts = restarts;
    if (!k->stage->env.in_process) {
        return DT_OK;
    }
    const dt_rank_word mine = {.want = lost};
    DT_TRY(agree_or(k, &mine, &lost));
    if (lost > 0 && dt_rank_is_first(k)) {
        dt_rundir_mark(k->r->d->dir, step);
        dt_run_note_or_warn(k->r->d->session, k->r->d->dir, -1);
    }
    return DT_OK;
}

/* Tests make it fail as a plugin does, or diverge. */
static dt_status iterate(dt_rank *k, dt_progress *p)
{
    const uint64_t before = dt_trainer_step_number(k->stage->trainer);
    k->first_s = k->has_stepped ? k->first_s : dt_clock_s();
    if (k->leads) {
        dt_profile_steps_before(&k->r->profile, before);
    }
    if (dt_rank_is_first(k)) {
        dt_snapshot_back_up(k->stage, &k->backup);
    }
    if (dt_fault("run.iterate")) {
        return DT_FAIL(DT_EPLUGIN, "the iteration failed on purpose");
    }
    if (dt_fault("run.diverge")) {
        return DT_FAIL(DT_EDIVERGED, "the iteration diverged on purpose");
    }
    DT_TRACE_N("run", "iteration", "first step", before + 1);
    const dt_status st = dt_stage_iterate(k->stage, p);
    const dt_status lost = dt_mapping_verdict(st < 0 ? 0 : MAPPING_LOOK_S); /* it explains what came of it */
    return lost < 0 ? lost : st;
}

/* Asked to stop during an evaluation: the state is saved, and that the evaluation is pending. */
static dt_status leave_owing(dt_rank *k, const dt_progress *p, bool ends)
{
    k->pending = ends ? DT_PENDING_END : DT_PENDING_EVALUATION;
    if (dt_rank_is_first(k)) {
        dt_rank_show(k, p, p->step == p->steps);
        DT_TRY(dt_metrics_flush(k->r->metrics, k->stage->d.phase->desc.id, p->step, dt_clock_s() - k->r->start_s));
    }
    DT_TRY(dt_rank_save(k, false, true));
    return DT_EINTERRUPTED;
}

dt_status dt_rank_settle(dt_rank *k)
{
    const bool ends = k->pending == DT_PENDING_END;
    bool is_met = false;
    k->good_step = dt_rank_global_step(k);
    const dt_status judged = dt_rank_evaluate(k, &is_met);
    if (judged < 0) {
        return judged == DT_EINTERRUPTED ? judged : dt_rank_rescue(k, judged, NULL);
    }
    k->pending = DT_PENDING_NONE;
    if (dt_rank_is_first(k)) {
        DT_TRY(dt_metrics_flush(k->r->metrics, k->stage->d.phase->desc.id, dt_trainer_step_number(k->stage->trainer),
                                dt_clock_s() - k->r->start_s));
    }
    if (ends || is_met) {
        return DT_DONE;
    }
    k->last_saved_step = UINT64_MAX; /* the checkpoint of this step says that it is pending */
    return dt_rank_save(k, false, false);
}

/* After all that an iteration brings with it: evaluation, records, checkpoint. */
static void end_iteration(dt_rank *k, uint64_t before)
{
    const uint64_t now = dt_rank_global_step(k);
    if (k->leads) {
        dt_profile_steps_after(&k->r->profile, now - k->r->base_step, now - before);
    }
    dt_memory_watch_look(&k->watch, dt_clock_s(), k->stage->trainer);
}

/* Steps of the iteration whose batch had no sample: none of them was an update. */
static void show_empty(dt_rank *k)
{
    const uint64_t all = dt_trainer_empty(k->stage->trainer), n = all - k->n_empty;
    if (n == 0) {
        return;
    }
    if (k->n_empty == 0) {
        dt_log(DT_LOG_WARN,
               "%llu of the steps of this iteration had no sample, and changed nothing; from now on such steps are "
               "counted in train/empty_steps",
               (unsigned long long)n);
    }
    dt_metrics_scalar(k->r->metrics, "train/empty_steps", (double)n);
    k->n_empty = all;
}

/* Records of an iteration, for rank 0. What is kept depends on its number alone, so a resumed run keeps the same. */
static dt_status record(dt_rank *k, const dt_progress *p, bool is_wanted)
{
    dt_run_state *r = k->r;
    dt_rank_tell_first_step(k);
    dt_rank_show(k, p, p->step == p->steps);
    dt_rank_show_models(k, p);
    show_empty(k);
    if (!is_wanted && k->iterations != 1 && k->iterations % k->record_every != 0) {
        dt_metrics_drop(r->metrics);
        return DT_OK;
    }
    return dt_metrics_flush(r->metrics, k->stage->d.phase->desc.id, p->step, dt_clock_s() - r->start_s);
}

/* A stream has ended, which nobody knew at the last step: it is judged as any phase that ends. */
static dt_status end_at_once(dt_rank *k)
{
    const bool is_judged = k->stage->d.phase->ops.phase.evaluate != NULL && k->training.eval_interval > 0;
    const uint64_t step = dt_rank_global_step(k);
    if (k->stage->stream == NULL || !is_judged || step == k->evaluated_step || step == k->r->base_step) {
        return DT_DONE;
    }
    k->pending = DT_PENDING_END;
    return dt_rank_settle(k);
}

dt_status dt_rank_loop(dt_rank *k, uint64_t stop_step)
{
    dt_run_state *r = k->r;
    for (;;) {
        dt_progress p;
        const uint64_t before = k->good_step = dt_rank_global_step(k);
        const dt_status st = iterate(k, &p), worst = dt_comm_agree(k->comm, st);
        if (worst < 0) {
            return dt_rank_rescue(k, worst, &k->backup);
        }
        DT_TRY(note_lost_workers(k, before));
        if (st == DT_DONE && p.step == 0) {
            return end_at_once(k); /* nothing was left to do */
        }
        k->epoch = p.epoch + p.epoch_end;
        k->good_step = dt_rank_global_step(k);
        uint32_t want = 0;
        DT_TRY(dt_rank_check_sync(k, before - r->base_step));
        DT_TRY(agree_wishes(k, &p, &want));
        bool is_met = (want & WANT_END) != 0 || stop_rule_met(k, &p);
        const bool ends = st == DT_DONE || (p.steps > 0 && p.step >= p.steps) || is_met;
        const bool is_judged = dt_rank_evaluation_due(k, &p, ends);
        if (is_judged) {
            dt_status judged = dt_rank_evaluate(k, &is_met);
            if (judged >= 0) {
                judged = dt_mapping_verdict(0);
                judged = dt_comm_agree(k->comm, judged);
            }
            if (judged < 0) {
                return judged == DT_EINTERRUPTED ? leave_owing(k, &p, ends) : dt_rank_rescue(k, judged, NULL);
            }
            want |= k->checkpoint.best_by[0] != '\0' ? WANT_SAVE : 0;
        }
        DT_TRY((want & WANT_GRADIENT) != 0 ? dt_trainer_whole_gradient(k->stage->trainer) : DT_OK);
        if (dt_rank_is_first(k)) {
            DT_TRY(record(k, &p, is_judged || ends || is_met || (stop_step > 0 && p.step >= stop_step)));
        }
        if (ends || is_met) {
            return DT_DONE;
        }
        if (stop_step > 0 && p.step >= stop_step) {
            return DT_OK;
        }
        if ((want & (WANT_SAVE | WANT_STOP)) != 0) {
            DT_TRY(dt_rank_save(k, false, (want & WANT_STOP) != 0));
        }
        if ((want & WANT_STOP) != 0) {
            return DT_EINTERRUPTED;
        }
        end_iteration(k, before);
    }
}
