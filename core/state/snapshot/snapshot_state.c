/* SPDX-License-Identifier: Apache-2.0
 *
 * See snapshot_state.h. A new field is a member of dt_state, a row of `fields`, its value in collect_values() or a
 * function that writes its list, and its use in dt_state_apply. Fields keep their order: their bytes are part of
 * state_hash.
 */
#include <config.h>

#include "state/snapshot/snapshot_state.h"

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "plugin/service/stream.h"
#include "rl/experience/service.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGEST_TEXT = 17 }; /* of a data set, in hexadecimal digits */

static void format_digest(const dt_dataset *d, char text[DIGEST_TEXT])
{
    snprintf(text, DIGEST_TEXT, "%016llx", (unsigned long long)d->digest);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void write_models(const dt_stage *s, dt_json_out *o)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        dt_json_str(o, NULL, s->model[i].comp->desc.id);
    }
}

/* Data that the weights were trained on: the open stores, and those of the checkpoint that the phase continues from.
 * Stores of a stream are only used to evaluate; those that it trained on are among the latter. */
static void write_stores(const dt_stage *s, dt_json_out *o)
{
    const char *before = dt_str_text(&s->seen_before);
    char digest[DIGEST_TEXT];
    for (uint32_t i = 0; i < s->n_datasets && s->stream == NULL; i++) {
        format_digest(&s->dataset[i], digest);
        if (strstr(before, digest) == NULL) {
            dt_json_str(o, NULL, digest);
        }
    }
    for (const char *p = before; strlen(p) >= DIGEST_TEXT; p += DIGEST_TEXT) {
        memcpy(digest, p, DIGEST_TEXT - 1);
        digest[DIGEST_TEXT - 1] = '\0';
        dt_json_str(o, NULL, digest);
    }
}

static bool has_stream(const dt_stage *s)
{
    return s->stream != NULL;
}

static void write_stream(const dt_stage *s, dt_json_out *o)
{
    dt_stream_write(s->stream, dt_trainer_steps_per_epoch(s->trainer), o);
}

static void write_loaded_roles(const dt_stage *s, dt_json_out *o)
{
    for (uint32_t r = 0; r < s->d.loaded.n; r++) {
        dt_json_str(o, NULL, s->d.loaded.name[r]);
    }
}

static bool has_groups(const dt_stage *s)
{
    const dt_group_state *group = NULL;
    return dt_trainer_groups(s->trainer, &group) > 0;
}

static void write_groups(const dt_stage *s, dt_json_out *o)
{
    const dt_group_state *group = NULL;
    const uint32_t n = dt_trainer_groups(s->trainer, &group);
    for (uint32_t g = 0; g < n; g++) {
        dt_json_str(o, NULL, group[g].name);
    }
}

static void write_group_updates(const dt_stage *s, dt_json_out *o)
{
    const dt_group_state *group = NULL;
    const uint32_t n = dt_trainer_groups(s->trainer, &group);
    for (uint32_t g = 0; g < n; g++) {
        dt_json_i64(o, NULL, (int64_t)group[g].updates);
    }
}

static bool has_further_trainers(const dt_stage *s)
{
    return s->n_trains > 1;
}

/* Of each further trainer: name, scale of the loss in hexadecimal digits, step, updates, bypassed steps, counters of
 * the scaler, number of groups, and name and updates of each. */
