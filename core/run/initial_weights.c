/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/initial_weights.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "state/snapshot/mismatch.h"
#include "state/snapshot/snapshot.h"

#include <string.h>

/* ---- phases of a plan -------------------------------------------------------------------------------------------- */

typedef struct shape {
    char *name;
    uint32_t n_dims;
    int64_t dim[4];
    int64_t phase;
} shape;

struct dt_planned_shapes {
    shape *at;
    uint32_t n;
};

dt_status dt_planned_shapes_create(dt_planned_shapes **out_p)
{
    *out_p = dt_alloc(sizeof(**out_p));
    return *out_p != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the plan of a run");
}

static bool has_role(const dt_planned_shapes *p, const char *role)
{
    for (uint32_t i = 0; p != NULL && i < p->n; i++) {
        if (dt_tensor_has_role(p->at[i].name, role)) {
            return true;
        }
    }
    return false;
}

static const shape *find_shape(const dt_planned_shapes *p, const char *name)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (strcmp(p->at[i].name, name) == 0) {
            return &p->at[i];
        }
    }
    return NULL;
}

/* A role is taken whole from the newest phase that has it. */
static void remove_role(dt_planned_shapes *p, const char *role)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (dt_tensor_has_role(p->at[i].name, role)) {
            dt_free(p->at[i].name);
        } else {
            p->at[n++] = p->at[i];
        }
    }
    p->n = n;
}

void dt_planned_shapes_remove(dt_planned_shapes *p, const dt_stage *s)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        remove_role(p, s->model[i].role);
    }
}

void dt_planned_shapes_clear(dt_planned_shapes *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        dt_free(p->at[i].name);
    }
    p->n = 0;
}

void dt_planned_shapes_destroy(dt_planned_shapes *p)
{
    if (p != NULL) {
        dt_planned_shapes_clear(p);
        dt_free(p->at);
        dt_free(p);
    }
}

dt_status dt_planned_shapes_add(dt_planned_shapes *p, const dt_stage *s)
{
    dt_planned_shapes_remove(p, s);
    const dt_param *from = NULL;
    shape *all = dt_alloc_n((size_t)p->n + dt_stage_n_params(s) + 1, sizeof(*all));
    if (all == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the plan of a run");
    }
    for (uint32_t i = 0; i < p->n; i++) {
        all[i] = p->at[i];
    }
    dt_free(p->at);
    p->at = all;
    for (uint32_t i = 0; (from = dt_stage_param(s, i, NULL)) != NULL; i++) {
        shape *to = &p->at[p->n];
        if (from->is_target) {
            continue;
        }
        *to = (shape){.name = dt_strdup(from->name), .n_dims = from->n_dims, .phase = s->d.index};
        memcpy(to->dim, from->dim, sizeof(to->dim));
        if (to->name == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for the plan of a run");
        }
        p->n++;
    }
    return DT_OK;
}

static void append_dims(const int64_t *dim, uint32_t n, dt_str *out)
{
    dt_str_add(out, "[");
    for (uint32_t i = 0; i < n; i++) {
        dt_str_addf(out, "%s%lld", i > 0 ? ", " : "", (long long)dim[i]);
    }
    dt_str_add(out, "]");
}

static dt_status fail_shape(const dt_stage *s, const dt_model *m, const dt_param *here, const shape *there,
                            int64_t phase)
{
    dt_mismatch options;
    dt_str mine = {0}, theirs = {0}, why = {0};
    dt_mismatch_find_between_phases(s, m, phase, &options);
    dt_mismatch_append(&options, &why);
    dt_mismatch_fini(&options);
    append_dims(here->dim, here->n_dims, &mine);
    if (there != NULL) {
        append_dims(there->dim, there->n_dims, &theirs);
    } else {
        dt_str_add(&theirs, "missing");
    }
    const dt_status st =
        DT_FAIL(DT_ESHAPE,
                "%s is %s in phase %lld (%s) and %s in phase %lld, whose weights it takes%s: configure the model "
                "identically in both phases, or start it from random weights (fresh)",
                here->name, dt_str_text(&mine), (long long)s->d.index + 1, s->d.phase->desc.id, dt_str_text(&theirs),
                (long long)phase + 1, dt_str_text(&why));
    dt_str_fini(&why);
    dt_str_fini(&mine);
    dt_str_fini(&theirs);
    return st;
}

static int64_t find_phase_of_role(const dt_planned_shapes *p, const char *role)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (dt_tensor_has_role(p->at[i].name, role)) {
            return p->at[i].phase;
        }
    }
    return 0;
}

static const int64_t *find_planned_dims(const void *user, const char *name, uint32_t *n_dims_p)
{
    const shape *there = find_shape(user, name);
    *n_dims_p = there != NULL ? there->n_dims : 0;
    return there != NULL ? there->dim : NULL;
}

/* What the phases before will hand on has to fit, tensor by tensor, but for values of another number of costs. */
static dt_status compare_shapes(const dt_planned_shapes *p, const dt_stage *s, const dt_model *m, const dt_renewed *r)
{
    const char *role = m->role;
    const dt_param *here = NULL;
    for (uint32_t i = 0; (here = dt_stage_param(s, i, NULL)) != NULL; i++) {
        if (here->is_target || !dt_tensor_has_role(here->name, role)) {
            continue;
        }
        const shape *there = find_shape(p, here->name);
        const bool is_same = there != NULL && there->n_dims == here->n_dims &&
                             memcmp(there->dim, here->dim, here->n_dims * sizeof(*here->dim)) == 0;
        if (!is_same && !dt_mismatch_is_renewed(s, r, here->name)) {
            return fail_shape(s, m, here, there, find_phase_of_role(p, role));
        }
    }
    return DT_OK;
}

