/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plan/forecast.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "state/checkpoint/checkpoint.h"
#include "engine/device/memory.h"
#include "dtrain/ext/scene.h"
#include "plugin/service/plugin_memory.h"
#include "rl/rollout/rollout.h"

#include <stdio.h>
#include <string.h>

/* What a run adds to the program and its heap once it goes, measured on many: pages of code, records, event files, a
 * checkpoint being written; and, where it evaluates on recordings, results and pictures; or scenes of an episode. */
enum { RUN_BYTES = 400 * 1000, RESULT_BYTES = 1200 * 1000, FILM_BYTES = 400 * 1000 };

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void add_memory_part(const dt_stage *s, dt_forecast *f, const char *name, uint64_t mapped, uint64_t resident)
{
    const uint32_t ranks = dt_comm_process_size(s->d.comm);
    if (mapped > 0 && f->n_parts < DT_FORECAST_PARTS) {
        f->part[f->n_parts++] = (dt_forecast_part){name, mapped * ranks, resident * ranks};
        f->arenas += mapped * ranks;
        f->resident += (resident < mapped ? resident : mapped) * ranks;
    }
}

static void prepare_data(dt_stage *s, const dt_samples *data)
{
    if (!dt_trainer_trains_on(s->trainer, data) && dt_trainer_compile_evaluation(s->trainer, data) < 0) {
        dt_error_clear();
    }
}

/* Data that the phase bound and does not train on is what it evaluates on. One that the model cannot be run on is not
 * evaluated, or reports it then. A phase that learns from other data than its rollout's gets at the rollout's rows by
 * an evaluation, each time it has collected. */
static void prepare_evaluation(dt_stage *s)
{
    if (s->d.phase->ops.phase.evaluate != NULL) {
        for (uint32_t i = 0; i < s->n_data; i++) {
            if (s->data[i].created) {
                prepare_data(s, &s->data[i].source);
            }
        }
    }
    if (s->rollout != NULL) {
        prepare_data(s, &s->rollout->data.source);
    }
}

static void add_rollout(const dt_stage *s, dt_forecast *f)
{
    const dt_rollout_need *n = &f->rollout;
    const uint32_t ranks = dt_comm_process_size(s->d.comm);
    add_memory_part(s, f, "acting", n->policy, n->policy_resident);
    add_memory_part(s, f, "rollouts", n->buffer, n->buffer_resident);
    add_memory_part(s, f, "evaluation_episodes", n->evaluation, n->evaluation_resident);
    /* the first instance is there already */
    const uint64_t all = n->instance * (n->instances + n->evaluated) * ranks;
    f->processes = n->processes > 0 ? all + n->shared : 0;
    f->environments = n->processes > 0 ? 0 : all;
    f->resident += f->environments;
}

/* A run that --max-steps ends before its first evaluation touches nothing of what is ready for it. */
static bool will_evaluate(const dt_stage *s, const dt_forecast *f, uint64_t max_steps)
{
    const uint64_t first = (uint64_t)f->eval_interval * dt_trainer_steps_per_epoch(s->trainer);
    const uint64_t begin = dt_trainer_step_number(s->trainer);
    return s->rollout != NULL || max_steps == 0 || (first > 0 && max_steps / first > begin / first);
}

/* All of them is read in a pass or two. What checks have touched is released, so that it counts once. */
static void add_recordings(const dt_stage *s, dt_forecast *f)
{
    for (uint32_t i = 0; i < s->n_datasets; i++) {
        if (s->dataset[i].release_pages != NULL) {
            s->dataset[i].release_pages(s->dataset[i].self);
        }
        f->recordings += s->dataset[i].bytes * dt_comm_process_size(s->d.comm);
    }
    f->resident += f->recordings;
}

static void add_trainer_memory(dt_trainer_memory *to, const dt_trainer_memory *of)
{
    to->params += of->params;
    to->grads += of->grads;
    to->moments += of->moments;
    to->activations += of->activations;
    to->feed += of->feed;
    to->evaluation += of->evaluation;
    to->inputs += of->inputs;
}

