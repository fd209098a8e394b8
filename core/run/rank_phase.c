/* SPDX-License-Identifier: Apache-2.0
 *
 * One phase on one rank, from its models to its release; see rank.h.
 */
#include <config.h>

#include "run/rank.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "comm/processes.h"
#include "run/baselines.h"
#include "run/session_parts.h"
#include "telemetry/tensorboard/event_files.h"
#include "run/initial_weights.h"
#include "plan/fit.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static dt_stage_desc describe_stage(const dt_rank *k, int64_t index, const dt_roles *loaded)
{
    dt_run_context *r = k->r;
    const dt_session *s = r->d->session;
    dt_stage_desc d = dt_session_describe_stage(s, index, k->comm, &r->create_lock);
    d.metrics = dt_rank_is_first(k) ? r->metrics : NULL;
    d.loaded = *loaded;
    d.run_dir = dt_rundir_path(r->d->dir);
    d.stops = dt_run_is_stopping;
    d.stops_user = r;
    return d;
}

static dt_status create_stage(dt_rank *k, int64_t index, const dt_roles *loaded)
{
    dt_run_context *r = k->r;
    const dt_stage_desc d = describe_stage(k, index, loaded);
    pthread_mutex_lock(&r->create_lock);
    const dt_status st = dt_stage_create(&d, &k->stage);
    pthread_mutex_unlock(&r->create_lock);
    if (st == DT_OK) {
        const dt_sections *o = &k->stage->opts;
        k->training = o->training;
        k->checkpoint = o->checkpoint;
        k->stop = o->stop;
        k->check_every = (uint64_t)o->comm.check_every;
        dt_memory_watch_init(&k->watch, &o->memory, dt_rank_is_first(k));
    }
    return st == DT_ENOMEM ? dt_fit_advise(&d, st) : st;
}

static bool is_resumed(const dt_rank *k, int64_t index)
{
    return k->r->start.resume != NULL && index == k->r->start.begin;
}

static dt_initial_weights_desc describe_initial_weights(const dt_rank *k)
{
    dt_run_context *r = k->r;
    return (dt_initial_weights_desc){.session = r->d->session,
                                     .run_dir = dt_rundir_path(r->d->dir),
                                     .init_from = r->d->init_from,
                                     .start = &r->start,
                                     .lock = &r->create_lock};
}

/* Asked to stop while experience was collected: the round is left out, a resume collects it again. Before the first
 * step of a later phase the end of the one before is equivalent. */
static dt_status save_before_round(dt_rank *k)
{
    const bool is_saved = k->r->base_step > 0 && dt_rank_global_step(k) == k->r->base_step;
    return is_saved ? DT_OK : dt_rank_save(k, false, true);
}

static dt_status begin_event_files(dt_rank *k, int64_t index, uint64_t begin)
{
    dt_run_context *r = k->r;
    dt_metrics_opts o;
    dt_log_opts log = {.every = 1};
    const dt_event_files_desc d = {.run_dir = dt_rundir_path(r->d->dir),
                                   .config = r->d->session->config,
                                   .stage = k->stage,
                                   .first_step = begin + 1};
    pthread_mutex_lock(&r->create_lock);
    dt_status st = dt_config_metrics(r->d->session->config, &o);
    if (st == DT_OK) {
        st = dt_config_log(r->d->session->config, &log);
    }
    k->record_every = (uint64_t)log.every;
    if (st == DT_OK && o.tensorboard) {
        dt_event_files_begin(&d, r->metrics);
    }
    k->histogram_every = st == DT_OK ? (uint64_t)o.histogram_every : 0;
    if (st == DT_OK) {
        const dt_device_ops *ops = k->stage->d.device_ops;
        dt_device_watch_begin(&k->device, ops != NULL ? ops->info(k->stage->d.device) : NULL, k->forecast.device,
                              o.device_every_s);
    }
    pthread_mutex_unlock(&r->create_lock);
    return st;
}

static dt_status start_stage(dt_rank *k)
{
    const dt_status st = dt_stage_start(k->stage);
    return st == DT_ENOMEM ? dt_fit_advise(&k->stage->d, st) : st;
}

/* Creates and starts the phase with its initial weights, or those of the checkpoint that is resumed. All ranks do each
 * step, or none does the next. */
