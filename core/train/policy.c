/* SPDX-License-Identifier: Apache-2.0
 *
 * See policy.h.
 */
#include <config.h>

#include "train/policy.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/trace.h"
#include "train/on_device/infer.h"
#include "train/trainer_internal.h"

#include <string.h>

struct dt_policy {
    dt_trainer *t;
    dt_samples source; /* with capacities of its own */
    dt_compiled c;
};

static dt_status compile(dt_policy *p, uint32_t places, const char *const *keep, bool pictures)
{
    dt_trainer *t = p->t;
    DT_TRY(dt_record(t, &p->source, keep, &p->c));
    if (t->device != NULL) {
        DT_TRY(dt_device_infer_create(t, &p->source, p->c.graph, 1, true, pictures, &p->c.device));
        p->c.plan = (dt_plan *)(uintptr_t)dt_device_infer_plan(p->c.device);
        return DT_OK;
    }
    const dt_plan_desc d = {.outputs_only = true, .pictures = pictures, .cap = p->source.slice_cap};
    return dt_compile_cpu(t, &d, places, &p->c);
}

dt_status dt_policy_create(dt_trainer *t, const dt_samples *source, const int64_t *cap, uint32_t places,
                           const char *const *keep, bool pictures, dt_policy **out_p)
{
    dt_policy *p = dt_alloc(sizeof(*p));
    if (p == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for the policy");
    }
    p->t = t;
    p->source = *source;
    memcpy(p->source.slice_cap, cap, (source->n_symbols + 1) * sizeof(*cap));
    const dt_status st = compile(p, places, keep, pictures);
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
        dt_free(p);
    }
}

uint32_t dt_policy_places(const dt_policy *p)
{
    return p->c.device != NULL ? 1 : p->c.n_exec;
}

void dt_policy_arenas_get(const dt_policy *p, const double *mean, uint64_t n, uint64_t *mapped, uint64_t *resident)
{
    int64_t size[DT_SAMPLES_MAX_SYMBOLS + 1];
    *mapped = *resident = 0;
    if (p->c.device == NULL) {
        const dt_plan_info *info = dt_plan_info_get(p->c.plan);
        dt_trainer_slice(&p->source, mean, n, size);
        *mapped = (dt_arena_bytes(info->arena_bytes) + dt_arena_bytes(info->kept_bytes)) * p->c.n_exec;
        *resident = dt_plan_touched_bytes(p->c.plan, size) * p->c.n_exec;
    }
}

bool dt_policy_reads(const dt_policy *p, const char *field)
{
    return dt_plan_field(p->c.plan, field) >= 0;
}

const dt_view *dt_policy_output(const dt_policy *p, uint32_t place, const char *name)
{
    return p->c.device != NULL ? dt_device_infer_output(p->c.device, 0, name) : dt_exec_output(p->c.exec[place], name);
}

dt_status dt_policy_begin(dt_policy *p)
{
    p->t->state.params_version++;
    return dt_bind_step_inputs(p->t, &p->c);
}

dt_status dt_policy_run(dt_policy *p, uint32_t place, const int64_t *size, void *const *field)
{
    DT_TRACE_N("policy", "policy", "rows", size[0]);
    if (p->c.device != NULL) {
        dt_feed_slice s;
        memcpy(s.size, size, (p->source.n_symbols + 1) * sizeof(*size));
        memcpy(s.field, field, p->source.n_fields * sizeof(*field));
        return dt_device_infer_run(p->c.device, &s, 1, p->c.step_input);
    }
    const dt_kernel_run run = {.seed = p->t->c.seed, .step = p->t->state.step, .phase = p->t->c.phase, .training = 0};
    const dt_exec_feed feed = {.size = size,
                               .field = field,
                               .step_input = p->c.step_input,
                               .params = p->t->state.params,
                               .run = &run,
                               .params_version = p->t->state.params_version};
    return dt_exec_run(p->c.exec[place], &feed);
}
