/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving; snapshot_load.c is the other way. See snapshot.h.
 */
#include <config.h>

#include "rl/experience/service.h"
#include "state/snapshot/snapshot.h"
#include "state/snapshot/snapshot_names.h"
#include "state/snapshot/snapshot_shards.h"
#include "state/snapshot/snapshot_tensors.h"
#include "plugin/service/stream.h"

#include "engine/backend/kernel.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static dt_status write_bytes(dt_writer *w, const void *p, uint64_t bytes)
{
    dt_str *out = w->priv;
    dt_str_add_n(out, p, bytes);
    return dt_str_status(out);
}

/* What no arena holds: the phase's own state, and that of its rollout. */
static dt_status write_blobs(dt_stage *s, dt_snapshot_held *h)
{
    dt_str_clear(&h->phase);
    dt_str_clear(&h->rollout);
    dt_str_clear(&h->normaliser);
    h->scaler = *dt_trainer_scaler(s->trainer);
    h->env_steps = s->rollout != NULL ? dt_rollout_env_steps(s->rollout) : DT_ENV_STEPS_UNKNOWN;
    if (s->d.phase->ops.phase.save != NULL) {
        dt_writer face = {.struct_size = sizeof(face), .priv = &h->phase, .write = write_bytes};
        DT_TRY_PLUGIN(s->d.phase->ops.phase.save(s->self, &face), "save");
    }
    if (s->rollout != NULL) {
        DT_TRY(dt_rollout_save(s->rollout, &h->rollout));
        DT_TRY(dt_rollout_save_normaliser(s->rollout, &h->normaliser));
    }
    return DT_OK;
}

void dt_snapshot_hold(dt_stage *s, dt_snapshot_held *h)
{
    enum { MAX_PHASE_BYTES = 64 * 1024 }; /* copied in microseconds */
    /* what a replay holds is not kept aside: the iteration that fails may have written over it */
    h->is_too_large = h->is_too_large || (s->rollout != NULL && dt_rollout_has_replay(s->rollout));
    h->is_there = !h->is_too_large && write_blobs(s, h) == DT_OK;
    h->is_too_large = h->is_too_large || h->phase.bytes > MAX_PHASE_BYTES;
    if (!h->is_there) {
        dt_error_clear();
    }
}

void dt_snapshot_held_fini(dt_snapshot_held *h)
{
    dt_str_fini(&h->phase);
    dt_str_fini(&h->rollout);
    dt_str_fini(&h->normaliser);
    dt_str_fini(&h->replay);
    *h = (dt_snapshot_held){.is_there = false};
}

dt_status dt_snapshot_cpu(dt_config *c, int64_t phase, char *out, size_t bytes)
{
    dt_amp_opts amp;
    DT_TRY(dt_config_amp(c, phase, &amp));
    snprintf(out, bytes, "%s%s%s", dt_cpu_class(), amp.enabled ? "+" : "", amp.enabled ? dt_cpu_bf16_isa() : "");
    return DT_OK;
}

static void list_plugin(dt_ckpt_info *info, const dt_loaded *component)
{
    const dt_plugin *p = &component->plugin->desc;
    for (uint32_t i = 0; i < info->n_plugins; i++) {
        if (strncmp(info->plugins[i].name, p->name, sizeof(info->plugins[i].name) - 1) == 0) {
            return;
        }
    }
    if (info->n_plugins < DT_CKPT_MAX_PLUGINS) {
        dt_ckpt_plugin *out = &info->plugins[info->n_plugins++];
        snprintf(out->name, sizeof(out->name), "%.60s", p->name);
        snprintf(out->version, sizeof(out->version), "%.30s", p->version);
        snprintf(out->abi, sizeof(out->abi), "%u.%u", p->abi_major, p->abi_minor);
    }
}

/* What the phase is made of; others were opened for what it might have been, or to be compared with. */
static void list_plugins(const dt_stage *s, dt_ckpt_info *info)
{
    list_plugin(info, s->d.phase);
    for (uint32_t i = 0; i < s->n_models; i++) {
        list_plugin(info, s->model[i].comp);
    }
    for (uint32_t i = 0; i < s->n_data; i++) {
        if (s->data[i].comp != NULL) { /* else it is the phase's own */
            list_plugin(info, s->data[i].comp);
        }
    }
    if (s->env.comp != NULL) {
        list_plugin(info, s->env.comp);
    }
    for (uint32_t i = 0; i < s->env.n_mix; i++) {
        list_plugin(info, s->env.mix[i].comp);
    }
}

/* What training has seen: the stores that are open, and those of the checkpoint that it went on from; with a stream
 * they are judged, and what was read of it is among the latter. */