static dt_status set_up_with_weights(dt_rank *k, int64_t index, const dt_initial_weights_desc *d,
                                     dt_initial_weights *first)
{
    dt_roles loaded;
    const dt_status found = dt_initial_weights_find(d, index, first, &loaded);
    DT_TRY(dt_comm_join(k->comm, found));
    const dt_status created = create_stage(k, index, &loaded);
    DT_TRY(dt_comm_join(k->comm, created));
    const dt_status started = start_stage(k);
    DT_TRY(dt_comm_join(k->comm, started));
    const dt_status found_room = dt_rollout_check_room(k->stage->rollout);
    DT_TRY(dt_comm_join(k->comm, found_room));
    const dt_status taken = dt_rollout_allocate_replay(k->stage->rollout);
    DT_TRY(dt_comm_join(k->comm, taken));
    const dt_status initialised = dt_initial_weights_load(d, first, k->stage);
    return dt_comm_join(k->comm, initialised);
}

static dt_status set_up_phase(dt_rank *k, int64_t index)
{
    const dt_initial_weights_desc d = describe_initial_weights(k);
    dt_initial_weights first = {0};
    const dt_status st = set_up_with_weights(k, index, &d, &first);
    dt_initial_weights_close(&first);
    return st;
}

/* Checkpoints after this step are superseded. */
static dt_status rewind_run(dt_rank *k, uint64_t begin)
{
    dt_run_context *r = k->r;
    uint32_t n = 0;
    dt_rundir_rewind(r->d->dir, r->base_step + begin);
    DT_TRY(dt_ckpt_supersede_later(dt_rundir_path(r->d->dir), r->base_step + begin, &n));
    dt_mirror_remove_later(dt_rundir_path(r->d->dir), r->base_step + begin);
    if (n > 0) {
        dt_log(DT_LOG_WARN,
               "%u checkpoint%s after step %llu moved to checkpoints/superseded: the run continues from here", n,
               n == 1 ? "" : "s", (unsigned long long)(r->base_step + begin));
    }
    return DT_OK;
}

/* Phases of the same plugin before this one. */
static uint32_t count_earlier_phases(const dt_run_context *r, int64_t index)
{
    uint32_t n = 0;
    for (int64_t i = 0; i < index; i++) {
        n += r->d->session->phase[i] == r->d->session->phase[index];
    }
    return n;
}

/* Of MIN:MAX processes no more take part than have work in a phase. Before its first step its state is that of the last
 * checkpoint: with too many processes all stop, and the launcher continues on fewer, if that is allowed. */
static dt_status stop_for_fewer_processes(dt_rank *k, int64_t index, bool collects)
{
    const dt_run_desc *d = k->r->d;
    const uint32_t n = dt_session_count_ranks(d->session, index, collects);
    if (d->processes == NULL || dt_comm_size(k->comm) <= n) {
        return DT_OK;
    }
    *d->resized_p = true;
    if (dt_rank_is_first(k)) {
        dt_board_limit_ranks(dt_processes_board(k->comm), n);
        dt_board_mark_resized(dt_processes_board(k->comm));
        dt_log(DT_LOG_WARN, "phase %lld (%s) has work for %u processes: continuing with these", (long long)index + 1,
               d->session->phase[index]->desc.id, n);
    }
    return DT_FAIL(DT_EINTERRUPTED, "stopped for fewer processes");
}

/* Whether a phase collects rollouts is known once they are made: st. */
static dt_status limit_processes(dt_rank *k, int64_t index, dt_status st)
{
    if (st == DT_ECONFIG) {
        const dt_status stopped = stop_for_fewer_processes(k, index, true);
        return stopped < 0 ? stopped : st;
    }
    if (st >= 0 && k->r->d->processes != NULL) {
        dt_board_limit_ranks(dt_processes_board(k->comm),
                             dt_session_most_ranks(k->r->d->session, index, k->stage->rollout != NULL));
    }
    return st;
}

static dt_status create_phase(dt_rank *k, int64_t index)
{
    dt_run_context *r = k->r;
    if (k->is_first_here) {
        r->is_phase_ready = false;
        (void)dt_fault("run.begin"); /* tests kill here */
    }
    k->enter_s = index == r->start.begin ? r->start_s : dt_clock_s();
    DT_TRY(stop_for_fewer_processes(k, index, false));
    const dt_status st = set_up_phase(k, index);
    DT_TRY(limit_processes(k, index, st));
    if (k->stage->trainer == NULL) {
        return DT_FAIL(DT_EPLUGIN, "phase %s created no trainer when it was started", k->stage->d.phase->desc.id);
    }
    const dt_status logged = dt_rank_log_plan(k);
    return dt_comm_join(k->comm, logged);
}

