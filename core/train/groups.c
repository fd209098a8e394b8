/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups: losses and the roles whose parameters they move, each with learning rate, clipping and updates of its own. A
 * trainer without groups has one of everything. See svc/train.h and trainer_internal.h.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/graph/select.h"

#include <string.h>

enum { NO_GROUP = UINT8_MAX };

/* ---- life -------------------------------------------------------------------------------------------------------- */

static bool has_role(const dt_trainer_group *g, const dt_param *p)
{
    for (uint32_t i = 0; i < g->n_roles; i++) {
        const size_t n = strlen(g->role[i]);
        if (strncmp(p->name, g->role[i], n) == 0 && p->name[n] == '.') {
            return true;
        }
    }
    return false;
}

static uint8_t find_group(const dt_trainer *t, const dt_param *p)
{
    if (p->frozen) {
        return NO_GROUP;
    }
    for (uint32_t g = 0; g < t->d.n_groups; g++) {
        if (has_role(&t->d.group[g], p)) {
            return (uint8_t)g;
        }
    }
    return t->d.n_groups == 0 ? 0 : NO_GROUP;
}

dt_status dt_groups_create(dt_trainer *t)
{
    dt_train_state *s = &t->state;
    if (t->d.n_groups > DT_TRAIN_MAX_GROUPS) {
        return DT_FAIL(DT_EINVAL, "%u groups of losses; at most %d are possible", t->d.n_groups, DT_TRAIN_MAX_GROUPS);
    }
    s->n_groups = t->d.n_groups > 0 ? t->d.n_groups : 1;
    s->group_of = dt_alloc_n((size_t)t->d.params->n + 1, sizeof(*s->group_of));
    if (s->group_of == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        s->group_of[i] = find_group(t, &t->d.params->param[i]);
    }
    for (uint32_t i = 0; i < DT_TRAIN_MAX_TARGETS; i++) {
        s->target_group[i] = NO_GROUP;
    }
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        const dt_param *p = &t->d.params->param[i];
        if (p->is_target && s->group_of[p->of] != NO_GROUP) {
            s->target_group[p->target] = s->group_of[p->of];
        }
    }
    s->group[0].gradient_clip = t->c.gradient_clip;
    for (uint32_t g = 0; g < t->d.n_groups; g++) {
        const dt_trainer_group *d = &t->d.group[g];
        s->group[g] = (dt_group_state){.name = dt_strdup(d->name), .learning_rate = d->learning_rate};
        s->group[g].gradient_clip = d->gradient_clip == 0 ? t->c.gradient_clip : d->gradient_clip;
        if (s->group[g].name == NULL) {
            return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
        }
    }
    return DT_OK;
}

void dt_groups_destroy(dt_trainer *t)
{
    for (uint32_t g = 0; g < t->state.n_groups; g++) {
        dt_free(t->state.group[g].name);
    }
    dt_free(t->state.group_of);
}

/* ---- in the graph of steps --------------------------------------------------------------------------------------- */

static bool lists_loss(const dt_trainer_group *g, const char *loss)
{
    for (uint32_t i = 0; i < g->n_losses; i++) {
        if (strcmp(g->loss[i], loss) == 0) {
            return true;
        }
    }
    return false;
}

static dt_status find_group_of_loss(const dt_trainer *t, const char *loss, uint32_t *group_p)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < t->d.n_groups; g++) {
        if (lists_loss(&t->d.group[g], loss)) {
            if (n++ > 0) {
                return DT_FAIL(DT_EPLUGIN, "loss %s is in two groups, %s and %s", loss, t->d.group[*group_p].name,
                               t->d.group[g].name);
            }
            *group_p = g;
        }
    }
    return n == 1 ? DT_OK : DT_FAIL(DT_EPLUGIN, "loss %s is in no group, so it updates no parameters", loss);
}

static dt_status check_listed(const dt_trainer *t, const dt_graph_loss *loss, uint32_t n)
{
    for (uint32_t g = 0; g < t->d.n_groups; g++) {
        const dt_trainer_group *d = &t->d.group[g];
        for (uint32_t i = 0; i < d->n_losses; i++) {
            uint32_t k = 0;
            while (k < n && strcmp(loss[k].name, d->loss[i]) != 0) {
                k++;
            }
            if (k == n) {
                return DT_FAIL(DT_EPLUGIN, "group %s has the loss %s, which is not recorded", d->name, d->loss[i]);
            }
        }
    }
    return DT_OK;
}

