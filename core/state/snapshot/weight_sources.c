/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "state/snapshot/weight_sources.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "rl/experience/service.h"
#include "state/snapshot/mismatch.h"
#include "state/snapshot/snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SOURCES = 1 + DT_CKPT_MAX_PHASES };

typedef struct source {
    dt_ckpt *ckpt;        /* NULL: a file of its own */
    dt_safetensors *file; /* NULL: a checkpoint */
    const char *path;
    char note[96]; /* what it is, for the log */
} source;

struct dt_weight_sources {
    source from[MAX_SOURCES];
    uint32_t n;
    dt_str path; /* of the .safetensors file */
};

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static const dt_safetensors *tensors_of_source(const source *s)
{
    return s->ckpt != NULL ? dt_ckpt_model(s->ckpt) : s->file;
}

/* skipped (may be NULL): the damaged ones that were passed over. */
static dt_status add_checkpoint(dt_weight_sources *h, const char *path, const char *kind, dt_str *skipped)
{
    source *s = &h->from[h->n];
    DT_TRY(dt_ckpt_open_weights(path, skipped, &s->ckpt));
    const dt_ckpt_info *info = dt_ckpt_info_get(s->ckpt);
    s->path = info->path;
    snprintf(s->note, sizeof(s->note), "%s%s", kind, info->phase);
    h->n++;
    return DT_OK;
}

/* The checkpoint that a phase hands over, -1: none. sign: +1 where the largest metric is the best, -1 the smallest, 0
 * where the phase's end is wanted. A phase that was not finished hands over nothing. */
static int64_t choose_checkpoint(const dt_ckpt_info *list, uint32_t n, int64_t phase, int sign)
{
    int64_t end = -1, best = -1;
    for (uint32_t i = 0; i < n; i++) { /* oldest first: of equals the newest */
        if (!list[i].valid || list[i].phase_index != phase) {
            continue;
        }
        end = list[i].phase_end ? i : end;
        if (sign != 0 && isfinite(list[i].metric) && (best < 0 || sign * list[i].metric >= sign * list[best].metric)) {
            best = i;
        }
    }
    return end >= 0 && best >= 0 ? best : end;
}

/* What phases before `index` left in a run or its folder of checkpoints, newest first. c: determines for each whether
 * its end or its best is handed over; NULL: the end. */
static dt_status add_earlier_phases(dt_weight_sources *h, const char *folder, dt_config *c, int64_t index)
{
    dt_ckpt_info *list = NULL;
    uint32_t n = 0;
    dt_status st = dt_ckpt_list(folder, &list, &n);
    for (int64_t i = (index < DT_CKPT_MAX_PHASES ? index : DT_CKPT_MAX_PHASES) - 1; i >= 0 && st == DT_OK; i--) {
        dt_checkpoint_opts o = {.hand_on = DT_HAND_ON_LAST};
        st = c != NULL ? dt_config_checkpoint(c, i, &o) : DT_OK;
        const int sign = o.hand_on == DT_HAND_ON_LAST ? 0 : strncmp(o.best_by, "min:", 4) == 0 ? -1 : 1;
        const int64_t at = st == DT_OK ? choose_checkpoint(list, n, i, sign) : -1;
        if (at >= 0) {
            const bool is_best = sign != 0 && isfinite(list[at].metric);
            if (sign != 0 && !is_best) {
                dt_log(DT_LOG_WARN,
                       "phase %lld passes on its last checkpoint: none of its checkpoints was evaluated by %s",
                       (long long)i + 1, o.best_by);
            }
            st = add_checkpoint(h, list[at].path, is_best ? "best of " : "end of ", NULL);
        }
    }
    dt_free(list);
    return st;
}

static dt_status return_sources(dt_weight_sources *h, dt_status st, dt_weight_sources **out_p)
{
    if (st < 0) {
        dt_weight_sources_close(h);
        return st;
    }
    *out_p = h;
    return DT_OK;
}

