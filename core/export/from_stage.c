/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "export/from_stage.h"

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "export/policy_file.h"
#include "rl/replay/replay.h"
#include "rl/env/described.h"
#include "engine/tensor/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what goes in ------------------------------------------------------------------------------------------------ */

/* Rows of the data as they are, from field `first` on; symbol: the first of its symbols. */
static void add_data_fields(const dt_samples *d, uint32_t first, int32_t symbol, dt_bundle_field *how)
{
    for (uint32_t f = first; f < d->n_fields; f++) {
        const int32_t index_of = (int32_t)(d->field[f].flags >> 8) - 1;
        how[f] = (dt_bundle_field){.kind = DT_BUNDLE_GIVEN, .index_of = index_of < 0 ? -1 : symbol + index_of};
    }
}

static void add_observation_field(dt_rollout *r, uint32_t port, dt_bundle_field *how)
{
    const dt_obs_port *o = &r->buffer.l->obs[port];
    dt_moments *m = &r->stats.port[port];
    how->index_of = o->index_of;
    how->kind = o->steps > 0 ? DT_BUNDLE_STEPS : DT_BUNDLE_GIVEN;
    if (m->n > 0) {
        dt_moments_apply(m);
        how->mean = m->shift;
        how->scale = m->scale;
        how->clip = (float)r->d.clip_obs;
    }
}

static uint32_t find_field(const dt_port *field, uint32_t n, const char *name)
{
    uint32_t f = 0;
    while (f < n && strcmp(field[f].name, name) != 0) {
        f++;
    }
    return f;
}

/* The fields of a rollout: first the observations, then what is made of them (core/rl/buffer/buffer.c); a replay has
 * some of them. */
static void add_rollout_fields(dt_rollout *r, const dt_samples *source, dt_bundle_field *how)
{
    const dt_buffer *b = &r->buffer;
    for (uint32_t i = 0; i < source->n_fields; i++) {
        const uint32_t f = find_field(b->port, b->n_fields, source->field[i].name);
        how[i] = (dt_bundle_field){.kind = DT_BUNDLE_GIVEN, .index_of = -1};
        if (f == b->n_fields) { /* of stored data: it is fed as that */
            continue;
        }
        const dt_buffer_field *x = &b->field[f];
        if (f < b->l->spec.n_obs) {
            add_observation_field(r, f, &how[i]);
        } else if (strcmp(x->name, "present") == 0) {
            how[i].kind = DT_BUNDLE_PRESENT;
        } else if (strcmp(x->name, "mask") == 0) {
            how[i].kind = DT_BUNDLE_MASK;
        } else if (strstr(x->name, "_history") != NULL && strcmp(x->name, "last_action_history") != 0) {
            how[i].kind = DT_BUNDLE_HISTORY;
            how[i].of = (int32_t)find_field(source->field, source->n_fields, b->field[x->port].name);
        }
    }
}

static const float *step_input_of(const void *user, const char *name, uint32_t *n_p)
{
    return dt_trainer_acting_input(user, name, n_p);
}

static dt_status make_bundle(dt_stage *s, dt_stage_export *t)
{
    const dt_samples *source = dt_trainer_source(s->trainer);
    dt_rollout *r = s->rollout;
    int64_t most[DT_GRAPH_MAX_SYMBOLS];
    const dt_graph *graph = NULL;
    DT_TRY(dt_trainer_acting_graph(s->trainer, &graph));
    dt_bundle_desc d = {.graph = graph,
                        .field = source->field,
                        .how = t->how,
                        .n_fields = source->n_fields,
                        .params = &s->params,
                        .values = dt_trainer_params(s->trainer),
                        .most = most,
                        .actions = {.window = 1},
                        .step = step_input_of,
                        .user = s->trainer};
    memcpy(most, source->slice_cap, (source->n_symbols + 1) * sizeof(*most));
    /* what it learns from has the rollout's fields first, or none of them: a phase may evaluate in an environment what
     * it learns from recordings */
    const dt_samples *live = dt_trainer_live_samples(s->trainer);
    const bool is_rollout = r != NULL && (live == &r->data.source || live == dt_rollout_replay_source(r));
    if (!is_rollout) {
        add_data_fields(source, 0, 0, t->how);
        return dt_bundle_make(&d, &t->bundle);
    }
    const dt_layout *l = &r->env->layout;
    add_rollout_fields(r, live, t->how);
    add_data_fields(source, live->n_fields, (int32_t)live->n_symbols, t->how);
    for (int32_t k = 0; k <= (int32_t)l->spec.n_symbols; k++) {
        most[k] = dt_layout_max_rows(l, k);
    }
    most[source->n_symbols] = 1; /* worlds */
    d.outputs = r->ports.output; /* others may be made of what is known only after acting */
    d.actions = (dt_bundle_actions){.n_heads = l->spec.n_heads,
                                    .n_continuous = l->spec.n_continuous,
                                    .window = r->buffer.d.window,
                                    .choices = l->spec.choices,
                                    .low = l->spec.low,
                                    .high = l->spec.high,
                                    .is_squashed = r->acting.is_squashed};
    return dt_bundle_make(&d, &t->bundle);
}

