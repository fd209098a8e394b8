/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run logs, shows and records of its phase; see rank.h.
 */
#include <config.h>

#include "run/rank.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "telemetry/tensorboard/event_files.h"
#include "run/batch_auto.h"
#include "telemetry/report/html.h"
#include "plan/expect.h"
#include "plan/fit.h"
#include "plan/forecast.h"

#include <math.h>
#include <stdio.h>

/* How much of the phase is done, 0..1, by the rule that will end it first; NAN where nothing is known to. */
static double compute_part_done(const dt_rank *k, const dt_progress *p)
{
    const struct {
        double done, limit;
    } rule[] = {{(double)p->step, (double)p->steps},
                {(double)p->step, (double)k->stop.steps},
                {(double)p->step, (double)k->r->d->max_steps},
                {(double)dt_rank_iterations(k, p), (double)k->stop.iterations},
                {dt_rank_phase_s(k), k->stop.time}};
    double part = NAN;
    for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
        part = rule[i].limit > 0 ? fmax(part, fmin(1, rule[i].done / rule[i].limit)) : part; /* fmax passes NAN over */
    }
    return part;
}

/* What the watch saw last, and the two levels above which it acts. */
static void record_memory_watch(const dt_memory_watch *w, dt_metrics *m)
{
    if (w->limit == 0) {
        return;
    }
    dt_metrics_add_scalar(m, "mem/watched", (double)w->used);
    if (w->o.warn_fraction > 0) {
        dt_metrics_add_scalar(m, "mem/warn_level", w->o.warn_fraction * (double)w->limit);
    }
    if (w->o.shed_fraction > 0) {
        dt_metrics_add_scalar(m, "mem/shed_level", w->o.shed_fraction * (double)w->limit);
    }
}

static void add_to_trend(dt_trend *t, double value)
{
    if (isfinite(value)) {
        t->value[t->n++ % DT_TREND_ROUNDS] = value;
    }
}

static double last_of_trend(const dt_trend *t)
{
    return t->n > 0 ? t->value[(t->n - 1) % DT_TREND_ROUNDS] : NAN;
}

/* Mean of the last rounds minus the mean of as many before them, five where there are; NAN: fewer than two each. */
static double change_of_trend(const dt_trend *t)
{
    const uint64_t n = t->n < DT_TREND_ROUNDS ? t->n : DT_TREND_ROUNDS, half = n / 2;
    double change = 0;
    for (uint64_t i = 0; i < 2 * half; i++) {
        change += (i < half ? 1 : -1) * t->value[(t->n - 1 - i) % DT_TREND_ROUNDS];
    }
    return half >= 2 ? change / (double)half : NAN;
}

static const char *name_of_headline(const dt_rank *k)
{
    const bool acts = k->stage->rollout != NULL && k->stage->env.layout.spec.n_metrics > 0;
    return acts ? k->stage->env.layout.spec.metrics[0] : NULL;
}

/* The parts of the view that are known before the first iteration. */
static dt_progress_view make_empty_view(const dt_rank *k, uint64_t done, uint64_t limit)
{
    const uint64_t stop = (uint64_t)k->stop.iterations, of = stop > 0 && (limit == 0 || stop < limit) ? stop : limit;
    const bool acts = k->stage->rollout != NULL;
    return (dt_progress_view){.phase = k->stage->d.phase->desc.id,
                              .unit = acts ? "round" : "epoch",
                              .at = of > 0 && done >= of ? of : done + 1,
                              .of = acts ? of : limit,
                              .rate = NAN,
                              .data_wait = NAN,
                              .rate_unit = acts ? "env steps" : "samples",
                              .env_steps = NAN,
                              .episode_return = NAN,
                              .return_change = NAN,
                              .headline_name = name_of_headline(k),
                              .headline = NAN,
                              .headline_change = NAN,
                              .left_s = -1,
                              .loss = NAN,
                              .grad_norm = NAN,
                              .learning_rate = NAN,
                              .rss_bytes = dt_rss_bytes(),
                              .loss_scale = 1};
}