static void write_stores(const dt_stage *s, dt_json_out *o)
{
    const char *before = dt_str_text(&s->seen_before);
    char digest[DIGEST_TEXT];
    dt_json_arr(o, KEY_STORES);
    for (uint32_t i = 0; i < s->n_datasets && s->stream == NULL; i++) {
        digest_of(&s->dataset[i], digest);
        if (strstr(before, digest) == NULL) {
            dt_json_str(o, NULL, digest);
        }
    }
    for (const char *p = before; strlen(p) >= DIGEST_TEXT; p += DIGEST_TEXT) {
        memcpy(digest, p, DIGEST_TEXT - 1);
        digest[DIGEST_TEXT - 1] = '\0';
        dt_json_str(o, NULL, digest);
    }
    dt_json_end(o, ']');
}

static dt_status fill_info(dt_stage *s, const dt_snapshot_desc *d, dt_ckpt_info *info)
{
    dt_checkpoint_opts opts;
    dt_data_opts data;
    dt_engine_opts engine;
    DT_TRY(dt_config_checkpoint(s->d.config, s->d.index, &opts));
    DT_TRY(dt_config_data(s->d.config, s->d.index, &data));
    DT_TRY(dt_config_engine(s->d.config, s->d.index, &engine));
    const char *slash = strrchr(d->run_dir, '/');
    snprintf(info->run, sizeof(info->run), "%.120s", slash != NULL ? slash + 1 : d->run_dir);
    snprintf(info->phase, sizeof(info->phase), "%.60s", s->d.phase->desc.id);
    snprintf(info->build, sizeof(info->build), "%s", PACKAGE_VERSION);
    DT_TRY(dt_snapshot_cpu(s->d.config, s->d.index, info->cpu, sizeof(info->cpu)));
    snprintf(info->reduction, sizeof(info->reduction), "%s", engine.reduction == DT_REDUCTION_FAST ? "fast" : "exact");
    DT_TRY(dt_config_hash(s->d.config, info->config_hash));
    DT_TRY(dt_config_hash_phase(s->d.config, s->d.index, info->phase_hash));
    const uint64_t step = dt_trainer_step_number(s->trainer);
    info->step = d->base_step + step;
    info->epoch = d->epoch;
    info->phase_index = (uint32_t)s->d.index;
    info->leaves = (uint32_t)data.shards;
    info->ranks = d->ranks;
    info->phase_end = d->phase_end;
    info->phase_ms = d->phase_ms;
    info->metric = NAN;
    const char *key = strchr(opts.best_by, ':');
    key = key != NULL ? key + 1 : opts.best_by;
    const double *metric = key[0] != '\0' && d->is_evaluated ? dt_stage_result(s, key) : NULL;
    if (metric != NULL) {
        snprintf(info->metric_name, sizeof(info->metric_name), "%.60s", key);
        info->metric = *metric;
    }
    list_plugins(s, info);
    return DT_OK;
}

/* Names and updates of groups, each in a list. */
static void write_groups(const dt_stage *s, dt_json_out *o)
{
    const dt_group_state *group = NULL;
    const uint32_t n = dt_trainer_groups(s->trainer, &group);
    if (n == 0) {
        return;
    }
    dt_json_arr(o, KEY_GROUPS);
    for (uint32_t g = 0; g < n; g++) {
        dt_json_str(o, NULL, group[g].name);
    }
    dt_json_end(o, ']');
    dt_json_arr(o, KEY_UPDATES);
    for (uint32_t g = 0; g < n; g++) {
        dt_json_i64(o, NULL, (int64_t)group[g].updates);
    }
    dt_json_end(o, ']');
}