static void write_trainers(const dt_stage *s, dt_json_out *o)
{
    char scale[32];
    for (uint32_t i = 1; i < s->n_trains; i++) {
        const dt_trainer *t = s->train[i].trainer;
        const dt_scaler *c = dt_trainer_scaler(t);
        const dt_group_state *group = NULL;
        const uint32_t n = dt_trainer_groups(t, &group);
        const int64_t value[] = {(int64_t)dt_trainer_step_number(t),
                                 (int64_t)dt_trainer_updates(t),
                                 (int64_t)dt_trainer_bypassed_steps(t),
                                 c->good,
                                 c->tolerance,
                                 (int64_t)c->skips,
                                 (int64_t)c->overflows,
                                 n};
        snprintf(scale, sizeof(scale), "%a", c->scale);
        dt_json_str(o, NULL, s->train[i].name);
        dt_json_str(o, NULL, scale);
        for (size_t k = 0; k < sizeof(value) / sizeof(value[0]); k++) {
            dt_json_i64(o, NULL, value[k]);
        }
        for (uint32_t g = 0; g < n; g++) {
            dt_json_str(o, NULL, group[g].name);
            dt_json_i64(o, NULL, (int64_t)group[g].updates);
        }
    }
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef enum field_kind { TEXT, INTEGER, OPTIONAL_INTEGER, REAL, OPTIONAL_REAL, LIST } field_kind;

typedef struct field {
    const char *key;
    field_kind kind;
    size_t offset; /* of its member of dt_state */
    void (*write_items)(const dt_stage *s, dt_json_out *o);
    bool (*is_there)(const dt_stage *s); /* NULL: always */
} field;

#define AT(member) offsetof(dt_state, member)
static const field fields[] = {
    {"phase", TEXT, AT(phase), NULL, NULL},
    {"phase_index", INTEGER, AT(phase_index), NULL, NULL},
    {"step", INTEGER, AT(step), NULL, NULL},
    {"base_step", INTEGER, AT(base_step), NULL, NULL},
    {"updates", INTEGER, AT(updates), NULL, NULL},
    {"passed", INTEGER, AT(passed), NULL, NULL},
    {"loss_scale", REAL, AT(loss_scale), NULL, NULL},
    {"good_steps", INTEGER, AT(good_steps), NULL, NULL},
    {"tolerance", INTEGER, AT(tolerance), NULL, NULL},
    {"skips", INTEGER, AT(skips), NULL, NULL},
    {"overflows", INTEGER, AT(overflows), NULL, NULL},
    {"steps_per_epoch", INTEGER, AT(steps_per_epoch), NULL, NULL},
    {"seed", INTEGER, AT(seed), NULL, NULL},
    {"owed", OPTIONAL_INTEGER, AT(pending), NULL, NULL},
    {"env_steps", OPTIONAL_INTEGER, AT(env_steps), NULL, NULL},
    {"stop_best", OPTIONAL_REAL, AT(stop_best), NULL, NULL},
    {"stop_stale", OPTIONAL_INTEGER, AT(n_stale), NULL, NULL},
    {"stop_rule", OPTIONAL_INTEGER, AT(stop_rule), NULL, NULL},
    {"stop_sum", OPTIONAL_REAL, AT(stop_sum), NULL, NULL},
    {"stop_values", OPTIONAL_INTEGER, AT(stop_values), NULL, NULL},
    {"models", LIST, AT(models), write_models, NULL},
    {"stores", LIST, AT(stores), write_stores, NULL},
    {"stream", LIST, AT(stream), write_stream, has_stream},
    {"loaded_roles", LIST, AT(loaded_roles), write_loaded_roles, NULL},
    {"groups", LIST, AT(groups), write_groups, has_groups},
    {"group_updates", LIST, AT(group_updates), write_group_updates, has_groups},
    {"trainers", LIST, AT(trainers), write_trainers, has_further_trainers},
};
enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

static void *member_of_state(dt_state *v, const field *f)
{
    return (char *)v + f->offset;
}

static void write_field(dt_state *v, const field *f, const dt_stage *s, dt_json_out *o)
{
    if (f->is_there != NULL && !f->is_there(s)) {
        return;
    }
    switch (f->kind) {
    case TEXT:
        dt_json_str(o, f->key, *(const char **)member_of_state(v, f));
        break;
    case OPTIONAL_REAL:
        if (isnan(*(double *)member_of_state(v, f))) {
            break;
        }
        /* fall through */
    case REAL:
        dt_json_f64(o, f->key, *(double *)member_of_state(v, f));
        break;
    case OPTIONAL_INTEGER:
        if (*(int64_t *)member_of_state(v, f) == DT_STATE_ABSENT) {
            break;
        }
        /* fall through */
    case INTEGER:
        dt_json_i64(o, f->key, *(int64_t *)member_of_state(v, f));
        break;
    case LIST:
        dt_json_arr(o, f->key);
        f->write_items(s, o);
        dt_json_end(o, ']');
        break;
    }
}

/* A value of another kind than the field's is passed over, as a field that is not there. */
static void read_field(dt_state *v, const field *f, const dt_json_token *t)
{
    if (f->kind == LIST) {
        dt_state_list *list = member_of_state(v, f);
        list->is_there = true; /* its bracket, when it is empty */
        if (t->kind == DT_JSON_STRING) {
            dt_str_addf(&list->lines, "%s\n", t->text);
        } else if (t->kind == DT_JSON_NUMBER && t->is_integer) {
            dt_str_addf(&list->lines, "%" PRId64 "\n", t->integer);
        }
    } else if ((f->kind == REAL || f->kind == OPTIONAL_REAL) && t->kind == DT_JSON_NUMBER) {
        *(double *)member_of_state(v, f) = t->number;
    } else if ((f->kind == INTEGER || f->kind == OPTIONAL_INTEGER) && t->kind == DT_JSON_NUMBER && t->is_integer) {
        *(int64_t *)member_of_state(v, f) = t->integer;
    }
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static void collect_values(const dt_stage *s, const dt_snapshot_desc *d, const dt_snapshot_backup *backup, dt_state *v)
{
    const bool has_env_steps = backup->env_steps != DT_ENV_STEPS_UNKNOWN;
    *v = (dt_state){.phase = s->d.phase->desc.id,
                    .phase_index = s->d.index,
                    .step = (int64_t)dt_trainer_step_number(s->trainer),
                    .base_step = (int64_t)d->base_step,
                    .updates = (int64_t)dt_trainer_updates(s->trainer),
                    .passed = (int64_t)dt_trainer_bypassed_steps(s->trainer),
                    .loss_scale = backup->scaler.scale,
                    .good_steps = backup->scaler.good,
                    .tolerance = backup->scaler.tolerance,
                    .skips = (int64_t)backup->scaler.skips,
                    .overflows = (int64_t)backup->scaler.overflows,
                    .steps_per_epoch = (int64_t)dt_trainer_steps_per_epoch(s->trainer),
                    .seed = (int64_t)s->d.seed,
                    .pending = d->pending != DT_PENDING_NONE ? (int64_t)d->pending : DT_STATE_ABSENT,
                    .env_steps = has_env_steps ? (int64_t)backup->env_steps : DT_STATE_ABSENT,
                    .stop_best = d->patience.has_best ? d->patience.best : (double)NAN,
                    .n_stale = d->patience.n_stale > 0 ? d->patience.n_stale : DT_STATE_ABSENT,
                    .stop_rule = d->patience.rule != 0 ? d->patience.rule : DT_STATE_ABSENT,
                    .stop_sum = d->patience.n > 0 ? d->patience.sum : (double)NAN,
                    .stop_values = d->patience.n > 0 ? d->patience.n : DT_STATE_ABSENT};
}

void dt_state_write(const dt_stage *s, const dt_snapshot_desc *d, const dt_snapshot_backup *backup, dt_str *out)
{
    dt_state v;
    dt_json_out o = {.s = out};
    collect_values(s, d, backup, &v);
    dt_json_obj(&o, NULL);
    for (size_t i = 0; i < N_FIELDS; i++) {
        write_field(&v, &fields[i], s, &o);
    }
    dt_json_end(&o, '}');
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static dt_status check_lists(dt_state *v)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (fields[i].kind == LIST) {
            const dt_state_list *list = member_of_state(v, &fields[i]);
            DT_TRY(dt_str_status(&list->lines));
        }
    }
    return DT_OK;
}

dt_status dt_state_read(const dt_ckpt *c, dt_state *out)
{
    size_t bytes = 0;
    const char *text = dt_ckpt_state(c, &bytes);
    const field *of = NULL; /* of the last key: a list has several values */
    dt_json *j = NULL;
    dt_json_token t;
    *out = (dt_state){.loss_scale = NAN, .stop_best = NAN, .stop_sum = NAN};
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (fields[i].kind == INTEGER || fields[i].kind == OPTIONAL_INTEGER) {
            *(int64_t *)member_of_state(out, &fields[i]) = DT_STATE_ABSENT;
        }
    }
    dt_status st = dt_json_open_mem(text, bytes, "state.json", &j);
    while (st == DT_OK && (st = dt_json_next(j, &t)) == DT_OK && t.kind != DT_JSON_END) {
        if (t.kind != DT_JSON_KEY) {
            if (of != NULL) {
                read_field(out, of, &t);
            }
            continue;
        }
        of = NULL;
        for (size_t i = 0; i < N_FIELDS && of == NULL; i++) {
            of = strcmp(fields[i].key, t.text) == 0 ? &fields[i] : NULL;
        }
    }
    dt_json_close(j);
    return st == DT_OK ? check_lists(out) : st;
}

