/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "state/snapshot/mismatch.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { MOST_NAMES = 3 };

static const char what_to_do[] = "set the options of the model as in training";

/* ---- options ----------------------------------------------------------------------------------------------------- */

typedef struct sides { /* a phase here, and the one that was trained */
    const dt_config *now, *then;
    int64_t phase, trained;
} sides;

static void append_difference(dt_str *out, const char *path, const char *now, const char *then)
{
    dt_str_addf(out, "%s%s is %s here and was %s", out->bytes > 0 ? ", " : "", path, now[0] != '\0' ? now : "empty",
                then[0] != '\0' ? then : "empty");
}

/* Numbers that are no integers, and places of files, make no tensor more or less. */
static void compare_section(const sides *b, const dt_component *c, dt_str *out)
{
    for (const dt_option *o = c->options; o != NULL && o->name != NULL; o++) {
        char path[160];
        const char *now = NULL, *then = NULL;
        dt_origin origin;
        snprintf(path, sizeof(path), "%s.%s", c->id, o->name);
        if (o->type != DT_OPT_F64 && o->type != DT_OPT_PATH &&
            dt_config_get(b->now, b->phase, path, &now, &origin) == DT_OK &&
            dt_config_get(b->then, b->trained, path, &then, &origin) == DT_OK && !dt_is_same_value(now, then)) {
            append_difference(out, path, now, then);
        }
    }
}

static void compare_model(const sides *b, const dt_model *m, dt_str *out)
{
    char path[160];
    const char *now = dt_config_model(b->now, b->phase, m->role), *then = dt_config_model(b->then, b->trained, m->role);
    snprintf(path, sizeof(path), "models.%s", m->role);
    if (now[0] != '\0' && then[0] != '\0' && strcmp(now, then) != 0) {
        append_difference(out, path, now, then);
    }
    compare_section(b, &m->comp->desc, out);
}

/* Which recording it is: its content determines what models are shown. In the configuration of a run its path is whole.
 * */
static void compare_store(const sides *b, dt_config *now, dt_str *out)
{
    dt_data_opts data;
    const char *then = NULL;
    dt_origin origin;
    if (dt_config_data(now, b->phase, &data) == DT_OK &&
        dt_config_get(b->then, b->trained, "data.store", &then, &origin) == DT_OK && strcmp(data.store, then) != 0) {
        append_difference(out, "data.store", data.store, then);
    }
}

static void compare_options(const dt_stage *s, const dt_model *m, int64_t trained, const dt_config *then,
                            dt_mismatch *out)
{
    const sides b = {.now = s->d.config, .then = then, .phase = s->d.index, .trained = trained};
    if (b.trained < 0 || b.trained >= dt_config_n_phases(then)) {
        return;
    }
    compare_model(&b, m, &out->model);
    for (uint32_t i = 0; i < s->n_data; i++) {
        if (s->data[i].comp != NULL) {
            compare_section(&b, &s->data[i].comp->desc, &out->data);
        }
    }
    if (s->n_data > 0) {
        compare_store(&b, s->d.config, &out->data);
    }
}

void dt_mismatch_find(const dt_stage *s, const dt_model *m, const dt_ckpt *ckpt, dt_mismatch *out)
{
    dt_str recorded = {0};
    dt_config *then = NULL;
    dt_error before;
    *out = (dt_mismatch){0};
    if (ckpt == NULL) {
        return;
    }
    dt_error_save(&before, dt_error_status());
    pthread_mutex_lock(s->d.config_lock);
    dt_ckpt_run_config(dt_ckpt_info_get(ckpt)->path, &recorded);
    if (recorded.bytes > 0 && dt_config_create(&then) == DT_OK &&
        dt_config_read_file(then, DT_FROM_RUN, dt_str_text(&recorded)) == DT_OK) {
        compare_options(s, m, dt_ckpt_info_get(ckpt)->phase_index, then, out);
    }
    if (then != NULL) {
        dt_config_destroy(then);
    }
    pthread_mutex_unlock(s->d.config_lock);
    dt_str_fini(&recorded);
    dt_error_clear();
    (void)dt_error_restore(&before);
}

void dt_mismatch_find_between_phases(const dt_stage *s, const dt_model *m, int64_t phase, dt_mismatch *out)
{
    dt_error before;
    *out = (dt_mismatch){0};
    dt_error_save(&before, dt_error_status());
    pthread_mutex_lock(s->d.config_lock);
    compare_options(s, m, phase, s->d.config, out);
    pthread_mutex_unlock(s->d.config_lock);
    dt_error_clear();
    (void)dt_error_restore(&before);
}

void dt_mismatch_fini(dt_mismatch *m)
{
    dt_str_fini(&m->model);
    dt_str_fini(&m->data);
}

void dt_mismatch_append(const dt_mismatch *m, dt_str *out)
{
    const bool both = m->model.bytes > 0 && m->data.bytes > 0;
    if (m->model.bytes > 0 || m->data.bytes > 0) {
        dt_str_addf(out, " (%s%s%s)", dt_str_text(&m->model), both ? ", " : "", dt_str_text(&m->data));
    }
}

