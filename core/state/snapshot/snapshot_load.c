/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint back into a stage, and what is asked of one before. See snapshot.h.
 */
#include <config.h>

#include "rl/experience/service.h"
#include "state/snapshot/mismatch.h"
#include "state/snapshot/snapshot.h"
#include "state/snapshot/snapshot_names.h"
#include "state/snapshot/snapshot_tensors.h"
#include "plugin/service/stream.h"

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct memory_reader {
    dt_reader face;
    const char *at;
} memory_reader;

static dt_status read_bytes(dt_reader *r, void *p, uint64_t bytes)
{
    memory_reader *m = r->priv;
    if (bytes > r->bytes_left) {
        return DT_FAIL(DT_EDATA, "the phase's saved state has %llu bytes less than it reads",
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
        return DT_FAIL(DT_EDATA, "%s/state.json has no step at which it was saved", info->path);
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
    for (uint32_t i = 0; i < s->n_datasets && is_known && s->stream == NULL; i++) {
        char digest[DIGEST_TEXT];
        digest_of(&s->dataset[i], digest);
        if (strstr(dt_str_text(&s->seen_before), digest) == NULL && dt_comm_rank(s->d.comm) == 0) {
            dt_log(DT_LOG_WARN,
                   "%s was not trained on %s: it continues with other recordings, and results will differ from an "
                   "uninterrupted run",
                   dt_ckpt_info_get(c)->path, s->dataset[i].path);
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
            return DT_FAIL(DT_EDATA, "state.json has no number of updates of the group %s", group[g].name);
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
    /* a plan takes no room on the disk */
    if (!dt_rollout_has_room(s->rollout) || !dt_ckpt_blob_find(c, BLOB_REPLAY, &state)) {
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
