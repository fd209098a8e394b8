/* SPDX-License-Identifier: Apache-2.0
 *
 * See stage.h: the life of a phase's instance.
 */
#include <config.h>

#include "plugin/service/stage.h"

#include "base/err.h"
#include "base/fp_mode.h"
#include "base/plugin_call.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

static dt_status create_phase(dt_stage *s)
{
    const dt_loaded *p = s->d.phase;
    dt_status st = DT_OK;
    s->config = dt_alloc(p->desc.config_size > 0 ? p->desc.config_size : 1);
    s->self = dt_alloc(p->desc.state_size > 0 ? p->desc.state_size : 1);
    if (s->config == NULL || s->self == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for phase %s", p->desc.id);
    }
    if (p->desc.options != NULL) {
        DT_TRY(dt_config_section(s->d.config, s->d.index, p->desc.id, NULL, 0, s->config, p->desc.config_size));
        DT_TRY(dt_reject_disabled_options(s, p, s->config));
    }
    if (p->desc.check != NULL) {
        DT_CALL_PLUGIN(st, p->desc.id, "check", p->desc.check(&s->host, s->config));
        DT_TRY_PLUGIN(st, "check");
    }
    s->created = true;
    DT_CALL_PLUGIN(st, p->desc.id, "create", p->ops.phase.create(s->self, &s->host, s->config));
    return dt_error_blame_plugin(st);
}

static dt_status create_parts(dt_stage *s)
{
    DT_TRY(dt_config_sections(s->d.config, s->d.index, &s->opts));
    if (s->opts.data.batch == DT_BATCH_AUTO) { /* a run replaces it before its stages are created */
        return DT_FAIL(DT_ECONFIG,
                       "data.batch = \"auto\" becomes a number when a run begins, and this is not a run: set "
                       "data.batch to one, as in --set data.batch=64");
    }
    return create_phase(s);
}

dt_status dt_stage_create(const dt_stage_desc *d, dt_stage **out_p)
{
    dt_stage *s = dt_alloc(sizeof(*s));
    if (s == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for phase %s", d->phase->desc.id);
    }
    s->d = *d;
    s->fp_mode = dt_fp_mode_get();
    dt_services_init(s);
    dt_status st = create_parts(s);
    if (st < 0) {
        dt_stage_destroy(s);
        return DT_CONTEXT(st, "phase %s", d->phase->desc.id);
    }
    *out_p = s;
    return DT_OK;
}

/* After a callback that returned st. */
static dt_status take_misuse(dt_stage *s, dt_status st)
{
    const dt_status misuse = s->misuse;
    s->misuse = DT_OK;
    return misuse != DT_OK && st >= 0 ? DT_FAIL(misuse, "%s", s->misuse_text) : st;
}

dt_status dt_stage_start(dt_stage *s)
{
    s->started = true;
    for (uint32_t i = 0; i < s->n_datasets; i++) {
        if (s->dataset[i].prepare_random_reads != NULL) {
            s->dataset[i].prepare_random_reads(s->dataset[i].self);
        }
    }
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, s->d.phase->desc.id, "start", s->d.phase->ops.phase.start(s->self));
    st = take_misuse(s, st);
    for (uint32_t i = 0; st >= 0 && i < s->n_trains; i++) {
        st = s->train[i].trainer != NULL ? dt_trainer_check_started(s->train[i].trainer) : DT_OK;
    }
    st = dt_error_blame_plugin(st);
    return st < 0 ? DT_CONTEXT(st, "starting %s", s->d.phase->desc.id) : st;
}

static void clear_progress(dt_progress *p)
{
    memset(p, 0, sizeof(*p));
    p->struct_size = sizeof(*p);
    p->loss = p->grad_norm = p->learning_rate = NAN;
}

dt_status dt_stage_iterate(dt_stage *s, dt_progress *out)
{
    const uint64_t step = s->trainer != NULL ? dt_trainer_step_number(s->trainer) : 0;
    const uint64_t moves = s->trainer != NULL ? dt_trainer_vector_updates(s->trainer) : 0;
    clear_progress(out);
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, s->d.phase->desc.id, "iterate", s->d.phase->ops.phase.iterate(s->self, out));
    st = take_misuse(s, st);
    if (st > DT_AGAIN) {
        return DT_FAIL(DT_EPLUGIN, "iterate of phase %s returned %d, which is not a valid code", s->d.phase->desc.id,
                       (int)st);
    }
    st = st == DT_AGAIN ? DT_OK : dt_error_blame_plugin(st); /* it is called again; progress.h bounds how often */
    if (st < 0 || s->trainer == NULL || dt_trainer_vector_updates(s->trainer) == moves ||
        dt_trainer_step_number(s->trainer) > step) {
        return st;
    }
    /* parameters moved by hand alone: a step of the run all the same, or its checkpoints would have one name */
    DT_TRY(dt_trainer_bypass_step(s->trainer));
    out->step = out->step > step ? out->step : step + 1;
    return st;
}

static void mark_acting(const dt_stage *s, void (*mark)(dt_trainer *t))
{
    for (uint32_t i = 0; i < s->n_trains; i++) {
        if (s->train[i].trainer != NULL) {
            mark(s->train[i].trainer);
        }
    }
}

dt_status dt_stage_evaluate(dt_stage *s, dt_progress *out)
{
    if (s->d.phase->ops.phase.evaluate == NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "phase %s has no evaluation", s->d.phase->desc.id);
    }
    clear_progress(out);
    dt_stage_results_clear(s);
    s->is_evaluating = true;
    mark_acting(s, dt_trainer_acting_begin);
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, s->d.phase->desc.id, "evaluate", s->d.phase->ops.phase.evaluate(s->self, out));
    st = take_misuse(s, st);
    mark_acting(s, dt_trainer_acting_end);
    s->is_evaluating = false;
    return dt_error_blame_plugin(st);
}