/* Rank 0: the run directory is that of this phase from its first step on. */
static dt_status begin_records(dt_rank *k, int64_t index)
{
    dt_run_context *r = k->r;
    const uint64_t begin = k->begin_step;
    DT_TRY(rewind_run(k, begin));
    if ((r->start.is_other_cpu || r->start.is_other_sum) && index == r->start.begin) {
        dt_rundir_mark_irreproducible(r->d->dir, r->base_step + begin);
    }
    /* a run that is rejected before this line leaves its folder unchanged */
    DT_TRY(dt_rundir_begin(r->d->dir, r->d->session, !*r->d->begun_p));
    *r->d->begun_p = true;
    if (dt_rank_write_progress(k, index) < 0) { /* as on a full disk: `dtrain runs` knows less */
        dt_log(DT_LOG_WARN, "%s", dt_error_text());
        dt_error_clear();
    }
    DT_TRY(dt_metrics_rewind(r->metrics, k->stage->d.phase->desc.id, count_earlier_phases(r, index), begin));
    return begin_event_files(k, index, begin);
}

/* Before the first step: where the phase is, and that its results have the names that the configuration expects. */
static dt_status check_phase(dt_rank *k)
{
    const uint64_t begin = k->begin_step = dt_trainer_step_number(k->stage->trainer);
    k->epoch = begin / dt_trainer_steps_per_epoch(k->stage->trainer);
    k->has_evaluated = false;
    dt_rank_begin_progress(k); /* the check may evaluate for minutes */
    DT_TRY(begin == 0 ? dt_rank_check_results(k) : DT_OK);
    k->n_evaluations = k->n_target_known = k->n_best_known = 0;
    k->n_training_known = k->n_training_epochs = 0;
    k->n_empty = 0;
    return DT_OK;
}

static void reset_counters(dt_rank *k, int64_t index)
{
    dt_run_context *r = k->r;
    const uint64_t begin = k->begin_step;
    if (k->is_first_here) {
        r->retries = index == r->phase ? r->retries : 0;
        r->phase = index;
        r->is_phase_ready = true;
    }
    k->last_save_s = k->begin_s = k->from_s = dt_clock_s();
    k->from_part = begin > 0 ? NAN : 0;
    k->has_stepped = false;
    k->rate_s = k->rate = 0;
    k->n_lost = 0;
    k->rate_samples = 0;
    k->iterations = begin; /* where a phase does not count them, each is one step of the trainer */
    k->last_saved_step = begin > 0 ? dt_rank_global_step(k) : UINT64_MAX;
    k->evaluated_step = UINT64_MAX;
}

/* Has a resumed phase all the steps of --max-steps already? */
static bool has_all_steps(const dt_rank *k)
{
    const uint64_t begin = k->begin_step, most = k->r->d->max_steps, steps = dt_trainer_steps(k->stage->trainer);
    const bool has_all = most > 0 && begin >= most && (steps == 0 || begin < steps);
    if (has_all && begin > most && dt_rank_is_first(k)) {
        dt_log(DT_LOG_WARN,
               "the run is at step %llu of its phase already, beyond --max-steps %llu: nothing is trained; continue "
               "with a larger number, or without it",
               (unsigned long long)begin, (unsigned long long)most);
    }
    return has_all;
}

static dt_status train_phase(dt_rank *k, int64_t index)
{
    const bool has_all = has_all_steps(k);
    dt_rank_begin_progress(k);
    k->pending = is_resumed(k, index) ? k->r->start.pending : DT_PENDING_NONE;
    k->patience = is_resumed(k, index) ? k->r->start.patience : (dt_snapshot_patience){.n_stale = 0};
    const dt_status st = k->pending != DT_PENDING_NONE ? dt_rank_run_pending(k) : DT_OK;
    if (st != DT_OK) {
        return st;
    }
    if (k->stop.steps > 0 && k->begin_step >= (uint64_t)k->stop.steps) {
        return DT_DONE;
    }
    return has_all ? DT_OK : dt_rank_train_loop(k, k->r->d->max_steps);
}

