/* SPDX-License-Identifier: Apache-2.0
 *
 * All ranks of a run, and tries of a phase; see run.h.
 */
#include <config.h>

#include "run/run.h"

#include "base/clock.h"
#include "base/exit.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "telemetry/tensorboard/event_files.h"
#include "run/rank.h"
#include "base/signals.h"
#include "comm/processes.h"

#include <stdatomic.h>
#include <stdio.h>

static void *rank_thread_main(void *arg)
{
    dt_rank *k = arg;
    char prefix[32] = "";
    dt_trace_thread("rank", dt_comm_rank(k->comm));
    if (dt_comm_process_size(k->comm) > 1) {
        snprintf(prefix, sizeof(prefix), "rank %u", dt_comm_rank(k->comm));
        dt_log_prefix_set(prefix);
    }
    dt_call_here = &k->hang->calls;
    const dt_status st = dt_rank_run_phases(k);
    dt_error_save(&k->error, st);
    if (st < 0) {
        dt_stage_destroy(k->stage);
        k->stage = NULL;
        if (st != DT_EINTERRUPTED) {
            dt_comm_abandon(k->comm, dt_error_text());
            atomic_store(&k->hang->failed, dt_exit_code(st));
        }
    }
    dt_call_here = NULL;
    return NULL;
}

static dt_status make_comms(const dt_run_desc *d, uint32_t n, dt_comm **comm)
{
    if (d->processes != NULL) {
        comm[0] = d->processes;
        dt_comm_timeout_set(comm[0], d->session->comm_timeout_s);
        return DT_OK;
    }
    return n == 1 ? dt_comm_create_null(&comm[0]) : dt_comm_create_simulated(n, d->session->comm_timeout_s, comm);
}

/* What a rank needs of its own; the first one here answers for the process. */
static dt_status prepare_ranks(dt_run_context *r, dt_rank *k, dt_comm *const *comm, uint32_t n)
{
    dt_hang_rank *hang = dt_alloc_n(n, sizeof(*hang));
    if (hang == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        hang[i].number = dt_comm_rank(comm[i]);
        k[i].hang = &hang[i];
        k[i].r = r;
        k[i].comm = comm[i];
        k[i].is_first_here = i == 0;
        k[i].messages = dt_alloc_n(dt_comm_size(comm[i]), sizeof(*k[i].messages));
        if (k[i].messages == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", dt_comm_size(comm[i]));
        }
    }
    return DT_OK;
}

/* How specific a rank's status is about the cause: one that was notified knows less than one that failed itself. */
static int cause_specificity(dt_status st)
{
    return st == DT_EPEER ? 1 : st == DT_ECOMM ? 2 : st < 0 ? 3 : 0;
}

static dt_status restore_first_cause(const dt_rank *k, uint32_t n)
{
    uint32_t cause = 0;
    for (uint32_t i = 1; i < n; i++) {
        cause = cause_specificity(k[i].error.status) > cause_specificity(k[cause].error.status) ? i : cause;
    }
    return dt_error_restore(&k[cause].error);
}

typedef struct hang_end {
    dt_run_context *r;
    const dt_rank *k; /* [n] */
    uint32_t n;
} hang_end;

/* After a signal a run with a checkpoint continues from it, as one whose launcher lost a process. A command that is
 * repeated after 75 must not be so forever: without progress since it began, the code is that of a short --max-time. */
static int stop_code(const dt_run_desc *d, bool has_saved)
{
    dt_ckpt_info info;
    const bool has_checkpoint = dt_ckpt_inspect(dt_rundir_path(d->dir), &info) == DT_OK;
    if (dt_signals_stop() != 0) {
        return has_checkpoint ? DT_EXIT_INTERRUPTED : 128 + dt_signals_stop();
    }
    /* rank 0 may be another process */
    const bool is_saved = has_saved || (d->processes != NULL && dt_board_has_saved(dt_processes_board(d->processes)));
    return has_checkpoint && is_saved ? DT_EXIT_INTERRUPTED : DT_EXIT_USAGE;
}

static bool is_stopping(void *user)
{
    return dt_run_is_stopping(((const hang_end *)user)->r);
}