static dt_status compare_with_plan(const dt_planned_shapes *p, const dt_initial_weights *f, const dt_stage *s)
{
    dt_status st = DT_OK;
    for (uint32_t i = 0; i < s->n_models && st == DT_OK; i++) {
        const char *role = s->model[i].role;
        if (has_role(p, role) && !dt_role_is_listed(f->fresh, role)) {
            dt_renewed r;
            st = dt_mismatch_find_renewed(s, role, find_planned_dims, p, &r);
            if (st == DT_OK) {
                st = compare_shapes(p, s, &s->model[i], &r);
            }
            dt_mismatch_renewed_fini(&r);
        }
    }
    return st;
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static bool is_resumed(const dt_initial_weights_desc *d, int64_t index)
{
    return d->start->resume != NULL && index == d->start->begin;
}

/* By default a phase continues from those before it; then they may share no role. */
static dt_status open_weights(const dt_initial_weights_desc *d, int64_t index, dt_initial_weights *f)
{
    dt_config *c = d->session->config;
    const dt_phase_opts *p = &d->session->opts[index].phase;
    *f = (dt_initial_weights){.want = DT_WEIGHTS_SOME, .fresh = p->fresh};
    if (d->init_from != NULL && index == d->session->first) {
        return dt_weight_sources_open(d->init_from, NULL, &f->from);
    }
    if (strcmp(p->init, "random") == 0) {
        return DT_OK;
    }
    if (p->init[0] != '\0' && strcmp(p->init, "previous") != 0) {
        return dt_weight_sources_open(p->init, NULL, &f->from);
    }
    f->is_after = true;
    f->want = p->init[0] == '\0' || (d->planned != NULL && d->planned->n > 0) ? DT_WEIGHTS_OPTIONAL : DT_WEIGHTS_SOME;
    if (d->planned == NULL || dt_fs_is_dir(d->run_dir)) {
        DT_TRY(dt_weight_sources_open_previous(d->run_dir, c, index, &f->from));
    }
    const bool is_first = dt_weight_sources_is_empty(f->from) && (d->planned == NULL || d->planned->n == 0);
    if (is_first && p->init[0] != '\0') {
        return DT_FAIL(DT_ECONFIG, "init = \"previous\" in the first phase of this run: no phase precedes it; use "
                                   "\"random\" or a checkpoint");
    }
    return DT_OK;
}

dt_status dt_initial_weights_find(const dt_initial_weights_desc *d, int64_t index, dt_initial_weights *out,
                                  dt_roles *roles_p)
{
    *out = (dt_initial_weights){0};
    roles_p->n = 0;
    if (is_resumed(d, index)) {
        return dt_snapshot_loaded_roles(d->start->resume, roles_p);
    }
    pthread_mutex_lock(d->lock);
    dt_status st = open_weights(d, index, out);
    const char *role[DT_CONFIG_MAX_ROLES];
    const uint32_t n = dt_config_roles(d->session->config, role);
    pthread_mutex_unlock(d->lock);
    for (uint32_t i = 0; i < n && st == DT_OK; i++) {
        const bool is_there =
            dt_weight_sources_has_role(out->from, role[i]) || (out->is_after && has_role(d->planned, role[i]));
        st = is_there ? dt_roles_add(roles_p, role[i]) : DT_OK;
    }
    for (const char *const *fresh = out->fresh; fresh != NULL && *fresh != NULL; fresh++) {
        dt_roles_remove(roles_p, *fresh);
    }
    return st;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Of a run that continues, the roles that no phase of the plan will hand on. */
static dt_status load_unplanned(const dt_planned_shapes *p, const dt_initial_weights *f, dt_stage *s)
{
    const char *fresh[DT_ROLES_MAX + DT_STAGE_MAX_MODELS + 1];
    uint32_t n = 0;
    for (; f->fresh != NULL && f->fresh[n] != NULL && n < DT_ROLES_MAX; n++) {
        fresh[n] = f->fresh[n];
    }
    for (uint32_t i = 0; i < s->n_models; i++) {
        if (has_role(p, s->model[i].role)) {
            fresh[n++] = s->model[i].role;
        }
    }
    fresh[n] = NULL;
    return dt_weight_sources_load(f->from, s, fresh, f->want);
}

dt_status dt_initial_weights_check_shapes(const dt_initial_weights_desc *d, const dt_initial_weights *f,
                                          const dt_stage *s)
{
    return f->is_after && d->planned != NULL ? compare_with_plan(d->planned, f, s) : DT_OK;
}

dt_status dt_initial_weights_load(const dt_initial_weights_desc *d, const dt_initial_weights *f, dt_stage *s)
{
    if (is_resumed(d, s->d.index)) {
        return dt_snapshot_load(s, d->start->resume);
    }
    DT_TRY(dt_initial_weights_check_shapes(d, f, s));
    if (dt_weight_sources_is_empty(f->from)) {
        return DT_OK;
    }
    return f->is_after && d->planned != NULL ? load_unplanned(d->planned, f, s)
                                             : dt_weight_sources_load(f->from, s, f->fresh, f->want);
}

void dt_initial_weights_close(dt_initial_weights *f)
{
    dt_weight_sources_close(f->from);
    f->from = NULL;
}
