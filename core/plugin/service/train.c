/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "dtrain.train/1": the stage's trainer, made from the sections training, data and engine.
 */
#include <config.h>

#include "plan/machine/limits.h"
#include "plugin/service/user_ops.h"
#include "plugin/service/stage.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fp_mode.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "comm/tree_sum.h"
#include "dtrain/svc/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LITTLE = 1 << 28 }; /* bytes that cost nothing to try: the whole plan shows more than a part of it */

static double gigabytes(uint64_t bytes)
{
    return (double)bytes / 1e9;
}

/* The plugin's handle is the stage itself. */
static dt_stage *stage_of(const dt_train *t)
{
    return (dt_stage *)(uintptr_t)t;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

typedef struct registration {
    dt_params face;
    dt_param_table *table;
    const char *role;
} registration;

static dt_status add_param(dt_params *reg, const char *name, const int64_t *dim, uint32_t n_dims, uint32_t init,
                           double a)
{
    registration *r = reg->priv;
    return dt_param_table_add(r->table, r->role, name, dim, n_dims, init, a);
}

static dt_status register_models(dt_stage *s, const dt_train_desc *d)
{
    for (uint32_t i = 0; i < d->n_models; i++) {
        dt_model *m = d->models[i];
        if (d->n_groups > 0) { /* sums of squares are those of one group each */
            dt_param_table_align(&s->params, DT_SLICE_UNIT);
        }
        registration r = {.table = &s->params, .role = m->role};
        r.face = (dt_params){.struct_size = sizeof(dt_params), .priv = &r, .add = add_param};
        if (m->comp->ops.model.params != NULL) {
            dt_status st = DT_OK;
            DT_FP_GUARD(m->comp->desc.id, "params", st = m->comp->ops.model.params(m->self, &r.face));
            if (st < 0) {
                return DT_CONTEXT(st, "registering the parameters of %s", m->comp->desc.id);
            }
        }
    }
    return DT_OK;
}

static bool is_model_of_train(const dt_train_desc *d, const dt_model *m)
{
    for (uint32_t i = 0; i < d->n_models; i++) {
        if (d->models[i] == m) {
            return true;
        }
    }
    return false;
}

/* The i-th shadow as the phase's header has them: what an older one has not is 0. */
static dt_train_target read_target_desc(const dt_train_desc *d, uint32_t i)
{
    const size_t bytes = d->target->struct_size;
    dt_train_target s = {0};
    memcpy(&s, (const char *)d->target + i * bytes, bytes < sizeof(s) ? bytes : sizeof(s));
    return s;
}

static dt_status add_target_network(dt_stage *s, const dt_train_target *w)
{
    if (w->name == NULL || !is_model_of_train(&s->train, w->model)) {
        return DT_FAIL(DT_EPLUGIN, "%s gives its trainer a target network %s", s->d.phase->desc.id,
                       w->name == NULL ? "without a name" : "of a model that is not among those of the trainer");
    }
    if (!(w->tau > 0 && w->tau <= 1)) {
        return DT_FAIL(DT_EPLUGIN, "%s: tau %g of the target network %s of %s is outside (0, 1]", s->d.phase->desc.id,
                       w->tau, w->name, w->model->role);
    }
    const dt_status st = dt_param_table_add_target(&s->params, w->model->role, w->name);
    return st < 0 ? DT_CONTEXT(st, "%s", s->d.phase->desc.id) : DT_OK;
}

static dt_status add_target_networks(dt_stage *s, dt_target_rule *rule)
{
    enum { SMALLEST = 40 }; /* bytes of the first header that had them */
    const dt_train_desc *d = &s->train;
    if (d->n_targets > DT_TRAIN_MAX_TARGETS) {
        return DT_FAIL(DT_EPLUGIN, "%s gives its trainer %u target networks; at most %d are possible",
                       s->d.phase->desc.id, d->n_targets, DT_TRAIN_MAX_TARGETS);
    }
    if (d->n_targets > 0 && (d->target == NULL || d->target->struct_size < SMALLEST)) {
        return DT_FAIL(DT_EPLUGIN, "%s gives its trainer %u target networks %s", s->d.phase->desc.id, d->n_targets,
                       d->target == NULL ? "and no list of them" : "without their struct_size");
    }
    for (uint32_t i = 0; i < d->n_targets; i++) {
        const dt_train_target w = read_target_desc(d, i);
        DT_TRY(add_target_network(s, &w));
        rule[i] = (dt_target_rule){.tau = w.tau, .every = w.every};
    }
    return DT_OK;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static bool has_role(const dt_train_desc *d, const char *role)
{
    for (uint32_t i = 0; i < d->n_models; i++) {
        if (strcmp(d->models[i]->role, role) == 0) {
            return true;
        }
    }
    return false;
}

/* The i-th group as the phase's header has them. */
static dt_train_group read_group_desc(const dt_train_desc *d, uint32_t i)
{
    const size_t bytes = d->group->struct_size;
    dt_train_group g = {0};
    memcpy(&g, (const char *)d->group + i * bytes, bytes < sizeof(g) ? bytes : sizeof(g));
    return g;
}

static dt_status check_group(const dt_stage *s, const dt_train_group *g)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const char *id = s->d.phase->desc.id, *name = g->name != NULL ? g->name : "";
    if (name[0] < 'a' || name[0] > 'z' || strspn(name, letters) != strlen(name) || strlen(name) > 31) {
        return DT_FAIL(DT_EPLUGIN,
                       "%s: the group \"%s\": its name must begin with a-z and continue with a-z 0-9 _, up to 31 "
                       "characters",
                       id, name);
    }
    if (g->n_roles == 0 || g->role == NULL || g->n_losses == 0 || g->loss == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s: group %s has no %s", id, name,
                       g->n_roles == 0 || g->role == NULL ? "roles" : "losses");
    }
    if (!(g->learning_rate >= 0) || !isfinite(g->learning_rate) || isnan(g->gradient_clip)) {
        return DT_FAIL(DT_EPLUGIN, "%s: group %s has the learning rate %g and the gradient clip %g", id, name,
                       g->learning_rate, g->gradient_clip);
    }
    for (uint32_t i = 0; i < g->n_roles; i++) {
        if (!has_role(&s->train, g->role[i])) {
            return DT_FAIL(DT_EPLUGIN, "%s: group %s has the role %s, which no model of the trainer has", id, name,
                           g->role[i]);
        }
    }
    return DT_OK;
}

