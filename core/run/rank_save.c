/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of a rank's phase; see rank.h.
 */
#include <math.h>
#include <config.h>

#include "rl/experience/service.h"
#include "run/rank.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "base/signals.h"
#include "comm/processes.h"

#include <time.h>

/* How many ranks write the optimizer's state; the same on all. */
static uint32_t count_shards(const dt_rank *k)
{
    const dt_stage *s = k->stage;
    const double least = k->checkpoint.shard_mb * 1e6;
    const uint32_t ranks = dt_comm_size(k->comm), most = ranks < DT_CKPT_MAX_SHARDS ? ranks : DT_CKPT_MAX_SHARDS;
    if (s->trainer == NULL || least <= 0 || most == 1) {
        return 1;
    }
    const double n = (double)dt_trainer_n_moments(s->trainer) * (double)s->params.base_total * sizeof(float) / least;
    return n < 2 ? 1 : n < most ? (uint32_t)n : most;
}

dt_snapshot_desc dt_rank_describe_snapshot(const dt_rank *k)
{
    const dt_run_context *r = k->r;
    return (dt_snapshot_desc){.run_dir = dt_rundir_path(r->d->dir),
                              .base_step = r->base_step,
                              .epoch = k->epoch,
                              .phase_ms = (uint64_t)(fmax(0, dt_rank_phase_s(k)) * 1e3),
                              .comm = k->comm,
                              .ranks = dt_comm_size(k->comm),
                              .n_shards = count_shards(k),
                              .pending = k->pending,
                              .patience = k->patience,
                              .is_evaluated = k->evaluated_step == dt_rank_global_step(k)};
}

/* [collective] where there are shards; else rank 0 alone. */
static dt_status write_checkpoint(dt_rank *k, const dt_snapshot_desc *d)
{
    if (!dt_rank_is_first(k)) {
        return dt_snapshot_is_shared(k->stage, d) ? dt_snapshot_save_shard(k->stage, d) : DT_OK;
    }
    DT_TRY(dt_snapshot_save(k->stage, d, NULL));
    k->last_saved_step = dt_rank_global_step(k);
    atomic_store(&k->r->has_saved, true);
    if (k->r->d->processes != NULL) {
        dt_board_mark_saved(dt_processes_board(k->r->d->processes));
    }
    dt_signals_mark_saved(); /* a signal in the set-up of a retry or of the next phase exits with 75 */
    if (dt_snapshot_prune(k->stage, d->run_dir) < 0) {
        dt_log(DT_LOG_WARN, "the checkpoint is saved, but older ones stay: %s", dt_error_text());
        dt_error_clear();
    }
    return DT_OK;
}

/* Before the next try after n failed ones in a row. */
static double retry_delay_s(uint32_t n, double most)
{
    const double s = 0.5 * (double)(1u << (n < 16 ? n - 1 : 15));
    return s < most ? s : most;
}

/* One try. What fails because of the disk is remembered: it is tried again while training continues. */
static dt_status save_once(dt_rank *k, bool phase_end)
{
    const uint64_t step = dt_rank_global_step(k);
    DT_TRACE_N("run", "checkpoint", "step", step);
    dt_snapshot_desc d = dt_rank_describe_snapshot(k);
    d.phase_end = phase_end;
    const dt_status st = write_checkpoint(k, &d);
    if (!dt_rank_is_first(k)) {
        return st;
    }
    k->last_save_s = dt_clock_s();
    if (st == DT_OK && k->n_failed_saves > 0) {
        dt_log(DT_LOG_WARN, "step %llu is saved, after %u tries that failed", (unsigned long long)step,
               k->n_failed_saves);
    }
    k->n_failed_saves = st == DT_OK ? 0 : k->n_failed_saves + 1;
    return st;
}

/* The last error, and what helps against it. */
static void warn_failed_save(const char *what)
{
    const char *remedy = dt_fs_write_advice(dt_error_text());
    dt_log(DT_LOG_WARN, "%s: %s%s%s", what, dt_error_text(), remedy != NULL ? "; " : "", remedy != NULL ? remedy : "");
    dt_error_clear();
}

