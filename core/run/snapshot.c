/* SPDX-License-Identifier: Apache-2.0
 *
 * See snapshot.h.
 */
#include <config.h>

#include "experience/service.h"
#include "run/mismatch.h"
#include "run/snapshot.h"
#include "run/snapshot_shards.h"
#include "run/snapshot_tensors.h"
#include "service/stream.h"

#include "backend/kernel.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BLOB_ROLLOUT    "rollout"
#define BLOB_NORMALISER "normaliser"
#define BLOB_POOL       "opponents"
#define BLOB_REPLAY     "replay"
#define BLOB_RECORDS    "replay-records"
#define KEY_LOADED      "loaded_roles"
#define KEY_STORES      "stores"
#define KEY_STREAM      "stream"
#define KEY_OWED        "owed"
#define KEY_ENV_STEPS   "env_steps"
#define KEY_GROUPS      "groups"
#define KEY_UPDATES     "group_updates"

/* ---- saving ------------------------------------------------------------------------------------------------------ */

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
        DT_TRY(s->d.phase->ops.phase.save(s->self, &face));
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

enum { DIGEST_TEXT = 17 };

static void digest_of(const dt_store *store, char text[DIGEST_TEXT])
{
    snprintf(text, DIGEST_TEXT, "%016llx", (unsigned long long)dt_store_digest(store));
}

/* What training has seen: the stores that are open, and those of the checkpoint that it went on from; with a stream
 * they are judged, and what was read of it is among the latter. */