dt_status dt_groups_assign(const dt_trainer *t, dt_graph *g)
{
    const dt_graph_loss *loss = NULL;
    uint32_t of_loss[DT_GRAPH_MAX_LOSSES];
    const uint32_t n = dt_graph_losses(g, &loss);
    if (t->d.n_groups == 0) {
        return DT_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(find_group_of_loss(t, loss[i].name, &of_loss[i]));
    }
    DT_TRY(check_listed(t, loss, n));
    uint32_t *of_param = dt_alloc_n((size_t)t->d.params->n + 1, sizeof(*of_param));
    if (of_param == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        of_param[i] = t->state.group_of[i];
    }
    dt_graph_set_groups(g, t->d.n_groups, of_loss, of_param);
    dt_free(of_param);
    return DT_OK;
}

static dt_status check_reaches_params(const dt_trainer *t, const dt_graph *g, uint32_t group, bool *is_reached,
                                      bool *any_p)
{
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(g, &loss);
    *any_p = false;
    for (uint32_t i = 0; i < n && !*any_p; i++) {
        if (loss[i].group == group) {
            DT_TRY(dt_graph_params_of_loss(g, loss[i].name, is_reached));
            for (uint32_t p = 0; p < t->d.params->n; p++) {
                *any_p = *any_p || is_reached[p];
            }
        }
    }
    return DT_OK;
}

static dt_status fail_without_params(const dt_trainer *t)
{
    if (t->d.params->n == 0) {
        return DT_FAIL(DT_EPLUGIN,
                       "a trainer makes steps, but its models have no parameters; give it a model that registers "
                       "some (dt_train_desc.models)");
    }
    return DT_FAIL(DT_ECONFIG,
                   "a trainer updates nothing: its losses depend on no parameter that is trained (%u registered, the "
                   "first is %s); freeze less (training.freeze, training.freeze_loaded), or record losses that depend "
                   "on them",
                   t->d.params->n, t->d.params->param[0].name);
}

dt_status dt_groups_check(const dt_trainer *t, const dt_graph *g)
{
    bool *is_reached = dt_alloc_n((size_t)t->d.params->n + 1, sizeof(*is_reached));
    dt_status st = is_reached != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    for (uint32_t i = 0; i < t->d.n_groups && st == DT_OK; i++) {
        bool any = false;
        st = check_reaches_params(t, g, i, is_reached, &any);
        if (st == DT_OK && !any) {
            st = DT_FAIL(DT_ECONFIG,
                         "group %s updates nothing: its losses depend on no parameter of its roles that is trained; "
                         "freeze less",
                         t->d.group[i].name);
        }
    }
    if (t->d.n_groups == 0 && t->d.apart == NULL && !t->d.only_acts && st == DT_OK) {
        bool any = false;
        st = check_reaches_params(t, g, 0, is_reached, &any);
        if (st == DT_OK && !any) {
            st = fail_without_params(t);
        }
    }
    dt_free(is_reached);
    return st;
}

void dt_groups_exclude_params(dt_trainer *t, const bool *param)
{
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        t->state.group_of[i] = param[i] ? NO_GROUP : t->state.group_of[i];
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

dt_status dt_groups_select(dt_trainer *t, uint32_t groups)
{
    const uint32_t all = UINT32_MAX >> (32 - t->state.n_groups);
    if (groups == 0 || (groups & ~all) != 0) {
        return DT_FAIL(DT_EINVAL, "a step of the groups 0x%x; there %s %u, the mask is 0x%x", groups,
                       t->state.n_groups == 1 ? "is" : "are", t->state.n_groups, all);
    }
    t->scratch.groups = groups;
    return DT_OK;
}

double dt_group_learning_rate(const dt_trainer *t, uint32_t group, uint64_t update)
{
    const double own = t->state.group[group].learning_rate;
    dt_schedule s = t->c.schedule;
    if (own > 0) {
        s.eta_min *= s.lr > 0 ? own / s.lr : 1; /* what is scheduled is the share of the rate */
        s.lr = own;
    }
    return dt_schedule_rate(&s, (double)(update + t->state.bypassed) / (double)t->state.steps_per_epoch);
}

void dt_groups_set_updates(dt_trainer *t, uint64_t updates)
{
    t->state.updates = updates;
    for (uint32_t g = 0; g < t->state.n_groups; g++) {
        t->state.group[g].updates = updates;
    }
}

/* ---- reports --------------------------------------------------------------------------------------------------------
 * */

uint32_t dt_trainer_groups(const dt_trainer *t, const dt_group_state **out_p)
{
    *out_p = t->state.group;
    return t->state.group[0].name != NULL ? t->state.n_groups : 0;
}

uint32_t dt_trainer_reported_groups(const dt_trainer *t)
{
    return t->scratch.reported;
}