dt_status dt_stage_finish(dt_stage *s)
{
    dt_status st = DT_OK;
    if (s->d.phase->ops.phase.finish != NULL) {
        DT_CALL_PLUGIN(st, s->d.phase->desc.id, "finish", s->d.phase->ops.phase.finish(s->self));
        st = take_misuse(s, st);
    }
    return st <= 0 ? dt_error_blame_plugin(st)
                   : DT_FAIL(DT_EPLUGIN, "finish of phase %s returned %d, which is not a valid code",
                             s->d.phase->desc.id, (int)st);
}

/* ---- its trainers ------------------------------------------------------------------------------------------------ */

/* Table k, NULL after the last. */
static const dt_param_table *table_at(const dt_stage *s, uint32_t k)
{
    const dt_param_table *further = k < s->n_trains ? &s->train[k].own : NULL;
    return k == 0 ? &s->params : further;
}

const dt_param *dt_stage_param(const dt_stage *s, uint32_t i, float **value_p)
{
    const dt_param_table *table = NULL;
    for (uint32_t k = 0; (table = table_at(s, k)) != NULL; k++) {
        if (i < table->n) {
            const dt_param *p = &table->param[i];
            if (value_p != NULL) {
                *value_p = dt_trainer_params(s->train[k].trainer) + p->offset;
            }
            return p;
        }
        i -= table->n;
    }
    return NULL;
}

uint32_t dt_stage_n_params(const dt_stage *s)
{
    const dt_param_table *table = NULL;
    uint32_t n = 0;
    for (uint32_t k = 0; (table = table_at(s, k)) != NULL; k++) {
        n += table->n;
    }
    return n;
}

void dt_stage_count_params(const dt_stage *s, int64_t *all_p, int64_t *trained_p)
{
    const dt_param_table *table = NULL;
    *all_p = *trained_p = 0;
    for (uint32_t k = 0; (table = table_at(s, k)) != NULL; k++) {
        *all_p += table->count;
        *trained_p += table->trained_count;
    }
}

dt_status dt_stage_synchronize(dt_stage *s)
{
    for (uint32_t k = 0; k < s->n_trains; k++) {
        DT_TRY(s->train[k].trainer != NULL ? dt_trainer_synchronize(s->train[k].trainer) : DT_OK);
    }
    return DT_OK;
}

void dt_stage_discard_prefetched(dt_stage *s)
{
    for (uint32_t k = 0; k < s->n_trains; k++) {
        if (s->train[k].trainer != NULL) {
            dt_trainer_discard_prefetched(s->train[k].trainer);
        }
    }
}

dt_status dt_stage_open_moments(dt_stage *s, bool is_gathered)
{
    for (uint32_t k = 0; k < s->n_trains; k++) {
        DT_TRY(s->train[k].trainer != NULL ? dt_trainer_open_moments(s->train[k].trainer, is_gathered) : DT_OK);
    }
    return DT_OK;
}

void dt_stage_close_moments(dt_stage *s, bool is_changed)
{
    for (uint32_t k = 0; k < s->n_trains; k++) {
        if (s->train[k].trainer != NULL) {
            dt_trainer_close_moments(s->train[k].trainer, is_changed);
        }
    }
}

uint64_t dt_stage_further_steps(const dt_stage *s)
{
    uint64_t n = 0;
    for (uint32_t k = 1; k < s->n_trains; k++) {
        if (s->train[k].trainer != NULL) {
            n += dt_trainer_step_number(s->train[k].trainer);
        }
    }
    return n;
}

dt_status dt_stage_take_ownership(dt_stage *s, void *p, void (*destroy)(void *p))
{
    if (s->n_owned == DT_STAGE_MAX_OWNED) {
        return DT_FAIL(DT_EINVAL, "%s makes more than %d of its wirings and rounds; one of each is possible",
                       s->d.phase->desc.id, DT_STAGE_MAX_OWNED);
    }
    s->owned[s->n_owned++] = (dt_stage_owned){p, destroy};
    return DT_OK;
}

void dt_stage_stop(dt_stage *s)
{
    if (s->rollout != NULL) {
        s->d.rollouts->finish(s->rollout);
    }
    if (s->started && s->d.phase->ops.phase.stop != NULL) {
        DT_FP_GUARD(s->d.phase->desc.id, "stop", s->d.phase->ops.phase.stop(s->self));
    }
    s->started = false;
}

void dt_stage_destroy(dt_stage *s)
{
    if (s == NULL) {
        return;
    }
    dt_stage_stop(s);
    if (s->created && s->d.phase->ops.phase.destroy != NULL) {
        DT_FP_GUARD(s->d.phase->desc.id, "destroy", s->d.phase->ops.phase.destroy(s->self));
    }
    while (s->n_owned > 0) {
        const dt_stage_owned *o = &s->owned[--s->n_owned];
        o->destroy(o->p);
    }
    if (s->rollout != NULL) {
        s->d.rollouts->destroy(s->rollout);
    }
    for (uint32_t i = 0; i < s->n_trains; i++) {
        dt_trainer_destroy(s->train[i].trainer);
    }
    dt_bind_fini(s);
    for (uint32_t i = 0; i < DT_TRAIN_MAX_TRAINERS; i++) {
        dt_param_table_fini(&s->train[i].own);
    }
    dt_param_table_fini(&s->params);
    dt_stage_results_clear(s);
    dt_str_fini(&s->seen_before);
    dt_free(s->self);
    dt_free(s->config);
    dt_free(s);
}