/* Arenas of all trainers together. */
static void get_arenas(const dt_stage *s, const dt_forecast *f, dt_trainer_memory *mapped, dt_trainer_memory *resident)
{
    *mapped = *resident = (dt_trainer_memory){0};
    for (uint32_t i = 0; i < s->n_trains; i++) {
        dt_trainer_memory m, r;
        const dt_trainer *t = s->train[i].trainer;
        const bool is_of_rollout = s->rollout != NULL && (i == 0 || dt_trainer_live_samples(t)->is_live);
        dt_trainer_arenas_get(t, is_of_rollout ? f->rollout.mean : NULL, &m, &r);
        add_trainer_memory(mapped, &m);
        add_trainer_memory(resident, &r);
    }
}

static void add_memory(dt_stage *s, uint64_t max_steps, dt_forecast *f)
{
    dt_trainer_memory mapped, resident;
    get_arenas(s, f, &mapped, &resident);
    add_memory_part(s, f, "parameters", mapped.params, resident.params);
    add_memory_part(s, f, "gradients", mapped.grads, resident.grads);
    add_memory_part(s, f, "moments", mapped.moments, resident.moments);
    add_memory_part(s, f, "activations", mapped.activations, resident.activations);
    add_memory_part(s, f, "batches", mapped.feed, resident.feed);
    const bool is_evaluated = will_evaluate(s, f, max_steps);
    add_memory_part(s, f, "evaluation", mapped.evaluation, is_evaluated ? resident.evaluation : 0);
    add_memory_part(s, f, "evaluation_inputs", mapped.inputs, is_evaluated ? resident.inputs : 0);
    if (s->rollout != NULL) {
        add_rollout(s, f);
    }
    add_recordings(s, f);
    /* parameters are resident by now, and so are the moments of a resumed run */
    const bool goes_on = dt_trainer_step_number(s->trainer) > 0;
    const uint64_t counted = (resident.params + (goes_on ? resident.moments : 0)) * dt_comm_process_size(s->d.comm);
    const uint64_t now = dt_rss_bytes();
    f->base = (now > counted ? now - counted : 0) + RUN_BYTES;
    if (s->rollout != NULL) {
        const dt_component *env = &s->env.comp->desc;
        if (env->extension != NULL && env->extension(DT_EXT_SCENE) != NULL) {
            f->base += FILM_BYTES;
        }
    } else if (is_evaluated && mapped.inputs > 0) {
        f->base += RESULT_BYTES;
    }
    f->plugins = dt_plugin_memory_untouched_bytes();
    f->resident += f->base + f->plugins;
    if (s->d.device_ops != NULL) {
        const dt_trainer_memory *m = &f->on_device;
        for (uint32_t i = 0; i < s->n_trains; i++) {
            dt_trainer_memory of;
            dt_trainer_memory_get(s->train[i].trainer, &of);
            add_trainer_memory(&f->on_device, &of);
        }
        f->device = m->params + m->grads + m->moments + m->activations + m->feed;
        /* what evaluation takes there was allocated when it was prepared */
        const uint64_t held = dt_device_allocated_bytes();
        f->device = held > f->device ? held : f->device;
    }
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

/* An option of the phase's own that many phases have, 0: this one has not. */
static int64_t read_phase_option(const dt_stage *s, const char *name)
{
    char path[128];
    const char *text = NULL;
    dt_origin unused;
    int64_t value = 0;
    snprintf(path, sizeof(path), "%s.%s", s->d.phase->desc.id, name);
    if (dt_config_get(s->d.config, s->d.index, path, &text, &unused) != DT_OK || !dt_parse_whole(text, &value)) {
        dt_error_clear();
        return 0;
    }
    return value;
}

/* Returns, costs and their limits are of episodes that have ended. Rounds that fill a replay are short on purpose, and
 * mean nothing here. */
static void add_episodes(const dt_stage *s, dt_forecast *f)
{
    const dt_rollout *r = s->rollout;
    const uint64_t longest = r->env->layout.spec.max_steps;
    const uint64_t most = f->stop.iterations > 0 && f->stop.iterations < f->iterations ? (uint64_t)f->stop.iterations
                                                                                       : (uint64_t)f->iterations;
    const uint64_t all = most <= UINT64_MAX / r->d.steps ? most * r->d.steps : 0;
    const bool has_limits = s->d.phase->ops.phase.finish != NULL; /* that each round has to evaluate */
    if (r->replay == NULL && longest > (has_limits || all == 0 ? r->d.steps : all)) {
        f->episode_steps = longest;
        f->round_steps = r->d.steps;
        f->phase_steps = all;
    }
}

static void add_limits(dt_stage *s, dt_forecast *f)
{
    f->stop = s->opts.stop;
    f->saving = s->opts.checkpoint;
    f->eval_interval = s->d.phase->ops.phase.evaluate != NULL ? s->opts.training.eval_interval : 0;
    f->iterations = read_phase_option(s, "iterations");
    if (s->rollout != NULL) {
        f->round = (uint64_t)s->rollout->d.steps * s->rollout->split.instances;
        f->round_asked = read_phase_option(s, "train_batch");
        add_episodes(s, f);
    }
}

static void add_disk(const dt_stage *s, dt_forecast *f)
{
    uint64_t elements = 0; /* parameters and moments */
    for (uint32_t i = 0; i < s->n_trains; i++) {
        const dt_param_table *p = s->train[i].params;
        elements += (uint64_t)p->total + (uint64_t)p->base_total * dt_trainer_n_moments(s->train[i].trainer);
    }
    if (s->rollout != NULL) {
        dt_rollout_replay_plan(s->rollout, f->rollout.mean, &f->replay);
    }
    f->checkpoint = elements * sizeof(float) + f->replay.saved;
    /* those kept, the best, the phase's end, and the one being written before the oldest goes */
    f->kept = (uint32_t)f->saving.keep_last + (f->saving.best_by[0] != '\0') + 1;
    f->disk = f->checkpoint * (f->kept + 1);
}

dt_status dt_forecast_create(dt_stage *s, uint64_t max_steps, dt_forecast *out)
{
    memset(out, 0, sizeof(*out));
    prepare_evaluation(s);
    pthread_mutex_lock(s->d.config_lock);
    dt_status st = DT_OK;
    add_limits(s, out);
    if (s->rollout != NULL) {
        st = dt_rollout_measure_need(s->rollout, s->trainer, &out->rollout);
    }
    pthread_mutex_unlock(s->d.config_lock);
    DT_TRY(st);
    add_memory(s, max_steps, out);
    add_disk(s, out);
    return DT_OK;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static double megabytes(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

static void count_role(const dt_stage *s, const char *role, int64_t *all, int64_t *trained, int64_t *constant)
{
    const size_t n = strlen(role);
    *all = *trained = *constant = 0;
    const dt_param *p = NULL;
    for (uint32_t k = 0; (p = dt_stage_param(s, k, NULL)) != NULL; k++) {
        if (strncmp(p->name, role, n) == 0 && p->name[n] == '.') {
            *all += p->count;
            if (!p->frozen && !p->is_statistic) {
                *trained += p->count;
            } else if (p->is_constant) {
                *constant += p->count;
            }
        }
    }
}

static void append_target_networks(const dt_stage *s, dt_str *out)
{
    int64_t n = 0;
    for (uint32_t k = 0; k < s->params.n; k++) {
        if (s->params.param[k].is_target) {
            n += s->params.param[k].count;
        }
    }
    for (uint32_t i = 0; i < s->params.n_targets; i++) {
        dt_str_addf(out, "%s%s of %s", i == 0 ? "  targets      " : ", ", s->params.target[i].name,
                    s->params.target[i].role);
    }
    if (s->params.n_targets > 0) {
        dt_str_addf(out, ": %lld parameters more\n", (long long)n);
    }
}

static void append_time(const dt_stage *s, const dt_forecast *f, dt_str *out)
{
    const dt_trainer *t = s->trainer;
    const uint64_t per_pass = dt_trainer_steps_per_epoch(t), samples = dt_trainer_samples(t);
    const uint64_t used = per_pass * dt_trainer_batch(t), left = used < samples ? samples - used : 0;
    const dt_sampling kind = dt_trainer_sampling(t);
    dt_str_addf(out, "phase %s: %llu steps (%llu %s)", s->d.phase->desc.id, (unsigned long long)dt_trainer_steps(t),
                (unsigned long long)per_pass, s->stream != NULL ? "a window of the stream" : "a pass over the data");
    if (f->iterations > 0) {
        dt_str_addf(out, " in %lld rounds of collecting samples and training", (long long)f->iterations);
    }
    dt_str_addf(out, "\n  a step       %llu of %llu samples", (unsigned long long)dt_trainer_batch(t),
                (unsigned long long)samples);
    if (kind == DT_SAMPLING_WEIGHTED) {
        dt_str_addf(out, "; drawn by their weights");
    } else if (left > 0) {
        dt_str_addf(out, "; %llu, %s, are left out of a pass", (unsigned long long)left,
                    kind == DT_SAMPLING_SEQUENTIAL ? "the last" : "others each time");
    }
    if (f->round > 0) {
        dt_str_addf(out, "\n  a round      %llu steps of environments", (unsigned long long)f->round);
    }
    if (f->round_asked > 0 && f->round != (uint64_t)f->round_asked) {
        dt_str_addf(out, ": train_batch = %lld, rounded up to whole fragments of %u environments",
                    (long long)f->round_asked, s->rollout->split.instances);
    }
    dt_str_add(out, "\n");
    dt_forecast_append_env_text(s, f, "  ", out);
    dt_str_add(out, "  stops        after the last step");
    const struct {
        const char *unit;
        double value;
    } rule[] = {{"epochs", (double)f->stop.epochs},
                {"iterations", (double)f->stop.iterations},
                {"steps", (double)f->stop.steps},
                {"s", f->stop.time}};
    for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
        if (rule[i].value > 0) {
            dt_str_addf(out, ", or after %g %s", rule[i].value, rule[i].unit);
        }
    }
    dt_str_add(out, "\n");
}

static const char *name_of_sums(const dt_stage *s)
{
    static const char *const exact[] = {
        [DT_HALF_NONE] = "summed in one fixed tree: results are the same on any number of ranks",
        [DT_HALF_BF16] =
            "summed in one fixed tree, values rounded to bf16 (comm.wire): results are the same on any number of ranks",
        [DT_HALF_FP16] = ("summed in one fixed tree, values rounded to fp16 (comm.wire): results are the same on any "
                          "number of ranks")};
    return dt_trainer_has_fast_sums(s->trainer)
               ? "summed by the ranks' library (engine.reduction = fast): results depend on the number of ranks"
               : exact[dt_trainer_wire_type(s->trainer)];
}

static const char *name_of_wire_type(const dt_stage *s)
{
    static const char *const names[] = {DT_HALVES(DT_CHOICE_WORD)};
    return names[dt_trainer_wire_type(s->trainer)];
}

static bool has_no_full_episode(const dt_forecast *f) /* an episode of the phase, if they are as long as they may be */
{
    return f->phase_steps > 0 && f->phase_steps < f->episode_steps;
}

static void append_episodes(const dt_forecast *f, dt_str *out)
{
    if (f->episode_steps == 0) {
        return;
    }
    dt_str_addf(out,
                "an episode has up to %llu steps, and %s %llu of each instance: ", (unsigned long long)f->episode_steps,
                has_no_full_episode(f) ? "the whole phase" : "a round",
                (unsigned long long)(has_no_full_episode(f) ? f->phase_steps : f->round_steps));
    dt_str_add(out, has_no_full_episode(f)
                        ? "no episode may end in training, and then no return, cost or limit is ever known"
                        : "in some rounds no episode may end, and then no return, cost or limit is known");
}

void dt_forecast_text(const dt_stage *s, const dt_forecast *f, dt_str *out)
{
    const uint32_t ranks = dt_comm_process_size(s->d.comm);
    const dt_rollout_need *n = &f->rollout;
    append_time(s, f, out);
    if (f->episode_steps > 0) {
        dt_str_add(out, "  warning      ");
        append_episodes(f, out);
        dt_str_add(out, "\n");
    }
    for (uint32_t i = 0; i < s->n_models; i++) {
        int64_t all = 0, trained = 0, constant = 0;
        count_role(s, s->model[i].role, &all, &trained, &constant);
        dt_str_addf(out, "  %-12s %-22s %10lld parameters, %s\n", s->model[i].role, s->model[i].comp->desc.id,
                    (long long)all,
                    all == 0                   ? "none to train"
                    : trained == 0             ? "frozen"
                    : trained + constant < all ? "trained in part"
                                               : "trained");
    }
    int64_t n_params = 0, n_trained = 0;
    dt_stage_count_params(s, &n_params, &n_trained);
    dt_str_addf(out, "  parameters   %lld, of which trained %lld\n", (long long)n_params, (long long)n_trained);
    append_target_networks(s, out);
    dt_str_addf(out, "  threads      %u on %s%u rank%s", s->d.threads, ranks == 1 ? "" : "each of ", ranks,
                ranks == 1 ? "" : "s");
    if (n->instances > 0) {
        dt_str_addf(out, "; %u environments in ", n->instances * ranks);
        if (n->processes > 0) {
            dt_str_addf(out, "%u processes", n->processes * ranks);
        } else {
            dt_str_add(out, "this process");
        }
        dt_str_addf(out, ", %u more while it evaluates", n->evaluated * ranks);
    }
    if (s->env.n_mix > 0) {
        dt_str_add(out, "\n  mix          ");
        dt_env_describe_mix(&s->env, out);
    }
    dt_str_addf(out, "\n  gradients    %s", name_of_sums(s));
    if (dt_comm_size(s->d.comm) > 1) {
        dt_str_addf(out, "; rank 0 has %u shards, and sends %.3g MB of gradients and parameters a step",
                    dt_trainer_shards(s->trainer, 0), (double)dt_trainer_sent_bytes(s->trainer) / 1e6);
    }
    dt_str_add(out, "\n  memory, MB   at most / likely:\n");
    for (uint32_t i = 0; i < f->n_parts; i++) {
        dt_str_addf(out, "    %-22s %9.1f / %.1f\n", f->part[i].name, megabytes(f->part[i].mapped),
                    megabytes(f->part[i].resident));
    }
    if (f->environments > 0) {
        dt_str_addf(out, "    %-22s           %.1f (%.2f each)\n", "environments", megabytes(f->environments),
                    megabytes(n->instance));
    }
    if (f->recordings > 0) {
        dt_str_addf(out, "    %-22s           %.1f\n", "recordings", megabytes(f->recordings));
    }
    if (f->plugins > 0) {
        dt_str_addf(out, "    %-22s           %.1f\n", "plugins, not yet used", megabytes(f->plugins));
    }
    dt_str_addf(out, "    %-22s           %.1f\n", "program and the rest", megabytes(f->base));
    dt_str_addf(out, "  planned peak %.1f MB resident; arenas %.1f MB at most", megabytes(f->resident),
                megabytes(f->arenas));
    if (f->processes > 0) {
        dt_str_addf(out, "; %u processes with %.1f MB", n->processes * ranks, megabytes(f->processes));
    }
    if (f->device > 0) {
        dt_str_addf(out, "; %.1f MB of the device", megabytes(f->device));
    }
    const dt_plan_cost cost = dt_trainer_step_cost(s->trainer);
    dt_str_addf(out, "\n  work         %.3g GFLOP a step, %.3g GB between ops", cost.flops / 1e9, cost.bytes / 1e9);
    if (f->device > 0) {
        dt_str_addf(out, ", %.3g GB for sums of gradients", (double)dt_trainer_reduction_bytes(s->trainer) / 1e9);
    }
    dt_str_add(out, "\n");
    if (f->replay.samples > 0) {
        dt_str_addf(out, "  replay       %llu samples of up to %llu bytes, %.1f MB %s\n",
                    (unsigned long long)f->replay.samples, (unsigned long long)f->replay.each,
                    megabytes(f->replay.bytes), f->replay.is_in_file ? "of the run directory's disk" : "of memory");
    }
    dt_str_addf(out, "  disk         %.1f MB for checkpoints: %u of %.1f MB are kept, one more while it is written\n",
                megabytes(f->disk), f->kept, megabytes(f->checkpoint));
}

void dt_forecast_log(const dt_forecast *f)
{
    dt_str text = {0};
    for (uint32_t i = 0; i < f->n_parts; i++) {
        dt_str_addf(&text, "%s%s %.1f", i > 0 ? ", " : "", f->part[i].name, megabytes(f->part[i].mapped));
    }
    dt_log(DT_LOG_INFO, "planned peak %.1f MB resident; arenas at most %.1f MB: %s", megabytes(f->resident),
           megabytes(f->arenas), dt_str_text(&text));
    dt_str_clear(&text);
    append_episodes(f, &text);
    if (text.bytes > 0) {
        dt_log(has_no_full_episode(f) ? DT_LOG_WARN : DT_LOG_INFO, "%s", dt_str_text(&text));
    }
    dt_str_fini(&text);
    if (f->device > 0) {
        dt_log(DT_LOG_INFO, "planned peak %.1f MB of the device", megabytes(f->device));
    }
    if (f->processes > 0) {
        dt_log(DT_LOG_INFO, "planned peak %.1f MB in %u processes of environments", megabytes(f->processes),
               f->rollout.processes);
    }
}

/* The first save would find a disk too full, perhaps in hours; until then nothing is wrong yet. */
void dt_forecast_warn_disk(const dt_forecast *f, const char *run_dir)
{
    if (dt_ckpt_check_space(run_dir, f->checkpoint) < 0) {
        dt_log(DT_LOG_WARN, "%s; training begins, and waits for it when a state is saved", dt_error_text());
        dt_error_clear();
    }
}

static void write_models(const dt_stage *s, dt_json_out *o)
{
    dt_json_obj(o, "models");
    for (uint32_t i = 0; i < s->n_models; i++) {
        int64_t all = 0, trained = 0, constant = 0;
        count_role(s, s->model[i].role, &all, &trained, &constant);
        dt_json_obj(o, s->model[i].role);
        dt_json_str(o, "id", s->model[i].comp->desc.id);
        dt_json_i64(o, "parameters", all);
        dt_json_i64(o, "trained", trained);
        dt_json_end(o, '}');
    }
    dt_json_end(o, '}');
    int64_t n_params = 0, n_trained = 0;
    dt_stage_count_params(s, &n_params, &n_trained);
    dt_json_i64(o, "parameters", n_params);
    dt_json_i64(o, "parameters_trained", n_trained);
}

static void write_memory(const dt_forecast *f, dt_json_out *o)
{
    dt_json_obj(o, "bytes"); /* at most */
    for (uint32_t i = 0; i < f->n_parts; i++) {
        dt_json_i64(o, f->part[i].name, (int64_t)f->part[i].mapped);
    }
    dt_json_end(o, '}');
    dt_json_obj(o, "bytes_likely");
    for (uint32_t i = 0; i < f->n_parts; i++) {
        dt_json_i64(o, f->part[i].name, (int64_t)f->part[i].resident);
    }
    dt_json_i64(o, "environments", (int64_t)f->environments);
    dt_json_i64(o, "recordings", (int64_t)f->recordings);
    dt_json_i64(o, "plugins", (int64_t)f->plugins);
    dt_json_i64(o, "rest", (int64_t)f->base);
    dt_json_end(o, '}');
    dt_json_i64(o, "arenas", (int64_t)f->arenas);
    dt_json_i64(o, "planned_peak", (int64_t)f->resident);
    dt_json_i64(o, "planned_peak_processes", (int64_t)f->processes);
    dt_json_i64(o, "planned_peak_device", (int64_t)f->device);
    if (f->device > 0) {
        dt_json_obj(o, "bytes_device");
        dt_json_i64(o, "parameters", (int64_t)f->on_device.params);
        dt_json_i64(o, "gradients", (int64_t)f->on_device.grads);
        dt_json_i64(o, "moments", (int64_t)f->on_device.moments);
        dt_json_i64(o, "activations", (int64_t)f->on_device.activations);
        dt_json_i64(o, "batches", (int64_t)f->on_device.feed);
        dt_json_end(o, '}');
    }
}

void dt_forecast_json(const dt_stage *s, const dt_forecast *f, dt_json_out *o)
{
    dt_json_str(o, "phase", s->d.phase->desc.id);
    write_models(s, o);
    dt_json_i64(o, "steps", (int64_t)dt_trainer_steps(s->trainer));
    dt_json_i64(o, "steps_per_epoch", (int64_t)dt_trainer_steps_per_epoch(s->trainer));
    dt_json_i64(o, "samples", (int64_t)dt_trainer_samples(s->trainer));
    dt_json_i64(o, "samples_per_step", (int64_t)dt_trainer_batch(s->trainer));
    dt_json_i64(o, "iterations", f->iterations);
    if (f->round > 0) {
        dt_json_obj(o, "round"); /* steps of environments */
        dt_json_i64(o, "steps", (int64_t)f->round);
        dt_json_i64(o, "asked", f->round_asked);
        dt_json_end(o, '}');
    }
    dt_forecast_env_json(s, f, o);
    if (f->episode_steps > 0) {
        dt_json_obj(o, "episode"); /* steps of the longest one, and of an instance */
        dt_json_i64(o, "steps", (int64_t)f->episode_steps);
        dt_json_i64(o, "round", (int64_t)f->round_steps);
        dt_json_i64(o, "phase", (int64_t)f->phase_steps);
        dt_json_end(o, '}');
    }
    dt_json_i64(o, "eval_interval", f->eval_interval);
    dt_json_obj(o, "stop");
    dt_json_i64(o, "epochs", f->stop.epochs);
    dt_json_i64(o, "iterations", f->stop.iterations);
    dt_json_i64(o, "steps", f->stop.steps);
    dt_json_f64(o, "time_s", f->stop.time);
    dt_json_end(o, '}');
    write_memory(f, o);
    dt_json_obj(o, "work");
    dt_json_i64(o, "ranks", dt_comm_size(s->d.comm));
    dt_json_i64(o, "threads", s->d.threads);
    dt_json_i64(o, "environments", f->rollout.instances);
    dt_json_i64(o, "environments_evaluating", f->rollout.evaluated);
    dt_json_i64(o, "processes", f->rollout.processes);
    dt_json_end(o, '}');
    dt_json_obj(o, "gradients");
    dt_json_str(o, "reduction", dt_trainer_has_fast_sums(s->trainer) ? "fast" : "exact");
    dt_json_str(o, "wire", name_of_wire_type(s));
    dt_json_i64(o, "shards", dt_trainer_shards(s->trainer, 0));                    /* of rank 0 */
    dt_json_i64(o, "sent_bytes", (int64_t)dt_trainer_sent_bytes(s->trainer));      /* by rank 0 in a step */
    dt_json_i64(o, "sums_bytes", (int64_t)dt_trainer_reduction_bytes(s->trainer)); /* on its device in a step */
    dt_json_end(o, '}');
    if (f->replay.samples > 0) {
        dt_json_obj(o, "replay");
        dt_json_i64(o, "samples", (int64_t)f->replay.samples);
        dt_json_i64(o, "sample_bytes", (int64_t)f->replay.each);
        dt_json_i64(o, "bytes", (int64_t)f->replay.bytes);
        dt_json_bool(o, "in_file", f->replay.is_in_file);
        dt_json_end(o, '}');
    }
    dt_json_obj(o, "disk");
    dt_json_i64(o, "checkpoint", (int64_t)f->checkpoint);
    dt_json_i64(o, "kept", f->kept);
    dt_json_i64(o, "bytes", (int64_t)f->disk);
    dt_json_end(o, '}');
    const dt_plan_cost cost = dt_trainer_step_cost(s->trainer);
    dt_json_obj(o, "step");
    dt_json_f64(o, "flops", cost.flops);
    dt_json_f64(o, "bytes", cost.bytes);
    dt_json_end(o, '}');
}