/* Is the role one of the first n groups'? Then first_p: which. */
static bool is_in_group(const dt_trainer_group *group, uint32_t n, const char *role, uint32_t *first_p)
{
    for (uint32_t g = 0; g < n; g++) {
        for (uint32_t i = 0; i < group[g].n_roles; i++) {
            if (strcmp(group[g].role[i], role) == 0) {
                *first_p = g;
                return true;
            }
        }
    }
    return false;
}

static dt_status add_group(const dt_stage *s, const dt_train_group *w, dt_trainer_group *group, uint32_t n)
{
    const char *id = s->d.phase->desc.id;
    uint32_t other = 0;
    DT_TRY(check_group(s, w));
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(group[i].name, w->name) == 0) {
            return DT_FAIL(DT_EPLUGIN, "%s has two groups %s", id, w->name);
        }
    }
    for (uint32_t i = 0; i < w->n_roles; i++) {
        if (is_in_group(group, n, w->role[i], &other)) {
            return DT_FAIL(DT_EPLUGIN, "%s: the role %s is in two groups, %s and %s", id, w->role[i], group[other].name,
                           w->name);
        }
    }
    group[n] = (dt_trainer_group){.name = w->name,
                                  .role = w->role,
                                  .loss = w->loss,
                                  .n_roles = w->n_roles,
                                  .n_losses = w->n_losses,
                                  .learning_rate = w->learning_rate,
                                  .gradient_clip = w->gradient_clip};
    return DT_OK;
}

