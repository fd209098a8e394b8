/* SPDX-License-Identifier: Apache-2.0
 *
 * Saving and loading a stage. See snapshot.h.
 */
#include <config.h>

#include "rl/experience/service.h"
#include "state/snapshot/snapshot.h"
#include "state/snapshot/snapshot_state.h"

#include "engine/backend/kernel.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "state/snapshot/mismatch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- tensors of a stage ------------------------------------------------------------------------------------------ */

/* The tensors of a stage as a checkpoint names them: parameters, and the optimizer's moments of them ("m.", "v.").
 * Their values stay where the trainer has them. */
typedef struct tensor_list { /* list_fini, whatever became of it */
    dt_ckpt_tensor *t;
    dt_str *name; /* [cap] owns the names with a prefix */
    uint32_t n, cap;
} tensor_list;

static void list_fini(tensor_list *l)
{
    if (l->name != NULL) {
        for (uint32_t i = 0; i < l->cap; i++) {
            dt_str_fini(&l->name[i]);
        }
    }
    dt_free(l->name);
    dt_free(l->t);
}

/* Of target networks there are values alone. */
static dt_status add_arena(tensor_list *l, const dt_param_table *table, const char *prefix, float *arena)
{
    const bool are_moments = prefix[0] != '\0';
    if (arena != NULL) {
        for (uint32_t i = 0; i < table->n; i++) {
            const dt_param *p = &table->param[i];
            if (p->is_target && are_moments) {
                continue;
            }
            dt_str_addf(&l->name[l->n], "%s%s", prefix, p->name);
            DT_TRY(dt_str_status(&l->name[l->n]));
            l->t[l->n] = (dt_ckpt_tensor){
                .name = dt_str_text(&l->name[l->n]), .dim = p->dim, .n_dims = p->n_dims, .data = arena + p->offset};
            l->n++;
        }
    }
    return DT_OK;
}

static dt_status list_init(tensor_list *l, uint32_t cap)
{
    memset(l, 0, sizeof(*l));
    l->cap = cap;
    l->t = dt_alloc_n(cap > 0 ? cap : 1, sizeof(*l->t));
    l->name = dt_alloc_n(cap > 0 ? cap : 1, sizeof(*l->name));
    return l->t != NULL && l->name != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for a checkpoint's tensors");
}

static dt_status list_model(dt_stage *s, tensor_list *l)
{
    DT_TRY(list_init(l, dt_stage_n_params(s)));
    DT_TRY(dt_stage_synchronize(s));
    for (uint32_t i = 0; i < s->n_trains; i++) {
        DT_TRY(add_arena(l, s->train[i].params, "", dt_trainer_params(s->train[i].trainer)));
    }
    return DT_OK;
}

static dt_status list_optim(dt_stage *s, tensor_list *l)
{
    DT_TRY(list_init(l, 2 * dt_stage_n_params(s)));
    DT_TRY(dt_stage_synchronize(s));
    for (uint32_t i = 0; i < s->n_trains; i++) {
        const struct dt_train *t = &s->train[i];
        DT_TRY(add_arena(l, t->params, "m.", dt_trainer_moment(t->trainer, 0)));
        DT_TRY(add_arena(l, t->params, "v.", dt_trainer_moment(t->trainer, 1)));
    }
    return DT_OK;
}

/* DT_EDIVERGED: a value is not finite. */
static dt_status check_finite(const tensor_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        int64_t count = 1;
        for (uint32_t k = 0; k < l->t[i].n_dims; k++) {
            count *= l->t[i].dim[k];
        }
        for (int64_t k = 0; k < count; k++) {
            if (!isfinite(l->t[i].data[k])) {
                return DT_FAIL(DT_EDIVERGED, "%s is %g at element %lld: nothing of it is saved", l->t[i].name,
                               (double)l->t[i].data[k], (long long)k);
            }
        }
    }
    return DT_OK;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static bool has_replay(const dt_stage *s)
{
    return s->rollout != NULL && dt_rollout_has_replay(s->rollout);
}