static void add_episodes(dt_rank *k, dt_progress_view *v)
{
    if (k->stage->rollout == NULL) {
        return;
    }
    const uint64_t steps = dt_rollout_env_steps(k->stage->rollout);
    v->env_steps = steps != DT_ENV_STEPS_UNKNOWN ? (double)steps : NAN;
    add_to_trend(&k->episode_return, dt_metrics_pending_mean(k->r->metrics, "charts/episodic_return"));
    if (v->headline_name != NULL) {
        char name[128];
        snprintf(name, sizeof(name), "env/%s", v->headline_name);
        add_to_trend(&k->headline, dt_metrics_pending_mean(k->r->metrics, name));
    }
    v->episode_return = last_of_trend(&k->episode_return);
    v->return_change = change_of_trend(&k->episode_return);
    v->headline = last_of_trend(&k->headline);
    v->headline_change = change_of_trend(&k->headline);
}

void dt_rank_begin_progress(dt_rank *k)
{
    k->episode_return.n = k->headline.n = 0;
    k->has_estimated = false;
    if (dt_rank_is_first(k)) {
        const bool acts = k->stage->rollout != NULL;
        const uint64_t per_epoch = dt_trainer_steps_per_epoch(k->stage->trainer);
        const uint64_t steps = dt_trainer_steps(k->stage->trainer);
        const uint64_t rounds = (uint64_t)k->forecast.iterations;
        const uint64_t limit = acts ? rounds : per_epoch > 0 ? steps / per_epoch : 0;
        const uint64_t done =
            acts && rounds > 0 && steps > 0 ? k->begin_step / (steps / rounds > 0 ? steps / rounds : 1) : k->epoch;
        dt_progress_view v = make_empty_view(k, acts && rounds == 0 ? 0 : done, limit);
        v.step = k->begin_step;
        v.steps = steps;
        dt_screen_begin(k->r->screen, &v);
    }
}

/* The first measurement of the whole: a round, or steps of a few seconds. */
static void log_measured_time(dt_rank *k, bool acts, double took_s, double left_s)
{
    enum { ENOUGH_S = 3 };
    char left[DT_NUMBER_BYTES], took[DT_NUMBER_BYTES];
    if (k->has_estimated || left_s <= 0 || (!acts && took_s < ENOUGH_S)) {
        return;
    }
    k->has_estimated = true;
    dt_log(DT_LOG_INFO, "expected wall time: about %s more for this phase, by estimate from the first %s that took %s",
           dt_duration_text(left_s, left), acts ? "round" : "steps", dt_duration_text(took_s, took));
}

void dt_rank_report_iteration(dt_rank *k, const dt_progress *p, bool force)
{
    dt_run_context *r = k->r;
    const dt_trainer_times t = dt_trainer_times_get(k->stage->trainer);
    const double now = dt_clock_s();
    k->rate_samples += p->samples;
    if (k->rate_s == 0 || now - k->rate_s > 0.5) { /* over half a second it is steady enough to read */
        const double since = k->rate_s > 0 ? k->rate_s : k->begin_s;
        k->rate = now > since ? (double)k->rate_samples / (now - since) : (double)NAN;
        k->rate_s = now;
        k->rate_samples = 0;
    }
    const double part = compute_part_done(k, p), made = part - k->from_part;
    const double left = made > 0 ? (1 - part) * (now - k->from_s) / made : -1; /* made may be NAN */
    log_measured_time(k, k->stage->rollout != NULL, now - k->from_s, left);
    if (isnan(k->from_part)) { /* resumed: this process knows from here on */
        k->from_part = part;
        k->from_s = now;
    }
    const bool acts = k->stage->rollout != NULL;
    dt_progress_view v = make_empty_view(k, acts ? p->epoch + p->epoch_end : p->epoch, p->epochs);
    v.step = p->step;
    v.steps = p->steps;
    v.rate = k->rate;
    v.left_s = left;
    v.loss = p->loss;
    v.grad_norm = p->grad_norm;
    v.learning_rate = p->learning_rate;
    v.data_wait = t.step > 0 ? t.data_wait / t.step : (double)NAN;
    v.loss_scale = dt_trainer_scaler(k->stage->trainer)->scale;
    add_episodes(k, &v);
    dt_activity_set(DT_ACTIVITY_NONE, 0, 0);
    dt_screen_show(r->screen, &v, force);
    dt_metrics_add_scalar(r->metrics, "loss", p->loss);
    dt_metrics_add_scalar(r->metrics, "lr", p->learning_rate);
    dt_metrics_add_scalar(r->metrics, "grad/norm", p->grad_norm);
    dt_metrics_add_scalar(r->metrics, "charts/SPS", k->rate);
    dt_metrics_add_scalar(r->metrics, "time/step", t.step > 0 ? t.step : (double)NAN); /* none before the first step */
    dt_metrics_add_scalar(r->metrics, "time/data_wait", t.step > 0 ? t.data_wait : (double)NAN);
    if (t.buckets > 0 && dt_comm_size(k->comm) > 1) {
        dt_metrics_add_scalar(r->metrics, "time/reduce", t.reduce);
        dt_metrics_add_scalar(r->metrics, "time/share", t.share);
    }
    dt_metrics_add_scalar(r->metrics, "mem/rss", v.rss_bytes > 0 ? (double)v.rss_bytes : (double)NAN);
    dt_metrics_add_scalar(r->metrics, "mem/peak", (double)(k->has_peak ? dt_rss_peak_bytes() : v.rss_bytes));
    dt_metrics_add_scalar(r->metrics, "mem/planned", (double)k->forecast.resident);
    record_memory_watch(&k->watch, r->metrics);
    if (k->stage->env.in_process) {
        dt_metrics_add_scalar(r->metrics, "mem/workers", (double)k->watch.workers);
        dt_metrics_add_scalar(r->metrics, "mem/workers_planned", (double)k->forecast.processes);
    }
    dt_metrics_add_scalar(r->metrics, "mem/arenas", (double)dt_arena_peak_bytes());
    dt_metrics_add_scalar(r->metrics, "mem/arenas_planned", (double)k->forecast.arenas);
    if (k->stage->rollout != NULL && dt_rollout_env_steps(k->stage->rollout) != DT_ENV_STEPS_UNKNOWN) {
        dt_metrics_add_scalar(r->metrics, "env_steps", (double)dt_rollout_env_steps(k->stage->rollout));
    }
    dt_device_watch_update(&k->device, now, r->metrics);
    if (!isnan(part)) {
        dt_metrics_add_scalar(r->metrics, "progress", part);
    }
}