/* Whatever a save met: is the run directory there? */
static bool is_run_dir_missing(const dt_rank *k)
{
    return !dt_fs_is_dir(dt_rundir_path(k->r->d->dir));
}

/* So is all that another try could begin with. */
static dt_status fail_run_dir_missing(dt_rank *k)
{
    k->r->cannot_save = true;
    return DT_FAIL(DT_EIO,
                   "the run directory %s is gone, with all its checkpoints: it was removed or renamed during the run",
                   dt_rundir_path(k->r->d->dir));
}

/* In the middle of a phase: the step is left unsaved. */
static dt_status continue_unsaved(dt_rank *k, dt_status st)
{
    const double s = retry_delay_s(k->n_failed_saves, 60);
    if (st == DT_EDIVERGED) {
        return st;
    }
    if (is_run_dir_missing(k)) {
        return fail_run_dir_missing(k);
    }
    k->save_again_s = dt_clock_s() + s;
    char what[96];
    snprintf(what, sizeof(what), "checkpoint failed, training continues and saves again in %g s", s);
    warn_failed_save(what);
    return DT_OK;
}

/* At the end of a phase or run nothing continues without its checkpoint. Waits and returns whether to try again;
 * short enough for other ranks. */
static bool wait_for_disk(dt_rank *k, double begin_s, uint32_t n, dt_status st)
{
    enum { STOPPING_S = 10, MOST_S = 20 };
    const double now = dt_clock_s();
    double wait_s = (double)k->checkpoint.wait_s;
    wait_s = dt_run_is_stopping(k->r) && wait_s > STOPPING_S ? STOPPING_S : wait_s;
    const double left = begin_s + wait_s - now, s = retry_delay_s(n, left < MOST_S ? left : MOST_S);
    if (st != DT_EIO || left <= 0 || is_run_dir_missing(k)) {
        k->r->cannot_save = st == DT_EIO;
        return false;
    }
    char what[96];
    snprintf(what, sizeof(what), "the state cannot be saved, trying again in %.1f s, for %.0f s more", s, left);
    warn_failed_save(what);
    while (dt_clock_s() < now + s && (dt_signals_stop() == 0 || left <= STOPPING_S)) {
        const struct timespec tenth = {0, 100000000};
        nanosleep(&tenth, NULL);
    }
    return true;
}

static bool has_checkpoint(const char *run)
{
    uint32_t n = 0, damaged = 0;
    return dt_ckpt_count(run, &n, &damaged) == DT_OK && n > 0;
}

static dt_status fail_unsaved(dt_rank *k, dt_status st)
{
    if (st == DT_EIO && is_run_dir_missing(k)) {
        return fail_run_dir_missing(k);
    }
    if (st != DT_EIO) {
        return st;
    }
    const char *run = dt_rundir_path(k->r->d->dir);
    const char *remedy = dt_fs_write_advice(dt_error_text());
    char first[128];
    snprintf(first, sizeof(first), "%s, then ", remedy != NULL ? remedy : "once it can be written again");
    const bool has_any = has_checkpoint(run);
    return DT_CONTEXT(
        st, "the state of step %llu is not saved; %s%s --resume %s", (unsigned long long)dt_rank_global_step(k), first,
        has_any ? "continue from the last checkpoint with" : "start again, as there is no checkpoint yet, with", run);
}

/* Ranks have lost each other: nothing that they do together helps. */
static bool is_communication_failure(const dt_rank *k, dt_status st)
{
    return dt_comm_size(k->comm) > 1 && (st == DT_EPEER || st == DT_ECOMM);
}