static void write_stores(const dt_stage *s, dt_json_out *o)
{
    const char *before = dt_str_text(&s->seen_before);
    char digest[DIGEST_TEXT];
    dt_json_arr(o, KEY_STORES);
    for (uint32_t i = 0; i < s->n_stores && s->stream == NULL; i++) {
        digest_of(s->store[i], digest);
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
        return DT_FAIL(DT_EIO, "there is no folder %s any more", d->run_dir);
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

/* ---- loading ----------------------------------------------------------------------------------------------------- */

typedef struct memory_reader {
    dt_reader face;
    const char *at;
} memory_reader;

static dt_status read_bytes(dt_reader *r, void *p, uint64_t bytes)
{
    memory_reader *m = r->priv;
    if (bytes > r->bytes_left) {
        return DT_FAIL(DT_EDATA, "the phase's saved state holds %llu bytes less than it asks for",
                       (unsigned long long)(bytes - r->bytes_left));
    }
    memcpy(p, m->at, bytes);
    m->at += bytes;
    r->bytes_left -= bytes;
    return DT_OK;
}

/* Hands every value of state.json to `take`, with the key that it, or the list it stands in, belongs to. */
typedef void take_value(void *user, const char *key, const dt_json_token *t);

static dt_status each_value(const dt_ckpt *c, take_value *take, void *user)
{
    size_t bytes = 0;
    const char *text = dt_ckpt_state(c, &bytes);
    dt_json *j = NULL;
    dt_json_token t;
    char key[32] = "";
    dt_status st = dt_json_open_mem(text, bytes, "state.json", &j);
    while (st == DT_OK && (st = dt_json_next(j, &t)) == DT_OK && t.kind != DT_JSON_END) {
        if (t.kind == DT_JSON_KEY) {
            snprintf(key, sizeof(key), "%s", t.text);
        } else {
            take(user, key, &t);
        }
    }
    dt_json_close(j);
    return st;
}

/* An integer of that name is taken; others leave what there is. */
static void take_integer(const char *key, const dt_json_token *t, const char *name, int64_t *out)
{
    if (t->kind == DT_JSON_NUMBER && t->is_integer && strcmp(key, name) == 0) {
        *out = t->integer;
    }
}

typedef struct position {
    int64_t step, base;
} position;

static void take_position(void *user, const char *key, const dt_json_token *t)
{
    position *p = user;
    take_integer(key, t, "step", &p->step);
    take_integer(key, t, "base_step", &p->base);
}

dt_status dt_snapshot_position(const dt_ckpt *c, int64_t *phase_index_p, uint64_t *step_p, uint64_t *base_step_p,
                               bool *phase_end_p)
{
    position p = {.step = -1, .base = -1};
    DT_TRY(each_value(c, take_position, &p));
    const dt_ckpt_info *info = dt_ckpt_info_get(c);
    if (p.step < 0 || p.base < 0) {
        return DT_FAIL(DT_EDATA, "%s/state.json does not say at which step it was saved", info->path);
    }
    *phase_index_p = info->phase_index;
    *step_p = (uint64_t)p.step;
    *base_step_p = (uint64_t)p.base;
    *phase_end_p = info->phase_end;
    return DT_OK;
}

static void take_owed(void *user, const char *key, const dt_json_token *t)
{
    take_integer(key, t, KEY_OWED, user);
}

dt_status dt_snapshot_owed(const dt_ckpt *c, uint32_t *owed_p)
{
    int64_t owed = DT_OWES_NOTHING;
    const dt_status st = each_value(c, take_owed, &owed);
    *owed_p = owed == DT_OWES_NOTHING || owed == DT_OWES_END ? (uint32_t)owed : DT_OWES_EVALUATION;
    return st;
}

typedef struct role_list {
    dt_roles *roles;
    dt_status st;
} role_list;

static void take_role(void *user, const char *key, const dt_json_token *t)
{
    role_list *l = user;
    if (l->st == DT_OK && t->kind == DT_JSON_STRING && strcmp(key, KEY_LOADED) == 0) {
        l->st = dt_roles_add(l->roles, t->text);
    }
}

dt_status dt_snapshot_loaded(const dt_ckpt *c, dt_roles *roles_p)
{
    role_list l = {roles_p, DT_OK};
    roles_p->n = 0;
    DT_TRY(each_value(c, take_role, &l));
    return l.st;
}

typedef struct store_list {
    dt_str *out;
    bool is_known;
} store_list;

static void take_store(void *user, const char *key, const dt_json_token *t)
{
    store_list *l = user;
    if (strcmp(key, KEY_STORES) == 0) {
        l->is_known = true; /* its bracket, when there are none */
        if (t->kind == DT_JSON_STRING && strlen(t->text) == DIGEST_TEXT - 1) {
            dt_str_addf(l->out, "%s\n", t->text);
        }
    }
}

dt_status dt_snapshot_stores(const dt_ckpt *c, dt_str *out, bool *known_p)
{
    store_list l = {.out = out};
    DT_TRY(each_value(c, take_store, &l));
    *known_p = *known_p || l.is_known;
    return dt_str_status(out);
}

/* Going on with other recordings is allowed, and said. */
static dt_status load_stores(dt_stage *s, const dt_ckpt *c)
{
    bool is_known = false;
    dt_str_clear(&s->seen_before);
    DT_TRY(dt_snapshot_stores(c, &s->seen_before, &is_known));
    for (uint32_t i = 0; i < s->n_stores && is_known && s->stream == NULL; i++) {
        char digest[DIGEST_TEXT];
        digest_of(s->store[i], digest);
        if (strstr(dt_str_text(&s->seen_before), digest) == NULL && dt_comm_rank(s->d.comm) == 0) {
            dt_log(DT_LOG_WARN,
                   "%s was not trained on %s: it goes on with other recordings, and results will differ from an "
                   "uninterrupted run",
                   dt_ckpt_info_get(c)->path, dt_store_path(s->store[i]));
        }
    }
    return DT_OK;
}

static void take_stream(void *user, const char *key, const dt_json_token *t)
{
    if (t->kind == DT_JSON_STRING && strcmp(key, KEY_STREAM) == 0) {
        dt_str_addf(user, "%s\n", t->text);
    }
}

static dt_status load_stream(dt_stage *s, const dt_ckpt *c)
{
    dt_str lines = {0};
    if (s->stream == NULL) {
        return DT_OK;
    }
    dt_status st = each_value(c, take_stream, &lines);
    if (st == DT_OK) {
        st = dt_str_status(&lines);
    }
    if (st == DT_OK) {
        st = dt_stream_load(s->stream, dt_str_text(&lines), dt_trainer_step_number(s->trainer),
                            dt_trainer_steps_per_epoch(s->trainer));
    }
    dt_str_fini(&lines);
    return st;
}

typedef struct counts {
    int64_t updates, passed, skips, overflows;
    dt_scaler scaler;
} counts;

static void take_count(void *user, const char *key, const dt_json_token *t)
{
    counts *n = user;
    if (t->kind == DT_JSON_NUMBER && strcmp(key, "loss_scale") == 0) {
        n->scaler.scale = t->number;
    }
    take_integer(key, t, "updates", &n->updates);
    take_integer(key, t, "passed", &n->passed);
    take_integer(key, t, "good_steps", &n->scaler.good);
    take_integer(key, t, "tolerance", &n->scaler.tolerance);
    take_integer(key, t, "skips", &n->skips);
    take_integer(key, t, "overflows", &n->overflows);
}

/* The update count and the loss scaler; checkpoints from before there was one have no skipped steps. */
static dt_status load_scaler(dt_stage *s, const dt_ckpt *c)
{
    const dt_scaler *now = dt_trainer_scaler(s->trainer);
    counts n = {.updates = -1, .skips = (int64_t)now->skips, .overflows = (int64_t)now->overflows, .scaler = *now};
    DT_TRY(each_value(c, take_count, &n));
    if (n.updates >= 0) {
        n.scaler.skips = (uint64_t)n.skips;
        n.scaler.overflows = (uint64_t)n.overflows;
        dt_trainer_scaler_set(s->trainer, (uint64_t)n.updates, &n.scaler);
        dt_trainer_passed_set(s->trainer, (uint64_t)n.passed);
    }
    return DT_OK;
}

typedef struct saved_groups { /* as many of each as there were */
    char name[DT_TRAIN_MAX_GROUPS][32];
    int64_t updates[DT_TRAIN_MAX_GROUPS];
    uint32_t n_names, n_updates;
} saved_groups;

static void take_group(void *user, const char *key, const dt_json_token *t)
{
    saved_groups *g = user;
    if (t->kind == DT_JSON_STRING && strcmp(key, KEY_GROUPS) == 0 && g->n_names < DT_TRAIN_MAX_GROUPS) {
        snprintf(g->name[g->n_names++], sizeof(g->name[0]), "%s", t->text);
    }
    if (t->kind == DT_JSON_NUMBER && t->is_integer && strcmp(key, KEY_UPDATES) == 0 &&
        g->n_updates < DT_TRAIN_MAX_GROUPS) {
        g->updates[g->n_updates++] = t->integer;
    }
}

/* Checkpoints from before there were groups have one count, which is by now that of each. */
static dt_status load_groups(dt_stage *s, const dt_ckpt *c)
{
    const dt_group_state *group = NULL;
    const uint32_t n = dt_trainer_groups(s->trainer, &group);
    saved_groups saved = {.n_names = 0};
    DT_TRY(each_value(c, take_group, &saved));
    if (n == 0 || saved.n_names == 0) {
        return DT_OK;
    }
    for (uint32_t g = 0; g < n; g++) {
        uint32_t i = 0;
        while (i < saved.n_names && strcmp(saved.name[i], group[g].name) != 0) {
            i++;
        }
        if (i == saved.n_names || i >= saved.n_updates || saved.updates[i] < 0) {
            return DT_FAIL(DT_EDATA, "state.json does not say how often the group %s was moved", group[g].name);
        }
        dt_trainer_group_updates_set(s->trainer, g, (uint64_t)saved.updates[i]);
    }
    return DT_OK;
}

static dt_status load_phase_blob(dt_stage *s, const dt_ckpt *c)
{
    dt_ckpt_blob blob;
    if (s->d.phase->ops.phase.load == NULL || !dt_ckpt_blob_find(c, s->d.phase->desc.id, &blob)) {
        return DT_OK;
    }
    memory_reader m = {.at = blob.data};
    m.face = (dt_reader){.struct_size = sizeof(dt_reader), .priv = &m, .bytes_left = blob.bytes, .read = read_bytes};
    return s->d.phase->ops.phase.load(s->self, &m.face, blob.version);
}

dt_status dt_snapshot_load_normaliser(dt_stage *s, const dt_ckpt *c, bool *is_there_p)
{
    dt_ckpt_blob blob;
    *is_there_p = s->rollout != NULL && dt_ckpt_blob_find(c, BLOB_NORMALISER, &blob);
    return *is_there_p ? dt_rollout_load_normaliser(s->rollout, blob.data, blob.bytes) : DT_OK;
}

static void take_env_steps(void *user, const char *key, const dt_json_token *t)
{
    take_integer(key, t, KEY_ENV_STEPS, user);
}

static dt_status load_replay(dt_stage *s, const dt_ckpt *c)
{
    dt_ckpt_blob state, part[DT_CKPT_MAX_SHARDS];
    dt_rollout_bytes records[DT_CKPT_MAX_SHARDS];
    if (!dt_rollout_has_replay(s->rollout) || !dt_ckpt_blob_find(c, BLOB_REPLAY, &state)) {
        return DT_OK;
    }
    const uint32_t n = dt_ckpt_parts_find(c, BLOB_RECORDS, part);
    if (n == 0) {
        return DT_FAIL(DT_EDATA, "the checkpoint has the state of a replay, and not all of its records");
    }
    for (uint32_t i = 0; i < n; i++) {
        records[i] = (dt_rollout_bytes){part[i].data, part[i].bytes};
    }
    const dt_rollout_bytes head = {state.data, state.bytes};
    return dt_rollout_load_replay(s->rollout, state.version, &head, records, n);
}

static dt_status load_rollout(dt_stage *s, const dt_ckpt *c)
{
    dt_ckpt_blob blob;
    bool is_there = false;
    int64_t env_steps = -1;
    DT_TRY(dt_snapshot_load_normaliser(s, c, &is_there));
    if (s->rollout == NULL) {
        return DT_OK;
    }
    DT_TRY(each_value(c, take_env_steps, &env_steps));
    dt_rollout_env_steps_set(s->rollout, env_steps >= 0 ? (uint64_t)env_steps : DT_ENV_STEPS_UNKNOWN);
    if (!dt_ckpt_blob_find(c, BLOB_ROLLOUT, &blob)) {
        return DT_OK;
    }
    DT_TRY(dt_rollout_load(s->rollout, blob.data, blob.bytes));
    DT_TRY(dt_ckpt_blob_find(c, BLOB_POOL, &blob) ? dt_rollout_load_pool(s->rollout, blob.data, blob.bytes) : DT_OK);
    return load_replay(s, c);
}

static dt_status load_model(dt_stage *s, const dt_ckpt *c, const dt_tensor_list *l)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        DT_TRY(dt_mismatch_constants(s, &s->model[i], dt_ckpt_model(c), dt_ckpt_info_get(c)->path, c, ""));
    }
    const dt_status st = dt_ckpt_load_model(c, l->t, l->n, DT_LOAD_EXACT);
    return dt_mismatch_explain(st, s, c);
}