/* What no group moves is as if it were frozen. */
static dt_status freeze_ungrouped(dt_stage *s, const dt_trainer_group *group, uint32_t n)
{
    for (uint32_t i = 0; i < s->train.n_models; i++) {
        uint32_t unused = 0;
        if (!is_in_group(group, n, s->train.models[i]->role, &unused)) {
            DT_TRY(dt_param_table_freeze(&s->params, s->train.models[i]->role, &unused));
        }
    }
    return DT_OK;
}

static dt_status add_groups(dt_stage *s, dt_trainer_group *group)
{
    enum { SMALLEST = 56 }; /* bytes of the first header that had them */
    const dt_train_desc *d = &s->train;
    if (d->n_groups == 0) {
        return DT_OK;
    }
    if (d->n_groups > DT_TRAIN_MAX_GROUPS) {
        return DT_FAIL(DT_EPLUGIN, "%s gives its trainer %u groups of losses; at most %d are possible",
                       s->d.phase->desc.id, d->n_groups, DT_TRAIN_MAX_GROUPS);
    }
    if (d->group == NULL || d->group->struct_size < SMALLEST) {
        return DT_FAIL(DT_EPLUGIN, "%s gives its trainer %u groups of losses %s", s->d.phase->desc.id, d->n_groups,
                       d->group == NULL ? "and no list of them" : "without their struct_size");
    }
    for (uint32_t i = 0; i < d->n_groups; i++) {
        const dt_train_group w = read_group_desc(d, i);
        DT_TRY(add_group(s, &w, group, i));
    }
    return freeze_ungrouped(s, group, d->n_groups);
}

/* ---- configuration ----------------------------------------------------------------------------------------------- */

static dt_status reject_role(const dt_stage *s, const char *key, const char *word, const char *more)
{
    dt_str roles = {0};
    dt_config_role_names(s->d.config, &roles);
    const dt_status st = DT_FAIL(DT_ECONFIG, "%s holds \"%s\", which is %s (%s)%s%s", key, word,
                                 *more != '\0' ? "neither a role" : "not a role", dt_str_text(&roles),
                                 *more != '\0' ? " nor matches a parameter such as " : "", more);
    dt_str_fini(&roles);
    return st;
}

/* A pattern that freezes nothing is a mistake, unless it names a role this phase does not use. */
static dt_status freeze_by_patterns(dt_stage *s, const char *const *pattern, const char *key)
{
    for (; pattern != NULL && *pattern != NULL; pattern++) {
        uint32_t n = 0;
        DT_TRY(dt_param_table_freeze(&s->params, *pattern, &n));
        if (n == 0 && !dt_config_has_role(s->d.config, *pattern)) {
            return reject_role(s, key, *pattern, s->params.n > 0 ? s->params.param[0].name : "(this phase has none)");
        }
        if (n > 0) {
            dt_log(DT_LOG_INFO, "frozen: %s (%u tensors)", *pattern, n);
        }
    }
    return DT_OK;
}

static dt_status check_roles(const dt_stage *s, const char *const *role, const char *key)
{
    for (; role != NULL && *role != NULL; role++) {
        if (!dt_config_has_role(s->d.config, *role)) {
            return reject_role(s, key, *role, "");
        }
    }
    return DT_OK;
}

/* What came trained from elsewhere, where the phase requires it to stay as it is. */
static dt_status freeze_loaded(dt_stage *s, const char *const *role)
{
    static const char key[] = "training.freeze_loaded";
    DT_TRY(check_roles(s, role, key));
    for (; role != NULL && *role != NULL; role++) {
        if (dt_roles_contain(&s->d.loaded, *role)) {
            DT_TRY(freeze_by_patterns(s, (const char *const[]){*role, NULL}, key));
        }
    }
    return DT_OK;
}