/* Rank 0 saves, again where it must, with the help of the others; they learn how it ended. */
static dt_status save_until_done(dt_rank *k, bool phase_end, bool must, bool is_due)
{
    const double begin_s = dt_clock_s();
    for (uint32_t n = 1;; n++) {
        dt_status st = is_due ? save_once(k, phase_end) : DT_OK;
        uint32_t again = 0;
        if (st < 0 && (!dt_rank_is_first(k) || is_communication_failure(k, st))) {
            return st;
        }
        if (st < 0 && !must) {
            st = continue_unsaved(k, st);
        } else if (st < 0) {
            again = wait_for_disk(k, begin_s, n, st);
            st = again ? DT_OK : fail_unsaved(k, st);
        }
        if (must) {
            dt_error why;
            dt_error_save(&why, st);
            DT_TRY(dt_comm_broadcast(k->comm, 0, &again, sizeof(again)));
            st = dt_error_restore(&why);
        }
        if (again == 0) {
            return dt_comm_agree(k->comm, st);
        }
    }
}

dt_status dt_rank_open_state(dt_rank *k, uint32_t *is_due_p)
{
    if (k->stage->trainer == NULL) {
        return DT_OK;
    }
    DT_TRY(dt_comm_broadcast(k->comm, 0, is_due_p, sizeof(*is_due_p)));
    if (*is_due_p == 0) {
        return DT_OK;
    }
    if (k->stage->rollout != NULL && dt_comm_size(k->comm) > 1) {
        DT_TRY(dt_rollout_prepare_replay(k->stage->rollout));
    }
    return dt_stage_open_moments(k->stage, true);
}

void dt_rank_close_state(const dt_rank *k)
{
    dt_stage_close_moments(k->stage, false);
}

dt_status dt_rank_save(dt_rank *k, bool phase_end, bool must)
{
    uint32_t is_due = phase_end || k->last_saved_step != dt_rank_global_step(k);
    DT_TRY(dt_comm_agree(k->comm, dt_rank_is_first(k) ? dt_rundir_restore(k->r->d->dir) : DT_OK));
    DT_TRY(dt_rank_open_state(k, &is_due));
    dt_activity_set(DT_ACTIVITY_SAVE, 0, 0);
    const dt_status st = save_until_done(k, phase_end, must, is_due);
    dt_activity_set(DT_ACTIVITY_NONE, 0, 0);
    dt_rank_close_state(k);
    return st;
}

static void save_good_state(dt_rank *k, const dt_snapshot_backup *backup)
{
    const uint64_t step = dt_rank_global_step(k);
    dt_snapshot_desc d = dt_rank_describe_snapshot(k);
    d.backup = backup;
    const dt_status st = write_checkpoint(k, &d);
    if (!dt_rank_is_first(k)) {
        return;
    }
    if (st < 0) {
        dt_log(DT_LOG_WARN, "what was learned before the failure is not saved: %s", dt_error_text());
    } else {
        dt_log(DT_LOG_WARN, "what was learned before the failure is saved at step %llu", (unsigned long long)step);
    }
}

dt_status dt_rank_save_after_failure(dt_rank *k, dt_status st, const dt_snapshot_backup *backup)
{
    const uint64_t step = dt_rank_global_step(k);
    const bool is_good = step == k->good_step && dt_stage_further_steps(k->stage) == k->good_further;
    const bool is_news = step > k->r->base_step && is_good && step != k->last_saved_step;
    uint32_t is_due = dt_rank_is_first(k) && is_news && (backup == NULL || backup->is_valid);
    if (st == DT_EINTERRUPTED || k->stage->d.device_ops != NULL) {
        return st;
    }
    dt_error *reason = dt_alloc(sizeof(*reason));
    if (reason == NULL) {
        return st;
    }
    dt_error_save(reason, st);
    if (is_due && dt_rundir_restore(k->r->d->dir) != DT_OK) {
        dt_log(DT_LOG_WARN, "what was learned before the failure is not saved: %s", dt_error_text());
        is_due = 0;
    }
    const bool is_alone = dt_comm_size(k->comm) == 1;
    /* where the communicator itself failed nothing can be brought together any more */
    const bool is_whole = dt_rank_open_state(k, &is_due) == DT_OK;
    if (is_due && is_whole) {
        save_good_state(k, backup);
    }
    dt_rank_close_state(k);
    st = dt_error_restore(reason);
    dt_free(reason);
    return is_alone || !is_whole ? st : dt_comm_agree(k->comm, st); /* no rank waits for another after this */
}
