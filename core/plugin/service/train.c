/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.train/1": calls of the stage's trainers, which train_create.c makes.
 */
#include <config.h>

#include "plugin/service/stage.h"
#include "plugin/service/train_create.h"

#include "base/err.h"
#include "base/fault.h"
#include "base/name.h"
#include "base/plugin_call.h"
#include "dtrain/svc/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static dt_status train_create(const dt_host *h, const dt_train_desc *desc, dt_train **out)
{
    return dt_train_create(dt_stage_of(h), desc, out);
}

static void train_destroy(dt_train *t)
{
    if (t != NULL) {
        dt_stage *s = t->stage;
        if (s->rollout != NULL) {
            s->d.rollouts->finish(s->rollout);
        }
        dt_trainer_destroy(t->trainer);
        t->trainer = NULL;
        s->trainer = s->train[0].trainer;
    }
}

static dt_status check_step_input(const dt_train *t, const char *call, const char *name, const float *value, uint32_t n)
{
    const char *id = t->stage->d.phase->desc.id;
    DT_TRY(dt_name_check(DT_EINVAL, DT_NAME_KEY, DT_NAME_MOST_KEY, name, "%s: the step input of %s", id, call));
    if (value == NULL || n == 0) {
        return DT_FAIL(DT_EINVAL, "%s: %s of step input %s has %s; pass as many values as record declares", id, call,
                       name, n == 0 ? "0 values" : "the values NULL");
    }
    return DT_OK;
}

static dt_status train_set(dt_train *t, const char *name, const float *value, uint32_t n)
{
    DT_TRY(check_step_input(t, "set", name, value, n));
    return dt_trainer_step_input_set(t->trainer, name, value, n);
}

static dt_status train_set_acting(dt_train *t, const char *name, const float *value, uint32_t n)
{
    DT_TRY(check_step_input(t, "set_acting", name, value, n));
    return dt_trainer_acting_input_set(t->trainer, name, value, n);
}

/* name: of a loss or group; a further trainer's own name comes before it, or stands alone. */
static void add_scalar(const dt_train *t, const char *kind, const char *name, double value)
{
    char key[128];
    const bool has_both = t->name[0] != '\0' && name[0] != '\0';
    snprintf(key, sizeof(key), "%s/%s%s%s", kind, t->name, has_both ? "_" : "", name);
    dt_metrics_add_scalar(t->stage->d.metrics, key, value);
}

static void record_groups(const dt_train *t, const dt_step_report *out)
{
    const dt_group_state *group = NULL;
    const uint32_t n = dt_trainer_groups(t->trainer, &group), reported = dt_trainer_reported_groups(t->trainer);
    for (uint32_t g = 0; g < n; g++) {
        if ((reported >> g & 1) != 0) {
            add_scalar(t, "grad_norm", group[g].name, group[g].norm);
            add_scalar(t, "learning_rate", group[g].name, group[g].rate);
        }
    }
    if (n == 0 && t->name[0] != '\0') { /* the first trainer's are numbers of the phase */
        add_scalar(t, "grad_norm", "", out->grad_norm);
        add_scalar(t, "learning_rate", "", out->learning_rate);
    }
}

/* st: how the step went. A batch without a row was no update, and has no losses to record. */
static dt_status end_step(const dt_train *t, dt_status st, const dt_step_report *out)
{
    const dt_stage *s = t->stage;
    if (st == DT_OK && s->rollout != NULL) {
        s->d.rollouts->advance(s->rollout);
    }
    if (st == DT_OK && out->samples == 0) {
        return DT_OK;
    }
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(dt_trainer_graph(t->trainer), &loss);
    for (uint32_t i = 0; st == DT_OK && i < n; i++) {
        if ((dt_trainer_reported_groups(t->trainer) >> loss[i].group & 1) != 0) {
            add_scalar(t, "losses", loss[i].name, dt_trainer_step_losses(t->trainer)[i]);
        }
    }
    if (st == DT_OK && dt_trainer_is_mixed_precision(t->trainer)) {
        add_scalar(t, "amp", "loss_scale", dt_trainer_scaler(t->trainer)->scale);
        add_scalar(t, "amp", "overflow_rate", dt_trainer_overflow_rate(t->trainer));
    }
    if (st == DT_OK) {
        record_groups(t, out);
    }
    return st;
}

