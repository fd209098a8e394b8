/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of a phase; see rank.h.
 */
#include <config.h>

#include "run/rank.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/mapping.h"
#include "base/trace.h"
#include "comm/processes.h"

static const double MAPPING_CHECK_S = 0.25; /* how often mapped files are compared with what they were */

typedef struct iteration {
    dt_progress p;
    uint64_t before;   /* the run's step when it began */
    uint32_t requests; /* DT_REQUEST_* of all ranks */
    bool is_empty;     /* the data had ended already */
    bool ends;         /* the phase */
    bool stops;        /* the run, by --max-steps */
    bool is_evaluated;
} iteration;

/* Tests make it fail as a plugin does, or diverge. */
static dt_status iterate_phase(dt_rank *k, dt_progress *p)
{
    const uint64_t step = dt_trainer_step_number(k->stage->trainer);
    k->first_s = k->has_stepped ? k->first_s : dt_clock_s();
    if (k->is_first_here) {
        dt_profile_steps_before(&k->r->profile, step);
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
    DT_TRACE_N("run", "iteration", "first step", step + 1);
    const dt_status st = dt_stage_iterate(k->stage, p);
    const dt_status changed = dt_mapping_check(st < 0 ? 0 : MAPPING_CHECK_S); /* the cause of what failed */
    if (changed < 0 || st != DT_OK) {
        return changed < 0 ? changed : st;
    }
    return dt_progress_check(&k->progress, &k->n_idle, k->stage, p);
}

/* Where it fails on any rank, what was learned before is saved. */
static dt_status run_iteration(dt_rank *k, iteration *it)
{
    it->before = k->good_step = dt_rank_global_step(k);
    k->good_further = dt_stage_further_steps(k->stage);
    const dt_status st = iterate_phase(k, &it->p), worst = dt_comm_join(k->comm, st);
    if (worst < 0) {
        return dt_rank_save_after_failure(k, worst, &k->backup);
    }
    dt_rank_mark_advanced(k);
    it->is_empty = st == DT_DONE && it->p.step == 0;
    it->ends = st == DT_DONE || (it->p.steps > 0 && it->p.step >= it->p.steps);
    return dt_rank_record_lost_workers(k, it->before);
}

/* The phase's stop group: the trainer counts its epochs, rank 0 measures its time (DT_REQUEST_END). */
static void apply_stop_rules(dt_rank *k, iteration *it, uint64_t stop_step)
{
    const dt_progress *p = &it->p;
    k->iterations = dt_rank_iterations(k, p);
    it->ends = it->ends || (it->requests & DT_REQUEST_END) != 0 ||
               (k->stop.steps > 0 && p->step >= (uint64_t)k->stop.steps) ||
               (k->stop.iterations > 0 && k->iterations >= (uint64_t)k->stop.iterations);
    it->stops = stop_step > 0 && p->step >= stop_step;
}

static dt_status evaluate_if_due(dt_rank *k, iteration *it)
{
    bool is_met = false;
    it->is_evaluated = dt_rank_evaluation_due(k, &it->p, it->ends);
    if (!it->is_evaluated) {
        return DT_OK;
    }
    dt_status st = dt_rank_evaluate(k, &is_met);
    if (st >= 0) {
        st = dt_mapping_check(0);
        st = dt_comm_join(k->comm, st);
    }
    if (st < 0) {
        return st == DT_EINTERRUPTED ? dt_rank_save_pending(k, &it->p, it->ends)
                                     : dt_rank_save_after_failure(k, st, NULL);
    }
    it->requests |= k->checkpoint.best_by[0] != '\0' ? DT_REQUEST_SAVE : 0;
    it->ends = it->ends || is_met;
    return DT_OK;
}

static dt_status record_iteration(dt_rank *k, const iteration *it)
{
    if ((it->requests & DT_REQUEST_GRADIENT) != 0) {
        DT_TRY(dt_trainer_gather_gradient(k->stage->trainer));
    }
    return dt_rank_is_first(k) ? dt_rank_record(k, &it->p, it->is_evaluated || it->ends || it->stops) : DT_OK;
}

static dt_status save_if_requested(dt_rank *k, const iteration *it)
{
    const bool stops = (it->requests & DT_REQUEST_STOP) != 0;
    if (stops || (it->requests & DT_REQUEST_SAVE) != 0) {
        DT_TRY(dt_rank_save(k, false, stops));
    } else if ((it->requests & DT_REQUEST_MIRROR) != 0) {
        DT_TRY(dt_rank_mirror(k));
    }
    if ((it->requests & DT_REQUEST_RESIZE) != 0 && k->is_first_here) {
        *k->r->d->resized_p = true;
        if (dt_rank_is_first(k)) {
            dt_board_mark_resized(dt_processes_board(k->comm));
        }
    }
    return stops ? DT_EINTERRUPTED : DT_OK;
}

static void finish_iteration(dt_rank *k, uint64_t before)
{
    const uint64_t now = dt_rank_global_step(k);
    if (k->is_first_here) {
        dt_profile_steps_after(&k->r->profile, now - k->r->base_step, now - before);
    }
    dt_memory_watch_update(&k->watch, dt_clock_s(), k->stage->trainer);
}

dt_status dt_rank_train_loop(dt_rank *k, uint64_t stop_step)
{
    for (;;) {
        iteration it = {.requests = 0};
        DT_TRY(run_iteration(k, &it));
        if (it.is_empty) {
            return dt_rank_end_stream(k);
        }
        k->epoch = it.p.epoch + it.p.epoch_end;
        k->good_step = dt_rank_global_step(k);
        k->good_further = dt_stage_further_steps(k->stage);
        DT_TRY(dt_rank_compare_parameters(k, it.before - k->r->base_step));
        DT_TRY(dt_rank_exchange_requests(k, &it.p, &it.requests));
        apply_stop_rules(k, &it, stop_step);
        DT_TRY(dt_rank_check_training(k, &it.p, &it.ends));
        DT_TRY(evaluate_if_due(k, &it));
        DT_TRY(record_iteration(k, &it));
        if (it.ends) {
            return DT_DONE;
        }
        if (it.stops) {
            return DT_OK;
        }
        DT_TRY(save_if_requested(k, &it));
        finish_iteration(k, it.before);
    }
}