static void write_state(const dt_stage *s, const dt_snapshot_desc *d, const dt_snapshot_held *held, dt_str *out)
{
    const dt_scaler *scaler = &held->scaler;
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "phase", s->d.phase->desc.id);
    dt_json_i64(&o, "phase_index", s->d.index);
    dt_json_i64(&o, "step", (int64_t)dt_trainer_step_number(s->trainer));
    dt_json_i64(&o, "base_step", (int64_t)d->base_step);
    dt_json_i64(&o, "updates", (int64_t)dt_trainer_updates(s->trainer));
    dt_json_i64(&o, "passed", (int64_t)dt_trainer_passed(s->trainer));
    dt_json_f64(&o, "loss_scale", scaler->scale);
    dt_json_i64(&o, "good_steps", scaler->good);
    dt_json_i64(&o, "tolerance", scaler->tolerance);
    dt_json_i64(&o, "skips", (int64_t)scaler->skips);
    dt_json_i64(&o, "overflows", (int64_t)scaler->overflows);
    dt_json_i64(&o, "steps_per_epoch", (int64_t)dt_trainer_steps_per_epoch(s->trainer));
    dt_json_i64(&o, "seed", (int64_t)s->d.seed);
    if (d->owed != DT_OWES_NOTHING) {
        dt_json_i64(&o, KEY_OWED, d->owed);
    }
    if (held->env_steps != DT_ENV_STEPS_UNKNOWN) {
        dt_json_i64(&o, KEY_ENV_STEPS, (int64_t)held->env_steps);
    }
    dt_json_arr(&o, "models");
    for (uint32_t i = 0; i < s->n_models; i++) {
        dt_json_str(&o, NULL, s->model[i].comp->desc.id);
    }
    dt_json_end(&o, ']');
    write_stores(s, &o);
    if (s->stream != NULL) {
        dt_json_arr(&o, KEY_STREAM);
        dt_stream_write(s->stream, dt_trainer_steps_per_epoch(s->trainer), &o);
        dt_json_end(&o, ']');
    }
    dt_json_arr(&o, KEY_LOADED);
    for (uint32_t r = 0; r < s->d.loaded.n; r++) {
        dt_json_str(&o, NULL, s->d.loaded.name[r]);
    }
    dt_json_end(&o, ']');
    write_groups(s, &o);
    dt_json_end(&o, '}');
}

static void add_blob(dt_ckpt_save_desc *save, dt_ckpt_blob *blobs, const char *name, uint32_t version,
                     const dt_str *bytes)
{
    blobs[save->n_blobs++] =
        (dt_ckpt_blob){.name = name, .version = version, .data = dt_str_text(bytes), .bytes = bytes->bytes};
}

static dt_status write_records(void *user, dt_ckpt_put *put, void *to)
{
    return dt_rollout_write_replay(user, put, to);
}

/* What this rank has of a replay. */
static dt_ckpt_part part_of(const dt_stage *s, const dt_snapshot_desc *d)
{
    return (dt_ckpt_part){.name = BLOB_RECORDS,
                          .version = 1,
                          .index = d->ranks > 1 ? dt_comm_rank(d->comm) : 0,
                          .n = d->ranks,
                          .bytes = dt_rollout_replay_bytes(s->rollout),
                          .write = write_records,
                          .user = s->rollout};
}

typedef struct package { /* what a checkpoint is made of */
    dt_tensor_list model, optim;
    dt_str state, config, pool;
    dt_snapshot_held now;
    dt_ckpt_blob blobs[6];
    dt_ckpt_save_desc save;
} package;

static dt_status gather(dt_stage *s, const dt_snapshot_desc *d, const dt_snapshot_held *held, package *p)
{
    DT_TRY(fill_info(s, d, &p->save.info));
    DT_TRY(dt_tensors_of_model(s, &p->model));
    DT_TRY(dt_tensors_of_optim(s, &p->optim));
    DT_TRY(dt_tensors_check(&p->model));
    DT_TRY(dt_tensors_check(&p->optim));
    DT_TRY(dt_config_write(s->d.config, &p->config));
    write_state(s, d, held, &p->state);
    return dt_str_status(&p->state);
}

static void describe(const dt_stage *s, const dt_snapshot_desc *d, const dt_snapshot_held *held, package *p)
{
    const dt_component *phase = &s->d.phase->desc;
    dt_ckpt_save_desc *save = &p->save;
    if (s->d.phase->ops.phase.save != NULL) {
        add_blob(save, p->blobs, phase->id, phase->state_version, &held->phase);
    }
    if (s->rollout != NULL) {
        add_blob(save, p->blobs, BLOB_ROLLOUT, 1, &held->rollout);
        add_blob(save, p->blobs, BLOB_NORMALISER, 1, &held->normaliser);
    }
    if (s->rollout != NULL && dt_rollout_has_replay(s->rollout)) {
        add_blob(save, p->blobs, BLOB_REPLAY, DT_ROLLOUT_REPLAY_VERSION, &p->now.replay);
        save->part = part_of(s, d);
    }
    if (s->rollout != NULL && dt_rollout_has_pool(s->rollout)) {
        add_blob(save, p->blobs, BLOB_POOL, 1, &p->pool);
    }
    save->run_dir = d->run_dir;
    save->model = p->model.t;
    save->n_model = p->model.n;
    save->optim = p->optim.t;
    save->n_optim = p->optim.n;
    save->state_json = dt_str_text(&p->state);
    save->config = dt_str_text(&p->config);
    save->blobs = p->blobs;
    save->n_shards = d->n_shards;
}

