/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "train/policy.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"
#include "train/device/infer.h"
#include "train/trainer_internal.h"

#include <string.h>

enum { MAX_OUTPUTS = 32 };

typedef struct chosen { /* what runs of a place read; values NULL: what all do */
    const float *values;
    uint64_t version;
} chosen;

struct dt_policy {
    dt_trainer *t;
    dt_samples source; /* with capacities of its own */
    dt_compiled c;
    uint64_t step, version; /* of the trainer, and of the values of its parameters, when a run was begun */
    const float *params;    /* the trainer's, or held */
    float *frozen, *inputs; /* room for all parameters, for step inputs one after another */
    size_t frozen_bytes;
    uint64_t n_inputs; /* floats */
    chosen *chosen;    /* [places]; of a device the first one holds for all */
};

/* Of what the phase records, and what is kept; NULL: all. */
static const char *const *list_output_names(const dt_policy_desc *d, const char **name)
{
    uint32_t n = 0;
    for (const char *const *o = d->outputs; o != NULL && *o != NULL && n < MAX_OUTPUTS; o++) {
        name[n++] = *o;
    }
    for (const char *const *k = d->keep; k != NULL && *k != NULL && n < MAX_OUTPUTS; k++) {
        name[n++] = *k;
    }
    name[n] = NULL;
    return d->outputs != NULL ? name : NULL;
}

/* Of acting: an output of state that no step gets. */
static dt_status check_carried_outputs(const dt_graph *g, const char *const *known)
{
    static const char carried[] = DT_POLICY_CARRIED;
    const char *name = NULL;
    for (uint32_t i = 0; known != NULL && (name = dt_graph_output_name(g, i)) != NULL; i++) {
        const char *const *k = known;
        while (*k != NULL && strcmp(*k, name) != 0) {
            k++;
        }
        if (*k == NULL && strncmp(name, carried, strlen(carried)) == 0) {
            return DT_FAIL(DT_EPLUGIN,
                           "the phase records output \"%s\", but carries no value \"%s\"; declare it in carried of "
                           "dt_rollout_desc, or give the output another name",
                           name, name + strlen(carried));
        }
    }
    return DT_OK;
}

static dt_status compile_policy(dt_policy *p, const dt_policy_desc *d)
{
    dt_trainer *t = p->t;
    const char *name[MAX_OUTPUTS + 1];
    const char *const *outputs = list_output_names(d, name);
    DT_TRY(dt_record_graph(t, &p->source, DT_FOR_ACTING, d->keep, &p->c));
    DT_TRY(check_carried_outputs(p->c.graph, outputs));
    if (t->device != NULL) {
        const dt_device_infer_desc id = {.source = &p->source,
                                         .graph = p->c.graph,
                                         .micro_batches = d->pieces,
                                         .places = d->places,
                                         .outputs_only = true,
                                         .pictures = d->pictures,
                                         .outputs = outputs,
                                         .is_joined = true};
        DT_TRY(dt_device_infer_create(t, &id, &p->c.device));
        p->c.plan = (dt_plan *)(uintptr_t)dt_device_infer_plan(p->c.device);
        return DT_OK;
    }
    const dt_plan_desc pd = {
        .outputs_only = true, .pictures = d->pictures, .outputs = outputs, .cap = p->source.slice_cap};
    return dt_compile_for_cpu(t, &pd, d->places, &p->c);
}

dt_status dt_policy_create(dt_trainer *t, const dt_policy_desc *d, dt_policy **out_p)
{
    dt_policy *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the policy");
    }
    p->t = t;
    p->source = *d->source;
    memcpy(p->source.slice_cap, d->cap, (d->source->n_symbols + 1) * sizeof(*d->cap));
    dt_status st = compile_policy(p, d);
    p->chosen = st == DT_OK ? dt_alloc_n(dt_policy_n_places(p), sizeof(*p->chosen)) : NULL;
    if (st == DT_OK && p->chosen == NULL) {
        st = DT_FAIL(DT_ENOMEM, "out of memory for the policy");
    }
    if (st < 0) {
        dt_policy_destroy(p);
        return DT_CONTEXT(st, "recording the policy");
    }
    *out_p = p;
    return DT_OK;
}

void dt_policy_destroy(dt_policy *p)
{
    if (p != NULL) {
        dt_compiled_fini(&p->c);
        dt_arena_unmap(p->frozen, p->frozen_bytes);
        dt_free(p->inputs);
        dt_free(p->chosen);
        dt_free(p);
    }
}