dt_status dt_weight_sources_open_previous(const char *run_dir, dt_config *c, int64_t index, dt_weight_sources **out_p)
{
    dt_weight_sources *h = dt_alloc(sizeof(*h));
    if (h == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the weights of the phases before");
    }
    return return_sources(h, add_earlier_phases(h, run_dir, c, index), out_p);
}

/* The newest checkpoint of phase `id` in a run that opens. DT_ENOTFOUND: the run has none of this phase. */
static dt_status add_newest_of_phase(dt_weight_sources *h, const char *path, const char *id, dt_str *skipped)
{
    dt_ckpt_info *list = NULL;
    uint32_t n = 0;
    DT_TRY(dt_ckpt_list(path, &list, &n));
    dt_status st = DT_ENOTFOUND;
    uint32_t n_skipped = 0;
    for (uint32_t i = n; i-- > 0;) {
        if (list[i].valid && strcmp(list[i].phase, id) != 0) {
            continue;
        }
        if (list[i].valid) {
            st = add_checkpoint(h, list[i].path, "", NULL);
            if (st != DT_EDATA && st != DT_EIO) {
                break;
            }
        }
        if (n_skipped++ < DT_CKPT_MAX_SKIPS_LISTED) {
            dt_str_addf(skipped, "step-%012llu skipped: %s\n", (unsigned long long)list[i].step,
                        list[i].valid ? dt_error_text() : list[i].why);
        }
    }
    if (n_skipped > DT_CKPT_MAX_SKIPS_LISTED) {
        dt_str_addf(skipped, "%u more skipped\n", n_skipped - DT_CKPT_MAX_SKIPS_LISTED);
    }
    dt_free(list);
    return st;
}

/* Of a run: the newest of phase `id`, or of any where it has none of that; warns of damaged ones. */
static dt_status add_newest_checkpoint(dt_weight_sources *h, const char *path, const char *id)
{
    dt_str skipped = {0};
    dt_status st = id != NULL ? add_newest_of_phase(h, path, id, &skipped) : DT_ENOTFOUND;
    if (st == DT_ENOTFOUND) {
        dt_str_clear(&skipped);
        st = add_checkpoint(h, path, "", &skipped);
    }
    if (st == DT_OK && skipped.bytes > 0) {
        dt_log_lines(DT_LOG_WARN, dt_str_text(&skipped));
        dt_log(DT_LOG_WARN, "using %s", h->from[0].path);
    }
    dt_str_fini(&skipped);
    return st;
}

static dt_status open_folder(dt_weight_sources *h, const char *path, const char *id)
{
    dt_str manifest = {0};
    dt_str_addf(&manifest, "%s/MANIFEST.json", path);
    const bool is_step = dt_fs_is_file(dt_str_text(&manifest));
    dt_status st = dt_str_status(&manifest);
    dt_str_fini(&manifest);
    DT_TRY(st);
    if (is_step) {
        return add_checkpoint(h, path, "", NULL);
    }
    DT_TRY(add_newest_checkpoint(h, path, id));
    return add_earlier_phases(h, path, NULL, dt_ckpt_info_get(h->from[0].ckpt)->phase_index);
}

dt_status dt_weight_sources_open(const char *path, const char *id, dt_weight_sources **out_p)
{
    dt_weight_sources *h = dt_alloc(sizeof(*h));
    if (h == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the weights of %s", path);
    }
    dt_status st = DT_OK;
    if (dt_fs_is_dir(path)) {
        st = open_folder(h, path, id);
    } else {
        dt_str_add(&h->path, path);
        st = dt_str_status(&h->path);
        if (st == DT_OK) {
            bool has_seal = false; /* files of others have none */
            st = dt_safetensors_open(path, &h->from[0].file);
            if (st == DT_OK) {
                st = dt_safetensors_check_seal(h->from[0].file, &has_seal);
            }
        }
        h->from[0].path = dt_str_text(&h->path);
        h->n = h->from[0].file != NULL; /* what close releases, also where its seal is wrong */
    }
    return return_sources(h, st < 0 ? DT_CONTEXT(st, "initialising from %s", path) : st, out_p);
}