void dt_state_fini(dt_state *v)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (fields[i].kind == LIST) {
            dt_state_list *list = member_of_state(v, &fields[i]);
            dt_str_fini(&list->lines);
        }
    }
}

/* Takes the next line of a list off *at_p; "" when there is none. */
static void next_line(const char **at_p, char *out, size_t bytes)
{
    const size_t n = strcspn(*at_p, "\n");
    snprintf(out, bytes, "%.*s", (int)(n < bytes ? n : bytes - 1), *at_p);
    *at_p += n + ((*at_p)[n] == '\n');
}

static dt_status add_stores(const dt_state *v, dt_str *out)
{
    char digest[DIGEST_TEXT + 1]; /* what is longer than a digest stays longer */
    for (const char *at = dt_str_text(&v->stores.lines); *at != '\0';) {
        next_line(&at, digest, sizeof(digest));
        if (strlen(digest) == DIGEST_TEXT - 1) {
            dt_str_addf(out, "%s\n", digest);
        }
    }
    return dt_str_status(out);
}

/* Continuing with other recordings is allowed, with a warning. */
static dt_status apply_stores(const dt_state *v, const dt_ckpt *c, dt_stage *s)
{
    dt_str_clear(&s->seen_before);
    DT_TRY(add_stores(v, &s->seen_before));
    for (uint32_t i = 0; i < s->n_datasets && v->stores.is_there && s->stream == NULL; i++) {
        char digest[DIGEST_TEXT];
        format_digest(&s->dataset[i], digest);
        if (strstr(dt_str_text(&s->seen_before), digest) == NULL && dt_comm_rank(s->d.comm) == 0) {
            dt_log(DT_LOG_WARN,
                   "%s was not trained on %s: it continues with other recordings, and results will differ from an "
                   "uninterrupted run",
                   dt_ckpt_info_get(c)->path, s->dataset[i].path);
        }
    }
    return DT_OK;
}

