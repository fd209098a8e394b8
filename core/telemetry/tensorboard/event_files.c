/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/tensorboard/event_files.h"

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "telemetry/tensorboard/event_pictures.h"
#include "telemetry/metrics/events.h"

#include <stdio.h>
#include <string.h>

enum { MAX_HISTOGRAMS = 32, MAX_PARTS = 16 }; /* of a model; of a parameter's name */

/* Without them training continues as well. */
static void disable_files(dt_metrics *m, const char *what)
{
    dt_log(DT_LOG_WARN, "no %s for TensorBoard: %s", what, dt_error_text());
    dt_error_clear();
    dt_metrics_events_set(m, NULL);
}

/* ---- hyper-parameters -------------------------------------------------------------------------------------------- */

static bool is_section(const char *path, const char *section)
{
    const size_t n = strlen(section);
    return n > 0 && strncmp(path, section, n) == 0 && (path[n] == '.' || path[n] == '\0');
}

/* What this phase is made of: the sections of training, and those of its own components. */
static bool is_of_phase(const dt_stage *s, const char *path)
{
    static const char *const section[] = {"seed",   "models",  "training",      "amp",
                                          "env.id", "env.mix", "env.instances", "data.batch"};
    for (size_t i = 0; i < sizeof(section) / sizeof(section[0]); i++) {
        if (is_section(path, section[i])) {
            return true;
        }
    }
    for (uint32_t i = 0; i < s->n_models; i++) {
        if (is_section(path, s->model[i].comp->desc.id)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < s->env.n_mix; i++) {
        if (is_section(path, s->env.mix[i].comp->desc.id)) {
            return true;
        }
    }
    return is_section(path, s->d.phase->desc.id) || (s->env.comp != NULL && is_section(path, s->env.comp->desc.id));
}

/* Of one entry of config.origin.json: its value, where it is a plain one. The key was read. */
static dt_status add_hparam(dt_events *e, dt_json *j, const char *path, bool is_wanted)
{
    dt_json_token t;
    const int depth = dt_json_depth(j);
    char key[16] = "";
    do {
        DT_TRY(dt_json_next(j, &t));
        if (t.kind == DT_JSON_KEY && dt_json_depth(j) == depth + 1) {
            snprintf(key, sizeof(key), "%s", t.text);
            continue;
        }
        if (!is_wanted || dt_json_depth(j) != depth + 1 || strcmp(key, "value") != 0) {
            continue;
        }
        if (t.kind == DT_JSON_NUMBER) {
            dt_events_hparam_number(e, path, t.number);
        } else if (t.kind == DT_JSON_TRUE || t.kind == DT_JSON_FALSE) {
            dt_events_hparam_bool(e, path, t.kind == DT_JSON_TRUE);
        } else if (t.kind == DT_JSON_STRING) {
            dt_events_hparam_text(e, path, t.text);
        }
    } while (dt_json_depth(j) > depth);
    return DT_OK;
}

/* Those of all phases, or with prefix those that this phase overrides. */
static dt_status add_hparams(const dt_stage *s, dt_events *e, const dt_str *origin, const char *prefix)
{
    dt_json *j = NULL;
    dt_json_token t;
    const size_t n = strlen(prefix);
    DT_TRY(dt_json_open_mem(dt_str_text(origin), origin->bytes, "config.origin.json", &j));
    dt_status st = dt_json_next(j, &t);
    while (st == DT_OK && (st = dt_json_next(j, &t)) == DT_OK && t.kind == DT_JSON_KEY) {
        char path[192];
        const bool is_here = strncmp(t.text, prefix, n) == 0 && (n > 0 || strncmp(t.text, "phases.", 7) != 0);
        snprintf(path, sizeof(path), "%.190s", is_here ? t.text + n : "");
        st = add_hparam(e, j, path, is_here && is_of_phase(s, path));
    }
    dt_json_close(j);
    return st;
}

static dt_status write_hparams(const dt_event_files_desc *d, dt_events *e)
{
    dt_str origin = {0};
    char prefix[32];
    snprintf(prefix, sizeof(prefix), "phases.%lld.", (long long)d->stage->d.index);
    dt_status st = dt_config_write_origin(d->config, NULL, NULL, &origin);
    if (st == DT_OK) {
        st = add_hparams(d->stage, e, &origin, "");
    }
    if (st == DT_OK) {
        st = add_hparams(d->stage, e, &origin, prefix);
    }
    if (st == DT_OK) {
        st = dt_events_write_hparams(e, d->stage->d.phase->desc.id);
    }
    dt_str_fini(&origin);
    return st;
}

/* ---- a phase ----------------------------------------------------------------------------------------------------- */

void dt_event_files_begin(const dt_event_files_desc *d, dt_metrics *m)
{
    dt_events *e = NULL;
    dt_str dir = {0};
    dt_str config = {0};
    dt_metrics_events_set(m, NULL); /* a retry continues in the same folder */
    dt_str_addf(&dir, "%s/tensorboard/%lld-%s", d->run_dir, (long long)d->stage->d.index + 1,
                d->stage->d.phase->desc.id);
    dt_status st = dt_str_status(&dir);
    if (st == DT_OK) {
        st = dt_events_open(dt_str_text(&dir), d->first_step, &e);
    }
    if (st == DT_OK) {
        st = dt_config_write(d->config, &config);
    }
    if (st == DT_OK) {
        st = dt_events_write_text(e, d->first_step, "configuration", dt_str_text(&config));
    }
    if (st == DT_OK) {
        st = write_hparams(d, e);
    }
    dt_metrics_events_set(m, e);
    if (st < 0) {
        disable_files(m, "files");
    }
    dt_str_fini(&config);
    dt_str_fini(&dir);
}

void dt_event_files_end(dt_metrics *m, bool is_success)
{
    dt_events *e = dt_metrics_events(m);
    if (e != NULL && dt_events_write_session_end(e, is_success) < 0) {
        disable_files(m, "end of the phase");
    }
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* Bytes of a name's first `parts` parts: "world.head.0" of world.head.0.w are three. */
static size_t name_prefix_bytes(const char *name, int parts)
{
    size_t n = 0;
    for (; name[n] != '\0'; n++) {
        if (name[n] == '.' && --parts == 0) {
            break;
        }
    }
    return n;
}

static bool is_same_stem(const char *a, const char *b, int parts)
{
    const size_t n = name_prefix_bytes(a, parts);
    return n == name_prefix_bytes(b, parts) && strncmp(a, b, n) == 0;
}

/* Is it the first tensor of its stem? */
static bool is_first_of_stem(const dt_stage *s, uint32_t i, int parts)
{
    for (uint32_t k = 0; k < i; k++) {
        if (is_same_stem(s->params.param[k].name, s->params.param[i].name, parts)) {
            return false;
        }
    }
    return true;
}

/* How many parts of its names distinguish a role's histograms: all of them, a histogram for each tensor, or as many as
 * leave no more than MAX_HISTOGRAMS. */
static int count_distinct_parts(const dt_stage *s, const char *role)
{
    for (int parts = MAX_PARTS; parts > 1; parts--) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < s->params.n && n <= MAX_HISTOGRAMS; i++) {
            n += dt_tensor_has_role(s->params.param[i].name, role) && is_first_of_stem(s, i, parts);
        }
        if (n <= MAX_HISTOGRAMS) {
            return parts;
        }
    }
    return 1;
}