void dt_weight_sources_close(dt_weight_sources *h)
{
    if (h == NULL) {
        return;
    }
    for (uint32_t i = 0; i < h->n; i++) {
        dt_ckpt_close(h->from[i].ckpt);
        dt_safetensors_close(h->from[i].file);
    }
    dt_str_fini(&h->path);
    dt_free(h);
}

/* ---- what is in it ----------------------------------------------------------------------------------------------- */

const dt_ckpt_info *dt_weight_sources_checkpoint(const dt_weight_sources *h)
{
    return h->n > 0 && h->from[0].ckpt != NULL ? dt_ckpt_info_get(h->from[0].ckpt) : NULL;
}

bool dt_weight_sources_is_empty(const dt_weight_sources *h)
{
    return h == NULL || h->n == 0;
}

static bool has_role(const source *s, const char *role)
{
    const dt_safetensors *f = tensors_of_source(s);
    for (uint32_t i = 0; i < dt_safetensors_count(f); i++) {
        if (dt_tensor_has_role(dt_safetensors_at(f, i)->name, role)) {
            return true;
        }
    }
    return false;
}

static const source *find_source(const dt_weight_sources *h, const char *role)
{
    for (uint32_t i = 0; i < h->n; i++) {
        if (has_role(&h->from[i], role)) {
            return &h->from[i];
        }
    }
    return NULL;
}

bool dt_weight_sources_has_role(const dt_weight_sources *h, const char *role)
{
    return h != NULL && find_source(h, role) != NULL;
}

dt_status dt_weight_sources_loaded_roles(const dt_weight_sources *h, dt_roles *roles_p)
{
    roles_p->n = 0;
    return h->n > 0 && h->from[0].ckpt != NULL ? dt_snapshot_loaded_roles(h->from[0].ckpt, roles_p) : DT_OK;
}

dt_status dt_weight_sources_list_stores(const dt_weight_sources *h, dt_str *out, bool *known_p)
{
    *known_p = h->n > 0;
    for (uint32_t i = 0; i < h->n; i++) {
        bool is_known = false;
        if (h->from[i].ckpt != NULL) {
            DT_TRY(dt_snapshot_list_stores(h->from[i].ckpt, out, &is_known));
        }
        *known_p = *known_p && is_known;
    }
    return DT_OK;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* A word that names none of the phase's models is a mistake, unless it is a role it might have had. */
static dt_status check_fresh(const dt_stage *s, const char *const *fresh)
{
    for (; fresh != NULL && *fresh != NULL; fresh++) {
        if (!dt_config_has_role(s->d.config, *fresh)) {
            dt_str roles = {0};
            dt_config_role_names(s->d.config, &roles);
            const dt_status st = DT_FAIL(DT_ECONFIG, "fresh of the phase contains \"%s\", which is not a role (%s)",
                                         *fresh, dt_str_text(&roles));
            dt_str_fini(&roles);
            return st;
        }
    }
    return DT_OK;
}

static const int64_t *find_shape_in_file(const void *user, const char *name, uint32_t *n_dims_p)
{
    const dt_st_tensor *t = dt_safetensors_find(user, name);
    *n_dims_p = t != NULL ? t->n_dims : 0;
    return t != NULL ? t->dim : NULL;
}

/* Removes from t what keeps its initial values; names: of that. */
static uint32_t remove_renewed(const dt_stage *s, const dt_renewed *r, dt_ckpt_tensor *t, uint32_t n, dt_str *names)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (dt_mismatch_is_renewed(s, r, t[i].name)) {
            dt_str_addf(names, "%s%s", names->bytes > 0 ? ", " : "", t[i].name);
        } else {
            t[kept++] = t[i];
        }
    }
    return kept;
}