/* Products in half precision where the machine can; what it cannot is refused before anything is allocated. */
static dt_status choose_precision(const dt_stage *s, dt_trainer_config *c)
{
    static const dt_scaling kind[] = {DT_SCALING_NONE, DT_SCALING_NONE, DT_SCALING_STATIC, DT_SCALING_DYNAMIC};
    const dt_amp_opts a = s->opts.amp;
    if (!a.enabled) {
        return DT_OK;
    }
    const bool is_cpu = s->d.device_ops == NULL;
    if (is_cpu && a.dtype == DT_AMP_FP16) {
        return DT_FAIL(DT_EUNSUPPORTED,
                       "amp.dtype = \"fp16\" needs a GPU; the CPU multiplies bf16 (amp.dtype = \"bf16\")");
    }
    if (is_cpu) {
        const dt_status st = dt_cpu_bf16_check();
        if (st < 0) {
            return DT_CONTEXT(st, "amp.enabled = true; set it to false to train in fp32");
        }
    } else if (a.dtype == DT_AMP_BF16 && s->d.device_ops->info(s->d.device)->major < 8) {
        const dt_device_info *d = s->d.device_ops->info(s->d.device);
        return DT_FAIL(DT_EUNSUPPORTED,
                       "amp.dtype = \"bf16\" needs compute capability 8.0, and %s has %u.%u; set amp.dtype = \"fp16\"",
                       d->name, d->major, d->minor);
    }
    c->math = a.dtype == DT_AMP_FP16 ? DT_DEVICE_MATH_F16 : DT_DEVICE_MATH_BF16;
    c->scaling = (dt_scaler_config){.kind = kind[a.scaling],
                                    .refill = a.hysteresis_mode == DT_AMP_CONSECUTIVE,
                                    .initial = a.scaling == DT_AMP_SCALING_STATIC ? a.static_scale : a.initial_scale,
                                    .min = a.min_scale,
                                    .max = a.max_scale,
                                    .growth = a.growth_factor,
                                    .backoff = a.backoff_factor,
                                    .interval = a.growth_interval,
                                    .hysteresis = a.hysteresis,
                                    .max_skips = (uint64_t)a.max_skips};
    return DT_OK;
}

/* What memory.target_gb leaves for training here, all ranks alike, in addition to what is resident by now. */
static uint64_t compute_memory_budget(const dt_stage *s, double target_gb)
{
    const uint64_t target = (uint64_t)(target_gb * 1e9), taken = dt_rss_bytes();
    const uint64_t left = target > taken ? target - taken : 1;
    return target == 0 ? 0 : left / dt_comm_process_size(s->d.comm) + 1;
}

/* Arenas of parameters, gradients and moments, before they are filled. Errors: DT_ECONFIG. */
static dt_status check_memory_room(const dt_stage *s, uint64_t bytes)
{
    const dt_memory_opts m = s->opts.memory;
    dt_limits r;
    if (bytes < LITTLE) {
        return DT_OK;
    }
    const uint64_t all = bytes * dt_comm_process_size(s->d.comm), held = dt_rss_bytes();
    const char *what = "parameters, gradients and moments of the models take";
    if (m.target_gb > 0 && (double)(all + held) > m.target_gb * 1e9) {
        return DT_FAIL(DT_ECONFIG, "%s %.4g GB, with the program %.4g GB, and memory.target_gb = %g allows less", what,
                       gigabytes(all), gigabytes(all + held), m.target_gb);
    }
    if (dt_limits_read("", &r) && all > r.memory + r.swap) {
        return DT_FAIL(DT_ECONFIG, "%s %.4g GB, but %s has %.4g GB, of which %.4g GB are free; take smaller models",
                       what, gigabytes(all), r.by, gigabytes(r.total), gigabytes(r.memory));
    }
    return DT_OK;
}

/* Where ranks do not train together (dtrain eval, check) there are fewer than weights, and nothing is dealt. A run
 * refuses that before it begins. */
static dt_status read_shard_weights(const dt_stage *s, const dt_comm_opts *comm, dt_trainer_config *c)
{
    const uint32_t n = comm->n_weights;
    if (n == 0 || n != dt_comm_size(s->d.comm)) {
        return DT_OK;
    }
    uint32_t *weight = dt_alloc_n(n, sizeof(*weight));
    if (weight == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the weights of %u ranks", n);
    }
    dt_comm_list_weights(comm, weight);
    c->shard_weights = weight;
    return DT_OK;
}