static dt_status write_backup(dt_stage *s, dt_snapshot_backup *b)
{
    b->scaler = *dt_trainer_scaler(s->trainer);
    b->env_steps = s->rollout != NULL ? dt_rollout_env_steps(s->rollout) : DT_ENV_STEPS_UNKNOWN;
    return dt_blobs_write(s, DT_BLOBS_BACKED_UP, b);
}

void dt_snapshot_back_up(dt_stage *s, dt_snapshot_backup *b)
{
    enum { MAX_PHASE_BYTES = 64 * 1024 }; /* copied in microseconds */
    /* a replay is not copied: the iteration that fails may have overwritten it */
    b->is_too_large = b->is_too_large || has_replay(s);
    b->is_valid = !b->is_too_large && write_backup(s, b) == DT_OK;
    b->is_too_large = b->is_too_large || b->blob[DT_BLOB_PHASE].bytes > MAX_PHASE_BYTES;
    if (!b->is_valid) {
        dt_error_clear();
    }
}

void dt_snapshot_backup_fini(dt_snapshot_backup *b)
{
    for (uint32_t i = 0; i < DT_CKPT_BLOBS; i++) {
        dt_str_fini(&b->blob[i]);
    }
    *b = (dt_snapshot_backup){.is_valid = false};
}