uint32_t dt_policy_n_places(const dt_policy *p)
{
    return p->c.device != NULL ? dt_device_infer_n_places(p->c.device) : p->c.n_exec;
}

bool dt_policy_is_async(const dt_policy *p)
{
    return p->c.device != NULL;
}

void dt_policy_arenas_get(const dt_policy *p, const double *mean, uint64_t n, uint64_t *mapped, uint64_t *resident)
{
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    *mapped = *resident = p->frozen != NULL ? dt_arena_bytes(p->frozen_bytes) : 0;
    if (p->c.device == NULL) {
        const dt_plan_info *info = dt_plan_info_get(p->c.plan);
        dt_trainer_typical_sizes(&p->source, mean, n, size);
        *mapped += (dt_arena_bytes(info->arena_bytes) + dt_arena_bytes(info->kept_bytes)) * p->c.n_exec;
        *resident += dt_plan_touched_bytes(p->c.plan, size) * p->c.n_exec;
    }
}

bool dt_policy_call_cost(const dt_policy *p, uint32_t call, const int64_t *size, dt_call_cost *out_p)
{
    if (call >= dt_plan_info_get(p->c.plan)->n_calls) {
        return false;
    }
    *out_p = dt_plan_call_cost(p->c.plan, call, size);
    return true;
}

bool dt_policy_reads_field(const dt_policy *p, const char *field)
{
    return dt_plan_field(p->c.plan, field) >= 0;
}

const dt_view *dt_policy_output(const dt_policy *p, uint32_t place, const char *name)
{
    return p->c.device != NULL ? dt_device_infer_output(p->c.device, place, 0, name)
                               : dt_exec_output(p->c.exec[place], name);
}

dt_status dt_policy_use_current_params(dt_policy *p)
{
    p->version = ++p->t->state.params_version;
    p->step = p->t->state.step;
    p->params = p->t->state.params;
    memset(p->chosen, 0, dt_policy_n_places(p) * sizeof(*p->chosen));
    if (p->c.device != NULL) {
        dt_device_infer_unfreeze_params(p->c.device);
    }
    return dt_bind_step_inputs(p->t, &p->c);
}

/* ---- parameters that stay ---------------------------------------------------------------------------------------- */

dt_status dt_policy_allocate_frozen(dt_policy *p)
{
    const char *const *name = NULL;
    const int64_t *count = NULL;
    const uint32_t n = dt_plan_step_inputs(p->c.plan, &name, &count);
    p->n_inputs = 0;
    for (uint32_t i = 0; i < n; i++) {
        p->n_inputs += (uint64_t)count[i];
    }
    p->inputs = dt_alloc_n(p->n_inputs + 1, sizeof(*p->inputs));
    if (p->inputs == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for step inputs");
    }
    DT_TRY(dt_map_float_arena(p->t->state.arena_bytes, &p->frozen));
    p->frozen_bytes = p->t->state.arena_bytes;
    return p->c.device != NULL ? dt_device_infer_allocate_frozen(p->c.device) : DT_OK;
}

dt_status dt_policy_freeze_params(dt_policy *p)
{
    const char *const *name = NULL;
    const int64_t *count = NULL;
    const uint32_t n = dt_plan_step_inputs(p->c.plan, &name, &count);
    float *at = p->inputs;
    DT_TRY(dt_policy_use_current_params(p));
    if (p->c.device != NULL) {
        DT_TRY(dt_device_infer_freeze_params(p->c.device));
    } else {
        memcpy(p->frozen, p->t->state.params, p->frozen_bytes);
    }
    p->params = p->frozen;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(at, p->c.step_input[i], (size_t)count[i] * sizeof(*at));
        p->c.step_input[i] = at;
        at += count[i];
    }
    return DT_OK;
}

/* Does training change it? */
static bool is_trained_or_target(const dt_param *p)
{
    return !p->frozen || p->is_target;
}

static uint64_t count_saved_params(const dt_policy *p)
{
    const dt_param_table *all = p->t->d.params;
    uint64_t n = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        if (is_trained_or_target(&all->param[i])) {
            n += (uint64_t)all->param[i].count;
        }
    }
    return n;
}

