/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/service/train_create.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name.h"
#include "base/plugin_call.h"
#include "comm/tree_sum.h"
#include "plan/machine/limits.h"
#include "plugin/service/user_ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LITTLE = 1 << 28 }; /* bytes that cost nothing to try: the whole plan shows more than a part of it */

static double gigabytes(uint64_t bytes)
{
    return (double)bytes / 1e9;
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

static dt_status register_models(dt_train *t)
{
    const dt_train_desc *d = &t->desc;
    for (uint32_t i = 0; i < d->n_models; i++) {
        dt_model *m = d->models[i];
        if (m->is_in_trainer) {
            return DT_FAIL(DT_EPLUGIN, "%s: the role %s is in two trainers; a model is trained by one",
                           t->stage->d.phase->desc.id, m->role);
        }
        m->is_in_trainer = true;
        if (d->n_groups > 0) { /* sums of squares are those of one group each */
            dt_param_table_align(t->params, DT_SLICE_UNIT);
        }
        registration r = {.table = t->params, .role = m->role};
        r.face = (dt_params){.struct_size = sizeof(dt_params), .priv = &r, .add = add_param};
        if (m->comp->ops.model.params != NULL) {
            dt_status st = DT_OK;
            DT_CALL_PLUGIN(st, m->comp->desc.id, "params", m->comp->ops.model.params(m->self, &r.face));
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

/* The i-th target network as the phase's header has them: what an older one has not is 0. */
static dt_train_target read_target_desc(const dt_train_desc *d, uint32_t i)
{
    const size_t bytes = d->target->struct_size;
    dt_train_target s = {0};
    memcpy(&s, (const char *)d->target + i * bytes, bytes < sizeof(s) ? bytes : sizeof(s));
    return s;
}

static dt_status add_target_network(dt_train *t, const dt_train_target *w)
{
    const dt_stage *s = t->stage;
    if (w->name == NULL || !is_model_of_train(&t->desc, w->model)) {
        return DT_FAIL(DT_EPLUGIN, "%s gives its trainer a target network %s", s->d.phase->desc.id,
                       w->name == NULL ? "without a name" : "of a model that is not among those of the trainer");
    }
    if (!(w->tau > 0 && w->tau <= 1)) {
        return DT_FAIL(DT_EPLUGIN, "%s: tau %g of the target network %s of %s is outside (0, 1]", s->d.phase->desc.id,
                       w->tau, w->name, w->model->role);
    }
    const dt_status st = dt_param_table_add_target(t->params, w->model->role, w->name);
    return st < 0 ? DT_CONTEXT(st, "%s", s->d.phase->desc.id) : DT_OK;
}

static dt_status add_target_networks(dt_train *t, dt_target_rule *rule)
{
    enum { SMALLEST = 40 }; /* bytes of the first header that had them */
    const dt_stage *s = t->stage;
    const dt_train_desc *d = &t->desc;
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
        DT_TRY(add_target_network(t, &w));
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

enum { MOST_NAME = 31 }; /* of a group or trainer: it is part of keys of metrics */

static dt_status check_group(const dt_train *t, const dt_train_group *g)
{
    const char *id = t->stage->d.phase->desc.id, *name = g->name;
    DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, MOST_NAME, name, "%s: a group of its trainer", id));
    if (g->n_roles == 0 || g->role == NULL || g->n_losses == 0 || g->loss == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s: group %s has no %s", id, name,
                       g->n_roles == 0 || g->role == NULL ? "roles" : "losses");
    }
    if (!(g->learning_rate >= 0) || !isfinite(g->learning_rate) || isnan(g->gradient_clip)) {
        return DT_FAIL(DT_EPLUGIN, "%s: group %s has the learning rate %g and the gradient clip %g", id, name,
                       g->learning_rate, g->gradient_clip);
    }
    for (uint32_t i = 0; i < g->n_losses; i++) {
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_KEY, DT_NAME_MOST_KEY, g->loss[i], "%s: loss %u of group %s", id, i,
                             name));
    }
    for (uint32_t i = 0; i < g->n_roles; i++) {
        DT_TRY(dt_name_check(DT_EPLUGIN, DT_NAME_WORD, DT_NAME_MOST_WORD, g->role[i], "%s: role %u of group %s", id, i,
                             name));
        if (!has_role(&t->desc, g->role[i])) {
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

static dt_status add_group(const dt_train *t, const dt_train_group *w, dt_trainer_group *group, uint32_t n)
{
    const char *id = t->stage->d.phase->desc.id;
    uint32_t other = 0;
    DT_TRY(check_group(t, w));
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
static dt_status freeze_ungrouped(dt_train *t, const dt_trainer_group *group, uint32_t n)
{
    for (uint32_t i = 0; i < t->desc.n_models; i++) {
        uint32_t unused = 0;
        if (!is_in_group(group, n, t->desc.models[i]->role, &unused)) {
            DT_TRY(dt_param_table_freeze(t->params, t->desc.models[i]->role, &unused));
        }
    }
    return DT_OK;
}

static dt_status add_groups(dt_train *t, dt_trainer_group *group)
{
    enum { SMALLEST = 56 }; /* bytes of the first header that had them */
    const dt_stage *s = t->stage;
    const dt_train_desc *d = &t->desc;
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
        DT_TRY(add_group(t, &w, group, i));
    }
    return freeze_ungrouped(t, group, d->n_groups);
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

/* Is the pattern of parameters of a model that another trainer of the phase may have? */
static bool is_for_other_trainer(const dt_train *t, const char *pattern)
{
    const dt_stage *s = t->stage;
    const size_t n = strcspn(pattern, ".*?[");
    for (uint32_t i = 0; i < s->n_models; i++) {
        const char *role = s->model[i].role;
        if (strncmp(role, pattern, n) == 0 && role[n] == '\0' && !has_role(&t->desc, role)) {
            return true;
        }
    }
    return false;
}

/* A pattern that freezes nothing is a mistake, unless it names a role this phase does not use. */
static dt_status freeze_by_patterns(dt_train *t, const char *const *pattern, const char *key)
{
    const dt_stage *s = t->stage;
    for (; pattern != NULL && *pattern != NULL; pattern++) {
        uint32_t n = 0;
        DT_TRY(dt_param_table_freeze(t->params, *pattern, &n));
        if (n == 0 && !dt_config_has_role(s->d.config, *pattern) && !is_for_other_trainer(t, *pattern)) {
            return reject_role(s, key, *pattern, t->params->n > 0 ? t->params->param[0].name : "(this phase has none)");
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
static dt_status freeze_loaded(dt_train *t, const char *const *role)
{
    static const char key[] = "training.freeze_loaded";
    const dt_stage *s = t->stage;
    DT_TRY(check_roles(s, role, key));
    for (; role != NULL && *role != NULL; role++) {
        if (dt_roles_contain(&s->d.loaded, *role)) {
            DT_TRY(freeze_by_patterns(t, (const char *const[]){*role, NULL}, key));
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

/* Streams of random numbers of a phase and of its further trainers, which no other phase has. */
static uint32_t key_of_trainer(const dt_train *t)
{
    enum { TRAINER_SHIFT = 16 }; /* above the index of any phase */
    return (uint32_t)t->stage->d.index | (uint32_t)(t - t->stage->train) << TRAINER_SHIFT;
}

static dt_schedule_kind choose_schedule(const dt_train *t, uint32_t configured)
{
    static const dt_schedule_kind kind[] = {[DT_TRAIN_SCHEDULE_CONSTANT] = DT_SCHEDULE_CONSTANT,
                                            [DT_TRAIN_SCHEDULE_COSINE] = DT_SCHEDULE_COSINE,
                                            [DT_TRAIN_SCHEDULE_LINEAR] = DT_SCHEDULE_LINEAR,
                                            [DT_TRAIN_SCHEDULE_STEP] = DT_SCHEDULE_STEP};
    return t->desc.schedule == DT_TRAIN_SCHEDULE_CONFIGURED ? (dt_schedule_kind)configured : kind[t->desc.schedule];
}

static dt_status fill_trainer_config(dt_train *tr, dt_trainer_config *c)
{
    dt_stage *s = tr->stage;
    const dt_train_desc *desc = &tr->desc;
    const dt_training_opts t = s->opts.training;
    const dt_data_opts d = s->opts.data;
    const dt_engine_opts e = s->opts.engine;
    const dt_memory_opts m = s->opts.memory;
    const dt_comm_opts comm = s->opts.comm;
    DT_TRY(dt_reject_sampling_options(s, desc->data, &d));
    DT_TRY(check_roles(s, e.recompute_roles, "engine.recompute_roles"));
    DT_TRY(freeze_by_patterns(tr, t.freeze, "training.freeze"));
    DT_TRY(freeze_by_patterns(tr, s->opts.phase.freeze, "freeze of the phase"));
    DT_TRY(freeze_loaded(tr, t.freeze_loaded));
    const uint64_t configured = (uint64_t)(s->opts.stop.epochs > 0 ? s->opts.stop.epochs : t.epochs);
    const uint64_t epochs = desc->epochs > 0 ? desc->epochs : configured;
    const uint64_t batch = desc->batch > 0 ? desc->batch : (uint64_t)d.batch;
    *c = (dt_trainer_config){.seed = s->d.seed,
                             .phase = key_of_trainer(tr),
                             .threads = s->d.threads,
                             .shards = (uint32_t)d.shards,
                             .prefetch = (uint32_t)d.prefetch,
                             .readers = (uint32_t)d.workers,
                             .sampling = (dt_sampling)d.sampling,
                             .keep_last = d.drop_last == 0,
                             .batch = batch * (uint64_t)t.accumulation,
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
                             .reads_each_step = s->opts.stop.training_metric[0] != '\0',
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
    c->schedule = (dt_schedule){.kind = choose_schedule(tr, (uint32_t)t.scheduler),
                                .lr = t.learning_rate,
                                .eta_min = t.eta_min,
                                .warmup = (double)t.warmup_epochs,
                                .t_max = t.t_max > 0 ? (double)t.t_max : (double)epochs,
                                .step_size = (double)t.step_size,
                                .gamma = t.step_gamma};
    DT_TRY(choose_precision(s, c));
    const uint64_t arenas = 1 + dt_optim_n_moments((dt_optimizer)t.optimizer); /* gradients and moments */
    DT_TRY(check_memory_room(s, (arenas * (uint64_t)tr->params->base_total + (uint64_t)tr->params->total) *
                                    sizeof(float)));
    return read_shard_weights(s, &comm, c);
}

static dt_status check_stored(const dt_train *t)
{
    const dt_stage *s = t->stage;
    const dt_train_desc *d = &t->desc;
    if (d->stored != NULL && (d->stored->source.turn != NULL || d->data->source.turn != NULL)) {
        return DT_FAIL(DT_EUNSUPPORTED, "%s mixes stored data in, and data.stream has no end", s->d.phase->desc.id);
    }
    if (d->stored == NULL || (d->record_stored != NULL && d->n_stored > 0)) {
        return DT_OK;
    }
    return DT_FAIL(DT_EPLUGIN, "%s gives its trainer stored data %s", s->d.phase->desc.id,
                   d->n_stored > 0 ? "without saying what to record of it" : "and takes no sample of it");
}

static dt_status check_desc(const dt_train *t)
{
    const char *id = t->stage->d.phase->desc.id;
    const dt_train_desc *d = &t->desc;
    if (d->data == NULL || d->record == NULL || (d->models == NULL && d->n_models > 0)) {
        return DT_FAIL(DT_EPLUGIN, "%s gives its trainer no %s", id,
                       d->data == NULL     ? "data"
                       : d->record == NULL ? "record"
                                           : "models");
    }
    if (d->n_models > DT_STAGE_MAX_MODELS) {
        return DT_FAIL(DT_EPLUGIN, "%s gives its trainer %u models; at most %d are possible", id, d->n_models,
                       DT_STAGE_MAX_MODELS);
    }
    for (uint32_t i = 0; i < d->n_models; i++) {
        if (d->models[i] == NULL) {
            return DT_FAIL(DT_EPLUGIN, "%s gives its trainer no model at place %u of %u", id, i, d->n_models);
        }
    }
    DT_TRY(d->manual_loss == NULL ? DT_OK
                                  : dt_name_check(DT_EPLUGIN, DT_NAME_KEY, DT_NAME_MOST_KEY, d->manual_loss,
                                                  "%s: manual_loss of its trainer", id));
    if (d->schedule > DT_TRAIN_SCHEDULE_STEP) {
        return DT_FAIL(DT_EPLUGIN, "%s gives its trainer the schedule %u; DT_TRAIN_SCHEDULE_* end at %d", id,
                       d->schedule, DT_TRAIN_SCHEDULE_STEP);
    }
    return d->batch <= UINT32_MAX ? DT_OK
                                  : DT_FAIL(DT_EPLUGIN,
                                            "%s gives its trainer batches of %llu samples; at most %lu "
                                            "are possible",
                                            id, (unsigned long long)d->batch, (unsigned long)UINT32_MAX);
}

/* The place of a trainer of this name, NULL or "" for the first. */
static dt_status add_trainer(dt_stage *s, const char *name, dt_train **out_p)
{
    const char *id = s->d.phase->desc.id;
    if (name == NULL && s->n_trains > 0) {
        return DT_FAIL(DT_EPLUGIN, "%s creates a second trainer without a name; trainers after the first need one", id);
    }
    if (name != NULL && s->n_trains == 0) {
        return DT_FAIL(DT_EPLUGIN, "%s creates the trainer %.31s before the first one, which has no name", id, name);
    }
    if (s->n_trains == DT_TRAIN_MAX_TRAINERS) {
        return DT_FAIL(DT_EPLUGIN, "%s creates more than %d trainers", id, DT_TRAIN_MAX_TRAINERS);
    }
    DT_TRY(name != NULL ? dt_name_check(DT_EPLUGIN, DT_NAME_WORD, MOST_NAME, name, "%s: a further trainer", id)
                        : DT_OK);
    for (uint32_t i = 1; i < s->n_trains; i++) {
        if (strcmp(s->train[i].name, name) == 0) {
            return DT_FAIL(DT_EPLUGIN, "%s creates two trainers %s", id, name);
        }
    }
    dt_train *t = &s->train[s->n_trains];
    t->stage = s;
    t->params = s->n_trains == 0 ? &s->params : &t->own;
    snprintf(t->name, sizeof(t->name), "%s", name != NULL ? name : "");
    s->n_trains++;
    *out_p = t;
    return DT_OK;
}

static dt_status create_trainer(dt_train *t)
{
    dt_stage *s = t->stage;
    const dt_train_desc *desc = &t->desc;
    DT_TRY(check_desc(t));
    DT_TRY(dt_user_ops_register_all(s->d.loader));
    DT_TRY(check_stored(t));
    DT_TRY(register_models(t));
    dt_trainer_config c;
    dt_target_rule targets[DT_TRAIN_MAX_TARGETS];
    dt_trainer_group group[DT_TRAIN_MAX_GROUPS];
    DT_TRY(add_groups(t, group));
    DT_TRY(add_target_networks(t, targets));
    pthread_mutex_lock(s->d.config_lock);
    dt_status st = fill_trainer_config(t, &c);
    pthread_mutex_unlock(s->d.config_lock);
    DT_TRY(st);
    const dt_trainer_desc td = {.config = &c,
                                .params = t->params,
                                .source = &desc->data->source,
                                .comm = s->d.comm,
                                .device_ops = s->d.device_ops,
                                .device = s->d.device,
                                .stored = desc->stored != NULL ? &desc->stored->source : NULL,
                                .n_stored = desc->n_stored,
                                .user = desc->user,
                                .record = desc->record,
                                .record_stored = desc->record_stored,
                                .model = dt_bind_forward,
                                .apart = desc->manual_loss,
                                .only_acts = s->d.trained_on != NULL || s->d.controller != NULL,
                                .group = group,
                                .n_groups = desc->n_groups,
                                .target = targets};
    st = desc->data->accept_step != NULL ? desc->data->accept_step(desc->data, c.batch) : DT_OK;
    if (st == DT_OK) {
        st = dt_trainer_create(&td, &t->trainer);
    }
    dt_free((void *)c.shard_weights);
    return st;
}

dt_status dt_train_create(dt_stage *s, const dt_train_desc *desc, dt_train **out)
{
    dt_train_desc whole = {0}; /* what was compiled with an older header is shorter */
    dt_train *t = NULL;
    if (desc == NULL || out == NULL) {
        return DT_FAIL(DT_EPLUGIN, "%s creates a trainer without a %s", s->d.phase->desc.id,
                       desc == NULL ? "description" : "place for its handle");
    }
    memcpy(&whole, desc, desc->struct_size < sizeof(whole) ? desc->struct_size : sizeof(whole));
    DT_TRY(add_trainer(s, whole.name, &t));
    t->desc = whole;
    const dt_status st = create_trainer(t);
    if (st < 0) {
        return t->name[0] != '\0' ? DT_CONTEXT(st, "trainer %s", t->name) : st;
    }
    s->trainer = s->train[0].trainer;
    *out = t;
    return DT_OK;
}