/* All tensors of one stem in an arena; of those that have no gradient only where they are asked for. */
static dt_status write_histogram(const dt_stage *s, dt_events *e, uint64_t step, const char *kind, uint32_t first,
                                 int parts, const float *arena, bool frozen_too)
{
    dt_histogram h;
    char tag[192];
    bool is_empty = true;
    const char *name = s->params.param[first].name;
    dt_histogram_begin(&h);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = first; i < s->params.n; i++) {
            const dt_param *p = &s->params.param[i];
            if (is_same_stem(p->name, name, parts) && (frozen_too || (!p->frozen && !p->is_statistic))) {
                (pass == 0 ? dt_histogram_extend_range : dt_histogram_count_values)(&h, arena + p->offset, p->count);
                is_empty = false;
            }
        }
    }
    snprintf(tag, sizeof(tag), "%s/%.*s", kind, (int)name_prefix_bytes(name, parts), name);
    return is_empty ? DT_OK : dt_events_write_histogram(e, step, tag, &h);
}

static const dt_param *largest_matrix(const dt_stage *s, const char *role)
{
    const dt_param *best = NULL;
    for (uint32_t i = 0; i < s->params.n; i++) {
        const dt_param *p = &s->params.param[i];
        if (dt_tensor_has_role(p->name, role) && p->n_dims == 2 && !p->frozen &&
            (best == NULL || p->count > best->count)) {
            best = p;
        }
    }
    return best;
}

static dt_status write_model(const dt_stage *s, dt_events *e, uint64_t step, const char *role)
{
    const float *params = dt_trainer_params(s->trainer), *gradient = dt_trainer_last_gradient(s->trainer);
    const dt_param *matrix = largest_matrix(s, role);
    const int parts = count_distinct_parts(s, role);
    for (uint32_t i = 0; i < s->params.n; i++) {
        if (!dt_tensor_has_role(s->params.param[i].name, role) || !is_first_of_stem(s, i, parts)) {
            continue;
        }
        DT_TRY(write_histogram(s, e, step, "parameters", i, parts, params, true));
        if (gradient != NULL) {
            DT_TRY(write_histogram(s, e, step, "gradients", i, parts, gradient, false));
        }
    }
    return matrix == NULL ? DT_OK : dt_event_write_matrix(e, step, matrix, params + matrix->offset);
}

void dt_event_files_write_models(const dt_stage *s, dt_metrics *m, uint64_t step)
{
    dt_events *e = dt_metrics_events(m);
    if (e == NULL) {
        return;
    }
    dt_status st = dt_trainer_synchronize(s->trainer);
    for (uint32_t i = 0; i < s->n_models && st == DT_OK; i++) {
        st = write_model(s, e, step, s->model[i].role);
    }
    if (st < 0) {
        disable_files(m, "more models");
    }
}

void dt_event_files_write_evaluation(const dt_stage *s, dt_metrics *m, uint64_t step, const char *table)
{
    dt_events *e = dt_metrics_events(m);
    if (e == NULL) {
        return;
    }
    dt_status st = table[0] != '\0' ? dt_events_write_text(e, step, "evaluation", table) : DT_OK;
    if (st == DT_OK) {
        st = dt_event_write_trajectories(e, step, s->results.picture, s->results.n_pictures);
    }
    if (st == DT_OK) {
        st = dt_event_write_film(e, step, s->results.picture, s->results.n_pictures);
    }
    if (st < 0) {
        disable_files(m, "more evaluations");
    }
}