bool dt_rank_histograms_due(const dt_rank *k, const dt_progress *p)
{
    const uint64_t every = k->histogram_every;
    return every > 0 && p->epoch_end && k->stage->trainer != NULL &&
           (p->epoch == 0 || (p->epoch + 1) % every == 0 || p->step == p->steps);
}

static void write_histograms(const dt_rank *k, const dt_progress *p)
{
    if (dt_rank_histograms_due(k, p)) {
        dt_event_files_write_models(k->stage, k->r->metrics, p->step);
    }
}

static void log_first_step(dt_rank *k)
{
    if (!k->has_stepped) {
        dt_log(DT_LOG_INFO, "first step done after %.2f s, started after %.2f s", dt_clock_s() - k->enter_s,
               k->first_s - k->enter_s);
        k->has_stepped = true;
    }
}

dt_status dt_rank_write_progress(const dt_rank *k, int64_t index)
{
    const dt_run_context *r = k->r;
    const uint64_t most = r->d->max_steps, at = dt_trainer_step_number(k->stage->trainer);
    uint64_t steps = dt_trainer_steps(k->stage->trainer);
    int64_t n_params = 0, n_trained = 0;
    dt_stage_count_params(k->stage, &n_params, &n_trained);
    const uint64_t limit[] = {(uint64_t)k->stop.steps, most >= at ? most : 0}; /* of what is left out, none */
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
                               .steps_per_epoch = dt_trainer_steps_per_epoch(k->stage->trainer),
                               .parameters = n_params,
                               .trained = n_trained};
    return dt_rundir_write_progress(r->d->dir, &p);
}

/* Against the machine, before the first step. */
static dt_status check_plan(dt_rank *k)
{
    bool is_beyond = false;
    const dt_status st = dt_fit_stage(k->stage, k->r->d->max_steps, &k->forecast, true, &is_beyond);
    if (!is_beyond) {
        return st;
    }
    dt_forecast_log(&k->forecast);
    return dt_fit_advise(&k->stage->d, st);
}

/* Which rank has how much of a batch, where that is not as even as can be. */
static void log_shards(const dt_rank *k)
{
    dt_str each = {0};
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t r = 0; r < dt_comm_size(k->comm); r++) {
        const uint32_t n = dt_trainer_shards(k->stage->trainer, r);
        dt_str_addf(&each, " %u", n);
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    if (most - least > 1) {
        dt_log(DT_LOG_INFO, "shards of each rank, by comm.shard_weights:%s", dt_str_text(&each));
    }
    dt_str_fini(&each);
}

static void log_environment(const dt_rank *k)
{
    dt_str text = {0};
    dt_forecast_append_env_text(k->stage, &k->forecast, "", &text);
    dt_log_lines(DT_LOG_INFO, dt_str_text(&text));
    dt_str_fini(&text);
}