/* step, number of inputs, number of parameters; inputs, parameters */
dt_status dt_policy_save(const dt_policy *p, dt_str *out)
{
    const dt_param_table *all = p->t->d.params;
    const uint64_t head[] = {p->step, p->n_inputs, count_saved_params(p)};
    DT_TRY(p->c.device != NULL ? dt_device_infer_frozen_get(p->c.device, p->frozen) : DT_OK);
    dt_str_add_n(out, (const char *)head, sizeof(head));
    dt_str_add_n(out, (const char *)p->inputs, p->n_inputs * sizeof(float));
    for (uint32_t i = 0; i < all->n; i++) {
        if (is_trained_or_target(&all->param[i])) {
            const float *value = p->frozen + all->param[i].offset;
            dt_str_add_n(out, (const char *)value, (size_t)all->param[i].count * sizeof(*value));
        }
    }
    return dt_str_status(out);
}

dt_status dt_policy_load(dt_policy *p, const void *data, size_t size)
{
    const dt_param_table *all = p->t->d.params;
    const char *at = data;
    uint64_t head[3] = {0};
    const uint64_t n = count_saved_params(p), bytes = sizeof(head) + (p->n_inputs + n) * sizeof(float);
    memcpy(head, data, size < sizeof(head) ? size : sizeof(head));
    if (size != bytes || head[1] != p->n_inputs || head[2] != n) {
        return DT_FAIL(DT_EDATA,
                       "the checkpoint's policy of the round under way has %llu parameters and %llu step inputs in %zu "
                       "bytes, this run's %llu and %llu in %llu",
                       (unsigned long long)head[2], (unsigned long long)head[1], size, (unsigned long long)n,
                       (unsigned long long)p->n_inputs, (unsigned long long)bytes);
    }
    DT_TRY(dt_policy_freeze_params(p));
    DT_TRY(p->c.device != NULL ? dt_device_infer_frozen_get(p->c.device, p->frozen) : DT_OK);
    p->step = head[0];
    at += sizeof(head);
    memcpy(p->inputs, at, p->n_inputs * sizeof(float));
    at += p->n_inputs * sizeof(float);
    for (uint32_t i = 0; i < all->n; i++) {
        const size_t some = (size_t)all->param[i].count * sizeof(float);
        if (is_trained_or_target(&all->param[i])) {
            memcpy(p->frozen + all->param[i].offset, at, some);
            at += some;
        }
    }
    return p->c.device != NULL ? dt_device_infer_frozen_set(p->c.device, p->frozen) : DT_OK;
}

size_t dt_policy_n_params(const dt_policy *p)
{
    return p->t->state.arena_bytes / sizeof(float);
}

static dt_status copy_current_params(const dt_policy *p, float *to)
{
    const bool is_frozen = p->params != NULL && p->params != p->t->state.params;
    if (p->c.device != NULL && is_frozen) {
        return dt_device_infer_frozen_get(p->c.device, to);
    }
    DT_TRY(is_frozen ? DT_OK : dt_trainer_synchronize(p->t));
    memcpy(to, is_frozen ? p->params : p->t->state.params, p->t->state.arena_bytes);
    return DT_OK;
}

static bool has_controller(const dt_param_target *s)
{
    return strcmp(s->role, "controller") == 0;
}

/* It holds nothing that chooses actions: with it the policy would meet itself. */
static dt_status fail_unknown_target(const dt_param_table *all, const char *target)
{
    bool is_there = false;
    dt_str can = {0};
    for (uint32_t k = 0; k < all->n_targets; k++) {
        is_there = is_there || strcmp(all->target[k].name, target) == 0;
        if (has_controller(&all->target[k])) {
            dt_str_addf(&can, "%s\"%s\"", can.bytes > 0 ? " or " : "", all->target[k].name);
        }
    }
    const char *why = is_there ? "that target network of the phase does not contain the controller"
                               : "the phase has no such target network";
    const char *instead = can.bytes > 0 ? "one that contains the controller is "
                                        : "none contains the controller: leave opponents.target empty, for the pool";
    const dt_status st = DT_FAIL(DT_ECONFIG, "opponents.target = \"%s\": %s; %s%s", target, why, instead,
                                 can.bytes > 0 ? dt_str_text(&can) : "");
    dt_str_fini(&can);
    return st;
}