/* A rank hangs, and the process ends: what the others failed with is reported, and how the run ended. */
static int record_hang_end(void *user, int failed)
{
    const hang_end *e = user;
    const dt_run_desc *d = e->r->d;
    const int code = failed != 0 ? failed : stop_code(d, atomic_load(&e->r->has_saved));
    for (uint32_t i = 0; i < e->n && failed != 0; i++) {
        if (atomic_load(&e->k[i].hang->failed) == failed) {
            dt_log(DT_LOG_ERROR, "%s", e->k[i].error.text);
            break;
        }
    }
    const bool is_first = d->processes == NULL || dt_comm_rank(d->processes) == 0;
    if (*d->begun_p && is_first && dt_rundir_restore(d->dir) == DT_OK) {
        dt_rundir_update_meta(d->dir, d->session, code);
    }
    return code;
}

static dt_status watch_ranks(hang_end *e, dt_hang_watch **out_p)
{
    const dt_hang_desc d = {.rank = e->k[0].hang,
                            .n = e->n,
                            .is_one_of_many = dt_comm_size(e->k[0].comm) > 1,
                            .timeout_s = e->r->d->session->comm_timeout_s,
                            .is_stopping = is_stopping,
                            .end = record_hang_end,
                            .user = e};
    return dt_hang_watch_begin(&d, out_p);
}

static dt_status run_ranks(dt_run_context *r)
{
    const uint32_t n = r->d->session->ranks;
    dt_rank *k = dt_alloc_n(n, sizeof(*k));
    dt_comm **comm = dt_alloc_n(n, sizeof(*comm));
    dt_status st =
        k != NULL && comm != NULL ? make_comms(r->d, n, comm) : DT_FAIL(DT_ENOMEM, "out of memory for %u ranks", n);
    uint32_t started = 1;
    hang_end ended = {.r = r, .k = k, .n = n};
    dt_hang_watch *watch = NULL;
    if (st == DT_OK) {
        st = prepare_ranks(r, k, comm, n);
    }
    if (st == DT_OK) {
        st = watch_ranks(&ended, &watch);
    }
    if (st == DT_OK) {
        for (; started < n && st == DT_OK; started++) {
            if (pthread_create(&k[started].thread, NULL, rank_thread_main, &k[started]) != 0) {
                st = DT_FAIL(DT_EUNSUPPORTED, "the system refused to start virtual rank %u of %u", started, n);
                dt_comm_abandon(comm[0], "not all ranks could be started");
                break;
            }
        }
        if (st == DT_OK) {
            dt_activity_set_reporter(dt_rank_is_first(&k[0]));
            rank_thread_main(&k[0]);
            dt_activity_set_reporter(false);
        }
        for (uint32_t i = 1; i < started; i++) {
            pthread_join(k[i].thread, NULL);
        }
        dt_log_prefix_set("");
        if (st == DT_OK) {
            st = restore_first_cause(k, n);
        }
    }
    dt_hang_watch_end(watch);
    for (uint32_t i = 0; i < n && comm != NULL && r->d->processes == NULL; i++) {
        dt_comm_destroy(comm[i]);
    }
    for (uint32_t i = 0; i < n && k != NULL; i++) {
        dt_free(k[i].messages);
    }
    if (k != NULL) {
        dt_free(k[0].hang);
    }
    dt_free(comm);
    dt_free(k);
    return st;
}

/* From the mirror of a run, where it is newer than its checkpoints. */
static dt_status find_own_start(dt_run_context *r)
{
    const char *from = r->d->resume;
    dt_str mirror = {0};
    dt_status st = DT_AGAIN;
    if (from != NULL && r->d->processes != NULL && dt_rundir_is_run(from) && dt_mirror_find(from, &mirror)) {
        st = dt_run_start_find(r->d->session, dt_str_text(&mirror), true, &r->start);
    }
    if (st < 0) {
        dt_log(DT_LOG_WARN, "continuing from the last checkpoint: %s", dt_error_text());
        dt_error_clear();
    }
    dt_str_fini(&mirror);
    return st == DT_OK ? DT_OK : dt_run_start_find(r->d->session, from, false, &r->start);
}