bool dt_snapshot_is_shared(const dt_stage *s, const dt_snapshot_desc *d)
{
    return d->n_shards > 1 || (d->ranks > 1 && s->rollout != NULL && dt_rollout_has_replay(s->rollout));
}

static dt_status prepare(dt_stage *s, const dt_snapshot_desc *d, package *p)
{
    const dt_snapshot_held *held = d->held != NULL ? d->held : &p->now;
    if (!dt_fs_is_dir(d->run_dir)) { /* what is saved now would lie in a folder without a configuration */
        return DT_FAIL(DT_EIO, "the folder %s no longer exists", d->run_dir);
    }
    DT_TRY(dt_trainer_hold(s->trainer)); /* steps of a device are counted when they are read */
    DT_TRY(d->held == NULL ? write_blobs(s, &p->now) : DT_OK);
    if (s->rollout != NULL && dt_rollout_has_replay(s->rollout)) {
        DT_TRY(d->ranks == 1 ? dt_rollout_open_replay(s->rollout) : DT_OK);
        DT_TRY(dt_rollout_save_replay(s->rollout, &p->now.replay));
    }
    /* what an iteration that failed has put there it puts there again */
    DT_TRY(s->rollout != NULL && dt_rollout_has_pool(s->rollout) ? dt_rollout_save_pool(s->rollout, &p->pool) : DT_OK);
    DT_TRY(gather(s, d, held, p));
    describe(s, d, held, p);
    return DT_OK;
}

static void package_destroy(package *p)
{
    if (p != NULL) {
        dt_tensor_list_fini(&p->model);
        dt_tensor_list_fini(&p->optim);
        dt_str_fini(&p->state);
        dt_str_fini(&p->config);
        dt_str_fini(&p->pool);
        dt_snapshot_held_fini(&p->now);
        dt_free(p);
    }
}

dt_status dt_snapshot_save(dt_stage *s, const dt_snapshot_desc *d, dt_ckpt_info *info_p)
{
    if (s->trainer == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "phase %s has no trainer, so there is nothing to save", s->d.phase->desc.id);
    }
    package *p = dt_alloc(sizeof(*p));
    dt_status st = p != NULL ? prepare(s, d, p) : DT_FAIL(DT_ENOMEM, "out of memory for a checkpoint");
    if (dt_snapshot_is_shared(s, d)) {
        st = dt_shards_lead(d->comm, st, p != NULL ? &p->save : NULL, info_p);
    } else if (st == DT_OK) {
        st = dt_ckpt_save(&p->save, info_p);
    }
    package_destroy(p);
    return st;
}

static dt_status list_all(dt_stage *s, dt_tensor_list *model, dt_tensor_list *optim)
{
    DT_TRY(dt_tensors_of_model(s, model));
    return dt_tensors_of_optim(s, optim);
}

dt_status dt_snapshot_help(dt_stage *s, const dt_snapshot_desc *d)
{
    dt_tensor_list model = {0}, optim = {0};
    dt_ckpt_save_desc *save = dt_alloc(sizeof(*save)); /* info is large */
    dt_status st = save != NULL ? list_all(s, &model, &optim) : DT_FAIL(DT_ENOMEM, "out of memory for a checkpoint");
    if (st == DT_OK) {
        *save = (dt_ckpt_save_desc){.run_dir = d->run_dir,
                                    .info = {.step = d->base_step + dt_trainer_step_number(s->trainer)},
                                    .model = model.t,
                                    .n_model = model.n,
                                    .optim = optim.t,
                                    .n_optim = optim.n,
                                    .n_shards = d->n_shards};
        if (s->rollout != NULL && dt_rollout_has_replay(s->rollout)) {
            save->part = part_of(s, d);
        }
    }
    st = dt_shards_follow(d->comm, st, save);
    dt_tensor_list_fini(&model);
    dt_tensor_list_fini(&optim);
    dt_free(save);
    return st;
}

dt_status dt_snapshot_prune(dt_stage *s, const char *run_dir)
{
    dt_checkpoint_opts opts;
    uint32_t min = 0;
    for (int64_t i = 0; i < dt_config_n_phases(s->d.config) && i < DT_CKPT_MAX_PHASES; i++) {
        DT_TRY(dt_config_checkpoint(s->d.config, i, &opts));
        min |= strncmp(opts.best_by, "min:", 4) == 0 ? 1u << i : 0;
    }
    DT_TRY(dt_config_checkpoint(s->d.config, s->d.index, &opts));
    const dt_ckpt_keep keep = {.last = opts.keep_last > 0 ? (uint32_t)opts.keep_last : 1,
                               .best = 1, /* where there is a metric */
                               .min = min};
    return dt_ckpt_prune(run_dir, &keep);
}