static int64_t value_or_default(int64_t saved, int64_t otherwise)
{
    return saved != DT_STATE_ABSENT ? saved : otherwise;
}

/* Checkpoints from before there was a loss scaler have none of its fields. */
static void apply_scaler(const dt_state *v, dt_stage *s)
{
    dt_scaler scaler = *dt_trainer_scaler(s->trainer);
    if (value_or_default(v->updates, -1) < 0) {
        return;
    }
    scaler.scale = isnan(v->loss_scale) ? scaler.scale : v->loss_scale;
    scaler.good = value_or_default(v->good_steps, scaler.good);
    scaler.tolerance = value_or_default(v->tolerance, scaler.tolerance);
    scaler.skips = (uint64_t)value_or_default(v->skips, (int64_t)scaler.skips);
    scaler.overflows = (uint64_t)value_or_default(v->overflows, (int64_t)scaler.overflows);
    dt_trainer_scaler_set(s->trainer, (uint64_t)v->updates, &scaler);
    dt_trainer_bypassed_steps_set(s->trainer, (uint64_t)value_or_default(v->passed, 0));
}

/* The saved number of updates of a group; -1: there is none. */
static int64_t find_group_updates(const dt_state *v, const char *group)
{
    const char *name = dt_str_text(&v->groups.lines), *number = dt_str_text(&v->group_updates.lines);
    char text[32], digits[24];
    while (*name != '\0' && *number != '\0') {
        next_line(&name, text, sizeof(text));
        next_line(&number, digits, sizeof(digits));
        if (strcmp(text, group) == 0) {
            return strtoll(digits, NULL, 10);
        }
    }
    return -1;
}

/* Without groups the checkpoint has one count, which apply_scaler gave to each of them. */
static dt_status apply_groups(const dt_state *v, dt_stage *s)
{
    const dt_group_state *group = NULL;
    const uint32_t n = v->groups.lines.bytes > 0 ? dt_trainer_groups(s->trainer, &group) : 0;
    for (uint32_t g = 0; g < n; g++) {
        const int64_t updates = find_group_updates(v, group[g].name);
        if (updates < 0) {
            return DT_FAIL(DT_EDATA, "state.json has no number of updates of the group %s", group[g].name);
        }
        dt_trainer_group_updates_set(s->trainer, g, (uint64_t)updates);
    }
    return DT_OK;
}

static int64_t next_number(const char **at_p)
{
    char digits[24];
    next_line(at_p, digits, sizeof(digits));
    return strtoll(digits, NULL, 10);
}

/* A further trainer from its lines; groups as they are here. */
static dt_status apply_trainer(const char **at_p, const dt_train *t)
{
    char text[32];
    dt_scaler scaler = *dt_trainer_scaler(t->trainer);
    const dt_group_state *group = NULL;
    const uint32_t n = dt_trainer_groups(t->trainer, &group);
    next_line(at_p, text, sizeof(text));
    const bool is_same = strcmp(text, t->name) == 0;
    next_line(at_p, text, sizeof(text));
    scaler.scale = strtod(text, NULL);
    const int64_t step = next_number(at_p), updates = next_number(at_p), bypassed = next_number(at_p);
    scaler.good = next_number(at_p);
    scaler.tolerance = next_number(at_p);
    scaler.skips = (uint64_t)next_number(at_p);
    scaler.overflows = (uint64_t)next_number(at_p);
    if (!is_same || step < 0 || updates < 0 || bypassed < 0 || next_number(at_p) != (int64_t)n) {
        return DT_FAIL(DT_EDATA, "state.json has no state of the trainer %s", t->name);
    }
    dt_trainer_step_number_set(t->trainer, (uint64_t)step);
    dt_trainer_scaler_set(t->trainer, (uint64_t)updates, &scaler);
    dt_trainer_bypassed_steps_set(t->trainer, (uint64_t)bypassed);
    for (uint32_t g = 0; g < n; g++) {
        next_line(at_p, text, sizeof(text));
        if (strcmp(text, group[g].name) != 0) {
            return DT_FAIL(DT_EDATA, "state.json has the group \"%s\" of the trainer %s, which has %s in its place",
                           text, t->name, group[g].name);
        }
        dt_trainer_group_updates_set(t->trainer, g, (uint64_t)next_number(at_p));
    }
    return DT_OK;
}

