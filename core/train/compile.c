/* SPDX-License-Identifier: Apache-2.0
 *
 * A trainer's graphs: recorded by the phase over its samples, derived, planned for a lane; see trainer_internal.h.
 */
#include <config.h>

#include "train/trainer_internal.h"

#include "base/err.h"
#include "base/plugin_call.h"
#include "base/mem.h"
#include "engine/graph/select.h"
#include "train/device/infer.h"

#include <string.h>

static dt_status call_record(const dt_trainer *t, dt_graph *g, bool is_stored)
{
    dt_status st = DT_OK;
    if (is_stored) {
        DT_CALL_PLUGIN(st, "the phase", "record_stored", t->d.record_stored(t->d.user, g));
    } else {
        DT_CALL_PLUGIN(st, "the phase", "record", t->d.record(t->d.user, g));
    }
    return st;
}

/* Experience and stored data are each recorded by their own part of the phase; of a mixture both are. */
static dt_status record_source(dt_trainer *t, const dt_samples *source, dt_graph *g)
{
    const dt_graph_loss *unused = NULL;
    if (t->d.record_stored != NULL && !source->is_live) {
        return call_record(t, g, true);
    }
    DT_TRY(call_record(t, g, false));
    if (!dt_mixed_contains(t->mixed, source)) {
        return DT_OK;
    }
    t->n_of_source = dt_graph_losses(g, &unused);
    dt_graph_set_source(g, DT_MIXED_PREFIX);
    DT_TRY(call_record(t, g, true));
    dt_graph_set_source(g, "");
    return DT_OK;
}

dt_status dt_record_graph(dt_trainer *t, const dt_samples *source, uint32_t purpose, const char *const *keep,
                          dt_compiled *out)
{
    memset(out, 0, sizeof(*out));
    out->source = source;
    for (uint32_t i = 0; i < source->n_symbols; i++) {
        out->symbol[i] = source->symbol[i];
    }
    out->symbol[source->n_symbols] = "B";
    const dt_graph_desc gd = {.symbol = out->symbol,
                              .n_symbols = source->n_symbols + 1,
                              .field = source->field,
                              .n_fields = source->n_fields,
                              .params = t->d.params,
                              .model = t->d.model,
                              .recompute = t->c.recompute_roles,
                              .keep = keep,
                              .purpose = purpose,
                              .user = t->d.user};
    DT_TRY(dt_graph_create(&gd, &out->graph));
    DT_TRY(record_source(t, source, out->graph));
    return out->graph->api->status(out->graph);
}

dt_status dt_compile_for_cpu(dt_trainer *t, const dt_plan_desc *d, uint32_t n, dt_compiled *out)
{
    dt_plan_desc pd = *d;
    pd.kernels = t->c.math == DT_DEVICE_MATH_BF16 ? DT_KERNELS_CPU_BF16 : DT_KERNELS_CPU;
    pd.reuse = t->c.reuse;
    pd.poison = t->c.poison;
    pd.fuse = t->c.fuse;
    return dt_compile_plan(&pd, n, out);
}

dt_status dt_compile_plan(const dt_plan_desc *d, uint32_t n, dt_compiled *out)
{
    DT_TRY(dt_plan_compile(out->graph, d, &out->plan));
    out->exec = dt_alloc_n(n, sizeof(dt_exec *));
    if (out->exec == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for %u workers", n);
    }
    out->n_exec = n;
    for (uint32_t i = 0; i < n; i++) {
        DT_TRY(dt_exec_create(out->plan, &out->exec[i]));
    }
    return DT_OK;
}

/* Losses of stored data that reach no parameter they may move are not computed in steps. */
static dt_status drop_unused_losses(const dt_trainer *t, dt_graph *g)
{
    const dt_graph_loss *loss = NULL;
    bool *is_reached = dt_alloc_n(t->d.params->n + 1, sizeof(*is_reached));
    dt_status st = is_reached != NULL ? DT_OK : DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    for (uint32_t i = t->n_of_source; st == DT_OK && i < dt_graph_losses(g, &loss);) {
        bool any = false;
        st = dt_graph_params_of_loss(g, loss[i].name, is_reached);
        for (uint32_t p = 0; p < t->d.params->n; p++) {
            any = any || is_reached[p];
        }
        if (st == DT_OK && !any) {
            dt_graph_remove_loss(g, i);
        }
        if (any) {
            i++;
        }
    }
    dt_free(is_reached);
    return st < 0 || dt_graph_losses(g, &loss) > t->n_of_source
               ? st
               : DT_FAIL(DT_ECONFIG, "stored data has nothing to train: every parameter that it could train is frozen, "
                                     "or updated by the phase itself; freeze less (training.freeze, "
                                     "training.freeze_loaded), or name no stored samples");
}