dt_status dt_snapshot_cpu_class(dt_config *c, int64_t phase, char *out, size_t bytes)
{
    dt_amp_opts amp;
    DT_TRY(dt_config_amp(c, phase, &amp));
    snprintf(out, bytes, "%s%s%s", dt_cpu_arithmetic_class(), amp.enabled ? "+" : "",
             amp.enabled ? dt_cpu_bf16_isa() : "");
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

static dt_status fill_checkpoint_info(dt_stage *s, const dt_snapshot_desc *d, dt_ckpt_info *info)
{
    const char *slash = strrchr(d->run_dir, '/');
    snprintf(info->run, sizeof(info->run), "%.120s", slash != NULL ? slash + 1 : d->run_dir);
    snprintf(info->phase, sizeof(info->phase), "%.60s", s->d.phase->desc.id);
    snprintf(info->build, sizeof(info->build), "%s", PACKAGE_VERSION);
    DT_TRY(dt_snapshot_cpu_class(s->d.config, s->d.index, info->cpu, sizeof(info->cpu)));
    snprintf(info->reduction, sizeof(info->reduction), "%s",
             s->opts.engine.reduction == DT_REDUCTION_FAST ? "fast" : "exact");
    DT_TRY(dt_config_hash(s->d.config, info->config_hash));
    DT_TRY(dt_config_hash_phase(s->d.config, s->d.index, info->phase_hash));
    const uint64_t step = dt_trainer_step_number(s->trainer);
    info->step = d->base_step + step;
    info->epoch = d->epoch;
    info->phase_index = (uint32_t)s->d.index;
    info->leaves = (uint32_t)s->opts.data.shards;
    info->ranks = d->ranks;
    info->phase_end = d->phase_end;
    info->phase_ms = d->phase_ms;
    info->metric = NAN;
    const char *best_by = s->opts.checkpoint.best_by, *key = strchr(best_by, ':');
    key = key != NULL ? key + 1 : best_by;
    const double *metric = key[0] != '\0' && d->is_evaluated ? dt_stage_find_result(s, key) : NULL;
    if (metric != NULL) {
        snprintf(info->metric_name, sizeof(info->metric_name), "%.60s", key);
        info->metric = *metric;
    }
    list_plugins(s, info);
    return DT_OK;
}

static dt_status write_records(void *user, dt_ckpt_put *put, void *to)
{
    return dt_rollout_write_replay(user, put, to);
}

/* What this rank has of a replay. */
static dt_ckpt_part replay_part_of(const dt_stage *s, const dt_snapshot_desc *d)
{
    return (dt_ckpt_part){.name = dt_ckpt_blob_name(DT_BLOB_RECORDS),
                          .version = 1,
                          .index = d->ranks > 1 ? dt_comm_rank(d->comm) : 0,
                          .n = d->ranks,
                          .bytes = dt_rollout_replay_bytes(s->rollout),
                          .write = write_records,
                          .user = s->rollout};
}

typedef struct package { /* what a checkpoint is made of */
    tensor_list model, optim;
    dt_str state, config;
    dt_snapshot_backup now;
    dt_ckpt_blob blobs[DT_CKPT_BLOBS];
    dt_ckpt_save_desc save;
} package;

static dt_status fill_package(dt_stage *s, const dt_snapshot_desc *d, const dt_snapshot_backup *backup, package *p)
{
    DT_TRY(fill_checkpoint_info(s, d, &p->save.info));
    DT_TRY(list_model(s, &p->model));
    DT_TRY(list_optim(s, &p->optim));
    DT_TRY(check_finite(&p->model));
    DT_TRY(check_finite(&p->optim));
    DT_TRY(dt_config_write(s->d.config, &p->config));
    dt_state_write(s, d, backup, &p->state);
    return dt_str_status(&p->state);
}

static void fill_save_desc(const dt_stage *s, const dt_snapshot_desc *d, const dt_snapshot_backup *backup, package *p)
{
    dt_ckpt_save_desc *save = &p->save;
    save->n_blobs = dt_blobs_list(s, backup, &p->now, p->blobs);
    if (has_replay(s)) {
        save->part = replay_part_of(s, d);
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
    return d->n_shards > 1 || (d->ranks > 1 && has_replay(s));
}

static dt_status prepare_package(dt_stage *s, const dt_snapshot_desc *d, package *p)
{
    const dt_snapshot_backup *backup = d->backup != NULL ? d->backup : &p->now;
    if (!dt_fs_is_dir(d->run_dir)) { /* a new folder would have no configuration */
        return DT_FAIL(DT_EIO, "the folder %s no longer exists", d->run_dir);
    }
    DT_TRY(dt_stage_synchronize(s)); /* steps of a device are counted when they are read */
    DT_TRY(d->backup == NULL ? write_backup(s, &p->now) : DT_OK);
    DT_TRY(has_replay(s) && d->ranks == 1 ? dt_rollout_prepare_replay(s->rollout) : DT_OK);
    DT_TRY(dt_blobs_write(s, DT_BLOBS_OTHER, &p->now));
    DT_TRY(fill_package(s, d, backup, p));
    fill_save_desc(s, d, backup, p);
    return DT_OK;
}

static void package_destroy(package *p)
{
    if (p != NULL) {
        list_fini(&p->model);
        list_fini(&p->optim);
        dt_str_fini(&p->state);
        dt_str_fini(&p->config);
        dt_snapshot_backup_fini(&p->now);
        dt_free(p);
    }
}

dt_status dt_snapshot_save(dt_stage *s, const dt_snapshot_desc *d, dt_ckpt_info *info_p)
{
    if (s->trainer == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "phase %s has no trainer, so there is nothing to save", s->d.phase->desc.id);
    }
    package *p = dt_alloc(sizeof(*p));
    dt_status st = p != NULL ? prepare_package(s, d, p) : DT_FAIL(DT_ENOMEM, "out of memory for a checkpoint");
    if (dt_snapshot_is_shared(s, d)) {
        st = dt_shards_save_first(d->comm, st, p != NULL ? &p->save : NULL, info_p);
    } else if (st == DT_OK) {
        st = dt_ckpt_save(&p->save, info_p);
    }
    package_destroy(p);
    return st;
}

static dt_status list_all_tensors(dt_stage *s, tensor_list *model, tensor_list *optim)
{
    DT_TRY(list_model(s, model));
    return list_optim(s, optim);
}

dt_status dt_snapshot_save_shard(dt_stage *s, const dt_snapshot_desc *d)
{
    tensor_list model = {0}, optim = {0};
    dt_ckpt_save_desc *save = dt_alloc(sizeof(*save)); /* info is large */
    dt_status st =
        save != NULL ? list_all_tensors(s, &model, &optim) : DT_FAIL(DT_ENOMEM, "out of memory for a checkpoint");
    if (st == DT_OK) {
        *save = (dt_ckpt_save_desc){.run_dir = d->run_dir,
                                    .info = {.step = d->base_step + dt_trainer_step_number(s->trainer)},
                                    .model = model.t,
                                    .n_model = model.n,
                                    .optim = optim.t,
                                    .n_optim = optim.n,
                                    .n_shards = d->n_shards};
        if (has_replay(s)) {
            save->part = replay_part_of(s, d);
        }
    }
    st = dt_shards_save_other(d->comm, st, save);
    list_fini(&model);
    list_fini(&optim);
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
    const int64_t last = s->opts.checkpoint.keep_last;
    const dt_ckpt_keep keep = {.last = last > 0 ? (uint32_t)last : 1,
                               .best = 1, /* where there is a metric */
                               .min = min};
    return dt_ckpt_prune(run_dir, &keep);
}

/* ---- loading into a stage ---------------------------------------------------------------------------------------- */

static dt_status load_model(dt_stage *s, const dt_ckpt *c, const tensor_list *l)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        DT_TRY(dt_mismatch_check_constants(s, &s->model[i], dt_ckpt_model(c), dt_ckpt_info_get(c)->path, c, ""));
    }
    const dt_status st = dt_ckpt_load_model(c, l->t, l->n, DT_LOAD_EXACT);
    return dt_mismatch_explain(st, s, c);
}