static dt_status apply_trainers(const dt_state *v, dt_stage *s)
{
    const char *at = dt_str_text(&v->trainers.lines);
    for (uint32_t i = 1; i < s->n_trains; i++) {
        DT_TRY(apply_trainer(&at, &s->train[i]));
    }
    return DT_OK;
}

static dt_status check_position(const dt_state *v, const dt_ckpt_info *info)
{
    return v->step >= 0 && v->base_step >= 0
               ? DT_OK
               : DT_FAIL(DT_EDATA, "%s/state.json has no step at which it was saved", info->path);
}

dt_status dt_state_apply(const dt_state *v, const dt_ckpt *c, dt_stage *s)
{
    DT_TRY(check_position(v, dt_ckpt_info_get(c)));
    dt_trainer_step_number_set(s->trainer, (uint64_t)v->step);
    DT_TRY(apply_stores(v, c, s));
    DT_TRY(s->stream != NULL ? dt_stream_load(s->stream, dt_str_text(&v->stream.lines), (uint64_t)v->step,
                                              dt_trainer_steps_per_epoch(s->trainer))
                             : DT_OK);
    apply_scaler(v, s);
    DT_TRY(apply_groups(v, s));
    DT_TRY(apply_trainers(v, s));
    if (s->rollout != NULL) {
        dt_rollout_env_steps_set(s->rollout, v->env_steps >= 0 ? (uint64_t)v->env_steps : DT_ENV_STEPS_UNKNOWN);
    }
    return DT_OK;
}

/* ---- single fields ----------------------------------------------------------------------------------------------- */

dt_status dt_snapshot_read_position(const dt_ckpt *c, dt_snapshot_place *out)
{
    dt_state v;
    dt_status st = dt_state_read(c, &v);
    const dt_ckpt_info *info = dt_ckpt_info_get(c);
    if (st == DT_OK) {
        st = check_position(&v, info);
    }
    const bool is_none = v.pending == DT_STATE_ABSENT || v.pending == DT_PENDING_NONE;
    *out = (dt_snapshot_place){.phase_index = info->phase_index,
                               .step = (uint64_t)v.step,
                               .base_step = (uint64_t)v.base_step,
                               .phase_end = info->phase_end,
                               .patience = {.has_best = !isnan(v.stop_best),
                                            .best = v.stop_best,
                                            .n_stale = v.n_stale > 0 ? v.n_stale : 0,
                                            .rule = v.stop_rule != DT_STATE_ABSENT ? v.stop_rule : 0,
                                            .sum = v.stop_values > 0 && !isnan(v.stop_sum) ? v.stop_sum : 0,
                                            .n = v.stop_values > 0 && !isnan(v.stop_sum) ? v.stop_values : 0},
                               .pending = is_none                       ? DT_PENDING_NONE
                                          : v.pending == DT_PENDING_END ? DT_PENDING_END
                                                                        : DT_PENDING_EVALUATION};
    dt_state_fini(&v);
    return st;
}

dt_status dt_snapshot_loaded_roles(const dt_ckpt *c, dt_roles *roles_p)
{
    dt_state v;
    char role[DT_ROLE_BYTES + 1];
    roles_p->n = 0;
    dt_status st = dt_state_read(c, &v);
    for (const char *at = dt_str_text(&v.loaded_roles.lines); st == DT_OK && *at != '\0';) {
        next_line(&at, role, sizeof(role));
        st = dt_roles_add(roles_p, role);
    }
    dt_state_fini(&v);
    return st;
}

dt_status dt_snapshot_list_stores(const dt_ckpt *c, dt_str *out, bool *known_p)
{
    dt_state v;
    dt_status st = dt_state_read(c, &v);
    if (st == DT_OK) {
        st = add_stores(&v, out);
    }
    *known_p = *known_p || v.stores.is_there;
    dt_state_fini(&v);
    return st;
}