/* st: of training, and what is returned where saving succeeds. */
static dt_status close_phase(dt_rank *k, dt_status st)
{
    if (st == DT_EINTERRUPTED) {
        DT_TRY(save_before_round(k));
    }
    if (st < 0) {
        return st;
    }
    if (dt_rank_is_first(k) && st == DT_DONE) {
        dt_event_files_end(k->r->metrics, true);
    }
    dt_error why;
    const dt_status finished = st == DT_DONE ? dt_rank_finish(k) : DT_OK;
    dt_error_save(&why, finished);
    DT_TRY(dt_rank_save(k, st == DT_DONE && finished == DT_OK, true)); /* a resume fails the same way */
    DT_TRY(dt_error_restore(&why));
    (void)(dt_rank_is_first(k) && dt_fault("run.end"));
    return st;
}

static dt_status run_phase(dt_rank *k, int64_t index)
{
    DT_TRY(create_phase(k, index));
    DT_TRY(check_phase(k));
    if (dt_rank_is_first(k)) {
        DT_TRY(begin_records(k, index));
    }
    reset_counters(k, index);
    return close_phase(k, train_phase(k, index));
}

/* The policy of a finished phase, compared with rule-based controllers. */
static dt_status compare_with_baselines(dt_rank *k, int64_t index, const dt_policy_result *policy)
{
    const dt_stage_desc d = describe_stage(k, index, &(dt_roles){.n = 0});
    return policy == NULL ? DT_OK
                          : dt_baselines_run(&d, policy, dt_rank_is_first(k) ? dt_rundir_path(k->r->d->dir) : NULL);
}

/* Planned and measured peak of memory, evaluations and baselines included. */
static void log_memory_peak(const dt_rank *k, int64_t index)
{
    if (k->has_peak) {
        dt_log(DT_LOG_INFO, "phase %lld (%s) took %.1f MB resident at most, planned were %.1f MB", (long long)index + 1,
               k->r->d->session->phase[index]->desc.id, (double)dt_rss_peak_bytes() / 1e6,
               (double)k->forecast.resident / 1e6);
    }
}

/* Memory of a phase is returned before the next one begins: arenas, and freed blocks of the heap. */
static void log_memory_release(const dt_rank *k, int64_t index)
{
    const dt_session *s = k->r->d->session;
    const uint64_t arenas = dt_arena_live_bytes();
    uint64_t free_bytes = 0, total = 0;
    char device[64] = "";
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
    if (s->device.handle != NULL && s->device.ops->memory(s->device.handle, &free_bytes, &total) == DT_OK) {
        snprintf(device, sizeof(device), ", device %.1f of %.1f MB free", (double)free_bytes / 1e6,
                 (double)total / 1e6);
    }
    dt_log(arenas > 0 ? DT_LOG_WARN : DT_LOG_INFO, "phase %lld (%s) is released: arenas %.1f MB, resident %.1f MB%s",
           (long long)index + 1, s->phase[index]->desc.id, (double)arenas / 1e6, (double)dt_rss_bytes() / 1e6, device);
}

dt_status dt_rank_run_phases(dt_rank *k)
{
    dt_run_context *r = k->r;
    const dt_session *s = r->d->session;
    for (int64_t i = r->start.begin; i < s->last; i++) {
        const dt_status entered = k->is_first_here ? dt_session_enter_phase(r->d->session, i) : DT_OK;
        DT_TRY(dt_comm_join(k->comm, entered));
        const dt_status st = run_phase(k, i);
        const uint64_t steps = st >= 0 ? dt_trainer_step_number(k->stage->trainer) : 0;
        dt_policy_result *policy = NULL;
        const dt_status kept = st == DT_DONE ? dt_policy_result_capture(k->stage, &policy) : DT_OK;
        dt_device_watch_end(&k->device);
        dt_stage_destroy(k->stage);
        dt_snapshot_backup_fini(&k->backup);
        k->stage = NULL;
        const dt_status compared = kept == DT_OK ? compare_with_baselines(k, i, policy) : kept;
        dt_policy_result_free(policy);
        if (st >= 0 && dt_rank_is_first(k)) {
            log_memory_peak(k, i);
        }
        DT_TRY_DONE(st);
        DT_TRY(compared);
        if (st != DT_DONE) {
            if (dt_rank_is_first(k)) {
                *r->d->stopped_p = true;
            }
            return DT_OK; /* --max-steps */
        }
        DT_TRY(dt_comm_barrier(k->comm));
        if (k->is_first_here) {
            r->base_step += steps;
            log_memory_release(k, i);
        }
        DT_TRY(dt_comm_barrier(k->comm));
    }
    return DT_OK;
}