static dt_status load_tensors(dt_stage *s, const dt_ckpt *c)
{
    tensor_list model = {0}, optim = {0};
    dt_status st = dt_stage_open_moments(s, false);
    if (st == DT_OK) {
        st = list_model(s, &model);
    }
    if (st == DT_OK) {
        st = list_optim(s, &optim);
    }
    if (st == DT_OK) {
        st = load_model(s, c, &model);
    }
    if (st == DT_OK) {
        st = dt_ckpt_load_optim(c, optim.t, optim.n, DT_LOAD_EXACT);
    }
    dt_stage_close_moments(s, st == DT_OK);
    list_fini(&model);
    list_fini(&optim);
    return st;
}

static dt_status load_all(dt_stage *s, const dt_ckpt *c, const dt_state *state)
{
    DT_TRY(load_tensors(s, c));
    DT_TRY(dt_state_apply(state, c, s));
    return dt_blobs_load(s, c);
}

dt_status dt_snapshot_load(dt_stage *s, const dt_ckpt *c)
{
    dt_state state;
    const dt_ckpt_info *info = dt_ckpt_info_get(c);
    if (s->trainer == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "phase %s has no trainer to load %s into", s->d.phase->desc.id, info->path);
    }
    if (strcmp(info->phase, s->d.phase->desc.id) != 0) {
        return DT_FAIL(DT_ECONFIG, "%s belongs to phase %s, not to %s", info->path, info->phase, s->d.phase->desc.id);
    }
    dt_status st = dt_state_read(c, &state);
    if (st == DT_OK) {
        st = load_all(s, c, &state);
    }
    dt_state_fini(&state);
    return st < 0 ? DT_CONTEXT(st, "loading %s", info->path) : st;
}

static dt_status load_acting(dt_stage *s, const dt_ckpt *c)
{
    dt_snapshot_place place;
    DT_TRY(dt_snapshot_read_position(c, &place));
    dt_trainer_step_number_set(s->trainer, place.step);
    return dt_blobs_load_acting(s, c);
}

dt_status dt_snapshot_load_acting(dt_stage *s, const char *dir)
{
    dt_ckpt *c = NULL;
    DT_TRY(dt_ckpt_open_acting(dir, &c));
    const bool is_same = strcmp(dt_ckpt_info_get(c)->phase, s->d.phase->desc.id) == 0;
    const dt_status st = is_same && s->trainer != NULL ? load_acting(s, c) : DT_OK;
    dt_ckpt_close(c);
    return st < 0 ? DT_CONTEXT(st, "state of %s in %s", s->d.phase->desc.id, dir) : st;
}