dt_status dt_mismatch_context(dt_status st, const dt_stage *s, const dt_model *m, const dt_ckpt *ckpt)
{
    dt_mismatch why;
    dt_str text = {0};
    if (st != DT_ESHAPE) {
        return st;
    }
    dt_mismatch_find(s, m, ckpt, &why);
    dt_mismatch_append(&why, &text);
    st = DT_CONTEXT(st, "%s, and the options of its data%s", what_to_do, dt_str_text(&text));
    dt_str_fini(&text);
    dt_mismatch_fini(&why);
    return st;
}

dt_status dt_mismatch_explain(dt_status st, const dt_stage *s, const dt_ckpt *c)
{
    for (uint32_t i = 0; i < s->n_models && st == DT_ESHAPE; i++) {
        dt_mismatch why;
        dt_mismatch_find(s, &s->model[i], c, &why);
        const bool is_it = why.model.bytes > 0;
        dt_mismatch_fini(&why);
        if (is_it || i + 1 == s->n_models) {
            return dt_mismatch_context(st, s, &s->model[i], c);
        }
    }
    return st;
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static bool has_param(const dt_stage *s, const char *name)
{
    const dt_param *p = NULL;
    for (uint32_t i = 0; (p = dt_stage_param(s, i, NULL)) != NULL; i++) {
        if (strcmp(p->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static dt_status reject_constant(const dt_stage *s, const dt_model *m, const char *path, const dt_ckpt *ckpt,
                                 const char *name, bool is_in_file, const char *otherwise)
{
    dt_mismatch why;
    dt_str text = {0};
    dt_mismatch_find(s, m, ckpt, &why);
    if (why.model.bytes > 0) {
        dt_str_addf(&text, " (%s)", dt_str_text(&why.model));
    }
    const dt_status st = DT_FAIL(DT_ESHAPE, "%s %s %s, which %s has%s as it is configured here: %s%s%s", path,
                                 is_in_file ? "has" : "lacks", name, m->comp->desc.id, is_in_file ? " not" : "",
                                 what_to_do, dt_str_text(&text), is_in_file ? "" : otherwise);
    dt_str_fini(&text);
    dt_mismatch_fini(&why);
    return st;
}

dt_status dt_mismatch_check_constants(const dt_stage *s, const dt_model *m, const dt_safetensors *f, const char *path,
                                      const dt_ckpt *ckpt, const char *otherwise)
{
    char begin[96];
    snprintf(begin, sizeof(begin), "%s." DT_PARAM_CONSTANT, m->role);
    for (uint32_t i = 0; i < dt_safetensors_count(f); i++) {
        const char *name = dt_safetensors_at(f, i)->name;
        if (strncmp(name, begin, strlen(begin)) == 0 && !has_param(s, name)) {
            return reject_constant(s, m, path, ckpt, name, true, otherwise);
        }
    }
    const dt_param *p = NULL;
    for (uint32_t i = 0; (p = dt_stage_param(s, i, NULL)) != NULL; i++) {
        if (p->is_constant && !p->is_target && dt_tensor_has_role(p->name, m->role) &&
            dt_safetensors_find(f, p->name) == NULL) {
            return reject_constant(s, m, path, ckpt, p->name, false, otherwise);
        }
    }
    return DT_OK;
}

/* ---- values of another number of costs --------------------------------------------------------------------------- */

/* Parameters that no output but "cost_value" is computed from. */
static dt_status find_cost_params(const dt_stage *s, bool *param_p)
{
    static const char *const none[] = {NULL}, *const costs[] = {"cost_value", NULL};
    bool *others = dt_alloc_n((size_t)s->params.n + 1, sizeof(*others));
    dt_status st =
        others != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the names of %u tensors", s->params.n);
    if (st == DT_OK) {
        st = dt_trainer_params_of_acting(s->trainer, none, param_p);
    }
    if (st == DT_OK) {
        st = dt_trainer_params_of_acting(s->trainer, costs, others);
    }
    for (uint32_t i = 0; i < s->params.n && st == DT_OK; i++) {
        param_p[i] = param_p[i] && !others[i];
    }
    dt_free(others);
    return st;
}

/* How many costs the tensor there is for, where its shape is that of p but for the dimension that is the number of
 * costs here: 0 where there is none, -1 where all dimensions are the same, -2 where it differs otherwise. */
static int64_t count_costs_there(const dt_param *p, int64_t here, const int64_t *dim, uint32_t n_dims)
{
    int64_t there = -1;
    if (dim == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < p->n_dims && n_dims == p->n_dims; i++) {
        if (dim[i] != p->dim[i]) {
            there = there == -1 && p->dim[i] == here ? dim[i] : -2;
        }
    }
    return n_dims == p->n_dims ? there : -2;
}

/* All of the role that is_of_costs marks; none where no other number of costs explains it. */
static void mark_renewed(const dt_stage *s, const char *role, const bool *is_of_costs, dt_shape_find *find,
                         const void *user, dt_renewed *out)
{
    uint32_t n_missing = 0;
    for (uint32_t i = 0; i < s->params.n; i++) {
        const dt_param *p = &s->params.param[i];
        if (!is_of_costs[p->is_target ? p->of : i] || !dt_tensor_has_role(p->name, role)) {
            continue;
        }
        uint32_t n_dims = 0;
        const int64_t *dim = find(user, p->name, &n_dims), there = count_costs_there(p, out->here, dim, n_dims);
        const bool is_other = there != -1 && out->there != -1 && there != out->there;
        out->there = is_other ? -2 : there != -1 ? there : out->there;
        out->param[i] = true;
        out->n++;
        n_missing += dim == NULL;
    }
    if (out->there < 0 || (n_missing > 0 && n_missing < out->n)) {
        memset(out->param, 0, s->params.n * sizeof(*out->param));
        out->n = 0;
    }
}

dt_status dt_mismatch_find_renewed(const dt_stage *s, const char *role, dt_shape_find *find, const void *user,
                                   dt_renewed *out)
{
    *out = (dt_renewed){.there = -1, .here = s->rollout != NULL ? dt_bind_env_spec(&s->env)->n_costs : 0};
    if (out->here == 0 || s->trainer == NULL) {
        return DT_OK;
    }
    bool *is_of_costs = dt_alloc_n((size_t)s->params.n + 1, sizeof(*is_of_costs));
    out->param = dt_alloc_n((size_t)s->params.n + 1, sizeof(*out->param));
    dt_status st = out->param != NULL && is_of_costs != NULL
                       ? find_cost_params(s, is_of_costs)
                       : DT_FAIL(DT_ENOMEM, "out of memory for the names of %u tensors", s->params.n);
    if (st == DT_OK) {
        mark_renewed(s, role, is_of_costs, find, user, out);
    }
    dt_free(is_of_costs);
    return st;
}

bool dt_mismatch_is_renewed(const dt_stage *s, const dt_renewed *r, const char *name)
{
    for (uint32_t i = 0; i < s->params.n && r->n > 0; i++) {
        if (strcmp(s->params.param[i].name, name) == 0) {
            return r->param[i];
        }
    }
    return false;
}

void dt_mismatch_renewed_fini(dt_renewed *r)
{
    dt_free(r->param);
}

/* ---- tensors that nothing takes ---------------------------------------------------------------------------------- */

static uint32_t count_extras(const dt_stage *s, const dt_model *m, const dt_safetensors *f, dt_str *names)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < dt_safetensors_count(f); i++) {
        const char *name = dt_safetensors_at(f, i)->name;
        if (dt_tensor_has_role(name, m->role) && !has_param(s, name)) {
            if (n < MOST_NAMES) {
                dt_str_addf(names, "%s%s", n > 0 ? ", " : "", name);
            }
            n++;
        }
    }
    return n;
}

dt_status dt_mismatch_check_unused(const dt_stage *s, const dt_model *m, const dt_safetensors *f, const char *path,
                                   const dt_ckpt *ckpt, const char *otherwise, dt_str *note)
{
    dt_str names = {0}, text = {0};
    dt_mismatch why;
    const uint32_t n = count_extras(s, m, f, &names);
    if (n == 0) {
        return DT_OK;
    }
    dt_mismatch_find(s, m, ckpt, &why);
    const bool is_same_phase = ckpt != NULL && strcmp(dt_ckpt_info_get(ckpt)->phase, s->d.phase->desc.id) == 0;
    const bool is_known = why.model.bytes > 0 || why.data.bytes > 0;
    dt_status st = DT_OK;
    dt_mismatch_append(&why, &text);
    if (is_same_phase && why.model.bytes > 0 && why.data.bytes == 0) {
        /* the same phase is shown the same data: what is missing is missing by the model's own options */
        st = DT_FAIL(DT_ESHAPE, "%s has %u tensor%s of %s that %s has not as it is configured here, such as %s: %s%s%s",
                     path, n, n == 1 ? "" : "s", m->role, m->comp->desc.id, dt_str_text(&names), what_to_do,
                     dt_str_text(&text), otherwise);
    } else if (is_known || is_same_phase || (ckpt == NULL && s->n_data > 0)) {
        if (dt_comm_rank(s->d.comm) == 0) {
            dt_log(DT_LOG_WARN,
                   "%s: %u tensor%s of %s %s unused here, as %s is configured and by its inputs, such as "
                   "%s: if that is not intended, %s, and the options of its data%s",
                   path, n, n == 1 ? "" : "s", m->role, n == 1 ? "is" : "are", m->comp->desc.id, dt_str_text(&names),
                   what_to_do, dt_str_text(&text));
        }
    } else {
        dt_str_addf(note, "; %u that it does not use in this phase, such as %s", n, dt_str_text(&names));
    }
    dt_str_fini(&names);
    dt_str_fini(&text);
    dt_mismatch_fini(&why);
    return st;
}