static dt_status train_step(dt_train *t, dt_step_report *out)
{
    dt_stage_restore_fp_mode(t->stage);
    (void)dt_fault("train.step"); /* tests meet it here */
    return end_step(t, dt_trainer_step(t->trainer, out), out);
}

static dt_status train_step_groups(dt_train *t, uint32_t groups, dt_step_report *out)
{
    dt_stage_restore_fp_mode(t->stage);
    (void)dt_fault("train.step");
    return end_step(t, dt_trainer_step_groups(t->trainer, groups, out), out);
}

typedef struct batch_reader { /* the reader of each batch of an evaluation */
    const dt_stage *stage;
    void *user;
    dt_status (*each)(void *user, const dt_rows *r);
} batch_reader;

static dt_status check_rows(void *user, const dt_rows *r)
{
    const batch_reader *j = user;
    const dt_stage_desc *d = &j->stage->d;
    if (j->stage->is_evaluating && d->stops != NULL && (dt_fault("run.stop") || d->stops(d->stops_user))) {
        return DT_FAIL(DT_EINTERRUPTED, "asked to stop while %s was evaluated", d->phase->desc.id);
    }
    dt_status st = DT_OK;
    DT_CALL_PLUGIN(st, d->phase->desc.id, "a callback of evaluate", j->each(j->user, r));
    return st;
}

static dt_status train_evaluate(dt_train *t, dt_data *d, void *user, dt_status (*each)(void *user, const dt_rows *r))
{
    batch_reader j = {.stage = t->stage, .user = user, .each = each};
    dt_stage_restore_fp_mode(t->stage);
    if (d->source.turn != NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s evaluates what it trains on, and data.stream has no end",
                       j.stage->d.phase->desc.id);
    }
    const dt_status mine = dt_trainer_evaluate(t->trainer, &d->source, &j, check_rows);
    return dt_comm_agree(j.stage->d.comm, mine);
}

static const void *train_rows(const dt_rows *r, const char *name, int64_t dim[DT_MAX_DIMS], uint32_t *rank)
{
    return r != NULL && name != NULL ? dt_rows_get_output(r, name, dim, rank) : NULL;
}

static dt_status train_position(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *steps_per_epoch)
{
    const dt_trainer *tr = t->trainer;
    *step = dt_trainer_step_number(tr);
    *steps = dt_trainer_steps(tr);
    *steps_per_epoch = dt_trainer_steps_per_epoch(tr);
    return DT_OK;
}

static dt_status train_seek(dt_train *t, uint64_t step)
{
    return dt_trainer_seek(t->trainer, step);
}

static uint64_t train_vector_size(const dt_train *t)
{
    return dt_trainer_vector_size(t->trainer);
}

static dt_status train_vector_get(dt_train *t, float *out)
{
    return dt_trainer_vector_get(t->trainer, out);
}

static dt_status train_vector_set(dt_train *t, const float *in)
{
    return dt_trainer_vector_set(t->trainer, in);
}