dt_status dt_policy_check_target(const dt_policy *p, const char *target)
{
    const dt_param_table *all = p->t->d.params;
    for (uint32_t i = 0; i < all->n; i++) {
        const dt_param *x = &all->param[i];
        if (x->is_target && strcmp(all->target[x->target].name, target) == 0 &&
            has_controller(&all->target[x->target])) {
            return DT_OK;
        }
    }
    return fail_unknown_target(all, target);
}

dt_status dt_policy_copy_params(const dt_policy *p, const char *target, float *to)
{
    const dt_param_table *all = p->t->d.params;
    DT_TRY(target != NULL ? dt_policy_check_target(p, target) : DT_OK);
    DT_TRY(copy_current_params(p, to));
    for (uint32_t i = 0; i < all->n && target != NULL; i++) {
        const dt_param *x = &all->param[i];
        if (x->is_target && strcmp(all->target[x->target].name, target) == 0) {
            memcpy(to + all->param[x->of].offset, to + x->offset, (size_t)x->count * sizeof(*to));
        }
    }
    return DT_OK;
}

uint64_t dt_policy_n_trained(const dt_policy *p)
{
    const dt_param_table *all = p->t->d.params;
    uint64_t n = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        if (!all->param[i].frozen) {
            n += (uint64_t)all->param[i].count;
        }
    }
    return n;
}

void dt_policy_pack_params(const dt_policy *p, const float *values, dt_str *out)
{
    const dt_param_table *all = p->t->d.params;
    for (uint32_t i = 0; i < all->n; i++) {
        if (!all->param[i].frozen) {
            const float *x = values + all->param[i].offset;
            dt_str_add_n(out, (const char *)x, (size_t)all->param[i].count * sizeof(*x));
        }
    }
}

const char *dt_policy_unpack_params(const dt_policy *p, const char *at, float *to)
{
    const dt_param_table *all = p->t->d.params;
    for (uint32_t i = 0; i < all->n; i++) {
        const size_t some = (size_t)all->param[i].count * sizeof(*to);
        if (!all->param[i].frozen) {
            memcpy(to + all->param[i].offset, at, some);
            at += some;
        }
    }
    return at;
}

dt_status dt_policy_override_params(dt_policy *p, uint32_t place, const float *values, uint64_t version)
{
    chosen *c = &p->chosen[p->c.device != NULL ? 0 : place];
    const bool is_new = c->version != version;
    *c = (chosen){values, version};
    return is_new && p->c.device != NULL ? dt_device_infer_frozen_set(p->c.device, values) : DT_OK;
}

/* ---- acting ------------------------------------------------------------------------------------------------------ */

dt_status dt_policy_run(dt_policy *p, uint32_t place, const int64_t *size, void *const *field)
{
    DT_TRACE_N("policy", "policy", "rows", size[0]);
    if (p->c.device != NULL) {
        DT_TRY(dt_policy_write_input(p, place, 0, 1, size, field));
        DT_TRY(dt_policy_start_run(p, place, 1));
        return dt_policy_wait_for_run(p, place);
    }
    const dt_kernel_run run = {.seed = p->t->c.seed, .step = p->step, .phase = p->t->c.phase, .training = 0};
    const chosen *c = &p->chosen[place];
    const dt_exec_feed feed = {.size = size,
                               .field = field,
                               .step_input = p->c.step_input,
                               .params = c->values != NULL ? c->values : p->params,
                               .run = &run,
                               .params_version = c->values != NULL ? c->version : p->version};
    return dt_exec_run(p->c.exec[place], &feed);
}

void dt_policy_input_buffers(dt_policy *p, uint32_t place, uint32_t i, uint32_t n, void **field)
{
    dt_device_infer_input_buffers(p->c.device, place, i, n, field);
}

dt_status dt_policy_write_input(dt_policy *p, uint32_t place, uint32_t i, uint32_t n, const int64_t *size,
                                void *const *field)
{
    dt_micro_batch s;
    memcpy(s.size, size, (p->source.n_symbols + 1) * sizeof(*size));
    memcpy(s.field, field, p->source.n_fields * sizeof(*field));
    return dt_device_infer_write_input(p->c.device, place, i, n, &s);
}

dt_status dt_policy_start_run(dt_policy *p, uint32_t place, uint32_t n)
{
    DT_TRACE_N("policy", "ask", "pieces", n);
    return dt_device_infer_start(p->c.device, place, n, p->step, p->c.step_input);
}

dt_status dt_policy_wait_for_run(dt_policy *p, uint32_t place)
{
    return dt_device_infer_wait(p->c.device, place);
}