/* ---- what is said of it ------------------------------------------------------------------------------------------ */

static void write_models(const dt_stage *s, dt_str *out)
{
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    for (uint32_t i = 0; i < s->n_models; i++) {
        dt_json_obj(&o, s->model[i].role);
        dt_json_str(&o, "id", s->model[i].comp->desc.id);
        dt_json_str(&o, "plugin", s->model[i].comp->plugin->desc.name);
        const char *version = s->model[i].comp->plugin->desc.version;
        dt_json_str(&o, "version", version != NULL ? version : "");
        dt_json_end(&o, '}');
    }
    dt_json_end(&o, '}');
}

/* An option's member as text that reads back equal. */
static const char *option_text(const dt_option *o, const void *config, char number[32])
{
    const void *member = (const char *)config + o->offset;
    switch (o->type) {
    case DT_OPT_BOOL:
        return *(const uint8_t *)member != 0 ? "true" : "false";
    case DT_OPT_I64:
        snprintf(number, 32, "%lld", (long long)*(const int64_t *)member);
        return number;
    case DT_OPT_F64:
        snprintf(number, 32, "%.15g", *(const double *)member);
        if (strtod(number, NULL) != *(const double *)member) {
            snprintf(number, 32, "%.17g", *(const double *)member);
        }
        return number;
    case DT_OPT_ENUM:
        return o->choices[*(const uint32_t *)member];
    default:
        return *(const char *const *)member;
    }
}

/* Options of a component as it was made, with what the phase sets itself: "<id>.<option>" and its text. */
static void write_options(const dt_loaded *c, const void *config, dt_json_out *o)
{
    char key[160], number[32];
    for (const dt_option *x = c->desc.options; x != NULL && x->name != NULL; x++) {
        snprintf(key, sizeof(key), "%s.%s", c->desc.id, x->name);
        dt_json_str(o, key, option_text(x, config, number));
    }
}

static void write_settings(const dt_stage *s, dt_str *out)
{
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    if (s->env.comp != NULL) {
        write_options(s->env.comp, s->env.training.config, &o);
    }
    for (uint32_t i = 0; i < s->n_models; i++) {
        write_options(s->model[i].comp, s->model[i].config, &o);
    }
    dt_json_end(&o, '}');
}

static const dt_env_spec *env_spec_of_stage(const dt_stage *s)
{
    return s->rollout != NULL ? &s->rollout->env->layout.spec : NULL;
}

/* An input as a program needs it that computes it elsewhere. */
static void describe_input(const dt_stage *s, const dt_stage_export *t, const dt_bundle_input *x, dt_json_out *o)
{
    static const char *const kind[] = {[DT_BUNDLE_GIVEN] = "given",
                                       [DT_BUNDLE_HISTORY] = "history",
                                       [DT_BUNDLE_PRESENT] = "present",
                                       [DT_BUNDLE_MASK] = "mask",
                                       [DT_BUNDLE_STEPS] = "steps"};
    const dt_samples *source = dt_trainer_source(s->trainer);
    const dt_env_spec *spec = env_spec_of_stage(s);
    const uint32_t f = find_field(source->field, source->n_fields, x->name);
    dt_json_obj(o, NULL);
    dt_json_str(o, "name", x->name);
    dt_json_str(o, "dims", x->dims);
    dt_json_str(o, "dtype", dt_dtype_name(x->dtype));
    dt_json_str(o, "kind", kind[x->kind]);
    /* true: the file itself subtracts means and divides by deviations, and takes values as they are */
    dt_json_bool(o, "normalised_inside", f < source->n_fields && t->how[f].mean != NULL);
    if (spec != NULL) {
        dt_describe_columns(spec->columns, spec->n_columns, x->name, o);
    }
    dt_json_end(o, '}');
}