static dt_status fill_trainer_config(dt_stage *s, dt_trainer_config *c)
{
    const dt_training_opts t = s->opts.training;
    const dt_data_opts d = s->opts.data;
    const dt_engine_opts e = s->opts.engine;
    const dt_memory_opts m = s->opts.memory;
    const dt_comm_opts comm = s->opts.comm;
    DT_TRY(dt_reject_sampling_options(s, s->train.data, &d));
    DT_TRY(check_roles(s, e.recompute_roles, "engine.recompute_roles"));
    DT_TRY(freeze_by_patterns(s, t.freeze, "training.freeze"));
    DT_TRY(freeze_by_patterns(s, s->opts.phase.freeze, "freeze of the phase"));
    DT_TRY(freeze_loaded(s, t.freeze_loaded));
    const uint64_t configured = (uint64_t)(s->opts.stop.epochs > 0 ? s->opts.stop.epochs : t.epochs);
    const uint64_t epochs = s->train.epochs > 0 ? s->train.epochs : configured;
    *c = (dt_trainer_config){.seed = s->d.seed,
                             .phase = (uint32_t)s->d.index,
                             .threads = s->d.threads,
                             .shards = (uint32_t)d.shards,
                             .prefetch = (uint32_t)d.prefetch,
                             .readers = (uint32_t)d.workers,
                             .sampling = (dt_sampling)d.sampling,
                             .keep_last = d.drop_last == 0,
                             .batch = (uint64_t)(d.batch * t.accumulation),
                             .slice_rows = e.slice_rows,
                             .epochs = epochs,
                             .gradient_clip = t.gradient_clip,
                             .reuse = e.reuse != 0,
                             .poison = e.poison != 0,
                             .fuse = true,
                             .recompute = e.recompute != 0,
                             .recompute_roles = e.recompute_roles,
                             .graphs = e.graphs != 0 && e.synchronous == 0,
                             .synchronous = e.synchronous != 0,
                             .math = e.tf32 ? DT_DEVICE_MATH_TF32 : DT_DEVICE_MATH_F32,
                             .device_budget = (uint64_t)(m.vram_gb * 1e9),
                             .micro_shards = (uint32_t)e.micro_shards,
                             .budget = compute_memory_budget(s, m.target_gb),
                             .bucket_bytes = (uint64_t)(comm.bucket_mb * 1e6),
                             .half = comm.wire,
                             .fast_sums = e.reduction == DT_REDUCTION_FAST,
                             .nccl = comm.backend == DT_COMM_NCCL   ? DT_TRAIN_NCCL_ALWAYS
                                     : comm.backend == DT_COMM_AUTO ? DT_TRAIN_NCCL_AUTO
                                                                    : DT_TRAIN_NCCL_NEVER};
    c->optim = (dt_optim_step){.kind = (dt_optimizer)t.optimizer,
                               .beta1 = t.beta1,
                               .beta2 = t.beta2,
                               .eps = t.eps,
                               .weight_decay = t.weight_decay,
                               .momentum = t.momentum};
    c->schedule = (dt_schedule){.kind = (dt_schedule_kind)t.scheduler,
                                .lr = t.learning_rate,
                                .eta_min = t.eta_min,
                                .warmup = (double)t.warmup_epochs,
                                .t_max = t.t_max > 0 ? (double)t.t_max : (double)epochs,
                                .step_size = (double)t.step_size,
                                .gamma = t.step_gamma};
    DT_TRY(choose_precision(s, c));
    const uint64_t arenas = 1 + dt_optim_n_moments((dt_optimizer)t.optimizer); /* gradients and moments */
    DT_TRY(check_memory_room(s, (arenas * (uint64_t)s->params.base_total + (uint64_t)s->params.total) * sizeof(float)));
    return read_shard_weights(s, &comm, c);
}