dt_status dt_snapshot_load(dt_stage *s, const dt_ckpt *c)
{
    dt_tensor_list model = {0};
    dt_tensor_list optim = {0};
    int64_t index = 0;
    uint64_t step = 0;
    uint64_t base = 0;
    bool end = false;
    const dt_ckpt_info *info = dt_ckpt_info_get(c);
    if (s->trainer == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "phase %s has no trainer to load %s into", s->d.phase->desc.id, info->path);
    }
    if (strcmp(info->phase, s->d.phase->desc.id) != 0) {
        return DT_FAIL(DT_ECONFIG, "%s belongs to phase %s, not to %s", info->path, info->phase, s->d.phase->desc.id);
    }
    dt_status st = dt_trainer_open_moments(s->trainer, false);
    if (st == DT_OK) {
        st = dt_tensors_of_model(s, &model);
    }
    if (st == DT_OK) {
        st = dt_tensors_of_optim(s, &optim);
    }
    if (st == DT_OK) {
        st = dt_snapshot_position(c, &index, &step, &base, &end);
    }
    if (st == DT_OK) {
        st = load_model(s, c, &model);
    }
    if (st == DT_OK) {
        st = dt_ckpt_load_optim(c, optim.t, optim.n, DT_LOAD_EXACT);
    }
    dt_trainer_close_moments(s->trainer, st == DT_OK);
    if (st == DT_OK) {
        dt_trainer_step_set(s->trainer, step);
        st = load_stores(s, c);
    }
    if (st == DT_OK) {
        st = load_stream(s, c);
    }
    if (st == DT_OK) {
        st = load_scaler(s, c);
    }
    if (st == DT_OK) {
        st = load_groups(s, c);
    }
    if (st == DT_OK) {
        st = load_phase_blob(s, c);
    }
    if (st == DT_OK) {
        st = load_rollout(s, c);
    }
    dt_tensor_list_fini(&model);
    dt_tensor_list_fini(&optim);
    return st < 0 ? DT_CONTEXT(st, "loading %s", info->path) : st;
}