/* Nothing derives a loss that the phase takes for itself, so nothing would move the statistics of its models. */
static dt_status check_no_statistics(const dt_trainer *t, const char *loss)
{
    const dt_param_table *table = t->d.params;
    for (uint32_t i = 0; i < table->n && table->has_statistics; i++) {
        const dt_param *p = &table->param[i];
        const int role = (int)strcspn(p->name, ".") + 1;
        for (uint32_t k = 0; k < table->n && p->is_statistic && !p->frozen; k++) {
            if (t->state.external[k] && strncmp(p->name, table->param[k].name, (size_t)role) == 0) {
                return DT_FAIL(DT_ECONFIG,
                               "%s is a running statistic, which steps of the trainer update, but the phase updates "
                               "the parameters of loss %s itself; use layer norm or group norm in this model",
                               p->name, loss);
            }
        }
    }
    return DT_OK;
}

/* Of the graph of steps, between recording and compiling: step leaves alone what the loss depends on. */
static dt_status exclude_external(dt_trainer *t, dt_graph *g, const char *loss)
{
    uint32_t n = 0;
    dt_free(t->state.external); /* of an attempt before, which ran out of memory */
    t->state.external = dt_alloc_n(t->d.params->n, sizeof(*t->state.external));
    if (t->state.external == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the trainer");
    }
    DT_TRY(dt_graph_params_of_loss(g, loss, t->state.external));
    for (uint32_t i = 0; i < t->d.params->n; i++) {
        n += t->state.external[i];
    }
    if (n == 0) {
        return DT_FAIL(DT_ECONFIG, "loss %s depends on no parameter that is trained; freeze less", loss);
    }
    DT_TRY(check_no_statistics(t, loss));
    dt_graph_freeze_params(g, t->state.external);
    dt_groups_exclude_params(t, t->state.external);
    return DT_OK;
}

dt_status dt_record_training_graph(dt_trainer *t, const dt_samples *source, dt_compiled *out)
{
    DT_TRY(dt_record_graph(t, source, DT_FOR_TRAINING, NULL, out));
    DT_TRY(dt_groups_assign(t, out->graph));
    DT_TRY(t->d.apart != NULL ? exclude_external(t, out->graph, t->d.apart) : DT_OK);
    DT_TRY(t->mixed != NULL ? drop_unused_losses(t, out->graph) : DT_OK);
    return dt_groups_check(t, out->graph);
}

dt_status dt_compile_source(dt_trainer *t, const dt_samples *source, bool training, dt_compiled *out)
{
    DT_TRY(training ? dt_record_training_graph(t, source, out)
                    : dt_record_graph(t, source, DT_FOR_EVALUATION, NULL, out));
    if (t->device != NULL && !training) {
        const dt_device_infer_desc d = {
            .source = source, .graph = out->graph, .micro_batches = DT_DEVICE_INFER_MICRO_BATCHES, .places = 2};
        DT_TRY(dt_device_infer_create(t, &d, &out->device));
        out->plan = (dt_plan *)(uintptr_t)dt_device_infer_plan(out->device);
        return DT_OK;
    }
    const dt_plan_desc pd = {.training = training, .recompute = t->c.recompute, .cap = source->slice_cap};
    return dt_compile_for_cpu(t, &pd, t->workers.active, out);
}

void dt_compiled_fini(dt_compiled *c)
{
    for (uint32_t i = 0; i < c->n_exec; i++) {
        dt_exec_destroy(c->exec[i]);
    }
    dt_free(c->exec);
    if (c->device != NULL) {
        dt_device_infer_destroy(c->device);
    } else {
        dt_plan_destroy(c->plan);
    }
    dt_graph_destroy(c->graph);
    memset(c, 0, sizeof(*c));
}