static dt_status find_start(dt_run_context *r)
{
    dt_comm *c = r->d->processes;
    const dt_status st = c == NULL || dt_comm_rank(c) == 0 ? find_own_start(r) : DT_OK;
    DT_TRY(c != NULL ? dt_comm_agree(c, st) : st);
    DT_TRY(c != NULL ? dt_run_start_share(c, &r->start) : DT_OK);
    if (r->start.resume != NULL) {
        dt_signals_mark_saved();
    }
    return DT_OK;
}

/* Back to the newest checkpoint of the run; without one, to where it began. */
static dt_status rewind_to_checkpoint(dt_run_context *r)
{
    dt_run_start_fini(&r->start);
    const dt_status st = dt_run_start_resume(r->d->session, dt_rundir_path(r->d->dir), false, &r->start);
    return st == DT_ENOTFOUND ? find_start(r) : st;
}

/* May the phase that failed with st be tried again? Several processes are restarted by their launcher: a
 * message-passing library does not begin twice in a process. */
static bool can_retry_phase(dt_run_context *r, dt_status st, uint32_t *retries_p)
{
    if (r->d->processes != NULL || !r->is_phase_ready || r->cannot_save || !dt_status_is_retryable(st) ||
        dt_signals_stop() != 0) {
        return false;
    }
    *retries_p = (uint32_t)r->d->session->opts[r->phase].training.retries;
    return r->retries < *retries_p;
}

/* A phase that fails continues from the run's last checkpoint, as often as training.retries allows. */
static dt_status run_with_retries(dt_run_context *r)
{
    for (;;) {
        uint32_t retries = 0;
        r->base_step = r->start.base_step;
        r->is_phase_ready = false;
        const dt_status st = run_ranks(r);
        if (st >= 0 || !can_retry_phase(r, st, &retries)) {
            if (st < 0 && r->retries > 0) {
                dt_log(DT_LOG_WARN, "phase %lld (%s) failed %u times, the run ends", (long long)r->phase + 1,
                       r->d->session->phase[r->phase]->desc.id, r->retries + 1);
            }
            return st;
        }
        r->retries++;
        dt_log(DT_LOG_WARN, "phase %lld (%s) failed and continues from the last checkpoint, retry %u of %u: %s",
               (long long)r->phase + 1, r->d->session->phase[r->phase]->desc.id, r->retries, retries, dt_error_text());
        dt_error_clear();
        DT_TRY(rewind_to_checkpoint(r));
    }
}

dt_status dt_run_training(const dt_run_desc *d)
{
    dt_run_context r = {.d = d, .start_s = dt_clock_s(), .profile = d->profile};
    r.profile.run_dir = dt_rundir_path(d->dir);
    r.profile.ranks = d->processes;
    dt_str path = {0};
    pthread_mutex_init(&r.create_lock, NULL);
    dt_str_addf(&path, "%s/metrics.jsonl", dt_rundir_path(d->dir));
    dt_status st = dt_str_status(&path);
    const bool is_first = d->processes == NULL || dt_comm_rank(d->processes) == 0;
    if (st == DT_OK) {
        st = dt_screen_open(d->quiet || !is_first, &r.screen);
    }
    if (st == DT_OK && is_first) {
        st = dt_metrics_open(dt_str_text(&path), &r.metrics);
    }
    if (st == DT_OK) {
        st = find_start(&r);
    }
    if (st == DT_OK) {
        dt_error reason;
        st = run_with_retries(&r);
        dt_error_save(&reason, st);
        if (st < 0 && st != DT_EINTERRUPTED && is_first) {
            dt_event_files_end(r.metrics, false);
        }
        if (is_first && d->processes != NULL && (st >= 0 || (st == DT_EINTERRUPTED && !*d->resized_p))) {
            dt_mirror_remove(dt_rundir_path(d->dir)); /* a checkpoint is as new */
        }
        dt_profile_steps_end(&r.profile, st >= 0 || st == DT_EINTERRUPTED);
        dt_trace_fini();
        st = dt_error_restore(&reason);
    }
    dt_run_start_fini(&r.start);
    dt_metrics_close(r.metrics);
    dt_screen_close(r.screen);
    dt_str_fini(&path);
    pthread_mutex_destroy(&r.create_lock);
    return st;
}