static void describe_actions(const dt_env_spec *spec, const dt_bundle_actions *a, dt_json_out *o)
{
    dt_json_arr(o, "actions");
    for (uint32_t h = 0; h < a->n_heads; h++) {
        dt_json_obj(o, NULL);
        dt_json_str(o, "name", "action_i");
        dt_json_i64(o, "column", h);
        dt_json_i64(o, "choices", a->choices[h]);
        dt_json_end(o, '}');
    }
    for (uint32_t c = 0; c < a->n_continuous; c++) {
        dt_json_obj(o, NULL);
        dt_json_str(o, "name", "action_f");
        dt_json_i64(o, "column", c);
        dt_json_f64(o, "low", (double)a->low[c]);
        dt_json_f64(o, "high", (double)a->high[c]);
        dt_json_end(o, '}');
    }
    dt_json_end(o, ']');
    if (spec != NULL) {
        dt_describe_places(spec, o);
        if (spec->step_s > 0) {
            dt_json_f64(o, "step_s", spec->step_s);
        }
    }
}

/* Rows are of agents that act, in the order of their places; a mask has 1 where a choice is allowed. */
static void write_interface(const dt_stage *s, const dt_stage_export *t, dt_str *out)
{
    dt_json_out o = {.s = out};
    dt_json_obj(&o, NULL);
    dt_json_str(&o, "producer", "dtrain " PACKAGE_VERSION);
    dt_json_str(&o, "phase", s->d.phase->desc.id);
    dt_json_str(&o, "environment", s->env.comp != NULL ? s->env.comp->desc.id : "");
    dt_json_arr(&o, "inputs");
    for (uint32_t i = 0; i < t->bundle.n_inputs; i++) {
        describe_input(s, t, &t->bundle.input[i], &o);
    }
    dt_json_end(&o, ']');
    dt_json_arr(&o, "outputs");
    for (uint32_t i = 0; i < t->bundle.ir.n_outputs; i++) {
        dt_json_str(&o, NULL, t->bundle.ir.output[i].name);
    }
    dt_json_end(&o, ']');
    describe_actions(env_spec_of_stage(s), &t->bundle.actions, &o);
    dt_json_obj(&o, "settings");
    if (s->env.comp != NULL) {
        write_options(s->env.comp, s->env.training.config, &o);
    }
    dt_json_end(&o, '}');
    dt_json_end(&o, '}');
}

static void describe_failure(dt_stage_export *t, const char *key, const char *text)
{
    if (text[0] != '\0') {
        t->pair[t->n_pairs][0] = key;
        t->pair[t->n_pairs++][1] = text;
    }
}

static dt_status make_export(dt_stage *s, dt_stage_export *t)
{
    t->how = dt_alloc_n(dt_trainer_source(s->trainer)->n_fields, sizeof(*t->how));
    if (t->how == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory to export a phase");
    }
    DT_TRY(make_bundle(s, t));
    if (t->bundle.ir.n_outputs == 0) {
        return DT_FAIL(DT_EINVAL, "phase %s records no output, and so nothing to export", s->d.phase->desc.id);
    }
    write_models(s, &t->models);
    write_settings(s, &t->settings);
    write_interface(s, t, &t->interface);
    DT_TRY(dt_str_status(&t->models));
    DT_TRY(dt_str_status(&t->interface));
    return dt_str_status(&t->settings);
}

dt_status dt_export_from_stage(dt_stage *s, const dt_ckpt_info *info, dt_stage_export *out_p)
{
    dt_stage_export t = {.n_pairs = 0};
    if (s->trainer == NULL) {
        return DT_FAIL(DT_EINVAL, "phase %s has no trainer, and so nothing to export", s->d.phase->desc.id);
    }
    const dt_status st = make_export(s, &t);
    if (st < 0) {
        dt_stage_export_fini(&t);
        return st;
    }
    *out_p = t;
    describe_failure(out_p, "producer", "dtrain " PACKAGE_VERSION);
    describe_failure(out_p, DT_POLICY_FILE_PHASE, s->d.phase->desc.id);
    describe_failure(out_p, DT_POLICY_FILE_ENVIRONMENT, s->env.comp != NULL ? s->env.comp->desc.id : "");
    describe_failure(out_p, "models", dt_str_text(&out_p->models));
    describe_failure(out_p, "interface", dt_str_text(&out_p->interface));
    describe_failure(out_p, DT_POLICY_FILE_SETTINGS, dt_str_text(&out_p->settings));
    if (info != NULL) {
        snprintf(out_p->step, sizeof(out_p->step), "%llu", (unsigned long long)info->step);
        describe_failure(out_p, "step", out_p->step);
        describe_failure(out_p, "weights_hash", info->weights_hash);
    }
    out_p->bundle.metadata = (const char *const(*)[2])out_p->pair;
    out_p->bundle.n_metadata = out_p->n_pairs;
    return DT_OK;
}

void dt_stage_export_fini(dt_stage_export *t)
{
    dt_bundle_fini(&t->bundle);
    dt_free(t->how);
    dt_str_fini(&t->models);
    dt_str_fini(&t->interface);
    dt_str_fini(&t->settings);
    *t = (dt_stage_export){.n_pairs = 0};
}
