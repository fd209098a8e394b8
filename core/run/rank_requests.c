/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks request of each other after an iteration: to stop, save or end; see rank.h.
 */
#include <config.h>

#include "run/rank.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/signals.h"
#include "comm/processes.h"

/* any_p: what any rank set in its message. */
static dt_status gather_requests(dt_rank *k, const dt_rank_message *mine, uint32_t *any_p)
{
    DT_TRY(dt_comm_all_gather(k->comm, mine, sizeof(*mine), k->messages));
    *any_p = 0;
    for (uint32_t i = 0; i < dt_comm_size(k->comm); i++) {
        *any_p |= k->messages[i].requests;
    }
    return DT_OK;
}

static bool is_checkpoint_due(const dt_rank *k, const dt_progress *p)
{
    const dt_checkpoint_opts *c = &k->checkpoint;
    const int64_t save_interval = k->training.save_interval;
    const double now = dt_clock_s();
    const bool steps = c->every_steps > 0 && p->step % (uint64_t)c->every_steps == 0;
    const bool seconds = c->every_seconds > 0 && now - k->last_save_s >= (double)c->every_seconds;
    const bool epochs = p->epoch_end && save_interval > 0 && (p->epoch + 1) % (uint64_t)save_interval == 0;
    return k->n_failed_saves > 0 ? now >= k->save_again_s : steps || seconds || epochs;
}

/* A restart looks for a mirror where there is a checkpoint: the first one is a checkpoint. */
static uint32_t request_mirror(const dt_rank *k, uint32_t requests)
{
    if ((requests & DT_REQUEST_SAVE) != 0 || k->n_failed_saves > 0 || !dt_rank_mirror_is_due(k)) {
        return 0;
    }
    return k->last_saved_step == UINT64_MAX ? DT_REQUEST_SAVE : DT_REQUEST_MIRROR;
}

/* The launcher has other hosts or slots: they join where the state is saved anyway. */
static bool is_resize_due(const dt_rank *k, uint32_t requests)
{
    return k->r->d->processes != NULL && (requests & (DT_REQUEST_SAVE | DT_REQUEST_MIRROR)) != 0 &&
           dt_board_resize_is_requested(dt_processes_board(k->comm));
}

/* Signals reach any process; times and checkpoints follow the clock of rank 0. */
dt_status dt_rank_exchange_requests(dt_rank *k, const dt_progress *p, uint32_t *requests_p)
{
    uint32_t requests = 0;
    if (k->is_first_here) {
        requests |= dt_fault("run.stop") || dt_run_is_stopping(k->r) ? DT_REQUEST_STOP : 0;
        requests |= dt_signals_take_save_request() ? DT_REQUEST_SAVE : 0;
    }
    if (dt_rank_is_first(k)) {
        requests |= is_checkpoint_due(k, p) ? DT_REQUEST_SAVE : 0;
        requests |= request_mirror(k, requests);
        requests |= is_resize_due(k, requests) ? DT_REQUEST_STOP | DT_REQUEST_RESIZE : 0;
        requests |= k->stop.time > 0 && dt_rank_phase_s(k) >= k->stop.time ? DT_REQUEST_END : 0;
        requests |= dt_rank_histograms_due(k, p) ? DT_REQUEST_GRADIENT : 0;
    }
    const dt_rank_message mine = dt_rank_measure_load(k, requests);
    DT_TRY(gather_requests(k, &mine, requests_p));
    if (dt_rank_is_first(k) && k->r->d->processes != NULL) {
        dt_rank_record_load(k);
    }
    return DT_OK;
}

dt_status dt_rank_record_lost_workers(dt_rank *k, uint64_t step)
{
    const uint32_t all = atomic_load(&k->stage->env.n_lost);
    uint32_t lost = all - k->n_lost;
    k->n_lost = all;
    if (!k->stage->env.can_restart) {
        return DT_OK;
    }
    const dt_rank_message mine = {.requests = lost};
    DT_TRY(gather_requests(k, &mine, &lost));
    if (lost > 0 && dt_rank_is_first(k)) {
        dt_rundir_mark_irreproducible(k->r->d->dir, step);
        dt_rundir_update_meta(k->r->d->dir, k->r->d->session, -1);
    }
    return DT_OK;
}