static dt_status check_stored(const dt_stage *s)
{
    const dt_train_desc *d = &s->train;
    if (d->stored != NULL && (d->stored->source.turn != NULL || d->data->source.turn != NULL)) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s mixes stored data in, and data.stream has no end", s->d.phase->desc.id);
    }
    if (d->stored == NULL || (d->record_stored != NULL && d->n_stored > 0)) {
        return DT_OK;
    }
    return DT_FAIL(DT_EPLUGIN, "%s gives its trainer stored data %s", s->d.phase->desc.id,
                   d->n_stored > 0 ? "without saying what to record of it" : "and takes no sample of it");
}

static dt_status train_create(const dt_host *h, const dt_train_desc *desc, dt_train **out)
{
    dt_stage *s = dt_stage_of(h);
    if (s->trainer != NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s creates a second trainer; one per phase is possible", s->d.phase->desc.id);
    }
    memset(&s->train, 0, sizeof(s->train)); /* what was compiled with an older header is shorter */
    memcpy(&s->train, desc, desc->struct_size < sizeof(*desc) ? desc->struct_size : sizeof(*desc));
    DT_TRY(dt_user_ops_register_all(s->d.loader));
    DT_TRY(check_stored(s));
    DT_TRY(register_models(s, desc));
    dt_trainer_config c;
    dt_target_rule shadow[DT_TRAIN_MAX_TARGETS];
    dt_trainer_group group[DT_TRAIN_MAX_GROUPS];
    DT_TRY(add_groups(s, group));
    DT_TRY(add_target_networks(s, shadow));
    pthread_mutex_lock(s->d.config_lock);
    dt_status st = fill_trainer_config(s, &c);
    pthread_mutex_unlock(s->d.config_lock);
    DT_TRY(st);
    const dt_trainer_desc td = {.config = &c,
                                .params = &s->params,
                                .source = &desc->data->source,
                                .comm = s->d.comm,
                                .device_ops = s->d.device_ops,
                                .device = s->d.device,
                                .stored = s->train.stored != NULL ? &s->train.stored->source : NULL,
                                .n_stored = s->train.n_stored,
                                .user = desc->user,
                                .record = desc->record,
                                .record_stored = s->train.record_stored,
                                .model = dt_bind_forward,
                                .apart = s->train.manual_loss,
                                .group = group,
                                .n_groups = s->train.n_groups,
                                .shadow = shadow};
    st = dt_trainer_create(&td, &s->trainer);
    dt_free((void *)c.shard_weights);
    DT_TRY(st);
    *out = (dt_train *)(void *)s;
    return DT_OK;
}

static void train_destroy(dt_train *t)
{
    if (t != NULL) {
        dt_stage *s = stage_of(t);
        if (s->rollout != NULL) {
            s->d.rollouts->settle(s->rollout);
        }
        dt_trainer_destroy(stage_of(t)->trainer);
        stage_of(t)->trainer = NULL;
    }
}

static dt_status train_set(dt_train *t, const char *name, const float *value, uint32_t n)
{
    return dt_trainer_step_input_set(stage_of(t)->trainer, name, value, n);
}

static dt_status train_set_acting(dt_train *t, const char *name, const float *value, uint32_t n)
{
    return dt_trainer_acting_input_set(stage_of(t)->trainer, name, value, n);
}

static void record_groups(const dt_stage *s)
{
    const dt_group_state *group = NULL;
    const uint32_t n = dt_trainer_groups(s->trainer, &group), reported = dt_trainer_reported_groups(s->trainer);
    char name[64];
    for (uint32_t g = 0; g < n; g++) {
        if ((reported >> g & 1) != 0) {
            snprintf(name, sizeof(name), "grad_norm/%s", group[g].name);
            dt_metrics_add_scalar(s->d.metrics, name, group[g].norm);
            snprintf(name, sizeof(name), "learning_rate/%s", group[g].name);
            dt_metrics_add_scalar(s->d.metrics, name, group[g].rate);
        }
    }
}