/* All tensors of a role, or of a target network; of another number of costs, all but the head of their values. */
static dt_status load_tensors(const dt_stage *s, const char *role, const source *from, dt_ckpt_tensor *t, uint32_t *n)
{
    const dt_safetensors *f = tensors_of_source(from);
    dt_str names = {0};
    dt_renewed r;
    dt_error reason;
    dt_status st = dt_safetensors_load(f, t, *n, DT_LOAD_EXTRA_OK);
    if (st != DT_ESHAPE) {
        return st;
    }
    dt_error_save(&reason, st);
    st = dt_mismatch_find_renewed(s, role, find_shape_in_file, f, &r);
    if (st == DT_OK && r.n == 0) {
        st = dt_error_restore(&reason);
    } else if (st == DT_OK) {
        dt_error_clear();
        *n = remove_renewed(s, &r, t, *n, &names);
        st = dt_safetensors_load(f, t, *n, DT_LOAD_EXTRA_OK);
    }
    if (st == DT_OK) {
        st = dt_str_status(&names);
    }
    if (st == DT_OK && dt_comm_rank(s->d.comm) == 0) {
        dt_log(DT_LOG_WARN,
               "%s: the number of costs differs, %lld in the file and %lld in this environment: the head of their "
               "values starts from initial weights (%s); acting does not need it, and training learns it again",
               from->path, (long long)r.there, (long long)r.here, dt_str_text(&names));
    }
    dt_mismatch_renewed_fini(&r);
    dt_str_fini(&names);
    return st;
}

static dt_status load_role(dt_stage *s, const dt_model *m, const source *from, uint32_t want, dt_ckpt_tensor *t,
                           uint32_t n)
{
    const char *otherwise = want == DT_WEIGHTS_ALL ? "" : ", or start it from random weights (fresh)";
    const dt_safetensors *f = tensors_of_source(from);
    dt_str note = {0};
    DT_TRY(dt_mismatch_check_constants(s, m, f, from->path, from->ckpt, otherwise));
    dt_status st = load_tensors(s, m->role, from, t, &n);
    if (st < 0) {
        st = dt_mismatch_context(st, s, m, from->ckpt);
        return DT_CONTEXT(st, "%s of this phase is %s (%s)", m->role, m->comp->desc.id, m->comp->plugin->path);
    }
    st = dt_mismatch_check_unused(s, m, f, from->path, from->ckpt, otherwise, &note);
    if (st == DT_OK && dt_comm_rank(s->d.comm) == 0) {
        dt_log(DT_LOG_INFO, "%-10s %u tensors from %s%s%s%s", m->role, n, from->path, from->note[0] != '\0' ? ", " : "",
               from->note, dt_str_text(&note));
    }
    dt_str_fini(&note);
    return st;
}

/* The role's tensors in the stage; returns how many. */
static uint32_t collect_tensors(dt_stage *s, const char *role, dt_ckpt_tensor *t)
{
    uint32_t n = 0;
    const dt_param *p = NULL;
    float *value = NULL;
    for (uint32_t i = 0; (p = dt_stage_param(s, i, &value)) != NULL; i++) {
        if (dt_tensor_has_role(p->name, role)) {
            t[n++] = (dt_ckpt_tensor){.name = p->name, .dim = p->dim, .n_dims = p->n_dims, .data = value};
        }
    }
    return n;
}

static dt_status load_roles(const dt_weight_sources *h, dt_stage *s, const char *const *fresh, uint32_t want,
                            dt_ckpt_tensor *t, uint32_t *n_loaded_p)
{
    for (uint32_t i = 0; i < s->n_models; i++) {
        const dt_model *m = &s->model[i];
        const uint32_t n = collect_tensors(s, m->role, t);
        const bool is_fresh = dt_role_is_listed(fresh, m->role);
        const source *from = n > 0 && !is_fresh ? find_source(h, m->role) : NULL;
        if (from != NULL) {
            DT_TRY(load_role(s, m, from, want, t, n));
            *n_loaded_p += n;
        } else if (n > 0 && want == DT_WEIGHTS_ALL && strcmp(m->role, "shield") != 0) {
            return DT_FAIL(DT_ESHAPE, "%s is not in the file, nor any other tensor of %s %s", t[0].name, m->role,
                           m->comp->desc.id);
        } else if (n > 0 && dt_comm_rank(s->d.comm) == 0) {
            dt_log(DT_LOG_INFO, "%-10s starts from its initial weights: %s", m->role,
                   is_fresh ? "the phase requests fresh weights"
                            : "the initial weights of the phase contain none of it");
        }
    }
    return DT_OK;
}

