/* SPDX-License-Identifier: Apache-2.0
 *
 * All ranks of a run, and tries of a phase; see run.h.
 */
#include <config.h>

#include "run/run.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/trace.h"
#include "tensorboard/event_files.h"
#include "run/rank.h"
#include "base/signals.h"

#include <stdio.h>

static void *rank_main(void *arg)
{
    dt_rank *k = arg;
    char prefix[32] = "";
    dt_trace_thread("rank", dt_comm_rank(k->comm));
    if (dt_comm_size(k->comm) > 1) {
        snprintf(prefix, sizeof(prefix), "rank %u", dt_comm_rank(k->comm));
        dt_log_prefix_set(prefix);
    }
    const dt_status st = dt_rank_run_phases(k);
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

static dt_status make_comms(uint32_t ranks, dt_comm **comm)
{
    enum { COLLECTIVE_TIMEOUT_S = 120 };
    return ranks == 1 ? dt_comm_null(&comm[0]) : dt_comm_sim(ranks, COLLECTIVE_TIMEOUT_S, comm);
}

static dt_status run_ranks(dt_run_state *r)
{
    const uint32_t n = r->d->session->ranks;
    dt_rank *k = dt_alloc_n(n, sizeof(*k));
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
    if (comm != NULL) {
        for (uint32_t i = 0; i < n; i++) {
            dt_comm_destroy(comm[i]);
        }
    }
    dt_free(comm);
    dt_free(k);
    return st;
}

static dt_status set_course(dt_run_state *r)
{
    const dt_run_desc *d = r->d;
    if (d->resume == NULL) {
        dt_run_start_fresh(d->session, &r->start);
        return DT_OK;
    }
    const dt_status st = dt_run_start_resume(d->session, d->resume, &r->start);
    /* exit code 2; none that is valid is DT_EDATA, 4 */
    return st == DT_ENOTFOUND ? DT_CONTEXT(DT_ECONFIG, "--resume") : st;
}

/* Back to the newest checkpoint of the run; without one, to where it began. */
static dt_status go_back(dt_run_state *r)
{
    dt_run_start_fini(&r->start);
    const dt_status st = dt_run_start_resume(r->d->session, dt_rundir_path(r->d->dir), &r->start);
    return st == DT_ENOTFOUND ? set_course(r) : st;
}

/* May the phase that failed with st be tried again? */
static bool is_worth_it(dt_run_state *r, dt_status st, uint32_t *retries_p)
{
    dt_training_opts o;
    if (!r->stands || r->is_disk_full || !dt_run_start_may_retry(st) || dt_signals_stop() != 0) {
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
static dt_status run_with_retries(dt_run_state *r)
{
    for (;;) {
        uint32_t retries = 0;
        r->base_step = r->start.base_step;
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

dt_status dt_run(const dt_run_desc *d)
{
    dt_run_state r = {.d = d, .start_s = dt_clock_s(), .profile = d->profile};
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
        st = run_with_retries(&r);
        dt_error_take(&reason, st);
        if (st < 0 && st != DT_EINTERRUPTED) {
            dt_event_files_end(r.metrics, false);
        }
        dt_profile_steps_end(&r.profile);
        dt_trace_fini();
        st = dt_error_put(&reason);
    }
    dt_run_start_fini(&r.start);
    dt_metrics_close(r.metrics);
    dt_screen_close(r.screen);
    dt_str_fini(&path);
    pthread_mutex_destroy(&r.create_lock);
    return st;
}