static void log_expected_time(const dt_rank *k)
{
    dt_str text = {0};
    dt_expected e;
    dt_estimate_duration(k->stage, &k->forecast, k->r->d->max_steps, false, &e);
    dt_estimate_text(&e, &text);
    dt_log(DT_LOG_INFO, "expected wall time: %s", dt_str_text(&text));
    dt_str_fini(&text);
}

static void log_batch_choice(const dt_rank *k)
{
    dt_str text = {0};
    dt_batch_append_choice(k->r->d->session, k->stage->d.index, &text);
    if (text.bytes > 0) {
        dt_log(DT_LOG_INFO, "%s", dt_str_text(&text));
    }
    dt_str_fini(&text);
}

dt_status dt_rank_log_plan(dt_rank *k)
{
    const dt_trainer *t = k->stage->trainer;
    int64_t n_params = 0, n_trained = 0;
    if (!dt_rank_is_first(k)) {
        return DT_OK;
    }
    for (uint32_t i = 0; i < k->stage->n_models; i++) {
        dt_log(DT_LOG_INFO, "%-10s %s", k->stage->model[i].role, k->stage->model[i].comp->desc.id);
    }
    dt_stage_count_params(k->stage, &n_params, &n_trained);
    dt_log(DT_LOG_INFO, "%lld parameters (%lld trained), %llu steps; %u worker%s on %u rank%s, %s", (long long)n_params,
           (long long)n_trained, (unsigned long long)dt_trainer_steps(t), k->stage->d.threads,
           k->stage->d.threads == 1 ? "" : "s", dt_comm_size(k->comm), dt_comm_size(k->comm) == 1 ? "" : "s",
           dt_cpu_isa());
    DT_TRY(dt_forecast_create(k->stage, k->r->d->max_steps, &k->forecast));
    DT_TRY(check_plan(k));
    log_environment(k);
    log_expected_time(k);
    log_batch_choice(k);
    dt_forecast_log(&k->forecast);
    dt_forecast_warn_disk(&k->forecast, dt_rundir_path(k->r->d->dir));
    dt_arena_peak_reset();
    k->has_peak = dt_rss_peak_reset();
    log_shards(k);
    if (dt_comm_size(k->comm) > 1) {
        dt_log(DT_LOG_INFO, "a step of rank 0 sends %.3g MB of gradients and parameters",
               (double)dt_trainer_sent_bytes(t) / 1e6);
    }
    if (dt_trainer_has_fast_sums(t)) {
        dt_log(DT_LOG_INFO, "engine.reduction = fast: gradients of ranks are summed in the order of their library; "
                            "results depend on the number of ranks");
    }
    if (dt_trainer_is_mixed_precision(t)) {
        dt_log(DT_LOG_INFO, "mixed precision: products in half precision%s%s, loss scale %g, masters and sums in fp32",
               k->r->d->session->device.ops == NULL ? " by " : "",
               k->r->d->session->device.ops == NULL ? dt_cpu_bf16_isa() : "", dt_trainer_scaler(t)->scale);
    }
    return DT_OK;
}

/* Steps of the iteration whose batch had no sample: none of them was an update. */
static void record_empty_steps(dt_rank *k)
{
    const uint64_t all = dt_trainer_empty_steps(k->stage->trainer), n = all - k->n_empty;
    if (n == 0) {
        return;
    }
    if (k->n_empty == 0) {
        dt_log(DT_LOG_WARN,
               "%llu of the steps of this iteration had no sample, and changed nothing; from now on such steps are "
               "counted in train/empty_steps",
               (unsigned long long)n);
    }
    dt_metrics_add_scalar(k->r->metrics, "train/empty_steps", (double)n);
    k->n_empty = all;
}

dt_status dt_rank_record(dt_rank *k, const dt_progress *p, bool is_wanted)
{
    dt_run_context *r = k->r;
    log_first_step(k);
    dt_rank_report_iteration(k, p, p->step == p->steps);
    write_histograms(k, p);
    record_empty_steps(k);
    if (!is_wanted && k->iterations != 1 && k->iterations % k->record_every != 0) {
        dt_metrics_discard_pending(r->metrics);
        return DT_OK;
    }
    return dt_metrics_flush(r->metrics, k->stage->d.phase->desc.id, p->step, dt_clock_s() - r->start_s);
}