/* st: how the step went. A batch without a row was no update, and has no losses to record. */
static dt_status end_step(dt_stage *s, dt_status st, const dt_step_report *out)
{
    if (st == DT_OK && s->rollout != NULL) {
        s->d.rollouts->beside(s->rollout);
    }
    if (st == DT_OK && out->samples == 0) {
        return DT_OK;
    }
    const dt_graph_loss *loss = NULL;
    const uint32_t n = dt_graph_losses(dt_trainer_graph(s->trainer), &loss);
    for (uint32_t i = 0; st == DT_OK && i < n; i++) {
        char name[96];
        if ((dt_trainer_reported_groups(s->trainer) >> loss[i].group & 1) == 0) {
            continue;
        }
        snprintf(name, sizeof(name), "losses/%s", loss[i].name);
        dt_metrics_add_scalar(s->d.metrics, name, dt_trainer_step_losses(s->trainer)[i]);
    }
    if (st == DT_OK && dt_trainer_is_mixed_precision(s->trainer)) {
        dt_metrics_add_scalar(s->d.metrics, "amp/loss_scale", dt_trainer_scaler(s->trainer)->scale);
        dt_metrics_add_scalar(s->d.metrics, "amp/overflow_rate", dt_trainer_overflow_rate(s->trainer));
    }
    if (st == DT_OK) {
        record_groups(s);
    }
    return st;
}

static dt_status train_step(dt_train *t, dt_step_report *out)
{
    dt_stage_restore_fp_mode(stage_of(t));
    (void)dt_fault("train.step"); /* tests meet it here */
    return end_step(stage_of(t), dt_trainer_step(stage_of(t)->trainer, out), out);
}

static dt_status train_step_groups(dt_train *t, uint32_t groups, dt_step_report *out)
{
    dt_stage_restore_fp_mode(stage_of(t));
    (void)dt_fault("train.step");
    return end_step(stage_of(t), dt_trainer_step_groups(stage_of(t)->trainer, groups, out), out);
}

typedef struct judge { /* the reader of each batch of an evaluation */
    const dt_stage *stage;
    void *user;
    dt_status (*each)(void *user, const dt_rows *r);
} judge;

static dt_status check_rows(void *user, const dt_rows *r)
{
    const judge *j = user;
    const dt_stage_desc *d = &j->stage->d;
    if (j->stage->is_evaluating && d->stops != NULL && (dt_fault("run.stop") || d->stops(d->stops_user))) {
        return DT_FAIL(DT_EINTERRUPTED, "asked to stop while %s was evaluated", d->phase->desc.id);
    }
    dt_status st = DT_OK;
    DT_FP_GUARD(d->phase->desc.id, "a callback of evaluate", st = j->each(j->user, r));
    return st;
}

static dt_status train_evaluate(dt_train *t, dt_data *d, void *user, dt_status (*each)(void *user, const dt_rows *r))
{
    judge j = {.stage = stage_of(t), .user = user, .each = each};
    dt_stage_restore_fp_mode(stage_of(t));
    if (d->source.turn != NULL) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s evaluates what it trains on, and data.stream has no end",
                       j.stage->d.phase->desc.id);
    }
    const dt_status mine = dt_trainer_evaluate(stage_of(t)->trainer, &d->source, &j, check_rows);
    return dt_comm_agree(j.stage->d.comm, mine);
}

static dt_status train_position(const dt_train *t, uint64_t *step, uint64_t *steps, uint64_t *steps_per_epoch)
{
    const dt_trainer *tr = stage_of(t)->trainer;
    *step = dt_trainer_step_number(tr);
    *steps = dt_trainer_steps(tr);
    *steps_per_epoch = dt_trainer_steps_per_epoch(tr);
    return DT_OK;
}

static dt_status train_seek(dt_train *t, uint64_t step)
{
    return dt_trainer_seek(stage_of(t)->trainer, step);
}

static uint64_t train_vector_size(const dt_train *t)
{
    return dt_trainer_vector_size(stage_of(t)->trainer);
}

static dt_status train_vector_get(dt_train *t, float *out)
{
    return dt_trainer_vector_get(stage_of(t)->trainer, out);
}

static dt_status train_vector_set(dt_train *t, const float *in)
{
    return dt_trainer_vector_set(stage_of(t)->trainer, in);
}

