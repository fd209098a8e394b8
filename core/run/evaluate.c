/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "run/evaluate.h"

#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "state/snapshot/weight_sources.h"
#include "state/snapshot/snapshot.h"

#include <stdio.h>
#include <string.h>

/* A folder without a configuration next to it may still be a checkpoint; a damaged one is reported as damaged. */
static dt_status fail_missing_configuration(const char *path, bool has_config)
{
    dt_ckpt_info info;
    if (dt_fs_is_file(path) || has_config) {
        return DT_OK;
    }
    const dt_status st = dt_ckpt_inspect(path, &info);
    return st == DT_ENOTFOUND
               ? DT_FAIL(DT_ECONFIG,
                         "--checkpoint: there is no checkpoint at %s; name a run, one of its checkpoints, "
                         "or a file of weights: `dtrain runs` lists runs",
                         path)
               : st;
}

/* Options of the phase that differ from those of training: the evaluation uses them. */
static void log_other_options(const dt_session *s, int64_t phase, const dt_config *trained)
{
    const dt_component *c = &s->phase[phase]->desc;
    for (const dt_option *o = c->options; o != NULL && o->name != NULL; o++) {
        char path[160];
        const char *now = NULL, *then = NULL;
        dt_origin by, before;
        snprintf(path, sizeof(path), "%s.%s", c->id, o->name);
        if (dt_config_get(s->config, phase, path, &now, &by) == DT_OK && by.layer > DT_FROM_RUN &&
            phase < dt_config_n_phases(trained) && dt_config_get(trained, phase, path, &then, &before) == DT_OK &&
            !dt_is_same_value(now, then)) {
            dt_str origin = {0};
            dt_origin_text(&by, &origin);
            dt_log(DT_LOG_WARN, "evaluated with %s = %s from %s, but trained with %s", path, now, dt_str_text(&origin),
                   then);
            dt_str_fini(&origin);
        }
    }
    dt_error_clear(); /* of what the older one has not */
}

static dt_status warn_of_settings(const dt_session *s, const char *recorded)
{
    dt_config *trained = NULL;
    DT_TRY(dt_config_create(&trained));
    const dt_status st = dt_config_read_file(trained, DT_FROM_RUN, recorded);
    for (int64_t i = s->first; i < s->last && st == DT_OK; i++) {
        log_other_options(s, i, trained);
    }
    dt_config_destroy(trained);
    return st;
}

dt_status dt_eval_open(const dt_args *a, dt_session *s)
{
    dt_str config = {0};
    dt_ckpt_run_config(a->checkpoint, &config);
    dt_status st = dt_str_status(&config);
    if (st == DT_OK && a->checkpoint != NULL) {
        st = fail_missing_configuration(a->checkpoint, config.bytes > 0);
    }
    if (st == DT_OK) {
        st = dt_session_open(a, config.bytes > 0 ? dt_str_text(&config) : NULL, NULL, s);
        if (st == DT_OK && config.bytes > 0) {
            st = warn_of_settings(s, dt_str_text(&config));
            if (st == DT_OK) {
                st = dt_session_limit_counts(s);
            }
            if (st < 0) {
                dt_session_close(s);
            }
        }
    }
    dt_str_fini(&config);
    return st;
}

dt_status dt_eval_find_phase(const dt_session *s, const char *checkpoint, int64_t *index_p)
{
    dt_ckpt_info info;
    *index_p = s->first;
    if (s->last - s->first == 1) {
        return DT_OK;
    }
    if (checkpoint != NULL && dt_fs_is_dir(checkpoint)) {
        DT_TRY(dt_ckpt_inspect(checkpoint, &info));
        *index_p = info.phase_index;
        if (*index_p >= s->first && *index_p < s->last && strcmp(info.phase, s->phase[*index_p]->desc.id) == 0) {
            return DT_OK;
        }
    }
    return DT_FAIL(DT_ECONFIG, "the configuration has %lld phases; choose one with --phase", (long long)s->n_phases);
}

static dt_status load_weights(dt_stage *stage, const dt_weight_sources *from)
{
    const dt_ckpt_info *info = dt_weight_sources_checkpoint(from);
    DT_TRY(dt_weight_sources_load(from, stage, NULL, DT_WEIGHTS_ALL));
    DT_TRY(info != NULL ? dt_snapshot_load_acting(stage, info->path) : DT_OK);
    /* what is frozen was decided before, and nothing is trained here: it determines what was trained */
    return dt_weight_sources_loaded_roles(from, &stage->d.loaded);
}

dt_status dt_eval_load_weights(dt_stage *stage, const char *path, dt_ckpt_info *taken)
{
    dt_weight_sources *from = NULL;
    dt_status st = dt_weight_sources_open(path, stage->d.phase->desc.id, &from);
    if (st == DT_OK) {
        st = load_weights(stage, from);
    }
    if (st == DT_OK && taken != NULL && dt_weight_sources_checkpoint(from) != NULL) {
        *taken = *dt_weight_sources_checkpoint(from);
    }
    dt_weight_sources_close(from);
    return st;
}

static dt_status create_and_evaluate(dt_stage_desc *d, const dt_weight_sources *from, dt_eval *e)
{
    dt_progress p;
    DT_TRY(dt_stage_create(d, &e->stage));
    DT_TRY(dt_stage_start(e->stage));
    if (from != NULL && e->stage->params.n > 0) {
        DT_TRY(load_weights(e->stage, from));
    }
    return dt_stage_evaluate(e->stage, &p);
}

dt_status dt_eval_run(const dt_session *s, int64_t index, const char *checkpoint, double frames_every_s, dt_eval *e)
{
    dt_weight_sources *from = NULL;
    *e = (dt_eval){.comm = NULL};
    pthread_mutex_init(&e->lock, NULL);
    DT_TRY(dt_comm_create_null(&e->comm));
    dt_stage_desc d = dt_session_describe_stage(s, index, e->comm, &e->lock);
    d.frames_every_s = frames_every_s;
    d.trained_on = &e->trained_on;
    dt_status st = DT_OK;
    if (checkpoint != NULL) {
        e->trained_on.is_trained = true;
        st = dt_weight_sources_open(checkpoint, d.phase->desc.id, &from);
        if (st == DT_OK) {
            st = dt_weight_sources_list_stores(from, &e->stores, &e->trained_on.is_known);
        }
        e->trained_on.stores = dt_str_text(&e->stores);
    }
    if (st == DT_OK) {
        st = create_and_evaluate(&d, from, e);
    }
    dt_weight_sources_close(from);
    return st;
}

void dt_eval_close(dt_eval *e)
{
    dt_stage_destroy(e->stage);
    dt_str_fini(&e->stores);
    dt_comm_destroy(e->comm);
    pthread_mutex_destroy(&e->lock);
}