static dt_status check_losses(const char *const *loss, uint32_t n, const char *call)
{
    if (loss == NULL && n > 0) {
        return DT_FAIL(DT_EINVAL, "%s of %u losses, but their list is NULL; pass the list", call, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(dt_name_given(loss[i], call));
    }
    return DT_OK;
}

static dt_status train_gradient(dt_train *t, const char *loss, float *out, double *value)
{
    dt_stage_restore_fp_mode(t->stage);
    DT_TRY(check_losses(&loss, 1, "gradient"));
    return dt_trainer_gradient(t->trainer, loss, out, value);
}

static dt_status train_losses(dt_train *t, const char *const *loss, uint32_t n, double *out)
{
    dt_stage_restore_fp_mode(t->stage);
    DT_TRY(check_losses(loss, n, "losses"));
    return dt_trainer_losses(t->trainer, loss, n, out);
}

static dt_status train_plan_losses(dt_train *t, const char *const *loss, uint32_t n, uint8_t has_gradient)
{
    DT_TRY(check_losses(loss, n, "plan_losses"));
    return dt_trainer_compile_losses(t->trainer, loss, n, has_gradient != 0);
}

static dt_status train_target_copy(dt_train *t, const char *name)
{
    if (name == NULL) {
        return DT_FAIL(DT_EINVAL, "target_copy expects the name of a target network");
    }
    return dt_trainer_copy_to_targets(t->trainer, name);
}

static dt_status train_parameter(const dt_train *t, uint64_t i, dt_train_param *out)
{
    const uint32_t bytes = out->struct_size < sizeof(*out) ? out->struct_size : (uint32_t)sizeof(*out);
    if (i >= t->params->n) {
        return DT_BREACH(DT_ENOTFOUND, "parameter %llu of %u", (unsigned long long)i, t->params->n);
    }
    const dt_param *p = &t->params->param[i];
    dt_train_param is = {.struct_size = out->struct_size, .n_dims = p->n_dims, .name = p->name};
    memcpy(is.dim, p->dim, p->n_dims * sizeof(is.dim[0]));
    is.count = (uint64_t)p->count;
    is.at = dt_trainer_vector_offset(t->trainer, (uint32_t)i);
    is.is_trained = !p->frozen && !p->is_target && !p->is_statistic;
    is.is_target = p->is_target;
    is.is_constant = p->is_constant && !p->is_target;
    is.is_statistic = p->is_statistic && !p->is_target;
    memcpy(out, &is, bytes);
    return DT_OK;
}

static dt_status find_constant(const dt_train *t, const char *name, uint64_t n, uint32_t *i_p)
{
    for (uint32_t i = 0; i < t->params->n && name != NULL; i++) {
        const dt_param *p = &t->params->param[i];
        if (strcmp(p->name, name) == 0 && p->is_constant && !p->is_target) {
            *i_p = i;
            return n == (uint64_t)p->count ? DT_OK
                                           : DT_BREACH(DT_ESHAPE, "constant %s has %lld numbers, not %llu", name,
                                                       (long long)p->count, (unsigned long long)n);
        }
    }
    return DT_BREACH(DT_ENOTFOUND, "no model of this phase has a constant \"%s\"", name != NULL ? name : "");
}

static dt_status train_constant_get(dt_train *t, const char *name, float *out, uint64_t n)
{
    uint32_t i = 0;
    DT_TRY(find_constant(t, name, n, &i));
    return dt_trainer_constant_get(t->trainer, i, out);
}

static dt_status train_constant_set(dt_train *t, const char *name, const float *value, uint64_t n)
{
    uint32_t i = 0;
    DT_TRY(find_constant(t, name, n, &i));
    for (uint64_t k = 0; k < n; k++) {
        if (!isfinite(value[k])) {
            return DT_FAIL(DT_EINVAL, "number %llu of constant %s is %g, but must be finite", (unsigned long long)k,
                           name, (double)value[k]);
        }
    }
    return dt_trainer_constant_set(t->trainer, i, value);
}

static dt_status train_refill(dt_train *t, dt_status (*change)(void *user), void *user)
{
    dt_trainer_discard_prefetched(t->trainer);
    dt_status st = DT_OK;
    if (change != NULL) {
        DT_CALL_PLUGIN(st, t->stage->d.phase->desc.id, "change of refill", change(user));
    }
    return st;
}

const dt_train_api dt_train_service = {.struct_size = sizeof(dt_train_api),
                                       .create = train_create,
                                       .destroy = train_destroy,
                                       .set = train_set,
                                       .step = train_step,
                                       .evaluate = train_evaluate,
                                       .rows = train_rows,
                                       .samples = dt_rows_samples,
                                       .position = train_position,
                                       .seek = train_seek,
                                       .vector_size = train_vector_size,
                                       .vector_get = train_vector_get,
                                       .vector_set = train_vector_set,
                                       .gradient = train_gradient,
                                       .losses = train_losses,
                                       .plan_losses = train_plan_losses,
                                       .target_copy = train_target_copy,
                                       .step_groups = train_step_groups,
                                       .parameter = train_parameter,
                                       .refill = train_refill,
                                       .constant_get = train_constant_get,
                                       .constant_set = train_constant_set,
                                       .set_acting = train_set_acting};