static dt_status train_gradient(dt_train *t, const char *loss, float *out, double *value)
{
    dt_stage_restore_fp_mode(stage_of(t));
    return dt_trainer_gradient(stage_of(t)->trainer, loss, out, value);
}

static dt_status train_losses(dt_train *t, const char *const *loss, uint32_t n, double *out)
{
    dt_stage_restore_fp_mode(stage_of(t));
    return dt_trainer_losses(stage_of(t)->trainer, loss, n, out);
}

static dt_status train_plan_losses(dt_train *t, const char *const *loss, uint32_t n, uint8_t has_gradient)
{
    return dt_trainer_compile_losses(stage_of(t)->trainer, loss, n, has_gradient != 0);
}

static dt_status train_target_copy(dt_train *t, const char *name)
{
    if (name == NULL) {
        return DT_FAIL(DT_EINVAL, "target_copy expects the name of a target network");
    }
    return dt_trainer_copy_to_targets(stage_of(t)->trainer, name);
}

static dt_status train_parameter(const dt_train *t, uint64_t i, dt_train_param *out)
{
    const dt_stage *s = stage_of(t);
    const uint32_t bytes = out->struct_size < sizeof(*out) ? out->struct_size : (uint32_t)sizeof(*out);
    if (i >= s->params.n) {
        return DT_FAIL(DT_ENOTFOUND, "parameter %llu of %u", (unsigned long long)i, s->params.n);
    }
    const dt_param *p = &s->params.param[i];
    dt_train_param is = {.struct_size = out->struct_size, .n_dims = p->n_dims, .name = p->name};
    memcpy(is.dim, p->dim, p->n_dims * sizeof(is.dim[0]));
    is.count = (uint64_t)p->count;
    is.at = dt_trainer_vector_offset(s->trainer, (uint32_t)i);
    is.is_trained = !p->frozen && !p->is_target;
    is.is_target = p->is_target;
    is.is_constant = p->is_constant && !p->is_target;
    memcpy(out, &is, bytes);
    return DT_OK;
}

static dt_status find_constant(const dt_stage *s, const char *name, uint64_t n, uint32_t *i_p)
{
    for (uint32_t i = 0; i < s->params.n && name != NULL; i++) {
        const dt_param *p = &s->params.param[i];
        if (strcmp(p->name, name) == 0 && p->is_constant && !p->is_target) {
            *i_p = i;
            return n == (uint64_t)p->count ? DT_OK
                                           : DT_FAIL(DT_ESHAPE, "constant %s has %lld numbers, not %llu", name,
                                                     (long long)p->count, (unsigned long long)n);
        }
    }
    return DT_FAIL(DT_ENOTFOUND, "no model of this phase has a constant \"%s\"", name != NULL ? name : "");
}

static dt_status train_constant_get(dt_train *t, const char *name, float *out, uint64_t n)
{
    uint32_t i = 0;
    DT_TRY(find_constant(stage_of(t), name, n, &i));
    return dt_trainer_constant_get(stage_of(t)->trainer, i, out);
}

static dt_status train_constant_set(dt_train *t, const char *name, const float *value, uint64_t n)
{
    uint32_t i = 0;
    DT_TRY(find_constant(stage_of(t), name, n, &i));
    for (uint64_t k = 0; k < n; k++) {
        if (!isfinite(value[k])) {
            return DT_FAIL(DT_EINVAL, "number %llu of constant %s is %g, but must be finite", (unsigned long long)k,
                           name, (double)value[k]);
        }
    }
    return dt_trainer_constant_set(stage_of(t)->trainer, i, value);
}

static dt_status train_refill(dt_train *t, dt_status (*change)(void *user), void *user)
{
    dt_trainer_discard_prefetched(stage_of(t)->trainer);
    return change != NULL ? change(user) : DT_OK;
}

const dt_train_api dt_train_service = {.struct_size = sizeof(dt_train_api),
                                       .create = train_create,
                                       .destroy = train_destroy,
                                       .set = train_set,
                                       .step = train_step,
                                       .evaluate = train_evaluate,
                                       .rows = dt_rows_get_output,
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