/* Target networks start as copies of their models; a whole evaluation loads those that were saved. */
static dt_status load_target_networks(const dt_weight_sources *h, dt_stage *s, const dt_train *of, uint32_t want,
                                      dt_ckpt_tensor *t)
{
    char role[128];
    DT_TRY(dt_trainer_copy_to_targets(of->trainer, NULL));
    for (uint32_t i = 0; i < of->params->n_targets && want == DT_WEIGHTS_ALL; i++) {
        snprintf(role, sizeof(role), "%s@%s", of->params->target[i].role, of->params->target[i].name);
        uint32_t n = collect_tensors(s, role, t);
        const source *from = n > 0 ? find_source(h, role) : NULL;
        DT_TRY(from != NULL ? load_tensors(s, role, from, t, &n) : DT_OK);
    }
    return DT_OK;
}

/* A .safetensors file has means and scales for acting, but not their counts, so that training cannot continue them. */
static void warn_of_statistics(const dt_stage *s, const source *from)
{
    static const char prefix[] = "normaliser.";
    const dt_safetensors *f = tensors_of_source(from);
    for (uint32_t i = 0; i < dt_safetensors_count(f) && s->rollout != NULL && dt_comm_rank(s->d.comm) == 0; i++) {
        const char *name = dt_safetensors_at(f, i)->name;
        if (strncmp(name, prefix, sizeof(prefix) - 1) == 0) {
            dt_log(DT_LOG_WARN,
                   "statistics of observations in %s (%s) are left out, as it has only means and scales, and %s; to "
                   "keep those that the weights were trained with, name the run or its checkpoint",
                   from->path, name,
                   dt_rollout_is_normalised(s->rollout) ? "they start empty" : "this phase normalises none");
            return;
        }
    }
}

/* Statistics come from the newest file that some weights came from and that has any. */
static dt_status load_normaliser(const dt_weight_sources *h, dt_stage *s, const char *const *fresh)
{
    for (uint32_t i = 0; i < h->n; i++) {
        bool is_used = false;
        for (uint32_t k = 0; k < s->n_models; k++) {
            is_used = is_used ||
                      (!dt_role_is_listed(fresh, s->model[k].role) && find_source(h, s->model[k].role) == &h->from[i]);
        }
        bool is_there = false;
        if (is_used && h->from[i].ckpt != NULL) {
            DT_TRY(dt_snapshot_load_normaliser(s, h->from[i].ckpt, &is_there));
        } else if (is_used) {
            warn_of_statistics(s, &h->from[i]);
        }
        if (is_there) {
            return DT_OK;
        }
    }
    return DT_OK;
}

dt_status dt_weight_sources_load(const dt_weight_sources *h, dt_stage *s, const char *const *fresh, uint32_t want)
{
    uint32_t n = 0;
    if (s->trainer == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "phase %s has no trainer to load weights into", s->d.phase->desc.id);
    }
    DT_TRY(check_fresh(s, fresh));
    const uint32_t n_params = dt_stage_n_params(s);
    dt_ckpt_tensor *t = dt_alloc_n(n_params > 0 ? n_params : 1, sizeof(*t));
    dt_status st = t != NULL ? dt_stage_synchronize(s) : DT_FAIL(DT_ENOMEM, "out of memory for loading weights");
    if (st == DT_OK) {
        st = load_roles(h, s, fresh, want, t, &n);
    }
    if (st == DT_OK && n == 0 && n_params > 0 && want == DT_WEIGHTS_SOME) {
        st = DT_FAIL(DT_ESHAPE, "%s contains none of this phase's %u parameters, such as %s",
                     h->n > 0 ? h->from[0].path : "what was passed on", n_params, dt_stage_param(s, 0, NULL)->name);
    }
    for (uint32_t i = 0; st == DT_OK && i < s->n_trains; i++) {
        st = load_target_networks(h, s, &s->train[i], want, t);
    }
    if (st == DT_OK) {
        st = load_normaliser(h, s, fresh);
    }
    dt_free(t);
    return st < 0 ? DT_CONTEXT(st, "first weights of %s", s->d.phase->desc.id) : st;
}
